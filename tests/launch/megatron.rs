//! What Megatron-LM refuses, from what its sources enforce, over the words of a script or the fields
//! of a Megatron-Bridge recipe.

use std::collections::BTreeMap;

use phaze::parallel::zero::Zero;

use crate::Launched;
use crate::Mutation;
use crate::replaced;

type Flags = BTreeMap<String, Vec<String>>;

/// Every flag that `pretrain_gpt.py` is given here, with how many words follow it.
const KNOWN: &[(&str, usize)] = &[
    ("tensor-model-parallel-size", 1),
    ("sequence-parallel", 0),
    ("context-parallel-size", 1),
    ("cp-comm-type", 1),
    ("pipeline-model-parallel-size", 1),
    ("pipeline-model-parallel-layout", 1),
    ("microbatch-group-size-per-virtual-pipeline-stage", 1),
    ("use-tp-pp-dp-mapping", 0),
    ("overlap-grad-reduce", 0),
    ("overlap-param-gather", 0),
    ("use-distributed-optimizer", 0),
    ("num-distributed-optimizer-instances", 1),
    ("use-megatron-fsdp", 0),
    ("data-parallel-sharding-strategy", 1),
    ("no-gradient-accumulation-fusion", 0),
    ("ckpt-format", 1),
    ("recompute-granularity", 1),
    ("recompute-method", 1),
    ("recompute-num-layers", 1),
    ("recompute-modules", 9),
    ("micro-batch-size", 1),
    ("global-batch-size", 1),
    ("seq-length", 1),
    ("max-position-embeddings", 1),
    ("train-iters", 1),
    ("bf16", 0),
    ("fp8-format", 1),
    ("attention-backend", 1),
    ("optimizer", 1),
    ("lr", 1),
    ("min-lr", 1),
    ("lr-decay-style", 1),
    ("mock-data", 0),
    ("tokenizer-type", 1),
    ("vocab-size", 1),
    ("make-vocab-size-divisible-by", 1),
    ("num-layers", 1),
    ("hidden-size", 1),
    ("ffn-hidden-size", 1),
    ("num-attention-heads", 1),
    ("group-query-attention", 0),
    ("num-query-groups", 1),
    ("kv-channels", 1),
    ("qk-layernorm", 0),
    ("position-embedding-type", 1),
    ("rotary-percent", 1),
    ("window-size", 1),
    ("normalization", 1),
    ("swiglu", 0),
    ("squared-relu", 0),
    ("disable-bias-linear", 0),
    ("add-qkv-bias", 0),
    ("hidden-dropout", 1),
    ("attention-dropout", 1),
    ("untie-embeddings-and-output-weights", 0),
    ("expert-model-parallel-size", 1),
    ("expert-tensor-parallel-size", 1),
    ("num-experts", 1),
    ("moe-router-topk", 1),
    ("moe-ffn-hidden-size", 1),
    ("moe-shared-expert-intermediate-size", 1),
    ("moe-router-num-groups", 1),
    ("moe-router-group-topk", 1),
    ("moe-layer-freq", 1),
    ("moe-router-score-function", 1),
    ("moe-router-enable-expert-bias", 0),
    ("moe-grouped-gemm", 0),
    ("moe-token-dispatcher-type", 1),
    ("mtp-num-layers", 1),
    ("multi-latent-attention", 0),
    ("q-lora-rank", 1),
    ("kv-lora-rank", 1),
    ("qk-head-dim", 1),
    ("qk-pos-emb-head-dim", 1),
    ("v-head-dim", 1),
];

const MODULES: &[&str] =
    &["core_attn", "mlp", "layernorm", "moe_act", "moe", "shared_experts", "mla_up_proj"];

fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("Megatron refuses: {rule}")) }
}

/// The words of a shell command, quotes taken off.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.replace("\\\n", " ").chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The flags of a list with bars between them; a quoted layout keeps its own.
pub fn listed(text: &str) -> Vec<String> {
    let mut flags = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        quoted ^= c == '\'';
        if c == '|' && !quoted {
            flags.push(String::new());
        } else {
            flags.last_mut().unwrap().push(c);
        }
    }
    flags.into_iter().map(|flag| flag.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Judges a script.
pub fn judge_script(launched: &Launched) -> Result<(), String> {
    let commands: Vec<&str> = launched.text.lines().filter(|line| !line.starts_with('#')).collect();
    let one = commands.contains(&"export CUDA_DEVICE_MAX_CONNECTIONS=1");
    let words = words(&commands.join("\n"));
    let at = words.iter().position(|word| word == "pretrain_gpt.py").ok_or("no script")?;
    let number = |name: &str| {
        let place = words[..at].iter().position(|word| word == name)?;
        words[place + 1].parse::<u64>().ok()
    };
    let per_node = number("--nproc-per-node").ok_or("no --nproc-per-node")?;
    let nodes = number("--nnodes").ok_or("no --nnodes")?;
    let mut flags = Flags::new();
    let mut last: Option<&str> = None;
    for word in &words[at + 1..] {
        if let Some(name) = word.strip_prefix("--") {
            require(!flags.contains_key(name), &format!("--{name} is given twice"))?;
            flags.insert(name.to_owned(), Vec::new());
            last = Some(name);
        } else {
            let values = last.and_then(|name| flags.get_mut(name));
            values.ok_or("a value without a flag")?.push(word.clone());
        }
    }
    for (name, values) in &flags {
        let known = KNOWN.iter().find(|(known, _)| known == name);
        let (_, most) = known.ok_or(format!("Megatron knows no --{name}"))?;
        let least = usize::from(*most > 0);
        require((least..=*most).contains(&values.len()), &format!("--{name} {values:?}"))?;
    }
    judge(launched, &flags, (per_node * nodes, one))
}

/// The fields of a recipe as the flags that they stand for.
pub fn judge_recipe(launched: &Launched) -> Result<(), String> {
    let text = &launched.text;
    let one = text.contains("os.environ[\"CUDA_DEVICE_MAX_CONNECTIONS\"] = \"1\"");
    let mut flags = Flags::new();
    for line in text.lines() {
        let line = line.trim().trim_end_matches(',');
        let field = line.strip_prefix("cfg.").and_then(|line| line.split_once(" = "));
        let field = field.or_else(|| line.split_once('=').filter(|(name, _)| !name.contains(' ')));
        let Some((name, value)) = field else { continue };
        let name = name.rsplit('.').next().unwrap().replace('_', "-");
        let name = match name.as_str() {
            "microbatch-group-size-per-vp-stage" => {
                "microbatch-group-size-per-virtual-pipeline-stage".to_owned()
            }
            "num-moe-experts" => "num-experts".to_owned(),
            _ => name,
        };
        let values: Vec<String> = value
            .trim_matches(['[', ']'])
            .split(", ")
            .map(|value| value.trim_matches('"').to_owned())
            .collect();
        match values[0].as_str() {
            "None" | "False" => {}
            "True" => drop(flags.insert(name, Vec::new())),
            _ => drop(flags.insert(name, values)),
        }
    }
    let start = text.split("--nproc-per-node ").nth(1).ok_or("no --nproc-per-node")?;
    let mut numbers = start.split_whitespace();
    let per_node: u64 = numbers.next().unwrap().parse().unwrap();
    let nodes: u64 = numbers.nth(1).unwrap().parse().unwrap();
    if flags.get("num-query-groups") == flags.get("num-attention-heads") {
        flags.remove("num-query-groups");
    }
    let virtual_stages = flags.get("virtual-pipeline-model-parallel-size").cloned();
    let stages = flags.get("pipeline-model-parallel-layout").map(|layout| expanded(&layout[0]));
    if let (Some(chunks), Some(stages)) = (virtual_stages, stages) {
        let ranks: usize = flags["pipeline-model-parallel-size"][0].parse().unwrap();
        let chunks: usize = chunks[0].parse().unwrap();
        require(
            stages?.len() == ranks * chunks,
            "the layout has as many stages as ranks and chunks",
        )?;
    }
    judge(launched, &flags, (per_node * nodes, one))
}

/// The stages of a layout, repeats written out.
fn expanded(layout: &str) -> Result<Vec<String>, String> {
    let mut text = String::new();
    let mut rest = layout;
    while let Some((before, after)) = rest.split_once('(') {
        let (inside, after) = after.split_once(")*").ok_or("a bracket is open")?;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let times: usize = digits.parse().map_err(|_| "no number after a bracket")?;
        text += before;
        text += &inside.repeat(times);
        rest = &after[digits.len()..];
    }
    text += rest;
    Ok(text.split('|').map(str::to_owned).collect())
}

/// What the framework's own validation asks, and that the flags say what the plan says.
fn judge(launched: &Launched, flags: &Flags, (devices, one): (u64, bool)) -> Result<(), String> {
    let number = |name: &str| -> Result<u64, String> {
        let value = flags.get(name).and_then(|values| values.first());
        value.ok_or(format!("no {name}"))?.parse().map_err(|_| format!("{name} is no number"))
    };
    let or_one = |name: &str| if flags.contains_key(name) { number(name) } else { Ok(1) };
    let has = |name: &str| flags.contains_key(name);
    let is = |name: &str, value: &str| flags.get(name).is_some_and(|values| values[0] == value);
    let t = number("tensor-model-parallel-size")?;
    let p = number("pipeline-model-parallel-size")?;
    let c = or_one("context-parallel-size")?;
    let (b, batch) = (number("micro-batch-size")?, number("global-batch-size")?);
    let (s, layers) = (number("seq-length")?, number("num-layers")?);
    let heads = number("num-attention-heads")?;
    let groups = if has("num-query-groups") { number("num-query-groups")? } else { heads };
    require(t > 0 && p > 0 && c > 0 && b > 0, "degrees are positive")?;
    require(devices % (t * p * c) == 0, "the world size divides by tp x pp x cp")?;
    let d = devices / (t * p * c);
    require(
        batch % (b * d) == 0,
        "the global batch divides by micro-batch times data parallel size",
    )?;
    require(heads % t == 0, "heads divide by tp")?;
    require(groups % t == 0 || t % groups == 0, "query groups divide by tp or the other way")?;
    require(number("ffn-hidden-size")? % t == 0, "the MLP divides by tp")?;
    require(!has("sequence-parallel") || t > 1, "sequence parallelism needs tensor parallelism")?;
    require(!has("sequence-parallel") || s % t == 0, "the sequence divides by tp")?;
    require(c == 1 || s % (2 * c) == 0, "the sequence divides by twice cp")?;
    let micro_batches = batch / (b * d);
    let mut v = 1;
    let mut counts = vec![layers];
    let more = if has("mtp-num-layers") { number("mtp-num-layers")? } else { 0 };
    require(more == launched.next_tokens(), "further tokens as in the model")?;
    if has("pipeline-model-parallel-layout") {
        let stages = expanded(&flags["pipeline-model-parallel-layout"][0])?;
        require((stages.len() as u64).is_multiple_of(p), "the stages of a layout divide by pp")?;
        v = stages.len() as u64 / p;
        let whole = stages.join("|");
        require(whole.matches('E').count() == 1 && whole.starts_with('E'), "one E, the first")?;
        require(whole.matches('L').count() == 1 && whole.ends_with('L'), "one L, the last")?;
        require(whole.chars().all(|c| "EtmL|".contains(c)), "only E, t, m and L")?;
        require(whole.matches('t').count() as u64 == layers, "as many t as layers")?;
        let told = whole.matches('m').count() as u64;
        require(told == more, "as many m as layers that tell further tokens")?;
        let after = whole.split_once('m').is_none_or(|(_, after)| !after.contains('t'));
        require(after, "m stands behind all t")?;
        let place = stages.iter().position(|stage| stage.contains('m')).map(|at| at as u64);
        let stands = place.is_none_or(|at| at % p > 0 && at / p == v - 1);
        require(stands, "m stands in the last chunk of a rank that is not the first")?;
        counts = stages.iter().map(|stage| stage.matches('t').count() as u64).collect();
    } else {
        require(layers % p == 0, "layers divide by pp without a layout")?;
    }
    if v > 1 {
        require(p > 1, "virtual stages need a pipeline")?;
        let g = if has("microbatch-group-size-per-virtual-pipeline-stage") {
            number("microbatch-group-size-per-virtual-pipeline-stage")?
        } else {
            p
        };
        require((p..=micro_batches).contains(&g), "the group is from pp to all micro-batches")?;
        require(
            micro_batches % g == 0 || micro_batches % g >= p,
            "the last group is large enough",
        )?;
    } else {
        let group = has("microbatch-group-size-per-virtual-pipeline-stage");
        require(!group, "groups belong to virtual stages")?;
    }
    let e = or_one("expert-model-parallel-size")?;
    let x =
        if has("expert-tensor-parallel-size") { number("expert-tensor-parallel-size")? } else { t };
    require(devices % (x * e * p) == 0, "the world size divides by etp x ep x pp")?;
    let folds = !has("use-tp-pp-dp-mapping") || p == 1 || x * e == t * c;
    require(folds, "etp x ep is tp x cp")?;
    experts(launched, flags, (layers, x))?;
    if has("num-experts") {
        require(number("num-experts")? % e == 0, "experts divide by ep")?;
        require(e == 1 || t == 1 || has("sequence-parallel"), "ep with tp needs sp")?;
        let said = [launched.strategy().expert_parallel, launched.strategy().expert_tensor];
        require([e, x] == said, "experts as in the plan")?;
    }
    recompute(flags, &has)?;
    let sharded = has("use-megatron-fsdp");
    let shared = has("use-distributed-optimizer") || sharded;
    require(!has("overlap-param-gather") || has("overlap-grad-reduce") && shared, "overlaps")?;
    require(!sharded || is("ckpt-format", "fsdp_dtensor"), "FSDP's checkpoints are dtensors")?;
    require(!sharded || !one, "FSDP refuses CUDA_DEVICE_MAX_CONNECTIONS=1")?;
    let connected = t == 1 && c == 1 || sharded || one;
    require(connected, "CUDA_DEVICE_MAX_CONNECTIONS=1 with tp or cp")?;
    says_the_plan(launched, [t, c, p, v, d, b, batch, s], &counts, flags)
}

/// What stands in the place of the MLP, and latent attention, as the model's configuration has them.
fn experts(launched: &Launched, flags: &Flags, (layers, x): (u64, u64)) -> Result<(), String> {
    let config = launched.config();
    let number = |name: &str| flags.get(name).and_then(|values| values[0].parse::<u64>().ok());
    let says = |flag: &str, fields: &[&str]| {
        let wanted = fields.iter().find_map(|field| config[*field].as_u64());
        require(number(flag) == wanted, &format!("{flag} is {:?}, not {wanted:?}", number(flag)))
    };
    says("num-experts", &["num_local_experts", "num_experts", "n_routed_experts"])?;
    says("q-lora-rank", &["q_lora_rank"])?;
    says("kv-lora-rank", &["kv_lora_rank"])?;
    says("qk-head-dim", &["qk_nope_head_dim"])?;
    says("qk-pos-emb-head-dim", &["qk_rope_head_dim"])?;
    says("v-head-dim", &["v_head_dim"])?;
    let latent = flags.contains_key("multi-latent-attention");
    require(latent == flags.contains_key("kv-lora-rank"), "latent attention has its ranks")?;
    let plain = ["num-query-groups", "group-query-attention", "kv-channels"];
    let grouped = plain.iter().any(|name| flags.contains_key(*name));
    require(!(latent && grouped), "latent attention has no groups of queries")?;
    let Some(count) = number("num-experts") else { return Ok(()) };
    says("moe-router-topk", &["num_experts_per_tok"])?;
    let chosen = number("moe-router-topk").unwrap_or(2);
    require(chosen <= count, "tokens visit at most all experts")?;
    says("moe-ffn-hidden-size", &["moe_intermediate_size", "intermediate_size"])?;
    let mlp = number("moe-ffn-hidden-size").ok_or("experts have a size")?;
    require(mlp % x == 0, "experts divide by etp")?;
    let shared = config["n_shared_experts"].as_u64().map(|shared| shared * mlp);
    require(number("moe-shared-expert-intermediate-size") == shared, "the shared expert")?;
    let groups = (number("moe-router-num-groups"), number("moe-router-group-topk"));
    require(groups.0.is_none_or(|groups| count % groups == 0), "experts divide by groups")?;
    require(groups.0 >= groups.1, "tokens visit at most all groups")?;
    let balanced = flags.contains_key("moe-router-enable-expert-bias");
    let sigmoid = flags.get("moe-router-score-function").is_some_and(|f| f[0] == "sigmoid");
    require(!balanced || sigmoid, "an expert bias needs the sigmoid")?;
    let dispatcher = flags.get("moe-token-dispatcher-type").is_some_and(|f| f[0] == "alltoall");
    require(dispatcher && flags.contains_key("moe-grouped-gemm"), "grouped experts, all to all")?;
    let said: Vec<bool> = match flags.get("moe-layer-freq").map(Vec::as_slice) {
        None => vec![true; usize::try_from(layers).unwrap()],
        Some([one]) if one.starts_with('(') => pattern(one)?,
        Some(list) => list.iter().map(|word| word == "1").collect(),
    };
    require(said.len() as u64 == layers, "the list of layers with experts has every layer")?;
    let first = config["first_k_dense_replace"].as_u64().unwrap_or(0);
    let listed = config["mlp_only_layers"].as_array().cloned().unwrap_or_default();
    let dense = |at: u64| at < first || listed.iter().any(|one| one.as_u64() == Some(at));
    let is = (0..layers).map(|at| !dense(at)).eq(said);
    require(is, "the layers with experts are those of the model")
}

/// `([0]*3+[1]*58)` written out.
fn pattern(text: &str) -> Result<Vec<bool>, String> {
    let mut found = Vec::new();
    for part in text.trim_matches(['(', ')']).split('+') {
        let (item, times) = part.split_once(")*").or(part.split_once("]*")).ok_or("no product")?;
        let has = item.trim_start_matches('[') == "1";
        found.extend(vec![has; times.parse().map_err(|_| "no number of layers")?]);
    }
    Ok(found)
}

fn recompute(flags: &Flags, has: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let granularity = flags.get("recompute-granularity").map(|values| values[0].as_str());
    match granularity {
        None => require(
            !has("recompute-method") && !has("recompute-num-layers") && !has("recompute-modules"),
            "nothing is repeated without a granularity",
        ),
        Some("full") => {
            let method = flags.get("recompute-method").map(|values| values[0].as_str());
            require(matches!(method, Some("uniform" | "block")), "full has a method")?;
            let layers = flags.get("recompute-num-layers").and_then(|n| n[0].parse::<u64>().ok());
            require(layers.is_some_and(|layers| layers > 0), "full has a number of layers")?;
            require(!has("recompute-modules"), "full has no modules")
        }
        Some("selective") => {
            require(!has("recompute-method"), "selective has no method")?;
            let modules = flags.get("recompute-modules").ok_or("selective has modules")?;
            let known = modules.iter().all(|module| MODULES.contains(&module.as_str()));
            require(known && !modules.is_empty(), "modules are known")
        }
        Some(_) => require(false, "granularity is full or selective"),
    }
}

/// The flags say what the plan says.
fn says_the_plan(
    launched: &Launched,
    [t, c, p, v, d, b, batch, s]: [u64; 8],
    counts: &[u64],
    flags: &Flags,
) -> Result<(), String> {
    let strategy = launched.strategy();
    let training = launched.plan.training.as_ref().unwrap();
    let said = [t, c, p, v, d, b, batch, s];
    let is = [
        strategy.tensor_parallel,
        strategy.context_parallel,
        strategy.pipeline,
        strategy.schedule.chunks() as u64,
        strategy.data_parallel,
        strategy.micro_batch,
        training.global_batch,
        training.sequence,
    ];
    require(said == is, &format!("the plan is {is:?}, not {said:?}"))?;
    require(counts == launched.stages(), "the layout is that of the plan")?;
    numbers(launched, flags)?;
    let scattered = flags.contains_key("sequence-parallel");
    require(scattered == strategy.sequence_parallel, "sp as in the plan")?;
    let zero = match flags.get("data-parallel-sharding-strategy").map(|values| values[0].as_str()) {
        Some("optim_grads") => Zero::Gradients,
        Some("optim_grads_params") => Zero::Weights,
        _ if flags.contains_key("use-distributed-optimizer") => Zero::State,
        _ => Zero::Nothing,
    };
    require(zero == strategy.zero, "zero as in the plan")?;
    let repeated: u64 = launched.plan.answer.stages.iter().map(|one| one.repeated as u64).sum();
    let number = flags.get("recompute-num-layers").map_or(0, |n| n[0].parse::<u64>().unwrap());
    let block = flags.get("recompute-method").is_some_and(|method| method[0] == "block");
    let layers = counts.iter().sum::<u64>() + launched.next_tokens();
    let told = match (number, block) {
        (0, _) => 0,
        (number, true) => counts.iter().map(|&count| count.min(number)).sum(),
        (_, false) => layers,
    };
    require(told == repeated, &format!("{repeated} layers are repeated, not {told}"))
}

/// BF16, and FP8 where the plan is: a script adds a format, a recipe names both together.
fn numbers(launched: &Launched, flags: &Flags) -> Result<(), String> {
    let fp8 = match flags.get("mixed-precision").map(|values| values[0].as_str()) {
        Some("bf16_mixed") => false,
        Some("bf16_with_fp8_current_scaling_mixed") => true,
        Some(other) => return Err(format!("Megatron-Bridge knows no {other}")),
        None => {
            require(flags.contains_key("bf16"), "BF16 beside FP8")?;
            let format = flags.get("fp8-format").map(|values| values[0].as_str());
            require(matches!(format, None | Some("hybrid" | "e4m3")), "a format of FP8")?;
            format.is_some()
        }
    };
    require(fp8 == launched.is_fp8(), "numbers as in the plan")
}

fn of(launched: &Launched, is: bool, from: &str, to: &str) -> Option<String> {
    is.then(|| replaced(launched, from, to)).flatten()
}

/// Changes of a script that Megatron refuses, or that say another plan.
pub const MUTATIONS: &[Mutation] = &[
    ("a batch that does not divide", |l| {
        let batch = l.global_batch();
        let divides = l.strategy().data_parallel * l.strategy().micro_batch > 1;
        let to = format!("--global-batch-size {}", batch + 1);
        of(l, divides, &format!("--global-batch-size {batch}"), &to)
    }),
    ("a layer less in the layout", |l| replaced(l, "t|", "|")),
    ("a loss in the middle", |l| replaced(l, "|", "L|")),
    ("no loss", |l| replaced(l, "L'", "'")),
    ("a flag twice", |l| replaced(l, "  --bf16 \\\n", "  --bf16 \\\n  --bf16 \\\n")),
    ("a flag that is none", |l| replaced(l, "--bf16", "--bf17")),
    ("other numbers", |l| replaced(l, "  --fp8-format hybrid \\\n", "")),
    ("a format that is none", |l| replaced(l, "--fp8-format hybrid", "--fp8-format half")),
    ("FP8 that is not in the plan", |l| {
        let plain = !l.text.contains("--fp8-format");
        of(l, plain, "  --bf16 \\\n", "  --bf16 \\\n  --fp8-format hybrid \\\n")
    }),
    ("a width that heads do not divide", |l| {
        let t = l.strategy().tensor_parallel;
        let from = format!("--tensor-model-parallel-size {t} ");
        replaced(l, &from, &format!("--tensor-model-parallel-size {} ", 5 * t))
    }),
    ("sequence parallelism alone", |l| {
        let from = "--tensor-model-parallel-size 1 \\\n";
        replaced(l, from, &format!("{from}  --sequence-parallel \\\n"))
    }),
    ("connections left open", |l| replaced(l, "export CUDA_DEVICE_MAX_CONNECTIONS=1\n", "")),
    ("connections closed for FSDP", |l| {
        replaced(l, "unset CUDA_DEVICE_MAX_CONNECTIONS", "export CUDA_DEVICE_MAX_CONNECTIONS=1")
    }),
    ("a checkpoint that FSDP does not write", |l| replaced(l, "fsdp_dtensor", "torch_dist")),
    ("a gather without a sharded optimizer", |l| {
        let is = !l.text.contains("megatron-fsdp");
        of(l, is, "  --use-distributed-optimizer \\\n", "")
    }),
    ("groups that are too small", |l| {
        let group = l.strategy().pipeline;
        let name = "--microbatch-group-size-per-virtual-pipeline-stage";
        replaced(l, &format!("{name} {group}"), &format!("{name} {}", group - 1))
    }),
    ("selective with a method", |l| {
        let from = "--recompute-granularity selective";
        replaced(l, from, &format!("{from} \\\n  --recompute-method block"))
    }),
    ("full without a method", |l| {
        let from = if l.text.contains("method block") { "block" } else { "uniform" };
        replaced(l, &format!("  --recompute-method {from} \\\n"), "")
    }),
    ("a module that is none", |l| replaced(l, "core_attn", "core_atn")),
    ("an odd number of devices", |l| {
        let d = l.plan.job.devices;
        let per_node = d.min(8);
        of(l, d > 1 && d % 3 != 0, &format!("--nproc-per-node {per_node} "), "--nproc-per-node 7 ")
    }),
];

/// Changes of mixtures of experts, in a script.
pub const MIXTURE_MUTATIONS: &[Mutation] = &[
    ("another number of experts", |l| replaced(l, "--num-experts ", "--num-experts 1")),
    ("more experts of a token than there are", |l| {
        replaced(l, "--moe-router-topk ", "--moe-router-topk 9")
    }),
    ("experts that cannot be dealt out so", |l| {
        let e = l.strategy().expert_parallel;
        let from = format!("--expert-model-parallel-size {e} ");
        of(l, e > 1, &from, &format!("--expert-model-parallel-size {} ", e + 1))
    }),
    ("a list without a layer", |l| replaced(l, "--moe-layer-freq '(", "--moe-layer-freq '([1]*1+")),
    ("no layer for the token after the next", |l| {
        replaced(l, "mL'", "L'").or_else(|| replaced(l, "m|L'", "|L'"))
    }),
    ("a loss before that layer", |l| {
        replaced(l, "mL'", "Lm'").or_else(|| replaced(l, "m|L'", "L|m'"))
    }),
    ("another latent rank", |l| replaced(l, "--kv-lora-rank 1", "--kv-lora-rank 2")),
    ("a bias without its score", |l| {
        replaced(l, "--moe-router-score-function sigmoid", "--moe-router-score-function softmax")
    }),
    ("another shared expert", |l| {
        replaced(
            l,
            "--moe-shared-expert-intermediate-size ",
            "--moe-shared-expert-intermediate-size 1",
        )
    }),
    ("ep with tp and no sp", |l| {
        let both = l.strategy().expert_parallel > 1 && l.strategy().tensor_parallel > 1;
        of(l, both, "  --sequence-parallel \\\n", "")
    }),
];

/// The same for a recipe.
pub const RECIPE_MUTATIONS: &[Mutation] = &[
    ("a batch that does not divide", |l| {
        let batch = l.global_batch();
        let divides = l.strategy().data_parallel * l.strategy().micro_batch > 1;
        let from = format!("global_batch_size = {batch}");
        of(l, divides, &from, &format!("global_batch_size = {}", batch + 1))
    }),
    ("a layer less in the layout", |l| replaced(l, "t|", "|")),
    ("another micro-batch", |l| {
        let from = format!("micro_batch_size = {}", l.strategy().micro_batch);
        replaced(l, &from, "micro_batch_size = 17")
    }),
    ("connections left open", |l| replaced(l, "] = \"1\"", "] = \"8\"")),
    ("another number of virtual stages", |l| {
        let from =
            format!("virtual_pipeline_model_parallel_size = {}", l.strategy().schedule.chunks());
        of(l, l.strategy().schedule.chunks() > 1, &from, "virtual_pipeline_model_parallel_size = 7")
    }),
    ("sequence parallelism as it is not", |l| {
        let said = |is: bool| if is { "True" } else { "False" };
        let is = l.strategy().sequence_parallel;
        let from = format!("sequence_parallel = {}", said(is));
        replaced(l, &from, &format!("sequence_parallel = {}", said(!is)))
    }),
    ("other numbers", |l| replaced(l, "\"bf16_with_fp8_current_scaling_mixed\"", "\"bf16_mixed\"")),
    ("numbers that are none", |l| replaced(l, "\"bf16_mixed\"", "\"bf17_mixed\"")),
    ("fewer repeated layers", |l| replaced(l, "recompute_granularity = \"full\"", "x = None")),
];
