//! `phaze check`: verifies a saved answer from first principles.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::files;
use crate::compare;
use crate::compare::Said;
use crate::input;
use crate::input::InputError;
use crate::input::hardware;
use crate::input::hf_config;
use crate::input::saved;
use crate::plan::Plan;
use crate::plan::check::placement::check;
use crate::report::placement as report;
use crate::report::quantity::grouped;
use crate::report::saved::DesignTable;
use crate::search::Outcome;
use crate::search::Setup;

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
        let setup = setup(name, outcome)?;
        let beside = self.file.parent().unwrap_or(Path::new("")).join("designs.csv");
        let file = files::name(&beside);
        let designs = saved::designs(&file, &files::read(&beside, LARGEST_FILE)?)?;
        let said = said(&file, outcome, &designs)?;
        let mut verdict = compare::verify(outcome, &setup, &said);
        if self.deep
            && let Ok(verified) = &mut verdict
        {
            match compare::deep(&setup, &claims(&setup, outcome, &designs)) {
                Ok(count) => verified.evaluated_again = count,
                Err(broken) => verdict = Err(broken),
            }
        }
        let mut out = std::io::stdout().lock();
        match verdict {
            Ok(verified) => {
                writeln!(out, "{name}: holds")?;
                let count = |n: usize| grouped(n as u64);
                let lines = [
                    (verified.plans, "plans fit and take exactly the time they say"),
                    (verified.schedules, "layer schedules keep every rule and end when they say"),
                    (verified.bounds, "bounds computed anew: none that was pruned could be better"),
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

/// The search that an outcome answers, made ready from its request alone.
fn setup(name: &str, outcome: &Outcome) -> Result<Setup, Refusal> {
    let request = outcome.request.clone();
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
    Setup::new(request, models, found.physics)
        .map_err(|reason| Refusal::Options(format!("{name}: {reason}")))
}

/// What designs.csv says of every design, by size of memory.
fn said(file: &str, outcome: &Outcome, designs: &DesignTable) -> Result<Vec<Vec<Said>>, Refusal> {
    let column = |gib: &u64| {
        let name = format!("status_hbm{gib}");
        let words = designs.words(&name).ok_or_else(|| InputError::Missing {
            file: file.to_owned(),
            field: name.clone(),
            expected: "it holds the status of each design".into(),
        })?;
        let said = words.iter().map(|word| match word.as_str() {
            "evaluated" => Ok(Said::Evaluated),
            "pruned" => Ok(Said::Pruned),
            "infeasible" => Ok(Said::Infeasible),
            "open" => Ok(Said::Open),
            other => Err(InputError::Unknown {
                file: file.to_owned(),
                what: name.clone(),
                found: other.to_owned(),
                known: ["evaluated", "pruned", "infeasible", "open"].map(String::from).to_vec(),
            }),
        });
        Ok(said.collect::<Result<Vec<Said>, InputError>>()?)
    };
    outcome.request.space.hbm_gib.iter().map(column).collect()
}

/// By design: the size of memory that it was best with, and what a batch of each model takes.
fn claims(
    setup: &Setup,
    outcome: &Outcome,
    designs: &DesignTable,
) -> Vec<Option<(usize, Vec<f64>)>> {
    let best = designs.numbers("best_hbm_gib").unwrap_or_default();
    let times: Vec<&[Option<f64>]> = setup
        .trainings
        .iter()
        .map(|training| {
            let name = match setup.trainings.len() {
                1 => "time_per_batch_s".to_owned(),
                _ => format!("time_per_batch_s:{}", training.name),
            };
            designs.numbers(&name).unwrap_or_default()
        })
        .collect();
    let sizes = &outcome.request.space.hbm_gib;
    best.iter()
        .enumerate()
        .map(|(design, gib)| {
            let hbm = sizes.iter().position(|&size| Some(size as f64) == *gib)?;
            let seconds: Option<Vec<f64>> =
                times.iter().map(|times| times.get(design).copied().flatten()).collect();
            Some((hbm, seconds?))
        })
        .collect()
}
