//! A request over chips made ready: the grid, the base of all physics, the models.

use std::sync::Arc;

use crate::hardware::Physics;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::Carbon;
use crate::hardware::chip::ChipFigures;
use crate::hardware::chip::ChipGrid;
use crate::hardware::chip::ChipKnobs;
use crate::hardware::chip::ChipSpace;
use crate::hardware::chip::Classes;
use crate::hardware::chip::DieLot;
use crate::hardware::chip::Kin;
use crate::hardware::chip::LinkTier;
use crate::hardware::chip::OverBudget;
use crate::hardware::chip::Ownership;
use crate::hardware::chip::Package;
use crate::hardware::network::Network;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Technology;
use crate::model::Model;
use crate::search::Footprint;
use crate::search::Objective;
use crate::search::Request;
use crate::search::setup::terms;
use crate::strategy::Terms;

use super::ChipPoint;

/// All that a search over chips needs, worked out once.
#[derive(Clone, Debug)]
pub struct ChipSetup {
    /// The question.
    pub request: Request<ChipSpace>,
    /// What is trained, in the order of the request.
    pub models: Vec<Model>,
    /// What no knob decides; its network only says how long messages take.
    pub physics: Physics,
    /// The chips.
    pub grid: ChipGrid,
    /// The network of every value of the links.
    networks: Vec<Network>,
    /// Arrays that are alike.
    classes: Arc<Classes>,
}

/// Why a request over chips makes no sense before anything is searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChip {
    /// There is nothing to train.
    #[error("there is no model; give at least one")]
    NoModel,
    /// A knob without values, or memory that nobody makes.
    #[error("the space of chips is not complete")]
    Incomplete,
    /// Sides that no torus has.
    #[error("{0}")]
    Network(String),
    /// Even the smallest chip takes too much.
    #[error("no chip of the space keeps within the budget: of the smallest one {reason}{enough}")]
    Budget {
        /// Why it does not.
        reason: OverBudget,
        /// What would do.
        enough: String,
    },
    /// More chips than can be counted.
    #[error("the space has {0} chips; at most {max} can be told apart: give fewer values", max = u64::MAX)]
    TooMany(String),
}

impl ChipSetup {
    /// Makes a request ready; `models` are those that it names, in order, and `technology` is that of
    /// its process.
    ///
    /// # Errors
    /// Why it makes no sense.
    pub fn new(
        request: Request<ChipSpace>,
        models: Vec<Model>,
        physics: Physics,
        technology: &Technology,
    ) -> Result<Self, NoChip> {
        if models.is_empty() {
            return Err(NoChip::NoModel);
        }
        let points = request.space.points();
        if points > u128::from(u64::MAX) {
            return Err(NoChip::TooMany(points.to_string()));
        }
        let grid = ChipGrid::new(&request.space, technology).ok_or(NoChip::Incomplete)?;
        let smallest = grid.chip(&[0; CHIP_KNOBS.len()]).chip(&grid.technology);
        grid.budget.check(&smallest, &grid.technology).map_err(|reason| {
            let figures = ChipFigures::of(&smallest, &grid.technology);
            NoChip::Budget { reason, enough: enough(figures.ok()) }
        })?;
        let latency = physics.network.slowest_link().latency;
        let links = grid.values(LINKS).iter();
        let networks =
            links.map(|&links| request.space.network.of(links, request.devices, latency));
        let networks = networks.collect::<Result<_, _>>();
        let networks = networks.map_err(|reason| NoChip::Network(reason.to_string()))?;
        Ok(Self { request, models, physics, grid, networks, classes: Arc::default() })
    }

    /// The arrays of the chip at a point, as some of those that are alike.
    pub fn kin(&self, point: &ChipPoint) -> Kin {
        self.classes.of(&self.grid, point)
    }

    /// A point with each of these arrays.
    pub fn with_each(&self, kin: Kin, point: &ChipPoint) -> Vec<ChipPoint> {
        self.classes.each(&self.grid, kin, point)
    }

    /// The chip at a point.
    pub fn knobs(&self, point: &ChipPoint) -> ChipKnobs {
        self.grid.chip(point)
    }

    /// The network between chips whose links stand at that place of their list.
    pub fn network(&self, links: usize) -> Network {
        self.networks[links]
    }

    /// What no knob decides, with the network of such links.
    pub fn physics_with(&self, links: usize) -> Physics {
        Physics { network: self.networks[links], ..self.physics.clone() }
    }

    /// What the request lets be chosen, in physics with a network of their own.
    pub(super) fn terms(&self, physics: &Physics) -> Terms {
        terms(&self.request, physics, self.request.space.precision)
    }

    /// What a chip takes, whether or not the budget allows it; `None` where it cannot be made.
    pub fn figures(&self, chip: &ChipKnobs) -> Option<ChipFigures> {
        ChipFigures::of(&chip.chip(&self.grid.technology), &self.grid.technology).ok()
    }

    /// What one chip costs over its years in service.
    pub fn ownership(&self, chip: &ChipKnobs, figures: &ChipFigures) -> Ownership {
        let network = &self.networks[0];
        let tiers = LinkTier::of_network(network, chip.links_gb_per_s);
        let of =
            if self.request.space.bought { Ownership::of_buyer } else { Ownership::of_builder };
        of(&figures.cost, figures.tdp.total(), &tiers, &self.grid.technology)
    }

    /// What making and using one chip emits.
    pub fn carbon(&self, chip: &ChipKnobs, figures: &ChipFigures) -> Carbon {
        let technology = &self.grid.technology;
        let area = figures.die.total();
        let lot = DieLot { area, count: 1, technology, on_interposer: true };
        let package = Package { dies: &[lot], memory: chip.chip(technology).memory };
        Carbon::of(&package, figures.tdp.total(), technology)
    }

    /// All that the objective asks of a chip; `None` where it cannot be made.
    pub fn footprint(&self, chip: &ChipKnobs) -> Option<Footprint> {
        self.footprint_for(self.request.objective, chip)
    }

    /// The same of another objective.
    pub fn footprint_for(&self, objective: Objective, chip: &ChipKnobs) -> Option<Footprint> {
        let figures = self.figures(chip)?;
        let cents = || self.ownership(chip, &figures).total().0;
        let grams = || self.carbon(chip, &figures).total();
        Some(Footprint {
            area: figures.die.total(),
            cents: if objective.needs_technology() { cents() } else { 0 },
            grams: if objective.needs_technology() { grams() } else { 0 },
        })
    }

    /// Devices for each second in which one of them is in service.
    pub fn devices_per_second(&self) -> f64 {
        let value = |constant| self.grid.technology.value(constant) as f64 / 1000.0;
        let hours = value(Constant::Years) * 8760.0 * value(Constant::Utilisation);
        self.request.devices as f64 / (hours * 3600.0)
    }
}

/// The place of the links among the knobs.
pub(super) const LINKS: usize = 9;

/// The place of the stacks of memory among the knobs.
pub(super) const STACKS: usize = 8;

fn enough(figures: Option<ChipFigures>) -> String {
    let Some(figures) = figures else { return String::new() };
    format!(
        "; it takes {:.1} mm², {:.1} W and {:.2} dollars",
        figures.die.total().square_millimetres(),
        figures.tdp.total().watts(),
        figures.cost.total().dollars()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_knobs_are_those_of_the_table() {
        assert_eq!(CHIP_KNOBS[LINKS].name, "links");
        assert_eq!(CHIP_KNOBS[STACKS].name, "stacks");
    }
}
