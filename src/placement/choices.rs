//! What is free to choose when layers are placed, and every shape that follows from it.

use std::ops::RangeInclusive;

use super::Choice;
use super::Legal;
use super::Problem;
use super::Rank;
use super::interleaved::Family;
use super::interleaved::all_are_compared;
use super::layout_bounds::least_layout_time;
use super::layouts::even_layouts;
use super::sums::Sums;
use crate::parallel::Order;
use crate::parallel::even_copies;
use crate::parallel::zero::Zero;
use crate::plan::PassOrder;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::Shape;

/// Which numbers of devices a plan may take, and how pipelines divide the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Any number up to all; pipelines may differ by a micro-batch.
    Any,
    /// All of them, and every pipeline works on as many micro-batches.
    Whole,
}

/// Which cuts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutChoice {
    /// All.
    Best,
    /// Only the one in which repeated layers are divided evenly.
    Even,
}

/// What is free to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// How many copies of the pipeline there may be.
    pub data_parallel: RangeInclusive<u64>,
    /// How many ranks a pipeline may have.
    pub ranks: RangeInclusive<usize>,
    /// How many virtual stages a rank may have.
    pub chunks: RangeInclusive<usize>,
    /// Micro-batches of a group where ranks have several virtual stages; `None` for as many as
    /// there are ranks.
    pub group: Option<u64>,
    /// What replicas may share where there is one rank, and where there are several.
    pub zero: [Vec<Zero>; 2],
    /// How many replicas share; `None` for all.
    pub shards: Option<u64>,
    /// How devices may be numbered.
    pub orders: Vec<Order>,
    /// What may be computed again.
    pub recompute: Vec<Recompute>,
    /// Whether every stage repeats as many layers, where layers are repeated as needed.
    pub equal_repeats: bool,
    /// Which devices are used.
    pub usage: Usage,
    /// Which cuts are compared.
    pub cut: CutChoice,
    /// Which layouts over several virtual stages of a rank are compared where there are too many to
    /// compare all.
    pub layouts: Family,
    /// What must accept the plan; `None` where nobody is asked.
    pub legal: Option<Legal>,
}

impl Choices {
    /// Every number of pipelines and stages; nothing shared, one virtual stage for each rank.
    pub fn plain(recompute: Recompute) -> Self {
        Self {
            data_parallel: 1..=u64::MAX,
            ranks: 1..=usize::MAX,
            chunks: 1..=1,
            group: None,
            zero: [vec![Zero::Nothing], vec![Zero::Nothing]],
            shards: None,
            orders: vec![Order::default()],
            recompute: vec![recompute],
            equal_repeats: false,
            usage: Usage::Any,
            cut: CutChoice::Best,
            layouts: Family::Near,
            legal: None,
        }
    }

    /// Whether a plan of this shape may be chosen: replicas that share are in groups of one size,
    /// and whoever runs the plan accepts it.
    fn accepts(&self, profile: &Profile, shape: &Shape) -> bool {
        let replicas = shape.data_parallel.saturating_mul(profile.context);
        let are_even = shape.shards.is_none_or(|shards| replicas.is_multiple_of(shards));
        are_even && shape.folds(profile) && self.legal.is_none_or(|legal| legal.accepts(shape))
    }
}

/// A shape, or several that differ in the number of pipelines alone and give each as many
/// micro-batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// With the fewest of these numbers of pipelines.
    pub shape: Shape,
    pub pipelines: Range,
    /// Micro-batches of each pipeline.
    pub micro_batches: u64,
    /// Whether one more repeated layer in every stage is the next to be looked at.
    pub grows: bool,
    /// What none of them can beat.
    pub bound: Rank,
}

/// The fewest and the most pipelines of a class.
pub(super) type Range = (u64, u64);

/// Whether some layout of a shape is compared.
fn has_layouts(problem: &Problem, shape: &Shape) -> bool {
    let (n_layers, n_stages) = (problem.profile.n_layers(), shape.ranks * shape.schedule.chunks());
    shape.schedule.chunks() == 1
        || problem.choices.cut == CutChoice::Even
        || problem.choices.layouts == Family::Near
        || all_are_compared(n_layers, n_stages)
        || !even_layouts(n_layers, n_stages).is_empty()
}

/// Ticks that no layout outside those that are compared can beat; `None` where there is none.
pub(super) fn least_uncompared(problem: &Problem, sums: &Sums) -> Option<u128> {
    let Problem { profile, job, choices } = *problem;
    if *choices.chunks.end() < 2 || choices.cut == CutChoice::Even {
        return None;
    }
    let n_layers = profile.n_layers();
    let most = usize::try_from(job.devices / problem.devices_per_rank()).unwrap_or(usize::MAX);
    let ranks = (*choices.ranks.start()).max(2)..=most.min(n_layers / 2).min(*choices.ranks.end());
    let least = ranks.flat_map(|ranks| {
        let chunks =
            (*choices.chunks.start()).max(2)..=(n_layers / ranks).min(*choices.chunks.end());
        let open = chunks.into_iter().any(|chunks| !all_are_compared(n_layers, ranks * chunks));
        // The more pipelines, the fewer micro-batches each has.
        let most = if open { pipelines(problem, ranks).pop() } else { None };
        most.into_iter().map(move |(fewest, _)| {
            let micro_batches = job.micro_batches_per_pipeline(fewest);
            least_layout_time(&sums.loads, ranks, micro_batches, 0)
        })
    });
    least.min()
}

/// Numbers of ranks and of pipelines, with a time that none of their shapes can beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Degrees {
    pub ranks: usize,
    /// The fewest and the most pipelines with as many micro-batches each.
    pub pipelines: (u64, u64),
    pub bound: Rank,
}

/// Every number of ranks and of pipelines that may rank before `limit`.
pub(super) fn degrees(problem: &Problem, sums: &Sums, limit: Option<Rank>) -> Vec<Degrees> {
    let Problem { profile, job, choices } = *problem;
    let per_rank = problem.devices_per_rank();
    let most_ranks = usize::try_from(job.devices / per_rank).unwrap_or(usize::MAX);
    let most_ranks = most_ranks.min(profile.n_layers()).min(*choices.ranks.end());
    let mut found = Vec::new();
    for ranks in (*choices.ranks.start()).max(1)..=most_ranks {
        for (fewest, most) in pipelines(problem, ranks).into_iter().rev() {
            let micro_batches = job.micro_batches_per_pipeline(fewest);
            let time = sums.least_of_any_schedule(ranks, micro_batches);
            let devices = fewest.saturating_mul(per_rank).saturating_mul(ranks as u64);
            let bound = Rank { time, devices, stages: ranks, choice: Choice::default() };
            // Fewer pipelines have more micro-batches each, and take longer.
            if limit.is_some_and(|limit| limit.time < time) {
                break;
            }
            found.push(Degrees { ranks, pipelines: (fewest, most), bound });
        }
    }
    found
}

/// Every shape with these degrees that could be the fastest, with what none of its cuts can beat.
///
/// Those that do not rank before `limit` may be left out.
pub(super) fn candidates(
    problem: &Problem,
    sums: &Sums,
    degrees: &Degrees,
    limit: Option<Rank>,
) -> Vec<Candidate> {
    let (fewest, most) = degrees.pipelines;
    let micro_batches = problem.job.micro_batches_per_pipeline(fewest);
    let least = sums.least_of_passes(problem, degrees.ranks, micro_batches);
    if limit.is_some_and(|limit| limit.time < least) {
        return Vec::new();
    }
    let is_flat = problem.job.links.is_flat();
    // Groups of a given size are even with some numbers of pipelines alone, and so are experts held
    // equally often.
    if problem.choices.shards.is_some() || copies_for_experts(problem.profile) > 1 {
        return every_candidate(problem, sums, degrees, limit);
    }
    let together = |shape: Shape| {
        // With everything its own and every pair alike, more pipelines are only slower.
        let alike = shape.zero == Zero::Nothing && is_flat;
        candidate(problem, sums, (shape, (fewest, if alike { fewest } else { most })), limit)
    };
    let shapes = shapes(problem, degrees.ranks, fewest).into_iter();
    let may_rank = |candidate: &Candidate| limit.is_none_or(|limit| candidate.bound < limit);
    let candidates = shapes.map(together).filter(may_rank);
    candidates.filter(|candidate| sums.may_hold(problem, candidate)).collect()
}

/// Every shape with these degrees, each with its own number of pipelines.
pub(super) fn every_candidate(
    problem: &Problem,
    sums: &Sums,
    degrees: &Degrees,
    limit: Option<Rank>,
) -> Vec<Candidate> {
    let (fewest, most) = degrees.pipelines;
    let each = |n: u64| {
        let alone = move |shape| candidate(problem, sums, (shape, (n, n)), limit);
        shapes(problem, degrees.ranks, n).into_iter().map(alone)
    };
    let step = copies_for_experts(problem.profile);
    let first = fewest.next_multiple_of(step);
    (first..=most).step_by(usize::try_from(step).unwrap_or(usize::MAX)).flat_map(each).collect()
}

/// Copies of a pipeline are a multiple of this, so that the devices of a rank hold every expert
/// equally often.
pub(super) fn copies_for_experts(profile: &Profile) -> u64 {
    let sharers = profile.width * profile.context;
    profile.expert_devices.map_or(1, |owners| even_copies(owners, sharers))
}

/// The shape with all these numbers of pipelines, of which it has the fewest.
fn candidate(
    problem: &Problem,
    sums: &Sums,
    (shape, pipelines): (Shape, Range),
    limit: Option<Rank>,
) -> Candidate {
    let micro_batches = problem.job.micro_batches_per_pipeline(shape.data_parallel);
    let time = sums.least_time(problem, (&shape, pipelines), micro_batches, limit);
    let bound = Rank::of(time, &shape, problem.devices_per_rank());
    let one = Shape { recompute: Recompute::First(1), ..shape };
    let grows = shape.recompute == Recompute::First(0)
        && problem.choices.recompute.contains(&Recompute::AsNeeded)
        && problem.choices.accepts(problem.profile, &one);
    Candidate { shape, pipelines, micro_batches, grows, bound }
}

/// The numbers of pipelines of so many ranks, those with as many micro-batches together: the fewest
/// and the most.
fn pipelines(problem: &Problem, ranks: usize) -> Vec<(u64, u64)> {
    let Problem { job, choices, .. } = *problem;
    let each = problem.devices_per_rank() * ranks as u64;
    let allowed = &choices.data_parallel;
    match choices.usage {
        Usage::Whole => {
            let n = job.devices / each;
            let whole = job.devices.is_multiple_of(each) && job.micro_batches.is_multiple_of(n);
            if whole && allowed.contains(&n) { vec![(n, n)] } else { Vec::new() }
        }
        Usage::Any => {
            let most = (job.devices / each).min(job.micro_batches).min(*allowed.end());
            let mut classes = Vec::new();
            let mut first = (*allowed.start()).max(1);
            while first <= most {
                let micro_batches = job.micro_batches.div_ceil(first);
                let last = match micro_batches {
                    1 => most,
                    _ => ((job.micro_batches - 1) / (micro_batches - 1)).min(most),
                };
                classes.push((first, last));
                first = last + 1;
            }
            classes
        }
    }
}

/// The shapes with so many ranks and pipelines that can be run, are compared and are accepted.
fn shapes(problem: &Problem, ranks: usize, data_parallel: u64) -> Vec<Shape> {
    let Problem { profile, job, choices } = *problem;
    let replicas = profile.most_replicas(data_parallel);
    let mut found = Vec::new();
    let most_chunks = if ranks == 1 { 1 } else { profile.n_layers() / ranks };
    let chunks = (*choices.chunks.start()).max(1)..=most_chunks.min(*choices.chunks.end());
    let zeros = &choices.zero[usize::from(ranks > 1)];
    for &zero in zeros.iter().filter(|&zero| Some(zero) == zeros.first() || replicas > 1) {
        // Alone, a replica has nobody to share with.
        let zero = if replicas > 1 { zero } else { Zero::Nothing };
        for chunks in chunks.clone() {
            let group = choices.group.unwrap_or(ranks as u64);
            let schedule = match chunks {
                1 => PassOrder::OneForwardOneBackward,
                _ => PassOrder::Interleaved { chunks, group },
            };
            let micro_batches = job.micro_batches_per_pipeline(data_parallel);
            let shape = Shape {
                data_parallel,
                ranks,
                schedule,
                zero,
                shards: choices.shards.filter(|_| zero > Zero::Nothing),
                order: Order::default(),
                recompute: Recompute::None,
            };
            if schedule.check(ranks, micro_batches).is_ok() && has_layouts(problem, &shape) {
                let repeats = repeats(problem, &shape).into_iter();
                let each = repeats.map(|recompute| Shape { recompute, ..shape });
                found.extend(each.flat_map(|shape| in_orders(problem, shape)));
            }
        }
    }
    found
}

/// What may be computed again in a shape.
///
/// Layers repeated as needed are counted up from none where stages repeat as many; where none between
/// is accepted, all of them are what is left.
fn repeats(problem: &Problem, shape: &Shape) -> Vec<Recompute> {
    let Problem { profile, choices, .. } = *problem;
    let chunked = shape.schedule.chunks() > 1;
    let one_by_one = choices.equal_repeats || chunked;
    let counts = || choices.accepts(profile, &Shape { recompute: Recompute::First(1), ..*shape });
    let each = choices.recompute.iter().flat_map(|&recompute| match recompute {
        Recompute::Stage if chunked => Vec::new(),
        Recompute::AsNeeded if one_by_one && counts() => vec![Recompute::First(0)],
        Recompute::AsNeeded if one_by_one => vec![Recompute::First(0), Recompute::EVERY_LAYER],
        other => vec![other],
    });
    each.collect()
}

/// A shape in the orders that differ and are accepted: with one rank or one replica, or on a network
/// where every pair is alike, one stands for all.
fn in_orders(problem: &Problem, shape: Shape) -> impl Iterator<Item = Shape> {
    let Problem { profile, job, choices } = *problem;
    let alike = job.links.is_flat()
        || profile.context == 1 && (shape.ranks == 1 || shape.data_parallel == 1);
    let needs_one_run = shape.zero >= Zero::Gradients && shape.ranks > 1;
    let each = choices.orders.iter().map(move |&order| Shape { order, ..shape });
    each.filter(move |shape| !needs_one_run || shape.order == Order::default())
        .filter(move |shape| choices.accepts(profile, shape))
        .take(if alike { 1 } else { usize::MAX })
}
