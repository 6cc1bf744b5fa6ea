//! How close predictions are to the measured runs that come with phaze: figures that hold, and that
//! fail when we drift.

use std::path::Path;

use phaze::input::InputError;
use phaze::input::runs::PUBLISHED;
use phaze::input::runs::RunTable;
use phaze::input::runs::read;
use phaze::input::source::no_files;
use phaze::measure::Bench;
use phaze::measure::Blocks;
use phaze::measure::Choice;
use phaze::measure::Figures;
use phaze::measure::Scalar;
use phaze::measure::Split;
use phaze::measure::Validation;
use phaze::measure::on_a_line;
use phaze::measure::validate;

fn published() -> RunTable {
    let (file, text) = PUBLISHED;
    read(text, file, &no_files).expect("the heading is known")
}

fn bench(without: &[&str]) -> Bench {
    let terms = phaze::measure::Term::ALL;
    let without = without
        .iter()
        .map(|name| terms.iter().find(|(known, _)| known == name).expect("there is such a term").1);
    Bench::new(published().runs, &without.collect::<Vec<_>>())
}

fn of_set(bench: &Bench, sets: &[&str]) -> Vec<usize> {
    let runs = bench.runs.iter().enumerate();
    runs.filter(|(_, one)| sets.contains(&one.run.set.as_str())).map(|(at, _)| at).collect()
}

fn one_scalar() -> Choice {
    Choice::Given(vec![Scalar::Matmul])
}

/// Checks that errors of time are within these, and at most 0.8 of the better baseline's.
fn within(title: &str, found: &Validation, mean: f64, max: f64) {
    let time = found.time.as_ref().expect("there are times");
    println!("{title}: mean {:.4} of {mean}, max {:.4} of {max}", time.mean, time.max);
    assert!(time.mean <= mean, "{title}: mean {}", time.mean);
    assert!(time.max <= max, "{title}: max {}", time.max);
    for baseline in found.baselines.iter().flatten() {
        assert!(time.mean <= 0.8 * baseline.mean, "{title}: a baseline has {}", baseline.mean);
    }
}

#[test]
fn every_published_run_is_read_and_predicted() {
    let table = published();
    assert!(table.refused.is_empty(), "{:?}", table.refused);
    let bench = bench(&[]);
    assert_eq!((bench.runs.len(), bench.left_out.len()), (42, 0));
}

#[test]
fn runs_on_a100_are_predicted_from_each_other() {
    let bench = bench(&[]);
    let across = Blocks::AcrossStacks;
    let [korthikanti, sc21] = ["korthikanti", "sc21"].map(|set| of_set(&bench, &[set]));
    let both = of_set(&bench, &["korthikanti", "sc21"]);
    let usual = Choice::Usual;
    let own = validate(&bench, &korthikanti, &Split::InSample, Blocks::ByStack, &usual);
    within("korthikanti in sample", &own, 0.03, 0.065);
    let from = Split::From(sc21.clone());
    let found = validate(&bench, &korthikanti, &from, across, &usual);
    within("korthikanti from sc21", &found, 0.04, 0.075);
    let from = Split::From(korthikanti);
    let found = validate(&bench, &sc21, &from, across, &usual);
    within("sc21 from korthikanti", &found, 0.045, 0.09);
    let found = validate(&bench, &both, &Split::LeaveOneModelOut, across, &usual);
    within("both, models left out", &found, 0.04, 0.08);
}

#[test]
fn runs_in_eight_bits_on_h100_are_predicted_with_one_scalar() {
    let bench = bench(&[]);
    let nemo = of_set(&bench, &["nemo-24.07"]);
    let left_out = Split::LeaveOneModelOut;
    let found = validate(&bench, &nemo, &left_out, Blocks::ByStack, &one_scalar());
    within("nemo-24.07, models left out", &found, 0.045, 0.10);
}

#[test]
fn time_and_memory_on_b200_are_predicted_and_ranked() {
    let bench = bench(&[]);
    let runs = of_set(&bench, &["simumax-b200-70b"]);
    let found = validate(&bench, &runs, &Split::InSample, Blocks::ByStack, &one_scalar());
    within("simumax-b200-70b in sample", &found, 0.065, 0.20);
    let two = Choice::Given(vec![Scalar::Matmul, Scalar::Collective]);
    let started = validate(&bench, &runs, &Split::InSample, Blocks::ByStack, &two);
    within("simumax-b200-70b in sample, two scalars", &started, 0.035, 0.10);
    let memory: &Figures = found.memory.as_ref().expect("memory was measured");
    assert!(memory.mean <= 0.008 && memory.max <= 0.01, "{} {}", memory.mean, memory.max);
    let rank = found.time.as_ref().and_then(|time| time.rank).expect("twelve runs of one model");
    assert!(rank.spearman >= 0.95 && rank.regret <= 0.01 && rank.concordance >= 0.95, "{rank:?}");
}

#[test]
fn runs_that_nothing_was_fitted_to_are_predicted_from_others_of_their_stack() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/validation");
    let reader = |path: &Path| {
        let name = path.file_name().expect("a model is a file");
        Ok(std::fs::read_to_string(folder.join(name)).expect("it is beside the runs"))
    };
    let text = reader(Path::new("b200_held_out.csv")).unwrap();
    let held_out = read(&text, "b200_held_out.csv", &reader).expect("the heading is known");
    assert!(held_out.refused.is_empty(), "{:?}", held_out.refused);
    let mut runs = published().runs;
    runs.extend(held_out.runs);
    let bench = Bench::new(runs, &[]);
    let from = Split::From(of_set(&bench, &["simumax-b200-70b"]));
    for (set, n, mean, max) in
        [("simumax-b200-405b", 12, 0.035, 0.06), ("simumax-b200-long", 7, 0.065, 0.08)]
    {
        let on = of_set(&bench, &[set]);
        assert_eq!(on.len(), n, "{set}");
        let found = validate(&bench, &on, &from, Blocks::AcrossStacks, &one_scalar());
        within(set, &found, mean, max);
        let memory = found.memory.as_ref().expect("memory was measured");
        assert!(memory.mean <= 0.015 && memory.max <= 0.025, "{set}: {memory:?}");
    }
}

#[test]
fn what_a_term_is_worth_is_seen_without_it() {
    let whole = bench(&[]);
    let both = ["korthikanti", "sc21"];
    let mean = |bench: &Bench| {
        let at = of_set(bench, &both);
        let split = Split::LeaveOneModelOut;
        let found = validate(bench, &at, &split, Blocks::AcrossStacks, &Choice::Usual);
        found.time.expect("there are times").mean
    };
    let all = mean(&whole);
    for term in ["recompute", "bubble"] {
        let lacking = mean(&bench(&[term]));
        assert!(lacking > all + 0.005, "without {term}: {lacking}, with it {all}");
    }
}

#[test]
fn a_fit_is_the_same_every_time() {
    let fit = || {
        let bench = bench(&[]);
        let at = of_set(&bench, &["nemo-24.07"]);
        bench.fit(&at, &[Scalar::Matmul, Scalar::Memory], phaze::measure::Ranges::Found)
    };
    assert_eq!(fit(), fit());
}

#[test]
fn a_line_that_makes_no_sense_is_refused_alone() {
    let (_, text) = PUBLISHED;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let (heading, good) = (lines[0], lines[1]);
    let cases = [
        ("megatron-22b", "megatron-23b", "did you mean `megatron-22b`"),
        (
            ",8,4,4,2048,",
            ",16,4,4,2048,",
            "`devices = 16` is not tensor x context x pipeline x data = 8",
        ),
        (",1.42,", ",-1.42,", "`seconds = -1.42` is no measured figure"),
        (",full,", ",most,", "`recompute = most` is not known; allowed are none, selective, full"),
        (
            ",8,4,4,2048,",
            ",8,4,3,2048,",
            "`global_batch = 4` is no multiple of micro_batch x data = 3",
        ),
        (",a100-80g,", ",a100,", "unknown hardware `a100`"),
        (",1.42,,", ",,,", "`seconds` is missing; give seconds, memory_gib or both"),
        (",full,", ",full,,", "another number of cells"),
    ];
    for (from, to, expected) in cases {
        assert!(good.contains(from), "{from}");
        let text = format!("{heading}\n{}\n{good}\n", good.replacen(from, to, 1));
        let table = read(&text, "my.csv", &no_files).unwrap();
        assert_eq!((table.runs.len(), table.refused.len()), (1, 1), "{to}");
        let said = table.refused[0].to_string();
        assert!(said.starts_with("my.csv: line 2: ") && said.contains(expected), "{said}");
    }
    for (heading, expected) in [
        (heading.replace(",tensor,", ",tensr,"), "unknown column `tensr`"),
        (heading.replace(",seconds,", ","), "`seconds` is missing"),
        (String::new(), "`heading` is missing"),
    ] {
        let said = read(&heading, "my.csv", &no_files).err().unwrap().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn models_and_hardware_beside_a_file_are_read() {
    let (_, text) = PUBLISHED;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let run = lines[1].replace("megatron-22b", "./m.json").replace("a100-80g", "./h.toml");
    let open = |path: &Path| -> Result<String, InputError> {
        let file = match path.to_str() {
            Some("runs/./m.json") => "inputs/models/megatron-22b.json",
            Some("runs/./h.toml") => "inputs/hardware/a100-80g.toml",
            other => panic!("{other:?} is asked for"),
        };
        Ok(std::fs::read_to_string(file).unwrap())
    };
    let table = read(&format!("{}\n{run}\n", lines[0]), "runs/my.csv", &open).unwrap();
    assert!(table.refused.is_empty(), "{:?}", table.refused);
    assert_eq!(table.runs[0].0.model.spec.layers, 48);
}

#[test]
fn times_on_a_line_were_computed() {
    let (_, text) = PUBLISHED;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let run = |batch: u64, seconds: f64| {
        lines[1].replacen(",8,4,4,", &format!(",8,{batch},4,"), 1).replacen(
            "1.42",
            &seconds.to_string(),
            1,
        )
    };
    let text = |times: [f64; 3]| {
        let runs = [run(4, times[0]), run(8, times[1]), run(16, times[2])];
        format!("{}\n{}\n", lines[0], runs.join("\n"))
    };
    let found = |times| {
        let table = read(&text(times), "my.csv", &no_files).unwrap();
        on_a_line(&table.runs.iter().map(|(run, _)| run).collect::<Vec<_>>())
    };
    let said = found([1.0, 1.9, 3.7]).expect("they are on a line");
    assert_eq!(said, ["my.csv: line 2", "my.csv: line 3", "my.csv: line 4"]);
    assert_eq!(found([1.0, 1.95, 3.7]), None);
    let published = published();
    for set in ["korthikanti", "sc21", "nemo-24.07", "simumax-b200-70b"] {
        let runs = published.runs.iter().map(|(run, _)| run);
        let own: Vec<_> = runs.filter(|run| run.set == set).collect();
        assert_eq!(on_a_line(&own), None, "{set}");
    }
}
