//! How time, memory and energy are counted by default: our way, or as the published evaluation
//! counts them. Every command takes its defaults from here.

use crate::estimate::VectorCosts;
use crate::model::Attention;
use crate::model::Optimizer;
use crate::plan::Recompute;
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
    /// Tensor-parallel widths, where a model allows them.
    pub widths: &'static [u64],
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
        recompute: &Recompute::ALL,
        widths: &[1, 2, 4, 8],
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
    };

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
    fn the_published_evaluation_computes_stages_again_or_nothing() {
        assert_eq!(Conventions::PUBLISHED.recompute, [Recompute::None, Recompute::Stage]);
    }
}
