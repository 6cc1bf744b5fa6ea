//! How long one operator takes, and what energy, found by searching mappings and remembered in a
//! table.
//!
//! In: an [`Op`](crate::model::op::Op) by its loop shape, an
//! [`Accelerator`](crate::hardware::Accelerator) and the cluster it stands in. Out: an [`Estimate`]
//! on one core and one spread over all cores of its kind.
//!
//! `tensor_core` finds the best mapping of a matmul; `vector_core` counts lanes and bytes;
//! `collective` asks the network. To add a kind of work, write its file and match it in `table`.
//! Not here: what runs beside what (see `schedule`).

pub mod collective;
pub mod many;
pub mod roofline;
mod table;
pub mod tensor_core;
pub mod vector_core;

pub use table::Closeness;
pub use table::EstimateTable;
pub use table::LARGEST_MATMUL;
pub use table::LeastEstimate;
pub use table::Options;
pub use tensor_core::Limit;
pub use vector_core::VectorCosts;

use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// What an operator takes on the cores that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// From start to end, if nothing else runs.
    pub time: Time,
    /// Of all levels together.
    pub energy: Energy,
    /// Through off-chip memory, both ways.
    pub hbm: Bytes,
    /// Read from the global buffer, drains to off-chip memory included.
    pub glb_read: Bytes,
    /// Written to the global buffer, fills from off-chip memory included.
    pub glb_written: Bytes,
    /// What makes it take as long as it does.
    pub limit: Limit,
}

/// An operator on one core of its kind, and spread over all of them.
///
/// Invariant: spread is never slower than alone; where it would be, it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpCosts {
    /// On one core, with its even share of the global buffer.
    pub alone: Estimate,
    /// On all cores.
    pub spread: Estimate,
}

/// An operator that no estimate covers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "operator `{0}` is too large to be timed: it has 2^62 multiply-accumulates or more, moves \
     2^64 bytes, or takes longer than 213 days"
)]
pub struct TooLarge(pub String);

impl Estimate {
    /// What takes nothing.
    pub const NOTHING: Self = Self {
        time: Time::ZERO,
        energy: Energy::ZERO,
        hbm: Bytes::ZERO,
        glb_read: Bytes::ZERO,
        glb_written: Bytes::ZERO,
        limit: Limit::Compute,
    };
}
