//! Megatron-LM: `pretrain_gpt.py` with every flag, started by `torchrun` on every node.

use super::CannotLaunch;
use super::Cut;
use super::LaunchFile;
use super::Run;
use super::Target;
use super::Text;
use super::architecture::Architecture;
use super::architecture::BiasKind;
use super::architecture::MlpKind;
use super::header;
use super::layout;
use crate::model::Attention;
use crate::model::Optimizer;
use crate::model::Precision;
use crate::model::RouterBias;
use crate::model::spec::QkNorm;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;

/// A flag with what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// With its dashes.
    name: &'static str,
    /// Nothing for a switch.
    values: Vec<String>,
}

/// The script that starts a plan on one node.
pub(super) fn files(run: &Run, cut: &Cut) -> Result<Vec<LaunchFile>, CannotLaunch> {
    let target = Target::Megatron;
    let how = "Run it from that directory on every node, NODE_RANK and MASTER_ADDR set;\n\
               # learning rate, data and tokenizer are yours to choose.";
    let mut text = Text("#!/usr/bin/env bash\n".into());
    text.add(&header(target, run, how).0);
    text.add("set -euo pipefail\n");
    text.add(match connections(cut) {
        None => "",
        Some(Connections::One) => "export CUDA_DEVICE_MAX_CONNECTIONS=1\n",
        Some(Connections::Usual) => "unset CUDA_DEVICE_MAX_CONNECTIONS\n",
    });
    let (per_node, nodes) = run.processes();
    text.add(&format!(
        "torchrun --nproc-per-node {per_node} --nnodes {nodes} --node-rank \"${{NODE_RANK:-0}}\" \\\n  \
         --master-addr \"${{MASTER_ADDR:-localhost}}\" --master-port \"${{MASTER_PORT:-29500}}\" \\\n  \
         pretrain_gpt.py"
    ));
    for Flag { name, values } in flags(run, cut)? {
        text.add(&format!(" \\\n  {name}"));
        for value in values {
            text.add(&format!(" {}", quoted(&value)));
        }
    }
    text.add("\n");
    Ok(vec![LaunchFile { name: "run.sh", text: text.0 }])
}

/// What a shell takes as one word.
fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
    if is_plain && !word.is_empty() { word.to_owned() } else { format!("'{word}'") }
}

/// How many connections the driver may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connections {
    /// One: kernels of an exchange start before those that they run beside.
    One,
    /// As many as is usual: where shards are gathered, one is refused.
    Usual,
}

/// What a plan needs of the driver; nothing where nothing is exchanged inside layers.
pub(super) fn connections(cut: &Cut) -> Option<Connections> {
    let shared = cut.strategy.tensor_parallel > 1 || cut.strategy.context_parallel > 1;
    match (is_sharded(cut), shared) {
        (true, _) => Some(Connections::Usual),
        (false, true) => Some(Connections::One),
        (false, false) => None,
    }
}

/// Whether Megatron's own sharding of gradients or weights runs a plan.
pub(super) fn is_sharded(cut: &Cut) -> bool {
    cut.strategy.zero >= Zero::Gradients
}

/// What of a plan Megatron's core has no word for.
pub(super) fn expressible(target: Target, run: &Run, cut: &Cut) -> Result<(), CannotLaunch> {
    let no_word = |reason: &str, would_do: &str| {
        let (reason, would_do) = (reason.to_owned(), would_do.to_owned());
        Err(CannotLaunch::Plan { target, reason, would_do })
    };
    let strategy = &cut.strategy;
    if is_sharded(cut) && strategy.shards.is_some() {
        return no_word("some replicas share gradients or weights", "zero=1, or no `shard`, does");
    }
    if is_sharded(cut) && strategy.pipeline > 1 {
        return no_word("its sharding of gradients has no pipeline", "zero=1, or p=1, does");
    }
    if let Some(at) = cut.next_token.filter(|_| strategy.pipeline > 1) {
        let (ranks, at) = (strategy.pipeline, at as u64);
        if at % ranks == 0 || at / ranks + 1 < cut.chunks() {
            let reason = "the layer that tells the token after the next stands on the first rank, or \
                          not in the last chunk of its rank";
            return no_word(reason, "fewer chunks, or more than two ranks, do");
        }
    }
    if unfused(run) && strategy.context_parallel > 1 {
        return no_word("attention that is not fused has whole sequences", "c=1 does");
    }
    Ok(())
}

/// Whether attention keeps its probabilities.
pub(super) fn unfused(run: &Run) -> bool {
    let training = run.plan.training.as_ref();
    training.is_some_and(|training| training.attention == Attention::Stored.name())
}

/// In which numbers a plan's matmuls compute.
pub(super) fn precision(run: &Run) -> Precision {
    run.plan.question.as_ref().map_or(Precision::Bf16, |question| question.precision)
}

/// Whose optimizer state a plan holds.
pub(super) fn optimizer(run: &Run) -> &'static str {
    let named = run.plan.training.as_ref().map(|training| training.optimizer.as_str());
    if named == Some(Optimizer::Sgd.name()) { "sgd" } else { "adam" }
}

/// What Megatron calls a way to share a sequence.
pub(super) fn context_kind(kind: ContextKind) -> &'static str {
    match kind {
        ContextKind::Ring => "p2p",
        ContextKind::Gather => "all_gather",
        ContextKind::Ulysses => "a2a",
    }
}

/// Every flag of a plan.
fn flags(run: &Run, cut: &Cut) -> Result<Vec<Flag>, CannotLaunch> {
    let architecture = Architecture::of(Target::Megatron, run.spec)?;
    expressible(Target::Megatron, run, cut)?;
    let mut flags = Flags::default();
    divided(&mut flags, cut);
    shared(&mut flags, cut);
    repeated(&mut flags, cut);
    batch(&mut flags, run, cut);
    model(&mut flags, run, &architecture);
    if run.spec.next_tokens > 0 {
        flags.number("--mtp-num-layers", run.spec.next_tokens);
    }
    if let Some(experts) = architecture.experts() {
        flags.number("--expert-model-parallel-size", cut.strategy.expert_parallel);
        flags.number("--expert-tensor-parallel-size", cut.strategy.expert_tensor);
        flags.number("--num-experts", experts.count);
        flags.number("--moe-router-topk", experts.chosen);
        flags.number("--moe-ffn-hidden-size", experts.mlp);
        if let Some(shared) = experts.shared {
            flags.number("--moe-shared-expert-intermediate-size", shared);
        }
        if let Some(groups) = experts.groups {
            flags.number("--moe-router-num-groups", groups.count);
            flags.number("--moe-router-group-topk", groups.chosen);
        }
        if let Some(frequency) = &architecture.frequency {
            flags.word("--moe-layer-freq", &frequency_list(frequency));
        }
        if experts.router_bias == RouterBias::Balancing {
            flags.word("--moe-router-score-function", "sigmoid");
            flags.switch("--moe-router-enable-expert-bias");
        }
        flags.switch("--moe-grouped-gemm");
        flags.word("--moe-token-dispatcher-type", "alltoall");
    }
    Ok(flags.0)
}

/// Which layers have experts, as the list that Megatron reads: `([0]*3+[1]*58)`.
pub(super) fn frequency_list(frequency: &[bool]) -> String {
    let runs = frequency.chunk_by(|one, other| one == other);
    let runs: Vec<String> =
        runs.map(|run| format!("[{}]*{}", u8::from(run[0]), run.len())).collect();
    format!("({})", runs.join("+"))
}

/// Flags in the order in which they are written.
#[derive(Default)]
struct Flags(Vec<Flag>);

impl Flags {
    fn switch(&mut self, name: &'static str) {
        self.0.push(Flag { name, values: Vec::new() });
    }

    fn word(&mut self, name: &'static str, value: &str) {
        self.0.push(Flag { name, values: vec![value.to_owned()] });
    }

    fn number(&mut self, name: &'static str, value: u64) {
        self.word(name, &value.to_string());
    }
}

/// Which devices share layers, sequences and stages.
fn divided(flags: &mut Flags, cut: &Cut) {
    let strategy = &cut.strategy;
    flags.number("--tensor-model-parallel-size", strategy.tensor_parallel);
    if strategy.sequence_parallel {
        flags.switch("--sequence-parallel");
    }
    if strategy.context_parallel > 1 {
        flags.number("--context-parallel-size", strategy.context_parallel);
        flags.word("--cp-comm-type", context_kind(strategy.context_kind));
    }
    flags.number("--pipeline-model-parallel-size", strategy.pipeline);
    if strategy.pipeline > 1 {
        flags.word("--pipeline-model-parallel-layout", &layout(&cut.stages, cut.next_token));
        if cut.chunks() > 1 {
            let group = strategy.schedule.group();
            flags.number("--microbatch-group-size-per-virtual-pipeline-stage", group);
        }
        if strategy.order != Order::default() {
            flags.switch("--use-tp-pp-dp-mapping");
        }
    }
}

/// What replicas share.
fn shared(flags: &mut Flags, cut: &Cut) {
    let strategy = &cut.strategy;
    let replicas = strategy.data_parallel * strategy.context_parallel;
    match strategy.zero {
        Zero::Nothing if replicas > 1 => flags.switch("--overlap-grad-reduce"),
        Zero::Nothing => {}
        Zero::State => {
            flags.switch("--use-distributed-optimizer");
            flags.switch("--overlap-grad-reduce");
            flags.switch("--overlap-param-gather");
            if cut.shards() < replicas {
                flags.number("--num-distributed-optimizer-instances", replicas / cut.shards());
            }
        }
        Zero::Gradients | Zero::Weights => {
            flags.switch("--use-megatron-fsdp");
            let sharding =
                if strategy.zero == Zero::Weights { "optim_grads_params" } else { "optim_grads" };
            flags.word("--data-parallel-sharding-strategy", sharding);
            flags.switch("--use-distributed-optimizer");
            flags.switch("--overlap-grad-reduce");
            flags.switch("--overlap-param-gather");
            flags.switch("--no-gradient-accumulation-fusion");
            flags.word("--ckpt-format", "fsdp_dtensor");
        }
    }
}

/// What is computed again.
fn repeated(flags: &mut Flags, cut: &Cut) {
    match cut.repeated_layers() {
        RepeatedLayers::All => {
            flags.word("--recompute-granularity", "full");
            flags.word("--recompute-method", "uniform");
            flags.number("--recompute-num-layers", 1);
        }
        RepeatedLayers::OneNumber => {
            flags.word("--recompute-granularity", "full");
            flags.word("--recompute-method", "block");
            flags.number("--recompute-num-layers", cut.most_repeated());
        }
        RepeatedLayers::None | RepeatedLayers::OwnNumbers | RepeatedLayers::Stages => {}
    }
    let modules = cut.strategy.repeated;
    if !modules.is_empty() {
        flags.word("--recompute-granularity", "selective");
        let values = modules.iter().map(|module| module.name().to_owned()).collect();
        flags.0.push(Flag { name: "--recompute-modules", values });
    }
}

/// What a batch is, for how long, and in which numbers.
fn batch(flags: &mut Flags, run: &Run, cut: &Cut) {
    flags.number("--micro-batch-size", cut.strategy.micro_batch);
    let training = run.plan.training.as_ref();
    if let Some(training) = training {
        flags.number("--global-batch-size", training.global_batch);
        flags.number("--seq-length", training.sequence);
        let longest = run.spec.positions.unwrap_or(training.sequence).max(training.sequence);
        flags.number("--max-position-embeddings", longest);
    }
    flags.number("--train-iters", run.steps);
    flags.switch("--bf16");
    if precision(run) == Precision::Fp8 {
        flags.word("--fp8-format", "hybrid");
    }
    if unfused(run) {
        flags.word("--attention-backend", "unfused");
    }
    flags.word("--optimizer", optimizer(run));
    flags.word("--lr", "3.0e-4");
    flags.word("--min-lr", "3.0e-5");
    flags.word("--lr-decay-style", "cosine");
    flags.switch("--mock-data");
    flags.word("--tokenizer-type", "NullTokenizer");
    flags.number("--vocab-size", run.spec.vocabulary);
    let multiple = run.spec.vocabulary_multiple.unwrap_or(128);
    flags.number("--make-vocab-size-divisible-by", multiple);
}

/// The model in numbers.
fn model(flags: &mut Flags, run: &Run, architecture: &Architecture) {
    let spec = run.spec;
    flags.number("--num-layers", spec.layers);
    flags.number("--hidden-size", spec.hidden);
    // Where all layers have experts, what one of them holds stands for an MLP.
    let mlp = spec.experts.filter(|_| spec.mlp == 0).map_or(spec.mlp, |experts| experts.mlp);
    flags.number("--ffn-hidden-size", mlp);
    flags.number("--num-attention-heads", spec.heads);
    if let Some(latent) = architecture.latent() {
        flags.switch("--multi-latent-attention");
        if let Some(query) = latent.query {
            flags.number("--q-lora-rank", query);
        }
        flags.number("--kv-lora-rank", latent.kv);
        flags.number("--qk-head-dim", spec.head.saturating_sub(spec.rotary));
        flags.number("--qk-pos-emb-head-dim", spec.rotary);
        flags.number("--v-head-dim", latent.value);
    } else {
        if spec.kv_heads < spec.heads {
            flags.switch("--group-query-attention");
            flags.number("--num-query-groups", spec.kv_heads);
        }
        flags.number("--kv-channels", spec.head);
    }
    if spec.qk_norm == QkNorm::PerHead || spec.latent.is_some() {
        flags.switch("--qk-layernorm");
    }
    match architecture.rotary_percent {
        None => flags.word("--position-embedding-type", "learned_absolute"),
        Some(percent) => {
            flags.word("--position-embedding-type", "rope");
            if percent < 100 {
                flags.word("--rotary-percent", &format!("0.{percent:02}"));
            }
        }
    }
    if let Some(tokens) = architecture.window {
        flags.word("--window-size", &format!("{},0", tokens.saturating_sub(1)));
    }
    if architecture.rms {
        flags.word("--normalization", "RMSNorm");
    }
    match architecture.mlp {
        MlpKind::Gelu => {}
        MlpKind::Swiglu => flags.switch("--swiglu"),
        MlpKind::SquaredRelu => flags.switch("--squared-relu"),
    }
    match architecture.biases {
        BiasKind::All => {}
        BiasKind::None => flags.switch("--disable-bias-linear"),
        BiasKind::Qkv => {
            flags.switch("--disable-bias-linear");
            flags.switch("--add-qkv-bias");
        }
    }
    let dropout = |has: bool| if has { "0.1" } else { "0.0" };
    flags.word("--hidden-dropout", dropout(spec.dropout.hidden));
    flags.word("--attention-dropout", dropout(spec.dropout.attention));
    if !spec.tied {
        flags.switch("--untie-embeddings-and-output-weights");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_with_experts_are_told_by_runs() {
        let mut frequency = vec![false; 3];
        frequency.extend([true; 58]);
        assert_eq!(frequency_list(&frequency), "([0]*3+[1]*58)");
    }

    #[test]
    fn words_that_a_shell_would_read_are_quoted() {
        assert_eq!(quoted("Et|(tt|)*3tL"), "'Et|(tt|)*3tL'");
        assert_eq!(quoted("3.0e-4"), "3.0e-4");
    }
}
