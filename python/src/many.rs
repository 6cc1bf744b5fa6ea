//! Many searches: sweeps over keys of a request, and parts of a space that are merged.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use phaze::ask;
use phaze::ask::Refusal;
use phaze::ask::Spelling;
use phaze::input;
use phaze::input::chip_space::SpaceKind;
use phaze::input::sweep::Sweep;
use phaze::report::sweep::csv;
use phaze::search::Part;
use phaze::store::Start;
use phaze::store::results::Shelf;
use phaze::store::shards;
use phaze::store::shards::RoundName;
use phaze::store::shards::chips::ChipTask;
use phaze::store::shards::merge::Merged;
use phaze::store::sweeps::ReadySweep;

use super::refused;
use super::run::Overseer;
use super::run::in_threads;
use super::run::interruptible;
use super::run::wait_for_those_left_alone;
use super::verbs::RawSearch;
use super::verbs::Texts;
use super::verbs::keywords;
use super::verbs::program;
use super::verbs::small;

/// The models of a call.
fn models_of(verb: &str, models: &str) -> PyResult<Vec<Value>> {
    serde_json::from_str(models).map_err(|error| PyValueError::new_err(format!("{verb}: {error}")))
}

/// What is swept: a file, or a request and the values that its keys take.
enum Swept {
    File(PathBuf),
    Keys(Sweep, Texts),
}

impl Swept {
    fn ready(self, out: Option<&Path>) -> Result<ReadySweep, Refusal> {
        match self {
            Self::File(path) => ReadySweep::read(&path, out),
            Self::Keys(sweep, texts) => {
                let Some(out) = out else {
                    let message = "sweep: out is missing: name a directory for its results";
                    return Err(Refusal::Options(message.into()));
                };
                ReadySweep::of("sweep".into(), sweep, out.to_path_buf(), &small(&texts))
            }
        }
    }
}

/// Where a sweep is kept, its table, and the folders of its searches.
type SweptTo = (PathBuf, String, Vec<String>);

/// Searches every combination of some keys, unless its answer is there, and writes table and page.
#[pyfunction]
#[pyo3(signature = (file, models, given, vary, texts, *, out=None, force=false, time_limit=None, threads=None, tell=None))]
pub fn sweep(
    py: Python<'_>,
    file: Option<PathBuf>,
    models: &str,
    given: &str,
    vary: &str,
    texts: Texts,
    out: Option<PathBuf>,
    force: bool,
    time_limit: Option<f64>,
    threads: Option<usize>,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<SweptTo> {
    let swept = if let Some(file) = file {
        Swept::File(file)
    } else {
        let (given, vary) = (keywords("sweep", given)?, keywords("sweep", vary)?);
        let sweep = ask::search::sweep(&models_of("sweep", models)?, given, vary);
        Swept::Keys(sweep.map_err(|wrong| refused(wrong.into()))?, texts)
    };
    wait_for_those_left_alone(py)?;
    let program = program(py)?;
    let overseer = Overseer::new(time_limit)?;
    let theirs = Arc::clone(&overseer);
    let found = interruptible(py, &overseer, tell.as_ref(), move || {
        in_threads(threads, || {
            let ready = swept.ready(out.as_deref())?;
            searched_each(&ready, program, force, &theirs)?;
            let table = ready.table()?;
            ready.write(&table)?;
            let mut text = Vec::new();
            csv::write(&table, &mut text).expect("memory takes what is written");
            let folders = (0..ready.count()).map(|number| ready.folder(number)).collect();
            let text = String::from_utf8(text).expect("a table is text");
            Ok((ready.directory().to_path_buf(), text, folders))
        })
    })?;
    found.map_err(PyValueError::new_err)?.map_err(refused)
}

fn searched_each(
    sweep: &ReadySweep,
    program: &str,
    force: bool,
    overseer: &Overseer,
) -> Result<(), Refusal> {
    let count = sweep.count();
    for number in 0..count {
        if !force && sweep.is_done(number)? {
            continue;
        }
        overseer.next(&format!("{} of {count}, ", number + 1));
        let start = if force { Start::Over } else { Start::Resume };
        if sweep.search(number, (start, program), overseer)? {
            // Nobody waits for the rest: the exception was raised already.
            break;
        }
    }
    Ok(())
}

/// Searches a part of a space into its directory: how many designs it holds, and how many of them were
/// evaluated.
#[pyfunction]
#[pyo3(signature = (models, given, texts, part, out, *, share=None, round=None, after=None, resume=false, force=false, threads=None, tell=None))]
pub fn shard(
    py: Python<'_>,
    models: &str,
    given: &str,
    texts: Texts,
    part: &str,
    out: PathBuf,
    share: Option<PathBuf>,
    round: Option<&str>,
    after: Option<Vec<PathBuf>>,
    resume: bool,
    force: bool,
    threads: Option<usize>,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<(usize, usize)> {
    let request = ask::search::request(&models_of("shard", models)?, keywords("shard", given)?);
    let request = request.and_then(|request| request.listing_all("shard"));
    let request = request.map_err(|wrong| refused(wrong.into()))?;
    let part: Part =
        part.parse().map_err(|wrong| PyValueError::new_err(format!("part: {wrong}")))?;
    let round = match round {
        None => None,
        Some(word) => Some(
            RoundName::ALL.into_iter().find(|round| round.word() == word).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "round_: `{word}`: the rounds are alone, together and near"
                ))
            })?,
        ),
    };
    let start = Start::of(resume, force);
    wait_for_those_left_alone(py)?;
    let program = program(py)?;
    let overseer = Overseer::new(None)?;
    let theirs = Arc::clone(&overseer);
    let found = interruptible(py, &overseer, tell.as_ref(), move || {
        in_threads(threads, || {
            let after = after.unwrap_or_default();
            let words = (program, Spelling::Keywords);
            if request.kind("shard")? == SpaceKind::Chips {
                let setup = input::request::ready_chips(&request, "shard", &small(&texts))?;
                let task = ChipTask::of(&setup, part, (round, &after), words)?;
                let shelf = Shelf { directory: &out, start, program };
                let to = (&shelf, share.as_deref());
                let end = shards::chips::search(&setup, &task, to, &*theirs)?;
                let chips = |chips: u128| usize::try_from(chips).unwrap_or(usize::MAX);
                return Ok(end.map(|end| (chips(end.chips), end.evaluated)));
            }
            let setup = input::request::ready(&request, "shard", &small(&texts))?;
            let task = shards::Task::of(&setup, part, (round, &after), words)?;
            let shelf = Shelf { directory: &out, start, program };
            let survey = shards::search(&setup, &task, (&shelf, share.as_deref()), &*theirs)?;
            let survey = survey.map(|survey| {
                (survey.designs, survey.walks.iter().map(|walk| walk.evaluated).sum())
            });
            Ok(survey)
        })
    })?;
    whole(found.map_err(PyValueError::new_err)?.map_err(refused)?)
}

/// Joins the shards of all parts of a space into the answer of the whole, written to a directory.
#[pyfunction]
#[pyo3(signature = (shards, out, *, force=false, threads=None, tell=None))]
pub fn merge(
    py: Python<'_>,
    shards: Vec<PathBuf>,
    out: PathBuf,
    force: bool,
    threads: Option<usize>,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<RawSearch> {
    wait_for_those_left_alone(py)?;
    let program = program(py)?;
    let overseer = Overseer::new(None)?;
    let theirs = Arc::clone(&overseer);
    let found = interruptible(py, &overseer, tell.as_ref(), move || {
        in_threads(threads, || {
            let shelf = Shelf { directory: &out, start: Start::of(false, force), program };
            shards::merge::merge(&shards, &shelf, &*theirs)
        })
    })?;
    let found = whole(found.map_err(PyValueError::new_err)?.map_err(refused)?)?;
    Ok(match found {
        Merged::Designs(found) => RawSearch::of_designs(found.json(), found.designs),
        Merged::Chips(found) => RawSearch::of_chips(found.json(), found.boxes),
    })
}

/// What was ended before its end is only ever so because of Ctrl-C, whose exception was raised before.
fn whole<T>(found: Option<T>) -> PyResult<T> {
    found.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
}
