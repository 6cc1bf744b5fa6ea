//! What is trained: layers and their operators, forward and backward.
//!
//! Not here: how long an operator takes (see `estimate`) and how it is divided among devices
//! (see `parallel`).

mod optimizer;

pub mod op;

pub use optimizer::Optimizer;

/// What attention leaves behind for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// The probabilities before and after dropout, and the mask.
    Stored,
    /// Only its inputs: the scores are computed once more, and never leave the chip.
    Recomputed,
}
