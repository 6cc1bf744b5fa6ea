//! Boxes against looking at every point, on random small grids of a model with the shape of the real
//! one: a roofline, exact times above it that are smooth nowhere, areas, watts, pads, ties.

#![cfg(test)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

/// Knobs: cores and width (no law), bandwidth and clock (proved), a buffer that bounds do not see
/// (proved).
pub(super) const N: usize = 5;

#[derive(Clone, Debug)]
pub(super) struct Grid {
    values: [Vec<u64>; N],
    area: u128,
    watts: u128,
    /// Beyond this product of the last two knobs no die has the edge.
    pads: u64,
    seed: u64,
    /// Below this bandwidth nothing fits in memory.
    least_bandwidth: u64,
    objective: Kind,
    /// Whether boxes that are alike are looked at together.
    brings_together: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Time; ties by area.
    Time,
    /// Time x cost.
    Cost,
    /// Area, in coarse steps, of what takes at most so long.
    AreaWithin(u128),
    /// Time, with a few values only, as areas have, so that many are equal.
    Coarse,
}

impl Grid {
    pub(super) fn knobs(&self, point: &Point<N>) -> [u64; N] {
        std::array::from_fn(|knob| self.values[knob][usize::from(point[knob])])
    }

    /// A lower bound on the time, never rising along any knob.
    fn roofline([cores, width, bandwidth, clock, _]: [u64; N]) -> u128 {
        let compute = 40_000_000 / (cores * width * clock);
        let memory = 3_000_000 / bandwidth;
        u128::from(compute.max(memory) + memory / 3)
    }

    /// The time: up to 30 % more, jumping with cores and width, never rising along the proved knobs.
    fn time(&self, knobs: [u64; N]) -> u128 {
        let [cores, width, bandwidth, clock, buffer] = knobs;
        let mixed = (cores * 31 + width * 17 + self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let jump = u128::from(mixed >> 60);
        let small = u128::from(16 / (buffer * bandwidth.min(4) * clock.min(2)).clamp(1, 16));
        let time = Self::roofline(knobs) * (1000 + 10 * jump + 9 * small) / 1000;
        if self.objective == Kind::Coarse { time / 2000 * 2000 + 2000 } else { time }
    }

    fn area([cores, width, bandwidth, clock, buffer]: [u64; N]) -> u128 {
        let parts = cores * width * 3 + bandwidth * 5 + buffer * 7 + clock;
        u128::from(parts.max(bandwidth * buffer / 2))
    }

    pub(super) fn cost(knobs: [u64; N]) -> u128 {
        40 + Self::area(knobs) * 2 + u128::from(knobs[2])
    }

    fn value(&self, time: u128, least: &Point<N>) -> Value {
        self.value_of(
            time,
            self.place(least),
            [Self::area, Self::cost].map(|of| of(self.knobs(least))),
        )
    }

    fn value_of(&self, time: u128, place: u128, [area, cost]: [u128; 2]) -> Value {
        match self.objective {
            Kind::Time => Value { first: time, second: area, place },
            Kind::Coarse => Value { first: time, second: area / 40, place },
            Kind::Cost => Value { first: time * cost, second: area, place },
            Kind::AreaWithin(_) => Value { first: area / 25, second: time, place },
        }
    }

    /// What boxes are worth together: the least of times with the most of every proved knob, and of what each takes.
    fn value_together(
        &self,
        boxes: &[Region<N>],
        time: impl Fn([u64; N]) -> u128,
    ) -> (u128, u64, Value) {
        let most = |knob: usize| boxes.iter().map(|one| self.knobs(&one.hi)[knob]).max().unwrap();
        let times = boxes.iter().map(|one| {
            let [cores, width, ..] = self.knobs(&one.hi);
            time([cores, width, most(2), most(3), most(4)])
        });
        let time = times.min().unwrap();
        let least = |of: fn([u64; N]) -> u128| {
            boxes.iter().map(|one| of(self.knobs(&one.lo))).min().unwrap()
        };
        let place = boxes.iter().map(|one| self.place(&one.lo)).min().unwrap();
        (time, most(2), self.value_of(time, place, [Self::area, Self::cost].map(least)))
    }

    fn is_too_slow(&self, time: u128) -> bool {
        matches!(self.objective, Kind::AreaWithin(limit) if time > limit)
    }

    /// What a point draws.
    pub(super) fn drawn([cores, width, bandwidth, clock, _]: [u64; N]) -> u64 {
        cores * width * clock * clock + bandwidth
    }

    /// All points that will do, the best first.
    pub(super) fn exhaustive(&self) -> Vec<(Value, Point<N>)> {
        let whole = Region::whole(self.lens());
        let mut points = vec![[0; N]];
        for knob in 0..N {
            let extended = points.iter().flat_map(|point| {
                (0..=whole.hi[knob]).map(move |place| {
                    let mut next = *point;
                    next[knob] = place;
                    next
                })
            });
            points = extended.collect();
        }
        let mut values: Vec<(Value, Point<N>)> = points
            .iter()
            .filter(|point| self.fits(point))
            .filter_map(|point| match self.evaluate(point, None) {
                Evaluation::Found(value, ()) => Some((value, *point)),
                _ => None,
            })
            .collect();
        values.sort_unstable();
        values
    }
}

impl BoxProblem<N> for Grid {
    type Found = ();

    fn lens(&self) -> [u16; N] {
        std::array::from_fn(|knob| u16::try_from(self.values[knob].len()).unwrap())
    }
    fn proved(&self) -> [bool; N] {
        [false, false, true, true, true]
    }
    fn blind(&self) -> [bool; N] {
        [false, false, false, false, true]
    }
    fn rises(&self) -> bool {
        !matches!(self.objective, Kind::Time | Kind::Coarse)
    }
    fn kin(&self, point: &Point<N>) -> Option<u64> {
        let [cores, width, ..] = self.knobs(point);
        self.brings_together.then_some(cores * width / 16)
    }
    fn guess(&self, boxes: &[Region<N>], like: &Kept<N, ()>, worst: Value) -> f64 {
        // Off by up to a quarter in both directions: a guess decides no answer.
        let time = |most: [u64; N]| {
            let off = 750 + (most.iter().sum::<u64>() * 131 + u64::from(like.point[0])) % 500;
            Self::roofline(most) * u128::from(off) / 1000
        };
        let (.., value) = self.value_together(boxes, time);
        match self.objective {
            Kind::AreaWithin(limit) => value.second as f64 / limit as f64,
            _ => value.first as f64 / worst.first as f64,
        }
    }
    fn fits(&self, point: &Point<N>) -> bool {
        let knobs = self.knobs(point);
        let [_, _, bandwidth, _, buffer] = knobs;
        Self::area(knobs) <= self.area
            && u128::from(Self::drawn(knobs)) <= self.watts
            && bandwidth * buffer <= self.pads
    }
    fn bound(&self, region: &Region<N>) -> Option<Value> {
        let most = self.knobs(&region.hi);
        let time = Self::roofline(most);
        (most[2] >= self.least_bandwidth && !self.is_too_slow(time))
            .then(|| self.value(time, &region.lo))
    }
    fn corner(&self, boxes: &[Region<N>], limit: Option<Value>) -> Corner {
        let kin: BTreeSet<Option<u64>> = boxes.iter().map(|one| self.kin(&one.lo)).collect();
        assert!(boxes.len() == 1 || (kin.len() == 1 && !kin.contains(&None)));
        assert!(boxes.iter().all(|one| !one.varies(0) && !one.varies(1)));
        let (time, bandwidth, value) = self.value_together(boxes, |most| self.time(most));
        if bandwidth < self.least_bandwidth || self.is_too_slow(time) {
            return Corner::Nothing;
        }
        if limit.is_some_and(|limit| value >= limit) {
            Corner::Beyond
        } else {
            Corner::Reached(value)
        }
    }
    fn evaluate(&self, point: &Point<N>, limit: Option<Value>) -> Evaluation<()> {
        let knobs = self.knobs(point);
        let time = self.time(knobs);
        if knobs[2] < self.least_bandwidth || self.is_too_slow(time) {
            return Evaluation::Nothing;
        }
        let value = self.value(time, point);
        if limit.is_some_and(|limit| value >= limit) {
            return Evaluation::Beyond;
        }
        Evaluation::Found(value, ())
    }
}

/// What parts told each other, and whether they listen.
struct Wall(Mutex<Vec<Kept<N, ()>>>, bool);

impl BoxPeers<N, ()> for Wall {
    fn heard(&self) -> Vec<Kept<N, ()>> {
        if self.1 { self.0.lock().unwrap().clone() } else { Vec::new() }
    }
    fn tell(&self, kept: &dyn Fn() -> Vec<Kept<N, ()>>) {
        self.0.lock().unwrap().extend(kept());
    }
}

/// Grids whose values are times.
pub(super) fn grids_of_times() -> impl Strategy<Value = Grid> {
    let kinds = prop_oneof![Just(Kind::Time), Just(Kind::Coarse)];
    (grids(), kinds).prop_map(|(grid, objective)| Grid { objective, ..grid })
}

fn grids() -> impl Strategy<Value = Grid> {
    let values = || {
        proptest::collection::btree_set(1..16_u64, 1..6)
            .prop_map(|set| set.into_iter().collect::<Vec<u64>>())
    };
    let kinds = prop_oneof![
        Just(Kind::Time),
        Just(Kind::Cost),
        Just(Kind::Coarse),
        (100_000..2_000_000_u128).prop_map(Kind::AreaWithin),
    ];
    let lists = [values(), values(), values(), values(), values()];
    let others = (0..12_u64, kinds, any::<bool>());
    (lists, 20..900_u128, 20..9000_u128, 1..240_u64, any::<u64>(), others).prop_map(
        |(values, area, watts, pads, seed, (least_bandwidth, objective, brings_together))| Grid {
            values,
            area,
            watts,
            pads,
            seed,
            least_bandwidth,
            objective,
            brings_together,
        },
    )
}

/// Whether closed boxes tile a grid: none twice, none left out.
pub(super) fn tile(grid: &Grid, closed: &[Closed<N>]) -> bool {
    let total: u128 = closed.iter().map(|closed| closed.region.volume()).sum();
    let overlap = |a: &Region<N>, b: &Region<N>| {
        (0..N).all(|knob| a.lo[knob] <= b.hi[knob] && b.lo[knob] <= a.hi[knob])
    };
    let apart = closed
        .iter()
        .enumerate()
        .all(|(at, a)| closed[..at].iter().all(|b| !overlap(&a.region, &b.region)));
    apart && total == Region::whole(grid.lens()).volume()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn boxes_find_what_looking_at_every_point_finds(grid in grids(), top in 1..4_usize) {
        let walked = walk(&grid, Region::whole(grid.lens()), (top, Vec::new()), "grid", &());
        let found: Vec<(Value, Point<N>)> =
            walked.kept.iter().map(|kept| (kept.value, kept.point)).collect();
        let all = grid.exhaustive();
        prop_assert_eq!(&found, &all[..all.len().min(top)]);
        prop_assert!(walked.complete());
        prop_assert!(tile(&grid, &walked.closed));
        for kept in &walked.kept {
            prop_assert!(grid.fits(&kept.point));
        }
    }

    #[test]
    fn parts_of_a_grid_can_be_searched_apart(grid in grids(), knob in 0..N) {
        let whole = Region::whole(grid.lens());
        prop_assume!(whole.varies(knob));
        let (low, high) = whole.split(knob, whole.hi[knob] / 2);
        let walk = |region| walk(&grid, region, (1, Vec::new()), "part", &());
        let (low, high, all) = (walk(low), walk(high), walk(whole));
        let best = low.kept.iter().chain(&high.kept).min_by_key(|kept| kept.value);
        prop_assert_eq!(best, all.kept.first());
        let joined: Vec<_> = low.closed.into_iter().chain(high.closed).collect();
        prop_assert!(tile(&grid, &joined));
    }

    #[test]
    fn parts_that_hear_of_each_other_keep_what_the_whole_keeps(
        (grid, knob, dealt) in (grids(), 0..N, any::<u64>()),
        (top, hears) in (1..4_usize, any::<bool>()),
    ) {
        let whole = Region::whole(grid.lens());
        // Every value of a knob is a box, dealt to one of three parts.
        let boxes = (0..=whole.hi[knob]).map(|at| whole.from(knob, at).up_to(knob, at));
        let boxes: Vec<Region<N>> = boxes.collect();
        let all = walk(&grid, whole, (top, Vec::new()), "whole", &());
        let told = Wall(Mutex::default(), hears);
        let (mut kept, mut closed) = (BTreeMap::new(), Vec::new());
        for part in 0..3 {
            let own = (0..).zip(&boxes).filter(|(at, _)| (dealt >> (2 * at)) % 4 % 3 == part);
            let own: Vec<Region<N>> = own.map(|(_, region)| *region).collect();
            let walked =
                walk_apart(&grid, (&own, whole), (top, Vec::new()), &told, "part", &());
            kept.extend(walked.kept.into_iter().map(|kept| (kept.value, kept)));
            closed.extend(walked.closed);
        }
        let best: Vec<_> = kept.into_values().take(top).collect();
        prop_assert_eq!(&best, &all.kept);
        prop_assert!(tile(&grid, &closed));
        // Whatever a part heard of, no box rests on more than what all of them keep.
        let worst = best.get(top - 1).map(|kept| kept.value);
        for Closed { region, why } in &closed {
            let (_, value) = why.word();
            let is_kept = best.iter().any(|kept| region.contains(&kept.point));
            let proved = value.is_none_or(|value| worst.is_some_and(|worst| value >= worst));
            prop_assert!(proved || (is_kept && matches!(why, Why::Evaluated(_))), "{:?}", why);
        }
    }
}
