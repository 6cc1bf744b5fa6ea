//! Sharded data parallelism (`ZeRO`): what the replicas of a device's parameters hold of them, and
//! what they exchange.
//!
//! In: how many parameters a device has after all other axes have divided them, and how its
//! replicas share them. Replicas are the devices of the data and of the context axis together,
//! since both work with the same weights. Out: bytes held in shards, what is whole for a while on
//! top of them, and the exchanges of a batch.
//!
//! A shard is rounded up to whole bytes; frameworks pad it further, to what their kernels like.

use serde::Deserialize;
use serde::Serialize;

use super::Parameters;
use super::Setting;
use super::Share;
use crate::graph::Dag;
use crate::model::Axis;
use crate::model::Optimizer;
use crate::model::Stack;
use crate::model::op::Collective;
use crate::model::op::CollectiveKind;
use crate::model::op::Op;
use crate::model::op::Traffic;
use crate::model::op::Work;
use crate::units::Bytes;

/// What replicas share instead of holding it all: each stage shares what the one before does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Zero {
    /// Nothing: stage 0.
    Nothing,
    /// The optimizer's state: stage 1.
    State,
    /// Gradients as well: stage 2.
    Gradients,
    /// Weights as well, gathered layer by layer when they are needed: stage 3.
    Weights,
}

impl Zero {
    /// All stages, from the first.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::State, Self::Gradients, Self::Weights];

    /// Its number.
    pub fn stage(self) -> usize {
        self as usize
    }

    /// The stage of that number.
    pub fn of_stage(stage: usize) -> Option<Self> {
        Self::ALL.get(stage).copied()
    }
}

/// A number that is no stage of sharding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no stage {found} of sharding; allowed are 0, 1, 2 and 3")]
pub struct UnknownZero {
    /// What was found.
    pub found: u8,
}

impl TryFrom<u8> for Zero {
    type Error = UnknownZero;

    fn try_from(found: u8) -> Result<Self, UnknownZero> {
        Self::of_stage(found.into()).ok_or(UnknownZero { found })
    }
}

impl From<Zero> for u8 {
    fn from(zero: Zero) -> Self {
        zero as Self
    }
}

/// What becomes of gathered weights after the forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reshard {
    /// They are dropped, and gathered once more for the backward pass.
    AfterForward,
    /// They stay until the backward pass has used them.
    Never,
}

/// Bytes of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParameterBytes {
    /// Of the weight that the passes read.
    pub weight: Bytes,
    /// Of the gradient as it is summed up on a device.
    pub gradient: Bytes,
    /// Of the gradient as replicas exchange it.
    pub reduced: Bytes,
    /// Of the optimizer's state.
    pub state: Bytes,
}

impl ParameterBytes {
    /// Gradients are exchanged as they are summed up, unless the software does otherwise.
    pub fn new(optimizer: Optimizer, stack: &Stack) -> Self {
        let gradient = optimizer.gradient();
        let (weight, state) = (optimizer.weight(), optimizer.state());
        let reduced = stack.gradient_bytes.map_or(gradient, |bytes| Bytes(bytes.into()));
        Self { weight, gradient, reduced, state }
    }
}

/// How the replicas of a device share its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sharding {
    zero: Zero,
    reshard: Reshard,
    replicas: u64,
    shards: u64,
}

/// Bytes on one device, by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterMemory {
    /// Weights.
    pub weights: Bytes,
    /// Their gradients.
    pub gradients: Bytes,
    /// What the optimizer keeps beside them.
    pub state: Bytes,
}

impl ParameterMemory {
    /// All of it.
    pub fn total(self) -> Bytes {
        self.weights + self.gradients + self.state
    }
}

/// When replicas exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// In the forward pass of every micro-batch.
    EveryForward,
    /// In the backward pass of every micro-batch.
    EveryBackward,
    /// Once per batch, before the optimizer's step.
    BeforeStep,
    /// Once per batch, after it.
    AfterStep,
}

/// One exchange of a device's parameters or gradients among its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaExchange {
    /// How it is exchanged.
    pub kind: CollectiveKind,
    /// The whole tensor, as exchanges state it.
    pub size: Bytes,
    /// When it happens.
    pub when: When,
    /// How many replicas take part.
    pub group: u64,
    /// How far apart two neighbours are, counted along [`AXES`].
    pub stride: u64,
}

/// The axes whose devices are replicas of each other, the inner one first.
pub const AXES: [Axis; 2] = [Axis::Context, Axis::Data];

impl Sharding {
    /// All `replicas` share everything that `zero` shares.
    pub fn new(zero: Zero, replicas: u64) -> Self {
        let replicas = replicas.max(1);
        Self { zero, reshard: Reshard::AfterForward, replicas, shards: replicas }
    }

    /// Groups of `shards` replicas share, and the groups are copies of each other; none where the
    /// groups would be uneven.
    pub fn hybrid(zero: Zero, replicas: u64, shards: u64) -> Option<Self> {
        let even = shards > 0 && replicas > 0 && replicas.is_multiple_of(shards);
        even.then_some(Self { zero, reshard: Reshard::AfterForward, replicas, shards })
    }

    /// The same with gathered weights kept or dropped.
    #[must_use]
    pub fn with(self, reshard: Reshard) -> Self {
        Self { reshard, ..self }
    }

    /// Whether several replicas share anything.
    pub fn is_shared(self) -> bool {
        self.shards > 1
    }

    /// What a device holds at all times of its `parameters`.
    pub fn held(self, parameters: u64, bytes: ParameterBytes) -> ParameterMemory {
        let held = |each: Bytes, shared: bool| {
            share(parameters, each, if shared { self.shards } else { 1 })
        };
        ParameterMemory {
            weights: held(bytes.weight, self.zero >= Zero::Weights),
            gradients: held(bytes.gradient, self.zero >= Zero::Gradients),
            state: held(bytes.state, self.zero >= Zero::State),
        }
    }

    /// What a device holds on top of its shards at most while a pass runs, where its layers have
    /// so many parameters each, in order.
    ///
    /// Whole gradients of one layer wait until they are scattered. Whole weights are there of the
    /// layer that runs and of the one that is gathered meanwhile, or of all layers where they are
    /// not dropped after the forward pass.
    pub fn gathered(self, layers: &[u64], bytes: ParameterBytes) -> ParameterMemory {
        let one = layers.iter().copied().max().unwrap_or(0);
        let two = layers.windows(2).map(|pair| pair[0] + pair[1]).max().unwrap_or(one);
        let whole = match self.reshard {
            Reshard::AfterForward => two,
            Reshard::Never => layers.iter().sum(),
        };
        let if_shared = |stage: Zero, size: Bytes| {
            if self.shards > 1 && self.zero >= stage { size } else { Bytes::ZERO }
        };
        ParameterMemory {
            weights: if_shared(Zero::Weights, bytes.weight * whole),
            gradients: if_shared(Zero::Gradients, bytes.gradient * one),
            state: Bytes::ZERO,
        }
    }

    /// Of how many of its `parameters` a device does the optimizer's step.
    pub fn stepped(self, parameters: u64) -> u64 {
        if self.zero >= Zero::State { parameters.div_ceil(self.shards) } else { parameters }
    }

    /// What the replicas of a device with so many parameters exchange.
    pub fn exchanges(self, parameters: u64, bytes: ParameterBytes) -> Vec<ReplicaExchange> {
        use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
        let (weights, gradients) = (bytes.weight * parameters, bytes.reduced * parameters);
        let among =
            |kind, size, when, group, stride| ReplicaExchange { kind, size, when, group, stride };
        let inside = |kind, size, when| among(kind, size, when, self.shards, 1);
        let mut all = match self.zero {
            Zero::Nothing => {
                let whole = among(AllReduce, gradients, When::BeforeStep, self.replicas, 1);
                return if self.replicas > 1 { vec![whole] } else { Vec::new() };
            }
            Zero::State => vec![
                inside(ReduceScatter, gradients, When::BeforeStep),
                inside(AllGather, weights, When::AfterStep),
            ],
            Zero::Gradients => vec![
                inside(ReduceScatter, gradients, When::EveryBackward),
                inside(AllGather, weights, When::AfterStep),
            ],
            Zero::Weights => vec![
                inside(AllGather, weights, When::EveryForward),
                inside(ReduceScatter, gradients, When::EveryBackward),
            ],
        };
        if self.zero == Zero::Weights && self.reshard == Reshard::AfterForward {
            all.insert(1, inside(AllGather, weights, When::EveryBackward));
        }
        let part = share(parameters, bytes.reduced, self.shards);
        let copies = self.replicas / self.shards;
        all.push(among(AllReduce, part, When::BeforeStep, copies, self.shards));
        all.retain(|exchange| exchange.group > 1);
        all
    }
}

/// One of `shards` even parts of so many parameters, in whole bytes.
fn share(parameters: u64, each: Bytes, shards: u64) -> Bytes {
    Bytes((each * parameters).0.div_ceil(shards))
}

/// Replicas that share what is exchanged inside layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharers {
    /// How many share each parameter.
    pub shards: u64,
    /// How many share each parameter of experts.
    pub expert_shards: u64,
}

impl Sharers {
    /// All of them, where there are so many copies of a pipeline.
    pub fn all(setting: &Setting, copies: u64) -> Self {
        let replicas = copies.saturating_mul(setting.context);
        Self::of(setting, copies, replicas)
    }

    /// The same in groups of `shards` replicas: the groups of experts are as many.
    pub fn of(setting: &Setting, copies: u64, shards: u64) -> Self {
        let replicas = copies.saturating_mul(setting.context);
        let groups = (replicas / shards.max(1)).max(1);
        Self { shards, expert_shards: (setting.expert_replicas(copies) / groups).max(1) }
    }
}

/// A share whose layers exchange inside every pass what replicas share: weights are gathered
/// for the next layer while one runs, gradients scattered while the next one runs. In the steady
/// course of a pass each layer has one exchange of either beside its own operators, waited for by
/// nobody in it.
pub fn with_exchanges(share: &Share, zero: Zero, sharers: Sharers, bytes: ParameterBytes) -> Share {
    let dense = (sharers.shards, share.setting.tensor_parallel);
    let experts = (sharers.expert_shards, share.setting.expert_devices());
    let mut found = share.clone();
    for layer in &mut found.kinds {
        let mut parameters = layer.by_replicas();
        if dense == experts {
            // The same devices exchange all of it at once.
            parameters = Parameters::dense(parameters.all());
        }
        let parts = [("", parameters.dense, dense), ("_of_experts", parameters.experts, experts)];
        let add = |pass: &mut Dag<Op>, name: &str, kind: CollectiveKind, each: Bytes| {
            for (of, n, (group, stride)) in parts {
                let size = each * n;
                if size == Bytes::ZERO || group <= 1 {
                    continue;
                }
                let axis = Axis::Data;
                let (times, hidden) = (1, 0);
                let exchange = Collective { kind, size, axis, group, stride, times, hidden };
                let (name, work) = (format!("{name}{of}"), Work::Collective(exchange));
                pass.add(Op { name, work, traffic: Traffic::default() }, &[]);
            }
        };
        if zero >= Zero::Weights {
            let gather = CollectiveKind::AllGather;
            add(&mut layer.forward, "gather_weights", gather, bytes.weight);
            add(&mut layer.backward, "gather_weights", gather, bytes.weight);
        }
        if zero >= Zero::Gradients {
            let scatter = CollectiveKind::ReduceScatter;
            add(&mut layer.backward, "scatter_gradients", scatter, bytes.reduced);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};

    const ADAM: ParameterBytes = ParameterBytes {
        weight: Bytes(2),
        gradient: Bytes(4),
        reduced: Bytes(2),
        state: Bytes(12),
    };

    #[test]
    fn a_higher_stage_never_holds_more_in_shards() {
        for parameters in [0, 1, 7, 1000, 123_456_789] {
            for replicas in 1..=24 {
                for shards in (1..=replicas).filter(|&n| replicas % n == 0) {
                    let held = Zero::ALL.map(|zero| {
                        Sharding::hybrid(zero, replicas, shards).unwrap().held(parameters, ADAM)
                    });
                    for pair in held.windows(2) {
                        assert!(pair[1].weights <= pair[0].weights);
                        assert!(pair[1].gradients <= pair[0].gradients);
                        assert!(pair[1].state <= pair[0].state);
                        assert!(pair[1].state * shards >= pair[0].weights * 6, "all is held");
                    }
                }
            }
        }
    }

    #[test]
    fn more_shards_never_hold_more() {
        for zero in Zero::ALL {
            let held = |shards| Sharding::hybrid(zero, 24, shards).unwrap().held(1001, ADAM);
            for pair in [1, 2, 3, 4, 6, 8, 12, 24].windows(2) {
                assert!(held(pair[1]).total() <= held(pair[0]).total());
            }
        }
    }

    #[test]
    fn each_stage_shares_one_thing_more() {
        let held = Zero::ALL.map(|zero| {
            let held = Sharding::new(zero, 8).held(800, ADAM);
            [held.weights, held.gradients, held.state].map(|bytes| bytes.0)
        });
        assert_eq!(
            held,
            [[1600, 3200, 9600], [1600, 3200, 1200], [1600, 400, 1200], [200, 400, 1200]]
        );
        assert_eq!(Sharding::new(Zero::State, 8).stepped(801), 101);
        assert_eq!(Sharding::new(Zero::Nothing, 8).stepped(801), 801);
    }

    #[test]
    fn two_layers_are_whole_while_one_runs_and_a_bucket_waits() {
        let gathered = |sharding: Sharding| {
            let gathered = sharding.gathered(&[5, 10, 10, 30], ADAM);
            (gathered.weights.0, gathered.gradients.0, gathered.state.0)
        };
        assert_eq!(gathered(Sharding::new(Zero::State, 8)), (0, 0, 0));
        assert_eq!(gathered(Sharding::new(Zero::Gradients, 8)), (0, 4 * 30, 0));
        assert_eq!(gathered(Sharding::new(Zero::Weights, 8)), (2 * 40, 4 * 30, 0));
        let kept = Sharding::new(Zero::Weights, 8).with(Reshard::Never);
        assert_eq!(gathered(kept), (2 * 55, 4 * 30, 0));
        assert_eq!(gathered(Sharding::new(Zero::Weights, 1)), (0, 0, 0), "nothing is shared");
    }

    #[test]
    fn replicas_exchange_what_their_stage_needs() {
        let exchanges = |sharding: Sharding| -> Vec<(CollectiveKind, u64, When, u64, u64)> {
            let all = sharding.exchanges(80, ADAM);
            all.iter().map(|e| (e.kind, e.size.0, e.when, e.group, e.stride)).collect()
        };
        let every = |zero| exchanges(Sharding::new(zero, 8));
        let (gradients, weights) = (160, 160);
        assert_eq!(every(Zero::Nothing), [(AllReduce, gradients, When::BeforeStep, 8, 1)]);
        assert_eq!(
            every(Zero::State),
            [
                (ReduceScatter, gradients, When::BeforeStep, 8, 1),
                (AllGather, weights, When::AfterStep, 8, 1)
            ]
        );
        assert_eq!(
            every(Zero::Gradients),
            [
                (ReduceScatter, gradients, When::EveryBackward, 8, 1),
                (AllGather, weights, When::AfterStep, 8, 1)
            ]
        );
        assert_eq!(
            every(Zero::Weights),
            [
                (AllGather, weights, When::EveryForward, 8, 1),
                (AllGather, weights, When::EveryBackward, 8, 1),
                (ReduceScatter, gradients, When::EveryBackward, 8, 1)
            ]
        );
        let kept = Sharding::new(Zero::Weights, 8).with(Reshard::Never);
        assert_eq!(exchanges(kept).len(), 2, "weights are gathered once");
        let hybrid = Sharding::hybrid(Zero::State, 8, 4).unwrap();
        assert_eq!(
            exchanges(hybrid),
            [
                (ReduceScatter, gradients, When::BeforeStep, 4, 1),
                (AllGather, weights, When::AfterStep, 4, 1),
                (AllReduce, gradients / 4, When::BeforeStep, 2, 4)
            ]
        );
        for zero in Zero::ALL {
            assert_eq!(exchanges(Sharding::new(zero, 1)), [], "a device alone");
            let apart = Sharding::hybrid(zero, 8, 1).unwrap();
            assert_eq!(exchanges(apart), [(AllReduce, gradients, When::BeforeStep, 8, 1)]);
        }
        assert_eq!(Sharding::hybrid(Zero::State, 8, 3), None);
    }
}
