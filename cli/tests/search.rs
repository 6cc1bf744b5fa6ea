//! `phaze search` as a process: killed, resumed, refused.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::time::Duration;

/// A search of a second or two.
const SMALL: [&str; 12] = [
    "--model",
    "bert-large",
    "--hbm",
    "32,64",
    "--micro-batch",
    "2",
    "--space",
    "tensor_cores=32..128",
    "--space",
    "width=64..128",
    "--fix",
    "depth=64",
];

fn directory(name: &str) -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("phaze-search-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    directory
}

fn phaze(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phaze")).args(arguments).output().unwrap()
}

fn search(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phaze"));
    command.arg("search").args(SMALL).arg("--out").arg(out).args(more);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command
}

fn files(directory: &Path) -> Vec<Vec<u8>> {
    let names = ["outcome.json", "designs.csv", "boxes.csv"];
    names.iter().map(|name| fs::read(directory.join(name)).unwrap()).collect()
}

#[test]
fn a_search_killed_ten_times_ends_with_the_same_bytes() {
    let (whole, torn) = (directory("whole"), directory("torn"));
    let start = std::time::Instant::now();
    assert!(search(&whole, &[]).status().unwrap().success());
    let duration = start.elapsed();
    for kill in 0..10_u32 {
        let mut child = search(&torn, &["--resume"]).spawn().unwrap();
        // Moments spread over the whole run, in an order that is not monotone.
        std::thread::sleep(duration.mul_f64(f64::from((kill * 7) % 10) / 11.0));
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(search(&torn, &["--resume"]).status().unwrap().success());
    assert!(files(&whole) == files(&torn), "a resumed search differs");
    assert!(!torn.join("journal.jsonl").exists(), "a finished search leaves no journal");
    for directory in [whole, torn] {
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn an_interrupted_search_says_so_and_resumes() {
    let (whole, cut) = (directory("calm"), directory("interrupted"));
    assert!(search(&whole, &[]).status().unwrap().success());
    let child = search(&cut, &[]).spawn().unwrap();
    while !cut.join("journal.jsonl").exists() && !cut.join("outcome.json").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let ended = child.wait_with_output().unwrap().status;
    assert!(interrupt.unwrap().success());
    // A machine may be fast enough to be done before.
    assert!(matches!(ended.code(), Some(130 | 0)), "{ended}");
    assert!(search(&cut, &["--resume"]).status().unwrap().success());
    assert!(files(&whole) == files(&cut), "a resumed search differs");
    for directory in [whole, cut] {
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn a_second_search_into_the_same_directory_is_refused() {
    let out = directory("shared");
    let mut first = search(&out, &[]).spawn().unwrap();
    while !out.join("journal.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let path = out.display().to_string();
    let arguments: Vec<&str> =
        ["search"].into_iter().chain(SMALL).chain(["--out", &path]).collect();
    let second = phaze(&arguments);
    let still_running = first.try_wait().unwrap().is_none();
    let message = String::from_utf8(second.stderr).unwrap();
    if still_running {
        assert_eq!(second.status.code(), Some(2), "{message}");
        assert!(message.contains("another search is writing there"), "{message}");
    }
    assert!(first.wait().unwrap().success());
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn bad_requests_are_refused_with_the_reason_and_leave_nothing() {
    let out = directory("refused");
    let path = out.display().to_string();
    let cases: [(&[&str], &str); 19] = [
        (&["--model", "gpt5"], "unknown model `gpt5`"),
        (&["--devices", "0"], "`job.devices = 0`"),
        (&["--micro-batch", "3"], "does not divide"),
        (&["--space", "width="], "has no value"),
        (&["--space", "wdith=4"], "unknown key of [space] `wdith` (did you mean `width`?)"),
        (&["--space", "width=8..4"], "is no range of powers of two"),
        (&["--fix", "width"], "`width` is missing"),
        (&["--objective", "speed"], "known are throughput"),
        (&["--hardware", "tpuv9"], "tpuv9"),
        (&["--seq", "5000"], "learned positions"),
        (&["--tensor-parallel", "7"], "gpt2-xl allows 1, 5, 25"),
        (
            &["--fix", "tensor_cores=1", "--fix", "width=2", "--space", "glb_mib=16384"],
            "the space holds no design",
        ),
        (&["no-such-file.toml"], "no-such-file.toml: cannot be read"),
        (&["no\u{1b}[2J.toml"], "no\\u{1b}[2J.toml: cannot be read"),
        (&["--hbm", "48"], "nearest are 32 and 64"),
        (&["--hbm", "160"], "known are 32, 64, 80"),
        (&["--space", "width=5..7"], "is no range of powers of two"),
        (&["--time-limit=-1"], "0 or more"),
        (&["--time-limit", "nan"], "0 or more"),
    ];
    for (arguments, expected) in cases {
        let arguments: Vec<&str> = ["search", "--space", "published", "--out", &path]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let refused = phaze(&arguments);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!out.exists(), "{arguments:?} wrote something");
    }
}

#[test]
fn chips_that_cannot_be_are_refused_with_what_would_do() {
    let out = directory("no-chip");
    let path = out.display().to_string();
    let cases: [(&[&str], &str); 31] = [
        (&["--max-area", "30"], "of the smallest one the die has"),
        (&["--tdp", "3"], "of the smallest one the design power is"),
        (&["--max-price", "10"], "W and"),
        (&["--process", "6"], "nearest is 5; known are"),
        (&["--memory", "hbm5"], "unknown generation of memory `hbm5`; known are hbm2, "),
        (&["--fix", "stacks=9"], "at most 6 stacks fit beside such links"),
        (&["--fix", "stacks=0"], "is out of range"),
        (&["--fix", "clock=2.5"], "at most 2124 MHz would do"),
        (&["--price-links", "-3"], "`chip.usd_per_gb_per_s = -3` is out of range"),
        (&["--price-between", "-3"], "`chip.usd_per_gb_per_s_between = -3` is out of range"),
        (&["--kwh", "-0.1"], "`chip.usd_per_kwh = -0.1` is out of range"),
        (&["--max-price", "-4"], "`chip.price_usd = -4` is out of range"),
        (&["--max-area", "-4"], "`space.max_area_mm2 = -4` is out of range"),
        (&["--years", "-1"], "`chip.years = -1` is out of range"),
        (&["--volume", "-1"], "`chip.volume = -1` is out of range"),
        (&["--margin", "1.5"], "`chip.margin = 1.5` is out of range"),
        (&["--space", "clock=3..4"], "holds no value of the knob; the knob has 0.9"),
        (&["--space", "clock=1.8..1.4"], "ends before it begins"),
        (
            &["--space", "clock=1.4", "--space", "clock_mhz=1500"],
            "sets the knob that `space.clock` sets",
        ),
        (&["--fix", "clock=1.4,1.5"], "fixes a knob to one value"),
        (&["--hbm", "32", "--fix", "clock=1.4"], "is a knob of the published space"),
        (&["--published", "--fix", "clock=1.4"], "is a knob of chips"),
        (&["--model", "llama3-8b@1024", "--seq", "2048"], "say the same; give one of them"),
        (&["--space", "stakcs=4"], "(did you mean `stacks`?)"),
        (&["--precision", "fp9"], "unknown precision `fp9`; known are bf16, fp8"),
        (
            &["--precision", "fp8", "--efficiency", "a100-80g"],
            "take bf16, or efficiency with `matmul_fp8`",
        ),
        (
            &["--network", "flat", "--between", "50"],
            "is of chips in nodes, and the network is flat",
        ),
        (&["--network", "torus", "--torus", "8x8x16"], "cannot be used with"),
        (&["--torus", "4x4"], "sides whose product they are would do, such as 8x8x16"),
        (
            &["--fix", "stacks=4", "--space", "stacks=1,2"],
            "say the same `stacks`; give one of them",
        ),
        (&["--space", "published", "--precision", "fp8"], "chip.precision"),
    ];
    for (arguments, expected) in cases {
        let arguments: Vec<&str> =
            ["search", "--out", &path].into_iter().chain(arguments.iter().copied()).collect();
        let refused = phaze(&arguments);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!out.exists(), "{arguments:?} wrote something");
    }
}

/// One design with one memory: a search of an instant.
const TINY: [&str; 16] = [
    "search",
    "--hbm",
    "32",
    "--micro-batch",
    "1",
    "--fix",
    "tensor_cores=8",
    "--fix",
    "width=128",
    "--fix",
    "depth=128",
    "--fix",
    "vector_cores=2",
    "--fix",
    "glb_mib=128",
    "--threads",
];

fn tiny(more: &[&str]) -> Vec<&'static str> {
    let more = more.iter().map(|word| &*String::leak((*word).to_owned()));
    TINY.into_iter().chain(["1"]).chain(more).collect()
}

#[test]
fn the_result_of_another_request_is_not_written_over() {
    let out = directory("kept");
    let path = out.display().to_string();
    let asked =
        |more: &[&str]| phaze(&tiny(&[&["--model", "bert-large", "--out", &path], more].concat()));
    assert!(asked(&["--time-limit", "100.5"]).status.success());
    let kept = files(&out);
    for more in [&["--devices", "512"][..], &["--devices", "512", "--resume"]] {
        let refused = asked(more);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{message}");
        assert!(message.contains("outcome.json: is the result of another request"), "{message}");
        assert!(files(&out) == kept, "a result was touched");
    }
    assert!(asked(&[]).status.success(), "the same request may be repeated");
    assert!(files(&out) == kept, "the same request has the same answer");
    assert!(asked(&["--devices", "512", "--force"]).status.success());
    assert!(files(&out) != kept);
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn paths_of_a_request_start_beside_it_and_results_stay_in_their_folder() {
    let here = directory("beside");
    fs::create_dir_all(here.join("requests")).unwrap();
    let model = fs::read_to_string("../inputs/models/bert-large.json").unwrap();
    let chip = fs::read_to_string("../inputs/hardware/tpuv4-like.toml").unwrap();
    // Some editors begin a text with a mark.
    fs::write(here.join("requests/...json"), format!("\u{feff}{model}")).unwrap();
    fs::write(here.join("requests/chip.toml"), format!("\u{feff}{chip}")).unwrap();
    let request = "\u{feff}hardware = \"chip.toml\"\n[[model]]\nname = \"...json\"\n";
    fs::write(here.join("requests/request.toml"), request).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_phaze"));
    let found = command
        .args(tiny(&["requests/request.toml", "--space", "max_area_mm2=400"]))
        .current_dir(&here)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(found.status.success(), "{message}");
    let outcome = fs::read_to_string(here.join("results/model/outcome.json")).unwrap();
    let outcome: serde_json::Value = serde_json::from_str(&outcome).unwrap();
    assert_eq!(outcome["request"]["models"][0]["name"], "requests/...json");
    assert_eq!(outcome["request"]["hardware"]["name"], "requests/chip.toml");
    assert_eq!(outcome["request"]["space"]["max_area_nm2"], 400_000_000_000_000_u64);
    fs::remove_dir_all(here).unwrap();
}

#[test]
fn a_model_that_fits_nowhere_is_an_answer_with_its_reason() {
    let out = directory("infeasible");
    let path = out.display().to_string();
    let found = phaze(&[
        "search",
        "--space",
        "published",
        "--model",
        "gpt3-175b",
        "--devices",
        "8",
        "--fix",
        "width=128",
        "--fix",
        "depth=128",
        "--out",
        &path,
    ]);
    let text = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found.status.code(), Some(1), "{text}");
    assert!(text.contains("No design of the space can train this"), "{text}");
    assert!(text.contains("needs at least") || text.contains("alone needs"), "{text}");
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn the_boxes_of_a_search_are_believed_whether_it_ends_or_is_stopped() {
    for (name, more) in
        [("stopped", &["--time-limit", "0.5"][..]), ("ended", &["--fix", "depth=64"])]
    {
        let out = directory(name);
        let path = out.display().to_string();
        let words = ["search", "--space", "published", "--model", "bert-large", "--hbm", "32,80"];
        let few = ["--micro-batch", "4", "--tensor-parallel", "1", "--fix", "width=64"];
        let found = phaze(&[&words[..], &few, more, &["--out", &path]].concat());
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        let text = String::from_utf8(found.stdout).unwrap();
        assert!(text.contains("designs.csv, boxes.csv, report.html"), "{text}");
        let outcome = out.join("outcome.json").display().to_string();
        let checked = phaze(&["check", &outcome]);
        let said = String::from_utf8(checked.stdout).unwrap();
        assert!(checked.status.success() && said.contains("boxes of designs"), "{name}: {said}");
        fs::remove_file(out.join("boxes.csv")).unwrap();
        let refused = phaze(&["check", &outcome]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains("boxes.csv"), "{name}: {said}");
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let file = directory("file");
    fs::write(&file, "not a directory").unwrap();
    let path = file.join("inside").display().to_string();
    let refused = phaze(&["search", "--out", &path]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("cannot be written"), "{message}");
    fs::remove_file(file).unwrap();
}
