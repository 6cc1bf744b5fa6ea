//! The search of one part of a grid of chips, and the walks of all parts joined to those of the whole.
//!
//! A part is walked as the whole would be, box by box. What is kept may lie elsewhere: whatever others, or a climb
//! over the whole grid, found to be better serves as the limit. So a closed box says that none of its chips is better
//! than something that is known, and the boxes of all parts, joined, prove the best of what all parts keep, wherever
//! a part heard of it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::ChipPoint;
use super::ChipRegion;
use super::ClosedChips;
use super::KeptChip;
use super::evaluator::ChipEvaluator;
use super::near::NearFigure;
use super::near::Nearly;
use super::objective::ByObjective;
use super::survey::ChipWalk;
use super::survey::alone_judge;
use super::survey::judge_of;
use super::survey::nearly_as_good;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Observer;
use crate::search::Part;
use crate::search::boxes::BoxPeers;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Kept;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::search::boxes::rest_on;
use crate::search::boxes::walk_apart;
use crate::strategy::Chosen;

/// What a walk looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// The best chip for one model alone.
    Alone(usize),
    /// The best chips for all models.
    Together,
    /// The chip that takes least of a figure among those nearly as good.
    Near(NearFigure),
}

/// Which walks a part makes; given is what all parts found in the rounds before.
#[derive(Clone, Copy, Debug)]
pub enum ChipRound<'a> {
    /// Every model alone, where there are several.
    Alone,
    /// All models together, where each has its own best.
    Together(&'a [Option<KeptChip>]),
    /// Chips nearly as good as the best of all; none where nothing fits.
    Near(&'a [Option<KeptChip>], Option<&'a KeptChip>),
}

/// A chip that is kept, as files hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldChip {
    /// Where it stands.
    pub point: ChipPoint,
    /// What it is worth: its three figures.
    pub value: (u128, u128, u128),
    /// How each model is trained on it.
    pub found: Vec<Chosen>,
}

impl ToldChip {
    /// As it is written.
    pub fn of(kept: &KeptChip) -> Self {
        let Value { first, second, place } = kept.value;
        Self { point: kept.point, value: (first, second, place), found: kept.found.clone() }
    }

    /// As it is used; `None` where there is no such chip in a grid of such lists, or where so many models are
    /// not trained so on so many devices.
    pub fn kept(
        self,
        lens: [u16; N_CHIP_KNOBS],
        (models, devices): (usize, u64),
    ) -> Option<KeptChip> {
        let stands = self.point.iter().zip(lens).all(|(&place, len)| place < len);
        let sound = |chosen: &Chosen| {
            let strategy = &chosen.strategy;
            let used = strategy.data_parallel.checked_mul(strategy.pipeline);
            used.is_some_and(|used| (1..=devices).contains(&used))
        };
        let trained = self.found.len() == models && self.found.iter().all(sound);
        let (first, second, place) = self.value;
        let value = Value { first, second, place };
        (stands && trained).then_some(Kept { point: self.point, value, found: self.found })
    }
}

/// Others who search other parts of the same grid at the same time.
pub trait ChipPeers: Sync {
    /// What the others keep by now in the walk of this name.
    fn heard(&self, walk: &str) -> Vec<ToldChip>;
    /// Tells the others what this walk keeps by now.
    fn tell(&self, walk: &str, kept: &[ToldChip]);
    /// Takes the turn to look for a good chip to begin with; waits while another has it, unless `stops` says so.
    fn takes_turn(&self, _stops: &dyn Fn() -> bool) {}
    /// Ends the turn.
    fn ends_turn(&self) {}
}

/// Nobody else searches.
impl ChipPeers for () {
    fn heard(&self, _walk: &str) -> Vec<ToldChip> {
        Vec::new()
    }
    fn tell(&self, _walk: &str, _kept: &[ToldChip]) {}
}

/// What is heard of one walk.
struct HeardWalk<'a> {
    peers: &'a dyn ChipPeers,
    walk: String,
    lens: [u16; N_CHIP_KNOBS],
    /// Models that count, and devices at hand.
    trained: (usize, u64),
}

impl BoxPeers<N_CHIP_KNOBS, Vec<Chosen>> for HeardWalk<'_> {
    fn heard(&self) -> Vec<KeptChip> {
        let told = self.peers.heard(&self.walk).into_iter();
        told.filter_map(|told| told.kept(self.lens, self.trained)).collect()
    }
    fn tell(&self, kept: &dyn Fn() -> Vec<KeptChip>) {
        let told: Vec<ToldChip> = kept().iter().map(ToldChip::of).collect();
        self.peers.tell(&self.walk, &told);
    }
    fn takes_turn(&self, stops: &dyn Fn() -> bool) {
        self.peers.takes_turn(stops);
    }
    fn ends_turn(&self) {
        self.peers.ends_turn();
    }
}

/// Searches one part of the grid.
pub fn survey_chip_part(
    evaluator: &ChipEvaluator,
    part: Part,
    round: &ChipRound,
    (peers, observer): (&dyn ChipPeers, &dyn Observer),
) -> Vec<(Aim, ChipWalk)> {
    let setup = evaluator.setup;
    let everything: Vec<usize> = (0..setup.models.len()).collect();
    let walking = Walking { evaluator, boxes: part.boxes(&setup.grid), peers, observer };
    match round {
        ChipRound::Alone => everything
            .into_iter()
            .map(|model| {
                let judge = alone_judge(setup, model);
                let problem = ByObjective { evaluator, models: vec![model], judge: &judge };
                let aim = Aim::Alone(model);
                (aim, walking.walk(&problem, aim, (1, Vec::new()), 1))
            })
            .collect(),
        ChipRound::Together(own) => {
            let judge = judge_of(setup, own);
            let models = everything.len();
            let problem = ByObjective { evaluator, models: everything, judge: &judge };
            let known = (setup.request.top, Vec::new());
            vec![(Aim::Together, walking.walk(&problem, Aim::Together, known, models))]
        }
        ChipRound::Near(_, None) => Vec::new(),
        ChipRound::Near(own, Some(best)) => {
            let judge = judge_of(setup, own);
            let models = everything.len();
            evaluator.take_up(best);
            let problem = ByObjective { evaluator, models: everything, judge: &judge };
            let limit = nearly_as_good(best.value.first);
            NearFigure::ALL
                .into_iter()
                .map(|figure| {
                    let near = Nearly { objective: &problem, limit, figure };
                    let value = near.evaluated(&best.point);
                    let known = value.map(|value| Kept { value, ..(*best).clone() });
                    let (aim, known) = (Aim::Near(figure), (1, known.into_iter().collect()));
                    (aim, walking.walk(&near, aim, known, models))
                })
                .collect()
        }
    }
}

struct Walking<'a> {
    evaluator: &'a ChipEvaluator<'a>,
    boxes: Vec<ChipRegion>,
    peers: &'a dyn ChipPeers,
    observer: &'a dyn Observer,
}

impl Walking<'_> {
    fn walk<P: BoxProblem<N_CHIP_KNOBS, Found = Vec<Chosen>>>(
        &self,
        problem: &P,
        aim: Aim,
        known: (usize, Vec<KeptChip>),
        models: usize,
    ) -> ChipWalk {
        let setup = self.evaluator.setup;
        let walk = match aim {
            Aim::Alone(model) => setup.request.models[model].name.clone(),
            Aim::Together => "all models".into(),
            Aim::Near(figure) => format!("the {} chip that is nearly as good", figure.word()),
        };
        let heard = HeardWalk {
            peers: self.peers,
            walk: walk.clone(),
            lens: setup.grid.lens(),
            trained: (models, setup.request.devices),
        };
        let stopping =
            super::survey::Stopping { observer: self.observer, evaluator: self.evaluator };
        let whole = ChipRegion::whole(setup.grid.lens());
        walk_apart(problem, (&self.boxes, whole), known, &heard, &walk, &stopping)
    }
}

/// The walks of all parts with one aim, joined.
#[derive(Clone, Debug, Default)]
pub struct JoinedChips {
    /// The best that any part keeps, the best first, each with which of the files names it.
    pub kept: BTreeMap<Value, (KeptChip, usize)>,
    /// All boxes.
    pub closed: Vec<ClosedChips>,
}

impl JoinedChips {
    /// Takes up what one part keeps of at most `top` chips, and its boxes.
    pub fn take_up(&mut self, top: usize, kept: Vec<KeptChip>, from: usize) {
        for one in kept {
            self.kept.entry(one.value).or_insert((one, from));
            if self.kept.len() > top {
                self.kept.pop_last();
            }
        }
    }

    /// What chips must be better than, where as many are kept as were asked for.
    fn worst(&self, top: usize) -> Option<Value> {
        let worst = self.kept.last_key_value().filter(|_| self.kept.len() == top);
        worst.map(|(value, _)| *value)
    }

    /// The first box that does not prove that what is kept is the best: it rests on something that no part keeps.
    pub fn unproved(&self, top: usize) -> Option<&ClosedChips> {
        let worst = self.worst(top);
        let is_kept = |closed: &ClosedChips, value: &Value| {
            let kept = self.kept.get(value);
            kept.is_some_and(|(kept, _)| closed.region.contains(&kept.point))
        };
        self.closed.iter().find(|closed| match closed.why {
            Why::OverBudget | Why::NothingFits | Why::CornerNothing | Why::Nothing => false,
            Why::Bound(value) | Why::Corner(value) | Why::Beaten(value) => {
                worst.is_none_or(|worst| value < worst)
            }
            Why::Evaluated(value) => {
                !is_kept(closed, &value) && worst.is_none_or(|worst| value < worst)
            }
        })
    }

    /// As one walk of the whole grid.
    pub fn into_walk(mut self, top: usize) -> ChipWalk {
        let worst = self.worst(top);
        rest_on(&mut self.closed, worst);
        self.closed.sort_unstable_by_key(|closed| closed.region);
        let kept = self.kept.into_values().map(|(kept, _)| kept).collect();
        ChipWalk { kept, closed: self.closed, open: Vec::new() }
    }
}
