//! The energy of a batch: all operators on all devices, what crosses the network, and power at
//! rest.
//!
//! Network energy per byte and power at rest per area are assumptions of the hardware file.

use super::training::Division;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::model::Optimizer;
use crate::placement::Found;
use crate::placement::profile::LayerPasses;
use crate::plan::Job;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::units::Energy;
use crate::units::Time;

/// A batch that was placed.
pub struct Batch<'a> {
    pub passes: &'a [LayerPasses],
    pub profile: &'a Profile,
    pub job: &'a Job,
    pub found: &'a Found,
    pub chip: &'a Accelerator,
    pub optimizer: Optimizer,
    pub table: &'a EstimateTable,
    pub cluster: &'a Cluster,
}

/// Femtojoules of a batch, all devices together.
pub fn of_batch(batch: &Batch) -> Energy {
    let Batch { profile, job, found, chip, .. } = batch;
    let width = profile.width;
    let time = Time(u64::try_from(found.rank.time).unwrap_or(u64::MAX));
    let sends = sent_between_stages(batch) * 2 * job.micro_batches;
    let exchanged = exchanged_gradients(batch);
    let per_byte = chip.vector(Use::Spread).network_fj_per_byte;
    let network = Energy((u128::from(sends) + exchanged) * u128::from(per_byte)) * width;
    computing(batch) * job.micro_batches * width
        + network
        + steps(batch)
        + at_rest(chip, found.rank.devices, time)
}

/// Energy that no way to train can do without, where a batch has so many micro-batches and all
/// layers together load a stage with `load` picoseconds at the least: one multiplication for each
/// multiply-accumulate, each byte through HBM once, and power at rest while stages are loaded.
pub fn least(
    division: &Division,
    chip: &Accelerator,
    micro_batches: u64,
    recompute: Recompute,
    load: f64,
) -> Energy {
    let hbm_fj = chip.vector(Use::Spread).energies.hbm;
    let forward_passes = if recompute == Recompute::Full { 2 } else { 1 };
    let one_device = Energy(division.least_energy(hbm_fj, forward_passes));
    let loaded = division.devices_per_stage() as f64 * micro_batches as f64 * load;
    let at_rest = chip.static_power_uw() as f64 * loaded / 1000.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an energy is positive; lowered by more than the error of a few floats"
    )]
    let at_rest = Energy((at_rest * (1.0 - 1e-9)) as u128);
    one_device * micro_batches * division.share.setting.tensor_parallel + at_rest
}

/// All passes of one micro-batch through the pipeline, on one device of the width.
fn computing(batch: &Batch) -> Energy {
    let pipeline = &batch.found.placement.pipeline;
    let last = pipeline.n_stages() - 1;
    let recompute = batch.found.placement.recompute;
    let stage = |(at, layers): (usize, &[usize])| -> Energy {
        let again = match recompute {
            Recompute::None => 0,
            Recompute::Full => 1,
            Recompute::Stage => u64::from(at != last),
        };
        let layer = |&layer: &usize| {
            let passes = &batch.passes[batch.profile.sequence[layer]];
            passes.forward.energy * (1 + again) + passes.backward.energy
        };
        layers.iter().map(layer).sum()
    };
    pipeline.stages().enumerate().map(stage).sum()
}

/// Bytes that one device of the width sends to later stages for one micro-batch.
fn sent_between_stages(batch: &Batch) -> u64 {
    let mut stage_of = vec![0; batch.profile.n_layers()];
    for (stage, layers) in batch.found.placement.pipeline.stages().enumerate() {
        for &layer in layers {
            stage_of[layer] = stage;
        }
    }
    let crossing =
        batch.profile.edges.iter().filter(|edge| stage_of[edge.from] != stage_of[edge.to]);
    crossing.map(|edge| edge.size).sum()
}

/// Bytes that the replicas' rings move for one device of the width: each of d members sends its
/// gradients 2·(d − 1)/d times.
fn exchanged_gradients(batch: &Batch) -> u128 {
    let replicas = u128::from(batch.found.placement.data_parallel);
    let parameters: u64 = batch.profile.layers().map(|layer| layer.parameters).sum();
    let gradients = u128::from(parameters) * u128::from(batch.job.per_parameter.gradient);
    2 * (replicas - 1) * gradients
}

/// The optimizer's step on all devices.
fn steps(batch: &Batch) -> Energy {
    let pipeline = &batch.found.placement.pipeline;
    let stage = |layers: &[usize]| -> Energy {
        let parameters = layers.iter().map(|&layer| batch.profile.layer(layer).parameters).sum();
        let step = batch.optimizer.step(parameters);
        let found = batch.table.estimate(&step, batch.chip, batch.cluster, Use::Spread);
        found.map_or(Energy::ZERO, |estimate| estimate.energy)
    };
    let all: Energy = pipeline.stages().map(stage).sum();
    all * batch.profile.width * batch.found.placement.data_parallel
}

/// Power at rest of all devices in use.
fn at_rest(chip: &Accelerator, devices: u64, time: Time) -> Energy {
    // A microwatt for a picosecond is 10⁻¹⁸ J, a thousandth of a femtojoule.
    let one = chip.static_power_uw() * u128::from(time.0) / 1000;
    Energy(one) * devices
}
