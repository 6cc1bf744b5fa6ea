//! A baseline that looks at operators only: the design of the space on which all operators, one
//! after another and each spread over all cores, do best by the objective, blind to distribution. It is
//! found by the same walk over boxes, with values and bounds of its own.

use super::operator_sums::OperatorSums;
use super::operator_sums::Sketches;
use crate::hardware::Candidate;
use crate::hardware::DesignGrid;
use crate::hardware::N_DESIGN_KNOBS;
use crate::search::Evaluator;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::Observer;
use crate::search::Setup;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Kept;
use crate::search::boxes::Value;
use crate::search::boxes::walk;
use crate::search::designs::DesignPoint;
use crate::search::designs::DesignRegion;
use crate::search::objective::Certainty;
use crate::strategy::Standing;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// All designs with one size of off-chip memory, judged by all operators of one sequence at width 1.
struct Operators<'a> {
    setup: &'a Setup,
    grid: DesignGrid,
    judge: &'a Judge,
    hbm: usize,
    /// One for each model, with its sketches by the places of width and depth.
    models: Vec<(OperatorSums<'a>, Vec<Vec<Sketches>>)>,
}

/// The design on which operators alone do best by the objective, among those that keep the cap of
/// power; of equals the smallest, then the first. `None` where none does, or where the observer stopped the
/// walk.
pub fn operators_alone(
    evaluator: &Evaluator,
    judge: &Judge,
    hbm: usize,
    observer: &dyn Observer,
) -> Option<Candidate> {
    let setup = evaluator.setup;
    let grid = setup.grid();
    let values = |knob: usize| {
        let places = 0..grid.lens()[knob];
        places.filter_map(|place| grid.value(knob, place)).collect::<Vec<u64>>()
    };
    let (widths, depths) = (values(WIDTH), values(DEPTH));
    let models = setup.trainings.iter().map(|training| {
        let sums = OperatorSums::new(training, &setup.terms, evaluator.table());
        let of_width = |&width: &u64| depths.iter().map(|&d| sums.sketches(width, d)).collect();
        let sketches = widths.iter().map(of_width).collect();
        (sums, sketches)
    });
    let models = models.collect();
    let operators = Operators { setup, grid, judge, hbm, models };
    let whole = DesignRegion::whole(operators.grid.lens());
    let walked = walk(&operators, whole, (1, Vec::new()), "operators alone", observer);
    let best = walked.kept.first().filter(|_| walked.complete())?;
    Some(operators.grid.candidate(&best.point))
}

/// The places of the sides of arrays, and of what bounds know nothing of, among the knobs.
const WIDTH: usize = 1;
const DEPTH: usize = 2;
const BLIND: [usize; 2] = [5, 6];

const NOTHING_KNOWN: Standing = Standing { time: Time(0), energy: Energy::ZERO };

impl Operators<'_> {
    /// Designs come in the published order, of a box its greatest corner first.
    fn value(
        &self,
        standings: &[Standing],
        (region, certainty): (&DesignRegion, Certainty),
    ) -> Option<Value> {
        let merit = self.judge.merit(standings, self.grid.area(&region.lo)?, certainty);
        let place = self.grid.published_place(&region.hi);
        Some(Value { first: merit.value, second: merit.area, place })
    }
}

impl BoxProblem<N_DESIGN_KNOBS> for Operators<'_> {
    type Found = ();

    fn lens(&self) -> [u16; N_DESIGN_KNOBS] {
        self.grid.lens()
    }

    fn proved(&self) -> [bool; N_DESIGN_KNOBS] {
        [false; N_DESIGN_KNOBS]
    }

    fn blind(&self) -> [bool; N_DESIGN_KNOBS] {
        std::array::from_fn(|knob| BLIND.contains(&knob))
    }

    fn rises(&self) -> bool {
        self.judge.objective != Objective::Throughput
    }

    fn fits(&self, point: &DesignPoint) -> bool {
        self.grid.keeps_the_limit(point)
    }

    fn bound(&self, region: &DesignRegion) -> Option<Value> {
        let Setup { physics, request, .. } = self.setup;
        let no_design = |at: DesignPoint| !self.grid.is_design(&at, physics);
        if self.grid.all_too_small(&region.lo, &region.hi) || region.only().is_some_and(no_design) {
            return None;
        }
        let size = Bytes::GIB * request.space.hbm_gib[self.hbm];
        let [least, most] = [region.lo, region.hi].map(|corner| self.grid.candidate(&corner));
        let [width, depth] = [WIDTH, DEPTH].map(|knob| usize::from(region.hi[knob]));
        let each = self.models.iter();
        let standings: Vec<Standing> = match most.optimistic(&least, size, physics) {
            Some(chip) => each.map(|(sums, all)| sums.bound(&all[width][depth], &chip)).collect(),
            // Nothing is known of what no chip can be.
            None => vec![NOTHING_KNOWN; self.models.len()],
        };
        self.value(&standings, (region, Certainty::Bound))
    }

    /// Nothing is proved along any knob, so that nobody asks.
    fn corner(&self, _: &[DesignRegion], _: Option<Value>) -> Corner {
        Corner::Reached(Value { first: 0, second: 0, place: 0 })
    }

    fn guess(&self, _: &[DesignRegion], _: &Kept<N_DESIGN_KNOBS, ()>, _: Value) -> f64 {
        0.0
    }

    fn evaluate(&self, point: &DesignPoint, limit: Option<Value>) -> Evaluation<()> {
        if !self.grid.is_design(point, &self.setup.physics) {
            return Evaluation::Nothing;
        }
        let chip = self.setup.chip_of(&self.grid.candidate(point), self.hbm);
        let standings: Option<Vec<Standing>> =
            self.models.iter().map(|(sums, _)| sums.standing(&chip)).collect();
        let point = DesignRegion::point(*point);
        match standings.and_then(|all| self.value(&all, (&point, Certainty::Fact))) {
            None => Evaluation::Nothing,
            Some(value) if limit.is_some_and(|limit| value >= limit) => Evaluation::Beyond,
            Some(value) => Evaluation::Found(value, ()),
        }
    }
}
