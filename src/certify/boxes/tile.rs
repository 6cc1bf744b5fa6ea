//! Whether boxes tile a grid: every point is in exactly one of them.

use crate::search::chips::ChipRegion;

/// How many knobs there are.
const KNOBS: usize = crate::hardware::chip::N_CHIP_KNOBS;

/// Why boxes do not tile a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untiled {
    /// No box holds this part.
    Hole(ChipRegion),
    /// Several boxes hold this part.
    Overlap(ChipRegion),
}

/// Whether every point of `region` is in exactly one of the boxes, which lie within it.
pub fn tile(region: ChipRegion, boxes: &[ChipRegion]) -> Result<(), Untiled> {
    match boxes {
        [] => Err(Untiled::Hole(region)),
        [only] if *only == region => Ok(()),
        _ => match plane(&region, boxes) {
            None => Err(Untiled::Overlap(region)),
            Some((knob, last)) => {
                let (low, high) = region.split(knob, last);
                [low, high].into_iter().try_for_each(|part| {
                    let inside: Vec<ChipRegion> =
                        boxes.iter().filter_map(|one| shared(one, &part)).collect();
                    tile(part, &inside)
                })
            }
        },
    }
}

/// What two boxes share.
fn shared(one: &ChipRegion, other: &ChipRegion) -> Option<ChipRegion> {
    let mut both = *one;
    for knob in 0..KNOBS {
        both.lo[knob] = one.lo[knob].max(other.lo[knob]);
        both.hi[knob] = one.hi[knob].min(other.hi[knob]);
        if both.lo[knob] > both.hi[knob] {
            return None;
        }
    }
    Some(both)
}

/// Where to cut a region so that the fewest boxes are cut and the parts are about equal: a knob, and
/// the last place of its lower part. `None` where every box fills the region along every knob.
fn plane(region: &ChipRegion, boxes: &[ChipRegion]) -> Option<(usize, u16)> {
    let mut best: Option<((usize, usize), (usize, u16))> = None;
    for knob in (0..KNOBS).filter(|&knob| region.varies(knob)) {
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

    fn region(from: [u16; 2], to: [u16; 2]) -> ChipRegion {
        let mut one = ChipRegion::point([0; KNOBS]);
        (one.lo[0], one.lo[1], one.hi[0], one.hi[1]) = (from[0], from[1], to[0], to[1]);
        one
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
