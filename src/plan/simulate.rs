//! A second, independent judge of a batch's time: 1F1B played micro-batch by micro-batch.

use super::Cost;
use super::StageTime;

/// One pass of one micro-batch through one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which stage, from the input.
    pub stage: usize,
    /// Which micro-batch of its pipeline.
    pub micro_batch: u64,
    /// Whether it is the backward pass.
    pub backward: bool,
    /// When it starts.
    pub start: u64,
    /// When it ends.
    pub end: u64,
}

/// How a batch went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// When each stage has done its last backward pass.
    pub finished: Vec<u64>,
    /// When the last stage to end has exchanged its gradients and stepped.
    pub time_per_batch: u64,
}

/// More passes than this are not played: the closed form stands alone then.
const MOST_PASSES: u128 = 1 << 26;

/// Plays a batch: stage i of s runs min(s − i, M) forward passes, then alternates backward and
/// forward, then runs the backward passes that are left. `watch` sees every pass, stage by stage
/// in the order in which the stage runs them. `None` where there are too many to play.
pub fn simulate(cost: &Cost, watch: impl FnMut(Event)) -> Option<Simulation> {
    let times: Vec<StageTime> = cost.stages.iter().map(|stage| stage.time).collect();
    let finished = play(&times, cost.micro_batches, watch)?;
    let ends = finished.iter().zip(&cost.stages).map(|(at, stage)| at.checked_add(stage.end()));
    let time_per_batch = ends.max()??;
    Some(Simulation { finished, time_per_batch })
}

/// When each stage is done, or `None` where that is too long to play or to count.
fn play(
    stages: &[StageTime],
    micro_batches: u64,
    mut watch: impl FnMut(Event),
) -> Option<Vec<u64>> {
    let n_stages = stages.len();
    if 2 * n_stages as u128 * u128::from(micro_batches) > MOST_PASSES {
        return None;
    }
    let n_micro_batches = usize::try_from(micro_batches).ok()?;
    // When each pass ends, filled in the order in which passes become possible.
    let mut forward: Vec<Vec<u64>> = vec![Vec::with_capacity(n_micro_batches); n_stages];
    let mut backward = forward.clone();
    let mut free_at = vec![0_u64; n_stages];
    let mut waiting: Vec<usize> = (0..n_stages).rev().collect();
    while let Some(stage) = waiting.pop() {
        while let Some(goes_back) =
            next_pass(&forward[stage], &backward[stage], n_stages - stage, n_micro_batches)
        {
            let done = if goes_back { backward[stage].len() } else { forward[stage].len() };
            let needs = match (goes_back, stage) {
                (false, 0) => Some(0),
                (false, _) => forward[stage - 1].get(done).copied(),
                (true, _) if stage + 1 == n_stages => forward[stage].get(done).copied(),
                (true, _) => backward[stage + 1].get(done).copied(),
            };
            let Some(ready) = needs else { break };
            let start = ready.max(free_at[stage]);
            let takes = if goes_back { stages[stage].backward } else { stages[stage].forward };
            let end = start.checked_add(takes)?;
            free_at[stage] = end;
            watch(Event { stage, micro_batch: done as u64, backward: goes_back, start, end });
            let (done, neighbour) = if goes_back {
                (&mut backward[stage], stage.checked_sub(1))
            } else {
                (&mut forward[stage], Some(stage + 1).filter(|&next| next < n_stages))
            };
            done.push(end);
            waiting.extend(neighbour);
        }
    }
    Some(free_at)
}

/// Whether the next pass of a stage with `n_from_here` stages from it to the end goes backward;
/// `None` when it has done all.
fn next_pass(forward: &[u64], backward: &[u64], n_from_here: usize, all: usize) -> Option<bool> {
    if backward.len() == all {
        return None;
    }
    let in_flight = forward.len() - backward.len();
    Some(forward.len() == all || in_flight >= n_from_here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn makespan(stages: &[(u64, u64)], micro_batches: u64) -> u64 {
        let stages: Vec<StageTime> =
            stages.iter().map(|&(forward, backward)| StageTime { forward, backward }).collect();
        *play(&stages, micro_batches, |_| ()).unwrap().iter().max().unwrap()
    }

    fn closed_form(stages: &[(u64, u64)], micro_batches: u64) -> u64 {
        let loads = stages.iter().map(|(forward, backward)| forward + backward);
        loads.clone().sum::<u64>() + (micro_batches - 1) * loads.max().unwrap()
    }

    #[test]
    fn equal_stages_take_exactly_the_closed_form() {
        for n_stages in 1..7 {
            for micro_batches in 1..12 {
                for (forward, backward) in [(1, 2), (3, 1), (5, 5), (0, 1)] {
                    let stages = vec![(forward, backward); n_stages];
                    let expected = closed_form(&stages, micro_batches);
                    assert_eq!(makespan(&stages, micro_batches), expected);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn one_ratio_for_all_stages_never_takes_more_than_the_closed_form(
            forwards in prop::collection::vec(0_u64..20, 1..8),
            ratio in 0_u64..5,
            micro_batches in 1_u64..20,
        ) {
            let stages: Vec<_> = forwards.iter().map(|&f| (f, ratio * f)).collect();
            prop_assert!(makespan(&stages, micro_batches) <= closed_form(&stages, micro_batches));
        }

        #[test]
        fn passes_follow_each_other_and_none_is_lost(
            stages in prop::collection::vec((0_u64..20, 0_u64..20), 1..6),
            micro_batches in 1_u64..9,
        ) {
            let times: Vec<StageTime> = stages
                .iter()
                .map(|&(forward, backward)| StageTime { forward, backward })
                .collect();
            let mut events = Vec::new();
            play(&times, micro_batches, |event| events.push(event)).unwrap();
            let n_passes = 2 * stages.len() * usize::try_from(micro_batches).unwrap();
            prop_assert_eq!(events.len(), n_passes);
            let find = |stage: usize, micro_batch: u64, backward: bool| {
                let same = |e: &&Event| (e.stage, e.micro_batch, e.backward) == (stage, micro_batch, backward);
                *events.iter().find(same).unwrap()
            };
            for event in &events {
                let before = match (event.backward, event.stage) {
                    (false, 0) => continue,
                    (false, stage) => find(stage - 1, event.micro_batch, false),
                    (true, stage) if stage + 1 == stages.len() => find(stage, event.micro_batch, false),
                    (true, stage) => find(stage + 1, event.micro_batch, true),
                };
                prop_assert!(before.end <= event.start);
            }
            for stage in 0..stages.len() {
                let own: Vec<&Event> = events.iter().filter(|e| e.stage == stage).collect();
                prop_assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start));
                let most = own.iter().scan(0_i64, |held, e| {
                    *held += if e.backward { -1 } else { 1 };
                    Some(*held)
                }).max().unwrap();
                prop_assert!(most <= i64::try_from(stages.len() - stage).unwrap());
            }
        }
    }

    #[test]
    fn uneven_ratios_can_take_longer_than_the_closed_form() {
        let times = [(1, 1), (1, 10), (10, 1), (10, 10)];
        let stages = times.iter().flat_map(|&a| times.map(|b| [a, b]));
        let longer = stages
            .flat_map(|[a, b]| times.iter().flat_map(move |&c| times.map(|d| [a, b, c, d])))
            .filter(|stages| makespan(stages, 8) > closed_form(stages, 8));
        assert!(longer.count() > 0);
    }
}
