//! The knobs of a design, in one table: what users call each, its unit and range, and where its
//! value stands.
//!
//! Spaces, options, hardware files, CSV columns and the schema of requests iterate over [`KNOBS`]:
//! to add a knob, add its field to [`Design`] or [`Candidate`], the list of its values to
//! [`DesignSpace`], and a row here.

use std::ops::RangeInclusive;

use super::Candidate;
use super::Design;
use super::DesignSpace;
use super::Unbuildable;
use crate::units::Bytes;

/// One knob.
pub struct Knob {
    /// What users call it in request files, options and CSV headers.
    pub name: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// What it is counted in; empty for plain counts.
    pub unit: &'static str,
    /// Far beyond any chip, and small enough that nothing overflows.
    pub range: RangeInclusive<u64>,
    /// Its value in a design, a started unit counted whole; `None` where the physics decide.
    pub get: fn(&Candidate) -> Option<u64>,
    /// Sets it and nothing else; a value out of range makes a design that cannot be built.
    pub set: fn(&mut Candidate, u64),
    /// Where a space lists its values.
    pub list: List,
}

/// Where a space lists the values of a knob.
pub enum List {
    /// Values of the chip; a space that leaves the list empty lets the knob follow from others
    /// or from the physics where `follows` says so.
    Chip {
        /// The list.
        values: fn(&DesignSpace) -> &Vec<u64>,
        /// The same, to be changed.
        values_mut: fn(&mut DesignSpace) -> &mut Vec<u64>,
        /// Whether the list may be empty.
        follows: bool,
    },
    /// Values of what is beside the chip: every design is built with each of them.
    Beside {
        /// The list.
        values: fn(&DesignSpace) -> &Vec<u64>,
        /// The same, to be changed.
        values_mut: fn(&mut DesignSpace) -> &mut Vec<u64>,
    },
    /// Nowhere: in a space it follows from other knobs by the published rule.
    Nowhere,
}

/// All of them, in the order in which tables show them.
pub const KNOBS: [Knob; 10] = [
    Knob {
        name: "tensor_cores",
        meaning: "systolic arrays",
        unit: "",
        range: 1..=1 << 16,
        get: |found| Some(found.design.tensor_cores),
        set: |found, value| found.design.tensor_cores = value,
        list: List::Chip {
            values: |space| &space.tensor_cores,
            values_mut: |space| &mut space.tensor_cores,
            follows: false,
        },
    },
    Knob {
        name: "width",
        meaning: "multiply-accumulators along one side of an array",
        unit: "",
        range: 1..=1 << 12,
        get: |found| Some(found.design.width),
        set: |found, value| found.design.width = value,
        list: List::Chip {
            values: |space| &space.width,
            values_mut: |space| &mut space.width,
            follows: false,
        },
    },
    Knob {
        name: "depth",
        meaning: "multiply-accumulators along the other side",
        unit: "",
        range: 1..=1 << 12,
        get: |found| Some(found.design.depth),
        set: |found, value| found.design.depth = value,
        list: List::Chip {
            values: |space| &space.depth,
            values_mut: |space| &mut space.depth,
            follows: false,
        },
    },
    Knob {
        name: "vector_cores",
        meaning: "vector units",
        unit: "",
        range: 1..=1 << 16,
        get: |found| Some(found.design.vector_cores),
        set: |found, value| found.design.vector_cores = value,
        list: List::Chip {
            values: |space| &space.vector_cores,
            values_mut: |space| &mut space.vector_cores,
            follows: false,
        },
    },
    Knob {
        name: "vector_width",
        meaning: "lanes of a vector unit; left out: as wide as the array",
        unit: "",
        range: 1..=1 << 16,
        get: |found| Some(found.design.vector_width),
        set: |found, value| found.design.vector_width = value,
        list: List::Chip {
            values: |space| &space.vector_width,
            values_mut: |space| &mut space.vector_width,
            follows: true,
        },
    },
    Knob {
        name: "glb_mib",
        meaning: "global on-chip buffer",
        unit: "MiB",
        range: 1..=1 << 20,
        get: |found| Some(whole_units(found.design.glb, Bytes::MIB)),
        set: |found, value| found.design.glb = units(value, Bytes::MIB),
        list: List::Chip {
            values: |space| &space.glb_mib,
            values_mut: |space| &mut space.glb_mib,
            follows: false,
        },
    },
    Knob {
        name: "glb_bytes_per_cycle",
        meaning: "bandwidth of the global buffer, each way; left out: as the hardware says",
        unit: "bytes per cycle",
        range: 1..=1 << 20,
        get: |found| found.glb_bytes_per_cycle,
        set: |found, value| found.glb_bytes_per_cycle = Some(value),
        list: List::Chip {
            values: |space| &space.glb_bytes_per_cycle,
            values_mut: |space| &mut space.glb_bytes_per_cycle,
            follows: true,
        },
    },
    Knob {
        name: "hbm_gib",
        meaning: "off-chip memory",
        unit: "GiB",
        range: 1..=1 << 20,
        get: |found| Some(whole_units(found.design.hbm, Bytes::GIB)),
        set: |found, value| found.design.hbm = units(value, Bytes::GIB),
        list: List::Beside {
            values: |space| &space.hbm_gib,
            values_mut: |space| &mut space.hbm_gib,
        },
    },
    Knob {
        name: "local_kib",
        meaning: "local buffer of each tensor core",
        unit: "KiB",
        range: 1..=1 << 30,
        get: |found| Some(whole_units(found.design.local, Bytes::KIB)),
        set: |found, value| found.design.local = units(value, Bytes::KIB),
        list: List::Nowhere,
    },
    Knob {
        name: "vector_local_kib",
        meaning: "local buffer of each vector core",
        unit: "KiB",
        range: 1..=1 << 30,
        get: |found| Some(whole_units(found.design.vector_local, Bytes::KIB)),
        set: |found, value| found.design.vector_local = units(value, Bytes::KIB),
        list: List::Nowhere,
    },
];

impl Knob {
    /// The knob that users call `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOBS.iter().find(|knob| knob.name == name)
    }

    /// Those of which a space lists values, in the order of the table.
    pub fn listed() -> impl Iterator<Item = &'static Self> {
        KNOBS.iter().filter(|knob| !matches!(knob.list, List::Nowhere))
    }

    /// Those of the chip itself, of which a space lists values.
    pub fn of_chip() -> impl Iterator<Item = &'static Self> {
        KNOBS.iter().filter(|knob| matches!(knob.list, List::Chip { .. }))
    }

    /// Its values in a space; none where they follow from others.
    pub fn values<'a>(&self, space: &'a DesignSpace) -> &'a [u64] {
        match self.list {
            List::Chip { values, .. } | List::Beside { values, .. } => values(space),
            List::Nowhere => &[],
        }
    }

    /// Gives it other values in a space; nothing happens where a space lists none.
    pub fn set_values(&self, space: &mut DesignSpace, to: Vec<u64>) {
        match self.list {
            List::Chip { values_mut, .. } | List::Beside { values_mut, .. } => {
                *values_mut(space) = to;
            }
            List::Nowhere => {}
        }
    }

    /// Whether a space may leave its list empty.
    pub fn follows(&self) -> bool {
        matches!(self.list, List::Chip { follows: true, .. })
    }

    /// Whether `found` is one of the values that it can have.
    pub fn check(&self, found: u64) -> Result<(), Unbuildable> {
        let (low, high) = (*self.range.start(), *self.range.end());
        if self.range.contains(&found) {
            return Ok(());
        }
        Err(Unbuildable::Range { knob: self.name, found, low, high })
    }
}

impl Candidate {
    /// Whether every knob is within its range.
    pub fn in_range(&self) -> Result<(), Unbuildable> {
        KNOBS.iter().try_for_each(|knob| (knob.get)(self).map_or(Ok(()), |found| knob.check(found)))
    }
}

impl From<Design> for Candidate {
    fn from(design: Design) -> Self {
        Self { design, glb_bytes_per_cycle: None }
    }
}

/// A size in whole units, a started one counted whole: no size above a limit seems to keep it.
fn whole_units(size: Bytes, unit: Bytes) -> u64 {
    size.0.div_ceil(unit.0)
}

/// So many units; beyond 64 bits the most that can be counted, which is out of every range.
fn units(count: u64, unit: Bytes) -> Bytes {
    Bytes(unit.0.saturating_mul(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate() -> Candidate {
        let design = Design {
            tensor_cores: 3,
            vector_cores: 5,
            width: 7,
            depth: 11,
            vector_width: 13,
            local: Bytes::KIB * 17,
            vector_local: Bytes::KIB * 19,
            glb: Bytes::MIB * 23,
            hbm: Bytes::GIB * 29,
        };
        Candidate { design, glb_bytes_per_cycle: Some(31) }
    }

    #[test]
    fn what_is_set_is_what_is_read_and_nothing_else_moves() {
        for knob in &KNOBS {
            for value in [*knob.range.start(), 37, *knob.range.end()] {
                let mut turned = candidate();
                (knob.set)(&mut turned, value);
                for other in &KNOBS {
                    let expected = if other.name == knob.name {
                        Some(value)
                    } else {
                        (other.get)(&candidate())
                    };
                    assert_eq!((other.get)(&turned), expected, "{} by {}", other.name, knob.name);
                }
            }
        }
    }

    #[test]
    fn a_list_of_a_space_is_the_list_of_one_knob() {
        for knob in Knob::listed() {
            let published = DesignSpace::published();
            let mut turned = published.clone();
            knob.set_values(&mut turned, vec![37]);
            for other in Knob::listed() {
                let same = other.name != knob.name;
                let expected = if same { other.values(&published) } else { &[37] };
                assert_eq!(other.values(&turned), expected, "{} by {}", other.name, knob.name);
            }
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_whatever_its_size() {
        for knob in &KNOBS {
            for value in [0, knob.range.end() + 1, 1 << 62, u64::MAX] {
                let mut turned = candidate();
                (knob.set)(&mut turned, value);
                let refused = turned.in_range().unwrap_err().to_string();
                assert!(refused.contains(knob.name), "{refused}");
            }
        }
    }

    #[test]
    fn a_size_below_one_unit_is_in_range() {
        let mut small = candidate();
        small.design.glb = Bytes(1);
        assert_eq!(small.in_range(), Ok(()));
    }

    #[test]
    fn every_knob_is_found_by_its_name() {
        for knob in &KNOBS {
            assert_eq!(Knob::named(knob.name).map(|found| found.name), Some(knob.name));
        }
    }
}
