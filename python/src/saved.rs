//! What is kept: result directories, their tables and pages, and whether they hold.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyOSError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use phaze::ask::Refusal;
use phaze::ask::check;
use phaze::ask::check::Answer;
use phaze::ask::check::Verdict;
use phaze::ask::chips;
use phaze::ask::chips::ChipVerdict;
use phaze::input::saved;
use phaze::plan::Plan;
use phaze::report;
use phaze::report::saved::Saved;
use phaze::search::Observer;
use phaze::store::files;
use phaze::store::results;

use super::refused;
use super::run::Overseer;
use super::run::in_threads;
use super::run::interruptible;
use super::table::DesignTable;

/// A space of a million designs with several models stays below this.
const LARGEST_FILE: u64 = 2 << 30;

/// The table that the text of a designs.csv holds.
#[pyfunction]
pub fn table(py: Python<'_>, designs: String) -> PyResult<DesignTable> {
    py.detach(|| DesignTable::read(&designs)).map_err(PyValueError::new_err)
}

/// The contents of outcome.json and designs.csv of a result directory; of a search over chips those of
/// outcome.json and boxes.csv.
#[pyfunction]
pub fn load(py: Python<'_>, directory: PathBuf) -> PyResult<(String, String)> {
    py.detach(|| -> Result<_, Refusal> {
        let path = directory.join("outcome.json");
        let outcome = files::read(&path, LARGEST_FILE)?;
        if let Answer::Chips(_) = check::read(&files::name(&path), &outcome)? {
            return Ok((outcome, files::read(&directory.join("boxes.csv"), LARGEST_FILE)?));
        }
        // What is no result, or one of another version, is refused here.
        results::read(&directory)?;
        results::texts(&directory)
    })
    .map_err(refused)
}

/// Writes the files of a result, with its page.
#[pyfunction]
pub fn save(
    py: Python<'_>,
    directory: PathBuf,
    outcome: &[u8],
    designs: &[u8],
    chips: bool,
) -> PyResult<()> {
    py.detach(|| {
        std::fs::create_dir_all(&directory)
            .map_err(|reason| PyOSError::new_err(format!("{}: {reason}", directory.display())))?;
        let write = if chips { results::write_chips } else { results::write_table };
        write(&directory, outcome, designs).map_err(refused)
    })
}

/// What was verified, by name.
type Counts = Vec<(&'static str, usize)>;

/// Whether the outcome of a search holds: the first claim that is false, and what was verified.
#[pyfunction]
#[pyo3(signature = (outcome, designs, *, deep=false, tell=None))]
pub fn check_outcome(
    py: Python<'_>,
    outcome: String,
    designs: String,
    deep: bool,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<(Option<String>, Counts)> {
    let overseer = Overseer::new(None)?;
    let theirs = Arc::clone(&overseer);
    let verdict = interruptible(py, &overseer, tell.as_ref(), move || {
        in_threads(None, || judged(&outcome, &designs, deep.then_some(&*theirs as &dyn Observer)))
    })?;
    verdict.map_err(PyValueError::new_err)?.map_err(refused)
}

fn judged(
    outcome: &str,
    table: &str,
    deeply: Option<&dyn Observer>,
) -> Result<(Option<String>, Counts), Refusal> {
    let stopped = || Refusal::Options("the check was stopped".into());
    let name = "outcome.json";
    match check::read(name, outcome)? {
        Answer::Outcome(outcome) => {
            if !outcome.request.lists_all() {
                let problem =
                    "is proved by boxes, which `phaze check` reads; search with table=True";
                return Err(Refusal::Options(format!("{name}: {problem}")));
            }
            match check::outcome((name, &outcome), (("designs.csv", table), None), deeply)? {
                Verdict::False(lie) => Ok((Some(lie), Vec::new())),
                Verdict::Stopped => Err(stopped()),
                Verdict::Holds(v) => {
                    let again = ("evaluated_again", v.evaluated_again);
                    let found =
                        [("plans", v.plans), ("passes", v.passes), ("pairs", v.pairs), again];
                    Ok((None, found.to_vec()))
                }
            }
        }
        Answer::Chips(outcome) => {
            match chips::check((name, &outcome), ("boxes.csv", table), deeply)? {
                ChipVerdict::False(lie) => Ok((Some(lie), Vec::new())),
                ChipVerdict::Stopped => Err(stopped()),
                ChipVerdict::Holds(v, again) => {
                    let again = ("evaluated_again", again);
                    let found = [("plans", v.plans), ("boxes", v.boxes), ("exact", v.exact), again];
                    Ok((None, found.to_vec()))
                }
            }
        }
        Answer::Plan(_) => Err(Refusal::Options(format!("{name}: not an outcome"))),
    }
}

/// The plan that a text holds.
pub fn plan_of(text: &str) -> Result<Plan, Refusal> {
    match check::read("plan.json", text)? {
        Answer::Plan(plan) => Ok(*plan),
        Answer::Outcome(_) | Answer::Chips(_) => {
            Err(Refusal::Options("plan.json: not a plan".into()))
        }
    }
}

/// The first claim of a plan that is false.
#[pyfunction]
#[pyo3(signature = (plan, *, deep=false))]
pub fn check_plan(py: Python<'_>, plan: String, deep: bool) -> PyResult<Option<String>> {
    let overseer = Overseer::new(None)?;
    let lie = interruptible(py, &overseer, None, move || {
        in_threads(None, || check::plan("plan.json", &plan_of(&plan)?, deep))
    })?;
    lie.map_err(PyValueError::new_err)?.map_err(refused)
}

/// The interactive page of a result.
#[pyfunction]
pub fn outcome_page<'py>(
    py: Python<'py>,
    name: &str,
    outcome: &str,
    designs: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let page = py.detach(|| -> Result<Vec<u8>, Refusal> {
        if is_over_chips(outcome)? {
            return chips::page(name, outcome, designs);
        }
        let mut page = Vec::new();
        report::html::write(&read_back(name, outcome, designs)?, &mut page)
            .expect("memory takes what is written");
        Ok(page)
    });
    Ok(PyBytes::new(py, &page.map_err(refused)?))
}

/// A name, and the texts of outcome.json and of designs.csv or boxes.csv.
type Named = (String, (String, String));

/// The page that sets two results side by side.
#[pyfunction]
pub fn comparison_page(py: Python<'_>, one: Named, other: Named) -> PyResult<Bound<'_, PyBytes>> {
    let page = py.detach(|| -> Result<Vec<u8>, Refusal> {
        let ((first, one), (second, other)) = (&one, &other);
        match (is_over_chips(&one.0)?, is_over_chips(&other.0)?) {
            (true, true) => chips::comparison((first, one), (second, other)),
            (false, false) => {
                let one = read_back(first, &one.0, &one.1)?;
                let other = read_back(second, &other.0, &other.1)?;
                let mut page = Vec::new();
                report::html::write_comparison(&one, &other, &mut page)
                    .expect("memory takes what is written");
                Ok(page)
            }
            _ => Err(results::unlike(first, second)),
        }
    });
    Ok(PyBytes::new(py, &page.map_err(refused)?))
}

fn is_over_chips(outcome: &str) -> Result<bool, Refusal> {
    Ok(matches!(check::read("outcome.json", outcome)?, Answer::Chips(_)))
}

/// A result over the published space, from the texts of its files.
fn read_back(name: &str, outcome: &str, designs: &str) -> Result<Saved, Refusal> {
    let outcome = saved::outcome("outcome.json", outcome)?;
    let designs = saved::designs("designs.csv", designs)?;
    saved::belong("designs.csv", &outcome, &designs)?;
    Ok(Saved { name: name.to_owned(), outcome, designs })
}

/// An outcome as the command line prints it.
#[pyfunction]
pub fn outcome_text(py: Python<'_>, outcome: &str) -> PyResult<String> {
    let text = py.detach(|| -> Result<Vec<u8>, Refusal> {
        let mut text = Vec::new();
        let written = match check::read("outcome.json", outcome)? {
            Answer::Outcome(outcome) => report::outcome::text(&outcome, &mut text),
            Answer::Chips(outcome) => report::chips::text(&outcome, &mut text),
            Answer::Plan(plan) => report::placement::text(&plan, &mut text),
        };
        written.expect("memory takes what is written");
        Ok(text)
    });
    Ok(String::from_utf8(text.map_err(refused)?).expect("a report is text"))
}

/// The page of a plan.
#[pyfunction]
pub fn plan_page<'py>(py: Python<'py>, name: &str, plan: &str) -> PyResult<Bound<'py, PyBytes>> {
    let plan = plan_of(plan).map_err(refused)?;
    let mut page = Vec::new();
    report::html::write_plan(&plan, name, &mut page)
        .map_err(|reason| PyOSError::new_err(reason.to_string()))?;
    Ok(PyBytes::new(py, &page))
}

/// A plan as the command line prints it.
#[pyfunction]
pub fn plan_text(plan: &str) -> PyResult<String> {
    let plan = plan_of(plan).map_err(refused)?;
    let mut text = Vec::new();
    report::placement::text(&plan, &mut text)
        .map_err(|reason| PyOSError::new_err(reason.to_string()))?;
    Ok(String::from_utf8(text).expect("a report is text"))
}

/// A plan for programs, as `phaze place --json` prints it.
#[pyfunction]
pub fn plan_value(plan: &str) -> PyResult<String> {
    let plan = plan_of(plan).map_err(refused)?;
    if let Err(violation) = phaze::plan::check::placement::check(&plan) {
        return Err(PyValueError::new_err(format!("plan.json: does not hold: {violation}")));
    }
    Ok(report::placement::value(&plan).to_string())
}

/// A plan's pipeline as a trace that ui.perfetto.dev opens; None where it has too many passes.
#[pyfunction]
pub fn timeline(plan: &str) -> PyResult<Option<String>> {
    Ok(report::timeline::trace(&plan_of(plan).map_err(refused)?))
}
