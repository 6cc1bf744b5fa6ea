//! `phaze search`: the best chip and the best way to train on it, with proof.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::schedule::seconds;
use super::shard;
use super::shard::ShardArgs;
use super::watch::Watch;
use phaze::ask::chips::SearchedChips;
use phaze::ask::search::Searched;
use phaze::input;
use phaze::input::chip_space::SpaceKind;
use phaze::input::request::ModelEntry;
use phaze::input::request::RequestFile;
use phaze::input::space::RawSpace;
use phaze::report;
use phaze::search::Outcome;
use phaze::search::Request;
use phaze::search::Setup;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipSetup;
use phaze::store::Start;
use phaze::store::files;
use phaze::store::journal::fingerprint;
use phaze::store::results;
use phaze::store::results::Shelf;

/// Find the best accelerator of a design space and the best way to train on it, with proof.
///
/// Without arguments: Llama-3-8B on 1,024 chips of 5 nm, 800 mm² and 700 W, over a billion chips.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// A request file (`--example` prints a commented one); options below override it
    request: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    shard: ShardArgs,
    /// Where results are written [default: results/MODEL]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Go on where an interrupted search into the same directory stopped
    #[arg(long)]
    resume: bool,
    /// Write over the result of another request
    #[arg(long)]
    force: bool,
    /// Stop after this long and report the best so far, marked as unproven
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Threads to use [default: all cores]; the answer does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Print the outcome as JSON instead of text
    #[arg(long)]
    json: bool,
    /// Draw the Pareto front on the terminal as well
    #[arg(long)]
    plot: bool,
    /// Print a commented request file over `chips` or the `published` space and stop
    #[arg(
        long,
        exclusive = true,
        value_name = "SPACE",
        num_args = 0..=1,
        default_missing_value = "chips",
        value_parser = ["chips", "published"]
    )]
    example: Option<String>,
    /// Print the JSON schema of request files, for editors, and stop
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// The options that lie over a request file.
#[derive(ClapArgs, Default)]
#[command(next_help_heading = "Request")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Asked {
    /// A built-in model or the path of a config.json, as llama3-8b@32768 with the length of its
    /// sequences; repeat for several
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
    /// Tensor-parallel widths to choose from [default: those of 1,2,4,8 that the model allows]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    tensor_parallel: Option<Vec<u64>>,
    /// Context-parallel degrees to choose from [default: 1, and 2,4,8,16 beyond 8192 tokens]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    context_parallel: Option<Vec<u64>>,
    /// Degrees in which experts are dealt out, to choose from [default: what the models allow]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    expert_parallel: Option<Vec<u64>>,
    /// Degrees in which each expert is divided, to choose from [default: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    expert_tensor: Option<Vec<u64>>,
    /// How much more than an even load the fullest device of a mixture of experts has: 1.2
    /// [default: what configurations say, or 1.0]
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    imbalance: Option<f64>,
    /// Layers that are trained to tell the token after the next, in every model that can have them: 0
    /// or 1 [default: what configurations say]
    #[arg(long, value_name = "LAYERS")]
    mtp: Option<u64>,
    /// What replicas share: nothing, optimizer state, gradients too, weights too [default: all four
    /// without a pipeline, 0 and 1 with one]
    #[arg(long, value_name = "0..3")]
    zero: Option<u64>,
    /// What may be computed again: none, full, stage, every-layer, as-needed, or auto [default:
    /// auto: as-needed, or none,stage with --published]
    #[arg(long, value_name = "HOW,…", value_delimiter = ',')]
    recompute: Option<Vec<String>>,
    /// A strategy, or a part of one, as of `phaze place`; what is not given is searched
    #[arg(long, value_name = "WORD,…")]
    strategy: Option<String>,
    /// Only plans that this framework accepts: megatron (bridge, nemo), torchtitan, maxtext, any
    /// [default: any]
    #[arg(long, value_name = "NAME")]
    launchable: Option<String>,
    /// Memory that plans leave free, in percent [default: 6, or 0 with --published]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    reserve: Option<f64>,
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
    /// Whose efficiency every design is assumed to have: ideal, a class (systolic, simt), or built-in
    /// hardware or a hardware file with a block [default: what --hardware says]
    #[arg(long, value_name = "NAME|FILE")]
    efficiency: Option<String>,
    /// throughput, throughput-per-area, energy-per-token; of chips also cost-per-token and
    /// carbon-per-token [default: throughput]
    #[arg(long, value_name = "GOAL")]
    objective: Option<String>,
    /// How several models become one number: geomean, mean or min-regret [default: geomean]
    #[arg(long, value_name = "HOW")]
    combine: Option<String>,
    /// Find the Pareto front exactly: of chips over tokens per second, dollars and watts, of the published space
    /// over throughput, area and energy
    #[arg(long)]
    pareto: bool,
    /// Round the figures of the front of chips up to steps of this many percent; 0 rounds nothing
    /// [default: 20]
    #[arg(long, value_name = "PERCENT")]
    resolution: Option<f64>,
    /// Find the N best designs exactly
    #[arg(long, value_name = "N")]
    top: Option<u64>,
    /// Evaluate every design, prune nothing
    #[arg(long)]
    exhaustive: bool,
    /// Write a row for every design of the published space, not only for those that were evaluated; implied
    /// by --pareto, --exhaustive and --shard
    #[arg(long)]
    table: bool,
    /// Compare the best chip with this as well: built-in hardware or a hardware file; repeat for several
    #[arg(long, value_name = "NAME|FILE")]
    baseline: Vec<String>,
    /// Tell how the best chip changes with the budget, the objective and how much worse it may be
    #[arg(long)]
    why: bool,
    /// Compare the best chip with the best of N drawn at random, each trained in its best way
    #[arg(long, value_name = "N")]
    spotlight: Option<u64>,
    /// Tell the best chip where every assumed constant of the technology is 30 % less or more
    #[arg(long)]
    robust: bool,
    /// Leave out designs whose devices draw more than this on average
    #[arg(long, value_name = "WATTS", allow_negative_numbers = true)]
    power_cap: Option<f64>,
    /// Sizes of off-chip memory of the published space in GiB [default: 32,64,80]
    #[arg(long, value_name = "GIB,…")]
    hbm: Option<String>,
    /// Fix one knob, as width=128; repeat for several
    #[arg(long, value_name = "KNOB=VALUE")]
    fix: Vec<String>,
    /// Choose a space, `chips` or `published` [default: chips], or change one knob of it, as
    /// width=32,64 or clock=1.4..1.8 (its values between both ends; powers of two in the published
    /// space, which also knows `min_area_fraction=0.1`), or `max_area_mm2=200`; repeat for several
    #[arg(long, value_name = "NAME|KNOB=VALUES")]
    space: Vec<String>,
    #[command(flatten)]
    chip: ChipAsked,
}

/// The options about searched chips.
#[derive(ClapArgs, Default)]
#[command(next_help_heading = "Chips")]
struct ChipAsked {
    /// What chips are made in, in nm: 3, 5, 7 or 16 [default: 5]
    #[arg(long, value_name = "NM")]
    process: Option<u64>,
    /// What arrays multiply, bf16 or fp8, in which the matmuls of layers compute then [default: bf16]
    #[arg(long, value_name = "NAME")]
    precision: Option<String>,
    /// The generation of off-chip memory [default: hbm3e]
    #[arg(long, value_name = "NAME")]
    memory: Option<String>,
    /// The largest die in mm² [default: 800, of the published space the published limit]
    #[arg(long, value_name = "MM2", allow_negative_numbers = true)]
    max_area: Option<f64>,
    /// The most thermal design power in watts [default: 700]
    #[arg(long, value_name = "WATTS", allow_negative_numbers = true)]
    tdp: Option<f64>,
    /// The most that a chip may cost to make, in dollars [default: any]
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    max_price: Option<f64>,
    /// What the links lead to: torus, its sides as 8x8x16, flat, or nodes [default: torus, the most
    /// cubic]
    #[arg(long, value_name = "NETWORK", conflicts_with = "torus")]
    network: Option<String>,
    /// Chips of a node, which its links join by a switch; makes the network one of nodes [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "torus")]
    devices_per_node: Option<u64>,
    /// GB/s per direction of each chip's card to other nodes; makes the network one of nodes
    /// [default: 50]
    #[arg(long, value_name = "GB/S", conflicts_with = "torus")]
    between: Option<u64>,
    /// The sides of the torus, as 8x8x16 [default: the most cubic]
    #[arg(long, value_name = "AxBxC")]
    torus: Option<String>,
    /// What a GB/s of links costs, per direction, in dollars [default: 10 in a torus or a node, 85 flat]
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    price_links: Option<f64>,
    /// What a GB/s between nodes costs, per direction, in dollars [default: 85]
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    price_between: Option<f64>,
    /// What a kWh costs, in dollars [default: 0.08]
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    kwh: Option<f64>,
    /// Years in service [default: 4]
    #[arg(long, value_name = "YEARS", allow_negative_numbers = true)]
    years: Option<f64>,
    /// Chips that share masks and design [default: 100000]
    #[arg(long, value_name = "CHIPS", allow_negative_numbers = true)]
    volume: Option<f64>,
    /// Count what a buyer pays: the part of the price that is not the cost of the chip [default: a
    /// builder's cost]
    #[arg(long, value_name = "PART", allow_negative_numbers = true)]
    margin: Option<f64>,
}

impl Args {
    /// Searches, writes the files of the result, and prints it.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let mut out = std::io::stdout().lock();
        let example = self.example.as_deref().map(|space| match space {
            "published" => input::request::PUBLISHED_EXAMPLE,
            _ => input::request::EXAMPLE,
        });
        if let Some(text) = example.or_else(|| self.schema.then_some(input::request::SCHEMA)) {
            out.write_all(text.as_bytes())?;
            return Ok(Exit::Done);
        }
        drop(out);
        let (mut file, name) = self.asked.over_file(self.request.as_deref())?;
        if self.shard.is_asked() {
            file = file.listing_all(&name)?;
        }
        if file.kind(&name)? == SpaceKind::Chips {
            return self.run_chips(&input::request::ready_chips(&file, &name, &files::small)?);
        }
        let setup = input::request::ready(&file, &name, &files::small)?;
        if let Some(task) = self.shard.task(&setup)? {
            let Some(out) = self.out.as_deref().filter(|_| self.time_limit.is_none()) else {
                return Err(Refusal::Options(shard::NEEDS.into()));
            };
            return in_threads(self.threads, || shard::search(&setup, &task, out, self.start()));
        }
        let directory = self.directory(&setup.request);
        in_threads(self.threads, || {
            let Searched { outcome, interrupted, .. } =
                searched(&setup, &directory, self.start(), self.time_limit)?;
            show(&outcome, &directory, self.json)?;
            if self.plot {
                super::report::plot(&directory)?;
            }
            if interrupted {
                eprintln!("{INTERRUPTED}");
                return Ok(Exit::Interrupted);
            }
            Ok(if outcome.winner.is_some() { Exit::Done } else { Exit::Negative })
        })
    }

    fn start(&self) -> Start {
        Start::of(self.resume, self.force)
    }

    fn directory<S>(&self, request: &Request<S>) -> PathBuf {
        self.out.clone().unwrap_or_else(|| results::usual_directory(request))
    }

    /// The same over chips, with boxes in place of a table of designs.
    fn run_chips(&self, setup: &ChipSetup) -> Result<Exit, Refusal> {
        if self.plot {
            let problem = "--plot draws a front of designs, which only the published space has";
            return Err(Refusal::Options(problem.into()));
        }
        if let Some(task) = self.shard.chip_task(setup)? {
            let Some(out) = self.out.as_deref().filter(|_| self.time_limit.is_none()) else {
                return Err(Refusal::Options(shard::NEEDS.into()));
            };
            let start = self.start();
            return in_threads(self.threads, || shard::search_chips(setup, &task, out, start));
        }
        let directory = self.directory(&setup.request);
        in_threads(self.threads, || {
            let watch = Watch::new(self.time_limit);
            let program = program();
            let shelf = Shelf { directory: &directory, start: self.start(), program: &program };
            let SearchedChips { outcome, interrupted, .. } =
                results::search_chips(setup, &shelf, &watch)?;
            show_chips(&outcome, &directory, self.json)?;
            if interrupted {
                eprintln!("{INTERRUPTED}");
                return Ok(Exit::Interrupted);
            }
            Ok(if outcome.winner.is_some() { Exit::Done } else { Exit::Negative })
        })
    }
}

/// What computes here.
pub fn program() -> String {
    fingerprint(&std::env::current_exe().unwrap_or_default())
}

/// Searches and writes all files of the result, also of one that was cut short.
pub fn searched(
    setup: &Setup,
    directory: &Path,
    start: Start,
    time_limit: Option<Duration>,
) -> Result<Searched, Refusal> {
    // From here on Ctrl-C ends the search in order, not the process: the journal comes after.
    let watch = Watch::new(time_limit);
    let program = program();
    let shelf = Shelf { directory, start, program: &program };
    Ok(results::search(setup, &shelf, &watch)?)
}

/// Prints an outcome, as text or as JSON.
pub fn show(outcome: &Outcome, directory: &Path, json: bool) -> Result<(), Refusal> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if json {
        serde_json::to_writer(&mut out, outcome).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::outcome::text(outcome, &mut out)?;
        let place = files::name(directory);
        let boxes = if outcome.request.lists_all() { "" } else { "boxes.csv, " };
        writeln!(out, "\nWritten to {place}: outcome.json, designs.csv, {boxes}report.html")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints an outcome over chips, as text or as JSON.
pub fn show_chips(outcome: &ChipOutcome, directory: &Path, json: bool) -> Result<(), Refusal> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if json {
        serde_json::to_writer(&mut out, outcome).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::chips::text(outcome, &mut out)?;
        let place = files::name(directory);
        writeln!(out, "\nWritten to {place}: outcome.json, boxes.csv, report.html")?;
    }
    out.flush()?;
    Ok(())
}

impl Asked {
    /// These options over the file at `path`, where there is one, and the name that errors refer
    /// to. Paths in the file start beside it, those of options where the program was started.
    fn over_file(&self, path: Option<&Path>) -> Result<(RequestFile, String), Refusal> {
        let options = self.as_file()?;
        let (mut file, name) = match path {
            None => (options, "command line".into()),
            Some(path) => {
                let name = files::name(path);
                let below = RequestFile::read(&files::small(path)?, &name)?;
                (options.over(below.beside(path.parent().unwrap_or(Path::new("")))), name)
            }
        };
        if let Some(tokens) = self.seq {
            let said = self.model.iter().find(|model| model_entry(model).sequence.is_some());
            if let Some(model) = said {
                let problem =
                    format!("--model {model} and --seq {tokens} say the same; give one of them");
                return Err(Refusal::Options(problem));
            }
        }
        file.every_sequence(self.seq);
        Ok((file, name))
    }

    fn as_file(&self) -> Result<RequestFile, Refusal> {
        let mut file = RequestFile {
            model: self.model.iter().map(|name| model_entry(name)).collect(),
            published: self.published.then_some(true),
            ..RequestFile::default()
        };
        file.hardware.clone_from(&self.hardware);
        file.efficiency.clone_from(&self.efficiency);
        let job = &mut file.job;
        job.devices = self.devices;
        job.global_batch = self.global_batch;
        job.micro_batches.clone_from(&self.micro_batch);
        job.tensor_parallel.clone_from(&self.tensor_parallel);
        job.context_parallel.clone_from(&self.context_parallel);
        job.expert_parallel.clone_from(&self.expert_parallel);
        job.expert_tensor.clone_from(&self.expert_tensor);
        job.imbalance = self.imbalance;
        job.mtp = self.mtp;
        job.zero = self.zero;
        job.recompute.clone_from(&self.recompute);
        job.strategy.clone_from(&self.strategy);
        job.launchable.clone_from(&self.launchable);
        job.reserve = self.reserve.map(|percent| percent / 100.0);
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
        search.resolution_percent = self.resolution;
        search.exhaustive = self.exhaustive.then_some(true);
        search.table = self.table.then_some(true);
        search.power_cap_w = self.power_cap;
        search.baselines = (!self.baseline.is_empty()).then(|| self.baseline.clone());
        search.why = self.why.then_some(true);
        search.spotlight = self.spotlight;
        search.robust = self.robust.then_some(true);
        let chip = &mut file.chip;
        chip.process_nm = self.chip.process;
        chip.precision.clone_from(&self.chip.precision);
        chip.memory.clone_from(&self.chip.memory);
        chip.tdp_w = self.chip.tdp;
        chip.price_usd = self.chip.max_price;
        chip.network = self.chip.network.clone().or_else(|| self.chip.torus.clone());
        chip.devices_per_node = self.chip.devices_per_node;
        chip.between_gb_per_s = self.chip.between;
        chip.usd_per_gb_per_s = self.chip.price_links;
        chip.usd_per_gb_per_s_between = self.chip.price_between;
        chip.usd_per_kwh = self.chip.kwh;
        chip.years = self.chip.years;
        chip.volume = self.chip.volume;
        chip.margin = self.chip.margin;
        file.space = self.space()?;
        Ok(file)
    }

    /// What the options say of the space; two that say different things of the same are refused.
    fn space(&self) -> Result<RawSpace, Refusal> {
        let hbm = self.hbm.as_ref().map(|sizes| ("--hbm", format!("hbm_gib={sizes}")));
        let area = self.chip.max_area.map(|mm2| ("--max-area", format!("max_area_mm2={mm2}")));
        let spaces = self.space.iter().map(|setting| ("--space", setting.clone()));
        let fixed = self.fix.iter().map(|setting| ("--fix", setting.clone()));
        let mut space = RawSpace::default();
        let mut said: Vec<(String, String)> = Vec::new();
        for (option, setting) in hbm.into_iter().chain(area).chain(spaces).chain(fixed) {
            let found = RawSpace::setting(option, &setting)?;
            let words = format!("{option} {setting}");
            if option == "--fix" && found.holds_several() {
                let problem =
                    format!("{words}: fixes a knob to one value; --space takes lists and ranges");
                return Err(Refusal::Options(problem));
            }
            for key in found.keys() {
                if let Some((_, before)) = said.iter().find(|(known, _)| known == key) {
                    let problem =
                        format!("{before} and {words} say the same `{key}`; give one of them");
                    return Err(Refusal::Options(problem));
                }
                said.push((key.to_owned(), words.clone()));
            }
            space = found.over(space);
        }
        Ok(space)
    }
}

/// What is said of a search that the user ended.
const INTERRUPTED: &str =
    "interrupted; everything evaluated so far is kept: repeat the command with --resume";

/// A model with the length of its sequences behind an `@`, where that is given.
fn model_entry(text: &str) -> ModelEntry {
    let entry = |name: &str, sequence| ModelEntry { name: name.into(), sequence, weight: None };
    let given = text.rsplit_once('@').and_then(|(name, tokens)| Some((name, tokens.parse().ok()?)));
    match given {
        Some((name, tokens)) if !name.is_empty() => entry(name, Some(tokens)),
        _ => entry(text, None),
    }
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
