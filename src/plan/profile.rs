//! What placement knows of a model: the time and the sizes of each layer, and what crosses
//! between layers, for one micro-batch on one device of a given tensor-parallel width.

use serde::Deserialize;
use serde::Serialize;

use crate::parallel::Parameters;

/// The time and the sizes of one kind of layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerProfile {
    /// What a reader knows it by.
    pub name: String,
    /// Ticks of the forward pass of one micro-batch.
    pub forward: u64,
    /// Ticks of the backward pass of one micro-batch.
    pub backward: u64,
    /// Parameters that one device holds: a count for models, a size for a user's own profiles.
    pub parameters: u64,
    /// Of these, parameters of experts, whose replicas are other devices than those of the rest.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub expert_parameters: u64,
    /// All activations that the layer keeps for one micro-batch.
    pub activations: u64,
    /// Whether the layer is divided over the devices of a width.
    pub tensor_parallel: bool,
    /// Ticks that the exchanges inside both passes take on the network; they are part of
    /// `forward` and `backward`, and may run beside computation there.
    #[serde(default)]
    pub collectives: u64,
    /// Of these, the ticks inside the backward pass.
    #[serde(default)]
    pub backward_collectives: u64,
    /// Of the exchanges of both passes, the ticks in which rows are sent to their experts and back.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub all_to_all: u64,
    /// What a running pass holds for a moment beside what is kept.
    #[serde(default)]
    pub working: u64,
    /// Of it, what is there beside the running pass of another layer too: the gradients of a head's
    /// weights.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub held_on: u64,
    /// Whether the layer may run its forward pass again by itself, keeping its input only.
    #[serde(default)]
    pub repeatable: bool,
}

/// A tensor that one layer makes and a later one reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The layer that makes it, by its place in the sequence.
    pub from: usize,
    /// The layer that reads it.
    pub to: usize,
    /// How much of it one device holds for one micro-batch.
    pub size: u64,
    /// How much of it one device sends, where devices that hold the same send a part each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
}

impl Edge {
    /// A tensor of which each device sends all that it holds.
    pub fn new(from: usize, to: usize, size: u64) -> Self {
        Self { from, to, size, part: None }
    }

    /// How much of it one device sends for one micro-batch.
    pub fn sent(&self) -> u64 {
        self.part.unwrap_or(self.size)
    }
}

/// The layers of a model at one width, in an order that no edge runs against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Devices that share a tensor-parallel layer.
    pub width: u64,
    /// Devices that share the tokens of each sequence.
    #[serde(default = "one")]
    pub context: u64,
    /// Devices that hold all experts together, each part of them once, where there are experts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_devices: Option<u64>,
    /// The distinct layers.
    pub kinds: Vec<LayerProfile>,
    /// The layers in order, each by its kind.
    pub sequence: Vec<usize>,
    /// What users call the layers, in the same order.
    pub ids: Vec<i64>,
    /// What crosses between layers.
    pub edges: Vec<Edge>,
    /// Parameters of an embedding table that the last layer shares with the first: where the two
    /// are in different stages, the last stage holds a copy. 0 where nothing is shared.
    #[serde(default)]
    pub tied: u64,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_nothing(size: &u64) -> bool {
    *size == 0
}

/// A profile that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Nothing to place.
    #[error("there are no layers")]
    NoLayers,
    /// A layer of a kind that is not there.
    #[error("layer {layer} is of kind {kind}, but there are {n_kinds} kinds")]
    UnknownKind {
        /// Its place.
        layer: usize,
        /// The kind it names.
        kind: usize,
        /// How many there are.
        n_kinds: usize,
    },
    /// As many ids as layers are needed, each once.
    #[error("{n_ids} different ids for {n_layers} layers")]
    Ids {
        /// How many different ids there are.
        n_ids: usize,
        /// How many layers there are.
        n_layers: usize,
    },
    /// An edge that leads nowhere or back.
    #[error(
        "the edge from layer {from} to layer {to} does not lead forward among {n_layers} layers"
    )]
    Backward {
        /// Its source.
        from: usize,
        /// Its target.
        to: usize,
        /// How many layers there are.
        n_layers: usize,
    },
    /// More parameters of experts than parameters.
    #[error("layer {name} has {experts} parameters of experts among {all} in all")]
    Experts {
        /// Its name.
        name: String,
        /// Of experts.
        experts: u64,
        /// All of them.
        all: u64,
    },
    /// A count of nothing, or of more than can be.
    #[error("there are {found} {what}; allowed are 1 to 2^32")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        found: u64,
    },
    /// Sums would leave the range of integers.
    #[error("the {what} of all layers together exceed 2^60")]
    TooLarge {
        /// Times or sizes.
        what: &'static str,
    },
}

impl LayerProfile {
    /// Its parameters by which devices hold the same.
    pub fn by_replicas(&self) -> Parameters {
        Parameters::with_experts(self.parameters, self.expert_parameters)
    }

    /// Ticks of the forward pass without exchanges among the devices that share the layer.
    pub fn forward_alone(&self) -> u64 {
        let exchanged = self.collectives.saturating_sub(self.backward_collectives);
        self.forward.saturating_sub(exchanged)
    }

    /// The same of the backward pass.
    pub fn backward_alone(&self) -> u64 {
        self.backward.saturating_sub(self.backward_collectives)
    }
}

impl Profile {
    /// How many devices hold the same parameters, where there are so many copies of the pipeline: of
    /// experts or of the others, whichever have more.
    pub fn most_replicas(&self, copies: u64) -> u64 {
        let sharers = self.width.saturating_mul(self.context);
        let of_experts =
            self.expert_devices.map_or(1, |owners| sharers.saturating_mul(copies) / owners);
        copies.saturating_mul(self.context).max(of_experts)
    }

    /// Times and sizes of a whole profile stay below this, so that sums of them cannot overflow.
    pub(super) const LARGEST: u128 = 1 << 60;

    /// How many layers there are.
    pub fn n_layers(&self) -> usize {
        self.sequence.len()
    }

    /// The layer at a place in the sequence.
    pub fn layer(&self, place: usize) -> &LayerProfile {
        &self.kinds[self.sequence[place]]
    }

    /// All layers in order.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &LayerProfile> + ExactSizeIterator {
        self.sequence.iter().map(|&kind| &self.kinds[kind])
    }

    /// Checks what the rest of the program relies on.
    pub fn validate(&self) -> Result<(), Flaw> {
        let n_layers = self.sequence.len();
        if n_layers == 0 {
            return Err(Flaw::NoLayers);
        }
        let n_kinds = self.kinds.len();
        if let Some(layer) = self.sequence.iter().position(|&kind| kind >= n_kinds) {
            return Err(Flaw::UnknownKind { layer, kind: self.sequence[layer], n_kinds });
        }
        let mut ids = self.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() != n_layers || self.ids.len() != n_layers {
            return Err(Flaw::Ids { n_ids: ids.len(), n_layers });
        }
        if let Some(edge) =
            self.edges.iter().find(|edge| edge.from >= edge.to || edge.to >= n_layers)
        {
            return Err(Flaw::Backward { from: edge.from, to: edge.to, n_layers });
        }
        let sum = |of: fn(&LayerProfile) -> u128| self.layers().map(of).sum::<u128>();
        // A forward pass may run twice.
        if sum(|layer| 2 * u128::from(layer.forward) + u128::from(layer.backward)) > Self::LARGEST {
            return Err(Flaw::TooLarge { what: "times" });
        }
        let too_many = |kind: &LayerProfile| kind.expert_parameters > kind.parameters;
        if let Some(kind) = self.kinds.iter().find(|kind| too_many(kind)) {
            let (experts, all) = (kind.expert_parameters, kind.parameters);
            return Err(Flaw::Experts { name: kind.name.clone(), experts, all });
        }
        let crossing: u128 = self.edges.iter().map(|edge| u128::from(edge.size)).sum();
        let parameters = sum(|layer| u128::from(layer.parameters)) + u128::from(self.tied);
        if parameters.max(sum(|layer| u128::from(layer.activations))).max(crossing) > Self::LARGEST
        {
            return Err(Flaw::TooLarge { what: "sizes" });
        }
        Ok(())
    }

    /// Whether each layer reads the one before it, and nothing else crosses.
    pub fn is_plain_chain(&self) -> bool {
        let next = |(place, edge): (usize, &Edge)| edge.from == place && edge.to == place + 1;
        self.edges.len() + 1 == self.n_layers() && self.edges.iter().enumerate().all(next)
    }

    /// What each layer reads of the others.
    pub fn inputs(&self) -> Vec<u64> {
        let mut inputs = vec![0; self.n_layers()];
        for edge in &self.edges {
            inputs[edge.to] += edge.size;
        }
        inputs
    }

    /// The same layers where as little travels between any two as between some.
    #[must_use]
    pub fn with_least_edges(&self) -> Self {
        let least = |of: fn(&Edge) -> u64| self.edges.iter().map(of).min().unwrap_or(0);
        let (size, sent) = (least(|edge| edge.size), least(Edge::sent));
        let part = (sent != size).then_some(sent);
        let edges = self.edges.iter().map(|edge| Edge { size, part, ..*edge });
        Self { edges: edges.collect(), ..self.clone() }
    }

    /// Whether every layer is followed by the next: then stages are runs of layers. Further edges
    /// may skip.
    pub fn is_chain(&self) -> bool {
        let mut joined = vec![false; self.n_layers()];
        for edge in self.edges.iter().filter(|edge| edge.from + 1 == edge.to) {
            joined[edge.to] = true;
        }
        joined.iter().skip(1).all(|&joined| joined)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A chain of layers with the given (forward, backward) times, 1 parameter and 1 activation
    /// each, that hand on `crossing`.
    pub(crate) fn chain(times: &[(u64, u64)], crossing: u64) -> Profile {
        let kinds = times.iter().map(|&(forward, backward)| LayerProfile {
            name: "layer".into(),
            forward,
            backward,
            parameters: 1,
            expert_parameters: 0,
            activations: 1,
            tensor_parallel: true,
            collectives: 0,
            backward_collectives: 0,
            all_to_all: 0,
            working: 0,
            held_on: 0,
            repeatable: true,
        });
        let n = times.len();
        Profile {
            width: 1,
            context: 1,
            expert_devices: None,
            kinds: kinds.collect(),
            sequence: (0..n).collect(),
            ids: (0..).take(n).collect(),
            edges: (1..n).map(|to| Edge::new(to - 1, to, crossing)).collect(),
            tied: 0,
        }
    }

    type Breaking = fn(&mut Profile);

    #[test]
    fn each_flaw_is_found() {
        let good = chain(&[(1, 2), (3, 4)], 5);
        assert_eq!(good.validate(), Ok(()));
        let breakings: [(Breaking, &str); 7] = [
            (|p| p.kinds[0].expert_parameters = 2, "2 parameters of experts among 1"),
            (|p| p.sequence.clear(), "no layers"),
            (|p| p.sequence[1] = 2, "kind 2"),
            (|p| p.ids[1] = 0, "1 different ids"),
            (|p| p.edges[0].from = 1, "does not lead forward"),
            (|p| p.kinds[0].forward = 1 << 62, "times of all layers"),
            (|p| p.kinds[0].activations = 1 << 63, "sizes of all layers"),
        ];
        for (break_it, said) in breakings {
            let mut broken = good.clone();
            break_it(&mut broken);
            let flaw = broken.validate().unwrap_err().to_string();
            assert!(flaw.contains(said), "{flaw} should say {said}");
        }
    }

    #[test]
    fn a_chain_may_skip_but_not_break() {
        let mut profile = chain(&[(1, 1); 3], 1);
        profile.edges.push(Edge::new(0, 2, 1));
        assert!(profile.is_chain());
        profile.edges.remove(0);
        assert!(!profile.is_chain());
    }
}
