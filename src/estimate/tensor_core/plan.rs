//! The cores' half of a mapping: how cores divide the work, what lies on their arrays, and what
//! local tiles then cost.

use super::cost::buffer_bytes;
use super::glb_tiles::GlbTile;
use super::mapping::Loop;
use super::mapping::Mapping;
use super::mapping::Sizes;
use super::mapping::Way;
use crate::hardware::CoreSpec;

/// One way to divide one loop among cores.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Cores along the loop.
    pub cores: u64,
    /// What each gets.
    pub size: u64,
    /// Array tiles in it, if it lies along the width.
    pub along_width: u64,
    /// Array tiles in it, if it lies along the depth.
    pub along_depth: u64,
}

/// Bytes of the tensors of a matmul, or of one core's part of them.
#[derive(Clone, Copy, Debug)]
pub struct Tensors {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) result: u64,
    pub(super) sum: u64,
}

impl Tensors {
    /// The tensors of `b` products of `sizes`.
    pub fn of(spec: &CoreSpec, b: u64, [m, k, n]: Sizes) -> Self {
        let (e, p) = (spec.element_bytes, spec.partial_sum_bytes);
        let times = u64::saturating_mul;
        let rows = times(b, m);
        let results = times(rows, n);
        Self {
            a: times(times(rows, k), e),
            b: times(times(times(b, k), n), e),
            result: times(results, e),
            sum: times(results, p),
        }
    }
}

/// A split and a way, the first choices of a mapping, with what they settle.
///
/// Everything that a local tile adds is linear in how often tensors move, so the factors are
/// multiplied out once. A tensor is named by the loop that it lacks: B by m, the result by k, A
/// by n.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Cores that divide the batch.
    pub batch_cores: u64,
    /// How m, k and n are divided.
    pub shares: [Share; 3],
    /// What lies on the array.
    pub way: Way,
    /// Of one core's local buffer if the standing tensor moves into the array once, and for each
    /// further time.
    local_read: Linear,
    local_written: Linear,
    /// Femtojoules times 8 of all local buffers, likewise.
    local_energy: (u128, u128),
    /// Bytes of B, the result and A that the global buffer reads for the cores each time that they
    /// move.
    glb_reads: Sizes,
    /// Bytes of the result that the global buffer reads and writes in any case.
    glb_added: u64,
    glb_result: u64,
}

#[derive(Clone, Copy, Debug)]
struct Linear {
    first: u64,
    further: u64,
}

/// What the cores' half of a mapping needs: one core's local buffer, the cores' part of the global
/// buffer's traffic, and the energy of both.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// Read by an array from its local buffer.
    pub local_read: u64,
    /// Written by an array to its local buffer.
    pub local_written: u64,
    /// Read by all cores from the global buffer.
    pub glb_read: u64,
    /// Written by all cores to the global buffer.
    pub glb_written: u64,
    /// Femtojoules times 8.
    pub energy: u128,
}

/// Bytes that each port moves within some cycles; what needs more takes longer.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The cycles.
    pub cycles: u64,
    /// Bytes of off-chip memory.
    pub hbm: u64,
    local_read: u64,
    local_written: u64,
    glb_read: u64,
    glb_written: u64,
}

/// How long a local tile can be along each loop if it is as short as can be along the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Longest {
    along_width: u64,
    along_depth: u64,
    streamed: u64,
}

impl Longest {
    /// With at least `x` along the width and `y` along the depth.
    pub fn of(spec: &CoreSpec, way: Way, x: u64, y: u64) -> Self {
        let capacity = spec.local.0 / 2;
        let longest = |per_step: u64, rest: u64| (capacity.saturating_sub(rest) / per_step).max(1);
        let xy = bytes_without(spec, way.stream.index());
        let xz = bytes_without(spec, way.depth.index());
        let yz = bytes_without(spec, way.width.index());
        Self {
            along_width: longest(y * xy + xz, y * yz),
            along_depth: longest(x * xy + yz, x * xz),
            streamed: longest(x * xz + y * yz, x * y * xy),
        }
    }
}

/// What a visitor of halves wants next.
pub enum Next {
    /// Nothing of a smaller stream.
    Larger,
    /// A smaller stream: it lies within more tiles of the global buffer.
    Smaller,
    /// Nothing at all.
    Stop,
}

/// The ways to divide a loop of `size`: powers of two where the number of cores is one, up to the
/// first that leaves one step to each, else every number; never one that leaves as much to each as
/// a smaller one.
pub fn shares(size: u64, spec: &CoreSpec) -> Vec<Share> {
    let mut found: Vec<Share> = Vec::new();
    let mut cores = 1;
    while cores <= spec.count {
        let each = size.div_ceil(cores);
        if found.last().is_none_or(|last| each < last.size) {
            found.push(Share {
                cores,
                size: each,
                along_width: each.div_ceil(spec.width),
                along_depth: each.div_ceil(spec.depth),
            });
        }
        if each == 1 {
            break;
        }
        cores = if spec.count.is_power_of_two() { cores * 2 } else { cores + 1 };
    }
    found
}

impl Plan {
    /// Multiplies out what a split and a way settle.
    pub fn new(
        spec: &CoreSpec,
        whole: &Tensors,
        batch: Share,
        shares: [Share; 3],
        way: Way,
    ) -> Self {
        let [m, k, n] = shares;
        let &Tensors { a: whole_a, b: whole_b, result, sum } = whole;
        let core = Tensors::of(spec, batch.size, [m.size, k.size, n.size]);
        let Tensors { a: core_a, b: core_b, result: core_result, sum: core_sum } = core;

        // How often each tensor moves into or out of the array, the standing one once.
        let mut moves = [1; 3];
        moves[way.width.index()] = shares[way.width.index()].along_width;
        moves[way.depth.index()] = shares[way.depth.index()].along_depth;
        let [b_moves, sum_moves, a_moves] = moves;
        // Where cores divide k, all but the first begin with the sum of another.
        let begun = if k.cores > 1 { sum_moves } else { sum_moves - 1 };
        let ended = if k.cores > 1 { core_sum } else { core_result };
        let times = u64::saturating_mul;
        let core_read = times(core_a, a_moves)
            .saturating_add(times(core_b, b_moves))
            .saturating_add(times(core_sum, begun));
        let core_written = times(core_sum, sum_moves - 1).saturating_add(ended);
        let chip_added = times(sum, times(sum_moves, k.cores) - 1);
        let chip_read = times(whole_a, times(n.cores, a_moves))
            .saturating_add(times(whole_b, times(m.cores, b_moves)))
            .saturating_add(chip_added);
        let chip_written = chip_added.saturating_add(result);
        let j = &spec.energies;
        let of = |bytes: u64, fj: u64| u128::from(bytes) * u128::from(fj);
        let energy = of(chip_read, j.local_read) + of(chip_written, j.local_write);
        // What the standing tensor adds each further time.
        let (read, written, further) = match way.stream {
            Loop::M => (core_b, 0, of(times(whole_b, m.cores), j.local_read)),
            Loop::N => (core_a, 0, of(times(whole_a, n.cores), j.local_read)),
            Loop::K => (core_sum, core_sum, of(times(sum, k.cores), j.local_read + j.local_write)),
        };
        let reads_for = |cores: u64| {
            if cores <= spec.multicast { 1 } else { cores.div_ceil(spec.multicast) }
        };
        Self {
            batch_cores: batch.cores,
            shares,
            way,
            local_read: Linear { first: core_read, further: read },
            local_written: Linear { first: core_written, further: written },
            local_energy: (energy, further),
            glb_reads: [
                times(whole_b, reads_for(m.cores)),
                times(sum, k.cores),
                times(whole_a, reads_for(n.cores)),
            ],
            glb_added: times(sum, k.cores - 1),
            glb_result: result,
        }
    }

    /// What the cores need if the standing tensor moves into the array `standing` times, and each
    /// tensor to the cores as often as `moves` says.
    fn half(&self, spec: &CoreSpec, standing: u64, moves: Sizes) -> Half {
        let times = u64::saturating_mul;
        let along = |line: Linear| line.first.saturating_add(times(line.further, standing - 1));
        let added = self.glb_added.saturating_add(times(self.glb_reads[1], moves[1] - 1));
        let glb_read = times(self.glb_reads[0], moves[0])
            .saturating_add(times(self.glb_reads[2], moves[2]))
            .saturating_add(added);
        let glb_written = added.saturating_add(self.glb_result);
        let energy = self.local_energy.0
            + self.local_energy.1 * u128::from(standing - 1)
            + u128::from(glb_read) * u128::from(spec.energies.glb_read)
            + u128::from(glb_written) * u128::from(spec.energies.glb_write);
        Half {
            local_read: along(self.local_read),
            local_written: along(self.local_written),
            glb_read,
            glb_written,
            energy,
        }
    }

    /// A half that no mapping of the plan beats in any of its numbers.
    ///
    /// Along each loop a local tile is at most as long as if it were as short as can be along the
    /// other two, and one tensor may move only once: each choice of it bounds what it leads to.
    pub fn bound(&self, spec: &CoreSpec, whole_sides: &Longest) -> Half {
        let Way { width, depth, stream } = self.way;
        let (w, d, s) = (width.index(), depth.index(), stream.index());
        let (x, y) = (self.shares[w].size, self.shares[d].size);
        let longest = if x >= spec.width && y >= spec.depth {
            *whole_sides
        } else {
            Longest::of(spec, self.way, x.min(spec.width), y.min(spec.depth))
        };
        let tiles =
            |size: u64, longest: u64| if size <= longest { 1 } else { size.div_ceil(longest) };
        let mut moves = [1; 3];
        moves[w] = tiles(x, longest.along_width);
        moves[d] = tiles(y, longest.along_depth);
        moves[s] = tiles(self.shares[s].size, longest.streamed);
        Loop::ALL
            .into_iter()
            .map(|inner| {
                let mut moves = moves;
                moves[inner.index()] = 1;
                self.half(spec, 1, moves)
            })
            .reduce(|one, other| Half {
                local_read: one.local_read,
                local_written: one.local_written,
                glb_read: one.glb_read.min(other.glb_read),
                glb_written: one.glb_written.min(other.glb_written),
                energy: one.energy.min(other.energy),
            })
            .expect("there are three loops")
    }

    /// Visits the cores' halves: each pair of sizes on the array, and for each the streamed sizes
    /// from the largest that fits down, as long as `visit` wants them smaller.
    pub fn each_half(&self, spec: &CoreSpec, visit: &mut impl FnMut(Sizes, Loop, &Half) -> Next) {
        let Way { width, depth, stream } = self.way;
        let (w, d, s) = (width.index(), depth.index(), stream.index());
        let capacity = spec.local.0 / 2;
        let streamed = self.shares[s].size;
        let mut moves = [1; 3];
        for x in array_sizes(spec.width, self.shares[w].size) {
            moves[w] = self.shares[w].size.div_ceil(x);
            for y in array_sizes(spec.depth, self.shares[d].size) {
                moves[d] = self.shares[d].size.div_ceil(y);
                let standing = x.saturating_mul(y).saturating_mul(bytes_without(spec, s));
                let per_step = x
                    .saturating_mul(bytes_without(spec, d))
                    .saturating_add(y.saturating_mul(bytes_without(spec, w)));
                let Some(room) = capacity.checked_sub(standing) else { break };
                let longest = room / per_step;
                if longest == 0 {
                    break;
                }
                let one_array_tile = x <= spec.width && y <= spec.depth;
                for inner in Loop::ALL {
                    let mut z = largest_stream(streamed, longest);
                    loop {
                        moves[s] = stream_tiles(streamed, z);
                        let stays = one_array_tile && inner == stream;
                        let standing_moves = if stays { 1 } else { moves[s] };
                        let mut moves = moves;
                        moves[inner.index()] = 1;
                        let half = self.half(spec, standing_moves, moves);
                        let mut local = [0; 3];
                        (local[w], local[d], local[s]) = (x, y, z);
                        match visit(local, inner, &half) {
                            Next::Stop => return,
                            Next::Smaller if z > 1 => z = largest_stream(streamed, z - 1),
                            Next::Smaller | Next::Larger => break,
                        }
                    }
                }
            }
        }
    }

    /// How many local tiles fit for one split and way.
    pub fn count_local_tiles(spec: &CoreSpec, shares: [Share; 3], way: Way) -> u128 {
        let share = |on: Loop| shares[on.index()].size;
        let mut count = 0;
        for x in array_sizes(spec.width, share(way.width)) {
            for y in array_sizes(spec.depth, share(way.depth)) {
                for z in array_sizes(1, share(way.stream)) {
                    let mut local = [0; 3];
                    local[way.width.index()] = x;
                    local[way.depth.index()] = y;
                    local[way.stream.index()] = z;
                    count += u128::from(buffer_bytes(spec, local) <= u128::from(spec.local.0));
                }
            }
        }
        count
    }

    /// What the cores hold together, which a tile of the global buffer must hold too.
    pub fn held(&self, local: Sizes, sizes: Sizes) -> Sizes {
        std::array::from_fn(|i| (self.shares[i].cores * local[i]).min(sizes[i]))
    }

    /// The whole mapping, with a tile of the global buffer.
    pub fn mapping(&self, local: Sizes, local_inner: Loop, tile: &GlbTile) -> Mapping {
        Mapping {
            batch_split: self.batch_cores,
            split: self.shares.map(|share| share.cores),
            way: self.way,
            local,
            local_inner,
            glb: tile.sizes,
            glb_inner: tile.inner,
        }
    }
}

impl Half {
    /// Whether the cores alone stay within the budget.
    pub fn within(&self, budget: &Budget) -> bool {
        self.local_read <= budget.local_read
            && self.local_written <= budget.local_written
            && self.glb_read <= budget.glb_read
            && self.glb_written <= budget.glb_written
    }

    /// Whether they do together with a tile of the global buffer, given that they do alone.
    pub fn meets(&self, tile: &GlbTile, budget: &Budget) -> bool {
        tile.bytes() <= budget.hbm
            && self.glb_read.saturating_add(tile.written) <= budget.glb_read
            && self.glb_written.saturating_add(tile.read) <= budget.glb_written
    }

    /// The cycles that buffers need at the least, whatever the tile of the global buffer.
    pub fn least_cycles(&self, spec: &CoreSpec) -> u64 {
        let needs = [
            self.local_read.div_ceil(spec.local_port.read),
            self.local_written.div_ceil(spec.local_port.write),
            self.glb_read.div_ceil(spec.glb_port.read),
            self.glb_written.div_ceil(spec.glb_port.write),
        ];
        needs.into_iter().fold(0, u64::max)
    }

    /// The cycles that memories need together with a tile of the global buffer.
    pub fn cycles(&self, spec: &CoreSpec, tile: &GlbTile) -> u64 {
        let needs = [
            self.local_read.div_ceil(spec.local_port.read),
            self.local_written.div_ceil(spec.local_port.write),
            self.glb_read.saturating_add(tile.written).div_ceil(spec.glb_port.read),
            self.glb_written.saturating_add(tile.read).div_ceil(spec.glb_port.write),
            hbm_cycles(spec, tile.bytes()),
        ];
        needs.into_iter().fold(0, u64::max)
    }
}

/// Cycles that off-chip memory needs for some bytes.
pub fn hbm_cycles(spec: &CoreSpec, bytes: u64) -> u64 {
    let cycles = (u128::from(bytes) * u128::from(spec.clock.as_hertz()))
        .div_ceil(u128::from(spec.hbm.as_bytes_per_second()));
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

impl Budget {
    /// Bytes read from the global buffer.
    pub fn glb_read(&self) -> u64 {
        self.glb_read
    }

    /// What each port moves in some cycles.
    pub fn of(cycles: u64, spec: &CoreSpec) -> Self {
        // Traffic that saturated is over any budget.
        let bytes = |rate: u64| cycles.saturating_mul(rate).min(u64::MAX - 1);
        let hbm = u128::from(cycles) * u128::from(spec.hbm.as_bytes_per_second())
            / u128::from(spec.clock.as_hertz());
        Self {
            cycles,
            hbm: u64::try_from(hbm).unwrap_or(u64::MAX).min(u64::MAX - 1),
            local_read: bytes(spec.local_port.read),
            local_written: bytes(spec.local_port.write),
            glb_read: bytes(spec.glb_port.read),
            glb_written: bytes(spec.glb_port.write),
        }
    }
}

/// Bytes of an element, in a buffer, of the tensor that lacks a loop.
fn bytes_without(spec: &CoreSpec, without: usize) -> u64 {
    if without == Loop::K.index() { spec.partial_sum_bytes } else { spec.element_bytes }
}

/// Sizes of a local tile along a side of the array: side, 2·side, 4·side … and the whole share.
fn array_sizes(side: u64, share: u64) -> impl Iterator<Item = u64> {
    let doubled = std::iter::successors(Some(side), |size| size.checked_mul(2));
    doubled.take_while(move |&size| size < share).chain([share])
}

/// The largest size of a streamed loop up to `longest`: the whole share or a power of two.
fn largest_stream(share: u64, longest: u64) -> u64 {
    if longest >= share { share } else { 1 << longest.ilog2() }
}

/// How many tiles of a size from [`largest_stream`] there are.
fn stream_tiles(share: u64, size: u64) -> u64 {
    if size == share { 1 } else { ((share - 1) >> size.ilog2()) + 1 }
}
