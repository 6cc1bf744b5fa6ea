//! What a chip may take, and why one takes too much.

use super::Activity;
use super::Chip;
use super::ChipCost;
use super::ChipPower;
use super::DieArea;
use crate::hardware::Unbuildable;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Technology;
use crate::units::Area;
use crate::units::Money;
use crate::units::Power;

/// The most that a chip may take of silicon, watts and money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Of the die; never more than a reticle.
    pub area: Area,
    /// Thermal design power.
    pub tdp: Power,
    /// To make one chip; `None` for any price.
    pub price: Option<Money>,
}

/// What a chip takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChipFigures {
    /// Its die.
    pub die: DieArea,
    /// Its thermal design power.
    pub tdp: ChipPower,
    /// To make one.
    pub cost: ChipCost,
}

/// Why a chip cannot be made, or not within a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// No die has the edge for its memory and links.
    #[error(
        "no die of one reticle has the edge for {sites} stacks of memory and {gb_per_s} GB/s of \
         links; at most {most} stacks fit beside such links"
    )]
    Edge {
        /// Stacks.
        sites: u64,
        /// Links, per direction.
        gb_per_s: u64,
        /// The most stacks that would do.
        most: u64,
    },
    /// No supply reaches the clock.
    #[error(
        "a clock of {mhz} MHz is beyond what {process_nm} nm reaches; at most {most} MHz would do"
    )]
    Clock {
        /// The clock.
        mhz: u64,
        /// The process.
        process_nm: u64,
        /// The highest clock.
        most: u64,
    },
    /// More silicon than the budget, or than a reticle.
    #[error(
        "the die has {:.1} mm², of which {:.1} are allowed",
        found.square_millimetres(), allowed.square_millimetres()
    )]
    Area {
        /// Its area.
        found: Area,
        /// The most that would do.
        allowed: Area,
    },
    /// More watts than the budget.
    #[error("the design power is {:.1} W, of which {:.1} are allowed", found.watts(), allowed.watts())]
    Tdp {
        /// Its power.
        found: Power,
        /// The most that would do.
        allowed: Power,
    },
    /// More money than the budget.
    #[error(
        "a chip costs {:.2} dollars to make, of which {:.2} are allowed",
        found.dollars(), allowed.dollars()
    )]
    Price {
        /// Its cost.
        found: Money,
        /// The most that would do.
        allowed: Money,
    },
    /// Beyond what can be counted.
    #[error("the chip is larger than a wafer")]
    Beyond,
}

impl ChipFigures {
    /// What a chip takes, or why it cannot be made at all.
    pub fn of(chip: &Chip, technology: &Technology) -> Result<Self, OverBudget> {
        let die = DieArea::of(chip, technology).ok_or_else(|| no_die(chip, technology))?;
        Self::with_die(chip, die, technology)
    }

    /// The same of a chip whose die is known.
    fn with_die(chip: &Chip, die: DieArea, technology: &Technology) -> Result<Self, OverBudget> {
        let tdp = ChipPower::of(chip, die.total(), Activity::Sustained, technology)
            .ok_or_else(|| no_power(chip, technology))?;
        let cost = ChipCost::of(chip, die.total(), technology).ok_or(OverBudget::Beyond)?;
        Ok(Self { die, tdp, cost })
    }
}

impl Budget {
    /// What searches allow unless they are told otherwise.
    pub fn default_of(technology: &Technology) -> Self {
        Self {
            area: Area(technology.value(Constant::DefaultArea)),
            tdp: Power(technology.value(Constant::DefaultTdp)),
            price: None,
        }
    }

    /// The largest die: that of the budget or of a reticle.
    pub fn largest_die(&self, technology: &Technology) -> Area {
        self.area.min(technology.reticle())
    }

    /// Whether a chip keeps within it.
    pub fn allows(&self, chip: &Chip, technology: &Technology) -> bool {
        self.check(chip, technology).is_ok()
    }

    /// What a chip takes, or the first limit that it exceeds: of its edge and area, of its clock and
    /// power, of its price.
    pub fn check(&self, chip: &Chip, technology: &Technology) -> Result<ChipFigures, OverBudget> {
        let die = DieArea::of(chip, technology).ok_or_else(|| no_die(chip, technology))?;
        let (found, allowed) = (die.total(), self.largest_die(technology));
        if found > allowed {
            return Err(OverBudget::Area { found, allowed });
        }
        let figures = ChipFigures::with_die(chip, die, technology)?;
        let tdp = figures.tdp.total();
        if tdp > self.tdp {
            return Err(OverBudget::Tdp { found: tdp, allowed: self.tdp });
        }
        let cost = figures.cost.total();
        match self.price {
            Some(allowed) if cost > allowed => Err(OverBudget::Price { found: cost, allowed }),
            _ => Ok(figures),
        }
    }
}

/// Why a chip has no die.
pub(super) fn no_die(chip: &Chip, technology: &Technology) -> OverBudget {
    let sites = chip.memory.sites;
    match most_sites(chip, technology) {
        most if most < sites => OverBudget::Edge { sites, gb_per_s: chip.links_gb_per_s, most },
        _ => OverBudget::Beyond,
    }
}

/// The most stacks, up to those that a chip has, that a die has the edge for beside its links.
fn most_sites(chip: &Chip, technology: &Technology) -> u64 {
    let fits = |sites: &u64| {
        let mut turned = *chip;
        turned.memory.sites = *sites;
        super::least_die(&turned, technology).is_some()
    };
    let own = chip.memory.sites;
    // More stacks need more edge, and no reticle has the edge for sixty-four.
    if fits(&own) { own } else { (0..own.min(64)).rev().find(fits).unwrap_or(0) }
}

impl From<OverBudget> for Unbuildable {
    /// What cannot be made at all; what only exceeds a budget can.
    fn from(reason: OverBudget) -> Self {
        match reason {
            OverBudget::Edge { sites, gb_per_s, most } => {
                Self::NoDie { stacks: sites, gb_per_s, most }
            }
            OverBudget::Clock { mhz, process_nm, most } => Self::Clock { mhz, process_nm, most },
            _ => Self::TooLarge,
        }
    }
}

/// Why a chip has no power.
pub(super) fn no_power(chip: &Chip, technology: &Technology) -> OverBudget {
    match technology.supply(chip.clock_mhz) {
        Some(_) => OverBudget::Beyond,
        None => OverBudget::Clock {
            mhz: chip.clock_mhz,
            process_nm: technology.process_nm,
            most: technology.highest_clock_mhz(),
        },
    }
}
