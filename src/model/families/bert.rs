//! BERT, trained to fill in masked tokens; Megatron's form norms before each branch.
//!
//! The pooler belongs to the published model and is counted and held, but the loss of masked
//! tokens does not reach it: it has no operators. The head that predicts the tokens is needed in
//! training only and counted apart.

use super::blocks;
use crate::model::Model;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Form;
use crate::model::layer::Layer;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
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
    let mut x = blocks::types(&mut layer, placed);
    if spec.norm_place == NormPlace::After {
        x = layer.norm("embedding_norm", Norm::Layer, x);
    }
    let dropped = layer.dropout("embedding_dropout", x, spec.dropout.embedding);
    layer.finish(Some(dropped))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let mut x = layer.input();
    if spec.final_norm {
        x = layer.norm("final_norm", Norm::Layer, x);
    }
    layer.weight("pooler_weight", &[Dim::Hidden, Dim::Transformed]);
    layer.weight("pooler_bias", &[Dim::Transformed]);
    let transformed = transform(&mut layer, x, spec);
    blocks::head(layer, transformed, Dim::Transformed, spec, true)
}

/// The head's own matmul, activation and norm, before the table of tokens is used again.
fn transform(layer: &mut LayerBuilder, x: TensorId, spec: &Spec) -> TensorId {
    let form = Form::HeadWeight;
    let weight = layer.tensor("transform_weight", &[Dim::Hidden, Dim::Transformed], form);
    let dims = [Dim::Batch, Dim::Sequence, Dim::Transformed];
    let mut y = layer.contract("transform", x, weight, &dims);
    let bias = layer.tensor("transform_bias", &[Dim::Transformed], form);
    y = layer.table("transform_bias", y, bias, 1);
    y = layer.vector("transform_activation", spec.activation.kind(), &[y]);
    let gain = layer.tensor("transform_norm_gain", &[Dim::Transformed], form);
    let bias = layer.tensor("transform_norm_bias", &[Dim::Transformed], form);
    let reads = [y, gain, bias];
    layer.vector_along("transform_norm", VectorKind::LayerNorm, &reads, 1, Form::Activation)
}
