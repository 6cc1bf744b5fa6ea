//! Which settings are legal for a model, and why the others are not.

use super::ContextKind;
use super::Setting;
use crate::model::Axis;
use crate::model::Layer;
use crate::model::Model;
use crate::model::dim::Sizes;
use crate::model::opaque::mixes_tokens;
use crate::model::spec::Family;
use crate::model::spec::Spec;

/// Why a model cannot be trained in a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// Heads or MLP cannot be divided evenly.
    #[error("tensor-parallel width {width} {problem}; legal widths are {}", list(legal))]
    Width {
        /// The width asked for.
        width: u64,
        /// What is in its way, as "does not divide …".
        problem: String,
        /// All widths that would do.
        legal: Vec<u64>,
    },
    /// A sequence cannot be divided evenly.
    #[error(
        "sequence parallelism cannot divide {sequence} tokens among {width} devices; use a sequence that is a multiple of {width}, or no sequence parallelism"
    )]
    UnevenSequence {
        /// Tokens.
        sequence: u64,
        /// Devices.
        width: u64,
    },
    /// Devices that share experts must divide the tokens among them.
    #[error(
        "a mixture of experts on {width} tensor-parallel devices needs sequence parallelism, as frameworks do; use both or width 1"
    )]
    WholeTokens {
        /// Devices.
        width: u64,
    },
    /// Experts cannot be divided so.
    #[error("{} degree {degree} {problem}; {}", of_experts(*axis), allowed(legal))]
    Experts {
        /// Along which axis.
        axis: Axis,
        /// The degree asked for.
        degree: u64,
        /// What is in its way.
        problem: String,
        /// All degrees that would do.
        legal: Vec<u64>,
    },
    /// The tokens of a sequence cannot be shared among so many devices.
    #[error("context-parallel degree {degree} {problem}; {}", allowed(legal))]
    Context {
        /// The degree asked for.
        degree: u64,
        /// The rule that is in its way, with what was found.
        problem: String,
        /// The degrees up to [`MOST_LISTED`] that would do.
        legal: Vec<u64>,
    },
    /// A step of which only the cost is known needs whole sequences.
    #[error(
        "step `{step}` of layer `{layer}` needs whole sequences; use neither context nor sequence \
         parallelism, or let it go over `sequence`"
    )]
    WholeSequences {
        /// Which layer.
        layer: String,
        /// Which step.
        step: String,
    },
    /// The table of positions has fewer rows.
    #[error(
        "a sequence of {sequence} tokens is longer than the model's {positions} learned positions; use at most {positions}"
    )]
    TooLong {
        /// Tokens.
        sequence: u64,
        /// What the model was made for.
        positions: u64,
    },
    /// Nothing to do.
    #[error("{what} is 0; use at least 1")]
    Nothing {
        /// Which quantity.
        what: &'static str,
    },
    /// Numbers beyond what can be counted exactly.
    #[error(
        "a {layer} layer with {micro_batch} x {sequence} tokens is too large to count exactly; use a shorter sequence or a smaller micro-batch"
    )]
    TooLarge {
        /// Which layer.
        layer: String,
        /// Sequences of a micro-batch.
        micro_batch: u64,
        /// Tokens of a sequence.
        sequence: u64,
    },
}

/// All widths that divide a model evenly, in ascending order.
///
/// A width divides the heads and the MLP; it divides the key-value heads, or is a multiple of them:
/// then each device holds one, and several devices the same.
pub fn legal_widths(spec: &Spec) -> Vec<u64> {
    (1..=spec.heads).filter(|&width| problem(spec, width).is_none()).collect()
}

/// Up to which degree a refusal lists the legal ones.
pub const MOST_LISTED: u64 = 64;

/// All context-parallel degrees up to `most` that are legal for a model with the rest of `setting`
/// as it is, in ascending order.
///
/// Each device has a part of the beginning and one of the end of a sequence, both of which sequence
/// parallelism divides further: twice the degree, times the width where it does, must divide the
/// sequence. Devices that exchange tokens for heads divide the heads as if they were so many times
/// the width.
pub fn legal_contexts(spec: &Spec, setting: Setting, most: u64) -> Vec<u64> {
    let is_legal = |&context: &u64| context_problem(spec, Setting { context, ..setting }).is_none();
    (1..=most).filter(is_legal).collect()
}

fn context_problem(spec: &Spec, setting: Setting) -> Option<String> {
    let Setting { sequence, context, tensor_parallel: width, .. } = setting;
    match context {
        0 => return Some("is less than one device".into()),
        1 => return None,
        _ => {}
    }
    if spec.family == Family::Vit {
        return Some(
            "would divide the patches of an image, which one token tells the class of".into(),
        );
    }
    let further = if setting.sequence_parallel { width } else { 1 };
    let parts = context.saturating_mul(2).saturating_mul(further);
    if !sequence.is_multiple_of(parts) {
        let why = if further > 1 { format!(" times the width {width}") } else { String::new() };
        return Some(format!(
            "needs a sequence that is a multiple of {parts}, twice the degree{why}, and finds \
             {sequence} tokens"
        ));
    }
    if setting.context_kind != ContextKind::Ulysses {
        return None;
    }
    let (parts, heads, kv_heads) = (width.saturating_mul(context), spec.heads, spec.kv_heads);
    if !heads.is_multiple_of(parts) {
        return Some(format!(
            "exchanges tokens for heads and does not divide the {heads} heads among {width} x \
             {context} devices"
        ));
    }
    let even = kv_heads.is_multiple_of(parts) || parts.is_multiple_of(kv_heads);
    (!even).then(|| {
        format!(
            "exchanges tokens for heads, and {width} x {context} devices neither divide the \
             {kv_heads} key-value heads nor are a multiple of them"
        )
    })
}

fn problem(spec: &Spec, width: u64) -> Option<String> {
    if width == 0 {
        return Some("is less than one device".into());
    }
    if !spec.heads.is_multiple_of(width) {
        return Some(format!("does not divide the {} heads", spec.heads));
    }
    if !spec.mlp.is_multiple_of(width) {
        return Some(format!("does not divide the MLP's {} elements", spec.mlp));
    }
    if let Some(size) = spec.experts.and_then(|experts| experts.shared)
        && !size.is_multiple_of(width)
    {
        return Some(format!("does not divide the shared expert's {size} elements"));
    }
    if let Some(size) = spec.own_cut.iter().find(|size| !size.is_multiple_of(width)) {
        return Some(format!("does not divide the {size} elements of a dimension of its own"));
    }
    let kv_heads = spec.kv_heads;
    let even = kv_heads.is_multiple_of(width) || width.is_multiple_of(kv_heads);
    (!even).then(|| format!("neither divides the {kv_heads} key-value heads nor is a multiple"))
}

/// All degrees among which experts can be dealt out, or by which each can be divided: the divisors
/// of how many there are, or of the elements between their matmuls.
pub fn legal_expert_degrees(spec: &Spec, axis: Axis) -> Vec<u64> {
    let divided = divided_by(spec, axis).map_or(1, |(size, _)| size);
    (1..=divided.min(MOST_EXPERT_DEGREE)).filter(|&n| divided.is_multiple_of(n)).collect()
}

/// Up to which degree experts are divided: no model has so many.
const MOST_EXPERT_DEGREE: u64 = 1 << 16;

fn expert_problem(spec: &Spec, setting: Setting) -> Option<Illegal> {
    let degrees = [(Axis::Expert, setting.expert), (Axis::ExpertTensor, setting.expert_tensor)];
    for (axis, degree) in degrees {
        let problem = match divided_by(spec, axis) {
            None if degree == 1 => continue,
            Some((size, _)) if degree > 0 && size.is_multiple_of(degree) => continue,
            None => "divides the experts of a model that has none".to_owned(),
            Some((size, what)) => format!("does not divide the {size} {what}"),
        };
        let legal = legal_expert_degrees(spec, axis);
        return Some(Illegal::Experts { axis, degree, problem, legal });
    }
    None
}

/// What an axis of experts divides, in number and by name; nothing where there are none.
fn divided_by(spec: &Spec, axis: Axis) -> Option<(u64, &'static str)> {
    let experts = spec.experts?;
    Some(match axis {
        Axis::ExpertTensor => (experts.mlp, "elements of each expert"),
        _ => (experts.count, "experts"),
    })
}

/// What is in the way of training `model` so.
pub fn check(model: &Model, setting: Setting) -> Result<(), Illegal> {
    let Setting { micro_batch, sequence, tensor_parallel: width, .. } = setting;
    if micro_batch == 0 {
        return Err(Illegal::Nothing { what: "the micro-batch" });
    }
    if sequence == 0 {
        return Err(Illegal::Nothing { what: "the sequence" });
    }
    if let Some(problem) = problem(&model.spec, width) {
        return Err(Illegal::Width { width, problem, legal: legal_widths(&model.spec) });
    }
    if model.spec.experts.is_some() && width > 1 && !setting.sequence_parallel {
        return Err(Illegal::WholeTokens { width });
    }
    if let Some(illegal) = expert_problem(&model.spec, setting) {
        return Err(illegal);
    }
    if setting.sequence_parallel && !sequence.is_multiple_of(width) {
        return Err(Illegal::UnevenSequence { sequence, width });
    }
    if let Some(problem) = context_problem(&model.spec, setting) {
        let legal = legal_contexts(&model.spec, setting, MOST_LISTED);
        return Err(Illegal::Context { degree: setting.context, problem, legal });
    }
    if setting.context > 1 || setting.sequence_parallel {
        needs_no_whole_sequences(model)?;
    }
    let positions = model.spec.max_sequence;
    if model.spec.positions.is_some() && sequence > positions {
        return Err(Illegal::TooLong { sequence, positions });
    }
    let whole = model.spec.sizes(micro_batch, sequence);
    let device = divided(&model.spec, setting);
    for (kind, layer) in model.kinds.iter().enumerate() {
        let count = model.occurrences(kind);
        let devices = setting.devices().saturating_mul(setting.expert_devices());
        let countable = layer.within_limits(&whole, count)
            && layer.within_limits(&device, count.saturating_mul(devices));
        if !countable {
            return Err(Illegal::TooLarge { layer: layer.name.clone(), micro_batch, sequence });
        }
    }
    Ok(())
}

fn needs_no_whole_sequences(model: &Model) -> Result<(), Illegal> {
    for Layer { name, graph, .. } in &model.kinds {
        if let Some(step) = graph.steps.iter().find(|step| mixes_tokens(graph, step)) {
            return Err(Illegal::WholeSequences { layer: name.clone(), step: step.name.clone() });
        }
    }
    Ok(())
}

/// Sizes of what one of the devices that share a layer holds.
pub fn divided(spec: &Spec, setting: Setting) -> Sizes {
    let width = setting.tensor_parallel;
    let whole = spec.sizes(setting.micro_batch, setting.sequence);
    let kv_heads = whole.kv_heads.div_ceil(width);
    let own_tokens = setting.own_tokens();
    let turned_kv_heads = kv_heads.div_ceil(setting.context);
    Sizes {
        sequence: own_tokens,
        key_block: own_tokens,
        middle_keys: own_tokens * setting.context.saturating_sub(2),
        kv_heads,
        group: spec.heads / width / kv_heads,
        turned_kv_heads,
        turned_group: spec.heads / setting.devices() / turned_kv_heads,
        mlp: whole.mlp / width,
        vocabulary: spec.padded_vocabulary(width) / width,
        own_cut: whole.own_cut.map(|size| size / width),
        ..experts(spec, setting, &whole)
    }
}

/// Sizes of experts that devices share: of those that a device has a part of, all rows, and those
/// that it is sent itself.
fn experts(spec: &Spec, setting: Setting, whole: &Sizes) -> Sizes {
    let Some(experts) = spec.experts else { return *whole };
    let width = setting.tensor_parallel;
    let parts = if setting.sequence_parallel { width } else { 1 };
    let tokens = u128::from(setting.micro_batch) * u128::from(setting.own_tokens() / parts);
    Sizes {
        experts: whole.experts / setting.expert,
        sent_rows: experts.rows(tokens, 1),
        relayed_rows: experts.relayed_rows(tokens),
        own_rows: experts.rows(tokens, setting.expert),
        rows: experts.rows(tokens, setting.expert_devices()),
        expert_mlp: whole.expert_mlp / setting.expert_tensor,
        shared_mlp: whole.shared_mlp / width,
        ..*whole
    }
}

/// What users call the degree of an axis of experts.
fn of_experts(axis: Axis) -> &'static str {
    if axis == Axis::ExpertTensor { "expert-tensor" } else { "expert-parallel" }
}

/// Which degrees would do, as a sentence says it.
fn allowed(legal: &[u64]) -> String {
    match legal {
        [1] => "only 1 is legal here".to_owned(),
        legal => format!("legal degrees are {}", list(legal)),
    }
}

/// Numbers side by side, as a sentence lists them.
fn list(widths: &[u64]) -> String {
    widths.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
