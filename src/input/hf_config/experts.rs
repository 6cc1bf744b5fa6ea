//! Mixtures of experts, one function for each family.
//!
//! Two fields may be added to any of them: `moe_expert_capacity_factor`, under Megatron's name, where
//! the rows of each expert are filled up to so many times an even load, and `moe_load_imbalance`, how
//! many times an even load the fullest device has where no token is dropped.

use serde_json::Value;

use super::decoders::NO_BIAS;
use super::decoders::usual;
use super::layers;
use super::readers::Fill;
use super::readers::MOST_LAYERS;
use super::readers::part_of_head;
use crate::input::InputError;
use crate::input::fields::Fields;
use crate::model::ExpertGroups;
use crate::model::Experts;
use crate::model::Latent;
use crate::model::Reach;
use crate::model::RouterBias;
use crate::model::Variant;
use crate::model::spec::Biases;
use crate::model::spec::FURTHER_TOKEN;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;

/// What a family calls the numbers of its experts.
struct Names {
    count: &'static str,
    chosen: &'static str,
    mlp: &'static str,
}

/// Experts of these names, with nothing that all tokens visit.
fn experts(fields: &Fields, names: &Names) -> Result<Experts, InputError> {
    let count = fields.size(names.count, "the number of experts")?;
    let chosen = fields.size(names.chosen, "the experts that a token visits")?;
    if chosen > count {
        let allowed = format!("allowed are 1 to {count}");
        return Err(fields.wrong(names.chosen, "is more than there are experts", &allowed));
    }
    let mlp = fields.size(names.mlp, "the elements between the matmuls of an expert")?;
    Ok(Experts {
        count,
        chosen,
        mlp,
        shared: None,
        shared_is_weighted: false,
        biases: false,
        router_bias: RouterBias::None,
        load_per_mille: load(fields)?,
        groups: None,
    })
}

/// Thousandths of an even load that the fullest device has.
fn load(fields: &Fields) -> Result<u64, InputError> {
    let (capacity, imbalance) = ("moe_expert_capacity_factor", "moe_load_imbalance");
    let field = match (fields.optional(capacity), fields.optional(imbalance)) {
        (None, None) => return Ok(1000),
        (Some(_), None) => capacity,
        (None, Some(_)) => imbalance,
        (Some(_), Some(_)) => {
            let problem = "is given beside `moe_expert_capacity_factor`";
            return Err(fields.wrong(imbalance, problem, "rows are filled up, or they are uneven"));
        }
    };
    let found = fields.optional(field).and_then(Value::as_f64);
    let found = found.filter(|load| (1.0..=1000.0).contains(load));
    let found = found.ok_or_else(|| fields.wrong(field, "is no load", "allowed are 1 to 1000"))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1,000 to a million"
    )]
    Ok((found * 1000.0).ceil() as u64)
}

/// Layers of which some have experts, those that `has_experts` picks, counted from 0.
fn mixed(layers: u64, has_experts: impl Fn(u64) -> bool) -> Vec<Variant> {
    let variant = |layer| Variant { experts: has_experts(layer), ..Variant::PLAIN };
    (0..layers).map(variant).collect()
}

/// A size that is needed only where some layers have no experts.
fn dense_mlp(variants: &[Variant], mlp: u64) -> u64 {
    if variants.iter().all(|variant| variant.experts) { 0 } else { mlp }
}

pub fn mixtral(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names {
        count: "num_local_experts",
        chosen: "num_experts_per_tok",
        mlp: "intermediate_size",
    };
    let spec = usual(fields, &Fill::default())?;
    let window = fields.optional_size("sliding_window")?;
    Ok(Spec {
        variants: layers::variants(fields, spec.layers, window, |_| true)?,
        experts: Some(experts(fields, &names)?),
        mlp: 0,
        ..spec
    })
}

/// Norms of queries and keys over all heads.
pub fn olmoe(fields: &Fields) -> Result<Spec, InputError> {
    let names =
        Names { count: "num_experts", chosen: "num_experts_per_tok", mlp: "intermediate_size" };
    let spec = usual(fields, &Fill::default())?;
    let experts = Some(experts(fields, &names)?);
    Ok(Spec { experts, mlp: 0, qk_norm: QkNorm::AllHeads, ..spec })
}

/// Qwen2 has biases and an expert that all tokens visit, Qwen3 norms of queries and keys.
pub fn qwen(fields: &Fields) -> Result<Spec, InputError> {
    let names =
        Names { count: "num_experts", chosen: "num_experts_per_tok", mlp: "moe_intermediate_size" };
    let is_second = fields.text("model_type", "the family")? == "qwen2_moe";
    let qkv = if is_second {
        fields.flag("qkv_bias", true)?
    } else {
        fields.flag("attention_bias", false)?
    };
    let spec = usual(fields, &Fill::default())?;
    let mut experts = experts(fields, &names)?;
    if is_second {
        let field = "shared_expert_intermediate_size";
        experts.shared = Some(fields.size(field, "the elements of the shared expert")?);
        experts.shared_is_weighted = true;
    }
    let step = fields.optional_size("decoder_sparse_step")?.unwrap_or(1);
    let dense = listed(fields, "mlp_only_layers", spec.layers)?;
    let mut variants = mixed(spec.layers, |layer| (layer + 1).is_multiple_of(step));
    for layer in dense {
        variants[layer].experts = false;
    }
    Ok(Spec {
        mlp: dense_mlp(&variants, spec.mlp),
        variants,
        experts: Some(experts),
        biases: Biases { qkv, attention_out: qkv && !is_second, mlp: false },
        qk_norm: if is_second { QkNorm::None } else { QkNorm::PerHead },
        ..spec
    })
}

/// The layers that a field lists, counted from 0.
fn listed(fields: &Fields, field: &str, layers: u64) -> Result<Vec<usize>, InputError> {
    let Some(value) = fields.optional(field) else { return Ok(Vec::new()) };
    let allowed = format!("allowed is a list of layers from 0 to {}", layers - 1);
    let wrong = || fields.wrong(field, "is not a list of layers", &allowed);
    let entries = value.as_array().ok_or_else(wrong)?;
    let layer = |entry: &Value| {
        let layer = entry.as_u64().filter(|&layer| layer < layers)?;
        usize::try_from(layer).ok()
    };
    entries.iter().map(|entry| layer(entry).ok_or_else(wrong)).collect()
}

/// Experts whose router is told how many first layers have none of them.
fn after_dense_layers(fields: &Fields, spec: &Spec) -> Result<(Experts, Vec<Variant>), InputError> {
    let names = Names {
        count: "n_routed_experts",
        chosen: "num_experts_per_tok",
        mlp: "moe_intermediate_size",
    };
    let mut experts = experts(fields, &names)?;
    let shared = fields.optional_size("n_shared_experts")?;
    experts.shared = shared.map(|shared| shared * experts.mlp);
    experts.groups = groups(fields, &experts)?;
    let dense = natural(fields, "first_k_dense_replace")?.min(spec.layers);
    let step = fields.optional_size("moe_layer_freq")?.unwrap_or(1);
    let variants = mixed(spec.layers, |at| at >= dense && at.is_multiple_of(step));
    Ok((experts, variants))
}

/// The groups of experts that the choice of a token is limited to a few of; nothing where it is not
/// limited.
fn groups(fields: &Fields, experts: &Experts) -> Result<Option<ExpertGroups>, InputError> {
    let found = (fields.optional_size("n_group")?, fields.optional_size("topk_group")?);
    let (Some(count), Some(chosen)) = found else { return Ok(None) };
    if !experts.count.is_multiple_of(count) {
        let problem = format!("does not divide the {} experts into groups", experts.count);
        return Err(fields.wrong("n_group", &problem, "give a divisor"));
    }
    if chosen > count {
        let problem = format!("lets tokens visit more groups than the {count} that there are");
        return Err(fields.wrong("topk_group", &problem, "give at most as many"));
    }
    Ok((chosen < count).then_some(ExpertGroups { count, chosen }))
}

/// A number of layers that may be 0.
fn natural(fields: &Fields, field: &str) -> Result<u64, InputError> {
    match fields.optional(field) {
        Some(value) if value.as_u64() == Some(0) => Ok(0),
        _ => Ok(fields.bounded(field, MOST_LAYERS)?.unwrap_or(0)),
    }
}

/// Latent attention; the third version spreads the load by a bias of its router.
pub fn deepseek(fields: &Fields) -> Result<Spec, InputError> {
    let is_second = fields.text("model_type", "the family")? == "deepseek_v2";
    let attention_bias = fields.flag("attention_bias", false)?;
    if attention_bias {
        let problem = "asks for biases in latent attention";
        return Err(fields.wrong("attention_bias", problem, "only false is understood"));
    }
    let unplaced = fields.size("qk_nope_head_dim", "the elements of a head without position")?;
    let rotary = fields.size("qk_rope_head_dim", "the elements of a head with position")?;
    // Some files give a head's elements with position here, which is not what a head has in all.
    let spec = usual(fields, &Fill { head: Some(unplaced + rotary), ..Fill::default() })?;
    let (mut experts, variants) = after_dense_layers(fields, &spec)?;
    if !is_second {
        experts.router_bias = RouterBias::Balancing;
    }
    let further = natural(fields, "num_nextn_predict_layers")?;
    Ok(Spec {
        kv_heads: spec.heads,
        head: unplaced + rotary,
        rotary,
        mlp: dense_mlp(&variants, spec.mlp),
        variants,
        experts: Some(experts),
        latent: Some(Latent {
            query: fields.optional_size("q_lora_rank")?,
            kv: fields.size("kv_lora_rank", "the latent elements of keys and values")?,
            value: fields.size("v_head_dim", "the elements of a value in each head")?,
        }),
        left_out: left_out(further),
        ..spec
    })
}

/// What is said of modules that predict further tokens.
fn left_out(modules: u64) -> Option<String> {
    (modules > 0).then(|| FURTHER_TOKEN.to_owned())
}

/// Half of each head turned, a bias of the router that spreads the load.
pub fn glm4(fields: &Fields) -> Result<Spec, InputError> {
    let qkv = fields.flag("attention_bias", false)?;
    let normed = fields.flag("use_qk_norm", false)?;
    let spec = usual(fields, &Fill::default())?;
    let (mut experts, variants) = after_dense_layers(fields, &spec)?;
    experts.router_bias = RouterBias::Balancing;
    let further = natural(fields, "num_nextn_predict_layers")?;
    Ok(Spec {
        rotary: part_of_head(fields, "partial_rotary_factor", 0.5, spec.head)?,
        mlp: dense_mlp(&variants, spec.mlp),
        variants,
        experts: Some(experts),
        biases: Biases { qkv, ..NO_BIAS },
        qk_norm: if normed { QkNorm::PerHead } else { QkNorm::None },
        left_out: left_out(further),
        ..spec
    })
}

/// Biases everywhere, every other layer with a window, a learned logit that belongs to no token.
pub fn gpt_oss(fields: &Fields) -> Result<Spec, InputError> {
    let chosen = match fields.optional("num_experts_per_tok") {
        Some(_) => "num_experts_per_tok",
        None => "experts_per_token",
    };
    let names = Names { count: "num_local_experts", chosen, mlp: "intermediate_size" };
    let biased = fields.flag("attention_bias", true)?;
    let spec = usual(fields, &Fill { head: Some(64), ..Fill::default() })?;
    let window = Some(fields.optional_size("sliding_window")?.unwrap_or(128));
    Ok(Spec {
        variants: layers::variants(fields, spec.layers, window, |layer| layer % 2 == 0)?,
        experts: Some(Experts {
            biases: true,
            router_bias: RouterBias::Trained,
            ..experts(fields, &names)?
        }),
        mlp: 0,
        biases: Biases { qkv: biased, attention_out: biased, mlp: false },
        sinks: true,
        ..spec
    })
}

/// Chunks where positions are turned in, everything elsewhere; an expert that all tokens visit.
pub fn llama4(fields: &Fields) -> Result<Spec, InputError> {
    let names = Names {
        count: "num_local_experts",
        chosen: "num_experts_per_tok",
        mlp: "intermediate_size",
    };
    let attention_bias = fields.flag("attention_bias", false)?;
    let normed = fields.flag("use_qk_norm", true)?;
    let spec = usual(fields, &Fill::default())?;
    let experts = experts(fields, &names)?;
    let step = fields.optional_size("interleave_moe_layer_step")?.unwrap_or(1);
    let chunk = fields.optional_size("attention_chunk_size")?;
    let mut variants = mixed(spec.layers, |layer| (layer + 1).is_multiple_of(step));
    if fields.optional("moe_layers").is_some() {
        let listed = listed(fields, "moe_layers", spec.layers)?;
        for (layer, variant) in variants.iter_mut().enumerate() {
            variant.experts = listed.contains(&layer);
        }
    }
    layers::unplaced(fields, &mut variants)?;
    for variant in variants.iter_mut().filter(|variant| variant.rotary) {
        variant.reach = chunk.map_or(Reach::All, Reach::Chunk);
    }
    let mlp = if variants.iter().all(|variant| variant.experts) {
        0
    } else {
        fields.size("intermediate_size_mlp", "the elements between the MLP's matmuls")?
    };
    Ok(Spec {
        variants,
        mlp,
        experts: Some(Experts { shared: Some(experts.mlp), ..experts }),
        biases: Biases { qkv: attention_bias, attention_out: attention_bias, mlp: false },
        qk_norm: if normed { QkNorm::PerHeadWithoutGain } else { QkNorm::None },
        ..spec
    })
}
