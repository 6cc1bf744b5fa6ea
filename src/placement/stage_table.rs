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
use crate::plan::Recompute;
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

/// Which layers a stage holds, told alike for stages of the same kinds of layers.
type Content = [usize; 3];

/// Where runs of layers of one kind end, for telling stages alike.
pub(super) struct Runs {
    kinds: Vec<usize>,
    /// For each layer, one after the last of its run; empty where stages are not told alike.
    ends: Vec<usize>,
}

impl Runs {
    pub(super) fn new(problem: &Problem) -> Self {
        let profile = problem.profile;
        let kinds = profile.sequence.clone();
        let sizes_agree = profile.edges.windows(2).all(|pair| pair[0].size == pair[1].size);
        if !profile.is_plain_chain() || !sizes_agree {
            return Self { kinds, ends: Vec::new() };
        }
        let mut ends = vec![kinds.len(); kinds.len()];
        for at in (1..kinds.len()).rev() {
            ends[at - 1] = if kinds[at - 1] == kinds[at] { ends[at] } else { at };
        }
        Self { kinds, ends }
    }

    /// Whether stages of the same kinds of layers cost the same wherever they begin.
    pub(super) fn tells_alike(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether memory alone tells what fits: where as much travels between any two layers of a chain,
    /// of layers that fit in a stage any that follow each other fit in any later one. Where a stage
    /// keeps what enters it and nothing else, what it keeps depends on where it begins.
    pub(super) fn tell_what_fits(&self, recompute: Recompute) -> bool {
        self.is_uniform() || self.tells_alike() && recompute != Recompute::Stage
    }

    /// Whether all layers between the first and the last are of one kind.
    pub(super) fn is_uniform(&self) -> bool {
        let n = self.kinds.len();
        n < 3 || self.ends.get(1).is_some_and(|&end| end + 1 >= n)
    }

    fn content(&self, from: usize, to: usize) -> Content {
        match self.ends.get(from) {
            Some(&end) if from > 0 && to <= end => [1 + self.kinds[from], to - from, 0],
            _ => [0, from, to],
        }
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
        }
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
    /// first. Memory grows with a stage, so that nothing holds more than this.
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
            if least == from {
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
        self.n_narrow == 0 && self.runs.tells_alike()
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
