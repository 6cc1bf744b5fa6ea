//! Good points to begin with: the better they are, the more of the grid is closed by bounds alone.

use rayon::prelude::*;

use super::problem::BoxProblem;
use super::problem::Evaluation;
use super::problem::Value;
use super::region::Point;
use super::region::Region;
use super::shrink::trimmed;
use super::split::by_bounds;

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

/// A point from which no step along one knob, and no exchange of one for a step along another, leads
/// to a better one, and all others that were met on the way; none where the first is worth nothing.
///
/// The climb begins at `known`, or where bounds are the best.
pub(super) fn climb<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    region: Region<N>,
    known: Option<(Point<N>, Value)>,
    stops: &(dyn Fn() -> bool + Sync),
) -> Vec<Met<N, P::Found>> {
    let mut met: Vec<Met<N, P::Found>> = Vec::new();
    let mut at = if let Some(known) = known {
        known
    } else {
        let Some(start) = dive(problem, region) else { return met };
        let Evaluation::Found(value, found) = problem.evaluate(&start, None) else { return met };
        met.push(Met { point: start, value, found });
        (start, value)
    };
    for _ in 0..STEPS {
        let Some(next) = better(problem, &region, at, stops) else { break };
        at = (next.point, next.value);
        met.push(next);
    }
    met
}

/// The point that is reached by always taking the half with the better bound; knobs that bounds know
/// nothing of end in the middle of what fits.
fn dive<const N: usize>(problem: &impl BoxProblem<N>, region: Region<N>) -> Option<Point<N>> {
    let blind = problem.blind();
    let mut inner = trimmed(problem, &region)?;
    loop {
        if let Some(point) = inner.only() {
            return Some(point);
        }
        if let Some(knob) = (0..N).find(|&knob| blind[knob] && inner.varies(knob)) {
            let middle = inner.lo[knob].midpoint(inner.hi[knob]);
            inner = trimmed(problem, &inner.up_to(knob, middle).from(knob, middle))?;
            continue;
        }
        let least = problem.bound(&inner)?;
        let (knob, last) = by_bounds(problem, &inner, least, None);
        let (low, high) = inner.split(knob, last);
        let low = trimmed(problem, &low)?;
        let above = trimmed(problem, &high).and_then(|high| Some((problem.bound(&high)?, high)));
        inner = match (problem.bound(&low), above) {
            (Some(below), Some((above, high))) if above <= below => high,
            (None, Some((_, high))) => high,
            _ => low,
        };
    }
}

/// A neighbour that is better, if there is one: a step up, a step down, or one of each.
fn better<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    region: &Region<N>,
    (point, value): (Point<N>, Value),
    stops: &(dyn Fn() -> bool + Sync),
) -> Option<Met<N, P::Found>> {
    let mut neighbours = Vec::new();
    // The place after the last knob stands for no step.
    let steps = (0..=N).flat_map(|up| (0..=N).map(move |down| (up, down)));
    for (up, down) in steps.filter(|(up, down)| up != down) {
        let mut next = point;
        if up < N {
            next[up] += 1;
        }
        if down < N {
            let Some(lower) = next[down].checked_sub(1) else { continue };
            next[down] = lower;
        }
        if !region.contains(&next) || !problem.fits(&next) {
            continue;
        }
        if let Some(least) = problem.bound(&Region::point(next)).filter(|least| *least < value) {
            neighbours.push((least, next));
        }
    }
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
        let best = found
            .into_iter()
            .flatten()
            .reduce(|best, next| if next.value < best.value { next } else { best });
        if best.as_ref().is_some_and(|best| best.value < value) {
            return best;
        }
    }
    None
}
