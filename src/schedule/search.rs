//! Exact search of one block: all partial schedules worth keeping, one task more at a time.
//!
//! A schedule is told by the order in which its tasks start and the mode of each: every task starts
//! as soon as it can after the one before. The search goes through these orders breadth first. Front
//! *k* holds partial schedules in which *k* tasks have started; each is continued by every task and
//! mode that can come next, and of the results the next front keeps what is not cut off:
//!
//! - **Bounds.** The time plus the credit still to be earned ([`super::bounds`]), or the longest way
//!   from here, exceeds the target: one tick less than the best schedule known.
//! - **Better states.** Another has started the same tasks, is no later, and each of its tasks that
//!   still run ends no later ([`super::front`]): it can do whatever this one does next.
//! - **No idle waiting.** Time passes although a ready task could run and end in cores that stay
//!   free meanwhile; or a task starts later than it could with no other started in between.
//! - **Twins.** Of two tasks with the same times and cores, the one that waits for no more and is
//!   waited for by no less goes first.
//!
//! Why nothing is lost: suppose that a kept state can be completed within the target, and take the
//! completion whose starts are the earliest in sum, of several one with its twins in order (exchanging
//! them does not change the sum). It waits idly nowhere, so its next state is among the results;
//! there it is kept, or another that can be completed as fast is. So if all fronts are kept whole and
//! the last one is empty, no schedule is within the target.
//!
//! Fronts can grow large, so a search keeps only the most promising states, first a few, then more
//! and more. Narrow searches find good schedules, which cut the wider ones down; and whenever states
//! are left out, their least bound is a lower bound for all schedules.

use super::Limits;
use super::bounds::Credits;
use super::bounds::ONE;
use super::bounds::PARTS;
use super::front::Front;
use super::front::LEDGERS;
use super::front::Running;
use super::front::State;
use super::front::Step;
use super::job::Amount;
use super::job::Job;
use super::job::Timetable;
use super::prepared::Sets;
use super::prepared::bits;

/// How many states of each front the first search keeps; each later one keeps [`WIDER`] times more.
const NARROWEST: usize = 8;

/// See [`NARROWEST`].
const WIDER: usize = 4;

/// What came of a search.
pub(super) struct Found {
    /// A faster schedule than the one given, if there is one.
    pub better: Option<Timetable>,
    /// No schedule ends before.
    pub lower_bound: u64,
    /// Partial schedules that were looked at.
    pub n_nodes: u64,
}

/// Searches for a schedule that ends before `upper`, knowing that none ends before `lower`.
pub(super) fn search(
    job: &Job,
    sets: &Sets,
    credits: &[Credits; LEDGERS],
    lower: u64,
    upper: u64,
    limits: &Limits,
) -> Found {
    let board = Board::new(job, sets, credits);
    let mut search = Search {
        board: &board,
        limits,
        lower,
        upper,
        best: None,
        n_nodes: 0,
        next_question: 0,
        stopped: false,
    };
    let mut width = NARROWEST;
    while search.lower < search.upper && !search.stopped {
        let before = search.n_nodes;
        let least_left_out = search.run(width);
        if search.stopped {
            break;
        }
        search.lower = search.lower.max(least_left_out.unwrap_or(u64::MAX).min(search.upper));
        // A search that cannot end within the limit finds nothing: rather one that is less wide.
        let cost_per_state = (search.n_nodes - before) / width as u64 + 1;
        let affordable = limits.nodes.saturating_sub(search.n_nodes) / cost_per_state;
        let wider = (width * WIDER).min(usize::try_from(affordable).unwrap_or(usize::MAX));
        if wider <= width {
            break;
        }
        width = wider;
    }
    let better = search.best.map(|table| board.in_block_order(&table));
    Found { better, lower_bound: search.lower, n_nodes: search.n_nodes }
}

/// The block as a search sees it; tasks are numbered by rank, the longest way to the end first.
struct Board {
    /// The block's task of each rank.
    order: Vec<usize>,
    modes: Vec<[Option<Mode>; 2]>,
    /// All tasks before each task, and all after it.
    before: Vec<u128>,
    behind: Vec<u128>,
    /// The longest way from a task's start, and from its end, to the end of the block.
    tail: Vec<u64>,
    after: Vec<u64>,
    /// Tasks that go before each task wherever both are ready.
    twins: Vec<u128>,
    ledgers: [Ledger; LEDGERS],
    all: u128,
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

/// A search on the way.
struct Search<'a> {
    board: &'a Board,
    limits: &'a Limits<'a>,
    lower: u64,
    upper: u64,
    best: Option<Timetable>,
    n_nodes: u64,
    /// When next to ask whether to stop.
    next_question: u64,
    stopped: bool,
}

/// A state that is being changed, with its runs.
#[derive(Clone)]
struct Draft {
    state: State,
    runs: Vec<Running>,
}

impl Search<'_> {
    /// Goes through all fronts, keeping so many states of each; answers the least bound of those
    /// that were left out, if any were.
    fn run(&mut self, width: usize) -> Option<u64> {
        let root = self.board.root();
        let (mut front, mut next) = (Front::default(), Front::default());
        front.offer(&root, &[]);
        let mut steps: Vec<Step> = Vec::new();
        let mut least_left_out: Option<u64> = None;
        let mut draft = Draft { state: root, runs: Vec::new() };
        let mut child = draft.clone();
        for started in 0..self.board.order.len() {
            let (places, left_out) = front.best(width);
            least_left_out = least_left_out.into_iter().chain(left_out).min();
            for place in places {
                let (state, runs) = front.get(place);
                if state.bound >= self.upper {
                    break;
                }
                draft.state = *state;
                draft.runs.clear();
                draft.runs.extend_from_slice(runs);
                if started > 0 {
                    let step = u32::try_from(steps.len()).expect("fewer than the node limit");
                    steps.push(draft.state.step);
                    draft.state.step.before = Some(step);
                }
                self.expand(&mut draft, &mut child, &mut next, &steps);
                if self.is_over() {
                    return None;
                }
            }
            std::mem::swap(&mut front, &mut next);
            next.clear();
        }
        least_left_out
    }

    fn is_over(&mut self) -> bool {
        if self.n_nodes >= self.next_question {
            self.next_question = self.n_nodes + 1000;
            self.stopped |= self.limits.stopped();
        }
        self.stopped |= self.n_nodes >= self.limits.nodes;
        self.stopped
    }

    /// Offers the next front all that can come next.
    fn expand(&mut self, draft: &mut Draft, child: &mut Draft, next: &mut Front, steps: &[Step]) {
        let board = self.board;
        // Who could start before could start then: later is no better.
        let mut tried = [0_u128; 2];
        loop {
            for task in bits(draft.state.ready) {
                if board.twins[task] & !draft.state.started != 0 {
                    continue;
                }
                for spread in [false, true] {
                    let tried = &mut tried[usize::from(spread)];
                    let Some(mode) = board.modes[task][usize::from(spread)] else { continue };
                    if *tried >> task & 1 == 1 || !mode.held.fits(draft.state.free) {
                        continue;
                    }
                    *tried |= 1 << task;
                    self.start(draft, task, spread, child, next, steps);
                }
            }
            let ends = draft.runs.iter().map(|run| run.end);
            let Some(end) = ends.min() else { return };
            if board.could_end_by(&draft.state, end) {
                return;
            }
            board.advance(draft, end);
            if board.bound(draft) >= self.upper {
                return;
            }
        }
    }

    /// Offers the state in which one more task has started.
    fn start(
        &mut self,
        from: &Draft,
        task: usize,
        spread: bool,
        child: &mut Draft,
        next: &mut Front,
        steps: &[Step],
    ) {
        let board = self.board;
        let mode = board.modes[task][usize::from(spread)].expect("it was found to fit");
        let start = from.state.now;
        let end = start + mode.ticks;
        let way = end + board.after[task];
        if way >= self.upper {
            return;
        }
        self.n_nodes += 1;
        child.state = from.state;
        child.runs.clear();
        child.runs.extend_from_slice(&from.runs);
        let number = u8::try_from(task).expect("at most 128");
        child.runs.push(Running { task: number, spread, end });
        let state = &mut child.state;
        state.step = Step { before: from.state.step.before, task: number, spread, start };
        state.started |= 1 << task;
        state.ready &= !(1 << task);
        state.free = state.free.minus(mode.held);
        for (waiting, ledger) in state.waiting.iter_mut().zip(&board.ledgers) {
            *waiting -= ledger.credit[task];
        }
        if state.started == board.all {
            self.record(child, steps);
            return;
        }
        board.settle(child);
        child.state.bound = board.bound(child).max(way).max(from.state.bound);
        child.state.promise = board.earned_by(child, 0);
        if child.state.bound < self.upper {
            next.offer(&child.state, &child.runs);
        }
    }

    /// Keeps a whole schedule if it is faster than the best known.
    fn record(&mut self, whole: &Draft, steps: &[Step]) {
        let makespan = whole.runs.iter().map(|run| run.end).max().unwrap_or(0);
        if makespan >= self.upper {
            return;
        }
        let n = self.board.order.len();
        let mut table = Timetable { start: vec![0; n], spread: vec![false; n], makespan };
        let mut next = Some(whole.state.step);
        while let Some(step) = next {
            table.start[usize::from(step.task)] = step.start;
            table.spread[usize::from(step.task)] = step.spread;
            next = step.before.map(|before| steps[before as usize]);
        }
        self.upper = makespan;
        self.best = Some(table);
    }
}

impl Board {
    fn new(job: &Job, sets: &Sets, credits: &[Credits; LEDGERS]) -> Self {
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
            modes: order.iter().map(|&task| mode(task)).collect(),
            twins: twins.collect(),
            tail: order.iter().map(|&task| tails[task]).collect(),
            after: order.iter().map(|&task| tails[task] - job.fastest(task)).collect(),
            ledgers: credits.each_ref().map(|credits| Ledger::new(job, credits, &order)),
            all: if n == 128 { u128::MAX } else { (1 << n) - 1 },
            cores: job.all(),
            before,
            behind,
            order,
        }
    }

    fn root(&self) -> State {
        let ready = (0..self.order.len()).filter(|&task| self.before[task] == 0);
        State {
            now: 0,
            started: 0,
            finished: 0,
            ready: ready.fold(0, |set, task| set | 1 << task),
            free: self.cores,
            waiting: self.ledgers.each_ref().map(|ledger| ledger.total),
            bound: 0,
            promise: 0,
            step: Step::default(),
        }
    }

    /// Moves on to the first end of a run.
    fn advance(&self, draft: &mut Draft, end: u64) {
        let state = &mut draft.state;
        state.now = end;
        let mut woken = 0;
        draft.runs.retain(|run| {
            let ended = run.end == end;
            if ended {
                let task = usize::from(run.task);
                let mode = self.modes[task][usize::from(run.spread)];
                state.free = state.free.plus(mode.expect("it runs in this mode").held);
                state.finished |= 1 << task;
                woken |= self.behind[task];
            }
            !ended
        });
        let wakes = |&task: &usize| self.before[task] & !state.finished == 0;
        let ready = bits(woken & !state.started).filter(wakes);
        state.ready |= ready.fold(0, |set, task| set | 1 << task);
    }

    /// Moves on to the next moment at which a task can start.
    fn settle(&self, draft: &mut Draft) {
        let fits = |state: &State, task: usize| {
            self.modes[task].iter().flatten().any(|mode| mode.held.fits(state.free))
        };
        while !bits(draft.state.ready).any(|task| fits(&draft.state, task)) {
            let Some(end) = draft.runs.iter().map(|run| run.end).min() else { return };
            self.advance(draft, end);
        }
    }

    /// Whether a ready task could run until `end` at the latest in cores that are free.
    fn could_end_by(&self, state: &State, end: u64) -> bool {
        let in_time = |mode: &Mode| state.now + mode.ticks <= end && mode.held.fits(state.free);
        bits(state.ready).any(|task| self.modes[task].iter().flatten().any(in_time))
    }

    /// No schedule that begins like this ends before.
    fn bound(&self, draft: &Draft) -> u64 {
        let state = &draft.state;
        // Ranks go by the longest way.
        let way = match state.ready {
            0 => 0,
            ready => self.tail[ready.trailing_zeros() as usize],
        };
        let earned = (0..LEDGERS).map(|ledger| self.earned_by(draft, ledger));
        earned.fold(state.now + way, u64::max)
    }

    /// When all credit that is left is earned at the earliest.
    fn earned_by(&self, draft: &Draft, ledger: usize) -> u64 {
        let Draft { state, runs } = draft;
        let Ledger { rate, total, .. } = &self.ledgers[ledger];
        let running = runs.iter().map(|run| {
            let rate = rate[usize::from(run.task)][usize::from(run.spread)];
            let parts =
                u128::from(rate) * u128::from(run.end - state.now) / u128::from(ONE / PARTS);
            u64::try_from(parts).expect("no more than the task's credit")
        });
        let left = (state.waiting[ledger] + running.sum::<u64>()).min(*total);
        state.now + left.div_ceil(PARTS)
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
}
