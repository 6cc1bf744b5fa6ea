//! What a rank holds in memory, and what it may drop and compute again.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use super::Profile;
use super::repeated::KeptLayer;
use super::repeated::fewest_repeated;
use super::repeated::kept;
use crate::parallel::Parameters;

/// What is dropped after the forward pass and computed again before the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Recompute {
    /// Nothing: every activation is kept.
    None,
    /// Each layer keeps its input only, in every stage.
    Full,
    /// Each stage keeps its inputs only, and runs its whole forward pass again; the last stage,
    /// whose backward pass follows at once, keeps everything.
    Stage,
    /// The first so many layers of every stage keep their input only.
    First(u64),
    /// In every stage, the fewest first layers keep their input only with which it fits.
    AsNeeded,
}

/// The memory of one device of a rank, by what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The parameters themselves.
    pub weights: u128,
    /// Their gradients.
    pub gradients: u128,
    /// What the optimizer keeps.
    pub optimizer_state: u128,
    /// What is kept for the backward passes of all micro-batches in flight.
    pub activations: u128,
    /// What is whole for a while of what replicas share.
    #[serde(default)]
    pub gathered: u128,
    /// What the running pass holds for a moment.
    #[serde(default)]
    pub working: u128,
}

impl Recompute {
    /// The choices that hold for any layers, the cheapest to run first.
    pub const ALL: [Self; 3] = [Self::None, Self::Full, Self::Stage];

    /// Every layer that can be repeated by itself keeps its input only.
    pub const EVERY_LAYER: Self = Self::First(u64::MAX);
}

impl fmt::Display for Recompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Stage => f.write_str("stage"),
            Self::First(u64::MAX) => f.write_str("every-layer"),
            Self::First(layers) => write!(f, "first:{layers}"),
            Self::AsNeeded => f.write_str("as-needed"),
        }
    }
}

/// A text that names no choice of what to compute again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{found}\" is no recompute choice; allowed are none, full, stage, first:N, every-layer and as-needed"
)]
pub struct UnknownRecompute {
    /// What was found.
    pub found: String,
}

impl FromStr for Recompute {
    type Err = UnknownRecompute;

    fn from_str(name: &str) -> Result<Self, UnknownRecompute> {
        let unknown = || UnknownRecompute { found: name.to_owned() };
        match name {
            "none" => Ok(Self::None),
            "full" => Ok(Self::Full),
            "stage" => Ok(Self::Stage),
            "every-layer" => Ok(Self::EVERY_LAYER),
            "as-needed" => Ok(Self::AsNeeded),
            _ => {
                let layers = name.strip_prefix("first:").ok_or_else(unknown)?;
                layers.parse().map(Self::First).map_err(|_| unknown())
            }
        }
    }
}

impl TryFrom<String> for Recompute {
    type Error = UnknownRecompute;

    fn try_from(name: String) -> Result<Self, UnknownRecompute> {
        name.parse()
    }
}

impl From<Recompute> for String {
    fn from(recompute: Recompute) -> Self {
        recompute.to_string()
    }
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u128 {
        self.weights
            + self.gradients
            + self.optimizer_state
            + self.activations
            + self.gathered
            + self.working
    }
}

/// Parameters of the stage that holds `layers`, with the copy of a tied table where it has one.
pub(super) fn parameters(profile: &Profile, layers: &[usize]) -> Parameters {
    let own: Parameters = layers.iter().map(|&layer| profile.layer(layer).by_replicas()).sum();
    own + Parameters::dense(copied(profile, layers))
}

/// Parameters of the copy of a tied table that a stage needs: it holds the last layer but not the
/// first.
pub(super) fn copied(profile: &Profile, layers: &[usize]) -> u64 {
    let holds = |layer: usize| layers.contains(&layer);
    if profile.tied > 0 && holds(profile.n_layers() - 1) && !holds(0) { profile.tied } else { 0 }
}

/// What a stage keeps of its activations, as a number of micro-batches in flight makes of it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Layers that may run their forward pass again, in order.
    layers: Vec<KeptLayer>,
    /// What the others keep of one micro-batch.
    others: u128,
    /// What the layers read, of one micro-batch: each, and from outside the stage.
    inputs: u128,
    entering: u128,
    /// What all keep of one micro-batch, and what one of them keeps at most.
    all: u128,
    largest: u128,
}

impl Kept {
    /// Of the stage that holds `layers`, where layers are repeated by this choice; `inputs` is what
    /// each layer of the profile reads.
    pub(super) fn new(
        profile: &Profile,
        inputs: &[u64],
        layers: &[usize],
        recompute: Recompute,
    ) -> Self {
        let mut kept = Self {
            layers: Vec::new(),
            others: 0,
            inputs: 0,
            entering: if recompute == Recompute::Stage {
                entering(profile, inputs, layers)
            } else {
                0
            },
            all: 0,
            largest: 0,
        };
        if matches!(recompute, Recompute::First(_) | Recompute::AsNeeded) {
            kept.layers.reserve(layers.len());
        }
        for &layer in layers {
            let all = profile.layer(layer).activations;
            kept.all += u128::from(all);
            kept.inputs += u128::from(inputs[layer]);
            kept.largest = kept.largest.max(all.into());
            if profile.layer(layer).repeatable {
                kept.layers.push(KeptLayer { all, input: inputs[layer].min(all) });
            } else {
                kept.others += u128::from(all);
            }
        }
        kept
    }

    /// How many of the layers run their forward pass again, where `room` is left for activations.
    pub(super) fn repeated(&self, recompute: Recompute, in_flight: u64, room: u128) -> usize {
        match recompute {
            Recompute::None | Recompute::Stage | Recompute::Full => 0,
            Recompute::First(layers) => {
                usize::try_from(layers).unwrap_or(usize::MAX).min(self.layers.len())
            }
            Recompute::AsNeeded => {
                let others = self.others * u128::from(in_flight);
                let fewest = room
                    .checked_sub(others)
                    .and_then(|room| fewest_repeated(&self.layers, in_flight, room));
                fewest.unwrap_or(self.layers.len())
            }
        }
    }

    /// Bytes with `in_flight` micro-batches between their forward and their backward pass.
    pub(super) fn bytes(&self, recompute: Recompute, repeated: usize, in_flight: u64) -> u128 {
        let many = u128::from(in_flight);
        match recompute {
            Recompute::None => many * self.all,
            Recompute::Stage => many.saturating_sub(1) * self.entering + self.all,
            Recompute::Full => many * self.inputs + self.largest,
            Recompute::First(_) | Recompute::AsNeeded => {
                many * self.others + kept(&self.layers, repeated, in_flight)
            }
        }
    }
}

/// What the layers of a stage read from outside it.
fn entering(profile: &Profile, inputs: &[u64], layers: &[usize]) -> u128 {
    match layers.first() {
        Some(&first) if profile.is_plain_chain() => inputs[first].into(),
        _ => {
            let enters = profile
                .edges
                .iter()
                .filter(|edge| layers.contains(&edge.to) && !layers.contains(&edge.from));
            enters.map(|edge| u128::from(edge.size)).sum()
        }
    }
}
