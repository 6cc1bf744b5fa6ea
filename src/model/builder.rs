//! How families write a layer's forward pass.

use super::Module;
use super::Reach;
use super::dim::Dim;
use super::layer::Action;
use super::layer::Form;
use super::layer::Graph;
use super::layer::Layer;
use super::layer::Step;
use super::layer::Tensor;
use super::layer::TensorId;
use super::op::Pass;
use super::op::VectorKind;
use super::spec::Norm;

/// Tokens, and something of the same shape beside them.
const PAIR: [Dim; 4] = [Dim::Batch, Dim::Sequence, Dim::Pair, Dim::Hidden];

/// Either of the two.
const PAIR_PART: [Dim; 3] = [Dim::Batch, Dim::Sequence, Dim::Hidden];

/// Writes a layer's forward pass, step by step.
pub struct LayerBuilder {
    layer: Layer,
    /// What parameters are, unless they say otherwise.
    weights: Form,
    in_core: bool,
    module: Option<Module>,
}

impl LayerBuilder {
    /// An empty layer.
    pub fn new(name: &str) -> Self {
        let graph = Graph::default();
        Self {
            layer: Layer { name: name.into(), graph, reach: Reach::All, input: None, output: None },
            weights: Form::Weight,
            in_core: false,
            module: None,
        }
    }

    /// An empty layer that only training needs.
    pub fn for_training(name: &str) -> Self {
        Self { weights: Form::HeadWeight, ..Self::new(name) }
    }

    /// What the layer takes from the one before: a token's hidden elements.
    pub fn input(&mut self) -> TensorId {
        let input = self.activation("input", &[Dim::Batch, Dim::Sequence, Dim::Hidden]);
        self.layer.input = Some(input);
        input
    }

    /// The same where something of the same shape travels beside the tokens: both apart.
    pub fn input_pair(&mut self, parts: [&str; 2]) -> [TensorId; 2] {
        let input = self.activation("input", &PAIR);
        self.layer.input = Some(input);
        let parts = parts.map(|part| (part, &PAIR_PART[..]));
        let parts = self.split("input_parts", input, &parts);
        [parts[0], parts[1]]
    }

    /// What a layer hands on where something of the same shape travels beside the tokens.
    pub fn output_pair(&mut self, parts: [TensorId; 2]) -> TensorId {
        self.concat("output", &parts, &PAIR)
    }

    /// What the batch holds beside ids, from outside the model.
    pub fn data(&mut self, name: &str, dims: &[Dim]) -> TensorId {
        self.activation(name, dims)
    }

    /// The dimensions of a tensor.
    pub fn dims(&self, id: TensorId) -> &[Dim] {
        &self.layer.graph.at(id).dims
    }

    /// A parameter.
    pub fn weight(&mut self, name: &str, dims: &[Dim]) -> TensorId {
        self.tensor(name, dims, self.weights)
    }

    /// A parameter of the given form.
    pub fn tensor(&mut self, name: &str, dims: &[Dim], form: Form) -> TensorId {
        self.layer.graph.tensor(Tensor {
            name: name.into(),
            dims: dims.to_vec(),
            form,
            scattered: false,
            on_chip: false,
        })
    }

    /// What `steps` adds belongs to attention's core.
    pub fn core<T>(&mut self, steps: impl FnOnce(&mut Self) -> T) -> T {
        self.in_core = true;
        let made = steps(self);
        self.in_core = false;
        made
    }

    /// What `steps` adds belongs to a module that can be repeated by itself.
    pub fn module<T>(&mut self, module: Module, steps: impl FnOnce(&mut Self) -> T) -> T {
        self.module = Some(module);
        let made = steps(self);
        self.module = None;
        made
    }

    /// A product of `left` and `right`, summed over what `dims` leaves out.
    pub fn contract(
        &mut self,
        name: &str,
        left: TensorId,
        right: TensorId,
        dims: &[Dim],
    ) -> TensorId {
        self.contract_as(name, left, right, (dims, Form::Activation))
    }

    /// The same with a result of the given form.
    pub fn contract_as(
        &mut self,
        name: &str,
        left: TensorId,
        right: TensorId,
        (dims, form): (&[Dim], Form),
    ) -> TensorId {
        let out = self.tensor(name, dims, form);
        self.step(name, Action::Contract, &[left, right], &[out]);
        out
    }

    /// A product with a weight of its own, from the last dimensions of `x` to `to`.
    pub fn linear(&mut self, name: &str, x: TensorId, from: &[Dim], to: &[Dim]) -> TensorId {
        let weight = self.weight(&format!("{name}_weight"), &[from, to].concat());
        let tokens = &self.layer.graph.at(x).dims;
        let rows: Vec<Dim> = tokens.iter().filter(|dim| !from.contains(dim)).copied().collect();
        self.contract(name, x, weight, &[&rows[..], to].concat())
    }

    /// A bias added along the last `n_dims` dimensions of `x`, if `wanted`.
    pub fn bias(&mut self, name: &str, x: TensorId, n_dims: usize, wanted: bool) -> TensorId {
        if !wanted {
            return x;
        }
        let dims = self.layer.graph.at(x).dims.clone();
        let weight = self.weight(name, &dims[dims.len() - n_dims..]);
        self.table(name, x, weight, n_dims)
    }

    /// A weight's first rows added along the last `n_dims` dimensions of `x`.
    pub fn table(&mut self, name: &str, x: TensorId, weight: TensorId, n_dims: usize) -> TensorId {
        self.vector_along(name, VectorKind::Bias, &[x, weight], n_dims, Form::Activation)
    }

    /// A norm along the last dimension.
    pub fn norm(&mut self, name: &str, norm: Norm, x: TensorId) -> TensorId {
        self.norm_along(name, norm, x, 1)
    }

    /// A norm along the last `n_dims` dimensions together.
    pub fn norm_along(&mut self, name: &str, norm: Norm, x: TensorId, n_dims: usize) -> TensorId {
        let dims = &self.layer.graph.at(x).dims;
        let row = dims[dims.len() - n_dims..].to_vec();
        let mut reads = vec![x];
        if norm != Norm::RmsWithoutGain {
            reads.push(self.weight(&format!("{name}_gain"), &row));
        }
        if norm == Norm::Layer {
            reads.push(self.weight(&format!("{name}_bias"), &row));
        }
        self.vector_along(name, norm.kind(), &reads, n_dims, Form::Activation)
    }

    /// Element-wise work, or a softmax along the last dimension.
    pub fn vector(&mut self, name: &str, kind: VectorKind, reads: &[TensorId]) -> TensorId {
        self.vector_along(name, kind, reads, 1, Form::Activation)
    }

    /// Vector work along the last `n_dims` dimensions of what it reads first.
    pub fn vector_along(
        &mut self,
        name: &str,
        kind: VectorKind,
        reads: &[TensorId],
        n_dims: usize,
        form: Form,
    ) -> TensorId {
        let dims = self.layer.graph.at(reads[0]).dims.clone();
        let (rows, row) = dims.split_at(dims.len() - n_dims);
        let out = self.tensor(name, &dims, form);
        let action = Action::Vector { kind, rows: rows.to_vec(), row: row.to_vec() };
        self.step(name, action, reads, &[out]);
        out
    }

    /// Dropout with its mask, if there is any.
    pub fn dropout(&mut self, name: &str, x: TensorId, wanted: bool) -> TensorId {
        if !wanted {
            return x;
        }
        let out = self.vector(name, VectorKind::Dropout, &[x]);
        let dims = self.layer.graph.at(x).dims.clone();
        let mask = self.tensor(&format!("{name}_mask"), &dims, Form::Mask);
        let step = self.layer.graph.steps.last_mut().expect("dropout was just added");
        step.writes.push(mask);
        out
    }

    /// The position turned into the first elements of each head.
    pub fn rotary(&mut self, name: &str, x: TensorId) -> TensorId {
        let dims = self.layer.graph.at(x).dims.clone();
        let out = self.activation(name, &dims);
        let rows = dims[..dims.len() - 1].to_vec();
        let action = Action::Vector { kind: VectorKind::Rotary, rows, row: vec![Dim::Rotary] };
        self.step(name, action, &[x], &[out]);
        out
    }

    /// The parts of `x`, which together have its elements.
    pub fn split(&mut self, name: &str, x: TensorId, parts: &[(&str, &[Dim])]) -> Vec<TensorId> {
        let parts: Vec<TensorId> =
            parts.iter().map(|(part, dims)| self.activation(part, dims)).collect();
        self.step(name, Action::Split, &[x], &parts);
        parts
    }

    /// Several tensors seen as one of these dimensions, which has all of their elements.
    pub fn concat(&mut self, name: &str, parts: &[TensorId], dims: &[Dim]) -> TensorId {
        let whole = self.activation(name, dims);
        self.step(name, Action::Concat, parts, &[whole]);
        whole
    }

    /// The first token of each sequence.
    pub fn first_token(&mut self, name: &str, x: TensorId) -> TensorId {
        let out = self.activation(name, &[Dim::Batch, Dim::One, Dim::Hidden]);
        self.step(name, Action::Gather, &[x], &[out]);
        out
    }

    /// Vector work that makes something of other dimensions than what it reads first; `row` are
    /// the dimensions along which it repeats, `rows` how often.
    pub fn vector_to(
        &mut self,
        name: &str,
        (kind, rows, row): (VectorKind, &[Dim], &[Dim]),
        reads: &[TensorId],
        (dims, form): (&[Dim], Form),
    ) -> TensorId {
        let out = self.tensor(name, dims, form);
        let action = Action::Vector { kind, rows: rows.to_vec(), row: row.to_vec() };
        self.step(name, action, reads, &[out]);
        out
    }

    /// Tokens copied to the rows of the experts that they visit.
    pub fn dispatch(&mut self, name: &str, x: TensorId) -> TensorId {
        let out = self.activation(name, &[Dim::Experts, Dim::Rows, Dim::Hidden]);
        self.step(name, Action::Dispatch, &[x], &[out]);
        out
    }

    /// The rows of experts summed for each token.
    pub fn combine(&mut self, name: &str, rows: TensorId) -> TensorId {
        let out = self.activation(name, &[Dim::Batch, Dim::Sequence, Dim::Hidden]);
        self.step(name, Action::Combine, &[rows], &[out]);
        out
    }

    /// A product of each expert's rows with a weight of its own, and a bias if `biased`.
    pub fn grouped(
        &mut self,
        name: &str,
        x: TensorId,
        (from, to): (&[Dim], &[Dim]),
        biased: bool,
    ) -> TensorId {
        let expert = [Dim::Experts];
        let weight = self.weight(&format!("{name}_weight"), &[&expert[..], from, to].concat());
        let dims = [&[Dim::Experts, Dim::Rows][..], to].concat();
        let out = self.contract(name, x, weight, &dims);
        if !biased {
            return out;
        }
        let bias = self.weight(&format!("{name}_bias"), &[&expert[..], to].concat());
        self.table(&format!("{name}_bias"), out, bias, to.len())
    }

    /// Rows of `table` picked by the ids of the batch.
    pub fn gather(&mut self, name: &str, table: TensorId, row: Dim) -> TensorId {
        let out = self.activation(name, &[Dim::Batch, Dim::Sequence, row]);
        self.step(name, Action::Gather, &[table], &[out]);
        out
    }

    /// The loss of each token, from its logits.
    pub fn loss(&mut self, name: &str, logits: TensorId) {
        let dims = self.layer.graph.at(logits).dims.clone();
        let (rows, row) = dims.split_at(dims.len() - 1);
        // Logits are read and kept in 4 bytes: the sum over a vocabulary loses too much in 2.
        self.layer.graph.tensors[logits.0].form = Form::Wide;
        let loss = self.tensor(name, rows, Form::Wide);
        let kind = VectorKind::CrossEntropy;
        let action = Action::Vector { kind, rows: rows.to_vec(), row: row.to_vec() };
        self.step(name, action, &[logits], &[loss]);
    }

    /// The layer, handing `output` to the one after it; none if it ends in the loss.
    pub fn finish(mut self, output: Option<TensorId>) -> Layer {
        self.layer.output = output;
        self.layer
    }

    fn activation(&mut self, name: &str, dims: &[Dim]) -> TensorId {
        self.tensor(name, dims, Form::Activation)
    }

    fn step(&mut self, name: &str, action: Action, reads: &[TensorId], writes: &[TensorId]) {
        self.layer.graph.steps.push(Step {
            name: name.into(),
            action,
            pass: Pass::Forward,
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            core: self.in_core,
            module: self.module,
            run: None,
            again: false,
        });
    }
}
