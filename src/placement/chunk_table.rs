//! What virtual stages cost where ranks have several, by definition.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;

use super::Problem;
use super::interleaved::AfterFigures;
use super::interleaved::ChunkCosts;
use super::interleaved::ChunkFigures;
use super::runs::Runs;
use crate::plan::Profile;
use crate::plan::Shape;
use crate::plan::StageCost;
use crate::plan::StageRules;
use crate::plan::StageTime;

/// The virtual stages of a chain in one shape.
pub(super) struct ChunkTable<'a> {
    profile: &'a Profile,
    rules: StageRules<'a>,
    layers: Vec<usize>,
    ranks: usize,
    known: RefCell<HashMap<ChunkKey, (StageCost, u64)>>,
    n_stages: usize,
    /// By whether a rank is the first, whether it is the last, and the sizes of its chunks, where
    /// layers between the first and the last are alike: what it holds and what follows.
    ranks_known: RefCell<HashMap<RankKey, (u128, AfterFigures)>>,
    are_alike: bool,
    follows: u64,
    /// Whether a layout was left out because it takes too much memory.
    is_tight: Cell<bool>,
}

/// Whether it is the last virtual stage, and its layers.
type ChunkKey = (bool, usize, usize);

type RankKey = (bool, bool, Vec<usize>);

impl<'a> ChunkTable<'a> {
    /// By these rules, where so many ticks follow the passes in any case.
    pub(super) fn new(
        problem: &Problem<'a>,
        runs: &Runs,
        (rules, follows): (StageRules<'a>, u64),
    ) -> Self {
        let Shape { ranks, schedule, .. } = *rules.shape();
        Self {
            profile: problem.profile,
            rules,
            layers: (0..problem.profile.n_layers()).collect(),
            ranks,
            known: RefCell::default(),
            n_stages: ranks * schedule.chunks(),
            ranks_known: RefCell::default(),
            are_alike: runs.is_uniform(),
            follows,
            is_tight: Cell::new(false),
        }
    }

    /// Whether a layout was left out because it takes too much memory.
    pub(super) fn is_tight(&self) -> bool {
        self.is_tight.get()
    }

    /// Ticks that a tensor travels to the next virtual stage, beside computation.
    pub(super) fn delay(&self) -> u64 {
        self.rules.delay()
    }

    /// What a virtual stage costs, and what it keeps of one micro-batch.
    fn cost(&self, stage: usize, from: usize, to: usize) -> (StageCost, u64) {
        // Costs depend on the place only in that the last one sends nothing on.
        let inner = self.are_alike && from > 0 && to < self.layers.len();
        let key = if inner {
            // The layers after the first stand for all between.
            (false, 1, 1 + to - from)
        } else {
            (stage + 1 == self.n_stages, from, to)
        };
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        let layers = &self.layers[from..to];
        let cost = self.rules.stage(stage, layers);
        let (each, _) = self.rules.kept_each(layers, cost.repeated);
        let found = (cost, u64::try_from(each).unwrap_or(u64::MAX));
        self.known.borrow_mut().insert(key, found);
        found
    }

    /// What a rank holds beside what it keeps of each micro-batch, and what follows its last pass.
    fn rank(&self, rank: usize, chunks: &[(usize, usize)]) -> (u128, AfterFigures) {
        let sizes = chunks.iter().map(|(from, to)| to - from).collect();
        let key = (rank == 0, rank + 1 == self.ranks, sizes);
        if self.are_alike
            && let Some(&known) = self.ranks_known.borrow().get(&key)
        {
            return known;
        }
        let held = self.held_chunks(rank, chunks);
        let after = self.rules.after(rank, &held);
        let after =
            AfterFigures { exposed: after.exposed, after: after.step.saturating_add(after.gather) };
        let found = (self.rules.held_beside_kept(&held), after);
        self.ranks_known.borrow_mut().insert(key, found);
        found
    }

    fn held_chunks(&self, rank: usize, chunks: &[(usize, usize)]) -> Vec<(&[usize], StageCost)> {
        let each = chunks.iter().enumerate();
        each.map(|(chunk, &(from, to))| {
            let (cost, _) = self.cost(chunk * self.ranks + rank, from, to);
            (&self.layers[from..to], cost)
        })
        .collect()
    }
}

impl ChunkCosts for ChunkTable<'_> {
    fn n_layers(&self) -> usize {
        self.layers.len()
    }

    fn layer(&self, layer: usize) -> StageTime {
        let layer = self.profile.layer(layer);
        StageTime { forward: layer.forward, backward: layer.backward }
    }

    fn chunk(&self, stage: usize, from: usize, to: usize) -> ChunkFigures {
        let (cost, kept) = self.cost(stage, from, to);
        ChunkFigures { forward: cost.time.forward, backward: cost.time.backward, kept }
    }

    fn held(&self, rank: usize, chunks: &[(usize, usize)]) -> u128 {
        self.rank(rank, chunks).0
    }

    fn after(&self, rank: usize, chunks: &[(usize, usize)]) -> AfterFigures {
        self.rank(rank, chunks).1
    }

    fn follows(&self) -> u64 {
        self.follows
    }

    fn does_not_fit(&self) {
        self.is_tight.set(true);
    }
}
