//! What corners say of corners that have more or less of the proved knobs, and more or fewer kin.
//!
//! Where everything is slower than a limit on the greatest chip of boxes, it is on every chip with no more of any
//! proved knob (docs/search.md, the corner), and so for all boxes whose greatest chip is one of these. Where a chip
//! reaches a limit, so does one that has more, unless a schedule was not proved: then a box is divided that might have
//! been closed, which is no harm.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;

use super::corners::Greatest;
use crate::strategy::Reach;
use crate::units::Time;

/// What was asked of a corner, and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Answered {
    greatest: Greatest,
    limit: Time,
    reach: Reach,
}

/// A model, and the class of arrays.
type Slice = (usize, u64);

/// Answers that speak for other corners too.
///
/// What is learned is heard of after it has [settled](Self::settle): between two batches of boxes, so that no answer
/// depends on which thread was first.
#[derive(Default)]
pub(super) struct Implied {
    settled: RwLock<HashMap<Slice, Vec<Answered>>>,
    fresh: Mutex<Vec<(Slice, Answered)>>,
}

impl Implied {
    /// Whether a corner may take at most `limit`, where what has settled tells.
    pub(super) fn within(&self, model: usize, greatest: &Greatest, limit: Time) -> Option<Reach> {
        let settled = self.settled.read().unwrap_or_else(PoisonError::into_inner);
        let mut each = settled.get(&(model, greatest.kin.class()))?.iter();
        each.find_map(|known| known.says(greatest, limit))
    }

    /// Takes up an answer.
    pub(super) fn learn(&self, model: usize, greatest: &Greatest, limit: Time, reach: Reach) {
        let answered = Answered { greatest: *greatest, limit, reach };
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.push(((model, greatest.kin.class()), answered));
    }

    /// Lets what was learned be heard.
    pub(super) fn settle(&self) {
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        if fresh.is_empty() {
            return;
        }
        // Threads learn in any order.
        fresh.sort_unstable();
        let mut settled = self.settled.write().unwrap_or_else(PoisonError::into_inner);
        for (slice, answered) in fresh.drain(..) {
            let known = settled.entry(slice).or_default();
            known.retain(|known| !answered.implies(known));
            known.push(answered);
        }
    }
}

impl Answered {
    /// Whether this says all that another answer of its slice does.
    fn implies(&self, other: &Self) -> bool {
        match (self.reach, other.reach) {
            (Reach::Within(_), Reach::Within(time)) => self.says(&other.greatest, time).is_some(),
            (Reach::Within(_), _) | (_, Reach::Within(_)) | (Reach::Slower, Reach::Nothing) => {
                false
            }
            _ => self.says(&other.greatest, other.limit).is_some(),
        }
    }

    /// What this says of another corner of its slice.
    fn says(&self, other: &Greatest, limit: Time) -> Option<Reach> {
        match self.reach {
            Reach::Nothing => other.is_within(&self.greatest).then_some(Reach::Nothing),
            Reach::Slower => {
                let speaks = self.limit >= limit && other.is_within(&self.greatest);
                speaks.then_some(Reach::Slower)
            }
            Reach::Within(time) => {
                let speaks = time <= limit && self.greatest.is_within(other);
                speaks.then_some(Reach::Within(time))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corner(tensor_cores: u16, stacks: u16, lanes: u64) -> Greatest {
        let mut point = [3; N_CHIP_KNOBS];
        (point[0], point[8]) = (tensor_cores, stacks);
        Greatest { point, lanes }
    }

    #[test]
    fn answers_speak_for_what_has_less_or_more_and_for_nothing_else() {
        assert_eq!((CHIP_KNOBS[0].proved, CHIP_KNOBS[8].proved), (false, true));
        let implied = Implied::default();
        implied.learn(0, &corner(1, 5, 64), Time(100), Reach::Slower);
        implied.learn(0, &corner(1, 2, 32), Time(300), Reach::Within(Time(200)));
        assert_eq!(implied.within(0, &corner(1, 4, 64), Time(90)), None, "it has not settled");
        implied.settle();
        let asked = |greatest, limit| implied.within(0, &greatest, Time(limit));
        assert_eq!(asked(corner(1, 4, 64), 90), Some(Reach::Slower));
        assert_eq!(asked(corner(1, 4, 64), 101), None, "it may take 101");
        assert_eq!(asked(corner(1, 4, 65), 90), None, "more lanes");
        assert_eq!(asked(corner(1, 6, 64), 90), None, "more stacks");
        assert_eq!(asked(corner(0, 4, 64), 90), None, "other arrays");
        assert_eq!(asked(corner(1, 3, 32), 200), Some(Reach::Within(Time(200))));
        assert_eq!(asked(corner(1, 3, 32), 199), None);
        assert_eq!(asked(corner(1, 1, 32), 200), None);
        assert_eq!(implied.within(1, &corner(1, 4, 64), Time(90)), None, "another model");
    }

    #[test]
    fn what_is_implied_is_kept_once() {
        let implied = Implied::default();
        for stacks in [2, 4, 3] {
            implied.learn(0, &corner(1, stacks, 64), Time(100), Reach::Slower);
            implied.settle();
        }
        let settled = implied.settled.read().unwrap();
        let lens: Vec<usize> = settled.values().map(Vec::len).collect();
        assert_eq!(lens, [2], "of 2, 4 and 3 stacks the first is implied by the second");
    }
}
