//! `phaze plan`: from a model and devices to a run that can be started.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::Exit;
use super::Refusal;
use super::model_args::LARGEST_SEQUENCE;
use super::progress;
use phaze::advise::Advice;
use phaze::advise::Curve;
use phaze::advise::Row;
use phaze::ask::plan as planning;
use phaze::ask::plan::Batch;
use phaze::ask::plan::Context;
use phaze::ask::plan::OwnRequest;
use phaze::ask::plan::PlanAnswer;
use phaze::ask::plan::PlanRequest;
use phaze::input::InputError;
use phaze::input::batch::read_tokens;
use phaze::input::imbalance;
use phaze::input::launched;
use phaze::input::place::FASTEST_NETWORK;
use phaze::input::runs::attention;
use phaze::input::strategy;
use phaze::launch::Target;
use phaze::model::Attention;
use phaze::model::Precision;
use phaze::parallel::frameworks::Framework;
use phaze::report::advice as report;
use phaze::report::chakra;
use phaze::report::timeline;
use phaze::store::files;

/// Plan a run: whether a model fits, how to launch it, how fast it is, how long it takes, what it
/// costs, what would be better.
#[derive(ClapArgs)]
#[command(
    after_help = "Exit status 1 means that nothing fits; the answer names the limit and what \
                        was tried and makes it fit."
)]
pub struct Args {
    /// A built-in model (`phaze models` lists them) or the path of a Hugging Face config.json
    #[arg(required_unless_present = "from")]
    model: Option<String>,
    /// Devices and what they are: 256xh100-sxm; 8..1024xh100-sxm compares numbers of them
    #[arg(long, value_name = "NxNAME", visible_alias = "devices")]
    gpus: Option<String>,
    /// How many times as fast as the accelerator's every link is, for what would be
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=FASTEST_NETWORK))]
    network_times: Option<u64>,
    /// A run of your own: the flags of a Megatron script (.sh), a Megatron-Bridge recipe or a
    /// torchtitan configuration (.py), a `MaxText` file (.yml); what it will do and what is better
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Whose efficiency is assumed in place of the accelerator's own: ideal, simt, systolic, a
    /// built-in accelerator or a hardware file
    #[arg(long, value_name = "NAME|FILE")]
    efficiency: Option<String>,
    /// How much more than an even load the fullest device of a mixture of experts has: 1.2
    /// [default: what the configuration says, or 1.0]
    #[arg(long, value_name = "FACTOR")]
    imbalance: Option<f64>,
    /// Layers that are trained to tell the token after the next: 0 or 1 [default: what the
    /// configuration says]
    #[arg(long, value_name = "LAYERS")]
    mtp: Option<u64>,
    /// Tokens to train on: 2T, 300G [default: 20 for each parameter that a token visits]
    #[arg(long, value_name = "TOKENS")]
    tokens: Option<String>,
    /// Tokens in a batch, rounded to the nearest 2^k or 3·2^k sequences: 4M, 1.5G [default: 4M]
    #[arg(long, value_name = "TOKENS", conflicts_with = "global_batch")]
    batch_tokens: Option<String>,
    /// Sequences in a batch, exactly
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    global_batch: Option<u64>,
    /// Tokens in a sequence [default: what the model was made for, at most 8,192]
    #[arg(long, value_name = "TOKENS",
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_SEQUENCE))]
    seq: Option<u64>,
    /// In which numbers the matmuls of layers compute: bf16 or fp8 [default: bf16]
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(["bf16", "fp8"])
              .map(|name| Precision::named(&name).unwrap_or_default()))]
    precision: Option<Precision>,
    /// The kernel of attention: fused or unfused [default: fused]
    #[arg(long, value_name = "HOW",
          value_parser = PossibleValuesParser::new(["fused", "unfused", "recomputed", "stored"])
              .map(|name| attention(&name).unwrap_or(Attention::Recomputed)))]
    attention: Option<Attention>,
    /// A strategy, or a part of one, as in `phaze place`; what is not given is searched
    #[arg(long, value_name = "WORD,…")]
    strategy: Option<String>,
    /// Write the files that start the plan: megatron, bridge, nemo, torchtitan, maxtext; only plans
    /// that it accepts are chosen
    #[arg(long = "for", value_name = "NAME")]
    target: Option<String>,
    /// Only plans that this framework accepts, where nothing shall start them: megatron, torchtitan,
    /// maxtext, any [default: what the hardware file says]
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    launchable: Option<String>,
    /// Memory that plans leave free, in percent [default: 6]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    reserve: Option<f64>,
    /// Dollars that a device costs in an hour [default: what is published of it]
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    price: Option<f64>,
    /// Percent of the time in which the run makes progress [default: 95]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    goodput: Option<f64>,
    /// Watts of a device at work [default: its published design power]
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    watts: Option<f64>,
    /// Watts of the host for each of its devices: processors, network cards, fans [default: what is
    /// published of a node]
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    host_watts: Option<f64>,
    /// Power of the building over that of devices and hosts [default: 1.1]
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    pue: Option<f64>,
    /// Grams of carbon dioxide of a kilowatt-hour [default: 369]
    #[arg(long, value_name = "GRAMS", allow_negative_numbers = true)]
    carbon: Option<f64>,
    /// The longest that the run may take: 30d, 12h; the cheapest number of devices within it is told
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// Draw time and GPU-hours against numbers of devices
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Save the plan, its page and the files that start it into this directory; `phaze check` checks
    /// all of it
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Save the pipeline's timeline for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Save Chakra execution traces into this directory, one for each distinct rank
    #[arg(long, value_name = "DIRECTORY")]
    chakra: Option<PathBuf>,
}

/// How many rows are answered at once.
pub fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl Args {
    /// Answers on standard output and saves what was asked for.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let (request, model) = match &self.from {
            None => (self.request(None)?, None),
            Some(path) => self.own(path, &mut out)?,
        };
        let read = |path: &Path| match &model {
            Some(text) if path == Path::new(&request.model) => Ok(text.clone()),
            _ => files::small(path),
        };
        let context = Context { n_threads: n_threads(), ..Context::new(&read) };
        let several = request.devices.least < request.devices.most;
        let ended = if several {
            self.compare(&request, &context, &mut out)?
        } else {
            self.plan(&request, &context, None, &mut out)?
        };
        out.flush()?;
        Ok(ended)
    }

    /// Tells a plan at once, then what is beside it.
    fn plan(
        &self,
        request: &PlanRequest,
        context: &Context,
        curve: Option<&Curve>,
        out: &mut dyn Write,
    ) -> Result<Exit, Refusal> {
        let what = "looking for the best strategy";
        let answer = progress::timed(what, || planning::advise(request, context))?;
        let mut advice = match answer {
            PlanAnswer::Found(advice) => advice,
            PlanAnswer::Infeasible { reason, ways_out } => {
                let name = format!("{} on {}", request.model, request.hardware);
                if self.json {
                    let value = report::infeasible_value(&request.model, &reason, &ways_out);
                    writeln!(out, "{value:#}")?;
                } else {
                    report::infeasible(&name, &reason, &ways_out, out)?;
                }
                return Ok(Exit::Negative);
            }
        };
        let what = "looking for the fewest devices";
        advice.room = progress::timed(what, || planning::room(request, context))?;
        if !self.json {
            report::text(&advice, out)?;
            out.flush()?;
        }
        let (next, what_if) = beside(request, &advice, context)?;
        if self.json {
            let mut value = report::value(&advice, &next, &what_if);
            if let Some(curve) = curve {
                value["curve"] = report::curve_value(curve);
            }
            writeln!(out, "{value:#}")?;
        } else {
            report::rows("NEXT", &advice, &next, out)?;
            report::rows("WHAT IF", &advice, &what_if, out)?;
            report::command(&advice, out)?;
        }
        self.save(request, &advice, (&next, &what_if), curve)?;
        Ok(Exit::Done)
    }

    /// Compares numbers of devices, then tells the plan of the cheapest.
    fn compare(
        &self,
        request: &PlanRequest,
        context: &Context,
        out: &mut dyn Write,
    ) -> Result<Exit, Refusal> {
        let numbers = request.devices.each().len();
        let curve = progress::shown("comparing numbers of devices", numbers, |done| {
            planning::curve(request, context, n_threads(), done)
        })?;
        if !self.json {
            report::curve(&curve, out)?;
            if self.plot {
                report::plot(&curve, out)?;
            }
            writeln!(out)?;
        }
        self.plan(&request.on_the_best_of(&curve), context, Some(&curve), out)
    }

    /// Saves what was asked for.
    fn save(
        &self,
        request: &PlanRequest,
        advice: &Advice,
        rows: (&[Row], &[Row]),
        curve: Option<&Curve>,
    ) -> Result<(), Refusal> {
        if let Some(path) = &self.trace {
            let text = timeline::trace(&advice.plan).ok_or_else(|| {
                let most = timeline::MOST_PASSES;
                Refusal::Options(format!("--trace: a batch has more than {most} passes to show"))
            })?;
            files::write(path, text.as_bytes())?;
        }
        if let Some(directory) = &self.chakra {
            let traces = chakra::traces(&advice.plan)
                .map_err(|reason| Refusal::Options(format!("--chakra: {reason}")))?;
            made(directory)?;
            for trace in traces {
                let name = format!("trace.{}.et", trace.device);
                files::write(&directory.join(name), &trace.bytes)?;
            }
        }
        let Some(directory) = &self.out else { return Ok(()) };
        made(directory)?;
        for (name, text) in planning::saved_files(request, advice, rows, curve) {
            files::write(&directory.join(Path::new(&name)), text.as_bytes())?;
        }
        Ok(())
    }

    /// What a run of a user's own asks, with the configuration of its model.
    fn own(
        &self,
        path: &Path,
        out: &mut dyn Write,
    ) -> Result<(PlanRequest, Option<String>), Refusal> {
        let name = files::name(path);
        let own = launched::read(&files::small(path)?, &name)?;
        let asked = self.request(own.devices)?;
        let called = self.out.clone().unwrap_or_default().join("model.json");
        let called = called.to_string_lossy();
        let OwnRequest { request, model } = planning::own_request(&own, asked, (&name, &called))?;
        if !self.json {
            writeln!(out, "{name}: {} runs {}", own.target, request.strategy)?;
            for remark in &own.remarks {
                writeln!(out, "{remark}")?;
            }
            if model.is_some() && self.out.is_none() {
                writeln!(out, "Its model is called {called} in commands; --out saves it.")?;
            }
        }
        if let (Some(text), Some(directory)) = (&model, &self.out) {
            made(directory)?;
            files::write(&directory.join("model.json"), text.as_bytes())?;
        }
        Ok((request, model))
    }

    /// What the options ask, typed; `devices` is how many a run of a user's own has.
    fn request(&self, devices: Option<u64>) -> Result<PlanRequest, Refusal> {
        let Some(gpus) = &self.gpus else {
            let known = devices.unwrap_or(256);
            let problem = format!(
                "--gpus is missing: give the devices and what they are, such as {known}xh100-sxm"
            );
            return Err(Refusal::Options(problem));
        };
        let (devices, hardware) = planning::read_devices(gpus, "--gpus")?;
        let tokens =
            self.tokens.as_deref().map(|text| read_tokens(text, "--tokens")).transpose()?;
        let batch = match (&self.batch_tokens, self.global_batch) {
            (Some(text), _) => Batch::Tokens(read_tokens(text, "--batch-tokens")?),
            (None, Some(sequences)) => Batch::Sequences(sequences),
            (None, None) => Batch::Usual,
        };
        let given = match &self.strategy {
            Some(text) => strategy::read(text, "--strategy")?,
            None => phaze::plan::GivenStrategy::default(),
        };
        let deadline = self.deadline.as_deref();
        let deadline =
            deadline.map(|text| planning::read_seconds(text, "--deadline")).transpose()?;
        #[expect(clippy::cast_possible_wrap, reason = "it is at most 900")]
        let reserve =
            planning::read_scaled("--reserve", self.reserve, 10.0, (0.0, 90.0))?.map(|n| n as i64);
        Ok(PlanRequest {
            model: self.model.clone().unwrap_or_default(),
            hardware,
            efficiency: self.efficiency.clone(),
            imbalance_per_mille: self
                .imbalance
                .map(|factor| imbalance::read(factor, "--imbalance"))
                .transpose()?,
            next_tokens: self.mtp,
            devices,
            network_times: self.network_times,
            tokens,
            sequence: self.seq,
            batch,
            precision: self.precision.unwrap_or_default(),
            attention: self.attention,
            strategy: given,
            target: self.target.as_deref().map(target).transpose()?,
            framework: self.launchable.as_deref().map(framework).transpose()?,
            reserve_per_mille: reserve,
            price: planning::read_scaled("--price", self.price, 1e3, (0.0, 1e6))?,
            goodput_per_mille: planning::read_scaled(
                "--goodput",
                self.goodput,
                10.0,
                (1.0, 100.0),
            )?,
            watts: planning::read_scaled("--watts", self.watts, 1.0, (1.0, 1e6))?,
            host_watts: planning::read_scaled("--host-watts", self.host_watts, 1.0, (0.0, 1e6))?,
            pue_per_mille: planning::read_scaled("--pue", self.pue, 1e3, (1.0, 10.0))?,
            grams_per_kwh: planning::read_scaled("--carbon", self.carbon, 1.0, (0.0, 1e4))?,
            deadline,
        })
    }
}

/// Makes a directory where there is none.
fn made(directory: &Path) -> Result<(), Refusal> {
    std::fs::create_dir_all(directory)
        .map_err(|reason| Refusal::Unwritable { place: files::name(directory), reason })
}

/// What is asked next, and what would be if.
fn beside(
    request: &PlanRequest,
    advice: &Advice,
    context: &Context,
) -> Result<(Vec<Row>, Vec<Row>), Refusal> {
    let done = AtomicUsize::new(0);
    let what = "looking at what is beside it";
    Ok(progress::timed(what, || {
        let next = planning::next_rows(request, advice, context, (n_threads(), &done))?;
        let what_if = planning::what_if_rows(request, advice, context, (n_threads(), &done))?;
        Ok::<_, InputError>((next, what_if))
    })?)
}

fn target(name: &str) -> Result<Target, Refusal> {
    name.parse().map_err(|_| unknown("--for", name, &Target::ALL.map(Target::name)))
}

fn framework(name: &str) -> Result<Framework, Refusal> {
    let known = Framework::NAMES.map(|(name, _)| name);
    name.parse().map_err(|_| unknown("--launchable", name, &known))
}

fn unknown(file: &str, found: &str, known: &[&str]) -> Refusal {
    Refusal::from(InputError::Unknown {
        file: file.into(),
        what: "framework".into(),
        found: found.to_owned(),
        known: known.iter().map(|&name| name.to_owned()).collect(),
    })
}
