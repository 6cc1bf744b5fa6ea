//! Which numbers of pipelines are worth looking at, and the least time that each could reach.

use super::Problem;
use super::Sample;
use super::SendTimes;
use crate::plan::Job;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::TimeModel;

/// A number of pipelines with what follows from it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Pipelines: the fewest that leave each with `micro_batches`.
    pub data_parallel: u64,
    /// Micro-batches of each pipeline.
    pub micro_batches: u64,
    /// The most stages that a pipeline's devices allow.
    pub most_stages: usize,
    /// A time that no placement with these can beat.
    pub bound: u128,
}

/// What the devices allow, and what the layers together need.
pub(super) struct Pipelines<'a> {
    profile: &'a Profile,
    job: &'a Job,
    data_parallel: std::ops::RangeInclusive<u64>,
    stages: std::ops::RangeInclusive<usize>,
    /// Devices of a stage that is not narrow.
    width: u64,
    /// The most stages that can be narrow.
    most_narrow: usize,
    /// Ticks that all layers take for one micro-batch, one after the other where they must be.
    work: u64,
    /// Ticks of the slowest layer.
    slowest: u64,
    parameters: u64,
    /// Parameters that every first stage holds at least.
    first: u64,
    /// How long tensors take to the next stage, where only shapes that agree are meant.
    sends: Option<(&'a Problem<'a>, SendTimes)>,
}

impl<'a> Pipelines<'a> {
    pub(super) fn new(problem: &Problem<'a>) -> Self {
        let Problem { profile, job, recompute, ref data_parallel, ref stages } = *problem;
        let n_layers = profile.n_layers();
        let n_wide = profile.layers().filter(|layer| layer.tensor_parallel).count();
        // Where no layer is divided, every stage takes one device and none is the exception.
        let (width, most_narrow) =
            if n_wide == 0 { (1, 0) } else { (profile.width, n_layers - n_wide) };
        let most_narrow = if width == 1 { 0 } else { most_narrow };
        let times = || {
            profile.layers().map(|layer| match recompute {
                Recompute::Full => 2 * layer.forward + layer.backward,
                Recompute::None | Recompute::Stage => layer.forward + layer.backward,
            })
        };
        let slowest = times().max().unwrap_or(0);
        // Where layers branch, stages may run branches side by side, and may begin with any.
        let (work, first) = if profile.is_chain() {
            (times().sum(), profile.layer(0).parameters)
        } else {
            (slowest, profile.layers().map(|layer| layer.parameters).min().unwrap_or(0))
        };
        Self {
            profile,
            job,
            data_parallel: data_parallel.clone(),
            stages: stages.clone(),
            width,
            most_narrow,
            work,
            slowest,
            parameters: profile.layers().map(|layer| layer.parameters).sum(),
            first,
            sends: None,
        }
    }

    /// The same, with only those shapes in which tensors take these times to the next stage.
    pub(super) fn that_send(mut self, problem: &'a Problem<'a>, times: SendTimes) -> Self {
        self.sends = Some((problem, times));
        self
    }

    fn sends_alike(&self, data_parallel: u64, n_stages: usize) -> bool {
        let sample = Sample { data_parallel, n_stages: n_stages as u64 };
        self.sends.is_none_or(|(problem, times)| times == sample.times(problem))
    }

    /// The most stages of a pipeline that can take a single device although others take more.
    pub(super) fn most_narrow(&self) -> usize {
        self.most_narrow
    }

    /// The devices of one pipeline with `n_stages` stages of which `n_narrow` take one device.
    pub(super) fn devices(&self, n_stages: usize, n_narrow: usize) -> u64 {
        (n_stages - n_narrow) as u64 * self.width + n_narrow as u64
    }

    /// The numbers of stages, and of narrow ones among them, that the devices allow.
    pub(super) fn shapes(&self, candidate: Candidate) -> impl Iterator<Item = (usize, usize)> {
        let each = self.job.devices / candidate.data_parallel;
        let stages = *self.stages.start().max(&1)..=candidate.most_stages;
        stages
            .flat_map(|s| (0..=self.most_narrow.min(s)).map(move |narrow| (s, narrow)))
            .filter(move |&(s, narrow)| self.devices(s, narrow) <= each)
            .filter(move |&(s, _)| self.sends_alike(candidate.data_parallel, s))
    }

    /// Every number of pipelines that could be the best.
    ///
    /// More pipelines than needed for as many micro-batches each take more devices and no less
    /// time: the fewest stand for all, apart from those of which the network says otherwise.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let most = self.job.devices.min(self.job.micro_batches).min(*self.data_parallel.end());
        let range = *self.data_parallel.start()..=most;
        let counts = pipelines_worth_trying(self.job, self.profile.width, range);
        let candidate =
            |(data_parallel, micro_batches)| self.candidate(data_parallel, micro_batches);
        counts.into_iter().filter_map(candidate).collect()
    }

    /// A number of pipelines; `None` where the devices are too few for its stages.
    fn candidate(&self, data_parallel: u64, micro_batches: u64) -> Option<Candidate> {
        let each = self.job.devices / data_parallel;
        let narrow = each.min(self.most_narrow as u64);
        // As many narrow stages as there can be, the rest wide.
        let fits = narrow + (each - narrow) / self.width;
        let most_stages = usize::try_from(fits).unwrap_or(usize::MAX);
        let most_stages = most_stages.min(self.profile.n_layers()).min(*self.stages.end());
        (most_stages >= (*self.stages.start()).max(1)).then(|| {
            let bound = self.bound(data_parallel, micro_batches, most_stages);
            Candidate { data_parallel, micro_batches, most_stages, bound }
        })
    }

    /// Perfect balance over `most_stages`, no transfer, no memory limit.
    fn bound(&self, data_parallel: u64, micro_batches: u64, most_stages: usize) -> u128 {
        let others = u128::from(micro_batches - 1);
        let least_slowest = self.least_slowest(most_stages);
        let pipelined = u128::from(self.work) + others * u128::from(least_slowest);
        pipelined + u128::from(self.least_end(data_parallel, most_stages))
    }

    /// A load that the slowest of `n_stages` stages cannot fall below.
    pub(super) fn least_slowest(&self, n_stages: usize) -> u64 {
        self.work.div_ceil(n_stages as u64).max(self.slowest)
    }

    /// An end that the slowest end of `n_stages` stages cannot fall below.
    pub(super) fn least_end(&self, data_parallel: u64, n_stages: usize) -> u64 {
        match self.job.time_model {
            TimeModel::Published => self.end(self.first, data_parallel),
            TimeModel::OneForwardOneBackward => {
                let even = self.parameters.div_ceil(n_stages as u64);
                self.end(even, data_parallel)
            }
        }
    }

    /// The end of a stage of so many parameters, without what a tied table adds.
    pub(super) fn end(&self, parameters: u64, data_parallel: u64) -> u64 {
        let exchange = self.job.exchange(parameters, self.profile.width, data_parallel);
        match self.job.time_model {
            TimeModel::Published => 2 * exchange,
            TimeModel::OneForwardOneBackward => exchange + self.job.optimizer_step(parameters),
        }
    }

    /// What a tied table adds to the ends of the first and the last of `n_stages` stages.
    pub(super) fn tied_end(&self, data_parallel: u64, n_stages: usize) -> u64 {
        let Profile { width, tied, .. } = *self.profile;
        match self.job.time_model {
            TimeModel::Published => 0,
            TimeModel::OneForwardOneBackward => {
                self.job.tied_exchange(tied, width, data_parallel, n_stages as u64)
            }
        }
    }
}

/// The numbers of pipelines within a range that could be the best, each with its micro-batches per
/// pipeline: of those that give as many, the fewest, and those that the network treats apart.
pub fn pipelines_worth_trying(
    job: &Job,
    width: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Vec<(u64, u64)> {
    let (all, most) = (job.micro_batches, *range.end());
    let mut counts = Vec::new();
    let mut first = (*range.start()).max(1);
    while first <= most {
        let micro_batches = all.div_ceil(first);
        // The most pipelines that are still needed for as many micro-batches each.
        let last = match micro_batches {
            1 => most,
            _ => ((all - 1) / (micro_batches - 1)).min(most),
        };
        let tried = job.links.worth_trying(width, first..=last, job.devices);
        counts.extend(tried.into_iter().map(|n| (n, micro_batches)));
        first = last + 1;
    }
    counts
}
