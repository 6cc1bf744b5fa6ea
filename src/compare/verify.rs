//! Verifies a saved outcome again from its request, without any solver.
//!
//! Plans go to `plan::check`, which recomputes every figure; layer schedules to the schedule
//! checker, against the graph that the request's model really has; and every design's bound is
//! computed anew, so that each pruned design is seen to be worse than the best. What this cannot
//! see without solvers, [`deep`] does: it evaluates designs once more.

use rayon::prelude::*;

use crate::graph::Dag;
use crate::model::op::Op;
use crate::parallel::Share;
use crate::plan::PassFacts;
use crate::plan::check;
use crate::plan::schedule::Cores;
use crate::plan::schedule::Problem;
use crate::plan::schedule::Run;
use crate::plan::schedule::Schedule;
use crate::plan::schedule::Task;
use crate::search::Entry;
use crate::search::Evaluator;
use crate::search::Judge;
use crate::search::Outcome;
use crate::search::Setup;
use crate::search::objective::Certainty;
use crate::strategy::Figures;
use crate::strategy::Standing;
use crate::strategy::result::ModelResult;
use crate::units::Time;

/// What designs.csv says of a design with one size of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Its value is known.
    Evaluated,
    /// Its bound is worse than the best.
    Pruned,
    /// Nothing fits.
    Infeasible,
    /// It was not looked at.
    Open,
}

/// A claim that does not hold, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

/// What was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Plans whose every figure was recomputed.
    pub plans: usize,
    /// Layer passes whose schedules keep every rule.
    pub schedules: usize,
    /// Designs whose bound was computed anew.
    pub bounds: usize,
    /// Designs that were evaluated once more.
    pub evaluated_again: usize,
}

/// Verifies everything that needs no solver; `said` is by size of memory and design.
pub fn verify(outcome: &Outcome, setup: &Setup, said: &[Vec<Said>]) -> Result<Verified, Broken> {
    let mut verified = Verified::default();
    let listed = outcome.pareto.entries.iter().chain(&outcome.top.entries);
    let compared = outcome.baselines.iter().filter_map(|baseline| baseline.entry.as_ref());
    let by_hbm = outcome.best_by_hbm.iter().filter_map(|best| best.entry.as_ref());
    for entry in outcome.winner.iter().chain(by_hbm).chain(compared).chain(listed) {
        for (model, result) in entry.results.iter().enumerate() {
            plan(result)?;
            verified.plans += 1;
            verified.schedules += schedules(setup, model, entry, result)?;
        }
    }
    verified.bounds = bounds(outcome, setup, said)?;
    Ok(verified)
}

/// Evaluates every design that was evaluated once more, with all solvers, and compares its best
/// time: `times` is by design, with the size of memory that it was best with.
pub fn deep(setup: &Setup, times: &[Option<(usize, Vec<f64>)>]) -> Result<usize, Broken> {
    let evaluator = Evaluator::new(setup);
    let again = |(design, claim): (usize, &Option<(usize, Vec<f64>)>)| -> Result<usize, Broken> {
        let Some((hbm, seconds)) = claim else { return Ok(0) };
        for (model, claimed) in seconds.iter().enumerate() {
            let found = evaluator.best(model, design, *hbm).map(|best| best.chosen.standing.time);
            if found.is_none_or(|found| (found.seconds() - claimed).abs() > 1e-12 * claimed) {
                return Err(Broken(format!(
                    "design {design}: a batch is said to take {claimed} s, but takes {:?} s",
                    found.map(Time::seconds)
                )));
            }
        }
        Ok(1)
    };
    let counts: Result<Vec<usize>, Broken> = times.par_iter().enumerate().map(again).collect();
    Ok(counts?.into_iter().sum())
}

/// The plan costs what it claims, and the result repeats it.
fn plan(result: &ModelResult) -> Result<(), Broken> {
    let name = &result.model;
    check::placement::check(&result.plan)
        .map_err(|violation| Broken(format!("{name}: the plan does not hold: {violation}")))?;
    let planned = result.plan.units.time(result.plan.answer.time_per_batch);
    if (planned - result.time_per_batch_s).abs() > 1e-12 * planned {
        return Err(Broken(format!(
            "{name}: a batch is said to take {} s, but its plan takes {planned} s",
            result.time_per_batch_s
        )));
    }
    for layer in &result.layers {
        let kind = result.plan.profile.kinds.iter().find(|kind| kind.name == layer.kind);
        let Some(kind) = kind else {
            return Err(Broken(format!("{name}: the plan has no layer {}", layer.kind)));
        };
        for (said, planned) in
            [(layer.forward.time_s, kind.forward), (layer.backward.time_s, kind.backward)]
        {
            if ticks(said) != planned {
                return Err(Broken(format!(
                    "{name}: a pass of {} is said to take {said} s, but the plan counts {} s",
                    layer.kind,
                    Time(planned).seconds()
                )));
            }
        }
    }
    Ok(())
}

/// Every layer's schedule keeps the order of the model's own graph and the limits of the cores.
fn schedules(
    setup: &Setup,
    model: usize,
    entry: &Entry,
    result: &ModelResult,
) -> Result<usize, Broken> {
    let training = setup.trainings.get(model).ok_or_else(|| Broken("too many results".into()))?;
    let strategy = &result.strategy;
    let division = training.divisions.iter().find(|division| {
        let setting = &division.share.setting;
        (setting.tensor_parallel, setting.micro_batch)
            == (strategy.tensor_parallel, strategy.micro_batch)
    });
    let share: &Share = division.map(|division| &division.share).ok_or_else(|| {
        Broken(format!("{}: the request has no such width and micro-batch", result.model))
    })?;
    let mut count = 0;
    for (layer, facts) in share.kinds.iter().zip(&result.layers) {
        for (ops, pass) in [(&layer.forward, &facts.forward), (&layer.backward, &facts.backward)] {
            schedule(setup, entry, ops, pass).map_err(|reason| {
                Broken(format!("{}: a schedule of {} {reason}", result.model, facts.kind))
            })?;
            count += 1;
        }
    }
    Ok(count)
}

fn schedule(setup: &Setup, entry: &Entry, ops: &Dag<Op>, pass: &PassFacts) -> Result<(), String> {
    let names = ops.nodes().iter().map(|op| &op.name);
    if !names.eq(pass.operators.iter().map(|op| &op.name)) {
        return Err("has other operators than the model".into());
    }
    let mut facts = pass.operators.iter();
    let tasks = ops.map(|op| {
        let fact = facts.next().expect("as many facts as operators");
        let taken = ticks(fact.end_s).saturating_sub(ticks(fact.start_s));
        Task { core: op.core(), alone: taken, spread: taken }
    });
    let runs = ops.nodes().iter().zip(&pass.operators).map(|(op, fact)| {
        let mut cores = fact.cores.iter().copied();
        let (tensor, vector) = match op.core() {
            crate::model::op::CoreKind::Tensor => (cores.next(), None),
            crate::model::op::CoreKind::Vector => (None, cores.next()),
            crate::model::op::CoreKind::Both => (cores.next(), cores.next()),
            _ => (None, None),
        };
        Run { start: ticks(fact.start_s), spread: fact.spread, tensor, vector }
    });
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let cores = Cores {
        tensor: count(entry.design.tensor_cores),
        vector: count(entry.design.vector_cores),
    };
    let schedule = Schedule { runs: runs.collect() };
    let problem = Problem { tasks, cores, rule: setup.terms.rule };
    let makespan = check::schedule::check(&problem, &schedule)
        .map_err(|violation| format!("breaks a rule: {violation}"))?;
    if makespan != ticks(pass.makespan_s) || makespan > ticks(pass.time_s) {
        return Err(format!("ends after {} s, not when it says", Time(makespan).seconds()));
    }
    Ok(())
}

/// Every design that was not evaluated is worse than the best by a bound computed anew.
fn bounds(outcome: &Outcome, setup: &Setup, said: &[Vec<Said>]) -> Result<usize, Broken> {
    let evaluator = Evaluator::new(setup);
    let n_models = setup.trainings.len();
    let judge = Judge::of(setup, &outcome.models);
    let mut count = 0;
    for (hbm, said) in said.iter().enumerate() {
        if said.len() != setup.candidates.len() {
            return Err(Broken(format!(
                "designs.csv has {} rows, the space {} designs",
                said.len(),
                setup.candidates.len()
            )));
        }
        let best = outcome.best_by_hbm.get(hbm).and_then(|best| best.entry.as_ref());
        let checked: Result<Vec<()>, Broken> = (0..said.len())
            .into_par_iter()
            .map(|design| {
                let chip = setup.chip(design, hbm);
                let figures = Figures::TimeAndEnergy;
                let standings: Option<Vec<Standing>> = (0..n_models)
                    .map(|model| evaluator.optimistic(model, &chip, figures))
                    .collect();
                let figure = standings.map(|standings| {
                    let area = setup.areas[design];
                    judge.figure(judge.merit(&standings, area, Certainty::Bound).value)
                });
                match (said[design], figure, best) {
                    // What looked possible may have turned out not to fit: every way was tried.
                    (Said::Infeasible, _, _) | (Said::Evaluated, Some(_), _) => Ok(()),
                    (Said::Pruned, Some(bound), Some(best)) => {
                        let worse = if judge.larger_is_better() {
                            bound < best.value
                        } else {
                            bound > best.value
                        };
                        if worse {
                            return Ok(());
                        }
                        Err(Broken(format!(
                            "design {design} was pruned, but might reach {bound} where the best \
                             has {}",
                            best.value
                        )))
                    }
                    (Said::Open, _, _) if !outcome.proof.complete => Ok(()),
                    (said, bound, _) => Err(Broken(format!(
                        "design {design} is {said:?} with bound {bound:?}: that cannot be"
                    ))),
                }
            })
            .collect();
        count += checked?.len();
    }
    Ok(count)
}

/// Seconds of a file as picoseconds: they were whole when they were written.
fn ticks(seconds: f64) -> u64 {
    Time::from_seconds(seconds).map_or(u64::MAX, |time| time.0)
}
