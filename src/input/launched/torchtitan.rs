//! A run of torchtitan by the fields of its configuration.

use super::Literals;
use super::OwnModel;
use super::OwnRun;
use super::Reading;
use crate::input::InputError;
use crate::launch::FLAVORS;
use crate::launch::Target;
use crate::model::Precision;
use crate::plan::GivenRecompute;
use crate::plan::GivenStrategy;

/// The framework's own configurations, and the built-in models of the same numbers.
const MODELS: [(&str, &str); 5] = [
    ("llama3_8b", "llama3-8b"),
    ("llama3_70b", "llama3-70b"),
    ("llama3_405b", "llama3-405b"),
    ("qwen3_30b_a3b", "qwen3-30b-a3b"),
    ("deepseek_v3_671b", "deepseek-v3"),
];

/// The built-in model that a configuration names, by the framework's function or its registry.
fn named(text: &str) -> Option<&'static str> {
    let found = FLAVORS.iter().find(|flavor| {
        let registered = format!("model_registry(\"{}\"", flavor.registered);
        let package = format!("models.{}", flavor.package);
        text.contains(&format!("{}()", flavor.function))
            || text.contains(&registered) && text.contains(&package)
    })?;
    MODELS.iter().find(|(function, _)| *function == found.function).map(|(_, model)| *model)
}

/// The run.
pub(super) fn read(literals: &Literals, text: &str, file: &str) -> Result<OwnRun, InputError> {
    let mut reading = Reading::new(literals, file);
    let mut degree = |name: &str| -> Result<Option<u64>, InputError> {
        let found = reading.number(name)?;
        Ok(found.or((!literals.has(name)).then_some(1)))
    };
    let tensor = degree("tensor_parallel_degree")?;
    let context = degree("context_parallel_degree")?;
    let pipeline = degree("pipeline_parallel_degree")?;
    let replicate = degree("data_parallel_replicate_degree")?;
    let shard = degree("data_parallel_shard_degree")?;
    let data = replicate.zip(shard).map(|(replicate, shard)| replicate * shard);
    let never = reading.word("fsdp_reshard_after_forward") == Some("never");
    let sharded = shard.zip(context).is_some_and(|(shard, context)| shard * context > 1);
    let zero = match (sharded, never) {
        (false, _) => 0,
        (true, true) => 2,
        (true, false) => 3,
    };
    let sequence = reading.number("max_context_length")?.or(reading.number("seq_len")?);
    let tokens = reading.number("num_tokens_per_microbatch_per_dp_rank")?;
    let micro_batch = tokens.zip(sequence).map(|(tokens, sequence)| tokens / sequence.max(1));
    let micro_batch = micro_batch.or(reading.number("local_batch_size")?);
    let step = reading.number("num_tokens_per_train_step")?;
    let global_batch = step.zip(sequence).map(|(step, sequence)| step / sequence.max(1));
    let full = text.contains("FullAC") || text.contains("mode=\"full\"");
    let interleaved = reading
        .word("pipeline_parallel_schedule")
        .is_some_and(|schedule| schedule.starts_with("Interleaved"));
    let chunks = chunks(literals, pipeline).or(interleaved.then_some(2));
    let mut remarks = Vec::new();
    if text.contains("SelectiveAC") || text.contains("mode=\"selective\"") {
        remarks.push("Its selective checkpointing by operators is told as none.".into());
    }
    let devices = [tensor, context, pipeline, data];
    Ok(OwnRun {
        target: Target::Torchtitan,
        strategy: GivenStrategy {
            tensor,
            sequence_parallel: tensor.filter(|&width| width > 1).map(|_| {
                !literals.has("enable_sequence_parallel") || reading.has("enable_sequence_parallel")
            }),
            context,
            expert: reading.number("expert_parallel_degree")?,
            pipeline,
            chunks: chunks.filter(|_| pipeline.is_some_and(|ranks| ranks > 1)),
            data,
            micro_batch,
            zero: Some(zero),
            shards: None,
            recompute: Some(if full { GivenRecompute::Full } else { GivenRecompute::None }),
            ..GivenStrategy::default()
        }
        .without_what_one_device_has(),
        devices: devices.into_iter().try_fold(1_u64, |product, one| product.checked_mul(one?)),
        sequence,
        global_batch,
        steps: reading.number("steps")?,
        precision: if text.contains("Float8") { Precision::Fp8 } else { Precision::Bf16 },
        attention: None,
        model: named(text).map(OwnModel::Named),
        computed: reading.computed,
        remarks,
    })
}

/// Virtual stages of each rank, where the modules of every stage are listed.
fn chunks(literals: &Literals, pipeline: Option<u64>) -> Option<u64> {
    let list = literals.get("module_fqns_per_model_part")?.first()?;
    let stages = list.matches('[').count().checked_sub(1)? as u64;
    Some((stages / pipeline?.max(1)).max(1))
}
