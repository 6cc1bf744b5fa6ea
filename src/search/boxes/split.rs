//! Where a box is divided.

use super::problem::BoxProblem;
use super::problem::Corner;
use super::problem::Value;
use super::region::Region;
use super::shrink::trim;

/// Once so few combinations of the knobs without a law are left, these are divided first: then exact
/// corners tell more than bounds.
const FEW: u128 = 32;

/// What a half counts for that is closed at once.
const CLOSED: f64 = 4.0;

/// What a half counts for that is no worse than the whole.
const NO_WORSE: f64 = 1e-4;

/// The two parts of a box of several points: at the middle of the knob whose halves are the worst,
/// by the product of both.
///
/// `least` is what none of its points can beat, `worst` what a point must be better than.
pub(super) fn halves<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &Region<N>,
    least: Value,
    worst: Option<Value>,
) -> (Region<N>, Region<N>) {
    let proved = problem.proved();
    let combinations: u128 =
        (0..N).filter(|&knob| !proved[knob]).map(|knob| u128::from(region.len(knob))).product();
    let first = (2..=FEW).contains(&combinations);
    let knobs = (0..N).filter(|&knob| region.varies(knob) && !(first && proved[knob]));
    let scored = knobs.map(|knob| {
        let parts = region.split(knob, middle(region, knob));
        let score = Score { problem, least, worst, exact: combinations == 1 };
        (score.of(knob, &parts), knob)
    });
    // Of equals the first knob.
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let knob = best.map_or(0, |(_, knob)| knob);
    region.split(knob, middle(region, knob))
}

fn middle<const N: usize>(region: &Region<N>, knob: usize) -> u16 {
    region.lo[knob].midpoint(region.hi[knob])
}

struct Score<'a, P> {
    problem: &'a P,
    least: Value,
    worst: Option<Value>,
    /// Whether corners may be evaluated.
    exact: bool,
}

impl<P> Score<'_, P> {
    /// By how much both halves are worse than the whole.
    fn of<const N: usize>(&self, knob: usize, (low, high): &(Region<N>, Region<N>)) -> f64
    where
        P: BoxProblem<N>,
    {
        let problem = self.problem;
        let below = if problem.blind()[knob] && self.exact {
            match problem.corner(low, self.worst) {
                Corner::Least(value) => self.loss(Some(value)),
                Corner::Beyond | Corner::Nothing => CLOSED,
            }
        } else {
            self.loss(problem.bound(low))
        };
        let above = if problem.fits(&high.lo) {
            let mut rest = *high;
            trim(problem, &mut rest, &mut Vec::new());
            self.loss(problem.bound(&rest))
        } else {
            CLOSED
        };
        below * above
    }

    /// By what part a value is worse than that of the whole.
    fn loss(&self, value: Option<Value>) -> f64 {
        match value {
            None => CLOSED,
            Some(value) if self.worst.is_some_and(|worst| value >= worst) => CLOSED,
            Some(value) => {
                let part = value.first as f64 / (self.least.first as f64).max(1.0) - 1.0;
                part.clamp(0.0, 1.0) + NO_WORSE
            }
        }
    }
}
