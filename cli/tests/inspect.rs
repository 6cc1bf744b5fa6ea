//! `phaze models` and `phaze inspect` as their users run them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;

fn phaze(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phaze")).args(args).output().unwrap()
}

fn printed(args: &[&str]) -> String {
    let output = phaze(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn inspected(args: &[&str]) -> Value {
    serde_json::from_str(&printed(&[&["inspect"], args, &["--json"]].concat())).unwrap()
}

/// Compares with `tests/golden/<name>`; `UPDATE_GOLDEN=1` accepts what was found.
fn check_golden(name: &str, found: &str) {
    let path = Path::new("../tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all("../tests/golden").unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} differs; UPDATE_GOLDEN=1 accepts:\n{found}", path.display());
}

#[test]
fn reports_are_what_they_were() {
    check_golden("models.txt", &printed(&["models"]));
    let gpt3 = ["inspect", "gpt3-175b", "--tensor-parallel", "8", "--micro-batch", "1"];
    check_golden("inspect-gpt3-175b-t8.txt", &printed(&gpt3));
    let llama = ["inspect", "llama2-70b", "--tensor-parallel", "16", "--sequence-parallel"];
    check_golden("inspect-llama2-70b-t16.txt", &printed(&llama));
    check_golden("inspect-gpt2-xl.dot", &printed(&["inspect", "gpt2-xl", "--dot", "layer"]));
}

#[test]
fn every_report_fits_a_hundred_columns() {
    let names = printed(&["models", "--json"]);
    let models: Value = serde_json::from_str(&names).unwrap();
    let mut reports = vec![printed(&["models"])];
    for model in models.as_array().unwrap() {
        reports.push(printed(&["inspect", model["name"].as_str().unwrap()]));
    }
    for line in reports.iter().flat_map(|report| report.lines()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn every_file_of_inputs_models_is_a_built_in_model_and_can_be_passed_as_a_path() {
    let listed: Value = serde_json::from_str(&printed(&["models", "--json"])).unwrap();
    let mut files: Vec<_> =
        fs::read_dir("../inputs/models").unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), listed.as_array().unwrap().len());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let mut by_path = inspected(&[file.to_str().unwrap()]);
        let by_name = inspected(&[name]);
        by_path["model"] = by_name["model"].clone();
        assert_eq!(by_path, by_name, "{name}");
    }
}

#[test]
fn json_holds_the_documented_keys() {
    let documented = fs::read_to_string("../docs/model.md").unwrap();
    let found = inspected(&["gpt3-175b", "--tensor-parallel", "8"]);
    let mut keys = Vec::new();
    collect_keys(&found, &mut keys);
    keys.sort();
    keys.dedup();
    for key in keys {
        assert!(
            documented.contains(&format!("`{key}`")),
            "../docs/model.md does not explain {key}"
        );
    }
}

fn collect_keys(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            keys.extend(fields.keys().cloned());
            fields.values().for_each(|field| collect_keys(field, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_keys(value, keys)),
        _ => {}
    }
}

#[test]
fn json_figures_belong_together() {
    let found = inspected(&["megatron-22b", "--tensor-parallel", "8", "--attention", "stored"]);
    let sum = |key: &str| -> u64 {
        let layers = found["layer_kinds"].as_array().unwrap().iter();
        layers.map(|layer| layer[key].as_u64().unwrap() * layer["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(found["parameters"], 22_074_273_792_u64);
    assert_eq!(found["device"]["parameters"], sum("parameters"));
    assert_eq!(found["device"]["activation_bytes"], sum("activation_bytes"));
    let training = found["flops_training_per_sequence"].as_u64().unwrap();
    assert_eq!(found["flops_training_per_token"], training / 2048);
    assert_eq!(found["flops_attention_repeated_per_sequence"], 0);
    assert_eq!(found["gradient_bytes"], 4 * 22_074_273_792_u64);
}

#[test]
fn published_accounting_is_stored_attention_and_plain_descent() {
    let found = inspected(&["gpt2-xl", "--published"]);
    assert_eq!(found["setting"]["attention"], "stored");
    assert_eq!(found["setting"]["optimizer"], "sgd");
    let found = inspected(&["gpt2-xl", "--published", "--attention", "recomputed"]);
    assert_eq!(found["setting"]["attention"], "recomputed");
}

#[test]
fn elements_of_four_bytes_double_what_is_kept_but_not_masks() {
    let kept = |bytes: &str| {
        let found = inspected(&["gpt2-xl", "--element-bytes", bytes, "--attention", "stored"]);
        found["layer_kinds"][1]["activation_bytes"].as_u64().unwrap()
    };
    let (s, h, a) = (1024, 1600, 25);
    assert_eq!(kept("2"), 34 * s * h + 5 * a * s * s);
    assert_eq!(kept("4"), (2 * 32 + 2) * s * h + (2 * 4 + 1) * a * s * s);
}

#[test]
fn bad_requests_are_refused_with_status_2() {
    let text = fs::read_to_string("../inputs/models/gpt2-xl.json").unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let broken = folder.join("broken.json");
    fs::write(&broken, text.replace("1600", "1601")).unwrap();
    let broken = broken.to_str().unwrap();
    let large = folder.join("large.json");
    fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["gpt2xl"], "did you mean `gpt2-xl`?"),
        (&["missing.json"], "missing.json: cannot be read"),
        (&["../inputs/models"], "inputs/models: cannot be read: it is a directory; name a file"),
        (&[large.to_str().unwrap()], "is 104857600 bytes long; at most 1048576 are read"),
        (&[broken], "`n_head = 25` does not divide `n_embd = 1601`; try 1, or give `head_dim`"),
        (&["gpt2-xl", "--tensor-parallel", "2"], "legal widths are 1, 5, 25"),
        (&["gpt2-xl", "--seq", "1025"], "use at most 1024"),
        (&["gpt2-xl", "--seq", "0"], "0 is not in 1..=16777216"),
        (&["gpt2-xl", "--dot", "layers"], "unknown layer `layers` (did you mean `layer`?)"),
        (&["llama2-7b", "--seq", "16777216", "--micro-batch", "4096"], "too large to count"),
    ];
    for (args, message) in cases {
        let output = phaze(&[&["inspect"], args].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}: nothing is half-printed");
        assert!(error.contains(message), "{args:?}: {error}");
    }
}

#[test]
fn a_configuration_can_come_from_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_phaze"))
        .args(["inspect", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = fs::read("../inputs/models/mistral-7b.json").unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["parameters"], 7_241_732_096_u64);
    assert_eq!(found["sliding_window_tokens"], 4096);
}

#[test]
fn every_built_in_model_that_is_exported_and_read_again_is_inspected_alike() {
    let listed: Value = serde_json::from_str(&printed(&["models", "--json"])).unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exported.json");
    let file = file.to_str().unwrap();
    for model in listed.as_array().unwrap() {
        let name = model["name"].as_str().unwrap();
        let exported = printed(&["inspect", name, "--export", file]);
        assert!(exported == printed(&["inspect", file]), "{name}");
        assert!(printed(&["inspect", name, "--json"]) == printed(&["inspect", file, "--json"]));
    }
}

#[test]
fn the_layer_of_the_token_after_the_next_is_an_option() {
    let [mut asked, mut built_in] =
        [inspected(&["deepseek-v3", "--mtp", "1"]), inspected(&["deepseek-v3-mtp"])];
    for found in [&mut asked, &mut built_in] {
        found["model"].take();
        assert_eq!(found["left_out"], Value::Null);
    }
    assert_eq!(asked, built_in);
    let without = [
        printed(&["inspect", "deepseek-v3-mtp", "--mtp", "0"]),
        printed(&["inspect", "deepseek-v3"]),
    ];
    let [taken_away, plain] = without.map(|text| text.replace("deepseek-v3-mtp", "deepseek-v3"));
    assert_eq!(taken_away, plain);
    let output = phaze(&["inspect", "gpt2-xl", "--mtp", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`--mtp = 1`"));
}

#[test]
fn the_worked_graphs_are_inspected_and_divided() {
    let mut seen = 0;
    for entry in fs::read_dir("../inputs/graphs").unwrap() {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        if path.ends_with("schema.json") {
            continue;
        }
        let whole = inspected(&[path]);
        let half = inspected(&[path, "--tensor-parallel", "2", "--sequence-parallel"]);
        assert_eq!(whole["parameters"], half["parameters"], "{path}");
        let of_device = |found: &Value| found["device"]["parameters"].as_u64().unwrap();
        assert!(of_device(&half) < of_device(&whole), "{path}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn a_broken_graph_is_refused_with_its_place() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("broken-graph.json");
    let text = fs::read_to_string("../inputs/graphs/adapter.json").unwrap();
    let mut graph: Value = serde_json::from_str(&text).unwrap();
    graph["kinds"][1]["graph"]["steps"][2]["reads"] = Value::from(vec![7000]);
    fs::write(&file, graph.to_string()).unwrap();
    let output = phaze(&["inspect", file.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("`kinds[1].graph.steps[2].reads` are none or not there yet"), "{error}");
}
