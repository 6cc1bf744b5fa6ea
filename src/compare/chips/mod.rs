//! From what was surveyed of chips to what is answered: the winner in full, what binds it, chips nearly
//! as good, the proof, and what the winner is compared with.

mod baselines;
mod front;
mod operators;
mod parts;
mod robust;
mod why;

pub use baselines::Comparison;
pub use baselines::N_OF_SPACE;
pub use baselines::NETWORK_ENDS;
pub use baselines::NO_PLAN;
pub use baselines::NO_PLAN_WITHIN_CAP;
pub use baselines::NO_SUCH_CHIP;
pub use baselines::OPERATORS_OVER_CAP;
pub use baselines::SEVERAL_MODELS;
pub use baselines::described;
pub use baselines::expert_space_of;
pub use baselines::given;
pub use baselines::least_given;
pub use baselines::value_of;
pub use front::told_front;
pub use operators::Given;
pub use operators::OperatorsAlone;
pub use parts::Beside;
pub use parts::PartFile;
pub use parts::RealPart;
pub use parts::Takes;
pub use parts::USUAL_PARTS;
pub use parts::winner_is;
pub use robust::spotlight;
pub use robust::under_assumptions;
pub use why::why_it_wins;

use crate::search::Certainty;
use crate::search::Judge;
use crate::search::ModelFacts;
use crate::search::Objective;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Why;
use crate::search::boxes::trimmed;
use crate::search::chips::BoxProof;
use crate::search::chips::ByObjective;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipSurvey;
use crate::search::chips::NEARLY_PER_MILLE;
use crate::search::chips::NearWinner;
use crate::search::chips::chip_facts;
use crate::search::chips::limits;
use crate::search::chips::sentences;
use crate::strategy::Chosen;
use crate::strategy::Standing;

/// The whole answer; `stopped_by` says what ended the search early.
pub fn chip_outcome(
    evaluator: &ChipEvaluator,
    survey: &ChipSurvey,
    stopped_by: Option<&str>,
) -> ChipOutcome {
    let setup = evaluator.setup;
    let kept = &survey.walk.kept;
    let entries: Vec<ChipEntry> =
        kept.iter().filter_map(|kept| told(evaluator, survey, &kept.point)).collect();
    let winner = entries.first().cloned();
    let near = survey.near.iter().filter_map(|(least, walk)| {
        let best = walk.kept.first()?;
        Some(NearWinner {
            least: *least,
            within: NEARLY_PER_MILLE as f64 / 1000.0,
            entry: told(evaluator, survey, &best.point)?,
            certificate_entries: walk.closed.len(),
        })
    });
    let names: Vec<&str> = setup.request.models.iter().map(|model| model.name.as_str()).collect();
    let proof = proof(evaluator, survey, stopped_by);
    let binds = kept.first().map_or_else(Vec::new, |kept| {
        sentences::bindings(&setup.grid, &kept.point, proof.settles_the_winner())
    });
    ChipOutcome {
        schema: ChipOutcome::SCHEMA.into(),
        version: ChipOutcome::VERSION,
        phaze: env!("CARGO_PKG_VERSION").into(),
        request: setup.request.clone(),
        models: models(evaluator, survey),
        infeasible_reason: winner.is_none().then(|| match stopped_by {
            Some(reason) => format!("stopped by {reason} before anything was found to fit"),
            None => {
                sentences::nothing_fits(&names, setup.request.devices, setup.request.power_cap_w)
            }
        }),
        limited_by: winner.as_ref().map_or_else(Vec::new, limits),
        top: if setup.request.top > 1 { entries } else { Vec::new() },
        near_winners: near.collect(),
        why_it_wins: winner
            .as_ref()
            .map(|winner| sentences::why_it_wins(winner, &[], (&binds, &limits(winner)))),
        why: None,
        front: None,
        spotlight: None,
        robust: None,
        baselines: Vec::new(),
        comparisons_stopped_by: None,
        binds,
        proof,
        winner,
    }
}

fn models(evaluator: &ChipEvaluator, survey: &ChipSurvey) -> Vec<ModelFacts> {
    let setup = evaluator.setup;
    let last = usize::from(setup.grid.lens()[9]) - 1;
    let trainings = &evaluator.ground(last).trainings;
    // Of several models own bests are values by the objective, of which only those of throughput are times.
    let told = trainings.len() == 1 || setup.request.objective == Objective::Throughput;
    let each = trainings.iter().zip(&survey.own_best).zip(&survey.judge.stakes);
    each.map(|((training, own_best), stake)| ModelFacts {
        own_best_cost: stake.own_best,
        name: training.name.clone(),
        sequence: training.sequence,
        parameters: training.model.parameters(),
        flops_per_sequence: training.flops_per_sequence.0 as f64,
        best_throughput_sequences_per_s: own_best
            .filter(|_| told)
            .map(|standing| setup.request.global_batch as f64 / standing.time.seconds()),
    })
    .collect()
}

/// The same answer, its winner compared with others.
pub fn with_baselines(
    outcome: ChipOutcome,
    (evaluator, survey): (&ChipEvaluator, &ChipSurvey),
    parts: &[RealPart],
    observer: &dyn Observer,
) -> ChipOutcome {
    let Some(best) = survey.walk.kept.first() else { return outcome };
    let comparison = Comparison {
        evaluator,
        judge: &survey.judge,
        winner: best.point,
        standings: best.found.iter().map(|chosen| chosen.standing).collect(),
    };
    let baselines = comparison.baselines(parts, observer);
    let about = (outcome.binds.as_slice(), outcome.limited_by.as_slice());
    let why_it_wins =
        outcome.winner.as_ref().map(|winner| sentences::why_it_wins(winner, &baselines, about));
    ChipOutcome { baselines, why_it_wins, ..outcome }
}

fn told(evaluator: &ChipEvaluator, survey: &ChipSurvey, point: &ChipPoint) -> Option<ChipEntry> {
    entry(evaluator, &survey.judge, point).map(|(entry, _)| entry)
}

/// A chip in full, and how it trains each model; `None` where nothing fits on it.
fn entry(
    evaluator: &ChipEvaluator,
    judge: &Judge,
    point: &ChipPoint,
) -> Option<(ChipEntry, Vec<Standing>)> {
    let setup = evaluator.setup;
    let chip = evaluator.chip(point)?;
    let models = 0..setup.models.len();
    let mut results = Vec::new();
    let mut standings: Vec<Standing> = Vec::new();
    for model in models {
        let best = evaluator.best(model, point)?;
        standings.push(best.chosen.standing);
        results.push(evaluator.planner(model, point).result(&chip, &best));
    }
    let taken = setup.footprint_for(judge.objective, &setup.knobs(point))?;
    let merit = judge.merit(&standings, taken, Certainty::Fact);
    let value = judge.figure(merit.value);
    Some((ChipEntry { chip: chip_facts(setup, point)?, value, results }, standings))
}

fn proof(evaluator: &ChipEvaluator, survey: &ChipSurvey, stopped_by: Option<&str>) -> BoxProof {
    let walk = &survey.walk;
    let points = u64::try_from(evaluator.setup.request.space.points()).unwrap_or(u64::MAX);
    let open: u128 = walk.open.iter().map(|(region, _)| region.volume()).sum();
    let closed = sentences::closed_by(&walk.closed);
    let gap = gap(evaluator, survey);
    let open_points = u64::try_from(open).unwrap_or(u64::MAX);
    let proved = sentences::Proved { points, closed: &closed, open_points, stopped_by, gap };
    let statement = proved.statement();
    BoxProof {
        complete: stopped_by.is_none() && walk.complete() && gap == 0.0,
        stopped_by: stopped_by.map(str::to_owned),
        points,
        statement,
        evaluations: survey.evaluated,
        certificate_entries: walk.closed.len(),
        closed,
        open_points,
        gap,
    }
}

/// By what part of the best value something unknown could be better, at the most.
fn gap(evaluator: &ChipEvaluator, survey: &ChipSurvey) -> f64 {
    let Some(best) = survey.walk.kept.first() else {
        return if survey.walk.complete() { 0.0 } else { 1.0 };
    };
    let price = evaluator.ground(0).terms.price;
    let value = best.value.first as f64;
    let uncertain = |chosen: &[Chosen], value: u128| {
        let part = chosen.iter().map(|chosen| chosen.certain_part(price)).fold(1.0, f64::min);
        value as f64 * part
    };
    let kept = survey.walk.kept.iter().map(|kept| uncertain(&kept.found, kept.value.first));
    // Of other points that were evaluated, only the value is kept: what they might be is found again.
    let evaluated = survey.walk.closed.iter().filter_map(|closed| match closed.why {
        Why::Evaluated(value) => Some((closed.region.lo, value.first)),
        _ => None,
    });
    let others = evaluated.map(|(point, value)| {
        let models = 0..survey.judge.stakes.len();
        let parts = models.filter_map(|model| evaluator.certain_part(model, &point));
        value as f64 * parts.fold(1.0, f64::min)
    });
    // What open boxes may hold is bounded by each for itself, so that others can say so too.
    let models = (0..survey.judge.stakes.len()).collect();
    let problem = ByObjective { evaluator, models, judge: &survey.judge };
    let open = survey.walk.open.iter().filter_map(|(region, _)| {
        let least = problem.bound(&trimmed(&problem, region)?)?;
        Some(least.first as f64)
    });
    let possible = kept.chain(others).chain(open).fold(value, f64::min);
    1.0 - possible / value
}
