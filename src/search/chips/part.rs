//! Parts of a grid of chips, which are searched apart: boxes that tile it.

use super::ChipRegion;
use super::setup::LINKS;
use super::setup::STACKS;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Part;

/// Knobs by whose values a grid is cut. Between values of the first three no estimate is shared, so that cutting
/// there costs least; the others follow where there are more parts than such boxes.
const CUT: [usize; N_CHIP_KNOBS] = [1, 2, 0, LINKS, STACKS, 7, 3, 4, 5, 6];

/// How many of them have no law.
const LAWLESS: usize = 3;

/// About so many boxes are dealt to each part, so that every part has its share of good chips.
const DEALT: u64 = 64;

impl Part {
    /// The boxes of this part of a grid whose knobs have so many values each. They are dealt out in turn, and no
    /// two parts share a chip; where there are fewer chips than parts, some have none.
    pub fn boxes(self, lens: [u16; N_CHIP_KNOBS]) -> Vec<ChipRegion> {
        let whole = ChipRegion::whole(lens);
        if self.of() == 1 {
            return vec![whole];
        }
        let cuts = cuts(lens, u64::from(self.of()));
        // Tensor cores turn first: chips with about as many of them are the most alike.
        let order = [2, 1, 0, 3, 4, 5, 6, 7, 8, 9];
        let total: u64 = cuts.iter().product();
        let parts = u64::from(self.of());
        let own = (0..total).filter(|index| {
            // Each round of dealing begins one part further, so that no part has the same values in all of them.
            (index % parts + index / parts) % parts == u64::from(self.number() - 1)
        });
        own.map(|mut index| {
            let mut region = whole;
            for at in order {
                let (knob, ranges) = (CUT[at], cuts[at]);
                let range = index % ranges;
                index /= ranges;
                let end = |range: u64| u16::try_from(range * u64::from(lens[knob]) / ranges);
                region.lo[knob] = end(range).unwrap_or(u16::MAX);
                region.hi[knob] = end(range + 1).unwrap_or(u16::MAX) - 1;
            }
            region
        })
        .collect()
    }
}

/// Into how many ranges each knob of [`CUT`] is cut.
fn cuts(lens: [u16; N_CHIP_KNOBS], parts: u64) -> [u64; N_CHIP_KNOBS] {
    let mut cuts = [1; N_CHIP_KNOBS];
    let mut boxes = 1_u64;
    for (at, knob) in CUT.into_iter().enumerate() {
        let wanted = if at < LAWLESS { parts * DEALT } else { parts };
        let ranges = wanted.div_ceil(boxes).min(u64::from(lens[knob]));
        cuts[at] = ranges.max(1);
        boxes = boxes.saturating_mul(cuts[at]);
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

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
                    .flat_map(|part| part.boxes(lens))
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
        let lens = [44, 4, 4, 13, 6, 6, 4, 10, 6, 13];
        for of in [2, 8, 16, 44, 64, 176, 704] {
            let sizes = (1..=of).map(|number| {
                let boxes = Part::new(number, of).unwrap().boxes(lens);
                assert!(boxes.len() <= 200, "{} boxes in one of {of}", boxes.len());
                boxes.iter().map(ChipRegion::volume).sum::<u128>()
            });
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(least > 0 && most <= 2 * least, "{least} to {most} in {of}");
        }
    }
}
