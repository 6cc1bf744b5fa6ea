//! What is known of the greatest corner of boxes: asked for several limits, each time only as far as that
//! limit needs.

use serde::Deserialize;
use serde::Serialize;

use super::ChipPoint;
use super::ChipRegion;
use super::setup::ChipSetup;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::Kin;
use crate::strategy::Corner;
use crate::strategy::Reach;
use crate::units::Time;

/// The greatest corner of boxes that are kin: a chip that has as much of every proved knob as any of them, any of
/// their arrays, and as many lanes in all as the budget leaves to any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Greatest {
    /// The greatest place of every proved knob; the arrays are those of one of the boxes.
    pub point: ChipPoint,
    /// Lanes of all vector cores together.
    pub lanes: u64,
    /// The arrays of all boxes.
    pub kin: Kin,
}

/// The places of vector cores and of their lanes among the knobs.
const CORES: usize = 3;
const LANES: usize = 4;

impl Greatest {
    /// Of a single chip.
    pub fn of_point(setup: &ChipSetup, point: &ChipPoint) -> Self {
        Self { point: *point, lanes: lanes(setup, point), kin: setup.kin(point) }
    }

    /// Whether it has no more of any proved knob than another, nor more lanes in all, nor arrays that the other
    /// does not have.
    pub fn is_within(&self, other: &Self) -> bool {
        let places = self.point.iter().zip(&other.point).zip(&CHIP_KNOBS);
        let mut proved = places.filter(|(_, knob)| knob.proved);
        self.lanes <= other.lanes
            && self.kin.are_among(&other.kin)
            && proved.all(|((mine, others), _)| mine <= others)
    }

    /// The same lanes in all, in as many cores and as wide ones as there are: it speaks for every pair of cores and
    /// lanes with that product, which are nearly alike.
    pub fn with_lanes_anyhow(&self, setup: &ChipSetup) -> Self {
        let lens = setup.grid.lens();
        let mut widest = *self;
        for knob in [CORES, LANES] {
            widest.point[knob] = lens[knob] - 1;
        }
        widest
    }

    /// How many steps of the knobs lie between it and another.
    pub fn steps_to(&self, other: &Self) -> u32 {
        let places = self.point.iter().zip(&other.point);
        places.map(|(mine, others)| u32::from(mine.abs_diff(*others))).sum()
    }

    /// Of boxes that are kin, at least one, where `fits` tells what keeps within the budget.
    pub fn of(setup: &ChipSetup, boxes: &[ChipRegion], fits: impl Fn(&ChipPoint) -> bool) -> Self {
        let each = boxes.iter().map(|region| Self::of_box(setup, region, &fits));
        let both = |one: Self, other: Self| Self {
            point: std::array::from_fn(|knob| {
                if CHIP_KNOBS[knob].proved {
                    one.point[knob].max(other.point[knob])
                } else {
                    one.point[knob]
                }
            }),
            lanes: one.lanes.max(other.lanes),
            kin: one.kin.with(other.kin).expect("boxes that are kin have arrays of one class"),
        };
        each.reduce(both).expect("there is at least one box")
    }

    /// Of a box: more cores or lanes never keep within the budget where fewer do not, nor does more of anything else.
    fn of_box(setup: &ChipSetup, region: &ChipRegion, fits: impl Fn(&ChipPoint) -> bool) -> Self {
        let mut most = 0;
        let mut point = region.lo;
        // From the fewest cores of the most lanes on: with more cores only fewer lanes fit.
        point[LANES] = region.hi[LANES];
        for cores in region.lo[CORES]..=region.hi[CORES] {
            point[CORES] = cores;
            while point[LANES] > region.lo[LANES] && !fits(&point) {
                point[LANES] -= 1;
            }
            most = most.max(lanes(setup, &point));
        }
        Self { point: region.hi, lanes: most, kin: setup.kin(&region.lo) }
    }
}

/// Lanes of all vector cores of a chip.
fn lanes(setup: &ChipSetup, point: &ChipPoint) -> u64 {
    let value = |knob: usize| setup.grid.values(knob)[usize::from(point[knob])];
    value(CORES).saturating_mul(value(LANES))
}

/// What is known of how long the greatest corner of a box takes at the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownCorner {
    /// It takes longer than this.
    slower: Option<Time>,
    /// It takes at most this long.
    reached: Option<Time>,
    /// It takes exactly this long.
    least: Option<Time>,
    /// Nothing fits.
    nothing: bool,
}

impl KnownCorner {
    /// Whether what `find` finds within a limit is what is known: of what closes boxes.
    pub fn is_found(&self, find: impl Fn(Time) -> Reach) -> bool {
        let slower = self.slower.is_none_or(|limit| !matches!(find(limit), Reach::Within(_)));
        let nothing = !self.nothing || !matches!(find(Time(u64::MAX)), Reach::Within(_));
        slower && nothing
    }

    /// Whether it may take at most `limit`; `None` where that is not known.
    pub fn within(&self, limit: Time) -> Option<Reach> {
        if self.nothing {
            return Some(Reach::Nothing);
        }
        if self.slower.is_some_and(|known| known >= limit) {
            return Some(Reach::Slower);
        }
        self.reached.filter(|&known| known <= limit).map(Reach::Within)
    }

    /// How long it takes, unless that is longer than `limit`; `None` where that is not known.
    pub fn least_within(&self, limit: Time) -> Option<Corner> {
        if self.nothing {
            return Some(Corner::Nothing);
        }
        if self.slower.is_some_and(|known| known >= limit) {
            return Some(Corner::Slower(limit));
        }
        self.least.filter(|&known| known <= limit).map(Corner::Least)
    }

    /// Takes up what was found for a limit.
    pub fn learn(&mut self, found: Reach, limit: Time) {
        match found {
            Reach::Within(time) => {
                self.reached = Some(self.reached.map_or(time, |known| known.min(time)));
            }
            Reach::Slower => self.slower = self.slower.max(Some(limit)),
            Reach::Nothing => self.nothing = true,
        }
    }

    /// Takes up what was found exactly.
    pub fn learn_least(&mut self, found: Corner) {
        match found {
            Corner::Least(time) => {
                (self.least, self.reached) = (Some(time), Some(time));
                self.slower = self.slower.max(time.0.checked_sub(1).map(Time));
            }
            Corner::Slower(limit) => self.slower = self.slower.max(Some(limit)),
            Corner::Nothing => self.nothing = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_knobs_are_those_of_the_table() {
        let name = |knob: usize| CHIP_KNOBS[knob].name;
        assert_eq!([name(CORES), name(LANES)], ["vector_cores", "vector_width"]);
    }

    #[test]
    fn what_is_known_answers_other_limits_and_no_more() {
        let mut known = KnownCorner::default();
        assert_eq!(known.within(Time(9)), None);
        known.learn(Reach::Slower, Time(5));
        known.learn(Reach::Within(Time(20)), Time(30));
        assert_eq!(known.within(Time(5)), Some(Reach::Slower));
        assert_eq!(known.within(Time(6)), None);
        assert_eq!(known.within(Time(19)), None);
        assert_eq!(known.within(Time(25)), Some(Reach::Within(Time(20))));
        assert_eq!(known.least_within(Time(25)), None);
        known.learn_least(Corner::Least(Time(11)));
        assert_eq!(known.within(Time(10)), Some(Reach::Slower));
        assert_eq!(known.within(Time(11)), Some(Reach::Within(Time(11))));
        assert_eq!(known.least_within(Time(10)), Some(Corner::Slower(Time(10))));
        assert_eq!(known.least_within(Time(12)), Some(Corner::Least(Time(11))));
    }

    #[test]
    fn where_nothing_fits_no_limit_helps() {
        let mut known = KnownCorner::default();
        known.learn(Reach::Nothing, Time(3));
        assert_eq!(known.within(Time(u64::MAX)), Some(Reach::Nothing));
        assert_eq!(known.least_within(Time(1)), Some(Corner::Nothing));
    }
}
