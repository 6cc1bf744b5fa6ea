//! One accelerator: the knobs that a designer turns, and what follows from them.

use super::AreaBreakdown;
use super::BufferEnergies;
use super::Candidate;
use super::ChipEnergies;
use super::Efficiency;
use super::Physics;
use super::Port;
use super::sram::sram;
use crate::model::Precision;
use crate::model::op::Numbers;
use crate::units::Area;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Frequency;

/// The knobs of an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Design {
    /// Systolic arrays.
    pub tensor_cores: u64,
    /// Vector units.
    pub vector_cores: u64,
    /// Multiply-accumulators along one side of an array.
    pub width: u64,
    /// Multiply-accumulators along the other side.
    pub depth: u64,
    /// Lanes of a vector unit.
    pub vector_width: u64,
    /// Local buffer of a tensor core.
    pub local: Bytes,
    /// Local buffer of a vector core.
    pub vector_local: Bytes,
    /// Global on-chip buffer.
    pub glb: Bytes,
    /// Off-chip memory.
    pub hbm: Bytes,
}

impl Design {
    /// The local buffer that the published space gives a tensor core.
    pub fn published_local(width: u64, depth: u64) -> Bytes {
        Bytes(width.saturating_mul(depth).saturating_mul(16).max(Bytes::KIB.0))
    }

    /// The local buffer that the published space gives a vector core.
    pub fn published_vector_local(vector_width: u64) -> Bytes {
        Bytes(vector_width.saturating_mul(16).max(Bytes::KIB.0))
    }

    /// The same with arrays of other sides.
    ///
    /// Buffers and lanes that followed from the sides by the published rules follow from the new
    /// ones; those that were given for themselves stay.
    #[must_use]
    pub fn with_array(&self, width: u64, depth: u64) -> Self {
        let vector_width = if self.vector_width == self.width { width } else { self.vector_width };
        let local = if self.local == Self::published_local(self.width, self.depth) {
            Self::published_local(width, depth)
        } else {
            self.local
        };
        Self { width, depth, local, ..*self }.with_lanes(vector_width)
    }

    /// The same with other vector cores, whose buffers follow likewise.
    #[must_use]
    pub fn with_lanes(&self, vector_width: u64) -> Self {
        let vector_local = if self.vector_local == Self::published_vector_local(self.vector_width) {
            Self::published_vector_local(vector_width)
        } else {
            self.vector_local
        };
        Self { vector_width, vector_local, ..*self }
    }

    /// Registers of all multiply-accumulators (32 bytes each) and vector lanes (12 bytes each).
    pub fn registers(&self) -> Bytes {
        Bytes(self.tensor_cores * self.width * self.depth * 32)
            + Bytes(self.vector_cores * self.vector_width * 12)
    }
}

/// Why a design cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbuildable {
    /// A knob outside its range.
    #[error("`{knob} = {found}` is outside its range; allowed are {low} to {high}")]
    Range {
        /// Which knob.
        knob: &'static str,
        /// Its value.
        found: u64,
        /// The least allowed.
        low: u64,
        /// The most allowed.
        high: u64,
    },
    /// A buffer is too small for any mapping.
    #[error(
        "{buffer} of {found} bytes cannot hold one tile of a {width}x{depth} array, \
         double-buffered; it needs at least {needed} bytes"
    )]
    BufferTooSmall {
        /// Which buffer.
        buffer: &'static str,
        /// Its size.
        found: u64,
        /// The array's width.
        width: u64,
        /// The array's depth.
        depth: u64,
        /// The least size that would do.
        needed: u64,
    },
    /// No supply reaches the clock.
    #[error(
        "a clock of {mhz} MHz is beyond what {process_nm} nm reaches; at most {most} MHz would do"
    )]
    Clock {
        /// The clock.
        mhz: u64,
        /// The process.
        process_nm: u64,
        /// The highest clock.
        most: u64,
    },
    /// No die has the edge for memory and links.
    #[error(
        "no die of one reticle has the edge for {stacks} stacks of memory and {gb_per_s} GB/s of \
         links; at most {most} stacks fit beside such links"
    )]
    NoDie {
        /// Stacks.
        stacks: u64,
        /// Links, per direction.
        gb_per_s: u64,
        /// The most stacks that would do.
        most: u64,
    },
    /// More silicon than an [`Area`] can count.
    #[error("the design is larger than 18 square metres")]
    TooLarge,
}

/// How many cores of a kind an operator runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// One core, with its even share of the global buffer.
    Alone,
    /// All cores, with the whole global buffer.
    Spread,
}

/// How the time that an operator needs of off-chip memory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OffChipTime {
    /// In whole cycles, rounded up: the published rule, and that of given parts. A higher clock can
    /// then be slower by less than a cycle.
    WholeCycles,
    /// As it is: the rule of searched chips, whose clock is a knob (docs/search.md, the laws).
    Exact,
}

/// An accelerator that can be built: its design, bandwidths, energies and area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    design: Design,
    tensor: CoreSpec,
    fp8: CoreSpec,
    vector: VectorSpec,
    efficiency: Efficiency,
    area: AreaBreakdown,
    static_uw: u128,
    interpolated: bool,
    off_chip: OffChipTime,
    most_lanes: Option<MostLanes>,
    /// Arrays that chips for which a bound speaks may have instead, in bf16 and in fp8.
    instead: Vec<[CoreSpec; 2]>,
}

/// Lanes that the chips for which a bound speaks have together at the most, though each may have as many vector
/// cores, and each core as many lanes, as the design says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MostLanes {
    /// So many.
    pub lanes: u64,
    /// Whether a core's buffer feeds each of its lanes at the same rate, however many it has.
    pub fed_alike: bool,
}

/// All that decides how long a matmul takes: equal specs, equal estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreSpec {
    /// Tensor cores that may be used.
    pub count: u64,
    /// Multiply-accumulators along one side of the array.
    pub width: u64,
    /// Multiply-accumulators along the other side.
    pub depth: u64,
    /// Local buffer of each core.
    pub local: Bytes,
    /// Bandwidth of each local buffer.
    pub local_port: Port,
    /// Global buffer that may be used.
    pub glb: Bytes,
    /// Bandwidth of the global buffer.
    pub glb_port: Port,
    /// Cores that one read of the global buffer serves at most; `u64::MAX` for any number.
    pub multicast: u64,
    /// Bandwidth of off-chip memory.
    pub hbm: Bandwidth,
    /// Clock of the cores.
    pub clock: Frequency,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Bytes of a partial sum outside the array.
    pub partial_sum_bytes: u64,
    /// Whether filling and draining the array takes time.
    pub fill_and_drain: bool,
    /// Femtojoules per 8 bytes: local buffer read and written, global buffer read and written,
    /// off-chip memory.
    pub energies: Energies,
}

/// Femtojoules per access of 8 bytes at each level, and of what cores do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the type says what each is")]
pub struct Energies {
    pub local_read: u64,
    pub local_write: u64,
    pub glb_read: u64,
    pub glb_write: u64,
    pub hbm: u64,
    /// Of one multiply-accumulate.
    pub mac: u64,
    /// Of its registers.
    pub register: u64,
    /// Of one lane and cycle.
    pub lane: u64,
    /// Of its registers.
    pub lane_register: u64,
}

/// All that decides how long vector work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VectorSpec {
    /// Vector cores that may be used.
    pub count: u64,
    /// Lanes of each.
    pub width: u64,
    /// Bandwidth of each local buffer.
    pub local_port: Port,
    /// Bandwidth of the global buffer.
    pub glb_port: Port,
    /// Bandwidth of off-chip memory.
    pub hbm: Bandwidth,
    /// Clock of the cores.
    pub clock: Frequency,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Femtojoules per 8 bytes at each level.
    pub energies: Energies,
    /// Femtojoules per byte sent to another device.
    pub network_fj_per_byte: u64,
}

impl Accelerator {
    /// Builds a design, or says why it cannot be.
    pub fn new(design: Design, physics: &Physics) -> Result<Self, Unbuildable> {
        let area = AreaBreakdown::of(&design).ok_or(Unbuildable::TooLarge)?;
        Self::with_area(design, physics, area)
    }

    /// The same with a die whose parts are known.
    pub(super) fn with_area(
        design: Design,
        physics: &Physics,
        area: AreaBreakdown,
    ) -> Result<Self, Unbuildable> {
        Candidate::from(design).in_range()?;
        let tensor = tensor_spec(&design, physics);
        tensor.can_hold_a_tile()?;
        let one = CoreSpec { count: 1, glb: Bytes(design.glb.0 / design.tensor_cores), ..tensor };
        one.can_hold_a_tile()?;
        Ok(Self::with_any_buffer(design, physics, area))
    }

    /// The same whether or not its buffers hold a tile: for bounds, which ask for no mapping.
    pub(super) fn with_any_buffer(design: Design, physics: &Physics, area: AreaBreakdown) -> Self {
        let (local, glb) = ([design.local, design.vector_local], [design.glb]);
        let buffers: Vec<Bytes> = match physics.energies.buffers {
            BufferEnergies::Published => [&local[..], &glb].concat(),
            BufferEnergies::OfProcess { local: 0, .. } => Vec::new(),
            BufferEnergies::OfProcess { .. } => local.to_vec(),
        };
        Self {
            design,
            tensor: tensor_spec(&design, physics),
            fp8: fp8_spec(&design, physics),
            vector: vector_spec(&design, physics),
            efficiency: physics.efficiency,
            area,
            static_uw: physics.static_uw(area.total()),
            interpolated: buffers.iter().any(|&size| sram(size).interpolated),
            off_chip: OffChipTime::WholeCycles,
            most_lanes: None,
            instead: Vec::new(),
        }
    }

    /// The same with the energies, the area and the power at rest of another.
    pub(super) fn with_energies_of(mut self, other: &Self) -> Self {
        self.tensor.energies = other.tensor.energies;
        self.fp8.energies = other.fp8.energies;
        self.vector.energies = other.vector.energies;
        self.vector.network_fj_per_byte = other.vector.network_fj_per_byte;
        (self.area, self.static_uw) = (other.area, other.static_uw);
        self
    }

    /// The same as if it drew nothing at rest: what is left is what work alone takes.
    #[must_use]
    pub(crate) fn drawing_nothing_at_rest(self) -> Self {
        Self { static_uw: 0, ..self }
    }

    /// The same with another rule for the time of off-chip memory.
    #[must_use]
    pub(crate) fn counting(self, off_chip: OffChipTime) -> Self {
        Self { off_chip, ..self }
    }

    /// The same for bounds of chips that have at most so many lanes together.
    #[must_use]
    pub fn with_most_lanes(self, most: MostLanes) -> Self {
        Self { most_lanes: Some(most), ..self }
    }

    /// Lanes of all chips for which a bound speaks, where they are fewer than the design has.
    pub fn most_lanes(&self) -> Option<MostLanes> {
        self.most_lanes
    }

    /// The same for bounds of chips that have its tensor cores or those of one of the others.
    #[must_use]
    pub fn with_arrays_of(self, others: &[Self]) -> Self {
        let instead = others.iter().map(|other| [other.tensor, other.fp8]).collect();
        Self { instead, ..self }
    }

    /// The most tensor cores of any chip for which a bound speaks.
    pub fn most_tensor_cores(&self) -> u64 {
        let others = self.instead.iter().map(|[tensor, _]| tensor.count);
        others.fold(self.design.tensor_cores, u64::max)
    }

    /// The sides of the arrays and how many of them work side by side, for rooflines: where a bound speaks for
    /// several kinds of arrays, as if each multiply-accumulator of those that have most of them were an array.
    pub fn rooflines(&self) -> ((u64, u64), u64) {
        let macs =
            |spec: &CoreSpec| spec.count.saturating_mul(spec.width.saturating_mul(spec.depth));
        match self.instead.iter().map(|[tensor, _]| macs(tensor)).max() {
            None => ((self.design.width, self.design.depth), self.design.tensor_cores),
            Some(most) => ((1, 1), most.max(macs(&self.tensor))),
        }
    }

    /// How the time that an operator needs of off-chip memory is counted.
    pub fn off_chip_time(&self) -> OffChipTime {
        self.off_chip
    }

    /// The knobs.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The tensor cores that an operator uses.
    pub fn tensor(&self, cores: Use) -> CoreSpec {
        self.tensor_in(Numbers::Bf16, cores)
    }

    /// The tensor cores that a matmul in some numbers uses: in 8 bits each makes two products of
    /// half the size in a cycle, as an array twice as deep.
    pub fn tensor_in(&self, numbers: Numbers, cores: Use) -> CoreSpec {
        used([self.tensor, self.fp8], numbers, cores)
    }

    /// The same of every kind of arrays for which a bound speaks.
    pub fn each_tensor_in(&self, numbers: Numbers, cores: Use) -> impl Iterator<Item = CoreSpec> {
        let all = std::iter::once([self.tensor, self.fp8]).chain(self.instead.iter().copied());
        all.map(move |arrays| used(arrays, numbers, cores))
    }

    /// What hardware and software reach of all these.
    pub fn efficiency(&self) -> &Efficiency {
        &self.efficiency
    }

    /// The vector cores that an operator uses.
    pub fn vector(&self, cores: Use) -> VectorSpec {
        match cores {
            Use::Spread => self.vector,
            Use::Alone => VectorSpec { count: 1, ..self.vector },
        }
    }

    /// Where the silicon goes.
    pub fn area(&self) -> &AreaBreakdown {
        &self.area
    }

    /// Of all cores.
    pub fn clock(&self) -> Frequency {
        self.tensor.clock
    }

    /// Off-chip memory: how much.
    pub fn hbm(&self) -> Bytes {
        self.design.hbm
    }

    /// Off-chip memory: how fast, reads and writes together.
    pub fn hbm_bandwidth(&self) -> Bandwidth {
        self.tensor.hbm
    }

    /// The global buffer's bandwidth in bytes per second: reads, then writes.
    pub fn glb_bandwidth(&self) -> (Bandwidth, Bandwidth) {
        let rate = |per_cycle: u64| {
            Bandwidth::bytes_per_second(per_cycle.saturating_mul(self.clock().as_hertz()))
                .expect("a port moves at least one byte per cycle")
        };
        (rate(self.tensor.glb_port.read), rate(self.tensor.glb_port.write))
    }

    /// Floating-point operations per second if no array ever waits.
    pub fn peak_flops_per_second(&self) -> u128 {
        let macs = u128::from(self.design.tensor_cores)
            * u128::from(self.design.width)
            * u128::from(self.design.depth);
        2 * macs * u128::from(self.clock().as_hertz())
    }

    /// The same where matmuls compute in this precision.
    pub fn peak_in(&self, precision: Precision) -> u128 {
        let products = Numbers::of_matmuls(precision).per_cycle();
        self.peak_flops_per_second() * u128::from(products)
    }

    /// Power at rest, in microwatts: an assumption per area, and what is beside the die.
    pub fn static_power_uw(&self) -> u128 {
        self.static_uw
    }

    /// Whether what a buffer takes was interpolated because its size is not in the published table.
    pub fn buffers_interpolated(&self) -> bool {
        self.interpolated
    }

    /// The area of the whole chip.
    pub fn total_area(&self) -> Area {
        self.area.total()
    }
}

impl CoreSpec {
    /// The most bytes per second that all arrays could consume, as operations per second.
    pub fn macs_per_cycle(&self) -> u64 {
        self.count * self.width * self.depth
    }

    /// Whether both buffers hold one array tile with a stream of one step, for any matmul.
    pub fn can_hold_a_tile(&self) -> Result<(), Unbuildable> {
        let (w, d) = (self.width, self.depth);
        let (e, p) = (self.element_bytes, self.partial_sum_bytes);
        // The result stays in the array, or one of the inputs does.
        let result = e * (w + d) + p * w * d;
        let input = e * w * d + (e * w + p * d).min(p * w + e * d);
        let needed = 2 * result.min(input);
        for (buffer, size) in [("a local buffer", self.local), ("a core's global buffer", self.glb)]
        {
            if size.0 < needed {
                return Err(Unbuildable::BufferTooSmall {
                    buffer,
                    found: size.0,
                    width: w,
                    depth: d,
                    needed,
                });
            }
        }
        Ok(())
    }
}

/// Of all cores, in bf16 and in fp8, what a matmul in some numbers uses; one alone has its part of the buffer.
fn used([tensor, fp8]: [CoreSpec; 2], numbers: Numbers, cores: Use) -> CoreSpec {
    let all = match numbers {
        Numbers::Bf16 | Numbers::Bf16BesideFp8 => tensor,
        Numbers::Fp8 => CoreSpec { count: tensor.count, glb: tensor.glb, ..fp8 },
    };
    match cores {
        Use::Spread => all,
        Use::Alone => CoreSpec { count: 1, glb: Bytes(all.glb.0 / all.count), ..all },
    }
}

fn tensor_spec(design: &Design, physics: &Physics) -> CoreSpec {
    let e = physics.element_bytes;
    let feed = Port { read: e * (design.width + design.depth), write: e * design.width };
    CoreSpec {
        count: design.tensor_cores,
        width: design.width,
        depth: design.depth,
        local: design.local,
        local_port: physics.local.unwrap_or(feed),
        glb: design.glb,
        glb_port: physics.glb,
        multicast: physics.multicast.unwrap_or(u64::MAX),
        hbm: physics.hbm.of(design.hbm),
        clock: physics.clock,
        element_bytes: e,
        partial_sum_bytes: physics.partial_sum_bytes,
        fill_and_drain: physics.fill_and_drain,
        energies: energies(design.local, design.glb, physics),
    }
}

/// The same arrays computing in 8 bits.
fn fp8_spec(design: &Design, physics: &Physics) -> CoreSpec {
    let element_bytes = Numbers::Fp8.operand(Bytes(physics.element_bytes)).0;
    let depth = design.depth.saturating_mul(Numbers::Fp8.per_cycle());
    let energies = ChipEnergies { mac_fj: physics.energies.mac_fp8_fj, ..physics.energies };
    let halved = Physics { element_bytes, energies, ..physics.clone() };
    tensor_spec(&Design { depth, ..*design }, &halved)
}

fn vector_spec(design: &Design, physics: &Physics) -> VectorSpec {
    let e = physics.element_bytes;
    let feed = Port { read: 2 * e * design.vector_width, write: e * design.vector_width };
    VectorSpec {
        count: design.vector_cores,
        width: design.vector_width,
        local_port: physics.vector_local.unwrap_or(feed),
        glb_port: physics.glb,
        hbm: physics.hbm.of(design.hbm),
        clock: physics.clock,
        element_bytes: e,
        energies: energies(design.vector_local, design.glb, physics),
        network_fj_per_byte: physics.network_fj_per_byte,
    }
}

fn energies(local: Bytes, glb: Bytes, physics: &Physics) -> Energies {
    let own = &physics.energies;
    let (local, glb) = (sram(local), sram(glb));
    let (scale, glb_read, glb_write) = match own.buffers {
        BufferEnergies::Published => (1_000_000, glb.read_fj, glb.write_fj),
        BufferEnergies::OfProcess { local, glb_fj } => (local, glb_fj, glb_fj),
    };
    let scaled = |published: u64| {
        let found = u128::from(published) * u128::from(scale) / 1_000_000;
        u64::try_from(found).unwrap_or(u64::MAX)
    };
    Energies {
        local_read: scaled(local.read_fj),
        local_write: scaled(local.write_fj),
        glb_read,
        glb_write,
        hbm: physics.hbm_fj,
        mac: own.mac_fj,
        register: own.register_fj,
        lane: own.lane_fj,
        lane_register: own.lane_register_fj,
    }
}
