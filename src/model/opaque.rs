//! Steps of which only the cost is known: kernels of a user's own.
//!
//! What such a step computes is not told, so what it needs and how it is divided is: figures for each
//! element of the dimensions that it goes over, and which of its tensors the backward pass reads. It
//! is divided as those dimensions are, and where none of them is divided, not at all.

use serde::Deserialize;
use serde::Serialize;

use super::dim::Dim;
use super::dim::Sizes;
use super::fusion::Scale;
use super::layer::Action;
use super::layer::Graph;
use super::layer::Step;
use super::op::Pass;
use super::op::Traffic;
use super::op::Work;
use crate::units::Bytes;

/// The most of each figure.
pub const MOST: u64 = 1 << 40;

/// What a step is that is known by its cost alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    /// What its figures are for each element of; nothing where they are for a whole micro-batch.
    pub over: Vec<Dim>,
    /// What it takes.
    pub forward: Figures,
    /// What its gradient takes.
    pub backward: Figures,
    /// Which of its tensors the gradient reads, by their places among those that it reads and then
    /// those that it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<usize>,
}

/// What a pass takes for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Operations of the arrays, two for each multiply-accumulate.
    pub flops: u64,
    /// Bytes that it reads from off-chip memory.
    pub read: u64,
    /// Bytes that it writes there.
    pub written: u64,
}

impl Opaque {
    /// The figures of a pass.
    pub fn figures(&self, pass: Pass) -> Figures {
        match pass {
            Pass::Forward => self.forward,
            Pass::Backward => self.backward,
        }
    }

    /// Whether tensor parallelism divides it.
    pub fn is_cut(&self) -> bool {
        self.over.iter().any(|dim| dim.is_cut())
    }

    /// The largest of its figures of either pass, in a type that does not overflow.
    pub fn wide(&self, sizes: &Sizes) -> u128 {
        let largest = [self.forward, self.backward]
            .into_iter()
            .flat_map(|figures| [figures.flops, figures.read, figures.written])
            .fold(0, u64::max);
        sizes.wide_elements(&self.over).saturating_mul(u128::from(largest))
    }
}

/// The operator of such a step on one device.
pub fn operator(opaque: &Opaque, graph: &Graph, step: &Step, scale: Scale) -> (Work, Traffic) {
    let Figures { flops, read, written } = opaque.figures(step.pass);
    let elements = scale.sizes(graph.is_scattered(step)).elements(&opaque.over);
    let (hbm_read, hbm_written) = (Bytes(read * elements), Bytes(written * elements));
    let traffic = Traffic { hbm_read, hbm_written, ..Traffic::default() };
    if flops == 0 {
        // Nothing but bytes, which vector cores move.
        let traffic = Traffic { glb_read: hbm_read, glb_written: hbm_written, ..traffic };
        return (Work::Move, traffic);
    }
    (Work::Opaque { flops: flops * elements }, traffic)
}

/// Whether a step needs whole sequences: it reads or makes tokens and does not go over them one by
/// one.
pub fn mixes_tokens(graph: &Graph, step: &Step) -> bool {
    let Action::Opaque(opaque) = &step.action else { return false };
    let is_token = |dim: &Dim| matches!(dim, Dim::Sequence | Dim::Keys);
    let tensors = step.reads.iter().chain(&step.writes).map(|&id| graph.at(id));
    tensors.flat_map(|tensor| &tensor.dims).any(is_token) && !opaque.over.contains(&Dim::Sequence)
}

#[cfg(test)]
/// Kernels of their own in models that have none, for tests.
pub mod examples {
    use super::*;
    use crate::model::Model;
    use crate::model::layer::Tensor;

    /// The model with a kernel of its own behind each layer of the second kind, which goes over
    /// these elements of each token.
    pub fn behind_each_layer(mut model: Model, elements: Dim) -> Model {
        let layer = &mut model.kinds[1];
        let output = layer.output.expect("a layer hands something on");
        let told = layer.graph.at(output).clone();
        let result = layer.graph.tensor(Tensor { name: "own_kernel".into(), ..told });
        layer.graph.steps.push(Step {
            name: "own_kernel".into(),
            action: Action::Opaque(Opaque {
                over: vec![Dim::Batch, Dim::Sequence, elements],
                forward: Figures { flops: 301, read: 4, written: 3 },
                backward: Figures { flops: 0, read: 7, written: 2 },
                keeps: vec![0],
            }),
            pass: Pass::Forward,
            reads: vec![output],
            writes: vec![result],
            core: false,
            module: None,
            run: None,
            again: false,
        });
        layer.output = Some(result);
        model
    }
}
