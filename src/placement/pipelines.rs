//! Which numbers of pipelines are worth looking at in the published time model, and the least time
//! that each could reach.

use super::FixedProblem;
use super::Sample;
use super::SendTimes;
use crate::parallel::Parameters;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Profile;
use crate::plan::Recompute;

/// A number of pipelines with what follows from it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PipelineCount {
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
    /// Parameters that every first stage holds at least.
    first: Parameters,
    /// How long tensors take to the next stage, where only shapes that agree are meant.
    sends: Option<(&'a FixedProblem<'a>, SendTimes)>,
}

impl<'a> Pipelines<'a> {
    pub(super) fn new(problem: &FixedProblem<'a>) -> Self {
        let FixedProblem { profile, job, recompute, ref data_parallel, ref stages } = *problem;
        let times = || {
            profile.layers().map(|layer| match recompute {
                Recompute::Full => 2 * layer.forward + layer.backward,
                _ => layer.forward + layer.backward,
            })
        };
        let slowest = times().max().unwrap_or(0);
        // Where layers branch, stages may run branches side by side, and may begin with any.
        let (work, first) = if profile.is_chain() {
            (times().sum(), profile.layer(0).by_replicas())
        } else {
            let each = profile.layers().map(LayerProfile::by_replicas);
            (slowest, each.reduce(Parameters::least).unwrap_or_default())
        };
        let (width, most_narrow) = narrow(profile);
        Self {
            profile,
            job,
            data_parallel: data_parallel.clone(),
            stages: stages.clone(),
            width,
            most_narrow,
            work,
            slowest,
            first,
            sends: None,
        }
    }

    /// The same, with only those shapes in which tensors take these times to the next stage.
    pub(super) fn that_send(mut self, problem: &'a FixedProblem<'a>, times: SendTimes) -> Self {
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
    pub(super) fn shapes(&self, count: PipelineCount) -> impl Iterator<Item = (usize, usize)> {
        let each = self.job.devices / count.data_parallel;
        let stages = *self.stages.start().max(&1)..=count.most_stages;
        stages
            .flat_map(|s| (0..=self.most_narrow.min(s)).map(move |narrow| (s, narrow)))
            .filter(move |&(s, narrow)| self.devices(s, narrow) <= each)
            .filter(move |&(s, _)| self.sends_alike(count.data_parallel, s))
    }

    /// Every number of pipelines that could be the best.
    ///
    /// Where every pair of devices is alike, more pipelines than needed for as many micro-batches
    /// each take more devices and no less time: the fewest stand for all.
    pub(super) fn counts(&self) -> Vec<PipelineCount> {
        let most = self.job.devices.min(self.job.micro_batches).min(*self.data_parallel.end());
        let mut counts = Vec::new();
        let mut next = (*self.data_parallel.start()).max(1);
        while next <= most {
            let micro_batches = self.job.micro_batches.div_ceil(next);
            counts.extend(self.count(next, micro_batches));
            let last = match micro_batches {
                1 => most,
                _ => ((self.job.micro_batches - 1) / (micro_batches - 1)).min(most),
            };
            next = if self.job.links.is_flat() { last + 1 } else { next + 1 };
        }
        counts
    }

    /// A number of pipelines; `None` where the devices are too few for its stages.
    fn count(&self, data_parallel: u64, micro_batches: u64) -> Option<PipelineCount> {
        let each = self.job.devices / data_parallel;
        let narrow = each.min(self.most_narrow as u64);
        // As many narrow stages as there can be, the rest wide.
        let fits = narrow + (each - narrow) / self.width;
        let most_stages = usize::try_from(fits).unwrap_or(usize::MAX);
        let most_stages = most_stages.min(self.profile.n_layers()).min(*self.stages.end());
        (most_stages >= (*self.stages.start()).max(1)).then(|| {
            // Perfect balance over all stages, no transfer, no memory limit.
            let others = u128::from(micro_batches - 1);
            let slowest = u128::from(self.least_slowest(most_stages));
            let end = u128::from(self.least_end(data_parallel));
            let bound = u128::from(self.work) + others * slowest + end;
            PipelineCount { data_parallel, micro_batches, most_stages, bound }
        })
    }

    /// A load that the slowest of `n_stages` stages cannot fall below.
    pub(super) fn least_slowest(&self, n_stages: usize) -> u64 {
        self.work.div_ceil(n_stages as u64).max(self.slowest)
    }

    /// An end that the first stage's cannot fall below.
    pub(super) fn least_end(&self, data_parallel: u64) -> u64 {
        self.end(self.first, data_parallel)
    }

    /// The end of a first stage of so many parameters.
    pub(super) fn end(&self, parameters: Parameters, data_parallel: u64) -> u64 {
        2 * self.job.plain_wiring(self.profile, data_parallel, 1).reduce(parameters)
    }
}

/// Devices of a stage that is not narrow, and the most stages that can be narrow: where no layer is
/// divided, every stage takes one device and none is the exception.
pub(super) fn narrow(profile: &Profile) -> (u64, usize) {
    let n_wide = profile.layers().filter(|layer| layer.tensor_parallel).count();
    let width = if n_wide == 0 { 1 } else { profile.width };
    (width, if width == 1 { 0 } else { profile.n_layers() - n_wide })
}
