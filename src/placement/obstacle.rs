//! Why nothing fits, by the tightest limit.

use super::Problem;
use crate::plan::Job;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::cost;

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
        /// The fewest devices of one pipeline on which all fit, where some number does.
        needed: Option<u64>,
    },
}

/// Why `problem` has no placement, given that it has none.
pub fn obstacle(problem: &Problem) -> Obstacle {
    let profile = problem.profile;
    let n_layers = profile.n_layers();
    let alone: Vec<Vec<usize>> = (0..n_layers).map(|layer| vec![layer]).collect();
    let pipeline = Pipeline::of_stages(n_layers, &alone).expect("each layer is a stage");
    // One micro-batch keeps the least of everything.
    let easiest = Job { micro_batches: 1, ..problem.job.clone() };
    let placement = Placement { data_parallel: 1, recompute: problem.recompute, pipeline };
    let mut job = easiest.clone();
    job.time_model = crate::plan::TimeModel::OneForwardOneBackward;
    let cost = cost(profile, &job, &placement);
    let needs = cost.stages.iter().map(|stage| stage.memory.total()).enumerate();
    let (layer, needed) = needs
        .max_by_key(|&(layer, needed)| (needed, std::cmp::Reverse(layer)))
        .expect("there are layers");
    if needed > u128::from(problem.job.memory) {
        return Obstacle::Layer { layer, needed };
    }
    let unbounded = Job { devices: profile.width * n_layers as u64, ..problem.job.clone() };
    let free = Problem { job: &unbounded, data_parallel: 1..=1, stages: 1..=n_layers, ..*problem };
    let possible = |devices: u64| {
        let job = Job { devices, ..unbounded.clone() };
        matches!(super::solve(&Problem { job: &job, ..free.clone() }, None), Ok(Some(_)))
    };
    // Invariant: `few` devices do not suffice; `enough` do. More devices never hurt.
    let (mut few, mut enough) = (0, unbounded.devices);
    if !possible(enough) {
        return Obstacle::Devices { needed: None };
    }
    while few + 1 < enough {
        let middle = few + (enough - few) / 2;
        if possible(middle) {
            enough = middle;
        } else {
            few = middle;
        }
    }
    Obstacle::Devices { needed: Some(enough) }
}
