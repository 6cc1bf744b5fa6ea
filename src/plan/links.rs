//! How long devices take to hand a size to each other, in ticks.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::Serialize;

use crate::hardware::network::Exchange;
use crate::hardware::network::Group;
use crate::hardware::network::Network;
use crate::model::op::CollectiveKind;
use crate::units::Bytes;
use crate::units::Time;

/// What connects the devices of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "there is one for each job")]
pub enum Links {
    /// Every pair at the same rate and without latency: moving `size` takes
    /// `size · 10^power / rate` ticks. What a user's own profile has.
    Rate {
        /// Decimal places between size units and ticks.
        power: i32,
        /// The digits of the rate. Never zero.
        rate: u64,
        /// Ticks that nothing counts more than: what takes longer is in no good answer, and need
        /// not be told apart.
        longest: u64,
    },
    /// A cluster's network; sizes are bytes and ticks are picoseconds.
    Network(Network),
}

impl Links {
    /// Ticks until `size` has gone from each of `group` to the next, and where it `wraps` from the
    /// last to the first, of `devices` in use.
    pub(super) fn send(&self, size: u64, group: Group, wraps: bool, devices: u64) -> u64 {
        match *self {
            Self::Rate { power, rate, longest } => capped(scaled(size, power, rate), longest),
            Self::Network(network) => {
                let exchange = if wraps { Exchange::RingSend } else { Exchange::Send };
                network.topology().time(exchange, Bytes(size), group, devices).0
            }
        }
    }

    /// Ticks until all of `group` have done an exchange of a tensor of `size`.
    pub(super) fn collective(
        &self,
        kind: CollectiveKind,
        size: u64,
        group: Group,
        devices: u64,
    ) -> u64 {
        match *self {
            Self::Rate { power, rate, longest } => {
                let members = u128::from(group.size().max(1));
                let once = scaled(size, power, rate);
                let times = match kind {
                    CollectiveKind::AllReduce => 2 * (members - 1),
                    CollectiveKind::Send => members,
                    CollectiveKind::AllGather
                    | CollectiveKind::ReduceScatter
                    | CollectiveKind::AllToAll => members - 1,
                };
                capped(times.saturating_mul(once).div_ceil(members), longest)
            }
            Self::Network(network) => {
                let exchange = Exchange::Collective(kind);
                network.topology().time(exchange, Bytes(size), group, devices).0
            }
        }
    }

    /// Ticks until all of a group hold the sum of a tensor of `size`, that no group
    /// of these numbers of members, at least `stride` apart, can beat.
    pub(super) fn least_all_reduce(
        &self,
        size: u64,
        stride: u64,
        members: RangeInclusive<u64>,
        devices: u64,
    ) -> u64 {
        match *self {
            // At one rate for all, a larger group is never faster.
            Self::Rate { .. } => self.collective(
                CollectiveKind::AllReduce,
                size,
                Group::along(*members.start(), stride),
                devices,
            ),
            Self::Network(network) => {
                let exchange = Exchange::Collective(CollectiveKind::AllReduce);
                network.topology().least(exchange, Bytes(size), stride, members, devices).0
            }
        }
    }

    /// Whether only the size of a group matters, not where its devices are; then a larger group
    /// is never faster.
    pub fn is_flat(&self) -> bool {
        match self {
            Self::Rate { .. } => true,
            Self::Network(network) => network.is_flat(),
        }
    }

    /// Of these numbers of copies, `stride` apart, those that could be the best: of every other one
    /// a smaller one among them is never the slower.
    pub fn worth_trying(&self, stride: u64, copies: RangeInclusive<u64>, devices: u64) -> Vec<u64> {
        match self {
            Self::Rate { .. } => copies.take(1).collect(),
            Self::Network(network) => network.topology().worth_trying(stride, copies, devices),
        }
    }

    /// Ticks that no send of `size` exceeds, whoever takes part.
    pub(super) fn slowest_send(&self, size: u128) -> u128 {
        match *self {
            Self::Rate { power, rate, longest } => {
                let all = u64::try_from(size).map_or(u128::MAX, |size| scaled(size, power, rate));
                all.min(u128::from(longest))
            }
            Self::Network(network) => {
                let link = network.slowest_link();
                let rate = u128::from(link.bandwidth.as_bytes_per_second());
                let ticks = size.saturating_mul(u128::from(Time::PER_SECOND)).div_ceil(rate);
                ticks.saturating_add(u128::from(link.latency.0))
            }
        }
    }
}

/// `size · 10^power / rate`, rounded up; the largest number where it is larger than that.
fn scaled(size: u64, power: i32, rate: u64) -> u128 {
    let rate = u128::from(rate.max(1));
    let ten = |power: u32| 10_u128.checked_pow(power);
    if size == 0 {
        return 0;
    }
    if power >= 0 {
        let product = ten(power.unsigned_abs()).and_then(|p| p.checked_mul(u128::from(size)));
        product.map_or(u128::MAX, |product| product.div_ceil(rate))
    } else {
        let divisor = ten(power.unsigned_abs()).and_then(|p| p.checked_mul(rate));
        // A divisor beyond 128 bits leaves less than one tick.
        divisor.map_or(1, |divisor| u128::from(size).div_ceil(divisor))
    }
}

fn capped(ticks: u128, longest: u64) -> u64 {
    u64::try_from(ticks).map_or(longest, |ticks| ticks.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_divides_exactly_and_rounds_up() {
        let send = |power, rate, size| {
            let links = Links::Rate { power, rate, longest: 1 << 40 };
            links.send(size, Group::along(2, 1), false, 2)
        };
        assert_eq!(send(2, 3, 6), 200);
        assert_eq!(send(2, 3, 1), 34);
        assert_eq!(send(-2, 3, 301), 2);
        assert_eq!(send(-60, 3, 301), 1);
        assert_eq!(send(60, 3, 0), 0);
        assert_eq!(send(60, 3, 1), 1 << 40);
    }

    #[test]
    fn a_ring_moves_twice_all_but_its_own_part() {
        let links = Links::Rate { power: 0, rate: 1, longest: u64::MAX };
        let all_reduce = CollectiveKind::AllReduce;
        let time = |size: u64| links.collective(all_reduce, 12, Group::along(size, 1), 64);
        assert_eq!(time(1), 0);
        assert_eq!(time(4), 18);
        assert!((1..50).all(|n| time(n) <= time(n + 1)));
    }
}
