//! What training a model computes, keeps and exchanges: text, JSON, or a graph for Graphviz.

mod dot;
mod json;
mod text;

pub use dot::write as dot;
pub use json::write as json;
pub use text::write as text;

use crate::graph::Dag;
use crate::model::Model;
use crate::model::Optimizer;
use crate::model::op::Op;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::parallel::Illegal;
use crate::parallel::LayerShare;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::shard;
use crate::units::Bytes;
use crate::units::Flops;

/// A model, what one device does for it, and what it needs as a whole.
pub struct Inspection<'a> {
    /// The model.
    pub model: &'a Model,
    /// One device's share.
    pub share: Share,
    /// Whose gradients and state are counted.
    pub optimizer: Optimizer,
    /// Operations of the whole model for one sequence.
    pub flops: TrainingFlops,
}

/// Operations for one sequence, as published accounts count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingFlops {
    /// From input to loss.
    pub forward: Flops,
    /// Forward and backward, without anything done twice.
    pub training: Flops,
    /// The same with every transformer layer's forward pass done twice.
    pub full_recompute: Flops,
    /// The scores that recomputed attention does once more, in none of the others.
    pub attention_repeated: Flops,
}

/// Memory for parameters, by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateBytes {
    weights: Bytes,
    gradients: Bytes,
    optimizer: Bytes,
}

impl<'a> Inspection<'a> {
    /// Looks at `model` as it is trained in `setting`.
    pub fn new(model: &'a Model, setting: Setting, optimizer: Optimizer) -> Result<Self, Illegal> {
        let share = shard(model, setting)?;
        let whole = Setting {
            micro_batch: 1,
            tensor_parallel: 1,
            sequence_parallel: false,
            context: 1,
            ..setting
        };
        let flops = TrainingFlops::of(&shard(model, whole)?);
        Ok(Self { model, share, optimizer, flops })
    }

    fn state(&self, parameters: u64) -> StateBytes {
        StateBytes {
            weights: self.optimizer.weight() * parameters,
            gradients: self.optimizer.gradient() * parameters,
            optimizer: self.optimizer.state() * parameters,
        }
    }

    /// Parameters that one device holds of all layers.
    fn device_parameters(&self) -> u64 {
        self.layers().map(|(count, layer)| count * layer.parameters).sum()
    }

    /// What all layers keep for the backward pass of one micro-batch.
    fn kept(&self) -> Bytes {
        self.layers().map(|(count, layer)| layer.kept * count).sum()
    }

    /// Each kind of layer with how often it occurs.
    fn layers(&self) -> impl Iterator<Item = (u64, &LayerShare)> {
        let kinds = self.share.kinds.iter().enumerate();
        kinds.map(|(kind, layer)| (self.model.occurrences(kind), layer))
    }
}

impl TrainingFlops {
    /// Of a share that is the whole model, for one sequence.
    fn of(share: &Share) -> Self {
        let mut total = Self {
            forward: Flops::ZERO,
            training: Flops::ZERO,
            full_recompute: Flops::ZERO,
            attention_repeated: Flops::ZERO,
        };
        for (kind, layer) in share.kinds.iter().enumerate() {
            let count = share.sequence.iter().filter(|&&at| at == kind).count() as u64;
            let forward = pass_flops(&layer.forward) * count;
            // The operators of the backward pass hold the repeated ones; leave those out.
            let all_backward = pass_flops(&layer.backward);
            let backward = Flops(all_backward.0 - layer.repeated.0) * count;
            let is_recomputed = layer.input > Bytes::ZERO && layer.output > Bytes::ZERO;
            total.forward += forward;
            total.training += forward + backward;
            total.full_recompute += forward + backward;
            if is_recomputed {
                total.full_recompute += forward;
            }
            total.attention_repeated += layer.repeated * count;
        }
        total
    }
}

/// Operations of one pass.
fn pass_flops(pass: &Dag<Op>) -> Flops {
    pass.nodes().iter().map(Op::flops).sum()
}

/// The vector work of an operator: fused to a matmul, or alone.
fn vector_work(op: &Op) -> &[VectorWork] {
    match &op.work {
        Work::Matmul { fused, .. } => fused,
        Work::Vector(work) => work,
        Work::Opaque { .. } | Work::Move | Work::Collective(_) => &[],
    }
}
