//! What any design must face: which stage counts and replica counts memory and devices allow.
//!
//! Memory does not depend on how fast a chip is, so this is found once per width, micro-batch,
//! recompute choice and HBM size, and then bounds the time per batch of every design in a few
//! hundred operations, given only a lower bound on its layer times ([`Ground::least_time`]).
//!
//! The model is relaxed to its repeated layer: the others (embedding, head) weigh nothing in
//! memory but count in time. Every relaxation makes the bound smaller, never larger;
//! docs/search.md proves it.

use super::roofline::lowered;
use crate::plan::Recompute;
use crate::plan::TimeModel;

/// The figures that [`Ground::survey`] needs of a model, a cluster and a job.
#[derive(Clone, Copy, Debug)]
pub struct Terrain {
    /// Accelerators at hand.
    pub devices: u64,
    /// Devices that every stage takes at the least.
    pub devices_per_stage: u64,
    /// Micro-batches in a batch.
    pub micro_batches: u64,
    /// Layers in the model.
    pub layers: u64,
    /// How many of them are copies of the repeated one.
    pub repeated: u64,
    /// What is kept and what is run again.
    pub recompute: Recompute,
    /// How the time of a batch is defined.
    pub time_model: TimeModel,
    /// Bytes that a device can hold.
    pub capacity: u64,
    /// Bytes of weights, gradients and optimizer state of the repeated layer.
    pub state: u64,
    /// Bytes that the repeated layer keeps for one micro-batch.
    pub kept: u64,
    /// Bytes that enter the repeated layer in one micro-batch.
    pub input: u64,
}

/// A number of stages and replicas that may be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    stages: u64,
    /// Micro-batches that each pipeline runs.
    rounds: u64,
    /// The least time for the exchange of gradients at the end.
    end: u64,
    /// The most repeated layers that fit in the last stage.
    last_stage: u64,
}

/// The ways to divide a model that memory and devices may allow.
#[derive(Clone, Debug)]
pub struct Ground {
    terrain: Terrain,
    cases: Vec<Case>,
}

/// Lower bounds on the times of a model's layers on some design, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerTimes {
    /// Forward pass of the repeated layer.
    pub forward: f64,
    /// Backward pass of the repeated layer.
    pub backward: f64,
    /// Forward passes of all other layers together.
    pub others_forward: f64,
    /// Backward passes of all other layers together.
    pub others_backward: f64,
}

impl Ground {
    /// Finds all cases; `exchange(replicas, stages)` is a lower bound on the time that some stage
    /// needs to exchange its gradients.
    pub fn survey(terrain: Terrain, exchange: impl Fn(u64, u64) -> u64) -> Self {
        let mut cases: Vec<Case> = Vec::new();
        let most_stages = terrain.layers.min(terrain.devices / terrain.devices_per_stage);
        // More stages first: a case is dominated by one with at least as many stages, and no more
        // rounds or end time.
        for stages in (1..=most_stages).rev() {
            let most_replicas =
                (terrain.devices / (terrain.devices_per_stage * stages)).min(terrain.micro_batches);
            // Replicas are taken in groups that the bound does not tell apart: the rounds of the
            // largest of the group, the least exchange of any of them.
            let mut least = 1;
            while least <= most_replicas {
                let greatest = (least + least / 4).min(most_replicas);
                let rounds = terrain.micro_batches.div_ceil(greatest);
                if terrain.may_fit(stages, rounds) {
                    let end = match terrain.time_model {
                        TimeModel::Published => 0,
                        TimeModel::OneForwardOneBackward => {
                            let each =
                                (least..=greatest).map(|replicas| exchange(replicas, stages));
                            each.min().unwrap_or(0)
                        }
                    };
                    let last_stage = terrain.most_layers(1, rounds);
                    let case = Case { stages, rounds, end, last_stage };
                    if !cases.iter().any(|known| terrain.dominates(known, &case)) {
                        cases.push(case);
                    }
                }
                least = greatest + 1;
            }
        }
        Self { terrain, cases }
    }

    /// A time per batch that no placement of layers at least this slow can beat; `None` where
    /// nothing fits.
    pub fn least_time(&self, layer: LayerTimes) -> Option<u64> {
        let times = self.cases.iter().map(|case| self.time_of(case, layer));
        times.reduce(f64::min).map(lowered)
    }

    fn time_of(&self, case: &Case, layer: LayerTimes) -> f64 {
        let LayerTimes { forward, backward, others_forward, others_backward } = layer;
        let (once, rest) = (forward + backward, others_forward + others_backward);
        match self.terrain.recompute {
            Recompute::None => self.with_loads(case, once, rest),
            Recompute::Full => self.with_loads(case, forward + once, others_forward + rest),
            Recompute::Stage if case.stages == 1 => self.with_loads(case, once, rest),
            Recompute::Stage => self.with_stage_recompute(case, once, forward + once, rest),
        }
    }

    /// The bound where each repeated layer adds `load` to its stage, and the others `rest` in all.
    fn with_loads(&self, case: &Case, load: f64, rest: f64) -> f64 {
        let repeated = self.terrain.repeated;
        let sum = repeated as f64 * load + rest;
        // Some stage holds at least the average number of layers, and at least the average load.
        let slowest = (repeated.div_ceil(case.stages) as f64 * load).max(sum / case.stages as f64);
        self.time_from(case, sum, slowest)
    }

    /// The bound where a layer costs `once` in the last stage, which repeats nothing and holds at
    /// most so many, and `twice` in the others.
    fn with_stage_recompute(&self, case: &Case, once: f64, twice: f64, rest: f64) -> f64 {
        let repeated = self.terrain.repeated;
        let most = case.last_stage.min(repeated);
        let sum = |in_last: u64| in_last as f64 * once + (repeated - in_last) as f64 * twice + rest;
        let earlier = |in_last: u64| (repeated - in_last).div_ceil(case.stages - 1) as f64 * twice;
        // By the average load: the more in the last stage, the less there is in all.
        let by_average = self.time_from(case, sum(most), sum(most) / case.stages as f64);
        if case.rounds == 1 {
            return by_average;
        }
        // By the slowest stage: up to the balance another layer in the last stage shortens both
        // the sum and the slowest; beyond it lengthens the slowest by more than it saves.
        let (mut below, mut balanced) = (0, repeated);
        while below < balanced {
            let middle = below + (balanced - below) / 2;
            if middle as f64 * once >= earlier(middle) {
                balanced = middle;
            } else {
                below = middle + 1;
            }
        }
        let by_slowest = [balanced.saturating_sub(1).min(most), balanced.min(most)]
            .map(|x| self.time_from(case, sum(x), earlier(x).max(x as f64 * once)));
        // The least of the larger of two is at least the larger of their least.
        by_average.max(by_slowest[0].min(by_slowest[1]))
    }

    fn time_from(&self, case: &Case, sum: f64, slowest: f64) -> f64 {
        match self.terrain.time_model {
            TimeModel::Published => slowest * (case.rounds + case.stages - 1) as f64,
            TimeModel::OneForwardOneBackward => {
                sum + (case.rounds - 1) as f64 * slowest + case.end as f64
            }
        }
    }
}

impl Terrain {
    /// Whether every case that `case` covers is at least as slow as `known`.
    fn dominates(&self, known: &Case, case: &Case) -> bool {
        // The published time grows with the stages besides falling with the load.
        let stages_compare = match self.time_model {
            TimeModel::Published => known.stages == case.stages,
            TimeModel::OneForwardOneBackward => known.stages >= case.stages,
        };
        stages_compare
            && known.rounds <= case.rounds
            && known.end <= case.end
            && (self.recompute != Recompute::Stage
                || known.last_stage >= case.last_stage && case.stages > 1)
    }

    /// Whether the repeated layers alone fit in so many stages.
    fn may_fit(&self, stages: u64, rounds: u64) -> bool {
        let room: u64 = (1..=stages)
            .map(|in_flight| self.most_layers(in_flight, rounds))
            .fold(0, u64::saturating_add);
        room >= self.repeated
    }

    /// The most repeated layers that fit in the stage with `in_flight - 1` stages after it.
    fn most_layers(&self, in_flight: u64, rounds: u64) -> u64 {
        let in_flight = match self.time_model {
            TimeModel::Published => in_flight,
            TimeModel::OneForwardOneBackward => in_flight.min(rounds),
        };
        // Memory of n layers is `fixed + n · each`.
        let (fixed, each) = match self.recompute {
            Recompute::None => (0, self.state + in_flight * self.kept),
            Recompute::Stage => ((in_flight - 1) * self.input, self.state + self.kept),
            Recompute::Full => (self.kept, self.state + in_flight * self.input),
        };
        match self.capacity.checked_sub(fixed) {
            Some(room) => room.checked_div(each).unwrap_or(u64::MAX).min(self.repeated),
            None => 0,
        }
    }
}
