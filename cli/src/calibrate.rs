//! `phaze calibrate`: a hardware file whose efficiency is fitted to measured runs.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::validate;
use phaze::hardware::Efficiency;
use phaze::hardware::efficiency::Calibration;
use phaze::input::efficiency;
use phaze::input::hardware;
use phaze::input::hardware::Hardware;
use phaze::input::source;
use phaze::measure::Bench;
use phaze::measure::Blocks;
use phaze::measure::Choice;
use phaze::measure::Fit;
use phaze::measure::Ranges;
use phaze::measure::Split;
use phaze::measure::identifiable;
use phaze::model::Precision;
use phaze::report::validation as report;
use phaze::report::validation::Titled;
use phaze::store::files;

/// Fit what hardware and software reach of the data sheet to measured training runs, and write a
/// hardware file that place and search take.
#[derive(ClapArgs)]
pub struct Args {
    /// Files of measured runs, see docs/fidelity.md
    #[arg(value_name = "RUNS.csv", required = true)]
    files: Vec<PathBuf>,
    /// The hardware that the runs are of, and whose data sheet is kept: a built-in accelerator or a
    /// hardware file [default: what the runs name]
    #[arg(long, value_name = "NAME|FILE")]
    hardware: Option<String>,
    /// Use runs of this software alone
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// Use runs of this precision alone: bf16 or fp8
    #[arg(long, value_name = "NAME")]
    precision: Option<String>,
    /// Which scalars are fitted: 1, 2, or names (matmul, memory, attention, `collective_us`), at
    /// most two [default: matmul, and memory where there are runs of three models]
    #[arg(long, value_name = "LIST")]
    scalars: Option<String>,
    /// What the file says of when the runs were made
    #[arg(long, value_name = "TEXT")]
    date: Option<String>,
    /// Write the hardware file there
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let choice = self.scalars.as_deref().map_or(Ok(Choice::Usual), validate::choice)?;
        let mut table = validate::read(&self.files)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for reason in &table.refused {
            writeln!(out, "refused: {reason}")?;
        }
        table.refused.clear();
        let mut runs = validate::measured(table, &mut out)?;
        runs.retain(|(run, _)| run.seconds.is_some());
        if let Some(stack) = &self.stack {
            runs.retain(|(run, _)| run.stack == *stack);
        }
        let name =
            self.name(&runs.iter().map(|(run, _)| run.hardware.as_str()).collect::<Vec<_>>())?;
        runs.retain(|(run, _)| self.hardware.is_none() || run.hardware == name);
        let precision =
            self.precision(&runs.iter().map(|(r, _)| r.precision).collect::<Vec<_>>())?;
        runs.retain(|(run, _)| run.precision == precision);
        let (base, text) = source::hardware(&name, "--hardware", &|path| files::small(path))?;
        let bench = Bench::new(runs, &[]);
        for (run, reason) in &bench.left_out {
            let (model, strategy) = (&run.model_name, run.strategy());
            writeln!(out, "not used: {}: {model} {strategy}: {reason}", run.place)?;
        }
        let at: Vec<usize> = (0..bench.runs.len()).collect();
        let scalars = choice.scalars(&bench, &at);
        if let Choice::Given(asked) = &choice {
            for &scalar in asked {
                identifiable(&bench, &at, scalar).map_err(Refusal::Options)?;
            }
        }
        let Some(fit) = bench.fit(&at, &scalars, Ranges::Found) else {
            return Err(Refusal::Options("no run is left to fit to".into()));
        };
        let calibration = self.tell(&bench, (&base, precision), &choice, &fit, &mut out)?;
        if let Some(path) = &self.out {
            let text = text.or_else(|| hardware::preset_text(&name).map(str::to_owned));
            let text = text.unwrap_or_default();
            let written = written(&text, &bench, (&base, precision), &fit, calibration);
            files::write(path, written.as_bytes())?;
            writeln!(out, "\nwrote {}", files::name(path))?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    /// The hardware of the runs.
    fn name(&self, found: &[&str]) -> Result<String, Refusal> {
        if let Some(name) = &self.hardware {
            return if found.contains(&name.as_str()) {
                Ok(name.clone())
            } else {
                let mut known = found.to_vec();
                known.sort_unstable();
                known.dedup();
                Err(Refusal::Options(format!(
                    "--hardware: no timed run is of `{name}`; there are runs of {}",
                    known.join(", ")
                )))
            };
        }
        match found {
            [] => Err(Refusal::Options("no timed run is left to fit to".into())),
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                Ok((*first).to_owned())
            }
            _ => {
                let message = "the runs are of several accelerators: name one with --hardware";
                Err(Refusal::Options(message.into()))
            }
        }
    }

    /// The precision of the runs.
    fn precision(&self, found: &[Precision]) -> Result<Precision, Refusal> {
        if let Some(name) = &self.precision {
            return Precision::named(name).filter(|known| found.contains(known)).ok_or_else(|| {
                Refusal::Options(format!("--precision: no timed run is in `{name}`"))
            });
        }
        match found {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(*first),
            _ => {
                let message = "the runs are in several precisions: name one with --precision";
                Err(Refusal::Options(message.into()))
            }
        }
    }

    /// Says how well the fit does, and answers what the file says of it.
    fn tell(
        &self,
        bench: &Bench,
        (base, precision): (&Hardware, Precision),
        choice: &Choice,
        fit: &Fit,
        out: &mut dyn Write,
    ) -> Result<Calibration, Refusal> {
        let at: Vec<usize> = (0..bench.runs.len()).collect();
        let mut stacks: Vec<&str> = bench.runs.iter().map(|one| one.run.stack.as_str()).collect();
        stacks.sort_unstable();
        stacks.dedup();
        let stack = stacks.join(", ");
        writeln!(out, "{} in {}: {stack}", base.name, precision.name())?;
        if stacks.len() > 1 {
            writeln!(out, "one block for all of these stacks")?;
        }
        report::scalars(fit, out)?;
        for over in at.iter().filter(|&&at| !bench.predict(at, fit.scalars).fits) {
            let run = &bench.runs[*over].run;
            let (model, strategy) = (&run.model_name, run.strategy());
            writeln!(out, "more memory than the device has, by our account: {model} {strategy}")?;
        }
        let blocks = Blocks::AcrossStacks;
        let find = |split: Split, said: &str| Titled {
            set: "these runs".into(),
            split: said.into(),
            found: phaze::measure::validate(bench, &at, &split, blocks, choice),
        };
        let mut all = vec![find(Split::InSample, "in sample")];
        let left_out = find(Split::LeaveOneModelOut, "all but one model");
        let interval = left_out.found.interval_80(bench);
        if left_out.found.time.is_some() {
            all.push(left_out);
        }
        writeln!(out)?;
        report::table(&all, out)?;
        match interval {
            Some([low, high]) => {
                let [low, high] = [low, high].map(|part| f64::from(part) / 10.0);
                writeln!(
                    out,
                    "four of five measured times are {low} to {high} % of the predicted ones"
                )?;
            }
            None => writeln!(out, "no interval: there are too few models to leave one out")?,
        }
        let runs = fit.runs as u64;
        Ok(Calibration { precision, stack, runs, date: self.date.clone(), interval })
    }
}

/// The text of the hardware file with its block fitted.
fn written(
    text: &str,
    bench: &Bench,
    (base, precision): (&Hardware, Precision),
    fit: &Fit,
    calibration: Calibration,
) -> String {
    let given = bench.runs.first().map_or(Efficiency::IDEAL, |one| one.machine.physics.efficiency);
    let kernels = bench.runs.first().map_or(given.kernels, |one| one.run.kernels);
    let found = Efficiency { kernels, ..fit.scalars.applied(&given, precision) };
    let mut calibrations: Vec<Calibration> = base.physics.calibrations.clone();
    calibrations.retain(|other| other.precision != precision);
    calibrations.push(calibration);
    let fitted = |key: &str| {
        let key = if key == "matmul_fp8" { "matmul" } else { key };
        fit.fitted.iter().any(|one| one.scalar.name() == key && !one.is_loose)
    };
    let own_matmul = match precision {
        Precision::Bf16 => "matmul",
        Precision::Fp8 => "matmul_fp8",
    };
    let notes = |key: &str| match key {
        "matmul" | "matmul_fp8" if key != own_matmul => "not of these runs",
        "kernels" => "",
        _ if fitted(key) => "fitted",
        "memory" | "attention" => "usual, not fitted",
        _ => "given",
    };
    efficiency::replaced(text, &efficiency::block((&found, base.fp8), &calibrations, &notes))
}
