//! The parts that families share.

use super::latent;
use crate::model::Module;
use crate::model::Variant;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Form;
use crate::model::layer::Layer;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::model::spec::Branches;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;

/// How a family writes the second half of a layer.
pub type Mlp = fn(&mut LayerBuilder, TensorId, &Spec) -> TensorId;

/// A transformer layer: attention, then `mlp`, each a branch of the residual stream, normed where
/// the numbers say.
pub fn transformer(spec: &Spec, variant: Variant, norm: Norm, mlp: Mlp) -> Layer {
    let mut layer = LayerBuilder::new("transformer");
    let x = layer.input();
    let output = in_turn(&mut layer, x, (spec, variant), norm, mlp);
    layer.finish(Some(output))
}

/// The same from the tokens `x` of a layer that does more than that.
pub fn in_turn(
    layer: &mut LayerBuilder,
    x: TensorId,
    (spec, variant): (&Spec, Variant),
    norm: Norm,
    mlp: Mlp,
) -> TensorId {
    match spec.norm_place {
        NormPlace::Before => {
            let normed = branch_norm(layer, "attention_norm", norm, x);
            let attended = attention(layer, normed, spec, variant);
            let middle = residual(layer, "attention_residual", attended, x);
            let normed = branch_norm(layer, "mlp_norm", norm, middle);
            let thought = mlp(layer, normed, spec);
            residual(layer, "mlp_residual", thought, middle)
        }
        NormPlace::After => {
            let attended = attention(layer, x, spec, variant);
            let middle = residual(layer, "attention_residual", attended, x);
            let normed = branch_norm(layer, "attention_norm", norm, middle);
            let thought = mlp(layer, normed, spec);
            let sum = residual(layer, "mlp_residual", thought, normed);
            branch_norm(layer, "mlp_norm", norm, sum)
        }
        NormPlace::Around | NormPlace::AtEnd => normed_at_end(layer, x, spec, variant, mlp),
    }
}

/// Branches whose results are normed before they are added, and their inputs too where the numbers
/// say.
fn normed_at_end(
    layer: &mut LayerBuilder,
    x: TensorId,
    spec: &Spec,
    variant: Variant,
    mlp: Mlp,
) -> TensorId {
    let at_start = |layer: &mut LayerBuilder, name: &str, x: TensorId| match spec.norm_place {
        NormPlace::Around => branch_norm(layer, name, spec.norm, x),
        NormPlace::Before | NormPlace::After | NormPlace::AtEnd => x,
    };
    let normed = at_start(layer, "attention_norm", x);
    let attended = attention(layer, normed, spec, variant);
    let attended = branch_norm(layer, "attention_end_norm", spec.norm, attended);
    let middle = residual(layer, "attention_residual", attended, x);
    let normed = at_start(layer, "mlp_norm", middle);
    let thought = mlp(layer, normed, spec);
    let thought = branch_norm(layer, "mlp_end_norm", spec.norm, thought);
    residual(layer, "mlp_residual", thought, middle)
}

/// Attention and MLP read the same tokens, each through a norm of its own or both through one.
pub fn side_by_side(spec: &Spec, variant: Variant, norm: Norm, mlp: Mlp) -> Layer {
    let mut layer = LayerBuilder::new("transformer");
    let x = layer.input();
    let mut normed = branch_norm(&mut layer, "attention_norm", norm, x);
    let attended = attention(&mut layer, normed, spec, variant);
    if spec.branches == Branches::SideBySide {
        normed = branch_norm(&mut layer, "mlp_norm", norm, x);
    }
    let thought = mlp(&mut layer, normed, spec);
    let both = residual(&mut layer, "branches_sum", thought, attended);
    let output = residual(&mut layer, "residual", both, x);
    layer.finish(Some(output))
}

/// A norm of the residual stream, which can be repeated by itself.
pub fn branch_norm(layer: &mut LayerBuilder, name: &str, norm: Norm, x: TensorId) -> TensorId {
    layer.module(Module::LayerNorm, |layer| layer.norm(name, norm, x))
}

/// The dimensions of all heads' elements side by side.
const HEADS: [Dim; 3] = [Dim::KvHeads, Dim::Group, Dim::Head];

/// Attention from the token `x` to its output projection, with that one's bias and dropout.
pub fn attention(layer: &mut LayerBuilder, x: TensorId, spec: &Spec, variant: Variant) -> TensorId {
    if let Some(latent) = &spec.latent {
        return latent::attention(layer, x, spec, latent);
    }
    let qkv = layer.linear("qkv", x, &[Dim::Hidden], &[Dim::QkvHeads, Dim::Head]);
    let qkv = layer.bias("qkv_bias", qkv, 2, spec.biases.qkv);
    let queries = [&[Dim::Batch, Dim::Sequence][..], &HEADS].concat();
    let keys = [Dim::Batch, Dim::Keys, Dim::KvHeads, Dim::Head];
    let parts = layer.split("heads", qkv, &[("q", &queries), ("k", &keys), ("v", &keys)]);
    let (mut q, mut k, v) = (parts[0], parts[1], parts[2]);
    match spec.qk_norm {
        QkNorm::None => {}
        QkNorm::PerHead | QkNorm::PerHeadWithoutGain => {
            let has_gain = spec.qk_norm == QkNorm::PerHead;
            let norm = if has_gain { Norm::Rms } else { Norm::RmsWithoutGain };
            q = layer.norm("q_norm", norm, q);
            k = layer.norm("k_norm", norm, k);
        }
        QkNorm::AllHeads => {
            q = layer.norm_along("q_norm", Norm::Rms, q, HEADS.len());
            k = layer.norm_along("k_norm", Norm::Rms, k, HEADS.len() - 1);
        }
    }
    if spec.positions.is_none() && spec.rotary > 0 && variant.rotary {
        q = layer.rotary("q_rotary", q);
        k = layer.rotary("k_rotary", k);
    }
    let context = core(layer, (q, k, v), &queries, spec);
    attention_end(layer, context, &HEADS, spec)
}

/// Attention's core: what each token takes from the values of those that it attends to.
pub fn core(
    layer: &mut LayerBuilder,
    (q, k, v): (TensorId, TensorId, TensorId),
    result: &[Dim],
    spec: &Spec,
) -> TensorId {
    if spec.sinks {
        layer.weight("sinks", &[Dim::KvHeads, Dim::Group]);
    }
    layer.module(Module::CoreAttention, |layer| {
        let probabilities = layer.core(|layer| {
            let dims = [Dim::Batch, Dim::KvHeads, Dim::Group, Dim::Sequence, Dim::Keys];
            let scores = layer.contract("scores", q, k, &dims);
            let mut scaled = layer.vector("scale", VectorKind::Scale, &[scores]);
            if spec.capped.scores {
                scaled = layer.vector("scores_cap", VectorKind::Tanh, &[scaled]);
            }
            // A mask that tells positions holds how far apart two tokens are in place of zeros.
            let masked = layer.vector("mask", VectorKind::Mask, &[scaled]);
            let probabilities = layer.vector("softmax", VectorKind::Softmax, &[masked]);
            layer.dropout("softmax_dropout", probabilities, spec.dropout.attention)
        });
        layer.contract("context", probabilities, v, result)
    })
}

/// The output projection of attention, with its bias and dropout.
pub fn attention_end(
    layer: &mut LayerBuilder,
    context: TensorId,
    heads: &[Dim],
    spec: &Spec,
) -> TensorId {
    let out = layer.linear("attention_out", context, heads, &[Dim::Hidden]);
    let out = layer.bias("attention_out_bias", out, 1, spec.biases.attention_out);
    layer.dropout("attention_dropout", out, spec.dropout.hidden)
}

/// Two matmuls with an activation between them, and the second one's bias and dropout.
pub fn mlp(layer: &mut LayerBuilder, x: TensorId, spec: &Spec) -> TensorId {
    let down = layer.module(Module::Mlp, |layer| {
        let up = layer.linear("mlp_up", x, &[Dim::Hidden], &[Dim::Mlp]);
        let up = layer.bias("mlp_up_bias", up, 1, spec.biases.mlp);
        let active = layer.vector("activation", spec.activation.kind(), &[up]);
        mlp_down(layer, active, spec)
    });
    mlp_end(layer, down, spec)
}

/// The same with a second branch that the activated one is multiplied by.
pub fn gated_mlp(layer: &mut LayerBuilder, x: TensorId, spec: &Spec) -> TensorId {
    let down = layer.module(Module::Mlp, |layer| {
        let both = layer.linear("mlp_gate_up", x, &[Dim::Hidden], &[Dim::Gates, Dim::Mlp]);
        let both = layer.bias("mlp_gate_up_bias", both, 2, spec.biases.mlp);
        let half = [Dim::Batch, Dim::Sequence, Dim::Mlp];
        let parts = layer.split("branches", both, &[("gate", &half), ("up", &half)]);
        let active = layer.vector("activation", spec.activation.kind(), &[parts[0]]);
        let product = layer.vector("gate_times_up", VectorKind::Multiply, &[active, parts[1]]);
        mlp_down(layer, product, spec)
    });
    mlp_end(layer, down, spec)
}

fn mlp_down(layer: &mut LayerBuilder, active: TensorId, spec: &Spec) -> TensorId {
    let active = layer.dropout("activation_dropout", active, spec.dropout.activation);
    layer.linear("mlp_down", active, &[Dim::Mlp], &[Dim::Hidden])
}

/// The bias and dropout of the second matmul, which frameworks run with the residual.
fn mlp_end(layer: &mut LayerBuilder, down: TensorId, spec: &Spec) -> TensorId {
    let down = layer.bias("mlp_down_bias", down, 1, spec.biases.mlp);
    layer.dropout("mlp_dropout", down, spec.dropout.hidden)
}

/// A residual: the branch added to what it started from.
pub fn residual(layer: &mut LayerBuilder, name: &str, branch: TensorId, x: TensorId) -> TensorId {
    layer.vector(name, VectorKind::Add, &[branch, x])
}

/// Token embeddings, projected to the hidden size where the table is narrower.
pub fn tokens(layer: &mut LayerBuilder, spec: &Spec) -> TensorId {
    let row = if spec.embedding == spec.hidden { Dim::Hidden } else { Dim::Embedding };
    let table = layer.weight("token_table", &[Dim::Vocabulary, row]);
    let tokens = layer.gather("tokens", table, row);
    match row {
        Dim::Embedding => layer.linear("project_in", tokens, &[Dim::Embedding], &[Dim::Hidden]),
        _ => tokens,
    }
}

/// Learned positions added to each token of a sequence.
pub fn positions(layer: &mut LayerBuilder, x: TensorId) -> TensorId {
    let table = layer.weight("position_table", &[Dim::Positions, Dim::Hidden]);
    layer.table("positions", x, table, 2)
}

/// The learned type of each token, of which there are a handful.
pub fn types(layer: &mut LayerBuilder, x: TensorId) -> TensorId {
    let table = layer.weight("type_table", &[Dim::Types, Dim::Hidden]);
    layer.table("types", x, table, 1)
}

/// The logits of each token, projected first where the table is narrower, and the loss.
///
/// A training head has a bias, and it and its own table are no part of the published model.
pub fn head(mut layer: LayerBuilder, x: TensorId, from: Dim, spec: &Spec, training: bool) -> Layer {
    let (x, from) = if spec.embedding == spec.hidden {
        (x, from)
    } else {
        (layer.linear("project_out", x, &[from], &[Dim::Embedding]), Dim::Embedding)
    };
    let own = if training { Form::HeadWeight } else { Form::Weight };
    let form = if spec.tied { Form::TiedWeight } else { own };
    let table = layer.tensor("head_weight", &[from, Dim::Vocabulary], form);
    let mut dims = layer.dims(x).to_vec();
    dims.pop();
    dims.push(Dim::Vocabulary);
    let mut logits = layer.contract("logits", x, table, &dims);
    if training || spec.head_bias {
        let bias = layer.tensor("logits_bias", &[Dim::Vocabulary], own);
        logits = layer.table("logits_bias", logits, bias, 1);
    }
    if spec.capped.logits {
        logits = layer.vector("logits_cap", VectorKind::Tanh, &[logits]);
    }
    layer.loss("loss", logits);
    layer.finish(None)
}
