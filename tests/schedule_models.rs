//! Layers of the built-in models, scheduled on designs of the published space.

use phaze::estimate::EstimateTable;
use phaze::estimate::Options;
use phaze::graph::Dag;
use phaze::hardware::Accelerator;
use phaze::hardware::Cluster;
use phaze::hardware::DesignSpace;
use phaze::input;
use phaze::input::hardware::preset;
use phaze::model::Attention;
use phaze::model::op::Op;
use phaze::parallel;
use phaze::parallel::Setting;
use phaze::profile::pass::PassGraph;
use phaze::profile::pass::costs;
use phaze::schedule::Limits;
use phaze::schedule::ProofKind;
use phaze::schedule::Rule;
use phaze::schedule::Solver;
use phaze::units::Bytes;

/// The small solver proves blocks up to this size in a second or two, the native one most of twice
/// the size.
const LARGEST_BLOCK: usize = if cfg!(feature = "highs") { 20 } else { 9 };

/// What the integer program gets for a block: where the native solver does not end at once, it
/// does not end in a minute either.
const SECONDS: f64 = if cfg!(feature = "highs") { 2.0 } else { 60.0 };

/// Designs spaced evenly through the published space.
fn chips(n: usize) -> Vec<Accelerator> {
    let physics = preset("tpuv4-like", "").unwrap().physics;
    let (designs, _) = DesignSpace::published().designs(&physics);
    let spaced = (0..n).map(|i| &designs[i * designs.len() / n]);
    spaced.map(|candidate| candidate.build(candidate.design.hbm, &physics).unwrap()).collect()
}

/// Every pass of every kind of layer, by name.
fn passes(names: &[(&str, u64)]) -> Vec<(String, Dag<Op>)> {
    let mut passes = Vec::new();
    for &(name, tensor_parallel) in names {
        let model = input::model(name).unwrap();
        let setting = Setting {
            micro_batch: 1,
            sequence: model.spec.max_sequence,
            tensor_parallel,
            sequence_parallel: false,
            attention: Attention::Stored,
            element: Bytes(2),
            ..Setting::ALONE
        };
        for kind in parallel::shard(&model, setting).unwrap().kinds {
            passes.push((format!("{name} {} forward", kind.name), kind.forward));
            passes.push((format!("{name} {} backward", kind.name), kind.backward));
        }
    }
    passes
}

fn cluster() -> Cluster {
    Cluster { devices: 8, network: preset("tpuv4-like", "").unwrap().physics.network }
}

#[test]
fn the_integer_program_agrees_on_layers_of_models() {
    let table = EstimateTable::new(Options::default());
    let models = [("bert-large", 1), ("gpt2-xl", 1), ("llama2-7b", 1), ("gpt3-175b", 8)];
    let (mut n_compared, mut n_open) = (0, 0);
    for (name, ops) in passes(&models) {
        let graph = PassGraph::new(&ops);
        if graph.largest_block() > LARGEST_BLOCK {
            continue;
        }
        for chip in chips(12) {
            let costs = costs(&ops, &chip, &cluster(), &table).unwrap();
            for rule in [Rule::Alone, Rule::OwnKind] {
                let limits = Limits::DEFAULT;
                let exact = graph.schedule(&costs, &chip, rule, &limits);
                let solver = Solver::Ilp { seconds: SECONDS };
                let program = graph.schedule_with(&costs, &chip, rule, solver, &limits);
                let [program, exact] = [program.total, exact.total];
                assert_ne!(exact.proof.kind, ProofKind::None, "{name} {:?}", chip.design());
                if program.proof.kind == ProofKind::None {
                    n_open += 1;
                    assert!(program.proof.lower_bound <= exact.time.0);
                    assert!(exact.time <= program.time, "{name} {:?}", chip.design());
                } else {
                    n_compared += 1;
                    assert_eq!(program.time, exact.time, "{name} {:?}", chip.design());
                }
            }
        }
    }
    println!("{n_compared} are equal; {n_open} the integer program did not prove");
    assert!(n_compared >= 12 * 2 * 10, "only {n_compared} passes were small enough");
    assert!(n_open == 0 || cfg!(feature = "highs"), "{n_open} were not proved");
}

#[test]
fn every_layer_is_proved_and_running_alone_is_never_faster() {
    let table = EstimateTable::new(Options::default());
    let models = [("bert-large", 1), ("llama2-7b", 1), ("gpt3-175b", 8)];
    for (name, ops) in passes(&models) {
        let graph = PassGraph::new(&ops);
        for chip in chips(25) {
            let costs = costs(&ops, &chip, &cluster(), &table).unwrap();
            let [alone, own_kind] = [Rule::Alone, Rule::OwnKind].map(|rule| {
                let quick = graph.time(&costs, &chip, rule, &Limits::DEFAULT);
                let full = graph.schedule(&costs, &chip, rule, &Limits::DEFAULT);
                assert_eq!(quick, full.total, "{name}: both ways tell the same");
                assert_ne!(full.proof.kind, ProofKind::None, "{name} {:?}", chip.design());
                assert!(quick.time >= quick.makespan.max(quick.hbm).max(quick.glb));
                quick.makespan
            });
            assert!(own_kind <= alone, "{name} {:?}", chip.design());
        }
    }
}
