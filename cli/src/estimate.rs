//! `phaze estimate`: how long a matmul, many of them, or all operators of a model take.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::ArgGroup;
use clap::Args as ClapArgs;

use super::DesignArgs;
use super::Exit;
use super::Refusal;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use super::model_args::ModelOptions;
use super::progress;
use phaze::ask::estimate::EstimateRequest;
use phaze::report::estimate::model_text;
use phaze::report::estimate::model_value;
use phaze::store::files;

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
        match (&self.matmul, &self.jobs, &self.model) {
            (Some(matmul), ..) => self.one_matmul(matmul),
            (_, Some(path), _) => self.many_points(path),
            (.., Some(model)) => self.whole_model(model),
            _ => Err(Refusal::Options("give one of --matmul, --jobs and --model".into())),
        }
    }

    fn n_threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(all, usize::from)
    }

    fn request(&self) -> Result<EstimateRequest, Refusal> {
        Ok(EstimateRequest {
            slack: EstimateRequest::slack_of(self.energy_slack, "--energy-slack")?,
            chip: self.design.request()?,
            published: self.published,
            threads: self.n_threads(),
        })
    }

    fn one_matmul(&self, text: &str) -> Result<Exit, Refusal> {
        let found = self.request()?.matmul(text, self.one_core, &files::small)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut out, &found.answer.value())
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            found.answer.text(&found.hardware.name, &mut out)?;
            if found.chip.buffers_interpolated() {
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
        let request = self.request()?;
        let file = files::name(path);
        let jobs = request.jobs(&files::read(path, LARGEST_FILE)?, &file, &files::small)?;
        let answers =
            progress::shown("estimates", jobs.len(), |done| request.points(&jobs, &file, done))?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for answer in &answers {
            serde_json::to_writer(&mut out, &answer.value()).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn whole_model(&self, name: &str) -> Result<Exit, Refusal> {
        let training =
            self.options.training(self.micro_batch, self.tensor_parallel, self.published);
        let estimate = self.request()?.model(name, &training, &files::small)?;
        let n_operators = estimate.n_operators();
        let passes = progress::shown("estimates", n_operators, |done| estimate.passes(done))?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut out, &model_value(&estimate.title, &passes))
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            model_text(&estimate.title, &passes, &mut out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
