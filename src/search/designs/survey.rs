//! The search itself: boxes of designs walked for every size of off-chip memory, for each model alone where
//! there are several, and then for all together.

use super::problem::AtHbm;
use super::problem::DesignPoint;
use super::problem::DesignRegion;
use super::problem::Found;
use crate::hardware::Candidate;
use crate::hardware::DesignGrid;
use crate::hardware::N_DESIGN_KNOBS;
use crate::search::Evaluator;
use crate::search::Memory;
use crate::search::Setup;
use crate::search::boxes::BoxWalk;
use crate::search::boxes::Why;
use crate::search::boxes::walk;
use crate::search::objective::Judge;
use crate::search::survey::Stopping;
use crate::search::survey::Survey;
use crate::search::survey::Unlisted;
use crate::search::survey::best_area;
use crate::search::survey::best_of;
use crate::search::survey::judge;
use crate::search::walk::Observer;
use crate::search::walk::Status;
use crate::search::walk::Walk;
use crate::strategy::Chosen;

/// Where a walk over boxes of designs ended.
pub type DesignWalk = BoxWalk<N_DESIGN_KNOBS, ()>;

/// The boxes of one walk, and what they prove.
#[derive(Clone, Debug)]
pub struct DesignBoxes {
    /// The model, where one is searched alone; `None` for all together.
    pub alone: Option<usize>,
    /// The place of the size of off-chip memory in the request.
    pub hbm: usize,
    /// The boxes.
    pub walk: DesignWalk,
}

/// What is known at the end of a search over boxes.
#[derive(Clone, Debug)]
pub struct BoxedSurvey {
    /// The designs that were evaluated with any size of memory, in the published order.
    pub candidates: Vec<Candidate>,
    /// What is known of these, and of the others in numbers.
    pub survey: Survey,
    /// All boxes: those of all models together first.
    pub boxes: Vec<DesignBoxes>,
}

/// Searches everything that a request asks for which does not list all designs.
pub fn survey_boxes(setup: &Setup, memory: &dyn Memory, observer: &dyn Observer) -> BoxedSurvey {
    let evaluator = Evaluator::new(setup);
    let grid = setup.grid();
    let search = Search { evaluator: &evaluator, grid: &grid, memory, observer };
    let mut judge = judge(setup);
    let mut own_best = Vec::new();
    let mut others = Vec::new();
    let mut complete = true;
    if judge.stakes.len() > 1 {
        for model in 0..judge.stakes.len() {
            let alone = Judge { stakes: vec![judge.stakes[model]], ..judge.clone() };
            let walked = search.walk_all(&alone, &[model], 1);
            let (_, survey) = search.listed((&alone, &[model]), &walked);
            complete &= survey.complete;
            let best = best_of(&survey.walks).map(|(_, chosen)| chosen[0].standing);
            let area = best_area(&survey.walks);
            let cost = best.map(|standing| Judge::cost(judge.objective, standing, area));
            judge.stakes[model].own_best = cost.unwrap_or(1.0);
            own_best.push(best);
            others.extend(walked.into_iter().map(|of| of.boxes(Some(model))));
        }
    }
    let models: Vec<usize> = (0..judge.stakes.len()).collect();
    let walked = search.walk_all(&judge, &models, setup.request.top);
    let (candidates, mut survey) = search.listed((&judge, &models), &walked);
    survey.complete &= complete;
    if own_best.is_empty() {
        own_best.push(best_of(&survey.walks).map(|(_, chosen)| chosen[0].standing));
    }
    survey.own_best = own_best;
    let boxes = walked.into_iter().map(|of| of.boxes(None)).chain(others).collect();
    BoxedSurvey { candidates, survey, boxes }
}

/// The walks over a grid, with who remembers and looks on.
struct Search<'a> {
    evaluator: &'a Evaluator<'a>,
    grid: &'a DesignGrid,
    memory: &'a dyn Memory,
    observer: &'a dyn Observer,
}

/// What one size of memory has shown.
struct Walked {
    hbm: usize,
    found: Found,
    walk: DesignWalk,
}

impl Walked {
    fn boxes(self, alone: Option<usize>) -> DesignBoxes {
        DesignBoxes { alone, hbm: self.hbm, walk: self.walk }
    }
}

impl Search<'_> {
    /// Some models, by size of off-chip memory.
    fn walk_all(&self, judge: &Judge, models: &[usize], top: usize) -> Vec<Walked> {
        let setup = self.evaluator.setup;
        let names: Vec<&str> =
            models.iter().map(|&model| setup.trainings[model].name.as_str()).collect();
        let stopping = Stopping { observer: self.observer, memory: self.memory };
        let whole = DesignRegion::whole(self.grid.lens());
        let sizes = setup.request.space.hbm_gib.iter().enumerate();
        sizes
            .map(|(hbm, gib)| {
                let what = format!("{} with {gib} GiB", names.join(", "));
                let problem = self.problem(judge, models, hbm);
                let walk = walk(&problem, whole, (top, Vec::new()), &what, &stopping);
                Walked { hbm, found: problem.into_found(), walk }
            })
            .collect()
    }

    fn problem<'b>(&'b self, judge: &'b Judge, models: &[usize], hbm: usize) -> AtHbm<'b> {
        AtHbm::new((self.evaluator, self.grid), self.memory, (judge, models.to_vec()), hbm)
    }

    /// The designs that were evaluated with any size of memory, and what became of each; of the others how
    /// many became what.
    fn listed(
        &self,
        (judge, models): (&Judge, &[usize]),
        walked: &[Walked],
    ) -> (Vec<Candidate>, Survey) {
        let mut points: Vec<DesignPoint> =
            walked.iter().flat_map(|of| of.found.keys().copied()).collect();
        points.sort_unstable_by_key(|point| self.grid.published_place(point));
        points.dedup();
        let walks = walked.iter().map(|of| {
            let problem = self.problem(judge, models, of.hbm);
            let bounds = points.iter().map(|&at| problem.least(&DesignRegion::point(at)));
            Walk {
                bounds: bounds.collect(),
                statuses: points.iter().map(|point| of.status(point)).collect(),
                complete: of.walk.complete(),
            }
        });
        let physics = &self.evaluator.setup.physics;
        let is_unlisted = |point: &DesignPoint| {
            let before = self.grid.published_place(point);
            let place = points.binary_search_by_key(&before, |at| self.grid.published_place(at));
            place.is_err() && self.grid.is_design(point, physics)
        };
        let survey = Survey {
            judge: judge.clone(),
            walks: walks.collect(),
            own_best: Vec::new(),
            complete: walked.iter().all(|of| of.walk.complete()),
            unlisted: walked.iter().map(|of| of.unlisted(&is_unlisted)).collect(),
        };
        (points.iter().map(|point| self.grid.candidate(point)).collect(), survey)
    }
}

impl Walked {
    fn status(&self, point: &DesignPoint) -> Status<Vec<Chosen>> {
        if let Some((merit, chosen)) = self.found.get(point) {
            return Status::Evaluated(*merit, chosen.clone());
        }
        let closed = self.walk.closed.iter().find(|closed| closed.region.contains(point));
        match closed.map(|closed| closed.why) {
            None => Status::Open,
            Some(Why::Bound(_)) => Status::Pruned,
            Some(Why::Beaten(_)) => Status::Beaten,
            Some(_) => Status::Infeasible,
        }
    }

    /// What became of designs of which no row is kept.
    fn unlisted(&self, is_unlisted: &dyn Fn(&DesignPoint) -> bool) -> Unlisted {
        let mut all = Unlisted::default();
        let count = |region: &DesignRegion| region.points().filter(|at| is_unlisted(at)).count();
        for closed in &self.walk.closed {
            match closed.why {
                // None of them is a design.
                Why::OverBudget => {}
                Why::Bound(value) => {
                    all.pruned += count(&closed.region);
                    all.least(value.first);
                }
                Why::Beaten(_) => all.beaten += count(&closed.region),
                _ => all.infeasible += count(&closed.region),
            }
        }
        for (region, least) in &self.walk.open {
            all.open += count(region);
            all.least(least.map_or(0, |value| value.first));
        }
        all
    }
}
