//! `phaze place --profile` and `phaze check` as users meet them, and the golden instances.

mod command;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use command::phaze;
use flate2::read::GzDecoder;
use serde_json::Value;
use serde_json::json;

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("placement-{}-{name}", std::process::id()))
}

fn golden(name: &str) -> Vec<Value> {
    let path = format!("../tests/golden/placement/{name}.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

/// Places all instances with one call and compares each with its published optimum.
fn agrees_with_golden(name: &str) {
    let known = golden(name);
    let path = scratch(&format!("{name}.jsonl"));
    let text = lines(&known);
    std::fs::write(&path, text).unwrap();
    let file = path.to_str().unwrap();
    let output = phaze(&["place", "--profile", file, "--time-model", "published", "--json"], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), known.len());
    for (answer, known) in answers.iter().zip(&known) {
        match known["expected"]["time_per_batch"].as_f64() {
            None => assert_eq!(answer["feasible"], false, "{}", known["name"]),
            Some(expected) => {
                let found = answer["time_per_batch"].as_f64().unwrap();
                let apart = (found / expected - 1.0).abs();
                assert!(apart <= 1e-9, "{}: {found} for {expected}", known["name"]);
            }
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn small_golden_instances_are_equal() {
    agrees_with_golden("small");
}

#[test]
fn realistic_golden_instances_are_equal() {
    agrees_with_golden("realistic");
}

#[test]
fn each_width_alone_is_equal_too() {
    let known = golden("realistic");
    let each = known.iter().flat_map(|known| {
        let widths = known["expected"]["by_width"].as_object().unwrap();
        widths.iter().map(|(width, expected)| {
            let mut alone = known.clone();
            for part in ["nodes", "edges"] {
                let only = known["profile"][part][width].clone();
                alone["profile"][part] = json!({ width: only });
            }
            (alone, expected.as_f64())
        })
    });
    let (alone, expected): (Vec<Value>, Vec<Option<f64>>) = each.unzip();
    let path = scratch("widths.jsonl");
    let text = lines(&alone);
    std::fs::write(&path, text).unwrap();
    let args = ["place", "--profile", path.to_str().unwrap(), "--time-model", "published"];
    let answers = String::from_utf8(phaze(&args, "").stdout).unwrap();
    for (line, expected) in answers.lines().zip(&expected) {
        let answer: Value = serde_json::from_str(line).unwrap();
        let found = answer["time_per_batch"].as_f64();
        let apart = found.zip(*expected).map_or(0.0, |(f, e)| (f / e - 1.0).abs());
        assert!(found.is_some() == expected.is_some() && apart <= 1e-9, "{line} {expected:?}");
    }
    assert_eq!(answers.lines().count(), expected.len());
    std::fs::remove_file(path).unwrap();
}

/// Three layers, the middle one twice as slow.
fn small_profile() -> Value {
    let layer = |id: i64, time: f64| {
        json!({ "id": id, "parameterSize": 1.5, "activationSize": 2, "optimalLatencyFw": time,
                "optimalLatencyBw": 2.0 * time, "isTensorParallelized": true })
    };
    json!({
        "maxMemoryPerDevice": 100, "maxDevices": 4, "bandwidth": 10, "mbsInBatch": 8,
        "activationRecomputation": false, "optimizerAlgorithm": "Adam",
        "nodes": { "1": [layer(1, 0.2), layer(-1, 0.1), layer(0, 0.1)] },
        "edges": { "1": [
            { "sourceId": 0, "destId": 1, "communicationCost": 0.5 },
            { "sourceId": -1, "destId": 0, "communicationCost": 0.5 },
        ] },
    })
}

#[test]
fn an_answer_names_layers_by_their_ids_in_the_profile_s_units() {
    let output = phaze(&["place", "--profile", "-", "--json"], &small_profile().to_string());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    // Four pipelines of one stage: 2 micro-batches of 1.2 each, and 1.5 · 4.5 / 10 to exchange.
    assert_eq!(answer["data_parallel"], 4);
    assert_eq!(answer["stages"][0]["layers"], json!([-1, 0, 1]));
    assert_eq!(answer["time_per_batch"], 2.0 * 1.2 + 0.675);
    assert_eq!(answer["ranks"][0]["memory"], 3.0 * 4.5 + 6.0);
    assert_eq!(answer["simulated_time_per_batch"], Value::Null, "one time is enough");
}

#[test]
fn times_that_differ_wildly_lose_nothing() {
    let mut profile = small_profile();
    profile["bandwidth"] = json!(1e-12);
    profile["mbsInBatch"] = json!(1_000_000);
    let output = phaze(&["place", "--profile", "-", "--json"], &profile.to_string());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Nothing is worth exchanging: one pipeline of one stage.
    assert_eq!(answer["devices"], 1);
    let apart = answer["time_per_batch"].as_f64().unwrap() / 1_200_000.0 - 1.0;
    assert!(apart.abs() < 1e-12, "{answer}");
}

#[test]
fn a_saved_plan_is_verified_and_a_changed_one_is_not() {
    let (plan, trace) = (scratch("plan.json"), scratch("trace.json"));
    let (plan_path, trace_path) = (plan.to_str().unwrap(), trace.to_str().unwrap());
    let args = ["place", "--profile", "-", "--recompute", "auto", "--out", plan_path];
    let args = [&args[..], &["--trace", trace_path]].concat();
    let output = phaze(&args, &small_profile().to_string());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Proved: no other placement is faster"), "{text}");

    let good = phaze(&["check", plan_path], "");
    assert_eq!(good.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&good.stdout).contains("holds"));

    let saved = std::fs::read_to_string(&plan).unwrap();
    let mut changed: Value = serde_json::from_str(&saved).unwrap();
    changed["answer"]["stages"][0]["forward"] = json!(1);
    let bad = phaze(&["check", "-"], &changed.to_string());
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stdout).contains("does not hold: the forward pass"));

    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
    let passes = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X");
    assert_eq!(passes.filter(|event| event["name"] != "gradients").count(), 2 * 2);

    for unreadable in ["{}", "[", "{\"schema\": \"phaze-plan\"}"] {
        assert_eq!(phaze(&["check", "-"], unreadable).status.code(), Some(2));
    }
    for path in [plan_path, trace_path] {
        std::fs::remove_file(path).unwrap();
    }
}

type Breaking = fn(&mut Value);

#[test]
fn bad_profiles_are_refused_by_name() {
    let breakings: [(Breaking, &str); 18] = [
        (|p| p["maxDevices"] = json!(0), "`maxDevices = 0`"),
        (|p| p["maxDevices"] = json!(1.5), "`maxDevices = 1.5`"),
        (|p| p["mbsInBatch"] = json!(1e300), "`mbsInBatch ="),
        (|p| p["bandwidth"] = json!(0), "`bandwidth = 0` moves nothing"),
        (|p| p["maxMemoryPerDevice"] = Value::Null, "`maxMemoryPerDevice` is missing"),
        (|p| p["optimizerAlgorithm"] = json!("adam"), "did you mean `Adam`"),
        (|p| p["nodes"] = json!({}), "`nodes` is missing"),
        (|p| p["nodes"] = json!({ "0": [] }), "is not a width"),
        (|p| p["nodes"]["2"] = p["nodes"]["1"].clone(), "`edges.2` is missing"),
        (
            |p| p["nodes"]["1"][2]["optimalLatencyFw"] = json!(-1),
            "`nodes.1[2].optimalLatencyFw = -1` is negative",
        ),
        (|p| p["nodes"]["1"][2]["id"] = json!(1), "is there twice"),
        (|p| p["nodes"]["1"][2]["isTensorParallelized"] = json!("yes"), "invalid type"),
        (|p| p["edges"]["1"][0]["destId"] = json!(7), "is the id of no layer"),
        (|p| p["edges"]["1"][0]["destId"] = json!(-1), "comes before itself"),
        (
            |p| {
                p["edges"]["1"].as_array_mut().unwrap().pop();
            },
            "give the edge that is missing",
        ),
        (
            |p| {
                p["edges"]["2"] = json!([{ "sourceId": -1, "destId": 0, "communicationCost": 1 }]);
                let two = p["nodes"]["1"].as_array().unwrap()[1..].to_vec();
                p["nodes"]["2"] = json!(two);
            },
            "every width has the same layers",
        ),
        (
            |p| {
                p["bandwidth"] = json!(1e-12);
                p["nodes"]["1"][0]["parameterSize"] = json!(1e9);
                p["edges"]["1"][1]["communicationCost"] = json!(1e-12);
            },
            "`edges.1[1].communicationCost = 1e-12` cannot be held exactly beside sizes that add up \
             to 1.000000003e9; allowed are multiples of 1e-8",
        ),
        (
            |p| p["nodes"]["1"][2]["activationSize"] = json!(1e25),
            "`nodes.1[0].parameterSize = 1.5e0` cannot be held exactly",
        ),
    ];
    for (break_it, said) in breakings {
        let mut profile = small_profile();
        break_it(&mut profile);
        let output = phaze(&["place", "--profile", "-"], &profile.to_string());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error} should say {said}");
        assert!(
            error.contains(said) && error.contains("standard input"),
            "{error} should say {said}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn sizes_with_all_the_places_that_can_be_held_lose_nothing() {
    let mut profile = small_profile();
    profile["bandwidth"] = json!(1e-8);
    profile["nodes"]["1"][0]["parameterSize"] = json!(1e9);
    profile["maxMemoryPerDevice"] = json!(1e20);
    profile["maxDevices"] = json!(2);
    profile["mbsInBatch"] = json!(1);
    for edge in [0, 1] {
        profile["edges"]["1"][edge]["communicationCost"] = json!(1e-8);
    }
    let output = phaze(&["place", "--profile", "-", "--json"], &profile.to_string());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    // One micro-batch on one device takes 1.2; a second one would wait for a tensor for 2.
    assert_eq!(answer["devices"], 1);
    assert_eq!(answer["time_per_batch"], 1.2);
}

#[test]
fn a_bad_line_is_named_and_nothing_is_answered() {
    let path = scratch("bad.jsonl");
    let mut bad = small_profile();
    bad["maxDevices"] = json!(0);
    std::fs::write(&path, format!("{}\n\n{bad}\n", small_profile())).unwrap();
    let output = phaze(&["place", "--profile", path.to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 3: `maxDevices = 0`"));
    assert!(output.stdout.is_empty());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_does_not_fit_names_the_tightest_limit() {
    let answer = |profile: &Value| {
        let output = phaze(&["place", "--profile", "-", "--json"], &profile.to_string());
        assert_eq!(output.status.code(), Some(1));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["feasible"], false);
        answer["reason"].as_str().unwrap().to_owned()
    };
    let mut profile = small_profile();
    profile["maxMemoryPerDevice"] = json!(6);
    assert_eq!(answer(&profile), "layer -1 alone needs 6.5 of 6 at width 1");
    profile["maxMemoryPerDevice"] = json!(16);
    profile["maxDevices"] = json!(1);
    assert!(answer(&profile).starts_with("one pipeline takes at least 2 devices at width 1"));
}

#[test]
fn layers_that_branch_are_placed_and_too_many_are_refused() {
    let mut profile = small_profile();
    profile["edges"]["1"] = json!([
        { "sourceId": 0, "destId": 1, "communicationCost": 0.5 },
        { "sourceId": -1, "destId": 1, "communicationCost": 0.5 },
    ]);
    let output = phaze(&["place", "--profile", "-", "--json"], &profile.to_string());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["feasible"], true);

    let layer = profile["nodes"]["1"][0].clone();
    let mut layers = Vec::new();
    let mut edges = Vec::new();
    for id in 0..20 {
        let mut leaf = layer.clone();
        leaf["id"] = json!(id);
        layers.push(leaf);
        edges.push(json!({ "sourceId": id, "destId": 20, "communicationCost": 1 }));
    }
    let mut last = layer;
    last["id"] = json!(20);
    layers.push(last);
    profile["nodes"]["1"] = json!(layers);
    profile["edges"]["1"] = json!(edges);
    let output = phaze(&["place", "--profile", "-"], &profile.to_string());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("more than 40000 sets"));
}

#[test]
fn a_model_is_placed_saved_and_verified() {
    let plan = scratch("model.json");
    let path = plan.to_str().unwrap();
    let design = ["--design", "tpuv4-like", "--json"];
    let args = [&["place", "gpt2-xl", "--devices", "16", "--global-batch", "64"], &design[..]];
    let args = args.concat();
    let output = phaze(&[&args[..], &["--out", path]].concat(), "");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["feasible"], true);
    let time = answer["time_per_batch"].as_f64().unwrap();
    let throughput = answer["sequences_per_second"].as_f64().unwrap();
    assert!((throughput * time / 64.0 - 1.0).abs() < 1e-12);
    let mfu = answer["mfu"].as_f64().unwrap();
    assert!((0.01..1.0).contains(&mfu), "{mfu}");
    let good = phaze(&["check", path], "");
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stdout));
    std::fs::remove_file(plan).unwrap();
}

#[test]
fn a_given_strategy_is_never_better_than_the_best() {
    let common = ["place", "gpt2-xl", "--design", "tpuv4-like", "--global-batch", "64"];
    let time = |more: &[&str]| {
        let output = phaze(&[&common[..], &["--json"], more].concat(), "");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["time_per_batch"].as_f64().unwrap()
    };
    let given = time(&["--strategy", "p=4,d=4,t=1"]);
    assert!(time(&["--devices", "16"]) <= given);
    let even = time(&["--strategy", "p=4,d=4,t=1,v=1,cut=even"]);
    assert!(given <= even);
    let text = phaze(&[&common[..], &["--strategy", "p=4,d=4,t=1"]].concat(), "");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("PP 4") && text.contains("nothing given"), "{text}");
}

#[test]
fn the_fewest_devices_are_enough_and_one_fewer_is_not() {
    let args = ["place", "llama2-7b", "--design", "a100-80g", "--global-batch", "8", "--json"];
    let fewest = phaze(&[&args[..], &["--fit"]].concat(), "");
    let answer: Value = serde_json::from_slice(&fewest.stdout).unwrap();
    let devices = answer["fit"]["fewest_devices"].as_u64().unwrap();
    assert!(answer["fit"]["comfortable_devices"] == answer["devices"] && devices > 1);
    let fewer = (devices - 1).to_string();
    let output = phaze(&[&args[..], &["--devices", &fewer]].concat(), "");
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["reason"].as_str().unwrap().contains(&format!("at least {devices} devices")));
}

#[test]
fn bad_requests_are_refused_with_what_would_do() {
    let cases: [(&[&str], &str); 11] = [
        (&["gpt2-xl", "--micro-batch", "3"], "try 2"),
        (&["gpt2-xl", "--tensor-parallel", "2"], "legal are [1, 5, 25]"),
        (&["gpt2-xl", "--devices", "0"], "--devices"),
        (&["gpt2-xl", "--strategy", "p=51,d=1,t=1"], "give p from 1 to 50"),
        (&["gpt2-xl", "--strategy", "v=2,p=1"], "give p=2 or more, or v=1"),
        (&["gpt2-xl", "--strategy", "b=3"], "does not divide the batch"),
        (&["gpt2-xl", "--strategy", "t=3"], "legal are [1, 5, 25]"),
        (&["gpt2-xl", "--launchable", "megatorn"], "megatron"),
        (&["gpt2-xl", "--strategy", "p=4,d=1,t=1", "--devices", "3"], "it takes 4 devices"),
        (&["gpt2-xxl"], "gpt2-xl"),
        (&["--profile", "-", "--devices", "4"], "cannot be used with"),
    ];
    for (args, said) in cases {
        let design: &[&str] =
            if args[0] == "--profile" { &[] } else { &["--design", "tpuv4-like"] };
        let output = phaze(&[&["place"][..], args, design].concat(), "");
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

#[test]
fn devices_may_be_counted_in_nodes_and_batches_in_tokens() {
    let model = ["place", "llama2-7b", "--json", "--micro-batch", "1", "--tensor-parallel", "8"];
    let with = |more: &[&str]| phaze(&[&model[..], more].concat(), "");
    let plain = with(&["--design", "a100-80g", "--devices", "16", "--global-batch", "64"]);
    let figures = with(&["--design", "a100-80g", "--nodes", "2", "--batch-tokens", "0.26M"]);
    assert_eq!(plain.status.code(), Some(0));
    assert_eq!(plain.stdout, figures.stdout);
    let refused: [(&[&str], &str); 3] = [
        (&["--design", "tpuv4-like", "--nodes", "2"], "a network that has none"),
        (&["--design", "a100-80g", "--batch-tokens", "4m"], "the letters are k, M, G (or B) and T"),
        (&["--design", "a100-80g", "--nodes", "2", "--devices", "16"], "cannot be used with"),
    ];
    for (more, said) in refused {
        let output = with(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(said), "{text}");
    }
}
