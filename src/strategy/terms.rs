//! What may be chosen when a model is trained on a chip, and by which rules it is counted.

use std::ops::RangeInclusive;

use super::price::Price;
use crate::estimate::Options;
use crate::hardware::Cluster;
use crate::model::Attention;
use crate::model::Optimizer;
use crate::parallel::Setting;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::schedule::Rule;
use crate::units::Bytes;

/// The space of strategies and the conventions that they are counted by.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What the user calls the accelerator or its physics.
    pub design: String,
    /// The devices at hand and the network between them.
    pub cluster: Cluster,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// Sequences in a micro-batch, any of these; each divides the batch.
    pub micro_batches: Vec<u64>,
    /// Devices that share a layer, any of these that the model allows.
    pub widths: Vec<u64>,
    /// What may be computed again, any of these.
    pub recompute: Vec<Recompute>,
    /// How many copies of the pipeline there may be.
    pub data_parallel: RangeInclusive<u64>,
    /// How many stages a pipeline may have.
    pub stages: RangeInclusive<usize>,
    /// Whether norms, dropouts and residual adds are divided along the sequence.
    pub sequence_parallel: bool,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// The size of an element.
    pub element: Bytes,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// What estimates depend on.
    pub options: Options,
    /// What is made as small as possible.
    pub price: Price,
    /// The most that a device in use may draw on average, in watts.
    pub power_cap_w: Option<f64>,
}

impl Terms {
    /// One device's setting at a width and a micro-batch.
    pub fn setting(&self, sequence: u64, width: u64, micro_batch: u64) -> Setting {
        Setting {
            micro_batch,
            sequence,
            tensor_parallel: width,
            sequence_parallel: self.sequence_parallel && width > 1,
            attention: self.attention,
            element: self.element,
            ..Setting::ALONE
        }
    }
}
