//! What a mapping costs, by definition.
//!
//! [`cost`] is plain and slow: the search finds a mapping by its own arithmetic, and what is
//! reported is what this file says about it.
//!
//! A tensor is named by the one loop that it lacks: A by n, B by m, the result by k.

use super::mapping::Loop;
use super::mapping::Mapping;
use super::mapping::Sizes;
use crate::hardware::CoreSpec;
use crate::hardware::sram::ACCESS_BYTES;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::units::Bytes;
use crate::units::Cycles;
use crate::units::Energy;

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

/// What a mapping costs, or `None` where it does not fit the buffers, or moves 2⁶⁴ bytes or more
/// through one of them.
pub fn cost(matmul: &Matmul, homes: Homes, spec: &CoreSpec, mapping: &Mapping) -> Option<Cost> {
    let nest = Nest::new(matmul, spec, mapping);
    if !nest.fits() {
        return None;
    }
    let hbm = nest.hbm(homes);
    let cores = nest.glb();
    let glb = Traffic { read: cores.read + hbm.written, written: cores.written + hbm.read };
    let core = nest.local_of_slowest_core();
    let bytes = |traffic: u128| u64::try_from(traffic).ok();
    let cycles = |traffic: u128, rate: u64| Some(bytes(traffic)?.div_ceil(rate));
    let hbm_cycles = (u128::from(bytes(hbm.read + hbm.written)?)
        * u128::from(spec.clock.as_hertz()))
    .div_ceil(u128::from(spec.hbm.as_bytes_per_second()));
    let needs = Needs {
        compute: bytes(nest.steps())?,
        local: cycles(core.read, spec.local_port.read)?
            .max(cycles(core.written, spec.local_port.write)?),
        glb: cycles(glb.read, spec.glb_port.read)?.max(cycles(glb.written, spec.glb_port.write)?),
        hbm: bytes(hbm_cycles)?,
    };
    let (longest, limit) = needs.longest();
    let eighths = nest.energy_eighths(hbm, glb);
    let level = |i: usize| Energy(eighths[i].div_ceil(u128::from(ACCESS_BYTES)));
    Some(Cost {
        cycles: Cycles(longest),
        limit,
        needs,
        energy_eighths: eighths.iter().sum(),
        energy: EnergyByLevel {
            compute: level(0),
            registers: level(1),
            local: level(2),
            glb: level(3),
            hbm: level(4),
        },
        hbm_read: Bytes(bytes(hbm.read)?),
        hbm_written: Bytes(bytes(hbm.written)?),
        glb_read: Bytes(bytes(glb.read)?),
        glb_written: Bytes(bytes(glb.written)?),
    })
}

/// Bytes that A, B and the result of one matrix product take in a buffer, each twice: one tile is
/// worked on while the other is moved. The result is held as partial sums.
pub fn buffer_bytes(spec: &CoreSpec, [m, k, n]: Sizes) -> u128 {
    let (m, k, n) = (u128::from(m), u128::from(k), u128::from(n));
    let (e, p) = (u128::from(spec.element_bytes), u128::from(spec.partial_sum_bytes));
    2 * (e * m * k + e * k * n + p * m * n)
}

/// Bytes through a memory.
#[derive(Clone, Copy)]
struct Traffic {
    read: u128,
    written: u128,
}

/// A mapping as nested loops over one matmul.
struct Nest<'a> {
    matmul: &'a Matmul,
    spec: &'a CoreSpec,
    mapping: &'a Mapping,
    sizes: Sizes,
    /// Each core's part.
    share: Sizes,
    batch_share: u64,
    element: u128,
    sum: u128,
}

impl<'a> Nest<'a> {
    fn new(matmul: &'a Matmul, spec: &'a CoreSpec, mapping: &'a Mapping) -> Self {
        let sizes = [matmul.m, matmul.k, matmul.n];
        Self {
            matmul,
            spec,
            mapping,
            sizes,
            share: std::array::from_fn(|i| sizes[i].div_ceil(mapping.split[i])),
            batch_share: matmul.b.div_ceil(mapping.batch_split),
            element: u128::from(spec.element_bytes),
            sum: u128::from(spec.partial_sum_bytes),
        }
    }

    /// Whether tiles lie within each other and within their buffers.
    fn fits(&self) -> bool {
        let Mapping { split, local, glb, batch_split, .. } = *self.mapping;
        (0..3).all(|i| (split[i] * local[i]).min(self.sizes[i]) <= glb[i])
            && buffer_bytes(self.spec, local) <= u128::from(self.spec.local.0)
            && u128::from(batch_split) * buffer_bytes(self.spec, glb) <= u128::from(self.spec.glb.0)
    }

    /// Elements of a tensor.
    fn whole(&self, without: Loop) -> u128 {
        elements(self.matmul.b, self.sizes, without)
    }

    /// Elements of one core's part of a tensor.
    fn of_core(&self, without: Loop) -> u128 {
        elements(self.batch_share, self.share, without)
    }

    /// Cores that divide a loop.
    fn cores(&self, along: Loop) -> u128 {
        u128::from(self.mapping.split[along.index()])
    }

    /// Off-chip memory: the tensor that lacks the innermost loop moves once, another once for each
    /// tile along the loop that it lacks. Sums of a long k come back each time but the first.
    fn hbm(&self, homes: Homes) -> Traffic {
        let moves = |without: Loop| {
            let i = without.index();
            let tiles = self.sizes[i].div_ceil(self.mapping.glb[i]);
            if self.mapping.glb_inner == without { 1 } else { u128::from(tiles) }
        };
        let crosses = |home: Home, bytes: u128| if home == Home::Hbm { bytes } else { 0 };
        let spilled = self.sum * self.whole(Loop::K) * (moves(Loop::K) - 1);
        let a = self.element * self.whole(Loop::N) * moves(Loop::N);
        let b = self.element * self.whole(Loop::M) * moves(Loop::M);
        Traffic {
            read: crosses(homes.a, a) + crosses(homes.b, b) + crosses(homes.out, spilled),
            written: crosses(homes.out, spilled + self.element * self.whole(Loop::K)),
        }
    }

    /// The cores' part of the global buffer's traffic: one read serves several cores that need the
    /// same tile, and cores that divide k add to one result.
    fn glb(&self) -> Traffic {
        let moves = |without: Loop| {
            let i = without.index();
            let tiles = self.share[i].div_ceil(self.mapping.local[i]);
            if self.mapping.local_inner == without { 1 } else { u128::from(tiles) }
        };
        let reads_for = |cores: u128| cores.div_ceil(u128::from(self.spec.multicast));
        let sums = moves(Loop::K) * self.cores(Loop::K);
        let added = self.sum * self.whole(Loop::K) * (sums - 1);
        let a = self.whole(Loop::N) * moves(Loop::N) * reads_for(self.cores(Loop::N));
        let b = self.whole(Loop::M) * moves(Loop::M) * reads_for(self.cores(Loop::M));
        Traffic {
            read: self.element * (a + b) + added,
            written: added + self.element * self.whole(Loop::K),
        }
    }

    /// How often a tensor moves between a local buffer and its array: a tensor that streams, once
    /// for each array tile along the loop that it lacks; the standing one once for each tile of the
    /// stream, or once in all where nothing but the stream goes on.
    fn array_moves(&self, without: Loop) -> u128 {
        let Mapping { way, local, local_inner, .. } = *self.mapping;
        let (w, d, i) = (way.width.index(), way.depth.index(), without.index());
        let one_array_tile = local[w] <= self.spec.width && local[d] <= self.spec.depth;
        u128::from(if without == way.width {
            self.share[i].div_ceil(self.spec.width)
        } else if without == way.depth {
            self.share[i].div_ceil(self.spec.depth)
        } else if one_array_tile && local_inner == way.stream {
            1
        } else {
            self.share[i].div_ceil(local[i])
        })
    }

    /// The array's side of the local buffer of a core with a full share of the work.
    fn local_of_slowest_core(&self) -> Traffic {
        let sums = self.array_moves(Loop::K);
        // Where cores divide k, all but the first begin with the sum of another.
        let divided = self.cores(Loop::K) > 1;
        let (begun, ended) = if divided { (sums, self.sum) } else { (sums - 1, self.element) };
        let a = self.of_core(Loop::N) * self.array_moves(Loop::N);
        let b = self.of_core(Loop::M) * self.array_moves(Loop::M);
        Traffic {
            read: self.element * (a + b) + self.sum * self.of_core(Loop::K) * begun,
            written: self.of_core(Loop::K) * (self.sum * (sums - 1) + ended),
        }
    }

    /// The same for all cores together.
    fn local_of_chip(&self) -> Traffic {
        let sums = self.array_moves(Loop::K) * self.cores(Loop::K);
        let added = self.sum * self.whole(Loop::K) * (sums - 1);
        let a = self.whole(Loop::N) * self.cores(Loop::N) * self.array_moves(Loop::N);
        let b = self.whole(Loop::M) * self.cores(Loop::M) * self.array_moves(Loop::M);
        Traffic {
            read: self.element * (a + b) + added,
            written: added + self.element * self.whole(Loop::K),
        }
    }

    /// Cycles of the arrays: one step each, and once the way in and out.
    fn steps(&self) -> u128 {
        let way = self.mapping.way;
        let along = |on: Loop, side: u64| u128::from(self.share[on.index()].div_ceil(side));
        let (width, depth) = (self.spec.width, self.spec.depth);
        let fill = if self.spec.fill_and_drain { u128::from(width + depth) } else { 0 };
        u128::from(self.batch_share)
            * along(way.width, width)
            * along(way.depth, depth)
            * along(way.stream, 1)
            + fill
    }

    /// Femtojoules times 8: multiply-accumulates, registers, local buffers, global buffer, memory.
    fn energy_eighths(&self, hbm: Traffic, glb: Traffic) -> [u128; 5] {
        let j = &self.spec.energies;
        let fj = u128::from;
        let macs = self.whole(Loop::K) * u128::from(self.matmul.k);
        let local = self.local_of_chip();
        [
            macs * fj(j.mac) * fj(ACCESS_BYTES),
            macs * fj(j.register) * fj(ACCESS_BYTES),
            local.read * fj(j.local_read) + local.written * fj(j.local_write),
            glb.read * fj(j.glb_read) + glb.written * fj(j.glb_write),
            (hbm.read + hbm.written) * fj(j.hbm),
        ]
    }
}

/// Elements of the tensor that lacks a loop, in `b` products.
fn elements(b: u64, mut sizes: Sizes, without: Loop) -> u128 {
    sizes[without.index()] = 1;
    sizes.iter().fold(u128::from(b), |product, &size| product * u128::from(size))
}

impl Cost {
    /// Of all levels together.
    pub fn total_energy(&self) -> Energy {
        Energy(self.energy_eighths.div_ceil(u128::from(ACCESS_BYTES)))
    }
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
    /// Each level with its name.
    pub fn parts(&self) -> [(&'static str, Energy); 5] {
        [
            ("compute", self.compute),
            ("registers", self.registers),
            ("local", self.local),
            ("glb", self.glb),
            ("hbm", self.hbm),
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
