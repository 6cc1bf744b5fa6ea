//! What stages cost in one shape, remembered: identical layers make most of them alike.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hash::Hasher;

use super::Problem;
use super::States;
use super::cut::StageCosts;
use super::cut::StageFigures;
use super::runs::Content;
use super::runs::Runs;
use crate::plan::StageRules;

/// The stages of a shape, of which so many are narrow.
///
/// A state is that of the cuts together with the number of narrow stages before it.
pub(super) struct StageTable<'a, C> {
    cuts: &'a C,
    runs: &'a Runs,
    rules: StageRules<'a>,
    memory: u128,
    ranks: usize,
    micro_batches: u64,
    n_narrow: usize,
    follows: u64,
    /// Whether a stage was left out because it takes too much memory.
    is_tight: Cell<bool>,
    known: RefCell<HashMap<Key, Option<StageFigures>, Spread>>,
    /// The same stages at their least, where longer ones may take less.
    least: Option<Box<Self>>,
}

/// What the figures of a stage depend on, its place and its content, each number in bits of its own.
type Key = u64;

/// How many stages are after a place, in 12 bits, which ends of the pipeline it is, and content.
fn key(after: u64, end: u64, [kind, first, second]: Content) -> Key {
    debug_assert!(after < 1 << 12 && kind < 1 << 12 && first.max(second) < 1 << 17);
    let content = (kind as u64) << 34 | (first as u64) << 17 | second as u64;
    (after << 2 | end) << 46 | content
}

/// Keys are spread by one multiplication: they are looked up far more often than figures are made.
#[derive(Clone, Copy, Default)]
struct Spread(u64);

impl BuildHasher for Spread {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl<'a, C: States> StageTable<'a, C> {
    pub(super) fn new(
        problem: &Problem<'a>,
        (cuts, runs): (&'a C, &'a Runs),
        (rules, follows): (StageRules<'a>, u64),
        n_narrow: usize,
    ) -> Self {
        let micro_batches = rules.micro_batches();
        Self {
            cuts,
            runs,
            memory: problem.job.memory.into(),
            ranks: rules.shape().ranks,
            micro_batches,
            rules,
            n_narrow,
            follows,
            is_tight: Cell::new(false),
            known: RefCell::default(),
            least: None,
        }
    }

    /// With what no stage can beat, by rules under which longer ones never take less.
    pub(super) fn above(self, least: Self) -> Self {
        Self { least: Some(Box::new(least)), ..self }
    }

    /// Whether a stage was left out because it takes too much memory.
    pub(super) fn is_tight(&self) -> bool {
        self.is_tight.get()
    }

    fn split(&self, state: usize) -> (usize, usize) {
        (state / (self.n_narrow + 1), state % (self.n_narrow + 1))
    }

    fn figures(&self, place: usize, layers: &[usize]) -> Option<StageFigures> {
        let (repeated, memory) = self.rules.filled(place, layers);
        if memory > self.memory {
            return None;
        }
        let stage = self.rules.stage_repeating(place, layers, repeated);
        let after = self.rules.after(place, &[(layers, stage)]);
        Some(StageFigures {
            forward: stage.time.forward,
            backward: stage.time.backward,
            exposed: after.exposed,
            after: after.step.saturating_add(after.gather),
        })
    }

    /// Whether some cut fits: every stage takes as many layers as it can hold, the first ones
    /// first. Memory grows with a stage and falls from place to place, so that no cut gets farther up
    /// to any place. A stage that nothing more fits in is given the layer before it, which fits in an
    /// earlier one: that leaves none empty as long as each place is reached by a layer more.
    pub(super) fn fits_somehow(&self) -> bool {
        let end = self.cuts.n_states() - 1;
        let mut from = 0;
        for place in 0..self.ranks {
            let left = self.ranks - 1 - place;
            let fits =
                |to: usize| self.rules.filled(place, &self.cuts.layers(from, to)).1 <= self.memory;
            if left == 0 {
                return from < end && fits(end);
            }
            // A layer for each later stage is left.
            let most = end.saturating_sub(left);
            let (mut least, mut beyond) = (from, most + 1);
            while least + 1 < beyond {
                let middle = least.midpoint(beyond);
                if fits(middle) { least = middle } else { beyond = middle }
            }
            if least <= place {
                return false;
            }
            from = least;
        }
        false
    }

    /// The states of the cuts that a path passes.
    pub(super) fn states(&self, path: &[usize]) -> Vec<usize> {
        path.iter().map(|&state| self.split(state).0).collect()
    }
}

impl<C: States> StageCosts for StageTable<'_, C> {
    fn n_states(&self) -> usize {
        self.cuts.n_states() * (self.n_narrow + 1)
    }

    fn n_left(&self, state: usize) -> usize {
        self.cuts.n_left(self.split(state).0)
    }

    fn leads(&self, from: usize, to: usize) -> bool {
        let ((from, narrow), (to, after)) = (self.split(from), self.split(to));
        if from >= to || !self.cuts.leads(from, to) {
            return false;
        }
        let more = usize::from(self.n_narrow > 0 && self.cuts.is_narrow(from, to));
        narrow + more == after
    }

    fn stage(&self, place: usize, from: usize, to: usize) -> Option<StageFigures> {
        let (from, to) = (self.split(from).0, self.split(to).0);
        let after = (self.ranks - 1 - place) as u64;
        // At the ends of a pipeline a stage may share a table or send one way only.
        let end = u64::from(place == 0) + 2 * u64::from(after == 0);
        let key = key(after.min(self.micro_batches), end, self.runs.content(from, to));
        let known = self.known.borrow().get(&key).copied();
        let found = known.unwrap_or_else(|| {
            let found = self.figures(place, &self.cuts.layers(from, to));
            self.known.borrow_mut().insert(key, found);
            found
        });
        if found.is_none() {
            self.is_tight.set(true);
        }
        found
    }

    fn least_load(&self, from: usize) -> u64 {
        self.cuts.least_work(self.split(from).0)
    }

    fn is_monotone(&self) -> bool {
        let least = self.least.as_deref().unwrap_or(self);
        self.n_narrow == 0 && least.runs.is_flat()
    }

    fn least_stage(&self, place: usize, from: usize, to: usize) -> Option<StageFigures> {
        let least = self.least.as_deref().unwrap_or(self);
        let found = least.stage(place, from, to);
        if found.is_none() {
            self.is_tight.set(true);
        }
        found
    }

    fn is_least(&self) -> bool {
        self.least.is_none()
    }

    fn least_stage_load(&self, from: usize, to: usize) -> u64 {
        // On a chain what is left at a state is a part of what is left before it.
        let is_chain = self.is_monotone();
        let (from, to) = (self.split(from).0, self.split(to).0);
        if is_chain {
            self.cuts.least_work(from).saturating_sub(self.cuts.least_work(to))
        } else {
            0
        }
    }

    fn follows(&self) -> u64 {
        self.follows
    }
}
