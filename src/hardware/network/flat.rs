//! A network in which every pair of devices is alike.

use serde::Deserialize;
use serde::Serialize;

use super::Exchange;
use super::Group;
use super::Link;
use super::Topology;
use crate::units::Bytes;
use crate::units::Time;

/// Every device has the same link to every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flat {
    /// Between any two devices.
    pub link: Link,
}

impl Topology for Flat {
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, _devices: u64) -> Time {
        if group.size() <= 1 {
            return Time::ZERO;
        }
        self.link.ring(exchange, size, group.size())
    }

    fn odd_sizes(&self, _stride: u64, _devices: u64) -> Vec<u64> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::op::CollectiveKind;
    use crate::units::Bandwidth;

    #[test]
    fn a_ring_moves_two_tensors_less_one_share_of_each() {
        let bandwidth = Bandwidth::bytes_per_second(1_000_000_000_000).unwrap();
        let flat = Flat { link: Link { bandwidth, latency: Time(7) } };
        let time = |exchange, n| flat.time(exchange, Bytes(800), Group::along(n, 1), n);
        let collective = Exchange::Collective;
        assert_eq!(time(collective(CollectiveKind::AllReduce), 4), Time(1200 + 6 * 7));
        assert_eq!(time(collective(CollectiveKind::AllGather), 4), Time(600 + 3 * 7));
        assert_eq!(time(collective(CollectiveKind::ReduceScatter), 4), Time(600 + 3 * 7));
        assert_eq!(time(collective(CollectiveKind::AllToAll), 4), Time(600 + 3 * 7));
        assert_eq!(time(Exchange::Send, 4), Time(807));
        assert_eq!(time(collective(CollectiveKind::Send), 4), Time(807), "one step of a ring");
        assert_eq!(time(collective(CollectiveKind::AllReduce), 1), Time::ZERO);
    }
}
