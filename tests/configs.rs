//! Configurations of published models, each with its published number of parameters.

use std::fs;

use phaze::input::hf_config;
use serde_json::Value;

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
