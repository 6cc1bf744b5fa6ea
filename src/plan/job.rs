//! What is asked of a placement, beside the layers themselves.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::Serialize;

use super::Flaw;
use super::Links;
use super::Profile;
use super::StepStart;
use super::wiring::Wiring;
use crate::parallel::Grid;
use crate::parallel::Order;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Zero;
use crate::units::Bytes;

/// How the time of a batch follows from its stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeModel {
    /// The published closed form: the slowest load for every micro-batch and every stage, then
    /// the gradients of the first stage at twice a ring's cost.
    #[serde(rename = "published")]
    Published,
    /// One forward, one backward, or its interleaved form: as the passes follow each other, then
    /// what follows the last of each rank.
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
}

impl std::fmt::Display for TimeModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Published => "published",
            Self::OneForwardOneBackward => "1f1b",
        })
    }
}

/// What one parameter costs a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerParameter {
    /// Size of the parameter itself.
    pub weight: u64,
    /// Size of its gradient.
    pub gradient: u64,
    /// Size of the gradient as data-parallel devices exchange it, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged: Option<u64>,
    /// Size of what the optimizer keeps.
    pub state: u64,
    /// Ticks of the optimizer step for every 2³⁰ parameters.
    pub step_per_gibi: u64,
}

impl PerParameter {
    /// Size of the gradient as data-parallel devices exchange it.
    pub fn reduced(&self) -> u64 {
        self.exchanged.unwrap_or(self.gradient)
    }
}

/// Which gradients are exchanged together while the last backward pass still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Buckets {
    /// Those of a whole virtual stage, when its last backward pass has ended.
    Stages,
    /// Those of each layer.
    Layers,
    /// On the first rank's first virtual stage those of so many parameters, at least `least` and
    /// `per_replica` for each replica; everywhere else those of a whole virtual stage.
    FirstRank {
        /// Parameters.
        least: u64,
        /// Parameters for each replica.
        per_replica: u64,
    },
    /// However they are exchanged, and new weights gathered: so many thousandths of both run beside
    /// passes, as was measured.
    Hidden {
        /// Thousandths.
        per_mille: u16,
    },
}

impl Buckets {
    /// Ticks of an exchange that surely do not run beside passes, of those that it takes.
    pub fn waited_for(self, ticks: u64) -> u64 {
        match self {
            Self::Stages | Self::Layers | Self::FirstRank { .. } => ticks,
            Self::Hidden { per_mille } => {
                let left = u128::from(1000_u16.saturating_sub(per_mille));
                u64::try_from((u128::from(ticks) * left).div_ceil(1000)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Behind which passes exchanges hide that run beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hiding {
    /// Behind those of the profile.
    #[default]
    Own,
    /// Behind longer ones too, where the batch need not grow with them: what no passes hide is
    /// counted. Bounds over many chips ask for it, and no plan is made by it (docs/search.md, the
    /// laws).
    Longer,
}

/// What follows the passes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndRules {
    /// When a rank may step.
    pub step_start: StepStart,
    /// Which gradients are exchanged together.
    pub buckets: Buckets,
    /// What hides them; of saved plans always their own passes.
    #[serde(skip)]
    pub hiding: Hiding,
}

impl EndRules {
    /// Each rank exchanges all of its gradients when it has done its last pass, and steps.
    pub const PLAIN: Self =
        Self { step_start: StepStart::OwnGradients, buckets: Buckets::Stages, hiding: Hiding::Own };
}

/// What is trained with, and on how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Micro-batches in a batch.
    pub micro_batches: u64,
    /// Devices that may be used.
    pub devices: u64,
    /// Memory of one device that a plan may fill.
    pub memory: u64,
    /// Memory that one device has.
    pub installed: u64,
    /// What connects the devices.
    pub links: Links,
    /// What one parameter costs.
    pub per_parameter: PerParameter,
    /// How the time of a batch is counted.
    pub time_model: TimeModel,
    /// What follows its passes.
    pub ends: EndRules,
}

impl Job {
    /// The most devices and micro-batches that are asked for: far beyond what exists, and small
    /// enough that no product of them overflows.
    pub const LARGEST_COUNT: u64 = 1 << 32;

    /// What a device holds and exchanges for each parameter.
    pub fn parameter_bytes(&self) -> ParameterBytes {
        let per = &self.per_parameter;
        ParameterBytes {
            weight: Bytes(per.weight),
            gradient: Bytes(per.gradient),
            reduced: Bytes(per.reduced()),
            state: Bytes(per.state),
        }
    }

    /// Micro-batches that each of `data_parallel` pipelines works on.
    pub fn micro_batches_per_pipeline(&self, data_parallel: u64) -> u64 {
        self.micro_batches.div_ceil(data_parallel.max(1))
    }

    /// Micro-batches between their forward and backward pass in a stage with `n_later` after it.
    pub fn in_flight(&self, n_later: u64, data_parallel: u64) -> u64 {
        match self.time_model {
            TimeModel::Published => n_later + 1,
            TimeModel::OneForwardOneBackward => {
                (n_later + 1).min(self.micro_batches_per_pipeline(data_parallel))
            }
        }
    }

    /// The devices of plain pipelines of so many stages: nothing shared, in the usual order.
    pub fn plain_wiring(&self, profile: &Profile, data_parallel: u64, stages: u64) -> Wiring<'_> {
        let Profile { width, context, expert_devices, .. } = *profile;
        let (data, pipeline) = (data_parallel, stages);
        let grid = Grid { tensor: width, context, data, pipeline, expert_devices };
        let replicas = data_parallel.saturating_mul(context);
        Wiring::new(self, grid, Order::default(), Zero::Nothing, replicas)
    }

    /// Ticks that no number of copies among these can beat for the same exchange.
    pub fn least_exchange(&self, parameters: u64, width: u64, copies: RangeInclusive<u64>) -> u64 {
        let size = parameters * self.per_parameter.reduced();
        self.links.least_all_reduce(size, width, copies, self.devices)
    }

    /// Ticks of the optimizer step over `parameters`, rounded up.
    pub fn optimizer_step(&self, parameters: u64) -> u64 {
        let ticks = u128::from(parameters) * u128::from(self.per_parameter.step_per_gibi);
        u64::try_from(ticks.div_ceil(1 << 30)).unwrap_or(u64::MAX)
    }

    /// Checks the profile, and that no sum over it can leave the range of integers.
    pub fn validate(&self, profile: &Profile) -> Result<(), Flaw> {
        profile.validate()?;
        let counts = [("devices", self.devices), ("micro-batches", self.micro_batches)];
        let degrees = [("width", profile.width), ("context degree", profile.context)];
        let experts = profile.expert_devices.map(|found| ("devices of experts", found));
        for (what, found) in counts.into_iter().chain(degrees).chain(experts) {
            if found == 0 || found > Self::LARGEST_COUNT {
                return Err(Flaw::Count { what, found });
            }
        }
        let PerParameter { weight, gradient, state, step_per_gibi, .. } = self.per_parameter;
        let reduced = self.per_parameter.reduced();
        if [weight, gradient, reduced, state].iter().any(|&size| size > Self::LARGEST_COUNT) {
            return Err(Flaw::TooLarge { what: "parameters' sizes" });
        }
        let sum = |of: fn(&Profile) -> u128| of(profile);
        let parameters =
            sum(|p| p.layers().map(|l| u128::from(l.parameters)).sum()) + u128::from(profile.tied);
        let gradients = parameters * u128::from(gradient.max(reduced));
        if gradients > Profile::LARGEST {
            return Err(Flaw::TooLarge { what: "gradients" });
        }
        // Each tensor is waited for at most twice, forward and backward. A ring of n devices
        // moves a tensor at most twice in 2·n messages, and the published model counts it double.
        let sends = profile.edges.iter().map(|e| self.links.slowest_send(u128::from(e.size)));
        let sends = sends.fold(0, u128::saturating_add).saturating_mul(2);
        let messages = self.links.slowest_send(0).saturating_mul(4 * u128::from(self.devices));
        let ring = self.links.slowest_send(gradients).saturating_mul(4).saturating_add(messages);
        let step = parameters.saturating_mul(u128::from(step_per_gibi)) >> 30;
        let all = sends.saturating_add(ring).saturating_add(step);
        if all > Profile::LARGEST {
            return Err(Flaw::TooLarge { what: "exchanges" });
        }
        Ok(())
    }
}
