//! Which states the stages of a pipeline can begin at, where no load may exceed a cap.

use std::ops::RangeInclusive;

use super::cut::StageCosts;
use super::cut::StageFigures;

/// By place in the pipeline, the states that a stage there can begin at; last the state after all.
pub(super) struct Bands {
    states: Vec<RangeInclusive<usize>>,
    cap: u64,
}

impl Bands {
    /// The states that stages of no more than `cap` reach and can go on from; `None` where there
    /// is no path.
    pub(super) fn new(costs: &impl StageCosts, n_stages: usize, cap: u64) -> Option<Self> {
        let states = if costs.is_monotone() {
            let highest = highest(costs, n_stages, cap)?;
            let lowest = lowest(costs, &highest, cap);
            lowest.into_iter().zip(highest).map(|(low, high)| low..=high).collect()
        } else {
            with_enough_left(costs, n_stages)?
        };
        Some(Self { states, cap })
    }

    /// The states at a place.
    pub(super) fn states(&self, place: usize) -> RangeInclusive<usize> {
        self.states[place].clone()
    }

    /// Calls `then` with every stage from a state at `place` that fits under the cap, shorter ones
    /// first on a chain, until it answers that longer ones are of no interest.
    pub(super) fn stages(
        &self,
        costs: &impl StageCosts,
        place: usize,
        from: usize,
        mut then: impl FnMut(usize, StageFigures) -> bool,
    ) {
        let (first, last) = (*self.states[place + 1].start(), *self.states[place + 1].end());
        let grows = costs.is_monotone() && place > 0 && place + 2 < self.states.len();
        for to in first.max(from + 1)..=last {
            if !costs.leads(from, to) {
                continue;
            }
            let figures = figures(costs, (place, from, to), self.cap);
            let goes_on = figures.is_some_and(|figures| then(to, figures));
            let is_least =
                || costs.is_least() || fits(costs, (place, from, to), self.cap).is_none();
            if !goes_on && grows && is_least() {
                break;
            }
        }
    }
}

/// A stage that fits under the cap.
fn figures(
    costs: &impl StageCosts,
    (place, from, to): (usize, usize, usize),
    cap: u64,
) -> Option<StageFigures> {
    if costs.least_stage_load(from, to) > cap {
        return None;
    }
    costs.stage(place, from, to).filter(|figures| figures.load() <= cap)
}

/// The load of a stage at its least, where that fits under the cap.
fn fits(
    costs: &impl StageCosts,
    (place, from, to): (usize, usize, usize),
    cap: u64,
) -> Option<u64> {
    if costs.least_stage_load(from, to) > cap {
        return None;
    }
    let load = costs.least_stage(place, from, to)?.load();
    (load <= cap).then_some(load)
}

/// Of a monotone chain, a state by place that no stages under the cap reach beyond; `None` where the
/// last state is not reached. Where they grow from place to place, they are a path.
///
/// A stage that begins later reaches as far: it is part of the one that begins earlier. Where not
/// even the next layer fits, what begins earlier ends before it.
fn highest(costs: &impl StageCosts, n_stages: usize, cap: u64) -> Option<Vec<usize>> {
    let end = costs.n_states() - 1;
    let mut highest = vec![0];
    for place in 0..n_stages - 1 {
        let (from, last) = (highest[place], end - (n_stages - 1 - place));
        let reached = if place == 0 {
            (1..=last).rev().find(|&to| fits(costs, (place, from, to), cap).is_some())?
        } else {
            farthest(costs, (place, from, last), cap)
        };
        highest.push(reached);
    }
    fits(costs, (n_stages - 1, highest[n_stages - 1], end), cap)?;
    highest.push(end);
    Some(highest)
}

/// The farthest state up to `last` that a stage under the cap reaches; where none does, `from`.
///
/// Of two stages that begin at a state the longer is never faster and never fits where the shorter
/// does not.
fn farthest(
    costs: &impl StageCosts,
    (place, from, last): (usize, usize, usize),
    cap: u64,
) -> usize {
    let last_that = |fits: &dyn Fn(usize) -> bool, last: usize| {
        let (mut reached, mut beyond) = (from, last + 1);
        // Mostly the last one does.
        let mut next = last;
        while reached + 1 < beyond {
            if fits(next) {
                reached = next;
            } else {
                beyond = next;
            }
            next = reached.midpoint(beyond);
        }
        reached
    };
    let light = last_that(&|to| costs.least_stage_load(from, to) <= cap, last);
    last_that(&|to| fits(costs, (place, from, to), cap).is_some(), light)
}

/// Of a monotone chain, a state before which no path under the cap can be at each place.
fn lowest(costs: &impl StageCosts, highest: &[usize], cap: u64) -> Vec<usize> {
    let n_stages = highest.len() - 1;
    let mut lowest = highest.to_vec();
    for place in (1..n_stages).rev() {
        let to = lowest[place + 1];
        // Whatever begins before `to` holds the layer before it.
        let first = highest[place].min(to - 1);
        let too_low = |&from: &usize| fits(costs, (place, from, to), cap).is_none();
        let below = (place..=first).rev().find(too_low);
        lowest[place] = below.map_or(place, |below| below + 1).min(highest[place]);
    }
    lowest
}

/// The states that leave a layer for every stage after, of any graph.
fn with_enough_left(
    costs: &impl StageCosts,
    n_stages: usize,
) -> Option<Vec<RangeInclusive<usize>>> {
    let (all, end) = (costs.n_left(0), costs.n_states() - 1);
    let mut states = vec![0..=0];
    for place in 1..n_stages {
        let possible = |&state: &usize| {
            costs.n_left(state) + place <= all && costs.n_left(state) + place >= n_stages
        };
        states.push((1..end).find(possible)?..=(1..end).rev().find(possible)?);
    }
    states.push(end..=end);
    Some(states)
}

/// What is known of the paths of a monotone chain whose slowest load is small.
pub(super) enum Balanced {
    /// One whose slowest load is about as small as can be.
    Path(Vec<usize>),
    /// None is found by letting every stage reach as far as it can.
    Unknown,
    /// The slowest load of every path is too slow.
    Hopeless,
}

/// A path of a monotone chain whose slowest load is about as small as can be and at most `cap`, unless
/// the slowest load of every path is one that is `too_slow`.
pub(super) fn balanced(
    costs: &impl StageCosts,
    n_stages: usize,
    cap: u64,
    too_slow: impl Fn(u64) -> bool,
) -> Balanced {
    let path_under = |cap: u64| {
        highest(costs, n_stages, cap).filter(|path| path.windows(2).all(|at| at[0] < at[1]))
    };
    let slowest = |path: &[usize]| {
        let load = |(place, at): (usize, &[usize])| fits(costs, (place, at[0], at[1]), cap);
        path.windows(2).enumerate().filter_map(load).max().unwrap_or(0)
    };
    let Some(mut found) = path_under(cap) else { return Balanced::Unknown };
    let mut too_low = costs.least_load(0).div_ceil(n_stages as u64).saturating_sub(1);
    let mut enough = slowest(&found);
    // Invariant: no path was found under `too_low`, and one is under `enough`.
    while enough.saturating_sub(too_low) > 1 + enough / 256 {
        let middle = too_low + (enough - too_low) / 2;
        if let Some(path) = path_under(middle) {
            enough = slowest(&path);
            found = path;
        } else {
            too_low = middle;
            if too_slow(middle + 1) && highest(costs, n_stages, middle).is_none() {
                return Balanced::Hopeless;
            }
        }
    }
    Balanced::Path(found)
}
