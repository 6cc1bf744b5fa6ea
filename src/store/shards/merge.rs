//! The answer of a whole space from the shards of its parts.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use super::RoundName;
use super::file::Shards;
use super::merge_chips;
use crate::ask::Refusal;
use crate::ask::chips::SearchedChips;
use crate::ask::search::Searched;
use crate::ask::search::Watcher;
use crate::ask::search::answer;
use crate::input::request::setup_of;
use crate::search::Fact;
use crate::search::Memory;
use crate::search::Part;
use crate::search::PartSurvey;
use crate::search::Request;
use crate::search::Setup;
use crate::search::chips::CORNER;
use crate::store::files;
use crate::store::results;
use crate::store::results::Shelf;

/// The answer of a whole space.
#[derive(Clone, Debug)]
pub enum Merged {
    /// Over a list of designs.
    Designs(Box<Searched>),
    /// Over chips.
    Chips(Box<SearchedChips>),
}

/// Joins all shards of a search and writes the files of the result; `None` where the user ended it
/// before its end.
///
/// The whole space is walked as one search does, with the facts of all shards at hand: what no shard
/// knows is evaluated, so that the answer depends on nothing but the request.
///
/// # Errors
/// Which shards are missing, damaged or do not belong together, or that nothing can be written.
pub fn merge(
    shards: &[PathBuf],
    shelf: &Shelf,
    watcher: &dyn Watcher,
) -> Result<Option<Merged>, Refusal> {
    let shards = Shards::find(shards, shelf.program)?;
    if shards.are_of_chips() {
        let found = merge_chips::merge(&shards, shelf, watcher)?;
        return Ok(found.map(|found| Merged::Chips(Box::new(found))));
    }
    let found = merge_designs(&shards, shelf, watcher)?;
    Ok(found.map(|found| Merged::Designs(Box::new(found))))
}

/// The same of designs that are listed.
fn merge_designs(
    shards: &Shards,
    shelf: &Shelf,
    watcher: &dyn Watcher,
) -> Result<Option<Searched>, Refusal> {
    let request: Request = shards.request()?;
    if request.models.len() > 1 {
        shards.are_whole(RoundName::Alone)?;
    }
    shards.are_whole(RoundName::Together)?;
    let setup = setup_of(request, &files::name(&shards.found[0].place))?;
    let _alone = shelf.held(&setup.request)?;
    let facts = Facts::of(shards, &setup)?;
    let found = answer(&setup, &facts, watcher, |listing, survey, boxes| {
        if survey.complete {
            results::is_believed(listing, (survey, boxes), Path::new("shards"))
        } else {
            Ok(())
        }
    })?;
    if found.outcome.proof.stopped_by.is_some() {
        return Ok(None);
    }
    results::write(shelf.directory, &found)?;
    Ok(Some(found))
}

/// What all shards know.
#[derive(Default)]
pub(super) struct Facts(BTreeMap<String, String>);

impl Facts {
    /// Reads shard after shard; of two facts of one design, the one that tells more is kept.
    fn of(shards: &Shards, setup: &Setup) -> Result<Self, Refusal> {
        let mut known = Self::default();
        for shard in &shards.found {
            let survey: PartSurvey = shard.read(&mut |key, fact| known.learn(key, fact))?;
            if let Err(odd) = adds_up(&survey, shard.part, setup) {
                return Err(Refusal::Options(format!(
                    "{}: {odd}; search this shard again with --force",
                    files::name(&shard.place)
                )));
            }
        }
        Ok(known)
    }

    /// Takes up a fact, unless the one that is known tells more; of a corner the last one tells the most.
    pub(super) fn learn(&mut self, key: &str, fact: &str) {
        let is_corner = key.starts_with(CORNER);
        if is_corner || self.0.get(key).is_none_or(|before| tells_more(fact, before)) {
            self.0.insert(key.to_owned(), fact.to_owned());
        }
    }
}

/// Whether a shard says of as many designs what became of them as its part holds.
fn adds_up(survey: &PartSurvey, part: Part, setup: &Setup) -> Result<(), String> {
    let held = part.designs(setup.candidates.len()).len();
    let odd = survey
        .walks
        .iter()
        .map(|walk| walk.evaluated + walk.beaten + walk.pruned + walk.infeasible)
        .chain([survey.designs])
        .find(|&told| told != held);
    odd.map_or(Ok(()), |told| {
        Err(format!("it tells of {told} designs where its part holds {held}"))
    })
}

/// Whether a fact tells more than another; one that does not read as a fact tells nothing.
fn tells_more(fact: &str, before: &str) -> bool {
    let read = |fact: &str| serde_json::from_str::<Fact>(fact).ok();
    match (read(fact), read(before)) {
        (Some(fact), Some(before)) => fact.tells_more_than(&before),
        (fact, _) => fact.is_some(),
    }
}

impl Memory for Facts {
    fn recall(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
    fn remember(&self, _key: &str, _fact: &str) {}
    fn fails(&self) -> bool {
        false
    }
}
