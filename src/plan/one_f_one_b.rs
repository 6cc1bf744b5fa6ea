//! When the stages of one-forward-one-backward end, exactly, for stages of any times and any
//! number of micro-batches.
//!
//! Passes are events joined by what they wait for. A longest path through them climbs with
//! forward passes while the slowest stage below repeats, stays at one stage r whose load repeats,
//! and comes down with backward passes in the mirror image. Cycles of the event graph are
//! intervals of stages whose mean is an average load: no rate but the largest load lasts. With p
//! stages, m micro-batches, and f, b and l = f + b of each stage, stage z has done its last
//! backward pass at
//!
//! ```text
//! P(q)   = Σ_{i≤q} l_i        h(q) = min(p − 1 − q, m − 1)
//! A(q)   = P(q) + h(q) · max_{i≤q} f_i
//! C_z(q) = P(q) + h(q) · max_{z≤i≤q} b_i
//! T_z = max over r of
//!     (m − p + r) · l_r − P(r) + max_{q≥r} A(q) + max_{q≥r,z} C_z(q)     where m ≥ p − r
//!     max_{q≥r,z} C_z(q) + (m − 1) · f_r                                 where m < p − r
//!     max_{q≥r} A(q) + (m − 1) · b_r                                     where m < p − r and r ≥ z
//!   − Σ_{i<z} b_i
//! ```
//!
//! The first stage ends last: its end is the time until the last pass has ended.

use super::StageTime;

/// Ticks until the last pass has ended: until the first stage has done its last backward pass.
pub fn time(stages: &[StageTime], micro_batches: u64) -> u128 {
    if stages.is_empty() { 0 } else { Climb::new(stages, micro_batches).stage_end(0) }
}

/// When each stage has done its last backward pass.
pub fn stage_ends(stages: &[StageTime], micro_batches: u64) -> Vec<u128> {
    let climb = Climb::new(stages, micro_batches);
    (0..stages.len()).map(|stage| climb.stage_end(stage)).collect()
}

/// What does not depend on the stage whose end is asked for.
struct Climb<'a> {
    stages: &'a [StageTime],
    micro_batches: i128,
    /// Sums of forward passes and of loads up to each stage.
    forward: Vec<i128>,
    load: Vec<i128>,
    /// The largest A(q) from each stage on.
    highest: Vec<i128>,
}

impl<'a> Climb<'a> {
    fn new(stages: &'a [StageTime], micro_batches: u64) -> Self {
        let n = stages.len();
        let mut climb = Self {
            stages,
            micro_batches: micro_batches.into(),
            forward: Vec::with_capacity(n),
            load: Vec::with_capacity(n),
            highest: Vec::with_capacity(n),
        };
        let (mut forward, mut load, mut slowest) = (0, 0, 0);
        for (place, stage) in stages.iter().enumerate() {
            forward += i128::from(stage.forward);
            load += i128::from(stage.forward) + i128::from(stage.backward);
            slowest = i128::from(stage.forward).max(slowest);
            climb.forward.push(forward);
            climb.load.push(load);
            climb.highest.push(load + climb.repeats(place) * slowest);
        }
        largest_from_here(&mut climb.highest);
        climb
    }

    /// How often the slowest stage repeats while a micro-batch waits to turn at `place`: h.
    fn repeats(&self, place: usize) -> i128 {
        ((self.stages.len() - 1 - place) as i128).min(self.micro_batches - 1)
    }

    fn stage_end(&self, of: usize) -> u128 {
        let mut slowest = 0;
        let mut descent: Vec<i128> = Vec::with_capacity(self.stages.len() - of);
        for place in of..self.stages.len() {
            slowest = i128::from(self.stages[place].backward).max(slowest);
            descent.push(self.load[place] + self.repeats(place) * slowest);
        }
        largest_from_here(&mut descent);
        let through = |r: usize| {
            let (stage, descent) = (self.stages[r], descent[r.max(of) - of]);
            let (forward, backward) = (i128::from(stage.forward), i128::from(stage.backward));
            let rounds = self.micro_batches - (self.stages.len() - r) as i128;
            if rounds >= 0 {
                return rounds * (forward + backward) - self.load[r] + self.highest[r] + descent;
            }
            let by_forwards = descent + (self.micro_batches - 1) * forward;
            let by_backwards = self.highest[r] + (self.micro_batches - 1) * backward;
            if r >= of { by_forwards.max(by_backwards) } else { by_forwards }
        };
        let before = if of == 0 { 0 } else { self.load[of - 1] - self.forward[of - 1] };
        let end = (0..self.stages.len()).map(through).max().unwrap_or(0) - before;
        u128::try_from(end).expect("a pass ends after the batch begins")
    }
}

/// Replaces each value by the largest from its place on.
fn largest_from_here(values: &mut [i128]) {
    for place in (1..values.len()).rev() {
        values[place - 1] = values[place].max(values[place - 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PassOrder;
    use crate::plan::PipelinedBatch;

    fn agrees(times: &[StageTime], micro_batches: u64) {
        let order = PassOrder::OneForwardOneBackward;
        let batch = PipelinedBatch { order, ranks: times.len(), micro_batches, times, delay: 0 };
        let played = batch.play(|_| ()).unwrap();
        let played: Vec<u128> = played.into_iter().map(u128::from).collect();
        assert_eq!(stage_ends(times, micro_batches), played, "{times:?} {micro_batches}");
        assert_eq!(time(times, micro_batches), played[0]);
    }

    #[test]
    fn all_small_pipelines_end_when_the_simulation_says() {
        let passes = [0, 1, 3];
        let all: Vec<StageTime> = passes
            .iter()
            .flat_map(|&forward| passes.map(|backward| StageTime { forward, backward }))
            .collect();
        for micro_batches in 1..6 {
            for a in &all {
                for b in &all {
                    agrees(&[*a, *b], micro_batches);
                    for c in &all {
                        agrees(&[*a, *b, *c], micro_batches);
                    }
                }
            }
        }
    }

    #[test]
    fn random_pipelines_end_when_the_simulation_says() {
        let mut state: u64 = 0x1F1B;
        let mut noise = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..120_000 {
            let n = 1 + noise(9);
            let largest = [2, 5, 40, 1000][usize::try_from(noise(4)).unwrap()];
            let micro_batches = if noise(2) == 0 { 1 + noise(n) } else { 1 + noise(20) };
            let ratio = noise(4);
            let stage = |noise: &mut dyn FnMut(u64) -> u64| {
                let forward = noise(largest);
                let backward = if ratio == 3 { 2 * forward } else { noise(2 * largest) };
                StageTime { forward, backward }
            };
            let times: Vec<StageTime> = (0..n).map(|_| stage(&mut noise)).collect();
            agrees(&times, micro_batches);
        }
    }

    #[test]
    fn equal_stages_take_one_load_for_every_micro_batch_and_every_other_stage() {
        for n in 1..9_u64 {
            let times = vec![StageTime { forward: 3, backward: 4 }; usize::try_from(n).unwrap()];
            for micro_batches in 1..20 {
                assert_eq!(time(&times, micro_batches), u128::from((micro_batches + n - 1) * 7));
            }
        }
    }

    #[test]
    fn no_time_leaves_the_range_of_integers() {
        let times = [StageTime { forward: 1 << 60, backward: 1 << 60 }; 3];
        assert_eq!(time(&times, 1 << 32), ((1 << 32) + 2) << 61);
    }
}
