//! Off-chip memory: what a stack of each generation holds, moves and costs.

use super::Origin;

/// Which generation of off-chip memory: its place in the list of a technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub usize);

/// A constant of a generation; the doc of each names the small unit in which it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryConstant {
    /// GiB of a stack.
    Size,
    /// Megabytes per second of a stack.
    Rate,
    /// Square nanometres of its interface, in every process alike.
    Phy,
    /// Square nanometres of its controller at 7 nm.
    Controller,
    /// Femtojoules per bit.
    Energy,
    /// Cents per GiB.
    Price,
}

impl MemoryConstant {
    /// Each with its key in technology files, its unit there, the factor to the small unit, and the
    /// least and the most that a file may say.
    pub const ROWS: [(Self, &'static str, &'static str, f64, [f64; 2]); 6] = [
        (Self::Size, "gib", "GiB", 1.0, [1.0, 1e4]),
        (Self::Rate, "gb_per_s", "GB/s", 1e3, [1.0, 1e5]),
        (Self::Phy, "phy_mm2", "mm²", 1e12, [0.0, 858.0]),
        (Self::Controller, "controller_mm2", "mm²", 1e12, [0.0, 858.0]),
        (Self::Energy, "pj_per_bit", "pJ per bit", 1e3, [0.0, 1e3]),
        (Self::Price, "usd_per_gib", "$ per GiB", 1e2, [0.0, 1e5]),
    ];
}

/// One generation of off-chip memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGeneration {
    /// What users call it, such as `hbm3e`.
    pub name: String,
    values: [u64; 6],
    origins: Vec<Origin>,
}

impl MemoryGeneration {
    /// The generation of that name; `values` gives each constant in its small unit with its origin.
    pub fn new(name: String, values: [(u64, Origin); 6]) -> Self {
        let found = [0, 1, 2, 3, 4, 5].map(|place: usize| values[place].0);
        Self { name, values: found, origins: values.map(|(_, origin)| origin).to_vec() }
    }

    /// A constant, in its small unit.
    pub fn value(&self, constant: MemoryConstant) -> u64 {
        self.values[constant as usize]
    }

    /// The same, wide enough to be multiplied.
    pub(in crate::hardware) fn of(&self, constant: MemoryConstant) -> u128 {
        u128::from(self.value(constant))
    }

    /// Where a constant is from.
    pub fn origin(&self, constant: MemoryConstant) -> &Origin {
        &self.origins[constant as usize]
    }

    pub(super) fn set(&mut self, constant: MemoryConstant, to: u64) {
        self.values[constant as usize] = to;
    }
}
