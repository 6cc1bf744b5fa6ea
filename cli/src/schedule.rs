//! `phaze schedule`: the fastest order of one layer's operators.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use clap::Args as ClapArgs;
use clap::ValueEnum;

use super::DesignArgs;
use super::Exit;
use super::Refusal;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use super::model_args::ModelOptions;
use phaze::ask::schedule;
use phaze::ask::schedule::Effort;
use phaze::ask::schedule::LayerRequest;
use phaze::ask::schedule::Pass;
use phaze::input::graph;
use phaze::input::graph::UserGraph;
use phaze::report::schedule::View;
use phaze::report::schedule::text;
use phaze::report::schedule::value;
use phaze::report::trace;
use phaze::schedule::Limits;
use phaze::schedule::Rule;
use phaze::schedule::Solver;
use phaze::store::files;

/// A graph of a million operators takes less.
const LARGEST_FILE: u64 = 1 << 30;

/// How long the integer program of one block may take, if no time limit is given.
const INTEGER_PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// The longest that it gets: its solvers' clocks overflow.
const LONGEST_INTEGER_PROGRAM: Duration = Duration::from_secs(365 * 24 * 3600);

/// Find the fastest schedule of a layer's operators on tensor and vector cores, with proof.
#[derive(ClapArgs)]
#[command(after_help = "A schedule without proof (a limit was reached) is printed with its gap, \
                        and the exit status is 0.")]
pub struct Args {
    /// A built-in model (`phaze models` lists them) or the path of a Hugging Face config.json
    #[arg(required_unless_present = "graph", conflicts_with = "graph")]
    model: Option<String>,
    #[command(flatten)]
    options: ModelOptions,
    /// Which layer: `embedding`, `transformer`, `head`, or `layer` for the most frequent
    #[arg(long, value_name = "LAYER", default_value = "layer", conflicts_with = "graph")]
    layer: String,
    /// Which pass [default: both]
    #[arg(long, value_enum, conflicts_with = "graph")]
    pass: Option<PassName>,
    /// Sequences that pass through the layer together
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "graph",
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_MICRO_BATCH))]
    micro_batch: u64,
    /// Devices that share the layer
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "graph",
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    tensor_parallel: u64,
    /// The constants, vector costs, attention and rule of the published evaluation
    #[arg(long, conflicts_with = "graph")]
    published: bool,
    /// Your own operator graph instead of a model: .json holds one, .jsonl one per line, `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// What a spread operator leaves to others [default: own-kind, alone with --published, or what
    /// a graph says]
    #[arg(long, value_enum)]
    rule: Option<RuleName>,
    /// How to find it
    #[arg(long, value_enum, default_value = "exact")]
    solver: SolverName,
    /// Stop each schedule after this long and print the best so far, marked as unproven
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Stop after so many partial schedules of one block's search, likewise
    #[arg(long, value_name = "NODES", default_value_t = Limits::DEFAULT.nodes)]
    node_limit: u64,
    /// Print JSON, one line per schedule
    #[arg(long)]
    json: bool,
    /// Write the schedule as a trace that ui.perfetto.dev and `chrome://tracing` open
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    design: DesignArgs,
}

/// The passes by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PassName {
    /// From input to loss
    Forward,
    /// From loss to gradients
    Backward,
}

impl From<PassName> for Pass {
    fn from(name: PassName) -> Self {
        match name {
            PassName::Forward => Self::Forward,
            PassName::Backward => Self::Backward,
        }
    }
}

/// The solvers by name.
#[derive(Clone, Copy, ValueEnum)]
enum SolverName {
    /// Bounds, list schedules and search, with proof
    Exact,
    /// The published integer program
    Ilp,
    /// List schedules only
    List,
}

/// The rules by name.
#[derive(Clone, Copy, ValueEnum)]
enum RuleName {
    /// Nothing but collectives runs beside a spread operator
    Alone,
    /// Kinds of core that a spread operator does not use stay free
    OwnKind,
}

impl From<RuleName> for Rule {
    fn from(name: RuleName) -> Self {
        match name {
            RuleName::Alone => Self::Alone,
            RuleName::OwnKind => Self::OwnKind,
        }
    }
}

/// A limit of time, in seconds and fractions of them.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err("give a number of seconds, 0 or more".to_owned());
    }
    // Longer than any clock counts is no limit.
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        match (&self.graph, &self.model) {
            (Some(path), _) => self.graphs(path, &mut out)?,
            (None, Some(model)) => self.layer_of(model, &mut out)?,
            (None, None) => return Err(Refusal::Options("name a model or a --graph".into())),
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn solver(&self) -> Solver {
        match self.solver {
            SolverName::Exact => Solver::Exact,
            SolverName::List => Solver::List,
            SolverName::Ilp => {
                let limit = self.time_limit.unwrap_or(INTEGER_PROGRAM_LIMIT);
                Solver::Ilp { seconds: limit.min(LONGEST_INTEGER_PROGRAM).as_secs_f64() }
            }
        }
    }

    /// The integer program may take forever, so it always has a limit.
    fn time_limit(&self) -> Option<Duration> {
        match self.solver {
            SolverName::Ilp => Some(self.time_limit.unwrap_or(INTEGER_PROGRAM_LIMIT)),
            SolverName::Exact | SolverName::List => self.time_limit,
        }
    }

    /// What says whether a schedule that begins now must end.
    fn stopper(&self) -> Option<Box<dyn Fn() -> bool + Sync>> {
        let deadline = self.time_limit().and_then(|limit| Instant::now().checked_add(limit))?;
        Some(Box::new(move || Instant::now() >= deadline))
    }

    /// Schedules the graphs of a file.
    fn graphs(&self, path: &Path, out: &mut dyn Write) -> Result<(), Refusal> {
        if self.design.given() {
            let message = "a --graph brings its own cores and times; leave out the design";
            return Err(Refusal::Options(message.into()));
        }
        let content = files::read(path, LARGEST_FILE)?;
        let graphs = graph::graphs(&content, &files::name(path), holds_lines(path, &content))?;
        if self.trace.is_some() && graphs.len() != 1 {
            let message =
                format!("--trace writes one schedule, and there are {} graphs", graphs.len());
            return Err(Refusal::Options(message));
        }
        for mut graph in graphs {
            graph.problem.rule = self.rule.map_or(graph.problem.rule, Rule::from);
            self.graph(&graph, out)?;
        }
        Ok(())
    }

    fn graph(&self, graph: &UserGraph, out: &mut dyn Write) -> Result<(), Refusal> {
        let stopper = || self.stopper();
        let effort = Effort { solver: self.solver(), nodes: self.node_limit, stopper: &stopper };
        schedule::graph(graph, &effort, |view| {
            if let Some(path) = &self.trace {
                // The format counts microseconds; one unit of the graph is drawn as one of them.
                let events = trace::events(view, 1, view.number);
                files::write(path, trace::whole(&events).to_string().as_bytes())?;
            }
            self.print(view, out)
        })
    }

    fn print(&self, view: &View, out: &mut dyn Write) -> Result<(), Refusal> {
        if self.json {
            writeln!(out, "{}", value(view))?;
        } else {
            text(view, columns(), out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// Schedules one layer of a model.
    fn layer_of(&self, name: &str, out: &mut dyn Write) -> Result<(), Refusal> {
        let request = LayerRequest {
            model: name.to_owned(),
            chip: self.design.request()?,
            training: self.options.training(self.micro_batch, self.tensor_parallel, self.published),
            layer: self.layer.clone(),
            pass: self.pass.map(Pass::from),
            rule: self.rule.map(Rule::from),
        };
        let stopper = || self.stopper();
        let effort = Effort { solver: self.solver(), nodes: self.node_limit, stopper: &stopper };
        // Nothing is printed before the trace is safe.
        let (mut events, mut page) = (Vec::new(), Vec::new());
        request.schedule::<Refusal>(&files::small, &effort, &mut |pass, view| {
            // Each pass has its own group of rows.
            let first_group = if pass == Pass::Forward { 1 } else { 4 };
            events.extend(trace::events(view, first_group, &|ticks| ticks as f64 / 1e6));
            self.print(view, &mut page)
        })?;
        if let Some(path) = &self.trace {
            files::write(path, trace::whole(&events).to_string().as_bytes())?;
        }
        out.write_all(&page)?;
        Ok(())
    }
}

/// Whether a file holds a graph per line. Standard input has no name to tell by: there, several
/// lines of which the first is a whole are.
fn holds_lines(path: &Path, content: &str) -> bool {
    if path.extension().is_some_and(|found| found == "jsonl") {
        return true;
    }
    let mut lines = content.lines().filter(|line| !line.trim().is_empty());
    let is_whole = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    path == Path::new("-") && lines.next().is_some_and(is_whole) && lines.next().is_some()
}

/// How wide the terminal says it is.
fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.unwrap_or(100)
}
