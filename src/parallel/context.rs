//! Context parallelism: devices that share the tokens of each sequence, and what they exchange so
//! that every token can attend to all others.
//!
//! A device holds as many tokens as the others, and all work on single tokens is on its own. Only
//! where pairs of tokens meet ([`Dim::are_pairs`]) does it need the others, in one of three ways:
//!
//! - *gather*: the keys and values of all devices are gathered before they are used, and once more
//!   for the backward pass; their gradients are summed and scattered.
//! - *ring*: keys and values go round from neighbour to neighbour. A device works on one block of
//!   them while it passes it on, and adds up what each block contributes. All blocks but the first
//!   and the last are alike and are one run of the graph: as its first block arrives, the run
//!   starts, and while it is worked on it is passed on. With blocks of time x and messages of time
//!   y, c devices take x + (c − 1)·max(x, y) either way; only the graph stays small.
//! - *ulysses*: devices turn their part of the tokens for all heads into all tokens for a part of
//!   the heads, with an all-to-all of queries, keys and values; the result is turned back.
//!
//! Which of two devices holds which tokens does not matter here: each has a part of the beginning
//! and the mirrored part of the end, so a causal mask hides as much of the work of each.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use crate::model::Axis;
use crate::model::dim::Dim;
use crate::model::layer::Action;
use crate::model::layer::Graph;
use crate::model::layer::Layer;
use crate::model::layer::Step;
use crate::model::layer::Tensor;
use crate::model::layer::TensorId;
use crate::model::op::CollectiveKind;
use crate::model::op::Pass;
use crate::model::op::VectorKind;

/// How the devices of a context group let their tokens attend to each other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextKind {
    /// Keys and values go round.
    Ring,
    /// Keys and values are gathered.
    Gather,
    /// Tokens are exchanged for heads.
    Ulysses,
}

impl std::fmt::Display for ContextKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl ContextKind {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Ring, Self::Gather, Self::Ulysses];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Gather => "gather",
            Self::Ulysses => "ulysses",
        }
    }

    /// The kind that users call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The layer as each of `devices` that share its tokens has it, with their exchanges.
pub fn divide(layer: &Layer, devices: u64, kind: ContextKind) -> Layer {
    let (own, pairs) = own_tokens(&layer.graph);
    let steps = own.steps.clone();
    let mut division = Division {
        graph: Graph { tensors: own.tensors, steps: Vec::new() },
        arrived: BTreeMap::new(),
    };
    let is_paired =
        |step: &Step| step.reads.iter().chain(&step.writes).any(|id| pairs.contains(id));
    let Some(first) = steps.iter().position(is_paired) else {
        return Layer { graph: Graph { steps, ..division.graph }, ..layer.clone() };
    };
    let last = steps.iter().rposition(is_paired).unwrap_or(first);
    let (mut before, mut after) = (steps[..first].to_vec(), Vec::new());
    let mut paired: Vec<Step> = Vec::new();
    // The work on pairs is in one piece but for exchanges along other axes: what enters for it comes
    // before it, what leaves it comes after.
    let mut made: BTreeSet<TensorId> = BTreeSet::new();
    for step in &steps[first..=last] {
        let waits = step.reads.iter().any(|read| made.contains(read));
        match (is_paired(step), waits) {
            (true, _) => paired.push(step.clone()),
            (false, true) => after.push(step.clone()),
            (false, false) => before.push(step.clone()),
        }
        if is_paired(step) || waits {
            made.extend(&step.writes);
        }
    }
    after.extend_from_slice(&steps[last + 1..]);
    division.graph.steps.extend(before);
    match kind {
        ContextKind::Gather => division.gather(&paired),
        ContextKind::Ring => division.ring(&paired, &pairs, devices),
        ContextKind::Ulysses => division.turn(&paired),
    }
    division.graph.steps.extend(after);
    Layer { graph: division.graph, ..layer.clone() }
}

/// The graph with keys and values of the device's own tokens, and the tensors over pairs of tokens.
fn own_tokens(whole: &Graph) -> (Graph, BTreeSet<TensorId>) {
    let mut graph = whole.clone();
    let ids = (0..graph.tensors.len()).map(TensorId);
    let pairs: BTreeSet<TensorId> = ids.filter(|&id| Dim::are_pairs(&whole.at(id).dims)).collect();
    for (id, tensor) in graph.tensors.iter_mut().enumerate() {
        if !pairs.contains(&TensorId(id)) {
            rename(&mut tensor.dims, own);
        }
    }
    for step in &mut graph.steps {
        if let Action::Vector { rows, row, .. } = &mut step.action
            && !pairs.contains(&step.reads[0])
        {
            rename(rows, own);
            rename(row, own);
        }
    }
    (graph, pairs)
}

fn rename(dims: &mut [Dim], to: fn(Dim) -> Dim) {
    for dim in dims {
        *dim = to(*dim);
    }
}

/// Keys as the device that holds their tokens has them.
fn own(dim: Dim) -> Dim {
    if dim == Dim::Keys { Dim::KeyBlock } else { dim }
}

/// Keys of the blocks between the first and the last that a device works on.
fn middle(dim: Dim) -> Dim {
    if matches!(dim, Dim::Keys | Dim::KeyBlock) { Dim::MiddleKeys } else { dim }
}

/// Keys as a device that has those of all others has them.
fn all(dim: Dim) -> Dim {
    if dim == Dim::KeyBlock { Dim::Keys } else { dim }
}

/// All tokens for a part of the heads, in place of a part of the tokens for all of them.
fn turned(dim: Dim) -> Dim {
    match dim {
        Dim::Sequence => Dim::Queries,
        Dim::KeyBlock => Dim::Keys,
        Dim::KvHeads => Dim::TurnedKvHeads,
        Dim::Group => Dim::TurnedGroup,
        other => other,
    }
}

/// Blocks of a ring that are worked on in a row.
#[derive(Clone, Copy)]
struct Run {
    number: usize,
    is_last: bool,
    /// The keys of the run.
    to: fn(Dim) -> Dim,
}

struct Division {
    graph: Graph,
    /// What was exchanged, and its name where it arrived.
    arrived: BTreeMap<TensorId, TensorId>,
}

impl Division {
    fn gather(&mut self, paired: &[Step]) {
        let ways = (CollectiveKind::AllGather, CollectiveKind::ReduceScatter);
        for step in paired {
            let mut step = step.clone();
            for read in step.reads.clone() {
                if self.graph.at(read).dims.contains(&Dim::KeyBlock) {
                    let gathered = self.exchanged(&step, read, "all", all, ways);
                    replace(&mut step.reads, read, gathered);
                }
            }
            self.graph.steps.push(step);
        }
    }

    fn turn(&mut self, paired: &[Step]) {
        let ways = (CollectiveKind::AllToAll, CollectiveKind::AllToAll);
        let made: BTreeSet<TensorId> = paired.iter().flat_map(|step| step.writes.clone()).collect();
        for step in paired {
            let mut step = step.clone();
            if let Action::Vector { rows, row, .. } = &mut step.action {
                rename(rows, turned);
                rename(row, turned);
            }
            for read in step.reads.clone() {
                if !made.contains(&read) {
                    let inside = self.exchanged(&step, read, "turned", turned, ways);
                    replace(&mut step.reads, read, inside);
                }
            }
            let mut results = Vec::new();
            for written in step.writes.clone() {
                if Dim::are_pairs(&self.graph.at(written).dims) {
                    rename(&mut self.graph.tensors[written.0].dims, turned);
                } else {
                    let inside = self.another(written, "turned", turned);
                    replace(&mut step.writes, written, inside);
                    results.push((inside, written));
                }
            }
            self.graph.steps.push(step.clone());
            for (inside, written) in results {
                let name = format!("{}_turn_back", self.graph.at(written).name);
                self.exchange(name, &step, ways, (vec![inside], vec![written]));
            }
        }
    }

    /// Work on one run of keys and values after the other, each passed on while it is used.
    fn ring(&mut self, paired: &[Step], pairs: &BTreeSet<TensorId>, devices: u64) {
        let keys_and_values: BTreeSet<TensorId> = (paired.iter().flat_map(|step| &step.reads))
            .filter(|id| self.graph.at(**id).dims.contains(&Dim::KeyBlock))
            .copied()
            .collect();
        let travelling: Vec<TensorId> = keys_and_values.into_iter().collect();
        let runs: &[fn(Dim) -> Dim] = if devices > 2 { &[own, middle, own] } else { &[own, own] };
        let mut here = travelling.clone();
        let mut sums: BTreeMap<TensorId, TensorId> = BTreeMap::new();
        for (run, &to) in (1..).zip(runs) {
            let held = travelling.iter().copied().zip(here.iter().copied()).collect();
            if let Some(&after) = runs.get(run) {
                let suffix = (run + 1).to_string();
                let next: Vec<TensorId> =
                    travelling.iter().map(|&id| self.another(id, &suffix, after)).collect();
                let name = format!("keys_values_send_{run}");
                let ways = (CollectiveKind::Send, CollectiveKind::Send);
                self.exchange(name, &paired[0], ways, (here, next.clone()));
                here = next;
            }
            let run = Run { number: run, is_last: run == runs.len(), to };
            self.work_on(paired, pairs, held, &mut sums, run);
        }
    }

    /// The steps of one run, and what they add to the result.
    fn work_on(
        &mut self,
        paired: &[Step],
        pairs: &BTreeSet<TensorId>,
        mut named: BTreeMap<TensorId, TensorId>,
        sums: &mut BTreeMap<TensorId, TensorId>,
        run: Run,
    ) {
        let Run { number, is_last, to } = run;
        for step in paired {
            let mut step = step.clone();
            step.name = format!("{}_{number}", step.name);
            step.run = Some(number);
            if let Action::Vector { rows, row, .. } = &mut step.action {
                rename(rows, to);
                rename(row, to);
            }
            for read in &mut step.reads {
                *read = named.get(read).copied().unwrap_or(*read);
            }
            let results = step.writes.clone();
            for written in &mut step.writes {
                let copy = self.another(*written, &number.to_string(), to);
                named.insert(*written, copy);
                *written = copy;
            }
            self.graph.steps.push(step.clone());
            for result in results.into_iter().filter(|id| !pairs.contains(id)) {
                let part = named[&result];
                let Some(&sum) = sums.get(&result) else {
                    sums.insert(result, part);
                    continue;
                };
                let total = if is_last {
                    result
                } else {
                    self.another(result, &format!("sum_{number}"), to)
                };
                self.add((sum, part), total, &step);
                sums.insert(result, total);
            }
        }
    }

    fn add(&mut self, (sum, part): (TensorId, TensorId), total: TensorId, of: &Step) {
        let dims = &self.graph.at(total).dims;
        let (rows, row) = dims.split_at(dims.len() - 1);
        let (kind, rows, row) = (VectorKind::Add, rows.to_vec(), row.to_vec());
        self.graph.steps.push(Step {
            name: format!("{}_sum", of.name),
            action: Action::Vector { kind, rows, row },
            pass: Pass::Forward,
            reads: vec![sum, part],
            writes: vec![total],
            core: false,
            module: of.module,
            run: None,
            again: false,
        });
    }

    /// A tensor as it arrives from an exchange that `reader` needs.
    fn exchanged(
        &mut self,
        reader: &Step,
        id: TensorId,
        suffix: &str,
        to: fn(Dim) -> Dim,
        ways: (CollectiveKind, CollectiveKind),
    ) -> TensorId {
        if let Some(&there) = self.arrived.get(&id) {
            return there;
        }
        let there = self.another(id, suffix, to);
        let name = self.graph.at(there).name.clone();
        self.exchange(name, reader, ways, (vec![id], vec![there]));
        self.arrived.insert(id, there);
        there
    }

    /// A tensor like another one in other dimensions.
    fn another(&mut self, id: TensorId, suffix: &str, to: fn(Dim) -> Dim) -> TensorId {
        let tensor = self.graph.at(id).clone();
        let mut dims = tensor.dims.clone();
        rename(&mut dims, to);
        let name = format!("{}_{suffix}", tensor.name);
        self.graph.tensor(Tensor { name, dims, ..tensor })
    }

    /// An exchange that belongs to the module of `reader`.
    fn exchange(
        &mut self,
        name: String,
        reader: &Step,
        (there, back): (CollectiveKind, CollectiveKind),
        (reads, writes): (Vec<TensorId>, Vec<TensorId>),
    ) {
        let (there, back) = (Some(there), Some(back));
        self.graph.steps.push(Step {
            name,
            action: Action::Exchange { axis: Axis::Context, there, back },
            pass: Pass::Forward,
            reads,
            writes,
            core: false,
            module: reader.module,
            run: None,
            again: false,
        });
    }
}

fn replace(ids: &mut [TensorId], old: TensorId, new: TensorId) {
    ids.iter_mut().filter(|id| **id == old).for_each(|id| *id = new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dag;
    use crate::model::Attention;
    use crate::model::families;
    use crate::model::op::Op;
    use crate::model::op::Work;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;
    use crate::parallel::LayerShare;
    use crate::parallel::Setting;
    use crate::parallel::shard;

    /// Eight query heads share two key-value heads of four elements; 64 tokens.
    fn transformer(setting: Setting) -> LayerShare {
        let spec = Spec { kv_heads: 2, ..examples::gpt() };
        let share = shard(&families::build(&spec), Setting { sequence: 64, ..setting });
        share.expect("the setting is legal").kinds.swap_remove(1)
    }

    fn on(context: u64, context_kind: ContextKind) -> Setting {
        Setting { context, context_kind, ..Setting::ALONE }
    }

    #[test]
    fn what_enters_for_the_work_on_pairs_comes_before_it() {
        let mut model = families::build(&examples::gpt());
        let graph = &mut model.kinds[1].graph;
        let values = graph.tensors.iter().position(|tensor| tensor.name == "v").unwrap();
        // The same for all heads, so that devices which share these must hand them to each other.
        graph.tensors[values].dims = vec![Dim::Batch, Dim::Keys, Dim::Head];
        for kind in ContextKind::ALL {
            for sequence_parallel in [false, true] {
                let setting = Setting { tensor_parallel: 2, sequence_parallel, ..on(2, kind) };
                let share = shard(&model, Setting { sequence: 64, ..setting }).unwrap();
                let names = |pass: &Dag<Op>| -> Vec<String> {
                    pass.nodes().iter().map(|op| op.name.clone()).collect()
                };
                let entered = |name: &String| name.starts_with("v_enter");
                let there = names(&share.kinds[1].forward);
                let before = there.iter().position(|name| name.starts_with("scores"));
                let at = there.iter().position(entered);
                // Without a part of the tokens, entering is for the way back alone.
                assert!(at.is_none() || at < before, "{there:?}");
                assert!(names(&share.kinds[1].backward).iter().any(entered));
            }
        }
    }

    /// What is exchanged along the context axis, by kind and bytes.
    fn exchanged(pass: &Dag<Op>) -> Vec<(CollectiveKind, u64)> {
        let mut found = Vec::new();
        for op in pass.nodes() {
            if let Work::Collective(collective) = &op.work
                && collective.axis == Axis::Context
            {
                let each = (collective.kind, collective.size.0);
                found.extend((0..collective.times).map(|_| each));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_ring_sends_keys_and_values_there_and_their_gradients_all_the_way_round() {
        for devices in [2, 4, 8] {
            let layer = transformer(on(devices, ContextKind::Ring));
            // Keys and values of two heads of four elements in two bytes.
            let message = 2 * (64 / devices) * 2 * 4 * 2;
            let n = usize::try_from(devices).unwrap();
            let message = (CollectiveKind::Send, message);
            assert_eq!(exchanged(&layer.forward), vec![message; n - 1]);
            assert_eq!(exchanged(&layer.backward), vec![message; (n - 1) + n]);
            let products = |pass: &Dag<Op>, prefix: &str| {
                pass.nodes().iter().filter(|op| op.name.starts_with(prefix)).count()
            };
            let runs = if devices > 2 { 3 } else { 2 };
            assert_eq!(products(&layer.forward, "scores_"), runs);
            assert_eq!(products(&layer.forward, "context_"), runs);
        }
    }

    #[test]
    fn a_block_is_worked_on_while_it_is_passed_on() {
        let layer = transformer(on(4, ContextKind::Ring));
        let reach = |name: &str| {
            let pass = &layer.forward;
            let at = pass.ids().find(|&id| pass.node(id).name == name).unwrap();
            let mut open = pass.successors(at).to_vec();
            let mut found = BTreeSet::new();
            while let Some(id) = open.pop() {
                found.insert(pass.node(id).name.clone());
                open.extend(pass.successors(id));
            }
            found
        };
        for block in 1..3 {
            let (send, product) = (format!("keys_values_send_{block}"), format!("scores_{block}"));
            assert!(!reach(&send).contains(&product) && !reach(&product).contains(&send));
            assert!(reach(&send).contains(&format!("scores_{}", block + 1)));
        }
    }

    #[test]
    fn gathered_keys_and_values_are_gathered_again_and_their_gradients_scattered() {
        use CollectiveKind::{AllGather, ReduceScatter};
        let layer = transformer(on(4, ContextKind::Gather));
        // Keys of all devices, and values.
        let whole = 64 * 2 * 4 * 2;
        assert_eq!(exchanged(&layer.forward), [(AllGather, whole); 2]);
        let again = [(AllGather, whole); 2].into_iter().chain([(ReduceScatter, whole); 2]);
        assert_eq!(exchanged(&layer.backward), again.collect::<Vec<_>>());
    }

    #[test]
    fn tokens_are_exchanged_for_heads_four_times_each_way() {
        let kind = CollectiveKind::AllToAll;
        for (devices, kv_heads) in [(2, 2), (4, 4), (8, 8)] {
            let layer = transformer(on(devices, ContextKind::Ulysses));
            // Queries and result of eight heads; keys and values of two, or of one for each device.
            let large = 64 / devices * 8 * 4 * 2;
            let small = 64 / devices * kv_heads * 4 * 2;
            let mut expected = [(kind, small), (kind, small), (kind, large), (kind, large)];
            expected.sort();
            assert_eq!(exchanged(&layer.forward), expected);
            assert_eq!(exchanged(&layer.backward), expected);
        }
    }

    #[test]
    fn groups_of_the_context_axis_take_every_so_many_devices() {
        let setting = Setting { tensor_parallel: 2, ..on(4, ContextKind::Gather) };
        let layer = transformer(setting);
        let mut seen = BTreeSet::new();
        for op in layer.forward.nodes().iter().chain(layer.backward.nodes()) {
            if let Work::Collective(collective) = &op.work {
                seen.insert((collective.axis, collective.group, collective.stride));
            }
        }
        assert_eq!(Vec::from_iter(seen), [(Axis::Tensor, 2, 1), (Axis::Context, 4, 2)]);
    }

    #[test]
    fn stored_attention_keeps_the_pairs_of_the_device_s_own_tokens() {
        for kind in ContextKind::ALL {
            let kept = |context| {
                let stored = Setting { attention: Attention::Stored, ..on(context, kind) };
                let recomputed = Setting { attention: Attention::Recomputed, ..stored };
                transformer(stored).kept.0 - transformer(recomputed).kept.0
            };
            assert_eq!(kept(1), 5 * 8 * 64 * 64, "probabilities twice, and the mask");
            assert_eq!(kept(4) * 4, kept(1), "{kind:?}");
        }
    }

    #[test]
    fn a_degree_that_does_not_divide_is_answered_with_the_rule_and_what_would_do() {
        let model = families::build(&Spec { kv_heads: 2, ..examples::gpt() });
        let refused = |setting: Setting| {
            shard(&model, Setting { sequence: 64, ..setting }).unwrap_err().to_string()
        };
        assert_eq!(
            refused(on(3, ContextKind::Ring)),
            "context-parallel degree 3 needs a sequence that is a multiple of 6, twice the degree, \
             and finds 64 tokens; legal degrees are 1, 2, 4, 8, 16, 32"
        );
        let wide =
            Setting { tensor_parallel: 4, sequence_parallel: true, ..on(16, ContextKind::Ring) };
        assert_eq!(
            refused(wide),
            "context-parallel degree 16 needs a sequence that is a multiple of 128, twice the degree \
             times the width 4, and finds 64 tokens; legal degrees are 1, 2, 4, 8"
        );
        let turned = Setting { tensor_parallel: 4, ..on(4, ContextKind::Ulysses) };
        assert_eq!(
            refused(turned),
            "context-parallel degree 4 exchanges tokens for heads and does not divide the 8 heads \
             among 4 x 4 devices; legal degrees are 1, 2"
        );
        let none = Setting { context: 0, ..Setting::ALONE };
        assert!(refused(none).contains("degree 0 is less than one device"));
        let model = families::build(&Spec { heads: 12, kv_heads: 3, mlp: 96, ..examples::gpt() });
        let uneven = Setting { sequence: 64, ..on(2, ContextKind::Ulysses) };
        assert_eq!(
            shard(&model, uneven).unwrap_err().to_string(),
            "context-parallel degree 2 exchanges tokens for heads, and 1 x 2 devices neither divide \
             the 3 key-value heads nor are a multiple of them; only 1 is legal here"
        );
    }
}
