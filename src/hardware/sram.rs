//! Area and access energy of on-chip buffers by their size (22 nm, two ports).

use crate::units::Area;
use crate::units::Bytes;

/// What a buffer of one size costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sram {
    /// Its silicon.
    pub area: Area,
    /// Femtojoules to read 8 bytes.
    pub read_fj: u64,
    /// Femtojoules to write 8 bytes.
    pub write_fj: u64,
    /// Whether the size lies between or beyond the tabled ones, so that the figures are
    /// interpolated on a log scale.
    pub interpolated: bool,
}

/// Bytes of one access, to which the energies refer.
pub const ACCESS_BYTES: u64 = 8;

/// KiB, area in 10⁻⁶ µm², fJ per read and per write of 8 bytes; published figures (CACTI).
const TABLE: [(u64, u64, u64, u64); 18] = [
    (1, 6_133_980_000, 1_218, 1_336),
    (2, 8_248_430_000, 2_091, 2_293),
    (4, 12_610_500_000, 2_600, 3_069),
    (8, 22_139_900_000, 3_712, 4_097),
    (16, 38_583_000_000, 5_728, 5_833),
    (32, 63_338_400_000, 7_076, 7_315),
    (64, 115_579_000_000, 11_573, 10_718),
    (128, 204_764_000_000, 15_449, 13_791),
    (256, 446_565_000_000, 25_533, 22_454),
    (512, 897_890_000_000, 34_222, 31_073),
    (1 << 10, 1_634_130_000_000, 50_345, 44_255),
    (2 << 10, 3_338_220_000_000, 69_672, 62_146),
    (4 << 10, 6_078_640_000_000, 104_067, 89_320),
    (8 << 10, 11_952_400_000_000, 151_364, 136_618),
    (16 << 10, 23_745_200_000_000, 213_998, 199_113),
    (32 << 10, 46_750_900_000_000, 308_676, 293_790),
    (64 << 10, 88_605_700_000_000, 437_976, 408_652),
    (128 << 10, 175_423_000_000_000, 629_087, 599_762),
];

/// The buffer of a size: tabled, or on the straight line between its two neighbours in the table
/// when size and figure are both on a log scale (beyond the ends, on the outermost such line).
pub fn sram(size: Bytes) -> Sram {
    if let Some(&(_, area, read_fj, write_fj)) =
        TABLE.iter().find(|&&(kib, ..)| kib * Bytes::KIB.0 == size.0)
    {
        return Sram { area: Area(area), read_fj, write_fj, interpolated: false };
    }
    let above = TABLE.partition_point(|&(kib, ..)| kib * Bytes::KIB.0 < size.0);
    let upper = above.clamp(1, TABLE.len() - 1);
    let (low, high) = (TABLE[upper - 1], TABLE[upper]);
    let between = |low_figure: u64, high_figure: u64| {
        let share = (size.0.max(1) as f64 / (low.0 * Bytes::KIB.0) as f64).ln()
            / (high.0 as f64 / low.0 as f64).ln();
        rounded(low_figure as f64 * (high_figure as f64 / low_figure as f64).powf(share))
    };
    Sram {
        area: Area(between(low.1, high.1)),
        read_fj: between(low.2, high.2),
        write_fj: between(low.3, high.3),
        interpolated: true,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the figure is positive, and sizes are bounded far below where it would not fit"
)]
fn rounded(figure: f64) -> u64 {
    (figure.round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabled_sizes_are_taken_from_the_table() {
        let found = sram(Bytes(16 << 10));
        assert_eq!((found.area, found.read_fj), (Area(38_583_000_000), 5_728));
        assert!(!found.interpolated);
    }

    #[test]
    fn other_sizes_lie_between_their_neighbours_and_say_so() {
        for size in [3_u64 << 10, 420 << 10, 3 << 20, 40 << 20] {
            let found = sram(Bytes(size));
            let below = sram(Bytes(1 << size.ilog2()));
            let above = sram(Bytes(2 << size.ilog2()));
            assert!(found.interpolated);
            assert!(below.area < found.area && found.area < above.area);
            assert!(below.read_fj < found.read_fj && found.read_fj < above.read_fj);
            assert!(below.write_fj < found.write_fj && found.write_fj < above.write_fj);
        }
    }

    #[test]
    fn beyond_the_table_the_outermost_line_goes_on() {
        let (last, beyond) = (sram(Bytes(128 << 20)), sram(Bytes(256 << 20)));
        let before = sram(Bytes(64 << 20));
        let ratio = last.area.0 as f64 / before.area.0 as f64;
        assert!((beyond.area.0 as f64 / last.area.0 as f64 - ratio).abs() < 1e-9);
        assert!(sram(Bytes(512)).area < sram(Bytes(1024)).area);
        assert!(sram(Bytes(0)).read_fj >= 1, "no size makes the interpolation fail");
    }
}
