//! Slabs that the corners of boxes close, from either end of each knob.
//!
//! Boxes that are not closed as a whole are not cut in the middle at once: what their greatest corner, with less of one
//! knob, does not reach is taken off first, and so is what takes so much of one knob that even the greatest corner is
//! not worth it. Each slab makes the rest smaller, so that another knob may be peeled further. Where value is a time
//! times what a chip takes, this closes in a few slabs what halves would close cell by cell.

use super::kin::Trimmed;
use super::kin::all_trimmed;
use super::kin::from;
use super::kin::inners;
use super::kin::range;
use super::kin::up_to;
use super::problem::BoxProblem;
use super::problem::Closed;
use super::problem::Corner;
use super::problem::Value;
use super::problem::Why;
use super::region::Region;
use super::shrink::last_that;
use super::shrink::trimmed;
use super::walk::EXPECTED;
use super::walk::Kept;

/// How often all knobs are gone through at the most.
const ROUNDS: usize = 4;

/// What is left of boxes that are kin, of which only proved knobs vary, when slabs that are closed have gone to
/// `closed`.
///
/// Guesses tell where to look, and corners decide.
pub(super) fn peel<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    mut rest: Vec<Trimmed<N>>,
    (like, worst): (&Kept<N, P::Found>, Value),
    closed: &mut Vec<Closed<N>>,
) -> Vec<Trimmed<N>> {
    let peeling = Peeling { problem, like, worst };
    for _ in 0..ROUNDS {
        let before = rest.clone();
        for knob in 0..N {
            peeling.below(&mut rest, knob, closed);
            peeling.above(&mut rest, knob, closed);
        }
        if rest == before {
            break;
        }
    }
    rest
}

struct Peeling<'a, const N: usize, P: BoxProblem<N>> {
    problem: &'a P,
    like: &'a Kept<N, P::Found>,
    worst: Value,
}

impl<const N: usize, P: BoxProblem<N>> Peeling<'_, N, P> {
    /// Takes off the least values of a knob.
    fn below(&self, rest: &mut Vec<Trimmed<N>>, knob: usize, closed: &mut Vec<Closed<N>>) {
        let inner = inners(rest);
        let (low, high) = range(&inner, knob);
        let is_shut = |last: u16| self.is_shut(&up_to(&inner, knob, last));
        if low >= high || !is_shut(low) {
            return;
        }
        let last = last_that(low, high - 1, is_shut);
        let Some(why) = self.why(&up_to(&inner, knob, last)) else { return };
        let mut left = Vec::with_capacity(rest.len());
        for one in rest.drain(..) {
            if one.region.lo[knob] > last {
                left.push(one);
                continue;
            }
            let slab = one.region.up_to(knob, last.min(one.region.hi[knob]));
            closed.push(Closed { region: slab, why });
            if one.region.hi[knob] > last {
                self.take_up(one.region.from(knob, last + 1), &mut left, closed);
            }
        }
        *rest = left;
    }

    /// Takes off the greatest values of a knob.
    fn above(&self, rest: &mut Vec<Trimmed<N>>, knob: usize, closed: &mut Vec<Closed<N>>) {
        let regions: Vec<Region<N>> = rest.iter().map(|one| one.region).collect();
        let (low, high) = range(&inners(rest), knob);
        let slab = |first: u16| all_trimmed(self.problem, &from(&regions, knob, first));
        let is_open = |first: u16| {
            let slab = slab(first);
            !slab.is_empty() && !self.is_shut(&slab)
        };
        if low >= high || is_open(high) || !is_open(low) {
            return;
        }
        let last = last_that(low, high, is_open);
        let within = slab(last + 1);
        if within.is_empty() {
            return;
        }
        let Some(why) = self.why(&within) else { return };
        let mut left = Vec::with_capacity(rest.len());
        for one in rest.drain(..) {
            let cut = one.region.from(knob, one.region.lo[knob].max(last + 1));
            // What of a box does not fit there stays with it: nothing is said of that by a corner.
            if one.region.hi[knob] <= last || trimmed(self.problem, &cut).is_none() {
                left.push(one);
                continue;
            }
            closed.push(Closed { region: cut, why });
            if one.region.lo[knob] <= last {
                self.take_up(one.region.up_to(knob, last), &mut left, closed);
            }
        }
        *rest = left;
    }

    /// Why boxes are closed by their corner, if they are.
    fn why(&self, boxes: &[Region<N>]) -> Option<Why> {
        match self.problem.corner(boxes, Some(self.worst)) {
            Corner::Nothing => Some(Why::CornerNothing),
            Corner::Beyond => Some(Why::Corner(self.worst)),
            Corner::Reached(_) => None,
        }
    }

    /// Keeps what is left of a box, unless none of it fits.
    fn take_up(&self, region: Region<N>, left: &mut Vec<Trimmed<N>>, closed: &mut Vec<Closed<N>>) {
        match trimmed(self.problem, &region) {
            Some(inner) => left.push(Trimmed { region, inner }),
            None => closed.push(Closed { region, why: Why::OverBudget }),
        }
    }

    fn is_shut(&self, boxes: &[Region<N>]) -> bool {
        self.problem.guess(boxes, self.like, self.worst) >= EXPECTED
    }
}
