//! The chip of a space that is best for operators alone, found by the same walk over boxes, with values
//! and bounds of its own.

use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::hardware::chip::knob_place;
use crate::search::Certainty;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Kept;
use crate::search::boxes::Value;
use crate::search::boxes::each_alone;
use crate::search::boxes::walk;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipRegion;
use crate::strategy::Price;
use crate::strategy::Standing;
use crate::units::Energy;

use super::super::operator_sums::OperatorSums;
use super::super::operator_sums::Sketches;

/// All chips of a grid, judged by all operators of one sequence at width 1.
pub struct OperatorsAlone<'a> {
    evaluator: &'a ChipEvaluator<'a>,
    judge: &'a Judge,
    /// One for each model, with its sketches by the places of width and depth.
    models: Vec<(OperatorSums<'a>, Vec<Vec<Sketches>>)>,
    corners: bool,
}

/// What of the space operators alone choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The stacks of memory, where they are given.
    pub stacks: Option<u16>,
    /// The links; where they are not given, operators alone ask for the least.
    pub links: u16,
}

impl Given {
    /// Nothing is given.
    pub const NOTHING: Self = Self { stacks: None, links: 0 };
}

impl<'a> OperatorsAlone<'a> {
    /// Of the request that is evaluated.
    pub fn new(evaluator: &'a ChipEvaluator<'a>, judge: &'a Judge) -> Self {
        // Alone, no operator exchanges anything: any value of the links will do.
        let ground = evaluator.ground(0);
        let [widths, depths] = [WIDTH, DEPTH].map(|knob| evaluator.setup.grid.values(knob));
        let models = ground.trainings.iter().map(|training| {
            let sums = OperatorSums::new(training, &ground.terms, evaluator.table());
            let sketches = widths
                .iter()
                .map(|&width| depths.iter().map(|&depth| sums.sketches(width, depth)).collect());
            let sketches = sketches.collect();
            (sums, sketches)
        });
        let corners = ground.terms.price == Price::Time;
        Self { evaluator, judge, models: models.collect(), corners }
    }

    /// The best chip; `None` where none will do. `Err` where the observer ended the walk.
    ///
    /// More links make no operator faster and no chip smaller, cheaper or cooler: the least are taken
    /// unless they are given.
    ///
    /// # Errors
    /// That the walk was ended.
    pub fn best(
        &self,
        given: Given,
        what: &str,
        observer: &dyn Observer,
    ) -> Result<Option<ChipPoint>, Stopped> {
        let place = |name| knob_place(name).expect("a knob of chips");
        let mut region = ChipRegion::whole(self.lens());
        region = region.up_to(place("links"), given.links).from(place("links"), given.links);
        if let Some(stacks) = given.stacks {
            region = region.up_to(place("stacks"), stacks).from(place("stacks"), stacks);
        }
        let walked = walk(self, region, (1, Vec::new()), what, observer);
        if !walked.complete() {
            return Err(Stopped);
        }
        Ok(walked.kept.first().map(|kept| kept.point))
    }

    fn value(
        &self,
        standings: &[Standing],
        least: &ChipPoint,
        certainty: Certainty,
    ) -> Option<Value> {
        let setup = self.evaluator.setup;
        let taken = setup.footprint(&setup.knobs(least))?;
        let merit = self.judge.merit(standings, taken, certainty);
        Some(Value { first: merit.value, second: merit.area, place: self.place(least) })
    }
}

/// Somebody ended a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// The places of the sides of arrays among the knobs.
const WIDTH: usize = 1;
const DEPTH: usize = 2;

impl BoxProblem<N_CHIP_KNOBS> for OperatorsAlone<'_> {
    type Found = ();

    fn lens(&self) -> [u16; N_CHIP_KNOBS] {
        self.evaluator.setup.grid.lens()
    }

    fn proved(&self) -> [bool; N_CHIP_KNOBS] {
        std::array::from_fn(|knob| self.corners && CHIP_KNOBS[knob].proved)
    }

    fn blind(&self) -> [bool; N_CHIP_KNOBS] {
        let blind = ["glb_mib", "glb_bytes_per_cycle"].map(knob_place);
        std::array::from_fn(|knob| blind.contains(&Some(knob)))
    }

    fn rises(&self) -> bool {
        self.judge.objective != Objective::Throughput
    }

    fn fits(&self, point: &ChipPoint) -> bool {
        let grid = &self.evaluator.setup.grid;
        grid.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    }

    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        let setup = self.evaluator.setup;
        let (technology, base) = (&setup.grid.technology, &setup.physics);
        let high = setup.knobs(&region.hi);
        let chip = if self.judge.objective == Objective::EnergyPerToken {
            high.optimistic(&setup.knobs(&region.lo), technology, base)
        } else {
            high.boundless(technology, base)
        };
        let [width, depth] = [WIDTH, DEPTH].map(|knob| usize::from(region.hi[knob]));
        let standings: Vec<Standing> = match chip {
            Some(chip) => {
                let each = self.models.iter();
                each.map(|(sums, all)| sums.bound(&all[width][depth], &chip)).collect()
            }
            // Nothing is known of what cannot be built.
            None => vec![NOTHING_KNOWN; self.models.len()],
        };
        self.value(&standings, &region.lo, Certainty::Bound)
    }

    fn corner(&self, boxes: &[ChipRegion], limit: Option<Value>) -> Corner {
        each_alone(boxes, |region| self.corner_of(region, limit))
    }

    fn guess(&self, boxes: &[ChipRegion], _: &Kept<N_CHIP_KNOBS, ()>, worst: Value) -> f64 {
        // What the corner says takes no longer than a guess would.
        match self.corner(boxes, None) {
            Corner::Reached(value) => value.first as f64 / (worst.first as f64).max(1.0),
            Corner::Beyond | Corner::Nothing => f64::INFINITY,
        }
    }

    fn evaluate(&self, point: &ChipPoint, limit: Option<Value>) -> Evaluation<()> {
        let Some(chip) = self.evaluator.chip(point) else { return Evaluation::Nothing };
        let standings: Option<Vec<Standing>> =
            self.models.iter().map(|(sums, _)| sums.standing(&chip)).collect();
        let value = standings.and_then(|standings| self.value(&standings, point, Certainty::Fact));
        match value {
            None => Evaluation::Nothing,
            Some(value) if limit.is_some_and(|limit| value >= limit) => Evaluation::Beyond,
            Some(value) => Evaluation::Found(value, ()),
        }
    }
}

impl OperatorsAlone<'_> {
    /// What the greatest corner says of one box.
    fn corner_of(&self, region: &ChipRegion, limit: Option<Value>) -> Corner {
        let Some(chip) = self.evaluator.chip(&region.hi) else { return Corner::Nothing };
        let times: Option<Vec<Standing>> = self
            .models
            .iter()
            .map(|(sums, _)| Some(Standing { time: sums.corner(&chip)?, ..NOTHING_KNOWN }))
            .collect();
        let value = times.and_then(|times| self.value(&times, &region.lo, Certainty::Bound));
        match value {
            None => Corner::Nothing,
            Some(value) if limit.is_some_and(|limit| value >= limit) => Corner::Beyond,
            Some(value) => Corner::Reached(value),
        }
    }
}

const NOTHING_KNOWN: Standing = Standing { time: crate::units::Time(0), energy: Energy::ZERO };
