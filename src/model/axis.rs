//! The axes along which devices divide the work of training.

/// An axis of the grid of devices: devices that agree in all other coordinates form its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// Heads, MLP and vocabulary are divided.
    Tensor,
    /// The tokens of each sequence are divided.
    Context,
    /// Experts are divided.
    Expert,
    /// Groups of experts are divided, of which the choice of a token is limited to a few.
    ExpertGroup,
    /// The elements of each expert are divided.
    ExpertTensor,
    /// The sequences of a batch are divided.
    Data,
    /// Layers are divided.
    Pipeline,
}

impl Axis {
    /// All of them, the innermost first.
    pub const ALL: [Self; 7] = [
        Self::Tensor,
        Self::Context,
        Self::Expert,
        Self::ExpertGroup,
        Self::ExpertTensor,
        Self::Data,
        Self::Pipeline,
    ];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Context => "context",
            Self::Expert => "expert",
            Self::ExpertGroup => "expert_group",
            Self::ExpertTensor => "expert_tensor",
            Self::Data => "data",
            Self::Pipeline => "pipeline",
        }
    }
}
