//! From steps to kernels as training frameworks launch them: one after the other, each with all of
//! the device, vector work apart from matmuls.
//!
//! In: the graph of one pass and sizes. Out: a graph of [`Op`]s in which each waits for the one
//! before. Only the sends of a ring run beside the others, as frameworks overlap them.
//!
//! What vector work moves is a table of bytes per element ([`moved`]): kernels read and write their
//! tensors in memory, and a bias, a mask or the activation of a gate runs in the kernel of its
//! neighbour. A gradient of a weight is added to a sum in 4 bytes. Matmuls in 8 bits have their
//! inputs cast first.

use std::collections::BTreeSet;

use super::Axis;
use super::dim::Dim;
use super::fusion::Scale;
use super::fusion::exchange;
use super::fusion::is_grouped;
use super::fusion::numbers;
use super::layer::Action;
use super::layer::Graph;
use super::layer::Step;
use super::layer::TensorId;
use super::op::Home;
use super::op::Homes;
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

/// Bytes of one weight's gradient as it is summed up.
const GRADIENT: Bytes = Bytes(4);
/// Bytes that a cast to 8 bits moves for each element: it is read, and written as it is and
/// transposed.
const CAST: u64 = 4;

/// Bytes that permuting the rows of experts moves for each element: it is written in their order, and
/// read and written once more where rows are packed.
const PERMUTE: u64 = 8;

/// The kernels of one pass.
pub fn launch(graph: &Graph, scale: Scale) -> Dag<Op> {
    let mut launched = Launched {
        graph,
        scale,
        makers: graph.makers(),
        readers: graph.readers(),
        sources: vec![BTreeSet::new(); graph.tensors.len()],
        cast: BTreeSet::new(),
        ops: Vec::new(),
        edges: Vec::new(),
        last: None,
    };
    for step in &graph.steps {
        launched.place(step);
    }
    Dag::from_edges(launched.ops, &launched.edges).expect("each waits for earlier ones alone").0
}

struct Launched<'a> {
    graph: &'a Graph,
    scale: Scale<'a>,
    makers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
    /// The kernels that each tensor waits for.
    sources: Vec<BTreeSet<usize>>,
    /// What was cast to 8 bits in this pass.
    cast: BTreeSet<TensorId>,
    ops: Vec<Op>,
    edges: Vec<(usize, usize)>,
    /// The last kernel of those that follow each other.
    last: Option<usize>,
}

impl Launched<'_> {
    fn place(&mut self, step: &Step) {
        let waits: BTreeSet<usize> =
            step.reads.iter().flat_map(|read| self.sources[read.0].iter().copied()).collect();
        let made = match &step.action {
            Action::Split | Action::Concat | Action::Exchange { there: None, .. } => None,
            Action::Contract => {
                self.cast(step, &waits);
                Some(self.matmul(step))
            }
            Action::Vector { .. } => self.vector(step),
            Action::Gather => {
                let bytes = if step.pass == Pass::Forward { 4 } else { 10 };
                let end = if step.pass == Pass::Forward { step.writes[0] } else { step.reads[0] };
                let sizes = self.scale.sizes(self.graph.at(end).scattered);
                let elements = sizes.elements(&self.graph.at(end).dims);
                Some((Work::Move, self.traffic(elements, bytes)))
            }
            Action::Dispatch | Action::Combine => {
                let ends = [step.reads[0], step.writes[0]].map(|id| {
                    let tensor = self.graph.at(id);
                    self.scale.sizes(tensor.scattered).elements(&tensor.dims)
                });
                let rows = ends[0].max(ends[1]);
                Some((Work::Move, self.traffic(rows, PERMUTE)))
            }
            Action::Opaque(opaque) => Some(opaque::operator(opaque, self.graph, step, self.scale)),
            Action::Exchange { .. } => {
                Some((exchange(self.graph, step, self.scale), Traffic::default()))
            }
        };
        let sources = match made {
            None => waits,
            Some((work, traffic)) => {
                let name = step.name.clone();
                BTreeSet::from([self.add(Op { name, work, traffic }, &waits, is_beside(step))])
            }
        };
        for written in &step.writes {
            self.sources[written.0].clone_from(&sources);
        }
    }

    /// Adds a kernel that waits for these, and for the last one unless it runs beside the others.
    fn add(&mut self, op: Op, waits: &BTreeSet<usize>, beside: bool) -> usize {
        let at = self.ops.len();
        let mut waits = waits.clone();
        if !beside {
            waits.extend(self.last);
            self.last = Some(at);
        }
        self.ops.push(op);
        self.edges.extend(waits.into_iter().map(|source| (source, at)));
        at
    }

    /// Before a matmul in 8 bits reads a tensor for the first time, it is cast; weights are cast once
    /// for many micro-batches.
    fn cast(&mut self, step: &Step, waits: &BTreeSet<usize>) {
        let with_weight = self.graph.at(step.reads[1]).form.is_weight();
        let is_fp8 = numbers(self.graph, step, self.scale.stack.precision) == Numbers::Fp8;
        let read = step.reads[0];
        if !is_fp8 || !with_weight || !self.cast.insert(read) {
            return;
        }
        let tensor = self.graph.at(read);
        let elements = self.scale.sizes(tensor.scattered).elements(&tensor.dims);
        let traffic = self.traffic(elements, CAST);
        let name = format!("{}.cast", step.name);
        self.add(Op { name, work: Work::Move, traffic }, waits, false);
    }

    fn matmul(&self, step: &Step) -> (Work, Traffic) {
        let matmul = self.scale.matmul(self.graph, step);
        let numbers = numbers(self.graph, step, self.scale.stack.precision);
        let operand = numbers.operand(self.scale.element);
        let home = |id: TensorId| {
            if self.graph.at(id).on_chip { Home::Chip } else { Home::Hbm }
        };
        let out = step.writes[0];
        let homes = Homes { a: home(step.reads[0]), b: home(step.reads[1]), out: home(out) };
        let (rows, inner, columns) = (matmul.m, matmul.k, matmul.n);
        // Loops that leave out pairs of tokens are shorter than the tensors that they go over.
        let beyond = |id: TensorId, counted: u64| {
            if self.scale.leaves_out_pairs() && home(id) == Home::Hbm {
                let whole = self.scale.bytes(self.graph, id).0;
                Bytes(whole.saturating_sub((self.scale.element * counted).0))
            } else {
                Bytes::ZERO
            }
        };
        let elements = matmul.b * rows * columns;
        let mut traffic = Traffic {
            hbm_read: beyond(step.reads[0], matmul.b * rows * inner)
                + beyond(step.reads[1], matmul.b * inner * columns),
            hbm_written: beyond(out, elements),
            ..Traffic::default()
        };
        if self.graph.at(out).form.is_weight() {
            traffic.hbm_read += GRADIENT * elements;
            traffic.hbm_written += Bytes(GRADIENT.0.saturating_sub(operand.0)) * elements;
        } else if homes.out == Home::Hbm {
            traffic.hbm_written += Bytes(self.scale.element.0 - operand.0) * elements;
        }
        let grouped = is_grouped(self.graph, step);
        (Work::Matmul { matmul, homes, fused: Vec::new(), numbers, grouped }, traffic)
    }

    /// Vector work, where it is a kernel of its own.
    fn vector(&self, step: &Step) -> Option<(Work, Traffic)> {
        let Action::Vector { kind, rows, row } = &step.action else { return None };
        if step.writes.iter().chain(&step.reads).any(|&id| self.graph.at(id).on_chip)
            || self.is_in_the_kernel_of_a_product(step, *kind)
        {
            return None;
        }
        let dims = [&rows[..], row].concat();
        let bytes = moved(*kind, step.pass, Dim::are_pairs(&dims));
        let sizes = self.scale.sizes_over(&dims, self.graph.is_scattered(step));
        let (rows, row) = (sizes.elements(rows), sizes.elements(row));
        let work = VectorWork { kind: *kind, pass: step.pass, rows, row };
        let traffic = self.traffic(rows * row, bytes);
        (bytes > 0).then_some((Work::Vector(vec![work]), traffic))
    }

    /// Whether an activation is that of a gate: the product's kernel does it, both ways.
    fn is_in_the_kernel_of_a_product(&self, step: &Step, kind: VectorKind) -> bool {
        let multiplies = |at: usize| {
            let action = &self.graph.steps[at].action;
            matches!(action, Action::Vector { kind: VectorKind::Multiply, .. })
        };
        let made = step.reads.iter().filter_map(|read| self.makers[read.0]);
        let read = step.writes.iter().flat_map(|written| self.readers[written.0].iter().copied());
        kind != VectorKind::Multiply && made.chain(read).any(multiplies)
    }

    /// So many bytes for each element of two bytes, of which one element is written.
    fn traffic(&self, elements: u64, bytes: u64) -> Traffic {
        let element = self.scale.element.0;
        let all = elements * bytes * element / 2;
        let written = (elements * element).min(all / 2);
        let (read, written) = (Bytes(all - written), Bytes(written));
        Traffic { hbm_read: read, hbm_written: written, glb_read: read, glb_written: written }
    }
}

/// Whether a step runs beside the kernels: what goes round a ring.
fn is_beside(step: &Step) -> bool {
    use super::op::CollectiveKind::Send;
    let on_a_ring = |axis: Axis| axis == Axis::Context;
    matches!(step.action, Action::Exchange { axis, there: Some(Send), .. } if on_a_ring(axis))
}

/// Bytes that a kernel moves for each of its elements of two bytes.
///
/// A norm reads and writes forward; backward it reads the gradient and its input twice, and writes.
/// Bias, dropout and residual are one kernel: it reads both branches and writes, and a mask where
/// there is dropout; backward it reads and writes. A gated product reads two and writes one, and
/// backward reads three and writes two. The loss of logits in 4 bytes goes over them several times.
fn moved(kind: VectorKind, pass: Pass, of_pairs: bool) -> u64 {
    let (forward, backward) = match kind {
        VectorKind::LayerNorm | VectorKind::RmsNorm => (4, 8),
        VectorKind::Add | VectorKind::Join => (6, 4),
        VectorKind::Dropout if of_pairs => (5, 5),
        VectorKind::Dropout => (1, 1),
        VectorKind::Relu
        | VectorKind::SquaredRelu
        | VectorKind::Gelu
        | VectorKind::Silu
        | VectorKind::Tanh
        | VectorKind::Softmax
        | VectorKind::Route
        | VectorKind::Weigh
        | VectorKind::Sigmoid => (4, 6),
        VectorKind::Multiply => (6, 10),
        VectorKind::Rotary => (4, 4),
        VectorKind::CrossEntropy => (14, 6),
        VectorKind::Bias
        | VectorKind::Scale
        | VectorKind::Mask
        | VectorKind::Sgd
        | VectorKind::Adam => (0, 0),
    };
    if pass == Pass::Forward { forward } else { backward }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Attention;
    use crate::model::Kernels;
    use crate::model::Modules;
    use crate::model::Precision;
    use crate::model::Stack;
    use crate::model::backward;
    use crate::model::families;
    use crate::model::fusion::Groups;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;

    const N: u64 = 64;

    fn passes(spec: &Spec, attention: Attention, precision: Precision) -> [Dag<Op>; 2] {
        let mut layer = families::build(spec).kinds[1].clone();
        backward::place_core(&mut layer, attention);
        let scale = Scale {
            sizes: &spec.sizes(1, N),
            scattered_sequence: N,
            element: Bytes(2),
            groups: Groups::ALONE,
            masked: crate::model::Masked::Computed,
            reach: layer.reach,
            stack: Stack { kernels: Kernels::Megatron, precision, ..Stack::IDEAL },
        };
        let back = backward::derive(&layer, attention, Modules::NONE);
        [launch(&layer.graph, scale), launch(&back.graph, scale)]
    }

    /// Bytes through memory of all that is no matmul.
    fn beside_matmuls(pass: &Dag<Op>) -> u64 {
        let others = pass.nodes().iter().filter(|op| !matches!(op.work, Work::Matmul { .. }));
        others.map(|op| op.traffic.hbm_read.0 + op.traffic.hbm_written.0).sum()
    }

    #[test]
    fn a_layer_of_gpt_moves_what_its_kernels_move() {
        let spec = examples::gpt();
        let (h, f, pairs) = (N * spec.hidden, N * spec.mlp, N * N * spec.heads);
        let [forward, backward] = passes(&spec, Attention::Stored, Precision::Bf16);
        // Two norms, two residuals with dropout, a GELU, a softmax with dropout.
        assert_eq!(beside_matmuls(&forward), 2 * (4 + 7) * h + 4 * f + 9 * pairs);
        assert_eq!(beside_matmuls(&backward), 2 * (8 + 5) * h + 6 * f + 11 * pairs);
        let [fused, _] = passes(&spec, Attention::Recomputed, Precision::Bf16);
        assert_eq!(beside_matmuls(&fused), 2 * (4 + 7) * h + 4 * f, "the core is one kernel");
    }

    #[test]
    fn a_gated_layer_activates_in_the_kernel_of_its_product() {
        let spec = examples::all().remove(2);
        let (h, f) = (N * spec.hidden, N * spec.mlp);
        let turned = N * (spec.heads + spec.kv_heads) * spec.head;
        let [forward, backward] = passes(&spec, Attention::Recomputed, Precision::Bf16);
        assert_eq!(beside_matmuls(&forward), 2 * (4 + 6) * h + 6 * f + 4 * turned);
        assert_eq!(beside_matmuls(&backward), 2 * (8 + 4) * h + 10 * f + 4 * turned);
    }

    #[test]
    fn matmuls_in_eight_bits_have_their_inputs_cast_once() {
        let spec = examples::gpt();
        let (h, f) = (N * spec.hidden, N * spec.mlp);
        let attention = Attention::Recomputed;
        let [plain, plain_back] = passes(&spec, attention, Precision::Bf16);
        let [forward, backward] = passes(&spec, attention, Precision::Fp8);
        // Inputs of QKV, of the output, of both of the MLP; backward the gradients of what they make.
        let inputs = 3 * h + f;
        let gradients = 3 * h + h + f + h;
        assert_eq!(beside_matmuls(&forward), beside_matmuls(&plain) + 4 * inputs);
        assert_eq!(beside_matmuls(&backward), beside_matmuls(&plain_back) + 4 * gradients);
        for op in forward.nodes().iter().chain(backward.nodes()) {
            let Work::Matmul { homes, numbers, .. } = op.work else { continue };
            let expected = if homes.stay() { Numbers::Bf16 } else { Numbers::Fp8 };
            assert_eq!(numbers, expected, "{}", op.name);
        }
    }

    #[test]
    fn the_gradient_of_a_weight_is_added_in_four_bytes() {
        let spec = examples::gpt();
        for (precision, operand) in [(Precision::Bf16, 2), (Precision::Fp8, 1)] {
            let [_, backward] = passes(&spec, Attention::Recomputed, precision);
            let found = backward.nodes().iter().find(|op| op.name == "mlp_up.dW").unwrap();
            let weights = spec.hidden * spec.mlp;
            let beyond = found.traffic.hbm_read.0 + found.traffic.hbm_written.0;
            assert_eq!(beyond, (8 - operand) * weights);
        }
    }

    #[test]
    fn each_kernel_waits_for_the_one_before() {
        for spec in examples::all() {
            for attention in [Attention::Stored, Attention::Recomputed] {
                for pass in passes(&spec, attention, Precision::Fp8) {
                    for (before, id) in pass.ids().zip(pass.ids().skip(1)) {
                        assert!(pass.predecessors(id).contains(&before));
                    }
                }
            }
        }
    }
}
