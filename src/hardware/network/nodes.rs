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
        let block = group.block();
        devices <= self.per_node || self.per_node.is_multiple_of(block)
    }
}

impl Topology for Nodes {
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, devices: u64) -> Time {
        if group.size() <= 1 {
            return Time::ZERO;
        }
        let link = if self.inside_a_node(group, devices) { self.inside } else { self.between };
        link.ring(exchange, size, group.size())
    }

    /// Those whose blocks fill a node: all others, and all groups of whole blocks of them, use the
    /// links between nodes.
    fn odd_sizes(&self, stride: u64, devices: u64) -> Vec<u64> {
        let stride = stride.max(1);
        if devices <= self.per_node || !self.per_node.is_multiple_of(stride) {
            return Vec::new();
        }
        let blocks = self.per_node / stride;
        let small = (1..=blocks.isqrt()).filter(|&size| blocks.is_multiple_of(size));
        let mut sizes: Vec<u64> = small.flat_map(|size| [size, blocks / size]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::op::CollectiveKind;
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
            let found = nodes.inside_a_node(Group::along(size, stride), devices);
            assert_eq!(found, fast, "{size} devices {stride} apart of {devices}");
        }
    }

    #[test]
    fn of_two_sizes_that_are_not_odd_the_smaller_is_never_slower() {
        let link = |rate, latency| Link {
            bandwidth: Bandwidth::bytes_per_second(rate).unwrap(),
            latency: Time(latency),
        };
        // Inside a node may be the faster or the slower place to be.
        for links in [(link(1_000_000, 1), link(1_000, 5)), (link(1_000, 5), link(1_000_000, 1))] {
            for (per_node, stride, devices) in
                [(8, 1, 64), (72, 2, 500), (5, 1, 40), (16, 3, 90), (16, 4, 16), (1, 1, 9)]
            {
                let nodes = Nodes { per_node, inside: links.0, between: links.1 };
                let odd = nodes.odd_sizes(stride, devices);
                let times = |size: u64| {
                    let own = Group::along(size, stride);
                    let ring = Exchange::Collective(CollectiveKind::AllReduce);
                    let mut times = vec![nodes.time(ring, Bytes(1000), own, devices)];
                    for n in 2..9 {
                        let outer = Group::along(n, stride * size);
                        times.push(nodes.time(Exchange::Send, Bytes(1000), outer, devices));
                        let ends = Group::along(2, stride * size * (n - 1));
                        times.push(nodes.time(ring, Bytes(1000), ends, devices));
                    }
                    times
                };
                let plain: Vec<u64> = (1..=devices).filter(|size| !odd.contains(size)).collect();
                for pair in plain.windows(2) {
                    let (less, more) = (times(pair[0]), times(pair[1]));
                    assert!(less.iter().zip(&more).all(|(a, b)| a <= b), "{per_node} {pair:?}");
                }
            }
        }
    }

    #[test]
    fn two_nodes_are_slower_than_one() {
        let link =
            |rate| Link { bandwidth: Bandwidth::bytes_per_second(rate).unwrap(), latency: Time(0) };
        let nodes = Nodes { per_node: 8, inside: link(1_000_000), between: link(1_000) };
        let send = |stride| nodes.time(Exchange::Send, Bytes(1), Group::along(2, stride), 16);
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
        let kinds =
            [CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::AllToAll];
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
                                        let group = Group::along(size, stride);
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
