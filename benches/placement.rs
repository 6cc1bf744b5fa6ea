//! How long placements take: the realistic golden instances in both time models beside what the
//! published program took, and how time grows with devices and layers.

use std::io::Read;
use std::time::Instant;

use flate2::read::GzDecoder;
use phaze::input::profile::profile;
use phaze::placement::Choices;
use phaze::placement::Problem;
use phaze::placement::best_of;
use phaze::placement::solve;
use phaze::plan::Edge;
use phaze::plan::EndRules;
use phaze::plan::Job;
use phaze::plan::LayerProfile;
use phaze::plan::Links;
use phaze::plan::PerParameter;
use phaze::plan::Profile;
use phaze::plan::Recompute;
use phaze::plan::TimeModel;

const MODELS: [TimeModel; 2] = [TimeModel::Published, TimeModel::OneForwardOneBackward];

fn main() {
    golden();
    println!();
    growth();
    println!();
    search_like();
}

/// The least of several runs, in microseconds.
fn best(runs: usize, mut run: impl FnMut()) -> f64 {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    });
    times.fold(f64::INFINITY, f64::min)
}

fn golden() {
    let path = "tests/golden/placement/realistic.jsonl.gz";
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the golden file is part of the project");
    GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    println!(
        "{:<52}{:>12}{:>12}{:>14}{:>12}",
        "instance", "published", "1f1b", "artifact", "ratio"
    );
    let mut slowest = [0.0_f64; 2];
    for line in text.lines() {
        let known: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        let name = known["name"].as_str().unwrap_or("?");
        let artifact = known["artifact_cpu_seconds"].as_f64().unwrap_or(f64::NAN) * 1e6;
        let file = profile(line, name).expect("golden profiles are sound");
        let mut times = [0.0; 2];
        for (slot, model) in MODELS.into_iter().enumerate() {
            let profiled = file.scaled(model, None).expect("golden profiles are sound");
            let choices = Choices::plain(file.recompute);
            times[slot] = best(20, || {
                let problems: Vec<Problem> = profiled
                    .profiles
                    .iter()
                    .map(|profile| Problem { profile, job: &profiled.job, choices: &choices })
                    .collect();
                std::hint::black_box(best_of(&problems).expect("chains do not branch"));
            });
            slowest[slot] = slowest[slot].max(times[slot]);
        }
        println!(
            "{name:<52}{:>9.1} µs{:>9.1} µs{:>11.0} µs{:>11.0}x",
            times[0],
            times[1],
            artifact,
            artifact / times[0]
        );
    }
    println!("{:<52}{:>9.1} µs{:>9.1} µs", "slowest", slowest[0], slowest[1]);
}

/// An embedding, identical layers and a head, as models have them.
fn chain(n_layers: usize, width: u64) -> Profile {
    let kind = |name: &str, forward: u64, parameters: u64, activations: u64| LayerProfile {
        name: name.into(),
        forward,
        backward: 2 * forward,
        parameters,
        expert_parameters: 0,
        activations,
        tensor_parallel: true,
        collectives: 0,
        backward_collectives: 0,
        all_to_all: 0,
        working: 0,
        held_on: 0,
        repeatable: name == "transformer",
    };
    let last = n_layers - 1;
    let place = |i: usize| if i == 0 { 0 } else { 1 + usize::from(i == last) };
    Profile {
        width,
        context: 1,
        expert_devices: None,
        kinds: vec![
            kind("embedding", 40_000_000, 600_000_000 / width, 50_000_000),
            kind("transformer", 9_000_000_000 / width, 1_800_000_000 / width, 800_000_000),
            kind("head", 7_000_000_000 / width, 600_000_000 / width, 400_000_000),
        ],
        sequence: (0..n_layers).map(place).collect(),
        ids: (0..n_layers).map(|i| i64::try_from(i).unwrap_or(0) - 1).collect(),
        edges: (1..n_layers).map(|to| Edge::new(to - 1, to, 50_331_648)).collect(),
        tied: 0,
    }
}

fn job(devices: u64, micro_batches: u64, time_model: TimeModel) -> Job {
    Job {
        micro_batches,
        devices,
        memory: 80 << 30,
        installed: 80 << 30,
        links: Links::Rate { power: 3, rate: 50, longest: u64::MAX },
        per_parameter: PerParameter {
            weight: 2,
            gradient: 4,
            exchanged: None,
            state: 12,
            step_per_gibi: 25_000_000,
        },
        time_model,
        ends: EndRules::PLAIN,
    }
}

fn solving(profile: &Profile, job: &Job, recompute: Recompute) -> f64 {
    let choices = Choices::plain(recompute);
    let problem = Problem { profile, job, choices: &choices };
    best(3, || {
        std::hint::black_box(solve(&problem, None).expect("chains do not branch"));
    })
}

fn growth() {
    println!("growth: a GPT-3-like chain at width 8, recompute full, 4,096 micro-batches");
    println!("{:>8}{:>10}{:>16}{:>16}", "layers", "devices", "published", "1f1b");
    let sizes = [98, 256, 512, 1000].map(|n| (n, 1024)).into_iter();
    for (n_layers, devices) in
        sizes.chain([4096, 16_384, 65_536].map(|k| (98, k))).chain([(1000, 65_536)])
    {
        let profile = chain(n_layers, 8);
        let [published, ours] =
            MODELS.map(|model| solving(&profile, &job(devices, 4096, model), Recompute::Full));
        println!("{n_layers:>8}{devices:>10}{published:>13.1} µs{ours:>13.1} µs");
    }
}

fn search_like() {
    println!("one design of a search: 98 layers, 1,024 devices, 1f1b, each width and recompute");
    println!("{:>8}{:>12}{:>14}{:>14}", "width", "recompute", "solve", "with best");
    let model = TimeModel::OneForwardOneBackward;
    let job = job(1024, 4096, model);
    let profiles = [1, 2, 4, 8].map(|width| chain(98, width));
    let choices = [Recompute::None, Recompute::AsNeeded, Recompute::Stage].map(Choices::plain);
    let problems: Vec<Problem> = profiles
        .iter()
        .flat_map(|profile| choices.iter().map(move |choices| (profile, choices)))
        .map(|(profile, choices)| Problem { profile, job: &job, choices })
        .collect();
    let winner = best_of(&problems).expect("chains do not branch").map(|(_, found)| found.rank);
    for problem in &problems {
        let solved = best(5, || {
            std::hint::black_box(solve(problem, None).expect("chains do not branch"));
        });
        let cut_off = best(5, || {
            std::hint::black_box(solve(problem, winner).expect("chains do not branch"));
        });
        println!(
            "{:>8}{:>12}{solved:>11.1} µs{cut_off:>11.1} µs",
            problem.profile.width,
            problem.choices.recompute[0].to_string()
        );
    }
    let all = best(5, || {
        std::hint::black_box(best_of(&problems).expect("chains do not branch"));
    });
    println!("all together {all:.1} µs");
}
