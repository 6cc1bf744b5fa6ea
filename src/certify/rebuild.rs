//! From the request alone to all that an answer is judged by: models and their shares, the
//! physics, every design. This is the one place that knows how a request is spelled.

use crate::compare::References;
use crate::estimate::VectorCosts;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::Cluster;
use crate::hardware::DesignGrid;
use crate::hardware::Physics;
use crate::hardware::Unbuildable;
use crate::model::Attention;
use crate::model::Model;
use crate::model::Optimizer;
use crate::model::Precision;
use crate::model::Stack;
use crate::model::op::Op;
use crate::parallel::Setting;
use crate::parallel::shard;
use crate::plan::StrategySpace;
use crate::plan::schedule::Rule;
use crate::search::Judge;
use crate::search::ModelFacts;
use crate::search::Request;
use crate::search::Stake;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Flops;

use super::boxes::designs::listed;
use super::claims::FalseClaim;
use super::divide::Asked;
use super::divide::Divided;

/// The most layers of a model that a search places.
const MOST_LAYERS: usize = 2000;

/// A request made ready to judge its answer.
pub struct Question {
    /// As it was asked.
    pub request: Request,
    /// What is trained.
    pub models: Vec<Trained>,
    /// The constants of every design.
    pub physics: Physics,
    /// The designs that have a row, in the published order.
    pub candidates: Vec<Candidate>,
    /// By design.
    pub areas: Vec<Area>,
    /// The first design of the space, where it has designs.
    pub first: Option<Candidate>,
    /// How many designs the space has.
    pub n_designs: usize,
    /// Cycles of vector work.
    pub vector_costs: VectorCosts,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// What winners are compared with.
    pub references: References,
    /// In which numbers matmuls compute.
    pub precision: Precision,
}

/// A model of a request.
pub struct Trained {
    /// What the user calls it.
    pub name: String,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// How much it counts beside others.
    pub weight: f64,
    /// Parameters, each once.
    pub parameters: u64,
    /// Operations of training one sequence, nothing computed twice.
    pub flops_per_sequence: Flops,
    /// The model itself.
    pub model: Model,
    /// Every way to divide it that the request allows.
    pub divisions: Vec<Divided>,
}

impl Question {
    /// Makes a request ready, whose figures were seen to make sense, or says why it could not have
    /// been asked; `models` are those that it names, in order.
    pub fn new(
        request: &Request,
        models: &[Model],
        physics: Physics,
        references: References,
    ) -> Result<Self, String> {
        let (first, count) = request.space.count(&physics);
        if first.is_none() {
            return Err("request.space: holds no design".into());
        }
        let n_designs = usize::try_from(count.designs).map_err(|_| "request.space: too large")?;
        let lists_all = request.lists_all();
        let candidates = if lists_all { request.space.designs(&physics).0 } else { Vec::new() };
        let of = (request, Precision::Bf16);
        let question = Self::of_request(of, models, physics, references)?;
        let question = Self { first, n_designs, ..question };
        question.with_rows(candidates).map_err(|reason| format!("request.space: {reason}"))
    }

    /// The same about the designs that a designs.csv has rows of, where it has not one for every design.
    ///
    /// # Errors
    /// The first row that is about no design of the space.
    pub fn listing(self, cells: &[Vec<String>]) -> Result<Self, FalseClaim> {
        if self.request.lists_all() {
            return Ok(self);
        }
        let candidates = listed(&self, cells)?;
        let cannot = |reason: Unbuildable| FalseClaim::new("designs.csv", "a design", reason);
        self.with_rows(candidates).map_err(cannot)
    }

    fn with_rows(self, candidates: Vec<Candidate>) -> Result<Self, Unbuildable> {
        let area = |candidate: &Candidate| {
            candidate.build(candidate.design.hbm, &self.physics).map(|chip| chip.total_area())
        };
        let areas: Vec<Area> = candidates.iter().map(area).collect::<Result<_, _>>()?;
        Ok(Self { candidates, areas, ..self })
    }

    /// The grid of the space.
    pub fn grid(&self) -> DesignGrid {
        DesignGrid::new(&self.request.space).expect("the request was seen to have a grid")
    }

    /// The same without any design: those that are judged are told when they are.
    pub fn of_request(
        (request, precision): (&Request, Precision),
        models: &[Model],
        physics: Physics,
        references: References,
    ) -> Result<Self, String> {
        let element = Bytes(physics.element_bytes);
        let trained = request.models.iter().zip(models);
        let trained: Result<Vec<Trained>, String> = trained
            .map(|(asked, model)| {
                let named = |problem: String| format!("{}: {problem}", asked.name);
                let space = &request.strategies;
                let place = (element, physics.efficiency.stack(precision));
                let of_request = of_request(request, model, asked.sequence, space, place);
                Trained::new(&asked.name, asked.weight, &of_request, &physics).map_err(named)
            })
            .collect();
        Ok(Self {
            models: trained?,
            areas: Vec::new(),
            candidates: Vec::new(),
            first: None,
            n_designs: 0,
            vector_costs: request.vector_costs,
            rule: request.rule,
            optimizer: request.optimizer,
            references,
            physics,
            precision,
            request: request.clone(),
        })
    }

    /// A design that has a row with one of the sizes of off-chip memory.
    pub fn chip(&self, design: usize, hbm: usize) -> Accelerator {
        self.chip_of(&self.candidates[design], hbm)
    }

    /// Any design with one of the sizes of off-chip memory.
    pub fn chip_of(&self, candidate: &Candidate, hbm: usize) -> Accelerator {
        let size = Bytes::GIB * self.request.space.hbm_gib[hbm];
        let chip = candidate.build(size, &self.physics);
        chip.expect("sizes of memory are within their range, and the design was built before")
    }

    /// How many sizes of off-chip memory there are.
    pub fn n_sizes(&self) -> usize {
        self.request.space.hbm_gib.len()
    }

    /// What the request asks of a model.
    pub fn asked(&self, model: usize) -> Asked<'_> {
        self.asked_from(model, &self.request.strategies)
    }

    /// The same where strategies are chosen from another space.
    pub fn asked_from<'a>(&'a self, model: usize, space: &'a StrategySpace) -> Asked<'a> {
        let Trained { model, sequence, .. } = &self.models[model];
        let physics = &self.physics;
        let place = (Bytes(physics.element_bytes), physics.efficiency.stack(self.precision));
        of_request(&self.request, model, *sequence, space, place)
    }

    /// So many of the devices and the network between them.
    pub fn cluster(&self, devices: u64) -> Cluster {
        Cluster { devices, network: self.physics.reached_network() }
    }

    /// How designs are judged, each model's own best as the answer tells it.
    pub fn judge(&self, facts: &[ModelFacts]) -> Judge {
        let sequences = self.request.global_batch as f64;
        let stakes = self.models.iter().zip(facts).map(|(model, facts)| Stake {
            weight: model.weight,
            sequences,
            tokens: sequences * model.sequence as f64,
            own_best: facts.own_best_cost,
        });
        Judge {
            objective: self.request.objective,
            combine: self.request.combine,
            stakes: stakes.collect(),
            devices_per_second: 1.0,
        }
    }
}

fn of_request<'a>(
    request: &Request,
    model: &'a Model,
    sequence: u64,
    space: &'a StrategySpace,
    (element, stack): (Bytes, Stack),
) -> Asked<'a> {
    Asked {
        model,
        sequence,
        devices: request.devices,
        global_batch: request.global_batch,
        space,
        attention: request.attention,
        masked: request.masked,
        element,
        stack,
        optimizer: request.optimizer,
        time_model: request.time_model,
        reserve_per_mille: request.reserve_per_mille,
    }
}

impl Trained {
    fn new(name: &str, weight: f64, asked: &Asked, physics: &Physics) -> Result<Self, String> {
        let model = asked.model;
        if model.sequence.len() > MOST_LAYERS {
            return Err(format!("more than {MOST_LAYERS} layers cannot be placed"));
        }
        Ok(Self {
            name: name.to_owned(),
            sequence: asked.sequence,
            weight,
            parameters: model.parameters(),
            flops_per_sequence: flops_per_sequence(model, asked.sequence)?,
            divisions: asked.divisions(physics.network.scopes(asked.devices))?,
            model: model.clone(),
        })
    }
}

/// Operations of training one sequence, nothing computed twice.
pub fn flops_per_sequence(model: &Model, sequence: u64) -> Result<Flops, String> {
    let setting = Setting {
        micro_batch: 1,
        sequence,
        tensor_parallel: 1,
        sequence_parallel: false,
        attention: Attention::Recomputed,
        element: Bytes(2),
        ..Setting::ALONE
    };
    let share = shard(model, setting).map_err(|reason| reason.to_string())?;
    let layers = share.sequence.iter().map(|&kind| &share.kinds[kind]);
    let ops = layers.flat_map(|layer| layer.forward.nodes().iter().chain(layer.backward.nodes()));
    Ok(ops.map(Op::flops).sum())
}
