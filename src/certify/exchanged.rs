//! What replicas exchange at the least, whatever the cut (docs/search.md, step 4).

use std::ops::RangeInclusive;

use crate::hardware::Cluster;
use crate::hardware::network::Exchange;
use crate::model::op::CollectiveKind;
use crate::parallel::Setting;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Zero;
use crate::plan::Buckets;
use crate::plan::TimeModel;
use crate::units::Bytes;

use super::divide::Asked;
use super::divide::Divided;
use super::placed::ends;

/// Picoseconds of exchanges among replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchanged {
    /// The gradients of the first layer.
    pub first: f64,
    /// The gradients of all layers, one after the other, where the last micro-batch hides them.
    pub gradients: f64,
    /// The new weights of all layers, one after the other.
    pub weights: f64,
    /// What all layers exchange for every micro-batch.
    pub inside: f64,
}

/// What each kind of exchange takes for all layers, and for the first alone.
struct Totals {
    all: f64,
    first: f64,
}

impl Exchanged {
    /// Where there are from `fewest` to `most` pipelines, whose replicas share so.
    pub fn least(
        asked: &Asked,
        divided: &Divided,
        cluster: &Cluster,
        zero: Zero,
        (fewest, most): (u64, u64),
    ) -> Self {
        let buckets = ends(asked.space, asked.time_model, asked.stack).buckets;
        let one_by_one = buckets == Buckets::Layers && asked.space.shards.is_none();
        let context = divided.share.setting.context;
        let published = asked.time_model == TimeModel::Published;
        if published || !one_by_one {
            return Self::default();
        }
        let bytes = ParameterBytes::new(asked.optimizer, &asked.stack);
        let Setting { tensor_parallel: width, expert, expert_tensor, .. } = divided.share.setting;
        let owners = expert * expert_tensor;
        let of_experts = divided.expert_replicas(fewest)..=divided.expert_replicas(most);
        let of_rest = fewest * context..=most * context;
        let totals = |kind: CollectiveKind, each: Bytes| {
            let among = |parameters: u64, stride: u64, members: &RangeInclusive<u64>| {
                let topology = cluster.network.topology();
                let exchange = Exchange::Collective(kind);
                let (size, members) = (each * parameters, members.clone());
                if parameters == 0 || *members.start() < 2 {
                    return 0.0;
                }
                topology.least(exchange, size, stride, members, cluster.devices).0 as f64
            };
            let of_layer = |layer: &usize| {
                let layer = &divided.share.kinds[*layer];
                if owners == width {
                    // The same devices hold the same of both: they exchange all at once.
                    return among(layer.parameters, width, &of_rest);
                }
                let dense = layer.parameters - layer.expert_parameters;
                among(dense, width, &of_rest) + among(layer.expert_parameters, owners, &of_experts)
            };
            let sequence = &divided.share.sequence;
            let all = sequence.iter().map(of_layer).sum();
            Totals { all, first: sequence.first().map_or(0.0, of_layer) }
        };
        let scatter = || totals(CollectiveKind::ReduceScatter, bytes.reduced);
        let gather = || totals(CollectiveKind::AllGather, bytes.weight).all;
        match zero {
            Zero::Nothing => {
                let reduce = totals(CollectiveKind::AllReduce, bytes.reduced);
                Self { first: reduce.first, gradients: reduce.all, ..Self::default() }
            }
            Zero::State => {
                let reduce = scatter();
                Self { first: reduce.first, gradients: reduce.all, weights: gather(), inside: 0.0 }
            }
            Zero::Gradients => Self { weights: gather(), inside: scatter().all, ..Self::default() },
            Zero::Weights => Self { inside: scatter().all + 2.0 * gather(), ..Self::default() },
        }
    }
}

/// Numbers of pipelines from the least to the most, those together that are no more than a quarter
/// above the first of them.
pub fn together(least: u64, most: u64) -> Vec<(u64, u64)> {
    let mut groups = Vec::new();
    let mut first = least;
    while first <= most {
        let last = most.min(first + first / 4);
        groups.push((first, last));
        first = last + 1;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_pipelines_is_in_one_group() {
        for (least, most) in [(1, 1), (1, 40), (7, 1000), (3, 2)] {
            let groups = together(least, most);
            let each = groups.iter().flat_map(|&(first, last)| first..=last);
            assert!(each.eq(least..=most), "{groups:?}");
            assert!(groups.iter().all(|&(first, last)| last <= first + first / 4));
        }
    }
}
