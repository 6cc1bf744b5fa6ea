//! A mixture of experts of Megatron-LM or Megatron-Bridge by its numbers.

use serde_json::Value;
use serde_json::json;

use super::OwnModel;
use super::Reading;
use super::config;
use super::megatron::is_tied;
use crate::input::InputError;

/// The model of a run whose flags name experts, where its numbers are all there and a family writes
/// such layers down.
pub(super) fn model(
    reading: &mut Reading,
    [layers, hidden, heads, vocabulary]: [u64; 4],
) -> Result<Option<OwnModel>, InputError> {
    let count = reading.number("num-experts")?.or(reading.number("num-moe-experts")?);
    let chosen = reading.number("moe-router-topk")?.or(Some(2));
    let dense = reading.number("ffn-hidden-size")?;
    let mlp = reading.number("moe-ffn-hidden-size")?.or(dense);
    let (Some(count), Some(chosen), Some(mlp)) = (count, chosen, mlp) else { return Ok(None) };
    let Some(sparse) = layers_with_experts(reading, layers) else { return Ok(None) };
    let shared = reading.number("moe-shared-expert-intermediate-size")?;
    let longest = reading.number("max-position-embeddings")?.or(reading.number("seq-length")?);
    let mut fields = vec![
        ("hidden_size", json!(hidden)),
        ("num_hidden_layers", json!(layers)),
        ("num_attention_heads", json!(heads)),
        ("intermediate_size", json!(dense.unwrap_or(mlp))),
        ("vocab_size", json!(vocabulary)),
        ("max_position_embeddings", json!(longest.unwrap_or(4096))),
        ("hidden_act", json!("silu")),
        ("tie_word_embeddings", json!(is_tied(reading))),
        ("num_experts_per_tok", json!(chosen)),
        ("moe_intermediate_size", json!(mlp)),
    ];
    if let Some(next_tokens @ 1..) = reading.number("mtp-num-layers")? {
        fields.push(("mtp_num_layers", json!(next_tokens)));
    }
    let first = sparse.iter().position(|&has| has).unwrap_or(sparse.len());
    let after_the_first = sparse[first..].iter().all(|&has| has);
    let latent = reading.has("multi-latent-attention");
    let normed = reading.has("qk-layernorm");
    let balanced = reading.has("moe-router-enable-expert-bias");
    let family = match (latent, shared) {
        (true, _) if after_the_first => {
            if balanced {
                "deepseek_v3"
            } else {
                "deepseek_v2"
            }
        }
        (false, Some(_)) if after_the_first && balanced => "glm4_moe",
        (false, None) if normed => "qwen3_moe",
        (false, None) if first == 0 && after_the_first => "mixtral",
        _ => return Ok(None),
    };
    fields.push(("model_type", json!(family)));
    if latent {
        fields.extend(latent_attention(reading)?);
    } else {
        let kv_heads = reading.number("num-query-groups")?.unwrap_or(heads);
        let head = reading.number("kv-channels")?.unwrap_or(hidden / heads.max(1));
        fields.push(("num_key_value_heads", json!(kv_heads)));
        fields.push(("head_dim", json!(head)));
    }
    match family {
        "mixtral" => {
            fields.retain(|(name, _)| *name != "intermediate_size");
            fields.push(("intermediate_size", json!(mlp)));
            fields.push(("num_local_experts", json!(count)));
        }
        "qwen3_moe" => {
            let dense = sparse.iter().enumerate().filter_map(|(at, has)| (!has).then_some(at));
            fields.push(("num_experts", json!(count)));
            fields.push(("mlp_only_layers", json!(dense.collect::<Vec<usize>>())));
        }
        _ => {
            let shared = shared.map(|shared| shared / mlp.max(1)).filter(|&shared| shared > 0);
            fields.push(("n_routed_experts", json!(count)));
            fields.extend(shared.map(|shared| ("n_shared_experts", json!(shared))));
            fields.push(("first_k_dense_replace", json!(first)));
            let groups = reading.number("moe-router-num-groups")?;
            fields.extend(groups.map(|groups| ("n_group", json!(groups))));
            let chosen = reading.number("moe-router-group-topk")?;
            fields.extend(chosen.map(|chosen| ("topk_group", json!(chosen))));
            fields.push(("partial_rotary_factor", json!(1.0)));
            fields.push(("use_qk_norm", json!(normed)));
        }
    }
    Ok(Some(OwnModel::Config(config(&fields))))
}

/// The numbers of latent attention, with what Megatron takes where a flag is silent.
fn latent_attention(reading: &mut Reading) -> Result<Vec<(&'static str, Value)>, InputError> {
    let mut fields = Vec::new();
    for (field, flag, usual) in [
        ("q_lora_rank", "q-lora-rank", None),
        ("kv_lora_rank", "kv-lora-rank", Some(32)),
        ("qk_nope_head_dim", "qk-head-dim", Some(128)),
        ("qk_rope_head_dim", "qk-pos-emb-head-dim", Some(64)),
        ("v_head_dim", "v-head-dim", Some(128)),
    ] {
        let found = reading.number(flag)?.or(usual);
        fields.extend(found.map(|number| (field, json!(number))));
    }
    Ok(fields)
}

/// For each layer whether it has experts; `None` where that is computed or is no such list.
fn layers_with_experts(reading: &Reading, layers: u64) -> Option<Vec<bool>> {
    let n = usize::try_from(layers).ok()?;
    let Some(words) = reading.literals.get("moe-layer-freq") else { return Some(vec![true; n]) };
    let found = match words.as_slice() {
        [word] => match word.parse::<usize>() {
            Ok(every @ 1..) => (0..n).map(|layer| layer.is_multiple_of(every)).collect(),
            _ => listed(word, n)?,
        },
        several => several.iter().map(|word| digit(word)).collect::<Option<_>>()?,
    };
    (found.len() == n).then_some(found)
}

/// The list that an expression of Python such as `([0]*3+[1]*58)` stands for, of at most `most` items.
fn listed(text: &str, most: usize) -> Option<Vec<bool>> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut found = Vec::new();
    for part in text.trim_matches(['(', ')']).split('+') {
        let (list, times) = part.split_once('*').unwrap_or((part, "1"));
        let items = list.strip_prefix('[')?.strip_suffix(']')?.split(',').map(digit);
        let items = items.collect::<Option<Vec<bool>>>()?;
        let times: usize = times.parse().ok().filter(|&times| times <= most)?;
        found.extend(items.repeat(times));
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}

/// Whether a digit says yes.
fn digit(word: &str) -> Option<bool> {
    match word.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_with_experts_are_listed_as_python_lists_them() {
        assert_eq!(listed("([0]*3+[1]*2)", 61), Some(vec![false, false, false, true, true]));
        assert_eq!(listed("[0, 1]*2", 61), Some(vec![false, true, false, true]));
        assert_eq!(listed("[1]", 61), Some(vec![true]));
        for text in ["", "[2]", "[1]*99", "1", "[1]*x", "[0]*60+[1]*60"] {
            assert_eq!(listed(text, 61), None, "{text}");
        }
    }
}
