//! Stages of a chain of layers, answered in constant time.
//!
//! Where only neighbours are joined, prefix sums say everything. Edges that skip layers make what
//! a stage waits for depend on both its ends; then a table over all stages is made once.

use super::Cuts;
use super::FixedProblem;
use super::Sample;
use super::States;
use crate::parallel::Parameters;
use crate::plan::Recompute;

/// A chain seen as ways to cut it: state i is what is left from layer i on.
pub(super) struct Chain {
    n: usize,
    recompute: Recompute,
    /// Sums over the layers before each place: forward passes, both passes, what one device holds
    /// for parameters, parameters, activations, inputs, tensor-parallel layers.
    forward: Vec<u64>,
    work: Vec<u64>,
    held: Vec<u128>,
    parameters: Vec<Parameters>,
    activations: Vec<u64>,
    inputs: Vec<u64>,
    wide: Vec<usize>,
    /// Ticks that a stage waits for what enters its first layer, and for what comes back to its
    /// last, by the place where it begins or ends.
    enter: Vec<u64>,
    leave: Vec<u64>,
    /// Size of what enters each layer from the layers before it.
    input: Vec<u64>,
    /// The largest activations of runs of 2^i layers.
    largest: Vec<Vec<u64>>,
    skips: Option<Skips>,
    memory: u128,
    /// The same in 64 bits, where no sum can leave them: memory is asked most often.
    small: Option<Small>,
    /// What the last stage holds besides where the first layer is not in it.
    tied_held: u128,
    tied: u64,
    monotone: bool,
}

/// What memory depends on, in 64 bits.
struct Small {
    held: Vec<u64>,
    tied_held: u64,
    memory: u64,
}

/// By stage (`from · (n + 1) + to`): its load, and the size of what enters it.
struct Skips {
    load: Vec<u64>,
    entering: Vec<u64>,
}

impl Chain {
    /// Sees the chain of a problem's profile, sending as `sample` does.
    pub(super) fn new(problem: &FixedProblem, sample: Sample) -> Self {
        let FixedProblem { profile, job, recompute, .. } = *problem;
        let n = profile.n_layers();
        let per = job.per_parameter;
        let held_each = u128::from(per.weight) + u128::from(per.gradient) + u128::from(per.state);
        let mut enter = vec![0; n + 1];
        let mut leave = vec![0; n + 1];
        let mut input = vec![0; n + 1];
        let mut sent = (0, sample.send(problem, 0));
        for edge in &profile.edges {
            // Neighbouring edges mostly carry the same size: ask the network once.
            if sent.0 != edge.sent() {
                sent = (edge.sent(), sample.send(problem, edge.sent()));
            }
            enter[edge.to] = sent.1.max(enter[edge.to]);
            leave[edge.from + 1] = sent.1.max(leave[edge.from + 1]);
            input[edge.to] += edge.size;
        }
        let backward = |layer: usize| {
            let layer = profile.layer(layer);
            let again = if recompute == Recompute::Full { layer.forward } else { 0 };
            layer.backward + again
        };
        let sums = |of: &dyn Fn(usize) -> u64| prefix_sums(n, of);
        let mut parameters = vec![Parameters::NONE];
        for layer in profile.layers() {
            parameters.push(parameters[parameters.len() - 1] + layer.by_replicas());
        }
        let mut chain = Self {
            n,
            recompute,
            forward: sums(&|i| profile.layer(i).forward),
            work: sums(&|i| profile.layer(i).forward + backward(i)),
            held: parameters.iter().map(|p| u128::from(p.all()) * held_each).collect(),
            parameters,
            activations: sums(&|i| profile.layer(i).activations),
            inputs: sums(&|i| input[i]),
            wide: running(n, |i| usize::from(profile.layer(i).tensor_parallel)),
            enter,
            leave,
            input,
            largest: match recompute {
                Recompute::Full => range_maxima(&mut profile.layers().map(|l| l.activations)),
                _ => Vec::new(),
            },
            skips: None,
            memory: u128::from(job.memory),
            small: None,
            tied_held: u128::from(profile.tied) * held_each,
            tied: profile.tied,
            monotone: false,
        };
        if profile.edges.iter().any(|edge| edge.from + 1 != edge.to) {
            chain.skips = Some(Skips::new(problem, sample, &chain));
        }
        chain.monotone = chain.grows();
        chain.small = chain.small();
        chain
    }

    fn small(&self) -> Option<Small> {
        let kept = self.activations[self.n].max(self.inputs[self.n]);
        let largest = self.held[self.n] + self.tied_held + (self.n as u128 + 2) * u128::from(kept);
        if largest >= 1 << 63 {
            return None;
        }
        let small = |size: u128| u64::try_from(size).ok();
        Some(Small {
            held: self.held.iter().map(|&held| small(held)).collect::<Option<_>>()?,
            tied_held: small(self.tied_held)?,
            memory: small(self.memory)?,
        })
    }

    /// Whether stages between the first and the last layer only grow in load and memory.
    fn grows(&self) -> bool {
        let extra = self.n as u128;
        let memory_grows = |from: usize, more: u64, less: u64| {
            let added = self.held[from + 1] - self.held[from]
                + u128::from(self.activations[from + 1] - self.activations[from]);
            self.recompute != Recompute::Stage
                || added + extra * u128::from(more) >= extra * u128::from(less)
        };
        match &self.skips {
            None => {
                let work = |i: usize| self.work[i + 1] - self.work[i];
                let right = |b: usize| work(b) + self.leave[b + 1] >= self.leave[b];
                let left = |a: usize| work(a) + self.enter[a] >= self.enter[a + 1];
                (1..self.n.saturating_sub(1)).all(|i| right(i) && left(i))
                    && (1..self.n.saturating_sub(1))
                        .all(|i| memory_grows(i, self.input[i], self.input[i + 1]))
            }
            Some(Skips { entering, .. }) => (1..self.n.saturating_sub(1)).all(|from| {
                let at = |from: usize, to: usize| entering[from * (self.n + 1) + to];
                (from + 2..self.n).all(|to| {
                    let load = self.load(from, to);
                    load >= self.load(from + 1, to) && load >= self.load(from, to - 1)
                }) && self.load(from, self.n) >= self.load(from + 1, self.n)
                    && (from + 2..=self.n)
                        .all(|to| memory_grows(from, at(from, to), at(from + 1, to)))
            }),
        }
    }

    fn entering(&self, from: usize, to: usize) -> u64 {
        match &self.skips {
            None => self.input[from],
            Some(skips) => skips.entering[from * (self.n + 1) + to],
        }
    }

    fn largest(&self, from: usize, to: usize) -> u64 {
        let level = (to - from).ilog2() as usize;
        let row = &self.largest[level];
        row[from].max(row[to - (1 << level)])
    }
}

impl States for Chain {
    fn n_states(&self) -> usize {
        self.n + 1
    }

    fn n_left(&self, state: usize) -> usize {
        self.n - state
    }

    fn leads(&self, from: usize, to: usize) -> bool {
        from < to
    }

    fn is_narrow(&self, from: usize, to: usize) -> bool {
        self.wide[from] == self.wide[to]
    }

    fn layers(&self, from: usize, to: usize) -> Vec<usize> {
        (from..to).collect()
    }

    fn least_work(&self, state: usize) -> u64 {
        self.work[self.n] - self.work[state]
    }
}

impl Cuts for Chain {
    fn load(&self, from: usize, to: usize) -> u64 {
        if let Some(skips) = &self.skips {
            return skips.load[from * (self.n + 1) + to];
        }
        let work = self.work[to] - self.work[from] + self.enter[from];
        if self.recompute == Recompute::Stage && to < self.n {
            work + (self.forward[to] - self.forward[from]).max(self.leave[to])
        } else {
            work + self.leave[to]
        }
    }

    fn parameters(&self, from: usize, to: usize) -> Parameters {
        let copied = if to == self.n && from > 0 { self.tied } else { 0 };
        self.parameters[to] - self.parameters[from] + Parameters::dense(copied)
    }

    fn fits(&self, from: usize, to: usize, extra: u64) -> bool {
        if let Some(Small { held, tied_held, memory }) = &self.small {
            let copied = if to == self.n && from > 0 { *tied_held } else { 0 };
            let all = self.activations[to] - self.activations[from];
            let kept = match self.recompute {
                Recompute::Stage => extra * self.entering(from, to) + all,
                Recompute::Full => {
                    (extra + 1) * (self.inputs[to] - self.inputs[from]) + self.largest(from, to)
                }
                _ => (extra + 1) * all,
            };
            return held[to] - held[from] + copied + kept <= *memory;
        }
        let extra = u128::from(extra);
        let copied = if to == self.n && from > 0 { self.tied_held } else { 0 };
        let held = self.held[to] - self.held[from] + copied;
        let all = u128::from(self.activations[to] - self.activations[from]);
        let kept = match self.recompute {
            Recompute::Stage => extra * u128::from(self.entering(from, to)) + all,
            Recompute::Full => {
                let inputs = u128::from(self.inputs[to] - self.inputs[from]);
                (extra + 1) * inputs + u128::from(self.largest(from, to))
            }
            _ => (extra + 1) * all,
        };
        held + kept <= self.memory
    }

    fn is_monotone(&self) -> bool {
        self.monotone
    }
}

impl Skips {
    fn new(problem: &FixedProblem, sample: Sample, chain: &Chain) -> Self {
        let FixedProblem { profile, recompute, .. } = *problem;
        let n = chain.n;
        let mut into = vec![Vec::new(); n];
        let mut out_of = vec![Vec::new(); n];
        for edge in &profile.edges {
            let time = sample.send(problem, edge.sent());
            into[edge.to].push((edge.from, time, edge.size));
            out_of[edge.from].push((edge.to, time));
        }
        let mut load = vec![0; (n + 1) * (n + 1)];
        let mut entering = vec![0; (n + 1) * (n + 1)];
        for from in 0..n {
            let (mut end, mut size) = (0, 0);
            for to in from + 1..=n {
                let outside = into[to - 1].iter().filter(|edge| edge.0 < from);
                for &(_, time, bytes) in outside {
                    end = time.max(end);
                    size += bytes;
                }
                end += chain.forward[to] - chain.forward[to - 1];
                load[from * (n + 1) + to] = end;
                entering[from * (n + 1) + to] = size;
            }
        }
        let backward = |i: usize| {
            chain.work[i + 1] - chain.work[i] - (chain.forward[i + 1] - chain.forward[i])
        };
        for to in 1..=n {
            let (mut end, mut sum, mut again) = (0, 0, 0);
            for from in (0..to).rev() {
                let outside = out_of[from].iter().filter(|edge| edge.0 >= to);
                end = outside.map(|edge| edge.1).fold(end, u64::max) + backward(from);
                sum += backward(from);
                again += profile.layer(from).forward;
                let repeated = recompute == Recompute::Stage && to < n;
                let time = if repeated { end.max(again + sum) } else { end };
                load[from * (n + 1) + to] += time;
            }
        }
        Self { load, entering }
    }
}

fn prefix_sums(n: usize, of: &dyn Fn(usize) -> u64) -> Vec<u64> {
    let mut sums = Vec::with_capacity(n + 1);
    let mut sum = 0;
    sums.push(0);
    sums.extend((0..n).map(|i| {
        sum += of(i);
        sum
    }));
    sums
}

fn running(n: usize, of: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut sum = 0;
    let sums = (0..n).map(|i| {
        sum += of(i);
        sum
    });
    std::iter::once(0).chain(sums).collect()
}

/// Row i holds, for each start, the largest of the next 2^i values.
fn range_maxima(values: &mut dyn Iterator<Item = u64>) -> Vec<Vec<u64>> {
    let mut rows = vec![values.collect::<Vec<u64>>()];
    let mut run = 1;
    while 2 * run <= rows[0].len() {
        let row = rows.last().expect("there is a first row");
        let wider = (0..=row.len() - 1 - run).map(|i| row[i].max(row[i + run])).collect();
        rows.push(wider);
        run *= 2;
    }
    rows
}
