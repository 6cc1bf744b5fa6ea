//! A request made ready: models divided in every way, designs listed, physics settled.

use super::Objective;
use super::Request;
use crate::estimate::Options;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::Cluster;
use crate::hardware::DesignGrid;
use crate::hardware::Physics;
use crate::hardware::Rejections;
use crate::model::Model;
use crate::model::Precision;
use crate::plan::Basis;
use crate::strategy::Chosen;
use crate::strategy::Price;
use crate::strategy::Rates;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::Untrainable;
use crate::units::Area;
use crate::units::Bytes;

/// All that a search needs, worked out once.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The question.
    pub request: Request,
    /// The constants of every design.
    pub physics: Physics,
    /// What may be chosen on each chip, and how it is counted.
    pub terms: Terms,
    /// What is trained.
    pub trainings: Vec<Training>,
    /// The designs that have a row in the table, in the published order: all of them where all are listed,
    /// else none before the search and those that it evaluated after it.
    pub candidates: Vec<Candidate>,
    /// By design.
    pub areas: Vec<Area>,
    /// The first design of the space, whether or not it has a row.
    pub first: Candidate,
    /// What the grid of knobs held besides.
    pub rejections: Rejections,
}

/// The most combinations of knobs and sizes of memory in a space: each is looked at to count designs, and where
/// all of these are listed, what is known of each stays in memory, about a kilobyte.
const MOST_POINTS: u64 = 1 << 23;

/// Why a request makes no sense before anything is searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Senseless {
    /// A model cannot be trained in the given setting at all.
    #[error("{model}: {reason}")]
    Setting {
        /// Which model.
        model: String,
        /// Why.
        reason: Untrainable,
    },
    /// The space holds no design.
    #[error(
        "the space holds no design: of {} points {} are larger than the area limit, {} smaller than \
         the least area, {} cannot be built; widen a knob or an area limit", .0.points,
        .0.too_large, .0.too_small, .0.unbuildable
    )]
    NoDesign(Rejections),
    /// The space holds more points than are counted.
    #[error(
        "the space holds {} points; searched are at most {MOST_POINTS}: give fewer values to a knob",
        .points.map_or("more than 2^64".into(), |points| points.to_string())
    )]
    TooManyPoints {
        /// How many it holds; `None` beyond 64 bits.
        points: Option<u64>,
    },
    /// There is nothing to train.
    #[error("there is no model; give at least one")]
    NoModel,
}

impl Setup {
    /// Makes a request ready; `models` are those that it names, in order.
    pub fn new(request: Request, models: Vec<Model>, physics: Physics) -> Result<Self, Senseless> {
        if models.is_empty() {
            return Err(Senseless::NoModel);
        }
        let sizes = request.space.hbm_gib.len() as u64;
        let points = request.space.points().and_then(|points| points.checked_mul(sizes));
        if points.is_none_or(|points| points > MOST_POINTS) {
            return Err(Senseless::TooManyPoints { points });
        }
        if DesignGrid::new(&request.space).is_none() {
            return Err(Senseless::TooManyPoints { points });
        }
        let (candidates, first, rejections) = if request.lists_all() {
            let (candidates, rejections) = request.space.designs(&physics);
            let first = candidates.first().copied();
            (candidates, first, rejections)
        } else {
            let (first, rejections) = request.space.count(&physics);
            (Vec::new(), first, rejections)
        };
        let Some(first) = first else { return Err(Senseless::NoDesign(rejections)) };
        let areas = areas(&candidates, &physics);
        let terms = terms(&request, &physics, Precision::Bf16);
        let trainings = models.into_iter().zip(&request.models).map(|(model, asked)| {
            let training = Training::new(&asked.name, model, asked.sequence, &terms);
            training.map_err(|reason| Senseless::Setting { model: asked.name.clone(), reason })
        });
        let trainings = trainings.collect::<Result<_, _>>()?;
        Ok(Self { request, physics, terms, trainings, candidates, areas, first, rejections })
    }

    /// The sizes of off-chip memory, in the order of the request.
    pub fn hbm_sizes(&self) -> Vec<Bytes> {
        self.request.space.hbm_gib.iter().map(|&gib| Bytes::GIB * gib).collect()
    }

    /// The grid of the space.
    pub fn grid(&self) -> DesignGrid {
        DesignGrid::new(&self.request.space).expect("the space was seen to have a grid")
    }

    /// The same with rows for these designs.
    #[must_use]
    pub fn listing(&self, candidates: Vec<Candidate>) -> Self {
        let areas = areas(&candidates, &self.physics);
        Self { candidates, areas, ..self.clone() }
    }

    /// A design that has a row with one of the sizes of off-chip memory.
    pub fn chip(&self, candidate: usize, hbm: usize) -> Accelerator {
        self.chip_of(&self.candidates[candidate], hbm)
    }

    /// Any design of the space with one of the sizes of off-chip memory.
    pub fn chip_of(&self, candidate: &Candidate, hbm: usize) -> Accelerator {
        let size = Bytes::GIB * self.request.space.hbm_gib[hbm];
        let chip = candidate.build(size, &self.physics);
        chip.expect("a design of a space can be built with every size of memory")
    }
}

fn areas(candidates: &[Candidate], physics: &Physics) -> Vec<Area> {
    let built = |candidate: &Candidate| candidate.build(candidate.design.hbm, physics);
    let chips = candidates.iter().map(built);
    chips.map(|chip| chip.expect("a design of a space can be built").total_area()).collect()
}

impl Setup {
    /// What a way to train one of the models amounts to.
    pub fn rates(&self, model: usize, peak_flops_per_second: u128, chosen: &Chosen) -> Rates {
        Rates::of(&self.terms, &self.trainings[model], peak_flops_per_second, chosen)
    }
}

/// What a request lets be chosen, in the physics that it names, where matmuls compute in these numbers.
pub(super) fn terms<S>(request: &Request<S>, physics: &Physics, precision: Precision) -> Terms {
    Terms {
        design: request.hardware.name.clone(),
        cluster: Cluster { devices: request.devices, network: physics.reached_network() },
        global_batch: request.global_batch,
        space: request.strategies.clone(),
        reserve_per_mille: request.reserve_per_mille,
        attention: request.attention,
        masked: request.masked,
        element: Bytes(physics.element_bytes),
        stack: physics.efficiency.stack(precision),
        optimizer: request.optimizer,
        time_model: request.time_model,
        rule: request.rule,
        options: Options { vector_costs: request.vector_costs, ..Options::default() },
        price: match request.objective {
            Objective::EnergyPerToken => Price::Energy,
            _ => Price::Time,
        },
        power_cap_w: request.power_cap_w,
        basis: Basis::of_another(physics),
    }
}
