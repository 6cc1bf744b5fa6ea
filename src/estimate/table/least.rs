//! What an operator takes at the least on every chip that has no more of any proved knob.
//!
//! An estimate is that of one mapping, the best by cycles and then by energy. That its time never
//! rises with a knob does not make its traffic fall: a faster memory may be worth more bytes. So what
//! bounds a whole box of chips by its largest takes, each for itself, the least time of any mapping
//! and the least bytes of any (docs/search.md, the laws).

use super::EstimateTable;
use super::LARGEST_MATMUL;
use super::checked_time;
use super::exact_off_chip;
use super::macs;
use super::matmul_reaches;
use super::operation_cycles;
use crate::estimate::TooLarge;
use crate::estimate::collective;
use crate::estimate::vector_core;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::CoreSpec;
use crate::hardware::Use;
use crate::hardware::efficiency::slowed;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Op;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::units::Bytes;
use crate::units::Time;

/// What no chip with as much or less of every proved knob can beat, figure by figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastEstimate {
    /// From start to end.
    pub time: Time,
    /// Through off-chip memory, both ways.
    pub hbm: Bytes,
    /// Read from the global buffer.
    pub glb_read: Bytes,
    /// Written to the global buffer.
    pub glb_written: Bytes,
}

/// How closely the least is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closeness {
    /// Arrays and off-chip memory each for itself, and the global buffer as if everything passed it once.
    Sketched,
    /// Cores with their buffers, and off-chip memory, each for itself: chips that differ in clock and memory
    /// share it.
    Apart,
    /// Both together: no mapping is at once the fastest and that of the fewest bytes.
    Together,
}

/// What a product needs at the least.
#[derive(Clone, Copy, Default)]
struct LeastProduct {
    /// Cycles of the cores and their buffers, at what they reach.
    on_chip: u64,
    /// Cycles that these and off-chip memory together exceed, at what they reach.
    exceeded: u64,
    hbm: u64,
    glb_read: u64,
    glb_written: u64,
}

impl LeastEstimate {
    const NOTHING: Self = Self {
        time: Time::ZERO,
        hbm: Bytes::ZERO,
        glb_read: Bytes::ZERO,
        glb_written: Bytes::ZERO,
    };

    /// Each figure of the lesser of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            hbm: self.hbm.min(other.hbm),
            glb_read: self.glb_read.min(other.glb_read),
            glb_written: self.glb_written.min(other.glb_written),
        }
    }
}

impl EstimateTable {
    /// What an operator takes at the least on one core, or on all of its kind, of this chip and of
    /// every one that has no more of any proved knob, with whichever arrays the chip speaks for.
    pub fn least(
        &self,
        op: &Op,
        chip: &Accelerator,
        cluster: &Cluster,
        (cores, closeness): (Use, Closeness),
    ) -> Result<LeastEstimate, TooLarge> {
        let (product, chain): (_, &[VectorWork]) = match &op.work {
            Work::Collective(exchange) => {
                let time = collective::estimate(exchange, &chip.vector(cores), cluster).time;
                return Ok(LeastEstimate { time, ..LeastEstimate::NOTHING });
            }
            Work::Matmul { matmul, homes, fused, numbers, grouped } => {
                let reached = chip.efficiency();
                let arrays = matmul_reaches(*numbers, *homes, *grouped, reached);
                let reached = [arrays, reached.memory];
                let specs: Vec<CoreSpec> = chip.each_tensor_in(*numbers, cores).collect();
                (self.least_product((matmul, *homes), &specs, reached, closeness), fused)
            }
            Work::Opaque { flops } => {
                let each = chip.each_tensor_in(Numbers::Bf16, cores);
                let cycles = each.map(|spec| operation_cycles(*flops, &spec)).min();
                let on_chip = cycles.and_then(|cycles| slowed(cycles, chip.efficiency().matmul));
                let product = |on_chip| LeastProduct { on_chip, ..LeastProduct::default() };
                (on_chip.map(product), &[])
            }
            Work::Vector(chain) => (Some(LeastProduct::default()), chain),
            Work::Move => (Some(LeastProduct::default()), &[]),
        };
        let found = product.and_then(|product| self.least_joined(product, chain, op, chip, cores));
        found.ok_or_else(|| TooLarge(op.name.clone()))
    }

    /// No mapping needs fewer cycles on the chip than the fastest beside memory that is never waited for, nor
    /// carries fewer bytes than the least. The fastest of all takes more than its whole cycles less one.
    fn least_product(
        &self,
        (matmul, homes): (&Matmul, Homes),
        specs: &[CoreSpec],
        [arrays, memory]: [u16; 2],
        closeness: Closeness,
    ) -> Option<LeastProduct> {
        if macs(matmul)? > LARGEST_MATMUL {
            return None;
        }
        let apart = || self.fastest.unbounded_of(matmul, homes, specs);
        let ((cycles, least_carried), together) = match closeness {
            Closeness::Sketched => (self.fastest.floor_of(matmul, homes, specs)?, 0),
            Closeness::Apart => (apart()?, 0),
            Closeness::Together => {
                (apart()?, self.fastest.cycles_of(matmul, homes, specs)?.saturating_sub(1))
            }
        };
        let exceeded = u128::from(together) * 1000 / u128::from(arrays.max(memory).max(1));
        let [a, b, out] = operands(matmul, specs.first()?.element_bytes)?;
        let crossing = |home: Home, bytes: u64| if home == Home::Hbm { bytes } else { 0 };
        Some(LeastProduct {
            on_chip: slowed(cycles, arrays)?,
            exceeded: u64::try_from(exceeded).ok()?,
            hbm: least_carried,
            glb_read: a.checked_add(b)?.checked_add(crossing(homes.out, out))?,
            glb_written: out
                .checked_add(crossing(homes.a, a))?
                .checked_add(crossing(homes.b, b))?,
        })
    }

    fn least_joined(
        &self,
        product: LeastProduct,
        chain: &[VectorWork],
        op: &Op,
        chip: &Accelerator,
        cores: Use,
    ) -> Option<LeastEstimate> {
        let (spec, reached, traffic) = (chip.vector(cores), chip.efficiency(), &op.traffic);
        let needs = vector_core::needs(chain, traffic, &spec, self.options.vector_costs)?;
        let sum = |parts: [u64; 3]| parts.into_iter().try_fold(0_u64, u64::checked_add);
        let hbm = sum([product.hbm, traffic.hbm_read.0, traffic.hbm_written.0])?;
        let glb_read = sum([product.glb_read, traffic.glb_read.0, traffic.hbm_written.0])?;
        let glb_written = sum([product.glb_written, traffic.glb_written.0, traffic.hbm_read.0])?;
        // A core has no more lanes than all of them together.
        let fewer = match chip.most_lanes() {
            Some(most) => {
                let costs = self.options.vector_costs;
                vector_core::least_cycles(chain, traffic, (most, &spec), costs)?
            }
            None => [0, 0],
        };
        let on_chip = [
            fewer[0],
            fewer[1],
            product.on_chip,
            product.exceeded,
            needs.lanes,
            needs.local,
            glb_read.div_ceil(spec.glb_port.read),
            glb_written.div_ceil(spec.glb_port.write),
        ];
        let time = checked_time(spec.clock, on_chip.into_iter().fold(0, u64::max))?;
        let time = time.max(exact_off_chip(spec.hbm, hbm, reached.memory)?);
        Some(LeastEstimate {
            time: Time(time.0.checked_add(reached.launch.0)?),
            hbm: Bytes(hbm),
            glb_read: Bytes(glb_read),
            glb_written: Bytes(glb_written),
        })
    }
}

/// Bytes of both operands and of the result, each once.
fn operands(matmul: &Matmul, element: u64) -> Option<[u64; 3]> {
    let Matmul { b, m, k, n } = *matmul;
    let bytes =
        |rows: u64, columns: u64| b.checked_mul(rows)?.checked_mul(columns)?.checked_mul(element);
    Some([bytes(m, k)?, bytes(k, n)?, bytes(m, n)?])
}
