//! Latent attention: queries, keys and values made from a few latent elements of each token.

use super::blocks;
use crate::model::Latent;
use crate::model::Module;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Form;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::model::spec::Norm;
use crate::model::spec::Spec;

const TOKENS: [Dim; 2] = [Dim::Batch, Dim::Sequence];

/// Attention from the token `x` to its output projection, with that one's bias and dropout.
pub fn attention(layer: &mut LayerBuilder, x: TensorId, spec: &Spec, latent: &Latent) -> TensorId {
    let heads = [Dim::KvHeads, Dim::Group, Dim::Head];
    // What is small is made from each token once; what is large is made from that.
    let (from, tokens) = if latent.query.is_some() {
        ([Dim::QueryLatent], layer.linear("q_down", x, &[Dim::Hidden], &[Dim::QueryLatent]))
    } else {
        ([Dim::Hidden], x)
    };
    let both = layer.linear("kv_down", x, &[Dim::Hidden], &[Dim::KvLatentRotary]);
    let kv_dims = [&TOKENS[..], &[Dim::KvLatent]].concat();
    let rotary_dims = [&TOKENS[..], &[Dim::Rotary]].concat();
    let parts = [("kv_latent", &kv_dims[..]), ("k_position", &rotary_dims)];
    let parts = layer.split("kv_parts", both, &parts);
    let (q, k, v) = layer.module(Module::LatentUpProjection, |layer| {
        let tokens = match latent.query {
            Some(_) => layer.norm("q_latent_norm", Norm::Rms, tokens),
            None => tokens,
        };
        let q = layer.linear("q_up", tokens, &from, &heads);
        let q = layer.rotary("q_rotary", q);
        let kv = layer.norm("kv_latent_norm", Norm::Rms, parts[0]);
        let (k, v) = keys_values(layer, kv, parts[1]);
        (q, k, v)
    });
    let values = [&TOKENS[..], &[Dim::KvHeads, Dim::Group, Dim::Value]].concat();
    let context = blocks::core(layer, (q, k, v), &values, spec);
    let value = [Dim::KvHeads, Dim::Group, Dim::Value];
    blocks::attention_end(layer, context, &value, spec)
}

/// Keys, of which the part that carries the position is the same for all heads, and values.
fn keys_values(layer: &mut LayerBuilder, kv: TensorId, position: TensorId) -> (TensorId, TensorId) {
    let to = [Dim::KvHeads, Dim::UnplacedValue];
    let both = layer.linear("kv_up", kv, &[Dim::KvLatent], &to);
    let k = [Dim::Batch, Dim::Keys, Dim::KvHeads, Dim::Unplaced];
    let v = [Dim::Batch, Dim::Keys, Dim::KvHeads, Dim::Value];
    let parts = layer.split("kv_heads", both, &[("k_unplaced", &k), ("v", &v)]);
    let position = layer.rotary("k_rotary", position);
    let rows = [Dim::Batch, Dim::Keys, Dim::KvHeads];
    let dims = [&rows[..], &[Dim::Head]].concat();
    let work = (VectorKind::Join, &rows[..], &[Dim::Head][..]);
    let k = layer.vector_to("k", work, &[parts[0], position], (&dims, Form::Activation));
    (k, parts[1])
}
