//! One chip under one budget: silicon, its edge, watts and money.
//!
//! In: a [`Chip`], described by its knobs ([`ChipKnobs`]) or by the facts of a real part, and the
//! [`Technology`] it is made in. Out: its die part by part
//! ([`DieArea`]), its power ([`ChipPower`]), what it costs to make and to own ([`ChipCost`],
//! [`Ownership`]), its carbon, whether a [`Budget`] allows it and why not; and the
//! [`Accelerator`](super::Accelerator) that it is.
//!
//! All figures are integers and never fall when a knob rises: searches over boxes of knobs rest on
//! that. Not here: how fast anything runs.

mod area;
mod budget;
mod build;
mod carbon;
mod cost;
mod edge;
mod kin;
mod knobs;
mod part;
mod power;
#[cfg(test)]
pub(crate) mod properties;
mod space;

use crate::model::Precision;
use crate::model::op::Numbers;
use crate::units::Bandwidth;
use crate::units::Bytes;

use super::technology::Generation;
use super::technology::MemoryConstant;
use super::technology::Technology;

pub use area::DieArea;
pub use budget::Budget;
pub use budget::ChipFigures;
pub use budget::OverBudget;
pub use build::cubic_torus;
pub use build::torus_of_links;
pub use carbon::Carbon;
pub use cost::ChipCost;
pub use cost::DieLot;
pub use cost::LinkTier;
pub use cost::Ownership;
pub use cost::Package;
pub use edge::least_die;
pub use kin::Classes;
pub use kin::Kin;
pub use kin::classes;
pub use knobs::CHIP_KNOBS;
pub use knobs::ChipKnob;
pub use knobs::ChipKnobs;
pub use part::Die;
pub use part::GivenEnergies;
pub use part::Making;
pub use part::Multiprocessors;
pub use part::PartFigures;
pub use part::PublishedFigures;
pub use part::Sourced;
pub use power::Activity;
pub use power::ChipPower;
pub use space::ChipGrid;
pub use space::ChipNetwork;
pub use space::ChipSpace;
pub use space::N_CHIP_KNOBS;
pub use space::NoNetwork;
pub use space::knob_place;

/// How the cores of a chip are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cores {
    /// Systolic arrays and vector units, each with a buffer.
    Systolic {
        /// Systolic arrays.
        tensor_cores: u64,
        /// Multiply-accumulators of each.
        macs: u64,
        /// Buffer of each.
        local: Bytes,
        /// Vector units.
        vector_cores: u64,
        /// Lanes of each.
        lanes: u64,
        /// Buffer of each.
        vector_local: Bytes,
    },
    /// Multiprocessors that schedule threads: arrays, lanes, registers and caches in each.
    Simt {
        /// On the die.
        physical: u64,
        /// In use.
        enabled: u64,
        /// Multiply-accumulators of each.
        macs: u64,
        /// Lanes of each.
        lanes: u64,
        /// Registers and first-level cache of each.
        local: Bytes,
    },
}

/// Off-chip memory around a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffChipMemory {
    /// Of every stack.
    pub generation: Generation,
    /// Places for stacks, each with its interface on the die.
    pub sites: u64,
    /// Stacks in use.
    pub stacks: u64,
    /// Of all stacks.
    pub size: Bytes,
    /// Of all stacks.
    pub bandwidth: Bandwidth,
}

impl OffChipMemory {
    /// So many stacks of a generation, each as large and as fast as the technology says.
    pub fn stacks(generation: Generation, stacks: u64, technology: &Technology) -> Self {
        let memory = technology.memory(generation);
        let size = Bytes(Bytes::GIB.0.saturating_mul(memory.value(MemoryConstant::Size)));
        let rate = memory.value(MemoryConstant::Rate).saturating_mul(1_000_000);
        let rate = Bandwidth::bytes_per_second(rate).expect("a stack moves at least a GB/s");
        Self {
            generation,
            sites: stacks,
            stacks,
            size: Bytes(size.0.saturating_mul(stacks)),
            bandwidth: rate.times(stacks),
        }
    }
}

/// All that decides what a chip costs in silicon, watts and money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chip {
    /// What its arrays multiply: products of bf16 with sums of fp32, or besides two products of fp8 in
    /// place of one.
    pub precision: Precision,
    /// Its cores.
    pub cores: Cores,
    /// The global buffer; of multiprocessors a cache with tags.
    pub glb: Bytes,
    /// Bytes per cycle of the global buffer, each way.
    pub glb_bytes_per_cycle: u64,
    /// Of all cores.
    pub clock_mhz: u64,
    /// Around the die.
    pub memory: OffChipMemory,
    /// GB/s of all links together, per direction.
    pub links_gb_per_s: u64,
}

impl Chip {
    /// Multiply-accumulators that compute.
    pub fn macs(&self) -> u64 {
        match self.cores {
            Cores::Systolic { tensor_cores, macs, .. } => tensor_cores.saturating_mul(macs),
            Cores::Simt { enabled, macs, .. } => enabled.saturating_mul(macs),
        }
    }

    /// Floating-point operations per second in its precision if no array ever waits.
    pub fn peak_flops_per_second(&self) -> u128 {
        let products = u128::from(Numbers::of_matmuls(self.precision).per_cycle());
        2 * products * u128::from(self.macs()) * u128::from(self.clock_mhz) * 1_000_000
    }
}
