//! What a schedule of one layer's operators on one accelerator is.
//!
//! Times are whole ticks; what a tick is, the owner knows (a picosecond for models, the scaled
//! unit of the file for a user's own graph).

use serde::Deserialize;
use serde::Serialize;

use crate::graph::Dag;
use crate::graph::NodeId;
use crate::model::op::CoreKind;
use crate::units::Bandwidth;
use crate::units::Bytes;

/// What a spread operator leaves to others while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Nothing: no operator runs beside it, collectives apart (the published rule).
    Alone,
    /// The kinds of core that it does not use.
    OwnKind,
}

/// How many cores of each kind there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cores {
    /// Tensor cores.
    pub tensor: u32,
    /// Vector cores.
    pub vector: u32,
}

/// One operator as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Which cores it holds while it runs.
    pub core: CoreKind,
    /// Ticks on one core of each kind that it needs.
    pub alone: u64,
    /// Ticks spread over all cores of each kind that it needs.
    pub spread: u64,
}

/// The question: tasks, who reads from whom, the cores, and the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The tasks; an edge leads from what is read to its reader.
    pub tasks: Dag<Task>,
    /// The cores.
    pub cores: Cores,
    /// What a spread task leaves to others.
    pub rule: Rule,
}

/// When and where one task runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The tick at which it starts.
    pub start: u64,
    /// Whether it runs spread over all cores of its kinds; then no core is named.
    pub spread: bool,
    /// The tensor core that it holds, counted from 0.
    pub tensor: Option<u32>,
    /// The vector core that it holds, counted from 0.
    pub vector: Option<u32>,
}

/// When and where every task runs, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// One run per task.
    pub runs: Vec<Run>,
}

/// What all tasks of a layer carry through one memory that they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of each task, on one core and spread.
    pub bytes: Vec<[Bytes; 2]>,
    /// What the memory moves.
    pub bandwidth: Bandwidth,
}

/// Why a schedule is believed to be the fastest, or how far it may be from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What the claim rests on.
    pub kind: ProofKind,
    /// No schedule ends before this tick.
    pub lower_bound: u64,
}

/// What a claim about a schedule rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProofKind {
    /// The schedule meets a lower bound.
    Bound,
    /// Every other schedule was searched or excluded.
    Search,
    /// An integer-programming solver answered "optimal" at gap 0.
    Ilp,
    /// Nothing: the bound is not met, and the search did not complete.
    None,
}

impl Task {
    /// Ticks that it runs in a mode.
    pub fn ticks(&self, spread: bool) -> u64 {
        if spread { self.spread } else { self.alone }
    }

    /// Ticks in its faster mode.
    pub fn fastest(&self) -> u64 {
        self.alone.min(self.spread)
    }
}

impl Schedule {
    /// When a task ends.
    pub fn end(&self, problem: &Problem, id: NodeId) -> u64 {
        let run = self.runs[id.index()];
        run.start + problem.tasks.node(id).ticks(run.spread)
    }

    /// When the last task ends.
    pub fn makespan(&self, problem: &Problem) -> u64 {
        problem.tasks.ids().map(|id| self.end(problem, id)).max().unwrap_or(0)
    }
}

impl Proof {
    /// How far a schedule may be from the fastest, relative to itself: 0 where it is proved.
    pub fn gap(&self, makespan: u64) -> f64 {
        if makespan == 0 { 0.0 } else { (makespan - self.lower_bound) as f64 / makespan as f64 }
    }
}

impl Rule {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::OwnKind, Self::Alone];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::OwnKind => "own-kind",
        }
    }
}

impl ProofKind {
    /// The name that reports print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Search => "search",
            Self::Ilp => "ilp",
            Self::None => "none",
        }
    }
}
