//! `phaze sweep`: every combination searched once, in one table and one page.

mod command;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use command::phaze;

/// Four searches of an instant; eight devices are too few for the larger model.
const SWEEP: &str = "[request.job]\nmicro_batches = [1]\ntensor_parallel = [1]\nglobal_batch = 64\n\
                     [request.space]\nhbm_gib = 32\ntensor_cores = 8\nwidth = 128\ndepth = 128\n\
                     vector_cores = 2\nglb_mib = 128\n\
                     [vary]\nmodel = [\"bert-large\", \"gpt3-175b\"]\njob.devices = [8, 16]\n";

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("phaze-sweep-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sweep.toml"), SWEEP).unwrap();
    folder
}

fn sweep(folder: &std::path::Path, more: &[&str]) -> Output {
    let file = folder.join("sweep.toml").display().to_string();
    let out = folder.join("out").display().to_string();
    phaze(&[&["sweep", &file, "--out", &out], more].concat(), "")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_combination_is_searched_once_and_told_in_one_table() {
    let folder = folder("all");
    let part = sweep(&folder, &["--only", "3"]);
    assert!(part.status.success(), "what fits nowhere is an answer: {}", said(&part));
    let early = sweep(&folder, &["--collect"]);
    assert_eq!(early.status.code(), Some(2));
    assert!(said(&early).contains("of 4 searches, 1, 2, 4 are not done"), "{}", said(&early));
    let found = sweep(&folder, &[]);
    assert!(found.status.success(), "{}", said(&found));
    assert!(!said(&found).contains("3 of 4"), "the third was done: {}", said(&found));
    let table = fs::read_to_string(folder.join("out/sweep.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert!(lines[0].starts_with("model,job.devices,folder,status,value,tokens_per_s,"));
    assert!(lines[1].starts_with("bert-large,8,1,proved,"), "{}", lines[1]);
    assert!(lines[3].starts_with("gpt3-175b,8,3,infeasible,"), "{}", lines[3]);
    let page = fs::read_to_string(folder.join("out/sweep.html")).unwrap();
    assert!(page.contains("Over job.devices") && page.contains("<polyline"));
    let again = sweep(&folder, &[]);
    assert!(again.status.success() && said(&again).is_empty(), "{}", said(&again));
    assert_eq!(fs::read_to_string(folder.join("out/sweep.csv")).unwrap(), table);
    // Another sweep into the same folder is another request.
    fs::write(folder.join("sweep.toml"), SWEEP.replace("= 64", "= 128")).unwrap();
    let other = sweep(&folder, &[]);
    assert_eq!(other.status.code(), Some(2));
    assert!(said(&other).contains("is the result of another request"), "{}", said(&other));
    fs::remove_dir_all(folder).unwrap();
}

/// Two searches over a handful of chips each.
const CHIPS: &str = "[request]\nmodel = [{ name = \"bert-large\" }]\n[request.job]\nmicro_batches = [2]\n\
                     devices = 8\nglobal_batch = 64\n[request.space]\ntensor_cores = [6, 16]\n\
                     width = 128\ndepth = 128\nvector_cores = 64\nvector_width = 128\nglb_mib = 64\n\
                     glb_bytes_per_cycle = 8192\nstacks = [1, 3]\nlinks = 400\n\
                     [vary]\nchip.tdp_w = [300, 700]\n";

#[test]
fn budgets_of_chips_are_swept_too() {
    let folder = folder("chips");
    fs::write(folder.join("sweep.toml"), CHIPS).unwrap();
    let found = sweep(&folder, &[]);
    assert!(found.status.success(), "{}", said(&found));
    let table = fs::read_to_string(folder.join("out/sweep.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("chip.tdp_w,folder,status,value,tokens_per_s,"), "{table}");
    assert!(lines[0].contains("design.tdp_w") && lines[0].contains("design.stacks"), "{table}");
    assert!(lines[1].starts_with("300,1,proved,") && lines[2].starts_with("700,2,proved,"));
    assert!(folder.join("out/2/boxes.csv").exists());
    let again = sweep(&folder, &[]);
    assert!(again.status.success() && said(&again).is_empty(), "{}", said(&again));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_jobs_of_a_sweep_are_scripts() {
    let folder = folder("jobs");
    let written = sweep(&folder, &["--slurm", "--partition", "cpu"]);
    assert!(written.status.success(), "{}", said(&written));
    for name in ["searches.sbatch", "collect.sbatch", "submit.sh"] {
        let script = folder.join("out").join(name);
        assert!(Command::new("sh").arg("-n").arg(&script).status().unwrap().success(), "{name}");
    }
    let array = fs::read_to_string(folder.join("out/searches.sbatch")).unwrap();
    assert!(array.contains("#SBATCH --array=1-4\n"), "{array}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_sweep_that_makes_no_sense_is_refused_before_anything_is_searched() {
    let folder = folder("refused");
    for (from, to, expected) in [
        ("[8, 16]", "[8, 0]", "job.devices = 0"),
        ("job.devices", "job.devises", "devises"),
        ("gpt3-175b", "gpt5", "unknown model `gpt5`"),
        ("[vary]", "[varied]", "unknown field `varied`"),
        ("hbm_gib = 32\n", "stacks = 99\n", "99 stacks of memory"),
    ] {
        fs::write(folder.join("sweep.toml"), SWEEP.replace(from, to)).unwrap();
        let refused = sweep(&folder, &[]);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(expected), "{}", said(&refused));
        assert!(!folder.join("out").exists(), "{expected}");
    }
    fs::write(folder.join("sweep.toml"), SWEEP).unwrap();
    let beyond = sweep(&folder, &["--only", "5"]);
    assert!(said(&beyond).contains("the sweep has 1 to 4"), "{}", said(&beyond));
    fs::remove_dir_all(folder).unwrap();
}
