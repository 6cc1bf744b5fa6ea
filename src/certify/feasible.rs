//! Whether a model fits at all: memory and devices decide, and how fast a chip is does not matter,
//! so one answer holds for every design with the same off-chip memory.
//!
//! What a stage holds is asked of its definition. Of all numbers of pipelines the greatest holds the
//! least, of all numbers of repeated layers the greatest. A rank of several virtual stages has, when
//! its first backward pass is due, of each of them at least as many micro-batches in flight as a
//! rank with one stage at the same place ever has: where interleaved pipelines fit, so does the plain
//! one with as many layers of each kind on every rank.

use crate::parallel::Order;
use crate::parallel::frameworks::Framework;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;
use crate::plan::CutSpace;
use crate::plan::Job;
use crate::plan::Links;
use crate::plan::PassOrder;
use crate::plan::PerParameter;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageRules;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::search::sentences::Hindrance;
use crate::units::Bytes;

use super::divide::Asked;
use super::divide::Divided;
use super::divide::Sharded;
use super::legal;
use super::placed::ends;
use super::placed::even_ends;
use super::placed::profile_of;
use super::placed::untimed;
use super::rebuild::Question;

/// Whether something fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Surely not.
    No,
    /// Only a solver knows: some layout of several virtual stages for each rank may.
    Perhaps,
    /// Surely.
    Yes,
}

/// Beyond so many replicas, what they share is next to nothing.
const MOST_REPLICAS: u64 = 4096;

/// A division as far as memory is concerned.
struct Holding<'a> {
    asked: &'a Asked<'a>,
    divided: &'a Divided,
    sharded: Option<Sharded>,
    profile: Profile,
    job: Job,
}

impl<'a> Holding<'a> {
    /// On devices that may be filled up to `capacity` bytes.
    fn new(
        asked: &'a Asked<'a>,
        divided: &'a Divided,
        sharded: Option<Sharded>,
        capacity: u64,
    ) -> Self {
        let share = &divided.share;
        let Asked { optimizer, time_model, .. } = *asked;
        let kinds = share.kinds.iter().map(|layer| untimed(layer, time_model, asked.stack));
        Self {
            asked,
            divided,
            sharded,
            profile: profile_of(share, kinds.collect()),
            job: Job {
                micro_batches: asked.global_batch / share.setting.micro_batch,
                devices: divided.devices,
                memory: capacity,
                installed: capacity,
                links: Links::Rate { power: 0, rate: 1, longest: 0 },
                per_parameter: PerParameter {
                    weight: optimizer.weight().0,
                    gradient: optimizer.gradient().0,
                    exchanged: asked.stack.gradient_bytes.map(u64::from),
                    state: optimizer.state().0,
                    step_per_gibi: 0,
                },
                time_model,
                ends: ends(asked.space, time_model, asked.stack),
            },
        }
    }

    /// Whether some strategy of this division fits, with one of the recompute choices.
    fn fits(&self, recompute: &[Recompute]) -> Fit {
        let space = self.asked.space;
        let plain = |cut: CutSpace| {
            recompute.iter().any(|&recompute| self.some_plain_pipeline_fits(recompute, cut))
        };
        if space.chunks.least <= 1 && plain(space.cut) {
            return Fit::Yes;
        }
        let interleaves =
            space.chunks.most > 1 && self.job.time_model == TimeModel::OneForwardOneBackward;
        let settled = space.chunks.least <= 1 && space.cut == CutSpace::Best;
        if interleaves && !settled && plain(CutSpace::Best) { Fit::Perhaps } else { Fit::No }
    }

    /// Whether some pipeline with one stage for each rank fits.
    fn some_plain_pipeline_fits(&self, recompute: Recompute, cut: CutSpace) -> bool {
        // As many layers as are needed: all hold the least, but a framework may refuse to repeat any.
        let ways = match recompute {
            Recompute::AsNeeded => vec![Recompute::EVERY_LAYER, Recompute::First(0)],
            other => vec![other],
        };
        let mut ranks = self.divided.ranks(self.asked.space).rev();
        ranks.any(|ranks| {
            let zeros = Divided::zeros(self.asked.space, self.sharded, ranks);
            zeros.into_iter().any(|zero| {
                let shapes = ways.iter().filter_map(|&how| self.shape(ranks, zero, how));
                shapes.into_iter().any(|shape| match cut {
                    CutSpace::Best => self.some_cut_fits(shape),
                    CutSpace::Even => self.even_cut_fits(shape),
                })
            })
        })
    }

    /// The shape with so many ranks that holds the least, where the framework accepts one.
    fn shape(&self, ranks: u64, zero: Zero, recompute: Recompute) -> Option<Shape> {
        let Asked { space, .. } = *self.asked;
        let (least, most) = self.divided.pipelines(self.asked, self.sharded, ranks)?;
        let shares = |copies: u64| zero > Zero::Nothing && self.divided.replicas(copies) > 1;
        // Groups that share are even, and every expert is held equally often.
        let even = |copies: &u64| {
            let shards = space.shards.filter(|_| shares(*copies));
            shards.is_none_or(|shards| self.divided.are_even(*copies, shards))
        };
        let data_parallel = (least..=most)
            .rev()
            .filter(|&copies| self.divided.holds_experts_evenly(copies))
            .take(MOST_TRIED)
            .find(even)?;
        let zero = if shares(data_parallel) { zero } else { Zero::Nothing };
        let shape = Shape {
            data_parallel,
            ranks: usize::try_from(ranks).ok()?,
            schedule: PassOrder::OneForwardOneBackward,
            zero,
            shards: space.shards.filter(|_| zero > Zero::Nothing),
            order: Order::default(),
            recompute,
        };
        self.is_accepted(&shape).then_some(shape)
    }

    /// Whether the framework accepts a plan of a shape, whatever its cut.
    fn is_accepted(&self, shape: &Shape) -> bool {
        let setting = &self.divided.share.setting;
        let strategy = Strategy {
            tensor_parallel: setting.tensor_parallel,
            sequence_parallel: setting.sequence_parallel,
            context_parallel: setting.context,
            context_kind: setting.context_kind,
            expert_parallel: setting.expert,
            expert_tensor: setting.expert_tensor,
            pipeline: shape.ranks as u64,
            schedule: shape.schedule,
            data_parallel: shape.data_parallel,
            micro_batch: setting.micro_batch,
            zero: shape.zero,
            shards: shape.shards,
            order: shape.order,
            recompute: shape.recompute,
            repeated: setting.repeated,
        };
        let repeated = match shape.recompute {
            Recompute::None | Recompute::First(0) => RepeatedLayers::None,
            Recompute::Full | Recompute::EVERY_LAYER => RepeatedLayers::All,
            Recompute::Stage if shape.ranks == 1 => RepeatedLayers::None,
            Recompute::Stage => RepeatedLayers::Stages,
            Recompute::First(_) | Recompute::AsNeeded => RepeatedLayers::OneNumber,
        };
        // A plan that confines itself to fewer devices leaves the others idle.
        let plan = legal::shape(self.asked, &strategy, repeated);
        self.asked.space.framework.check(&plan).is_ok()
    }

    /// Whether a stage fits that holds the layers `from..to`.
    fn stage_fits(&self, rules: &StageRules, stage: usize, from: usize, to: usize) -> bool {
        let layers: Vec<usize> = (from..to).collect();
        let cost = rules.rank(stage, &[(&layers, rules.stage(stage, &layers))]);
        cost.memory.total() <= u128::from(self.job.memory)
    }

    /// Whether some cut of a shape fits: from the last stage on, each takes as many layers as it can
    /// while one is left for every stage before it.
    ///
    /// More layers never hold less, and what enters a stage is of one size wherever it begins, the
    /// first stage apart, which begins at the first layer in every cut. So stages that reach further
    /// down never leave more to those before them.
    fn some_cut_fits(&self, shape: Shape) -> bool {
        let rules = StageRules::new(&self.profile, &self.job, shape);
        let mut to = self.profile.n_layers();
        for stage in (0..shape.ranks).rev() {
            if stage == 0 {
                return to > 0 && self.stage_fits(&rules, 0, 0, to);
            }
            if to <= stage || !self.stage_fits(&rules, stage, to - 1, to) {
                return false;
            }
            // Invariant: a stage from `fits` on fits; one from below `low` on does not, or leaves
            // too few layers.
            let (mut low, mut fits) = (stage, to - 1);
            while low < fits {
                let middle = usize::midpoint(low, fits);
                if self.stage_fits(&rules, stage, middle, to) {
                    fits = middle;
                } else {
                    low = middle + 1;
                }
            }
            to = fits;
        }
        false
    }

    fn even_cut_fits(&self, shape: Shape) -> bool {
        let rules = StageRules::new(&self.profile, &self.job, shape);
        let ends = even_ends(&self.profile.sequence, shape.ranks);
        let starts = [0].into_iter().chain(ends.iter().copied());
        let mut stages = starts.zip(&ends).enumerate();
        !ends.is_empty()
            && stages.all(|(stage, (from, &to))| self.stage_fits(&rules, stage, from, to))
    }
}

/// Numbers of pipelines that are looked at for one whose groups are even.
const MOST_TRIED: usize = 1 << 16;

/// Whether some of these divisions fits on devices with so much memory.
pub fn some_fit(asked: &Asked, divisions: &[Divided], installed: Bytes) -> Fit {
    let capacity = asked.usable(installed.0);
    let mut best = Fit::No;
    for divided in divisions {
        for sharded in divided.shardings(asked) {
            let holding = Holding::new(asked, divided, sharded, capacity);
            best = best.max(holding.fits(&asked.space.recompute));
            if best == Fit::Yes {
                return best;
            }
        }
    }
    best
}

/// Whether some way of the request to train a model fits on devices with so much memory.
pub fn fits(question: &Question, model: usize, installed: Bytes) -> Fit {
    some_fit(&question.asked(model), &question.models[model].divisions, installed)
}

/// Whether every model of the request fits.
pub fn all_fit(question: &Question, installed: Bytes) -> Fit {
    let models = 0..question.models.len();
    models.map(|model| fits(question, model, installed)).min().unwrap_or(Fit::Yes)
}

/// Why a model fits nowhere, told at its widest division with the least kept and the most memory;
/// `None` where it does fit so, or where only a solver knows.
pub fn hindrance(question: &Question, model: usize) -> Option<String> {
    let request = &question.request;
    let trained = &question.models[model];
    let asked = question.asked(model);
    let divided = trained.divisions.iter().max_by_key(|divided| {
        let setting = &divided.share.setting;
        (setting.tensor_parallel, std::cmp::Reverse(setting.micro_batch))
    })?;
    let gib = *request.space.hbm_gib.iter().max()?;
    let least = [Recompute::AsNeeded, Recompute::Full, Recompute::Stage, Recompute::None];
    let choices = &asked.space.recompute;
    let recompute = least.into_iter().find(|how| choices.contains(how));
    let recompute = recompute.or(choices.last().copied())?;
    let capacity = asked.usable((Bytes::GIB * gib).0);
    // What shares most holds least.
    let sharded = divided.shardings(&asked).into_iter().max().flatten();
    let holding = Holding::new(&asked, divided, sharded, capacity);
    if holding.fits(&[recompute]) != Fit::No {
        return None;
    }
    let needs =
        (0..holding.profile.n_layers()).map(|layer| (holding.alone(layer, recompute), layer));
    let (needed, layer) =
        needs.max_by_key(|&(needed, layer)| (needed, std::cmp::Reverse(layer)))?;
    let hindrance = if needed > u128::from(capacity) {
        Hindrance::Layer {
            layer,
            name: holding.profile.layer(layer).name.clone(),
            needed_gib: needed as f64 / Bytes::GIB.0 as f64,
        }
    } else {
        match holding.fewest_devices(recompute) {
            Some(needed) => Hindrance::Devices { needed, available: request.devices },
            None => Hindrance::Activations,
        }
    };
    Some(hindrance.sentence(&trained.name, gib, divided.share.setting.tensor_parallel))
}

impl Holding<'_> {
    /// What a layer needs alone with one micro-batch in flight, everything shared as widely as it
    /// can be.
    fn alone(&self, layer: usize, recompute: Recompute) -> u128 {
        let space = self.asked.space;
        let room = self.divided.devices / self.divided.devices_per_rank();
        let most_copies = room.min(self.job.micro_batches).min(space.data_parallel.most);
        let most_copies = self.sharded.map_or(most_copies, |sharded| sharded.data_parallel);
        let zeros = [1, 2].into_iter().flat_map(|ranks| Divided::zeros(space, self.sharded, ranks));
        let needs = zeros.map(|zero| {
            let data_parallel = if zero == Zero::Nothing { 1 } else { most_copies.max(1) };
            let shape = Shape {
                data_parallel,
                ranks: 1,
                schedule: PassOrder::OneForwardOneBackward,
                zero,
                shards: space.shards.filter(|_| zero > Zero::Nothing),
                order: Order::default(),
                recompute: match recompute {
                    Recompute::AsNeeded => Recompute::EVERY_LAYER,
                    other => other,
                },
            };
            let one_each = Job {
                micro_batches: data_parallel,
                time_model: TimeModel::OneForwardOneBackward,
                ..self.job.clone()
            };
            let rules = StageRules::new(&self.profile, &one_each, shape);
            let layers = [layer];
            rules.rank(0, &[(&layers, rules.stage(0, &layers))]).memory.total()
        });
        needs.min().unwrap_or(0)
    }

    /// The fewest devices on which it fits, some of them idle or not; `None` where none do.
    fn fewest_devices(&self, recompute: Recompute) -> Option<u64> {
        let Self { asked, divided, sharded, .. } = *self;
        let space = StrategySpace { framework: Framework::Any, ..asked.space.clone() };
        let possible = |devices: u64| {
            let asked = Asked { devices, space: &space, ..*asked };
            let divided = Divided { devices, ..divided.clone() };
            let holding = Holding::new(&asked, &divided, sharded, self.job.memory);
            holding.fits(&[recompute]) != Fit::No
        };
        let copies = sharded.map_or(space.data_parallel.most, |sharded| sharded.data_parallel);
        let copies = self.job.micro_batches.min(MOST_REPLICAS).min(copies).max(1);
        let deepest = divided.share.setting.devices() * divided.share.sequence.len() as u64;
        // Invariant: `few` devices do not suffice; `enough` do. More devices never hurt.
        let (mut few, mut enough) = (0, deepest.saturating_mul(copies));
        if !possible(enough) {
            return None;
        }
        while few + 1 < enough {
            let middle = few + (enough - few) / 2;
            if possible(middle) { enough = middle } else { few = middle }
        }
        Some(enough)
    }
}
