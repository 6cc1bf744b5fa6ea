//! Takes boxes from the most promising on, until what is kept is proved to be the best.

use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::climb::Met;
use super::climb::climb;
use super::peel::Peeled;
use super::peel::peel;
use super::problem::BoxProblem;
use super::problem::Closed;
use super::problem::Corner;
use super::problem::Evaluation;
use super::problem::Value;
use super::problem::Why;
use super::region::Point;
use super::region::Region;
use super::shrink::Shrunk;
use super::shrink::shrink;
use super::split::plane;
use crate::search::walk::Observer;

/// Boxes that are looked at between two looks at what is known. Part of the answer's definition: a
/// larger batch closes some boxes later.
const BATCH: usize = 16;

/// A point that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept<const N: usize, F> {
    /// Where it is.
    pub point: Point<N>,
    /// What it is worth.
    pub value: Value,
    /// What its evaluation yielded besides.
    pub found: F,
}

/// Where a walk ended.
#[derive(Clone, Debug)]
pub struct BoxWalk<const N: usize, F> {
    /// The best points, the best first.
    pub kept: Vec<Kept<N, F>>,
    /// Boxes that tile the one that was walked, but for those that are open, in the order of their
    /// corners.
    pub closed: Vec<Closed<N>>,
    /// Boxes that were not looked at, each with what none of its points can beat, where the walk was
    /// stopped early.
    pub open: Vec<(Region<N>, Option<Value>)>,
}

impl<const N: usize, F> BoxWalk<N, F> {
    /// Whether the walk was not stopped early.
    pub fn complete(&self) -> bool {
        self.open.is_empty()
    }
}

/// A box that may hold a better point; the most promising is the greatest.
#[derive(Clone, Copy, Debug)]
struct Open<const N: usize> {
    least: Option<Value>,
    /// Tells boxes apart that promise the same.
    number: u64,
    region: Region<N>,
}

impl<const N: usize> PartialEq for Open<N> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == std::cmp::Ordering::Equal
    }
}

impl<const N: usize> Eq for Open<N> {}

impl<const N: usize> Ord for Open<N> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.least, other.number).cmp(&(self.least, self.number))
    }
}

impl<const N: usize> PartialOrd for Open<N> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Others who walk other boxes of the same grid at the same time.
pub trait BoxPeers<const N: usize, F>: Sync {
    /// Points that the others keep by now.
    fn heard(&self) -> Vec<Kept<N, F>>;
    /// Tells the others what is kept by now.
    fn tell(&self, kept: &dyn Fn() -> Vec<Kept<N, F>>);
}

/// Nobody else walks.
impl<const N: usize, F> BoxPeers<N, F> for () {
    fn heard(&self) -> Vec<Kept<N, F>> {
        Vec::new()
    }
    fn tell(&self, _: &dyn Fn() -> Vec<Kept<N, F>>) {}
}

/// Finds the best `top` points of a box, and proves that no others are better; `known` are points
/// that were evaluated before.
pub fn walk<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    region: Region<N>,
    (top, mut known): (usize, Vec<Kept<N, P::Found>>),
    what: &str,
    observer: &dyn Observer,
) -> BoxWalk<N, P::Found> {
    known.retain(|kept| region.contains(&kept.point));
    walk_apart(problem, (&[region], region), (top, known), &(), what, observer)
}

/// The same of some boxes of a grid, where others walk the rest of it. What is kept may lie outside of these boxes:
/// it is the best of all that is known, also of what was heard, and of what was met on the way to it anywhere in
/// `around`. No point of the boxes is better that is not kept itself.
pub fn walk_apart<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    (boxes, around): (&[Region<N>], Region<N>),
    (top, known): (usize, Vec<Kept<N, P::Found>>),
    peers: &dyn BoxPeers<N, P::Found>,
    what: &str,
    observer: &dyn Observer,
) -> BoxWalk<N, P::Found> {
    observer.begins(what);
    let mut best = Best { top: top.max(1), kept: BTreeMap::new() };
    let heard = peers.heard();
    // Whoever told has climbed.
    let climbs = heard.is_empty() && !boxes.is_empty();
    for Kept { point, value, found } in known.into_iter().chain(heard) {
        best.learn(Met { point, value, found });
    }
    let stops = || observer.stops();
    if climbs {
        let first = best.kept.first_key_value().map(|(value, (point, _))| (*point, *value));
        for met in climb(problem, around, first, &stops) {
            best.learn(met);
        }
    }
    let mut closed = Vec::new();
    let numbered = (0..).zip(boxes);
    let mut heap: BinaryHeap<Open<N>> =
        numbered.map(|(number, &region)| Open { least: None, number, region }).collect();
    let mut number = boxes.len().saturating_sub(1) as u64;
    // Invariant: closed boxes and those of the heap tile the boxes; no point of a closed box that
    // was not met is better than the worst that is kept.
    while !heap.is_empty() && !observer.stops() {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let Some(open) = heap.pop() else { break };
            batch.push(open);
        }
        let known = best.known();
        let steps: Vec<Option<Step<N, P::Found>>> = batch
            .par_iter()
            .map(|open| (!observer.stops()).then(|| step(problem, open, &known)))
            .collect();
        problem.settle();
        for (open, done) in batch.into_iter().zip(steps) {
            let Some(done) = done else {
                heap.push(open);
                continue;
            };
            closed.extend(done.closed);
            for met in done.met {
                best.learn(met);
            }
            for region in done.rest {
                number += 1;
                let least = Some(done.least.unwrap_or(Value { first: 0, second: 0, place: 0 }));
                heap.push(Open { least, number, region });
            }
        }
        peers.tell(&|| best.all());
        for Kept { point, value, found } in peers.heard() {
            best.learn(Met { point, value, found });
        }
        observer.evaluated(what, heap.len());
    }
    let kept = best.all();
    closed.sort_unstable_by_key(|closed| closed.region);
    let mut open: Vec<_> = heap.into_iter().map(|open| (open.region, open.least)).collect();
    open.sort_unstable();
    BoxWalk { kept, closed, open }
}

/// What looking at a box has shown.
struct Step<const N: usize, F> {
    closed: Vec<Closed<N>>,
    met: Vec<Met<N, F>>,
    /// What is to be looked at later, and what none of its points can beat.
    rest: Vec<Region<N>>,
    least: Option<Value>,
}

/// A corner is evaluated where a guess comes so near to closing its box.
pub(super) const EXPECTED: f64 = 0.999;

/// One box of so many is looked into for a better point.
const PROBED: u64 = 16;

fn step<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    open: &Open<N>,
    known: &Known<N, P::Found>,
) -> Step<N, P::Found> {
    let mut step = Step { closed: Vec::new(), met: Vec::new(), rest: Vec::new(), least: None };
    let worst = known.worst;
    let shrunk = shrink(problem, open.region, worst, &mut step.closed);
    let Some(Shrunk { mut region, mut inner, least: bound }) = shrunk else { return step };
    let proved = problem.proved();
    if let Some(point) = inner.only() {
        // What the corner rules out need not be known exactly.
        let has_law = proved.contains(&true);
        if has_law && worst.is_some() && problem.corner(&inner, worst) == Corner::Beyond {
            step.closed.extend(worst.map(|worst| Closed { region, why: Why::Corner(worst) }));
            return step;
        }
        let why = match problem.evaluate(&point, worst) {
            Evaluation::Found(value, found) => {
                step.met.push(Met { point, value, found });
                Why::Evaluated(value)
            }
            Evaluation::Beyond => Why::Beaten(worst.unwrap_or(bound)),
            Evaluation::Nothing => Why::Nothing,
        };
        step.closed.push(Closed { region, why });
        return step;
    }
    if (0..N).all(|knob| proved[knob] || !inner.varies(knob)) {
        let is_expected = match known.both() {
            Some((like, worst)) => problem.guess(&inner, like, worst) >= EXPECTED,
            None => true,
        };
        if is_expected {
            let why = match problem.corner(&inner, worst) {
                Corner::Nothing => Some(Why::CornerNothing),
                Corner::Beyond => worst.map(Why::Corner),
                Corner::Reached(_) => None,
            };
            if let Some(why) = why {
                step.closed.push(Closed { region, why });
                return step;
            }
        }
        if let Some(known) = known.both() {
            let peeled = peel(problem, Peeled { region, inner }, known, &mut step.closed);
            let Some(rest) = peeled else { return step };
            Peeled { region, inner } = rest;
        }
        if problem.fits(&inner.hi) || worst.is_none() || open.number.is_multiple_of(PROBED) {
            probe(problem, &inner, worst, &mut step.met);
        }
    }
    if inner.only().is_some() {
        step.rest.push(region);
    } else {
        let (knob, last) = plane(problem, &inner, bound, known);
        let (low, high) = region.split(knob, last);
        step.rest.extend([low, high]);
    }
    step.least = Some(open.least.map_or(bound, |inherited| inherited.max(bound)));
    step
}

/// Evaluates one point of a box that takes nearly all that is allowed: on the way from its least to
/// its greatest corner the last that fits, and from there as far up as each knob goes.
fn probe<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    region: &Region<N>,
    worst: Option<Value>,
    met: &mut Vec<Met<N, P::Found>>,
) {
    let steps = (0..N).map(|knob| region.len(knob) - 1).max().unwrap_or(0);
    let along = |at: u16| -> Point<N> {
        std::array::from_fn(|knob| {
            let length = u32::from(region.len(knob) - 1) * u32::from(at) / u32::from(steps.max(1));
            region.lo[knob] + u16::try_from(length).unwrap_or(0)
        })
    };
    let last = (0..=steps).rev().find(|&at| problem.fits(&along(at)));
    let Some(mut point) = last.map(along) else { return };
    for knob in (0..N).rev() {
        while point[knob] < region.hi[knob] {
            let mut next = point;
            next[knob] += 1;
            if !problem.fits(&next) {
                break;
            }
            point = next;
        }
    }
    if let Evaluation::Found(value, found) = problem.evaluate(&point, worst) {
        met.push(Met { point, value, found });
    }
}

/// What boxes are compared with.
pub(super) struct Known<const N: usize, F> {
    /// The best point so far: others are guessed to be like it.
    pub like: Option<Kept<N, F>>,
    /// What a point must be better than.
    pub worst: Option<Value>,
}

impl<const N: usize, F> Known<N, F> {
    /// Both, where there are both.
    pub fn both(&self) -> Option<(&Kept<N, F>, Value)> {
        self.like.as_ref().zip(self.worst)
    }
}

/// The best points so far.
struct Best<const N: usize, F> {
    top: usize,
    kept: BTreeMap<Value, (Point<N>, F)>,
}

impl<const N: usize, F> Best<N, F> {
    /// What boxes are compared with until the next look.
    fn known(&self) -> Known<N, F>
    where
        F: Clone,
    {
        let first = self.kept.first_key_value();
        let like = first.map(|(value, (point, found))| Kept {
            point: *point,
            value: *value,
            found: found.clone(),
        });
        Known { like, worst: self.worst() }
    }

    /// All of them, the best first.
    fn all(&self) -> Vec<Kept<N, F>>
    where
        F: Clone,
    {
        let each = self.kept.iter();
        each.map(|(value, (point, found))| Kept {
            point: *point,
            value: *value,
            found: found.clone(),
        })
        .collect()
    }

    /// What a point must be better than; `None` while fewer are kept than wanted.
    fn worst(&self) -> Option<Value> {
        let full = self.kept.len() == self.top;
        self.kept.last_key_value().filter(|_| full).map(|(value, _)| *value)
    }

    fn learn(&mut self, Met { point, value, found }: Met<N, F>) {
        if self.worst().is_some_and(|worst| value >= worst) {
            return;
        }
        self.kept.insert(value, (point, found));
        if self.kept.len() > self.top {
            self.kept.pop_last();
        }
    }
}
