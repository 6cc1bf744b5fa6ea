//! What an answer *is*: its parts, its cost by definition, and the checkers that judge it.
//!
//! Nothing here knows how answers are found: solvers depend on this room, never the other way,
//! so a checker is an independent judge and a saved answer can be verified without any solver.
//!
//! Of a placement, times are whole ticks and sizes whole units, whose meaning the owner knows:
//! picoseconds and bytes for models, scaled decimals for a user's own profiles.

pub mod batch;
pub mod check;
mod cost;
mod file;
mod given;
mod job;
mod layer_facts;
mod links;
mod memory;
pub mod one_f_one_b;
mod passes;
mod pipeline;
mod profile;
mod question;
pub mod repeated;
mod rules;
pub mod schedule;
mod simulate;
mod space;
mod stage;
mod strategy;
mod wiring;

pub use batch::AfterBackward;
pub use batch::StepStart;
pub use batch::batch_time;
pub use cost::Cost;
pub use cost::Placement;
pub use cost::cost;
pub use file::Answer;
pub use file::Basis;
pub use file::Plan;
pub use file::Proof;
pub use file::RankAnswer;
pub use file::StageAnswer;
pub use file::Training;
pub use file::Units;
pub use given::GivenCut;
pub use given::GivenRecompute;
pub use given::GivenStrategy;
pub use given::UnknownRecompute;
pub use job::Buckets;
pub use job::EndRules;
pub use job::Hiding;
pub use job::Job;
pub use job::PerParameter;
pub use job::TimeModel;
pub use layer_facts::ArrayFacts;
pub use layer_facts::ExchangeFacts;
pub use layer_facts::LayerFacts;
pub use layer_facts::MappingFacts;
pub use layer_facts::MatmulFacts;
pub use layer_facts::OpFacts;
pub use layer_facts::PassFacts;
pub use layer_facts::ScheduleProof;
pub use layer_facts::TileFacts;
pub use links::Links;
pub use memory::Memory;
pub use memory::Recompute;
pub use passes::IllegalOrder;
pub use passes::Pass;
pub use passes::PassOrder;
pub use pipeline::Pipeline;
pub use profile::Edge;
pub use profile::Flaw;
pub use profile::LayerProfile;
pub use profile::Profile;
pub use question::Question;
pub use question::Source;
pub use rules::Held;
pub use rules::RankCost;
pub use rules::Shape;
pub use rules::StageCost;
pub use rules::StageRules;
pub use simulate::Event;
pub use simulate::PipelinedBatch;
pub use simulate::Simulation;
pub use simulate::can_be_played;
pub use simulate::simulate;
pub use space::CutSpace;
pub use space::Limits;
pub use space::StrategySpace;
pub use stage::StageTime;
pub use strategy::Strategy;
pub use wiring::Wiring;
