//! All that is told of a run, for who waits until everything is known: what `phaze plan --json` prints, and the
//! files of `--out`.

use std::sync::atomic::AtomicUsize;

use serde_json::Value;

use super::PlanAnswer;
use super::PlanRequest;
use super::answer::Context;
use super::answer::advise;
use super::answer::curve;
use super::answer::room;
use super::beside::next_rows;
use super::beside::what_if_rows;
use super::saved::files;
use crate::advise::Curve;
use crate::input::InputError;
use crate::report::advice as report;

/// What a planner is told.
pub struct WholePlan {
    /// The answer for programs.
    pub value: Value,
    /// Every file of the plan with its text; none where nothing fits.
    pub files: Vec<(String, String)>,
}

impl PlanRequest {
    /// The same for the number of devices that a curve recommends: the cheapest in time, else the knee.
    #[must_use]
    pub fn on_the_best_of(&self, curve: &Curve) -> Self {
        self.on(curve.cheapest().or(curve.knee()).unwrap_or(self.devices.most))
    }
}

/// How a request is worked on.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// What requests of one sitting share.
    pub context: &'a Context<'a>,
    /// How many rows are answered at once.
    pub n_threads: usize,
    /// Is told what is looked for next.
    pub begins: &'a dyn Fn(&str),
}

/// The request for one number of devices that a request stands for, with the curve that says so where
/// it asks for several.
///
/// # Errors
/// What of it makes no sense.
pub fn settled(
    request: &PlanRequest,
    work: Work,
) -> Result<(PlanRequest, Option<Curve>), InputError> {
    if request.devices.least == request.devices.most {
        return Ok((request.clone(), None));
    }
    (work.begins)("comparing numbers of devices");
    let found = curve(request, work.context, work.n_threads, &AtomicUsize::new(0))?;
    Ok((request.on_the_best_of(&found), Some(found)))
}

/// Answers a request with all that is beside it.
///
/// # Errors
/// What of it makes no sense, or what cannot be started as it asks.
pub fn whole(request: &PlanRequest, work: Work) -> Result<WholePlan, InputError> {
    let Work { context, n_threads, begins } = work;
    let done = AtomicUsize::new(0);
    let (request, curve) = &settled(request, work)?;
    begins("looking for the best strategy");
    let mut advice = match advise(request, context)? {
        PlanAnswer::Found(advice) => advice,
        PlanAnswer::Infeasible { reason, ways_out } => {
            let value = report::infeasible_value(&request.model, &reason, &ways_out);
            return Ok(WholePlan { value, files: Vec::new() });
        }
    };
    begins("looking for the fewest devices");
    advice.room = room(request, context)?;
    begins("looking at what is beside it");
    let next = next_rows(request, &advice, context, (n_threads, &done))?;
    let what_if = what_if_rows(request, &advice, context, (n_threads, &done))?;
    let mut value = report::value(&advice, &next, &what_if);
    if let Some(curve) = curve {
        value["curve"] = report::curve_value(curve);
    }
    let files = files(request, &advice, (&next, &what_if), curve.as_ref());
    Ok(WholePlan { value, files })
}
