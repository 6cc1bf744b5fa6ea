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
use super::KeptChip;
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
    let whole = ChipRegion::whole(setup.grid.lens());
    let stopping = Stopping { observer, evaluator };
    let mut alone_walks = Vec::new();
    if everything.len() > 1 {
        for &model in &everything {
            let alone = alone_judge(setup, model);
            let problem = ByObjective { evaluator, models: vec![model], judge: &alone };
            let name = &setup.request.models[model].name;
            alone_walks.push(walk(&problem, whole, (1, Vec::new()), name, &stopping));
        }
    }
    let judge = judge_of(setup, &own_bests(&alone_walks));
    let names: Vec<&str> = setup.request.models.iter().map(|model| model.name.as_str()).collect();
    let problem = ByObjective { evaluator, models: everything, judge: &judge };
    let top = setup.request.top;
    let walked = walk(&problem, whole, (top, Vec::new()), &names.join(", "), &stopping);
    conclude(evaluator, (alone_walks, walked), None, observer)
}

/// What is known at the end of walks over the whole grid: of each model alone, where there are several, and by the
/// objective. Chips nearly as good are searched where they are not given.
pub fn conclude(
    evaluator: &ChipEvaluator,
    (alone, walked): (Vec<ChipWalk>, ChipWalk),
    near: Option<Vec<(NearFigure, ChipWalk)>>,
    observer: &dyn Observer,
) -> ChipSurvey {
    let setup = evaluator.setup;
    let own = own_bests(&alone);
    let judge = judge_of(setup, &own);
    let mut complete = walked.complete() && alone.iter().all(ChipWalk::complete);
    let of_first = |kept: &KeptChip| kept.found.first().map(|chosen| chosen.standing);
    let own_best = if own.is_empty() {
        vec![walked.kept.first().and_then(of_first)]
    } else {
        own.iter().map(|own| own.as_ref().and_then(of_first)).collect()
    };
    let near = match (near, walked.kept.first()) {
        (Some(near), _) => near,
        (None, Some(best)) if complete => {
            let models = (0..setup.models.len()).collect();
            let problem = ByObjective { evaluator, models, judge: &judge };
            nearly(&problem, best, &Stopping { observer, evaluator })
        }
        _ => Vec::new(),
    };
    complete &= near.iter().all(|(_, walk)| walk.complete());
    let evaluated = evaluator.n_evaluated();
    ChipSurvey { judge, alone, walk: walked, near, own_best, complete, evaluated }
}

/// The best of each model alone.
fn own_bests(alone: &[ChipWalk]) -> Vec<Option<KeptChip>> {
    alone.iter().map(|walk| walk.kept.first().cloned()).collect()
}

/// How chips are compared for one model alone.
pub fn alone_judge(setup: &ChipSetup, model: usize) -> Judge {
    let judge = judge(setup);
    Judge { stakes: vec![judge.stakes[model]], ..judge }
}

/// How all models are compared, where each has its own best; of one model none is needed.
pub fn judge_of(setup: &ChipSetup, own: &[Option<KeptChip>]) -> Judge {
    let mut judge = judge(setup);
    for (stake, own) in judge.stakes.iter_mut().zip(own) {
        stake.own_best = own.as_ref().map_or(1.0, |kept| kept.value.first as f64);
    }
    judge
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
pub(super) struct Stopping<'a> {
    pub observer: &'a dyn Observer,
    pub evaluator: &'a ChipEvaluator<'a>,
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
