//! A whole search: from the keys of a request to its outcome, with somebody looking on.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Keywords;
use super::Refusal;
use crate::compare;
use crate::input;
use crate::input::InputError;
use crate::input::request::ModelEntry;
use crate::input::request::RequestFile;
use crate::input::request::SCHEMA;
use crate::input::sweep::Sweep;
use crate::report;
use crate::search;
use crate::search::Memory;
use crate::search::Observer;
use crate::search::Outcome;
use crate::search::Setup;
use crate::search::Survey;
use crate::search::designs::BoxedSurvey;
use crate::search::designs::DesignBoxes;
use crate::search::designs::survey_boxes;

/// Looks on while a search runs, and may end it.
pub trait Watcher: Observer {
    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool;
    /// Nothing more will be looked at.
    fn finish(&self) {}
}

/// Nobody looks on.
impl Watcher for () {
    fn interrupted(&self) -> bool {
        false
    }
}

/// What a search ended with: what `outcome.json`, `designs.csv` and `boxes.csv` hold.
#[derive(Clone, Debug)]
pub struct Searched {
    /// The winner, what it is compared with, and the proof.
    pub outcome: Outcome,
    /// Every design of the space, or those that were evaluated, one row each.
    pub designs: String,
    /// The boxes that prove the answer; `None` where every design has its row.
    pub boxes: Option<String>,
    /// Whether the user ended it before its end.
    pub interrupted: bool,
}

/// Searches and compares; `memory` may recall what was known before, and `believed` then says whether
/// that is to be believed.
///
/// # Errors
/// What `believed` refuses.
pub fn answer(
    setup: &Setup,
    memory: &dyn Memory,
    watcher: &dyn Watcher,
    believed: impl FnOnce(&Setup, &Survey, &[DesignBoxes]) -> Result<(), Refusal>,
) -> Result<Searched, Refusal> {
    if setup.request.lists_all() {
        let survey = search::survey(setup, memory, watcher);
        watcher.finish();
        believed(setup, &survey, &[])?;
        return told(setup, &survey, None, watcher);
    }
    let BoxedSurvey { candidates, survey, boxes } = survey_boxes(setup, memory, watcher);
    watcher.finish();
    let listing = setup.listing(candidates);
    believed(&listing, &survey, &boxes)?;
    let mut certificate = Vec::new();
    report::boxes_csv::write_designs(setup, &boxes, &mut certificate)
        .expect("memory takes what is written");
    let certificate = String::from_utf8(certificate).expect("a table is text");
    drop(boxes);
    told(&listing, &survey, Some(certificate), watcher)
}

/// What is told of a survey.
fn told(
    setup: &Setup,
    survey: &Survey,
    boxes: Option<String>,
    watcher: &dyn Watcher,
) -> Result<Searched, Refusal> {
    // What was searched to the end is compared to the end as well.
    let interrupted = watcher.interrupted() && !survey.complete;
    let [time_limit, user] = search::sentences::STOPPED_BY;
    let (stopped_by, observer): (_, &dyn Observer) = if survey.complete {
        (None, &())
    } else {
        (Some(if interrupted { user } else { time_limit }), watcher)
    };
    let outcome = compare::outcome(setup, survey, &input::references()?, stopped_by, observer);
    let mut designs = Vec::new();
    report::designs_csv::write(setup, survey, &mut designs).expect("memory takes what is written");
    let designs = String::from_utf8(designs).expect("a table is text");
    Ok(Searched { outcome, designs, boxes, interrupted })
}

impl Searched {
    /// The content of `outcome.json`.
    pub fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(&self.outcome).expect("an outcome has only string keys");
        json.push(b'\n');
        json
    }
}

/// The request that keywords make: the keys of a request file, its tables flattened. `models` are
/// built-in names or paths, or tables with the keys of `[[model]]`; `sequence` is for all of them.
///
/// # Errors
/// A key that no request has, or a value of another kind.
pub fn request(models: &[Value], mut given: Keywords) -> Result<RequestFile, InputError> {
    let sequence = given.take("sequence")?;
    let tables = tables();
    named_space(&mut given)?;
    let mut file = toml::Table::new();
    for (key, table) in &tables {
        let Some(value) = given.take::<Value>(key)? else { continue };
        let found = toml::Value::try_from(&value)
            .map_err(|_| given.wrong(key, &value, "is no value of a request", "give another"))?;
        match table {
            None => drop(file.insert(key.clone(), found)),
            Some(table) => {
                let below = file.entry(table.clone());
                let below = below.or_insert_with(|| toml::Value::Table(toml::Table::new()));
                let allowed = "give its keys one by one, or a table of them";
                let below = below.as_table_mut();
                below
                    .ok_or_else(|| {
                        given.wrong(table, &value, "is given besides its keys", allowed)
                    })?
                    .insert(key.clone(), found);
            }
        }
    }
    let verb = given.verb().to_owned();
    given.end()?;
    let mut request = RequestFile::from_table(file, &verb)?;
    if !models.is_empty() {
        let entries = models.iter().map(|model| entry(model, &verb));
        request.model = entries.collect::<Result<_, _>>()?;
    }
    request.every_sequence(sequence);
    Ok(request)
}

/// The sweep of a request that keywords make, over the keys of `vary`.
///
/// # Errors
/// A key that no request has, or a value of another kind.
pub fn sweep(models: &[Value], given: Keywords, vary: Keywords) -> Result<Sweep, InputError> {
    let verb = given.verb().to_owned();
    Sweep::of(&request(models, given)?, &varied(vary)?, (&verb, Path::new("")))
}

/// The keys that a sweep varies, each with the list of its values: those of a request, by themselves or
/// behind their table as in `job.devices`; and `model`.
///
/// # Errors
/// A key that no request has, or a value that none can hold.
fn varied(mut given: Keywords) -> Result<toml::Table, InputError> {
    let mut vary = toml::Table::new();
    let keys = tables().into_iter().chain([("model".to_owned(), None)]);
    for (key, table) in keys {
        let dotted = table.as_ref().map(|table| format!("{table}.{key}"));
        for name in [Some(key.clone()), dotted].into_iter().flatten() {
            let Some(value) = given.take::<Value>(&name)? else { continue };
            let found = toml::Value::try_from(&value).map_err(|_| {
                given.wrong(&name, &value, "is no list of values of a request", "give another")
            })?;
            match &table {
                None => drop(vary.insert(key.clone(), found)),
                Some(table) => {
                    let below =
                        vary.entry(table.clone()).or_insert_with(|| toml::Table::new().into());
                    if let Some(below) = below.as_table_mut() {
                        below.insert(key.clone(), found);
                    }
                }
            }
        }
    }
    given.end()?;
    Ok(vary)
}

/// A space that is given by its name alone is the key `name` of its table.
fn named_space(given: &mut Keywords) -> Result<(), InputError> {
    if given.peek("space").is_some_and(Value::is_string)
        && let Some(name) = given.take("space")?
    {
        given.give("name", name);
    }
    Ok(())
}

fn entry(model: &Value, verb: &str) -> Result<ModelEntry, InputError> {
    match model {
        Value::String(name) => Ok(ModelEntry { name: name.clone(), ..ModelEntry::default() }),
        other => serde_json::from_value(other.clone()).map_err(|error| InputError::Syntax {
            file: verb.to_owned(),
            line: None,
            message: format!("model: {error}; give a name, or a table with name, sequence, weight"),
        }),
    }
}

/// The keys of request files, as their schema lists them, each with the table that it is in.
pub fn tables() -> BTreeMap<String, Option<String>> {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema of requests is JSON");
    let mut keys = BTreeMap::new();
    let tables = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in tables {
        match inner(property) {
            Some(inner) => {
                keys.extend(inner.keys().map(|key| (key.clone(), Some(name.clone()))));
                // A table can also be given as a whole, or as a name where the reader takes one.
                keys.entry(name.clone()).or_insert(None);
            }
            None => drop(keys.insert(name.clone(), None)),
        }
    }
    // Models are given by themselves.
    keys.remove("model");
    keys
}

/// The keys of a table, where a property is one or may be one.
fn inner(property: &Value) -> Option<&serde_json::Map<String, Value>> {
    if let Some(found) = property["properties"].as_object() {
        return Some(found);
    }
    let ways = ["anyOf", "oneOf"].into_iter().filter_map(|way| property[way].as_array());
    ways.flatten().find_map(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(models: &[Value], given: Value) -> Result<RequestFile, InputError> {
        let Value::Object(given) = given else { unreachable!("a call has names") };
        request(models, Keywords::new("search", given))
    }

    #[test]
    fn keywords_are_the_keys_of_a_request_with_its_tables_flattened() {
        let given = json!({ "devices": 64, "glb_mib": [16, 32], "objective": "energy-per-token",
                            "published": true, "sequence": 512 });
        let found = asked(&[json!("bert-large")], given).unwrap();
        assert_eq!(found.job.devices, Some(64));
        assert_eq!(found.search.objective.as_deref(), Some("energy-per-token"));
        assert_eq!(found.published, Some(true));
        assert_eq!(
            (found.model[0].name.as_str(), found.model[0].sequence),
            ("bert-large", Some(512))
        );
        let text = "[[model]]\nname = 'bert-large'\nsequence = 512\n[job]\ndevices = 64\n\
                    [space]\nglb_mib = [16, 32]\n[search]\nobjective = 'energy-per-token'\n";
        let mut written = RequestFile::read(text, "text").unwrap();
        written.published = Some(true);
        assert_eq!(format!("{found:?}"), format!("{written:?}"));
    }

    #[test]
    fn keys_vary_by_themselves_or_behind_their_table() {
        let vary = |given: Value| {
            let Value::Object(given) = given else { unreachable!("a call has names") };
            varied(Keywords::new("sweep", given)).map_err(|error| error.to_string())
        };
        let found =
            vary(json!({ "model": ["bert-large"], "devices": [8, 16], "space.width": [64] }));
        let expected = "model = ['bert-large']\n[job]\ndevices = [8, 16]\n[space]\nwidth = [64]";
        assert_eq!(found, Ok(toml::from_str(expected).unwrap()));
        let said = vary(json!({ "devics": [8] })).unwrap_err();
        assert!(said.contains("did you mean `devices`?"), "{said}");
    }

    #[test]
    fn a_space_may_be_given_by_its_name() {
        let found = asked(&[], json!({ "space": "published", "width": 128 })).unwrap();
        let alike = asked(&[], json!({ "space": { "name": "published", "width": 128 } })).unwrap();
        assert_eq!(format!("{found:?}"), format!("{alike:?}"));
        let unknown = asked(&[], json!({ "space": "publishd" })).unwrap().kind("search");
        assert!(unknown.unwrap_err().to_string().contains("did you mean `published`?"));
    }

    #[test]
    fn a_table_may_be_given_as_a_whole() {
        let found = asked(&[], json!({ "space": { "width": 128 }, "job": { "zero": 1 } })).unwrap();
        assert_eq!(found.job.zero, Some(1));
        let alike = asked(&[], json!({ "width": 128, "zero": 1 })).unwrap();
        assert_eq!(format!("{found:?}"), format!("{alike:?}"));
    }

    #[test]
    fn what_no_request_has_is_refused_with_the_closest_key() {
        for (given, expected) in [
            (json!({ "devics": 3 }), "search: unknown keyword `devics` (did you mean `devices`?)"),
            (json!({ "devices": "many" }), "search: "),
            (json!({ "width": 4, "space": 5 }), "search: "),
        ] {
            let said = asked(&[], given).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
        let said = asked(&[json!({ "nam": "x" })], json!({})).unwrap_err().to_string();
        assert!(said.contains("unknown field `nam`"), "{said}");
    }

    #[test]
    fn every_key_of_the_commented_example_is_a_keyword() {
        let example: toml::Table = input::request::EXAMPLE.parse().unwrap();
        let known = tables();
        for (name, value) in example.iter().filter(|(name, _)| *name != "model") {
            match value {
                toml::Value::Table(table) => {
                    assert!(table.keys().all(|key| known[key].as_ref() == Some(name)), "{name}");
                }
                _ => assert_eq!(known[name], None),
            }
        }
    }
}
