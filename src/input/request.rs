//! Request files of `phaze search`: what users write, with everything optional.
//!
//! Options of the command line are another such file, laid over the first. [`RequestFile::over`]
//! joins them, [`RequestFile::complete`] fills in defaults and reads what it names, and
//! [`setup_of`] makes the request ready to run. None of it opens a file: the caller hands over
//! how that is done.

use std::path::Path;

use serde::Deserialize;

use super::InputError;
use super::batch::LONGEST_DEFAULT_SEQUENCE;
use super::chip_space::ChipTable;
use super::chip_space::SpaceKind;
use super::conventions::Conventions;
use super::efficiency_choice;
use super::imbalance;
pub use super::made_ready::chip_setup_of;
pub use super::made_ready::chips_judged_by;
pub use super::made_ready::judged_by;
pub use super::made_ready::ready;
pub use super::made_ready::ready_chips;
pub use super::made_ready::real_parts;
pub use super::made_ready::setup_of;
use super::numbers::Field;
use super::numbers::syntax;
use super::place::ask_for;
use super::place::deal_out_experts;
use super::source;
use super::source::Reader;
use super::space;
use super::space::RawSpace;
pub use super::valid::validated;
pub use super::valid::validated_chips;
use super::words::COMBINES;
use super::words::OBJECTIVES;
use super::words::Words;
use crate::hardware::chip::ChipSpace;
use crate::model::Model;
use crate::model::Optimizer;
use crate::parallel::Setting;
use crate::parallel::frameworks::Framework;
use crate::parallel::legal_contexts;
use crate::parallel::legal_widths;
use crate::parallel::zero::Zero;
use crate::plan::Limits;
use crate::plan::Source;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::plan::schedule::Rule;
use crate::search::Combine;
use crate::search::ModelRequest;
use crate::search::Objective;
use crate::search::Request;

/// A commented example over chips that holds every key.
pub const EXAMPLE: &str = include_str!("../../inputs/requests/example.toml");

/// The same over the published space.
pub const PUBLISHED_EXAMPLE: &str = include_str!("../../inputs/requests/published.toml");

/// The schema of request files, for editors.
pub const SCHEMA: &str = include_str!("../../inputs/requests/request.schema.json");

/// The model of a request that names none: of the published space, and of chips.
const DEFAULT_MODEL: &str = "gpt2-xl";
const DEFAULT_CHIP_MODEL: &str = "llama3-8b";

/// What a user asks for; what is left out has a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct RequestFile {
    pub model: Vec<ModelEntry>,
    pub published: Option<bool>,
    pub hardware: Option<String>,
    pub efficiency: Option<String>,
    pub job: JobTable,
    pub space: RawSpace,
    pub chip: ChipTable,
    pub search: SearchTable,
}

/// A model to train, as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct ModelEntry {
    pub name: String,
    pub sequence: Option<u64>,
    pub weight: Option<f64>,
}

impl Default for ModelEntry {
    fn default() -> Self {
        Self { name: DEFAULT_MODEL.into(), sequence: None, weight: None }
    }
}

/// How it is trained, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
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
    pub context_parallel: Option<Vec<u64>>,
    pub expert_parallel: Option<Vec<u64>>,
    pub expert_tensor: Option<Vec<u64>>,
    pub imbalance: Option<f64>,
    pub mtp: Option<u64>,
    pub zero: Option<u64>,
    pub strategy: Option<String>,
    pub launchable: Option<String>,
    pub reserve: Option<f64>,
    pub time_model: Option<String>,
    pub rule: Option<String>,
}

/// What counts as best and how far to go, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[expect(missing_docs, reason = "the commented example describes every key")]
pub struct SearchTable {
    pub objective: Option<String>,
    pub combine: Option<String>,
    pub top: Option<u64>,
    pub pareto: Option<bool>,
    pub resolution_percent: Option<f64>,
    pub exhaustive: Option<bool>,
    pub table: Option<bool>,
    pub power_cap_w: Option<f64>,
    pub baselines: Option<Vec<String>>,
    pub why: Option<bool>,
    pub spotlight: Option<u64>,
    pub robust: Option<bool>,
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

    /// Reads a request that was never text; `file` is what errors refer to.
    pub fn from_table(table: toml::Table, file: &str) -> Result<Self, InputError> {
        Self::deserialize(toml::Value::Table(table)).map_err(|error| InputError::Syntax {
            file: file.to_owned(),
            line: None,
            message: error.to_string().trim_end().replace('\n', " "),
        })
    }

    /// This file laid over another: what it sets counts.
    #[must_use]
    pub fn over(self, mut under: Self) -> Self {
        if !self.model.is_empty() {
            under.model = self.model;
        }
        under.published = self.published.or(under.published);
        under.hardware = self.hardware.or(under.hardware);
        under.efficiency = self.efficiency.or(under.efficiency);
        overlay!(self.job, under.job; devices, global_batch, micro_batches, tensor_parallel, recompute,
            optimizer, attention, sequence_parallel, context_parallel, expert_parallel, expert_tensor,
            imbalance, mtp, zero, strategy, launchable, reserve, time_model, rule);
        under.space = self.space.over(under.space);
        overlay!(self.chip, under.chip; process_nm, precision, memory, tdp_w, price_usd, network,
            devices_per_node, between_gb_per_s, margin, volume, usd_per_kwh, years, usd_per_gb_per_s,
            usd_per_gb_per_s_between);
        overlay!(self.search, under.search; objective, combine, top, pareto, resolution_percent, exhaustive, table,
            power_cap_w, baselines, why, spotlight, robust);
        under
    }

    /// The same with a row for every design of the published space, unless it says otherwise: whoever takes the
    /// table in hand asks for all of it, and parts of that space are parts of its list.
    ///
    /// # Errors
    /// That it names no space that there is.
    pub fn listing_all(mut self, name: &str) -> Result<Self, InputError> {
        if self.kind(name)? == SpaceKind::Published {
            self.search.table.get_or_insert(true);
        }
        Ok(self)
    }

    /// The same file as seen from `folder`, in which it stands: the paths in it start there.
    #[must_use]
    pub fn beside(mut self, folder: &Path) -> Self {
        for entry in &mut self.model {
            entry.name = source::beside(folder, &entry.name);
        }
        let beside = |name: String| source::beside(folder, &name);
        self.hardware = self.hardware.map(beside);
        self.efficiency = self.efficiency.map(beside);
        for name in self.search.baselines.iter_mut().flatten() {
            *name = beside(std::mem::take(name));
        }
        self
    }

    /// Gives every model sequences of so many tokens, where that is asked for.
    pub fn every_sequence(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            if self.model.is_empty() {
                self.model = vec![self.default_model()];
            }
            self.model.iter_mut().for_each(|entry| entry.sequence = Some(tokens));
        }
    }

    /// Which space it asks for: the one that it names, the published one with published conventions
    /// or where it sets what only that one has, else that of chips.
    ///
    /// # Errors
    /// A space that is not known.
    pub fn kind(&self, file: &str) -> Result<SpaceKind, InputError> {
        match self.space.kind(file)? {
            SpaceKind::Chips if self.published == Some(true) => {
                let published = space::keys();
                let other =
                    self.space.keys().find(|key| !published.iter().any(|known| known == key));
                match other {
                    None => Ok(SpaceKind::Published),
                    Some(key) => {
                        let field = Field::new(file, &format!("space.{key}"));
                        let problem = "is a knob of chips, and published conventions ask for the published space";
                        Err(field.value("…", problem, "leave it out, or `published` (--published)"))
                    }
                }
            }
            kind => Ok(kind),
        }
    }

    fn default_model(&self) -> ModelEntry {
        match self.kind("") {
            Ok(SpaceKind::Chips) => {
                ModelEntry { name: DEFAULT_CHIP_MODEL.into(), ..ModelEntry::default() }
            }
            _ => ModelEntry::default(),
        }
    }

    /// The whole question over the published space or a part of it, with the text of every file that
    /// it names; `file` is what errors refer to, and `read` opens files.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn complete(&self, file: &str, read: &Reader) -> Result<Request, InputError> {
        let of_chips = [
            ("baselines", self.search.baselines.is_some()),
            ("why", self.search.why == Some(true)),
            ("resolution_percent", self.search.resolution_percent.is_some()),
            ("spotlight", self.search.spotlight.is_some()),
            ("robust", self.search.robust == Some(true)),
        ];
        if let Some((key, _)) = of_chips.into_iter().find(|(_, is_set)| *is_set) {
            let field = Field::new(file, &format!("search.{key}"));
            let problem = "is about searched chips, and the published space has none";
            return Err(field.value("…", problem, "leave it out, or search chips"));
        }
        if let Some(key) = self.chip.first_key() {
            let field = Field::new(file, &format!("chip.{key}"));
            let problem = "is about searched chips, and the published space has none";
            return Err(field.value("…", problem, "leave it out, or search chips"));
        }
        let space = self.space.checked(file)?;
        validated(self.completed(file, read, (space, ModelEntry::default()))?, file)
    }

    /// The same over whole chips.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn complete_chips(
        &self,
        file: &str,
        read: &Reader,
    ) -> Result<Request<ChipSpace>, InputError> {
        let space = self.chip.space(&self.space, file)?;
        let default = ModelEntry { name: DEFAULT_CHIP_MODEL.into(), ..ModelEntry::default() };
        validated_chips(self.completed(file, read, (space, default))?, file)
    }

    fn completed<S>(
        &self,
        file: &str,
        read: &Reader,
        (space, model): (S, ModelEntry),
    ) -> Result<Request<S>, InputError> {
        let default = Conventions::of(self.published.unwrap_or(false));
        let words = Words { file };
        let (job, search) = (&self.job, &self.search);
        let (models, asked) = self.models(model, read)?;
        let name = self.hardware.as_deref().unwrap_or(default.hardware);
        let (_, text) = source::hardware(name, &format!("{file}: hardware"), read)?;
        let asked_sequences: Vec<u64> = asked.iter().map(|model| model.sequence).collect();
        Ok(Request {
            models: asked,
            hardware: Source { name: source::printable(name), text },
            efficiency: self.efficiency(file, read)?,
            imbalance_per_mille: imbalance::of_job(job.imbalance, file)?,
            next_tokens: job.mtp,
            devices: job.devices.unwrap_or(1024),
            global_batch: job.global_batch.unwrap_or(4096),
            strategies: self.strategies(file, default, &models, &asked_sequences)?,
            reserve_per_mille: words.reserve(job.reserve, default.reserve_per_mille)?,
            optimizer: words.one_of(
                "job.optimizer",
                job.optimizer.as_deref(),
                default.optimizer,
                &Optimizer::ALL.map(|known| (known.name(), known)),
            )?,
            attention: words.attention(job, default)?,
            masked: default.masked,
            time_model: words.one_of(
                "job.time_model",
                job.time_model.as_deref(),
                default.time_model,
                &[("1f1b", TimeModel::OneForwardOneBackward), ("published", TimeModel::Published)],
            )?,
            rule: words.one_of(
                "job.rule",
                job.rule.as_deref(),
                default.rule,
                &Rule::ALL.map(|known| (known.name(), known)),
            )?,
            vector_costs: default.vector_costs,
            space,
            objective: words.one_of(
                "search.objective",
                search.objective.as_deref(),
                Objective::default(),
                &OBJECTIVES,
            )?,
            combine: words.one_of(
                "search.combine",
                search.combine.as_deref(),
                Combine::default(),
                &COMBINES,
            )?,
            top: usize::try_from(search.top.unwrap_or(1)).unwrap_or(usize::MAX),
            pareto: search.pareto.unwrap_or(false),
            resolution_per_mille: self.resolution(file)?,
            exhaustive: search.exhaustive.unwrap_or(false),
            table: search.table.unwrap_or(false),
            power_cap_w: search.power_cap_w,
            baselines: self.baselines(file, read)?,
            why: search.why.unwrap_or(false),
            spotlight: search.spotlight,
            robust: search.robust.unwrap_or(false),
        })
    }

    /// How finely the front of chips is told, in thousandths.
    fn resolution(&self, file: &str) -> Result<Option<u64>, InputError> {
        let Some(percent) = self.search.resolution_percent else { return Ok(None) };
        let field = Field::new(file, "search.resolution_percent");
        let wrong =
            |problem: &str, allowed: &str| field.value(&percent.to_string(), problem, allowed);
        if !(0.0..=100.0).contains(&percent) {
            return Err(wrong("is not between 0 and 100", "20 is usual, 0 rounds nothing"));
        }
        let thousandths = (percent * 10.0).round();
        if (thousandths - percent * 10.0).abs() > 1e-9 {
            return Err(wrong("is no tenth of a percent", "give one digit after the point"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number between 0 and 1000"
        )]
        Ok(Some(thousandths as u64))
    }

    /// What a winner is compared with besides the usual.
    fn baselines(&self, file: &str, read: &Reader) -> Result<Vec<Source>, InputError> {
        let place = format!("{file}: search.baselines");
        let named = self.search.baselines.iter().flatten();
        named
            .map(|name| {
                let (_, text) = source::hardware(name, &place, read)?;
                Ok(Source { name: source::printable(name), text })
            })
            .collect()
    }

    /// Whose efficiency is assumed in place of the hardware's own.
    fn efficiency(&self, file: &str, read: &Reader) -> Result<Option<Source>, InputError> {
        let place = format!("{file}: efficiency");
        let chosen = self.efficiency.as_deref();
        chosen.map(|name| efficiency_choice::source(name, &place, read)).transpose()
    }

    /// What may be chosen on each chip.
    fn strategies(
        &self,
        file: &str,
        default: &Conventions,
        models: &[Model],
        sequences: &[u64],
    ) -> Result<StrategySpace, InputError> {
        let job = &self.job;
        let words = Words { file };
        let attention = words.attention(job, default)?;
        let framework = match &job.launchable {
            None => Framework::Any,
            Some(name) => words.framework(name)?,
        };
        let micro_batches = ascending(job.micro_batches.as_deref().unwrap_or(&[1, 2, 4, 8]));
        let widths = match &job.tensor_parallel {
            Some(widths) => ascending(widths),
            None => allowed(default.widths, models),
        };
        let mut space = default.space(micro_batches, widths, attention, framework);
        let asked = self.search.objective.as_deref();
        let by_energy = OBJECTIVES.iter().any(|&(name, objective)| {
            asked == Some(name) && objective == Objective::EnergyPerToken
        });
        if by_energy || self.search.power_cap_w.is_some() {
            // Where more than time decides, every shape is looked at for itself: unless they are
            // asked for, ranks have one virtual stage and replicas exchange nothing inside layers.
            space.chunks = Limits::only(1);
            space.zero.retain(|&zero| zero < Zero::Gradients);
            space.zero_in_pipelines.retain(|&zero| zero < Zero::Gradients);
        }
        let published = default.time_model == TimeModel::Published;
        // Longer sequences than these are shared by several devices.
        let is_long = sequences.iter().any(|&tokens| tokens > LONGEST_DEFAULT_SEQUENCE);
        space.context_kinds.truncate(1);
        space.context_parallel = match &job.context_parallel {
            Some(degrees) => ascending(degrees),
            None if is_long && !published => {
                let is_allowed = |&degree: &u64| {
                    let mut each = models.iter().zip(sequences);
                    each.any(|(model, &sequence)| divides(model, sequence, degree))
                };
                [1, 2, 4, 8, 16].into_iter().filter(is_allowed).collect()
            }
            None => vec![1],
        };
        if !published {
            deal_out_experts(&mut space, models, job.devices.unwrap_or(1024));
        }
        ask_for(job.expert_parallel.as_deref(), &mut space.expert_parallel);
        ask_for(job.expert_tensor.as_deref(), &mut space.expert_tensor);
        if let Some(sequence_parallel) = job.sequence_parallel {
            space.sequence_parallel = vec![sequence_parallel];
        }
        if let Some(found) = &job.recompute {
            space.recompute = words.recompute(Some(found), default.recompute)?;
        }
        if let Some(stage) = job.zero {
            let field = Field::new(file, "job.zero");
            let stage = field.whole(stage, 0, 3)?;
            let zero = Zero::of_stage(usize::try_from(stage).unwrap_or(0)).unwrap_or(Zero::Nothing);
            (space.zero, space.zero_in_pipelines) = (vec![zero], vec![zero]);
        }
        if let Some(text) = &job.strategy {
            let given = super::strategy::read(text, &format!("{file}: job"))?;
            given.narrow(&mut space);
        }
        Ok(space)
    }

    /// The models, and how each stands in the request.
    fn models(
        &self,
        default: ModelEntry,
        read: &Reader,
    ) -> Result<(Vec<Model>, Vec<ModelRequest>), InputError> {
        let default = [default];
        let entries = if self.model.is_empty() { &default[..] } else { &self.model };
        let mut found = (Vec::new(), Vec::new());
        for entry in entries {
            let (model, text) = source::model(&entry.name, read)?;
            found.1.push(ModelRequest {
                name: source::printable(&entry.name),
                text,
                sequence: entry.sequence.unwrap_or(model.spec.max_sequence),
                weight: entry.weight.unwrap_or(1.0),
            });
            found.0.push(model);
        }
        Ok(found)
    }
}

/// Those of `widths` that some model allows.
pub(super) fn allowed(widths: &[u64], models: &[Model]) -> Vec<u64> {
    let legal: Vec<Vec<u64>> = models.iter().map(|model| legal_widths(&model.spec)).collect();
    let some_model_allows = |width: &u64| legal.iter().any(|legal| legal.contains(width));
    widths.iter().copied().filter(some_model_allows).collect()
}

/// Whether so many devices can share a sequence of a model.
pub(super) fn divides(model: &Model, sequence: u64, degree: u64) -> bool {
    let setting = Setting { sequence, ..Setting::ALONE };
    legal_contexts(&model.spec, setting, degree).contains(&degree)
}

/// The same values upwards, each once.
fn ascending(values: &[u64]) -> Vec<u64> {
    let mut list = values.to_vec();
    list.sort_unstable();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::chip_space::chip_keys;
    use crate::input::hardware;
    use crate::model::Attention;
    use crate::plan::Recompute;
    use std::collections::BTreeSet;

    fn complete(text: &str) -> Result<Request, String> {
        let file = RequestFile::read(text, "r.toml").map_err(|error| error.to_string())?;
        file.complete("r.toml", &source::no_files).map_err(|error| error.to_string())
    }

    #[test]
    fn the_examples_say_the_defaults() {
        let chips = |text: &str| {
            let file = RequestFile::read(text, "r.toml").unwrap();
            assert_eq!(file.kind("r.toml"), Ok(SpaceKind::Chips));
            file.complete_chips("r.toml", &source::no_files).unwrap()
        };
        assert_eq!(chips(EXAMPLE), chips(""));
        let mut example = complete(PUBLISHED_EXAMPLE).unwrap();
        let default = complete("").unwrap();
        // The example writes out what a default leaves to the hardware file.
        example.space.glb_bytes_per_cycle = Vec::new();
        assert_eq!(example, default);
        assert!(setup_of(default, "r.toml").is_ok());
    }

    #[test]
    fn published_defaults_are_those_of_the_published_evaluation() {
        let found = complete("published = true").unwrap();
        assert_eq!(found.hardware.name, "icml24");
        assert_eq!(found.strategies.recompute, [Recompute::None, Recompute::Stage]);
        assert_eq!((found.optimizer, found.attention), (Optimizer::Sgd, Attention::Stored));
        assert_eq!((found.rule, found.time_model), (Rule::Alone, TimeModel::Published));
        let all = complete("published = true\n[job]\nrecompute = [\"stage\", \"full\", \"none\"]");
        assert_eq!(all.unwrap().strategies.recompute, Recompute::ALL);
    }

    #[test]
    fn files_are_read_by_whoever_knows_how() {
        let text = "hardware = \"chips/own.toml\"\n[[model]]\nname = \"own.json\"\n";
        let file = RequestFile::read(text, "here/r.toml").unwrap().beside(Path::new("here"));
        let read = |path: &Path| match path.to_str().unwrap() {
            "here/own.json" => Ok(super::super::builtin::text("bert-large").unwrap().to_owned()),
            "here/chips/own.toml" => Ok(hardware::preset_text("icml24").unwrap().to_owned()),
            other => panic!("{other} was never named"),
        };
        let setup = ready(&file, "here/r.toml", &read).unwrap();
        let request = &setup.request;
        assert_eq!(request.models[0].name, "here/own.json");
        assert!(request.models[0].text.is_some() && request.hardware.text.is_some());
        // All that is needed is in the request: nothing is read again.
        let again = setup_of(request.clone(), "outcome.json").unwrap();
        assert_eq!(again.request, *request);
        assert_eq!(again.candidates, setup.candidates);
    }

    #[test]
    fn widths_are_filtered_by_default_and_refused_where_they_were_asked_for() {
        let model = "[[model]]\nname = \"gpt2-xl\"\n";
        assert_eq!(complete(model).unwrap().strategies.tensor_parallel, [1]);
        let both = format!("{model}[[model]]\nname = \"bert-large\"\n");
        assert_eq!(complete(&both).unwrap().strategies.tensor_parallel, [1, 2, 4, 8]);
        let ready = |text: &str| {
            let file = RequestFile::read(text, "r.toml").unwrap();
            ready(&file, "r.toml", &source::no_files).map_err(|error| error.to_string())
        };
        let refused = ready(&format!("{model}[job]\ntensor_parallel = [1, 2]")).unwrap_err();
        assert!(refused.contains("`job.tensor_parallel = 2`"), "{refused}");
        assert!(refused.contains("gpt2-xl allows 1, 5, 25"), "{refused}");
        assert!(ready(&format!("{both}[job]\ntensor_parallel = [1, 2, 5]")).is_ok());
        let refused = ready(&format!("{model}[job]\ncontext_parallel = [1, 3]")).unwrap_err();
        assert!(refused.contains("`job.context_parallel = 3` is a context-parallel"), "{refused}");
        assert!(
            refused.contains("1024 tokens of gpt2-xl allow 1, 2, 4, 8, 16, 32, 64"),
            "{refused}"
        );
    }

    #[test]
    fn the_schema_knows_the_keys_of_the_example() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let examples = [EXAMPLE, PUBLISHED_EXAMPLE].map(|text| {
            let table: toml::Table = toml::from_str(text).unwrap();
            table
        });
        for (key, value) in examples.iter().flatten() {
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
    fn the_schema_knows_every_knob_of_a_space() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let properties = schema["properties"]["space"]["properties"].as_object().unwrap();
        let known: BTreeSet<String> = properties.keys().cloned().collect();
        let published = space::keys();
        assert_eq!(known, published.into_iter().chain(chip_keys()).collect());
    }

    #[test]
    fn sequences_of_an_option_are_those_of_every_model() {
        let text = "[[model]]\nname = \"bert-large\"\n[[model]]\nname = \"gpt2-xl\"\nsequence = 8";
        for text in [text, ""] {
            let mut file = RequestFile::read(text, "a").unwrap();
            file.every_sequence(None);
            file.every_sequence(Some(256));
            let found = file.complete("a", &source::no_files).unwrap();
            assert!(found.models.iter().all(|model| model.sequence == 256), "{found:?}");
        }
    }

    #[test]
    fn what_lies_above_counts() {
        let below = RequestFile::read("[job]\ndevices = 8\nglobal_batch = 16", "a").unwrap();
        let above = RequestFile::read("[job]\ndevices = 4", "b").unwrap();
        let both = above.over(below).complete("a", &source::no_files).unwrap();
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
            ("[[model]]\nname = \"bert-large\"\nweight = nan", "`model.weight = NaN`"),
            ("[[model]]\nname = \"bert-large\"\nweight = inf", "`model.weight = inf`"),
            ("[[model]]\nname = \"bert-large\"\nweight = -3", "`model.weight = -3`"),
            ("[[model]]\nname = \"bert-large\"\nweight = 0", "`model.weight = 0`"),
            ("[[model]]\nname = \"bert-large\"\nsequence = 0", "`model.sequence = 0`"),
            ("[job]\ndevices = \"many\"", "found the text \"many\", expected a whole number"),
            ("job = 3", "found integer `3`, expected a table"),
            ("[search]\nobjective = \"througput\"", "did you mean `throughput`?"),
            ("[search]\npower_cap_w = -3.0", "is no power"),
            ("[job]\nzero = 4", "`job.zero = 4` is out of range; allowed are 0 to 3"),
            ("[job]\nreserve = 1.0", "`job.reserve = 1` is out of range; allowed are 0 to 0.999"),
            ("[job]\nreserve = -0.1", "`job.reserve = -0.1` is out of range"),
            ("[job]\nlaunchable = \"megatrom\"", "did you mean `megatron`?"),
            ("[job]\nrecompute = [\"sometimes\"]", "unknown `job.recompute` `sometimes`"),
            ("[job]\ncontext_parallel = [0]", "`job.context_parallel = 0` is out of range"),
            ("[job]\ncontext_parallel = []", "`job.context_parallel` is missing"),
            ("[job]\nstrategy = \"t=x\"", "job: `t = x` is no whole number; give"),
            ("[job]\nstrategy = \"p=1,v=2\"", "gives several chunks to a pipeline of one rank"),
        ];
        for (text, expected) in cases {
            let error = complete(text).unwrap_err();
            assert!(error.starts_with("r.toml: ") && error.contains(expected), "{error}");
        }
    }
}
