//! Real chips: what the model says of their dies, power and cost, beside what is public.
//!
//! Parts that are built in are taken as their files describe them; the others are described here. A row
//! without a bar is shown and not judged, and docs/hardware.md says why. Its table is this one, row by
//! row.

use phaze::hardware::chip::Activity;
use phaze::hardware::chip::Chip;
use phaze::hardware::chip::ChipPower;
use phaze::hardware::chip::Cores;
use phaze::hardware::chip::DieArea;
use phaze::hardware::chip::OffChipMemory;
use phaze::hardware::chip::PartFigures;
use phaze::hardware::technology::Constant;
use phaze::hardware::technology::Technology;
use phaze::input::hardware::preset;
use phaze::input::technology::of_process;
use phaze::model::Precision;
use phaze::units::Area;
use phaze::units::Bytes;

/// One row of the table.
struct Row {
    name: &'static str,
    nm: u64,
    published: &'static str,
    model: f64,
    /// What is compared with, and the least and the most that the model may be of it.
    bar: Option<(f64, f64, f64)>,
    status: &'static str,
}

fn within(published: f64, bar: f64) -> (f64, f64, f64) {
    (published, 1.0 - bar, 1.0 + bar)
}

/// What the model says of a built-in part.
fn part(name: &str) -> PartFigures {
    let found = preset(name, "test").unwrap();
    let making = found.making.expect("its file says how it is made");
    making.figures(&found.design, &found.physics, &found.published).unwrap()
}

fn technology(nm: u64) -> Technology {
    of_process(nm, "test", "process").unwrap()
}

fn mm2(area: Area) -> f64 {
    area.square_millimetres()
}

/// A chip of systolic arrays of 128 x 128 with vector units of 2,048 lanes.
fn tpu(technology: &Technology, arrays: u64, vector_cores: u64, stacks: u64, links: u64) -> Chip {
    let hbm2 = technology.generation("hbm2").unwrap();
    Chip {
        precision: Precision::Bf16,
        cores: Cores::Systolic {
            tensor_cores: arrays,
            macs: 128 * 128,
            local: Bytes::MIB * 3,
            vector_cores,
            lanes: 2048,
            vector_local: Bytes::MIB * 4,
        },
        glb: Bytes::MIB * 128,
        glb_bytes_per_cycle: 4096,
        clock_mhz: 1050,
        memory: OffChipMemory::stacks(hbm2, stacks, technology),
        links_gb_per_s: links,
    }
}

/// TPU v4i: four arrays, one vector unit, 128 MiB and 16 MiB of memory, two stacks (Ten Lessons, 2021).
fn tpu_v4i() -> f64 {
    let technology = technology(7);
    mm2(DieArea::of(&tpu(&technology, 4, 1, 2, 100), &technology).unwrap().total())
}

/// TPU v3: two cores of two arrays, each with a vector unit and 16 MiB of memory, four stacks, four links
/// of 656 Gb/s (Jouppi et al. 2020); half of the later bytes per cycle, for half of the arrays.
fn tpu_v3() -> f64 {
    let technology = technology(16);
    let chip = tpu(&technology, 4, 2, 4, 328);
    let cores = Cores::Systolic {
        tensor_cores: 4,
        macs: 128 * 128,
        local: Bytes::MIB * 6,
        vector_cores: 2,
        lanes: 2048,
        vector_local: Bytes::MIB * 4,
    };
    let chip = Chip { cores, glb: Bytes::ZERO, glb_bytes_per_cycle: 2048, clock_mhz: 940, ..chip };
    mm2(DieArea::of(&chip, &technology).unwrap().total())
}

/// Tesla D1 without its links, which have short reach: 354 nodes of 256 multiply-accumulators, 16 lanes,
/// 1.25 MB and 0.2 mm² of processor each (Hot Chips 2022; the processor is assumed).
fn tesla_d1() -> f64 {
    let processors = 354 * 200_000_000_000;
    let technology = technology(7).with(Constant::FixedArea, processors);
    let chip = Chip {
        cores: Cores::Systolic {
            tensor_cores: 354,
            macs: 256,
            local: Bytes(1_310_720),
            vector_cores: 354,
            lanes: 16,
            vector_local: Bytes::ZERO,
        },
        glb: Bytes::ZERO,
        glb_bytes_per_cycle: 0,
        ..tpu(&technology, 1, 1, 0, 0)
    };
    mm2(DieArea::of(&chip, &technology).unwrap().total())
}

/// A compute die of MI300X: 40 units of 1,024 multiply-accumulators, 128 lanes, 608 KiB, and 4 MiB of
/// cache of 2,048 bytes per cycle; host interface and memory are on other dies (ISSCC 2024).
fn compute_die_of_mi300x() -> f64 {
    let technology = technology(5).with(Constant::FixedArea, 0);
    let chip = Chip {
        cores: Cores::Simt {
            physical: 40,
            enabled: 38,
            macs: 1024,
            lanes: 128,
            local: Bytes::KIB * 608,
        },
        glb: Bytes::MIB * 4,
        glb_bytes_per_cycle: 2048,
        ..tpu(&technology, 1, 1, 0, 0)
    };
    mm2(DieArea::of(&chip, &technology).unwrap().total())
}

/// The memory of WSE-2 alone: 40 GB (Hot Chips 2021).
fn memory_of_wse2() -> f64 {
    let technology = technology(7);
    let per_mib = technology.value(Constant::SramArea) as f64 / 1e12;
    40.0 * 1024.0 * per_mib
}

fn table() -> Vec<Row> {
    let (a100, h100, tpuv4) = (part("a100-80g"), part("h100-sxm"), part("tpuv4"));
    let row =
        |name, nm, published, model, bar, status| Row { name, nm, published, model, bar, status };
    let die = |figures: &PartFigures| mm2(figures.die.unwrap().total());
    let cost = |figures: &PartFigures| figures.cost.total().dollars();
    let watts = |power: ChipPower| power.total().watts();
    let below = |bound: f64, most: f64| Some((bound, 0.75, most));
    let held_out = "not used in calibration";
    vec![
        row(
            "A100 die, mm²",
            7,
            "826",
            die(&a100),
            Some(within(826.0, 0.05)),
            "calibrated: control of a multiprocessor",
        ),
        row("H100 die, mm²", 5, "814", die(&h100), Some(within(814.0, 0.10)), held_out),
        row("TPUv4 die, mm²", 7, "< 600", die(&tpuv4), below(600.0, 1.0), held_out),
        row("TPUv4i die, mm²", 7, "< 400", tpu_v4i(), below(400.0, 1.0), "calibrated: density"),
        row("TPUv3 die, mm²", 16, "< 700", tpu_v3(), below(700.0, 1.05), held_out),
        row("Tesla D1 die, mm²", 7, "645", tesla_d1(), None, "links of short reach left out"),
        row("MI300X compute die, mm²", 5, "115", compute_die_of_mi300x(), None, "a miss"),
        row("WSE-2 memory alone, mm²", 7, "46,225", memory_of_wse2(), None, "of the whole die"),
        row(
            "A100 TDP, W",
            7,
            "400",
            watts(a100.tdp),
            Some(within(400.0, 0.10)),
            "calibrated: SIMT pJ",
        ),
        row("H100 TDP, W", 5, "700", watts(h100.tdp), Some(within(700.0, 0.10)), held_out),
        row(
            "TPUv4 mean power, W",
            7,
            "170",
            watts(tpuv4.tdp),
            Some(within(170.0, 0.10)),
            "calibrated: idle power",
        ),
        row(
            "TPUv4 highest power, W",
            7,
            "192",
            watts(tpuv4.peak),
            Some(within(192.0, 0.10)),
            held_out,
        ),
        row("MI300X TDP, W", 5, "750", watts(part("mi300x").tdp), None, "a miss"),
        row("B200 TDP, W", 5, "1,000", watts(part("b200").tdp), None, "a miss"),
        row(
            "H100 cost, $",
            5,
            "3,320",
            cost(&h100),
            Some(within(3320.0, 0.15)),
            "calibrated: packaging",
        ),
        row("B200 cost, $", 5, "6,400", cost(&part("b200")), Some(within(6400.0, 0.15)), held_out),
        row(
            "MI300X cost, $",
            5,
            "5,300",
            cost(&part("mi300x")),
            Some(within(5300.0, 0.20)),
            held_out,
        ),
    ]
}

#[test]
fn real_chips_are_within_their_bars() {
    for row in table() {
        if let Some((published, least, most)) = row.bar {
            let share = row.model / published;
            assert!((least..=most).contains(&share), "{}: {} of {published}", row.name, row.model);
        }
    }
}

#[test]
fn the_page_shows_the_table_as_it_is() {
    let page = std::fs::read_to_string("docs/hardware.md").unwrap();
    for row in table() {
        let digits = format!("{:.0}", row.model);
        let model = match digits.len() {
            0..=3 => digits,
            n => format!("{},{}", &digits[..n - 3], &digits[n - 3..]),
        };
        let expected = format!("| {} | {} | {} | {model} |", row.name, row.nm, row.published);
        let found =
            page.lines().any(|line| line.starts_with(&expected) && line.contains(row.status));
        assert!(found, "the page lacks: {expected} … {}", row.status);
    }
}

#[test]
fn the_peak_of_an_array_that_never_waits_is_above_the_design_power() {
    for name in ["a100-80g", "h100-sxm", "tpuv4"] {
        let found = part(name);
        assert!(found.peak.total() > found.tdp.total(), "{name}");
    }
    let technology = technology(7);
    let chip = tpu(&technology, 8, 2, 4, 300);
    let die = DieArea::of(&chip, &technology).unwrap().total();
    let power = ChipPower::of(&chip, die, Activity::Sustained, &technology).unwrap();
    assert_eq!(power, part("tpuv4").tdp, "the file describes the chip that this page does");
}
