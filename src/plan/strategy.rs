//! A strategy as one value: how layers, sequences, batches and states are divided.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use super::PassOrder;
use super::Recompute;
use crate::model::Modules;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::zero::Zero;

/// How a model is trained on devices, the cut into stages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strategy {
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Whether they divide norms, dropouts and residual adds along the sequence too.
    pub sequence_parallel: bool,
    /// Devices that share the tokens of each sequence.
    pub context_parallel: u64,
    /// How they let their tokens attend to each other's.
    pub context_kind: ContextKind,
    /// Devices among which the experts of each layer are dealt out.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub expert_parallel: u64,
    /// Devices that share each expert.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub expert_tensor: u64,
    /// Ranks of a pipeline.
    pub pipeline: u64,
    /// In which order ranks run their passes, with how many virtual stages each.
    pub schedule: PassOrder,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Sequences in a micro-batch.
    pub micro_batch: u64,
    /// What replicas share.
    pub zero: Zero,
    /// How many replicas share; `None` for all.
    pub shards: Option<u64>,
    /// How devices are numbered, the innermost axis first.
    pub order: Order,
    /// Which whole layers are computed again.
    pub recompute: Recompute,
    /// Which modules of every layer are computed again.
    pub repeated: Modules,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(degree: &u64) -> bool {
    *degree == 1
}

impl Strategy {
    /// Whether no whole layer runs its forward pass twice.
    pub fn repeats_no_layer(&self) -> bool {
        match self.recompute {
            Recompute::None | Recompute::First(0) => true,
            // A single stage is the last one, which repeats nothing.
            Recompute::Stage => self.pipeline == 1,
            Recompute::Full | Recompute::First(_) | Recompute::AsNeeded => false,
        }
    }
}

impl fmt::Display for Strategy {
    /// What a planner calls it: `TP 8 with sequence parallelism x PP 4 (5 chunks each) x DP 8,
    /// ZeRO-1, micro-batch 1, no recompute`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TP {}", self.tensor_parallel)?;
        if self.sequence_parallel {
            f.write_str(" with sequence parallelism")?;
        }
        if self.context_parallel > 1 {
            write!(f, " x CP {} ({})", self.context_parallel, self.context_kind)?;
        }
        for (name, degree) in [("EP", self.expert_parallel), ("ETP", self.expert_tensor)] {
            if degree > 1 {
                write!(f, " x {name} {degree}")?;
            }
        }
        write!(f, " x PP {}", self.pipeline)?;
        if let PassOrder::Interleaved { chunks, .. } = self.schedule {
            write!(f, " ({chunks} chunks each)")?;
        }
        write!(f, " x DP {}", self.data_parallel)?;
        if self.zero > Zero::Nothing {
            write!(f, ", ZeRO-{}", self.zero.stage())?;
            if let Some(shards) = self.shards {
                write!(f, " over {shards}")?;
            }
        }
        write!(f, ", micro-batch {}, ", self.micro_batch)?;
        match (self.recompute, self.repeated == Modules::NONE) {
            (Recompute::None | Recompute::First(0), true) => f.write_str("no recompute")?,
            (Recompute::None | Recompute::First(0), false) => {
                write!(f, "selective recompute ({})", self.repeated)?;
            }
            (recompute, selective) => {
                match recompute {
                    Recompute::Full | Recompute::First(u64::MAX) => {
                        f.write_str("full recompute")?;
                    }
                    Recompute::Stage => f.write_str("recompute by stage")?,
                    Recompute::First(layers) => {
                        write!(f, "recompute of the first {layers} layers of each stage")?;
                    }
                    _ => f.write_str("recompute of as many layers as memory asks for")?,
                }
                if !selective {
                    write!(f, " and of {}", self.repeated)?;
                }
            }
        }
        if self.order != Order::default() && self.pipeline > 1 {
            write!(f, ", order {}", self.order)?;
        }
        Ok(())
    }
}
