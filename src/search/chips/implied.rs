//! What corners say of corners that have more or less of the proved knobs, and more or fewer kin.
//!
//! Where everything is slower than a limit on the greatest chip of boxes, it is on every chip with no more of any
//! proved knob (docs/search.md, the corner), and so for all boxes whose greatest chip is one of these. Where a chip
//! reaches a limit, so does one that has more, unless a schedule was not proved: then a box is divided that might have
//! been closed, which is no harm.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;

use super::corners::Greatest;
use crate::strategy::Heard;
use crate::strategy::Reach;
use crate::strategy::Reached;
use crate::strategy::VariantName;
use crate::units::Time;

/// What was asked of a corner, and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Answered {
    greatest: Greatest,
    limit: Time,
    reach: Reach,
}

/// An answer that has not settled, with the variants that were slower than the limit, and the one that was not.
type Fresh = (Slice, Answered, Vec<VariantName>, Option<VariantName>);

/// An answer that has settled, with the numbers of these variants.
#[derive(Clone, Debug)]
struct Known {
    answered: Answered,
    slower: Box<[u32]>,
    by: Option<u32>,
}

/// A model, and the class of arrays.
type Slice = (usize, u64);

/// Answers that have settled.
#[derive(Default)]
struct Settled {
    by_slice: HashMap<Slice, Vec<Known>>,
    /// Variants by number: answers have many of them, and there are few.
    names: Vec<VariantName>,
    numbers: BTreeMap<VariantName, u32>,
}

/// Answers that speak for other corners too.
///
/// What is learned is heard of after it has [settled](Self::settle): between two batches of boxes, so that no answer
/// depends on which thread was first.
#[derive(Default)]
pub(super) struct Implied {
    settled: RwLock<Settled>,
    fresh: Mutex<Vec<Fresh>>,
}

impl Implied {
    /// Whether a corner may take at most `limit`, where what has settled tells.
    ///
    /// # Errors
    /// What is heard of variants, where it does not.
    pub(super) fn within(
        &self,
        model: usize,
        greatest: &Greatest,
        limit: Time,
    ) -> Result<Reach, Heard> {
        let settled = self.settled.read().unwrap_or_else(PoisonError::into_inner);
        let each = settled.by_slice.get(&(model, greatest.kin.class())).into_iter().flatten();
        let mut slower = BTreeSet::new();
        let mut first = None;
        let mut nearest = u32::MAX;
        for known in each {
            if let Some(reach) = known.answered.says(greatest, limit) {
                return Ok(reach);
            }
            if known.answered.limit >= limit && greatest.is_within(&known.answered.greatest) {
                slower.extend(&known.slower);
            }
            let away = greatest.steps_to(&known.answered.greatest);
            if known.by.is_some() && away < nearest {
                (first, nearest) = (known.by, away);
            }
        }
        let name = |number: u32| settled.names[number as usize];
        Err(Heard { slower: slower.into_iter().map(name).collect(), first: first.map(name) })
    }

    /// Takes up an answer.
    pub(super) fn learn(&self, model: usize, greatest: &Greatest, limit: Time, found: Reached) {
        let Reached { reach, slower, by } = found;
        let answered = Answered { greatest: *greatest, limit, reach };
        // Who would hear of variants from an answer that nothing is within the limit hears the answer itself.
        let slower = if matches!(reach, Reach::Within(_)) { slower } else { Vec::new() };
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.push(((model, greatest.kin.class()), answered, slower, by));
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
        for (slice, answered, slower, by) in fresh.drain(..) {
            let slower = slower.into_iter().map(|name| settled.number(name)).collect();
            let by = by.map(|name| settled.number(name));
            let known = settled.by_slice.entry(slice).or_default();
            known.retain(|known| !answered.implies(&known.answered));
            known.push(Known { answered, slower, by });
        }
    }
}

impl Settled {
    /// The number of a variant.
    fn number(&mut self, name: VariantName) -> u32 {
        let next = u32::try_from(self.names.len()).expect("there are fewer than 2³² variants");
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
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
    use crate::hardware::chip::CHIP_KNOBS;
    use crate::hardware::chip::Kin;
    use crate::plan::Recompute;

    fn corner(class: u64, stacks: u16, lanes: u64) -> Greatest {
        let mut point = [3; CHIP_KNOBS.len()];
        point[8] = stacks;
        Greatest { point, lanes, kin: Kin::example(class, 0b11) }
    }

    fn plain(reach: Reach) -> Reached {
        Reached { reach, slower: Vec::new(), by: None }
    }

    #[test]
    fn what_is_slower_is_heard_of_by_corners_within_and_the_nearest_tells_what_to_try_first() {
        let name = |division| (division, None, Recompute::None);
        let implied = Implied::default();
        let learn = |stacks, limit, slower: &[usize], by| {
            let slower = slower.iter().map(|&at| name(at)).collect();
            let reach = Reach::Within(Time(limit));
            let found = Reached { reach, slower, by: Some(name(by)) };
            implied.learn(0, &corner(1, stacks, 64), Time(limit), found);
        };
        learn(6, 100, &[1, 2], 7);
        learn(4, 80, &[2, 3], 8);
        implied.settle();
        let heard = |stacks, limit| {
            let heard = implied.within(0, &corner(1, stacks, 64), Time(limit)).unwrap_err();
            let slower: Vec<usize> = heard.slower.iter().map(|name| name.0).collect();
            (slower, heard.first.map(|name| name.0))
        };
        assert_eq!(heard(3, 79), (vec![1, 2, 3], Some(8)), "within both");
        assert_eq!(heard(5, 79), (vec![1, 2], Some(8)), "of two as near that with less");
        assert_eq!(heard(3, 90), (vec![1, 2], Some(8)), "a longer limit than that of the second");
        assert_eq!(heard(3, 101), (vec![], Some(8)), "a longer limit than that of both");
    }

    #[test]
    fn answers_speak_for_what_has_less_or_more_and_for_nothing_else() {
        assert!(CHIP_KNOBS[8].proved);
        let implied = Implied::default();
        implied.learn(0, &corner(1, 5, 64), Time(100), plain(Reach::Slower));
        implied.learn(0, &corner(1, 2, 32), Time(300), plain(Reach::Within(Time(200))));
        let early = implied.within(0, &corner(1, 4, 64), Time(90));
        assert_eq!(early, Err(Heard::default()), "it has not settled");
        implied.settle();
        let asked = |greatest, limit| implied.within(0, &greatest, Time(limit)).ok();
        assert_eq!(asked(corner(1, 4, 64), 90), Some(Reach::Slower));
        assert_eq!(asked(corner(1, 4, 64), 101), None, "it may take 101");
        assert_eq!(asked(corner(1, 4, 65), 90), None, "more lanes");
        assert_eq!(asked(corner(1, 6, 64), 90), None, "more stacks");
        assert_eq!(asked(corner(0, 4, 64), 90), None, "other arrays");
        assert_eq!(asked(corner(1, 3, 32), 200), Some(Reach::Within(Time(200))));
        assert_eq!(asked(corner(1, 3, 32), 199), None);
        assert_eq!(asked(corner(1, 1, 32), 200), None);
        assert!(implied.within(1, &corner(1, 4, 64), Time(90)).is_err(), "another model");
        let kin = |members, greatest| Greatest { kin: Kin::example(1, members), ..greatest };
        assert_eq!(asked(kin(0b10, corner(1, 4, 64)), 90), Some(Reach::Slower), "fewer kin");
        assert_eq!(asked(kin(0b110, corner(1, 4, 64)), 90), None, "another among them");
        assert_eq!(asked(kin(0b1, corner(1, 3, 32)), 200), None, "perhaps the other one");
        let more = kin(0b111, corner(1, 3, 32));
        assert_eq!(asked(more, 200), Some(Reach::Within(Time(200))), "one of more kin");
    }

    #[test]
    fn what_is_implied_is_kept_once() {
        let implied = Implied::default();
        for stacks in [2, 4, 3] {
            implied.learn(0, &corner(1, stacks, 64), Time(100), plain(Reach::Slower));
            implied.settle();
        }
        let settled = implied.settled.read().unwrap();
        let lens: Vec<usize> = settled.by_slice.values().map(Vec::len).collect();
        assert_eq!(lens, [2], "of 2, 4 and 3 stacks the first is implied by the second");
    }
}
