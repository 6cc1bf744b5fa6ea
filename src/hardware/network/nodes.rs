//! Nodes of a few devices: a fast network inside each, a slower one between them.

use serde::Deserialize;
use serde::Serialize;

use super::Exchange;
use super::Group;
use super::Link;
use super::Topology;
use crate::units::Bytes;
use crate::units::Time;

/// Devices `0..per_node` form the first node, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Devices in a node.
    pub per_node: u64,
    /// Between two devices of a node.
    pub inside: Link,
    /// Between devices of two nodes: each device's own share.
    pub between: Link,
}

impl Nodes {
    /// Whether every group of this kind lies within one node.
    ///
    /// Groups tile the devices in blocks, so they do when whole blocks fill a node, or when all
    /// devices in use are in the first node.
    fn inside_a_node(&self, group: Group, devices: u64) -> bool {
        let block = group.size.saturating_mul(group.stride).max(1);
        devices <= self.per_node || self.per_node.is_multiple_of(block)
    }
}

impl Topology for Nodes {
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, devices: u64) -> Time {
        if group.size <= 1 {
            return Time::ZERO;
        }
        let link = if self.inside_a_node(group, devices) { self.inside } else { self.between };
        link.ring(exchange, size, group.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bandwidth;

    #[test]
    fn only_groups_that_tile_a_node_are_fast() {
        let link =
            |rate| Link { bandwidth: Bandwidth::bytes_per_second(rate).unwrap(), latency: Time(0) };
        let nodes = Nodes { per_node: 8, inside: link(1_000_000), between: link(1_000) };
        // size, stride, devices in use, fast?
        let cases = [
            (8, 1, 64, true),
            (4, 1, 64, true),
            (2, 4, 64, true),
            (4, 4, 64, false),
            (16, 1, 64, false),
            (6, 1, 64, false), // Devices 6 to 11 lie in two nodes.
            (6, 1, 6, true),
            (8, 8, 64, false),
        ];
        for (size, stride, devices, fast) in cases {
            let found = nodes.inside_a_node(Group { size, stride }, devices);
            assert_eq!(found, fast, "{size} devices {stride} apart of {devices}");
        }
    }

    #[test]
    fn two_nodes_are_slower_than_one() {
        let link =
            |rate| Link { bandwidth: Bandwidth::bytes_per_second(rate).unwrap(), latency: Time(0) };
        let nodes = Nodes { per_node: 8, inside: link(1_000_000), between: link(1_000) };
        let send = |stride| nodes.time(Exchange::Send, Bytes(1), Group { size: 2, stride }, 16);
        assert_eq!(send(1).0 * 1000, send(8).0);
    }
}
