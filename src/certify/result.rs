//! The best way to train one model on one chip, as an answer tells it: from its decisions (how the
//! model is divided and cut, how operators are mapped and scheduled) every figure is rebuilt.

use crate::hardware::Accelerator;
use crate::plan::Answer;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::Training;
use crate::plan::Units;
use crate::search::sentences;
use crate::strategy::Standing;
use crate::strategy::result::Breakdown;
use crate::strategy::result::LayerCount;
use crate::strategy::result::MemoryFacts;
use crate::strategy::result::ModelResult;
use crate::strategy::result::StageFacts;
use crate::strategy::result::StrategyFacts;
use crate::units::Time;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::energy;
use super::operator::Place;
use super::placed;
use super::placed::Around;
use super::placed::Origin;
use super::placed::Paths;
use super::placed::Placed;
use super::rebuild::Question;

/// What was found of a result that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Time and energy of a batch.
    pub standing: Standing,
    /// Devices in use.
    pub devices: u64,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Stages of a pipeline.
    pub stages: u64,
    /// Devices that share a layer.
    pub tensor_parallel: u64,
    /// Sequences in a micro-batch.
    pub micro_batch: u64,
    /// What is computed again.
    pub recompute: Recompute,
}

/// Judges the result of one model on `chip`; `path` is where it stands in the answer.
pub fn check(
    path: &str,
    question: &Question,
    model: usize,
    chip: &Accelerator,
    origin: Origin,
    claimed: &ModelResult,
) -> Result<Held, FalseClaim> {
    let strategy = &claimed.strategy;
    let (width, micro_batch) = (strategy.tensor_parallel, strategy.micro_batch);
    let share = question.share(model, width, micro_batch).ok_or_else(|| {
        let said = format!("{width} wide, micro-batch {micro_batch}");
        FalseClaim::new(format!("{path}.strategy"), said, "not in the request's space")
    })?;
    let request = &question.request;
    let devices = claimed.plan.job.devices;
    let cluster = question.clusters.iter().find(|cluster| cluster.devices == devices);
    let cluster = cluster.filter(|cluster| width <= cluster.devices).ok_or_else(|| {
        let is = question.clusters.iter().map(|cluster| cluster.devices.to_string());
        let is = is.collect::<Vec<String>>().join(" or ");
        FalseClaim::new(format!("{path}.plan.job.devices"), devices, is)
    })?;
    let around = Around {
        place: Place { chip, cluster, costs: question.vector_costs },
        rule: question.rule,
        optimizer: question.optimizer,
        global_batch: request.global_batch,
        time_model: request.time_model,
        recompute: &request.recompute,
    };
    let paths = Paths { layers: format!("{path}.layers"), answer: format!("{path}.plan.answer") };
    let answer = &claimed.plan.answer;
    let placed = placed::check(&paths, &around, share, origin, &claimed.layers, answer)?;
    let held = Held {
        standing: Standing { time: placed.time, energy: placed.energy },
        devices: placed.costs.devices,
        data_parallel: placed.placement.data_parallel,
        stages: placed.placement.pipeline.n_stages() as u64,
        tensor_parallel: width,
        micro_batch,
        recompute: placed.placement.recompute,
    };
    let time = placed.time;
    let power = held.standing.average_power(held.devices);
    let cap = request.power_cap_w.unwrap_or(f64::INFINITY);
    let drawn = format!("{path}.average_power_w");
    require(power <= cap, drawn, power, format!("at most {cap}"))?;
    let found = Rebuilt { question, model, chip, origin, placed }.facts(&held, claimed);
    breakdown_holds(path, &claimed.breakdown_s, &found.breakdown_s, time)?;
    equal(path, claimed, &ModelResult { breakdown_s: claimed.breakdown_s, ..found })?;
    Ok(held)
}

/// The parts are sums of many roundings: they agree to a part of the whole.
fn breakdown_holds(path: &str, said: &Breakdown, is: &Breakdown, time: Time) -> Verdict {
    for ((what, said), (_, is)) in said.parts().into_iter().zip(is.parts()) {
        let close = (said - is).abs() <= 1e-12 * time.seconds();
        require(close, format!("{path}.breakdown_s ({what})"), said, is)?;
    }
    Ok(())
}

/// All that a result is told from.
struct Rebuilt<'a> {
    question: &'a Question,
    model: usize,
    chip: &'a Accelerator,
    origin: Origin,
    placed: Placed,
}

impl Rebuilt<'_> {
    fn facts(self, held: &Held, claimed: &ModelResult) -> ModelResult {
        let Placed { profile, job, placement, costs, .. } = &self.placed;
        let request = &self.question.request;
        let model = &self.question.models[self.model];
        let seconds = held.standing.time.seconds();
        let joules = held.standing.energy.joules();
        let sequences = request.global_batch as f64;
        let tokens = sequences * model.sequence as f64;
        let peak = self.chip.peak_flops_per_second();
        let flops = model.flops_per_sequence.0 as f64 * sequences;
        let mfu = |devices: u64| flops / (devices as f64 * peak as f64 * seconds);
        let answer = Answer::new(profile, job, placement);
        ModelResult {
            model: model.name.clone(),
            time_per_batch_s: seconds,
            simulated_time_per_batch_s: answer.simulated.map(|ticks| Time(ticks).seconds()),
            throughput_sequences_per_s: sequences / seconds,
            tokens_per_s: tokens / seconds,
            mfu: mfu(held.devices),
            mfu_requested_devices: mfu(request.devices),
            energy_per_batch_j: joules,
            energy_per_token_j: joules / tokens,
            average_power_w: joules / (seconds * held.devices as f64),
            strategy: strategy(held),
            breakdown_s: self.breakdown(),
            stages: self.stages(),
            n_micro_batches: costs.micro_batches,
            layers: claimed.layers.clone(),
            plan: Plan {
                schema: Plan::SCHEMA.into(),
                version: Plan::VERSION,
                name: model.name.clone(),
                units: Units::physical(),
                question: None,
                layers: Vec::new(),
                training: Some(Training {
                    design: request.hardware.name.clone(),
                    global_batch: request.global_batch,
                    micro_batch: held.micro_batch,
                    sequence: model.sequence,
                    optimizer: request.optimizer.name().into(),
                    attention: request.attention.name().into(),
                    sequence_parallel: request.sequence_parallel,
                    flops_per_sequence: model.flops_per_sequence.0,
                    peak_flops_per_second: u64::try_from(peak).unwrap_or(u64::MAX),
                }),
                proof: match self.origin {
                    Origin::Given(_) => Proof::Given,
                    Origin::Searched => Proof::Optimal {
                        widths: model.widths(),
                        recompute: request.recompute.clone(),
                        micro_batch_sizes: request.micro_batches.clone(),
                    },
                },
                answer,
                job: job.clone(),
                profile: profile.clone(),
            },
        }
    }

    fn stages(&self) -> Vec<StageFacts> {
        let Placed { profile, job, placement, costs, .. } = &self.placed;
        let stages = costs.stages.iter().zip(placement.pipeline.stages());
        let told = stages.map(|(stage, layers)| {
            let mut counts: Vec<LayerCount> = Vec::new();
            for &layer in layers {
                let kind = &profile.layer(layer).name;
                match counts.last_mut().filter(|last| last.kind == *kind) {
                    Some(last) => last.count += 1,
                    None => counts.push(LayerCount { kind: kind.clone(), count: 1 }),
                }
            }
            let bytes = |size: u128| u64::try_from(size).unwrap_or(u64::MAX);
            let memory = &stage.memory;
            StageFacts {
                first_layer: layers.first().copied().unwrap_or(0),
                n_layers: layers.len(),
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
                },
                memory_limit_bytes: job.memory,
            }
        });
        told.collect()
    }

    /// Where the time of a batch goes, seen from its slowest stage, the first of several.
    fn breakdown(&self) -> Breakdown {
        let Placed { passes, profile, placement, costs, time, .. } = &self.placed;
        let slowest = costs.stages.iter().position(|stage| stage.time.load() == costs.slowest);
        let Some(at) = slowest else { return Breakdown::default() };
        let last = at + 1 == costs.stages.len();
        let repeats = energy::forward_passes(placement.recompute, last);
        let rounds = costs.micro_batches as f64;
        let mut parts = Breakdown::default();
        for &layer in placement.pipeline.stages().nth(at).unwrap_or_default() {
            let [there, back] = &passes[profile.sequence[layer]];
            parts.add(&there.parts, rounds * repeats as f64);
            parts.add(&back.parts, rounds);
        }
        parts.pipeline_transfers = rounds * Time(costs.stages[at].transfer).seconds();
        // Of several that end last, the last stage is told.
        if let Some(end) = costs.stages.iter().max_by_key(|stage| stage.end()) {
            parts.gradient_exchange = Time(end.exchange).seconds();
            parts.optimizer = Time(end.step).seconds();
        }
        parts.bubble = (time.seconds() - parts.total()).max(0.0);
        parts
    }
}

fn strategy(held: &Held) -> StrategyFacts {
    StrategyFacts {
        data_parallel: held.data_parallel,
        pipeline_stages: held.stages,
        tensor_parallel: held.tensor_parallel,
        micro_batch: held.micro_batch,
        recompute: held.recompute.to_string(),
        devices_used: held.devices,
        sentence: sentences::strategy(
            held.data_parallel,
            held.stages,
            held.tensor_parallel,
            held.micro_batch,
            held.recompute,
        ),
    }
}
