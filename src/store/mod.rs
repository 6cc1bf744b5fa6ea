//! Where are answers kept? Files of requests and results, whole or not at all, and the journal of a
//! search that is under way; parts of spaces, and sweeps.
//!
//! In: paths and what `ask` answers. Out: what was read or written, or a
//! [`Refusal`](crate::ask::Refusal). The only room that opens files. Not here: what files mean (see
//! `input`), clocks and terminals (see the doors).

pub mod files;
pub mod journal;
pub mod results;
pub mod shards;
pub mod sweeps;

pub use journal::Start;
