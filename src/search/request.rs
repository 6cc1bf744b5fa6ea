//! What is asked of a search, complete and typed: it is written into the answer, and the answer
//! can be checked from it alone.
//!
//! A request that comes from elsewhere than `input` may hold any figures: `input::request` says
//! which of them make sense.

use serde::Deserialize;
use serde::Serialize;

use super::objective::Combine;
use super::objective::Objective;
use crate::estimate::VectorCosts;
use crate::hardware::DesignSpace;
use crate::model::Attention;
use crate::model::Masked;
use crate::model::Optimizer;
use crate::plan::Source;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::plan::schedule::Rule;

/// A whole question, over a space of designs of some kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is something that may be asked for besides"
)]
pub struct Request<S = DesignSpace> {
    /// What is trained; at least one.
    pub models: Vec<ModelRequest>,
    /// The physics of every design: a built-in hardware's name, or a user's file with its text.
    pub hardware: Source,
    /// Whose efficiency every design is assumed to have in place of the hardware's own: `ideal`, a
    /// class, or a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Source>,
    /// Thousandths of an even load that the fullest device of a mixture of experts has; `None` for
    /// what configurations say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imbalance_per_mille: Option<u64>,
    /// Layers that are trained to tell the token after the next, in every model that can have them;
    /// `None` for what configurations say.
    #[serde(rename = "mtp", default, skip_serializing_if = "Option::is_none")]
    pub next_tokens: Option<u64>,
    /// Accelerators at hand.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// What may be chosen on each chip.
    pub strategies: StrategySpace,
    /// Thousandths of a device's memory that plans leave free.
    pub reserve_per_mille: i64,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// Whether fused attention computes what a causal mask hides.
    pub masked: Masked,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// Which table says what vector operators cost.
    #[serde(rename = "published_vector_costs", with = "published_or_not")]
    pub vector_costs: VectorCosts,
    /// The designs.
    pub space: S,
    /// What is made as good as possible.
    pub objective: Objective,
    /// How several models become one number.
    pub combine: Combine,
    /// How many of the best are found exactly.
    pub top: usize,
    /// Whether the front over throughput, area and energy is found exactly; of chips the one over throughput,
    /// dollars and watts.
    pub pareto: bool,
    /// By how many thousandths steps grow to which figures of the front of chips are rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution_per_mille: Option<u64>,
    /// Whether nothing is pruned.
    pub exhaustive: bool,
    /// Whether every design of the published space has its row in the table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub table: bool,
    /// The most that a device may draw on average, in watts.
    pub power_cap_w: Option<f64>,
    /// Parts that the best searched chip is compared with, besides the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<Source>,
    /// Whether it is told how the best searched chip changes with the budget, what is asked, and how
    /// much worse it may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub why: bool,
    /// How many chips are drawn at random, to be compared with the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spotlight: Option<u64>,
    /// Whether the best searched chip is told for other values of every assumed constant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub robust: bool,
}

impl Request {
    /// Whether every design is listed with what became of it: where the table is asked for, and where the
    /// question is about all designs. Boxes of designs prove the answer otherwise.
    pub fn lists_all(&self) -> bool {
        self.table || self.exhaustive || self.pareto
    }
}

/// A model to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// What the user calls it: a built-in name or a path.
    pub name: String,
    /// The text of its file; `None` for a built-in one.
    pub text: Option<String>,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// How much it counts beside others.
    pub weight: f64,
}

/// Vector costs are written as whether they are the published ones.
mod published_or_not {
    use serde::Deserialize as _;
    use serde::Deserializer;
    use serde::Serializer;

    use super::VectorCosts;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub fn serialize<S: Serializer>(costs: &VectorCosts, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_bool(*costs == VectorCosts::Published)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(found: D) -> Result<VectorCosts, D::Error> {
        let published = bool::deserialize(found)?;
        Ok(if published { VectorCosts::Published } else { VectorCosts::Corrected })
    }
}
