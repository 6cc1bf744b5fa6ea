//! What a measured run is predicted to take, by the same functions as a plan.

use crate::estimate::EstimateTable;
use crate::estimate::OpCosts;
use crate::estimate::TooLarge;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Design;
use crate::hardware::Efficiency;
use crate::hardware::Physics;
use crate::hardware::Unbuildable;
use crate::model::Attention;
use crate::model::Masked;
use crate::model::Module;
use crate::model::Modules;
use crate::model::Optimizer;
use crate::model::op::Op;
use crate::model::op::VectorKind;
use crate::model::op::Work;
use crate::parallel::Illegal;
use crate::parallel::Order;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::shard;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Sharers;
use crate::parallel::zero::Zero;
use crate::parallel::zero::with_exchanges;
use crate::plan::Buckets;
use crate::plan::Cost;
use crate::plan::EndRules;
use crate::plan::Hiding;
use crate::plan::Job;
use crate::plan::PassOrder;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::StepStart;
use crate::plan::TimeModel;
use crate::plan::cost;
use crate::profile::LayerGraphs;
use crate::profile::even_cut;
use crate::profile::job;
use crate::profile::pass::costs;
use crate::profile::profile;
use crate::schedule::Rule;
use crate::units::Bytes;
use crate::units::Time;

use super::Repeated;
use super::Run;

/// An accelerator, its physics and what its software hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The knobs.
    pub design: Design,
    /// The constants; their efficiency is where a fit starts.
    pub physics: Physics,
}

/// Why a run cannot be predicted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inexpressible {
    /// The model cannot be divided so.
    #[error(transparent)]
    Setting(#[from] Illegal),
    /// The accelerator cannot be built.
    #[error(transparent)]
    Machine(#[from] Unbuildable),
    /// An operator is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Experts are not divided yet.
    #[error("experts dealt out among {0} devices are not held equally often")]
    Experts(u64),
    /// There are more stages than layers.
    #[error("{stages} virtual stages for {layers} layers")]
    Stages {
        /// Virtual stages.
        stages: u64,
        /// Transformer layers.
        layers: u64,
    },
    /// The pipeline cannot run so.
    #[error("{0}")]
    Order(String),
}

/// A part of a prediction: what is left out of it shows what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// Traffic and kernels of vector work.
    Vector,
    /// Exchanges among the devices that share a layer.
    TensorExchange,
    /// Waiting for neighbours in the pipeline.
    Bubble,
    /// The layer that ends in the loss, and the embedding.
    Head,
    /// Sends between stages.
    Sends,
    /// The exchange of gradients and new weights.
    Gradients,
    /// The optimizer's step.
    Optimizer,
    /// What is computed again.
    Recompute,
    /// The half of fused attention that a causal mask spares.
    Causal,
    /// Several virtual stages on a rank.
    Interleaving,
    /// That exchanges run behind computation.
    Overlap,
}

impl Term {
    /// All of them, by the names that users give.
    pub const ALL: [(&'static str, Self); 11] = [
        ("vector", Self::Vector),
        ("tensor-exchange", Self::TensorExchange),
        ("bubble", Self::Bubble),
        ("head", Self::Head),
        ("sends", Self::Sends),
        ("gradients", Self::Gradients),
        ("optimizer", Self::Optimizer),
        ("recompute", Self::Recompute),
        ("causal", Self::Causal),
        ("interleaving", Self::Interleaving),
        ("overlap", Self::Overlap),
    ];
}

/// Seconds of a batch on the average rank, by what they are spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// Matmuls with weights.
    pub matmul: f64,
    /// Norms, activations, residuals, casts.
    pub vector: f64,
    /// Attention's core.
    pub attention: f64,
    /// Exchanges inside layers that are waited for.
    pub exchange: f64,
    /// Embedding, head and loss.
    pub head: f64,
    /// Waiting for neighbours in the pipeline.
    pub bubble: f64,
    /// Sends between stages that are waited for.
    pub sends: f64,
    /// The exchange of gradients and new weights that is waited for.
    pub gradients: f64,
    /// The optimizer's step.
    pub optimizer: f64,
}

impl Parts {
    /// Names and figures, in the order in which they are told.
    pub fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("matmul", self.matmul),
            ("vector", self.vector),
            ("attention", self.attention),
            ("exchange", self.exchange),
            ("head", self.head),
            ("bubble", self.bubble),
            ("sends", self.sends),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
        ]
    }
}

/// What a run is predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Of one batch.
    pub seconds: f64,
    /// Allocated on the fullest device.
    pub memory: Bytes,
    /// Sequences in a micro-batch: given, or the fastest that fits.
    pub micro_batch: u64,
    /// Whether the fullest device has room for that.
    pub fits: bool,
}

/// A run with one size of micro-batch, ready to be timed with any efficiency.
#[derive(Clone, Debug)]
pub struct Prepared {
    share: Share,
    graphs: LayerGraphs,
    placement: Placement,
    micro_batch: u64,
    micro_batches: u64,
    ends: EndRules,
    devices: u64,
    without: Vec<Term>,
}

impl Prepared {
    /// Divides the model as the run did, its layers evenly over stages, with what the machine's
    /// software hides; `without` are terms that are left out.
    pub fn new(
        run: &Run,
        machine: &Machine,
        micro_batch: u64,
        without: &[Term],
    ) -> Result<Self, Inexpressible> {
        let lacks = |term: Term| without.contains(&term);
        let given = &machine.physics.efficiency;
        let mut efficiency = Efficiency { kernels: run.kernels, ..*given };
        if lacks(Term::Overlap) {
            (efficiency.tensor_hidden, efficiency.gradients_hidden) = (0, Some(0));
        }
        let chunks = if lacks(Term::Interleaving) { 1 } else { run.chunks };
        let (recompute, repeated) = repeats(run, chunks, lacks(Term::Recompute));
        let setting = Setting {
            micro_batch,
            sequence: run.sequence,
            tensor_parallel: run.tensor,
            sequence_parallel: run.sequence_parallel && run.tensor > 1,
            context: run.context,
            attention: run.attention,
            repeated,
            masked: if lacks(Term::Causal) { Masked::Computed } else { Masked::Skipped },
            element: Bytes(machine.physics.element_bytes),
            stack: efficiency.stack(run.precision),
            ..Setting::ALONE
        }
        .with_experts_as_layers(&run.model.spec);
        let setting = Setting { expert: run.expert, ..setting };
        if !run.data.is_multiple_of(setting.copies_for_experts()) {
            return Err(Inexpressible::Experts(run.expert));
        }
        let mut share = shard(&run.model, setting)?;
        if run.zero >= Zero::Gradients {
            let bytes = ParameterBytes::new(Optimizer::AdamMixed, &setting.stack);
            let sharers = Sharers::all(&share.setting, run.data);
            share = with_exchanges(&share, run.zero, sharers, bytes);
        }
        let buckets = match efficiency.gradients_hidden {
            Some(per_mille) => Buckets::Hidden { per_mille },
            None => Buckets::Layers,
        };
        Ok(Self {
            graphs: LayerGraphs::new(&share),
            placement: placement(run, &share, chunks, recompute, micro_batch)?,
            share,
            micro_batch,
            micro_batches: run.global_batch / micro_batch,
            ends: EndRules { step_start: StepStart::AllGradients, buckets, hiding: Hiding::Own },
            devices: run.devices,
            without: without.to_vec(),
        })
    }

    /// Sequences in a micro-batch.
    pub fn micro_batch(&self) -> u64 {
        self.micro_batch
    }

    /// What it takes on a chip in a cluster.
    pub fn predict(
        &self,
        (chip, cluster): (&Accelerator, &Cluster),
        table: &EstimateTable,
    ) -> Result<Prediction, Inexpressible> {
        let (_, job, cost) = self.cost((chip, cluster), table)?;
        let memory = cost.ranks.iter().map(|rank| rank.memory.total()).max().unwrap_or(0);
        Ok(Prediction {
            seconds: self.seconds(&cost, &job),
            memory: Bytes(u64::try_from(memory).unwrap_or(u64::MAX)),
            micro_batch: self.micro_batch,
            fits: memory <= u128::from(job.installed),
        })
    }

    /// The batch's time without the terms that are left out of what follows from the pipeline.
    fn seconds(&self, cost: &Cost, job: &Job) -> f64 {
        let lacks = |term: Term| self.without.contains(&term);
        let ticks = |time: u128| time as f64 / Time::PER_SECOND as f64;
        let after = cost.after_passes(job);
        let mut seconds = ticks(cost.time_per_batch);
        if lacks(Term::Bubble) {
            seconds -= ticks(cost.bubble());
        }
        if lacks(Term::Gradients) {
            seconds -= ticks(u128::from(after.exposed) + u128::from(after.gather));
        }
        if lacks(Term::Optimizer) {
            seconds -= ticks(u128::from(after.step));
        }
        seconds
    }

    /// The devices of the run, on the network that its efficiency makes of the machine's.
    pub fn cluster(&self, physics: &Physics) -> Cluster {
        Cluster { devices: self.devices, network: physics.reached_network() }
    }

    fn cost(
        &self,
        (chip, cluster): (&Accelerator, &Cluster),
        table: &EstimateTable,
    ) -> Result<(Profile, Job, Cost), Inexpressible> {
        let passes = self.graphs.passes(&self.share, (chip, cluster), table, Rule::OwnKind)?;
        let time_model = TimeModel::OneForwardOneBackward;
        let mut profile = profile(&self.share, &passes, time_model);
        self.leave_out(&mut profile, (chip, cluster), table)?;
        let optimizer = Optimizer::AdamMixed;
        let asked = (chip, cluster);
        let mut job = job(asked, optimizer, self.micro_batches, time_model, table)?;
        job.ends = self.ends;
        let cost = cost(&profile, &job, &self.placement);
        Ok((profile, job, cost))
    }

    /// Takes the terms that are left out of the layers' passes.
    fn leave_out(
        &self,
        profile: &mut Profile,
        place: (&Accelerator, &Cluster),
        table: &EstimateTable,
    ) -> Result<(), Inexpressible> {
        let lacks = |term: Term| self.without.contains(&term);
        for (kind, layer) in profile.kinds.iter_mut().zip(&self.share.kinds) {
            for (ticks, pass) in
                [(&mut kind.forward, &layer.forward), (&mut kind.backward, &layer.backward)]
            {
                let parts = PassSpent::of(pass, &costs(pass, place.0, place.1, table)?);
                let less = |ticks: &mut u64, time: Time| *ticks = ticks.saturating_sub(time.0);
                if lacks(Term::Vector) {
                    less(ticks, parts.vector);
                }
                if lacks(Term::TensorExchange) {
                    less(ticks, parts.exchange);
                }
                if lacks(Term::Head) && !kind.repeatable {
                    *ticks = 0;
                }
            }
        }
        if lacks(Term::Sends) {
            for edge in &mut profile.edges {
                edge.part = Some(0);
            }
        }
        Ok(())
    }

    /// Where the time of a batch goes.
    pub fn parts(
        &self,
        (chip, cluster): (&Accelerator, &Cluster),
        table: &EstimateTable,
    ) -> Result<Parts, Inexpressible> {
        let (profile, job, cost) = self.cost((chip, cluster), table)?;
        let ranks = cost.ranks.len().max(1) as f64;
        let rounds = cost.micro_batches as f64 / ranks;
        let mut parts = Parts::default();
        let again = |layer: usize| {
            let stage = self.placement.pipeline.stages().position(|of| of.contains(&layer));
            stage.is_some_and(|stage| {
                let layers = self.placement.pipeline.stages().nth(stage).unwrap_or(&[]);
                let mut may = layers.iter().filter(|&&of| profile.layer(of).repeatable);
                may.by_ref().take(cost.stages[stage].repeated).any(|&of| of == layer)
            })
        };
        for (place, &kind) in self.share.sequence.iter().enumerate() {
            let layer = &self.share.kinds[kind];
            let mut spent = |pass: &Dag<Op>, times: f64| -> Result<(), TooLarge> {
                let found = PassSpent::of(pass, &costs(pass, chip, cluster, table)?);
                let [matmul, vector, attention, exchange] =
                    found.seconds().map(|seconds| seconds * times * rounds);
                if profile.kinds[kind].repeatable {
                    parts.matmul += matmul;
                    parts.vector += vector;
                    parts.attention += attention;
                    parts.exchange += exchange;
                } else {
                    parts.head += matmul + vector + attention + exchange;
                }
                Ok(())
            };
            spent(&layer.forward, if again(place) { 2.0 } else { 1.0 })?;
            spent(&layer.backward, 1.0)?;
        }
        let ticks = |time: u128| time as f64 / Time::PER_SECOND as f64;
        let after = cost.after_passes(&job);
        let sent: u64 = cost.stages.iter().map(|stage| stage.transfer).sum();
        parts.sends = ticks(u128::from(sent)) * rounds;
        parts.gradients = ticks(u128::from(after.exposed) + u128::from(after.gather));
        parts.optimizer = ticks(u128::from(after.step));
        parts.bubble = ticks(cost.bubble());
        Ok(parts)
    }

    /// Operations of a batch on one device of the average rank: matmuls forward, backward and
    /// repeated, all pairs of tokens counted.
    pub fn flops(&self) -> f64 {
        let setting = &self.share.setting;
        let ranks = self.placement.ranks().max(1) as f64;
        let rounds = self.micro_batches as f64 / self.placement.data_parallel as f64;
        let stages = self.placement.pipeline.n_stages() as u64;
        let again = |layers: u64| match self.placement.recompute {
            Recompute::First(each) => each.saturating_mul(stages).min(layers) as f64,
            _ => 0.0,
        };
        let of = |pass: &Dag<Op>| pass.nodes().iter().map(|op| op.flops().0).sum::<u128>() as f64;
        let mut all = 0.0;
        for (kind, layer) in self.share.kinds.iter().enumerate() {
            let count = self.share.sequence.iter().filter(|&&at| at == kind).count() as u64;
            let repeated = layer.repeated.0 as f64;
            // Fused attention makes its scores again in any case, which no account counts.
            let core = if setting.attention == Attention::Recomputed { repeated } else { 0.0 };
            let once = of(&layer.forward) + of(&layer.backward) + layer.hidden.0 as f64 - core;
            let repeatable = layer.input > Bytes::ZERO && layer.output > Bytes::ZERO;
            let more = if repeatable { again(count) * of(&layer.forward) } else { 0.0 };
            all += once * count as f64 + more;
        }
        all * rounds / ranks
    }

    /// What a pipeline of equal stages waits, as a part of its work.
    pub fn bubble(&self) -> f64 {
        let ranks = self.placement.ranks() as f64;
        let chunks = self.placement.schedule.chunks() as f64;
        let rounds = self.micro_batches as f64 / self.placement.data_parallel as f64;
        (ranks - 1.0) / (chunks * rounds)
    }
}

/// Which layers and modules a run computes again.
fn repeats(run: &Run, chunks: u64, nothing: bool) -> (Recompute, Modules) {
    let core = run.attention == Attention::Stored;
    match run.repeated {
        _ if nothing => (Recompute::None, Modules::NONE),
        Repeated::Core if core => (Recompute::None, Modules::NONE.with(Module::CoreAttention)),
        // A fused kernel keeps nothing of its core.
        Repeated::Nothing | Repeated::Core => (Recompute::None, Modules::NONE),
        Repeated::Layers => (Recompute::EVERY_LAYER, Modules::NONE),
        Repeated::Some(layers) => {
            let stages = run.pipeline * chunks;
            (Recompute::First(layers.div_ceil(stages)), Modules::NONE)
        }
    }
}

fn placement(
    run: &Run,
    share: &Share,
    chunks: u64,
    recompute: Recompute,
    micro_batch: u64,
) -> Result<Placement, Inexpressible> {
    let stages = run.pipeline * chunks;
    let layers = run.model.spec.layers;
    let n_stages = usize::try_from(stages).unwrap_or(usize::MAX);
    let pipeline = even_cut(&share.sequence, n_stages);
    let pipeline = pipeline.ok_or(Inexpressible::Stages { stages, layers })?;
    let ranks = usize::try_from(run.pipeline).unwrap_or(usize::MAX);
    let chunks = usize::try_from(chunks).unwrap_or(usize::MAX);
    let schedule = match chunks {
        0 | 1 => PassOrder::OneForwardOneBackward,
        _ => PassOrder::Interleaved { chunks, group: run.pipeline },
    };
    let rounds = run.global_batch / (micro_batch * run.data);
    schedule.check(ranks, rounds).map_err(|why| Inexpressible::Order(why.to_string()))?;
    Ok(Placement {
        data_parallel: run.data,
        recompute,
        pipeline,
        schedule,
        zero: run.zero,
        shards: None,
        order: Order::default(),
    })
}

/// The time of a pass's kernels by what they do.
struct PassSpent {
    matmul: Time,
    vector: Time,
    attention: Time,
    exchange: Time,
}

impl PassSpent {
    fn of(ops: &Dag<Op>, costs: &[OpCosts]) -> Self {
        let zero = Time::ZERO;
        let mut spent = Self { matmul: zero, vector: zero, attention: zero, exchange: zero };
        for (op, cost) in ops.nodes().iter().zip(costs) {
            let time = cost.spread.time;
            match &op.work {
                // Experts are a batch of matmuls too, but of weights.
                Work::Matmul { matmul, homes, grouped: false, .. }
                    if matmul.b > 1 || homes.stay() =>
                {
                    spent.attention += time;
                }
                Work::Matmul { .. } | Work::Opaque { .. } => spent.matmul += time,
                Work::Vector(chain) if chain.iter().any(|w| w.kind == VectorKind::Softmax) => {
                    spent.attention += time;
                }
                Work::Vector(_) | Work::Move => spent.vector += time,
                Work::Collective(_) => spent.exchange += time,
            }
        }
        spent
    }

    fn seconds(&self) -> [f64; 4] {
        [self.matmul, self.vector, self.attention, self.exchange].map(Time::seconds)
    }
}
