//! What a strategy is chosen by.
//!
//! To add a price, add a variant here, say what it is of a way to train ([`Price::of`]) and what no
//! strategy of a shape can beat (`priced`); objectives of a search name the price that they need.

use serde::Deserialize;
use serde::Serialize;

use crate::units::Energy;
use crate::units::Time;

/// What is made as small as possible over strategies: degrees, micro-batch and recompute, each with
/// its fastest cut into stages, because nobody slows a pipeline down on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Price {
    /// The time of a batch.
    #[default]
    Time,
    /// The energy of a batch, all devices together.
    Energy,
}

/// How a way to train does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Time of a batch.
    pub time: Time,
    /// Energy of a batch, all devices.
    pub energy: Energy,
}

impl Price {
    /// The price of a way to train, in picoseconds or femtojoules.
    pub fn of(self, standing: Standing) -> u128 {
        match self {
            Self::Time => standing.time.0.into(),
            Self::Energy => standing.energy.0,
        }
    }
}

impl Standing {
    /// Average power of each of `devices` in use, in watts.
    pub fn average_power(&self, devices: u64) -> f64 {
        self.energy.joules() / (self.time.seconds() * devices as f64)
    }
}
