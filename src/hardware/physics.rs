//! What does not change from design to design: clock, bandwidths per level, energies, network.

use super::network::Network;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Frequency;

/// Bytes per cycle through a memory, each way apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Read, per cycle.
    pub read: u64,
    /// Written, per cycle.
    pub write: u64,
}

/// How fast off-chip memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HbmBandwidth {
    /// The same whatever its size.
    Fixed(Bandwidth),
    /// As real parts of that size, ascending; a size in between is as fast as the next smaller
    /// part, one below all as the smallest.
    BySize(Vec<(Bytes, Bandwidth)>),
}

/// The constants in which a design is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physics {
    /// Of all cores.
    pub clock: Frequency,
    /// Bytes of an element of a tensor.
    pub element_bytes: u64,
    /// Bytes of a partial sum that leaves the array.
    pub partial_sum_bytes: u64,
    /// Whether a matmul pays width + depth cycles to fill and drain its array.
    pub fill_and_drain: bool,
    /// Of each tensor core's local buffer; `None`: one row and one column in, one row out, per
    /// cycle.
    pub local: Option<Port>,
    /// Of each vector core's local buffer; `None`: two elements in, one out, per lane and cycle.
    pub vector_local: Option<Port>,
    /// Of the global buffer, for the chip.
    pub glb: Port,
    /// How many cores one read of the global buffer serves; `None`: any number.
    pub multicast: Option<u64>,
    /// Off-chip memory, reads and writes together.
    pub hbm: HbmBandwidth,
    /// Femtojoules to move 8 bytes to or from off-chip memory.
    pub hbm_fj: u64,
    /// Femtojoules to send one byte to another device.
    pub network_fj_per_byte: u64,
    /// Microwatts that each square millimetre draws at rest.
    pub static_uw_per_mm2: u64,
    /// Between devices.
    pub network: Network,
}

impl HbmBandwidth {
    /// The rate of a memory of `size`.
    pub fn of(&self, size: Bytes) -> Bandwidth {
        match self {
            Self::Fixed(rate) => *rate,
            Self::BySize(parts) => {
                let above = parts.partition_point(|&(part, _)| part <= size);
                parts[above.saturating_sub(1)].1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_as_fast_as_the_next_smaller_real_part() {
        let rate = |gb: u64| Bandwidth::bytes_per_second(gb * 1_000_000_000).unwrap();
        let gib = |n: u64| Bytes(n << 30);
        let parts = vec![(gib(32), rate(1200)), (gib(64), rate(1640))];
        let hbm = HbmBandwidth::BySize(parts);
        for (size, expected) in [(16, 1200), (32, 1200), (48, 1200), (64, 1640), (96, 1640)] {
            assert_eq!(hbm.of(gib(size)), rate(expected), "{size} GiB");
        }
    }
}
