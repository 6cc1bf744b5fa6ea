//! What does a plan mean for who pays and waits for it?
//!
//! In: plans, and what is asked of a run beside them: tokens, prices, a goodput ([`Economics`]).
//! Out: what the run takes ([`RunFigures`]), the plan beside others ([`Row`]), a curve over numbers
//! of devices with its knee ([`Curve`]), all of it as one answer ([`Advice`]).
//!
//! Everything here is a pure function of plans that were found elsewhere. Not here: which other
//! questions are worth asking (see `input`), and how they are answered (see `strategy`).

mod curve;
mod economics;

pub use curve::Curve;
pub use curve::CurvePoint;
pub use economics::Assumed;
pub use economics::Economics;
pub use economics::RunFigures;

use crate::launch::CannotLaunch;
use crate::launch::LaunchFile;
use crate::launch::Target;
use crate::plan::Plan;

/// What a plan is compared with: another question, answered exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What is different.
    pub title: String,
    /// What came of it; `None` where nothing fits.
    pub found: Option<Found>,
    /// The command that asks for it.
    pub command: String,
}

/// The answer to another question.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Devices at hand.
    pub devices: u64,
    /// The strategy in words.
    pub strategy: String,
    /// Seconds of a batch.
    pub seconds_per_batch: f64,
    /// What the run would take.
    pub run: RunFigures,
}

/// On how many devices a model fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// On no fewer.
    pub fewest: u64,
    /// A number that leaves room.
    pub comfortable: u64,
}

/// A way out of a question that has no answer, which was tried and works.
#[derive(Clone, Debug, PartialEq)]
pub struct WayOut {
    /// What is changed.
    pub title: String,
    /// The strategy that fits then.
    pub strategy: String,
    /// The command that asks for it.
    pub command: String,
}

/// What is told of a plan before it is compared with anything.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The plan.
    pub plan: Plan,
    /// Parameters of the model.
    pub parameters: u64,
    /// Devices of a node, where the network has nodes.
    pub per_node: Option<u64>,
    /// What is asked of the run, with where each number comes from.
    pub economics: Economics,
    /// What it takes.
    pub run: RunFigures,
    /// On how many devices the model fits; `None` where it was not asked.
    pub room: Option<Room>,
    /// What starts it.
    pub target: Target,
    /// How it is started, or why it cannot be.
    pub launch: Result<Vec<LaunchFile>, CannotLaunch>,
    /// The command that was given.
    pub command: String,
    /// What a user should know of the numbers that were chosen for him, a sentence each.
    pub remarks: Vec<String>,
}
