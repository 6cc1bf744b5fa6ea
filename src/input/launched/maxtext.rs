//! A run of `MaxText` by the keys of its configuration.

use serde_json::json;

use super::Literals;
use super::OwnModel;
use super::OwnRun;
use super::Reading;
use super::config;
use crate::input::InputError;
use crate::launch::Target;
use crate::model::Precision;
use crate::parallel::ContextKind;
use crate::plan::GivenRecompute;
use crate::plan::GivenStrategy;

/// The run.
pub(super) fn read(literals: &Literals, file: &str) -> Result<OwnRun, InputError> {
    let mut reading = Reading::new(literals, file);
    let mut degree = |axis: &str| -> Result<u64, InputError> {
        let mut product = 1_u64;
        for level in ["ici", "dcn"] {
            let found = reading.number(&format!("{level}_{axis}_parallelism"))?;
            product = product.saturating_mul(found.unwrap_or(1));
        }
        Ok(product)
    };
    let (plain, scattered) = (degree("tensor")?, degree("tensor_sequence")?);
    let (context, fsdp, data) = (degree("context")?, degree("fsdp")?, degree("data")?);
    let (pipeline, expert) = (degree("pipeline")?, degree("expert")?);
    let tensor = plain.saturating_mul(scattered);
    let copies = fsdp.saturating_mul(data).saturating_mul(expert);
    let devices = [tensor, context, copies, pipeline];
    let devices = devices.into_iter().try_fold(1_u64, u64::checked_mul);
    let each = reading.word("per_device_batch_size").and_then(|word| word.parse::<f64>().ok());
    let micro_batch = each.map(|each| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let sequences = (each * (tensor * context) as f64).round() as u64;
        sequences.max(1)
    });
    let steps_together = reading.number("gradient_accumulation_steps")?.unwrap_or(1);
    let global_batch = micro_batch.map(|size| size * copies * steps_together);
    let kind = match reading.word("context_parallel_strategy") {
        Some("ring") => Some(ContextKind::Ring),
        Some("all_gather") => Some(ContextKind::Gather),
        _ => None,
    };
    let full = reading.word("remat_policy") == Some("full");
    let zero = match (fsdp > 1 || expert > 1, reading.has("shard_optimizer_over_data")) {
        (true, _) => 3,
        (false, true) => 1,
        (false, false) => 0,
    };
    let mut remarks = Vec::new();
    if pipeline > 1 {
        remarks.push(
            "MaxText runs all forward passes before the first backward pass, which is another \
             pipeline than those that are planned here."
                .into(),
        );
    }
    let has_experts = reading.number("num_experts")?.is_some_and(|experts| experts > 1);
    let fp8 = reading.word("quantization").is_some_and(|kind| kind.starts_with("fp8"));
    Ok(OwnRun {
        target: Target::Maxtext,
        strategy: GivenStrategy {
            tensor: Some(tensor),
            sequence_parallel: (tensor > 1).then_some(scattered > 1),
            context: Some(context),
            context_kind: kind.filter(|_| context > 1),
            expert: has_experts.then_some(expert),
            expert_tensor: has_experts.then_some(tensor),
            pipeline: Some(pipeline),
            data: Some(copies),
            micro_batch,
            zero: Some(zero),
            recompute: Some(if full { GivenRecompute::Full } else { GivenRecompute::None }),
            ..GivenStrategy::default()
        }
        .without_what_one_device_has(),
        devices,
        sequence: reading.number("max_target_length")?,
        global_batch,
        steps: reading.number("steps")?,
        precision: if fp8 { Precision::Fp8 } else { Precision::Bf16 },
        attention: None,
        model: model(&mut reading)?,
        computed: reading.computed,
        remarks,
    })
}

/// The model by its numbers, where they are all there.
fn model(reading: &mut Reading) -> Result<Option<OwnModel>, InputError> {
    let numbers = [
        reading.number("base_num_decoder_layers")?,
        reading.number("base_emb_dim")?,
        reading.number("base_num_query_heads")?,
        reading.number("base_mlp_dim")?,
        reading.number("vocab_size")?,
    ];
    let [Some(layers), Some(hidden), Some(heads), Some(mlp), Some(vocabulary)] = numbers else {
        return Ok(None);
    };
    let kv_heads = reading.number("base_num_kv_heads")?.unwrap_or(heads);
    let head = reading.number("head_dim")?.unwrap_or(hidden / heads.max(1));
    let longest = reading.number("max_target_length")?.unwrap_or(4096);
    let experts = reading.number("num_experts")?.filter(|&experts| experts > 1);
    let chosen = reading.number("num_experts_per_tok")?.unwrap_or(1);
    let mut fields = vec![
        ("model_type", json!(if experts.is_some() { "mixtral" } else { "llama" })),
        ("hidden_size", json!(hidden)),
        ("num_hidden_layers", json!(layers)),
        ("num_attention_heads", json!(heads)),
        ("num_key_value_heads", json!(kv_heads)),
        ("head_dim", json!(head)),
        ("intermediate_size", json!(mlp)),
        ("vocab_size", json!(vocabulary)),
        ("max_position_embeddings", json!(longest)),
        ("hidden_act", json!("silu")),
        ("tie_word_embeddings", json!(reading.has("logits_via_embedding"))),
    ];
    if let Some(experts) = experts {
        fields.push(("num_local_experts", json!(experts)));
        fields.push(("num_experts_per_tok", json!(chosen)));
    }
    Ok(Some(OwnModel::Config(config(&fields))))
}
