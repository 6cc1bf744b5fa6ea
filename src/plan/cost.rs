//! What a placement costs, by definition: every stage's time, every rank's memory, and the time of
//! a batch.

use super::AfterBackward;
use super::Job;
use super::PassOrder;
use super::Pipeline;
use super::PipelinedBatch;
use super::Profile;
use super::RankCost;
use super::Recompute;
use super::Shape;
use super::StageCost;
use super::StageRules;
use super::StageTime;
use super::StepStart;
use super::TimeModel;
use super::batch::batch_time;
use super::one_f_one_b::stage_ends;
use crate::parallel::Order;
use crate::parallel::zero::Zero;

/// How the layers of one profile are put on devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Copies of the pipeline, each working on its part of the batch.
    pub data_parallel: u64,
    /// What is computed again.
    pub recompute: Recompute,
    /// Which layers form which virtual stage.
    pub pipeline: Pipeline,
    /// In which order ranks run their passes.
    pub schedule: PassOrder,
    /// What replicas share.
    pub zero: Zero,
    /// How many replicas share; `None` for all.
    pub shards: Option<u64>,
    /// How devices are numbered.
    pub order: Order,
}

/// What a placement costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Virtual stage by virtual stage.
    pub stages: Vec<StageCost>,
    /// Rank by rank.
    pub ranks: Vec<RankCost>,
    /// Devices in use, of all copies.
    pub devices: u64,
    /// Micro-batches that each pipeline works on.
    pub micro_batches: u64,
    /// The largest load of a virtual stage.
    pub slowest: u64,
    /// The sum of all loads.
    pub total_load: u128,
    /// When each rank has done its last backward pass; empty where the time model does not say.
    pub finished: Vec<u128>,
    /// Ticks of a whole batch in the job's time model; the largest number where that is too long
    /// to be played.
    pub time_per_batch: u128,
}

impl Placement {
    /// One virtual stage for each rank, every replica with everything of its own, devices in the
    /// usual order.
    pub fn plain(data_parallel: u64, recompute: Recompute, pipeline: Pipeline) -> Self {
        Self {
            data_parallel,
            recompute,
            pipeline,
            schedule: PassOrder::OneForwardOneBackward,
            zero: Zero::Nothing,
            shards: None,
            order: Order::default(),
        }
    }

    /// A cut in a shape.
    pub fn of_shape(shape: Shape, pipeline: Pipeline) -> Self {
        let Shape { data_parallel, schedule, zero, shards, order, recompute, .. } = shape;
        Self { data_parallel, recompute, pipeline, schedule, zero, shards, order }
    }

    /// Ranks of a pipeline.
    pub fn ranks(&self) -> usize {
        self.pipeline.n_stages() / self.schedule.chunks().max(1)
    }

    /// Everything but the cut.
    pub fn shape(&self) -> Shape {
        Shape {
            data_parallel: self.data_parallel,
            ranks: self.ranks(),
            schedule: self.schedule,
            zero: self.zero,
            shards: self.shards,
            order: self.order,
            recompute: self.recompute,
        }
    }
}

impl Cost {
    /// When the last backward pass of all has ended.
    pub fn passes_end(&self) -> u128 {
        let largest = |times: &mut dyn Iterator<Item = u128>| times.max().unwrap_or(0);
        if self.finished.is_empty() {
            self.time_per_batch - largest(&mut self.ranks.iter().map(|rank| rank.after.all()))
        } else {
            largest(&mut self.finished.iter().copied())
        }
    }

    /// Ticks of a batch after its last backward pass: exchanges that are not hidden, the step and
    /// the gathering that are waited for.
    pub fn after_passes(&self, job: &Job) -> AfterBackward {
        let ranks = || self.ranks.iter().map(|rank| rank.after);
        let longest = |of: fn(&AfterBackward) -> u128| ranks().max_by_key(of).unwrap_or_default();
        match (self.finished.is_empty(), job.ends.step_start) {
            (true, _) => longest(AfterBackward::all),
            (false, StepStart::AllGradients) => {
                let ready = self.finished.iter().zip(ranks());
                let ready = ready.map(|(at, after)| at + u128::from(after.exposed)).max();
                let late = ready.unwrap_or(0).saturating_sub(self.passes_end());
                let last = longest(|after| u128::from(after.step) + u128::from(after.gather));
                let exposed = u64::try_from(late).unwrap_or(u64::MAX);
                AfterBackward { exposed, ..last }
            }
            (false, StepStart::OwnGradients) => {
                let ends = self.finished.iter().zip(ranks());
                let last = ends.max_by_key(|(at, after)| *at + after.all());
                let (&at, after) = last.unwrap_or((&0, AfterBackward::default()));
                // What the last pass of all still hides of it, an exchange first.
                let hidden = u64::try_from(self.passes_end() - at).unwrap_or(u64::MAX);
                let exposed = after.exposed.saturating_sub(hidden);
                let hidden = hidden.saturating_sub(after.exposed);
                AfterBackward { exposed, step: after.step.saturating_sub(hidden), ..after }
            }
        }
    }

    /// Ticks in which the average rank waits for its neighbours, before the last backward pass.
    pub fn bubble(&self) -> u128 {
        let ranks = self.ranks.len().max(1) as u128;
        let works = u128::from(self.micro_batches) * self.total_load / ranks;
        self.passes_end().saturating_sub(works)
    }
}

/// What `placement` costs; whether it fits is for [`check`](super::check) to say.
pub fn cost(profile: &Profile, job: &Job, placement: &Placement) -> Cost {
    let rules = StageRules::new(profile, job, placement.shape());
    let layers: Vec<&[usize]> = placement.pipeline.stages().collect();
    let stages: Vec<StageCost> =
        layers.iter().enumerate().map(|(stage, layers)| rules.stage(stage, layers)).collect();
    let n_ranks = placement.ranks();
    let ranks: Vec<RankCost> = (0..n_ranks)
        .map(|rank| {
            let own = (rank..stages.len()).step_by(n_ranks.max(1));
            let held: Vec<_> = own.map(|stage| (layers[stage], stages[stage])).collect();
            rules.rank(rank, &held)
        })
        .collect();
    let micro_batches = rules.micro_batches();
    let slowest = stages.iter().map(|stage| stage.time.load()).max().unwrap_or(0);
    let total_load = stages.iter().map(|stage| u128::from(stage.time.load())).sum();
    let devices = stages.iter().take(n_ranks).map(|stage| stage.devices).sum::<u64>();
    let devices = devices.saturating_mul(placement.data_parallel);
    let mut cost = Cost {
        stages,
        ranks,
        devices,
        micro_batches,
        slowest,
        total_load,
        finished: Vec::new(),
        time_per_batch: 0,
    };
    match job.time_model {
        TimeModel::Published => {
            let end = cost.ranks.iter().map(|rank| rank.after.all()).max().unwrap_or(0);
            let others = u128::from(micro_batches.saturating_sub(1));
            cost.time_per_batch = u128::from(slowest) * (others + n_ranks as u128) + end;
        }
        TimeModel::OneForwardOneBackward => {
            let after: Vec<_> = cost.ranks.iter().map(|rank| rank.after).collect();
            let finished = finished(&cost, placement.schedule, n_ranks, rules.delay());
            cost.time_per_batch = finished
                .as_ref()
                .map_or(u128::MAX, |finished| batch_time(finished, &after, job.ends.step_start));
            cost.finished = finished.unwrap_or_default();
        }
    }
    cost
}

/// When each rank has done its last backward pass; `None` where that is too long to be played.
fn finished(cost: &Cost, order: PassOrder, ranks: usize, delay: u64) -> Option<Vec<u128>> {
    let times: Vec<StageTime> = cost.stages.iter().map(|stage| stage.time).collect();
    let micro_batches = cost.micro_batches;
    match order {
        PassOrder::OneForwardOneBackward => Some(stage_ends(&times, micro_batches)),
        PassOrder::Interleaved { .. } => {
            order.check(ranks, micro_batches).ok()?;
            let batch = PipelinedBatch { order, ranks, micro_batches, times: &times, delay };
            // The last backward pass of a rank is through its first chunk.
            batch.stage_ends().map(|ends| ends[..ranks].to_vec())
        }
    }
}
