//! What no layout over virtual stages can beat: each by its own figures, and all by the layers.

use super::interleaved::InterleavedShape;
use crate::plan::StageTime;

/// Loads of layers, as the bound over all layouts sees them: made once for many shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerLoads {
    /// Sums over the layers before each place.
    sums: Vec<u128>,
    /// The load that most layers have, and how many.
    usual: u128,
    n_usual: u128,
    /// The loads of the first and of the last layer, where they are not the usual one.
    first: u128,
    last: u128,
}

impl LayerLoads {
    /// Both passes of every layer, from the input. A chunk may take more than its layers, not less.
    pub fn new(layers: &[StageTime]) -> Self {
        let loads: Vec<u128> = layers
            .iter()
            .map(|time| u128::from(time.forward) + u128::from(time.backward))
            .collect();
        let mut sorted = loads.clone();
        sorted.sort_unstable();
        let groups = sorted.chunk_by(|a, b| a == b);
        let usual = groups.map(|group| (group.len(), group[0])).max().unwrap_or((0, 0));
        let unusual = |load: Option<&u128>| load.copied().filter(|&load| load != usual.1);
        let mut sums = vec![0];
        for load in &loads {
            sums.push(sums[sums.len() - 1] + load);
        }
        Self {
            sums,
            usual: usual.1,
            n_usual: usual.0 as u128,
            first: unusual(loads.first()).unwrap_or(0),
            last: unusual(loads.last()).filter(|_| loads.len() > 1).unwrap_or(0),
        }
    }

    /// Ticks that one layout cannot beat, ends apart, by the layers alone and by what `again` says that
    /// a virtual stage repeats: a rank works after the first virtual stages before its own have been
    /// run through, and before they are run back through.
    pub fn least_of(
        &self,
        sizes: &[usize],
        (ranks, micro_batches): (usize, u64),
        again: impl Fn(usize, usize) -> u128,
    ) -> u128 {
        let mut works = vec![0; ranks];
        let mut reached = vec![0; ranks];
        let (mut from, mut before) = (0, 0);
        for (stage, size) in sizes.iter().enumerate() {
            let load = self.sums[from + size] - self.sums[from] + again(from, from + size);
            from += size;
            works[stage % ranks] += load;
            if stage < ranks {
                reached[stage] = before;
                before += load;
            }
        }
        let times = works.iter().zip(&reached).map(|(w, r)| u128::from(micro_batches) * w + r);
        times.max().unwrap_or(0)
    }

    /// The load of the slowest of so many ranks at the least: each holds whole layers, the first one
    /// the first of all, the last one the last.
    ///
    /// What [`least_layout_time`] is of one micro-batch with nothing before it, where only the first and the last rank
    /// hold anything beside layers of the usual load.
    pub fn slowest(&self, ranks: usize) -> u128 {
        let n_ranks = ranks.max(1) as u128;
        let beside = if ranks == 1 { [self.first + self.last, 0] } else { [self.first, self.last] };
        let least = self.sums[self.n_layers()].div_ceil(n_ranks).max(beside[0]).max(beside[1]);
        if self.usual == 0 || ranks == 0 {
            return least;
        }
        let filled = self.n_usual + beside.map(|held| held / self.usual).iter().sum::<u128>();
        let rest = beside.map(|held| held % self.usual);
        let rounds = filled.div_ceil(n_ranks);
        let remainder = match rounds * n_ranks - filled {
            0 => rest[0].max(rest[1]),
            1 => rest[0].min(rest[1]),
            _ => 0,
        };
        least.max(rounds * self.usual + remainder)
    }

    /// How many layers there are.
    pub fn n_layers(&self) -> usize {
        self.sums.len() - 1
    }
}

/// Ticks that no layout of any kind can beat, ends apart, however many chunks a rank has; the ranks
/// are at most as many as the layers.
///
/// Rank r begins after the first r layers have been run through and ends before they are run back
/// through, so its load is at most (T − `before`) / m with their load as `before`, and all ranks
/// together hold all layers: by their sum, and by whole layers of the usual load beside the first
/// layer on the first rank and the last on the last. For the latter, with u = m · usual and
/// c = `before` + m · (what the rank holds beside), the least T is sought at which Σ ⌊(T − c) / u⌋
/// reaches their number. With T = q · u + ρ each term is q − ⌊c / u⌋, less one where ρ is below
/// the remainder of c: so q is the least that may do, and ρ the least remainder that does.
pub fn least_layout_time(loads: &LayerLoads, ranks: usize, micro_batches: u64, delay: u64) -> u128 {
    let before =
        |rank: usize| loads.sums[rank.min(loads.n_layers())] + 2 * rank as u128 * u128::from(delay);
    loads.least_time_after(ranks, micro_batches, before)
}

impl LayerLoads {
    /// The least T of [`least_layout_time`] where rank r waits `before(r)`.
    fn least_time_after(
        &self,
        ranks: usize,
        micro_batches: u64,
        before: impl Fn(usize) -> u128,
    ) -> u128 {
        let m = u128::from(micro_batches);
        let beside = |rank: usize| {
            let first = if rank == 0 { self.first } else { 0 };
            first + if rank + 1 == ranks { self.last } else { 0 }
        };
        let total = self.sums[self.n_layers()];
        let waited: u128 = (0..ranks).map(&before).sum();
        let by_sum = (m * total + waited).div_ceil(ranks.max(1) as u128);
        let held = (0..ranks).map(|rank| before(rank) + m * beside(rank));
        let by_one = held.clone().max().unwrap_or(0);
        let unit = m * self.usual;
        if unit == 0 || ranks == 0 {
            return by_sum.max(by_one);
        }
        let whole: u128 = held.clone().map(|held| held / unit).sum();
        let mut remainders: Vec<u128> = held.map(|held| held % unit).collect();
        remainders.sort_unstable_by(|a, b| b.cmp(a));
        let rounds = (self.n_usual + whole).div_ceil(ranks as u128);
        let spare = rounds * ranks as u128 - whole - self.n_usual;
        let spare = usize::try_from(spare).expect("less than the number of ranks");
        by_sum.max(by_one).max(rounds * unit + remainders[spare])
    }
}

/// What follows from the order of passes alone, for the bound of a layout by its own figures.
pub(super) struct OrderBound {
    shape: InterleavedShape,
    /// By number of a rank's forward pass: its chunk, and how many passes before it the same
    /// micro-batch went through the chunk before. And the same for backward passes from the last.
    climb: Vec<(usize, usize)>,
    descent: Vec<(usize, usize)>,
    /// By rank: forward passes that end before its first backward pass.
    first: Vec<usize>,
    /// By rank and chunk: forward passes after its first backward pass, and backward passes
    /// before its last forward pass.
    between: Vec<Vec<(u64, u64)>>,
}

impl OrderBound {
    pub(super) fn new(shape: InterleavedShape) -> Self {
        let InterleavedShape { ranks, chunks, group, micro_batches, .. } = shape;
        let all = micro_batches * chunks as u64;
        let first_of = |rank: usize| {
            let warm_up = 2 * (ranks - 1 - rank) as u64 + (chunks as u64 - 1) * group;
            (warm_up + 1).min(all)
        };
        let numbered = |number: u64| {
            let before = number / (group * chunks as u64) * group;
            let size = group.min(micro_batches - before);
            let within = number % (group * chunks as u64);
            let place = |n: u64| usize::try_from(n).expect("few passes precede the first backward");
            (place(within / size), place(size))
        };
        let climb: Vec<_> = (0..first_of(0)).map(numbered).collect();
        // Backward passes go through the chunks from the last on, so that from the end of the
        // batch they go through them from the first on.
        let reversed = |number: u64| {
            let (chunk, size) = numbered(all - 1 - number);
            (chunks - 1 - chunk, size)
        };
        let descent: Vec<_> = (0..first_of(0)).map(reversed).collect();
        let count = |list: &[(usize, usize)], chunk: usize| {
            micro_batches - list.iter().filter(|pass| pass.0 == chunk).count() as u64
        };
        let first: Vec<usize> = (0..ranks)
            .map(|rank| usize::try_from(first_of(rank)).expect("as many as were listed"))
            .collect();
        let of_rank = |&n: &usize| -> Vec<(u64, u64)> {
            let counts = |chunk| (count(&climb[..n], chunk), count(&descent[..n], chunk));
            (0..chunks).map(counts).collect()
        };
        let between = first.iter().map(of_rank).collect();
        Self { shape, climb, descent, first, between }
    }

    /// Ticks until the last pass that a layout cannot beat whose virtual stages take `times`.
    ///
    /// Rank r cannot begin its first backward pass before its first forward passes have ended
    /// though no rank ran anything but forward passes, nor before the rank after it has run its
    /// own first one; in the mirror image of time the same holds of its last forward pass; and
    /// between the two it works.
    pub(super) fn least(&self, times: &[StageTime]) -> u128 {
        let InterleavedShape { ranks, chunks, micro_batches, delay, .. } = self.shape;
        let up = self.run(&self.climb, |stage| times[stage].forward);
        let down = self.run(&self.descent, |stage| times[stage].backward);
        let (mut start, mut rest, mut most) = (0_u128, 0_u128, 0);
        for rank in (0..ranks).rev() {
            if rank + 1 < ranks {
                let next = times[(chunks - 1) * ranks + rank + 1];
                start += u128::from(next.backward) + u128::from(delay);
                rest += u128::from(next.forward) + u128::from(delay);
            }
            let (up, down) = (u128::from(up[rank]), u128::from(down[rank]));
            start = up.max(start);
            rest = down.max(rest);
            let through = if self.first[rank] as u64 == micro_batches * chunks as u64 {
                (up + rest).max(start + down)
            } else {
                let works = self.between[rank].iter().enumerate().map(|(chunk, &(there, back))| {
                    let time = times[chunk * ranks + rank];
                    u128::from(there) * u128::from(time.forward)
                        + u128::from(back) * u128::from(time.backward)
                });
                start + works.sum::<u128>() + rest
            };
            most = through.max(most);
        }
        most
    }

    /// When each rank has run as many passes as precede its first backward pass, where ranks run
    /// only passes of `list`. What is beyond counting is no later than the largest number.
    fn run(&self, list: &[(usize, usize)], takes: impl Fn(usize) -> u64) -> Vec<u64> {
        let InterleavedShape { ranks, delay, .. } = self.shape;
        let mut free_at = vec![0_u64; ranks];
        let mut wanted = vec![0; ranks];
        let mut left_last_rank: Vec<u64> = Vec::with_capacity(list.len());
        for (number, &(chunk, lag)) in list.iter().enumerate() {
            let mut ready =
                if chunk == 0 { 0 } else { left_last_rank[number - lag].saturating_add(delay) };
            for rank in 0..ranks {
                let end = ready.max(free_at[rank]).saturating_add(takes(chunk * ranks + rank));
                free_at[rank] = end;
                ready = end.saturating_add(delay);
                if number + 1 == self.first[rank] {
                    wanted[rank] = end;
                }
            }
            left_last_rank.push(free_at[ranks - 1]);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::noise::Noise;

    #[test]
    fn the_slowest_rank_is_that_of_a_batch_with_nothing_before_it() {
        let mut noise = Noise(7);
        for _ in 0..2000 {
            let n_layers = noise.of(&[1, 2, 3, 7, 12]);
            let usual = noise.of(&[0, 1, 5, 100]);
            let ends = [1, n_layers].map(|_| noise.of(&[0, 3, 100, 170, 1000]));
            let time = |at: usize| {
                let forward = match at {
                    0 => ends[0],
                    at if at + 1 == n_layers => ends[1],
                    _ => usual,
                };
                StageTime { forward, backward: 0 }
            };
            let loads = LayerLoads::new(&(0..n_layers).map(time).collect::<Vec<_>>());
            for ranks in 1..=n_layers {
                assert_eq!(loads.slowest(ranks), loads.least_time_after(ranks, 1, |_| 0));
            }
        }
    }
}
