//! How a model may be divided: every share that a space allows, and the share of one strategy.

use std::ops::RangeInclusive;

use crate::model::Attention;
use crate::model::Masked;
use crate::model::Model;
use crate::model::Optimizer;
use crate::model::Stack;
use crate::parallel::Illegal;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::is_legal;
use crate::parallel::legal_widths;
use crate::parallel::shard;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Sharers;
use crate::parallel::zero::Zero;
use crate::parallel::zero::with_exchanges;
use crate::plan::Limits;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::units::Bytes;

/// What is asked of a model, as far as strategies depend on it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// What is trained.
    pub model: &'a Model,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Devices at hand.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// What may be chosen.
    pub space: &'a StrategySpace,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// What fused attention does with what a causal mask hides.
    pub masked: Masked,
    /// The size of an element.
    pub element: Bytes,
    /// What software makes of layers.
    pub stack: Stack,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// Thousandths of a device's memory that plans leave free.
    pub reserve_per_mille: i64,
}

/// A model divided in one way.
#[derive(Clone, Debug)]
pub struct Divided {
    /// What one device does, exchanges of gradients and weights inside layers apart.
    pub share: Share,
    /// The devices that plans of this division confine themselves to.
    pub devices: u64,
}

/// Replicas that exchange gradients or weights inside every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sharded {
    /// What they share.
    pub zero: Zero,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Ranks of a pipeline.
    pub ranks: u64,
}

impl Asked<'_> {
    /// How one device works in a strategy.
    pub fn setting(&self, strategy: &Strategy) -> Setting {
        Setting {
            micro_batch: strategy.micro_batch,
            sequence: self.sequence,
            tensor_parallel: strategy.tensor_parallel,
            sequence_parallel: strategy.sequence_parallel,
            context: strategy.context_parallel,
            context_kind: strategy.context_kind,
            expert: strategy.expert_parallel,
            expert_tensor: strategy.expert_tensor,
            attention: self.attention,
            repeated: strategy.repeated,
            masked: self.masked,
            element: self.element,
            stack: self.stack,
        }
    }

    /// The share of one device in a strategy, with what its replicas exchange inside layers.
    pub fn share(&self, strategy: &Strategy) -> Result<Share, Illegal> {
        let share = shard(self.model, self.setting(strategy))?;
        Ok(match strategy.zero {
            Zero::Nothing | Zero::State => share,
            zero @ (Zero::Gradients | Zero::Weights) => {
                let copies = strategy.data_parallel;
                let replicas = copies.saturating_mul(share.setting.context);
                let shards = strategy.shards.map_or(replicas, |shards| shards.min(replicas));
                let bytes = ParameterBytes::new(self.optimizer, &self.stack);
                let sharers = Sharers::of(&share.setting, copies, shards);
                with_exchanges(&share, zero, sharers, bytes)
            }
        })
    }

    /// Whether replicas may exchange inside layers in so many copies of a pipeline: where any number
    /// of devices may be used, copies are a power of two then, unless their number is given.
    pub fn may_exchange_inside(&self, copies: u64) -> bool {
        let Limits { least, most } = self.space.data_parallel;
        !self.space.framework.may_idle() || least == most || copies.is_power_of_two()
    }

    /// Operations of training one sequence without what a causal mask hides; `None` where attention
    /// computes all of it, or the sequence is too long for the model.
    pub fn causal_flops_per_sequence(&self) -> Option<u128> {
        let Self { sequence, attention, masked, .. } = *self;
        let setting = Setting { sequence, attention, masked, ..Setting::ALONE };
        let share = shard(self.model, setting).ok()?;
        let layers = || share.sequence.iter().map(|&kind| &share.kinds[kind]);
        let hidden: u128 = layers().map(|layer| layer.hidden.0).sum();
        let done: u128 = layers().map(|layer| layer.training_flops().0).sum();
        (hidden > 0).then_some(done)
    }

    /// What a plan may fill of a device with so much memory.
    pub fn usable(&self, installed: u64) -> u64 {
        let kept =
            u128::from(1000_i64.saturating_sub(self.reserve_per_mille).max(0).unsigned_abs());
        u64::try_from(u128::from(installed) * kept / 1000).unwrap_or(u64::MAX)
    }

    /// The numbers of devices that plans may confine themselves to, of those that the network
    /// treats better: all of them alone where none may idle.
    pub fn scopes(&self, of_network: Vec<u64>) -> Vec<u64> {
        let may_idle = self.space.framework.may_idle();
        of_network.into_iter().filter(|&scope| may_idle || scope == self.devices).collect()
    }

    /// How experts may be dealt out, and divided each: whole, as layers of this width are, or as
    /// the only choice says.
    pub fn experts(&self, width: u64) -> Vec<(u64, u64)> {
        let StrategySpace { expert_parallel, expert_tensor, .. } = self.space;
        let mut found = Vec::new();
        for &dealt in expert_parallel {
            for &each in expert_tensor {
                if expert_tensor.len() == 1 || [1, width].contains(&each) {
                    found.push((dealt, each));
                }
            }
        }
        found
    }

    /// Every legal way to divide the layers.
    fn settings(&self) -> Vec<Setting> {
        let space = self.space;
        let legal = legal_widths(&self.model.spec);
        let mut found: Vec<Setting> = Vec::new();
        for &tensor_parallel in space.tensor_parallel.iter().filter(|t| legal.contains(t)) {
            for &context in &space.context_parallel {
                // One device alone exchanges nothing: one kind stands for all.
                let n_kinds = if context == 1 { 1 } else { space.context_kinds.len() };
                for &context_kind in &space.context_kinds[..n_kinds] {
                    for scattered in &space.sequence_parallel {
                        for &repeated in &space.repeated {
                            let each = space.micro_batches.iter().map(|&micro_batch| Setting {
                                micro_batch,
                                sequence: self.sequence,
                                tensor_parallel,
                                sequence_parallel: *scattered && tensor_parallel > 1,
                                context,
                                context_kind,
                                expert: 1,
                                expert_tensor: 1,
                                attention: self.attention,
                                repeated,
                                masked: self.masked,
                                element: self.element,
                                stack: self.stack,
                            });
                            for setting in each {
                                let degrees = self.experts(tensor_parallel).into_iter();
                                found.extend(degrees.map(|(expert, expert_tensor)| Setting {
                                    expert,
                                    expert_tensor,
                                    ..setting
                                }));
                            }
                        }
                    }
                }
            }
        }
        let asked_for_one = found.len() == 1;
        let mut kept: Vec<Setting> = Vec::new();
        for setting in found {
            let legal = asked_for_one || is_legal(self.model, setting).is_ok();
            if legal && !kept.contains(&setting) {
                kept.push(setting);
            }
        }
        kept
    }

    /// Every division of the model on devices whose network has these scopes.
    pub fn divisions(&self, of_network: Vec<u64>) -> Result<Vec<Divided>, String> {
        let settings = self.settings();
        let mut found = Vec::new();
        for devices in self.scopes(of_network) {
            let fits = |setting: &&Setting| least_copies(setting) * setting.devices() <= devices;
            for setting in settings.iter().filter(fits) {
                let share = shard(self.model, *setting).map_err(|reason| reason.to_string())?;
                found.push(Divided { share, devices });
            }
        }
        if found.is_empty() {
            return Err("none of the tensor-parallel widths divides it".into());
        }
        Ok(found)
    }
}

/// The fewest copies of a pipeline in which every expert is held equally often; so do multiples.
fn least_copies(setting: &Setting) -> u64 {
    let owners = setting.expert * setting.expert_tensor;
    let each = setting.tensor_parallel * setting.context;
    (1..=owners).find(|copies| (copies * each).is_multiple_of(owners)).unwrap_or(owners)
}

impl Divided {
    /// Whether there are experts to hold.
    fn has_experts(&self) -> bool {
        self.share.kinds.iter().any(|kind| kind.expert_parameters > 0)
    }

    /// The most devices that hold the same, in so many copies of a pipeline: of experts, or of all
    /// else.
    pub fn replicas(&self, copies: u64) -> u64 {
        let Setting { context, .. } = self.share.setting;
        (copies * context).max(self.expert_replicas(copies))
    }

    /// How many devices hold the same experts, in so many copies of a pipeline.
    pub fn expert_replicas(&self, copies: u64) -> u64 {
        let Setting { tensor_parallel, context, expert, expert_tensor, .. } = self.share.setting;
        let devices = tensor_parallel * context * copies;
        if self.has_experts() { devices / (expert * expert_tensor) } else { 1 }
    }

    /// Whether so many copies of a pipeline hold every expert equally often.
    pub fn holds_experts_evenly(&self, copies: u64) -> bool {
        copies.is_multiple_of(least_copies(&self.share.setting))
    }

    /// Whether replicas that share are in groups of `shards`, and those of experts in as many.
    pub fn are_even(&self, copies: u64, shards: u64) -> bool {
        let replicas = copies * self.share.setting.context;
        let groups = (replicas / shards).max(1);
        replicas.is_multiple_of(shards)
            && (!self.has_experts() || self.expert_replicas(copies).is_multiple_of(groups))
    }

    /// Devices that each rank takes: all layers of a model are divided alike.
    pub fn devices_per_rank(&self) -> u64 {
        let Setting { tensor_parallel, context, .. } = self.share.setting;
        let all_wide = self.share.kinds.iter().all(|kind| kind.tensor_parallel);
        context * if all_wide { tensor_parallel } else { 1 }
    }

    /// What replicas may exchange inside layers: nothing, and whatever the space allows.
    pub fn shardings(&self, asked: &Asked) -> Vec<Option<Sharded>> {
        let space = asked.space;
        let setting = &self.share.setting;
        let some = |inside: bool| {
            let mut zeros = space.zero.iter().chain(&space.zero_in_pipelines);
            zeros.any(|&zero| (zero >= Zero::Gradients) == inside)
        };
        let mut found: Vec<Option<Sharded>> = Vec::new();
        found.extend(some(false).then_some(None));
        if !some(true) || asked.time_model == TimeModel::Published {
            return found;
        }
        let micro_batches = asked.global_batch / setting.micro_batch;
        let deepest = space.pipeline.most.min(self.share.sequence.len() as u64);
        for ranks in space.pipeline.least.max(1)..=deepest {
            let room = self.devices / (setting.devices() * ranks);
            let most = room.min(micro_batches).min(space.data_parallel.most);
            let least = space.data_parallel.least.max(1);
            let copies: Vec<u64> = if space.data_parallel.least == space.data_parallel.most {
                vec![most]
            } else if space.framework.may_idle() {
                (0..63).map(|power| 1 << power).collect()
            } else {
                vec![room]
            };
            for data_parallel in copies.into_iter().filter(|n| (least..=most).contains(n)) {
                if !data_parallel.is_multiple_of(least_copies(setting)) {
                    continue;
                }
                let replicas = self.replicas(data_parallel);
                let even =
                    asked.space.shards.is_none_or(|shards| self.are_even(data_parallel, shards));
                let sharded = |zero: Zero| Some(Sharded { zero, data_parallel, ranks });
                let zeros = space.zero_with(ranks);
                let inside = || zeros.iter().copied().filter(|&zero| zero >= Zero::Gradients);
                if replicas == 1 {
                    // Alone, a replica has nobody to share with, whatever it is asked to share.
                    let only_inside = !zeros.is_empty() && inside().count() == zeros.len();
                    found.extend(only_inside.then(|| sharded(Zero::Nothing)));
                } else if even {
                    found.extend(inside().map(sharded));
                }
            }
        }
        found
    }

    /// What replicas may share with so many ranks.
    pub fn zeros(space: &StrategySpace, sharded: Option<Sharded>, ranks: u64) -> Vec<Zero> {
        if let Some(sharded) = sharded {
            return vec![sharded.zero];
        }
        let all = space.zero_with(ranks).iter().copied();
        all.filter(|&zero| zero < Zero::Gradients).collect()
    }

    /// The least and the greatest number of pipelines of so many ranks; `None` where there is none.
    pub fn pipelines(
        &self,
        asked: &Asked,
        sharded: Option<Sharded>,
        ranks: u64,
    ) -> Option<(u64, u64)> {
        let space = asked.space;
        let micro_batches = asked.global_batch / self.share.setting.micro_batch;
        let each = self.devices_per_rank() * ranks;
        let room = self.devices / each;
        let Limits { mut least, mut most } = match sharded {
            Some(sharded) if sharded.ranks != ranks => return None,
            Some(sharded) => Limits::only(sharded.data_parallel),
            None => space.data_parallel,
        };
        (least, most) = (least.max(1), most.min(room));
        if space.framework.may_idle() {
            most = most.min(micro_batches);
        } else {
            let whole =
                self.devices.is_multiple_of(each) && room > 0 && self.holds_experts_evenly(room);
            if !whole || !micro_batches.is_multiple_of(room) {
                return None;
            }
            (least, most) = (least.max(room), most.min(room));
        }
        (least <= most).then_some((least, most))
    }

    /// The numbers of ranks that the space and the devices allow.
    pub fn ranks(&self, space: &StrategySpace) -> RangeInclusive<u64> {
        let n_layers = self.share.sequence.len() as u64;
        let most = (self.devices / self.devices_per_rank()).min(n_layers);
        space.pipeline.least.max(1)..=most.min(space.pipeline.most)
    }
}
