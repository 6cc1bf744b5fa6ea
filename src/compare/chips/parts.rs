//! Real parts, at their own area, power and price, and what a winner is beside others.

use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::hardware::Physics;
use crate::hardware::Unbuildable;
use crate::hardware::chip::Carbon;
use crate::hardware::chip::ChipSpace;
use crate::hardware::chip::LinkTier;
use crate::hardware::chip::Making;
use crate::hardware::chip::OffChipMemory;
use crate::hardware::chip::Ownership;
use crate::hardware::chip::Package;
use crate::hardware::chip::PartFigures;
use crate::hardware::chip::PublishedFigures;
use crate::hardware::network::Network;
use crate::model::Precision;
use crate::search::Footprint;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipSetup;
use crate::search::chips::PartFacts;
use crate::search::chips::WinnerIs;
use crate::strategy::Standing;
use crate::units::Area;
use crate::units::Money;
use crate::units::Power;

use super::super::sensitivity::gain;

/// The built-in parts that every winner is compared with.
pub const USUAL_PARTS: [&str; 3] = ["h100-sxm", "b200", "tpuv4"];

/// A part that is not of the space, ready to be trained on.
#[derive(Clone, Debug)]
pub struct RealPart {
    /// What the user calls it.
    pub name: String,
    /// What it is, in a sentence.
    pub summary: String,
    /// The accelerator that it is.
    pub chip: Accelerator,
    /// In which numbers its matmuls compute: as those of the space, where it can.
    pub precision: Precision,
    /// Its physics, its own network among it; what software reaches is as of the searched chips.
    pub physics: Physics,
    /// What it takes.
    pub takes: Takes,
    /// The part in figures.
    pub facts: PartFacts,
}

/// What a chip takes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// Its silicon.
    pub silicon: Option<Area>,
    /// Its design power.
    pub tdp: Option<Power>,
    /// To make one.
    pub cost: Option<Money>,
    /// What objectives ask for.
    pub cents: Option<u64>,
    /// What objectives ask for.
    pub grams: Option<u64>,
}

/// How a part is described by its file.
#[derive(Clone, Copy, Debug)]
pub struct PartFile<'a> {
    /// What the user calls it, and what it is in a sentence.
    pub named: (&'a str, &'a str),
    /// Its knobs.
    pub design: Design,
    /// Its constants, in its process.
    pub physics: &'a Physics,
    /// How it is made, where that is known.
    pub making: Option<&'a Making>,
    /// What is public of it.
    pub published: &'a PublishedFigures,
    /// Whether its arrays compute in 8 bits.
    pub fp8: bool,
}

impl RealPart {
    /// A part among the chips of a space, whose software reaches what `base` says.
    ///
    /// # Errors
    /// Why it cannot be built.
    pub fn new(file: &PartFile, space: &ChipSpace, base: &Physics) -> Result<Self, Unbuildable> {
        let physics = Physics {
            efficiency: base.efficiency,
            calibrations: base.calibrations.clone(),
            efficiency_from: base.efficiency_from.clone(),
            ..file.physics.clone()
        };
        let chip = match file.making {
            Some(making) => making.accelerator(file.design, &physics)?,
            None => Accelerator::new(file.design, &physics)?,
        };
        let modelled = file.making.and_then(|making| {
            Some((making, making.figures(&file.design, &physics, file.published).ok()?))
        });
        let precision = if file.fp8 { space.precision } else { Precision::Bf16 };
        let published = file.published;
        let silicon = published.die.as_ref().map(|die| die.value);
        let tdp = published.tdp.as_ref().map(|tdp| tdp.value);
        let cost = published.cost.as_ref().map(|cost| cost.value);
        let price = published.price.as_ref().map(|price| price.value);
        let known = [
            ("silicon_mm2", silicon.is_some()),
            ("tdp_w", tdp.is_some()),
            ("cost_usd", cost.is_some()),
            ("price_usd", price.is_some()),
        ];
        let mut takes = Takes {
            silicon: silicon.or(modelled.map(|(_, figures)| figures.silicon)),
            tdp: tdp.or(modelled.map(|(_, figures)| figures.tdp.total())),
            cost: cost.or(modelled.map(|(_, figures)| figures.cost.total())),
            cents: None,
            grams: None,
        };
        if let Some((making, figures)) = modelled {
            let (cents, grams) = over_life(
                (making, &figures),
                making.memory(&file.design, &physics),
                (&takes, price),
                (space, &physics.network),
            );
            (takes.cents, takes.grams) = (Some(cents.0), Some(grams));
        }
        let public = known.iter().filter(|(_, is_public)| *is_public);
        let facts = PartFacts {
            name: file.named.0.to_owned(),
            peak_flops_per_s: chip.peak_in(precision) as f64,
            hbm_bytes: chip.design().hbm.0,
            hbm_bytes_per_s: chip.hbm_bandwidth().as_bytes_per_second(),
            silicon_mm2: takes.silicon.map(Area::square_millimetres),
            tdp_w: takes.tdp.map(Power::watts),
            cost_usd: takes.cost.map(Money::dollars),
            price_usd: price.map(Money::dollars),
            ownership_usd: takes.cents.map(|cents| Money(cents).dollars()),
            carbon_kg: takes.grams.map(|grams| grams as f64 / 1000.0),
            public: public.map(|(name, _)| (*name).to_owned()).collect(),
        };
        let name = file.named.0.to_owned();
        let summary = match (space.precision, precision) {
            (Precision::Fp8, Precision::Bf16) => {
                format!("{}; in bf16, it has no fp8", file.named.1)
            }
            _ => file.named.1.to_owned(),
        };
        Ok(Self { name, summary, chip, precision, physics, takes, facts })
    }
}

/// What a part costs and emits over its years in service, counted as the space counts chips: at what it
/// costs to make, or where chips are bought at what it is sold for.
fn over_life(
    (making, figures): (&Making, &PartFigures),
    memory: OffChipMemory,
    (takes, price): (&Takes, Option<Money>),
    (space, network): (&ChipSpace, &Network),
) -> (Money, u64) {
    let technology = space.technology(&making.technology);
    let tdp = takes.tdp.unwrap_or(figures.tdp.total());
    let tiers = LinkTier::of_network(network, making.links_gb_per_s);
    let mut owned = if space.bought {
        Ownership::of_buyer(&figures.cost, tdp, &tiers, &technology)
    } else {
        Ownership::of_builder(&figures.cost, tdp, &tiers, &technology)
    };
    let known = if space.bought { price } else { takes.cost };
    owned.chip = known.unwrap_or(owned.chip);
    let lots = making.lots(takes.silicon.unwrap_or(figures.silicon));
    let carbon = Carbon::of(&Package { dies: &lots, memory }, tdp, &technology);
    (owned.total(), carbon.total())
}

impl Takes {
    /// What a chip of the space takes; `None` where it cannot be made.
    pub fn of_chip(setup: &ChipSetup, point: &ChipPoint) -> Option<Self> {
        let knobs = setup.knobs(point);
        let figures = setup.figures(&knobs)?;
        let tdp = figures.tdp.total();
        Some(Self {
            silicon: Some(figures.die.total()),
            tdp: Some(tdp),
            cost: Some(figures.cost.total()),
            cents: Some(setup.ownership(&knobs, &figures).total().0),
            grams: Some(setup.carbon(&knobs, &figures).total()),
        })
    }

    /// What an objective asks for, where that is known.
    pub fn footprint(&self, objective: Objective) -> Option<Footprint> {
        let area = self.silicon.unwrap_or(Area::ZERO);
        let (cents, grams) = (self.cents.unwrap_or(0), self.grams.unwrap_or(0));
        let known = match objective {
            Objective::Throughput | Objective::EnergyPerToken => true,
            Objective::ThroughputPerArea => self.silicon.is_some(),
            Objective::CostPerToken => self.cents.is_some(),
            Objective::CarbonPerToken => self.grams.is_some(),
        };
        known.then_some(Footprint { area, cents, grams })
    }
}

/// Something that trains, and what it takes.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    /// By model.
    pub standings: &'a [Standing],
    /// What one of its chips takes.
    pub takes: Takes,
}

/// How many times better a winner is than something else on as many devices.
pub fn winner_is(judge: &Judge, winner: &Beside, other: &Beside) -> WinnerIs {
    let time = |standing: Standing, _: Area| standing.time.0 as f64;
    let faster = gain(other.standings, Area::ZERO, winner.standings, Area::ZERO, &time);
    let per = |ours: Option<u64>, theirs: Option<u64>| {
        Some(faster * (theirs? as f64) / (ours.filter(|ours| *ours > 0)? as f64))
    };
    let (ours, theirs) = (&winner.takes, &other.takes);
    let by_objective = || {
        let (ours, theirs) = (ours.footprint(judge.objective)?, theirs.footprint(judge.objective)?);
        let logs = other.standings.iter().zip(winner.standings).map(|(&before, &after)| {
            let cost = |standing, taken| Judge::cost(judge.objective, standing, taken);
            (cost(before, theirs) / cost(after, ours)).ln()
        });
        Some((logs.sum::<f64>() / other.standings.len() as f64).exp())
    };
    WinnerIs {
        by_objective: by_objective(),
        faster,
        at_equal_area: per(ours.silicon.map(|a| a.0), theirs.silicon.map(|a| a.0)),
        at_equal_power: per(ours.tdp.map(|p| p.0), theirs.tdp.map(|p| p.0)),
        at_equal_cost: per(ours.cost.map(|m| m.0), theirs.cost.map(|m| m.0)),
    }
}
