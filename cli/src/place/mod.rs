//! `phaze place`: the fastest way to put a model's layers on a cluster.

mod model;
mod profile;

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;

use super::DesignArgs;
use super::Exit;
use super::Refusal;
use super::files;
use super::inspect::optimizer;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use super::model_args::ModelOptions;
use phaze::model::Module;
use phaze::model::Modules;
use phaze::model::Optimizer;
use phaze::model::Precision;
use phaze::plan::Plan;
use phaze::plan::Recompute;
use phaze::plan::StrategySpace;
use phaze::plan::TimeModel;
use phaze::report::html;
use phaze::report::plot;
use phaze::report::timeline;

/// Find the fastest way to train a model on a cluster: every axis of parallelism, the cut into
/// stages, what is recomputed.
#[derive(ClapArgs)]
#[command(after_help = "Exit status 1 means that nothing fits; the answer names the limit.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// A built-in model (`phaze models` lists them) or the path of a Hugging Face config.json
    #[arg(required_unless_present = "profile", conflicts_with = "profile")]
    model: Option<String>,
    #[command(flatten)]
    options: ModelOptions,
    /// Devices that may be used [default: 1024, or what --strategy takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    devices: Option<u64>,
    /// The same in nodes of the accelerator's network
    #[arg(long, value_name = "N", conflicts_with_all = ["devices", "fit"],
          value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    nodes: Option<u64>,
    /// Sequences in a batch, exactly
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    global_batch: Option<u64>,
    /// Tokens in a batch, rounded to the nearest 2^k or 3·2^k sequences: 4M, 1.5G [default: 4M]
    #[arg(long, value_name = "TOKENS", conflicts_with = "global_batch")]
    batch_tokens: Option<String>,
    /// Sequences that pass through the model together: the sizes to choose from [default: those
    /// of 1, 2, 4, 8 that divide the batch]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_MICRO_BATCH))]
    micro_batch: Option<Vec<u64>>,
    /// Devices that share a layer: the widths to choose from [default: what the model allows, up to
    /// a node, or 64 where there are no nodes]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    tensor_parallel: Option<Vec<u64>>,
    /// Devices that share a sequence: the degrees to choose from [default: what the model allows,
    /// up to 64]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    context_parallel: Option<Vec<u64>>,
    /// What replicas share: nothing, optimizer state, gradients too, weights too [default: all four
    /// without a pipeline, 0 and 1 with one]
    #[arg(long, value_name = "0..3", value_parser = clap::value_parser!(u64).range(0..=3))]
    zero: Option<u64>,
    /// What is dropped after the forward pass and computed again [default: auto, or what the
    /// profile says]
    #[arg(long, value_name = "CHOICE")]
    recompute: Option<RecomputeChoice>,
    /// Memory that plans leave free, in percent [default: 6, or 0 with --published]
    #[arg(long, value_name = "PERCENT")]
    reserve: Option<f64>,
    /// Only plans that this framework accepts: megatron (bridge, nemo), torchtitan, maxtext, any
    /// [default: what the hardware file says, megatron for the built-in GPUs, else any]
    #[arg(long, value_name = "NAME")]
    launchable: Option<String>,
    /// Whose gradients and state are held [default: adam-mixed, or sgd with --published]
    #[arg(long, value_name = "NAME", value_parser = optimizer())]
    optimizer: Option<Optimizer>,
    /// How the time of a batch is counted [default: 1f1b, or published with --published]
    #[arg(long, value_name = "MODEL")]
    time_model: Option<TimeModelChoice>,
    /// A strategy, or a part of one: t=8,sp,c=2:ring,p=8,v=3,d=8,b=1,zero=1,recompute=selective,
    /// cut=even,order=tp-cp-pp-dp; what is not given is searched
    #[arg(long, value_name = "WORD,…")]
    strategy: Option<String>,
    /// In which numbers the matmuls of layers compute: bf16 or fp8 [default: bf16]
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(["bf16", "fp8"])
              .map(|name| Precision::named(&name).unwrap_or_default()))]
    precision: Option<Precision>,
    /// Find the fewest devices on which the model fits
    #[arg(long, conflicts_with = "devices")]
    fit: bool,
    /// The published constants, vector costs, schedule rule, time model, optimizer and attention
    #[arg(long)]
    published: bool,
    /// Place the layers of a profile, in the published artifact's format; a .jsonl file holds one
    /// profile per line and gets one answer per line, `-` reads one from standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "seq", "attention", "sequence_parallel", "devices", "nodes", "global_batch", "batch_tokens",
        "micro_batch", "tensor_parallel", "context_parallel", "zero", "reserve", "launchable",
        "optimizer", "strategy", "precision", "ideal", "fit", "published", "design", "tensor_cores", "width", "depth",
        "vector_cores", "vector_width", "local_kib", "glb_mib", "hbm_gib",
    ])]
    profile: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Save the plan with all that `phaze check` needs to verify it, and a page that shows it beside
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Save the pipeline's timeline for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draw the pipeline's timeline as text
    #[arg(long, conflicts_with_all = ["json", "fit"])]
    plot: bool,
    #[command(flatten)]
    design: DesignArgs,
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
    /// Run attention's core again, where its probabilities would be kept
    Selective,
    /// Whichever is fastest and fits: in each stage as many layers as memory asks for
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
    /// The choices for a user's own layers.
    fn choices(self) -> Vec<Recompute> {
        match self {
            Self::None | Self::Selective => vec![Recompute::None],
            Self::Stage => vec![Recompute::Stage],
            Self::Full => vec![Recompute::Full],
            Self::Auto => Recompute::ALL.to_vec(),
        }
    }

    /// Leaves of a model's space only this choice.
    fn narrow(self, space: &mut StrategySpace) {
        let core = Modules::NONE.with(Module::CoreAttention);
        match self {
            Self::None | Self::Selective => space.recompute = vec![Recompute::None],
            Self::Stage => space.recompute = vec![Recompute::Stage],
            Self::Full => space.recompute = vec![Recompute::EVERY_LAYER],
            Self::Auto => {}
        }
        match self {
            Self::Selective => space.repeated = vec![core],
            Self::Auto => {}
            Self::None | Self::Stage | Self::Full => space.repeated = vec![Modules::NONE],
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
        match (&self.profile, &self.model) {
            (Some(path), _) => profile::run(self, path),
            (None, Some(name)) => model::run(self, name),
            (None, None) => Err(Refusal::Options("give a model or --profile".into())),
        }
    }

    /// Draws a plan's pipeline where that was asked for.
    fn draw(&self, plan: &Plan, out: &mut dyn Write) -> Result<(), Refusal> {
        if self.plot {
            writeln!(out)?;
            plot::pipeline::write(plan, out)?;
        }
        Ok(())
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
            let mut page = Vec::new();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            html::write_plan(plan, &file, &mut page)?;
            files::write(&page_beside(path), &page)?;
        }
        Ok(())
    }
}

/// `plan.html` for `plan.json`; never the file itself.
fn page_beside(path: &Path) -> PathBuf {
    let page = path.with_extension("html");
    if page == path { path.with_extension("page.html") } else { page }
}
