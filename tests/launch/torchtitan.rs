//! What torchtitan and `PyTorch`'s schedules refuse, over the fields of a configuration function.

use std::collections::BTreeMap;

use phaze::parallel::zero::Zero;

use crate::Launched;
use crate::Mutation;
use crate::replaced;

fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("torchtitan refuses: {rule}")) }
}

/// Judges a configuration.
pub fn judge(launched: &Launched) -> Result<(), String> {
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    for line in launched.text.lines().filter(|line| !line.starts_with('#')) {
        let line = line.trim().trim_end_matches(',');
        if let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.contains(' ')) {
            require(fields.insert(name, value).is_none(), &format!("{name} is given twice"))?;
        }
    }
    let number = |name: &str| -> Result<u64, String> {
        let value = fields.get(name).ok_or(format!("no {name}"))?;
        value.parse().map_err(|_| format!("{name} is no number"))
    };
    let replicate = number("data_parallel_replicate_degree")?;
    let shard = number("data_parallel_shard_degree")?;
    let [t, c, p] = [
        number("tensor_parallel_degree")?,
        number("context_parallel_degree")?,
        number("pipeline_parallel_degree")?,
    ];
    let devices = launched.plan.job.devices;
    require(replicate * shard * c * t * p == devices, "the degrees are all devices")?;
    let s = number("max_context_length")?;
    require(s % (2 * t * c) == 0, "the sequence divides by tp x 2 x cp")?;
    let (tokens, step) =
        (number("num_tokens_per_microbatch_per_dp_rank")?, number("num_tokens_per_train_step")?);
    let micro_batches = if p > 1 { number("num_pp_microbatches")? } else { 1 };
    require(tokens > 0 && tokens % s == 0, "a micro-batch has whole sequences")?;
    let together = tokens * micro_batches * replicate * shard;
    require(step % together == 0, "a step divides by what is processed at once")?;
    let policy = fields.get("fsdp_reshard_after_forward").copied().unwrap_or("");
    require(
        ["\"always\"", "\"never\"", "\"default\""].contains(&policy),
        "a policy of resharding",
    )?;
    let mut stages = vec![80_u64; 0];
    if p > 1 {
        let list = fields.get("module_fqns_per_model_part").ok_or("no modules")?;
        stages = modules(list, launched.config()["num_hidden_layers"].as_u64().unwrap())?;
        require((stages.len() as u64).is_multiple_of(p), "as many stages on every rank")?;
        let each = stages.len() as u64 / p;
        match fields.get("pipeline_parallel_schedule").copied() {
            Some("\"1F1B\"") => {
                require(each == 1, "1F1B has one stage a rank")?;
                require(micro_batches >= p, "1F1B has as many micro-batches as ranks")?;
            }
            Some("\"Interleaved1F1B\"") => {
                require(each >= 2, "looped schedules have two stages a rank or more")?;
                let rounds = (micro_batches / p).max(1);
                require(micro_batches % rounds == 0, "rounds are alike")?;
            }
            _ => require(false, "a schedule that is known")?,
        }
    } else {
        let piped = fields.contains_key("pipeline_parallel_schedule");
        require(!piped, "a schedule belongs to a pipeline")?;
    }
    let strategy = launched.strategy();
    let training = launched.plan.training.as_ref().unwrap();
    let said = [t, c, p, replicate * shard, tokens / s, step / s, s];
    let is = [
        strategy.tensor_parallel,
        strategy.context_parallel,
        strategy.pipeline,
        strategy.data_parallel,
        strategy.micro_batch,
        training.global_batch,
        training.sequence,
    ];
    require(said == is, &format!("the plan is {is:?}, not {said:?}"))?;
    require(p == 1 || stages == launched.stages(), "the stages are those of the plan")?;
    let zero = match (shard * c, policy) {
        (1, _) => Zero::Nothing,
        (_, "\"always\"") => Zero::Weights,
        _ => Zero::Gradients,
    };
    let alone = replicate * shard * c == 1;
    require(alone || zero == strategy.zero, "zero as in the plan")?;
    let e = fields.get("expert_parallel_degree").map_or(1, |degree| degree.parse().unwrap());
    require((shard * c * t).is_multiple_of(e), "experts are dealt out among shards")?;
    require(e == strategy.expert_parallel, "experts as in the plan")?;
    let is_mixture = launched.config()["num_experts"].as_u64().is_some();
    let registered = if is_mixture { "30B-A3B" } else { "8B" };
    numbers(launched, registered, is_mixture)?;
    let captured = !launched.text.contains("config.training.disable_cuda_graphs = True");
    require(!captured || p == 1 && e == 1, "graphs take no pipeline and no dealt experts")?;
    let full = launched.text.contains("config.activation_checkpoint = FullAC.Config()");
    let repeated: usize = launched.plan.answer.stages.iter().map(|stage| stage.repeated).sum();
    require(full == (repeated > 0), "checkpointing as in the plan")
}

/// The model of the registry as it is, or with what converts its matmuls: the converters of linear
/// layers and of grouped experts know hardware from compute capability 8.9 on, are slow without
/// `torch.compile`, and leave the head and the router as they are named.
fn numbers(launched: &Launched, registered: &str, is_mixture: bool) -> Result<(), String> {
    let lines: Vec<&str> = launched.text.lines().filter(|line| !line.starts_with('#')).collect();
    let text = lines.join("\n");
    let call = text.split("config.model_spec = model_registry(").nth(1).ok_or("no model")?;
    let arguments = call.split("\n    config.").next().unwrap_or_default();
    let words: String = arguments.split_whitespace().collect();
    if !launched.is_fp8() {
        require(words == format!("\"{registered}\")"), "the model of the plan, in its numbers")?;
        return require(!text.contains("Float8"), "nothing is converted");
    }
    require(
        words.starts_with(&format!("\"{registered}\",converters=[")),
        "converters of the model",
    )?;
    let hardware = &launched.plan.question.as_ref().unwrap().hardware.name;
    require(hardware.starts_with("h100"), "FP8 needs compute capability 8.9")?;
    let linear = if is_mixture { "\"lm_head\",\"router.gate\"" } else { "\"lm_head\"" };
    let linear =
        format!("Float8LinearConverter.Config(filter_fqns=[{linear}],model_compile_enabled=True)");
    require(words.contains(&linear), "linear layers but the head and the router")?;
    let grouped =
        words.contains("Float8GroupedExpertsConverter.Config(model_compile_enabled=True)");
    require(grouped == is_mixture, "experts are converted where there are some")?;
    require(
        words.matches("Converter.Config(").count() == 1 + usize::from(is_mixture),
        "no others",
    )?;
    require(text.contains("\n    config.compile = CompileConfig(enable=True)\n"), "compiled")?;
    let imported = |module: &str| {
        let line =
            lines.iter().find_map(|line| line.strip_prefix(&format!("from {module} import ")));
        line.unwrap_or_default().split(", ").collect::<Vec<_>>()
    };
    let quantization = imported("torchtitan.components.quantization");
    require(quantization.contains(&"Float8LinearConverter"), "what is used is imported")?;
    let experts = quantization.contains(&"Float8GroupedExpertsConverter");
    require(experts == is_mixture, "what is used is imported")?;
    let config = imported("torchtitan.config");
    let used = ["CompileConfig", "ParallelismConfig", "TrainingConfig"];
    require(used.iter().all(|name| config.contains(name)), "what is used is imported")
}

/// Layers of every stage; every module stands once and in its order.
fn modules(list: &str, n_layers: u64) -> Result<Vec<u64>, String> {
    let parsed: Vec<Vec<String>> =
        serde_json::from_str(list).map_err(|error| format!("no lists: {error}"))?;
    let counts =
        parsed.iter().map(|stage| stage.iter().filter(|name| name.starts_with("layers.")).count());
    let counts: Vec<u64> = counts.map(|count| count as u64).collect();
    let all: Vec<String> = parsed.concat();
    let layers: u64 = counts.iter().sum();
    let expected: Vec<String> = ["tok_embeddings".to_owned()]
        .into_iter()
        .chain((0..layers).map(|layer| format!("layers.{layer}")))
        .chain(["norm".to_owned(), "lm_head".to_owned()])
        .collect();
    require(all == expected && layers == n_layers, "every module once, in order")?;
    Ok(counts)
}

/// Changes that torchtitan refuses, or that say another plan.
pub const MUTATIONS: &[Mutation] = &[
    ("a module less", |l| replaced(l, "\"layers.7\", ", "")),
    ("a module twice", |l| replaced(l, "\"layers.7\"", "\"layers.7\", \"layers.7\"")),
    ("another degree", |l| {
        let t = l.strategy().tensor_parallel;
        let from = format!(" tensor_parallel_degree={t},");
        replaced(l, &from, &format!(" tensor_parallel_degree={},", 2 * t))
    }),
    ("another schedule", |l| replaced(l, "\"1F1B\"", "\"Interleaved1F1B\"")),
    ("a schedule of one stage", |l| replaced(l, "\"Interleaved1F1B\"", "\"1F1B\"")),
    ("a step that does not divide", |l| {
        replaced(l, "num_tokens_per_train_step=", "num_tokens_per_train_step=1")
    }),
    ("another checkpointing", |l| replaced(l, "FullAC.Config()", "None")),
    ("another model", |l| replaced(l, "model_registry(\"8B\")", "model_registry(\"70B\")")),
    ("a head in FP8", |l| replaced(l, "filter_fqns=[\"lm_head\"], ", "")),
    ("a router in FP8", |l| replaced(l, ", \"router.gate\"", "")),
    ("experts in other numbers", |l| {
        let from =
            "            Float8GroupedExpertsConverter.Config(model_compile_enabled=True),\n";
        replaced(l, from, "")
    }),
    ("a converter that is not imported", |l| {
        replaced(l, "quantization import Float8LinearConverter", "quantization import Float8Linear")
    }),
    ("FP8 that is not compiled", |l| {
        replaced(l, "    config.compile = CompileConfig(enable=True)\n", "")
    }),
    ("a plan in BF16 that is converted", |l| {
        let to = "\", converters=[Float8LinearConverter.Config()])\n    config.parallelism";
        replaced(l, "\")\n    config.parallelism", to)
    }),
    ("another model in FP8", |l| replaced(l, "        \"8B\",\n", "        \"70B\",\n")),
    ("graphs of a pipeline", |l| replaced(l, "disable_cuda_graphs = True", "x = True")),
    ("another degree of experts", |l| {
        let from = format!("expert_parallel_degree={}", l.strategy().expert_parallel);
        replaced(l, &from, "expert_parallel_degree=3")
    }),
    ("another resharding", |l| {
        // Where nobody holds the same parameters but those of experts, it is not judged.
        let replicas = l.strategy().data_parallel * l.strategy().context_parallel;
        if replicas > 1 { replaced(l, "\"always\"", "\"never\"") } else { None }
    }),
    ("a field twice", |l| {
        replaced(l, "        steps=", "        max_context_length=8,\n        steps=")
    }),
];
