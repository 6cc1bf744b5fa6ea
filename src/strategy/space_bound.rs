//! The bounds of all divisions of a model, each prepared when it is first needed.
//!
//! In: a [`Training`], the shapes of arrays and the sizes of memory of a space. Out, for a chip: a
//! [`Variant`] for each division and recompute choice, with a time and an energy that none of its
//! placements can beat.
//!
//! Of many memories and links few divisions are ever the best. What a division cannot beat on the greatest memory and
//! links, it cannot beat on any others either (docs/search.md, the roofline never rises): where that is no better than
//! what is known already, its own bounds are not prepared.

use std::sync::Arc;
use std::sync::OnceLock;

use super::Terms;
use super::bound::DivisionSketch;
use super::bound::Pipelines;
use super::bound::least_energy;
use super::bound::pipelines;
use super::pipeline_bound::LayerTimes;
use super::pipeline_bound::PipelineBound;
use super::price::Standing;
use super::roofline::PeakRates;
use super::roofline::lowered;
use super::training::Sharded;
use super::training::Training;
use crate::hardware::Accelerator;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// The bounds of one model, for every shape of array and size of memory of a space.
#[derive(Debug)]
pub struct SpaceBound {
    /// Ascending.
    arrays: Arc<[(u64, u64)]>,
    memories: Vec<Bytes>,
    /// By division; bounds for other memories share them.
    sketches: Arc<[OnceLock<DivisionSketch>]>,
    /// By division, then by size of off-chip memory.
    pipelines: Vec<OnceLock<Vec<Pipelines>>>,
    /// Those of chips with as much memory and as fast links or more, all of them prepared.
    greater: Option<Arc<Self>>,
}

/// A division and a recompute choice, with what none of its placements can beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Which division of the training.
    pub division: usize,
    /// What replicas exchange inside every layer, where they do.
    pub sharded: Option<Sharded>,
    /// What is computed again.
    pub recompute: Recompute,
    /// The least time and energy of a batch.
    pub least: Standing,
    /// The place of its bound among those of its division.
    place: usize,
}

/// What a variant is called on every chip: its division, what replicas exchange inside layers, what is computed again.
pub type VariantName = (usize, Option<Sharded>, Recompute);

impl Variant {
    /// What it is called on every chip.
    pub fn name(&self) -> VariantName {
        (self.division, self.sharded, self.recompute)
    }
}

/// Which figures a bound is asked for: energy takes longer, and few objectives need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figures {
    /// The energy is answered as 0.
    Time,
    /// Both.
    TimeAndEnergy,
}

/// What bounds are made of: what may be chosen, and what is trained.
type Asked<'a> = (&'a Terms, &'a Training);

/// More than rounding, and what bounds are lowered by for it, changes, relative.
const ROUNDING: f64 = 1e-8;

impl SpaceBound {
    /// Bounds for arrays of these shapes and devices of these sizes of memory.
    pub fn new(training: &Training, mut arrays: Vec<(u64, u64)>, memories: &[Bytes]) -> Self {
        arrays.sort_unstable();
        arrays.dedup();
        let divisions = 0..training.divisions.len();
        Self {
            arrays: arrays.into(),
            memories: memories.to_vec(),
            sketches: divisions.clone().map(|_| OnceLock::new()).collect(),
            pipelines: divisions.map(|_| OnceLock::new()).collect(),
            greater: None,
        }
    }

    /// The same for devices with one other size of memory; `greater` are the bounds of chips with as much memory or
    /// more, the same arrays and links that are as fast or faster, all of them [prepared](Self::prepare).
    #[must_use]
    pub fn with_memory(&self, memory: Bytes, greater: Option<Arc<Self>>) -> Self {
        Self {
            arrays: Arc::clone(&self.arrays),
            memories: vec![memory],
            sketches: Arc::clone(&self.sketches),
            pipelines: self.pipelines.iter().map(|_| OnceLock::new()).collect(),
            greater,
        }
    }

    /// Prepares the bounds of every division.
    pub fn prepare(&self, asked: Asked) {
        for division in 0..self.pipelines.len() {
            self.sketch_of(asked, division);
            self.pipelines_of(asked, division);
        }
    }

    /// All variants that may fit on a chip whose array and memory are among those of the space; where times alone are
    /// asked for, those that surely take longer than `limit` may be left out.
    pub fn variants(
        &self,
        asked @ (terms, training): Asked,
        chip: &Accelerator,
        (figures, limit): (Figures, Option<Time>),
    ) -> Vec<Variant> {
        let (array, memory) = self.places(chip);
        let rates = PeakRates::of(chip);
        let longest = limit.filter(|_| figures == Figures::Time);
        // A bound is rounded down to a whole number.
        let longest = longest.map(|limit| (limit.0 as f64 + 1.0) * (1.0 + ROUNDING));
        let mut scratch = Vec::new();
        let mut variants = Vec::new();
        for division in 0..self.pipelines.len() {
            let mut floor = |longest| self.floor(division, (array, &rates), longest, &mut scratch);
            if longest.is_some_and(|longest| floor(longest) >= longest) {
                continue;
            }
            let sketch = self.sketch_of(asked, division);
            let times = sketch.layer_times(array, &rates, &mut scratch);
            let own = &self.pipelines_of(asked, division)[memory];
            for (place, (sharded, recompute, pipeline)) in own.iter().enumerate() {
                let Some(time) = pipeline.least_time(times) else { continue };
                let energy = match figures {
                    Figures::Time => Energy::ZERO,
                    Figures::TimeAndEnergy => {
                        let divided = &training.divisions[division];
                        let needs = (sketch.work(times, *recompute), sketch.array_bytes[array]);
                        least_energy(terms, divided, *recompute, needs, chip)
                    }
                };
                let least = Standing { time: Time(time), energy };
                let (sharded, recompute) = (*sharded, *recompute);
                variants.push(Variant { division, sharded, recompute, least, place });
            }
        }
        variants
    }

    /// A time that no placement of a variant can beat whose layers take these times; `None` where
    /// nothing fits.
    pub fn least_time(
        &self,
        variant: &Variant,
        chip: &Accelerator,
        profile: &Profile,
    ) -> Option<u64> {
        let memory = self.memories.iter().position(|&size| size == chip.design().hbm)?;
        let (sketch, own) =
            (self.sketches[variant.division].get()?, self.pipelines[variant.division].get()?);
        own[memory][variant.place].2.least_time(sketch.profiled_times(profile))
    }

    /// What bounds a variant on a chip: its layers, and the numbers of ranks that are possible; `None` where these
    /// were not prepared.
    pub(super) fn bounds_of(
        &self,
        variant: &Variant,
        chip: &Accelerator,
    ) -> Option<(&DivisionSketch, &PipelineBound)> {
        let memory = self.memories.iter().position(|&size| size == chip.design().hbm)?;
        let own = self.pipelines[variant.division].get()?;
        Some((self.sketches[variant.division].get()?, &own[memory][variant.place].2))
    }

    /// The same of whatever variant of one way to divide and to share is the least.
    pub(super) fn least_time_of(
        &self,
        asked: Asked,
        (division, sharded): (usize, Option<Sharded>),
        (chip, profile): (&Accelerator, &Profile),
    ) -> Option<u64> {
        let memory = self.memories.iter().position(|&size| size == chip.design().hbm)?;
        let times = self.sketch_of(asked, division).profiled_times(profile);
        let own = self.pipelines_of(asked, division)[memory].iter();
        let own = own.filter(|(of, ..)| *of == sharded);
        own.filter_map(|(.., pipeline)| pipeline.least_time(times)).min()
    }

    /// What no way to train on a chip can beat in time, nor in energy; `None` where it surely does
    /// not fit.
    pub fn least(&self, asked: Asked, chip: &Accelerator, figures: Figures) -> Option<Standing> {
        if figures == Figures::Time {
            let time = self.least_time_on(asked, chip)?;
            return Some(Standing { time, energy: Energy::ZERO });
        }
        let variants = self.variants(asked, chip, (figures, None));
        let least = variants.iter().map(|variant| variant.least);
        least.reduce(|a, b| Standing { time: a.time.min(b.time), energy: a.energy.min(b.energy) })
    }

    /// The least time of all variants, of which most are passed over.
    pub(super) fn least_time_on(&self, asked: Asked, chip: &Accelerator) -> Option<Time> {
        let (array, memory) = self.places(chip);
        let rates = PeakRates::of(chip);
        let mut scratch = Vec::new();
        let mut least = f64::INFINITY;
        let below = |division: usize, scratch: &mut Vec<f64>, known: f64| {
            let times = self.sketch_of(asked, division).layer_times(array, &rates, scratch);
            least_below(&self.pipelines_of(asked, division)[memory], times, known)
        };
        let is_ready = |division: &usize| self.greater.is_none() || self.is_prepared(*division);
        let (ready, others): (Vec<usize>, Vec<usize>) =
            (0..self.pipelines.len()).partition(is_ready);
        for division in ready {
            least = below(division, &mut scratch, least);
        }
        let floors = others.into_iter().map(|division| {
            (
                self.floor(division, (array, &rates), least * (1.0 + ROUNDING), &mut scratch),
                division,
            )
        });
        let mut floors: Vec<(f64, usize)> = floors.collect();
        floors.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (floor, division) in floors {
            if floor >= least * (1.0 + ROUNDING) {
                break;
            }
            least = below(division, &mut scratch, least);
        }
        (least < f64::INFINITY).then(|| Time(lowered(least)))
    }

    /// What a division that was not prepared cannot beat, or `known` where that is less or nothing fits: 0 where nothing
    /// is known of it.
    fn floor(
        &self,
        division: usize,
        (array, rates): (usize, &PeakRates),
        known: f64,
        scratch: &mut Vec<f64>,
    ) -> f64 {
        let greater = self.greater.as_ref().filter(|_| !self.is_prepared(division));
        let ready = greater.and_then(|greater| {
            let sketch = greater.sketches[division].get()?;
            Some((sketch, greater.pipelines[division].get()?.first()?))
        });
        let Some((sketch, own)) = ready else { return 0.0 };
        least_below(own, sketch.layer_times(array, rates, scratch), known)
    }

    fn is_prepared(&self, division: usize) -> bool {
        self.sketches[division].get().is_some() && self.pipelines[division].get().is_some()
    }

    fn sketch_of(&self, (_, training): Asked, division: usize) -> &DivisionSketch {
        let make = || DivisionSketch::new(&training.divisions[division], &self.arrays);
        self.sketches[division].get_or_init(make)
    }

    fn pipelines_of(&self, (terms, training): Asked, division: usize) -> &[Pipelines] {
        self.pipelines[division].get_or_init(|| {
            let of = |&memory| pipelines(terms, &training.divisions[division], memory);
            self.memories.iter().map(of).collect()
        })
    }

    /// The places of a chip's array and memory among those of the space.
    fn places(&self, chip: &Accelerator) -> (usize, usize) {
        let array = self.arrays.binary_search(&chip.rooflines().0);
        let memory = self.memories.iter().position(|&size| size == chip.design().hbm);
        let array = array.expect("the array of a chip is one of the space");
        (array, memory.expect("the memory of a chip is one of the space"))
    }
}

/// The least time of a division, or `known` where that is less or nothing fits.
fn least_below(own: &Pipelines, times: LayerTimes, known: f64) -> f64 {
    own.iter().fold(known, |least, (_, _, pipeline)| pipeline.least_below(times, least))
}
