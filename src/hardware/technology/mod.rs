//! What silicon, watts, dollars and carbon cost in one process.
//!
//! In: constants, each with where it is from, as `input` read them from the files under
//! `inputs/technology`. Out: a [`Technology`], which the functions of [`chip`](super::chip) ask. All
//! are integers in small units, so that what follows from them is the same on every machine and never
//! falls when a knob rises.

mod constants;
mod memory;
mod voltage;

use std::collections::BTreeMap;

use crate::units::Area;

pub use constants::Constant;
pub use constants::ConstantRow;
pub use memory::Generation;
pub use memory::MemoryConstant;
pub use memory::MemoryGeneration;
pub use voltage::VoltageTable;

/// How a constant is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// It is public.
    Public,
    /// It was fitted to a chip.
    Calibrated,
    /// It is assumed.
    Assumed,
    /// It was recalled from a paper and not read again.
    Recalled,
}

impl Mark {
    /// All of them, by the words of technology files.
    pub const ALL: [(&'static str, Self); 4] = [
        ("pub", Self::Public),
        ("cal", Self::Calibrated),
        ("asm", Self::Assumed),
        ("rec", Self::Recalled),
    ];

    /// What a reader sees.
    pub fn word(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Calibrated => "calibrated",
            Self::Assumed => "assumption",
            Self::Recalled => "recalled",
        }
    }
}

/// Where a constant is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// How it is known.
    pub mark: Mark,
    /// From whom, in a few words.
    pub source: String,
}

/// All constants of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Technology {
    /// What the process is called, in nanometres.
    pub process_nm: u64,
    values: [u64; Constant::COUNT],
    origins: BTreeMap<&'static str, Origin>,
    voltages: VoltageTable,
    memories: Vec<MemoryGeneration>,
}

impl Technology {
    /// The largest value of any constant, in its small unit: products of what formulas multiply
    /// then stay within 128 bits.
    pub const LARGEST: u64 = 1 << 50;

    /// The technology of so many nanometres with these constants.
    ///
    /// `values` gives a value in the small unit of its row, and its origin, for each constant.
    pub fn new(
        process_nm: u64,
        values: impl Fn(Constant) -> (u64, Origin),
        voltages: VoltageTable,
        memories: Vec<MemoryGeneration>,
    ) -> Self {
        let mut origins = BTreeMap::new();
        let mut found = [0; Constant::COUNT];
        for row in &Constant::ROWS {
            let (value, origin) = values(row.constant);
            found[row.constant as usize] = value.min(Self::LARGEST);
            origins.insert(row.name, origin);
        }
        Self { process_nm, values: found, origins, voltages, memories }
    }

    /// A constant, in the small unit of its row.
    pub fn value(&self, constant: Constant) -> u64 {
        self.values[constant as usize]
    }

    /// The same, wide enough to be multiplied.
    pub(super) fn of(&self, constant: Constant) -> u128 {
        u128::from(self.value(constant))
    }

    /// Where a constant is from.
    pub fn origin(&self, constant: Constant) -> &Origin {
        &self.origins[constant.row().name]
    }

    /// The same technology with another value of one constant, in the small unit of its row.
    #[must_use]
    pub fn with(&self, constant: Constant, value: u64) -> Self {
        let mut turned = self.clone();
        turned.values[constant as usize] = value.min(Self::LARGEST);
        turned
    }

    /// The constants that are assumed, in the order of the table: those whose error nobody knows.
    pub fn assumptions(&self) -> impl Iterator<Item = Constant> {
        let rows = Constant::ROWS.iter().map(|row| row.constant);
        rows.filter(|&constant| self.origin(constant).mark == Mark::Assumed)
    }

    /// The constants of a generation of memory that are assumed.
    pub fn memory_assumptions(
        &self,
        generation: Generation,
    ) -> impl Iterator<Item = MemoryConstant> {
        let memory = self.memory(generation);
        let rows = MemoryConstant::ROWS.into_iter().map(|row| row.0);
        rows.filter(|&constant| memory.origin(constant).mark == Mark::Assumed)
    }

    /// The largest die that can be exposed at once.
    pub fn reticle(&self) -> Area {
        let (short, long) = (self.value(Constant::ReticleShort), self.value(Constant::ReticleLong));
        // A square micrometre has a million square nanometres.
        Area(short.saturating_mul(long).saturating_mul(1_000_000))
    }

    /// What the supply must be for a clock.
    pub fn voltages(&self) -> &VoltageTable {
        &self.voltages
    }

    /// The supply that a clock needs, in thousandths of the nominal one, rounded up; `None` where
    /// no supply reaches it.
    pub fn supply(&self, clock_mhz: u64) -> Option<u64> {
        self.voltages.supply(clock_mhz, self.value(Constant::NominalClock))
    }

    /// The highest clock that a supply reaches, in MHz.
    pub fn highest_clock_mhz(&self) -> u64 {
        self.voltages.highest(self.value(Constant::NominalClock))
    }

    /// The generations of off-chip memory, in the order of the file.
    pub fn memories(&self) -> &[MemoryGeneration] {
        &self.memories
    }

    /// The generation of that name.
    pub fn generation(&self, name: &str) -> Option<Generation> {
        self.memories.iter().position(|memory| memory.name == name).map(Generation)
    }

    /// What a generation is; those of other technologies of the same files are alike.
    pub fn memory(&self, generation: Generation) -> &MemoryGeneration {
        let last = self.memories.len() - 1;
        &self.memories[generation.0.min(last)]
    }

    /// The same technology with another value of one constant of a generation.
    #[must_use]
    pub fn with_memory(&self, generation: Generation, constant: MemoryConstant, to: u64) -> Self {
        let mut turned = self.clone();
        if let Some(memory) = turned.memories.get_mut(generation.0) {
            memory.set(constant, to.min(Self::LARGEST));
        }
        turned
    }
}
