//! How long accelerators take to talk to each other.
//!
//! A topology answers two questions: how long an exchange takes ([`Topology::time`]), and what no
//! group of a range of sizes can beat ([`Topology::least`]), which is what bounds ask. To add one,
//! write a file in this folder and list it in [`Network`]; no other room changes, because all
//! communication time is asked here.

mod flat;
mod group;
mod nodes;

pub use flat::Flat;
pub use group::Group;
pub use nodes::Nodes;

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::Serialize;

use crate::model::op::CollectiveKind;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Time;

/// How a tensor is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exchange {
    /// Among all of a group.
    Collective(CollectiveKind),
    /// From each member of a group to the next.
    Send,
}

/// A way to wire accelerators together.
pub trait Topology {
    /// The time until the last of a group has finished `exchange` on `size` bytes, where
    /// `devices` are in use in all.
    ///
    /// The size is that of the whole tensor: what each device holds before an all-reduce or a
    /// reduce-scatter, after an all-gather, or sends; in an all-to-all what it sends in all.
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, devices: u64) -> Time;

    /// The sizes of groups at this stride that have to be looked at one by one, in order.
    ///
    /// Of two other sizes the smaller is never the slower: neither in an exchange of its own, nor
    /// in one of a group whose stride is a multiple of its block.
    fn odd_sizes(&self, stride: u64, devices: u64) -> Vec<u64>;

    /// What no group of any of these sizes, its devices `stride` apart, can beat: that of the
    /// smallest size that is not odd, or of an odd one.
    fn least(
        &self,
        exchange: Exchange,
        size: Bytes,
        stride: u64,
        members: RangeInclusive<u64>,
        devices: u64,
    ) -> Time {
        let odd = self.odd_sizes(stride, devices);
        let even = members.clone().find(|size| odd.binary_search(size).is_err());
        let asked = even.into_iter().chain(odd.iter().copied().filter(|n| members.contains(n)));
        let times = asked.map(|n| self.time(exchange, size, Group::along(n, stride), devices));
        times.min().unwrap_or(Time::ZERO)
    }
}

/// The topologies that a hardware file can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// Every pair alike.
    Flat(Flat),
    /// Nodes of a few devices, fast inside, slower between.
    Nodes(Nodes),
}

impl Network {
    /// The topology that answers.
    pub fn topology(&self) -> &dyn Topology {
        match self {
            Self::Flat(flat) => flat,
            Self::Nodes(nodes) => nodes,
        }
    }

    /// Whether only the size of a group matters, not where its devices are.
    pub fn is_flat(&self) -> bool {
        match self {
            Self::Flat(_) => true,
            Self::Nodes(_) => false,
        }
    }

    /// The numbers of devices that plans may confine themselves to because the network then treats
    /// them better, `devices` itself first.
    pub fn scopes(&self, devices: u64) -> Vec<u64> {
        match self {
            Self::Nodes(nodes) if devices > nodes.per_node => vec![devices, nodes.per_node],
            Self::Flat(_) | Self::Nodes(_) => vec![devices],
        }
    }

    /// How many devices stand in a node, where there are nodes.
    pub fn devices_per_node(&self) -> Option<u64> {
        match self {
            Self::Flat(_) => None,
            Self::Nodes(nodes) => Some(nodes.per_node),
        }
    }

    /// The link that no exchange is slower than, whoever takes part.
    pub fn slowest_link(&self) -> Link {
        match self {
            Self::Flat(flat) => flat.link,
            Self::Nodes(nodes) => Link {
                bandwidth: nodes.inside.bandwidth.min(nodes.between.bandwidth),
                latency: nodes.inside.latency.max(nodes.between.latency),
            },
        }
    }
}

/// A link: how fast, and how long until the first byte arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Per device and direction.
    pub bandwidth: Bandwidth,
    /// Of each message.
    pub latency: Time,
}

impl Link {
    /// The time of an exchange on a ring of `group` devices joined by such links.
    ///
    /// A reduce-scatter and an all-gather take `group − 1` steps, each of which moves one
    /// `group`-th of the tensor over every link; an all-reduce is one after the other. In an
    /// all-to-all a device sends all but its own `group`-th, a message to each of the others.
    pub fn ring(self, exchange: Exchange, size: Bytes, group: u64) -> Time {
        let steps = match exchange {
            Exchange::Send | Exchange::Collective(CollectiveKind::Send) => {
                return self.bandwidth.transfer(size) + self.latency;
            }
            Exchange::Collective(CollectiveKind::AllReduce) => 2 * (group - 1),
            Exchange::Collective(
                CollectiveKind::AllGather
                | CollectiveKind::ReduceScatter
                | CollectiveKind::AllToAll,
            ) => group - 1,
        };
        let moved = (u128::from(size.0) * u128::from(steps)).div_ceil(u128::from(group.max(1)));
        let moved = u64::try_from(moved).expect("a tensor moved twice stays within 64 bits");
        self.bandwidth.transfer(Bytes(moved)) + self.latency * steps
    }
}
