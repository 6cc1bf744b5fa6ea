//! Partial cuts of one pipeline in the order of 1F1B, from the first stage on.
//!
//! The exact time is a maximum over a stage r that repeats, a stage where forward passes turn and
//! one where backward passes turn, and a stage z whose end comes last (see the formula in
//! `plan::one_f_one_b`). Every part only grows from stage to stage, so a [`Walk`] carries the
//! largest value of each that is not complete yet, each with as many sums of loads as are still to
//! come counted up to here: then all that a later stage adds is the same for every label at a
//! state, and a label that is no larger in every part is no worse in whatever follows. A [`Rest`]
//! says what no way to go on from a state can beat.

use super::cut::PipelineShape;
use super::cut::StageFigures;
use crate::plan::StepStart;

/// Ticks, or differences of them.
pub(super) type Ticks = i128;

/// Less than any value, and far enough from the least integer that sums of times stay above.
const NOTHING: Ticks = Ticks::MIN / 4;

/// One stage of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    forward: Ticks,
    backward: Ticks,
    pub load: Ticks,
    /// What follows its last backward pass by itself, and what follows when all stages are there.
    end: Ticks,
    late: Ticks,
}

impl Step {
    pub(super) fn new(figures: StageFigures, start: StepStart) -> Self {
        let StageFigures { forward, backward, exposed, after } = figures;
        let (forward, backward) = (Ticks::from(forward), Ticks::from(backward));
        let (exposed, after) = (Ticks::from(exposed), Ticks::from(after));
        let (end, late) = match start {
            StepStart::OwnGradients => (exposed + after, 0),
            StepStart::AllGradients => (exposed, after),
        };
        Self { forward, backward, load: forward + backward, end, late }
    }
}

/// A stage z whose end may be the last: the end less the backward passes before it, and the
/// slowest backward pass from it on.
#[derive(Clone, Copy, Debug)]
struct Ending {
    end: Ticks,
    backward: Ticks,
}

/// What the time of a batch depends on, over the first stages of a cut.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// The largest complete value.
    done: Ticks,
    /// The largest over (repeating stage, turn of forward passes), and over (repeating stage,
    /// turn of backward passes, ending), with the sum of loads.
    climbed: Ticks,
    descended: Ticks,
    /// The largest over repeating stages, with twice the sum of loads.
    repeated: Ticks,
    /// The sum of loads.
    load: Ticks,
    /// The slowest forward pass.
    forward: Ticks,
    /// With fewer micro-batches than stages from some stage on: the slowest forward pass of those
    /// before, and the largest of their slowest backward pass, repeated, with an end.
    few_forward: Ticks,
    few_backward: Ticks,
    /// The sum of backward passes.
    backward: Ticks,
    /// The longest of what follows when all stages are there.
    late: Ticks,
    /// Endings of which none is beaten by another in both ways, from the slowest backward pass to
    /// the largest end. Mostly there is one.
    ending: Ending,
    more: Vec<Ending>,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            done: 0,
            climbed: NOTHING,
            descended: NOTHING,
            repeated: NOTHING,
            load: 0,
            forward: 0,
            few_forward: 0,
            few_backward: NOTHING,
            backward: 0,
            late: 0,
            ending: Ending { end: NOTHING, backward: 0 },
            more: Vec::new(),
        }
    }
}

impl Walk {
    /// Adds the stage at `place` of a path.
    pub(super) fn add(&mut self, shape: PipelineShape, place: usize, step: Step) {
        let Step { forward, backward, load, end, late } = step;
        let m = Ticks::from(shape.micro_batches);
        let after = (shape.n_stages - 1 - place) as Ticks;
        let repeats = after.min(m - 1);
        self.load += load;
        self.climbed += load;
        self.descended += load;
        self.repeated += 2 * load;
        self.forward = self.forward.max(forward);
        self.late = self.late.max(late);
        self.add_ending(Ending { end: end - self.backward, backward });
        self.backward += backward;
        let (climb, descent) = (repeats * self.forward, self.descent(repeats));
        if m > after {
            self.repeated = self.repeated.max((m - 1 - after) * load + self.load);
        } else {
            self.few_forward = self.forward;
            self.few_backward = descent;
        }
        self.climbed = self.climbed.max(self.repeated + climb);
        self.descended = self.descended.max(self.repeated + descent);
        self.done = self.done.max(self.climbed + descent).max(self.descended + climb);
        if m < shape.n_stages as Ticks {
            let by_forwards = (m - 1) * self.few_forward + self.load + descent;
            self.done = self.done.max(by_forwards).max(self.few_backward + self.load + climb);
        }
    }

    /// The last stage's backward pass is the least that any ending repeats, so an older ending of
    /// no slower one is as good as of the same.
    fn add_ending(&mut self, new: Ending) {
        if self.ending.backward <= new.backward {
            let end = self.largest_end().max(new.end);
            self.ending = Ending { end, backward: new.backward };
            self.more.clear();
            return;
        }
        let slower = self.more.partition_point(|known| known.backward > new.backward);
        if slower < self.more.len() || new.end > self.largest_end() {
            let end = self.largest_end().max(new.end);
            self.more.truncate(slower);
            self.more.push(Ending { end, backward: new.backward });
        }
    }

    /// The largest end less the backward passes before it. The first stage has none before it, so
    /// this is never negative.
    fn largest_end(&self) -> Ticks {
        self.more.last().unwrap_or(&self.ending).end
    }

    fn endings(&self) -> impl Iterator<Item = &Ending> {
        std::iter::once(&self.ending).chain(&self.more)
    }

    /// What follows a turn of backward passes where the slowest repeats so often.
    fn descent(&self, repeats: Ticks) -> Ticks {
        self.endings().map(|e| repeats * e.backward + e.end).max().unwrap_or(0)
    }

    /// Ticks of the batch, after the last stage.
    pub(super) fn time(&self) -> Ticks {
        self.done + self.late
    }

    /// Ticks that no batch can beat whose next stage has this load, or one slower.
    pub(super) fn least_with(&self, shape: PipelineShape, load: Ticks) -> Ticks {
        let end = self.largest_end().max(0);
        self.load + Ticks::from(shape.micro_batches) * load + end + self.late
    }

    /// Ticks that no way to go on can beat that `rest` speaks of.
    pub(super) fn least(&self, shape: PipelineShape, rest: &Rest) -> Ticks {
        let own = self.largest_end().max(0);
        let end = own.max(rest.end - self.backward);
        let turning = (self.climbed + end).max(self.descended) + rest.load;
        let repeating = self.repeated + 2 * rest.load + end;
        let later = (rest.turned + end).max(rest.reached + own) + self.load;
        let mut least = self.done.max(turning).max(repeating).max(later);
        let m = Ticks::from(shape.micro_batches);
        if m < shape.n_stages as Ticks {
            let few = ((m - 1) * self.few_forward + end).max(self.few_backward);
            least = least.max(few + self.load + rest.load);
        }
        least + self.late.max(rest.late)
    }

    /// Whether this is no worse than `other` in whatever follows. An end that is still to come
    /// counts less the backward passes before it, so the sums count with and without them.
    pub(super) fn beats(&self, other: &Self) -> bool {
        let less = |of: fn(&Self) -> Ticks| {
            of(self) <= of(other) && of(self) - self.backward <= of(other) - other.backward
        };
        self.done <= other.done
            && self.descended <= other.descended
            && self.forward <= other.forward
            && self.late <= other.late
            && less(|walk| walk.climbed)
            && less(|walk| walk.repeated)
            && less(|walk| walk.load)
            && self.few_forward <= other.few_forward
            && self.few_backward + self.load <= other.few_backward + other.load
            && self.endings().all(|own| {
                other.endings().any(|its| own.end <= its.end && own.backward <= its.backward)
            })
    }
}

/// What no way to go on from a state can beat, each figure for itself.
///
/// With P the sum of loads before, R of the rest, r one of its stages, f, b and l its passes and
/// load, and T the time before ends:
///
/// ```text
/// both turns at the last stage   T ≥ (m − p + r) · l − P(r) + 2 · (P + R)   and   T ≥ P + R
/// both turns at r                T ≥ P(r − 1) + m · l
/// one turn at each               T ≥ P + R + (m − p + r) · l + (p − 1 − r) · max(f, b)
///   where m < p − r              T ≥ P + R + (m − 1) · max(f, b)
/// ```
///
/// All grow with every load, so the least over all ways to go on follows from the last stage on. Of
/// the first, the end of any stage may follow; of the others, that of a stage before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// A sum of loads.
    load: Ticks,
    /// Ticks beyond the sum of loads before: of the first kind, and of the others.
    turned: Ticks,
    reached: Ticks,
    /// The largest end less the backward passes of the rest before it.
    end: Ticks,
    /// The longest of what follows when all stages are there.
    late: Ticks,
}

impl Rest {
    /// Nothing is left.
    pub(super) const NONE: Self = Self { load: 0, turned: 0, reached: 0, end: NOTHING, late: 0 };

    /// The rest from one stage earlier on, which stands at `place`.
    pub(super) fn with(&self, shape: PipelineShape, place: usize, step: &Step) -> Self {
        let Step { forward, backward, load, end, late } = *step;
        let m = Ticks::from(shape.micro_batches);
        let after = (shape.n_stages - 1 - place) as Ticks;
        let (rounds, all) = (m - 1 - after, load + self.load);
        let slower = forward.max(backward);
        let (turned, once) = if rounds >= 0 {
            (rounds * load + load + 2 * self.load, rounds * load + after * slower)
        } else {
            (all, (m - 1) * slower)
        };
        Self {
            load: all,
            turned: turned.max(load + self.turned),
            reached: (m * load).max(all + once).max(load + self.reached),
            end: end.max(self.end - backward),
            late: late.max(self.late),
        }
    }

    /// What neither way can beat.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self {
            load: self.load.min(other.load),
            turned: self.turned.min(other.turned),
            reached: self.reached.min(other.reached),
            end: self.end.min(other.end),
            late: self.late.min(other.late),
        }
    }

    /// The same where the loads are known to sum up to at least `load`.
    pub(super) fn at_least(&self, load: Ticks) -> Self {
        Self { load: self.load.max(load), ..*self }
    }
}
