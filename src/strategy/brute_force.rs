//! The slow obvious version: every strategy is written down, cut in every way and priced by
//! definition; and the laws that bounds and prices must keep, on flat networks and on nodes.

#![cfg(test)]

use std::collections::BTreeMap;

use super::Best;
use super::Division;
use super::Figures;
use super::Planner;
use super::Price;
use super::Standing;
use super::Terms;
use super::Training;
use super::best::Timed;
use super::shardings;
use crate::estimate::EstimateTable;
use crate::estimate::Options;
use crate::hardware::Accelerator;
use crate::hardware::ChipEnergies;
use crate::hardware::Cluster;
use crate::hardware::Design;
use crate::hardware::Efficiency;
use crate::hardware::HbmBandwidth;
use crate::hardware::Physics;
use crate::hardware::Port;
use crate::hardware::network::Levels;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::network::Torus;
use crate::model::Attention;
use crate::model::Kernels;
use crate::model::Masked;
use crate::model::Module;
use crate::model::Modules;
use crate::model::Optimizer;
use crate::model::Precision;
use crate::model::dim::Dim;
use crate::model::families;
use crate::model::opaque::examples::behind_each_layer;
use crate::model::spec::Spec;
use crate::model::spec::examples;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::frameworks::CutShape;
use crate::parallel::frameworks::ExpertShape;
use crate::parallel::frameworks::Framework;
use crate::parallel::frameworks::PlanShape;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;
use crate::placement::Choices;
use crate::placement::Found;
use crate::placement::Problem;
use crate::placement::Usage;
use crate::placement::noise::Noise;
use crate::placement::refusal;
use crate::plan::Cost;
use crate::plan::CutSpace;
use crate::plan::Job;
use crate::plan::Limits;
use crate::plan::PassOrder;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::RankCost;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::plan::cost;
use crate::schedule::Rule;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Frequency;
use crate::units::Time;

/// A small model, a chip and terms to train it on.
pub(super) struct Instance {
    pub(super) physics: Physics,
    pub(super) chip: Accelerator,
    pub(super) terms: Terms,
    pub(super) training: Training,
}

fn network(noise: &mut Noise) -> Network {
    let link = |rate: u64, latency: u64| Link {
        bandwidth: Bandwidth::bytes_per_second(rate).unwrap(),
        latency: Time(latency),
    };
    let rate = noise.of(&[1_000_000, 100_000_000, 50_000_000_000]);
    let latency = noise.of(&[0, 1_000_000]);
    let kind = noise.below(6);
    if kind < 2 {
        return Network::flat(link(rate, latency));
    }
    if kind == 2 {
        let dims = [noise.of(&[2, 3, 4]), noise.of(&[2, 4])];
        return Network::Torus(Torus::new(&dims, link(rate, latency)).unwrap());
    }
    let per_node = noise.of(&[2, 3, 4, 5, 8]);
    let inside = link(rate * noise.of(&[1, 8, 1000]), latency);
    Network::Levels(Levels::nodes(per_node, inside, link(rate, latency)).unwrap())
}

fn physics(noise: &mut Noise) -> Physics {
    Physics {
        clock: Frequency::hertz(1_000_000_000).unwrap(),
        element_bytes: 2,
        partial_sum_bytes: 4,
        fill_and_drain: true,
        local: None,
        vector_local: None,
        glb: Port { read: noise.of(&[64, 4096]), write: noise.of(&[64, 4096]) },
        multicast: Some(16),
        hbm: HbmBandwidth::Fixed(
            Bandwidth::bytes_per_second(noise.of(&[1_000_000_000, 100_000_000_000])).unwrap(),
        ),
        energies: ChipEnergies { mac_fp8_fj: 400, ..ChipEnergies::PUBLISHED },
        hbm_fj: 250_000,
        network_fj_per_byte: 80_000,
        static_uw_per_mm2: noise.of(&[0, 150_000, 5_000_000]),
        beside_uw: noise.of(&[0, 4_000_000]),
        efficiency: efficiency(noise),
        efficiency_from: None,
        calibrations: Vec::new(),
        network: network(noise),
    }
}

pub(super) fn instance(noise: &mut Noise) -> Instance {
    let physics = physics(noise);
    let (width, depth) = (noise.of(&[4, 16]), noise.of(&[4, 16]));
    let design = Design {
        tensor_cores: noise.of(&[1, 2, 8]),
        vector_cores: noise.of(&[1, 4]),
        width,
        depth,
        vector_width: width,
        local: Design::published_local(width, depth),
        vector_local: Design::published_vector_local(width),
        glb: Bytes::MIB,
        hbm: Bytes(noise.of(&[400_000, 900_000, 1_500_000, 4_000_000, 1 << 30])),
    };
    let chip = Accelerator::new(design, &physics).unwrap();
    let all = examples::all();
    let spec = all[usize::try_from(noise.below(all.len() as u64)).unwrap()].clone();
    let spec = Spec { layers: 1 + noise.below(4), ..spec };
    let global_batch: u64 = noise.of(&[1, 2, 4, 6, 12]);
    let divides = |size: &u64| global_batch.is_multiple_of(*size);
    let time_model = noise.of(&[
        TimeModel::OneForwardOneBackward,
        TimeModel::OneForwardOneBackward,
        TimeModel::Published,
    ]);
    let micro_batches: Vec<u64> = [1, 2, 3].into_iter().filter(divides).collect();
    let attention = noise.of(&[Attention::Stored, Attention::Recomputed]);
    let terms = Terms {
        design: "toy".into(),
        cluster: Cluster { devices: 1 + noise.below(12), network: physics.reached_network() },
        global_batch,
        space: space(noise, micro_batches, time_model, spec.experts.is_some()),
        reserve_per_mille: noise.of(&[0, 60]),
        attention,
        masked: noise.of(&[Masked::Computed, Masked::Skipped]),
        element: Bytes(2),
        stack: physics.efficiency.stack(noise.of(&[Precision::Bf16, Precision::Fp8])),
        optimizer: noise.of(&[Optimizer::AdamMixed, Optimizer::Sgd]),
        time_model,
        rule: noise.of(&[Rule::Alone, Rule::OwnKind]),
        options: Options::default(),
        price: noise.of(&[Price::Time, Price::Energy]),
        power_cap_w: None,
        basis: None,
    };
    let model = match noise.below(6) {
        0 => behind_each_layer(families::build(&spec), Dim::Hidden),
        1 => behind_each_layer(families::build(&spec), Dim::KvHeads),
        _ => families::build(&spec),
    };
    let training = Training::new("toy", model, 64, &terms).unwrap();
    Instance { physics, chip, terms, training }
}

/// None, or one that makes everything slower but for what it hides.
fn efficiency(noise: &mut Noise) -> Efficiency {
    if noise.below(2) == 0 {
        return Efficiency::IDEAL;
    }
    let time = |noise: &mut Noise| noise.of(&[None, Some(Time(0)), Some(Time(3_000_000))]);
    Efficiency {
        matmul: noise.of(&[1000, 700, 50]),
        matmul_fp8: noise.of(&[1000, 500]),
        grouped: noise.of(&[1000, 660]),
        attention: noise.of(&[1000, 400]),
        memory: noise.of(&[1000, 600]),
        link: noise.of(&[1000, 800]),
        between: noise.of(&[1000, 500]),
        launch: noise.of(&[Time(0), Time(5_000_000)]),
        collective: time(noise),
        step: noise.of(&[Time(0), Time(2_000_000)]),
        between_step: time(noise),
        tensor_hidden: noise.of(&[0, 700, 1000]),
        gradients_hidden: noise.of(&[None, Some(0), Some(900)]),
        gradient_bytes: noise.of(&[None, Some(1), Some(2), Some(4)]),
        kernels: noise.of(&[Kernels::FusedIdeal, Kernels::Megatron]),
    }
}

/// Some axes free, some not.
fn space(
    noise: &mut Noise,
    micro_batches: Vec<u64>,
    time_model: TimeModel,
    has_experts: bool,
) -> StrategySpace {
    if time_model == TimeModel::Published {
        return StrategySpace::plain(micro_batches, vec![1, 2, 4], Recompute::ALL.to_vec());
    }
    let framework = match noise.below(3) {
        0 => noise.of(&[Framework::Megatron, Framework::Torchtitan, Framework::Maxtext]),
        _ => Framework::Any,
    };
    let recompute = noise.of(&[Recompute::None, Recompute::AsNeeded, Recompute::EVERY_LAYER]);
    let sizes = if noise.below(2) == 0 { micro_batches } else { vec![1] };
    let n_in_pipelines = noise.of(&[2, 2, 4]);
    let core = Modules::NONE.with(Module::CoreAttention);
    let among = |noise: &mut Noise, list: &[Zero]| {
        let least = noise.index(list.len());
        list[least..=least + noise.index(list.len() - least)].to_vec()
    };
    StrategySpace {
        sequence_parallel: vec![false, true],
        context_parallel: if noise.below(2) == 0 { vec![1] } else { vec![1, 2] },
        context_kinds: vec![noise.of(&ContextKind::ALL)],
        expert_parallel: match noise.below(3) {
            0 if has_experts => vec![1, 2],
            1 if has_experts => vec![1, 2, 4],
            _ => vec![1],
        },
        expert_tensor: if has_experts && noise.below(2) == 0 { vec![1, 2] } else { vec![1] },
        chunks: Limits { least: 1, most: noise.of(&[1, 2, 3]) },
        group: noise.of(&[None, None, Some(2), Some(3)]),
        zero: among(noise, &Zero::ALL),
        zero_in_pipelines: among(noise, &Zero::ALL[..n_in_pipelines]),
        shards: noise.of(&[None, None, Some(2)]),
        orders: noise.of(&[&Order::MEGATRON[..], &Order::MEGATRON[1..], &Order::ALL]).to_vec(),
        repeated: noise.of(&[&[Modules::NONE][..], &[Modules::NONE, core]]).to_vec(),
        framework,
        ..StrategySpace::plain(sizes, vec![1, 2], vec![recompute])
    }
}

/// A strategy with the least and the most that its fastest cuts cost: cuts may be equally fast.
struct Strategy {
    least: Standing,
    most: Standing,
    devices: u64,
}

/// Every way to divide the model, and every shape of it with its fastest cuts.
fn every_strategy(instance: &Instance, planner: &Planner) -> Vec<Strategy> {
    let Instance { chip, terms, training, .. } = instance;
    let mut found = Vec::new();
    for (at, plain) in training.divisions.iter().enumerate() {
        for sharded in shardings(terms, plain) {
            let division = training.division(at, sharded, terms);
            let timed = planner.timed(&division, chip).unwrap();
            for &recompute in &terms.space.recompute {
                let choices = terms.choices(recompute, sharded);
                found.extend(every_shape(planner, chip, (&division, &timed), &choices));
            }
        }
    }
    found
}

/// Every shape of a division with its fastest cuts.
fn every_shape(
    planner: &Planner,
    chip: &Accelerator,
    (division, timed): (&Division, &Timed),
    choices: &Choices,
) -> Vec<Strategy> {
    let (profile, job) = (&timed.profile, &timed.job);
    let n = profile.n_layers();
    let energy = planner.batch_energy(chip, division, timed);
    let mut best: BTreeMap<String, (u128, u64, Vec<Standing>)> = BTreeMap::new();
    for cuts in 0..1_usize << (n - 1) {
        let inner = (1..n).filter(|at| cuts >> (at - 1) & 1 == 1);
        let pipeline = Pipeline::of_chain(n, inner.chain([n]).collect()).unwrap();
        for shape in shapes(profile, job, choices, pipeline.n_stages()) {
            let placement = Placement::of_shape(shape, pipeline.clone());
            let cost = cost(profile, job, &placement);
            let fits = |rank: &RankCost| rank.memory.total() <= u128::from(job.memory);
            let accepted = is_accepted(planner, division, profile, &placement, &cost);
            if cost.devices > job.devices || !cost.ranks.iter().all(fits) || !accepted {
                continue;
            }
            let time = Time(u64::try_from(cost.time_per_batch).unwrap());
            let standing = Standing { time, energy: energy.of(&placement, cost.devices, time) };
            let rank = (cost.time_per_batch, cost.devices);
            // Layers that are counted up are one strategy, whose fastest number is taken.
            let recompute = match shape.recompute {
                Recompute::First(_) if choices.recompute == [Recompute::AsNeeded] => {
                    Recompute::AsNeeded
                }
                other => other,
            };
            let place = format!("{:?}", Shape { recompute, ..shape });
            match best.get_mut(&place) {
                Some(known) if (known.0, known.1) < rank => {}
                Some(known) if (known.0, known.1) == rank => known.2.push(standing),
                _ => drop(best.insert(place, (rank.0, rank.1, vec![standing]))),
            }
        }
    }
    let strategy = |(_, devices, ties): (u128, u64, Vec<Standing>)| {
        let least = *ties.iter().min_by_key(|s| s.energy).unwrap();
        let most = *ties.iter().max_by_key(|s| s.energy).unwrap();
        Strategy { least, most, devices }
    };
    best.into_values().map(strategy).collect()
}

/// Whether the framework accepts a placement.
fn is_accepted(
    planner: &Planner,
    division: &Division,
    profile: &Profile,
    placement: &Placement,
    cost: &Cost,
) -> bool {
    let (terms, spec) = (planner.terms, &planner.training.model.spec);
    if terms.time_model == TimeModel::Published {
        return true;
    }
    let setting = &division.share.setting;
    let counts: Vec<(usize, usize)> = placement
        .pipeline
        .stages()
        .zip(&cost.stages)
        .map(|(layers, stage)| {
            let may = |layer: &&usize| profile.layer(**layer).repeatable;
            (stage.repeated, layers.iter().filter(may).count())
        })
        .collect();
    let most = counts.iter().map(|count| count.0).max().unwrap();
    let repeated = if most == 0 {
        RepeatedLayers::None
    } else if counts.iter().all(|(repeated, all)| repeated == all) {
        RepeatedLayers::All
    } else if counts.iter().all(|&(repeated, all)| repeated == most.min(all)) {
        RepeatedLayers::OneNumber
    } else {
        RepeatedLayers::OwnNumbers
    };
    let plan = PlanShape {
        devices: division.cluster.devices,
        global_batch: terms.global_batch,
        micro_batch: setting.micro_batch,
        sequence: setting.sequence,
        layers: spec.layers,
        heads: spec.heads,
        kv_heads: spec.kv_heads,
        mlp: spec.divisible_mlp(),
        tensor: setting.tensor_parallel,
        sequence_parallel: setting.sequence_parallel,
        context: setting.context,
        context_kind: setting.context_kind,
        experts: spec.experts.map(|experts| ExpertShape {
            count: experts.count,
            mlp: experts.mlp,
            parallel: setting.expert,
            tensor: setting.expert_tensor,
        }),
        pipeline: placement.ranks() as u64,
        chunks: placement.schedule.chunks() as u64,
        group: placement.schedule.group(),
        data: placement.data_parallel,
        zero: placement.zero,
        shards: placement.shards.unwrap_or(placement.data_parallel * setting.context),
        order: placement.order,
        cut: CutShape::Layout,
        repeated,
        modules: setting.repeated,
    };
    terms.space.framework.check(&plan).is_ok()
}

/// Every shape of so many virtual stages that can be run.
fn shapes(profile: &Profile, job: &Job, choices: &Choices, n_stages: usize) -> Vec<Shape> {
    let mut found = Vec::new();
    for chunks in choices.chunks.clone().filter(|chunks| n_stages.is_multiple_of(*chunks)) {
        let ranks = n_stages / chunks;
        for data_parallel in 1..=job.devices.min(job.micro_batches) {
            let each = if profile.layers().any(|layer| layer.tensor_parallel) {
                profile.width * profile.context
            } else {
                profile.context
            };
            let whole = data_parallel * ranks as u64 * each == job.devices
                && job.micro_batches.is_multiple_of(data_parallel);
            let refused = choices.usage == Usage::Whole && !whole
                || !choices.data_parallel.contains(&data_parallel)
                || !choices.ranks.contains(&ranks);
            let group = choices.group.unwrap_or(ranks as u64);
            let schedule = match chunks {
                1 => PassOrder::OneForwardOneBackward,
                _ => PassOrder::Interleaved { chunks, group },
            };
            let micro_batches = job.micro_batches_per_pipeline(data_parallel);
            if refused || schedule.check(ranks, micro_batches).is_err() {
                continue;
            }
            for &zero in &choices.zero[usize::from(ranks > 1)] {
                let alone = profile.most_replicas(data_parallel) == 1;
                let zero = if alone { Zero::Nothing } else { zero };
                let shards = choices.shards.filter(|_| zero > Zero::Nothing);
                // Exchanges inside layers are among devices in one run of numbers.
                let one_run = zero >= Zero::Gradients && ranks > 1;
                let orders = choices.orders.iter();
                for &order in orders.filter(|&&order| !one_run || order == Order::default()) {
                    let one_by_one = choices.equal_repeats || chunks > 1;
                    let each = choices.recompute.iter().flat_map(|&recompute| match recompute {
                        Recompute::AsNeeded if one_by_one => {
                            (0..=profile.n_layers() as u64).map(Recompute::First).collect()
                        }
                        other => vec![other],
                    });
                    let shapes = each.map(|recompute| Shape {
                        data_parallel,
                        ranks,
                        schedule,
                        zero,
                        shards,
                        order,
                        recompute,
                    });
                    found.extend(shapes.filter(|shape| shape.folds(profile)));
                }
            }
        }
    }
    found
}

/// Solves an instance and compares with brute force; answers whether something fits.
fn agrees(instance: &Instance) -> bool {
    let Instance { chip, terms, training, .. } = instance;
    let table = EstimateTable::new(terms.options);
    let planner = Planner { terms, training, table: &table };
    let all = every_strategy(instance, &planner);
    let allowed = |strategy: &&Strategy| {
        let power = strategy.least.average_power(strategy.devices);
        terms.power_cap_w.is_none_or(|cap| power <= cap)
    };
    let price = |standing: &Standing| terms.price.of(*standing);
    let least = all.iter().filter(allowed).map(|strategy| price(&strategy.least)).min();
    let most = all.iter().filter(allowed).map(|strategy| price(&strategy.most)).min();
    let bound = planner.bound_on(chip).least((terms, training), chip, Figures::TimeAndEnergy);
    let Some(best) = planner.best_on(chip) else {
        assert_eq!(least, None, "something fits");
        return false;
    };
    let standing = best.chosen.standing;
    let found = price(&standing);
    assert!(least.unwrap() <= found && found <= most.unwrap(), "{least:?} {found} {most:?}");
    assert!(best.chosen.least_price <= found);
    let Best { division, profile, job, found: Found { placement, .. }, .. } = &best;
    let costs = cost(profile, job, placement);
    assert!(is_accepted(&planner, division, profile, placement, &costs), "{placement:?}");
    let bound = bound.expect("what fits has a bound");
    for strategy in &all {
        assert!(bound.time <= strategy.least.time, "{bound:?} above {:?}", strategy.least);
        assert!(bound.energy <= strategy.least.energy, "{bound:?} above {:?}", strategy.least);
    }
    true
}

#[test]
fn the_best_by_every_price_is_that_of_brute_force_and_no_bound_is_above_it() {
    let mut noise = Noise(0x57A7);
    let mut solved: BTreeMap<Framework, usize> = BTreeMap::new();
    for _ in 0..400 {
        let instance = instance(&mut noise);
        let count = solved.entry(instance.terms.space.framework).or_default();
        *count += usize::from(agrees(&instance));
    }
    let enough = |(framework, count): (&Framework, &usize)| match framework {
        Framework::Any => (120..300).contains(count),
        _ => *count > 3,
    };
    assert!(solved.len() == 4 && solved.iter().all(enough), "{solved:?} of 400 fit");
}

#[test]
fn no_bound_of_even_cuts_is_above_their_best_and_some_are_above_that_of_all_cuts() {
    let mut noise = Noise(0xE7E2);
    let (mut compared, mut closer) = (0, 0);
    for _ in 0..300 {
        let Instance { chip, mut terms, training, .. } = instance(&mut noise);
        terms.price = Price::Time;
        terms.power_cap_w = None;
        let table = EstimateTable::new(terms.options);
        let bound = |terms: &Terms| {
            let planner = Planner { terms, training: &training, table: &table };
            planner.bound_on(&chip).least((terms, &training), &chip, Figures::Time)
        };
        let of_all = bound(&terms);
        terms.space.cut = CutSpace::Even;
        let of_even = bound(&terms);
        let planner = Planner { terms: &terms, training: &training, table: &table };
        let Some(best) = planner.best_on(&chip) else { continue };
        let (of_all, of_even) = (of_all.unwrap().time, of_even.expect("it fits").time);
        assert!(of_all <= of_even && of_even <= best.chosen.standing.time, "{of_even:?}");
        compared += 1;
        closer += u32::from(of_all < of_even);
    }
    assert!(compared > 100 && closer > 4, "{compared} {closer}");
}

#[test]
fn where_only_a_framework_is_in_the_way_its_rule_is_named() {
    let mut noise = Noise(0x2EF5);
    let Instance { chip, mut terms, training, .. } = instance(&mut noise);
    terms.cluster.devices = 2;
    terms.time_model = TimeModel::OneForwardOneBackward;
    terms.space = StrategySpace {
        pipeline: Limits::only(2),
        framework: Framework::Maxtext,
        ..StrategySpace::plain(vec![1], vec![1], vec![Recompute::None])
    };
    let roomy = Design { hbm: Bytes::GIB, ..*chip.design() };
    let chip = Accelerator::new(roomy, &physics(&mut noise)).unwrap();
    let table = EstimateTable::new(terms.options);
    let said = |terms: &Terms| {
        let training = Training::new("toy", training.model.clone(), 64, terms).unwrap();
        let planner = Planner { terms, training: &training, table: &table };
        let (profile, job) = planner.asked(0, &chip).unwrap();
        let choices = training.choices(terms, 0, (None, Recompute::None));
        let rule = refusal(&Problem { profile: &profile, job: &job, choices: &choices });
        (planner.best_on(&chip).is_some(), rule.map(|broken| broken.rule))
    };
    assert_eq!(said(&terms), (false, Some("there is one pipeline rank")));
    terms.space.framework = Framework::Any;
    assert_eq!(said(&terms), (true, None));
}

#[test]
fn alone_a_replica_is_trained_as_if_nothing_were_shared() {
    let mut noise = Noise(0xA10E);
    let mut compared = 0;
    for _ in 0..60 {
        let Instance { chip, mut terms, training, .. } = instance(&mut noise);
        if terms.time_model == TimeModel::Published {
            continue;
        }
        terms.cluster.devices = 1;
        terms.space.context_parallel = vec![1];
        let table = EstimateTable::new(terms.options);
        let mut found = [Zero::Nothing, Zero::State, Zero::Gradients, Zero::Weights].map(|zero| {
            (terms.space.zero, terms.space.zero_in_pipelines) = (vec![zero], vec![zero]);
            let model = training.model.clone();
            let training = Training::new("toy", model, training.sequence, &terms).unwrap();
            let planner = Planner { terms: &terms, training: &training, table: &table };
            planner.best_on(&chip).map(|best| best.chosen)
        });
        let [first, others @ ..] = &mut found;
        assert!(others.iter().all(|other| other == first), "{first:?} {others:?}");
        compared += usize::from(first.is_some());
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn a_cap_of_power_rules_out_strategies_as_brute_force_says() {
    let mut noise = Noise(0xCA9);
    let mut solved = 0;
    for _ in 0..150 {
        let mut instance = instance(&mut noise);
        let table = EstimateTable::new(instance.terms.options);
        let (terms, training) = (&instance.terms, &instance.training);
        let planner = Planner { terms, training, table: &table };
        let mut powers: Vec<f64> = every_strategy(&instance, &planner)
            .iter()
            // Between the powers of two strategies, so that ties in energy decide nothing.
            .map(|strategy| strategy.least.average_power(strategy.devices) * 1.000_001)
            .collect();
        if powers.is_empty() {
            continue;
        }
        powers.sort_by(f64::total_cmp);
        let at = usize::try_from(noise.below(powers.len() as u64)).unwrap();
        instance.terms.power_cap_w = Some(powers[at]);
        solved += usize::from(agrees(&instance));
    }
    assert!(solved > 50, "{solved} fit under their cap");
}

#[test]
fn more_devices_are_never_worse_in_time_or_energy_also_on_nodes() {
    let mut noise = Noise(0x00DE_71CE);
    let mut compared = 0;
    for _ in 0..120 {
        let Instance { chip, terms, training, .. } = instance(&mut noise);
        if !terms.space.framework.may_idle() {
            continue;
        }
        let table = EstimateTable::new(terms.options);
        let mut before: Option<u128> = None;
        for devices in 1..=12 {
            let mut terms = terms.clone();
            terms.cluster.devices = devices;
            let model = training.model.clone();
            let training = Training::new("toy", model, training.sequence, &terms).unwrap();
            let planner = Planner { terms: &terms, training: &training, table: &table };
            let found = planner.best_on(&chip).map(|best| terms.price.of(best.chosen.standing));
            if let Some(before) = before {
                let now = found.expect("what fitted still fits");
                assert!(now <= before, "{devices} devices: {now} after {before}");
                compared += 1;
            }
            before = found;
        }
    }
    assert!(compared > 500, "{compared}");
}
