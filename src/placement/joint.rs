//! The fastest placement over every shape, as passes really follow each other.
//!
//! Shapes (pipelines, ranks, virtual stages, what replicas share, how devices are numbered, what is
//! computed again) are taken in the order of what none of their cuts can beat; the first that is no
//! better than the best found ends the list. Within a shape, [`cut`](super::cut) or
//! [`interleaved`](super::interleaved) decides exactly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::States;
use super::Found;
use super::Problem;
use super::Rank;
use super::choices::Candidate;
use super::choices::CutChoice;
use super::choices::Degrees;
use super::choices::Sums;
use super::choices::candidates;
use super::choices::degrees;
use super::choices::least_uncompared;
use super::chunk_table::ChunkTable;
use super::cut::Cut;
use super::cut::PipelineShape;
use super::cut::best_cut;
use super::interleaved::InterleavedShape;
use super::interleaved::best_layout;
use super::stage_table::Runs;
use super::stage_table::StageTable;
use crate::plan::PassOrder;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::cost;

/// The best of all shapes, and what is left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Solved {
    /// The best placement that ranks before the incumbent.
    pub best: Option<Found>,
    /// Ticks that no layout of virtual stages can beat, where some are outside the declared family
    /// and could be faster than the best.
    pub open: Option<u128>,
}

/// What waits to be looked at.
#[derive(Clone, Copy)]
enum Item {
    /// Numbers of ranks and pipelines, whose shapes are listed when their turn comes.
    Degrees(Degrees),
    /// A shape.
    Candidate(Candidate),
}

impl Item {
    fn bound(&self) -> Rank {
        match self {
            Self::Degrees(degrees) => degrees.bound,
            Self::Candidate(candidate) => candidate.bound,
        }
    }
}

/// The search over the shapes of one problem.
pub(super) struct Joint<'a, C> {
    problem: &'a Problem<'a>,
    cuts: &'a C,
    runs: Runs,
    limit: Option<Rank>,
    best: Option<Found>,
}

impl<'a, C: States> Joint<'a, C> {
    pub(super) fn new(problem: &'a Problem<'a>, cuts: &'a C, incumbent: Option<Rank>) -> Self {
        let runs = Runs::new(problem);
        Self { problem, cuts, runs, limit: incumbent, best: None }
    }

    /// Looks at every shape that could be better.
    pub(super) fn solve(mut self) -> Solved {
        let sums = Sums::new(self.problem);
        let mut items: Vec<Item> =
            degrees(self.problem, &sums).into_iter().map(Item::Degrees).collect();
        let mut queue: BinaryHeap<Reverse<(Rank, usize)>> =
            items.iter().enumerate().map(|(at, item)| Reverse((item.bound(), at))).collect();
        while let Some(Reverse((bound, at))) = queue.pop() {
            if self.is_hopeless(bound) {
                break;
            }
            let more = match items[at] {
                Item::Degrees(degrees) => candidates(self.problem, &sums, &degrees),
                Item::Candidate(candidate) => {
                    self.improve(&candidate);
                    self.following(&candidate, &sums)
                }
            };
            for next in more {
                if !self.is_hopeless(next.bound) {
                    queue.push(Reverse((next.bound, items.len())));
                    items.push(Item::Candidate(next));
                }
            }
        }
        self.settle();
        let open = least_uncompared(self.problem, &sums);
        let open = open.filter(|&least| self.limit.is_none_or(|limit| least < limit.time));
        Solved { best: self.best, open }
    }

    /// Whether some cut of some shape fits.
    pub(super) fn fits(&mut self) -> bool {
        let sums = Sums::new(self.problem);
        let all: Vec<Candidate> = degrees(self.problem, &sums)
            .iter()
            .flat_map(|degrees| candidates(self.problem, &sums, degrees))
            .collect();
        let is_known = self.runs.is_uniform() && self.problem.most_narrow() == 0;
        all.iter().any(|candidate| {
            let most = match candidate.shape.recompute {
                Recompute::First(0) if candidate.grows => Recompute::EVERY_LAYER,
                other => other,
            };
            let data_parallel = candidate.shape.data_parallel.max(candidate.last_pipelines);
            let shape = Shape { recompute: most, data_parallel, ..candidate.shape };
            let candidate = Candidate { shape, ..*candidate };
            match shape.schedule {
                PassOrder::OneForwardOneBackward if is_known => self.may_fit(shape),
                PassOrder::OneForwardOneBackward => self.cut(&candidate, None).is_some(),
                PassOrder::Interleaved { .. } => self.layout(&candidate, None).is_some(),
            }
        })
    }

    /// Whether some cut of a shape fits, by memory alone; true where that is not known.
    fn may_fit(&self, shape: Shape) -> bool {
        let chunked = shape.schedule != PassOrder::OneForwardOneBackward;
        if chunked || !self.runs.is_uniform() || self.problem.most_narrow() > 0 {
            return true;
        }
        StageTable::new(self.problem, (self.cuts, &self.runs), shape, 0).fits_somehow()
    }

    fn is_hopeless(&self, bound: Rank) -> bool {
        self.limit.is_some_and(|limit| limit <= bound)
    }

    /// What is looked at after a candidate: one pipeline more, and one repeated layer more in every
    /// stage.
    fn following(&self, candidate: &Candidate, sums: &Sums) -> Vec<Candidate> {
        let per_rank = self.problem.devices_per_rank();
        let Candidate { shape, micro_batches, .. } = *candidate;
        let mut next = Vec::new();
        let ahead = match shape.data_parallel.cmp(&candidate.last_pipelines) {
            std::cmp::Ordering::Less => Some(shape.data_parallel + 1),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(shape.data_parallel - 1),
        };
        if let Some(data_parallel) = ahead {
            // What is still ahead has no more pipelines than the most, and no fewer than the fewest.
            let shape = Shape { data_parallel, ..shape };
            let most = Shape { data_parallel: data_parallel.max(candidate.last_pipelines), ..shape };
            let fewest = Shape { data_parallel: data_parallel.min(candidate.last_pipelines), ..shape };
            let time = sums.least_time(self.problem, &most, micro_batches);
            let bound = Rank::of(time, &fewest, per_rank);
            next.push(Candidate { shape, bound, ..*candidate });
        }
        if let Recompute::First(layers) = shape.recompute
            && candidate.grows
            && layers < self.problem.profile.n_layers() as u64
            && (layers > 0 || self.may_fit(Shape { recompute: Recompute::EVERY_LAYER, ..shape }))
        {
            let shape = Shape { recompute: Recompute::First(layers + 1), ..shape };
            let time = sums.least_time(self.problem, &shape, micro_batches);
            let bound = Rank::of(time, &shape, per_rank);
            let last_pipelines = shape.data_parallel;
            next.push(Candidate { shape, last_pipelines, bound, ..*candidate });
        }
        next
    }

    /// Ticks below which a shape must stay to be better than what is known.
    fn time_limit(&self, shape: &Shape) -> Option<u128> {
        let per_rank = self.problem.devices_per_rank();
        self.limit.map(|limit| {
            let ties = Rank::of(limit.time, shape, per_rank) < limit;
            limit.time + u128::from(ties)
        })
    }

    fn improve(&mut self, candidate: &Candidate) {
        let limit = self.time_limit(&candidate.shape);
        let found = match (self.problem.choices.cut, candidate.shape.schedule) {
            (CutChoice::Even, _) => self.even(candidate),
            (CutChoice::Best, PassOrder::OneForwardOneBackward) => self.cut(candidate, limit),
            (CutChoice::Best, PassOrder::Interleaved { .. }) => self.layout(candidate, limit),
        };
        let better = found.filter(|found| self.limit.is_none_or(|limit| found.rank < limit));
        if let Some(found) = better {
            self.limit = Some(found.rank);
            self.best = Some(found);
        }
    }

    /// Of equally fast cuts, the one that does not depend on what else was tried.
    fn settle(&mut self) {
        let Some(best) = &self.best else { return };
        let shape = best.placement.shape();
        if shape.schedule == PassOrder::OneForwardOneBackward
            && self.problem.choices.cut == CutChoice::Best
        {
            let candidate = Candidate {
                shape,
                last_pipelines: shape.data_parallel,
                micro_batches: 0,
                grows: false,
                bound: best.rank,
            };
            let rank = best.rank;
            if let Some(found) = self.cut(&candidate, None).filter(|found| found.rank == rank) {
                self.best = Some(found);
            }
        }
    }

    fn cut(&self, candidate: &Candidate, limit: Option<u128>) -> Option<Found> {
        let shape = candidate.shape;
        if !self.may_fit(shape) {
            return None;
        }
        let most_narrow = self.problem.most_narrow().min(shape.ranks);
        let mut best: Option<Found> = None;
        for n_narrow in 0..=most_narrow {
            let parts = (self.cuts, &self.runs);
            let table = StageTable::new(self.problem, parts, shape, n_narrow);
            let pipeline_shape = PipelineShape {
                n_stages: shape.ranks,
                micro_batches: self.problem.job.micro_batches_per_pipeline(shape.data_parallel),
                start: self.problem.job.ends.step_start,
            };
            let Some(Cut { path, .. }) = best_cut(&table, pipeline_shape, limit) else { continue };
            let states = table.states(&path);
            let stages: Vec<Vec<usize>> =
                states.windows(2).map(|ends| self.cuts.layers(ends[0], ends[1])).collect();
            let found = self.found(shape, &stages);
            if found.as_ref().is_some_and(|f| best.as_ref().is_none_or(|b| f.rank < b.rank)) {
                best = found;
            }
        }
        best
    }

    fn layout(&mut self, candidate: &Candidate, limit: Option<u128>) -> Option<Found> {
        let shape = candidate.shape;
        let PassOrder::Interleaved { chunks, group } = shape.schedule else { return None };
        if !self.problem.profile.is_plain_chain() || self.problem.most_narrow() > 0 {
            return None;
        }
        let table = ChunkTable::new(self.problem, &self.runs, shape);
        let interleaved = InterleavedShape {
            ranks: shape.ranks,
            chunks,
            group,
            micro_batches: self.problem.job.micro_batches_per_pipeline(shape.data_parallel),
            memory: self.problem.job.memory.into(),
            delay: table.delay(),
            start: self.problem.job.ends.step_start,
        };
        let family = self.problem.choices.layouts;
        let layout = best_layout(&table, interleaved, family, limit).ok()??;
        let mut from = 0;
        let stages: Vec<Vec<usize>> = layout
            .sizes
            .iter()
            .map(|size| {
                let layers = (from..from + size).collect();
                from += size;
                layers
            })
            .collect();
        self.found(shape, &stages)
    }

    /// Repeated layers divided evenly among the virtual stages; `None` where that does not fit.
    fn even(&self, candidate: &Candidate) -> Option<Found> {
        let shape = candidate.shape;
        let n_stages = shape.ranks * shape.schedule.chunks();
        let pipeline = crate::profile::even_cut(&self.problem.profile.sequence, n_stages)?;
        let stages: Vec<Vec<usize>> = pipeline.stages().map(<[usize]>::to_vec).collect();
        self.found(shape, &stages)
    }

    /// The placement of a cut, costed by definition; `None` where it takes too much.
    fn found(&self, shape: Shape, stages: &[Vec<usize>]) -> Option<Found> {
        let Problem { profile, job, .. } = *self.problem;
        let pipeline = Pipeline::of_stages(profile.n_layers(), stages)?;
        let placement = Placement::of_shape(shape, pipeline);
        let cost = cost(profile, job, &placement);
        let fits = cost.devices <= job.devices
            && cost.ranks.iter().all(|rank| rank.memory.total() <= u128::from(job.memory));
        let rank = Rank { devices: cost.devices, ..Rank::of(cost.time_per_batch, &shape, 1) };
        fits.then_some(Found { rank, placement })
    }
}
