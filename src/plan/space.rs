//! The space of strategies that a plan is chosen from: what "proved" speaks of.

use serde::Deserialize;
use serde::Serialize;

use super::Buckets;
use super::Recompute;
use crate::model::Modules;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::frameworks::Framework;
use crate::parallel::zero::Zero;

/// The least and the greatest of a range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// No less.
    pub least: u64,
    /// No more.
    pub most: u64,
}

/// Where layers may be cut into stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutSpace {
    /// Anywhere.
    Best,
    /// Where repeated layers are divided evenly.
    Even,
}

/// Every strategy that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategySpace {
    /// Sequences in a micro-batch, any of these.
    pub micro_batches: Vec<u64>,
    /// Devices that share each layer, any of these that the model allows.
    pub tensor_parallel: Vec<u64>,
    /// Whether those devices divide norms, dropouts and residual adds along the sequence too.
    pub sequence_parallel: Vec<bool>,
    /// Devices that share the tokens of each sequence, any of these that the model allows.
    pub context_parallel: Vec<u64>,
    /// How they let their tokens attend to each other's.
    pub context_kinds: Vec<ContextKind>,
    /// Devices among which the experts of each layer are dealt out, any of these that the model
    /// allows.
    #[serde(default = "only_one", skip_serializing_if = "is_only_one")]
    pub expert_parallel: Vec<u64>,
    /// Devices that share each expert, any of these that the model allows; of several, those that
    /// are one or the width.
    #[serde(default = "only_one", skip_serializing_if = "is_only_one")]
    pub expert_tensor: Vec<u64>,
    /// Ranks of a pipeline.
    pub pipeline: Limits,
    /// Virtual stages of each rank.
    pub chunks: Limits,
    /// Micro-batches of a group where ranks have several virtual stages; `None` for as many as
    /// there are ranks.
    pub group: Option<u64>,
    /// Copies of the pipeline.
    pub data_parallel: Limits,
    /// What replicas may share where a pipeline has one rank.
    pub zero: Vec<Zero>,
    /// What they may share where it has several.
    pub zero_in_pipelines: Vec<Zero>,
    /// How many replicas share; `None` for all.
    pub shards: Option<u64>,
    /// How devices may be numbered.
    pub orders: Vec<Order>,
    /// Which whole layers may be computed again.
    pub recompute: Vec<Recompute>,
    /// Which modules of every layer may be computed again.
    pub repeated: Vec<Modules>,
    /// Where layers may be cut into stages.
    pub cut: CutSpace,
    /// What must accept the plan.
    pub framework: Framework,
}

fn only_one() -> Vec<u64> {
    vec![1]
}

fn is_only_one(degrees: &[u64]) -> bool {
    degrees == [1]
}

impl Limits {
    /// Every number.
    pub const ALL: Self = Self { least: 1, most: u64::MAX };

    /// One number.
    pub fn only(number: u64) -> Self {
        Self { least: number, most: number }
    }

    /// Whether a number is among them.
    pub fn contains(&self, number: u64) -> bool {
        (self.least..=self.most).contains(&number)
    }
}

impl StrategySpace {
    /// Whether experts may be divided among devices.
    pub fn divides_experts(&self) -> bool {
        self.expert_parallel != [1] || self.expert_tensor != [1]
    }

    /// Data, tensor and pipeline parallelism alone, one virtual stage for each rank, whole layers
    /// computed again: what the published evaluation chooses from.
    pub fn plain(
        micro_batches: Vec<u64>,
        tensor_parallel: Vec<u64>,
        recompute: Vec<Recompute>,
    ) -> Self {
        Self {
            micro_batches,
            tensor_parallel,
            sequence_parallel: vec![false],
            context_parallel: vec![1],
            context_kinds: vec![ContextKind::Ring],
            expert_parallel: only_one(),
            expert_tensor: only_one(),
            pipeline: Limits::ALL,
            chunks: Limits::only(1),
            group: None,
            data_parallel: Limits::ALL,
            zero: vec![Zero::Nothing],
            zero_in_pipelines: vec![Zero::Nothing],
            shards: None,
            orders: vec![Order::default()],
            recompute,
            repeated: vec![Modules::NONE],
            cut: CutSpace::Best,
            framework: Framework::Any,
        }
    }

    /// Every way to divide experts, dealt out and each by itself, where layers have this width.
    pub fn expert_degrees(&self, width: u64) -> impl Iterator<Item = (u64, u64)> {
        let is_given = self.expert_tensor.len() == 1;
        let divided = self.expert_tensor.iter().copied();
        let divided = divided.filter(move |&degree| is_given || degree == 1 || degree == width);
        let dealt = self.expert_parallel.iter().copied();
        dealt.flat_map(move |expert| divided.clone().map(move |each| (expert, each)))
    }

    /// What replicas may share with so many ranks.
    pub fn zero_with(&self, ranks: u64) -> &[Zero] {
        if ranks == 1 { &self.zero } else { &self.zero_in_pipelines }
    }

    /// Which gradients are exchanged together.
    pub fn buckets(&self) -> Buckets {
        match self.framework {
            Framework::Megatron => Buckets::FirstRank { least: 40_000_000, per_replica: 1_000_000 },
            Framework::Torchtitan | Framework::Maxtext | Framework::Any => Buckets::Layers,
        }
    }
}
