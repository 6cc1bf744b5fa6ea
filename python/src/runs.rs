//! Runs: planned, started, checked.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use phaze::ask::Keywords;
use phaze::ask::Refusal;
use phaze::ask::check;
use phaze::ask::plan as planning;
use phaze::ask::plan::Context;
use phaze::ask::plan::OwnRequest;
use phaze::ask::plan::PlanAnswer;
use phaze::ask::plan::PlanRequest;
use phaze::ask::plan::Work;
use phaze::ask::plan::saved;
use phaze::input::launched;
use phaze::input::source::no_files;
use phaze::report;
use phaze::search::Observer;
use phaze::store::files;

use super::refused;
use super::run::Overseer;
use super::run::in_threads;
use super::run::interruptible;
use super::saved::plan_of;
use super::verbs::Texts;
use super::verbs::answered;
use super::verbs::keywords;
use super::verbs::small;

/// What errors and commands call the model of a run of a user's own.
const OWN_MODEL: &str = "model.json";

/// What is asked of a run: the model, keywords, texts that have no file, and a run of a user's own.
struct Asked {
    model: String,
    given: Keywords,
    texts: Texts,
    own: Option<PathBuf>,
}

impl Asked {
    /// The request, the texts that it names, and what is said of a user's own run.
    fn request(self) -> Result<(PlanRequest, Texts, Vec<String>), Refusal> {
        let Self { model, given, mut texts, own } = self;
        let asked = PlanRequest::from_keywords(&model, given)?;
        let Some(path) = own else { return Ok((asked, texts, Vec::new())) };
        let name = files::name(&path);
        let run = launched::read(&files::small(&path)?, &name)?;
        let OwnRequest { request, model } = planning::own_request(&run, asked, (&name, OWN_MODEL))?;
        if let Some(text) = model {
            texts.insert(OWN_MODEL.to_owned(), text);
        }
        let mut said = vec![format!("{name}: {} runs {}", run.target, request.strategy)];
        said.extend(run.remarks);
        Ok((request, texts, said))
    }
}

fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What is told of a run: the answer for programs, its files by name, and what is said of a user's own.
type Planned = (String, Vec<(String, String)>, Vec<String>);

/// Plans a run: what `phaze plan --json` prints, and the files of `--out`.
#[pyfunction]
#[pyo3(signature = (model, given, texts, *, own=None, tell=None))]
pub fn plan(
    py: Python<'_>,
    model: String,
    given: &str,
    texts: Texts,
    own: Option<PathBuf>,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<Planned> {
    let asked = Asked { model, given: keywords("plan", given)?, texts, own };
    let overseer = Overseer::new(None)?;
    let theirs = Arc::clone(&overseer);
    let found = interruptible(py, &overseer, tell.as_ref(), move || {
        in_threads(None, || -> Result<Planned, Refusal> {
            let (request, texts, said) = asked.request()?;
            let read = small(&texts);
            let begins = |what: &str| theirs.begins(what);
            let context = Context::new(&read);
            let work = Work { context: &context, n_threads: n_threads(), begins: &begins };
            let found = planning::whole(&request, work)?;
            Ok((found.value.to_string(), found.files, said))
        })
    })?;
    found.map_err(PyValueError::new_err)?.map_err(refused)
}

/// The files that start a run with the framework that `for` names, as JSON.
#[pyfunction]
#[pyo3(signature = (model, given, texts, *, own=None))]
pub fn launch(
    py: Python<'_>,
    model: String,
    given: &str,
    texts: Texts,
    own: Option<PathBuf>,
) -> PyResult<String> {
    let asked = Asked { model, given: keywords("plan", given)?, texts, own };
    answered(py, move || {
        let (request, texts, _) = asked.request()?;
        let read = small(&texts);
        let context = Context::new(&read);
        let work = Work { context: &context, n_threads: n_threads(), begins: &|_| () };
        let (request, _) = planning::settled(&request, work)?;
        match planning::advise(&request, &context)? {
            PlanAnswer::Found(advice) => Ok(report::advice::launch_value(&advice).to_string()),
            PlanAnswer::Infeasible { reason, .. } => {
                let message = format!("plan: nothing fits: {reason}");
                Err(Refusal::Options(message))
            }
        }
    })
}

/// The first false claim of the files of a plan, by name.
#[pyfunction]
#[pyo3(signature = (files, *, deep=false))]
pub fn check_run(
    py: Python<'_>,
    files: HashMap<String, String>,
    deep: bool,
) -> PyResult<Option<String>> {
    answered(py, move || {
        let read = |name: &str| {
            let text = files.get(name).cloned();
            text.map_or_else(|| no_files(Path::new(name)), Ok)
        };
        let plan = plan_of(&read(saved::PLAN)?)?;
        if let Some(lie) = check::plan(saved::PLAN, &plan, deep)? {
            return Ok(Some(lie));
        }
        let verdict = saved::judge(&plan, &read, deep.then(n_threads))?;
        Ok(verdict.err().map(|lie| lie.to_string()))
    })
}

/// The Chakra traces of a plan: bytes by device.
#[pyfunction]
pub fn chakra(py: Python<'_>, plan: String) -> PyResult<Vec<(u64, Bound<'_, PyBytes>)>> {
    let traces = answered(py, move || {
        let traces = report::chakra::traces(&plan_of(&plan)?);
        traces.map_err(|reason| Refusal::Options(format!("chakra: {reason}")))
    })?;
    Ok(traces.iter().map(|trace| (trace.device, PyBytes::new(py, &trace.bytes))).collect())
}
