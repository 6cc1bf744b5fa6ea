//! `phaze estimate`: how long a matmul, many of them, or all operators of a model take.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::ArgGroup;
use clap::Args as ClapArgs;

use super::DesignArgs;
use super::Exit;
use super::Refusal;
use super::model_args;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use super::model_args::ModelOptions;
use super::progress;
use phaze::estimate::EstimateTable;
use phaze::estimate::Options;
use phaze::estimate::TooLarge;
use phaze::estimate::many;
use phaze::estimate::roofline::Roofline;
use phaze::estimate::tensor_core::Scratch;
use phaze::estimate::tensor_core::best;
use phaze::graph::Dag;
use phaze::hardware::Cluster;
use phaze::hardware::Use;
use phaze::input::Conventions;
use phaze::input::InputError;
use phaze::input::jobs;
use phaze::input::jobs::Job;
use phaze::model::Precision;
use phaze::model::op::Homes;
use phaze::model::op::Op;
use phaze::parallel::Setting;
use phaze::parallel::shard;
use phaze::report::estimate::MatmulAnswer;
use phaze::report::estimate::OpAnswer;
use phaze::report::estimate::PassAnswer;
use phaze::report::estimate::model_text;
use phaze::report::estimate::model_value;
use phaze::store::files;
use phaze::units::Bytes;

/// A million points and more.
const LARGEST_FILE: u64 = 1 << 30;

/// Estimate how long operators take on an accelerator, by the best of all mappings.
#[derive(ClapArgs)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct Args {
    /// One matmul: batch x rows x inner x columns, as 1x2048x12288x12288
    #[arg(long, value_name = "BxMxKxN", group = "what")]
    matmul: Option<String>,
    /// A file of (matmul, core) points, one JSON object per line; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "what")]
    jobs: Option<PathBuf>,
    /// Every operator of a model: a built-in name or the path of a Hugging Face config.json
    #[arg(long, value_name = "MODEL", group = "what")]
    model: Option<String>,
    #[command(flatten)]
    design: DesignArgs,
    #[command(flatten)]
    options: ModelOptions,
    /// Sequences that pass through the model together
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_MICRO_BATCH))]
    micro_batch: u64,
    /// Devices that share each layer
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    tensor_parallel: u64,
    /// Give the matmul one core and its share of the global buffer instead of all
    #[arg(long, conflicts_with_all = ["jobs", "model"])]
    one_core: bool,
    /// Take up to this share longer than the fastest mapping if that saves energy
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, allow_negative_numbers = true)]
    energy_slack: f64,
    /// Use the published constants, vector costs and stored attention
    #[arg(long)]
    published: bool,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        if !(0.0..=10.0).contains(&self.energy_slack) {
            let message = format!("--energy-slack {}: allowed are 0 to 10", self.energy_slack);
            return Err(Refusal::Options(message));
        }
        match (&self.matmul, &self.jobs, &self.model) {
            (Some(matmul), ..) => self.one_matmul(matmul),
            (_, Some(path), _) => self.many_points(path),
            (.., Some(model)) => self.whole_model(model),
            _ => Err(Refusal::Options("give one of --matmul, --jobs and --model".into())),
        }
    }

    fn slack(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked first"
        )]
        let millionths = (self.energy_slack * 1e6).round() as u64;
        millionths
    }

    fn n_threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(all, usize::from)
    }

    fn one_matmul(&self, text: &str) -> Result<Exit, Refusal> {
        let (hardware, chip) = self.design.resolve(self.conventions())?;
        let matmul = jobs::matmul(text, "--matmul")?;
        let core = chip.tensor(if self.one_core { Use::Alone } else { Use::Spread });
        let answer = answer(&Job { matmul, core }, self.slack(), &mut Scratch::default())
            .ok_or_else(|| out_of_range("--matmul", text))?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut out, &answer.value())
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            answer.text(&hardware.name, &mut out)?;
            if chip.buffers_interpolated() {
                writeln!(
                    out,
                    "\nA buffer's size is not tabled: its energy is interpolated on a log scale."
                )?;
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn many_points(&self, path: &Path) -> Result<Exit, Refusal> {
        let (hardware, _) = self.design.resolve(self.conventions())?;
        let file = files::name(path);
        let jobs = jobs::jobs(&files::read(path, LARGEST_FILE)?, &file, &hardware)?;
        let slack = self.slack();
        let answers = progress::shown("estimates", jobs.len(), |done| {
            many::each(&jobs, self.n_threads(), done, |job| {
                SCRATCH.with_borrow_mut(|scratch| answer(job, slack, scratch))
            })
        });
        let answers: Vec<MatmulAnswer> = jobs
            .iter()
            .zip(answers)
            .map(|(job, answer)| {
                let m = job.matmul;
                let found = format!("{}x{}x{}x{}", m.b, m.m, m.k, m.n);
                answer.ok_or_else(|| out_of_range(&file, &found))
            })
            .collect::<Result<_, _>>()?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for answer in &answers {
            serde_json::to_writer(&mut out, &answer.value()).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn conventions(&self) -> &'static Conventions {
        Conventions::of(self.published)
    }

    fn whole_model(&self, name: &str) -> Result<Exit, Refusal> {
        let (hardware, chip) = self.design.resolve(self.conventions())?;
        let model = model_args::load(name)?;
        let setting = Setting {
            micro_batch: self.micro_batch,
            tensor_parallel: self.tensor_parallel,
            element: Bytes(hardware.physics.element_bytes),
            stack: chip.efficiency().stack(Precision::Bf16),
            ..self.options.setting(&model, self.conventions())
        };
        let share = shard(&model, setting)
            .map_err(|illegal| Refusal::Options(format!("{name}: {illegal}")))?;
        let vector_costs = self.conventions().vector_costs;
        let table = EstimateTable::new(Options { vector_costs, energy_slack: self.slack() });
        let cluster =
            Cluster { devices: self.tensor_parallel, network: hardware.physics.reached_network() };
        let layers = share.kinds.iter().enumerate();
        let passes: Vec<(&str, u64, &'static str, &Dag<Op>)> = layers
            .flat_map(|(kind, layer)| {
                let occurs = share.sequence.iter().filter(|&&at| at == kind).count() as u64;
                [("forward", &layer.forward), ("backward", &layer.backward)]
                    .map(|(pass, graph)| (layer.name.as_str(), occurs, pass, graph))
            })
            .collect();
        let ops: Vec<&Op> = passes.iter().flat_map(|pass| pass.3.nodes()).collect();
        let answers = progress::shown("estimates", ops.len(), |done| {
            many::each(&ops, self.n_threads(), done, |op| {
                let costs = table.costs(op, &chip, &cluster)?;
                let too_large = || TooLarge(op.name.clone());
                let roofline = Roofline::of(op, &chip, vector_costs).ok_or_else(too_large)?;
                Ok(OpAnswer { op, costs, roofline })
            })
        });
        let answers: Result<Vec<OpAnswer>, TooLarge> = answers.into_iter().collect();
        let mut answers =
            answers.map_err(|reason| Refusal::Options(format!("{name}: {reason}")))?.into_iter();
        let passes: Vec<PassAnswer> = passes
            .into_iter()
            .map(|(layer, occurs, pass, graph)| PassAnswer {
                layer,
                occurs,
                pass,
                operators: answers.by_ref().take(graph.len()).collect(),
            })
            .collect();
        let title = format!(
            "{name} on {}: sequence {}, micro-batch {}, tensor parallel {}",
            hardware.name, setting.sequence, setting.micro_batch, setting.tensor_parallel
        );
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut out, &model_value(&title, &passes))
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            model_text(&title, &passes, &mut out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

thread_local! {
    static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::new(Scratch::default());
}

fn answer(job: &Job, slack: u64, scratch: &mut Scratch) -> Option<MatmulAnswer> {
    let Job { matmul, core } = *job;
    let (mapping, cost) = best(&matmul, Homes::ALL_HBM, &core, slack, scratch)?;
    Some(MatmulAnswer { matmul, core, mapping, cost })
}

fn out_of_range(file: &str, found: &str) -> InputError {
    InputError::Value {
        file: file.to_owned(),
        field: "matmul".into(),
        found: found.to_owned(),
        problem: "moves 2^64 bytes or more whatever the mapping".into(),
        allowed: "give a smaller matmul or larger buffers".into(),
    }
}
