//! What is trained: layers and their operators, forward and backward.
//!
//! Not here: how long an operator takes (see `estimate`) and how it is divided among devices
//! (see `parallel`).

pub mod op;
