//! The least that an operator can take on an accelerator, whatever the mapping.

use super::VectorCosts;
use super::table::checked_time;
use super::vector_core::lane_cycles;
use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::model::op::Op;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::units::Bytes;
use crate::units::Time;

/// Lower bounds on the time of an operator that has the whole accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roofline {
    /// All arrays busy, and all lanes, whichever takes longer.
    pub compute: Time,
    /// Every operand crosses off-chip memory once.
    pub hbm: Time,
}

impl Roofline {
    /// Of an operator; collectives have none. `None` where it is too large to be timed.
    pub fn of(op: &Op, chip: &Accelerator, costs: VectorCosts) -> Option<Self> {
        let (flops, chain): (u128, &[VectorWork]) = match &op.work {
            Work::Matmul { matmul, fused, .. } => (matmul.flops().0, fused),
            Work::Opaque { flops } => (u128::from(*flops), &[]),
            Work::Vector(chain) => (0, chain),
            Work::Move => (0, &[]),
            Work::Collective(_) => return Some(Self { compute: Time::ZERO, hbm: Time::ZERO }),
        };
        let vector = chip.vector(Use::Spread);
        let mut lanes = 0_u64;
        for work in chain {
            lanes = lanes.checked_add(lane_cycles(work, &vector, costs)?)?;
        }
        let per_cycle = 2 * u128::from(chip.tensor(Use::Spread).macs_per_cycle());
        let arrays = u64::try_from(flops.div_ceil(per_cycle)).ok()?;
        let (read, written) = op.hbm_bytes(Bytes(vector.element_bytes));
        let bytes = read.0.checked_add(written.0)?;
        let hbm = (u128::from(bytes) * u128::from(Time::PER_SECOND))
            / u128::from(vector.hbm.as_bytes_per_second());
        Some(Self {
            compute: checked_time(chip.clock(), arrays.max(lanes))?,
            hbm: Time(u64::try_from(hbm).ok()?),
        })
    }

    /// The tighter of the two.
    pub fn time(&self) -> Time {
        self.compute.max(self.hbm)
    }
}
