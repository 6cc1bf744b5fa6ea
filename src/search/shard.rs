//! The search of one part of a space, whose facts are joined with those of the other parts later.
//!
//! What is joined are facts alone: whoever has those of all parts walks the whole space once more with
//! them ([`survey`](super::survey())) and evaluates what is missing, so that the answer does not depend
//! on how the space was parted nor on what parts told each other.

use serde::Deserialize;
use serde::Serialize;

use super::Setup;
use super::evaluator::Evaluator;
use super::objective::Judge;
use super::part::Part;
use super::survey::Memory;
use super::survey::Search;
use super::survey::best_place;
use super::survey::judge;
use super::walk::Observer;
use super::walk::Peers;
use super::walk::Status;
use super::walk::Walk;
use crate::strategy::Chosen;
use crate::units::Area;

/// Which walks a part makes.
#[derive(Clone, Debug)]
pub enum Round<'a> {
    /// Every model alone: where there are several, each must know its own best first.
    Alone,
    /// All models together; given is the best of each alone over all parts, where there are several.
    Together(&'a [Option<PartBest>]),
}

/// What was done with a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSurvey {
    /// How many designs it holds.
    pub designs: usize,
    /// Its walks, in the order in which they were made.
    pub walks: Vec<PartWalk>,
    /// Whether nothing was stopped early.
    #[serde(skip)]
    pub complete: bool,
}

/// What became of the designs of a part with one size of off-chip memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartWalk {
    /// Which models were trained, by their place in the request.
    pub models: Vec<usize>,
    /// The size of off-chip memory.
    pub hbm_gib: u64,
    /// Designs whose best way to train is known.
    pub evaluated: usize,
    /// Designs that were looked at and are worse by more than 2 %.
    pub beaten: usize,
    /// Designs whose bound is worse than what this part or another kept.
    pub pruned: usize,
    /// Designs on which nothing fits.
    pub infeasible: usize,
    /// The least bound of those that were pruned, by the objective, in its own unit.
    pub least_pruned_bound: Option<u128>,
    /// The best that was evaluated.
    pub best: Option<PartBest>,
}

/// The best design of a part; less is better, from the first figure on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartBest {
    /// Its value by the objective, in its own unit.
    pub value: u128,
    /// Its area in square nanometres.
    pub area_nm2: u64,
    /// The place of its size of off-chip memory in the request.
    pub hbm: usize,
    /// Devices in use.
    pub devices: u64,
    /// Its number.
    pub design: usize,
    /// Picoseconds and femtojoules of a batch of the first model.
    pub standing: (u64, u128),
}

/// Some models, and their walks by size of off-chip memory.
type Walked = (Vec<usize>, Vec<Walk<Vec<Chosen>>>);

/// Searches one part of the space that a request asks for.
pub fn survey_part(
    setup: &Setup,
    part: Part,
    round: &Round,
    (memory, peers): (&dyn Memory, &dyn Peers),
    observer: &dyn Observer,
) -> PartSurvey {
    let designs = part.designs(setup.candidates.len());
    let evaluator = Evaluator::of_designs(setup, &designs);
    let n_designs = designs.len();
    let search = Search { evaluator: &evaluator, designs, memory, peers, observer };
    let mut judge = judge(setup);
    let models = 0..judge.stakes.len();
    let walks: Vec<Walked> = match round {
        Round::Alone => models.map(|model| (vec![model], search.alone(model, &judge))).collect(),
        Round::Together(own) => {
            for (stake, own) in judge.stakes.iter_mut().zip(*own) {
                stake.own_best = own.map_or(1.0, |own| own.cost(judge.objective));
            }
            vec![(models.collect(), search.together(&judge))]
        }
    };
    let told = walks.iter().flat_map(|(models, by_hbm)| {
        by_hbm.iter().enumerate().map(|(hbm, walk)| told(&search, models, (hbm, walk)))
    });
    PartSurvey {
        designs: n_designs,
        walks: told.collect(),
        complete: walks.iter().flat_map(|(_, walks)| walks).all(|walk| walk.complete),
    }
}

impl PartBest {
    fn cost(&self, objective: super::Objective) -> f64 {
        let standing = crate::strategy::Standing {
            time: crate::units::Time(self.standing.0),
            energy: crate::units::Energy(self.standing.1),
        };
        Judge::cost(objective, standing, Area(self.area_nm2))
    }
}

impl PartSurvey {
    /// The best of one model alone in this part.
    pub fn best_alone(&self, model: usize) -> Option<PartBest> {
        self.walks.iter().filter(|walk| walk.models == [model]).filter_map(|walk| walk.best).min()
    }
}

fn told(search: &Search, models: &[usize], (hbm, walk): (usize, &Walk<Vec<Chosen>>)) -> PartWalk {
    let count = |wanted: fn(&Status<Vec<Chosen>>) -> bool| {
        walk.statuses.iter().filter(|status| wanted(status)).count()
    };
    let best = best_place(std::slice::from_ref(walk)).and_then(|(_, place)| {
        let (_, merit, chosen) = walk.evaluated().find(|(at, _, _)| *at == place)?;
        let first = chosen.first()?.standing;
        Some(PartBest {
            value: merit.value,
            area_nm2: u64::try_from(merit.area).ok()?,
            hbm,
            devices: chosen.iter().map(|chosen| chosen.devices).sum(),
            design: search.designs[place],
            standing: (first.time.0, first.energy.0),
        })
    });
    PartWalk {
        models: models.to_vec(),
        hbm_gib: search.evaluator.setup.request.space.hbm_gib[hbm],
        evaluated: count(|status| matches!(status, Status::Evaluated(..))),
        beaten: count(|status| matches!(status, Status::Beaten)),
        pruned: count(|status| matches!(status, Status::Pruned)),
        infeasible: count(|status| matches!(status, Status::Infeasible)),
        least_pruned_bound: walk.best_bound_left(),
        best,
    }
}
