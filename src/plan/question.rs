//! What is asked of one chip, complete and in plain figures: it is written into the plan, and the
//! plan can be checked from it alone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::StrategySpace;
use super::TimeModel;
use super::schedule::Rule;
use crate::model::Attention;
use crate::model::Masked;
use crate::model::Optimizer;
use crate::model::Precision;

/// A file by name, with its text where it is not built in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What the user calls it.
    pub name: String,
    /// What stands in it; `None` for a built-in one.
    pub text: Option<String>,
}

/// A whole question about one model on one chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What is trained.
    pub model: Source,
    /// Thousandths of an even load that the fullest device of a mixture of experts has; `None` for
    /// what the configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imbalance_per_mille: Option<u64>,
    /// Layers that are trained to tell the token after the next; `None` for what the configuration
    /// says.
    #[serde(rename = "mtp", default, skip_serializing_if = "Option::is_none")]
    pub next_tokens: Option<u64>,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// The accelerator and its physics.
    pub hardware: Source,
    /// How many times as fast every link is; `None` for what the hardware says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_times: Option<u64>,
    /// Knobs turned by hand, by name.
    pub knobs: BTreeMap<String, u64>,
    /// Whether constants, vector costs and conventions are the published ones.
    pub published: bool,
    /// Devices at hand.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// What may be chosen.
    pub space: StrategySpace,
    /// Thousandths of a device's memory that plans leave free.
    pub reserve_per_mille: i64,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// Whether fused attention computes what a causal mask hides.
    pub masked: Masked,
    /// In which numbers matmuls compute.
    #[serde(default, skip_serializing_if = "Precision::is_usual")]
    pub precision: Precision,
    /// Whose efficiency is assumed in place of the hardware's own: `ideal`, a class, or a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Source>,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// What a spread operator leaves to others.
    pub rule: Rule,
}
