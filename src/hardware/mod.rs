//! What it runs on: cores, accelerator, its area and energies, and the cluster that wires
//! accelerators together.
//!
//! In: the knobs of a [`Design`] and the [`Physics`] it is built in. Out: an [`Accelerator`] whose
//! bandwidths, energies and area are settled, a [`DesignSpace`] that lists many of them, and a
//! [`Cluster`] that says how long devices take to talk. [`chip`] says what a whole chip takes of
//! silicon, its edge, watts and money in a [`technology`], and makes an accelerator of it.
//!
//! Not here: how long an operator takes (see `estimate`), and how hardware files are written (see
//! `input`).

mod accelerator;
mod area;
pub mod chip;
mod cluster;
mod design_grid;
pub mod efficiency;
mod knobs;
pub mod network;
mod physics;
mod space;
pub mod sram;
pub mod technology;

pub use accelerator::Accelerator;
pub use accelerator::CoreSpec;
pub use accelerator::Design;
pub use accelerator::Energies;
pub use accelerator::MostLanes;
pub use accelerator::OffChipTime;
pub use accelerator::Unbuildable;
pub use accelerator::Use;
pub use accelerator::VectorSpec;
pub use area::AreaBreakdown;
pub use cluster::Cluster;
pub use design_grid::DesignGrid;
pub use design_grid::N_DESIGN_KNOBS;
pub use efficiency::Efficiency;
pub use knobs::KNOBS;
pub use knobs::Knob;
pub use physics::BufferEnergies;
pub use physics::ChipEnergies;
pub use physics::HbmBandwidth;
pub use physics::Physics;
pub use physics::Port;
pub use physics::UnknownRate;
pub use space::Candidate;
pub use space::DesignSpace;
pub use space::PointKind;
pub use space::Rejections;
