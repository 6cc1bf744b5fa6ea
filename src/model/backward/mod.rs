//! The backward pass, derived by rule from the forward pass.
//!
//! In: a forward graph, divided among devices or not. Out: the gradient steps, and which tensors
//! of the forward pass must be kept for them. The rules:
//!
//! - A contraction has one gradient contraction per operand, of the gradient and the other operand;
//!   that of a weight is read by nobody in the layer.
//! - A tensor with several readers gets the sum of their gradients.
//! - A sum and a bias pass the gradient on; a bias sums it over rows besides.
//! - Softmax, sigmoid and hyperbolic tangent need their output, norms, other activations, products
//!   and routers their inputs, dropout its mask, the loss its logits; the rest need nothing.
//! - A step of which only the cost is known says itself what it needs.
//! - What is needed is kept, unless its step is done again: attention's core when attention is
//!   recomputed, the gathering of a tensor that devices hold in parts, what goes round a ring, the
//!   activation of a gate, which runs in the kernel of the product, and the modules that are
//!   repeated.
//! - A module is repeated as a whole, as frameworks do, its exchanges included; its result is kept
//!   all the same where the rest of the layer needs it, norms apart.

mod ring;

use std::collections::BTreeSet;

use super::Attention;
use super::Module;
use super::Modules;
use super::dim::Dim;
use super::layer::Action;
use super::layer::Form;
use super::layer::Graph;
use super::layer::Layer;
use super::layer::Step;
use super::layer::Tensor;
use super::layer::TensorId;
use super::op::CollectiveKind;
use super::op::Pass;
use super::op::VectorKind;
use super::opaque::Opaque;

/// The backward pass of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backward {
    /// Its steps; the first tensors are those of the forward pass, under the same ids.
    pub graph: Graph,
    /// The tensors of the forward pass that it reads, each once, weights apart.
    pub kept: Vec<TensorId>,
    /// The gradient that it hands to the layer before.
    pub output: Option<TensorId>,
}

/// Marks what recomputed attention makes and uses on the chip.
pub fn place_core(layer: &mut Layer, attention: Attention) {
    let core = layer.graph.steps.iter().filter(|step| step.core);
    let made: Vec<TensorId> = core.flat_map(|step| step.writes.clone()).collect();
    for id in made {
        layer.graph.tensors[id.0].on_chip = attention == Attention::Recomputed;
    }
}

/// The backward pass of `layer`, which repeats `modules`.
pub fn derive(layer: &Layer, attention: Attention, modules: Modules) -> Backward {
    let forward = &layer.graph;
    let n_tensors = forward.tensors.len();
    let mut derivation = Derivation {
        forward,
        input: layer.input,
        makers: forward.makers(),
        readers: forward.readers(),
        attention,
        modules,
        graph: Graph { tensors: forward.tensors.clone(), steps: Vec::new() },
        gradients: vec![Vec::new(); n_tensors],
        again: vec![None; n_tensors],
        kept: BTreeSet::new(),
    };
    if let Some(output) = layer.output {
        derivation.new_gradient(output);
    }
    // Every reader of a tensor comes after its maker, so walking back, all gradients of what a
    // step makes are there when the step is reached.
    for step in ring::walked_back(forward) {
        derivation.reverse(step);
    }
    let output = layer.input.and_then(|input| derivation.gradient(input));
    Backward { graph: derivation.graph, kept: derivation.kept.into_iter().collect(), output }
}

struct Derivation<'a> {
    forward: &'a Graph,
    /// What the layer takes from the one before.
    input: Option<TensorId>,
    makers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
    attention: Attention,
    /// What is repeated.
    modules: Modules,
    graph: Graph,
    /// What flows back into each forward tensor, one from each reader.
    gradients: Vec<Vec<TensorId>>,
    /// The copy of a forward tensor that was computed again.
    again: Vec<Option<TensorId>>,
    kept: BTreeSet<TensorId>,
}

impl<'a> Derivation<'a> {
    fn reverse(&mut self, step: &'a Step) {
        if let Some(module) = self.module(step).filter(|module| !module.drops_its_result()) {
            self.repeat_whole(module);
        }
        match &step.action {
            Action::Contract => self.reverse_contraction(step),
            Action::Vector { kind, .. } => self.reverse_vector(step, *kind),
            Action::Gather => {
                if let Some(dy) = self.gradient(step.writes[0]) {
                    let table = self.new_gradient(step.reads[0]);
                    self.push(step, "grad", Action::Gather, vec![dy], vec![table]);
                }
            }
            Action::Split => {
                let parts: Option<Vec<TensorId>> =
                    step.writes.iter().map(|&part| self.gradient(part)).collect();
                if let Some(parts) = parts {
                    let whole = self.new_gradient(step.reads[0]);
                    self.push(step, "grad", Action::Concat, parts, vec![whole]);
                }
            }
            Action::Concat => {
                if let Some(whole) = self.gradient(step.writes[0]) {
                    let reads = step.reads.iter();
                    let parts = reads.map(|&part| self.new_gradient(part)).collect();
                    self.push(step, "grad", Action::Split, vec![whole], parts);
                }
            }
            Action::Opaque(opaque) => self.reverse_opaque(step, opaque),
            Action::Dispatch => self.reverse_move(step, Action::Combine),
            Action::Combine => self.reverse_move(step, Action::Dispatch),
            action if ring::passes_on(action) => self.reverse_ring(step),
            &Action::Exchange { axis, there, back } => {
                if let Some(dy) = self.gradient(step.writes[0]) {
                    let dx = self.new_gradient(step.reads[0]);
                    let action = Action::Exchange { axis, there: back, back: there };
                    self.push(step, "back", action, vec![dy], vec![dx]);
                }
            }
        }
    }

    fn reverse_move(&mut self, step: &Step, back: Action) {
        if let Some(dy) = self.gradient(step.writes[0]) {
            let dx = self.new_gradient(step.reads[0]);
            self.push(step, "grad", back, vec![dy], vec![dx]);
        }
    }

    /// What flows back into an opaque step, and what it keeps, gives the gradients of all that it
    /// reads.
    fn reverse_opaque(&mut self, step: &Step, opaque: &Opaque) {
        let mut reads: Vec<TensorId> =
            step.writes.iter().filter_map(|&made| self.gradient(made)).collect();
        if reads.is_empty() {
            return;
        }
        let tensors: Vec<TensorId> = step.reads.iter().chain(&step.writes).copied().collect();
        let by = self.module(step);
        let kept = opaque.keeps.iter().map(|&place| self.needed(tensors[place], by));
        reads.extend(kept.collect::<Vec<_>>());
        // Nothing is to be learned of what comes from outside the model, nor of a mask.
        let learns = |derivation: &Self, id: TensorId| {
            let (form, maker) = (derivation.forward.at(id).form, derivation.makers[id.0]);
            let flows = maker.is_some() || derivation.input == Some(id);
            form.is_weight() || (flows && form != Form::Mask)
        };
        let of: Vec<TensorId> = step.reads.iter().copied().filter(|&id| learns(self, id)).collect();
        let writes: Vec<TensorId> = of.into_iter().map(|id| self.new_gradient(id)).collect();
        if !writes.is_empty() {
            self.push(step, "grad", step.action.clone(), reads, writes);
        }
    }

    fn reverse_contraction(&mut self, step: &Step) {
        let Some(dy) = self.gradient(step.writes[0]) else { return };
        let (left, right) = (step.reads[0], step.reads[1]);
        let of_weight = self.forward.at(right).form.is_weight();
        let suffixes = if of_weight {
            ["dX".to_owned(), "dW".to_owned()]
        } else {
            [left, right].map(|id| format!("d_{}", self.forward.at(id).name))
        };
        // Nothing is to be learned of what comes from outside the model.
        if self.makers[left.0].is_some() || self.input == Some(left) {
            let other = self.needed(right, self.module(step));
            let d_left = self.new_gradient(left);
            self.push(step, &suffixes[0], Action::Contract, vec![dy, other], vec![d_left]);
        }
        let other = self.needed(left, self.module(step));
        let d_right = self.new_gradient(right);
        self.push(step, &suffixes[1], Action::Contract, vec![other, dy], vec![d_right]);
    }

    fn reverse_vector(&mut self, step: &Step, kind: VectorKind) {
        let dy = self.gradient(step.writes[0]);
        if kind == VectorKind::CrossEntropy {
            // The loss is where gradients begin.
            let logits = self.needed(step.reads[0], self.module(step));
            let d_logits = self.new_gradient(step.reads[0]);
            return self.push(step, "grad", step.action.clone(), vec![logits], vec![d_logits]);
        }
        let Some(dy) = dy else { return };
        let needed: Vec<TensorId> = match kind {
            VectorKind::Add => {
                for &read in &step.reads {
                    self.gradients[read.0].push(dy);
                }
                return;
            }
            VectorKind::Bias => {
                self.gradients[step.reads[0].0].push(dy);
                let d_weight = self.weight_gradient(step, step.reads[1]);
                return self.push(step, "grad", step.action.clone(), vec![dy], vec![d_weight]);
            }
            VectorKind::Scale | VectorKind::Mask | VectorKind::Rotary | VectorKind::Join => {
                Vec::new()
            }
            VectorKind::Softmax | VectorKind::Tanh | VectorKind::Sigmoid => vec![step.writes[0]],
            VectorKind::Dropout => vec![step.writes[1]],
            VectorKind::Relu
            | VectorKind::SquaredRelu
            | VectorKind::Gelu
            | VectorKind::Silu
            | VectorKind::Multiply
            | VectorKind::Weigh
            | VectorKind::Route
            | VectorKind::LayerNorm
            | VectorKind::RmsNorm => step.reads.clone(),
            VectorKind::CrossEntropy | VectorKind::Sgd | VectorKind::Adam => {
                panic!("{kind:?} is not inside a layer")
            }
        };
        let mut reads = vec![dy];
        let by = self.module(step);
        reads.extend(needed.into_iter().map(|id| self.needed(id, by)));
        let writes = step.reads.iter().map(|&read| match self.forward.at(read).form {
            Form::Weight | Form::TiedWeight | Form::HeadWeight => self.weight_gradient(step, read),
            Form::Activation | Form::Wide | Form::Mask => self.new_gradient(read),
        });
        let writes = writes.collect();
        self.push(step, "grad", step.action.clone(), reads, writes);
    }

    /// The sum of what flows back into a tensor; none if nothing does.
    fn gradient(&mut self, id: TensorId) -> Option<TensorId> {
        let parts = std::mem::take(&mut self.gradients[id.0]);
        let (&first, rest) = parts.split_first()?;
        let mut sum = first;
        for (nth, &part) in rest.iter().enumerate() {
            let tensor = self.forward.at(id);
            let (rows, row) = tensor.dims.split_at(tensor.dims.len() - 1);
            let kind = VectorKind::Add;
            let action = Action::Vector { kind, rows: rows.to_vec(), row: row.to_vec() };
            let nth = if nth == 0 { String::new() } else { format!("_{}", nth + 1) };
            let name = format!("{}.fork{nth}", tensor.name);
            let total = self.graph.tensor(gradient_of(tensor));
            self.graph.steps.push(Step {
                name,
                action,
                pass: Pass::Backward,
                reads: vec![sum, part],
                writes: vec![total],
                core: false,
                module: None,
                run: None,
                again: false,
            });
            sum = total;
        }
        Some(sum)
    }

    /// A tensor of the forward pass as the backward pass of some module reads it: kept, or made
    /// again.
    fn needed(&mut self, id: TensorId, by: Option<Module>) -> TensorId {
        if self.forward.at(id).form.is_weight() {
            return id;
        }
        let maker = self.makers[id.0].map(|step| &self.forward.steps[step]);
        let Some(step) = maker.filter(|step| self.is_done_again(step, by)) else {
            self.kept.insert(id);
            return id;
        };
        self.repeat(step);
        self.again[id.0].expect("the step that makes it was just repeated")
    }

    /// The module that a step is repeated with: the largest that it is in and that is repeated.
    fn module(&self, step: &Step) -> Option<Module> {
        let inner = step.module?;
        Some(inner.around().filter(|&outer| self.modules.contains(outer)).unwrap_or(inner))
    }

    /// Repeats all of a module, unless nothing of it is to be repeated or everything has been.
    fn repeat_whole(&mut self, module: Module) {
        if self.modules.contains(module) {
            let forward = self.forward;
            for step in &forward.steps {
                if self.module(step) == Some(module) {
                    self.repeat(step);
                }
            }
        }
    }

    /// Does a step of the forward pass once more, unless it already was.
    fn repeat(&mut self, step: &Step) {
        if self.again[step.writes[0].0].is_some() {
            return;
        }
        let by = self.module(step);
        let reads = step.reads.iter().map(|&read| self.needed(read, by)).collect();
        let mut writes = Vec::new();
        for &written in &step.writes {
            let copy = self.graph.tensor(self.forward.at(written).clone());
            self.again[written.0] = Some(copy);
            writes.push(copy);
        }
        let name = format!("{}.again", step.name);
        self.graph.steps.push(Step { name, reads, writes, again: true, ..step.clone() });
    }

    /// Whether what a step makes is made again where the backward pass of some module needs it.
    fn is_done_again(&self, step: &Step, by: Option<Module>) -> bool {
        let module = self.module(step).filter(|&module| self.modules.contains(module));
        if module.is_some_and(|module| module.drops_its_result() || by == Some(module)) {
            return true;
        }
        match step.action {
            // Having it from the other devices costs less than the memory for what they hold.
            Action::Exchange { there, .. } => {
                matches!(there, None | Some(CollectiveKind::AllGather | CollectiveKind::Send))
            }
            _ if self.activates_a_gate(step) => true,
            _ => step.core && self.attention == Attention::Recomputed,
        }
    }

    /// Whether a step is the activation of one factor of a product, or a product that is weighed,
    /// and nothing else reads it: the kernel of what reads it then has both, forward and backward.
    fn activates_a_gate(&self, step: &Step) -> bool {
        let is_activation = matches!(
            step.action,
            Action::Vector {
                kind: VectorKind::Relu
                    | VectorKind::SquaredRelu
                    | VectorKind::Gelu
                    | VectorKind::Silu
                    | VectorKind::Tanh
                    | VectorKind::Multiply,
                ..
            }
        );
        let multiplies = |&reader: &usize| {
            let action = &self.forward.steps[reader].action;
            matches!(action, Action::Vector { kind: VectorKind::Multiply | VectorKind::Weigh, .. })
        };
        is_activation && self.readers[step.writes[0].0].iter().all(multiplies)
    }

    /// A gradient that flows back into a forward tensor.
    fn new_gradient(&mut self, of: TensorId) -> TensorId {
        let gradient = self.graph.tensor(gradient_of(self.forward.at(of)));
        self.gradients[of.0].push(gradient);
        gradient
    }

    /// The gradient of a weight that vector work reads: as large as a row, of a table of positions
    /// only those that the sequence has.
    fn weight_gradient(&mut self, step: &Step, of: TensorId) -> TensorId {
        let Action::Vector { row, .. } = &step.action else { panic!("only vector work asks") };
        let x = self.forward.at(step.reads[0]);
        // Each expert has a row of its own.
        let own = self.forward.at(of).dims.iter().filter(|&&dim| dim == Dim::Experts).copied();
        let gradient = Tensor {
            dims: own.chain(row.iter().copied()).collect(),
            scattered: x.scattered,
            ..gradient_of(self.forward.at(of))
        };
        self.graph.tensor(gradient)
    }

    fn push(
        &mut self,
        of: &Step,
        suffix: &str,
        action: Action,
        reads: Vec<TensorId>,
        writes: Vec<TensorId>,
    ) {
        self.graph.steps.push(Step {
            name: format!("{}.{suffix}", of.name),
            action,
            pass: Pass::Backward,
            reads,
            writes,
            core: false,
            module: None,
            run: None,
            again: false,
        });
    }
}

fn gradient_of(tensor: &Tensor) -> Tensor {
    let form = match tensor.form {
        Form::Weight | Form::TiedWeight | Form::HeadWeight => Form::Weight,
        Form::Activation | Form::Wide | Form::Mask => Form::Activation,
    };
    Tensor { name: format!("d_{}", tensor.name), form, ..tensor.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Masked;
    use crate::model::Reach;
    use crate::model::families;
    use crate::model::fusion::Groups;
    use crate::model::fusion::Scale;
    use crate::model::shapes;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;
    use crate::units::Bytes;

    fn kept(spec: &Spec, attention: Attention) -> Vec<String> {
        let layer = &families::build(spec).kinds[1];
        let backward = derive(layer, attention, Modules::NONE);
        backward.kept.iter().map(|&id| layer.graph.at(id).name.clone()).collect()
    }

    #[test]
    fn shapes_agree_along_every_edge_of_every_family() {
        for spec in examples::all() {
            let sizes = spec.sizes(2, 16);
            let scale = Scale {
                sizes: &sizes,
                scattered_sequence: 16,
                element: Bytes(2),
                groups: Groups::ALONE,
                masked: Masked::Computed,
                reach: Reach::All,
                stack: crate::model::Stack::IDEAL,
            };
            for layer in families::build(&spec).kinds {
                shapes::check(&layer.graph, scale);
                for attention in [Attention::Stored, Attention::Recomputed] {
                    shapes::check(&derive(&layer, attention, Modules::NONE).graph, scale);
                }
            }
        }
    }

    #[test]
    fn every_matmul_has_a_gradient_of_each_operand_with_as_many_operations() {
        for spec in examples::all() {
            let sizes = spec.sizes(2, 16);
            for layer in families::build(&spec).kinds {
                let backward = derive(&layer, Attention::Recomputed, Modules::NONE).graph;
                let macs = |graph: &Graph, step: &Step| graph.contraction(step).wide_macs(&sizes);
                let matmuls = layer.graph.steps.iter().filter(|s| s.action == Action::Contract);
                for step in matmuls {
                    let prefix = format!("{}.d", step.name);
                    let gradients: Vec<&Step> =
                        backward.steps.iter().filter(|s| s.name.starts_with(&prefix)).collect();
                    // Nothing flows back into what comes from outside the model.
                    let outside = layer.graph.makers()[step.reads[0].0].is_none()
                        && layer.input != Some(step.reads[0]);
                    let expected = if outside { 1 } else { 2 };
                    assert_eq!(gradients.len(), expected, "{}", step.name);
                    for gradient in gradients {
                        assert_eq!(macs(&backward, gradient), macs(&layer.graph, step));
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_of_weights_are_made_once_and_read_by_nobody() {
        for spec in examples::all() {
            for layer in families::build(&spec).kinds {
                let backward = derive(&layer, Attention::Stored, Modules::NONE).graph;
                let (makers, readers) = (backward.makers(), backward.readers());
                let trained = layer.graph.steps.iter().flat_map(|step| &step.reads);
                let trained = trained.filter(|id| layer.graph.at(**id).form.is_weight()).count();
                let n_tensors = layer.graph.tensors.len();
                let gradients = (n_tensors..backward.tensors.len())
                    .filter(|&id| backward.tensors[id].form.is_weight());
                let gradients: Vec<usize> = gradients.collect();
                assert_eq!(gradients.len(), trained, "{:?} {}", spec.family, layer.name);
                assert!(gradients.iter().all(|&id| makers[id].is_some() && readers[id].is_empty()));
            }
        }
    }

    #[test]
    fn a_gpt_layer_keeps_the_published_tensors() {
        let stored = [
            "input",
            "attention_norm",
            "q",
            "k",
            "v",
            "softmax",
            "softmax_dropout",
            "softmax_dropout_mask",
            "context",
            "attention_dropout_mask",
            "attention_residual",
            "mlp_norm",
            "mlp_up_bias",
            "activation",
            "mlp_dropout_mask",
        ];
        assert_eq!(kept(&examples::gpt(), Attention::Stored), stored);
        let recomputed: Vec<&str> =
            stored.into_iter().filter(|name| !name.starts_with("softmax")).collect();
        assert_eq!(kept(&examples::gpt(), Attention::Recomputed), recomputed);
    }

    #[test]
    fn a_gated_mlp_keeps_what_its_kernel_reads_and_makes() {
        let llama = &examples::all()[2];
        let kept = kept(llama, Attention::Recomputed);
        let keeps = |name: &str| kept.iter().any(|kept| kept == name);
        assert!(["gate", "up", "gate_times_up"].into_iter().all(keeps));
        assert!(!keeps("activation"), "the gradient of the product makes it again");
        assert!(!kept.iter().any(|name| name.ends_with("mask")), "there is no dropout");
    }

    #[test]
    fn a_fork_adds_as_often_as_it_has_further_branches() {
        for spec in examples::all() {
            for layer in families::build(&spec).kinds {
                let backward = derive(&layer, Attention::Stored, Modules::NONE).graph;
                let readers = layer.graph.readers();
                let makers = layer.graph.makers();
                let flows = |id: &usize| {
                    let is_input = layer.input == Some(TensorId(*id));
                    makers[*id].is_some() || is_input
                };
                let branches = (0..readers.len()).filter(flows).map(|id| readers[id].len());
                let expected: usize = branches.map(|n| n.saturating_sub(1)).sum();
                let adds = backward.steps.iter().filter(|step| step.name.contains(".fork"));
                assert_eq!(adds.count(), expected, "{:?} {}", spec.family, layer.name);
            }
        }
    }
}
