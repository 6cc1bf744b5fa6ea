//! Boxes that are looked at together: kin, which differ in knobs that have no law and are nearly alike otherwise.

use super::problem::BoxProblem;
use super::region::Region;
use super::shrink::trimmed;

/// A box, and those of its points that may fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trimmed<const N: usize> {
    pub region: Region<N>,
    pub inner: Region<N>,
}

/// Those of their points that may fit.
pub(super) fn inners<const N: usize>(kin: &[Trimmed<N>]) -> Vec<Region<N>> {
    kin.iter().map(|one| one.inner).collect()
}

/// The least and the greatest value of a knob in any of the boxes, of which there is at least one.
pub(super) fn range<const N: usize>(boxes: &[Region<N>], knob: usize) -> (u16, u16) {
    let ends = boxes.iter().map(|one| (one.lo[knob], one.hi[knob]));
    ends.fold((u16::MAX, 0), |(low, high), (lo, hi)| (low.min(lo), high.max(hi)))
}

/// What of the boxes has values of a knob up to `last`.
pub(super) fn up_to<const N: usize>(boxes: &[Region<N>], knob: usize, last: u16) -> Vec<Region<N>> {
    let some = boxes.iter().filter(|one| one.lo[knob] <= last);
    some.map(|one| one.up_to(knob, last.min(one.hi[knob]))).collect()
}

/// What of the boxes has values of a knob from `first` on.
pub(super) fn from<const N: usize>(boxes: &[Region<N>], knob: usize, first: u16) -> Vec<Region<N>> {
    let some = boxes.iter().filter(|one| one.hi[knob] >= first);
    some.map(|one| one.from(knob, first.max(one.lo[knob]))).collect()
}

/// What of the boxes may fit.
pub(super) fn all_trimmed<const N: usize>(
    problem: &impl BoxProblem<N>,
    boxes: &[Region<N>],
) -> Vec<Region<N>> {
    boxes.iter().filter_map(|one| trimmed(problem, one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_boxes_leave_out_those_that_have_none() {
        let boxes = [Region { lo: [0, 2], hi: [0, 5] }, Region { lo: [1, 4], hi: [1, 9] }];
        assert_eq!(range(&boxes, 1), (2, 9));
        assert_eq!(up_to(&boxes, 1, 3), [Region { lo: [0, 2], hi: [0, 3] }]);
        assert_eq!(from(&boxes, 1, 6), [Region { lo: [1, 6], hi: [1, 9] }]);
        for last in 2..9 {
            let volume = |boxes: &[Region<2>]| boxes.iter().map(Region::volume).sum::<u128>();
            let parts = volume(&up_to(&boxes, 1, last)) + volume(&from(&boxes, 1, last + 1));
            assert_eq!(parts, volume(&boxes));
        }
    }
}
