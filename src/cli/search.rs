//! `phaze search`: the best chip and the best way to train on it, with proof.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::files;
use super::journal::Journal;
use super::journal::Start;
use super::model_args;
use super::watch::Watch;
use crate::compare;
use crate::compare::References;
use crate::input;
use crate::input::hardware;
use crate::input::request::ModelEntry;
use crate::input::request::RequestFile;
use crate::input::space::RawSpace;
use crate::report;
use crate::search;
use crate::search::ModelRequest;
use crate::search::Outcome;
use crate::search::Setup;

/// Request files are a page long; this is a thousand times that.
const LARGEST_FILE: u64 = 4 << 20;

/// Find the best accelerator of a design space and the best way to train on it, with proof.
///
/// Without arguments: GPT2-XL on 1,024 accelerators over the published space.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// A request file (`--example` prints a commented one); options below override it
    request: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
    /// Where results are written [default: results/MODEL]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Go on where an interrupted search into the same directory stopped
    #[arg(long)]
    resume: bool,
    /// Stop after this long and report the best so far, marked as unproven
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: Option<u64>,
    /// Threads to use [default: all cores]; the answer does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Print the outcome as JSON instead of text
    #[arg(long)]
    json: bool,
    /// Draw the Pareto front on the terminal as well
    #[arg(long)]
    plot: bool,
    /// Print a commented request file and stop
    #[arg(long, exclusive = true)]
    example: bool,
    /// Print the JSON schema of request files, for editors, and stop
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// The options that lie over a request file.
#[derive(ClapArgs, Default)]
#[command(next_help_heading = "Request")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Asked {
    /// A built-in model or the path of a config.json; repeat for several
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Tokens in a sequence, for every model [default: the most that it was made for]
    #[arg(long, value_name = "TOKENS")]
    seq: Option<u64>,
    /// Accelerators at hand [default: 1024]
    #[arg(long, value_name = "N")]
    devices: Option<u64>,
    /// Sequences in a batch [default: 4096]
    #[arg(long, value_name = "N")]
    global_batch: Option<u64>,
    /// Micro-batch sizes to choose from [default: 1,2,4,8]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    micro_batch: Option<Vec<u64>>,
    /// Tensor-parallel widths to choose from [default: 1,2,4,8]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    tensor_parallel: Option<Vec<u64>>,
    /// What may be computed again: none, full, stage, or auto for all [default: auto]
    #[arg(long, value_name = "HOW,…", value_delimiter = ',')]
    recompute: Option<Vec<String>>,
    /// adam-mixed, adam-mixed-16 or sgd [default: adam-mixed]
    #[arg(long, value_name = "NAME")]
    optimizer: Option<String>,
    /// stored or recomputed [default: recomputed]
    #[arg(long, value_name = "HOW")]
    attention: Option<String>,
    /// Divide norms, dropouts and residuals along the sequence where devices share a layer
    #[arg(long)]
    sequence_parallel: bool,
    /// 1f1b or published [default: 1f1b]
    #[arg(long, value_name = "MODEL")]
    time_model: Option<String>,
    /// own-kind or alone: what a spread operator leaves to others [default: own-kind]
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// The published constants, vector costs, rule, time model, optimizer and attention
    #[arg(long)]
    published: bool,
    /// The physics of every design: built-in hardware or a hardware file [default: tpuv4-like]
    #[arg(long, value_name = "NAME|FILE")]
    hardware: Option<String>,
    /// throughput, throughput-per-area or energy-per-token [default: throughput]
    #[arg(long, value_name = "GOAL")]
    objective: Option<String>,
    /// How several models become one number: geomean, mean or min-regret [default: geomean]
    #[arg(long, value_name = "HOW")]
    combine: Option<String>,
    /// Find the Pareto front over throughput, area and energy exactly
    #[arg(long)]
    pareto: bool,
    /// Find the N best designs exactly
    #[arg(long, value_name = "N")]
    top: Option<u64>,
    /// Evaluate every design, prune nothing
    #[arg(long)]
    exhaustive: bool,
    /// Leave out designs whose devices draw more than this on average
    #[arg(long, value_name = "WATTS")]
    power_cap: Option<f64>,
    /// Sizes of off-chip memory in GiB [default: 32,64,80]
    #[arg(long, value_name = "GIB,…")]
    hbm: Option<String>,
    /// Fix one knob, as width=128; repeat for several
    #[arg(long, value_name = "KNOB=VALUE")]
    fix: Vec<String>,
    /// Change one knob, as width=32,64 or depth=2..64 (powers of two); repeat for several
    #[arg(long, value_name = "KNOB=VALUES")]
    space: Vec<String>,
}

impl Args {
    /// Searches, writes the files of the result, and prints it.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let mut out = std::io::stdout().lock();
        if self.example || self.schema {
            let text = if self.example { input::request::EXAMPLE } else { input::request::SCHEMA };
            out.write_all(text.as_bytes())?;
            return Ok(Exit::Done);
        }
        drop(out);
        let setup = self.setup()?;
        let directory = self.directory(&setup);
        in_threads(self.threads, || {
            let searched = searched(&setup, &directory, self.start(), self.time_limit)?;
            let Some(outcome) = searched else { return Ok(Exit::Interrupted) };
            self.show(&outcome, &directory)?;
            Ok(if outcome.winner.is_some() { Exit::Done } else { Exit::Negative })
        })
    }

    fn start(&self) -> Start {
        if self.resume { Start::Resume } else { Start::Anew }
    }

    fn setup(&self) -> Result<Setup, Refusal> {
        let mut request = self.asked.over_file(self.request.as_deref())?;
        if request.file.model.is_empty() {
            request.file.model =
                vec![ModelEntry { name: "gpt2-xl".into(), sequence: self.asked.seq, weight: None }];
        }
        request.ready()
    }

    fn directory(&self, setup: &Setup) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let plain = |name: &str| {
                let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy());
                stem.unwrap_or_default()
                    .replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '.', "_")
            };
            let names: Vec<String> =
                setup.request.models.iter().map(|model| plain(&model.name)).collect();
            Path::new("results").join(names.join("+"))
        })
    }

    fn show(&self, outcome: &Outcome, directory: &Path) -> Result<(), Refusal> {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.json {
            serde_json::to_writer(&mut out, outcome).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            report::outcome::text(outcome, &mut out)?;
            let place = directory.display();
            writeln!(out, "\nWritten to {place}: outcome.json, designs.csv, report.html")?;
        }
        out.flush()?;
        drop(out);
        if self.plot { super::report::plot(directory) } else { Ok(()) }
    }
}

/// A request file with the name that errors refer to.
pub struct Named {
    pub file: RequestFile,
    pub name: String,
}

impl Asked {
    /// These options over the file at `path`, where there is one.
    pub fn over_file(&self, path: Option<&Path>) -> Result<Named, Refusal> {
        let options = self.as_file()?;
        let Some(path) = path else {
            return Ok(Named { file: options, name: "command line".into() });
        };
        let name = files::name(path);
        let below = RequestFile::read(&files::read(path, LARGEST_FILE)?, &name)?;
        Ok(Named { file: options.over(below), name })
    }

    fn as_file(&self) -> Result<RequestFile, Refusal> {
        let mut file = RequestFile::default();
        let entry =
            |name: &String| ModelEntry { name: name.clone(), sequence: self.seq, weight: None };
        file.model = self.model.iter().map(entry).collect();
        file.published = self.published.then_some(true);
        file.hardware.clone_from(&self.hardware);
        let job = &mut file.job;
        job.devices = self.devices;
        job.global_batch = self.global_batch;
        job.micro_batches.clone_from(&self.micro_batch);
        job.tensor_parallel.clone_from(&self.tensor_parallel);
        job.recompute.clone_from(&self.recompute);
        job.optimizer.clone_from(&self.optimizer);
        job.attention.clone_from(&self.attention);
        job.sequence_parallel = self.sequence_parallel.then_some(true);
        job.time_model.clone_from(&self.time_model);
        job.rule.clone_from(&self.rule);
        let search = &mut file.search;
        search.objective.clone_from(&self.objective);
        search.combine.clone_from(&self.combine);
        search.top = self.top;
        search.pareto = self.pareto.then_some(true);
        search.exhaustive = self.exhaustive.then_some(true);
        search.power_cap_w = self.power_cap;
        if let Some(sizes) = &self.hbm {
            file.space = knob("--hbm", &format!("hbm_gib={sizes}"))?;
        }
        for (option, settings) in [("--space", &self.space), ("--fix", &self.fix)] {
            for setting in settings {
                file.space = knob(option, setting)?.over(file.space);
            }
        }
        Ok(file)
    }
}

/// One knob of a space as an option holds it: `width=128`, `width=32,64`, `width=2..256`.
fn knob(option: &str, setting: &str) -> Result<RawSpace, Refusal> {
    let Some((name, values)) = setting.split_once('=') else {
        return Err(Refusal::Options(format!(
            "{option} {setting}: no value; write it as width=128, width=32,64 or width=2..256"
        )));
    };
    let values = match values.split_once("..") {
        Some((from, to)) => format!("{{ from = {from}, to = {to} }}"),
        None if values == "as-width" => "\"as-width\"".into(),
        None => format!("[{values}]"),
    };
    let text = format!("{} = {values}\n", name.trim());
    Ok(RawSpace::read(&text, &format!("{option} {setting}"))?)
}

impl Named {
    /// The whole question, its models and hardware read.
    pub fn ready(&self) -> Result<Setup, Refusal> {
        let mut request = self.file.complete(&self.name)?;
        let mut models = Vec::new();
        for entry in &self.file.model {
            let (model, text) = model_args::load_with_text(&entry.name)?;
            request.models.push(ModelRequest {
                name: entry.name.clone(),
                text,
                sequence: entry.sequence.unwrap_or(model.spec.max_sequence),
                weight: entry.weight.unwrap_or(1.0),
            });
            models.push(model);
        }
        let name = request.hardware.name.clone();
        let found = if hardware::preset_names().contains(&name) {
            hardware::preset(&name, "hardware")?
        } else {
            let path = Path::new(&name);
            let text = files::read(path, LARGEST_FILE)?;
            let found = hardware::hardware(&text, &files::name(path))?;
            request.hardware.text = Some(text);
            found
        };
        Setup::new(request, models, found.physics)
            .map_err(|reason| Refusal::Options(format!("{}: {reason}", self.name)))
    }
}

/// Searches and writes all files of the result; `None` where the user interrupted it.
pub fn searched(
    setup: &Setup,
    directory: &Path,
    start: Start,
    time_limit: Option<u64>,
) -> Result<Option<Outcome>, Refusal> {
    let unwritable =
        |reason| Refusal::Unwritable { place: directory.display().to_string(), reason };
    fs::create_dir_all(directory).map_err(unwritable)?;
    let header = serde_json::json!({
        "phaze": env!("CARGO_PKG_VERSION"),
        "request": setup.request,
    });
    let journal = Journal::open(directory, &header.to_string(), start)?;
    let watch = Watch::new(time_limit);
    let survey = search::survey(setup, &journal, &watch);
    watch.finish();
    journal.healthy()?;
    if watch.interrupted() {
        eprintln!(
            "interrupted; everything evaluated so far is kept: repeat the command with --resume"
        );
        return Ok(None);
    }
    let stopped_by = watch.timed_out().then_some("the time limit");
    let outcome = compare::outcome(setup, &survey, &references()?, stopped_by, &watch);
    let mut json = serde_json::to_vec(&outcome).expect("an outcome has only string keys");
    json.push(b'\n');
    let mut designs = Vec::new();
    report::designs_csv::write(setup, &survey, &mut designs)?;
    files::write(&directory.join("designs.csv"), &designs)?;
    files::write(&directory.join("outcome.json"), &json)?;
    super::report::write(directory, None)?;
    journal.forget()?;
    Ok(Some(outcome))
}

/// The accelerators that winners are compared with.
pub fn references() -> Result<References, Refusal> {
    let real = hardware::preset("tpuv4", "baseline")?;
    Ok(References {
        tpuv4_like: hardware::preset("tpuv4-like", "baseline")?.design,
        tpuv4: (real.design, real.physics),
    })
}

/// Runs `work` on so many threads.
pub fn in_threads<T: Send>(
    threads: Option<u64>,
    work: impl FnOnce() -> Result<T, Refusal> + Send,
) -> Result<T, Refusal> {
    let n_threads = threads.map_or(0, |n| usize::try_from(n).unwrap_or(0));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
    let pool = pool.map_err(|reason| Refusal::Options(format!("--threads: {reason}")))?;
    pool.install(work)
}
