//! T5: an encoder, and a decoder whose layers attend to the encoder's output.
//!
//! The encoder's output travels on beside the decoder's tokens, so the model stays a chain: behind
//! the encoder stands a layer that joins both, and each layer of the decoder is two, its own
//! attention and the rest, because a layer meets pairs of tokens once. A sequence has as many tokens
//! for the encoder as for the decoder. The learned figures of distances are held, and added in the
//! mask; their gradients are not counted.

use super::blocks;
use super::blocks::Mlp;
use crate::model::Model;
use crate::model::Reach;
use crate::model::Variant;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Form;
use crate::model::layer::Layer;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::model::spec::Spec;

/// What queries have in each head.
const HEADS: [Dim; 3] = [Dim::KvHeads, Dim::Group, Dim::Head];

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    let mlp: Mlp = if spec.gated { blocks::gated_mlp } else { blocks::mlp };
    let encoder = blocks::transformer(spec, Variant::PLAIN, spec.norm, mlp);
    let kinds = vec![
        embedding(spec),
        Layer { name: "encoder".into(), reach: Reach::Every, ..encoder },
        join(spec),
        own_attention(spec),
        Layer { reach: Reach::Every, ..other_attention("decoder_rest", spec, mlp, Ends::Pair) },
        Layer { reach: Reach::Every, ..other_attention("decoder_end", spec, mlp, Ends::Tokens) },
        head(spec),
    ];
    let n = |layers: u64| usize::try_from(layers).expect("layers are bounded");
    let mut sequence = vec![0];
    sequence.extend(std::iter::repeat_n(1, n(spec.layers)));
    sequence.push(2);
    sequence.extend(std::iter::repeat_n([3, 4], n(spec.decoder_layers)).flatten());
    // The encoder's output ends where nothing attends to it any more.
    sequence.pop();
    sequence.extend([5, 6]);
    if spec.decoder_layers > 1 {
        return Model { spec: spec.clone(), kinds, sequence };
    }
    // One layer is the last as well, so that no kind stands for nothing.
    let kinds = kinds.into_iter().enumerate().filter(|(at, _)| *at != 4).map(|(_, kind)| kind);
    let sequence = sequence.into_iter().map(|kind| if kind > 4 { kind - 1 } else { kind });
    Model { spec: spec.clone(), kinds: kinds.collect(), sequence: sequence.collect() }
}

/// The learned figures of distances of one of the two halves.
fn distances(layer: &mut LayerBuilder) {
    layer.weight("distances", &[Dim::Buckets, Dim::KvHeads, Dim::Group]);
}

fn embedding(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("embedding");
    distances(&mut layer);
    let tokens = blocks::tokens(&mut layer, spec);
    let dropped = layer.dropout("embedding_dropout", tokens, spec.dropout.embedding);
    layer.finish(Some(dropped))
}

/// The end of the encoder and the beginning of the decoder.
fn join(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("decoder_embedding");
    let x = layer.input();
    let encoded = layer.norm("encoder_norm", spec.norm, x);
    let encoded = layer.dropout("encoder_dropout", encoded, spec.dropout.hidden);
    distances(&mut layer);
    let table = layer.tensor("token_table", &[Dim::Vocabulary, Dim::Hidden], Form::TiedWeight);
    let tokens = layer.gather("tokens", table, Dim::Hidden);
    let tokens = layer.dropout("embedding_dropout", tokens, spec.dropout.embedding);
    let output = layer.output_pair([encoded, tokens]);
    layer.finish(Some(output))
}

/// The decoder's tokens attend to each other.
fn own_attention(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("decoder_attention");
    let [encoded, x] = layer.input_pair(["encoded", "tokens"]);
    let normed = blocks::branch_norm(&mut layer, "attention_norm", spec.norm, x);
    let attended = blocks::attention(&mut layer, normed, spec, Variant::PLAIN);
    let y = blocks::residual(&mut layer, "attention_residual", attended, x);
    let output = layer.output_pair([encoded, y]);
    layer.finish(Some(output))
}

/// What a layer hands on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Pair,
    Tokens,
}

/// The decoder's tokens attend to the encoder's output, and the MLP.
fn other_attention(name: &str, spec: &Spec, mlp: Mlp, ends: Ends) -> Layer {
    let mut layer = LayerBuilder::new(name);
    let [encoded, x] = layer.input_pair(["encoded", "tokens"]);
    let normed = blocks::branch_norm(&mut layer, "attention_norm", spec.norm, x);
    let attended = attention_to(&mut layer, normed, encoded, spec);
    let middle = blocks::residual(&mut layer, "attention_residual", attended, x);
    let normed = blocks::branch_norm(&mut layer, "mlp_norm", spec.norm, middle);
    let thought = mlp(&mut layer, normed, spec);
    let y = blocks::residual(&mut layer, "mlp_residual", thought, middle);
    let output = match ends {
        Ends::Pair => layer.output_pair([encoded, y]),
        Ends::Tokens => y,
    };
    layer.finish(Some(output))
}

/// Queries of the tokens `x`, keys and values of `encoded`.
fn attention_to(layer: &mut LayerBuilder, x: TensorId, encoded: TensorId, spec: &Spec) -> TensorId {
    let q = layer.linear("q", x, &[Dim::Hidden], &HEADS);
    let to = [Dim::Pair, Dim::KvHeads, Dim::Head];
    let both = layer.linear("kv", encoded, &[Dim::Hidden], &to);
    let keys = [Dim::Batch, Dim::Keys, Dim::KvHeads, Dim::Head];
    let parts = layer.split("kv_heads", both, &[("k", &keys), ("v", &keys)]);
    let queries = [&[Dim::Batch, Dim::Sequence][..], &HEADS].concat();
    let context = blocks::core(layer, (q, parts[0], parts[1]), &queries, spec);
    blocks::attention_end(layer, context, &HEADS, spec)
}

fn head(spec: &Spec) -> Layer {
    let mut layer = LayerBuilder::new("head");
    let x = layer.input();
    let x = layer.norm("final_norm", spec.norm, x);
    let mut x = layer.dropout("final_dropout", x, spec.dropout.hidden);
    if spec.tied {
        x = layer.vector("head_scale", VectorKind::Scale, &[x]);
    }
    blocks::head(layer, x, Dim::Hidden, spec, false)
}
