//! Where the time of a pass goes: at each moment, to the most valuable thing that runs.

use super::Breakdown;
use crate::estimate::Limit;
use crate::estimate::OpCosts;
use crate::graph::Dag;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::schedule::layer::ScheduledPass;
use crate::units::Time;

/// What a moment is spent on, the most valuable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spent {
    Tensor,
    Vector,
    Memory,
    Network,
}

/// Seconds of a pass by what they are spent on; they sum to its time.
pub fn parts(ops: &Dag<Op>, costs: &[OpCosts], pass: &ScheduledPass) -> Breakdown {
    let runs: Vec<(u64, u64, Spent)> = ops
        .ids()
        .map(|id| {
            let run = pass.schedule.runs[id.index()];
            let cost = &costs[id.index()];
            let limit = if run.spread { cost.spread.limit } else { cost.alone.limit };
            let spent = spent(ops.node(id).core(), limit);
            (run.start, pass.schedule.end(&pass.problem, id), spent)
        })
        .collect();
    let mut moments: Vec<u64> = runs.iter().flat_map(|(start, end, _)| [*start, *end]).collect();
    moments.sort_unstable();
    moments.dedup();
    let mut parts = Breakdown::default();
    for window in moments.windows(2) {
        let running =
            runs.iter().filter(|(start, end, _)| *start <= window[0] && window[1] <= *end);
        let seconds = Time(window[1] - window[0]).seconds();
        match running.map(|(_, _, spent)| *spent).min() {
            Some(Spent::Tensor) => parts.tensor += seconds,
            Some(Spent::Vector) => parts.vector += seconds,
            // A moment in which nothing runs does not occur in a schedule of least makespan.
            Some(Spent::Memory) | None => parts.memory += seconds,
            Some(Spent::Network) => parts.tensor_parallel_collectives += seconds,
        }
    }
    let waiting = pass.total.time.0 - pass.total.makespan.0;
    parts.memory += Time(waiting).seconds();
    parts
}

fn spent(core: CoreKind, limit: Limit) -> Spent {
    match (core, limit) {
        (CoreKind::Network, _) => Spent::Network,
        (_, Limit::Lanes) => Spent::Vector,
        (_, Limit::Compute) => Spent::Tensor,
        _ => Spent::Memory,
    }
}
