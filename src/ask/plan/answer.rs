//! From a request to its answer: the plan, what the run takes, and the files that start it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::Batch;
use super::PlanAnswer;
use super::PlanRequest;
use super::economics::economics;
use super::way_out;
use crate::advise::Advice;
use crate::advise::Curve;
use crate::advise::CurvePoint;
use crate::advise::Found;
use crate::advise::Room;
use crate::advise::RunFigures;
use crate::ask::fewest::Fitted;
use crate::ask::solved;
use crate::estimate::EstimateTable;
use crate::input::Conventions;
use crate::input::InputError;
use crate::input::batch::DEFAULT_BATCH_TOKENS;
use crate::input::batch::nearest_batch;
use crate::input::place::Ready;
use crate::input::place::accelerator;
use crate::input::source::Reader;
use crate::launch;
use crate::launch::CannotLaunch;
use crate::launch::Run;
use crate::launch::Target;
use crate::parallel::frameworks::Framework;
use crate::plan::GivenStrategy;
use crate::plan::Plan;
use crate::report::advice::notes;
use crate::report::quantity::grouped;
use crate::strategy::Shares;

/// What requests of one sitting share: how files are opened, and estimates of operators.
pub struct Context<'a> {
    /// Opens files.
    pub read: &'a Reader<'a>,
    /// Estimates that are known already.
    pub table: EstimateTable,
    /// How models were divided already.
    pub shares: Arc<Shares>,
    /// How many questions are answered at once.
    pub n_threads: usize,
}

impl<'a> Context<'a> {
    /// With no estimates yet, one question after the other.
    pub fn new(read: &'a Reader<'a>) -> Self {
        let options = crate::estimate::Options {
            vector_costs: Conventions::OURS.vector_costs,
            ..crate::estimate::Options::default()
        };
        let shares = Arc::default();
        Self { read, table: EstimateTable::new(options), shares, n_threads: 1 }
    }

    /// A request made ready, with what is known from those before it.
    pub(super) fn ready(&self, request: &PlanRequest) -> Result<Ready, InputError> {
        let (ready, _) = request.ready(self.read)?;
        Ok(Ready { shares: Arc::clone(&self.shares), ..ready })
    }
}

/// A question that has an answer, which may differ a little from what was asked.
pub(super) struct Answered {
    pub(super) request: PlanRequest,
    pub(super) ready: Ready,
    pub(super) plan: Plan,
}

/// Answers a request about one number of devices.
///
/// # Errors
/// What of it makes no sense, or what cannot be started as it asks.
pub fn advise(request: &PlanRequest, context: &Context) -> Result<PlanAnswer, InputError> {
    let ready = context.ready(request)?;
    if let Some(target) = request.target {
        launch::expressible(target, &ready.model.spec)
            .map_err(|reason| refused(target, &reason))?;
    }
    let Some(answered) = answered(request, ready, context)? else {
        return way_out::infeasible(request, context);
    };
    let Answered { ready, plan, .. } = answered;
    Ok(PlanAnswer::Found(Box::new(advice(request, &ready, plan)?)))
}

/// What a plan means to who asked for it.
///
/// # Errors
/// That it cannot be started as it was asked.
pub fn advice(request: &PlanRequest, ready: &Ready, plan: Plan) -> Result<Advice, InputError> {
    let economics = economics(request, &ready.model, &hardware(ready)?)?;
    let parameters = ready.model.parameters();
    let per_node = ready.terms.cluster.network.devices_per_node();
    let target = request.target.unwrap_or(Target::of(ready.question.space.framework));
    let mut advice = Advice {
        run: RunFigures::of(&plan, parameters, &economics),
        plan,
        parameters,
        per_node,
        economics,
        room: None,
        target,
        launch: Err(CannotLaunch::NoModel),
        command: request.command(),
        remarks: remarks(request, ready),
    };
    let (notes, steps) = (notes(&advice), advice.run.steps);
    let started = Run { plan: &advice.plan, spec: &ready.model.spec, per_node, steps, notes };
    let launched = launch::files(target, &started);
    if let (Err(reason), Some(target)) = (&launched, request.target) {
        return Err(refused(target, reason));
    }
    advice.launch = launched;
    Ok(advice)
}

/// How what was answered differs from what was asked, and what is left out of the model.
fn remarks(request: &PlanRequest, ready: &Ready) -> Vec<String> {
    let question = &ready.question;
    let mut remarks = Vec::new();
    let asked = asked_batch(request.batch, question.sequence);
    if question.global_batch != asked {
        remarks.push(format!(
            "The batch is {} sequences instead of {}: the devices divide it.",
            grouped(question.global_batch),
            grouped(asked)
        ));
    }
    if question.devices < request.devices.most {
        remarks.push(format!(
            "{} of {} devices are left over: no degrees fill them all and divide the batch.",
            grouped(request.devices.most - question.devices),
            grouped(request.devices.most)
        ));
    }
    let left_out = ready.model.spec.left_out.as_ref();
    remarks.extend(left_out.map(|what| format!("Left out of what is counted: {what}.")));
    remarks
}

/// Sequences of the batch that is asked for.
fn asked_batch(batch: Batch, sequence: u64) -> u64 {
    match batch {
        Batch::Usual => nearest_batch(DEFAULT_BATCH_TOKENS, sequence),
        Batch::Tokens(tokens) => nearest_batch(tokens, sequence),
        Batch::Sequences(sequences) => sequences,
    }
}

/// On how many devices the model of a request fits; `None` where it fits on none.
///
/// # Errors
/// What of the request makes no sense.
pub fn room(request: &PlanRequest, context: &Context) -> Result<Option<Room>, InputError> {
    let ready = context.ready(request)?;
    let fitted = Fitted::of(&ready, &context.table)?;
    Ok(fitted.map(|fitted| Room { fewest: fitted.fewest, comfortable: fitted.comfortable }))
}

fn refused(target: Target, reason: &CannotLaunch) -> InputError {
    let field = crate::input::numbers::Field::new("--for", "for");
    field.value(target.name(), &format!("cannot be: {reason}"), "ask for another")
}

/// The hardware of a question.
fn hardware(ready: &Ready) -> Result<crate::input::hardware::Hardware, InputError> {
    let question = &ready.question;
    let conventions = Conventions::of(question.published);
    accelerator(
        &question.hardware,
        &question.knobs,
        (conventions, question.efficiency.as_ref()),
        "hardware",
    )
    .map(|(hardware, _)| hardware)
}

/// The best plan of a request; where all devices must be used, also of a batch nearby that they
/// divide, if that trains more tokens in the same time; and where no degrees fill all devices and
/// divide the batch, of at most one node less.
pub(super) fn answered(
    request: &PlanRequest,
    ready: Ready,
    context: &Context,
) -> Result<Option<Answered>, InputError> {
    let whole = ready.question.space.framework != Framework::Any;
    let batches = if whole { nearest_batches(request, &ready) } else { Vec::new() };
    let fewer = if whole { fewer_devices(request, &ready) } else { Vec::new() };
    let solve = |request: PlanRequest, ready: Ready| -> Result<Option<Answered>, InputError> {
        let found = solved::best(&ready, &context.table)?;
        Ok(found.map(|(_, plan)| Answered { request, ready, plan }))
    };
    let other = |request: PlanRequest| -> Result<Option<Answered>, InputError> {
        let ready = context.ready(&request)?;
        solve(request, ready)
    };
    let given = request.strategy != GivenStrategy::default() && request.reserve_per_mille.is_none();
    let mut best = solve(request.clone(), ready)?;
    if best.is_none() && given {
        // What a cluster runs is not called infeasible for a few percent of memory.
        let full = PlanRequest { reserve_per_mille: Some(OVER_FULL), ..request.clone() };
        best = other(full)?;
    }
    for request in batches {
        let found = other(request)?;
        let is_better =
            |found: &Answered| best.as_ref().is_none_or(|best| is_faster(&found.plan, &best.plan));
        if found.as_ref().is_some_and(is_better) {
            best = found;
        }
    }
    for request in fewer {
        if best.is_none() {
            best = other(request)?;
        }
    }
    Ok(best)
}

/// Thousandths by which a strategy that was given may exceed the memory of a device.
const OVER_FULL: i64 = -50;

/// Whether one plan trains more sequences in the same time than another.
fn is_faster(one: &Plan, other: &Plan) -> bool {
    let batch = |plan: &Plan| plan.training.as_ref().map_or(1, |t| u128::from(t.global_batch));
    let time = |plan: &Plan| plan.answer.time_per_batch;
    time(one).saturating_mul(batch(other)) < time(other).saturating_mul(batch(one))
}

/// Requests with a batch nearby that the devices divide, where tokens are given and not sequences.
fn nearest_batches(request: &PlanRequest, ready: &Ready) -> Vec<PlanRequest> {
    let (devices, sequence) = (ready.question.devices, ready.question.sequence);
    let odd = devices >> devices.trailing_zeros();
    let wanted = match request.batch {
        Batch::Usual => DEFAULT_BATCH_TOKENS,
        Batch::Tokens(tokens) => tokens,
        Batch::Sequences(_) => return Vec::new(),
    };
    let batches = divided_batches(wanted / sequence.max(1), odd).into_iter();
    let batches = batches.filter(|_| odd > 1);
    batches.map(|batch| PlanRequest { batch: Batch::Sequences(batch), ..request.clone() }).collect()
}

/// Requests on whole nodes, at most one less than there are.
fn fewer_devices(request: &PlanRequest, ready: &Ready) -> Vec<PlanRequest> {
    let devices = ready.question.devices;
    let per_node = ready.terms.cluster.network.devices_per_node().unwrap_or(1);
    let whole = devices / per_node * per_node;
    let fewer = [whole, whole.saturating_sub(per_node)].into_iter();
    let fewer = fewer.filter(|&fewer| fewer > 0 && fewer < devices);
    fewer.map(|fewer| request.on(fewer)).collect()
}

/// The batches nearest to so many sequences, from below and from above, that are a multiple of the
/// odd part of a number of devices and of as large a power of two as keeps them within an eighth.
fn divided_batches(sequences: u64, odd: u64) -> Vec<u64> {
    let steps = (0..32).rev().map(|power| odd.saturating_mul(1 << power));
    let near = steps.into_iter().find_map(|step| {
        let below = sequences / step * step;
        let near = [below, below.saturating_add(step)].into_iter();
        let mut near: Vec<u64> =
            near.filter(|&batch| batch > 0 && 8 * batch.abs_diff(sequences) <= sequences).collect();
        near.sort_by_key(|batch| batch.abs_diff(sequences));
        (!near.is_empty()).then_some(near)
    });
    near.unwrap_or_default()
}

/// What came of a request, for a row beside another; `None` where nothing fits.
///
/// # Errors
/// What of it makes no sense.
pub(super) fn found(request: &PlanRequest, context: &Context) -> Result<Option<Found>, InputError> {
    let ready = context.ready(request)?;
    // What cannot be divided so at all fits no more than what lacks memory.
    let Ok(Some(answered)) = answered(request, ready, context) else { return Ok(None) };
    let Answered { ready, plan, .. } = answered;
    found_of(request, &ready, &plan).map(Some)
}

/// A plan as a row tells it.
pub(super) fn found_of(
    request: &PlanRequest,
    ready: &Ready,
    plan: &Plan,
) -> Result<Found, InputError> {
    let economics = economics(request, &ready.model, &hardware(ready)?)?;
    Ok(Found {
        devices: plan.job.devices,
        strategy: crate::report::placement::strategy(plan),
        seconds_per_batch: plan.units.time(plan.answer.time_per_batch),
        run: RunFigures::of(plan, ready.model.parameters(), &economics),
    })
}

/// Answers a request for each of its numbers of devices; `done` counts those answered.
///
/// # Errors
/// What of it makes no sense.
pub fn curve(
    request: &PlanRequest,
    context: &Context,
    n_threads: usize,
    done: &AtomicUsize,
) -> Result<Curve, InputError> {
    curve_of(request, context, &request.devices.each(), (n_threads, done))
}

/// The same for these numbers of devices.
pub(super) fn curve_of(
    request: &PlanRequest,
    context: &Context,
    numbers: &[u64],
    (n_threads, done): (usize, &AtomicUsize),
) -> Result<Curve, InputError> {
    let answers = crate::estimate::many::each(numbers, n_threads, done, |&devices| {
        found(&request.on(devices), context).map(|found| CurvePoint { devices, found })
    });
    Ok(Curve {
        points: answers.into_iter().collect::<Result<_, _>>()?,
        deadline: request.deadline.map(|seconds| seconds as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_devices_divide_are_near_what_was_asked() {
        assert_eq!(divided_batches(512, 125), [500]);
        assert_eq!(divided_batches(488, 33), [528]);
        assert_eq!(divided_batches(512, 3), [576]);
        assert_eq!(divided_batches(4, 125), [0; 0]);
    }
}
