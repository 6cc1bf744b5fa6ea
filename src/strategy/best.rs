//! The best way to train a model on one chip, exactly.
//!
//! Divisions and recompute choices are taken in the order of what they cannot beat; the first that
//! is worse than the best found ends the list, so most are never scheduled or placed. Where time is
//! the price and nothing caps the power, [`fastest`] lets the placement choose among all shapes at
//! once; every other price is that of each shape's fastest cut ([`cheapest`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Terms;
use super::cheapest;
use super::energy::BatchEnergy;
use super::fastest;
use super::fastest::Timing;
use super::price::Price;
use super::price::Standing;
use super::space_bound::Figures;
use super::space_bound::SpaceBound;
use super::space_bound::Variant;
use super::training::Division;
use super::training::Sharded;
use super::training::Training;
use crate::estimate::EstimateTable;
use crate::estimate::TooLarge;
use crate::hardware::Accelerator;
use crate::placement::Found;
use crate::placement::Rank;
use crate::plan::Flaw;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Profile;
use crate::plan::Strategy;
use crate::profile::LayerPasses;
use crate::profile::job;
use crate::profile::pass::PassTime;
use crate::profile::profile;
use crate::profile::untimed;
use crate::schedule::Limits;
use crate::schedule::ProofKind;
use crate::units::Time;

use super::Chosen;

/// Finds the best way to train one model on chips; estimates are shared by all who have the table.
#[derive(Clone, Copy)]
pub struct Planner<'a> {
    /// What may be chosen.
    pub terms: &'a Terms,
    /// What is trained.
    pub training: &'a Training,
    /// Estimates of operators.
    pub table: &'a EstimateTable,
}

/// The best way to train on a chip, with all that it rests on.
#[derive(Clone, Debug)]
pub struct Best {
    /// In figures.
    pub chosen: Chosen,
    /// The model divided so.
    pub division: Arc<Division>,
    /// Which layers form which stage.
    pub found: Found,
    /// The layers at that width and micro-batch.
    pub profile: Profile,
    /// What was asked of the placement.
    pub job: Job,
    /// Ticks that no layout of virtual stages can beat, where some are outside the declared family
    /// and could be faster.
    pub open: Option<u128>,
}

/// Why a division cannot be timed on a chip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untimed {
    /// An operator or the optimizer's step is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Sums over the layers leave the range of integers.
    #[error(transparent)]
    Flaw(#[from] Flaw),
}

/// A division with its exact layer times.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    pub passes: Vec<LayerPasses>,
    pub profile: Profile,
    pub job: Job,
}

impl Timed {
    /// Makes every pass as short as its bound, where its schedule is not proved.
    fn shorten(&mut self) {
        for (kind, passes) in self.profile.kinds.iter_mut().zip(&self.passes) {
            kind.forward = passes.forward.proof.lower_bound.min(kind.forward);
            kind.backward = passes.backward.proof.lower_bound.min(kind.backward);
        }
    }
}

/// How good a strategy is; less is better. Among equals the faster wins, then fewer devices, fewer
/// virtual stages, and the choice and division that come first.
pub(super) type Score = (u128, Rank, Way);

/// Which division of the model, and what replicas exchange inside its layers.
pub type Way = (usize, Option<Sharded>);

/// A strategy that was found, and how good it is.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub score: Score,
    pub found: Found,
}

/// The best strategy, and what is left open.
#[derive(Clone, Debug, Default)]
pub(super) struct Searched {
    pub best: Option<Candidate>,
    /// Ticks that no layout outside a declared family can beat.
    pub open: Option<u128>,
    /// Which of the variants the best is one of.
    pub of: Option<usize>,
}

/// Divisions timed on one chip, each when first asked for; `None` where an operator is too large to
/// be timed: such a division is left out.
pub(super) type TimedDivisions = BTreeMap<Way, Option<Timed>>;

/// The best way to train on a chip, where slower ones than a limit need not be known.
#[derive(Clone, Debug)]
pub enum Within {
    /// It is not slower.
    Best(Box<Best>),
    /// Every way to train is slower than this limit.
    Slower(Time),
    /// Nothing fits, as far as that was asked: under a limit only what surely fits nowhere.
    Nothing,
}

impl Planner<'_> {
    /// The best way to train on a chip, whose bounds were prepared; `None` where nothing fits.
    pub fn best(&self, chip: &Accelerator, bound: &SpaceBound) -> Option<Best> {
        match self.best_within(chip, bound, None) {
            Within::Best(best) => Some(*best),
            Within::Slower(_) | Within::Nothing => None,
        }
    }

    /// The best way to train on a chip, whose bounds were prepared, unless every one is slower than
    /// `limit`, which is heeded where time is the price and nothing caps the power.
    pub fn best_within(
        &self,
        chip: &Accelerator,
        bound: &SpaceBound,
        limit: Option<Time>,
    ) -> Within {
        let figures = match self.terms.price {
            Price::Time => Figures::Time,
            Price::Energy => Figures::TimeAndEnergy,
        };
        let asked = (self.terms, self.training);
        // Where a limit is heeded, what is surely slower is not looked at.
        let longest = limit.filter(|_| self.is_fastest_wanted());
        let mut variants = bound.variants(asked, chip, (figures, longest));
        let price = |variant: &Variant| self.terms.price.of(variant.least);
        variants.sort_unstable_by_key(|v| (price(v), v.division, v.sharded, v.recompute));
        if variants.is_empty() {
            let fits = longest.filter(|_| bound.least_time_on(asked, chip).is_some());
            return fits.map_or(Within::Nothing, Within::Slower);
        }
        let mut timed = TimedDivisions::new();
        let on = (chip, bound);
        let Searched { best, open, .. } = self.search(on, &variants, &mut timed, limit);
        let Some(Candidate { score, found }) = best else {
            let Some(limit) = limit else { return Within::Nothing };
            // Schedules that are not proved might be shorter: then only the whole search tells.
            let perhaps = shortened(&timed).is_some_and(|mut shorter| {
                self.search(on, &variants, &mut shorter, Some(limit)).best.is_some()
            });
            return if perhaps {
                self.best_within(chip, bound, None)
            } else {
                Within::Slower(limit)
            };
        };
        let least = self.least_price(on, &variants, &timed, score.0);
        let (_, _, way) = score;
        let Some(timed) = timed.remove(&way).flatten() else { return Within::Nothing };
        let open = open.filter(|&least| least < found.rank.time);
        Within::Best(Box::new(Best { open, ..self.settled(chip, way, found, timed, least) }))
    }

    /// The best way to train on any chip.
    pub fn best_on(&self, chip: &Accelerator) -> Option<Best> {
        self.best(chip, &self.bound_on(chip))
    }

    /// The bounds of one chip alone.
    pub fn bound_on(&self, chip: &Accelerator) -> SpaceBound {
        let arrays = vec![chip.rooflines().0];
        SpaceBound::new(self.training, arrays, &[chip.design().hbm])
    }

    /// What memory asks of one division on a chip: its profile, in which nothing takes time, and the
    /// job.
    pub fn asked(&self, at: usize, chip: &Accelerator) -> Result<(Profile, Job), Untimed> {
        let division = &self.training.divisions[at];
        let job = self.job(division, chip)?;
        let profile = untimed(&division.share, self.terms.time_model);
        job.validate(&profile)?;
        Ok((profile, job))
    }

    /// Whether time is the price and nothing caps the power.
    fn is_fastest_wanted(&self) -> bool {
        self.terms.price == Price::Time && self.terms.power_cap_w.is_none()
    }

    fn search(
        &self,
        (chip, bound): (&Accelerator, &SpaceBound),
        variants: &[Variant],
        timed: &mut TimedDivisions,
        limit: Option<Time>,
    ) -> Searched {
        if self.is_fastest_wanted() {
            let measure = |division: &Division, timing: Timing| {
                let mut timed = self.measure(division, chip, timing).ok()?;
                if timing == Timing::Glance {
                    timed.shorten();
                }
                Some(timed)
            };
            let glances = &[Timing::Glance][..];
            let asked = (timed, limit.into());
            fastest::search(self, (chip, bound), variants, asked, (glances, measure))
        } else {
            cheapest::search(self, (chip, bound), variants, timed)
        }
    }

    /// The price if every schedule that is not proved ended at its bound; else the price itself.
    fn least_price(
        &self,
        on: (&Accelerator, &SpaceBound),
        variants: &[Variant],
        timed: &TimedDivisions,
        price: u128,
    ) -> u128 {
        let Some(mut shorter) = shortened(timed) else { return price };
        let found = self.search(on, variants, &mut shorter, None);
        found.best.map_or(price, |candidate| candidate.score.0.min(price))
    }

    fn settled(
        &self,
        chip: &Accelerator,
        way: Way,
        found: Found,
        timed: Timed,
        least_price: u128,
    ) -> Best {
        let division = self.training.division(way.0, way.1, self.terms);
        let standing = self.measured(chip, &division, &timed, &found);
        let setting = &division.share.setting;
        let placement = &found.placement;
        let chosen = Chosen {
            standing,
            least_price,
            strategy: Strategy {
                tensor_parallel: setting.tensor_parallel,
                sequence_parallel: setting.sequence_parallel,
                context_parallel: setting.context,
                context_kind: setting.context_kind,
                expert_parallel: setting.expert,
                expert_tensor: setting.expert_tensor,
                pipeline: placement.ranks() as u64,
                schedule: placement.schedule,
                data_parallel: placement.data_parallel,
                micro_batch: setting.micro_batch,
                zero: placement.zero,
                shards: placement.shards,
                order: placement.order,
                recompute: placement.recompute,
                repeated: setting.repeated,
            },
            devices: found.rank.devices,
        };
        let Timed { profile, job, .. } = timed;
        Best { chosen, division, found, profile, job, open: None }
    }

    /// The time and energy of a placement; `None` where it draws more than the cap.
    pub(super) fn standing(
        &self,
        chip: &Accelerator,
        division: &Division,
        timed: &Timed,
        found: &Found,
    ) -> Option<Standing> {
        let standing = self.measured(chip, division, timed, found);
        let power = standing.average_power(found.rank.devices);
        let too_much = self.terms.power_cap_w.is_some_and(|cap| power > cap);
        (!too_much).then_some(standing)
    }

    fn measured(
        &self,
        chip: &Accelerator,
        division: &Division,
        timed: &Timed,
        found: &Found,
    ) -> Standing {
        // A batch beyond the range of a time, 213 days, counts as one of that length: such a design
        // wins only where all are as slow.
        let time = Time(u64::try_from(found.rank.time).unwrap_or(u64::MAX));
        let energy = self.batch_energy(chip, division, timed);
        Standing { time, energy: energy.of(&found.placement, found.rank.devices, time) }
    }

    pub(super) fn batch_energy<'b>(
        &'b self,
        chip: &'b Accelerator,
        division: &'b Division,
        timed: &'b Timed,
    ) -> BatchEnergy<'b> {
        BatchEnergy {
            passes: &timed.passes,
            profile: &timed.profile,
            parameters: timed.profile.layers().map(LayerProfile::by_replicas).sum(),
            job: &timed.job,
            chip,
            optimizer: self.terms.optimizer,
            table: self.table,
            cluster: &division.cluster,
        }
    }

    /// How long the layers of a division take on a chip; `None` where that cannot be said.
    pub(super) fn timed(&self, division: &Division, chip: &Accelerator) -> Option<Timed> {
        self.measure(division, chip, Timing::Exact).ok()
    }

    pub(super) fn job(&self, division: &Division, chip: &Accelerator) -> Result<Job, TooLarge> {
        let Terms { optimizer, time_model, global_batch, .. } = *self.terms;
        let micro_batches = global_batch / division.share.setting.micro_batch;
        let around = (chip, &division.cluster);
        Ok(Job {
            memory: self.terms.usable(chip.design().hbm).0,
            ends: self.terms.ends(),
            ..job(around, optimizer, micro_batches, time_model, self.table)?
        })
    }

    pub(super) fn measure(
        &self,
        division: &Division,
        chip: &Accelerator,
        timing: Timing,
    ) -> Result<Timed, Untimed> {
        let Division { share, cluster, graphs, .. } = division;
        let around = (chip, cluster);
        let Terms { rule, time_model, .. } = *self.terms;
        let limits = timing.limits().unwrap_or(&Limits::NO_SEARCH);
        let passes = graphs.passes_within(share, around, (self.table, rule), limits)?;
        let job = self.job(division, chip)?;
        let profile = profile(share, &passes, time_model);
        job.validate(&profile)?;
        Ok(Timed { passes, profile, job })
    }
}

/// The same divisions with every schedule that is not proved as short as its bound; `None` where all
/// are proved.
fn shortened(timed: &TimedDivisions) -> Option<TimedDivisions> {
    let unproved = |pass: &PassTime| pass.proof.kind == ProofKind::None;
    let is_unproved = |timed: &Timed| {
        timed.passes.iter().any(|kind| unproved(&kind.forward) || unproved(&kind.backward))
    };
    if !timed.values().flatten().any(is_unproved) {
        return None;
    }
    let mut shorter = timed.clone();
    shorter.values_mut().flatten().for_each(Timed::shorten);
    Some(shorter)
}
