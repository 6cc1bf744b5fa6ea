//! The fastest placement over every shape, as passes really follow each other.
//!
//! Shapes (pipelines, ranks, virtual stages, what replicas share, how devices are numbered, what is
//! computed again) are taken in the order of what none of their cuts can beat; the first that is no
//! better than the best found ends the list. Within a shape, [`cut`](super::cut) or
//! [`interleaved`](super::interleaved) decides exactly.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::Found;
use super::Problem;
use super::Rank;
use super::States;
use super::choices::Candidate;
use super::choices::CutChoice;
use super::choices::Degrees;
use super::choices::candidates;
use super::choices::degrees;
use super::choices::least_uncompared;
use super::chunk_table::ChunkTable;
use super::cut::Cut;
use super::cut::PipelineShape;
use super::cut::best_cut;
use super::exchanged::KnownShapes;
use super::interleaved::InterleavedLayout;
use super::interleaved::InterleavedShape;
use super::interleaved::best_layout;
use super::runs::Runs;
use super::stage_table::StageTable;
use super::sums::Sums;
use super::sums::halves;
use crate::parallel::zero::Zero;
use crate::plan::PassOrder;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageRules;
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
    /// The layers of a chain with edges of one size, the least, and their runs, where longer stages may
    /// take less.
    least: Option<(Profile, Runs)>,
    limit: Option<Rank>,
    wanted: Wanted,
    known: Arc<KnownShapes>,
    best: Option<Found>,
}

/// What is asked of a search over shapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Placements that do not rank before this need not be known.
    pub incumbent: Option<Rank>,
    /// Which of the others.
    pub wanted: Wanted,
    /// What was found of shapes before, in problems that differ in times and the size of memory alone.
    pub known: Option<&'a Arc<KnownShapes>>,
}

/// Which placement is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The best.
    #[default]
    Best,
    /// Any that ranks before the incumbent, the first that is found.
    Any,
}

impl<'a, C: States> Joint<'a, C> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        cuts: &'a C,
        Asked { incumbent, wanted, known }: Asked<'a>,
    ) -> Self {
        let runs = Runs::new(problem);
        let Problem { profile, choices, .. } = *problem;
        let may_differ = !runs.is_uniform() || choices.zero[1].contains(&Zero::Weights);
        let least = (may_differ && profile.is_plain_chain()).then(|| {
            let least = profile.with_least_edges();
            let runs = Runs::of(&least);
            (least, runs)
        });
        let known = known.filter(|known| known.are_of(problem)).map(Arc::clone).unwrap_or_default();
        Self { problem, cuts, runs, least, limit: incumbent, wanted, known, best: None }
    }

    /// What stages cost by these rules, where so many ticks follow the last pass in any case.
    fn table<'b>(
        &'b self,
        rules: impl Fn(&'b Profile) -> StageRules<'b>,
        follows: u64,
        n_narrow: usize,
    ) -> StageTable<'b, C> {
        let own = rules(self.problem.profile);
        let differs = self.may_take_less(own.shape());
        let table = |rules: StageRules<'b>, runs: &'b Runs| {
            StageTable::new(self.problem, (self.cuts, runs), (rules, follows), n_narrow)
        };
        match &self.least {
            Some((profile, runs)) if differs => {
                table(own, &self.runs).above(table(rules(profile).at_the_least(), runs))
            }
            _ => table(own, &self.runs),
        }
    }

    /// Whether a stage of a shape may take less than a part of it: where less enters or leaves it, it
    /// waits for the weights of a smaller layer, or repeats a shorter one.
    fn may_take_less(&self, shape: &Shape) -> bool {
        let waits = shape.zero == Zero::Weights && shape.ranks > 1;
        let repeats_some = match shape.recompute {
            Recompute::First(layers) => layers > 0 && shape.recompute != Recompute::EVERY_LAYER,
            _ => false,
        };
        waits || !self.runs.is_flat() || repeats_some && !self.runs.is_uniform()
    }

    /// Looks at every shape that could be better.
    pub(super) fn solve(mut self) -> Solved {
        let sums = Sums::new(self.problem, &self.known);
        let mut items: Vec<Item> =
            degrees(self.problem, &sums, self.limit).into_iter().map(Item::Degrees).collect();
        let mut queue: BinaryHeap<Reverse<(Rank, usize)>> =
            items.iter().enumerate().map(|(at, item)| Reverse((item.bound(), at))).collect();
        while let Some(Reverse((bound, at))) = queue.pop() {
            if self.is_hopeless(bound) {
                break;
            }
            let more = match items[at] {
                Item::Degrees(degrees) => candidates(self.problem, &sums, &degrees, self.limit),
                Item::Candidate(candidate) => self.look_at(&candidate, &sums),
            };
            if self.wanted == Wanted::Any && self.best.is_some() {
                return Solved { best: self.best, open: None };
            }
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
        let sums = Sums::new(self.problem, &self.known);
        let all: Vec<Candidate> = degrees(self.problem, &sums, None)
            .iter()
            .flat_map(|degrees| candidates(self.problem, &sums, degrees, None))
            .collect();
        all.iter().any(|candidate| {
            let most = match candidate.shape.recompute {
                Recompute::First(0) if candidate.grows => Recompute::EVERY_LAYER,
                other => other,
            };
            let data_parallel = candidate.pipelines.1;
            let shape = Shape { recompute: most, data_parallel, ..candidate.shape };
            match shape.schedule {
                _ if self.tells_what_fits(&shape) => self.may_fit(shape),
                PassOrder::OneForwardOneBackward => self.cut(shape, None, 0).0.is_some(),
                PassOrder::Interleaved { .. } => self.layout(shape, None, 0).0.is_some(),
            }
        })
    }

    /// Whether some cut of a shape fits, by memory alone; true where that is not known.
    pub(super) fn may_fit(&self, shape: Shape) -> bool {
        let rules = |profile| StageRules::new(profile, self.problem.job, shape);
        !self.tells_what_fits(&shape) || self.fits_somehow(shape, || self.table(rules, 0, 0))
    }

    /// Whether some cut of a shape, whose stages cost what `table` says, fits, where memory alone tells.
    fn fits_somehow<'b, T: Borrow<StageTable<'b, C>>>(
        &'b self,
        shape: Shape,
        table: impl FnOnce() -> T,
    ) -> bool {
        self.known.fits(shape, self.problem.job.memory, || table().borrow().fits_somehow())
    }

    /// Whether memory alone tells if some cut of a shape fits.
    fn tells_what_fits(&self, shape: &Shape) -> bool {
        shape.schedule == PassOrder::OneForwardOneBackward
            && self.runs.tell_what_fits(shape.recompute)
            && self.problem.most_narrow() == 0
    }

    fn is_hopeless(&self, bound: Rank) -> bool {
        self.limit.is_some_and(|limit| limit <= bound)
    }

    /// Takes the best cut of a candidate if it is better than what is known; answers what is to be
    /// looked at after it.
    fn look_at(&mut self, candidate: &Candidate, sums: &Sums) -> Vec<Candidate> {
        let (fewest, most) = candidate.pipelines;
        if fewest == most {
            let is_tight = self.improve(candidate, sums);
            return self.repeating_more(candidate, sums, is_tight);
        }
        let part = |fewest: u64, most: u64, least: u128| {
            let shape = Shape { data_parallel: fewest, ..candidate.shape };
            let candidate = Candidate { shape, pipelines: (fewest, most), ..*candidate };
            self.bounded(candidate, sums, least)
        };
        if self.may_relax(&candidate.shape) {
            return match self.relaxed(candidate, sums) {
                (None, is_tight) => self.repeating_more(candidate, sums, is_tight),
                (Some(least), _) => {
                    let middle = fewest.midpoint(most);
                    let parts = [
                        (fewest, fewest),
                        (fewest + 1, middle),
                        ((middle + 1).max(fewest + 1), most - 1),
                        (most, most),
                    ];
                    let parts = parts.into_iter().filter(|(fewest, most)| fewest <= most);
                    parts.map(|(fewest, most)| part(fewest, most, least)).collect()
                }
            };
        }
        // Where every pair is alike, a step over shards is the shorter the more share it: then the most come first.
        if self.problem.job.links.is_flat() {
            return vec![part(most, most, 0), part(fewest, most - 1, 0)];
        }
        halves(candidate.pipelines).map(|(fewest, most)| part(fewest, most, 0)).into()
    }

    /// A candidate with what none of its cuts can beat, and not `least` either.
    fn bounded(&self, candidate: Candidate, sums: &Sums, least: u128) -> Candidate {
        let Candidate { shape, pipelines, micro_batches, .. } = candidate;
        let time = sums.least_time(self.problem, (&shape, pipelines), micro_batches, self.limit);
        let bound = Rank::of(time.max(least), &shape, self.problem.devices_per_rank());
        Candidate { bound, ..candidate }
    }

    /// Whether [`StageRules::relaxed`] bounds shapes that differ in the number of pipelines.
    fn may_relax(&self, shape: &Shape) -> bool {
        let Problem { job, choices, .. } = *self.problem;
        job.links.is_flat()
            && shape.zero == Zero::State
            && shape.shards.is_none()
            && choices.cut == CutChoice::Best
            && self.problem.most_narrow() == 0
    }

    /// Ticks that no cut of a candidate's shapes can beat, if they are worth looking at, and whether
    /// memory has ruled one out.
    fn relaxed(&self, candidate: &Candidate, sums: &Sums) -> (Option<u128>, bool) {
        let Problem { profile, job, .. } = *self.problem;
        let Candidate { shape, pipelines, .. } = *candidate;
        let rules = |profile| StageRules::relaxed(profile, job, shape, pipelines.1);
        let limit = self.time_limit(&shape);
        let follows = sums.follows(self.problem, &shape, pipelines);
        match shape.schedule {
            PassOrder::OneForwardOneBackward => {
                let table = self.table(rules, follows, 0);
                let found = best_cut(&table, self.pipeline_shape(&shape), limit);
                (found.map(|cut| cut.time), table.is_tight())
            }
            PassOrder::Interleaved { .. } => {
                let table = ChunkTable::new(self.problem, &self.runs, (rules(profile), follows));
                let found = self.best_layout(&table, &shape, limit);
                (found.map(|layout| layout.time), table.is_tight())
            }
        }
    }

    /// One repeated layer more in every stage, where memory has ruled something out: what repeats
    /// more is never faster.
    fn repeating_more(&self, candidate: &Candidate, sums: &Sums, is_tight: bool) -> Vec<Candidate> {
        let shape = candidate.shape;
        let Recompute::First(layers) = shape.recompute else { return Vec::new() };
        let most = Shape {
            recompute: Recompute::EVERY_LAYER,
            data_parallel: candidate.pipelines.1,
            ..shape
        };
        if !candidate.grows
            || !is_tight
            || layers >= self.most_layers(&shape)
            || layers == 0 && !self.may_fit(most)
        {
            return Vec::new();
        }
        let shape = Shape { recompute: Recompute::First(layers + 1), ..shape };
        vec![self.bounded(Candidate { shape, ..*candidate }, sums, 0)]
    }

    /// The most layers that a virtual stage of a shape can hold: to repeat more is the same.
    fn most_layers(&self, shape: &Shape) -> u64 {
        let n_stages = shape.ranks * shape.schedule.chunks();
        (self.problem.profile.n_layers() + 1).saturating_sub(n_stages) as u64
    }

    /// Ticks below which a shape must stay to be better than what is known.
    fn time_limit(&self, shape: &Shape) -> Option<u128> {
        let per_rank = self.problem.devices_per_rank();
        self.limit.map(|limit| {
            let ties = Rank::of(limit.time, shape, per_rank) < limit;
            limit.time + u128::from(ties)
        })
    }

    /// Takes the best cut of a shape if it is better than what is known; answers whether memory has
    /// ruled one out.
    fn improve(&mut self, candidate: &Candidate, sums: &Sums) -> bool {
        let shape = candidate.shape;
        let limit = self.time_limit(&shape);
        let follows = || sums.follows(self.problem, &shape, candidate.pipelines);
        let (found, is_tight) = match (self.problem.choices.cut, shape.schedule) {
            (CutChoice::Even, _) => (self.even(shape), true),
            (CutChoice::Best, PassOrder::OneForwardOneBackward) => {
                self.cut(shape, limit, follows())
            }
            (CutChoice::Best, PassOrder::Interleaved { .. }) => {
                self.layout(shape, limit, follows())
            }
        };
        let better = found.filter(|found| self.limit.is_none_or(|limit| found.rank < limit));
        if let Some(found) = better {
            self.limit = Some(found.rank);
            self.best = Some(found);
        }
        is_tight
    }

    /// Of equally fast cuts, the one that does not depend on what else was tried.
    fn settle(&mut self) {
        let Some(best) = &self.best else { return };
        let shape = best.placement.shape();
        if shape.schedule == PassOrder::OneForwardOneBackward
            && self.problem.choices.cut == CutChoice::Best
        {
            let rank = best.rank;
            // A limit just above what is known depends on nothing else.
            let (found, _) = self.cut(shape, Some(rank.time + 1), 0);
            if let Some(found) = found.filter(|found| found.rank == rank) {
                self.best = Some(found);
            }
        }
    }

    /// The best cut of a shape below `limit`, where so many ticks follow the last pass in any case,
    /// and whether memory has ruled one out.
    fn cut(&self, shape: Shape, limit: Option<u128>, follows: u64) -> (Option<Found>, bool) {
        let is_known = self.tells_what_fits(&shape);
        let most_narrow = self.problem.most_narrow().min(shape.ranks);
        let mut best: Option<Found> = None;
        let mut is_tight = false;
        for n_narrow in 0..=most_narrow {
            let rules = |profile| StageRules::new(profile, self.problem.job, shape);
            let table = self.table(rules, follows, n_narrow);
            if is_known && !self.fits_somehow(shape, || &table) {
                return (None, true);
            }
            let found = best_cut(&table, self.pipeline_shape(&shape), limit);
            is_tight |= table.is_tight();
            let Some(Cut { path, .. }) = found else { continue };
            let states = table.states(&path);
            let stages: Vec<Vec<usize>> =
                states.windows(2).map(|ends| self.cuts.layers(ends[0], ends[1])).collect();
            let found = self.found(shape, &stages);
            if found.as_ref().is_some_and(|f| best.as_ref().is_none_or(|b| f.rank < b.rank)) {
                best = found;
            }
        }
        (best, is_tight)
    }

    fn pipeline_shape(&self, shape: &Shape) -> PipelineShape {
        let job = self.problem.job;
        PipelineShape {
            n_stages: shape.ranks,
            micro_batches: job.micro_batches_per_pipeline(shape.data_parallel),
            start: job.ends.step_start,
        }
    }

    /// The same for a shape of several virtual stages per rank.
    fn layout(&self, shape: Shape, limit: Option<u128>, follows: u64) -> (Option<Found>, bool) {
        let rules = StageRules::new(self.problem.profile, self.problem.job, shape);
        let table = ChunkTable::new(self.problem, &self.runs, (rules, follows));
        let layout = self.best_layout(&table, &shape, limit);
        let Some(layout) = layout else { return (None, table.is_tight()) };
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
        (self.found(shape, &stages), table.is_tight())
    }

    fn best_layout(
        &self,
        table: &ChunkTable,
        shape: &Shape,
        limit: Option<u128>,
    ) -> Option<InterleavedLayout> {
        let PassOrder::Interleaved { chunks, group } = shape.schedule else { return None };
        let Problem { profile, job, choices } = *self.problem;
        if !profile.is_plain_chain() || self.problem.most_narrow() > 0 {
            return None;
        }
        let interleaved = InterleavedShape {
            ranks: shape.ranks,
            chunks,
            group,
            micro_batches: job.micro_batches_per_pipeline(shape.data_parallel),
            memory: job.memory.into(),
            delay: table.delay(),
            start: job.ends.step_start,
        };
        best_layout(table, interleaved, choices.layouts, limit).ok().flatten()
    }

    /// Repeated layers divided evenly among the virtual stages; `None` where that does not fit.
    fn even(&self, shape: Shape) -> Option<Found> {
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
