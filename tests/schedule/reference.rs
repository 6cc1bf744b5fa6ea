//! Two slow, obvious solvers that share nothing with the library's, nor with each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::HashSet;

use phaze::model::op::CoreKind;
use phaze::schedule::Problem;
use phaze::schedule::Rule;

/// What a task holds: tensor cores, vector cores, the network.
fn held(problem: &Problem, task: usize, spread: bool) -> [u32; 3] {
    let (n_tensor, n_vector) = (problem.cores.tensor, problem.cores.vector);
    let [tensor, vector] = match problem.tasks.nodes()[task].core {
        CoreKind::Tensor => [1, 0],
        CoreKind::Vector => [0, 1],
        CoreKind::Both => [1, 1],
        CoreKind::Network => return [0, 0, 1],
        CoreKind::None => return [0, 0, 0],
    };
    match (spread, problem.rule) {
        (false, _) => [tensor, vector, 0],
        (true, Rule::Alone) => [n_tensor, n_vector, 0],
        (true, Rule::OwnKind) => [tensor * n_tensor, vector * n_vector, 0],
    }
}

fn ticks(problem: &Problem, task: usize, spread: bool) -> u64 {
    let task = problem.tasks.nodes()[task];
    if spread { task.spread } else { task.alone }
}

fn reads(problem: &Problem, task: usize) -> Vec<usize> {
    let id = problem.tasks.ids().nth(task).unwrap();
    problem.tasks.predecessors(id).iter().map(|read| read.index()).collect()
}

fn capacity(problem: &Problem) -> [u32; 3] {
    [problem.cores.tensor, problem.cores.vector, 1]
}

/// The least makespan by trying every order and every mode: each task is put, in that order, at
/// the first moment where it fits. Some order gives a fastest schedule.
pub fn by_every_order(problem: &Problem) -> u64 {
    let mut best = u64::MAX;
    place_next(problem, &mut Vec::new(), &mut best);
    best
}

fn place_next(problem: &Problem, placed: &mut Vec<(usize, bool, u64)>, best: &mut u64) {
    let end = |&(task, spread, start): &(usize, bool, u64)| start + ticks(problem, task, spread);
    let makespan = placed.iter().map(end).max().unwrap_or(0);
    if makespan >= *best {
        return;
    }
    if placed.len() == problem.tasks.len() {
        *best = makespan;
        return;
    }
    for task in 0..problem.tasks.len() {
        let ends: Option<Vec<u64>> = reads(problem, task)
            .into_iter()
            .map(|read| placed.iter().find(|(other, ..)| *other == read).map(end))
            .collect();
        let Some(ends) = ends else { continue };
        if placed.iter().any(|(other, ..)| *other == task) {
            continue;
        }
        for spread in [false, true] {
            let ready = ends.iter().copied().max().unwrap_or(0);
            let mut moments: Vec<u64> = placed.iter().map(end).filter(|&t| t > ready).collect();
            moments.push(ready);
            moments.sort_unstable();
            let fits = |&start: &u64| fits(problem, placed, task, spread, start);
            let start = moments.into_iter().find(fits).expect("at the end there is room");
            placed.push((task, spread, start));
            place_next(problem, placed, best);
            placed.pop();
        }
    }
}

fn fits(
    problem: &Problem,
    placed: &[(usize, bool, u64)],
    task: usize,
    spread: bool,
    start: u64,
) -> bool {
    let end = start + ticks(problem, task, spread);
    let starts = placed.iter().map(|&(.., other)| other).filter(|t| (start..end).contains(t));
    starts.chain([start]).filter(|&t| t < end).all(|moment| {
        let mut used = held(problem, task, spread);
        for &(other, other_spread, other_start) in placed {
            if (other_start..other_start + ticks(problem, other, other_spread)).contains(&moment) {
                let more = held(problem, other, other_spread);
                (0..3).for_each(|i| used[i] += more[i]);
            }
        }
        (0..3).all(|i| used[i] <= capacity(problem)[i])
    })
}

/// What has happened at some moment: who is done, one bit each, and who runs for how long still.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct State {
    done: u32,
    running: Vec<(usize, bool, u64)>,
}

/// The least makespan as a shortest path over states, one decision at a time.
pub fn by_shortest_path(problem: &Problem) -> u64 {
    let n = problem.tasks.len();
    let reads: Vec<u32> = (0..n)
        .map(|task| reads(problem, task).iter().fold(0, |set, read| set | 1 << read))
        .collect();
    let start = State { done: 0, running: Vec::new() };
    let mut queue = BinaryHeap::from([Reverse((0, start))]);
    let mut seen = HashSet::new();
    while let Some(Reverse((now, state))) = queue.pop() {
        if state.done.count_ones() as usize == n {
            return now;
        }
        if !seen.insert(state.clone()) {
            continue;
        }
        for next in after_starting(problem, &reads, &state) {
            queue.push(Reverse((now, next)));
        }
        if let Some(step) = state.running.iter().map(|&(.., left)| left).min() {
            let mut next = State { done: state.done, running: Vec::new() };
            for (task, spread, left) in state.running {
                if left == step {
                    next.done |= 1 << task;
                } else {
                    next.running.push((task, spread, left - step));
                }
            }
            queue.push(Reverse((now + step, next)));
        }
    }
    unreachable!("the last state is always reached")
}

fn after_starting(problem: &Problem, reads: &[u32], state: &State) -> Vec<State> {
    let mut used = [0; 3];
    for &(task, spread, _) in &state.running {
        let more = held(problem, task, spread);
        (0..3).for_each(|i| used[i] += more[i]);
    }
    let mut next = Vec::new();
    for (task, reads) in reads.iter().enumerate() {
        let started =
            state.done >> task & 1 == 1 || state.running.iter().any(|&(other, ..)| other == task);
        if started || reads & !state.done != 0 {
            continue;
        }
        for spread in [false, true] {
            let more = held(problem, task, spread);
            let left = ticks(problem, task, spread);
            let mut state = state.clone();
            // What takes no time needs no room.
            if left == 0 {
                state.done |= 1 << task;
                next.push(state);
            } else if (0..3).all(|i| used[i] + more[i] <= capacity(problem)[i]) {
                state.running.push((task, spread, left));
                state.running.sort_unstable();
                next.push(state);
            }
        }
    }
    next
}
