//! What an answer *is*: its parts, its cost by definition, and the checkers that judge it.
//!
//! Nothing here knows how answers are found: solvers depend on this room, never the other way,
//! so a checker is an independent judge and a saved answer can be verified without any solver.

pub mod check;
pub mod schedule;
