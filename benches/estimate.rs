//! How fast estimates are, how much of the mapping space is visited, and how they compare with the
//! published mapper. `cargo bench --bench estimate`; times are those of the processor, so that
//! other work on the machine does not count.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use phaze::estimate::EstimateTable;
use phaze::estimate::Limit;
use phaze::estimate::Options;
use phaze::estimate::many;
use phaze::estimate::tensor_core::Scratch;
use phaze::estimate::tensor_core::best;
use phaze::estimate::tensor_core::search::space_size;
use phaze::hardware::Accelerator;
use phaze::hardware::Cluster;
use phaze::hardware::CoreSpec;
use phaze::hardware::DesignSpace;
use phaze::hardware::Use;
use phaze::input;
use phaze::input::hardware::Hardware;
use phaze::input::hardware::preset;
use phaze::model::Attention;
use phaze::model::op::CoreKind;
use phaze::model::op::Homes;
use phaze::model::op::Matmul;
use phaze::model::op::Op;
use phaze::model::op::Work;
use phaze::parallel::Setting;
use phaze::parallel::shard;
use phaze::units::Bytes;

#[path = "../tests/artifact/mod.rs"]
mod artifact;

const SEED: u64 = 0x5eed_0003;

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
        let at = usize::try_from(self.below(choices.len() as u64)).expect("an index is small");
        choices[at]
    }
}

fn main() {
    let ours = preset("tpuv4-like", "").expect("a preset can be read");
    let chips = distinct_chips(&ours);
    mixed_points(&chips);
    gpt3(&ours, &chips);
    published_mapper();
}

/// One chip for each (tensor cores, width, depth, global buffer) of the published space.
fn distinct_chips(hardware: &Hardware) -> Vec<Accelerator> {
    let (designs, _) = DesignSpace::published().designs(&hardware.physics);
    let mut seen = BTreeSet::new();
    let key = |d: &phaze::hardware::Design| (d.tensor_cores, d.width, d.depth, d.glb);
    designs
        .iter()
        .filter(|candidate| seen.insert(key(&candidate.design)))
        .map(|c| c.build(Bytes::GIB * 32, &hardware.physics).expect("designs can be built"))
        .collect()
}

/// Nanoseconds that this thread has run; wall time where the system does not say.
fn processor_ns(start: Instant) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
    ran.unwrap_or_else(|| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Seconds that all threads of this process have run.
fn process_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets, user and system time are the 12th and 13th, in hundredths.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn mixed_points(chips: &[Accelerator]) {
    let mut dice = Dice(SEED);
    let published = preset("icml24", "").expect("a preset can be read").physics;
    let points: Vec<(Matmul, CoreSpec)> = (0..10_000)
        .map(|_| {
            let at = usize::try_from(dice.below(chips.len() as u64)).expect("an index is small");
            let mut chip = chips[at].clone();
            if dice.below(2) == 0 {
                chip = Accelerator::new(*chip.design(), &published).expect("it can be built");
            }
            (random_matmul(&mut dice), chip.tensor(Use::Spread))
        })
        .collect();
    let distinct: BTreeSet<_> = points.iter().collect();
    let mut scratch = Scratch::default();
    let mut times: Vec<(u64, f64)> = Vec::new();
    let start = Instant::now();
    let before = processor_ns(start);
    for (matmul, core) in &points {
        let point = Instant::now();
        let found = best(matmul, Homes::ALL_HBM, core, 0, &mut scratch);
        times.push((core.count, point.elapsed().as_secs_f64() * 1e6));
        assert!(found.is_some(), "every point has a mapping");
    }
    let mean = (processor_ns(start) - before) as f64 / 1e3 / points.len() as f64;
    let mut sorted: Vec<f64> = times.iter().map(|time| time.1).collect();
    sorted.sort_by(f64::total_cmp);
    println!("# mixed points, one thread (seed {SEED:#x}, {} distinct)", distinct.len());
    println!(
        "mean {mean:.1} µs per point; wall: median {:.1}, p99 {:.1} µs",
        sorted[5_000], sorted[9_900]
    );
    let mut by_count: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for &(count, time) in &times {
        by_count.entry(count).or_default().push(time);
    }
    for (count, mut times) in by_count {
        times.sort_by(f64::total_cmp);
        // Without the slowest hundredth, in which the thread did not run.
        let kept = &times[..times.len() * 99 / 100];
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        println!("  {count:>5} cores {mean:>8.1} µs  ({} points)", times.len());
    }
    let sample: Vec<_> = points.iter().step_by(50).collect();
    let mut sampled = Scratch::default();
    let counted: f64 = sample.iter().map(|(matmul, core)| space_size(matmul, core) as f64).sum();
    for (matmul, core) in &sample {
        best(matmul, Homes::ALL_HBM, core, 0, &mut sampled);
    }
    println!(
        "mappings per point: {:.3e} in the space, {:.0} visited (mean of {})\n",
        counted / sample.len() as f64,
        sampled.visited as f64 / sample.len() as f64,
        sample.len()
    );
}

fn random_matmul(dice: &mut Dice) -> Matmul {
    let hidden = dice.pick(&[768, 1024, 1600, 1920, 3072, 4096, 5120, 8192, 12288]);
    let tokens = (1 << dice.below(4)) * dice.pick(&[512, 1024, 2048, 4096]);
    let t = 1 << dice.below(4);
    match dice.below(6) {
        0 => Matmul { b: 1, m: tokens, k: hidden, n: 3 * hidden / t },
        1 => Matmul { b: 1, m: tokens, k: hidden, n: 4 * hidden / t },
        2 => Matmul { b: 1, m: tokens, k: 4 * hidden / t, n: hidden },
        3 => Matmul { b: 1, m: hidden, k: tokens, n: 4 * hidden / t },
        4 => Matmul { b: hidden / 64 / t.min(4), m: tokens.min(4096), k: 64, n: tokens.min(4096) },
        _ => Matmul {
            b: 1 + dice.below(16),
            m: 1 + dice.below(20_000),
            k: 1 + dice.below(20_000),
            n: 1 + dice.below(20_000),
        },
    }
}

/// All operators of GPT-3 on all cores of the published space.
fn gpt3(hardware: &Hardware, chips: &[Accelerator]) {
    let model = input::model("gpt3-175b").expect("it is built in");
    let mut shares = Vec::new();
    for tensor_parallel in [4, 8] {
        for micro_batch in [1, 2, 4, 8] {
            let setting = Setting {
                micro_batch,
                sequence: model.spec.max_sequence,
                tensor_parallel,
                sequence_parallel: false,
                attention: Attention::Stored,
                element: Bytes(2),
                ..Setting::ALONE
            };
            shares.push(shard(&model, setting).expect("these widths are legal"));
        }
    }
    let layers = shares.iter().flat_map(|share| &share.kinds);
    let ops: Vec<&Op> = layers
        .flat_map(|layer| layer.forward.nodes().iter().chain(layer.backward.nodes()))
        .collect();
    let mut seen = BTreeSet::new();
    let matmuls: Vec<&Op> = ops
        .iter()
        .copied()
        .filter(|op| match &op.work {
            Work::Matmul { matmul, homes, .. } => seen.insert((*matmul, *homes)),
            _ => false,
        })
        .collect();
    let vectors: Vec<&Op> =
        ops.iter().copied().filter(|op| op.core() == CoreKind::Vector).collect();
    let cluster = Cluster { devices: 1024, network: hardware.physics.network };
    let table = EstimateTable::new(Options::default());
    let start = Instant::now();
    let before = process_seconds();
    let totals = many::each(chips, 2, &AtomicUsize::new(0), |chip| {
        let times = matmuls.iter().map(|op| {
            table.estimate(op, chip, &cluster, Use::Spread).expect("it can be timed").time.0
        });
        times.sum::<u64>()
    });
    let matmul_seconds = start.elapsed().as_secs_f64();
    let processor = process_seconds() - before;
    let mut seen = BTreeSet::new();
    let (designs, _) = DesignSpace::published().designs(&hardware.physics);
    let lanes: Vec<Accelerator> = designs
        .iter()
        .filter(|c| seen.insert((c.design.vector_cores, c.design.vector_width, c.design.glb)))
        .map(|c| c.build(Bytes::GIB * 32, &hardware.physics).expect("designs can be built"))
        .collect();
    let start = Instant::now();
    many::each(&lanes, 2, &AtomicUsize::new(0), |chip| {
        let times = vectors.iter().map(|op| {
            table.estimate(op, chip, &cluster, Use::Spread).expect("it can be timed").time.0
        });
        times.sum::<u64>()
    });
    let vector_seconds = start.elapsed().as_secs_f64();
    println!("# GPT-3 175B, widths 4 and 8, micro-batch 1, 2, 4, 8, two threads (wall)");
    println!(
        "{} distinct matmuls on {} core specs ({} points): {matmul_seconds:.1} s, {processor:.1} s \
         of processors",
        matmuls.len(),
        chips.len(),
        matmuls.len() * chips.len()
    );
    println!("{} vector operators on {} specs: {vector_seconds:.2} s", vectors.len(), lanes.len());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("peak memory {}", peak.trim_start_matches("VmHWM:").trim());
    let best = totals.iter().min().expect("there are chips");
    let close = totals.iter().filter(|&&total| total as f64 <= *best as f64 * 1.01).count();
    println!(
        "{close} of {} core specs are within 1 % of the best sum of matmul times",
        chips.len()
    );
    further_memories(hardware, chips, &matmuls, &cluster, &table);
}

/// What two more sizes of memory cost once one is known, and what remembering is worth.
fn further_memories(
    hardware: &Hardware,
    chips: &[Accelerator],
    matmuls: &[&Op],
    cluster: &Cluster,
    table: &EstimateTable,
) {
    let sample: Vec<_> = chips.iter().step_by(10).collect();
    let ask = |gib: u64| {
        let start = Instant::now();
        let chips: Vec<Accelerator> = sample
            .iter()
            .map(|chip| {
                let design = phaze::hardware::Design { hbm: Bytes::GIB * gib, ..*chip.design() };
                Accelerator::new(design, &hardware.physics).expect("it can be built")
            })
            .collect();
        let before = processor_ns(start);
        for chip in &chips {
            for op in matmuls {
                table.estimate(op, chip, cluster, Use::Spread).expect("it can be timed");
            }
        }
        (processor_ns(start) - before) as f64 / 1e3 / (sample.len() * matmuls.len()) as f64
    };
    println!(
        "per point: known {:.2} µs, with 64 GiB {:.2} µs more, with 80 GiB {:.2} µs more\n",
        ask(32),
        ask(64),
        ask(80)
    );
}

/// Our cycles over those that the published mapper found, under its constants, rule by rule.
fn published_mapper() {
    let points = artifact::points();
    println!(
        "# our cycles / the published mapper's on its {} points, constants of icml24",
        points.len()
    );
    println!("rules of the artifact taken over      above   p10    p50    p90    most");
    let names = [
        "none: icml24 proper",
        "16 weights in registers",
        "buffers in elements",
        "local bandwidth of the chip",
        "all three",
    ];
    for (rules, name) in artifact::Rules::EACH.into_iter().zip(names) {
        let mut ratios: Vec<f64> = points
            .iter()
            .map(|point| artifact::cycles(point, rules) as f64 / point.published)
            .collect();
        let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
        ratios.sort_by(f64::total_cmp);
        let at = |share: usize| ratios[(ratios.len() - 1) * share / 100];
        println!(
            "{name:<36} {above:>6} {:>6.3} {:>6.3} {:>6.3} {:>6.3}",
            at(10),
            at(50),
            at(90),
            at(100)
        );
    }
    let at_peak = points.iter().filter(|point| point.published <= point.ideal).count();
    println!("{at_peak} points of the published mapper reach the peak");
    let mut above = 0;
    let mut local_on_large_arrays = 0;
    let mut scratch = Scratch::default();
    for point in &points {
        let found = best(&point.matmul, Homes::ALL_HBM, &point.core, 0, &mut scratch);
        let (_, cost) = found.expect("it has a mapping");
        if cost.cycles.0 as f64 > point.published {
            above += 1;
            let large = point.core.width + point.core.depth > 64;
            local_on_large_arrays += u64::from(large && cost.limit == Limit::Local);
        }
    }
    println!(
        "of the {above} above, {local_on_large_arrays} are bound by local reads on arrays with width + depth > 64"
    );
}
