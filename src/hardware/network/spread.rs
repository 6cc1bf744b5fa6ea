//! How the members of a group lie in the units of a network's levels.
//!
//! Groups are counted as if they tiled a network without end. For grids that fill whole units that
//! is exact, because every pattern recurs; where devices idle or a unit is half empty it may count
//! a group that is not there, so that what a plan takes never depends on devices that it does not
//! use.

use super::Group;
use super::group::Run;

/// How many members the groups of a kind have in the units of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    /// The least number of members in any unit of the next smaller level that a group touches.
    pub(super) inside: u64,
    /// The most units of the next smaller level that a group touches within one unit of this.
    pub(super) parts: u64,
    /// The least number of members in any unit of this level that a group touches.
    pub(super) members: u64,
}

/// The spread over each level, for all groups of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spreads {
    /// From the innermost level to the outermost.
    pub(super) levels: Vec<Spread>,
    /// Whether the numbers are what counting would find; else they are what cannot be worse.
    pub(super) exact: bool,
}

/// The most devices that are counted one by one; what would take more is bounded instead.
const MOST_COUNTED: u64 = 1 << 12;

/// Finds the spread of a group over levels whose units have these numbers of devices, each a
/// multiple of the one before; around the last is one level more that takes in everything.
pub(super) fn spreads(group: Group, units: &[u64]) -> Spreads {
    match group.runs() {
        (run, None) => {
            let members = |unit| run_members(run, unit);
            let parts = |inner, unit| run_parts(run, inner, unit);
            Spreads { levels: join(units, group.size(), members, parts), exact: true }
        }
        (inner, Some(outer))
            if units.iter().all(|&u| is_aligned(inner, u) && is_aligned(outer, u)) =>
        {
            let members = |unit| run_members(inner, unit) * run_members(outer, unit);
            let parts =
                |smaller, unit: Option<u64>| unit.map_or(group.size(), members) / members(smaller);
            Spreads { levels: join(units, group.size(), members, parts), exact: true }
        }
        (inner, Some(outer)) => counted_or_bounded(group, inner, outer, units),
    }
}

/// Where the runs of a group of two axes straddle units: counted, or what cannot be better.
fn counted_or_bounded(group: Group, inner: Run, outer: Run, units: &[u64]) -> Spreads {
    let largest = units.last().copied().unwrap_or(1);
    let period = least_common_multiple(outer.block(), largest);
    if let Some(period) = period.filter(|&period| period <= MOST_COUNTED) {
        return Spreads { levels: counted(group, units, period), exact: true };
    }
    // A unit that is touched is touched by some run, which counts alone.
    let members = |unit| run_members(inner, unit);
    let parts = |smaller: u64, unit: Option<u64>| {
        unit.map_or(group.size(), |unit| group.size().min(unit / smaller))
    };
    Spreads { levels: join(units, group.size(), members, parts), exact: false }
}

fn join(
    units: &[u64],
    size: u64,
    members: impl Fn(u64) -> u64,
    parts: impl Fn(u64, Option<u64>) -> u64,
) -> Vec<Spread> {
    let mut smaller = 1;
    let mut inside = 1;
    let mut levels = Vec::with_capacity(units.len() + 1);
    for unit in units.iter().copied().map(Some).chain([None]) {
        let found = unit.map_or(size, &members);
        levels.push(Spread { inside, parts: parts(smaller, unit), members: found });
        inside = found;
        smaller = unit.unwrap_or(smaller);
    }
    levels
}

/// The least number of members of a run in any unit that it touches.
///
/// Blocks begin at the multiples of their greatest common divisor with the unit, so the part of a
/// block beside the edge of a unit is at least that long, and sometimes just that. Of a part, the
/// worst placed run has as many members as strides fit in it.
fn run_members(run: Run, unit: u64) -> u64 {
    (greatest_common_divisor(run.block(), unit) / run.stride).max(1)
}

/// The most units of `smaller` devices that a run touches within a unit, or in all.
fn run_parts(run: Run, smaller: u64, unit: Option<u64>) -> u64 {
    let Run { size, stride } = run;
    if stride >= smaller {
        // Each member is in a unit of its own; some block begins where the larger unit does.
        return unit.map_or(size, |unit| size.min(unit.div_ceil(stride)));
    }
    if let Some(unit) = unit.filter(|&unit| unit <= run.block()) {
        return unit / smaller;
    }
    // The later a run begins in a unit, the more units it touches.
    let step = greatest_common_divisor(run.block(), smaller);
    let latest = if step <= stride { smaller - 1 } else { smaller - step + stride - 1 };
    let last = latest.saturating_add(stride.saturating_mul(size - 1));
    let touched = last / smaller + 1;
    unit.map_or(touched, |unit| touched.min(unit / smaller))
}

/// Whether a run lies in every unit that it touches with the same number of members.
fn is_aligned(run: Run, unit: u64) -> bool {
    let block = run.block();
    run.stride.is_multiple_of(unit)
        || unit.is_multiple_of(block)
        || unit.is_multiple_of(run.stride) && block.is_multiple_of(unit)
}

/// Counts every group within so many devices, which is when patterns recur.
fn counted(group: Group, units: &[u64], period: u64) -> Vec<Spread> {
    let (size, mut levels) = (group.size(), Vec::with_capacity(units.len() + 1));
    let mut smaller = 1;
    let mut inside = 1;
    for unit in units.iter().copied().map(Some).chain([None]) {
        let (mut least, mut most) = (size, 1);
        for first in group.firsts(period) {
            let (mut at, mut members, mut part, mut parts) = (None, 0, None, 0);
            for device in group.members(first) {
                let (own, own_part) = (unit.map(|unit| device / unit), Some(device / smaller));
                if members > 0 && own != at {
                    least = least.min(members);
                    (members, parts) = (0, 0);
                }
                if members == 0 || own_part != part {
                    parts += 1;
                }
                (at, part, members) = (own, own_part, members + 1);
                most = most.max(parts);
            }
            least = least.min(members);
        }
        levels.push(Spread { inside, parts: most, members: least });
        inside = least;
        smaller = unit.unwrap_or(smaller);
    }
    levels
}

pub(super) fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    a.checked_mul(b / greatest_common_divisor(a, b).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudo_random(state: &mut u64) -> u64 {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn spreads_are_what_counting_finds_in_every_random_grid() {
        let mut state = 7;
        let mut below = |bound: u64| pseudo_random(&mut state) % bound;
        let mut pairs = 0;
        for _ in 0..6000 {
            let units: Vec<u64> = (0..below(3))
                .scan(1, |unit, _| {
                    *unit *= 1 + below(8);
                    Some(*unit)
                })
                .collect();
            let inner = Group::along(1 + below(9), 1 + below(12));
            let outer = Group::along(1 + below(6), inner.block() * (1 + below(3)));
            let group = Group::both(inner, outer);
            let largest = units.last().copied().unwrap_or(1);
            let period = least_common_multiple(group.block(), largest).unwrap();
            if group.size() == 1 || period > MOST_COUNTED {
                continue;
            }
            pairs += u64::from(group.runs().1.is_some());
            let found = spreads(group, &units);
            assert!(found.exact);
            assert_eq!(found.levels, counted(group, &units, period), "{group:?} {units:?}");
        }
        assert!(pairs > 1000, "{pairs} groups of two axes");
    }

    #[test]
    fn what_is_bounded_is_never_better_than_what_is_there() {
        let group = Group::both(Group::along(3, 1), Group::along(1001, 6));
        let units = [8, 32];
        let bounded = spreads(group, &units);
        assert!(!bounded.exact);
        let period = least_common_multiple(group.block(), 32).unwrap();
        for (bound, true_one) in bounded.levels.iter().zip(counted(group, &units, period)) {
            assert!(bound.members <= true_one.members && bound.parts >= true_one.parts);
        }
    }
}
