//! Answers to questions that are ready: the best plan, or why there is none.

use super::Spelling;
use super::fewest::fewest_devices;
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
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::settings;
use crate::strategy::shardings;

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

/// What is trained, ready to be divided.
pub(super) fn training(ready: &Ready, terms: &Terms) -> Result<Training, InputError> {
    let question = &ready.question;
    let trained = (question.model.name.as_str(), ready.model.clone());
    Training::with(&ready.shares, trained, question.sequence, terms)
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
    let terms = &ready.terms;
    let fewest = fewest_devices(ready, table)?;
    if let Some(fewest) = fewest.filter(|&fewest| fewest > terms.cluster.devices) {
        return Ok(report::too_few_devices(fewest, terms.cluster.devices, &terms.space.recompute));
    }
    let asked = asked(ready, table)?;
    let problems: Vec<Problem> = asked.iter().map(Asked::problem).collect();
    let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
    Ok(match problems.iter().find_map(refusal) {
        Some(broken) => format!("memory and devices would do, but {broken}"),
        None if fewest.is_some() && terms.space.framework != Framework::Any => format!(
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
