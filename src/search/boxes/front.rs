//! The front of a grid: what no point beats in how long it needs and in two things that it takes, with the
//! boxes that prove it.
//!
//! In: a [`FrontProblem`]. Figures are rounded up to steps of a [`Resolution`] before they are compared, so that
//! a front has as many points as one can look at. Out: a [`FrontWalk`]. The rounded figures of its points are
//! exactly those that no point of the grid beats; which of several points of the same figures is told is
//! not claimed.
//!
//! What a front leaves free falls into *gaps*: within each, no point may take less than so much of both things
//! and need less than so long. That a gap is empty is what the walk of the best point proves under a tighter
//! budget, or else it finds a point of the front.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::problem::BoxProblem;
use super::problem::Corner;
use super::problem::Evaluation;
use super::problem::Value;
use super::region::Point;
use super::region::Region;
use super::resolution::Resolution;
use super::walk::BoxWalk;
use super::walk::Kept;
use super::walk::walk;
use crate::search::walk::Observer;

/// What a point takes of two things and how long it needs, each rounded up; less is better of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Figures {
    /// How long it needs.
    pub time: u64,
    /// What it takes.
    pub takes: [u64; 2],
}

impl Figures {
    /// Whether these are no worse than others in anything.
    pub fn reaches(&self, other: &Self) -> bool {
        self.time <= other.time && (0..2).all(|thing| self.takes[thing] <= other.takes[thing])
    }

    /// Whether these are better than others in everything.
    fn is_inside(&self, gap: &Self) -> bool {
        self.time < gap.time && (0..2).all(|thing| self.takes[thing] < gap.takes[thing])
    }
}

/// A grid of points whose values are times first, and which take something.
///
/// Besides the laws of a [`BoxProblem`]: what a point takes never falls when a knob rises.
pub trait FrontProblem<const N: usize>: BoxProblem<N> {
    /// What a point takes of two things; `None` where there is no such point.
    fn takes(&self, point: &Point<N>) -> Option<[u64; 2]>;

    /// What the greatest corner says of those points of boxes that `fits` allows.
    fn corner_where(
        &self,
        boxes: &[Region<N>],
        limit: Option<Value>,
        fits: &dyn Fn(&Point<N>) -> bool,
    ) -> Corner;

    /// How near the greatest corner comes to closing boxes, where `fits` tells what is allowed.
    fn guess_where(
        &self,
        boxes: &[Region<N>],
        known: (&Kept<N, Self::Found>, Value),
        fits: &dyn Fn(&Point<N>) -> bool,
    ) -> f64;
}

/// The points that take no more than so much.
pub struct Within<'a, P> {
    /// All of them.
    pub problem: &'a P,
    /// What they may take.
    pub most: [u64; 2],
}

impl<const N: usize, P: FrontProblem<N>> BoxProblem<N> for Within<'_, P> {
    type Found = P::Found;

    fn lens(&self) -> [u16; N] {
        self.problem.lens()
    }
    fn proved(&self) -> [bool; N] {
        self.problem.proved()
    }
    fn blind(&self) -> [bool; N] {
        self.problem.blind()
    }
    fn rises(&self) -> bool {
        self.problem.rises()
    }
    fn fits(&self, point: &Point<N>) -> bool {
        let within = |takes: [u64; 2]| (0..2).all(|thing| takes[thing] <= self.most[thing]);
        self.problem.takes(point).is_some_and(within) && self.problem.fits(point)
    }
    fn bound(&self, region: &Region<N>) -> Option<Value> {
        self.problem.bound(region)
    }
    fn kin(&self, point: &Point<N>) -> Option<u64> {
        self.problem.kin(point)
    }
    fn corner(&self, boxes: &[Region<N>], limit: Option<Value>) -> Corner {
        self.problem.corner_where(boxes, limit, &|point| self.fits(point))
    }
    fn guess(&self, boxes: &[Region<N>], like: &Kept<N, P::Found>, worst: Value) -> f64 {
        self.problem.guess_where(boxes, (like, worst), &|point| self.fits(point))
    }
    fn evaluate(&self, point: &Point<N>, limit: Option<Value>) -> Evaluation<P::Found> {
        self.problem.evaluate(point, limit)
    }
    fn settle(&self) {
        self.problem.settle();
    }
}

/// A point of a front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontPoint<const N: usize, F> {
    /// Where it is.
    pub point: Point<N>,
    /// Its figures, rounded.
    pub figures: Figures,
    /// How long it needs, not rounded.
    pub time: u64,
    /// What its evaluation yielded besides.
    pub found: F,
}

/// That no point which takes at most so much needs less than so long.
#[derive(Clone, Debug)]
pub struct EmptyGap<const N: usize, F> {
    /// What points may take, not rounded.
    pub most: [u64; 2],
    /// None of them needs less than this; the greatest number where nothing can be done with any.
    pub time: u64,
    /// The boxes that prove it.
    pub walk: BoxWalk<N, F>,
}

/// Where a walk ended.
#[derive(Clone, Debug)]
pub struct FrontWalk<const N: usize, F> {
    /// The front, the fastest first.
    pub points: Vec<FrontPoint<N, F>>,
    /// What proves that there is nothing else.
    pub gaps: Vec<EmptyGap<N, F>>,
    /// Whether the walk was not stopped early.
    pub complete: bool,
}

/// What a front leaves free: whatever no point of it reaches is inside one of these, and what is inside of one is
/// reached by no point.
pub fn gaps(front: impl IntoIterator<Item = Figures>) -> Vec<Figures> {
    let mut gaps = vec![Figures { time: u64::MAX, takes: [u64::MAX; 2] }];
    for point in front {
        let (cut, mut left): (Vec<_>, Vec<_>) = gaps.iter().partition(|gap| point.is_inside(gap));
        let mut parts: Vec<Figures> = Vec::with_capacity(3 * cut.len());
        for gap in cut {
            parts.push(Figures { time: point.time, ..gap });
            parts.push(Figures { takes: [point.takes[0], gap.takes[1]], ..gap });
            parts.push(Figures { takes: [gap.takes[0], point.takes[1]], ..gap });
        }
        parts.sort_unstable();
        parts.dedup();
        let inner =
            |part: &Figures| left.iter().chain(&parts).any(|gap| gap != part && part.reaches(gap));
        let outer: Vec<Figures> = parts.iter().filter(|part| !inner(part)).copied().collect();
        left.extend(outer);
        gaps = left;
    }
    gaps.sort_unstable();
    gaps
}

/// What is known so far: no point is reached by another.
struct Front<'a, const N: usize, P: FrontProblem<N>> {
    problem: &'a P,
    resolution: &'a Resolution,
    /// The fastest first.
    points: Vec<FrontPoint<N, P::Found>>,
}

/// A time as a value that only less time beats.
fn value(time: u64) -> Value {
    Value { first: u128::from(time), second: 0, place: 0 }
}

impl<const N: usize, P: FrontProblem<N>> Front<'_, N, P> {
    fn rounded_takes(&self, point: &Point<N>) -> Option<[u64; 2]> {
        Some(self.problem.takes(point)?.map(|figure| self.resolution.up(figure)))
    }

    /// The fastest known point that takes no more.
    fn fastest(&self, takes: [u64; 2]) -> Option<&FrontPoint<N, P::Found>> {
        let no_more = |known: &Figures| (0..2).all(|thing| known.takes[thing] <= takes[thing]);
        self.points.iter().find(|known| no_more(&known.figures))
    }

    /// What a point must be better than, so that no known one reaches it.
    fn must_beat(&self, point: &Point<N>) -> Option<Value> {
        let known = self.fastest(self.rounded_takes(point)?);
        Some(value(known.map_or(u64::MAX, |known| self.resolution.first_of(known.figures.time))))
    }

    fn learn(&mut self, Kept { point, value, found }: Kept<N, P::Found>) {
        let Some(takes) = self.rounded_takes(&point) else { return };
        let time = u64::try_from(value.first).unwrap_or(u64::MAX);
        let figures = Figures { time: self.resolution.up(time), takes };
        if self.points.iter().any(|known| known.figures.reaches(&figures)) {
            return;
        }
        self.points.retain(|known| !figures.reaches(&known.figures));
        let place = self.points.partition_point(|known| known.figures < figures);
        self.points.insert(place, FrontPoint { point, figures, time, found });
    }

    /// Looks at the neighbours of all known points, and at those of every point that is learned, until none
    /// of them belongs to the front: what is known then leaves little to be found.
    fn look_around(&mut self, observer: &dyn Observer, what: &str) {
        let whole = Region::whole(self.problem.lens());
        let (mut seen, mut tried) = (BTreeSet::new(), BTreeSet::new());
        while !observer.stops() {
            let fresh = self.points.iter().map(|known| known.point);
            let fresh: Vec<Point<N>> = fresh.filter(|at| seen.insert(*at)).take(BATCH).collect();
            if fresh.is_empty() {
                break;
            }
            let near: BTreeSet<Point<N>> =
                fresh.iter().flat_map(|at| neighbours(at, &whole)).collect();
            let near: Vec<Point<N>> = near.into_iter().filter(|at| tried.insert(*at)).collect();
            for batch in near.chunks(4 * BATCH) {
                let met: Vec<_> = batch.par_iter().map(|at| self.look_at(at, observer)).collect();
                for met in met.into_iter().flatten() {
                    self.learn(met);
                }
            }
            observer.evaluated(what, 0);
        }
    }

    /// A point, where no known one reaches it.
    fn look_at(&self, point: &Point<N>, observer: &dyn Observer) -> Option<Kept<N, P::Found>> {
        if observer.stops() || !self.problem.fits(point) {
            return None;
        }
        let must_beat = self.must_beat(point)?;
        self.problem.bound(&Region::point(*point)).filter(|least| *least < must_beat)?;
        match self.problem.evaluate(point, Some(must_beat)) {
            Evaluation::Found(value, found) => Some(Kept { point: *point, value, found }),
            Evaluation::Beyond | Evaluation::Nothing => None,
        }
    }
}

/// Points whose neighbours are looked at between two looks at what is known.
const BATCH: usize = 16;

/// A step up, a step down, or one of each.
fn neighbours<const N: usize>(point: &Point<N>, whole: &Region<N>) -> Vec<Point<N>> {
    // The place after the last knob stands for no step.
    let steps = (0..=N).flat_map(|up| (0..=N).map(move |down| (up, down)));
    let moved = steps.filter(|(up, down)| up != down).filter_map(|(up, down)| {
        let mut next = *point;
        if up < N {
            next[up] += 1;
        }
        if down < N {
            next[down] = next[down].checked_sub(1)?;
        }
        whole.contains(&next).then_some(next)
    });
    moved.collect()
}

impl Resolution {
    /// Whether no figures are inside a gap, whatever they are.
    pub fn holds_nothing(&self, gap: &Figures) -> bool {
        [gap.time, gap.takes[0], gap.takes[1]].into_iter().any(|end| self.first_of(end) == 0)
    }
}

impl<const N: usize, F> EmptyGap<N, F> {
    /// Whether it tells that a gap of a front is empty.
    fn covers(&self, gap: &Figures, resolution: &Resolution) -> bool {
        let most = gap.takes.map(|takes| resolution.most_inside(takes));
        (0..2).all(|thing| most[thing] <= self.most[thing])
            && self.time >= resolution.first_of(gap.time)
    }
}

/// Finds the front of a grid and proves it; `known` are points that were evaluated before, whose values are times.
pub fn front<const N: usize, P: FrontProblem<N>>(
    problem: &P,
    resolution: &Resolution,
    known: Vec<Kept<N, P::Found>>,
    (what, observer): (&str, &dyn Observer),
) -> FrontWalk<N, P::Found> {
    observer.begins(what);
    let mut front = Front { problem, resolution, points: Vec::new() };
    for kept in known {
        front.learn(kept);
    }
    front.look_around(observer, what);
    let whole = Region::whole(problem.lens());
    let mut proved: Vec<EmptyGap<N, P::Found>> = Vec::new();
    // Invariant: no point of the grid is inside a gap that was proved to be empty.
    let complete = loop {
        let left = gaps(front.points.iter().map(|point| point.figures));
        let is_open = |gap: &&Figures| {
            !resolution.holds_nothing(gap)
                && !proved.iter().any(|known| known.covers(gap, resolution))
        };
        let Some(gap) = left.iter().rfind(is_open) else { break true };
        let n_left = left.iter().filter(is_open).count();
        let most = gap.takes.map(|takes| resolution.most_inside(takes));
        let within = Within { problem, most };
        let limit = value(resolution.first_of(gap.time));
        let is_like = |known: &&FrontPoint<N, P::Found>| {
            known.figures.time == gap.time && within.fits(&known.point)
        };
        let like = front.points.iter().find(is_like).map(|known| Kept {
            point: known.point,
            value: limit,
            found: known.found.clone(),
        });
        let part = format!("{what}, {n_left} gaps left");
        let walked = walk(&within, whole, (1, like.into_iter().collect()), &part, observer);
        if !walked.complete() {
            break false;
        }
        let best = walked.kept.first().cloned();
        let time = best
            .as_ref()
            .map_or(u64::MAX, |best| u64::try_from(best.value.first).unwrap_or(u64::MAX));
        if let Some(best) = best.filter(|best| best.value != limit) {
            front.learn(best);
        }
        proved.push(EmptyGap { most, time, walk: walked });
    };
    // What was proved before a faster point was found may have become needless.
    let left = gaps(front.points.iter().map(|point| point.figures));
    proved.retain(|known| left.iter().any(|gap| known.covers(gap, resolution)));
    FrontWalk { points: front.points, gaps: proved, complete }
}
