//! What is known of one model on one design, as journals and shards keep it.

use serde::Deserialize;
use serde::Serialize;

use crate::strategy::Chosen;
use crate::units::Time;

/// What is known of one model on one design with one size of off-chip memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The best way to train.
    Chosen(Box<Chosen>),
    /// Every way to train is slower than this.
    Slower(Time),
    /// Nothing fits.
    Nothing,
}

impl Fact {
    /// The name under which a fact is kept.
    pub fn key(model: usize, hbm: usize, design: usize) -> String {
        format!("{model}/{hbm}/{design}")
    }

    /// What is to be said where ways to train that are slower than `limit` need not be known;
    /// `None` where this does not tell.
    pub fn within(self, limit: Option<Time>) -> Option<Self> {
        match (self, limit) {
            // Where a schedule is not proved, its best might still be within the limit.
            (Self::Chosen(chosen), Some(limit))
                if chosen.standing.time > limit && chosen.least_price > limit.0.into() =>
            {
                Some(Self::Slower(limit))
            }
            (Self::Slower(known), Some(limit)) => (known >= limit).then_some(Self::Slower(limit)),
            // Under a limit, whether something slower fits is not looked for.
            (Self::Slower(_), None) | (Self::Nothing, Some(_)) => None,
            (known, _) => Some(known),
        }
    }

    /// Whether this tells all that another fact of the same design tells.
    pub fn tells_more_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Slower(known), Self::Slower(other)) => known > other,
            (Self::Slower(_), _) => false,
            (_, other) => matches!(other, Self::Slower(_)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_without_a_limit_tells_more_than_a_limit() {
        let [short, long] = [Fact::Slower(Time(5)), Fact::Slower(Time(9))];
        assert!(long.tells_more_than(&short) && !short.tells_more_than(&long));
        assert!(Fact::Nothing.tells_more_than(&long) && !long.tells_more_than(&Fact::Nothing));
        assert!(!long.tells_more_than(&long));
        assert_eq!(long.clone().within(Some(Time(7))), Some(Fact::Slower(Time(7))));
        assert_eq!(short.within(Some(Time(7))), None);
        assert_eq!(Fact::Nothing.within(None), Some(Fact::Nothing));
    }
}
