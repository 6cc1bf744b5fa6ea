//! Finds the fastest placement of all layers on the cluster, with proof.
//!
//! In: the layers' [`Profile`] at one width, the [`Job`], and what is free to choose
//! ([`Problem`]). Out: the [`Placement`] of least time, or that nothing fits.
//!
//! For each number of micro-batches that a pipeline can be given, only the fewest pipelines that
//! give it matter. For these, the least possible slowest load of every suffix of the model in
//! every number of stages ([`bottleneck`]) bounds from below what any cut can reach; what
//! survives is decided exactly, by [`published`] or [`one_f_one_b`]. Layers are seen through
//! [`Cuts`]: a [`chain`] in the common case, sets closed under successors ([`downsets`]) where
//! layers branch.
//!
//! Not here: what a placement costs (see `plan`, which recomputes every answer).

mod bands;
mod bottleneck;
mod brute_force;
mod chain;
mod cut;
mod downsets;
mod interleaved;
mod labels;
mod layout;
mod layout_bounds;
mod layouts;
pub(crate) mod noise;
mod obstacle;
mod one_f_one_b;
mod pipelines;
mod published;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::plan::Job;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use bottleneck::Tables;
use chain::Chain;
pub use cut::Cut;
pub use cut::PipelineShape;
pub use cut::StageCosts;
pub use cut::StageFigures;
pub use cut::best_cut;
pub use cut::least_time;
use downsets::Downsets;
pub use downsets::TooManyBranches;
pub use interleaved::AfterFigures;
pub use interleaved::ChunkCosts;
pub use interleaved::ChunkFigures;
pub use interleaved::InterleavedLayout;
pub use interleaved::InterleavedShape;
pub use interleaved::MOST_LAYOUTS;
pub use interleaved::Scope;
pub use interleaved::Unsolved;
pub use interleaved::best_layout;
pub use interleaved::layout_cost;
pub use layout_bounds::LayerLoads;
pub use layout_bounds::least_layout_time;
pub use layouts::even_layouts;
pub use obstacle::Obstacle;
pub use obstacle::fewest_devices;
pub use obstacle::obstacle;
use pipelines::Pipelines;
pub use pipelines::pipelines_worth_trying;

/// What is to be placed, and what is free to choose.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// The layers at one width.
    pub profile: &'a Profile,
    /// What is asked.
    pub job: &'a Job,
    /// What is computed again.
    pub recompute: Recompute,
    /// How many copies of the pipeline there may be.
    pub data_parallel: RangeInclusive<u64>,
    /// How many stages there may be.
    pub stages: RangeInclusive<usize>,
}

/// How good a placement is; less is better. Among equally fast ones fewer devices win, then
/// fewer stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Ticks of a batch.
    pub time: u128,
    /// Devices in use.
    pub devices: u64,
    /// Stages of a pipeline.
    pub stages: usize,
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

impl<'a> Problem<'a> {
    /// All numbers of pipelines and stages.
    pub fn new(profile: &'a Profile, job: &'a Job, recompute: Recompute) -> Self {
        let most = job.devices.min(job.micro_batches);
        let stages = 1..=profile.n_layers();
        Self { profile, job, recompute, data_parallel: 1..=most, stages }
    }
}

/// The best placement that ranks before `incumbent`, or `None` where there is none.
///
/// Profile and job must satisfy [`Job::validate`], and there may be no more than [`MOST_LAYERS`]:
/// readers check both.
pub fn solve(problem: &Problem, incumbent: Option<Rank>) -> Result<Option<Found>, TooManyBranches> {
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

/// The best of several problems, with its place among them; among equals the first wins.
pub fn best_of(
    problems: &[Problem],
    incumbent: Option<Rank>,
) -> Result<Option<(usize, Found)>, TooManyBranches> {
    // Those that could be best come first, so that the others are cut off early.
    let mut order: Vec<(u128, usize)> =
        (0..problems.len()).filter_map(|place| Some((bound(&problems[place])?, place))).collect();
    order.sort_unstable();
    let mut best: Option<(usize, Found)> = None;
    for (bound, place) in order {
        let limit = best.as_ref().map(|(_, found)| found.rank).or(incumbent);
        // A later problem of equal rank yields to an earlier one, whichever was solved first.
        let ties = best.as_ref().is_some_and(|(known, _)| place < *known);
        let limit = limit.map(|rank| Rank { stages: rank.stages + usize::from(ties), ..rank });
        if limit.is_some_and(|limit| limit <= Rank { time: bound, devices: 0, stages: 0 }) {
            continue;
        }
        if let Some(found) = solve(&problems[place], limit)? {
            best = Some((place, found));
        }
    }
    Ok(best)
}

/// A time that no placement of a chain can beat; cheap, and `None` where the devices are too few
/// for any. Memory is looked at only as a whole.
pub fn bound(problem: &Problem) -> Option<u128> {
    let pipelines = Pipelines::new(problem);
    pipelines.candidates().into_iter().map(|candidate| candidate.bound).min()
}

/// A part of a problem in which tensors take equally long to the next stage.
struct Part<'a> {
    problem: &'a Problem<'a>,
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
    fn send(self, problem: &Problem, size: u64) -> u64 {
        problem.job.send(size, problem.profile.width, self.data_parallel, self.n_stages)
    }

    fn times(self, problem: &Problem) -> SendTimes {
        let sizes = || problem.profile.edges.iter().map(|edge| edge.size);
        let time = |size: Option<u64>| self.send(problem, size.unwrap_or(0));
        (time(sizes().min()), time(sizes().max()))
    }
}

/// How long the smallest and the largest tensor take to the next stage. Links that agree on both
/// agree on all between: their time is a line.
type SendTimes = (u64, u64);

/// Splits the shapes by how long tensors take to the next stage: loads depend on it.
fn same_sends<'a>(problem: &'a Problem<'a>) -> Vec<Part<'a>> {
    let everything = Pipelines::new(problem);
    if problem.job.links.is_flat() {
        let sample = Sample { data_parallel: 1, n_stages: 2 };
        return vec![Part { problem, pipelines: everything, sample }];
    }
    let mut samples: BTreeMap<SendTimes, Sample> = BTreeMap::new();
    for candidate in everything.candidates() {
        for (n_stages, _) in everything.shapes(candidate) {
            let data_parallel = candidate.data_parallel;
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
    let mut candidates = pipelines.candidates();
    candidates.sort_by_key(|candidate| (candidate.bound, candidate.data_parallel));
    let mut search = Search {
        cuts,
        tables: Tables::new(cuts, pipelines.most_narrow()),
        limit: incumbent,
        best: None,
    };
    for candidate in candidates {
        if search.is_hopeless(Rank { time: candidate.bound, devices: 0, stages: 0 }) {
            break;
        }
        match problem.job.time_model {
            TimeModel::Published => published::improve(&mut search, pipelines, candidate),
            TimeModel::OneForwardOneBackward => {
                one_f_one_b::improve(&mut search, pipelines, candidate);
            }
        }
    }
    let (rank, data_parallel, path) = search.best?;
    let n_layers = problem.profile.n_layers();
    let stages: Vec<Vec<usize>> =
        path.windows(2).map(|ends| cuts.layers(ends[0], ends[1])).collect();
    let pipeline = Pipeline::of_stages(n_layers, &stages).expect("a path visits every layer once");
    let placement = Placement { data_parallel, recompute: problem.recompute, pipeline };
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
trait Cuts {
    /// How many states there are.
    fn n_states(&self) -> usize;
    /// How many layers are left in a state.
    fn n_left(&self, state: usize) -> usize;
    /// Whether there is a stage from one state to another.
    fn leads(&self, from: usize, to: usize) -> bool;
    /// Ticks of both passes of a stage.
    fn load(&self, from: usize, to: usize) -> u64;
    /// Parameters of a stage on one device.
    fn parameters(&self, from: usize, to: usize) -> u64;
    /// Whether a stage fits with `extra` micro-batches in flight beside the first.
    fn fits(&self, from: usize, to: usize, extra: u64) -> bool;
    /// Whether a stage takes one device although others take more.
    fn is_narrow(&self, from: usize, to: usize) -> bool;
    /// The layers of a stage.
    fn layers(&self, from: usize, to: usize) -> Vec<usize>;
    /// Whether, away from the first state, loads and memory only grow with a stage.
    fn is_monotone(&self) -> bool;
    /// Sums of parameters over the layers before each state; `None` where layers branch.
    fn parameter_sums(&self) -> Option<Vec<u64>>;
    /// What [`Cuts::least_sum`] needs to know where no load may exceed `cap`.
    fn sums_under(&self, cap: u64) -> usize;
    /// A sum of loads that `n_stages` stages from a state on cannot fall below, none of them with
    /// a load above the cap that `under` stands for.
    fn least_sum(&self, from: usize, n_stages: usize, under: usize) -> u64;
}
