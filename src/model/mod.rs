//! What is trained: layers and their operators, forward and backward.
//!
//! In: the numbers of a model ([`Spec`]). Out: a [`Model`], a chain of few kinds of
//! layers in named dimensions, and the rules that turn a layer into operators: [`backward`]
//! derives the gradient steps, [`fusion`] says what can run together at best, [`kernels`] what
//! training frameworks launch.
//!
//! Not here: how long an operator takes (see `estimate`), how it is divided among devices
//! (see `parallel`) and how models are read from files (see `input`).

mod axis;
mod builder;
mod experts;
mod modules;
mod optimizer;
mod stack;
mod variant;

pub mod backward;
pub mod dim;
pub mod families;
pub mod fusion;
pub mod kernels;
pub mod layer;
pub mod op;
pub mod opaque;
#[cfg(test)]
pub mod shapes;
pub mod spec;

pub use axis::Axis;
pub use experts::ExpertGroups;
pub use experts::Experts;
pub use experts::Latent;
pub use experts::RouterBias;
pub use layer::Layer;
pub use modules::Module;
pub use modules::Modules;
pub use optimizer::Optimizer;
pub use stack::Kernels;
pub use stack::Precision;
pub use stack::Stack;
pub use variant::Reach;
pub use variant::Variant;

use serde::Deserialize;
use serde::Serialize;

use dim::Sizes;
use layer::Form;
use spec::Spec;

/// What attention leaves behind for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attention {
    /// The probabilities before and after dropout, and the mask.
    Stored,
    /// Only its inputs: the scores are computed once more, and never leave the chip.
    Recomputed,
}

impl Attention {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Recomputed, Self::Stored];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Recomputed => "recomputed",
        }
    }
}

/// What recomputed attention does with the pairs of tokens that a causal mask hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Masked {
    /// It computes them like all others.
    Computed,
    /// It leaves them out, in models whose tokens attend only to those before them.
    Skipped,
}

/// A model: few kinds of layers, and the order in which they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its numbers.
    pub spec: Spec,
    /// The distinct layers, in the order in which they first occur.
    pub kinds: Vec<Layer>,
    /// The layers from input to loss, each an index into `kinds`.
    pub sequence: Vec<usize>,
}

impl Model {
    /// An embedding, layers of one kind or several, and a head.
    ///
    /// `layer` writes the layers of one variant; those of equal variants are one kind.
    fn chain(spec: &Spec, embedding: Layer, layer: impl Fn(Variant) -> Layer, head: Layer) -> Self {
        let n_layers = usize::try_from(spec.layers).expect("layers are bounded");
        let mut variants: Vec<Variant> = Vec::new();
        let mut sequence = vec![0];
        for variant in (0..n_layers).map(|at| spec.variant(at)) {
            let known = variants.iter().position(|&other| other == variant);
            let kind = known.unwrap_or_else(|| {
                variants.push(variant);
                variants.len() - 1
            });
            sequence.push(1 + kind);
        }
        sequence.push(1 + variants.len());
        let mut kinds = vec![embedding];
        for &variant in &variants {
            let name = variant.name(&variants);
            kinds.push(Layer { name, reach: variant.reach, ..layer(variant) });
        }
        kinds.push(head);
        Self { spec: spec.clone(), kinds, sequence }
    }

    /// How often a kind occurs.
    pub fn occurrences(&self, kind: usize) -> u64 {
        self.sequence.iter().filter(|&&at| at == kind).count() as u64
    }

    /// Parameters of the published model, each once: a head that only training needs is not in it,
    /// nor a second use of the embedding's table.
    pub fn parameters(&self) -> u64 {
        self.count(|form| form == Form::Weight)
    }

    /// Parameters of the head that only training needs; most models have none.
    pub fn training_head_parameters(&self) -> u64 {
        self.count(|form| form == Form::HeadWeight)
    }

    /// Parameters that a token passes through: all but those of the experts that it does not visit.
    pub fn active_parameters(&self) -> u64 {
        let Some(experts) = self.spec.experts else { return self.parameters() };
        let sizes = self.spec.sizes(1, 1);
        let visited = Sizes { experts: experts.chosen, ..sizes };
        let active: u128 = (self.kinds.iter().enumerate())
            .map(|(kind, layer)| {
                let each = layer.parameters(&visited, |form| form == Form::Weight);
                each * u128::from(self.occurrences(kind))
            })
            .sum();
        active.try_into().expect("no more than all are active")
    }

    fn count(&self, counted: impl Fn(Form) -> bool + Copy) -> u64 {
        let sizes = self.spec.sizes(1, 1);
        let count: u128 = (self.kinds.iter().enumerate())
            .map(|(kind, layer)| {
                layer.parameters(&sizes, counted) * u128::from(self.occurrences(kind))
            })
            .sum();
        count.try_into().expect("readers bound the sizes of a model")
    }
}
