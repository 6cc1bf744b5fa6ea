//! Good points to begin with: the better they are, the more of the grid is closed by bounds alone.

use rayon::prelude::*;

use super::problem::BoxProblem;
use super::problem::Evaluation;
use super::problem::Value;
use super::region::Point;
use super::region::Region;
use super::shrink::trim;
use super::split::halves;

/// Neighbours that are evaluated between two looks at what is known.
const BATCH: usize = 8;

/// Steps of a climb at the most.
const STEPS: usize = 64;

/// A point that was evaluated.
pub(super) struct Met<const N: usize, F> {
    pub point: Point<N>,
    pub value: Value,
    pub found: F,
}

/// A point from which no exchange of a step along one knob for a step along another leads to a
/// better one, and all others that were met on the way; `None` where the first is worth nothing.
///
/// The climb begins where bounds are the best.
pub(super) fn climb<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    region: Region<N>,
    stops: &(dyn Fn() -> bool + Sync),
) -> Vec<Met<N, P::Found>> {
    let mut met: Vec<Met<N, P::Found>> = Vec::new();
    let Some(start) = dive(problem, region) else { return met };
    let Evaluation::Found(value, found) = problem.evaluate(&start, None) else { return met };
    met.push(Met { point: start, value, found });
    let mut at = (start, value);
    for _ in 0..STEPS {
        let Some(next) = better(problem, &region, at, stops) else { break };
        at = (next.point, next.value);
        met.push(next);
    }
    met
}

/// The point that is reached by always taking the half with the better bound.
fn dive<const N: usize>(problem: &impl BoxProblem<N>, mut region: Region<N>) -> Option<Point<N>> {
    if !problem.fits(&region.lo) {
        return None;
    }
    loop {
        trim(problem, &mut region, &mut Vec::new());
        if let Some(point) = region.only() {
            return Some(point);
        }
        let least = problem.bound(&region)?;
        let (low, high) = halves_by_bounds(problem, &region, least);
        let mut trimmed = high;
        let above = problem.fits(&high.lo).then(|| {
            trim(problem, &mut trimmed, &mut Vec::new());
            problem.bound(&trimmed)
        });
        let above = above.flatten();
        region = match (problem.bound(&low), above) {
            (Some(below), Some(above)) if above <= below => trimmed,
            (None, Some(_)) => trimmed,
            _ => low,
        };
    }
}

/// The halves of a box, of which no corner is evaluated: knobs that bounds know nothing of come
/// first, so that they end in the middle of what fits.
fn halves_by_bounds<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &Region<N>,
    least: Value,
) -> (Region<N>, Region<N>) {
    let blind = problem.blind();
    match (0..N).find(|&knob| blind[knob] && region.varies(knob)) {
        Some(knob) => {
            let middle = region.lo[knob].midpoint(region.hi[knob]);
            let only = region.up_to(knob, middle).from(knob, middle);
            (only, only)
        }
        None => halves(problem, region, least, None),
    }
}

/// A neighbour that is better, if there is one: a step up, or one up and another down.
fn better<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    region: &Region<N>,
    (point, value): (Point<N>, Value),
    stops: &(dyn Fn() -> bool + Sync),
) -> Option<Met<N, P::Found>> {
    let mut neighbours = Vec::new();
    let steps = (0..N).flat_map(|up| (0..=N).map(move |down| (up, down)));
    for (up, down) in steps {
        let mut next = point;
        next[up] += 1;
        if down < N {
            if down == up || next[down] == 0 {
                continue;
            }
            next[down] -= 1;
        }
        if !region.contains(&next) || !problem.fits(&next) {
            continue;
        }
        if let Some(least) = problem.bound(&Region::point(next)).filter(|least| *least < value) {
            neighbours.push((least, next));
        }
    }
    // A step down alone keeps the first figure at the best and may better the second.
    neighbours.sort_unstable();
    for batch in neighbours.chunks(BATCH) {
        if stops() {
            return None;
        }
        let found: Vec<_> = batch
            .par_iter()
            .map(|(_, next)| match problem.evaluate(next, Some(value)) {
                Evaluation::Found(value, found) => Some(Met { point: *next, value, found }),
                Evaluation::Beyond | Evaluation::Nothing => None,
            })
            .collect();
        let best = found.into_iter().flatten().reduce(|best, next| {
            if (next.value, next.point) < (best.value, best.point) { next } else { best }
        });
        if best.as_ref().is_some_and(|best| best.value < value) {
            return best;
        }
    }
    None
}
