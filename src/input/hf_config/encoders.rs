//! Models with an encoder that reads something else than the text to be told: T5 and `ViT`.

use super::readers::Fill;
use super::readers::MOST_LAYERS;
use super::readers::Names;
use super::readers::USUAL;
use super::readers::numbers;
use crate::input::InputError;
use crate::input::fields::Fields;
use crate::input::fields::LARGEST_SIZE;
use crate::model::spec::Activation;
use crate::model::spec::Biases;
use crate::model::spec::Dropout;
use crate::model::spec::Family;
use crate::model::spec::Norm;
use crate::model::spec::Spec;

/// T5 and mT5: no biases, root-mean-square norms, distances between tokens in buckets.
pub fn t5(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names {
        hidden: "d_model",
        heads: "num_heads",
        layers: "num_layers",
        mlp: "d_ff",
        positions: "n_positions",
        activation: "dense_act_fn",
    };
    let (activation, gated) = feed_forward(fields)?;
    let fill = Fill {
        head: Some(fields.optional_size("d_kv")?.unwrap_or(64)),
        max_sequence: Some(512),
        activation: Some(activation),
        tied: true,
        ..Fill::default()
    };
    let spec = numbers(fields, Family::T5, &names, &fill)?;
    let dropped = fields.dropout("dropout_rate", 0.1)?;
    Ok(Spec {
        decoder_layers: fields.bounded("num_decoder_layers", MOST_LAYERS)?.unwrap_or(spec.layers),
        buckets: fields.optional_size("relative_attention_num_buckets")?.unwrap_or(32),
        kv_heads: spec.heads,
        positions: None,
        rotary: 0,
        activation,
        gated,
        norm: Norm::Rms,
        biases: Biases::default(),
        dropout: Dropout {
            embedding: dropped,
            attention: dropped,
            hidden: dropped,
            activation: dropped,
        },
        ..spec
    })
}

/// The activation of the MLP, and whether it has a gate.
fn feed_forward(fields: &Fields) -> Result<(Activation, bool), InputError> {
    let field = "feed_forward_proj";
    if fields.optional(field).is_none() {
        return Ok((Activation::Relu, false));
    }
    let said = fields.text(field, "the activation, such as \"gated-gelu\"")?;
    let (name, gated) = said.strip_prefix("gated-").map_or((said, false), |name| (name, true));
    let activation = match name {
        "relu" => Activation::Relu,
        "gelu" | "gelu_new" => Activation::Gelu,
        "silu" | "swish" => Activation::Silu,
        _ => {
            let allowed = "known are relu, gelu, silu, and each of them after \"gated-\"";
            return Err(fields.wrong(field, "is not a known activation", allowed));
        }
    };
    Ok((activation, gated))
}

/// `ViT`, as it tells classes of images: what it is trained for.
pub fn vit(fields: &Fields) -> Result<Spec, InputError> {
    let size = |field: &str, usual: u64| Ok(fields.optional_size(field)?.unwrap_or(usual));
    let (image, patch) = (size("image_size", 224)?, size("patch_size", 16)?);
    let channels = size("num_channels", 3)?;
    let side = image / patch;
    if side == 0 {
        let problem = format!("is larger than `image_size = {image}`");
        return Err(fields.wrong("patch_size", &problem, "give a part of the image"));
    }
    let tokens = side.saturating_mul(side).saturating_add(1);
    let elements = patch.saturating_mul(patch).saturating_mul(channels);
    if tokens.max(elements) > LARGEST_SIZE {
        let problem = format!("makes {tokens} tokens of {elements} elements");
        let allowed = format!("at most {LARGEST_SIZE} of either are counted");
        return Err(fields.wrong("image_size", &problem, &allowed));
    }
    let fill = Fill {
        vocabulary: Some(classes(fields)?),
        max_sequence: Some(tokens),
        activation: Some(Activation::Gelu),
        ..Fill::default()
    };
    let spec = numbers(fields, Family::Vit, &USUAL, &fill)?;
    let hidden = fields.dropout("hidden_dropout_prob", 0.0)?;
    Ok(Spec {
        patch: elements,
        vocabulary: classes(fields)?,
        max_sequence: tokens,
        positions: Some(tokens),
        tied: false,
        head_bias: true,
        biases: Biases { qkv: fields.flag("qkv_bias", true)?, attention_out: true, mlp: true },
        dropout: Dropout {
            embedding: hidden,
            hidden,
            attention: fields.dropout("attention_probs_dropout_prob", 0.0)?,
            activation: false,
        },
        ..spec
    })
}

/// The classes that are told: as many as have a name, and two where a file is silent.
fn classes(fields: &Fields) -> Result<u64, InputError> {
    if let Some(count) = fields.optional_size("num_labels")? {
        return Ok(count);
    }
    let Some(named) = fields.optional("id2label") else { return Ok(2) };
    match named.as_object().map(|names| names.len() as u64) {
        Some(count @ 1..) => Ok(count.min(LARGEST_SIZE)),
        _ => Err(fields.wrong("id2label", "names no classes", "give a name for each number")),
    }
}
