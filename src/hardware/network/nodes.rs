//! Nodes of a few devices: a fast network inside each, a slower one between them.

use std::ops::RangeInclusive;

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

    /// Among groups of one link the smallest is the fastest: the smallest of all, and the smallest
    /// that tiles a node.
    fn least(
        &self,
        exchange: Exchange,
        size: Bytes,
        stride: u64,
        members: RangeInclusive<u64>,
        devices: u64,
    ) -> Time {
        let of = |size_of_group: u64| {
            self.time(exchange, size, Group { size: size_of_group, stride }, devices)
        };
        let (low, high) = (*members.start(), *members.end());
        let blocks = self.per_node.checked_div(stride).unwrap_or(0);
        let tiles = |&n: &u64| self.inside_a_node(Group { size: n, stride }, devices);
        let smallest_inside = (low..=high.min(blocks)).find(tiles);
        smallest_inside.map_or(of(low), |inside| of(low).min(of(inside)))
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

    #[test]
    fn what_no_group_can_beat_is_what_asking_every_group_says() {
        use super::super::Flat;
        use crate::model::op::CollectiveKind;
        let link = |rate, latency| Link {
            bandwidth: Bandwidth::bytes_per_second(rate).unwrap(),
            latency: Time(latency),
        };
        let kinds = [CollectiveKind::AllReduce, CollectiveKind::AllGather];
        let exchanges = kinds.map(Exchange::Collective).into_iter().chain([Exchange::Send]);
        for exchange in exchanges {
            for per_node in [1, 5, 8, 16, 72] {
                for (inside, between) in [(1_000_000, 1_000), (1_000, 1_000_000), (7, 7)] {
                    let nodes =
                        Nodes { per_node, inside: link(inside, 3), between: link(between, 0) };
                    let flat = Flat { link: link(inside, 5) };
                    for (stride, devices) in [(1, 7), (1, 200), (2, 200), (3, 200), (8, 4096)] {
                        for low in 1..40 {
                            for high in [low, low + 1, low + low / 4, low + 70] {
                                let ask = |topology: &dyn Topology| {
                                    let every = (low..=high).map(|size| {
                                        let group = Group { size, stride };
                                        topology.time(exchange, Bytes(900), group, devices)
                                    });
                                    let least = topology.least(
                                        exchange,
                                        Bytes(900),
                                        stride,
                                        low..=high,
                                        devices,
                                    );
                                    assert_eq!(Some(least), every.min(), "{low}..={high}");
                                };
                                ask(&nodes);
                                ask(&flat);
                            }
                        }
                    }
                }
            }
        }
    }
}
