//! Why nothing fits, by the tightest limit.

use super::Problem;
use crate::plan::Job;
use crate::plan::Pipeline;
use crate::plan::Placement;
use crate::plan::TimeModel;
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
    let time_model = TimeModel::OneForwardOneBackward;
    let easiest = Job { micro_batches: 1, time_model, ..problem.job.clone() };
    let placement = Placement { data_parallel: 1, recompute: problem.recompute, pipeline };
    let cost = cost(profile, &easiest, &placement);
    let needs = cost.stages.iter().map(|stage| stage.memory.total()).enumerate();
    let (layer, needed) = needs
        .max_by_key(|&(layer, needed)| (needed, std::cmp::Reverse(layer)))
        .expect("there are layers");
    if needed > u128::from(problem.job.memory) {
        return Obstacle::Layer { layer, needed };
    }
    Obstacle::Devices { needed: fewest_devices(problem) }
}

/// The fewest devices on which one pipeline of `problem` fits; `None` where none do.
pub fn fewest_devices(problem: &Problem) -> Option<u64> {
    let profile = problem.profile;
    let most = profile.width * profile.n_layers() as u64;
    let possible = |devices: u64| {
        let job = Job { devices, ..problem.job.clone() };
        let stages = problem.stages.clone();
        let free = Problem { job: &job, data_parallel: 1..=1, stages, ..*problem };
        matches!(super::solve(&free, None), Ok(Some(_)))
    };
    // Invariant: `few` devices do not suffice; `enough` do. More devices never hurt.
    let (mut few, mut enough) = (0, most);
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
