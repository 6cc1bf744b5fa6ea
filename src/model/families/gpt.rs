//! GPT-2 and its descendants: GPT-3 and Megatron's GPT models.

use super::blocks;
use crate::model::Model;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Layer;
use crate::model::spec::Norm;
use crate::model::spec::Spec;

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    let transformer = |variant| blocks::transformer(spec, variant, Norm::Layer, blocks::mlp);
    Model::chain(spec, embedding(spec), transformer, head(spec))
}

fn embedding(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("embedding");
    let tokens = blocks::tokens(&mut layer, spec);
    let placed = blocks::positions(&mut layer, tokens);
    let dropped = layer.dropout("embedding_dropout", placed, spec.dropout.embedding);
    layer.finish(Some(dropped))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let x = layer.input();
    let normed = layer.norm("final_norm", Norm::Layer, x);
    blocks::head(layer, normed, Dim::Hidden, spec, false)
}
