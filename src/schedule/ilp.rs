//! The published integer program: a second opinion on schedules, on demand.
//!
//! Each block is one program. It is solved first without the limits on cores, and again with them
//! only where the answer uses too many. The solver works in floating point, so of its answer only
//! the decisions are read — who is spread, who goes before whom — and the times are worked out
//! again in integers. "Optimal" is then the solver's word, to its tolerance (about 1e-6).
//!
//! Beyond the published rules only one is added, that no core has more time than the makespan. Left
//! out are the orders of pairs that never exclude each other, and transitivity, which the start
//! times imply.

use good_lp::Expression;
use good_lp::ProblemVariables;
use good_lp::Solution;
use good_lp::SolverModel;
use good_lp::Variable;
use good_lp::constraint;
use good_lp::solvers::SolutionStatus;
use good_lp::solvers::WithTimeLimit;
use good_lp::variable;

use super::Limits;
use super::exact::Answer;
use super::exact::listed;
use super::job::Job;
use super::job::Timetable;
use super::prepared::Sets;
use crate::model::op::CoreKind;
use crate::plan::schedule::ProofKind;

/// Times are scaled so that the horizon is this: big numbers beside 0 and 1 cost digits.
const HORIZON: f64 = 1000.0;

/// Schedules a block by integer program within a time limit, or by list where that fails.
pub(super) fn solve(job: &Job, seconds: f64, limits: &Limits) -> Answer {
    let first = listed(job);
    let Some(sets) = job.block.sets.as_ref() else { return first };
    let attempt = |cores: CoreLimits| {
        let program = || Program::new(job, sets, first.table.makespan, cores);
        (!limits.stopped()).then(program)?.solve(job, sets, seconds)
    };
    let mut found = attempt(CoreLimits::Ignored);
    if found.as_ref().is_some_and(|(table, _)| !enough_cores(job, table)) {
        found = attempt(CoreLimits::Kept);
    }
    match found.filter(|(table, _)| enough_cores(job, table)) {
        // A list schedule that is faster than an "optimal" one would prove the solver wrong.
        Some((table, optimal)) if table.makespan <= first.table.makespan => {
            let lower_bound = if optimal { table.makespan } else { first.lower_bound };
            let kind = match (optimal, table.makespan == lower_bound) {
                (true, _) => ProofKind::Ilp,
                (false, true) => ProofKind::Bound,
                (false, false) => ProofKind::None,
            };
            Answer { table, lower_bound, kind, n_nodes: 0 }
        }
        _ => first,
    }
}

/// Whether the program knows how many cores there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CoreLimits {
    Ignored,
    Kept,
}

/// The unknowns of a block's program, and its rules.
struct Program {
    variables: ProblemVariables,
    makespan: Variable,
    start: Vec<Variable>,
    /// Whether a task is spread, where that is faster.
    spread: Vec<Option<Variable>>,
    /// `(i, j, x)`: x says that i ends before j starts.
    before: Vec<(usize, usize, Variable)>,
    /// For each kind of core, for each task, whether it runs on each core.
    on_core: Vec<(CoreKind, Vec<Vec<Variable>>)>,
    rules: Vec<good_lp::Constraint>,
    scale: f64,
}

impl Program {
    /// `horizon` is a time by which some schedule is done.
    fn new(job: &Job, sets: &Sets, horizon: u64, cores: CoreLimits) -> Self {
        let mut variables = ProblemVariables::new();
        let time = || variable().min(0.0).max(HORIZON);
        let makespan = variables.add(time());
        let start = (0..job.len()).map(|_| variables.add(time())).collect();
        let spread =
            job.spread.iter().map(|spread| spread.map(|_| variables.add(variable().binary())));
        let spread = spread.collect();
        let scale = HORIZON / horizon.max(1) as f64;
        let (before, on_core, rules) = (Vec::new(), Vec::new(), Vec::new());
        let mut program =
            Self { variables, makespan, start, spread, before, on_core, rules, scale };
        if cores == CoreLimits::Kept {
            program.give_cores(job);
        }
        program.order_tasks(job);
        program.share_cores(job);
        for i in 0..job.len() {
            for j in i + 1..job.len() {
                let comparable = (sets.before[j] | sets.after[j]) >> i & 1 == 1;
                if !comparable && program.exclude_each_other(job, i, j) {
                    program.decide_pair(job, i, j);
                }
            }
        }
        program
    }

    /// When a task ends, as the unknowns say.
    fn end(&self, job: &Job, task: usize) -> Expression {
        let alone = job.alone[task] as f64 * self.scale;
        let end = self.start[task] + alone;
        match (self.spread[task], job.spread[task]) {
            (Some(spread), Some(ticks)) => end - spread * (alone - ticks as f64 * self.scale),
            _ => end,
        }
    }

    /// The layer is done when its last operator is, and an operator starts after those it reads
    /// from end.
    fn order_tasks(&mut self, job: &Job) {
        for task in 0..job.len() {
            let end = self.end(job, task);
            self.rules.push(constraint!(end.clone() <= self.makespan));
            for &next in &job.block.successors[task] {
                self.rules.push(constraint!(end.clone() <= self.start[next as usize]));
            }
        }
    }

    /// No core has more time than the makespan. Every schedule obeys this; saying it spares the
    /// solver most of its branches.
    fn share_cores(&mut self, job: &Job) {
        for (kind, n_cores) in
            [(CoreKind::Tensor, job.cores.tensor), (CoreKind::Vector, job.cores.vector)]
        {
            let mut work = Expression::from(0.0);
            for task in 0..job.len() {
                let part = if needs(job, task, kind) { 1.0 / f64::from(n_cores) } else { 0.0 };
                let alone = job.alone[task] as f64 * self.scale * part;
                work += alone;
                // A spread task takes all cores, under rule `alone` also those of other kinds.
                let held = job.held(task, true);
                let takes_all =
                    if kind == CoreKind::Tensor { held.tensor } else { held.vector } > 0;
                if let (Some(spread), Some(ticks), true) =
                    (self.spread[task], job.spread[task], takes_all)
                {
                    work += spread * (ticks as f64 * self.scale - alone);
                }
            }
            self.rules.push(constraint!(work <= self.makespan));
        }
    }

    /// Each task runs on one core of each kind that it needs, or is spread over all.
    fn give_cores(&mut self, job: &Job) {
        let kinds = [(CoreKind::Tensor, job.cores.tensor), (CoreKind::Vector, job.cores.vector)];
        for (kind, n_cores) in kinds {
            let mut cores = vec![Vec::new(); job.len()];
            let users: Vec<usize> = (0..job.len()).filter(|&task| needs(job, task, kind)).collect();
            if users.len() > n_cores as usize {
                for (at, &task) in users.iter().enumerate() {
                    // Cores are alike: the first task takes the first, the second one of two, …
                    let n_choices = (at + 1).min(n_cores as usize);
                    let on = self.variables.add_vector(variable().binary(), n_choices);
                    let sum: Expression = on.iter().sum::<Expression>()
                        + self.spread[task].map_or(Expression::from(0.0), Expression::from);
                    self.rules.push(constraint!(sum == 1.0));
                    cores[task] = on;
                }
            }
            self.on_core.push((kind, cores));
        }
    }

    /// Whether two tasks may ever be kept from running at one time.
    fn exclude_each_other(&self, job: &Job, i: usize, j: usize) -> bool {
        let meet = |a: bool, b: bool| {
            let sum = job.held(i, a).plus(job.held(j, b));
            !sum.fits(job.all())
        };
        let share_core =
            self.on_core.iter().any(|(_, cores)| !cores[i].is_empty() && !cores[j].is_empty());
        share_core
            || meet(false, false)
            || (self.spread[i].is_some() && meet(true, false))
            || (self.spread[j].is_some() && meet(false, true))
    }

    fn decide_pair(&mut self, job: &Job, i: usize, j: usize) {
        let [i_first, j_first] = [(); 2].map(|()| self.variables.add(variable().binary()));
        // If one goes before the other, then it ends before the other starts. Otherwise this says
        // nothing, because no operator ends after the horizon.
        for (x, early, late) in [(i_first, i, j), (j_first, j, i)] {
            let end = self.end(job, early);
            self.rules.push(constraint!(end - self.start[late] <= HORIZON * (1.0 - x)));
            self.before.push((early, late, x));
        }
        let apart = i_first + j_first;
        self.rules.push(constraint!(apart.clone() <= 1.0));
        // An operator that is spread over what another needs runs with no part of it beside it.
        for (task, other) in [(i, j), (j, i)] {
            if let Some(spread) = self.spread[task] {
                let sum = job.held(task, true).plus(job.held(other, false));
                if !sum.fits(job.all()) {
                    self.rules.push(constraint!(apart.clone() >= spread));
                }
            }
        }
        // There is one network.
        if job.block.core[i] == CoreKind::Network && job.block.core[j] == CoreKind::Network {
            self.rules.push(constraint!(apart.clone() >= 1.0));
        }
        // Two operators on the same core run one after the other.
        for (_, cores) in &self.on_core {
            for (&on_i, &on_j) in cores[i].iter().zip(&cores[j]) {
                self.rules.push(constraint!(apart.clone() >= on_i + on_j - 1.0));
            }
        }
    }

    /// The schedule that the solver's decisions make, and whether it calls them optimal.
    fn solve(self, job: &Job, sets: &Sets, seconds: f64) -> Option<(Timetable, bool)> {
        let Self { variables, makespan, spread, before, rules, .. } = self;
        let unsolved = variables.minimise(makespan);
        #[cfg(not(feature = "highs"))]
        let model = unsolved.using(good_lp::solvers::microlp::microlp);
        #[cfg(feature = "highs")]
        let model = {
            let model = unsolved.using(good_lp::solvers::highs::highs);
            good_lp::solvers::WithMipGap::with_mip_gap(model, 0.0).ok()?
        };
        let mut model = model.with_time_limit(seconds);
        for rule in rules {
            model = model.with(rule);
        }
        let solution = model.solve().ok()?;
        let is_true = |variable: Variable| solution.value(variable) > 0.5;
        let spread: Vec<bool> = spread.iter().map(|spread| spread.is_some_and(is_true)).collect();
        let mut after = sets.after.clone();
        for &(early, late, x) in &before {
            if is_true(x) {
                after[early] |= 1 << late;
            }
        }
        let table = earliest(job, spread, &after)?;
        Some((table, matches!(solution.status(), SolutionStatus::Optimal)))
    }
}

fn needs(job: &Job, task: usize, kind: CoreKind) -> bool {
    job.block.core[task] == kind || job.block.core[task] == CoreKind::Both
}

/// The earliest times at which every task starts after all that go before it have ended; `None`
/// where the order runs in a circle.
fn earliest(job: &Job, spread: Vec<bool>, after: &[u128]) -> Option<Timetable> {
    let n = job.len();
    let ticks: Vec<u64> = (0..n).map(|task| job.ticks(task, spread[task])).collect();
    let mut start = vec![0_u64; n];
    // Each round settles at least one more task, if there is no circle.
    for _ in 0..=n {
        let mut settled = true;
        for task in 0..n {
            let end = start[task] + ticks[task];
            for next in super::prepared::bits(after[task]) {
                if start[next] < end {
                    start[next] = end;
                    settled = false;
                }
            }
        }
        if settled {
            let makespan = (0..n).map(|task| start[task] + ticks[task]).max().unwrap_or(0);
            return Some(Timetable { start, spread, makespan });
        }
    }
    None
}

/// Whether the tasks that run at any one time fit the cores.
fn enough_cores(job: &Job, table: &Timetable) -> bool {
    let runs = |task: usize, moment: u64| {
        let start = table.start[task];
        (start..start + job.ticks(task, table.spread[task])).contains(&moment)
    };
    // It is enough to look where a task starts.
    table.start.iter().all(|&moment| {
        let running = (0..job.len()).filter(|&task| runs(task, moment));
        let mut free = Some(job.all());
        for task in running {
            let held = job.held(task, table.spread[task]);
            free = free.filter(|&free| held.fits(free)).map(|free| free.minus(held));
        }
        free.is_some()
    })
}
