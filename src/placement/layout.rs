//! One layout over virtual stages: what it needs, how long it takes, and what it cannot beat.

use super::interleaved::AfterFigures;
use super::interleaved::ChunkCosts;
use super::interleaved::InterleavedShape;
use super::interleaved::Unsolved;
use super::layout_bounds::OrderBound;
use super::layouts;
use crate::plan::AfterBackward;
use crate::plan::Event;
use crate::plan::PipelinedBatch;
use crate::plan::StageTime;
use crate::plan::StepStart;
use crate::plan::batch_time;

/// One layout with the figures of its virtual stages.
pub(super) struct Layout<'a, C> {
    costs: &'a C,
    shape: InterleavedShape,
    ranges: Vec<(usize, usize)>,
    times: Vec<StageTime>,
    kept: Vec<u64>,
}

impl<'a, C: ChunkCosts> Layout<'a, C> {
    pub(super) fn new(costs: &'a C, shape: InterleavedShape, sizes: &[usize]) -> Self {
        let ranges: Vec<(usize, usize)> = layouts::ranges(sizes).collect();
        let (mut times, mut kept) = (Vec::new(), Vec::new());
        for (stage, &(from, to)) in ranges.iter().enumerate() {
            let figures = costs.chunk(stage, from, to);
            times.push(StageTime { forward: figures.forward, backward: figures.backward });
            kept.push(figures.kept);
        }
        Self { costs, shape, ranges, times, kept }
    }

    fn chunks_of(&self, rank: usize) -> Vec<(usize, usize)> {
        self.ranges.iter().skip(rank).step_by(self.shape.ranks).copied().collect()
    }

    /// The most memory that each rank needs.
    pub(super) fn memory(&self) -> Vec<u128> {
        (0..self.shape.ranks).map(|rank| self.memory_of(rank)).collect()
    }

    fn memory_of(&self, rank: usize) -> u128 {
        let InterleavedShape { ranks, micro_batches, .. } = self.shape;
        let kept = |stage: usize| u128::from(self.kept[stage]);
        let most = self.shape.order().peak(ranks, micro_batches, rank, kept);
        self.costs.held(rank, &self.chunks_of(rank)) + most
    }

    /// Whether every rank has the memory that it needs.
    pub(super) fn fits(&self) -> bool {
        let InterleavedShape { ranks, micro_batches, memory, .. } = self.shape;
        (0..ranks).all(|rank| {
            // Whatever is in flight keeps between the least and the most that a chunk does.
            let own = || self.kept.iter().skip(rank).step_by(ranks);
            let n = self.shape.order().most_in_flight(ranks, micro_batches, rank);
            let all = |each: Option<&u64>| u128::from(n) * u128::from(each.copied().unwrap_or(0));
            let room = memory.checked_sub(self.costs.held(rank, &self.chunks_of(rank)));
            room.is_some_and(|room| {
                all(own().max()) <= room
                    || all(own().min()) <= room && self.memory_of(rank) <= memory
            })
        })
    }

    fn after(&self) -> Vec<AfterBackward> {
        let of_rank = |rank: usize| {
            let AfterFigures { exposed, after } = self.costs.after(rank, &self.chunks_of(rank));
            AfterBackward { exposed, step: after, gather: 0 }
        };
        (0..self.shape.ranks).map(of_rank).collect()
    }

    /// Ticks of the batch, played; `None` as soon as that is seen not to be below `limit`.
    pub(super) fn time_below(&self, limit: u128) -> Result<Option<u128>, Unsolved> {
        let InterleavedShape { ranks, group, micro_batches, delay, start, .. } = self.shape;
        let order = self.shape.order();
        let batch = PipelinedBatch { order, ranks, micro_batches, times: &self.times, delay };
        let after = self.after();
        let mut ahead = Ahead::new(self, &after);
        // Only then do shorter batches speak for the whole.
        let is_whole = micro_batches % group == 0;
        let finished = batch.stage_ends_while(|event| !is_whole || ahead.least_at(event) < limit);
        if ahead.least >= limit {
            return Ok(None);
        }
        // The last backward pass of a rank is through its first chunk.
        let time = batch_time(&finished.ok_or(Unsolved::TooLong)?[..ranks], &after, start);
        Ok(Some(time).filter(|&time| time < limit))
    }

    /// Ticks that it cannot beat, at a glance: a rank works after the first virtual stages before its
    /// own have been run through, and before they are run back through.
    pub(super) fn least_work(&self) -> u128 {
        let InterleavedShape { ranks, micro_batches, delay, .. } = self.shape;
        let mut least = 0;
        let mut reached = 0;
        for rank in 0..ranks {
            let own = self.times.iter().skip(rank).step_by(ranks);
            let works: u128 = own.map(|time| u128::from(time.load())).sum();
            least = least.max(reached + u128::from(micro_batches) * works);
            reached += u128::from(self.times[rank].load()) + 2 * u128::from(delay);
        }
        least
    }

    /// Ticks of the batch that it cannot beat. The first rank ends last, and its end follows; any
    /// other works until its own.
    pub(super) fn least(&self, bound: &OrderBound) -> u128 {
        let InterleavedShape { ranks, micro_batches, delay, start, .. } = self.shape;
        let mut finished = Vec::with_capacity(ranks);
        let mut reached = 0;
        for rank in 0..ranks {
            let own = self.times.iter().skip(rank).step_by(ranks);
            let works: u128 = own.map(|time| u128::from(time.load())).sum();
            finished.push(reached + u128::from(micro_batches) * works);
            reached += u128::from(self.times[rank].forward) + u128::from(delay);
        }
        finished[0] = finished[0].max(bound.least(&self.times));
        batch_time(&finished, &self.after(), start)
    }
}

/// What a batch cannot beat, seen while it is played.
///
/// Up to any of its forward passes a rank has run the same passes whether or not more micro-batches
/// follow. What it has still to run comes after, and then the way back to the first rank.
struct Ahead {
    ranks: usize,
    /// By rank: ticks of work before the next pass, of all of it in the whole batch, and of what
    /// follows its last backward pass at least.
    done: Vec<u128>,
    works: Vec<u128>,
    follows: Vec<u128>,
    least: u128,
}

impl Ahead {
    fn new<C>(layout: &Layout<C>, after: &[AfterBackward]) -> Self {
        let InterleavedShape { ranks, micro_batches, delay, start, .. } = layout.shape;
        let (mut works, mut follows) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks));
        let late = match start {
            StepStart::OwnGradients => 0,
            StepStart::AllGradients => after.iter().map(|after| after.step).max().unwrap_or(0),
        };
        let own_end = |after: &AfterBackward| match start {
            StepStart::OwnGradients => u128::from(after.exposed) + u128::from(after.step),
            StepStart::AllGradients => u128::from(after.exposed),
        };
        let mut end = 0;
        for (rank, after) in after.iter().enumerate() {
            let own = layout.times.iter().skip(rank).step_by(ranks);
            let load: u128 = own.map(|time| u128::from(time.load())).sum();
            works.push(u128::from(micro_batches) * load);
            // Those before it go back through their first chunks, each with an end of its own.
            if let Some(before) = rank.checked_sub(1) {
                end += u128::from(layout.times[before].backward) + u128::from(delay);
            }
            end = own_end(after).max(end);
            follows.push(end + u128::from(late));
        }
        Self { ranks, done: vec![0; ranks], works, follows, least: 0 }
    }

    fn least_at(&mut self, event: Event) -> u128 {
        let Event { stage, micro_batch, backward, start, end } = event;
        let rank = stage % self.ranks;
        if stage < self.ranks && micro_batch == 0 && !backward {
            // The rank's first pass: the batch begins anew.
            self.done[rank] = 0;
        }
        self.done[rank] += u128::from(end - start);
        if !backward {
            let left = self.works[rank] - self.done[rank];
            self.least = self.least.max(u128::from(end) + left + self.follows[rank]);
        }
        self.least
    }
}
