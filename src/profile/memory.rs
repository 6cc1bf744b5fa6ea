//! The least time of a pass whose cores share memories.
//!
//! A pass takes the largest of its schedule's makespan and what each memory needs for the bytes of
//! all operators, in the modes that the schedule chose. The schedule of least makespan is nearly
//! always a fastest pass as well. Where a memory needs longer than it, another choice of modes may
//! move fewer bytes and be faster as a whole: then modes are branched over. A node fixes some of
//! them; its schedule is the fastest of those that keep them, and its bound is the larger of that
//! makespan and of what the memories need at least. The operator to branch on is one that carries
//! more than it must through the memory that decides.

use crate::plan::schedule::Memory;
use crate::schedule::Proof;
use crate::schedule::ProofKind;
use crate::schedule::Task;
use crate::schedule::Timed;
use crate::units::Bytes;
use crate::units::Time;

/// The most schedules that are made for one pass: few need more than a handful.
const MOST_SCHEDULES: usize = 200;

/// A schedule of a pass, as far as the memories are concerned.
pub(super) struct Choice<S> {
    pub timed: Timed,
    /// Whether each task is spread.
    pub spread: Vec<bool>,
    /// What else its solver told.
    pub details: S,
}

/// The fastest pass that was found.
pub(super) struct Least<S> {
    pub choice: Choice<S>,
    pub time: Time,
    /// No choice of modes and no schedule is faster.
    pub lower_bound: Time,
    /// What is known of the makespan alone, whatever the memories need.
    pub makespan_proof: Proof,
    /// Partial schedules that all searches looked at.
    pub n_nodes: u64,
    /// Whether the lower bound rests on having branched over modes.
    pub branched: bool,
}

/// Modes that are fixed, with the fastest schedule that keeps them.
struct Node {
    fixed: Vec<Option<bool>>,
    /// Which of the schedules made so far.
    choice: usize,
    lower_bound: Time,
}

/// Finds the fastest pass of `tasks`; `solve` makes the schedule of least makespan.
pub(super) fn least<S>(
    tasks: &[Task],
    memories: &[Memory],
    mut solve: impl FnMut(&[Task]) -> Choice<S>,
) -> Least<S> {
    let first = solve(tasks);
    let Timed { proof: free_proof, mut n_nodes, .. } = first.timed;
    let fixed = vec![None; tasks.len()];
    let lower_bound = bound(&first.timed, memories, &fixed);
    let mut choices = vec![first];
    let mut open = vec![Node { fixed, choice: 0, lower_bound }];
    let mut best = 0;
    let time_of = |choice: &Choice<S>| time(choice, memories);
    // What is known of nodes that cannot be branched further.
    let mut settled = Time(u64::MAX);
    let mut branched = false;
    while choices.len() < MOST_SCHEDULES {
        let next = open.iter().enumerate().min_by_key(|(_, node)| node.lower_bound);
        let Some(at) = next.map(|(at, _)| at) else { break };
        if open[at].lower_bound >= time_of(&choices[best]).min(settled) {
            break;
        }
        let node = open.swap_remove(at);
        let Some(task) = wasteful(&choices[node.choice], memories, &node.fixed) else {
            settled = settled.min(node.lower_bound);
            continue;
        };
        branched = true;
        let now = choices[node.choice].spread[task];
        for mode in [!now, now] {
            let mut fixed = node.fixed.clone();
            fixed[task] = Some(mode);
            let mut choice = node.choice;
            if mode != now {
                let found = solve(&keep(tasks, &fixed));
                n_nodes += found.timed.n_nodes;
                choice = choices.len();
                choices.push(found);
                if time_of(&choices[choice]) < time_of(&choices[best]) {
                    best = choice;
                }
            }
            let lower_bound = bound(&choices[choice].timed, memories, &fixed).max(node.lower_bound);
            open.push(Node { fixed, choice, lower_bound });
        }
    }
    let choice = choices.swap_remove(best);
    let time = time(&choice, memories);
    let least_open = open.iter().map(|node| node.lower_bound).min().unwrap_or(settled);
    let lower_bound = least_open.min(settled).min(time);
    let makespan_proof = if choice.timed.makespan == free_proof.lower_bound {
        free_proof
    } else {
        Proof { kind: ProofKind::None, ..free_proof }
    };
    Least { choice, time, lower_bound, makespan_proof, n_nodes, branched }
}

/// What a pass takes: the largest of its makespan and each memory's time.
fn time<S>(choice: &Choice<S>, memories: &[Memory]) -> Time {
    let carried = |memory| transfer(memory, |task| usize::from(choice.spread[task]));
    memories.iter().map(carried).fold(Time(choice.timed.makespan), Time::max)
}

/// What no pass beats that keeps the fixed modes.
fn bound(timed: &Timed, memories: &[Memory], fixed: &[Option<bool>]) -> Time {
    let carried = |memory: &Memory| {
        transfer(memory, |task| match fixed[task] {
            Some(spread) => usize::from(spread),
            None => usize::from(memory.bytes[task][1] < memory.bytes[task][0]),
        })
    };
    memories.iter().map(carried).fold(Time(timed.proof.lower_bound), Time::max)
}

/// What a memory needs where each task runs in some mode.
pub(super) fn transfer(memory: &Memory, mode: impl Fn(usize) -> usize) -> Time {
    let bytes: Bytes = memory.bytes.iter().enumerate().map(|(task, modes)| modes[mode(task)]).sum();
    memory.bandwidth.transfer(bytes)
}

/// The free task that could spare the memory that decides the most bytes; none where the makespan
/// decides, or where no other choice moves fewer bytes.
fn wasteful<S>(choice: &Choice<S>, memories: &[Memory], fixed: &[Option<bool>]) -> Option<usize> {
    let takes = |memory: &&Memory| transfer(memory, |task| usize::from(choice.spread[task]));
    let slowest = memories.iter().max_by_key(takes)?;
    if takes(&slowest) <= Time(choice.timed.makespan) {
        return None;
    }
    let spared = |&task: &usize| {
        let [now, other] = [choice.spread[task], !choice.spread[task]]
            .map(|spread| slowest.bytes[task][usize::from(spread)]);
        now.0.saturating_sub(other.0)
    };
    let free = (0..fixed.len()).filter(|&task| fixed[task].is_none());
    free.filter(|task| spared(task) > 0).max_by_key(spared)
}

/// The tasks with times that leave each fixed one no other mode.
fn keep(tasks: &[Task], fixed: &[Option<bool>]) -> Vec<Task> {
    let pairs = tasks.iter().zip(fixed);
    pairs
        .map(|(&task, mode)| match mode {
            None => task,
            // So long that all tasks in a row are faster.
            Some(true) => Task { alone: u64::MAX, ..task },
            // A task that gains nothing by spreading does not spread.
            Some(false) => Task { spread: u64::MAX, ..task },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dag;
    use crate::model::op::CoreKind;
    use crate::plan::schedule::Cores;
    use crate::plan::schedule::Problem;
    use crate::plan::schedule::Rule;
    use crate::schedule::Limits;
    use crate::schedule::solve;
    use crate::units::Bandwidth;
    use proptest::prelude::*;

    /// The fastest schedule of independent and chained tasks, with its modes.
    fn fastest(tasks: &[Task], edges: &[(usize, usize)], rule: Rule) -> Choice<()> {
        let (graph, _) = Dag::from_edges(tasks.to_vec(), edges).unwrap();
        let problem = Problem { tasks: graph, cores: Cores { tensor: 2, vector: 2 }, rule };
        let solved = solve(&problem, &Limits::DEFAULT);
        let timed =
            Timed { makespan: solved.makespan, proof: solved.proof, n_nodes: solved.n_nodes };
        let spread = solved.schedule.runs.iter().map(|run| run.spread).collect();
        Choice { timed, spread, details: () }
    }

    fn a_task() -> impl Strategy<Value = (Task, [[u64; 2]; 2])> {
        let core = prop_oneof![Just(CoreKind::Tensor), Just(CoreKind::Vector)];
        (core, 1..30_u64, 1..30_u64, [[0..40_u64, 0..40], [0..40, 0..40]])
            .prop_map(|(core, alone, spread, bytes)| (Task { core, alone, spread }, bytes))
    }

    proptest! {
        #[test]
        fn every_choice_of_modes_is_as_slow(
            given in prop::collection::vec(a_task(), 1..6),
            chained in any::<u8>(),
            own_kind in any::<bool>(),
        ) {
            let rule = if own_kind { Rule::OwnKind } else { Rule::Alone };
            let n = given.len();
            let edges: Vec<(usize, usize)> =
                (1..n).filter(|i| chained >> i & 1 == 1).map(|i| (i / 2, i)).collect();
            let tasks: Vec<Task> = given.iter().map(|(task, _)| *task).collect();
            let memories = [0, 1].map(|at| Memory {
                bytes: given.iter().map(|(_, bytes)| bytes[at].map(Bytes)).collect(),
                // A byte per tick.
                bandwidth: Bandwidth::bytes_per_second(Time::PER_SECOND).unwrap(),
            });
            let every_choice = (0..1_u32 << n).map(|modes| {
                let fixed: Vec<Option<bool>> =
                    (0..n).map(|task| Some(modes >> task & 1 == 1)).collect();
                time(&fastest(&keep(&tasks, &fixed), &edges, rule), &memories)
            });
            let found = least(&tasks, &memories, |tasks| fastest(tasks, &edges, rule));
            prop_assert_eq!(found.time, every_choice.min().unwrap());
            prop_assert_eq!(found.lower_bound, found.time);
        }
    }
}
