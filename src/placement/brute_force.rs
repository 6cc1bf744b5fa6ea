//! The slow obvious version: every strategy is written down and costed by definition.

#![cfg(test)]

use super::Found;
use super::Problem;
use super::Rank;
use super::noise::Noise;
use super::solve;
use crate::hardware::network::Level;
use crate::hardware::network::Levels;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::network::Torus;
use crate::plan::Answer;
use crate::plan::Edge;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Links;
use crate::plan::PerParameter;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::plan::Units;
use crate::plan::check::placement::check;
use crate::plan::cost;
use crate::plan::simulate;
use crate::units::Bandwidth;
use crate::units::Time;

/// The least rank over every number of pipelines and every way to cut.
fn brute_force(problem: &Problem) -> Option<Rank> {
    let Problem { profile, job, recompute, .. } = *problem;
    let mut best = None;
    for pipeline in every_pipeline(profile) {
        if !problem.stages.contains(&pipeline.n_stages()) {
            continue;
        }
        for data_parallel in problem.data_parallel.clone() {
            let placement = Placement { data_parallel, recompute, pipeline: pipeline.clone() };
            let cost = cost(profile, job, &placement);
            let memory = u128::from(job.memory);
            let fits = cost.stages.iter().all(|stage| stage.memory.total() <= memory);
            if fits && cost.devices <= job.devices && data_parallel <= job.micro_batches {
                let stages = pipeline.n_stages();
                let rank = Rank { time: cost.time_per_batch, devices: cost.devices, stages };
                best = Some(best.map_or(rank, |best: Rank| best.min(rank)));
            }
        }
    }
    best
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
    recompute: Recompute,
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
            activations: noise.below(12),
            tensor_parallel: all_wide || noise.one_in(2),
            collectives: 0,
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
            edges.push(Edge { from: to - 1, to, size: size(noise) });
        }
    }
    if branches || noise.one_in(3) {
        for _ in 0..=noise.below(n as u64) {
            let to = usize::try_from(1 + noise.below(n as u64 - 1)).unwrap();
            let from = usize::try_from(noise.below(to as u64)).unwrap();
            edges.push(Edge { from, to, size: size(noise) });
        }
    }
    let tied = if noise.one_in(3) { 1 + noise.below(5) } else { 0 };
    let profile = Profile { width, kinds, sequence, ids: (0..).take(n).collect(), edges, tied };
    let time_model =
        if noise.one_in(2) { TimeModel::Published } else { TimeModel::OneForwardOneBackward };
    let job = Job {
        micro_batches: 1 + noise.below(12),
        devices: 1 + noise.below(14),
        memory: 10 + noise.below(200),
        links: links(noise),
        per_parameter: PerParameter {
            weight: 1,
            gradient: 1 + noise.below(2),
            state: noise.below(2),
            step_per_gibi: noise.below(3) << 30,
        },
        time_model,
    };
    let recompute = Recompute::ALL[usize::try_from(noise.below(3)).unwrap()];
    Instance { profile, job, recompute }
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
    let Instance { profile, job, recompute } = instance;
    job.validate(profile).unwrap();
    let problem = Problem::new(profile, job, *recompute);
    let found = solve(&problem, None).unwrap();
    let expected = brute_force(&problem);
    let rank = found.as_ref().map(|found| found.rank);
    assert_eq!(rank, expected, "{profile:?} {job:?} {recompute:?}");
    let Some(Found { rank, placement }) = found else { return false };
    let cost = cost(profile, job, &placement);
    assert_eq!(cost.time_per_batch, rank.time, "{profile:?} {job:?} {recompute:?}");
    let played = simulate(&cost, |_| ()).expect("few passes");
    assert_eq!(Answer::new(profile, job, &placement).simulated, Some(played.time_per_batch));
    if cost.stages.len() == 1 && placement.data_parallel == 1 {
        assert_eq!(cost.bubble(), 0);
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
        proof: Proof::Given,
    };
    assert_eq!(check(&plan), Ok(()));
    // Nothing beats the best, and an incumbent that is worse does not hide it.
    assert_eq!(solve(&problem, Some(rank)).unwrap(), None);
    let worse = Rank { devices: rank.devices + 1, ..rank };
    assert_eq!(solve(&problem, Some(worse)).unwrap().map(|found| found.rank), Some(rank));
    assert!(super::bound(&problem).unwrap() <= rank.time);
    true
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
            let problem = Problem::new(&base.profile, job, base.recompute);
            solve(&problem, None).unwrap().map(|found| found.rank.time)
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
        let Instance { profile, job, recompute } = instance(&mut noise, 7, false);
        let data_parallel = 1 + noise.below(4);
        let n_stages = usize::try_from(1 + noise.below(4)).unwrap();
        let problem = Problem {
            data_parallel: data_parallel..=data_parallel,
            stages: n_stages..=n_stages,
            ..Problem::new(&profile, &job, recompute)
        };
        let found = solve(&problem, None).unwrap();
        assert_eq!(found.as_ref().map(|found| found.rank), brute_force(&problem));
        if let Some(found) = found {
            assert_eq!(found.placement.data_parallel, data_parallel);
            assert_eq!(found.placement.pipeline.n_stages(), n_stages);
        }
    }
}
