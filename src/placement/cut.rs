//! The best cut of one pipeline shape in the order of 1F1B: the time of a batch exactly as its
//! passes follow each other, each stage with its own figures and its own end.
//!
//! In: what a stage costs at its place ([`StageCosts`]), how many stages and micro-batches. Out: the
//! states that the fastest cut passes, and its time. From the time to beat follows a cap on every
//! load; only states that stages under it reach and leave are looked at ([`bands`](super::bands)).
//! Backwards over these, a table says what no rest can beat; forwards, [`labels`](super::labels)
//! decide. Not here: which shapes there are, and what a stage costs.

use std::cmp::Ordering;

use super::bands::Balanced;
use super::bands::Bands;
use super::bands::balanced;
use super::labels::Rest;
use super::labels::Step;
use super::labels::Ticks;
use super::labels::Walk;
use crate::plan::StepStart;

/// Ticks of one stage at its place in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageFigures {
    /// The forward pass of one micro-batch, waiting included.
    pub forward: u64,
    /// The backward pass of one micro-batch, waiting and what is repeated included.
    pub backward: u64,
    /// The exchange of gradients, as far as it is not hidden behind the last backward pass.
    pub exposed: u64,
    /// The optimizer's step, and the gathering of new weights that is waited for.
    pub after: u64,
}

impl StageFigures {
    /// Ticks of both passes.
    pub fn load(&self) -> u64 {
        self.forward.saturating_add(self.backward)
    }
}

/// The ways to cut a model, and what stages cost: states are what is left to place, a stage leads
/// from one to a later one.
pub trait StageCosts {
    /// How many states there are: the first is the whole model, the last is nothing.
    fn n_states(&self) -> usize;
    /// How many layers are left in a state.
    fn n_left(&self, state: usize) -> usize;
    /// Whether a stage may take what lies between two states.
    fn leads(&self, from: usize, to: usize) -> bool;
    /// What the stage at `place` costs there; `None` where it does not fit in memory. Asked only
    /// where [`leads`](Self::leads) says that there is such a stage.
    fn stage(&self, place: usize, from: usize, to: usize) -> Option<StageFigures>;
    /// A sum of loads that all stages from a state on cannot fall below.
    fn least_load(&self, from: usize) -> u64;
    /// Whether the states are those of a chain, each with one layer less than the one before, and
    /// at every place a stage between the first and the last state that holds all layers of
    /// another and more is never faster and never fits where the other does not, all at
    /// [their least](Self::least_stage). Of stages that end at the last state the same must hold
    /// among themselves; of those that begin at the first nothing is assumed.
    fn is_monotone(&self) -> bool;
    /// What no figure of a stage falls below; `None` only where it does not fit in memory.
    fn least_stage(&self, place: usize, from: usize, to: usize) -> Option<StageFigures> {
        self.stage(place, from, to)
    }
    /// Whether every stage takes its least.
    fn is_least(&self) -> bool {
        true
    }
    /// A load that the stage between two states cannot fall below wherever it is, told faster than
    /// its figures.
    fn least_stage_load(&self, _from: usize, _to: usize) -> u64 {
        0
    }
    /// Ticks that follow the last pass of the first stage, whatever the cut.
    fn follows(&self) -> u64 {
        0
    }
}

/// How many stages run how many micro-batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineShape {
    /// Stages of the pipeline.
    pub n_stages: usize,
    /// Micro-batches of the pipeline.
    pub micro_batches: u64,
    /// When a stage may begin its optimizer step.
    pub start: StepStart,
}

/// A way to cut a model into stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Ticks of the batch.
    pub time: u128,
    /// The states that it passes, from the first to the last: one more than there are stages.
    pub path: Vec<usize>,
}

/// Labels of a level that are looked at before all others, one number after the other. In tests
/// one and two, so that small problems have more.
const FEW: [usize; 3] = if cfg!(test) { [1, 2, 2] } else { [8, 64, 512] };

/// Ticks that no cut into `n_stages` stages can beat before the ends, where the loads sum up to at
/// least `total` and the slowest is at least `slowest`.
///
/// With s the slowest load, at stage r, and Λ the sum: stage r works m · s. Of the exact time, the
/// part through r is at least 2·Λ + (m − p + r) · s − P(r), and P(r), a sum of r + 1 loads, is at
/// most (r + 1) · s: together 2·Λ + (m − p − 1) · s where m ≥ p, which for m = p is balanced against
/// m · s. And the longer of r's passes repeats while all others are run through: Λ + (m − 1) · s/2.
/// All grow with Λ and s.
pub fn least_time(micro_batches: u64, n_stages: usize, total: u128, slowest: u64) -> u128 {
    let (m, p, s) = (u128::from(micro_batches), n_stages as u128, u128::from(slowest));
    let turning = match m.cmp(&p) {
        Ordering::Greater => 2 * total + (m - p - 1) * s,
        Ordering::Equal => (2 * total * m).div_ceil(m + 1),
        Ordering::Less => 0,
    };
    (m * s).max(total + ((m - 1) * s).div_ceil(2)).max(turning)
}

/// The fastest cut of a shape that takes less than `limit`; `None` where there is none.
///
/// Of equally fast cuts the answer is one that depends on the arguments alone. Without a limit it
/// does not depend on what else was tried.
pub fn best_cut(costs: &impl StageCosts, shape: PipelineShape, limit: Option<u128>) -> Option<Cut> {
    let PipelineShape { n_stages, micro_batches, .. } = shape;
    if n_stages == 0 || micro_batches == 0 || costs.n_left(0) < n_stages {
        return None;
    }
    let mut limit = limit.and_then(|limit| Ticks::try_from(limit).ok()).unwrap_or(FAR);
    let mut best = None;
    if costs.is_monotone() {
        let cap = load_cap(costs, shape, limit)?;
        let total = u128::from(costs.least_load(0));
        let too_slow = |slowest: u64| {
            let least = least_time(micro_batches, n_stages, total, slowest);
            Ticks::try_from(least + u128::from(costs.follows())).is_ok_and(|least| least >= limit)
        };
        best = match balanced(costs, n_stages, cap, too_slow) {
            Balanced::Path(path) => path_time(costs, shape, &path).map(|time| (time, path)),
            Balanced::Unknown => None,
            Balanced::Hopeless => return None,
        };
        best = best.filter(|&(time, _)| time < limit);
        limit = best.as_ref().map_or(limit, |best| best.0);
    }
    let better = load_cap(costs, shape, limit)
        .and_then(|cap| Bands::new(costs, n_stages, cap))
        .and_then(|bands| Search::new(costs, shape, &bands, limit).best());
    let (time, path) = better.or(best)?;
    Some(Cut { time: u128::try_from(time).expect("times are not negative"), path })
}

/// Later than any batch, and far enough from the largest integer that sums of times stay below.
const FAR: Ticks = Ticks::MAX / 4;

/// The largest load that a stage of a faster cut than `limit` can have; `None` where none can.
///
/// A stage of load l works m · l, and the slowest makes [`least_time`] what it is.
fn load_cap(costs: &impl StageCosts, shape: PipelineShape, limit: Ticks) -> Option<u64> {
    let (m, p) = (Ticks::from(shape.micro_batches), shape.n_stages as Ticks);
    let total = Ticks::from(costs.least_load(0));
    let spare = (limit - 1).min(FAR) - Ticks::from(costs.follows());
    let mut cap = spare / m;
    let twice = spare - 2 * total;
    if m > p + 1 {
        cap = cap.min(twice / (m - p - 1));
    }
    if m > p && twice < 0 || spare < total.max(0) {
        return None;
    }
    Some(u64::try_from(cap).unwrap_or(u64::MAX))
}

/// Ticks of the batch that a path takes; `None` where a stage does not fit.
fn path_time(costs: &impl StageCosts, shape: PipelineShape, path: &[usize]) -> Option<Ticks> {
    let mut walk = Walk::default();
    for (place, ends) in path.windows(2).enumerate() {
        let figures = costs.stage(place, ends[0], ends[1])?;
        walk.add(shape, place, Step::new(figures, shape.start));
    }
    Some(walk.time())
}

/// A way to place the first stages.
struct Label {
    state: usize,
    walk: Walk,
    /// Ticks that no way to go on can beat.
    least: Ticks,
    /// The label that it continues, in the level before.
    parent: usize,
}

/// The search for a faster path than `limit`.
struct Search<'a, C> {
    costs: &'a C,
    shape: PipelineShape,
    bands: &'a Bands,
    /// By place and state of its band: what no rest can beat, where there is one.
    rest: Vec<Vec<Option<Rest>>>,
    limit: Ticks,
}

impl<'a, C: StageCosts> Search<'a, C> {
    fn new(costs: &'a C, shape: PipelineShape, bands: &'a Bands, limit: Ticks) -> Self {
        let mut search = Self { costs, shape, bands, rest: Vec::new(), limit };
        let mut later = vec![Some(Rest::NONE)];
        for place in (0..shape.n_stages).rev() {
            let band = bands.states(place);
            let row = band.map(|from| search.rest_from(place, from, &later)).collect();
            search.rest.push(std::mem::replace(&mut later, row));
        }
        search.rest.push(later);
        search.rest.reverse();
        search
    }

    /// What no rest from a state on can beat, given the same of all states at the next place.
    fn rest_from(&self, place: usize, from: usize, later: &[Option<Rest>]) -> Option<Rest> {
        let mut found: Option<Rest> = None;
        let first = *self.bands.states(place + 1).start();
        self.bands.stages(self.costs, place, from, |to, figures| {
            if let Some(rest) = &later[to - first] {
                let rest = rest.with(self.shape, place, &Step::new(figures, self.shape.start));
                found = Some(found.map_or(rest, |found| found.or(&rest)));
            }
            true
        });
        Some(found?.at_least(self.costs.least_load(from).into()))
    }

    /// The fastest path below the limit.
    fn best(mut self) -> Option<(Ticks, Vec<usize>)> {
        let root = self.rest[0][0].as_ref()?;
        let start = Walk::default();
        if start.least(self.shape, root) >= self.limit {
            return None;
        }
        // The few most promising labels of each level mostly lead to the best path or close to
        // it; then the search over all labels has little left to look at.
        let mut best = None;
        for many in FEW.into_iter().chain([usize::MAX]) {
            let (better, is_all) = self.best_among(many);
            if let Some(better) = better {
                self.limit = better.0;
                best = Some(better);
            }
            if is_all {
                break;
            }
        }
        best
    }

    /// The fastest path over the most promising labels of each level, so `many`, and whether these
    /// were all.
    fn best_among(&self, many: usize) -> (Option<(Ticks, Vec<usize>)>, bool) {
        let start = Label { state: 0, walk: Walk::default(), least: 0, parent: 0 };
        let mut levels = vec![vec![start]];
        let mut is_all = true;
        for place in 0..self.shape.n_stages {
            let mut next = Level::new(self.bands, place + 1);
            for (parent, label) in levels[place].iter().enumerate() {
                self.extend(label, parent, place, &mut next);
            }
            let mut next = next.labels();
            if next.len() > many {
                is_all = false;
                next.sort_by_key(|label| (label.least, label.state, label.parent));
                next.truncate(many);
                next.sort_by_key(|label| (label.state, label.parent));
            }
            levels.push(next);
        }
        let last = levels.pop().unwrap_or_default();
        let Some(best) = last.iter().min_by_key(|label| label.walk.time()) else {
            return (None, is_all);
        };
        let mut path = vec![best.state];
        let mut parent = best.parent;
        for level in levels.iter().rev() {
            path.push(level[parent].state);
            parent = level[parent].parent;
        }
        path.reverse();
        (Some((best.walk.time(), path)), is_all)
    }

    /// Adds every stage that may follow `label` at `place`.
    fn extend(&self, label: &Label, parent: usize, place: usize, next: &mut Level) {
        let first = *self.bands.states(place + 1).start();
        self.bands.stages(self.costs, place, label.state, |to, figures| {
            let step = Step::new(figures, self.shape.start);
            if label.walk.least_with(self.shape, step.load) >= self.limit {
                return false;
            }
            let Some(rest) = &self.rest[place + 1][to - first] else { return true };
            let mut walk = label.walk.clone();
            walk.add(self.shape, place, step);
            let least = walk.least(self.shape, rest);
            if least < self.limit {
                next.add(Label { state: to, walk, least, parent });
            }
            true
        });
    }
}

/// The labels at one place, by state: of each state those that no other equals or beats.
struct Level {
    first: usize,
    labels: Vec<Vec<Label>>,
}

impl Level {
    fn new(bands: &Bands, place: usize) -> Self {
        let band = bands.states(place);
        let labels = band.clone().map(|_| Vec::new()).collect();
        Self { first: *band.start(), labels }
    }

    fn add(&mut self, label: Label) {
        let known = &mut self.labels[label.state - self.first];
        if !known.iter().any(|known| known.walk.beats(&label.walk)) {
            known.retain(|known| !label.walk.beats(&known.walk));
            known.push(label);
        }
    }

    fn labels(self) -> Vec<Label> {
        self.labels.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::noise::Noise;
    use crate::plan::AfterBackward;
    use crate::plan::StageTime;
    use crate::plan::batch_time;
    use crate::plan::one_f_one_b::stage_ends;
    use crate::plan::repeated::KeptLayer;
    use crate::plan::repeated::fewest_repeated;
    use proptest::prelude::*;

    /// Two chains side by side (the second of no layers is a chain alone), every stage with figures
    /// of its own at every place.
    struct Toy {
        /// By state: how many layers of either chain are placed.
        states: Vec<(usize, usize)>,
        /// By place, state and state.
        stages: Vec<Vec<Vec<Option<StageFigures>>>>,
        least: Vec<u64>,
        monotone: bool,
    }

    impl StageCosts for Toy {
        fn n_states(&self) -> usize {
            self.states.len()
        }

        fn n_left(&self, state: usize) -> usize {
            let placed = |state: (usize, usize)| state.0 + state.1;
            placed(self.states[self.states.len() - 1]) - placed(self.states[state])
        }

        fn leads(&self, from: usize, to: usize) -> bool {
            let (from, to) = (self.states[from], self.states[to]);
            from != to && from.0 <= to.0 && from.1 <= to.1
        }

        fn stage(&self, place: usize, from: usize, to: usize) -> Option<StageFigures> {
            assert!(self.leads(from, to));
            self.stages[place][from][to]
        }

        fn least_load(&self, from: usize) -> u64 {
            self.least[from]
        }

        fn is_monotone(&self) -> bool {
            self.monotone
        }
    }

    impl Toy {
        fn of(
            lengths: (usize, usize),
            n_stages: usize,
            mut stage: impl FnMut(usize, usize, usize) -> Option<StageFigures>,
        ) -> Self {
            let all = (0..=lengths.0).flat_map(|i| (0..=lengths.1).map(move |j| (i, j)));
            let mut states: Vec<(usize, usize)> = all.collect();
            states.sort_by_key(|state| (state.0 + state.1, *state));
            let n = states.len();
            let mut row =
                |place: usize, from: usize| (0..n).map(|to| stage(place, from, to)).collect();
            let stages =
                (0..n_stages).map(|place| (0..n).map(|from| row(place, from)).collect()).collect();
            Self { states, stages, least: vec![0; n], monotone: false }
        }

        /// Figures without any rule.
        fn wild(noise: &mut Noise, n_stages: usize) -> Self {
            let lengths = [(3, 2), (2, 2), (4, 1), (5, 0), (6, 0), (7, 0)][noise.index(6)];
            let (largest, seldom) = ([4, 40][noise.index(2)], [2, 9, 1000][noise.index(3)]);
            let ends = [1, 10, 200][noise.index(3)];
            Self::of(lengths, n_stages, |_, _, _| {
                let figures = StageFigures {
                    forward: noise.below(largest),
                    backward: noise.below(2 * largest),
                    exposed: noise.below(ends),
                    after: noise.below(ends),
                };
                (noise.below(seldom) > 0).then_some(figures)
            })
        }

        /// A chain whose stages repeat as many layers as memory asks for.
        fn chain(noise: &mut Noise, shape: PipelineShape) -> Self {
            let n = shape.n_stages + noise.index(5);
            let (largest, ends) = ([2, 9, 40][noise.index(3)], [1, 4, 60][noise.index(3)]);
            let like = noise.below(2) == 0;
            let layer = |noise: &mut Noise| {
                let input = noise.below(4);
                let kept = KeptLayer { all: input + noise.below(9), input };
                (noise.below(largest), noise.below(2 * largest), noise.below(ends), kept)
            };
            let usual = layer(noise);
            let layers: Vec<_> = (0..n)
                .map(|at| if like && at > 0 && at + 1 < n { usual } else { layer(noise) })
                .collect();
            let (send, room) = (noise.below(3), u128::from(10 + noise.below(200)));
            let mut toy = Self::of((n, 0), shape.n_stages, |place, from, to| {
                let stage = layers.get(from..to).filter(|stage| !stage.is_empty())?;
                let kept: Vec<KeptLayer> = stage.iter().map(|layer| layer.3).collect();
                let in_flight = shape.micro_batches.min((shape.n_stages - place) as u64);
                let repeated = fewest_repeated(&kept, in_flight, room)?;
                let again: u64 = stage[..repeated].iter().map(|layer| layer.0).sum();
                let ends: u64 = stage.iter().map(|layer| layer.2).sum();
                Some(StageFigures {
                    forward: stage.iter().map(|l| l.0).sum::<u64>()
                        + if from > 0 { send } else { 0 },
                    backward: stage.iter().map(|l| l.1).sum::<u64>()
                        + again
                        + if to < n { send } else { 0 },
                    exposed: ends,
                    after: 2 * ends + u64::from(place == 0),
                })
            });
            for from in (0..n).rev() {
                toy.least[from] = toy.least[from + 1] + layers[from].0 + layers[from].1;
            }
            toy.monotone = true;
            toy
        }

        /// The least time over all cuts.
        fn brute_force(&self, shape: PipelineShape) -> Option<u128> {
            let mut paths = vec![vec![0]];
            let mut least = None;
            while let Some(path) = paths.pop() {
                let from = path[path.len() - 1];
                if path.len() == shape.n_stages + 1 {
                    if from + 1 == self.n_states() {
                        least = least.into_iter().chain(self.judged(shape, &path)).min();
                    }
                    continue;
                }
                let next = (from + 1..self.n_states()).filter(|&to| self.leads(from, to));
                paths.extend(next.map(|to| [&path[..], &[to]].concat()));
            }
            least
        }

        fn judged(&self, shape: PipelineShape, path: &[usize]) -> Option<u128> {
            let stages = path.windows(2).enumerate().map(|(z, at)| self.stage(z, at[0], at[1]));
            let stages: Vec<StageFigures> = stages.collect::<Option<_>>()?;
            let times: Vec<StageTime> = stages
                .iter()
                .map(|s| StageTime { forward: s.forward, backward: s.backward })
                .collect();
            let after: Vec<AfterBackward> = stages
                .iter()
                .map(|s| AfterBackward { exposed: s.exposed, step: s.after, gather: 0 })
                .collect();
            Some(batch_time(&stage_ends(&times, shape.micro_batches), &after, shape.start))
        }
    }

    fn agrees(toy: &Toy, shape: PipelineShape) -> bool {
        let least = toy.brute_force(shape);
        let found = best_cut(toy, shape, None);
        assert_eq!(found.as_ref().map(|found| found.time), least, "{shape:?}");
        let Some(Cut { time, path }) = found else { return false };
        assert_eq!(toy.judged(shape, &path), Some(time));
        assert_eq!(best_cut(toy, shape, Some(time)), None);
        let above = best_cut(toy, shape, Some(time + 1)).expect("it is below the limit");
        assert_eq!((above.time, toy.judged(shape, &above.path)), (time, Some(time)));
        true
    }

    fn shape(noise: &mut Noise) -> PipelineShape {
        let n_stages = 1 + noise.index(5);
        let p = n_stages as u64;
        let micro_batches = [1 + noise.below(p), p, p + 1 + noise.below(9), 50][noise.index(4)];
        let start = [StepStart::OwnGradients, StepStart::AllGradients][noise.index(2)];
        PipelineShape { n_stages, micro_batches, start }
    }

    #[test]
    fn the_best_cut_of_every_chain_with_repeated_layers_is_that_of_brute_force() {
        let mut noise = Noise(0xC07);
        let solved = (0..8000)
            .filter(|_| {
                let shape = shape(&mut noise);
                agrees(&Toy::chain(&mut noise, shape), shape)
            })
            .count();
        assert!((4000..8000).contains(&solved), "{solved} of 8000 have a cut");
    }

    #[test]
    fn the_best_cut_under_no_rule_and_with_branches_is_that_of_brute_force() {
        let mut noise = Noise(0xDA6);
        let solved = (0..8000)
            .filter(|_| {
                let shape = shape(&mut noise);
                agrees(&Toy::wild(&mut noise, shape.n_stages), shape)
            })
            .count();
        assert!((4000..8000).contains(&solved), "{solved} of 8000 have a cut");
    }

    #[test]
    fn no_time_leaves_the_range_of_integers() {
        let toy = Toy::of((3, 0), 3, |_, _, _| {
            let pass = 1 << 60;
            Some(StageFigures { forward: pass, backward: pass, exposed: 0, after: 0 })
        });
        let start = StepStart::OwnGradients;
        let shape = PipelineShape { n_stages: 3, micro_batches: 1 << 32, start };
        assert_eq!(best_cut(&toy, shape, None).map(|cut| cut.time), Some(((1 << 32) + 2) << 61));
        let too_many = PipelineShape { n_stages: 4, ..shape };
        assert_eq!(best_cut(&toy, too_many, None), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn no_pipeline_beats_the_bounds_of_its_sum_and_slowest_load(
            stages in prop::collection::vec((0_u64..20, 0_u64..40), 1..9),
            micro_batches in 1_u64..24,
        ) {
            let times: Vec<StageTime> = stages
                .iter()
                .map(|&(forward, backward)| StageTime { forward, backward })
                .collect();
            let total: u64 = times.iter().map(|time| time.load()).sum();
            let slowest = times.iter().map(|time| time.load()).max().unwrap();
            let time = stage_ends(&times, micro_batches)[0];
            prop_assert!(least_time(micro_batches, times.len(), total.into(), slowest) <= time);
        }
    }

    #[test]
    fn the_bound_is_reached_by_equal_stages() {
        for p in 1..9 {
            for m in p as u64 + 1..30 {
                let total = 7 * p as u128;
                assert_eq!(least_time(m, p, total, 7), u128::from(m) * 7 + total - 7);
            }
        }
        // Stages of two layers and of one: the sum and the others of the slowest are no bound.
        let time = |pass: u64| StageTime { forward: pass, backward: pass };
        assert_eq!(stage_ends(&[time(2), time(1)], 10)[0], 40);
        assert!(least_time(10, 2, 6, 4) <= 40 && 6 + 9 * 4 > 40);
    }
}
