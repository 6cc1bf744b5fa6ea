//! How fast estimates are: mixed points on one thread.

use std::collections::BTreeMap;
use std::time::Instant;

use phaze::estimate::tensor_core::Scratch;
use phaze::estimate::tensor_core::best;
use phaze::hardware::CoreSpec;
use phaze::hardware::DesignSpace;
use phaze::hardware::Use;
use phaze::input::hardware::preset;
use phaze::model::op::Home;
use phaze::model::op::Homes;
use phaze::model::op::Matmul;
use phaze::units::Bytes;

const SEED: u64 = 0x5eed_0003;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

impl Dice {
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = usize::try_from(self.below(choices.len() as u64)).expect("an index is small");
        choices[at]
    }
}

fn main() {
    let mut dice = Dice(SEED);
    let points = mixed_points(&mut dice, 10_000);
    let homes = Homes { a: Home::Hbm, b: Home::Hbm, out: Home::Hbm };
    let mut scratch = Scratch::default();
    let mut times: Vec<(u64, f64)> = Vec::new();
    for (matmul, spec) in &points {
        let start = Instant::now();
        let found = best(matmul, homes, spec, 0, &mut scratch);
        times.push((spec.count, start.elapsed().as_secs_f64() * 1e6));
        assert!(found.is_some());
    }
    let mean = times.iter().map(|t| t.1).sum::<f64>() / times.len() as f64;
    let mut sorted: Vec<f64> = times.iter().map(|t| t.1).collect();
    sorted.sort_by(f64::total_cmp);
    println!(
        "mean {mean:.1} µs, p50 {:.1}, p99 {:.1} µs, max {:.1}",
        sorted[5000], sorted[9900], sorted[9999]
    );
    let mut by: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (count, time) in times {
        by.entry(count).or_default().push(time);
    }
    for (count, times) in by {
        println!(
            "{count:>6} cores: {:>7.1} µs over {}",
            times.iter().sum::<f64>() / times.len() as f64,
            times.len()
        );
    }
    println!("halves visited per point {}", scratch.visited / 10_000);
}

fn mixed_points(dice: &mut Dice, n: usize) -> Vec<(Matmul, CoreSpec)> {
    let space = DesignSpace::published();
    let ours = preset("tpuv4-like", "").unwrap().physics;
    let published = preset("icml24", "").unwrap().physics;
    let (designs, _) = space.designs(&ours);
    let mut specs: Vec<_> = designs.clone();
    specs.sort_by_key(|c| (c.design.tensor_cores, c.design.width, c.design.depth, c.design.glb));
    specs.dedup_by_key(|c| (c.design.tensor_cores, c.design.width, c.design.depth, c.design.glb));
    (0..n)
        .map(|_| {
            let candidate = dice.pick(&specs);
            let physics = if dice.below(2) == 0 { &ours } else { &published };
            let chip = candidate.build(Bytes::GIB * dice.pick(&[32, 64, 80]), physics).unwrap();
            let hidden = dice.pick(&[768, 1024, 1600, 1920, 3072, 4096, 5120, 8192, 12288]);
            let tokens = (1 << dice.below(4)) * dice.pick(&[512, 1024, 2048, 4096]);
            let t = 1 << dice.below(4);
            let mut matmul = match dice.below(6) {
                0 => Matmul { b: 1, m: tokens, k: hidden, n: 3 * hidden / t },
                1 => Matmul { b: 1, m: tokens, k: hidden, n: 4 * hidden / t },
                2 => Matmul { b: 1, m: tokens, k: 4 * hidden / t, n: hidden },
                3 => Matmul { b: 1, m: hidden, k: tokens, n: 4 * hidden / t },
                4 => Matmul { b: 96 / t, m: 2048, k: 128, n: 2048 },
                _ => Matmul {
                    b: 1 + dice.below(16),
                    m: 1 + dice.below(20000),
                    k: 1 + dice.below(20000),
                    n: 1 + dice.below(20000),
                },
            };
            if dice.below(10) == 0 {
                std::mem::swap(&mut matmul.m, &mut matmul.n);
            }
            (matmul, chip.tensor(if dice.below(8) == 0 { Use::Alone } else { Use::Spread }))
        })
        .collect()
}
