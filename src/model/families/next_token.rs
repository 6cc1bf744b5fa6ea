//! Prediction of the token after the next, as DeepSeek-V3 trains it: a layer behind the last that joins
//! what that one makes of a token with the token after it, and shares both tables.
//!
//! Only training needs it: its parameters are counted apart. What the last layer made travels on
//! beside it, so that the model stays a chain and one head tells both tokens.

use super::blocks;
use super::decoder;
use crate::model::Model;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Form;
use crate::model::layer::Layer;
use crate::model::spec::Spec;

/// The layer: both inputs normed and projected, a transformer layer as the model's last, and a norm.
pub fn layer(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::for_training("next_token");
    let x = layer.input();
    let table = layer.tensor("token_table", &[Dim::Vocabulary, Dim::Hidden], Form::TiedWeight);
    let tokens = layer.gather("tokens", table, Dim::Hidden);
    let tokens = layer.norm("token_norm", spec.norm, tokens);
    let normed = layer.norm("input_norm", spec.norm, x);
    let both = [Dim::Batch, Dim::Sequence, Dim::Pair, Dim::Transformed];
    let both = layer.concat("both", &[tokens, normed], &both);
    let from = [Dim::Pair, Dim::Transformed];
    let joined = layer.linear("join", both, &from, &[Dim::Hidden]);
    let last = usize::try_from(spec.layers).expect("layers are bounded").saturating_sub(1);
    let variant = spec.variant(last);
    let mlp = decoder::mlp_of(spec, variant);
    let thought = blocks::in_turn(&mut layer, joined, (spec, variant), spec.norm, mlp);
    let told = layer.norm("end_norm", spec.norm, thought);
    let output = layer.output_pair([x, told]);
    Layer { reach: variant.reach, ..layer.finish(Some(output)) }
}

/// The head of both tokens: what the last layer made is normed here, the other one already was.
pub fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let [x, next] = layer.input_pair(["last", "next"]);
    let x = if spec.final_norm { layer.norm("final_norm", spec.norm, x) } else { x };
    let both = layer.output_pair([x, next]);
    blocks::head(layer, both, Dim::Hidden, spec, false)
}

/// The model with the layer before its head.
pub fn joined(mut model: Model, layer: Layer) -> Model {
    let head = model.kinds.len() - 1;
    model.kinds.insert(head, layer);
    model.sequence.pop();
    model.sequence.extend([head, head + 1]);
    model
}
