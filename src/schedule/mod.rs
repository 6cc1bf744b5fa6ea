//! Finds the fastest order of one layer's operators on one accelerator.
//!
//! In: the operators and what each costs on one core or spread over all ([`Problem`]).
//! Out: a [`Schedule`] and a [`Proof`] of how good it is.
//!
//! A graph is [`Prepared`] once: operators that cost nothing are contracted and the rest is cut in
//! series. Each block is then bounded ([`bounds`]), listed ([`list`]), and where the two do not
//! meet, searched ([`search`]); [`exact`] is that order of means. [`ilp`] is the published integer
//! program, a second opinion.
//!
//! Not here: what makes a schedule valid (see `plan::check`), and how long an operator takes
//! (see `estimate`).

mod bounds;
mod exact;
mod front;
mod ilp;
mod job;
mod list;
mod prepared;
mod search;
mod simplex;
mod solver;

pub use crate::plan::schedule::Cores;
pub use crate::plan::schedule::Problem;
pub use crate::plan::schedule::Proof;
pub use crate::plan::schedule::ProofKind;
pub use crate::plan::schedule::Rule;
pub use crate::plan::schedule::Schedule;
pub use crate::plan::schedule::Task;
pub use prepared::Prepared;
pub use solver::Solved;
pub use solver::Solver;
pub use solver::Timed;
pub use solver::solve;
pub use solver::solve_with;

/// When a search gives up and answers with what it has.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// The most partial schedules that one block's search looks at.
    pub nodes: u64,
    /// Asked now and then; `true` ends the search. It makes answers depend on the clock.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Limits<'_> {
    /// Whether whoever asked wants no more of it.
    fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }

    /// Enough for every layer of the built-in models, and seconds at most.
    pub const DEFAULT: Self = Self { nodes: 4_000_000, stop: None };

    /// Nothing is searched: bounds and lists alone.
    pub const NO_SEARCH: Self = Self { nodes: 0, stop: None };
}
