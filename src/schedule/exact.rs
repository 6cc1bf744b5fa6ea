//! The fastest schedule of one block, by the cheapest means that proves it.

use super::Limits;
use super::bounds;
use super::bounds::Credits;
use super::front::LEDGERS;
use super::job::Job;
use super::job::Timetable;
use super::list::Patience;
use super::list::list;
use super::prepared::Sets;
use super::search::search;
use crate::model::op::CoreKind;
use crate::plan::schedule::ProofKind;
use crate::plan::schedule::Rule;

/// Blocks that last longer are bounded and listed but not searched: credits would leave 64 bits.
const LONGEST_SEARCHED: u64 = 1 << 53;

/// A block's schedule and what is known about it.
pub(super) struct Answer {
    pub table: Timetable,
    pub lower_bound: u64,
    pub kind: ProofKind,
    pub n_nodes: u64,
}

/// Schedules a block: bounds and lists first, then credits by linear program, then search.
pub(super) fn solve(job: &Job, limits: &Limits) -> Answer {
    let serial = job.serial();
    let sets = job.block.sets.as_ref().filter(|_| serial < LONGEST_SEARCHED);
    let Some(sets) = sets else { return listed(job) };
    let fast = Credits::of_fastest(job, sets);
    let mut best = Best::new(job, Some(fast.bound()));
    if job.rule == Rule::Alone && best.lower == serial {
        return best.with_serial(job, serial).answer(ProofKind::Bound);
    }
    best.try_lists(job);
    if best.is_proved() || limits.stopped() {
        return best.answer(ProofKind::Bound);
    }
    let rich = Credits::best(job, sets);
    best.lower = best.lower.max(rich.bound());
    if best.is_proved() {
        return best.answer(ProofKind::Bound);
    }
    let of_work = [CoreKind::Tensor, CoreKind::Vector].map(|kind| Credits::of_work(job, kind));
    let [of_tensor, of_vector] = of_work;
    best.search(job, sets, &[rich, of_tensor, of_vector], limits);
    best.answer(ProofKind::Search)
}

/// The best list schedule of a block, with bounds that need no linear program.
pub(super) fn listed(job: &Job) -> Answer {
    let mut best = Best::bounded(job);
    best.try_lists(job);
    best.answer(ProofKind::Bound)
}

/// What no schedule of a block beats, without a linear program or a schedule.
pub(super) fn bounded(job: &Job) -> u64 {
    Best::bounded(job).lower
}

/// The best schedule so far, and what no schedule beats.
struct Best {
    table: Option<Timetable>,
    lower: u64,
    tails: Vec<u64>,
    n_nodes: u64,
}

impl Best {
    fn new(job: &Job, credit_bound: Option<u64>) -> Self {
        let tails = job.tails();
        let lower = bounds::path(&tails).max(bounds::work(job)).max(credit_bound.unwrap_or(0));
        Self { table: None, lower, tails, n_nodes: 0 }
    }

    /// No schedule, and bounds that need no linear program.
    fn bounded(job: &Job) -> Self {
        let sets = job.block.sets.as_ref().filter(|_| job.serial() < LONGEST_SEARCHED);
        Self::new(job, sets.map(|sets| Credits::of_fastest(job, sets).bound()))
    }

    fn upper(&self) -> u64 {
        self.table.as_ref().map_or(u64::MAX, |table| table.makespan)
    }

    fn is_proved(&self) -> bool {
        self.upper() == self.lower
    }

    fn offer(&mut self, table: Timetable) {
        if table.makespan < self.upper() {
            self.table = Some(table);
        }
    }

    /// One task after another, each in its faster mode.
    fn with_serial(mut self, job: &Job, makespan: u64) -> Self {
        let mut now = 0;
        let start = (0..job.len()).map(|task| {
            let start = now;
            now += job.fastest(task);
            start
        });
        let start = start.collect();
        let spread = job.spread.iter().map(Option::is_some).collect();
        self.table = Some(Timetable { start, spread, makespan });
        self
    }

    /// List schedules, until one is as fast as the bound.
    fn try_lists(&mut self, job: &Job) {
        let fastest: Vec<bool> = job.spread.iter().map(Option::is_some).collect();
        let alone = vec![false; job.len()];
        let all_alone: u128 = job.alone.iter().map(|&ticks| u128::from(ticks)).sum();
        let worth_trying = usize::from(all_alone < 1 << 62);
        for modes in &[fastest, alone][..=worth_trying] {
            for patience in [Patience::Greedy, Patience::Waiting] {
                let table = list(job, modes.clone(), &self.tails, patience);
                self.offer(table);
                if self.is_proved() {
                    return;
                }
            }
        }
    }

    fn search(&mut self, job: &Job, sets: &Sets, credits: &[Credits; LEDGERS], limits: &Limits) {
        let found = search(job, sets, credits, self.lower, self.upper(), limits);
        self.lower = found.lower_bound;
        self.n_nodes = found.n_nodes;
        if let Some(better) = found.better {
            self.offer(better);
        }
    }

    /// The answer; `means` is what a proof rests on, if there is one.
    fn answer(self, means: ProofKind) -> Answer {
        let kind = if self.is_proved() { means } else { ProofKind::None };
        let table = self.table.expect("a list schedule was made");
        Answer { table, lower_bound: self.lower, kind, n_nodes: self.n_nodes }
    }
}
