//! Partial schedules with the same number of tasks started, as far as what follows depends on them.
//!
//! A front keeps only those that no other is at least as good as.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hash::Hasher;

use super::job::Amount;

/// How many credit functions each state keeps account of.
pub(super) const LEDGERS: usize = 3;

/// A task that runs at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub task: u8,
    pub spread: bool,
    pub end: u64,
}

/// The last start of a partial schedule, and those before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// Number of the step before, if any.
    pub before: Option<u32>,
    pub task: u8,
    pub spread: bool,
    pub start: u64,
}

/// A moment of a partial schedule, its runs apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub now: u64,
    pub started: u128,
    pub finished: u128,
    /// Tasks that have not started and wait for nobody.
    pub ready: u128,
    pub free: Amount,
    /// Credit of all tasks that have not started, by ledger.
    pub waiting: [u64; LEDGERS],
    /// No schedule that begins like this ends before.
    pub bound: u64,
    /// When the credit of the first ledger is earned if nothing more is wasted: what two states of
    /// the same bound are ranked by.
    pub promise: u64,
    pub step: Step,
}

/// States that are not worse than one another.
#[derive(Default)]
pub(super) struct Front {
    entries: Vec<Entry>,
    runs: Vec<Running>,
    /// The last entry for each set of started tasks.
    last: HashMap<u128, u32, BuildHasherDefault<Mix>>,
}

#[derive(Clone, Copy)]
struct Entry {
    state: State,
    first_run: u32,
    n_runs: u32,
    /// The entry before this one for the same set of started tasks.
    before: Option<u32>,
    /// Whether one that came later is at least as good.
    surpassed: bool,
}

impl Front {
    /// How many states of a set are compared, the last first: those are the most alike.
    const MOST_COMPARED: usize = 64;

    pub fn clear(&mut self) {
        self.entries.clear();
        self.runs.clear();
        self.last.clear();
    }

    /// The state of a place, with its runs.
    pub fn get(&self, place: u32) -> (&State, &[Running]) {
        let entry = &self.entries[place as usize];
        (&entry.state, self.runs_of(entry))
    }

    fn runs_of(&self, entry: &Entry) -> &[Running] {
        &self.runs[entry.first_run as usize..][..entry.n_runs as usize]
    }

    /// Takes a state in, unless one that is here is at least as good.
    pub fn offer(&mut self, state: &State, runs: &[Running]) {
        let place = narrow(self.entries.len());
        let before = self.last.get(&state.started).copied();
        let mut at = before;
        for _ in 0..Self::MOST_COMPARED {
            let Some(index) = at else { break };
            let entry = &self.entries[index as usize];
            at = entry.before;
            if entry.surpassed {
                continue;
            }
            let theirs = self.runs_of(entry);
            if as_good(entry.state.now, theirs, state.now, runs) {
                return;
            }
            if as_good(state.now, runs, entry.state.now, theirs) {
                self.entries[index as usize].surpassed = true;
            }
        }
        self.last.insert(state.started, place);
        let (first_run, n_runs) = (narrow(self.runs.len()), narrow(runs.len()));
        self.runs.extend_from_slice(runs);
        self.entries.push(Entry { state: *state, first_run, n_runs, before, surpassed: false });
    }

    /// The places of the `width` most promising states, best first, and the least bound of those
    /// that are left out.
    pub fn best(&self, width: usize) -> (Vec<u32>, Option<u64>) {
        let rank = |&place: &u32| {
            let State { bound, promise, .. } = self.entries[place as usize].state;
            (bound, promise, place)
        };
        let mut places: Vec<u32> = (0..narrow(self.entries.len()))
            .filter(|&place| !self.entries[place as usize].surpassed)
            .collect();
        let mut left_out = None;
        if places.len() > width {
            places.select_nth_unstable_by_key(width, rank);
            left_out = Some(self.entries[places[width] as usize].state.bound);
            places.truncate(width);
        }
        places.sort_unstable_by_key(rank);
        (places, left_out)
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).expect("a front is smaller than the node limit")
}

/// Whether a moment is as good as a later one in which the same tasks have started: each of its
/// tasks that still runs then also runs in the other, no shorter, and holds no more.
/// Whatever the other does next, it can do as well.
fn as_good(now: u64, runs: &[Running], other_now: u64, other_runs: &[Running]) -> bool {
    let covered = |run: &Running| {
        run.end <= other_now
            || other_runs.iter().any(|other| {
                other.task == run.task && run.end <= other.end && (other.spread || !run.spread)
            })
    };
    now <= other_now && runs.iter().all(covered)
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

    fn state(started: u128, now: u64) -> State {
        State {
            now,
            started,
            finished: 0,
            ready: 0,
            free: Amount::default(),
            waiting: [0; LEDGERS],
            bound: now,
            promise: 0,
            step: Step::default(),
        }
    }

    fn run(end: u64, spread: bool) -> Running {
        Running { task: 1, spread, end }
    }

    #[test]
    fn of_two_states_the_one_that_is_nowhere_worse_stays() {
        let check = |now, running: &[Running]| {
            let mut front = Front::default();
            front.offer(&state(0b11, 5), &[run(9, true)]);
            front.offer(&state(0b11, now), running);
            let (kept, _) = front.best(9);
            kept.iter().map(|&place| front.get(place).0.now).collect::<Vec<u64>>()
        };
        assert_eq!(check(5, &[run(9, true)]), [5], "the same");
        assert_eq!(check(6, &[run(10, true)]), [5], "later in everything");
        assert_eq!(check(9, &[]), [5], "it has ended by then");
        assert_eq!(check(4, &[run(9, true)]), [4], "earlier");
        assert_eq!(check(5, &[run(8, true)]).len(), 1, "ends sooner");
        assert_eq!(check(5, &[run(9, false)]).len(), 1, "leaves cores free");
        assert_eq!(check(8, &[]), [5, 8], "later, but already done");
    }

    #[test]
    fn sets_are_kept_apart() {
        let mut front = Front::default();
        for set in [1, 1 << 64, 1] {
            front.offer(&state(set, 0), &[]);
        }
        assert_eq!(front.best(9).0.len(), 2);
    }

    #[test]
    fn the_least_bound_left_out_is_told() {
        let mut front = Front::default();
        for now in [7, 3, 5] {
            front.offer(&state(1 << now, now), &[]);
        }
        assert_eq!(front.best(3), (vec![1, 2, 0], None));
        assert_eq!(front.best(2), (vec![1, 2], Some(7)));
        assert_eq!(front.best(1), (vec![1], Some(5)));
    }
}
