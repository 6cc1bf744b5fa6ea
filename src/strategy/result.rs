//! A way to train in full, as files hold it (docs/outcome.md documents every key).
//!
//! Plain data: what is in here was computed before and is only read from here on.

use serde::Deserialize;
use serde::Serialize;

use crate::plan::LayerFacts;
use crate::plan::Plan;
use crate::plan::Strategy;
use crate::profile::parts::PassParts;

/// The best way to train one model on a design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ModelResult {
    pub model: String,
    pub time_per_batch_s: f64,
    pub simulated_time_per_batch_s: Option<f64>,
    pub throughput_sequences_per_s: f64,
    pub tokens_per_s: f64,
    /// Of the devices in use.
    pub mfu: f64,
    pub mfu_requested_devices: f64,
    pub energy_per_batch_j: f64,
    pub energy_per_token_j: f64,
    /// Per device in use.
    pub average_power_w: f64,
    pub strategy: StrategyFacts,
    /// Parts of the time per batch, which sum to it.
    pub breakdown_s: Breakdown,
    pub stages: Vec<StageFacts>,
    /// Of each pipeline.
    pub n_micro_batches: u64,
    pub layers: Vec<LayerFacts>,
    /// What `phaze check` verifies.
    pub plan: Plan,
}

/// How a model is divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct StrategyFacts {
    pub sentence: String,
    pub devices_used: u64,
    pub degrees: Strategy,
}

/// Parts of the time of a batch, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Breakdown {
    pub tensor: f64,
    pub vector: f64,
    pub memory: f64,
    pub exchanges_in_layers: f64,
    pub pipeline_transfers: f64,
    pub gradient_exchange: f64,
    pub optimizer: f64,
    pub weight_gathering: f64,
    pub bubble: f64,
}

/// A stage of the pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct StageFacts {
    pub rank: usize,
    pub first_layer: usize,
    pub n_layers: usize,
    pub n_repeated: usize,
    pub layers: Vec<LayerCount>,
    pub devices: u64,
    pub forward_s: f64,
    pub backward_s: f64,
    pub load_s: f64,
    pub memory_bytes: MemoryFacts,
    pub memory_limit_bytes: u64,
}

/// How often a kind of layer occurs in a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct LayerCount {
    pub kind: String,
    pub count: usize,
}

/// What a device of a stage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct MemoryFacts {
    pub weights: u64,
    pub gradients: u64,
    pub optimizer_state: u64,
    pub activations: u64,
    pub gathered: u64,
    pub working: u64,
}

impl Breakdown {
    /// Adds `times` times the parts of a pass.
    pub fn add(&mut self, pass: &PassParts, times: f64) {
        self.tensor += pass.tensor * times;
        self.vector += pass.vector * times;
        self.memory += pass.memory * times;
        self.exchanges_in_layers += pass.collectives * times;
    }

    /// All parts with their names.
    pub fn parts(&self) -> [(&'static str, f64); 9] {
        [
            ("tensor cores", self.tensor),
            ("vector cores", self.vector),
            ("memories", self.memory),
            ("exchanges in layers", self.exchanges_in_layers),
            ("pipeline transfers", self.pipeline_transfers),
            ("gradient exchange", self.gradient_exchange),
            ("optimizer step", self.optimizer),
            ("weight gathering", self.weight_gathering),
            ("pipeline bubble", self.bubble),
        ]
    }

    /// All parts together.
    pub fn total(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }
}
