//! Is an answer true? Everything is rebuilt from the request alone and compared, claim by claim.
//!
//! In: an [`Outcome`](crate::search::Outcome), the cells of its designs.csv, and what its request
//! names, as a [`Question`]. Out: what was verified, or the first [`FalseClaim`].
//!
//! No number of the answer is believed. Its decisions (mappings, schedules, cuts) are priced by
//! their definitions; bounds are written a second time from docs/search.md. This room shares no
//! code with the solvers, bounds and walks that make answers, and `tests/tidy.rs` keeps it so. What
//! only a solver can refute is for [`deep`], which alone may use them.

mod baselines;
mod bound;
pub mod boxes;
mod cells;
mod claims;
pub mod deep;
mod design;
mod divide;
mod energy;
mod entry;
mod exchanged;
mod feasible;
mod legal;
mod operator;
mod outcome;
mod pass;
mod phases;
mod placed;
mod plan;
mod proof;
mod ranking;
mod rebuild;
mod replay;
mod result;
mod sensitivity;
mod sentence;
mod table;

pub use claims::FalseClaim;
pub use outcome::Judged;
pub use outcome::Tables;
pub use outcome::Verified;
pub use outcome::check;
pub use plan::PlanGround;
pub use plan::check_plan;
pub use rebuild::Question;
