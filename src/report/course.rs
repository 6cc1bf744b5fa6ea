//! The course of one batch through one pipeline: every pass of every rank, what follows the last of
//! them, and the waiting between.

use crate::plan::Cost;
use crate::plan::Event;
use crate::plan::PassOrder;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::StageRules;
use crate::plan::StepStart;
use crate::plan::simulate;

/// What a rank does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The forward pass of a micro-batch through a chunk.
    Forward {
        /// Which micro-batch.
        micro_batch: u64,
        /// Which of the rank's virtual stages.
        chunk: usize,
    },
    /// The backward pass of a micro-batch through a chunk.
    Backward {
        /// Which micro-batch.
        micro_batch: u64,
        /// Which of the rank's virtual stages.
        chunk: usize,
    },
    /// The exchange of gradients that nothing hides.
    Exchange,
    /// The optimizer's step.
    Step,
    /// The gathering of new weights that the next batch waits for.
    Gather,
    /// Nothing: it waits.
    Idle,
}

/// What a rank does from one moment to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which rank.
    pub rank: usize,
    /// What.
    pub doing: Doing,
    /// From when on.
    pub start: u64,
    /// Until when.
    pub end: u64,
}

/// How the pictures of a batch came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Micro-batches that were played; fewer than there are where a batch is too long to show.
    pub micro_batches: u64,
    /// When everything has ended.
    pub end: u64,
}

/// The letter of a chunk in names and pictures; there are only so many.
pub fn letter(chunk: usize) -> char {
    char::from(b'a' + u8::try_from(chunk % 26).unwrap_or(0))
}

/// Plays the batch of a plan, shortened to about `most_passes`. `watch` sees what each rank does in
/// the order in which it does it, without gaps until the batch has ended. `None` where a batch
/// cannot be played.
pub fn play(
    plan: &Plan,
    placement: &Placement,
    cost: &Cost,
    most_passes: u64,
    watch: impl FnMut(Span),
) -> Option<Course> {
    let rules = StageRules::new(&plan.profile, &plan.job, placement.shape());
    let n_ranks = cost.ranks.len();
    let micro_batches = shortened(placement.schedule, cost, most_passes);
    // A plan that was not checked may claim any order.
    placement.schedule.check(n_ranks, micro_batches).ok()?;
    let short = Cost { micro_batches, ..cost.clone() };
    let mut rows = Rows { free_at: vec![0; n_ranks], watch };
    let played = simulate(&short, (placement.schedule, rules.delay()), |event| {
        let Event { stage, micro_batch, backward, start, end } = event;
        let (rank, chunk) = (stage % n_ranks, stage / n_ranks);
        let doing = if backward {
            Doing::Backward { micro_batch, chunk }
        } else {
            Doing::Forward { micro_batch, chunk }
        };
        rows.add(Span { rank, doing, start, end });
    })?;
    for span in endings(plan.job.ends.step_start, cost, &played.finished) {
        rows.add(span);
    }
    let end = rows.free_at.iter().copied().max().unwrap_or(0);
    for rank in 0..n_ranks {
        rows.add(Span { rank, doing: Doing::Idle, start: end, end });
    }
    Some(Course { micro_batches, end })
}

/// Ranks whose time is told without gaps.
struct Rows<W> {
    free_at: Vec<u64>,
    watch: W,
}

impl<W: FnMut(Span)> Rows<W> {
    /// Tells what a rank does, and that it waited until then.
    fn add(&mut self, span: Span) {
        let before = std::mem::replace(&mut self.free_at[span.rank], span.end);
        let idle = Span { doing: Doing::Idle, start: before, end: span.start, ..span };
        for span in [idle, span] {
            if span.start < span.end {
                (self.watch)(span);
            }
        }
    }
}

/// What follows the last backward pass of each rank, which has ended at `finished`.
fn endings(start: StepStart, cost: &Cost, finished: &[u64]) -> Vec<Span> {
    let after = || cost.ranks.iter().map(|rank| rank.after);
    let exchanged =
        finished.iter().zip(after()).map(|(at, after)| at.saturating_add(after.exposed));
    let exchanged: Vec<u64> = exchanged.collect();
    let last = exchanged.iter().copied().max().unwrap_or(0);
    let ranks = finished.iter().zip(after()).zip(&exchanged).enumerate();
    let spans = ranks.flat_map(|(rank, ((&finished, after), &exchanged))| {
        let stepping = match start {
            StepStart::OwnGradients => exchanged,
            StepStart::AllGradients => last,
        };
        let stepped = stepping.saturating_add(after.step);
        [
            (Doing::Exchange, finished, exchanged),
            (Doing::Step, stepping, stepped),
            (Doing::Gather, stepped, stepped.saturating_add(after.gather)),
        ]
        .map(|(doing, start, end)| Span { rank, doing, start, end })
    });
    spans.collect()
}

/// As many micro-batches as make about `most_passes`, a legal number of them.
fn shortened(order: PassOrder, cost: &Cost, most_passes: u64) -> u64 {
    let n_stages = cost.stages.len().max(1) as u64;
    // Every shape is there with two micro-batches in flight for each virtual stage.
    let enough = (most_passes / (2 * n_stages)).max(2 * n_stages);
    match order {
        _ if cost.micro_batches <= enough => cost.micro_batches,
        PassOrder::OneForwardOneBackward => enough,
        PassOrder::Interleaved { group, .. } => {
            let group = group.max(1);
            let whole = enough.div_ceil(group).saturating_mul(group);
            whole.min(cost.micro_batches - cost.micro_batches % group).max(group)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::cost;
    use crate::report::placement::example;

    fn course(plan: &Plan, most_passes: u64) -> (Course, Vec<Span>, Cost) {
        let placement = plan.answer.placement(plan.profile.n_layers()).unwrap();
        let cost = cost(&plan.profile, &plan.job, &placement);
        let mut spans = Vec::new();
        let course = play(plan, &placement, &cost, most_passes, |span| spans.push(span)).unwrap();
        (course, spans, cost)
    }

    #[test]
    fn a_course_ends_when_the_plan_says_and_leaves_no_gap() {
        for plan in [example(false), example(true)] {
            let (course, spans, cost) = course(&plan, u64::MAX);
            assert_eq!(u128::from(course.end), plan.answer.time_per_batch);
            for rank in 0..cost.ranks.len() {
                let own: Vec<&Span> = spans.iter().filter(|span| span.rank == rank).collect();
                assert_eq!(own[0].start, 0);
                assert!(own.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert_eq!(own.last().unwrap().end, course.end);
            }
        }
    }

    #[test]
    fn the_bubble_is_what_ranks_wait_before_the_last_pass() {
        for plan in [example(false), example(true)] {
            let (_, spans, cost) = course(&plan, u64::MAX);
            let end = cost.passes_end();
            let idle = spans.iter().filter(|span| span.doing == Doing::Idle);
            let busy: u128 = spans
                .iter()
                .filter(|s| matches!(s.doing, Doing::Forward { .. } | Doing::Backward { .. }))
                .map(|span| u128::from(span.end - span.start))
                .sum();
            let ranks = cost.ranks.len() as u128;
            assert_eq!(cost.bubble(), end - busy / ranks);
            assert!(idle.count() > 0);
        }
    }

    #[test]
    fn a_long_batch_is_shortened_to_a_legal_number_of_micro_batches() {
        for plan in [example(false), example(true)] {
            let (whole, ..) = course(&plan, u64::MAX);
            let (short, ..) = course(&plan, 1);
            assert!(short.micro_batches < whole.micro_batches && short.end < whole.end);
        }
    }
}
