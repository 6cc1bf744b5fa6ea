//! What is the best way to train a model on **one** chip, and what can none beat?
//!
//! In: a model made ready ([`Training`]) on given [`Terms`], and a chip. Out: the [`Best`] strategy
//! by its [`Price`], exactly, with the placement that it rests on ([`Planner`]); and bounds that
//! need no estimate ([`SpaceBound`]).
//!
//! `place` and `search` ask here alike. Not here: which chip is best (see `search`), and how layers
//! are cut into stages (see `placement`).

mod best;
mod bound;
mod brute_force;
mod cheapest;
mod corner;
mod energy;
mod facts;
mod fastest;
mod frugal;
mod guess;
mod laws;
mod least_energy;
mod pipeline_bound;
mod pipeline_memory;
mod price;
pub mod result;
pub mod roofline;
mod shares;
mod space_bound;
mod terms;
mod training;

pub use best::Best;
pub use best::Planner;
pub use best::Untimed;
pub use best::Way;
pub use best::Within;
pub use corner::Corner;
pub use corner::Heard;
pub use corner::Reach;
pub use corner::Reached;
pub use energy::BatchEnergy;
pub use facts::Rates;
pub use frugal::EnergyReach;
pub use price::Price;
pub use price::Standing;
pub use shares::Shares;
pub use space_bound::Figures;
pub use space_bound::SpaceBound;
pub use space_bound::Variant;
pub use space_bound::VariantName;
pub use terms::Terms;
pub use terms::ends;
pub use terms::usable;
pub use training::Division;
pub use training::Sharded;
pub use training::Training;
pub use training::Untrainable;
pub use training::settings;
pub use training::shardings;

use serde::Deserialize;
use serde::Serialize;

use crate::plan::Strategy;

/// The best way to train one model on one chip, in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// How good it is.
    pub standing: Standing,
    /// The price if every schedule that is not proved ended at its bound; else the price itself.
    pub least_price: u128,
    /// How the model is divided.
    pub strategy: Strategy,
    /// Devices in use.
    pub devices: u64,
}

impl Chosen {
    /// Average power of a device in use, in watts.
    pub fn average_power(&self) -> f64 {
        self.standing.average_power(self.devices)
    }

    /// The part of the price that is certain where some schedule is not proved; else 1.
    pub fn certain_part(&self, price: Price) -> f64 {
        self.least_price as f64 / price.of(self.standing).max(1) as f64
    }
}
