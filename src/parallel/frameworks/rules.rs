//! The rules themselves, one row each.
//!
//! From the sources of Megatron-LM, torchtitan with `PyTorch`'s schedules, and `MaxText`, as of August
//! 2026. A rule is a sentence that its frameworks ask to be true. Assumed, not read there: which layers
//! torchtitan and `MaxText` can repeat, the stages of sharding and the order of axes of `MaxText`, and
//! that torchtitan takes up to two virtual stages of a rank without a layout. How `MaxText` cuts the
//! weights of layers and of experts is what the logical axis rules of its base configuration say.

use super::CutShape;
use super::ExpertShape;
use super::Framework;
use super::PlanShape;
use super::RepeatedLayers;
use super::product;
use crate::parallel::ContextKind;
use crate::parallel::Grid;
use crate::parallel::Order;
use crate::parallel::zero::Zero;

/// A rule that some frameworks ask plans to follow.
pub struct Rule {
    /// The rule as a sentence.
    pub name: &'static str,
    /// Who asks for it; all of them where every plan needs it.
    pub frameworks: &'static [Framework],
    /// Whether a plan follows it, given that it follows those before.
    pub(super) holds: fn(&PlanShape) -> bool,
    /// What a plan has instead.
    pub(super) found: fn(&PlanShape) -> String,
    /// What would follow it.
    pub(super) would_do: fn(&PlanShape) -> String,
}

impl Rule {
    /// Whether a framework asks for it.
    pub fn is_of(&self, framework: Framework) -> bool {
        self.frameworks.contains(&framework)
    }
}

const EVERY: &[Framework] = &Framework::ALL;
const LAUNCHED: &[Framework] = &[Framework::Megatron, Framework::Torchtitan, Framework::Maxtext];
const MEGATRON: &[Framework] = &[Framework::Megatron];
const TORCHTITAN: &[Framework] = &[Framework::Torchtitan];
const MAXTEXT: &[Framework] = &[Framework::Maxtext];

/// All rules, in the order in which they are asked: first what every plan needs.
pub const RULES: [Rule; 43] = [
    Rule {
        name: "every count is at least 1",
        frameworks: EVERY,
        holds: |plan| counts(plan).iter().all(|(_, count)| *count > 0),
        found: |plan| {
            let none = counts(plan).into_iter().find(|(_, count)| *count == 0);
            format!("found {} = 0", none.map_or("nothing", |(name, _)| name))
        },
        would_do: |_| "1 or more would do".into(),
    },
    Rule {
        name: "the heads divide evenly among the devices that share a layer",
        frameworks: EVERY,
        holds: |plan| plan.heads.is_multiple_of(plan.tensor),
        found: |plan| format!("found {} heads for t = {}", plan.heads, plan.tensor),
        would_do: |plan| format!("t of {} would do", near(plan.heads, plan.tensor)),
    },
    Rule {
        name: "the MLP divides evenly among the devices that share a layer",
        frameworks: EVERY,
        holds: |plan| plan.mlp.is_multiple_of(plan.tensor),
        found: |plan| format!("found {} elements for t = {}", plan.mlp, plan.tensor),
        would_do: |plan| format!("t of {} would do", near(plan.mlp, plan.tensor)),
    },
    Rule {
        name: "the key-value heads divide evenly among the devices that share a layer, or each has \
               one",
        frameworks: EVERY,
        holds: |plan| divides_either_way(plan.kv_heads.into(), plan.tensor.into()),
        found: |plan| format!("found {} key-value heads for t = {}", plan.kv_heads, plan.tensor),
        would_do: |plan| format!("t of {} would do", near(plan.kv_heads, plan.tensor)),
    },
    Rule {
        name: "sequence parallelism stands beside tensor parallelism",
        frameworks: EVERY,
        holds: |plan| !plan.sequence_parallel || plan.tensor > 1,
        found: |plan| format!("found sp with t = {}", plan.tensor),
        would_do: |_| "t of 2 or more, or no sp, would do".into(),
    },
    Rule {
        name: "a device has as many tokens at the beginning as at the end of a sequence where \
               context is shared",
        frameworks: EVERY,
        holds: |plan| plan.context == 1 || is_multiple(plan.sequence, product(&[2, plan.context])),
        found: |plan| format!("found {} tokens for c = {}", plan.sequence, plan.context),
        would_do: |plan| format!("c of {} would do", near(plan.sequence / 2, plan.context)),
    },
    Rule {
        name: "sequence parallelism divides a device's tokens evenly",
        frameworks: EVERY,
        holds: |plan| !plan.sequence_parallel || is_multiple(plan.sequence, scattered_parts(plan)),
        found: |plan| {
            format!("found {} tokens for t = {}, c = {}", plan.sequence, plan.tensor, plan.context)
        },
        would_do: |plan| {
            format!("a multiple of {} tokens, or no sp, would do", scattered_parts(plan))
        },
    },
    Rule {
        name: "devices that exchange tokens for heads divide the heads evenly",
        frameworks: EVERY,
        holds: |plan| {
            let parts = product(&[plan.tensor, plan.context]);
            plan.context == 1
                || plan.context_kind != ContextKind::Ulysses
                || is_multiple(plan.heads, parts) && divides_either_way(plan.kv_heads.into(), parts)
        },
        found: |plan| {
            let PlanShape { heads, kv_heads, tensor, context, .. } = plan;
            format!("found {heads} heads and {kv_heads} key-value heads for {tensor} x {context}")
        },
        would_do: |_| "another degree, or the ring or gather kind, would do".into(),
    },
    Rule {
        name: "devices that share layers with experts divide the tokens among them",
        frameworks: EVERY,
        holds: |plan| plan.experts.is_none() || plan.tensor == 1 || plan.sequence_parallel,
        found: |plan| format!("found t = {} without sp", plan.tensor),
        would_do: |_| "sp, or t = 1, would do".into(),
    },
    Rule {
        name: "experts are dealt out evenly",
        frameworks: EVERY,
        holds: |plan| of_experts(plan, |experts| experts.count.is_multiple_of(experts.parallel)),
        found: |plan| about_experts(plan, |e| format!("{} for e = {}", e.count, e.parallel)),
        would_do: |plan| {
            let near = |e: &ExpertShape| near(e.count, e.parallel);
            format!("e of {} would do", plan.experts.as_ref().map_or("1".into(), near))
        },
    },
    Rule {
        name: "the elements of each expert divide evenly among the devices that share it",
        frameworks: EVERY,
        holds: |plan| of_experts(plan, |experts| experts.mlp.is_multiple_of(experts.tensor)),
        found: |plan| about_experts(plan, |e| format!("{} elements for x = {}", e.mlp, e.tensor)),
        would_do: |plan| {
            let near = |e: &ExpertShape| near(e.mlp, e.tensor);
            format!("x of {} would do", plan.experts.as_ref().map_or("1".into(), near))
        },
    },
    Rule {
        name: "the devices of a rank hold every expert equally often",
        frameworks: EVERY,
        holds: |plan| {
            of_experts(plan, |experts| rank_devices(plan).is_multiple_of(experts.devices()))
        },
        found: |plan| {
            about_experts(plan, |e| {
                format!("{} devices for x = {}, e = {}", rank_devices(plan), e.tensor, e.parallel)
            })
        },
        would_do: |plan| format!("x times e that divides {} would do", rank_devices(plan)),
    },
    Rule {
        name: "every virtual stage has a layer, embedding and head among them",
        frameworks: EVERY,
        holds: |plan| n_stages(plan) <= u128::from(plan.layers) + 2,
        found: |plan| stages(plan),
        would_do: |plan| format!("p times v up to {} would do", u128::from(plan.layers) + 2),
    },
    Rule {
        name: "the degrees take no more devices than there are",
        frameworks: EVERY,
        holds: |plan| plan.used() <= plan.devices.into(),
        found: |plan| format!("found {} of {}", grid(plan), plan.devices),
        would_do: |plan| format!("t c d p of at most {} would do", plan.devices),
    },
    Rule {
        name: "ranks have the same devices in the grid of experts as in that of layers",
        frameworks: EVERY,
        holds: |plan| plan.experts.is_none() || plan.order.folds(&both_grids(plan)),
        found: |plan| {
            about_experts(plan, |e| {
                let PlanShape { tensor, context, order, .. } = plan;
                let ExpertShape { parallel, tensor: divided, .. } = e;
                format!("x = {divided}, e = {parallel} for t = {tensor}, c = {context} in {order}")
            })
        },
        would_do: |plan| {
            let other = Order::default();
            format!(
                "x times e = {}, or the order {other}, would do",
                product(&[plan.tensor, plan.context])
            )
        },
    },
    Rule {
        name: "micro-batches divide the batch evenly",
        frameworks: EVERY,
        holds: |plan| plan.global_batch.is_multiple_of(plan.micro_batch),
        found: |plan| {
            format!("found a batch of {} for b = {}", plan.global_batch, plan.micro_batch)
        },
        would_do: |plan| format!("b of {} would do", near(plan.global_batch, plan.micro_batch)),
    },
    Rule {
        name: "chunks stand on several ranks",
        frameworks: EVERY,
        holds: |plan| plan.chunks == 1 || plan.pipeline > 1,
        found: |plan| format!("found v = {} with p = {}", plan.chunks, plan.pipeline),
        would_do: |_| "p of 2 or more, or v = 1, would do".into(),
    },
    Rule {
        name: "a group has as many micro-batches as there are ranks, or more, up to all",
        frameworks: EVERY,
        holds: |plan| {
            plan.chunks == 1 || (plan.pipeline..=plan.micro_batches()).contains(&plan.group)
        },
        found: |plan| passes(plan),
        would_do: |plan| match (plan.pipeline, plan.micro_batches()) {
            (ranks, all) if ranks <= all => format!("g of {ranks} to {all} would do"),
            (ranks, _) => {
                format!("{ranks} micro-batches of a pipeline or more, or v = 1, would do")
            }
        },
    },
    Rule {
        name: "the last group is whole, or has as many micro-batches as there are ranks",
        frameworks: EVERY,
        holds: |plan| {
            let left = plan.micro_batches() % plan.group.max(1);
            plan.chunks == 1 || left == 0 || left >= plan.pipeline
        },
        found: |plan| passes(plan),
        would_do: |plan| {
            let all = plan.micro_batches();
            let even = divisors(all).into_iter().find(|&group| group >= plan.pipeline);
            format!("g = {} would do", even.unwrap_or(all))
        },
    },
    Rule {
        name: "the replicas that share divide all replicas evenly",
        frameworks: EVERY,
        holds: |plan| {
            plan.zero == Zero::Nothing || plan.replicas().is_multiple_of(plan.shards.into())
        },
        found: |plan| format!("found {} of {} x {} replicas", plan.shards, plan.data, plan.context),
        would_do: |plan| match u64::try_from(plan.replicas()) {
            Ok(replicas) => format!("shard of {} would do", near(replicas, plan.shards)),
            Err(_) => "fewer replicas would do".into(),
        },
    },
    Rule {
        name: "there is one pipeline rank",
        frameworks: MAXTEXT,
        holds: |plan| plan.pipeline == 1,
        found: |plan| format!("found p = {}", plan.pipeline),
        would_do: |_| "p = 1 would do".into(),
    },
    Rule {
        name: "the degrees take all devices",
        frameworks: LAUNCHED,
        holds: |plan| plan.used() == plan.devices.into(),
        found: |plan| format!("found {} of {}", grid(plan), plan.devices),
        would_do: |plan| match product(&[plan.tensor, plan.context, plan.pipeline]) {
            parts if u128::from(plan.devices).is_multiple_of(parts) => {
                format!("d = {} would do", u128::from(plan.devices) / parts)
            }
            parts => format!("a multiple of {parts} devices would do"),
        },
    },
    Rule {
        name: "all pipelines get as many micro-batches",
        frameworks: LAUNCHED,
        holds: |plan| is_multiple(plan.global_batch, product(&[plan.micro_batch, plan.data])),
        found: |plan| {
            let PlanShape { global_batch, micro_batch, data, .. } = plan;
            format!("found a batch of {global_batch} for b = {micro_batch} and d = {data}")
        },
        would_do: |plan| {
            let (batch, step) =
                (u128::from(plan.global_batch), product(&[plan.micro_batch, plan.data]));
            let (less, more) = (batch / step * step, (batch / step + 1) * step);
            let less = if less > 0 { format!("{less} or ") } else { String::new() };
            format!("a batch of {less}{more} would do")
        },
    },
    Rule {
        name: "replicas share what it can shard",
        frameworks: TORCHTITAN,
        holds: |plan| Framework::Torchtitan.zero_stages().contains(&plan.zero),
        found: |plan| format!("found zero = {}", plan.zero.stage()),
        would_do: |_| "zero of 0, 2 or 3 would do".into(),
    },
    Rule {
        name: "replicas share the state alone, or weights as well",
        frameworks: MAXTEXT,
        holds: |plan| Framework::Maxtext.zero_stages().contains(&plan.zero),
        found: |plan| format!("found zero = {}", plan.zero.stage()),
        would_do: |_| "zero of 0, 1 or 3 would do".into(),
    },
    Rule {
        name: "devices that share tokens shard weights or gradients among themselves",
        frameworks: TORCHTITAN,
        holds: |plan| {
            let sharded = plan.zero != Zero::Nothing && plan.shards.is_multiple_of(plan.context);
            plan.context == 1 || sharded
        },
        found: |plan| {
            let (zero, PlanShape { shards, context, .. }) = (plan.zero.stage(), plan);
            format!("found zero = {zero}, shard = {shards} for c = {context}")
        },
        would_do: |plan| {
            format!("zero of 2 or 3 with shard a multiple of {} would do", plan.context)
        },
    },
    Rule {
        name: "the sequence divides by twice the context degree and the tensor degree",
        frameworks: TORCHTITAN,
        holds: |plan| is_multiple(plan.sequence, product(&[2, plan.tensor, plan.context])),
        found: |plan| {
            format!("found {} tokens for t = {}, c = {}", plan.sequence, plan.tensor, plan.context)
        },
        would_do: |plan| {
            let parts = product(&[2, plan.tensor, plan.context]);
            format!("a multiple of {parts} tokens would do")
        },
    },
    Rule {
        name: "a pipeline without chunks has as many micro-batches as ranks, or more",
        frameworks: TORCHTITAN,
        holds: |plan| {
            plan.chunks > 1 || plan.micro_batches() >= plan.pipeline || plan.pipeline == 1
        },
        found: |plan| passes(plan),
        would_do: |plan| format!("{} micro-batches of a pipeline would do", plan.pipeline),
    },
    Rule {
        name: "micro-batches go through chunks in as many groups as whole sets of ranks, all alike",
        frameworks: TORCHTITAN,
        holds: |plan| {
            let (all, groups) = (plan.micro_batches(), plan.micro_batches() / plan.pipeline);
            plan.chunks == 1 || product(&[plan.group, groups]) == all.into()
        },
        found: |plan| passes(plan),
        would_do: |plan| {
            let (all, groups) = (plan.micro_batches(), plan.micro_batches() / plan.pipeline);
            match groups {
                1.. if all.is_multiple_of(groups) => format!("g = {} would do", all / groups),
                _ => format!("a multiple of {} micro-batches would do", plan.pipeline),
            }
        },
    },
    Rule {
        name: "layers that are not cut by a layout divide evenly among the virtual stages",
        frameworks: MEGATRON,
        holds: |plan| plan.cut == CutShape::Layout || is_multiple(plan.layers, n_stages(plan)),
        found: |plan| stages(plan),
        would_do: |plan| {
            let found = u64::try_from(n_stages(plan)).unwrap_or(u64::MAX);
            format!("p times v of {}, or a layout, would do", near(plan.layers, found))
        },
    },
    Rule {
        name: "layers that are not cut by a layout, with embedding and head, fill three or more \
               chunks a rank with as many in each but the last",
        frameworks: TORCHTITAN,
        holds: |plan| {
            let (stages, counted) = (n_stages(plan), u128::from(plan.layers) + 2);
            // Fewer in each would need more stages, and more leave no more stages filled.
            let each = counted.div_ceil(stages);
            plan.cut == CutShape::Layout || plan.chunks <= 2 || counted.div_ceil(each) == stages
        },
        found: |plan| stages(plan),
        would_do: |_| "v of 1 or 2, or a layout, would do".into(),
    },
    Rule {
        name: "axes number devices in one of its two orders",
        frameworks: MEGATRON,
        holds: |plan| Order::MEGATRON.into_iter().any(|order| numbers_like(plan, order)),
        found: |plan| order(plan),
        would_do: |_| format!("{} or {} would do", Order::MEGATRON[0], Order::MEGATRON[1]),
    },
    Rule {
        name: "axes number devices in its order",
        frameworks: &[Framework::Torchtitan, Framework::Maxtext],
        holds: |plan| numbers_like(plan, Order::default()),
        found: |plan| order(plan),
        would_do: |_| format!("{} would do", Order::MEGATRON[0]),
    },
    Rule {
        // It numbers devices a second time for experts, whose ranks must be the same ones; a model
        // without experts has them as wide as its tensor parallelism.
        name: "sequences are shared only where the pipeline is the outermost axis",
        frameworks: MEGATRON,
        holds: |plan| {
            plan.experts.is_some() || plan.context == 1 || numbers_like(plan, Order::default())
        },
        found: |plan| format!("{} with c = {}", order(plan), plan.context),
        would_do: |_| format!("{}, or c = 1, would do", Order::MEGATRON[0]),
    },
    Rule {
        name: "whole layers are repeated by one number for all stages",
        frameworks: MEGATRON,
        holds: |plan| {
            use RepeatedLayers::{All, None, OneNumber};
            matches!(plan.repeated, None | All | OneNumber)
        },
        found: |plan| repeated(plan),
        would_do: |_| "the largest of the numbers, for all stages, would do".into(),
    },
    Rule {
        name: "either whole layers are repeated or modules of them",
        frameworks: MEGATRON,
        holds: |plan| plan.modules.is_empty() || plan.repeated == RepeatedLayers::None,
        found: |plan| format!("{} beside {}", repeated(plan), plan.modules),
        would_do: |_| "one of the two would do".into(),
    },
    Rule {
        name: "all layers are repeated or none",
        frameworks: &[Framework::Torchtitan, Framework::Maxtext],
        holds: |plan| matches!(plan.repeated, RepeatedLayers::None | RepeatedLayers::All),
        found: |plan| repeated(plan),
        would_do: |_| "recompute of none or full would do".into(),
    },
    Rule {
        name: "modules of a layer are not repeated by themselves",
        frameworks: &[Framework::Torchtitan, Framework::Maxtext],
        holds: |plan| plan.modules.is_empty(),
        found: |plan| format!("found {}", plan.modules),
        would_do: |_| "recompute of none or full would do".into(),
    },
    Rule {
        name: "experts are not divided, each by itself",
        frameworks: TORCHTITAN,
        holds: |plan| of_experts(plan, |experts| experts.tensor == 1),
        found: |plan| about_experts(plan, |e| format!("x = {}", e.tensor)),
        would_do: |_| "x = 1 would do".into(),
    },
    Rule {
        name: "experts are dealt out among devices that share weights",
        frameworks: TORCHTITAN,
        holds: |plan| {
            let shards = if plan.zero > Zero::Nothing { plan.shards } else { plan.context };
            let sharers = product(&[shards, plan.tensor]);
            of_experts(plan, |experts| sharers.is_multiple_of(experts.parallel.into()))
        },
        found: |plan| {
            about_experts(plan, |e| {
                format!("e = {} for t = {}, shard = {}", e.parallel, plan.tensor, plan.shards)
            })
        },
        would_do: |_| "e that divides t times shard would do".into(),
    },
    Rule {
        name: "each expert is divided as layers are, and experts are dealt out along the data axis",
        frameworks: MAXTEXT,
        holds: |plan| {
            of_experts(plan, |experts| {
                experts.tensor == plan.tensor && plan.data.is_multiple_of(experts.parallel)
            })
        },
        found: |plan| {
            about_experts(plan, |e| {
                format!(
                    "x = {}, e = {} for t = {}, d = {}",
                    e.tensor, e.parallel, plan.tensor, plan.data
                )
            })
        },
        would_do: |plan| format!("x = {} and e that divides d would do", plan.tensor),
    },
    Rule {
        // Its rules of sharding cut weights along these axes as they do along that of replicas.
        name: "replicas share weights where experts are dealt out or sequences are shared",
        frameworks: MAXTEXT,
        holds: |plan| {
            let whole = of_experts(plan, |experts| experts.parallel == 1);
            plan.zero == Zero::Weights || plan.context == 1 && whole
        },
        found: |plan| {
            let dealt = plan.experts.map_or(1, |experts| experts.parallel);
            let zero = plan.zero.stage();
            format!("found zero = {zero} for c = {}, e = {dealt}", plan.context)
        },
        would_do: |_| "zero = 3, or c = 1 and e = 1, would do".into(),
    },
    Rule {
        name: "experts are dealt out where sequences are whole",
        frameworks: MAXTEXT,
        holds: |plan| of_experts(plan, |experts| experts.parallel == 1 || plan.context == 1),
        found: |plan| {
            about_experts(plan, |e| format!("e = {} for c = {}", e.parallel, plan.context))
        },
        would_do: |_| "c = 1, or e = 1, would do".into(),
    },
];

fn counts(plan: &PlanShape) -> [(&'static str, u64); 17] {
    [
        ("the devices", plan.devices),
        ("the batch", plan.global_batch),
        ("b", plan.micro_batch),
        ("the sequence", plan.sequence),
        ("the layers", plan.layers),
        ("the heads", plan.heads),
        ("the key-value heads", plan.kv_heads),
        ("the MLP", plan.mlp),
        ("t", plan.tensor),
        ("c", plan.context),
        ("p", plan.pipeline),
        ("v", plan.chunks),
        ("d", plan.data),
        ("g", if plan.chunks > 1 { plan.group } else { 1 }),
        ("shard", if plan.zero > Zero::Nothing { plan.shards } else { 1 }),
        ("e", plan.experts.map_or(1, |experts| experts.parallel)),
        ("x", plan.experts.map_or(1, |experts| experts.tensor)),
    ]
}

fn grid(plan: &PlanShape) -> String {
    let PlanShape { tensor, context, data, pipeline, .. } = plan;
    format!("{tensor} x {context} x {data} x {pipeline}")
}

fn passes(plan: &PlanShape) -> String {
    let PlanShape { pipeline, chunks, group, .. } = plan;
    let groups = if *chunks > 1 { format!(", g = {group}") } else { String::new() };
    let all = plan.micro_batches();
    format!("found {all} micro-batches of a pipeline for p = {pipeline}{groups}")
}

fn stages(plan: &PlanShape) -> String {
    let PlanShape { layers, pipeline, chunks, .. } = plan;
    format!("found {layers} layers for p = {pipeline}, v = {chunks}")
}

fn order(plan: &PlanShape) -> String {
    format!("found {}", plan.order)
}

fn repeated(plan: &PlanShape) -> String {
    let layers = match plan.repeated {
        RepeatedLayers::None => "no whole layers",
        RepeatedLayers::All => "all layers",
        RepeatedLayers::OneNumber => "as many first layers of every stage",
        RepeatedLayers::OwnNumbers => "first layers of stages, by several numbers",
        RepeatedLayers::Stages => "stages as a whole",
    };
    format!("found {layers}")
}

/// Virtual stages of a pipeline.
fn n_stages(plan: &PlanShape) -> u128 {
    product(&[plan.pipeline, plan.chunks])
}

/// Parts into which sequence and context parallelism cut a sequence together.
fn scattered_parts(plan: &PlanShape) -> u128 {
    let halves = if plan.context > 1 { 2 } else { 1 };
    product(&[halves, plan.context, plan.tensor])
}

/// Whether experts are divided so; what has none breaks no rule about them.
fn of_experts(plan: &PlanShape, holds: impl Fn(&ExpertShape) -> bool) -> bool {
    plan.experts.as_ref().is_none_or(holds)
}

fn about_experts(plan: &PlanShape, found: impl Fn(&ExpertShape) -> String) -> String {
    let found = plan.experts.as_ref().map_or("none".into(), found);
    format!("found experts: {found}")
}

/// Devices of each rank of all pipelines.
fn rank_devices(plan: &PlanShape) -> u128 {
    product(&[plan.tensor, plan.context, plan.data])
}

fn both_grids(plan: &PlanShape) -> Grid {
    let PlanShape { tensor, context, data, pipeline, .. } = *plan;
    let owners = plan.experts.map(|e| e.parallel.saturating_mul(e.tensor));
    Grid { tensor, context, data, pipeline, expert_devices: owners }
}

/// Whether devices get the same numbers as in another order: axes of one device do not count.
fn numbers_like(plan: &PlanShape, other: Order) -> bool {
    let PlanShape { tensor, context, data, pipeline, .. } = *plan;
    let grid = Grid { tensor, context, data, pipeline, expert_devices: None };
    let counted = |order: Order| order.axes().into_iter().filter(|&axis| grid.degree(axis) > 1);
    counted(plan.order).eq(counted(other))
}

fn is_multiple(number: u64, of: u128) -> bool {
    u128::from(number).is_multiple_of(of)
}

fn divides_either_way(one: u128, other: u128) -> bool {
    one.is_multiple_of(other) || other.is_multiple_of(one)
}

/// The divisors of a number that are nearest to another one, below and above, in words.
fn near(number: u64, found: u64) -> String {
    let divisors = divisors(number);
    let below = divisors.iter().rev().find(|&&divisor| divisor < found);
    let above = divisors.iter().find(|&&divisor| divisor > found);
    match (below, above) {
        (Some(below), Some(above)) => format!("{below} or {above}"),
        (Some(one), None) | (None, Some(one)) => one.to_string(),
        (None, None) => format!("a divisor of {number}"),
    }
}

/// The divisors of a number in ascending order; none of one that is too large to list them.
fn divisors(number: u64) -> Vec<u64> {
    if number > 1 << 36 {
        return Vec::new();
    }
    let small = (1..=number.isqrt()).filter(|&divisor| number.is_multiple_of(divisor));
    let mut found: Vec<u64> = small.flat_map(|divisor| [divisor, number / divisor]).collect();
    found.sort_unstable();
    found.dedup();
    found
}
