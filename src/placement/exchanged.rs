//! What replicas exchange in a shape, remembered: it depends on who holds which parameters and on the network,
//! not on how long layers take, so that problems which differ in times alone share it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::Problem;
use crate::parallel::Order;
use crate::parallel::Parameters;
use crate::parallel::zero::Zero;
use crate::plan::Buckets;
use crate::plan::LayerProfile;
use crate::plan::Links;

/// What exchanges depend on within a problem: how far apart replicas are, the fewest and the most pipelines,
/// what they share, in which order devices are numbered, how many share.
pub(super) type ExchangeKey = (usize, (u64, u64), Zero, Order, Option<u64>);

/// Ticks of exchanges among replicas, at the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exchanged {
    /// The gradients of the first layer, with those of a table that both ends hold.
    pub reduce_first: u64,
    /// The gradients of all layers one by one; 0 where they are exchanged otherwise.
    pub reduce_all: u128,
    /// The weights of the first layer, of the smallest, and of all one by one likewise.
    pub gather_first: u64,
    pub gather_any: u64,
    pub gather_all: u128,
}

impl Exchanged {
    pub fn min(self, other: Self) -> Self {
        Self {
            reduce_first: self.reduce_first.min(other.reduce_first),
            reduce_all: self.reduce_all.min(other.reduce_all),
            gather_first: self.gather_first.min(other.gather_first),
            gather_any: self.gather_any.min(other.gather_any),
            gather_all: self.gather_all.min(other.gather_all),
        }
    }
}

/// Exchanges that were asked for before, for all problems of one way to divide a model on one network.
///
/// A problem in which they would be others finds none of them.
#[derive(Debug, Default)]
pub struct KnownExchanges(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: Option<Holders>,
    times: BTreeMap<ExchangeKey, Exchanged>,
}

/// All of a problem that exchanges depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holders {
    layers: Vec<Parameters>,
    sequence: Vec<usize>,
    is_chain: bool,
    tied: u64,
    degrees: (u64, u64, Option<u64>),
    links: Links,
    devices: u64,
    bytes: (u64, u64),
    buckets: Buckets,
}

impl Holders {
    fn of(problem: &Problem) -> Self {
        let Problem { profile, job, .. } = *problem;
        Self {
            layers: profile.kinds.iter().map(LayerProfile::by_replicas).collect(),
            sequence: profile.sequence.clone(),
            is_chain: profile.is_chain(),
            tied: profile.tied,
            degrees: (profile.width, profile.context, profile.expert_devices),
            links: job.links.clone(),
            devices: job.devices,
            bytes: (job.per_parameter.weight, job.per_parameter.reduced()),
            buckets: job.ends.buckets,
        }
    }
}

impl KnownExchanges {
    /// Whether they are those of a problem, which the first that asks decides.
    pub(super) fn are_of(&self, problem: &Problem) -> bool {
        let holders = Holders::of(problem);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known.of.get_or_insert_with(|| holders.clone()) == holders
    }

    pub(super) fn get(&self, key: &ExchangeKey) -> Option<Exchanged> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).times.get(key).copied()
    }

    pub(super) fn insert(&self, key: ExchangeKey, found: Exchanged) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).times.insert(key, found);
    }
}
