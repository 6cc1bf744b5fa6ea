//! One block with its times, cores and rule: what bounds, list and search all work on.

use super::prepared::Block;
use crate::model::op::CoreKind;
use crate::plan::schedule::Cores;
use crate::plan::schedule::Rule;
use crate::plan::schedule::Task;

/// A block to be scheduled.
///
/// Invariant: `spread[i]` is there only where it is less than `alone[i]`; a task that gains
/// nothing by spreading never spreads, since it would only take more from others.
#[derive(Clone, Debug)]
pub(super) struct Job<'a> {
    pub block: &'a Block,
    /// Ticks on one core of each kind needed; for the network, the only time there is.
    pub alone: Vec<u64>,
    /// Ticks spread over all cores, where that is faster.
    pub spread: Vec<Option<u64>>,
    pub cores: Cores,
    pub rule: Rule,
}

/// An amount of each resource: held by a task, or free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub tensor: u32,
    pub vector: u32,
    pub network: u32,
}

/// When the tasks of a block start, and in which mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timetable {
    pub start: Vec<u64>,
    pub spread: Vec<bool>,
    pub makespan: u64,
}

impl<'a> Job<'a> {
    pub fn new(block: &'a Block, tasks: &[Task], cores: Cores, rule: Rule) -> Self {
        let n = block.tasks.len();
        let (mut alone, mut spread) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for &task in &block.tasks {
            let task = tasks[task as usize];
            // A network has nothing to spread over: it takes the better of the two times.
            if matches!(task.core, CoreKind::Network | CoreKind::None) {
                alone.push(task.fastest());
                spread.push(None);
            } else {
                alone.push(task.alone);
                spread.push((task.spread < task.alone).then_some(task.spread));
            }
        }
        let mut job = Self { block, alone, spread, cores, rule };
        // What takes longer alone than all tasks one after another never runs alone: cut down, it
        // still does not, and sums stay small.
        let longer = job.serial() + 1;
        job.alone.iter_mut().for_each(|alone| *alone = longer.min(*alone));
        job
    }

    /// Ticks of all tasks one after another, each in its faster mode.
    pub fn serial(&self) -> u64 {
        let sum = (0..self.len()).try_fold(0_u64, |sum, task| sum.checked_add(self.fastest(task)));
        sum.filter(|&sum| sum < 1 << 62).expect("a layer ends within 2^62 ticks")
    }

    pub fn len(&self) -> usize {
        self.alone.len()
    }

    /// Ticks in a mode; a task that never spreads runs as long as alone.
    pub fn ticks(&self, task: usize, spread: bool) -> u64 {
        self.spread[task].filter(|_| spread).unwrap_or(self.alone[task])
    }

    /// Ticks in the faster mode.
    pub fn fastest(&self, task: usize) -> u64 {
        self.spread[task].unwrap_or(self.alone[task])
    }

    /// All resources.
    pub fn all(&self) -> Amount {
        Amount { tensor: self.cores.tensor, vector: self.cores.vector, network: 1 }
    }

    /// What a task holds while it runs in a mode.
    pub fn held(&self, task: usize, spread: bool) -> Amount {
        let all = self.all();
        let amount = |tensor, vector, network| Amount { tensor, vector, network };
        match (self.block.core[task], spread, self.rule) {
            (CoreKind::None, ..) => amount(0, 0, 0),
            (CoreKind::Network, ..) => amount(0, 0, 1),
            (CoreKind::Tensor, false, _) => amount(1, 0, 0),
            (CoreKind::Vector, false, _) => amount(0, 1, 0),
            (CoreKind::Both, false, _) => amount(1, 1, 0),
            // Under rule `alone` whoever spreads takes everything from everybody but the network.
            (_, true, Rule::Alone) | (CoreKind::Both, true, Rule::OwnKind) => {
                amount(all.tensor, all.vector, 0)
            }
            (CoreKind::Tensor, true, Rule::OwnKind) => amount(all.tensor, 0, 0),
            (CoreKind::Vector, true, Rule::OwnKind) => amount(0, all.vector, 0),
        }
    }

    /// For each task the longest way from its start to the end of the block, each task taking its
    /// faster mode.
    pub fn tails(&self) -> Vec<u64> {
        let mut tails = vec![0; self.len()];
        for task in (0..self.len()).rev() {
            let successors = &self.block.successors[task];
            let after = successors.iter().map(|&next| tails[next as usize]).max().unwrap_or(0);
            tails[task] = self.fastest(task) + after;
        }
        tails
    }
}

impl Amount {
    pub fn fits(self, free: Self) -> bool {
        self.tensor <= free.tensor && self.vector <= free.vector && self.network <= free.network
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            tensor: self.tensor + other.tensor,
            vector: self.vector + other.vector,
            network: self.network + other.network,
        }
    }

    pub fn minus(self, other: Self) -> Self {
        Self {
            tensor: self.tensor - other.tensor,
            vector: self.vector - other.vector,
            network: self.network - other.network,
        }
    }
}
