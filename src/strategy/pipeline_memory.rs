//! Which numbers of ranks memory allows for a model that is relaxed to its repeated layer, and how
//! many layers must at least run their forward pass again.
//!
//! The other layers (embedding, head) weigh nothing here. docs/search.md proves every step.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::placement::all_are_compared;
use crate::plan::Recompute;
use crate::plan::TimeModel;

/// The figures of a model, a cluster and a job that decide what fits.
#[derive(Clone, Debug)]
pub struct PipelineLimits {
    /// Numbers of ranks, each with numbers of pipelines that are not told apart.
    pub pipelines: Vec<(u64, RangeInclusive<u64>)>,
    /// Micro-batches in a batch.
    pub micro_batches: u64,
    /// How many layers are copies of the repeated one.
    pub repeated: u64,
    /// What is kept and what is run again.
    pub recompute: Recompute,
    /// Whether the number of devices in use counts, as where energies are compared: then plans that leave most
    /// devices idle are told apart too.
    pub devices_count: bool,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// How many virtual stages a rank may have.
    pub chunks: RangeInclusive<usize>,
    /// How layers are dealt to several virtual stages of a rank.
    pub layouts: Layouts,
    /// By number of ranks of one stage each: repeated layers of the first and of the last one, where only one cut is
    /// compared. Nothing where all are.
    pub in_ends: BTreeMap<u64, [u64; 2]>,
    /// Bytes that a plan may fill.
    pub capacity: u64,
    /// Bytes that the repeated layer keeps for one micro-batch.
    pub kept: u64,
    /// Bytes that enter the repeated layer in one micro-batch.
    pub input: u64,
    /// Bytes that its running pass holds for a moment.
    pub working: u64,
}

/// How layers are dealt to several virtual stages of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layouts {
    /// How many layers there are.
    pub n_layers: usize,
    /// By how many layers the last virtual stage of a rank may be longer than its others, where not
    /// all layouts are compared; `None` where nothing is known of that.
    pub longer: Option<u64>,
}

/// How many virtual stages a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stages {
    /// One.
    One,
    /// Two or more, in interleaved 1F1B.
    Several,
}

/// A number of ranks, the micro-batches of each pipeline at the least, and the stages of a rank.
pub type Held = (u64, u64, Stages);

impl PipelineLimits {
    /// What ranks may have where each pipeline runs at most so many micro-batches.
    pub fn stages(&self, ranks: u64, most_rounds: u64) -> impl Iterator<Item = Stages> + use<> {
        let one = *self.chunks.start() <= 1;
        let several = self.time_model == TimeModel::OneForwardOneBackward
            && self.recompute != Recompute::Stage
            && (2..=most_rounds).contains(&ranks)
            && self.several(ranks).next().is_some();
        [(one, Stages::One), (several, Stages::Several)]
            .into_iter()
            .filter_map(|(may, stages)| may.then_some(stages))
    }

    /// The numbers of virtual stages, two or more, that so many ranks may have.
    fn several(&self, ranks: u64) -> RangeInclusive<u64> {
        let most = self.layouts.n_layers as u64 / ranks;
        (*self.chunks.start()).max(2) as u64..=most.min(*self.chunks.end() as u64)
    }

    /// Micro-batches in flight for each layer of every rank at the least, the last rank first: never fewer
    /// further from the end.
    pub fn in_flight(&self, held: Held) -> Vec<u64> {
        (1..=held.0).map(|place| self.in_flight_at(place, held)).collect()
    }

    /// The same of the rank at this place from the end.
    ///
    /// With several virtual stages, as the first backward pass begins every one but the last has a
    /// micro-batch of every rank in flight, the last one as many as there are ranks after it twice
    /// and one more. That counts the less, the more of the layers are in it.
    fn in_flight_at(&self, from_the_end: u64, (ranks, rounds, stages): Held) -> u64 {
        match (self.time_model, stages) {
            (TimeModel::Published, _) => from_the_end,
            (TimeModel::OneForwardOneBackward, Stages::One) => from_the_end.min(rounds),
            (TimeModel::OneForwardOneBackward, Stages::Several) => {
                let Some(longer) = self.layouts.longer else { return 1 };
                let fewer = ranks - ranks.min(2 * from_the_end - 1);
                let n_layers = self.layouts.n_layers;
                let in_flight = |chunks: u64| {
                    let n_stages = usize::try_from(ranks * chunks).unwrap_or(usize::MAX);
                    let longer = if all_are_compared(n_layers, n_stages) {
                        (n_layers - n_stages) as u64
                    } else {
                        longer
                    };
                    // Of the layers of a rank at most (1 + longer) / (chunks + longer) are there.
                    ranks - (fewer * (1 + longer)).div_ceil(chunks + longer)
                };
                self.several(ranks).map(in_flight).min().unwrap_or(1).max(1)
            }
        }
    }

    /// The most repeated layers that fit in the rank at this place from the end of so many, with so many
    /// micro-batches in flight.
    pub fn most_layers(
        &self,
        (from_the_end, ranks): (u64, u64),
        in_flight: u64,
        state: u64,
    ) -> u64 {
        // Memory of n layers is at least `fixed + n · each`. Nothing is sent to the first stage.
        let (fixed, each) = match self.recompute {
            Recompute::None => (0, state + in_flight * self.kept),
            Recompute::Stage if from_the_end == ranks => (0, state + self.kept),
            Recompute::Stage => ((in_flight - 1) * self.input, state + self.kept),
            Recompute::Full => (self.kept, state + in_flight * self.input),
            Recompute::First(_) | Recompute::AsNeeded => {
                (0, state + in_flight * self.input.min(self.kept))
            }
        };
        match self.capacity.checked_sub(fixed + self.working) {
            Some(room) => room.checked_div(each).unwrap_or(u64::MAX).min(self.repeated),
            None => 0,
        }
    }

    /// How many repeated layers run their forward pass again at the least, in all ranks together, so
    /// that all fit; `None` where they do not.
    ///
    /// A rank holds some layers that keep everything. Each one more asks for so many repeats, the
    /// fewer the more micro-batches are in flight there: it is given to the rank that asks for the
    /// fewest, up to as many as fit there where all are repeated.
    pub fn least_repeats(&self, in_flight: &[u64], state: u64) -> Option<f64> {
        let ranks = in_flight.len() as u64;
        let most = |(place, &n): (u64, &u64)| self.most_layers((place, ranks), n, state);
        let sum = (1..).zip(in_flight).map(most).fold(0, u64::saturating_add);
        if sum < self.repeated {
            return None;
        }
        let saved = self.kept.saturating_sub(self.input);
        if self.recompute != Recompute::AsNeeded || saved == 0 {
            return Some(0.0);
        }
        let room = self.capacity.saturating_sub(self.working) as f64;
        let asks = |n: u64| state as f64 + n as f64 * self.kept as f64;
        let free = |n: u64| (room / asks(n)).min(self.repeated as f64);
        let mut left = in_flight.iter().fold(self.repeated as f64, |left, &n| left - free(n));
        let mut repeats = 0.0;
        // Ranks with more in flight come last, and ask for fewer.
        let mut end = in_flight.len();
        while end > 0 && left > 0.0 {
            let n = in_flight[end - 1];
            let first = in_flight[..end].partition_point(|&other| other < n);
            let each = asks(n) / (n as f64 * saved as f64);
            for place in first..end {
                let more = self.most_layers((place as u64 + 1, ranks), n, state) as f64 - free(n);
                let taken = more.max(0.0).min(left.max(0.0));
                repeats += each * taken;
                left -= taken;
            }
            end = first;
        }
        Some(repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::even_layouts;
    use crate::plan::PassOrder;

    fn limits(n_layers: usize, chunks: RangeInclusive<usize>) -> PipelineLimits {
        PipelineLimits {
            pipelines: Vec::new(),
            micro_batches: 64,
            repeated: n_layers as u64 - 2,
            recompute: Recompute::AsNeeded,
            devices_count: false,
            time_model: TimeModel::OneForwardOneBackward,
            chunks,
            layouts: Layouts { n_layers, longer: Some(0) },
            in_ends: BTreeMap::new(),
            capacity: 1000,
            kept: 10,
            input: 2,
            working: 0,
        }
    }

    /// Of a layout whose first and last layer are not repeated ones: repeated layers of a virtual
    /// stage.
    fn repeated(sizes: &[usize], stage: usize) -> u64 {
        let ends = usize::from(stage == 0) + usize::from(stage + 1 == sizes.len());
        (sizes[stage] - ends) as u64
    }

    /// All ways to write `n` as a sum of `parts` numbers that are not 0.
    fn compositions(n: usize, parts: usize) -> Vec<Vec<usize>> {
        if parts == 1 {
            return vec![vec![n]];
        }
        let with_first = |first: usize| {
            let rest = compositions(n - first, parts - 1).into_iter();
            rest.map(move |rest| [vec![first], rest].concat())
        };
        (1..=n + 1 - parts).flat_map(with_first).collect()
    }

    #[test]
    fn no_rank_of_several_virtual_stages_has_less_in_flight() {
        let mut n_compared = 0;
        for (ranks, chunks) in [(2, 2), (2, 3), (3, 2), (4, 2), (3, 3), (5, 2), (4, 4)] {
            for n_layers in ranks * chunks..=4 * ranks * chunks + 2 {
                let n_stages = ranks * chunks;
                let limits = limits(n_layers, chunks..=chunks);
                let layouts = if all_are_compared(n_layers, n_stages) {
                    compositions(n_layers, n_stages)
                } else {
                    even_layouts(n_layers, n_stages)
                };
                for micro_batches in [ranks as u64, 3 * ranks as u64, 4 * ranks as u64 - 1] {
                    let order = PassOrder::Interleaved { chunks, group: ranks as u64 };
                    if order.check(ranks, micro_batches).is_err() {
                        continue;
                    }
                    for (sizes, rank) in
                        layouts.iter().flat_map(|sizes| (0..ranks).map(move |rank| (sizes, rank)))
                    {
                        let kept = |stage: usize| u128::from(repeated(sizes, stage));
                        let most = order.peak(ranks, micro_batches, rank, kept);
                        let layers: u128 = (rank..n_stages).step_by(ranks).map(kept).sum();
                        let held = (ranks as u64, micro_batches, Stages::Several);
                        let each = limits.in_flight(held)[ranks - rank - 1];
                        assert!(
                            u128::from(each) * layers <= most,
                            "{sizes:?} {rank} {each} {most}"
                        );
                        n_compared += 1;
                    }
                }
            }
        }
        assert!(n_compared > 1000, "{n_compared}");
    }

    #[test]
    fn no_way_to_deal_layers_repeats_fewer() {
        for ranks in 1..=4_u64 {
            for state in [0, 7, 40] {
                for capacity in (40..1000).step_by(23) {
                    let n_layers = 12;
                    let limits = PipelineLimits { capacity, ..limits(n_layers, 1..=1) };
                    let held = (ranks, 16, Stages::One);
                    let told = limits.least_repeats(&limits.in_flight(held), state);
                    let needed = |place: u64, layers: u64| -> Option<u64> {
                        let bytes = |again: u64| {
                            layers * state + place * ((layers - again) * 10 + again * 2)
                        };
                        (0..=layers).find(|&again| bytes(again) <= capacity)
                    };
                    let all = compositions(
                        10 + usize::try_from(ranks).unwrap(),
                        usize::try_from(ranks).unwrap(),
                    );
                    let sums = all.iter().filter_map(|sizes| {
                        let each = sizes.iter().zip(1..);
                        each.map(|(&size, place)| needed(place, size as u64 - 1))
                            .sum::<Option<u64>>()
                    });
                    if let Some(least) = sums.min() {
                        let told = told.expect("it fits");
                        assert!(told <= least as f64 + 1e-9, "{told} {least} {ranks} {capacity}");
                    }
                }
            }
        }
    }
}
