//! What may be chosen when a model is trained on a chip, and by which rules it is counted.

use super::price::Price;
use crate::estimate::Options;
use crate::hardware::Cluster;
use crate::model::Attention;
use crate::model::Masked;
use crate::model::Optimizer;
use crate::model::Stack;
use crate::parallel::zero::Zero;
use crate::placement::Choices;
use crate::placement::CutChoice;
use crate::placement::Family;
use crate::placement::Usage;
use crate::plan::Basis;
use crate::plan::Buckets;
use crate::plan::CutSpace;
use crate::plan::EndRules;
use crate::plan::Hiding;
use crate::plan::Recompute;
use crate::plan::StepStart;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::schedule::Rule;
use crate::units::Bytes;

use super::training::Sharded;

/// The space of strategies and the conventions that they are counted by.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What the user calls the accelerator or its physics.
    pub design: String,
    /// The devices at hand and the network between them.
    pub cluster: Cluster,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// What may be chosen.
    pub space: StrategySpace,
    /// Thousandths of a device's memory that plans leave free; below 0, what they may exceed it by.
    pub reserve_per_mille: i64,
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
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// What estimates depend on.
    pub options: Options,
    /// What is made as small as possible.
    pub price: Price,
    /// The most that a device in use may draw on average, in watts.
    pub power_cap_w: Option<f64>,
    /// What times rest on beside the data sheet.
    pub basis: Option<Basis>,
}

impl Terms {
    /// What of a device's memory plans may fill.
    pub fn usable(&self, installed: Bytes) -> Bytes {
        usable(installed, self.reserve_per_mille)
    }

    /// What follows the passes of a batch: gradients are clipped by the norm of all, so that every
    /// step waits for the last of them.
    pub fn ends(&self) -> EndRules {
        ends(&self.space, self.time_model, self.stack)
    }

    /// What is free to choose once a model is divided, with one recompute choice, whether or not the
    /// framework accepts it.
    pub fn choices(&self, recompute: Recompute, sharded: Option<Sharded>) -> Choices {
        let space = &self.space;
        let small = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut choices = Choices {
            data_parallel: space.data_parallel.least..=space.data_parallel.most,
            ranks: small(space.pipeline.least)..=small(space.pipeline.most),
            chunks: small(space.chunks.least)..=small(space.chunks.most),
            group: space.group,
            zero: [without_exchanges(&space.zero), without_exchanges(&space.zero_in_pipelines)],
            shards: space.shards,
            orders: space.orders.clone(),
            recompute: vec![recompute],
            equal_repeats: space.framework.repeats_are_equal(),
            usage: if space.framework.may_idle() { Usage::Any } else { Usage::Whole },
            cut: match space.cut {
                CutSpace::Best => CutChoice::Best,
                CutSpace::Even => CutChoice::Even,
            },
            // Where ranks and virtual stages are given, there is time to look further.
            layouts: if space.chunks.least == space.chunks.most
                && space.pipeline.least == space.pipeline.most
            {
                Family::Near
            } else {
                Family::Even
            },
            legal: None,
        };
        if let Some(Sharded { zero, data_parallel, ranks }) = sharded {
            choices.data_parallel = data_parallel..=data_parallel;
            choices.ranks = small(ranks)..=small(ranks);
            choices.zero = [vec![zero], vec![zero]];
        }
        choices
    }
}

/// Of these, what is shared without exchanges inside layers.
fn without_exchanges(all: &[Zero]) -> Vec<Zero> {
    all.iter().copied().filter(|&zero| zero < Zero::Gradients).collect()
}

/// What follows the passes of a batch of a model.
pub fn ends(space: &StrategySpace, time_model: TimeModel, stack: Stack) -> EndRules {
    match time_model {
        TimeModel::Published => EndRules::PLAIN,
        TimeModel::OneForwardOneBackward => {
            let hidden = stack.gradients_hidden.map(|per_mille| Buckets::Hidden { per_mille });
            let buckets = hidden.unwrap_or_else(|| space.buckets());
            EndRules { step_start: StepStart::AllGradients, buckets, hiding: Hiding::Own }
        }
    }
}

/// What of a device's memory plans may fill.
pub fn usable(installed: Bytes, reserve_per_mille: i64) -> Bytes {
    let kept = 1000_i64.saturating_sub(reserve_per_mille).max(0).unsigned_abs();
    let part = u128::from(installed.0) * u128::from(kept) / 1000;
    Bytes(u64::try_from(part).unwrap_or(u64::MAX))
}
