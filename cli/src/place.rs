//! `phaze place`: the fastest way to put a model's layers on a cluster.

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
use super::inspect::optimizer;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use super::model_args::ModelOptions;
use super::progress;
use phaze::ask::place;
use phaze::ask::place::Fitted;
use phaze::ask::place::PlaceRequest;
use phaze::ask::place::Placed;
use phaze::ask::place::PlacedPlan;
use phaze::ask::place::Placer;
use phaze::input::profile::ProfileFile;
use phaze::input::profile::profile;
use phaze::input::profile::profiles;
use phaze::model::Optimizer;
use phaze::model::Precision;
use phaze::plan::Plan;
use phaze::plan::TimeModel;
use phaze::report::html;
use phaze::report::placement as report;
use phaze::report::placement::Alternative;
use phaze::report::plot;
use phaze::report::timeline;
use phaze::store::files;

/// Files of a thousand profiles are read; more are better split.
const LARGEST_FILE: u64 = 256 << 20;

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
    /// Devices among which experts are dealt out: the degrees to choose from [default: what the model
    /// allows]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    expert_parallel: Option<Vec<u64>>,
    /// Devices that share each expert: the degrees to choose from [default: 1, and the width]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    expert_tensor: Option<Vec<u64>>,
    /// How much more than an even load the fullest device of a mixture of experts has: 1.2
    /// [default: what the configuration says, or 1.0]
    #[arg(long, value_name = "FACTOR")]
    imbalance: Option<f64>,
    /// Layers that are trained to tell the token after the next: 0 or 1 [default: what the
    /// configuration says]
    #[arg(long, value_name = "LAYERS")]
    mtp: Option<u64>,
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
    /// A strategy, or a part of one: t=8,sp,c=2:ring,e=8,x=1,p=8,v=3,d=8,b=1,zero=1,recompute=selective,
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
        "micro_batch", "tensor_parallel", "context_parallel", "expert_parallel",
        "expert_tensor", "imbalance", "mtp", "zero", "reserve", "launchable",
        "optimizer", "strategy", "precision", "ideal", "efficiency", "fit", "published", "design", "tensor_cores", "width", "depth",
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

impl From<RecomputeChoice> for place::RecomputeChoice {
    fn from(choice: RecomputeChoice) -> Self {
        match choice {
            RecomputeChoice::None => Self::None,
            RecomputeChoice::Stage => Self::Stage,
            RecomputeChoice::Full => Self::Full,
            RecomputeChoice::Selective => Self::Selective,
            RecomputeChoice::Auto => Self::Auto,
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
            (Some(path), _) => self.profiles(path),
            (None, Some(name)) => self.place(name),
            (None, None) => Err(Refusal::Options("give a model or --profile".into())),
        }
    }

    /// Answers for a model.
    fn place(&self, name: &str) -> Result<Exit, Refusal> {
        let mut placer = Placer::new(&self.request(name)?, &files::small)?;
        let placed = progress::timed("looking for the best strategy", || placer.answer())?;
        let next = |plan: &PlacedPlan| {
            plan.best.as_ref().map_or_else(Vec::new, |best| placer.alternatives(best))
        };
        self.tell(&placed, &next)
    }

    /// Answers for one profile, or line by line for many.
    fn profiles(&self, path: &Path) -> Result<Exit, Refusal> {
        let text = files::read(path, LARGEST_FILE)?;
        let name = files::name(path);
        let recompute = self.recompute.map(place::RecomputeChoice::from);
        let place = |file: &ProfileFile| {
            place::profile::place(file, recompute, self.time_model.map(TimeModel::from))
        };
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            return self.tell(&place(&profile(&text, &name)?)?, &|_| Vec::new());
        }
        if self.out.is_some() || self.trace.is_some() {
            let problem = "--out and --trace save one plan, but a .jsonl file holds many profiles";
            return Err(Refusal::Options(problem.into()));
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        // All lines are read before the first is answered, so that a bad one stops everything.
        for file in profiles(&text, &name)? {
            writeln!(out, "{}", place(&file)?.value())?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    /// What the options ask of a model.
    fn request(&self, name: &str) -> Result<PlaceRequest, Refusal> {
        Ok(PlaceRequest {
            model: name.to_owned(),
            chip: self.design.request()?,
            sequence: self.options.seq,
            attention: self.options.attention,
            sequence_parallel: self.options.sequence_parallel,
            devices: self.devices,
            nodes: self.nodes,
            global_batch: self.global_batch,
            batch_tokens: self.batch_tokens.clone(),
            micro_batches: self.micro_batch.clone(),
            tensor_parallel: self.tensor_parallel.clone(),
            context_parallel: self.context_parallel.clone(),
            expert_parallel: self.expert_parallel.clone(),
            expert_tensor: self.expert_tensor.clone(),
            imbalance: self.imbalance,
            mtp: self.mtp,
            zero: self.zero,
            recompute: self.recompute.map(place::RecomputeChoice::from),
            reserve: self.reserve.map(|percent| percent / 100.0),
            launchable: self.launchable.clone(),
            optimizer: self.optimizer,
            time_model: self.time_model.map(TimeModel::from),
            strategy: self.strategy.clone(),
            precision: self.precision,
            fit: self.fit,
            published: self.published,
        })
    }

    /// Says what became of a request, and what `next` brings.
    fn tell(
        &self,
        placed: &Placed,
        next: &dyn Fn(&PlacedPlan) -> Vec<Alternative>,
    ) -> Result<Exit, Refusal> {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if let Placed::Plan(found) = placed {
            self.save(&found.plan)?;
        }
        match placed {
            _ if self.json => writeln!(out, "{:#}", placed.value())?,
            Placed::Plan(found) => {
                if let Some(fitted) = &found.fitted {
                    writeln!(out, "{}\n", fitted_line(&found.plan, fitted))?;
                }
                report::text(&found.plan, &mut out)?;
                self.draw(&found.plan, &mut out)?;
                report::alternatives(&found.plan, &next(found), &mut out)?;
            }
            Placed::Nothing { name, design, reason } => {
                let on = design.as_ref().map_or_else(String::new, |design| format!(" on {design}"));
                writeln!(out, "{name}{on}: nothing fits: {reason}")?;
            }
        }
        out.flush()?;
        Ok(if matches!(placed, Placed::Plan(_)) { Exit::Done } else { Exit::Negative })
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

/// On how many devices a model fits, in a sentence.
fn fitted_line(plan: &Plan, fitted: &Fitted) -> String {
    let Fitted { fewest, per_node, comfortable } = fitted;
    let nodes = match (per_node, fitted.nodes()) {
        (1, _) => String::new(),
        (_, 1) => format!(" (1 node of {per_node})"),
        (_, nodes) => format!(" ({nodes} nodes of {per_node})"),
    };
    let design = plan.training.as_ref().map_or("", |training| &training.design);
    format!(
        "{} fits on {fewest} {design}{nodes} and on no fewer: memory is the limit; {comfortable} leave \
         room",
        plan.name
    )
}

/// `plan.html` for `plan.json`; never the file itself.
fn page_beside(path: &Path) -> PathBuf {
    let page = path.with_extension("html");
    if page == path { path.with_extension("page.html") } else { page }
}
