//! The answer of a search, as `outcome.json` holds it (docs/outcome.md documents every key).
//!
//! Plain data: what is in here was computed before and is only read from here on.

use serde::Deserialize;
use serde::Serialize;

use super::Request;
use crate::estimate::tensor_core::Loop;
use crate::estimate::tensor_core::Mapping;
use crate::plan::Plan;

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// What kind of file this is.
    pub schema: String,
    /// Which version of it.
    pub version: u32,
    /// The program that wrote it.
    pub phaze: String,
    /// The question.
    pub request: Request,
    /// What is trained, and its own best.
    pub models: Vec<ModelFacts>,
    /// The best design and how to train on it; `None` where nothing fits.
    pub winner: Option<Entry>,
    /// Why nothing fits.
    pub infeasible_reason: Option<String>,
    /// The best for each size of off-chip memory.
    pub best_by_hbm: Vec<BestByHbm>,
    /// What the winner is compared with.
    pub baselines: Vec<Baseline>,
    /// Designs that no other beats in throughput, area and energy at once.
    pub pareto: Listing,
    /// The best designs.
    pub top: Listing,
    /// Why the winner is believed.
    pub proof: Proof,
    /// Where the winner's time goes.
    pub limited_by: Vec<Share>,
    /// What turning one knob of the winner would bring.
    pub sensitivities: Vec<Sensitivity>,
}

impl Outcome {
    /// The value of `schema`.
    pub const SCHEMA: &str = "phaze-outcome";
    /// The version of the schema that this program writes and reads.
    pub const VERSION: u32 = 1;
}

/// A model of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ModelFacts {
    pub name: String,
    pub sequence: u64,
    pub parameters: u64,
    pub flops_per_sequence: f64,
    /// Its own optimum in this space.
    pub best_throughput_sequences_per_s: Option<f64>,
    /// What its own best costs by the objective: what ratios are taken to.
    pub own_best_cost: f64,
}

/// A design with the best way to train each model on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The design.
    pub design: DesignFacts,
    /// Its value by the objective, in the objective's own unit.
    pub value: f64,
    /// One for each model.
    pub results: Vec<ModelResult>,
}

/// A design in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct DesignFacts {
    /// Its row in designs.csv, from 0; `None` outside the space.
    pub index: Option<usize>,
    /// Its name where it is built in.
    pub name: Option<String>,
    pub tensor_cores: u64,
    pub width: u64,
    pub depth: u64,
    pub vector_cores: u64,
    pub vector_width: u64,
    pub glb_bytes: u64,
    pub hbm_bytes: u64,
    pub local_tensor_bytes: u64,
    pub local_vector_bytes: u64,
    pub clock_hz: u64,
    pub peak_flops_per_s: f64,
    pub hbm_bytes_per_s: u64,
    pub glb_bytes_per_cycle: u64,
    pub area_um2: f64,
    pub area: AreaFacts,
}

/// Where the silicon goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct AreaFacts {
    pub tensor_cores_um2: f64,
    pub vector_cores_um2: f64,
    pub tensor_local_um2: f64,
    pub vector_local_um2: f64,
    pub glb_um2: f64,
}

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
    pub data_parallel: u64,
    pub pipeline_stages: u64,
    pub tensor_parallel: u64,
    pub micro_batch: u64,
    pub recompute: String,
    pub devices_used: u64,
    pub sentence: String,
}

/// Parts of the time of a batch, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Breakdown {
    pub tensor: f64,
    pub vector: f64,
    pub memory: f64,
    pub tensor_parallel_collectives: f64,
    pub pipeline_transfers: f64,
    pub gradient_exchange: f64,
    pub optimizer: f64,
    pub bubble: f64,
}

/// A stage of the pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct StageFacts {
    pub first_layer: usize,
    pub n_layers: usize,
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
}

/// A kind of layer on a design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct LayerFacts {
    pub kind: String,
    pub count: usize,
    pub forward: PassFacts,
    pub backward: PassFacts,
}

/// One pass of a layer: its schedule, with proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct PassFacts {
    pub time_s: f64,
    pub makespan_s: f64,
    pub hbm_s: f64,
    pub glb_s: f64,
    pub proof: ScheduleProof,
    pub operators: Vec<OpFacts>,
}

/// Why a schedule is believed to be the fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ScheduleProof {
    pub kind: String,
    pub lower_bound_s: f64,
    pub gap: f64,
}

/// An operator as scheduled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct OpFacts {
    pub name: String,
    pub core: String,
    pub start_s: f64,
    pub end_s: f64,
    pub spread: bool,
    /// The core that it holds where it is not spread: tensor, then vector.
    pub cores: Vec<u32>,
    pub flops: f64,
    pub hbm_bytes: u64,
    pub energy_j: f64,
    pub limit: String,
    pub matmul: Option<MatmulFacts>,
    pub mapping: Option<MappingFacts>,
}

/// A matrix product's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct MatmulFacts {
    pub b: u64,
    pub m: u64,
    pub k: u64,
    pub n: u64,
}

/// How a matrix product is laid out on the cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct MappingFacts {
    /// How many cores divide each loop.
    pub cores: MatmulFacts,
    pub array: ArrayFacts,
    pub local_tile: TileFacts,
    pub glb_tile: TileFacts,
    pub local_inner: String,
    pub glb_inner: String,
}

/// Which loops lie on the array, and which streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ArrayFacts {
    pub width: String,
    pub depth: String,
    pub stream: String,
}

/// The part of a product that a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct TileFacts {
    pub m: u64,
    pub k: u64,
    pub n: u64,
}

impl From<&Mapping> for MappingFacts {
    fn from(mapping: &Mapping) -> Self {
        let name = |of: Loop| ["m", "k", "n"][of.index()].to_owned();
        let tile = |[m, k, n]: [u64; 3]| TileFacts { m, k, n };
        let [m, k, n] = mapping.split;
        Self {
            cores: MatmulFacts { b: mapping.batch_split, m, k, n },
            array: ArrayFacts {
                width: name(mapping.way.width),
                depth: name(mapping.way.depth),
                stream: name(mapping.way.stream),
            },
            local_tile: tile(mapping.local),
            glb_tile: tile(mapping.glb),
            local_inner: name(mapping.local_inner),
            glb_inner: name(mapping.glb_inner),
        }
    }
}

impl Breakdown {
    /// Adds `times` times the parts of a pass.
    pub fn add(&mut self, pass: &Self, times: f64) {
        self.tensor += pass.tensor * times;
        self.vector += pass.vector * times;
        self.memory += pass.memory * times;
        self.tensor_parallel_collectives += pass.tensor_parallel_collectives * times;
    }

    /// All parts with their names.
    pub fn parts(&self) -> [(&'static str, f64); 8] {
        [
            ("tensor cores", self.tensor),
            ("vector cores", self.vector),
            ("memories", self.memory),
            ("tensor-parallel collectives", self.tensor_parallel_collectives),
            ("pipeline transfers", self.pipeline_transfers),
            ("gradient exchange", self.gradient_exchange),
            ("optimizer step", self.optimizer),
            ("pipeline bubble", self.bubble),
        ]
    }

    /// All parts together.
    pub fn total(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }
}

/// The best for one size of off-chip memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct BestByHbm {
    pub hbm_gib: u64,
    pub entry: Option<Entry>,
}

/// Something that the winner is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// A short name.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// How it does; `None` where it does not fit.
    pub entry: Option<Entry>,
    /// Why it does not fit.
    pub reason: Option<String>,
    /// The winner's throughput over this one's; several models: the geometric mean of the ratios.
    pub winner_ratio: Option<f64>,
}

/// A list of designs, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Whether it is that of the whole space, or only of what was evaluated.
    pub exact: bool,
    /// The designs.
    pub entries: Vec<Entry>,
}

/// Why the winner is believed to be the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Whether every design was evaluated, pruned or found infeasible, with exact schedules.
    pub complete: bool,
    /// What stopped the search early.
    pub stopped_by: Option<String>,
    /// Designs in the space, sizes of off-chip memory not counted.
    pub designs: usize,
    /// The whole proof in a sentence.
    pub statement: String,
    /// For each size of off-chip memory.
    pub by_hbm: Vec<ProofByHbm>,
}

/// What became of the designs with one size of off-chip memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ProofByHbm {
    pub hbm_gib: u64,
    pub evaluated: usize,
    pub pruned: usize,
    pub infeasible: usize,
    pub open: usize,
    /// The best that any design of unknown value could reach.
    pub best_pruned_bound: Option<f64>,
    pub best_value: Option<f64>,
    /// How much better than the best something unknown could be, at the most.
    pub gap: f64,
}

/// A part of the time of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Share {
    pub what: String,
    pub share: f64,
}

/// What turning one knob brings, everything else re-optimised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Sensitivity {
    pub knob: String,
    /// `doubled` or `halved`.
    pub change: String,
    pub from: f64,
    pub to: f64,
    /// Throughput over the winner's.
    pub throughput_ratio: Option<f64>,
    /// Area over the winner's.
    pub area_ratio: Option<f64>,
    pub note: Option<String>,
}
