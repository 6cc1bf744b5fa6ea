//! The winner beside chips drawn at random, and under other assumptions.

use crate::hardware::chip::CHIP_KNOBS;
use crate::search::Judge;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipSurvey;
use crate::search::chips::Robust;
use crate::search::chips::Sampled;
use crate::search::chips::UnderAssumption;
use crate::strategy::Standing;

use super::Beside;
use super::Takes;
use super::entry;
use super::winner_is;

/// The best of so many chips drawn at random, beside the winner.
pub fn spotlight(
    (evaluator, survey): (&ChipEvaluator, &ChipSurvey),
    samples: u64,
    best: Option<ChipPoint>,
) -> Sampled {
    let found = best.and_then(|point| Some((point, entry(evaluator, &survey.judge, &point)?)));
    let ours = survey.walk.kept.first();
    let ratio = found.as_ref().zip(ours).and_then(|((point, (_, standings)), ours)| {
        let winner: Vec<Standing> = ours.found.iter().map(|chosen| chosen.standing).collect();
        let takes = |point| Takes::of_chip(evaluator.setup, point);
        let ours = Beside { standings: &winner, takes: takes(&ours.point)? };
        let theirs = Beside { standings, takes: takes(point)? };
        winner_is(&survey.judge, &ours, &theirs).by_objective
    });
    Sampled { samples, entry: found.map(|(_, (entry, _))| entry), winner_is: ratio }
}

/// What is told of the winners under other assumptions.
pub fn under_assumptions(
    (judged, winner): (&Judge, ChipPoint),
    found: &[Robust],
) -> Vec<UnderAssumption> {
    let each = found.iter().map(|Robust { turned, best, winner: ours }| {
        let judge =
            Judge { devices_per_second: turned.setup.devices_per_second(), ..judged.clone() };
        let knobs = best.map(|(point, _)| {
            let chip = turned.setup.knobs(&point);
            CHIP_KNOBS.iter().map(|knob| (knob.name.to_owned(), (knob.get)(&chip))).collect()
        });
        UnderAssumption {
            constant: turned.name.clone(),
            unit: turned.unit.to_owned(),
            percent: turned.percent,
            from: turned.values[0],
            to: turned.values[1],
            knobs,
            value: best.map(|(_, value)| judge.figure(value.first)),
            same: best.map(|(point, _)| point) == Some(winner),
            ratio: best.zip(*ours).map(|((_, best), ours)| ours.first as f64 / best.first as f64),
        }
    });
    each.collect()
}
