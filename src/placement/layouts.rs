//! Ways to deal the layers of a chain to virtual stages: how many each holds, none empty.

/// Subsets of longer inner stages beyond this many are not all tried.
const MOST_SUBSETS: u128 = 2000;

/// How many layouts of `n_layers` in `n_stages` there are; the largest number where more.
pub(super) fn count(n_layers: usize, n_stages: usize) -> u128 {
    if n_stages == 0 || n_stages > n_layers { 0 } else { choose(n_layers - 1, n_stages - 1) }
}

/// Whether there are at most so many layouts of `n_layers` in `n_stages`.
pub(super) fn are_at_most(n_layers: usize, n_stages: usize, most: u64) -> bool {
    if n_stages == 0 || n_stages > n_layers {
        return true;
    }
    let (n, k) = (n_layers - 1, n_stages - 1);
    // Subsets of more members are more, up to half of all.
    let mut found = 1_u64;
    for i in 0..k.min(n - k) {
        found = found.saturating_mul((n - i) as u64) / (i as u64 + 1);
        if found > most {
            return false;
        }
    }
    found <= most
}

/// The number of subsets of k among n; the largest number where more.
fn choose(n: usize, k: usize) -> u128 {
    let mut found = 1_u128;
    for i in 0..k.min(n - k) {
        found = match found.checked_mul((n - i) as u128) {
            Some(product) => product / (i as u128 + 1),
            None => return u128::MAX,
        };
    }
    found
}

/// The layers of each virtual stage: from the first to one after the last.
pub(super) fn ranges(sizes: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    sizes.iter().scan(0, |at, &size| {
        let from = *at;
        *at += size;
        Some((from, *at))
    })
}

/// The even layouts of a chain whose first layer is the embedding and whose last is the head: as
/// many layers in every virtual stage, where the embedding and the head each count as one of them
/// or come on top. Those that come out even, the least counted first.
pub fn even_layouts(n_layers: usize, n_stages: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    for (embedding, head) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let Some(counted) = (n_layers + embedding + head).checked_sub(2) else { continue };
        if n_stages < 2 || counted == 0 || counted % n_stages != 0 {
            continue;
        }
        let mut sizes = vec![counted / n_stages; n_stages];
        sizes[0] += 1 - embedding;
        sizes[n_stages - 1] += 1 - head;
        found.push(sizes);
    }
    found
}

/// Layouts that have the first and the last stage in common, and the fewest layers of one between.
/// As many of those between hold one layer more: any of them while there are at most 2,000 ways,
/// else neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub first: usize,
    pub last: usize,
    pub between: usize,
    n_longer: usize,
    in_a_row: bool,
}

/// The parts of the family of layouts whose stages between the first and the last differ by one
/// layer at most, and from the first and the last by at most `near`.
pub(super) fn parts(n_layers: usize, n_stages: usize, near: usize) -> impl Iterator<Item = Part> {
    let inner = n_stages.saturating_sub(2);
    let most = if inner > 0 { n_layers.saturating_sub(inner) } else { 0 };
    (1..most)
        .flat_map(move |first| {
            (1..=most - first).map(move |last| {
                let rest = n_layers - first - last;
                let n_longer = rest % inner;
                let in_a_row = choose(inner, n_longer) > MOST_SUBSETS;
                Part { first, last, between: rest / inner, n_longer, in_a_row }
            })
        })
        .filter(move |part| {
            let is_near = |size: usize| size.abs_diff(part.between) <= near;
            is_near(part.first) && is_near(part.last)
        })
}

/// Who is dealt layers, stage by stage.
pub(super) trait Dealt {
    /// Takes what the next stage would hold, unless there is no hope with it.
    fn takes(&mut self, stage: usize, layers: (usize, usize)) -> bool;
    /// Gives back what it took last.
    fn gives_back(&mut self, stage: usize, layers: (usize, usize));
    /// Has taken every stage.
    fn is_complete(&mut self, sizes: &[usize]);
}

/// Deals every layout, or every one of a part, to `dealt`, shorter stages first; what it does not
/// take is not gone on with.
pub(super) fn deal(n_layers: usize, n_stages: usize, part: Option<Part>, dealt: &mut impl Dealt) {
    if n_stages == 0 || n_stages > n_layers {
        return;
    }
    let mut dealer = Dealer { n_layers, n_stages, part, sizes: Vec::new(), dealt };
    dealer.go_on(0, part.map_or(0, |part| part.n_longer));
}

struct Dealer<'a, D> {
    n_layers: usize,
    n_stages: usize,
    part: Option<Part>,
    sizes: Vec<usize>,
    dealt: &'a mut D,
}

impl<D: Dealt> Dealer<'_, D> {
    /// Deals what is left from layer `from` on, with so many longer stages still to come.
    fn go_on(&mut self, from: usize, longer: usize) {
        let stage = self.sizes.len();
        let n_after = self.n_stages - 1 - stage;
        let left = self.n_layers - from;
        let (least, most) = match self.part {
            _ if n_after == 0 => (left, left),
            None => (1, left - n_after),
            Some(part) if stage == 0 => (part.first, part.first),
            Some(part) => {
                let begun = part.in_a_row && longer < part.n_longer;
                let must = longer == n_after || begun && longer > 0;
                let may = longer > 0;
                (part.between + usize::from(must), part.between + usize::from(may))
            }
        };
        for size in least..=most {
            if !self.dealt.takes(stage, (from, from + size)) {
                continue;
            }
            self.sizes.push(size);
            if n_after == 0 {
                self.dealt.is_complete(&self.sizes);
            } else {
                let inner = self.part.filter(|_| stage > 0);
                let is_longer = inner.is_some_and(|part| size > part.between);
                self.go_on(from + size, longer - usize::from(is_longer));
            }
            self.sizes.pop();
            self.dealt.gives_back(stage, (from, from + size));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Listed(Vec<Vec<usize>>);

    impl Dealt for Listed {
        fn takes(&mut self, _: usize, _: (usize, usize)) -> bool {
            true
        }

        fn gives_back(&mut self, _: usize, _: (usize, usize)) {}

        fn is_complete(&mut self, sizes: &[usize]) {
            self.0.push(sizes.to_vec());
        }
    }

    fn listed(n_layers: usize, n_stages: usize, part: Option<Part>) -> Vec<Vec<usize>> {
        let mut listed = Listed::default();
        deal(n_layers, n_stages, part, &mut listed);
        listed.0
    }

    fn are_layouts(found: &[Vec<usize>], n_layers: usize, n_stages: usize) -> bool {
        let mut once = found.to_vec();
        once.sort();
        once.dedup();
        let sound = |sizes: &Vec<usize>| {
            sizes.len() == n_stages
                && sizes.iter().sum::<usize>() == n_layers
                && !sizes.contains(&0)
        };
        once.len() == found.len() && found.iter().all(sound)
    }

    #[test]
    fn every_layout_is_there_once() {
        for n_layers in 1..9 {
            for n_stages in 1..=n_layers {
                let found = listed(n_layers, n_stages, None);
                assert_eq!(found.len() as u128, count(n_layers, n_stages));
                assert!(are_layouts(&found, n_layers, n_stages));
            }
        }
        assert!(listed(3, 4, None).is_empty());
    }

    #[test]
    fn a_family_varies_the_ends_and_the_longer_stages_between() {
        let found: Vec<_> = parts(7, 4, 9).flat_map(|part| listed(7, 4, Some(part))).collect();
        assert!(are_layouts(&found, 7, 4));
        assert!(found.contains(&vec![1, 2, 3, 1]) && found.contains(&vec![1, 3, 2, 1]));
        assert!(found.contains(&vec![4, 1, 1, 1]) && !found.contains(&vec![1, 1, 4, 1]));
        // Half of 22 are too many subsets: neighbours only.
        let part = |n_longer: usize| {
            let wanted = |part: &Part| (part.first, part.last) == (1, 1);
            let n_layers = 2 + 22 + n_longer;
            listed(n_layers, 24, parts(n_layers, 24, 9).find(wanted))
        };
        assert_eq!((part(11).len(), part(2).len(), part(0).len()), (12, 231, 1));
        assert!(are_layouts(&part(11), 35, 24));
    }

    #[test]
    fn even_layouts_count_the_embedding_and_the_head_or_do_not() {
        assert_eq!(even_layouts(10, 4), [[3, 2, 2, 3]]);
        assert_eq!(even_layouts(9, 4), [[3, 2, 2, 2], [2, 2, 2, 3]]);
        assert_eq!(even_layouts(8, 4), [[2; 4]]);
        assert!(even_layouts(7, 4).is_empty() && even_layouts(1, 1).is_empty());
    }
}
