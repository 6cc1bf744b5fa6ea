//! List schedules: fast, good, and without a proof of their own.
//!
//! With each task's mode given, time runs from event to event, and at each the ready task of the
//! highest priority that fits is started, until none does. Near-linear in tasks and edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::job::Amount;
use super::job::Job;
use super::job::Timetable;

/// What to do when the most urgent ready task does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Start a less urgent one that does.
    Greedy,
    /// Keep the cores that it needs free for it.
    Waiting,
}

/// Tasks that hold the same amount while they run, most urgent first; among equals the first.
struct Queue {
    held: Amount,
    ready: BinaryHeap<(u64, Reverse<u32>)>,
}

/// Schedules a block with the given modes; a larger `urgency` goes first.
pub(super) fn list(job: &Job, spread: Vec<bool>, urgency: &[u64], patience: Patience) -> Timetable {
    let mut run = ListRun {
        job,
        urgency,
        waits_for: job.block.n_predecessors.clone(),
        queues: Vec::with_capacity(8),
        free: job.all(),
        running: BinaryHeap::with_capacity(8),
        now: 0,
        table: Timetable { start: vec![0; job.len()], spread, makespan: 0 },
    };
    for task in 0..job.len() {
        if job.block.n_predecessors[task] == 0 {
            run.enqueue(task);
        }
    }
    loop {
        while run.start_next(patience) {}
        let Some(Reverse((end, _))) = run.running.peek().copied() else { break };
        run.now = end;
        while let Some(Reverse((end, task))) = run.running.peek().copied()
            && end == run.now
        {
            run.running.pop();
            run.finish(task as usize);
        }
    }
    run.table
}

struct ListRun<'a> {
    job: &'a Job<'a>,
    urgency: &'a [u64],
    waits_for: Vec<u32>,
    queues: Vec<Queue>,
    free: Amount,
    running: BinaryHeap<Reverse<(u64, u32)>>,
    now: u64,
    table: Timetable,
}

impl ListRun<'_> {
    fn enqueue(&mut self, task: usize) {
        let held = self.job.held(task, self.table.spread[task]);
        let number = u32::try_from(task).expect("a block has fewer than 2^32 tasks");
        let entry = (self.urgency[task], Reverse(number));
        match self.queues.iter_mut().find(|queue| queue.held == held) {
            Some(queue) => queue.ready.push(entry),
            None => self.queues.push(Queue { held, ready: BinaryHeap::from([entry]) }),
        }
    }

    /// Starts the most urgent task that may start now; `false` if there is none.
    fn start_next(&mut self, patience: Patience) -> bool {
        let most_urgent = |queues: &[Queue], may: &dyn Fn(&Queue) -> bool| {
            let tops = queues.iter().enumerate().filter(|(_, queue)| may(queue));
            tops.filter_map(|(i, queue)| Some((*queue.ready.peek()?, i))).max().map(|(_, i)| i)
        };
        let free = self.free;
        let found = match patience {
            Patience::Greedy => most_urgent(&self.queues, &|queue| queue.held.fits(free)),
            Patience::Waiting => {
                // Cores that an urgent task waits for are closed to all that are less urgent.
                let mut open = free;
                let mut passed = vec![false; self.queues.len()];
                loop {
                    let next = {
                        let tops = self.queues.iter().enumerate().filter(|(i, _)| !passed[*i]);
                        tops.filter_map(|(i, queue)| Some((*queue.ready.peek()?, i))).max()
                    };
                    let Some((_, i)) = next else { break None };
                    let held = self.queues[i].held;
                    if held.fits(open) {
                        break Some(i);
                    }
                    passed[i] = true;
                    open.tensor = if held.tensor > 0 { 0 } else { open.tensor };
                    open.vector = if held.vector > 0 { 0 } else { open.vector };
                    open.network = if held.network > 0 { 0 } else { open.network };
                }
            }
        };
        let Some(queue) = found else { return false };
        let (_, Reverse(task)) = self.queues[queue].ready.pop().expect("it was just seen");
        self.begin(task as usize);
        true
    }

    fn begin(&mut self, task: usize) {
        let spread = self.table.spread[task];
        let end = self.now + self.job.ticks(task, spread);
        self.table.start[task] = self.now;
        self.table.makespan = self.table.makespan.max(end);
        self.free = self.free.minus(self.job.held(task, spread));
        let number = u32::try_from(task).expect("a block has fewer than 2^32 tasks");
        self.running.push(Reverse((end, number)));
    }

    fn finish(&mut self, task: usize) {
        let held = self.job.held(task, self.table.spread[task]);
        self.free = self.free.plus(held);
        for i in 0..self.job.block.successors[task].len() {
            let next = self.job.block.successors[task][i] as usize;
            self.waits_for[next] -= 1;
            if self.waits_for[next] == 0 {
                self.enqueue(next);
            }
        }
    }
}
