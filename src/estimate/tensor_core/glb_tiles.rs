//! The tiles of the global buffer that can be part of a best mapping.
//!
//! How often a tensor crosses off-chip memory depends on the matmul and on the tile of the global
//! buffer alone, not on how cores divide the work. All such traffic falls, and more local tiles
//! fit inside, as a tile grows: so for each (m, n) only the largest k is kept.

use super::cost::buffer_bytes;
use super::mapping::Loop;
use super::mapping::Sizes;
use crate::hardware::CoreSpec;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;

/// A tile of the global buffer, with the traffic between it and off-chip memory.
#[derive(Clone, Copy, Debug)]
pub struct GlbTile {
    /// How much of m, k and n it holds.
    pub sizes: Sizes,
    /// The innermost loop over such tiles.
    pub inner: Loop,
    /// Bytes read from off-chip memory.
    pub read: u64,
    /// Bytes written to off-chip memory.
    pub written: u64,
    /// Femtojoules times 8 of that traffic, at both ends.
    pub energy: u128,
}

/// All tiles that fit when `batch_split` matrices are held at once.
#[derive(Clone, Debug, Default)]
pub struct GlbTiles {
    /// By m, then n, each ascending.
    tiles: Vec<GlbTile>,
    least_bytes: usize,
    least_energy: usize,
}

impl GlbTile {
    /// Bytes that cross off-chip memory.
    pub fn bytes(&self) -> u64 {
        self.read.saturating_add(self.written)
    }

    /// Whether tiles of `sizes` lie inside.
    pub fn holds(&self, sizes: Sizes) -> bool {
        sizes[0] <= self.sizes[0] && sizes[1] <= self.sizes[1] && sizes[2] <= self.sizes[2]
    }
}

/// One size that a tile may have along a loop, and how many such tiles there are.
#[derive(Clone, Copy)]
struct Step {
    size: u64,
    count: u64,
}

/// 1, 2, 3, 4, 6, 8 … below `size`, then `size` itself.
pub fn tile_sizes(size: u64) -> impl Iterator<Item = u64> {
    let doubled = (0..63).flat_map(|i| [1_u64 << i, (1_u64 << i) + (1_u64 << i >> 1)]);
    // Half of one is none: 1 would come twice.
    doubled
        .enumerate()
        .filter(|(i, _)| *i != 1)
        .map(|(_, s)| s)
        .take_while(move |s| *s < size)
        .chain([size])
}

/// Bytes of a tensor that crosses off-chip memory, each time that it does.
struct Crossing {
    a: u64,
    b: u64,
    result: u64,
    sum: u64,
}

impl GlbTiles {
    /// Fills the list anew.
    pub fn fill(&mut self, matmul: &Matmul, homes: Homes, spec: &CoreSpec, batch_split: u64) {
        self.tiles.clear();
        let steps = |size: u64| -> Vec<Step> {
            tile_sizes(size).map(|s| Step { size: s, count: size.div_ceil(s) }).collect()
        };
        let (ms, ks, ns) = (steps(matmul.m), steps(matmul.k), steps(matmul.n));
        let crossing = crossing(matmul, homes, spec);
        let capacity = spec.glb.0 / (2 * batch_split);
        let (e, p) = (spec.element_bytes, spec.partial_sum_bytes);
        for (at_m, m) in ms.iter().enumerate() {
            // As n grows, the largest k that fits falls: one pass over each list is enough.
            let mut largest = ks.len();
            let fits = |m: &Step, k: &Step, n: &Step| {
                let inputs = k.size.saturating_mul(m.size.saturating_add(n.size));
                let result = m.size.saturating_mul(n.size).saturating_mul(p);
                inputs.saturating_mul(e).saturating_add(result) <= capacity
            };
            for (at, n) in ns.iter().enumerate() {
                while largest > 0 && !fits(m, &ks[largest - 1], n) {
                    largest -= 1;
                }
                if largest == 0 {
                    break;
                }
                let k = &ks[largest - 1];
                // The next n or m with the same others holds this tile and moves no more.
                if ns.get(at + 1).is_some_and(|next| fits(m, k, next))
                    || ms.get(at_m + 1).is_some_and(|next| fits(next, k, n))
                {
                    continue;
                }
                self.add([m, k, n], &crossing, spec);
            }
        }
    }

    /// How many tiles fit, maximal or not.
    pub fn count(sizes: Sizes, spec: &CoreSpec, batch_split: u64) -> u128 {
        let [ms, ks, ns] = sizes.map(|size| tile_sizes(size).collect::<Vec<u64>>());
        let mut count = 0;
        for &m in &ms {
            for &k in &ks {
                let fits = |n: &&u64| {
                    let bytes = buffer_bytes(spec, [m, k, **n]) * u128::from(batch_split);
                    bytes <= u128::from(spec.glb.0)
                };
                count += ns.iter().take_while(fits).count() as u128;
            }
        }
        count
    }

    /// The tile with the least traffic; the first of several.
    pub fn least_bytes(&self) -> Option<&GlbTile> {
        self.tiles.get(self.least_bytes)
    }

    /// The tile with the least energy; the first of several.
    pub fn least_energy(&self) -> Option<&GlbTile> {
        self.tiles.get(self.least_energy)
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, GlbTile> {
        self.tiles.iter()
    }

    fn add(&mut self, [m, k, n]: [&Step; 3], crossing: &Crossing, spec: &CoreSpec) {
        let counts = [m.count, k.count, n.count];
        for inner in Loop::ALL {
            // A loop of one iteration is innermost in vain: another choice does at least as well.
            let others_do = counts != [1, 1, 1] || inner != Loop::K;
            if counts[inner.index()] == 1 && others_do {
                continue;
            }
            let moves = |i: usize| if inner.index() == i { 1 } else { counts[i] };
            let spilled = crossing.sum.saturating_mul(moves(1) - 1);
            let read = crossing
                .a
                .saturating_mul(moves(2))
                .saturating_add(crossing.b.saturating_mul(moves(0)))
                .saturating_add(spilled);
            let written = spilled.saturating_add(crossing.result);
            // What moves 2⁶⁴ bytes is not in the space.
            if read.saturating_add(written) == u64::MAX {
                continue;
            }
            let j = &spec.energies;
            let energy = u128::from(read) * u128::from(j.hbm + j.glb_write)
                + u128::from(written) * u128::from(j.hbm + j.glb_read);
            let tile = GlbTile { sizes: [m.size, k.size, n.size], inner, read, written, energy };
            let at = self.tiles.len();
            if self.least_bytes().is_none_or(|least| tile.bytes() < least.bytes()) {
                self.least_bytes = at;
            }
            if self.least_energy().is_none_or(|least| tile.energy < least.energy) {
                self.least_energy = at;
            }
            self.tiles.push(tile);
        }
    }
}

fn crossing(matmul: &Matmul, homes: Homes, spec: &CoreSpec) -> Crossing {
    let bytes = |home: Home, sizes: [u64; 3], each: u64| {
        if home == Home::Chip {
            return 0;
        }
        sizes.iter().fold(each, |product, &size| product.saturating_mul(size))
    };
    let (e, p) = (spec.element_bytes, spec.partial_sum_bytes);
    Crossing {
        a: bytes(homes.a, [matmul.b, matmul.m, matmul.k], e),
        b: bytes(homes.b, [matmul.b, matmul.k, matmul.n], e),
        result: bytes(homes.out, [matmul.b, matmul.m, matmul.n], e),
        sum: bytes(homes.out, [matmul.b, matmul.m, matmul.n], p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_sizes_double_and_stand_at_three_halves() {
        assert_eq!(tile_sizes(20).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 8, 12, 16, 20]);
        assert_eq!(tile_sizes(1).collect::<Vec<_>>(), [1]);
        assert_eq!(tile_sizes(16).last(), Some(16));
    }
}
