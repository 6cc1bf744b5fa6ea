//! What a chip costs to make, to buy and to own.

use super::Chip;
use super::OffChipMemory;
use crate::hardware::network::Level;
use crate::hardware::network::Network;
use crate::hardware::technology::Constant;
use crate::hardware::technology::MemoryConstant;
use crate::hardware::technology::Technology;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Money;
use crate::units::Power;

/// Dies of one kind in a package.
#[derive(Clone, Copy, Debug)]
pub struct DieLot<'a> {
    /// Of each.
    pub area: Area,
    /// How many.
    pub count: u64,
    /// What they are made in.
    pub technology: &'a Technology,
    /// Whether they stand on the interposer, instead of on another die.
    pub on_interposer: bool,
}

/// What is put together to a chip.
#[derive(Clone, Copy, Debug)]
pub struct Package<'a> {
    /// The dies.
    pub dies: &'a [DieLot<'a>],
    /// Around them.
    pub memory: OffChipMemory,
}

/// Where the money for one chip goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChipCost {
    /// Good dies.
    pub dies: Money,
    /// Off-chip memory.
    pub memory: Money,
    /// Interposer and package.
    pub packaging: Money,
    /// Test and assembly.
    pub test: Money,
}

/// How links are wired, which decides what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkTier {
    /// Copper of a torus, or switches inside a node.
    ScaleUp,
    /// A switched network over many chips.
    ScaleOut,
}

/// What one chip costs over its years in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// Made, or bought.
    pub chip: Money,
    /// Its share of masks and design; a buyer pays them with the chip.
    pub masks_and_design: Money,
    /// Its share of a host.
    pub host: Money,
    /// The network that its links need.
    pub links: Money,
    /// Building and cooling.
    pub building: Money,
    /// Electricity.
    pub energy: Money,
}

impl LinkTier {
    /// How so many GB/s of links are wired in a network, and the cards that leave a node: links of a
    /// torus or inside a node are scaled up, a flat network and what is between nodes is switched.
    pub fn of_network(network: &Network, links_gb_per_s: u64) -> Vec<(u64, Self)> {
        let Network::Levels(levels) = network else {
            return vec![(links_gb_per_s, Self::ScaleUp)];
        };
        let gb_per_s =
            |level: &Level| level.link.bandwidth.as_bytes_per_second().div_ceil(1_000_000_000);
        let beyond: Vec<(u64, Self)> =
            levels.levels().skip(1).map(|level| (gb_per_s(level), Self::ScaleOut)).collect();
        let nearest = if beyond.is_empty() { Self::ScaleOut } else { Self::ScaleUp };
        std::iter::once((links_gb_per_s, nearest)).chain(beyond).collect()
    }
}

/// π, in thousand-millionths.
const PI: u128 = 3_141_592_654;

impl DieLot<'_> {
    /// Millionths by which a good die takes more silicon than a die: the inverse of the yield,
    /// (1 + area · defects · critical / 3)³, rounded down in each of its three steps.
    pub fn silicon_per_good_die(&self) -> u128 {
        let of = |constant| self.technology.of(constant);
        // Micrometres² by defects per m² by thousandths: 10¹⁵, of which millionths are wanted.
        let spoilt = micrometres2(self.area) * of(Constant::Defects) * of(Constant::CriticalArea)
            / 3_000_000_000;
        let once = 1_000_000 + spoilt;
        once * once / 1_000_000 * once / 1_000_000
    }

    /// Cents of one good die, rounded up; `None` where it does not fit a wafer.
    ///
    /// A wafer of diameter d has π(d/2)²/A − πd/√(2A) dies of area A.
    pub fn cents(&self) -> Option<u128> {
        let of = |constant| self.technology.of(constant);
        let (area, diameter) = (micrometres2(self.area), of(Constant::WaferDiameter));
        let lost = diameter * (area / 2).isqrt();
        let usable = (diameter * diameter / 4).checked_sub(lost).filter(|usable| *usable > 0)?;
        let silicon = of(Constant::Wafer) * area * self.silicon_per_good_die();
        // Thousand-millionths of π against millionths of silicon.
        Some((silicon * 1000).div_ceil(usable * PI))
    }
}

impl ChipCost {
    /// A chip of a single die of that area; `None` where the die does not fit a wafer.
    pub fn of(chip: &Chip, die: Area, technology: &Technology) -> Option<Self> {
        let lot = DieLot { area: die, count: 1, technology, on_interposer: true };
        Self::of_package(&Package { dies: &[lot], memory: chip.memory }, technology)
    }

    /// A package of several dies; memory and packaging as `technology` says.
    pub fn of_package(package: &Package, technology: &Technology) -> Option<Self> {
        let of = |constant| technology.of(constant);
        let memory = technology.memory(package.memory.generation);
        let gib = u128::from(package.memory.size.0.div_ceil(Bytes::GIB.0));
        let memory_cents = gib * memory.of(MemoryConstant::Price);
        let mut dies = 0_u128;
        let mut standing = of(Constant::SiteArea) * u128::from(package.memory.sites);
        for lot in package.dies {
            dies = dies.checked_add(lot.cents()?.checked_mul(u128::from(lot.count))?)?;
            if lot.on_interposer {
                standing += u128::from(lot.area.0) * u128::from(lot.count);
            }
        }
        // Square nanometres by millionths of a dollar per mm² by thousandths.
        let packaging = (standing * (1000 + of(Constant::InterposerMargin)))
            .checked_mul(of(Constant::Packaging))?
            .div_ceil(10_000_000_000_000_000_000);
        let sum = dies.checked_add(memory_cents)?.checked_add(packaging)?;
        let test = sum.checked_mul(of(Constant::TestAndAssembly))?.div_ceil(1000);
        Some(Self {
            dies: money(dies)?,
            memory: money(memory_cents)?,
            packaging: money(packaging)?,
            test: money(test)?,
        })
    }

    /// Each part with the name a reader knows it by.
    pub fn parts(&self) -> [(&'static str, Money); 4] {
        [
            ("dies", self.dies),
            ("off-chip memory", self.memory),
            ("packaging", self.packaging),
            ("test and assembly", self.test),
        ]
    }

    /// What it costs to make one.
    pub fn total(&self) -> Money {
        self.parts().into_iter().map(|(_, money)| money).sum()
    }

    /// What a buyer pays for one, by the margin of the technology.
    pub fn bought(&self, technology: &Technology) -> Money {
        let kept = 1000 - technology.value(Constant::Margin).min(999);
        let cents = (u128::from(self.total().0) * 1000).div_ceil(u128::from(kept));
        within(cents)
    }
}

impl Ownership {
    /// Of a chip that its owner builds, that draws so much, and whose links are wired so.
    pub fn of_builder(
        cost: &ChipCost,
        tdp: Power,
        links: &[(u64, LinkTier)],
        technology: &Technology,
    ) -> Self {
        let of = |constant| technology.of(constant);
        let masks =
            (of(Constant::Masks) + of(Constant::DesignCost)).div_ceil(of(Constant::Volume).max(1));
        let bought = Self::of(cost.total(), tdp, links, technology);
        Self { masks_and_design: within(masks), ..bought }
    }

    /// The same of a chip that its owner buys.
    pub fn of_buyer(
        cost: &ChipCost,
        tdp: Power,
        links: &[(u64, LinkTier)],
        technology: &Technology,
    ) -> Self {
        Self::of(cost.bought(technology), tdp, links, technology)
    }

    fn of(chip: Money, tdp: Power, links: &[(u64, LinkTier)], technology: &Technology) -> Self {
        let of = |constant| technology.of(constant);
        let milliwatts = u128::from(tdp.0);
        let link = |&(gb_per_s, tier): &(u64, LinkTier)| {
            let price = match tier {
                LinkTier::ScaleUp => Constant::ScaleUpLink,
                LinkTier::ScaleOut => Constant::ScaleOutLink,
            };
            u128::from(gb_per_s) * of(price)
        };
        // Milliwatts by millionths of a dollar per watt.
        let building = (milliwatts * of(Constant::Building)).div_ceil(10_000_000);
        // Milliwatt-hours by millionths of a dollar per kWh.
        let energy = milliwatt_hours(tdp, technology)
            .saturating_mul(of(Constant::KilowattHour))
            .div_ceil(10_000_000_000);
        Self {
            chip,
            masks_and_design: Money::ZERO,
            host: within(of(Constant::Host)),
            links: within(links.iter().map(link).sum()),
            building: within(building),
            energy: within(energy),
        }
    }

    /// Each part with the name a reader knows it by.
    pub fn parts(&self) -> [(&'static str, Money); 6] {
        [
            ("chip", self.chip),
            ("masks and design", self.masks_and_design),
            ("host", self.host),
            ("links", self.links),
            ("building and cooling", self.building),
            ("electricity", self.energy),
        ]
    }

    /// All of them.
    pub fn total(&self) -> Money {
        self.parts().into_iter().map(|(_, money)| money).sum()
    }
}

/// What a chip takes from the grid in its years, with what its building takes for it.
pub(super) fn milliwatt_hours(tdp: Power, technology: &Technology) -> u128 {
    let of = |constant| technology.of(constant);
    let hours = 8760 * of(Constant::Years) * of(Constant::Utilisation);
    (u128::from(tdp.0) * hours).saturating_mul(of(Constant::Pue)) / 1_000_000_000
}

/// An area in square micrometres, rounded up.
fn micrometres2(area: Area) -> u128 {
    u128::from(area.0.div_ceil(1_000_000))
}

/// Cents, within what sums of several can count.
fn money(cents: u128) -> Option<Money> {
    u64::try_from(cents).ok().filter(|cents| *cents < 1 << 50).map(Money)
}

/// The same of what only an absurd technology could take beyond it.
fn within(cents: u128) -> Money {
    money(cents).unwrap_or(Money(1 << 50))
}
