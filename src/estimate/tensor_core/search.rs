//! Finds the best mapping without visiting most of them.
//!
//! A mapping has two halves that meet in few places: the cores' half (split, way, local tile; see
//! `plan`) and the tile of the global buffer (see `glb_tiles`). Cycles are the largest of several
//! needs, energy is a sum, and both halves only grow worse as tiles shrink. So:
//!
//! 1. compute depends on split and way alone: those with the least compute give the first answer;
//! 2. any other is looked at only if its compute, the streams of its arrays, and the least that it
//!    can move through each memory all stay below the best cycles so far;
//! 3. then, within the least cycles, the same with the least energy that it can need.
//!
//! Bandwidths never divide in the inner loops: a number of cycles is turned once into the bytes
//! that each port moves in that time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cost::Cost;
use super::cost::cost;
use super::glb_tiles::GlbTile;
use super::glb_tiles::GlbTiles;
use super::mapping::Mapping;
use super::mapping::Sizes;
use super::mapping::Way;
use super::plan::Budget;
use super::plan::Longest;
use super::plan::Next;
use super::plan::Plan;
use super::plan::Share;
use super::plan::Tensors;
use super::plan::hbm_cycles;
use super::plan::shares;
use crate::hardware::CoreSpec;
use crate::model::op::Homes;
use crate::model::op::Matmul;

/// Buffers that one search leaves to the next, so that little is allocated anew.
#[derive(Default)]
pub struct Scratch {
    tiles: Vec<Tiled>,
    openings: Vec<Opening>,
    open: Vec<(u128, usize)>,
    waiting: Vec<Reverse<(u128, usize)>>,
    /// Mappings, or cores' halves of many, looked at so far in all searches.
    pub visited: u64,
}

#[derive(Default)]
struct Tiled {
    batch_cores: u64,
    tiles: GlbTiles,
}

/// A split and a way by their places in the lists of shares, with the compute that they settle: the same for
/// all cores of one number and one shape of array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    compute: u64,
    shares: [u16; 4],
    way: u8,
}

/// The mapping that is least in (cycles, energy, order of the search), and its cost; `None` if
/// every mapping moves 2⁶⁴ bytes or more, or none fits.
///
/// With `slack`, in millionths, it is the one of least energy among those that take at most that
/// much longer than the fastest.
pub fn best(
    matmul: &Matmul,
    homes: Homes,
    spec: &CoreSpec,
    slack: u64,
    scratch: &mut Scratch,
) -> Option<(Mapping, Cost)> {
    // A square array does not tell width from depth: one of each pair of ways is enough.
    let ways = if spec.width == spec.depth { &Way::UPRIGHT[..] } else { &Way::ALL[..] };
    let mut search = Search::new(ways, matmul, homes, spec, scratch);
    let fastest = search.fastest(0, u64::MAX)?.cycles;
    let stretched = u128::from(fastest) * (1_000_000 + u128::from(slack)) / 1_000_000;
    let allowed = u64::try_from(stretched).unwrap_or(u64::MAX);
    let mapping = search.least_energy(allowed)?;
    let cost = cost(matmul, homes, spec, &mapping)?;
    assert!(cost.cycles.0 <= allowed, "a mapping found costs what its definition says");
    Some((mapping, cost))
}

/// The least cycles of any mapping, whatever energy it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fastest {
    /// The cycles.
    pub cycles: u64,
    /// Bytes through off-chip memory of one mapping that takes no more.
    pub carried: u64,
    /// Bytes through off-chip memory that no mapping is below.
    pub least_carried: u64,
    /// How that mapping begins.
    pub opening: Opening,
}

/// What is known of a search before it begins, from cores of the same number and arrays beside other buffers
/// and memories.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    /// No mapping takes fewer cycles.
    pub least: u64,
    /// Some mapping takes at most so many.
    pub most: u64,
    /// How a mapping begins that may be the fastest.
    pub opening: Option<Opening>,
}

/// The least compute of any split and way; `None` where there is none.
pub fn least_compute(matmul: &Matmul, spec: &CoreSpec) -> Option<u64> {
    let Matmul { b, m, k, n } = *matmul;
    let lists = [b, m, k, n].map(|size| shares(size, spec));
    let mut least: Option<u64> = None;
    each_opening(&lists, spec, &Way::ALL, |opening| {
        least = Some(least.map_or(opening.compute, |known| known.min(opening.compute)));
    });
    least
}

/// The least bytes through off-chip memory of any mapping; `None` where no tile fits.
pub fn least_carried(
    matmul: &Matmul,
    homes: Homes,
    spec: &CoreSpec,
    scratch: &mut Scratch,
) -> Option<u64> {
    if scratch.tiles.is_empty() {
        scratch.tiles.push(Tiled::default());
    }
    // A batch in one piece leaves the most room in the global buffer: its least traffic is the least of all.
    let Tiled { batch_cores, tiles } = &mut scratch.tiles[0];
    *batch_cores = 1;
    tiles.fill(matmul, homes, spec, 1);
    Some(tiles.least_bytes()?.bytes())
}

/// How fast the fastest mapping is; `None` where there is none. Far quicker than [`best`], because energies
/// are not looked at, and quicker still where `lead` leads to what cannot be beaten.
pub fn fastest(
    (matmul, homes): (&Matmul, Homes),
    spec: &CoreSpec,
    lead: Lead,
    scratch: &mut Scratch,
) -> Option<Fastest> {
    let ways = if spec.width == spec.depth { &Way::UPRIGHT[..] } else { &Way::ALL[..] };
    let mut search = Search::begun(ways, matmul, homes, spec, scratch);
    if let Some(found) = search.led(lead) {
        return Some(found);
    }
    search.list_openings();
    search.fastest(lead.least, lead.most)
}

/// Every split and way, in the order of the search.
fn each_opening(
    [batches, ms, ks, ns]: &[Vec<Share>; 4],
    spec: &CoreSpec,
    ways: &[Way],
    mut visit: impl FnMut(Opening),
) {
    let fill = if spec.fill_and_drain { spec.width + spec.depth } else { 0 };
    for (at_b, b) in (0_u16..).zip(batches) {
        for (at_m, m) in (0_u16..).zip(ms) {
            for (at_k, k) in (0_u16..).zip(ks) {
                let cores = b.cores * m.cores * k.cores;
                if cores > spec.count {
                    break;
                }
                for (at_n, n) in (0_u16..).zip(ns) {
                    if cores * n.cores > spec.count {
                        break;
                    }
                    let shares = [m, k, n];
                    for (at, way) in (0_u8..).zip(ways) {
                        let compute = b
                            .size
                            .saturating_mul(shares[way.width.index()].along_width)
                            .saturating_mul(shares[way.depth.index()].along_depth)
                            .saturating_mul(shares[way.stream.index()].size)
                            .saturating_add(fill);
                        let shares = [at_b, at_m, at_k, at_n];
                        visit(Opening { compute, shares, way: at });
                    }
                }
            }
        }
    }
}

struct Search<'a> {
    ways: &'a [Way],
    matmul: &'a Matmul,
    homes: Homes,
    spec: &'a CoreSpec,
    sizes: Sizes,
    /// How batch, m, k and n may be divided.
    lists: [Vec<Share>; 4],
    tensors: Tensors,
    /// By way.
    longest: Vec<Longest>,
    scratch: &'a mut Scratch,
    n_tiled: usize,
}

impl<'a> Search<'a> {
    fn new(
        ways: &'a [Way],
        matmul: &'a Matmul,
        homes: Homes,
        spec: &'a CoreSpec,
        scratch: &'a mut Scratch,
    ) -> Self {
        let mut search = Self::begun(ways, matmul, homes, spec, scratch);
        search.list_openings();
        search
    }

    /// A search whose openings are not listed yet.
    fn begun(
        ways: &'a [Way],
        matmul: &'a Matmul,
        homes: Homes,
        spec: &'a CoreSpec,
        scratch: &'a mut Scratch,
    ) -> Self {
        let Matmul { b, m, k, n } = *matmul;
        let lists = [b, m, k, n].map(|size| shares(size, spec));
        let longest = |way: &Way| Longest::of(spec, *way, spec.width, spec.depth);
        Self {
            ways,
            matmul,
            homes,
            spec,
            sizes: [m, k, n],
            lists,
            tensors: Tensors::of(spec, b, [m, k, n]),
            longest: ways.iter().map(longest).collect(),
            scratch,
            n_tiled: 0,
        }
    }

    /// The fastest mapping where it begins as others led to expect, and takes what no mapping can beat.
    fn led(&mut self, Lead { least, opening, .. }: Lead) -> Option<Fastest> {
        let opening = opening.filter(|opening| opening.compute <= least)?;
        let (cycles, carried) = self.faster(&opening, Budget::of(least, self.spec))?;
        let undivided = self.glb_tiles(1);
        let least_carried = self.scratch.tiles[undivided].tiles.least_bytes()?.bytes();
        Some(Fastest { cycles, carried, least_carried, opening })
    }

    fn list_openings(&mut self) {
        let openings = &mut self.scratch.openings;
        openings.clear();
        each_opening(&self.lists, self.spec, self.ways, |opening| openings.push(opening));
    }

    fn plan(&self, opening: &Opening) -> Plan {
        let share = |i: usize| self.lists[i][usize::from(opening.shares[i])];
        let way = self.ways[usize::from(opening.way)];
        Plan::new(self.spec, &self.tensors, share(0), [share(1), share(2), share(3)], way)
    }

    /// What a split reads from the global buffer at the least: each operand once for every group of cores that
    /// a read serves, and partial sums where cores divide k.
    fn least_read(&self, opening: &Opening) -> u64 {
        let cores = |at: usize| self.lists[at][usize::from(opening.shares[at])].cores;
        let reads_for = |cores: u64| cores.div_ceil(self.spec.multicast.min(cores));
        let Tensors { a, b, sum, .. } = self.tensors;
        let inputs = a.saturating_mul(reads_for(cores(3)));
        inputs
            .saturating_add(b.saturating_mul(reads_for(cores(1))))
            .saturating_add(sum.saturating_mul(cores(2) - 1))
    }

    /// The least compute of any opening, and a tile of the global buffer of least traffic.
    fn floor(&mut self) -> Option<(u64, GlbTile)> {
        let least_compute = self.scratch.openings.iter().map(|opening| opening.compute).min()?;
        // A batch in one piece leaves the most room in the global buffer: its least traffic is the
        // least of all.
        let undivided = self.glb_tiles(1);
        let tile = self.scratch.tiles[undivided].tiles.least_bytes()?;
        Some((least_compute, *tile))
    }

    /// The least cycles of any mapping, which are known to be at least and at most so many.
    fn fastest(&mut self, least: u64, most: u64) -> Option<Fastest> {
        let (least_compute, tile) = self.floor()?;
        let least_carried = tile.bytes();
        let floor = least_compute.max(hbm_cycles(self.spec, tile.bytes())).max(least);
        let mut fastest = None;
        let mut budget = Budget::of(most, self.spec);
        // The openings of least compute first: they usually hold the answer.
        for i in 0..self.scratch.openings.len() {
            let opening = self.scratch.openings[i];
            if opening.compute != least_compute {
                continue;
            }
            if let Some((cycles, carried)) = self.faster(&opening, budget) {
                fastest = Some(Fastest { cycles, carried, least_carried, opening });
                if cycles == floor {
                    return fastest;
                }
                budget = Budget::of(cycles - 1, self.spec);
            }
        }
        // Then the others, from those that may be the fastest on.
        let mut open = std::mem::take(&mut self.scratch.waiting);
        open.clear();
        // Ways of one split stand together, and share what the global buffer is read for at the least.
        let mut read = ([u16::MAX; 4], 0);
        for (i, opening) in self.scratch.openings.iter().enumerate() {
            if opening.compute == least_compute || opening.compute > budget.cycles {
                continue;
            }
            if opening.shares != read.0 {
                read = (opening.shares, self.least_read(opening));
            }
            if read.1 > budget.glb_read() {
                continue;
            }
            let plan = self.plan(opening);
            let bound = plan.bound(self.spec, &self.longest[usize::from(opening.way)]);
            if bound.within(&budget) {
                let least = bound.least_cycles(self.spec).max(opening.compute);
                open.push(Reverse((u128::from(least), i)));
            }
        }
        // Few are looked at: the others need not be sorted.
        let mut queue = BinaryHeap::from(open);
        while let Some(Reverse((least, i))) = queue.pop() {
            if least > u128::from(budget.cycles) {
                break;
            }
            let opening = self.scratch.openings[i];
            if let Some((cycles, carried)) = self.faster(&opening, budget) {
                fastest = Some(Fastest { cycles, carried, least_carried, opening });
                if cycles == floor {
                    break;
                }
                budget = Budget::of(cycles - 1, self.spec);
            }
        }
        self.scratch.waiting = queue.into_vec();
        fastest
    }

    /// The least cycles of the mappings that begin with an opening, if within the budget, and what one of
    /// these carries.
    fn faster(&mut self, opening: &Opening, mut budget: Budget) -> Option<(u64, u64)> {
        let plan = self.plan(opening);
        let bound = plan.bound(self.spec, &self.longest[usize::from(opening.way)]);
        if !bound.within(&budget) {
            return None;
        }
        let at = self.glb_tiles(plan.batch_cores);
        let tiles = &self.scratch.tiles[at].tiles;
        let least_hbm = tiles.least_bytes()?;
        if least_hbm.bytes() > budget.hbm {
            return None;
        }
        let mut found = None;
        let mut visited = 0;
        plan.each_half(self.spec, &mut |local, _, half| {
            visited += 1;
            if !half.within(&budget) {
                return Next::Larger;
            }
            let held = plan.held(local, self.sizes);
            let mut blocked = false;
            // The tile of least traffic first: often no other can be faster.
            for tile in std::iter::once(least_hbm).chain(tiles.iter()) {
                visited += 1;
                if !half.meets(tile, &budget) {
                    continue;
                }
                if !tile.holds(held) {
                    blocked = true;
                    continue;
                }
                let cycles = half.cycles(self.spec, tile).max(opening.compute);
                found = Some((cycles, tile.bytes()));
                if cycles == opening.compute {
                    return Next::Stop;
                }
                budget = Budget::of(cycles - 1, self.spec);
                if least_hbm.bytes() > budget.hbm {
                    return Next::Stop;
                }
                if !half.within(&budget) {
                    return Next::Larger;
                }
            }
            if blocked { Next::Smaller } else { Next::Larger }
        });
        self.scratch.visited += visited;
        found
    }

    /// A mapping of the least energy among those within `allowed` cycles.
    fn least_energy(&mut self, allowed: u64) -> Option<Mapping> {
        let budget = Budget::of(allowed, self.spec);
        let mut open = std::mem::take(&mut self.scratch.open);
        open.clear();
        for (i, opening) in self.scratch.openings.iter().enumerate() {
            if opening.compute > budget.cycles {
                continue;
            }
            let plan = self.plan(opening);
            let bound = plan.bound(self.spec, &self.longest[usize::from(opening.way)]);
            if bound.within(&budget) {
                open.push((bound.energy, i));
            }
        }
        open.sort_unstable();
        let undivided = self.glb_tiles(1);
        let cheapest = self.scratch.tiles[undivided].tiles.least_energy()?.energy;
        let mut best: Option<(u128, Mapping)> = None;
        for &(bound, i) in &open {
            // All that follow need at least as much.
            if best.is_some_and(|(least, _)| bound + cheapest >= least) {
                break;
            }
            let plan = self.plan(&self.scratch.openings[i]);
            self.cheaper(&plan, &budget, bound, &mut best);
        }
        self.scratch.open = open;
        best.map(|(_, mapping)| mapping)
    }

    /// Replaces `best` by a mapping of the plan that needs less energy, if one is within the
    /// budget.
    fn cheaper(
        &mut self,
        plan: &Plan,
        budget: &Budget,
        bound: u128,
        best: &mut Option<(u128, Mapping)>,
    ) {
        let at = self.glb_tiles(plan.batch_cores);
        let tiles = &self.scratch.tiles[at].tiles;
        let Some(cheapest) = tiles.least_energy() else { return };
        let less = |energy: u128, best: &Option<(u128, Mapping)>| {
            best.is_none_or(|(least, _)| energy < least)
        };
        if !less(bound + cheapest.energy, best) {
            return;
        }
        let mut visited = 0;
        plan.each_half(self.spec, &mut |local, inner, half| {
            visited += 1;
            if !less(half.energy + cheapest.energy, best) || !half.within(budget) {
                return Next::Larger;
            }
            let held = plan.held(local, self.sizes);
            if cheapest.holds(held) && half.meets(cheapest, budget) {
                let energy = half.energy + cheapest.energy;
                *best = Some((energy, plan.mapping(local, inner, cheapest)));
                return Next::Larger;
            }
            let mut blocked = false;
            for tile in tiles.iter() {
                visited += 1;
                if !less(half.energy + tile.energy, best) || !half.meets(tile, budget) {
                    continue;
                }
                if tile.holds(held) {
                    *best = Some((half.energy + tile.energy, plan.mapping(local, inner, tile)));
                } else {
                    blocked = true;
                }
            }
            if blocked { Next::Smaller } else { Next::Larger }
        });
        self.scratch.visited += visited;
    }

    /// The tiles of the global buffer for one division of the batch, listed once.
    fn glb_tiles(&mut self, batch_cores: u64) -> usize {
        let known = &self.scratch.tiles[..self.n_tiled];
        if let Some(at) = known.iter().position(|tiled| tiled.batch_cores == batch_cores) {
            return at;
        }
        let at = self.n_tiled;
        self.n_tiled += 1;
        if self.scratch.tiles.len() == at {
            self.scratch.tiles.push(Tiled::default());
        }
        let tiled = &mut self.scratch.tiles[at];
        tiled.batch_cores = batch_cores;
        tiled.tiles.fill(self.matmul, self.homes, self.spec, batch_cores);
        at
    }
}

/// How many mappings there are whose tiles fit their buffers, each level for itself.
pub fn space_size(matmul: &Matmul, spec: &CoreSpec) -> u128 {
    let sizes = [matmul.m, matmul.k, matmul.n];
    let [batches, ms, ks, ns] =
        [matmul.b, matmul.m, matmul.k, matmul.n].map(|size| shares(size, spec));
    let mut total = 0;
    for batch in &batches {
        let glb = GlbTiles::count(sizes, spec, batch.cores);
        for m in &ms {
            for k in &ks {
                for n in &ns {
                    if batch.cores * m.cores * k.cores * n.cores > spec.count {
                        break;
                    }
                    let shares = [*m, *k, *n];
                    let local = |way| Plan::count_local_tiles(spec, shares, way);
                    let local: u128 = Way::ALL.into_iter().map(local).sum();
                    // Either level has three choices of the innermost loop.
                    total += local * glb * 9;
                }
            }
        }
    }
    total
}
