//! What whoever runs a plan asks of its shape.

use crate::parallel::frameworks::BrokenRule;
use crate::parallel::frameworks::Framework;
use crate::parallel::frameworks::PlanShape;
use crate::parallel::frameworks::RepeatedLayers;
use crate::plan::Recompute;
use crate::plan::Shape;

/// A framework, and what its rules ask of a plan beside its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legal {
    /// What runs the plan.
    pub framework: Framework,
    /// A plan of the model divided so; what a shape says of it is replaced by that of the shape.
    pub plan: PlanShape,
}

impl Legal {
    /// Whether a plan of this shape is accepted, wherever it is cut.
    pub fn accepts(&self, shape: &Shape) -> bool {
        self.check(shape).is_ok()
    }

    /// The first rule that plans of this shape break, wherever they are cut.
    ///
    /// The first so many layers of every stage count as fewer than all although no stage may have
    /// more: such a plan costs what one costs that repeats every layer, which has a name of its own.
    pub fn check(&self, shape: &Shape) -> Result<(), BrokenRule> {
        let replicas = shape.data_parallel.saturating_mul(self.plan.context);
        let plan = PlanShape {
            pipeline: shape.ranks as u64,
            chunks: shape.schedule.chunks() as u64,
            group: shape.schedule.group(),
            data: shape.data_parallel,
            zero: shape.zero,
            shards: shape.shards.unwrap_or(replicas),
            order: shape.order,
            repeated: self.repeated(shape),
            ..self.plan
        };
        self.framework.check(&plan)
    }

    fn repeated(&self, shape: &Shape) -> RepeatedLayers {
        match shape.recompute {
            Recompute::None | Recompute::First(0) => RepeatedLayers::None,
            Recompute::Full => RepeatedLayers::All,
            Recompute::First(layers) if layers >= self.plan.layers => RepeatedLayers::All,
            Recompute::First(_) => RepeatedLayers::OneNumber,
            // A single stage is the last one, which repeats nothing.
            Recompute::Stage if shape.ranks == 1 => RepeatedLayers::None,
            Recompute::Stage => RepeatedLayers::Stages,
            Recompute::AsNeeded => RepeatedLayers::OwnNumbers,
        }
    }
}
