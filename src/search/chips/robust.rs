//! The best chip where an assumed constant is another: areas, watts, dollars and carbon change, and as long as
//! no time does, all exact evaluations are shared.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::hardware::chip::N_CHIP_KNOBS;
use crate::hardware::technology::Constant;
use crate::hardware::technology::MemoryConstant;
use crate::model::Precision;
use crate::search::Judge;
use crate::search::Memory;
use crate::search::Objective;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Kept;
use crate::search::boxes::Value;
use crate::search::boxes::walk;
use crate::strategy::Chosen;

use super::ChipPoint;
use super::ChipRegion;
use super::KeptChip;
use super::corners::Greatest;
use super::evaluator::ChipEvaluator;
use super::objective::ByObjective;
use super::objective::Least;
use super::passed_on::passed_on;
use super::sampled::Sampler;
use super::setup::ChipSetup;

/// Percents by which assumptions are turned.
pub const TURNED: [i64; 2] = [-30, 30];

/// Chips that tell whether a constant matters at all.
const PROBES: usize = 256;

/// A constant that is assumed, of the process or of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// Of the process.
    Process(Constant),
    /// Of the generation of memory.
    Memory(MemoryConstant),
}

/// An assumption that is turned.
#[derive(Clone, Debug)]
pub struct Turned {
    /// Which one.
    pub assumption: Assumption,
    /// By how many percent.
    pub percent: i64,
    /// What files call it.
    pub name: String,
    /// Before and after, in the unit of the file.
    pub values: [f64; 2],
    /// What it is counted in there.
    pub unit: &'static str,
    /// The request in that technology.
    pub setup: ChipSetup,
}

impl Assumption {
    /// Those of a request that change what chips take of what is limited or asked for, turned down and up,
    /// each as far as its range goes.
    pub fn turned(setup: &ChipSetup) -> Vec<Turned> {
        let technology = &setup.grid.technology;
        let generation = technology.generation(&setup.request.space.memory);
        let of_memory = generation.into_iter().flat_map(|generation| {
            technology.memory_assumptions(generation).map(Self::Memory).collect::<Vec<_>>()
        });
        let all = technology.assumptions().map(Self::Process).chain(of_memory);
        // Arrays of bf16 do no products of fp8, though each core is told what these would take.
        let has_fp8 = setup.request.space.precision == Precision::Fp8;
        let of_fp8 = Self::Process(Constant::MacFp8Energy);
        let all = all.filter(|one| has_fp8 || *one != of_fp8);
        let each = all.flat_map(|one| TURNED.map(|percent| (one, percent)));
        let mut sampler = Sampler::new(setup.grid.lens());
        let probes: Vec<ChipPoint> = (0..PROBES).map(|_| sampler.draw()).collect();
        each.filter_map(|(one, percent)| one.by(setup, percent))
            .filter(|turned| probes.iter().any(|point| differ(setup, &turned.setup, point)))
            .collect()
    }

    /// The request where this is turned; `None` where its range ends before.
    fn by(self, setup: &ChipSetup, percent: i64) -> Option<Turned> {
        let mut turned = setup.clone();
        let technology = &setup.grid.technology;
        let part = u128::from(u64::try_from(100 + percent).ok()?);
        let (before, factor, unit, name, [low, high]) = match self {
            Self::Process(constant) => {
                let row = constant.row();
                let range = [*row.range.start(), *row.range.end()];
                (technology.value(constant), row.factor, row.unit, row.name.to_owned(), range)
            }
            Self::Memory(constant) => {
                let memory = technology.memory(technology.generation(&setup.request.space.memory)?);
                let row = MemoryConstant::ROWS.into_iter().find(|row| row.0 == constant)?;
                let name = format!("memory.{}.{}", memory.name, row.1);
                (memory.value(constant), row.3, row.2, name, row.4)
            }
        };
        let after = u64::try_from(u128::from(before) * part / 100).ok()?;
        let within = |value: u64| (low..=high).contains(&(value as f64 / factor));
        if after == before || !within(after) {
            return None;
        }
        turned.grid.technology = match self {
            Self::Process(constant) => technology.with(constant, after),
            Self::Memory(constant) => {
                let generation = technology.generation(&setup.request.space.memory)?;
                technology.with_memory(generation, constant, after)
            }
        };
        let values = [before, after].map(|value| value as f64 / factor);
        Some(Turned { assumption: self, percent, name, values, unit, setup: turned })
    }

    /// Whether times, or energies where these are compared, may change with it.
    pub fn changes_plans(self, setup: &ChipSetup) -> bool {
        let energies = setup.request.objective == Objective::EnergyPerToken
            || setup.request.power_cap_w.is_some();
        let times = matches!(
            self,
            Self::Process(Constant::NominalClock)
                | Self::Memory(MemoryConstant::Size | MemoryConstant::Rate)
        );
        energies || times
    }
}

/// Whether a chip takes something else in another technology of what is limited or asked for.
fn differ(setup: &ChipSetup, other: &ChipSetup, point: &ChipPoint) -> bool {
    let priced = setup.grid.budget.price.is_some();
    let energies =
        setup.request.objective == Objective::EnergyPerToken || setup.request.power_cap_w.is_some();
    let takes = |setup: &ChipSetup| {
        let knobs = setup.knobs(point);
        let figures = setup.figures(&knobs)?;
        let price = if priced { figures.cost.total().0 } else { 0 };
        let built = knobs.accelerator(&setup.grid.technology, &setup.physics).ok();
        let factor =
            setup.footprint(&knobs).and_then(|taken| setup.request.objective.factor(taken));
        Some((figures.die.total(), figures.tdp.total(), price, factor))
            .map(|taken| (taken, built.filter(|_| energies)))
    };
    takes(setup) != takes(other)
}

/// Chips in another technology, whose times are those that are known.
pub struct Reassumed<'a> {
    /// Their times.
    pub objective: &'a ByObjective<'a>,
    /// What they take.
    pub setup: &'a ChipSetup,
}

impl Reassumed<'_> {
    fn greatest(&self, boxes: &[ChipRegion]) -> Greatest {
        Greatest::of(self.setup, boxes, |point| self.fits(point))
    }

    fn least_of(&self, boxes: &[ChipRegion]) -> Option<Least> {
        boxes.iter().filter_map(|region| self.least(&region.lo)).reduce(Least::min)
    }

    fn least(&self, point: &ChipPoint) -> Option<Least> {
        let objective = self.objective.judge.objective;
        let taken = self.setup.footprint_for(objective, &self.setup.knobs(point))?;
        Some(Least { taken, place: self.place(point) })
    }
}

impl BoxProblem<N_CHIP_KNOBS> for Reassumed<'_> {
    passed_on!(rises);

    fn fits(&self, point: &ChipPoint) -> bool {
        let grid = &self.setup.grid;
        grid.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    }
    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        self.objective.bound_taking(region, self.least(&region.lo)?)
    }
    fn corner(&self, boxes: &[ChipRegion], limit: Option<Value>) -> Corner {
        match self.least_of(boxes) {
            Some(least) => {
                self.objective.corner_taking((boxes, &self.greatest(boxes)), least, limit)
            }
            None => Corner::Nothing,
        }
    }
    fn guess(&self, boxes: &[ChipRegion], like: &KeptChip, worst: Value) -> f64 {
        let Some(least) = self.least_of(boxes) else { return f64::INFINITY };
        self.objective.guess_taking((boxes, &self.greatest(boxes)), least, like)
            / (worst.first as f64).max(1.0)
    }
    fn evaluate(&self, point: &ChipPoint, limit: Option<Value>) -> Evaluation<Vec<Chosen>> {
        match self.least(point) {
            Some(least) => self.objective.evaluate_taking(point, least, limit),
            None => Evaluation::Nothing,
        }
    }
}

/// The best chip under one assumption.
#[derive(Clone, Debug)]
pub struct Robust {
    /// The assumption.
    pub turned: Turned,
    /// The best, and what it is worth; `None` where nothing fits.
    pub best: Option<(ChipPoint, Value)>,
    /// What the winner of the request is worth under it; `None` where it takes too much.
    pub winner: Option<Value>,
}

/// Why winners under other assumptions are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unturned {
    /// Somebody ended what was under way.
    Ended,
    /// What was recalled of this chip is not what is found.
    Disbelieved(String),
}

/// What is known of chips under one assumption, kept beside what is known of those of the request.
struct Under<'a> {
    memory: &'a dyn Memory,
    assumption: String,
    recalls: AtomicBool,
}

impl Under<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}/{key}", self.assumption)
    }
}

impl Memory for Under<'_> {
    fn recall(&self, key: &str) -> Option<&str> {
        let known = self.memory.recall(&self.key(key))?;
        self.recalls.store(true, Ordering::Relaxed);
        Some(known)
    }
    fn remember(&self, key: &str, fact: &str) {
        self.memory.remember(&self.key(key), fact);
    }
    fn fails(&self) -> bool {
        self.memory.fails()
    }
}

/// The best chip under every assumption, beside a winner; what is found is remembered as the search itself
/// remembers it.
///
/// # Errors
/// That the observer ended it, or that what was recalled is not what is found.
pub fn survey_robust(
    evaluator: &ChipEvaluator,
    (judged, winner): (&Judge, &Kept<N_CHIP_KNOBS, Vec<Chosen>>),
    observer: &dyn Observer,
) -> Result<Vec<Robust>, Unturned> {
    let setup = evaluator.setup;
    let models: Vec<usize> = (0..setup.models.len()).collect();
    let mut found = Vec::new();
    let all = Assumption::turned(setup);
    let count = all.len();
    for (at, turned) in all.into_iter().enumerate() {
        let assumption = format!("{} {:+} %", turned.name, turned.percent);
        let what = format!("assumption {} of {count}: {assumption}", at + 1);
        let memory =
            Under { memory: evaluator.memory(), assumption, recalls: AtomicBool::new(false) };
        let own;
        let evaluator = if turned.assumption.changes_plans(setup) {
            own = ChipEvaluator::new(&turned.setup, &memory).map_err(|_| Unturned::Ended)?;
            &own
        } else {
            evaluator
        };
        let judge =
            Judge { devices_per_second: turned.setup.devices_per_second(), ..judged.clone() };
        let objective = ByObjective { evaluator, models: models.clone(), judge: &judge };
        let problem = Reassumed { objective: &objective, setup: &turned.setup };
        let ours = problem.fits(&winner.point).then(|| problem.evaluate(&winner.point, None));
        let known: Vec<Kept<N_CHIP_KNOBS, Vec<Chosen>>> = match ours {
            Some(Evaluation::Found(value, found)) => {
                vec![Kept { point: winner.point, value, found }]
            }
            _ => Vec::new(),
        };
        let ours = known.first().map(|kept| kept.value);
        let whole = ChipRegion::whole(problem.lens());
        let walked = walk(&problem, whole, (1, known), &what, observer);
        if !walked.complete() {
            return Err(Unturned::Ended);
        }
        if memory.recalls.load(Ordering::Relaxed) {
            let told = walked.kept.iter().map(|kept| kept.point).collect();
            evaluator.finds_again(&told).map_err(Unturned::Disbelieved)?;
        }
        let best = walked.kept.first().map(|kept| (kept.point, kept.value));
        found.push(Robust { turned, best, winner: ours });
    }
    Ok(found)
}
