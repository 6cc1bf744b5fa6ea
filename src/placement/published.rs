//! The best cut in the published time model:
//! slowest load · (micro-batches + stages − 1) + gradients of the first stage.
//!
//! The second term depends on the first stage alone, so that stage is chosen here, outside the
//! table of least slowest loads, which knows the best way for the rest.

use super::Choice;
use super::Cuts;
use super::FixedProblem;
use super::Found;
use super::Rank;
use super::Search;
use super::bottleneck::NONE;
use super::bottleneck::Rows;
use super::pipelines::PipelineCount;
use super::pipelines::Pipelines;
use crate::plan::Placement;
use crate::plan::cost;
use crate::profile::even_cut;

/// Looks for a better placement with this number of pipelines.
pub(super) fn improve<C: Cuts>(
    search: &mut Search<C>,
    pipelines: &Pipelines,
    count: PipelineCount,
) {
    let PipelineCount { data_parallel, micro_batches, .. } = count;
    let least_end = u128::from(pipelines.least_end(data_parallel));
    for (n_stages, n_narrow) in pipelines.shapes(count) {
        let devices = data_parallel * pipelines.devices(n_stages, n_narrow);
        let rounds = u128::from(micro_batches - 1) + n_stages as u128;
        let rank = |slowest: u64, end: u128| Rank {
            time: u128::from(slowest) * rounds + end,
            devices,
            stages: n_stages,
            choice: Choice::default(),
        };
        if search.is_hopeless(rank(pipelines.least_slowest(n_stages), least_end)) {
            continue;
        }
        let rows = search.tables.rows(u64::MAX, n_stages);
        let Some(slowest) = rows.whole(n_stages, n_narrow) else { continue };
        let mut limit = search.limit;
        if limit.is_some_and(|limit| limit <= rank(slowest, least_end)) {
            continue;
        }
        let mut best = None;
        for (first_end, slowest) in first_stages(search.cuts, rows, n_stages, n_narrow) {
            if limit.is_some_and(|limit| limit <= rank(slowest, least_end)) {
                continue;
            }
            let parameters = search.cuts.parameters(0, first_end);
            let found = rank(slowest, u128::from(pipelines.end(parameters, data_parallel)));
            if limit.is_none_or(|limit| found < limit) {
                limit = Some(found);
                best = Some((found, first_end, slowest));
            }
        }
        if let Some((rank, first_end, slowest)) = best {
            let goal = Goal { slowest, n_stages: n_stages - 1, n_narrow, cap: u64::MAX };
            let narrow = usize::from(n_narrow > 0 && search.cuts.is_narrow(0, first_end));
            let goal = Goal { n_narrow: n_narrow - narrow, ..goal };
            let mut path = vec![0];
            path.extend(trace(search.cuts, rows, first_end, goal));
            search.accept(rank, data_parallel, path);
        }
    }
}

/// Every first stage that leaves a way for the rest, by its end, with the slowest load of all.
fn first_stages<'a>(
    cuts: &'a impl Cuts,
    rows: &'a Rows,
    n_stages: usize,
    n_narrow: usize,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let end = cuts.n_states() - 1;
    let extra = n_stages as u64 - 1;
    (1..=end).filter_map(move |to| {
        if (n_stages == 1) != (to == end) || !cuts.leads(0, to) {
            return None;
        }
        let narrow = usize::from(rows.has_narrow() && cuts.is_narrow(0, to));
        let rest = match n_stages {
            1 => (narrow == n_narrow).then_some(0)?,
            _ => rows.row(n_stages - 1, n_narrow.checked_sub(narrow)?)?.slowest[to],
        };
        if rest == NONE {
            return None;
        }
        cuts.fits(0, to, extra).then(|| (to, rest.max(cuts.load(0, to))))
    })
}

/// What the rest of a path must keep to.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    /// No load above this.
    pub slowest: u64,
    /// So many stages.
    pub n_stages: usize,
    /// Of which so many are narrow.
    pub n_narrow: usize,
    /// The cap on micro-batches in flight beside one.
    pub cap: u64,
}

/// The states from `from` to the end on a path that keeps to `goal`, each stage as short as it
/// can be. The rows say that there is one.
pub(super) fn trace(cuts: &impl Cuts, rows: &Rows, from: usize, goal: Goal) -> Vec<usize> {
    let end = cuts.n_states() - 1;
    let mut path = vec![from];
    let (mut at, mut n_narrow) = (from, goal.n_narrow);
    for n_stages in (1..=goal.n_stages).rev() {
        let extra = goal.cap.min(n_stages as u64 - 1);
        let step = |to: usize| {
            if (n_stages == 1) != (to == end) || !cuts.leads(at, to) {
                return None;
            }
            let narrow = usize::from(rows.has_narrow() && cuts.is_narrow(at, to));
            let left = n_narrow.checked_sub(narrow)?;
            let rest = match n_stages {
                1 => (left == 0).then_some(0)?,
                _ => rows.row(n_stages - 1, left)?.slowest[to],
            };
            let keeps = rest <= goal.slowest
                && cuts.load(at, to) <= goal.slowest
                && cuts.fits(at, to, extra);
            keeps.then_some((to, left))
        };
        (at, n_narrow) = (at + 1..=end).find_map(step).expect("the rows promise a way on");
        path.push(at);
    }
    path
}

/// The best placement in which repeated layers are divided evenly, of those that rank before
/// `incumbent`.
pub(super) fn best_even_cut(problem: &FixedProblem, incumbent: Option<Rank>) -> Option<Found> {
    let FixedProblem { profile, job, recompute, data_parallel, stages } = problem;
    let most = (*data_parallel.end()).min(job.devices).min(job.micro_batches);
    let mut best: Option<Found> = None;
    for n_stages in *stages.start()..=(*stages.end()).min(profile.n_layers()) {
        let Some(pipeline) = even_cut(&profile.sequence, n_stages) else { continue };
        for copies in (*data_parallel.start()).max(1)..=most {
            let placement = Placement::plain(copies, *recompute, pipeline.clone());
            let found = cost(profile, job, &placement);
            if found.devices > job.devices {
                break;
            }
            let memory = u128::from(job.memory);
            let fits = found.ranks.iter().all(|rank| rank.memory.total() <= memory);
            let (time, devices) = (found.time_per_batch, found.devices);
            let rank = Rank { time, devices, stages: n_stages, choice: Choice::default() };
            let limit = best.as_ref().map(|known| known.rank).or(incumbent);
            if fits && limit.is_none_or(|limit| rank < limit) {
                best = Some(Found { rank, placement });
            }
        }
    }
    best
}
