//! The best cut in the 1F1B time model:
//! sum of loads + (micro-batches − 1) · slowest load + slowest end.
//!
//! Three quantities compete, so partial cuts are kept as labels (sum, slowest, end) from the
//! first stage on. A label is dropped where another at the same state is no worse in all three,
//! or where even the best rest that the bounds allow cannot beat the best placement known.

use super::Cuts;
use super::Rank;
use super::Search;
use super::bottleneck::NONE;
use super::bottleneck::Rows;
use super::pipelines::Candidate;
use super::pipelines::Pipelines;
use super::published::Goal;
use super::published::trace;

/// Looks for a better placement with the candidate's number of pipelines.
pub(super) fn improve<C: Cuts>(
    search: &mut Search<C>,
    pipelines: &Pipelines,
    candidate: Candidate,
) {
    let mut shapes: Vec<(Rank, Shape)> = Vec::new();
    for (n_stages, n_narrow) in pipelines.shapes(candidate) {
        let shape = Shape::new(candidate, pipelines, n_stages, n_narrow);
        let sum = search.cuts.least_sum(0, n_stages, 0);
        // Most shapes fall here, before the network is asked and rows are made.
        let balanced = shape.rank(sum, pipelines.least_slowest(n_stages), 0);
        if !search.is_hopeless(balanced) {
            shapes.extend(bounded(search, pipelines, shape));
        }
    }
    // Several numbers of stages often share the slowest load; the best of them rules out the rest.
    shapes.sort_by_key(|(bound, _)| *bound);
    for (bound, shape) in shapes {
        if search.is_hopeless(bound) {
            break;
        }
        improve_shape(search, pipelines, &shape);
    }
}

/// A shape with all that bounds it from below; `None` where nothing fits or nothing is better.
fn bounded<C: Cuts>(
    search: &mut Search<C>,
    pipelines: &Pipelines,
    mut shape: Shape,
) -> Option<(Rank, Shape)> {
    let Shape { n_stages, n_narrow, data_parallel, .. } = shape;
    let cuts = search.cuts;
    if shape.cap() != u64::MAX && shape.cap() > 0 {
        // A set of rows of its own is worth making only where the roomiest memory would do.
        let slowest = search.tables.rows(0, n_stages).whole(n_stages, n_narrow)?;
        shape.tail(cuts, slowest, search.limit)?;
    }
    shape.slowest = search.tables.rows(shape.cap(), n_stages).whole(n_stages, n_narrow)?;
    shape.tail(cuts, shape.slowest, search.limit)?;
    shape.least_end = match search.tables.least_parameters(n_stages) {
        Some(parameters) => pipelines.end(parameters, data_parallel),
        None => pipelines.least_end(data_parallel, n_stages),
    };
    let tail = shape.tail(cuts, shape.slowest, search.limit)?;
    let sum = cuts.least_sum(0, n_stages, tail);
    Some((shape.rank(sum, shape.slowest, shape.least_end), shape))
}

/// A number of pipelines and of stages, with what follows from them.
struct Shape {
    data_parallel: u64,
    n_stages: usize,
    n_narrow: usize,
    devices: u64,
    /// Micro-batches of a pipeline beside the first.
    others: u64,
    /// A load that the slowest stage cannot fall below.
    slowest: u64,
    /// An end that the slowest end cannot fall below.
    least_end: u64,
}

impl Shape {
    fn new(candidate: Candidate, pipelines: &Pipelines, n_stages: usize, n_narrow: usize) -> Self {
        let Candidate { data_parallel, micro_batches, .. } = candidate;
        Self {
            data_parallel,
            n_stages,
            n_narrow,
            devices: data_parallel * pipelines.devices(n_stages, n_narrow),
            others: micro_batches - 1,
            slowest: 0,
            least_end: 0,
        }
    }

    fn rank(&self, sum: u64, slowest: u64, end: u64) -> Rank {
        let time = u128::from(sum) + u128::from(self.others) * u128::from(slowest);
        let time = time + u128::from(end);
        Rank { time, devices: self.devices, stages: self.n_stages }
    }

    /// What [`Cuts::least_sum`] needs to know of the paths before `limit`, where no path has a
    /// slowest load below `slowest`; `None` where there is no such path.
    ///
    /// The less the sum leaves to the slowest load, the less a last stage can hold, and the more
    /// the sum is again.
    fn tail(&self, cuts: &impl Cuts, slowest: u64, limit: Option<Rank>) -> Option<usize> {
        let mut tail = 0;
        let Some(limit) = limit else { return Some(tail) };
        loop {
            let sum = cuts.least_sum(0, self.n_stages, tail);
            let bound = self.rank(sum, slowest, self.least_end);
            if limit <= bound {
                return None;
            }
            let each = (limit.time - bound.time) / u128::from(self.others.max(1));
            let cap = u64::try_from(each).ok().and_then(|each| slowest.checked_add(each));
            let cap = if self.others == 0 { NONE } else { cap.unwrap_or(NONE) };
            let tighter = cuts.sums_under(cap);
            if tighter <= tail {
                return Some(tail);
            }
            tail = tighter;
        }
    }

    /// The cap on micro-batches in flight beside one; where it cannot bind, that of all others.
    fn cap(&self) -> u64 {
        if self.others + 1 >= self.n_stages as u64 { u64::MAX } else { self.others }
    }
}

fn improve_shape<C: Cuts>(search: &mut Search<C>, pipelines: &Pipelines, shape: &Shape) {
    let Shape { n_stages, n_narrow, slowest, .. } = *shape;
    let cuts = search.cuts;
    let rows = search.tables.rows(shape.cap(), n_stages);
    let tied_end = pipelines.tied_end(shape.data_parallel, n_stages);
    let mut ends = Ends { pipelines, shape, tied_end, known: [(NONE, 0); 64] };
    // The cut of least slowest load is a good one to begin with.
    let path = trace(cuts, rows, 0, Goal { slowest, n_stages, n_narrow, cap: shape.cap() });
    let rank = ends.rank_of(cuts, &path);
    let found = search.limit.is_none_or(|limit| rank < limit).then_some((rank, path));
    let limit = search.limit.map_or(rank, |limit| limit.min(rank));
    let tail = shape.tail(cuts, slowest, Some(limit));
    let better = tail.and_then(|tail| Labels { cuts, rows, shape, ends, limit, tail }.search());
    if let Some((rank, path)) = better.or(found) {
        search.accept(rank, shape.data_parallel, path);
    }
}

/// The ends of stages, remembered: many stages hold as many parameters.
struct Ends<'a> {
    pipelines: &'a Pipelines<'a>,
    shape: &'a Shape,
    /// What a tied table adds to the first and the last stage.
    tied_end: u64,
    known: [(u64, u64); 64],
}

impl Ends<'_> {
    /// Ticks after the last backward pass of a stage of a path with the shape's stages.
    fn end(&mut self, cuts: &impl Cuts, from: usize, to: usize) -> u64 {
        let parameters = cuts.parameters(from, to);
        // A multiplicative hash: the high bits depend on all of the number.
        let place = usize::try_from(parameters.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
            .expect("six bits are an index");
        if self.known[place].0 != parameters {
            let end = self.pipelines.end(parameters, self.shape.data_parallel);
            self.known[place] = (parameters, end);
        }
        let shares_a_table = from == 0 || to + 1 == cuts.n_states();
        self.known[place].1 + if shares_a_table { self.tied_end } else { 0 }
    }

    fn rank_of(&mut self, cuts: &impl Cuts, path: &[usize]) -> Rank {
        let (mut sum, mut slowest, mut end) = (0, 0, 0);
        for stage in path.windows(2) {
            let load = cuts.load(stage[0], stage[1]);
            sum += load;
            slowest = load.max(slowest);
            end = self.end(cuts, stage[0], stage[1]).max(end);
        }
        self.shape.rank(sum, slowest, end)
    }
}

/// A way to place the first stages.
#[derive(Clone, Copy)]
struct Label {
    state: usize,
    /// Narrow stages still to come.
    n_narrow: usize,
    sum: u64,
    slowest: u64,
    end: u64,
    /// The label that it continues, in the level before.
    parent: usize,
}

struct Labels<'a, C> {
    cuts: &'a C,
    rows: &'a Rows,
    shape: &'a Shape,
    ends: Ends<'a>,
    limit: Rank,
    tail: usize,
}

impl<C: Cuts> Labels<'_, C> {
    /// The best path that ranks before the limit.
    fn search(mut self) -> Option<(Rank, Vec<usize>)> {
        let Shape { n_stages, n_narrow, .. } = *self.shape;
        let start = Label { state: 0, n_narrow, sum: 0, slowest: 0, end: 0, parent: 0 };
        let mut levels = vec![vec![start]];
        for n_after in (0..n_stages).rev() {
            let mut next = Vec::new();
            for (parent, &label) in levels.last()?.iter().enumerate() {
                self.extend(label, parent, n_after, &mut next);
            }
            keep_undominated(&mut next);
            levels.push(next);
        }
        let ranked = |label: &Label| self.shape.rank(label.sum, label.slowest, label.end);
        let last = levels.pop()?;
        let best = last.iter().min_by_key(|label| ranked(label))?;
        let mut path = vec![best.state];
        let mut parent = best.parent;
        for level in levels.iter().rev() {
            path.push(level[parent].state);
            parent = level[parent].parent;
        }
        path.reverse();
        Some((ranked(best), path))
    }

    /// Adds every stage that may follow `label`, with `n_after` stages after it.
    fn extend(&mut self, label: Label, parent: usize, n_after: usize, next: &mut Vec<Label>) {
        let (cuts, from) = (self.cuts, label.state);
        let end = cuts.n_states() - 1;
        let extra = self.shape.cap().min(n_after as u64);
        // No load may be so large that this much, the rest and the least end are too long.
        let base = label.sum + cuts.least_sum(from, n_after + 1, self.tail);
        let hopeless = |sum: u64, slowest: u64, end: u64, limit: Rank, shape: &Shape| {
            limit <= shape.rank(sum, slowest, end.max(shape.least_end))
        };
        let last = if n_after == 0 { end } else { end - 1 };
        let first = if n_after == 0 { end } else { from + 1 };
        let first = self.first_hopeful(label, n_after, base, first);
        for to in first..=last {
            if cuts.n_left(to) < n_after || !cuts.leads(from, to) {
                continue;
            }
            let narrow = usize::from(self.rows.has_narrow() && cuts.is_narrow(from, to));
            let Some(left) = label.n_narrow.checked_sub(narrow) else { continue };
            let load = cuts.load(from, to);
            if hopeless(base, load, label.end, self.limit, self.shape) {
                // Away from the first layer, longer stages are no faster.
                if from > 0 && to < end && cuts.is_monotone() {
                    break;
                }
                continue;
            }
            let rest = match n_after {
                0 if left == 0 => 0,
                0 => continue,
                _ => self.rows.row(n_after, left).map_or(NONE, |row| row.slowest[to]),
            };
            if rest == NONE {
                continue;
            }
            let sum = label.sum + load;
            let slowest = load.max(label.slowest);
            let least = sum + cuts.least_sum(to, n_after, self.tail);
            if hopeless(least, slowest.max(rest), label.end, self.limit, self.shape)
                || !cuts.fits(from, to, extra)
            {
                continue;
            }
            let end = self.ends.end(cuts, from, to).max(label.end);
            if !hopeless(least, slowest.max(rest), end, self.limit, self.shape) {
                next.push(Label { state: to, n_narrow: left, sum, slowest, end, parent });
            }
        }
    }

    /// Skips the ends of a stage that leave too much to the stages after it.
    fn first_hopeful(&self, label: Label, n_after: usize, base: u64, first: usize) -> usize {
        let row = match n_after {
            0 => return first,
            _ => self.rows.row(n_after, label.n_narrow),
        };
        let Some(row) = row.filter(|row| row.falls && self.cuts.is_monotone()) else {
            return first;
        };
        let last = self.cuts.n_states() - 1 - n_after;
        if self.rows.has_narrow() || first > last {
            return first;
        }
        let too_much = |&rest: &u64| {
            let end = label.end.max(self.shape.least_end);
            rest == NONE || self.limit <= self.shape.rank(base, rest, end)
        };
        first + row.slowest[first..=last].partition_point(too_much)
    }
}

/// Drops labels that another at the same state equals or beats in every way.
fn keep_undominated(labels: &mut Vec<Label>) {
    labels.sort_by_key(|l| (l.state, l.n_narrow, l.sum, l.slowest, l.end, l.parent));
    let mut kept: Vec<Label> = Vec::with_capacity(labels.len());
    let mut group = 0;
    for label in labels.drain(..) {
        let place = |l: &Label| (l.state, l.n_narrow);
        if kept.last().is_some_and(|last| place(last) != place(&label)) {
            group = kept.len();
        }
        // Within a group the sum only grows, so the other two decide.
        let beaten = kept[group..].iter().any(|k| k.slowest <= label.slowest && k.end <= label.end);
        if !beaten {
            kept.push(label);
        }
    }
    *labels = kept;
}
