//! From blocks to layers: solves the parts of a graph and puts them one after another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Limits;
use super::Prepared;
use super::exact;
use super::exact::Answer;
use super::ilp;
use super::job::Job;
use super::prepared::Part;
use crate::graph::Dag;
use crate::model::op::CoreKind;
use crate::plan::check;
use crate::plan::schedule::Cores;
use crate::plan::schedule::Problem;
use crate::plan::schedule::Proof;
use crate::plan::schedule::ProofKind;
use crate::plan::schedule::Rule;
use crate::plan::schedule::Run;
use crate::plan::schedule::Schedule;
use crate::plan::schedule::Task;

/// How fast a graph can run, without the schedule itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// When the last task ends.
    pub makespan: u64,
    /// Why no schedule is faster, or by how much one may be.
    pub proof: Proof,
    /// Partial schedules that searches looked at.
    pub n_nodes: u64,
}

/// A schedule with its proof; the checker has accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    /// When and where each task runs.
    pub schedule: Schedule,
    /// When the last task ends.
    pub makespan: u64,
    /// Why no schedule is faster, or by how much one may be.
    pub proof: Proof,
    /// Partial schedules that searches looked at.
    pub n_nodes: u64,
}

/// A way to schedule the blocks of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver {
    /// Bounds, lists, and search: exact unless a limit is reached.
    Exact,
    /// List schedules, with the bounds that they are judged by.
    List,
    /// The published integer program.
    Ilp {
        /// When the program of a block is given up; none is begun once the limits say stop.
        seconds: f64,
    },
}

/// What schedules one block.
type BlockSolver<'a> = dyn Fn(&Job) -> Answer + 'a;

/// Schedules a problem exactly, or as well as the limits allow.
pub fn solve(problem: &Problem, limits: &Limits) -> Solved {
    solve_with(problem, Solver::Exact, limits)
}

/// Schedules a problem by the solver of one's choice.
pub fn solve_with(problem: &Problem, solver: Solver, limits: &Limits) -> Solved {
    match solver {
        Solver::Exact => solve_by(problem, &|job| exact::solve(job, limits)),
        Solver::List => solve_by(problem, &exact::listed),
        Solver::Ilp { seconds } => solve_by(problem, &|job| ilp::solve(job, seconds, limits)),
    }
}

/// Schedules a problem, each block by `solver`.
fn solve_by(problem: &Problem, solver: &BlockSolver) -> Solved {
    let tasks = problem.tasks.nodes();
    let prepared = Prepared::new(problem.tasks.map(|task| task.core));
    let prepared = if prepared.suits(tasks) { prepared } else { prepared.with_times(tasks) };
    let mut table = Table { runs: vec![Run::default(); problem.tasks.len()] };
    let timed =
        prepared.walk(tasks, problem.cores, problem.rule, solver, &mut |part, start, answer| {
            table.enter(tasks, part, start, answer);
        });
    table.place_costless(&problem.tasks, &prepared.costless);
    table.name_cores(problem);
    let schedule = Schedule { runs: table.runs };
    let makespan = check::schedule::check(problem, &schedule)
        .unwrap_or_else(|violation| panic!("a solver's schedule obeys the rules: {violation}"));
    assert_eq!(makespan, timed.makespan, "a schedule ends when its solver says");
    Solved { schedule, makespan, proof: timed.proof, n_nodes: timed.n_nodes }
}

impl Prepared {
    /// How fast the graph runs with these times, on these cores, under this rule.
    ///
    /// `tasks` are those of the graph in the order of its ids.
    pub fn time(&self, tasks: &[Task], cores: Cores, rule: Rule, limits: &Limits) -> Timed {
        if !self.suits(tasks) {
            return self.with_times(tasks).time(tasks, cores, rule, limits);
        }
        self.walk(tasks, cores, rule, &|job| exact::solve(job, limits), &mut |_, _, _| ())
    }

    /// The same, and for each task whether it is spread in a schedule that is as fast.
    pub fn modes(
        &self,
        tasks: &[Task],
        cores: Cores,
        rule: Rule,
        limits: &Limits,
    ) -> (Timed, Vec<bool>) {
        if !self.suits(tasks) {
            return self.with_times(tasks).modes(tasks, cores, rule, limits);
        }
        let mut spread: Vec<bool> = tasks.iter().map(|&task| gains(task)).collect();
        let solver = |job: &Job| exact::solve(job, limits);
        let timed = self.walk(tasks, cores, rule, &solver, &mut |part, _, answer| {
            let (Part::Block(block), Some(answer)) = (part, answer) else { return };
            for (i, &task) in block.tasks.iter().enumerate() {
                if block.core[i] != CoreKind::Network {
                    spread[task as usize] = answer.table.spread[i];
                }
            }
        });
        (timed, spread)
    }

    /// Ticks that no schedule beats, without a linear program or a schedule.
    pub fn bounded(&self, tasks: &[Task], cores: Cores, rule: Rule) -> u64 {
        if !self.suits(tasks) {
            return self.with_times(tasks).bounded(tasks, cores, rule);
        }
        let least = |part: &Part| match part {
            Part::Single(task) => tasks[*task as usize].fastest(),
            Part::Block(block) => exact::bounded(&Job::new(block, tasks, cores, rule)),
        };
        self.parts.iter().map(least).sum()
    }

    /// Solves part after part, and shows each with its start and, for a block, its answer.
    fn walk(
        &self,
        tasks: &[Task],
        cores: Cores,
        rule: Rule,
        solver: &BlockSolver,
        visit: &mut dyn FnMut(&Part, u64, Option<&Answer>),
    ) -> Timed {
        let proof = Proof { kind: ProofKind::Bound, lower_bound: 0 };
        let mut timed = Timed { makespan: 0, proof, n_nodes: 0 };
        for part in &self.parts {
            let start = timed.makespan;
            match part {
                Part::Single(task) => {
                    visit(part, start, None);
                    let ticks = tasks[*task as usize].fastest();
                    timed.makespan += ticks;
                    timed.proof.lower_bound += ticks;
                }
                Part::Block(block) => {
                    let answer = solver(&Job::new(block, tasks, cores, rule));
                    visit(part, start, Some(&answer));
                    timed.makespan += answer.table.makespan;
                    timed.proof.lower_bound += answer.lower_bound;
                    timed.proof.kind = timed.proof.kind.max(answer.kind);
                    timed.n_nodes += answer.n_nodes;
                }
            }
        }
        timed
    }
}

/// A schedule that is being put together.
struct Table {
    runs: Vec<Run>,
}

impl Table {
    fn enter(&mut self, tasks: &[Task], part: &Part, start: u64, answer: Option<&Answer>) {
        match (part, answer) {
            (Part::Block(block), Some(answer)) => {
                let table = &answer.table;
                for (i, &task) in block.tasks.iter().enumerate() {
                    let on_network = block.core[i] == CoreKind::Network;
                    let spread =
                        if on_network { gains(tasks[task as usize]) } else { table.spread[i] };
                    self.runs[task as usize] =
                        Run { start: start + table.start[i], spread, ..Run::default() };
                }
            }
            (Part::Block(_), None) => unreachable!("every block is answered"),
            (Part::Single(task), _) => {
                let spread = gains(tasks[*task as usize]);
                self.runs[*task as usize] = Run { start, spread, ..Run::default() };
            }
        }
    }

    /// Tasks that cost nothing run as soon as all that they read is there.
    fn place_costless(&mut self, tasks: &Dag<Task>, costless: &[u32]) {
        let ids: Vec<_> = tasks.ids().collect();
        for &task in costless {
            let id = ids[task as usize];
            let end = |run: Run, task: &Task| run.start + task.ticks(run.spread);
            let reads = tasks.predecessors(id).iter();
            let start = reads.map(|&read| end(self.runs[read.index()], tasks.node(read))).max();
            let (start, spread) = (start.unwrap_or(0), gains(*tasks.node(id)));
            self.runs[task as usize] = Run { start, spread, ..Run::default() };
        }
    }

    /// Gives each task that is not spread the lowest free core of each kind that it needs.
    fn name_cores(&mut self, problem: &Problem) {
        let tasks = problem.tasks.nodes();
        let mut by_start: Vec<usize> =
            (0..self.runs.len()).filter(|&i| !self.runs[i].spread).collect();
        by_start.sort_by_key(|&i| (self.runs[i].start, i));
        let (mut tensor, mut vector) = (Pool::default(), Pool::default());
        for i in by_start {
            let (start, end) = (self.runs[i].start, self.runs[i].start + tasks[i].alone);
            if matches!(tasks[i].core, CoreKind::Tensor | CoreKind::Both) {
                self.runs[i].tensor = Some(tensor.take(start, end));
            }
            if matches!(tasks[i].core, CoreKind::Vector | CoreKind::Both) {
                self.runs[i].vector = Some(vector.take(start, end));
            }
        }
    }
}

/// Whether a task is faster when it is spread.
fn gains(task: Task) -> bool {
    task.spread < task.alone && task.core != CoreKind::None
}

/// Cores of one kind: those that are free, and those that are taken until some tick.
#[derive(Default)]
struct Pool {
    /// Cores from here on have never been used.
    fresh: u32,
    free: BinaryHeap<Reverse<u32>>,
    taken: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Pool {
    /// The lowest core that is free from `start` on; calls come by `start`.
    fn take(&mut self, start: u64, end: u64) -> u32 {
        while let Some(Reverse((until, core))) = self.taken.peek().copied()
            && until <= start
        {
            self.taken.pop();
            self.free.push(Reverse(core));
        }
        // A task without duration holds its core for no time: any will do.
        if start == end {
            return 0;
        }
        let core = self.free.pop().map_or(self.fresh, |Reverse(core)| core);
        if core == self.fresh {
            self.fresh += 1;
        }
        self.taken.push(Reverse((end, core)));
        core
    }
}
