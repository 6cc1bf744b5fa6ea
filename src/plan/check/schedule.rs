//! Judges a schedule of operators on cores.

use crate::graph::NodeId;
use crate::model::op::CoreKind;
use crate::plan::schedule::Memory;
use crate::plan::schedule::Problem;
use crate::plan::schedule::Rule;
use crate::plan::schedule::Run;
use crate::plan::schedule::Schedule;
use crate::units::Time;

/// The first rule that a schedule breaks; tasks are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Some task has no run, or there is a run without a task.
    #[error("{found} runs for {expected} tasks")]
    RunsMiscounted {
        /// Runs found.
        found: usize,
        /// Tasks that there are.
        expected: usize,
    },
    /// A task ends beyond the range of ticks.
    #[error("task {0} ends beyond all time")]
    EndsNever(usize),
    /// A task starts before one that it reads from has ended.
    #[error("task {task} starts before task {read}, which it reads, has ended")]
    ReadsTooEarly {
        /// Who starts.
        task: usize,
        /// Who has not ended.
        read: usize,
    },
    /// A task holds a core that it does not need, or lacks one, or names one that does not exist.
    #[error("task {0} does not hold exactly the cores that it needs")]
    WrongCores(usize),
    /// Two tasks hold one core, or the network, at the same time.
    #[error("tasks {first} and {second} hold the same core at the same time")]
    CoreShared {
        /// Who held it.
        first: usize,
        /// Who came before it was free.
        second: usize,
    },
    /// A task runs beside a spread one that leaves nothing to it.
    #[error("tasks {first} and {second} overlap, and one is spread over the cores of the other")]
    BesideSpread {
        /// Who ran.
        first: usize,
        /// Who came before it ended.
        second: usize,
    },
}

/// A layer's time that is not what its schedule and its memories make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayerViolation {
    /// The schedule breaks a rule.
    #[error(transparent)]
    Schedule(#[from] Violation),
    /// It takes longer, or less long, than was said.
    #[error("the layer takes {found:?}, not {claimed:?}")]
    Time {
        /// What was said.
        claimed: Time,
        /// What it is.
        found: Time,
    },
}

/// A task's time on something that it holds, `start..end`, never empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hold {
    start: u64,
    end: u64,
    task: usize,
    spread: bool,
}

/// Checks a schedule against every rule of the problem and tells when its last task ends.
pub fn check(problem: &Problem, schedule: &Schedule) -> Result<u64, Violation> {
    let (found, expected) = (schedule.runs.len(), problem.tasks.len());
    if found != expected {
        return Err(Violation::RunsMiscounted { found, expected });
    }
    let mut makespan = 0;
    for id in problem.tasks.ids() {
        let end = end(problem, schedule, id)?;
        makespan = makespan.max(end);
        for &read in problem.tasks.predecessors(id) {
            if self::end(problem, schedule, read)? > schedule.runs[id.index()].start {
                return Err(Violation::ReadsTooEarly { task: id.index(), read: read.index() });
            }
        }
        holds_its_cores(problem, id, schedule.runs[id.index()])?;
    }
    no_core_is_shared(problem, schedule)?;
    spread_tasks_are_left_alone(problem, schedule)?;
    Ok(makespan)
}

/// Checks a layer's time where a tick is a picosecond: its schedule ends by then, and so has every
/// memory moved all bytes of the modes that were chosen; one of them takes exactly that long.
pub fn check_layer(
    problem: &Problem,
    schedule: &Schedule,
    memories: &[Memory],
    claimed: Time,
) -> Result<(), LayerViolation> {
    let mut found = Time(check(problem, schedule)?);
    for memory in memories {
        let modes = memory.bytes.iter().zip(&schedule.runs);
        let bytes = modes.map(|(bytes, run)| bytes[usize::from(run.spread)]).sum();
        found = found.max(memory.bandwidth.transfer(bytes));
    }
    if found == claimed { Ok(()) } else { Err(LayerViolation::Time { claimed, found }) }
}

fn end(problem: &Problem, schedule: &Schedule, id: NodeId) -> Result<u64, Violation> {
    let (task, run) = (problem.tasks.node(id), schedule.runs[id.index()]);
    let ticks = if run.spread { task.spread } else { task.alone };
    run.start.checked_add(ticks).ok_or(Violation::EndsNever(id.index()))
}

fn uses_tensor(core: CoreKind) -> bool {
    matches!(core, CoreKind::Tensor | CoreKind::Both)
}

fn uses_vector(core: CoreKind) -> bool {
    matches!(core, CoreKind::Vector | CoreKind::Both)
}

/// A task on one core names one existing core of each kind that it needs; a spread one names none,
/// but there must be cores to spread over.
fn holds_its_cores(problem: &Problem, id: NodeId, run: Run) -> Result<(), Violation> {
    let core = problem.tasks.node(id).core;
    let held = |needed: bool, named: Option<u32>, n_cores: u32| match named {
        Some(name) => needed && !run.spread && name < n_cores,
        None => !needed || (run.spread && n_cores > 0),
    };
    let right = held(uses_tensor(core), run.tensor, problem.cores.tensor)
        && held(uses_vector(core), run.vector, problem.cores.vector);
    if right { Ok(()) } else { Err(Violation::WrongCores(id.index())) }
}

/// The times of the tasks that `keep` keeps; those that take no time hold nothing.
fn holds(
    problem: &Problem,
    schedule: &Schedule,
    keep: impl Fn(CoreKind, Run) -> bool,
) -> Vec<Hold> {
    let ids = problem.tasks.ids();
    let mut holds: Vec<Hold> = ids
        .filter(|id| keep(problem.tasks.node(*id).core, schedule.runs[id.index()]))
        .map(|id| {
            let run = schedule.runs[id.index()];
            let ticks = problem.tasks.node(id).ticks(run.spread);
            Hold { start: run.start, end: run.start + ticks, task: id.index(), spread: run.spread }
        })
        .filter(|hold| hold.start < hold.end)
        .collect();
    holds.sort_unstable();
    holds
}

/// No two tasks hold the same tensor core, the same vector core or the network at a time.
fn no_core_is_shared(problem: &Problem, schedule: &Schedule) -> Result<(), Violation> {
    let tensor = holds(problem, schedule, |_, run| run.tensor.is_some());
    let vector = holds(problem, schedule, |_, run| run.vector.is_some());
    let network = holds(problem, schedule, |core, _| core == CoreKind::Network);
    one_at_a_time(tensor, problem.cores.tensor, |task| schedule.runs[task].tensor)?;
    one_at_a_time(vector, problem.cores.vector, |task| schedule.runs[task].vector)?;
    one_at_a_time(network, 1, |_| Some(0))
}

/// `holds` come by start, so a core is shared exactly where one starts before the last one on the
/// same core has ended.
fn one_at_a_time(
    holds: Vec<Hold>,
    n_cores: u32,
    core_of: impl Fn(usize) -> Option<u32>,
) -> Result<(), Violation> {
    let mut last = std::collections::BTreeMap::new();
    for hold in holds {
        let core = core_of(hold.task).filter(|core| *core < n_cores);
        if let Some(Hold { end, task, .. }) = last.insert(core, hold)
            && end > hold.start
        {
            return Err(Violation::CoreShared { first: task, second: hold.task });
        }
    }
    Ok(())
}

/// While a task is spread, no other runs on the cores that the rule gives it.
fn spread_tasks_are_left_alone(problem: &Problem, schedule: &Schedule) -> Result<(), Violation> {
    let of = |keep: fn(CoreKind) -> bool| holds(problem, schedule, |core, _| keep(core));
    match problem.rule {
        Rule::Alone => undisturbed(&of(|core| uses_tensor(core) || uses_vector(core))),
        Rule::OwnKind => {
            undisturbed(&of(uses_tensor))?;
            undisturbed(&of(uses_vector))
        }
    }
}

/// No hold starts within a spread one, and no spread one starts within any.
fn undisturbed(holds: &[Hold]) -> Result<(), Violation> {
    let mut last_of_all: Option<Hold> = None;
    let mut last_spread: Option<Hold> = None;
    let later =
        |last: Option<Hold>, hold: Hold| last.filter(|last| last.end > hold.end).or(Some(hold));
    for &hold in holds {
        let disturbed = if hold.spread { last_of_all } else { last_spread };
        if let Some(first) = disturbed.filter(|first| first.end > hold.start) {
            return Err(Violation::BesideSpread { first: first.task, second: hold.task });
        }
        last_of_all = later(last_of_all, hold);
        if hold.spread {
            last_spread = later(last_spread, hold);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dag;
    use crate::plan::schedule::Cores;
    use crate::plan::schedule::Task;
    use crate::units::Bandwidth;
    use crate::units::Bytes;
    use CoreKind::Both;
    use CoreKind::Network;
    use CoreKind::Tensor;
    use CoreKind::Vector;

    const CORES: Cores = Cores { tensor: 2, vector: 1 };

    /// Tasks of 4 ticks alone and 2 spread; `reads` are pairs of indices.
    fn check(
        rule: Rule,
        kinds: &[CoreKind],
        reads: &[(usize, usize)],
        runs: &[Run],
    ) -> Result<u64, Violation> {
        let tasks = kinds.iter().map(|&core| Task { core, alone: 4, spread: 2 }).collect();
        let (tasks, _) = Dag::from_edges(tasks, reads).unwrap();
        let problem = Problem { tasks, cores: CORES, rule };
        super::check(&problem, &Schedule { runs: runs.to_vec() })
    }

    fn on_tensor(start: u64, core: u32) -> Run {
        Run { start, tensor: Some(core), ..Run::default() }
    }

    fn on_vector(start: u64) -> Run {
        Run { start, vector: Some(0), ..Run::default() }
    }

    fn spread(start: u64) -> Run {
        Run { start, spread: true, ..Run::default() }
    }

    #[test]
    fn a_right_schedule_is_told_its_makespan() {
        let kinds = [Tensor, Tensor, Both, Network];
        let both = Run { start: 4, tensor: Some(1), vector: Some(0), spread: false };
        let runs = [on_tensor(0, 0), on_tensor(0, 1), both, Run { start: 5, ..Run::default() }];
        assert_eq!(check(Rule::Alone, &kinds, &[(0, 2), (0, 3)], &runs), Ok(9));
    }

    #[test]
    fn a_missing_run_is_rejected() {
        let verdict = check(Rule::Alone, &[Tensor, Tensor], &[], &[on_tensor(0, 0)]);
        assert_eq!(verdict, Err(Violation::RunsMiscounted { found: 1, expected: 2 }));
    }

    #[test]
    fn an_end_beyond_all_time_is_rejected() {
        let verdict = check(Rule::Alone, &[Tensor], &[], &[on_tensor(u64::MAX - 3, 0)]);
        assert_eq!(verdict, Err(Violation::EndsNever(0)));
    }

    #[test]
    fn a_reader_that_starts_too_early_is_rejected() {
        let runs = [on_tensor(0, 0), on_tensor(3, 1)];
        let verdict = check(Rule::Alone, &[Tensor, Tensor], &[(0, 1)], &runs);
        assert_eq!(verdict, Err(Violation::ReadsTooEarly { task: 1, read: 0 }));
    }

    #[test]
    fn wrong_cores_are_rejected() {
        let no_core = Run::default();
        let two_cores = Run { vector: Some(0), ..on_tensor(0, 0) };
        let spread_and_named = Run { spread: true, ..on_tensor(0, 0) };
        for run in [no_core, on_tensor(0, 2), on_vector(0), two_cores, spread_and_named] {
            let verdict = check(Rule::Alone, &[Tensor], &[], &[run]);
            assert_eq!(verdict, Err(Violation::WrongCores(0)), "{run:?}");
        }
        assert_eq!(check(Rule::Alone, &[Both], &[], &[two_cores]), Ok(4));
    }

    #[test]
    fn a_core_or_network_held_twice_is_rejected() {
        let shared = Err(Violation::CoreShared { first: 0, second: 1 });
        let on_one = [on_tensor(0, 0), on_tensor(3, 0)];
        assert_eq!(check(Rule::Alone, &[Tensor, Tensor], &[], &on_one), shared);
        assert_eq!(
            check(Rule::Alone, &[Vector, Vector], &[], &[on_vector(0), on_vector(1)]),
            shared
        );
        let on_network = [Run::default(), Run { start: 3, ..Run::default() }];
        assert_eq!(check(Rule::Alone, &[Network, Network], &[], &on_network), shared);
    }

    #[test]
    fn company_of_a_spread_task_is_rejected_as_the_rule_says() {
        let beside = Err(Violation::BesideSpread { first: 0, second: 1 });
        let vector_inside = [spread(0), on_vector(1)];
        assert_eq!(check(Rule::Alone, &[Tensor, Vector], &[], &vector_inside), beside);
        assert_eq!(check(Rule::OwnKind, &[Tensor, Vector], &[], &vector_inside), Ok(5));
        let spread_inside = [on_tensor(0, 0), spread(3)];
        assert_eq!(check(Rule::OwnKind, &[Tensor, Tensor], &[], &spread_inside), beside);
        assert_eq!(check(Rule::OwnKind, &[Tensor, Both], &[], &spread_inside), beside);
        let network_inside = [spread(0), Run { start: 1, ..Run::default() }];
        assert_eq!(check(Rule::Alone, &[Tensor, Network], &[], &network_inside), Ok(5));
    }

    #[test]
    fn a_layer_is_no_faster_than_any_memory_and_no_slower_than_all() {
        let mut tasks = Dag::default();
        tasks.add(Task { core: Tensor, alone: 4, spread: 2 }, &[]);
        let problem = Problem { tasks, cores: CORES, rule: Rule::Alone };
        let judge = |run: Run, claimed: u64| {
            let bandwidth = Bandwidth::bytes_per_second(Time::PER_SECOND).unwrap();
            let memories = [Memory { bytes: vec![[Bytes(5), Bytes(1)]], bandwidth }];
            check_layer(&problem, &Schedule { runs: vec![run] }, &memories, Time(claimed))
        };
        let wrong = |claimed, found| {
            Err(LayerViolation::Time { claimed: Time(claimed), found: Time(found) })
        };
        assert_eq!(judge(on_tensor(0, 0), 5), Ok(()));
        assert_eq!(judge(on_tensor(0, 0), 4), wrong(4, 5));
        assert_eq!(judge(spread(0), 2), Ok(()));
        assert_eq!(judge(spread(0), 3), wrong(3, 2));
        assert_eq!(judge(on_tensor(0, 7), 5), Err(Violation::WrongCores(0).into()));
    }

    #[test]
    fn a_long_task_is_remembered_behind_a_short_one() {
        let runs = [on_tensor(0, 0), spread(6), spread(1)];
        let verdict = check(Rule::Alone, &[Tensor, Tensor, Vector], &[], &runs);
        assert_eq!(verdict, Err(Violation::BesideSpread { first: 0, second: 2 }));
    }
}
