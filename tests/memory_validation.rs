//! Memory of a pipeline's first stage beside what Korthikanti et al. (2023) publish.

use phaze::hardware::network::Link;
use phaze::hardware::network::Network;
use phaze::input;
use phaze::model::Attention;
use phaze::model::Optimizer;
use phaze::parallel::Setting;
use phaze::parallel::shard;
use phaze::plan::Edge;
use phaze::plan::EndRules;
use phaze::plan::Job;
use phaze::plan::LayerProfile;
use phaze::plan::Links;
use phaze::plan::Memory;
use phaze::plan::PerParameter;
use phaze::plan::Pipeline;
use phaze::plan::Placement;
use phaze::plan::Profile;
use phaze::plan::Recompute;
use phaze::plan::TimeModel;
use phaze::plan::cost;
use phaze::units::Bandwidth;
use phaze::units::Bytes;
use phaze::units::Time;

/// One line of the published table.
struct Run {
    model: &'static str,
    layers: u64,
    width: u64,
    stages: u64,
    interleave: u64,
    batch: u64,
    micro_batch: u64,
    parameters_gib: f64,
    kept_gib: f64,
    kept_selective_gib: f64,
}

fn runs() -> Vec<Run> {
    let text = include_str!("validation/korthikanti_mlsys23.csv");
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let whole = |cell: usize| cells[cell].parse().unwrap();
            let real = |cell: usize| cells[cell].parse().unwrap();
            let model = match cells[0] {
                "22B" => "megatron-22b",
                "175B" => "gpt3-175b",
                "530B" => "megatron-530b",
                "1T" => "megatron-1t",
                other => panic!("{other} is no model that we have"),
            };
            Run {
                model,
                layers: whole(3),
                width: whole(5),
                stages: whole(6),
                interleave: whole(7),
                batch: whole(9),
                micro_batch: whole(10),
                parameters_gib: real(15),
                kept_gib: real(16),
                kept_selective_gib: real(17),
            }
        })
        .collect()
}

/// The memory of the first stage, of transformer layers alone.
fn first_stage(run: &Run, attention: Attention, sequence_parallel: bool) -> Memory {
    let model = input::model(run.model).unwrap();
    let setting = Setting {
        micro_batch: run.micro_batch,
        sequence: 2048,
        tensor_parallel: run.width,
        sequence_parallel,
        attention,
        element: Bytes(2),
        ..Setting::ALONE
    };
    let share = shard(&model, setting).unwrap();
    let layer = share.kinds.iter().find(|kind| kind.name == "transformer").unwrap();
    let n = usize::try_from(run.layers).unwrap();
    let profile = Profile {
        width: run.width,
        context: 1,
        expert_devices: None,
        kinds: vec![LayerProfile {
            name: layer.name.clone(),
            forward: 1,
            backward: 1,
            expert_parameters: 0,
            parameters: layer.parameters,
            activations: layer.kept.0,
            tensor_parallel: true,
            collectives: 0,
            backward_collectives: 0,
            all_to_all: 0,
            working: 0,
            held_on: 0,
            repeatable: true,
        }],
        sequence: vec![0; n],
        ids: (0..).take(n).collect(),
        edges: (1..n).map(|to| Edge::new(to - 1, to, layer.input.0)).collect(),
        tied: 0,
    };
    let optimizer = Optimizer::AdamMixed;
    let bandwidth = Bandwidth::bytes_per_second(1 << 40).unwrap();
    let job = Job {
        micro_batches: run.batch / run.micro_batch,
        devices: run.stages * run.width,
        memory: 80 << 30,
        installed: 80 << 30,
        links: Links::Network(Network::flat(Link { bandwidth, latency: Time(0) })),
        per_parameter: PerParameter {
            weight: optimizer.weight().0,
            gradient: optimizer.gradient().0,
            exchanged: None,
            state: optimizer.state().0,
            step_per_gibi: 0,
        },
        time_model: TimeModel::OneForwardOneBackward,
        ends: EndRules::PLAIN,
    };
    let each = n / usize::try_from(run.stages).unwrap();
    let ends = (1..=usize::try_from(run.stages).unwrap()).map(|stage| stage * each).collect();
    let pipeline = Pipeline::of_chain(n, ends).unwrap();
    let placement = Placement::plain(1, Recompute::None, pipeline);
    cost(&profile, &job, &placement).ranks[0].memory
}

fn gib(size: u128) -> f64 {
    size as f64 / (1_u64 << 30) as f64
}

fn agrees(found: f64, published: f64, what: &str) {
    let apart = (found / published - 1.0).abs();
    assert!(apart <= 0.01, "{what}: {found:.4} GiB, published {published:.4}");
}

#[test]
fn memory_of_published_shapes_agrees_within_one_percent() {
    let runs = runs();
    assert_eq!(runs.len(), 4);
    for run in &runs {
        // Interleaved stages keep more in flight; the model has none, so the figure is adjusted.
        let (p, m) = (run.stages as f64, run.interleave as f64);
        let interleaved = if run.interleave > 1 { 1.0 + (p - 1.0) / (p * m) } else { 1.0 };
        let stored = first_stage(run, Attention::Stored, false);
        agrees(gib(stored.total() - stored.activations), run.parameters_gib, run.model);
        agrees(gib(stored.activations) * interleaved, run.kept_gib, run.model);
        let selective = first_stage(run, Attention::Recomputed, true);
        agrees(gib(selective.activations) * interleaved, run.kept_selective_gib, run.model);
    }
}
