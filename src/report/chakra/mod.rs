//! A plan as Chakra execution traces (schema 1.0 of `MLCommons`), one file for each distinct rank, for
//! simulators of networks such as ASTRA-sim.
//!
//! Devices that share a layer, a sequence or a copy of the pipeline do the same as the first of
//! them, so one trace for each rank of a pipeline stands for all. A pass of a layer is one node of
//! computation and one for each of its exchanges; passes follow each other in the order of the
//! plan's schedule. A node waits for the one before it; gathers and scatters of shards wait for
//! the pass before theirs and are waited for at the end of their own.

mod wire;

use crate::model::Axis;
use crate::parallel::Grid;
use crate::parallel::zero::Zero;
use crate::plan::ExchangeFacts;
use crate::plan::LayerFacts;
use crate::plan::PassFacts;
use crate::plan::Plan;
use crate::plan::Recompute;
use crate::plan::Strategy;

use wire::Attribute;
use wire::Node;
use wire::NodeKind;

/// More nodes of a rank than this make a trace that no simulator opens.
pub const MOST_NODES: usize = 4_000_000;

/// A trace of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankTrace {
    /// The first device that does this: it names the file.
    pub device: u64,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Why a plan has no traces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrace {
    /// The layers are not known operator by operator.
    #[error("only plans of models have traces: a profile says nothing of operators")]
    NoLayers,
    /// There would be too many nodes.
    #[error("a rank has more than {MOST_NODES} nodes; a smaller batch would do")]
    TooMany,
}

/// The traces of a plan, one for each rank of a pipeline.
///
/// # Errors
/// That it is no plan of a model, or too large.
pub fn traces(plan: &Plan) -> Result<Vec<RankTrace>, NoTrace> {
    let training = plan.training.as_ref().ok_or(NoTrace::NoLayers)?;
    if plan.layers.is_empty() {
        return Err(NoTrace::NoLayers);
    }
    let strategy = training.strategy;
    let grid = Grid {
        tensor: strategy.tensor_parallel,
        context: strategy.context_parallel,
        data: strategy.data_parallel,
        pipeline: strategy.pipeline,
        expert_devices: plan.profile.expert_devices,
    };
    let ranks = usize::try_from(strategy.pipeline).map_err(|_| NoTrace::TooMany)?;
    (0..ranks)
        .map(|rank| Writer { plan, strategy, grid, rank, nodes: Vec::new() }.trace())
        .collect()
}

/// Writes the trace of one rank.
struct Writer<'a> {
    plan: &'a Plan,
    strategy: Strategy,
    grid: Grid,
    rank: usize,
    nodes: Vec<Node>,
}

impl Writer<'_> {
    fn trace(mut self) -> Result<RankTrace, NoTrace> {
        let (ranks, all) = (self.n_ranks(), self.micro_batches());
        for pass in self.strategy.schedule.passes(ranks, all, self.rank) {
            if pass.backward {
                self.backward(pass.stage, pass.micro_batch);
            } else {
                self.forward(pass.stage, pass.micro_batch);
            }
            if self.nodes.len() > MOST_NODES {
                return Err(NoTrace::TooMany);
            }
        }
        self.ending();
        let device = self.device(self.rank);
        let mut bytes = wire::metadata(&[
            Attribute::text("schema", "1.0.2-chakra.1.0.0"),
            Attribute::text("name", &self.plan.name),
            Attribute::number("device", device),
        ]);
        for node in &self.nodes {
            node.write(&mut bytes);
        }
        Ok(RankTrace { device, bytes })
    }

    fn n_ranks(&self) -> usize {
        usize::try_from(self.strategy.pipeline).unwrap_or(usize::MAX)
    }

    fn micro_batches(&self) -> u64 {
        self.plan.job.micro_batches_per_pipeline(self.strategy.data_parallel)
    }

    /// The first device of a rank.
    fn device(&self, rank: usize) -> u64 {
        rank as u64 * self.strategy.order.stride(&self.grid, Axis::Pipeline)
    }

    /// The devices of this one's group in an exchange; of data those of all replicas, of experts those
    /// of the grid that is laid over the devices of a rank.
    fn group(&self, exchange: &ExchangeFacts) -> Vec<u64> {
        let own = self.device(self.rank);
        let along = |n: u64, stride: u64, from: &[u64]| -> Vec<u64> {
            (0..n).flat_map(|at| from.iter().map(move |device| device + at * stride)).collect()
        };
        let of = |axis: Axis, from: &[u64]| {
            along(self.grid.degree(axis), self.strategy.order.stride(&self.grid, axis), from)
        };
        let Strategy { expert_parallel, expert_tensor, .. } = self.strategy;
        let n = exchange.devices;
        let mut devices = match Axis::ALL.into_iter().find(|axis| axis.name() == exchange.axis) {
            Some(Axis::Data) => of(Axis::Data, &of(Axis::Context, &[own])),
            Some(Axis::ExpertTensor) => along(n, 1, &[own]),
            Some(Axis::Expert | Axis::ExpertGroup) => {
                along(n, expert_tensor * (expert_parallel / n.max(1)).max(1), &[own])
            }
            Some(axis) => of(axis, &[own]),
            None => vec![own],
        };
        devices.sort_unstable();
        devices
    }

    /// A node that waits for those; answers its number.
    fn add(&mut self, node: Node) -> u64 {
        let id = self.nodes.len() as u64;
        self.nodes.push(Node { id, ..node });
        id
    }

    /// The last node, for the next one to wait for.
    fn last(&self) -> Vec<u64> {
        self.nodes.len().checked_sub(1).map(|last| last as u64).into_iter().collect()
    }

    fn layers(&self, stage: usize) -> &[usize] {
        self.plan.answer.stages.get(stage).map_or(&[], |stage| &stage.layers)
    }

    fn facts(&self, layer: usize) -> Option<&LayerFacts> {
        self.plan.layers.get(*self.plan.profile.sequence.get(layer)?)
    }

    fn forward(&mut self, stage: usize, micro_batch: u64) {
        self.arrive(stage, micro_batch, false);
        for layer in self.layers(stage).to_vec() {
            self.layer(layer, micro_batch, "forward");
        }
        self.leave(stage, micro_batch, false);
    }

    fn backward(&mut self, stage: usize, micro_batch: u64) {
        self.arrive(stage, micro_batch, true);
        let layers = self.layers(stage).to_vec();
        let repeated = self.repeated(stage);
        for (at, &layer) in layers.iter().enumerate().rev() {
            let before = layers[..at].iter().filter(|&&one| self.is_repeatable(one)).count();
            if self.is_repeatable(layer) && before < repeated {
                self.layer(layer, micro_batch, "forward again");
            }
            self.layer(layer, micro_batch, "backward");
        }
        self.leave(stage, micro_batch, true);
    }

    fn is_repeatable(&self, layer: usize) -> bool {
        self.plan.profile.layer(layer).repeatable
    }

    /// How many repeatable layers of a stage run their forward pass again.
    fn repeated(&self, stage: usize) -> usize {
        let last = self.plan.answer.stages.len().saturating_sub(1);
        match self.strategy.recompute {
            Recompute::Full => usize::MAX,
            Recompute::Stage if stage < last => usize::MAX,
            Recompute::None | Recompute::Stage => 0,
            Recompute::First(_) | Recompute::AsNeeded => {
                self.plan.answer.stages.get(stage).map_or(0, |stage| stage.repeated)
            }
        }
    }

    /// One pass of one layer.
    fn layer(&mut self, layer: usize, micro_batch: u64, what: &str) {
        let Some(facts) = self.facts(layer).cloned() else { return };
        let pass = if what == "backward" { &facts.backward } else { &facts.forward };
        let name = format!("{} {layer} {what} {micro_batch}", facts.kind);
        let before = self.last();
        let exchanges = pass.operators.iter().filter_map(|op| Some((op, op.exchange.as_ref()?)));
        let (beside, inside): (Vec<_>, Vec<_>) =
            exchanges.partition(|(_, exchange)| exchange.axis == Axis::Data.name());
        let mut pending = Vec::new();
        for (op, exchange) in beside {
            pending.extend(self.exchange(&format!("{name} {}", op.name), exchange, &before));
        }
        let mut after = before;
        for (op, exchange) in inside {
            let ids = self.exchange(&format!("{name} {}", op.name), exchange, &after);
            after = ids.last().map_or(after, |&id| vec![id]);
        }
        pending.extend(after);
        self.add(computed(&name, pass, &pending));
    }

    /// An exchange, as often as it is done in a row.
    fn exchange(&mut self, name: &str, exchange: &ExchangeFacts, after: &[u64]) -> Vec<u64> {
        let devices = self.group(exchange);
        let mut ids = Vec::new();
        let mut after = after.to_vec();
        for _ in 0..exchange.times {
            let node = if let Some(kind) = wire::collective(&exchange.kind) {
                Node {
                    kind: NodeKind::Collective,
                    attributes: vec![
                        Attribute::flag("is_cpu_op", false),
                        Attribute::number("comm_type", kind),
                        Attribute::number("comm_size", exchange.bytes),
                        Attribute::text("pg_name", &exchange.axis),
                        Attribute::numbers("comm_group", &devices),
                    ],
                    ..Node::new(name, &after)
                }
            } else {
                // A step of a ring: to the next and from the one before.
                let (to, from) = neighbours(&devices, self.device(self.rank));
                ids.push(self.message(name, (from, false), exchange.bytes, &after));
                let attributes = self.ends((to, true), exchange.bytes, name);
                Node { kind: NodeKind::Send, attributes, ..Node::new(name, &after) }
            };
            let id = self.add(node);
            ids.push(id);
            after = vec![id];
        }
        ids
    }

    /// What arrives from the rank that ran the stage before.
    fn arrive(&mut self, stage: usize, micro_batch: u64, backward: bool) {
        let last = self.plan.answer.stages.len().saturating_sub(1);
        let from = if backward { stage + 1 } else { stage.wrapping_sub(1) };
        if from > last {
            return;
        }
        let (size, after) = (self.sent(stage.min(from)), self.last());
        let name = tag(from, stage, micro_batch, backward);
        let other = self.device(from % self.n_ranks());
        self.message(&name, (other, false), size, &after);
    }

    /// What leaves for the rank that runs the next stage.
    fn leave(&mut self, stage: usize, micro_batch: u64, backward: bool) {
        let last = self.plan.answer.stages.len().saturating_sub(1);
        let to = if backward { stage.wrapping_sub(1) } else { stage + 1 };
        if to > last {
            return;
        }
        let (size, after) = (self.sent(stage.min(to)), self.last());
        let name = tag(stage, to, micro_batch, backward);
        let other = self.device(to % self.n_ranks());
        self.message(&name, (other, true), size, &after);
    }

    /// Bytes that cross from a stage to the next.
    fn sent(&self, stage: usize) -> u64 {
        let layers = self.layers(stage);
        let crosses = |from: usize, to: usize| layers.contains(&from) && !layers.contains(&to);
        let edges = self.plan.profile.edges.iter().filter(|edge| crosses(edge.from, edge.to));
        edges.map(crate::plan::Edge::sent).sum()
    }

    fn message(&mut self, name: &str, end: (u64, bool), size: u64, after: &[u64]) -> u64 {
        let attributes = self.ends(end, size, name);
        let kind = if end.1 { NodeKind::Send } else { NodeKind::Receive };
        self.add(Node { kind, attributes, ..Node::new(name, after) })
    }

    /// Who sends to whom, and how much.
    fn ends(&self, (other, sends): (u64, bool), size: u64, name: &str) -> Vec<Attribute> {
        let own = self.device(self.rank);
        let (from, to) = if sends { (own, other) } else { (other, own) };
        vec![
            Attribute::flag("is_cpu_op", false),
            Attribute::number("comm_src", from),
            Attribute::number("comm_dst", to),
            Attribute::number("comm_size", size),
            Attribute::text("comm_tag", name),
        ]
    }

    /// Gradients, step and new weights after the last pass.
    fn ending(&mut self) {
        let own = self.plan.answer.stages.iter().skip(self.rank).step_by(self.n_ranks());
        let layers = own.clone().flat_map(|stage| &stage.layers);
        let experts: u64 =
            layers.map(|&layer| self.plan.profile.layer(layer).expert_parameters).sum();
        let parameters: u64 = own.map(|stage| stage.parameters).sum();
        let dense = parameters.saturating_sub(experts);
        let per = self.plan.job.per_parameter;
        let replicas = self.grid.data * self.grid.context;
        let of_experts =
            self.grid.expert_devices.map_or(1, |owners| self.grid.rank_devices() / owners.max(1));
        let groups = [("dense", dense, replicas), ("expert", experts, of_experts)];
        let groups = groups.map(|(what, held, n)| (what, if n > 1 { held } else { 0 }, n));
        let zero = self.strategy.zero;
        let reduce = if zero == Zero::Nothing { "all_reduce" } else { "reduce_scatter" };
        for (what, held, n) in groups {
            if held > 0 && zero < Zero::Gradients {
                let bytes = held.saturating_mul(per.reduced());
                self.replicated(&format!("{what} gradients"), (reduce, bytes, n));
            }
        }
        let after = self.last();
        let step = self.plan.answer.ranks.get(self.rank).map_or(0, |rank| rank.after.step);
        self.add(Node {
            kind: NodeKind::Compute,
            duration_micros: micros(self.plan.units.time(step.into())),
            attributes: vec![Attribute::flag("is_cpu_op", false), Attribute::number("num_ops", 0)],
            ..Node::new("optimizer", &after)
        });
        for (what, held, n) in groups {
            if held > 0 && zero == Zero::State {
                let bytes = held.saturating_mul(per.weight);
                self.replicated(&format!("{what} weights"), ("all_gather", bytes, n));
            }
        }
    }

    /// An exchange among so many replicas after the last node.
    fn replicated(&mut self, name: &str, (kind, bytes, devices): (&str, u64, u64)) {
        let (axis, kind) = (Axis::Data.name().to_owned(), kind.to_owned());
        let exchange = ExchangeFacts { axis, kind, bytes, devices, times: 1, hidden_per_mille: 0 };
        let after = self.last();
        self.exchange(name, &exchange, &after);
    }
}

/// The computation of a pass of a layer.
fn computed(name: &str, pass: &PassFacts, after: &[u64]) -> Node {
    let operators = || pass.operators.iter().filter(|op| op.exchange.is_none());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let flops = operators().map(|op| op.flops).sum::<f64>() as u64;
    let bytes = operators().map(|op| op.hbm_bytes).fold(0, u64::saturating_add);
    let took: f64 = operators().map(|op| op.end_s - op.start_s).sum();
    Node {
        kind: NodeKind::Compute,
        duration_micros: micros(took.min(pass.time_s)),
        attributes: vec![
            Attribute::flag("is_cpu_op", false),
            Attribute::number("num_ops", flops),
            Attribute::number("tensor_size", bytes),
        ],
        ..Node::new(name, after)
    }
}

fn micros(seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let micros = (seconds * 1e6).round() as u64;
    micros
}

/// What a message between stages is called, the same at both ends.
fn tag(from: usize, to: usize, micro_batch: u64, backward: bool) -> String {
    let what = if backward { "gradients" } else { "activations" };
    format!("{what} {micro_batch} from stage {from} to {to}")
}

/// The next device of a ring, and the one before.
fn neighbours(devices: &[u64], own: u64) -> (u64, u64) {
    let n = devices.len().max(1);
    let at = devices.iter().position(|&device| device == own).unwrap_or(0);
    let of = |at: usize| devices.get(at % n).copied().unwrap_or(own);
    (of(at + 1), of(at + n - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::placement::example;

    #[test]
    fn a_plan_without_operators_has_no_traces() {
        assert_eq!(traces(&example(true)), Err(NoTrace::NoLayers));
    }

    #[test]
    fn a_ring_closes() {
        assert_eq!(neighbours(&[0, 4, 8], 0), (4, 8));
        assert_eq!(neighbours(&[0, 4, 8], 8), (0, 4));
        assert_eq!(neighbours(&[5], 5), (5, 5));
    }
}
