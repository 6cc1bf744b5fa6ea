//! What stands in the place of the MLP in a mixture of experts: a router, the experts that each token
//! visits, and one that all visit.
//!
//! Weights of the router are applied to what stands between an expert's matmuls, so that the rows
//! that come back are only added up. They travel with the tokens, which is not counted.

use crate::model::Experts;
use crate::model::Module;
use crate::model::RouterBias;
use crate::model::builder::LayerBuilder;
use crate::model::dim::Dim;
use crate::model::layer::Form;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::model::spec::Spec;

const TOKENS: [Dim; 2] = [Dim::Batch, Dim::Sequence];

/// The experts of a layer, from its normed tokens `x` on.
pub fn experts(layer: &mut LayerBuilder, x: TensorId, spec: &Spec) -> TensorId {
    let experts = spec.experts.expect("the layer has experts");
    let (weights, rows) = layer.module(Module::Moe, |layer| {
        let weights = router(layer, x, &experts);
        let rows = layer.dispatch("dispatch", x);
        let (from, to) = ([Dim::Hidden], [Dim::Gates, Dim::ExpertMlp]);
        let both = layer.grouped("experts_gate_up", rows, (&from, &to), experts.biases);
        (weights, both)
    });
    let active = layer.module(Module::MoeActivation, |layer| {
        let half = [Dim::Experts, Dim::Rows, Dim::ExpertMlp];
        let parts = [("expert_gate", &half[..]), ("expert_up", &half)];
        let parts = layer.split("expert_branches", rows, &parts);
        let active = layer.vector("expert_activation", spec.activation.kind(), &[parts[0]]);
        let product =
            layer.vector("expert_gate_times_up", VectorKind::Multiply, &[active, parts[1]]);
        layer.vector("expert_weigh", VectorKind::Weigh, &[product, weights])
    });
    let routed = layer.module(Module::Moe, |layer| {
        let (from, to) = ([Dim::ExpertMlp], [Dim::Hidden]);
        let down = layer.grouped("experts_down", active, (&from, &to), experts.biases);
        layer.combine("combine", down)
    });
    if experts.shared.is_none() {
        return routed;
    }
    let shared = layer.module(Module::SharedExperts, |layer| shared(layer, x, spec, &experts));
    layer.module(Module::Moe, |layer| {
        layer.vector("experts_sum", VectorKind::Add, &[routed, shared])
    })
}

/// The weight of each expert that a token visits.
fn router(layer: &mut LayerBuilder, x: TensorId, experts: &Experts) -> TensorId {
    let weight = layer.weight("router_weight", &[Dim::Hidden, Dim::Choices]);
    let dims = [&TOKENS[..], &[Dim::Choices]].concat();
    // Scores are compared in 4 bytes.
    let mut logits = layer.contract_as("router", x, weight, (&dims, Form::Wide));
    match experts.router_bias {
        RouterBias::None => {}
        RouterBias::Trained => {
            let bias = layer.weight("router_bias", &[Dim::Choices]);
            logits =
                layer.vector_along("router_bias", VectorKind::Bias, &[logits, bias], 1, Form::Wide);
        }
        RouterBias::Balancing => {
            layer.weight("router_bias", &[Dim::Choices]);
        }
    }
    let chosen = [&TOKENS[..], &[Dim::Routes]].concat();
    let work = (VectorKind::Route, &TOKENS[..], &[Dim::Choices][..]);
    layer.vector_to("route", work, &[logits], (&chosen, Form::Wide))
}

/// The expert that all tokens visit.
fn shared(layer: &mut LayerBuilder, x: TensorId, spec: &Spec, experts: &Experts) -> TensorId {
    let to = [Dim::Gates, Dim::SharedMlp];
    let both = layer.linear("shared_gate_up", x, &[Dim::Hidden], &to);
    let half = [&TOKENS[..], &[Dim::SharedMlp]].concat();
    let parts = [("shared_gate", &half[..]), ("shared_up", &half)];
    let parts = layer.split("shared_branches", both, &parts);
    let active = layer.vector("shared_activation", spec.activation.kind(), &[parts[0]]);
    let product = layer.vector("shared_gate_times_up", VectorKind::Multiply, &[active, parts[1]]);
    let down = layer.linear("shared_down", product, &[Dim::SharedMlp], &[Dim::Hidden]);
    if !experts.shared_is_weighted {
        return down;
    }
    let gate = layer.linear("shared_weight", x, &[Dim::Hidden], &[Dim::One]);
    let gate = layer.vector("shared_weight_sigmoid", VectorKind::Sigmoid, &[gate]);
    layer.vector("shared_weigh", VectorKind::Weigh, &[down, gate])
}
