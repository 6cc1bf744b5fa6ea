//! How close predictions are to measured runs, by set and with models left out.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use super::Keywords;
use super::Refusal;
use super::Spelling;
use crate::input::InputError;
use crate::input::runs;
use crate::input::runs::RunTable;
use crate::input::source::Reader;
use crate::input::source::printable;
use crate::measure::Bench;
use crate::measure::Blocks;
use crate::measure::Choice;
use crate::measure::Figures;
use crate::measure::Machine;
use crate::measure::Predicted;
use crate::measure::Run;
use crate::measure::Scalar;
use crate::measure::Split;
use crate::measure::Term;
use crate::measure::on_a_line;
use crate::measure::validate;
use crate::report::validation::Titled;

/// Which predictions are compared with which runs.
#[derive(Clone, Debug, Default)]
pub struct ValidateRequest {
    /// Files of measured runs; none for all that come with phaze.
    pub files: Vec<PathBuf>,
    /// Fit on this set alone, and predict the set `on`.
    pub from: Option<String>,
    /// Predict this set.
    pub on: Option<String>,
    /// Which scalars are fitted.
    pub scalars: Option<String>,
    /// Terms that are left out.
    pub without: Vec<String>,
    /// How it was written.
    pub spelling: Spelling,
}

/// What was found.
pub struct Validations {
    /// What was refused or could not be predicted, and why.
    pub notes: Vec<String>,
    /// The runs.
    pub bench: Bench,
    /// Set by set and split by split.
    pub all: Vec<Titled>,
}

impl Validations {
    /// The figures for programs.
    pub fn value(&self) -> Value {
        let titled = |titled: &Titled| {
            let figures = |found: &Option<Figures>| found.as_ref().map(of_figures);
            json!({
                "set": titled.set,
                "fitted_on": titled.split,
                "time": figures(&titled.found.time),
                "memory": figures(&titled.found.memory),
                "baselines": titled.found.baselines.iter().map(figures).collect::<Vec<_>>(),
                "runs": titled.found.predicted.iter().map(|one| self.run(one)).collect::<Vec<_>>(),
            })
        };
        json!({ "notes": self.notes, "validations": self.all.iter().map(titled).collect::<Vec<_>>() })
    }

    fn run(&self, predicted: &Predicted) -> Value {
        let run = &self.bench.runs[predicted.at].run;
        json!({
            "place": run.place,
            "model": run.model_name,
            "hardware": run.hardware,
            "stack": run.stack,
            "strategy": run.strategy(),
            "devices": run.devices,
            "measured_s": run.seconds,
            "predicted_s": predicted.prediction.seconds,
            "measured_memory_gib": run.memory_gib,
            "predicted_memory_bytes": predicted.prediction.memory.0,
            "fits": predicted.prediction.fits,
        })
    }
}

fn of_figures(figures: &Figures) -> Value {
    let [low, high] = figures.interval;
    json!({
        "n": figures.n,
        "mean": figures.mean,
        "median": figures.median,
        "p90": figures.p90,
        "max": figures.max,
        "bias": figures.bias,
        "interval": [low, high],
    })
}

impl ValidateRequest {
    /// What the keywords ask of these files.
    ///
    /// # Errors
    /// What is not known or of another kind.
    pub fn read(files: Vec<PathBuf>, mut given: Keywords) -> Result<Self, InputError> {
        let request = Self {
            files,
            from: given.take("from")?,
            on: given.take("on")?,
            scalars: given.take("scalars")?,
            without: given.take("without")?.unwrap_or_default(),
            spelling: Spelling::Keywords,
        };
        given.end()?;
        Ok(request)
    }

    /// Predicts and compares; `read` opens files of runs and what they name.
    ///
    /// # Errors
    /// What cannot be read or is not known.
    pub fn answer(&self, read: &Reader) -> Result<Validations, Refusal> {
        if self.from.is_some() && self.on.is_none() {
            let (from, on) = (self.spelling.of("from"), self.spelling.of("on"));
            return Err(Refusal::Options(format!(
                "{from} says what is fitted on; {on} is missing"
            )));
        }
        let without =
            self.without.iter().map(|name| self.term(name)).collect::<Result<Vec<_>, _>>()?;
        let scalars = self.scalars.as_deref();
        let choice =
            scalars.map_or(Ok(Choice::Usual), |text| choice(text, &self.spelling.of("scalars")))?;
        let table = read_runs(&self.files, read)?;
        let mut notes: Vec<String> =
            table.refused.iter().map(|reason| format!("refused: {reason}")).collect();
        let bench = Bench::new(measured(table, &mut notes), &without);
        notes.extend(bench.left_out.iter().map(|(run, reason)| {
            format!("not predicted: {}: {} {}: {reason}", run.place, run.model_name, run.strategy())
        }));
        let all = self.validations(&bench, &choice)?;
        Ok(Validations { notes, bench, all })
    }

    fn validations(&self, bench: &Bench, choice: &Choice) -> Result<Vec<Titled>, Refusal> {
        let sets = sets(bench);
        let of_set = |name: &String| -> Result<Vec<usize>, Refusal> {
            let found = sets.iter().find(|(set, _)| set == name);
            found.map(|(_, at)| at.clone()).ok_or_else(|| {
                let known: Vec<&str> = sets.iter().map(|(set, _)| set.as_str()).collect();
                Refusal::Options(format!("no set `{name}`; there are {}", known.join(", ")))
            })
        };
        let find = |title: (&str, String), at: &[usize], split: Split, blocks: Blocks| Titled {
            set: title.0.to_owned(),
            split: title.1,
            found: validate(bench, at, &split, blocks, choice),
        };
        let across = Blocks::AcrossStacks;
        if let (Some(from), Some(on)) = (&self.from, &self.on) {
            let split = Split::From(of_set(from)?);
            return Ok(vec![find((on, from.clone()), &of_set(on)?, split, across)]);
        }
        let shown: Vec<&(String, Vec<usize>)> =
            sets.iter().filter(|(set, _)| self.on.as_ref().is_none_or(|on| on == set)).collect();
        if let Some(on) = &self.on {
            of_set(on)?;
        }
        let mut all = Vec::new();
        for (set, at) in &shown {
            let own = Blocks::ByStack;
            all.push(find((set, "in sample".into()), at, Split::InSample, own));
            let left_out =
                find((set, "all but one model".into()), at, Split::LeaveOneModelOut, own);
            if left_out.found.time.is_some() {
                all.push(left_out);
            }
        }
        for (i, (one, at)) in shown.iter().enumerate() {
            for (other, from) in shown.iter().filter(|(set, _)| set != one) {
                let split = Split::From(from.clone());
                let found = find((one, other.clone()), at, split, across);
                if found.found.time.is_some() && found.found.unfitted.is_empty() {
                    all.push(found);
                }
            }
            for (other, more) in &shown[i + 1..] {
                if shares_hardware(bench, at, more) {
                    let both: Vec<usize> = at.iter().chain(more).copied().collect();
                    let set = format!("{one} + {other}");
                    let title = (set.as_str(), "all but one model".to_owned());
                    all.push(find(title, &both, Split::LeaveOneModelOut, across));
                }
            }
        }
        Ok(all)
    }

    /// The term that a user calls `name`.
    fn term(&self, name: &str) -> Result<Term, Refusal> {
        let found = Term::ALL.iter().find(|(known, _)| *known == name).map(|(_, term)| *term);
        found.ok_or_else(|| {
            let known: Vec<&str> = Term::ALL.iter().map(|(known, _)| *known).collect();
            let place = self.spelling.of("without");
            Refusal::Options(format!("{place}: no term `{name}`; there are {}", known.join(", ")))
        })
    }
}

/// The sets of runs in the order in which they first occur.
fn sets(bench: &Bench) -> Vec<(String, Vec<usize>)> {
    let mut sets: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, one) in bench.runs.iter().enumerate() {
        match sets.iter_mut().find(|(set, _)| *set == one.run.set) {
            Some((_, places)) => places.push(at),
            None => sets.push((one.run.set.clone(), vec![at])),
        }
    }
    sets
}

fn shares_hardware(bench: &Bench, one: &[usize], other: &[usize]) -> bool {
    let key = |at: usize| (&bench.runs[at].run.hardware, bench.runs[at].run.precision);
    one.iter().any(|&a| other.iter().any(|&b| key(a) == key(b)))
}

/// The runs of all files, or those that come with phaze.
pub(super) fn read_runs(paths: &[PathBuf], read: &Reader) -> Result<RunTable, Refusal> {
    let read_file = |path: &Path| read(path);
    if paths.is_empty() {
        let (file, text) = runs::PUBLISHED;
        return Ok(runs::read(text, file, &read_file)?);
    }
    let mut all = RunTable::default();
    for path in paths {
        let found = runs::read(&read(path)?, &printable(&path.to_string_lossy()), &read_file)?;
        all.runs.extend(found.runs);
        all.refused.extend(found.refused);
    }
    Ok(all)
}

/// The runs that were measured: of data that was computed, all of its set is refused, with a note.
pub(super) fn measured(table: RunTable, notes: &mut Vec<String>) -> Vec<(Run, Machine)> {
    let mut runs = table.runs;
    let mut names: Vec<String> = runs.iter().map(|(run, _)| run.set.clone()).collect();
    names.dedup();
    for name in names {
        let own: Vec<&Run> = runs.iter().map(|(run, _)| run).filter(|r| r.set == name).collect();
        if let Some(places) = on_a_line(&own) {
            notes.push(format!(
                "refused: {name}: these times lie on one line, so they were computed, not measured: {}",
                places.join("; ")
            ));
            runs.retain(|(run, _)| run.set != name);
        }
    }
    runs
}

/// The scalars that a user asks for.
pub(super) fn choice(text: &str, place: &str) -> Result<Choice, Refusal> {
    let both = [Scalar::Matmul, Scalar::Memory];
    match text {
        "1" => return Ok(Choice::Given(both[..1].to_vec())),
        "2" => return Ok(Choice::Given(both.to_vec())),
        _ => {}
    }
    let mut scalars = Vec::new();
    for name in text.split(',').map(str::trim) {
        let known: Vec<&str> = Scalar::ALL.iter().map(|scalar| scalar.name()).collect();
        let scalar = Scalar::named(name).ok_or_else(|| {
            let known = known.join(", ");
            Refusal::Options(format!("{place}: `{name}` is no scalar; give 1, 2 or of {known}"))
        })?;
        if !scalars.contains(&scalar) {
            scalars.push(scalar);
        }
    }
    if scalars.len() > 2 || !scalars.contains(&Scalar::Matmul) {
        let message = "matmul is always fitted, and at most one other beside it";
        return Err(Refusal::Options(format!("{place}: {message}")));
    }
    scalars.sort_unstable();
    Ok(Choice::Given(scalars))
}
