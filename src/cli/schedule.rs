//! `phaze schedule`: the fastest order of one layer's operators.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use clap::Args as ClapArgs;
use clap::ValueEnum;

use super::Exit;
use super::Refusal;
use super::files;
use crate::input::graph;
use crate::input::graph::UserGraph;
use crate::report::quantity::plain;
use crate::report::schedule::View;
use crate::report::schedule::text;
use crate::report::schedule::value;
use crate::report::trace;
use crate::schedule::Limits;
use crate::schedule::Rule;
use crate::schedule::Solved;
use crate::schedule::Solver;
use crate::schedule::solve_with;

/// A graph of a million operators takes less.
const LARGEST_FILE: u64 = 1 << 30;

/// How long the integer program of one block may take, if no time limit is given.
const INTEGER_PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// Find the fastest schedule of a layer's operators on tensor and vector cores, with proof.
#[derive(ClapArgs)]
#[command(
    after_help = "A schedule whose proof is missing (a limit was reached) is printed with its \
                        gap and exit status 0."
)]
pub struct Args {
    /// Your own operator graph: .json holds one, .jsonl one per line, `-` is standard input
    #[arg(long, value_name = "FILE")]
    graph: PathBuf,
    /// What a spread operator leaves to others [default: what the graph says, else own-kind]
    #[arg(long, value_enum)]
    rule: Option<RuleName>,
    /// How to find it
    #[arg(long, value_enum, default_value = "exact")]
    solver: SolverName,
    /// Stop after this long and print the best schedule so far, marked as unproven
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Stop after so many moments of one block's search, likewise
    #[arg(long, value_name = "NODES", default_value_t = Limits::DEFAULT.nodes)]
    node_limit: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the schedule as a trace that ui.perfetto.dev and `chrome://tracing` open
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "give a number of seconds, 0 or more".to_owned())
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let graphs = self.graphs()?;
        if self.trace.is_some() && graphs.len() != 1 {
            let message =
                format!("--trace writes one schedule, and there are {} graphs", graphs.len());
            return Err(Refusal::Options(message));
        }
        let deadline = self.time_limit.map(|limit| Instant::now() + limit);
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let stop = deadline.is_some().then_some(&is_late as &(dyn Fn() -> bool + Sync));
        let limits = Limits { nodes: self.node_limit, stop };
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for graph in &graphs {
            self.print(graph, &solve_with(&graph.problem, self.solver(), &limits), &mut out)?;
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
                Solver::Ilp { seconds: limit.as_secs_f64() }
            }
        }
    }

    fn graphs(&self) -> Result<Vec<UserGraph>, Refusal> {
        let content = files::read(&self.graph, LARGEST_FILE)?;
        let is = |extension: &str| self.graph.extension().is_some_and(|found| found == extension);
        // Standard input has no name to tell by: several lines that are each a whole are lines.
        let lines = is("jsonl")
            || (self.graph == Path::new("-")
                && content.lines().filter(|line| !line.trim().is_empty()).count() > 1
                && content.lines().next().is_some_and(|line| line.trim_end().ends_with('}')));
        let mut graphs = graph::graphs(&content, &files::name(&self.graph), lines)?;
        if let Some(rule) = self.rule {
            for graph in &mut graphs {
                graph.problem.rule = rule.into();
            }
        }
        Ok(graphs)
    }

    fn print(
        &self,
        graph: &UserGraph,
        solved: &Solved,
        out: &mut dyn Write,
    ) -> Result<(), Refusal> {
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
            number: &number,
            text: &|ticks| plain(number(ticks)),
        };
        if let Some(path) = &self.trace {
            // The format counts microseconds; one unit of the graph is drawn as one of them.
            files::write(path, trace::value(&view, &number).to_string().as_bytes())?;
        }
        if self.json {
            writeln!(out, "{}", value(&view))?;
        } else {
            text(&view, columns(), out)?;
        }
        Ok(())
    }
}

/// How wide the terminal says it is.
fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.unwrap_or(100)
}
