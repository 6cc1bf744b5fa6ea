//! Llama and its relatives: Mistral, Qwen2 (biases on queries, keys and values) and Qwen3 (norms
//! on queries and keys).

use super::blocks;
use crate::model::Model;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Layer;
use crate::model::spec::Norm;
use crate::model::spec::Spec;

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    let transformer = |variant| blocks::transformer(spec, variant, Norm::Rms, blocks::gated_mlp);
    Model::chain(spec, embedding(spec), transformer, head(spec))
}

fn embedding(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("embedding");
    let tokens = blocks::tokens(&mut layer, spec);
    layer.finish(Some(tokens))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let x = layer.input();
    let normed = layer.norm("final_norm", Norm::Rms, x);
    blocks::head(layer, normed, Dim::Hidden, spec, false)
}
