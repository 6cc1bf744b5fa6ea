//! What no way to train on a design can beat, written a second time from docs/search.md.
//!
//! Figures of a share that no design changes stand in flat arrays; a design then costs a few
//! multiplications for each operator, and a few for each case of stages and replicas.

use std::collections::BTreeMap;

use crate::estimate::vector_core::cycles_per_element;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Efficiency;
use crate::hardware::Use;
use crate::model::op::Home;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::parallel::Share;
use crate::plan::Recompute;
use crate::search::Objective;
use crate::strategy::Standing;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

use super::divide::Asked;
use super::divide::Divided;
use super::operator::Place;
use super::operator::part_of_peak;
use super::operator::price;
use super::phases::Cases;
use super::phases::LayerTimes;
use super::phases::Phases;
use super::placed::most_frequent;
use super::rebuild::Question;

/// A bound is lowered by this part, which is more than the rounding of all its floats.
const MARGIN: f64 = 1e-9;

/// Bounds of every design of a question.
pub struct Bounds {
    /// By model and division.
    divisions: Vec<Vec<DivisionBound>>,
    /// The place of each shape of array in the tables of steps.
    arrays: BTreeMap<(u64, u64), usize>,
}

/// What designs may differ in that bounds prepare for.
pub struct Shapes<'a> {
    /// Sides of arrays.
    pub arrays: Vec<(u64, u64)>,
    /// Sizes of memory, in the order in which they are asked for.
    pub memories: &'a [Bytes],
    /// Any of the designs: of its network and efficiency all have the same.
    pub sample: &'a Accelerator,
}

/// What bounds one division.
struct DivisionBound {
    /// By kind of layer, forward and backward.
    passes: Vec<[PassBound; 2]>,
    /// How often each kind occurs.
    occurrences: Vec<f64>,
    repeated: usize,
    /// The kinds of the first and of the last layer.
    first: usize,
    last: usize,
    micro_batches: f64,
    /// Devices that share the work of one sequence.
    sharers: f64,
    /// Devices that every rank takes at the least.
    devices_per_rank: f64,
    /// By size of memory, then by recompute choice: what may fit, by what is exchanged inside layers.
    cases: Vec<Vec<(Recompute, Phases, Vec<Cases>)>>,
}

/// What a pass needs on any design.
struct PassBound {
    /// By shape of array, then by operator: steps of all arrays together.
    steps: Vec<Vec<f64>>,
    /// By operator: how much longer arrays take than at their peak.
    slow: Vec<f64>,
    /// Whether it is launched.
    is_kernel: Vec<bool>,
    lane_cycles: Vec<f64>,
    hbm_bytes: Vec<f64>,
    network: Vec<f64>,
    /// Whom each operator reads from.
    reads: Vec<Vec<u32>>,
    /// In 16 bits, and in 8.
    multiply_accumulates: [f64; 2],
    /// Bytes read from and written to the global buffer.
    glb: [f64; 2],
    /// Bytes read from and written to the buffers of vector cores.
    vector_local: [f64; 2],
    /// By shape of array: bytes between arrays and their buffers.
    array_bytes: Vec<f64>,
}

/// Picoseconds of a design for one step of all arrays, one lane cycle of all lanes, one byte.
struct Pace {
    step: f64,
    lane_cycle: f64,
    byte: f64,
    /// Of a byte that one operator moves, and what each kernel pays.
    own_byte: f64,
    launch: f64,
}

impl Bounds {
    /// Prepares all that the designs of a question share.
    pub fn new(question: &Question) -> Self {
        let space = &question.request.space;
        let arrays: Vec<(u64, u64)> = if question.request.lists_all() {
            let designs = question.candidates.iter().map(|candidate| &candidate.design);
            designs.map(|design| (design.width, design.depth)).collect()
        } else {
            let widths = space.width.iter();
            widths.flat_map(|&w| space.depth.iter().map(move |&d| (w, d))).collect()
        };
        let first = question.first.expect("a space that is judged has a design");
        let sizes = question.request.space.hbm_gib.iter();
        let memories: Vec<Bytes> = sizes.map(|&gib| Bytes::GIB * gib).collect();
        let shapes = Shapes { arrays, memories: &memories, sample: &question.chip_of(&first, 0) };
        Self::prepared(question, &shapes)
    }

    /// The same for given shapes.
    pub fn prepared(question: &Question, shapes: &Shapes) -> Self {
        let mut arrays: BTreeMap<(u64, u64), usize> =
            shapes.arrays.iter().map(|&sides| (sides, 0)).collect();
        arrays.values_mut().enumerate().for_each(|(at, place)| *place = at);
        let sides: Vec<(u64, u64)> = arrays.keys().copied().collect();
        let models = question.models.iter().enumerate();
        let divisions = models.map(|(at, model)| {
            let asked = question.asked(at);
            let divisions = model.divisions.iter();
            divisions
                .map(|divided| DivisionBound::new(question, &asked, divided, (&sides, shapes)))
                .collect()
        });
        Self { divisions: divisions.collect(), arrays }
    }

    /// What no way to train a model on a chip with the `memory`-th size of memory can beat; `None`
    /// where surely nothing fits.
    pub fn standing(&self, model: usize, chip: &Accelerator, memory: usize) -> Option<Standing> {
        let knobs = chip.design();
        let array = self.arrays[&(knobs.width, knobs.depth)];
        let cycle = 1e12 / chip.clock().as_hertz() as f64;
        let reached = chip.efficiency();
        let byte = 1e12 / chip.hbm_bandwidth().as_bytes_per_second() as f64;
        let pace = Pace {
            step: cycle / knobs.tensor_cores as f64,
            lane_cycle: cycle / (knobs.vector_cores as f64 * knobs.vector_width as f64),
            byte,
            own_byte: byte * (1000.0 / f64::from(reached.memory)),
            launch: reached.launch.0 as f64,
        };
        let mut ends = Vec::new();
        let (mut time, mut energy) = (f64::INFINITY, f64::INFINITY);
        for division in &self.divisions[model] {
            let ways = &division.cases[memory];
            if ways.iter().all(|(_, _, cases)| cases.is_empty()) {
                continue;
            }
            let times = division.layer_times(array, &pace, &mut ends);
            for (recompute, phases, cases) in ways.iter().filter(|(_, _, cases)| !cases.is_empty())
            {
                let each = cases.iter().map(|cases| phases.least_time(cases, &times));
                time = each.fold(time, f64::min);
                energy = energy.min(division.energy(*recompute, &times, array, chip));
            }
        }
        (time < f64::INFINITY).then(|| {
            let time = u64::try_from(lowered(time)).unwrap_or(u64::MAX);
            Standing { time: Time(time), energy: Energy(lowered(energy)) }
        })
    }
}

impl DivisionBound {
    fn new(
        question: &Question,
        asked: &Asked,
        divided: &Divided,
        (sides, shapes): (&[(u64, u64)], &Shapes),
    ) -> Self {
        let share = &divided.share;
        let count = |kind: usize| share.sequence.iter().filter(|&&at| at == kind).count() as f64;
        let cluster = question.cluster(divided.devices);
        let place = Place { chip: shapes.sample, cluster: &cluster, costs: question.vector_costs };
        let passes = share.kinds.iter().map(|kind| {
            [&kind.forward, &kind.backward].map(|ops| PassBound::new(ops, share, place, sides))
        });
        let shardings = divided.shardings(asked);
        let devices_count = question.request.objective == Objective::EnergyPerToken;
        let cases = shapes.memories.iter().map(|memory| {
            let capacity = asked.usable(memory.0);
            let choices = asked.space.recompute.iter();
            choices
                .map(|&recompute| {
                    let phases = Phases::new(asked, divided, recompute, capacity);
                    let each = shardings.iter().map(|&sharded| {
                        phases.cases(asked, divided, (sharded, devices_count), &cluster)
                    });
                    let cases = each.filter(|cases| !cases.is_empty()).collect();
                    (recompute, phases, cases)
                })
                .collect()
        });
        Self {
            passes: passes.collect(),
            occurrences: (0..share.kinds.len()).map(count).collect(),
            repeated: most_frequent(&share.sequence),
            first: share.sequence.first().copied().unwrap_or(0),
            last: share.sequence.last().copied().unwrap_or(0),
            micro_batches: (asked.global_batch / share.setting.micro_batch) as f64,
            sharers: share.setting.devices() as f64,
            devices_per_rank: divided.devices_per_rank() as f64,
            cases: cases.collect(),
        }
    }

    /// The least that the passes of all layers take.
    fn layer_times(&self, array: usize, pace: &Pace, ends: &mut Vec<f64>) -> LayerTimes {
        let mut times = LayerTimes::default();
        for (kind, passes) in self.passes.iter().enumerate() {
            let [forward, backward] =
                passes.each_ref().map(|pass| pass.least_time(array, pace, ends));
            if kind == self.repeated {
                (times.forward, times.backward) = (forward, backward);
            } else {
                times.others_forward += forward * self.occurrences[kind];
                times.others_backward += backward * self.occurrences[kind];
                if kind == self.first {
                    times.first = forward + backward;
                }
                if kind == self.last {
                    times.last = forward + backward;
                }
            }
        }
        times
    }

    /// Femtojoules of a batch at the least: what every operator computes and moves once on each
    /// device of those that share a sequence, and power at rest for as long as the ranks are loaded
    /// at the least.
    fn energy(
        &self,
        recompute: Recompute,
        times: &LayerTimes,
        array: usize,
        chip: &Accelerator,
    ) -> f64 {
        let forward_passes = if recompute == Recompute::Full { 2.0 } else { 1.0 };
        let vector = chip.vector(Use::Spread).energies;
        let tensor = chip.tensor(Use::Spread).energies;
        let fp8 = chip.tensor_in(Numbers::Fp8, Use::Spread).energies;
        let of_pass = |pass: &PassBound| {
            let hbm: f64 = pass.hbm_bytes.iter().sum();
            let lanes: f64 = pass.lane_cycles.iter().sum();
            let accesses = hbm * vector.hbm as f64
                + pass.glb[0] * vector.glb_read as f64
                + pass.glb[1] * vector.glb_write as f64
                + pass.vector_local[0] * vector.local_read as f64
                + pass.vector_local[1] * vector.local_write as f64
                + pass.array_bytes[array] * tensor.local_read.min(tensor.local_write) as f64;
            let (mac, lane) = (tensor.mac + tensor.register, vector.lane + vector.lane_register);
            let [in_16, in_8] = pass.multiply_accumulates;
            let computed = in_16 * mac as f64 + in_8 * (fp8.mac + fp8.register) as f64;
            computed + lanes * lane as f64 + accesses / 8.0
        };
        let mut moved = 0.0;
        for ([forward, backward], count) in self.passes.iter().zip(&self.occurrences) {
            moved += count * (forward_passes * of_pass(forward) + of_pass(backward));
        }
        let repeated = self.occurrences[self.repeated];
        let load = forward_passes * (repeated * times.forward + times.others_forward)
            + repeated * times.backward
            + times.others_backward;
        // A microwatt for a picosecond is a thousandth of a femtojoule.
        let at_rest = chip.static_power_uw() as f64 / 1000.0;
        self.micro_batches * (self.sharers * moved + at_rest * self.devices_per_rank * load)
    }
}

impl PassBound {
    fn new(ops: &Dag<Op>, share: &Share, place: Place, shapes: &[(u64, u64)]) -> Self {
        let matmuls: Vec<Option<(Matmul, Numbers)>> = ops
            .nodes()
            .iter()
            .map(|op| match &op.work {
                Work::Matmul { matmul, numbers, .. } => Some((*matmul, *numbers)),
                _ => None,
            })
            .collect();
        let steps_on = |&(width, depth): &(u64, u64)| {
            let steps = |matmul: &Option<(Matmul, Numbers)>| {
                matmul.map_or(0.0, |(matmul, numbers)| {
                    array_steps(matmul, width, depth * numbers.per_cycle())
                })
            };
            // Operations of which no loops are known keep every multiply-accumulator busy.
            let unknown = |op: &Op| match op.work {
                Work::Opaque { flops } => flops as f64 / 2.0 / (width as f64 * depth as f64),
                _ => 0.0,
            };
            let both = matmuls.iter().zip(ops.nodes());
            both.map(|(matmul, op)| steps(matmul) + unknown(op)).collect()
        };
        let of_ops = |figure: &dyn Fn(&Op) -> f64| ops.nodes().iter().map(figure).collect();
        let on_chip = |op: &Op| !matches!(op.work, Work::Collective(_));
        let kernels = ops.nodes().iter().map(on_chip).collect();
        let is_fp8 = |op: &&Op| matches!(op.work, Work::Matmul { numbers: Numbers::Fp8, .. });
        let (in_8, in_16): (Vec<&Op>, Vec<&Op>) = ops.nodes().iter().partition(is_fp8);
        let macs = |ops: &[&Op]| ops.iter().map(|op| op.flops().0 as f64 / 2.0).sum();
        Self {
            steps: shapes.iter().map(steps_on).collect(),
            slow: of_ops(&|op| slow(op, place.chip.efficiency())),
            is_kernel: kernels,
            lane_cycles: of_ops(&|op| lane_cycles(op, place)),
            hbm_bytes: of_ops(&|op| {
                let (read, written) = op.hbm_bytes(share.setting.element);
                let crosses = !matches!(op.work, Work::Collective(_));
                if crosses { read.0 as f64 + written.0 as f64 } else { 0.0 }
            }),
            network: of_ops(&|op| match &op.work {
                // No design changes what the network takes.
                Work::Collective(_) => price(op, place, Use::Spread, None)
                    .map_or(0.0, |estimate| estimate.time.0 as f64),
                _ => 0.0,
            }),
            reads: ops
                .ids()
                .map(|id| {
                    let reads = ops.predecessors(id).iter();
                    reads.filter_map(|read| u32::try_from(read.index()).ok()).collect()
                })
                .collect(),
            multiply_accumulates: [macs(&in_16), macs(&in_8)],
            glb: moved(ops, share, |bytes| bytes.glb),
            vector_local: moved(ops, share, |bytes| bytes.vector_local),
            array_bytes: shapes
                .iter()
                .map(|&(width, depth)| {
                    let of_product = |(matmul, numbers): &(Matmul, Numbers)| {
                        let element = numbers.operand(share.setting.element).0 as f64;
                        array_bytes(matmul, width, depth * numbers.per_cycle(), element)
                    };
                    matmuls.iter().flatten().map(of_product).sum()
                })
                .collect(),
        }
    }

    /// Picoseconds that the pass takes at the least: the longest path, and the sum on each
    /// resource.
    fn least_time(&self, array: usize, pace: &Pace, ends: &mut Vec<f64>) -> f64 {
        ends.clear();
        let mut sums = [0.0; 4];
        let mut least = 0.0_f64;
        for (op, reads) in self.reads.iter().enumerate() {
            let arrays = self.steps[array][op] * self.slow[op] * pace.step;
            let lanes = self.lane_cycles[op] * pace.lane_cycle;
            // Side by side, operators share all that memory can carry.
            let shared = [arrays, lanes, self.hbm_bytes[op] * pace.byte, self.network[op]];
            sums.iter_mut().zip(shared).for_each(|(sum, need)| *sum += need);
            let own = [arrays, lanes, self.hbm_bytes[op] * pace.own_byte, self.network[op]];
            let start = reads.iter().map(|&read| ends[read as usize]).fold(0.0, f64::max);
            let launched = if self.is_kernel[op] { pace.launch } else { 0.0 };
            let end = start + own.into_iter().fold(0.0, f64::max) + launched;
            least = least.max(end);
            ends.push(end);
        }
        sums.into_iter().fold(least, f64::max)
    }
}

/// Bytes that an operator reads and writes at the least.
struct Moved {
    glb: [f64; 2],
    vector_local: [f64; 2],
}

/// Sums a pair of figures over all operators.
fn moved(ops: &Dag<Op>, share: &Share, of: fn(&Moved) -> [f64; 2]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for op in ops.nodes() {
        let each = of(&moved_by(op, share.setting.element));
        sums.iter_mut().zip(each).for_each(|(sum, part)| *sum += part);
    }
    sums
}

/// Operands of a product pass the global buffer once; what fills or drains off-chip memory passes it
/// once more; what vector work reads and writes there passes the vector cores' buffers too.
fn moved_by(op: &Op, element: Bytes) -> Moved {
    if matches!(op.work, Work::Collective(_)) {
        return Moved { glb: [0.0; 2], vector_local: [0.0; 2] };
    }
    let beside = [op.traffic.glb_read.0 as f64, op.traffic.glb_written.0 as f64];
    let (mut read, mut written) = (beside[0], beside[1]);
    let (mut filled, mut drained) = (op.traffic.hbm_read.0 as f64, op.traffic.hbm_written.0 as f64);
    if let Work::Matmul { matmul: Matmul { b, m, k, n }, homes, numbers, .. } = &op.work {
        let element = numbers.operand(element).0 as f64;
        let bytes = |rows: u64, columns: u64| *b as f64 * rows as f64 * columns as f64 * element;
        let (first, second, product) = (bytes(*m, *k), bytes(*k, *n), bytes(*m, *n));
        read += first + second;
        written += product;
        filled += if homes.a == Home::Hbm { first } else { 0.0 };
        filled += if homes.b == Home::Hbm { second } else { 0.0 };
        drained += if homes.out == Home::Hbm { product } else { 0.0 };
    }
    Moved { glb: [read + drained, written + filled], vector_local: beside }
}

/// Bytes between arrays and their buffers for one product, for the best of the six ways: a tensor
/// passes once for each tile, along the side of the array, of the loop that it lacks; a partial sum
/// has at least one byte and is read back every time but the first.
fn array_bytes(matmul: &Matmul, width: u64, depth: u64, element: f64) -> f64 {
    let sizes = [matmul.m, matmul.k, matmul.n];
    let mut least = f64::INFINITY;
    for along in 0..3 {
        for across in (0..3).filter(|across| *across != along) {
            let tiles = |lacks: usize| -> f64 {
                let side = if lacks == along { width } else { depth };
                let streams = lacks != along && lacks != across;
                if streams { 1.0 } else { sizes[lacks].div_ceil(side) as f64 }
            };
            let elements = |lacks: usize| -> f64 {
                (0..3).filter(|&other| other != lacks).map(|other| sizes[other] as f64).product()
            };
            let factors = elements(0) * tiles(0) + elements(2) * tiles(2);
            let sums = elements(1) * (2.0 * (tiles(1) - 1.0) + element);
            least = least.min(element * factors + sums);
        }
    }
    least * matmul.b as f64
}

/// How much longer the arrays take for an operator than at their peak.
fn slow(op: &Op, reached: &Efficiency) -> f64 {
    let part = match &op.work {
        Work::Matmul { homes, numbers, grouped, .. } => {
            part_of_peak(*numbers, *homes, *grouped, reached)
        }
        Work::Opaque { .. } => reached.matmul,
        _ => 1000,
    };
    1000.0 / f64::from(part)
}

/// Cycles of one lane for all vector work of an operator.
fn lane_cycles(op: &Op, place: Place) -> f64 {
    let chain = match &op.work {
        Work::Matmul { fused, .. } => fused.as_slice(),
        Work::Vector(chain) => chain.as_slice(),
        Work::Opaque { .. } | Work::Move | Work::Collective(_) => &[],
    };
    let each = chain.iter().map(|work| {
        let cycles = cycles_per_element(work.kind, work.pass, place.costs);
        work.rows as f64 * work.row as f64 * cycles as f64
    });
    each.sum()
}

/// Steps of all arrays together, for the best of the six ways to lay a product on them.
fn array_steps(matmul: Matmul, width: u64, depth: u64) -> f64 {
    let sizes = [matmul.m, matmul.k, matmul.n];
    let mut least = f64::INFINITY;
    for along in 0..3 {
        for across in (0..3).filter(|across| *across != along) {
            let stream = sizes[3 - along - across];
            let tiles = [sizes[along].div_ceil(width), sizes[across].div_ceil(depth), stream];
            least = least.min(tiles.iter().map(|&n| n as f64).product());
        }
    }
    least * matmul.b as f64
}

/// A float as a whole number that is no more than the exact one.
fn lowered(figure: f64) -> u128 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive; rounding down is wanted, and the cast ends at the largest number"
    )]
    let whole = (figure * (1.0 - MARGIN)) as u128;
    whole
}
