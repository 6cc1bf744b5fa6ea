//! The energy of a batch, by definition: all operators on all devices, what crosses the network,
//! the optimizer's steps, and power at rest.

use crate::hardware::Use;
use crate::model::Optimizer;
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

/// How often a stage runs its forward pass for one micro-batch.
pub fn forward_passes(recompute: Recompute, is_last: bool) -> u64 {
    match recompute {
        Recompute::None => 1,
        Recompute::Full => 2,
        Recompute::Stage => 2 - u64::from(is_last),
    }
}

/// Femtojoules of a batch, all devices together.
pub fn of_batch(batch: &Batch) -> Energy {
    let Batch { profile, job, placement, costs, place, .. } = batch;
    let last = placement.pipeline.n_stages() - 1;
    let mut computing = Energy::ZERO;
    let mut stepping = Energy::ZERO;
    for (stage, layers) in placement.pipeline.stages().enumerate() {
        for &layer in layers {
            let [forward, backward] = batch.passes[profile.sequence[layer]];
            computing += forward * forward_passes(placement.recompute, stage == last) + backward;
        }
        let parameters = layers.iter().map(|&layer| profile.layer(layer).parameters).sum();
        let step = price(&batch.optimizer.step(parameters), *place, Use::Spread, None);
        stepping += step.map_or(Energy::ZERO, |step| step.energy);
    }
    // Each boundary between stages is crossed once forward and once backward.
    let mut sent = 0_u128;
    for start in placement.pipeline.stages().skip(1).filter_map(|layers| layers.first()) {
        let entering = profile.edges.iter().filter(|edge| edge.to == *start);
        sent += entering.map(|edge| u128::from(edge.size)).sum::<u128>();
    }
    let sent = sent * 2 * u128::from(job.micro_batches);
    let replicas = u128::from(placement.data_parallel);
    let parameters: u128 = profile.layers().map(|layer| u128::from(layer.parameters)).sum();
    let exchanged = 2 * (replicas - 1) * parameters * u128::from(job.per_parameter.gradient);
    let per_byte = u128::from(place.chip.vector(Use::Spread).network_fj_per_byte);
    // A microwatt for a picosecond is a thousandth of a femtojoule.
    let time = costs.time_per_batch.min(u128::from(u64::MAX));
    let at_rest = Energy(place.chip.static_power_uw() * time / 1000) * costs.devices;
    computing * job.micro_batches * profile.width
        + Energy((sent + exchanged) * per_byte) * profile.width
        + stepping * profile.width * placement.data_parallel
        + at_rest
}
