//! What no chip can beat that has as much or less of every proved knob.
//!
//! The best time on a chip is nearly the best on every smaller one: more memory, bandwidth, buffer,
//! vector cores, clock or links make nothing slower but by what one mapping carries more than
//! another, by schedules that are not proved, and by exchanges that shorter passes hide less. A
//! corner counts each of these at its least, so that its time bounds a whole box of chips by its
//! largest, built or not (docs/search.md, the laws).

use std::collections::BTreeSet;

use super::Figures;
use super::Planner;
use super::SpaceBound;
use super::Terms;
use super::Variant;
use super::VariantName;
use super::best::Candidate;
use super::best::Timed;
use super::best::TimedDivisions;
use super::best::Untimed;
use super::fastest;
use super::fastest::Asked;
use super::fastest::Timing;
use super::training::Division;
use crate::hardware::Accelerator;
use crate::plan::Hiding;
use crate::plan::can_be_played;
use crate::profile;
use crate::profile::LeastBy;
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

/// Whether a chip, or one that has no more of any proved knob, may train within a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// At the least of everything a batch takes so long, which is within the limit; a shorter one was not
    /// looked for.
    Within(Time),
    /// Every batch takes longer than the limit on each of them.
    Slower,
    /// Nothing fits on any of them.
    Nothing,
}

/// What is known of variants before a corner is asked whether it reaches a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Those that are slower than the limit on it, as a chip with as much or more of every proved knob has shown.
    pub slower: BTreeSet<VariantName>,
    /// One by which a similar chip reaches its limit.
    pub first: Option<VariantName>,
}

/// Whether a corner reaches a limit, and what that has shown of variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Whether it does.
    pub reach: Reach,
    /// Variants that are slower than the limit, though rooflines do not say so: not all of them.
    pub slower: Vec<VariantName>,
    /// The one by which it does.
    pub by: Option<VariantName>,
}

impl Planner<'_> {
    /// A time that no way to train can beat on a chip, whose bounds were prepared, nor on any that has
    /// no more of any proved knob; whatever the price, and whatever a cap of power leaves out.
    pub fn corner(&self, chip: &Accelerator, bound: &SpaceBound, limit: Option<Time>) -> Corner {
        let variants = self.variants_of_corner(chip, bound, limit);
        let roofline = self.roofline(chip, bound, &variants);
        let found = self.search_corner(chip, bound, &variants, limit.into()).0;
        match (roofline, found, limit) {
            (None, ..) | (Some(_), None, None) => Corner::Nothing,
            // What hides more on slower chips may be below what rooflines say of all of them.
            (Some(roofline), Some(time), _) => Corner::Least(time.max(roofline)),
            (Some(_), None, Some(limit)) => Corner::Slower(limit),
        }
    }

    /// Whether a way to train takes at most `limit` on a chip, whose bounds were prepared, with everything
    /// at the least that it is on any chip with no more of any proved knob. Far quicker than
    /// [`Self::corner`] where it does, because the first way that is found will do.
    pub fn reach(
        &self,
        chip: &Accelerator,
        bound: &SpaceBound,
        limit: Time,
        heard: &Heard,
    ) -> Reached {
        let mut variants = self.variants_of_corner(chip, bound, Some(limit));
        let Some(roofline) = self.roofline(chip, bound, &variants) else {
            return Reached { reach: Reach::Nothing, slower: Vec::new(), by: None };
        };
        variants.retain(|variant| {
            variant.least.time <= limit && !heard.slower.contains(&variant.name())
        });
        let first = heard
            .first
            .and_then(|first| variants.iter().position(|variant| variant.name() == first));
        if let Some(first) = first {
            variants[..=first].rotate_right(1);
        }
        let (found, of) = self.search_corner(chip, bound, &variants, Asked::AnyWithin(limit));
        let found = found.map(|time| time.max(roofline)).filter(|time| *time <= limit);
        let of = of.filter(|_| found.is_some());
        let looked_at = &variants[..of.unwrap_or(variants.len())];
        Reached {
            reach: found.map_or(Reach::Slower, Reach::Within),
            slower: looked_at.iter().map(Variant::name).collect(),
            by: of.map(|of| variants[of].name()),
        }
    }

    /// All variants that may fit on a chip within a limit, with what rooflines say of it and all smaller ones, the
    /// least first.
    fn variants_of_corner(
        &self,
        chip: &Accelerator,
        bound: &SpaceBound,
        limit: Option<Time>,
    ) -> Vec<Variant> {
        let asked = (self.terms, self.training);
        let mut variants = bound.variants(asked, chip, (Figures::Time, limit));
        variants.sort_unstable_by_key(|variant| (variant.least.time, variant.name()));
        variants
    }

    /// What rooflines say of a chip and of all smaller ones, of which these variants are the first; `None` where
    /// nothing fits.
    fn roofline(
        &self,
        chip: &Accelerator,
        bound: &SpaceBound,
        variants: &[Variant],
    ) -> Option<Time> {
        let first = variants.first().map(|variant| variant.least.time);
        first.or_else(|| bound.least_time_on((self.terms, self.training), chip))
    }

    /// The time of what was asked for, with everything at its least, and of which variant it is, where it was found.
    fn search_corner(
        &self,
        chip: &Accelerator,
        bound: &SpaceBound,
        variants: &[Variant],
        asked: Asked,
    ) -> (Option<Time>, Option<usize>) {
        if !self.every_batch_is_counted() {
            // Then the rooflines speak alone.
            let least = variants.iter().map(|variant| variant.least.time).min();
            return (least, least.map(|_| 0));
        }
        let mut timed = TimedDivisions::new();
        let time =
            |division: &Division, timing: Timing| self.at_the_least(division, chip, timing).ok();
        let glances = &[Timing::Sketch, Timing::Outline, Timing::Glance][..];
        let asked = (&mut timed, asked);
        let found = fastest::search(self, (chip, bound), variants, asked, (glances, time));
        let time = |found: Candidate| Time(u64::try_from(found.score.0).unwrap_or(u64::MAX));
        (found.best.map(time), found.of)
    }

    /// Whether a batch is surely counted, however its passes lie: one of several virtual stages for
    /// each rank that is too long to be played is counted only where its course repeats itself.
    fn every_batch_is_counted(&self) -> bool {
        let n_layers = self.training.model.sequence.len();
        self.terms.space.chunks.most == 1 || can_be_played(n_layers, self.terms.global_batch)
    }

    /// The times of a division where everything is at the least that it is on any smaller chip.
    pub(super) fn at_the_least(
        &self,
        division: &Division,
        chip: &Accelerator,
        timing: Timing,
    ) -> Result<Timed, Untimed> {
        let Division { share, cluster, graphs, .. } = division;
        let Terms { rule, time_model, optimizer, .. } = *self.terms;
        let (table, limits, closeness) = (self.table, timing.limits(), timing.closeness());
        let by = LeastBy { table, closeness, rule, limits };
        let least = graphs.least_passes(share, (chip, cluster), by)?;
        let profile = profile::timed(share, least, time_model);
        let mut job = self.job(division, chip)?;
        job.validate(&profile)?;
        job.per_parameter.step_per_gibi = least_step_per_gibi((chip, cluster), optimizer, table)?;
        job.ends.hiding = Hiding::Longer;
        // What passes rest on is not asked of a corner.
        Ok(Timed { passes: Vec::new(), profile, job })
    }
}
