//! One pass of one kind of layer on one accelerator: how long it takes, and why no less.
//!
//! In: the pass's operators, what each costs ([`OpCosts`]), the accelerator. Out: a [`PassTime`],
//! fast and often, or a [`ScheduledPass`] with every start, on demand.
//!
//! Cores share the memories: a pass takes no less than its bytes need at each, however its
//! operators are ordered ([`super::memory`]).

use super::memory;
use super::memory::Choice;
use super::memory::Least;
use crate::estimate::Estimate;
use crate::estimate::EstimateTable;
use crate::estimate::OpCosts;
use crate::estimate::TooLarge;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::plan::check;
use crate::plan::schedule::Memory;
use crate::schedule::Cores;
use crate::schedule::Limits;
use crate::schedule::Prepared;
use crate::schedule::Problem;
use crate::schedule::Proof;
use crate::schedule::ProofKind;
use crate::schedule::Rule;
use crate::schedule::Schedule;
use crate::schedule::Solved;
use crate::schedule::Solver;
use crate::schedule::Task;
use crate::schedule::Timed;
use crate::schedule::solve_with;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

/// A pass's graph, made ready once for any number of accelerators.
#[derive(Clone, Debug)]
pub struct PassGraph {
    kinds: Dag<CoreKind>,
    prepared: Prepared,
}

/// How long a pass takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassTime {
    /// The largest of the makespan and what each memory needs.
    pub time: Time,
    /// When the last operator ends.
    pub makespan: Time,
    /// When the last operator ends at the earliest, in any schedule, whatever the memories need.
    pub least_makespan: Time,
    /// What off-chip memory needs for all bytes of the pass.
    pub hbm: Time,
    /// What the global buffer needs, the slower of reads and writes.
    pub glb: Time,
    /// Why no schedule makes the pass faster, or by how much one may.
    pub proof: Proof,
    /// Of all operators.
    pub energy: Energy,
    /// Partial schedules that searches looked at.
    pub n_nodes: u64,
}

/// A pass with its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledPass {
    /// How long it takes.
    pub total: PassTime,
    /// The question that the scheduler was asked; a tick is a picosecond.
    pub problem: Problem,
    /// When and where each operator runs; the checker has accepted it and the pass's time.
    pub schedule: Schedule,
    /// What is known of the makespan alone: where memory decides, modes that move fewer bytes may
    /// make it longer than it could be.
    pub proof: Proof,
}

impl PassGraph {
    /// Prepares the operators of a pass. Each takes some time on any accelerator: it computes,
    /// moves bytes or talks to others.
    pub fn new(ops: &Dag<Op>) -> Self {
        let kinds = ops.map(Op::core);
        let prepared = Prepared::new(kinds.clone());
        Self { kinds, prepared }
    }

    /// How many operators the largest part has that cannot be cut in series.
    pub fn largest_block(&self) -> usize {
        self.prepared.largest_block()
    }

    /// How long the pass takes where its operators cost `costs`, in the order of their ids.
    pub fn time(
        &self,
        costs: &[OpCosts],
        chip: &Accelerator,
        rule: Rule,
        limits: &Limits,
    ) -> PassTime {
        let tasks = self.tasks(costs);
        let memories = memories(costs, chip);
        let least = memory::least(&tasks, &memories, |tasks| {
            let (timed, spread) = self.prepared.modes(tasks, cores(chip), rule, limits);
            Choice { timed, spread, details: () }
        });
        total(&least, &memories, costs)
    }

    /// The same with the schedule itself, which the checker has accepted.
    pub fn schedule(
        &self,
        costs: &[OpCosts],
        chip: &Accelerator,
        rule: Rule,
        limits: &Limits,
    ) -> ScheduledPass {
        self.schedule_with(costs, chip, rule, Solver::Exact, limits)
    }

    /// The same by the solver of one's choice.
    pub fn schedule_with(
        &self,
        costs: &[OpCosts],
        chip: &Accelerator,
        rule: Rule,
        solver: Solver,
        limits: &Limits,
    ) -> ScheduledPass {
        let problem = |tasks: &[Task]| {
            let mut next = tasks.iter();
            let tasks = self.kinds.map(|_| *next.next().expect("one task for each operator"));
            Problem { tasks, cores: cores(chip), rule }
        };
        let tasks = self.tasks(costs);
        let memories = memories(costs, chip);
        let least = memory::least(&tasks, &memories, |tasks| {
            let Solved { schedule, makespan, proof, n_nodes } =
                solve_with(&problem(tasks), solver, limits);
            let spread = schedule.runs.iter().map(|run| run.spread).collect();
            Choice { timed: Timed { makespan, proof, n_nodes }, spread, details: schedule }
        });
        let total = total(&least, &memories, costs);
        let problem = problem(&tasks);
        let schedule = least.choice.details;
        check::schedule::check_layer(&problem, &schedule, &memories, total.time)
            .unwrap_or_else(|violation| panic!("a pass takes what it needs: {violation}"));
        ScheduledPass { total, problem, schedule, proof: least.makespan_proof }
    }

    /// When the last of operators that take these times ends at the earliest, whatever the memories
    /// need; without `limits` by bounds alone.
    pub(super) fn least_makespan(
        &self,
        tasks: &[Task],
        chip: &Accelerator,
        rule: Rule,
        limits: Option<&Limits>,
    ) -> Time {
        let cores = cores(chip);
        Time(match limits {
            None => self.prepared.bounded(tasks, cores, rule),
            Some(limits) => self.prepared.modes(tasks, cores, rule, limits).0.proof.lower_bound,
        })
    }

    fn tasks(&self, costs: &[OpCosts]) -> Vec<Task> {
        let tasks = self.kinds.nodes().iter().zip(costs);
        tasks
            .map(|(&core, cost)| {
                let ticks = |estimate: &Estimate| estimate.time.0.max(1);
                Task { core, alone: ticks(&cost.alone), spread: ticks(&cost.spread) }
            })
            .collect()
    }
}

/// What every operator of a pass costs, in the order of their ids.
pub fn costs(
    ops: &Dag<Op>,
    chip: &Accelerator,
    cluster: &Cluster,
    table: &EstimateTable,
) -> Result<Vec<OpCosts>, TooLarge> {
    ops.nodes().iter().map(|op| table.costs(op, chip, cluster)).collect()
}

fn cores(chip: &Accelerator) -> Cores {
    let count = |n: u64| u32::try_from(n).expect("a design has at most 2^16 cores of a kind");
    Cores { tensor: count(chip.most_tensor_cores()), vector: count(chip.design().vector_cores) }
}

/// What a pass takes and why, from its fastest choice of modes.
fn total<S>(least: &Least<S>, memories: &[Memory; 3], costs: &[OpCosts]) -> PassTime {
    let Timed { makespan, proof, .. } = least.choice.timed;
    let spread = &least.choice.spread;
    let [hbm, glb_read, glb_written] =
        [0, 1, 2].map(|at| memory::transfer(&memories[at], |op| usize::from(spread[op])));
    let kind = match proof.kind {
        _ if least.lower_bound < least.time => ProofKind::None,
        _ if least.branched => ProofKind::Search,
        // The memories decide, whatever the schedule.
        ProofKind::None => ProofKind::Bound,
        kind => kind,
    };
    let mode = |(cost, &spread): (&OpCosts, &bool)| if spread { cost.spread } else { cost.alone };
    PassTime {
        time: least.time,
        makespan: Time(makespan),
        least_makespan: Time(least.makespan_proof.lower_bound),
        hbm,
        glb: glb_read.max(glb_written),
        proof: Proof { kind, lower_bound: least.lower_bound.0 },
        energy: costs.iter().zip(spread).map(|pair| mode(pair).energy).sum(),
        n_nodes: least.n_nodes,
    }
}

/// What the operators carry through each memory: off-chip, and the global buffer both ways.
fn memories(costs: &[OpCosts], chip: &Accelerator) -> [Memory; 3] {
    let (read, write) = chip.glb_bandwidth();
    let carried = |bytes: fn(&Estimate) -> Bytes, bandwidth| {
        let modes = |cost: &OpCosts| [bytes(&cost.alone), bytes(&cost.spread)];
        Memory { bytes: costs.iter().map(modes).collect(), bandwidth }
    };
    [
        carried(|estimate| estimate.hbm, chip.hbm_bandwidth()),
        carried(|estimate| estimate.glb_read, read),
        carried(|estimate| estimate.glb_written, write),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Limit;
    use crate::hardware::ChipEnergies;
    use crate::hardware::Design;
    use crate::hardware::DesignSpace;
    use crate::hardware::HbmBandwidth;
    use crate::hardware::Physics;
    use crate::hardware::Port;
    use crate::hardware::network::Link;
    use crate::hardware::network::Network;
    use crate::units::Bandwidth;
    use crate::units::Frequency;

    /// Memory moves one byte per tick: a terabyte per second.
    fn chip() -> Accelerator {
        let rate = Bandwidth::bytes_per_second(Time::PER_SECOND).unwrap();
        let physics = Physics {
            clock: Frequency::hertz(1_000_000_000).unwrap(),
            element_bytes: 2,
            partial_sum_bytes: 4,
            fill_and_drain: true,
            local: None,
            vector_local: None,
            glb: Port { read: 1 << 20, write: 1 << 20 },
            multicast: Some(16),
            hbm: HbmBandwidth::Fixed(rate),
            energies: ChipEnergies::PUBLISHED,
            hbm_fj: 1,
            network_fj_per_byte: 1,
            static_uw_per_mm2: 1,
            beside_uw: 0,
            efficiency: crate::hardware::Efficiency::IDEAL,
            efficiency_from: None,
            calibrations: Vec::new(),
            network: Network::flat(Link { bandwidth: rate, latency: Time(0) }),
        };
        let (designs, _) = DesignSpace::published().designs(&physics);
        let two_of_each = |design: &Design| (design.tensor_cores, design.vector_cores) == (2, 2);
        let found = designs.iter().find(|candidate| two_of_each(&candidate.design)).unwrap();
        found.build(Bytes::GIB, &physics).unwrap()
    }

    fn estimate(time: u64, hbm: u64) -> Estimate {
        Estimate { time: Time(time), hbm: Bytes(hbm), limit: Limit::Compute, ..Estimate::NOTHING }
    }

    fn check(pairs: &[OpCosts]) -> PassTime {
        // Two independent tensor operators.
        let mut kinds = Dag::default();
        for _ in pairs {
            kinds.add(CoreKind::Tensor, &[]);
        }
        let prepared = Prepared::new(kinds.clone());
        let graph = PassGraph { kinds, prepared };
        let limits = Limits::DEFAULT;
        let quick = graph.time(pairs, &chip(), Rule::OwnKind, &limits);
        let full = graph.schedule(pairs, &chip(), Rule::OwnKind, &limits);
        assert_eq!(quick, full.total, "both ways tell the same");
        quick
    }

    #[test]
    fn a_pass_is_as_long_as_its_schedule_where_memory_keeps_up() {
        let op = OpCosts { alone: estimate(10, 1), spread: estimate(8, 1) };
        let found = check(&[op, op]);
        assert_eq!((found.time, found.makespan, found.hbm), (Time(10), Time(10), Time(2)));
        assert_eq!(found.proof, Proof { kind: found.proof.kind, lower_bound: 10 });
        assert_ne!(found.proof.kind, ProofKind::None);
    }

    #[test]
    fn operators_side_by_side_share_the_memory() {
        let op = OpCosts { alone: estimate(10, 10), spread: estimate(10, 10) };
        let found = check(&[op, op]);
        assert_eq!((found.time, found.makespan), (Time(20), Time(10)));
        assert_eq!(found.proof, Proof { kind: found.proof.kind, lower_bound: 20 });
        assert_ne!(found.proof.kind, ProofKind::None, "no schedule moves fewer bytes");
    }

    #[test]
    fn modes_that_move_fewer_bytes_are_taken_where_memory_decides() {
        let op = OpCosts { alone: estimate(10, 10), spread: estimate(9, 6) };
        let found = check(&[op, op]);
        assert_eq!((found.time, found.makespan, found.hbm), (Time(18), Time(18), Time(12)));
        assert_eq!(found.proof, Proof { kind: ProofKind::Search, lower_bound: 18 });
        let little = OpCosts { alone: estimate(10, 10), spread: estimate(9, 9) };
        let found = check(&[op, little]);
        assert_eq!((found.time, found.makespan, found.hbm), (Time(18), Time(18), Time(15)));
    }
}
