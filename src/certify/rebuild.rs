//! From the request alone to all that an answer is judged by: models and their shares, the
//! physics, every design. This is the one place that knows how a request is spelled.

use crate::compare::References;
use crate::estimate::VectorCosts;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::Cluster;
use crate::hardware::Physics;
use crate::model::Attention;
use crate::model::Model;
use crate::model::Optimizer;
use crate::model::op::Op;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::legal_widths;
use crate::parallel::shard;
use crate::plan::schedule::Rule;
use crate::search::Judge;
use crate::search::ModelFacts;
use crate::search::Request;
use crate::search::Stake;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Flops;

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
    /// The devices and the network between them; after all devices, those of one node, to which a
    /// plan may confine itself.
    pub clusters: Vec<Cluster>,
    /// The designs, in the published order.
    pub candidates: Vec<Candidate>,
    /// By design.
    pub areas: Vec<Area>,
    /// Cycles of vector work.
    pub vector_costs: VectorCosts,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// What winners are compared with.
    pub references: References,
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
    /// What one device does, for each legal width and micro-batch.
    pub shares: Vec<Share>,
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
        let (candidates, _) = request.space.designs(&physics);
        if candidates.is_empty() {
            return Err("request.space: holds no design".into());
        }
        let area = |candidate: &Candidate| {
            candidate.build(candidate.design.hbm, &physics).map(|chip| chip.total_area())
        };
        let areas: Result<Vec<Area>, _> = candidates.iter().map(area).collect();
        let element = Bytes(physics.element_bytes);
        let trained = request.models.iter().zip(models);
        let trained: Result<Vec<Trained>, String> = trained
            .map(|(asked, model)| {
                let named = |problem: String| format!("{}: {problem}", asked.name);
                Trained::new(request, model, asked.sequence, asked.weight, element)
                    .map(|trained| Trained { name: asked.name.clone(), ..trained })
                    .map_err(named)
            })
            .collect();
        Ok(Self {
            models: trained?,
            clusters: physics
                .network
                .scopes(request.devices)
                .into_iter()
                .map(|devices| Cluster { devices, network: physics.network })
                .collect(),
            areas: areas.map_err(|reason| format!("request.space: {reason}"))?,
            candidates,
            vector_costs: request.vector_costs,
            rule: request.rule,
            optimizer: request.optimizer,
            references,
            physics,
            request: request.clone(),
        })
    }

    /// A design with one of the sizes of off-chip memory.
    pub fn chip(&self, design: usize, hbm: usize) -> Accelerator {
        let size = Bytes::GIB * self.request.space.hbm_gib[hbm];
        let chip = self.candidates[design].build(size, &self.physics);
        chip.expect("sizes of memory are within their range, and the design was built before")
    }

    /// How many sizes of off-chip memory there are.
    pub fn n_sizes(&self) -> usize {
        self.request.space.hbm_gib.len()
    }

    /// The share of a model at a width and micro-batch, where the request has it.
    pub fn share(&self, model: usize, width: u64, micro_batch: u64) -> Option<&Share> {
        self.models[model].shares.iter().find(|share| {
            (share.setting.tensor_parallel, share.setting.micro_batch) == (width, micro_batch)
        })
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
        }
    }
}

impl Trained {
    fn new(
        request: &Request,
        model: &Model,
        sequence: u64,
        weight: f64,
        element: Bytes,
    ) -> Result<Self, String> {
        if model.sequence.len() > MOST_LAYERS {
            return Err(format!("more than {MOST_LAYERS} layers cannot be placed"));
        }
        let legal = legal_widths(&model.spec);
        let mut shares = Vec::new();
        let may_be = |width: &&u64| legal.contains(width) && **width <= request.devices;
        for &width in request.tensor_parallel.iter().filter(may_be) {
            for &micro_batch in &request.micro_batches {
                let setting = Setting {
                    micro_batch,
                    sequence,
                    tensor_parallel: width,
                    sequence_parallel: request.sequence_parallel && width > 1,
                    attention: request.attention,
                    element,
                    ..Setting::ALONE
                };
                shares.push(shard(model, setting).map_err(|reason| reason.to_string())?);
            }
        }
        if shares.is_empty() {
            return Err("none of the tensor-parallel widths divides it".into());
        }
        Ok(Self {
            name: String::new(),
            sequence,
            weight,
            parameters: model.parameters(),
            flops_per_sequence: flops_per_sequence(model, sequence)?,
            shares,
        })
    }

    /// The widths of its shares, each once.
    pub fn widths(&self) -> Vec<u64> {
        let mut widths: Vec<u64> =
            self.shares.iter().map(|share| share.setting.tensor_parallel).collect();
        widths.dedup();
        widths
    }
}

/// Operations of training one sequence, nothing computed twice.
pub fn flops_per_sequence(model: &Model, sequence: u64) -> Result<Flops, String> {
    let setting = Setting {
        micro_batch: 1,
        sequence,
        tensor_parallel: 1,
        sequence_parallel: false,
        attention: Attention::Stored,
        element: Bytes(2),
        ..Setting::ALONE
    };
    let share = shard(model, setting).map_err(|reason| reason.to_string())?;
    let layers = share.sequence.iter().map(|&kind| &share.kinds[kind]);
    let ops = layers.flat_map(|layer| layer.forward.nodes().iter().chain(layer.backward.nodes()));
    Ok(ops.map(Op::flops).sum())
}
