//! The software that runs a layer: which kernels it launches, in which numbers matmuls compute, and
//! what of its exchanges it hides.

use serde::Deserialize;
use serde::Serialize;

/// Which work runs together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kernels {
    /// Whatever can run together does, and operators run side by side wherever they may.
    #[default]
    FusedIdeal,
    /// As Megatron launches them: one kernel after the other, each with all cores, vector work apart
    /// from matmuls.
    Megatron,
}

impl Kernels {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::FusedIdeal, Self::Megatron];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FusedIdeal => "fused-ideal",
            Self::Megatron => "megatron",
        }
    }

    /// The kernels that users call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kernels| kernels.name() == name)
    }
}

/// In which numbers the matmuls of layers compute.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 16 bits.
    #[default]
    Bf16,
    /// 8 bits; the head and attention stay at 16.
    Fp8,
}

impl Precision {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Bf16, Self::Fp8];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
        }
    }

    /// The precision that users call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|precision| precision.name() == name)
    }

    /// Whether it is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// What software makes of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Which work runs together.
    pub kernels: Kernels,
    /// In which numbers matmuls compute.
    pub precision: Precision,
    /// Thousandths of tensor-parallel exchanges that run behind computation.
    pub tensor_hidden: u16,
    /// Thousandths of the exchange of gradients and new weights that run behind passes; `None`
    /// where they follow from the schedule.
    pub gradients_hidden: Option<u16>,
    /// Bytes of a gradient as replicas exchange it; `None` for as many as it is summed up in.
    pub gradient_bytes: Option<u8>,
}

impl Stack {
    /// What no software can beat: all that can be fused is, and what is hidden follows from the
    /// schedule.
    pub const IDEAL: Self = Self {
        kernels: Kernels::FusedIdeal,
        precision: Precision::Bf16,
        tensor_hidden: 0,
        gradients_hidden: None,
        gradient_bytes: None,
    };
}
