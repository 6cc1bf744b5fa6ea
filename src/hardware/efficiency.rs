//! What hardware and its software reach of what the data sheet promises.

use super::network::Network;
use crate::model::Kernels;
use crate::model::Precision;
use crate::model::Stack;
use crate::units::Time;

/// The efficiency block of a hardware file: fractions of data-sheet rates in thousandths, and times
/// that every kernel and exchange pays.
///
/// Every term but the hidden shares only makes times longer than the ideal, so that what no ideal
/// plan can beat no plan with a block can; the hidden shares are part of the operators themselves
/// ([`Stack`]), which bounds look at too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Efficiency {
    /// Of the arrays' peak, in matmuls in bf16.
    pub matmul: u16,
    /// The same in 8 bits, of the peak in 8 bits.
    pub matmul_fp8: u16,
    /// The same in the kernel of fused attention.
    pub attention: u16,
    /// Of what matmuls reach, in those of experts.
    pub grouped: u16,
    /// Of the bandwidth of off-chip memory.
    pub memory: u16,
    /// Of the bandwidth of links inside a node.
    pub link: u16,
    /// Of the bandwidth of links between nodes.
    pub between: u16,
    /// What every kernel pays.
    pub launch: Time,
    /// What an all-reduce inside a node pays, a gather or scatter half of it; `None` for the latency
    /// of the links.
    pub collective: Option<Time>,
    /// What an exchange inside a node pays beside that for each step of its ring.
    pub step: Time,
    /// What an exchange across nodes pays for each doubling of its members; `None` likewise.
    pub between_step: Option<Time>,
    /// Thousandths of tensor-parallel exchanges that run behind computation.
    pub tensor_hidden: u16,
    /// Thousandths of the exchange of gradients and new weights that run behind passes; `None` where
    /// they follow from the schedule.
    pub gradients_hidden: Option<u16>,
    /// Bytes of a gradient as replicas exchange it; `None` for as many as it is summed up in.
    pub gradient_bytes: Option<u8>,
    /// Which work runs together.
    pub kernels: Kernels,
}

impl Efficiency {
    /// Everything as the data sheet says, in the best kernels that can be.
    pub const IDEAL: Self = Self {
        matmul: 1000,
        matmul_fp8: 1000,
        attention: 1000,
        grouped: 1000,
        memory: 1000,
        link: 1000,
        between: 1000,
        launch: Time::ZERO,
        collective: None,
        step: Time::ZERO,
        between_step: None,
        tensor_hidden: 0,
        gradients_hidden: None,
        gradient_bytes: None,
        kernels: Kernels::FusedIdeal,
    };

    /// What the matmuls of experts reach of the arrays' peak, where others reach so much.
    pub fn in_groups(&self, matmul: u16) -> u16 {
        let reached = (u32::from(matmul) * u32::from(self.grouped)).div_ceil(1000);
        u16::try_from(reached).unwrap_or(matmul)
    }

    /// What software makes of layers whose matmuls compute in these numbers.
    pub fn stack(&self, precision: Precision) -> Stack {
        Stack {
            kernels: self.kernels,
            precision,
            tensor_hidden: self.tensor_hidden,
            gradients_hidden: self.gradients_hidden,
            gradient_bytes: self.gradient_bytes,
        }
    }

    /// What exchanges reach of a network.
    pub fn network(&self, network: &Network) -> Network {
        match network {
            Network::Levels(levels) => Network::Levels(levels.with_efficiency(self)),
            Network::Torus(_) => network.with_bandwidths(|rate| rate.thousandths(self.link)),
        }
    }
}

/// A count of cycles at so many thousandths of the rate, rounded up; `None` beyond 64 bits.
pub fn slowed(cycles: u64, thousandths: u16) -> Option<u64> {
    if thousandths == 1000 {
        return Some(cycles);
    }
    let slowed = (u128::from(cycles) * 1000).div_ceil(u128::from(thousandths.max(1)));
    u64::try_from(slowed).ok()
}

/// What an efficiency block rests on for one precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// In which numbers the runs computed.
    pub precision: Precision,
    /// The software that was measured.
    pub stack: String,
    /// How many runs it was fitted to.
    pub runs: u64,
    /// When they were made, where that is said.
    pub date: Option<String>,
    /// Thousandths between which four of five measured times lie, of those predicted where their
    /// model was left out; `None` where that is not known.
    pub interval: Option<[u16; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::network::Exchange;
    use crate::hardware::network::Group;
    use crate::hardware::network::Levels;
    use crate::hardware::network::Link;
    use crate::model::op::CollectiveKind;
    use crate::units::Bandwidth;
    use crate::units::Bytes;

    #[test]
    fn exchanges_reach_their_part_and_pay_to_start() {
        let rate = |gb: u64| Bandwidth::bytes_per_second(gb * 1_000_000_000).unwrap();
        let link = |gb| Link { bandwidth: rate(gb), latency: Time(1_000_000) };
        let network = Network::Levels(Levels::nodes(8, link(300), link(25)).unwrap());
        let us = |us: u64| Time(us * 1_000_000);
        let block = Efficiency {
            link: 760,
            between: 800,
            collective: Some(us(40)),
            between_step: Some(us(20)),
            ..Efficiency::IDEAL
        };
        let reached = block.network(&network);
        let time = |kind, group| {
            let exchange = Exchange::Collective(kind);
            reached.topology().time(exchange, Bytes(1 << 30), group, 64)
        };
        let gib = |parts: u64, whole: u64, rate: u64| {
            let scaled = (1_u64 << 30) * parts * 1_000_000;
            Time(scaled / whole / rate)
        };
        let near = |found: Time, expected: Time| {
            assert!(found.0.abs_diff(expected.0) < 1000, "{found:?} is not {expected:?}");
        };
        let inside = Group::along(8, 1);
        // Thousandths of a byte per picosecond: 228 GB/s inside, 20 GB/s for each member between.
        near(time(CollectiveKind::AllReduce, inside), gib(14, 8, 228_000) + us(40));
        near(time(CollectiveKind::AllGather, inside), gib(7, 8, 228_000) + us(20));
        let across = Group::along(8, 8);
        near(time(CollectiveKind::AllReduce, across), gib(14, 8, 20_000) + us(60));
        assert_eq!(Efficiency::IDEAL.network(&network), network);
        let stepwise = Efficiency { step: us(8), ..block }.network(&network);
        let more = |kind, group| {
            let exchange = Exchange::Collective(kind);
            let found = stepwise.topology().time(exchange, Bytes(1 << 30), group, 64);
            found.0 - time(kind, group).0
        };
        assert_eq!(more(CollectiveKind::AllGather, inside), us(7 * 8).0);
        assert_eq!(more(CollectiveKind::AllGather, Group::along(2, 1)), us(8).0);
        assert_eq!(more(CollectiveKind::AllReduce, inside), us(14 * 8).0);
        assert_eq!(more(CollectiveKind::AllReduce, across), 0);
    }

    #[test]
    fn cycles_at_a_part_of_the_rate_are_rounded_up() {
        assert_eq!(slowed(100, 1000), Some(100));
        assert_eq!(slowed(100, 750), Some(134));
        assert_eq!(slowed(u64::MAX, 999), None);
    }
}
