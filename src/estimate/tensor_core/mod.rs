//! How long a matmul takes on tensor cores, by the best of all its mappings.
//!
//! [`mapping`] says what a mapping is, [`cost`] what it costs; [`search`] finds the best.

pub mod cost;
mod glb_tiles;
pub mod mapping;
#[cfg(test)]
mod naive;
mod plan;
pub mod search;

pub use cost::Cost;
pub use cost::EnergyByLevel;
pub use cost::Limit;
pub use mapping::Loop;
pub use mapping::Mapping;
pub use mapping::Way;
pub use search::Fastest;
pub use search::Lead;
pub use search::Scratch;
pub use search::best;
pub use search::fastest;
pub use search::least_carried;
pub use search::least_compute;
