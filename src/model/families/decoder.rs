//! Every decoder whose numbers say all that there is to know of its layers: Gemma, Phi, Falcon,
//! Nemotron and many more.

use super::blocks;
use super::blocks::Mlp;
use super::mixture;
use super::next_token;
use crate::model::Model;
use crate::model::Variant;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Layer;
use crate::model::op::VectorKind;
use crate::model::spec::Branches;
use crate::model::spec::Spec;

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    let transformer = |variant: Variant| {
        let mlp = mlp_of(spec, variant);
        match spec.branches {
            Branches::InTurn => blocks::transformer(spec, variant, spec.norm, mlp),
            Branches::SideBySide | Branches::SideBySideWithOneNorm => {
                blocks::side_by_side(spec, variant, spec.norm, mlp)
            }
        }
    };
    if spec.next_tokens == 0 {
        return Model::chain(spec, embedding(spec), transformer, head(spec));
    }
    let model = Model::chain(spec, embedding(spec), transformer, next_token::head(spec));
    next_token::joined(model, next_token::layer(spec))
}

/// What stands in the second half of a layer.
pub fn mlp_of(spec: &Spec, variant: Variant) -> Mlp {
    match (spec.experts.is_some() && variant.experts, spec.gated) {
        (true, _) => mixture::experts,
        (false, true) => blocks::gated_mlp,
        (false, false) => blocks::mlp,
    }
}

fn embedding(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("embedding");
    let mut x = blocks::tokens(&mut layer, spec);
    if spec.embedding_scaled {
        x = layer.vector("embedding_scale", VectorKind::Scale, &[x]);
    }
    if spec.positions.is_some() {
        x = blocks::positions(&mut layer, x);
    }
    if spec.embedding_norm {
        x = layer.norm("embedding_norm", spec.norm, x);
    }
    let dropped = layer.dropout("embedding_dropout", x, spec.dropout.embedding);
    layer.finish(Some(dropped))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let mut x = layer.input();
    if spec.final_norm {
        x = layer.norm("final_norm", spec.norm, x);
    }
    blocks::head(layer, x, Dim::Hidden, spec, false)
}
