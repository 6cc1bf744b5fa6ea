//! Laws of every chip: no figure falls when a knob rises, parts add up, wholes follow closed forms.

#![cfg(test)]

use proptest::prelude::*;

use super::*;
use crate::hardware::ChipEnergies;
use crate::hardware::HbmBandwidth;
use crate::hardware::Physics;
use crate::hardware::Port;
use crate::hardware::Use;
use crate::hardware::network::Levels;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::technology::Constant;
use crate::hardware::technology::Mark;
use crate::hardware::technology::MemoryGeneration;
use crate::hardware::technology::Origin;
use crate::hardware::technology::VoltageTable;
use crate::units::Area;
use crate::units::Frequency;
use crate::units::Power;
use crate::units::Time;

/// A number of a technology file, in its small unit.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "constants are small")]
fn number(table: &toml::Table, path: &str, factor: f64) -> Option<u64> {
    let found = path.split('.').try_fold(None, |at: Option<&toml::Table>, key| {
        at.unwrap_or(table).get(key)?.as_table().map(Some)
    })??;
    let value = found.get("value")?;
    let value = value.as_float().or_else(|| value.as_integer().map(|value| value as f64))?;
    Some((value * factor).round() as u64)
}

/// The technology of 5 nm, read without the reader.
pub(crate) fn technology() -> Technology {
    of_files(include_str!("../../../inputs/technology/5nm.toml"))
}

fn of_files(node: &str) -> Technology {
    let base: toml::Table = include_str!("../../../inputs/technology/base.toml").parse().unwrap();
    let node: toml::Table = node.parse().unwrap();
    let origin = || Origin { mark: Mark::Assumed, source: "test".into() };
    let memories = base["memory"].as_table().unwrap().keys().map(|name| {
        let values = MemoryConstant::ROWS.map(|(_, key, _, factor, _)| {
            (number(&base, &format!("memory.{name}.{key}"), factor).unwrap(), origin())
        });
        MemoryGeneration::new(name.clone(), values)
    });
    let curve = &base["voltage"];
    let whole = |value: &toml::Value| u64::try_from(value.as_integer().unwrap()).unwrap();
    let supply = curve["supply"].as_array().unwrap().iter().map(whole).collect();
    let (first, step) = (whole(&curve["first_clock"]), whole(&curve["clock_step"]));
    Technology::new(
        whole(&node["process_nm"]),
        |constant| {
            let row = constant.row();
            let found = number(&node, row.name, row.factor);
            (found.or_else(|| number(&base, row.name, row.factor)).unwrap(), origin())
        },
        VoltageTable::new(first, step, supply, origin()).unwrap(),
        memories.collect(),
    )
}

/// A chip of the kind that searches find.
pub(crate) fn example() -> ChipKnobs {
    ChipKnobs {
        precision: Precision::Bf16,
        tensor_cores: 36,
        width: 128,
        depth: 128,
        vector_cores: 32,
        vector_width: 128,
        glb_mib: 64,
        glb_bytes_per_cycle: 8192,
        clock_mhz: 1600,
        generation: technology().generation("hbm3e").unwrap(),
        stacks: 5,
        links_gb_per_s: 400,
    }
}

/// Physics whose own energies no test looks at.
pub(crate) fn physics() -> Physics {
    let rate = Bandwidth::bytes_per_second(50_000_000_000).unwrap();
    Physics {
        clock: Frequency::hertz(1_000_000_000).unwrap(),
        element_bytes: 2,
        partial_sum_bytes: 4,
        fill_and_drain: true,
        local: None,
        vector_local: None,
        glb: Port { read: 4096, write: 4096 },
        multicast: Some(16),
        hbm: HbmBandwidth::Fixed(rate),
        energies: ChipEnergies::PUBLISHED,
        hbm_fj: 0,
        network_fj_per_byte: 0,
        static_uw_per_mm2: 0,
        beside_uw: 0,
        network: Network::flat(Link { bandwidth: rate, latency: Time(0) }),
        efficiency: crate::hardware::Efficiency::IDEAL,
        efficiency_from: None,
        calibrations: Vec::new(),
    }
}

/// What a search compares: area, power, cost of making, buying and owning, carbon.
fn figures(chip: &Chip, technology: &Technology) -> Result<[u64; 6], OverBudget> {
    let found = ChipFigures::of(chip, technology)?;
    let (die, tdp) = (found.die.total(), found.tdp.total());
    let lot = DieLot { area: die, count: 1, technology, on_interposer: true };
    let package = Package { dies: &[lot], memory: chip.memory };
    let links = [(chip.links_gb_per_s, LinkTier::ScaleOut)];
    Ok([
        die.0,
        tdp.0,
        found.cost.total().0,
        Ownership::of_builder(&found.cost, tdp, &links, technology).total().0,
        Ownership::of_buyer(&found.cost, tdp, &links, technology).total().0,
        Carbon::of(&package, tdp, technology).total(),
    ])
}

fn knobs() -> impl Strategy<Value = ChipKnobs> {
    let cores = (1_u64..4096, 1_u64..300, 1_u64..300, 1_u64..4096, 1_u64..2048);
    let others = (1_u64..512, 1_u64..32_768, 1_u64..2400, 0_usize..6, 1_u64..8, 1_u64..6000);
    (cores, others, prop::bool::ANY).prop_map(|(cores, others, fp8)| ChipKnobs {
        precision: if fp8 { Precision::Fp8 } else { Precision::Bf16 },
        tensor_cores: cores.0,
        width: cores.1,
        depth: cores.2,
        vector_cores: cores.3,
        vector_width: cores.4,
        glb_mib: others.0,
        glb_bytes_per_cycle: others.1,
        clock_mhz: others.2,
        generation: Generation(others.3),
        stacks: others.4,
        links_gb_per_s: others.5,
    })
}

const NODES: [&str; 4] = [
    include_str!("../../../inputs/technology/16nm.toml"),
    include_str!("../../../inputs/technology/7nm.toml"),
    include_str!("../../../inputs/technology/5nm.toml"),
    include_str!("../../../inputs/technology/3nm.toml"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_figure_falls_when_a_knob_rises(
        low in knobs(),
        which in 0..CHIP_KNOBS.len(),
        more in 1_u64..3000,
        node in 0..NODES.len(),
    ) {
        let technology = of_files(NODES[node]);
        let knob = &CHIP_KNOBS[which];
        let mut high = low;
        (knob.set)(&mut high, ((knob.get)(&low) + more).min(*knob.range.end()));
        let (low, high) = (low.chip(&technology), high.chip(&technology));
        if let Ok(high) = figures(&high, &technology) {
            let low = figures(&low, &technology);
            prop_assert!(low.is_ok(), "{}: possible only when higher", knob.name);
            for (low, high) in low.unwrap().into_iter().zip(high) {
                prop_assert!(low <= high, "{}: {low} {high}", knob.name);
            }
        }
        let fp8 = Chip { precision: Precision::Fp8, ..low };
        if let (Ok(fp8), Ok(bf16)) = (
            figures(&fp8, &technology),
            figures(&Chip { precision: Precision::Bf16, ..low }, &technology),
        ) {
            prop_assert!(bf16.into_iter().zip(fp8).all(|(bf16, fp8)| bf16 <= fp8));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_energy_and_no_power_at_rest_falls_when_a_knob_rises(
        low in knobs(),
        which in 0..CHIP_KNOBS.len(),
        more in 1_u64..3000,
    ) {
        let (technology, base) = (technology(), physics());
        let knob = &CHIP_KNOBS[which];
        let low = ChipKnobs { precision: Precision::Bf16, ..low };
        let mut high = low;
        (knob.set)(&mut high, ((knob.get)(&low) + more).min(*knob.range.end()));
        let [low, high] = [low, high].map(|chip| chip.accelerator(&technology, &base));
        if let (Ok(low), Ok(high)) = (low, high) {
            let energies = |chip: &crate::hardware::Accelerator| {
                let each = [chip.tensor(Use::Spread).energies, chip.vector(Use::Spread).energies];
                each.map(|e| {
                    let buffers = [e.local_read, e.local_write, e.glb_read, e.glb_write, e.hbm];
                    (buffers, [e.mac, e.register, e.lane, e.lane_register])
                })
            };
            for (low, high) in energies(&low).into_iter().zip(energies(&high)) {
                prop_assert!(low.0.iter().zip(high.0).all(|(low, high)| *low <= high));
                prop_assert!(low.1.iter().zip(high.1).all(|(low, high)| *low <= high));
            }
            prop_assert!(low.static_power_uw() <= high.static_power_uw(), "{}", knob.name);
        }
    }
}

#[test]
fn the_network_on_the_chip_solves_its_equation() {
    let technology = technology();
    for glb_bytes_per_cycle in [64, 2048, 5120, 16_384] {
        let chip = ChipKnobs { glb_bytes_per_cycle, ..example() }.chip(&technology);
        let die = DieArea::of(&chip, &technology).unwrap();
        let expected = 76.4
            * (glb_bytes_per_cycle as f64 / 5120.0)
            * 0.8
            * ((die.total().0 - die.edge.0) as f64 / 826e12).sqrt();
        let found = die.noc.square_millimetres();
        assert!((found / expected - 1.0).abs() < 1e-3, "{glb_bytes_per_cycle}: {found} {expected}");
    }
}

#[test]
fn the_parts_of_a_die_follow_the_constants() {
    let technology = technology();
    let die = DieArea::of(&example().chip(&technology), &technology).unwrap();
    let bit = 0.021 / 0.027;
    for (part, found, expected) in [
        ("arrays", die.arrays, 36.0 * 16_384.0 * 27_300.0 / (0.415 * 138.2e6)),
        ("lanes", die.lanes, 32.0 * 128.0 * 500_000.0 / (0.415 * 138.2e6)),
        ("tensor buffers", die.tensor_buffers, 36.0 * 0.25 * 0.75 * bit),
        ("vector buffers", die.vector_buffers, 32.0 * 2.0 / 1024.0 * 0.75 * bit),
        ("global buffer", die.global_buffer, 64.0 * 0.75 * bit),
        ("ports", die.ports, 68.0 * 0.02 * 0.8),
        ("memory interfaces", die.memory_interfaces, 5.0 * (13.0 + 5.3 * 96.3 / 138.2)),
        ("links", die.links, 400.0 * 0.064),
    ] {
        let found = found.square_millimetres();
        assert!((found / expected - 1.0).abs() < 1e-6, "{part}: {found} {expected}");
    }
    let inside = die.total().0 - die.memory_interfaces.0 - die.links.0 - die.edge.0;
    let overhead = die.overhead.0 as f64 / (inside - die.overhead.0) as f64;
    assert!((overhead - 0.15).abs() < 1e-6, "{overhead}");
}

#[test]
fn yield_and_dies_per_wafer_are_those_of_the_closed_forms() {
    use std::f64::consts::PI;
    for node in NODES {
        let technology = of_files(node);
        let defects = technology.value(Constant::Defects) as f64 / 1e4;
        let wafer = technology.value(Constant::Wafer) as f64;
        for mm2 in [25_u64, 115, 370, 600, 814, 858] {
            let area = Area(mm2 * 1_000_000_000_000);
            let lot = DieLot { area, count: 1, technology: &technology, on_interposer: true };
            let good = (1.0 + mm2 as f64 / 100.0 * defects * 0.6 / 3.0).powi(-3);
            let found = 1e6 / lot.silicon_per_good_die() as f64;
            assert!((found / good - 1.0).abs() < 1e-4, "{mm2}: {found} {good}");
            let a = mm2 as f64;
            let dies = PI * 150.0 * 150.0 / a - PI * 300.0 / (2.0 * a).sqrt();
            let (found, expected) = (lot.cents().unwrap() as f64, wafer / dies / good);
            assert!((found - expected).abs() < 2.0 + expected * 1e-3, "{mm2}: {found} {expected}");
        }
    }
}

#[test]
fn the_supply_is_the_least_that_reaches_a_clock() {
    let reached = |v: f64| (v - 0.35).powf(1.3) / v / 0.65_f64.powf(1.3);
    for node in NODES {
        let technology = of_files(node);
        let nominal = technology.value(Constant::NominalClock);
        assert_eq!(technology.supply(nominal), Some(1000));
        for mhz in (100..=nominal * 2).step_by(7) {
            let needed = mhz as f64 / nominal as f64;
            match technology.supply(mhz) {
                Some(supply) => {
                    let supply = supply as f64 / 1000.0;
                    assert!(reached(supply) >= needed - 1e-9, "{mhz}");
                    let lower = supply - 0.0045;
                    assert!(supply <= 0.75 || reached(lower) < needed, "{mhz}: {supply}");
                }
                None => assert!(reached(1.2) < needed + 0.003, "{mhz}"),
            }
        }
        assert!(technology.supply(technology.highest_clock_mhz()).is_some());
        assert_eq!(technology.supply(technology.highest_clock_mhz() + 1), None);
    }
}

#[test]
fn power_follows_the_constants() {
    let technology = technology();
    let chip = example().chip(&technology);
    let die = DieArea::of(&chip, &technology).unwrap().total();
    let power = ChipPower::of(&chip, die, Activity::Sustained, &technology).unwrap();
    let v = technology.supply(1600).unwrap() as f64 / 1000.0;
    let logic = 1.6e9 * 0.7 * v * v * 1e-12;
    for (part, found, expected) in [
        ("arrays", power.arrays, 0.75 * 36.0 * 16_384.0 * 0.59 * logic),
        ("lanes", power.lanes, 0.3 * 32.0 * 128.0 * 3.0 * logic),
        ("global buffer", power.global_buffer, 0.5 * 2.0 * 8192.0 * 3.5 * logic),
        ("memory", power.memory, 0.7 * 5e12 * 8.0 * 3.7e-12),
        ("at rest", power.memory_at_rest, 20.0),
        ("links", power.links, 2.0 * 400e9 * 8.0 * 5e-12),
        ("leakage", power.leakage, 0.08 * die.square_millimetres() * v),
    ] {
        assert!((found.watts() - expected).abs() < 2e-3, "{part}: {found:?} {expected}");
    }
    let rest = power.total().watts() - power.regulators.watts();
    assert!((power.regulators.watts() / rest - 0.12).abs() < 1e-4);
    let peak = ChipPower::of(&chip, die, Activity::Peak, &technology).unwrap();
    assert!((peak.arrays.watts() * 0.75 - power.arrays.watts()).abs() < 2e-3);
}

#[test]
fn each_limit_of_a_budget_is_named_where_it_is_exceeded() {
    let technology = technology();
    let open = Budget { area: Area(1 << 62), tdp: Power(1 << 50), price: None };
    let chip = example().chip(&technology);
    let found = open.check(&chip, &technology).unwrap();
    let (die, tdp, cost) = (found.die.total(), found.tdp.total(), found.cost.total());
    let exact = Budget { area: die, tdp, price: Some(cost) };
    assert!(exact.allows(&chip, &technology));
    let less = |n: u64| n - 1;
    assert_eq!(
        Budget { area: Area(less(die.0)), ..exact }.check(&chip, &technology),
        Err(OverBudget::Area { found: die, allowed: Area(less(die.0)) })
    );
    assert_eq!(
        Budget { tdp: Power(less(tdp.0)), ..exact }.check(&chip, &technology),
        Err(OverBudget::Tdp { found: tdp, allowed: Power(less(tdp.0)) })
    );
    let poor = Budget { price: Some(crate::units::Money(less(cost.0))), ..exact };
    assert!(poor.check(&chip, &technology).unwrap_err().to_string().contains("to make"));
    for tensor_cores in [200, 1 << 16] {
        let huge = ChipKnobs { tensor_cores, ..example() }.chip(&technology);
        let refused = open.check(&huge, &technology).unwrap_err().to_string();
        assert!(refused.contains("858.0 are allowed"), "{refused}");
    }
    let many = ChipKnobs { stacks: 9, ..example() }.chip(&technology);
    let refused = open.check(&many, &technology).unwrap_err().to_string();
    assert!(refused.contains("at most 6 stacks"), "{refused}");
    let fast = ChipKnobs { clock_mhz: 2200, ..example() }.chip(&technology);
    let refused = open.check(&fast, &technology).unwrap_err().to_string();
    assert!(refused.contains("at most 2124 MHz"), "{refused}");
}

#[test]
fn owning_a_chip_costs_what_its_parts_say() {
    let technology = technology();
    let chip = example().chip(&technology);
    let cost = ChipFigures::of(&chip, &technology).unwrap().cost;
    let watts = Power(700_000);
    let links = [(400, LinkTier::ScaleUp), (50, LinkTier::ScaleOut)];
    let own = Ownership::of_builder(&cost, watts, &links, &technology);
    assert_eq!(own.chip, cost.total());
    // 0.7 kW for 0.9 of 4 years by 1.1 at 8 cents.
    assert_eq!(own.energy.0, 194_262);
    assert_eq!(own.links.0, 400_000 + 425_000);
    assert_eq!(own.building.0, 157_500);
    assert_eq!(own.masks_and_design.0, 18_100);
    assert_eq!(own.host.0, 400_000);
    let bought = Ownership::of_buyer(&cost, watts, &links, &technology);
    assert_eq!(bought.chip.0, (cost.total().0 * 1000).div_ceil(120));
    assert_eq!(bought.masks_and_design.0, 0);
}

#[test]
fn links_inside_nodes_and_along_a_torus_are_scaled_up_and_others_switched() {
    let link = |gb: u64| Link {
        bandwidth: Bandwidth::bytes_per_second(gb * 1_000_000_000).unwrap(),
        latency: Time(0),
    };
    let nodes = Network::Levels(Levels::nodes(8, link(450), link(50)).unwrap());
    let tiers = |network: &Network| LinkTier::of_network(network, 450);
    assert_eq!(tiers(&nodes), [(450, LinkTier::ScaleUp), (50, LinkTier::ScaleOut)]);
    assert_eq!(tiers(&Network::flat(link(50))), [(450, LinkTier::ScaleOut)]);
    assert_eq!(tiers(&torus_of_links(450, 64, Time(0))), [(450, LinkTier::ScaleUp)]);
}

#[test]
fn a_chip_of_knobs_leaks_and_rests_as_its_power_says() {
    let technology = technology();
    let built = example().accelerator(&technology, &physics()).unwrap();
    let chip = example().chip(&technology);
    let power = ChipPower::of(&chip, built.total_area(), Activity::Sustained, &technology).unwrap();
    let at_rest = (power.leakage.watts() + power.memory_at_rest.watts()) * 1.12;
    let found = built.static_power_uw() as f64 / 1e6;
    assert!((found / at_rest - 1.0).abs() < 1e-3, "{found} {at_rest}");
    // Every array busy in every cycle takes what the highest power says of arrays.
    let mac = built.tensor(Use::Spread).energies.mac as f64 / 1e15;
    let busy = mac * chip.macs() as f64 * 1.6e9;
    let peak = ChipPower::of(&chip, built.total_area(), Activity::Peak, &technology).unwrap();
    assert!((busy / (peak.arrays.watts() * 1.12) - 1.0).abs() < 5e-3, "{busy} {peak:?}");
}
