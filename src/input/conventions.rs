//! How time, memory and energy are counted by default: our way, or as the published evaluation
//! counts them. Every command takes its defaults from here.

use crate::estimate::VectorCosts;
use crate::model::Attention;
use crate::model::Masked;
use crate::model::Module;
use crate::model::Modules;
use crate::model::Optimizer;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::frameworks::Framework;
use crate::parallel::zero::Zero;
use crate::plan::Limits;
use crate::plan::Recompute;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::plan::schedule::Rule;

/// A set of defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// The built-in hardware whose physics every design of a search has.
    pub hardware: &'static str,
    /// Whether a single design takes those physics too, instead of its own.
    pub replaces_physics: bool,
    /// What vector operators cost.
    pub vector_costs: VectorCosts,
    /// What a spread operator leaves to others.
    pub rule: Rule,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// What is held for each parameter.
    pub optimizer: Optimizer,
    /// What attention leaves behind for the backward pass.
    pub attention: Attention,
    /// What may be computed again.
    pub recompute: &'static [Recompute],
    /// Tensor-parallel widths that a search chooses from, where a model allows them.
    pub widths: &'static [u64],
    /// What fused attention does with what a causal mask hides.
    pub masked: Masked,
    /// Thousandths of a device's memory that plans leave free.
    pub reserve_per_mille: i64,
}

impl Conventions {
    /// What we believe to be true.
    pub const OURS: Self = Self {
        hardware: "tpuv4-like",
        replaces_physics: false,
        vector_costs: VectorCosts::Corrected,
        rule: Rule::OwnKind,
        time_model: TimeModel::OneForwardOneBackward,
        optimizer: Optimizer::AdamMixed,
        attention: Attention::Recomputed,
        recompute: &[Recompute::AsNeeded],
        widths: &[1, 2, 4, 8],
        masked: Masked::Skipped,
        reserve_per_mille: 60,
    };

    /// What the published evaluation assumes.
    pub const PUBLISHED: Self = Self {
        hardware: "icml24",
        replaces_physics: true,
        vector_costs: VectorCosts::Published,
        rule: Rule::Alone,
        time_model: TimeModel::Published,
        optimizer: Optimizer::Sgd,
        attention: Attention::Stored,
        recompute: &[Recompute::None, Recompute::Stage],
        widths: &[1, 2, 4, 8],
        masked: Masked::Computed,
        reserve_per_mille: 0,
    };

    /// What is chosen from where nobody says, with these micro-batches and widths.
    pub fn space(
        &self,
        micro_batches: Vec<u64>,
        widths: Vec<u64>,
        attention: Attention,
        framework: Framework,
    ) -> StrategySpace {
        let plain = StrategySpace::plain(micro_batches, widths, self.recompute.to_vec());
        if self.time_model == TimeModel::Published {
            return plain;
        }
        // What runs no pipelines refuses them by name, whatever their replicas share.
        let with_pipeline = |zero: &Zero| {
            framework.zero_stages_with_pipeline().contains(zero)
                || *zero == Zero::Nothing && !framework.pipelines()
        };
        let core = Modules::NONE.with(Module::CoreAttention);
        let (recompute, repeated) = match (framework, attention) {
            // These repeat all layers or none, and no modules by themselves.
            (Framework::Torchtitan | Framework::Maxtext, _) => {
                (vec![Recompute::None, Recompute::EVERY_LAYER], vec![Modules::NONE])
            }
            // Attention that keeps no scores has nothing to gain from being repeated.
            (_, Attention::Recomputed) => (plain.recompute.clone(), vec![Modules::NONE]),
            (_, Attention::Stored) => (plain.recompute.clone(), vec![Modules::NONE, core]),
        };
        let is_known = |order: &Order| framework.orders().contains(order);
        StrategySpace {
            sequence_parallel: vec![false, true],
            context_kinds: vec![ContextKind::Ring, ContextKind::Gather, ContextKind::Ulysses],
            pipeline: if framework.pipelines() { Limits::ALL } else { Limits::only(1) },
            chunks: Limits::ALL,
            zero: framework.zero_stages().to_vec(),
            // Beyond state, gradients would be exchanged for every micro-batch of a pipeline.
            zero_in_pipelines: [Zero::Nothing, Zero::State]
                .into_iter()
                .filter(with_pipeline)
                .collect(),
            orders: Order::MEGATRON.into_iter().filter(is_known).collect(),
            recompute,
            repeated,
            framework,
            ..plain
        }
    }

    /// The published ones or ours.
    pub fn of(published: bool) -> &'static Self {
        if published { &Self::PUBLISHED } else { &Self::OURS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::hardware;

    #[test]
    fn the_physics_of_each_are_built_in() {
        for published in [false, true] {
            let name = Conventions::of(published).hardware;
            assert!(hardware::preset(name, "test").is_ok(), "{name}");
        }
    }

    #[test]
    fn what_a_framework_never_accepts_is_not_searched() {
        for framework in Framework::ALL {
            let space = |attention| Conventions::OURS.space(vec![1], vec![1], attention, framework);
            for space in [space(Attention::Stored), space(Attention::Recomputed)] {
                let known = |order: &Order| framework.orders().contains(order);
                assert!(space.orders.iter().all(known), "{framework}");
                let shared = |zero: &Zero| framework.zero_stages().contains(zero);
                assert!(space.zero.iter().chain(&space.zero_in_pipelines).all(shared));
                let some = framework == Framework::Megatron || framework == Framework::Any;
                assert!(some || !space.recompute.contains(&Recompute::AsNeeded), "{framework}");
                assert!(some || space.repeated == [Modules::NONE], "{framework}");
                assert!(space.recompute.is_sorted() && space.orders.is_sorted());
            }
        }
    }

    #[test]
    fn the_published_evaluation_computes_stages_again_or_nothing() {
        assert_eq!(Conventions::PUBLISHED.recompute, [Recompute::None, Recompute::Stage]);
    }
}
