//! The energy of a batch, by definition: all operators on all devices, what crosses the network,
//! the optimizer's steps, and power at rest.

use crate::hardware::Use;
use crate::model::Optimizer;
use crate::parallel::zero::Zero;
use crate::plan::Cost;
use crate::plan::Job;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::units::Energy;

use super::operator::Place;
use super::operator::price;

/// A batch that was placed.
pub struct Batch<'a> {
    /// By kind of layer: of the forward and the backward pass on one device.
    pub passes: &'a [[Energy; 2]],
    /// The layers.
    pub profile: &'a Profile,
    /// What was asked.
    pub job: &'a Job,
    /// Which layers are where.
    pub placement: &'a Placement,
    /// What that costs.
    pub costs: &'a Cost,
    /// What steps over the parameters.
    pub optimizer: Optimizer,
    /// Where it runs.
    pub place: Place<'a>,
}

/// Whether each layer of a virtual stage runs its forward pass twice for a micro-batch, where that
/// stage has this number and repeats so many layers one by one.
pub fn repeats(
    profile: &Profile,
    placement: &Placement,
    layers: &[usize],
    (stage, one_by_one): (usize, usize),
) -> Vec<bool> {
    let is_last = stage + 1 == placement.pipeline.n_stages();
    let mut left = one_by_one;
    let again = |&layer: &usize| match placement.recompute {
        Recompute::None => false,
        Recompute::Full => true,
        Recompute::Stage => !is_last,
        Recompute::First(_) | Recompute::AsNeeded => {
            let again = profile.layer(layer).repeatable && left > 0;
            left -= usize::from(again);
            again
        }
    };
    layers.iter().map(again).collect()
}

/// Femtojoules of a batch, all devices together.
pub fn of_batch(batch: &Batch) -> Energy {
    let Batch { profile, job, placement, costs, place, .. } = batch;
    let replicas = placement.data_parallel * profile.context;
    let shards = placement.shards.unwrap_or(replicas);
    let owners = profile.expert_devices.unwrap_or(profile.width);
    let of_experts = (profile.width * replicas / owners).max(1);
    let expert_shards = (of_experts * shards / replicas).max(1);
    let mut computing = Energy::ZERO;
    let mut stepping = Energy::ZERO;
    for (stage, layers) in placement.pipeline.stages().enumerate() {
        let one_by_one = costs.stages[stage].repeated;
        let again = repeats(profile, placement, layers, (stage, one_by_one));
        for (&layer, again) in layers.iter().zip(again) {
            let [forward, backward] = batch.passes[profile.sequence[layer]];
            computing += forward * (1 + u64::from(again)) + backward;
        }
        let [parameters, experts] = totals(profile, layers);
        let own = match placement.zero {
            Zero::Nothing => parameters + experts,
            // Held by the same devices, both are shared as one.
            _ if of_experts == replicas => (parameters + experts).div_ceil(shards),
            _ => parameters.div_ceil(shards) + experts.div_ceil(expert_shards),
        };
        let step = batch.optimizer.step_by(place.chip.efficiency().kernels, own);
        let step = price(&step, *place, Use::Spread, None);
        stepping += step.map_or(Energy::ZERO, |step| step.energy);
    }
    let per_byte = u128::from(place.chip.vector(Use::Spread).network_fj_per_byte);
    let every: Vec<usize> = (0..profile.n_layers()).collect();
    let [dense, experts] = totals(profile, &every);
    let moved =
        sent(batch) * u128::from(profile.context) + exchanged(batch, dense, replicas, shards);
    let of_experts = exchanged(batch, experts, of_experts, expert_shards);
    // A microwatt for a picosecond is a thousandth of a femtojoule.
    let time = costs.time_per_batch.min(u128::from(u64::MAX));
    let at_rest = Energy(place.chip.static_power_uw() * time / 1000) * costs.devices;
    computing * job.micro_batches * (profile.width * profile.context)
        + Energy(moved * per_byte) * profile.width
        + Energy(of_experts * per_byte) * owners
        + stepping * profile.width * replicas
        + at_rest
}

/// Parameters of these layers on one device: all but those of experts, and those.
fn totals(profile: &Profile, layers: &[usize]) -> [u64; 2] {
    let mut found = [0; 2];
    for &layer in layers {
        let layer = profile.layer(layer);
        found[0] += layer.parameters - layer.expert_parameters;
        found[1] += layer.expert_parameters;
    }
    found
}

/// Bytes between the stages of all pipelines, for one device of those that share a sequence: each
/// boundary is crossed once forward and once backward for every micro-batch.
fn sent(batch: &Batch) -> u128 {
    let Batch { profile, job, placement, .. } = batch;
    let mut sent = 0_u128;
    for start in placement.pipeline.stages().skip(1).filter_map(|layers| layers.first()) {
        let entering = profile.edges.iter().filter(|edge| edge.to == *start);
        sent += entering.map(|edge| u128::from(edge.sent())).sum::<u128>();
    }
    sent * 2 * u128::from(job.micro_batches)
}

/// Bytes of gradients and weights among replicas after the passes, for all of them together: in a
/// ring of n a reduction or a gathering moves n − 1 times the tensor, a sum for all twice that.
/// Where `shards` share, each of their groups has a ring, and the copies of a shard another.
fn exchanged(batch: &Batch, parameters: u64, replicas: u64, shards: u64) -> u128 {
    let Batch { job, placement, .. } = batch;
    let parameters = u128::from(parameters);
    let gradients = parameters * u128::from(job.per_parameter.reduced());
    let weights = parameters * u128::from(job.per_parameter.weight);
    let (replicas, shards) = (u128::from(replicas), u128::from(shards.max(1)));
    let groups = replicas / shards;
    let steps = shards - 1;
    let inside = match placement.zero {
        Zero::Nothing => return 2 * (replicas - 1) * gradients,
        Zero::State => groups * steps * (gradients + weights),
        // Gradients are scattered inside the passes, and so are weights gathered.
        Zero::Gradients => groups * steps * weights,
        Zero::Weights => 0,
    };
    inside + 2 * groups.saturating_sub(1) * gradients
}
