//! A batch played pass by pass, whatever the order of the passes: the judge of every closed form.

use super::Cost;
use super::PassOrder;
use super::StageTime;
use super::one_f_one_b;
use super::passes::Pass;

/// One pass of one micro-batch through one virtual stage, in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which virtual stage, from the input; without chunks, the stage itself.
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
    /// When each rank has done its last backward pass.
    pub finished: Vec<u64>,
}

/// What one pipeline works on for one batch.
#[derive(Clone, Copy, Debug)]
pub struct PipelinedBatch<'a> {
    /// In which order each rank runs its passes. Must be legal for the ranks and micro-batches.
    pub order: PassOrder,
    /// Ranks of the pipeline.
    pub ranks: usize,
    /// Micro-batches.
    pub micro_batches: u64,
    /// Both passes of every virtual stage.
    pub times: &'a [StageTime],
    /// Ticks between the end of a pass and the earliest start of the next virtual stage's: what
    /// travels beside computation. What a stage waits for itself is in its times.
    pub delay: u64,
}

/// More passes than this are not played.
const MOST_PASSES: u128 = 1 << 26;

/// The fewest periods after which a repetition is looked for.
const FIRST_PERIODS: u64 = 8;

/// Plays the batch of a placement. `watch` sees every pass, of each rank in the order in which it
/// runs them. `None` where there are too many to play.
pub fn simulate(
    cost: &Cost,
    (order, delay): (PassOrder, u64),
    watch: impl FnMut(Event),
) -> Option<Simulation> {
    let times: Vec<StageTime> = cost.stages.iter().map(|stage| stage.time).collect();
    let ranks = cost.ranks.len();
    let micro_batches = cost.micro_batches;
    let batch = PipelinedBatch { order, ranks, micro_batches, times: &times, delay };
    let finished = batch.play(watch)?;
    Some(Simulation { finished: finished[..ranks].to_vec() })
}

/// Ticks of the batch of a placement in the order of 1F1B, exactly, whatever the number of passes:
/// what playing it would tell. `None` where that is too long to count.
pub fn exact_time(cost: &Cost) -> Option<u64> {
    let times: Vec<StageTime> = cost.stages.iter().map(|stage| stage.time).collect();
    let finished = one_f_one_b::stage_ends(&times, cost.micro_batches);
    let ends = finished.iter().zip(&cost.ranks).map(|(at, rank)| at + rank.after.all());
    u64::try_from(ends.max()?).ok()
}

/// Whether a batch of so many virtual stages and micro-batches can be played pass by pass, whether or
/// not its course repeats itself.
pub fn can_be_played(n_stages: usize, micro_batches: u64) -> bool {
    2 * n_stages as u128 * u128::from(micro_batches) <= MOST_PASSES
}

impl PipelinedBatch<'_> {
    /// When each virtual stage has done its last backward pass, every pass played; `None` where
    /// that is too long to play or to count.
    pub fn play(&self, mut watch: impl FnMut(Event)) -> Option<Vec<u64>> {
        let played = self.ends(|event| {
            watch(event);
            true
        })?;
        played.backward.iter().map(|ends| ends.last().copied()).collect()
    }

    /// The same for any number of micro-batches whose course is seen to repeat itself, else only
    /// for as many as can be played.
    ///
    /// No rank is more than two periods ahead of its backward passes, so the end of every pass is
    /// a maximum over passes at most two periods away, plus its time: the same rule for every
    /// period. Where five periods in a row lie apart by one and the same time for every pass, the
    /// rule of the middle one holds for all later periods with that time apart, and there is only
    /// one course that keeps all rules. The drain follows from the last periods, hence is shifted
    /// by as much for every period more.
    pub fn stage_ends(&self) -> Option<Vec<u128>> {
        self.stage_ends_while(|_| true)
    }

    /// The same as [`Self::stage_ends`], given up with `None` as soon as `goes_on` denies it of a
    /// pass. Batches of fewer micro-batches may be played first, each from its beginning. Where
    /// micro-batches are a whole number of periods, these leave out passes and change no order, so
    /// no pass of theirs is later than in the whole batch.
    pub fn stage_ends_while(&self, mut goes_on: impl FnMut(Event) -> bool) -> Option<Vec<u128>> {
        let period = self.order.period(self.ranks);
        let whole = self.micro_batches / period;
        let mut periods = FIRST_PERIODS;
        while periods < whole {
            let short =
                Self { micro_batches: periods * period + self.micro_batches % period, ..*self };
            let played = short.ends(&mut goes_on)?;
            if let Some(apart) = played.repeats(periods, period) {
                let more = u128::from(whole - periods) * u128::from(apart);
                let last = |ends: &Vec<u64>| ends.last().map(|&end| u128::from(end) + more);
                return played.backward.iter().map(last).collect();
            }
            periods *= 4;
        }
        let last = |ends: &Vec<u64>| ends.last().map(|&end| u128::from(end));
        self.ends(goes_on)?.backward.iter().map(last).collect()
    }

    /// Ticks until the last pass has ended, as [`Self::stage_ends`] finds them.
    pub fn time(&self) -> Option<u128> {
        self.stage_ends()?.into_iter().max()
    }

    fn ends(&self, mut goes_on: impl FnMut(Event) -> bool) -> Option<Ends> {
        let n_stages = self.times.len();
        if !can_be_played(n_stages, self.micro_batches) {
            return None;
        }
        let n_micro_batches = usize::try_from(self.micro_batches).ok()?;
        let none: Vec<Vec<u64>> = vec![Vec::with_capacity(n_micro_batches); n_stages];
        let mut ends = Ends { forward: none.clone(), backward: none };
        let lists = (0..self.ranks).map(|r| self.order.passes(self.ranks, self.micro_batches, r));
        let mut lists: Vec<_> = lists.map(Iterator::peekable).collect();
        let mut free_at = vec![0_u64; self.ranks];
        let mut waiting: Vec<usize> = (0..self.ranks).rev().collect();
        let mut is_waiting = vec![true; self.ranks];
        while let Some(rank) = waiting.pop() {
            is_waiting[rank] = false;
            while let Some(&pass) = lists[rank].peek() {
                let Some(ready) = self.ready(&ends, pass) else { break };
                lists[rank].next();
                let start = ready.max(free_at[rank]);
                let Pass { stage, micro_batch, backward } = pass;
                let time = self.times[stage];
                let takes = if backward { time.backward } else { time.forward };
                // The largest number stands for what is beyond counting.
                let end = start.checked_add(takes).filter(|&end| end < u64::MAX)?;
                free_at[rank] = end;
                ends.of(backward)[stage].push(end);
                if !goes_on(Event { stage, micro_batch, backward, start, end }) {
                    return None;
                }
                let next = if backward { stage.checked_sub(1) } else { Some(stage + 1) };
                if let Some(next) = next.filter(|&next| next < n_stages) {
                    let next = next % self.ranks;
                    if next != rank && !std::mem::replace(&mut is_waiting[next], true) {
                        waiting.push(next);
                    }
                }
            }
        }
        assert!(lists.iter_mut().all(|l| l.peek().is_none()), "a legal order never waits for ever");
        Some(ends)
    }

    /// When what a pass needs is there; `None` where it is not there yet.
    fn ready(&self, ends: &Ends, pass: Pass) -> Option<u64> {
        let micro_batch = usize::try_from(pass.micro_batch).ok()?;
        let end = |list: &Vec<u64>| list.get(micro_batch).copied();
        let arrived = |list: &Vec<u64>| end(list).map(|end| end.saturating_add(self.delay));
        match (pass.backward, pass.stage) {
            (false, 0) => Some(0),
            (false, stage) => arrived(&ends.forward[stage - 1]),
            (true, stage) if stage + 1 == self.times.len() => end(&ends.forward[stage]),
            (true, stage) => arrived(&ends.backward[stage + 1]),
        }
    }
}

/// When each pass ends, by virtual stage and micro-batch.
struct Ends {
    forward: Vec<Vec<u64>>,
    backward: Vec<Vec<u64>>,
}

impl Ends {
    fn of(&mut self, backward: bool) -> &mut Vec<Vec<u64>> {
        if backward { &mut self.backward } else { &mut self.forward }
    }

    /// The time by which five periods in a row lie apart, in every pass; `None` where they do not.
    /// They are the last five that the drain after the last forward pass does not reach.
    fn repeats(&self, periods: u64, period: u64) -> Option<u64> {
        let place = |periods: u64| usize::try_from(periods * period).ok();
        let (width, from, to) = (place(1)?, place(periods - 6)?, place(periods - 2)?);
        let mut apart = None;
        for list in self.forward.iter().chain(&self.backward) {
            for at in from..to {
                let difference = list[at] - list[at - width];
                if *apart.get_or_insert(difference) != difference {
                    return None;
                }
            }
        }
        apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(stages: &[(u64, u64)]) -> Vec<StageTime> {
        stages.iter().map(|&(forward, backward)| StageTime { forward, backward }).collect()
    }

    fn one_f_one_b(times: &[StageTime], micro_batches: u64) -> PipelinedBatch<'_> {
        let order = PassOrder::OneForwardOneBackward;
        PipelinedBatch { order, ranks: times.len(), micro_batches, times, delay: 0 }
    }

    fn makespan(stages: &[(u64, u64)], micro_batches: u64) -> u64 {
        let times = times(stages);
        let ends = one_f_one_b(&times, micro_batches).play(|_| ()).unwrap();
        *ends.iter().max().unwrap()
    }

    fn sum_and_slowest(stages: &[(u64, u64)], micro_batches: u64) -> u64 {
        let loads = stages.iter().map(|(forward, backward)| forward + backward);
        loads.clone().sum::<u64>() + (micro_batches - 1) * loads.max().unwrap()
    }

    #[test]
    fn equal_stages_take_exactly_the_sum_and_slowest() {
        for n_stages in 1..7 {
            for micro_batches in 1..12 {
                for (forward, backward) in [(1, 2), (3, 1), (5, 5), (0, 1)] {
                    let stages = vec![(forward, backward); n_stages];
                    let expected = sum_and_slowest(&stages, micro_batches);
                    assert_eq!(makespan(&stages, micro_batches), expected);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn one_ratio_for_all_stages_never_takes_more_than_sum_and_slowest(
            forwards in prop::collection::vec(0_u64..20, 1..8),
            ratio in 0_u64..5,
            micro_batches in 1_u64..20,
        ) {
            let stages: Vec<_> = forwards.iter().map(|&f| (f, ratio * f)).collect();
            prop_assert!(makespan(&stages, micro_batches) <= sum_and_slowest(&stages, micro_batches));
        }

        #[test]
        fn passes_follow_each_other_and_none_is_lost(
            stages in prop::collection::vec((0_u64..20, 0_u64..20), 1..6),
            micro_batches in 1_u64..9,
        ) {
            let times = times(&stages);
            let mut events = Vec::new();
            one_f_one_b(&times, micro_batches).play(|event| events.push(event)).unwrap();
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

    /// Reproducible noise (an xorshift generator).
    fn noise(state: &mut u64, below: u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state % below
    }

    #[test]
    fn what_repeats_itself_is_told_without_playing_all() {
        let mut state = 0x5EED;
        let mut told = 0;
        for _ in 0..400 {
            let ranks = 2 + usize::try_from(noise(&mut state, 3)).unwrap();
            let chunks = 1 + usize::try_from(noise(&mut state, 3)).unwrap();
            let group = ranks as u64 + noise(&mut state, 3);
            let left = [0, ranks as u64, group - 1][usize::try_from(noise(&mut state, 3)).unwrap()];
            let periods = 9 + noise(&mut state, 120);
            let micro_batches = periods * group + if left < group { left } else { 0 };
            let order = PassOrder::Interleaved { chunks, group };
            let order = if chunks == 1 { PassOrder::OneForwardOneBackward } else { order };
            if order.check(ranks, micro_batches).is_err() {
                continue;
            }
            let stages: Vec<(u64, u64)> = (0..ranks * chunks)
                .map(|_| (noise(&mut state, 30), noise(&mut state, 60)))
                .collect();
            let (times, delay) = (times(&stages), noise(&mut state, 4));
            let batch = PipelinedBatch { order, ranks, micro_batches, times: &times, delay };
            let short = PipelinedBatch { micro_batches: 8 * order.period(ranks), ..batch };
            told += usize::from(
                short.ends(|_| true).unwrap().repeats(8, order.period(ranks)).is_some(),
            );
            let played: Vec<u128> =
                batch.play(|_| ()).unwrap().into_iter().map(u128::from).collect();
            assert_eq!(batch.stage_ends(), Some(played), "{batch:?}");
        }
        assert!(told > 50, "{told} repeat themselves after eight periods");
    }

    #[test]
    fn a_million_micro_batches_are_told_and_too_many_irregular_ones_are_not() {
        let times = times(&[(3, 5), (2, 7), (4, 4), (3, 6)]);
        let order = PassOrder::Interleaved { chunks: 2, group: 2 };
        let batch = |micro_batches| PipelinedBatch {
            order,
            ranks: 2,
            micro_batches,
            times: &times,
            delay: 0,
        };
        let long = batch(1 << 30).time().unwrap();
        let slowest = 2 + 7 + 3 + 6;
        assert!(long >= slowest << 30 && long < (slowest << 30) * 2, "{long}");
        assert_eq!(batch(1 << 30).play(|_| ()), None);
    }

    #[test]
    fn uneven_ratios_can_take_longer_than_the_sum_and_slowest() {
        let times = [(1, 1), (1, 10), (10, 1), (10, 10)];
        let stages = times.iter().flat_map(|&a| times.map(|b| [a, b]));
        let longer = stages
            .flat_map(|[a, b]| times.iter().flat_map(move |&c| times.map(|d| [a, b, c, d])))
            .filter(|stages| makespan(stages, 8) > sum_and_slowest(stages, 8));
        assert!(longer.count() > 0);
    }
}
