//! The best way to train one model on one chip, as an answer tells it: from its decisions (how the
//! model is divided and cut, how operators are mapped and scheduled) every figure is rebuilt.

use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::parallel::Share;
use crate::plan::Answer;
use crate::plan::Cost;
use crate::plan::Edge;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::Training;
use crate::plan::Units;
use crate::plan::cost;
use crate::search::Breakdown;
use crate::search::Degrees;
use crate::search::LayerCount;
use crate::search::LayerFacts;
use crate::search::MemoryFacts;
use crate::search::ModelResult;
use crate::search::StageFacts;
use crate::search::Standing;
use crate::search::StrategyFacts;
use crate::search::sentences;
use crate::units::Energy;
use crate::units::Time;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::energy;
use super::operator::Place;
use super::operator::price;
use super::pass;
use super::pass::Pass;
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

/// Whether a strategy was searched, or given and only its micro-batch and recompute searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Every strategy of the request was compared.
    Searched,
    /// The degrees were given, repeated layers cut evenly.
    Given(Degrees),
}

/// A layer's passes and how often it occurs.
struct Layer {
    passes: [Pass; 2],
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
    let place = Place { chip, cluster: &question.cluster, costs: question.vector_costs };
    let layers = layers(path, question, share, place, claimed)?;
    let profile = profile(share, &layers);
    let step = price(&question.optimizer.step(1 << 30), place, Use::Spread, None);
    let step = step.ok_or_else(|| FalseClaim::new(path, "a result", "too large to be timed"))?;
    let job = question.job(share, chip.design().hbm.0, step.time.0);
    job.validate(&profile)
        .map_err(|flaw| FalseClaim::new(format!("{path}.plan.profile"), "a profile", flaw))?;
    let placement = placement(path, question, &profile, &job, origin, claimed)?;
    let costs = cost(&profile, &job, &placement);
    fits(path, &job, &costs)?;
    let time = Time(u64::try_from(costs.time_per_batch).unwrap_or(u64::MAX));
    let energies = layers.iter().map(|layer| layer.passes.each_ref().map(|pass| pass.energy));
    let energy = energy::of_batch(&energy::Batch {
        passes: &energies.collect::<Vec<[Energy; 2]>>(),
        profile: &profile,
        job: &job,
        placement: &placement,
        costs: &costs,
        optimizer: question.optimizer,
        place,
    });
    let held = Held {
        standing: Standing { time, energy },
        devices: costs.devices,
        data_parallel: placement.data_parallel,
        stages: placement.pipeline.n_stages() as u64,
        tensor_parallel: width,
        micro_batch,
        recompute: placement.recompute,
    };
    let rebuilt = Rebuilt { question, model, chip, origin, layers: &layers, profile, job, placement };
    let found = rebuilt.facts(&held, &costs, claimed);
    breakdown_holds(path, &claimed.breakdown_s, &found.breakdown_s, time)?;
    equal(path, claimed, &ModelResult { breakdown_s: claimed.breakdown_s, ..found })?;
    Ok(held)
}

/// Every kind of layer that the model has, in order, each with both passes.
fn layers(
    path: &str,
    question: &Question,
    share: &Share,
    place: Place,
    claimed: &ModelResult,
) -> Result<Vec<Layer>, FalseClaim> {
    let (said, is) = (claimed.layers.len(), share.kinds.len());
    require(said == is, format!("{path}.layers.length"), said, is)?;
    let kinds = share.kinds.iter().zip(&claimed.layers).enumerate();
    kinds
        .map(|(at, (layer, facts))| {
            let path = format!("{path}.layers[{at}]");
            let found = LayerFacts {
                kind: layer.name.clone(),
                count: share.sequence.iter().filter(|&&kind| kind == at).count(),
                ..facts.clone()
            };
            equal(&path, facts, &found)?;
            let forward = format!("{path}.forward");
            let backward = format!("{path}.backward");
            let rule = question.rule;
            let passes = [
                pass::check(&forward, &layer.forward, place, rule, &facts.forward)?,
                pass::check(&backward, &layer.backward, place, rule, &facts.backward)?,
            ];
            Ok(Layer { passes })
        })
        .collect()
}

/// What placement knows of the share.
fn profile(share: &Share, layers: &[Layer]) -> Profile {
    let kinds = share.kinds.iter().zip(layers).map(|(share, Layer { passes: [there, back] })| {
        LayerProfile {
            name: share.name.clone(),
            forward: there.time.0,
            backward: back.time.0,
            parameters: share.parameters,
            activations: share.kept.0,
            tensor_parallel: share.tensor_parallel,
            collectives: (there.collectives + back.collectives).0,
        }
    });
    profile_of(share, kinds.collect())
}

/// The chain of a share's layers with the given kinds.
pub fn profile_of(share: &Share, kinds: Vec<LayerProfile>) -> Profile {
    let sequence = share.sequence.clone();
    let edge = |to: usize| Edge { from: to - 1, to, size: share.kinds[sequence[to]].input.0 };
    // The repeated layers count from 0; what comes before them is below, what comes after above.
    let repeated = most_frequent(&sequence);
    let before = sequence.iter().position(|&kind| kind == repeated).unwrap_or(0);
    let before = i64::try_from(before).unwrap_or(0);
    Profile {
        width: share.setting.tensor_parallel,
        kinds,
        ids: (0..).take(sequence.len()).map(|place: i64| place - before).collect(),
        edges: (1..sequence.len()).map(edge).collect(),
        tied: share.tied.map_or(0, |tied| tied.parameters),
        sequence,
    }
}

/// The kind of layer that occurs most often, the first of several.
pub fn most_frequent(sequence: &[usize]) -> usize {
    let mut counts = vec![0_usize; sequence.iter().max().map_or(1, |most| most + 1)];
    sequence.iter().for_each(|&kind| counts[kind] += 1);
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|&count| count == most).unwrap_or(0)
}

/// The placement is a pipeline of the request's space; where degrees were given, it has them.
fn placement(
    path: &str,
    question: &Question,
    profile: &Profile,
    job: &Job,
    origin: Origin,
    claimed: &ModelResult,
) -> Result<Placement, FalseClaim> {
    let answer = &claimed.plan.answer;
    let at = |field: &str| format!("{path}.plan.answer.{field}");
    let allowed = question.request.recompute.contains(&answer.recompute);
    require(allowed, at("recompute"), answer.recompute, "not in the request's space")?;
    let (copies, most) = (answer.data_parallel, job.micro_batches);
    require((1..=most).contains(&copies), at("data_parallel"), copies, format!("1 to {most}"))?;
    let n_layers = profile.n_layers();
    let placement = answer.placement(n_layers);
    let placement = placement.ok_or_else(|| {
        FalseClaim::new(at("stages"), "stages", format!("not each of {n_layers} layers once"))
    })?;
    let in_order = placement.pipeline.stages().flatten().copied().eq(0..n_layers);
    require(in_order, at("stages"), "stages", "out of the order of the layers")?;
    if let Origin::Given(degrees) = origin {
        let said = (placement.pipeline.n_stages(), copies, profile.width);
        let is = (degrees.stages, degrees.data_parallel, degrees.tensor_parallel);
        require(said == is, at("stages"), format!("{said:?}"), format!("{is:?}"))?;
        let ends: Vec<usize> = even_ends(&profile.sequence, degrees.stages);
        let mut end = 0;
        let cut = placement.pipeline.stages().map(|stage| {
            end += stage.len();
            end
        });
        require(cut.eq(ends), at("stages"), "a cut", "not the even one")?;
    }
    Ok(placement)
}

/// Where stages end if repeated layers are cut evenly: stage i of p holds those from ⌊i·l/p⌋ to
/// ⌊(i+1)·l/p⌋; what comes before them is in the first stage, what comes after in the last. Empty
/// where there are more stages than repeated layers.
pub fn even_ends(sequence: &[usize], n_stages: usize) -> Vec<usize> {
    let repeated = most_frequent(sequence);
    let first = sequence.iter().position(|&kind| kind == repeated).unwrap_or(0);
    let n_layers = sequence.iter().filter(|&&kind| kind == repeated).count();
    if n_stages == 0 || n_stages > n_layers {
        return Vec::new();
    }
    let inner = (1..n_stages).map(|stage| first + stage * n_layers / n_stages);
    inner.chain([sequence.len()]).collect()
}

fn fits(path: &str, job: &Job, costs: &Cost) -> Verdict {
    let devices = format!("{path}.plan.answer.devices");
    require(costs.devices <= job.devices, devices, "a plan", "more devices than there are")?;
    for (stage, cost) in costs.stages.iter().enumerate() {
        let (needed, available) = (cost.memory.total(), u128::from(job.memory));
        let at = format!("{path}.plan.answer.stages[{stage}].memory");
        require(needed <= available, at, available, format!("{needed} bytes"))?;
    }
    Ok(())
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
    layers: &'a [Layer],
    profile: Profile,
    job: Job,
    placement: Placement,
}

impl Rebuilt<'_> {
    fn facts(self, held: &Held, costs: &Cost, claimed: &ModelResult) -> ModelResult {
        let request = &self.question.request;
        let model = &self.question.models[self.model];
        let seconds = held.standing.time.seconds();
        let joules = held.standing.energy.joules();
        let sequences = request.global_batch as f64;
        let tokens = sequences * model.sequence as f64;
        let peak = self.chip.peak_flops_per_second();
        let flops = model.flops_per_sequence.0 as f64 * sequences;
        let mfu = |devices: u64| flops / (devices as f64 * peak as f64 * seconds);
        let answer = Answer::new(&self.profile, &self.job, &self.placement);
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
            breakdown_s: self.breakdown(costs, held.standing.time),
            stages: self.stages(costs),
            n_micro_batches: costs.micro_batches,
            layers: claimed.layers.clone(),
            plan: Plan {
                schema: Plan::SCHEMA.into(),
                version: Plan::VERSION,
                name: model.name.clone(),
                units: Units::physical(),
                training: Some(Training {
                    design: request.hardware.name.clone(),
                    global_batch: request.global_batch,
                    micro_batch: held.micro_batch,
                    sequence: model.sequence,
                    optimizer: request.optimizer.clone(),
                    attention: request.attention.clone(),
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
                job: self.job,
                profile: self.profile,
            },
        }
    }

    fn stages(&self, costs: &Cost) -> Vec<StageFacts> {
        let stages = costs.stages.iter().zip(self.placement.pipeline.stages());
        let told = stages.map(|(stage, layers)| {
            let mut counts: Vec<LayerCount> = Vec::new();
            for &layer in layers {
                let kind = &self.profile.layer(layer).name;
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
                memory_limit_bytes: self.job.memory,
            }
        });
        told.collect()
    }

    /// Where the time of a batch goes, seen from its slowest stage, the first of several.
    fn breakdown(&self, costs: &Cost, time: Time) -> Breakdown {
        let slowest = costs.stages.iter().position(|stage| stage.time.load() == costs.slowest);
        let Some(at) = slowest else { return Breakdown::default() };
        let last = at + 1 == costs.stages.len();
        let repeats = energy::forward_passes(self.placement.recompute, last);
        let rounds = costs.micro_batches as f64;
        let mut parts = Breakdown::default();
        for &layer in self.placement.pipeline.stages().nth(at).unwrap_or_default() {
            let [there, back] = &self.layers[self.profile.sequence[layer]].passes;
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
