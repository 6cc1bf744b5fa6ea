//! Configurations of published models, each with its published number of parameters.

use std::collections::BTreeSet;
use std::fs;

use phaze::input::hf_config;
use phaze::model::Model;
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
fn mutated_configurations_of_every_family_never_panic() {
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
        let (mut n_read, mut n_refused) = (0, 0);
        for _ in 0..each {
            let mut config = line["config"].clone();
            for _ in 0..=noise.below(3) {
                mutate(&mut config, &mut noise);
            }
            match hf_config::read("config.json", &config.to_string()) {
                Ok(model) => {
                    n_read += 1;
                    divide(&model);
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
    assert!(seen.len() >= 34, "{seen:?}");
}

fn divide(model: &Model) {
    assert!(model.parameters() >= model.active_parameters());
    for tensor_parallel in [1, 2] {
        let sequence = model.spec.max_sequence.min(64);
        let sequence_parallel = tensor_parallel > 1;
        let setting = Setting { sequence, tensor_parallel, sequence_parallel, ..Setting::ALONE };
        // Divided or refused.
        drop(shard(model, setting));
    }
}
