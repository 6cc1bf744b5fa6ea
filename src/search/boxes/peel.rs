//! Slabs that the corners of a box close, from either end of each knob.
//!
//! A box that is not closed as a whole is not cut in the middle at once: what its greatest corner, with less of one
//! knob, does not reach is taken off first, and so is what takes so much of one knob that even the greatest corner is
//! not worth it. Each slab makes the rest smaller, so that another knob may be peeled further. Where value is a time
//! times what a chip takes, this closes in a few slabs what halves would close cell by cell.

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

/// A box, and those of its points that may fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peeled<const N: usize> {
    pub region: Region<N>,
    pub inner: Region<N>,
}

/// What is left of a box, of which only proved knobs vary, when slabs that are closed have gone to `closed`; `None`
/// where nothing is.
///
/// Guesses tell where to look, and corners decide.
pub(super) fn peel<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    whole: Peeled<N>,
    (like, worst): (&Kept<N, P::Found>, Value),
    closed: &mut Vec<Closed<N>>,
) -> Option<Peeled<N>> {
    let peeling = Peeling { problem, like, worst };
    let mut rest = whole;
    for _ in 0..ROUNDS {
        let before = rest;
        for knob in 0..N {
            rest = peeling.below(rest, knob, closed)?;
            rest = peeling.above(rest, knob, closed)?;
        }
        if rest == before {
            break;
        }
    }
    Some(rest)
}

struct Peeling<'a, const N: usize, P: BoxProblem<N>> {
    problem: &'a P,
    like: &'a Kept<N, P::Found>,
    worst: Value,
}

impl<const N: usize, P: BoxProblem<N>> Peeling<'_, N, P> {
    /// Takes off the least values of a knob.
    fn below(
        &self,
        rest: Peeled<N>,
        knob: usize,
        closed: &mut Vec<Closed<N>>,
    ) -> Option<Peeled<N>> {
        let Peeled { region, inner } = rest;
        let is_shut = |last: u16| self.is_shut(&inner.up_to(knob, last));
        if !inner.varies(knob) || !is_shut(inner.lo[knob]) {
            return Some(rest);
        }
        let last = last_that(inner.lo[knob], inner.hi[knob] - 1, is_shut);
        let (slab, left) = region.split(knob, last);
        self.without(rest, (slab, left), &inner.up_to(knob, last), closed)
    }

    /// Takes off the greatest values of a knob.
    fn above(
        &self,
        rest: Peeled<N>,
        knob: usize,
        closed: &mut Vec<Closed<N>>,
    ) -> Option<Peeled<N>> {
        let Peeled { region, inner } = rest;
        let from = |first: u16| trimmed(self.problem, &region.from(knob, first));
        let is_open = |first: u16| from(first).is_some_and(|slab| !self.is_shut(&slab));
        let (low, high) = (inner.lo[knob], inner.hi[knob]);
        if !inner.varies(knob) || is_open(high) || !is_open(low) {
            return Some(rest);
        }
        let last = last_that(low, high, is_open);
        let (left, slab) = region.split(knob, last);
        let Some(within) = from(last + 1) else { return Some(rest) };
        self.without(rest, (slab, left), &within, closed)
    }

    /// What is left without a slab, of which so much may fit, where its corner closes it.
    fn without(
        &self,
        rest: Peeled<N>,
        (slab, left): (Region<N>, Region<N>),
        within: &Region<N>,
        closed: &mut Vec<Closed<N>>,
    ) -> Option<Peeled<N>> {
        let why = match self.problem.corner(within, Some(self.worst)) {
            Corner::Nothing => Why::CornerNothing,
            Corner::Beyond => Why::Corner(self.worst),
            Corner::Reached(_) => return Some(rest),
        };
        closed.push(Closed { region: slab, why });
        let Some(inner) = trimmed(self.problem, &left) else {
            closed.push(Closed { region: left, why: Why::OverBudget });
            return None;
        };
        Some(Peeled { region: left, inner })
    }

    fn is_shut(&self, inner: &Region<N>) -> bool {
        self.problem.guess(inner, self.like, self.worst) >= EXPECTED
    }
}
