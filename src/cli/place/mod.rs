//! `phaze place`: the fastest way to put a model's layers on a cluster.

mod profile;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::ValueEnum;

use super::Exit;
use super::Refusal;
use super::files;
use crate::plan::Plan;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::report::timeline;

/// Find the fastest placement of layers on a cluster: pipelines, stages, widths, recompute.
#[derive(ClapArgs)]
pub struct Args {
    /// Place the layers of a profile, in the published artifact's format; a .jsonl file holds one
    /// profile per line and gets one answer per line, `-` reads one from standard input
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,
    /// What is dropped after the forward pass and computed again [default: what the profile says]
    #[arg(long, value_name = "CHOICE")]
    recompute: Option<RecomputeChoice>,
    /// How the time of a batch is counted
    #[arg(long, value_name = "MODEL", default_value = "1f1b")]
    time_model: TimeModelChoice,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Save the plan with all that `phaze check` needs to verify it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Save the pipeline's timeline for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Values of `--recompute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecomputeChoice {
    /// Keep every activation
    None,
    /// Keep each stage's inputs, run the stage's forward pass again; all but the last stage
    Stage,
    /// Keep each layer's input, run the layer's forward pass again
    Full,
    /// Whichever is fastest and fits
    Auto,
}

/// Values of `--time-model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimeModelChoice {
    /// As the published evaluation counts it
    Published,
    /// One forward, one backward
    #[value(name = "1f1b")]
    OneForwardOneBackward,
}

impl RecomputeChoice {
    fn choices(self) -> Vec<Recompute> {
        match self {
            Self::None => vec![Recompute::None],
            Self::Stage => vec![Recompute::Stage],
            Self::Full => vec![Recompute::Full],
            Self::Auto => Recompute::ALL.to_vec(),
        }
    }
}

impl From<TimeModelChoice> for TimeModel {
    fn from(choice: TimeModelChoice) -> Self {
        match choice {
            TimeModelChoice::Published => Self::Published,
            TimeModelChoice::OneForwardOneBackward => Self::OneForwardOneBackward,
        }
    }
}

impl Args {
    /// Answers on standard output and saves what was asked for.
    pub fn run(&self) -> Result<Exit, Refusal> {
        profile::run(self)
    }

    /// Saves a plan and its timeline where that was asked for.
    fn save(&self, plan: &Plan) -> Result<(), Refusal> {
        if let Some(path) = &self.trace {
            let text = timeline::trace(plan).ok_or_else(|| {
                let most = timeline::MOST_PASSES;
                Refusal::Options(format!("--trace: a batch has more than {most} passes to show"))
            })?;
            files::write(path, text.as_bytes())?;
        }
        if let Some(path) = &self.out {
            let mut text = serde_json::to_string_pretty(plan).expect("a plan is plain data");
            text.push('\n');
            files::write(path, text.as_bytes())?;
        }
        Ok(())
    }
}
