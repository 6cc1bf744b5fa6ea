//! Experts that devices share: what they exchange of the rows that visit them.
//!
//! The devices that share a layer share each of its experts: every one has a part of the elements
//! between an expert's matmuls. As sequence parallelism gives each of them a part of the tokens, they
//! gather the rows that visit an expert, and sum and scatter what comes out of it.

use crate::model::Axis;
use crate::model::dim::Dim;
use crate::model::layer::Action;
use crate::model::layer::Graph;
use crate::model::layer::Layer;
use crate::model::layer::Step;
use crate::model::layer::Tensor;
use crate::model::layer::TensorId;
use crate::model::op::CollectiveKind;

/// The layer with the exchanges that several devices need whose experts it shares among them.
pub fn divide(layer: &Layer) -> Layer {
    let mut graph = Graph { tensors: layer.graph.tensors.clone(), steps: Vec::new() };
    for step in &layer.graph.steps {
        match step.action {
            Action::Dispatch => dispatch(&mut graph, step),
            Action::Combine => combine(&mut graph, step),
            _ => graph.steps.push(step.clone()),
        }
    }
    Layer { graph, ..layer.clone() }
}

/// Rows are gathered after they were dispatched.
fn dispatch(graph: &mut Graph, step: &Step) {
    let gathered = step.writes[0];
    let own = own_rows(graph, gathered);
    graph.steps.push(Step { writes: vec![own], ..step.clone() });
    let ways = [CollectiveKind::AllGather, CollectiveKind::ReduceScatter];
    graph.steps.push(exchange("dispatch_gather", step, ways, (own, gathered)));
}

/// Rows are summed and scattered before they are combined.
fn combine(graph: &mut Graph, step: &Step) {
    let parts = step.reads[0];
    let own = own_rows(graph, parts);
    let ways = [CollectiveKind::ReduceScatter, CollectiveKind::AllGather];
    graph.steps.push(exchange("combine_scatter", step, ways, (parts, own)));
    graph.steps.push(Step { reads: vec![own], ..step.clone() });
}

/// The rows of a tensor that belong to a device's own tokens.
fn own_rows(graph: &mut Graph, all: TensorId) -> TensorId {
    let tensor = graph.at(all).clone();
    let own = |&dim: &Dim| if dim == Dim::Rows { Dim::OwnRows } else { dim };
    let dims = tensor.dims.iter().map(own).collect();
    graph.tensor(Tensor { name: format!("{}_own", tensor.name), dims, ..tensor })
}

fn exchange(
    name: &str,
    of: &Step,
    [there, back]: [CollectiveKind; 2],
    (from, to): (TensorId, TensorId),
) -> Step {
    let axis = Axis::ExpertTensor;
    Step {
        name: name.into(),
        action: Action::Exchange { axis, there: Some(there), back: Some(back) },
        reads: vec![from],
        writes: vec![to],
        ..of.clone()
    }
}
