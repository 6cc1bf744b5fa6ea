//! How layers of one model differ from each other.

use serde::Deserialize;
use serde::Serialize;

/// Which tokens a token may attend to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// All of its sequence, up to itself where the model's tokens attend only to those before them.
    All,
    /// All of its sequence, also those after it.
    Every,
    /// So many before it, itself among them.
    Window(u64),
    /// Those of its chunk of so many tokens.
    Chunk(u64),
}

impl Reach {
    /// The tokens that it is limited to, if it is.
    pub fn tokens(self) -> Option<u64> {
        match self {
            Self::All | Self::Every => None,
            Self::Window(tokens) | Self::Chunk(tokens) => Some(tokens),
        }
    }

    /// Of `keys` tokens of a sequence of `sequence`, those that each token attends to on average:
    /// without what a causal mask hides if `causal`.
    ///
    /// A window of w tokens leaves s·w pairs, of which a causal mask hides w²/2 at the beginning of
    /// the sequence; chunks of w leave s·w, of which it hides half. As without a limit, the half of
    /// the diagonal is not counted. The keys of a part of a sequence are met in proportion.
    pub fn attended(self, keys: u64, sequence: u64, causal: bool) -> u64 {
        let limit = self.tokens().unwrap_or(sequence).min(sequence);
        let (keys, limit, sequence) = (u128::from(keys), u128::from(limit), u128::from(sequence));
        let (part, whole) = match (self, causal) {
            (_, false) | (Self::Every, true) => (limit, sequence),
            (Self::Window(_), true) => (limit * (2 * sequence - limit), 2 * sequence * sequence),
            (Self::All | Self::Chunk(_), true) => (limit, 2 * sequence),
        };
        u64::try_from((keys * part).div_ceil(whole)).expect("no more than all keys are met")
    }
}

/// What one layer has that others of its model may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Which tokens attention looks at.
    pub reach: Reach,
    /// Whether positions are turned into queries and keys, in models whose positions are rotary.
    pub rotary: bool,
    /// Whether experts stand in the place of the MLP, in models that have any.
    pub experts: bool,
}

impl Variant {
    /// A layer that attends to all tokens and knows their positions.
    pub const PLAIN: Self = Self { reach: Reach::All, rotary: true, experts: true };

    /// What a reader knows such layers by, beside all that a model has: by what not all have.
    pub fn name(self, all: &[Self]) -> String {
        let differ = |of: fn(&Self) -> Self| all.iter().any(|other| of(other) != of(&self));
        let mut parts: Vec<&str> = Vec::new();
        if differ(|variant| Self { reach: variant.reach, ..Self::PLAIN }) {
            parts.push(match self.reach {
                Reach::All | Reach::Every => "global",
                Reach::Window(_) => "local",
                Reach::Chunk(_) => "chunked",
            });
        }
        if differ(|variant| Self { experts: variant.experts, ..Self::PLAIN }) {
            parts.push(if self.experts { "experts" } else { "dense" });
        }
        if differ(|variant| Self { rotary: variant.rotary, ..Self::PLAIN }) {
            parts.push(if self.rotary { "placed" } else { "unplaced" });
        }
        if parts.is_empty() { "transformer".into() } else { parts.join("_") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of tokens that meet, one by one.
    fn pairs(reach: Reach, sequence: u64) -> u64 {
        let meets = |query: u64, key: u64| match reach {
            Reach::All => key <= query,
            Reach::Every => true,
            Reach::Window(tokens) => key <= query && query - key < tokens,
            Reach::Chunk(tokens) => key <= query && key / tokens == query / tokens,
        };
        let all = (0..sequence).flat_map(|query| (0..sequence).map(move |key| (query, key)));
        all.filter(|&(query, key)| meets(query, key)).count() as u64
    }

    #[test]
    fn pairs_are_counted_to_half_of_the_diagonal_and_a_key_per_token() {
        let sequence = 64;
        for reach in [Reach::All, Reach::Window(1), Reach::Window(24), Reach::Window(64)] {
            let counted = sequence * reach.attended(sequence, sequence, true);
            let exact = pairs(reach, sequence);
            assert!(counted + sequence > exact && counted <= exact + sequence, "{reach:?}");
        }
        for reach in [Reach::Chunk(8), Reach::Chunk(32), Reach::Chunk(64)] {
            let counted = sequence * reach.attended(sequence, sequence, true);
            assert_eq!(counted + sequence / 2, pairs(reach, sequence), "{reach:?}");
        }
    }

    #[test]
    fn a_limit_beyond_the_sequence_limits_nothing() {
        for causal in [false, true] {
            for keys in [1, 16, 63, 64] {
                let all = Reach::All.attended(keys, 64, causal);
                assert_eq!(Reach::Window(1000).attended(keys, 64, causal), all);
                assert_eq!(Reach::Chunk(1000).attended(keys, 64, causal), all);
                assert_eq!(all, if causal { keys.div_ceil(2) } else { keys });
            }
        }
    }

    #[test]
    fn without_a_mask_a_token_meets_as_many_as_the_limit_says() {
        assert_eq!(Reach::Window(24).attended(64, 64, false), 24);
        assert_eq!(Reach::Window(24).attended(16, 64, false), 6);
        assert_eq!(Reach::Chunk(32).attended(64, 64, false), 32);
        assert_eq!(Reach::Every.attended(64, 64, true), 64);
        assert_eq!(pairs(Reach::Every, 64), 64 * 64);
    }
}
