//! How fast the fastest mappings are, whatever energy they take: what bounds of boxes of chips ask for.
//!
//! Most chips of a box share these: without off-chip memory neither clock nor energies matter, and a mapping
//! that memory does not slow down is the fastest beside every memory that does not either.

use std::sync::RwLock;

use super::Interned;
use super::Key;
use super::Map;
use super::N_SHARDS;
use super::SCRATCH;
use super::UNBOUNDED;
use super::alike::AlikeTable;
use crate::estimate::tensor_core::Fastest;
use crate::estimate::tensor_core::Lead;
use crate::estimate::tensor_core::fastest;
use crate::estimate::tensor_core::least_carried;
use crate::estimate::tensor_core::least_compute;
use crate::hardware::CoreSpec;
use crate::hardware::Energies;
use crate::hardware::Port;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Frequency;

/// Remembers the fastest mappings of matmuls.
pub(super) struct FastestTable {
    shapes: Interned<(Matmul, Homes)>,
    specs: Interned<CoreSpec>,
    /// By matmul and arrays: beside every global buffer that was asked for.
    shards: Vec<RwLock<Map<Key, Vec<Known>>>>,
    /// The least compute.
    compute: Vec<RwLock<Map<Key, u64>>>,
    /// The least bytes through off-chip memory.
    carried: Vec<RwLock<Map<Key, u64>>>,
    /// The same of several kinds of arrays.
    pub(super) alike: AlikeTable,
}

/// What is known of a matmul on cores of one kind beside one global buffer.
struct Known {
    buffer: Buffer,
    /// Beside memory that is never waited for.
    unbounded: Fastest,
    /// Cycles beside memories that are, by bandwidth and clock.
    beside: Vec<(Bandwidth, Frequency, u64)>,
}

/// A global buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Buffer {
    size: Bytes,
    port: Port,
}

impl Buffer {
    fn of(spec: &CoreSpec) -> Self {
        Self { size: spec.glb, port: spec.glb_port }
    }

    /// Whether every mapping beside `other` is as fast beside this one.
    fn serves(&self, other: &Self) -> bool {
        self.size >= other.size
            && self.port.read >= other.port.read
            && self.port.write >= other.port.write
    }
}

impl Default for FastestTable {
    fn default() -> Self {
        Self {
            shapes: Interned(RwLock::default()),
            specs: Interned(RwLock::default()),
            shards: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            compute: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            carried: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            alike: AlikeTable::default(),
        }
    }
}

pub(super) const LOST: &str = "no thread panics while it holds the lock";

impl FastestTable {
    /// The fastest mapping beside memory that is never waited for; `None` where there is none.
    pub fn unbounded(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<Fastest> {
        let bare = timeless(spec);
        let buffer = Buffer::of(spec);
        let (key, shard) = self.place(matmul, homes, &bare);
        let lead = {
            let shard = shard.read().expect(LOST);
            let known = shard.get(&key).map_or(&[][..], Vec::as_slice);
            if let Some(known) = known.iter().find(|known| known.buffer == buffer) {
                return Some(known.unbounded);
            }
            // Beside a larger buffer nothing is slower, beside a smaller one nothing faster.
            let larger = known.iter().filter(|known| known.buffer.serves(&buffer));
            let least = larger.max_by_key(|known| known.unbounded.cycles);
            let smaller = known.iter().filter(|known| buffer.serves(&known.buffer));
            let most = smaller.min_by_key(|known| known.unbounded.cycles);
            Lead {
                least: least.map_or(0, |known| known.unbounded.cycles),
                most: most.map_or(u64::MAX, |known| known.unbounded.cycles),
                opening: most.or(least).map(|known| known.unbounded.opening),
            }
        };
        let unbounded = search((matmul, homes), &bare, lead)?;
        let mut shard = shard.write().expect(LOST);
        let known = shard.entry(key).or_default();
        if !known.iter().any(|known| known.buffer == buffer) {
            known.push(Known { buffer, unbounded, beside: Vec::new() });
        }
        Some(unbounded)
    }

    /// Whole cycles of the fastest mapping beside the memory of a spec; `None` where there is none.
    pub fn cycles(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<u64> {
        let unbounded = self.unbounded(matmul, homes, spec)?;
        let waits = |bytes: u64| {
            let needed = u128::from(bytes) * u128::from(spec.clock.as_hertz());
            needed.div_ceil(u128::from(spec.hbm.as_bytes_per_second()))
        };
        if waits(unbounded.carried) <= u128::from(unbounded.cycles) {
            return Some(unbounded.cycles);
        }
        let bare = timeless(spec);
        let (key, shard) = self.place(matmul, homes, &bare);
        let (buffer, beside) = (Buffer::of(spec), (spec.hbm, spec.clock));
        // Bytes for each cycle, compared without dividing.
        let brings = |one: (Bandwidth, Frequency), other: (Bandwidth, Frequency)| {
            let product = |rate: Bandwidth, clock: Frequency| {
                u128::from(rate.as_bytes_per_second()) * u128::from(clock.as_hertz())
            };
            product(one.0, other.1) >= product(other.0, one.1)
        };
        let (mut least, mut most) = (unbounded.cycles, u64::MAX);
        {
            let shard = shard.read().expect(LOST);
            let known = shard.get(&key).map_or(&[][..], Vec::as_slice);
            let known = known.iter().find(|known| known.buffer == buffer);
            for &(rate, clock, cycles) in known.map_or(&[][..], |known| &known.beside[..]) {
                if brings((rate, clock), beside) {
                    least = least.max(cycles);
                }
                if brings(beside, (rate, clock)) {
                    most = most.min(cycles);
                }
            }
            if least == most {
                return Some(least);
            }
        }
        let lead = Lead { least, most, opening: Some(unbounded.opening) };
        let served = CoreSpec { hbm: spec.hbm, clock: spec.clock, ..bare };
        let Fastest { cycles, .. } = search((matmul, homes), &served, lead)?;
        let mut shard = shard.write().expect(LOST);
        let known = shard.get_mut(&key).into_iter().flatten();
        if let Some(known) = known.into_iter().find(|known| known.buffer == buffer) {
            known.beside.push((spec.hbm, spec.clock, cycles));
        }
        Some(cycles)
    }

    /// The least cycles of the arrays, and the least bytes through off-chip memory, of any mapping: each for
    /// itself, and without a search. `None` where there is no mapping.
    pub fn floor(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<(u64, u64)> {
        let bare = timeless(spec);
        // Buffers and ports decide no compute, arrays no traffic.
        let of_arrays =
            CoreSpec { local: NONE, local_port: PORT, glb: NONE, glb_port: PORT, ..bare };
        let of_buffer = CoreSpec {
            count: 1,
            width: 1,
            depth: 1,
            local: NONE,
            local_port: PORT,
            glb_port: PORT,
            ..bare
        };
        let remembered =
            |tables: &[RwLock<Map<Key, u64>>], spec: &CoreSpec, find: &dyn Fn() -> _| {
                let key = self.key(matmul, homes, spec);
                let table = &tables[shard_of(key)];
                let known = table.read().expect(LOST).get(&key).copied();
                known.or_else(|| {
                    let found: u64 = find()?;
                    table.write().expect(LOST).insert(key, found);
                    Some(found)
                })
            };
        let compute = remembered(&self.compute, &of_arrays, &|| least_compute(matmul, &of_arrays))?;
        let carried = remembered(&self.carried, &of_buffer, &|| {
            SCRATCH.with_borrow_mut(|scratch| least_carried(matmul, homes, &of_buffer, scratch))
        })?;
        Some((compute, carried))
    }

    fn key(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Key {
        (self.shape(matmul, homes), self.specs.number(spec))
    }

    /// The number of a matmul.
    pub(super) fn shape(&self, matmul: &Matmul, homes: Homes) -> u32 {
        self.shapes.number(&(*matmul, homes))
    }

    fn place(
        &self,
        matmul: &Matmul,
        homes: Homes,
        bare: &CoreSpec,
    ) -> (Key, &RwLock<Map<Key, Vec<Known>>>) {
        let key = self.key(matmul, homes, &CoreSpec { glb: NONE, glb_port: PORT, ..*bare });
        (key, &self.shards[shard_of(key)])
    }
}

pub(super) fn shard_of(key: Key) -> usize {
    (key.0.wrapping_mul(31).wrapping_add(key.1)) as usize % N_SHARDS
}

const NONE: Bytes = Bytes(0);
const PORT: Port = Port { read: 1, write: 1 };

/// A spec without all that decides no cycles but those of off-chip memory, which is never waited for. Laid on
/// its side an array does the same: what was along its width goes along its depth.
pub(super) fn timeless(spec: &CoreSpec) -> CoreSpec {
    CoreSpec {
        width: spec.width.max(spec.depth),
        depth: spec.width.min(spec.depth),
        hbm: Bandwidth::bytes_per_second(UNBOUNDED).expect("it is not zero"),
        clock: Frequency::hertz(1).expect("it is not zero"),
        energies: Energies::default(),
        ..*spec
    }
}

fn search(product: (&Matmul, Homes), spec: &CoreSpec, lead: Lead) -> Option<Fastest> {
    SCRATCH.with_borrow_mut(|scratch| fastest(product, spec, lead, scratch))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::op::Home;

    pub(in super::super) fn spec(
        (count, side): (u64, (u64, u64)),
        buffer: (u64, u64),
        memory: (u64, u64),
    ) -> CoreSpec {
        CoreSpec {
            count,
            width: side.0,
            depth: side.1,
            local: Bytes(1 << 12),
            local_port: Port { read: 96, write: 64 },
            glb: Bytes(buffer.0 << 12),
            glb_port: Port { read: buffer.1, write: buffer.1 },
            multicast: u64::MAX,
            hbm: Bandwidth::bytes_per_second(memory.0 * 100_000_000).unwrap(),
            clock: Frequency::hertz(memory.1 * 100_000_000).unwrap(),
            element_bytes: 2,
            partial_sum_bytes: 4,
            fill_and_drain: false,
            energies: Energies::default(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn what_is_known_of_other_buffers_and_memories_changes_no_answer(
            (b, m, k, n) in (1..4_u64, 1..300_u64, 1..300_u64, 1..300_u64),
            count in 1..14_u64,
            side in prop_oneof![Just((8, 8)), Just((4, 16)), Just((16, 4))],
            places in prop::collection::vec(((8..64_u64, 1..200_u64), (1..400_u64, 5..20_u64)), 1..9),
        ) {
            let matmul = Matmul { b, m, k, n };
            let homes = Homes { a: Home::Hbm, b: Home::Hbm, out: Home::Hbm };
            let shared = FastestTable::default();
            for (buffer, memory) in places {
                let spec = spec((count, side), buffer, memory);
                let fresh = FastestTable::default();
                let least = |table: &FastestTable| {
                    let found = table.unbounded(&matmul, homes, &spec);
                    let found = found.map(|found| (found.cycles, found.least_carried));
                    (found, table.cycles(&matmul, homes, &spec))
                };
                prop_assert_eq!(least(&shared), least(&fresh));
            }
        }
    }
}
