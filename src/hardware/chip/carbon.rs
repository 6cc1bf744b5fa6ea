//! The carbon of a chip: made, and used.

use super::DieLot;
use super::Package;
use super::cost::milliwatt_hours;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Technology;
use crate::units::Bytes;
use crate::units::Power;

/// Grams of `CO₂e` of one chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carbon {
    /// Its dies, with those that failed.
    pub dies: u64,
    /// Its off-chip memory.
    pub memory: u64,
    /// Electricity over its years in service.
    pub used: u64,
}

impl Carbon {
    /// Of a package that draws so much.
    pub fn of(package: &Package, tdp: Power, technology: &Technology) -> Self {
        let of = |constant| technology.of(constant);
        let gib = u128::from(package.memory.size.0.div_ceil(Bytes::GIB.0));
        let dies = package.dies.iter().map(DieLot::milligrams).sum::<u128>();
        // Milliwatt-hours by milligrams per kWh.
        let used = milliwatt_hours(tdp, technology).saturating_mul(of(Constant::UseGrid));
        Self {
            dies: grams(dies),
            memory: grams(gib * of(Constant::MemoryCarbon)),
            used: grams(used / 1_000_000),
        }
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.dies + self.memory + self.used
    }
}

impl DieLot<'_> {
    /// Milligrams of `CO₂e` of all of them, with the silicon of those that failed.
    fn milligrams(&self) -> u128 {
        let of = |constant| self.technology.of(constant);
        let per_cm2 = of(Constant::FabEnergy) * of(Constant::FabGrid) / 1000
            + of(Constant::FabGas)
            + of(Constant::Materials);
        // A cm² has 10¹⁴ nm².
        let one = u128::from(self.area.0) * per_cm2 / 100_000_000_000_000;
        u128::from(self.count) * one * self.silicon_per_good_die() / 1_000_000
    }
}

/// Milligrams as grams, within what sums of three can count.
fn grams(milligrams: u128) -> u64 {
    u64::try_from(milligrams / 1000).unwrap_or(u64::MAX).min(1 << 60)
}
