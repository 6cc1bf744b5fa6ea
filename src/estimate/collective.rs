//! What an exchange among the devices that share a layer takes.

use super::Estimate;
use super::Limit;
use crate::hardware::Cluster;
use crate::hardware::VectorSpec;
use crate::hardware::network::Exchange;
use crate::hardware::network::Group;
use crate::model::op::Collective;
use crate::model::op::CollectiveKind;
use crate::units::Bytes;
use crate::units::Energy;

/// The time that the network says, and the energy of what one device sends.
///
/// Devices are numbered along the axes in their order, so a group of an outer axis takes every so
/// many of them. What is sent passes the device's own
/// memories far below their bandwidth, so it counts in none of them.
pub fn estimate(collective: &Collective, spec: &VectorSpec, cluster: &Cluster) -> Estimate {
    if collective.group <= 1 {
        return Estimate::NOTHING;
    }
    let group = Group { size: collective.group, stride: collective.stride };
    let time = cluster.time(Exchange::Collective(collective.kind), collective.size, group);
    // Of the whole tensor a device sends so many parts of `group`.
    let steps = match collective.kind {
        CollectiveKind::AllReduce => 2 * (collective.group - 1),
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => {
            collective.group - 1
        }
        CollectiveKind::Send => collective.group,
    };
    let sent =
        (u128::from(collective.size.0) * u128::from(steps)).div_ceil(u128::from(collective.group));
    Estimate {
        time,
        energy: Energy(sent * u128::from(spec.network_fj_per_byte)),
        hbm: Bytes::ZERO,
        glb_read: Bytes::ZERO,
        glb_written: Bytes::ZERO,
        limit: Limit::Network,
    }
}
