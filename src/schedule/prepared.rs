//! What depends on a layer's graph alone, worked out once and used for thousands of time vectors.
//!
//! Operators that cost nothing are contracted: only the order that they carry stays. The rest is
//! cut in series wherever all before come before all after; an operator that is comparable to all
//! others is a part of its own. Schedules of the parts, one after another, make the schedule of
//! the whole, and no schedule is lost: nothing of a later part can start before the earlier ended.

use crate::graph::Dag;
use crate::graph::NodeId;
use crate::model::op::CoreKind;
use crate::plan::schedule::Task;

/// A graph with more nodes is not split: reachability takes a bit for every pair.
const MOST_NODES_TO_SPLIT: usize = 4096;

/// The most tasks of a block that is searched: its sets of tasks are the bits of one word.
pub(super) const WORD: usize = 128;

/// Blocks with more maximal sets of incomparable tasks use the whole block as the only one:
/// bounds stay sound but become weaker.
const MOST_ANTICHAINS: usize = 16_384;

/// A graph made ready for scheduling.
#[derive(Clone, Debug)]
pub struct Prepared {
    graph: Dag<CoreKind>,
    /// In the order in which they run.
    pub(super) parts: Vec<Part>,
    /// Tasks that cost nothing, each after its predecessors.
    pub(super) costless: Vec<u32>,
    /// Whether the graph is too large to be split: then it is one block, with nothing contracted.
    whole: bool,
}

/// A piece of the graph that runs before the next piece starts.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A task that is comparable to all others.
    Single(u32),
    /// Tasks each of which is incomparable to another.
    Block(Block),
}

/// Tasks that are scheduled together.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Index of each task in the graph; the order is topological.
    pub tasks: Vec<u32>,
    /// What each task holds.
    pub core: Vec<CoreKind>,
    /// Direct successors of each task within the block.
    pub successors: Vec<Vec<u32>>,
    /// How many direct predecessors each task has within the block.
    pub n_predecessors: Vec<u32>,
    /// Sets of tasks as words; `None` where the block is too large for them.
    pub sets: Option<Sets>,
}

/// Who comes before whom in a block of at most [`WORD`] tasks.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    /// All tasks before each task.
    pub before: Vec<u128>,
    /// All tasks after each task.
    pub after: Vec<u128>,
    /// Sets such that all tasks that ever run at one time lie within one of them.
    pub antichains: Vec<Antichain>,
}

/// Tasks that may run at one time, as far as the graph says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Antichain {
    /// The tasks.
    pub tasks: u128,
    /// How many need a tensor core, fused ones included.
    pub tensor: u32,
    /// How many need a vector core, fused ones included.
    pub vector: u32,
    /// Whether one needs the network.
    pub network: bool,
}

impl Prepared {
    /// Prepares a graph of core kinds; tasks of kind `none` cost nothing.
    pub fn new(graph: Dag<CoreKind>) -> Self {
        let costless: Vec<bool> =
            graph.nodes().iter().map(|&core| core == CoreKind::None).collect();
        Self::contracted(graph, &costless)
    }

    /// The same with exactly the tasks contracted that cost nothing by these times.
    pub(super) fn with_times(&self, tasks: &[Task]) -> Self {
        let costless: Vec<bool> = tasks.iter().map(|task| task.fastest() == 0).collect();
        Self::contracted(self.graph.clone(), &costless)
    }

    /// Whether exactly those tasks are contracted that cost nothing by these times.
    pub(super) fn suits(&self, tasks: &[Task]) -> bool {
        assert_eq!(tasks.len(), self.graph.len(), "one time for each task of the graph");
        let n_costless = tasks.iter().filter(|task| task.fastest() == 0).count();
        self.whole
            || n_costless == self.costless.len()
                && self.costless.iter().all(|&task| tasks[task as usize].fastest() == 0)
    }

    fn contracted(graph: Dag<CoreKind>, costless: &[bool]) -> Self {
        if graph.len() > MOST_NODES_TO_SPLIT {
            let parts = vec![Part::Block(whole(&graph))];
            return Self { graph, parts, costless: Vec::new(), whole: true };
        }
        let (costless, costed): (Vec<NodeId>, Vec<NodeId>) =
            graph.ids().partition(|id| costless[id.index()]);
        let before = Before::new(&graph, &costed);
        let parts = before
            .cuts()
            .windows(2)
            .map(|range| {
                let ids = &costed[range[0]..range[1]];
                match ids {
                    [id] => Part::Single(number(*id)),
                    _ => Part::Block(before.block(&graph, ids, range[0])),
                }
            })
            .collect();
        let costless = costless.into_iter().map(number).collect();
        Self { graph, parts, costless, whole: false }
    }

    /// How many tasks the largest part has that cannot be cut further.
    pub fn largest_block(&self) -> usize {
        let size = |part: &Part| match part {
            Part::Single(_) => 1,
            Part::Block(block) => block.tasks.len(),
        };
        self.parts.iter().map(size).max().unwrap_or(0)
    }
}

fn number(id: NodeId) -> u32 {
    u32::try_from(id.index()).expect("a graph has fewer than 2^32 nodes")
}

/// The whole graph as one block, tasks that cost nothing included.
fn whole(graph: &Dag<CoreKind>) -> Block {
    let successors =
        |id| graph.successors(id).iter().map(|&successor| number(successor)).collect::<Vec<u32>>();
    let n_predecessors = |id| u32::try_from(graph.predecessors(id).len()).expect("few nodes");
    Block {
        tasks: graph.ids().map(number).collect(),
        core: graph.nodes().to_vec(),
        successors: graph.ids().map(successors).collect(),
        n_predecessors: graph.ids().map(n_predecessors).collect(),
        sets: None,
    }
}

/// Which costed task comes before which, one row of words per task.
struct Before {
    n_words: usize,
    rows: Vec<u64>,
    n_tasks: usize,
}

impl Before {
    fn new(graph: &Dag<CoreKind>, costed: &[NodeId]) -> Self {
        let reach = graph.reachability();
        let (n_tasks, n_words) = (costed.len(), costed.len().div_ceil(64));
        let mut rows = vec![0_u64; n_words * n_tasks];
        for (late, &late_id) in costed.iter().enumerate() {
            for (early, &early_id) in costed[..late].iter().enumerate() {
                if reach.comes_before(early_id, late_id) {
                    rows[late * n_words + early / 64] |= 1 << (early % 64);
                }
            }
        }
        Self { n_words, rows, n_tasks }
    }

    fn row(&self, task: usize) -> &[u64] {
        &self.rows[task * self.n_words..(task + 1) * self.n_words]
    }

    fn comes_before(&self, early: usize, late: usize) -> bool {
        self.row(late)[early / 64] >> (early % 64) & 1 == 1
    }

    /// How many of the first tasks all come before `task`.
    fn leading(&self, task: usize) -> usize {
        let full = self.row(task).iter().take_while(|&&word| word == u64::MAX).count();
        full * 64 + self.row(task).get(full).map_or(0, |word| word.trailing_ones() as usize)
    }

    /// Where the order can be cut so that all before come before all after, with both ends.
    ///
    /// If such a cut exists, every topological order lists the tasks before it first, so the one
    /// at hand shows all of them.
    fn cuts(&self) -> Vec<usize> {
        let mut cuts = vec![self.n_tasks];
        let mut least_leading = usize::MAX;
        for task in (1..self.n_tasks).rev() {
            least_leading = least_leading.min(self.leading(task));
            if least_leading >= task {
                cuts.push(task);
            }
        }
        if self.n_tasks > 0 {
            cuts.push(0);
        }
        cuts.reverse();
        cuts
    }

    /// The block of `ids`, which are the costed tasks from number `first` on.
    fn block(&self, graph: &Dag<CoreKind>, ids: &[NodeId], first: usize) -> Block {
        let n = ids.len();
        let before = |early: usize, late: usize| self.comes_before(first + early, first + late);
        let mut successors = vec![Vec::new(); n];
        let mut n_predecessors = vec![0; n];
        // All that come before one of the direct predecessors found so far.
        let mut reached = vec![0_u64; self.n_words];
        for (late, n_predecessors) in n_predecessors.iter_mut().enumerate() {
            reached.fill(0);
            // Those in between are met first.
            for early in (0..late).rev().filter(|&early| before(early, late)) {
                let bit = first + early;
                if reached[bit / 64] >> (bit % 64) & 1 == 0 {
                    successors[early].push(u32::try_from(late).expect("a block is small"));
                    *n_predecessors += 1;
                    let row = self.row(first + early);
                    reached.iter_mut().zip(row).for_each(|(reached, row)| *reached |= row);
                }
            }
        }
        let core: Vec<CoreKind> = ids.iter().map(|&id| *graph.node(id)).collect();
        let sets = (n <= WORD).then(|| Sets::new(&core, before));
        let tasks = ids.iter().map(|&id| number(id)).collect();
        Block { tasks, core, successors, n_predecessors, sets }
    }
}

impl Sets {
    fn new(core: &[CoreKind], comes_before: impl Fn(usize, usize) -> bool) -> Self {
        let n = core.len();
        let mut before = vec![0_u128; n];
        let mut after = vec![0_u128; n];
        for (late, before) in before.iter_mut().enumerate() {
            for early in (0..late).filter(|&early| comes_before(early, late)) {
                *before |= 1 << early;
                after[early] |= 1 << late;
            }
        }
        let all = if n == WORD { u128::MAX } else { (1 << n) - 1 };
        let beside: Vec<u128> =
            (0..n).map(|task| all & !before[task] & !after[task] & !(1 << task)).collect();
        let mut found = Vec::new();
        maximal(&beside, 0, all, 0, &mut found);
        if found.len() > MOST_ANTICHAINS {
            found = vec![all];
        }
        let antichains = found.into_iter().map(|tasks| Antichain::new(tasks, core)).collect();
        Self { before, after, antichains }
    }
}

impl Antichain {
    fn new(tasks: u128, core: &[CoreKind]) -> Self {
        let count = |kind: CoreKind| {
            let needs = |task: &usize| core[*task] == kind || core[*task] == CoreKind::Both;
            u32::try_from(bits(tasks).filter(needs).count()).expect("a word has few bits")
        };
        Self {
            tasks,
            tensor: count(CoreKind::Tensor),
            vector: count(CoreKind::Vector),
            network: bits(tasks).any(|task| core[task] == CoreKind::Network),
        }
    }
}

/// The members of a set, in order.
pub(super) fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (bit < WORD).then_some(bit)
    })
}

/// Finds every largest set of tasks that are all beside each other (Bron and Kerbosch's way, with
/// a pivot), until there are too many. `chosen` grows by tasks of `open`; sets with a task of
/// `closed` were found before.
fn maximal(beside: &[u128], chosen: u128, mut open: u128, mut closed: u128, found: &mut Vec<u128>) {
    if found.len() > MOST_ANTICHAINS {
        return;
    }
    if open | closed == 0 {
        found.push(chosen);
        return;
    }
    let pivot = bits(open | closed)
        .max_by_key(|&task| (open & beside[task]).count_ones())
        .expect("one of the sets has a member");
    for task in bits(open & !beside[pivot]) {
        maximal(beside, chosen | 1 << task, open & beside[task], closed & beside[task], found);
        open &= !(1 << task);
        closed |= 1 << task;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CoreKind::None;
    use CoreKind::Tensor;

    fn parts(core: &[CoreKind], edges: &[(usize, usize)]) -> Vec<Vec<u32>> {
        let (graph, _) = Dag::from_edges(core.to_vec(), edges).unwrap();
        let tasks = |part: &Part| match part {
            Part::Single(task) => vec![*task],
            Part::Block(block) => block.tasks.clone(),
        };
        Prepared::new(graph).parts.iter().map(tasks).collect()
    }

    #[test]
    fn a_chain_is_all_singles() {
        assert_eq!(parts(&[Tensor; 3], &[(0, 1), (1, 2)]), [[0], [1], [2]]);
    }

    #[test]
    fn a_diamond_has_its_two_sides_as_a_block() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3)];
        assert_eq!(parts(&[Tensor; 4], &edges), [vec![0], vec![1, 2], vec![3]]);
    }

    #[test]
    fn costless_tasks_carry_order_only() {
        let edges = [(0, 1), (1, 2), (1, 3)];
        assert_eq!(parts(&[Tensor, None, Tensor, Tensor], &edges), [vec![0], vec![2, 3]]);
        assert_eq!(parts(&[None, None], &[]), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn a_leaf_beside_a_chain_joins_what_it_is_beside() {
        assert_eq!(parts(&[Tensor; 4], &[(0, 1), (0, 2), (2, 3)]), [vec![0], vec![1, 2, 3]]);
    }

    #[test]
    fn antichains_are_the_largest_sets_of_incomparable_tasks_of_every_small_graph() {
        for bits_of_edges in 0..1_u32 << 10 {
            let pairs = (0..5).flat_map(|i| (i + 1..5).map(move |j| (i, j)));
            let edges: Vec<(usize, usize)> = pairs
                .enumerate()
                .filter(|(bit, _)| bits_of_edges >> bit & 1 == 1)
                .map(|(_, edge)| edge)
                .collect();
            let (graph, _) = Dag::from_edges(vec![Tensor; 5], &edges).unwrap();
            let reach = graph.reachability();
            let ids: Vec<NodeId> = graph.ids().collect();
            let is_antichain = |set: u128| {
                bits(set).all(|i| bits(set).all(|j| i == j || !reach.comparable(ids[i], ids[j])))
            };
            let largest = |set: u128| {
                is_antichain(set)
                    && (0..5).all(|i| set >> i & 1 == 1 || !is_antichain(set | 1 << i))
            };
            let expected: Vec<u128> = (1..1 << 5).filter(|&set| largest(set)).collect();
            let sets = Sets::new(&[Tensor; 5], |i, j| reach.comes_before(ids[i], ids[j]));
            let mut found: Vec<u128> = sets.antichains.iter().map(|chain| chain.tasks).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{edges:?}");
        }
    }
}
