//! Searches designs and placements together and proves that nothing in the space is better.
//!
//! In: a [`Request`] made ready ([`Setup`]). Out: a [`Survey`] of every design, and from it an
//! [`Outcome`] with the winner, what it is compared with, and the proof.
//!
//! [`ground`] and [`roofline`] bound a design from below without estimates; [`walk`] evaluates
//! from the best bound on and prunes the rest; [`evaluate`] finds the exact best of one design.
//! docs/search.md says why the bounds are sound. Not here: files, clocks, terminals (see `cli`).

mod baselines;
mod conclude;
mod energy;
mod entry;
mod evaluate;
mod experts;
mod ground;
mod objective;
mod outcome;
mod pass_parts;
mod request;
mod roofline;
mod sensitivity;
pub mod sentences;
mod setup;
mod spotlight;
mod survey;
mod training;
mod walk;

pub use baselines::References;
pub use conclude::outcome;
pub use evaluate::Degrees;
pub use evaluate::Evaluator;
pub use experts::PUBLISHED;
pub use experts::Published;
pub use objective::Certainty;
pub use objective::Combine;
pub use objective::Judge;
pub use objective::Objective;
pub use objective::Stake;
pub use objective::Standing;
pub use outcome::AreaFacts;
pub use outcome::ArrayFacts;
pub use outcome::Baseline;
pub use outcome::BestByHbm;
pub use outcome::Breakdown;
pub use outcome::DesignFacts;
pub use outcome::Entry;
pub use outcome::LayerCount;
pub use outcome::LayerFacts;
pub use outcome::Listing;
pub use outcome::MappingFacts;
pub use outcome::MatmulFacts;
pub use outcome::MemoryFacts;
pub use outcome::ModelFacts;
pub use outcome::ModelResult;
pub use outcome::OpFacts;
pub use outcome::Outcome;
pub use outcome::PassFacts;
pub use outcome::Proof;
pub use outcome::ProofByHbm;
pub use outcome::ScheduleProof;
pub use outcome::Sensitivity;
pub use outcome::Share;
pub use outcome::StageFacts;
pub use outcome::StrategyFacts;
pub use outcome::TileFacts;
pub use request::ModelRequest;
pub use request::Request;
pub use request::Source;
pub use request::SpaceRequest;
pub use setup::Rates;
pub use setup::Senseless;
pub use setup::Setup;
pub use survey::Chosen;
pub use survey::Memory;
pub use survey::Survey;
pub use survey::best_of;
pub use survey::survey;
pub use walk::Merit;
pub use walk::Observer;
pub use walk::Status;
pub use walk::Walk;
