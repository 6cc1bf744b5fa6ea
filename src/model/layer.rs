//! A layer as it is trained: tensors in named dimensions, and the steps that make them.
//!
//! Families write the forward pass with `LayerBuilder`; `parallel` adds the
//! exchanges among devices; [`backward`](super::backward) derives the backward pass;
//! [`fusion`](super::fusion) turns either into operators. All four speak of one [`Graph`].

use serde::Deserialize;
use serde::Serialize;

use super::Axis;
use super::Module;
use super::Reach;
use super::dim::Dim;
use super::dim::Sizes;
use super::op::CollectiveKind;
use super::op::Matmul;
use super::op::Pass;
use super::op::VectorKind;
use super::opaque::Opaque;
use crate::units::Bytes;

/// Names one tensor of one [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TensorId(pub(crate) usize);

/// What a tensor is, which decides its bytes and whether it is a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// What flows between steps, and gradients of it.
    Activation,
    /// An activation in 4 bytes: logits, and values of the loss.
    Wide,
    /// What dropout let through, 1 byte each.
    Mask,
    /// A parameter, or the gradient of one.
    Weight,
    /// A parameter that another layer holds: the embedding table in a tied head.
    TiedWeight,
    /// A parameter of a head that only training needs.
    HeadWeight,
}

/// A tensor of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a tensor: its name, dims and form")]
pub struct Tensor {
    /// What a reader knows it by.
    pub name: String,
    /// Its dimensions; a reduction runs along the last.
    pub dims: Vec<Dim>,
    /// What it is.
    pub form: Form,
    /// Whether each device holds a part of the sequence only (sequence parallelism).
    #[serde(skip)]
    pub scattered: bool,
    /// Whether it is made and used on the chip, tile by tile, and never crosses HBM.
    #[serde(skip)]
    pub on_chip: bool,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A sum of products over the dimensions that both operands have and the result has not.
    Contract,
    /// Vector work; `row` are the dimensions along which it repeats, `rows` how often.
    #[expect(missing_docs, reason = "said above")]
    Vector { kind: VectorKind, rows: Vec<Dim>, row: Vec<Dim> },
    /// Rows of a table picked by ids; backward, gradients added to the rows they came from.
    Gather,
    /// One tensor seen as several, without cost.
    Split,
    /// Several tensors seen as one, without cost.
    Concat,
    /// An exchange among the devices of a group of `axis`: what happens on the way `there`, and
    /// on the way `back`.
    #[expect(missing_docs, reason = "said above")]
    #[serde(skip)]
    Exchange { axis: Axis, there: Option<CollectiveKind>, back: Option<CollectiveKind> },
    /// Tokens copied to the rows of the experts that they visit; backward they come back.
    Dispatch,
    /// The rows of experts summed for each token that visited them; backward they are copied.
    Combine,
    /// Work of which only the cost is known.
    Opaque(Opaque),
}

/// A step of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a step: its name, action, reads and writes")]
pub struct Step {
    /// What a reader knows it by, unique in its graph.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// Whether it is an operator of the forward pass or a gradient.
    #[serde(skip, default = "Step::forward")]
    pub pass: Pass,
    /// What it reads; a contraction reads exactly two.
    pub reads: Vec<TensorId>,
    /// What it makes.
    pub writes: Vec<TensorId>,
    /// Whether it belongs to attention's core, between the queries and keys and the weighted sum:
    /// what recomputed attention does once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub core: bool,
    /// The module that it belongs to, if that can be repeated by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// In a ring, which of the runs of blocks that arrive one after the other it works on.
    #[serde(skip)]
    pub run: Option<usize>,
    /// Whether it is a repetition of a step of the forward pass.
    #[serde(skip)]
    pub again: bool,
}

/// Tensors and the steps that make them, each step after those that it reads from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a graph: tensors and steps")]
pub struct Graph {
    /// By [`TensorId`].
    pub tensors: Vec<Tensor>,
    /// In an order in which they can run.
    pub steps: Vec<Step>,
}

/// One kind of layer, forward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a layer: name, graph, reach, input and output")]
pub struct Layer {
    /// What a reader knows it by: `embedding`, `transformer`, `head`.
    pub name: String,
    /// Its tensors and steps.
    pub graph: Graph,
    /// Which tokens its attention looks at.
    pub reach: Reach,
    /// What it takes from the layer before; none for the first, which reads ids.
    pub input: Option<TensorId>,
    /// What it hands to the layer after; none for the last, which ends in the loss.
    pub output: Option<TensorId>,
}

impl Step {
    fn forward() -> Pass {
        Pass::Forward
    }
}

impl Form {
    /// Bytes of one element, where activations and weights have `element` bytes.
    pub fn bytes(self, element: Bytes) -> Bytes {
        match self {
            Self::Activation | Self::Weight | Self::TiedWeight | Self::HeadWeight => element,
            Self::Wide => Bytes(4),
            Self::Mask => Bytes(1),
        }
    }

    /// Whether it is a parameter.
    pub fn is_weight(self) -> bool {
        matches!(self, Self::Weight | Self::TiedWeight | Self::HeadWeight)
    }
}

impl Tensor {
    /// Whether tensor parallelism divides it among devices.
    pub fn is_cut(&self) -> bool {
        self.dims.iter().any(|dim| dim.is_cut())
    }
}

impl Graph {
    /// Adds a tensor.
    pub fn tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId(self.tensors.len() - 1)
    }

    /// The tensor of that name.
    pub fn at(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// Which step makes each tensor; none for weights and for what comes from outside.
    pub fn makers(&self) -> Vec<Option<usize>> {
        let mut makers = vec![None; self.tensors.len()];
        for (step, content) in self.steps.iter().enumerate() {
            for written in &content.writes {
                makers[written.0] = Some(step);
            }
        }
        makers
    }

    /// Which steps read each tensor, in order.
    pub fn readers(&self) -> Vec<Vec<usize>> {
        let mut readers = vec![Vec::new(); self.tensors.len()];
        for (step, content) in self.steps.iter().enumerate() {
            for read in &content.reads {
                if readers[read.0].last() != Some(&step) {
                    readers[read.0].push(step);
                }
            }
        }
        readers
    }

    /// Whether the tensors of a step are divided along the sequence among the devices that share
    /// its layer.
    pub fn is_scattered(&self, step: &Step) -> bool {
        let mut tensors = step.reads.iter().chain(&step.writes).map(|&id| self.at(id));
        tensors.any(|tensor| tensor.scattered && !tensor.form.is_weight())
    }

    /// The loops of a contraction, by the names of its dimensions.
    ///
    /// What both operands and the result have is the batch; what both operands have and the result
    /// has not is summed over; the rest are rows and columns.
    pub fn contraction(&self, step: &Step) -> Contraction {
        let [left, right] = step.reads[..] else { panic!("a contraction reads two tensors") };
        let dims = |id: TensorId| &self.at(id).dims[..];
        let (left, right, out) = (dims(left), dims(right), dims(step.writes[0]));
        let pick = |from: &[Dim], in_other: &[Dim], shared: bool, kept: bool| -> Vec<Dim> {
            let chosen = |dim: &&Dim| in_other.contains(dim) == shared && out.contains(dim) == kept;
            from.iter().filter(chosen).copied().collect()
        };
        Contraction {
            b: pick(left, right, true, true),
            m: pick(left, right, false, true),
            k: pick(left, right, true, false),
            n: pick(right, left, false, true),
        }
    }
}

/// The loops of a matmul by the names of their dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the loops of `Matmul`")]
pub struct Contraction {
    pub b: Vec<Dim>,
    pub m: Vec<Dim>,
    pub k: Vec<Dim>,
    pub n: Vec<Dim>,
}

impl Contraction {
    /// The loops with their sizes.
    pub fn sized(&self, sizes: &Sizes) -> Matmul {
        Matmul {
            b: sizes.elements(&self.b),
            m: sizes.elements(&self.m),
            k: sizes.elements(&self.k),
            n: sizes.elements(&self.n),
        }
    }

    /// Multiply-accumulates, in a type that does not overflow.
    pub fn wide_macs(&self, sizes: &Sizes) -> u128 {
        [&self.b, &self.m, &self.k, &self.n]
            .into_iter()
            .fold(1, |macs: u128, dims| macs.saturating_mul(sizes.wide_elements(dims)))
    }
}

impl Layer {
    /// Parameters under these sizes, of those tensors that `counted` picks.
    pub fn parameters(&self, sizes: &Sizes, counted: impl Fn(Form) -> bool) -> u128 {
        let counted = self.graph.tensors.iter().filter(|tensor| counted(tensor.form));
        counted.map(|tensor| sizes.wide_elements(&tensor.dims)).sum()
    }

    /// Whether no size or sum of sizes of `n_occurrences` such layers can leave its type's range.
    ///
    /// A matmul has at most 2⁶² multiply-accumulates; steps of which only the cost is known have at
    /// most 2⁵⁸ operations and bytes, and all tensors together at most 2⁵⁸ elements, which leaves room for their bytes, gradients and optimizer state.
    pub fn within_limits(&self, sizes: &Sizes, n_occurrences: u64) -> bool {
        let contractions =
            self.graph.steps.iter().filter(|step| matches!(step.action, Action::Contract));
        let largest = contractions.map(|step| self.graph.contraction(step).wide_macs(sizes)).max();
        let opaque = self.graph.steps.iter().filter_map(|step| match &step.action {
            Action::Opaque(opaque) => Some(opaque.wide(sizes)),
            _ => None,
        });
        let opaque = opaque.fold(0, u128::saturating_add);
        let elements = self
            .graph
            .tensors
            .iter()
            .fold(0, |sum: u128, tensor| sum.saturating_add(sizes.wide_elements(&tensor.dims)));
        largest.unwrap_or(0) <= 1 << 62
            && opaque.saturating_mul(u128::from(n_occurrences)) <= 1 << 58
            && elements.saturating_mul(u128::from(n_occurrences)) <= 1 << 58
    }
}
