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
use super::model_args;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use super::model_args::ModelOptions;
use phaze::estimate::EstimateTable;
use phaze::estimate::Options;
use phaze::graph::Dag;
use phaze::hardware::Accelerator;
use phaze::hardware::Cluster;
use phaze::input::Conventions;
use phaze::input::graph;
use phaze::input::graph::UserGraph;
use phaze::model::Precision;
use phaze::model::op::Op;
use phaze::parallel;
use phaze::parallel::LayerShare;
use phaze::parallel::Setting;
use phaze::profile::pass::PassGraph;
use phaze::profile::pass::costs;
use phaze::report::quantity;
use phaze::report::schedule::View;
use phaze::report::schedule::text;
use phaze::report::schedule::value;
use phaze::report::trace;
use phaze::schedule::Limits;
use phaze::schedule::Rule;
use phaze::schedule::Solver;
use phaze::schedule::solve_with;
use phaze::store::files;
use phaze::units::Time;

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

    /// Makes one schedule within the limits, which start to count now.
    fn within_limits<S>(&self, schedule: impl FnOnce(&Limits) -> S) -> S {
        let deadline = self.time_limit().and_then(|limit| Instant::now().checked_add(limit));
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let stop = deadline.is_some().then_some(&is_late as &(dyn Fn() -> bool + Sync));
        schedule(&Limits { nodes: self.node_limit, stop })
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
        let solved = self.within_limits(|limits| solve_with(&graph.problem, self.solver(), limits));
        let number = |ticks: u64| graph.scale.unscaled(ticks);
        let view = View {
            title: graph.name.as_deref(),
            names: &graph.names,
            order: &graph.order,
            problem: &graph.problem,
            schedule: &solved.schedule,
            makespan: solved.makespan,
            proof: solved.proof,
            n_nodes: solved.n_nodes,
            pass: None,
            number: &number,
            text: &|ticks| quantity::plain(number(ticks)),
        };
        if let Some(path) = &self.trace {
            // The format counts microseconds; one unit of the graph is drawn as one of them.
            let events = trace::events(&view, 1, &number);
            files::write(path, trace::whole(&events).to_string().as_bytes())?;
        }
        self.print(&view, out)
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
        let model = model_args::load(name)?;
        let kind = model_args::layer_named(&model, &self.layer, "--layer")?;
        let (hardware, chip) = self.design.resolve(self.conventions())?;
        let setting = Setting {
            micro_batch: self.micro_batch,
            tensor_parallel: self.tensor_parallel,
            stack: chip.efficiency().stack(Precision::Bf16),
            ..self.options.setting(&model, self.conventions())
        };
        let share = parallel::shard(&model, setting)
            .map_err(|illegal| Refusal::Options(format!("{name}: {illegal}")))?;
        let cluster =
            Cluster { devices: self.tensor_parallel, network: hardware.physics.reached_network() };
        let place = Place { model: name, hardware: &hardware.name, chip: &chip, cluster };
        // Nothing is printed before the trace is safe.
        let (mut events, mut page) = (Vec::new(), Vec::new());
        let passes = [PassName::Forward, PassName::Backward];
        for pass in passes.into_iter().filter(|&pass| self.pass.unwrap_or(pass) == pass) {
            events.extend(self.pass_of(&share.kinds[kind], pass, &place, &mut page)?);
        }
        if let Some(path) = &self.trace {
            files::write(path, trace::whole(&events).to_string().as_bytes())?;
        }
        out.write_all(&page)?;
        Ok(())
    }

    /// Schedules one pass and prints it; answers its trace.
    fn pass_of(
        &self,
        layer: &LayerShare,
        pass: PassName,
        place: &Place,
        out: &mut dyn Write,
    ) -> Result<Vec<serde_json::Value>, Refusal> {
        let (word, ops) = match pass {
            PassName::Forward => ("forward", &layer.forward),
            PassName::Backward => ("backward", &layer.backward),
        };
        let costs = costs(ops, place.chip, &place.cluster, &self.table())
            .map_err(|too_large| Refusal::Options(format!("{}: {too_large}", place.model)))?;
        let rule = self.rule.map_or_else(|| self.default_rule(), Rule::from);
        let graph = PassGraph::new(ops);
        let found = self.within_limits(|limits| {
            graph.schedule_with(&costs, place.chip, rule, self.solver(), limits)
        });
        let title = place.title(&layer.name, word);
        let names = names(ops);
        let order: Vec<usize> = (0..names.len()).collect();
        let view = View {
            title: Some(&title),
            names: &names,
            order: &order,
            problem: &found.problem,
            schedule: &found.schedule,
            makespan: found.total.makespan.0,
            proof: found.proof,
            n_nodes: found.total.n_nodes,
            pass: Some(&found.total),
            number: &|ticks| Time(ticks).seconds(),
            text: &|ticks| quantity::time(Time(ticks)),
        };
        self.print(&view, out)?;
        // Each pass has its own group of rows.
        let first_group = if pass == PassName::Forward { 1 } else { 4 };
        Ok(trace::events(&view, first_group, &|ticks| ticks as f64 / 1e6))
    }

    fn conventions(&self) -> &'static Conventions {
        Conventions::of(self.published)
    }

    fn table(&self) -> EstimateTable {
        let vector_costs = self.conventions().vector_costs;
        EstimateTable::new(Options { vector_costs, ..Options::default() })
    }

    fn default_rule(&self) -> Rule {
        self.conventions().rule
    }
}

/// Where a layer runs.
struct Place<'a> {
    model: &'a str,
    hardware: &'a str,
    chip: &'a Accelerator,
    cluster: Cluster,
}

impl Place<'_> {
    fn title(&self, layer: &str, pass: &str) -> String {
        let design = self.chip.design();
        format!(
            "{} {layer} {pass} on {}: {} tensor cores {}x{}, {} vector cores x{}",
            self.model,
            self.hardware,
            design.tensor_cores,
            design.width,
            design.depth,
            design.vector_cores,
            design.vector_width,
        )
    }
}

fn names(ops: &Dag<Op>) -> Vec<String> {
    ops.nodes().iter().map(|op| op.name.clone()).collect()
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
