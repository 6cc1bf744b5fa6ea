//! From steps to operators: what runs together, and the bytes that then cross the memories.
//!
//! In: the graph of one pass, what it must leave in memory, and sizes. Out: a graph of [`Op`]s.
//! The rules:
//!
//! - Vector work joins the matmul or the vector work whose result it alone reads. Of several, it
//!   joins the last, which waits least for the others.
//! - Vector work whose own result nobody reads (a bias's gradient) joins the vector work that makes
//!   what it reads.
//! - Attention's core runs tile by tile where its tensors stay on the chip: there, its own steps
//!   join even where the gradients read the same tensor.
//! - Splitting and joining tensors costs nothing and leaves no operator.
//!
//! A tensor crosses HBM where it enters or leaves such a group, or is kept for the backward pass.

use std::collections::BTreeSet;

use super::Axis;
use super::Masked;
use super::Precision;
use super::Reach;
use super::Stack;
use super::dim::Dim;
use super::dim::Sizes;
use super::layer::Action;
use super::layer::Graph;
use super::layer::Step;
use super::layer::TensorId;
use super::op::Collective;
use super::op::CollectiveKind;
use super::op::Home;
use super::op::Homes;
use super::op::Matmul;
use super::op::Numbers;
use super::op::Op;
use super::op::Pass;
use super::op::Traffic;
use super::op::VectorKind;
use super::op::VectorWork;
use super::op::Work;
use super::opaque;
use crate::graph::Dag;
use crate::units::Bytes;

/// What turns names of dimensions into loops and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Scale<'a> {
    /// Sizes on one device.
    pub sizes: &'a Sizes,
    /// The part of a sequence that a device holds of a scattered tensor.
    pub scattered_sequence: u64,
    /// Bytes of an activation or weight.
    pub element: Bytes,
    /// Devices that take part in an exchange.
    pub groups: Groups,
    /// Whether work on pairs of tokens leaves out those that a causal mask hides.
    pub masked: Masked,
    /// Which tokens work on pairs of tokens goes over.
    pub reach: Reach,
    /// What software makes of it.
    pub stack: Stack,
}

/// How many devices share a layer along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Along the tensor axis.
    pub tensor: u64,
    /// Along the context axis.
    pub context: u64,
    /// Along the expert axis.
    pub expert: u64,
    /// Of these, groups of experts that tokens are first sent to; one where they are sent to their
    /// experts at once.
    pub expert_groups: u64,
    /// Along the axis of the elements of each expert.
    pub expert_tensor: u64,
}

impl Groups {
    /// One device.
    pub const ALONE: Self =
        Self { tensor: 1, context: 1, expert: 1, expert_groups: 1, expert_tensor: 1 };

    /// How many devices a group of `axis` has.
    pub fn along(self, axis: Axis) -> u64 {
        match axis {
            Axis::Tensor => self.tensor,
            Axis::Context => self.context,
            Axis::Expert => self.expert / self.expert_groups,
            Axis::ExpertGroup => self.expert_groups,
            Axis::ExpertTensor => self.expert_tensor,
            Axis::Data | Axis::Pipeline => 1,
        }
    }

    /// How far apart neighbours along `axis` are in device numbers. The devices that share experts
    /// are numbered along a grid of their own, laid over the same devices.
    pub fn stride(self, axis: Axis) -> u64 {
        match axis {
            Axis::Tensor | Axis::ExpertTensor => 1,
            Axis::Context => self.tensor,
            Axis::Expert => self.expert_tensor,
            Axis::ExpertGroup => self.expert_tensor * (self.expert / self.expert_groups),
            Axis::Data | Axis::Pipeline => self.tensor * self.context,
        }
    }
}

impl Scale<'_> {
    /// Sizes of a tensor, or of work on it.
    pub fn sizes(&self, scattered: bool) -> Sizes {
        let sequence = if scattered { self.scattered_sequence } else { self.sizes.sequence };
        Sizes { sequence, ..*self.sizes }
    }

    /// Whether work on pairs of tokens leaves any of them out.
    pub(super) fn leaves_out_pairs(&self) -> bool {
        self.masked == Masked::Skipped || self.reach != Reach::All
    }

    /// Sizes of what goes over `dims`: over pairs of tokens, only those that are not left out.
    ///
    /// A causal mask hides half of all pairs, but for half of the diagonal: a part of one in as
    /// many as there are tokens, less than what kernels waste on the tiles along it. It is counted
    /// as exactly half, as published accounts of causal attention do.
    pub(super) fn sizes_over(&self, dims: &[Dim], scattered: bool) -> Sizes {
        let sizes = self.sizes(scattered);
        if self.leaves_out_pairs() && Dim::are_pairs(dims) {
            sizes.attended(self.reach, self.masked == Masked::Skipped)
        } else {
            sizes
        }
    }

    /// Bytes of a tensor on one device.
    pub fn bytes(&self, graph: &Graph, id: TensorId) -> Bytes {
        let tensor = graph.at(id);
        let sizes = self.sizes_over(&tensor.dims, tensor.scattered);
        tensor.form.bytes(self.element) * sizes.elements(&tensor.dims)
    }

    /// The loops of a contraction on one device.
    pub fn matmul(&self, graph: &Graph, step: &Step) -> Matmul {
        let loops = graph.contraction(step);
        let dims = [&loops.b[..], &loops.m, &loops.k, &loops.n].concat();
        loops.sized(&self.sizes_over(&dims, graph.is_scattered(step)))
    }
}

/// The operators of one pass; `left` are the tensors that must be in memory at its end.
pub fn fuse(graph: &Graph, left: &[TensorId], scale: Scale) -> Dag<Op> {
    let mut fusion = Fusion::new(graph, left, scale);
    for step in 0..graph.steps.len() {
        fusion.place(step);
    }
    fusion.operators()
}

struct Fusion<'a> {
    graph: &'a Graph,
    scale: Scale<'a>,
    makers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
    /// The tensor that each is another name of (an exchange that does nothing on this way).
    same_as: Vec<TensorId>,
    left: BTreeSet<TensorId>,
    /// The steps that run together, in order.
    groups: Vec<Vec<usize>>,
    /// The group of each step; none for what leaves no operator.
    group: Vec<Option<usize>>,
    /// The groups that each group waits for.
    waits: Vec<BTreeSet<usize>>,
}

impl<'a> Fusion<'a> {
    fn new(graph: &'a Graph, left: &[TensorId], scale: Scale<'a>) -> Self {
        let mut same_as: Vec<TensorId> = (0..graph.tensors.len()).map(TensorId).collect();
        for step in &graph.steps {
            if let Action::Exchange { there: None, .. } = step.action {
                same_as[step.writes[0].0] = same_as[step.reads[0].0];
            }
        }
        let mut readers = vec![Vec::new(); graph.tensors.len()];
        for (step, content) in graph.steps.iter().enumerate() {
            if matches!(content.action, Action::Exchange { there: None, .. }) {
                continue;
            }
            for read in &content.reads {
                readers[same_as[read.0].0].push(step);
            }
        }
        Self {
            graph,
            scale,
            makers: graph.makers(),
            readers,
            left: left.iter().map(|id| same_as[id.0]).collect(),
            same_as,
            groups: Vec::new(),
            group: vec![None; graph.steps.len()],
            waits: Vec::new(),
        }
    }

    /// Gives a step its group: one that it joins, or a new one.
    fn place(&mut self, step: usize) {
        let content = &self.graph.steps[step];
        if leaves_no_operator(&content.action) {
            return;
        }
        let sources: BTreeSet<usize> =
            content.reads.iter().flat_map(|&read| self.sources(read)).collect();
        let joined = if matches!(content.action, Action::Vector { .. }) {
            self.joinable(step, &sources)
        } else {
            None
        };
        let group = joined.unwrap_or_else(|| {
            self.groups.push(Vec::new());
            self.waits.push(BTreeSet::new());
            self.groups.len() - 1
        });
        self.groups[group].push(step);
        self.group[step] = Some(group);
        self.waits[group].extend(sources.into_iter().filter(|&source| source != group));
    }

    /// The group that vector work joins, if any.
    fn joinable(&self, step: usize, sources: &BTreeSet<usize>) -> Option<usize> {
        let content = &self.graph.steps[step];
        let nobody_reads = content.writes.iter().all(|id| self.readers[id.0].is_empty())
            && content.writes.iter().all(|id| self.graph.at(*id).form.is_weight());
        let mut makers: Vec<usize> = content
            .reads
            .iter()
            .filter_map(|&read| self.only_for(read, step, nobody_reads))
            .collect();
        makers.sort_unstable();
        makers.iter().rev().filter_map(|&maker| self.group[maker]).find(|&group| {
            // The group would wait for the other sources, so none of those may wait for it.
            sources.iter().all(|&source| source == group || !self.comes_before(group, source))
        })
    }

    /// The step that makes `id` for `reader` alone, if it can take vector work on.
    fn only_for(&self, id: TensorId, reader: usize, nobody_reads: bool) -> Option<usize> {
        let id = self.same_as[id.0];
        let maker = self.makers[id.0]?;
        let content = &self.graph.steps[maker];
        if content.again != self.graph.steps[reader].again {
            // What is done again serves several gradients: none of them may hold it up.
            return None;
        }
        // What is done again runs together as it did before; that gradients read it too only means
        // that it leaves the group.
        let counts =
            |&other: &usize| other != reader && self.graph.steps[other].again == content.again;
        let others_too = self.readers[id.0].iter().any(counts);
        let tile_by_tile = self.graph.at(id).on_chip && self.graph.steps[reader].core;
        let alone = !others_too || tile_by_tile;
        match content.action {
            Action::Vector { .. } => (alone || nobody_reads).then_some(maker),
            Action::Contract => alone.then_some(maker),
            Action::Split if alone => self.only_for(content.reads[0], maker, false),
            _ => None,
        }
    }

    fn comes_before(&self, early: usize, late: usize) -> bool {
        let mut seen = vec![false; self.groups.len()];
        let mut open = vec![late];
        while let Some(group) = open.pop() {
            for &source in &self.waits[group] {
                if source == early {
                    return true;
                }
                if !std::mem::replace(&mut seen[source], true) {
                    open.push(source);
                }
            }
        }
        false
    }

    /// The groups that make a tensor: several where it is joined, none where it is from outside.
    fn sources(&self, id: TensorId) -> Vec<usize> {
        let id = self.same_as[id.0];
        let Some(maker) = self.makers[id.0] else { return Vec::new() };
        match self.group[maker] {
            Some(group) => vec![group],
            None => self.graph.steps[maker].reads.iter().flat_map(|&r| self.sources(r)).collect(),
        }
    }

    fn operators(&self) -> Dag<Op> {
        let ops = (0..self.groups.len()).map(|group| self.operator(group)).collect();
        let waits = self.waits.iter().enumerate();
        let edges: Vec<(usize, usize)> = waits
            .flat_map(|(group, sources)| sources.iter().map(move |&source| (source, group)))
            .collect();
        Dag::from_edges(ops, &edges).expect("no group waits for itself").0
    }

    fn operator(&self, group: usize) -> Op {
        let steps: Vec<&Step> = self.groups[group].iter().map(|&s| &self.graph.steps[s]).collect();
        let first = steps[0];
        let name = first.name.clone();
        let (work, traffic) = match &first.action {
            Action::Contract => self.matmul(group, &steps),
            Action::Vector { .. } => {
                let traffic = self.crossing(group, &steps);
                (Work::Vector(self.vector_work(&steps)), traffic)
            }
            Action::Gather => (Work::Move, self.gathered(first)),
            Action::Dispatch | Action::Combine => (Work::Move, self.moved(first)),
            Action::Exchange { .. } => {
                (exchange(self.graph, first, self.scale), Traffic::default())
            }
            Action::Opaque(opaque) => opaque::operator(opaque, self.graph, first, self.scale),
            Action::Split | Action::Concat => panic!("views leave no operator"),
        };
        Op { name, work, traffic }
    }

    fn matmul(&self, group: usize, steps: &[&Step]) -> (Work, Traffic) {
        let (first, fused) = (steps[0], &steps[1..]);
        let matmul = self.scale.matmul(self.graph, first);
        let Matmul { b: batch, m, k, n } = matmul;
        let numbers = numbers(self.graph, first, self.scale.stack.precision);
        let grouped = is_grouped(self.graph, first);
        let operand = numbers.operand(self.scale.element);
        let home = |id: TensorId| {
            if self.graph.at(id).on_chip { Home::Chip } else { Home::Hbm }
        };
        let [a, b] = [first.reads[0], first.reads[1]].map(home);
        // Loops that leave out pairs of tokens are shorter than the tensors of single tokens that
        // they go over, which cross HBM whole.
        let beyond = |id: TensorId, counted: u64| {
            let whole = if home(id) == Home::Hbm { self.bytes(id).0 } else { 0 };
            if self.scale.leaves_out_pairs() {
                Bytes(whole.saturating_sub((self.scale.element * counted).0))
            } else {
                Bytes::ZERO
            }
        };
        let hbm_read =
            beyond(first.reads[0], batch * m * k) + beyond(first.reads[1], batch * k * n);
        if fused.is_empty() {
            let homes = Homes { a, b, out: home(first.writes[0]) };
            let hbm_written = beyond(first.writes[0], batch * m * n);
            let traffic = Traffic { hbm_read, hbm_written, ..Traffic::default() };
            let mut traffic = traffic;
            if homes.out == Home::Hbm {
                traffic.hbm_written += Bytes(self.scale.element.0 - operand.0) * (batch * m * n);
            }
            return (Work::Matmul { matmul, homes, fused: Vec::new(), numbers, grouped }, traffic);
        }
        let mut traffic = self.crossing(group, fused);
        traffic.hbm_read += hbm_read;
        let left_in_hbm = self.leaving(group).any(|id| home(id) == Home::Hbm);
        let out = if left_in_hbm { Home::Hbm } else { Home::Chip };
        if out == Home::Hbm {
            let own = operand * batch * m * n;
            traffic.hbm_written = Bytes(traffic.hbm_written.0.saturating_sub(own.0));
        }
        let homes = Homes { a, b, out };
        let fused = self.vector_work(fused);
        (Work::Matmul { matmul, homes, fused, numbers, grouped }, traffic)
    }

    fn vector_work(&self, steps: &[&Step]) -> Vec<VectorWork> {
        let work = steps.iter().map(|step| {
            let Action::Vector { kind, rows, row } = &step.action else {
                panic!("only vector work is fused")
            };
            let dims = [&rows[..], row].concat();
            let sizes = self.scale.sizes_over(&dims, self.graph.is_scattered(step));
            let (rows, row) = (sizes.elements(rows), sizes.elements(row));
            VectorWork { kind: *kind, pass: step.pass, rows, row }
        });
        work.collect()
    }

    /// What the vector work `steps` of a group reads from outside it and leaves behind.
    ///
    /// A matmul's result, though made in the group, is read by the vector core through the global
    /// buffer; between vector work, elements pass in registers.
    fn crossing(&self, group: usize, steps: &[&Step]) -> Traffic {
        let mut traffic = Traffic::default();
        let made_by_vector: BTreeSet<TensorId> =
            steps.iter().flat_map(|step| step.writes.iter().copied()).collect();
        let reads: BTreeSet<TensorId> = steps
            .iter()
            .flat_map(|step| step.reads.iter().map(|id| self.same_as[id.0]))
            .filter(|&id| !made_by_vector.contains(&self.unsplit(id)))
            .collect();
        for id in reads {
            let size = self.read_size(id, steps);
            traffic.glb_read += size;
            if self.sources(id) != [group] && !self.graph.at(id).on_chip {
                traffic.hbm_read += size;
            }
        }
        for id in self.leaving(group) {
            let size = self.bytes(id);
            traffic.glb_written += size;
            if !self.graph.at(id).on_chip {
                traffic.hbm_written += size;
            }
        }
        traffic
    }

    /// The tensor that `id` is a part of, or itself.
    fn unsplit(&self, id: TensorId) -> TensorId {
        let maker = self.makers[id.0].map(|step| &self.graph.steps[step]);
        match maker.filter(|step| step.action == Action::Split) {
            Some(step) => self.same_as[step.reads[0].0],
            None => id,
        }
    }

    /// Bytes read of a tensor; of a weight no more than the row that the work goes along.
    fn read_size(&self, id: TensorId, steps: &[&Step]) -> Bytes {
        if !self.graph.at(id).form.is_weight() {
            return self.bytes(id);
        }
        let reader = steps.iter().find(|step| step.reads.contains(&id));
        let reader = reader.expect("it was read by one of the steps");
        let Action::Vector { row, .. } = &reader.action else { return self.bytes(id) };
        self.scale.element * self.scale.sizes(self.graph.is_scattered(reader)).elements(row)
    }

    /// What a group makes that somebody outside reads, or that is kept.
    fn leaving(&self, group: usize) -> impl Iterator<Item = TensorId> + '_ {
        let tensors = (0..self.graph.tensors.len()).map(TensorId);
        tensors.filter(move |&id| {
            self.makers[id.0].is_some()
                && self.same_as[id.0] == id
                && self.sources(id) == [group]
                && self.leaves(id, group)
        })
    }

    fn leaves(&self, id: TensorId, group: usize) -> bool {
        let readers = &self.readers[id.0];
        let is_split = readers.iter().any(|&r| self.graph.steps[r].action == Action::Split);
        // Of what is split, the parts leave.
        !is_split
            && (self.left.contains(&id)
                || self.graph.at(id).form.is_weight()
                || readers.iter().any(|&reader| self.group[reader] != Some(group)))
    }

    /// Tokens are read once and each row written, or the other way round.
    fn moved(&self, step: &Step) -> Traffic {
        let (read, written) = (self.bytes(step.reads[0]), self.bytes(step.writes[0]));
        Traffic { hbm_read: read, hbm_written: written, glb_read: read, glb_written: written }
    }

    /// A gather reads the rows that it picks; backward the rows are read, added to and written.
    fn gathered(&self, step: &Step) -> Traffic {
        let rows = match step.pass {
            Pass::Forward => self.bytes(step.writes[0]),
            Pass::Backward => self.bytes(step.reads[0]),
        };
        let read = match step.pass {
            Pass::Forward => rows,
            Pass::Backward => rows + rows,
        };
        Traffic { hbm_read: read, hbm_written: rows, glb_read: read, glb_written: rows }
    }

    fn bytes(&self, id: TensorId) -> Bytes {
        self.scale.bytes(self.graph, id)
    }
}

/// The exchange of a step that does one.
pub(super) fn exchange(graph: &Graph, step: &Step, scale: Scale) -> Work {
    let &Action::Exchange { axis, there: Some(kind), .. } = &step.action else {
        panic!("an exchange that does nothing leaves no operator")
    };
    let end = |ids: &[TensorId]| ids.iter().map(|&id| scale.bytes(graph, id)).sum::<Bytes>();
    let (from, to) = (end(&step.reads), end(&step.writes));
    let (size, times) = match (kind, step.pass) {
        // A run of blocks is passed on block by block, and so are its gradients, which go the same
        // way to where they are added to those of the run.
        (CollectiveKind::Send, Pass::Forward) => (from.min(to), from.0.div_ceil(to.0)),
        (CollectiveKind::Send, Pass::Backward) => (from.min(to), to.0.div_ceil(from.0)),
        // The whole tensor: of its two ends the one that is not a part.
        _ => (from.max(to), 1),
    };
    let (group, stride) = (scale.groups.along(axis), scale.groups.stride(axis));
    let hidden = if axis == Axis::Tensor { scale.stack.tensor_hidden } else { 0 };
    Work::Collective(Collective { kind, size, axis, group, stride, times, hidden })
}

/// In which numbers a contraction computes: that of a weight or of its gradient in 8 bits where
/// layers do, but for the layer that ends in the loss.
pub(super) fn numbers(graph: &Graph, step: &Step, precision: Precision) -> Numbers {
    let of_weight = [step.reads[1], step.writes[0]].iter().any(|&id| graph.at(id).form.is_weight());
    match precision {
        Precision::Fp8 if of_weight && ends_in_loss(graph) => Numbers::Bf16BesideFp8,
        Precision::Fp8 if of_weight => Numbers::Fp8,
        Precision::Fp8 | Precision::Bf16 => Numbers::Bf16,
    }
}

/// Whether a contraction is that of the weights of experts, or of their gradient.
pub(super) fn is_grouped(graph: &Graph, step: &Step) -> bool {
    let ends = [step.reads[1], step.writes[0]].map(|id| graph.at(id));
    ends.iter().any(|tensor| tensor.form.is_weight() && tensor.dims.contains(&Dim::Experts))
}

/// Whether a pass is that of the layer which ends in the loss.
pub(crate) fn ends_in_loss(graph: &Graph) -> bool {
    let is_loss =
        |action: &Action| matches!(action, Action::Vector { kind: VectorKind::CrossEntropy, .. });
    graph.steps.iter().any(|step| is_loss(&step.action))
}

fn leaves_no_operator(action: &Action) -> bool {
    matches!(action, Action::Split | Action::Concat | Action::Exchange { there: None, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Attention;
    use crate::model::Layer;
    use crate::model::Modules;
    use crate::model::backward;
    use crate::model::families;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;

    fn passes(spec: &Spec, kind: usize, attention: Attention) -> [Dag<Op>; 2] {
        let mut layer: Layer = families::build(spec).kinds[kind].clone();
        backward::place_core(&mut layer, attention);
        let sizes = &spec.sizes(1, 64);
        let scale = Scale {
            sizes,
            scattered_sequence: 64,
            element: Bytes(2),
            groups: Groups::ALONE,
            masked: Masked::Computed,
            reach: layer.reach,
            stack: Stack::IDEAL,
        };
        let back = backward::derive(&layer, attention, Modules::NONE);
        let mut left = back.kept.clone();
        left.extend(layer.output);
        let left_back: Vec<TensorId> = back.output.into_iter().collect();
        [fuse(&layer.graph, &left, scale), fuse(&back.graph, &left_back, scale)]
    }

    fn op<'a>(pass: &'a Dag<Op>, name: &str) -> &'a Op {
        pass.nodes().iter().find(|op| op.name == name).unwrap()
    }

    fn kinds(op: &Op) -> Vec<VectorKind> {
        let (Work::Matmul { fused: work, .. } | Work::Vector(work)) = &op.work else {
            panic!("{} has no vector work", op.name)
        };
        work.iter().map(|work| work.kind).collect()
    }

    #[test]
    fn what_alone_reads_a_matmul_runs_behind_it() {
        use VectorKind::{Add, Bias, Dropout, Gelu, LayerNorm, Mask, Scale, Softmax};
        let [forward, backward] = passes(&examples::gpt(), 1, Attention::Stored);
        let names: Vec<&str> = forward.nodes().iter().map(|op| op.name.as_str()).collect();
        let expected = [
            "attention_norm",
            "qkv",
            "scores",
            "context",
            "attention_out",
            "mlp_norm",
            "mlp_up",
            "mlp_down",
        ];
        assert_eq!(names, expected);
        assert_eq!(kinds(op(&forward, "scores")), [Scale, Mask, Softmax, Dropout]);
        assert_eq!(kinds(op(&forward, "attention_out")), [Bias, Dropout, Add]);
        assert_eq!(kinds(op(&backward, "mlp_down.dX")), [Gelu, Bias]);
        assert_eq!(kinds(op(&backward, "mlp_up.dX")), [LayerNorm, Add]);
        assert_eq!(kinds(op(&backward, "mlp_dropout.grad")), [Dropout, Bias]);
    }

    #[test]
    fn bytes_are_those_of_what_enters_leaves_and_is_kept() {
        // One sequence of 64 tokens, hidden 32, MLP 128, eight heads: in bytes of one hidden tensor.
        let (x, scores) = (64 * 32 * 2, 8 * 64 * 64 * 2);
        let [forward, backward] = passes(&examples::gpt(), 1, Attention::Stored);
        let traffic = |pass: &Dag<Op>, name| {
            let t = op(pass, name).traffic;
            [t.hbm_read, t.hbm_written, t.glb_read, t.glb_written].map(|bytes| bytes.0)
        };
        let (gain_bias, bias, wide_bias) = (2 * 32 * 2, 32 * 2, 128 * 2);
        assert_eq!(traffic(&forward, "attention_norm"), [x + gain_bias, x, x + gain_bias, x]);
        // The matmul writes as much as the dropped probabilities; those before dropout and the
        // mask, in one byte, come on top.
        let kept = scores + scores / 2;
        assert_eq!(traffic(&forward, "scores"), [0, kept, scores, scores + kept]);
        assert_eq!(traffic(&forward, "context"), [0; 4]);
        let (read, mask) = (x + bias, x / 2);
        assert_eq!(traffic(&forward, "attention_out"), [read, mask, x + read, x + mask]);
        let wide = 4 * x;
        let expected = [wide_bias, wide, wide + wide_bias, 2 * wide];
        assert_eq!(traffic(&forward, "mlp_up"), expected, "the activation's input is kept");
        let expected = [wide, wide_bias, 2 * wide, wide + wide_bias];
        assert_eq!(traffic(&backward, "mlp_down.dX"), expected);
    }

    #[test]
    fn scores_of_recomputed_attention_never_cross_hbm() {
        for spec in examples::all() {
            let whole = passes(&spec, 1, Attention::Recomputed);
            let scores = 64 * 64 * spec.heads * 2;
            for op in whole.iter().flat_map(Dag::nodes) {
                let (read, written) = op.hbm_bytes(Bytes(2));
                let is_attention = op.name.starts_with("scores") || op.name.starts_with("context");
                let small = read.0.max(written.0) < scores;
                assert!(!is_attention || small, "{:?} {}", spec.family, op.name);
            }
            let again = op(&whole[1], "scores.again");
            assert!(kinds(again).contains(&VectorKind::Softmax));
        }
    }

    #[test]
    fn gradients_of_weights_are_leaves() {
        for spec in examples::all() {
            for kind in 0..3 {
                let [_, backward] = passes(&spec, kind, Attention::Stored);
                for id in backward.ids() {
                    let leaf = backward.successors(id).is_empty();
                    assert!(leaf || !backward.node(id).name.ends_with(".dW"));
                }
            }
        }
    }
}
