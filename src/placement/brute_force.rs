//! The slow obvious version: every strategy is written down and costed by definition.

#![cfg(test)]

use super::Choice;
use super::Choices;
use super::Found;
use super::Problem;
use super::Rank;
use super::Usage;
use super::fewest_devices;
use super::noise::Noise;
use super::solve;
use crate::hardware::network::Level;
use crate::hardware::network::Levels;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::network::Torus;
use crate::parallel::Order;
use crate::parallel::zero::Zero;
use crate::plan::Answer;
use crate::plan::Buckets;
use crate::plan::Edge;
use crate::plan::EndRules;
use crate::plan::Hiding;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Links;
use crate::plan::PassOrder;
use crate::plan::PerParameter;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageRules;
use crate::plan::StepStart;
use crate::plan::TimeModel;
use crate::plan::Units;
use crate::plan::check::placement::check;
use crate::plan::cost;
use crate::plan::simulate;
use crate::units::Bandwidth;
use crate::units::Time;

/// The least rank over every shape and every way to cut.
fn brute_force(problem: &Problem) -> Option<Rank> {
    let pipelines = every_pipeline(problem.profile);
    let shapes = pipelines.iter().flat_map(|pipeline| {
        let shapes = every_shape(problem, pipeline.n_stages());
        shapes.into_iter().map(move |shape| (pipeline, shape))
    });
    shapes.filter_map(|(pipeline, shape)| rank(problem, pipeline, shape)).min()
}

/// Every shape with so many virtual stages, written down without any shortcut.
fn every_shape(problem: &Problem, n_stages: usize) -> Vec<Shape> {
    let Problem { profile, job, choices } = *problem;
    let mut shapes = Vec::new();
    for chunks in (1..=n_stages).filter(|chunks| n_stages.is_multiple_of(*chunks)) {
        let ranks = n_stages / chunks;
        if !choices.ranks.contains(&ranks) || !choices.chunks.contains(&chunks) {
            continue;
        }
        for data_parallel in 1..=job.devices.min(job.micro_batches) {
            let used = data_parallel * ranks as u64 * profile.width * profile.context;
            let whole = used == job.devices && job.micro_batches.is_multiple_of(data_parallel);
            let unused = choices.usage == Usage::Whole && !whole;
            if unused || !choices.data_parallel.contains(&data_parallel) {
                continue;
            }
            let group = choices.group.unwrap_or(ranks as u64);
            let schedule = match chunks {
                1 => PassOrder::OneForwardOneBackward,
                _ => PassOrder::Interleaved { chunks, group },
            };
            let replicas = profile.most_replicas(data_parallel);
            for &zero in &choices.zero[usize::from(ranks > 1)] {
                let zero = if replicas == 1 { Zero::Nothing } else { zero };
                for &order in &choices.orders {
                    for recompute in every_recompute(problem, chunks) {
                        let shape = Shape {
                            data_parallel,
                            ranks,
                            schedule,
                            zero,
                            shards: None,
                            order,
                            recompute,
                        };
                        shapes.extend(Some(shape).filter(|shape| folds(profile, shape)));
                    }
                }
            }
        }
    }
    shapes
}

/// Whether every device has the same rank in both grids, counted device by device.
fn folds(profile: &Profile, shape: &Shape) -> bool {
    let Some(owners) = profile.expert_devices else { return true };
    let all = profile.width * profile.context * shape.data_parallel;
    let ranks = shape.ranks as u64;
    let ranks_inside = shape.order != Order::default();
    let of_layers = |device: u64| {
        let inside = if ranks_inside { profile.width * profile.context } else { all };
        device / inside % ranks
    };
    let of_experts = |device: u64| {
        let inside = if ranks_inside { owners } else { all };
        device / inside % ranks
    };
    all.is_multiple_of(owners) && (0..all * ranks).all(|at| of_layers(at) == of_experts(at))
}

fn every_recompute(problem: &Problem, chunks: usize) -> Vec<Recompute> {
    let one_by_one = problem.choices.equal_repeats || chunks > 1;
    let each = problem.choices.recompute.iter().flat_map(|&recompute| match recompute {
        Recompute::AsNeeded if one_by_one => {
            (0..=problem.profile.n_layers() as u64).map(Recompute::First).collect()
        }
        Recompute::Stage if chunks > 1 => Vec::new(),
        other => vec![other],
    });
    each.collect()
}

/// How good a cut is; `None` where it does not fit or cannot be run.
fn rank(problem: &Problem, pipeline: &Pipeline, shape: Shape) -> Option<Rank> {
    let Problem { profile, job, .. } = *problem;
    let micro_batches = job.micro_batches_per_pipeline(shape.data_parallel);
    shape.schedule.check(shape.ranks, micro_batches).ok()?;
    let cost = cost(profile, job, &Placement::of_shape(shape, pipeline.clone()));
    let memory = u128::from(job.memory);
    let fits = cost.ranks.iter().all(|rank| rank.memory.total() <= memory);
    let rank = Rank { devices: cost.devices, ..Rank::of(cost.time_per_batch, &shape, 1) };
    (fits && cost.devices <= job.devices).then_some(rank)
}

/// Every assignment of layers to stages, none empty, in which no edge runs back.
fn every_pipeline(profile: &Profile) -> Vec<Pipeline> {
    let n = profile.n_layers();
    if profile.is_chain() {
        let cuts = (0..1_usize << (n - 1)).map(|cuts| {
            let inner = (1..n).filter(|at| cuts >> (at - 1) & 1 == 1);
            Pipeline::of_chain(n, inner.chain([n]).collect()).unwrap()
        });
        return cuts.collect();
    }
    let mut found = Vec::new();
    for code in 0..n.pow(u32::try_from(n).unwrap()) {
        let stage_of: Vec<usize> =
            (0..n).map(|layer| code / n.pow(u32::try_from(layer).unwrap()) % n).collect();
        let n_stages = stage_of.iter().max().unwrap() + 1;
        let stages: Vec<Vec<usize>> = (0..n_stages)
            .map(|stage| (0..n).filter(|&layer| stage_of[layer] == stage).collect())
            .collect();
        let forward = profile.edges.iter().all(|edge| stage_of[edge.from] <= stage_of[edge.to]);
        found.extend(Pipeline::of_stages(n, &stages).filter(|_| forward));
    }
    found
}

struct Instance {
    profile: Profile,
    job: Job,
    choices: Choices,
}

fn instance(noise: &mut Noise, n_most: u64, branches: bool) -> Instance {
    let n = usize::try_from(2 + noise.below(n_most - 1)).unwrap();
    let width = 1 + noise.below(3);
    // Few kinds half of the time, as in real models.
    let n_kinds = if noise.one_in(2) { 1 + noise.below(3) } else { n as u64 };
    let all_wide = noise.one_in(2);
    let largest_time = [3, 20, 1000][usize::try_from(noise.below(3)).unwrap()];
    let kinds: Vec<LayerProfile> = (0..n_kinds)
        .map(|kind| LayerProfile {
            name: format!("kind {kind}"),
            forward: noise.below(largest_time),
            backward: noise.below(2 * largest_time),
            parameters: noise.below(12),
            expert_parameters: 0,
            activations: noise.below(12),
            tensor_parallel: all_wide || noise.one_in(2),
            collectives: 0,
            backward_collectives: 0,
            all_to_all: 0,
            working: 0,
            held_on: 0,
            repeatable: true,
        })
        .collect();
    let sequence = (0..n).map(|_| usize::try_from(noise.below(n_kinds)).unwrap()).collect();
    let crossing = 1 + noise.below(40);
    let same_crossing = noise.one_in(2);
    let size = |noise: &mut Noise| {
        if same_crossing { crossing } else { noise.below(1 + crossing) }
    };
    let mut edges: Vec<Edge> = Vec::new();
    for to in 1..n {
        if !branches || !noise.one_in(3) {
            edges.push(Edge::new(to - 1, to, size(noise)));
        }
    }
    if branches || noise.one_in(3) {
        for _ in 0..=noise.below(n as u64) {
            let to = usize::try_from(1 + noise.below(n as u64 - 1)).unwrap();
            let from = usize::try_from(noise.below(to as u64)).unwrap();
            edges.push(Edge::new(from, to, size(noise)));
        }
    }
    let tied = if noise.one_in(3) { 1 + noise.below(5) } else { 0 };
    let profile = Profile {
        width,
        context: 1,
        expert_devices: None,
        kinds,
        sequence,
        ids: (0..).take(n).collect(),
        edges,
        tied,
    };
    let time_model =
        if noise.one_in(2) { TimeModel::Published } else { TimeModel::OneForwardOneBackward };
    let job = Job {
        micro_batches: 1 + noise.below(12),
        devices: 1 + noise.below(14),
        memory: 10 + noise.below(200),
        installed: 300,
        links: links(noise),
        per_parameter: PerParameter {
            weight: 1,
            gradient: 1 + noise.below(2),
            exchanged: noise.one_in(3).then(|| 1 + noise.below(3)),
            state: noise.below(2),
            step_per_gibi: noise.below(3) << 30,
        },
        time_model,
        ends: EndRules::PLAIN,
    };
    let recompute = Recompute::ALL[usize::try_from(noise.below(3)).unwrap()];
    Instance { profile, job, choices: Choices::plain(recompute) }
}

/// Mostly flat links; some in nodes, where a larger group can be the faster one.
fn links(noise: &mut Noise) -> Links {
    let (kind, per_node, rate) = (noise.below(4), 1 + noise.below(6), 1 + noise.below(20));
    let per_tick = Time::PER_SECOND;
    let mut link = |rate: u64| Link {
        bandwidth: Bandwidth::bytes_per_second(per_tick * rate).unwrap(),
        latency: Time(noise.below(3)),
    };
    match kind {
        0 => {
            let (inside, between) = (link(4), link(1));
            Links::Network(Network::Levels(Levels::nodes(per_node, inside, between).unwrap()))
        }
        1 => Links::Network(Network::flat(link(2))),
        _ => Links::Rate { power: 0, rate, longest: 1 << 40 },
    }
}

/// Solves, compares with brute force, and has the answer checked and simulated.
fn agrees(instance: &Instance) -> bool {
    let Instance { profile, job, choices } = instance;
    job.validate(profile).unwrap();
    let problem = Problem { profile, job, choices };
    let found = solve(&problem, None).unwrap();
    assert_eq!(found.open, None, "small problems are compared in full");
    let found = found.best;
    let expected = brute_force(&problem);
    let rank = found.as_ref().map(|found| found.rank);
    let same = |rank: Option<Rank>| match job.time_model {
        // The published search knows of no further choices.
        TimeModel::Published => rank.map(|rank| Rank { choice: Choice::default(), ..rank }),
        TimeModel::OneForwardOneBackward => rank,
    };
    assert_eq!(same(rank), same(expected), "{profile:?} {job:?} {choices:?}");
    assert_eq!(super::fits(&problem), rank.is_some(), "{profile:?} {job:?} {choices:?}");
    let Some(Found { rank, placement }) = found else { return false };
    let cost = cost(profile, job, &placement);
    assert_eq!(cost.time_per_batch, rank.time, "{profile:?} {job:?} {choices:?}");
    if job.time_model == TimeModel::OneForwardOneBackward {
        let delay = StageRules::new(profile, job, placement.shape()).delay();
        let played = simulate(&cost, (placement.schedule, delay), |_| ()).expect("few passes");
        let played: Vec<u128> = played.finished.into_iter().map(u128::from).collect();
        assert_eq!(played, cost.finished, "what is computed is what is played");
    }
    let plan = Plan {
        schema: Plan::SCHEMA.into(),
        version: Plan::VERSION,
        name: String::new(),
        units: Units::physical(),
        layers: Vec::new(),
        question: None,
        training: None,
        job: job.clone(),
        profile: profile.clone(),
        answer: Answer::new(profile, job, &placement),
        proof: Proof::Optimal { space: None, open: None },
    };
    assert_eq!(check(&plan), Ok(()));
    // Nothing beats the best, and an incumbent that is worse does not hide it.
    assert_eq!(solve(&problem, Some(rank)).unwrap().best, None);
    let worse = Rank { devices: rank.devices + 1, ..rank };
    assert_eq!(solve(&problem, Some(worse)).unwrap().best.map(|found| found.rank), Some(rank));
    true
}

/// A plain chain in which every axis is free.
fn instance_of_axes(noise: &mut Noise) -> Instance {
    let mut base = instance(noise, 6, false);
    let n = base.profile.n_layers();
    let (size, differ) = (1 + noise.below(20), noise.one_in(3));
    let sizes = (1..n).map(|_| if differ { noise.below(2 * size) } else { size });
    let edges = (1..n).zip(sizes).map(|(to, size)| Edge::new(to - 1, to, size));
    base.profile.edges = edges.collect();
    base.profile.context = 1 + noise.below(2);
    if noise.one_in(3) {
        base.profile.expert_devices = Some([1, 2, 2, 3, 4, 8][noise.index(6)]);
        for kind in &mut base.profile.kinds {
            kind.expert_parameters = noise.below(1 + kind.parameters);
        }
    }
    for kind in &mut base.profile.kinds {
        kind.tensor_parallel = true;
        kind.working = noise.below(5);
        kind.repeatable = !noise.one_in(4);
        kind.collectives = noise.below(1 + kind.forward.min(kind.backward));
        kind.backward_collectives = noise.below(1 + kind.collectives);
    }
    let job = &mut base.job;
    job.time_model = TimeModel::OneForwardOneBackward;
    job.devices = 1 + noise.below(16);
    job.micro_batches = 1 + noise.below(12);
    job.memory = 5 + noise.below(120);
    let starts = [StepStart::OwnGradients, StepStart::AllGradients];
    let buckets = [
        Buckets::Stages,
        Buckets::Layers,
        Buckets::FirstRank { least: 8, per_replica: 2 },
        Buckets::Hidden { per_mille: 700 },
    ];
    let any = |noise: &mut Noise, n: usize| usize::try_from(noise.below(n as u64)).unwrap();
    let hiding = [Hiding::Own, Hiding::Longer][any(noise, 2)];
    job.ends =
        EndRules { step_start: starts[any(noise, 2)], buckets: buckets[any(noise, 4)], hiding };
    let first = Recompute::First(1 + noise.below(2));
    let recompute = [Recompute::None, Recompute::AsNeeded, first, Recompute::EVERY_LAYER];
    base.choices = Choices {
        chunks: 1..=1 + any(noise, 3),
        zero: [
            vec![Zero::Nothing, Zero::State, Zero::Gradients],
            [
                vec![Zero::Nothing],
                vec![Zero::Nothing, Zero::State],
                vec![Zero::State, Zero::Weights],
            ][any(noise, 3)]
            .clone(),
        ],
        orders: Order::MEGATRON.to_vec(),
        equal_repeats: noise.one_in(2),
        usage: if noise.one_in(2) { Usage::Whole } else { Usage::Any },
        ..Choices::plain(recompute[any(noise, 4)])
    };
    base
}

#[test]
fn every_axis_agrees_with_brute_force() {
    let mut noise = Noise(0xA7E5);
    let solved = (0..2500).filter(|_| agrees(&instance_of_axes(&mut noise))).count();
    assert!((600..2400).contains(&solved), "{solved} of 2500 have a placement");
}

#[test]
fn the_fewest_devices_are_those_of_trying_all_numbers() {
    let mut noise = Noise(0xF17);
    let mut met = [0; 2];
    for _ in 0..600 {
        let Instance { profile, job, choices } = instance_of_axes(&mut noise);
        if job.time_model == TimeModel::Published {
            continue;
        }
        let free = Choices { usage: Usage::Any, legal: None, chunks: 1..=1, ..choices };
        let most = 24;
        let fit_on = |devices: u64| {
            let job = Job { devices, ..job.clone() };
            brute_force(&Problem { profile: &profile, job: &job, choices: &free }).is_some()
        };
        let tried = (1..=most).find(|&devices| fit_on(devices));
        let found = fewest_devices(&Problem { profile: &profile, job: &job, choices: &free });
        let found = found.filter(|&devices| devices <= most);
        assert_eq!(found, tried, "{profile:?} {job:?} {free:?}");
        met[usize::from(profile.expert_devices.is_some())] += u32::from(tried.is_some());
    }
    assert!(met.iter().all(|&met| met > 50), "{met:?} with and without experts");
}

#[test]
fn chains_agree_with_brute_force() {
    let mut noise = Noise(0x5EED);
    let solved = (0..6000).filter(|_| agrees(&instance(&mut noise, 8, false))).count();
    assert!((2000..5500).contains(&solved), "{solved} of 6000 have a placement");
}

/// Nodes of up to 24 devices, three levels or a torus, inside of which links may also be the slower
/// ones, with more devices and micro-batches than layers.
fn instance_on_levels_or_torus(noise: &mut Noise) -> Instance {
    let mut base = instance(noise, 5, false);
    let mut link = || Link {
        bandwidth: Bandwidth::bytes_per_second(Time::PER_SECOND * (1 + noise.below(6))).unwrap(),
        latency: Time(noise.below(4)),
    };
    let (inside, between, beyond) = (link(), link(), link());
    let network = match noise.below(4) {
        0 | 1 => Network::Levels(Levels::nodes(1 + noise.below(24), inside, between).unwrap()),
        2 => {
            let sizes = [Some(1 + noise.below(6)), Some(1 + noise.below(5)), None];
            let links = sizes.into_iter().zip([inside, between, beyond]);
            let levels: Vec<Level> = links.map(|(units, link)| Level::new(units, link)).collect();
            Network::Levels(Levels::new(&levels).unwrap())
        }
        _ => {
            let dims = [2 + noise.below(4), 2 + noise.below(4), 2 + noise.below(3)];
            Network::Torus(Torus::new(&dims, inside).unwrap())
        }
    };
    base.job.links = Links::Network(network);
    base.job.devices = 1 + noise.below(90);
    base.job.micro_batches = 1 + noise.below(120);
    base
}

#[test]
fn chains_on_levels_and_torus_agree_with_brute_force() {
    let mut noise = Noise(0x0DE5);
    let solved = (0..1500).filter(|_| agrees(&instance_on_levels_or_torus(&mut noise))).count();
    assert!((500..1450).contains(&solved), "{solved} of 1500 have a placement");
}

#[test]
fn branching_layers_agree_with_brute_force() {
    let mut noise = Noise(0x00B4_A9C4);
    let solved = (0..500).filter(|_| agrees(&instance(&mut noise, 5, true))).count();
    assert!((100..490).contains(&solved), "{solved} of 500 have a placement");
}

#[test]
fn more_devices_memory_or_bandwidth_or_fewer_micro_batches_is_never_slower() {
    let mut noise = Noise(0x1A75);
    for _ in 0..1500 {
        let base = instance(&mut noise, 10, false);
        let time = |job: &Job| {
            let problem = Problem { profile: &base.profile, job, choices: &base.choices };
            solve(&problem, None).unwrap().best.map(|found| found.rank.time)
        };
        let Some(before) = time(&base.job) else { continue };
        let Links::Rate { power, rate, longest } = base.job.links else { continue };
        let better = [
            Job { devices: base.job.devices + 1, ..base.job.clone() },
            Job { memory: base.job.memory + 7, ..base.job.clone() },
            Job { links: Links::Rate { power, rate: rate + 3, longest }, ..base.job.clone() },
            Job { micro_batches: (base.job.micro_batches - 1).max(1), ..base.job.clone() },
        ];
        for job in better {
            let after = time(&job).expect("what fitted still fits");
            assert!(after <= before, "{:?} {job:?}", base.profile);
        }
    }
}

#[test]
fn fixed_degrees_are_kept() {
    let mut noise = Noise(0xF1ED);
    for _ in 0..500 {
        let Instance { profile, job, choices } = instance(&mut noise, 7, false);
        let data_parallel = 1 + noise.below(4);
        let n_stages = usize::try_from(1 + noise.below(4)).unwrap();
        let choices = Choices {
            data_parallel: data_parallel..=data_parallel,
            ranks: n_stages..=n_stages,
            ..choices
        };
        let problem = Problem { profile: &profile, job: &job, choices: &choices };
        let found = solve(&problem, None).unwrap().best;
        let time = |rank: Rank| (rank.time, rank.devices, rank.stages);
        let expected = brute_force(&problem).map(time);
        assert_eq!(found.as_ref().map(|found| time(found.rank)), expected);
        if let Some(found) = found {
            assert_eq!(found.placement.data_parallel, data_parallel);
            assert_eq!(found.placement.pipeline.n_stages(), n_stages);
        }
    }
}
