//! Where the time of a batch goes, and how much of what is exchanged hides behind computation.

use crate::model::Axis;
use crate::plan::Cost;
use crate::plan::LayerFacts;
use crate::plan::OpFacts;
use crate::plan::PassFacts;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageCost;
use crate::plan::StageRules;

/// Ticks of an exchange: those that are waited for, and all that it takes on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// What nothing hides.
    pub exposed: u128,
    /// All of it.
    pub all: u128,
}

/// The time of a batch by what the average rank spends it on: until the last backward pass of all
/// ranks, and what follows it. Of exchanges the exposed part counts; then all parts sum to the
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeParts {
    /// Both passes of every layer; where it is not known how much of their exchanges is exposed,
    /// with these.
    pub layers: u128,
    /// Forward passes of layers that run again, with their exchanges.
    pub recompute: u128,
    /// Exchanges inside both passes of layers; `exposed` is 0 where it is not known.
    pub exchanges: Exchanged,
    /// Of these, exposed or not, rows sent to their experts and back.
    pub all_to_all: u128,
    /// The same along each axis, in the order of [`Axis::ALL`]; nothing where that is not known.
    pub by_axis: [Exchanged; 7],
    /// Waiting for the weights of the first layer in each pass, where they are gathered then.
    pub weights: u128,
    /// Waiting for what a neighbour sends.
    pub transfers: u128,
    /// Waiting for the first micro-batches to arrive and the last ones to leave, where ranks work
    /// equally long.
    pub fill_and_drain: u128,
    /// Waiting for ranks that work longer than the average.
    pub imbalance: u128,
    /// The exchange of gradients after the last pass.
    pub gradients: Exchanged,
    /// The optimizer's step.
    pub step: u128,
    /// The gathering of new weights.
    pub gathering: Exchanged,
}

impl TimeParts {
    /// Those of a plan.
    pub fn of(plan: &Plan, placement: &Placement, cost: &Cost) -> Self {
        let ranks = cost.ranks.len().max(1) as u128;
        let average =
            |per_micro_batch: u128| u128::from(cost.micro_batches) * per_micro_batch / ranks;
        let sum = |of: fn(&StageCost) -> u64| -> u128 {
            average(cost.stages.iter().map(|stage| u128::from(of(stage))).sum())
        };
        let (transfers, weights) = (sum(|s| s.transfer), sum(|s| s.waits_for_weights));
        let recompute = average(repeated(plan, placement, cost));
        let to_experts = placement.pipeline.stages().flatten();
        let to_experts =
            to_experts.map(|&layer| u128::from(plan.profile.layer(layer).all_to_all)).sum();
        let by_axis = in_layers(plan, placement);
        let by_axis = by_axis.map(|Exchanged { exposed, all }| Exchanged {
            exposed: average(exposed),
            all: average(all),
        });
        let sum = |of: fn(&Exchanged) -> u128| by_axis.iter().map(of).sum();
        let exposed: u128 = sum(|axis| axis.exposed);
        let unknown = average(collectives(plan, placement));
        let all = if plan.layers.is_empty() { unknown } else { sum(|axis| axis.all) };
        let bubble = cost.bubble();
        let imbalance = imbalance(cost).min(bubble);
        let passes = cost.passes_end().saturating_sub(bubble);
        let after = cost.after_passes(&plan.job);
        let most = |ticks: &mut dyn Iterator<Item = u64>| u128::from(ticks.max().unwrap_or(0));
        let gradients = most(&mut cost.ranks.iter().map(|rank| rank.exchange));
        let gathering = most(&mut cost.ranks.iter().map(|rank| rank.gathering));
        Self {
            layers: passes.saturating_sub(transfers + weights + recompute + exposed),
            recompute,
            exchanges: Exchanged { exposed, all },
            all_to_all: average(to_experts),
            by_axis,
            weights,
            transfers,
            fill_and_drain: bubble - imbalance,
            imbalance,
            gradients: Exchanged { exposed: after.exposed.into(), all: gradients },
            step: after.step.into(),
            gathering: Exchanged { exposed: after.gather.into(), all: gathering },
        }
    }

    /// Waiting for other ranks, for either reason.
    pub fn bubble(&self) -> u128 {
        self.fill_and_drain + self.imbalance
    }

    /// All parts together.
    pub fn total(&self) -> u128 {
        let exposed = self.exchanges.exposed + self.gradients.exposed + self.gathering.exposed;
        let waits = self.weights + self.transfers + self.bubble();
        self.layers + self.recompute + exposed + waits + self.step
    }
}

/// Ticks for one micro-batch, of all stages, that the same placement would not take if every
/// activation were kept.
fn repeated(plan: &Plan, placement: &Placement, cost: &Cost) -> u128 {
    let shape = Shape { recompute: Recompute::None, ..placement.shape() };
    let rules = StageRules::new(&plan.profile, &plan.job, shape);
    let own = |stage: &StageCost| u128::from(stage.time.load().saturating_sub(stage.transfer));
    let stages = placement.pipeline.stages().enumerate().zip(&cost.stages);
    let more = stages
        .map(|((at, layers), stage)| own(stage).saturating_sub(own(&rules.stage(at, layers))));
    more.sum()
}

/// Ticks by which all micro-batches of the rank that works longest exceed those of the average rank.
fn imbalance(cost: &Cost) -> u128 {
    let ranks = cost.ranks.len().max(1);
    let mut loads = vec![0_u128; ranks];
    for (at, stage) in cost.stages.iter().enumerate() {
        loads[at % ranks] += u128::from(stage.time.load());
    }
    let longest = loads.into_iter().max().unwrap_or(0);
    let micro_batches = u128::from(cost.micro_batches);
    let average = micro_batches * cost.total_load / ranks as u128;
    (micro_batches * longest).saturating_sub(average)
}

/// Ticks of exchanges inside both passes of all layers for one micro-batch along each axis.
fn in_layers(plan: &Plan, placement: &Placement) -> [Exchanged; 7] {
    let of_kind: Vec<[Exchanged; 7]> = (0..plan.profile.kinds.len())
        .map(|kind| {
            let named = |facts: &&LayerFacts| facts.kind == plan.profile.kinds[kind].name;
            let facts = plan.layers.get(kind).filter(named);
            facts.map_or_else(Default::default, |facts| {
                let [forward, backward] = [&facts.forward, &facts.backward].map(exchanged);
                std::array::from_fn(|axis| Exchanged {
                    exposed: forward[axis].exposed + backward[axis].exposed,
                    all: forward[axis].all + backward[axis].all,
                })
            })
        })
        .collect();
    let mut sums = [Exchanged::default(); 7];
    for &layer in placement.pipeline.stages().flatten() {
        let kind = plan.profile.sequence[layer];
        for (sum, one) in sums.iter_mut().zip(of_kind.get(kind).into_iter().flatten()) {
            sum.exposed += one.exposed;
            sum.all += one.all;
        }
    }
    sums
}

/// Ticks of exchanges that layers are scheduled with for one micro-batch, hidden or not.
fn collectives(plan: &Plan, placement: &Placement) -> u128 {
    let layers = placement.pipeline.stages().flatten();
    layers.map(|&layer| u128::from(plan.profile.layer(layer).collectives)).sum()
}

/// Picoseconds of a pass's exchanges along each axis: those in which nothing but the network
/// works, and all, with what runs behind kernels whatever the schedule.
fn exchanged(pass: &PassFacts) -> [Exchanged; 7] {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let ticks = |seconds: f64| (seconds * 1e12).round() as u64;
    let runs: Vec<(u64, u64, Option<usize>)> =
        pass.operators.iter().map(|op| (ticks(op.start_s), ticks(op.end_s), axis(op))).collect();
    let mut sums = [Exchanged::default(); 7];
    for (&(start, end, axis), op) in runs.iter().zip(&pass.operators) {
        let hidden = op.exchange.as_ref().map_or(0, |exchange| exchange.hidden_per_mille);
        let (took, left) = (u128::from(end - start), u128::from(1000_u16.saturating_sub(hidden)));
        if let Some(axis) = axis {
            sums[axis].all += (took * 1000).checked_div(left).unwrap_or(took);
        }
    }
    let mut moments: Vec<u64> = runs.iter().flat_map(|run| [run.0, run.1]).collect();
    moments.sort_unstable();
    moments.dedup();
    for window in moments.windows(2) {
        let mut running = runs.iter().filter(|run| run.0 <= window[0] && window[1] <= run.1);
        let first = running.next().and_then(|run| run.2);
        if let (Some(axis), true) = (first, running.all(|run| run.2.is_some())) {
            sums[axis].exposed += u128::from(window[1] - window[0]);
        }
    }
    sums
}

/// The place of an exchange's axis in [`Axis::ALL`]; `None` for other work.
fn axis(op: &OpFacts) -> Option<usize> {
    let name = op.exchange.as_ref().map(|exchange| exchange.axis.as_str());
    let known = name.and_then(|name| Axis::ALL.iter().position(|axis| axis.name() == name));
    known.or_else(|| (op.core == "network").then_some(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ExchangeFacts;
    use crate::plan::ScheduleProof;
    use crate::plan::cost;
    use crate::report::placement::example;

    fn of(plan: &Plan) -> (TimeParts, Cost) {
        let placement = plan.answer.placement(plan.profile.n_layers()).unwrap();
        let cost = cost(&plan.profile, &plan.job, &placement);
        (TimeParts::of(plan, &placement, &cost), cost)
    }

    fn pass(runs: &[(u32, u32, &str)]) -> PassFacts {
        let operators = runs.iter().map(|&(start, end, core)| OpFacts {
            name: "op".into(),
            core: core.into(),
            start_s: f64::from(start) * 1e-9,
            end_s: f64::from(end) * 1e-9,
            spread: true,
            cores: Vec::new(),
            flops: 0.0,
            hbm_bytes: 0,
            energy_j: 0.0,
            limit: "compute".into(),
            matmul: None,
            mapping: None,
            exchange: (core == "network").then(|| ExchangeFacts {
                axis: "context".into(),
                kind: "all_gather".into(),
                bytes: 8,
                devices: 2,
                times: 1,
                hidden_per_mille: 500,
            }),
        });
        let proof = ScheduleProof { kind: "exact".into(), lower_bound_s: 0.0, gap: 0.0 };
        let operators = operators.collect();
        PassFacts { time_s: 0.0, makespan_s: 0.0, hbm_s: 0.0, glb_s: 0.0, proof, operators }
    }

    #[test]
    fn parts_sum_to_the_time_of_the_batch() {
        for plan in [example(false), example(true)] {
            let (parts, cost) = of(&plan);
            assert_eq!(parts.total(), cost.time_per_batch);
            assert!(parts.bubble() > 0 && parts.recompute > 0 && parts.step > 0, "{parts:?}");
        }
    }

    #[test]
    fn ranks_that_work_equally_long_wait_only_to_fill_and_drain() {
        let mut plan = example(false);
        plan.profile.edges.iter_mut().for_each(|edge| edge.size = 0);
        let (even, cost) = of(&plan);
        assert_eq!((even.imbalance, even.fill_and_drain), (0, cost.bubble()));
        plan.answer.stages[0].layers = vec![0, 1, 2, 3, 4];
        plan.answer.stages[1].layers = vec![5, 6, 7];
        let (uneven, cost) = of(&plan);
        let [longer, shorter] = [0, 1].map(|at| u128::from(cost.stages[at].time.load()));
        assert_eq!(uneven.imbalance, 16 * (longer - shorter) / 2);
        assert_eq!(uneven.bubble(), cost.bubble());
    }

    #[test]
    fn what_is_repeated_is_one_forward_pass_of_each_repeated_layer() {
        let (parts, cost) = of(&example(false));
        // One layer of each rank, a million ticks, in each of 16 micro-batches.
        assert_eq!(cost.micro_batches, 16);
        assert_eq!(parts.recompute, 16_000_000);
    }

    #[test]
    fn of_exchanges_in_layers_what_runs_beside_others_is_hidden() {
        let facts = pass(&[(0, 10, "tensor"), (5, 15, "network"), (15, 20, "vector")]);
        let context = Axis::ALL.iter().position(|&axis| axis == Axis::Context).unwrap();
        assert_eq!(exchanged(&facts)[context], Exchanged { exposed: 5_000, all: 20_000 });
        let mut plan = example(false);
        plan.layers = vec![LayerFacts {
            kind: "transformer".into(),
            count: 8,
            forward: facts.clone(),
            backward: pass(&[(0, 3, "network")]),
        }];
        let (parts, cost) = of(&plan);
        let layers = 4 * u128::from(cost.micro_batches);
        assert_eq!(parts.exchanges, Exchanged { exposed: layers * 8_000, all: layers * 26_000 });
        assert_eq!(parts.by_axis[context], parts.exchanges);
        assert_eq!(parts.total(), cost.time_per_batch);
    }

    #[test]
    fn no_more_of_an_exchange_is_exposed_than_there_is() {
        for plan in [example(false), example(true)] {
            let (parts, _) = of(&plan);
            for Exchanged { exposed, all } in [parts.exchanges, parts.gradients, parts.gathering] {
                assert!(exposed <= all, "{parts:?}");
            }
        }
    }
}
