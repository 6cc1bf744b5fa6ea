//! Fronts against looking at every point, on the random small grids of `synthetic.rs`.

#![cfg(test)]

use proptest::prelude::*;

use super::synthetic::Grid;
use super::synthetic::N;
use super::synthetic::grids_of_times;
use super::synthetic::tile;
use super::*;

impl FrontProblem<N> for Grid {
    fn takes(&self, point: &Point<N>) -> Option<[u64; 2]> {
        let knobs = self.knobs(point);
        Some([u64::try_from(Self::cost(knobs)).ok()?, Self::drawn(knobs)])
    }
    fn corner_where(
        &self,
        boxes: &[Region<N>],
        limit: Option<Value>,
        _: &dyn Fn(&Point<N>) -> bool,
    ) -> Corner {
        self.corner(boxes, limit)
    }
    fn guess_where(
        &self,
        boxes: &[Region<N>],
        (like, worst): (&Kept<N, ()>, Value),
        _: &dyn Fn(&Point<N>) -> bool,
    ) -> f64 {
        self.guess(boxes, like, worst)
    }
}

/// The time of a point, not rounded.
fn time(grid: &Grid, point: &Point<N>) -> Option<u64> {
    match grid.evaluate(point, None) {
        Evaluation::Found(value, ()) => u64::try_from(value.first).ok(),
        Evaluation::Beyond | Evaluation::Nothing => None,
    }
}

fn figures(grid: &Grid, steps: &Resolution, point: &Point<N>) -> Option<Figures> {
    let takes = grid.takes(point)?.map(|figure| steps.up(figure));
    Some(Figures { time: steps.up(time(grid, point)?), takes })
}

/// All points that will do.
fn points(grid: &Grid) -> Vec<Point<N>> {
    grid.exhaustive().into_iter().map(|(_, point)| point).collect()
}

/// The figures that no point beats, the fastest first.
fn exhaustive(grid: &Grid, steps: &Resolution) -> Vec<Figures> {
    let points = points(grid);
    let mut all: Vec<Figures> = points.iter().filter_map(|at| figures(grid, steps, at)).collect();
    all.sort_unstable();
    all.dedup();
    let beaten = |one: &Figures| all.iter().any(|other| other != one && other.reaches(one));
    all.iter().filter(|one| !beaten(one)).copied().collect()
}

/// Points that were met before: some of the grid, good or bad.
fn known(grid: &Grid, every: usize) -> Vec<Kept<N, ()>> {
    let points = points(grid);
    let each = points.iter().step_by(every + 1).take(every % 5);
    each.filter_map(|at| match grid.evaluate(at, None) {
        Evaluation::Found(value, found) => Some(Kept { point: *at, value, found }),
        Evaluation::Beyond | Evaluation::Nothing => None,
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_front_is_what_looking_at_every_point_finds(
        grid in grids_of_times(),
        part in prop_oneof![1 => Just(0_u64), 1 => 1..20_u64, 2 => 20..400_u64],
        every in 0..40_usize,
    ) {
        let steps = Resolution::per_mille(part);
        let walked = front(&grid, &steps, known(&grid, every), ("grid", &()));
        let found: Vec<Figures> = walked.points.iter().map(|point| point.figures).collect();
        prop_assert!(walked.complete);
        prop_assert_eq!(&found, &exhaustive(&grid, &steps));
        for point in &walked.points {
            prop_assert!(grid.fits(&point.point));
            prop_assert_eq!(figures(&grid, &steps, &point.point), Some(point.figures));
        }
        // What is told of gaps is true, and all gaps are told of.
        let points = points(&grid);
        for gap in &walked.gaps {
            prop_assert!(tile(&grid, &gap.walk.closed));
            let within = points.iter().filter(|at| {
                grid.takes(at).is_some_and(|takes| (0..2).all(|thing| takes[thing] <= gap.most[thing]))
            });
            let fastest = within.filter_map(|at| time(&grid, at)).min();
            prop_assert!(fastest.is_none_or(|fastest| fastest >= gap.time));
        }
        for gap in gaps(found) {
            let most = gap.takes.map(|takes| steps.most_inside(takes));
            let covered = walked.gaps.iter().any(|known| {
                (0..2).all(|thing| known.most[thing] >= most[thing])
                    && known.time >= steps.first_of(gap.time)
            });
            prop_assert!(covered, "{:?}", gap);
        }
    }

    #[test]
    fn whatever_no_point_reaches_is_inside_a_gap(
        points in proptest::collection::vec([0..6_u64, 0..6, 0..6], 0..12),
        other in [0..7_u64, 0..7, 0..7],
    ) {
        let figures = |[time, one, two]: [u64; 3]| Figures { time, takes: [one, two] };
        let points: Vec<Figures> = points.into_iter().map(figures).collect();
        let left = gaps(points.iter().copied());
        let other = figures(other);
        let is_inside = |gap: &Figures| {
            other.time < gap.time && (0..2).all(|thing| other.takes[thing] < gap.takes[thing])
        };
        let reached = points.iter().any(|point| point.reaches(&other));
        prop_assert_eq!(left.iter().any(is_inside), !reached);
    }
}
