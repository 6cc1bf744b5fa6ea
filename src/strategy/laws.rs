//! The laws that let one chip speak for every smaller one (docs/search.md), on random small models,
//! networks, spaces and chips of which one or several knobs are turned up.

#![cfg(test)]

use std::sync::Arc;

use super::Corner;
use super::EnergyReach;
use super::Figures;
use super::Heard;
use super::Planner;
use super::Price;
use super::Reach;
use super::SpaceBound;
use super::Training;
use super::Variant;
use super::brute_force::Instance;
use super::brute_force::instance;
use crate::estimate::Closeness;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::hardware::HbmBandwidth;
use crate::hardware::MostLanes;
use crate::hardware::OffChipTime;
use crate::hardware::Physics;
use crate::hardware::Port;
use crate::hardware::Use;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipKnobs;
use crate::hardware::chip::ChipNetwork;
use crate::hardware::chip::properties;
use crate::placement::noise::Noise;
use crate::profile::LeastBy;
use crate::profile::pass;
use crate::schedule::Limits;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Frequency;
use crate::units::Time;

/// What a law speaks of.
const PROVED: [&str; 8] =
    ["memory", "memory rate", "buffer", "buffer rate", "vector cores", "lanes", "clock", "links"];
const ROOFLINE: [&str; 2] = ["tensor cores", "arrays"];

/// The same with more of a knob.
fn raised(before: Instance, knob: &str, noise: &mut Noise) -> Instance {
    let Instance { mut physics, chip, mut terms, training } = before;
    let mut design = *chip.design();
    let more = |noise: &mut Noise, value: u64| {
        let (part, whole) = noise.of(&[(1, 1000), (1, 7), (1, 3), (1, 1), (7, 1)]);
        value + (value * part / whole).max(1)
    };
    let faster = |noise: &mut Noise, rate: Bandwidth| {
        Bandwidth::bytes_per_second(more(noise, rate.as_bytes_per_second())).unwrap()
    };
    match knob {
        "memory" => design.hbm = Bytes(more(noise, design.hbm.0)),
        "memory rate" => {
            physics.hbm = HbmBandwidth::Fixed(faster(noise, chip.hbm_bandwidth()));
        }
        "buffer" => design.glb = Bytes(more(noise, design.glb.0)),
        "buffer rate" => {
            let Port { read, write } = physics.glb;
            physics.glb = Port { read: more(noise, read), write: more(noise, write) };
        }
        "vector cores" => design.vector_cores = more(noise, design.vector_cores),
        "clock" => {
            let hertz = more(noise, physics.clock.as_hertz());
            physics.clock = Frequency::hertz(hertz).unwrap();
        }
        "links" => {
            let (part, whole) = noise.of(&[(1001, 1000), (7, 5), (2, 1), (9, 1)]);
            let turn = |rate: Bandwidth| {
                let turned = rate.as_bytes_per_second() * part / whole;
                Bandwidth::bytes_per_second(turned).unwrap()
            };
            physics.network = physics.network.with_bandwidths(turn);
        }
        "tensor cores" => design.tensor_cores = more(noise, design.tensor_cores),
        "arrays" => {
            let (width, depth) = match noise.below(2) {
                0 => (more(noise, design.width), design.depth),
                _ => (design.width, more(noise, design.depth)),
            };
            let local = Design::published_local(width, depth).max(design.local);
            design = Design { width, depth, local, ..design };
        }
        "lanes" => design.vector_width = more(noise, design.vector_width),
        other => panic!("no knob is called {other}"),
    }
    // Room for a tile of any array that was asked for.
    design.glb = design.glb.max(chip.design().glb);
    terms.cluster.network = physics.reached_network();
    let chip = built(design, &physics, chip.off_chip_time());
    let (name, sequence) = (training.name.clone(), training.sequence);
    let training = Training::new(&name, training.model, sequence, &terms).unwrap();
    Instance { physics, chip, terms, training }
}

fn built(design: Design, physics: &Physics, off_chip: OffChipTime) -> Accelerator {
    Accelerator::new(design, physics).unwrap().counting(off_chip)
}

/// A random instance by either rule of off-chip memory, and the same with more of some knobs.
fn pair(noise: &mut Noise, knobs: &[&str]) -> (Instance, Instance, String) {
    let off_chip = noise.of(&[OffChipTime::WholeCycles, OffChipTime::Exact, OffChipTime::Exact]);
    let seed = noise.0;
    let with_rule = |noise: &mut Noise| {
        let found = instance(noise);
        Instance { chip: found.chip.counting(off_chip), ..found }
    };
    let small = with_rule(noise);
    let mut large = with_rule(&mut Noise(seed));
    let mut turned = Vec::new();
    for _ in 0..noise.of(&[1, 1, 1, 2, 4]) {
        let knob = noise.of(knobs);
        large = raised(large, knob, noise);
        turned.push(knob);
    }
    (small, large, turned.join(", "))
}

/// What the corner of the larger chip says, and the exact times of both.
fn compare(small: &Instance, large: &Instance, told: &str, noise: &mut Noise) -> [Option<Time>; 3] {
    let table = EstimateTable::new(large.terms.options);
    let [least, limited] = [None, Some(())].map(|limited| {
        let (terms, training) = (&large.terms, &large.training);
        let planner = Planner { terms, training, table: &table };
        let bound = planner.bound_on(&large.chip);
        let limit = limited.map(|()| Time(1 << noise.below(44)));
        (planner.corner(&large.chip, &bound, limit), limit)
    });
    let reached = {
        let (terms, training) = (&large.terms, &large.training);
        let planner = Planner { terms, training, table: &table };
        let limit = Time(1 << noise.below(44));
        (
            planner
                .reach(&large.chip, &planner.bound_on(&large.chip), limit, &Heard::default())
                .reach,
            limit,
        )
    };
    let exact = |instance: &Instance| {
        let (terms, training) = (&instance.terms, &instance.training);
        let planner = Planner { terms, training, table: &table };
        planner.best_on(&instance.chip).map(|best| best.chosen.standing.time)
    };
    let (before, after) = (exact(small), exact(large));
    let corner = match least.0 {
        Corner::Least(time) => Some(time),
        Corner::Nothing => None,
        Corner::Slower(_) => panic!("no limit was given"),
    };
    for exact in [before, after].into_iter().flatten() {
        let corner = corner.unwrap_or_else(|| panic!("{told}: nothing fits where less does"));
        assert!(corner <= exact, "{told}: {corner:?} is above {exact:?}");
    }
    match limited {
        (Corner::Least(time), Some(limit)) => {
            assert_eq!(Some(time), corner, "{told}");
            assert!(time <= limit, "{told}");
        }
        (Corner::Slower(limit), _) => {
            assert!(corner.is_none_or(|corner| corner > limit), "{told}");
        }
        (Corner::Nothing, _) => assert_eq!(corner, None, "{told}"),
        (Corner::Least(_), None) => panic!("a limit was given"),
    }
    match reached {
        (Reach::Within(time), limit) => {
            assert!(time <= limit && corner.is_some_and(|corner| corner <= time), "{told}");
        }
        (Reach::Slower, limit) => assert!(corner.is_none_or(|corner| corner > limit), "{told}"),
        (Reach::Nothing, _) => assert_eq!(corner, None, "{told}"),
    }
    [before, after, corner]
}

#[test]
fn no_corner_is_above_the_time_of_a_chip_with_less_of_any_proved_knob() {
    let mut noise = Noise(0x1A35);
    let (mut compared, mut met) = (0, 0);
    for _ in 0..150 {
        let (small, large, told) = pair(&mut noise, &PROVED);
        let [before, after, corner] = compare(&small, &large, &told, &mut noise);
        compared += usize::from(before.is_some());
        met += usize::from(after.is_some() && after == corner);
    }
    assert!(compared > 70, "{compared} pairs fit");
    assert!(met > 30, "only {met} corners lose nothing");
}

/// A small model on searched chips that differ in their knobs, in the network that their links make.
fn searched(knobs: &ChipKnobs, of: &Instance, is_corner: bool) -> Instance {
    let (technology, base) = (properties::technology(), properties::physics());
    let physics = Physics { efficiency: of.physics.efficiency, ..base };
    let chip = if is_corner {
        knobs.dieless(&technology, &physics).unwrap()
    } else {
        knobs.accelerator(&technology, &physics).unwrap()
    };
    let mut terms = of.terms.clone();
    let devices = terms.cluster.devices;
    let wired = match devices % 3 {
        0 => ChipNetwork::Torus(Vec::new()),
        1 => ChipNetwork::Nodes { devices: 2 + devices % 2, between_gb_per_s: 40 },
        _ => ChipNetwork::Flat,
    };
    let network = wired.of(knobs.links_gb_per_s, devices, Time(500_000)).unwrap();
    terms.cluster.network = physics.efficiency.network(&network);
    let training = &of.training;
    let (name, sequence) = (&training.name, training.sequence);
    let training = Training::new(name, training.model.clone(), sequence, &terms).unwrap();
    Instance { physics, chip, terms, training }
}

#[test]
fn corners_of_searched_chips_bound_every_chip_below_them() {
    let mut noise = Noise(0xC41);
    let mut compared = 0;
    for _ in 0..80 {
        let of = instance(&mut noise);
        let low = ChipKnobs {
            precision: of.terms.stack.precision,
            tensor_cores: noise.of(&[1, 2, 3, 8]),
            width: noise.of(&[16, 32]),
            depth: noise.of(&[16, 64]),
            vector_cores: noise.of(&[1, 2, 6]),
            vector_width: noise.of(&[16, 64]),
            glb_mib: noise.of(&[1, 2, 5]),
            glb_bytes_per_cycle: noise.of(&[64, 512, 2048]),
            clock_mhz: noise.of(&[900, 1000, 1300]),
            stacks: noise.of(&[1, 2]),
            links_gb_per_s: noise.of(&[25, 50, 141]),
            ..properties::example()
        };
        let mut high = low;
        let proved: Vec<_> = CHIP_KNOBS.iter().filter(|knob| knob.proved).collect();
        let mut turned = Vec::new();
        for _ in 0..noise.of(&[1, 1, 2, 6]) {
            let knob = proved[noise.index(proved.len())];
            let value = (knob.get)(&high);
            (knob.set)(&mut high, value + (value / noise.of(&[1, 3, 9])).max(1));
            turned.push(knob.name);
        }
        // Beyond that no supply reaches it.
        high.clock_mhz = high.clock_mhz.min(2100);
        let (small, large) = (searched(&low, &of, false), searched(&high, &of, true));
        let found = compare(&small, &large, &turned.join(", "), &mut noise);
        compared += usize::from(found[2].is_some());
    }
    assert!(compared > 40, "{compared} pairs fit");
}

#[test]
fn least_energies_of_a_box_bound_every_chip_of_it() {
    let mut noise = Noise(0xE4E6);
    let (mut compared, mut close, mut told_apart) = (0, 0, 0);
    for _ in 0..25 {
        let mut of = instance(&mut noise);
        of.terms.price = Price::Energy;
        let low = ChipKnobs {
            precision: of.terms.stack.precision,
            tensor_cores: noise.of(&[1, 2, 3]),
            width: noise.of(&[16, 32]),
            depth: noise.of(&[16, 64]),
            vector_cores: noise.of(&[1, 2, 6]),
            vector_width: noise.of(&[16, 64]),
            glb_mib: noise.of(&[1, 2, 5]),
            glb_bytes_per_cycle: noise.of(&[64, 512, 2048]),
            clock_mhz: noise.of(&[900, 1300, 1500]),
            stacks: noise.of(&[1, 2]),
            links_gb_per_s: noise.of(&[25, 141]),
            ..properties::example()
        };
        let proved: Vec<_> = CHIP_KNOBS.iter().filter(|knob| knob.proved).collect();
        let raised = |from: &ChipKnobs, steps: usize, noise: &mut Noise| {
            let mut knobs = *from;
            for _ in 0..steps {
                let knob = proved[noise.index(proved.len())];
                let value = (knob.get)(&knobs);
                (knob.set)(&mut knobs, value + (value / noise.of(&[1, 3, 9])).max(1));
            }
            // Beyond that no supply reaches it.
            knobs.clock_mhz = knobs.clock_mhz.min(2000);
            knobs
        };
        let within = raised(&low, noise.of(&[0, 0, 1, 4]), &mut noise);
        let high = raised(&within, noise.of(&[0, 0, 1, 4]), &mut noise);
        let large = searched(&high, &of, true);
        let (technology, physics) = (properties::technology(), &large.physics);
        let chip = high.greatest_at_energies_of(&low, &technology, physics).unwrap();
        let table = EstimateTable::new(large.terms.options);
        let planner = Planner { terms: &large.terms, training: &large.training, table: &table };
        let reach =
            |limit: Energy| planner.reach_energy(&chip, &planner.bound_on(&chip), (limit, true));
        let all = reach(Energy(u128::MAX));
        for knobs in [low, within, high] {
            if knobs.accelerator(&technology, physics).is_err() {
                continue;
            }
            let small = searched(&knobs, &of, false);
            let own = Planner { terms: &small.terms, training: &small.training, table: &table };
            let Some(best) = own.best_on(&small.chip) else { continue };
            let exact = best.chosen.standing.energy;
            let EnergyReach::Within(least) = all else {
                panic!("{all:?} where {knobs:?} takes {exact:?}");
            };
            assert!(
                least <= exact,
                "{least:?} is above {exact:?} of {knobs:?} in {low:?}..{high:?}"
            );
            assert!(matches!(reach(exact), EnergyReach::Within(_)), "{knobs:?}");
            let less = Energy(least.0.saturating_sub(1));
            assert_eq!(reach(less), EnergyReach::Beyond, "{knobs:?}");
            compared += 1;
            if low == high {
                close += usize::from(least.0 as f64 > 0.9 * exact.0 as f64);
                told_apart += 1;
            }
        }
    }
    assert!(compared > 25, "{compared} fit");
    assert!(2 * close > told_apart && told_apart > 2, "{close} of {told_apart} within a tenth");
}

#[test]
fn corners_with_few_lanes_bound_every_chip_that_has_no_more_of_them() {
    let mut noise = Noise(0x1A7E5);
    let (mut compared, mut told_apart) = (0, 0);
    for _ in 0..120 {
        let of = instance(&mut noise);
        // So few lanes that vector work decides.
        let low = ChipKnobs {
            vector_cores: noise.of(&[1, 2, 3, 8]),
            vector_width: noise.of(&[1, 2, 16]),
            glb_bytes_per_cycle: noise.of(&[512, 2048]),
            ..properties::example()
        };
        let high = ChipKnobs {
            vector_cores: low.vector_cores * noise.of(&[1, 2, 5]),
            vector_width: low.vector_width * noise.of(&[1, 3, 64]),
            clock_mhz: low.clock_mhz + noise.of(&[0, 100]),
            ..low
        };
        let (small, large) = (searched(&low, &of, false), searched(&high, &of, true));
        let lanes = low.vector_cores * low.vector_width + noise.of(&[0, 0, 1, 7]);
        let most = MostLanes { lanes, fed_alike: large.physics.vector_local.is_none() };
        let table = EstimateTable::new(large.terms.options);
        let planner = Planner { terms: &large.terms, training: &large.training, table: &table };
        let bound = planner.bound_on(&large.chip);
        let corner = |chip: &Accelerator| match planner.corner(chip, &bound, None) {
            Corner::Least(time) => Some(time),
            Corner::Slower(_) | Corner::Nothing => None,
        };
        let (all, few) = (corner(&large.chip), corner(&large.chip.clone().with_most_lanes(most)));
        let smaller = Planner { terms: &small.terms, training: &small.training, table: &table };
        let Some(exact) = smaller.best_on(&small.chip) else { continue };
        let exact = exact.chosen.standing.time;
        assert!(few.is_some_and(|few| few <= exact), "{lanes} lanes: {few:?} is above {exact:?}");
        assert!(all <= few, "fewer lanes are never faster");
        compared += 1;
        told_apart += usize::from(all < few);
    }
    assert!(compared > 50 && told_apart > 20, "{compared} fit, {told_apart} differ");
}

#[test]
fn corners_of_several_arrays_bound_every_chip_with_one_of_them() {
    let mut noise = Noise(0xA88A);
    let (mut compared, mut alike) = (0, 0);
    for _ in 0..60 {
        let of = instance(&mut noise);
        let arrays = |noise: &mut Noise| ChipKnobs {
            precision: of.terms.stack.precision,
            tensor_cores: noise.of(&[1, 2, 3, 8]),
            width: noise.of(&[16, 32, 128]),
            depth: noise.of(&[16, 64]),
            ..properties::example()
        };
        let low: Vec<ChipKnobs> = (0..noise.of(&[2, 3, 5])).map(|_| arrays(&mut noise)).collect();
        let (faster, more) = (noise.of(&[0, 100]), noise.of(&[0, 1]));
        let high = |knobs: &ChipKnobs| {
            let clock_mhz = knobs.clock_mhz + faster;
            ChipKnobs { clock_mhz, stacks: knobs.stacks + more, ..*knobs }
        };
        let large: Vec<Instance> =
            low.iter().map(|knobs| searched(&high(knobs), &of, true)).collect();
        let Instance { terms, training, .. } = &large[0];
        let table = EstimateTable::new(terms.options);
        let planner = Planner { terms, training, table: &table };
        let corner = |chip: &Accelerator| match planner.corner(chip, &planner.bound_on(chip), None)
        {
            Corner::Least(time) => Some(time),
            Corner::Slower(_) | Corner::Nothing => None,
        };
        let others: Vec<Accelerator> = large[1..].iter().map(|one| one.chip.clone()).collect();
        let together = large[0].chip.clone().with_arrays_of(&others);
        let all = corner(&together);
        let alone = large.iter().map(|one| corner(&one.chip));
        alike += usize::from(all.is_some() && alone.flatten().min() == all);
        for knobs in &low {
            let small = searched(knobs, &of, false);
            let smaller = Planner { terms: &small.terms, training: &small.training, table: &table };
            let Some(exact) = smaller.best_on(&small.chip) else { continue };
            let exact = exact.chosen.standing.time;
            let told = format!("{:?}", (knobs.tensor_cores, knobs.width, knobs.depth));
            assert!(all.is_some_and(|all| all <= exact), "{told}: {all:?} is above {exact:?}");
            let limit = Time(exact.0.saturating_sub(noise.of(&[0, 0, 1]) * exact.0 / 3));
            let heard = Heard::default();
            let reach = planner.reach(&together, &planner.bound_on(&together), limit, &heard).reach;
            let is_slower = all.is_some_and(|all| all > limit);
            assert_eq!(reach == Reach::Slower, is_slower, "{told}");
            compared += 1;
        }
    }
    assert!(compared > 100 && alike > 5, "{compared} fit, {alike} lose nothing");
}

#[test]
fn no_operator_and_no_pass_is_below_its_least_on_a_larger_chip() {
    let mut noise = Noise(0x0BE5);
    let mut lost = 0;
    for _ in 0..120 {
        let (small, large, told) = pair(&mut noise, &PROVED);
        let table = EstimateTable::new(small.terms.options);
        let pairs = small.training.divisions.iter().zip(&large.training.divisions);
        for (division, again) in pairs.take(3) {
            let before = division.graphs.passes(
                &division.share,
                (&small.chip, &division.cluster),
                &table,
                small.terms.rule,
            );
            let on = (&large.chip, &again.cluster);
            let before = before.unwrap();
            for (closeness, limits) in [
                (Closeness::Sketched, None),
                (Closeness::Apart, None),
                (Closeness::Apart, Some(&Limits::NO_SEARCH)),
                (Closeness::Together, Some(&Limits::DEFAULT)),
            ] {
                let rule = large.terms.rule;
                let by = LeastBy { table: &table, closeness, rule, limits };
                let least = again.graphs.least_passes(&again.share, on, by).unwrap();
                for (kind, (before, least)) in before.iter().zip(&least).enumerate() {
                    let exact = [before.forward.time, before.backward.time];
                    let is_least = least.forward <= exact[0] && least.backward <= exact[1];
                    assert!(is_least, "{told}: kind {kind}");
                    assert!(least.collectives <= before.collectives, "{told}: kind {kind}");
                }
            }
            for ops in again.share.kinds.iter().map(|kind| &kind.backward) {
                let costs = pass::costs(ops, &small.chip, &division.cluster, &table).unwrap();
                for (op, cost) in ops.nodes().iter().zip(costs) {
                    let both = [Closeness::Sketched, Closeness::Apart, Closeness::Together];
                    let modes = [(Use::Alone, cost.alone), (Use::Spread, cost.spread)];
                    let cases = modes.into_iter().flat_map(|mode| both.map(|close| (mode, close)));
                    for ((cores, cost), closeness) in cases {
                        if op.core() == crate::model::op::CoreKind::Network {
                            continue;
                        }
                        let least = table.least(op, on.0, on.1, (cores, closeness)).unwrap();
                        assert!(least.hbm <= cost.hbm, "{told}: {}", op.name);
                        assert!(least.glb_read <= cost.glb_read, "{told}: {}", op.name);
                        assert!(least.glb_written <= cost.glb_written, "{told}: {}", op.name);
                        let alone =
                            table.least(op, on.0, on.1, (Use::Alone, closeness)).unwrap().time;
                        assert!(least.time.min(alone) <= cost.time, "{told}: {}", op.name);
                        lost += usize::from(least.time < cost.time);
                    }
                }
            }
        }
    }
    assert!(lost > 0, "the least is not always met");
}

#[test]
fn what_rooflines_say_never_rises_with_any_knob() {
    let mut noise = Noise(0x200F);
    let every: Vec<&str> = PROVED.into_iter().chain(ROOFLINE).collect();
    let mut compared = 0;
    for _ in 0..250 {
        let (small, large, told) = pair(&mut noise, &every);
        let least = |instance: &Instance| {
            let table = EstimateTable::new(instance.terms.options);
            let (terms, training) = (&instance.terms, &instance.training);
            let planner = Planner { terms, training, table: &table };
            let bound = planner.bound_on(&instance.chip);
            bound.least((terms, training), &instance.chip, Figures::Time).map(|least| least.time)
        };
        let (before, after) = (least(&small), least(&large));
        let Some(before) = before else { continue };
        let after = after.unwrap_or_else(|| panic!("{told}: nothing fits where less does"));
        assert!(after <= before, "{told}: {after:?} is above {before:?}");
        compared += 1;
    }
    assert!(compared > 120, "{compared} pairs fit");
}

#[test]
fn what_is_not_looked_at_because_more_memory_and_faster_links_do_not_help_changes_no_bound() {
    let mut noise = Noise(0x51AB);
    let (mut compared, mut passed_over) = (0, 0);
    for _ in 0..250 {
        let (small, large, told) = pair(&mut noise, &["memory", "links"]);
        let arrays = || vec![small.chip.rooflines().0];
        let asked = (&small.terms, &small.training);
        let [own, more] = [&small.chip, &large.chip].map(|chip| chip.design().hbm);
        let greater = Arc::new(SpaceBound::new(&large.training, arrays(), &[more]));
        greater.prepare((&large.terms, &large.training));
        let all = SpaceBound::new(&small.training, arrays(), &[own]);
        let few = || {
            SpaceBound::new(&small.training, arrays(), &[]).with_memory(own, Some(greater.clone()))
        };
        let least = |bound: &SpaceBound| bound.least(asked, &small.chip, Figures::Time);
        let (each, quick) = (all.variants(asked, &small.chip, (Figures::Time, None)), few());
        assert_eq!(least(&quick), least(&all), "{told}");
        assert_eq!(least(&quick), least(&all), "{told}: some are prepared");
        assert_eq!(quick.variants(asked, &small.chip, (Figures::Time, None)), each, "{told}");
        let Some(least) = least(&all).map(|least| least.time) else { continue };
        for limit in [Time(least.0 - 1), least, Time(least.0 + least.0 / noise.of(&[1, 5, 50]))] {
            let within = |mut variants: Vec<Variant>| {
                variants.retain(|variant| variant.least.time <= limit);
                variants
            };
            let quick = few().variants(asked, &small.chip, (Figures::Time, Some(limit)));
            passed_over += usize::from(quick.len() < each.len());
            assert_eq!(within(quick), within(each.clone()), "{told}");
        }
        compared += 1;
    }
    assert!(compared > 120 && passed_over > 60, "{compared} fit, {passed_over} are passed over");
}
