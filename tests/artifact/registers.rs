//! The least cycles when weights stay in registers: a plain search over tiles, all in words.

use super::Point;
use super::Rules;

/// Words that each multiply-accumulator keeps.
const REGISTERS: u64 = 16;

/// m, k and n, of a tile, a part or a whole.
type Sizes = [u64; 3];

/// Words through a memory.
#[derive(Clone, Copy)]
struct Words {
    read: u64,
    written: u64,
}

/// A tile of the global buffer and its traffic with off-chip memory.
struct GlbTile {
    sizes: Sizes,
    hbm: Words,
}

/// How cores divide the work, and the weights that an array keeps along k and n.
struct Plan {
    cycles: u64,
    cores: Sizes,
    kept: [u64; 2],
}

/// The least cycles, if below `best`, else `best`.
///
/// The weights of a tile of `kept` k and n stand in the array's registers while m streams: an
/// input is read once for `kept` columns, a sum written once for `kept` rows. Weights come from
/// the global buffer once for each local tile along m, or once in all while only m goes on.
pub fn cycles(point: &Point, rules: Rules, mut best: u64) -> u64 {
    let matmul = point.matmul;
    assert_eq!(matmul.b, 1, "the points have no batch");
    let sizes = [matmul.m, matmul.k, matmul.n];
    let room = |bytes: u64| if rules.buffers_in_elements { bytes } else { bytes / 4 };
    let tiles = glb_tiles(sizes, room(point.core.glb.0));
    for plan in plans(point, rules) {
        if plan.cycles >= best {
            break;
        }
        best = best.min(with_tiles(point, &plan, room(point.core.local.0), &tiles, best));
    }
    best
}

/// All plans with the cycles that arrays and local buffers need, least first.
fn plans(point: &Point, rules: Rules) -> Vec<Plan> {
    let (core, [m, k, n]) = (&point.core, sizes(point));
    let cores_together = if rules.local_for_the_chip { 1 } else { core.count };
    let local = core.local_port.read / core.element_bytes * cores_together;
    let mut found = Vec::new();
    for cores in splits([m, k, n], core.count) {
        let [pm, pk, pn] = cores;
        let (m_each, k_each, n_each) = (m.div_ceil(pm), k.div_ceil(pk), n.div_ceil(pn));
        for (k_side, n_side) in [(core.width, core.depth), (core.depth, core.width)] {
            let compute = m_each * k_each.div_ceil(k_side) * n_each.div_ceil(n_side);
            for (k_words, n_words) in factors() {
                let kept = [k_side * k_words, n_side * n_words];
                let sums = pk * k_each.div_ceil(kept[0]);
                let read = m * k * pn * n_each.div_ceil(kept[1]) + m * n * (sums - 1);
                let written = m * n * sums;
                let cycles = compute.max(read.max(written).div_ceil(local));
                found.push(Plan { cycles, cores, kept });
            }
        }
    }
    found.sort_by_key(|plan| plan.cycles);
    found
}

/// The least cycles of a plan over all local and global tiles, if below `best`.
fn with_tiles(point: &Point, plan: &Plan, room: u64, tiles: &[GlbTile], mut best: u64) -> u64 {
    let sizes = sizes(point);
    let share: Sizes = std::array::from_fn(|i| sizes[i].div_ceil(plan.cores[i]));
    for n in doubled(plan.kept[1], share[2]) {
        for k in doubled(plan.kept[0], share[1]) {
            // Inputs and sums share the local buffer; smaller m lies within more global tiles.
            for m in doubled(1, share[0]).into_iter().rev().filter(|m| m * (k + n) <= room) {
                let local = [m, k, n];
                let held: Sizes = std::array::from_fn(|i| (plan.cores[i] * local[i]).min(sizes[i]));
                let (least, fits_all) = with_local(point, plan, local, held, tiles, best);
                best = best.min(least);
                if fits_all {
                    break;
                }
            }
        }
    }
    best
}

/// The least cycles with a local tile, and whether no better global tile was too small for it.
fn with_local(
    point: &Point,
    plan: &Plan,
    local: Sizes,
    held: Sizes,
    tiles: &[GlbTile],
    mut best: u64,
) -> (u64, bool) {
    let [m, k, n] = sizes(point);
    let core = &point.core;
    let (glb, hbm) = (core.glb_port.read / core.element_bytes, hbm_words(point));
    let counts: Sizes =
        std::array::from_fn(|i| sizes(point)[i].div_ceil(plan.cores[i]).div_ceil(local[i]));
    let mut fits_all = true;
    for inner in 0..3 {
        let moves = |without: usize| if inner == without { 1 } else { counts[without] };
        let stay = inner == 0 && local[1] <= plan.kept[0] && local[2] <= plan.kept[1];
        let weights = k * n * if stay { 1 } else { counts[0] };
        let sums = m * n * moves(1) * plan.cores[1];
        let cores = Words { read: m * k * moves(2) + weights + sums - m * n, written: sums };
        for tile in tiles {
            let traffic = tile.hbm.read + tile.hbm.written;
            if traffic.div_ceil(hbm) >= best {
                break;
            }
            let needs = [
                plan.cycles,
                traffic.div_ceil(hbm),
                (cores.read + tile.hbm.written).div_ceil(glb),
                (cores.written + tile.hbm.read).div_ceil(glb),
            ];
            let cycles = needs.into_iter().fold(0, u64::max);
            if cycles >= best {
                continue;
            }
            if (0..3).all(|i| held[i] <= tile.sizes[i]) {
                best = cycles;
            } else {
                fits_all = false;
            }
        }
    }
    (best, fits_all)
}

/// Tiles of the global buffer, each with the largest k, by the traffic that they cause.
fn glb_tiles(sizes: Sizes, room: u64) -> Vec<GlbTile> {
    let [m, k, n] = sizes;
    let steps = |size: u64| -> Vec<u64> {
        let halves = (0..40).flat_map(|i| [2_u64 << i, 3 << i]);
        [1].into_iter().chain(halves).take_while(|s| *s < size).chain([size]).collect()
    };
    let mut found = Vec::new();
    for &tm in &steps(m) {
        for &tn in &steps(n) {
            let fitting = steps(k).into_iter().rev().find(|tk| tm * tk + tk * tn + tm * tn <= room);
            let Some(tk) = fitting else { continue };
            let counts = [m.div_ceil(tm), k.div_ceil(tk), n.div_ceil(tn)];
            for inner in 0..3 {
                let moves = |without: usize| if inner == without { 1 } else { counts[without] };
                let sums = m * n * moves(1);
                let read = m * k * moves(2) + k * n * moves(0) + sums - m * n;
                found.push(GlbTile { sizes: [tm, tk, tn], hbm: Words { read, written: sums } });
            }
        }
    }
    found.sort_by_key(|tile| tile.hbm.read + tile.hbm.written);
    found
}

fn sizes(point: &Point) -> Sizes {
    [point.matmul.m, point.matmul.k, point.matmul.n]
}

fn hbm_words(point: &Point) -> u64 {
    let core = &point.core;
    core.hbm.as_bytes_per_second() / core.clock.as_hertz() / core.element_bytes
}

/// Every way to divide m, k and n among at most `count` cores by powers of two.
fn splits(sizes: Sizes, count: u64) -> Vec<Sizes> {
    let [ms, ks, ns] = sizes.map(|size| doubled(1, size.next_power_of_two()));
    let mut found = Vec::new();
    for &m in &ms {
        for &k in &ks {
            let all = ns.iter().map(|&n| [m, k, n]);
            found.extend(all.filter(|cores| cores.iter().product::<u64>() <= count));
        }
    }
    found
}

/// Ways to keep up to all register words along k and n.
fn factors() -> Vec<(u64, u64)> {
    let each = doubled(1, REGISTERS);
    let pairs =
        each.iter().flat_map(|&k| doubled(1, REGISTERS / k).into_iter().map(move |n| (k, n)));
    pairs.collect()
}

/// `first`, twice it, four times it … below `last`, then `last`.
fn doubled(first: u64, last: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(first), |size| size.checked_mul(2));
    powers.take_while(|size| *size < last).chain([last]).collect()
}
