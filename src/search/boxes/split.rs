//! Where a box is divided.

use super::problem::BoxProblem;
use super::problem::Value;
use super::region::Region;
use super::shrink::trimmed;

/// What a half counts for that is closed at once.
const CLOSED: f64 = 4.0;

/// What a half counts for that is no worse than the whole.
const NO_WORSE: f64 = 1e-4;

/// What the lower half of a knob counts for that bounds know nothing of.
const UNKNOWN: f64 = 0.01;

/// The knob at whose middle a box of several points is divided, and the last value of the lower half:
/// that whose halves are the worst, by the product of both.
///
/// `least` is what none of its points can beat, `worst` what a point must be better than.
pub(super) fn plane<const N: usize>(
    problem: &impl BoxProblem<N>,
    inner: &Region<N>,
    least: Value,
    worst: Option<Value>,
) -> (usize, u16) {
    // Knobs without a law come first: corners, which tell more than bounds, need them still.
    let proved = problem.proved();
    let lawless = (0..N).any(|knob| !proved[knob] && inner.varies(knob));
    let first = lawless && proved.contains(&true);
    let knobs = (0..N).filter(|&knob| inner.varies(knob) && !(first && proved[knob]));
    let score = Score { problem, least, worst };
    let scored = knobs.map(|knob| {
        let last = inner.lo[knob].midpoint(inner.hi[knob]);
        (score.of(knob, &inner.split(knob, last)), (knob, last))
    });
    // Of equals the first knob.
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map_or((0, inner.lo[0]), |(_, plane)| plane)
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
