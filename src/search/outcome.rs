//! The answer of a search, as `outcome.json` holds it (docs/outcome.md documents every key).
//!
//! Plain data: what is in here was computed before and is only read from here on.

use serde::Deserialize;
use serde::Serialize;

use super::Request;
use crate::strategy::result::ModelResult;

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
    pub const VERSION: u32 = 5;
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
    /// Its row in designs.csv, from 0; `None` where it has none.
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
    /// How many times better the winner is by the objective; several models: the geometric mean of
    /// the ratios.
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
    /// Looked at, and worse than what is kept by more than two percent.
    pub beaten: usize,
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
    /// How many times better by the objective.
    pub value_ratio: Option<f64>,
    /// Area over the winner's.
    pub area_ratio: Option<f64>,
    pub note: Option<String>,
}
