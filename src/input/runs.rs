//! Files of measured runs: one run per line, under a heading with the names of the columns.
//!
//! A line that makes no sense is refused by itself, with its field; the others still count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::InputError;
use super::hardware::Hardware;
use super::numbers::Field;
use super::saved::records;
use super::source;
use super::source::Reader;
use super::source::printable;
use crate::measure::Machine;
use crate::measure::Repeated;
use crate::measure::Run;
use crate::model::Attention;
use crate::model::Kernels;
use crate::model::Model;
use crate::model::Precision;
use crate::parallel::zero::Zero;
use crate::plan::Job;

/// The runs that come with phaze.
pub const PUBLISHED: (&str, &str) =
    ("inputs/runs/published.csv", include_str!("../../inputs/runs/published.csv"));

/// What training stacks hide.
const STACKS: &str = include_str!("../../inputs/runs/stacks.toml");

/// Columns that every file has.
const NEEDED: [&str; 12] = [
    "set",
    "model",
    "hardware",
    "stack",
    "devices",
    "global_batch",
    "micro_batch",
    "sequence",
    "tensor",
    "pipeline",
    "data",
    "seconds",
];

/// Columns that a file may leave out, with what a run then has.
const OPTIONAL: [(&str, &str); 12] = [
    ("source", ""),
    ("sequence_parallel", "0"),
    ("context", "1"),
    ("chunks", "1"),
    ("expert", "1"),
    ("zero", "0"),
    ("recompute", "none"),
    ("attention", "fused"),
    ("precision", "bf16"),
    ("kernels", "megatron"),
    ("memory_gib", ""),
    ("note", ""),
];

/// Seconds and GiB that somebody may have measured.
const MEASURED: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// What a file holds.
#[derive(Default)]
pub struct RunTable {
    /// Runs that make sense, each on its machine.
    pub runs: Vec<(Run, Machine)>,
    /// Lines that do not, with the reason.
    pub refused: Vec<InputError>,
}

/// Reads the text of a file that goes by the name `file`; models and hardware that are files are
/// beside it.
///
/// # Errors
/// A heading that lacks a column or has one that is not known.
pub fn read(text: &str, file: &str, read: &Reader) -> Result<RunTable, InputError> {
    let mut lines = text.lines().enumerate();
    let mut lines = lines
        .by_ref()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(at, line)| (at + 1, line));
    let Some((at, heading)) = lines.next() else {
        return Err(Field::new(file, "heading").missing("give the names of the columns"));
    };
    let columns = columns(file, &cells(&format!("{file}: line {at}"), heading)?)?;
    let mut reader = RowReader { read, file, models: BTreeMap::new(), hardware: BTreeMap::new() };
    let mut table = RunTable::default();
    for (at, line) in lines {
        let place = format!("{file}: line {at}");
        match cells(&place, line).and_then(|cells| reader.run(&place, &columns, &cells)) {
            Ok(run) => table.runs.push(run),
            Err(reason) => table.refused.push(reason),
        }
    }
    Ok(table)
}

fn cells(place: &str, line: &str) -> Result<Vec<String>, InputError> {
    let found = records(place, line).map_err(|error| match error {
        InputError::Syntax { file, message, .. } => {
            InputError::Syntax { file, line: None, message }
        }
        other => other,
    })?;
    Ok(found.into_iter().next().map(|(_, cells)| cells).unwrap_or_default())
}

/// The names of the columns, in the order of the file.
fn columns(file: &str, heading: &[String]) -> Result<Vec<String>, InputError> {
    let optional = OPTIONAL.iter().map(|(name, _)| *name);
    let known: Vec<&str> = NEEDED.into_iter().chain(optional).collect();
    let columns: Vec<String> = heading.iter().map(|name| name.trim().to_owned()).collect();
    if let Some(found) = columns.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(InputError::Unknown {
            file: file.to_owned(),
            what: "column".into(),
            found: printable(found),
            known: known.iter().map(|&name| name.to_owned()).collect(),
        });
    }
    match NEEDED.iter().find(|name| !columns.iter().any(|column| column == *name)) {
        Some(name) => Err(Field::new(file, name).missing("the heading has a column of that name")),
        None => Ok(columns),
    }
}

struct RowReader<'a> {
    read: &'a Reader<'a>,
    file: &'a str,
    models: BTreeMap<String, Arc<Model>>,
    hardware: BTreeMap<String, Hardware>,
}

/// One line, by the names of its columns.
struct Row<'a> {
    place: &'a str,
    columns: &'a [String],
    cells: &'a [String],
}

impl Row<'_> {
    fn text(&self, name: &str) -> &str {
        let at = self.columns.iter().position(|column| column == name);
        let found = at.and_then(|at| self.cells.get(at)).map(|cell| cell.trim());
        let default = OPTIONAL.iter().find(|(known, _)| *known == name).map(|(_, usual)| *usual);
        match found {
            Some("") | None => default.unwrap_or(""),
            Some(text) => text,
        }
    }

    fn field(&self, name: &str) -> Field {
        Field::new(self.place, name)
    }

    fn wrong(&self, name: &str, problem: &str, allowed: &str) -> InputError {
        self.field(name).value(&printable(self.text(name)), problem, allowed)
    }

    fn count(&self, name: &str) -> Result<u64, InputError> {
        let text = self.text(name);
        if text.is_empty() {
            return Err(self.field(name).missing("give a whole number"));
        }
        let found = text
            .parse::<u64>()
            .map_err(|_| self.wrong(name, "is no whole number", "give a whole number from 1 on"))?;
        self.field(name).whole(found, 1, Job::LARGEST_COUNT)
    }

    /// A count that may be `?` where it is not known.
    fn known_count(&self, name: &str) -> Result<Option<u64>, InputError> {
        if self.text(name) == "?" { Ok(None) } else { self.count(name).map(Some) }
    }

    /// A measured figure, where there is one.
    fn measured(&self, name: &str) -> Result<Option<f64>, InputError> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        let found = text.parse::<f64>().ok().filter(|found| MEASURED.contains(found));
        let allowed = "give a number from 1e-9 to 1e9, or nothing";
        found.map(Some).ok_or_else(|| self.wrong(name, "is no measured figure", allowed))
    }

    fn one_of<T>(
        &self,
        name: &str,
        known: &[&str],
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, InputError> {
        find(self.text(name)).ok_or_else(|| {
            self.wrong(name, "is not known", &format!("allowed are {}", known.join(", ")))
        })
    }

    fn repeated(&self) -> Result<Repeated, InputError> {
        let known = ["none", "selective", "full", "full:K"];
        self.one_of("recompute", &known, |text| match text {
            "none" => Some(Repeated::Nothing),
            "selective" => Some(Repeated::Core),
            "full" => Some(Repeated::Layers),
            _ => text.strip_prefix("full:")?.parse().ok().map(Repeated::Some),
        })
    }
}

/// The kernel of attention that users call `name`.
pub fn attention(name: &str) -> Option<Attention> {
    match name {
        "fused" | "recomputed" => Some(Attention::Recomputed),
        "unfused" | "stored" => Some(Attention::Stored),
        _ => None,
    }
}

impl RowReader<'_> {
    fn run(
        &mut self,
        place: &str,
        columns: &[String],
        cells: &[String],
    ) -> Result<(Run, Machine), InputError> {
        let row = Row { place, columns, cells };
        if cells.len() != columns.len() {
            let expected = format!("{} cells, as many as the heading has", columns.len());
            let found = cells.len().to_string();
            return Err(row.field("cells").value(&found, "is another number of cells", &expected));
        }
        let model = self.model(&row)?;
        let flag = |text: &str| match text {
            "0" | "false" | "no" => Some(false),
            "1" | "true" | "yes" => Some(true),
            _ => None,
        };
        let zero = |text: &str| Zero::of_stage(text.parse().ok()?);
        let run = Run {
            place: place.to_owned(),
            set: printable(row.text("set")),
            source: printable(row.text("source")),
            model_name: printable(row.text("model")),
            model,
            hardware: printable(row.text("hardware")),
            stack: printable(row.text("stack")),
            devices: row.count("devices")?,
            global_batch: row.count("global_batch")?,
            micro_batch: row.known_count("micro_batch")?,
            sequence: row.count("sequence")?,
            tensor: row.count("tensor")?,
            sequence_parallel: row.one_of("sequence_parallel", &["0", "1"], flag)?,
            context: row.count("context")?,
            pipeline: row.count("pipeline")?,
            chunks: row.known_count("chunks")?.unwrap_or(1),
            data: row.count("data")?,
            expert: row.count("expert")?,
            zero: row.one_of("zero", &["0", "1", "2", "3"], zero)?,
            repeated: row.repeated()?,
            attention: row.one_of("attention", &["fused", "unfused"], attention)?,
            precision: row.one_of("precision", &["bf16", "fp8"], Precision::named)?,
            kernels: row.one_of("kernels", &["fused-ideal", "megatron"], Kernels::named)?,
            seconds: row.measured("seconds")?,
            memory_gib: row.measured("memory_gib")?,
            note: printable(row.text("note")),
        };
        consistent(&row, &run)?;
        let mut machine = self.machine(&row, run.precision)?;
        machine.physics.efficiency.kernels = run.kernels;
        Ok((run, machine))
    }

    /// What a name in the file means: a path starts where the file is.
    fn beside(&self, name: &str) -> String {
        let folder = Path::new(self.file).parent().unwrap_or(Path::new(""));
        source::beside(folder, name)
    }

    fn model(&mut self, row: &Row) -> Result<Arc<Model>, InputError> {
        let name = row.text("model");
        if let Some(known) = self.models.get(name) {
            return Ok(Arc::clone(known));
        }
        let (found, _) =
            source::model(&self.beside(name), self.read).map_err(|error| located(row, error))?;
        let found = Arc::new(found);
        self.models.insert(name.to_owned(), Arc::clone(&found));
        Ok(found)
    }

    /// The hardware of a run, with what its stack hides.
    fn machine(&mut self, row: &Row, precision: Precision) -> Result<Machine, InputError> {
        let name = row.text("hardware");
        if !self.hardware.contains_key(name) {
            let (found, _) = source::hardware(&self.beside(name), row.place, self.read)
                .map_err(|error| located(row, error))?;
            self.hardware.insert(name.to_owned(), found);
        }
        let found = &self.hardware[name];
        found.computes_in(precision, &row.field("precision"))?;
        let Hardware { design, physics, .. } = found;
        let mut physics = physics.clone();
        if let Some(hides) = stack(row.text("stack"))? {
            physics.efficiency.tensor_hidden = hides.tensor;
            physics.efficiency.gradients_hidden = Some(hides.gradients);
        }
        Ok(Machine { design: *design, physics })
    }
}

/// An error of a model or a hardware, with the line that named it.
fn located(row: &Row, error: InputError) -> InputError {
    match error {
        InputError::Unknown { what, found, known, .. } => {
            InputError::Unknown { file: row.place.to_owned(), what, found, known }
        }
        other => InputError::Syntax {
            file: row.place.to_owned(),
            line: None,
            message: other.to_string(),
        },
    }
}

/// Refuses numbers that contradict each other.
fn consistent(row: &Row, run: &Run) -> Result<(), InputError> {
    let degrees = [run.tensor, run.context, run.pipeline, run.data];
    let product = degrees.iter().fold(1_u64, |all, &degree| all.saturating_mul(degree));
    if product != run.devices {
        let problem = format!("is not tensor x context x pipeline x data = {product}");
        return Err(row.wrong("devices", &problem, "give degrees that multiply to the devices"));
    }
    let each = run.micro_batch.unwrap_or(1).saturating_mul(run.data);
    if !run.global_batch.is_multiple_of(each) {
        let problem = format!("is no multiple of micro_batch x data = {each}");
        return Err(row.wrong("global_batch", &problem, "give a batch of whole micro-batches"));
    }
    if run.seconds.is_none() && run.memory_gib.is_none() {
        return Err(row.field("seconds").missing("give seconds, memory_gib or both"));
    }
    Ok(())
}

/// What a stack hides, in thousandths.
struct Hides {
    tensor: u16,
    gradients: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStack {
    tp_hidden: f64,
    dp_hidden: f64,
}

/// What a stack of that name hides, where it is listed.
fn stack(name: &str) -> Result<Option<Hides>, InputError> {
    let file = "inputs/runs/stacks.toml";
    let all: BTreeMap<String, RawStack> =
        toml::from_str(STACKS).map_err(|error| super::numbers::syntax(&error, STACKS, file))?;
    let Some(raw) = all.get(name) else { return Ok(None) };
    let part = |key: &str, found: f64| {
        let thousandths = Field::new(file, key).scaled(found, 1e3, 0.0, 1.0)?;
        Ok::<u16, InputError>(u16::try_from(thousandths).unwrap_or(1000))
    };
    Ok(Some(Hides {
        tensor: part("tp_hidden", raw.tp_hidden)?,
        gradients: part("dp_hidden", raw.dp_hidden)?,
    }))
}
