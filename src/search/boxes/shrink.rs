//! Cuts off what of a box takes too much or cannot be good enough.

use super::problem::BoxProblem;
use super::problem::Closed;
use super::problem::Value;
use super::problem::Why;
use super::region::Region;

/// What is left of a box, with what none of its points can beat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shrunk<const N: usize> {
    pub region: Region<N>,
    pub least: Value,
}

/// How often all knobs are gone through at the most; each round starts from a smaller box.
const ROUNDS: usize = 4;

/// Trims and lifts a box until it is still; what is cut off goes to `closed`. `None` where nothing
/// is left. `worst` is what a point must be better than.
pub(super) fn shrink<const N: usize>(
    problem: &impl BoxProblem<N>,
    mut region: Region<N>,
    worst: Option<Value>,
    closed: &mut Vec<Closed<N>>,
) -> Option<Shrunk<N>> {
    let mut least = None;
    for round in 0..ROUNDS {
        let before = region;
        if !problem.fits(&region.lo) {
            closed.push(Closed { region, why: Why::OverBudget });
            return None;
        }
        trim(problem, &mut region, closed);
        if round > 0 && region == before {
            break;
        }
        let Some(value) = problem.bound(&region) else {
            closed.push(Closed { region, why: Why::NothingFits });
            return None;
        };
        if worst.is_some_and(|worst| value >= worst) {
            closed.push(Closed { region, why: Why::Bound(value) });
            return None;
        }
        least = Some(value);
        let Some(worst) = worst else { break };
        let trimmed = region;
        lift(problem, &mut region, worst, closed);
        if region == trimmed {
            break;
        }
        least = problem.bound(&region).or(least);
    }
    least.map(|least| Shrunk { region, least })
}

/// Lowers the greatest value of each knob to the largest that fits with the least of the others.
pub(super) fn trim<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &mut Region<N>,
    closed: &mut Vec<Closed<N>>,
) {
    for knob in 0..N {
        let fits = |value: u16| {
            let mut point = region.lo;
            point[knob] = value;
            problem.fits(&point)
        };
        let last = last_that(region.lo[knob], region.hi[knob], fits);
        if last < region.hi[knob] {
            let (rest, cut) = region.split(knob, last);
            closed.push(Closed { region: cut, why: Why::OverBudget });
            *region = rest;
        }
    }
}

/// Raises the least value of each knob to the smallest with which something may still be better than
/// `worst`, and lowers the greatest likewise where bounds rise with the least corner.
fn lift<const N: usize>(
    problem: &impl BoxProblem<N>,
    region: &mut Region<N>,
    worst: Value,
    closed: &mut Vec<Closed<N>>,
) {
    let blind = problem.blind();
    let mut close = |cut: Region<N>| {
        let why = match problem.bound(&cut) {
            _ if !problem.fits(&cut.lo) => Why::OverBudget,
            Some(least) => Why::Bound(least),
            None => Why::NothingFits,
        };
        closed.push(Closed { region: cut, why });
    };
    let is_hopeless = |part: &Region<N>| problem.bound(part).is_none_or(|least| least >= worst);
    for (knob, is_blind) in blind.into_iter().enumerate() {
        if region.varies(knob) && !is_blind {
            let (low, high) = (region.lo[knob], region.hi[knob]);
            // Invariant of the search: what ends at a hopeless value is hopeless below it too.
            let hopeless = |value: u16| is_hopeless(&region.up_to(knob, value));
            if hopeless(low) {
                let last = last_that(low, high - 1, hopeless);
                let (cut, rest) = region.split(knob, last);
                close(cut);
                *region = rest;
            }
        }
        if region.varies(knob) && problem.rises() {
            let (low, high) = (region.lo[knob], region.hi[knob]);
            let good = |value: u16| !is_hopeless(&region.from(knob, value));
            if !good(high) {
                let last = last_that(low, high, good);
                let (rest, cut) = region.split(knob, last);
                close(cut);
                *region = rest;
            }
        }
    }
}

/// The last value from `low` to `high` that `holds`, which does for `low` and for no value after one
/// for which it does not.
fn last_that(low: u16, high: u16, holds: impl Fn(u16) -> bool) -> u16 {
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
