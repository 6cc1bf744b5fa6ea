//! `phaze schedule` as a user runs it.

mod command;

use std::process::Output;

use serde_json::Value;

const GRAPH: &str = r#"{"tensor_cores": 2, "vector_cores": 1, "rule": "alone", "operators": [
    {"id": "ln", "core": "vector", "alone": 0.5}, {"id": "q", "core": "tensor", "alone": 2, "spread": 1.2},
    {"id": "k", "core": "tensor", "alone": 2, "spread": 1.2}, {"id": "sum", "core": "network", "alone": 0.25}],
    "edges": [["ln", "q"], ["ln", "k"], ["q", "sum"]]}"#;

fn phaze(arguments: &[&str], input: &str) -> Output {
    command::phaze(&[&["schedule"], arguments].concat(), input)
}

fn answer(arguments: &[&str], input: &str) -> Value {
    let found = phaze(arguments, input);
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    serde_json::from_slice(&found.stdout).unwrap()
}

fn complaint(arguments: &[&str], input: &str) -> String {
    let found = phaze(arguments, input);
    assert_eq!(found.status.code(), Some(2), "{arguments:?}");
    assert!(found.stdout.is_empty(), "nothing is half-answered");
    String::from_utf8(found.stderr).unwrap()
}

#[test]
fn a_graph_is_answered_in_its_own_unit_by_every_solver() {
    for solver in ["exact", "ilp"] {
        let found = answer(&["--graph", "-", "--json", "--solver", solver], GRAPH);
        // Side by side on two cores, then the exchange.
        assert_eq!(found["makespan"], 2.75, "{solver}");
        assert_eq!(found["proof"]["lower_bound"], 2.75);
        assert_eq!(found["proof"]["gap"], 0.0);
        let operators = found["operators"].as_array().unwrap();
        let ids: Vec<&str> = operators.iter().map(|op| op["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["ln", "q", "k", "sum"]);
        assert_eq!(operators[0]["cores"], serde_json::json!(["vector 0"]));
        assert_eq!(operators[1]["start"], 0.5);
        assert_eq!(operators[3]["cores"], serde_json::json!(["network"]));
    }
    let listed = answer(&["--graph", "-", "--json", "--solver", "list"], GRAPH);
    assert!(listed["makespan"].as_f64().unwrap() >= 2.75);
}

#[test]
fn an_operator_that_takes_no_time_spread_is_spread() {
    let graph = r#"{"tensor_cores": 2, "vector_cores": 0, "operators":
        [{"id": "a", "core": "tensor", "alone": 0.005, "spread": 0}]}"#;
    for solver in ["exact", "ilp", "list"] {
        let found = answer(&["--graph", "-", "--json", "--solver", solver], graph);
        assert_eq!(found["makespan"], 0.0, "{solver}");
        assert_eq!(found["operators"][0]["spread"], true, "{solver}");
    }
}

#[test]
fn a_limit_beyond_all_clocks_is_none() {
    for limit in ["1e19", "1e300", "inf"] {
        for solver in ["exact", "ilp"] {
            let arguments = ["--graph", "-", "--json", "--solver", solver, "--time-limit", limit];
            assert_eq!(answer(&arguments, GRAPH)["makespan"], 2.75);
        }
    }
    complaint(&["--graph", "-", "--time-limit", "nan"], GRAPH);
    complaint(&["--graph", "-", "--time-limit=-1"], GRAPH);
}

#[test]
fn lines_are_answered_line_by_line_or_not_at_all() {
    let line = GRAPH.replace('\n', " ");
    let found = phaze(&["--graph", "-", "--json"], &format!("{line}\n{line}\n"));
    assert_eq!(String::from_utf8(found.stdout).unwrap().lines().count(), 2);
    let error = complaint(&["--graph", "-", "--json"], &format!("{line}\n{{}}\n"));
    assert!(error.contains("standard input, line 2: `tensor_cores` is missing"), "{error}");
}

#[test]
fn a_layer_of_a_model_has_a_time_a_proof_a_picture_and_a_trace() {
    let trace = std::env::temp_dir().join(format!("phaze-trace-{}.json", std::process::id()));
    let path = trace.to_str().unwrap();
    let found = phaze(&["bert-large", "--pass", "backward", "--trace", path], "");
    let text = String::from_utf8(found.stdout).unwrap();
    for part in
        ["layer time", "memory in use", "proof          fastest", "critical path", "tensor all"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let events: Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
    std::fs::remove_file(&trace).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["ph"] == "X" && event["name"] == "qkv.dW"));

    let json =
        ["bert-large", "--layer", "transformer", "--pass", "forward", "--json", "--published"];
    let found = answer(&json, "");
    assert_eq!(found["rule"], "alone");
    assert!(found["layer"]["time"].as_f64() >= found["makespan"].as_f64());
}

#[test]
fn bad_requests_are_refused_with_a_reason() {
    let cases: [(&[&str], &str); 8] = [
        (&[], "required"),
        (&["bert-larg"], "did you mean `bert-large`"),
        (&["bert-large", "--layer", "transfromer"], "did you mean `transformer`"),
        (&["bert-large", "--tensor-parallel", "3"], "3"),
        (&["--graph", "no-such-file.json"], "no-such-file.json: cannot be read"),
        (&["--graph", "-", "--design", "tpuv4"], "leave out the design"),
        (&["--graph", "-", "--time-limit=-1"], "seconds"),
        (&["bert-large", "--trace", "no/such/folder/t.json"], "cannot be written"),
    ];
    for (arguments, expected) in cases {
        let error = complaint(arguments, GRAPH);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn a_hundred_thousand_operators_are_answered_with_an_honest_gap() {
    let operator = |i: usize| {
        let (core, alone) = (["tensor", "vector", "both"][i % 3], (i * 7919) % 1000 + 1);
        format!("{{\"id\":\"{i}\",\"core\":\"{core}\",\"alone\":{alone},\"spread\":{}}}", alone / 3)
    };
    let operators: Vec<String> = (0..100_000).map(operator).collect();
    let edges: Vec<String> =
        (8..100_000).map(|i| format!("[\"{}\",\"{i}\"]", i - 1 - (i * 31) % 8)).collect();
    let graph = format!(
        "{{\"tensor_cores\":8,\"vector_cores\":2,\"operators\":[{}],\"edges\":[{}]}}",
        operators.join(","),
        edges.join(",")
    );
    let found = answer(&["--graph", "-", "--json"], &graph);
    assert_eq!(found["operators"].as_array().unwrap().len(), 100_000);
    let gap = found["proof"]["gap"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&gap));
    assert_eq!(found["proof"]["kind"] == "none", gap > 0.0);
}
