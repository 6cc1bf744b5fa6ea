//! Whether a saved answer holds: from first principles, or with the solvers' help.

use crate::certify;
use crate::certify::Tables;
use crate::certify::Verified;
use crate::certify::deep;
use crate::certify::deep::Unsolved;
use crate::input::InputError;
use crate::input::place;
use crate::input::request::judged_by;
use crate::input::saved;
use crate::placement::Choices;
use crate::placement::Problem;
use crate::placement::best_of;
use crate::plan::Links;
use crate::plan::Plan;
use crate::plan::check::placement::check;
use crate::search::Observer;
use crate::search::Outcome;
use crate::search::chips::ChipOutcome;

use super::Refusal;

/// What became of a check.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Everything holds; so much was verified.
    Holds(Verified),
    /// The first claim that is false.
    False(String),
    /// Somebody ended the check.
    Stopped,
}

/// A saved answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of a search.
    Outcome(Box<Outcome>),
    /// Of a search over chips.
    Chips(Box<ChipOutcome>),
    /// Of a placement.
    Plan(Box<Plan>),
}

/// The one key by which files are told apart.
#[derive(serde::Deserialize)]
struct Schema {
    schema: String,
}

/// Reads the text of a saved answer that goes by the name `file`.
///
/// # Errors
/// That it is neither an outcome nor a plan.
pub fn read(file: &str, text: &str) -> Result<Answer, InputError> {
    let not_one = |what: &str, error: &serde_json::Error| InputError::Syntax {
        file: file.to_owned(),
        line: Some(error.line()),
        message: format!("not {what}: {error}"),
    };
    let schema = serde_json::from_str::<Schema>(text).map_or(String::new(), |found| found.schema);
    if schema == Outcome::SCHEMA {
        let outcome = serde_json::from_str(text).map_err(|error| not_one("an outcome", &error))?;
        return Ok(Answer::Outcome(outcome));
    }
    if schema == ChipOutcome::SCHEMA {
        let outcome = serde_json::from_str(text).map_err(|error| not_one("an outcome", &error))?;
        return Ok(Answer::Chips(outcome));
    }
    let plan = serde_json::from_str(text).map_err(|error| not_one("a plan", &error))?;
    Ok(Answer::Plan(plan))
}

/// A file's name and its text.
pub type Named<'a> = (&'a str, &'a str);

/// Judges the outcome of a search with its `designs.csv`, and its `boxes.csv` where not every design has a row;
/// where somebody looks on `deeply`, the solvers evaluate every evaluated design once more.
///
/// # Errors
/// That the request makes no sense.
pub fn outcome(
    (name, outcome): (&str, &Outcome),
    (designs, boxes): (Named, Option<Named>),
    deeply: Option<&dyn Observer>,
) -> Result<Verdict, Refusal> {
    let (question, models) = judged_by(outcome.request.clone(), name)?;
    let cells = saved::cells(designs.0, designs.1)?;
    let boxes = boxes.map_or(Ok(Vec::new()), |(name, text)| saved::cells(name, text))?;
    let judged = question.listing(&cells).and_then(|question| {
        let tables = Tables { designs: &cells, boxes: &boxes };
        Ok((certify::check(&question, outcome, tables)?, question))
    });
    let (judged, question) = match judged {
        Ok(judged) => judged,
        Err(lie) => return Ok(Verdict::False(lie.to_string())),
    };
    let mut verified = judged.verified;
    let Some(observer) = deeply else { return Ok(Verdict::Holds(verified)) };
    let read = |text: &str| saved::cells("designs.csv", text).unwrap_or_default();
    let solved = deep::solve(&question, models, outcome, &judged, observer, read);
    let compared = solved.and_then(|solved| {
        solved.compare(outcome, &cells)?;
        Ok(solved.evaluated)
    });
    match compared {
        Ok(count) => {
            verified.evaluated_again = count;
            Ok(Verdict::Holds(verified))
        }
        Err(Unsolved::False(lie)) => Ok(Verdict::False(lie.to_string())),
        Err(Unsolved::Stopped) => Ok(Verdict::Stopped),
        Err(Unsolved::Senseless(reason)) => Err(Refusal::Options(format!("{name}: {reason}"))),
    }
}

/// The first claim of a plan that is false; `deeply` asks the solvers whether anything is better.
///
/// # Errors
/// That its question makes no sense.
pub fn plan(name: &str, plan: &Plan, deeply: bool) -> Result<Option<String>, Refusal> {
    if let Err(violation) = check(plan) {
        return Ok(Some(violation.to_string()));
    }
    match (&plan.training, &plan.question) {
        (None, None) if matches!(plan.job.links, Links::Rate { .. }) => {
            Ok(deeply.then(|| own_layers(plan)).flatten())
        }
        (_, None) => Ok(Some("a plan of a model without its question".into())),
        (_, Some(_)) => by_question(name, plan, deeply),
    }
}

/// The first claim of a plan that is false by its own question.
fn by_question(name: &str, plan: &Plan, deeply: bool) -> Result<Option<String>, Refusal> {
    if let Err(lie) = place::judge(plan, name)? {
        return Ok(Some(lie.to_string()));
    }
    let Some(question) = plan.question.as_ref().filter(|_| deeply) else { return Ok(None) };
    let found = place::solve(&place::ready(question.clone(), name)?)?;
    Ok(match found {
        Some(found) if found == *plan => None,
        Some(found) if found.answer.time_per_batch == plan.answer.time_per_batch => {
            Some("among equals, the solvers tell another placement or schedule".into())
        }
        Some(found) => Some(format!(
            "a batch is said to take {} s at the least, but one takes {} s",
            plan.units.time(plan.answer.time_per_batch),
            found.units.time(found.answer.time_per_batch)
        )),
        None => Some("it is said to fit, but nothing was found to fit".into()),
    })
}

/// What is faster than a plan of a user's own layers at its width, by what it computes again, if
/// anything is.
fn own_layers(plan: &Plan) -> Option<String> {
    let choices = Choices::plain(plan.answer.recompute);
    let problem = Problem { profile: &plan.profile, job: &plan.job, choices: &choices };
    let (_, found) = best_of(&[problem]).ok().flatten()?;
    (found.rank.time < plan.answer.time_per_batch)
        .then(|| format!("a batch takes {} s at the least", plan.units.time(found.rank.time)))
}
