//! What one device holds and exchanges beside two independent public programs.
//!
//! The lines under `tests/golden` are outputs of Calculon (58 strategies of GPT models) and of
//! `SimuMax` (30 strategies of dense models and mixtures of experts), reduced to what is compared here: bytes, never
//! times.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;

use flate2::read::GzDecoder;
use phaze::graph::Dag;
use phaze::model::Attention;
use phaze::model::Axis;
use phaze::model::Experts;
use phaze::model::Latent;
use phaze::model::Model;
use phaze::model::Module;
use phaze::model::Modules;
use phaze::model::RouterBias;
use phaze::model::Variant;
use phaze::model::families;
use phaze::model::op::Op;
use phaze::model::op::Work;
use phaze::model::spec::Activation;
use phaze::model::spec::Biases;
use phaze::model::spec::Branches;
use phaze::model::spec::Capped;
use phaze::model::spec::Dropout;
use phaze::model::spec::Family;
use phaze::model::spec::Norm;
use phaze::model::spec::NormPlace;
use phaze::model::spec::QkNorm;
use phaze::model::spec::Spec;
use phaze::parallel::LayerMode;
use phaze::parallel::LayerShare;
use phaze::parallel::Parameters;
use phaze::parallel::Repeats;
use phaze::parallel::Setting;
use phaze::parallel::modes;
use phaze::parallel::shard;
use phaze::parallel::zero::ParameterBytes;
use phaze::parallel::zero::Sharding;
use phaze::parallel::zero::Zero;
use phaze::units::Bytes;
use serde_json::Value;

fn lines(name: &str) -> Vec<Value> {
    let mut text = String::new();
    let file = File::open(format!("tests/golden/{name}.jsonl.gz")).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// A model of these sizes without biases, as both programs count them.
fn spec(family: Family, [hidden, heads, kv_heads, head, mlp, layers]: [u64; 6]) -> Spec {
    let gpt = family == Family::Gpt;
    Spec {
        name: "golden".into(),
        family,
        layers,
        hidden,
        heads,
        kv_heads,
        head,
        mlp,
        experts: None,
        latent: None,
        sinks: false,
        vocabulary: 128,
        vocabulary_multiple: Some(128),
        embedding: hidden,
        max_sequence: 1 << 20,
        positions: gpt.then_some(1 << 20),
        types: None,
        rotary: head,
        variants: Vec::new(),
        activation: if gpt { Activation::Gelu } else { Activation::Silu },
        biases: Biases::default(),
        dropout: Dropout { embedding: gpt, attention: gpt, hidden: gpt, activation: false },
        norm_place: NormPlace::Before,
        final_norm: true,
        norm: if gpt { Norm::Layer } else { Norm::Rms },
        qk_norm: QkNorm::None,
        branches: Branches::InTurn,
        gated: !gpt,
        embedding_scaled: false,
        embedding_norm: false,
        head_bias: false,
        capped: Capped::default(),
        own: Vec::new(),
        own_cut: Vec::new(),
        decoder_layers: 0,
        buckets: 0,
        patch: 0,
        next_tokens: 0,
        left_out: None,
        tied: false,
    }
}

/// A line of Calculon's.
struct Strategy {
    case: u64,
    /// Tokens of a micro-batch times the hidden size.
    sbh: u64,
    width: u64,
    scattered: bool,
    recompute: String,
    layers: u64,
    pipeline: u64,
    data: u64,
    sharded: bool,
    gathers_again: bool,
    stats: Value,
    model: Model,
    setting: Setting,
}

impl Strategy {
    fn read(line: &Value) -> Self {
        let (sizes, how) = (&line["application"], &line["execution"]);
        let of = |key| number(sizes, key);
        let (hidden, heads, sequence) = (of("hidden"), of("attn_heads"), of("seq_size"));
        let spec = spec(
            Family::Gpt,
            [hidden, heads, heads, of("attn_size"), of("feedforward"), of("num_blocks")],
        );
        let (width, micro_batch) = (number(how, "tensor_par"), number(how, "microbatch_size"));
        let scattered = how["tensor_par_comm_type"] == "rs_ag";
        Self {
            case: number(line, "case"),
            sbh: sequence * micro_batch * hidden,
            width,
            scattered,
            recompute: how["activation_recompute"].as_str().unwrap().to_owned(),
            layers: of("num_blocks").div_ceil(number(how, "pipeline_par")),
            pipeline: number(how, "pipeline_par"),
            data: number(how, "data_par"),
            sharded: how["optimizer_sharding"] == true,
            gathers_again: how["seq_par_ag_redo"] == true,
            stats: line["stats"].clone(),
            model: families::build(&spec),
            setting: Setting {
                micro_batch,
                sequence,
                tensor_parallel: width,
                sequence_parallel: scattered,
                attention: Attention::Stored,
                ..Setting::ALONE
            },
        }
    }

    fn layer(&self) -> LayerShare {
        shard(&self.model, self.setting).unwrap().kinds.swap_remove(1)
    }

    fn mode(&self) -> LayerMode {
        let repeats = match &self.recompute[..] {
            "none" => Repeats::Nothing,
            "attn_only" => Repeats::Modules(Modules::NONE.with(Module::CoreAttention)),
            "full" => Repeats::Layer,
            other => panic!("{other}"),
        };
        modes(&self.model, self.setting, &[repeats]).unwrap().remove(0).kinds.remove(1)
    }

    fn stat(&self, key: &str) -> u64 {
        number(&self.stats, key)
    }
}

fn strategies() -> Vec<Strategy> {
    let all: Vec<Strategy> = lines("calculon").iter().map(Strategy::read).collect();
    assert_eq!(all.len(), 58);
    all
}

/// What is exchanged along the tensor axis.
fn exchanged(pass: &Dag<Op>) -> u64 {
    let collectives = pass.nodes().iter().filter_map(|op| match &op.work {
        Work::Collective(collective) if collective.axis == Axis::Tensor => Some(collective.size.0),
        _ => None,
    });
    collectives.sum()
}

#[test]
fn layers_keep_what_calculon_says() {
    for line in strategies() {
        let (kept, case) = (line.mode().kept.0, line.case);
        let stored = line.stat("block_act_storage_space");
        match (&line.recompute[..], line.scattered) {
            // It leaves one tensor more out, which attention's output projection needs.
            ("attn_only", false) => assert_eq!(kept, stored + 2 * line.sbh, "case {case}"),
            ("none" | "attn_only", _) => assert_eq!(kept, stored, "case {case}"),
            // It keeps the whole input on every device, where we keep the part that crosses.
            ("full", scattered) => {
                let parts = if scattered { line.width } else { 1 };
                assert_eq!((stored, line.stat("block_act_checkpoint_size")), (0, kept * parts));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn attention_repeated_alone_keeps_the_published_closed_forms() {
    let lines = strategies().into_iter().filter(|line| line.recompute == "attn_only");
    let mut seen = 0;
    for line in lines {
        let (sbh, t) = (line.sbh, line.width);
        let expected = if line.scattered { 34 * sbh / t } else { 10 * sbh + 24 * sbh / t };
        assert_eq!(line.mode().kept.0, expected, "case {}", line.case);
        seen += 1;
    }
    assert_eq!(seen, 34);
}

#[test]
fn devices_that_share_a_layer_exchange_what_calculon_says() {
    for line in strategies() {
        let (mode, case) = (line.mode(), line.case);
        assert_eq!(exchanged(&mode.forward), line.stat("baseblock_fw_tp_size"), "case {case}");
        // The gathered inputs, once more: it books them with what recompute repeats, or not at all.
        let gathered = if line.scattered { 4 * line.sbh } else { 0 };
        let backward = line.stat("baseblock_bw_tp_size") + gathered;
        assert_eq!(exchanged(&mode.backward), backward, "case {case}");
        let again = mode.again.as_ref().map_or(0, exchanged);
        let booked = if line.gathers_again { gathered } else { 0 };
        assert_eq!(again + booked, line.stat("baseblock_recomm_size"), "case {case}");
    }
}

#[test]
fn layers_send_to_the_next_stage_what_calculon_says() {
    for line in strategies().iter().filter(|line| line.pipeline > 1) {
        let layer = line.layer();
        assert_eq!(layer.input.0, line.stat("block_fw_pp_size"), "case {}", line.case);
        assert_eq!(layer.output.0, line.stat("block_bw_pp_size"), "case {}", line.case);
    }
}

#[test]
fn parameters_gradients_and_state_are_those_of_calculon() {
    let [two, twelve] = [2, 12].map(Bytes);
    let bytes = ParameterBytes { weight: two, gradient: two, reduced: two, state: twelve };
    for line in strategies() {
        let case = line.case;
        let per_layer = line.layer().parameters;
        let layer = 2 * per_layer;
        assert_eq!(layer, line.stat("block_weight_space"), "case {case}");
        let zero = if line.sharded { Zero::Gradients } else { Zero::Nothing };
        let sharding = Sharding::new(zero, line.data);
        let held = sharding.held(line.layers * per_layer, bytes);
        assert_eq!(held.weights.0, line.stat("weight_space"), "case {case}");
        assert_eq!(held.state.0, line.stat("optimizer_space"), "case {case}");
        // Of the layer that runs it holds the whole gradient twice in place of a shard.
        let one = sharding.held(per_layer, bytes).gradients.0;
        let gradients = held.gradients.0 - one + 2 * layer;
        assert_eq!(gradients, line.stat("weight_grad_space"), "case {case}");
        let reduced = sharding.exchanges(per_layer, bytes);
        let reduced = reduced.first().map_or(0, |exchange| exchange.size.0);
        assert_eq!(reduced, line.stat("block_dp_size"), "case {case}");
    }
}

/// A model of `SimuMax`: without biases of routers, its vocabulary padded at every width.
fn simulated(line: &Value) -> Spec {
    let sizes = &line["model_config"];
    let of = |key| number(sizes, key);
    let some = |key: &str| sizes[key].as_u64();
    let layers = number(line, "layers");
    let (mlp, head) = (of("intermediate_size"), of("head_size"));
    let shape = [of("hidden_size"), of("head_num"), of("kv_head_num"), head, mlp, layers];
    let spec = Spec { vocabulary: of("vocab_size"), ..spec(Family::Decoder, shape) };
    let experts = some("expert_num").map(|count| Experts {
        count,
        chosen: of("topk"),
        mlp: some("moe_ffn_hidden_size").unwrap_or(mlp),
        shared: some("moe_shared_expert_intermediate_size"),
        shared_is_weighted: false,
        biases: false,
        router_bias: RouterBias::None,
        load_per_mille: 1000,
        groups: None,
    });
    let dense = some("dense_layers").unwrap_or(0);
    let variant = |layer| Variant { experts: layer >= dense, ..Variant::PLAIN };
    let latent = some("kv_lora_rank").map(|kv| Latent {
        query: some("q_lora_rank"),
        kv,
        value: of("v_head_dim"),
    });
    let rotary = some("qk_pos_emb_head_dim").unwrap_or(head);
    Spec {
        variants: (0..layers).map(variant).collect(),
        experts,
        latent,
        head: some("qk_head_dim").map_or(head, |unplaced| unplaced + rotary),
        rotary,
        mlp: if experts.is_some() && dense == 0 { 0 } else { mlp },
        ..spec
    }
}

/// The layers of a stage of `SimuMax`, by their places, embedding and head among them.
fn layers_of(line: &Value, stage: &str) -> Range<usize> {
    let how = |key| number(&line["strategy"], key);
    let small = |n: u64| usize::try_from(n).unwrap();
    let (layers, stages) = (small(number(line, "layers")), small(how("pp_size")));
    let given = |key: &str| line["strategy"][key].as_u64().map(small);
    let first = given("num_layers_in_first_pipeline_stage").unwrap_or(layers / stages);
    let last = given("num_layers_in_last_pipeline_stage").unwrap_or(layers / stages);
    match stage {
        "only_stage" => 0..layers + 2,
        "first_stage" => 0..1 + first,
        "last_stage" => 1 + layers - last..layers + 2,
        // Any inner stage: the second.
        _ => 1 + first..1 + first + (layers - first - last) / (stages - 2),
    }
}

#[test]
fn parameters_gradients_and_state_of_layers_and_experts_are_those_of_simumax() {
    let lines = lines("simumax");
    assert_eq!(lines.len(), 30);
    let bytes = ParameterBytes {
        weight: Bytes(2),
        gradient: Bytes(4),
        reduced: Bytes(4),
        state: Bytes(12),
    };
    let (mut n_stages, mut n_with_experts) = (0, 0);
    for line in &lines {
        let spec = simulated(line);
        let how = |key| number(&line["strategy"], key);
        let (width, stages, world) = (how("tp_size"), how("pp_size"), how("world_size"));
        let has_experts = spec.experts.is_some();
        let setting = Setting {
            sequence: how("seq_len"),
            tensor_parallel: width,
            sequence_parallel: width > 1,
            context: how("cp_size"),
            expert: if has_experts { how("ep_size") } else { 1 },
            expert_tensor: if has_experts { how("etp_size") } else { 1 },
            ..Setting::ALONE
        };
        let share = shard(&families::build(&spec), setting).unwrap();
        let zero = Zero::of_stage(usize::try_from(how("zero_state")).unwrap()).unwrap();
        // Replicas along the data and the context axis together, and those of experts.
        let dense = Sharding::new(zero, world / width / stages);
        let experts = Sharding::new(zero, world / stages / setting.expert_devices());
        for (stage, expected) in line["model_mem"].as_object().unwrap() {
            let kinds = share.sequence[layers_of(line, stage)].iter();
            let held: Parameters = kinds.map(|&kind| share.kinds[kind].by_replicas()).sum();
            let case = format!("case {}, {stage}", number(line, "case"));
            let mut total = 0;
            for (part, held) in [
                ("dense", dense.held(held.dense, bytes)),
                ("experts", experts.held(held.experts, bytes)),
            ] {
                let said = |key| number(&expected[part], key);
                assert_eq!(held.weights.0, said("weight_bytes"), "{case}, {part}");
                assert_eq!(held.gradients.0, said("grad_bytes"), "{case}, {part}");
                assert_eq!(held.state.0, said("state_bytes"), "{case}, {part}");
                total += held.total().0;
            }
            assert_eq!(total, number(expected, "model_mem"), "{case}");
            n_stages += 1;
            n_with_experts += usize::from(held.experts > 0);
        }
    }
    assert_eq!((n_stages, n_with_experts), (56, 37));
}
