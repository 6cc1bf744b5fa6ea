//! The parameters of a device by which devices hold the same: those of experts are dealt out along
//! axes of their own, so that their replicas are other devices than those of the rest.

use std::iter::Sum;
use std::ops::Add;
use std::ops::AddAssign;
use std::ops::Sub;

use super::zero::ParameterBytes;
use super::zero::ParameterMemory;
use super::zero::Sharding;

/// How many parameters one device has, of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// Of which every device along the context and the data axis has a replica.
    pub dense: u64,
    /// Of experts.
    pub experts: u64,
}

impl Parameters {
    /// None at all.
    pub const NONE: Self = Self { dense: 0, experts: 0 };

    /// So many, none of them of experts.
    pub fn dense(dense: u64) -> Self {
        Self { dense, experts: 0 }
    }

    /// So many, of which `experts` are those of experts.
    pub fn with_experts(all: u64, experts: u64) -> Self {
        Self { dense: all - experts, experts }
    }

    /// All of them.
    pub fn all(self) -> u64 {
        self.dense + self.experts
    }

    /// The fewer of each kind.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self { dense: self.dense.min(other.dense), experts: self.experts.min(other.experts) }
    }
}

impl Add for Parameters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { dense: self.dense + other.dense, experts: self.experts + other.experts }
    }
}

impl Sub for Parameters {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { dense: self.dense - other.dense, experts: self.experts - other.experts }
    }
}

impl AddAssign for Parameters {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Parameters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::NONE, Self::add)
    }
}

/// How the replicas of each kind of parameters share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaSharding {
    /// Of those that are not of experts.
    pub dense: Sharding,
    /// Of experts.
    pub experts: Sharding,
}

impl ReplicaSharding {
    /// Each kind with its sharding; where as many share both, they are one.
    fn each(self, parameters: Parameters) -> [(Sharding, u64); 2] {
        if self.dense == self.experts {
            [(self.dense, parameters.all()), (self.experts, 0)]
        } else {
            [(self.dense, parameters.dense), (self.experts, parameters.experts)]
        }
    }

    /// What a device holds at all times of its parameters.
    pub fn held(self, parameters: Parameters, bytes: ParameterBytes) -> ParameterMemory {
        let [dense, experts] = self.each(parameters).map(|(sharding, n)| sharding.held(n, bytes));
        ParameterMemory {
            weights: dense.weights + experts.weights,
            gradients: dense.gradients + experts.gradients,
            state: dense.state + experts.state,
        }
    }

    /// What a device holds on top of its shards at most while a pass runs, where its layers have so
    /// many parameters each, in order: whole is only what is shared.
    pub fn gathered(self, layers: &[Parameters], bytes: ParameterBytes) -> ParameterMemory {
        let part = |sharding: Sharding, n: u64| if sharding.is_shared() { n } else { 0 };
        let shared = layers
            .iter()
            .map(|layer| part(self.dense, layer.dense) + part(self.experts, layer.experts));
        let sharing = if self.dense.is_shared() { self.dense } else { self.experts };
        sharing.gathered(&shared.collect::<Vec<u64>>(), bytes)
    }

    /// Of how many of its parameters a device does the optimizer's step.
    pub fn stepped(self, parameters: Parameters) -> u64 {
        self.each(parameters).into_iter().map(|(sharding, n)| sharding.stepped(n)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::zero::Zero;
    use super::*;
    use crate::units::Bytes;

    const BYTES: ParameterBytes = ParameterBytes {
        weight: Bytes(2),
        gradient: Bytes(4),
        reduced: Bytes(4),
        state: Bytes(12),
    };

    fn sharing(zero: Zero, dense: u64, experts: u64) -> ReplicaSharding {
        ReplicaSharding { dense: Sharding::new(zero, dense), experts: Sharding::new(zero, experts) }
    }

    #[test]
    fn each_kind_is_shared_by_its_own_replicas() {
        let parameters = Parameters::with_experts(1000, 600);
        let held = sharing(Zero::State, 8, 2).held(parameters, BYTES);
        assert_eq!((held.weights.0, held.gradients.0), (2000, 4000));
        assert_eq!(held.state.0, 400 * 12 / 8 + 600 * 12 / 2);
        assert_eq!(sharing(Zero::State, 8, 2).stepped(parameters), 50 + 300);
        let alike = sharing(Zero::State, 8, 8).held(parameters, BYTES);
        assert_eq!(alike, Sharding::new(Zero::State, 8).held(1000, BYTES));
    }

    #[test]
    fn what_nobody_shares_is_not_gathered() {
        let layers =
            [Parameters::dense(10), Parameters::with_experts(30, 20), Parameters::dense(5)];
        let gathered = |dense, experts| {
            let all = sharing(Zero::Weights, dense, experts).gathered(&layers, BYTES);
            (all.weights.0, all.gradients.0)
        };
        assert_eq!(gathered(8, 4), (2 * 40, 4 * 30));
        assert_eq!(gathered(8, 1), (2 * 20, 4 * 10));
        assert_eq!(gathered(1, 4), (2 * 20, 4 * 20));
        assert_eq!(gathered(1, 1), (0, 0));
    }
}
