//! How long one stage takes for one micro-batch, by definition.

use super::LayerProfile;
use super::Profile;
use super::Recompute;

/// The two passes of a stage over one micro-batch, transfers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTime {
    /// Ticks of the forward pass, from the sending of what enters to the end of the last layer.
    pub forward: u64,
    /// Ticks of the backward pass, with what is computed again before it.
    pub backward: u64,
}

impl StageTime {
    /// Both passes: how long the stage is held by one micro-batch.
    pub fn load(self) -> u64 {
        self.forward.saturating_add(self.backward)
    }
}

/// What a stage computes again: by which choice, and how many of its layers where they do so one by
/// one.
pub(super) type Again = (Recompute, usize);

/// The time of the stage that holds `layers` (in an order that no edge runs against).
///
/// Forward, a layer starts when its predecessors in the stage have ended and what enters it from
/// outside has arrived; backward likewise in reverse. `send` is how long a size takes to arrive.
/// Where the stage computes its forward pass again, what enters that backward pass travels
/// meanwhile.
pub(super) fn time(
    profile: &Profile,
    layers: &[usize],
    (recompute, repeated): Again,
    is_last: bool,
    send: impl Fn(u64) -> u64,
) -> StageTime {
    let repeats = recompute == Recompute::Stage && !is_last;
    let forward = pass(profile, layers, Direction::Forward, |size| Some(send(size)), &[], 0);
    let again =
        if repeats { pass(profile, layers, Direction::Forward, |_| None, &[], 0) } else { 0 };
    let one_by_one = repeating(profile, layers, recompute, repeated);
    let backward =
        pass(profile, layers, Direction::Backward, |size| Some(send(size)), &one_by_one, again);
    StageTime { forward, backward }
}

/// The same for a chain in which each layer reads the one before alone, and a stage is a run of
/// layers.
pub(super) fn chain_time(
    profile: &Profile,
    layers: &[usize],
    (recompute, repeated): Again,
    is_last: bool,
    send: impl Fn(u64) -> u64,
) -> StageTime {
    let sum = |of: fn(&LayerProfile) -> u64| -> u64 {
        layers.iter().map(|&layer| of(profile.layer(layer))).sum()
    };
    let (forward, backward) = (sum(|layer| layer.forward), sum(|layer| layer.backward));
    let crossing = |place: Option<usize>| {
        place.and_then(|place| profile.edges.get(place)).map_or(0, |edge| send(edge.sent()))
    };
    let arrives = crossing(layers.first().and_then(|first| first.checked_sub(1)));
    let gradient = crossing(layers.last().copied());
    let again = match recompute {
        Recompute::Stage if !is_last => forward,
        Recompute::Stage | Recompute::None => 0,
        Recompute::Full => {
            return StageTime {
                forward: arrives.saturating_add(forward),
                backward: gradient.saturating_add(backward).saturating_add(forward),
            };
        }
        Recompute::First(_) | Recompute::AsNeeded => {
            let repeatable = layers.iter().filter(|&&layer| profile.layer(layer).repeatable);
            let again: u64 =
                repeatable.take(repeated).map(|&layer| profile.layer(layer).forward).sum();
            return StageTime {
                forward: arrives.saturating_add(forward),
                backward: gradient.saturating_add(backward).saturating_add(again),
            };
        }
    };
    StageTime {
        forward: arrives.saturating_add(forward),
        backward: gradient.max(again).saturating_add(backward),
    }
}

/// The layers that run their forward pass just before their backward pass.
fn repeating(
    profile: &Profile,
    layers: &[usize],
    recompute: Recompute,
    repeated: usize,
) -> Vec<usize> {
    match recompute {
        Recompute::None | Recompute::Stage => Vec::new(),
        Recompute::Full => layers.to_vec(),
        Recompute::First(_) | Recompute::AsNeeded => {
            let may = layers.iter().copied().filter(|&layer| profile.layer(layer).repeatable);
            may.take(repeated).collect()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// When the last layer of one pass ends, no layer starting before `earliest`.
fn pass(
    profile: &Profile,
    layers: &[usize],
    direction: Direction,
    send: impl Fn(u64) -> Option<u64>,
    repeating: &[usize],
    earliest: u64,
) -> u64 {
    let mut ended: Vec<Option<u64>> = vec![None; profile.n_layers()];
    let mut last = earliest;
    let mut run = |layer: usize| {
        let mut start = earliest;
        for edge in &profile.edges {
            let (here, there) = match direction {
                Direction::Forward => (edge.to, edge.from),
                Direction::Backward => (edge.from, edge.to),
            };
            if here != layer {
                continue;
            }
            let arrival = if layers.contains(&there) { ended[there] } else { send(edge.sent()) };
            start = start.max(arrival.unwrap_or(0));
        }
        let own = profile.layer(layer);
        let takes = match direction {
            Direction::Forward => own.forward,
            // Each layer repeats its own forward pass just before.
            Direction::Backward if repeating.contains(&layer) => {
                own.backward.saturating_add(own.forward)
            }
            Direction::Backward => own.backward,
        };
        let end = start.saturating_add(takes);
        ended[layer] = Some(end);
        last = last.max(end);
    };
    match direction {
        Direction::Forward => layers.iter().for_each(|&layer| run(layer)),
        Direction::Backward => layers.iter().rev().for_each(|&layer| run(layer)),
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Edge;
    use crate::plan::profile::tests::chain;

    fn of(profile: &Profile, layers: &[usize], recompute: Recompute, is_last: bool) -> (u64, u64) {
        let found = time(profile, layers, (recompute, 0), is_last, |size| size);
        if profile.is_plain_chain() {
            let quick = chain_time(profile, layers, (recompute, 0), is_last, |size| size);
            assert_eq!(quick, found, "both ways tell the same");
        }
        (found.forward, found.backward)
    }

    #[test]
    fn a_stage_waits_for_what_enters_it_both_ways() {
        let profile = chain(&[(1, 2), (3, 4), (5, 6)], 10);
        assert_eq!(of(&profile, &[0, 1, 2], Recompute::None, true), (9, 12));
        assert_eq!(of(&profile, &[1], Recompute::None, false), (13, 14));
    }

    #[test]
    fn what_enters_late_layers_travels_beside_the_early_ones() {
        let mut profile = chain(&[(1, 2), (3, 4), (5, 6)], 10);
        profile.edges.push(Edge::new(0, 2, 14));
        assert_eq!(of(&profile, &[1, 2], Recompute::None, true), (14 + 5, 10));
    }

    #[test]
    fn recompute_of_a_stage_hides_the_gradient_s_transfer() {
        let profile = chain(&[(1, 2), (3, 4), (5, 6)], 2);
        assert_eq!(of(&profile, &[0, 1], Recompute::Stage, false), (4, 4 + 6));
        let slow = chain(&[(1, 2), (3, 4), (5, 6)], 100);
        assert_eq!(of(&slow, &[0, 1], Recompute::Stage, false), (4, 100 + 6));
        assert_eq!(of(&profile, &[2], Recompute::Stage, true), (2 + 5, 6));
    }

    #[test]
    fn full_recompute_adds_each_forward_pass_to_the_backward_pass() {
        let profile = chain(&[(1, 2), (3, 4)], 10);
        assert_eq!(of(&profile, &[0, 1], Recompute::Full, true), (4, 6 + 4));
        assert_eq!(of(&profile, &[0], Recompute::Full, false), (1, 10 + 3));
    }
}
