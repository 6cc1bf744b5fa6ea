//! Request files of `phaze search`: what users write, with everything optional.
//!
//! Options of the command line are another such file, laid over the first. [`RequestFile::over`]
//! joins them and [`RequestFile::complete`] fills in defaults and checks every figure.

use serde::Deserialize;

use super::InputError;
use super::numbers::Field;
use super::numbers::syntax;
use super::space::RawSpace;
use crate::model::Optimizer;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::search::Combine;
use crate::search::Objective;
use crate::search::Request;
use crate::search::Source;
use crate::search::SpaceRequest;

/// A commented example that holds every key.
pub const EXAMPLE: &str = include_str!("../../inputs/requests/example.toml");

/// The schema of request files, for editors.
pub const SCHEMA: &str = include_str!("../../inputs/requests/request.schema.json");

/// What a user asks for; what is left out has a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct RequestFile {
    pub model: Vec<ModelEntry>,
    pub published: Option<bool>,
    pub hardware: Option<String>,
    pub job: JobTable,
    pub space: RawSpace,
    pub search: SearchTable,
}

/// A model to train, as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct ModelEntry {
    pub name: String,
    pub sequence: Option<u64>,
    pub weight: Option<f64>,
}

/// How it is trained, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct JobTable {
    pub devices: Option<u64>,
    pub global_batch: Option<u64>,
    pub micro_batches: Option<Vec<u64>>,
    pub tensor_parallel: Option<Vec<u64>>,
    pub recompute: Option<Vec<String>>,
    pub optimizer: Option<String>,
    pub attention: Option<String>,
    pub sequence_parallel: Option<bool>,
    pub time_model: Option<String>,
    pub rule: Option<String>,
}

/// What counts as best and how far to go, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct SearchTable {
    pub objective: Option<String>,
    pub combine: Option<String>,
    pub top: Option<u64>,
    pub pareto: Option<bool>,
    pub exhaustive: Option<bool>,
    pub power_cap_w: Option<f64>,
}

/// Takes each field of `$over` where it is set, else that of `$under`.
macro_rules! overlay {
    ($over:expr, $under:expr; $($name:ident),+) => {
        $( $under.$name = $over.$name.or($under.$name.take()); )+
    };
}

impl RequestFile {
    /// Reads the text of a request file that goes by the name `file`.
    pub fn read(text: &str, file: &str) -> Result<Self, InputError> {
        toml::from_str(text).map_err(|error| syntax(&error, text, file))
    }

    /// This file laid over another: what it sets counts.
    #[must_use]
    pub fn over(self, mut under: Self) -> Self {
        if !self.model.is_empty() {
            under.model = self.model;
        }
        under.published = self.published.or(under.published);
        under.hardware = self.hardware.or(under.hardware);
        overlay!(self.job, under.job; devices, global_batch, micro_batches, tensor_parallel, recompute,
            optimizer, attention, sequence_parallel, time_model, rule);
        under.space = self.space.over(under.space);
        overlay!(self.search, under.search; objective, combine, top, pareto, exhaustive, power_cap_w);
        under
    }

    /// The whole question but its models, whose files the caller reads; `file` is what errors
    /// refer to.
    pub fn complete(&self, file: &str) -> Result<Request, InputError> {
        let check = Check { file };
        let published = self.published.unwrap_or(false);
        let job = &self.job;
        let devices = check.whole("job.devices", job.devices.unwrap_or(1024), 1, 1 << 24)?;
        let global_batch =
            check.whole("job.global_batch", job.global_batch.unwrap_or(4096), 1, 1 << 24)?;
        let micro_batches = check.list(
            "job.micro_batches",
            job.micro_batches.as_deref().unwrap_or(&[1, 2, 4, 8]),
            (1, 1 << 16),
        )?;
        if let Some(odd) = micro_batches.iter().find(|&&size| global_batch % size != 0) {
            let problem = format!("does not divide `job.global_batch = {global_batch}`");
            let allowed = "give divisors of the batch";
            return Err(Field::new(file, "job.micro_batches").value(
                &odd.to_string(),
                &problem,
                allowed,
            ));
        }
        let search = &self.search;
        Ok(Request {
            models: Vec::new(),
            hardware: Source {
                name: self
                    .hardware
                    .clone()
                    .unwrap_or_else(|| if published { "icml24" } else { "tpuv4-like" }.to_owned()),
                text: None,
            },
            devices,
            global_batch,
            micro_batches,
            tensor_parallel: check.list(
                "job.tensor_parallel",
                job.tensor_parallel.as_deref().unwrap_or(&[1, 2, 4, 8]),
                (1, 1 << 16),
            )?,
            recompute: check.recompute(job.recompute.as_deref())?,
            optimizer: check.one_of(
                "job.optimizer",
                job.optimizer.as_deref().unwrap_or(if published { "sgd" } else { "adam-mixed" }),
                &Optimizer::ALL.map(Optimizer::name),
            )?,
            attention: check.one_of(
                "job.attention",
                job.attention.as_deref().unwrap_or(if published { "stored" } else { "recomputed" }),
                &["stored", "recomputed"],
            )?,
            sequence_parallel: job.sequence_parallel.unwrap_or(false),
            time_model: check.time_model(job.time_model.as_deref(), published)?,
            rule: check.one_of(
                "job.rule",
                job.rule.as_deref().unwrap_or(if published { "alone" } else { "own-kind" }),
                &["alone", "own-kind"],
            )?,
            published_vector_costs: published,
            space: SpaceRequest::from(&self.space.checked(file)?),
            objective: check.objective(search.objective.as_deref())?,
            combine: check.combine(search.combine.as_deref())?,
            top: usize::try_from(check.whole("search.top", search.top.unwrap_or(1), 1, 10_000)?)
                .expect("ten thousand fit"),
            pareto: search.pareto.unwrap_or(false),
            exhaustive: search.exhaustive.unwrap_or(false),
            power_cap_w: match search.power_cap_w {
                Some(watts) if !(watts.is_finite() && watts > 0.0) => {
                    let field = Field::new(file, "search.power_cap_w");
                    return Err(field.value(
                        &watts.to_string(),
                        "is no power",
                        "give watts above 0",
                    ));
                }
                cap => cap,
            },
        })
    }
}

/// Checks of single values, which refer to one file.
struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn whole(&self, field: &str, found: u64, low: u64, high: u64) -> Result<u64, InputError> {
        Field::new(self.file, field).whole(found, low, high)
    }

    /// A list within a range, ascending, each once.
    fn list(
        &self,
        field: &str,
        found: &[u64],
        (low, high): (u64, u64),
    ) -> Result<Vec<u64>, InputError> {
        if found.is_empty() {
            return Err(Field::new(self.file, field).missing("give at least one value"));
        }
        for &value in found {
            self.whole(field, value, low, high)?;
        }
        let mut list = found.to_vec();
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }

    fn one_of(&self, field: &str, found: &str, known: &[&str]) -> Result<String, InputError> {
        if known.contains(&found) {
            return Ok(found.to_owned());
        }
        Err(InputError::Unknown {
            file: self.file.to_owned(),
            what: format!("`{field}`"),
            found: found.to_owned(),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    fn recompute(&self, found: Option<&[String]>) -> Result<Vec<Recompute>, InputError> {
        let Some(found) = found else { return Ok(Recompute::ALL.to_vec()) };
        let names = Recompute::ALL.map(|choice| choice.to_string());
        let mut known: Vec<&str> = names.iter().map(String::as_str).collect();
        known.push("auto");
        for name in found {
            self.one_of("job.recompute", name, &known)?;
        }
        if found.is_empty() {
            return Err(Field::new(self.file, "job.recompute").missing("give at least one choice"));
        }
        let wanted = |choice: &Recompute| {
            found.iter().any(|name| *name == choice.to_string() || name == "auto")
        };
        Ok(Recompute::ALL.into_iter().filter(wanted).collect())
    }

    fn time_model(&self, found: Option<&str>, published: bool) -> Result<TimeModel, InputError> {
        let default = if published { "published" } else { "1f1b" };
        let name =
            self.one_of("job.time_model", found.unwrap_or(default), &["published", "1f1b"])?;
        Ok(if name == "1f1b" { TimeModel::OneForwardOneBackward } else { TimeModel::Published })
    }

    fn objective(&self, found: Option<&str>) -> Result<Objective, InputError> {
        let known = ["throughput", "throughput-per-area", "energy-per-token"];
        Ok(match self.one_of("search.objective", found.unwrap_or(known[0]), &known)?.as_str() {
            "throughput-per-area" => Objective::ThroughputPerArea,
            "energy-per-token" => Objective::EnergyPerToken,
            _ => Objective::Throughput,
        })
    }

    fn combine(&self, found: Option<&str>) -> Result<Combine, InputError> {
        let known = ["geomean", "mean", "min-regret"];
        Ok(match self.one_of("search.combine", found.unwrap_or(known[0]), &known)?.as_str() {
            "mean" => Combine::Mean,
            "min-regret" => Combine::MinRegret,
            _ => Combine::Geomean,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str) -> Result<Request, String> {
        let file = RequestFile::read(text, "r.toml").map_err(|error| error.to_string())?;
        file.complete("r.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_says_the_defaults() {
        let mut example = complete(EXAMPLE).unwrap();
        let default = complete("").unwrap();
        // The example writes out what a default leaves to the hardware file.
        example.space.glb_bytes_per_cycle = Vec::new();
        assert_eq!(example, default);
    }

    #[test]
    fn the_schema_knows_the_keys_of_the_example() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let example: toml::Table = toml::from_str(EXAMPLE).unwrap();
        for (key, value) in &example {
            let property = &schema["properties"][key];
            assert!(property.is_object(), "{key}");
            let tables = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
            for table in tables.iter().filter_map(|table| table.as_table()) {
                let properties = if value.is_array() {
                    &property["items"]["properties"]
                } else {
                    &property["properties"]
                };
                for inner in table.keys() {
                    assert!(properties[inner].is_object(), "{key}.{inner}");
                }
            }
        }
    }

    #[test]
    fn what_lies_above_counts() {
        let below = RequestFile::read("[job]\ndevices = 8\nglobal_batch = 16", "a").unwrap();
        let above = RequestFile::read("[job]\ndevices = 4", "b").unwrap();
        let both = above.over(below).complete("a").unwrap();
        assert_eq!((both.devices, both.global_batch), (4, 16));
    }

    #[test]
    fn errors_name_the_field_and_what_is_allowed() {
        let cases = [
            ("[job]\ndevises = 3", "unknown field `devises`"),
            ("[job]\ndevices = 0", "`job.devices = 0` is out of range"),
            ("[job]\nmicro_batches = []", "`job.micro_batches` is missing"),
            ("[job]\nglobal_batch = 6\nmicro_batches = [4]", "does not divide"),
            ("[space]\nwidth = []", "has no value"),
            ("[search]\nobjective = \"througput\"", "did you mean `throughput`?"),
            ("[search]\npower_cap_w = -3.0", "is no power"),
        ];
        for (text, expected) in cases {
            let error = complete(text).unwrap_err();
            assert!(error.starts_with("r.toml: ") && error.contains(expected), "{error}");
        }
    }
}
