//! What a pass takes at the least on every chip that has no more of any proved knob.
//!
//! In: what its operators cost on a chip and the time of its pass there. Out: a time that its pass
//! cannot beat on any such chip (docs/search.md, the laws).
//!
//! No schedule is shorter there than the shortest of operators at their least. That is found anew where
//! they lose more than a trifle; else it is no more than all of them together lose below the shortest
//! of operators as they are. Memories carry at least what each operator must.

use super::pass::PassGraph;
use super::pass::PassTime;
use crate::estimate::Estimate;
use crate::estimate::EstimateTable;
use crate::estimate::OpCosts;
use crate::estimate::TooLarge;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::model::op::Op;
use crate::schedule::Limits;
use crate::schedule::Rule;
use crate::schedule::Task;
use crate::units::Bytes;
use crate::units::Time;

/// A schedule is made anew where operators at their least lose more than one part in so many.
const TRIFLE: u64 = 100_000;

/// The least time of the pass of `ops`, which cost `costs` on this chip and take `pass`.
pub(super) fn least_time(
    (ops, graph): (&Dag<Op>, &PassGraph),
    (costs, pass): (&[OpCosts], &PassTime),
    (chip, cluster): (&Accelerator, &Cluster),
    (table, rule, limits): (&EstimateTable, Rule, &Limits),
) -> Result<Time, TooLarge> {
    let mut lost = 0_u64;
    let mut carried = [Bytes::ZERO; 3];
    let mut tasks = Vec::with_capacity(costs.len());
    for (op, cost) in ops.nodes().iter().zip(costs) {
        let alone = table.least(op, chip, cluster, Use::Alone)?;
        // Where spreading would be slower, it is the same as not to spread.
        let spread = table.least(op, chip, cluster, Use::Spread)?.min(alone);
        let [least_alone, least_spread] = [alone, spread].map(|least| least.time.0.max(1));
        let loses = |exact: &Estimate, least: u64| exact.time.0.max(1).saturating_sub(least);
        let most = loses(&cost.alone, least_alone).max(loses(&cost.spread, least_spread));
        lost = lost.saturating_add(most);
        tasks.push(Task { core: op.core(), alone: least_alone, spread: least_spread });
        let bytes = [spread.hbm, spread.glb_read, spread.glb_written];
        for (sum, bytes) in carried.iter_mut().zip(bytes) {
            *sum += bytes;
        }
    }
    let (read, write) = chip.glb_bandwidth();
    let [hbm, glb_read, glb_written] = carried;
    let memories =
        [chip.hbm_bandwidth().transfer(hbm), read.transfer(glb_read), write.transfer(glb_written)];
    let mut scheduled = Time(pass.least_makespan.0.saturating_sub(lost));
    if lost > pass.least_makespan.0 / TRIFLE {
        scheduled = scheduled.max(graph.least_makespan(&tasks, chip, rule, limits));
    }
    Ok(memories.into_iter().fold(scheduled, Time::max))
}
