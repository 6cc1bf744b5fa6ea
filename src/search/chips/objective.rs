//! Chips compared by the objective of a request: what boxes of them cannot beat, what a chip is worth.

use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Fact;
use crate::search::Footprint;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Value;
use crate::search::boxes::each_alone;
use crate::search::objective::Certainty;
use crate::strategy;
use crate::strategy::Chosen;
use crate::strategy::EnergyReach;
use crate::strategy::Figures;
use crate::strategy::Reach;
use crate::strategy::Standing;
use crate::units::Energy;
use crate::units::Time;

use super::ChipPoint;
use super::ChipRegion;
use super::KeptChip;
use super::corners::Greatest;
use super::evaluator::BLIND;
use super::evaluator::ChipEvaluator;

/// Some models on all chips, compared by one judge; of equals the smaller die wins, of equal dies the
/// chip that comes first in the grid.
pub struct ByObjective<'a> {
    /// Who times chips.
    pub evaluator: &'a ChipEvaluator<'a>,
    /// Which models of the request.
    pub models: Vec<usize>,
    /// Who compares.
    pub judge: &'a Judge,
}

impl ByObjective<'_> {
    fn footprint(&self, point: &ChipPoint) -> Option<Footprint> {
        let setup = self.evaluator.setup;
        setup.footprint_for(self.judge.objective, &setup.knobs(point))
    }

    /// What the least chip of a box takes, and where it stands; `None` where it cannot be made.
    pub(super) fn least(&self, point: &ChipPoint) -> Option<Least> {
        Some(Least { taken: self.footprint(point)?, place: self.place(point) })
    }

    fn value(&self, standings: &[Standing], least: Least, certainty: Certainty) -> Value {
        let merit = self.judge.merit(standings, least.taken, certainty);
        Value { first: merit.value, second: merit.area, place: least.place }
    }

    /// What no chip of boxes takes less of, and before which none of them stands; `None` where none can be made.
    pub(super) fn least_of(&self, boxes: &[ChipRegion]) -> Option<Least> {
        boxes.iter().filter_map(|region| self.least(&region.lo)).reduce(Least::min)
    }

    /// The greatest corner of boxes under the budget of the request.
    fn greatest(&self, boxes: &[ChipRegion]) -> Greatest {
        Greatest::of(self.evaluator.setup, boxes, |point| self.fits(point))
    }

    /// Whether energies are compared, and not times.
    fn by_energy(&self) -> bool {
        self.judge.objective == Objective::EnergyPerToken
    }

    /// What every model can do at the best on any chip of a box; `None` where one surely does not fit.
    fn standings(&self, region: &ChipRegion) -> Option<Vec<Standing>> {
        let evaluator = self.evaluator;
        let models = self.models.iter();
        if self.by_energy() {
            let both = Figures::TimeAndEnergy;
            return models
                .map(|&model| evaluator.optimistic(model, &region.lo, &region.hi, both))
                .collect();
        }
        let mut standings = self.fastest(&region.hi)?;
        if let Some(cap) = evaluator.setup.request.power_cap_w {
            let ends = (&region.lo, &region.hi);
            for (&model, standing) in models.zip(&mut standings) {
                let slowed = evaluator.least_time_within(model, ends, cap)?;
                standing.time = standing.time.max(slowed);
            }
        }
        Some(standings)
    }

    /// The least time of every model on any chip that is nowhere above a point, whatever a cap leaves out;
    /// `None` where one surely does not fit.
    fn fastest(&self, most: &ChipPoint) -> Option<Vec<Standing>> {
        let least = |model: &usize| {
            let time = self.evaluator.least_time(*model, most)?;
            Some(Standing { time, energy: Energy::ZERO })
        };
        self.models.iter().map(least).collect()
    }

    /// The times of all models at a point, or that one of them cannot be within the limit; chips
    /// between `least` and the point take at least what `taken` says.
    fn timed(&self, point: &ChipPoint, taken: Footprint, limit: Option<Value>) -> Timed {
        let region = ChipRegion::point(*point);
        let Some(mut standings) = self.standings(&region) else { return Timed::Nothing };
        if self.by_energy()
            && let Some(limit) = limit
        {
            let own = (&region, Greatest::of_point(self.evaluator.setup, point).lanes);
            let least = Least { taken, place: self.place(point) };
            if self.frugal_corner(own, least, Some(limit)) == Corner::Beyond {
                return Timed::Beyond;
            }
        }
        let limit = limit.filter(|_| !self.by_energy()).map(|limit| limit.first);
        let mut chosen = Vec::with_capacity(self.models.len());
        for (at, &model) in self.models.iter().enumerate() {
            let longest = limit.map(|limit| self.judge.longest(limit, at, &standings, taken));
            // Where even the least of everything is slower, nothing is looked for exactly.
            let greatest = Greatest::of_point(self.evaluator.setup, point);
            let is_slower =
                |longest: Time| self.evaluator.reach(model, &greatest, longest) == Reach::Slower;
            if longest.is_some_and(is_slower) {
                return Timed::Beyond;
            }
            // Where a cap rules out plans, the best of all is looked for.
            let longest = longest.filter(|_| self.evaluator.setup.request.power_cap_w.is_none());
            match self.evaluator.known(model, point, longest) {
                Fact::Chosen(found) => {
                    standings[at] = found.standing;
                    chosen.push(*found);
                }
                Fact::Slower(_) => return Timed::Beyond,
                Fact::Nothing => return Timed::Nothing,
            }
        }
        Timed::Chosen(chosen)
    }
}

impl ByObjective<'_> {
    /// What no chip of a box can beat, where the least takes so much.
    pub fn bound_taking(&self, region: &ChipRegion, least: Least) -> Option<Value> {
        let standings = self.standings(region)?;
        Some(self.value(&standings, least, Certainty::Bound))
    }

    /// What the greatest corner says of boxes, where the least chip takes so much.
    pub fn corner_taking(
        &self,
        (boxes, greatest): (&[ChipRegion], &Greatest),
        least: Least,
        limit: Option<Value>,
    ) -> Corner {
        if self.by_energy() {
            return each_alone(boxes, |region| {
                self.frugal_corner((region, greatest.lanes), least, limit)
            });
        }
        // What the greatest chip itself draws says nothing of smaller ones.
        let each = self.evaluator.setup.with_each(greatest.kin, &greatest.point);
        let each = each.iter().filter_map(|point| self.fastest(point));
        let Some(mut standings) = each.reduce(faster) else { return Corner::Nothing };
        let limit = limit.map(|limit| better_than(limit, least));
        for (at, &model) in self.models.iter().enumerate() {
            let longest = limit.map_or(Time(u64::MAX), |limit| {
                self.judge.longest(limit, at, &standings, least.taken)
            });
            // With the others at their rooflines this one may be quick enough; then, of several, its exact
            // time tells what is left for them.
            match self.evaluator.reach(model, greatest, longest) {
                Reach::Within(time) if self.models.len() == 1 => standings[at].time = time,
                Reach::Within(_) => match self.evaluator.corner(model, greatest, longest) {
                    strategy::Corner::Least(time) => standings[at].time = time,
                    strategy::Corner::Slower(_) => return Corner::Beyond,
                    strategy::Corner::Nothing => return Corner::Nothing,
                },
                Reach::Slower => return Corner::Beyond,
                Reach::Nothing => return Corner::Nothing,
            }
        }
        Corner::Reached(self.value(&standings, least, Certainty::Bound))
    }

    /// What the energies of a box say of it, whose chips have at most so many lanes, where the least takes so much.
    fn frugal_corner(
        &self,
        (region, lanes): (&ChipRegion, u64),
        least: Least,
        limit: Option<Value>,
    ) -> Corner {
        let Some(mut standings) = self.standings(region) else { return Corner::Nothing };
        let limit = limit.map(|limit| better_than(limit, least));
        for (at, &model) in self.models.iter().enumerate() {
            let dearest = limit.map_or(Energy(u128::MAX), |limit| {
                self.judge.dearest(limit, at, &standings, least.taken)
            });
            // Of several the least tells what is left for the others.
            let asked = (dearest, self.models.len() > 1);
            match self.evaluator.reach_energy(model, (region, lanes), asked) {
                EnergyReach::Within(energy) => standings[at].energy = energy,
                EnergyReach::Beyond => return Corner::Beyond,
                EnergyReach::Nothing => return Corner::Nothing,
            }
        }
        Corner::Reached(self.value(&standings, least, Certainty::Bound))
    }

    /// About what the best chip of boxes is worth, from how one that is known trains, where the least takes so
    /// much.
    pub fn guess_taking(
        &self,
        (boxes, greatest): (&[ChipRegion], &Greatest),
        least: Least,
        like: &KeptChip,
    ) -> f64 {
        let each = self.models.iter().zip(&like.found);
        let standings: Option<Vec<Standing>> = each
            .map(|(&model, chosen)| {
                let like = (&like.point, chosen);
                if self.by_energy() {
                    let guess =
                        |region| self.evaluator.guess_energy(model, (region, greatest), like);
                    let energy = boxes.iter().filter_map(guess).min()?;
                    return Some(Standing { time: Time::ZERO, energy });
                }
                let time = self.evaluator.guess(model, greatest, like)?;
                Some(Standing { time, energy: Energy::ZERO })
            })
            .collect();
        let value = |standings: Vec<Standing>| self.value(&standings, least, Certainty::Fact);
        standings.map_or(f64::INFINITY, |standings| value(standings).first as f64)
    }

    /// What a chip is worth that takes so much.
    pub fn evaluate_taking(
        &self,
        point: &ChipPoint,
        least: Least,
        limit: Option<Value>,
    ) -> Evaluation<Vec<Chosen>> {
        match self.timed(point, least.taken, limit) {
            Timed::Nothing => Evaluation::Nothing,
            Timed::Beyond => Evaluation::Beyond,
            Timed::Chosen(chosen) => {
                let standings: Vec<Standing> =
                    chosen.iter().map(|chosen| chosen.standing).collect();
                let value = self.value(&standings, least, Certainty::Fact);
                if limit.is_some_and(|limit| value >= limit) {
                    return Evaluation::Beyond;
                }
                Evaluation::Found(value, chosen)
            }
        }
    }
}

/// The least chip of boxes: what none of their chips takes less of, and before which none of them stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// What it takes.
    pub taken: Footprint,
    /// How many chips of the grid come before it.
    pub place: u128,
}

impl Least {
    /// Each figure of the lesser of two.
    pub(super) fn min(self, other: Self) -> Self {
        let (one, two) = (self.taken, other.taken);
        Self {
            taken: Footprint {
                area: one.area.min(two.area),
                cents: one.cents.min(two.cents),
                grams: one.grams.min(two.grams),
            },
            place: self.place.min(other.place),
        }
    }
}

/// The least time of each model on either of two chips.
fn faster(mut one: Vec<Standing>, other: Vec<Standing>) -> Vec<Standing> {
    for (mine, others) in one.iter_mut().zip(other) {
        mine.time = mine.time.min(others.time);
    }
    one
}

/// The worst first figure with which a chip of a box with such a least one may be better than a limit: of equals
/// the smaller die is, and of equal dies the one that comes first.
fn better_than(limit: Value, least: Least) -> u128 {
    if (u128::from(least.taken.area.0), least.place) < (limit.second, limit.place) {
        limit.first
    } else {
        limit.first.saturating_sub(1)
    }
}

enum Timed {
    Chosen(Vec<Chosen>),
    Beyond,
    Nothing,
}

impl BoxProblem<N_CHIP_KNOBS> for ByObjective<'_> {
    type Found = Vec<Chosen>;

    fn lens(&self) -> [u16; N_CHIP_KNOBS] {
        self.evaluator.setup.grid.lens()
    }

    fn proved(&self) -> [bool; N_CHIP_KNOBS] {
        std::array::from_fn(|knob| CHIP_KNOBS[knob].proved)
    }

    fn blind(&self) -> [bool; N_CHIP_KNOBS] {
        std::array::from_fn(|knob| BLIND.contains(&knob))
    }

    fn rises(&self) -> bool {
        let capped = self.evaluator.setup.request.power_cap_w.is_some();
        self.judge.objective != Objective::Throughput || capped
    }

    fn fits(&self, point: &ChipPoint) -> bool {
        let grid = &self.evaluator.setup.grid;
        grid.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    }

    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        self.bound_taking(region, self.least(&region.lo)?)
    }

    fn kin(&self, point: &ChipPoint) -> Option<u64> {
        // Energies of several arrays have no common bound.
        (!self.by_energy()).then(|| self.evaluator.setup.kin(point).class())
    }

    fn corner(&self, boxes: &[ChipRegion], limit: Option<Value>) -> Corner {
        let Some(least) = self.least_of(boxes) else { return Corner::Nothing };
        self.corner_taking((boxes, &self.greatest(boxes)), least, limit)
    }

    fn guess(&self, boxes: &[ChipRegion], like: &KeptChip, worst: Value) -> f64 {
        let Some(least) = self.least_of(boxes) else { return f64::INFINITY };
        self.guess_taking((boxes, &self.greatest(boxes)), least, like)
            / (worst.first as f64).max(1.0)
    }

    fn evaluate(&self, point: &ChipPoint, limit: Option<Value>) -> Evaluation<Vec<Chosen>> {
        let Some(least) = self.least(point) else { return Evaluation::Nothing };
        self.evaluate_taking(point, least, limit)
    }

    fn settle(&self) {
        self.evaluator.settle();
    }
}
