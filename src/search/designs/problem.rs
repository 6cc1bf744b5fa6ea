//! The designs of a grid with one size of off-chip memory, as a search over boxes asks for them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::hardware::Accelerator;
use crate::hardware::DesignGrid;
use crate::hardware::N_DESIGN_KNOBS;
use crate::search::Evaluator;
use crate::search::Fact;
use crate::search::Memory;
use crate::search::NEAR_PERCENT;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Kept;
use crate::search::boxes::Point;
use crate::search::boxes::Region;
use crate::search::boxes::Value;
use crate::search::objective::Certainty;
use crate::search::objective::Judge;
use crate::search::objective::Objective;
use crate::search::walk::Merit;
use crate::strategy::Chosen;
use crate::strategy::Figures;
use crate::strategy::Price;
use crate::strategy::Standing;
use crate::strategy::Within;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// A point of a grid of designs.
pub type DesignPoint = Point<N_DESIGN_KNOBS>;

/// A box of designs.
pub type DesignRegion = Region<N_DESIGN_KNOBS>;

/// What was found of every design that was evaluated.
pub(super) type Found = BTreeMap<DesignPoint, (Merit, Vec<Chosen>)>;

/// The global buffer and its rate, of which rooflines know nothing.
const BLIND: [usize; 2] = [5, 6];

/// Bounds that are remembered at the most.
const MOST_REMEMBERED: usize = 1 << 16;

/// Some models on all designs of a grid with one size of off-chip memory, seen by one judge.
pub(super) struct AtHbm<'a> {
    pub evaluator: &'a Evaluator<'a>,
    pub grid: &'a DesignGrid,
    pub memory: &'a dyn Memory,
    pub judge: &'a Judge,
    pub models: Vec<usize>,
    pub hbm: usize,
    /// Bounds by the corners that they depend on.
    bounds: Mutex<BTreeMap<[DesignPoint; 2], Option<Vec<Standing>>>>,
    found: Mutex<Found>,
}

impl<'a> AtHbm<'a> {
    pub fn new(
        (evaluator, grid): (&'a Evaluator<'a>, &'a DesignGrid),
        memory: &'a dyn Memory,
        (judge, models): (&'a Judge, Vec<usize>),
        hbm: usize,
    ) -> Self {
        let (bounds, found) = (Mutex::default(), Mutex::default());
        Self { evaluator, grid, memory, judge, models, hbm, bounds, found }
    }

    /// What was found, when nothing more is asked.
    pub fn into_found(self) -> Found {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What no design of a box can beat in any figure; `None` where surely nothing can be done with any.
    pub fn least(&self, region: &DesignRegion) -> Option<Merit> {
        let grid = self.grid;
        if grid.all_too_small(&region.lo, &region.hi) {
            return None;
        }
        if region.only().is_some_and(|at| !grid.is_design(&at, &self.evaluator.setup.physics)) {
            return None;
        }
        let area = grid.area(&region.lo)?;
        Some(self.judge.merit(&self.standings(region)?, area, Certainty::Bound))
    }

    /// The rooflines of all models at the greatest corner, with the energies of the least.
    fn standings(&self, region: &DesignRegion) -> Option<Vec<Standing>> {
        let (mut lo, mut hi) = (region.lo, region.hi);
        if self.figures() == Figures::Time {
            lo = [0; N_DESIGN_KNOBS];
            for knob in BLIND {
                hi[knob] = 0;
            }
        }
        let locked = || self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(&[lo, hi]) {
            return known.clone();
        }
        let found = self.rooflines(region);
        let mut bounds = locked();
        if bounds.len() == MOST_REMEMBERED {
            bounds.clear();
        }
        bounds.insert([lo, hi], found.clone());
        found
    }

    fn rooflines(&self, region: &DesignRegion) -> Option<Vec<Standing>> {
        let setup = self.evaluator.setup;
        let size = Bytes::GIB * setup.request.space.hbm_gib[self.hbm];
        let [least, most] = [region.lo, region.hi].map(|corner| self.grid.candidate(&corner));
        let Some(chip) = most.optimistic(&least, size, &setup.physics) else {
            // Nothing is known of what no chip can be.
            return Some(vec![NOTHING_KNOWN; self.models.len()]);
        };
        let models = self.models.iter();
        models.map(|&model| self.evaluator.optimistic(model, &chip, self.figures())).collect()
    }

    /// What bounds must tell: energy only where it decides something.
    fn figures(&self) -> Figures {
        match self.judge.objective {
            Objective::EnergyPerToken => Figures::TimeAndEnergy,
            _ => Figures::Time,
        }
    }

    /// What is known or can be found of one model on a design, where ways to train that are slower than
    /// `limit` need not be known.
    fn chosen(
        &self,
        model: usize,
        (point, chip): (&DesignPoint, &Accelerator),
        limit: Option<Time>,
    ) -> Fact {
        let place = usize::try_from(self.grid.published_place(point)).unwrap_or(usize::MAX);
        let key = Fact::key(model, self.hbm, place);
        // A fact that does not read as one is found again.
        let recalled = self.memory.recall(&key).and_then(|fact| serde_json::from_str(fact).ok());
        if let Some(known) = recalled.and_then(|known: Fact| known.within(limit)) {
            return known;
        }
        let known = match self.evaluator.best_within_on(model, chip, limit) {
            Within::Best(best) => Fact::Chosen(Box::new(best.chosen)),
            Within::Slower(limit) => Fact::Slower(limit),
            Within::Nothing => Fact::Nothing,
        };
        let fact = serde_json::to_string(&known).expect("plain figures can be written");
        self.memory.remember(&key, &fact);
        known
    }
}

const NOTHING_KNOWN: Standing = Standing { time: Time(0), energy: Energy::ZERO };

impl BoxProblem<N_DESIGN_KNOBS> for AtHbm<'_> {
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

    /// No place counts against a box: designs of equal value and area are all evaluated, because fewer
    /// devices decide among them before the published order does.
    fn bound(&self, region: &DesignRegion) -> Option<Value> {
        let Merit { value, area, .. } = self.least(region)?;
        Some(Value { first: value, second: area, place: 0 })
    }

    /// Nothing is proved along any knob, so that nobody asks.
    fn corner(&self, _: &[DesignRegion], _: Option<Value>) -> Corner {
        Corner::Reached(Value { first: 0, second: 0, place: 0 })
    }

    fn guess(&self, _: &[DesignRegion], _: &Kept<N_DESIGN_KNOBS, ()>, _: Value) -> f64 {
        0.0
    }

    /// Values that are nearly as good as the limit are found as well.
    fn evaluate(&self, point: &DesignPoint, limit: Option<Value>) -> Evaluation<()> {
        let setup = self.evaluator.setup;
        if !self.grid.is_design(point, &setup.physics) {
            return Evaluation::Nothing;
        }
        let chip = setup.chip_of(&self.grid.candidate(point), self.hbm);
        let area = chip.total_area();
        let limit =
            limit.map(|Value { first, .. }| first.saturating_add(first / 100 * NEAR_PERCENT));
        let terms = &setup.terms;
        let limit = limit.filter(|_| terms.price == Price::Time && terms.power_cap_w.is_none());
        // What is not known yet stands at its bound.
        let models = self.models.iter();
        let bounds = models.map(|&model| self.evaluator.optimistic(model, &chip, Figures::Time));
        let Some(mut standings) = bounds.collect::<Option<Vec<Standing>>>() else {
            return Evaluation::Nothing;
        };
        let mut all = Vec::with_capacity(self.models.len());
        for (at, &model) in self.models.iter().enumerate() {
            let longest = limit.map(|limit| self.judge.longest(limit, at, &standings, area));
            match self.chosen(model, (point, &chip), longest) {
                Fact::Chosen(chosen) => {
                    standings[at] = chosen.standing;
                    all.push(*chosen);
                }
                Fact::Slower(_) => return Evaluation::Beyond,
                Fact::Nothing => return Evaluation::Nothing,
            }
        }
        let merit = self.judge.merit(&standings, area, Certainty::Fact);
        let value = value_at(self.grid, point, &merit);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(*point, (merit, all));
        Evaluation::Found(value, ())
    }
}

/// What an evaluated design is worth; bounds have no place, so that one is behind every bound that is equal.
pub(super) fn value_at(grid: &DesignGrid, point: &DesignPoint, merit: &Merit) -> Value {
    Value { first: merit.value, second: merit.area, place: grid.published_place(point) + 1 }
}
