//! Whether a strategy is one of a space, on every axis, and one that its framework accepts.

use crate::parallel::Order;
use crate::parallel::frameworks::CutShape;
use crate::parallel::frameworks::ExpertShape;
use crate::parallel::frameworks::PlanShape;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;
use crate::plan::CutSpace;
use crate::plan::PassOrder;
use crate::plan::Recompute;
use crate::plan::Strategy;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::require;
use super::divide::Asked;

/// Judges a strategy that stands at `path`; how many layers each stage repeats is for
/// [`accepted`] to judge.
pub fn check(path: &str, asked: &Asked, strategy: &Strategy) -> Verdict {
    divided(path, asked, strategy)?;
    piped(path, asked, strategy)?;
    shared(path, asked, strategy)?;
    repeated(path, asked, strategy)
}

/// Fails unless an axis has one of the values that are allowed.
fn one_of<T: PartialEq + std::fmt::Debug>(path: String, said: &T, allowed: &[T]) -> Verdict {
    require(allowed.contains(said), path, format!("{said:?}"), format!("one of {allowed:?}"))
}

/// How layers and sequences are divided.
fn divided(path: &str, asked: &Asked, strategy: &Strategy) -> Verdict {
    let at = |field: &str| format!("{path}.{field}");
    let space = asked.space;
    one_of(at("tensor_parallel"), &strategy.tensor_parallel, &space.tensor_parallel)?;
    let scattered: Vec<bool> =
        space.sequence_parallel.iter().map(|&on| on && strategy.tensor_parallel > 1).collect();
    one_of(at("sequence_parallel"), &strategy.sequence_parallel, &scattered)?;
    one_of(at("context_parallel"), &strategy.context_parallel, &space.context_parallel)?;
    // Alone, a device exchanges no tokens: the first kind stands for all.
    let n_kinds = if strategy.context_parallel == 1 { 1 } else { space.context_kinds.len() };
    one_of(at("context_kind"), &strategy.context_kind, &space.context_kinds[..n_kinds])?;
    let experts = (strategy.expert_parallel, strategy.expert_tensor);
    one_of(at("expert_parallel"), &experts, &asked.experts(strategy.tensor_parallel))?;
    one_of(at("micro_batch"), &strategy.micro_batch, &space.micro_batches)?;
    one_of(at("repeated"), &strategy.repeated, &space.repeated)
}

/// Ranks, virtual stages and copies of the pipeline.
fn piped(path: &str, asked: &Asked, strategy: &Strategy) -> Verdict {
    let at = |field: &str| format!("{path}.{field}");
    let space = asked.space;
    let Strategy { pipeline: ranks, data_parallel: copies, schedule, .. } = *strategy;
    let outside = "not in the question's space";
    require(space.pipeline.contains(ranks), at("pipeline"), ranks, outside)?;
    require(space.data_parallel.contains(copies), at("data_parallel"), copies, outside)?;
    let micro_batches = asked.global_batch / strategy.micro_batch;
    let most = format!("1 to {micro_batches}, one for each micro-batch");
    require((1..=micro_batches).contains(&copies), at("data_parallel"), copies, most)?;
    let chunks = schedule.chunks();
    let allowed = space.chunks.contains(chunks as u64);
    require(allowed, format!("{path}.schedule.chunks"), chunks, outside)?;
    if let PassOrder::Interleaved { chunks, group } = schedule {
        require(chunks > 1, at("schedule"), format!("{schedule:?}"), "1F1B: one chunk")?;
        let is = space.group.unwrap_or(ranks);
        require(group == is, format!("{path}.schedule.group"), group, is)?;
    }
    let ranks = usize::try_from(ranks).unwrap_or(usize::MAX);
    let legal = schedule.check(ranks, micro_batches.div_ceil(copies));
    legal.map_err(|reason| FalseClaim::new(at("schedule"), format!("{schedule:?}"), reason))
}

/// What replicas share, and how devices are numbered.
fn shared(path: &str, asked: &Asked, strategy: &Strategy) -> Verdict {
    let at = |field: &str| format!("{path}.{field}");
    let space = asked.space;
    let replicas = strategy.data_parallel.saturating_mul(strategy.context_parallel);
    let owners = strategy.expert_parallel.saturating_mul(strategy.expert_tensor).max(1);
    let of_experts = replicas.saturating_mul(strategy.tensor_parallel) / owners;
    let has_experts = asked.model.spec.experts.is_some();
    // Alone, a replica has nobody to share with.
    let allowed = if replicas == 1 && !(has_experts && of_experts > 1) {
        &[Zero::Nothing][..]
    } else {
        space.zero_with(strategy.pipeline)
    };
    one_of(at("zero"), &strategy.zero, allowed)?;
    if strategy.zero >= Zero::Gradients {
        let allowed = asked.may_exchange_inside(strategy.data_parallel);
        let said = strategy.data_parallel;
        require(allowed, at("data_parallel"), said, "a power of two where layers exchange")?;
    }
    let shards = space.shards.filter(|_| strategy.zero > Zero::Nothing);
    one_of(at("shards"), &strategy.shards, &[shards])?;
    one_of(at("order"), &strategy.order, &space.orders)?;
    // Exchanges inside layers are among devices in one run of numbers.
    let one_run = strategy.zero >= Zero::Gradients && strategy.pipeline > 1;
    let numbered = !one_run || strategy.order == Order::default();
    require(numbered, at("order"), strategy.order, Order::default())
}

/// What is computed again.
fn repeated(path: &str, asked: &Asked, strategy: &Strategy) -> Verdict {
    let allowed = &asked.space.recompute;
    let counted = match strategy.recompute {
        // As many layers of every stage as memory asks for are so many first ones, or all.
        Recompute::First(layers) => {
            let most = asked.model.sequence.len() as u64;
            let some = layers <= most || strategy.recompute == Recompute::EVERY_LAYER;
            some && allowed.contains(&Recompute::AsNeeded)
        }
        _ => false,
    };
    let known = counted || allowed.contains(&strategy.recompute);
    // A rank of several virtual stages is filled by all of them: none decides for itself.
    let alone = matches!(strategy.recompute, Recompute::Stage | Recompute::AsNeeded);
    let holds = known && (strategy.schedule.chunks() == 1 || !alone);
    let said = strategy.recompute;
    require(holds, format!("{path}.recompute"), said, "not in the question's space")
}

/// The shape of a plan as frameworks judge it.
pub fn shape(asked: &Asked, strategy: &Strategy, repeated: RepeatedLayers) -> PlanShape {
    let spec = &asked.model.spec;
    let replicas = strategy.data_parallel.saturating_mul(strategy.context_parallel);
    PlanShape {
        devices: asked.devices,
        global_batch: asked.global_batch,
        micro_batch: strategy.micro_batch,
        sequence: asked.sequence,
        layers: spec.layers,
        heads: spec.heads,
        kv_heads: spec.kv_heads,
        mlp: spec.divisible_mlp(),
        tensor: strategy.tensor_parallel,
        sequence_parallel: strategy.sequence_parallel,
        context: strategy.context_parallel,
        context_kind: strategy.context_kind,
        experts: spec.experts.map(|experts| ExpertShape {
            count: experts.count,
            mlp: experts.mlp,
            parallel: strategy.expert_parallel,
            tensor: strategy.expert_tensor,
        }),
        pipeline: strategy.pipeline,
        chunks: strategy.schedule.chunks() as u64,
        group: strategy.schedule.group(),
        data: strategy.data_parallel,
        zero: strategy.zero,
        shards: strategy.shards.unwrap_or(replicas),
        order: strategy.order,
        cut: match asked.space.cut {
            CutSpace::Even => CutShape::Even,
            CutSpace::Best => CutShape::Layout,
        },
        repeated,
        modules: strategy.repeated,
    }
}

/// Judges a strategy by the rules of its framework; `stages` says of each virtual stage how many
/// layers it repeats, and how many it could.
pub fn accepted(
    path: &str,
    asked: &Asked,
    strategy: &Strategy,
    stages: &[(usize, usize)],
) -> Verdict {
    let shape = shape(asked, strategy, repeated_layers(strategy, stages));
    let framework = asked.space.framework;
    let rule = framework.check(&shape);
    rule.map_err(|broken| FalseClaim::new(path, format!("accepted by {framework}"), broken))
}

/// Which whole layers are repeated, where stages repeat so many of so many.
fn repeated_layers(strategy: &Strategy, stages: &[(usize, usize)]) -> RepeatedLayers {
    let most = stages.iter().map(|(repeated, _)| *repeated).max().unwrap_or(0);
    match strategy.recompute {
        Recompute::None => RepeatedLayers::None,
        Recompute::Full => RepeatedLayers::All,
        // A single stage is the last one, which repeats nothing.
        Recompute::Stage if strategy.pipeline == 1 => RepeatedLayers::None,
        Recompute::Stage => RepeatedLayers::Stages,
        Recompute::First(_) | Recompute::AsNeeded => {
            if most == 0 {
                RepeatedLayers::None
            } else if stages.iter().all(|(repeated, all)| repeated == all) {
                RepeatedLayers::All
            } else if stages.iter().all(|(repeated, all)| *repeated == most.min(*all)) {
                RepeatedLayers::OneNumber
            } else {
                RepeatedLayers::OwnNumbers
            }
        }
    }
}
