//! A lower bound on the time of a layer's pass on any design, in well under a microsecond.
//!
//! In: the operators of a pass ([`Sketch::new`]) and a design's peak rates ([`PeakRates`]).
//! Out: a time that no mapping and no schedule of them can beat (docs/search.md, steps 1 and 2).
//!
//! Floats serve for speed; each answer is lowered by more than their error, so it stays a bound.

use super::least_energy::OperandBytes;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Traffic;

/// What an operator needs at the least, whatever the design.
#[derive(Clone, Debug)]
pub struct OpNeeds {
    /// The product, where there is one.
    pub matmul: Option<Matmul>,
    /// Whether the product is that of experts.
    pub grouped: bool,
    /// Operations of which no loops are known.
    pub flops: u64,
    /// In which numbers it computes.
    pub numbers: Numbers,
    /// Where its tensors are.
    pub homes: Homes,
    /// Whether it is a kernel that is launched.
    pub is_kernel: bool,
    /// Cycles of one vector lane.
    pub lane_cycles: u64,
    /// Bytes that cross HBM at least once.
    pub hbm_bytes: u64,
    /// What a product reads and writes at the least.
    pub operands: OperandBytes,
    /// What moves besides, exactly.
    pub traffic: Traffic,
    /// Picoseconds on the network, which no design changes.
    pub network: u64,
}

/// What a chip can do at the most, in picoseconds for each.
#[derive(Clone, Copy, Debug)]
pub struct PeakRates {
    /// One step of all arrays together: a cycle divided by the tensor cores.
    pub step: f64,
    /// One cycle of one lane, by all lanes together.
    pub lane_cycle: f64,
    /// One byte through HBM.
    pub byte: f64,
    /// How much longer the arrays take, by class of matmul: in bf16, in 8 bits, in attention, and of
    /// experts in either numbers.
    slow: [f64; N_CLASSES],
    /// How much longer a byte takes that one operator moves.
    slow_byte: f64,
    /// What each kernel pays.
    launch: f64,
}

/// A pass of a layer, prepared for one shape of array.
#[derive(Clone, Debug)]
pub struct Sketch {
    ops: Vec<OpSketch>,
    /// Predecessors of all operators, one after the other.
    reads: Vec<u32>,
    /// Steps by class of matmul.
    steps: [f64; N_CLASSES],
    total: [f64; 3],
}

#[derive(Clone, Copy, Debug)]
struct OpSketch {
    steps: f64,
    class: usize,
    is_kernel: bool,
    lane_cycles: f64,
    hbm_bytes: f64,
    network: f64,
    /// Where its predecessors end in `reads`.
    reads_end: u32,
}

/// Classes of matmuls that reach different parts of the arrays' peak.
const N_CLASSES: usize = 5;

/// More than all rounding of a few hundred float operations, relative.
pub const FLOAT_ERROR: f64 = 1e-9;

impl Sketch {
    /// Prepares a pass for arrays of `width` x `depth`.
    pub fn new(pass: &Dag<OpNeeds>, width: u64, depth: u64) -> Self {
        let mut reads = Vec::new();
        let mut ops = Vec::with_capacity(pass.len());
        let (mut all_steps, mut total) = ([0.0; N_CLASSES], [0.0; 3]);
        for id in pass.ids() {
            let needs = pass.node(id);
            reads.extend(pass.predecessors(id).iter().map(|read| small(read.index())));
            let deep = depth.saturating_mul(needs.numbers.per_cycle());
            let steps = needs.matmul.map_or(0, |matmul| array_steps(matmul, width, deep));
            let unknown = needs.flops as f64 / (2.0 * width as f64 * depth as f64);
            let op = OpSketch {
                steps: steps as f64 + unknown,
                class: class(needs),
                is_kernel: needs.is_kernel,
                lane_cycles: needs.lane_cycles as f64,
                hbm_bytes: needs.hbm_bytes as f64,
                network: needs.network as f64,
                reads_end: small(reads.len()),
            };
            all_steps[op.class] += op.steps;
            let parts = [op.lane_cycles, op.hbm_bytes, op.network];
            for (sum, part) in total.iter_mut().zip(parts) {
                *sum += part;
            }
            ops.push(op);
        }
        Self { ops, reads, steps: all_steps, total }
    }

    /// Picoseconds of all operators one after another, each at its least.
    pub fn least_sum(&self, rates: &PeakRates) -> u64 {
        let sum = self.ops.iter().map(|op| rates.slowest_part(op)).sum::<f64>();
        lowered(sum)
    }

    /// Picoseconds that the pass takes at the least; `ends` is scratch space.
    pub fn least_time(&self, rates: &PeakRates, ends: &mut Vec<f64>) -> f64 {
        let [lane_cycles, hbm_bytes, network] = self.total;
        let steps = self.steps.iter().zip(rates.slow).map(|(steps, slow)| steps * slow);
        // Operators side by side share all of the memory's bandwidth.
        let mut least = (steps.sum::<f64>() * rates.step)
            .max(lane_cycles * rates.lane_cycle)
            .max(hbm_bytes * rates.byte)
            .max(network);
        ends.clear();
        let mut first_read = 0;
        for op in &self.ops {
            let last_read = op.reads_end as usize;
            let start = self.reads[first_read..last_read]
                .iter()
                .fold(0.0_f64, |latest, &read| latest.max(ends[read as usize]));
            first_read = last_read;
            let end = start + rates.slowest_part(op);
            least = least.max(end);
            ends.push(end);
        }
        least
    }
}

impl PeakRates {
    /// Those of a chip.
    pub fn of(chip: &Accelerator) -> Self {
        let design = chip.design();
        let cycle = 1e12 / chip.clock().as_hertz() as f64;
        let reached = chip.efficiency();
        let slow = |part: u16| 1000.0 / f64::from(part);
        let lanes = design.vector_cores as f64 * design.vector_width as f64;
        let lanes = chip.most_lanes().map_or(lanes, |most| lanes.min(most.lanes as f64));
        Self {
            step: cycle / chip.rooflines().1 as f64,
            lane_cycle: cycle / lanes,
            byte: 1e12 / chip.hbm_bandwidth().as_bytes_per_second() as f64,
            slow: [
                reached.matmul,
                reached.matmul_fp8,
                reached.attention,
                reached.in_groups(reached.matmul),
                reached.in_groups(reached.matmul_fp8),
            ]
            .map(slow),
            slow_byte: slow(reached.memory),
            launch: reached.launch.0 as f64,
        }
    }

    /// What an operator needs longest of.
    fn slowest_part(&self, op: &OpSketch) -> f64 {
        let longest = (op.steps * self.slow[op.class] * self.step)
            .max(op.lane_cycles * self.lane_cycle)
            .max(op.hbm_bytes * self.slow_byte * self.byte)
            .max(op.network);
        longest + if op.is_kernel { self.launch } else { 0.0 }
    }
}

/// Which part of their peak the arrays reach, by its place in [`PeakRates`].
fn class(needs: &OpNeeds) -> usize {
    match needs.numbers {
        _ if needs.homes.stay() => 2,
        Numbers::Bf16 if needs.grouped => 3,
        Numbers::Bf16 => 0,
        Numbers::Fp8 | Numbers::Bf16BesideFp8 if needs.grouped => 4,
        Numbers::Fp8 | Numbers::Bf16BesideFp8 => 1,
    }
}

/// A float time as whole picoseconds that are no more than the exact one.
pub fn lowered(picoseconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times are positive; rounding down is wanted, and the cast ends at the largest time"
    )]
    let whole = (picoseconds * (1.0 - FLOAT_ERROR)) as u64;
    whole
}

fn small(index: usize) -> u32 {
    u32::try_from(index).expect("a layer has fewer than four billion edges")
}

/// Steps of all arrays together, for the best of the six ways to lay a product on the array.
///
/// A split over cores can only add steps: ⌈⌈x/P⌉/w⌉ ≥ ⌈x/w⌉/P.
fn array_steps(matmul: Matmul, width: u64, depth: u64) -> u64 {
    let Matmul { b, m, k, n } = matmul;
    let ways = [(m, k, n), (k, m, n), (m, n, k), (n, m, k), (k, n, m), (n, k, m)];
    let steps = ways.map(|(x, y, z)| {
        u128::from(x.div_ceil(width)) * u128::from(y.div_ceil(depth)) * u128::from(z)
    });
    let least = steps.into_iter().min().expect("there are six ways") * u128::from(b);
    u64::try_from(least).expect("a product has fewer than 2^62 multiply-accumulates")
}
