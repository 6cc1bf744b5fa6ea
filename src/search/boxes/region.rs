//! Boxes of a grid: for each knob a range of places in its list of values.

/// A point of a grid: for each knob, the place of its value in an ascending list.
pub type Point<const N: usize> = [u16; N];

/// How many points come before a point in a grid whose knobs have so many values each, where the last knob turns
/// first; of the points of a box its least corner comes first.
pub fn place<const N: usize>(lens: [u16; N], point: &Point<N>) -> u128 {
    let knobs = lens.into_iter().zip(point);
    knobs.fold(0, |before, (len, &at)| {
        before.saturating_mul(u128::from(len)).saturating_add(u128::from(at))
    })
}

/// All points between two corners, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region<const N: usize> {
    /// The least place of every knob.
    pub lo: Point<N>,
    /// The greatest place of every knob, nowhere below `lo`.
    pub hi: Point<N>,
}

impl<const N: usize> Region<N> {
    /// A whole grid whose knobs have so many values each; none of them 0.
    pub fn whole(lens: [u16; N]) -> Self {
        Self { lo: [0; N], hi: lens.map(|len| len.saturating_sub(1)) }
    }

    /// A single point.
    pub fn point(at: Point<N>) -> Self {
        Self { lo: at, hi: at }
    }

    /// The point, where there is only one.
    pub fn only(&self) -> Option<Point<N>> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// How many points it holds.
    pub fn volume(&self) -> u128 {
        (0..N).map(|knob| u128::from(self.len(knob))).product()
    }

    /// All of its points, the last knob turning first.
    pub fn points(&self) -> impl Iterator<Item = Point<N>> {
        let region = *self;
        let mut next = Some(self.lo);
        std::iter::from_fn(move || {
            let point = next?;
            let turns = (0..N).rev().find(|&knob| point[knob] < region.hi[knob]);
            next = turns.map(|turns| {
                std::array::from_fn(|knob| match knob.cmp(&turns) {
                    std::cmp::Ordering::Less => point[knob],
                    std::cmp::Ordering::Equal => point[knob] + 1,
                    std::cmp::Ordering::Greater => region.lo[knob],
                })
            });
            Some(point)
        })
    }

    /// How many values of a knob it holds.
    pub fn len(&self, knob: usize) -> u16 {
        self.hi[knob] - self.lo[knob] + 1
    }

    /// Whether it holds more than one value of a knob.
    pub fn varies(&self, knob: usize) -> bool {
        self.lo[knob] < self.hi[knob]
    }

    /// Whether it holds a point.
    pub fn contains(&self, point: &Point<N>) -> bool {
        (0..N).all(|knob| (self.lo[knob]..=self.hi[knob]).contains(&point[knob]))
    }

    /// The part with values of a knob up to `last`, and the part with those above it; the former
    /// holds at least the least value, the latter the greatest.
    pub fn split(&self, knob: usize, last: u16) -> (Self, Self) {
        let (mut low, mut high) = (*self, *self);
        low.hi[knob] = last;
        high.lo[knob] = last + 1;
        (low, high)
    }

    /// The same with another greatest value of a knob.
    #[must_use]
    pub fn up_to(&self, knob: usize, last: u16) -> Self {
        let mut part = *self;
        part.hi[knob] = last;
        part
    }

    /// The same with another least value of a knob.
    #[must_use]
    pub fn from(&self, knob: usize, first: u16) -> Self {
        let mut part = *self;
        part.lo[knob] = first;
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_points_from_the_first_to_the_last() {
        let lens = [2, 1, 3];
        let points = (0..2).flat_map(|a| (0..3).map(move |c| [a, 0, c]));
        assert!(points.map(|point| place(lens, &point)).eq(0..6));
        let most = place([u16::MAX; 10], &[u16::MAX - 1; 10]);
        assert_eq!(most, u128::MAX);
    }

    #[test]
    fn the_parts_of_a_box_hold_its_points() {
        let whole = Region::whole([5, 1, 7]);
        assert_eq!((whole.volume(), whole.varies(0), whole.varies(1)), (35, true, false));
        let (low, high) = whole.split(2, 3);
        assert_eq!(low.volume() + high.volume(), whole.volume());
        for part in [whole, low, high] {
            assert_eq!(part.points().count() as u128, part.volume());
            assert!(part.points().is_sorted() && part.points().all(|at| part.contains(&at)));
        }
        assert!(low.contains(&[4, 0, 3]) && !low.contains(&[4, 0, 4]));
        assert!(high.contains(&[4, 0, 4]) && high == whole.from(2, 4) && low == whole.up_to(2, 3));
        assert_eq!(Region::point([2, 0, 1]).only(), Some([2, 0, 1]));
    }
}
