//! Judges: each takes an answer and the question, and names the first rule that is broken.
//!
//! They share no code with the solvers, and are written to be obvious rather than clever.

pub mod placement;
pub mod schedule;
