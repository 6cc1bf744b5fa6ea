//! What a mapping is, and what it costs by definition.
//!
//! [`cost`] is short and slow: the search finds a mapping by its own arithmetic, and what is
//! reported is what this file says about it.

use crate::hardware::CoreSpec;
use crate::hardware::sram::ACCESS_BYTES;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::units::Bytes;
use crate::units::Cycles;
use crate::units::Energy;

/// One of the three loops inside a product of two matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "named as in the formula out[m,n] += A[m,k] · B[k,n]")]
pub enum Loop {
    M,
    K,
    N,
}

/// A size for each of m, k and n, in this order.
pub type Sizes = [u64; 3];

/// Which loops lie on the array; the third streams through it, one step per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Along the array's width.
    pub width: Loop,
    /// Along its depth.
    pub depth: Loop,
    /// In time.
    pub stream: Loop,
}

/// Where and when each multiply-accumulate of a matmul happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mapping {
    /// Cores that divide the batch.
    pub batch_split: u64,
    /// Cores that divide m, k and n.
    pub split: Sizes,
    /// What lies on the array.
    pub way: Way,
    /// What a core holds in its local buffer.
    pub local: Sizes,
    /// The innermost loop over local tiles.
    pub local_inner: Loop,
    /// What the chip holds in the global buffer, of each of the matrices in work.
    pub glb: Sizes,
    /// The innermost loop over tiles of the global buffer.
    pub glb_inner: Loop,
}

/// What makes a matmul take as long as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The arrays are busy all the time.
    Compute,
    /// A core's local buffer.
    Local,
    /// The global buffer.
    Glb,
    /// Off-chip memory.
    Hbm,
    /// The lanes of vector cores.
    Lanes,
    /// The network between devices.
    Network,
}

/// Energy by where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnergyByLevel {
    /// Multiply-accumulates, or vector operations.
    pub compute: Energy,
    /// Registers.
    pub registers: Energy,
    /// Local buffers.
    pub local: Energy,
    /// The global buffer.
    pub glb: Energy,
    /// Off-chip memory.
    pub hbm: Energy,
    /// The network between devices.
    pub network: Energy,
}

/// What a mapping costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// From start to end.
    pub cycles: Cycles,
    /// Where those come from: the first of compute, local, global buffer, memory that needs all.
    pub limit: Limit,
    /// Cycles that each would need alone.
    pub needs: Needs,
    /// Femtojoules times 8, all levels: the exact sum that mappings are compared by.
    pub energy_eighths: u128,
    /// The same by level, each rounded up.
    pub energy: EnergyByLevel,
    /// Off-chip memory, read.
    pub hbm_read: Bytes,
    /// Off-chip memory, written.
    pub hbm_written: Bytes,
    /// Global buffer, read.
    pub glb_read: Bytes,
    /// Global buffer, written.
    pub glb_written: Bytes,
}

/// Cycles that each resource would need if the others were free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type says what each is")]
pub struct Needs {
    pub compute: u64,
    pub local: u64,
    pub glb: u64,
    pub hbm: u64,
}

/// Femtojoules of one 16-bit multiply-accumulate; published.
pub const MAC_FJ: u64 = 938;
/// Femtojoules of the register read and the register write of one multiply-accumulate; published.
pub const REGISTER_FJ: u64 = 222 + 296;

impl Loop {
    /// All three, in the order of [`Sizes`].
    pub const ALL: [Self; 3] = [Self::M, Self::K, Self::N];

    /// Its place in [`Sizes`].
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Way {
    /// All six: stationary weights, inputs or outputs, and their transposes.
    pub const ALL: [Self; 6] = [
        Self { width: Loop::M, depth: Loop::N, stream: Loop::K },
        Self { width: Loop::N, depth: Loop::M, stream: Loop::K },
        Self { width: Loop::K, depth: Loop::N, stream: Loop::M },
        Self { width: Loop::N, depth: Loop::K, stream: Loop::M },
        Self { width: Loop::K, depth: Loop::M, stream: Loop::N },
        Self { width: Loop::M, depth: Loop::K, stream: Loop::N },
    ];
}

/// Bytes that A, B and the result of one matrix product take in a buffer, each twice: one tile is
/// worked on while the other is moved. The result is held as partial sums.
pub fn buffer_bytes(spec: &CoreSpec, [m, k, n]: Sizes) -> u128 {
    let (m, k, n) = (u128::from(m), u128::from(k), u128::from(n));
    let (e, p) = (u128::from(spec.element_bytes), u128::from(spec.partial_sum_bytes));
    2 * (e * m * k + e * k * n + p * m * n)
}

/// What a mapping costs, or `None` where it does not fit the buffers, or moves 2⁶⁴ bytes or more
/// through one of them.
pub fn cost(matmul: &Matmul, homes: Homes, spec: &CoreSpec, mapping: &Mapping) -> Option<Cost> {
    let sizes = [matmul.m, matmul.k, matmul.n];
    let Mapping { split, local, glb, way, .. } = *mapping;
    let share: Sizes = std::array::from_fn(|i| sizes[i].div_ceil(split[i]));
    let batch_share = matmul.b.div_ceil(mapping.batch_split);
    let nested = (0..3).all(|i| (split[i] * local[i]).min(sizes[i]) <= glb[i]);
    let fits = buffer_bytes(spec, local) <= u128::from(spec.local.0)
        && u128::from(mapping.batch_split) * buffer_bytes(spec, glb) <= u128::from(spec.glb.0);
    if !nested || !fits {
        return None;
    }

    let e = u128::from(spec.element_bytes);
    let p = u128::from(spec.partial_sum_bytes);
    let [split_m, split_k, split_n] = split.map(u128::from);
    // A tensor is named by the one loop that it does not have: A by n, B by m, the result by k.
    let elements = |b: u64, [m, k, n]: Sizes, without: Loop| {
        let (m, k, n) = match without {
            Loop::M => (1, k, n),
            Loop::K => (m, 1, n),
            Loop::N => (m, k, 1),
        };
        u128::from(b) * u128::from(m) * u128::from(k) * u128::from(n)
    };
    let whole = |without| elements(matmul.b, sizes, without);
    let of_core = |without| elements(batch_share, share, without);

    // Off-chip memory: the tensor that lacks the innermost loop moves once.
    let glb_moves = |without: Loop| {
        let i = without.index();
        if mapping.glb_inner == without { 1 } else { u128::from(sizes[i].div_ceil(glb[i])) }
    };
    let crosses = |home: Home, bytes: u128| if home == Home::Hbm { bytes } else { 0 };
    let spilled = p * whole(Loop::K) * (glb_moves(Loop::K) - 1);
    let hbm_read = crosses(homes.a, e * whole(Loop::N) * glb_moves(Loop::N))
        + crosses(homes.b, e * whole(Loop::M) * glb_moves(Loop::M))
        + crosses(homes.out, spilled);
    let hbm_written = crosses(homes.out, spilled + e * whole(Loop::K));

    // Global buffer: one read serves several cores; cores that divide k add to one result.
    let local_moves = |without: Loop| {
        let i = without.index();
        if mapping.local_inner == without { 1 } else { u128::from(share[i].div_ceil(local[i])) }
    };
    let reads_for = |cores: u128| cores.div_ceil(u128::from(spec.multicast));
    let added = p * whole(Loop::K) * (local_moves(Loop::K) * split_k - 1);
    let glb_read = e * whole(Loop::N) * local_moves(Loop::N) * reads_for(split_n)
        + e * whole(Loop::M) * local_moves(Loop::M) * reads_for(split_m)
        + added
        + hbm_written;
    let glb_written = added + e * whole(Loop::K) + hbm_read;

    // Local buffer, the array's side: a stationary tile stays in the array as long as only the
    // streamed loop goes on.
    let side = |on: Loop| if on == way.width { spec.width } else { spec.depth };
    let (w, d) = (way.width.index(), way.depth.index());
    let one_array_tile = local[w] <= spec.width && local[d] <= spec.depth;
    let stays = one_array_tile && mapping.local_inner == way.stream;
    let stream_tiles = share[way.stream.index()].div_ceil(local[way.stream.index()]);
    let array_moves = |without: Loop| {
        u128::from(match without == way.stream {
            true if stays => 1,
            true => stream_tiles,
            false => share[without.index()].div_ceil(side(without)),
        })
    };
    let sums = array_moves(Loop::K);
    // Where cores divide k, all but the first begin with the sum of another.
    let (begun, ended) = if split_k > 1 { (sums, p) } else { (sums - 1, e) };
    let core_read = e * of_core(Loop::N) * array_moves(Loop::N)
        + e * of_core(Loop::M) * array_moves(Loop::M)
        + p * of_core(Loop::K) * begun;
    let core_written = of_core(Loop::K) * (p * (sums - 1) + ended);
    let chip_added = p * whole(Loop::K) * (sums * split_k - 1);
    let chip_read = e * whole(Loop::N) * split_n * array_moves(Loop::N)
        + e * whole(Loop::M) * split_m * array_moves(Loop::M)
        + chip_added;
    let chip_written = chip_added + e * whole(Loop::K);

    let steps = u128::from(batch_share)
        * u128::from(share[w].div_ceil(spec.width))
        * u128::from(share[d].div_ceil(spec.depth))
        * u128::from(share[way.stream.index()]);
    let fill = if spec.fill_and_drain { u128::from(spec.width + spec.depth) } else { 0 };
    let bytes = |traffic: u128| u64::try_from(traffic).ok();
    let port = |traffic: u128, rate: u64| Some(bytes(traffic)?.div_ceil(rate));
    let hbm_cycles = (u128::from(bytes(hbm_read + hbm_written)?)
        * u128::from(spec.clock.as_hertz()))
    .div_ceil(u128::from(spec.hbm.as_bytes_per_second()));
    let needs = Needs {
        compute: bytes(steps + fill)?,
        local: port(core_read, spec.local_port.read)?
            .max(port(core_written, spec.local_port.write)?),
        glb: port(glb_read, spec.glb_port.read)?.max(port(glb_written, spec.glb_port.write)?),
        hbm: bytes(hbm_cycles)?,
    };
    let (cycles, limit) = needs.longest();

    let j = &spec.energies;
    let fj = u128::from;
    let macs = whole(Loop::K) * u128::from(matmul.k);
    let eighths = [
        macs * fj(MAC_FJ) * fj(ACCESS_BYTES),
        macs * fj(REGISTER_FJ) * fj(ACCESS_BYTES),
        chip_read * fj(j.local_read) + chip_written * fj(j.local_write),
        glb_read * fj(j.glb_read) + glb_written * fj(j.glb_write),
        (hbm_read + hbm_written) * fj(j.hbm),
    ];
    let level = |i: usize| Energy(eighths[i].div_ceil(u128::from(ACCESS_BYTES)));
    Some(Cost {
        cycles: Cycles(cycles),
        limit,
        needs,
        energy_eighths: eighths.iter().sum(),
        energy: EnergyByLevel {
            compute: level(0),
            registers: level(1),
            local: level(2),
            glb: level(3),
            hbm: level(4),
            network: Energy::ZERO,
        },
        hbm_read: Bytes(bytes(hbm_read)?),
        hbm_written: Bytes(bytes(hbm_written)?),
        glb_read: Bytes(bytes(glb_read)?),
        glb_written: Bytes(bytes(glb_written)?),
    })
}

impl Needs {
    /// The most that any needs, and the first that needs it.
    pub fn longest(&self) -> (u64, Limit) {
        let needs = [
            (self.compute, Limit::Compute),
            (self.local, Limit::Local),
            (self.glb, Limit::Glb),
            (self.hbm, Limit::Hbm),
        ];
        let most = needs.iter().map(|need| need.0).fold(0, u64::max);
        let first = needs.iter().find(|need| need.0 == most).expect("one of them is the most");
        *first
    }
}

impl EnergyByLevel {
    /// All levels together.
    pub fn total(&self) -> Energy {
        self.parts().iter().map(|part| part.1).sum()
    }

    /// Each level with its name.
    pub fn parts(&self) -> [(&'static str, Energy); 6] {
        [
            ("compute", self.compute),
            ("registers", self.registers),
            ("local", self.local),
            ("glb", self.glb),
            ("hbm", self.hbm),
            ("network", self.network),
        ]
    }
}

impl Limit {
    /// The name it has in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Local => "local",
            Self::Glb => "glb",
            Self::Hbm => "hbm",
            Self::Lanes => "lanes",
            Self::Network => "network",
        }
    }
}
