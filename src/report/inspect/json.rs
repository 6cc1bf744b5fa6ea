//! An inspection for programs; docs/model.md documents the keys.

use std::io;
use std::io::Write;

use serde::Serialize;

use super::Inspection;
use super::pass_flops;
use super::vector_work;
use crate::graph::Dag;
use crate::graph::NodeId;
use crate::model::Experts;
use crate::model::Latent;
use crate::model::Masked;
use crate::model::Module;
use crate::model::op::Home;
use crate::model::op::Matmul;
use crate::model::op::Op;
use crate::model::op::Pass;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::parallel::LayerShare;
use crate::units::Flops;

/// Writes everything that is known.
pub fn write(inspection: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Document::of(inspection))?;
    writeln!(out)
}

#[derive(Serialize)]
struct Document<'a> {
    model: &'a str,
    family: &'static str,
    layers: u64,
    hidden_size: u64,
    heads: u64,
    kv_heads: u64,
    head_size: u64,
    mlp_size: u64,
    vocabulary: u64,
    embedding_size: u64,
    max_sequence_tokens: u64,
    sliding_window_tokens: Option<u64>,
    left_out: Option<&'a str>,
    experts: Option<ExpertsPart>,
    latent: Option<LatentPart>,
    tied_head: bool,
    tensor_parallel_widths: Vec<u64>,
    setting: SettingPart,
    parameters: u64,
    parameters_active: u64,
    parameters_training_head: u64,
    parameter_bytes: u64,
    gradient_bytes: u64,
    optimizer_state_bytes: u64,
    flops_forward_per_sequence: u128,
    flops_forward_per_token: u128,
    flops_training_per_sequence: u128,
    flops_training_per_token: u128,
    flops_training_full_recompute_per_sequence: u128,
    flops_training_full_recompute_per_token: u128,
    flops_attention_repeated_per_sequence: u128,
    flops_attention_repeated_per_token: u128,
    device: DevicePart,
    layer_kinds: Vec<LayerPart<'a>>,
}

#[derive(Serialize)]
struct SettingPart {
    sequence_tokens: u64,
    micro_batch_sequences: u64,
    tensor_parallel: u64,
    sequence_parallel: bool,
    context_parallel: u64,
    context_kind: &'static str,
    expert_parallel: u64,
    expert_tensor: u64,
    attention: &'static str,
    repeated: Vec<&'static str>,
    causal: bool,
    element_bytes: u64,
    optimizer: &'static str,
}

#[derive(Serialize)]
struct DevicePart {
    parameters: u64,
    parameters_tied_table: u64,
    parameter_bytes: u64,
    gradient_bytes: u64,
    optimizer_state_bytes: u64,
    activation_bytes: u64,
    group_parameters_replicated: u64,
    group_parameters_padded: u64,
}

#[derive(Serialize)]
struct LayerPart<'a> {
    name: &'a str,
    count: u64,
    tensor_parallel: bool,
    parameters: u64,
    group_parameters_replicated: u64,
    group_parameters_padded: u64,
    activation_bytes: u64,
    input_bytes: u64,
    output_bytes: u64,
    flops_forward: u128,
    flops_backward: u128,
    flops_attention_repeated: u128,
    forward: Vec<OpPart<'a>>,
    backward: Vec<OpPart<'a>>,
}

#[derive(Serialize)]
struct OpPart<'a> {
    name: &'a str,
    shape: &'static str,
    core: &'static str,
    flops: u128,
    bytes_in: u64,
    bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    matmul: Option<MatmulPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<CollectivePart>,
    /// Fused to the matmul, or all there is.
    vector: Vec<VectorPart>,
    extra_traffic: TrafficPart,
    reads_from: Vec<&'a str>,
}

#[derive(Serialize)]
struct MatmulPart {
    b: u64,
    m: u64,
    k: u64,
    n: u64,
    left_on_chip: bool,
    right_on_chip: bool,
    result_on_chip: bool,
}

#[derive(Serialize)]
struct CollectivePart {
    kind: &'static str,
    bytes: u64,
    devices: u64,
}

#[derive(Serialize)]
struct VectorPart {
    kind: &'static str,
    pass: &'static str,
    rows: u64,
    row_elements: u64,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "keys carry their unit")]
struct TrafficPart {
    hbm_read_bytes: u64,
    hbm_written_bytes: u64,
    glb_read_bytes: u64,
    glb_written_bytes: u64,
}

/// The experts of a model.
#[derive(Serialize)]
struct ExpertsPart {
    count: u64,
    per_token: u64,
    mlp_size: u64,
    shared_mlp_size: Option<u64>,
    load: f64,
}

impl ExpertsPart {
    fn of(experts: Experts) -> Self {
        Self {
            count: experts.count,
            per_token: experts.chosen,
            mlp_size: experts.mlp,
            shared_mlp_size: experts.shared,
            load: experts.load_per_mille as f64 / 1000.0,
        }
    }
}

/// What queries, keys and values are made from.
#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the keys of a document say what they are")]
struct LatentPart {
    query_size: Option<u64>,
    kv_size: u64,
    value_size: u64,
}

impl LatentPart {
    fn of(latent: Latent) -> Self {
        Self { query_size: latent.query, kv_size: latent.kv, value_size: latent.value }
    }
}

impl<'a> Document<'a> {
    fn of(inspection: &'a Inspection) -> Self {
        let spec = &inspection.model.spec;
        let setting = inspection.share.setting;
        let parameters = inspection.model.parameters();
        let head = inspection.model.training_head_parameters();
        let state = inspection.state(parameters + head);
        let flops = inspection.flops;
        let per_token = |flops: Flops| flops.0 / u128::from(setting.sequence);
        Self {
            model: &spec.name,
            family: spec.family.name(),
            layers: spec.layers,
            hidden_size: spec.hidden,
            heads: spec.heads,
            kv_heads: spec.kv_heads,
            head_size: spec.head,
            mlp_size: spec.mlp,
            vocabulary: spec.vocabulary,
            embedding_size: spec.embedding,
            max_sequence_tokens: spec.max_sequence,
            sliding_window_tokens: spec.reaches().find_map(|(_, reach)| reach.tokens()),
            left_out: spec.left_out(),
            experts: spec.experts.map(ExpertsPart::of),
            latent: spec.latent.map(LatentPart::of),
            tied_head: spec.tied,
            tensor_parallel_widths: crate::parallel::legal_widths(spec),
            setting: SettingPart {
                sequence_tokens: setting.sequence,
                micro_batch_sequences: setting.micro_batch,
                tensor_parallel: setting.tensor_parallel,
                sequence_parallel: setting.sequence_parallel,
                context_parallel: setting.context,
                context_kind: setting.context_kind.name(),
                expert_parallel: setting.expert,
                expert_tensor: setting.expert_tensor,
                attention: setting.attention.name(),
                repeated: setting.repeated.iter().map(Module::name).collect(),
                causal: setting.masked == Masked::Skipped,
                element_bytes: setting.element.0,
                optimizer: inspection.optimizer.name(),
            },
            parameters,
            parameters_active: inspection.model.active_parameters(),
            parameters_training_head: head,
            parameter_bytes: state.weights.0,
            gradient_bytes: state.gradients.0,
            optimizer_state_bytes: state.optimizer.0,
            flops_forward_per_sequence: flops.forward.0,
            flops_forward_per_token: per_token(flops.forward),
            flops_training_per_sequence: flops.training.0,
            flops_training_per_token: per_token(flops.training),
            flops_training_full_recompute_per_sequence: flops.full_recompute.0,
            flops_training_full_recompute_per_token: per_token(flops.full_recompute),
            flops_attention_repeated_per_sequence: flops.attention_repeated.0,
            flops_attention_repeated_per_token: per_token(flops.attention_repeated),
            device: DevicePart::of(inspection),
            layer_kinds: inspection
                .layers()
                .map(|(count, layer)| LayerPart::of(count, layer, inspection))
                .collect(),
        }
    }
}

impl DevicePart {
    fn of(inspection: &Inspection) -> Self {
        let parameters = inspection.device_parameters();
        let state = inspection.state(parameters);
        let sum = |count: fn(&LayerShare) -> u64| {
            inspection.layers().map(|(n, layer)| n * count(layer)).sum()
        };
        Self {
            parameters,
            parameters_tied_table: inspection.share.tied.map_or(0, |tied| tied.parameters),
            parameter_bytes: state.weights.0,
            gradient_bytes: state.gradients.0,
            optimizer_state_bytes: state.optimizer.0,
            activation_bytes: inspection.kept().0,
            group_parameters_replicated: sum(|layer| layer.replicated),
            group_parameters_padded: sum(|layer| layer.padded),
        }
    }
}

impl<'a> LayerPart<'a> {
    fn of(count: u64, layer: &'a LayerShare, inspection: &Inspection) -> Self {
        let operators =
            |pass: &'a Dag<Op>| pass.ids().map(|id| OpPart::of(pass, id, inspection)).collect();
        Self {
            name: &layer.name,
            count,
            tensor_parallel: layer.tensor_parallel,
            parameters: layer.parameters,
            group_parameters_replicated: layer.replicated,
            group_parameters_padded: layer.padded,
            activation_bytes: layer.kept.0,
            input_bytes: layer.input.0,
            output_bytes: layer.output.0,
            flops_forward: pass_flops(&layer.forward).0,
            flops_backward: pass_flops(&layer.backward).0,
            flops_attention_repeated: layer.repeated.0,
            forward: operators(&layer.forward),
            backward: operators(&layer.backward),
        }
    }
}

impl<'a> OpPart<'a> {
    fn of(pass: &'a Dag<Op>, id: NodeId, inspection: &Inspection) -> Self {
        let op = pass.node(id);
        let (read, written) = op.hbm_bytes(inspection.share.setting.element);
        let shape = match &op.work {
            Work::Matmul { .. } => "matmul",
            Work::Vector(_) => "vector",
            Work::Opaque { .. } => "opaque",
            Work::Move => "move",
            Work::Collective(_) => "collective",
        };
        Self {
            name: &op.name,
            shape,
            core: op.core().name(),
            flops: op.flops().0,
            bytes_in: read.0,
            bytes_out: written.0,
            matmul: MatmulPart::of(op),
            collective: match &op.work {
                Work::Collective(collective) => Some(CollectivePart {
                    kind: collective.kind.name(),
                    bytes: collective.size.0,
                    devices: collective.group,
                }),
                _ => None,
            },
            vector: vector_work(op).iter().map(VectorPart::of).collect(),
            extra_traffic: TrafficPart {
                hbm_read_bytes: op.traffic.hbm_read.0,
                hbm_written_bytes: op.traffic.hbm_written.0,
                glb_read_bytes: op.traffic.glb_read.0,
                glb_written_bytes: op.traffic.glb_written.0,
            },
            reads_from: pass
                .predecessors(id)
                .iter()
                .map(|&read| pass.node(read).name.as_str())
                .collect(),
        }
    }
}

impl MatmulPart {
    fn of(op: &Op) -> Option<Self> {
        let Work::Matmul { matmul, homes, .. } = &op.work else { return None };
        let Matmul { b, m, k, n } = *matmul;
        Some(Self {
            b,
            m,
            k,
            n,
            left_on_chip: homes.a == Home::Chip,
            right_on_chip: homes.b == Home::Chip,
            result_on_chip: homes.out == Home::Chip,
        })
    }
}

impl VectorPart {
    fn of(work: &VectorWork) -> Self {
        Self {
            kind: work.kind.name(),
            pass: match work.pass {
                Pass::Forward => "forward",
                Pass::Backward => "backward",
            },
            rows: work.rows,
            row_elements: work.row,
        }
    }
}
