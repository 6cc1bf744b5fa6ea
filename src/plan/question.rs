//! What is asked of one chip, complete and in plain figures: it is written into the plan, and the
//! plan can be checked from it alone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::Recompute;
use super::TimeModel;
use super::schedule::Rule;
use crate::model::Attention;
use crate::model::Optimizer;

/// A file by name, with its text where it is not built in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What the user calls it.
    pub name: String,
    /// What stands in it; `None` for a built-in one.
    pub text: Option<String>,
}

/// Degrees that a user gives: stages, copies of the pipeline, devices that share a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenDegrees {
    /// Stages of a pipeline.
    pub pipeline: u64,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Devices that share a layer.
    pub tensor_parallel: u64,
}

/// A whole question about one model on one chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What is trained.
    pub model: Source,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// The accelerator and its physics.
    pub hardware: Source,
    /// Knobs turned by hand, by name.
    pub knobs: BTreeMap<String, u64>,
    /// Whether constants, vector costs and conventions are the published ones.
    pub published: bool,
    /// Devices at hand.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// Sequences in a micro-batch, any of these.
    pub micro_batches: Vec<u64>,
    /// Tensor-parallel widths, any of these.
    pub tensor_parallel: Vec<u64>,
    /// What may be computed again, any of these.
    pub recompute: Vec<Recompute>,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// Whether norms, dropouts and residual adds are divided along the sequence.
    pub sequence_parallel: bool,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// Degrees that were given, layers cut evenly; `None` where they were searched.
    pub strategy: Option<GivenDegrees>,
}
