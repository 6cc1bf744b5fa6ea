//! Which numbers of ranks may be possible, and the least time of a batch in each (docs/search.md,
//! steps 3 and 4). Memory and devices decide; the model is relaxed to its repeated layer.

use std::collections::BTreeMap;

use crate::hardware::Cluster;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Zero;
use crate::plan::CutSpace;
use crate::plan::Limits;
use crate::plan::Recompute;
use crate::plan::TimeModel;

use super::divide::Asked;
use super::divide::Divided;
use super::divide::Sharded;
use super::exchanged::Exchanged;
use super::exchanged::together;
use super::placed::most_frequent;

/// What decides which cases are possible.
pub struct Phases {
    recompute: Recompute,
    time_model: TimeModel,
    /// How many virtual stages a rank may have, and what is known of the layers that each holds.
    chunks: (u64, u64),
    dealt: Dealt,
    micro_batches: u64,
    repeated: u64,
    capacity: u128,
    /// Bytes of the repeated layer: what it keeps, what enters it, what its running pass holds.
    kept: u128,
    input: u128,
    working: u128,
}

/// What is known of layers that are dealt to several virtual stages of each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dealt {
    layers: u64,
    /// By how many the last one of a rank may hold more than its others, where a family stands for
    /// all layouts; `None` where nothing is known.
    longer: Option<u64>,
}

/// A number of ranks, with numbers of pipelines that are not told apart and one way to share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    ranks: u64,
    /// Micro-batches that each pipeline runs at the least.
    rounds: u64,
    /// Whether ranks have several virtual stages.
    several: bool,
    /// The most repeated layers that fit in the last stage.
    last_stage: u64,
    /// Repeated layers that memory asks to run forward again, for each micro-batch.
    again: f64,
    exchanged: Exchanged,
}

/// All cases of one way to exchange inside layers and to compute again, those whose ranks have the least to do first.
pub struct Cases {
    told_apart: Vec<Case>,
    /// The ranks of all others have more than so many times the work of one micro-batch to do.
    beyond: Option<f64>,
}

/// Cases whose ranks have so many times more to do than those of the first are not told apart.
const FARTHEST: f64 = 4.0;

/// How many times the work of one micro-batch an average rank does.
fn share_of_work(rounds: u64, ranks: u64) -> f64 {
    rounds as f64 / ranks as f64
}

/// The least that passes take, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerTimes {
    /// Of the repeated layer.
    pub forward: f64,
    /// Of the repeated layer.
    pub backward: f64,
    /// Of all others together.
    pub others_forward: f64,
    /// Of all others together.
    pub others_backward: f64,
    /// Both passes of the first layer, where it is not the repeated one.
    pub first: f64,
    /// Both passes of the last layer, likewise.
    pub last: f64,
}

impl Case {
    fn share_of_work(&self) -> f64 {
        share_of_work(self.rounds, self.ranks)
    }
}

impl Cases {
    /// Whether nothing fits.
    pub fn is_empty(&self) -> bool {
        self.told_apart.is_empty()
    }

    /// Of those that may be possible, where so many times the work of one micro-batch was asked for; all are told
    /// apart where devices count.
    fn new(mut found: Vec<Case>, asked: &[f64], devices_count: bool) -> Self {
        found.sort_by(|a, b| a.share_of_work().total_cmp(&b.share_of_work()));
        let first = found.first().filter(|_| !devices_count);
        let Some(farthest) = first.map(|first| FARTHEST * first.share_of_work()) else {
            return Self { told_apart: found, beyond: None };
        };
        found.retain(|case| case.share_of_work() <= farthest);
        let is_beyond = asked.iter().any(|&share| share > farthest);
        Self { told_apart: found, beyond: is_beyond.then_some(farthest) }
    }
}

impl Phases {
    /// A division with one recompute choice on devices that may be filled up to `capacity` bytes.
    pub fn new(asked: &Asked, divided: &Divided, recompute: Recompute, capacity: u64) -> Self {
        let share = &divided.share;
        let kind = most_frequent(&share.sequence);
        let layer = &share.kinds[kind];
        // Nothing is sent to the first layer of all.
        let is_first = share.sequence.first() == Some(&kind);
        let published = asked.time_model == TimeModel::Published;
        Self {
            recompute,
            time_model: asked.time_model,
            chunks: (asked.space.chunks.least, asked.space.chunks.most),
            dealt: dealt(asked, divided),
            micro_batches: asked.global_batch / share.setting.micro_batch,
            repeated: share.sequence.iter().filter(|&&at| at == kind).count() as u64,
            capacity: capacity.into(),
            kept: layer.kept.0.into(),
            input: if is_first { 0 } else { layer.input.0.into() },
            working: if published { 0 } else { layer.working.0.into() },
        }
    }

    /// All cases that may be possible where replicas exchange so inside layers.
    pub fn cases(
        &self,
        asked: &Asked,
        divided: &Divided,
        (sharded, devices_count): (Option<Sharded>, bool),
        cluster: &Cluster,
    ) -> Cases {
        let (mut found, mut shares) = (Vec::new(), Vec::new());
        let mut known = BTreeMap::new();
        for ranks in divided.ranks(asked.space) {
            let pipelines = divided.pipelines(asked, sharded, ranks);
            let Some((least, most)) = pipelines else { continue };
            for (fewest, most) in together(least, most) {
                let rounds = self.micro_batches.div_ceil(most);
                shares.push(share_of_work(rounds, ranks));
                for zero in Divided::zeros(asked.space, sharded, ranks) {
                    let state = state(asked, divided, zero, most);
                    let least = || Exchanged::least(asked, divided, cluster, zero, (fewest, most));
                    let longest = self.micro_batches.div_ceil(fewest);
                    for several in [false, true] {
                        if !self.is_possible(ranks, longest, several) {
                            continue;
                        }
                        let at = Pipelines { ranks, rounds, several };
                        let Some(again) = self.again(at, state) else { continue };
                        let last_stage = self.most_layers(1, at, state);
                        let exchanged = *known.entry((zero, fewest, most)).or_insert_with(least);
                        let case = Case { ranks, rounds, several, last_stage, again, exchanged };
                        found.push(case);
                    }
                }
            }
        }
        Cases::new(found, &shares, devices_count)
    }

    /// Picoseconds of a batch at the least in any of these cases.
    pub fn least_time(&self, cases: &Cases, times: &LayerTimes) -> f64 {
        let once = self.repeated as f64 * (times.forward + times.backward)
            + times.others_forward
            + times.others_backward;
        let mut least = f64::INFINITY;
        for case in &cases.told_apart {
            if case.share_of_work() * once >= least {
                break;
            }
            least = least.min(self.time(case, times));
        }
        cases.beyond.map_or(least, |beyond| least.min(beyond * once))
    }

    /// Whether ranks may have one virtual stage, or several, where pipelines run at most so many
    /// micro-batches.
    fn is_possible(&self, ranks: u64, rounds: u64, several: bool) -> bool {
        let (fewest, most) = self.chunks;
        if !several {
            return fewest <= 1;
        }
        let fits = fewest.max(2) <= most.min(self.dealt.layers / ranks);
        let published = self.time_model == TimeModel::Published;
        fits && ranks > 1 && rounds >= ranks && !published && self.recompute != Recompute::Stage
    }

    /// Micro-batches in flight for each layer of the rank with so many ranks after it, at the least.
    ///
    /// Before its first backward pass a rank of several virtual stages has run as many forward passes
    /// through each but the last as there are ranks, and through the last twice as many as there are
    /// ranks after it, and one.
    fn in_flight(&self, after: u64, at: Pipelines) -> u64 {
        let Pipelines { ranks, rounds, several } = at;
        if self.time_model == TimeModel::Published {
            return after + 1;
        }
        if !several {
            return rounds.min(after + 1);
        }
        let Some(longer) = self.dealt.longer else { return 1 };
        let in_last = (2 * after + 1).min(ranks);
        let layers = self.dealt.layers;
        let mut least = u64::MAX;
        for chunks in self.chunks.0.max(2)..=self.chunks.1.min(layers / ranks) {
            let longer =
                if few_layouts(layers, ranks * chunks) { layers - ranks * chunks } else { longer };
            // The mean over the layers of a rank whose last virtual stage is as long as can be, the
            // others of one layer each.
            let sum = (chunks - 1) * ranks + (1 + longer) * in_last;
            least = least.min(sum / (chunks + longer));
        }
        if least == u64::MAX { 1 } else { least.max(1) }
    }

    /// The most repeated layers that fit in the rank at this place from the end, where each takes
    /// `state` bytes for its parameters.
    fn most_layers(&self, from_the_end: u64, at: Pipelines, state: u128) -> u64 {
        let in_flight = u128::from(self.in_flight(from_the_end - 1, at));
        let (once, each) = match self.recompute {
            Recompute::None => (0, state + in_flight * self.kept),
            // Nothing is sent to the first stage.
            Recompute::Stage if from_the_end == at.ranks => (0, state + self.kept),
            Recompute::Stage => ((in_flight - 1) * self.input, state + self.kept),
            Recompute::Full => (self.kept, state + in_flight * self.input),
            // At best every layer keeps its input only.
            Recompute::First(_) | Recompute::AsNeeded => {
                (0, state + in_flight * self.input.min(self.kept))
            }
        };
        let Some(room) = self.capacity.checked_sub(once + self.working) else { return 0 };
        let layers = room.checked_div(each).unwrap_or(u128::MAX);
        u64::try_from(layers).unwrap_or(u64::MAX).min(self.repeated)
    }

    /// How many repeated layers of all ranks must run forward again for each micro-batch, at the
    /// least, where as many do as memory asks for; `None` where they do not fit at all.
    ///
    /// With n micro-batches in flight a layer takes s + n·k bytes, and n·(k − i) less where it is
    /// repeated. What is over all room is spread to where each byte saved costs the fewest repeats.
    fn again(&self, at: Pipelines, state: u128) -> Option<f64> {
        let fit: Vec<u64> =
            (1..=at.ranks).map(|place| self.most_layers(place, at, state)).collect();
        if fit.iter().fold(0_u64, |all, &one| all.saturating_add(one)) < self.repeated {
            return None;
        }
        if self.recompute != Recompute::AsNeeded || self.kept <= self.input {
            return Some(0.0);
        }
        let saved = (self.kept - self.input) as f64;
        let room = self.capacity.saturating_sub(self.working) as f64;
        let wanted = self.repeated as f64;
        let mut over = wanted;
        let mut ranks: Vec<(f64, f64)> = Vec::with_capacity(fit.len());
        for (after, &most) in fit.iter().enumerate() {
            let n = self.in_flight(after as u64, at) as f64;
            let whole = state as f64 + n * self.kept as f64;
            let free = wanted.min(room / whole);
            over -= free;
            ranks.push((whole / (n * saved), (most as f64 - free).max(0.0)));
        }
        ranks.sort_by(|one, other| one.0.total_cmp(&other.0));
        let cost = ranks.into_iter().map(|(cost, more)| {
            let here = more.min(over.max(0.0));
            over -= here;
            cost * here
        });
        Some(cost.sum())
    }

    /// Picoseconds of a batch at the least.
    pub fn time(&self, case: &Case, times: &LayerTimes) -> f64 {
        let passes = self.time_of_passes(case, times);
        if self.time_model == TimeModel::Published {
            return passes;
        }
        let Exchanged { first, gradients, weights, inside } = case.exchanged;
        let repeated = self.repeated as f64;
        let forward = repeated * times.forward + times.others_forward;
        let backward = repeated * times.backward + times.others_backward;
        let rounds = case.rounds as f64;
        // Gradients hide behind the last backward passes, weights behind the first forward passes.
        let unhidden = [
            rounds * forward + (rounds - 1.0) * backward + gradients,
            (rounds - 1.0) * (forward + backward) + gradients + weights,
            rounds * inside,
        ];
        let average = unhidden.into_iter().fold(0.0, f64::max) / case.ranks as f64;
        average.max(passes.max(self.time_of_whole_layers(case, times)) + first)
    }

    /// Where every rank holds whole layers: the first has the first layer besides, the last has the
    /// last, and begins and ends a way through one layer at least of every other rank apart.
    ///
    /// A rank that is busy for c besides can hold ⌊(T − c) / u⌋ repeated layers in the time T, where
    /// u is what one takes in all rounds. T is the least in which all together hold all.
    fn time_of_whole_layers(&self, case: &Case, times: &LayerTimes) -> f64 {
        let load = times.forward + times.backward;
        let u = case.rounds as f64 * load;
        if case.ranks == 1 || u <= 0.0 {
            return 0.0;
        }
        let through = times.first + (case.ranks - 2) as f64 * load;
        let busy = [case.rounds as f64 * times.first, case.rounds as f64 * times.last + through];
        // Each as a number of whole layers and a rest.
        let parts = busy.map(|busy| {
            let layers = (busy / u).floor();
            (layers, busy - layers * u)
        });
        let lost = parts[0].0 + parts[1].0;
        let wanted = self.repeated as f64;
        let mut rests = [0.0, parts[0].1, parts[1].1];
        rests.sort_by(f64::total_cmp);
        let holds = |whole: f64, rest: f64| {
            let short = parts.iter().filter(|(_, own)| rest < *own).count();
            whole * case.ranks as f64 - lost - short as f64
        };
        let whole = ((wanted + lost) / case.ranks as f64).ceil();
        let rest = rests.into_iter().find(|&rest| holds(whole, rest) >= wanted);
        let least = rest.map_or(0.0, |rest| whole * u + rest);
        least.max(busy[0]).max(busy[1])
    }

    fn time_of_passes(&self, case: &Case, times: &LayerTimes) -> f64 {
        let once = times.forward + times.backward;
        let others = times.others_forward + times.others_backward;
        match self.recompute {
            Recompute::Stage if case.ranks > 1 => {
                self.time_with_last_stage(case, once, times.forward + once, others)
            }
            Recompute::Full => {
                self.time_of_loads(case, times.forward + once, times.others_forward + others)
            }
            Recompute::None | Recompute::Stage | Recompute::First(_) | Recompute::AsNeeded => {
                self.time_of_loads(case, once, others + case.again * times.forward)
            }
        }
    }

    /// Where each repeated layer adds `load` to its rank.
    fn time_of_loads(&self, case: &Case, load: f64, others: f64) -> f64 {
        let sum = self.repeated as f64 * load + others;
        let most_in_a_rank = self.repeated.div_ceil(case.ranks) as f64;
        self.time_of(case, sum, (most_in_a_rank * load).max(sum / case.ranks as f64))
    }

    /// Where a layer adds `once` in the last stage, which holds at most so many, and `twice`
    /// before it.
    fn time_with_last_stage(&self, case: &Case, once: f64, twice: f64, others: f64) -> f64 {
        let most = case.last_stage.min(self.repeated);
        // The fuller the last stage, the less there is to do in all.
        let least = most as f64 * once + (self.repeated - most) as f64 * twice + others;
        let before = |last: u64| (self.repeated - last).div_ceil(case.ranks - 1) as f64 * twice;
        // Up to the balance each further layer in the last stage makes the slowest stage shorter,
        // beyond it longer.
        let (mut low, mut high) = (0, self.repeated);
        while low < high {
            let middle = u64::midpoint(low, high);
            if middle as f64 * once >= before(middle) { high = middle } else { low = middle + 1 }
        }
        let slowest = [high.saturating_sub(1), high]
            .map(|last| last.min(most))
            .map(|last| before(last).max(last as f64 * once));
        let slowest = slowest[0].min(slowest[1]).max(least / case.ranks as f64);
        self.time_of(case, least, slowest)
    }

    /// Where loads come to at least `sum` in all and `slowest` on some rank.
    ///
    /// In 1F1B the first micro-batch goes up and down, and either all forward or all backward
    /// passes of the slowest rank lie between, one of which is at least half its load. With more
    /// rounds than ranks it turns round a second time while the slowest rank works without pause;
    /// with as many it does so but for one load, which it has to do in every round anyway.
    fn time_of(&self, case: &Case, sum: f64, slowest: f64) -> f64 {
        let (rounds, ranks) = (case.rounds as f64, case.ranks as f64);
        if self.time_model == TimeModel::Published {
            return (rounds + ranks - 1.0) * slowest;
        }
        let mut least = sum.max(rounds * slowest);
        if !case.several {
            least = least.max(sum + 0.5 * (rounds - 1.0) * slowest);
            if case.rounds > case.ranks {
                least = least.max(2.0 * sum + (rounds - ranks - 1.0) * slowest);
            } else if case.rounds == case.ranks {
                least = least.max(2.0 * sum * (rounds / (rounds + 1.0)));
            }
        }
        least
    }
}

/// A number of ranks, how many micro-batches each pipeline runs, and whether ranks have several
/// virtual stages.
#[derive(Clone, Copy, Debug)]
struct Pipelines {
    ranks: u64,
    rounds: u64,
    several: bool,
}

/// What is known of the layers of virtual stages. Between the first and the last layer all must be
/// alike; a last layer that is alike too is one more in the last virtual stage of all.
fn dealt(asked: &Asked, divided: &Divided) -> Dealt {
    let sequence = &divided.share.sequence;
    let kind = most_frequent(sequence);
    let is_inner = |at: usize| at > 0 && at + 1 < sequence.len();
    let alike = sequence.iter().enumerate().all(|(at, &other)| !is_inner(at) || other == kind);
    let space = asked.space;
    let given = |limits: Limits| limits.least == limits.most;
    // The family beside the even layouts, whose ends are within three layers of the others.
    let longer = if given(space.chunks) && given(space.pipeline) {
        4
    } else {
        u64::from(sequence.last() == Some(&kind))
    };
    let known = alike && space.cut == CutSpace::Best;
    Dealt { layers: sequence.len() as u64, longer: known.then_some(longer) }
}

/// Whether there are at most a hundred layouts of layers in virtual stages, so that all are compared.
fn few_layouts(layers: u64, stages: u64) -> bool {
    let (boundaries, places) = (stages.saturating_sub(1), layers - 1);
    let mut count = 1_u128;
    for chosen in 0..boundaries.min(places - boundaries) {
        count = count * u128::from(places - chosen) / u128::from(chosen + 1);
        if count > 100 {
            return false;
        }
    }
    true
}

/// Bytes that the repeated layer's parameters take of a device at the least, where replicas share so
/// and there are at most so many pipelines.
///
/// A rank rounds a shard up once, not for every layer: here it is rounded down.
fn state(asked: &Asked, divided: &Divided, zero: Zero, pipelines: u64) -> u128 {
    let share = &divided.share;
    let layer = &share.kinds[most_frequent(&share.sequence)];
    let replicas = pipelines * share.setting.context;
    let shards = u128::from(asked.space.shards.unwrap_or(replicas).max(1));
    // Experts are shared by as many as there can be of them.
    let of_experts = u128::from(divided.expert_replicas(pipelines).max(1));
    let bytes = ParameterBytes::new(asked.optimizer, &asked.stack);
    let part = |each: u64, from: Zero| {
        let parts = [
            (layer.parameters - layer.expert_parameters, shards),
            (layer.expert_parameters, of_experts),
        ];
        let held = parts.map(|(parameters, shards)| {
            let whole = u128::from(parameters) * u128::from(each);
            if zero >= from { whole / shards } else { whole }
        });
        held[0] + held[1]
    };
    part(bytes.weight.0, Zero::Weights)
        + part(bytes.gradient.0, Zero::Gradients)
        + part(bytes.state.0, Zero::State)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PassOrder;
    use crate::plan::PipelinedBatch;
    use crate::plan::StageTime;
    use crate::plan::one_f_one_b;

    fn phases(recompute: Recompute, repeated: u64) -> Phases {
        Phases {
            recompute,
            time_model: TimeModel::OneForwardOneBackward,
            chunks: (1, u64::MAX),
            dealt: Dealt { layers: repeated + 2, longer: None },
            micro_batches: 0,
            repeated,
            capacity: u128::MAX,
            kept: 0,
            input: 0,
            working: 0,
        }
    }

    fn case(
        (ranks, rounds, several): (u64, u64, bool),
        repeated: u64,
        exchanged: Exchanged,
    ) -> Case {
        Case { ranks, rounds, several, last_stage: repeated, again: 0.0, exchanged }
    }

    /// A first layer, repeated layers, a last layer, by forward and backward pass.
    struct Chain {
        layers: Vec<(u64, u64)>,
    }

    impl Chain {
        fn new(noise: &mut impl FnMut(u64) -> u64) -> Self {
            let mut pass = || (noise(20), noise(40));
            let (first, repeated, last) = (pass(), pass(), pass());
            let n_repeated = usize::try_from(1 + noise(6)).unwrap();
            let mut layers = vec![repeated; n_repeated];
            layers.insert(0, first);
            layers.push(last);
            Self { layers }
        }

        fn times(&self) -> LayerTimes {
            let (first, repeated) = (self.layers[0], self.layers[1]);
            let last = self.layers[self.layers.len() - 1];
            LayerTimes {
                forward: repeated.0 as f64,
                backward: repeated.1 as f64,
                others_forward: (first.0 + last.0) as f64,
                others_backward: (first.1 + last.1) as f64,
                first: (first.0 + first.1) as f64,
                last: (last.0 + last.1) as f64,
            }
        }

        /// The virtual stages of a cut, by a set of inner boundaries.
        fn stages(&self, cut: u32, recompute: Recompute) -> Vec<StageTime> {
            let n = self.layers.len();
            let n_stages = cut.count_ones() + 1;
            let mut stages = vec![StageTime::default()];
            for (at, (forward, backward)) in self.layers.iter().enumerate() {
                if at > 0 && cut >> (at - 1) & 1 == 1 {
                    stages.push(StageTime::default());
                }
                let is_last = stages.len() == n_stages as usize;
                let again = match recompute {
                    Recompute::Full => *forward,
                    Recompute::Stage if !is_last => *forward,
                    _ => 0,
                };
                let stage = stages.last_mut().unwrap();
                stage.forward += forward;
                stage.backward += backward + again;
            }
            assert!(cut < 1 << (n - 1));
            stages
        }
    }

    fn noise() -> impl FnMut(u64) -> u64 {
        let mut state: u64 = 0xB0_07D;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    #[test]
    fn no_cut_in_1f1b_beats_the_bound() {
        let mut noise = noise();
        for _ in 0..600 {
            let chain = Chain::new(&mut noise);
            let rounds = 1 + noise(12);
            let repeated = chain.layers.len() as u64 - 2;
            for recompute in [Recompute::None, Recompute::Full, Recompute::Stage] {
                let phases = phases(recompute, repeated);
                for cut in 0..1 << (chain.layers.len() - 1) {
                    let stages = chain.stages(cut, recompute);
                    let ranks = stages.len() as u64;
                    let exchanged = Exchanged::default();
                    let case = case((ranks, rounds, false), repeated, exchanged);
                    let time = one_f_one_b::time(&stages, rounds) as f64;
                    let least = phases.time(&case, &chain.times());
                    assert!(least <= time + 1e-6, "{least} {time} {stages:?} {rounds}");
                }
            }
        }
    }

    #[test]
    fn no_layout_of_virtual_stages_beats_the_bound() {
        let mut noise = noise();
        for _ in 0..300 {
            let chain = Chain::new(&mut noise);
            let repeated = chain.layers.len() as u64 - 2;
            let phases = phases(Recompute::None, repeated);
            for cut in 0..1 << (chain.layers.len() - 1) {
                let times = chain.stages(cut, Recompute::None);
                for chunks in
                    (2..=times.len() / 2).filter(|chunks| times.len().is_multiple_of(*chunks))
                {
                    let ranks = times.len() / chunks;
                    let rounds = ranks as u64 * (1 + noise(3));
                    let order = PassOrder::Interleaved { chunks, group: ranks as u64 };
                    let micro_batches = rounds;
                    let batch =
                        PipelinedBatch { order, ranks, micro_batches, times: &times, delay: 0 };
                    let time = batch.time().unwrap() as f64;
                    let (ranks, exchanged) = (ranks as u64, Exchanged::default());
                    let case = case((ranks, rounds, true), repeated, exchanged);
                    let least = phases.time(&case, &chain.times());
                    assert!(least <= time + 1e-6, "{least} {time} {times:?} {rounds}");
                }
            }
        }
    }

    #[test]
    fn the_first_stage_is_sent_nothing() {
        let mut phases = phases(Recompute::Stage, 100);
        (phases.capacity, phases.kept, phases.input) = (100, 10, 50);
        let at = Pipelines { ranks: 4, rounds: 8, several: false };
        assert_eq!(phases.most_layers(3, at, 0), 0);
        assert_eq!(phases.most_layers(4, at, 0), 10);
        assert_eq!(phases.most_layers(1, at, 0), 10);
        phases.working = 41;
        assert_eq!(phases.most_layers(1, at, 0), 5);
    }
}
