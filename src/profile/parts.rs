//! Where the time of a pass goes: at each moment, to the most valuable thing that runs.

use super::pass::ScheduledPass;
use crate::estimate::Limit;
use crate::estimate::OpCosts;
use crate::graph::Dag;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::units::Time;

/// Seconds of a pass by what they are spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassParts {
    /// Arrays at work.
    pub tensor: f64,
    /// Vector lanes at work.
    pub vector: f64,
    /// Waiting for a memory.
    pub memory: f64,
    /// Exchanges among the devices that share the layer, with nothing beside them.
    pub collectives: f64,
}

/// What a moment is spent on, the most valuable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spent {
    Tensor,
    Vector,
    Memory,
    Network,
}

/// Seconds of a pass by what they are spent on; they sum to its time.
pub fn parts(ops: &Dag<Op>, costs: &[OpCosts], pass: &ScheduledPass) -> PassParts {
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
    let mut parts = PassParts::default();
    for window in moments.windows(2) {
        let running =
            runs.iter().filter(|(start, end, _)| *start <= window[0] && window[1] <= *end);
        let seconds = Time(window[1] - window[0]).seconds();
        match running.map(|(_, _, spent)| *spent).min() {
            Some(Spent::Tensor) => parts.tensor += seconds,
            Some(Spent::Vector) => parts.vector += seconds,
            // A moment in which nothing runs does not occur in a schedule of least makespan.
            Some(Spent::Memory) | None => parts.memory += seconds,
            Some(Spent::Network) => parts.collectives += seconds,
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
