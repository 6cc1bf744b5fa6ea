//! How fast layers are scheduled, and by which means they are proved.
//!
//! Every layer kind and pass of the published models on designs spaced evenly through the
//! published space, each a problem of its own; then random layered graphs. Environment:
//! `DESIGNS` (default 1000) and `GRAPHS` (default 200) change the counts.

#[path = "../tests/schedule/instances.rs"]
mod instances;

use std::time::Duration;
use std::time::Instant;

use instances::Dice;
use phaze::estimate::EstimateTable;
use phaze::estimate::OpCosts;
use phaze::estimate::Options;
use phaze::hardware::Accelerator;
use phaze::hardware::Cluster;
use phaze::hardware::DesignSpace;
use phaze::input;
use phaze::input::hardware::preset;
use phaze::model::Attention;
use phaze::parallel;
use phaze::parallel::Setting;
use phaze::profile::pass::PassGraph;
use phaze::profile::pass::costs;
use phaze::schedule::Limits;
use phaze::schedule::ProofKind;
use phaze::schedule::Rule;
use phaze::schedule::solve;
use phaze::units::Bytes;

/// The models of the published evaluation, each with a width at which it is trained.
const MODELS: [(&str, u64); 8] = [
    ("bert-large", 1),
    ("megatron-bert", 8),
    ("gpt2-xl", 1),
    ("megatron-gpt2-2.5b", 4),
    ("megatron-gpt2-8.3b", 8),
    ("opt-350m", 1),
    ("llama2-7b", 1),
    ("gpt3-175b", 8),
];

fn main() {
    let passes = passes();
    let chips = chips(count("DESIGNS", 1000));
    println!("{} layer passes on {} designs", passes.len(), chips.len());
    let table = EstimateTable::new(Options::default());
    let [alone, own_kind] =
        [Rule::Alone, Rule::OwnKind].map(|rule| layers(&passes, &chips, &table, rule));
    let gains: Vec<f64> = alone.iter().zip(&own_kind).map(|(a, b)| *a as f64 / *b as f64).collect();
    let mean = gains.iter().map(|gain| gain.ln()).sum::<f64>() / gains.len() as f64;
    let most = gains.iter().copied().fold(1.0, f64::max);
    println!(
        "\nown-kind is faster than alone by {:.2} % (geometric mean), {:.1} % at most; on {} of {}",
        (mean.exp() - 1.0) * 100.0,
        (most - 1.0) * 100.0,
        gains.iter().filter(|&&gain| gain > 1.0).count(),
        gains.len(),
    );
    layered(count("GRAPHS", 200));
}

fn count(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

struct Pass {
    name: String,
    graph: PassGraph,
    ops: phaze::graph::Dag<phaze::model::op::Op>,
}

fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (name, tensor_parallel) in MODELS {
        let model = input::model(name).unwrap();
        let setting = Setting {
            micro_batch: 1,
            sequence: model.spec.max_sequence,
            tensor_parallel,
            sequence_parallel: false,
            attention: Attention::Recomputed,
            element: Bytes(2),
            ..Setting::ALONE
        };
        for kind in parallel::shard(&model, setting).unwrap().kinds {
            for (pass, ops) in [("forward", kind.forward), ("backward", kind.backward)] {
                let name = format!("{name} {} {pass}", kind.name);
                passes.push(Pass { name, graph: PassGraph::new(&ops), ops });
            }
        }
    }
    passes
}

/// Designs spaced evenly through the published space.
fn chips(n: usize) -> Vec<Accelerator> {
    let physics = preset("tpuv4-like", "").unwrap().physics;
    let (designs, _) = DesignSpace::published().designs(&physics);
    let n = n.min(designs.len());
    (0..n)
        .map(|i| &designs[i * designs.len() / n])
        .map(|candidate| candidate.build(candidate.design.hbm, &physics).unwrap())
        .collect()
}

/// One solved problem.
struct Record {
    took: Duration,
    proof: ProofKind,
    searched: bool,
    gap: f64,
    pass: usize,
    chip: usize,
}

/// Schedules every pass on every design; answers the times.
fn layers(passes: &[Pass], chips: &[Accelerator], table: &EstimateTable, rule: Rule) -> Vec<u64> {
    let network = preset("tpuv4-like", "").unwrap().physics.network;
    let cluster = Cluster { devices: 1024, network };
    let (mut records, mut times) = (Vec::new(), Vec::new());
    for (at, chip) in chips.iter().enumerate() {
        for (pass, Pass { graph, ops, .. }) in passes.iter().enumerate() {
            let costs: Vec<OpCosts> = costs(ops, chip, &cluster, table).unwrap();
            let clock = Instant::now();
            let found = graph.time(&costs, chip, rule, &Limits::DEFAULT);
            let took = clock.elapsed();
            times.push(found.time.0);
            let gap = found.proof.gap(found.time.0);
            let proof = found.proof.kind;
            records.push(Record { took, proof, searched: found.n_nodes > 0, gap, pass, chip: at });
        }
    }
    records.sort_by_key(|record| record.took);
    let at = |percent: usize| records[(records.len() - 1) * percent / 100].took;
    println!("\nrule {}: {} problems", rule.name(), records.len());
    println!("  median {:?}, 90 % {:?}, 99 % {:?}, most {:?}", at(50), at(90), at(99), at(100));
    for kind in [ProofKind::Bound, ProofKind::Search, ProofKind::None] {
        let n = records.iter().filter(|record| record.proof == kind).count();
        println!("  {:7} {n}", kind.name());
    }
    println!("  searched at all: {}", records.iter().filter(|record| record.searched).count());
    let open: Vec<&Record> = records.iter().filter(|record| record.gap > 0.0).collect();
    let worst = open.iter().map(|record| record.gap).fold(0.0, f64::max);
    println!("  with a gap: {}, the largest {:.4} %", open.len(), worst * 100.0);
    for record in records.iter().rev().take(5).chain(open.into_iter().take(5)) {
        let design = chips[record.chip].design();
        println!(
            "  {:?} gap {:.4} %: {} on {} tensor {}x{}, {} vector",
            record.took,
            record.gap * 100.0,
            passes[record.pass].name,
            design.tensor_cores,
            design.width,
            design.depth,
            design.vector_cores,
        );
    }
    times
}

/// Random layered graphs of 60 operators in rows of at most 6; with leaves, as weight gradients are.
fn layered(n: usize) {
    for leaves in [0, 20, 100] {
        let mut dice = Dice::new(60);
        let mut took: Vec<(Duration, f64)> = Vec::new();
        for _ in 0..n {
            let problem = instances::layered(&mut dice, 60, 6, leaves);
            let clock = Instant::now();
            let solved = solve(&problem, &Limits::DEFAULT);
            took.push((clock.elapsed(), solved.proof.gap(solved.makespan)));
        }
        took.sort_by_key(|(took, _)| *took);
        let second = Duration::from_secs(1);
        let within = took.iter().filter(|(took, gap)| *gap == 0.0 && *took <= second).count();
        let worst = took.iter().map(|(_, gap)| *gap).fold(0.0, f64::max);
        println!(
            "\nlayered, {leaves} % leaves: {within} of {n} proved within 1 s; median {:?}, most {:?}, \
             largest gap {:.2} %",
            took[n / 2].0,
            took[n - 1].0,
            worst * 100.0
        );
    }
}
