//! torchtitan: a configuration function over the framework's own configuration of the model.

use super::CannotLaunch;
use super::Cut;
use super::LaunchFile;
use super::Run;
use super::Target;
use super::header;
use super::megatron::precision;
use super::megatron::unfused;
use super::python::Value;
use crate::model::Precision;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;
use crate::plan::PassOrder;

/// A model that the framework comes with, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// The package of its models.
    pub package: &'static str,
    /// The function that configures a run of it.
    pub function: &'static str,
    /// What the package's registry calls it.
    pub registered: &'static str,
    /// Layers, hidden elements, heads, key-value heads, MLP, vocabulary.
    pub numbers: [u64; 6],
    /// Experts, how many are chosen, elements of one; zeros where there are none.
    pub experts: [u64; 3],
}

const fn dense(
    package: &'static str,
    function: &'static str,
    registered: &'static str,
    numbers: [u64; 6],
) -> Flavor {
    Flavor { package, function, registered, numbers, experts: [0; 3] }
}

/// The models that torchtitan configures by itself and that are known here.
pub const FLAVORS: [Flavor; 9] = [
    dense("llama3", "llama3_8b", "8B", [32, 4096, 32, 8, 14336, 128_256]),
    dense("llama3", "llama3_70b", "70B", [80, 8192, 64, 8, 28672, 128_256]),
    dense("llama3", "llama3_405b", "405B", [126, 16384, 128, 8, 53248, 128_256]),
    dense("qwen3", "qwen3_0_6b", "0.6B", [28, 1024, 16, 8, 3072, 151_936]),
    dense("qwen3", "qwen3_1_7b", "1.7B", [28, 2048, 16, 8, 6144, 151_936]),
    dense("qwen3", "qwen3_14b", "14B", [40, 5120, 40, 8, 17408, 151_936]),
    dense("qwen3", "qwen3_32b", "32B", [64, 5120, 64, 8, 25600, 151_936]),
    Flavor {
        package: "qwen3",
        function: "qwen3_30b_a3b",
        registered: "30B-A3B",
        numbers: [48, 2048, 32, 4, 0, 151_936],
        experts: [128, 8, 768],
    },
    Flavor {
        package: "deepseek_v3",
        function: "deepseek_v3_671b",
        registered: "671B",
        numbers: [61, 7168, 128, 128, 18432, 129_280],
        experts: [256, 8, 2048],
    },
];

impl Flavor {
    /// Whether a model is this one.
    fn is(&self, spec: &Spec) -> bool {
        let Spec { layers, hidden, heads, kv_heads, mlp, vocabulary, .. } = *spec;
        let numbers = [layers, hidden, heads, kv_heads, mlp, vocabulary];
        let experts = spec.experts.map_or([0; 3], |one| [one.count, one.chosen, one.mlp]);
        let package = match (spec.qk_norm, spec.latent) {
            (QkNorm::None, None) => "llama3",
            (QkNorm::PerHead, None) => "qwen3",
            (_, Some(_)) => "deepseek_v3",
            (QkNorm::AllHeads | QkNorm::PerHeadWithoutGain, None) => return false,
        };
        self.numbers == numbers && self.experts == experts && self.package == package
    }
}

/// The framework's own configuration of a model.
pub(super) fn flavor(spec: &Spec) -> Result<Flavor, CannotLaunch> {
    let refused = |reason: &str, would_do: String| CannotLaunch::Model {
        target: Target::Torchtitan,
        reason: reason.into(),
        would_do,
    };
    if spec.next_tokens > 0 {
        let reason = "its models have no layer that tells the token after the next";
        return Err(refused(reason, "`--for megatron` has, and the model without it does".into()));
    }
    FLAVORS.into_iter().find(|one| one.is(spec)).ok_or_else(|| {
        let names: Vec<&str> = FLAVORS.iter().map(|flavor| flavor.function).collect();
        let would_do = format!("it has {}; `--for megatron` takes any numbers", names.join(", "));
        refused("it comes with no configuration of this shape", would_do)
    })
}

/// The configuration.
pub(super) fn files(run: &Run, cut: &Cut) -> Result<Vec<LaunchFile>, CannotLaunch> {
    let Flavor { package, function, registered, .. } = flavor(run.spec)?;
    let training = run.plan.training.as_ref().ok_or(CannotLaunch::NoModel)?;
    if unfused(run) {
        return Err(CannotLaunch::Plan {
            target: Target::Torchtitan,
            reason: "its attention is fused".into(),
            would_do: "`--attention fused` does".into(),
        });
    }
    let (per_node, nodes) = run.processes();
    let how = format!(
        "Put it beside torchtitan and run it on every node:\n# torchrun --nproc-per-node {per_node} \
         --nnodes {nodes} --node-rank $NODE_RANK --master-addr $MASTER_ADDR -m torchtitan.train \
         --module phaze_plan --config phaze_plan\n# Data and tokenizer are yours to choose."
    );
    let fp8 = precision(run) == Precision::Fp8;
    let full = cut.repeated_layers() == RepeatedLayers::All;
    let mut text = header(Target::Torchtitan, run, &how);
    if fp8 {
        let converters = converters(run.spec).map(|(name, _)| name);
        let names = converters.collect::<Vec<_>>().join(", ");
        text.add(&format!("from torchtitan.components.quantization import {names}\n"));
    }
    let compiled = if fp8 { "CompileConfig, " } else { "" };
    text.add(&format!(
        "from torchtitan.config import {compiled}ParallelismConfig, TrainingConfig\n"
    ));
    if full {
        text.add("from torchtitan.distributed.activation_checkpoint import FullAC\n");
    }
    text.add(&format!("from torchtitan.models.{package} import model_registry\n"));
    text.add(&format!("from torchtitan.models.{package}.config_registry import {function}\n"));
    text.add("from torchtitan.trainer import Trainer\n\n\n");
    text.add(&format!("def phaze_plan() -> Trainer.Config:\n    config = {function}()\n"));
    // The framework's own configurations of the largest models are in FP8: the numbers are said anew.
    if fp8 {
        text.add(&format!(
            "    config.compile = CompileConfig(enable=True)\n    \
                 config.model_spec = model_registry(\n        \"{registered}\",\n        converters=[\n"
        ));
        for (name, filter) in converters(run.spec) {
            text.add(&format!("            {name}.Config({filter}model_compile_enabled=True),\n"));
        }
        text.add("        ],\n    )\n");
    } else {
        text.add(&format!("    config.model_spec = model_registry(\"{registered}\")\n"));
    }
    text.add("    config.parallelism = ParallelismConfig(\n");
    for (name, value) in parallelism(cut, training.global_batch) {
        text.add(&format!("        {name}={value},\n"));
    }
    text.add("    )\n    config.training = TrainingConfig(\n");
    let tokens = cut.strategy.micro_batch * training.sequence;
    for (name, value) in [
        ("num_tokens_per_microbatch_per_dp_rank", tokens),
        ("num_tokens_per_train_step", training.global_batch * training.sequence),
        ("max_context_length", training.sequence),
        ("steps", run.steps),
    ] {
        text.add(&format!("        {name}={value},\n"));
    }
    text.add("    )\n");
    let repeated = if full { "FullAC.Config()" } else { "None" };
    text.add(&format!("    config.activation_checkpoint = {repeated}\n"));
    let strategy = &cut.strategy;
    if strategy.pipeline > 1 || strategy.expert_parallel > 1 {
        // Versions that capture steps as graphs can do so with neither.
        text.add(
            "    if hasattr(config.training, \"disable_cuda_graphs\"):\n        \
                 config.training.disable_cuda_graphs = True\n",
        );
    }
    text.add("    return config\n");
    Ok(vec![LaunchFile { name: "phaze_plan.py", text: text.0 }])
}

/// What makes matmuls compute in FP8, each with what it leaves out.
fn converters(spec: &Spec) -> impl Iterator<Item = (&'static str, &'static str)> {
    let (left_out, experts) = match spec.experts {
        None => ("filter_fqns=[\"lm_head\"], ", None),
        Some(_) => (
            "filter_fqns=[\"lm_head\", \"router.gate\"], ",
            Some(("Float8GroupedExpertsConverter", "")),
        ),
    };
    std::iter::once(("Float8LinearConverter", left_out)).chain(experts)
}

/// Every degree.
fn parallelism(cut: &Cut, global_batch: u64) -> Vec<(&'static str, Value)> {
    let strategy = &cut.strategy;
    let shard = match strategy.zero {
        Zero::Nothing => 1,
        _ => cut.shards() / strategy.context_parallel,
    };
    let reshard = if strategy.zero == Zero::Weights { "always" } else { "never" };
    let mut fields: Vec<(&'static str, Value)> = vec![
        ("data_parallel_replicate_degree", (strategy.data_parallel / shard.max(1)).into()),
        ("data_parallel_shard_degree", shard.into()),
        ("fsdp_reshard_after_forward", reshard.into()),
        ("tensor_parallel_degree", strategy.tensor_parallel.into()),
        ("enable_sequence_parallel", strategy.sequence_parallel.into()),
        ("context_parallel_degree", strategy.context_parallel.into()),
        ("pipeline_parallel_degree", strategy.pipeline.into()),
    ];
    if strategy.expert_parallel > 1 {
        fields.push(("expert_parallel_degree", strategy.expert_parallel.into()));
    }
    if strategy.pipeline > 1 {
        let schedule = match strategy.schedule {
            PassOrder::OneForwardOneBackward => "1F1B",
            PassOrder::Interleaved { .. } => "Interleaved1F1B",
        };
        fields.push(("pipeline_parallel_schedule", schedule.into()));
        fields.push(("module_fqns_per_model_part", modules(&cut.stages)));
        fields.push(("num_pp_microbatches", cut.micro_batches(global_batch).into()));
    }
    fields
}

/// The modules of every virtual stage by name.
fn modules(stages: &[Vec<u64>]) -> Value {
    let last = stages.len().saturating_sub(1);
    let stage = |(at, layers): (usize, &Vec<u64>)| {
        let first = (at == 0).then_some(Value::from("tok_embeddings"));
        let layers = layers.iter().map(|layer| Value::Text(format!("layers.{layer}")));
        let end = ["norm", "lm_head"].into_iter().filter(|_| at == last).map(Value::from);
        Value::List(first.into_iter().chain(layers).chain(end).collect())
    };
    Value::List(stages.iter().enumerate().map(stage).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_stand_in_the_stage_of_their_layers() {
        assert_eq!(
            modules(&[vec![0], vec![1, 2], vec![]]).to_string(),
            "[[\"tok_embeddings\", \"layers.0\"], [\"layers.1\", \"layers.2\"], [\"norm\", \"lm_head\"]]"
        );
    }
}
