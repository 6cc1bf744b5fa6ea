//! A strategy as a table tells it: a sentence and some degrees. Which strategies of a space read so?

use crate::model::Modules;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::zero::Zero;
use crate::plan::PassOrder;
use crate::plan::Recompute;
use crate::plan::Strategy;

use super::divide::Asked;
use super::legal;

/// What a table tells of a strategy in figures.
pub struct Degrees<'a> {
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Ranks of a pipeline.
    pub pipeline: u64,
    /// Virtual stages of each rank.
    pub chunks: u64,
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Devices that share the tokens of each sequence.
    pub context_parallel: u64,
    /// Sequences in a micro-batch.
    pub micro_batch: u64,
    /// What replicas share, as the number of a stage.
    pub zero: u64,
    /// What is computed again.
    pub recompute: &'a str,
}

/// The strategies of the question's space that have these degrees and read as `sentence`.
pub fn strategies(asked: &Asked, degrees: &Degrees, sentence: &str) -> Vec<Strategy> {
    let space = asked.space;
    let small = |number: u64| usize::try_from(number).ok();
    let zero = small(degrees.zero).and_then(Zero::of_stage);
    let recompute = degrees.recompute.parse::<Recompute>().ok();
    let (Some(zero), Some(recompute), Some(chunks)) = (zero, recompute, small(degrees.chunks))
    else {
        return Vec::new();
    };
    let group = space.group.unwrap_or(degrees.pipeline);
    let schedule = match chunks {
        1 => PassOrder::OneForwardOneBackward,
        _ => PassOrder::Interleaved { chunks, group },
    };
    let mut found = Vec::new();
    let experts = asked.experts(degrees.tensor_parallel);
    let each = rest(asked).into_iter().flat_map(|rest| experts.iter().map(move |&e| (rest, e)));
    for ((sequence_parallel, context_kind, order, repeated), (expert, divided)) in each {
        let strategy = Strategy {
            tensor_parallel: degrees.tensor_parallel,
            sequence_parallel,
            context_parallel: degrees.context_parallel,
            context_kind,
            expert_parallel: expert,
            expert_tensor: divided,
            pipeline: degrees.pipeline,
            schedule,
            data_parallel: degrees.data_parallel,
            micro_batch: degrees.micro_batch,
            zero,
            shards: space.shards.filter(|_| zero > Zero::Nothing),
            order,
            recompute,
            repeated,
        };
        let reads_so = strategy.to_string() == sentence;
        if reads_so && legal::check("", asked, &strategy).is_ok() {
            found.push(strategy);
        }
    }
    found
}

/// Every choice that no degree tells.
fn rest(asked: &Asked) -> Vec<(bool, ContextKind, Order, Modules)> {
    let space = asked.space;
    let mut found = Vec::new();
    for scattered in [false, true] {
        for &kind in &space.context_kinds {
            for &order in &space.orders {
                found.extend(space.repeated.iter().map(|&again| (scattered, kind, order, again)));
            }
        }
    }
    found
}
