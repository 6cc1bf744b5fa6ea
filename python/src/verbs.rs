//! The verbs: each takes keywords as JSON and the texts of what has no file, and answers JSON.

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Map;
use serde_json::Value;

use phaze::ask;
use phaze::ask::Keywords;
use phaze::ask::Refusal;
use phaze::ask::calibrate::CalibrateRequest;
use phaze::ask::chip::ChipRequest;
use phaze::ask::estimate::EstimateRequest;
use phaze::ask::inspect::InspectRequest;
use phaze::ask::place::PlaceRequest;
use phaze::ask::place::Placed;
use phaze::ask::place::Placer;
use phaze::ask::place::RecomputeChoice;
use phaze::ask::schedule::Effort;
use phaze::ask::schedule::LayerRequest;
use phaze::ask::training::TrainingRequest;
use phaze::ask::validate::ValidateRequest;
use phaze::input;
use phaze::input::Conventions;
use phaze::input::InputError;
use phaze::input::chip_space::SpaceKind;
use phaze::input::request::RequestFile;
use phaze::input::source;
use phaze::report;
use phaze::report::part::Part;
use phaze::schedule::Limits;
use phaze::schedule::Solver;
use phaze::store::Start;
use phaze::store::files;
use phaze::store::journal::fingerprint;
use phaze::store::results;
use phaze::store::results::Shelf;

use super::refused;
use super::run::Overseer;
use super::run::in_threads;
use super::run::interruptible;
use super::run::wait_for_those_left_alone;
use super::table::DesignTable;

/// Files of runs, profiles and graphs may be as long.
const LARGEST_FILE: u64 = 256 << 20;

/// Texts that go by a name, for what a caller has in memory.
pub type Texts = HashMap<String, String>;

/// The text that `path` names: in memory, or a file.
fn reader(texts: &Texts, limit: u64) -> impl Fn(&Path) -> Result<String, InputError> {
    move |path| match path.to_str().and_then(|name| texts.get(name)) {
        Some(text) => Ok(text.clone()),
        None => files::read(path, limit),
    }
}

/// What is read as a page or two.
pub fn small(texts: &Texts) -> impl Fn(&Path) -> Result<String, InputError> {
    reader(texts, input::hf_config::LONGEST)
}

/// Keywords of a verb from their JSON.
pub fn keywords(verb: &str, given: &str) -> PyResult<Keywords> {
    let given: Map<String, Value> = serde_json::from_str(given)
        .map_err(|error| PyValueError::new_err(format!("{verb}: {error}")))?;
    Ok(Keywords::new(verb, given))
}

/// Runs work that nobody can stop before its end, in all threads.
pub fn answered<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> PyResult<T> {
    let overseer = Overseer::new(None)?;
    let answer = interruptible(py, &overseer, None, || in_threads(None, work))?;
    answer.map_err(PyValueError::new_err)?.map_err(refused)
}

/// What computes: the bytes of this module.
pub fn program(py: Python<'_>) -> PyResult<&'static str> {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let file: PathBuf = py.import("phaze._phaze")?.getattr("__file__")?.extract()?;
    Ok(PROGRAM.get_or_init(|| fingerprint(&file)))
}

/// What a search found: the bytes of its files.
#[pyclass(frozen, module = "phaze._phaze")]
pub struct RawSearch {
    outcome: Vec<u8>,
    designs: String,
    chips: bool,
}

impl RawSearch {
    /// What a search over designs found.
    pub fn of_designs(outcome: Vec<u8>, designs: String) -> Self {
        Self { outcome, designs, chips: false }
    }

    /// What a search over chips found.
    pub fn of_chips(outcome: Vec<u8>, boxes: String) -> Self {
        Self { outcome, designs: boxes, chips: true }
    }
}

#[pymethods]
impl RawSearch {
    /// The content of outcome.json.
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.outcome)
    }

    /// Whether whole chips were searched: there are boxes then, and no table of designs.
    #[getter]
    fn chips(&self) -> bool {
        self.chips
    }

    /// The content of designs.csv, or of boxes.csv where chips were searched.
    #[getter]
    fn designs<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.designs.as_bytes())
    }

    /// The designs, or the boxes, as a table.
    fn table(&self, py: Python<'_>) -> PyResult<DesignTable> {
        py.detach(|| DesignTable::read(&self.designs)).map_err(PyValueError::new_err)
    }
}

/// Where a search is kept.
struct Kept {
    directory: PathBuf,
    start: Start,
    program: &'static str,
}

impl Kept {
    fn shelf(&self) -> Shelf<'_> {
        Shelf { directory: &self.directory, start: self.start, program: self.program }
    }
}

/// Searches; `models` is a JSON list, `tell` is called with how far it is.
#[pyfunction]
#[pyo3(signature = (models, given, texts, *, request=None, out=None, resume=false, force=false, time_limit=None, threads=None, tell=None))]
pub fn search(
    py: Python<'_>,
    models: &str,
    given: &str,
    texts: Texts,
    request: Option<PathBuf>,
    out: Option<PathBuf>,
    resume: bool,
    force: bool,
    time_limit: Option<f64>,
    threads: Option<usize>,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<RawSearch> {
    let models: Vec<Value> = serde_json::from_str(models)
        .map_err(|error| PyValueError::new_err(format!("search: {error}")))?;
    let over = ask::search::request(&models, keywords("search", given)?);
    let over = over.map_err(|wrong| refused(wrong.into()))?;
    let overseer = Overseer::new(time_limit)?;
    let start = Start::of(resume, force);
    let kept = match out {
        None => None,
        Some(directory) => {
            wait_for_those_left_alone(py)?;
            Some(Kept { directory, start, program: program(py)? })
        }
    };
    let theirs = Arc::clone(&overseer);
    let answer = interruptible(py, &overseer, tell.as_ref(), move || {
        in_threads(threads, || searched(over, request.as_deref(), &texts, kept.as_ref(), &theirs))
    })?;
    answer.map_err(PyValueError::new_err)?.map_err(refused)
}

fn searched(
    over: RequestFile,
    request: Option<&Path>,
    texts: &Texts,
    kept: Option<&Kept>,
    overseer: &Overseer,
) -> Result<RawSearch, Refusal> {
    let (file, name) = match request {
        None => (over, "search".to_owned()),
        Some(path) => {
            let name = files::name(path);
            let below = RequestFile::read(&files::small(path)?, &name)?;
            (over.over(below.beside(path.parent().unwrap_or(Path::new("")))), name)
        }
    };
    if file.kind(&name)? == SpaceKind::Chips {
        let setup = input::request::ready_chips(&file, &name, &small(texts))?;
        let found = match kept {
            None => ask::chips::answer(&setup, (&(), false, ""), overseer)?,
            Some(kept) => results::search_chips(&setup, &kept.shelf(), overseer)?,
        };
        return Ok(RawSearch::of_chips(found.json(), found.boxes));
    }
    let setup = input::request::ready(&file.listing_all(&name)?, &name, &small(texts))?;
    let found = match kept {
        None => ask::search::answer(&setup, &(), overseer, |_, _, _| Ok(()))?,
        Some(kept) => results::search(&setup, &kept.shelf(), overseer)?,
    };
    Ok(RawSearch::of_designs(found.json(), found.designs))
}

/// The keywords of a search, each with the table of a request file that it is in.
#[pyfunction]
pub fn search_keys() -> Vec<(String, Option<String>)> {
    ask::search::tables().into_iter().collect()
}

/// Places a model: the answer for programs, and the plan where there is one.
#[pyfunction]
pub fn place(
    py: Python<'_>,
    model: &str,
    given: &str,
    texts: Texts,
) -> PyResult<(String, Option<String>)> {
    let request = PlaceRequest::read(model, keywords("place", given)?);
    let request = request.map_err(|wrong| refused(wrong.into()))?;
    answered(py, move || Ok(told(&Placer::new(&request, &small(&texts))?.answer()?)))
}

/// Places the layers of a profile, in the published artifact's format.
#[pyfunction]
pub fn place_profile(
    py: Python<'_>,
    profile: String,
    given: &str,
) -> PyResult<(String, Option<String>)> {
    let mut given = keywords("place", given)?;
    let times = [
        ("1f1b", phaze::plan::TimeModel::OneForwardOneBackward),
        ("published", phaze::plan::TimeModel::Published),
    ];
    let read = || {
        let recompute = given.word("recompute", &RecomputeChoice::NAMES)?;
        let time_model = given.word("time_model", &times)?;
        given.end()?;
        Ok((recompute, time_model))
    };
    let (recompute, time_model) = read().map_err(|wrong: InputError| refused(wrong.into()))?;
    answered(py, move || {
        let file = input::profile::profile(&profile, "profile")?;
        Ok(told(&ask::place::profile::place(&file, recompute, time_model)?))
    })
}

fn told(placed: &Placed) -> (String, Option<String>) {
    let plan = match placed {
        Placed::Plan(found) => {
            let mut text = serde_json::to_string_pretty(&found.plan).expect("a plan is plain data");
            text.push('\n');
            Some(text)
        }
        Placed::Nothing { .. } => None,
    };
    (placed.value().to_string(), plan)
}

/// Looks at a model: everything there is, as JSON.
#[pyfunction]
pub fn inspect(py: Python<'_>, model: String, given: &str, texts: Texts) -> PyResult<String> {
    let request = InspectRequest::read(keywords("inspect", given)?);
    let request = request.map_err(|wrong| refused(wrong.into()))?;
    answered(py, move || {
        let (found, _) = source::model(&model, &small(&texts))?;
        let mut json = Vec::new();
        report::inspect::json(&request.inspection(&found, &model)?, &mut json)
            .expect("memory takes what is written");
        Ok(String::from_utf8(json).expect("JSON is text"))
    })
}

/// A model layer by layer: the text of a phaze-model file.
#[pyfunction]
pub fn export(py: Python<'_>, model: String, texts: Texts) -> PyResult<String> {
    answered(py, move || Ok(input::model_file::text(&source::model(&model, &small(&texts))?.0)))
}

/// What is estimated.
enum What {
    Matmul(String, bool),
    Points(String),
    Model(String, TrainingRequest),
}

/// Estimates a matmul, points, or all operators of a model.
#[pyfunction]
pub fn estimate(py: Python<'_>, given: &str, texts: Texts) -> PyResult<String> {
    let mut given = keywords("estimate", given)?;
    let read = || -> Result<(EstimateRequest, What), Refusal> {
        let chip = ChipRequest::take(&mut given)?;
        let slack = given.take::<f64>("energy_slack")?.unwrap_or(0.0);
        let matmul: Option<String> = given.take("matmul")?;
        let points: Option<String> = given.take("jobs")?;
        let model: Option<String> = given.take("model")?;
        let one_core = given.switch("one_core")?;
        let training = TrainingRequest::take(&mut given)?;
        let published = training.published;
        let what = match (matmul, points, model) {
            (Some(matmul), None, None) => What::Matmul(matmul, one_core),
            (None, Some(points), None) => What::Points(points),
            (None, None, Some(model)) => What::Model(model, training),
            _ => {
                let message = "estimate: give one of matmul, jobs and model";
                return Err(Refusal::Options(message.into()));
            }
        };
        given.end()?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let slack = EstimateRequest::slack_of(slack, "energy_slack")?;
        Ok((EstimateRequest { chip, published, slack, threads }, what))
    };
    let (request, what) = read().map_err(refused)?;
    answered(py, move || {
        let read = small(&texts);
        Ok(match what {
            What::Matmul(text, one_core) => {
                request.matmul(&text, one_core, &read)?.answer.value().to_string()
            }
            What::Points(text) => {
                let jobs = request.jobs(&text, "jobs", &read)?;
                let done = std::sync::atomic::AtomicUsize::new(0);
                let answers = request.points(&jobs, "jobs", &done)?;
                Value::Array(answers.iter().map(report::estimate::MatmulAnswer::value).collect())
                    .to_string()
            }
            What::Model(name, training) => {
                request.model(&name, &training, &read)?.value()?.to_string()
            }
        })
    })
}

/// Schedules a layer of a model, or graphs that a user brings: one JSON object for each schedule.
#[pyfunction]
#[pyo3(signature = (model, graph, given, texts, *, time_limit=None))]
pub fn schedule(
    py: Python<'_>,
    model: Option<String>,
    graph: Option<String>,
    given: &str,
    texts: Texts,
    time_limit: Option<f64>,
) -> PyResult<Vec<String>> {
    let mut given = keywords("schedule", given)?;
    let read = || -> Result<_, InputError> {
        let solvers = [("exact", Solver::Exact), ("list", Solver::List)];
        let solver = given.word("solver", &solvers)?.unwrap_or(Solver::Exact);
        let nodes = given.take("node_limit")?.unwrap_or(Limits::DEFAULT.nodes);
        if let Some(model) = &model {
            return Ok((solver, nodes, Ok(LayerRequest::read(model, given)?)));
        }
        let rules = phaze::schedule::Rule::ALL.map(|known| (known.name(), known));
        let rule = given.word("rule", &rules)?;
        given.end()?;
        Ok((solver, nodes, Err(rule)))
    };
    let (solver, nodes, request) = read().map_err(|wrong| refused(wrong.into()))?;
    let overseer = Overseer::new(time_limit)?;
    let theirs = Arc::clone(&overseer);
    let answer = interruptible(py, &overseer, None, move || {
        in_threads(None, || {
            let stopper = || -> Option<Box<dyn Fn() -> bool + Sync>> {
                let overseer = Arc::clone(&theirs);
                Some(Box::new(move || overseer.is_over()))
            };
            let effort = Effort { solver, nodes, stopper: &stopper };
            let mut found = Vec::new();
            match request {
                Ok(layer) => {
                    layer.schedule::<Refusal>(&small(&texts), &effort, &mut |_, view| {
                        found.push(report::schedule::value(view).to_string());
                        Ok(())
                    })?;
                }
                Err(rule) => {
                    for mut own in input::graph::graphs(&graph.unwrap_or_default(), "graph", false)?
                    {
                        own.problem.rule = rule.unwrap_or(own.problem.rule);
                        ask::schedule::graph(&own, &effort, |view| {
                            found.push(report::schedule::value(view).to_string());
                            Ok::<(), Refusal>(())
                        })?;
                    }
                }
            }
            Ok(found)
        })
    })?;
    answer.map_err(PyValueError::new_err)?.map_err(refused)
}

/// Compares predictions with measured runs.
#[pyfunction]
pub fn validate(py: Python<'_>, runs: Vec<PathBuf>, given: &str, texts: Texts) -> PyResult<String> {
    let request = ValidateRequest::read(runs, keywords("validate", given)?);
    let request = request.map_err(|wrong| refused(wrong.into()))?;
    answered(py, move || Ok(request.answer(&reader(&texts, LARGEST_FILE))?.value().to_string()))
}

/// What was told, the hardware file, and the fitted scalars.
type Calibrated = (String, String, Vec<(String, u32)>);

/// Fits an accelerator's efficiency to measured runs: what was told, and the hardware file.
#[pyfunction]
pub fn calibrate(
    py: Python<'_>,
    runs: Vec<PathBuf>,
    given: &str,
    texts: Texts,
) -> PyResult<Calibrated> {
    let request = CalibrateRequest::read(runs, keywords("calibrate", given)?);
    let request = request.map_err(|wrong| refused(wrong.into()))?;
    answered(py, move || {
        let found = request.answer(&reader(&texts, LARGEST_FILE))?;
        let scalars = found.fit.fitted.iter();
        let scalars = scalars.map(|one| (one.scalar.name().to_owned(), one.value)).collect();
        Ok((found.told, found.hardware, scalars))
    })
}

/// The built-in models, as JSON.
#[pyfunction]
pub fn models(py: Python<'_>) -> PyResult<String> {
    answered(py, || {
        let names = input::model_names();
        let built_in: Result<Vec<_>, _> = names.iter().map(|name| input::model(name)).collect();
        let mut json = Vec::new();
        report::models::json(&built_in?, &mut json).expect("memory takes what is written");
        Ok(String::from_utf8(json).expect("JSON is text"))
    })
}

/// The names of the built-in accelerators.
#[pyfunction]
pub fn design_names() -> Vec<String> {
    input::hardware::preset_names()
}

/// One accelerator with its knobs turned, as JSON.
#[pyfunction]
pub fn designs(py: Python<'_>, given: &str, texts: Texts) -> PyResult<String> {
    let mut given = keywords("designs", given)?;
    let read = || {
        let chip = ChipRequest::take(&mut given)?;
        given.end()?;
        Ok(chip)
    };
    let request = read().map_err(|wrong: InputError| refused(wrong.into()))?;
    answered(py, move || {
        let (hardware, chip) = request.resolve(&Conventions::OURS, &small(&texts))?;
        let part = Part {
            design: &hardware.design,
            physics: &hardware.physics,
            making: hardware.making.as_ref(),
            published: &hardware.published,
        };
        Ok(report::design::value(&chip, &hardware.name, &part).to_string())
    })
}
