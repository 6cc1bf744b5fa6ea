//! How a model may be divided: every share that a space allows, and the share of one strategy.

use crate::model::Attention;
use crate::model::Masked;
use crate::model::Model;
use crate::model::Optimizer;
use crate::parallel::Illegal;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::is_legal;
use crate::parallel::shard;
use crate::parallel::zero::Zero;
use crate::parallel::zero::with_exchanges;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
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
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// Thousandths of a device's memory that plans leave free.
    pub reserve_per_mille: i64,
}

/// A model divided in one way.
#[derive(Clone, Debug)]
pub struct Divided {
    /// What one device does.
    pub share: Share,
    /// The devices that plans of this division confine themselves to.
    pub devices: u64,
    /// What replicas exchange inside every layer, where they do.
    pub sharded: Option<Sharded>,
}

/// Replicas that exchange gradients or weights inside every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            attention: self.attention,
            repeated: strategy.repeated,
            masked: self.masked,
            element: self.element,
        }
    }

    /// The share of one device in a strategy, with what its replicas exchange inside layers.
    pub fn share(&self, strategy: &Strategy) -> Result<Share, Illegal> {
        let share = shard(self.model, self.setting(strategy))?;
        Ok(match strategy.zero {
            Zero::Nothing | Zero::State => share,
            zero => self.exchanging(&share, zero, strategy.data_parallel, strategy.shards),
        })
    }

    fn exchanging(&self, share: &Share, zero: Zero, copies: u64, shards: Option<u64>) -> Share {
        let replicas = copies.saturating_mul(share.setting.context);
        let shards = shards.map_or(replicas, |shards| shards.min(replicas));
        with_exchanges(share, zero, shards, self.optimizer.into())
    }

    /// What a plan may fill of a device with so much memory.
    pub fn usable(&self, installed: u64) -> u64 {
        let kept = u128::from(1000_i64.saturating_sub(self.reserve_per_mille).max(0).unsigned_abs());
        u64::try_from(u128::from(installed) * kept / 1000).unwrap_or(u64::MAX)
    }

    /// The numbers of devices that plans may confine themselves to, of those that the network
    /// treats better: all of them alone where none may idle.
    pub fn scopes(&self, of_network: Vec<u64>) -> Vec<u64> {
        let may_idle = self.space.framework.may_idle();
        of_network.into_iter().filter(|&scope| may_idle || scope == self.devices).collect()
    }

    /// Every legal way to divide the layers.
    fn settings(&self) -> Vec<Setting> {
        let space = self.space;
        let legal = crate::parallel::legal_widths(&self.model.spec);
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
                                attention: self.attention,
                                repeated,
                                masked: self.masked,
                                element: self.element,
                            });
                            found.extend(each);
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
        let space = self.space;
        let shares_state_alone =
            space.zero.iter().chain(&space.zero_in_pipelines).any(|&zero| zero < Zero::Gradients);
        let mut found = Vec::new();
        for devices in self.scopes(of_network) {
            for setting in settings.iter().filter(|setting| setting.devices() <= devices) {
                let share = shard(self.model, *setting).map_err(|reason| reason.to_string())?;
                for sharded in self.shardings(setting, devices) {
                    let Sharded { zero, data_parallel, .. } = sharded;
                    let share = self.exchanging(&share, zero, data_parallel, space.shards);
                    found.push(Divided { share, devices, sharded: Some(sharded) });
                }
                if shares_state_alone {
                    found.push(Divided { share, devices, sharded: None });
                }
            }
        }
        if found.is_empty() {
            return Err("none of the tensor-parallel widths divides it".into());
        }
        Ok(found)
    }

    /// How replicas may exchange inside layers: for every number of ranks, as many replicas as
    /// devices and micro-batches allow.
    fn shardings(&self, setting: &Setting, devices: u64) -> Vec<Sharded> {
        let space = self.space;
        let n_layers = self.model.sequence.len() as u64;
        let micro_batches = self.global_batch / setting.micro_batch;
        let ranks = space.pipeline.least.max(1)..=space.pipeline.most.min(n_layers);
        let mut found = Vec::new();
        for ranks in ranks {
            let room = devices / (setting.devices() * ranks);
            let data_parallel = room.min(micro_batches).min(space.data_parallel.most);
            let alone = data_parallel * setting.context == 1;
            if data_parallel < space.data_parallel.least.max(1) || alone {
                continue;
            }
            let zeros = space.zero_with(ranks).iter().filter(|&&zero| zero >= Zero::Gradients);
            found.extend(zeros.map(|&zero| Sharded { zero, data_parallel, ranks }));
        }
        found
    }
}

impl Divided {
    /// Devices that each rank takes: all layers of a model are divided alike.
    pub fn devices_per_rank(&self) -> u64 {
        let Setting { tensor_parallel, context, .. } = self.share.setting;
        let all_wide = self.share.kinds.iter().all(|kind| kind.tensor_parallel);
        context * if all_wide { tensor_parallel } else { 1 }
    }

    /// What replicas may share with so many ranks, in this division.
    pub fn zeros(&self, space: &StrategySpace, ranks: u64) -> Vec<Zero> {
        match self.sharded {
            Some(sharded) => vec![sharded.zero],
            None => {
                let all = space.zero_with(ranks).iter().copied();
                all.filter(|&zero| zero < Zero::Gradients).collect()
            }
        }
    }

    /// The least and the greatest number of pipelines of so many ranks; `None` where there is none.
    pub fn pipelines(&self, asked: &Asked, ranks: u64) -> Option<(u64, u64)> {
        let space = asked.space;
        let micro_batches = asked.global_batch / self.share.setting.micro_batch;
        let each = self.devices_per_rank() * ranks;
        let room = self.devices / each;
        let (mut least, mut most) =
            (space.data_parallel.least.max(1), space.data_parallel.most.min(room));
        if let Some(sharded) = self.sharded {
            if sharded.ranks != ranks {
                return None;
            }
            (least, most) = (least.max(sharded.data_parallel), most.min(sharded.data_parallel));
        }
        if space.framework.may_idle() {
            most = most.min(micro_batches);
        } else {
            let whole = self.devices.is_multiple_of(each) && room > 0;
            if !whole || !micro_batches.is_multiple_of(room) {
                return None;
            }
            (least, most) = (least.max(room), most.min(room));
        }
        (least <= most).then_some((least, most))
    }

    /// The numbers of ranks that the space and the devices allow.
    pub fn ranks(&self, space: &StrategySpace) -> std::ops::RangeInclusive<u64> {
        let n_layers = self.share.sequence.len() as u64;
        let most = (self.devices / self.devices_per_rank()).min(n_layers);
        space.pipeline.least.max(1)..=most.min(space.pipeline.most)
    }
}
