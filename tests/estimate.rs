//! Laws that every estimate obeys, and what the real TPU v4 reaches.

use phaze::estimate::EstimateTable;
use phaze::estimate::Limit;
use phaze::estimate::Options;
use phaze::estimate::VectorCosts;
use phaze::estimate::roofline::Roofline;
use phaze::estimate::tensor_core::Cost;
use phaze::estimate::tensor_core::Scratch;
use phaze::estimate::tensor_core::best;
use phaze::hardware::Accelerator;
use phaze::hardware::Cluster;
use phaze::hardware::CoreSpec;
use phaze::hardware::DesignSpace;
use phaze::hardware::Use;
use phaze::input;
use phaze::input::hardware::preset;
use phaze::model::Attention;
use phaze::model::op::Home;
use phaze::model::op::Homes;
use phaze::model::op::Matmul;
use phaze::model::op::Numbers;
use phaze::model::op::Op;
use phaze::model::op::Traffic;
use phaze::model::op::Work;
use phaze::parallel::Setting;
use phaze::parallel::Share;
use phaze::parallel::shard;
use phaze::units::Bandwidth;
use phaze::units::Bytes;

/// A small repeatable source of numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    /// Sizes of all magnitudes, round ones more often than not.
    fn size(&mut self, most_bits: u64) -> u64 {
        let bits = self.below(most_bits);
        match self.below(3) {
            0 => 1 << bits,
            1 => 3 << bits >> 1,
            _ => 1 + self.below(2 << bits),
        }
        .max(1)
    }
}

struct Case {
    matmul: Matmul,
    homes: Homes,
    core: CoreSpec,
}

/// Cores of designs spaced through the published space, and GPUs, with random matmuls.
fn cases(seed: u64, n: usize) -> Vec<Case> {
    let mut dice = Dice(seed);
    let physics = [preset("tpuv4-like", "").unwrap(), preset("icml24", "").unwrap()];
    let (designs, _) = DesignSpace::published().designs(&physics[0].physics);
    let gpus: Vec<Accelerator> = ["a100-80g", "h100-sxm"]
        .iter()
        .map(|name| preset(name, "").unwrap())
        .map(|gpu| Accelerator::new(gpu.design, &gpu.physics).unwrap())
        .collect();
    let mut one = || {
        let chip = if dice.below(20) == 0 {
            gpus[usize::try_from(dice.below(2)).unwrap()].clone()
        } else {
            let candidate = dice.pick(&designs);
            let which = usize::try_from(dice.below(2)).unwrap();
            candidate.build(Bytes::GIB * 32, &physics[which].physics).unwrap()
        };
        let core = chip.tensor(dice.pick(&[Use::Alone, Use::Spread, Use::Spread]));
        let b = if dice.below(2) == 0 { 1 } else { dice.size(6) };
        let matmul = Matmul { b, m: dice.size(12), k: dice.size(12), n: dice.size(12) };
        let home = if dice.below(6) == 0 { Home::Chip } else { Home::Hbm };
        let homes = dice.pick(&[
            Homes::ALL_HBM,
            Homes { a: home, ..Homes::ALL_HBM },
            Homes { out: home, ..Homes::ALL_HBM },
        ]);
        Case { matmul, homes, core }
    };
    (0..n).map(|_| one()).collect()
}

type Change = fn(&mut CoreSpec);

fn cost(case: &Case, change: impl Fn(&mut Matmul, &mut CoreSpec)) -> Cost {
    let (mut matmul, mut core) = (case.matmul, case.core);
    change(&mut matmul, &mut core);
    best(&matmul, case.homes, &core, 0, &mut Scratch::default()).unwrap().1
}

#[test]
fn more_of_anything_is_never_slower() {
    for (i, case) in cases(0x0001_2345, 400).iter().enumerate() {
        let before = cost(case, |_, _| {}).cycles;
        let more: [(&str, Change); 8] = [
            ("cores", |core| {
                core.count =
                    if core.count.is_power_of_two() { core.count * 2 } else { core.count + 2 }
            }),
            ("local buffer", |core| core.local = Bytes(core.local.0 * 3 / 2)),
            ("global buffer", |core| core.glb = Bytes(core.glb.0 * 5 / 4)),
            ("local reads", |core| core.local_port.read += 16),
            ("local writes", |core| core.local_port.write += 16),
            ("global reads", |core| core.glb_port.read += 64),
            ("global writes", |core| core.glb_port.write += 64),
            ("memory", |core| {
                let rate = core.hbm.as_bytes_per_second() * 4 / 3;
                core.hbm = Bandwidth::bytes_per_second(rate).unwrap();
            }),
        ];
        for (what, change) in more {
            let after = cost(case, |_, core| change(core)).cycles;
            assert!(after <= before, "case {i}: more {what}: {:?} {:?}", case.matmul, case.core);
        }
        let wider = cost(case, |_, core| core.multicast = core.multicast.saturating_mul(2)).cycles;
        assert!(wider <= before, "case {i}: more multicast");
    }
}

#[test]
fn the_shape_of_a_matmul_decides_as_it_should() {
    for (i, case) in cases(0x0abc_def1, 400).iter().enumerate() {
        let before = cost(case, |_, _| {});
        let turned = Case {
            matmul: case.matmul,
            homes: Homes { a: case.homes.b, b: case.homes.a, out: case.homes.out },
            core: case.core,
        };
        let turned = cost(&turned, |matmul, _| std::mem::swap(&mut matmul.m, &mut matmul.n));
        assert_eq!(
            (turned.cycles, turned.energy_eighths),
            (before.cycles, before.energy_eighths),
            "case {i}: m and n exchanged: {:?}",
            case.matmul
        );
        let one = cost(case, |matmul, _| matmul.b = 1).cycles;
        assert!(before.cycles.0 <= one.0 * case.matmul.b, "case {i}: a batch");
        let grown: [fn(&mut Matmul); 4] =
            [|x| x.b += 1, |x| x.m += 1, |x| x.k += 1, |x| x.n = x.n * 9 / 8 + 1];
        for (which, grow) in grown.into_iter().enumerate() {
            let after = cost(case, |matmul, _| grow(matmul)).cycles;
            assert!(after >= before.cycles, "case {i}: size {which} grown: {:?}", case.matmul);
        }
    }
}

#[test]
fn no_estimate_is_below_a_roofline() {
    for (i, case) in cases(0x0777_1234, 600).iter().enumerate() {
        let found = cost(case, |_, _| {});
        let Matmul { b, m, k, n } = case.matmul;
        let core = &case.core;
        let e = core.element_bytes;
        assert!(found.cycles.0 >= (b * m * k * n).div_ceil(core.macs_per_cycle()), "case {i}");
        let crossing = |home, elements: u64| if home == Home::Hbm { elements * e } else { 0 };
        let least = crossing(case.homes.a, b * m * k)
            + crossing(case.homes.b, b * k * n)
            + crossing(case.homes.out, b * m * n);
        assert!(found.hbm_read.0 + found.hbm_written.0 >= least, "case {i}");
        let seconds = found.cycles.0 as f64 / core.clock.as_hertz() as f64;
        let memory = least as f64 / core.hbm.as_bytes_per_second() as f64;
        assert!(seconds >= memory * (1.0 - 1e-12), "case {i}");
        let glb = (b * (m * k + k * n) * e).div_ceil(core.glb_port.read);
        assert!(found.cycles.0 >= glb, "case {i}");
    }
}

#[test]
fn an_operator_of_2_to_the_62_is_answered_or_refused_but_never_panics() {
    let huge = Matmul { b: 1 << 10, m: 1 << 20, k: 1 << 16, n: 1 << 16 };
    for case in cases(0x0666_4321, 30) {
        for homes in [Homes::ALL_HBM, Homes { a: Home::Chip, b: Home::Chip, out: Home::Chip }] {
            let found = best(&huge, homes, &case.core, 0, &mut Scratch::default());
            assert!(found.is_none_or(|(_, cost)| cost.cycles.0 > 0));
        }
    }
}

fn share(model: &str, width: u64, micro_batch: u64, attention: Attention) -> Share {
    let model = input::model(model).unwrap();
    let setting = Setting {
        micro_batch,
        sequence: model.spec.max_sequence,
        tensor_parallel: width,
        sequence_parallel: false,
        attention,
        element: Bytes(2),
        ..Setting::ALONE
    };
    shard(&model, setting).unwrap()
}

fn operators(share: &Share) -> Vec<&Op> {
    let layers = share.kinds.iter();
    layers.flat_map(|l| l.forward.nodes().iter().chain(l.backward.nodes())).collect()
}

fn chip(name: &str) -> (Accelerator, Cluster) {
    let found = preset(name, "").unwrap();
    let chip = Accelerator::new(found.design, &found.physics).unwrap();
    (chip, Cluster { devices: 1024, network: found.physics.network })
}

#[test]
fn the_table_answers_what_a_search_of_its_own_finds_for_every_memory() {
    let share = share("gpt2-xl", 1, 1, Attention::Stored);
    let found = preset("tpuv4-like", "").unwrap();
    let (designs, _) = DesignSpace::published().designs(&found.physics);
    let cluster = Cluster { devices: 8, network: found.physics.network };
    let table = EstimateTable::new(Options::default());
    let mut bound_by_memory = 0;
    for candidate in designs.iter().step_by(1_900) {
        for gib in [64, 32, 80] {
            let chip = candidate.build(Bytes::GIB * gib, &found.physics).unwrap();
            for op in operators(&share) {
                let Work::Matmul { matmul, homes, fused, .. } = &op.work else { continue };
                if !fused.is_empty() {
                    continue;
                }
                for cores in [Use::Alone, Use::Spread] {
                    let asked = table.estimate(op, &chip, &cluster, cores).unwrap();
                    let core = chip.tensor(cores);
                    let (_, direct) =
                        best(matmul, *homes, &core, 0, &mut Scratch::default()).unwrap();
                    assert_eq!(asked.time, chip.clock().time(direct.cycles), "{}", op.name);
                    assert_eq!(asked.energy, direct.total_energy(), "{}", op.name);
                    bound_by_memory += u64::from(asked.limit == Limit::Hbm);
                }
            }
        }
    }
    assert!(bound_by_memory > 10, "memory decided {bound_by_memory} times");
}

#[test]
fn a_fused_operator_takes_at_least_as_long_as_either_part() {
    let table = EstimateTable::new(Options::default());
    let (chip, cluster) = chip("tpuv4-like");
    let mut seen = 0;
    let share = share("gpt2-xl", 1, 2, Attention::Recomputed);
    for op in operators(&share) {
        let Work::Matmul { matmul, homes, fused, .. } = &op.work else { continue };
        if fused.is_empty() {
            continue;
        }
        let numbers = Numbers::Bf16;
        let bare = Work::Matmul {
            matmul: *matmul,
            homes: *homes,
            fused: Vec::new(),
            numbers,
            grouped: false,
        };
        let parts = [bare, Work::Vector(fused.clone())].map(|work| Op {
            name: op.name.clone(),
            work,
            traffic: Traffic::default(),
        });
        let whole = table.costs(op, &chip, &cluster).unwrap();
        for part in &parts {
            let part = table.costs(part, &chip, &cluster).unwrap();
            assert!(whole.alone.time >= part.alone.time, "{}", op.name);
            assert!(whole.spread.time >= part.spread.time, "{}", op.name);
            assert!(whole.spread.energy >= part.spread.energy, "{}", op.name);
        }
        seen += 1;
    }
    assert!(seen > 5);
}

#[test]
fn every_operator_of_a_model_is_above_its_roofline_and_spreading_never_hurts() {
    let table = EstimateTable::new(Options::default());
    for (name, width) in [("gpt3-175b", 8), ("llama2-7b", 1), ("bert-large", 1)] {
        for attention in [Attention::Stored, Attention::Recomputed] {
            let share = share(name, width, 1, attention);
            for preset in ["tpuv4", "a100-80g", "h100-sxm", "tpuv4-like"] {
                let (chip, cluster) = chip(preset);
                for op in operators(&share) {
                    let costs = table.costs(op, &chip, &cluster).unwrap();
                    assert!(costs.spread.time <= costs.alone.time, "{name} {preset} {}", op.name);
                    let roof = Roofline::of(op, &chip, VectorCosts::Corrected).unwrap();
                    assert!(costs.spread.time >= roof.time(), "{name} {preset} {}", op.name);
                }
            }
        }
    }
}

#[test]
fn the_real_tpuv4_reaches_98_percent_of_peak_on_the_linear_layers_of_gpt3() {
    let (chip, _) = chip("tpuv4");
    let core = chip.tensor(Use::Spread);
    for width in [4, 8] {
        let share = share("gpt3-175b", width, 1, Attention::Stored);
        let layer = share.kinds.iter().find(|kind| kind.name == "transformer").unwrap();
        let ops = layer.forward.nodes().iter().chain(layer.backward.nodes());
        for op in ops {
            let Work::Matmul { matmul, homes, .. } = &op.work else { continue };
            let (_, cost) = best(matmul, *homes, &core, 0, &mut Scratch::default()).unwrap();
            let Matmul { b, m, k, n } = *matmul;
            let of_peak = (b * m * k * n) as f64 / (core.macs_per_cycle() * cost.cycles.0) as f64;
            if b == 1 {
                assert!(of_peak >= 0.98, "{} at width {width}: {of_peak}", op.name);
            } else {
                // Stored attention: its operands cross memory, which decides.
                let bytes = 2 * b * (m * k + k * n + m * n);
                let least = bytes as f64 / core.hbm.as_bytes_per_second() as f64;
                let seconds = cost.cycles.0 as f64 / core.clock.as_hertz() as f64;
                assert_eq!(cost.limit, Limit::Hbm, "{} at width {width}", op.name);
                assert!(seconds <= least * 1.001, "{}: {seconds} of {least}", op.name);
            }
        }
    }
}
