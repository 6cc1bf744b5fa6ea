//! Answers to questions that are ready: the best plan, the fewest devices on which there is one,
//! why there is none.

use super::Spelling;
use crate::estimate::EstimateTable;
use crate::input::InputError;
use crate::input::place::Ready;
use crate::input::place::plan;
use crate::input::source::printable;
use crate::parallel::Illegal;
use crate::parallel::frameworks::Framework;
use crate::parallel::is_legal;
use crate::placement::Choices;
use crate::placement::Problem;
use crate::placement::Usage;
use crate::placement::fewest_devices as fewest_of;
use crate::placement::fits;
use crate::placement::obstacle;
use crate::placement::refusal;
use crate::plan::Job;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::StrategySpace;
use crate::plan::Units;
use crate::plan::check::placement::check;
use crate::report::placement as report;
use crate::strategy::Best;
use crate::strategy::Planner;
use crate::strategy::Sharded;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::settings;
use crate::strategy::shardings;

/// The most devices on which a model is made to fit.
pub const MOST_FITTED: u64 = 1 << 20;

/// What is asked of the placement of one division.
struct Asked {
    profile: Profile,
    job: Job,
    choices: Choices,
}

impl Asked {
    fn problem(&self) -> Problem<'_> {
        Problem { profile: &self.profile, job: &self.job, choices: &self.choices }
    }
}

fn refused(ready: &Ready, reason: &dyn std::fmt::Display) -> InputError {
    let file = printable(&ready.question.model.name);
    InputError::Syntax { file, line: None, message: reason.to_string() }
}

fn training(ready: &Ready, terms: &Terms) -> Result<Training, InputError> {
    let question = &ready.question;
    Training::new(&question.model.name, ready.model.clone(), question.sequence, terms)
        .map_err(|reason| refused(ready, &reason))
}

/// Refuses widths and context degrees that were asked for and that the model forbids; `whole` is
/// the space before anything was asked for.
///
/// # Errors
/// Why the model forbids the first of them.
pub fn legal(ready: &Ready, whole: &StrategySpace) -> Result<(), Illegal> {
    let (terms, space) = (&ready.terms, &ready.terms.space);
    let mut alone = terms.clone();
    if ready.model.spec.experts.is_none() {
        // Where experts are shared, so are tokens.
        alone.space.sequence_parallel = vec![false];
    }
    alone.space.micro_batches.truncate(1);
    alone.space.repeated.truncate(1);
    let others = |one: &[u64], other: &[u64], degree| one != other || !one.contains(&degree);
    for &width in &space.tensor_parallel {
        for &context in &space.context_parallel {
            alone.space.tensor_parallel = vec![width];
            alone.space.context_parallel = vec![context];
            alone.space.context_kinds = space.context_kinds[..1].to_vec();
            let found = settings(&ready.model, ready.question.sequence, &alone);
            let given = others(&whole.tensor_parallel, &space.tensor_parallel, width)
                || others(&whole.context_parallel, &space.context_parallel, context);
            if let (Some(&setting), true) = (found.first(), given) {
                is_legal(&ready.model, setting)?;
            }
        }
    }
    Ok(())
}

/// The best way to train, with its plan; `None` where nothing fits. Estimates of operators are
/// remembered in the table, which other questions may share.
///
/// # Errors
/// That the model cannot be trained so at all.
pub fn best(ready: &Ready, table: &EstimateTable) -> Result<Option<(Best, Plan)>, InputError> {
    let training = training(ready, &ready.terms)?;
    let planner = Planner { terms: &ready.terms, training: &training, table };
    let Some(best) = planner.best_on(&ready.chip) else { return Ok(None) };
    let plan = plan(&planner, &ready.chip, &ready.question, &best);
    check(&plan).expect("a plan that was found keeps every rule");
    Ok(Some((best, plan)))
}

/// What is asked of the placement of every division; refused where none can be timed.
fn asked(ready: &Ready, table: &EstimateTable) -> Result<Vec<Asked>, InputError> {
    let terms = &ready.terms;
    let training = training(ready, terms)?;
    let planner = Planner { terms, training: &training, table };
    let mut asked = Vec::new();
    let mut untimed = None;
    let divisions = training.divisions.iter().enumerate();
    let ways = divisions.flat_map(|(at, division)| {
        shardings(terms, division).into_iter().map(move |sharded| (at, sharded))
    });
    for (at, sharded) in ways {
        match planner.asked(at, &ready.chip) {
            Ok((profile, job)) => {
                asked.extend(terms.space.recompute.iter().map(|&recompute| Asked {
                    profile: profile.clone(),
                    job: job.clone(),
                    choices: training.choices(terms, at, (sharded, recompute)),
                }));
            }
            Err(reason) => untimed = Some(reason),
        }
    }
    match untimed {
        Some(reason) if asked.is_empty() => Err(refused(ready, &reason)),
        _ => Ok(asked),
    }
}

/// Why nothing fits, in a sentence.
///
/// # Errors
/// That nothing can be timed at all.
pub fn why_nothing_fits(
    ready: &Ready,
    table: &EstimateTable,
    spelling: Spelling,
) -> Result<String, InputError> {
    let asked = asked(ready, table)?;
    let problems: Vec<Problem> = asked.iter().map(Asked::problem).collect();
    let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
    let terms = &ready.terms;
    Ok(match problems.iter().find_map(refusal) {
        Some(broken) => format!("memory and devices would do, but {broken}"),
        None if would_fit_with_some_idle(terms, &problems) => format!(
            "memory would do, but plans that {} accepts use all {} devices and give every pipeline as \
             many of the {} sequences: no degrees do both; change one of the numbers, or give {} any",
            terms.space.framework,
            terms.cluster.devices,
            terms.global_batch,
            spelling.of("launchable"),
        ),
        None => report::reason(&Units::physical(), obstacles),
    })
}

/// Whether something fits where some devices may be idle and pipelines may differ.
fn would_fit_with_some_idle(terms: &Terms, problems: &[Problem]) -> bool {
    terms.space.framework != Framework::Any
        && problems.iter().any(|problem| {
            let choices = Choices { usage: Usage::Any, legal: None, ..problem.choices.clone() };
            let needed = fewest_of(&Problem { choices: &choices, ..*problem });
            needed.is_some_and(|needed| needed <= problem.job.devices)
        })
}

/// The fewest devices on which some strategy fits, whoever runs it; `None` where none does.
///
/// # Errors
/// That the model cannot be trained so at all.
pub fn fewest_devices(ready: &Ready, table: &EstimateTable) -> Result<Option<u64>, InputError> {
    let mut terms = ready.terms.clone();
    terms.cluster.devices = MOST_FITTED;
    // Others may be idle.
    terms.space.framework = Framework::Any;
    let training = training(ready, &terms)?;
    let planner = Planner { terms: &terms, training: &training, table };
    let mut fewest: Option<u64> = None;
    let divisions = training.divisions.iter().enumerate();
    for (at, division) in divisions.filter(|(_, d)| d.cluster.devices == MOST_FITTED) {
        let Ok((profile, mut job)) = planner.asked(at, &ready.chip) else { continue };
        let each = division.share.setting.devices();
        let devices = |sharded: &Sharded| sharded.data_parallel * sharded.ranks * each;
        let mut ways = shardings(&terms, division);
        ways.sort_by_key(|way| way.as_ref().map(devices));
        for sharded in ways {
            let devices = sharded.as_ref().map(devices);
            if devices.zip(fewest).is_some_and(|(devices, known)| known <= devices) {
                break;
            }
            for &recompute in &terms.space.recompute {
                let mut choices = terms.choices(recompute, sharded);
                // Several virtual stages hold no less.
                choices.chunks = *choices.chunks.start()..=*choices.chunks.start();
                job.devices = devices.unwrap_or(MOST_FITTED);
                let problem = Problem { profile: &profile, job: &job, choices: &choices };
                let found = match devices {
                    Some(devices) => fits(&problem).then_some(devices),
                    None => fewest_of(&problem),
                };
                fewest = fewest.into_iter().chain(found).min();
            }
        }
    }
    Ok(fewest)
}

/// How many devices a model needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// On no fewer does it fit.
    pub fewest: u64,
    /// Devices of a node; 1 where the network has no nodes.
    pub per_node: u64,
    /// Twice the fewest or more, in whole nodes, a power of two: room for longer sequences and
    /// larger micro-batches.
    pub comfortable: u64,
}

impl Fitted {
    /// That of a question; `None` where nothing fits on any number of devices.
    ///
    /// # Errors
    /// That the model cannot be trained so at all.
    pub fn of(ready: &Ready, table: &EstimateTable) -> Result<Option<Self>, InputError> {
        let per_node = ready.terms.cluster.network.devices_per_node().unwrap_or(1);
        let fewest = fewest_devices(ready, table)?;
        Ok(fewest.map(|fewest| {
            let comfortable = (2 * fewest).div_ceil(per_node) * per_node;
            Self { fewest, per_node, comfortable: comfortable.next_power_of_two() }
        }))
    }

    /// Whole nodes that have the fewest devices.
    pub fn nodes(&self) -> u64 {
        self.fewest.div_ceil(self.per_node)
    }
}
