//! The energy of a batch: all operators on all devices, what crosses the network, and power at
//! rest.
//!
//! Network energy per byte and power at rest per area are assumptions of the hardware file.

use super::roofline::FLOAT_ERROR;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::model::Optimizer;
use crate::parallel::Parameters;
use crate::parallel::zero::Zero;
use crate::plan::Edge;
use crate::plan::Job;
use crate::plan::Placement;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageRules;
use crate::profile::LayerPasses;
use crate::units::Energy;
use crate::units::Time;

/// What the energy of a batch depends on besides its placement.
#[derive(Clone, Copy)]
pub struct BatchEnergy<'a> {
    /// By kind of layer.
    pub passes: &'a [LayerPasses],
    /// The layers.
    pub profile: &'a Profile,
    /// Parameters of all layers on one device of each stage.
    pub parameters: Parameters,
    /// What was asked of the placement.
    pub job: &'a Job,
    /// What it runs on.
    pub chip: &'a Accelerator,
    /// Whose step ends a batch.
    pub optimizer: Optimizer,
    /// What the step is asked from.
    pub table: &'a EstimateTable,
    /// The devices.
    pub cluster: &'a Cluster,
}

/// What [`BatchEnergy::least`] needs to know of all cuts at once.
#[derive(Clone, Copy, Debug)]
pub struct EnergyFloor {
    computing: Energy,
    /// One more forward pass of the repeated layer for each micro-batch.
    again: Energy,
    /// The least time of all devices together: so many picoseconds, and more for each forward pass that is repeated.
    busy: [u128; 2],
    sent: u64,
}

impl BatchEnergy<'_> {
    /// Femtojoules of a batch placed so, on so many devices for so long, all devices together.
    pub fn of(&self, placement: &Placement, devices: u64, time: Time) -> Energy {
        self.computing(placement)
            + self.network(&placement.shape(), self.sent_between_stages(placement))
            + self.steps(placement)
            + self.at_rest(devices, time)
    }

    /// What no cut can beat in computing, and in bytes sent at each boundary between stages, where a kind of layer is
    /// repeated as often as memory asks for.
    pub fn floor(&self, (recompute, repeated): (Recompute, usize)) -> EnergyFloor {
        let forwards = u64::from(recompute == Recompute::Full);
        let layers = self.profile.sequence.iter().map(|&kind| {
            let passes = &self.passes[kind];
            passes.forward.energy * (1 + forwards) + passes.backward.energy
        });
        let computing = layers.sum::<Energy>() * self.job.micro_batches * self.sharers();
        let sizes = self.profile.edges.iter().map(Edge::sent);
        let sent = if self.profile.is_chain() { sizes.min().unwrap_or(0) } else { 0 };
        let each = self.job.micro_batches * self.sharers();
        let again = self.passes.get(repeated).map_or(Energy::ZERO, |of| of.forward.energy) * each;
        let wide = |time: u128| time * u128::from(self.job.micro_batches);
        let kinds = || self.profile.sequence.iter().map(|&kind| &self.profile.kinds[kind]);
        let load = kinds().map(|layer| {
            u128::from(layer.forward) * u128::from(1 + forwards) + u128::from(layer.backward)
        });
        let load = load.sum();
        let repeated = self.profile.kinds.get(repeated).map_or(0, |layer| layer.forward.into());
        EnergyFloor { computing, again, busy: [wide(load), wide(repeated)], sent }
    }

    /// Femtojoules that no cut of a shape can beat, whose stages take so many devices each, for at least so long,
    /// where at least so many forward passes of the repeated layer are run again for each micro-batch.
    pub fn least(
        &self,
        (floor, repeats): (EnergyFloor, f64),
        shape: &Shape,
        each: u64,
        time: Time,
    ) -> Energy {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "neither is negative; rounding down is wanted"
        )]
        let part = |of: u128| (of as f64 * repeats * (1.0 - FLOAT_ERROR)) as u128;
        let devices = shape.data_parallel * each * shape.ranks as u64;
        let busy = (floor.busy[0] + part(floor.busy[1])) * u128::from(each);
        // Each device may round down.
        let at_rest = (self.chip.static_power_uw() * busy / 1000).saturating_sub(devices.into());
        floor.computing
            + Energy(part(floor.again.0))
            + self.network(shape, floor.sent * (shape.ranks as u64 - 1))
            + self.at_rest(devices, time).max(Energy(at_rest))
    }

    /// Devices that share a layer and its sequences.
    fn sharers(&self) -> u64 {
        self.profile.width * self.profile.context
    }

    /// All passes of a batch on all devices.
    fn computing(&self, placement: &Placement) -> Energy {
        let pipeline = &placement.pipeline;
        let last = pipeline.n_stages() - 1;
        let rules = StageRules::new(self.profile, self.job, placement.shape());
        let stage = |(at, layers): (usize, &[usize])| -> Energy {
            let mut left = match placement.recompute {
                Recompute::None => 0,
                Recompute::Full => usize::MAX,
                Recompute::Stage => {
                    if at == last {
                        0
                    } else {
                        usize::MAX
                    }
                }
                Recompute::First(_) | Recompute::AsNeeded => rules.stage(at, layers).repeated,
            };
            let one_by_one =
                matches!(placement.recompute, Recompute::First(_) | Recompute::AsNeeded);
            let layer = |&layer: &usize| {
                let may = !one_by_one || self.profile.layer(layer).repeatable;
                let again = u64::from(left > 0 && may);
                left -= usize::from(again > 0 && left < usize::MAX);
                let passes = &self.passes[self.profile.sequence[layer]];
                passes.forward.energy * (1 + again) + passes.backward.energy
            };
            layers.iter().map(layer).sum()
        };
        let one = pipeline.stages().enumerate().map(stage).sum::<Energy>();
        one * self.job.micro_batches * self.sharers()
    }

    /// What crosses between devices: `sent` bytes to later stages for each micro-batch, as much
    /// back, and what replicas exchange after the passes. In a ring of n members a reduction or a
    /// gathering moves all but an n-th of the tensor through each.
    fn network(&self, shape: &Shape, sent: u64) -> Energy {
        let sends = u128::from(sent) * 2 * u128::from(self.job.micro_batches);
        let replicas = shape.data_parallel * self.profile.context;
        let groups = (replicas / shape.shards.unwrap_or(replicas)).max(1);
        let of_experts = shape.expert_replicas(self.profile);
        let dense = self.among(shape.zero, (replicas, groups), self.parameters.dense);
        let experts = self.among(shape.zero, (of_experts, groups), self.parameters.experts);
        // Each part of the experts is held by one of so many devices.
        let owners = self.profile.expert_devices.unwrap_or(0);
        let per_byte = u128::from(self.chip.vector(Use::Spread).network_fj_per_byte);
        let sends = sends * u128::from(self.profile.context);
        Energy((sends + dense) * per_byte) * self.profile.width
            + Energy(experts * per_byte) * owners
    }

    /// Bytes that replicas of so many parameters send each other after the passes, in so many groups
    /// that share.
    fn among(&self, zero: Zero, (replicas, groups): (u64, u64), parameters: u64) -> u128 {
        let per = &self.job.per_parameter;
        let gradients = u128::from(parameters) * u128::from(per.reduced());
        let weights = u128::from(parameters) * u128::from(per.weight);
        let (replicas, groups) = (u128::from(replicas), u128::from(groups.min(replicas)));
        let shards = replicas / groups;
        let among_shards = match zero {
            Zero::Nothing => return 2 * (replicas - 1) * gradients,
            Zero::State => (shards - 1) * (gradients + weights) * groups,
            Zero::Gradients => (shards - 1) * weights * groups,
            Zero::Weights => 0,
        };
        among_shards + 2 * (groups - 1) * gradients
    }

    /// Bytes that one device of the width sends to later stages for one micro-batch.
    fn sent_between_stages(&self, placement: &Placement) -> u64 {
        let mut stage_of = vec![0; self.profile.n_layers()];
        for (stage, layers) in placement.pipeline.stages().enumerate() {
            for &layer in layers {
                stage_of[layer] = stage;
            }
        }
        let crossing =
            self.profile.edges.iter().filter(|edge| stage_of[edge.from] != stage_of[edge.to]);
        crossing.map(Edge::sent).sum()
    }

    /// The optimizer's step on all devices.
    fn steps(&self, placement: &Placement) -> Energy {
        let replicas = placement.data_parallel * self.profile.context;
        let sharding = placement.shape().sharding(self.profile);
        let stage = |layers: &[usize]| -> Energy {
            let own = layers.iter().map(|&layer| self.profile.layer(layer).by_replicas()).sum();
            let own = sharding.stepped(own);
            let step = self.optimizer.step_by(self.chip.efficiency().kernels, own);
            let found = self.table.estimate(&step, self.chip, self.cluster, Use::Spread);
            found.map_or(Energy::ZERO, |estimate| estimate.energy)
        };
        let all: Energy = placement.pipeline.stages().map(stage).sum();
        all * self.profile.width * replicas
    }

    /// Power at rest of all devices in use.
    fn at_rest(&self, devices: u64, time: Time) -> Energy {
        // A microwatt for a picosecond is 10⁻¹⁸ J, a thousandth of a femtojoule.
        let one = self.chip.static_power_uw() * u128::from(time.0) / 1000;
        Energy(one) * devices
    }
}
