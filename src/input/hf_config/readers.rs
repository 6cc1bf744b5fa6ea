//! How each `model_type` writes down its numbers.
//!
//! To add one, write a function from its fields to a [`Spec`] and list it in [`READERS`].

use crate::input::InputError;
use crate::input::fields::Fields;
use crate::model::spec::Activation;
use crate::model::spec::Biases;
use crate::model::spec::Dropout;
use crate::model::spec::Family;
use crate::model::spec::NormPlace;
use crate::model::spec::Spec;

/// How the fields of one `model_type` are read.
pub type Reader = fn(&Fields) -> Result<Spec, InputError>;

/// All values of `model_type` that are understood.
pub const READERS: [(&str, Reader); 9] = [
    ("bert", bert),
    ("megatron-bert", bert),
    ("gpt2", gpt2),
    ("opt", opt),
    ("llama", llama),
    ("mistral", llama),
    ("qwen2", llama),
    ("qwen3", llama),
    ("gpt_neox", gpt_neox),
];

/// Most layers and heads that a model may have.
const MOST_LAYERS: u64 = 100_000;
const MOST_HEADS: u64 = 1 << 16;

/// The fields whose names most families agree on; the family's reader changes what differs.
fn numbers(fields: &Fields, family: Family, names: &Names) -> Result<Spec, InputError> {
    let hidden = fields.size(names.hidden, "the elements of a token")?;
    let heads = fields.count(names.heads, MOST_HEADS, "the number of attention heads")?;
    let layers = fields.count(names.layers, MOST_LAYERS, "the number of layers")?;
    let kv_heads = fields.optional_size("num_key_value_heads")?.unwrap_or(heads);
    let head = match fields.optional_size("head_dim")? {
        Some(head) => head,
        None => even_head(fields, names, hidden, heads)?,
    };
    if !heads.is_multiple_of(kv_heads) {
        let problem = format!("does not divide `{} = {heads}`", names.heads);
        let allowed = format!("try {}", closest_divisor(heads, kv_heads));
        return Err(fields.wrong("num_key_value_heads", &problem, &allowed));
    }
    let max_sequence = fields.size(names.positions, "the longest sequence")?;
    Ok(Spec {
        name: fields.file().into(),
        family,
        layers,
        hidden,
        heads,
        kv_heads,
        head,
        mlp: fields.optional_size(names.mlp)?.unwrap_or(0),
        vocabulary: fields.size("vocab_size", "the number of tokens that there are")?,
        vocabulary_multiple: fields.bounded("make_vocab_size_divisible_by", 1 << 16)?,
        embedding: hidden,
        max_sequence,
        positions: Some(max_sequence),
        types: None,
        rotary: head,
        sliding_window: None,
        activation: activation(fields, names.activation)?,
        biases: Biases { qkv: true, attention_out: true, mlp: true },
        dropout: Dropout::default(),
        norm_place: NormPlace::Before,
        final_norm: true,
        qk_norm: false,
        parallel_residual: false,
        tied: fields.flag("tie_word_embeddings", true)?,
    })
}

/// What a family calls its numbers.
struct Names {
    hidden: &'static str,
    heads: &'static str,
    layers: &'static str,
    mlp: &'static str,
    positions: &'static str,
    activation: &'static str,
}

/// The names that most families use.
const USUAL: Names = Names {
    hidden: "hidden_size",
    heads: "num_attention_heads",
    layers: "num_hidden_layers",
    mlp: "intermediate_size",
    positions: "max_position_embeddings",
    activation: "hidden_act",
};

fn bert(fields: &Fields) -> Result<Spec, InputError> {
    if let Some(kind) = fields.optional("position_embedding_type")
        && kind.as_str() != Some("absolute")
    {
        let allowed = "only \"absolute\" is understood";
        return Err(fields.wrong(
            "position_embedding_type",
            "is not a table of positions",
            allowed,
        ));
    }
    let is_megatron = fields.text("model_type", "the family")? == "megatron-bert";
    let family = if is_megatron { Family::MegatronBert } else { Family::Bert };
    let hidden_dropout = fields.dropout("hidden_dropout_prob", 0.1)?;
    let spec = numbers(fields, family, &USUAL)?;
    Ok(Spec {
        mlp: fields.size("intermediate_size", "the elements between the MLP's matmuls")?,
        types: Some(fields.size("type_vocab_size", "the number of token types")?),
        norm_place: if is_megatron { NormPlace::Before } else { NormPlace::After },
        final_norm: is_megatron,
        dropout: Dropout {
            embedding: hidden_dropout,
            hidden: hidden_dropout,
            attention: fields.dropout("attention_probs_dropout_prob", 0.1)?,
            activation: false,
        },
        ..spec
    })
}

fn gpt2(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names {
        hidden: "n_embd",
        heads: "n_head",
        layers: "n_layer",
        mlp: "n_inner",
        positions: "n_positions",
        activation: "activation_function",
    };
    let spec = numbers(fields, Family::Gpt, &names)?;
    Ok(Spec {
        mlp: if spec.mlp == 0 { 4 * spec.hidden } else { spec.mlp },
        dropout: Dropout {
            embedding: fields.dropout("embd_pdrop", 0.1)?,
            hidden: fields.dropout("resid_pdrop", 0.1)?,
            attention: fields.dropout("attn_pdrop", 0.1)?,
            activation: false,
        },
        ..spec
    })
}

fn opt(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names { mlp: "ffn_dim", activation: "activation_function", ..USUAL };
    if !fields.flag("layer_norm_elementwise_affine", true)? {
        let field = "layer_norm_elementwise_affine";
        return Err(fields.wrong(field, "asks for norms without gain", "only true is understood"));
    }
    let norm_before = fields.flag("do_layer_norm_before", true)?;
    let biased = fields.flag("enable_bias", true)?;
    let spec = numbers(fields, Family::Opt, &names)?;
    Ok(Spec {
        mlp: fields.size("ffn_dim", "the elements between the MLP's matmuls")?,
        // The table starts with two rows that no token of a sequence uses.
        positions: Some(spec.max_sequence + 2),
        embedding: fields.optional_size("word_embed_proj_dim")?.unwrap_or(spec.hidden),
        biases: Biases { qkv: biased, attention_out: biased, mlp: biased },
        norm_place: if norm_before { NormPlace::Before } else { NormPlace::After },
        final_norm: norm_before && !fields.flag("_remove_final_layer_norm", false)?,
        dropout: Dropout {
            embedding: false,
            hidden: fields.dropout("dropout", 0.1)?,
            attention: fields.dropout("attention_dropout", 0.0)?,
            activation: fields.dropout("activation_dropout", 0.0)?,
        },
        ..spec
    })
}

/// Llama, Mistral, Qwen2 and Qwen3 differ in biases, norms of queries and keys, and windows.
fn llama(fields: &Fields) -> Result<Spec, InputError> {
    let model_type = fields.text("model_type", "the family")?;
    let attention_bias = fields.flag("attention_bias", false)?;
    let spec = numbers(fields, Family::Llama, &USUAL)?;
    let windowed = match model_type {
        "mistral" => true,
        "qwen2" | "qwen3" => fields.flag("use_sliding_window", false)?,
        _ => false,
    };
    Ok(Spec {
        mlp: fields.size("intermediate_size", "the elements between the MLP's matmuls")?,
        positions: None,
        sliding_window: if windowed { fields.optional_size("sliding_window")? } else { None },
        biases: Biases {
            qkv: attention_bias || model_type == "qwen2",
            attention_out: attention_bias && model_type != "qwen2",
            mlp: fields.flag("mlp_bias", false)?,
        },
        dropout: Dropout {
            attention: fields.dropout("attention_dropout", 0.0)?,
            ..Dropout::default()
        },
        qk_norm: model_type == "qwen3",
        tied: fields.flag("tie_word_embeddings", false)?,
        ..spec
    })
}

fn gpt_neox(fields: &Fields) -> Result<Spec, InputError> {
    let hidden_dropout = fields.dropout("hidden_dropout", 0.0)?;
    let attention_bias = fields.flag("attention_bias", true)?;
    let turned = fields.fraction("rotary_pct", 0.25)?;
    let spec = numbers(fields, Family::GptNeox, &USUAL)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a bounded size, rounded down as the family does"
    )]
    let rotary = (spec.head as f64 * turned) as u64;
    if rotary == 0 {
        let problem = format!("leaves no element of a head of {} to be turned", spec.head);
        return Err(fields.wrong("rotary_pct", &problem, "it is usually 0.25 or 1"));
    }
    Ok(Spec {
        mlp: fields.size("intermediate_size", "the elements between the MLP's matmuls")?,
        positions: None,
        rotary,
        biases: Biases { qkv: attention_bias, attention_out: attention_bias, mlp: true },
        dropout: Dropout {
            embedding: hidden_dropout,
            hidden: hidden_dropout,
            attention: fields.dropout("attention_dropout", 0.0)?,
            activation: false,
        },
        parallel_residual: fields.flag("use_parallel_residual", true)?,
        tied: fields.flag("tie_word_embeddings", false)?,
        ..spec
    })
}

/// The elements of a head where they are not given: an even part of the hidden size.
fn even_head(fields: &Fields, names: &Names, hidden: u64, heads: u64) -> Result<u64, InputError> {
    if hidden.is_multiple_of(heads) {
        return Ok(hidden / heads);
    }
    let problem = format!("does not divide `{} = {hidden}`", names.hidden);
    let allowed = format!("try {}, or give `head_dim`", closest_divisor(hidden, heads));
    Err(fields.wrong(names.heads, &problem, &allowed))
}

/// The divisor of `whole` that is closest to `wanted`, the smaller of two.
fn closest_divisor(whole: u64, wanted: u64) -> u64 {
    let divisors = (1..=whole).filter(|&part| whole.is_multiple_of(part));
    divisors.min_by_key(|&part| part.abs_diff(wanted)).unwrap_or(1)
}

fn activation(fields: &Fields, field: &str) -> Result<Activation, InputError> {
    match fields.text(field, "the MLP's activation, such as \"gelu\"")? {
        "gelu" | "gelu_new" | "gelu_fast" | "gelu_python" | "gelu_pytorch_tanh"
        | "gelu_accurate" => Ok(Activation::Gelu),
        "relu" => Ok(Activation::Relu),
        "silu" | "swish" => Ok(Activation::Silu),
        _ => Err(fields.wrong(
            field,
            "is not a known activation",
            "known are gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, \
             gelu_accurate, relu, silu, swish",
        )),
    }
}
