//! What a device holds for a moment while a pass runs, beside what it keeps.
//!
//! While a layer's backward pass runs, the gradients of its matmuls' weights are there before they
//! are added to those of earlier micro-batches; so are gradients of what flows through it, three of
//! its widest inner tensors and two whole tokens' worth at the worst moment. That is an account of
//! what allocators were seen to hold, not a schedule of single tensors. Where a layer ends in the
//! loss, the moment is that of the logits and their gradient: its backward pass follows at once, so
//! the logits of a micro-batch are never there together with those of another.

use super::LayerShare;
use crate::model::dim::Dim;
use crate::model::fusion::Scale;
use crate::model::layer::Action;
use crate::model::layer::Graph;
use crate::model::layer::Layer;
use crate::model::layer::TensorId;
use crate::model::op::VectorKind;
use crate::units::Bytes;

/// Inner tensors of the widest kind that a pass holds at once.
const INNER_TENSORS: u64 = 3;
/// Tensors as wide as a token, whole even where devices hold parts of them.
const OUTER_TENSORS: u64 = 2;

/// What one kind of layer holds for a moment.
pub(super) struct Working {
    /// All of it.
    pub all: Bytes,
    /// The part of it that counts among what is kept too.
    pub kept: Bytes,
    /// Gradients of the weights of its matmuls.
    pub weight_gradients: Bytes,
}

impl Working {
    /// Of a layer as devices divide it.
    pub(super) fn of(layer: &Layer, scale: Scale) -> Self {
        let graph = &layer.graph;
        let weight_gradients = scale.element * matmul_parameters(graph, scale);
        let logits = logits(graph);
        if logits.is_empty() {
            let all = weight_gradients + flowing(layer, scale);
            return Self { all, kept: Bytes::ZERO, weight_gradients };
        }
        let whole = scale.sizes(false);
        let elements = |&id: &TensorId| whole.elements(&graph.at(id).dims);
        let kept: Bytes = logits.iter().map(|&id| scale.bytes(graph, id)).sum();
        let gradients: u64 = logits.iter().map(elements).sum();
        Self { all: kept + scale.element * gradients, kept, weight_gradients }
    }
}

/// What a device holds for a moment beside what it keeps, where it runs these layers.
///
/// The loss of a stage is there with no layer's own working memory, but the gradients of a head's
/// weights are there with those of the layer before it.
pub fn transient<'a>(layers: impl IntoIterator<Item = &'a LayerShare>) -> Bytes {
    let (mut loss, mut head_gradients, mut running) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    for layer in layers {
        if layer.ends_in_loss() {
            loss = loss.max(layer.working);
            head_gradients = head_gradients.max(layer.weight_gradients);
        } else {
            running = running.max(layer.working);
        }
    }
    loss.max(running + head_gradients)
}

/// What the loss reads.
fn logits(graph: &Graph) -> Vec<TensorId> {
    let is_loss =
        |action: &Action| matches!(action, Action::Vector { kind: VectorKind::CrossEntropy, .. });
    let losses = graph.steps.iter().filter(|step| is_loss(&step.action));
    losses.map(|step| step.reads[0]).collect()
}

/// Parameters that matmuls and opaque steps read on one device, those that another layer holds among them.
fn matmul_parameters(graph: &Graph, scale: Scale) -> u64 {
    let operands = graph.steps.iter().flat_map(|step| match step.action {
        Action::Contract => &step.reads[1..2],
        Action::Opaque(_) => &step.reads[..],
        _ => &[],
    });
    let operands = operands.map(|&id| graph.at(id));
    let weights = operands.filter(|operand| operand.form.is_weight());
    weights.map(|weight| scale.sizes.elements(&weight.dims)).sum()
}

/// Gradients of what flows through a layer. Where sequence parallelism divides a tensor, it is
/// whole for the matmul that reads it.
fn flowing(layer: &Layer, scale: Scale) -> Bytes {
    let graph = &layer.graph;
    let whole = scale.sizes(false);
    let contractions = graph.steps.iter().filter(|step| step.action == Action::Contract);
    let of_weights = contractions.filter(|step| graph.at(step.reads[1]).form.is_weight());
    // What devices divide among them, experts' rows included, is inside; tokens are not.
    let is_inner = |dim: &Dim| dim.is_cut() || *dim == Dim::ExpertMlp;
    let inner = of_weights.filter(|step| graph.contraction(step).k.iter().any(is_inner));
    let widest = inner.map(|step| whole.elements(&graph.at(step.reads[0]).dims)).max().unwrap_or(0);
    let token = layer.output.or(layer.input).map_or(0, |id| whole.elements(&graph.at(id).dims));
    scale.element * (INNER_TENSORS * widest + OUTER_TENSORS * token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Attention;
    use crate::model::families;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;
    use crate::parallel::Setting;
    use crate::parallel::Share;
    use crate::parallel::legal_widths;
    use crate::parallel::shard;

    fn settings(spec: &Spec) -> Vec<Setting> {
        let mut found = Vec::new();
        for width in legal_widths(spec) {
            for (scattered, context) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
                // An image is not shared.
                if spec.patch > 0 && context > 1 {
                    continue;
                }
                for attention in [Attention::Stored, Attention::Recomputed] {
                    let setting = Setting {
                        micro_batch: 3,
                        sequence: 64,
                        tensor_parallel: width,
                        sequence_parallel: (scattered || spec.experts.is_some()) && width > 1,
                        expert_tensor: if spec.experts.is_some() { width } else { 1 },
                        context,
                        attention,
                        ..Setting::ALONE
                    };
                    found.push(setting);
                }
            }
        }
        found
    }

    fn shared(spec: &Spec, setting: Setting) -> Share {
        shard(&families::build(spec), setting).expect("the setting is legal")
    }

    #[test]
    fn a_layer_holds_its_matmuls_gradients_and_a_few_tensors() {
        let all = examples::all().into_iter();
        for spec in all.filter(|spec| spec.experts.is_none() && spec.latent.is_none()) {
            for setting in settings(&spec) {
                let t = setting.tensor_parallel;
                let n = setting.micro_batch * setting.own_tokens();
                let (h, f, heads) = (spec.hidden, spec.mlp, spec.heads * spec.head);
                let kv = spec.kv_heads.div_ceil(t) * spec.head;
                let up = if spec.gated { 2 * f } else { f };
                let weights = h * (heads / t + 2 * kv) + heads / t * h + (up + f) / t * h;
                // Where heads together are wider than the MLP, they are the widest.
                let inner = (f / t).max(heads / t);
                let layer = &shared(&spec, setting).kinds[1];
                assert_eq!(layer.weight_gradients.0, 2 * weights, "{:?}", spec.family);
                let flowing = 2 * n * (3 * inner + 2 * h);
                assert_eq!(layer.working.0, 2 * weights + flowing, "{setting:?}");
                assert_eq!(layer.kept_in_flight(), layer.kept, "nothing of it passes at once");
            }
        }
    }

    #[test]
    fn experts_hold_their_gradients_and_a_few_of_their_rows() {
        let spec = examples::all().into_iter().find(|spec| spec.experts.is_some());
        let spec = spec.expect("some have experts");
        let experts = spec.experts.expect("this one has");
        for setting in settings(&spec) {
            let t = setting.tensor_parallel;
            let n = setting.micro_batch * setting.own_tokens();
            let (h, heads) = (spec.hidden, spec.heads * spec.head);
            let kv = spec.kv_heads.div_ceil(t) * spec.head;
            let attention = h * (heads / t + 2 * kv) + heads / t * h;
            let weights = attention + h * experts.count + 3 * h * experts.mlp / t * experts.count;
            let rows = n * experts.chosen;
            let layer = &shared(&spec, setting).kinds[1];
            assert_eq!(layer.weight_gradients.0, 2 * weights);
            let inner = (rows * experts.mlp / t).max(n * heads / t);
            assert_eq!(layer.working.0, 2 * weights + 2 * (3 * inner + 2 * n * h), "{setting:?}");
        }
    }

    #[test]
    fn a_head_holds_logits_and_their_gradient_once() {
        for spec in examples::all() {
            for setting in settings(&spec) {
                let t = setting.tensor_parallel;
                let n = setting.micro_batch * setting.own_tokens();
                // Of an image one token is told, and behind the last layer two of each.
                let n =
                    if spec.patch > 0 { setting.micro_batch } else { n * (1 + spec.next_tokens) };
                let logits = n * spec.padded_vocabulary(t) / t;
                let share = shared(&spec, setting);
                let head = share.kinds.last().expect("a model ends in its head");
                assert!(head.ends_in_loss() && !share.kinds[1].ends_in_loss());
                assert_eq!(head.working.0, 6 * logits, "{:?} {setting:?}", spec.family);
                assert_eq!(head.kept.0 - head.kept_in_flight().0, 4 * logits);
            }
        }
    }

    #[test]
    fn a_stage_with_the_head_holds_logits_or_what_its_layers_hold() {
        let share = shared(&examples::gpt(), Setting { sequence: 64, ..Setting::ALONE });
        let [embedding, layer, head] = &share.kinds[..] else { panic!("there are three kinds") };
        assert_eq!(transient([]), Bytes::ZERO);
        assert_eq!(transient([embedding, layer, layer]), layer.working);
        assert_eq!(transient([head]), head.working.max(head.weight_gradients));
        let both = layer.working + head.weight_gradients;
        assert_eq!(transient([layer, head]), both.max(head.working));
    }
}
