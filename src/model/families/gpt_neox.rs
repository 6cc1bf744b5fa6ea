//! GPT-NeoX and Pythia: rotary positions on a part of each head, attention and MLP side by side.

use super::blocks;
use crate::model::Model;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Layer;
use crate::model::op::VectorKind;
use crate::model::spec::Spec;

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    let transformer = if spec.parallel_residual {
        side_by_side(spec)
    } else {
        blocks::transformer(spec, VectorKind::LayerNorm, blocks::mlp)
    };
    Model::chain(spec, embedding(spec), transformer, head(spec))
}

fn embedding(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("embedding");
    let tokens = blocks::tokens(&mut layer, spec);
    let dropped = layer.dropout("embedding_dropout", tokens, spec.dropout.embedding);
    layer.finish(Some(dropped))
}

/// Attention and MLP read the same tokens, each through a norm of its own.
fn side_by_side(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("transformer");
    let x = layer.input();
    let normed = blocks::branch_norm(&mut layer, "attention_norm", VectorKind::LayerNorm, x);
    let attended = blocks::attention(&mut layer, normed, spec);
    let normed = blocks::branch_norm(&mut layer, "mlp_norm", VectorKind::LayerNorm, x);
    let thought = blocks::mlp(&mut layer, normed, spec);
    let both = blocks::residual(&mut layer, "branches_sum", thought, attended);
    let output = blocks::residual(&mut layer, "residual", both, x);
    layer.finish(Some(output))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let x = layer.input();
    let normed = layer.norm("final_norm", VectorKind::LayerNorm, x);
    blocks::head(layer, normed, Dim::Hidden, spec, false)
}
