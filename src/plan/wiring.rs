//! Which devices of a plan talk to each other about layers, gradients and weights, and how long
//! that takes.

use crate::hardware::network::Group;
use crate::model::Axis;
use crate::model::op::CollectiveKind;
use crate::parallel::Grid;
use crate::parallel::Order;
use crate::parallel::zero::Zero;

use super::Job;

/// The groups of a plan's devices beyond those that share a layer.
#[derive(Clone, Copy, Debug)]
pub struct Wiring<'a> {
    job: &'a Job,
    grid: Grid,
    order: Order,
    /// Replicas that share what their stage of sharding shares.
    shards: Group,
    /// Groups of such replicas that are copies of each other.
    copies: Group,
    /// All replicas.
    replicas: Group,
    zero: Zero,
}

impl<'a> Wiring<'a> {
    /// The devices of `grid` in this order, `shards` replicas sharing.
    ///
    /// Groups of fewer replicas than all are whole sequences (a multiple of the context degree),
    /// neighbours along the data axis.
    pub fn new(job: &'a Job, grid: Grid, order: Order, zero: Zero, shards: u64) -> Self {
        let replicas = order.group(&grid, &[Axis::Context, Axis::Data]);
        let stride = order.stride(&grid, Axis::Data);
        let along = (shards / grid.context).clamp(1, grid.data);
        let inner = Group::along(along, stride);
        let context = Group::along(grid.context, order.stride(&grid, Axis::Context));
        let context_is_inner = order.stride(&grid, Axis::Context) <= stride;
        let shards = match (shards >= grid.context * grid.data, context_is_inner) {
            (true, _) => replicas,
            (false, true) => Group::both(context, inner),
            (false, false) => Group::both(inner, context),
        };
        let copies = Group::along(grid.data / along, stride * along);
        let copies = if shards == replicas { Group::ALONE } else { copies };
        Self { job, grid, order, shards, copies, replicas, zero }
    }

    /// How many replicas share.
    pub fn n_shards(&self) -> u64 {
        self.shards.size()
    }

    /// How many replicas of each parameter there are.
    pub fn n_replicas(&self) -> u64 {
        self.replicas.size()
    }

    /// Ticks until `size` has reached the next stage; `wraps` where the last rank sends to the first.
    pub fn send(&self, size: u64, wraps: bool) -> u64 {
        let ranks = self.order.group(&self.grid, &[Axis::Pipeline]);
        self.job.links.send(size, ranks, wraps, self.job.devices)
    }

    /// Ticks until replicas have added up the gradients of so many parameters, each what it needs.
    pub fn reduce(&self, parameters: u64) -> u64 {
        let size = parameters.saturating_mul(self.job.per_parameter.reduced());
        match self.zero {
            Zero::Nothing => self.collective(CollectiveKind::AllReduce, size, self.replicas),
            Zero::State | Zero::Gradients | Zero::Weights => {
                let part = size.div_ceil(self.n_shards());
                let scattered = self.collective(CollectiveKind::ReduceScatter, size, self.shards);
                scattered.saturating_add(self.among_copies(part))
            }
        }
    }

    /// Ticks until the copies of a shard have added up a part of the gradients.
    fn among_copies(&self, size: u64) -> u64 {
        self.collective(CollectiveKind::AllReduce, size, self.copies)
    }

    /// The same for the copies of shards alone, where shards are added up in every micro-batch.
    pub fn reduce_copies(&self, parameters: u64) -> u64 {
        let size = parameters.saturating_mul(self.job.per_parameter.reduced());
        self.among_copies(size.div_ceil(self.n_shards()))
    }

    /// Ticks until replicas that share have all of so many weights.
    pub fn gather(&self, parameters: u64) -> u64 {
        let size = parameters.saturating_mul(self.job.per_parameter.weight);
        self.collective(CollectiveKind::AllGather, size, self.shards)
    }

    /// Ticks until the first and the last stage have added up the gradients of a table of `tied`
    /// parameters that both hold; none where there is no such table, or one stage.
    pub fn tied(&self, tied: u64) -> u64 {
        let apart = self.grid.pipeline.saturating_sub(1);
        if tied == 0 || apart == 0 {
            return 0;
        }
        let group = Group::along(2, self.order.stride(&self.grid, Axis::Pipeline) * apart);
        let size = tied.saturating_mul(self.job.per_parameter.reduced());
        self.collective(CollectiveKind::AllReduce, size, group)
    }

    fn collective(&self, kind: CollectiveKind, size: u64, group: Group) -> u64 {
        if group.size() <= 1 || size == 0 {
            return 0;
        }
        self.job.links.collective(kind, size, group, self.job.devices)
    }
}
