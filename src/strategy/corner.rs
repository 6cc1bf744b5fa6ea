//! What no chip can beat that has as much or less of every proved knob.
//!
//! The best time on a chip is nearly the best on every smaller one: more memory, bandwidth, buffer,
//! vector cores, clock or links make nothing slower but by what one mapping carries more than
//! another, by schedules that are not proved, and by exchanges that shorter passes hide less. A
//! corner counts each of these at its least, so that its time bounds a whole box of chips by its
//! largest, built or not (docs/search.md, the laws).

use super::Figures;
use super::Planner;
use super::SpaceBound;
use super::best::Candidate;
use super::best::Timed;
use super::best::TimedDivisions;
use super::best::Untimed;
use super::fastest;
use super::fastest::Timing;
use super::training::Division;
use crate::hardware::Accelerator;
use crate::plan::Hiding;
use crate::plan::can_be_played;
use crate::profile::least_step_per_gibi;
use crate::units::Time;

/// What is known of a chip and of all that have no more of any proved knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// No batch takes less on any of them.
    Least(Time),
    /// Every batch takes longer than this limit on each of them.
    Slower(Time),
    /// Nothing fits on any of them.
    Nothing,
}

impl Corner {
    /// What is to be said where what is slower than `limit` need not be known; `None` where this does
    /// not tell.
    pub fn within(self, limit: Option<Time>) -> Option<Self> {
        match (self, limit) {
            (Self::Least(time), Some(limit)) if time > limit => Some(Self::Slower(limit)),
            (Self::Slower(known), Some(limit)) => (known >= limit).then_some(Self::Slower(limit)),
            (Self::Slower(_), None) => None,
            (known, _) => Some(known),
        }
    }
}

impl Planner<'_> {
    /// A time that no way to train can beat on a chip, whose bounds were prepared, nor on any that has
    /// no more of any proved knob; whatever the price, and whatever a cap of power leaves out.
    pub fn corner(&self, chip: &Accelerator, bound: &SpaceBound, limit: Option<Time>) -> Corner {
        let mut variants = bound.variants(self.terms, self.training, chip, Figures::Time);
        variants.sort_unstable_by_key(|v| (v.least.time, v.division, v.sharded, v.recompute));
        if !self.every_batch_is_counted() {
            // Then the rooflines speak alone.
            return variants.first().map_or(Corner::Nothing, |v| Corner::Least(v.least.time));
        }
        let mut timed = TimedDivisions::new();
        let time =
            |division: &Division, timing: Timing| self.at_the_least(division, chip, timing).ok();
        let found = fastest::search(self, (chip, bound), &variants, (&mut timed, limit), time).best;
        match (found, limit) {
            (Some(Candidate { score, .. }), _) => {
                // What hides more on slower chips may be below what rooflines say of all of them.
                let roofline = variants.first().map_or(Time::ZERO, |variant| variant.least.time);
                Corner::Least(Time(u64::try_from(score.0).unwrap_or(u64::MAX)).max(roofline))
            }
            (None, Some(limit)) if !variants.is_empty() => Corner::Slower(limit),
            (None, _) => Corner::Nothing,
        }
    }

    /// Whether a batch is surely counted, however its passes lie: one of several virtual stages for
    /// each rank that is too long to be played is counted only where its course repeats itself.
    fn every_batch_is_counted(&self) -> bool {
        let n_layers = self.training.model.sequence.len();
        self.terms.space.chunks.most == 1 || can_be_played(n_layers, self.terms.global_batch)
    }

    /// The times of a division where everything is at the least that it is on any smaller chip.
    fn at_the_least(
        &self,
        division: &Division,
        chip: &Accelerator,
        timing: Timing,
    ) -> Result<Timed, Untimed> {
        let Division { share, cluster, graphs, .. } = division;
        let mut timed = self.measure(division, chip, timing)?;
        let by = (self.table, self.terms.rule);
        let known = (&timed.passes[..], timing.limits());
        let least = graphs.least_passes(share, (chip, cluster), by, known)?;
        for (kind, [forward, backward]) in timed.profile.kinds.iter_mut().zip(least) {
            (kind.forward, kind.backward) = (forward.0, backward.0);
        }
        let optimizer = self.terms.optimizer;
        let step = least_step_per_gibi((chip, cluster), optimizer, self.table)?;
        timed.job.per_parameter.step_per_gibi = step;
        timed.job.ends.hiding = Hiding::Longer;
        Ok(timed)
    }
}
