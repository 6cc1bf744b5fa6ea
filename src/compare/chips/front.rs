//! From the front that was found to what is told of it.

use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipFront;
use crate::search::chips::ChipSurvey;
use crate::search::chips::FrontEntry;
use crate::search::chips::FrontGap;
use crate::search::chips::FrontOutcome;
use crate::search::chips::RESOLUTION_PER_MILLE;
use crate::search::chips::sentences;

use super::entry;

/// The front in full; `None` where its search was ended early.
pub fn told_front(
    (evaluator, survey): (&ChipEvaluator, &ChipSurvey),
    front: &ChipFront,
) -> Option<FrontOutcome> {
    if !front.complete {
        return None;
    }
    let points = front.points.iter().filter_map(|known| {
        let [ownership_cents, tdp_mw] = known.figures.takes;
        Some(FrontEntry {
            time_per_batch_ps: known.figures.time,
            ownership_cents,
            tdp_mw,
            entry: entry(evaluator, &survey.judge, &known.point)?.0,
        })
    });
    let points: Vec<FrontEntry> = points.collect();
    let gaps = front.gaps.iter().map(|gap| {
        let limit = |figure: u64| (figure != u64::MAX).then_some(figure);
        FrontGap {
            ownership_cents: limit(gap.most[0]),
            tdp_mw: limit(gap.most[1]),
            time_per_batch_ps: limit(gap.time),
            certificate_entries: gap.walk.closed.len(),
        }
    });
    let gaps: Vec<FrontGap> = gaps.collect();
    let boxes = gaps.iter().map(|gap| gap.certificate_entries).sum();
    let per_mille = evaluator.setup.request.resolution_per_mille.unwrap_or(RESOLUTION_PER_MILLE);
    Some(FrontOutcome {
        resolution_per_mille: per_mille,
        statement: sentences::front(per_mille, points.len(), gaps.len(), boxes),
        points,
        gaps,
    })
}
