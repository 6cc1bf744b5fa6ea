//! What the best of several kinds of arrays needs at the least: a corner that speaks for all of them counts that.
//!
//! Most of them need not be searched: no mapping is below the floor of its arrays, which the fastest of another kind
//! may have reached already.

use std::hash::Hash;
use std::hash::Hasher;
use std::sync::RwLock;

use super::Key;
use super::Map;
use super::N_SHARDS;
use super::fastest::FastestTable;
use super::fastest::LOST;
use super::fastest::shard_of;
use super::fastest::timeless;
use crate::estimate::tensor_core::Fastest;
use crate::hardware::CoreSpec;
use crate::model::op::Homes;
use crate::model::op::Matmul;

/// Remembers what was found of lists of specs.
pub(super) struct AlikeTable {
    lists: RwLock<Map<List, u32>>,
    floors: Vec<RwLock<Map<Key, Floor>>>,
    unbounded: Vec<RwLock<Map<Key, Floor>>>,
}

impl Default for AlikeTable {
    fn default() -> Self {
        Self {
            lists: RwLock::default(),
            floors: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
            unbounded: (0..N_SHARDS).map(|_| RwLock::default()).collect(),
        }
    }
}

/// The least cycles of the arrays, and the least bytes through off-chip memory.
pub(super) type Floor = (u64, u64);

/// Each figure of the lesser of two.
fn both(one: Option<Floor>, other: Option<Floor>) -> Option<Floor> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
        (one, other) => one.or(other),
    }
}

/// Specs without what decides no cycles.
#[derive(Clone, PartialEq, Eq)]
struct List(Vec<CoreSpec>);

impl Hash for List {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Enough to tell nearly all lists apart, and quick.
        for spec in &self.0 {
            (spec.count, spec.width, spec.glb).hash(state);
        }
        self.0.first().map(|spec| (spec.depth, spec.glb_port, spec.element_bytes)).hash(state);
    }
}

impl AlikeTable {
    fn number(&self, specs: &[CoreSpec]) -> u32 {
        let list = List(specs.iter().map(timeless).collect());
        if let Some(&number) = self.lists.read().expect(LOST).get(&list) {
            return number;
        }
        let mut known = self.lists.write().expect(LOST);
        let next = u32::try_from(known.len()).expect("there are fewer than 2³² lists");
        *known.entry(list).or_insert(next)
    }
}

/// What is remembered under a key, or found and remembered then.
fn remembered<T: Copy>(
    tables: &[RwLock<Map<Key, T>>],
    key: Key,
    find: impl FnOnce() -> Option<T>,
) -> Option<T> {
    let table = &tables[shard_of(key)];
    let known = table.read().expect(LOST).get(&key).copied();
    known.or_else(|| {
        let found = find()?;
        table.write().expect(LOST).insert(key, found);
        Some(found)
    })
}

impl FastestTable {
    /// The least of [`FastestTable::floor`] of any of these cores, figure by figure.
    pub fn floor_of(&self, matmul: &Matmul, homes: Homes, specs: &[CoreSpec]) -> Option<Floor> {
        if let [spec] = specs {
            return self.floor(matmul, homes, spec);
        }
        let key = (self.shape(matmul, homes), self.alike.number(specs));
        remembered(&self.alike.floors, key, || {
            let each = specs.iter().filter_map(|spec| self.floor(matmul, homes, spec));
            each.fold(None, |least, floor| both(least, Some(floor)))
        })
    }

    /// The cycles of the fastest mapping on any of these cores beside memory that is never waited for, and bytes
    /// through off-chip memory that no mapping on any is below.
    pub fn unbounded_of(&self, matmul: &Matmul, homes: Homes, specs: &[CoreSpec]) -> Option<Floor> {
        let alone = |spec: &CoreSpec| {
            let Fastest { cycles, least_carried, .. } = self.unbounded(matmul, homes, spec)?;
            Some((cycles, least_carried))
        };
        if let [spec] = specs {
            return alone(spec);
        }
        let key = (self.shape(matmul, homes), self.alike.number(specs));
        remembered(&self.alike.unbounded, key, || {
            let floors =
                specs.iter().filter_map(|spec| Some((self.floor(matmul, homes, spec)?, spec)));
            let mut floors: Vec<(Floor, &CoreSpec)> = floors.collect();
            floors.sort_unstable();
            floors.into_iter().fold(None, |least: Option<Floor>, ((compute, carried), spec)| {
                let found = match least {
                    // No mapping on these is faster.
                    Some((cycles, _)) if cycles <= compute => Some((cycles, carried)),
                    _ => alone(spec),
                };
                both(least, found)
            })
        })
    }

    /// Whole cycles that the fastest mapping on any of these cores takes at the least beside the memory of each. Of
    /// several it is not looked for how memory slows them down: they are told apart where that matters.
    pub fn cycles_of(&self, matmul: &Matmul, homes: Homes, specs: &[CoreSpec]) -> Option<u64> {
        if let [spec] = specs {
            return self.cycles(matmul, homes, spec);
        }
        self.unbounded_of(matmul, homes, specs).map(|(cycles, _)| cycles)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fastest::tests::spec;
    use super::*;
    use crate::model::op::Home;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn what_is_said_of_several_is_the_least_of_each(
            (b, m, k, n) in (1..4_u64, 1..300_u64, 1..300_u64, 1..300_u64),
            cores in prop::collection::vec((1..14_u64, prop_oneof![Just((8, 8)), Just((4, 16))]), 1..6),
            (buffer, memory) in ((8..64_u64, 1..200_u64), (1..400_u64, 5..20_u64)),
        ) {
            let matmul = Matmul { b, m, k, n };
            let homes = Homes { a: Home::Hbm, b: Home::Hbm, out: Home::Hbm };
            let specs: Vec<CoreSpec> =
                cores.into_iter().map(|cores| spec(cores, buffer, memory)).collect();
            let (table, each) = (FastestTable::default(), FastestTable::default());
            let least = |of: &dyn Fn(&CoreSpec) -> Option<u64>| specs.iter().filter_map(of).min();
            // Twice: found, and remembered.
            for _ in 0..2 {
                let floor = table.floor_of(&matmul, homes, &specs);
                let of_each = |spec: &CoreSpec| each.floor(&matmul, homes, spec);
                prop_assert_eq!(floor.map(|both| both.0), least(&|spec| Some(of_each(spec)?.0)));
                prop_assert_eq!(floor.map(|both| both.1), least(&|spec| Some(of_each(spec)?.1)));
                let unbounded = table.unbounded_of(&matmul, homes, &specs);
                let of_each = |spec: &CoreSpec| each.unbounded(&matmul, homes, spec);
                let cycles = least(&|spec| Some(of_each(spec)?.cycles));
                prop_assert_eq!(unbounded.map(|both| both.0), cycles);
                let carried = least(&|spec| Some(of_each(spec)?.least_carried));
                prop_assert!(unbounded.map(|both| both.1) <= carried);
                let cycles = least(&|spec| each.cycles(&matmul, homes, spec));
                prop_assert!(table.cycles_of(&matmul, homes, &specs) <= cycles);
            }
        }
    }
}
