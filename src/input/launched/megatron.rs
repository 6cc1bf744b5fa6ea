//! A run of Megatron-LM by its flags, or of Megatron-Bridge by its fields.

use serde_json::json;

use super::Literals;
use super::OwnModel;
use super::OwnRun;
use super::Reading;
use super::config;
use super::mixture;
use crate::input::InputError;
use crate::input::numbers::Field;
use crate::launch::Target;
use crate::model::Attention;
use crate::model::Precision;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::plan::GivenCut;
use crate::plan::GivenRecompute;
use crate::plan::GivenStrategy;

/// The run.
pub(super) fn read(literals: &Literals, target: Target, file: &str) -> Result<OwnRun, InputError> {
    let renamed;
    let literals = if target == Target::Bridge {
        renamed = literals.with_dashes();
        &renamed
    } else {
        literals
    };
    let mut reading = Reading::new(literals, file);
    let mut remarks = Vec::new();
    let devices = devices(&mut reading)?;
    let strategy = strategy(&mut reading, &mut remarks)?;
    let fp8 = reading.word("fp8-format").is_some()
        || reading.word("mixed-precision").is_some_and(|recipe| recipe.contains("fp8"));
    let unfused = reading.word("attention-backend") == Some("unfused");
    Ok(OwnRun {
        target,
        strategy,
        devices,
        sequence: reading.number("seq-length")?,
        global_batch: reading.number("global-batch-size")?,
        steps: reading.number("train-iters")?,
        precision: if fp8 { Precision::Fp8 } else { Precision::Bf16 },
        attention: unfused.then_some(Attention::Stored),
        model: model(&mut reading)?,
        computed: reading.computed,
        remarks,
    })
}

fn devices(reading: &mut Reading) -> Result<Option<u64>, InputError> {
    let each = ["nproc-per-node", "gpus-per-node"];
    let mut per_node = None;
    for name in each {
        per_node = per_node.or(reading.number(name)?);
    }
    let nodes = reading.number("nnodes")?;
    Ok(per_node.zip(nodes).and_then(|(per_node, nodes)| per_node.checked_mul(nodes)))
}

fn strategy(reading: &mut Reading, remarks: &mut Vec<String>) -> Result<GivenStrategy, InputError> {
    let tensor = reading.number("tensor-model-parallel-size")?;
    let pipeline = reading.number("pipeline-model-parallel-size")?;
    let context = reading.number("context-parallel-size")?;
    // What is not given is 1 there; what is computed is not known.
    let known = |name: &str, value: Option<u64>, reading: &Reading| {
        value.or((!reading.literals.has(name)).then_some(1))
    };
    let tensor = known("tensor-model-parallel-size", tensor, reading);
    let pipeline = known("pipeline-model-parallel-size", pipeline, reading);
    let context = known("context-parallel-size", context, reading);
    let (chunks, cut) = stages(reading, pipeline, remarks)?;
    let kind = reading.word("cp-comm-type").and_then(|kind| match kind {
        "p2p" => Some(ContextKind::Ring),
        "all_gather" => Some(ContextKind::Gather),
        "a2a" => Some(ContextKind::Ulysses),
        _ => None,
    });
    let swapped = reading.has("use-tp-pp-dp-mapping");
    Ok(GivenStrategy {
        tensor,
        sequence_parallel: tensor.map(|width| width > 1 && reading.has("sequence-parallel")),
        context,
        context_kind: kind.filter(|_| context.is_some_and(|degree| degree > 1)),
        pipeline,
        chunks,
        group: reading
            .number("microbatch-group-size-per-virtual-pipeline-stage")?
            .filter(|_| chunks.is_some_and(|chunks| chunks > 1)),
        expert: reading.number("expert-model-parallel-size")?,
        expert_tensor: reading.number("expert-tensor-parallel-size")?,
        data: None,
        micro_batch: reading.number("micro-batch-size")?,
        zero: Some(zero(reading)),
        shards: None,
        order: swapped.then_some(Order::MEGATRON[1]),
        recompute: Some(recompute(reading)?),
        cut,
    }
    .without_what_one_device_has())
}

/// What replicas share.
fn zero(reading: &mut Reading) -> u64 {
    match reading.word("data-parallel-sharding-strategy") {
        Some("optim_grads_params") => 3,
        Some("optim_grads") => 2,
        _ if reading.has("use-distributed-optimizer") => 1,
        _ if reading.has("use-torch-fsdp2") => 3,
        _ => 0,
    }
}

/// Virtual stages of each rank, and whether layers are cut evenly.
fn stages(
    reading: &mut Reading,
    pipeline: Option<u64>,
    remarks: &mut Vec<String>,
) -> Result<(Option<u64>, Option<GivenCut>), InputError> {
    let ranks = pipeline.unwrap_or(1).max(1);
    if ranks == 1 {
        return Ok((None, None));
    }
    if let Some(layout) = reading.word("pipeline-model-parallel-layout") {
        let counts = layout_counts(layout).ok_or_else(|| {
            let field = Field::new(reading.file, "pipeline-model-parallel-layout");
            field.value(layout, "is no layout", "such as Et|(tt|)*30tL")
        })?;
        let even = counts.iter().min() == counts.iter().max();
        if !even {
            remarks.push(
                "Its layout has stages of different lengths: the best cut into as many stages is \
                 told."
                    .into(),
            );
        }
        return Ok((Some(counts.len() as u64 / ranks), even.then_some(GivenCut::Even)));
    }
    let layers = reading.number("num-layers")?;
    let each = reading.number("num-layers-per-virtual-pipeline-stage")?;
    let chunks = match (layers, each) {
        (Some(layers), Some(each @ 1..)) => Some((layers / ranks / each).max(1)),
        _ => None,
    };
    let given = reading.number("num-virtual-stages-per-pipeline-rank")?;
    let given = given.or(reading.number("virtual-pipeline-model-parallel-size")?);
    Ok((Some(chunks.or(given).unwrap_or(1)), Some(GivenCut::Even)))
}

/// How many layers each stage of a layout has; `None` where it is none.
fn layout_counts(layout: &str) -> Option<Vec<usize>> {
    let mut text = String::new();
    let mut rest = layout;
    while let Some((before, after)) = rest.split_once('(') {
        let (inside, after) = after.split_once(")*")?;
        let digits = after.chars().take_while(char::is_ascii_digit).count();
        let times: usize = after[..digits].parse().ok().filter(|&times| times <= 1 << 16)?;
        text += before;
        text += &inside.repeat(times);
        rest = &after[digits..];
    }
    text += rest;
    let stages = text.split('|').map(|stage| stage.matches('t').count());
    Some(stages.collect())
}

fn recompute(reading: &mut Reading) -> Result<GivenRecompute, InputError> {
    let granularity = reading.word("recompute-granularity");
    let layers = reading.number("recompute-num-layers")?;
    let method = reading.word("recompute-method");
    Ok(match (granularity, method, layers) {
        (Some("full"), Some("block"), Some(layers @ 1..)) => GivenRecompute::Block(layers),
        (Some("full"), ..) => GivenRecompute::Full,
        (Some("selective"), ..) => {
            let modules = reading.literals.get("recompute-modules").cloned().unwrap_or_default();
            match modules.join("+").as_str() {
                "" => GivenRecompute::SELECTIVE,
                some => some.parse().map_err(|reason: crate::plan::UnknownRecompute| {
                    let field = Field::new(reading.file, "recompute-modules");
                    field.value(some, &reason.to_string(), "give modules that are known")
                })?,
            }
        }
        _ if reading.has("recompute-activations") => GivenRecompute::SELECTIVE,
        _ => GivenRecompute::None,
    })
}

/// Whether the head shares the embedding's table, as both ways to say it go.
pub(super) fn is_tied(reading: &Reading) -> bool {
    if reading.literals.has("share-embeddings-and-output-weights") {
        reading.has("share-embeddings-and-output-weights")
    } else {
        !reading.has("untie-embeddings-and-output-weights")
    }
}

/// The model by its numbers, where they are all there.
fn model(reading: &mut Reading) -> Result<Option<OwnModel>, InputError> {
    let numbers = [
        reading.number("num-layers")?,
        reading.number("hidden-size")?,
        reading.number("num-attention-heads")?,
        reading.number("vocab-size")?.or(reading.number("padded-vocab-size")?),
    ];
    let [Some(layers), Some(hidden), Some(heads), Some(vocabulary)] = numbers else {
        return Ok(None);
    };
    if ["num-experts", "num-moe-experts"].iter().any(|name| reading.literals.has(name)) {
        return mixture::model(reading, [layers, hidden, heads, vocabulary]);
    }
    let mlp = reading.number("ffn-hidden-size")?;
    let longest = reading.number("max-position-embeddings")?.or(reading.number("seq-length")?);
    let longest = longest.unwrap_or(4096);
    let tied = is_tied(reading);
    let gated = reading.has("swiglu") || reading.has("gated-linear-unit");
    let fields = if gated {
        let kv_heads = reading.number("num-query-groups")?.unwrap_or(heads);
        let head = reading.number("kv-channels")?.unwrap_or(hidden / heads.max(1));
        config(&[
            ("model_type", json!("llama")),
            ("hidden_size", json!(hidden)),
            ("num_hidden_layers", json!(layers)),
            ("num_attention_heads", json!(heads)),
            ("num_key_value_heads", json!(kv_heads)),
            ("head_dim", json!(head)),
            ("intermediate_size", json!(mlp.unwrap_or(4 * hidden))),
            ("vocab_size", json!(vocabulary)),
            ("max_position_embeddings", json!(longest)),
            ("hidden_act", json!("silu")),
            ("tie_word_embeddings", json!(tied)),
        ])
    } else {
        config(&[
            ("model_type", json!("gpt2")),
            ("n_embd", json!(hidden)),
            ("n_layer", json!(layers)),
            ("n_head", json!(heads)),
            ("n_inner", json!(mlp.unwrap_or(4 * hidden))),
            ("n_positions", json!(longest)),
            ("vocab_size", json!(vocabulary)),
            ("activation_function", json!("gelu_new")),
            ("tie_word_embeddings", json!(tied)),
        ])
    };
    Ok(Some(OwnModel::Config(fields)))
}
