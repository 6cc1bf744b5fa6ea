//! Estimates, each computed once, when first asked for, by whichever thread asks.

mod alike;
mod fastest;
mod frugal;
mod least;

pub use least::Closeness;
pub use least::LeastEstimate;

use fastest::FastestTable;
use frugal::FrugalTable;

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hash::Hash;
use std::hash::Hasher;
use std::sync::RwLock;

use super::Estimate;
use super::Limit;
use super::OpCosts;
use super::TooLarge;
use super::collective;
use super::tensor_core::Cost;
use super::tensor_core::Mapping;
use super::tensor_core::Scratch;
use super::tensor_core::best;
use super::tensor_core::cost;
use super::tensor_core::cost::Needs;
use super::vector_core;
use super::vector_core::VectorCosts;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::CoreSpec;
use crate::hardware::Efficiency;
use crate::hardware::OffChipTime;
use crate::hardware::Use;
use crate::hardware::VectorSpec;
use crate::hardware::efficiency::slowed;
use crate::hardware::sram::ACCESS_BYTES;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Op;
use crate::model::op::Traffic;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Frequency;
use crate::units::Time;

/// Multiply-accumulates of the largest matmul that is estimated.
pub const LARGEST_MATMUL: u64 = 1 << 62;

/// What estimates depend on besides operator and accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Cycles per element of vector work.
    pub vector_costs: VectorCosts,
    /// How much longer than the fastest a mapping may take to save energy, in millionths.
    pub energy_slack: u64,
}

/// Estimates of operators on accelerators; matmuls are remembered, all else is a short formula.
///
/// Safe to be asked by many threads at once. Two that ask for the same at the same moment may both
/// compute it, and find the same.
pub struct EstimateTable {
    options: Options,
    shapes: Interned<(Matmul, Homes)>,
    specs: Interned<CoreSpec>,
    shards: Vec<Shard>,
    fastest: FastestTable,
    frugal: FrugalTable,
}

/// The numbers of a matmul and of a core spec.
type Key = (u32, u32);
type Shard = RwLock<Map<Key, Remembered>>;
type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// A hash of a few multiplications: keys are plain numbers, nobody chooses them to collide, and
/// no order of them is ever seen.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // An odd constant near the golden ratio of 2⁶⁴ spreads neighbours far apart.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word.cast_unsigned() as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes its buckets from both ends of the word.
        self.0 ^ (self.0 >> 32)
    }
}

/// The best mappings of one matmul on one core spec, whatever off-chip memory is beside it.
struct Remembered {
    /// With memory that is never waited for, and its cycles: also the best with any memory that
    /// does not make it slower, since memory only ever rules mappings out. `None` until it is
    /// worth knowing.
    unbounded: Option<(Mapping, u64)>,
    /// The best for each bandwidth that was asked for.
    found: Vec<(Bandwidth, MatmulCost)>,
}

/// What is remembered of a matmul's cost.
#[derive(Clone, Copy, Debug)]
struct MatmulCost {
    cycles: u64,
    /// Cycles if off-chip memory were never waited for, and what makes them so many.
    on_chip: (u64, Limit),
    limit: Limit,
    energy: Energy,
    hbm: u64,
    glb_read: u64,
    glb_written: u64,
}

/// Numbers for values, so that keys stay small.
struct Interned<K>(RwLock<Map<K, u32>>);

impl<K: Copy + Eq + Hash> Interned<K> {
    fn number(&self, key: &K) -> u32 {
        let lost = "no thread panics while it holds the lock";
        if let Some(&number) = self.0.read().expect(lost).get(key) {
            return number;
        }
        let mut known = self.0.write().expect(lost);
        let next = u32::try_from(known.len()).expect("there are fewer than 2³² distinct keys");
        *known.entry(*key).or_insert(next)
    }
}

const N_SHARDS: usize = 64;
/// A memory that nothing waits for.
const UNBOUNDED: u64 = u64::MAX;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

impl EstimateTable {
    /// An empty table.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            shapes: Interned(RwLock::default()),
            specs: Interned(RwLock::default()),
            shards: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            fastest: FastestTable::default(),
            frugal: FrugalTable::default(),
        }
    }

    /// What an operator takes on an accelerator that stands in a cluster.
    pub fn costs(
        &self,
        op: &Op,
        chip: &Accelerator,
        cluster: &Cluster,
    ) -> Result<OpCosts, TooLarge> {
        let alone = self.estimate(op, chip, cluster, Use::Alone)?;
        let spread = self.estimate(op, chip, cluster, Use::Spread)?;
        let spread = if spread.time > alone.time { alone } else { spread };
        Ok(OpCosts { alone, spread })
    }

    /// What it takes on one core, or on all of its kind.
    pub fn estimate(
        &self,
        op: &Op,
        chip: &Accelerator,
        cluster: &Cluster,
        cores: Use,
    ) -> Result<Estimate, TooLarge> {
        let vector = chip.vector(cores);
        let reached = chip.efficiency();
        let place = (&vector, reached, chip.off_chip_time());
        let found = match &op.work {
            Work::Collective(collective) => {
                return Ok(collective::estimate(collective, &vector, cluster));
            }
            Work::Matmul { matmul, homes, fused, numbers, grouped } => {
                let reached = matmul_reaches(*numbers, *homes, *grouped, reached);
                let found = self.matmul(matmul, *homes, &chip.tensor_in(*numbers, cores));
                let slowed = found.and_then(|cost| cost.slowed(reached));
                slowed.and_then(|cost| self.joined(Some(cost), fused, &op.traffic, place))
            }
            Work::Opaque { flops } => {
                let found = MatmulCost::of_operations(*flops, &chip.tensor(cores));
                let slowed = found.and_then(|cost| cost.slowed(reached.matmul));
                slowed.and_then(|cost| self.joined(Some(cost), &[], &op.traffic, place))
            }
            Work::Vector(chain) => self.joined(None, chain, &op.traffic, place),
            Work::Move => self.joined(None, &[], &op.traffic, place),
        };
        found.ok_or_else(|| TooLarge(op.name.clone()))
    }

    /// How many matmuls on how many core specs are remembered.
    pub fn len(&self) -> usize {
        let lost = "no thread panics while it holds the lock";
        self.shards.iter().map(|shard| shard.read().expect(lost).len()).sum()
    }

    /// Whether nothing was asked for yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Vector work, behind a matmul or on its own: all run at once, so the longest need decides.
    fn joined(
        &self,
        matmul: Option<MatmulCost>,
        chain: &[VectorWork],
        traffic: &Traffic,
        (spec, reached, off_chip): (&VectorSpec, &Efficiency, OffChipTime),
    ) -> Option<Estimate> {
        let needs = vector_core::needs(chain, traffic, spec, self.options.vector_costs)?;
        let (hbm, glb_read, glb_written) =
            matmul.map_or((0, 0, 0), |cost| (cost.hbm, cost.glb_read, cost.glb_written));
        let hbm = hbm.checked_add(traffic.hbm_read.0)?.checked_add(traffic.hbm_written.0)?;
        // The global buffer carries the fills and drains of off-chip memory as well.
        let glb_read =
            glb_read.checked_add(traffic.glb_read.0)?.checked_add(traffic.hbm_written.0)?;
        let glb_written =
            glb_written.checked_add(traffic.glb_written.0)?.checked_add(traffic.hbm_read.0)?;
        let glb =
            glb_read.div_ceil(spec.glb_port.read).max(glb_written.div_ceil(spec.glb_port.write));
        let on_chip = [(needs.lanes, Limit::Lanes), (needs.local, Limit::Local), (glb, Limit::Glb)];
        let (time, limit) = match off_chip {
            OffChipTime::WholeCycles => {
                let product = matmul.map_or((0, Limit::Lanes), |cost| (cost.cycles, cost.limit));
                let hbm = slowed(hbm_cycles(spec, hbm)?, reached.memory)?;
                let [lanes, local, glb] = on_chip;
                let (cycles, limit) = longest([product, lanes, local, glb, (hbm, Limit::Hbm)]);
                (checked_time(spec.clock, cycles)?, limit)
            }
            OffChipTime::Exact => {
                let product = matmul.map_or((0, Limit::Lanes), |cost| cost.on_chip);
                let [lanes, local, glb] = on_chip;
                let (cycles, limit) = longest([product, lanes, local, glb]);
                let time = checked_time(spec.clock, cycles)?;
                let off_chip = exact_off_chip(spec.hbm, hbm, reached.memory)?;
                if off_chip > time { (off_chip, Limit::Hbm) } else { (time, limit) }
            }
        };
        let eighths: u128 = needs.energy_eighths.iter().sum();
        let vector_energy = Energy(eighths.div_ceil(u128::from(ACCESS_BYTES)));
        Some(Estimate {
            time: Time(time.0.checked_add(reached.launch.0)?),
            energy: vector_energy + matmul.map_or(Energy::ZERO, |cost| cost.energy),
            hbm: Bytes(hbm),
            glb_read: Bytes(glb_read),
            glb_written: Bytes(glb_written),
            limit,
        })
    }

    fn matmul(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<MatmulCost> {
        let macs = macs(matmul)?;
        if macs > LARGEST_MATMUL {
            return None;
        }
        let (bare, key, shard) = self.place(matmul, homes, spec);
        let lost = "no thread panics while it holds the lock";
        let known = {
            let shard = shard.read().expect(lost);
            let entry = shard.get(&key);
            if let Some(cost) = entry.and_then(|entry| entry.at(spec.hbm)) {
                return Some(cost);
            }
            entry.and_then(|entry| entry.unbounded)
        };
        let (unbounded, cost) = self.settle(matmul, homes, spec, &bare, known)?;
        let cost = MatmulCost::of(&cost);
        let mut shard = shard.write().expect(lost);
        let entry = shard.entry(key).or_insert_with(|| Remembered { unbounded, found: Vec::new() });
        entry.unbounded = entry.unbounded.or(unbounded);
        if entry.at(spec.hbm).is_none() {
            entry.found.push((spec.hbm, cost));
        }
        Some(cost)
    }

    /// Where a matmul on a core spec is remembered: the spec with memory that is never waited for, and
    /// a key in a shard.
    fn place(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> (CoreSpec, Key, &Shard) {
        let unbounded_rate = Bandwidth::bytes_per_second(UNBOUNDED).expect("it is not zero");
        let bare = CoreSpec { hbm: unbounded_rate, ..*spec };
        let key = (self.shapes.number(&(*matmul, homes)), self.specs.number(&bare));
        let shard = (key.0.wrapping_mul(31).wrapping_add(key.1)) as usize % N_SHARDS;
        (bare, key, &self.shards[shard])
    }

    /// The best mapping's cost, with the one for memory that is never waited for if it was needed.
    fn settle(
        &self,
        matmul: &Matmul,
        homes: Homes,
        spec: &CoreSpec,
        bare: &CoreSpec,
        known: Option<(Mapping, u64)>,
    ) -> Option<(Option<(Mapping, u64)>, Cost)> {
        // With slack, slower memory allows more cycles, and with them other mappings. Where memory
        // is the limit even if everything crosses it once, other memories never share an answer.
        if self.options.energy_slack > 0 || memory_decides(matmul, homes, spec) {
            return Some((known, self.search(matmul, homes, spec)?.1));
        }
        let unbounded = match known {
            Some(known) => known,
            None => self.search(matmul, homes, bare).map(|(best, cost)| (best, cost.cycles.0))?,
        };
        let shared = cost::cost(matmul, homes, spec, &unbounded.0);
        let cost = match shared.filter(|cost| cost.cycles.0 == unbounded.1) {
            Some(cost) => cost,
            None => self.search(matmul, homes, spec)?.1,
        };
        Some((Some(unbounded), cost))
    }

    fn search(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<(Mapping, Cost)> {
        let slack = self.options.energy_slack;
        SCRATCH.with_borrow_mut(|scratch| best(matmul, homes, spec, slack, scratch))
    }
}

impl Remembered {
    fn at(&self, hbm: Bandwidth) -> Option<MatmulCost> {
        self.found.iter().find(|(rate, _)| *rate == hbm).map(|(_, cost)| *cost)
    }
}

impl MatmulCost {
    fn of(cost: &Cost) -> Self {
        Self {
            cycles: cost.cycles.0,
            on_chip: Needs { hbm: 0, ..cost.needs }.longest(),
            limit: cost.limit,
            energy: cost.total_energy(),
            hbm: cost.hbm_read.0 + cost.hbm_written.0,
            glb_read: cost.glb_read.0,
            glb_written: cost.glb_written.0,
        }
    }

    /// Operations of which no loops are known keep all arrays busy.
    fn of_operations(flops: u64, spec: &CoreSpec) -> Option<Self> {
        let cycles = operation_cycles(flops, spec);
        let each = spec.energies.mac.checked_add(spec.energies.register)?;
        Some(Self {
            cycles,
            on_chip: (cycles, Limit::Compute),
            limit: Limit::Compute,
            energy: Energy(u128::from(flops.div_ceil(2)) * u128::from(each)),
            hbm: 0,
            glb_read: 0,
            glb_written: 0,
        })
    }

    /// The same where the arrays reach so many thousandths of what the mapping says. What memory
    /// needs then is for the whole operator to say.
    fn slowed(self, thousandths: u16) -> Option<Self> {
        if thousandths == 1000 {
            return Some(self);
        }
        let cycles = slowed(self.on_chip.0, thousandths)?;
        let arrays_decide = self.limit == Limit::Hbm && cycles >= self.cycles;
        let limit = if arrays_decide { Limit::Compute } else { self.limit };
        let on_chip = (cycles, self.on_chip.1);
        Some(Self { cycles: cycles.max(self.cycles), on_chip, limit, ..self })
    }
}

/// Thousandths of its peak rate that a matmul reaches: one whose tensors stay on the chip is part
/// of the kernel of fused attention.
pub fn matmul_reaches(numbers: Numbers, homes: Homes, grouped: bool, reached: &Efficiency) -> u16 {
    let alone = match numbers {
        _ if homes.stay() => return reached.attention,
        Numbers::Bf16 => reached.matmul,
        Numbers::Fp8 | Numbers::Bf16BesideFp8 => reached.matmul_fp8,
    };
    if grouped { reached.in_groups(alone) } else { alone }
}

/// Cycles in which arrays do so many operations, whatever their loops.
pub fn operation_cycles(flops: u64, spec: &CoreSpec) -> u64 {
    u64::try_from(u128::from(flops).div_ceil(2 * u128::from(spec.macs_per_cycle())))
        .unwrap_or(u64::MAX)
}

/// Whether moving every operand once takes longer than all arrays need.
fn memory_decides(matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> bool {
    let Matmul { b, m, k, n } = *matmul;
    let crossing = |home: Home, rows: u64, columns: u64| match home {
        Home::Hbm => u128::from(b) * u128::from(rows) * u128::from(columns),
        Home::Chip => 0,
    };
    let elements = crossing(homes.a, m, k) + crossing(homes.b, k, n) + crossing(homes.out, m, n);
    let macs = u128::from(b) * u128::from(m) * u128::from(k) * u128::from(n);
    let arrays = macs / u128::from(spec.macs_per_cycle());
    let bytes = elements * u128::from(spec.element_bytes);
    bytes * u128::from(spec.clock.as_hertz())
        > (arrays + 1) * u128::from(spec.hbm.as_bytes_per_second())
}

/// The multiply-accumulates of a matmul; `None` beyond 64 bits.
pub fn macs(matmul: &Matmul) -> Option<u64> {
    matmul.b.checked_mul(matmul.m)?.checked_mul(matmul.k)?.checked_mul(matmul.n)
}

/// The most cycles that any need asks for, and the first that does.
fn longest<const N: usize>(needs: [(u64, Limit); N]) -> (u64, Limit) {
    let most = needs.iter().map(|need| need.0).fold(0, u64::max);
    *needs.iter().find(|need| need.0 == most).expect("one of them is the most")
}

/// Whole cycles that off-chip memory needs for some bytes.
fn hbm_cycles(spec: &VectorSpec, bytes: u64) -> Option<u64> {
    let cycles = (u128::from(bytes) * u128::from(spec.clock.as_hertz()))
        .div_ceil(u128::from(spec.hbm.as_bytes_per_second()));
    u64::try_from(cycles).ok()
}

/// How long off-chip memory needs for some bytes at so many thousandths of its bandwidth, whatever
/// the clock; `None` beyond the range of a time.
fn exact_off_chip(bandwidth: Bandwidth, bytes: u64, thousandths: u16) -> Option<Time> {
    let scaled = u128::from(bytes) * u128::from(Time::PER_SECOND) * 1000;
    let rate = u128::from(bandwidth.as_bytes_per_second()) * u128::from(thousandths.max(1));
    u64::try_from(scaled.div_ceil(rate)).ok().map(Time)
}

/// How long cycles take, rounded up; `None` beyond the range of a time.
pub fn checked_time(clock: Frequency, cycles: u64) -> Option<Time> {
    let hertz = clock.as_hertz();
    // Short spans, which most are, need no wide division.
    if let Some(scaled) = cycles.checked_mul(Time::PER_SECOND) {
        return Some(Time(scaled.div_ceil(hertz)));
    }
    let scaled = u128::from(cycles) * u128::from(Time::PER_SECOND);
    u64::try_from(scaled.div_ceil(u128::from(hertz))).ok().map(Time)
}
