//! What a stage and a rank cost, by definition, once everything but the cut is decided.

use crate::parallel::Grid;
use crate::parallel::Order;
use crate::parallel::Parameters;
use crate::parallel::ReplicaSharding;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Sharding;
use crate::parallel::zero::Zero;
use crate::units::Bytes;

use super::AfterBackward;
use super::Edge;
use super::Job;
use super::LayerProfile;
use super::Memory;
use super::PassOrder;
use super::Profile;
use super::Recompute;
use super::StageTime;
use super::TimeModel;
use super::batch::Bucket;
use super::batch::GatheredLayer;
use super::batch::exposed;
use super::batch::exposed_gather;
use super::job::Buckets;
use super::job::Hiding;
use super::memory::Kept;
use super::memory::copied;
use super::memory::parameters;
use super::stage::chain_time;
use super::stage::time;
use super::wiring::Wiring;

/// Everything of a placement but which layers form which stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Copies of the pipeline, each working on its part of the batch.
    pub data_parallel: u64,
    /// Ranks of a pipeline.
    pub ranks: usize,
    /// In which order ranks run their passes.
    pub schedule: PassOrder,
    /// What replicas share.
    pub zero: Zero,
    /// How many replicas share; `None` for all.
    pub shards: Option<u64>,
    /// How devices are numbered.
    pub order: Order,
    /// What is computed again.
    pub recompute: Recompute,
}

/// What one virtual stage costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// Devices of one copy of the stage.
    pub devices: u64,
    /// Both passes over one micro-batch.
    pub time: StageTime,
    /// Of `time`, ticks in which the stage waits for a neighbour's data.
    pub transfer: u64,
    /// Of `time`, ticks in which it waits for the weights of its first layer in each pass.
    pub waits_for_weights: u64,
    /// Parameters that one device holds.
    pub parameters: Parameters,
    /// How many of its layers run their forward pass again, where layers do so one by one.
    pub repeated: usize,
}

/// What one rank costs beside the passes of its virtual stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankCost {
    /// Memory of one device.
    pub memory: Memory,
    /// Ticks that the exchange of gradients takes, hidden or not.
    pub exchange: u64,
    /// Ticks that the gathering of new weights takes, hidden or not.
    pub gathering: u64,
    /// What follows the last backward pass.
    pub after: AfterBackward,
}

/// A virtual stage of a rank: its layers, and what it costs.
pub type Held<'a> = (&'a [usize], StageCost);

/// The costs of stages and ranks in one shape.
#[derive(Clone, Debug)]
pub struct StageRules<'a> {
    profile: &'a Profile,
    job: &'a Job,
    shape: Shape,
    wiring: Wiring<'a>,
    sharding: ReplicaSharding,
    bytes: ParameterBytes,
    micro_batches: u64,
    /// Whether each layer reads the one before alone.
    is_plain_chain: bool,
    /// What each layer reads.
    inputs: Vec<u64>,
    /// By kind of layer: ticks of the exchange of its gradients and of the gathering of its weights,
    /// each alone.
    alone: Vec<[u64; 2]>,
    /// Ticks in which the ends of a pipeline exchange the gradients of a table that both hold.
    tied: u64,
    /// The size of the first edge, and ticks until it has reached the next stage.
    usual_send: (u64, u64),
    /// What every layer takes at the least, where only that is counted.
    least: Option<LeastTicks>,
}

/// Ticks of the layer that takes the fewest.
#[derive(Clone, Copy, Debug)]
struct LeastTicks {
    /// The gathering of its weights.
    gather: u64,
    /// Its forward pass, where that may run again.
    again: u64,
}

impl Shape {
    /// Who exchanges what among the devices of a plan of this shape.
    pub fn wiring<'a>(&self, profile: &Profile, job: &'a Job) -> Wiring<'a> {
        let grid = self.grid(profile);
        let shards = self.shards.unwrap_or(grid.context * grid.data);
        Wiring::new(job, grid, self.order, self.zero, shards)
    }

    /// What replicas share, where each layer has the degrees of `profile`: those of experts in as
    /// many groups as the others.
    pub fn sharding(&self, profile: &Profile) -> ReplicaSharding {
        let replicas = profile.context * self.data_parallel;
        let shards = self.shards.unwrap_or(replicas);
        let of = |replicas: u64, shards: u64| {
            Sharding::hybrid(self.zero, replicas, shards)
                .unwrap_or_else(|| Sharding::new(self.zero, replicas))
        };
        let of_experts = self.expert_replicas(profile);
        let groups = (replicas / shards.max(1)).clamp(1, of_experts);
        ReplicaSharding {
            dense: of(replicas, shards),
            experts: of(of_experts, of_experts / groups),
        }
    }

    /// How many devices of a rank hold the same experts; one where there are none.
    pub fn expert_replicas(&self, profile: &Profile) -> u64 {
        let devices = profile.width * profile.context * self.data_parallel;
        profile.expert_devices.map_or(1, |owners| (devices / owners).max(1))
    }

    /// Whether devices can be numbered along the grid of experts too, and the replicas of experts
    /// share in groups of one size.
    pub fn folds(&self, profile: &Profile) -> bool {
        let Some(owners) = profile.expert_devices else { return true };
        let replicas = profile.context * self.data_parallel;
        let groups = (replicas / self.shards.unwrap_or(replicas).max(1)).max(1);
        self.order.folds(&self.grid(profile))
            && (profile.width * replicas / owners).is_multiple_of(groups)
    }

    fn grid(&self, profile: &Profile) -> Grid {
        Grid {
            tensor: profile.width,
            context: profile.context,
            data: self.data_parallel,
            pipeline: self.ranks as u64,
            expert_devices: profile.expert_devices,
        }
    }
}

impl<'a> StageRules<'a> {
    /// The rules of a shape.
    pub fn new(profile: &'a Profile, job: &'a Job, shape: Shape) -> Self {
        let wiring = shape.wiring(profile, job);
        let alone = |kind: &LayerProfile| {
            let parameters = kind.by_replicas();
            if wiring.has_replicas() {
                [wiring.reduce(parameters), wiring.gather(parameters)]
            } else {
                [0, 0]
            }
        };
        let usual = profile.edges.first().map_or(0, Edge::sent);
        Self {
            profile,
            job,
            shape,
            alone: profile.kinds.iter().map(alone).collect(),
            tied: wiring.tied(profile.tied),
            usual_send: (usual, wiring.send(usual, false)),
            wiring,
            sharding: shape.sharding(profile),
            bytes: job.parameter_bytes(),
            micro_batches: job.micro_batches_per_pipeline(shape.data_parallel),
            is_plain_chain: profile.is_plain_chain(),
            inputs: profile.inputs(),
            least: None,
        }
    }

    /// Rules under which a stage waits for the weights of the smallest layer, and repeats the shortest
    /// one where it repeats the first ones: no stage takes more than by its own rules, and where as
    /// much travels between any two layers, one that holds more never takes less.
    #[must_use]
    pub fn at_the_least(self) -> Self {
        let repeatable = self.profile.layers().filter(|layer| layer.repeatable);
        let least = LeastTicks {
            gather: self.alone.iter().map(|alone| alone[1]).min().unwrap_or(0),
            again: repeatable.map(|layer| layer.forward).min().unwrap_or(0),
        };
        Self { least: Some(least), ..self }
    }

    /// Rules that no number of pipelines from the shape's to `most` can beat, where every pair of
    /// devices is alike, all replicas share and each pipeline works on as many micro-batches: the
    /// fewest exchange, and the most share.
    pub fn relaxed(profile: &'a Profile, job: &'a Job, shape: Shape, most: u64) -> Self {
        let sharding = Shape { data_parallel: most, ..shape }.sharding(profile);
        Self { sharding, ..Self::new(profile, job, shape) }
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Micro-batches that each pipeline works on.
    pub fn micro_batches(&self) -> u64 {
        self.micro_batches
    }

    /// Ticks between a pass and the next virtual stage's, beside computation.
    pub fn delay(&self) -> u64 {
        match self.shape.schedule {
            PassOrder::OneForwardOneBackward => 0,
            PassOrder::Interleaved { .. } => {
                let largest = self.profile.edges.iter().map(Edge::sent).max();
                self.wiring.send(largest.unwrap_or(0), true)
            }
        }
    }

    /// What the virtual stage of this number costs if it holds `layers`.
    pub fn stage(&self, stage: usize, layers: &[usize]) -> StageCost {
        self.stage_repeating(stage, layers, self.repeated(stage, layers))
    }

    /// The same if so many of its layers run their forward pass again.
    pub fn stage_repeating(&self, stage: usize, layers: &[usize], repeated: usize) -> StageCost {
        let n_stages = self.shape.ranks * self.shape.schedule.chunks();
        let is_last = stage + 1 == n_stages;
        let waits = matches!(self.shape.schedule, PassOrder::OneForwardOneBackward);
        let send = |size: u64| match self.usual_send {
            _ if !waits => 0,
            (usual, ticks) if usual == size => ticks,
            _ => self.wiring.send(size, false),
        };
        let again = (self.shape.recompute, repeated);
        let time_with = |send: &dyn Fn(u64) -> u64| {
            if self.is_plain_chain {
                chain_time(self.profile, layers, again, is_last, send)
            } else {
                time(self.profile, layers, again, is_last, send)
            }
        };
        let mut spent = time_with(&send);
        let transfer = if waits { spent.load() - time_with(&|_| 0).load() } else { 0 };
        let gathers = self.first_gathers(layers);
        spent.forward = spent.forward.saturating_add(gathers[0]);
        spent.backward = spent.backward.saturating_add(gathers[1]);
        spent.backward -= self.beyond_the_least(layers, repeated);
        let wide = layers.iter().any(|&layer| self.profile.layer(layer).tensor_parallel);
        StageCost {
            devices: self.profile.context * if wide { self.profile.width } else { 1 },
            time: spent,
            transfer,
            waits_for_weights: gathers[0].saturating_add(gathers[1]),
            parameters: parameters(self.profile, layers),
            repeated,
        }
    }

    /// Where only the least is counted, what the first layers of a stage take longer than that to run
    /// again.
    fn beyond_the_least(&self, layers: &[usize], repeated: usize) -> u64 {
        let (Some(least), Recompute::First(_)) = (self.least, self.shape.recompute) else {
            return 0;
        };
        let layers = layers.iter().map(|&layer| self.profile.layer(layer));
        let again = layers.filter(|layer| layer.repeatable).take(repeated);
        again.map(|layer| layer.forward - least.again).sum()
    }

    /// Where weights are gathered layer by layer, each pass of a stage waits for its first layer's.
    fn first_gathers(&self, layers: &[usize]) -> [u64; 2] {
        let gather = |layer: Option<&usize>| {
            let gathered = layer.filter(|_| self.shape.zero == Zero::Weights);
            let ticks =
                |&layer: &usize| self.least.map_or(self.alone(layer)[1], |least| least.gather);
            gathered.map_or(0, ticks)
        };
        [gather(layers.first()), gather(layers.last())]
    }

    /// How many layers of a stage run their forward pass again.
    fn repeated(&self, stage: usize, layers: &[usize]) -> usize {
        match self.shape.recompute {
            Recompute::None | Recompute::Full | Recompute::Stage => 0,
            Recompute::First(_) | Recompute::AsNeeded => {
                let fixed = self.held(&[layers], &[parameters(self.profile, layers)]).total();
                self.repeated_beside(stage, &self.kept(layers), fixed)
            }
        }
    }

    fn repeated_beside(&self, stage: usize, kept: &Kept, fixed: u128) -> usize {
        let room = u128::from(self.job.memory).saturating_sub(fixed);
        kept.repeated(self.shape.recompute, self.in_flight(stage), room)
    }

    fn kept(&self, layers: &[usize]) -> Kept {
        Kept::new(self.profile, &self.inputs, layers, self.shape.recompute)
    }

    /// Of a stage that is a rank of its own: how many of its layers run their forward pass again, and
    /// the memory of one device.
    pub fn filled(&self, stage: usize, layers: &[usize]) -> (usize, u128) {
        let fixed = self.held(&[layers], &[parameters(self.profile, layers)]).total();
        let kept = self.kept(layers);
        let repeated = self.repeated_beside(stage, &kept, fixed);
        let bytes = kept.bytes(self.shape.recompute, repeated, self.in_flight(stage));
        (repeated, fixed + bytes)
    }

    /// Ticks of the exchange of a layer's gradients and of the gathering of its weights, each alone.
    fn alone(&self, layer: usize) -> [u64; 2] {
        self.alone[self.profile.sequence[layer]]
    }

    fn in_flight(&self, rank: usize) -> u64 {
        let n_later = self.shape.ranks.saturating_sub(1 + rank) as u64;
        self.job.in_flight(n_later, self.shape.data_parallel)
    }

    /// What the rank of this number costs if it holds these virtual stages, in order.
    pub fn rank(&self, rank: usize, held: &[Held]) -> RankCost {
        let stages: Vec<&[usize]> = held.iter().map(|(layers, _)| *layers).collect();
        let counts: Vec<Parameters> = held.iter().map(|(_, stage)| stage.parameters).collect();
        let memory =
            Memory { activations: self.activations(rank, held), ..self.held(&stages, &counts) };
        let all: Parameters = counts.iter().copied().sum();
        let exchange = match self.shape.zero {
            Zero::Nothing | Zero::State => self.wiring.reduce(all),
            Zero::Gradients | Zero::Weights => self.wiring.reduce_copies(all),
        };
        match self.job.time_model {
            TimeModel::Published => {
                let exposed = if rank == 0 { 2 * exchange } else { 0 };
                let after = AfterBackward { exposed, step: 0, gather: 0 };
                RankCost { memory, exchange: exposed, gathering: 0, after }
            }
            TimeModel::OneForwardOneBackward => {
                let gathering = match self.shape.zero {
                    Zero::State | Zero::Gradients => self.wiring.gather(all),
                    Zero::Nothing | Zero::Weights => 0,
                };
                let exchange = exchange.saturating_add(self.tied(rank));
                RankCost { memory, exchange, gathering, after: self.after(rank, held) }
            }
        }
    }

    /// What is held at all times, what is gathered for a while, and what a pass needs.
    fn held(&self, stages: &[&[usize]], parameters: &[Parameters]) -> Memory {
        let all: Parameters = parameters.iter().copied().sum();
        let held = self.sharding.held(all, self.bytes);
        let layers = || stages.iter().flat_map(|layers| layers.iter().copied());
        let gathered = if self.shape.zero >= Zero::Gradients {
            let each = layers().map(|layer| self.profile.layer(layer).by_replicas());
            self.sharding.gathered(&each.collect::<Vec<_>>(), self.bytes).total()
        } else {
            Bytes::ZERO
        };
        let working = working(layers().map(|layer| self.profile.layer(layer)));
        Memory {
            weights: held.weights.0.into(),
            gradients: held.gradients.0.into(),
            optimizer_state: held.state.0.into(),
            activations: 0,
            gathered: gathered.0.into(),
            working: working.into(),
        }
    }

    fn activations(&self, rank: usize, held: &[Held]) -> u128 {
        let order = self.shape.schedule;
        if let (PassOrder::OneForwardOneBackward, [(layers, stage)]) = (order, held) {
            let kept = self.kept(layers);
            return kept.bytes(self.shape.recompute, stage.repeated, self.in_flight(rank));
        }
        let each: Vec<(u128, u128)> =
            held.iter().map(|(layers, stage)| self.kept_each(layers, stage.repeated)).collect();
        let once = each.iter().map(|(_, once)| *once).max().unwrap_or(0);
        let ranks = self.shape.ranks;
        order.peak(ranks, self.micro_batches, rank, |stage| each[stage / ranks].0) + once
    }

    /// What a virtual stage keeps of each micro-batch, and beside that once, for the layer that is
    /// repeated.
    pub fn kept_each(&self, layers: &[usize], repeated: usize) -> (u128, u128) {
        let kept = self.kept(layers);
        let [one, two] = [1, 2].map(|n| kept.bytes(self.shape.recompute, repeated, n));
        (two - one, (2 * one).saturating_sub(two))
    }

    /// What a rank of several virtual stages holds beside what it keeps of each micro-batch.
    pub fn held_beside_kept(&self, held: &[Held]) -> u128 {
        let stages: Vec<&[usize]> = held.iter().map(|(layers, _)| *layers).collect();
        let counts: Vec<Parameters> = held.iter().map(|(_, stage)| stage.parameters).collect();
        let once = held.iter().map(|(layers, stage)| self.kept_each(layers, stage.repeated).1);
        self.held(&stages, &counts).total() + once.max().unwrap_or(0)
    }

    /// What follows the last backward pass of a rank, as passes really follow each other.
    pub fn after(&self, rank: usize, held: &[Held]) -> AfterBackward {
        let all: Parameters = held.iter().map(|(_, stage)| stage.parameters).sum();
        AfterBackward {
            exposed: self.exposed(rank, held).saturating_add(self.tied(rank)),
            step: self.job.optimizer_step(self.sharding.stepped(all)),
            gather: self.exposed_gather(rank, held),
        }
    }

    /// Ticks in which the first and the last rank exchange the gradients of a table that both hold.
    fn tied(&self, rank: usize) -> u64 {
        let at_an_end = rank == 0 || rank + 1 == self.shape.ranks;
        if at_an_end { self.tied } else { 0 }
    }

    /// Ticks by which gradients are late after the last backward pass of a rank.
    fn exposed(&self, rank: usize, held: &[Held]) -> u64 {
        if self.shape.zero >= Zero::Gradients {
            return self.wiring.reduce_copies(held.iter().map(|(_, stage)| stage.parameters).sum());
        }
        if !self.wiring.has_replicas() {
            return 0;
        }
        if let buckets @ Buckets::Hidden { .. } = self.job.ends.buckets {
            let all = held.iter().map(|(_, stage)| stage.parameters).sum();
            return buckets.waited_for(self.wiring.reduce(all));
        }
        let mut buckets = Vec::new();
        for (chunk, (layers, stage)) in held.iter().enumerate().rev() {
            if chunk == 0 && self.job.ends.hiding == Hiding::Longer {
                // Before its last pass a rank may idle: a longer one there hides more, and ends the
                // batch no later. Behind the last pass itself all that follows is late.
                buckets.drain(..buckets.len().saturating_sub(1));
            }
            let least = self.least_bucket(rank, chunk);
            let first_kept = self.first_kept(layers, stage.repeated);
            let mut filled = (Parameters::dense(copied(self.profile, layers)), 0_u64);
            for (place, &layer) in layers.iter().enumerate().rev() {
                let again = place < first_kept && self.repeats(layer);
                let is_alone = filled.0 == Parameters::NONE;
                filled.0 += self.profile.layer(layer).by_replicas();
                filled.1 = filled.1.saturating_add(self.backward_alone(layer, again));
                if place == 0 || least.is_some_and(|least| filled.0.all() >= least) {
                    let exchange =
                        if is_alone { self.alone(layer)[0] } else { self.wiring.reduce(filled.0) };
                    buckets.push(Bucket { exchange, backward: filled.1 });
                    filled = (Parameters::NONE, 0);
                }
            }
        }
        exposed(&buckets)
    }

    /// Ticks by which the next batch waits for new weights.
    fn exposed_gather(&self, rank: usize, held: &[Held]) -> u64 {
        if matches!(self.shape.zero, Zero::Nothing | Zero::Weights) || !self.wiring.has_shards() {
            return 0;
        }
        if let buckets @ Buckets::Hidden { .. } = self.job.ends.buckets {
            let all = held.iter().map(|(_, stage)| stage.parameters).sum();
            return buckets.waited_for(self.wiring.gather(all));
        }
        let mut gathered = Vec::new();
        for (chunk, (layers, _)) in held.iter().enumerate() {
            let least = self.least_bucket(rank, chunk);
            let mut filled = (Parameters::dense(copied(self.profile, layers)), 0_u64);
            for (place, &layer) in layers.iter().enumerate() {
                let is_alone = filled.0 == Parameters::NONE;
                filled.0 += self.profile.layer(layer).by_replicas();
                filled.1 = filled.1.saturating_add(self.profile.layer(layer).forward_alone());
                if place + 1 == layers.len() || least.is_some_and(|least| filled.0.all() >= least) {
                    let gather =
                        if is_alone { self.alone(layer)[1] } else { self.wiring.gather(filled.0) };
                    gathered.push(GatheredLayer { gather, forward: filled.1 });
                    filled = (Parameters::NONE, 0);
                }
            }
        }
        if self.job.ends.hiding == Hiding::Longer && self.shape.ranks > 1 {
            // The next forward pass of a rank that others wait for less may be longer, and hide more.
            gathered.truncate(1);
        }
        exposed_gather(&gathered)
    }

    /// How many parameters a bucket of a chunk has at the least; `None` where all are one bucket.
    fn least_bucket(&self, rank: usize, chunk: usize) -> Option<u64> {
        match self.job.ends.buckets {
            Buckets::Stages | Buckets::Hidden { .. } => None,
            Buckets::Layers => Some(1),
            Buckets::FirstRank { least, per_replica } => {
                let first = rank == 0 && chunk == 0;
                first.then(|| least.max(per_replica.saturating_mul(self.wiring.n_replicas())))
            }
        }
    }

    /// Where the layers of a stage begin that keep everything.
    fn first_kept(&self, layers: &[usize], repeated: usize) -> usize {
        let mut left = repeated;
        let mut place = 0;
        while place < layers.len() && left > 0 {
            left -= usize::from(self.profile.layer(layers[place]).repeatable);
            place += 1;
        }
        match self.shape.recompute {
            Recompute::Full => layers.len(),
            _ => place,
        }
    }

    fn repeats(&self, layer: usize) -> bool {
        self.shape.recompute == Recompute::Full || self.profile.layer(layer).repeatable
    }

    /// Ticks of a layer's backward pass, and of its forward pass again, without their exchanges.
    fn backward_alone(&self, layer: usize, again: bool) -> u64 {
        let layer = self.profile.layer(layer);
        let repeated = if again { layer.forward_alone() } else { 0 };
        layer.backward_alone().saturating_add(repeated)
    }
}

/// What the passes of these layers hold for a moment, one at a time: what a layer holds on to is there
/// beside the pass of any other.
fn working<'a>(layers: impl Iterator<Item = &'a LayerProfile>) -> u64 {
    let (mut held_on, mut ends, mut others) = (0, 0, 0);
    for layer in layers {
        held_on = layer.held_on.max(held_on);
        let own = if layer.held_on > 0 { &mut ends } else { &mut others };
        *own = layer.working.max(*own);
    }
    ends.max(others.saturating_add(held_on))
}
