//! OPT: learned positions, `ReLU`, norms before the branches, or after the residuals in the one size
//! that also projects a narrower embedding.

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
    layer.finish(Some(placed))
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let mut x = layer.input();
    if spec.final_norm {
        x = layer.norm("final_norm", Norm::Layer, x);
    }
    blocks::head(layer, x, Dim::Hidden, spec, false)
}
