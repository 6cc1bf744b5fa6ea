//! Sums over the layers of a problem, and what no shape can beat by them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Problem;
use super::Rank;
use super::choices::Candidate;
use super::choices::CutChoice;
use super::choices::Range;
use super::cut::least_time;
use super::exchanged::Exchanged;
use super::exchanged::KnownShapes;
use super::interleaved::Family;
use super::interleaved::all_are_compared;
use super::layout_bounds::LayerLoads;
use super::layout_bounds::least_layout_time;
use super::layouts::even_layouts;
use crate::parallel::Parameters;
use crate::parallel::zero::Zero;
use crate::plan::Buckets;
use crate::plan::Hiding;
use crate::plan::LayerProfile;
use crate::plan::PassOrder;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageTime;
use crate::plan::StepStart;

/// Both halves of several numbers of pipelines.
pub(super) fn halves((fewest, most): Range) -> [Range; 2] {
    let middle = fewest.midpoint(most);
    [(fewest, middle), (middle + 1, most)]
}

/// Sums over the layers of a problem.
pub(super) struct Sums {
    /// Ticks of both passes, and of the forward passes that may run again.
    work: u128,
    forward: u128,
    /// Of a chain, ticks of forward and of backward passes without exchanges among devices that
    /// share layers: what other exchanges hide behind.
    alone: [u128; 2],
    /// Parameters of each kind of layer, and how often it occurs.
    kinds: Vec<(Parameters, u64)>,
    /// The load of the slowest layer.
    slowest: u64,
    /// How often the most frequent layer occurs, its load, and whether it may be repeated.
    repeated: (u64, u64, bool),
    /// Layers that may be repeated, and the shortest of their forward passes.
    repeatable: (u64, u64),
    /// How many layers may be repeated before each place.
    repeatable_before: Vec<u64>,
    parameters: Parameters,
    /// Parameters of the layer that the first rank surely holds, and of each kind the fewest of all
    /// layers.
    first: Parameters,
    smallest: Parameters,
    /// Loads of the layers of a chain.
    pub(super) loads: LayerLoads,
    is_chain: bool,
    /// What was asked for before: most shapes exchange the same.
    known: Arc<KnownShapes>,
    /// Likewise of several virtual stages on each of so many ranks with so many micro-batches.
    interleaved: RefCell<BTreeMap<(usize, u64), u128>>,
}

impl Sums {
    /// Exchanges that are `known` are not found again.
    pub(super) fn new(problem: &Problem, known: &Arc<KnownShapes>) -> Self {
        let profile = problem.profile;
        let load = |layer: &LayerProfile| layer.forward + layer.backward;
        let count = |kind: usize| profile.sequence.iter().filter(|&&at| at == kind).count() as u64;
        let most = (0..profile.kinds.len()).max_by_key(|&kind| count(kind)).unwrap_or(0);
        let is_chain = profile.is_chain();
        let slowest = profile.layers().map(load).max().unwrap_or(0);
        let time =
            |layer: &LayerProfile| StageTime { forward: layer.forward, backward: layer.backward };
        let times: Vec<StageTime> = profile.layers().map(time).collect();
        // Where layers branch, stages may run branches side by side.
        let sum = |of: &dyn Fn(&LayerProfile) -> u64| -> u128 {
            let sum = profile.layers().map(|layer| u128::from(of(layer))).sum();
            if is_chain { sum } else { profile.layers().map(of).max().unwrap_or(0).into() }
        };
        Self {
            work: sum(&load),
            forward: sum(&|layer| layer.forward),
            alone: [
                profile.layers().map(|layer| u128::from(layer.forward_alone())).sum(),
                profile.layers().map(|layer| u128::from(layer.backward_alone())).sum(),
            ],
            kinds: (0..profile.kinds.len())
                .map(|kind| (profile.kinds[kind].by_replicas(), count(kind)))
                .collect(),
            is_chain,
            known: Arc::clone(known),
            interleaved: RefCell::default(),
            slowest,
            repeated: match profile.kinds.get(most).filter(|_| is_chain) {
                Some(kind) => (count(most), load(kind), kind.repeatable),
                None => (0, 0, false),
            },
            repeatable: {
                let may = || profile.layers().filter(|layer| layer.repeatable && is_chain);
                (may().count() as u64, may().map(|layer| layer.forward).min().unwrap_or(0))
            },
            repeatable_before: {
                let mut before = vec![0];
                for layer in profile.layers() {
                    let may = u64::from(layer.repeatable && is_chain);
                    before.push(before[before.len() - 1] + may);
                }
                before
            },
            parameters: profile.layers().map(LayerProfile::by_replicas).sum(),
            first: profile
                .layers()
                .next()
                .filter(|_| is_chain)
                .map_or(Parameters::NONE, LayerProfile::by_replicas),
            smallest: profile
                .layers()
                .map(LayerProfile::by_replicas)
                .reduce(Parameters::least)
                .unwrap_or_default(),
            loads: LayerLoads::new(&times),
        }
    }

    /// Ticks that nothing can beat, whatever is shared, repeated or interleaved.
    pub(super) fn least_of_any_schedule(&self, ranks: usize, micro_batches: u64) -> u128 {
        let (count, load, _) = self.repeated;
        let average = self.work.div_ceil(ranks as u128);
        let fullest = u128::from(count.div_ceil(ranks as u64)) * u128::from(load);
        let slowest = average.max(fullest).max(self.slowest.into());
        (u128::from(micro_batches) * slowest).max(self.work)
    }

    /// Ticks of the slowest of so many ranks for one micro-batch that holds whole layers, however these are cut.
    fn slowest_of(&self, ranks: usize) -> u64 {
        let slowest = if self.is_chain { self.loads.slowest(ranks) } else { 0 };
        u64::try_from(slowest).unwrap_or(u64::MAX)
    }

    /// Ticks of a batch that no ranks of several virtual stages can beat.
    fn interleaved(&self, ranks: usize, micro_batches: u64) -> u128 {
        let mut known = self.interleaved.borrow_mut();
        let found = || least_layout_time(&self.loads, ranks, micro_batches, 0);
        *known.entry((ranks, micro_batches)).or_insert_with(found)
    }

    /// Ticks of all passes that no shape with so many ranks can beat.
    pub(super) fn least_of_passes(
        &self,
        problem: &Problem,
        ranks: usize,
        micro_batches: u64,
    ) -> u128 {
        let (count, load, _) = self.repeated;
        let average = self.work.div_ceil(ranks as u128);
        let average = u64::try_from(average).unwrap_or(u64::MAX);
        let fullest = count.div_ceil(ranks as u64).saturating_mul(load);
        let slowest = self.slowest.max(average).max(fullest).max(self.slowest_of(ranks));
        let one = least_time(micro_batches, ranks, self.work, slowest);
        if ranks < 2 || *problem.choices.chunks.end() < 2 {
            return one;
        }
        let busy = u128::from(micro_batches) * u128::from(slowest);
        one.min(busy.max(self.work).max(self.interleaved(ranks, micro_batches)))
    }

    /// What replicas exchange in a shape with any of these numbers of pipelines.
    fn exchanged(&self, problem: &Problem, shape: &Shape, pipelines: Range) -> Exchanged {
        // Where every pair is alike, it does not matter how far apart replicas are.
        let apart = if problem.job.links.is_flat() { shape.ranks.min(2) } else { shape.ranks };
        let key = (apart, pipelines, shape.zero, shape.order, shape.shards);
        if let Some(known) = self.known.get(&key) {
            return known;
        }
        let found = self.exchanged_among(problem, shape, pipelines);
        self.known.insert(key, found);
        found
    }

    fn exchanged_among(&self, problem: &Problem, shape: &Shape, pipelines: Range) -> Exchanged {
        let (fewest, most) = pipelines;
        let Problem { profile, job, .. } = *problem;
        // Where every pair is alike, a larger group is never faster.
        let tried = match most - fewest {
            _ if job.links.is_flat() => fewest..=fewest,
            0..8 => fewest..=most,
            // Shapes are taken apart by the same halves, which are known then.
            _ => {
                let [low, high] = halves(pipelines);
                let low = self.exchanged(problem, shape, low);
                return low.min(self.exchanged(problem, shape, high));
            }
        };
        let one_by_one = self.is_chain && job.ends.buckets == Buckets::Layers;
        let of_all = |time: &dyn Fn(Parameters) -> u64| -> u128 {
            let kinds = self.kinds.iter().filter(|_| one_by_one);
            kinds.map(|&(size, count)| u128::from(time(size)) * u128::from(count)).sum()
        };
        let waited_for = |ticks: u64| job.ends.buckets.waited_for(ticks);
        let exchanged = tried.map(|data_parallel| {
            let wiring = Shape { data_parallel, ..*shape }.wiring(profile, job);
            let tied = wiring.tied(profile.tied);
            let mut found = match shape.zero {
                Zero::Nothing | Zero::State => Exchanged {
                    reduce_first: waited_for(wiring.reduce(self.first)),
                    reduce_all: of_all(&|size| wiring.reduce(size)),
                    ..Exchanged::default()
                },
                Zero::Gradients | Zero::Weights => Exchanged {
                    reduce_first: wiring.reduce_copies(self.first),
                    ..Exchanged::default()
                },
            };
            found.reduce_first = found.reduce_first.saturating_add(tied);
            if matches!(shape.zero, Zero::State | Zero::Gradients) {
                found.gather_first = waited_for(wiring.gather(self.first));
                found.gather_any = waited_for(wiring.gather(self.smallest));
                found.gather_all = of_all(&|size| wiring.gather(size));
            }
            found
        });
        exchanged.reduce(Exchanged::min).unwrap_or_default()
    }

    /// Ticks of the steps and of the gathering of weights that follow all gradients, at the least.
    ///
    /// The first weights that the first rank waits for are those of the first layer, or more. Some
    /// rank holds no fewer parameters than the average, and some rank gathers no less than the
    /// average beyond what its layers hide.
    fn steps(&self, problem: &Problem, shape: &Shape, most: u64, exchanged: &Exchanged) -> u128 {
        let Problem { profile, job, .. } = *problem;
        let sharding = Shape { data_parallel: most, ..*shape }.sharding(profile);
        let step = |stepped: u64| u128::from(job.optimizer_step(stepped));
        let own = step(sharding.stepped(self.first)) + u128::from(exchanged.gather_first);
        match job.ends.step_start {
            StepStart::OwnGradients => own,
            // All wait for the last of all gradients, and the batch for the slowest to end.
            StepStart::AllGradients => {
                let ranks = shape.ranks as u64;
                let fullest = step(sharding.stepped(self.parameters).div_ceil(ranks));
                let longer = job.ends.hiding == Hiding::Longer && shape.ranks > 1;
                let gathered = if longer { 0 } else { exchanged.gather_all };
                let exposed = gathered.saturating_sub(self.alone[0]);
                own.max(fullest + u128::from(exchanged.gather_any))
                    .max(exposed.div_ceil(ranks.into()))
            }
        }
    }

    /// Ticks that follow the last pass of the first rank, which is the last of all, in a shape with
    /// any of these numbers of pipelines, whatever the cut: the last bucket of gradients to leave the
    /// first rank is that of the first layer, or more.
    pub(super) fn follows(&self, problem: &Problem, shape: &Shape, pipelines: Range) -> u64 {
        let exchanged = self.exchanged(problem, shape, pipelines);
        let steps = self.steps(problem, shape, pipelines.1, &exchanged);
        let all = u128::from(exchanged.reduce_first) + steps;
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Whether the parameters alone may fit: some rank holds no fewer than the average, and the more
    /// share them, the less each holds.
    pub(super) fn may_hold(&self, problem: &Problem, candidate: &Candidate) -> bool {
        let Problem { profile, job, .. } = *problem;
        let Candidate { shape, pipelines, .. } = *candidate;
        let sharding = Shape { data_parallel: pipelines.1, ..shape }.sharding(profile);
        let held = sharding.held(self.parameters, job.parameter_bytes());
        let total = u128::from(held.weights.0) + u128::from(held.gradients.0);
        (total + u128::from(held.state.0)) / shape.ranks as u128 <= u128::from(job.memory)
    }

    /// Ticks in which every pass of a stage waits for the weights of a layer, at the least.
    fn waits(&self, problem: &Problem, shape: &Shape, (fewest, most): Range) -> u64 {
        if shape.zero != Zero::Weights || fewest != most {
            return 0;
        }
        let wiring = shape.wiring(problem.profile, problem.job);
        wiring.gather(self.smallest).saturating_mul(2)
    }

    /// Ticks that no layout can beat where only even ones are compared.
    fn least_of_family(&self, problem: &Problem, shape: &Shape, micro_batches: u64) -> u128 {
        let (n_layers, ranks) = (self.loads.n_layers(), shape.ranks);
        let n_stages = ranks * shape.schedule.chunks();
        if problem.choices.layouts == Family::Near
            || problem.choices.cut == CutChoice::Even
            || all_are_compared(n_layers, n_stages)
        {
            return 0;
        }
        let again = |from: usize, to: usize| match shape.recompute {
            Recompute::First(layers) => {
                let held = self.repeatable_before[to] - self.repeatable_before[from];
                u128::from(layers.min(held)) * u128::from(self.repeatable.1)
            }
            _ => 0,
        };
        let even = even_layouts(n_layers, n_stages);
        let times =
            even.iter().map(|sizes| self.loads.least_of(sizes, (ranks, micro_batches), again));
        times.min().unwrap_or(0)
    }

    /// Ticks of the forward passes that all virtual stages together run again, at the least: none is
    /// empty, so that each holds a layer that may be repeated but for as many as hold no other than
    /// those that may not. The fewest are repeated where one holds all that is left.
    fn repeated_by_all(&self, shape: &Shape) -> u64 {
        let (n_repeatable, forward) = self.repeatable;
        let Recompute::First(layers) = shape.recompute else { return 0 };
        let n_stages = (shape.ranks * shape.schedule.chunks()) as u64;
        let n_others = self.loads.n_layers() as u64 - n_repeatable;
        let Some(others) = n_stages.checked_sub(n_others + 1) else { return 0 };
        if layers == 0 || !self.is_chain {
            return 0;
        }
        let left = n_repeatable.saturating_sub(others);
        (others + layers.min(left)).saturating_mul(forward)
    }

    /// Ticks that no cut of a shape with any of these numbers of pipelines can beat; fewer, though more
    /// than `limit`, where that is soon known.
    pub(super) fn least_time(
        &self,
        problem: &Problem,
        (shape, pipelines): (&Shape, Range),
        micro_batches: u64,
        limit: Option<Rank>,
    ) -> u128 {
        let ranks = shape.ranks as u64;
        let (count, load, is_repeatable) = self.repeated;
        let (n_repeatable, forward) = self.repeatable;
        // Some rank holds at least the average number of layers, and repeats the first of them.
        let most = count.div_ceil(ranks);
        let again_of = |held: u64| match shape.recompute {
            Recompute::First(layers) => layers.min(held).saturating_mul(forward),
            _ => 0,
        };
        let again = again_of(n_repeatable.div_ceil(ranks)).max(self.repeated_by_all(shape));
        let everything = if shape.recompute == Recompute::Full { self.forward } else { 0 };
        let total = self.work + everything + u128::from(again);
        let average = u64::try_from(total.div_ceil(u128::from(ranks))).unwrap_or(u64::MAX);
        let repeats = if is_repeatable { again_of(most) } else { 0 };
        let fullest = most.saturating_mul(load).saturating_add(repeats);
        let waits = self.waits(problem, shape, pipelines);
        let whole = self.slowest_of(shape.ranks);
        let slowest = self.slowest.max(average).max(fullest).max(whole).saturating_add(waits);
        let is_beyond = |ticks: u128| limit.is_some_and(|limit| limit.time < ticks);
        let passes = match shape.schedule {
            PassOrder::OneForwardOneBackward => {
                least_time(micro_batches, shape.ranks, total, slowest)
            }
            PassOrder::Interleaved { .. } => {
                let busy = u128::from(micro_batches) * u128::from(slowest);
                let any = busy.max(total).max(self.interleaved(shape.ranks, micro_batches));
                if is_beyond(any) {
                    return any;
                }
                any.max(self.least_of_family(problem, shape, micro_batches))
            }
        };
        if is_beyond(passes) {
            return passes;
        }
        let exchanged = self.exchanged(problem, shape, pipelines);
        // A rank of load l and exchanges x has worked m · l before it has exchanged what its last
        // backward passes do not hide; over all ranks these are sums over all layers.
        let longer = problem.job.ends.hiding == Hiding::Longer && shape.schedule.chunks() > 1;
        let reduced = if longer { 0 } else { exchanged.reduce_all };
        let late = reduced.saturating_sub(self.alone[1]);
        let by_exchange = (u128::from(micro_batches) * self.work + late).div_ceil(ranks.into());
        let by_exchange = if late > 0 { by_exchange } else { 0 };
        let gradients = (passes + u128::from(exchanged.reduce_first)).max(by_exchange);
        gradients + self.steps(problem, shape, pipelines.1, &exchanged)
    }
}
