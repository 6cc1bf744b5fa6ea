//! Where the time of a batch goes, and how much of what is exchanged hides behind computation.

use crate::plan::Cost;
use crate::plan::LayerFacts;
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
    /// Waiting for the weights of the first layer in each pass, where they are gathered then.
    pub weights: u128,
    /// Waiting for what a neighbour sends.
    pub transfers: u128,
    /// Waiting for other ranks.
    pub bubble: u128,
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
        let [exposed, all] = in_layers(plan, placement).map(average);
        let to_experts = placement.pipeline.stages().flatten();
        let to_experts =
            to_experts.map(|&layer| u128::from(plan.profile.layer(layer).all_to_all)).sum();
        let bubble = cost.bubble();
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
            weights,
            transfers,
            bubble,
            gradients: Exchanged { exposed: after.exposed.into(), all: gradients },
            step: after.step.into(),
            gathering: Exchanged { exposed: after.gather.into(), all: gathering },
        }
    }

    /// All parts together.
    pub fn total(&self) -> u128 {
        let exposed = self.exchanges.exposed + self.gradients.exposed + self.gathering.exposed;
        let waits = self.weights + self.transfers + self.bubble;
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

/// Ticks of exchanges inside both passes of all layers for one micro-batch: exposed and all.
fn in_layers(plan: &Plan, placement: &Placement) -> [u128; 2] {
    let exposed: Vec<u64> = (0..plan.profile.kinds.len())
        .map(|kind| {
            let named = |facts: &&LayerFacts| facts.kind == plan.profile.kinds[kind].name;
            let facts = plan.layers.get(kind).filter(named);
            facts.map_or(0, |facts| alone(&facts.forward).saturating_add(alone(&facts.backward)))
        })
        .collect();
    let mut sums = [0_u128; 2];
    for &layer in placement.pipeline.stages().flatten() {
        let kind = plan.profile.sequence[layer];
        sums[0] += u128::from(exposed.get(kind).copied().unwrap_or(0));
        sums[1] += u128::from(plan.profile.layer(layer).collectives);
    }
    sums
}

/// Picoseconds of a pass in which nothing but the network works.
fn alone(pass: &PassFacts) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let ticks = |seconds: f64| (seconds * 1e12).round() as u64;
    let runs: Vec<(u64, u64, bool)> = pass
        .operators
        .iter()
        .map(|op| (ticks(op.start_s), ticks(op.end_s), op.core == "network"))
        .collect();
    let mut moments: Vec<u64> = runs.iter().flat_map(|run| [run.0, run.1]).collect();
    moments.sort_unstable();
    moments.dedup();
    let mut sum = 0_u64;
    for window in moments.windows(2) {
        let mut running = runs.iter().filter(|run| run.0 <= window[0] && window[1] <= run.1);
        let first = running.next();
        if first.is_some_and(|run| run.2) && running.all(|run| run.2) {
            sum = sum.saturating_add(window[1] - window[0]);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OpFacts;
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
            assert!(parts.bubble > 0 && parts.recompute > 0 && parts.step > 0, "{parts:?}");
        }
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
        assert_eq!(alone(&facts), 5_000);
        let mut plan = example(false);
        plan.layers = vec![LayerFacts {
            kind: "transformer".into(),
            count: 8,
            forward: facts.clone(),
            backward: pass(&[(0, 3, "network")]),
        }];
        let (parts, cost) = of(&plan);
        let layers = 4 * u128::from(cost.micro_batches);
        assert_eq!(parts.exchanges, Exchanged { exposed: layers * 8_000, all: layers * 300_000 });
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
