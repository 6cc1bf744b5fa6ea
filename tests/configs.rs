//! Configurations of published models, each with its published number of parameters.

use std::collections::BTreeSet;
use std::fs;

use phaze::input::Conventions;
use phaze::input::hf_config;
use phaze::input::place;
use phaze::input::place::Basics;
use phaze::model::Model;
use phaze::parallel::ContextKind;
use phaze::parallel::Setting;
use phaze::parallel::shard;
use serde_json::Value;
use serde_json::json;

/// The lines of `tests/golden/configs.jsonl`: name, configuration, count and its source.
fn lines() -> Vec<Value> {
    let text = fs::read_to_string("tests/golden/configs.jsonl").unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_published_configuration_has_its_published_parameters() {
    let lines = lines();
    assert!(lines.len() >= 60);
    for line in lines {
        let name = line["name"].as_str().unwrap();
        let model = hf_config::read(name, &line["config"].to_string())
            .unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(model.parameters(), line["parameters"].as_u64().unwrap(), "{name}");
        if let Some(active) = line["active"].as_u64() {
            assert_eq!(model.active_parameters(), active, "{name}");
        }
        assert!(line["source"].as_str().is_some_and(|source| !source.is_empty()));
    }
}

/// The configuration of that name among the lines.
fn published(name: &str) -> Model {
    let line = lines().into_iter().find(|line| line["name"] == name).unwrap();
    hf_config::read(name, &line["config"].to_string()).unwrap()
}

/// Operations of the forward pass of one sequence on one device.
fn forward_flops(model: &Model, sequence: u64) -> u128 {
    let share = shard(model, Setting { sequence, ..Setting::ALONE }).unwrap();
    let layers = share.sequence.iter().map(|&kind| &share.kinds[kind]);
    layers.flat_map(|layer| layer.forward.nodes()).map(|op| op.flops().0).sum()
}

#[test]
fn a_layer_that_tells_the_token_after_the_next_is_counted_apart() {
    let plain = phaze::input::model("deepseek-v3").unwrap();
    let more = phaze::input::model("deepseek-v3-mtp").unwrap();
    for (model, apart) in [(&plain, 0), (&more, 11_610_068_224)] {
        assert_eq!(model.parameters(), 671_026_419_200);
        assert_eq!(model.active_parameters(), 37_552_297_472);
        assert_eq!(model.training_head_parameters(), apart);
    }
    assert_eq!(more.sequence.len(), plain.sequence.len() + 1);
    // It costs a layer as the last, a join of both inputs, and the head once more.
    let share = |model: &Model| shard(model, Setting { sequence: 64, ..Setting::ALONE }).unwrap();
    let (one, two) = (share(&plain), share(&more));
    let flops = |layer: &phaze::parallel::LayerShare| -> u128 {
        layer.forward.nodes().iter().map(|op| op.flops().0).sum()
    };
    let [.., last, head] = &one.kinds[..] else { panic!("there are layers") };
    let [.., next, both] = &two.kinds[..] else { panic!("there are layers") };
    assert_eq!(flops(next), flops(last) + 2 * 64 * 2 * 7168 * 7168);
    assert_eq!(flops(both), 2 * flops(head));
    let refused = json!({
        "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "vocab_size": 50257, "activation_function": "gelu_new", "mtp_num_layers": 1
    });
    let refused = hf_config::read("c", &refused.to_string()).unwrap_err().to_string();
    assert!(refused.contains("`mtp_num_layers = 1` asks for a layer"), "{refused}");
}

#[test]
fn an_encoder_with_a_decoder_does_what_closed_forms_say() {
    let t5 = published("t5-base");
    let (s, h, f, v): (u128, u128, u128, u128) = (128, 768, 3072, 32128);
    let (encoder, decoder) = (4 * h * h + 2 * h * f, 8 * h * h + 2 * h * f);
    let products = 2 * s * (12 * encoder + 12 * decoder + h * v);
    let pairs = 4 * s * s * h * (12 + 24);
    assert_eq!(forward_flops(&t5, 128), products + pairs);
    let largest = phaze::input::model("t5-11b").unwrap();
    assert_eq!(largest.parameters(), 11_307_321_344);
    // What a causal mask hides is half of the decoder's own attention alone.
    let causal = Setting { sequence: 128, masked: phaze::model::Masked::Skipped, ..Setting::ALONE };
    let (done, all) = shard(&t5, causal).unwrap().training_flops();
    assert_eq!((all.0 - done.0) * 2, 3 * 4 * s * s * h * 12);
}

#[test]
fn an_encoder_of_images_does_what_closed_forms_say() {
    let vit = published("vit-base-16");
    assert_eq!(vit.spec.max_sequence, 197);
    let (s, h, f): (u128, u128, u128) = (197, 768, 3072);
    let products = 2 * s * (12 * (4 * h * h + 2 * h * f) + 768 * h);
    let (pairs, head) = (12 * 4 * s * s * h, 2 * h * 1000);
    assert_eq!(forward_flops(&vit, 197), products + pairs + head);
    let context = Setting { sequence: 196, context: 2, ..Setting::ALONE };
    let refused = shard(&vit, context).unwrap_err().to_string();
    assert!(refused.contains("patches of an image"), "{refused}");
}

/// A stream of numbers that is the same on every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Changes one field: to something else, to what another field holds, or to nothing.
fn mutate(config: &mut Value, noise: &mut Noise) {
    let inner = if config.get("text_config").is_some() && noise.below(4) > 0 {
        &mut config["text_config"]
    } else {
        config
    };
    let Some(fields) = inner.as_object_mut().filter(|fields| !fields.is_empty()) else { return };
    let key =
        |fields: &serde_json::Map<String, Value>, at: usize| fields.keys().nth(at).unwrap().clone();
    let n = fields.len();
    let (target, other) = (key(fields, noise.below(n)), key(fields, noise.below(n)));
    let values = [
        json!(0),
        json!(1),
        json!(3),
        json!(64),
        json!(16_777_216),
        json!(u64::MAX),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!("gelu"),
        json!(true),
        json!([]),
        json!([1, "a", null]),
        json!({"alibi": false}),
        Value::Null,
    ];
    match noise.below(4) {
        0 => drop(fields.remove(&target)),
        1 => {
            let copied = fields[&other].clone();
            fields.insert(target, copied);
        }
        _ => drop(fields.insert(target, values[noise.below(values.len())].clone())),
    }
}

/// Refused by a field, or read, counted and divided.
#[test]
fn changed_configurations_of_every_family_are_refused_by_the_field_or_divided() {
    let each: u64 = match std::env::var("PROPTEST_CASES") {
        Ok(cases) => cases.parse().unwrap(),
        Err(_) => 500,
    };
    let mut noise = Noise(1);
    let mut seen = BTreeSet::new();
    for line in lines() {
        let family = line["config"]["model_type"].as_str().unwrap().to_owned();
        if !seen.insert(family.clone()) {
            continue;
        }
        let (mut n_read, mut n_refused) = (0_u64, 0_u64);
        for _ in 0..each {
            let mut config = line["config"].clone();
            for _ in 0..=noise.below(3) {
                mutate(&mut config, &mut noise);
            }
            match hf_config::read("config.json", &config.to_string()) {
                Ok(model) => {
                    n_read += 1;
                    divide(&model);
                    if n_read % each.div_ceil(N_PLACED) == 1 {
                        place(&config.to_string(), model.spec.max_sequence.min(64));
                    }
                }
                Err(refused) => {
                    n_refused += 1;
                    let refused = refused.to_string();
                    assert!(refused.contains('`') || refused.contains("2^58"), "{refused}");
                }
            }
        }
        assert!(n_read > 0 && n_refused > 0, "{family}: both are tried");
    }
    assert!(seen.len() >= 36, "{seen:?}");
}

/// About how many of each family are placed.
const N_PLACED: u64 = 2;

/// The best plan of a changed configuration on two devices, judged.
fn place(config: &str, sequence: u64) {
    let read = |_: &std::path::Path| Ok(config.to_owned());
    let basics = Basics {
        sequence: Some(sequence),
        global_batch: Some(2),
        ..Basics::new("config.json", "h100-sxm", 2)
    };
    let mut question = place::question(&basics, Conventions::of(false), &read).unwrap();
    question.space.context_parallel = vec![1, 2];
    question.space.micro_batches = vec![1];
    question.space.repeated.truncate(1);
    // Answered or refused.
    let Ok(ready) = place::ready(question, "question") else { return };
    if let Ok(Some(plan)) = place::solve(&ready) {
        place::judge(&plan, "plan").unwrap().unwrap_or_else(|lie| panic!("{lie}"));
    }
}

fn divide(model: &Model) {
    assert!(model.parameters() >= model.active_parameters());
    let sequence = model.spec.max_sequence.min(64);
    let kinds = ContextKind::ALL;
    for (tensor_parallel, context, expert, context_kind) in
        [(1, 1, 1, kinds[0]), (2, 1, 2, kinds[0]), (2, 2, 1, kinds[1]), (1, 4, 4, kinds[2])]
    {
        let sequence_parallel = tensor_parallel > 1;
        let degrees = Setting { tensor_parallel, sequence_parallel, context, ..Setting::ALONE };
        // Divided or refused.
        drop(shard(model, Setting { sequence, expert, context_kind, ..degrees }));
    }
}
