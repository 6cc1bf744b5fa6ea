//! A part as its maker describes it: what its file says of process, memory sites, links and dies, and
//! the figures that are public.

use super::Activity;
use super::Chip;
use super::ChipCost;
use super::ChipPower;
use super::Cores;
use super::DieArea;
use super::DieLot;
use super::OffChipMemory;
use super::OverBudget;
use super::Package;
use super::budget::no_die;
use super::budget::no_power;
use crate::hardware::Accelerator;
use crate::hardware::AreaBreakdown;
use crate::hardware::Design;
use crate::hardware::Physics;
use crate::hardware::Unbuildable;
use crate::hardware::technology::Generation;
use crate::hardware::technology::Technology;
use crate::model::Precision;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Money;
use crate::units::Power;

/// A figure that is public, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The figure.
    pub value: T,
    /// Who says so.
    pub source: String,
}

/// What is public of a part beside its knobs; none where it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedFigures {
    /// Of its die, or of all its dies together.
    pub die: Option<Sourced<Area>>,
    /// What its die is smaller than, where only that is public.
    pub die_below: Option<Sourced<Area>>,
    /// Thermal design power.
    pub tdp: Option<Sourced<Power>>,
    /// Mean power at work.
    pub mean_power: Option<Sourced<Power>>,
    /// The highest power at work.
    pub max_power: Option<Sourced<Power>>,
    /// Power of a node beside its devices, for each of them.
    pub host_power: Option<Sourced<Power>>,
    /// What analysts think that one costs to make.
    pub cost: Option<Sourced<Money>>,
    /// What one is sold for.
    pub price: Option<Sourced<Money>>,
    /// What an hour of one is let for.
    pub rent: Option<Sourced<Money>>,
}

/// Multiprocessors: what is on the die beside what is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessors {
    /// On the die.
    pub physical: u64,
    /// Registers and first-level cache of each.
    pub local: Bytes,
    /// Second-level cache on the die.
    pub cache: Bytes,
}

/// Dies of one kind in a package of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Die {
    /// Of each.
    pub area: Area,
    /// How many.
    pub count: u64,
    /// What they are made in.
    pub technology: Technology,
    /// Whether they stand on the interposer, instead of on another die.
    pub on_interposer: bool,
}

/// Energies that a file gives for itself, instead of those of the technology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenEnergies {
    /// Femtojoules to move 8 bytes to or from off-chip memory.
    pub hbm_fj: Option<u64>,
    /// Femtojoules to send one byte to another device.
    pub network_fj_per_byte: Option<u64>,
    /// Microwatts that each square millimetre draws at rest.
    pub static_uw_per_mm2: Option<u64>,
}

/// What must be known of a part so that its die, power and cost follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Making {
    /// What its cores are made in.
    pub technology: Technology,
    /// What its arrays multiply.
    pub precision: Precision,
    /// Of its memory.
    pub generation: Generation,
    /// Places for stacks.
    pub sites: u64,
    /// Stacks in use.
    pub stacks: u64,
    /// What each of them holds.
    pub stack: Bytes,
    /// GB/s of all links, per direction.
    pub links_gb_per_s: u64,
    /// Where its cores are multiprocessors.
    pub multiprocessors: Option<Multiprocessors>,
    /// Where its package has several dies, whose areas are then given.
    pub dies: Vec<Die>,
    /// What the technology does not decide.
    pub energies: GivenEnergies,
}

/// What a part takes by the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFigures {
    /// Its die; none where a package has several, whose areas are given.
    pub die: Option<DieArea>,
    /// The silicon that power and cost count: the published area where there is one.
    pub silicon: Area,
    /// Its thermal design power.
    pub tdp: ChipPower,
    /// Its power when every array computes in every cycle.
    pub peak: ChipPower,
    /// To make one.
    pub cost: ChipCost,
}

impl Making {
    /// All that decides what a design made so takes.
    pub fn chip(&self, design: &Design, physics: &Physics) -> Chip {
        let macs = design.width.saturating_mul(design.depth);
        let (cores, glb) = match self.multiprocessors {
            None => (
                Cores::Systolic {
                    tensor_cores: design.tensor_cores,
                    macs,
                    local: design.local,
                    vector_cores: design.vector_cores,
                    lanes: design.vector_width,
                    vector_local: design.vector_local,
                },
                design.glb,
            ),
            Some(own) => (
                Cores::Simt {
                    physical: own.physical.max(design.tensor_cores),
                    enabled: design.tensor_cores,
                    macs,
                    lanes: design.vector_width,
                    local: own.local,
                },
                own.cache.max(design.glb),
            ),
        };
        Chip {
            precision: self.precision,
            cores,
            glb,
            glb_bytes_per_cycle: physics.glb.read.max(physics.glb.write),
            clock_mhz: physics.clock.as_hertz().div_ceil(1_000_000),
            memory: self.memory(design, physics),
            links_gb_per_s: self.links_gb_per_s,
        }
    }

    /// The memory around a design made so.
    pub fn memory(&self, design: &Design, physics: &Physics) -> OffChipMemory {
        OffChipMemory {
            generation: self.generation,
            sites: self.sites,
            stacks: self.stacks,
            // A part may offer less than its stacks hold, and a design that was turned more.
            size: (self.stack * self.stacks).max(design.hbm),
            bandwidth: physics.hbm.of(design.hbm),
        }
    }

    /// What a design made so takes, or why it cannot be.
    pub fn figures(
        &self,
        design: &Design,
        physics: &Physics,
        published: &PublishedFigures,
    ) -> Result<PartFigures, OverBudget> {
        let (chip, technology) = (self.chip(design, physics), &self.technology);
        let die = if self.dies.is_empty() {
            Some(DieArea::of(&chip, technology).ok_or_else(|| no_die(&chip, technology))?)
        } else {
            None
        };
        let given = self.given_silicon().or(published.die.as_ref().map(|die| die.value));
        let silicon = given.or(die.map(|die| die.total())).ok_or(OverBudget::Beyond)?;
        let power = |activity| {
            ChipPower::of(&chip, silicon, activity, technology)
                .ok_or_else(|| no_power(&chip, technology))
        };
        let (tdp, peak) = (power(Activity::Sustained)?, power(Activity::Peak)?);
        let cost = ChipCost::of_package(
            &Package { dies: &self.lots(silicon), memory: chip.memory },
            technology,
        )
        .ok_or(OverBudget::Beyond)?;
        Ok(PartFigures { die, silicon, tdp, peak, cost })
    }

    /// Its dies, the only one of that area.
    pub fn lots(&self, silicon: Area) -> Vec<DieLot<'_>> {
        if self.dies.is_empty() {
            let technology = &self.technology;
            return vec![DieLot { area: silicon, count: 1, technology, on_interposer: true }];
        }
        let lots = self.dies.iter().map(|die| DieLot {
            area: die.area,
            count: die.count,
            technology: &die.technology,
            on_interposer: die.on_interposer,
        });
        lots.collect()
    }

    /// The areas of all dies, where they are given.
    fn given_silicon(&self) -> Option<Area> {
        let sum = self.dies.iter().map(|die| die.area * die.count).sum::<Area>();
        (!self.dies.is_empty()).then_some(sum)
    }

    /// The physics of a design made so: its energies are those of its process, but for those that
    /// are given.
    ///
    /// # Errors
    /// A clock that no supply reaches.
    pub fn physics(&self, design: &Design, physics: &Physics) -> Result<Physics, Unbuildable> {
        let found = self.chip(design, physics).in_process(physics, &self.technology)?;
        let GivenEnergies { hbm_fj, network_fj_per_byte, static_uw_per_mm2 } = self.energies;
        Ok(Physics {
            hbm_fj: hbm_fj.unwrap_or(found.hbm_fj),
            network_fj_per_byte: network_fj_per_byte.unwrap_or(found.network_fj_per_byte),
            static_uw_per_mm2: static_uw_per_mm2.unwrap_or(found.static_uw_per_mm2),
            ..found
        })
    }

    /// The accelerator that a design made so is, in those physics.
    ///
    /// # Errors
    /// An edge that no die has, a buffer that holds no tile.
    pub fn accelerator(
        &self,
        design: Design,
        physics: &Physics,
    ) -> Result<Accelerator, Unbuildable> {
        let (chip, technology) = (self.chip(&design, physics), &self.technology);
        let area = match self.given_silicon() {
            Some(dies) => AreaBreakdown::of_whole(dies),
            None => {
                DieArea::of(&chip, technology).ok_or_else(|| no_die(&chip, technology))?.breakdown()
            }
        };
        Accelerator::with_area(design, physics, area)
    }
}
