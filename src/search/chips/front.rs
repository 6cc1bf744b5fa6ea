//! The front of chips: how fast one trains, what it costs to own, and what it draws by design.

use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::FrontProblem;
use crate::search::boxes::FrontWalk;
use crate::search::boxes::Kept;
use crate::search::boxes::Resolution;
use crate::search::boxes::Value;
use crate::search::boxes::front;
use crate::strategy::Chosen;

use super::ChipPoint;
use super::ChipRegion;
use super::KeptChip;
use super::corners::Greatest;
use super::evaluator::ChipEvaluator;
use super::objective::ByObjective;
use super::setup::ChipSetup;
use super::survey::ChipSurvey;

/// Where the walk over the front of chips ended.
pub type ChipFront = FrontWalk<N_CHIP_KNOBS, Vec<Chosen>>;

/// What a chip costs to own, in cents, and what it draws by design, in milliwatts; `None` where it cannot be
/// made.
pub fn taken(setup: &ChipSetup, point: &ChipPoint) -> Option<[u64; 2]> {
    let knobs = setup.knobs(point);
    let figures = setup.figures(&knobs)?;
    Some([setup.ownership(&knobs, &figures).total().0, figures.tdp.total().0])
}

impl FrontProblem<N_CHIP_KNOBS> for ByObjective<'_> {
    fn takes(&self, point: &ChipPoint) -> Option<[u64; 2]> {
        taken(self.evaluator.setup, point)
    }

    fn corner_where(
        &self,
        boxes: &[ChipRegion],
        limit: Option<Value>,
        fits: &dyn Fn(&ChipPoint) -> bool,
    ) -> Corner {
        let Some(least) = self.least_of(boxes) else { return Corner::Nothing };
        let greatest = Greatest::of(self.evaluator.setup, boxes, fits);
        self.corner_taking((boxes, &greatest), least, limit)
    }

    fn guess_where(
        &self,
        boxes: &[ChipRegion],
        (like, worst): (&KeptChip, Value),
        fits: &dyn Fn(&ChipPoint) -> bool,
    ) -> f64 {
        let Some(least) = self.least_of(boxes) else { return f64::INFINITY };
        let greatest = Greatest::of(self.evaluator.setup, boxes, fits);
        self.guess_taking((boxes, &greatest), least, like) / (worst.first as f64).max(1.0)
    }
}

/// By how many thousandths steps grow to which figures are rounded, unless something else is asked for.
pub const RESOLUTION_PER_MILLE: u64 = 200;

/// How figures of a request are rounded.
pub fn resolution(setup: &ChipSetup) -> Resolution {
    Resolution::per_mille(setup.request.resolution_per_mille.unwrap_or(RESOLUTION_PER_MILLE))
}

/// How chips of a front are compared: by the time of a batch.
pub fn front_judge(judge: &Judge) -> Judge {
    Judge { objective: Objective::Throughput, ..judge.clone() }
}

/// What rows of certificates are called that prove a gap of a front to be empty.
pub fn gap_word(gap: usize) -> String {
    format!("front gap {gap}")
}

/// Searches the front of the first model, from what was found before.
pub fn survey_front(
    evaluator: &ChipEvaluator,
    survey: &ChipSurvey,
    observer: &dyn Observer,
) -> ChipFront {
    let judge = front_judge(&survey.judge);
    let problem = ByObjective { evaluator, models: vec![0], judge: &judge };
    let near = survey.near.iter().flat_map(|(_, walk)| &walk.kept);
    let known = survey.walk.kept.iter().chain(near).filter_map(|kept| {
        let point = kept.point;
        match problem.evaluate(&point, None) {
            Evaluation::Found(value, found) => Some(Kept { point, value, found }),
            Evaluation::Beyond | Evaluation::Nothing => None,
        }
    });
    front(&problem, &resolution(evaluator.setup), known.collect(), ("the front", observer))
}
