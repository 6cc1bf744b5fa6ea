//! From a model and a setting to one device's share.

use super::Illegal;
use super::LayerShare;
use super::Setting;
use super::Share;
use super::Tied;
use super::tensor;
use super::width;
use crate::model::Layer;
use crate::model::Model;
use crate::model::backward;
use crate::model::dim::Dim;
use crate::model::dim::Sizes;
use crate::model::fusion;
use crate::model::fusion::Scale;
use crate::model::layer::Action;
use crate::model::layer::Form;
use crate::model::layer::Graph;
use crate::model::op::Matmul;
use crate::units::Bytes;
use crate::units::Flops;

/// One device's share of `model`.
pub fn shard(model: &Model, setting: Setting) -> Result<Share, Illegal> {
    width::check(model, setting)?;
    let whole = model.spec.sizes(setting.micro_batch, setting.sequence);
    let device = width::divided(&model.spec, setting);
    let kinds = model.kinds.iter().map(|layer| shard_layer(layer, &whole, &device, setting));
    let tied = model.spec.tied.then(|| {
        let elements = device.vocabulary * model.spec.embedding;
        Tied { parameters: elements }
    });
    Ok(Share { setting, kinds: kinds.collect(), sequence: model.sequence.clone(), tied })
}

fn shard_layer(layer: &Layer, whole: &Sizes, device: &Sizes, setting: Setting) -> LayerShare {
    let width = setting.tensor_parallel;
    let mut divided =
        if width == 1 { layer.clone() } else { tensor::divide(layer, setting.sequence_parallel) };
    backward::place_core(&mut divided, setting.attention);
    let scale = Scale {
        sizes: device,
        scattered_sequence: setting.sequence / if setting.sequence_parallel { width } else { 1 },
        element: setting.element,
        group: width,
    };
    let backward = backward::derive(&divided, setting.attention);
    let graph = &divided.graph;
    let mut left = backward.kept.clone();
    left.extend(divided.output);
    let left_back: Vec<_> = backward.output.into_iter().collect();
    let bytes = |id| scale.bytes(graph, id);
    let held = Held::of(layer, whole, device, width);
    LayerShare {
        name: layer.name.clone(),
        forward: fusion::fuse(graph, &left, scale),
        backward: fusion::fuse(&backward.graph, &left_back, scale),
        parameters: held.parameters,
        replicated: held.replicated,
        padded: held.padded,
        kept: backward.kept.iter().map(|&id| bytes(id)).sum(),
        input: divided.input.map_or(Bytes::ZERO, bytes),
        output: divided.output.map_or(Bytes::ZERO, bytes),
        tensor_parallel: width > 1,
        repeated: repeated(&backward.graph, device),
    }
}

/// Operations of the contractions that the backward pass does once more.
fn repeated(graph: &Graph, sizes: &Sizes) -> Flops {
    let again = graph.steps.iter().filter(|step| step.again && step.action == Action::Contract);
    again.map(|step| Matmul::flops(graph.contraction(step).sized(sizes))).sum()
}

/// Parameters of a layer that devices hold, and what they hold beyond one copy of each.
struct Held {
    parameters: u64,
    replicated: u64,
    padded: u64,
}

impl Held {
    fn of(layer: &Layer, whole: &Sizes, device: &Sizes, width: u64) -> Self {
        let mut held = Self { parameters: 0, replicated: 0, padded: 0 };
        for tensor in &layer.graph.tensors {
            if !matches!(tensor.form, Form::Weight | Form::HeadWeight) {
                continue;
            }
            let here = device.elements(&tensor.dims);
            let beyond = here * width - whole.elements(&tensor.dims);
            held.parameters += here;
            if tensor.dims.contains(&Dim::Vocabulary) {
                held.padded += beyond;
            } else {
                held.replicated += beyond;
            }
        }
        held
    }
}
