//! What an optimizer holds for each parameter, and its step once per batch.

use serde::Deserialize;
use serde::Serialize;

use super::Kernels;
use super::op::Op;
use super::op::Pass;
use super::op::Traffic;
use super::op::VectorKind;
use super::op::VectorWork;
use super::op::Work;
use crate::units::Bytes;

/// How gradients change the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Adam in mixed precision, gradients summed in 4 bytes: 18 bytes per parameter.
    AdamMixed,
    /// The same with gradients in 2 bytes: 16 bytes per parameter.
    #[serde(rename = "adam-mixed-16")]
    AdamMixed16,
    /// Plain stochastic gradient descent in 2 bytes: 4 bytes per parameter.
    Sgd,
}

impl Optimizer {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::AdamMixed, Self::AdamMixed16, Self::Sgd];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdamMixed => "adam-mixed",
            Self::AdamMixed16 => "adam-mixed-16",
            Self::Sgd => "sgd",
        }
    }

    /// The optimizer that users call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|optimizer| optimizer.name() == name)
    }

    /// Bytes of one weight as the passes read it.
    pub fn weight(self) -> Bytes {
        Bytes(2)
    }

    /// Bytes of one gradient.
    pub fn gradient(self) -> Bytes {
        match self {
            Self::AdamMixed => Bytes(4),
            Self::AdamMixed16 | Self::Sgd => Bytes(2),
        }
    }

    /// Bytes of state beside each weight: Adam's two moments and a master copy in 4 bytes each.
    pub fn state(self) -> Bytes {
        match self {
            Self::AdamMixed | Self::AdamMixed16 => Bytes(12),
            Self::Sgd => Bytes(0),
        }
    }

    /// Everything held for one parameter.
    pub fn per_parameter(self) -> Bytes {
        self.weight() + self.gradient() + self.state()
    }

    /// The step as software runs it: beside the step itself, Adam's gradients are read for the norm of
    /// all, and cleared, and weights are copied to where they are gathered.
    pub fn step_by(self, kernels: Kernels, parameters: u64) -> Op {
        let mut step = self.step(parameters);
        if kernels == Kernels::Megatron && self.state() > Bytes::ZERO {
            step.traffic.hbm_read += (self.gradient() + self.weight()) * parameters;
            step.traffic.hbm_written += self.gradient() * parameters;
        }
        step
    }

    /// The step over `parameters` of one device, once per batch.
    ///
    /// It reads gradient and state and writes weight and state; without state it reads the weight
    /// as well.
    pub fn step(self, parameters: u64) -> Op {
        let (kind, weight_read) = match self {
            Self::AdamMixed | Self::AdamMixed16 => (VectorKind::Adam, Bytes::ZERO),
            Self::Sgd => (VectorKind::Sgd, self.weight()),
        };
        let read = (weight_read + self.gradient() + self.state()) * parameters;
        let written = (self.weight() + self.state()) * parameters;
        Op {
            name: "optimizer_step".into(),
            work: Work::Vector(vec![VectorWork {
                kind,
                pass: Pass::Backward,
                rows: 1,
                row: parameters,
            }]),
            traffic: Traffic {
                hbm_read: read,
                hbm_written: written,
                glb_read: read,
                glb_written: written,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimizers_hold_what_they_are_known_for() {
        let held = Optimizer::ALL.map(|optimizer| optimizer.per_parameter().0);
        assert_eq!(held, [18, 16, 4]);
    }

    #[test]
    fn every_optimizer_is_found_by_its_name() {
        for optimizer in Optimizer::ALL {
            assert_eq!(Optimizer::named(optimizer.name()), Some(optimizer));
            assert_eq!(serde_json::to_value(optimizer).unwrap(), optimizer.name());
        }
        assert_eq!(Optimizer::named("adamw"), None);
    }

    #[test]
    fn a_step_moves_what_it_reads_and_writes() {
        let adam = Optimizer::AdamMixed.step(10).traffic;
        assert_eq!((adam.hbm_read, adam.hbm_written), (Bytes(160), Bytes(140)));
        let real = Optimizer::AdamMixed.step_by(Kernels::Megatron, 10).traffic;
        assert_eq!(real.hbm_read + real.hbm_written, Bytes(400));
        let ideal = Optimizer::AdamMixed.step_by(Kernels::FusedIdeal, 10).traffic;
        assert_eq!(ideal, adam);
        let sgd = Optimizer::Sgd.step(10).traffic;
        assert_eq!((sgd.hbm_read, sgd.hbm_written), (Bytes(40), Bytes(20)));
    }
}
