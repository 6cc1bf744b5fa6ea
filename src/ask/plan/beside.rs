//! What a planner asks next, and what would be if: other requests, each answered exactly.

use std::sync::atomic::AtomicUsize;

use super::PlanRequest;
use super::answer::Answered;
use super::answer::Context;
use super::answer::answered;
use super::answer::found_of;
use crate::advise::Advice;
use crate::advise::Row;
use crate::ask::place::UNEVEN_LOAD;
use crate::estimate::many::each;
use crate::input::InputError;
use crate::model::Precision;
use crate::plan::GivenCut;
use crate::plan::GivenStrategy;
use crate::plan::Plan;

/// Another request by name.
struct Case {
    title: String,
    request: PlanRequest,
}

impl Case {
    fn new(title: &str, request: PlanRequest) -> Self {
        Self { title: title.to_owned(), request }
    }
}

/// What is asked next of a plan: the best without a pipeline, without tensor parallelism, the
/// simplest to run, half and twice the devices, and where the plan is odd to an expert's eye the best
/// that is not.
///
/// # Errors
/// What of the request makes no sense.
pub fn next_rows(
    request: &PlanRequest,
    advice: &Advice,
    context: &Context,
    (n_threads, done): (usize, &AtomicUsize),
) -> Result<Vec<Row>, InputError> {
    rows(&next_cases(request, advice), context, (n_threads, done))
}

fn next_cases(request: &PlanRequest, advice: &Advice) -> Vec<Case> {
    let Some(training) = &advice.plan.training else { return Vec::new() };
    let (strategy, given) = (&training.strategy, &request.strategy);
    let devices = advice.plan.job.devices;
    // What is given by degrees takes so many devices and no others.
    let with = |change: &dyn Fn(&mut GivenStrategy)| {
        let mut own = GivenStrategy { data: None, ..given.clone() };
        change(&mut own);
        PlanRequest { strategy: own, ..request.on(devices) }
    };
    let mut cases = Vec::new();
    if *given != GivenStrategy::default() {
        let free = PlanRequest { strategy: GivenStrategy::default(), ..request.on(devices) };
        cases.push(Case::new("nothing given", free));
    }
    if strategy.pipeline > 1 && given.pipeline.is_none() {
        let one = |own: &mut GivenStrategy| {
            (own.pipeline, own.chunks, own.group) = (Some(1), None, None);
        };
        cases.push(Case::new("without a pipeline", with(&one)));
    }
    if strategy.tensor_parallel > 1 && given.tensor.is_none() {
        let one = |own: &mut GivenStrategy| {
            (own.tensor, own.sequence_parallel) = (Some(1), None);
        };
        cases.push(Case::new("without tensor parallelism", with(&one)));
    }
    let simple = |own: &mut GivenStrategy| {
        *own = GivenStrategy {
            tensor: Some(1),
            context: Some(1),
            pipeline: Some(1),
            zero: Some(3),
            ..GivenStrategy::default()
        };
    };
    cases.push(Case::new("simplest to run: shards alone", with(&simple)));
    if is_across_nodes(advice) {
        let width =
            advice.per_node.map_or(1, |per_node| inside(strategy.tensor_parallel, per_node));
        let inside = |own: &mut GivenStrategy| own.tensor = Some(width);
        cases.push(Case::new("tensor parallelism inside nodes", with(&inside)));
    }
    if has_uneven_stages(&advice.plan) && given.cut.is_none() {
        let even = |own: &mut GivenStrategy| own.cut = Some(GivenCut::Even);
        cases.push(Case::new("with even stages", with(&even)));
    }
    for (title, devices) in [("half the devices", devices / 2), ("twice the devices", devices * 2)]
    {
        if devices > 0 {
            let own = GivenStrategy { data: None, ..given.clone() };
            cases.push(Case::new(title, PlanRequest { strategy: own, ..request.on(devices) }));
        }
    }
    cases
}

/// The largest divisor of a node that is no wider.
fn inside(width: u64, per_node: u64) -> u64 {
    (1..=width).rev().find(|&width| per_node.is_multiple_of(width)).unwrap_or(1)
}

/// Whether devices that share a layer stand in several nodes.
fn is_across_nodes(advice: &Advice) -> bool {
    let training = advice.plan.training.as_ref();
    let width = training.map_or(1, |training| training.strategy.tensor_parallel);
    advice.per_node.is_some_and(|per_node| !per_node.is_multiple_of(width))
}

/// Whether some stage has more transformer layers than another.
fn has_uneven_stages(plan: &Plan) -> bool {
    let last = plan.profile.n_layers().saturating_sub(1);
    let counts = plan
        .answer
        .stages
        .iter()
        .map(|stage| stage.layers.iter().filter(|&&layer| layer > 0 && layer < last).count());
    let counts: Vec<usize> = counts.collect();
    counts.iter().min() != counts.iter().max()
}

/// What would be if: other numbers, another part, a faster network, a node more, longer sequences,
/// experts that are not loaded evenly.
///
/// # Errors
/// What of the request makes no sense.
pub fn what_if_rows(
    request: &PlanRequest,
    advice: &Advice,
    context: &Context,
    (n_threads, done): (usize, &AtomicUsize),
) -> Result<Vec<Row>, InputError> {
    rows(&what_if_cases(request, advice), context, (n_threads, done))
}

fn what_if_cases(request: &PlanRequest, advice: &Advice) -> Vec<Case> {
    let Some(training) = &advice.plan.training else { return Vec::new() };
    let devices = advice.plan.job.devices;
    let own = || PlanRequest {
        strategy: GivenStrategy { data: None, ..request.strategy.clone() },
        ..request.on(devices)
    };
    let mut cases = Vec::new();
    cases.push(match request.precision {
        Precision::Bf16 => Case::new("FP8", PlanRequest { precision: Precision::Fp8, ..own() }),
        Precision::Fp8 => Case::new("BF16", PlanRequest { precision: Precision::Bf16, ..own() }),
    });
    for (hardware, title) in [("h200-sxm", "H200"), ("h100-sxm", "H100")] {
        if request.hardware != hardware && cases.len() < 2 {
            // Prices and power are those of the other part; what is reached of the data sheet is that
            // of the part at hand, or one would be compared with an ideal.
            let other = PlanRequest {
                hardware: hardware.to_owned(),
                efficiency: request.efficiency.clone().or(Some(request.hardware.clone())),
                price: None,
                watts: None,
                host_watts: None,
                ..own()
            };
            cases.push(Case::new(title, other));
        }
    }
    let times = request.network_times.unwrap_or(1).saturating_mul(2);
    let faster = PlanRequest { network_times: Some(times), ..own() };
    cases.push(Case::new("twice the network", faster));
    if let Some(per_node) = advice.per_node {
        let more = PlanRequest { devices: request.on(devices + per_node).devices, ..own() };
        cases.push(Case::new("one node more", more));
    }
    let sequence = Some(2 * training.sequence);
    cases.push(Case::new("sequences twice as long", PlanRequest { sequence, ..own() }));
    if request.imbalance_per_mille.is_none() {
        // Makes sense of mixtures of experts alone.
        let uneven = PlanRequest { imbalance_per_mille: Some(UNEVEN_LOAD), ..own() };
        cases.push(Case::new("1.2 times an even expert load", uneven));
    }
    cases
}

/// Each case answered, in their order; one that makes no sense is left out.
fn rows(
    cases: &[Case],
    context: &Context,
    (n_threads, done): (usize, &AtomicUsize),
) -> Result<Vec<Row>, InputError> {
    let answers = each(cases, n_threads, done, |case| row(case, context));
    let rows: Result<Vec<Option<Row>>, InputError> = answers.into_iter().collect();
    Ok(rows?.into_iter().flatten().collect())
}

fn row(case: &Case, context: &Context) -> Result<Option<Row>, InputError> {
    let Case { title, request } = case;
    let Ok(ready) = context.ready(request) else { return Ok(None) };
    let (title, command) = (title.clone(), request.command());
    // What cannot be divided so at all fits no more than what lacks memory.
    let found = match answered(request, ready, context) {
        Err(_) | Ok(None) => None,
        Ok(Some(Answered { ready, plan, .. })) => Some(found_of(request, &ready, &plan)?),
    };
    Ok(Some(Row { title, found, command }))
}
