//! What to do where nothing fits: every way out was tried.

use std::sync::atomic::AtomicUsize;

use super::Batch;
use super::PlanAnswer;
use super::PlanRequest;
use super::answer::Context;
use super::answer::answered;
use crate::advise::WayOut;
use crate::ask::Spelling;
use crate::ask::fewest::fewest_devices;
use crate::ask::solved::why_nothing_fits;
use crate::estimate::many::each;
use crate::input::InputError;
use crate::parallel::frameworks::Framework;
use crate::plan::GivenRecompute;
use crate::plan::GivenStrategy;

/// Why nothing fits, and what was tried and works.
pub(super) fn infeasible(
    request: &PlanRequest,
    context: &Context,
) -> Result<PlanAnswer, InputError> {
    let ready = context.ready(request)?;
    let reason = why_nothing_fits(&ready, &context.table, Spelling::Options)?;
    let ways: Vec<(String, PlanRequest)> =
        given_ways(request).into_iter().chain(ways(request)).collect();
    let done = AtomicUsize::new(0);
    let found =
        each(&ways, context.n_threads, &done, |(title, other)| tried(title, other, context));
    let mut ways_out: Vec<WayOut> = found.into_iter().flatten().collect();
    ways_out.extend(more_devices(request, ready.question.devices, context));
    Ok(PlanAnswer::Infeasible { reason, ways_out })
}

/// What comes of another request; `None` where nothing does, and where it makes no sense.
fn tried(title: &str, other: &PlanRequest, context: &Context) -> Option<WayOut> {
    let ready = context.ready(other).ok()?;
    // What memory forbids is told long before every strategy is.
    let fewest = fewest_devices(&ready, &context.table).ok()??;
    if fewest > ready.question.devices {
        return None;
    }
    let found = answered(other, ready, context).ok()??;
    let strategy = crate::report::placement::strategy(&found.plan);
    Some(WayOut { title: title.to_owned(), strategy, command: found.request.command() })
}

/// The same strategy with one part more or less.
fn given_ways(request: &PlanRequest) -> Vec<(String, PlanRequest)> {
    let given = &request.strategy;
    if *given == GivenStrategy::default() {
        return Vec::new();
    }
    let with = |strategy: GivenStrategy| PlanRequest { strategy, ..request.clone() };
    let own = || given.clone();
    let mut ways = Vec::new();
    let mut way = |is: bool, title: &str, strategy: GivenStrategy| {
        if is {
            ways.push((title.to_owned(), with(strategy)));
        }
    };
    let full = Some(GivenRecompute::Full);
    way(
        given.sequence_parallel == Some(false),
        "sequence parallelism",
        GivenStrategy { sequence_parallel: Some(true), ..own() },
    );
    way(
        given.recompute != full,
        "recompute of every layer",
        GivenStrategy { recompute: full, ..own() },
    );
    way(
        given.recompute.is_some(),
        "as much recompute as memory asks for",
        GivenStrategy { recompute: None, ..own() },
    );
    way(
        given.zero.is_some(),
        "another ZeRO stage",
        GivenStrategy { zero: None, shards: None, ..own() },
    );
    way(
        given.micro_batch.is_some_and(|size| size > 1),
        "a micro-batch of 1",
        GivenStrategy { micro_batch: Some(1), ..own() },
    );
    way(
        given.tensor.is_some(),
        "another width",
        GivenStrategy { tensor: None, data: None, ..own() },
    );
    way(
        given.pipeline.is_some(),
        "another pipeline",
        GivenStrategy { pipeline: None, chunks: None, group: None, data: None, ..own() },
    );
    way(
        given.context.is_some(),
        "another context degree",
        GivenStrategy { context: None, data: None, ..own() },
    );
    way(true, "nothing given", GivenStrategy::default());
    ways
}

/// Other numbers of the same request.
fn ways(request: &PlanRequest) -> Vec<(String, PlanRequest)> {
    let own = || request.clone();
    let mut ways = Vec::new();
    if request.reserve_per_mille.is_none_or(|reserve| reserve > 0) {
        let none = PlanRequest { reserve_per_mille: Some(0), ..own() };
        ways.push(("no reserve of memory".to_owned(), none));
    }
    if let Some(sequence) = request.sequence.map(|tokens| tokens / 2).filter(|&tokens| tokens > 0) {
        let shorter = PlanRequest { sequence: Some(sequence), ..own() };
        ways.push((format!("sequences of {sequence} tokens"), shorter));
    }
    if let Batch::Sequences(batch) = request.batch {
        let near = batch.next_power_of_two();
        if near != batch {
            let other = PlanRequest { batch: Batch::Sequences(near), ..own() };
            ways.push((format!("a batch of {near} sequences"), other));
        }
    }
    for (hardware, what) in [("h200-sxm", "H200"), ("b200", "B200")] {
        if request.hardware != hardware {
            let efficiency = request.efficiency.clone().or(Some(request.hardware.clone()));
            let other = PlanRequest { hardware: hardware.to_owned(), efficiency, ..own() };
            ways.push((format!("as many {what}"), other));
        }
    }
    if request.target.is_none() && request.framework != Some(Framework::Any) {
        let any = PlanRequest { framework: Some(Framework::Any), ..own() };
        ways.push(("no framework in particular".to_owned(), any));
    }
    ways
}

/// The most often that devices are doubled.
const MOST_DOUBLED: u32 = 12;

/// Twice the devices, or the first power of two more on which something fits.
fn more_devices(request: &PlanRequest, devices: u64, context: &Context) -> Option<WayOut> {
    (1..=MOST_DOUBLED).find_map(|power| {
        let more = devices.saturating_mul(1 << power);
        let other = PlanRequest {
            strategy: GivenStrategy { data: None, ..request.strategy.clone() },
            ..request.on(more)
        };
        tried(&format!("{more} devices"), &other, context)
    })
}
