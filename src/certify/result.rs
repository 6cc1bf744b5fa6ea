//! The best way to train one model on one chip, as an answer tells it: from its decisions (how the
//! model is divided and cut, how operators are mapped and scheduled) every figure is rebuilt.

use crate::hardware::Accelerator;
use crate::plan::Answer;
use crate::plan::Basis;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
use crate::plan::Training;
use crate::plan::Units;
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
use super::placed::Paths;
use super::placed::Placed;
use super::placed::Told;
use super::plan;
use super::rebuild::Question;

/// What was found of a result that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Time and energy of a batch.
    pub standing: Standing,
    /// Devices in use.
    pub devices: u64,
    /// How the model is divided.
    pub strategy: Strategy,
}

/// Judges the result of one model on `chip`, whose strategy was chosen from `space`; `path` is where
/// it stands in the answer.
pub fn check(
    path: &str,
    question: &Question,
    (model, space): (usize, &StrategySpace),
    chip: &Accelerator,
    claimed: &ModelResult,
) -> Result<Held, FalseClaim> {
    let request = &question.request;
    let asked = question.asked_from(model, space);
    let devices = claimed.plan.job.devices;
    let scopes = asked.scopes(question.physics.network.scopes(request.devices));
    let at = format!("{path}.plan.job.devices");
    require(scopes.contains(&devices), at, devices, format!("one of {scopes:?}"))?;
    let cluster = question.cluster(devices);
    let around = Around {
        place: Place { chip, cluster: &cluster, costs: question.vector_costs },
        asked,
        rule: question.rule,
    };
    let paths = Paths {
        strategy: format!("{path}.strategy.degrees"),
        layers: format!("{path}.layers"),
        answer: format!("{path}.plan.answer"),
    };
    let strategy = &claimed.strategy.degrees;
    let told = Told { strategy, layers: &claimed.layers, answer: &claimed.plan.answer };
    let placed = placed::check(&paths, &around, &told)?;
    let held = Held {
        standing: Standing { time: placed.time, energy: placed.energy },
        devices: placed.costs.devices,
        strategy: *strategy,
    };
    let time = placed.time;
    let power = held.standing.average_power(held.devices);
    let cap = request.power_cap_w.unwrap_or(f64::INFINITY);
    let drawn = format!("{path}.average_power_w");
    require(power <= cap, drawn, power, format!("at most {cap}"))?;
    let at = format!("{path}.plan.proof");
    let batch = placed.costs.time_per_batch;
    let proof = plan::proof(&at, &claimed.plan.proof, &asked, batch)?;
    let found = Rebuilt { question, model, chip, proof, placed }.facts(&held, claimed);
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
    proof: Proof,
    placed: Placed,
}

impl Rebuilt<'_> {
    fn facts(self, held: &Held, claimed: &ModelResult) -> ModelResult {
        let Placed { profile, job, placement, costs, .. } = &self.placed;
        let request = &self.question.request;
        let model = &self.question.models[self.model];
        let asked = self.question.asked(self.model);
        let seconds = held.standing.time.seconds();
        let joules = held.standing.energy.joules();
        let sequences = request.global_batch as f64;
        let tokens = sequences * model.sequence as f64;
        let peak = self.chip.peak_in(self.question.precision);
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
            strategy: StrategyFacts {
                sentence: held.strategy.to_string(),
                devices_used: held.devices,
                degrees: held.strategy,
            },
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
                    micro_batch: held.strategy.micro_batch,
                    sequence: model.sequence,
                    optimizer: request.optimizer.name().into(),
                    attention: request.attention.name().into(),
                    strategy: held.strategy,
                    expert_load_per_mille: asked.model.spec.experts.map(|e| e.load_per_mille),
                    flops_per_sequence: model.flops_per_sequence.0,
                    causal_flops_per_sequence: asked.causal_flops_per_sequence(),
                    peak_flops_per_second: u64::try_from(peak).unwrap_or(u64::MAX),
                    basis: Basis::of_another(&self.question.physics),
                }),
                proof: self.proof.clone(),
                answer,
                job: job.clone(),
                profile: profile.clone(),
            },
        }
    }

    fn stages(&self) -> Vec<StageFacts> {
        let Placed { profile, job, placement, costs, .. } = &self.placed;
        let n_ranks = costs.ranks.len().max(1);
        let stages = costs.stages.iter().zip(placement.pipeline.stages()).enumerate();
        let told = stages.map(|(at, (stage, layers))| {
            let mut counts: Vec<LayerCount> = Vec::new();
            for &layer in layers {
                let kind = &profile.layer(layer).name;
                match counts.last_mut().filter(|last| last.kind == *kind) {
                    Some(last) => last.count += 1,
                    None => counts.push(LayerCount { kind: kind.clone(), count: 1 }),
                }
            }
            let bytes = |size: u128| u64::try_from(size).unwrap_or(u64::MAX);
            let memory = &costs.ranks[at % n_ranks].memory;
            StageFacts {
                rank: at % n_ranks,
                n_repeated: stage.repeated,
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
                    gathered: bytes(memory.gathered),
                    working: bytes(memory.working),
                },
                memory_limit_bytes: job.memory,
            }
        });
        told.collect()
    }

    /// Where the time of a batch goes, seen from its slowest rank, the first of several.
    fn breakdown(&self) -> Breakdown {
        let Placed { passes, profile, job, placement, costs, time, .. } = &self.placed;
        let n_ranks = costs.ranks.len().max(1);
        let mut loads = vec![0_u128; n_ranks];
        for (at, stage) in costs.stages.iter().enumerate() {
            loads[at % n_ranks] += u128::from(stage.time.load());
        }
        let most = loads.iter().max().copied().unwrap_or(0);
        let slowest = loads.iter().position(|&load| load == most).unwrap_or(0);
        let rounds = costs.micro_batches as f64;
        let mut parts = Breakdown::default();
        for (at, layers) in placement.pipeline.stages().enumerate() {
            if at % n_ranks != slowest {
                continue;
            }
            let stage = &costs.stages[at];
            let again = energy::repeats(profile, placement, layers, (at, stage.repeated));
            for (&layer, again) in layers.iter().zip(again) {
                let [there, back] = &passes[profile.sequence[layer]];
                parts.add(&there.parts, rounds * if again { 2.0 } else { 1.0 });
                parts.add(&back.parts, rounds);
            }
            parts.pipeline_transfers += rounds * Time(stage.transfer).seconds();
            parts.weight_gathering += rounds * Time(stage.waits_for_weights).seconds();
        }
        let after = costs.after_passes(job);
        parts.gradient_exchange = Time(after.exposed).seconds();
        parts.optimizer = Time(after.step).seconds();
        parts.weight_gathering += Time(after.gather).seconds();
        parts.bubble = (time.seconds() - parts.total()).max(0.0);
        parts
    }
}
