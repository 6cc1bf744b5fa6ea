//! What a pass takes at the least on every chip that has no more of any proved knob.
//!
//! In: its operators and a chip. Out: a time that its pass cannot beat on any such chip (docs/search.md,
//! the laws).
//!
//! No schedule is shorter there than the shortest of operators at their least, and memories carry at least
//! what each operator must.

use super::PassTimes;
use super::pass::PassGraph;
use crate::estimate::Closeness;
use crate::estimate::EstimateTable;
use crate::estimate::LeastEstimate;
use crate::estimate::TooLarge;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::parallel::LayerShare;
use crate::schedule::Limits;
use crate::schedule::Rule;
use crate::schedule::Task;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// How the least is looked for: estimates and how closely, the rule of schedules and when searches for them
/// give up.
#[derive(Clone, Copy)]
pub struct LeastBy<'a> {
    /// Of operators.
    pub table: &'a EstimateTable,
    /// How closely.
    pub closeness: Closeness,
    /// Which cores an operator may take.
    pub rule: Rule,
    /// When searches for schedules give up; without, bounds speak alone.
    pub limits: Option<&'a Limits<'a>>,
}

/// What both passes of a layer take at the least.
pub(super) fn least_times(
    layer: &LayerShare,
    [forward, backward]: &[PassGraph; 2],
    on: (&Accelerator, &Cluster),
    by: LeastBy,
) -> Result<PassTimes, TooLarge> {
    let there = least_pass((&layer.forward, forward), on, by)?;
    let back = least_pass((&layer.backward, backward), on, by)?;
    Ok(PassTimes {
        forward: there.time,
        backward: back.time,
        collectives: [there.exchanged, back.exchanged],
        all_to_all: there.sent_to_experts + back.sent_to_experts,
    })
}

/// What both passes of a layer take of energy at the least, forward and backward, however long they last.
pub(super) fn least_energies(
    layer: &LayerShare,
    (chip, cluster): (&Accelerator, &Cluster),
    table: &EstimateTable,
) -> Result<[Energy; 2], TooLarge> {
    let of = |ops: &Dag<Op>| -> Result<Energy, TooLarge> {
        ops.nodes().iter().map(|op| table.least_energy(op, chip, cluster)).sum()
    };
    Ok([of(&layer.forward)?, of(&layer.backward)?])
}

struct LeastPass {
    time: Time,
    exchanged: Time,
    sent_to_experts: Time,
}

fn least_pass(
    (ops, graph): (&Dag<Op>, &PassGraph),
    (chip, cluster): (&Accelerator, &Cluster),
    LeastBy { table, closeness, rule, limits }: LeastBy,
) -> Result<LeastPass, TooLarge> {
    let mut carried = [Bytes::ZERO; 3];
    let (mut exchanged, mut sent_to_experts) = (Time::ZERO, Time::ZERO);
    let mut tasks = Vec::with_capacity(ops.nodes().len());
    for op in ops.nodes() {
        let least = |cores: Use| table.least(op, chip, cluster, (cores, closeness));
        let alone = least(Use::Alone)?;
        // Where spreading would be slower, it is the same as not to spread.
        let spread: LeastEstimate = least(Use::Spread)?.min(alone);
        let [ticks_alone, ticks_spread] = [alone, spread].map(|least| least.time.0.max(1));
        tasks.push(Task { core: op.core(), alone: ticks_alone, spread: ticks_spread });
        let bytes = [spread.hbm, spread.glb_read, spread.glb_written];
        for (sum, bytes) in carried.iter_mut().zip(bytes) {
            *sum += bytes;
        }
        if op.core() == CoreKind::Network {
            exchanged += alone.time;
        }
        if op.sends_to_experts() {
            sent_to_experts += alone.time;
        }
    }
    let (read, write) = chip.glb_bandwidth();
    let [hbm, glb_read, glb_written] = carried;
    let memories =
        [chip.hbm_bandwidth().transfer(hbm), read.transfer(glb_read), write.transfer(glb_written)];
    let scheduled = graph.least_makespan(&tasks, chip, rule, limits);
    let time = memories.into_iter().fold(scheduled, Time::max);
    Ok(LeastPass { time, exchanged, sent_to_experts })
}
