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
use crate::estimate::tensor_core::Fastest;
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
    shards: Vec<RwLock<Map<Key, Known>>>,
    /// The least compute.
    compute: Vec<RwLock<Map<Key, u64>>>,
    /// The least bytes through off-chip memory.
    carried: Vec<RwLock<Map<Key, u64>>>,
}

/// What is known of a matmul on cores of one kind.
struct Known {
    /// Beside memory that is never waited for.
    unbounded: Fastest,
    /// Cycles beside memories that are, by bandwidth and clock.
    beside: Vec<(Bandwidth, Frequency, u64)>,
}

impl Default for FastestTable {
    fn default() -> Self {
        Self {
            shapes: Interned(RwLock::default()),
            specs: Interned(RwLock::default()),
            shards: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            compute: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            carried: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
        }
    }
}

const LOST: &str = "no thread panics while it holds the lock";

impl FastestTable {
    /// The fastest mapping beside memory that is never waited for; `None` where there is none.
    pub fn unbounded(&self, matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<Fastest> {
        let bare = timeless(spec);
        let (key, shard) = self.place(matmul, homes, &bare);
        if let Some(known) = shard.read().expect(LOST).get(&key) {
            return Some(known.unbounded);
        }
        let unbounded = search(matmul, homes, &bare)?;
        let known = Known { unbounded, beside: Vec::new() };
        shard.write().expect(LOST).entry(key).or_insert(known);
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
        let (key, shard) = self.place(matmul, homes, &timeless(spec));
        let beside = (spec.hbm, spec.clock);
        let same = |known: &&(Bandwidth, Frequency, u64)| (known.0, known.1) == beside;
        let known = shard
            .read()
            .expect(LOST)
            .get(&key)
            .and_then(|known| known.beside.iter().find(same).map(|&(.., cycles)| cycles));
        if known.is_some() {
            return known;
        }
        let Fastest { cycles, .. } = search(matmul, homes, spec)?;
        if let Some(known) = shard.write().expect(LOST).get_mut(&key)
            && !known.beside.iter().any(|known| same(&known))
        {
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
        (self.shapes.number(&(*matmul, homes)), self.specs.number(spec))
    }

    fn place(
        &self,
        matmul: &Matmul,
        homes: Homes,
        bare: &CoreSpec,
    ) -> (Key, &RwLock<Map<Key, Known>>) {
        let key = self.key(matmul, homes, bare);
        (key, &self.shards[shard_of(key)])
    }
}

fn shard_of(key: Key) -> usize {
    (key.0.wrapping_mul(31).wrapping_add(key.1)) as usize % N_SHARDS
}

const NONE: Bytes = Bytes(0);
const PORT: Port = Port { read: 1, write: 1 };

/// A spec without all that decides no cycles but those of off-chip memory, which is never waited for. Laid on
/// its side an array does the same: what was along its width goes along its depth.
fn timeless(spec: &CoreSpec) -> CoreSpec {
    CoreSpec {
        width: spec.width.max(spec.depth),
        depth: spec.width.min(spec.depth),
        hbm: Bandwidth::bytes_per_second(UNBOUNDED).expect("it is not zero"),
        clock: Frequency::hertz(1).expect("it is not zero"),
        energies: Energies::default(),
        ..*spec
    }
}

fn search(matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Option<Fastest> {
    SCRATCH.with_borrow_mut(|scratch| fastest(matmul, homes, spec, scratch))
}
