//! A request made ready: models divided in every way, designs listed, physics settled.

use super::Chosen;
use super::Request;
use super::training::Division;
use super::training::Training;
use crate::estimate::Options;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::hardware::Cluster;
use crate::hardware::Physics;
use crate::hardware::Rejections;
use crate::model::Attention;
use crate::model::Model;
use crate::model::Optimizer;
use crate::model::op::Op;
use crate::parallel::Illegal;
use crate::parallel::Setting;
use crate::parallel::legal_widths;
use crate::parallel::shard;
use crate::plan::schedule::Rule;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Flops;

/// All that a search needs, worked out once.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The question.
    pub request: Request,
    /// The constants of every design.
    pub physics: Physics,
    /// The devices and the network between them.
    pub cluster: Cluster,
    /// What is trained.
    pub trainings: Vec<Training>,
    /// The designs, in the published order.
    pub candidates: Vec<Candidate>,
    /// By design.
    pub areas: Vec<Area>,
    /// What the grid of knobs held besides.
    pub rejections: Rejections,
    /// What estimates depend on.
    pub options: Options,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
}

/// Why a request makes no sense before anything is searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Senseless {
    /// A model cannot be trained in the given setting at all.
    #[error("{model}: {reason}")]
    Setting {
        /// Which model.
        model: String,
        /// Why.
        reason: Illegal,
    },
    /// None of the widths divides the model.
    #[error(
        "{model}: none of the tensor-parallel widths {asked:?} divides it; legal are {legal:?}"
    )]
    NoWidth {
        /// Which model.
        model: String,
        /// What was asked for.
        asked: Vec<u64>,
        /// What would do.
        legal: Vec<u64>,
    },
    /// The space holds no design.
    #[error(
        "the space holds no design: of {} points {} are larger than the area limit, {} smaller than \
         the least area, {} cannot be built; widen a knob or an area limit", .0.points,
        .0.too_large, .0.too_small, .0.unbuildable
    )]
    NoDesign(Rejections),
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
        let (candidates, rejections) = request.space.designs(&physics);
        if candidates.is_empty() {
            return Err(Senseless::NoDesign(rejections));
        }
        let areas = candidates
            .iter()
            .map(|candidate| {
                let chip = candidate.build(candidate.design.hbm, &physics);
                chip.expect("a design of a space can be built").total_area()
            })
            .collect();
        let cluster = Cluster { devices: request.devices, network: physics.network };
        let mut setup = Self {
            cluster,
            trainings: Vec::new(),
            candidates,
            areas,
            rejections,
            options: Options { vector_costs: request.vector_costs, ..Options::default() },
            rule: request.rule,
            optimizer: request.optimizer,
            physics,
            request,
        };
        setup.trainings = models
            .into_iter()
            .enumerate()
            .map(|(at, model)| setup.training(at, model))
            .collect::<Result<_, _>>()?;
        Ok(setup)
    }

    fn training(&self, at: usize, model: Model) -> Result<Training, Senseless> {
        let asked = &self.request.models[at];
        let legal = legal_widths(&model.spec);
        let mut divisions = Vec::new();
        for &width in self.request.tensor_parallel.iter().filter(|&width| legal.contains(width)) {
            for &micro_batch in &self.request.micro_batches {
                let setting = Setting {
                    micro_batch,
                    sequence: asked.sequence,
                    tensor_parallel: width,
                    sequence_parallel: self.request.sequence_parallel && width > 1,
                    attention: self.request.attention,
                    element: Bytes(self.physics.element_bytes),
                };
                let share = shard(&model, setting)
                    .map_err(|reason| Senseless::Setting { model: asked.name.clone(), reason })?;
                divisions.push(Division::new(share, self.options.vector_costs, &self.cluster));
            }
        }
        if divisions.is_empty() {
            return Err(Senseless::NoWidth {
                model: asked.name.clone(),
                asked: self.request.tensor_parallel.clone(),
                legal,
            });
        }
        let flops_per_sequence = flops_per_sequence(&model, asked.sequence)
            .map_err(|reason| Senseless::Setting { model: asked.name.clone(), reason })?;
        Ok(Training {
            name: asked.name.clone(),
            flops_per_sequence,
            model,
            sequence: asked.sequence,
            weight: asked.weight,
            divisions,
        })
    }

    /// The sizes of off-chip memory, in the order of the request.
    pub fn hbm_sizes(&self) -> Vec<Bytes> {
        self.request.space.hbm_gib.iter().map(|&gib| Bytes::GIB * gib).collect()
    }

    /// A design with one of the sizes of off-chip memory.
    pub fn chip(&self, candidate: usize, hbm: usize) -> Accelerator {
        let size = Bytes::GIB * self.request.space.hbm_gib[hbm];
        let chip = self.candidates[candidate].build(size, &self.physics);
        chip.expect("a design of a space can be built with every size of memory")
    }

    /// Whether a way to train draws more than the request allows.
    pub fn exceeds_power_cap(&self, chosen: &Chosen) -> bool {
        self.request.power_cap_w.is_some_and(|cap| chosen.average_power() > cap)
    }

    /// What a way to train amounts to.
    pub fn rates(&self, model: usize, peak_flops_per_second: u128, chosen: &Chosen) -> Rates {
        let training = &self.trainings[model];
        let seconds = chosen.standing.time.seconds();
        let sequences = self.request.global_batch as f64;
        let tokens = sequences * training.sequence as f64;
        let flops = training.flops_per_sequence.0 as f64 * sequences;
        let mfu = |devices: u64| flops / (devices as f64 * peak_flops_per_second as f64 * seconds);
        Rates {
            sequences_per_s: sequences / seconds,
            tokens_per_s: tokens / seconds,
            mfu: mfu(chosen.devices),
            mfu_requested_devices: mfu(self.request.devices),
            energy_per_token_j: chosen.standing.energy.joules() / tokens,
        }
    }
}

/// What a way to train amounts to, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the name says what it is")]
pub struct Rates {
    pub sequences_per_s: f64,
    pub tokens_per_s: f64,
    pub mfu: f64,
    pub mfu_requested_devices: f64,
    pub energy_per_token_j: f64,
}

/// Operations of training one sequence, nothing computed twice.
fn flops_per_sequence(model: &Model, sequence: u64) -> Result<Flops, Illegal> {
    let setting = Setting {
        micro_batch: 1,
        sequence,
        tensor_parallel: 1,
        sequence_parallel: false,
        attention: Attention::Stored,
        element: Bytes(2),
    };
    let share = shard(model, setting)?;
    let of_kind = |kind: usize| -> Flops {
        let layer = &share.kinds[kind];
        layer.forward.nodes().iter().chain(layer.backward.nodes()).map(Op::flops).sum()
    };
    Ok(share.sequence.iter().map(|&kind| of_kind(kind)).sum())
}
