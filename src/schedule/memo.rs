//! Remembers the moments that a search has left behind, to recognise those that are no better.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hash::Hasher;

/// A task that runs at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub task: u8,
    pub spread: bool,
    pub end: u64,
}

/// Moments by the set of tasks that have started.
#[derive(Default)]
pub(super) struct Memo {
    /// The last moment remembered for each set.
    last: HashMap<u128, u32, BuildHasherDefault<Mix>>,
    moments: Vec<Moment>,
    running: Vec<Running>,
}

struct Moment {
    now: u64,
    first: u32,
    n_running: u32,
    /// The moment remembered before this one for the same set.
    before: Option<u32>,
}

impl Memo {
    /// Beyond this many moments nothing more is remembered: about 300 MB.
    const MOST: usize = 4_000_000;

    /// How many moments of a set are looked at, the last first: those are the most alike.
    const MOST_COMPARED: usize = 64;

    pub fn clear(&mut self) {
        self.last.clear();
        self.moments.clear();
        self.running.clear();
    }

    /// Whether a moment left behind was at least as good; if not, remembers this one.
    ///
    /// One is as good as another where the same tasks have started, it is no later, and each task
    /// that still runs in it at the later time also runs in the other, no shorter, in the same mode:
    /// whatever the other does next, it can do as well.
    pub fn knows_better(&mut self, started: u128, now: u64, running: &[Running]) -> bool {
        let mut at = self.last.get(&started).copied();
        for _ in 0..Self::MOST_COMPARED {
            let Some(index) = at else { break };
            let moment = &self.moments[index as usize];
            let first = moment.first as usize;
            let theirs = &self.running[first..first + moment.n_running as usize];
            if moment.now <= now && theirs.iter().all(|their| gone_or_sooner(their, now, running)) {
                return true;
            }
            at = moment.before;
        }
        if self.moments.len() < Self::MOST {
            self.remember(started, now, running);
        }
        false
    }

    fn remember(&mut self, started: u128, now: u64, running: &[Running]) {
        let narrow = |n: usize| u32::try_from(n).expect("at most 4 million moments of 128 tasks");
        let first = narrow(self.running.len());
        let index = narrow(self.moments.len());
        self.running.extend_from_slice(running);
        let before = self.last.insert(started, index);
        self.moments.push(Moment { now, first, n_running: narrow(running.len()), before });
    }
}

fn gone_or_sooner(their: &Running, now: u64, ours: &[Running]) -> bool {
    their.end <= now
        || ours.iter().any(|our| {
            our.task == their.task && their.end <= our.end && (our.spread || !their.spread)
        })
}

/// Mixes the bits of a set; sets are no secret, so speed is all that is asked of it.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u128(u128::from(byte));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    fn write_u128(&mut self, set: u128) {
        let half = (set >> 64) as u64;
        let mixed =
            (set as u64 ^ half.rotate_left(29) ^ self.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ mixed >> 29;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(end: u64, spread: bool) -> Running {
        Running { task: 1, spread, end }
    }

    #[test]
    fn only_a_moment_that_is_nowhere_worse_is_better() {
        let check = |now, running: &[Running]| {
            let mut memo = Memo::default();
            assert!(!memo.knows_better(0b11, 5, &[runs(9, true)]));
            memo.knows_better(0b11, now, running)
        };
        assert!(check(5, &[runs(9, true)]), "the same");
        assert!(check(6, &[runs(10, true)]), "later in everything");
        assert!(check(9, &[]), "it has ended by then");
        assert!(!check(4, &[runs(9, true)]), "earlier");
        assert!(!check(5, &[runs(8, true)]), "ends sooner");
        assert!(!check(5, &[runs(9, false)]), "leaves cores free");
        assert!(!check(8, &[]), "is already done");
    }

    #[test]
    fn sets_are_kept_apart() {
        let mut memo = Memo::default();
        assert!(!memo.knows_better(1, 0, &[]));
        assert!(!memo.knows_better(1 << 64, 0, &[]));
        assert!(memo.knows_better(1, 0, &[]));
    }
}
