//! The die of a chip, part by part.

use super::Chip;
use super::Cores;
use super::edge::least_die;
use crate::hardware::technology::Constant;
use crate::hardware::technology::MemoryConstant;
use crate::hardware::technology::Technology;
use crate::model::Precision;
use crate::units::Area;
use crate::units::Bytes;

/// Where the silicon of a die goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DieArea {
    /// Multiply-accumulators.
    pub arrays: Area,
    /// Vector lanes.
    pub lanes: Area,
    /// Control of multiprocessors.
    pub control: Area,
    /// Buffers of the tensor cores, or registers and first-level caches.
    pub tensor_buffers: Area,
    /// Buffers of the vector cores.
    pub vector_buffers: Area,
    /// The global buffer.
    pub global_buffer: Area,
    /// The network between cores and global buffer.
    pub noc: Area,
    /// Ports of the cores to it.
    pub ports: Area,
    /// Host interface and management.
    pub fixed: Area,
    /// Clock, power grid, test and spares.
    pub overhead: Area,
    /// Interfaces and controllers of off-chip memory.
    pub memory_interfaces: Area,
    /// Links to other chips.
    pub links: Area,
    /// What the edge asks for beyond the parts.
    pub edge: Area,
}

/// Thousandths in a whole.
const WHOLE: u128 = 1000;

impl DieArea {
    /// The die of a chip; `None` where no reticle has the edge for its memory and links, or the
    /// parts are larger than an [`Area`] can count.
    ///
    /// The network between cores and buffer grows with the side of the die that it is part of:
    /// where the other parts take `base`, the side x solves x² = base + k·x, which is solved in
    /// closed form.
    pub fn of(chip: &Chip, technology: &Technology) -> Option<Self> {
        let parts = Parts::of(chip, technology);
        let top = parts.top_level;
        let inside = parts.inside();
        let base = (inside * (WHOLE + top) / WHOLE)
            .checked_add(parts.memory_interfaces)?
            .checked_add(parts.links)?;
        let k = parts.noc_per_side;
        let root = k.checked_mul(k)?.checked_add(base.checked_mul(4)?)?.isqrt();
        let noc_with_top = k * u128::midpoint(k, root);
        let noc = noc_with_top * WHOLE / (WHOLE + top);
        let whole = base.checked_add(noc_with_top)?;
        let least = u128::from(least_die(chip, technology)?.0);
        let area = |found: u128| u64::try_from(found).ok().map(Area);
        area(whole.max(least))?;
        Some(Self {
            arrays: area(parts.arrays)?,
            lanes: area(parts.lanes)?,
            control: area(parts.control)?,
            tensor_buffers: area(parts.tensor_buffers)?,
            vector_buffers: area(parts.vector_buffers)?,
            global_buffer: area(parts.global_buffer)?,
            noc: area(noc)?,
            ports: area(parts.ports)?,
            fixed: area(parts.fixed)?,
            overhead: area(whole - inside - noc - parts.memory_interfaces - parts.links)?,
            memory_interfaces: area(parts.memory_interfaces)?,
            links: area(parts.links)?,
            edge: area(least.saturating_sub(whole))?,
        })
    }

    /// Each part with the name a reader knows it by; those that a chip has none of are left out.
    pub fn parts(&self) -> Vec<(&'static str, Area)> {
        self.all().into_iter().filter(|(_, area)| *area > Area::ZERO).collect()
    }

    /// The whole die.
    pub fn total(&self) -> Area {
        self.all().into_iter().map(|(_, area)| area).sum()
    }

    fn all(&self) -> [(&'static str, Area); 13] {
        [
            ("arrays", self.arrays),
            ("vector lanes", self.lanes),
            ("control", self.control),
            ("tensor-core buffers", self.tensor_buffers),
            ("vector-core buffers", self.vector_buffers),
            ("global buffer", self.global_buffer),
            ("network on the chip", self.noc),
            ("ports of cores", self.ports),
            ("host and management", self.fixed),
            ("clock, power grid, test", self.overhead),
            ("memory interfaces", self.memory_interfaces),
            ("links", self.links),
            ("asked for by the edge", self.edge),
        ]
    }
}

/// Square nanometres of each part before the network on the chip.
#[derive(Default)]
struct Parts {
    arrays: u128,
    lanes: u128,
    control: u128,
    tensor_buffers: u128,
    vector_buffers: u128,
    global_buffer: u128,
    ports: u128,
    fixed: u128,
    memory_interfaces: u128,
    links: u128,
    /// Square nanometres of the network, with its share of the top level, for each nanometre of the
    /// die's side.
    noc_per_side: u128,
    /// Thousandths of the parts for clock, power grid and test.
    top_level: u128,
}

impl Parts {
    fn of(chip: &Chip, technology: &Technology) -> Self {
        let of = |constant| technology.of(constant);
        let cores = CoreParts::of(chip, technology);
        let (buffer, top_level) = match chip.cores {
            Cores::Systolic { .. } => (Constant::SramArea, of(Constant::TopLevel)),
            // The realised density of these is that of a whole chip, top level included.
            Cores::Simt { .. } => (Constant::CacheArea, 0),
        };
        let wire = of(Constant::WireArea);
        let memory = technology.memory(chip.memory.generation);
        let controller = memory.of(MemoryConstant::Controller) * of(Constant::ReferenceDensity)
            / of(Constant::LogicDensity);
        let reference_side = of(Constant::NocDie).isqrt();
        Self {
            arrays: cores.arrays,
            lanes: cores.lanes,
            control: cores.control,
            tensor_buffers: cores.tensor_buffers,
            vector_buffers: cores.vector_buffers,
            global_buffer: memory_area(chip.glb, 1, buffer, technology),
            ports: of(Constant::PortArea) * cores.count * wire / WHOLE,
            fixed: of(Constant::FixedArea),
            memory_interfaces: u128::from(chip.memory.sites)
                * (memory.of(MemoryConstant::Phy) + controller),
            links: u128::from(chip.links_gb_per_s) * of(Constant::SerdesArea),
            noc_per_side: of(Constant::NocArea)
                * u128::from(chip.glb_bytes_per_cycle)
                * wire
                * (WHOLE + top_level)
                / (WHOLE * WHOLE * of(Constant::NocBytes) * reference_side),
            top_level,
        }
    }

    /// What lies inside the ring of interfaces.
    fn inside(&self) -> u128 {
        self.arrays
            + self.lanes
            + self.control
            + self.tensor_buffers
            + self.vector_buffers
            + self.global_buffer
            + self.ports
            + self.fixed
    }
}

/// The cores.
struct CoreParts {
    count: u128,
    arrays: u128,
    lanes: u128,
    control: u128,
    tensor_buffers: u128,
    vector_buffers: u128,
}

impl CoreParts {
    fn of(chip: &Chip, technology: &Technology) -> Self {
        let of = |constant| technology.of(constant);
        let wide = u128::from;
        let precision = match chip.precision {
            Precision::Bf16 => WHOLE,
            Precision::Fp8 => WHOLE + of(Constant::Fp8Extra),
        };
        let mac = of(Constant::MacTransistors) * precision;
        match chip.cores {
            Cores::Systolic { tensor_cores, macs, local, vector_cores, lanes, vector_local } => {
                let density = Constant::AsicDensity;
                let n_lanes = wide(vector_cores) * wide(lanes);
                Self {
                    count: wide(tensor_cores) + wide(vector_cores),
                    arrays: wide(tensor_cores) * wide(macs) * silicon(mac, density, technology)
                        / WHOLE,
                    lanes: n_lanes * silicon(of(Constant::LaneTransistors), density, technology),
                    control: 0,
                    tensor_buffers: memory_area(
                        local,
                        tensor_cores,
                        Constant::SramArea,
                        technology,
                    ),
                    vector_buffers: memory_area(
                        vector_local,
                        vector_cores,
                        Constant::SramArea,
                        technology,
                    ),
                }
            }
            Cores::Simt { physical, macs, lanes, local, .. } => {
                let density = Constant::SimtDensity;
                let n_lanes = wide(physical) * wide(lanes);
                Self {
                    count: wide(physical),
                    arrays: wide(physical) * wide(macs) * silicon(mac, density, technology) / WHOLE,
                    lanes: n_lanes * silicon(of(Constant::LaneTransistors), density, technology),
                    control: wide(physical)
                        * silicon(of(Constant::SimtControl), density, technology),
                    tensor_buffers: memory_area(
                        local,
                        physical,
                        Constant::RegisterArea,
                        technology,
                    ),
                    vector_buffers: 0,
                }
            }
        }
    }
}

/// Square nanometres of so many transistors, rounded up.
fn silicon(transistors: u128, realised: Constant, technology: &Technology) -> u128 {
    let per_mm2 = technology.of(Constant::LogicDensity) * technology.of(realised);
    // A square millimetre has 10¹² square nanometres.
    (transistors * WHOLE * 1_000_000_000_000).div_ceil(per_mm2)
}

/// Square nanometres of so many memories of a size.
fn memory_area(size: Bytes, count: u64, per_mib: Constant, technology: &Technology) -> u128 {
    let per_mib = technology.of(per_mib) * technology.of(Constant::Bitcell)
        / technology.of(Constant::ReferenceBitcell);
    u128::from(size.0) * u128::from(count) * per_mib / u128::from(Bytes::MIB.0)
}
