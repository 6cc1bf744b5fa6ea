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
    let group = Group::along(collective.group, collective.stride);
    let once = cluster.time(Exchange::Collective(collective.kind), collective.size, group);
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
        time: collective.exposed(once * collective.times),
        energy: Energy(sent * u128::from(collective.times) * u128::from(spec.network_fj_per_byte)),
        hbm: Bytes::ZERO,
        glb_read: Bytes::ZERO,
        glb_written: Bytes::ZERO,
        limit: Limit::Network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::ChipEnergies;
    use crate::hardware::DesignSpace;
    use crate::hardware::HbmBandwidth;
    use crate::hardware::Physics;
    use crate::hardware::Port;
    use crate::hardware::Use;
    use crate::hardware::network::Link;
    use crate::hardware::network::Network;
    use crate::model::Axis;
    use crate::units::Bandwidth;
    use crate::units::Frequency;
    use crate::units::Time;

    fn spec(network: Network) -> VectorSpec {
        let physics = Physics {
            clock: Frequency::hertz(1_000_000_000).unwrap(),
            element_bytes: 2,
            partial_sum_bytes: 4,
            fill_and_drain: true,
            local: None,
            vector_local: None,
            glb: Port { read: 1 << 20, write: 1 << 20 },
            multicast: Some(16),
            hbm: HbmBandwidth::Fixed(Bandwidth::bytes_per_second(1 << 40).unwrap()),
            energies: ChipEnergies::PUBLISHED,
            hbm_fj: 1,
            network_fj_per_byte: 5,
            static_uw_per_mm2: 1,
            beside_uw: 0,
            efficiency: crate::hardware::Efficiency::IDEAL,
            efficiency_from: None,
            calibrations: Vec::new(),
            network,
        };
        let (designs, _) = DesignSpace::published().designs(&physics);
        designs[0].build(Bytes::GIB, &physics).unwrap().vector(Use::Spread)
    }

    #[test]
    fn steps_of_a_ring_take_a_message_each_and_an_all_to_all_keeps_its_own_part() {
        // One byte per tick.
        let bandwidth = Bandwidth::bytes_per_second(Time::PER_SECOND).unwrap();
        let link = Link { bandwidth, latency: Time(7) };
        let cluster = Cluster { devices: 8, network: Network::flat(link) };
        let spec = spec(cluster.network);
        let costs = |kind, times| {
            let axis = Axis::Context;
            let collective =
                Collective { kind, size: Bytes(800), axis, group: 4, stride: 2, times, hidden: 0 };
            let found = estimate(&collective, &spec, &cluster);
            (found.time.0, found.energy.0 / u128::from(spec.network_fj_per_byte))
        };
        assert_eq!(costs(CollectiveKind::Send, 1), (807, 800));
        assert_eq!(costs(CollectiveKind::Send, 3), (3 * 807, 3 * 800));
        assert_eq!(costs(CollectiveKind::AllToAll, 1), (600 + 3 * 7, 600));
        assert_eq!(costs(CollectiveKind::AllReduce, 1), (1200 + 6 * 7, 1200));
    }
}
