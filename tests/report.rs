//! `phaze report` as a user runs it; what the page shows is tested in `tests/browser`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::sync::OnceLock;

/// A result of five designs, searched once.
fn result() -> &'static str {
    static RESULT: OnceLock<String> = OnceLock::new();
    RESULT.get_or_init(|| {
        let folder = folder("report-result");
        let path = folder.to_str().unwrap().to_owned();
        let space = ["tensor_cores=16,32", "width=64,128", "depth=32", "vector_cores=64,128"];
        let mut words = vec!["search", "--model", "bert-large", "--hbm", "32", "--out", &path];
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
    let outcome = "{\"schema\": \"phaze-outcome\", \"version\": 1, \"winner\": null}";
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

#[test]
fn the_plot_fits_a_terminal() {
    let output = phaze(&["report", result(), "--plot"]);
    assert!(output.status.success(), "{}", message(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains('★') && text.contains('◆'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
