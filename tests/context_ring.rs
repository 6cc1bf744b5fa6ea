//! A ring written as three runs of blocks takes as long as one with a step for each block.

use phaze::graph::Dag;
use phaze::model::op::CoreKind;
use phaze::model::op::Op;
use phaze::model::op::Work;
use phaze::parallel::ContextKind;
use phaze::parallel::LayerShare;
use phaze::parallel::Setting;
use phaze::parallel::shard;
use phaze::plan::schedule::Cores;
use phaze::plan::schedule::Problem;
use phaze::plan::schedule::Rule;
use phaze::schedule::Limits;
use phaze::schedule::ProofKind;
use phaze::schedule::Task;
use phaze::schedule::solve;

fn layer(devices: u64) -> LayerShare {
    let model = phaze::input::model("llama2-7b").unwrap();
    let setting = Setting { sequence: 16 * 9 * 5 * 7 * 2, context: devices, ..Setting::ALONE };
    let setting = Setting { context_kind: ContextKind::Ring, ..setting };
    shard(&model, setting).unwrap().kinds.swap_remove(1)
}

/// The least time on one tensor core and a network.
fn least(tasks: Dag<Task>) -> u64 {
    let cores = Cores { tensor: 1, vector: 1 };
    let solved = solve(&Problem { tasks, cores, rule: Rule::OwnKind }, &Limits::DEFAULT);
    assert_ne!(solved.proof.kind, ProofKind::None);
    solved.makespan
}

fn task(core: CoreKind, time: u64) -> Task {
    Task { core, alone: time, spread: time }
}

/// The tasks of a pass in which messages of the ring take `message` each and the products of queries
/// and keys and their gradients what `block` says for one block.
fn tasks(pass: &Dag<Op>, message: u64, block: impl Fn(&str) -> u64) -> Dag<Task> {
    let flops = |op: &Op| op.flops().0;
    let products = pass.nodes().iter().filter(|op| op.name.starts_with("scores_"));
    let smallest = products.map(flops).min().unwrap();
    let mut all = Dag::default();
    for id in pass.ids() {
        let op = pass.node(id);
        let time = match &op.work {
            Work::Collective(collective) => message * collective.times,
            Work::Matmul { .. } if op.name.starts_with("scores_") => {
                block(&op.name) * u64::try_from(flops(op) / smallest).unwrap()
            }
            _ => 0,
        };
        let core = if op.core() == CoreKind::Network { op.core() } else { CoreKind::Tensor };
        all.add(task(core, time), pass.predecessors(id));
    }
    all
}

#[test]
fn forward_a_ring_takes_its_first_block_and_then_the_longer_of_block_and_message() {
    for devices in [2, 3, 4, 5, 9] {
        let layer = layer(devices);
        for (x, y) in [(10, 0), (10, 3), (10, 10), (10, 17), (1, 30)] {
            let tasks =
                tasks(&layer.forward, y, |name| if name.starts_with("scores_") { x } else { 0 });
            assert_eq!(least(tasks), x + (devices - 1) * x.max(y), "{devices} {x} {y}");
        }
    }
}

/// Keys and values go round `devices` with a step for each block; `free` is the work on a block
/// that needs nothing but it, `added` that on its gradients, which joins those that arrive.
fn step_by_step(devices: u64, message: u64, free: u64, added: u64) -> Dag<Task> {
    let mut all = Dag::default();
    let (mut keys, mut gradients) = (None, None);
    for block in 1..=devices {
        let arrived: Vec<_> = keys.into_iter().collect();
        if block < devices {
            keys = Some(all.add(task(CoreKind::Network, message), &arrived));
        }
        let work = all.add(task(CoreKind::Tensor, free), &arrived);
        let before: Vec<_> = [Some(work), gradients].into_iter().flatten().collect();
        let sum = all.add(task(CoreKind::Tensor, added), &before);
        gradients = Some(all.add(task(CoreKind::Network, message), &[sum]));
    }
    all
}

#[test]
fn backward_a_ring_takes_as_long_as_step_by_step() {
    for devices in [2, 3, 4, 5, 9] {
        let layer = layer(devices);
        for (message, free, added) in
            [(0, 6, 4), (3, 6, 4), (5, 6, 4), (8, 6, 4), (10, 6, 4), (14, 6, 4), (40, 6, 4)]
        {
            let runs = tasks(&layer.backward, message, |name| match name {
                _ if name.ends_with("again") => free,
                _ if name.contains(".d_k") => added,
                _ => 0,
            });
            let expected = least(step_by_step(devices, message, free, added));
            assert_eq!(least(runs), expected, "{devices} devices, {message} {free} {added}");
        }
    }
}
