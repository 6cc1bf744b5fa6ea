//! The chips of an answer whose value is known: those that are told, and those that its certificate holds as
//! evaluated one by one.

use std::collections::BTreeMap;

use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipKnobs;
use crate::report::boxes_csv::OBJECTIVE;
use crate::search::Certainty;
use crate::search::Judge;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipPoint;
use crate::search::chips::NearFigure;
use crate::search::chips::counted_word;
use crate::search::chips::judge;
use crate::strategy::Standing;
use crate::units::Energy;
use crate::units::Time;

use super::SavedChips;

/// A chip that was evaluated, and what it takes.
pub struct Known {
    /// Its knobs.
    pub knobs: ChipKnobs,
    /// By the objective, as certificates count; less is better.
    pub cost: u128,
    /// Its value in the objective's unit.
    pub value: f64,
    /// Its die.
    pub mm2: f64,
    /// Its design power.
    pub watts: f64,
    /// To make one.
    pub dollars: f64,
}

/// How chips are compared, each model's own best as the answer tells it.
pub fn judged(saved: &SavedChips) -> Judge {
    let mut judge = judge(saved.setup);
    for (stake, model) in judge.stakes.iter_mut().zip(&saved.outcome.models) {
        stake.own_best = model.own_best_cost;
    }
    judge
}

/// All of them that keep within the budget, the best first.
pub fn known(saved: &SavedChips) -> Vec<Known> {
    let (setup, judge) = (saved.setup, judged(saved));
    let mut costs = of_rows(saved);
    for entry in told(saved.outcome) {
        if let Some((point, cost)) = of_entry(saved, &judge, entry) {
            costs.insert(point, cost);
        }
    }
    let grid = &setup.grid;
    let allowed = |point: &ChipPoint| {
        grid.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    };
    let mut all: Vec<Known> = costs
        .into_iter()
        .filter(|(point, _)| allowed(point))
        .filter_map(|(point, cost)| {
            let knobs = setup.knobs(&point);
            let figures = setup.figures(&knobs)?;
            Some(Known {
                cost,
                value: judge.figure(cost),
                mm2: figures.die.total().square_millimetres(),
                watts: figures.tdp.total().watts(),
                dollars: figures.cost.total().dollars(),
                knobs,
            })
        })
        .collect();
    all.sort_by_key(|known| (known.cost, known.knobs));
    all
}

/// The column of the first knob of a box.
const KNOBS: usize = 5;

/// The rows of evaluated chips, whose value is that of the objective or stands beside another figure.
fn of_rows(saved: &SavedChips) -> BTreeMap<ChipPoint, u128> {
    let near = |proves: &str| {
        NearFigure::ALL.iter().any(|figure| {
            proves == figure.word() || proves.starts_with(&format!("{} within", figure.word()))
        })
    };
    let counted = counted_word();
    let each = saved.boxes.evaluated.iter().filter_map(|row| {
        let cell = match row[0].as_str() {
            proves if proves == OBJECTIVE || proves == counted => row.get(2),
            proves if near(proves) => row.get(3),
            _ => None,
        };
        let value = |knob: usize| row.get(KNOBS + 2 * knob)?.parse::<u64>().ok();
        Some((place(saved, value)?, cell?.parse().ok()?))
    });
    each.collect()
}

/// The chips of the space that are told with their best plans.
fn told(outcome: &ChipOutcome) -> Vec<&ChipEntry> {
    let mut all: Vec<&ChipEntry> = outcome.winner.iter().chain(&outcome.top).collect();
    all.extend(outcome.near_winners.iter().map(|near| &near.entry));
    // The third baseline has the plan of experts, not the best one.
    let alone = outcome.baselines.iter().take(2);
    all.extend(alone.filter_map(|baseline| baseline.entry.as_ref()));
    if let Some(why) = &outcome.why {
        all.extend(why.near_winners.iter().map(|near| &near.entry));
        all.extend(why.budgets.iter().filter_map(|under| under.entry.as_ref()));
        all.extend(why.objectives.iter().map(|other| &other.entry));
    }
    all.extend(outcome.front.iter().flat_map(|front| &front.points).map(|one| &one.entry));
    all.extend(outcome.spotlight.iter().filter_map(|drawn| drawn.entry.as_ref()));
    all
}

fn of_entry(saved: &SavedChips, judge: &Judge, entry: &ChipEntry) -> Option<(ChipPoint, u128)> {
    let point = place(saved, |knob| entry.chip.knobs.get(CHIP_KNOBS[knob].name).copied())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times and energies are positive, and were whole before they were told"
    )]
    let standings: Vec<Standing> = entry
        .results
        .iter()
        .map(|result| Standing {
            time: Time((result.time_per_batch_s * 1e12).round() as u64),
            energy: Energy((result.energy_per_batch_j * 1e15).round() as u128),
        })
        .collect();
    let setup = saved.setup;
    let taken = setup.footprint_for(judge.objective, &setup.knobs(&point))?;
    Some((point, judge.merit(&standings, taken, Certainty::Fact).value))
}

/// Where the chip stands whose knobs have such values.
fn place(saved: &SavedChips, value: impl Fn(usize) -> Option<u64>) -> Option<ChipPoint> {
    let mut point = [0; CHIP_KNOBS.len()];
    for (knob, place) in point.iter_mut().enumerate() {
        let at = saved.setup.grid.values(knob).binary_search(&value(knob)?).ok()?;
        *place = u16::try_from(at).ok()?;
    }
    Some(point)
}

#[cfg(test)]
mod tests {
    use super::KNOBS;
    use crate::hardware::chip::CHIP_KNOBS;
    use crate::report::boxes_csv::columns;

    #[test]
    fn knobs_stand_where_the_heading_says() {
        let columns = columns();
        assert_eq!(columns[KNOBS], format!("{}_from", CHIP_KNOBS[0].name));
        assert_eq!(columns.len(), KNOBS + 2 * CHIP_KNOBS.len());
    }
}
