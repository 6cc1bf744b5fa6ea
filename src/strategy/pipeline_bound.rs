//! What bounds the time of a batch on any design: which numbers of ranks memory and devices allow.
//!
//! Memory does not depend on how fast a chip is, so this is found once per division, recompute
//! choice and HBM size, and then bounds the time per batch of every design in a few hundred
//! operations, given only a lower bound on its layer times ([`PipelineBound::least_time`]).
//!
//! The model is relaxed to its repeated layer: the others (embedding, head) weigh nothing in
//! memory but count in time. Every relaxation makes the bound smaller, never larger;
//! docs/search.md proves it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::pipeline_memory::PipelineLimits;
use super::pipeline_memory::Stages;
use super::roofline::FLOAT_ERROR;
use super::roofline::lowered;
use crate::plan::Recompute;
use crate::plan::TimeModel;

/// A number of ranks that may be possible.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    ranks: u64,
    stages: Stages,
    /// The fewest pipelines.
    fewest: u64,
    /// Micro-batches that each pipeline runs at the least.
    rounds: u64,
    /// The most repeated layers that fit in the last stage.
    last_stage: u64,
    /// Forward passes of repeated layers that memory asks to run again, for each micro-batch.
    repeats: f64,
    /// Repeated layers that the first and the last rank surely hold.
    in_ends: [u64; 2],
    exchanges: Exchanges,
}

/// Ticks of exchanges among replicas at the least, whatever the cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// The gradients of the first layer, after all passes.
    pub first: u64,
    /// The gradients of all layers, one by one, beside the last backward passes.
    pub gradients: u64,
    /// The new weights of all layers, one by one, beside the first forward passes of the next batch.
    pub weights: u64,
    /// What all layers exchange in each micro-batch.
    pub inside: u64,
}

/// One way for replicas to share.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Bytes of a device that the repeated layer's parameters take at the least.
    pub state: u64,
    /// What replicas exchange.
    pub exchanges: Exchanges,
}

/// The ways to divide a model that memory and devices may allow.
#[derive(Clone, Debug)]
pub struct PipelineBound {
    /// How many layers are copies of the repeated one.
    repeated: u64,
    recompute: Recompute,
    time_model: TimeModel,
    /// Those whose ranks have the least to do first.
    shapes: Vec<Shape>,
    /// The ranks of all other shapes have more than this part of all work to do.
    beyond: Option<f64>,
}

/// Shapes whose ranks have so many times more to do than those of the first one that fits are not told apart: most of
/// their devices idle, and what all have to do says enough of them.
const FARTHEST: f64 = 4.0;

/// The part of all work on all layers that a rank has to do in a batch, on average.
fn effort(rounds: u64, ranks: u64) -> f64 {
    rounds as f64 / ranks as f64
}

/// A number of ranks with numbers of pipelines that are not told apart.
struct Asked<'a> {
    ranks: u64,
    pipelines: &'a RangeInclusive<u64>,
    /// Micro-batches that each pipeline runs at the least: more pipelines leave each with fewer and share more, so that
    /// no bound grows.
    rounds: u64,
}

impl<'a> Asked<'a> {
    fn new(limits: &PipelineLimits, (ranks, pipelines): &'a (u64, RangeInclusive<u64>)) -> Self {
        let rounds = limits.micro_batches.div_ceil(*pipelines.end());
        Self { ranks: *ranks, pipelines, rounds }
    }

    fn effort(&self) -> f64 {
        effort(self.rounds, self.ranks)
    }
}

/// Lower bounds on the times of a model's layers on some design, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerTimes {
    /// Forward pass of the repeated layer.
    pub forward: f64,
    /// Backward pass of the repeated layer.
    pub backward: f64,
    /// Forward passes of all other layers together.
    pub others_forward: f64,
    /// Backward passes of all other layers together.
    pub others_backward: f64,
    /// Both passes of the first layer, and of the last, where they are not the repeated one.
    pub ends: [f64; 2],
}

/// Lower bounds on what a batch takes of energy on some design, in femtojoules.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerCosts {
    /// All passes of a micro-batch, each as often as it always runs, on all devices that share layers.
    pub once: f64,
    /// One more forward pass of the repeated layer, on all of them.
    pub again: f64,
    /// A device at rest for a picosecond.
    pub at_rest: f64,
    /// Micro-batches in a batch.
    pub micro_batches: f64,
    /// Devices that every stage takes at the least.
    pub devices_per_stage: f64,
}

/// How often every layer's forward pass runs at the least for each micro-batch. Where a stage
/// repeats, its last one does not, and that may hold nearly everything.
pub fn forward_passes(recompute: Recompute) -> u64 {
    match recompute {
        Recompute::None | Recompute::Stage | Recompute::First(_) | Recompute::AsNeeded => 1,
        Recompute::Full => 2,
    }
}

impl PipelineBound {
    /// Finds all shapes; `sharings(ranks, pipelines)` are the ways for replicas to share, each with
    /// what none of these numbers of pipelines of so many ranks can beat.
    pub fn new(
        limits: &PipelineLimits,
        sharings: impl Fn(u64, &RangeInclusive<u64>) -> Vec<Sharing>,
    ) -> Self {
        let mut asked: Vec<Asked> =
            limits.pipelines.iter().map(|of| Asked::new(limits, of)).collect();
        // Of those that ask for as much the first: the fewest ranks, the most pipelines.
        asked.sort_by(|a, b| a.effort().total_cmp(&b.effort()));
        let mut shapes: Vec<Shape> = Vec::new();
        // Places of those with so many ranks and stages: only they may cover each other.
        let mut alike: BTreeMap<(u64, Stages), Vec<usize>> = BTreeMap::new();
        let mut beyond = None;
        // With several stages nothing in flight depends on the number of pipelines.
        let mut several: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for of in asked {
            let farthest = shapes
                .first()
                .filter(|_| !limits.devices_count)
                .map(|least| FARTHEST * least.effort());
            beyond = farthest.filter(|&farthest| of.effort() > farthest);
            if beyond.is_some() {
                break;
            }
            let Asked { ranks, pipelines, rounds } = of;
            let most_rounds = limits.micro_batches.div_ceil(*pipelines.start());
            let sharings = sharings(ranks, pipelines);
            for stages in limits.stages(ranks, most_rounds) {
                let all = || limits.in_flight((ranks, rounds, stages));
                let one;
                let in_flight = match stages {
                    Stages::One => {
                        one = all();
                        &one
                    }
                    Stages::Several => several.entry(ranks).or_insert_with(all),
                };
                let in_ends = match stages {
                    Stages::One => limits.in_ends.get(&ranks).copied().unwrap_or_default(),
                    Stages::Several => [0, 0],
                };
                let alike = alike.entry((ranks, stages)).or_default();
                for &Sharing { state, exchanges } in &sharings {
                    let last_stage = limits.most_layers((1, ranks), in_flight[0], state);
                    let fewest = *pipelines.start();
                    let shape = |repeats| Shape {
                        ranks,
                        stages,
                        fewest,
                        rounds,
                        last_stage,
                        repeats,
                        in_ends,
                        exchanges,
                    };
                    let covers = |known: &Shape, shape: &Shape| {
                        known.covers(shape) && (!limits.devices_count || known.fewest <= fewest)
                    };
                    let is_covered =
                        |shape: &Shape| alike.iter().any(|&known| covers(&shapes[known], shape));
                    // What is covered though it repeats nothing need not be looked at closely.
                    if is_covered(&shape(0.0)) {
                        continue;
                    }
                    let Some(repeats) = limits.least_repeats(in_flight, state) else { continue };
                    let shape = shape(repeats);
                    if !is_covered(&shape) {
                        alike.push(shapes.len());
                        shapes.push(shape);
                    }
                }
            }
        }
        shapes.shrink_to_fit();
        let PipelineLimits { repeated, recompute, time_model, .. } = *limits;
        Self { repeated, recompute, time_model, shapes, beyond }
    }

    /// An energy per batch that no placement of layers can beat that are at least this slow and take at least so
    /// much; `None` where nothing fits.
    ///
    /// Devices work at the least on all layers, repeated ones twice, and are in use as long as a batch lasts.
    pub fn least_energy(&self, layer: LayerTimes, costs: LayerCosts) -> Option<f64> {
        let LayerCosts { once, again, at_rest, micro_batches, devices_per_stage } = costs;
        let repeated = self.repeated as f64;
        let forwards = forward_passes(self.recompute) as f64;
        let work = forwards * (repeated * layer.forward + layer.others_forward)
            + repeated * layer.backward
            + layer.others_backward;
        let mut least = f64::INFINITY;
        for shape in &self.shapes {
            let computing = micro_batches * (once + shape.repeats * again);
            let busy = micro_batches * (work + shape.repeats * layer.forward);
            if computing + at_rest * devices_per_stage * busy >= least {
                continue;
            }
            let lasts = self.time_of(shape, layer) * (shape.ranks * shape.fewest) as f64;
            least = least.min(computing + at_rest * devices_per_stage * busy.max(lasts));
        }
        if self.beyond.is_some() {
            least = least.min(micro_batches * (once + at_rest * devices_per_stage * work));
        }
        (least < f64::INFINITY).then_some(least * (1.0 - FLOAT_ERROR))
    }

    /// Forward passes of repeated layers that memory asks to run again at the least for each micro-batch, in
    /// so many pipelines of so many ranks that run so many of these each.
    pub fn least_repeats(
        &self,
        (ranks, pipelines, rounds): (u64, u64, u64),
        stages: Stages,
    ) -> f64 {
        let alike = |shape: &&Shape| {
            shape.ranks == ranks
                && shape.stages == stages
                && shape.fewest <= pipelines
                && shape.rounds <= rounds
        };
        let least = self
            .shapes
            .iter()
            .filter(alike)
            .map(|shape| shape.repeats)
            .fold(f64::INFINITY, f64::min);
        if self.beyond.is_some() || least.is_infinite() { 0.0 } else { least }
    }

    /// A time per batch that no placement of layers at least this slow can beat; `None` where
    /// nothing fits.
    pub fn least_time(&self, layer: LayerTimes) -> Option<u64> {
        let least = self.least_below(layer, f64::INFINITY);
        (least < f64::INFINITY).then(|| lowered(least))
    }

    /// The same before it is lowered, or `known` where that is less or nothing fits.
    pub fn least_below(&self, layer: LayerTimes, known: f64) -> f64 {
        let repeated = self.repeated as f64;
        let all = repeated * (layer.forward + layer.backward)
            + layer.others_forward
            + layer.others_backward;
        let mut least = known;
        for shape in &self.shapes {
            // The rest has at least as much to do.
            if least <= shape.effort() * all {
                return least;
            }
            least = least.min(self.time_of(shape, layer));
        }
        self.beyond.map_or(least, |beyond| least.min(beyond * all))
    }

    fn time_of(&self, shape: &Shape, layer: LayerTimes) -> f64 {
        let passes = self.time_of_passes(shape, layer);
        match self.time_model {
            TimeModel::Published => passes,
            TimeModel::OneForwardOneBackward => {
                let after = shape.exchanges.first as f64;
                let once = layer.forward + layer.backward;
                let passes = passes.max(self.with_whole_layers(shape, once, layer.ends));
                (passes + after).max(self.time_of_exchanges(shape, layer))
            }
        }
    }

    /// The bound by what ranks exchange. A rank has run all its passes before it has exchanged what
    /// its last backward passes do not hide, and waits for new weights beyond what its first forward
    /// passes hide: over all ranks these are sums over all layers, of which some rank has the
    /// average.
    fn time_of_exchanges(&self, shape: &Shape, layer: LayerTimes) -> f64 {
        let repeated = self.repeated as f64;
        let forward = repeated * layer.forward + layer.others_forward;
        let backward = repeated * layer.backward + layer.others_backward;
        let Exchanges { gradients, weights, inside, .. } = shape.exchanges;
        let rounds = shape.rounds as f64;
        let late = rounds * forward + (rounds - 1.0) * backward + gradients as f64;
        let both = (rounds - 1.0) * (forward + backward) + gradients as f64 + weights as f64;
        late.max(both).max(rounds * inside as f64) / shape.ranks as f64
    }

    fn time_of_passes(&self, shape: &Shape, layer: LayerTimes) -> f64 {
        let LayerTimes { forward, backward, others_forward, others_backward, ends } = layer;
        let (once, rest) = (forward + backward, others_forward + others_backward);
        let [first, last] = [0, 1].map(|at| shape.in_ends[at] as f64 * once + ends[at]);
        let end = first.max(last);
        match self.recompute {
            Recompute::Full => self.with_loads(shape, forward + once, others_forward + rest, end),
            Recompute::Stage if shape.ranks > 1 => {
                self.with_stage_recompute(shape, once, forward + once, rest)
            }
            Recompute::None | Recompute::Stage | Recompute::First(_) | Recompute::AsNeeded => {
                self.with_loads(shape, once, rest + shape.repeats * forward, end)
            }
        }
    }

    /// The bound by whole layers: a rank works for every micro-batch on what it holds, the last one
    /// after the first stages before it have been run through and before they are run back through,
    /// the first one on the first layer and the last one on the last layer besides.
    ///
    /// With u = m · `load` the time of rank r is c + i · u where it holds i repeated layers, so that no
    /// batch is shorter than the n-th smallest of all c + i · u for n repeated layers. Of the time
    /// q · u + ρ each rank can hold q − ⌊c / u⌋ of them, less one where ρ is below the remainder of c.
    fn with_whole_layers(&self, shape: &Shape, load: f64, [first, last]: [f64; 2]) -> f64 {
        let (rounds, ranks) = (shape.rounds as f64, shape.ranks as f64);
        let unit = rounds * load;
        if shape.ranks < 2 || unit <= 0.0 {
            return 0.0;
        }
        let held = [rounds * first, rounds * last + first + (ranks - 2.0) * load];
        let whole = held.map(|held| (held / unit).floor());
        let rest = [held[0] - whole[0] * unit, held[1] - whole[1] * unit];
        let layers = self.repeated as f64 + whole[0] + whole[1];
        let each = (layers / ranks).ceil();
        let spare = each * ranks - layers;
        let beyond = if spare < 1.0 {
            rest[0].max(rest[1])
        } else if spare < 2.0 {
            rest[0].min(rest[1])
        } else {
            0.0
        };
        held[0].max(held[1]).max(each * unit + beyond)
    }

    /// The bound where each repeated layer adds `load` to its rank, and the others `rest` in all, and a rank at one
    /// end has at least the load `end`.
    fn with_loads(&self, shape: &Shape, load: f64, rest: f64, end: f64) -> f64 {
        let repeated = self.repeated;
        let sum = repeated as f64 * load + rest;
        // Some rank holds at least the average number of layers, and at least the average load.
        let slowest = (repeated.div_ceil(shape.ranks) as f64 * load).max(sum / shape.ranks as f64);
        self.time_from(shape, sum, slowest.max(end))
    }

    /// The bound where a layer costs `once` in the last stage, which repeats nothing and holds at
    /// most so many, and `twice` in the others.
    fn with_stage_recompute(&self, shape: &Shape, once: f64, twice: f64, rest: f64) -> f64 {
        let repeated = self.repeated;
        let most = shape.last_stage.min(repeated);
        let sum = |in_last: u64| in_last as f64 * once + (repeated - in_last) as f64 * twice + rest;
        let earlier = |in_last: u64| (repeated - in_last).div_ceil(shape.ranks - 1) as f64 * twice;
        // The more in the last stage, the less there is in all.
        let by_average = self.time_from(shape, sum(most), sum(most) / shape.ranks as f64);
        // The slowest stage is the shortest where the last and the others balance.
        let (mut below, mut balanced) = (0, repeated);
        while below < balanced {
            let middle = below + (balanced - below) / 2;
            if middle as f64 * once >= earlier(middle) {
                balanced = middle;
            } else {
                below = middle + 1;
            }
        }
        let slowest = [balanced.saturating_sub(1).min(most), balanced.min(most)]
            .map(|x| earlier(x).max(x as f64 * once));
        by_average.max(self.time_from(shape, sum(most), slowest[0].min(slowest[1])))
    }

    /// What no batch can beat whose loads sum up to at least `sum`, the slowest rank's at least
    /// `slowest`.
    fn time_from(&self, shape: &Shape, sum: f64, slowest: f64) -> f64 {
        let (rounds, ranks) = (shape.rounds as f64, shape.ranks as f64);
        match self.time_model {
            TimeModel::Published => slowest * (rounds + ranks - 1.0),
            TimeModel::OneForwardOneBackward => {
                let works = (rounds * slowest).max(sum);
                if shape.stages == Stages::Several {
                    return works;
                }
                let turning = match shape.rounds.cmp(&shape.ranks) {
                    std::cmp::Ordering::Greater => 2.0 * sum + (rounds - ranks - 1.0) * slowest,
                    std::cmp::Ordering::Equal => 2.0 * sum * rounds / (rounds + 1.0),
                    std::cmp::Ordering::Less => 0.0,
                };
                works.max(sum + (rounds - 1.0) * slowest / 2.0).max(turning)
            }
        }
    }
}

impl Shape {
    fn effort(&self) -> f64 {
        effort(self.rounds, self.ranks)
    }

    /// Whether nothing that `other` bounds is faster than what this does: it has as many ranks, no
    /// more to do, and no less room.
    fn covers(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.exchanges, &other.exchanges);
        self.ranks == other.ranks
            && self.stages == other.stages
            && self.repeats <= other.repeats
            && self.rounds <= other.rounds
            && self.last_stage >= other.last_stage
            && mine.first <= theirs.first
            && mine.gradients <= theirs.gradients
            && mine.weights <= theirs.weights
            && mine.inside <= theirs.inside
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipeline_memory::Layouts;
    use super::*;
    use crate::placement::noise::Noise;

    fn limits(noise: &mut Noise) -> PipelineLimits {
        let n_layers = noise.of(&[6, 12, 30]);
        let mut pipelines = Vec::new();
        for ranks in 1..=n_layers as u64 {
            let singles = (1..=64 / ranks).rev();
            pipelines.extend(singles.map(|n| (ranks, n..=n)));
        }
        PipelineLimits {
            pipelines,
            micro_batches: noise.of(&[64, 100]),
            repeated: n_layers as u64 - 2,
            recompute: noise.of(&[Recompute::None, Recompute::AsNeeded, Recompute::Full]),
            devices_count: false,
            time_model: TimeModel::OneForwardOneBackward,
            chunks: 1..=noise.of(&[1, 2]),
            layouts: Layouts { n_layers, longer: Some(0) },
            in_ends: BTreeMap::new(),
            capacity: noise.of(&[60, 200, 1000]),
            kept: 10,
            input: 2,
            working: 0,
        }
    }

    #[test]
    fn what_is_not_told_apart_is_never_bounded_above_its_own_and_seldom_below_the_least() {
        let mut noise = Noise(0xFA2);
        let (mut fits, mut less) = (0, 0);
        for _ in 0..200 {
            let limits = limits(&mut noise);
            let most = noise.of(&[0, 10, 1000, 100_000]);
            // The fewer share, the less they exchange: then devices idle.
            let exchanged = |pipelines: &RangeInclusive<u64>| most * (pipelines.start() - 1);
            let sharings = |_: u64, pipelines: &RangeInclusive<u64>| {
                let first = exchanged(pipelines);
                let exchanges = Exchanges { first, ..Exchanges::default() };
                vec![Sharing { state: 1, exchanges }]
            };
            let layer = LayerTimes {
                forward: 10.0,
                backward: noise.of(&[10.0, 20.0]),
                others_forward: 3.0,
                others_backward: 3.0,
                ends: [noise.of(&[0.0, 40.0]), 6.0],
            };
            let each = limits.pipelines.iter().filter_map(|one| {
                let alone = PipelineLimits { pipelines: vec![one.clone()], ..limits.clone() };
                PipelineBound::new(&alone, sharings).least_time(layer)
            });
            let each = each.min();
            let all = PipelineBound::new(&limits, sharings);
            let found = all.least_time(layer);
            assert!(found <= each && found.is_some() == each.is_some(), "{found:?} {each:?}");
            fits += u32::from(found.is_some());
            less += u32::from(found < each);
            assert!(found == each || all.beyond.is_some());
        }
        assert!(fits > 100 && less > 0 && less < fits / 2, "{less} of {fits}");
    }
}
