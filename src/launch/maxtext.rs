//! `MaxText`: a configuration in YAML.

use super::CannotLaunch;
use super::Cut;
use super::LaunchFile;
use super::Run;
use super::Target;
use super::header;
use super::megatron::precision;
use super::megatron::unfused;
use crate::model::Precision;
use crate::model::spec::Activation;
use crate::model::spec::Branches;
use crate::model::spec::Family;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;
use crate::parallel::ContextKind;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;

/// Whether its decoder of Llama or Mixtral is this model.
pub(super) fn expressible(spec: &Spec) -> Result<(), CannotLaunch> {
    let llama = spec.family == Family::Llama
        || (spec.family == Family::Decoder && spec.gated && spec.norm == Norm::Rms);
    let plain = spec.activation == Activation::Silu
        && spec.norm_place == NormPlace::Before
        && spec.branches == Branches::InTurn
        && spec.qk_norm == QkNorm::None
        && spec.rotary == spec.head
        && spec.latent.is_none()
        && !(spec.biases.qkv || spec.biases.attention_out || spec.biases.mlp)
        && !(spec.sinks || spec.embedding_scaled || spec.embedding_norm || spec.head_bias)
        && !(spec.capped.scores || spec.capped.logits)
        && spec.next_tokens == 0
        && spec.own.is_empty()
        && spec.own_cut.is_empty()
        && (0..spec.layers).all(|at| {
            let variant = spec.variant(usize::try_from(at).unwrap_or(usize::MAX));
            variant.reach.tokens().is_none() && variant.rotary
        });
    let shared = spec.experts.is_some_and(|one| one.shared.is_some() || one.biases || spec.mlp > 0);
    if llama && plain && !shared {
        return Ok(());
    }
    Err(CannotLaunch::Model {
        target: Target::Maxtext,
        reason: "it is no decoder like Llama or Mixtral, of which alone files are written".into(),
        would_do: "`--for megatron` has words for more models".into(),
    })
}

/// The configuration.
pub(super) fn files(run: &Run, cut: &Cut) -> Result<Vec<LaunchFile>, CannotLaunch> {
    expressible(run.spec)?;
    let no_word = |reason: &str, would_do: &str| CannotLaunch::Plan {
        target: Target::Maxtext,
        reason: reason.to_owned(),
        would_do: would_do.to_owned(),
    };
    let strategy = &cut.strategy;
    if unfused(run) {
        return Err(no_word("its attention is fused", "`--attention fused` does"));
    }
    if strategy.context_kind == ContextKind::Ulysses && strategy.context_parallel > 1 {
        return Err(no_word("it exchanges no heads for tokens", "the ring or gather kind does"));
    }
    if strategy.shards.is_some() {
        return Err(no_word("all replicas share, or none", "no `shard` does"));
    }
    let meshes = meshes(run, cut).ok_or_else(|| {
        no_word("the degrees do not fill whole nodes", "degrees that divide a node do")
    })?;
    let sharers = strategy.tensor_parallel * strategy.context_parallel;
    let each = decimal(strategy.micro_batch, sharers).ok_or_else(|| {
        no_word("its part of a sequence is no decimal", "t times c that is a power of two does")
    })?;
    let how = "Run it on every node: python3 -m maxtext.trainers.pre_train.train maxtext.yml\n\
               # run_name=… base_output_directory=… dataset_path=…; data and tokenizer are yours.";
    let mut text = header(Target::Maxtext, run, how);
    text.add("base_config: base.yml\n");
    let mut key = |name: &str, value: &str| text.add(&format!("{name}: {value}\n"));
    for (name, value) in meshes {
        key(&name, &value.to_string());
    }
    if strategy.zero == Zero::State {
        key("shard_optimizer_over_data", "true");
    }
    if strategy.context_parallel > 1 {
        let ring = strategy.context_kind == ContextKind::Ring;
        key("context_parallel_strategy", if ring { "ring" } else { "all_gather" });
        key("context_parallel_load_balance", "true");
    }
    let full = cut.repeated_layers() == RepeatedLayers::All;
    key("remat_policy", if full { "full" } else { "minimal_with_context" });
    key("per_device_batch_size", &each);
    let training = run.plan.training.as_ref().ok_or(CannotLaunch::NoModel)?;
    let micro_batches = cut.micro_batches(training.global_batch);
    key("gradient_accumulation_steps", &micro_batches.to_string());
    key("max_target_length", &training.sequence.to_string());
    key("steps", &run.steps.to_string());
    key("dtype", "bfloat16");
    // What stands in nodes are GPUs, whose fused attention is that of another library.
    let gpus = run.per_node.is_some();
    key("hardware", if gpus { "gpu" } else { "tpu" });
    key("attention", if gpus { "cudnn_flash_te" } else { "flash" });
    if precision(run) == Precision::Fp8 {
        key("quantization", "fp8");
    }
    for (name, value) in model(run.spec) {
        key(name, &value);
    }
    Ok(vec![LaunchFile { name: "maxtext.yml", text: text.0 }])
}

/// The model in numbers.
fn model(spec: &Spec) -> Vec<(&'static str, String)> {
    let mlp = spec.experts.map_or(spec.mlp, |experts| experts.mlp);
    let mut keys = vec![
        ("decoder_block", if spec.experts.is_some() { "mixtral" } else { "llama2" }.to_owned()),
        ("base_num_decoder_layers", spec.layers.to_string()),
        ("base_emb_dim", spec.hidden.to_string()),
        ("base_mlp_dim", mlp.to_string()),
        ("base_num_query_heads", spec.heads.to_string()),
        ("base_num_kv_heads", spec.kv_heads.to_string()),
        ("head_dim", spec.head.to_string()),
        ("vocab_size", spec.vocabulary.to_string()),
        ("mlp_activations", "[\"silu\", \"linear\"]".to_owned()),
        ("enable_dropout", spec.dropout.hidden.to_string()),
        ("logits_via_embedding", spec.tied.to_string()),
    ];
    if let Some(experts) = spec.experts {
        keys.push(("num_experts", experts.count.to_string()));
        keys.push(("num_experts_per_tok", experts.chosen.to_string()));
        keys.push(("sparse_matmul", "true".to_owned()));
        keys.push(("capacity_factor", "-1".to_owned()));
    }
    keys
}

/// The degrees inside nodes and between them, from the inner axis on; `None` where they do not
/// fill whole nodes.
fn meshes(run: &Run, cut: &Cut) -> Option<Vec<(String, u64)>> {
    let strategy = &cut.strategy;
    let tensor = if strategy.sequence_parallel { "tensor_sequence" } else { "tensor" };
    let data = if strategy.zero == Zero::Weights { "fsdp" } else { "data" };
    // Devices that differ in their experts differ in their data, too, and share the other weights.
    let axes = [
        (tensor, strategy.tensor_parallel),
        ("context", strategy.context_parallel),
        ("expert", strategy.expert_parallel),
        (data, strategy.data_parallel / strategy.expert_parallel.max(1)),
    ];
    let mut left = run.per_node.unwrap_or(run.plan.job.devices).min(run.plan.job.devices);
    let mut found = Vec::new();
    for (axis, degree) in axes {
        let inside = greatest_common_divisor(degree, left);
        left /= inside;
        found.push((format!("ici_{axis}_parallelism"), inside));
        found.push((format!("dcn_{axis}_parallelism"), degree / inside));
    }
    (left == 1).then_some(found)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// A fraction in decimal digits; `None` where they do not end.
fn decimal(part: u64, of: u64) -> Option<String> {
    let (whole, mut rest) = (part.checked_div(of)?, part % of);
    let mut digits = String::new();
    while rest > 0 {
        if digits.len() == 20 {
            return None;
        }
        digits.push(char::from_digit(u32::try_from(rest * 10 / of).ok()?, 10)?);
        rest = rest * 10 % of;
    }
    Some(if digits.is_empty() { whole.to_string() } else { format!("{whole}.{digits}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_sequence_are_decimals_that_end() {
        assert_eq!(decimal(1, 1).as_deref(), Some("1"));
        assert_eq!(decimal(1, 8).as_deref(), Some("0.125"));
        assert_eq!(decimal(6, 4).as_deref(), Some("1.5"));
        assert_eq!(decimal(1, 3), None);
        assert_eq!(decimal(3, 3).as_deref(), Some("1"));
    }
}
