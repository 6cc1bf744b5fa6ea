//! What of a box fits, and what of it cannot be good enough.

use super::problem::BoxProblem;
use super::problem::Closed;
use super::problem::Value;
use super::problem::Why;
use super::region::Region;

/// What is left of a box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shrunk<const N: usize> {
    /// All of its points.
    pub region: Region<N>,
    /// Those of them that may fit.
    pub inner: Region<N>,
    /// What none of them can beat.
    pub least: Value,
}

/// How often all knobs are gone through at the most; each round starts from a smaller box.
const ROUNDS: usize = 4;

/// Lifts a box until it is still; what is cut off goes to `closed`. `None` where nothing is left.
/// `worst` is what a point must be better than.
pub(super) fn shrink<const N: usize>(
    problem: &impl BoxProblem<N>,
    mut region: Region<N>,
    worst: Option<Value>,
    closed: &mut Vec<Closed<N>>,
) -> Option<Shrunk<N>> {
    for _ in 0..ROUNDS {
        let Looked { inner, least } = match look(problem, &region, worst) {
            Ok(looked) => looked,
            Err(why) => {
                closed.push(Closed { region, why });
                return None;
            }
        };
        let lifted = worst.and_then(|worst| lift(problem, &region, &inner, (worst, closed)));
        match lifted {
            Some(rest) => region = rest,
            None => return Some(Shrunk { region, inner, least }),
        }
    }
    match look(problem, &region, worst) {
        Ok(Looked { inner, least }) => Some(Shrunk { region, inner, least }),
        Err(why) => {
            closed.push(Closed { region, why });
            None
        }
    }
}

struct Looked<const N: usize> {
    inner: Region<N>,
    least: Value,
}

/// What of a box may fit, and what none of that can beat; or why it is closed.
fn look<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &Region<N>,
    worst: Option<Value>,
) -> Result<Looked<N>, Why> {
    let inner = trimmed(problem, region).ok_or(Why::OverBudget)?;
    let least = problem.bound(&inner).ok_or(Why::NothingFits)?;
    match worst {
        Some(worst) if least >= worst => Err(Why::Bound(least)),
        _ => Ok(Looked { inner, least }),
    }
}

/// The part of a box that may fit: each knob up to the largest value that fits with the least of the
/// others. `None` where not even the least corner fits.
pub fn trimmed<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &Region<N>,
) -> Option<Region<N>> {
    if !problem.fits(&region.lo) {
        return None;
    }
    let mut inner = *region;
    for knob in 0..N {
        let fits = |value: u16| {
            let mut point = region.lo;
            point[knob] = value;
            problem.fits(&point)
        };
        inner.hi[knob] = last_that(region.lo[knob], region.hi[knob], fits);
    }
    Some(inner)
}

/// Closes the values of a knob at which nothing can be better than `worst`, for every knob, from
/// below, and from above where bounds rise with the least corner. What is left, or `None` where
/// nothing was closed.
fn lift<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &Region<N>,
    inner: &Region<N>,
    (worst, closed): (Value, &mut Vec<Closed<N>>),
) -> Option<Region<N>> {
    let mut rest = *region;
    let mut within = *inner;
    for (knob, is_blind) in problem.blind().into_iter().enumerate() {
        if within.varies(knob) && !is_blind {
            let (low, high) = (within.lo[knob], within.hi[knob]);
            // What ends at a hopeless value is hopeless below it too.
            let why = |value: u16| hopeless(problem, &within.up_to(knob, value), worst);
            if why(low).is_some() {
                let last = last_that(low, high - 1, |value| why(value).is_some());
                let (cut, left) = rest.split(knob, last);
                // By the box itself, whose least corner is that of the whole.
                if let Err(why) = look(problem, &cut, Some(worst)) {
                    closed.push(Closed { region: cut, why });
                    rest = left;
                    within.lo[knob] = last + 1;
                }
            }
        }
        if within.varies(knob) && problem.rises() {
            let (low, high) = (rest.lo[knob], within.hi[knob]);
            let good = |value: u16| look(problem, &rest.from(knob, value), Some(worst)).is_ok();
            if !good(high) {
                let last = last_that(low, high, good);
                let (left, cut) = rest.split(knob, last);
                if let Err(why) = look(problem, &cut, Some(worst)) {
                    closed.push(Closed { region: cut, why });
                    rest = left;
                    within.hi[knob] = last;
                }
            }
        }
    }
    (rest != *region).then_some(rest)
}

/// Why a box without points that do not fit is closed, if it is.
fn hopeless<const N: usize>(
    problem: &impl BoxProblem<N>,
    part: &Region<N>,
    worst: Value,
) -> Option<Why> {
    match problem.bound(part) {
        None => Some(Why::NothingFits),
        Some(least) if least >= worst => Some(Why::Bound(least)),
        Some(_) => None,
    }
}

/// The last value from `low` to `high` that `holds`, which does for `low` and for no value after one
/// for which it does not.
pub(super) fn last_that(low: u16, high: u16, holds: impl Fn(u16) -> bool) -> u16 {
    // Invariant: it holds for `known`, and for nothing above `end`.
    let (mut known, mut end) = (low, high);
    while known < end {
        let middle = known + (end - known).div_ceil(2);
        if holds(middle) { known = middle } else { end = middle - 1 }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::last_that;

    #[test]
    fn the_last_value_is_found_wherever_it_is() {
        for high in 0..9 {
            for last in 0..=high {
                assert_eq!(last_that(0, high, |value| value <= last), last);
            }
        }
    }
}
