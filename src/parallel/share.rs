//! What one device holds and does for one micro-batch.

use crate::graph::Dag;
use crate::model::Attention;
use crate::model::op::Op;
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
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// The size of one activation, weight or gradient: 2 bytes for bf16.
    pub element: Bytes,
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
    /// Of the parameters that all devices of the group hold together, the further copies of what
    /// several hold alike.
    pub replicated: u64,
    /// Of the parameters that all devices of the group hold together, those that only fill the
    /// vocabulary up to an even division.
    pub padded: u64,
    /// What stays in memory for the backward pass, the layer's input included where it is needed.
    pub kept: Bytes,
    /// What crosses to this device from the layer before; 0 for the first, which reads ids.
    pub input: Bytes,
    /// What crosses from this device to the layer after; 0 for the last, which ends in the loss.
    pub output: Bytes,
    /// Whether several devices share it.
    pub tensor_parallel: bool,
    /// Of the backward pass's operations, those that repeat the forward pass (recomputed
    /// attention), which published accounts leave out.
    pub repeated: Flops,
}
