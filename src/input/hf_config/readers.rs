//! How each `model_type` writes down its numbers.
//!
//! To add one, write a function from its fields to a [`Spec`] and list it in [`READERS`].

use super::decoders;
use super::encoders;
use super::experts;
use super::gemma;
use super::layers;
use crate::input::InputError;
use crate::input::fields::Fields;
use crate::model::spec::Activation;
use crate::model::spec::Biases;
use crate::model::spec::Branches;
use crate::model::spec::Capped;
use crate::model::spec::Dropout;
use crate::model::spec::Family;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;

/// How the fields of one `model_type` are read.
pub type Reader = fn(&Fields) -> Result<Spec, InputError>;

/// All values of `model_type` that are understood.
pub const READERS: [(&str, Reader); 47] = [
    ("bert", bert),
    ("megatron-bert", bert),
    ("gpt2", gpt2),
    ("opt", opt),
    ("llama", llama),
    ("mistral", llama),
    ("ministral", llama),
    ("qwen2", llama),
    ("qwen2_vl_text", llama),
    ("qwen2_5_vl_text", llama),
    ("qwen3", llama),
    ("qwen3_vl_text", llama),
    ("gpt_neox", gpt_neox),
    ("bloom", decoders::bloom),
    ("cohere", decoders::cohere),
    ("deepseek_v2", experts::deepseek),
    ("deepseek_v3", experts::deepseek),
    ("kimi_k2", experts::deepseek),
    ("falcon", decoders::falcon),
    ("gemma", gemma::gemma),
    ("gemma2", gemma::gemma2),
    ("gemma3", gemma::gemma3),
    ("gemma3_text", gemma::gemma3),
    ("glm", decoders::glm),
    ("glm4", decoders::glm),
    ("glm4_moe", experts::glm4),
    ("gpt_neo", decoders::gpt_neo),
    ("gpt_oss", experts::gpt_oss),
    ("gptj", decoders::gptj),
    ("granite", decoders::granite),
    ("llama4", experts::llama4),
    ("llama4_text", experts::llama4),
    ("mixtral", experts::mixtral),
    ("mpt", decoders::mpt),
    ("nemotron", decoders::nemotron),
    ("olmo2", decoders::olmo2),
    ("olmoe", experts::olmoe),
    ("phi", decoders::phi),
    ("phi3", decoders::phi3),
    ("qwen2_moe", experts::qwen),
    ("qwen3_moe", experts::qwen),
    ("smollm3", decoders::smollm3),
    ("stablelm", decoders::stablelm),
    ("starcoder2", decoders::starcoder2),
    ("t5", encoders::t5),
    ("mt5", encoders::t5),
    ("vit", encoders::vit),
];

/// Families whose layers hold what is not written here, and what that is.
pub const REFUSED: [(&str, &str); 24] = [
    ("mamba", STATE_SPACE),
    ("mamba2", STATE_SPACE),
    ("falcon_mamba", STATE_SPACE),
    ("jamba", STATE_SPACE),
    ("bamba", STATE_SPACE),
    ("zamba", STATE_SPACE),
    ("zamba2", STATE_SPACE),
    ("nemotron_h", STATE_SPACE),
    ("falcon_h1", STATE_SPACE),
    ("granitemoehybrid", STATE_SPACE),
    ("rwkv", RECURRENT),
    ("recurrent_gemma", RECURRENT),
    ("xlstm", RECURRENT),
    ("lfm2", "short convolutions are not modelled"),
    ("qwen3_next", "linear attention is not modelled"),
    ("minimax", "linear attention is not modelled"),
    ("mllama", CROSS),
    ("mllama_text_model", CROSS),
    ("whisper", CROSS),
    ("bart", CROSS),
    ("umt5", "distances that every layer learns by itself are not modelled"),
    ("switch_transformers", "experts behind an encoder are not modelled"),
    ("vit_mae", "a decoder of hidden patches is not modelled"),
    ("gemma3n_text", "layers that share keys and values with others are not modelled"),
];

const STATE_SPACE: &str = "state-space layers are not modelled";
const RECURRENT: &str = "recurrent layers are not modelled";
const CROSS: &str = "attention to another model's tokens is not modelled";

/// Most layers and heads that a model may have.
pub const MOST_LAYERS: u64 = 100_000;
const MOST_HEADS: u64 = 1 << 16;

/// What a family's own code fills in where a file is silent; `None` where it must be given.
#[derive(Clone, Copy, Default)]
pub struct Fill {
    pub heads: Option<u64>,
    pub kv_heads: Option<u64>,
    pub head: Option<u64>,
    pub mlp: Option<u64>,
    pub vocabulary: Option<u64>,
    pub max_sequence: Option<u64>,
    pub activation: Option<Activation>,
    pub tied: bool,
}

/// The fields whose names most families agree on; the family's reader changes what differs.
pub fn numbers(
    fields: &Fields,
    family: Family,
    names: &Names,
    fill: &Fill,
) -> Result<Spec, InputError> {
    let hidden = fields.size(names.hidden, "the elements of a token")?;
    let heads = match fields.bounded(names.heads, MOST_HEADS)?.or(fill.heads) {
        Some(heads) => heads,
        None => fields.count(names.heads, MOST_HEADS, "the number of attention heads")?,
    };
    let layers = fields.count(names.layers, MOST_LAYERS, "the number of layers")?;
    let kv_heads = fields.optional_size("num_key_value_heads")?.or(fill.kv_heads).unwrap_or(heads);
    let head = match fields.optional_size("head_dim")?.or(fill.head) {
        Some(head) => head,
        None => even_head(fields, names, hidden, heads)?,
    };
    if !heads.is_multiple_of(kv_heads) {
        let problem = format!("does not divide `{} = {heads}`", names.heads);
        let allowed = format!("try {}", closest_divisor(heads, kv_heads));
        return Err(fields.wrong("num_key_value_heads", &problem, &allowed));
    }
    let filled = |field: &str, fill: Option<u64>, meaning: &str| match fill {
        Some(size) => Ok(fields.optional_size(field)?.unwrap_or(size)),
        None => fields.size(field, meaning),
    };
    let max_sequence = filled(names.positions, fill.max_sequence, "the longest sequence")?;
    let vocabulary = filled("vocab_size", fill.vocabulary, "the number of tokens that there are")?;
    Ok(Spec {
        name: fields.file().into(),
        family,
        layers,
        hidden,
        heads,
        kv_heads,
        head,
        mlp: filled(names.mlp, fill.mlp, "the elements between the MLP's matmuls")?,
        experts: None,
        latent: None,
        sinks: false,
        vocabulary,
        vocabulary_multiple: fields.bounded("make_vocab_size_divisible_by", 1 << 16)?,
        embedding: hidden,
        max_sequence,
        positions: Some(max_sequence),
        types: None,
        rotary: head,
        variants: Vec::new(),
        activation: activation(fields, names.activation, fill.activation)?,
        biases: Biases { qkv: true, attention_out: true, mlp: true },
        dropout: Dropout::default(),
        norm_place: NormPlace::Before,
        final_norm: true,
        norm: Norm::Layer,
        qk_norm: QkNorm::None,
        branches: Branches::InTurn,
        gated: false,
        embedding_scaled: false,
        embedding_norm: false,
        head_bias: false,
        capped: Capped::default(),
        own: Vec::new(),
        own_cut: Vec::new(),
        decoder_layers: 0,
        buckets: 0,
        patch: 0,
        next_tokens: 0,
        left_out: None,
        tied: fields.flag("tie_word_embeddings", fill.tied)?,
    })
}

/// What a family calls its numbers.
pub struct Names {
    pub hidden: &'static str,
    pub heads: &'static str,
    pub layers: &'static str,
    pub mlp: &'static str,
    pub positions: &'static str,
    pub activation: &'static str,
}

/// The names that most families use.
pub const USUAL: Names = Names {
    hidden: "hidden_size",
    heads: "num_attention_heads",
    layers: "num_hidden_layers",
    mlp: "intermediate_size",
    positions: "max_position_embeddings",
    activation: "hidden_act",
};

/// A head that uses the embedding's table unless the file says otherwise.
const TIED: Fill = Fill {
    heads: None,
    kv_heads: None,
    head: None,
    mlp: None,
    vocabulary: None,
    max_sequence: None,
    activation: None,
    tied: true,
};

/// The names that GPT-2 and GPT-J use.
pub const GPT: Names = Names {
    hidden: "n_embd",
    heads: "n_head",
    layers: "n_layer",
    mlp: "n_inner",
    positions: "n_positions",
    activation: "activation_function",
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
    let spec = numbers(fields, family, &USUAL, &TIED)?;
    Ok(Spec {
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
    let fill = Fill { mlp: four_times(fields, GPT.hidden), ..TIED };
    let spec = numbers(fields, Family::Gpt, &GPT, &fill)?;
    Ok(Spec {
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
    let spec = numbers(fields, Family::Opt, &names, &TIED)?;
    Ok(Spec {
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
    let spec = numbers(fields, Family::Llama, &USUAL, &Fill::default())?;
    let is_qwen2 = matches!(model_type, "qwen2" | "qwen2_vl_text" | "qwen2_5_vl_text");
    let is_qwen3 = matches!(model_type, "qwen3" | "qwen3_vl_text");
    let windowed = match model_type {
        "mistral" | "ministral" => true,
        _ if is_qwen2 || is_qwen3 => fields.flag("use_sliding_window", false)?,
        _ => false,
    };
    let window = if windowed { fields.optional_size("sliding_window")? } else { None };
    // The first layers of Qwen look at everything.
    let first =
        if is_qwen2 || is_qwen3 { fields.bounded("max_window_layers", MOST_LAYERS)? } else { None };
    let variants =
        layers::variants(fields, spec.layers, window, |layer| layer >= first.unwrap_or(0))?;
    Ok(Spec {
        positions: None,
        variants,
        norm: Norm::Rms,
        gated: true,
        biases: Biases {
            qkv: attention_bias || is_qwen2,
            attention_out: attention_bias && !is_qwen2,
            mlp: fields.flag("mlp_bias", false)?,
        },
        dropout: Dropout {
            attention: fields.dropout("attention_dropout", 0.0)?,
            ..Dropout::default()
        },
        qk_norm: if is_qwen3 { QkNorm::PerHead } else { QkNorm::None },
        ..spec
    })
}

fn gpt_neox(fields: &Fields) -> Result<Spec, InputError> {
    let hidden_dropout = fields.dropout("hidden_dropout", 0.0)?;
    let attention_bias = fields.flag("attention_bias", true)?;
    let spec = numbers(fields, Family::GptNeox, &USUAL, &Fill::default())?;
    let in_turn = !fields.flag("use_parallel_residual", true)?;
    Ok(Spec {
        positions: None,
        rotary: part_of_head(fields, "rotary_pct", 0.25, spec.head)?,
        biases: Biases { qkv: attention_bias, attention_out: attention_bias, mlp: true },
        dropout: Dropout {
            embedding: hidden_dropout,
            hidden: hidden_dropout,
            attention: fields.dropout("attention_dropout", 0.0)?,
            activation: false,
        },
        branches: if in_turn { Branches::InTurn } else { Branches::SideBySide },
        ..spec
    })
}

/// The elements of a head that a fraction of it is; at least one.
pub fn part_of_head(
    fields: &Fields,
    field: &str,
    default: f64,
    head: u64,
) -> Result<u64, InputError> {
    let fraction = fields.fraction(field, default)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a bounded size, rounded down as the families do"
    )]
    let part = (head as f64 * fraction) as u64;
    if part == 0 {
        let problem = format!("leaves no element of a head of {head} to be turned");
        return Err(fields.wrong(field, &problem, "it is usually 0.25 or 1"));
    }
    Ok(part)
}

/// Four times the size that a field holds, if it does.
pub fn four_times(fields: &Fields, field: &str) -> Option<u64> {
    fields.optional_size(field).ok().flatten().map(|size| 4 * size)
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

pub fn activation(
    fields: &Fields,
    field: &str,
    default: Option<Activation>,
) -> Result<Activation, InputError> {
    if let (None, Some(default)) = (fields.optional(field), default) {
        return Ok(default);
    }
    match fields.text(field, "the MLP's activation, such as \"gelu\"")? {
        "gelu" | "gelu_new" | "gelu_fast" | "gelu_python" | "gelu_pytorch_tanh"
        | "gelu_accurate" => Ok(Activation::Gelu),
        "relu" => Ok(Activation::Relu),
        "relu2" => Ok(Activation::SquaredRelu),
        "silu" | "swish" => Ok(Activation::Silu),
        _ => Err(fields.wrong(
            field,
            "is not a known activation",
            "known are gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, \
             gelu_accurate, relu, relu2, silu, swish",
        )),
    }
}
