//! The search itself: every size of off-chip memory walked and proved, for each model alone where
//! there are several, and then for all together.

use super::Setup;
use super::evaluator::Evaluator;
use super::fact::Fact;
use super::objective::Certainty;
use super::objective::Judge;
use super::objective::Objective;
use super::objective::Stake;
use super::part::Part;
use super::walk::Evaluation;
use super::walk::Keep;
use super::walk::Landscape;
use super::walk::Merit;
use super::walk::Observer;
use super::walk::Peers;
use super::walk::Walk;
use super::walk::walk_among;
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
    /// By size of off-chip memory: what became of designs that have no row; empty where all have one.
    pub unlisted: Vec<Unlisted>,
}

/// How many designs without a row became what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// Even the bound of their box is worse than what is kept.
    pub pruned: usize,
    /// Looked at, and worse than what is kept.
    pub beaten: usize,
    /// Nothing fits on them.
    pub infeasible: usize,
    /// Not looked at.
    pub open: usize,
    /// The least value that any design of unknown value in a box of several could have; 0 where nothing is
    /// known of it.
    pub left: Option<u128>,
}

impl Unlisted {
    /// How many there are.
    pub fn designs(&self) -> usize {
        self.pruned + self.beaten + self.infeasible + self.open
    }

    /// Something unknown may have this value.
    pub fn least(&mut self, value: u128) {
        self.left = Some(self.left.map_or(value, |known| known.min(value)));
    }
}

/// Searches everything that the request asks for, over the designs that have a row.
pub fn survey(setup: &Setup, memory: &dyn Memory, observer: &dyn Observer) -> Survey {
    let designs = Part::WHOLE.designs(setup.candidates.len());
    let evaluator = Evaluator::new(setup);
    let peers = &();
    let search = Search { evaluator: &evaluator, designs, memory, peers, observer };
    let mut judge = judge(setup);
    let mut own_best = Vec::new();
    let mut complete = true;
    if judge.stakes.len() > 1 {
        for model in 0..judge.stakes.len() {
            let walks = search.alone(model, &judge);
            complete &= walks.iter().all(|walk| walk.complete);
            let best = best_of(&walks).map(|(_, chosen)| chosen[0].standing);
            let area = best_area(&walks);
            let cost = best.map(|standing| Judge::cost(judge.objective, standing, area));
            judge.stakes[model].own_best = cost.unwrap_or(1.0);
            own_best.push(best);
        }
    }
    let walks = search.together(&judge);
    complete &= walks.iter().all(|walk| walk.complete);
    if own_best.is_empty() {
        own_best.push(best_of(&walks).map(|(_, chosen)| chosen[0].standing));
    }
    Survey { judge, walks, own_best, complete, unlisted: Vec::new() }
}

/// How the models of a request are judged together; own bests are not known yet.
pub(super) fn judge(setup: &Setup) -> Judge {
    let sequences = setup.request.global_batch as f64;
    let models = setup.trainings.iter().zip(&setup.request.models);
    let stakes = models.map(|(training, asked)| {
        let tokens = sequences * training.sequence as f64;
        Stake { weight: asked.weight, sequences, tokens, own_best: 1.0 }
    });
    Judge {
        objective: setup.request.objective,
        combine: setup.request.combine,
        stakes: stakes.collect(),
        devices_per_second: 1.0,
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

pub(super) fn best_area(walks: &[Walk<Vec<Chosen>>]) -> Area {
    let area = best_of(walks).map_or(1, |(merit, _)| merit.area);
    Area(u64::try_from(area).expect("areas of designs have 64 bits"))
}

/// The walks over some designs of a space, with who remembers, hears and looks on.
pub(super) struct Search<'a> {
    pub evaluator: &'a Evaluator<'a>,
    /// Ascending.
    pub designs: Vec<usize>,
    pub memory: &'a dyn Memory,
    pub peers: &'a dyn Peers,
    pub observer: &'a dyn Observer,
}

impl Search<'_> {
    /// One model alone, by size of off-chip memory.
    pub fn alone(&self, model: usize, judge: &Judge) -> Vec<Walk<Vec<Chosen>>> {
        let alone = Judge { stakes: vec![judge.stakes[model]], ..judge.clone() };
        let keep = Keep { top: 1, front: false, all: false };
        View { search: self, models: vec![model], judge: &alone }.walk_all(keep)
    }

    /// All models together, by size of off-chip memory.
    pub fn together(&self, judge: &Judge) -> Vec<Walk<Vec<Chosen>>> {
        let request = &self.evaluator.setup.request;
        let keep = Keep { top: request.top, front: request.pareto, all: request.exhaustive };
        let models = (0..judge.stakes.len()).collect();
        View { search: self, models, judge }.walk_all(keep)
    }
}

/// Some models on all designs of a search, seen by one judge.
struct View<'a> {
    search: &'a Search<'a>,
    models: Vec<usize>,
    judge: &'a Judge,
}

impl View<'_> {
    fn walk_all(&self, keep: Keep) -> Vec<Walk<Vec<Chosen>>> {
        let Search { evaluator, memory, peers, observer, .. } = *self.search;
        let setup = evaluator.setup;
        (0..setup.hbm_sizes().len())
            .map(|hbm| {
                let names: Vec<&str> =
                    self.models.iter().map(|&model| setup.trainings[model].name.as_str()).collect();
                let gib = setup.request.space.hbm_gib[hbm];
                let what = format!("{} with {gib} GiB", names.join(", "));
                let stopping = Stopping { observer, memory };
                let name = format!("{:?}/{hbm}", self.models);
                let landscape = AtHbm { view: self, hbm };
                walk_among(&landscape, keep, (&name, peers), (&what, &stopping))
            })
            .collect()
    }

    /// What bounds must tell: energy only where it decides something.
    fn figures(&self) -> Figures {
        let request = &self.search.evaluator.setup.request;
        if request.pareto || request.objective == Objective::EnergyPerToken {
            Figures::TimeAndEnergy
        } else {
            Figures::Time
        }
    }

    /// What is known or can be found of one model on one candidate, where ways to train that are
    /// slower than `limit` need not be known.
    fn chosen(&self, model: usize, at: (usize, usize), limit: Option<Time>) -> Fact {
        let Search { evaluator, memory, .. } = self.search;
        let key = Fact::key(model, at.1, at.0);
        // A fact that does not read as one is found again.
        let recalled = memory.recall(&key).and_then(|fact| serde_json::from_str(fact).ok());
        if let Some(known) = recalled.and_then(|known: Fact| known.within(limit)) {
            return known;
        }
        let known = match evaluator.best_within(model, at, limit) {
            Within::Best(best) => Fact::Chosen(Box::new(best.chosen)),
            Within::Slower(limit) => Fact::Slower(limit),
            Within::Nothing => Fact::Nothing,
        };
        let fact = serde_json::to_string(&known).expect("plain figures can be written");
        memory.remember(&key, &fact);
        known
    }

    /// The longest time of one model with which a design may still be no worse than `limit`, where
    /// the others stand as given; `None` where every time is wanted.
    fn longest(&self, limit: Option<u128>, of: (usize, &[Standing], Area)) -> Option<Time> {
        let (model, standings, area) = of;
        let terms = &self.search.evaluator.setup.terms;
        let limit = limit.filter(|_| terms.price == Price::Time && terms.power_cap_w.is_none())?;
        Some(self.judge.longest(limit, model, standings, area))
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
        self.view.search.designs.len()
    }

    fn bound(&self, candidate: usize) -> Option<Merit> {
        let Search { evaluator, designs, .. } = self.view.search;
        let design = designs[candidate];
        let chip = evaluator.setup.chip(design, self.hbm);
        let figures = self.view.figures();
        let models = self.view.models.iter();
        let standings: Option<Vec<Standing>> =
            models.map(|&model| evaluator.optimistic(model, &chip, figures)).collect();
        let area = evaluator.setup.areas[design];
        Some(self.view.judge.merit(&standings?, area, Certainty::Bound))
    }

    fn evaluate(&self, candidate: usize, limit: Option<u128>) -> Evaluation<Vec<Chosen>> {
        let View { search, judge, models } = self.view;
        let Search { evaluator, designs, .. } = search;
        let design = designs[candidate];
        let area = evaluator.setup.areas[design];
        let chip = evaluator.setup.chip(design, self.hbm);
        // What is not known yet stands at its bound.
        let bounds = models.iter().map(|&model| evaluator.optimistic(model, &chip, Figures::Time));
        let Some(mut standings) = bounds.collect::<Option<Vec<Standing>>>() else {
            return Evaluation::Nothing;
        };
        let mut found = Vec::with_capacity(models.len());
        for (at, &model) in models.iter().enumerate() {
            let longest = self.view.longest(limit, (at, &standings, area));
            match self.view.chosen(model, (design, self.hbm), longest) {
                Fact::Chosen(chosen) => {
                    standings[at] = chosen.standing;
                    found.push(*chosen);
                }
                Fact::Slower(_) => return Evaluation::Beyond,
                Fact::Nothing => return Evaluation::Nothing,
            }
        }
        Evaluation::Found(judge.merit(&standings, area, Certainty::Fact), found)
    }
}

/// Stops when the observer says so, and when facts can no longer be kept.
pub(super) struct Stopping<'a> {
    pub observer: &'a dyn Observer,
    pub memory: &'a dyn Memory,
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
