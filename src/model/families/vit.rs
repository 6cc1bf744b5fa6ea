//! `ViT`: an encoder of the patches of an image, trained to tell which of some classes it shows.
//!
//! A sequence is all patches of an image and one token of the class, which the head reads alone. In
//! the first matmul that token counts as one more patch; it is a parameter that is held, and costs
//! nothing else.

use super::blocks;
use crate::model::Model;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Layer;
use crate::model::spec::Spec;

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    let transformer = |variant| blocks::transformer(spec, variant, spec.norm, blocks::mlp);
    Model::chain(spec, embedding(spec), transformer, head(spec))
}

fn embedding(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("embedding");
    let patches = layer.data("patches", &[Dim::Batch, Dim::Sequence, Dim::Patch]);
    let tokens = layer.linear("patch_tokens", patches, &[Dim::Patch], &[Dim::Hidden]);
    let tokens = layer.bias("patch_bias", tokens, 1, true);
    layer.weight("class_token", &[Dim::Hidden]);
    let placed = blocks::positions(&mut layer, tokens);
    let dropped = layer.dropout("embedding_dropout", placed, spec.dropout.embedding);
    layer.finish(Some(dropped))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let x = layer.input();
    let normed = layer.norm("final_norm", spec.norm, x);
    let class = layer.first_token("class", normed);
    blocks::head(layer, class, Dim::Hidden, spec, false)
}
