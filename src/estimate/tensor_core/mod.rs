//! How long a matmul takes on tensor cores, by the best of all its mappings.
//!
//! [`mapping`] says what a mapping is and what it costs; [`search`] finds the best.

mod glb_tiles;
pub mod mapping;
#[cfg(test)]
mod naive;
mod plan;
pub mod search;

pub use mapping::Cost;
pub use mapping::EnergyByLevel;
pub use mapping::Limit;
pub use mapping::Loop;
pub use mapping::Mapping;
pub use mapping::Way;
pub use search::Scratch;
pub use search::best;
