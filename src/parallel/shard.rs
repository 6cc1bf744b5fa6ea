//! From a model and a setting to one device's share.

use super::Illegal;
use super::LayerShare;
use super::Setting;
use super::Share;
use super::Tied;
use super::context;
use super::expert;
use super::tensor;
use super::width;
use super::working::Working;
use crate::graph::Dag;
use crate::model::Attention;
use crate::model::Kernels;
use crate::model::Layer;
use crate::model::Masked;
use crate::model::Model;
use crate::model::Precision;
use crate::model::Reach;
use crate::model::backward;
use crate::model::dim::Dim;
use crate::model::dim::Sizes;
use crate::model::fusion;
use crate::model::fusion::Groups;
use crate::model::fusion::Scale;
use crate::model::kernels;
use crate::model::layer::Action;
use crate::model::layer::Form;
use crate::model::layer::Graph;
use crate::model::layer::TensorId;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::model::opaque;
use crate::units::Bytes;
use crate::units::Flops;

/// One device's share of `model`.
pub fn shard(model: &Model, setting: Setting) -> Result<Share, Illegal> {
    width::check(model, setting)?;
    let whole = model.spec.sizes(setting.micro_batch, setting.sequence);
    let device = width::divided(&model.spec, setting);
    let scale = scale(model, &device, setting);
    let kinds = model.kinds.iter().map(|layer| shard_layer((model, layer), &whole, scale, setting));
    let tied = model.spec.shares_a_table().then(|| {
        let elements = device.vocabulary * model.spec.embedding;
        Tied { parameters: elements }
    });
    Ok(Share { setting, kinds: kinds.collect(), sequence: model.sequence.clone(), tied })
}

/// What turns the names of a share's dimensions into loops and bytes.
pub(super) fn scale<'a>(model: &Model, device: &'a Sizes, setting: Setting) -> Scale<'a> {
    let width = setting.tensor_parallel;
    let parts = if setting.sequence_parallel { width } else { 1 };
    // Only a kernel that goes tile by tile can leave tiles out.
    let leaves_out = setting.attention == Attention::Recomputed && model.spec.family.is_causal();
    Scale {
        sizes: device,
        scattered_sequence: setting.own_tokens() / parts,
        element: setting.element,
        groups: Groups {
            tensor: width,
            context: setting.context,
            expert: setting.expert,
            expert_groups: relays(model, setting),
            expert_tensor: setting.expert_tensor,
        },
        masked: if leaves_out { setting.masked } else { Masked::Computed },
        reach: Reach::All,
        stack: setting.stack,
    }
}

/// The same for one of its layers: only a kernel that goes tile by tile leaves out what is beyond
/// the reach of its tokens.
pub(super) fn of_layer<'a>(scale: Scale<'a>, layer: &Layer, setting: Setting) -> Scale<'a> {
    match setting.attention {
        Attention::Recomputed => Scale { reach: layer.reach, ..scale },
        Attention::Stored => scale,
    }
}

/// Groups of experts that tokens are first sent to.
fn relays(model: &Model, setting: Setting) -> u64 {
    model.spec.experts.map_or(1, |experts| experts.relays(setting.expert))
}

/// A layer divided along every axis, with the exchanges that this needs.
pub(super) fn divide(model: &Model, layer: &Layer, setting: Setting) -> Layer {
    let mut divided = match setting.tensor_parallel {
        1 => layer.clone(),
        _ => tensor::divide(layer, setting.sequence_parallel),
    };
    if setting.expert_devices() > 1 {
        divided = expert::divide(&divided, setting, relays(model, setting));
    }
    if setting.context > 1 {
        divided = context::divide(&divided, setting.context, setting.context_kind);
    }
    backward::place_core(&mut divided, setting.attention);
    divided
}

fn shard_layer(
    (model, layer): (&Model, &Layer),
    whole: &Sizes,
    scale: Scale,
    setting: Setting,
) -> LayerShare {
    let scale = of_layer(scale, layer, setting);
    let width = setting.tensor_parallel;
    let divided = divide(model, layer, setting);
    let backward = backward::derive(&divided, setting.attention, setting.repeated);
    let graph = &divided.graph;
    let mut left = backward.kept.clone();
    left.extend(divided.output);
    let left_back: Vec<_> = backward.output.into_iter().collect();
    let bytes = |id| scale.bytes(graph, id);
    let held = Held::of(layer, whole, scale.sizes, width);
    let working = Working::of(&divided, scale);
    LayerShare {
        name: layer.name.clone(),
        forward: operators(graph, &left, scale),
        backward: operators(&backward.graph, &left_back, scale),
        parameters: held.parameters,
        expert_parameters: held.of_experts,
        replicated: held.replicated,
        padded: held.padded,
        kept: backward.kept.iter().map(|&id| kept(&backward.graph, id, scale)).sum(),
        working: working.all,
        passing: working.kept,
        weight_gradients: working.weight_gradients,
        input: divided.input.map_or(Bytes::ZERO, bytes),
        output: divided.output.map_or(Bytes::ZERO, bytes),
        tensor_parallel: width > 1,
        repeated: flops(&backward.graph, scale, true),
        hidden: hidden(graph, scale) + hidden(&backward.graph, scale),
    }
}

/// The operators of a pass as its software runs them; `left` are the tensors that must be in memory
/// at its end.
fn operators(graph: &Graph, left: &[TensorId], scale: Scale) -> Dag<Op> {
    match scale.stack.kernels {
        Kernels::FusedIdeal => fusion::fuse(graph, left, scale),
        Kernels::Megatron => kernels::launch(graph, scale),
    }
}

/// Bytes of a tensor that is kept for the backward pass: what only gradients of weights in 8 bits
/// read is kept as they read it.
fn kept(backward: &Graph, id: TensorId, scale: Scale) -> Bytes {
    let whole = scale.bytes(backward, id);
    let in_fp8 = scale.stack.precision == Precision::Fp8 && !fusion::ends_in_loss(backward);
    let is_activation = backward.at(id).form == Form::Activation;
    if in_fp8 && is_activation && only_for_weights(backward, &backward.readers(), id) {
        Bytes(whole.0 / 2)
    } else {
        whole
    }
}

/// Whether gradients of weights alone read a tensor, as it is or exchanged among devices.
fn only_for_weights(graph: &Graph, readers: &[Vec<usize>], id: TensorId) -> bool {
    let for_weights = |&reader: &usize| {
        let step = &graph.steps[reader];
        match step.action {
            Action::Contract => graph.at(step.writes[0]).form.is_weight(),
            Action::Split | Action::Exchange { .. } => {
                step.writes.iter().all(|&part| only_for_weights(graph, readers, part))
            }
            _ => false,
        }
    };
    !readers[id.0].is_empty() && readers[id.0].iter().all(for_weights)
}

/// Operations of the steps that are repetitions, or of those that are none.
fn flops(graph: &Graph, scale: Scale, again: bool) -> Flops {
    let counted = graph.steps.iter().filter(|step| step.again == again);
    let each = counted.map(|step| match &step.action {
        Action::Contract => scale.matmul(graph, step).flops(),
        Action::Opaque(opaque) => match opaque::operator(opaque, graph, step, scale).0 {
            Work::Opaque { flops } => Flops(u128::from(flops)),
            _ => Flops::ZERO,
        },
        _ => Flops::ZERO,
    });
    each.sum()
}

/// What a causal mask spares, repetitions apart.
fn hidden(graph: &Graph, scale: Scale) -> Flops {
    let whole = Scale { masked: Masked::Computed, ..scale };
    Flops(flops(graph, whole, false).0 - flops(graph, scale, false).0)
}

/// Parameters of a layer that devices hold, and what they hold beyond one copy of each.
struct Held {
    parameters: u64,
    of_experts: u64,
    replicated: u64,
    padded: u64,
}

impl Held {
    fn of(layer: &Layer, whole: &Sizes, device: &Sizes, width: u64) -> Self {
        let mut held = Self { parameters: 0, of_experts: 0, replicated: 0, padded: 0 };
        for tensor in &layer.graph.tensors {
            if !matches!(tensor.form, Form::Weight | Form::HeadWeight) {
                continue;
            }
            let here = device.elements(&tensor.dims);
            // Experts that more devices share than those of a width are no copies among these.
            let beyond = (here * width).saturating_sub(whole.elements(&tensor.dims));
            held.parameters += here;
            if tensor.dims.contains(&Dim::Experts) {
                held.of_experts += here;
            }
            if tensor.dims.contains(&Dim::Vocabulary) {
                held.padded += beyond;
            } else {
                held.replicated += beyond;
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::super::ContextKind;
    use super::*;
    use crate::model::families;
    use crate::model::spec::examples;

    fn share(model: &Model, attention: Attention, masked: Masked) -> Share {
        let setting = Setting { sequence: 64, attention, masked, ..Setting::ALONE };
        shard(model, setting).expect("one device is legal")
    }

    #[test]
    fn what_a_causal_mask_hides_is_not_computed_tile_by_tile() {
        for spec in examples::all() {
            let model = families::build(&spec);
            let full = share(&model, Attention::Recomputed, Masked::Computed);
            let half = share(&model, Attention::Recomputed, Masked::Skipped);
            let [(all, _), (done, counted)] = [&full, &half].map(Share::training_flops);
            // Two products forward and four backward, of which the mask hides half, or less of
            // what is within a window.
            let hidden = |(layers, reach): (u64, Reach)| {
                let met = |causal| reach.attended(64, 64, causal);
                layers * (met(false) - met(true))
            };
            let keys: u64 = spec.reaches().map(hidden).sum();
            let value = spec.latent.map_or(spec.head, |latent| latent.value);
            let pairs = u128::from(64 * keys * spec.heads * (spec.head + value));
            let spared = if spec.family.is_causal() { 3 * 2 * pairs } else { 0 };
            assert_eq!(all.0 - done.0, spared, "{:?}", spec.family);
            assert_eq!(counted, all, "the full count stays available");
            let stored = share(&model, Attention::Stored, Masked::Skipped);
            assert_eq!(stored.kinds, share(&model, Attention::Stored, Masked::Computed).kinds);
            let (square, same) = stored.training_flops();
            let unlimited = |(_, reach): (u64, Reach)| reach.tokens().is_none_or(|w| w >= 64);
            assert_eq!(square, same, "stored attention computes all");
            assert_eq!(square == all, spec.reaches().all(unlimited), "{:?}", spec.family);
        }
    }

    #[test]
    fn a_window_spares_the_products_of_what_is_beyond_it() {
        let spec = examples::all().swap_remove(10);
        let model = families::build(&spec);
        let names: Vec<&str> = model.kinds.iter().map(|kind| &kind.name[..]).collect();
        assert_eq!(names, ["embedding", "local", "global", "head"]);
        assert_eq!(model.sequence, [0, 1, 2, 1, 3]);
        let flops = |share: &Share, kind: usize, name: &str| {
            let pass = share.kinds[kind].forward.nodes();
            pass.iter().find(|op| op.name == name).expect("every layer attends").flops().0
        };
        let computed = share(&model, Attention::Recomputed, Masked::Computed);
        let skipped = share(&model, Attention::Recomputed, Masked::Skipped);
        let stored = share(&model, Attention::Stored, Masked::Computed);
        for name in ["scores", "context"] {
            let all = flops(&computed, 2, name);
            assert_eq!(flops(&computed, 1, name) * 64, all * 24);
            assert_eq!(flops(&skipped, 2, name) * 2, all);
            // Of 24 keys the mask hides 24²/(2·64) on average, 4 and a half.
            assert_eq!(flops(&skipped, 1, name) * 64, all * 20);
            assert_eq!(flops(&stored, 1, name), all, "stored attention computes all");
        }
        assert_eq!(flops(&computed, 1, "qkv"), flops(&computed, 2, "qkv"));
    }

    #[test]
    fn leaving_out_pairs_moves_no_fewer_bytes_of_single_tokens() {
        for spec in examples::all() {
            let model = families::build(&spec);
            for context_kind in ContextKind::ALL {
                // An image is not shared.
                let context = if spec.patch > 0 { 1 } else { 2 };
                let setting = Setting { sequence: 64, context, context_kind, ..Setting::ALONE };
                let skipping = Setting { masked: Masked::Skipped, ..setting };
                let [full, half] = [setting, skipping].map(|s| shard(&model, s).unwrap());
                let (full, half) = (&full.kinds[1], &half.kinds[1]);
                assert_eq!((full.kept, full.input), (half.kept, half.input));
                for (all, few) in [(&full.forward, &half.forward), (&full.backward, &half.backward)]
                {
                    for (all, few) in all.nodes().iter().zip(few.nodes()) {
                        assert_eq!(all.name, few.name);
                        let [all_bytes, few_bytes] = [all, few].map(|op| op.hbm_bytes(Bytes(2)));
                        assert_eq!(all_bytes, few_bytes, "{}", all.name);
                        assert!(few.flops() <= all.flops() && few.flops() * 2 >= all.flops());
                    }
                }
            }
        }
    }
}
