//! The built-in models as training graphs, against published counts and closed forms.

use phaze::graph::Dag;
use phaze::input;
use phaze::model::Attention;
use phaze::model::Model;
use phaze::model::Reach;
use phaze::model::op::CollectiveKind;
use phaze::model::op::Op;
use phaze::model::op::Work;
use phaze::parallel;
use phaze::parallel::Setting;
use phaze::parallel::Share;
use phaze::units::Bytes;
use phaze::units::Flops;

fn setting(model: &Model) -> Setting {
    Setting {
        micro_batch: 1,
        sequence: model.spec.max_sequence,
        tensor_parallel: 1,
        sequence_parallel: false,
        attention: Attention::Stored,
        element: Bytes(2),
        ..Setting::ALONE
    }
}

fn share(model: &Model, setting: Setting) -> Share {
    parallel::shard(model, setting).unwrap()
}

fn flops(pass: &Dag<Op>) -> Flops {
    pass.nodes().iter().map(Op::flops).sum()
}

/// Forward and backward operations of the whole model, repetitions left out.
fn training_flops(share: &Share) -> u128 {
    let layers = share.sequence.iter().map(|&kind| &share.kinds[kind]);
    layers.map(|l| flops(&l.forward).0 + flops(&l.backward).0 - l.repeated.0).sum()
}

#[test]
fn every_built_in_model_has_exactly_its_published_parameters() {
    let published: [(&str, u64); 11] = [
        ("bert-large", 335_141_888),
        ("gpt2-xl", 1_557_611_200),
        ("opt-350m", 331_196_416),
        ("llama2-7b", 6_738_415_616),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("llama3-405b", 405_853_388_800),
        ("mistral-7b", 7_241_732_096),
        ("qwen2-7b", 7_615_616_512),
        ("gpt3-175b", 174_615_846_912),
    ];
    for (name, parameters) in published {
        assert_eq!(input::model(name).unwrap().parameters(), parameters, "{name}");
    }
}

#[test]
fn gpt_models_have_the_parameters_of_the_closed_form() {
    // (layers, hidden, padded vocabulary, positions)
    let shapes: [(&str, [u64; 4]); 5] = [
        ("megatron-gpt2-2.5b", [54, 1920, 50_304, 1024]),
        ("megatron-gpt2-8.3b", [72, 3072, 50_304, 1024]),
        ("megatron-22b", [48, 6144, 51_200, 2048]),
        ("megatron-530b", [105, 20_480, 51_200, 2048]),
        ("megatron-1t", [128, 25_600, 51_200, 2048]),
    ];
    for (name, [l, h, v, s]) in shapes {
        let expected = l * (12 * h * h + 13 * h) + (v + s) * h + 2 * h;
        assert_eq!(input::model(name).unwrap().parameters(), expected, "{name}");
    }
}

#[test]
fn bert_counts_its_masked_token_head_apart() {
    let (h, v) = (1024, 30_522);
    let head = h * h + h + 2 * h + v;
    assert_eq!(input::model("bert-large").unwrap().training_head_parameters(), head);
    // Megatron's form: one more norm after the last layer instead of after the embedding, and a
    // padded vocabulary.
    let megatron = input::model("megatron-bert").unwrap();
    assert_eq!(megatron.parameters(), 335_141_888 + (30_592 - v) * h);
    assert_eq!(megatron.training_head_parameters(), head + 30_592 - v);
}

#[test]
fn a_gpt_layer_keeps_what_the_published_accounting_says() {
    for (name, width) in [
        ("megatron-22b", 8),
        ("gpt3-175b", 8),
        ("gpt3-175b", 4),
        ("megatron-530b", 8),
        ("megatron-1t", 8),
        ("megatron-gpt2-8.3b", 2),
    ] {
        let model = input::model(name).unwrap();
        for micro_batch in [1, 2, 4] {
            let base = Setting { micro_batch, ..setting(&model) };
            let (s, b, t) = (base.sequence, micro_batch, width);
            let (h, a) = (model.spec.hidden, model.spec.heads);
            let (sbh, scores) = (s * b * h, 5 * a * s * s * b);
            let kept = |setting| share(&model, setting).kinds[1].kept.0;
            let wide = Setting { tensor_parallel: t, ..base };
            let scattered = Setting { sequence_parallel: true, ..wide };
            assert_eq!(kept(base), 34 * sbh + scores, "{name}");
            assert_eq!(kept(wide), 10 * sbh + 24 * sbh / t + scores / t, "{name}");
            assert_eq!(kept(scattered), (34 * sbh + scores) / t, "{name}");
            let again = |setting| Setting { attention: Attention::Recomputed, ..setting };
            assert_eq!(kept(again(base)), 34 * sbh, "{name}");
            assert_eq!(kept(again(wide)), 10 * sbh + 24 * sbh / t, "{name}");
            assert_eq!(kept(again(scattered)), 34 * sbh / t, "{name}");
        }
    }
}

#[test]
fn training_operations_of_gpt_models_equal_the_closed_form() {
    for name in ["gpt2-xl", "megatron-gpt2-8.3b", "gpt3-175b", "megatron-1t"] {
        let model = input::model(name).unwrap();
        let spec = &model.spec;
        let padded = u128::from(spec.padded_vocabulary(1));
        let [s, l, h] = [spec.max_sequence, spec.layers, spec.hidden].map(u128::from);
        for attention in [Attention::Stored, Attention::Recomputed] {
            let share = share(&model, Setting { attention, ..setting(&model) });
            let found = training_flops(&share);
            // 72·s·l·h²·(1 + s/(6h) + V/(12·l·h)), multiplied out.
            assert_eq!(found, 72 * s * l * h * h + 12 * s * s * l * h + 6 * s * h * padded);
            // 96·s·l·h²·(1 + s/(6h) + V/(16·l·h)), multiplied out.
            let recomputed = found + flops(&share.kinds[1].forward).0 * l;
            assert_eq!(recomputed, 96 * s * l * h * h + 16 * s * s * l * h + 6 * s * h * padded);
            let repeated = if attention == Attention::Stored { 0 } else { 2 * s * s * h };
            assert_eq!(share.kinds[1].repeated.0, repeated, "{name}: the scores, once more");
        }
    }
}

#[test]
fn the_devices_of_a_layer_exchange_what_megatron_exchanges() {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    let model = input::model("gpt3-175b").unwrap();
    let exchanged = |sequence_parallel| {
        let wide = Setting { tensor_parallel: 8, sequence_parallel, ..setting(&model) };
        let share = share(&model, wide);
        let passes = share.kinds.iter().flat_map(|l| [&l.forward, &l.backward]);
        passes.map(collectives).collect::<Vec<_>>()
    };
    let large = 2048 * 12_288 * 2;
    let small = 2048 * 4;
    let all = |kind, n| vec![(kind, large); n];
    let plain = exchanged(false);
    assert_eq!(plain[0], all(AllReduce, 1), "embedding forward");
    assert_eq!(plain[1], [], "embedding backward");
    assert_eq!(plain[2], all(AllReduce, 2), "transformer forward");
    assert_eq!(plain[3], all(AllReduce, 2), "transformer backward");
    assert_eq!(plain[4], [(AllReduce, small); 3], "head forward");
    assert_eq!(plain[5], all(AllReduce, 1), "head backward");
    let scattered = exchanged(true);
    assert_eq!(scattered[0], all(ReduceScatter, 1));
    assert_eq!(scattered[1], all(AllGather, 1));
    assert_eq!(scattered[2], [all(AllGather, 2), all(ReduceScatter, 2)].concat());
    // Two gather gradients, two gather the sharded inputs once more.
    assert_eq!(scattered[3], [all(AllGather, 4), all(ReduceScatter, 2)].concat());
    let small_ones = vec![(AllReduce, small); 3];
    assert_eq!(scattered[4], [small_ones, all(AllGather, 1)].concat());
    assert_eq!(scattered[5], [all(AllGather, 1), all(ReduceScatter, 1)].concat());
}

fn collectives(pass: &Dag<Op>) -> Vec<(CollectiveKind, u64)> {
    let mut found: Vec<_> = pass
        .nodes()
        .iter()
        .filter_map(|op| match &op.work {
            Work::Collective(collective) => Some((collective.kind, collective.size.0)),
            _ => None,
        })
        .collect();
    found.sort();
    found
}

/// Multiply-accumulates per token in the weights of one layer, and in the head, written out by hand
/// from each family's published architecture.
#[test]
fn operations_of_every_family_equal_its_closed_form() {
    let configs = [
        // (configuration, weights of a layer's matmuls, weights of the head's matmuls)
        ("bert-large", 12 * 1024 * 1024, 1024 * 1024 + 1024 * 30_522),
        ("megatron-bert", 12 * 1024 * 1024, 1024 * 1024 + 1024 * 30_592),
        ("gpt2-xl", 12 * 1600 * 1600, 1600 * 50_257),
        ("opt-350m", 12 * 1024 * 1024, 1024 * 512 + 512 * 50_272),
        ("llama2-7b", 4 * 4096 * 4096 + 3 * 4096 * 11_008, 4096 * 32_000),
        // Eight of 64 heads have keys and values.
        ("llama2-70b", (64 + 8 + 8 + 64) * 128 * 8192 + 3 * 8192 * 28_672, 8192 * 32_000),
        ("mistral-7b", (32 + 8 + 8 + 32) * 128 * 4096 + 3 * 4096 * 14_336, 4096 * 32_000),
        ("phi-4", (40 + 10 + 10 + 40) * 128 * 5120 + 3 * 5120 * 17_920, 5120 * 100_352),
        ("gemma3-27b", (32 + 16 + 16 + 32) * 128 * 5376 + 3 * 5376 * 21_504, 5376 * 262_208),
        ("nemotron-340b", (96 + 8 + 8 + 96) * 192 * 18_432 + 2 * 18_432 * 73_728, 18_432 * 256_000),
        // Two of eight experts, and a router.
        (
            "mixtral-8x7b",
            (32 + 8 + 8 + 32) * 128 * 4096 + 4096 * 8 + 2 * 3 * 4096 * 14_336,
            4096 * 32_000,
        ),
        ("qwen2-7b", (28 + 4 + 4 + 28) * 128 * 3584 + 3 * 3584 * 18_944, 3584 * 152_064),
    ];
    for (name, layer, head) in configs {
        let model = input::model(name).unwrap();
        check_closed_form(&model, layer, head);
    }
    let neox = r#"{"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
        "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432,
        "max_position_embeddings": 2048, "hidden_act": "gelu_fast"}"#;
    let neox = input::hf_config::read("neox", neox).unwrap();
    check_closed_form(&neox, 12 * 6144 * 6144, 6144 * 50_432);
    // Heads of 128 where an even part of the hidden size would be 64.
    let qwen3 = r#"{"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960,
        "hidden_act": "silu"}"#;
    let qwen3 = input::hf_config::read("qwen3", qwen3).unwrap();
    check_closed_form(&qwen3, (16 + 8 + 8 + 16) * 128 * 1024 + 3 * 1024 * 3072, 1024 * 151_936);
}

#[test]
fn operations_of_latent_attention_and_experts_equal_their_closed_form() {
    let model = input::model("deepseek-v3").unwrap();
    let [h, a, q, kv, s] = [7168_u128, 128, 1536, 512, 4096];
    let latent = h * q + q * a * 192 + h * (kv + 64) + kv * a * 256 + a * 128 * h;
    let dense = latent + 3 * h * 18_432;
    // Eight experts and the shared one, and a router over 256.
    let mixture = latent + 9 * 3 * h * 2048 + h * 256;
    let weights = 3 * dense + 58 * mixture + h * 129_280;
    let attention = 61 * s * s * a * (192 + 128);
    let share = share(&model, Setting { sequence: 4096, ..setting(&model) });
    assert_eq!(training_flops(&share), 3 * 2 * (s * weights + attention));
    let kept: Vec<u64> = share.kinds.iter().map(|kind| kind.parameters).collect();
    assert_eq!(kept[2] - kept[1], 11_507_286_272 - (187_107_328 + 2 * 7168 + 3 * 7168 * 18_432));
}

fn check_closed_form(model: &Model, layer: u128, head: u128) {
    let spec = &model.spec;
    let [s, l, a, d] = [spec.max_sequence, spec.layers, spec.heads, spec.head].map(u128::from);
    // A projected embedding has one matmul more, before the first layer.
    let projected = if spec.embedding == spec.hidden { 0 } else { spec.embedding * spec.hidden };
    for (attention, micro_batch) in [(Attention::Stored, 1), (Attention::Recomputed, 2)] {
        let share = share(model, Setting { attention, micro_batch, ..setting(model) });
        let tokens = s * u128::from(micro_batch);
        let weights = l * layer + head + u128::from(projected);
        // Stored attention masks what is beyond a window, recomputed attention leaves it out.
        let met = |(layers, reach): (u64, Reach)| match attention {
            Attention::Stored => u128::from(layers) * s,
            Attention::Recomputed => {
                u128::from(layers) * u128::from(reach.tokens().unwrap_or(u64::MAX)).min(s)
            }
        };
        let keys: u128 = spec.reaches().map(met).sum();
        let forward = 2 * tokens * weights + 4 * tokens * keys * a * d;
        assert_eq!(training_flops(&share), 3 * forward, "{}", spec.name);
        let found: u128 = share.sequence.iter().map(|&k| flops(&share.kinds[k].forward).0).sum();
        assert_eq!(found, forward, "{}", spec.name);
    }
}
