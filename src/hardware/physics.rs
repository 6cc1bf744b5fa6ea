//! What does not change from design to design: clock, bandwidths per level, energies, network.

use super::Efficiency;
use super::efficiency::Calibration;
use super::network::Network;
use crate::units::Area;
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
    /// As real parts of that size, ascending. What users ask for has one of these sizes
    /// ([`HbmBandwidth::knows`]); any other counts as the next smaller part, one below all as the
    /// smallest.
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
    /// What computing and on-chip buffers take.
    pub energies: ChipEnergies,
    /// Femtojoules to move 8 bytes to or from off-chip memory.
    pub hbm_fj: u64,
    /// Femtojoules to send one byte to another device.
    pub network_fj_per_byte: u64,
    /// Microwatts that each square millimetre draws at rest.
    pub static_uw_per_mm2: u64,
    /// Microwatts at rest of what is beside the die.
    pub beside_uw: u64,
    /// Between devices, as its data sheet says.
    pub network: Network,
    /// What hardware and software reach of all that.
    pub efficiency: Efficiency,
    /// The class or the part whose efficiency that is, where it is not the design's own.
    pub efficiency_from: Option<String>,
    /// Which runs of the design that these are written for say so.
    pub calibrations: Vec<Calibration>,
}

impl Physics {
    /// Between devices, as exchanges find it.
    pub fn reached_network(&self) -> Network {
        self.efficiency.network(&self.network)
    }
}

/// Femtojoules of what cores do, and where those of buffers are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChipEnergies {
    /// One multiply-accumulate.
    pub mac_fj: u64,
    /// The same in 8 bits.
    pub mac_fp8_fj: u64,
    /// The registers that it reads and writes.
    pub register_fj: u64,
    /// One lane of a vector core for one cycle.
    pub lane_fj: u64,
    /// The registers that it reads and writes.
    pub lane_register_fj: u64,
    /// Buffers.
    pub buffers: BufferEnergies,
}

/// What an access to on-chip buffers takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferEnergies {
    /// As published: every buffer one macro of 22 nm.
    Published,
    /// In the process of the chip, the global buffer in banks.
    OfProcess {
        /// Local buffers, in millionths of the published energy.
        local: u64,
        /// Femtojoules per 8 bytes of the global buffer.
        glb_fj: u64,
    },
}

impl ChipEnergies {
    /// The published ones (22 nm); that a lane takes as much as a multiply-accumulate is assumed.
    pub const PUBLISHED: Self = Self {
        mac_fj: 938,
        mac_fp8_fj: 938,
        register_fj: 222 + 296,
        lane_fj: 938,
        lane_register_fj: 103 + 138,
        buffers: BufferEnergies::Published,
    };
}

impl Physics {
    /// Microwatts at rest of a chip whose die has that area.
    pub(super) fn static_uw(&self, die: Area) -> u128 {
        // 10⁻⁶ µm² are 10⁻¹² mm².
        u128::from(die.0) * u128::from(self.static_uw_per_mm2) / 1_000_000_000_000
            + u128::from(self.beside_uw)
    }
}

/// No rate is known for a size of off-chip memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("off-chip memory of {found} GiB {}; {}", self.problem(), self.allowed())]
pub struct UnknownRate {
    /// The size, in GiB.
    found: u64,
    /// The sizes next to it.
    nearest: String,
    /// All sizes that have a rate.
    known: String,
}

impl UnknownRate {
    /// What is wrong with the size.
    pub fn problem(&self) -> String {
        format!("has no known rate: nearest are {}", self.nearest)
    }

    /// What would do.
    pub fn allowed(&self) -> String {
        format!(
            "known are {}; for another size use a hardware file with one rate for all sizes, such \
             as `hbm_gb_per_s = 1200`",
            self.known
        )
    }
}

impl HbmBandwidth {
    /// Whether the rate of a memory of so many GiB is known, not only that of a neighbour.
    pub fn knows(&self, gib: u64) -> Result<(), UnknownRate> {
        let Self::BySize(parts) = self else { return Ok(()) };
        let sizes: Vec<u64> = parts.iter().map(|(size, _)| size.0 / Bytes::GIB.0).collect();
        if sizes.contains(&gib) {
            return Ok(());
        }
        let said = |sizes: &[u64], glue: &str| {
            sizes.iter().map(u64::to_string).collect::<Vec<String>>().join(glue)
        };
        let above = sizes.partition_point(|&size| size < gib);
        let nearest = &sizes[above.saturating_sub(1)..(above + 1).min(sizes.len())];
        Err(UnknownRate { found: gib, nearest: said(nearest, " and "), known: said(&sizes, ", ") })
    }

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

    #[test]
    fn a_size_without_a_rate_is_refused_with_its_neighbours() {
        let rate = Bandwidth::bytes_per_second(1).unwrap();
        let parts = [32, 64, 80].map(|n: u64| (Bytes(n << 30), rate)).to_vec();
        let hbm = HbmBandwidth::BySize(parts);
        for known in [32, 64, 80] {
            assert_eq!(hbm.knows(known), Ok(()));
        }
        for (gib, nearest) in [(1, "32"), (48, "32 and 64"), (72, "64 and 80"), (1 << 62, "80")] {
            let refused = hbm.knows(gib).unwrap_err();
            assert_eq!(refused.nearest, nearest, "{gib} GiB");
            assert!(refused.to_string().contains("known are 32, 64, 80"), "{refused}");
        }
        assert_eq!(HbmBandwidth::Fixed(rate).knows(48), Ok(()));
    }
}
