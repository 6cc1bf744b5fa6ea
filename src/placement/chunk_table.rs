//! What virtual stages cost where ranks have several, by definition.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Problem;
use super::interleaved::AfterFigures;
use super::interleaved::ChunkCosts;
use super::interleaved::ChunkFigures;
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
    known: RefCell<HashMap<(bool, usize, usize), (StageCost, u64)>>,
    n_stages: usize,
}

impl<'a> ChunkTable<'a> {
    pub(super) fn new(problem: &Problem<'a>, shape: Shape) -> Self {
        Self {
            profile: problem.profile,
            rules: StageRules::new(problem.profile, problem.job, shape),
            layers: (0..problem.profile.n_layers()).collect(),
            ranks: shape.ranks,
            known: RefCell::default(),
            n_stages: shape.ranks * shape.schedule.chunks(),
        }
    }

    /// Ticks that a tensor travels to the next virtual stage, beside computation.
    pub(super) fn delay(&self) -> u64 {
        self.rules.delay()
    }

    /// What a virtual stage costs, and what it keeps of one micro-batch.
    fn cost(&self, stage: usize, from: usize, to: usize) -> (StageCost, u64) {
        // Costs depend on the place only in that the last one sends nothing on.
        let key = (stage + 1 == self.n_stages, from, to);
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
        self.rules.held_beside_kept(&self.held_chunks(rank, chunks))
    }

    fn after(&self, rank: usize, chunks: &[(usize, usize)]) -> AfterFigures {
        let after = self.rules.after(rank, &self.held_chunks(rank, chunks));
        AfterFigures { exposed: after.exposed, after: after.step.saturating_add(after.gather) }
    }
}
