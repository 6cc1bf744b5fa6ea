//! The search over chips itself: each model alone where there are several, then all together, then
//! chips nearly as good that take less.

use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Judge;
use crate::search::Observer;
use crate::search::Stake;
use crate::search::boxes::BoxWalk;
use crate::search::boxes::Kept;
use crate::search::boxes::walk;
use crate::strategy::Chosen;
use crate::strategy::Standing;

use super::ChipRegion;
use super::evaluator::ChipEvaluator;
use super::near::NearFigure;
use super::near::Nearly;
use super::objective::ByObjective;
use super::setup::ChipSetup;

/// Chips that are worse than the best by at most so much are nearly as good.
pub const NEARLY_PER_MILLE: u128 = 20;

/// A walk over boxes of chips.
pub type ChipWalk = BoxWalk<N_CHIP_KNOBS, Vec<Chosen>>;

/// What is known at the end of a search.
#[derive(Clone, Debug)]
pub struct ChipSurvey {
    /// How chips were compared.
    pub judge: Judge,
    /// By model, each alone, where there are several.
    pub alone: Vec<ChipWalk>,
    /// By the objective.
    pub walk: ChipWalk,
    /// By what nearly as good ones take, where the walk was complete and something was found.
    pub near: Vec<(NearFigure, ChipWalk)>,
    /// Each model's own best throughput; `None` where it fits nowhere, or the search was stopped.
    pub own_best: Vec<Option<Standing>>,
    /// Whether nothing was stopped early.
    pub complete: bool,
    /// Pairs of a chip and a model that were evaluated.
    pub evaluated: usize,
}

/// Searches everything that the request asks for.
pub fn survey(evaluator: &ChipEvaluator, observer: &dyn Observer) -> ChipSurvey {
    let setup = evaluator.setup;
    let everything: Vec<usize> = (0..setup.models.len()).collect();
    let mut judge = judge(setup);
    let whole = ChipRegion::whole(setup.grid.lens());
    let stopping = Stopping { observer, evaluator };
    let (mut own_best, mut alone_walks) = (Vec::new(), Vec::new());
    let mut complete = true;
    if everything.len() > 1 {
        for &model in &everything {
            let alone = Judge { stakes: vec![judge.stakes[model]], ..judge.clone() };
            let problem = ByObjective { evaluator, models: vec![model], judge: &alone };
            let name = &setup.request.models[model].name;
            let found = walk(&problem, whole, (1, Vec::new()), name, &stopping);
            complete &= found.complete();
            let best = found.kept.first();
            let cost = best.map(|kept| kept.value.first as f64);
            judge.stakes[model].own_best = cost.unwrap_or(1.0);
            own_best.push(best.map(|kept| kept.found[0].standing));
            alone_walks.push(found);
        }
    }
    let names: Vec<&str> = setup.request.models.iter().map(|model| model.name.as_str()).collect();
    let problem = ByObjective { evaluator, models: everything, judge: &judge };
    let top = setup.request.top;
    let walked = walk(&problem, whole, (top, Vec::new()), &names.join(", "), &stopping);
    complete &= walked.complete();
    if own_best.is_empty() {
        own_best.push(walked.kept.first().map(|kept| kept.found[0].standing));
    }
    let near = match walked.kept.first() {
        Some(best) if complete => nearly(&problem, best, &stopping),
        _ => Vec::new(),
    };
    complete &= near.iter().all(|(_, walk)| walk.complete());
    let evaluated = evaluator.n_evaluated();
    ChipSurvey { judge, alone: alone_walks, walk: walked, near, own_best, complete, evaluated }
}

/// The chips that take least of each figure among those nearly as good as the best.
fn nearly(
    problem: &ByObjective,
    best: &Kept<N_CHIP_KNOBS, Vec<Chosen>>,
    observer: &dyn Observer,
) -> Vec<(NearFigure, ChipWalk)> {
    let limit = nearly_as_good(best.value.first);
    let whole = ChipRegion::whole(problem.evaluator.setup.grid.lens());
    let each = NearFigure::ALL.into_iter().map(|figure| {
        let near = Nearly { objective: problem, limit, figure };
        let known = match near.evaluated(&best.point) {
            Some(value) => vec![Kept { value, ..best.clone() }],
            None => Vec::new(),
        };
        let what = format!("the {} chip that is nearly as good", figure.word());
        (figure, walk(&near, whole, (1, known), &what, observer))
    });
    each.collect()
}

/// The worst value that is nearly as good as the best.
pub fn nearly_as_good(best: u128) -> u128 {
    nearly_as_good_as(best, NEARLY_PER_MILLE)
}

/// The worst value that is worse than the best by at most so many thousandths.
pub fn nearly_as_good_as(best: u128, per_mille: u128) -> u128 {
    best.saturating_add(best / 1000 * per_mille)
}

/// How all models are compared; own bests are not known yet.
pub fn judge(setup: &ChipSetup) -> Judge {
    let request = &setup.request;
    let sequences = request.global_batch as f64;
    let stakes = request.models.iter().map(|model| Stake {
        weight: model.weight,
        sequences,
        tokens: sequences * model.sequence as f64,
        own_best: 1.0,
    });
    Judge {
        objective: request.objective,
        combine: request.combine,
        stakes: stakes.collect(),
        devices_per_second: setup.devices_per_second(),
    }
}

/// Stops when the observer says so, and when facts can no longer be kept.
struct Stopping<'a> {
    observer: &'a dyn Observer,
    evaluator: &'a ChipEvaluator<'a>,
}

impl Observer for Stopping<'_> {
    fn begins(&self, what: &str) {
        self.observer.begins(what);
    }
    fn evaluated(&self, what: &str, left: usize) {
        self.observer.evaluated(what, left);
    }
    fn stops(&self) -> bool {
        self.evaluator.fails() || self.observer.stops()
    }
}
