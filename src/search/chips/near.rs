//! Chips nearly as good as the best that take less of something.

use serde::Deserialize;
use serde::Serialize;

use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Value;
use crate::strategy::Chosen;

use super::ChipPoint;
use super::ChipRegion;
use super::KeptChip;
use super::objective::ByObjective;
use super::passed_on::passed_on;

/// What is made as small as possible among chips that are nearly as good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearFigure {
    /// The die.
    Smallest,
    /// The thermal design power.
    Coolest,
    /// What one costs to make.
    Cheapest,
}

impl NearFigure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Smallest, Self::Coolest, Self::Cheapest];

    /// The word that tables have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Smallest => "smallest",
            Self::Coolest => "coolest",
            Self::Cheapest => "cheapest",
        }
    }
}

/// Chips whose value is no worse than a limit, compared by what they take.
pub struct Nearly<'a> {
    /// Their values.
    pub objective: &'a ByObjective<'a>,
    /// The worst value that will do.
    pub limit: u128,
    /// What they are compared by.
    pub figure: NearFigure,
}

impl Nearly<'_> {
    fn figure(&self, point: &ChipPoint) -> Option<u128> {
        let setup = self.objective.evaluator.setup;
        let figures = setup.figures(&setup.knobs(point))?;
        Some(u128::from(match self.figure {
            NearFigure::Smallest => figures.die.total().0,
            NearFigure::Coolest => figures.tdp.total().0,
            NearFigure::Cheapest => figures.cost.total().0,
        }))
    }

    /// What no chip of boxes takes less of.
    fn least_figure(&self, boxes: &[ChipRegion]) -> Option<u128> {
        boxes.iter().filter_map(|region| self.figure(&region.lo)).min()
    }

    /// The value of a chip that was evaluated by the objective before.
    pub fn evaluated(&self, point: &ChipPoint) -> Option<Value> {
        match self.evaluate(point, None) {
            Evaluation::Found(value, _) => Some(value),
            Evaluation::Beyond | Evaluation::Nothing => None,
        }
    }

    /// The value of what takes so much and is worth so much; `None` where that will not do.
    fn value(&self, figure: u128, worth: Value) -> Option<Value> {
        let value = Value { first: figure, second: worth.first, place: worth.place };
        (worth.first <= self.limit).then_some(value)
    }

    /// The worst value by the objective that is still asked for.
    fn asked(&self) -> Value {
        Value { first: self.limit, second: u128::MAX, place: u128::MAX }
    }
}

impl BoxProblem<N_CHIP_KNOBS> for Nearly<'_> {
    passed_on!(fits);

    fn rises(&self) -> bool {
        true
    }

    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        self.value(self.figure(&region.lo)?, self.objective.bound(region)?)
    }

    fn corner(&self, boxes: &[ChipRegion], limit: Option<Value>) -> Corner {
        let Some(figure) = self.least_figure(boxes) else { return Corner::Nothing };
        let reached = |worth: Value| {
            Corner::Reached(Value { first: figure, second: worth.first, place: worth.place })
        };
        match limit {
            Some(limit) if figure > limit.first => Corner::Beyond,
            // What takes as much as what is known has to be worth more, or as much and come first.
            Some(limit) if figure == limit.first => {
                let first = boxes.iter().map(|region| self.place(&region.lo)).min();
                let as_much = u128::from(first.is_some_and(|first| first < limit.place));
                let worse = limit.second.saturating_add(as_much).min(self.limit.saturating_add(1));
                let worth = Value { first: worse, second: 0, place: 0 };
                match self.objective.corner(boxes, Some(worth)) {
                    Corner::Reached(worth) => reached(worth),
                    Corner::Beyond => Corner::Beyond,
                    Corner::Nothing => Corner::Nothing,
                }
            }
            _ => match self.objective.corner(boxes, Some(self.asked())) {
                Corner::Reached(worth) => reached(worth),
                Corner::Beyond | Corner::Nothing => Corner::Nothing,
            },
        }
    }

    fn guess(&self, boxes: &[ChipRegion], like: &KeptChip, worst: Value) -> f64 {
        match self.least_figure(boxes) {
            Some(figure) if figure < worst.first => self.objective.guess(boxes, like, self.asked()),
            Some(figure) if figure == worst.first => {
                let asked = Value { first: worst.second.min(self.limit), ..self.asked() };
                self.objective.guess(boxes, like, asked)
            }
            _ => f64::INFINITY,
        }
    }

    fn evaluate(&self, point: &ChipPoint, limit: Option<Value>) -> Evaluation<Vec<Chosen>> {
        let Some(figure) = self.figure(point) else { return Evaluation::Nothing };
        if limit.is_some_and(|limit| figure > limit.first) {
            return Evaluation::Beyond;
        }
        match self.objective.evaluate(point, Some(self.asked())) {
            Evaluation::Found(worth, chosen) => match self.value(figure, worth) {
                Some(value) if limit.is_some_and(|limit| value >= limit) => Evaluation::Beyond,
                Some(value) => Evaluation::Found(value, chosen),
                None => Evaluation::Nothing,
            },
            Evaluation::Beyond | Evaluation::Nothing => Evaluation::Nothing,
        }
    }
}
