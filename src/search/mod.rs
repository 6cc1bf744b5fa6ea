//! Searches designs and placements together and proves that nothing in the space is better.
//!
//! In: a [`Request`] made ready ([`Setup`]). Out: a [`Survey`] of every design, or of those that were
//! evaluated with the boxes that prove that no other is better ([`designs`]); what an [`Outcome`]
//! holds is defined here too, `compare` fills it.
//!
//! [`walk`] takes designs from the best bound on and prunes the rest; an [`Evaluator`] bounds and
//! evaluates them through `strategy`; [`sentences`] are pure functions of facts. docs/search.md says
//! why the bounds are sound. Not here: the best way to train on one chip (see `strategy`), files,
//! clocks, terminals (see the doors).

pub mod boxes;
pub mod chips;
pub mod designs;
pub mod entry;
pub mod evaluator;
mod fact;
pub mod objective;
mod outcome;
mod part;
mod request;
pub mod sentences;
mod setup;
mod shard;
pub mod survey;
pub mod walk;

pub use evaluator::Evaluator;
pub use fact::Fact;
pub use objective::Certainty;
pub use objective::Combine;
pub use objective::Footprint;
pub use objective::Judge;
pub use objective::Objective;
pub use objective::Stake;
pub use outcome::AreaFacts;
pub use outcome::Baseline;
pub use outcome::BestByHbm;
pub use outcome::DesignFacts;
pub use outcome::Entry;
pub use outcome::Listing;
pub use outcome::ModelFacts;
pub use outcome::Outcome;
pub use outcome::Proof;
pub use outcome::ProofByHbm;
pub use outcome::Sensitivity;
pub use outcome::Share;
pub use part::MOST_PARTS;
pub use part::Part;
pub use request::ModelRequest;
pub use request::Request;
pub use setup::Senseless;
pub use setup::Setup;
pub use shard::PartBest;
pub use shard::PartSurvey;
pub use shard::PartWalk;
pub use shard::Round;
pub use shard::survey_part;
pub use survey::Memory;
pub use survey::Survey;
pub use survey::Unlisted;
pub use survey::best_of;
pub use survey::survey;
pub use walk::Merit;
pub use walk::NEAR_PERCENT;
pub use walk::Observer;
pub use walk::Peers;
pub use walk::Status;
pub use walk::Walk;
