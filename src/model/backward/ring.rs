//! How gradients go round a ring.
//!
//! Forward, the keys and values of each device pass from neighbour to neighbour, and each device
//! works on what has just arrived. Backward they do so once more, and what each device adds to
//! their gradients travels with them: after as many sends as there are devices the sum of all is
//! where the keys and values came from. Walking the ring the other way would need one send less,
//! but no gradient could start before the last keys and values have arrived.

use super::Derivation;
use super::gradient_of;
use crate::model::Axis;
use crate::model::layer::Action;
use crate::model::layer::Graph;
use crate::model::layer::Step;
use crate::model::layer::TensorId;
use crate::model::op::CollectiveKind;
use crate::model::op::Pass;
use crate::model::op::VectorKind;

/// Whether an action passes something on to the next device of a ring.
pub fn passes_on(action: &Action) -> bool {
    matches!(action, Action::Exchange { there: Some(CollectiveKind::Send), .. })
}

/// The steps of a graph from the last to the first, but for those of a ring: the blocks that
/// arrived first come first, as they do on the way there, and its sends after all of them.
pub(super) fn walked_back(graph: &Graph) -> Vec<&Step> {
    let (mut order, mut blocks, mut sends) = (Vec::new(), Vec::new(), Vec::new());
    let first_send = graph.steps.iter().position(|step| passes_on(&step.action));
    for (place, step) in graph.steps.iter().enumerate().rev() {
        match step.run {
            _ if passes_on(&step.action) => sends.push(step),
            Some(_) => blocks.push(step),
            None => order.push(step),
        }
        if Some(place) == first_send {
            // A stable order: each block is still walked back from its end.
            blocks.sort_by_key(|step| step.run);
            order.append(&mut blocks);
            order.append(&mut sends);
        }
    }
    order
}

impl<'a> Derivation<'a> {
    /// The gradients of all that a ring passed on, once its first send is reached.
    ///
    /// Every device's work on what arrives stands after the first send in the forward pass, so all
    /// of its gradients are there.
    pub(super) fn reverse_ring(&mut self, first: &'a Step) {
        let maker = self.makers[first.reads[0].0];
        if maker.is_some_and(|step| passes_on(&self.forward.steps[step].action)) {
            return;
        }
        let mut sends = vec![first];
        while let Some(next) = self.next_send(sends[sends.len() - 1]) {
            sends.push(next);
        }
        let Some(mut carried) = self.gradients_of(&first.reads) else { return };
        for send in sends {
            let Some(own) = self.gradients_of(&send.writes) else { return };
            let forms = send.writes.iter().map(|&id| gradient_of(self.forward.at(id)));
            let arrived: Vec<TensorId> = forms.map(|form| self.graph.tensor(form)).collect();
            self.pass_on(format!("{}.back", send.name), first, carried, arrived.clone());
            let terms = own.into_iter().zip(arrived).zip(&send.writes);
            carried = terms.map(|(two, &of)| self.added(two, of)).collect();
        }
        let home = first.reads.iter().map(|&id| self.new_gradient(id)).collect();
        self.pass_on(format!("{}.home", first.name), first, carried, home);
    }

    fn gradients_of(&mut self, ids: &[TensorId]) -> Option<Vec<TensorId>> {
        ids.iter().map(|&id| self.gradient(id)).collect()
    }

    fn next_send(&self, send: &Step) -> Option<&'a Step> {
        let mut steps = self.forward.steps.iter();
        steps.find(|step| passes_on(&step.action) && step.reads == send.writes)
    }

    fn pass_on(&mut self, name: String, of: &Step, reads: Vec<TensorId>, writes: Vec<TensorId>) {
        let send = Some(CollectiveKind::Send);
        let action = Action::Exchange { axis: Axis::Context, there: send, back: send };
        let pass = Pass::Backward;
        self.graph.steps.push(Step { name, action, pass, reads, writes, ..of.clone() });
    }

    /// The sum of a device's own gradient and of what has arrived.
    fn added(&mut self, (own, arrived): (TensorId, TensorId), of: TensorId) -> TensorId {
        let tensor = self.forward.at(of);
        let (rows, row) = tensor.dims.split_at(tensor.dims.len() - 1);
        let (kind, rows, row) = (VectorKind::Add, rows.to_vec(), row.to_vec());
        let total = self.graph.tensor(gradient_of(tensor));
        self.graph.steps.push(Step {
            name: format!("{}.arrived", tensor.name),
            action: Action::Vector { kind, rows, row },
            pass: Pass::Backward,
            reads: vec![own, arrived],
            writes: vec![total],
            core: false,
            module: None,
            run: None,
            again: false,
        });
        total
    }
}
