//! What a planner asks: a model, devices, tokens, prices; from there to plans, what is beside them
//! and the files that start them.
//!
//! In: a [`PlanRequest`], from the command line or from a program. Out: [`Advice`] or why there is
//! none with [`WayOut`]s that were tried ([`advise`]), [`Row`]s beside it ([`next_rows`],
//! [`what_if_rows`]), a `Curve` over numbers of devices ([`curve`]); all of it at once ([`whole()`]).
//!
//! [`Row`]: crate::advise::Row
//! [`WayOut`]: crate::advise::WayOut

mod answer;
mod beside;
mod economics;
mod keywords;
mod own;
mod request;
pub mod saved;
mod text;
mod way_out;
mod whole;

use crate::advise::Advice;
use crate::advise::WayOut;

pub use answer::Context;
pub use answer::advice;
pub use answer::advise;
pub use answer::curve;
pub use answer::room;
pub use beside::next_rows;
pub use beside::what_if_rows;
pub use own::OwnRequest;
pub use own::own_request;
pub use request::Batch;
pub use request::DeviceRange;
pub use request::PlanRequest;
pub use saved::files as saved_files;
pub use text::read_devices;
pub use text::read_scaled;
pub use text::read_seconds;
pub use whole::WholePlan;
pub use whole::Work;
pub use whole::settled;
pub use whole::whole;

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum PlanAnswer {
    /// A plan, and what it means.
    Found(Box<Advice>),
    /// Nothing fits.
    Infeasible {
        /// The limit that comes closest to being kept.
        reason: String,
        /// What was tried and works.
        ways_out: Vec<WayOut>,
    },
}
