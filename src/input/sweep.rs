//! Sweeps: one request with some of its keys varied, every combination a search.

use std::path::Path;

use serde::Deserialize;
use toml::Table;
use toml::Value;

use super::InputError;
use super::numbers::syntax;
use super::request::RequestFile;
use super::source;

/// The most searches of a sweep.
const MOST_POINTS: usize = 10_000;

/// A commented sweep file.
pub const EXAMPLE: &str = r#"# Every combination of the values below is searched: here twelve requests.
# `phaze sweep sweep.toml` writes sweep.csv, sweep.html and a folder for each search.

# The request that all have in common: the path of a file of `phaze search`, or its keys here, as
# [request.job], [request.chip] and [request.space]. What is not given has the default of a search; sizes in
# hbm_gib are those of the published space. Over chips budgets are varied as chip.tdp_w and space.max_area_mm2.
[request.job]
global_batch = 1024

[request.space]
hbm_gib = [32, 64]

# What is varied: keys of a request, each with the list of its values.
[vary]
model = ["bert-large", { name = "gpt2-xl", sequence = 1024 }]
job.devices = [256, 512, 1024]
space.max_area_mm2 = [200, 400]
"#;

/// A sweep file as it was written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepFile {
    request: Option<Base>,
    vary: Table,
}

/// What all searches have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Base {
    /// The path of a request file.
    File(String),
    /// Its keys.
    Keys(Table),
}

/// All searches of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The keys that vary, in the order of their columns.
    pub keys: Vec<String>,
    /// Every combination, the last key fastest.
    pub points: Vec<SweepPoint>,
}

/// One search of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// The values of the keys, as they are shown.
    pub values: Vec<String>,
    /// The request.
    pub request: RequestFile,
    /// What errors of the request refer to.
    pub name: String,
}

impl Sweep {
    /// Reads the text of a sweep file at `path`; `read` opens the request that it names.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn read(text: &str, path: &Path, read: &source::Reader) -> Result<Self, InputError> {
        let file = source::printable(&path.to_string_lossy());
        let found: SweepFile = toml::from_str(text).map_err(|error| syntax(&error, text, &file))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let base = match found.request {
            None => RequestFile::default(),
            Some(Base::Keys(keys)) => request_of(&keys, &file)?.beside(folder),
            Some(Base::File(name)) => {
                let path = folder.join(&name);
                let shown = source::printable(&path.to_string_lossy());
                let beside = path.parent().unwrap_or(Path::new(""));
                RequestFile::read(&read(&path)?, &shown)?.beside(beside)
            }
        };
        Self::of(&base, &found.vary, (&file, folder))
    }

    /// The sweep of a request over the keys of `vary`; errors refer to `file`, and paths start in `folder`.
    ///
    /// # Errors
    /// What is not known, or makes no sense.
    pub fn of(
        base: &RequestFile,
        vary: &Table,
        (file, folder): (&str, &Path),
    ) -> Result<Self, InputError> {
        let axes = axes(vary, file)?;
        let mut points = Vec::new();
        for choice in combinations(&axes, file)? {
            let pairs = || axes.iter().zip(&choice);
            let values: Vec<String> = pairs().map(|(axis, &at)| shown(&axis.values[at])).collect();
            let said =
                axes.iter().zip(&values).map(|(axis, value)| format!("{} = {value}", axis.key));
            let name = format!("{file}: {}", said.collect::<Vec<_>>().join(", "));
            let mut keys = Table::new();
            for (axis, &at) in pairs() {
                set(&mut keys, &axis.key, axis.values[at].clone());
            }
            let request = request_of(&keys, &name)?.beside(folder).over(base.clone());
            points.push(SweepPoint { values, request, name });
        }
        Ok(Self { keys: axes.into_iter().map(|axis| axis.key).collect(), points })
    }
}

/// A key of a request and the values that it takes.
struct Axis {
    key: String,
    values: Vec<Value>,
}

/// The keys that vary: models first, then by name.
fn axes(vary: &Table, file: &str) -> Result<Vec<Axis>, InputError> {
    let mut axes = Vec::new();
    gather("", vary, &mut axes);
    axes.sort_by_key(|axis: &Axis| (axis.key != "model", axis.key.clone()));
    let wrong = |field: String, found: &str, problem: &str| InputError::Value {
        file: file.into(),
        field,
        found: found.into(),
        problem: problem.into(),
        allowed: "a list of at least one value, each once, as job.devices = [256, 1024]".into(),
    };
    if axes.is_empty() {
        return Err(wrong("vary".into(), "nothing", "varies nothing"));
    }
    for (at, axis) in axes.iter().enumerate() {
        let field = || format!("vary.{}", axis.key);
        if axes[..at].iter().any(|other| other.key == axis.key) {
            return Err(wrong(field(), "two lists", "is there twice"));
        }
        if axis.values.is_empty() {
            return Err(wrong(field(), "[]", "has no value"));
        }
        for (at, value) in axis.values.iter().enumerate() {
            if axis.values[..at].iter().any(|other| alike(other, value)) {
                return Err(wrong(field(), &shown(value), "is there twice"));
            }
        }
    }
    Ok(axes)
}

/// Whether two values ask for the same.
fn alike(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    number(one)
        .zip(number(other))
        .map_or_else(|| shown(one) == shown(other), |(one, other)| one.total_cmp(&other).is_eq())
}

/// Every list in a table, under its dotted key; a single value is a list of one.
fn gather(prefix: &str, table: &Table, axes: &mut Vec<Axis>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) if key != "model" => gather(&key, inner, axes),
            Value::Array(values) => axes.push(Axis { key, values: values.clone() }),
            single => axes.push(Axis { key, values: vec![single.clone()] }),
        }
    }
}

/// For each combination, the place of the value of every axis; the last axis turns fastest.
fn combinations(axes: &[Axis], file: &str) -> Result<Vec<Vec<usize>>, InputError> {
    let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.values.len()));
    let Some(count) = count.filter(|&count| count <= MOST_POINTS) else {
        return Err(InputError::Value {
            file: file.into(),
            field: "vary".into(),
            found: count.map_or("too many to count".into(), |count| count.to_string()),
            problem: "has too many combinations".into(),
            allowed: format!("at most {MOST_POINTS}; vary fewer keys, or give fewer values"),
        });
    };
    let mut all = Vec::with_capacity(count);
    for mut number in 0..count {
        let mut places = vec![0; axes.len()];
        for (place, axis) in places.iter_mut().zip(axes).rev() {
            *place = number % axis.values.len();
            number /= axis.values.len();
        }
        all.push(places);
    }
    Ok(all)
}

/// Puts a value under a dotted key; a model is an entry of the list of models.
fn set(keys: &mut Table, key: &str, value: Value) {
    if key == "model" {
        let entry = match value {
            Value::Table(entry) => entry,
            name => Table::from_iter([("name".to_owned(), name)]),
        };
        keys.insert("model".into(), Value::Array(vec![Value::Table(entry)]));
        return;
    }
    match key.split_once('.') {
        None => {
            keys.insert(key.into(), value);
        }
        Some((section, rest)) => {
            let inner = keys.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

fn request_of(keys: &Table, file: &str) -> Result<RequestFile, InputError> {
    RequestFile::read(&toml::to_string(keys).unwrap_or_default(), file)
}

/// A value as a table shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => source::printable(text),
        Value::Table(entry) if entry.contains_key("from") && entry.contains_key("to") => {
            format!("{}..{}", shown(&entry["from"]), shown(&entry["to"]))
        }
        Value::Table(entry) => {
            let name = entry.get("name").map(shown).unwrap_or_default();
            let rest = entry.iter().filter(|(key, _)| *key != "name");
            let rest: Vec<String> =
                rest.map(|(key, value)| format!("{key} {}", shown(value))).collect();
            [vec![name], rest].concat().join(", ")
        }
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::source::no_files;

    fn read(text: &str) -> Result<Sweep, InputError> {
        Sweep::read(text, Path::new("sweeps/sweep.toml"), &no_files)
    }

    #[test]
    fn every_combination_is_a_request() {
        let sweep = read(EXAMPLE).unwrap();
        assert_eq!(sweep.keys, ["model", "job.devices", "space.max_area_mm2"]);
        assert_eq!(sweep.points.len(), 12);
        assert_eq!(sweep.points[1].values, ["bert-large", "256", "400"]);
        assert_eq!(sweep.points[11].values, ["gpt2-xl, sequence 1024", "1024", "400"]);
        let last = sweep.points[11].request.complete("sweep", &no_files).unwrap();
        assert_eq!((last.models[0].sequence, last.devices, last.global_batch), (1024, 1024, 1024));
        assert_eq!(last.space.max_area_nm2, 400_000_000_000_000);
        assert_eq!(last.space.hbm_gib, [32, 64]);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, expected) in [
            ("", "missing field `vary`"),
            ("[vary]\n", "varies nothing"),
            ("[vary]\njob.devices = []\n", "`vary.job.devices = []` has no value"),
            ("[vary]\njob.devices = [4, 4]\n", "is there twice"),
            ("[vary]\njob.device = [4]\n", "job.device = 4"),
            ("request = \"no.toml\"\n[vary]\njob.devices = [4]\n", "no.toml"),
            ("[vary]\nmodel = [{ nam = \"gpt2-xl\" }]\n", "nam"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let digits = "[0,1,2,3,4,5,6,7,8,9,10]";
        let keys = ["job.devices", "job.zero", "search.top", "job.global_batch"];
        let lines = keys.map(|key| format!("{key} = {digits}\n")).concat();
        let error = read(&format!("[vary]\n{lines}")).unwrap_err().to_string();
        assert!(error.contains("at most 10000"), "{error}");
    }
}
