//! Operators by their loop shape: what a cost model needs to know, and nothing of what they mean.
//!
//! An [`Op`] is what is scheduled: fusion has already joined vector work to the matmul that feeds
//! it. Costs match on the few shapes of [`Work`], never on names.

use serde::Deserialize;
use serde::Serialize;

use super::Axis;
use super::Precision;
use crate::units::Bytes;
use crate::units::Flops;
use crate::units::Time;

/// `out[b,m,n] += A[b,m,k] · B[b,k,n]`: a batch of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Matmul {
    /// Independent products.
    pub b: u64,
    /// Rows of A and of the result.
    pub m: u64,
    /// Columns of A, rows of B: the reduced dimension.
    pub k: u64,
    /// Columns of B and of the result.
    pub n: u64,
}

/// Where a tensor is between the operator that makes it and the one that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Home {
    /// In off-chip memory: it crosses HBM.
    Hbm,
    /// On the chip, tile by tile, made and used without crossing HBM (the scores of recomputed
    /// attention).
    Chip,
}

/// In which numbers a matmul computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numbers {
    /// In those of all tensors: bf16.
    #[default]
    Bf16,
    /// In 8 bits: operands of half the size, at twice the rate. The result leaves as all tensors do.
    Fp8,
    /// In bf16, in a training whose other matmuls compute in 8 bits.
    Bf16BesideFp8,
}

impl Numbers {
    /// Those of most matmuls of a training in this precision.
    pub fn of_matmuls(precision: Precision) -> Self {
        match precision {
            Precision::Bf16 => Self::Bf16,
            Precision::Fp8 => Self::Fp8,
        }
    }

    /// Bytes of an operand where tensors have elements of `element` bytes.
    pub fn operand(self, element: Bytes) -> Bytes {
        match self {
            Self::Bf16 | Self::Bf16BesideFp8 => element,
            Self::Fp8 => Bytes((element.0 / 2).max(1)),
        }
    }

    /// How many products each multiply-accumulator makes in a cycle.
    pub fn per_cycle(self) -> u64 {
        match self {
            Self::Bf16 | Self::Bf16BesideFp8 => 1,
            Self::Fp8 => 2,
        }
    }
}

/// The homes of a matmul's two inputs and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Homes {
    /// Of the left operand A.
    pub a: Home,
    /// Of the right operand B.
    pub b: Home,
    /// Of the result.
    pub out: Home,
}

impl Homes {
    /// All three cross HBM.
    pub const ALL_HBM: Self = Self { a: Home::Hbm, b: Home::Hbm, out: Home::Hbm };

    /// Whether one of them stays on the chip.
    pub fn stay(self) -> bool {
        [self.a, self.b, self.out].contains(&Home::Chip)
    }
}

/// Which way training passes through an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// From input to loss.
    Forward,
    /// From loss to gradients.
    Backward,
}

/// What a vector core does to each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorKind {
    /// A sum of two activations: a residual forward, the gradients of a fork backward (a residual
    /// passes its own gradient on and leaves no operator).
    Add,
    /// A bias added to each row; backward a sum over rows.
    Bias,
    /// A product with a constant.
    Scale,
    /// An attention mask applied.
    Mask,
    /// A product of two activations; backward both gradient products in one pass.
    Multiply,
    /// max(x, 0).
    Relu,
    /// max(x, 0)².
    SquaredRelu,
    /// GELU in its tanh form.
    Gelu,
    /// x · sigmoid(x).
    Silu,
    /// Hyperbolic tangent.
    Tanh,
    /// Dropout with its mask.
    Dropout,
    /// Softmax over each row.
    Softmax,
    /// Layer norm over each row, with gain and bias.
    LayerNorm,
    /// Root-mean-square norm over each row, with gain.
    RmsNorm,
    /// Rotary position embedding.
    Rotary,
    /// Scores of a router, and the best few of each row.
    Route,
    /// Each row times its weight; backward also the sum of products that is the weight's gradient.
    Weigh,
    /// Parts of a row put side by side, some of them the same in many rows.
    Join,
    /// A sigmoid.
    Sigmoid,
    /// Cross-entropy over each row of logits.
    CrossEntropy,
    /// One step of stochastic gradient descent, an element being a parameter.
    Sgd,
    /// One step of Adam, an element being a parameter.
    Adam,
}

/// A pass of a vector core over `rows` rows of `row` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VectorWork {
    /// What is done to each element.
    pub kind: VectorKind,
    /// The operator forward, or its gradient.
    pub pass: Pass,
    /// How many rows; reductions run along a row.
    pub rows: u64,
    /// Elements in a row.
    pub row: u64,
}

/// How devices exchange a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Everybody ends with the sum.
    AllReduce,
    /// Everybody ends with all parts.
    AllGather,
    /// Everybody ends with one part of the sum.
    ReduceScatter,
    /// Everybody sends each of the others a different part of what it holds.
    AllToAll,
    /// Everybody sends what it holds to the next, the last one to the first: one step of a ring.
    Send,
}

/// An exchange among the devices of a group of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collective {
    /// How it is exchanged.
    pub kind: CollectiveKind,
    /// The whole tensor: what each device holds before an all-reduce or reduce-scatter, and after
    /// an all-gather; what each device sends in all, the part that it keeps for itself among it,
    /// in an all-to-all; the message of a send.
    pub size: Bytes,
    /// Along which axis the devices are neighbours.
    pub axis: Axis,
    /// How many devices take part.
    pub group: u64,
    /// How far apart two neighbours are in device numbers, where devices are numbered along the
    /// tensor axis first and along the context axis next.
    pub stride: u64,
    /// How often it is done in a row: once, or the steps of a ring.
    pub times: u64,
    /// Thousandths of it that run behind computation, whatever the schedule.
    pub hidden: u16,
}

/// The loop shape of an operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// A matrix product, with the vector work that runs behind it on what it yields.
    Matmul {
        /// The loops.
        matmul: Matmul,
        /// Which operands cross HBM.
        homes: Homes,
        /// Vector work fused to it, in order; empty where nothing is.
        fused: Vec<VectorWork>,
        /// In which numbers it computes.
        numbers: Numbers,
        /// Whether it is that of experts: each product of the batch has weights of its own, and rows
        /// come in whatever number tokens choose.
        grouped: bool,
    },
    /// A chain of vector work on the same elements.
    Vector(Vec<VectorWork>),
    /// Operations of the arrays whose loops are not known; its bytes are its traffic.
    Opaque {
        /// How many, two for each multiply-accumulate.
        flops: u64,
    },
    /// Bytes that move: an embedding gathered, a gradient scattered.
    Move,
    /// An exchange among devices.
    Collective(Collective),
}

/// Bytes that vector work and moves carry through the memories.
///
/// A matmul's own three operands are not in it: how often those cross each memory is the mapping's
/// choice. What fused work adds (a residual read, a mask or a kept intermediate written) is. A fused
/// matmul whose result crosses HBM writes its own `b·m·n` elements there through the mapping; these
/// stand for as many bytes of what the group as a whole writes, and only the rest is counted here.
///
/// The figures of the global buffer are what the vector cores themselves read and write, fused work
/// reading the matmul's result there. The fills and drains of HBM, which cross the buffer once more
/// (`hbm_read` in, `hbm_written` out), are not in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Traffic {
    /// Read from HBM.
    pub hbm_read: Bytes,
    /// Written to HBM.
    pub hbm_written: Bytes,
    /// Read from the global buffer.
    pub glb_read: Bytes,
    /// Written to the global buffer.
    pub glb_written: Bytes,
}

/// Which cores an operator holds while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoreKind {
    /// A tensor core.
    Tensor,
    /// A vector core.
    Vector,
    /// One of each: fused work.
    Both,
    /// No core, but the device's network.
    Network,
    /// Nothing: it takes no time.
    None,
}

/// An operator of a layer, as it is scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What a reader knows it by, unique in its layer and pass.
    pub name: String,
    /// Its loops.
    pub work: Work,
    /// Its bytes, beyond a matmul's operands.
    pub traffic: Traffic,
}

impl Matmul {
    /// Multiply-accumulates, each counted as two operations.
    pub fn flops(self) -> Flops {
        Flops(2 * u128::from(self.b) * u128::from(self.m) * u128::from(self.k) * u128::from(self.n))
    }
}

impl Collective {
    /// Of the time that the exchange takes on the network, what is waited for.
    pub fn exposed(&self, time: Time) -> Time {
        let left = u128::from(1000_u16.saturating_sub(self.hidden));
        let ticks = (u128::from(time.0) * left).div_ceil(1000);
        Time(u64::try_from(ticks).expect("a part of a time is no longer than it"))
    }
}

impl VectorKind {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Bias => "bias",
            Self::Scale => "scale",
            Self::Mask => "mask",
            Self::Multiply => "multiply",
            Self::Relu => "relu",
            Self::SquaredRelu => "squared_relu",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
            Self::Tanh => "tanh",
            Self::Dropout => "dropout",
            Self::Softmax => "softmax",
            Self::LayerNorm => "layer_norm",
            Self::RmsNorm => "rms_norm",
            Self::Rotary => "rotary",
            Self::Route => "route",
            Self::Weigh => "weigh",
            Self::Join => "join",
            Self::Sigmoid => "sigmoid",
            Self::CrossEntropy => "cross_entropy",
            Self::Sgd => "sgd",
            Self::Adam => "adam",
        }
    }
}

impl CollectiveKind {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Send => "send",
        }
    }
}

impl CoreKind {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Vector => "vector",
            Self::Both => "both",
            Self::Network => "network",
            Self::None => "none",
        }
    }
}

impl VectorWork {
    /// How many elements it passes over.
    pub fn elements(self) -> u64 {
        self.rows * self.row
    }
}

impl Op {
    /// Which cores it holds while it runs.
    pub fn core(&self) -> CoreKind {
        match &self.work {
            Work::Matmul { fused, .. } if fused.is_empty() => CoreKind::Tensor,
            Work::Matmul { .. } => CoreKind::Both,
            Work::Opaque { .. } => CoreKind::Tensor,
            Work::Vector(_) | Work::Move => CoreKind::Vector,
            Work::Collective(_) => CoreKind::Network,
        }
    }

    /// Whether it sends rows to the devices that have their experts, or back.
    pub fn sends_to_experts(&self) -> bool {
        matches!(
            &self.work,
            Work::Collective(Collective { axis: Axis::Expert | Axis::ExpertGroup, .. })
        )
    }

    /// Floating-point operations as published accounts count them: those of matmuls, and of work of
    /// which no more is known.
    pub fn flops(&self) -> Flops {
        match &self.work {
            Work::Matmul { matmul, .. } => matmul.flops(),
            Work::Opaque { flops } => Flops(u128::from(*flops)),
            Work::Vector(_) | Work::Move | Work::Collective(_) => Flops::ZERO,
        }
    }

    /// The least that it can read from and write to HBM, its operands crossing once.
    ///
    /// `element` is the size of one activation or weight.
    pub fn hbm_bytes(&self, element: Bytes) -> (Bytes, Bytes) {
        let (mut read, mut written) = (self.traffic.hbm_read, self.traffic.hbm_written);
        if let Work::Matmul { matmul, homes, numbers, .. } = &self.work {
            let element = numbers.operand(element);
            let Matmul { b, m, k, n } = *matmul;
            let crossing = |home, elements: u64| {
                if home == Home::Hbm { element * elements } else { Bytes::ZERO }
            };
            read += crossing(homes.a, b * m * k) + crossing(homes.b, b * k * n);
            written += crossing(homes.out, b * m * n);
        }
        (read, written)
    }
}
