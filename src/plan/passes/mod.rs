//! In which order each rank of a pipeline runs its passes: one file per schedule.
//!
//! A rank holds one virtual stage, or several (its chunks): virtual stage j is on rank j mod p.
//! Time and memory of every schedule follow from its lists alone, by one simulator and one walk.

mod interleaved;
mod one_f_one_b;

use serde::Deserialize;
use serde::Serialize;

/// One pass of one micro-batch through one virtual stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Which virtual stage, from the input.
    pub stage: usize,
    /// Which micro-batch of its pipeline.
    pub micro_batch: u64,
    /// Whether it is the backward pass.
    pub backward: bool,
}

/// The order in which ranks run their passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PassOrder {
    /// One virtual stage per rank; one forward and one backward pass in turn.
    OneForwardOneBackward,
    /// Several virtual stages per rank, in groups of micro-batches.
    Interleaved {
        /// Virtual stages of each rank.
        chunks: usize,
        /// Micro-batches that go through one chunk before the next chunk's turn.
        group: u64,
    },
}

/// Why a pipeline cannot be run in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalOrder {
    /// There is nothing to run.
    #[error("a pipeline has at least one rank, one chunk and one micro-batch")]
    Empty,
    /// A single rank has nobody to interleave with.
    #[error("{chunks} chunks on one rank: interleaving needs at least 2 ranks")]
    OneRank {
        /// Chunks of the rank.
        chunks: usize,
    },
    /// A group is too small or too large.
    #[error("groups of {group} micro-batches: allowed are {least} to {most}")]
    Group {
        /// Micro-batches of a group.
        group: u64,
        /// As many as there are ranks.
        least: u64,
        /// All micro-batches.
        most: u64,
    },
    /// The last group is too small: ranks would wait for each other for ever.
    #[error(
        "the last group has {left} of {group} micro-batches: it must have none or at least {least}"
    )]
    LastGroup {
        /// What is left for it.
        left: u64,
        /// Micro-batches of a group.
        group: u64,
        /// As many as there are ranks.
        least: u64,
    },
}

impl PassOrder {
    /// Virtual stages of each rank.
    pub fn chunks(self) -> usize {
        match self {
            Self::OneForwardOneBackward => 1,
            Self::Interleaved { chunks, .. } => chunks,
        }
    }

    /// Micro-batches that go through a chunk together.
    pub fn group(self) -> u64 {
        match self {
            Self::OneForwardOneBackward => 1,
            Self::Interleaved { group, .. } => group,
        }
    }

    /// Whether `ranks` can run `micro_batches` in this order.
    pub fn check(self, ranks: usize, micro_batches: u64) -> Result<(), IllegalOrder> {
        if ranks == 0 || self.chunks() == 0 || micro_batches == 0 {
            return Err(IllegalOrder::Empty);
        }
        match self {
            Self::OneForwardOneBackward => Ok(()),
            Self::Interleaved { chunks, group } => {
                interleaved::check(ranks, chunks, group, micro_batches)
            }
        }
    }

    /// The passes of one of `ranks`, in the order in which it runs them. The order must be legal.
    pub fn passes(
        self,
        ranks: usize,
        micro_batches: u64,
        rank: usize,
    ) -> impl Iterator<Item = Pass> {
        let (all, first) = self.first_forwards(ranks, micro_batches, rank);
        (0..2 * all).map(move |at| {
            let (number, backward) = in_turn(at, first, all);
            let (chunk, micro_batch) = match self {
                Self::OneForwardOneBackward => (0, number),
                Self::Interleaved { chunks, group } => {
                    let (chunk, micro_batch) =
                        interleaved::nth(number, chunks as u64, group, micro_batches);
                    (if backward { chunks - 1 - chunk } else { chunk }, micro_batch)
                }
            };
            Pass { stage: chunk * ranks + rank, micro_batch, backward }
        })
    }

    /// The most of what `kept` says of each virtual stage that one of `ranks` holds at once, from
    /// a forward pass to its backward pass. Follows from the order alone.
    pub fn peak(
        self,
        ranks: usize,
        micro_batches: u64,
        rank: usize,
        kept: impl Fn(usize) -> u128,
    ) -> u128 {
        let each: Vec<u128> = (0..self.chunks()).map(|chunk| kept(chunk * ranks + rank)).collect();
        let first = each.first().copied().unwrap_or(0);
        if each.iter().all(|kept| *kept == first) {
            return u128::from(self.most_in_flight(ranks, micro_batches, rank)) * first;
        }
        let enough = self.enough_to_repeat(ranks, micro_batches);
        let (mut held, mut most) = (0, 0);
        for pass in self.passes(ranks, enough, rank) {
            if pass.backward {
                held -= each[pass.stage / ranks];
            } else {
                held += each[pass.stage / ranks];
                most = held.max(most);
            }
        }
        most
    }

    /// The most micro-batches that one of `ranks` has in flight, each chunk's counted apart: from
    /// its first backward pass on it runs as many of both.
    pub fn most_in_flight(self, ranks: usize, micro_batches: u64, rank: usize) -> u64 {
        let (all, first) = self.first_forwards(ranks, micro_batches, rank);
        (first + 1).min(all)
    }

    /// Forward passes of one of `ranks`, and how many of them precede the turn of its first backward
    /// pass.
    fn first_forwards(self, ranks: usize, micro_batches: u64, rank: usize) -> (u64, u64) {
        let after = ranks - 1 - rank;
        let (all, first) = match self {
            Self::OneForwardOneBackward => (micro_batches, one_f_one_b::first_forwards(after)),
            Self::Interleaved { chunks, group } => {
                (micro_batches * chunks as u64, interleaved::first_forwards(after, chunks, group))
            }
        };
        (all, first.min(all))
    }

    /// Micro-batches after which a rank's list repeats itself, shifted by one period.
    pub(super) fn period(self, ranks: usize) -> u64 {
        match self {
            Self::OneForwardOneBackward => ranks as u64,
            Self::Interleaved { group, .. } => group,
        }
    }

    /// So few micro-batches that what ranks hold runs through all that it runs through with
    /// `micro_batches`: no rank is more than two periods ahead of its backward passes, and each
    /// period between repeats the one before.
    fn enough_to_repeat(self, ranks: usize, micro_batches: u64) -> u64 {
        let period = self.period(ranks);
        micro_batches.min(4 * period + micro_batches % period)
    }
}

/// Number and direction of the pass at a place of a list that begins with `first` forward passes,
/// goes on with one forward and one backward pass in turn, and ends with the backward passes that
/// are left of `all`.
fn in_turn(at: u64, first: u64, all: u64) -> (u64, bool) {
    if at < first {
        return (at, false);
    }
    let turn = (at - first) / 2;
    if first + turn < all {
        let backward = (at - first) % 2 == 1;
        (if backward { turn } else { first + turn }, backward)
    } else {
        (at - all, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All legal orders with up to 4 ranks, 3 chunks and 11 micro-batches.
    pub(crate) fn small_orders() -> Vec<(PassOrder, usize, u64)> {
        let mut found = Vec::new();
        for ranks in 1..=4 {
            for micro_batches in 1..=11 {
                found.push((PassOrder::OneForwardOneBackward, ranks, micro_batches));
                for chunks in 1..=3 {
                    for group in 1..=micro_batches {
                        let order = PassOrder::Interleaved { chunks, group };
                        if order.check(ranks, micro_batches).is_ok() {
                            found.push((order, ranks, micro_batches));
                        }
                    }
                }
            }
        }
        found
    }

    #[test]
    fn every_rank_runs_every_pass_of_its_stages_once() {
        for (order, ranks, micro_batches) in small_orders() {
            for rank in 0..ranks {
                let passes: Vec<Pass> = order.passes(ranks, micro_batches, rank).collect();
                let mut keys: Vec<(usize, u64, bool)> =
                    passes.iter().map(|p| (p.stage, p.micro_batch, p.backward)).collect();
                keys.sort_unstable();
                keys.dedup();
                let all = 2 * order.chunks() * usize::try_from(micro_batches).unwrap();
                assert_eq!((passes.len(), keys.len()), (all, all), "{order:?}");
                assert!(passes.iter().all(|pass| pass.stage % ranks == rank));
            }
        }
    }

    #[test]
    fn a_peak_over_few_periods_is_that_over_all() {
        for (order, ranks, _) in small_orders().into_iter().filter(|case| case.2 < 7) {
            for micro_batches in 1..60 {
                if order.check(ranks, micro_batches).is_err() {
                    continue;
                }
                let kept = |stage: usize| [7, 1, 4, 9, 2, 6][stage % 6];
                for rank in 0..ranks {
                    let (mut held, mut most) = (0_u128, 0);
                    for pass in order.passes(ranks, micro_batches, rank) {
                        let size: u128 = kept(pass.stage);
                        held = if pass.backward { held - size } else { held + size };
                        most = held.max(most);
                    }
                    assert_eq!(order.peak(ranks, micro_batches, rank, kept), most, "{order:?}");
                }
            }
        }
    }

    #[test]
    fn what_would_wait_for_ever_is_refused() {
        let interleaved = |chunks, group| PassOrder::Interleaved { chunks, group };
        let cases = [
            (interleaved(0, 2), 2, 4, "at least one rank"),
            (interleaved(2, 1), 1, 4, "at least 2 ranks"),
            (interleaved(2, 3), 4, 8, "groups of 3 micro-batches: allowed are 4 to 8"),
            (interleaved(2, 9), 4, 8, "allowed are 4 to 8"),
            (interleaved(2, 4), 4, 6, "the last group has 2 of 4"),
        ];
        for (order, ranks, micro_batches, said) in cases {
            let error = order.check(ranks, micro_batches).unwrap_err().to_string();
            assert!(error.contains(said), "{error} should say {said}");
        }
        assert_eq!(interleaved(2, 4).check(4, 8), Ok(()));
        assert_eq!(interleaved(2, 5).check(4, 9), Ok(()));
    }
}
