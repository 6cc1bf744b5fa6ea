//! How long accelerators take to talk to each other.
//!
//! A topology answers how long an exchange takes ([`Topology::time`]), what no group of a range of
//! sizes can beat ([`Topology::least`]), which is what bounds ask, and which sizes could be the best
//! at all ([`Topology::worth_trying`]). To add one,
//! write a file in this folder and list it in [`Network`]; no other room changes, because all
//! communication time is asked here.

mod group;
mod levels;
mod spread;
mod torus;
mod worked_examples;

pub use group::Group;
pub use levels::Level;
pub use levels::Levels;
pub use levels::NoLevels;
pub use torus::NoTorus;
pub use torus::Torus;

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
    /// From each member of a group to the next, and from the last to the first.
    RingSend,
}

/// A way to wire accelerators together.
pub trait Topology {
    /// The time until the last of a group has finished `exchange` on `size` bytes, where
    /// `devices` are in use in all.
    ///
    /// The size is that of the whole tensor: what each device holds before an all-reduce or a
    /// reduce-scatter, after an all-gather, or sends; in an all-to-all what it sends in all.
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, devices: u64) -> Time;

    /// Of these sizes of groups at this stride, those that could be the best.
    ///
    /// Of every other one, a smaller one among those is never the slower: neither in an exchange of
    /// its own, nor in one of a group whose stride is a multiple of its block.
    fn worth_trying(&self, stride: u64, sizes: RangeInclusive<u64>, devices: u64) -> Vec<u64>;

    /// A time that no group can beat whose size is one of these and whose members are at least
    /// `stride` apart, whatever its axes and their order.
    fn least(
        &self,
        exchange: Exchange,
        size: Bytes,
        stride: u64,
        members: RangeInclusive<u64>,
        devices: u64,
    ) -> Time;
}

/// The topologies that a hardware file can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// Devices in nodes, nodes in blocks, and so on; one level is a flat network.
    Levels(Levels),
    /// Rings in up to three dimensions.
    Torus(Torus),
}

impl Network {
    /// Every pair of devices alike.
    pub fn flat(link: Link) -> Self {
        Self::Levels(Levels::flat(link))
    }

    /// The topology that answers.
    pub fn topology(&self) -> &dyn Topology {
        match self {
            Self::Levels(levels) => levels,
            Self::Torus(torus) => torus,
        }
    }

    /// Whether only the size of a group matters, not where its devices are, and a larger one is
    /// never faster.
    pub fn is_flat(&self) -> bool {
        match self {
            Self::Levels(levels) => levels.is_flat(),
            Self::Torus(_) => false,
        }
    }

    /// The numbers of devices that plans may confine themselves to because the network then treats
    /// them better, `devices` itself first.
    pub fn scopes(&self, devices: u64) -> Vec<u64> {
        match self {
            Self::Levels(levels) => {
                let mut scopes = vec![devices];
                scopes.extend(levels.units(devices).into_iter().rev());
                scopes.dedup();
                scopes
            }
            Self::Torus(_) => vec![devices],
        }
    }

    /// How many devices stand in a node, where there are nodes.
    pub fn devices_per_node(&self) -> Option<u64> {
        match self {
            Self::Levels(levels) => levels.devices_per_node(),
            Self::Torus(_) => None,
        }
    }

    /// The most devices that the network joins, where it says so.
    pub fn most_devices(&self) -> Option<u64> {
        match self {
            Self::Levels(levels) => levels.most_devices(),
            Self::Torus(_) => None,
        }
    }

    /// A link such that no exchange is slower than on a ring of it, whoever takes part.
    pub fn slowest_link(&self) -> Link {
        match self {
            Self::Levels(levels) => levels.slowest_link(),
            Self::Torus(torus) => torus.slowest_link(),
        }
    }

    /// The same network with another bandwidth of every link.
    #[must_use]
    pub fn with_bandwidths(&self, turn: impl Fn(Bandwidth) -> Bandwidth) -> Self {
        match self {
            Self::Levels(levels) => Self::Levels(levels.with_bandwidths(turn)),
            Self::Torus(torus) => Self::Torus(torus.with_bandwidth(turn)),
        }
    }

    /// The bandwidth of the links of a device to its nearest neighbours.
    pub fn nearest_bandwidth(&self) -> Bandwidth {
        match self {
            Self::Levels(levels) => levels.nearest_bandwidth(),
            Self::Torus(torus) => torus.link().bandwidth,
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

/// So many parts of `whole` of a tensor, rounded up.
fn moved(size: Bytes, parts: u64, whole: u64) -> Bytes {
    let bytes = (u128::from(size.0) * u128::from(parts)).div_ceil(u128::from(whole.max(1)));
    Bytes(u64::try_from(bytes).expect("a tensor moved twice stays within 64 bits"))
}
