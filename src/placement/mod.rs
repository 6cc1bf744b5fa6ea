//! Finds the fastest placement of all layers on the cluster, with proof.
//!
//! In: the layers' [`Profile`] at one width, the [`Job`], and what is free to choose
//! ([`Problem`]). Out: the [`Placement`] of least time, or that nothing fits.
//!
//! [`joint`] takes shapes ([`choices`]) in the order of what none of their cuts can beat; within a
//! shape, [`cut`] finds the best cut in 1F1B by its [`labels`], [`interleaved`] the best layout over
//! several virtual stages per rank. The published time model has a search of its own
//! ([`published`], on tables of least slowest loads: [`bottleneck`]). Layers are seen through
//! [`States`]: a [`chain`] in the common case, sets closed under successors ([`downsets`]) where
//! layers branch.
//!
//! Not here: what a placement costs (see `plan`, which recomputes every answer).

mod bands;
mod bottleneck;
mod brute_force;
mod chain;
mod choices;
mod chunk_table;
mod cut;
mod downsets;
mod exchanged;
mod interleaved;
mod joint;
mod labels;
mod layout;
mod layout_bounds;
mod layouts;
mod legal;
pub(crate) mod noise;
mod obstacle;
mod pipelines;
mod published;
mod runs;
mod stage_table;
mod sums;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::parallel::Order;
use crate::parallel::Parameters;
use crate::plan::Edge;
use crate::plan::Job;
use crate::plan::PassOrder;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::TimeModel;
use bottleneck::Tables;
use chain::Chain;
pub use choices::Choices;
pub use choices::CutChoice;
pub use choices::Usage;
pub use cut::Cut;
pub use cut::PipelineShape;
pub use cut::StageCosts;
pub use cut::StageFigures;
pub use cut::best_cut;
pub use cut::least_time;
use downsets::Downsets;
pub use downsets::TooManyBranches;
pub use exchanged::KnownShapes;
pub use interleaved::AfterFigures;
pub use interleaved::ChunkCosts;
pub use interleaved::ChunkFigures;
pub use interleaved::Family;
pub use interleaved::InterleavedLayout;
pub use interleaved::InterleavedShape;
pub use interleaved::NEAR;
pub use interleaved::Scope;
pub use interleaved::Unsolved;
pub use interleaved::all_are_compared;
pub use interleaved::best_layout;
pub use joint::Asked;
use joint::Joint;
pub use joint::Solved;
pub use joint::Wanted;
pub use layouts::even_layouts;
pub use legal::Legal;
pub use obstacle::Obstacle;
pub use obstacle::fewest_devices;
pub use obstacle::obstacle;
pub use obstacle::refusal;
use pipelines::Pipelines;

/// What is to be placed, and what is free to choose.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The layers at one width.
    pub profile: &'a Profile,
    /// What is asked.
    pub job: &'a Job,
    /// What is free to choose.
    pub choices: &'a Choices,
}

/// How good a placement is; less is better. Among equally fast ones fewer devices win, then
/// fewer virtual stages, then the choice that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Ticks of a batch.
    pub time: u128,
    /// Devices in use.
    pub devices: u64,
    /// Virtual stages of a pipeline.
    pub stages: usize,
    /// Everything else of the shape.
    pub choice: Choice,
}

/// What decides among equally good placements: ranks, what replicas share, how devices are numbered,
/// what is computed again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    ranks: usize,
    zero: u8,
    order: Order,
    recompute: Option<Recompute>,
    group: u64,
}

impl Choice {
    /// Comes after every choice.
    pub const LAST: Self = Self {
        ranks: usize::MAX,
        zero: u8::MAX,
        order: Order::ALL[5],
        recompute: Some(Recompute::AsNeeded),
        group: u64::MAX,
    };
}

impl Rank {
    /// That of a shape whose ranks take so many devices each.
    pub fn of(time: u128, shape: &Shape, per_rank: u64) -> Self {
        let Shape { data_parallel, ranks, schedule, zero, order, recompute, .. } = *shape;
        let group = match schedule {
            PassOrder::OneForwardOneBackward => 0,
            PassOrder::Interleaved { group, .. } => group,
        };
        Self {
            time,
            devices: data_parallel.saturating_mul(per_rank.saturating_mul(ranks as u64)),
            stages: ranks * schedule.chunks(),
            choice: Choice { ranks, zero: zero.into(), order, recompute: Some(recompute), group },
        }
    }
}

/// A problem in the published time model, with one recompute choice.
#[derive(Clone, Debug)]
struct FixedProblem<'a> {
    profile: &'a Profile,
    job: &'a Job,
    recompute: Recompute,
    data_parallel: RangeInclusive<u64>,
    stages: RangeInclusive<usize>,
}

impl<'a> FixedProblem<'a> {
    fn new(problem: &Problem<'a>, recompute: Recompute) -> Self {
        Self {
            profile: problem.profile,
            job: problem.job,
            recompute,
            data_parallel: problem.choices.data_parallel.clone(),
            stages: problem.choices.ranks.clone(),
        }
    }
}

/// The best placement and how good it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How good.
    pub rank: Rank,
    /// Which.
    pub placement: Placement,
}

/// The most layers that are placed: beyond this, tables of stages outgrow a machine.
pub const MOST_LAYERS: usize = 2000;

impl Problem<'_> {
    /// Devices that every rank takes at the least.
    pub(crate) fn devices_per_rank(&self) -> u64 {
        match pipelines::narrow(self.profile) {
            (width, 0) => width * self.profile.context,
            _ => 1,
        }
    }

    /// The most stages that can take a single device although others take more.
    fn most_narrow(&self) -> usize {
        pipelines::narrow(self.profile).1
    }
}

/// The best placement that ranks before `incumbent`, and what is left open.
///
/// Profile and job must satisfy [`Job::validate`], and there may be no more than [`MOST_LAYERS`]:
/// readers check both.
pub fn solve(problem: &Problem, incumbent: Option<Rank>) -> Result<Solved, TooManyBranches> {
    solve_for(problem, Asked { incumbent, ..Asked::default() })
}

/// The same, where any may be asked for that ranks before the incumbent.
pub fn solve_for(problem: &Problem, asked: Asked) -> Result<Solved, TooManyBranches> {
    let Problem { profile, job, choices } = *problem;
    let fixed = |recompute: Recompute| FixedProblem::new(problem, recompute);
    match job.time_model {
        TimeModel::Published => {
            let mut best: Option<Found> = None;
            for &recompute in &choices.recompute {
                let limit = best.as_ref().map(|found| found.rank).or(asked.incumbent);
                let found = match choices.cut {
                    CutChoice::Best => solve_published(&fixed(recompute), limit)?,
                    CutChoice::Even => published::best_even_cut(&fixed(recompute), limit),
                };
                best = found.or(best);
            }
            Ok(Solved { best, open: None })
        }
        TimeModel::OneForwardOneBackward => {
            let plain = fixed(Recompute::None);
            let sample = Sample { data_parallel: 1, n_stages: 2 };
            Ok(if profile.is_chain() {
                Joint::new(problem, &Chain::new(&plain, sample), asked).solve()
            } else {
                Joint::new(problem, &Downsets::new(&plain, sample)?, asked).solve()
            })
        }
    }
}

/// The best of several problems, with its place among them; among equals the first wins.
pub fn best_of(problems: &[Problem]) -> Result<Option<(usize, Found)>, TooManyBranches> {
    let mut best: Option<(usize, Found)> = None;
    for (place, problem) in problems.iter().enumerate() {
        let limit =
            best.as_ref().map(|(_, found)| Rank { choice: Choice::default(), ..found.rank });
        if let Some(found) = solve(problem, limit)?.best {
            best = Some((place, found));
        }
    }
    Ok(best)
}

/// Whether any placement fits.
pub fn fits(problem: &Problem) -> bool {
    let Problem { profile, job, choices } = *problem;
    let sample = Sample { data_parallel: 1, n_stages: 2 };
    let is_simple = profile.is_plain_chain() && problem.most_narrow() == 0;
    if job.time_model == TimeModel::Published || !is_simple || choices.cut == CutChoice::Even {
        return solve(problem, None).is_ok_and(|solved| solved.best.is_some());
    }
    let plain = FixedProblem::new(problem, Recompute::None);
    Joint::new(problem, &Chain::new(&plain, sample), Asked::default()).fits()
}

/// Whether memory alone tells if a shape of one virtual stage per rank fits.
fn tells_what_fits(problem: &Problem) -> bool {
    let Problem { profile, job, choices } = *problem;
    let runs = runs::Runs::new(problem);
    job.time_model == TimeModel::OneForwardOneBackward
        && choices.cut == CutChoice::Best
        && profile.is_plain_chain()
        && problem.most_narrow() == 0
        && choices.recompute.iter().all(|&recompute| runs.tell_what_fits(recompute))
}

/// Whether some cut of a shape fits, given that memory alone tells.
fn some_cut_fits(problem: &Problem, shape: Shape) -> bool {
    let plain = FixedProblem::new(problem, Recompute::None);
    let sample = Sample { data_parallel: 1, n_stages: 2 };
    Joint::new(problem, &Chain::new(&plain, sample), Asked::default()).may_fit(shape)
}

/// Every shape of a problem, each alone, with ticks that none of its cuts can beat.
///
/// Of numbers of pipelines with as many micro-batches each, those that take no less time and energy
/// than a smaller one are only listed where asked for: they draw less power on average.
pub fn every_shape(problem: &Problem, every_number: bool) -> Vec<(Shape, u128)> {
    let sums = sums::Sums::new(problem, &Arc::default());
    let mut found = Vec::new();
    for degrees in choices::degrees(problem, &sums, None) {
        let candidates = if every_number {
            choices::every_candidate(problem, &sums, &degrees, None)
        } else {
            choices::candidates(problem, &sums, &degrees, None)
        };
        for candidate in candidates {
            let (fewest, most) = candidate.pipelines;
            for data_parallel in fewest..=most {
                let shape = Shape { data_parallel, ..candidate.shape };
                found.push((shape, candidate.bound.time));
            }
        }
    }
    found
}

fn solve_published(
    problem: &FixedProblem,
    incumbent: Option<Rank>,
) -> Result<Option<Found>, TooManyBranches> {
    let mut best: Option<Found> = None;
    for part in same_sends(problem) {
        let limit = best.as_ref().map(|found| found.rank).or(incumbent);
        let found = if problem.profile.is_chain() {
            solve_on(&part, &Chain::new(problem, part.sample), limit)
        } else {
            solve_on(&part, &Downsets::new(problem, part.sample)?, limit)
        };
        best = found.or(best);
    }
    Ok(best)
}

/// A part of a problem in which tensors take equally long to the next stage.
struct Part<'a> {
    problem: &'a FixedProblem<'a>,
    pipelines: Pipelines<'a>,
    sample: Sample,
}

/// A number of pipelines and of stages that stands for all of its part.
#[derive(Clone, Copy)]
struct Sample {
    data_parallel: u64,
    n_stages: u64,
}

impl Sample {
    /// Ticks until `size` has reached the next stage.
    fn send(self, problem: &FixedProblem, size: u64) -> u64 {
        let wiring = problem.job.plain_wiring(problem.profile, self.data_parallel, self.n_stages);
        wiring.send(size, false)
    }

    fn times(self, problem: &FixedProblem) -> SendTimes {
        let sizes = || problem.profile.edges.iter().map(Edge::sent);
        let time = |size: Option<u64>| self.send(problem, size.unwrap_or(0));
        (time(sizes().min()), time(sizes().max()))
    }
}

/// How long the smallest and the largest tensor take to the next stage. Links that agree on both
/// agree on all between: their time is a line.
type SendTimes = (u64, u64);

/// Splits the shapes by how long tensors take to the next stage: loads depend on it.
fn same_sends<'a>(problem: &'a FixedProblem<'a>) -> Vec<Part<'a>> {
    let everything = Pipelines::new(problem);
    if problem.job.links.is_flat() {
        let sample = Sample { data_parallel: 1, n_stages: 2 };
        return vec![Part { problem, pipelines: everything, sample }];
    }
    let mut samples: BTreeMap<SendTimes, Sample> = BTreeMap::new();
    for count in everything.counts() {
        for (n_stages, _) in everything.shapes(count) {
            let data_parallel = count.data_parallel;
            let sample = Sample { data_parallel, n_stages: n_stages as u64 };
            samples.entry(sample.times(problem)).or_insert(sample);
        }
    }
    let part = |(times, sample)| {
        let pipelines = Pipelines::new(problem).that_send(problem, times);
        Part { problem, pipelines, sample }
    };
    samples.into_iter().map(part).collect()
}

fn solve_on(part: &Part, cuts: &impl Cuts, incumbent: Option<Rank>) -> Option<Found> {
    let Part { problem, pipelines, .. } = part;
    let mut counts = pipelines.counts();
    counts.sort_by_key(|count| (count.bound, count.data_parallel));
    let mut search = Search {
        cuts,
        tables: Tables::new(cuts, pipelines.most_narrow()),
        limit: incumbent,
        best: None,
    };
    for count in counts {
        let bound = Rank { time: count.bound, devices: 0, stages: 0, choice: Choice::default() };
        if search.is_hopeless(bound) {
            break;
        }
        published::improve(&mut search, pipelines, count);
    }
    let (rank, data_parallel, path) = search.best?;
    let n_layers = problem.profile.n_layers();
    let stages: Vec<Vec<usize>> =
        path.windows(2).map(|ends| cuts.layers(ends[0], ends[1])).collect();
    let pipeline = Pipeline::of_stages(n_layers, &stages).expect("a path visits every layer once");
    let placement = Placement::plain(data_parallel, problem.recompute, pipeline);
    Some(Found { rank, placement })
}

/// What is known so far while candidates are looked at.
struct Search<'a, C> {
    cuts: &'a C,
    tables: Tables<'a, C>,
    limit: Option<Rank>,
    /// The best so far: its rank, pipelines, and the states that it passes.
    best: Option<(Rank, u64, Vec<usize>)>,
}

impl<C: Cuts> Search<'_, C> {
    /// Whether nothing that ranks at or after `bound` is of interest.
    fn is_hopeless(&self, bound: Rank) -> bool {
        self.limit.is_some_and(|limit| limit <= bound)
    }

    fn accept(&mut self, rank: Rank, data_parallel: u64, path: Vec<usize>) {
        self.limit = Some(rank);
        self.best = Some((rank, data_parallel, path));
    }
}

/// The ways to cut a model: states are what is left to place, a stage leads from one to a later.
///
/// State 0 is the whole model, the last state is nothing. Every answer about a stage that leads
/// to the last state is that of a last stage.
trait States {
    /// How many states there are.
    fn n_states(&self) -> usize;
    /// How many layers are left in a state.
    fn n_left(&self, state: usize) -> usize;
    /// Whether there is a stage from one state to another.
    fn leads(&self, from: usize, to: usize) -> bool;
    /// Whether a stage takes one device although others take more.
    fn is_narrow(&self, from: usize, to: usize) -> bool;
    /// The layers of a stage.
    fn layers(&self, from: usize, to: usize) -> Vec<usize>;
    /// Ticks that the passes of all stages from a state on cannot fall below, nothing repeated.
    fn least_work(&self, state: usize) -> u64;
}

/// What stages cost where that does not depend on their place.
trait Cuts: States {
    /// Ticks of both passes of a stage.
    fn load(&self, from: usize, to: usize) -> u64;
    /// Parameters of a stage on one device.
    fn parameters(&self, from: usize, to: usize) -> Parameters;
    /// Whether a stage fits with `extra` micro-batches in flight beside the first.
    fn fits(&self, from: usize, to: usize, extra: u64) -> bool;
    /// Whether, away from the first state, loads and memory only grow with a stage.
    fn is_monotone(&self) -> bool;
}
