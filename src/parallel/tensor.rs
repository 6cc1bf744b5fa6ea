//! Tensor and sequence parallelism: where the devices that share a layer must exchange.
//!
//! Which dimensions are cut is a property of their names ([`Dim::is_cut`]); the exchanges follow:
//!
//! - A product of a whole activation with something cut leaves each device with a part of the
//!   activation's gradient: the activation *enters* the divided region, and on the way back its
//!   gradients are summed.
//! - A sum over a cut dimension leaves each device with a part of the result: it *leaves* the
//!   divided region through a sum over devices.
//! - So it does where vector work joins it to something cut.
//! - A loss over a cut vocabulary exchanges three values per token: the largest logit, the sum of
//!   exponentials, and the logit of the token itself.
//!
//! With sequence parallelism what is not cut is divided along the sequence instead of held by all:
//! to enter is to gather (and on the way back to sum and scatter), to leave is to sum and scatter.

use std::collections::BTreeMap;

use crate::model::Axis;
use crate::model::Module;
use crate::model::dim::Dim;
use crate::model::layer::Action;
use crate::model::layer::Form;
use crate::model::layer::Graph;
use crate::model::layer::Layer;
use crate::model::layer::Step;
use crate::model::layer::Tensor;
use crate::model::layer::TensorId;
use crate::model::op::CollectiveKind;
use crate::model::op::Pass;
use crate::model::op::VectorKind;

/// The layer with the exchanges that its division among several devices needs.
pub fn divide(layer: &Layer, sequence_parallel: bool) -> Layer {
    let mut division = Division {
        graph: Graph { tensors: layer.graph.tensors.clone(), steps: Vec::new() },
        sequence_parallel,
        entered: BTreeMap::new(),
    };
    // What a layer takes from the one before, or from outside the model.
    let makers = layer.graph.makers();
    for (tensor, maker) in division.graph.tensors.iter_mut().zip(makers) {
        tensor.scattered = sequence_parallel && maker.is_none() && !tensor.form.is_weight();
    }
    for step in &layer.graph.steps {
        division.add(step.clone());
    }
    Layer { graph: division.graph, ..layer.clone() }
}

struct Division {
    graph: Graph,
    sequence_parallel: bool,
    /// Whole activations that are already in the divided region, and their name there.
    entered: BTreeMap<TensorId, TensorId>,
}

impl Division {
    fn add(&mut self, mut step: Step) {
        match &step.action {
            Action::Contract => {
                self.enter_operands(&mut step);
                let summed = self.graph.contraction(&step).k;
                self.add_summed(step, &summed);
            }
            Action::Gather if self.graph.at(step.reads[0]).form.is_weight() => {
                self.add_summed(step, &[Dim::Vocabulary]);
            }
            Action::Gather => self.add_picked(step),
            Action::Vector { kind: VectorKind::CrossEntropy, .. } => self.add_loss(step),
            Action::Vector { .. } => {
                self.enter_operands(&mut step);
                self.add_alike(step);
            }
            Action::Opaque(opaque) if opaque.is_cut() => self.add_opaque(step),
            _ => self.add_alike(step),
        }
    }

    /// Adds a step of which only the cost is known and that devices divide: whole tensors enter for
    /// it, and those that it makes are parts of sums.
    fn add_opaque(&mut self, mut step: Step) {
        for read in &mut step.reads {
            let tensor = self.graph.at(*read);
            if !tensor.is_cut() && !tensor.form.is_weight() {
                *read = self.enter(*read, step.module);
            }
        }
        let is_whole = |place: &usize| !self.graph.at(step.writes[*place]).is_cut();
        let parts: Vec<usize> = (0..step.writes.len()).filter(is_whole).collect();
        self.add_parts(step, &parts);
    }

    /// Adds a step whose results are divided as what it reads is.
    fn add_alike(&mut self, step: Step) {
        let scattered = step.reads.iter().any(|&id| self.graph.at(id).scattered);
        for written in &step.writes {
            let tensor = &mut self.graph.tensors[written.0];
            tensor.scattered = scattered && !tensor.is_cut();
        }
        self.graph.steps.push(step);
    }

    /// Lets a whole operand enter where the other one is cut.
    fn enter_operands(&mut self, step: &mut Step) {
        let cut = |graph: &Graph, id: TensorId| graph.at(id).is_cut();
        let either = step.reads.iter().any(|&id| cut(&self.graph, id));
        for read in &mut step.reads {
            let whole = !cut(&self.graph, *read) && !self.graph.at(*read).form.is_weight();
            if either && whole {
                *read = self.enter(*read, step.module);
            }
        }
    }

    /// What enters for a module is exchanged by it.
    fn enter(&mut self, id: TensorId, module: Option<Module>) -> TensorId {
        if let Some(&inside) = self.entered.get(&id) {
            return inside;
        }
        let tensor = self.graph.at(id).clone();
        let inside = self.graph.tensor(Tensor { scattered: false, ..tensor.clone() });
        let (there, back) = if tensor.scattered {
            (Some(CollectiveKind::AllGather), CollectiveKind::ReduceScatter)
        } else {
            (None, CollectiveKind::AllReduce)
        };
        let name = format!("{}_enter", tensor.name);
        self.exchange(&name, (there, Some(back)), (id, inside), module);
        self.entered.insert(id, inside);
        inside
    }

    /// Adds a step that sums over dimensions, and the sum over devices if one of them is cut.
    fn add_summed(&mut self, step: Step, summed: &[Dim]) {
        if summed.iter().any(|dim| dim.is_cut()) {
            self.add_parts(step, &[0]);
        } else {
            self.add_alike(step);
        }
    }

    /// Adds a step that makes, at these places, a part of what all devices together make, and the
    /// sums over devices.
    fn add_parts(&mut self, mut step: Step, places: &[usize]) {
        let mut sums = Vec::new();
        for &place in places {
            let result = step.writes[place];
            let tensor = self.graph.at(result).clone();
            let name = format!("{}_partial", tensor.name);
            let partial = self.graph.tensor(Tensor { name, ..tensor.clone() });
            step.writes[place] = partial;
            self.graph.tensors[result.0].scattered = self.sequence_parallel;
            sums.push((format!("{}_leave", tensor.name), partial, result));
        }
        let module = step.module;
        self.graph.steps.push(step);
        let ways = if self.sequence_parallel {
            (Some(CollectiveKind::ReduceScatter), Some(CollectiveKind::AllGather))
        } else {
            (Some(CollectiveKind::AllReduce), None)
        };
        for (name, partial, result) in sums {
            self.exchange(&name, ways, (partial, result), module);
        }
    }

    /// Adds a step that picks a token of each sequence: where the sequence is divided, one device has
    /// it and the others get it from there.
    fn add_picked(&mut self, mut step: Step) {
        if !self.graph.at(step.reads[0]).scattered {
            return self.add_alike(step);
        }
        let result = step.writes[0];
        let tensor = self.graph.at(result).clone();
        let name = format!("{}_own", tensor.name);
        let own = self.graph.tensor(Tensor { name, ..tensor.clone() });
        step.writes[0] = own;
        let module = step.module;
        self.graph.steps.push(step);
        let ways = (Some(CollectiveKind::AllReduce), None);
        self.exchange(&format!("{}_leave", tensor.name), ways, (own, result), module);
    }

    fn add_loss(&mut self, step: Step) {
        let mut value = step.writes[0];
        let dims = self.graph.at(value).dims.clone();
        let cut = step.reads.iter().any(|&id| self.graph.at(id).is_cut());
        self.graph.steps.push(step);
        if !cut {
            return;
        }
        for part in ["largest", "sum", "target"] {
            let name = format!("loss_{part}");
            let summed = self.graph.tensor(Tensor {
                name: name.clone(),
                dims: dims.clone(),
                form: Form::Wide,
                scattered: false,
                on_chip: false,
            });
            let ways = (Some(CollectiveKind::AllReduce), None);
            self.exchange(&name, ways, (value, summed), None);
            value = summed;
        }
    }

    fn exchange(
        &mut self,
        name: &str,
        (there, back): (Option<CollectiveKind>, Option<CollectiveKind>),
        (from, to): (TensorId, TensorId),
        module: Option<Module>,
    ) {
        self.graph.steps.push(Step {
            name: name.into(),
            action: Action::Exchange { axis: Axis::Tensor, there, back },
            pass: Pass::Forward,
            reads: vec![from],
            writes: vec![to],
            core: false,
            module,
            run: None,
            again: false,
        });
    }
}
