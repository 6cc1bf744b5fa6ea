//! What one device holds and does for one micro-batch.

use super::ContextKind;
use super::Parameters;
use crate::graph::Dag;
use crate::model::Attention;
use crate::model::Kernels;
use crate::model::Masked;
use crate::model::Modules;
use crate::model::Stack;
use crate::model::op::Op;
use crate::model::spec::Spec;
use crate::model::spec::greatest_common_divisor;
use crate::units::Bytes;
use crate::units::Flops;

/// How a model is trained, as far as one device's work depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Sequences that pass through the model together.
    pub micro_batch: u64,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Whether those devices divide norms, dropouts and residual adds along the sequence too.
    pub sequence_parallel: bool,
    /// Devices that share the tokens of each sequence.
    pub context: u64,
    /// How those devices let their tokens attend to each other's; nothing where there is one.
    pub context_kind: ContextKind,
    /// Devices among which the experts of a layer are dealt out; one where there are none.
    pub expert: u64,
    /// Devices that share each expert; one where there are none.
    pub expert_tensor: u64,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// Which modules the backward pass repeats.
    pub repeated: Modules,
    /// What recomputed attention does with what a causal mask hides.
    pub masked: Masked,
    /// The size of one activation, weight or gradient: 2 bytes for bf16.
    pub element: Bytes,
    /// What software makes of it.
    pub stack: Stack,
}

impl Setting {
    /// One sequence of one token on one device, nothing repeated but attention's core: what others
    /// are written from.
    pub const ALONE: Self = Self {
        micro_batch: 1,
        sequence: 1,
        tensor_parallel: 1,
        sequence_parallel: false,
        context: 1,
        context_kind: ContextKind::Ring,
        expert: 1,
        expert_tensor: 1,
        attention: Attention::Recomputed,
        repeated: Modules::NONE,
        masked: Masked::Computed,
        element: Bytes(2),
        stack: Stack::IDEAL,
    };

    /// Tokens of a sequence on one device.
    pub fn own_tokens(self) -> u64 {
        self.sequence / self.context
    }

    /// In how many parts devices that hold the same tensor send it to the next stage: frameworks
    /// send a part from each device that shares a layer. Where it is divided along the sequence, each
    /// holds a part anyway.
    pub fn parts_of_a_send(self) -> u64 {
        match self.stack.kernels {
            Kernels::Megatron if !self.sequence_parallel => self.tensor_parallel,
            Kernels::Megatron | Kernels::FusedIdeal => 1,
        }
    }

    /// The same with each expert divided as layers are, where there are some.
    #[must_use]
    pub fn with_experts_as_layers(self, spec: &Spec) -> Self {
        let expert_tensor = if spec.experts.is_some() { self.tensor_parallel } else { 1 };
        Self { expert_tensor, ..self }
    }

    /// How many devices hold all experts of a layer together, each of them once.
    pub fn expert_devices(self) -> u64 {
        self.expert.saturating_mul(self.expert_tensor)
    }

    /// How many devices of a rank hold the same expert, or the same part of it, where there are so
    /// many copies of the pipeline.
    pub fn expert_replicas(self, copies: u64) -> u64 {
        self.devices().saturating_mul(copies) / self.expert_devices()
    }

    /// Copies of a pipeline must be a multiple of this, so that the devices of a rank hold every
    /// expert equally often.
    pub fn copies_for_experts(self) -> u64 {
        even_copies(self.expert_devices(), self.devices())
    }

    /// How many devices share the work of one sequence in a layer.
    pub fn devices(self) -> u64 {
        self.tensor_parallel * self.context
    }
}

/// Of how many groups of `sharers` devices all multiples can be divided into groups of `owners`.
pub fn even_copies(owners: u64, sharers: u64) -> u64 {
    owners / greatest_common_divisor(owners, sharers).max(1)
}

/// One device's part of a model for one micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it was made for.
    pub setting: Setting,
    /// The distinct layers, in the order in which they first occur.
    pub kinds: Vec<LayerShare>,
    /// The layers from input to loss, each an index into `kinds`.
    pub sequence: Vec<usize>,
    /// The embedding table that the head uses too, where the model ties them.
    pub tied: Option<Tied>,
}

/// A table that the first layer holds and the last one uses too.
///
/// It is counted in the first layer's parameters only: a device that holds the last layer without
/// the first needs a copy, and the two exchange its gradient once per batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tied {
    /// Its elements on one device.
    pub parameters: u64,
}

/// One device's part of one kind of layer for one micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerShare {
    /// What a reader knows it by: `embedding`, `transformer`, `head`.
    pub name: String,
    /// From what enters the layer to what leaves it.
    pub forward: Dag<Op>,
    /// From the gradient of what leaves to those of the weights and of what enters.
    pub backward: Dag<Op>,
    /// Parameters that one device holds, replicated and padded ones among them.
    pub parameters: u64,
    /// Of these, the parameters of experts, whose replicas are other devices than those of the rest.
    pub expert_parameters: u64,
    /// Of the parameters that all devices of the group hold together, the further copies of what
    /// several hold alike.
    pub replicated: u64,
    /// Of the parameters that all devices of the group hold together, those that only fill the
    /// vocabulary up to an even division.
    pub padded: u64,
    /// What stays in memory for the backward pass, the layer's input included where it is needed.
    pub kept: Bytes,
    /// What a pass holds for a moment on top of what is kept in flight: gradients of the weights of
    /// its matmuls and of what flows through it, or the logits with their gradient.
    pub working: Bytes,
    /// Of what is kept, the part that is among `working` because its backward pass follows at once:
    /// the logits.
    pub passing: Bytes,
    /// Gradients of the weights of its matmuls, before they are added to earlier ones.
    pub weight_gradients: Bytes,
    /// What crosses to this device from the layer before; 0 for the first, which reads ids.
    pub input: Bytes,
    /// What crosses from this device to the layer after; 0 for the last, which ends in the loss.
    pub output: Bytes,
    /// Whether several devices share it.
    pub tensor_parallel: bool,
    /// Of the backward pass's operations, those that repeat the forward pass (recomputed
    /// attention, repeated modules), which published accounts leave out.
    pub repeated: Flops,
    /// What both passes leave out because a causal mask hides it, repetitions apart: with it, the
    /// operations are those that published accounts count.
    pub hidden: Flops,
}

impl LayerShare {
    /// What stays in memory from the forward to the backward pass of each micro-batch in flight,
    /// `working` apart.
    pub fn kept_in_flight(&self) -> Bytes {
        Bytes(self.kept.0 - self.passing.0)
    }

    /// Of `working`, what real kernels hold beside the pass of another layer too: the gradients of a
    /// head's weights, until they are added to earlier ones.
    pub fn held_on(&self, stack: Stack) -> Bytes {
        match stack.kernels {
            Kernels::Megatron if self.ends_in_loss() => self.weight_gradients,
            Kernels::Megatron | Kernels::FusedIdeal => Bytes::ZERO,
        }
    }

    /// Its parameters by which devices hold the same.
    pub fn by_replicas(&self) -> Parameters {
        Parameters::with_experts(self.parameters, self.expert_parameters)
    }

    /// Whether it is the last layer of a model.
    pub fn ends_in_loss(&self) -> bool {
        self.passing > Bytes::ZERO
    }

    /// Operations of both passes, nothing repeated, by the work that is really done.
    pub fn training_flops(&self) -> Flops {
        let passes = self.forward.nodes().iter().chain(self.backward.nodes());
        let all: Flops = passes.map(Op::flops).sum();
        Flops(all.0 - self.repeated.0)
    }

    /// The same by the usual full count, every pair of tokens among it.
    pub fn full_training_flops(&self) -> Flops {
        self.training_flops() + self.hidden
    }
}

impl Share {
    /// Devices that hold all experts together, each part of them once; none where there are none.
    pub fn expert_devices(&self) -> Option<u64> {
        let has_experts = self.kinds.iter().any(|kind| kind.expert_parameters > 0);
        has_experts.then(|| self.setting.expert_devices())
    }

    /// Operations of training one micro-batch on one device, by the work that is really done and
    /// by the usual full count.
    pub fn training_flops(&self) -> (Flops, Flops) {
        let layers = || self.sequence.iter().map(|&kind| &self.kinds[kind]);
        let done = layers().map(LayerShare::training_flops).sum();
        (done, layers().map(LayerShare::full_training_flops).sum())
    }
}
