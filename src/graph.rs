//! A small directed acyclic graph with typed node ids: order, reachability, nothing else.
//!
//! In: nodes, each with the nodes it reads from. Out: predecessors, successors, who reaches whom.
//! petgraph would serve too, but nothing of it would be used beyond two adjacency lists: these
//! few lines are acyclic by construction, which no general graph type is.

/// Names one node of one [`Dag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

impl NodeId {
    /// The node's place in the order in which nodes were added, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A directed acyclic graph.
///
/// Invariant: a node's predecessors were added before it, so the order of ids is topological
/// and a cycle cannot be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dag<N> {
    nodes: Vec<N>,
    predecessors: Vec<Vec<NodeId>>,
    successors: Vec<Vec<NodeId>>,
}

/// The given edges run in a circle; names one node on it by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle(pub usize);

impl<N> Default for Dag<N> {
    fn default() -> Self {
        Self { nodes: Vec::new(), predecessors: Vec::new(), successors: Vec::new() }
    }
}

impl<N> Dag<N> {
    /// Adds a node that comes after each of `reads`; naming one twice counts once.
    pub fn add(&mut self, node: N, reads: &[NodeId]) -> NodeId {
        let id = NodeId(self.nodes.len());
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        reads.dedup();
        for read in &reads {
            self.successors[read.0].push(id);
        }
        self.nodes.push(node);
        self.predecessors.push(reads);
        self.successors.push(Vec::new());
        id
    }

    /// Builds a graph from nodes in any order and edges between their indices.
    ///
    /// Ids follow a topological order that keeps the given order wherever the edges allow it
    /// (the least index that is ready comes first). The second part of the answer is each
    /// node's id, by its index in `nodes`.
    ///
    /// Panics if an edge names an index that does not exist: readers check names first.
    pub fn from_edges(
        nodes: Vec<N>,
        edges: &[(usize, usize)],
    ) -> Result<(Self, Vec<NodeId>), Cycle> {
        let n_nodes = nodes.len();
        let mut waits_for = vec![0_usize; n_nodes];
        let mut readers = vec![Vec::new(); n_nodes];
        let mut reads = vec![Vec::new(); n_nodes];
        for &(from, to) in edges {
            readers[from].push(to);
            reads[to].push(from);
            waits_for[to] += 1;
        }
        let mut nodes: Vec<Option<N>> = nodes.into_iter().map(Some).collect();
        let mut ids: Vec<Option<NodeId>> = vec![None; n_nodes];
        let mut ready: std::collections::BTreeSet<usize> =
            (0..n_nodes).filter(|&node| waits_for[node] == 0).collect();
        let mut graph = Self::default();
        while let Some(node) = ready.pop_first() {
            let reads: Vec<NodeId> = reads[node].iter().filter_map(|&read| ids[read]).collect();
            let content = nodes[node].take().expect("a node becomes ready once");
            ids[node] = Some(graph.add(content, &reads));
            for &reader in &readers[node] {
                waits_for[reader] -= 1;
                if waits_for[reader] == 0 {
                    ready.insert(reader);
                }
            }
        }
        match ids.iter().position(Option::is_none) {
            Some(_) => Err(Cycle(on_a_cycle(&ids, &reads))),
            None => Ok((graph, ids.into_iter().flatten().collect())),
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All ids, each after its predecessors.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<N> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// All nodes, each after its predecessors.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// What stands at a node.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0]
    }

    /// The nodes that `id` reads from, in order.
    pub fn predecessors(&self, id: NodeId) -> &[NodeId] {
        &self.predecessors[id.0]
    }

    /// The nodes that read from `id`, in order.
    pub fn successors(&self, id: NodeId) -> &[NodeId] {
        &self.successors[id.0]
    }

    /// All edges, by source and then by target.
    pub fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.ids().flat_map(|from| self.successors(from).iter().map(move |&to| (from, to)))
    }

    /// The same graph with other contents.
    pub fn map<M>(&self, content: impl FnMut(&N) -> M) -> Dag<M> {
        Dag {
            nodes: self.nodes.iter().map(content).collect(),
            predecessors: self.predecessors.clone(),
            successors: self.successors.clone(),
        }
    }

    /// For each node, which nodes come before it on some path.
    pub fn reachability(&self) -> Reachability {
        let n_words = self.len().div_ceil(64);
        let mut before = vec![0_u64; n_words * self.len()];
        for id in self.ids() {
            for &read in self.predecessors(id) {
                let (done, row) = before.split_at_mut(id.0 * n_words);
                let read_row = &done[read.0 * n_words..(read.0 + 1) * n_words];
                for (word, read_word) in row.iter_mut().zip(read_row) {
                    *word |= read_word;
                }
                row[read.0 / 64] |= 1 << (read.0 % 64);
            }
        }
        Reachability { n_words, before }
    }
}

/// Which node comes before which, through any number of edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachability {
    n_words: usize,
    before: Vec<u64>,
}

impl Reachability {
    /// Whether a path leads from `early` to `late`; a node does not come before itself.
    pub fn comes_before(&self, early: NodeId, late: NodeId) -> bool {
        self.before[late.0 * self.n_words + early.0 / 64] >> (early.0 % 64) & 1 == 1
    }

    /// Whether one of the two comes before the other.
    pub fn comparable(&self, one: NodeId, other: NodeId) -> bool {
        self.comes_before(one, other) || self.comes_before(other, one)
    }
}

/// Walks back from a node that never became ready until it meets itself.
fn on_a_cycle(ids: &[Option<NodeId>], reads: &[Vec<usize>]) -> usize {
    let mut node = ids.iter().position(Option::is_none).expect("some node never became ready");
    let mut seen = vec![false; ids.len()];
    while !seen[node] {
        seen[node] = true;
        let waiting = reads[node].iter().find(|&&read| ids[read].is_none());
        node = *waiting.expect("a node that never became ready waits for another such");
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_order_is_kept_where_edges_allow_it() {
        let (graph, ids) = Dag::from_edges(vec!['c', 'a', 'b'], &[(1, 2), (2, 0)]).unwrap();
        assert_eq!(graph.nodes(), ['a', 'b', 'c']);
        assert_eq!(ids.iter().map(|id| id.index()).collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn a_cycle_is_named_by_one_of_its_nodes() {
        let found = Dag::from_edges(vec![(); 4], &[(0, 1), (1, 2), (2, 1), (2, 3)]);
        assert!(matches!(found, Err(Cycle(1 | 2))), "{found:?}");
        assert_eq!(Dag::from_edges(vec![()], &[(0, 0)]).unwrap_err(), Cycle(0));
    }

    #[test]
    fn reachability_follows_every_path_of_every_small_graph() {
        // One bit per pair (i, j) with i < j says whether there is an edge.
        for bits in 0..1_u32 << 10 {
            let pairs: Vec<(usize, usize)> =
                (0..5).flat_map(|i| (i + 1..5).map(move |j| (i, j))).collect();
            let edges: Vec<(usize, usize)> =
                (0..10).filter(|bit| bits >> bit & 1 == 1).map(|bit| pairs[bit]).collect();
            let (graph, ids) = Dag::from_edges(vec![(); 5], &edges).unwrap();
            let reach = graph.reachability();
            for i in 0..5 {
                for j in 0..5 {
                    let expected = path(&edges, i, j);
                    assert_eq!(reach.comes_before(ids[i], ids[j]), expected, "{edges:?} {i} {j}");
                }
            }
        }
    }

    fn path(edges: &[(usize, usize)], from: usize, to: usize) -> bool {
        edges.iter().any(|&(a, b)| a == from && (b == to || path(edges, b, to)))
    }
}
