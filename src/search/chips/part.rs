//! Parts of a grid of chips, which are searched apart: boxes that tile it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ChipRegion;
use super::setup::LINKS;
use super::setup::STACKS;
use crate::hardware::chip::ChipGrid;
use crate::hardware::chip::classes;
use crate::search::Part;

/// Knobs by whose values a class of arrays is cut that holds too many chips.
const CUT: [usize; 7] = [LINKS, STACKS, 7, 3, 4, 5, 6];

impl Part {
    /// The boxes of this part of a grid: no two parts share a chip, and where there are fewer chips than parts, some
    /// have none.
    ///
    /// Boxes of one class of arrays, which are looked at together, stay in one part: cut there, a grid costs least,
    /// since little is estimated twice. The largest go first, each to the part that has the fewest chips so far.
    pub fn boxes(self, grid: &ChipGrid) -> Vec<ChipRegion> {
        if self.of() == 1 {
            return vec![ChipRegion::whole(grid.lens())];
        }
        let mut pieces = pieces(grid, self.of());
        let volume = |piece: &[ChipRegion]| piece.iter().map(ChipRegion::volume).sum::<u128>();
        pieces.sort_by_cached_key(|piece| Reverse(volume(piece)));
        let mut parts: BinaryHeap<Reverse<(u128, u32)>> =
            (1..=self.of()).map(|number| Reverse((0, number))).collect();
        let mut own = Vec::new();
        for piece in pieces {
            let Some(Reverse((chips, number))) = parts.pop() else { break };
            parts.push(Reverse((chips + volume(&piece), number)));
            if number == self.number() {
                own.extend(piece);
            }
        }
        own
    }
}

/// Boxes that tile a grid, those of one class together; a class that holds more chips than two parts should is cut,
/// and where there are fewer classes than parts, one that holds more than one should.
fn pieces(grid: &ChipGrid, parts: u32) -> Vec<Vec<ChipRegion>> {
    let whole = ChipRegion::whole(grid.lens());
    let with = |arrays: &[(u16, u16); 3]| {
        let mut region = whole;
        for (knob, &(first, last)) in arrays.iter().enumerate() {
            (region.lo[knob], region.hi[knob]) = (first, last);
        }
        region
    };
    let classes = classes(grid);
    let times = if classes.len() < parts as usize { 1 } else { 2 };
    let most = (times * whole.volume()).div_ceil(u128::from(parts));
    let each = classes.into_iter().flat_map(|class| {
        let boxes: Vec<ChipRegion> = class.iter().map(with).collect();
        let volume: u128 = boxes.iter().map(ChipRegion::volume).sum();
        cut(boxes, volume.div_ceil(most))
    });
    each.collect()
}

/// Boxes cut alike into so many pieces or a few more, where there are enough values.
fn cut(boxes: Vec<ChipRegion>, mut wanted: u128) -> Vec<Vec<ChipRegion>> {
    let mut pieces = vec![boxes];
    for knob in CUT {
        let Some(region) = pieces.first().and_then(|piece| piece.first()) else { break };
        let values = u64::from(region.len(knob));
        let ranges = u64::try_from(wanted).unwrap_or(u64::MAX).min(values);
        wanted = wanted.div_ceil(u128::from(ranges));
        let part = |region: &ChipRegion, range: u64| {
            let end = |range: u64| u16::try_from(range * values / ranges).unwrap_or(u16::MAX);
            let first = region.lo[knob];
            region.from(knob, first + end(range)).up_to(knob, first + end(range + 1) - 1)
        };
        let each = pieces.iter().flat_map(|piece| {
            (0..ranges).map(|range| piece.iter().map(|region| part(region, range)).collect())
        });
        pieces = each.collect();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::chip::CHIP_KNOBS;
    use crate::hardware::chip::ChipSpace;
    use crate::hardware::chip::N_CHIP_KNOBS;
    use crate::hardware::chip::properties::technology;

    /// A grid whose knobs have the first of their usual values, so many of each.
    fn grid(lens: [u16; N_CHIP_KNOBS]) -> ChipGrid {
        let technology = technology();
        let mut space = ChipSpace::default_of(&technology);
        for (knob, len) in CHIP_KNOBS.iter().zip(lens) {
            space.knobs.get_mut(knob.name).unwrap().truncate(usize::from(len));
        }
        ChipGrid::new(&space, &technology).unwrap()
    }

    /// The number of every point of a grid.
    fn numbers(lens: [u16; N_CHIP_KNOBS], region: &ChipRegion) -> Vec<u128> {
        let mut points = vec![region.lo];
        for knob in 0..N_CHIP_KNOBS {
            let with = |place| {
                move |mut point: super::super::ChipPoint| {
                    point[knob] = place;
                    point
                }
            };
            points = (region.lo[knob]..=region.hi[knob])
                .flat_map(|place| points.clone().into_iter().map(with(place)))
                .collect();
        }
        points.iter().map(|point| crate::search::boxes::place(lens, point)).collect()
    }

    #[test]
    fn every_chip_is_in_exactly_one_box_of_one_part() {
        for lens in [[5, 2, 3, 1, 2, 1, 1, 2, 3, 2], [1; 10], [9, 1, 1, 2, 1, 1, 1, 1, 1, 3]] {
            for of in [1, 2, 3, 8, 64, 500] {
                let parts = (1..=of).map(|number| Part::new(number, of).unwrap());
                let mut all: Vec<u128> = parts
                    .flat_map(|part| part.boxes(&grid(lens)))
                    .flat_map(|region| numbers(lens, &region))
                    .collect();
                all.sort_unstable();
                let total: u128 = lens.iter().map(|&len| u128::from(len)).product();
                assert_eq!(all, (0..total).collect::<Vec<_>>(), "{lens:?} in {of}");
            }
        }
    }

    #[test]
    fn parts_of_the_usual_space_hold_about_as_many_chips_each() {
        let grid = grid([44, 4, 4, 13, 6, 6, 4, 10, 6, 13]);
        for of in [2, 8, 16, 44, 64, 176, 704] {
            let sizes = (1..=of).map(|number| {
                let boxes = Part::new(number, of).unwrap().boxes(&grid);
                assert!(boxes.len() <= 400, "{} boxes in one of {of}", boxes.len());
                boxes.iter().map(ChipRegion::volume).sum::<u128>()
            });
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(least > 0 && most <= 3 * least, "{least} to {most} in {of}");
        }
    }
}
