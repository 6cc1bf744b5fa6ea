//! How the best chip changes with what is asked: with more or less of each budget, by other objectives,
//! and where chips may be a little worse. Every answer is found by the same walk and proved by its own
//! boxes; times that are known are not found again.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde::Serialize;

use crate::hardware::chip::Budget;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::hardware::technology::Technology;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Kept;
use crate::search::boxes::Value;
use crate::search::boxes::walk;
use crate::strategy::Chosen;
use crate::units::Area;
use crate::units::Money;
use crate::units::Power;

use super::ChipPoint;
use super::ChipRegion;
use super::KeptChip;
use super::corners::Greatest;
use super::evaluator::ChipEvaluator;
use super::near::NearFigure;
use super::near::Nearly;
use super::objective::ByObjective;
use super::outcome::LeftOut;
use super::passed_on::passed_on;
use super::survey::ChipSurvey;
use super::survey::ChipWalk;
use super::survey::nearly_as_good_as;

/// By how many thousandths chips may be worse, besides the usual twenty.
pub const OTHER_NEAR_PER_MILLE: [u128; 2] = [10, 50];

/// Chips are counted that are worse by at most so many thousandths.
pub const COUNTED_PER_MILLE: u128 = 10;

/// Looks at boxes before counting ends with an interval.
const MOST_LOOKS: usize = 64;

/// Percents by which budgets are changed.
pub const BUDGET_STEPS: [i64; 6] = [-20, -10, -5, 5, 10, 20];

/// Something that a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// The die.
    Area,
    /// Thermal design power.
    Tdp,
    /// What one chip costs to make.
    Price,
}

impl Limited {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Area, Self::Tdp, Self::Price];

    /// The word that tables have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Area => "area",
            Self::Tdp => "tdp",
            Self::Price => "price",
        }
    }
}

/// A budget of which one limit is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetStep {
    /// Which limit.
    pub limited: Limited,
    /// By how many percent.
    pub percent: i64,
    /// The whole budget.
    pub budget: Budget,
}

impl BudgetStep {
    /// All steps of a budget; a limit that there is not cannot be changed, and no die is larger than a reticle.
    pub fn all(budget: &Budget, technology: &Technology) -> Vec<Self> {
        let limited = Limited::ALL.into_iter();
        let limited = limited.filter(|one| *one != Limited::Price || budget.price.is_some());
        let steps = |one: Limited| BUDGET_STEPS.into_iter().map(move |percent| (one, percent));
        let changed = |value: u64, percent: i64| {
            let part = u128::from(u64::try_from(100 + percent).unwrap_or(0));
            u64::try_from(u128::from(value) * part / 100).unwrap_or(u64::MAX)
        };
        limited
            .flat_map(steps)
            .map(|(limited, percent)| {
                let mut step = *budget;
                match limited {
                    Limited::Area => {
                        step.area = Area(changed(budget.area.0, percent)).min(technology.reticle());
                    }
                    Limited::Tdp => step.tdp = Power(changed(budget.tdp.0, percent)),
                    Limited::Price => {
                        step.price = budget.price.map(|price| Money(changed(price.0, percent)));
                    }
                }
                Self { limited, percent, budget: step }
            })
            .collect()
    }

    /// What rows of certificates are called that prove its best.
    pub fn word(&self) -> String {
        format!("{} {:+} %", self.limited.word(), self.percent)
    }

    /// The changed limit, in mm², W or dollars.
    pub fn limit(&self) -> f64 {
        match self.limited {
            Limited::Area => self.budget.area.square_millimetres(),
            Limited::Tdp => self.budget.tdp.watts(),
            Limited::Price => self.budget.price.map_or(0.0, Money::dollars),
        }
    }
}

/// What rows of certificates are called that prove a chip nearly as good.
pub fn near_word(figure: NearFigure, per_mille: u128) -> String {
    format!("{} within {} %", figure.word(), per_mille / 10)
}

/// What rows of certificates are called by which chips are counted.
pub fn counted_word() -> String {
    format!("count within {} %", COUNTED_PER_MILLE / 10)
}

/// Objectives that compare the same plans, those of the least time.
pub const TIMED: [Objective; 4] = [
    Objective::Throughput,
    Objective::ThroughputPerArea,
    Objective::CostPerToken,
    Objective::CarbonPerToken,
];

/// The objectives whose winners are told beside that of a request: of one model, and only those that
/// compare the same plans.
pub fn other_objectives(objective: Objective, models: usize) -> Vec<Objective> {
    if models > 1 || objective == Objective::EnergyPerToken {
        return Vec::new();
    }
    TIMED.into_iter().filter(|other| *other != objective).collect()
}

/// The objectives whose winners are not told beside that of a request, and why.
pub fn left_out(objective: Objective, models: usize) -> Vec<LeftOut> {
    let told = other_objectives(objective, models);
    let all = TIMED.into_iter().chain([Objective::EnergyPerToken]);
    let missing = all.filter(|other| *other != objective && !told.contains(other));
    let (energy, timed): (Vec<Objective>, Vec<Objective>) =
        missing.partition(|other| *other == Objective::EnergyPerToken);
    let timed_reason = if objective == Objective::EnergyPerToken {
        "plans were chosen by their energy, and these compare the fastest ones"
    } else {
        "several models are joined relative to the best of each alone, which would have to be searched for \
         by each objective first"
    };
    let energy_reason = "it compares other plans, those of the least energy, and many chips \
                         are nearly as good by it: over many chips that does not end in minutes; ask with --objective energy-per-token";
    [(timed, timed_reason), (energy, energy_reason)]
        .into_iter()
        .filter(|(objectives, _)| !objectives.is_empty())
        .map(|(objectives, reason)| LeftOut { objectives, reason: reason.to_owned() })
        .collect()
}

/// Chips under another budget than that of the request.
pub struct WithBudget<'a> {
    /// Their values.
    pub objective: &'a ByObjective<'a>,
    /// What they may take.
    pub budget: Budget,
}

impl WithBudget<'_> {
    fn greatest(&self, boxes: &[ChipRegion]) -> Greatest {
        Greatest::of(self.objective.evaluator.setup, boxes, |point| self.fits(point))
    }
}

impl BoxProblem<N_CHIP_KNOBS> for WithBudget<'_> {
    passed_on!(rises);

    fn fits(&self, point: &ChipPoint) -> bool {
        let grid = &self.objective.evaluator.setup.grid;
        self.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    }
    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        self.objective.bound(region)
    }
    fn corner(&self, boxes: &[ChipRegion], limit: Option<Value>) -> Corner {
        match self.objective.least_of(boxes) {
            Some(least) => {
                self.objective.corner_taking((boxes, &self.greatest(boxes)), least, limit)
            }
            None => Corner::Nothing,
        }
    }
    fn guess(&self, boxes: &[ChipRegion], like: &KeptChip, worst: Value) -> f64 {
        let Some(least) = self.objective.least_of(boxes) else { return f64::INFINITY };
        let guess = self.objective.guess_taking((boxes, &self.greatest(boxes)), least, like);
        guess / (worst.first as f64).max(1.0)
    }
    fn evaluate(&self, point: &ChipPoint, limit: Option<Value>) -> Evaluation<Vec<Chosen>> {
        self.objective.evaluate(point, limit)
    }
}

/// All chips whose value is no worse than a limit: others count as nothing.
pub struct NoWorse<'a> {
    /// Their values.
    pub objective: &'a ByObjective<'a>,
    /// The worst value that will do.
    pub limit: u128,
}

impl NoWorse<'_> {
    fn asked(&self) -> Value {
        Value { first: self.limit, second: u128::MAX, place: u128::MAX }
    }
}

impl BoxProblem<N_CHIP_KNOBS> for NoWorse<'_> {
    passed_on!(rises, fits);

    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        self.objective.bound(region).filter(|value| value.first <= self.limit)
    }
    fn corner(&self, boxes: &[ChipRegion], _: Option<Value>) -> Corner {
        match self.objective.corner(boxes, Some(self.asked())) {
            Corner::Reached(value) => Corner::Reached(value),
            Corner::Beyond | Corner::Nothing => Corner::Nothing,
        }
    }
    fn guess(&self, boxes: &[ChipRegion], like: &KeptChip, _: Value) -> f64 {
        self.objective.guess(boxes, like, self.asked())
    }
    fn evaluate(&self, point: &ChipPoint, _: Option<Value>) -> Evaluation<Vec<Chosen>> {
        match self.objective.evaluate(point, Some(self.asked())) {
            Evaluation::Found(value, found) if value.first <= self.limit => {
                Evaluation::Found(value, found)
            }
            _ => Evaluation::Nothing,
        }
    }
}

/// What is known of how the best chip changes.
#[derive(Clone, Debug)]
pub struct WhySurvey {
    /// By thousandths, then by what nearly as good ones take.
    pub near: Vec<(u128, NearFigure, ChipWalk)>,
    /// Chips that are nearly as good; open boxes where counting ended before.
    pub counted: ChipWalk,
    /// By step of a budget; none where the winner itself keeps within a smaller one.
    pub budgets: Vec<(BudgetStep, Option<ChipWalk>)>,
    /// By other objective, in the order of [`other_objectives`].
    pub objectives: Vec<(Judge, ChipWalk)>,
    /// Whether nothing but counting was ended early.
    pub complete: bool,
}

/// Searches all of it; `None` where nothing was found to begin with.
pub fn survey_why(
    evaluator: &ChipEvaluator,
    survey: &ChipSurvey,
    observer: &dyn Observer,
) -> Option<WhySurvey> {
    let setup = evaluator.setup;
    let models = (0..setup.models.len()).collect();
    let problem = ByObjective { evaluator, models, judge: &survey.judge };
    let whole = ChipRegion::whole(setup.grid.lens());
    let around = Around { problem, best: survey.walk.kept.first()?, whole, observer };
    let near = around.near();
    let budgets = around.budgets();
    let objectives = around.objectives();
    let counted = around.counted();
    let complete = near.iter().all(|(.., walk)| walk.complete())
        && budgets.iter().all(|(_, walk)| walk.as_ref().is_none_or(ChipWalk::complete))
        && objectives.iter().all(|(_, walk)| walk.complete())
        && !observer.stops();
    Some(WhySurvey { near, counted, budgets, objectives, complete })
}

/// The best chip, and what it was the best of.
struct Around<'a> {
    problem: ByObjective<'a>,
    best: &'a Kept<N_CHIP_KNOBS, Vec<Chosen>>,
    whole: ChipRegion,
    observer: &'a dyn Observer,
}

impl Around<'_> {
    fn near(&self) -> Vec<(u128, NearFigure, ChipWalk)> {
        let each = OTHER_NEAR_PER_MILLE.into_iter();
        let each = each.flat_map(|part| NearFigure::ALL.map(|figure| (part, figure)));
        each.map(|(part, figure)| {
            let limit = nearly_as_good_as(self.best.value.first, part);
            let near = Nearly { objective: &self.problem, limit, figure };
            let value = near.evaluated(&self.best.point);
            let known = value.map(|value| Kept { value, ..self.best.clone() });
            let known = (1, known.into_iter().collect());
            let walked = walk(&near, self.whole, known, &near_word(figure, part), self.observer);
            (part, figure, walked)
        })
        .collect()
    }

    fn budgets(&self) -> Vec<(BudgetStep, Option<ChipWalk>)> {
        let grid = &self.problem.evaluator.setup.grid;
        let steps = BudgetStep::all(&grid.budget, &grid.technology).into_iter();
        steps
            .map(|step| {
                let other = WithBudget { objective: &self.problem, budget: step.budget };
                let fits = other.fits(&self.best.point);
                if fits && step.percent < 0 {
                    return (step, None);
                }
                let known = if fits { vec![self.best.clone()] } else { Vec::new() };
                let walked = walk(&other, self.whole, (1, known), &step.word(), self.observer);
                (step, Some(walked))
            })
            .collect()
    }

    fn objectives(&self) -> Vec<(Judge, ChipWalk)> {
        let ByObjective { evaluator, models, judge } = &self.problem;
        let others = other_objectives(judge.objective, models.len()).into_iter();
        others
            .map(|objective| {
                let judge = Judge { objective, ..(*judge).clone() };
                let problem = ByObjective { evaluator, models: models.clone(), judge: &judge };
                let known = match problem.evaluate(&self.best.point, None) {
                    Evaluation::Found(value, _) => vec![Kept { value, ..self.best.clone() }],
                    Evaluation::Beyond | Evaluation::Nothing => Vec::new(),
                };
                let what = objective.name();
                let walked = walk(&problem, self.whole, (1, known), what, self.observer);
                (judge, walked)
            })
            .collect()
    }

    fn counted(&self) -> ChipWalk {
        let limit = nearly_as_good_as(self.best.value.first, COUNTED_PER_MILLE);
        let counting = Counting { observer: self.observer, looks: AtomicUsize::new(0) };
        let no_worse = NoWorse { objective: &self.problem, limit };
        let all = (usize::MAX, Vec::new());
        walk(&no_worse, self.whole, all, &counted_word(), &counting)
    }
}

/// Ends a walk after so many looks at what is known, which are the same on every machine.
struct Counting<'a> {
    observer: &'a dyn Observer,
    looks: AtomicUsize,
}

impl Observer for Counting<'_> {
    fn begins(&self, what: &str) {
        self.observer.begins(what);
    }
    fn evaluated(&self, what: &str, left: usize) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.observer.evaluated(what, left);
    }
    fn stops(&self) -> bool {
        self.looks.load(Ordering::Relaxed) >= MOST_LOOKS || self.observer.stops()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_objective_is_told_or_said_to_be_left_out() {
        let energy = Objective::EnergyPerToken;
        let all = TIMED.into_iter().chain([energy]);
        for (own, models) in all.clone().flat_map(|own| [(own, 1), (own, 3)]) {
            let told = other_objectives(own, models).into_iter();
            let missing = left_out(own, models).into_iter().flat_map(|left| left.objectives);
            let mut found: Vec<Objective> = told.chain(missing).collect();
            found.push(own);
            assert_eq!(found.len(), 5, "{own:?} {models}");
            assert!(all.clone().all(|objective| found.contains(&objective)), "{own:?} {models}");
        }
        let [one] = &left_out(Objective::Throughput, 1)[..] else { panic!("energy alone") };
        assert_eq!(one.objectives, [energy]);
        assert_eq!(left_out(energy, 2).len(), 1);
        assert_eq!(left_out(Objective::CostPerToken, 2).len(), 2);
    }
}
