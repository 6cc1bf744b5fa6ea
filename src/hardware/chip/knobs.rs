//! The knobs of a chip that a search turns, in one table.

use std::ops::RangeInclusive;

use super::Chip;
use super::Cores;
use super::OffChipMemory;
use crate::hardware::Design;
use crate::hardware::Unbuildable;
use crate::hardware::technology::Generation;
use crate::hardware::technology::Technology;
use crate::model::Precision;
use crate::units::Bytes;

/// A chip as a search describes it; local buffers follow from the arrays and lanes by the published
/// rule, and the process is that of the [`Technology`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChipKnobs {
    /// What its arrays multiply.
    pub precision: Precision,
    /// Systolic arrays.
    pub tensor_cores: u64,
    /// Multiply-accumulators along one side of an array.
    pub width: u64,
    /// Multiply-accumulators along the other side.
    pub depth: u64,
    /// Vector units.
    pub vector_cores: u64,
    /// Lanes of each.
    pub vector_width: u64,
    /// Global on-chip buffer, in MiB.
    pub glb_mib: u64,
    /// Bytes per cycle of the global buffer, each way.
    pub glb_bytes_per_cycle: u64,
    /// Of all cores.
    pub clock_mhz: u64,
    /// Of off-chip memory.
    pub generation: Generation,
    /// Stacks of off-chip memory: size and bandwidth together.
    pub stacks: u64,
    /// GB/s of all links together, per direction.
    pub links_gb_per_s: u64,
}

/// One knob that is a number.
pub struct ChipKnob {
    /// What users call it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// What it is counted in; empty for plain counts.
    pub unit: &'static str,
    /// Far beyond any chip, and small enough that nothing overflows.
    pub range: RangeInclusive<u64>,
    /// Whether the least time of a corner (`Planner::corner`) bounds every chip that has no more of it;
    /// of the others only what rooflines say never rises (docs/search.md, the laws).
    pub proved: bool,
    /// Its value.
    pub get: fn(&ChipKnobs) -> u64,
    /// Sets it and nothing else.
    pub set: fn(&mut ChipKnobs, u64),
}

/// All of them, in the order in which tables show them.
pub const CHIP_KNOBS: [ChipKnob; 10] = [
    ChipKnob {
        name: "tensor_cores",
        meaning: "systolic arrays",
        unit: "",
        range: 1..=1 << 16,
        proved: false,
        get: |chip| chip.tensor_cores,
        set: |chip, value| chip.tensor_cores = value,
    },
    ChipKnob {
        name: "width",
        meaning: "multiply-accumulators along one side of an array",
        unit: "",
        range: 1..=1 << 12,
        proved: false,
        get: |chip| chip.width,
        set: |chip, value| chip.width = value,
    },
    ChipKnob {
        name: "depth",
        meaning: "multiply-accumulators along the other side",
        unit: "",
        range: 1..=1 << 12,
        proved: false,
        get: |chip| chip.depth,
        set: |chip, value| chip.depth = value,
    },
    ChipKnob {
        name: "vector_cores",
        meaning: "vector units",
        unit: "",
        range: 1..=1 << 16,
        proved: true,
        get: |chip| chip.vector_cores,
        set: |chip, value| chip.vector_cores = value,
    },
    ChipKnob {
        name: "vector_width",
        meaning: "lanes of a vector unit",
        unit: "",
        range: 1..=1 << 16,
        proved: true,
        get: |chip| chip.vector_width,
        set: |chip, value| chip.vector_width = value,
    },
    ChipKnob {
        name: "glb_mib",
        meaning: "global on-chip buffer",
        unit: "MiB",
        range: 1..=1 << 20,
        proved: true,
        get: |chip| chip.glb_mib,
        set: |chip, value| chip.glb_mib = value,
    },
    ChipKnob {
        name: "glb_bytes_per_cycle",
        meaning: "bandwidth of the global buffer, each way",
        unit: "B/cycle",
        range: 1..=1 << 20,
        proved: true,
        get: |chip| chip.glb_bytes_per_cycle,
        set: |chip, value| chip.glb_bytes_per_cycle = value,
    },
    ChipKnob {
        name: "clock_mhz",
        meaning: "clock of all cores",
        unit: "MHz",
        range: 1..=100_000,
        proved: true,
        get: |chip| chip.clock_mhz,
        set: |chip, value| chip.clock_mhz = value,
    },
    ChipKnob {
        name: "stacks",
        meaning: "stacks of off-chip memory",
        unit: "",
        range: 1..=1 << 10,
        proved: true,
        get: |chip| chip.stacks,
        set: |chip, value| chip.stacks = value,
    },
    ChipKnob {
        name: "links",
        meaning: "links to other chips, all together, per direction",
        unit: "GB/s",
        range: 1..=1 << 20,
        proved: true,
        get: |chip| chip.links_gb_per_s,
        set: |chip, value| chip.links_gb_per_s = value,
    },
];

impl ChipKnob {
    /// The knob that users call `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        CHIP_KNOBS.iter().find(|knob| knob.name == name)
    }
}

impl ChipKnobs {
    /// Whether every knob is within its range.
    pub fn in_range(&self) -> Result<(), Unbuildable> {
        CHIP_KNOBS.iter().try_for_each(|knob| {
            let found = (knob.get)(self);
            let (low, high) = (*knob.range.start(), *knob.range.end());
            if knob.range.contains(&found) {
                return Ok(());
            }
            Err(Unbuildable::Range { knob: knob.name, found, low, high })
        })
    }

    /// What it takes silicon, watts and money for.
    pub fn chip(&self, technology: &Technology) -> Chip {
        let cores = Cores::Systolic {
            tensor_cores: self.tensor_cores,
            macs: self.width.saturating_mul(self.depth),
            local: Design::published_local(self.width, self.depth),
            vector_cores: self.vector_cores,
            lanes: self.vector_width,
            vector_local: Design::published_vector_local(self.vector_width),
        };
        Chip {
            precision: self.precision,
            cores,
            glb: Bytes(Bytes::MIB.0.saturating_mul(self.glb_mib)),
            glb_bytes_per_cycle: self.glb_bytes_per_cycle,
            clock_mhz: self.clock_mhz,
            memory: OffChipMemory::stacks(self.generation, self.stacks, technology),
            links_gb_per_s: self.links_gb_per_s,
        }
    }
}
