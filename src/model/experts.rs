//! Mixtures of experts and latent attention, by their numbers.

use serde::Deserialize;
use serde::Serialize;

/// How the second half of a layer is divided among experts, of which each token visits a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experts {
    /// How many there are.
    pub count: u64,
    /// How many each token visits.
    pub chosen: u64,
    /// Elements between the matmuls of one.
    pub mlp: u64,
    /// Elements between the matmuls of what every token visits besides, if there is such.
    pub shared: Option<u64>,
    /// Whether what every token visits besides is weighted, too.
    pub shared_is_weighted: bool,
    /// Whether the matmuls of experts add a bias.
    pub biases: bool,
    /// Whether the router adds a bias, and whether gradients reach it.
    pub router_bias: RouterBias,
    /// Thousandths of an even load that the fullest device has: 1,000 where tokens spread evenly,
    /// the capacity factor where rows are filled up to one.
    pub load_per_mille: u64,
    /// In which groups of experts a token may have its own, where that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<ExpertGroups>,
}

/// Groups of experts, of which each token visits a few only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertGroups {
    /// How many there are.
    pub count: u64,
    /// How many a token's experts are in at most.
    pub chosen: u64,
}

/// What the router adds to its logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouterBias {
    /// Nothing.
    None,
    /// A bias that is trained like any other.
    Trained,
    /// A bias that spreads the load and that no gradient reaches.
    Balancing,
}

impl Experts {
    /// Groups of experts that tokens are first sent to, once for each group that they visit, where
    /// experts are dealt out among so many devices: those groups that several devices have, of which
    /// tokens visit fewer than experts. One where tokens are sent to their experts at once.
    pub fn relays(&self, devices: u64) -> u64 {
        let groups = self.groups.filter(|groups| {
            groups.chosen < self.chosen.min(groups.count)
                && devices > groups.count
                && devices.is_multiple_of(groups.count)
        });
        groups.map_or(1, |groups| groups.count)
    }

    /// Rows that a device with so many tokens sends to groups of experts.
    pub fn relayed_rows(&self, tokens: u128) -> u64 {
        let copies = self.groups.map_or(self.chosen, |groups| groups.chosen.min(self.chosen));
        let loaded = tokens.saturating_mul(u128::from(copies) * u128::from(self.load_per_mille));
        u64::try_from(loaded.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// Rows of each expert where a device has so many tokens of a group of devices that together
    /// have all experts: `shares` is how many times as many tokens the rows come from.
    pub fn rows(&self, tokens: u128, shares: u64) -> u64 {
        let visits = tokens.saturating_mul(u128::from(self.chosen));
        let loaded = visits.saturating_mul(u128::from(self.load_per_mille) * u128::from(shares));
        let rows = loaded.div_ceil(1000 * u128::from(self.count));
        u64::try_from(rows).unwrap_or(u64::MAX)
    }
}

/// Attention whose queries, keys and values are made from a few latent elements of each token.
///
/// A head's elements are those that carry no position and those that carry it; the latter of keys
/// are the same for all heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latent {
    /// Latent elements of queries; none where they are made from the token itself.
    pub query: Option<u64>,
    /// Latent elements of keys and values.
    pub kv: u64,
    /// Elements of a value in each head.
    pub value: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_an_even_part_of_all_visits_rounded_up() {
        let even = Experts {
            count: 8,
            chosen: 2,
            mlp: 1,
            shared: None,
            shared_is_weighted: false,
            biases: false,
            router_bias: RouterBias::None,
            load_per_mille: 1000,
            groups: None,
        };
        assert_eq!(even.rows(4096, 1), 1024);
        assert_eq!(even.rows(4096, 4), 4096);
        assert_eq!(even.rows(3, 1), 1);
        let uneven = Experts { load_per_mille: 1200, ..even };
        assert_eq!(uneven.rows(4096, 1), 1229);
        assert_eq!(even.rows(u128::MAX, 8), u64::MAX, "what cannot be counted is refused later");
    }
}
