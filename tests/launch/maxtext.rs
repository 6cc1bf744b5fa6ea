//! What `MaxText` refuses, over the keys of a configuration.

use std::collections::BTreeMap;

use phaze::parallel::zero::Zero;

use crate::Launched;
use crate::Mutation;
use crate::replaced;

fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("MaxText refuses: {rule}")) }
}

/// Keys that its base configuration has.
const KEYS: &[&str] = &[
    "base_config",
    "shard_optimizer_over_data",
    "context_parallel_strategy",
    "context_parallel_load_balance",
    "remat_policy",
    "per_device_batch_size",
    "gradient_accumulation_steps",
    "max_target_length",
    "steps",
    "dtype",
    "hardware",
    "attention",
    "quantization",
    "decoder_block",
    "base_num_decoder_layers",
    "base_emb_dim",
    "base_mlp_dim",
    "base_num_query_heads",
    "base_num_kv_heads",
    "head_dim",
    "vocab_size",
    "mlp_activations",
    "enable_dropout",
    "logits_via_embedding",
    "num_experts",
    "num_experts_per_tok",
    "sparse_matmul",
    "capacity_factor",
];

const AXES: &[&str] = &["data", "fsdp", "tensor", "tensor_sequence", "context", "expert"];

/// Judges a configuration.
pub fn judge(launched: &Launched) -> Result<(), String> {
    let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
    let mut degrees: BTreeMap<&str, u64> = AXES.iter().map(|&axis| (axis, 1)).collect();
    let (mut inside, mut between) = (1, 1);
    for line in launched.text.lines().filter(|line| !line.starts_with('#')) {
        let (key, value) = line.split_once(": ").ok_or(format!("no key: {line}"))?;
        require(keys.insert(key, value).is_none(), &format!("{key} stands twice"))?;
        let mesh = key.strip_suffix("_parallelism").and_then(|key| key.split_once('_'));
        match mesh {
            Some((level @ ("ici" | "dcn"), axis)) => {
                let degree = degrees.get_mut(axis).ok_or(format!("no axis {axis}"))?;
                let number: u64 = value.parse().map_err(|_| format!("{key} is no number"))?;
                *degree *= number;
                *(if level == "ici" { &mut inside } else { &mut between }) *= number;
            }
            _ => require(KEYS.contains(&key), &format!("{key} is no key"))?,
        }
    }
    let devices = launched.plan.job.devices;
    require(inside * between == devices, "the meshes are all devices")?;
    require(inside == devices.min(8), "the inner mesh is a node")?;
    let number = |key: &str| -> Result<f64, String> {
        let value = keys.get(key).ok_or(format!("no {key}"))?;
        value.parse().map_err(|_| format!("{key} is no number"))
    };
    let together = number("per_device_batch_size")? * devices as f64;
    require(together.fract() == 0.0 && together >= 1.0, "devices have whole sequences together")?;
    let batch = together * number("gradient_accumulation_steps")?;
    let t = degrees["tensor"] * degrees["tensor_sequence"];
    let c = degrees["context"];
    let s = number("max_target_length")?;
    require(c == 1 || s % (2 * c) as f64 == 0.0, "the sequence divides by twice the context")?;
    require(c == 1 || keys.contains_key("context_parallel_strategy"), "a strategy of context")?;
    let policies = ["full", "minimal_with_context"];
    require(policies.contains(&keys["remat_policy"]), "a policy that is known")?;
    let attention = if keys["hardware"] == "gpu" { "cudnn_flash_te" } else { "flash" };
    require(keys["attention"] == attention, "the fused attention of the hardware")?;
    require(keys["base_config"] == "base.yml", "a base")?;
    let quantized = keys.get("quantization").copied();
    require(matches!(quantized, None | Some("fp8")), "numbers that are known")?;
    require(quantized.is_some() == launched.is_fp8(), "numbers as in the plan")?;
    let strategy = launched.strategy();
    let training = launched.plan.training.as_ref().unwrap();
    let e = degrees["expert"];
    let d = degrees["data"] * degrees["fsdp"] * e;
    require(e == strategy.expert_parallel, "experts as in the plan")?;
    let experts = launched.config()["num_local_experts"].as_u64();
    let said = keys.get("num_experts").and_then(|count| count.parse::<u64>().ok());
    require(said == experts && experts.unwrap_or(1).is_multiple_of(e), "experts of the model")?;
    require(e == 1 || c == 1, "experts or sequences have the inner devices")?;
    require(
        [t, c, d] == [strategy.tensor_parallel, strategy.context_parallel, strategy.data_parallel],
        "degrees as in the plan",
    )?;
    require((batch - training.global_batch as f64).abs() < 0.5, "the batch of the plan")?;
    let micro = together / d as f64;
    require((micro - strategy.micro_batch as f64).abs() < 1e-9, "the micro-batch of the plan")?;
    let scattered = degrees["tensor_sequence"] > 1;
    require(scattered == strategy.sequence_parallel, "sp as in the plan")?;
    let zero = if degrees["fsdp"] > 1 || e > 1 {
        Zero::Weights
    } else if keys.contains_key("shard_optimizer_over_data") {
        Zero::State
    } else {
        Zero::Nothing
    };
    require(d == 1 || zero == strategy.zero, "zero as in the plan")?;
    let repeated: usize = launched.plan.answer.stages.iter().map(|stage| stage.repeated).sum();
    require((keys["remat_policy"] == "full") == (repeated > 0), "remat as in the plan")
}

/// Changes that `MaxText` refuses, or that say another plan.
pub const MUTATIONS: &[Mutation] = &[
    ("a mesh that is too large", |l| {
        replaced(l, "dcn_context_parallelism: 1", "dcn_context_parallelism: 2")
    }),
    ("a key that is none", |l| replaced(l, "remat_policy", "remat_polcy")),
    ("an axis that is none", |l| replaced(l, "ici_context_", "ici_contxt_")),
    ("another batch", |l| {
        replaced(l, "gradient_accumulation_steps: ", "gradient_accumulation_steps: 1")
    }),
    ("other numbers", |l| replaced(l, "quantization: fp8\n", "")),
    ("numbers that are none", |l| replaced(l, "quantization: fp8", "quantization: fp7")),
    ("another policy", |l| replaced(l, "remat_policy: full", "remat_policy: minimal_with_context")),
    ("a policy that is none", |l| {
        replaced(l, "remat_policy: minimal_with_context", "remat_policy: none")
    }),
    ("experts of another hardware", |l| replaced(l, "hardware: gpu", "hardware: tpu")),
    ("another number of experts", |l| replaced(l, "num_experts: ", "num_experts: 1")),
    ("half a sequence", |l| {
        let each = launched_each(l)?;
        replaced(l, &format!("per_device_batch_size: {each}"), "per_device_batch_size: 0.01")
    }),
];

fn launched_each(launched: &Launched) -> Option<String> {
    let line = launched.text.lines().find(|line| line.starts_with("per_device_batch_size: "))?;
    line.split_once(": ").map(|(_, each)| each.to_owned())
}
