//! The answer of a search over chips, as its `outcome.json` holds it (docs/outcome.md documents every
//! key).
//!
//! Plain data: what is in here was computed before and is only read from here on.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use crate::hardware::chip::ChipSpace;
use crate::search::ModelFacts;
use crate::search::Objective;
use crate::search::Request;
use crate::search::Share;
use crate::strategy::result::ModelResult;

use super::near::NearFigure;
use super::why::Limited;

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipOutcome {
    /// What kind of file this is.
    pub schema: String,
    /// Which version of it.
    pub version: u32,
    /// The program that wrote it.
    pub phaze: String,
    /// The question.
    pub request: Request<ChipSpace>,
    /// What is trained, and its own best.
    pub models: Vec<ModelFacts>,
    /// The best chip and how to train on it; `None` where nothing fits.
    pub winner: Option<ChipEntry>,
    /// Why nothing fits.
    pub infeasible_reason: Option<String>,
    /// What refuses more of each knob of the winner.
    pub binds: Vec<Binding>,
    /// Where the winner's time goes.
    pub limited_by: Vec<Share>,
    /// The best chips, where more than one was asked for.
    pub top: Vec<ChipEntry>,
    /// Chips nearly as good that take less.
    pub near_winners: Vec<NearWinner>,
    /// What the winner is compared with.
    pub baselines: Vec<ChipBaseline>,
    /// Why it wins, in a sentence.
    pub why_it_wins: Option<String>,
    /// How the winner changes with what is asked, where that was asked for.
    pub why: Option<WhyItWins>,
    /// The front over tokens per second, dollars and watts, where that was asked for.
    pub front: Option<FrontOutcome>,
    /// The best of chips drawn at random, where that was asked for.
    pub spotlight: Option<Sampled>,
    /// The winners under other assumptions, where these were asked for.
    pub robust: Option<Vec<UnderAssumption>>,
    /// What ended comparisons early, where the search itself had ended.
    pub comparisons_stopped_by: Option<String>,
    /// Why the winner is believed.
    pub proof: BoxProof,
}

impl ChipOutcome {
    /// The value of `schema`.
    pub const SCHEMA: &str = "phaze-chip-outcome";
    /// The version of the schema that this program writes and reads.
    pub const VERSION: u32 = 1;
}

/// A chip with the best way to train each model on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipEntry {
    /// The chip.
    pub chip: ChipFacts,
    /// Its value by the objective, in the objective's own unit.
    pub value: f64,
    /// One for each model.
    pub results: Vec<ModelResult>,
}

/// A chip in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ChipFacts {
    /// By knob.
    pub knobs: BTreeMap<String, u64>,
    pub peak_flops_per_s: f64,
    pub hbm_bytes: u64,
    pub hbm_bytes_per_s: u64,
    pub local_tensor_bytes: u64,
    pub local_vector_bytes: u64,
    pub die_mm2: f64,
    pub die: Vec<Part>,
    pub tdp_w: f64,
    pub power: Vec<Part>,
    /// With every array at work in every cycle.
    pub peak_w: f64,
    /// To make one.
    pub cost_usd: f64,
    pub cost: Vec<Part>,
    /// Over its years in service.
    pub ownership_usd: f64,
    pub ownership: Vec<Part>,
    /// Of making it and of using it.
    pub carbon_kg: f64,
}

/// A part of a figure, in its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Part {
    pub what: String,
    pub amount: f64,
}

/// Why the next value of a knob of the winner is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Binding {
    pub knob: String,
    /// The value that is refused; `None` where the list has no larger one.
    pub next: Option<u64>,
    /// `area`, `edge`, `tdp`, `price`, `clock`, `space` where the list ends, `nothing` where it would
    /// fit and is not worth it, `unknown` where it would fit and a stopped search has not told what it is worth.
    pub by: String,
}

/// A chip nearly as good as the winner that takes less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct NearWinner {
    pub least: NearFigure,
    /// By how much its value may be worse than that of the winner.
    pub within: f64,
    pub entry: ChipEntry,
    /// Boxes that prove it.
    pub certificate_entries: usize,
}

/// How the winner changes with what is asked; each best is proved by boxes of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhyItWins {
    /// Chips worse by at most 1 and by at most 5 % that take less.
    pub near_winners: Vec<NearWinner>,
    /// How many chips are nearly as good.
    pub counted: Counted,
    /// The best with more or less of each budget.
    pub budgets: Vec<UnderBudget>,
    /// The winners of other objectives.
    pub objectives: Vec<ByObjectiveOther>,
    /// Objectives whose winners are not told.
    pub left_out: Vec<LeftOut>,
}

/// Objectives whose winners are not told beside that of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Which.
    pub objectives: Vec<Objective>,
    /// Why, in a sentence.
    pub reason: String,
}

/// How many chips are worse by at most a part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct Counted {
    pub within: f64,
    /// Chips that were looked at one by one.
    pub at_least: u64,
    /// The same, and all chips of boxes that were not looked into.
    pub at_most: u64,
    pub certificate_entries: usize,
}

/// The best chip under a budget of which one limit is changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct UnderBudget {
    pub limited: Limited,
    pub percent: i64,
    /// In mm², W or dollars.
    pub limit: f64,
    /// How many times better it is than the winner; `None` where nothing fits.
    pub ratio: Option<f64>,
    /// `None` where it is the winner itself, or nothing fits.
    pub entry: Option<ChipEntry>,
    /// Boxes that prove it; none where a smaller budget still allows the winner.
    pub certificate_entries: usize,
}

/// The winner of another objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ByObjectiveOther {
    pub objective: Objective,
    /// Its value is that of this objective.
    pub entry: ChipEntry,
    /// What the winner of the request is worth by this objective.
    pub winner_value: f64,
    pub certificate_entries: usize,
}

/// Chips that nothing beats in how fast they train, what they cost to own and what they draw by design; all
/// three rounded up to steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontOutcome {
    /// Each step is so many thousandths larger than the one before; 0 where nothing is rounded.
    pub resolution_per_mille: u64,
    /// What is proved, in a sentence.
    pub statement: String,
    /// One chip for all rounded figures that no chip beats, the fastest first.
    pub points: Vec<FrontEntry>,
    /// What is proved to be empty.
    pub gaps: Vec<FrontGap>,
}

/// A chip of a front, its rounded figures first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct FrontEntry {
    pub time_per_batch_ps: u64,
    pub ownership_cents: u64,
    pub tdp_mw: u64,
    pub entry: ChipEntry,
}

/// That no chip which takes at most so much trains in less than so long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontGap {
    /// At most so much to own; `None`: whatever it costs.
    pub ownership_cents: Option<u64>,
    /// At most so much by design; `None`: whatever it draws.
    pub tdp_mw: Option<u64>,
    /// No batch takes less; `None` where nothing can be trained.
    pub time_per_batch_ps: Option<u64>,
    /// Boxes that prove it.
    pub certificate_entries: usize,
}

/// The best of chips drawn at random, one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampled {
    /// Chips within the budget that were drawn.
    pub samples: u64,
    /// `None` where nothing fits on any of them.
    pub entry: Option<ChipEntry>,
    /// How many times better the winner is.
    pub winner_is: Option<f64>,
}

/// The winner where one constant is another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct UnderAssumption {
    pub constant: String,
    pub unit: String,
    pub percent: i64,
    pub from: f64,
    pub to: f64,
    /// Of the winner then; `None` where nothing fits.
    pub knobs: Option<BTreeMap<String, u64>>,
    /// Its value by the objective.
    pub value: Option<f64>,
    /// Whether it is the winner of the request.
    pub same: bool,
    /// How many times better it is than the winner of the request under this assumption; `None` where the
    /// latter takes more than the budget then.
    pub ratio: Option<f64>,
}

/// What the winner is compared with, on as many devices and with the same batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ChipBaseline {
    pub name: String,
    pub description: String,
    /// A chip of the space.
    pub entry: Option<ChipEntry>,
    /// A part that is not of the space.
    pub part: Option<PartEntry>,
    /// Why there is neither.
    pub reason: Option<String>,
    pub winner_is: Option<WinnerIs>,
}

/// A part with the best way to train each model on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartEntry {
    /// The part.
    pub part: PartFacts,
    /// Its value by the objective; `None` where that asks for what is not known of it.
    pub value: Option<f64>,
    /// One for each model.
    pub results: Vec<ModelResult>,
}

/// A part in figures, the public ones where they are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct PartFacts {
    pub name: String,
    pub peak_flops_per_s: f64,
    pub hbm_bytes: u64,
    pub hbm_bytes_per_s: u64,
    /// All of its dies.
    pub silicon_mm2: Option<f64>,
    pub tdp_w: Option<f64>,
    /// To make one.
    pub cost_usd: Option<f64>,
    /// What one is sold for, where that is public.
    pub price_usd: Option<f64>,
    /// Over its years in service, counted as the request counts chips.
    pub ownership_usd: Option<f64>,
    pub carbon_kg: Option<f64>,
    /// Which of these are public; the others follow from the model of chips.
    pub public: Vec<String>,
}

/// How many times better a winner is than something else; above 1 it is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WinnerIs {
    /// By the objective; `None` where the objective asks for what is not known of the other.
    pub by_objective: Option<f64>,
    /// In sequences per second of as many devices.
    pub faster: f64,
    /// The same for each square millimetre of silicon.
    pub at_equal_area: Option<f64>,
    /// The same for each watt of design power.
    pub at_equal_power: Option<f64>,
    /// The same for each dollar that a chip costs to make.
    pub at_equal_cost: Option<f64>,
}

/// Why the winner is believed to be the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxProof {
    /// Whether the closed boxes tile the grid and nothing is left open, with exact schedules.
    pub complete: bool,
    /// What stopped the search early.
    pub stopped_by: Option<String>,
    /// Combinations of values.
    pub points: u64,
    /// The whole proof in a sentence.
    pub statement: String,
    /// Pairs of a chip and a model that were evaluated, near-winners included.
    pub evaluations: usize,
    /// Rows of boxes.csv that belong to the winner.
    pub certificate_entries: usize,
    /// By reason: how many boxes were closed by it, and how many points they hold.
    pub closed: BTreeMap<String, ClosedBy>,
    /// Points that were not looked at.
    pub open_points: u64,
    /// How much better than the best something unknown could be, at the most.
    pub gap: f64,
}

impl BoxProof {
    /// Whether the winner is proved to be the best, though what is told besides it may have been cut short.
    pub fn settles_the_winner(&self) -> bool {
        self.open_points == 0 && self.gap <= 0.0
    }
}

/// How much of a grid was closed by one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the key says what it is")]
pub struct ClosedBy {
    pub boxes: usize,
    pub points: u64,
}
