//! Accelerators wired together.

use super::network::Exchange;
use super::network::Group;
use super::network::Network;
use crate::units::Bytes;
use crate::units::Time;

/// How many devices there are, and the network between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Devices that may be used.
    pub devices: u64,
    /// What joins them.
    pub network: Network,
}

impl Cluster {
    /// The time until the slowest group of this kind has finished `exchange` on `size` bytes.
    pub fn time(&self, exchange: Exchange, size: Bytes, group: Group) -> Time {
        self.network.topology().time(exchange, size, group, self.devices)
    }
}
