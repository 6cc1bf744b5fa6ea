//! A share of a model placed on a chip, as an answer tells it: from its decisions (mappings and
//! schedules of the layers, the cut into stages) times, memory, devices and energy are rebuilt.
//!
//! What it needs is told in [`Around`], so that an entry of a search and a plan that stands alone
//! are judged by the same functions.

use crate::hardware::Use;
use crate::model::Kernels;
use crate::model::Stack;
use crate::parallel::LayerShare;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::plan::Answer;
use crate::plan::Buckets;
use crate::plan::Cost;
use crate::plan::CutSpace;
use crate::plan::Edge;
use crate::plan::EndRules;
use crate::plan::Hiding;
use crate::plan::Job;
use crate::plan::LayerFacts;
use crate::plan::LayerProfile;
use crate::plan::Links;
use crate::plan::PerParameter;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::StepStart;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::plan::cost;
use crate::plan::schedule::Rule;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::divide::Asked;
use super::energy;
use super::legal;
use super::operator::Place;
use super::operator::price;
use super::pass;
use super::pass::Pass;

/// What a placement is judged by.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The chip and what it stands in.
    pub place: Place<'a>,
    /// What is trained, and what may be chosen.
    pub asked: Asked<'a>,
    /// What a spread operator leaves to others.
    pub rule: Rule,
}

/// Where an answer writes what is judged.
pub struct Paths {
    /// The strategy.
    pub strategy: String,
    /// The layers with their schedules.
    pub layers: String,
    /// The placement and its claims.
    pub answer: String,
}

/// What is told of a way to train.
pub struct Told<'a> {
    /// How the model is divided.
    pub strategy: &'a Strategy,
    /// Its layers with their schedules.
    pub layers: &'a [LayerFacts],
    /// The placement and its claims.
    pub answer: &'a Answer,
}

/// A placement that fits, with all that follows from it.
pub struct Placed {
    /// How the model is divided.
    pub strategy: Strategy,
    /// By kind of layer, forward and backward.
    pub passes: Vec<[Pass; 2]>,
    /// What placement knows of the layers.
    pub profile: Profile,
    /// What is asked of it.
    pub job: Job,
    /// Which layers form which stage.
    pub placement: Placement,
    /// What that costs.
    pub costs: Cost,
    /// Of a batch.
    pub time: Time,
    /// Of a batch, all devices.
    pub energy: Energy,
}

/// Judges a strategy of the question's space, its layers and its placement.
pub fn check(paths: &Paths, around: &Around, told: &Told) -> Result<Placed, FalseClaim> {
    let Around { place, asked, .. } = *around;
    let Told { strategy, layers: claimed, .. } = *told;
    legal::check(&paths.strategy, &asked, strategy)?;
    let devices = strategy.tensor_parallel.saturating_mul(strategy.context_parallel);
    let scope = place.cluster.devices;
    let within = devices <= scope;
    require(within, format!("{}.tensor_parallel", paths.strategy), devices, scope)?;
    let share = asked.share(strategy).map_err(|reason| {
        FalseClaim::new(&paths.strategy, format!("{strategy}"), reason.to_string())
    })?;
    let passes = layers(&paths.layers, around, &share, claimed)?;
    let profile = profile(&share, &passes, asked.time_model);
    let job = job(&paths.layers, around, &share)?;
    job.validate(&profile).map_err(|flaw| FalseClaim::new(&paths.layers, "a profile", flaw))?;
    let placement = placement(paths, around, &profile, told)?;
    let costs = cost(&profile, &job, &placement);
    fits(&paths.answer, &job, &costs)?;
    let repeats = placement.pipeline.stages().zip(&costs.stages).map(|(layers, stage)| {
        let all = layers.iter().filter(|&&layer| profile.layer(layer).repeatable);
        (stage.repeated, all.count())
    });
    legal::accepted(&paths.strategy, &asked, strategy, &repeats.collect::<Vec<_>>())?;
    let energies = passes.iter().map(|passes| passes.each_ref().map(|pass| pass.energy));
    let energy = energy::of_batch(&energy::Batch {
        passes: &energies.collect::<Vec<[Energy; 2]>>(),
        profile: &profile,
        job: &job,
        placement: &placement,
        costs: &costs,
        optimizer: asked.optimizer,
        place,
    });
    let time = Time(u64::try_from(costs.time_per_batch).unwrap_or(u64::MAX));
    Ok(Placed { strategy: *strategy, passes, profile, job, placement, costs, time, energy })
}

/// What is asked of the placement of a share.
fn job(path: &str, around: &Around, share: &Share) -> Result<Job, FalseClaim> {
    let Around { place, asked, .. } = *around;
    let Asked { optimizer, time_model, .. } = asked;
    let step = optimizer.step_by(asked.stack.kernels, 1 << 30);
    let step = price(&step, place, Use::Spread, None);
    let step =
        step.ok_or_else(|| FalseClaim::new(path, "layers", "a step too large to be timed"))?;
    let installed = place.chip.design().hbm.0;
    Ok(Job {
        micro_batches: asked.global_batch / share.setting.micro_batch,
        devices: place.cluster.devices,
        memory: asked.usable(installed),
        installed,
        links: Links::Network(place.cluster.network),
        per_parameter: PerParameter {
            weight: optimizer.weight().0,
            gradient: optimizer.gradient().0,
            exchanged: asked.stack.gradient_bytes.map(u64::from),
            state: optimizer.state().0,
            step_per_gibi: step.time.0,
        },
        time_model,
        ends: ends(asked.space, time_model, asked.stack),
    })
}

/// What follows the passes of a batch: gradients are clipped by the norm of all, unless the time
/// model has an end of its own.
pub fn ends(space: &StrategySpace, time_model: TimeModel, stack: Stack) -> EndRules {
    match time_model {
        TimeModel::Published => EndRules::PLAIN,
        TimeModel::OneForwardOneBackward => {
            let buckets = match stack.gradients_hidden {
                Some(per_mille) => Buckets::Hidden { per_mille },
                None => space.buckets(),
            };
            EndRules { step_start: StepStart::AllGradients, buckets, hiding: Hiding::Own }
        }
    }
}

/// Every kind of layer that the model has, in order, each with both passes.
fn layers(
    path: &str,
    around: &Around,
    share: &Share,
    claimed: &[LayerFacts],
) -> Result<Vec<[Pass; 2]>, FalseClaim> {
    let (said, is) = (claimed.len(), share.kinds.len());
    require(said == is, format!("{path}.length"), said, is)?;
    let kinds = share.kinds.iter().zip(claimed).enumerate();
    kinds
        .map(|(at, (layer, facts))| {
            let path = format!("{path}[{at}]");
            let found = LayerFacts {
                kind: layer.name.clone(),
                count: share.sequence.iter().filter(|&&kind| kind == at).count(),
                ..facts.clone()
            };
            equal(&path, facts, &found)?;
            let forward = format!("{path}.forward");
            let backward = format!("{path}.backward");
            let Around { place, rule, .. } = *around;
            Ok([
                pass::check(&forward, &layer.forward, place, rule, &facts.forward)?,
                pass::check(&backward, &layer.backward, place, rule, &facts.backward)?,
            ])
        })
        .collect()
}

/// What placement knows of the share.
fn profile(share: &Share, layers: &[[Pass; 2]], time_model: TimeModel) -> Profile {
    let stack = share.setting.stack;
    let kinds = share.kinds.iter().zip(layers).map(|(share, [there, back])| LayerProfile {
        forward: there.time.0,
        backward: back.time.0,
        collectives: (there.collectives + back.collectives).0,
        backward_collectives: back.collectives.0,
        all_to_all: (there.all_to_all + back.all_to_all).0,
        ..untimed(share, time_model, stack)
    });
    profile_of(share, kinds.collect())
}

/// What placement knows of a layer whatever the chip. The published time model knows nothing of
/// what a running pass holds for a moment.
pub fn untimed(layer: &LayerShare, time_model: TimeModel, stack: Stack) -> LayerProfile {
    let zero = Bytes::ZERO;
    let ends_in_loss = layer.passing > zero;
    let (activations, working, held_on) = match (time_model, stack.kernels) {
        (TimeModel::Published, _) => (layer.kept, zero, zero),
        (_, Kernels::Megatron) if ends_in_loss => {
            (layer.kept_in_flight(), layer.working, layer.weight_gradients)
        }
        (TimeModel::OneForwardOneBackward, _) => (layer.kept_in_flight(), layer.working, zero),
    };
    LayerProfile {
        name: layer.name.clone(),
        forward: 0,
        backward: 0,
        parameters: layer.parameters,
        expert_parameters: layer.expert_parameters,
        activations: activations.0,
        tensor_parallel: layer.tensor_parallel,
        collectives: 0,
        backward_collectives: 0,
        all_to_all: 0,
        working: working.0,
        held_on: held_on.0,
        repeatable: is_repeatable(layer),
    }
}

/// Whether a layer can run its forward pass again from its input: it is neither the first, which
/// reads ids, nor the last, which ends in the loss.
fn is_repeatable(layer: &LayerShare) -> bool {
    layer.input > Bytes::ZERO && layer.output > Bytes::ZERO
}

/// The chain of a share's layers with the given kinds.
pub fn profile_of(share: &Share, kinds: Vec<LayerProfile>) -> Profile {
    let sequence = share.sequence.clone();
    let Setting { tensor_parallel, sequence_parallel, stack, .. } = share.setting;
    let scatters = stack.kernels == Kernels::Megatron && tensor_parallel > 1 && !sequence_parallel;
    let edge = |to: usize| {
        let whole = Edge::new(to - 1, to, share.kinds[sequence[to]].input.0);
        // Each of the devices that hold it all sends a part.
        let part = scatters.then(|| whole.size.div_ceil(tensor_parallel));
        Edge { part, ..whole }
    };
    // The repeated layers count from 0; what comes before them is below, what comes after above.
    let (before, _) = repeated(&sequence);
    let before = i64::try_from(before).unwrap_or(0);
    Profile {
        width: share.setting.tensor_parallel,
        context: share.setting.context,
        expert_devices: share
            .kinds
            .iter()
            .any(|kind| kind.expert_parameters > 0)
            .then(|| share.setting.expert * share.setting.expert_tensor),
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
    for &kind in sequence {
        counts[kind] += 1;
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|&count| count == most).unwrap_or(0)
}

/// Where the repeated layers begin, and how many there are: all between the first and the last
/// whose kind occurs more than once; one layer of the first kind where none does.
fn repeated(sequence: &[usize]) -> (usize, usize) {
    let mut counts = vec![0_usize; sequence.iter().max().map_or(1, |most| most + 1)];
    for &kind in sequence {
        counts[kind] += 1;
    }
    let places: Vec<usize> = (0..sequence.len()).filter(|&at| counts[sequence[at]] > 1).collect();
    if let (Some(&first), Some(&last)) = (places.first(), places.last()) {
        return (first, last - first + 1);
    }
    let kind = most_frequent(sequence);
    (sequence.iter().position(|&at| at == kind).unwrap_or(0), 1)
}

/// The placement is a pipeline with the degrees of its strategy, in the order of the layers, and cut
/// evenly where that is asked for.
fn placement(
    paths: &Paths,
    around: &Around,
    profile: &Profile,
    told: &Told,
) -> Result<Placement, FalseClaim> {
    let Told { strategy, answer, .. } = *told;
    let at = |field: &str| format!("{}.{field}", paths.answer);
    let n_layers = profile.n_layers();
    let placement = answer.placement(n_layers);
    let placement = placement.ok_or_else(|| {
        FalseClaim::new(at("stages"), "stages", format!("not each of {n_layers} layers once"))
    })?;
    let in_order = placement.pipeline.stages().flatten().copied().eq(0..n_layers);
    require(in_order, at("stages"), "stages", "out of the order of the layers")?;
    let placed = Strategy {
        pipeline: placement.ranks() as u64,
        schedule: placement.schedule,
        data_parallel: placement.data_parallel,
        zero: placement.zero,
        shards: placement.shards,
        order: placement.order,
        recompute: placement.recompute,
        ..*strategy
    };
    equal(&paths.strategy, strategy, &placed)?;
    if around.asked.space.cut == CutSpace::Even {
        let ends = even_ends(&profile.sequence, placement.pipeline.n_stages());
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
    let (first, n_layers) = repeated(sequence);
    if n_stages == 0 || n_stages > n_layers {
        return Vec::new();
    }
    let inner = (1..n_stages).map(|stage| first + stage * n_layers / n_stages);
    inner.chain([sequence.len()]).collect()
}

fn fits(path: &str, job: &Job, costs: &Cost) -> Verdict {
    let devices = format!("{path}.devices");
    require(costs.devices <= job.devices, devices, "a plan", "more devices than there are")?;
    for (rank, cost) in costs.ranks.iter().enumerate() {
        let (needed, available) = (cost.memory.total(), u128::from(job.memory));
        let at = format!("{path}.ranks[{rank}].memory");
        require(needed <= available, at, available, format!("{needed} bytes"))?;
    }
    Ok(())
}
