//! The power of a chip, part by part.

use super::Chip;
use super::Cores;
use crate::hardware::technology::Constant;
use crate::hardware::technology::MemoryConstant;
use crate::hardware::technology::Technology;
use crate::model::Precision;
use crate::units::Area;
use crate::units::Power;

/// How busy the arrays are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// As busy as a part is designed to sustain: the thermal design power.
    Sustained,
    /// Every cycle: the highest power.
    Peak,
}

/// Where the watts of a chip go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChipPower {
    /// Multiply-accumulators.
    pub arrays: Power,
    /// Vector lanes; those of multiprocessors are counted with the arrays.
    pub lanes: Power,
    /// The global buffer.
    pub global_buffer: Power,
    /// What moves to and from off-chip memory.
    pub memory: Power,
    /// Off-chip memory at rest.
    pub memory_at_rest: Power,
    /// Links to other chips.
    pub links: Power,
    /// Leakage of the die.
    pub leakage: Power,
    /// Lost in voltage regulators.
    pub regulators: Power,
}

impl ChipPower {
    /// The power of a chip whose die has that area; `None` where no supply reaches its clock, or the
    /// sum is more than a [`Power`] can count.
    pub fn of(chip: &Chip, die: Area, activity: Activity, technology: &Technology) -> Option<Self> {
        let of = |constant| technology.of(constant);
        let supply = u128::from(technology.supply(chip.clock_mhz)?);
        let mhz = u128::from(chip.clock_mhz);
        // A megahertz of a femtojoule is a nanowatt; energies of logic are scaled by process and the
        // square of the supply, in thousandths each.
        let logic = |count: u128, femtojoules: u128, active: u128| {
            let energy = femtojoules * of(Constant::LogicEnergy) * supply * supply;
            (count * mhz).checked_mul(energy * active).map(|found| found / 1_000_000_000_000)
        };
        let active = match activity {
            Activity::Sustained => of(Constant::ArrayActivity),
            Activity::Peak => 1000,
        };
        let lanes = counted_lanes(chip);
        let memory = technology.memory(chip.memory.generation);
        let bytes_per_s = u128::from(chip.memory.bandwidth.as_bytes_per_second());
        // A byte per second of a femtojoule per bit is 8·10⁻⁶ nanowatts, a GB/s 8,000 nanowatts.
        let moved = bytes_per_s * memory.of(MemoryConstant::Energy) * of(Constant::MemoryActivity)
            / 125_000_000;
        let links = u128::from(chip.links_gb_per_s)
            * 2
            * of(Constant::SerdesEnergy)
            * of(Constant::LinkActivity)
            * 8;
        // Microwatts per mm² for square nanometres: 10⁻⁹ nanowatts.
        let leakage = u128::from(die.0) * of(Constant::StaticPower) * supply / 1_000_000_000_000;
        let buffer = 2 * u128::from(chip.glb_bytes_per_cycle);
        Self::from_nanowatts(
            [
                logic(u128::from(chip.macs()), mac_femtojoules(chip, technology), active)?,
                logic(lanes, of(Constant::LaneEnergy), of(Constant::LaneActivity))?,
                logic(buffer, of(Constant::GlbEnergy), of(Constant::GlbActivity))?,
                moved,
                u128::from(chip.memory.stacks) * of(Constant::MemoryIdle) * 1000,
                links,
                leakage,
            ],
            of(Constant::RegulatorLoss),
        )
    }

    /// The parts in milliwatts, each rounded up, and what regulators lose.
    fn from_nanowatts(parts: [u128; 7], loss: u128) -> Option<Self> {
        let sum = parts.iter().try_fold(0_u128, |sum, part| sum.checked_add(*part))?;
        let lost = sum.checked_mul(loss)? / 1000;
        u64::try_from(sum.checked_add(lost)? / 1_000_000).ok().filter(|sum| *sum < 1 << 62)?;
        let power = |nanowatts: u128| {
            let milliwatts = nanowatts.div_ceil(1_000_000);
            Power(u64::try_from(milliwatts).expect("no part is more than the sum"))
        };
        let [arrays, lanes, global_buffer, memory, at_rest, links, leakage] = parts.map(power);
        Some(Self {
            arrays,
            lanes,
            global_buffer,
            memory,
            memory_at_rest: at_rest,
            links,
            leakage,
            regulators: power(lost),
        })
    }

    /// Each part with the name a reader knows it by; those that a chip has none of are left out.
    pub fn parts(&self) -> Vec<(&'static str, Power)> {
        self.all().into_iter().filter(|(_, power)| *power > Power::ZERO).collect()
    }

    /// The whole chip with its memory.
    pub fn total(&self) -> Power {
        self.all().into_iter().map(|(_, power)| power).sum()
    }

    fn all(&self) -> [(&'static str, Power); 8] {
        [
            ("arrays", self.arrays),
            ("vector lanes", self.lanes),
            ("global buffer", self.global_buffer),
            ("off-chip memory", self.memory),
            ("off-chip memory at rest", self.memory_at_rest),
            ("links", self.links),
            ("leakage", self.leakage),
            ("voltage regulators", self.regulators),
        ]
    }
}

/// Femtojoules of a multiply-accumulator and cycle at 7 nm and the nominal supply; where it does two
/// products of fp8 instead of one of bf16, the more of both.
fn mac_femtojoules(chip: &Chip, technology: &Technology) -> u128 {
    let of_bf16 = product_femtojoules(chip, technology);
    match (chip.cores, chip.precision) {
        (Cores::Simt { .. }, _) | (_, Precision::Bf16) => of_bf16,
        (Cores::Systolic { .. }, Precision::Fp8) => {
            of_bf16.max(2 * fp8_product_femtojoules(chip, technology))
        }
    }
}

/// Femtojoules of one product of bf16 and its sum, likewise.
pub(super) fn product_femtojoules(chip: &Chip, technology: &Technology) -> u128 {
    technology.of(match chip.cores {
        Cores::Simt { .. } => Constant::MacSimtEnergy,
        Cores::Systolic { .. } => Constant::MacEnergy,
    })
}

/// Femtojoules of one product of fp8 and its sum, likewise; of multiprocessors, whose operands come from
/// registers, as much as in bf16.
pub(super) fn fp8_product_femtojoules(chip: &Chip, technology: &Technology) -> u128 {
    technology.of(match chip.cores {
        Cores::Simt { .. } => Constant::MacSimtEnergy,
        Cores::Systolic { .. } => Constant::MacFp8Energy,
    })
}

/// Lanes whose power counts for itself.
fn counted_lanes(chip: &Chip) -> u128 {
    match chip.cores {
        Cores::Systolic { vector_cores, lanes, .. } => u128::from(vector_cores) * u128::from(lanes),
        Cores::Simt { .. } => 0,
    }
}
