//! Whether boxes tile a grid: every point is in exactly one of them; and what of a box may fit.

use crate::search::boxes::Point;
use crate::search::boxes::Region;

use super::super::claims::FalseClaim;
use super::super::claims::Verdict;

/// Why boxes do not tile a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untiled<const N: usize> {
    /// No box holds this part.
    Hole(Region<N>),
    /// Several boxes hold this part.
    Overlap(Region<N>),
}

/// Whether every point of `region` is in exactly one of the boxes, which lie within it.
pub fn tile<const N: usize>(region: Region<N>, boxes: &[Region<N>]) -> Result<(), Untiled<N>> {
    match boxes {
        [] => Err(Untiled::Hole(region)),
        [only] if *only == region => Ok(()),
        _ => match plane(&region, boxes) {
            None => Err(Untiled::Overlap(region)),
            Some((knob, last)) => {
                let (low, high) = region.split(knob, last);
                [low, high].into_iter().try_for_each(|part| {
                    let inside: Vec<Region<N>> =
                        boxes.iter().filter_map(|one| shared(one, &part)).collect();
                    tile(part, &inside)
                })
            }
        },
    }
}

/// What two boxes share.
fn shared<const N: usize>(one: &Region<N>, other: &Region<N>) -> Option<Region<N>> {
    let mut both = *one;
    for knob in 0..N {
        both.lo[knob] = one.lo[knob].max(other.lo[knob]);
        both.hi[knob] = one.hi[knob].min(other.hi[knob]);
        if both.lo[knob] > both.hi[knob] {
            return None;
        }
    }
    Some(both)
}

/// That boxes tile a grid, as a claim about those of the name `proves`.
pub fn tiles<const N: usize>(whole: Region<N>, boxes: &[Region<N>], proves: &str) -> Verdict {
    tile(whole, boxes).map_err(|reason| {
        let (what, region) = match reason {
            Untiled::Hole(region) => ("no box holds", region),
            Untiled::Overlap(region) => ("several boxes hold", region),
        };
        let claim = format!("boxes.csv: the boxes of `{proves}`");
        let found = format!("{what} the places {:?} to {:?}", region.lo, region.hi);
        FalseClaim::new(claim, "a tiling of the grid", found)
    })
}

/// The points of a box that may fit: what a knob adds to the least of them alone, it adds to every other.
/// `None` where not even the least fits.
pub fn allowed<const N: usize>(
    region: &Region<N>,
    fits: impl Fn(&Point<N>) -> bool,
) -> Option<Region<N>> {
    let mut inner = *region;
    for (knob, last) in inner.hi.iter_mut().enumerate() {
        let least = region.lo;
        let allowed = |&place: &u16| {
            let mut point = least;
            point[knob] = place;
            fits(&point)
        };
        *last = (least[knob]..=*last).take_while(allowed).last()?;
    }
    Some(inner)
}

/// Where to cut a region so that the fewest boxes are cut and the parts are about equal: a knob, and
/// the last place of its lower part. `None` where every box fills the region along every knob.
fn plane<const N: usize>(region: &Region<N>, boxes: &[Region<N>]) -> Option<(usize, u16)> {
    let mut best: Option<((usize, usize), (usize, u16))> = None;
    for knob in (0..N).filter(|&knob| region.varies(knob)) {
        let length = usize::from(region.len(knob));
        let (mut begins, mut ends) = (vec![0_usize; length], vec![0_usize; length]);
        for one in boxes {
            begins[usize::from(one.lo[knob] - region.lo[knob])] += 1;
            ends[usize::from(one.hi[knob] - region.lo[knob])] += 1;
        }
        let (mut begun, mut ended) = (0, 0);
        for at in 0..length - 1 {
            begun += begins[at];
            ended += ends[at];
            if ends[at] == 0 && begins[at + 1] == 0 {
                continue;
            }
            let cut = begun - ended;
            let uneven = begun.max(boxes.len() - ended);
            let last = region.lo[knob] + u16::try_from(at).unwrap_or(0);
            let rank = ((cut, uneven), (knob, last));
            if best.is_none_or(|known| rank < known) {
                best = Some(rank);
            }
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(lo: [u16; 2], hi: [u16; 2]) -> Region<2> {
        Region { lo, hi }
    }

    #[test]
    fn boxes_that_turn_around_a_point_tile() {
        let whole = region([0, 0], [2, 2]);
        let wheel = [
            region([0, 0], [1, 0]),
            region([2, 0], [2, 1]),
            region([1, 2], [2, 2]),
            region([0, 1], [0, 2]),
            region([1, 1], [1, 1]),
        ];
        assert_eq!(tile(whole, &wheel), Ok(()));
        assert!(matches!(tile(whole, &wheel[..4]), Err(Untiled::Hole(_))));
        let twice = [&wheel[..], &[region([1, 1], [1, 1])]].concat();
        assert!(matches!(tile(whole, &twice), Err(Untiled::Overlap(_))));
        let wider = [&wheel[1..], &[region([0, 0], [2, 0])]].concat();
        assert!(matches!(tile(whole, &wider), Err(Untiled::Overlap(_))));
    }
}
