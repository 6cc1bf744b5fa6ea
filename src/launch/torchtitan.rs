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
use crate::model::spec::Spec;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;
use crate::plan::PassOrder;

/// A model that the framework comes with, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// The package of its models.
    pub package: &'static str,
    /// The function that configures it.
    pub function: &'static str,
    /// Layers, hidden elements, heads, key-value heads, MLP, vocabulary.
    pub numbers: [u64; 6],
    /// Experts, how many are chosen, elements of one; zeros where there are none.
    pub experts: [u64; 3],
}

const fn dense(package: &'static str, function: &'static str, numbers: [u64; 6]) -> Flavor {
    Flavor { package, function, numbers, experts: [0; 3] }
}

/// The models that torchtitan configures by itself and that are known here.
pub const FLAVORS: [Flavor; 5] = [
    dense("llama3", "llama3_8b", [32, 4096, 32, 8, 14336, 128_256]),
    dense("llama3", "llama3_70b", [80, 8192, 64, 8, 28672, 128_256]),
    dense("llama3", "llama3_405b", [126, 16384, 128, 8, 53248, 128_256]),
    Flavor {
        package: "deepseek_v3",
        function: "deepseek_v3_671b",
        numbers: [61, 7168, 128, 128, 18432, 129_280],
        experts: [256, 8, 2048],
    },
    dense("qwen3", "qwen3_32b", [64, 5120, 64, 8, 25600, 151_936]),
];

/// The framework's own configuration of a model.
pub(super) fn flavor(spec: &Spec) -> Result<Flavor, CannotLaunch> {
    let Spec { layers, hidden, heads, kv_heads, mlp, vocabulary, .. } = *spec;
    let numbers = [layers, hidden, heads, kv_heads, mlp, vocabulary];
    let experts = spec.experts.map_or([0; 3], |one| [one.count, one.chosen, one.mlp]);
    let known = FLAVORS.into_iter().find(|one| one.numbers == numbers && one.experts == experts);
    known.ok_or_else(|| {
        let names: Vec<&str> = FLAVORS.iter().map(|flavor| flavor.function).collect();
        CannotLaunch::Model {
            target: Target::Torchtitan,
            reason: "it comes with no configuration of this shape".into(),
            would_do: format!("it has {}; `--for megatron` takes any numbers", names.join(", ")),
        }
    })
}

/// The configuration.
pub(super) fn files(run: &Run, cut: &Cut) -> Result<Vec<LaunchFile>, CannotLaunch> {
    let Flavor { package, function, .. } = flavor(run.spec)?;
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
    text.add("from torchtitan.config import ParallelismConfig, TrainingConfig\n");
    if full {
        text.add("from torchtitan.distributed.activation_checkpoint import FullAC\n");
    }
    text.add(&format!("from torchtitan.models.{package}.config_registry import {function}\n"));
    if fp8 {
        text.add("from torchtitan.components.quantization.float8 import Float8LinearConverter\n");
        text.add("from torchtitan.protocols.model_converter import ModelConvertersContainer\n");
    }
    text.add("from torchtitan.trainer import Trainer\n\n\n");
    text.add(&format!("def phaze_plan() -> Trainer.Config:\n    config = {function}()\n"));
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
    if fp8 {
        text.add(
            "    config.model_converters = ModelConvertersContainer.Config(\n        \
                 converters=[Float8LinearConverter.Config(filter_fqns=[\"lm_head\"])],\n    )\n",
        );
    }
    text.add("    return config\n");
    Ok(vec![LaunchFile { name: "phaze_plan.py", text: text.0 }])
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
