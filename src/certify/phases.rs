//! Which numbers of stages and replicas may be possible, and the least time of a batch in each
//! (docs/search.md, steps 3 and 4). Memory and devices decide; the model is relaxed to its
//! repeated layer.

use crate::hardware::network::Exchange;
use crate::hardware::network::Group;
use crate::hardware::network::Network;
use crate::model::op::CollectiveKind;
use crate::parallel::Share;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::units::Bytes;

use super::placed::most_frequent;
use super::rebuild::Question;

/// What decides which cases are possible.
pub struct Phases {
    recompute: Recompute,
    time_model: TimeModel,
    width: u64,
    devices: u64,
    devices_per_stage: u64,
    micro_batches: u64,
    layers: u64,
    repeated: u64,
    capacity: u128,
    /// Bytes of the repeated layer: its state, what it keeps, what enters it.
    state: u128,
    kept: u128,
    input: u128,
    /// All parameters of one device's share, every layer counted.
    parameters: u64,
    gradient: u64,
}

/// A number of stages, and a group of replica counts that are not told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    stages: u64,
    /// Micro-batches that each pipeline runs.
    rounds: u64,
    /// The least time to exchange gradients.
    end: u64,
    /// The most repeated layers that fit in the last stage.
    last_stage: u64,
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
}

impl Phases {
    /// A share with one recompute choice on devices with `capacity` bytes.
    pub fn new(
        question: &Question,
        share: &Share,
        devices: u64,
        recompute: Recompute,
        capacity: u64,
    ) -> Self {
        let kind = most_frequent(&share.sequence);
        let layer = &share.kinds[kind];
        let optimizer = question.optimizer;
        let held = optimizer.weight().0 + optimizer.gradient().0 + optimizer.state().0;
        let all_wide = share.kinds.iter().all(|kind| kind.tensor_parallel);
        let width = share.setting.tensor_parallel;
        Self {
            recompute,
            time_model: question.request.time_model,
            width,
            devices,
            devices_per_stage: if all_wide { width } else { 1 },
            micro_batches: question.request.global_batch / share.setting.micro_batch,
            layers: share.sequence.len() as u64,
            repeated: share.sequence.iter().filter(|&&at| at == kind).count() as u64,
            capacity: capacity.into(),
            state: u128::from(layer.parameters) * u128::from(held),
            kept: layer.kept.0.into(),
            input: layer.input.0.into(),
            parameters: share.sequence.iter().map(|&kind| share.kinds[kind].parameters).sum(),
            gradient: optimizer.gradient().0,
        }
    }

    /// All cases that may be possible and that no other beats whatever the layers take.
    pub fn cases(&self, question: &Question) -> Vec<Case> {
        let mut kept: Vec<Case> = Vec::new();
        // From many stages to few: what beats a case has at least as many.
        for stages in (1..=self.layers.min(self.devices / self.devices_per_stage)).rev() {
            let room = self.devices / (self.devices_per_stage * stages);
            let most = room.min(self.micro_batches);
            let mut first = 1;
            while first <= most {
                let last = (first + first / 4).min(most);
                let rounds = self.micro_batches.div_ceil(last);
                if self.may_fit(stages, rounds) {
                    let end = match self.time_model {
                        TimeModel::Published => 0,
                        TimeModel::OneForwardOneBackward => {
                            self.least_exchange(&question.physics.network, stages, first, last)
                        }
                    };
                    let last_stage = self.most_layers(1, rounds);
                    let case = Case { stages, rounds, end, last_stage };
                    if !kept.iter().any(|known| self.beats(known, &case)) {
                        kept.push(case);
                    }
                }
                first = last + 1;
            }
        }
        kept
    }

    /// The least time, over every replica count from `first` to `last`, until some stage has
    /// exchanged the gradients of an average stage.
    fn least_exchange(&self, network: &Network, stages: u64, first: u64, last: u64) -> u64 {
        let gradients = Bytes(self.parameters / stages * self.gradient);
        let reduce = Exchange::Collective(CollectiveKind::AllReduce);
        let time = |size: u64| {
            let group = Group::along(size, self.width);
            network.topology().time(reduce, gradients, group, self.devices).0
        };
        // A bound is told by what the network says that no group beats. It is believed only where
        // no group does: on one kind of link a larger ring is never faster, elsewhere each is asked.
        let told_apart = if network.is_flat() { first } else { last };
        let told =
            network.topology().least(reduce, gradients, self.width, first..=last, self.devices);
        (first..=told_apart).map(time).fold(told.0, u64::min)
    }

    /// Whether `case` is never faster than `known`.
    fn beats(&self, known: &Case, case: &Case) -> bool {
        let more_stages = match self.time_model {
            // More stages fill and drain for longer.
            TimeModel::Published => known.stages == case.stages,
            TimeModel::OneForwardOneBackward => known.stages >= case.stages,
        };
        let last_stage = match self.recompute {
            // One stage alone repeats nothing.
            Recompute::Stage => case.stages > 1 && known.last_stage >= case.last_stage,
            Recompute::None | Recompute::Full => true,
        };
        more_stages && last_stage && known.rounds <= case.rounds && known.end <= case.end
    }

    /// Whether the repeated layers alone fit in so many stages.
    fn may_fit(&self, stages: u64, rounds: u64) -> bool {
        let mut left = self.repeated;
        for in_flight in 1..=stages {
            left = left.saturating_sub(self.most_layers(in_flight, rounds));
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// The most repeated layers that fit in the stage that ends `from_the_end` stages before the
    /// end, itself counted.
    fn most_layers(&self, from_the_end: u64, rounds: u64) -> u64 {
        let in_flight = u128::from(match self.time_model {
            TimeModel::Published => from_the_end,
            TimeModel::OneForwardOneBackward => from_the_end.min(rounds),
        });
        let (once, each) = match self.recompute {
            Recompute::None => (0, self.state + in_flight * self.kept),
            Recompute::Stage => ((in_flight - 1) * self.input, self.state + self.kept),
            Recompute::Full => (self.kept, self.state + in_flight * self.input),
        };
        let Some(room) = self.capacity.checked_sub(once) else { return 0 };
        let layers = room.checked_div(each).unwrap_or(u128::MAX);
        u64::try_from(layers).unwrap_or(u64::MAX).min(self.repeated)
    }

    /// Picoseconds of a batch at the least.
    pub fn time(&self, case: &Case, times: &LayerTimes) -> f64 {
        let once = times.forward + times.backward;
        let others = times.others_forward + times.others_backward;
        match self.recompute {
            Recompute::Stage if case.stages > 1 => {
                self.time_with_last_stage(case, once, times.forward + once, others)
            }
            Recompute::Full => {
                self.time_of_loads(case, times.forward + once, times.others_forward + others)
            }
            Recompute::None | Recompute::Stage => self.time_of_loads(case, once, others),
        }
    }

    /// Where each repeated layer adds `load` to its stage.
    fn time_of_loads(&self, case: &Case, load: f64, others: f64) -> f64 {
        let sum = self.repeated as f64 * load + others;
        let most_in_a_stage = self.repeated.div_ceil(case.stages) as f64;
        self.time_of(case, sum, (most_in_a_stage * load).max(sum / case.stages as f64))
    }

    /// Where a layer adds `once` in the last stage, which holds at most so many, and `twice`
    /// before it.
    fn time_with_last_stage(&self, case: &Case, once: f64, twice: f64, others: f64) -> f64 {
        let most = case.last_stage.min(self.repeated);
        let sum = |last: u64| last as f64 * once + (self.repeated - last) as f64 * twice + others;
        let by_average = self.time_of(case, sum(most), sum(most) / case.stages as f64);
        if case.rounds == 1 {
            return by_average;
        }
        let before = |last: u64| (self.repeated - last).div_ceil(case.stages - 1) as f64 * twice;
        // Up to the balance each further layer in the last stage shortens both; beyond it, the
        // slowest stage grows by more than is saved.
        let (mut low, mut high) = (0, self.repeated);
        while low < high {
            let middle = u64::midpoint(low, high);
            if middle as f64 * once >= before(middle) { high = middle } else { low = middle + 1 }
        }
        let by_slowest = [high.saturating_sub(1), high]
            .map(|last| last.min(most))
            .map(|last| self.time_of(case, sum(last), before(last).max(last as f64 * once)));
        by_average.max(by_slowest[0].min(by_slowest[1]))
    }

    fn time_of(&self, case: &Case, sum: f64, slowest: f64) -> f64 {
        match self.time_model {
            TimeModel::Published => (case.rounds + case.stages - 1) as f64 * slowest,
            TimeModel::OneForwardOneBackward => {
                sum + (case.rounds - 1) as f64 * slowest + case.end as f64
            }
        }
    }
}
