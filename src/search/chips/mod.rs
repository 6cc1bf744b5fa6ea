//! The best chip of a space that is too large to be listed, under one budget, with its proof.
//!
//! In: a request over a [`ChipSpace`](crate::hardware::chip::ChipSpace) made ready ([`ChipSetup`]).
//! Out: a [`ChipSurvey`]: the best chips, chips nearly as good that take less, and the closed boxes
//! that prove it. What the links of a chip lead to is a property of the chip: a [`ChipEvaluator`] has
//! one ground for each value of the links.

mod beside;
mod bounded;
mod corners;
mod evaluator;
mod facts;
mod front;
mod implied;
mod near;
mod objective;
mod outcome;
mod part;
mod passed_on;
mod robust;
mod sampled;
pub mod sentences;
mod setup;
mod shard;
mod survey;
mod why;

pub use beside::trained_beside;
pub use evaluator::CORNER;
pub use evaluator::ChipEvaluator;
pub use evaluator::Ground;
pub use facts::chip_facts;
pub use facts::limits;
pub use front::ChipFront;
pub use front::RESOLUTION_PER_MILLE;
pub use front::front_judge;
pub use front::gap_word;
pub use front::resolution;
pub use front::survey_front;
pub use front::taken;
pub use near::NearFigure;
pub use near::Nearly;
pub use objective::ByObjective;
pub use objective::Least;
pub use outcome::Binding;
pub use outcome::BoxProof;
pub use outcome::ByObjectiveOther;
pub use outcome::ChipBaseline;
pub use outcome::ChipEntry;
pub use outcome::ChipFacts;
pub use outcome::ChipOutcome;
pub use outcome::ClosedBy;
pub use outcome::Counted;
pub use outcome::FrontEntry;
pub use outcome::FrontGap;
pub use outcome::FrontOutcome;
pub use outcome::LeftOut;
pub use outcome::NearWinner;
pub use outcome::Part;
pub use outcome::PartEntry;
pub use outcome::PartFacts;
pub use outcome::Sampled;
pub use outcome::UnderAssumption;
pub use outcome::UnderBudget;
pub use outcome::WhyItWins;
pub use outcome::WinnerIs;
pub use robust::Assumption;
pub use robust::Reassumed;
pub use robust::Robust;
pub use robust::Turned;
pub use robust::Unturned;
pub use robust::survey_robust;
pub use sampled::Sampler;
pub use sampled::best_of_samples;
pub use setup::ChipSetup;
pub use setup::NoChip;
pub use shard::Aim;
pub use shard::ChipPeers;
pub use shard::ChipRound;
pub use shard::JoinedChips;
pub use shard::ToldChip;
pub use shard::survey_chip_part;
pub use survey::ChipSurvey;
pub use survey::ChipWalk;
pub use survey::NEARLY_PER_MILLE;
pub use survey::alone_judge;
pub use survey::conclude;
pub use survey::judge;
pub use survey::judge_of;
pub use survey::nearly_as_good;
pub use survey::nearly_as_good_as;
pub use survey::survey;
pub use why::BudgetStep;
pub use why::COUNTED_PER_MILLE;
pub use why::Limited;
pub use why::NoWorse;
pub use why::OTHER_NEAR_PER_MILLE;
pub use why::WhySurvey;
pub use why::WithBudget;
pub use why::counted_word;
pub use why::left_out;
pub use why::near_word;
pub use why::other_objectives;
pub use why::survey_why;

use super::boxes;
use crate::hardware::chip::N_CHIP_KNOBS;

/// Somebody ended what was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

/// A chip of a grid.
pub type ChipPoint = boxes::Point<N_CHIP_KNOBS>;

/// A box of chips.
pub type ChipRegion = boxes::Region<N_CHIP_KNOBS>;

/// A chip that is known, with how every model is trained on it.
pub type KeptChip = boxes::Kept<N_CHIP_KNOBS, Vec<crate::strategy::Chosen>>;

/// A closed box of chips.
pub type ClosedChips = boxes::Closed<N_CHIP_KNOBS>;
