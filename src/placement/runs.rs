//! Which stages of a chain are alike: runs of layers of one kind between edges of one size.

use super::Problem;
use crate::plan::Profile;
use crate::plan::Recompute;

/// Which layers a stage holds, told alike for stages of the same kinds of layers.
pub(super) type Content = [usize; 3];

/// Where runs of layers of one kind end, for telling stages alike.
pub(super) struct Runs {
    kinds: Vec<usize>,
    /// For each layer, one after the last of its run; empty where stages are not told alike.
    ends: Vec<usize>,
    /// For each layer, and for what is after the last: which of all sizes enters it, from 1 on; 0
    /// where nothing does.
    entering: Vec<usize>,
    is_flat: bool,
}

/// How many sizes of edges are told apart: more do not occur together.
const MOST_SIZES: usize = 256;

impl Runs {
    pub(super) fn new(problem: &Problem) -> Self {
        Self::of(problem.profile)
    }

    /// The runs of a profile.
    pub(super) fn of(profile: &Profile) -> Self {
        let kinds = profile.sequence.clone();
        let mut sizes: Vec<(u64, u64)> =
            profile.edges.iter().map(|edge| (edge.size, edge.sent())).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if !profile.is_plain_chain() || sizes.len() >= MOST_SIZES {
            return Self { kinds, ends: Vec::new(), entering: Vec::new(), is_flat: false };
        }
        let n = kinds.len();
        let mut entering = vec![0; n + 1];
        for edge in &profile.edges {
            entering[edge.to] =
                1 + sizes.partition_point(|&known| known < (edge.size, edge.sent()));
        }
        let mut ends = vec![n; n];
        for at in (1..n).rev() {
            let is_alike = kinds[at - 1] == kinds[at] && entering[at - 1] == entering[at];
            ends[at - 1] = if is_alike { ends[at] } else { at };
        }
        Self { kinds, ends, entering, is_flat: sizes.len() <= 1 }
    }

    /// Whether as much travels between any two layers of a chain.
    pub(super) fn is_flat(&self) -> bool {
        self.is_flat
    }

    /// Whether memory alone tells what fits: what a layer of a chain keeps, repeated or not, does not
    /// depend on the stage that it is in, so that of layers that fit in a stage any that follow each
    /// other fit in any later one. Where a stage keeps what enters it and nothing else, what it keeps
    /// depends on where it begins.
    pub(super) fn tell_what_fits(&self, recompute: Recompute) -> bool {
        self.is_uniform() || !self.ends.is_empty() && recompute != Recompute::Stage
    }

    /// Whether all layers between the first and the last are of one kind.
    pub(super) fn is_uniform(&self) -> bool {
        let n = self.kinds.len();
        n < 3 || self.is_flat && self.ends.get(1).is_some_and(|&end| end + 1 >= n)
    }

    /// What a stage of these layers costs depends on this and on its place alone.
    pub(super) fn content(&self, from: usize, to: usize) -> Content {
        match self.ends.get(from) {
            Some(&end) if from > 0 && to <= end => {
                let edges = self.entering[from] * MOST_SIZES + self.entering[to];
                [1 + self.kinds[from], to - from, edges]
            }
            _ => [0, from, to],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Edge;

    #[test]
    fn stages_are_alike_where_kinds_and_edges_are() {
        let mut profile = Profile {
            width: 1,
            context: 1,
            expert_devices: None,
            kinds: Vec::new(),
            sequence: vec![0, 1, 1, 1, 1, 1, 1, 2],
            ids: (0..8).collect(),
            edges: (1..8).map(|to| Edge::new(to - 1, to, 5)).collect(),
            tied: 0,
        };
        let flat = Runs::of(&profile);
        assert!(flat.is_flat() && flat.is_uniform());
        assert_eq!(flat.content(1, 3), flat.content(4, 6));
        profile.edges[6].size = 9;
        let last = Runs::of(&profile);
        assert!(!last.is_flat() && !last.is_uniform());
        assert_eq!(last.content(1, 3), last.content(4, 6));
        assert_ne!(last.content(1, 3), last.content(5, 7), "what leaves it differs");
        profile.edges[3].size = 9;
        let inner = Runs::of(&profile);
        assert_ne!(inner.content(1, 3), inner.content(2, 4), "what leaves it differs");
        assert_ne!(inner.content(1, 3), inner.content(3, 5), "what is inside differs");
        assert_eq!(inner.content(1, 2), inner.content(2, 3));
    }
}
