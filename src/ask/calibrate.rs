//! A hardware file whose efficiency is fitted to measured runs.

use std::io;
use std::io::Write;
use std::path::PathBuf;

use super::Keywords;
use super::Refusal;
use super::Spelling;
use super::validate::choice;
use super::validate::measured;
use super::validate::read_runs;
use crate::hardware::Efficiency;
use crate::hardware::efficiency::Calibration;
use crate::input::InputError;
use crate::input::efficiency;
use crate::input::hardware;
use crate::input::hardware::Hardware;
use crate::input::source;
use crate::input::source::Reader;
use crate::measure::Bench;
use crate::measure::Blocks;
use crate::measure::Choice;
use crate::measure::Fit;
use crate::measure::Ranges;
use crate::measure::Split;
use crate::measure::identifiable;
use crate::model::Precision;
use crate::report::validation as report;
use crate::report::validation::Titled;

/// What is fitted to which runs.
#[derive(Clone, Debug, Default)]
pub struct CalibrateRequest {
    /// Files of measured runs.
    pub files: Vec<PathBuf>,
    /// The hardware that the runs are of; `None` for what they name.
    pub hardware: Option<String>,
    /// Use runs of this software alone.
    pub stack: Option<String>,
    /// Use runs of this precision alone.
    pub precision: Option<String>,
    /// Which scalars are fitted.
    pub scalars: Option<String>,
    /// What the file says of when the runs were made.
    pub date: Option<String>,
    /// How it was written.
    pub spelling: Spelling,
}

/// What was fitted.
pub struct Calibrated {
    /// What was refused or not used, how well the fit does, and between what most times lie.
    pub told: String,
    /// The hardware file, with its block of efficiency fitted.
    pub hardware: String,
    /// The fit.
    pub fit: Fit,
}

impl CalibrateRequest {
    /// What the keywords ask of these files.
    ///
    /// # Errors
    /// What is not known or of another kind.
    pub fn read(files: Vec<PathBuf>, mut given: Keywords) -> Result<Self, InputError> {
        let request = Self {
            files,
            hardware: given.take("hardware")?,
            stack: given.take("stack")?,
            precision: given.take("precision")?,
            scalars: given.take("scalars")?,
            date: given.take("date")?,
            spelling: Spelling::Keywords,
        };
        given.end()?;
        Ok(request)
    }

    /// Fits; `read` opens files of runs and what they name.
    ///
    /// # Errors
    /// What cannot be read, is not known, or that no run is left.
    pub fn answer(&self, read: &Reader) -> Result<Calibrated, Refusal> {
        let scalars = self.scalars.as_deref();
        let choice =
            scalars.map_or(Ok(Choice::Usual), |text| choice(text, &self.spelling.of("scalars")))?;
        if self.files.is_empty() {
            return Err(Refusal::Options("give a file of measured runs".into()));
        }
        let table = read_runs(&self.files, read)?;
        let mut notes: Vec<String> =
            table.refused.iter().map(|reason| format!("refused: {reason}")).collect();
        let mut runs = measured(table, &mut notes);
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
        let (base, text) = source::hardware(&name, &self.spelling.of("hardware"), read)?;
        let bench = Bench::new(runs, &[]);
        notes.extend(bench.left_out.iter().map(|(run, reason)| {
            format!("not used: {}: {} {}: {reason}", run.place, run.model_name, run.strategy())
        }));
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
        let mut told = notes.iter().flat_map(|note| [note.as_bytes(), b"\n"]).flatten().copied();
        let mut told: Vec<u8> = told.by_ref().collect();
        let calibration = self
            .tell(&bench, (&base, precision), &choice, &fit, &mut told)
            .expect("memory takes what is written");
        let text = text.or_else(|| hardware::preset_text(&name).map(str::to_owned));
        let text = text.unwrap_or_default();
        let hardware = written(&text, &bench, (&base, precision), &fit, calibration);
        let told = String::from_utf8(told).expect("what is told is text");
        Ok(Calibrated { told, hardware, fit })
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
                    "{}: no timed run is of `{name}`; there are runs of {}",
                    self.spelling.of("hardware"),
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
                let hardware = self.spelling.of("hardware");
                Err(Refusal::Options(format!(
                    "the runs are of several accelerators: name one with {hardware}"
                )))
            }
        }
    }

    /// The precision of the runs.
    fn precision(&self, found: &[Precision]) -> Result<Precision, Refusal> {
        if let Some(name) = &self.precision {
            return Precision::named(name).filter(|known| found.contains(known)).ok_or_else(|| {
                let precision = self.spelling.of("precision");
                Refusal::Options(format!("{precision}: no timed run is in `{name}`"))
            });
        }
        match found {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(*first),
            _ => {
                let precision = self.spelling.of("precision");
                Err(Refusal::Options(format!(
                    "the runs are in several precisions: name one with {precision}"
                )))
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
    ) -> io::Result<Calibration> {
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
            found: crate::measure::validate(bench, &at, &split, blocks, choice),
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
        "memory" | "attention" | "grouped" => "usual, not fitted",
        _ => "given",
    };
    efficiency::replaced(text, &efficiency::block((&found, base.fp8), &calibrations, &notes))
}
