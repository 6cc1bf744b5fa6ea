//! Why nothing fits, by the tightest limit.

use super::Choices;
use super::Problem;
use super::Usage;
use super::choices::copies_for_experts;
use super::every_shape;
use crate::parallel::Order;
use crate::parallel::frameworks::BrokenRule;
use crate::parallel::zero::Zero;
use crate::plan::Job;
use crate::plan::PassOrder;
use crate::plan::Recompute;
use crate::plan::Shape;
use crate::plan::StageRules;
use crate::plan::TimeModel;

/// The limit that no placement keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A layer does not fit on a device of its width even alone, with one micro-batch in flight.
    Layer {
        /// Its place in the sequence.
        layer: usize,
        /// What it needs.
        needed: u128,
    },
    /// Every layer fits alone, but not all of them on the devices that there are.
    Devices {
        /// The fewest devices on which all fit, where some number does.
        needed: Option<u64>,
    },
}

/// Why `problem` has no placement, given that it has none.
pub fn obstacle(problem: &Problem) -> Obstacle {
    let Problem { profile, job, choices } = *problem;
    let per_rank = profile.width * profile.context;
    // One micro-batch keeps the least of everything; as many replicas as there can be share most.
    let time_model = TimeModel::OneForwardOneBackward;
    let easiest = Job { micro_batches: job.micro_batches, time_model, ..job.clone() };
    let all = (job.devices / per_rank).min(job.micro_batches).min(*choices.data_parallel.end());
    let least = |layer: usize| {
        let shapes = choices.zero.iter().flatten().flat_map(|&zero| {
            choices.recompute.iter().map(move |&recompute| Shape {
                data_parallel: if zero == Zero::Nothing { 1 } else { all.max(1) },
                ranks: 1,
                schedule: PassOrder::OneForwardOneBackward,
                zero,
                shards: choices.shards.filter(|_| zero > Zero::Nothing),
                order: choices.orders[0],
                recompute: match recompute {
                    Recompute::AsNeeded => Recompute::EVERY_LAYER,
                    other => other,
                },
            })
        });
        let needs = shapes.map(|shape| {
            let one = Job { micro_batches: shape.data_parallel, ..easiest.clone() };
            let rules = StageRules::new(profile, &one, shape);
            let layers = [layer];
            rules.rank(0, &[(&layers, rules.stage(0, &layers))]).memory.total()
        });
        needs.min().unwrap_or(0)
    };
    let needs = (0..profile.n_layers()).map(|layer| (layer, least(layer)));
    let (layer, needed) = needs
        .max_by_key(|&(layer, needed)| (needed, std::cmp::Reverse(layer)))
        .expect("there are layers");
    if needed > u128::from(job.memory) {
        return Obstacle::Layer { layer, needed };
    }
    Obstacle::Devices { needed: fewest_devices(problem) }
}

/// The rule of a framework that is all that is in the way of `problem`, where that is so: of what is
/// refused, what is said of the shape that promises most.
pub fn refusal(problem: &Problem) -> Option<BrokenRule> {
    let legal = problem.choices.legal?;
    let choices = Choices { legal: None, ..problem.choices.clone() };
    let free = Problem { choices: &choices, ..*problem };
    if super::fits(problem) || !super::fits(&free) {
        return None;
    }
    let shapes = every_shape(&free, false).into_iter();
    let refused = shapes.filter_map(|(shape, least)| Some((least, legal.check(&shape).err()?)));
    refused.min_by_key(|(least, _)| *least).map(|(_, broken)| broken)
}

/// The fewest devices on which `problem` fits, some of them idle or not; `None` where none do.
pub fn fewest_devices(problem: &Problem) -> Option<u64> {
    let Problem { profile, job, choices } = *problem;
    let chunks = *choices.chunks.start()..=*choices.chunks.start();
    let choices = Choices { usage: Usage::Any, chunks, legal: None, ..choices.clone() };
    if choices.shards.is_none() && *choices.chunks.end() == 1 && super::tells_what_fits(problem) {
        return fewest_in_a_chain(problem);
    }
    let possible = |devices: u64| {
        let job = Job { devices, ..job.clone() };
        let free = Problem { profile, job: &job, choices: &choices };
        super::fits(&free)
    };
    let deepest = profile.width * profile.context * profile.n_layers() as u64;
    let sharing = job.micro_batches.min(MOST_REPLICAS).min(*choices.data_parallel.end());
    // Invariant: `few` devices do not suffice; `enough` do. More devices never hurt.
    let (mut few, mut enough) = (0, deepest.saturating_mul(sharing.max(1)));
    if !possible(enough) {
        return None;
    }
    while few + 1 < enough {
        let middle = few + (enough - few) / 2;
        if possible(middle) {
            enough = middle;
        } else {
            few = middle;
        }
    }
    Some(enough)
}

/// The same where memory alone tells whether a shape fits.
///
/// With more pipelines each has fewer micro-batches in flight, and more share: of every number of
/// ranks the fewest pipelines that fit are found by halves, among those that hold every expert
/// equally often.
fn fewest_in_a_chain(problem: &Problem) -> Option<u64> {
    let Problem { profile, job, choices } = *problem;
    let copies = copies_for_experts(profile);
    let per_rank = problem.devices_per_rank();
    let mut fewest: Option<u64> = None;
    let most_ranks = profile.n_layers().min(*choices.ranks.end());
    let least = (*choices.data_parallel.start()).max(1).div_ceil(copies);
    let most = job.micro_batches.min(MOST_REPLICAS.max(copies)).min(*choices.data_parallel.end());
    for ranks in (*choices.ranks.start()).max(1)..=most_ranks {
        let each = per_rank * ranks as u64;
        let zeros = &choices.zero[usize::from(ranks > 1)];
        let ways = zeros.iter().flat_map(|&zero| {
            let shape = move |&recompute| Shape {
                data_parallel: copies,
                ranks,
                schedule: PassOrder::OneForwardOneBackward,
                zero,
                shards: None,
                order: choices.orders[0],
                recompute: match recompute {
                    Recompute::AsNeeded => Recompute::EVERY_LAYER,
                    other => other,
                },
            };
            choices.recompute.iter().map(shape)
        });
        for shape in ways {
            let folds = |&order: &Order| Shape { order, ..shape }.folds(profile);
            let Some(&order) = choices.orders.iter().find(|order| folds(order)) else { continue };
            let fits = |times: u64| {
                let data_parallel = times * copies;
                super::some_cut_fits(problem, Shape { data_parallel, order, ..shape })
            };
            let room = fewest.map_or(u64::MAX, |known| (known - 1) / each);
            let most = most.min(room) / copies;
            if least > most || !fits(most) {
                continue;
            }
            let (mut few, mut enough) = (least - 1, most);
            while few + 1 < enough {
                let middle = few.midpoint(enough);
                if fits(middle) { enough = middle } else { few = middle }
            }
            fewest = Some(enough * copies * each);
        }
    }
    fewest
}

/// Beyond so many replicas, what they share is next to nothing.
const MOST_REPLICAS: u64 = 4096;
