//! The house rules that a machine can check.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// The rooms of the house, from the ground up: each may use only itself and those before it.
const ROOMS: [&str; 21] = [
    "units",
    "graph",
    "model",
    "hardware",
    "parallel",
    "estimate",
    "plan",
    "schedule",
    "profile",
    "placement",
    "strategy",
    "search",
    "compare",
    "measure",
    "launch",
    "advise",
    "report",
    "certify",
    "input",
    "ask",
    "store",
];

#[test]
fn rooms_use_only_the_rooms_below_them() {
    for (room, name) in ROOMS.iter().enumerate() {
        for file in rust_files_of(name) {
            let text = fs::read_to_string(&file).unwrap();
            for mention in text.split("crate::").skip(1) {
                let used =
                    mention.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                let below = ROOMS[..=room].contains(&used);
                assert!(below, "{}: `{name}` must not use `{used}`", file.display());
            }
        }
    }
}

/// What makes answers: bounds, solvers, walks. A judge that used them would repeat their mistakes.
const MAKERS: [&str; 27] = [
    "crate::schedule",
    "crate::placement",
    "profile::pass",
    "strategy::Planner",
    "strategy::Best",
    "strategy::SpaceBound",
    "strategy::Training",
    "strategy::Division",
    "strategy::BatchEnergy",
    "strategy::roofline",
    "compare::outcome",
    "compare::sensitivities",
    "compare::operators_alone",
    "EstimateTable",
    "tensor_core::best",
    "tensor_core::search",
    "search::walk",
    "search::evaluator",
    "search::survey",
    "chips::survey",
    "chips::ChipEvaluator",
    "boxes::walk",
    "search::outcome(",
    "search::Setup",
    "search::Evaluator",
    "search::Survey",
    "search::Walk",
];

#[test]
fn the_judge_uses_nothing_that_makes_answers() {
    for file in rust_files_of("certify") {
        // What only a solver can refute is asked of the solvers, and of them alone.
        if file.ends_with("deep.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for maker in MAKERS {
            assert!(!text.contains(maker), "{}: `certify` must not use {maker}", file.display());
        }
    }
}

#[test]
fn every_module_of_the_library_is_a_room() {
    let library = fs::read_to_string("src/lib.rs").unwrap();
    for module in library.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
        assert!(ROOMS.contains(&module.trim_end_matches(';')), "{module} is not a room");
    }
}

#[test]
fn files_can_be_read_in_one_sitting() {
    for file in all_rust_files() {
        let n_lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(n_lines <= 700, "{} has {n_lines} lines: look for the seam", file.display());
    }
}

#[test]
fn nothing_unwraps_outside_tests() {
    for file in all_rust_files() {
        let text = fs::read_to_string(&file).unwrap();
        if text.contains("\n#![cfg(test)]\n") {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap();
        assert!(!code.contains(".unwrap()"), "{}: say why with `expect`", file.display());
    }
}

#[test]
fn file_names_say_what_is_inside() {
    for file in all_rust_files() {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let banned = ["utils", "helpers", "common", "misc", "manager", "data", "info"];
        assert!(!banned.contains(&stem), "{}", file.display());
    }
}

#[test]
fn only_the_store_opens_files_and_nothing_below_the_doors_prints_or_reads_the_clock() {
    let everywhere = ["println!", "print!(", "Instant::now", "SystemTime", "io::stdout"];
    for file in rust_files(Path::new("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let code: String =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for banned in everywhere {
            assert!(!code.contains(banned), "{}: {banned} belongs to a door", file.display());
        }
        let opens = code.contains("fs::") && !file.starts_with("src/store");
        assert!(!opens, "{}: files are opened by `store`", file.display());
    }
}

#[test]
fn the_library_needs_nothing_that_only_a_door_needs() {
    let manifest = fs::read_to_string("Cargo.toml").unwrap();
    for door in ["clap", "ctrlc"] {
        let named = manifest.lines().any(|line| line.starts_with(door));
        assert!(!named, "{door} belongs to a door, not to the library");
    }
}

/// The library and its doors.
fn all_rust_files() -> Vec<PathBuf> {
    ["src", "cli/src", "python/src"]
        .into_iter()
        .flat_map(|folder| rust_files(Path::new(folder)))
        .collect()
}

fn rust_files_of(room: &str) -> Vec<PathBuf> {
    let single = PathBuf::from(format!("src/{room}.rs"));
    if single.exists() { vec![single] } else { rust_files(&Path::new("src").join(room)) }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
