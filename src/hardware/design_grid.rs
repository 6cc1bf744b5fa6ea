//! The grid of a [`DesignSpace`]: points are places in the lists of its knobs, so that boxes of designs can
//! be told by their corners.

use super::AreaBreakdown;
use super::Candidate;
use super::DesignSpace;
use super::Knob;
use super::Physics;
use super::PointKind;
use crate::units::Area;

/// How many knobs the chip itself has in a space.
pub const N_DESIGN_KNOBS: usize = 7;

/// The knobs from the one that turns slowest in the published order, as places in the table of knobs.
const PUBLISHED_ORDER: [usize; N_DESIGN_KNOBS] = [0, 3, 1, 2, 4, 5, 6];

/// The points of a space of designs; knobs stand in the order of the table, their values ascend.
///
/// Area never falls when a knob rises: arrays, lanes and buffers are products of knobs, buffers inside of
/// cores follow from the sides of arrays and the lanes, and a larger buffer takes no less area.
#[derive(Clone, Debug)]
pub struct DesignGrid {
    space: DesignSpace,
    /// One value, which counts for nothing, where a knob follows from others or from the physics.
    values: [Vec<u64>; N_DESIGN_KNOBS],
    follows: [bool; N_DESIGN_KNOBS],
}

impl DesignGrid {
    /// The grid of a space; `None` where a knob has more values than are counted, or none at all.
    pub fn new(space: &DesignSpace) -> Option<Self> {
        let mut values: [Vec<u64>; N_DESIGN_KNOBS] = Default::default();
        let mut follows = [false; N_DESIGN_KNOBS];
        for (at, knob) in Knob::of_chip().enumerate() {
            let list = &mut values[at];
            list.extend(knob.values(space));
            list.sort_unstable();
            list.dedup();
            if list.is_empty() && knob.follows() {
                follows[at] = true;
                list.push(0);
            }
            if list.is_empty() || u16::try_from(list.len()).is_err() {
                return None;
            }
        }
        Some(Self { space: space.clone(), values, follows })
    }

    /// How many values each knob has.
    pub fn lens(&self) -> [u16; N_DESIGN_KNOBS] {
        let len = |knob: usize| u16::try_from(self.values[knob].len());
        std::array::from_fn(|knob| len(knob).expect("lists were seen to be short enough"))
    }

    /// The value of a knob at a place; `None` where it follows from others or from the physics.
    pub fn value(&self, knob: usize, place: u16) -> Option<u64> {
        (!self.follows[knob]).then(|| self.values[knob][usize::from(place)])
    }

    /// The place of a value of a knob, where it is one of the space.
    pub fn place_of(&self, knob: usize, value: Option<u64>) -> Option<u16> {
        match value {
            None => self.follows[knob].then_some(0),
            Some(_) if self.follows[knob] => None,
            Some(value) => u16::try_from(self.values[knob].binary_search(&value).ok()?).ok(),
        }
    }

    /// The design at a point, or what would be one.
    pub fn candidate(&self, point: &[u16; N_DESIGN_KNOBS]) -> Candidate {
        let knobs = Knob::of_chip().enumerate();
        let values = knobs.filter_map(|(at, knob)| Some((knob, self.value(at, point[at])?)));
        self.space.candidate(values)
    }

    /// The point of a candidate, where it is one of the grid.
    pub fn point(&self, candidate: &Candidate) -> Option<[u16; N_DESIGN_KNOBS]> {
        let mut point = [0; N_DESIGN_KNOBS];
        for (at, knob) in Knob::of_chip().enumerate() {
            let said = (knob.get)(candidate).filter(|_| !self.follows[at]);
            point[at] = self.place_of(at, said)?;
        }
        (self.candidate(&point) == *candidate).then_some(point)
    }

    /// How many points come before one in the published order: each knob from its largest value down.
    pub fn published_place(&self, point: &[u16; N_DESIGN_KNOBS]) -> u128 {
        PUBLISHED_ORDER.into_iter().fold(0, |before: u128, knob| {
            let len = self.values[knob].len() as u128;
            before.saturating_mul(len).saturating_add(len - 1 - u128::from(point[knob]))
        })
    }

    /// The area at a point; `None` beyond what an area can be.
    pub fn area(&self, point: &[u16; N_DESIGN_KNOBS]) -> Option<Area> {
        AreaBreakdown::of(&self.candidate(point).design).map(|parts| parts.total())
    }

    /// Whether a point is not larger than the largest chip.
    pub fn keeps_the_limit(&self, point: &[u16; N_DESIGN_KNOBS]) -> bool {
        self.area(point).is_some_and(|area| area.0 <= self.space.max_area_nm2)
    }

    /// Whether a point is a design.
    pub fn is_design(&self, point: &[u16; N_DESIGN_KNOBS], physics: &Physics) -> bool {
        self.space.kind(&self.candidate(point), physics) == PointKind::Design
    }

    /// Whether surely no point between two corners is a design, because all are smaller than the smallest
    /// chip and have several cores of each kind.
    pub fn all_too_small(
        &self,
        least: &[u16; N_DESIGN_KNOBS],
        most: &[u16; N_DESIGN_KNOBS],
    ) -> bool {
        let low = self.candidate(least).design;
        let single = low.tensor_cores == 1 || low.vector_cores == 1;
        !single && self.area(most).is_some_and(|area| area.0 < self.space.min_area_nm2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(grid: &DesignGrid) -> Vec<[u16; N_DESIGN_KNOBS]> {
        let mut points = vec![[0; N_DESIGN_KNOBS]];
        for (knob, len) in grid.lens().into_iter().enumerate() {
            points = points
                .into_iter()
                .flat_map(|point| {
                    (0..len).map(move |at| {
                        let mut next = point;
                        next[knob] = at;
                        next
                    })
                })
                .collect();
        }
        points
    }

    fn spaces() -> [DesignSpace; 2] {
        let published = DesignSpace::published();
        let own = DesignSpace {
            tensor_cores: vec![1, 3, 56, 64],
            width: vec![5, 64, 100],
            depth: vec![32, 33],
            vector_cores: vec![1, 2, 7],
            vector_width: vec![8, 96],
            glb_mib: vec![1, 3, 100],
            glb_bytes_per_cycle: vec![256, 1000],
            ..published.clone()
        };
        [published, own]
    }

    #[test]
    fn designs_of_a_grid_are_those_of_its_space_in_the_published_order() {
        let physics = crate::hardware::chip::properties::physics();
        for space in spaces() {
            let grid = DesignGrid::new(&space).unwrap();
            let mut points = points(&grid);
            assert_eq!(Some(points.len() as u64), space.points());
            points.sort_unstable_by_key(|point| grid.published_place(point));
            assert!((0..).zip(&points).all(|(at, point)| grid.published_place(point) == at));
            points.retain(|point| grid.is_design(point, &physics));
            let found: Vec<Candidate> = points.iter().map(|point| grid.candidate(point)).collect();
            let (designs, count) = space.designs(&physics);
            assert_eq!(found, designs);
            assert_eq!(space.count(&physics), (designs.first().copied(), count));
            assert!(points.iter().all(|at| grid.point(&grid.candidate(at)) == Some(*at)));
        }
    }

    #[test]
    fn area_never_falls_when_a_knob_rises() {
        for space in spaces() {
            let grid = DesignGrid::new(&space).unwrap();
            for point in points(&grid) {
                for knob in 0..N_DESIGN_KNOBS {
                    let mut more = point;
                    more[knob] += 1;
                    if more[knob] < grid.lens()[knob] {
                        let areas = [point, more].map(|at| grid.area(&at).map(|area| area.0));
                        assert!(areas[0].unwrap_or(u64::MAX) <= areas[1].unwrap_or(u64::MAX));
                    }
                }
            }
        }
    }
}
