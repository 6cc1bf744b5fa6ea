//! Exact search of one block: branch and bound over events.
//!
//! Time runs from one end of a task to the next. At each event, each ready task in turn is started
//! on one core, started spread, or left for later; when all are decided, time moves on. Every
//! schedule whose tasks cannot be moved earlier one by one is met this way, and a fastest one is
//! among those. What is cut off, and why that is sound:
//!
//! - **Bounds.** The time plus the credit still to be earned ([`super::bounds`]) or the longest path
//!   from here exceeds the target.
//! - **Better moments.** The same tasks had started no later at a moment already left behind, and
//!   none of them ends later ([`super::memo`]).
//! - **No idle waiting.** A task left for later although it fits may start only after a moment in
//!   which it did not fit, else it could have started when it was left. Time does not move on past
//!   the end that a ready task would have had in cores that stay free.
//! - **Twins.** Of two tasks with the same times and cores, the one that waits for no more and is
//!   waited for by no less goes first: exchanging them gives as good a schedule.
//!
//! The last two point to schedules in which some task is started where here it is left for later.
//! Starting is always tried before leaving, so these have been searched, or cut off soundly, before;
//! likewise a better moment is one whose whole subtree is done. Each cut therefore rests on earlier
//! ones only, never in a circle.
//!
//! The search asks "is there a schedule within the target?", first for the lower bound itself, then
//! for larger targets: a failed target is a better lower bound, whenever the search is stopped.

use super::Limits;
use super::bounds::Credits;
use super::bounds::ONE;
use super::bounds::PARTS;
use super::job::Amount;
use super::job::Job;
use super::job::Timetable;
use super::memo::Memo;
use super::memo::Running;
use super::prepared::Sets;
use super::prepared::bits;

/// What came of a search.
pub(super) struct Found {
    /// A faster schedule than the one given, if there is one.
    pub better: Option<Timetable>,
    /// No schedule ends before.
    pub lower_bound: u64,
    /// Moments visited.
    pub n_nodes: u64,
}

/// Searches for a schedule that ends before `upper`, knowing that none ends before `lower`.
pub(super) fn search(
    job: &Job,
    sets: &Sets,
    credits: &[Credits],
    mut lower: u64,
    mut upper: u64,
    limits: &Limits,
) -> Found {
    let mut search = Search::new(job, sets, credits, limits);
    let mut better = None;
    let mut step = 0;
    // Most blocks end in the first quarter of the moments allowed. Where they do not, the second
    // goes straight for faster schedules, so that a search that has to be given up still has one.
    for (part, diving) in [(4, false), (2, true), (1, false)] {
        search.budget = limits.nodes / part;
        while lower < upper {
            search.target = if diving { upper - 1 } else { (lower + step).min(upper - 1) };
            let target = search.target;
            let completed = search.run();
            if let Some(found) = search.best.take() {
                upper = found.makespan;
                better = Some(search.in_block_order(&found));
            }
            if !completed {
                break;
            }
            // No schedule is within the target, or the one found is the best of those that are.
            lower = if upper <= target { upper } else { target + 1 };
            step = (step * 4).max((upper - lower) / 64);
        }
    }
    Found { better, lower_bound: lower, n_nodes: search.n_nodes }
}

/// The state of a search; tasks are numbered by rank, the longest way to the end first.
struct Search<'a> {
    limits: &'a Limits<'a>,
    /// The block's task of each rank.
    order: Vec<usize>,
    modes: Vec<[Option<Mode>; 2]>,
    reads: Vec<u128>,
    /// The longest way from a task's start, and from its end, to the end of the block.
    tail: Vec<u64>,
    after: Vec<u64>,
    /// Tasks that go before each task wherever both are ready.
    twins: Vec<u128>,
    credits: Vec<Ledger>,
    all: u128,
    memo: Memo,
    /// The runs of all moments on the way from the root to the current one.
    running: Vec<Running>,
    start: Vec<u64>,
    spread: Vec<bool>,
    target: u64,
    best: Option<Timetable>,
    n_nodes: u64,
    /// When to give up, and when next to ask whether to.
    budget: u64,
    next_question: u64,
    cores: Amount,
}

/// One way to run a task.
#[derive(Clone, Copy)]
struct Mode {
    ticks: u64,
    held: Amount,
}

/// One credit function, as the search uses it.
struct Ledger {
    credit: Vec<u64>,
    /// Credit per tick alone and spread, rounded down.
    rate: Vec<[u64; 2]>,
    total: u64,
}

/// A moment: what has happened, and what is free.
#[derive(Clone, Copy)]
struct Moment {
    now: u64,
    started: u128,
    finished: u128,
    free: Amount,
    /// Tasks that may not start alone, or spread, until they have once not fitted.
    delayed: [u128; 2],
    /// Its runs are `running[first..]`.
    first: usize,
    /// The end of the runs.
    last: usize,
}

/// Whether the search should go on.
type Continue = bool;

impl<'a> Search<'a> {
    fn new(job: &Job, sets: &Sets, credits: &[Credits], limits: &'a Limits<'a>) -> Self {
        let n = job.len();
        let tails = job.tails();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&task| std::cmp::Reverse(tails[task]));
        let mut rank = vec![0; n];
        for (at, &task) in order.iter().enumerate() {
            rank[task] = at;
        }
        let ranked = |set: u128| bits(set).fold(0_u128, |ranked, task| ranked | 1 << rank[task]);
        let mode = |task: usize| {
            let alone = Mode { ticks: job.alone[task], held: job.held(task, false) };
            let spread = job.spread[task].map(|ticks| Mode { ticks, held: job.held(task, true) });
            [Some(alone), spread]
        };
        let before: Vec<u128> = order.iter().map(|&task| ranked(sets.before[task])).collect();
        let behind: Vec<u128> = order.iter().map(|&task| ranked(sets.after[task])).collect();
        let alike = |i: usize, j: usize| {
            let (a, b) = (order[i], order[j]);
            job.block.core[a] == job.block.core[b]
                && job.alone[a] == job.alone[b]
                && job.spread[a] == job.spread[b]
                && before[i] & !before[j] == 0
                && behind[j] & !behind[i] == 0
        };
        let twins = (0..n).map(|j| (0..j).filter(|&i| alike(i, j)).fold(0, |s, i| s | 1 << i));
        Self {
            limits,
            modes: order.iter().map(|&task| mode(task)).collect(),
            twins: twins.collect(),
            tail: order.iter().map(|&task| tails[task]).collect(),
            after: order.iter().map(|&task| tails[task] - job.fastest(task)).collect(),
            credits: credits.iter().map(|credits| Ledger::new(job, credits, &order)).collect(),
            all: if n == 128 { u128::MAX } else { (1 << n) - 1 },
            reads: before,
            memo: Memo::default(),
            running: Vec::new(),
            start: vec![0; n],
            spread: vec![false; n],
            target: 0,
            best: None,
            n_nodes: 0,
            budget: 0,
            next_question: 0,
            cores: job.all(),
            order,
        }
    }

    /// Searches every schedule within the target; `false` if it was stopped.
    fn run(&mut self) -> Continue {
        self.running.clear();
        self.memo.clear();
        let root = Moment {
            now: 0,
            started: 0,
            finished: 0,
            free: self.cores,
            delayed: [0; 2],
            first: 0,
            last: 0,
        };
        let ready = self.ready(&root);
        self.decide(root, ready)
    }

    /// Tasks that have not started and wait for nobody.
    fn ready(&self, moment: &Moment) -> u128 {
        let waiting = bits(self.all & !moment.started);
        let free = waiting.filter(|&task| self.reads[task] & !moment.finished == 0);
        free.fold(0, |set, task| set | 1 << task)
    }

    /// Decides the tasks of `open` one by one, most urgent first, then lets time move on.
    fn decide(&mut self, moment: Moment, mut open: u128) -> Continue {
        while open != 0 {
            let task = open.trailing_zeros() as usize;
            open &= open - 1;
            if self.twins[task] & !moment.started != 0 {
                continue;
            }
            for spread in self.preference(task) {
                if let Some(next) = self.started(&moment, task, spread) {
                    let goes_on = self.decide(next, open);
                    self.running.truncate(moment.last);
                    if !goes_on {
                        return false;
                    }
                }
            }
        }
        self.advance(&moment)
    }

    /// Spread first where spreading earns as much as a tick can.
    fn preference(&self, task: usize) -> [bool; 2] {
        let worthwhile = self.modes[task][1].is_some_and(|mode| {
            self.credits
                .first()
                .is_some_and(|ledger| ledger.credit[task] / PARTS >= mode.ticks - mode.ticks / 1024)
        });
        [worthwhile, !worthwhile]
    }

    /// The moment after `task` has started, unless it cannot or leads nowhere.
    fn started(&mut self, moment: &Moment, task: usize, spread: bool) -> Option<Moment> {
        let mode = self.modes[task][usize::from(spread)]?;
        let delayed = moment.delayed[usize::from(spread)] >> task & 1 == 1;
        if delayed || !mode.held.fits(moment.free) {
            return None;
        }
        let end = moment.now + mode.ticks;
        if end + self.after[task] > self.target {
            return None;
        }
        self.n_nodes += 1;
        self.start[task] = moment.now;
        self.spread[task] = spread;
        let first = self.running.len();
        self.running.extend_from_within(moment.first..moment.last);
        self.running.push(Running { task: u8::try_from(task).expect("at most 128"), spread, end });
        let started = moment.started | 1 << task;
        let last = self.running.len();
        if started == self.all {
            self.record(first);
            self.running.truncate(moment.last);
            return None;
        }
        if self.memo.knows_better(started, moment.now, &self.running[first..last]) {
            self.running.truncate(moment.last);
            return None;
        }
        let free = moment.free.minus(mode.held);
        Some(Moment { started, free, first, last, ..*moment })
    }

    /// All have started: keeps the schedule and asks for a better one from now on.
    fn record(&mut self, first: usize) {
        let ends = self.running[first..].iter().map(|run| run.end);
        let makespan = ends.max().expect("one has just started");
        if makespan <= self.target {
            let (start, spread) = (self.start.clone(), self.spread.clone());
            self.best = Some(Timetable { start, spread, makespan });
            self.target = makespan - 1;
        }
    }

    fn is_over(&mut self) -> bool {
        if self.n_nodes >= self.next_question {
            self.next_question = self.n_nodes + 1000;
            if self.limits.stop.is_some_and(|stop| stop()) {
                self.budget = 0;
            }
        }
        self.n_nodes >= self.budget
    }

    /// Moves on to the next end of a task.
    fn advance(&mut self, moment: &Moment) -> Continue {
        if self.is_over() {
            return false;
        }
        let runs = &self.running[moment.first..moment.last];
        let Some(now) = runs.iter().map(|run| run.end).min() else { return true };
        let Some(delayed) = self.delayed(moment, now) else { return true };
        let mut next = Moment { now, delayed, first: self.running.len(), ..*moment };
        for at in moment.first..moment.last {
            let run = self.running[at];
            if run.end == now {
                next.finished |= 1 << run.task;
                let mode = self.modes[run.task as usize][usize::from(run.spread)];
                next.free = next.free.plus(mode.expect("it runs in this mode").held);
            } else {
                self.running.push(run);
            }
        }
        next.last = self.running.len();
        let ready = self.ready(&next);
        let goes_on =
            if self.exceeds_target(&next, ready) { true } else { self.decide(next, ready) };
        self.running.truncate(moment.last);
        goes_on
    }

    /// Which ready tasks are left although they fit; `None` where one of them would have ended by
    /// `next` in cores that nobody uses until then.
    fn delayed(&self, moment: &Moment, next: u64) -> Option<[u128; 2]> {
        let mut delayed = [0; 2];
        for task in bits(self.ready(moment)) {
            for (mode, delayed) in self.modes[task].iter().zip(&mut delayed) {
                if let Some(mode) = mode.filter(|mode| mode.held.fits(moment.free)) {
                    if moment.now + mode.ticks <= next {
                        return None;
                    }
                    *delayed |= 1 << task;
                }
            }
        }
        Some(delayed)
    }

    fn exceeds_target(&self, moment: &Moment, ready: u128) -> bool {
        let left = self.target.saturating_sub(moment.now);
        if moment.now > self.target || bits(ready).any(|task| self.tail[task] > left) {
            return true;
        }
        let runs = &self.running[moment.first..moment.last];
        self.credits
            .iter()
            .any(|ledger| ledger.left(self.all & !moment.started, moment.now, runs) > left)
    }

    fn in_block_order(&self, found: &Timetable) -> Timetable {
        let mut table = found.clone();
        for (rank, &task) in self.order.iter().enumerate() {
            table.start[task] = found.start[rank];
            table.spread[task] = found.spread[rank];
        }
        table
    }
}

impl Ledger {
    fn new(job: &Job, credits: &Credits, order: &[usize]) -> Self {
        let rate = |credit: u64, ticks: u64| {
            let rate = u128::from(credit) * u128::from(ONE / PARTS) / u128::from(ticks);
            u64::try_from(rate).expect("a credit is at most the time in which it is earned")
        };
        let rates = |&task: &usize| {
            let credit = credits.0[task];
            [rate(credit, job.alone[task]), rate(credit, job.fastest(task))]
        };
        Self {
            credit: order.iter().map(|&task| credits.0[task]).collect(),
            rate: order.iter().map(rates).collect(),
            total: credits.0.iter().sum(),
        }
    }

    /// Ticks until all credit that is left is earned.
    fn left(&self, waiting: u128, now: u64, runs: &[Running]) -> u64 {
        let waiting: u64 = bits(waiting).map(|task| self.credit[task]).sum();
        let running = runs.iter().map(|run| {
            let rate = self.rate[run.task as usize][usize::from(run.spread)];
            let parts = u128::from(rate) * u128::from(run.end - now) / u128::from(ONE / PARTS);
            u64::try_from(parts).expect("no more than the task's credit")
        });
        (waiting + running.sum::<u64>()).min(self.total).div_ceil(PARTS)
    }
}
