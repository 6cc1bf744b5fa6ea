//! Takes boxes from the most promising on, until what is kept is proved to be the best.

use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::climb::Met;
use super::climb::climb;
use super::kin::Trimmed;
use super::kin::from;
use super::kin::inners;
use super::kin::up_to;
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
use super::split::Plane;
use super::split::plane;
use crate::search::walk::Observer;

/// Boxes that are looked at between two looks at what is known. Part of the answer's definition: a
/// larger batch closes some boxes later.
const BATCH: usize = 64;

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

/// A box that may hold a better point, or several that are kin; the most promising is the greatest.
#[derive(Clone, Debug)]
struct Open<const N: usize> {
    least: Option<Value>,
    /// Tells boxes apart that promise the same.
    number: u64,
    boxes: Vec<Region<N>>,
    /// Whether kin were brought together.
    together: bool,
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
    /// Takes the turn to look for a good point to begin with; waits while another has it, unless `stops` says so.
    fn takes_turn(&self, _stops: &dyn Fn() -> bool) {}
    /// Ends the turn.
    fn ends_turn(&self) {}
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
    let stops = || observer.stops();
    let mut heard = peers.heard();
    let waits = heard.is_empty() && !boxes.is_empty();
    if waits {
        peers.takes_turn(&stops);
        heard = peers.heard();
    }
    // Whoever told has climbed.
    let climbs = waits && heard.is_empty();
    for Kept { point, value, found } in known.into_iter().chain(heard) {
        best.learn(Met { point, value, found });
    }
    if climbs {
        let first = best.kept.first_key_value().map(|(value, (point, _))| (*point, *value));
        for met in climb(problem, around, first, &stops) {
            best.learn(met);
        }
        peers.tell(&|| best.all());
    }
    if waits {
        peers.ends_turn();
    }
    let mut closed = Vec::new();
    let numbered = (0..).zip(boxes);
    let alone = |number, region: &Region<N>| Open {
        least: None,
        number,
        boxes: vec![*region],
        together: false,
    };
    let mut heap: BinaryHeap<Open<N>> =
        numbered.map(|(number, region)| alone(number, region)).collect();
    let mut number = boxes.len().saturating_sub(1) as u64;
    // Boxes that wait for their kin.
    let mut waiting: BTreeMap<u64, Vec<(Value, Region<N>)>> = BTreeMap::new();
    // Invariant: closed boxes, those of the heap and those that wait tile the boxes; no point of a closed box that
    // was not met is better than the worst that is kept.
    while !(observer.stops() || heap.is_empty() && waiting.is_empty()) {
        if heap.is_empty() {
            for mut kin in std::mem::take(&mut waiting).into_values() {
                number += 1;
                kin.sort_unstable_by_key(|(_, region)| *region);
                let least = kin.iter().map(|(least, _)| *least).min();
                let boxes = kin.into_iter().map(|(_, region)| region).collect();
                heap.push(Open { least, number, boxes, together: true });
            }
        }
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
            let least = done.least.unwrap_or(Value { first: 0, second: 0, place: 0 });
            for boxes in done.rest {
                number += 1;
                let together = open.together;
                heap.push(Open { least: Some(least), number, boxes, together });
            }
            if let Some((kin, region)) = done.waits {
                waiting.entry(kin).or_default().push((least, region));
            }
        }
        peers.tell(&|| best.all());
        for Kept { point, value, found } in peers.heard() {
            best.learn(Met { point, value, found });
        }
        observer.evaluated(what, heap.len());
    }
    let kept = best.all();
    rest_on(&mut closed, best.worst());
    closed.sort_unstable_by_key(|closed| closed.region);
    let each = heap.into_iter().flat_map(|open| {
        let Open { least, boxes, .. } = open;
        boxes.into_iter().map(move |region| (region, least))
    });
    let waiting = waiting.into_values().flatten().map(|(least, region)| (region, Some(least)));
    let mut open: Vec<_> = each.chain(waiting).collect();
    open.sort_unstable();
    BoxWalk { kept, closed, open }
}

/// What was closed because it is not better than something that was kept then is not better than what is kept now.
pub fn rest_on<const N: usize>(closed: &mut [Closed<N>], worst: Option<Value>) {
    let Some(worst) = worst else { return };
    for Closed { why, .. } in closed {
        if let Why::Corner(value) | Why::Beaten(value) = why {
            *value = worst;
        }
    }
}

/// What looking at a box has shown.
struct Step<const N: usize, F> {
    closed: Vec<Closed<N>>,
    met: Vec<Met<N, F>>,
    /// What is to be looked at later, boxes of the same together, and what none of its points can beat.
    rest: Vec<Vec<Region<N>>>,
    /// A box that is to be looked at with its kin, and who they are.
    waits: Option<(u64, Region<N>)>,
    least: Option<Value>,
}

impl<const N: usize, F> Step<N, F> {
    /// Closes all boxes, where there is a reason.
    fn close(&mut self, boxes: &[Trimmed<N>], why: Option<Why>) -> bool {
        let closed = why.map(|why| boxes.iter().map(move |one| Closed { region: one.region, why }));
        self.closed.extend(closed.into_iter().flatten());
        why.is_some()
    }
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
    let (closed, met, rest) = (Vec::new(), Vec::new(), Vec::new());
    let mut step = Step { closed, met, rest, waits: None, least: None };
    let worst = known.worst;
    let mut kin = Vec::with_capacity(open.boxes.len());
    let mut bound: Option<Value> = None;
    for &region in &open.boxes {
        let shrunk = shrink(problem, region, worst, &mut step.closed);
        let Some(Shrunk { region, inner, least }) = shrunk else { continue };
        bound = Some(bound.map_or(least, |bound| bound.min(least)));
        kin.push(Trimmed { region, inner });
    }
    let Some(bound) = bound else { return step };
    step.least = Some(open.least.map_or(bound, |inherited| inherited.max(bound)));
    if let [Trimmed { region, inner }] = kin[..]
        && let Some(point) = inner.only()
    {
        look_at(problem, (region, point), (worst, bound), &mut step);
        return step;
    }
    let proved = problem.proved();
    let has_law = |one: &Trimmed<N>| (0..N).all(|knob| proved[knob] || !one.inner.varies(knob));
    if kin.iter().all(has_law) {
        if let [one] = kin[..]
            && !open.together
            && let Some(others) = problem.kin(&one.inner.lo)
        {
            step.waits = Some((others, one.region));
            return step;
        }
        let inner = inners(&kin);
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
            if step.close(&kin, why) {
                return step;
            }
        }
        if let Some(known) = known.both() {
            kin = peel(problem, kin, known, &mut step.closed);
        }
        let turn = open.number / PROBED % kin.len().max(1) as u64;
        let Some(one) = kin.get(usize::try_from(turn).unwrap_or(0)) else { return step };
        if problem.fits(&one.inner.hi) || worst.is_none() || open.number.is_multiple_of(PROBED) {
            probe(problem, &one.inner, worst, &mut step.met);
        }
    }
    let regions: Vec<Region<N>> = kin.iter().map(|one| one.region).collect();
    let inner = inners(&kin);
    if matches!(inner[..], [one] if one.only().is_some()) {
        step.rest.push(regions);
        return step;
    }
    let halves = match plane(problem, &inner, bound, known) {
        Plane::Knob(knob, last) => [up_to(&regions, knob, last), from(&regions, knob, last + 1)],
        Plane::Kin(first) => [regions[..first].to_vec(), regions[first..].to_vec()],
    };
    step.rest.extend(halves.into_iter().filter(|half| !half.is_empty()));
    step
}

/// Looks at a box of which only one point fits.
fn look_at<const N: usize, P: BoxProblem<N>>(
    problem: &P,
    (region, point): (Region<N>, Point<N>),
    (worst, bound): (Option<Value>, Value),
    step: &mut Step<N, P::Found>,
) {
    // What the corner rules out need not be known exactly.
    let has_law = problem.proved().contains(&true);
    let corner = || problem.corner(&[Region::point(point)], worst);
    if has_law && worst.is_some() && corner() == Corner::Beyond {
        step.closed.extend(worst.map(|worst| Closed { region, why: Why::Corner(worst) }));
        return;
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
