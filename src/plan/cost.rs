//! What a placement costs, by definition: every stage's time and memory, and the time of a batch.

use super::Job;
use super::Memory;
use super::Pipeline;
use super::Profile;
use super::Recompute;
use super::StageTime;
use super::TimeModel;
use super::memory::memory;
use super::memory::parameters;
use super::stage::time;

/// How the layers of one profile are put on devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Copies of the pipeline, each working on its part of the batch.
    pub data_parallel: u64,
    /// What is computed again.
    pub recompute: Recompute,
    /// Which layers form which stage.
    pub pipeline: Pipeline,
}

/// What one stage costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// Devices of one copy of the stage.
    pub devices: u64,
    /// Both passes over one micro-batch.
    pub time: StageTime,
    /// Of `time`, ticks in which the stage waits for a neighbour's data.
    pub transfer: u64,
    /// Parameters that one device holds.
    pub parameters: u64,
    /// Memory of one device.
    pub memory: Memory,
    /// Ticks after the last backward pass that gradients are exchanged for.
    pub exchange: u64,
    /// Ticks after that of the optimizer step.
    pub step: u64,
}

/// What a placement costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Stage by stage.
    pub stages: Vec<StageCost>,
    /// Devices in use, of all copies.
    pub devices: u64,
    /// Micro-batches that each pipeline works on.
    pub micro_batches: u64,
    /// The largest load.
    pub slowest: u64,
    /// The sum of all loads.
    pub total_load: u128,
    /// The slowest end.
    pub end: u64,
    /// Ticks of a whole batch in the job's time model.
    pub time_per_batch: u128,
}

impl StageCost {
    /// Ticks after the last backward pass.
    pub fn end(&self) -> u64 {
        self.exchange.saturating_add(self.step)
    }
}

impl Cost {
    /// Ticks in which the average stage waits for its neighbours, before the ends.
    pub fn bubble(&self) -> u128 {
        let pipelined = self.time_per_batch - u128::from(self.end);
        let n_stages = self.stages.len() as u128;
        pipelined - u128::from(self.micro_batches) * self.total_load / n_stages
    }
}

/// What `placement` costs; whether it fits is for [`check`](super::check) to say.
pub fn cost(profile: &Profile, job: &Job, placement: &Placement) -> Cost {
    let n_stages = placement.pipeline.n_stages();
    let stages: Vec<StageCost> = placement
        .pipeline
        .stages()
        .enumerate()
        .map(|(stage, layers)| stage_cost(profile, job, placement, stage, layers))
        .collect();
    let micro_batches = job.micro_batches_per_pipeline(placement.data_parallel);
    let slowest = stages.iter().map(|stage| stage.time.load()).max().unwrap_or(0);
    let total_load = stages.iter().map(|stage| u128::from(stage.time.load())).sum();
    let end = stages.iter().map(StageCost::end).max().unwrap_or(0);
    let others = u128::from(micro_batches.saturating_sub(1));
    let time_per_batch = match job.time_model {
        TimeModel::Published => u128::from(slowest) * (others + n_stages as u128) + u128::from(end),
        TimeModel::OneForwardOneBackward => {
            total_load + others * u128::from(slowest) + u128::from(end)
        }
    };
    let devices = stages.iter().map(|stage| stage.devices).sum::<u64>();
    let devices = devices.saturating_mul(placement.data_parallel);
    Cost { stages, devices, micro_batches, slowest, total_load, end, time_per_batch }
}

fn stage_cost(
    profile: &Profile,
    job: &Job,
    placement: &Placement,
    stage: usize,
    layers: &[usize],
) -> StageCost {
    let Placement { data_parallel, recompute, ref pipeline } = *placement;
    let n_later = pipeline.n_stages() - 1 - stage;
    let n_stages = pipeline.n_stages() as u64;
    let width = profile.width;
    let send = |size| job.send(size, width, data_parallel, n_stages);
    let time_with =
        |send: &dyn Fn(u64) -> u64| time(profile, layers, recompute, n_later == 0, send);
    let spent = time_with(&send);
    let parameters = parameters(profile, layers);
    let own = job.exchange(parameters, width, data_parallel);
    let (exchange, step) = match job.time_model {
        TimeModel::Published if stage > 0 => (0, 0),
        TimeModel::Published => (2 * own, 0),
        TimeModel::OneForwardOneBackward => {
            let at_an_end = stage == 0 || n_later == 0;
            let tied = if at_an_end { profile.tied } else { 0 };
            let tied = job.tied_exchange(tied, width, data_parallel, n_stages);
            (own + tied, job.optimizer_step(parameters))
        }
    };
    let wide = layers.iter().any(|&layer| profile.layer(layer).tensor_parallel);
    StageCost {
        devices: if wide { profile.width } else { 1 },
        time: spent,
        transfer: spent.load() - time_with(&|_| 0).load(),
        parameters,
        memory: memory(
            profile,
            job,
            layers,
            recompute,
            job.in_flight(n_later as u64, data_parallel),
        ),
        exchange,
        step,
    }
}
