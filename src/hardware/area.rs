//! The silicon of a design, part by part (22 nm).

use super::Design;
use super::sram::sram;
use crate::units::Area;

/// One multiply-accumulator of a tensor core with its registers, in 10⁻⁶ µm²; published.
const MULTIPLY_ACCUMULATOR: u64 = 760_041_386;
/// One lane of a vector core with its registers, in 10⁻⁶ µm²; published.
const VECTOR_LANE: u64 = 759_823_853;

/// Where the area of a design goes. Memory off the chip adds none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AreaBreakdown {
    /// Multiply-accumulators of all tensor cores.
    pub arrays: Area,
    /// Local buffers of all tensor cores.
    pub tensor_buffers: Area,
    /// Lanes of all vector cores.
    pub lanes: Area,
    /// Local buffers of all vector cores.
    pub vector_buffers: Area,
    /// The global buffer.
    pub global_buffer: Area,
    /// All else: wires, interfaces, links, what every chip has. The published table has none of it.
    pub others: Area,
}

impl AreaBreakdown {
    /// The parts of a design; `None` where the sum leaves the range of an area (18 m²).
    pub fn of(design: &Design) -> Option<Self> {
        let times = |area: u64, factors: &[u64]| {
            factors.iter().try_fold(area, |product, &f| product.checked_mul(f)).map(Area)
        };
        let breakdown = Self {
            arrays: times(
                MULTIPLY_ACCUMULATOR,
                &[design.tensor_cores, design.width, design.depth],
            )?,
            tensor_buffers: times(sram(design.local).area.0, &[design.tensor_cores])?,
            lanes: times(VECTOR_LANE, &[design.vector_cores, design.vector_width])?,
            vector_buffers: times(sram(design.vector_local).area.0, &[design.vector_cores])?,
            global_buffer: sram(design.glb).area,
            others: Area::ZERO,
        };
        let sum =
            breakdown.parts().iter().try_fold(0_u64, |sum, (_, area)| sum.checked_add(area.0));
        sum.map(|_| breakdown)
    }

    /// A chip of which only the whole is known.
    pub(super) fn of_whole(others: Area) -> Self {
        let none = Area::ZERO;
        Self {
            arrays: none,
            tensor_buffers: none,
            lanes: none,
            vector_buffers: none,
            global_buffer: none,
            others,
        }
    }

    /// Each part with the name a reader knows it by; nothing else where there is nothing else.
    pub fn parts(&self) -> Vec<(&'static str, Area)> {
        let mut parts = vec![
            ("arrays", self.arrays),
            ("tensor-core buffers", self.tensor_buffers),
            ("vector lanes", self.lanes),
            ("vector-core buffers", self.vector_buffers),
            ("global buffer", self.global_buffer),
        ];
        if self.others > Area::ZERO {
            parts.push(("others", self.others));
        }
        parts
    }

    /// The whole chip.
    pub fn total(&self) -> Area {
        self.parts().iter().map(|&(_, area)| area).sum()
    }
}
