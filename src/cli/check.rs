//! `phaze check`: verifies a saved answer from first principles.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::files;
use super::search::references;
use crate::certify;
use crate::certify::Question;
use crate::input;
use crate::input::InputError;
use crate::input::hardware;
use crate::input::hf_config;
use crate::input::saved;
use crate::model::Model;
use crate::plan::Plan;
use crate::plan::check::placement::check;
use crate::report::placement as report;
use crate::report::quantity::grouped;
use crate::search::Outcome;

/// Plans of the largest models are a megabyte, outcomes with long fronts tens of them.
const LARGEST_FILE: u64 = 1 << 30;

/// Verify a saved plan or the outcome of a search from first principles, without any solver.
#[derive(ClapArgs)]
pub struct Args {
    /// A plan that `phaze place --out` saved, or the outcome.json of a search, with its
    /// designs.csv beside it; `-` reads a plan from standard input
    file: PathBuf,
    /// Evaluate every evaluated design of a search once more, with all solvers
    #[arg(long)]
    deep: bool,
}

impl Args {
    /// Says on standard output what holds, or what does not.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let name = files::name(&self.file);
        let text = files::read(&self.file, LARGEST_FILE)?;
        let not_one = |what: &str, error: &serde_json::Error| InputError::Syntax {
            file: name.clone(),
            line: Some(error.line()),
            message: format!("not {what}: {error}"),
        };
        let is_outcome = serde_json::from_str::<Schema>(&text)
            .is_ok_and(|found| found.schema == Outcome::SCHEMA);
        if is_outcome {
            let outcome =
                serde_json::from_str(&text).map_err(|error| not_one("an outcome", &error))?;
            return self.check_outcome(&name, &outcome);
        }
        let plan: Plan = serde_json::from_str(&text).map_err(|error| not_one("a plan", &error))?;
        let mut out = std::io::stdout().lock();
        match check(&plan) {
            Ok(()) => {
                report::verdict(&name, &plan, &mut out)?;
                Ok(Exit::Done)
            }
            Err(violation) => {
                writeln!(out, "{name}: does not hold: {violation}")?;
                Ok(Exit::Negative)
            }
        }
    }

    fn check_outcome(&self, name: &str, outcome: &Outcome) -> Result<Exit, Refusal> {
        let (question, _) = question(name, outcome)?;
        let beside = self.file.parent().unwrap_or(Path::new("")).join("designs.csv");
        let cells = saved::cells(&files::name(&beside), &files::read(&beside, LARGEST_FILE)?)?;
        let verdict = certify::check(&question, outcome, &cells);
        let mut out = std::io::stdout().lock();
        match verdict {
            Ok(verified) => {
                writeln!(out, "{name}: holds")?;
                let count = |n: usize| grouped(n as u64);
                let lines = [
                    (verified.plans, "plans fit and take exactly the time they say"),
                    (verified.passes, "layer schedules keep every rule and end when they say"),
                    (verified.pairs, "bounds computed anew: none that was pruned could be better"),
                    (verified.evaluated_again, "designs evaluated once more, with the same times"),
                ];
                for (n, line) in lines.into_iter().filter(|(n, _)| *n > 0) {
                    writeln!(out, "  {:>9} {line}", count(n))?;
                }
                Ok(Exit::Done)
            }
            Err(broken) => {
                writeln!(out, "{name}: does not hold: {broken}")?;
                Ok(Exit::Negative)
            }
        }
    }
}

/// The one key by which files are told apart.
#[derive(serde::Deserialize)]
struct Schema {
    schema: String,
}

/// The question that an outcome answers, made ready from its request alone, with its models.
fn question(name: &str, outcome: &Outcome) -> Result<(Question, Vec<Model>), Refusal> {
    let request = &outcome.request;
    let mut models = Vec::new();
    for model in &request.models {
        models.push(match &model.text {
            Some(text) => hf_config::read(&model.name, text)?,
            None => input::model(&model.name)?,
        });
    }
    let found = match &request.hardware.text {
        Some(text) => hardware::hardware(text, &request.hardware.name)?,
        None => hardware::preset(&request.hardware.name, name)?,
    };
    let question = Question::new(request, &models, found.physics, references()?)
        .map_err(|reason| Refusal::Options(format!("{name}: {reason}")))?;
    Ok((question, models))
}
