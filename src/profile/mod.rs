//! How long one layer takes on one chip.
//!
//! In: one device's [`Share`] of a model, an accelerator, the cluster that it stands in. Out: the
//! time of every kind of layer forward and backward ([`LayerPasses`]), and the [`Profile`] and
//! [`Job`] that are placed.
//!
//! [`pass`] schedules one pass and lets its operators share the memories ([`memory`]); [`parts`]
//! says where its time goes; [`corner`] what it takes at the least on every smaller chip. Not here:
//! which layers share a stage (see `placement`).

mod corner;
mod memory;
pub mod parts;
pub mod pass;

pub use corner::LeastBy;

use std::ops::Range;

use crate::estimate::Closeness;
use crate::estimate::EstimateTable;
use crate::estimate::OpCosts;
use crate::estimate::TooLarge;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::model::Optimizer;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::parallel::Share;
use crate::plan::Edge;
use crate::plan::EndRules;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Links;
use crate::plan::PerParameter;
use crate::plan::Pipeline;
use crate::plan::Profile;
use crate::plan::TimeModel;
use crate::schedule::Limits;
use crate::schedule::Rule;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;
use pass::PassGraph;
use pass::PassTime;

/// The graphs of a share's layers, made ready once for any number of accelerators.
#[derive(Clone, Debug)]
pub struct LayerGraphs {
    kinds: Vec<[PassGraph; 2]>,
}

/// Both passes of one kind of layer on an accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerPasses {
    /// From input to loss.
    pub forward: PassTime,
    /// From loss to gradients.
    pub backward: PassTime,
    /// What the exchanges in both take on the network, beside computation or not: forward,
    /// backward.
    pub collectives: [Time; 2],
    /// Of these, what it takes to send rows to their experts and back.
    pub all_to_all: Time,
}

/// How long both passes of a kind of layer take, without why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassTimes {
    /// From input to loss.
    pub forward: Time,
    /// From loss to gradients.
    pub backward: Time,
    /// What the exchanges in both take on the network, forward and backward.
    pub collectives: [Time; 2],
    /// Of these, what it takes to send rows to their experts and back.
    pub all_to_all: Time,
}

impl LayerPasses {
    /// The times alone.
    pub fn times(&self) -> PassTimes {
        PassTimes {
            forward: self.forward.time,
            backward: self.backward.time,
            collectives: self.collectives,
            all_to_all: self.all_to_all,
        }
    }
}

impl LayerGraphs {
    /// Prepares every kind of layer.
    pub fn new(share: &Share) -> Self {
        let both = |layer: &crate::parallel::LayerShare| {
            [PassGraph::new(&layer.forward), PassGraph::new(&layer.backward)]
        };
        Self { kinds: share.kinds.iter().map(both).collect() }
    }

    /// How long every kind of layer of the same `share` takes.
    pub fn passes(
        &self,
        share: &Share,
        on: (&Accelerator, &Cluster),
        table: &EstimateTable,
        rule: Rule,
    ) -> Result<Vec<LayerPasses>, TooLarge> {
        self.passes_within(share, on, (table, rule), &Limits::DEFAULT)
    }

    /// The same where searches for schedules give up at `limits`.
    pub fn passes_within(
        &self,
        share: &Share,
        (chip, cluster): (&Accelerator, &Cluster),
        (table, rule): (&EstimateTable, Rule),
        limits: &Limits,
    ) -> Result<Vec<LayerPasses>, TooLarge> {
        let kinds = share.kinds.iter().zip(&self.kinds);
        let measured = kinds.map(|(layer, [forward, backward])| {
            let costs = |ops: &Dag<Op>| pass::costs(ops, chip, cluster, table);
            let (there, back) = (costs(&layer.forward)?, costs(&layer.backward)?);
            let time = |graph: &PassGraph, costs: &[OpCosts]| graph.time(costs, chip, rule, limits);
            Ok(LayerPasses {
                forward: time(forward, &there),
                backward: time(backward, &back),
                collectives: [exchanged(&layer.forward, &there), exchanged(&layer.backward, &back)],
                all_to_all: sent_to_experts(&layer.forward, &there)
                    + sent_to_experts(&layer.backward, &back),
            })
        });
        measured.collect()
    }
}

impl LayerGraphs {
    /// What the passes of every kind of layer of the same `share` take at the least on every chip that has no
    /// more of any proved knob than this one.
    pub fn least_passes(
        &self,
        share: &Share,
        on: (&Accelerator, &Cluster),
        by: LeastBy,
    ) -> Result<Vec<PassTimes>, TooLarge> {
        let kinds = share.kinds.iter().zip(&self.kinds);
        kinds.map(|(layer, graphs)| corner::least_times(layer, graphs, on, by)).collect()
    }
}

fn exchanged(ops: &Dag<Op>, costs: &[OpCosts]) -> Time {
    let on_the_network = ops.nodes().iter().zip(costs);
    let on_the_network = on_the_network.filter(|(op, _)| op.core() == CoreKind::Network);
    on_the_network.map(|(_, cost)| cost.alone.time).sum()
}

fn sent_to_experts(ops: &Dag<Op>, costs: &[OpCosts]) -> Time {
    let each = ops.nodes().iter().zip(costs).filter(|(op, _)| op.sends_to_experts());
    each.map(|(_, cost)| cost.alone.time).sum()
}

/// What both passes of every kind of layer of a `share` take of energy at the least, however long they last, on every
/// chip that has no more of any proved knob than this one and whose parts take no less energy.
pub fn least_energies(
    share: &Share,
    on: (&Accelerator, &Cluster),
    table: &EstimateTable,
) -> Result<Vec<[Energy; 2]>, TooLarge> {
    share.kinds.iter().map(|layer| corner::least_energies(layer, on, table)).collect()
}

/// The profile of `share` where its kinds of layer take `passes`.
pub fn profile(share: &Share, passes: &[LayerPasses], time_model: TimeModel) -> Profile {
    timed(share, passes.iter().map(LayerPasses::times), time_model)
}

/// The profile of `share` where its kinds of layer take these times.
pub fn timed(
    share: &Share,
    times: impl IntoIterator<Item = PassTimes>,
    time_model: TimeModel,
) -> Profile {
    let mut profile = untimed(share, time_model);
    for (kind, passes) in profile.kinds.iter_mut().zip(times) {
        kind.forward = passes.forward.0;
        kind.backward = passes.backward.0;
        kind.collectives = passes.collectives[0].0 + passes.collectives[1].0;
        kind.backward_collectives = passes.collectives[1].0;
        kind.all_to_all = passes.all_to_all.0;
    }
    profile
}

/// The same where passes take no time: what memory alone asks. The published time model knows
/// nothing of what a running pass holds for a moment.
pub fn untimed(share: &Share, time_model: TimeModel) -> Profile {
    let published = time_model == TimeModel::Published;
    let kinds = share.kinds.iter().map(|layer| LayerProfile {
        name: layer.name.clone(),
        forward: 0,
        backward: 0,
        parameters: layer.parameters,
        expert_parameters: layer.expert_parameters,
        activations: layer.kept.0 - if published { 0 } else { layer.passing.0 },
        tensor_parallel: layer.tensor_parallel,
        collectives: 0,
        backward_collectives: 0,
        all_to_all: 0,
        working: if published { 0 } else { layer.working.0 },
        held_on: if published { 0 } else { layer.held_on(share.setting.stack).0 },
        // The first layer reads ids, the last ends in the loss: what stands between can be repeated
        // from its input.
        repeatable: layer.input > Bytes::ZERO && layer.output > Bytes::ZERO,
    });
    let sequence = share.sequence.clone();
    let parts = share.setting.parts_of_a_send();
    let edges = (1..sequence.len()).map(|to| {
        let size = share.kinds[sequence[to]].input.0;
        let part = (parts > 1).then(|| size.div_ceil(parts));
        Edge { part, ..Edge::new(to - 1, to, size) }
    });
    Profile {
        width: share.setting.tensor_parallel,
        context: share.setting.context,
        expert_devices: share.expert_devices(),
        kinds: kinds.collect(),
        ids: ids(&sequence),
        edges: edges.collect(),
        tied: share.tied.map_or(0, |tied| tied.parameters),
        sequence,
    }
}

/// The repeated layers count from 0; what comes before them is below, what comes after above.
fn ids(sequence: &[usize]) -> Vec<i64> {
    let before = repeated(sequence).map_or(0, |layers| layers.start);
    let before = i64::try_from(before).unwrap_or(0);
    (0..).take(sequence.len()).map(|place: i64| place - before).collect()
}

/// The layers that are repeated, of one kind or of several in turn: those between the first that
/// occurs again and the last that does, or those of the first kind where none does.
fn repeated(sequence: &[usize]) -> Option<Range<usize>> {
    let occurs_again =
        |kind: &usize| sequence.iter().filter(|&other| other == kind).take(2).count() > 1;
    let first = sequence.iter().position(occurs_again);
    if let (Some(first), Some(last)) = (first, sequence.iter().rposition(occurs_again)) {
        return Some(first..last + 1);
    }
    let least = sequence.iter().min()?;
    let at = sequence.iter().position(|kind| kind == least)?;
    Some(at..at + 1)
}

/// Stage i of p holds the repeated layers from ⌊i·l/p⌋ to ⌊(i+1)·l/p⌋; what comes before them is
/// in the first stage, what comes after in the last.
pub fn even_cut(sequence: &[usize], n_stages: usize) -> Option<Pipeline> {
    let repeated = repeated(sequence)?;
    let (first, n_layers) = (repeated.start, repeated.len());
    if n_stages == 0 || n_stages > n_layers {
        return None;
    }
    let inner = (1..n_stages).map(|stage| first + stage * n_layers / n_stages);
    Pipeline::of_chain(sequence.len(), inner.chain([sequence.len()]).collect())
}

/// The optimizer's step over 2³⁰ parameters: it is timed once, over so many that rounding is nothing.
fn step_of_gibi(chip: &Accelerator, optimizer: Optimizer) -> Op {
    optimizer.step_by(chip.efficiency().kernels, 1 << 30)
}

/// Ticks of that step at the least on every chip that has no more of any proved knob.
pub fn least_step_per_gibi(
    (chip, cluster): (&Accelerator, &Cluster),
    optimizer: Optimizer,
    table: &EstimateTable,
) -> Result<u64, TooLarge> {
    let step = step_of_gibi(chip, optimizer);
    Ok(table.least(&step, chip, cluster, (Use::Spread, Closeness::Together))?.time.0)
}

/// What is asked of a placement on a cluster of such accelerators.
pub fn job(
    (chip, cluster): (&Accelerator, &Cluster),
    optimizer: Optimizer,
    micro_batches: u64,
    time_model: TimeModel,
    table: &EstimateTable,
) -> Result<Job, TooLarge> {
    let step = step_of_gibi(chip, optimizer);
    let step = table.estimate(&step, chip, cluster, Use::Spread)?;
    Ok(Job {
        micro_batches,
        devices: cluster.devices,
        memory: chip.design().hbm.0,
        installed: chip.design().hbm.0,
        links: Links::Network(cluster.network),
        per_parameter: PerParameter {
            weight: optimizer.weight().0,
            gradient: optimizer.gradient().0,
            exchanged: chip.efficiency().gradient_bytes.map(u64::from),
            state: optimizer.state().0,
            step_per_gibi: step.time.0,
        },
        time_model,
        ends: EndRules::PLAIN,
    })
}
