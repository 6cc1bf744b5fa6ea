//! A design in full: the best way to train each model on it, with plans, schedules and mappings.

use super::AreaFacts;
use super::Breakdown;
use super::DesignFacts;
use super::Entry;
use super::LayerCount;
use super::LayerFacts;
use super::MappingFacts;
use super::MatmulFacts;
use super::MemoryFacts;
use super::ModelResult;
use super::OpFacts;
use super::PassFacts;
use super::ScheduleProof;
use super::StageFacts;
use super::StrategyFacts;
use super::evaluate::Best;
use super::evaluate::Evaluator;
use super::objective::Certainty;
use super::objective::Judge;
use super::pass_parts;
use super::sentences;
use crate::estimate::Estimate;
use crate::estimate::OpCosts;
use crate::estimate::tensor_core;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::plan::Answer;
use crate::plan::Cost;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::Training;
use crate::plan::Units;
use crate::plan::cost;
use crate::schedule::Limits;
use crate::schedule::layer;
use crate::schedule::layer::PassGraph;
use crate::schedule::layer::ScheduledPass;
use crate::units::Time;

/// A design's full entry; `best` holds one way to train for each model.
pub fn entry(
    evaluator: &Evaluator,
    judge: &Judge,
    chip: &Accelerator,
    index: Option<usize>,
    name: Option<&str>,
    best: &[Best],
) -> Entry {
    let standings: Vec<_> = best.iter().map(|best| best.chosen.standing).collect();
    let value = judge.merit(&standings, chip.total_area(), Certainty::Fact).value;
    let results = best.iter().enumerate().map(|(model, best)| result(evaluator, model, chip, best));
    Entry {
        design: design_facts(chip, index, name),
        value: judge.figure(value),
        results: results.collect(),
    }
}

fn design_facts(chip: &Accelerator, index: Option<usize>, name: Option<&str>) -> DesignFacts {
    let design = chip.design();
    let area = chip.area();
    let um2 = |area: crate::units::Area| area.square_micrometres();
    DesignFacts {
        index,
        name: name.map(str::to_owned),
        tensor_cores: design.tensor_cores,
        width: design.width,
        depth: design.depth,
        vector_cores: design.vector_cores,
        vector_width: design.vector_width,
        glb_bytes: design.glb.0,
        hbm_bytes: design.hbm.0,
        local_tensor_bytes: design.local.0,
        local_vector_bytes: design.vector_local.0,
        clock_hz: chip.clock().as_hertz(),
        peak_flops_per_s: chip.peak_flops_per_second() as f64,
        hbm_bytes_per_s: chip.hbm_bandwidth().as_bytes_per_second(),
        glb_bytes_per_cycle: chip.tensor(Use::Spread).glb_port.read,
        area_um2: um2(chip.total_area()),
        area: AreaFacts {
            tensor_cores_um2: um2(area.arrays),
            vector_cores_um2: um2(area.lanes),
            tensor_local_um2: um2(area.tensor_buffers),
            vector_local_um2: um2(area.vector_buffers),
            glb_um2: um2(area.global_buffer),
        },
    }
}

fn result(evaluator: &Evaluator, model: usize, chip: &Accelerator, best: &Best) -> ModelResult {
    let setup = evaluator.setup;
    let training = &setup.trainings[model];
    let share = &training.divisions[best.division].share;
    let costs = cost(&best.profile, &best.job, &best.found.placement);
    let passes: Vec<[Detail; 2]> = share
        .kinds
        .iter()
        .map(|kind| [&kind.forward, &kind.backward].map(|ops| Detail::new(evaluator, chip, ops)))
        .collect();
    let layers = share.kinds.iter().enumerate().map(|(kind, layer)| {
        let [forward, backward] = &passes[kind];
        LayerFacts {
            kind: layer.name.clone(),
            count: share.sequence.iter().filter(|&&at| at == kind).count(),
            forward: forward.facts(evaluator, chip, &layer.forward),
            backward: backward.facts(evaluator, chip, &layer.backward),
        }
    });
    let rates = setup.rates(model, chip.peak_flops_per_second(), &best.chosen);
    let plan = plan(evaluator, model, chip, best);
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
        strategy: strategy(best),
        breakdown_s: breakdown(best, &costs, &passes),
        stages: stages(best, &costs),
        n_micro_batches: costs.micro_batches,
        layers: layers.collect(),
        plan,
    }
}

fn strategy(best: &Best) -> StrategyFacts {
    let chosen = &best.chosen;
    StrategyFacts {
        data_parallel: chosen.data_parallel,
        pipeline_stages: chosen.stages,
        tensor_parallel: chosen.tensor_parallel,
        micro_batch: chosen.micro_batch,
        recompute: chosen.recompute.to_string(),
        devices_used: chosen.devices,
        sentence: sentences::strategy(
            chosen.data_parallel,
            chosen.stages,
            chosen.tensor_parallel,
            chosen.micro_batch,
            chosen.recompute,
        ),
    }
}

fn plan(evaluator: &Evaluator, model: usize, chip: &Accelerator, best: &Best) -> Plan {
    let request = &evaluator.setup.request;
    let training = &evaluator.setup.trainings[model];
    let mut widths: Vec<u64> = evaluator.setup.trainings[model]
        .divisions
        .iter()
        .map(|division| division.share.setting.tensor_parallel)
        .collect();
    widths.dedup();
    Plan {
        schema: Plan::SCHEMA.into(),
        version: Plan::VERSION,
        name: evaluator.setup.trainings[model].name.clone(),
        units: Units::physical(),
        training: Some(Training {
            design: evaluator.setup.request.hardware.name.clone(),
            global_batch: request.global_batch,
            micro_batch: best.chosen.micro_batch,
            sequence: training.sequence,
            optimizer: request.optimizer.clone(),
            attention: request.attention.clone(),
            sequence_parallel: request.sequence_parallel,
            flops_per_sequence: training.flops_per_sequence.0,
            peak_flops_per_second: u64::try_from(chip.peak_flops_per_second()).unwrap_or(u64::MAX),
        }),
        job: best.job.clone(),
        profile: best.profile.clone(),
        answer: Answer::new(&best.profile, &best.job, &best.found.placement),
        proof: if best.given {
            Proof::Given
        } else {
            Proof::Optimal {
                widths,
                recompute: request.recompute.clone(),
                micro_batch_sizes: request.micro_batches.clone(),
            }
        },
    }
}

fn stages(best: &Best, costs: &Cost) -> Vec<StageFacts> {
    let stages = costs.stages.iter().zip(best.found.placement.pipeline.stages());
    stages
        .map(|(stage, layers)| {
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
                first_layer: layers.first().copied().unwrap_or(0),
                n_layers: layers.len(),
                layers: counts,
                devices: stage.devices,
                forward_s: Time(stage.time.forward).seconds(),
                backward_s: Time(stage.time.backward).seconds(),
                load_s: Time(stage.time.load()).seconds(),
                memory_bytes: MemoryFacts {
                    weights: bytes(stage.memory.weights),
                    gradients: bytes(stage.memory.gradients),
                    optimizer_state: bytes(stage.memory.optimizer_state),
                    activations: bytes(stage.memory.activations),
                },
                memory_limit_bytes: best.job.memory,
            }
        })
        .collect()
}

/// Where the time of a batch goes, seen from its slowest stage: its work for every micro-batch by
/// what limits it, what it waits for, and the slowest end.
fn breakdown(best: &Best, costs: &Cost, passes: &[[Detail; 2]]) -> Breakdown {
    let slowest = costs
        .stages
        .iter()
        .enumerate()
        .max_by_key(|(at, stage)| (stage.time.load(), std::cmp::Reverse(*at)));
    let Some((at, stage)) = slowest else { return Breakdown::default() };
    let layers = best.found.placement.pipeline.stages().nth(at).unwrap_or_default();
    let last = at + 1 == costs.stages.len();
    let again = match best.found.placement.recompute {
        Recompute::None => 0.0,
        Recompute::Full => 1.0,
        Recompute::Stage => f64::from(u8::from(!last)),
    };
    let rounds = costs.micro_batches as f64;
    let mut parts = Breakdown::default();
    for &layer in layers {
        let [forward, backward] = &passes[best.profile.sequence[layer]];
        parts.add(&forward.parts, rounds * (1.0 + again));
        parts.add(&backward.parts, rounds);
    }
    parts.pipeline_transfers = rounds * Time(stage.transfer).seconds();
    let end = costs.stages.iter().max_by_key(|stage| stage.end());
    if let Some(end) = end {
        parts.gradient_exchange = Time(end.exchange).seconds();
        parts.optimizer = Time(end.step).seconds();
    }
    // What is left is waiting: every other part is counted exactly once above.
    let total = best.chosen.standing.time.seconds();
    parts.bubble = (total - parts.total()).max(0.0);
    parts
}

/// One pass with its schedule and where its time goes.
struct Detail {
    costs: Vec<OpCosts>,
    pass: ScheduledPass,
    parts: Breakdown,
}

impl Detail {
    fn new(evaluator: &Evaluator, chip: &Accelerator, ops: &Dag<Op>) -> Self {
        let setup = evaluator.setup;
        let costs = layer::costs(ops, chip, &setup.cluster, evaluator.table())
            .expect("operators of an evaluated design can be timed");
        let pass = PassGraph::new(ops).schedule(&costs, chip, setup.rule, &Limits::DEFAULT);
        let parts = pass_parts::parts(ops, &costs, &pass);
        Self { costs, pass, parts }
    }

    fn facts(&self, evaluator: &Evaluator, chip: &Accelerator, ops: &Dag<Op>) -> PassFacts {
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
                ..op_facts(op, estimate, run.spread, evaluator, chip)
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
    evaluator: &Evaluator,
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
    };
    if let Work::Matmul { matmul, homes, .. } = &op.work {
        facts.matmul = Some(MatmulFacts { b: matmul.b, m: matmul.m, k: matmul.k, n: matmul.n });
        let spec = chip.tensor(if spread { Use::Spread } else { Use::Alone });
        let slack = evaluator.setup.options.energy_slack;
        let mut scratch = tensor_core::Scratch::default();
        facts.mapping = tensor_core::best(matmul, *homes, &spec, slack, &mut scratch)
            .map(|(mapping, _)| MappingFacts::from(&mapping));
    }
    facts
}
