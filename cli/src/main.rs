//! The command `phaze`: one file per command.
//!
//! A door to the library: files, clock, terminal, signals and exit status. A command is an `Args`
//! struct and a `run` that answers an exit status or the reason why the request was refused.

mod calibrate;
mod check;
mod design_args;
mod designs;
mod estimate;
mod inspect;
mod merge;
mod model_args;
mod models;
mod place;
mod plan;
mod progress;
mod report;
mod reproduce;
mod schedule;
mod search;
mod shard;
mod slurm;
mod sweep;
mod validate;
mod watch;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use clap::Subcommand;

use self::design_args::DesignArgs;
use self::model_args::ModelArgs;
use phaze::ask;
use phaze::input::InputError;
use phaze::input::source::printable;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Find the accelerator and the way to train on it that suit a language model best.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 found or done, 1 infeasible or a check that failed, \
                  2 bad input or request, 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Models(models::Args),
    Inspect(inspect::Args),
    Designs(designs::Args),
    Estimate(estimate::Args),
    Schedule(schedule::Args),
    Search(Box<search::Args>),
    Merge(merge::Args),
    Slurm(slurm::Args),
    Sweep(sweep::Args),
    Reproduce(reproduce::Args),
    Report(report::Args),
    Plan(Box<plan::Args>),
    Place(Box<place::Args>),
    Check(check::Args),
    Validate(validate::Args),
    Calibrate(calibrate::Args),
}

/// How a command ended, as its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every command can be infeasible or interrupted")]
enum Exit {
    /// Found or done.
    Done,
    /// Infeasible, or a check that failed.
    Negative,
    /// Stopped by the user; what was done is saved.
    Interrupted,
}

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// What the user wrote cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Options that contradict each other or lack another.
    #[error("{0}")]
    Options(String),
    /// The answer cannot be written.
    #[error("{place}: cannot be written: {reason}")]
    Unwritable {
        /// Where.
        place: String,
        /// What the system said.
        reason: io::Error,
    },
    /// The reader of standard output went away: nobody is left to tell.
    #[error("standard output was closed")]
    NobodyReads,
}

impl From<ask::Refusal> for Refusal {
    fn from(refusal: ask::Refusal) -> Self {
        match refusal {
            ask::Refusal::Input(wrong) => Self::Input(wrong),
            ask::Refusal::Options(message) => Self::Options(message),
            ask::Refusal::Unwritable { place, reason } => Self::Unwritable { place, reason },
        }
    }
}

impl From<io::Error> for Refusal {
    /// Failures to print; files are written through `store`, which names them.
    fn from(reason: io::Error) -> Self {
        if reason.kind() == io::ErrorKind::BrokenPipe {
            return Self::NobodyReads;
        }
        Self::Unwritable { place: "standard output".into(), reason }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Models(args) => args.run(),
        Command::Inspect(args) => args.run(),
        Command::Designs(args) => args.run(),
        Command::Estimate(args) => args.run(),
        Command::Schedule(args) => args.run(),
        Command::Search(args) => args.run(),
        Command::Merge(args) => args.run(),
        Command::Slurm(args) => args.run(),
        Command::Sweep(args) => args.run(),
        Command::Reproduce(args) => args.run(),
        Command::Report(args) => args.run(),
        Command::Plan(args) => args.run(),
        Command::Place(args) => args.run(),
        Command::Check(args) => args.run(),
        Command::Validate(args) => args.run(),
        Command::Calibrate(args) => args.run(),
    };
    match ended {
        Ok(Exit::Done) | Err(Refusal::NobodyReads) => ExitCode::SUCCESS,
        Ok(Exit::Negative) => ExitCode::from(1),
        Ok(Exit::Interrupted) => ExitCode::from(130),
        Err(refusal) => {
            // What a user wrote is repeated in messages, but never steers the terminal.
            let lines = refusal.to_string();
            let lines: Vec<String> = lines.lines().map(printable).collect();
            eprintln!("error: {}", lines.join("\n"));
            ExitCode::from(2)
        }
    }
}
