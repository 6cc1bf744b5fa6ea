//! What a stage holds in memory, and what it may drop and compute again.

use serde::Deserialize;
use serde::Serialize;

use super::Job;
use super::Profile;

/// What is dropped after the forward pass and computed again before the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recompute {
    /// Nothing: every activation is kept.
    None,
    /// Each layer keeps its input only, in every stage.
    Full,
    /// Each stage keeps its inputs only, and runs its whole forward pass again; the last stage,
    /// whose backward pass follows at once, keeps everything.
    Stage,
}

/// The memory of one device of a stage, by what it holds.
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
}

impl Recompute {
    /// All choices, the cheapest to run first.
    pub const ALL: [Self; 3] = [Self::None, Self::Full, Self::Stage];
}

impl std::fmt::Display for Recompute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Stage => "stage",
        })
    }
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u128 {
        self.weights + self.gradients + self.optimizer_state + self.activations
    }
}

/// Parameters of the stage that holds `layers`, with the copy of a tied table where it has one.
pub(super) fn parameters(profile: &Profile, layers: &[usize]) -> u64 {
    let own: u64 = layers.iter().map(|&layer| profile.layer(layer).parameters).sum();
    let holds = |layer: usize| layers.contains(&layer);
    let copied = holds(profile.n_layers() - 1) && !holds(0);
    own + if copied { profile.tied } else { 0 }
}

/// The memory of the stage that holds `layers` while `in_flight` micro-batches are between their
/// forward and their backward pass there.
pub(super) fn memory(
    profile: &Profile,
    job: &Job,
    layers: &[usize],
    recompute: Recompute,
    in_flight: u64,
) -> Memory {
    let parameters = u128::from(parameters(profile, layers));
    let activations = |layer: usize| u128::from(profile.layer(layer).activations);
    let all: u128 = layers.iter().map(|&layer| activations(layer)).sum();
    let inputs = |enters_from_outside: bool| -> u128 {
        let read_here = profile.edges.iter().filter(|edge| layers.contains(&edge.to));
        let counted = read_here.filter(|edge| !enters_from_outside || !layers.contains(&edge.from));
        counted.map(|edge| u128::from(edge.size)).sum()
    };
    let in_flight = u128::from(in_flight);
    let activations = match recompute {
        Recompute::None => in_flight * all,
        Recompute::Stage => in_flight.saturating_sub(1) * inputs(true) + all,
        Recompute::Full => {
            let largest = layers.iter().map(|&layer| activations(layer)).max().unwrap_or(0);
            in_flight * inputs(false) + largest
        }
    };
    Memory {
        weights: parameters * u128::from(job.per_parameter.weight),
        gradients: parameters * u128::from(job.per_parameter.gradient),
        optimizer_state: parameters * u128::from(job.per_parameter.state),
        activations,
    }
}
