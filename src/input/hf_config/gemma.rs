//! Gemma in its generations.

use super::layers;
use super::readers::Fill;
use super::readers::Names;
use super::readers::USUAL;
use super::readers::numbers;
use crate::input::InputError;
use crate::input::fields::Fields;
use crate::model::spec::Activation;
use crate::model::spec::Biases;
use crate::model::spec::Capped;
use crate::model::spec::Dropout;
use crate::model::spec::Family;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;

/// What all generations have in common.
fn first(fields: &Fields, fill: &Fill) -> Result<Spec, InputError> {
    let attention_bias = fields.flag("attention_bias", false)?;
    let names = Names { activation: "hidden_activation", ..USUAL };
    let fill = Fill { activation: Some(Activation::Gelu), tied: true, ..*fill };
    let spec = numbers(fields, Family::Decoder, &names, &fill)?;
    Ok(Spec {
        positions: None,
        norm: Norm::Rms,
        gated: true,
        embedding_scaled: true,
        biases: Biases { qkv: attention_bias, attention_out: attention_bias, mlp: false },
        dropout: Dropout {
            attention: fields.dropout("attention_dropout", 0.0)?,
            ..Dropout::default()
        },
        ..spec
    })
}

pub fn gemma(fields: &Fields) -> Result<Spec, InputError> {
    first(fields, &Fill { head: Some(256), vocabulary: Some(256_000), ..Fill::default() })
}

/// Norms around each branch, every other layer with a window, scores and logits within bounds.
pub fn gemma2(fields: &Fields) -> Result<Spec, InputError> {
    let spec =
        first(fields, &Fill { head: Some(256), vocabulary: Some(256_000), ..Fill::default() })?;
    let window = Some(fields.optional_size("sliding_window")?.unwrap_or(4096));
    Ok(Spec {
        variants: layers::variants(fields, spec.layers, window, |layer| layer % 2 == 0)?,
        norm_place: NormPlace::Around,
        // What is absent is 50 and 30; what is null is not capped.
        capped: Capped {
            scores: !fields.is_null("attn_logit_softcapping"),
            logits: !fields.is_null("final_logit_softcapping"),
        },
        ..spec
    })
}

/// Norms of queries and keys, and one layer of six without a window.
pub fn gemma3(fields: &Fields) -> Result<Spec, InputError> {
    let fill = Fill {
        heads: Some(8),
        kv_heads: Some(4),
        head: Some(256),
        vocabulary: Some(262_208),
        max_sequence: Some(131_072),
        ..Fill::default()
    };
    let spec = first(fields, &fill)?;
    let window = Some(fields.optional_size("sliding_window")?.unwrap_or(4096));
    let pattern = fields.optional_size("sliding_window_pattern")?.unwrap_or(6);
    Ok(Spec {
        variants: layers::variants(fields, spec.layers, window, |at| (at + 1) % pattern != 0)?,
        norm_place: NormPlace::Around,
        qk_norm: QkNorm::PerHead,
        capped: Capped {
            scores: fields.optional("attn_logit_softcapping").is_some(),
            logits: fields.optional("final_logit_softcapping").is_some(),
        },
        ..spec
    })
}
