//! Decoders whose numbers say all that there is to know of their layers, one function each.

use serde_json::Value;

use super::layers;
use super::readers::Fill;
use super::readers::GPT;
use super::readers::MOST_LAYERS;
use super::readers::Names;
use super::readers::USUAL;
use super::readers::four_times;
use super::readers::numbers;
use super::readers::part_of_head;
use crate::input::InputError;
use crate::input::fields::Fields;
use crate::model::Reach;
use crate::model::Variant;
use crate::model::spec::Activation;
use crate::model::spec::Biases;
use crate::model::spec::Branches;
use crate::model::spec::Dropout;
use crate::model::spec::Family;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;

pub const NO_BIAS: Biases = Biases { qkv: false, attention_out: false, mlp: false };

/// A decoder with rotary positions, root-mean-square norms and a gated MLP without biases, as most
/// are.
pub fn usual(fields: &Fields, fill: &Fill) -> Result<Spec, InputError> {
    let fill = Fill { activation: fill.activation.or(Some(Activation::Silu)), ..*fill };
    let spec = numbers(fields, Family::Decoder, &USUAL, &fill)?;
    Ok(Spec {
        positions: None,
        norm: Norm::Rms,
        gated: true,
        biases: NO_BIAS,
        dropout: Dropout {
            attention: fields.dropout("attention_dropout", 0.0)?,
            ..Dropout::default()
        },
        ..spec
    })
}

/// Refuses a switch that would put norms of another kind on queries and keys.
fn no_norm_of_heads(fields: &Fields, field: &str) -> Result<(), InputError> {
    if fields.flag(field, false)? {
        let problem = "asks for norms with a gain for each head";
        return Err(fields.wrong(field, problem, "only false is understood"));
    }
    Ok(())
}

/// Positions told by the mask, tokens normed before the first layer.
pub fn bloom(fields: &Fields) -> Result<Spec, InputError> {
    let either = |usual: &'static str, own: &'static str| {
        if fields.optional(own).is_some() { own } else { usual }
    };
    let names = Names {
        hidden: either("hidden_size", "n_embed"),
        heads: either("num_attention_heads", "n_head"),
        layers: either("num_hidden_layers", "n_layer"),
        mlp: "n_inner",
        positions: "seq_length",
        activation: "activation_function",
    };
    let fill = Fill {
        mlp: four_times(fields, names.hidden),
        max_sequence: Some(2048),
        activation: Some(Activation::Gelu),
        tied: true,
        ..Fill::default()
    };
    let hidden_dropout = fields.dropout("hidden_dropout", 0.0)?;
    let spec = numbers(fields, Family::Decoder, &names, &fill)?;
    Ok(Spec {
        positions: None,
        rotary: 0,
        embedding_norm: true,
        dropout: Dropout {
            hidden: hidden_dropout,
            attention: fields.dropout("attention_dropout", 0.0)?,
            ..Dropout::default()
        },
        ..spec
    })
}

/// Attention and MLP side by side through one norm without bias; logits are scaled, which costs
/// nothing beside them.
pub fn cohere(fields: &Fields) -> Result<Spec, InputError> {
    no_norm_of_heads(fields, "use_qk_norm")?;
    let attention_bias = fields.flag("attention_bias", false)?;
    let spec = usual(fields, &Fill { tied: true, ..Fill::default() })?;
    Ok(Spec {
        norm: Norm::LayerWithoutBias,
        branches: Branches::SideBySideWithOneNorm,
        biases: Biases { qkv: attention_bias, attention_out: attention_bias, mlp: false },
        ..spec
    })
}

pub fn falcon(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names { mlp: "ffn_hidden_size", activation: "activation", ..USUAL };
    let fill = Fill {
        mlp: four_times(fields, names.hidden),
        max_sequence: Some(2048),
        activation: Some(Activation::Gelu),
        tied: true,
        ..Fill::default()
    };
    let spec = numbers(fields, Family::Decoder, &names, &fill)?;
    let grouped = fields.flag("new_decoder_architecture", false)?;
    let kv_heads = match (grouped, fields.flag("multi_query", true)?) {
        (true, _) => fields.optional_size("num_kv_heads")?.unwrap_or(spec.heads),
        (false, true) => 1,
        (false, false) => spec.heads,
    };
    if !spec.heads.is_multiple_of(kv_heads) {
        let problem = format!("does not divide `num_attention_heads = {}`", spec.heads);
        return Err(fields.wrong("num_kv_heads", &problem, "it divides the heads evenly"));
    }
    let norms = fields.optional_size("num_ln_in_parallel_attn")?.unwrap_or(1 + u64::from(grouped));
    let branches = match (grouped || fields.flag("parallel_attn", true)?, norms) {
        (false, _) => Branches::InTurn,
        (true, 2) => Branches::SideBySide,
        (true, _) => Branches::SideBySideWithOneNorm,
    };
    let biased = fields.flag("bias", false)?;
    let hidden_dropout = fields.dropout("hidden_dropout", 0.0)?;
    Ok(Spec {
        kv_heads,
        branches,
        positions: None,
        rotary: if fields.flag("alibi", false)? { 0 } else { spec.head },
        biases: Biases { qkv: biased, attention_out: biased, mlp: biased },
        dropout: Dropout {
            hidden: hidden_dropout,
            attention: fields.dropout("attention_dropout", 0.0)?,
            ..Dropout::default()
        },
        ..spec
    })
}

/// GLM and GLM-4: half of each head is turned; GLM-4 has norms around each branch.
pub fn glm(fields: &Fields) -> Result<Spec, InputError> {
    let is_fourth = fields.text("model_type", "the family")? == "glm4";
    let qkv = fields.flag("attention_bias", !is_fourth)?;
    let spec = usual(fields, &Fill::default())?;
    Ok(Spec {
        rotary: part_of_head(fields, "partial_rotary_factor", 0.5, spec.head)?,
        biases: Biases { qkv, ..NO_BIAS },
        norm_place: if is_fourth { NormPlace::Around } else { NormPlace::Before },
        ..spec
    })
}

/// Every other layer with a window, learned positions.
pub fn gpt_neo(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names {
        heads: "num_heads",
        layers: "num_layers",
        activation: "activation_function",
        ..USUAL
    };
    let fill = Fill {
        mlp: four_times(fields, names.hidden),
        activation: Some(Activation::Gelu),
        tied: true,
        ..Fill::default()
    };
    let spec = numbers(fields, Family::Decoder, &names, &fill)?;
    Ok(Spec {
        variants: gpt_neo_layers(fields, spec.layers)?,
        biases: Biases { qkv: false, attention_out: true, mlp: true },
        dropout: dropouts(fields, ["embed_dropout", "resid_dropout", "attention_dropout"])?,
        ..spec
    })
}

/// What `attention_types` says, such as `[[["global", "local"], 12]]`: kinds of layers and how often
/// they follow each other.
fn gpt_neo_layers(fields: &Fields, layers: u64) -> Result<Vec<Variant>, InputError> {
    let window = fields.optional_size("window_size")?.unwrap_or(256);
    let allowed = "allowed is a list such as [[[\"global\", \"local\"], 12]] for all layers";
    let wrong = |problem: &str| fields.wrong("attention_types", problem, allowed);
    let Some(types) = fields.optional("attention_types") else {
        let local = |layer: u64| layer % 2 == 1;
        return layers::variants(fields, layers, Some(window), local);
    };
    let mut found: Vec<Variant> = Vec::new();
    for entry in types.as_array().ok_or_else(|| wrong("is not a list"))? {
        let pair = entry.as_array().filter(|pair| pair.len() == 2);
        let pair = pair.ok_or_else(|| wrong("has an entry that is no pair"))?;
        let (names, times) = (pair[0].as_array(), pair[1].as_u64());
        let (Some(names), Some(times)) = (names, times.filter(|&times| times <= MOST_LAYERS))
        else {
            return Err(wrong("has an entry that is no list with a number"));
        };
        for _ in 0..times {
            for name in names {
                let reach = match name.as_str() {
                    Some("global") => Reach::All,
                    Some("local") => Reach::Window(window),
                    _ => return Err(wrong("names neither global nor local layers")),
                };
                found.push(Variant { reach, ..Variant::PLAIN });
            }
            if found.len() as u64 > layers {
                return Err(wrong(&format!("is for more than {layers} layers")));
            }
        }
    }
    if found.len() as u64 != layers {
        return Err(wrong(&format!("is for {} of {layers} layers", found.len())));
    }
    Ok(found)
}

/// Attention and MLP side by side through one norm; a head with a bias.
pub fn gptj(fields: &Fields) -> Result<Spec, InputError> {
    let fill = Fill {
        mlp: four_times(fields, GPT.hidden),
        activation: Some(Activation::Gelu),
        ..Fill::default()
    };
    let spec = numbers(fields, Family::Decoder, &GPT, &fill)?;
    let rotary = fields.optional_size("rotary_dim")?.unwrap_or(spec.head);
    if rotary > spec.head {
        let allowed = format!("allowed are 1 to {}", spec.head);
        return Err(fields.wrong("rotary_dim", "is more than a head has", &allowed));
    }
    Ok(Spec {
        positions: None,
        rotary,
        branches: Branches::SideBySideWithOneNorm,
        biases: Biases { mlp: true, ..NO_BIAS },
        head_bias: true,
        dropout: dropouts(fields, ["embd_pdrop", "resid_pdrop", "attn_pdrop"])?,
        ..spec
    })
}

/// A Llama whose branches and logits are scaled, which costs nothing beside their matmuls.
pub fn granite(fields: &Fields) -> Result<Spec, InputError> {
    let attention_bias = fields.flag("attention_bias", false)?;
    let spec = usual(fields, &Fill::default())?;
    Ok(Spec {
        embedding_scaled: true,
        biases: Biases {
            qkv: attention_bias,
            attention_out: attention_bias,
            mlp: fields.flag("mlp_bias", false)?,
        },
        ..spec
    })
}

/// Norms and matmuls without biases, positions told by the mask.
pub fn mpt(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names {
        hidden: "d_model",
        heads: "n_heads",
        layers: "n_layers",
        mlp: "ffn_hidden_size",
        positions: "max_seq_len",
        activation: "activation_function",
    };
    let hidden = fields.size(names.hidden, "the elements of a token")?;
    let ratio = fields.optional_size("expansion_ratio")?.unwrap_or(4);
    let fill = Fill {
        mlp: hidden.checked_mul(ratio).filter(|&mlp| mlp <= crate::input::fields::LARGEST_SIZE),
        max_sequence: Some(2048),
        activation: Some(Activation::Gelu),
        tied: true,
        ..Fill::default()
    };
    let spec = numbers(fields, Family::Decoder, &names, &fill)?;
    let nothing = Value::Object(serde_json::Map::new());
    let attention = fields.optional("attn_config").unwrap_or(&nothing);
    if !attention.is_object() {
        let allowed = "allowed is an object such as {\"alibi\": true}";
        return Err(fields.wrong("attn_config", "is not an object", allowed));
    }
    let attention = Fields::of(fields.file(), attention)?;
    no_norm_of_heads(&attention, "qk_ln")?;
    let kind = attention.optional("attn_type").map(|kind| kind.as_str().unwrap_or_default());
    let kv_heads = match kind {
        None | Some("multihead_attention") => spec.heads,
        Some("multiquery_attention") => 1,
        Some("grouped_query_attention") => attention.size("kv_n_heads", "the key-value heads")?,
        Some(_) => {
            let allowed = "known are multihead_attention, multiquery_attention and \
                           grouped_query_attention";
            return Err(attention.wrong("attn_type", "is not a kind of attention", allowed));
        }
    };
    if !spec.heads.is_multiple_of(kv_heads) {
        let problem = format!("does not divide `n_heads = {}`", spec.heads);
        return Err(attention.wrong("kv_n_heads", &problem, "it divides the heads evenly"));
    }
    let biased = !fields.flag("no_bias", true)?;
    let by_mask = attention.flag("alibi", true)?;
    Ok(Spec {
        kv_heads,
        norm: if biased { Norm::Layer } else { Norm::LayerWithoutBias },
        positions: if by_mask { None } else { spec.positions },
        rotary: if by_mask { 0 } else { spec.rotary },
        biases: Biases { qkv: biased, attention_out: biased, mlp: biased },
        dropout: Dropout {
            embedding: fields.dropout("emb_pdrop", 0.0)?,
            hidden: fields.dropout("resid_pdrop", 0.0)?,
            attention: attention.dropout("attn_pdrop", 0.0)?,
            activation: false,
        },
        ..spec
    })
}

/// Squared `ReLU` between two matmuls, half of each head turned.
pub fn nemotron(fields: &Fields) -> Result<Spec, InputError> {
    let attention_bias = fields.flag("attention_bias", false)?;
    let fill = Fill { activation: Some(Activation::SquaredRelu), ..Fill::default() };
    let spec = usual(fields, &fill)?;
    Ok(Spec {
        norm: Norm::Layer,
        gated: false,
        rotary: part_of_head(fields, "partial_rotary_factor", 0.5, spec.head)?,
        biases: Biases {
            qkv: attention_bias,
            attention_out: attention_bias,
            mlp: fields.flag("mlp_bias", false)?,
        },
        dropout: Dropout { hidden: fields.dropout("hidden_dropout", 0.0)?, ..spec.dropout },
        ..spec
    })
}

/// Norms at the end of each branch, and of queries and keys over all heads.
pub fn olmo2(fields: &Fields) -> Result<Spec, InputError> {
    let attention_bias = fields.flag("attention_bias", false)?;
    let spec = usual(fields, &Fill::default())?;
    Ok(Spec {
        norm_place: NormPlace::AtEnd,
        qk_norm: QkNorm::AllHeads,
        biases: Biases { qkv: attention_bias, attention_out: attention_bias, mlp: false },
        ..spec
    })
}

/// Attention and MLP side by side through one norm, biases everywhere, in the head too.
pub fn phi(fields: &Fields) -> Result<Spec, InputError> {
    no_norm_of_heads(fields, "qk_layernorm")?;
    let fill = Fill {
        activation: Some(Activation::Gelu),
        max_sequence: Some(2048),
        mlp: four_times(fields, USUAL.hidden),
        ..Fill::default()
    };
    let spec = numbers(fields, Family::Decoder, &USUAL, &fill)?;
    Ok(Spec {
        positions: None,
        rotary: part_of_head(fields, "partial_rotary_factor", 0.5, spec.head)?,
        branches: Branches::SideBySideWithOneNorm,
        head_bias: true,
        dropout: dropouts(fields, ["embd_pdrop", "resid_pdrop", "attention_dropout"])?,
        ..spec
    })
}

/// A Llama whose projections are joined.
pub fn phi3(fields: &Fields) -> Result<Spec, InputError> {
    let spec = usual(fields, &Fill::default())?;
    let window = fields.optional_size("sliding_window")?;
    Ok(Spec {
        variants: layers::variants(fields, spec.layers, window, |_| true)?,
        rotary: part_of_head(fields, "partial_rotary_factor", 1.0, spec.head)?,
        dropout: Dropout {
            embedding: fields.dropout("embd_pdrop", 0.0)?,
            hidden: fields.dropout("resid_pdrop", 0.0)?,
            ..spec.dropout
        },
        ..spec
    })
}

/// A Llama of which every fourth layer does not know positions.
pub fn smollm3(fields: &Fields) -> Result<Spec, InputError> {
    let attention_bias = fields.flag("attention_bias", false)?;
    let spec = usual(fields, &Fill { kv_heads: Some(4), tied: true, ..Fill::default() })?;
    let windowed = fields.flag("use_sliding_window", false)?;
    let window = if windowed { fields.optional_size("sliding_window")? } else { None };
    let mut variants = layers::variants(fields, spec.layers, window, |_| true)?;
    layers::unplaced(fields, &mut variants)?;
    Ok(Spec {
        variants,
        biases: Biases {
            qkv: attention_bias,
            attention_out: attention_bias,
            mlp: fields.flag("mlp_bias", false)?,
        },
        ..spec
    })
}

pub fn stablelm(fields: &Fields) -> Result<Spec, InputError> {
    no_norm_of_heads(fields, "qk_layernorm")?;
    let one_norm = fields.flag("use_parallel_residual", false)?;
    let qkv = fields.flag("use_qkv_bias", false)?;
    let spec = usual(fields, &Fill::default())?;
    Ok(Spec {
        norm: Norm::Layer,
        branches: if one_norm { Branches::SideBySideWithOneNorm } else { Branches::InTurn },
        rotary: part_of_head(fields, "partial_rotary_factor", 0.25, spec.head)?,
        biases: Biases { qkv, ..NO_BIAS },
        dropout: Dropout { hidden: fields.dropout("hidden_dropout", 0.0)?, ..spec.dropout },
        ..spec
    })
}

/// Layer norms, biases and no gate, with windows in some sizes.
pub fn starcoder2(fields: &Fields) -> Result<Spec, InputError> {
    let biased = fields.flag("use_bias", true)?;
    let fill = Fill { activation: Some(Activation::Gelu), tied: true, ..Fill::default() };
    let spec = usual(fields, &fill)?;
    let window = fields.optional_size("sliding_window")?;
    Ok(Spec {
        variants: layers::variants(fields, spec.layers, window, |_| true)?,
        norm: Norm::Layer,
        gated: false,
        biases: Biases { qkv: biased, attention_out: biased, mlp: biased },
        dropout: Dropout {
            embedding: fields.dropout("embedding_dropout", 0.0)?,
            hidden: fields.dropout("residual_dropout", 0.0)?,
            ..spec.dropout
        },
        ..spec
    })
}

/// Dropout of the embedding, after every part of a layer and of attention, by these keys; none where a
/// key is left out.
fn dropouts(fields: &Fields, keys: [&str; 3]) -> Result<Dropout, InputError> {
    let [embedding, hidden, attention] = keys;
    Ok(Dropout {
        embedding: fields.dropout(embedding, 0.0)?,
        hidden: fields.dropout(hidden, 0.0)?,
        attention: fields.dropout(attention, 0.0)?,
        activation: false,
    })
}
