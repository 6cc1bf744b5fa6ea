//! `phaze report` as a user runs it; what the page shows is tested in `tests/browser`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::sync::OnceLock;

use phaze::input::saved;
use phaze::report::html;
use phaze::report::plot;
use phaze::report::saved::Saved;
use serde_json::Value;
use serde_json::json;

/// A result of five designs, searched once.
fn result() -> &'static str {
    static RESULT: OnceLock<String> = OnceLock::new();
    RESULT.get_or_init(|| {
        let folder = folder("report-result");
        let path = folder.to_str().unwrap().to_owned();
        let space = ["tensor_cores=16,32", "width=64,128", "depth=32", "vector_cores=64,128"];
        let mut words = vec!["search", "--model", "bert-large", "--hbm", "32", "--out", &path];
        words.push("--table");
        words.extend(space.iter().flat_map(|knob| ["--space", *knob]));
        let output = phaze(&words);
        assert!(output.status.success(), "{}", message(&output));
        path
    })
}

fn phaze(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phaze")).args(words).output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn message(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_report_is_a_function_of_the_content_of_its_files() {
    let folder = folder("report-function");
    for name in ["outcome.json", "designs.csv"] {
        fs::copy(Path::new(result()).join(name), folder.join(name)).unwrap();
    }
    let [first, second] = ["a.html", "b.html"].map(|name| folder.join(name));
    for (from, page) in [(result(), &first), (folder.to_str().unwrap(), &second)] {
        let output = phaze(&["report", from, "--out", page.to_str().unwrap()]);
        assert!(output.status.success(), "{}", message(&output));
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), page.to_str().unwrap());
    }
    assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
}

#[test]
fn the_page_lands_beside_the_files_and_leaves_nothing_else() {
    let folder = folder("report-beside");
    for name in ["outcome.json", "designs.csv"] {
        fs::copy(Path::new(result()).join(name), folder.join(name)).unwrap();
    }
    assert!(phaze(&["report", folder.to_str().unwrap()]).status.success());
    let mut names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["designs.csv", "outcome.json", "report.html"]);
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let folder = folder("report-refused");
    let path = folder.to_str().unwrap();
    let refused = |words: &[&str], expected: &str| {
        let output = phaze(words);
        assert_eq!(output.status.code(), Some(2));
        assert!(message(&output).contains(expected), "{} has no {expected}", message(&output));
        assert!(!folder.join("report.html").exists());
    };
    refused(&["report"], "required");
    refused(&["report", path], "outcome.json: cannot be read");
    fs::write(folder.join("outcome.json"), "{\"schema\": \"phaze-plan\"}").unwrap();
    fs::write(folder.join("designs.csv"), "design,width\n0,8\n1\n").unwrap();
    refused(&["report", path], "is not that of a search result");
    let outcome = "{\"schema\": \"phaze-outcome\", \"version\": 5, \"winner\": null}";
    fs::write(folder.join("outcome.json"), outcome).unwrap();
    refused(&["report", path], "designs.csv: line 3: has 1 cells where the heading has 2");
    refused(
        &["report", result(), "--out", "/nowhere/report.html"],
        "/nowhere/report.html: cannot be",
    );
    refused(&["report", "--compare", result()], "2 values required");
}

#[test]
fn two_results_can_be_compared() {
    let page = folder("report-compare").join("compare.html");
    let words = ["report", "--compare", result(), result(), "--out", page.to_str().unwrap()];
    assert!(phaze(&words).status.success());
    assert!(fs::read_to_string(page).unwrap().contains("\"kind\":\"compare\""));
}

/// A result over a few chips.
fn chips(name: &str, objective: &str) -> String {
    let path = folder(name).to_str().unwrap().to_owned();
    let fixed = ["width=128", "depth=128", "vector_cores=64", "vector_width=128", "glb_mib=16"];
    let space = ["tensor_cores=6,16", "clock=1.0,1.4", "stacks=1,3", "links=50,400"];
    let mut words =
        vec!["search", "--model", "bert-large", "--devices", "8", "--global-batch", "64"];
    words.extend(["--fix", "glb_bytes_per_cycle=8192", "--objective", objective, "--out", &path]);
    words.extend(["--why", "--spotlight", "5", "--baseline", "a100-80g"]);
    words.extend(fixed.iter().flat_map(|knob| ["--fix", *knob]));
    words.extend(space.iter().flat_map(|knob| ["--space", *knob]));
    let output = phaze(&words);
    assert!(output.status.success(), "{}", message(&output));
    path
}

#[test]
fn a_search_over_chips_has_a_page_and_is_compared_with_its_like() {
    let (fast, cheap) =
        (chips("report-chips", "throughput"), chips("report-cheap", "cost-per-token"));
    let file = Path::new(&fast).join("report.html");
    let page = fs::read_to_string(&file).unwrap();
    for expected in
        ["id=\"die\"", "id=\"budget\"", "operators alone", "a100-80g", "drawn at random"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    let again = Path::new(&fast).join("again.html");
    let output = phaze(&["report", &fast, "--out", again.to_str().unwrap()]);
    assert!(output.status.success(), "{}", message(&output));
    assert_eq!(fs::read_to_string(again).unwrap(), page);
    let both = Path::new(&fast).join("both.html");
    let compare = |other: &str| {
        let output = phaze(&["report", "--compare", &fast, other, "--out", both.to_str().unwrap()]);
        (output.status.code(), message(&output), fs::read_to_string(&both).unwrap_or_default())
    };
    let (status, said, page) = compare(&cheap);
    assert!(status == Some(0) && page.contains("on no common axis"), "{said}");
    let (status, said, page) = compare(&fast);
    assert!(status == Some(0) && page.contains("id=\"axis\""), "{said}");
    let (status, said, _) = compare(result());
    assert!(status == Some(2) && said.contains("one is over chips"), "{said}");
    let checked = phaze(&["check", Path::new(&fast).join("outcome.json").to_str().unwrap()]);
    assert!(checked.status.success(), "{}", message(&checked));
}

#[test]
fn the_plot_fits_a_terminal() {
    let output = phaze(&["report", result(), "--plot"]);
    assert!(output.status.success(), "{}", message(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains('★') && text.contains('◆'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn several_models_are_named_wherever_one_is_meant() {
    let folder = folder("report-several");
    let mut words = vec!["search", "--model", "bert-large", "--model", "gpt2-xl", "--hbm", "32"];
    let space = ["tensor_cores=16,32", "width=64", "depth=32", "vector_cores=64"];
    words.extend(space.iter().flat_map(|knob| ["--space", *knob]));
    words.extend(["--out", folder.to_str().unwrap()]);
    let output = phaze(&words);
    assert!(output.status.success(), "{}", message(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("What limits it when it trains bert-large\n"), "{text}");
    assert!(text.contains("; gpt2-xl: "), "strategies of both models: {text}");
    let scope = "It is optimal within this model, this space and these strategies.";
    assert!(text.contains(scope), "{text}");
}

/// The result with lists cut to two, apart from those of the winner's plan; of other entries, only
/// what the winner does not have as well.
fn shortened(mut outcome: Value) -> Value {
    fn cut(value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.truncate(2);
                items.iter_mut().for_each(cut);
            }
            Value::Object(fields) => {
                fields.iter_mut().filter(|(key, _)| *key != "plan").for_each(|(_, part)| cut(part));
            }
            _ => {}
        }
    }
    cut(&mut outcome);
    for list in ["/pareto/entries", "/top/entries", "/best_by_hbm", "/baselines"] {
        for item in outcome.pointer_mut(list).and_then(Value::as_array_mut).unwrap() {
            let entry = if item["entry"].is_null() { item } else { &mut item["entry"] };
            if entry["results"].is_array() {
                *entry =
                    json!({ "design": entry["design"], "value": 1, "results": [{ "plan": {} }] });
            }
        }
    }
    outcome
}

/// Every place in a value; of a list only the first and the last.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for i in (0..items.len()).filter(|&i| i == 0 || i + 1 == items.len()) {
                places(&items[i], &format!("{at}/{i}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, part) in fields {
                places(part, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_change_of_a_result_makes_a_picture_panic() {
    let read = |name: &str| fs::read_to_string(Path::new(result()).join(name)).unwrap();
    let designs = saved::designs("designs.csv", &read("designs.csv")).unwrap();
    let outcome = shortened(serde_json::from_str(&read("outcome.json")).unwrap());
    let drawn = |outcome: &Value| {
        let outcome = saved::outcome("outcome.json", &outcome.to_string()).ok()?;
        let result = Saved { name: "a".into(), outcome, designs: designs.clone() };
        // The page of two results packs each as the page of one does.
        html::write_comparison(&result, &result, &mut std::io::sink()).unwrap();
        let mut text = Vec::new();
        plot::write(&result, &mut text).unwrap();
        String::from_utf8(text).ok()
    };
    let whole = drawn(&outcome).expect("what was shortened is still a result");
    assert!(whole.contains("one of ") && !whole.contains("does not hold"), "{whole}");
    let hostile = [
        json!(0),
        json!(-1),
        json!(9),
        json!(99),
        json!(1_u64 << 63),
        json!(1e308),
        json!("\u{1b}[2J"),
        json!(null),
        json!([]),
        json!({}),
    ];
    let mut all = Vec::new();
    places(&outcome, "", &mut all);
    for place in &all {
        for value in &hostile {
            let mut changed = outcome.clone();
            *changed.pointer_mut(place).unwrap() = value.clone();
            let text = drawn(&changed).unwrap_or_default();
            assert!(!text.contains('\u{1b}'), "{place}");
        }
    }
}

#[test]
fn a_plan_that_does_not_hold_is_told_instead_of_drawn() {
    let folder = folder("report-malformed");
    fs::copy(Path::new(result()).join("designs.csv"), folder.join("designs.csv")).unwrap();
    let text = fs::read_to_string(Path::new(result()).join("outcome.json")).unwrap();
    let outcome: Value = serde_json::from_str(&text).unwrap();
    let breakings = [
        ("/answer/stages/0/layers/0", json!(99)),
        ("/profile/sequence/0", json!(9)),
        ("/answer/data_parallel", json!(1_u64 << 63)),
    ];
    for (place, value) in breakings {
        let mut changed = outcome.clone();
        let place = format!("/winner/results/0/plan{place}");
        *changed.pointer_mut(&place).unwrap() = value;
        fs::write(folder.join("outcome.json"), changed.to_string()).unwrap();
        let output = phaze(&["report", folder.to_str().unwrap(), "--plot"]);
        assert!(output.status.success(), "{place}: {}", message(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("the plan of bert-large does not hold: "), "{place}: {text}");
    }
}
