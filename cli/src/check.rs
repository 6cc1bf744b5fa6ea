//! `phaze check`: verifies a saved answer from first principles.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::watch::Watch;
use phaze::ask::search::Watcher;
use phaze::certify;
use phaze::certify::Judged;
use phaze::certify::Question;
use phaze::certify::deep;
use phaze::certify::deep::Unsolved;
use phaze::input::InputError;
use phaze::input::place;
use phaze::input::request::judged_by;
use phaze::input::saved;
use phaze::model::Model;
use phaze::placement::Choices;
use phaze::placement::Problem;
use phaze::placement::best_of;
use phaze::plan;
use phaze::plan::Links;
use phaze::plan::Plan;
use phaze::plan::check::placement::check;
use phaze::report::placement as report;
use phaze::report::quantity::grouped;
use phaze::search::Outcome;
use phaze::store::files;

/// Plans of the largest models are a megabyte, outcomes with long fronts tens of them.
const LARGEST_FILE: u64 = 1 << 30;

/// Verify a saved plan or the outcome of a search from first principles, without any solver.
#[derive(ClapArgs)]
pub struct Args {
    /// A plan that `phaze place --out` saved, or the outcome.json of a search, with its
    /// designs.csv beside it; `-` reads a plan from standard input
    file: PathBuf,
    /// Have the solvers evaluate every evaluated design of a search once more, too
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
            if self.file == Path::new("-") {
                let problem = "standard input takes plans only: the outcome of a search is checked \
                               with the designs.csv beside it";
                return Err(Refusal::Options(problem.into()));
            }
            return self.check_outcome(&name, &outcome);
        }
        let plan: Plan = serde_json::from_str(&text).map_err(|error| not_one("a plan", &error))?;
        self.check_plan(&name, &plan)
    }

    fn check_outcome(&self, name: &str, outcome: &Outcome) -> Result<Exit, Refusal> {
        let (question, models) = judged_by(outcome.request.clone(), name)?;
        let beside = self.file.parent().unwrap_or(Path::new("")).join("designs.csv");
        let cells = saved::cells(&files::name(&beside), &files::read(&beside, LARGEST_FILE)?)?;
        let mut out = std::io::stdout().lock();
        let judged = match certify::check(&question, outcome, &cells) {
            Ok(judged) => judged,
            Err(lie) => {
                writeln!(out, "{name}: does not hold: {lie}")?;
                return Ok(Exit::Negative);
            }
        };
        let mut verified = judged.verified;
        if self.deep {
            match check_deeply(&question, models, outcome, &judged, &cells) {
                Ok(count) => verified.evaluated_again = count,
                Err(Unsolved::False(lie)) => {
                    writeln!(out, "{name}: does not hold: {lie}")?;
                    return Ok(Exit::Negative);
                }
                Err(Unsolved::Stopped) => return Ok(Exit::Interrupted),
                Err(Unsolved::Senseless(reason)) => {
                    return Err(Refusal::Options(format!("{name}: {reason}")));
                }
            }
        }
        writeln!(out, "{name}: holds")?;
        let lines = [
            (verified.plans, "plans fit and cost what they say, rebuilt from the request"),
            (verified.passes, "layer passes: operators priced, schedules and memories checked"),
            (verified.pairs, "designs x HBM sizes: bounds computed anew, statuses replayed"),
            (verified.evaluated_again, "evaluated once more by the solvers, with the same figures"),
        ];
        for (n, line) in lines.into_iter().filter(|(n, _)| *n > 0) {
            writeln!(out, "  {:>9} {line}", grouped(n as u64))?;
        }
        if !self.deep {
            out.write_all(NOT_CHECKED.as_bytes())?;
        }
        Ok(Exit::Done)
    }
}

/// Has the solvers tell the answer again and compares every claim.
fn check_deeply(
    question: &Question,
    models: Vec<Model>,
    outcome: &Outcome,
    judged: &Judged,
    cells: &[Vec<String>],
) -> Result<usize, Unsolved> {
    let watch = Watch::new(None);
    let read = |text: &str| saved::cells("designs.csv", text).unwrap_or_default();
    let solved = deep::solve(question, models, outcome, judged, &watch, read);
    watch.finish();
    let solved = solved?;
    solved.compare(outcome, cells)?;
    Ok(solved.evaluated)
}

/// What needs a solver, as docs/outcome.md lists it.
const NOT_CHECKED: &str = "Not checked, because it needs a solver (`--deep` does): that evaluated \
    designs without an entry take the times\nand energies they say, that no mapping, schedule or \
    placement of an evaluated design is better, what a power\ncap rules out, several models' own \
    bests, that baselines are the best on their chips, and what turning a knob brings\n";

/// The one key by which files are told apart.
#[derive(serde::Deserialize)]
struct Schema {
    schema: String,
}

impl Args {
    /// Says whether a plan of a model, or of a user's own layers, holds.
    fn check_plan(&self, name: &str, plan: &Plan) -> Result<Exit, Refusal> {
        let mut out = std::io::stdout().lock();
        let lie = match check(plan) {
            Err(violation) => Some(violation.to_string()),
            Ok(()) => match (&plan.training, &plan.question) {
                (None, None) if !matches!(plan.job.links, Links::Rate { .. }) => {
                    Some("a plan of a model without its question".into())
                }
                (None, None) => self.deep.then(|| own_layers(plan)).flatten(),
                (_, Some(question)) => self.check_question(name, plan, question)?,
                (Some(_), None) => Some("a plan of a model without its question".into()),
            },
        };
        if let Some(lie) = lie {
            writeln!(out, "{name}: does not hold: {lie}")?;
            return Ok(Exit::Negative);
        }
        report::verdict(name, plan, self.deep, &mut out)?;
        Ok(Exit::Done)
    }

    /// The first claim of a plan that is false by its own question.
    fn check_question(
        &self,
        name: &str,
        plan: &Plan,
        question: &plan::Question,
    ) -> Result<Option<String>, Refusal> {
        if let Err(lie) = place::judge(plan, name)? {
            return Ok(Some(lie.to_string()));
        }
        if !self.deep {
            return Ok(None);
        }
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
