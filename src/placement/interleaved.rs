//! The best layout of a chain over virtual stages, in interleaved 1F1B.
//!
//! In: what a chunk costs at its place ([`ChunkCosts`]), ranks, chunks, group, micro-batches, the
//! memory of a rank. Out: the layout of least batch time, and among which layouts it is the best. No
//! closed form is known, so layouts are dealt stage by stage while no rank has too much to do, then
//! put in the order of a bound ([`layout_bounds`](super::layout_bounds)) and played pass by pass
//! until the next bound is no better. Where there are too many, a declared family
//! ([`layouts`]) stands for them, and a bound over any layout says how much could
//! be missed at most.

use super::layout::Layout;
use super::layout_bounds::LayerLoads;
use super::layout_bounds::OrderBound;
use super::layout_bounds::least_layout_time;
use super::layouts;
use super::layouts::Dealt;
use super::layouts::Part;
use crate::plan::IllegalOrder;
use crate::plan::PassOrder;
use crate::plan::StageTime;
use crate::plan::StepStart;

/// What one virtual stage costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkFigures {
    /// Ticks of the forward pass of one micro-batch.
    pub forward: u64,
    /// Ticks of the backward pass of one micro-batch, what is repeated included.
    pub backward: u64,
    /// What is kept of one micro-batch from the forward to the backward pass.
    pub kept: u64,
}

/// Ticks of a rank after its last backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterFigures {
    /// The exchange of gradients, as far as it is not hidden behind that pass.
    pub exposed: u64,
    /// The optimizer's step, and the gathering of new weights that is waited for.
    pub after: u64,
}

/// What chunks of a chain cost, and the ranks that hold them. Layers are counted from the input;
/// virtual stage j is chunk ⌊j / p⌋ of rank j mod p. A pair of layers is the first and one after
/// the last.
pub trait ChunkCosts {
    /// How many layers there are.
    fn n_layers(&self) -> usize;
    /// Both passes of one layer, such that no chunk takes less than all its layers together.
    fn layer(&self, layer: usize) -> StageTime;
    /// What a virtual stage costs that holds these layers.
    fn chunk(&self, stage: usize, from: usize, to: usize) -> ChunkFigures;
    /// What a rank holds of these chunks beside the activations that are kept.
    fn held(&self, rank: usize, chunks: &[(usize, usize)]) -> u128;
    /// What follows the last backward pass of a rank of these chunks.
    fn after(&self, rank: usize, chunks: &[(usize, usize)]) -> AfterFigures;
    /// Ticks that follow the last pass of the first rank, whatever the layout.
    fn follows(&self) -> u64 {
        0
    }
    /// Is told that a layout was left out because it takes too much memory.
    fn does_not_fit(&self) {}
}

/// How the virtual stages are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterleavedShape {
    /// Ranks of the pipeline.
    pub ranks: usize,
    /// Virtual stages of each rank.
    pub chunks: usize,
    /// Micro-batches of a group.
    pub group: u64,
    /// Micro-batches of the pipeline.
    pub micro_batches: u64,
    /// Memory of one device.
    pub memory: u128,
    /// Ticks that a tensor travels to the next virtual stage, beside computation.
    pub delay: u64,
    /// When a rank may begin its optimizer step.
    pub start: StepStart,
}

impl InterleavedShape {
    pub(super) fn order(&self) -> PassOrder {
        PassOrder::Interleaved { chunks: self.chunks, group: self.group }
    }

    fn n_stages(&self) -> usize {
        self.ranks * self.chunks
    }
}

/// Among which layouts an answer is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Among all in which no virtual stage is empty.
    AllLayouts,
    /// Among a declared family and the even ones; no layout at all takes less than `least`.
    Family {
        /// Ticks of a batch, ends apart, that no layout can beat.
        least: u128,
    },
}

/// The best layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterleavedLayout {
    /// How many layers each virtual stage holds, in the order of the chain.
    pub sizes: Vec<usize>,
    /// Ticks of the batch.
    pub time: u128,
    /// The most memory that each rank needs.
    pub memory: Vec<u128>,
    /// Among which layouts it is the best.
    pub scope: Scope,
}

/// Why a problem is not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsolved {
    /// The order cannot be run.
    #[error(transparent)]
    Illegal(#[from] IllegalOrder),
    /// A batch neither repeats itself nor is short enough to be played.
    #[error("the batch has too many passes to be played, and does not repeat itself")]
    TooLong,
}

/// Up to so many layouts, all are compared.
pub const MOST_LAYOUTS: u64 = 100;

/// In the family that stands for more, the first and the last virtual stage differ from those between
/// by at most so many layers.
pub const NEAR: usize = 3;

/// Which layouts are compared where there are too many to compare all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Those in which repeated layers are divided evenly, the embedding and the head each counted as
    /// a layer or not.
    Even,
    /// Those too whose virtual stages between the first and the last differ by one layer at most,
    /// and from the first and the last by at most [`NEAR`].
    Near,
}

/// Whether every layout of so many layers is compared, not a family alone.
pub fn all_are_compared(n_layers: usize, n_stages: usize) -> bool {
    layouts::are_at_most(n_layers, n_stages, MOST_LAYOUTS)
}

/// The fastest layout that fits and takes less than `limit`; `None` where there is none. Of equally
/// fast ones the first is taken: even ones, then by bound, then by the sizes of their stages.
pub fn best_layout(
    costs: &impl ChunkCosts,
    shape: InterleavedShape,
    family: Family,
    limit: Option<u128>,
) -> Result<Option<InterleavedLayout>, Unsolved> {
    let near = match family {
        Family::Even => None,
        Family::Near => Some(NEAR),
    };
    best_among(costs, shape, limit, (MOST_LAYOUTS, near))
}

fn best_among(
    costs: &impl ChunkCosts,
    shape: InterleavedShape,
    limit: Option<u128>,
    (most_layouts, near): (u64, Option<usize>),
) -> Result<Option<InterleavedLayout>, Unsolved> {
    shape.order().check(shape.ranks, shape.micro_batches)?;
    let (n_layers, n_stages) = (costs.n_layers(), shape.n_stages());
    let layers: Vec<StageTime> = (0..n_layers).map(|layer| costs.layer(layer)).collect();
    let loads = LayerLoads::new(&layers);
    let limit = limit.unwrap_or(u128::MAX);
    let follows = u128::from(costs.follows());
    let least = least_layout_time(&loads, shape.ranks, shape.micro_batches, shape.delay);
    if n_stages > n_layers || least + follows >= limit {
        return Ok(None);
    }
    let all = layouts::count(n_layers, n_stages) <= u128::from(most_layouts);
    let even = layouts::even_layouts(n_layers, n_stages);
    let hopeful =
        |sizes: &Vec<usize>| Layout::new(costs, shape, sizes).least_work() + follows < limit;
    if !all && near.is_none() && !even.iter().any(hopeful) {
        return Ok(None);
    }
    let mut search = Search::new(costs, shape, &layers, limit);
    for sizes in even {
        search.consider(&sizes);
    }
    if all {
        layouts::deal(n_layers, n_stages, None, &mut search);
    } else if let Some(near) = near {
        search.deal_family(near);
    }
    let Some(sizes) = search.play_hopeful()? else { return Ok(None) };
    let scope = if all { Scope::AllLayouts } else { Scope::Family { least } };
    let memory = Layout::new(costs, shape, &sizes).memory();
    Ok(Some(InterleavedLayout { sizes, time: search.limit, memory, scope }))
}

/// The search for a faster layout than `limit`.
struct Search<'a, C> {
    costs: &'a C,
    shape: InterleavedShape,
    bound: OrderBound,
    /// The load of the lightest layer.
    lightest: u128,
    /// The fewest layers of a virtual stage between the first and the last.
    fewest: u128,
    /// What the ranks have been dealt so far: loads of each, and of each virtual stage.
    by_rank: Vec<u128>,
    by_stage: Vec<u128>,
    /// By rank: the way through the first virtual stages before its own, and back.
    reached: Vec<u128>,
    limit: u128,
    /// The best so far, what was played at once, what is worth playing with its bound, and the
    /// least of all bounds.
    best: Option<Vec<usize>>,
    played: Vec<Vec<usize>>,
    hopeful: Vec<(u128, Vec<usize>)>,
    least: u128,
    failed: Option<Unsolved>,
}

impl<'a, C: ChunkCosts> Search<'a, C> {
    fn new(costs: &'a C, shape: InterleavedShape, layers: &[StageTime], limit: u128) -> Self {
        Self {
            costs,
            shape,
            bound: OrderBound::new(shape),
            lightest: layers.iter().map(|time| u128::from(time.load())).min().unwrap_or(0),
            fewest: 1,
            by_rank: vec![0; shape.ranks],
            by_stage: Vec::new(),
            reached: vec![0; shape.ranks],
            limit,
            best: None,
            played: Vec::new(),
            hopeful: Vec::new(),
            least: u128::MAX,
            failed: None,
        }
    }

    /// Deals the family, the parts that promise most first.
    fn deal_family(&mut self, near: usize) {
        let (n_layers, n_stages) = (self.costs.n_layers(), self.shape.n_stages());
        let parts = layouts::parts(n_layers, n_stages, near);
        let bounded = parts.map(|part| (self.part_bound(part), part));
        let mut parts: Vec<(u128, Part)> =
            bounded.filter(|(bound, _)| *bound < self.limit).collect();
        parts.sort_by_key(|(bound, _)| *bound);
        for (bound, part) in parts {
            if bound >= self.limit {
                break;
            }
            self.fewest = part.between as u128;
            layouts::deal(n_layers, n_stages, Some(part), self);
        }
    }

    /// Ticks that no layout of a part of the family can beat: ranks work at least so long, the
    /// last one after the first virtual stages have been run through and before they are again.
    fn part_bound(&self, part: Part) -> u128 {
        let InterleavedShape { ranks, chunks, micro_batches, delay, .. } = self.shape;
        let load = |stage: usize, from: usize, to: usize| {
            let figures = self.costs.chunk(stage, from, to);
            u128::from(figures.forward) + u128::from(figures.backward)
        };
        let (n, m) = (self.costs.n_layers(), u128::from(micro_batches));
        let between = part.between as u128 * self.lightest;
        let others = (chunks as u128 - 1) * between;
        let first = load(0, 0, part.first);
        let last = load(self.shape.n_stages() - 1, n - part.last, n);
        let after = ranks as u128 - 1;
        let reached = if after == 0 { 0 } else { first + (after - 1) * between };
        let by_last = m * (last + others) + reached + 2 * after * u128::from(delay);
        let by_another = if ranks > 2 { m * (between + others) } else { 0 };
        by_last.max(by_another).max(m * (first + others))
    }

    /// Plays a layout at once if it promises more than all before it, so that what it takes keeps
    /// the list of hopeful ones short; else puts it there.
    fn consider(&mut self, sizes: &[usize]) {
        let layout = Layout::new(self.costs, self.shape, sizes);
        if layout.least_work() + u128::from(self.costs.follows()) >= self.limit {
            return;
        }
        let bound = layout.least(&self.bound);
        let known = || self.played.iter().any(|played| played == sizes);
        if bound >= self.limit || known() {
            return;
        }
        if !layout.fits() {
            self.costs.does_not_fit();
            return;
        }
        if bound < self.least {
            self.least = bound;
            self.played.push(sizes.to_vec());
            self.play(&layout, sizes);
        } else {
            self.hopeful.push((bound, sizes.to_vec()));
        }
    }

    fn play(&mut self, layout: &Layout<C>, sizes: &[usize]) {
        match layout.time_below(self.limit) {
            Ok(Some(time)) => {
                self.limit = time;
                self.best = Some(sizes.to_vec());
            }
            Ok(None) => {}
            Err(why) => self.failed = Some(why),
        }
    }

    /// The fastest of all layouts that were dealt.
    fn play_hopeful(&mut self) -> Result<Option<Vec<usize>>, Unsolved> {
        let mut hopeful = std::mem::take(&mut self.hopeful);
        hopeful.sort();
        hopeful.dedup();
        for (bound, sizes) in hopeful {
            if bound >= self.limit || self.failed.is_some() {
                break;
            }
            self.play(&Layout::new(self.costs, self.shape, &sizes), &sizes);
        }
        self.failed.map_or(Ok(self.best.take()), Err)
    }
}

impl<C: ChunkCosts> Dealt for Search<'_, C> {
    /// A rank works m times its load, after the first virtual stages before its own have been run
    /// through, and before they are run back through.
    fn takes(&mut self, stage: usize, (from, to): (usize, usize)) -> bool {
        let InterleavedShape { ranks, chunks, micro_batches, delay, .. } = self.shape;
        let rank = stage % ranks;
        let ChunkFigures { forward, backward, .. } = self.costs.chunk(stage, from, to);
        let load = u128::from(forward) + u128::from(backward);
        // The last virtual stage of all may hold less than those before it.
        let n_later = (chunks - 1 - stage / ranks).saturating_sub(usize::from(rank + 1 == ranks));
        let later = n_later as u128 * self.fewest * self.lightest;
        let works = self.by_rank[rank] + load + later;
        let least = u128::from(micro_batches) * works + self.reached[rank];
        if least >= self.limit || self.failed.is_some() {
            return false;
        }
        if stage + 1 < ranks {
            self.reached[stage + 1] = self.reached[stage] + load + 2 * u128::from(delay);
        }
        self.by_rank[rank] += load;
        self.by_stage.push(load);
        true
    }

    fn gives_back(&mut self, stage: usize, _: (usize, usize)) {
        let load = self.by_stage.pop().expect("what is given back was taken");
        self.by_rank[stage % self.shape.ranks] -= load;
    }

    fn is_complete(&mut self, sizes: &[usize]) {
        self.consider(sizes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::noise::Noise;
    use crate::plan::PipelinedBatch;

    /// Ticks of the batch of one layout and the most memory that each rank needs, by definition.
    fn layout_cost(
        costs: &impl ChunkCosts,
        shape: InterleavedShape,
        sizes: &[usize],
    ) -> Result<(u128, Vec<u128>), Unsolved> {
        shape.order().check(shape.ranks, shape.micro_batches)?;
        let layout = Layout::new(costs, shape, sizes);
        let memory = layout.memory();
        let time = layout.time_below(u128::MAX)?.ok_or(Unsolved::TooLong)?;
        Ok((time, memory))
    }

    #[derive(Clone, Copy)]
    struct Layer {
        time: StageTime,
        kept: u64,
        held: u64,
        end: u64,
    }

    struct Toy {
        layers: Vec<Layer>,
        /// What a chunk takes beside its layers, by its virtual stage.
        beside: Vec<u64>,
    }

    impl ChunkCosts for Toy {
        fn n_layers(&self) -> usize {
            self.layers.len()
        }

        fn layer(&self, layer: usize) -> StageTime {
            self.layers[layer].time
        }

        fn chunk(&self, stage: usize, from: usize, to: usize) -> ChunkFigures {
            let sum = |of: fn(&Layer) -> u64| self.layers[from..to].iter().map(of).sum::<u64>();
            ChunkFigures {
                forward: sum(|layer| layer.time.forward) + self.beside[stage],
                backward: sum(|layer| layer.time.backward),
                kept: sum(|layer| layer.kept),
            }
        }

        fn held(&self, rank: usize, chunks: &[(usize, usize)]) -> u128 {
            let own = chunks.iter().flat_map(|&(from, to)| &self.layers[from..to]);
            own.map(|layer| u128::from(layer.held)).sum::<u128>() + rank as u128
        }

        fn after(&self, rank: usize, chunks: &[(usize, usize)]) -> AfterFigures {
            let own = chunks.iter().flat_map(|&(from, to)| &self.layers[from..to]);
            let end: u64 = own.map(|layer| layer.end).sum();
            AfterFigures { exposed: end + rank as u64, after: end / 2 }
        }
    }

    fn random(noise: &mut Noise) -> (Toy, InterleavedShape) {
        let (ranks, chunks) = [(2, 2), (2, 2), (2, 3), (3, 2)][noise.index(4)];
        let n = ranks * chunks + noise.index(4);
        let ends = [1, 9, 90][noise.index(3)];
        let layer = |noise: &mut Noise| Layer {
            time: StageTime { forward: noise.below(20), backward: noise.below(40) },
            kept: noise.below(9),
            held: noise.below(30),
            end: noise.below(ends),
        };
        // Few kinds half of the time, as in real models.
        let kinds: Vec<Layer> = (0..2).map(|_| layer(noise)).collect();
        let few = noise.below(2) == 0;
        let pick = |noise: &mut Noise| {
            if few { kinds[usize::from(noise.below(5) == 0)] } else { layer(noise) }
        };
        let layers = (0..n).map(|_| pick(noise)).collect();
        let most_beside = [1, 4][noise.index(2)];
        let beside = (0..ranks * chunks).map(|_| noise.below(most_beside)).collect();
        let group = ranks as u64 + noise.below(2);
        let shape = InterleavedShape {
            ranks,
            chunks,
            group,
            micro_batches: group * (1 + noise.below(3))
                + if group > ranks as u64 { ranks as u64 * noise.below(2) } else { 0 },
            memory: [u128::MAX, 60 + u128::from(noise.below(300))][noise.index(2)],
            delay: noise.below(3),
            start: [StepStart::OwnGradients, StepStart::AllGradients][noise.index(2)],
        };
        (Toy { layers, beside }, shape)
    }

    /// Every layout, one bit per boundary between two layers.
    fn all_layouts(n_layers: usize, n_stages: usize) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        for cuts in 0..1_u32 << (n_layers - 1) {
            if cuts.count_ones() as usize + 1 == n_stages {
                let mut sizes = vec![1];
                for boundary in 0..n_layers - 1 {
                    if cuts >> boundary & 1 == 1 {
                        sizes.push(1);
                    } else {
                        *sizes.last_mut().unwrap() += 1;
                    }
                }
                found.push(sizes);
            }
        }
        found
    }

    /// Time and memory of one layout, by definition: every pass played, every moment looked at.
    fn judged(toy: &Toy, shape: InterleavedShape, sizes: &[usize]) -> (u128, Vec<u128>) {
        let InterleavedShape { ranks, micro_batches, delay, .. } = shape;
        let ranges: Vec<(usize, usize)> = layouts::ranges(sizes).collect();
        let figures = |stage: usize| toy.chunk(stage, ranges[stage].0, ranges[stage].1);
        let times: Vec<StageTime> = (0..ranges.len())
            .map(figures)
            .map(|chunk| StageTime { forward: chunk.forward, backward: chunk.backward })
            .collect();
        let order = shape.order();
        let ends = PipelinedBatch { order, ranks, micro_batches, times: &times, delay }
            .play(|_| ())
            .unwrap();
        let (mut exposed, mut own, mut late, mut memory) = (0, 0, 0, Vec::new());
        for rank in 0..ranks {
            let chunks: Vec<_> = ranges.iter().skip(rank).step_by(ranks).copied().collect();
            let last = *ends.iter().skip(rank).step_by(ranks).max().unwrap();
            let after = toy.after(rank, &chunks);
            exposed = exposed.max(last + after.exposed);
            own = own.max(last + after.exposed + after.after);
            late = late.max(after.after);
            let kept = |stage: usize| u128::from(figures(stage).kept);
            memory.push(toy.held(rank, &chunks) + order.peak(ranks, micro_batches, rank, kept));
        }
        let time = if shape.start == StepStart::OwnGradients { own } else { exposed + late };
        (time.into(), memory)
    }

    #[test]
    fn the_best_of_all_layouts_agrees_with_brute_force_and_no_bound_is_beaten() {
        let mut noise = Noise(0x1417);
        let mut solved = 0;
        for _ in 0..2000 {
            let (toy, shape) = random(&mut noise);
            let bound = OrderBound::new(shape);
            let layers: Vec<StageTime> = toy.layers.iter().map(|layer| layer.time).collect();
            let loads = LayerLoads::new(&layers);
            let least = least_layout_time(&loads, shape.ranks, shape.micro_batches, shape.delay);
            let mut best: Option<u128> = None;
            for sizes in all_layouts(toy.layers.len(), shape.n_stages()) {
                let (time, memory) = judged(&toy, shape, &sizes);
                assert!(Layout::new(&toy, shape, &sizes).least(&bound) <= time, "{sizes:?}");
                assert!(least <= time, "{sizes:?}");
                let by_layers =
                    loads.least_of(&sizes, (shape.ranks, shape.micro_batches), |_, _| 0);
                assert!(by_layers <= time, "{sizes:?}");
                assert_eq!(layout_cost(&toy, shape, &sizes), Ok((time, memory.clone())));
                if memory.iter().all(|&needed| needed <= shape.memory) {
                    best = Some(best.map_or(time, |best| best.min(time)));
                }
            }
            let found = best_layout(&toy, shape, Family::Near, None).unwrap();
            assert_eq!(found.as_ref().map(|found| found.time), best);
            let Some(found) = found else { continue };
            assert_eq!(found.scope, Scope::AllLayouts);
            assert_eq!(judged(&toy, shape, &found.sizes), (found.time, found.memory.clone()));
            assert_eq!(best_layout(&toy, shape, Family::Near, best), Ok(None));
            let above =
                best_layout(&toy, shape, Family::Near, best.map(|best| best + 1)).unwrap().unwrap();
            assert_eq!(above.time, found.time);
            solved += 1;
        }
        assert!((900..2000).contains(&solved), "{solved} of 2000 have a layout");
    }

    #[test]
    fn long_batches_are_given_up_only_where_they_are_no_faster() {
        let mut noise = Noise(0x10F6);
        for _ in 0..150 {
            let (toy, mut shape) = random(&mut noise);
            shape.micro_batches += shape.group * noise.below(60);
            let all = all_layouts(toy.layers.len(), shape.n_stages()).into_iter();
            let times: Vec<u128> = all
                .map(|sizes| {
                    let (time, _) = judged(&toy, shape, &sizes);
                    let layout = Layout::new(&toy, shape, &sizes);
                    assert_eq!(layout.time_below(time), Ok(None));
                    assert_eq!(layout.time_below(time + 1), Ok(Some(time)));
                    time
                })
                .collect();
            let shape = InterleavedShape { memory: u128::MAX, ..shape };
            let found = best_layout(&toy, shape, Family::Near, None).unwrap().unwrap();
            assert_eq!(Some(&found.time), times.iter().min());
        }
    }

    #[test]
    fn a_family_is_searched_as_a_whole() {
        let mut noise = Noise(0xFA31);
        for _ in 0..600 {
            let (toy, shape) = random(&mut noise);
            let (n, n_stages) = (toy.layers.len(), shape.n_stages());
            let belongs = |sizes: &Vec<usize>| {
                let inner = &sizes[1..n_stages - 1];
                inner.iter().max().unwrap() - inner.iter().min().unwrap() <= 1
            };
            let fitting = all_layouts(n, n_stages)
                .into_iter()
                .filter(belongs)
                .map(|sizes| judged(&toy, shape, &sizes))
                .filter(|(_, memory)| memory.iter().all(|&needed| needed <= shape.memory));
            let best = fitting.map(|(time, _)| time).min();
            let found = best_among(&toy, shape, None, (0, Some(usize::MAX))).unwrap();
            assert_eq!(found.as_ref().map(|found| found.time), best);
            if let Some(InterleavedLayout { time, scope: Scope::Family { least }, .. }) = found {
                assert!(least <= time);
                assert_eq!(best_among(&toy, shape, Some(time), (0, Some(usize::MAX))), Ok(None));
            }
        }
    }

    #[test]
    fn equal_chunks_take_one_load_for_each_and_for_every_other_rank() {
        let time = StageTime { forward: 3, backward: 5 };
        let layers = vec![Layer { time, kept: 1, held: 0, end: 0 }; 96];
        let toy = Toy { layers, beside: vec![0; 48] };
        let shape = InterleavedShape {
            ranks: 8,
            chunks: 6,
            group: 8,
            micro_batches: 32,
            memory: u128::MAX,
            delay: 0,
            start: StepStart::OwnGradients,
        };
        let found = best_layout(&toy, shape, Family::Near, None).unwrap().unwrap();
        let Scope::Family { least } = found.scope else { panic!("there are too many layouts") };
        assert!(least <= found.time && found.time <= (32 * 6 + 7) * 16 + 7, "{found:?}");
        let illegal = InterleavedShape { group: 4, ..shape };
        assert!(matches!(
            best_layout(&toy, illegal, Family::Near, None),
            Err(Unsolved::Illegal(_))
        ));
        let shallow = Toy { layers: toy.layers[..47].to_vec(), beside: vec![0; 48] };
        assert_eq!(best_layout(&shallow, shape, Family::Near, None), Ok(None));
    }
}
