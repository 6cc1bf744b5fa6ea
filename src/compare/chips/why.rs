//! From what was surveyed around the best chip to what is told of it.

use crate::search::Certainty;
use crate::search::Judge;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::trimmed;
use crate::search::chips::ByObjective;
use crate::search::chips::ByObjectiveOther;
use crate::search::chips::COUNTED_PER_MILLE;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipSurvey;
use crate::search::chips::Counted;
use crate::search::chips::NearWinner;
use crate::search::chips::UnderBudget;
use crate::search::chips::WhyItWins;
use crate::search::chips::WhySurvey;
use crate::search::chips::left_out;
use crate::strategy::Standing;

use super::entry;

/// How the winner changes with what is asked; `None` where that was ended early.
pub fn why_it_wins(
    (evaluator, survey): (&ChipEvaluator, &ChipSurvey),
    why: &WhySurvey,
) -> Option<WhyItWins> {
    let best = survey.walk.kept.first().filter(|_| why.complete)?;
    let setup = evaluator.setup;
    let told = |judge: &Judge, point: &ChipPoint| Some(entry(evaluator, judge, point)?.0);
    let near = why.near.iter().filter_map(|(per_mille, least, walk)| {
        Some(NearWinner {
            least: *least,
            within: *per_mille as f64 / 1000.0,
            entry: told(&survey.judge, &walk.kept.first()?.point)?,
            certificate_entries: walk.closed.len(),
        })
    });
    let budgets = why.budgets.iter().map(|(step, walk)| {
        let kept = walk.as_ref().map_or(Some(best), |walk| walk.kept.first());
        let other = kept.filter(|kept| kept.point != best.point);
        UnderBudget {
            limited: step.limited,
            percent: step.percent,
            limit: step.limit(),
            ratio: kept.map(|kept| best.value.first as f64 / kept.value.first as f64),
            entry: other.and_then(|kept| told(&survey.judge, &kept.point)),
            certificate_entries: walk.as_ref().map_or(0, |walk| walk.closed.len()),
        }
    });
    let standings: Vec<Standing> = best.found.iter().map(|chosen| chosen.standing).collect();
    let objectives = why.objectives.iter().filter_map(|(judge, walk)| {
        let taken = setup.footprint_for(judge.objective, &setup.knobs(&best.point))?;
        let worth = judge.merit(&standings, taken, Certainty::Fact).value;
        Some(ByObjectiveOther {
            objective: judge.objective,
            entry: told(judge, &walk.kept.first()?.point)?,
            winner_value: judge.figure(worth),
            certificate_entries: walk.closed.len(),
        })
    });
    let models = (0..setup.models.len()).collect();
    let problem = ByObjective { evaluator, models, judge: &survey.judge };
    Some(WhyItWins {
        near_winners: near.collect(),
        budgets: budgets.collect(),
        objectives: objectives.collect(),
        left_out: left_out(survey.judge.objective, setup.models.len()),
        counted: counted(&problem, why),
    })
}

/// How many chips are nearly as good: those that were met, and at most all that may fit of boxes that
/// were not looked into.
fn counted(problem: &impl BoxProblem<10>, why: &WhySurvey) -> Counted {
    let at_least = why.counted.closed.iter().filter(|closed| closed.why.word().0 == "evaluated");
    let at_least = at_least.count() as u64;
    let open = why.counted.open.iter().filter_map(|(region, _)| trimmed(problem, region));
    let open: u128 = open.map(|region| region.volume()).sum();
    Counted {
        within: COUNTED_PER_MILLE as f64 / 1000.0,
        at_least,
        at_most: at_least.saturating_add(u64::try_from(open).unwrap_or(u64::MAX)),
        certificate_entries: why.counted.closed.len(),
    }
}
