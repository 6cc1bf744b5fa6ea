//! Ways to cut layers that branch: states are sets of layers closed under successors.

use std::collections::BTreeSet;

use super::Cuts;
use super::FixedProblem;
use super::Sample;
use super::States;
use crate::parallel::Parameters;
use crate::plan::Recompute;

/// The layers branch into more sets than are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the layers branch into more than {most} sets that are closed under successors; \
     no more are searched"
)]
pub struct TooManyBranches {
    /// The most that are.
    pub most: usize,
}

const MOST_SETS: usize = 40_000;

/// Up to so many pairs of sets, the loads of all stages are kept.
const MOST_PAIRS: usize = 4_000_000;

/// A set of layers, one bit each.
type Set = Vec<u64>;

/// A model whose layers branch.
pub(super) struct Downsets<'a> {
    problem: &'a FixedProblem<'a>,
    sets: Vec<Set>,
    /// Incoming and outgoing edges of each layer: the other end, ticks to send, size.
    into: Vec<Vec<(usize, u64, u64)>>,
    out_of: Vec<Vec<(usize, u64, u64)>>,
    backward: Vec<u64>,
    /// The longest path through what is left in each state.
    path: Vec<u64>,
    /// By pair of states, where there are few enough.
    loads: Vec<u64>,
}

impl<'a> Downsets<'a> {
    pub(super) fn new(
        problem: &'a FixedProblem<'a>,
        sample: Sample,
    ) -> Result<Self, TooManyBranches> {
        let FixedProblem { profile, recompute, .. } = *problem;
        let n = profile.n_layers();
        let mut into = vec![Vec::new(); n];
        let mut out_of = vec![Vec::new(); n];
        for edge in &profile.edges {
            let time = sample.send(problem, edge.sent());
            into[edge.to].push((edge.from, time, edge.size));
            out_of[edge.from].push((edge.to, time, edge.size));
        }
        let sets = closed_sets(n, &out_of)?;
        let backward: Vec<u64> = profile
            .layers()
            .map(|layer| {
                layer.backward + if recompute == Recompute::Full { layer.forward } else { 0 }
            })
            .collect();
        let mut cuts = Self { problem, sets, into, out_of, backward, path: vec![], loads: vec![] };
        cuts.path = (0..cuts.sets.len()).map(|state| cuts.longest_path(state)).collect();
        let n_states = cuts.sets.len();
        if n_states * n_states <= MOST_PAIRS {
            let pairs = (0..n_states).flat_map(|from| (0..n_states).map(move |to| (from, to)));
            cuts.loads = pairs
                .map(|(from, to)| if cuts.leads(from, to) { cuts.stage_load(from, to) } else { 0 })
                .collect();
        }
        Ok(cuts)
    }

    fn longest_path(&self, state: usize) -> u64 {
        let left = layers_of(&self.sets[state]);
        let mut ends = vec![0; self.backward.len()];
        for &layer in &left {
            let before = self.into[layer].iter().map(|edge| ends[edge.0]).max().unwrap_or(0);
            let forward = self.problem.profile.layer(layer).forward;
            ends[layer] = before + forward + self.backward[layer];
        }
        ends.into_iter().max().unwrap_or(0)
    }

    fn stage_load(&self, from: usize, to: usize) -> u64 {
        let stage = self.layers(from, to);
        let inside =
            |layer: usize| contains(&self.sets[from], layer) && !contains(&self.sets[to], layer);
        let forward = |layer: usize| self.problem.profile.layer(layer).forward;
        // The end of one pass, and of the same without what enters from outside.
        let pass = |order: &mut dyn Iterator<Item = usize>,
                    edges: &[Vec<(usize, u64, u64)>],
                    takes: &dyn Fn(usize) -> u64,
                    earliest: Option<u64>| {
            let mut ends = vec![0; self.backward.len()];
            let mut last = 0;
            for layer in order {
                let mut start = earliest.unwrap_or(0);
                for &(other, time, _) in &edges[layer] {
                    let arrival = if inside(other) { ends[other] } else { time };
                    start = start.max(arrival);
                }
                ends[layer] = start + takes(layer);
                last = ends[layer].max(last);
            }
            last
        };
        let first = pass(&mut stage.iter().copied(), &self.into, &forward, None);
        let repeats = self.problem.recompute == Recompute::Stage && to + 1 < self.sets.len();
        let again = repeats.then(|| {
            let mut ends = vec![0; self.backward.len()];
            for &layer in &stage {
                let inner = self.into[layer].iter().filter(|edge| inside(edge.0));
                ends[layer] = inner.map(|edge| ends[edge.0]).max().unwrap_or(0) + forward(layer);
            }
            ends.into_iter().max().unwrap_or(0)
        });
        let backward = |layer: usize| self.backward[layer];
        first + pass(&mut stage.iter().rev().copied(), &self.out_of, &backward, again)
    }
}

impl States for Downsets<'_> {
    fn n_states(&self) -> usize {
        self.sets.len()
    }

    fn n_left(&self, state: usize) -> usize {
        self.sets[state].iter().map(|word| word.count_ones() as usize).sum()
    }

    fn leads(&self, from: usize, to: usize) -> bool {
        let within = self.sets[to].iter().zip(&self.sets[from]).all(|(to, from)| to & !from == 0);
        from < to && within
    }

    fn is_narrow(&self, from: usize, to: usize) -> bool {
        let wide = |layer: usize| self.problem.profile.layer(layer).tensor_parallel;
        !self.layers(from, to).into_iter().any(wide)
    }

    fn layers(&self, from: usize, to: usize) -> Vec<usize> {
        let stage: Set =
            self.sets[from].iter().zip(&self.sets[to]).map(|(from, to)| from & !to).collect();
        layers_of(&stage)
    }

    fn least_work(&self, state: usize) -> u64 {
        self.path[state]
    }
}

impl Cuts for Downsets<'_> {
    fn load(&self, from: usize, to: usize) -> u64 {
        match self.loads.get(from * self.sets.len() + to) {
            Some(&load) => load,
            None => self.stage_load(from, to),
        }
    }

    fn parameters(&self, from: usize, to: usize) -> Parameters {
        let profile = self.problem.profile;
        let stage = self.layers(from, to);
        let own: Parameters = stage.iter().map(|&layer| profile.layer(layer).by_replicas()).sum();
        let copied = stage.contains(&(profile.n_layers() - 1)) && !stage.contains(&0);
        own + Parameters::dense(if copied { profile.tied } else { 0 })
    }

    fn fits(&self, from: usize, to: usize, extra: u64) -> bool {
        let FixedProblem { profile, job, recompute, .. } = *self.problem;
        let stage = self.layers(from, to);
        let per = job.per_parameter;
        let held_each = u128::from(per.weight) + u128::from(per.gradient) + u128::from(per.state);
        let held = u128::from(self.parameters(from, to).all()) * held_each;
        let activations = || stage.iter().map(|&layer| profile.layer(layer).activations);
        let all: u128 = activations().map(u128::from).sum();
        let inputs = |outside_only: bool| -> u128 {
            let edges = stage.iter().flat_map(|&layer| &self.into[layer]);
            let inside = |layer: usize| stage.binary_search(&layer).is_ok();
            let counted = edges.filter(|edge| !outside_only || !inside(edge.0));
            counted.map(|edge| u128::from(edge.2)).sum()
        };
        let extra = u128::from(extra);
        let kept = match recompute {
            Recompute::Stage => extra * inputs(true) + all,
            Recompute::Full => {
                (extra + 1) * inputs(false) + u128::from(activations().max().unwrap_or(0))
            }
            _ => (extra + 1) * all,
        };
        held + kept <= u128::from(job.memory)
    }

    fn is_monotone(&self) -> bool {
        false
    }
}

/// All sets closed under successors, larger ones first.
fn closed_sets(n: usize, out_of: &[Vec<(usize, u64, u64)>]) -> Result<Vec<Set>, TooManyBranches> {
    let empty: Set = vec![0; n.div_ceil(64)];
    let mut found = BTreeSet::from([empty.clone()]);
    let mut fresh = vec![empty];
    while let Some(set) = fresh.pop() {
        let closed = |layer: &usize| out_of[*layer].iter().all(|edge| contains(&set, edge.0));
        for layer in (0..n).filter(|&layer| !contains(&set, layer)).filter(closed) {
            let mut larger = set.clone();
            larger[layer / 64] |= 1 << (layer % 64);
            if found.insert(larger.clone()) {
                fresh.push(larger);
            }
            if found.len() > MOST_SETS {
                return Err(TooManyBranches { most: MOST_SETS });
            }
        }
    }
    let mut sets: Vec<Set> = found.into_iter().collect();
    let size = |set: &Set| set.iter().map(|word| word.count_ones()).sum::<u32>();
    sets.sort_by_key(|set| std::cmp::Reverse(size(set)));
    Ok(sets)
}

fn contains(set: &[u64], layer: usize) -> bool {
    set[layer / 64] >> (layer % 64) & 1 == 1
}

fn layers_of(set: &[u64]) -> Vec<usize> {
    (0..64 * set.len()).filter(|&layer| contains(set, layer)).collect()
}
