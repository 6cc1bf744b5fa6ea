//! What is written to start a plan, judged by a second writing of each framework's checks: every file
//! of random plans is accepted and says what the plan says, and files that were changed are not.

#[path = "launch/maxtext.rs"]
mod maxtext;
#[path = "launch/megatron.rs"]
mod megatron;
#[path = "launch/torchtitan.rs"]
mod torchtitan;

use std::path::Path;

use phaze::ask::plan::Batch;
use phaze::ask::plan::Context;
use phaze::ask::plan::PlanRequest;
use phaze::ask::plan::advice;
use phaze::ask::solved::best;
use phaze::input::InputError;
use phaze::input::launched::OwnModel;
use phaze::input::strategy;
use phaze::launch::Target;
use phaze::model::Precision;
use phaze::plan::Plan;
use phaze::plan::Strategy;
use serde_json::Value;

/// Numbers without end, the same on every run.
pub struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()].clone()
    }
}

/// A change of a file by name; nothing where it does not apply.
pub type Mutation = (&'static str, fn(&Launched) -> Option<String>);

/// A plan with the file that starts it.
pub struct Launched {
    /// The plan.
    pub plan: Plan,
    /// Its file.
    pub text: String,
}

impl Launched {
    /// Every axis.
    pub fn strategy(&self) -> &Strategy {
        &self.plan.training.as_ref().unwrap().strategy
    }

    /// Whether matmuls are in FP8.
    pub fn is_fp8(&self) -> bool {
        self.plan.question.as_ref().unwrap().precision == Precision::Fp8
    }

    /// Sequences of a batch.
    pub fn global_batch(&self) -> u64 {
        self.plan.training.as_ref().unwrap().global_batch
    }

    /// The configuration of its model as it was read.
    pub fn config(&self) -> Value {
        let source = &self.plan.question.as_ref().unwrap().model;
        let built_in = || {
            let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/models");
            std::fs::read_to_string(models.join(format!("{}.json", source.name))).unwrap()
        };
        serde_json::from_str(&source.text.clone().unwrap_or_else(built_in)).unwrap()
    }

    /// Layers that tell the token after the next.
    pub fn next_tokens(&self) -> u64 {
        self.config()["mtp_num_layers"].as_u64().unwrap_or(0)
    }

    /// Transformer layers of each virtual stage.
    pub fn stages(&self) -> Vec<u64> {
        let last = self.plan.profile.n_layers() as u64 - 1 - self.next_tokens();
        let inner = |layers: &[usize]| {
            layers.iter().filter(|&&layer| layer > 0 && (layer as u64) < last).count() as u64
        };
        self.plan.answer.stages.iter().map(|stage| inner(&stage.layers)).collect()
    }
}

/// The file with a part of it replaced, its opening comment apart; `None` where there is none.
pub fn replaced(launched: &Launched, from: &str, to: &str) -> Option<String> {
    let comment: usize =
        launched.text.lines().take_while(|line| line.starts_with('#')).map(|l| l.len() + 1).sum();
    let (opening, body) = launched.text.split_at(comment);
    body.contains(from).then(|| format!("{opening}{}", body.replacen(from, to, 1)))
}

/// A model like Llama or GPT with random numbers, as a configuration.
fn config(noise: &mut Noise) -> String {
    let heads = noise.one(&[8, 12, 16]);
    let (hidden, layers) = (heads * 64, noise.one(&[4, 6, 7, 8, 12, 16, 24]));
    let vocabulary = noise.one(&[32_000, 50_257, 128_256]);
    if noise.below(3) == 0 {
        return format!(
            r#"{{"model_type": "gpt2", "n_embd": {hidden}, "n_layer": {layers}, "n_head": {heads},
                "n_positions": 4096, "vocab_size": {vocabulary}, "activation_function": "gelu_new"}}"#
        );
    }
    let kv_heads = noise.one(&[heads, heads / 2, heads / 4]);
    let tied = noise.below(2) == 0;
    let mlp = noise.one(&[4, 3]) * hidden;
    format!(
        r#"{{"model_type": "llama", "hidden_size": {hidden}, "num_hidden_layers": {layers},
            "num_attention_heads": {heads}, "num_key_value_heads": {kv_heads}, "hidden_act": "silu",
            "intermediate_size": {mlp}, "vocab_size": {vocabulary},
            "max_position_embeddings": 8192, "tie_word_embeddings": {tied}}}"#
    )
}

/// A mixture of experts with random numbers, as a configuration: plain, with norms of queries and keys
/// and some layers without experts, or with latent attention, a shared expert and groups.
fn mixture(noise: &mut Noise, kinds: u64) -> String {
    let heads = noise.one(&[8, 16]);
    let (hidden, layers) = (heads * 64, noise.one(&[4, 6, 8, 12]));
    let (experts, chosen) = (noise.one(&[4, 8, 16]), noise.one(&[1, 2, 4]));
    let mlp = noise.one(&[1, 2]) * hidden;
    let usual = format!(
        r#""hidden_size": {hidden}, "num_hidden_layers": {layers}, "num_attention_heads": {heads},
           "vocab_size": 32000, "max_position_embeddings": 8192, "hidden_act": "silu",
           "num_experts_per_tok": {chosen}, "tie_word_embeddings": false"#
    );
    match noise.below(kinds) {
        0 => format!(
            r#"{{"model_type": "mixtral", {usual}, "intermediate_size": {mlp},
                "num_key_value_heads": {}, "num_local_experts": {experts}}}"#,
            heads / 2
        ),
        1 => format!(
            r#"{{"model_type": "qwen3_moe", {usual}, "intermediate_size": {}, "head_dim": 64,
                "num_key_value_heads": {}, "num_experts": {experts}, "moe_intermediate_size": {mlp},
                "mlp_only_layers": {}}}"#,
            4 * hidden,
            heads / 4,
            noise.one(&["[]", "[0]", "[1, 3]"])
        ),
        _ => format!(
            r#"{{"model_type": "deepseek_v3", {usual}, "intermediate_size": {}, "q_lora_rank": 256,
                "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
                "v_head_dim": 64, "n_routed_experts": {experts}, "moe_intermediate_size": {mlp},
                "n_shared_experts": {}, "first_k_dense_replace": {}, "n_group": 4,
                "topk_group": {}, "mtp_num_layers": {}}}"#,
            4 * hidden,
            noise.one(&[1, 2]),
            noise.one(&[0, 1, 3]),
            noise.one(&[2, 4]),
            noise.one(&[0, 1])
        ),
    }
}

/// A part of a strategy that makes plans differ.
fn part(noise: &mut Noise, is_mixture: bool) -> String {
    let dealt = [
        "e=2",
        "e=4",
        "e=4,x=1,p=2",
        "t=2,sp,e=4,x=1",
        "t=2,sp,e=2,x=2",
        "p=2,v=2,e=2",
        "e=4,zero=1,p=4",
        "t=4,sp,e=1,x=4",
        "e=2,zero=3",
        "p=2,e=2,recompute=moe_act+layernorm",
        "e=4,recompute=full",
    ];
    if is_mixture && noise.below(2) == 0 {
        return noise.one(&dealt).to_owned();
    }
    let words = [
        "",
        "p=1",
        "p=2",
        "p=2,v=2",
        "p=4",
        "p=4,v=2",
        "t=2,sp",
        "t=4",
        "t=2",
        "c=2",
        "c=2:gather",
        "zero=1",
        "zero=3",
        "zero=0",
        "recompute=full",
        "recompute=full:1",
        "recompute=selective",
        "p=2,order=tp-cp-pp-dp",
        "b=2",
        "p=3",
        "cut=even,p=2",
        "t=4,sp,p=2,v=2,zero=1",
        "zero=2",
        "c=2:ulysses",
        "t=2,sp,c=2",
    ];
    noise.one(&words).to_owned()
}

/// A random plan for a target, with its file; `None` where nothing fits or nothing starts it.
fn launched(noise: &mut Noise, target: Target, context: &Context) -> Option<Launched> {
    let devices = noise.one(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64]);
    let model = match target {
        Target::Torchtitan => noise.one(&["llama3-8b", "llama3-8b", "qwen3-30b-a3b"]),
        _ => "random.json",
    };
    let read = (context.read)(Path::new(model)).unwrap_or_default();
    let is_mixture = read.contains("experts") || model.contains("a3b");
    let devices = if target == Target::Torchtitan { 8 * devices } else { devices };
    let hardware = noise.one(&["h100-sxm", "a100-80g"]);
    let fp8 = hardware == "h100-sxm" && noise.below(3) == 0;
    let request = PlanRequest {
        precision: if fp8 { Precision::Fp8 } else { Precision::Bf16 },
        sequence: Some(noise.one(&[1024, 2048, 3072])),
        batch: Batch::Sequences(noise.one(&[24, 32, 48, 64, 96, 128])),
        target: Some(target),
        strategy: strategy::read(&part(noise, is_mixture), "part").unwrap_or_default(),
        ..PlanRequest::new(model, hardware, devices)
    };
    let (ready, _) = request.ready(context.read).ok()?;
    let (_, plan) = best(&ready, &context.table).ok()??;
    let told = advice(&request, &ready, plan).ok()?;
    let text = told.launch.unwrap()[0].text.clone();
    Some(Launched { plan: told.plan, text })
}

/// Judges the files of so many random plans, and what becomes of them when they are changed.
fn judged(
    target: Target,
    wanted: usize,
    judge: impl Fn(&Launched) -> Result<(), String>,
    mutations: &[Mutation],
) {
    let mut noise = Noise(target as u64 + 5);
    let mut broken = vec![0; mutations.len()];
    let (mut seen, mut mixtures, mut fp8) = (0, 0, 0);
    while seen < wanted {
        let kinds = if target == Target::Maxtext { 1 } else { 3 };
        let is_mixture = noise.below(3) == 0;
        let text = if is_mixture { mixture(&mut noise, kinds) } else { config(&mut noise) };
        let read = |_: &Path| Ok::<_, InputError>(text.clone());
        let context = Context::new(&read);
        for _ in 0..6 {
            let Some(launched) = launched(&mut noise, target, &context) else { continue };
            judge(&launched).unwrap_or_else(|reason| panic!("{reason}:\n{}", launched.text));
            seen += 1;
            mixtures += usize::from(launched.strategy().expert_parallel > 1);
            fp8 += usize::from(launched.is_fp8());
            for (place, (name, mutate)) in mutations.iter().enumerate() {
                let Some(text) = mutate(&launched) else { continue };
                let plan = launched.plan.clone();
                assert_ne!(text, launched.text, "{name} changes nothing");
                let forged = Launched { plan, text };
                assert!(judge(&forged).is_err(), "{name} is accepted:\n{}", forged.text);
                broken[place] += 1;
            }
        }
    }
    assert!(10 * mixtures > wanted, "{mixtures} of {seen} plans deal experts out");
    assert!(10 * fp8 > wanted, "{fp8} of {seen} plans are in FP8");
    for ((name, _), count) in mutations.iter().zip(broken) {
        assert!(count > 0, "no plan could be changed so: {name}");
    }
}

#[test]
fn megatron_accepts_what_is_written_for_it() {
    let mutations = [megatron::MUTATIONS, megatron::MIXTURE_MUTATIONS].concat();
    judged(Target::Megatron, 200, megatron::judge_script, &mutations);
}

#[test]
fn bridge_accepts_what_is_written_for_it() {
    judged(Target::Bridge, 100, megatron::judge_recipe, megatron::RECIPE_MUTATIONS);
}

#[test]
fn torchtitan_accepts_what_is_written_for_it() {
    judged(Target::Torchtitan, 100, torchtitan::judge, torchtitan::MUTATIONS);
}

#[test]
fn maxtext_accepts_what_is_written_for_it() {
    judged(Target::Maxtext, 100, maxtext::judge, maxtext::MUTATIONS);
}

#[test]
fn mixtures_are_read_back_as_they_were_written() {
    let read = phaze::input::source::no_files;
    let context = Context::new(&read);
    for (model, given, parameters) in [
        ("mixtral-8x7b", "t=2,sp,p=2,e=8,x=1,zero=1", 46_702_792_704),
        ("qwen3-30b-a3b", "t=1,p=2,e=16,zero=1", 30_532_122_624),
        ("deepseek-v3", "t=1,p=16,e=64,x=1,zero=1,recompute=full", 671_026_419_200),
        ("deepseek-v3-mtp", "t=1,p=16,e=64,x=1,zero=1,recompute=full", 671_026_419_200),
    ] {
        for target in [Target::Megatron, Target::Bridge] {
            let request = PlanRequest {
                sequence: Some(4096),
                batch: Batch::Sequences(1024),
                target: Some(target),
                reserve_per_mille: Some(0),
                strategy: strategy::read(given, "given").unwrap(),
                ..PlanRequest::new(
                    model,
                    "h100-sxm",
                    if given.contains("16,e") { 1024 } else { 64 },
                )
            };
            let (ready, _) = request.ready(context.read).unwrap();
            let found = best(&ready, &context.table).unwrap();
            let (_, plan) = found.unwrap_or_else(|| panic!("{model} does not fit"));
            let told = advice(&request, &ready, plan).unwrap();
            let file = &told.launch.unwrap()[0];
            let own = phaze::input::launched::read(&file.text, file.name).unwrap();
            assert_eq!(own.computed, [], "{model} for {target}");
            let Some(OwnModel::Config(text)) = &own.model else { panic!("{model}: {}", file.text) };
            let again = phaze::input::source::model_text(file.name, text).unwrap();
            assert_eq!(again.parameters(), parameters, "{model} for {target}: {text}");
            assert_eq!(again.spec.next_tokens, ready.model.spec.next_tokens, "{model}: {text}");
            let chosen = told.plan.training.unwrap().strategy;
            let said = [own.strategy.expert, own.strategy.expert_tensor, own.strategy.pipeline];
            let is = [chosen.expert_parallel, chosen.expert_tensor, chosen.pipeline];
            assert_eq!(said, is.map(Some), "{model} for {target}: {}", own.strategy);
            let chunks = chosen.schedule.chunks() as u64;
            assert_eq!(own.strategy.chunks, Some(chunks), "{model} for {target}");
        }
    }
}

/// The flags of a published run, from its strategy.
fn published(line: &str) -> (String, Plan) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [model, hardware, devices, sequence, batch, given] = words[..] else { unreachable!() };
    let request = PlanRequest {
        sequence: Some(sequence.parse().unwrap()),
        batch: Batch::Sequences(batch.parse().unwrap()),
        reserve_per_mille: Some(-50),
        target: Some(Target::Megatron),
        strategy: strategy::read(given, "given").unwrap(),
        ..PlanRequest::new(model, hardware, devices.parse().unwrap())
    };
    let read = phaze::input::source::no_files;
    let context = Context::new(&read);
    let (ready, _) = request.ready(context.read).unwrap();
    let (_, plan) = best(&ready, &context.table).unwrap().unwrap_or_else(|| panic!("{line}"));
    let told = advice(&request, &ready, plan).unwrap();
    (told.launch.unwrap()[0].text.clone(), told.plan)
}

#[test]
fn published_recipes_come_out_flag_for_flag() {
    for (line, flags) in [
        (
            "llama3-70b h100-sxm 64 8192 128 t=4,sp,p=8,v=5,zero=1,b=1,recompute=none,cut=even",
            "--tensor-model-parallel-size 4|--sequence-parallel|--pipeline-model-parallel-size 8|\
             --pipeline-model-parallel-layout 'Ett|(tt|)*38ttL'|\
             --microbatch-group-size-per-virtual-pipeline-stage 8|--use-distributed-optimizer|\
             --overlap-grad-reduce|--overlap-param-gather|--micro-batch-size 1|\
             --global-batch-size 128|--seq-length 8192|--num-layers 80|--hidden-size 8192|\
             --ffn-hidden-size 28672|--num-attention-heads 64|--num-query-groups 8|--swiglu|\
             --untie-embeddings-and-output-weights|--disable-bias-linear",
        ),
        (
            "llama3-405b h100-sxm 1024 8192 512 t=8,sp,p=8,c=2,v=8,zero=1,b=1",
            "--tensor-model-parallel-size 8|--sequence-parallel|--context-parallel-size 2|\
             --pipeline-model-parallel-size 8|--use-distributed-optimizer|--micro-batch-size 1|\
             --num-layers 126|--hidden-size 16384|--ffn-hidden-size 53248",
        ),
        (
            "gpt3-175b h100-sxm 128 2048 256 t=4,sp,p=8,v=6,zero=1,b=1,cut=even",
            "--tensor-model-parallel-size 4|--sequence-parallel|--pipeline-model-parallel-size 8|\
             --pipeline-model-parallel-layout 'Ett|(tt|)*46ttL'|--use-distributed-optimizer|\
             --num-layers 96|--hidden-size 12288|--num-attention-heads 96|\
             --position-embedding-type learned_absolute",
        ),
        (
            "megatron-22b a100-80g 8 2048 4 t=8,p=1,d=1,b=4,zero=0,recompute=full",
            "--tensor-model-parallel-size 8|--pipeline-model-parallel-size 1|\
             --recompute-granularity full|--recompute-method uniform|--recompute-num-layers 1|\
             --micro-batch-size 4|--global-batch-size 4",
        ),
        (
            "megatron-530b a100-80g 280 2048 280 t=8,sp,p=35,v=3,d=1,b=1,zero=0,recompute=selective,cut=even",
            "--tensor-model-parallel-size 8|--sequence-parallel|--pipeline-model-parallel-size 35|\
             --pipeline-model-parallel-layout 'Et|(t|)*103tL'|--recompute-granularity selective|\
             --recompute-modules core_attn|--num-layers 105|--hidden-size 20480",
        ),
        (
            "deepseek-v3 h800-sxm 2048 4096 15360 \
             t=1,c=1,p=16,e=64,x=1,zero=1,b=1,v=1,recompute=layernorm+mla_up_proj+moe_act",
            "--tensor-model-parallel-size 1|--pipeline-model-parallel-size 16|\
             --expert-model-parallel-size 64|--expert-tensor-parallel-size 1|--num-experts 256|\
             --moe-router-topk 8|--moe-ffn-hidden-size 2048|\
             --moe-shared-expert-intermediate-size 2048|--moe-layer-freq '([0]*3+[1]*58)'|\
             --moe-router-num-groups 8|--moe-router-group-topk 4|--multi-latent-attention|\
             --q-lora-rank 1536|--kv-lora-rank 512|--qk-head-dim 128|--qk-pos-emb-head-dim 64|\
             --v-head-dim 128|--use-distributed-optimizer|--recompute-granularity selective|\
             --recompute-modules layernorm moe_act mla_up_proj|--micro-batch-size 1",
        ),
        (
            "deepseek-v3 h100-sxm 1024 4096 8192 \
             t=2,sp,c=1,p=8,v=4,e=64,x=1,zero=1,b=1,recompute=mla_up_proj+mlp",
            "--tensor-model-parallel-size 2|--sequence-parallel|--pipeline-model-parallel-size 8|\
             --expert-model-parallel-size 64|--expert-tensor-parallel-size 1|\
             --recompute-modules mlp mla_up_proj|--use-distributed-optimizer",
        ),
        (
            "deepseek-v3-mtp h100-sxm 1024 4096 8192 \
             t=2,sp,c=1,p=8,v=4,e=64,x=1,zero=1,b=1,recompute=mla_up_proj+mlp",
            "--mtp-num-layers 1|--tensor-model-parallel-size 2|--sequence-parallel|\
             --pipeline-model-parallel-size 8|--expert-model-parallel-size 64|\
             --expert-tensor-parallel-size 1|--moe-grouped-gemm|--moe-token-dispatcher-type alltoall|\
             --recompute-modules mlp mla_up_proj|--use-distributed-optimizer",
        ),
        (
            "megatron-1t a100-80g 512 2048 512 t=8,no-sp,p=64,v=1,d=1,b=1,zero=0,recompute=full,cut=even",
            "--tensor-model-parallel-size 8|--pipeline-model-parallel-size 64|\
             --pipeline-model-parallel-layout 'Ett|(tt|)*62ttL'|--recompute-granularity full",
        ),
    ] {
        let (text, plan) = published(line);
        for flag in megatron::listed(flags) {
            assert!(text.contains(&format!("  {flag}")), "{line}: no {flag} in\n{text}");
        }
        let launched = Launched { plan, text };
        megatron::judge_script(&launched).unwrap();
    }
}
