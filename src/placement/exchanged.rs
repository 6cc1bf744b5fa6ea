//! What replicas exchange in a shape and whether some cut of it fits, remembered: both depend on who holds what, on
//! memory and on the network, not on how long layers take, so that problems which differ in times alone share them.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::Problem;
use crate::parallel::Order;
use crate::parallel::Parameters;
use crate::parallel::zero::Zero;
use crate::plan::Buckets;
use crate::plan::Edge;
use crate::plan::LayerProfile;
use crate::plan::Links;
use crate::plan::Shape;
use crate::plan::TimeModel;

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

/// What was asked of shapes before, for all problems of one way to divide a model on one network.
///
/// A problem in which it would be something else finds none of it.
#[derive(Debug, Default)]
pub struct KnownShapes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: Option<Holders>,
    times: BTreeMap<ExchangeKey, Exchanged>,
    fits: HashMap<(Shape, u64), bool>,
}

/// All of a problem that exchanges depend on, and what fits but for the size of a device's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holders {
    layers: Vec<(Parameters, [u64; 3], bool)>,
    edges: Vec<Edge>,
    sequence: Vec<usize>,
    is_chain: bool,
    tied: u64,
    degrees: (u64, u64, Option<u64>),
    links: Links,
    devices: u64,
    micro_batches: u64,
    bytes: [u64; 4],
    buckets: Buckets,
    time_model: TimeModel,
}

impl Holders {
    fn of(problem: &Problem) -> Self {
        let Problem { profile, job, .. } = *problem;
        let held = |kind: &LayerProfile| {
            let bytes = [kind.activations, kind.working, kind.held_on];
            (kind.by_replicas(), bytes, kind.repeatable)
        };
        let per = &job.per_parameter;
        Self {
            layers: profile.kinds.iter().map(held).collect(),
            edges: profile.edges.clone(),
            sequence: profile.sequence.clone(),
            is_chain: profile.is_chain(),
            tied: profile.tied,
            degrees: (profile.width, profile.context, profile.expert_devices),
            links: job.links.clone(),
            devices: job.devices,
            micro_batches: job.micro_batches,
            bytes: [per.weight, per.gradient, per.reduced(), per.state],
            buckets: job.ends.buckets,
            time_model: job.time_model,
        }
    }
}

impl KnownShapes {
    /// Whether they are those of a problem, which the first that asks decides.
    pub(super) fn are_of(&self, problem: &Problem) -> bool {
        let holders = Holders::of(problem);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known.of.get_or_insert_with(|| holders.clone()) == holders
    }

    pub(super) fn get(&self, key: &ExchangeKey) -> Option<Exchanged> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).times.get(key).copied()
    }

    /// Whether some cut of a shape fits in so much memory, which `find` finds where it was not asked for before.
    pub(super) fn fits(&self, shape: Shape, memory: u64, find: impl FnOnce() -> bool) -> bool {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().fits.get(&(shape, memory)).copied();
        known.unwrap_or_else(|| {
            let fits = find();
            lock().fits.insert((shape, memory), fits);
            fits
        })
    }

    pub(super) fn insert(&self, key: ExchangeKey, found: Exchanged) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).times.insert(key, found);
    }
}
