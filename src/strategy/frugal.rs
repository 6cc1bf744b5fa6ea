//! An energy that no way to train can beat on a chip, nor on any of a box: operators by the least energy of any
//! mapping, and all devices at rest for as long as passes, at their least, let a batch last.
//!
//! The chip is the greatest of the box, with the energies and the power at rest of the least (docs/search.md,
//! energies). Nothing is placed: what no cut of a number of ranks can beat is found by formulas, so that hundreds of
//! variants take as long as the estimates of their operators.

use std::collections::BTreeMap;

use super::Figures;
use super::Planner;
use super::SpaceBound;
use super::Terms;
use super::Variant;
use super::Way;
use super::fastest::Timing;
use super::pipeline_bound::LayerCosts;
use super::pipeline_bound::forward_passes;
use super::pipeline_memory::Stages;
use super::training::Division;
use crate::hardware::Accelerator;
use crate::plan::Profile;
use crate::profile;
use crate::units::Energy;

/// Whether a chip, or one of a box for which it stands, may train within a limit of energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnergyReach {
    /// At the least of everything a batch takes so much, which is within the limit.
    Within(Energy),
    /// Every batch takes more than the limit on each of them.
    Beyond,
    /// Nothing fits on any of them.
    Nothing,
}

/// Divisions with their layers' least times and energies, each found when first asked for; `None` where an operator
/// is too large to be timed: such a division is left out.
#[derive(Default)]
pub(super) struct LeastDivisions(BTreeMap<(Way, bool), Option<LeastLayers>>);

struct LeastLayers {
    profile: Profile,
    energies: Vec<[Energy; 2]>,
}

impl SpaceBound {
    /// An energy that no placement of a variant can beat whose layers take these times and energies, forward and
    /// backward by kind of layer; `None` where nothing fits.
    fn least_energy_of(
        &self,
        variant: &Variant,
        (terms, division): (&Terms, &Division),
        chip: &Accelerator,
        (profile, energies): (&Profile, &[[Energy; 2]]),
    ) -> Option<Energy> {
        let (layers, pipelines) = self.bounds_of(variant, chip)?;
        let setting = &division.share.setting;
        let forwards = forward_passes(variant.recompute) as f64;
        let of_kind = |(&[forward, backward], count): (&[Energy; 2], u64)| {
            (forward.0 as f64 * forwards + backward.0 as f64) * count as f64
        };
        let once: f64 = energies.iter().zip(division.occurrences()).map(of_kind).sum();
        let [again, _] = energies.get(division.repeated.0).copied().unwrap_or_default();
        let sharers = setting.devices() as f64;
        let costs = LayerCosts {
            once: once * sharers,
            again: again.0 as f64 * sharers,
            // A microwatt for a picosecond is a thousandth of a femtojoule.
            at_rest: chip.static_power_uw() as f64 / 1000.0,
            micro_batches: (terms.global_batch / setting.micro_batch) as f64,
            devices_per_stage: division.devices_per_stage() as f64,
        };
        let least = pipelines.least_energy(layers.profiled_times(profile), costs)?;
        // Each device may round down.
        Some(whole_femtojoules(least - division.cluster.devices as f64))
    }

    /// Forward passes of repeated layers that memory asks to run again at the least for each micro-batch, in a
    /// placement of a variant with so many ranks, so many pipelines and so many virtual stages for each rank.
    pub(super) fn least_repeats(
        &self,
        terms: &Terms,
        (variant, division, chip): (&Variant, &Division, &Accelerator),
        (ranks, pipelines, chunks): (u64, u64, usize),
    ) -> f64 {
        let stages = if chunks > 1 { Stages::Several } else { Stages::One };
        let micro_batches = terms.global_batch / division.share.setting.micro_batch;
        let rounds = micro_batches.div_ceil(pipelines);
        let bound = self.bounds_of(variant, chip);
        bound.map_or(0.0, |(_, bound)| bound.least_repeats((ranks, pipelines, rounds), stages))
    }
}

/// A float energy as whole femtojoules that are no more.
fn whole_femtojoules(energy: f64) -> Energy {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounding down is wanted, and the cast ends at 0 and at the largest energy"
    )]
    let whole = energy as u128;
    Energy(whole)
}

impl Planner<'_> {
    /// Whether any way to train may take at most `limit` on a chip, whose bounds were prepared, or on one for which
    /// it stands; the least of all where that is asked for, else the first that is found.
    pub fn reach_energy(
        &self,
        chip: &Accelerator,
        bound: &SpaceBound,
        (mut limit, asks_for_least): (Energy, bool),
    ) -> EnergyReach {
        let mut variants =
            bound.variants((self.terms, self.training), chip, (Figures::TimeAndEnergy, None));
        variants.sort_unstable_by_key(|variant| (variant.least.energy, variant.name()));
        if variants.is_empty() {
            return EnergyReach::Nothing;
        }
        let mut known = LeastDivisions::default();
        let mut found = None;
        for variant in &variants {
            if variant.least.energy > limit {
                break;
            }
            let least = self.least_energy_of(variant, (chip, bound), &mut known, limit);
            if let Some(least) = least.filter(|least| *least <= limit) {
                (found, limit) = (Some(least), least);
                if !asks_for_least {
                    break;
                }
            }
        }
        found.map_or(EnergyReach::Beyond, EnergyReach::Within)
    }

    /// What all passes of a micro-batch take at the least where a model is divided in one way, however long they
    /// last, to guess by.
    pub fn least_work(&self, chip: &Accelerator, (division, sharded): Way) -> Option<Energy> {
        let divided = self.training.division(division, sharded, self.terms);
        let on = (chip, &divided.cluster);
        let energies = profile::least_energies(&divided.share, on, self.table).ok()?;
        let each = energies.into_iter().zip(divided.occurrences());
        Some(each.map(|([forward, backward], count)| (forward + backward) * count).sum())
    }

    /// An energy that no placement of a variant can beat, looked for more closely only as long as it is within a
    /// limit; `None` where nothing fits.
    pub(super) fn least_energy_of(
        &self,
        variant: &Variant,
        (chip, bound): (&Accelerator, &SpaceBound),
        known: &mut LeastDivisions,
        limit: Energy,
    ) -> Option<Energy> {
        let way = (variant.division, variant.sharded);
        let divided = self.training.division(variant.division, variant.sharded, self.terms);
        let mut least = variant.least.energy;
        for closely in [false, true] {
            if least > limit {
                break;
            }
            let layers = known.0.entry((way, closely));
            let layers = layers.or_insert_with(|| self.least_layers(&divided, chip, closely));
            let LeastLayers { profile, energies } = layers.as_ref()?;
            let of = (self.terms, &*divided);
            let layers = (profile, &energies[..]);
            least = least.max(bound.least_energy_of(variant, of, chip, layers)?);
        }
        Some(least)
    }

    fn least_layers(
        &self,
        division: &Division,
        chip: &Accelerator,
        closely: bool,
    ) -> Option<LeastLayers> {
        let timing = if closely { Timing::Glance } else { Timing::Sketch };
        let profile = self.at_the_least(division, chip, timing).ok()?.profile;
        let on = (chip, &division.cluster);
        let energies = profile::least_energies(&division.share, on, self.table).ok()?;
        Some(LeastLayers { profile, energies })
    }
}
