//! Megatron-Bridge, and `NeMo` with it: a recipe that sets every field.

use super::CannotLaunch;
use super::Cut;
use super::LaunchFile;
use super::Run;
use super::Target;
use super::architecture::Architecture;
use super::architecture::BiasKind;
use super::architecture::MlpKind;
use super::header;
use super::layout;
use super::megatron;
use super::megatron::Connections;
use super::python::Value;
use crate::model::Precision;
use crate::model::RouterBias;
use crate::model::spec::QkNorm;
use crate::parallel::Order;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;

/// The recipe.
pub(super) fn files(target: Target, run: &Run, cut: &Cut) -> Result<Vec<LaunchFile>, CannotLaunch> {
    let architecture = Architecture::of(target, run.spec)?;
    megatron::expressible(target, run, cut)?;
    let (per_node, nodes) = run.processes();
    let how = format!(
        "Run it on every node:\n# torchrun --nproc-per-node {per_node} --nnodes {nodes} --node-rank \
         $NODE_RANK --master-addr $MASTER_ADDR recipe.py\n# Data and tokenizer are yours to choose."
    );
    let mut text = header(target, run, &how);
    text.add("import os\n\n");
    if let Some(one) = megatron::connections(cut) {
        let name = "\"CUDA_DEVICE_MAX_CONNECTIONS\"";
        text.add(&match one {
            Connections::One => format!("os.environ[{name}] = \"1\"\n\n"),
            Connections::Usual => format!("os.environ.pop({name}, None)\n\n"),
        });
    }
    text.add(IMPORTS);
    text.add("\n\ndef recipe() -> ConfigContainer:\n    cfg = _pretrain_common()\n");
    text.add("    cfg.model = GPTModelProvider(\n");
    for (name, value) in model(run, &architecture) {
        text.add(&format!("        {name}={value},\n"));
    }
    text.add("    )\n");
    for (name, value) in fields(run, cut) {
        text.add(&format!("    cfg.{name} = {value}\n"));
    }
    text.add(
        "    return cfg\n\n\nif __name__ == \"__main__\":\n    \
             pretrain(config=recipe(), forward_step_func=forward_step)\n",
    );
    Ok(vec![LaunchFile { name: "recipe.py", text: text.0 }])
}

const IMPORTS: &str = "\
import torch
import torch.nn.functional as F
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain
from megatron.core.activations import squared_relu
from megatron.core.transformer.enums import AttnBackend
";

type Fields = Vec<(&'static str, Value)>;

/// The model in numbers.
fn model(run: &Run, architecture: &Architecture) -> Fields {
    let spec = run.spec;
    let mlp = spec.experts.filter(|_| spec.mlp == 0).map_or(spec.mlp, |experts| experts.mlp);
    let activation = match architecture.mlp {
        MlpKind::Gelu => "F.gelu",
        MlpKind::Swiglu => "F.silu",
        MlpKind::SquaredRelu => "squared_relu",
    };
    let dropout = |has: bool| Value::Code(if has { "0.1" } else { "0.0" });
    let mut fields: Fields = vec![
        ("num_layers", spec.layers.into()),
        ("hidden_size", spec.hidden.into()),
        ("ffn_hidden_size", mlp.into()),
        ("num_attention_heads", spec.heads.into()),
        ("vocab_size", spec.vocabulary.into()),
        ("make_vocab_size_divisible_by", spec.vocabulary_multiple.unwrap_or(128).into()),
        ("activation_func", Value::Code(activation)),
        ("gated_linear_unit", (architecture.mlp == MlpKind::Swiglu).into()),
        ("normalization", if architecture.rms { "RMSNorm" } else { "LayerNorm" }.into()),
        ("add_bias_linear", (architecture.biases == BiasKind::All).into()),
        ("add_qkv_bias", (architecture.biases == BiasKind::Qkv).into()),
        ("hidden_dropout", dropout(spec.dropout.hidden)),
        ("attention_dropout", dropout(spec.dropout.attention)),
        ("share_embeddings_and_output_weights", spec.tied.into()),
        ("qk_layernorm", (spec.qk_norm == QkNorm::PerHead || spec.latent.is_some()).into()),
    ];
    let positions = if architecture.rotary_percent.is_some() { "rope" } else { "learned_absolute" };
    fields.push(("position_embedding_type", positions.into()));
    if let Some(percent) = architecture.rotary_percent.filter(|&percent| percent < 100) {
        fields.push(("rotary_percent", Value::Percent(percent)));
    }
    if let Some(latent) = architecture.latent() {
        fields.push(("multi_latent_attention", true.into()));
        fields.push(("q_lora_rank", latent.query.map_or(Value::None, Value::Int)));
        fields.push(("kv_lora_rank", latent.kv.into()));
        fields.push(("qk_head_dim", spec.head.saturating_sub(spec.rotary).into()));
        fields.push(("qk_pos_emb_head_dim", spec.rotary.into()));
        fields.push(("v_head_dim", latent.value.into()));
    } else {
        fields.push(("num_query_groups", spec.kv_heads.into()));
        fields.push(("kv_channels", spec.head.into()));
    }
    if let Some(tokens) = architecture.window {
        let window = vec![tokens.saturating_sub(1).into(), 0.into()];
        fields.push(("window_size", Value::List(window)));
    }
    if spec.next_tokens > 0 {
        fields.push(("mtp_num_layers", spec.next_tokens.into()));
    }
    fields.extend(experts(architecture));
    fields
}

fn experts(architecture: &Architecture) -> Fields {
    let Some(experts) = architecture.experts() else { return Vec::new() };
    let mut fields: Fields = vec![
        ("num_moe_experts", experts.count.into()),
        ("moe_router_topk", experts.chosen.into()),
        ("moe_ffn_hidden_size", experts.mlp.into()),
        ("moe_grouped_gemm", true.into()),
        ("moe_token_dispatcher_type", "alltoall".into()),
    ];
    if let Some(shared) = experts.shared {
        fields.push(("moe_shared_expert_intermediate_size", shared.into()));
    }
    if let Some(groups) = experts.groups {
        fields.push(("moe_router_num_groups", groups.count.into()));
        fields.push(("moe_router_group_topk", groups.chosen.into()));
    }
    if let Some(frequency) = &architecture.frequency {
        let list = frequency.iter().map(|&has| u64::from(has).into()).collect();
        fields.push(("moe_layer_freq", Value::List(list)));
    }
    if experts.router_bias == RouterBias::Balancing {
        fields.push(("moe_router_score_function", "sigmoid".into()));
        fields.push(("moe_router_enable_expert_bias", true.into()));
    }
    fields
}

/// Everything but the model.
fn fields(run: &Run, cut: &Cut) -> Fields {
    let strategy = &cut.strategy;
    let several = strategy.pipeline > 1;
    let number = |is: bool, number: u64| if is { Value::Int(number) } else { Value::None };
    let mut fields: Fields = vec![
        ("model.tensor_model_parallel_size", strategy.tensor_parallel.into()),
        ("model.sequence_parallel", strategy.sequence_parallel.into()),
        ("model.context_parallel_size", strategy.context_parallel.into()),
        ("model.cp_comm_type", megatron::context_kind(strategy.context_kind).into()),
        ("model.pipeline_model_parallel_size", strategy.pipeline.into()),
        (
            "model.virtual_pipeline_model_parallel_size",
            number(several && cut.chunks() > 1, cut.chunks()),
        ),
        (
            "model.pipeline_model_parallel_layout",
            if several { Value::Text(layout(&cut.stages, cut.next_token)) } else { Value::None },
        ),
        ("model.pipeline_dtype", if several { Value::Code("torch.bfloat16") } else { Value::None }),
    ];
    if several && cut.chunks() > 1 {
        let group = strategy.schedule.group();
        fields.push(("model.microbatch_group_size_per_vp_stage", group.into()));
    }
    if several && strategy.order != Order::default() {
        fields.push(("dist.use_tp_pp_dp_mapping", true.into()));
    }
    if run.spec.experts.is_some() {
        fields.push(("model.expert_model_parallel_size", strategy.expert_parallel.into()));
        fields.push(("model.expert_tensor_parallel_size", strategy.expert_tensor.into()));
    }
    fields.extend(repeated(cut));
    fields.extend(shared(cut));
    fields.push(("train.micro_batch_size", strategy.micro_batch.into()));
    if let Some(training) = &run.plan.training {
        fields.push(("train.global_batch_size", training.global_batch.into()));
        fields.push(("model.seq_length", training.sequence.into()));
        fields.push(("dataset.seq_length", training.sequence.into()));
    }
    fields.push(("train.train_iters", run.steps.into()));
    let mixed = match megatron::precision(run) {
        Precision::Bf16 => "bf16_mixed",
        Precision::Fp8 => "bf16_with_fp8_current_scaling_mixed",
    };
    fields.push(("mixed_precision", mixed.into()));
    fields.push(("optimizer.optimizer", megatron::optimizer(run).into()));
    if megatron::unfused(run) {
        fields.push(("model.attention_backend", Value::Code("AttnBackend.unfused")));
    }
    fields.push(("tokenizer.tokenizer_type", "NullTokenizer".into()));
    fields.push(("tokenizer.vocab_size", run.spec.vocabulary.into()));
    fields
}

/// What is computed again.
fn repeated(cut: &Cut) -> Fields {
    let all = |method: &str, layers: u64| -> Fields {
        vec![
            ("model.recompute_granularity", "full".into()),
            ("model.recompute_method", method.into()),
            ("model.recompute_num_layers", layers.into()),
        ]
    };
    let modules = cut.strategy.repeated;
    match cut.repeated_layers() {
        RepeatedLayers::All => all("uniform", 1),
        RepeatedLayers::OneNumber => all("block", cut.most_repeated()),
        _ if !modules.is_empty() => {
            let names = modules.iter().map(|module| module.name().into()).collect();
            vec![
                ("model.recompute_granularity", "selective".into()),
                ("model.recompute_modules", Value::List(names)),
            ]
        }
        _ => vec![("model.recompute_granularity", Value::None)],
    }
}

/// What replicas share.
fn shared(cut: &Cut) -> Fields {
    let strategy = &cut.strategy;
    let sharding = match strategy.zero {
        Zero::Nothing => "no_shard",
        Zero::State => "optim",
        Zero::Gradients => "optim_grads",
        Zero::Weights => "optim_grads_params",
    };
    let replicas = strategy.data_parallel * strategy.context_parallel;
    let state = strategy.zero > Zero::Nothing;
    let mut fields: Fields = vec![
        ("ddp.use_distributed_optimizer", state.into()),
        ("ddp.overlap_grad_reduce", (replicas > 1).into()),
        ("ddp.overlap_param_gather", state.into()),
        ("ddp.use_megatron_fsdp", megatron::is_sharded(cut).into()),
    ];
    if megatron::is_sharded(cut) {
        fields.push(("ddp.data_parallel_sharding_strategy", sharding.into()));
        fields.push(("checkpoint.ckpt_format", "fsdp_dtensor".into()));
    }
    if strategy.zero == Zero::State && cut.shards() < replicas {
        let instances = replicas / cut.shards();
        fields.push(("ddp.num_distributed_optimizer_instances", instances.into()));
    }
    fields
}
