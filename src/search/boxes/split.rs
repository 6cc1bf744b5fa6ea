//! Where boxes are divided.

use super::kin::all_trimmed;
use super::kin::from;
use super::kin::range;
use super::kin::up_to;
use super::problem::BoxProblem;
use super::problem::Value;
use super::region::Region;
use super::shrink::trimmed;
use super::walk::Kept;
use super::walk::Known;

/// What a half counts for that is closed at once.
const CLOSED: f64 = 4.0;

/// What a half counts for that is no worse than the whole.
const NO_WORSE: f64 = 1e-4;

/// What the lower half of a knob counts for that bounds know nothing of.
const UNKNOWN: f64 = 0.01;

/// Where boxes are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plane {
    /// Behind a value of a knob.
    Knob(usize, u16),
    /// So many boxes go first; those that follow are looked at apart.
    Kin(usize),
}

/// Where boxes of several points are divided: only one, or such as are kin, in which none but proved knobs vary.
///
/// `least` is what none of their points can beat.
pub(super) fn plane<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    inners: &[Region<N>],
    least: Value,
    known: &Known<N, P::Found>,
) -> Plane {
    let proved = problem.proved();
    let lawless = |inner: &Region<N>| (0..N).any(|knob| !proved[knob] && inner.varies(knob));
    match (known.both(), inners) {
        (Some((like, worst)), _) if !inners.iter().any(lawless) => {
            Guessed { problem, like, worst }.plane(inners)
        }
        (_, [inner]) => {
            let (knob, last) = by_bounds(problem, inner, least, known.worst);
            Plane::Knob(knob, last)
        }
        _ => Plane::Kin(inners.len() / 2),
    }
}

/// That whose halves are the worst by their bounds, by the product of both.
///
/// Knobs without a law come first: corners, which tell more than bounds, need them still.
pub(super) fn by_bounds<const N: usize>(
    problem: &impl BoxProblem<N>,
    inner: &Region<N>,
    least: Value,
    worst: Option<Value>,
) -> (usize, u16) {
    let proved = problem.proved();
    let lawless = (0..N).any(|knob| !proved[knob] && inner.varies(knob));
    let first = lawless && proved.contains(&true);
    let knobs = (0..N).filter(|&knob| inner.varies(knob) && !(first && proved[knob]));
    let score = Score { problem, least, worst };
    let scored = knobs.map(|knob| {
        let last = inner.lo[knob].midpoint(inner.hi[knob]);
        (score.of(knob, &inner.split(knob, last)), (knob, last))
    });
    best_of(scored).unwrap_or((0, inner.lo[0]))
}

/// What has the best score, of equals the first.
fn best_of<T>(scored: impl Iterator<Item = (f64, T)>) -> Option<T> {
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, plane)| plane)
}

/// Boxes whose greatest corners are guessed from what is known of a point.
struct Guessed<'a, const N: usize, P: BoxProblem<N>> {
    problem: &'a P,
    like: &'a Kept<N, P::Found>,
    worst: Value,
}

impl<const N: usize, P: BoxProblem<N>> Guessed<'_, N, P> {
    /// Cuts off as much as can be closed at once, where that is half of a knob's values or more; else the
    /// middle of the knob whose halves come nearest to being closed, by the product of both. Kin are taken apart where
    /// that brings more.
    fn plane(&self, inners: &[Region<N>]) -> Plane {
        let whole = self.closeness(inners);
        let loss = |part: f64| (part / whole.max(1e-9) - 1.0).clamp(0.0, 1.0) + NO_WORSE;
        let mut most: Option<(f64, Plane)> = None;
        let mut scored = Vec::with_capacity(N + 1);
        let proved = self.problem.proved();
        let knobs = (0..N).filter(|&knob| proved[knob]);
        let ranges = knobs.map(|knob| (knob, range(inners, knob)));
        for (knob, (first, end)) in ranges.filter(|(_, (first, end))| first < end) {
            let middle = first.midpoint(end);
            let part = |last: u16| self.closeness(&up_to(inners, knob, last));
            let rest = |last: u16| self.within_budget(&from(inners, knob, last + 1));
            let (below, above) = (part(middle), rest(middle));
            let closes_below = |last: u16| part(last) >= 1.0;
            let closes_above = |last: u16| rest(last) >= 1.0;
            let cut = if below >= 1.0 {
                let last = (middle..end).take_while(|&last| closes_below(last)).last();
                last.map(|last| (f64::from(last - first + 1), last))
            } else if above >= 1.0 {
                let last = (first..=middle).rev().take_while(|&last| closes_above(last)).last();
                last.map(|last| (f64::from(end - last), last))
            } else {
                None
            };
            if let Some((values, last)) = cut {
                let share = values / f64::from(end - first + 1);
                if most.is_none_or(|(known, _)| share > known) {
                    most = Some((share, Plane::Knob(knob, last)));
                }
            }
            scored.push((loss(below) * loss(above), Plane::Knob(knob, middle)));
        }
        let half = inners.len() / 2;
        if half > 0 {
            let (first, others) = inners.split_at(half);
            let score = loss(self.closeness(first)) * loss(self.closeness(others));
            scored.push((score, Plane::Kin(half)));
        }
        let most = most.map(|(_, plane)| plane);
        most.or_else(|| best_of(scored.into_iter())).unwrap_or(Plane::Kin(half))
    }

    fn closeness(&self, boxes: &[Region<N>]) -> f64 {
        self.problem.guess(boxes, self.like, self.worst)
    }

    /// The same of what of boxes may keep within what is allowed.
    fn within_budget(&self, boxes: &[Region<N>]) -> f64 {
        let rest = all_trimmed(self.problem, boxes);
        if rest.is_empty() { CLOSED } else { self.closeness(&rest) }
    }
}

struct Score<'a, P> {
    problem: &'a P,
    least: Value,
    worst: Option<Value>,
}

impl<P> Score<'_, P> {
    /// By how much both halves are worse than the whole.
    fn of<const N: usize>(&self, knob: usize, (low, high): &(Region<N>, Region<N>)) -> f64
    where
        P: BoxProblem<N>,
    {
        let problem = self.problem;
        let below = if problem.blind()[knob] { UNKNOWN } else { self.loss(problem.bound(low)) };
        let above = match trimmed(problem, high) {
            Some(rest) => self.loss(problem.bound(&rest)),
            None => CLOSED,
        };
        below * above
    }

    /// By what part a value is worse than that of the whole.
    fn loss(&self, value: Option<Value>) -> f64 {
        match value {
            None => CLOSED,
            Some(value) if self.worst.is_some_and(|worst| value >= worst) => CLOSED,
            Some(value) => {
                let part = |of: fn(Value) -> u128| {
                    of(value) as f64 / (of(self.least) as f64).max(1.0) - 1.0
                };
                let both = part(|value| value.first).max(part(|value| value.second));
                both.clamp(0.0, 1.0) + NO_WORSE
            }
        }
    }
}
