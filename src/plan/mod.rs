//! What an answer *is*: its parts, its cost by definition, and the checkers that judge it.
//!
//! Nothing here knows how answers are found: solvers depend on this room, never the other way,
//! so a checker is an independent judge and a saved answer can be verified without any solver.
//!
//! Of a placement, times are whole ticks and sizes whole units, whose meaning the owner knows:
//! picoseconds and bytes for models, scaled decimals for a user's own profiles.

mod batch;
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
pub mod schedule;
mod simulate;
mod stage;

pub use batch::AfterBackward;
pub use batch::Bucket;
pub use batch::GatheredLayer;
pub use batch::StepStart;
pub use batch::batch_time;
pub use batch::exposed;
pub use batch::exposed_gather;
pub use cost::Cost;
pub use cost::Placement;
pub use cost::StageCost;
pub use cost::cost;
pub use file::Answer;
pub use file::Plan;
pub use file::Proof;
pub use file::StageAnswer;
pub use file::Training;
pub use file::Units;
pub use given::GivenCut;
pub use given::GivenRecompute;
pub use given::GivenStrategy;
pub use given::UnknownRecompute;
pub use job::Job;
pub use job::PerParameter;
pub use job::TimeModel;
pub use layer_facts::ArrayFacts;
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
pub use question::GivenDegrees;
pub use question::Question;
pub use question::Source;
pub use simulate::Event;
pub use simulate::PipelinedBatch;
pub use simulate::Simulation;
pub use simulate::simulate;
pub use stage::StageTime;
