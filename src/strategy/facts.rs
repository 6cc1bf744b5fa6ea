//! A way to train told in full: plan, stages, schedules and mappings.

use super::Best;
use super::Chosen;
use super::Planner;
use super::Terms;
use super::Training;
use super::result::Breakdown;
use super::result::LayerCount;
use super::result::MemoryFacts;
use super::result::ModelResult;
use super::result::StageFacts;
use super::result::StrategyFacts;
use crate::estimate::Estimate;
use crate::estimate::OpCosts;
use crate::estimate::tensor_core;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::parallel::Setting;
use crate::parallel::shard;
use crate::plan::Answer;
use crate::plan::Cost;
use crate::plan::LayerFacts;
use crate::plan::MappingFacts;
use crate::plan::MatmulFacts;
use crate::plan::OpFacts;
use crate::plan::PassFacts;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::ScheduleProof;
use crate::plan::Training as PlanTraining;
use crate::plan::Units;
use crate::plan::cost;
use crate::profile::parts::PassParts;
use crate::profile::parts::parts;
use crate::profile::pass;
use crate::profile::pass::PassGraph;
use crate::profile::pass::ScheduledPass;
use crate::schedule::Limits;
use crate::units::Time;

impl Planner<'_> {
    /// A way to train in full: its plan, what it costs, and every schedule and mapping.
    pub fn result(&self, chip: &Accelerator, best: &Best) -> ModelResult {
        result(self, chip, best)
    }
}

/// What a way to train amounts to, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the name says what it is")]
pub struct Rates {
    pub sequences_per_s: f64,
    pub tokens_per_s: f64,
    pub mfu: f64,
    pub mfu_requested_devices: f64,
    pub energy_per_token_j: f64,
}

impl Rates {
    /// Those of a way to train on a chip of such a peak.
    pub fn of(
        terms: &Terms,
        training: &Training,
        peak_flops_per_second: u128,
        chosen: &Chosen,
    ) -> Self {
        let seconds = chosen.standing.time.seconds();
        let sequences = terms.global_batch as f64;
        let tokens = sequences * training.sequence as f64;
        let flops = training.flops_per_sequence.0 as f64 * sequences;
        let mfu = |devices: u64| flops / (devices as f64 * peak_flops_per_second as f64 * seconds);
        Self {
            sequences_per_s: sequences / seconds,
            tokens_per_s: tokens / seconds,
            mfu: mfu(chosen.devices),
            mfu_requested_devices: mfu(terms.cluster.devices),
            energy_per_token_j: chosen.standing.energy.joules() / tokens,
        }
    }
}

fn result(planner: &Planner, chip: &Accelerator, best: &Best) -> ModelResult {
    let training = planner.training;
    let division = &best.division;
    let share = &division.share;
    let costs = cost(&best.profile, &best.job, &best.found.placement);
    let passes: Vec<[Detail; 2]> = share
        .kinds
        .iter()
        .map(|kind| {
            [&kind.forward, &kind.backward]
                .map(|ops| Detail::new(planner, chip, &division.cluster, ops))
        })
        .collect();
    let layers = share.kinds.iter().enumerate().map(|(kind, layer)| {
        let [forward, backward] = &passes[kind];
        LayerFacts {
            kind: layer.name.clone(),
            count: share.sequence.iter().filter(|&&at| at == kind).count(),
            forward: forward.facts(planner, chip, &layer.forward),
            backward: backward.facts(planner, chip, &layer.backward),
        }
    });
    let peak = chip.peak_in(planner.terms.stack.precision);
    let rates = Rates::of(planner.terms, training, peak, &best.chosen);
    let plan = plan(planner, chip, best);
    ModelResult {
        model: training.name.clone(),
        time_per_batch_s: best.chosen.standing.time.seconds(),
        simulated_time_per_batch_s: plan.answer.simulated.map(|ticks| Time(ticks).seconds()),
        throughput_sequences_per_s: rates.sequences_per_s,
        tokens_per_s: rates.tokens_per_s,
        mfu: rates.mfu,
        mfu_requested_devices: rates.mfu_requested_devices,
        energy_per_batch_j: best.chosen.standing.energy.joules(),
        energy_per_token_j: rates.energy_per_token_j,
        average_power_w: best.chosen.average_power(),
        strategy: StrategyFacts {
            sentence: best.chosen.strategy.to_string(),
            devices_used: best.chosen.devices,
            degrees: best.chosen.strategy,
        },
        breakdown_s: breakdown(best, &costs, &passes),
        stages: stages(best, &costs),
        n_micro_batches: costs.micro_batches,
        layers: layers.collect(),
        plan,
    }
}

fn plan(planner: &Planner, chip: &Accelerator, best: &Best) -> Plan {
    let Planner { terms, training, .. } = *planner;
    Plan {
        schema: Plan::SCHEMA.into(),
        version: Plan::VERSION,
        name: training.name.clone(),
        units: Units::physical(),
        question: None,
        layers: Vec::new(),
        training: Some(PlanTraining {
            design: terms.design.clone(),
            global_batch: terms.global_batch,
            micro_batch: best.chosen.strategy.micro_batch,
            sequence: training.sequence,
            optimizer: terms.optimizer.name().into(),
            attention: terms.attention.name().into(),
            strategy: best.chosen.strategy,
            expert_load_per_mille: training.model.spec.experts.map(|e| e.load_per_mille),
            flops_per_sequence: training.flops_per_sequence.0,
            causal_flops_per_sequence: causal_flops_per_sequence(terms, training),
            peak_flops_per_second: u64::try_from(chip.peak_in(terms.stack.precision))
                .unwrap_or(u64::MAX),
            basis: terms.basis.clone(),
        }),
        job: best.job.clone(),
        profile: best.profile.clone(),
        answer: Answer::new(&best.profile, &best.job, &best.found.placement),
        proof: Proof::Optimal { space: Some(terms.space.clone()), open: best.open },
    }
}

/// Operations of training one sequence without what a causal mask hides; `None` where attention
/// computes all of it.
fn causal_flops_per_sequence(terms: &Terms, training: &Training) -> Option<u128> {
    let setting = Setting {
        sequence: training.sequence,
        attention: terms.attention,
        masked: terms.masked,
        ..Setting::ALONE
    };
    let (done, all) = shard(&training.model, setting).ok()?.training_flops();
    (done < all).then_some(done.0)
}

fn stages(best: &Best, costs: &Cost) -> Vec<StageFacts> {
    let stages = costs.stages.iter().zip(best.found.placement.pipeline.stages()).enumerate();
    stages
        .map(|(at, (stage, layers))| {
            let rank = at % costs.ranks.len().max(1);
            let memory = &costs.ranks[rank].memory;
            let mut counts: Vec<LayerCount> = Vec::new();
            for &layer in layers {
                let kind = &best.profile.layer(layer).name;
                match counts.last_mut().filter(|last| last.kind == *kind) {
                    Some(last) => last.count += 1,
                    None => counts.push(LayerCount { kind: kind.clone(), count: 1 }),
                }
            }
            let bytes = |size: u128| u64::try_from(size).unwrap_or(u64::MAX);
            StageFacts {
                rank,
                first_layer: layers.first().copied().unwrap_or(0),
                n_layers: layers.len(),
                n_repeated: stage.repeated,
                layers: counts,
                devices: stage.devices,
                forward_s: Time(stage.time.forward).seconds(),
                backward_s: Time(stage.time.backward).seconds(),
                load_s: Time(stage.time.load()).seconds(),
                memory_bytes: MemoryFacts {
                    weights: bytes(memory.weights),
                    gradients: bytes(memory.gradients),
                    optimizer_state: bytes(memory.optimizer_state),
                    activations: bytes(memory.activations),
                    gathered: bytes(memory.gathered),
                    working: bytes(memory.working),
                },
                memory_limit_bytes: best.job.memory,
            }
        })
        .collect()
}

/// Where the time of a batch goes, seen from its slowest rank: its work for every micro-batch by
/// what limits it, what it waits for, and what follows the last pass.
fn breakdown(best: &Best, costs: &Cost, passes: &[[Detail; 2]]) -> Breakdown {
    let placement = &best.found.placement;
    let n_ranks = costs.ranks.len();
    let load = |rank: &usize| -> u128 {
        let own = costs.stages.iter().skip(*rank).step_by(n_ranks);
        own.map(|stage| u128::from(stage.time.load())).sum()
    };
    let slowest = (0..n_ranks).max_by_key(|rank| (load(rank), std::cmp::Reverse(*rank)));
    let Some(rank) = slowest else { return Breakdown::default() };
    let rounds = costs.micro_batches as f64;
    let mut parts = Breakdown::default();
    let stages = placement.pipeline.stages().enumerate().skip(rank).step_by(n_ranks);
    for (at, layers) in stages {
        let stage = &costs.stages[at];
        let last = at + 1 == costs.stages.len();
        let mut left = stage.repeated;
        for &layer in layers {
            let again = match placement.recompute {
                Recompute::None => false,
                Recompute::Full => true,
                Recompute::Stage => !last,
                Recompute::First(_) | Recompute::AsNeeded => {
                    let repeats = left > 0 && best.profile.layer(layer).repeatable;
                    left -= usize::from(repeats);
                    repeats
                }
            };
            let [forward, backward] = &passes[best.profile.sequence[layer]];
            parts.add(&forward.parts, rounds * if again { 2.0 } else { 1.0 });
            parts.add(&backward.parts, rounds);
        }
        parts.pipeline_transfers += rounds * Time(stage.transfer).seconds();
        parts.weight_gathering += rounds * Time(stage.waits_for_weights).seconds();
    }
    let after = costs.after_passes(&best.job);
    parts.gradient_exchange = Time(after.exposed).seconds();
    parts.optimizer = Time(after.step).seconds();
    parts.weight_gathering += Time(after.gather).seconds();
    // What is left is waiting: every other part is counted exactly once above.
    let total = best.chosen.standing.time.seconds();
    parts.bubble = (total - parts.total()).max(0.0);
    parts
}

/// One pass with its schedule and where its time goes.
struct Detail {
    costs: Vec<OpCosts>,
    pass: ScheduledPass,
    parts: PassParts,
}

impl Detail {
    fn new(planner: &Planner, chip: &Accelerator, cluster: &Cluster, ops: &Dag<Op>) -> Self {
        let costs = pass::costs(ops, chip, cluster, planner.table)
            .expect("operators of an evaluated design can be timed");
        let rule = planner.terms.rule;
        let pass = PassGraph::new(ops).schedule(&costs, chip, rule, &Limits::DEFAULT);
        let parts = parts(ops, &costs, &pass);
        Self { costs, pass, parts }
    }

    fn facts(&self, planner: &Planner, chip: &Accelerator, ops: &Dag<Op>) -> PassFacts {
        let total = &self.pass.total;
        let operators = ops.ids().map(|id| {
            let run = self.pass.schedule.runs[id.index()];
            let cost = &self.costs[id.index()];
            let estimate = if run.spread { &cost.spread } else { &cost.alone };
            let op = ops.node(id);
            OpFacts {
                name: op.name.clone(),
                core: op.core().name().into(),
                start_s: Time(run.start).seconds(),
                end_s: Time(self.pass.schedule.end(&self.pass.problem, id)).seconds(),
                spread: run.spread,
                cores: [run.tensor, run.vector].into_iter().flatten().collect(),
                ..op_facts(op, estimate, run.spread, planner, chip)
            }
        });
        PassFacts {
            time_s: total.time.seconds(),
            makespan_s: total.makespan.seconds(),
            hbm_s: total.hbm.seconds(),
            glb_s: total.glb.seconds(),
            proof: ScheduleProof {
                kind: total.proof.kind.name().into(),
                lower_bound_s: Time(total.proof.lower_bound).seconds(),
                gap: total.proof.gap(total.time.0),
            },
            operators: operators.collect(),
        }
    }
}

/// What an operator is and costs; when it runs is for the caller to say.
fn op_facts(
    op: &Op,
    estimate: &Estimate,
    spread: bool,
    planner: &Planner,
    chip: &Accelerator,
) -> OpFacts {
    let mut facts = OpFacts {
        name: String::new(),
        core: String::new(),
        start_s: 0.0,
        end_s: 0.0,
        spread,
        cores: Vec::new(),
        flops: op.flops().0 as f64,
        hbm_bytes: estimate.hbm.0,
        energy_j: estimate.energy.joules(),
        limit: estimate.limit.name().into(),
        matmul: None,
        mapping: None,
        exchange: match &op.work {
            Work::Collective(exchange) => Some(exchange.into()),
            _ => None,
        },
    };
    if let Work::Matmul { matmul, homes, numbers, .. } = &op.work {
        facts.matmul = Some(MatmulFacts { b: matmul.b, m: matmul.m, k: matmul.k, n: matmul.n });
        let spec = chip.tensor_in(*numbers, if spread { Use::Spread } else { Use::Alone });
        let slack = planner.terms.options.energy_slack;
        let mut scratch = tensor_core::Scratch::default();
        facts.mapping = tensor_core::best(matmul, *homes, &spec, slack, &mut scratch)
            .map(|(mapping, _)| MappingFacts::from(&mapping));
    }
    facts
}
