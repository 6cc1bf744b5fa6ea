//! The search itself: every size of off-chip memory walked and proved, for each model alone where
//! there are several, and then for all together.

use serde::Deserialize;
use serde::Serialize;

use super::Setup;
use super::evaluator::Evaluator;
use super::objective::Certainty;
use super::objective::Judge;
use super::objective::Objective;
use super::objective::Stake;
use super::walk::Evaluation;
use super::walk::Keep;
use super::walk::Landscape;
use super::walk::Merit;
use super::walk::Observer;
use super::walk::Walk;
use super::walk::walk;
use crate::strategy::Chosen;
use crate::strategy::Figures;
use crate::strategy::Price;
use crate::strategy::Standing;
use crate::strategy::Within;
use crate::units::Area;
use crate::units::Time;

/// What outlives a search that is cut short.
pub trait Memory: Sync {
    /// What is known under `key` from before.
    fn recall(&self, key: &str) -> Option<&str>;
    /// Keeps a fact for later.
    fn remember(&self, key: &str, fact: &str);
    /// Whether facts can no longer be kept.
    fn fails(&self) -> bool;
}

/// Nothing outlives the search.
impl Memory for () {
    fn recall(&self, _key: &str) -> Option<&str> {
        None
    }
    fn remember(&self, _key: &str, _fact: &str) {}
    fn fails(&self) -> bool {
        false
    }
}

/// What is known at the end of a search.
#[derive(Clone, Debug)]
pub struct Survey {
    /// How designs were judged.
    pub judge: Judge,
    /// By size of off-chip memory; candidates are numbered as [`Setup::candidates`]. What is found
    /// is one [`Chosen`] for each model.
    pub walks: Vec<Walk<Vec<Chosen>>>,
    /// Each model's own best throughput; `None` where it fits nowhere, or the search was stopped.
    pub own_best: Vec<Option<Standing>>,
    /// Whether nothing was stopped early.
    pub complete: bool,
}

/// Searches everything that the request asks for.
pub fn survey(setup: &Setup, memory: &dyn Memory, observer: &dyn Observer) -> Survey {
    let evaluator = Evaluator::new(setup);
    let everything: Vec<usize> = (0..setup.trainings.len()).collect();
    let mut judge = judge(setup, &everything);
    let mut own_best = Vec::new();
    let mut complete = true;
    if everything.len() > 1 {
        for &model in &everything {
            let alone = Judge { stakes: vec![judge.stakes[model]], ..judge.clone() };
            let view = View { evaluator: &evaluator, memory, models: vec![model], judge: &alone };
            let keep = Keep { top: 1, front: false, all: false };
            let walks = view.walk_all(keep, observer);
            complete &= walks.iter().all(|walk| walk.complete);
            let best = best_of(&walks).map(|(_, chosen)| chosen[0].standing);
            let area = best_area(&walks);
            let cost = best.map(|standing| Judge::cost(judge.objective, standing, area));
            judge.stakes[model].own_best = cost.unwrap_or(1.0);
            own_best.push(best);
        }
    }
    let request = &setup.request;
    let keep = Keep { top: request.top, front: request.pareto, all: request.exhaustive };
    let view = View { evaluator: &evaluator, memory, models: everything, judge: &judge };
    let walks = view.walk_all(keep, observer);
    complete &= walks.iter().all(|walk| walk.complete);
    if own_best.is_empty() {
        own_best.push(best_of(&walks).map(|(_, chosen)| chosen[0].standing));
    }
    Survey { judge, walks, own_best, complete }
}

/// How the given models are judged together; own bests are not known yet.
fn judge(setup: &Setup, models: &[usize]) -> Judge {
    let sequences = setup.request.global_batch as f64;
    let stakes = models.iter().map(|&model| {
        let training = &setup.trainings[model];
        let tokens = sequences * training.sequence as f64;
        let weight = setup.request.models[model].weight;
        Stake { weight, sequences, tokens, own_best: 1.0 }
    });
    Judge {
        objective: setup.request.objective,
        combine: setup.request.combine,
        stakes: stakes.collect(),
    }
}

/// The best of all walks: its merit and what was found. Among equals the smaller area wins, then
/// the smaller memory, then the fewer devices, then the first.
pub fn best_of(walks: &[Walk<Vec<Chosen>>]) -> Option<(Merit, &Vec<Chosen>)> {
    best_place(walks).and_then(|(walk, candidate)| {
        let (_, merit, chosen) = walks[walk].evaluated().find(|(at, _, _)| *at == candidate)?;
        Some((*merit, chosen))
    })
}

/// Where the best of all walks is: the walk and the candidate.
pub fn best_place(walks: &[Walk<Vec<Chosen>>]) -> Option<(usize, usize)> {
    let all = walks.iter().enumerate().flat_map(|(at, walk)| {
        walk.evaluated().map(move |(candidate, merit, chosen)| {
            let devices: u64 = chosen.iter().map(|chosen| chosen.devices).sum();
            ((merit.value, merit.area, at, devices, candidate), (at, candidate))
        })
    });
    all.min_by_key(|(key, _)| *key).map(|(_, place)| place)
}

fn best_area(walks: &[Walk<Vec<Chosen>>]) -> Area {
    let area = best_of(walks).map_or(1, |(merit, _)| merit.area);
    Area(u64::try_from(area).expect("areas of designs have 64 bits"))
}

/// Some models on all designs, seen by one judge.
struct View<'a> {
    evaluator: &'a Evaluator<'a>,
    memory: &'a dyn Memory,
    models: Vec<usize>,
    judge: &'a Judge,
}

impl View<'_> {
    fn walk_all(&self, keep: Keep, observer: &dyn Observer) -> Vec<Walk<Vec<Chosen>>> {
        let setup = self.evaluator.setup;
        (0..setup.hbm_sizes().len())
            .map(|hbm| {
                let names: Vec<&str> =
                    self.models.iter().map(|&model| setup.trainings[model].name.as_str()).collect();
                let gib = setup.request.space.hbm_gib[hbm];
                let what = format!("{} with {gib} GiB", names.join(", "));
                let stopping = Stopping { observer, memory: self.memory };
                walk(&AtHbm { view: self, hbm }, keep, &what, &stopping)
            })
            .collect()
    }

    /// What bounds must tell: energy only where it decides something.
    fn figures(&self) -> Figures {
        let request = &self.evaluator.setup.request;
        if request.pareto || request.objective == Objective::EnergyPerToken {
            Figures::TimeAndEnergy
        } else {
            Figures::Time
        }
    }

    /// What is known or can be found of one model on one candidate, where ways to train that are
    /// slower than `limit` need not be known.
    fn chosen(&self, model: usize, at: (usize, usize), limit: Option<Time>) -> Known {
        let key = format!("{model}/{}/{}", at.1, at.0);
        // A fact that does not read as one is found again.
        let recalled = self.memory.recall(&key).and_then(|fact| serde_json::from_str(fact).ok());
        if let Some(known) = recalled.and_then(|known: Known| known.within(limit)) {
            return known;
        }
        let known = match self.evaluator.best_within(model, at, limit) {
            Within::Best(best) => Known::Chosen(Box::new(best.chosen)),
            Within::Slower(limit) => Known::Slower(limit),
            Within::Nothing => Known::Nothing,
        };
        let fact = serde_json::to_string(&known).expect("plain figures can be written");
        self.memory.remember(&key, &fact);
        known
    }

    /// The longest time of one model with which a design may still be no worse than `limit`, where
    /// the others stand as given; `None` where every time is wanted.
    fn longest(&self, limit: Option<u128>, of: (usize, &[Standing], Area)) -> Option<Time> {
        let (model, standings, area) = of;
        let terms = &self.evaluator.setup.terms;
        let limit = limit.filter(|_| terms.price == Price::Time && terms.power_cap_w.is_none())?;
        let mut standings = standings.to_vec();
        let mut is_within = |time: u64| {
            standings[model].time = Time(time);
            self.judge.merit(&standings, area, Certainty::Bound).value <= limit
        };
        // Invariant: what takes less than `low` is within the limit, what takes `high` is not.
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low.midpoint(high);
            if is_within(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(Time(low.saturating_sub(1)))
    }
}

/// What is known of one model on one candidate, as journals keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Known {
    /// The best way to train.
    Chosen(Box<Chosen>),
    /// Every way to train is slower than this.
    Slower(Time),
    /// Nothing fits.
    Nothing,
}

impl Known {
    /// What is to be said where ways to train that are slower than `limit` need not be known;
    /// `None` where this does not tell.
    fn within(self, limit: Option<Time>) -> Option<Self> {
        match (self, limit) {
            (Self::Chosen(chosen), Some(limit)) if chosen.standing.time > limit => {
                Some(Self::Slower(limit))
            }
            (Self::Slower(known), Some(limit)) => (known >= limit).then_some(Self::Slower(limit)),
            // Under a limit, whether something slower fits is not looked for.
            (Self::Slower(_), None) | (Self::Nothing, Some(_)) => None,
            (known, _) => Some(known),
        }
    }
}

/// All candidates with one size of off-chip memory.
struct AtHbm<'a> {
    view: &'a View<'a>,
    hbm: usize,
}

impl Landscape for AtHbm<'_> {
    type Found = Vec<Chosen>;

    fn n_candidates(&self) -> usize {
        self.view.evaluator.setup.candidates.len()
    }

    fn bound(&self, candidate: usize) -> Option<Merit> {
        let evaluator = self.view.evaluator;
        let chip = evaluator.setup.chip(candidate, self.hbm);
        let figures = self.view.figures();
        let models = self.view.models.iter();
        let standings: Option<Vec<Standing>> =
            models.map(|&model| evaluator.optimistic(model, &chip, figures)).collect();
        let area = evaluator.setup.areas[candidate];
        Some(self.view.judge.merit(&standings?, area, Certainty::Bound))
    }

    fn evaluate(&self, candidate: usize, limit: Option<u128>) -> Evaluation<Vec<Chosen>> {
        let View { evaluator, judge, models, .. } = self.view;
        let area = evaluator.setup.areas[candidate];
        let chip = evaluator.setup.chip(candidate, self.hbm);
        // What is not known yet stands at its bound.
        let bounds = models.iter().map(|&model| evaluator.optimistic(model, &chip, Figures::Time));
        let Some(mut standings) = bounds.collect::<Option<Vec<Standing>>>() else {
            return Evaluation::Nothing;
        };
        let mut found = Vec::with_capacity(models.len());
        for (at, &model) in models.iter().enumerate() {
            let longest = self.view.longest(limit, (at, &standings, area));
            match self.view.chosen(model, (candidate, self.hbm), longest) {
                Known::Chosen(chosen) => {
                    standings[at] = chosen.standing;
                    found.push(*chosen);
                }
                Known::Slower(_) => return Evaluation::Beyond,
                Known::Nothing => return Evaluation::Nothing,
            }
        }
        Evaluation::Found(judge.merit(&standings, area, Certainty::Fact), found)
    }
}

/// Stops when the observer says so, and when facts can no longer be kept.
struct Stopping<'a> {
    observer: &'a dyn Observer,
    memory: &'a dyn Memory,
}

impl Observer for Stopping<'_> {
    fn begins(&self, what: &str) {
        self.observer.begins(what);
    }
    fn bounded(&self, what: &str, done: usize, of: usize) {
        self.observer.bounded(what, done, of);
    }
    fn evaluated(&self, what: &str, left: usize) {
        self.observer.evaluated(what, left);
    }
    fn stops(&self) -> bool {
        self.memory.fails() || self.observer.stops()
    }
}

impl Judge {
    /// The figure of `value` if every schedule that is not proved ended at its bound: each leaves
    /// the value uncertain by the same part as its price. `None` where all is proved.
    pub fn least_value(&self, value: u128, price: Price, chosen: &[Chosen]) -> Option<f64> {
        let least = chosen.iter().map(|chosen| chosen.certain_part(price)).fold(1.0, f64::min);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a value is a value; a float holds more digits than are told"
        )]
        (least < 1.0).then(|| self.figure((value as f64 * least) as u128))
    }
}
