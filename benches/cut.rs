//! How long the best cut of one pipeline shape, or its best layout over virtual stages, takes to
//! find: chains as models have them, alone and with a time known before.

use std::time::Instant;

use phaze::placement::AfterFigures;
use phaze::placement::ChunkCosts;
use phaze::placement::ChunkFigures;
use phaze::placement::Family;
use phaze::placement::InterleavedShape;
use phaze::placement::PipelineShape;
use phaze::placement::StageCosts;
use phaze::placement::StageFigures;
use phaze::placement::best_cut;
use phaze::placement::best_layout;
use phaze::plan::StageTime;
use phaze::plan::StepStart;

/// An embedding, equal layers and a head; stages repeat as many layers as memory asks for.
struct Chain {
    shape: PipelineShape,
    /// Sums over the layers before each place.
    forward: Vec<u64>,
    parameters: Vec<u64>,
    /// Units of memory for activations; a layer keeps 16 of them, its input alone one.
    room: u64,
}

const SEND: u64 = 150_000_000;
const LAYER: u64 = 1_125_000_000;

impl Chain {
    fn new(n_layers: usize, shape: PipelineShape, room: u64) -> Self {
        let (mut forward, mut parameters) = (vec![0], vec![0]);
        for layer in 0..n_layers + 2 {
            let (pass, own) = match layer {
                0 => (LAYER / 200, 75_000_000),
                _ if layer == n_layers + 1 => (LAYER * 3 / 4, 75_000_000),
                _ => (LAYER, 225_000_000),
            };
            forward.push(forward[layer] + pass);
            parameters.push(parameters[layer] + own);
        }
        Self { shape, forward, parameters, room }
    }
}

impl StageCosts for Chain {
    fn n_states(&self) -> usize {
        self.forward.len()
    }

    fn n_left(&self, state: usize) -> usize {
        self.forward.len() - 1 - state
    }

    fn leads(&self, from: usize, to: usize) -> bool {
        from < to
    }

    fn stage(&self, place: usize, from: usize, to: usize) -> Option<StageFigures> {
        let n_layers = (to - from) as u64;
        let in_flight = self.shape.micro_batches.min((self.shape.n_stages - place) as u64);
        let over = (16 * n_layers * in_flight).saturating_sub(self.room);
        let repeated = over.div_ceil(15 * in_flight);
        if repeated > n_layers {
            return None;
        }
        let forward = self.forward[to] - self.forward[from];
        let parameters = self.parameters[to] - self.parameters[from];
        Some(StageFigures {
            forward: forward + if from > 0 { SEND } else { 0 },
            backward: 2 * forward
                + repeated * LAYER
                + if to + 1 < self.n_states() { SEND } else { 0 },
            exposed: 2 * parameters,
            after: parameters,
        })
    }

    fn least_load(&self, from: usize) -> u64 {
        3 * (self.forward[self.forward.len() - 1] - self.forward[from])
    }

    fn is_monotone(&self) -> bool {
        true
    }
}

fn main() {
    println!("one shape, all p of the list with m = p/2, p, p + 1, 2p, 4p, 1,000, in µs");
    println!(
        "{:>8}{:>8}{:>10}{:>10}{:>20}{:>16}",
        "layers", "memory", "median", "slowest", "of p x m", "median, limit"
    );
    for n_layers in [32, 80, 96, 128, 1000] {
        for room in [u64::MAX, 16 * (n_layers as u64 + 2)] {
            table_row(n_layers, room);
        }
    }
    println!();
    interleaved();
}

impl ChunkCosts for Chain {
    fn n_layers(&self) -> usize {
        self.forward.len() - 1
    }

    fn layer(&self, layer: usize) -> StageTime {
        let forward = self.forward[layer + 1] - self.forward[layer];
        StageTime { forward, backward: 2 * forward }
    }

    fn chunk(&self, _: usize, from: usize, to: usize) -> ChunkFigures {
        let forward = self.forward[to] - self.forward[from];
        ChunkFigures { forward, backward: 2 * forward, kept: 16 * (to - from) as u64 }
    }

    fn held(&self, _: usize, chunks: &[(usize, usize)]) -> u128 {
        let parameters = chunks.iter().map(|&(a, b)| self.parameters[b] - self.parameters[a]);
        parameters.map(u128::from).sum()
    }

    fn after(&self, rank: usize, chunks: &[(usize, usize)]) -> AfterFigures {
        let parameters = u64::try_from(self.held(rank, chunks)).expect("fewer than a device holds");
        AfterFigures { exposed: parameters / 8, after: parameters / 16 }
    }
}

fn interleaved() {
    println!("one shape over virtual stages, in ms");
    println!(
        "{:>8}{:>8}{:>8}{:>8}{:>10}{:>14}",
        "layers", "ranks", "chunks", "m", "alone", "1 % above"
    );
    for (n_layers, ranks, chunks, micro_batches) in
        [(80, 8, 5, 32), (80, 4, 5, 32), (96, 8, 6, 64), (126, 16, 8, 64), (128, 16, 8, 128)]
    {
        let start = StepStart::AllGradients;
        let (group, delay) = (ranks as u64, SEND);
        let chain =
            Chain::new(n_layers, PipelineShape { n_stages: ranks, micro_batches, start }, 0);
        let memory = u128::MAX;
        let shape = InterleavedShape { ranks, chunks, group, micro_batches, memory, delay, start };
        let began = Instant::now();
        let found = best_layout(&chain, shape, Family::Near, None)
            .expect("legal")
            .expect("memory is plenty");
        let alone = began.elapsed().as_secs_f64() * 1e3;
        let began = Instant::now();
        let limit = Some(found.time + found.time / 100);
        std::hint::black_box(best_layout(&chain, shape, Family::Near, limit).expect("legal"));
        let limited = began.elapsed().as_secs_f64() * 1e3;
        println!(
            "{n_layers:>8}{ranks:>8}{chunks:>8}{micro_batches:>8}{alone:>10.1}{limited:>14.1}"
        );
    }
}

fn table_row(n_layers: usize, room: u64) {
    let mut rows = Vec::new();
    for n_stages in [2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 128, 256] {
        let p = n_stages as u64;
        for micro_batches in [p / 2, p, p + 1, 2 * p, 4 * p, 1000] {
            for start in [StepStart::OwnGradients, StepStart::AllGradients] {
                if n_stages <= n_layers {
                    rows.push(timed(
                        n_layers,
                        PipelineShape { n_stages, micro_batches, start },
                        room,
                    ));
                }
            }
        }
    }
    let median = |of: &dyn Fn(&(f64, f64, PipelineShape)) -> f64| {
        let mut times: Vec<f64> = rows.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let slowest = rows.iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are shapes");
    println!(
        "{n_layers:>8}{:>8}{:>10.0}{:>10.0}{:>20}{:>16.0}",
        if room == u64::MAX { "plenty" } else { "short" },
        median(&|row| row.0),
        slowest.0,
        format!("{} x {}", slowest.2.n_stages, slowest.2.micro_batches),
        median(&|row| row.1)
    );
}

/// Microseconds without a limit, and with the best time as the limit: nothing is below.
fn timed(n_layers: usize, shape: PipelineShape, room: u64) -> (f64, f64, PipelineShape) {
    let chain = Chain::new(n_layers, shape, room);
    let start = Instant::now();
    let found = best_cut(&chain, shape, None);
    let alone = start.elapsed().as_secs_f64() * 1e6;
    let start = Instant::now();
    assert_eq!(best_cut(&chain, shape, found.map(|found| found.time)), None);
    (alone, start.elapsed().as_secs_f64() * 1e6, shape)
}
