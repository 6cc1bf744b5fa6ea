//! The edge of a die: memory stands along its long sides, links take the rest.

use super::Chip;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Technology;
use crate::units::Area;

/// The smallest die whose edge has room for a chip's memory and links; `None` where no die that a
/// reticle can hold has it.
///
/// It is the least a·b with a and b within the reticle, b at most twice a, half of the stacks along
/// b, and all stacks and links within 2(a + b). An area instead of a limit on the edge: so a larger
/// die is never refused where a smaller one is not.
pub fn least_die(chip: &Chip, technology: &Technology) -> Option<Area> {
    let of = |constant| technology.of(constant);
    let (per_stack, sites) = (of(Constant::MemoryEdge), u128::from(chip.memory.sites));
    let links = (of(Constant::LinkEdge) * u128::from(chip.links_gb_per_s)).div_ceil(100);
    let perimeter = per_stack * sites + links;
    // Lengths are in micrometres, sides doubled so that half a perimeter is a whole number.
    let (short, aspect) = (2 * of(Constant::ReticleShort), of(Constant::Aspect));
    let high = (2 * of(Constant::ReticleLong)).min(short * aspect / 1000);
    let low = (2 * per_stack * sites.div_ceil(2)).max(perimeter.saturating_sub(short));
    if low > high {
        return None;
    }
    // Four times the area, in thousandths of a square micrometre, with a side that follows from the
    // perimeter alone.
    let by_perimeter = |side: u128| side * (perimeter - side) * 1000;
    // From this side on, the other follows from the shape alone: perimeter·aspect/(1000 + aspect).
    let turn = (perimeter * aspect, 1000 + aspect);
    let quadruple = if low * turn.1 >= turn.0 {
        low * low * 1_000_000 / aspect
    } else {
        // Between the two ends the area is concave in the side.
        let at_turn = if turn.0 <= high * turn.1 {
            perimeter * perimeter * aspect * 1_000_000 / (turn.1 * turn.1)
        } else {
            by_perimeter(high)
        };
        by_perimeter(low).min(at_turn)
    };
    // A quarter of a thousandth of a square micrometre has 250 square nanometres.
    u64::try_from(quadruple * 250).ok().map(Area)
}

#[cfg(test)]
mod tests {
    use super::super::properties::example;
    use super::super::properties::technology;
    use super::*;

    #[test]
    fn the_least_die_is_that_of_every_pair_of_sides_tried() {
        let technology = technology();
        for sites in 0..=8 {
            for links in [0, 25, 400, 1600, 3000, 5200, 5300] {
                let mut chip = example().chip(&technology);
                chip.memory.sites = sites;
                chip.links_gb_per_s = links;
                // Sides in tenths of a millimetre.
                let perimeter = 110 * sites + links / 10;
                let fits = |a: u64, b: u64| {
                    b <= 2 * a && b >= 110 * sites.div_ceil(2) && 2 * (a + b) >= perimeter
                };
                let sides = (0..=260).flat_map(|a| (0..=330).map(move |b| (a, b)));
                let tried = sides.filter(|&(a, b)| fits(a, b)).map(|(a, b)| a * b).min();
                let found = least_die(&chip, &technology);
                match (tried, found) {
                    (Some(tried), Some(found)) => {
                        let mm2 = found.square_millimetres();
                        // The grid of tenths can miss the least by a tenth along each side.
                        assert!(
                            mm2 <= tried as f64 / 100.0 + 1e-9,
                            "{sites} {links}: {mm2} {tried}"
                        );
                        assert!(
                            mm2 >= tried as f64 / 100.0 - 5.0,
                            "{sites} {links}: {mm2} {tried}"
                        );
                    }
                    (tried, found) => {
                        assert_eq!(tried.is_none(), found.is_none(), "{sites} {links}");
                    }
                }
            }
        }
    }

    #[test]
    fn five_stacks_need_the_long_side_of_the_reticle() {
        let technology = technology();
        let mut chip = example().chip(&technology);
        for (sites, mm2) in [(4, 242.0), (5, 544.5), (6, 544.5)] {
            chip.memory.sites = sites;
            let found = least_die(&chip, &technology).unwrap().square_millimetres();
            assert!((found - mm2).abs() < 1e-9, "{sites}: {found}");
        }
        chip.memory.sites = 7;
        assert_eq!(least_die(&chip, &technology), None);
    }
}
