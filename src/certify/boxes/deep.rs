//! What only a solver can refute of an answer over chips: that corners and points take the time they
//! say, and that told plans are the best on their chips.

use rayon::prelude::*;

use crate::compare::STOPPED;
use crate::compare::chips::Comparison;
use crate::compare::chips::under_assumptions;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Kept;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::search::boxes::Within;
use crate::search::boxes::trimmed;
use crate::search::chips::ByObjective;
use crate::search::chips::ChipBaseline;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipPoint;
use crate::search::chips::Nearly;
use crate::search::chips::NoWorse;
use crate::search::chips::WithBudget;
use crate::search::chips::best_of_samples;
use crate::search::chips::survey_robust;

use super::super::claims::FalseClaim;
use super::super::claims::equal;
use super::super::claims::require;
use super::super::deep::Unsolved;
use super::ground::ChipQuestion;
use super::judged::Claim;
use super::judged::JudgedChips;
use super::judged::judge;
use super::rows::Row;

/// Evaluates every corner and every point of the certificate once more, and every told chip; how many
/// boxes that were.
///
/// # Errors
/// The first claim that is false, or why there is no verdict.
pub fn solve(
    question: &ChipQuestion,
    outcome: &ChipOutcome,
    judged: &JudgedChips,
    observer: &dyn Observer,
) -> Result<usize, Unsolved> {
    let evaluator = ChipEvaluator::new(&question.setup, &())
        .map_err(|(model, reason)| Unsolved::Senseless(format!("{model}: {reason}")))?;
    let mut solved = 0;
    for claim in &judged.claims {
        let what = format!("solving the boxes of `{}` again", claim.proves);
        observer.begins(&what);
        let models = claim.models.clone();
        let problem = ByObjective { evaluator: &evaluator, models, judge: &claim.judge };
        let own: Vec<&Row> = judged.rows.iter().filter(|row| row.proves == claim.proves).collect();
        let found: Vec<Result<usize, Unsolved>> = own
            .par_iter()
            .enumerate()
            .map(|(at, row)| {
                if observer.stops() {
                    return Err(Unsolved::Stopped);
                }
                let objective = &problem;
                let again = match claim.near {
                    None if claim.front.is_some() => {
                        let owned = claim.front.map_or(u64::MAX, |most| most.0);
                        let most = [owned, claim.budget.tdp.0];
                        again(&Within { problem: objective, most }, claim, row)
                    }
                    None => again(&WithBudget { objective, budget: claim.budget }, claim, row),
                    Some((Some(figure), limit)) => {
                        again(&Nearly { objective, limit, figure }, claim, row)
                    }
                    Some((None, limit)) => again(&NoWorse { objective, limit }, claim, row),
                };
                observer.evaluated(&what, own.len() - at);
                Ok(usize::from(again?))
            })
            .collect();
        for one in found {
            solved += one?;
        }
    }
    told(&evaluator, outcome)?;
    compared(&evaluator, question, outcome, observer)?;
    drawn_and_turned(&evaluator, question, outcome, observer)?;
    Ok(solved)
}

/// Evaluates a box once more; whether it rests on an exact evaluation.
fn again(
    problem: &impl BoxProblem<N_CHIP_KNOBS>,
    claim: &Claim,
    row: &Row,
) -> Result<bool, FalseClaim> {
    let Some(region) = trimmed(problem, &row.region) else { return Ok(false) };
    let better = |value: Value| claim.worst.is_none_or(|worst| value < worst);
    let refute = |value: Value| {
        require(!better(value), row.claim("value"), "not better", format!("{}", value.first))
    };
    match row.why {
        Some(Why::Corner(_) | Why::CornerNothing) => {
            // What was nothing within a limit of before may be told by the last one to be beyond it.
            match problem.corner(&[region], claim.worst) {
                Corner::Reached(value) => {
                    let found = format!("perhaps {}", value.first);
                    Err(FalseClaim::new(row.claim("value"), "not better", found))
                }
                Corner::Beyond | Corner::Nothing => Ok(true),
            }
        }
        Some(Why::Evaluated(said)) => {
            let found = problem.evaluate(&region.lo, None);
            let Evaluation::Found(value, _) = found else {
                return Err(FalseClaim::new(row.claim("why"), "evaluated", "nothing fits"));
            };
            require(value == said, row.claim("value"), said.first, value.first)?;
            Ok(true)
        }
        Some(Why::Beaten(_) | Why::Nothing) => {
            let found = problem.evaluate(&region.lo, claim.worst);
            if let Evaluation::Found(value, _) = found
                && !claim.kept.contains(&region.lo)
            {
                refute(value)?;
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Baselines are those that the solvers find, and the best on their chips.
fn compared(
    evaluator: &ChipEvaluator,
    question: &ChipQuestion,
    outcome: &ChipOutcome,
    observer: &dyn Observer,
) -> Result<(), Unsolved> {
    let Some(winner) = outcome.winner.as_ref().filter(|_| !outcome.baselines.is_empty()) else {
        return Ok(());
    };
    let (judge, point) = (judge(question, &outcome.models), place(evaluator, winner));
    let models = 0..outcome.models.len();
    let found = models.filter_map(|model| evaluator.best(model, &point));
    let standings = found.map(|best| best.chosen.standing).collect();
    let again = Comparison { evaluator, judge: &judge, winner: point, standings };
    let again = again.baselines(&question.parts, observer);
    for (at, (said, found)) in outcome.baselines.iter().zip(&again).enumerate() {
        let reason = |one: &ChipBaseline| one.reason.clone();
        if reason(found).as_deref() == Some(STOPPED) {
            return Err(Unsolved::Stopped);
        }
        if reason(said).as_deref() == Some(STOPPED) {
            continue;
        }
        equal(&format!("baselines[{at}]"), said, found)?;
    }
    Ok(())
}

/// Chips are drawn and assumptions turned once more.
fn drawn_and_turned(
    evaluator: &ChipEvaluator,
    question: &ChipQuestion,
    outcome: &ChipOutcome,
    observer: &dyn Observer,
) -> Result<(), Unsolved> {
    let judge = judge(question, &outcome.models);
    let models: Vec<usize> = (0..outcome.models.len()).collect();
    let problem = ByObjective { evaluator, models, judge: &judge };
    if let Some(told) = &outcome.spotlight {
        let best = best_of_samples(&problem, told.samples, observer);
        let best = best.map_err(|_| Unsolved::Stopped)?;
        let said = told.entry.as_ref().map(|entry| place(evaluator, entry));
        require(best == said, "spotlight.entry", "a chip", "another was drawn that is better")?;
    }
    let (Some(told), Some(winner)) = (&outcome.robust, &outcome.winner) else { return Ok(()) };
    let at = place(evaluator, winner);
    let Evaluation::Found(value, found) = problem.evaluate(&at, None) else { return Ok(()) };
    let kept = Kept { point: at, value, found };
    let again = survey_robust(evaluator, (&judge, &kept), observer);
    let again = under_assumptions((&judge, at), &again.map_err(|_| Unsolved::Stopped)?);
    for (at, (said, found)) in told.iter().zip(&again).enumerate() {
        equal(&format!("robust[{at}]"), said, found)?;
    }
    Ok(())
}

/// Where a told chip stands, whose knobs were judged before.
fn place(evaluator: &ChipEvaluator, entry: &ChipEntry) -> ChipPoint {
    let grid = &evaluator.setup.grid;
    std::array::from_fn(|at| {
        let value = entry.chip.knobs.get(CHIP_KNOBS[at].name);
        let place = value.and_then(|value| grid.values(at).binary_search(value).ok());
        place.and_then(|place| u16::try_from(place).ok()).unwrap_or(0)
    })
}

/// Told plans are the best on their chips.
fn told(evaluator: &ChipEvaluator, outcome: &ChipOutcome) -> Result<(), Unsolved> {
    let near = outcome.near_winners.iter().map(|near| &near.entry);
    let why = outcome.why.iter().flat_map(|why| {
        let near = why.near_winners.iter().map(|near| &near.entry);
        let budgets = why.budgets.iter().filter_map(|under| under.entry.as_ref());
        near.chain(budgets).chain(why.objectives.iter().map(|other| &other.entry))
    });
    let front = outcome.front.iter().flat_map(|front| &front.points).map(|one| &one.entry);
    let told = outcome.winner.iter().chain(&outcome.top).chain(near).chain(why).chain(front);
    for entry in told {
        let point = place(evaluator, entry);
        for (model, result) in entry.results.iter().enumerate() {
            let best = evaluator.best(model, &point);
            let found = best.map_or(0.0, |best| best.chosen.standing.time.seconds());
            let said = result.time_per_batch_s;
            let path = format!("results[{model}].time_per_batch_s of a told chip");
            require((said - found).abs() <= found * 1e-12, path, said, found)?;
        }
    }
    Ok(())
}
