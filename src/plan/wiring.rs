//! Which devices of a plan talk to each other about layers, gradients and weights, and how long
//! that takes.

use crate::hardware::network::Group;
use crate::model::Axis;
use crate::model::op::CollectiveKind;
use crate::parallel::Grid;
use crate::parallel::Order;
use crate::parallel::Parameters;
use crate::parallel::zero::Zero;

use super::Job;

/// The groups of a plan's devices beyond those that share a layer.
#[derive(Clone, Copy, Debug)]
pub struct Wiring<'a> {
    job: &'a Job,
    grid: Grid,
    order: Order,
    /// Of parameters that are not of experts.
    dense: Replicas,
    /// Of experts.
    experts: Replicas,
    zero: Zero,
}

/// The devices that hold the same parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replicas {
    /// All of them.
    all: Group,
    /// Those that share what their stage of sharding shares.
    shards: Group,
    /// Groups of such that are copies of each other.
    copies: Group,
}

impl Replicas {
    /// Of the parameters that every device along the context and the data axis has.
    ///
    /// Groups of fewer replicas than all are whole sequences (a multiple of the context degree),
    /// neighbours along the data axis.
    fn dense(grid: &Grid, order: Order, shards: u64) -> Self {
        let all = order.group(grid, &[Axis::Context, Axis::Data]);
        let stride = order.stride(grid, Axis::Data);
        let along = (shards / grid.context).clamp(1, grid.data);
        let inner = Group::along(along, stride);
        let context = Group::along(grid.context, order.stride(grid, Axis::Context));
        let context_is_inner = order.stride(grid, Axis::Context) <= stride;
        let shards = match (shards >= grid.context * grid.data, context_is_inner) {
            (true, _) => all,
            (false, true) => Group::both(context, inner),
            (false, false) => Group::both(inner, context),
        };
        let copies = Group::along(grid.data / along, stride * along);
        let copies = if shards == all { Group::ALONE } else { copies };
        Self { all, shards, copies }
    }

    /// Of experts: in as many groups as the others.
    fn of_experts(grid: &Grid, order: Order, shards: u64) -> Self {
        let all = order.expert_replicas(grid);
        let groups = (grid.context * grid.data / shards.max(1)).clamp(1, all.size());
        let stride = order.expert_stride(grid);
        let shards = all.size() / groups;
        Self {
            all,
            shards: Group::along(shards, stride),
            copies: Group::along(groups, stride * shards),
        }
    }
}

impl<'a> Wiring<'a> {
    /// The devices of `grid` in this order, `shards` replicas sharing.
    pub fn new(job: &'a Job, grid: Grid, order: Order, zero: Zero, shards: u64) -> Self {
        let dense = Replicas::dense(&grid, order, shards);
        let experts = Replicas::of_experts(&grid, order, shards);
        Self { job, grid, order, dense, experts, zero }
    }

    /// Whether some parameters have several replicas that share them.
    pub fn has_shards(&self) -> bool {
        self.dense.shards.size().max(self.experts.shards.size()) > 1
    }

    /// Whether some parameters have several replicas.
    pub fn has_replicas(&self) -> bool {
        self.n_replicas().max(self.experts.all.size()) > 1
    }

    /// How many replicas of each parameter there are, those of experts apart.
    pub fn n_replicas(&self) -> u64 {
        self.dense.all.size()
    }

    /// Sums over both kinds of parameters what their replicas take: where they are the same devices,
    /// both go together.
    fn each(&self, parameters: Parameters, time: impl Fn(&Replicas, u64) -> u64) -> u64 {
        if self.dense == self.experts {
            return time(&self.dense, parameters.all());
        }
        let experts = time(&self.experts, parameters.experts);
        time(&self.dense, parameters.dense).saturating_add(experts)
    }

    /// Ticks until `size` has reached the next stage; `wraps` where the last rank sends to the first.
    pub fn send(&self, size: u64, wraps: bool) -> u64 {
        let ranks = self.order.group(&self.grid, &[Axis::Pipeline]);
        self.job.links.send(size, ranks, wraps, self.job.devices)
    }

    /// Ticks until replicas have added up the gradients of so many parameters, each what it needs.
    pub fn reduce(&self, parameters: Parameters) -> u64 {
        self.each(parameters, |replicas, parameters| {
            let size = parameters.saturating_mul(self.job.per_parameter.reduced());
            match self.zero {
                Zero::Nothing => self.collective(CollectiveKind::AllReduce, size, replicas.all),
                Zero::State | Zero::Gradients | Zero::Weights => {
                    let scatter = CollectiveKind::ReduceScatter;
                    let scattered = self.collective(scatter, size, replicas.shards);
                    scattered.saturating_add(self.among_copies(replicas, parameters))
                }
            }
        })
    }

    /// Ticks until the copies of a shard have added up their part of the gradients.
    fn among_copies(&self, replicas: &Replicas, parameters: u64) -> u64 {
        let size = parameters.saturating_mul(self.job.per_parameter.reduced());
        let part = size.div_ceil(replicas.shards.size());
        self.collective(CollectiveKind::AllReduce, part, replicas.copies)
    }

    /// The same for the copies of shards alone, where shards are added up in every micro-batch.
    pub fn reduce_copies(&self, parameters: Parameters) -> u64 {
        self.each(parameters, |replicas, parameters| self.among_copies(replicas, parameters))
    }

    /// Ticks until replicas that share have all of so many weights.
    pub fn gather(&self, parameters: Parameters) -> u64 {
        self.each(parameters, |replicas, parameters| {
            let size = parameters.saturating_mul(self.job.per_parameter.weight);
            self.collective(CollectiveKind::AllGather, size, replicas.shards)
        })
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
