//! The directory of a result: `outcome.json`, `designs.csv`, `report.html`, and while a search is under
//! way its journal.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use super::files;
use super::journal::Journal;
use super::journal::LOCK;
use super::journal::Start;
use super::journal::lock;
use crate::ask::Refusal;
use crate::ask::chips;
use crate::ask::chips::SearchedChips;
use crate::ask::search;
use crate::ask::search::Searched;
use crate::ask::search::Watcher;
use crate::input::saved;
use crate::input::source::is_path;
use crate::report::html;
use crate::report::saved::Saved;
use crate::search::Request;
use crate::search::Setup;
use crate::search::Status;
use crate::search::Survey;
use crate::search::boxes::Why;
use crate::search::chips::ChipSetup;
use crate::search::designs::DesignBoxes;
use crate::search::survey;

/// A space of a million designs with several models stays below this.
pub(super) const LARGEST_FILE: u64 = 2 << 30;

/// Facts of a journal that are found again although nothing is told of their designs.
const SAMPLE: usize = 16;

/// Where a search is kept, and what it may find there.
#[derive(Clone, Debug)]
pub struct Shelf<'a> {
    /// The directory.
    pub directory: &'a Path,
    /// Whether facts of an earlier search are used.
    pub start: Start,
    /// What computes, as [`fingerprint`](super::journal::fingerprint) tells it: facts of another
    /// program are not believed.
    pub program: &'a str,
}

/// A directory in which nobody else writes results; where no result came of it, it is left as it was found.
pub(super) struct Held {
    directory: PathBuf,
    _lock: fs::File,
}

impl Drop for Held {
    fn drop(&mut self) {
        if fs::symlink_metadata(self.directory.join("outcome.json")).is_err() {
            let _ = fs::remove_file(self.directory.join(LOCK));
            // Only where it is empty.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// The directory of a request where nobody says.
pub fn usual_directory<S>(request: &Request<S>) -> PathBuf {
    let names: Vec<String> = request.models.iter().map(|model| folder(&model.name)).collect();
    Path::new("results").join(names.join("+"))
}

/// Searches and writes all files of the result, also of one that was cut short.
///
/// # Errors
/// That the directory holds something else, or cannot be written.
pub fn search(setup: &Setup, shelf: &Shelf, watcher: &dyn Watcher) -> Result<Searched, Refusal> {
    let directory = shelf.directory;
    let journal = shelf.journal(&setup.request)?;
    let found = search::answer(setup, &journal, watcher, |listing, survey, boxes| {
        journal.healthy()?;
        if journal.recalls() {
            is_believed(listing, (survey, boxes), &Journal::path(directory))?;
        }
        Ok(())
    })?;
    write(directory, &found)?;
    // Who goes on with a search may go on once more where a time limit ended it.
    let ended = found.outcome.proof.stopped_by.is_none();
    if !found.interrupted && (ended || shelf.start != Start::Resume) {
        journal.forget()?;
    }
    Ok(found)
}

/// The same over chips.
///
/// # Errors
/// That the directory holds something else, or cannot be written.
pub fn search_chips(
    setup: &ChipSetup,
    shelf: &Shelf,
    watcher: &dyn Watcher,
) -> Result<SearchedChips, Refusal> {
    let directory = shelf.directory;
    let journal = shelf.journal(&setup.request)?;
    let place = files::name(&Journal::path(directory));
    let found = chips::answer(setup, (&journal, journal.recalls(), &place), watcher)?;
    journal.healthy()?;
    write_chips(directory, &found.json(), found.boxes.as_bytes())?;
    let outcome = &found.outcome;
    let ended = outcome.proof.stopped_by.is_none() && outcome.comparisons_stopped_by.is_none();
    if !found.interrupted && (ended || shelf.start != Start::Resume) {
        journal.forget()?;
    }
    Ok(found)
}

impl Shelf<'_> {
    /// The directory, made and held against everybody else who writes results, which must not hold the result of
    /// another request.
    ///
    /// # Errors
    /// That it holds something else, cannot be written, or that somebody is writing there.
    pub(super) fn held(&self, request: &impl Serialize) -> Result<Held, Refusal> {
        self.made_free(request)?;
        Ok(Held { directory: self.directory.to_owned(), _lock: lock(self.directory)? })
    }

    /// The journal of a search into the directory, which must not hold the result of another one.
    fn journal(&self, request: &impl Serialize) -> Result<Journal, Refusal> {
        self.made_free(request)?;
        let header = serde_json::json!({
            "phaze": env!("CARGO_PKG_VERSION"),
            "program": self.program,
            "request": request,
        });
        Journal::open(self.directory, &header.to_string(), self.start)
    }

    fn made_free(&self, request: &impl Serialize) -> Result<(), Refusal> {
        let directory = self.directory;
        let unwritable = |reason| Refusal::Unwritable { place: files::name(directory), reason };
        if self.start != Start::Over {
            is_free(&directory.join("outcome.json"), request)?;
        }
        fs::create_dir_all(directory).map_err(unwritable)
    }
}

/// Writes the files of a result into a directory, which must exist.
///
/// # Errors
/// That they cannot be written.
pub fn write(directory: &Path, found: &Searched) -> Result<(), Refusal> {
    match &found.boxes {
        Some(boxes) => files::write(&directory.join("boxes.csv"), boxes.as_bytes())?,
        None => take_away(&directory.join("boxes.csv"))?,
    }
    write_all_but_boxes(directory, &found.json(), found.designs.as_bytes())
}

/// Writes the files of a result with a row for every design into a directory, which must exist.
///
/// # Errors
/// That they cannot be written.
pub fn write_table(directory: &Path, outcome: &[u8], designs: &[u8]) -> Result<(), Refusal> {
    take_away(&directory.join("boxes.csv"))?;
    write_all_but_boxes(directory, outcome, designs)
}

fn write_all_but_boxes(directory: &Path, outcome: &[u8], designs: &[u8]) -> Result<(), Refusal> {
    files::write(&directory.join("designs.csv"), designs)?;
    files::write(&directory.join("outcome.json"), outcome)?;
    write_page(directory, None)?;
    Ok(())
}

/// Writes the three files of a result over chips into a directory, which must exist.
///
/// # Errors
/// That they cannot be written.
pub fn write_chips(directory: &Path, outcome: &[u8], boxes: &[u8]) -> Result<(), Refusal> {
    take_away(&directory.join("designs.csv"))?;
    files::write(&directory.join("boxes.csv"), boxes)?;
    files::write(&directory.join("outcome.json"), outcome)?;
    // Boxes may take hundreds of megabytes: they are not read again.
    let [outcome, boxes] = [outcome, boxes].map(String::from_utf8_lossy);
    let page = chips::page(&files::name(directory), &outcome, &boxes)?;
    files::write(&directory.join("report.html"), &page)
}

/// Takes away the table of an earlier result over the other kind of space, where there is one.
fn take_away(table: &Path) -> Result<(), Refusal> {
    match fs::remove_file(table) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => {
            Err(Refusal::Unwritable { place: files::name(table), reason })
        }
        _ => Ok(()),
    }
}

/// Makes the page of a result directory, `report.html` in it unless told otherwise; answers where.
///
/// # Errors
/// That the result cannot be read, or the page not be written.
pub fn write_page(directory: &Path, out: Option<&Path>) -> Result<PathBuf, Refusal> {
    let page = if let Some((outcome, boxes)) = chip_texts(directory)? {
        chips::page(&files::name(directory), &outcome, &boxes)?
    } else {
        let mut page = Vec::new();
        html::write(&read(directory)?, &mut page).expect("memory takes what is written");
        page
    };
    let place = out.map_or_else(|| directory.join("report.html"), Path::to_path_buf);
    files::write(&place, &page)?;
    Ok(place)
}

/// The page that sets two results side by side, which are of the same kind of space.
///
/// # Errors
/// That a result cannot be read, or that one is over chips and the other is not.
pub fn comparison(first: &Path, second: &Path) -> Result<Vec<u8>, Refusal> {
    let names = [files::name(first), files::name(second)];
    match (chip_texts(first)?, chip_texts(second)?) {
        (Some(one), Some(other)) => chips::comparison((&names[0], &one), (&names[1], &other)),
        (None, None) => {
            let mut page = Vec::new();
            html::write_comparison(&read(first)?, &read(second)?, &mut page)
                .expect("memory takes what is written");
            Ok(page)
        }
        _ => Err(unlike(&names[0], &names[1])),
    }
}

/// Why two results are not set side by side, of which one is over chips and the other is not.
pub fn unlike(first: &str, second: &str) -> Refusal {
    Refusal::Options(format!(
        "{first} and {second}: one is over chips and the other over the published space; compare \
         results of the same kind"
    ))
}

/// The texts of `outcome.json` and `boxes.csv`, where a directory holds an answer over chips.
fn chip_texts(directory: &Path) -> Result<Option<(String, String)>, Refusal> {
    let [boxes, designs] = ["boxes.csv", "designs.csv"].map(|name| directory.join(name));
    // Boxes of designs of the published space stand beside a table.
    if fs::symlink_metadata(&boxes).is_err() || fs::symlink_metadata(&designs).is_ok() {
        return Ok(None);
    }
    let outcome = files::read(&directory.join("outcome.json"), LARGEST_FILE)?;
    Ok(Some((outcome, files::read(&boxes, LARGEST_FILE)?)))
}

/// The texts of `outcome.json` and `designs.csv` of a directory.
///
/// # Errors
/// That they cannot be read.
pub fn texts(directory: &Path) -> Result<(String, String), Refusal> {
    let [outcome, designs] = ["outcome.json", "designs.csv"].map(|name| directory.join(name));
    Ok((files::read(&outcome, LARGEST_FILE)?, files::read(&designs, LARGEST_FILE)?))
}

/// Reads a result directory.
///
/// # Errors
/// That it holds no result.
pub fn read(directory: &Path) -> Result<Saved, Refusal> {
    let (outcome_text, designs_text) = texts(directory)?;
    let [outcome_file, designs_file] =
        ["outcome.json", "designs.csv"].map(|name| files::name(&directory.join(name)));
    let outcome = saved::outcome(&outcome_file, &outcome_text)?;
    let designs = saved::designs(&designs_file, &designs_text)?;
    saved::belong(&designs_file, &outcome, &designs)?;
    let name = files::name(directory).trim_end_matches('/').to_owned();
    Ok(Saved { name, outcome, designs })
}

/// A name for a folder that a model's name or path suggests: never empty, never hidden, never one
/// that means another folder.
fn folder(name: &str) -> String {
    let stem = Path::new(name).file_stem().map_or("".into(), |stem| stem.to_string_lossy());
    let plain = if is_path(name) { stem } else { name.into() }
        .replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '.', "_");
    match plain.trim_start_matches('.') {
        "" => "model".into(),
        name => name.to_owned(),
    }
}

/// Whether no result of another request is at `path`.
pub(super) fn is_free(path: &Path, request: &impl Serialize) -> Result<(), Refusal> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let found = json(&files::read(path, LARGEST_FILE)?);
    let asked = serde_json::to_string(request).expect("a request has only string keys");
    let Some(found) = found else {
        return Err(Refusal::Options(format!(
            "{}: is damaged or no result; remove it, choose another --out, or --force to write over it",
            files::name(path)
        )));
    };
    if found.get("request") == json(&asked).as_ref() {
        return Ok(());
    }
    Err(Refusal::Options(format!(
        "{}: is the result of another request; choose another --out, or --force to write over it",
        files::name(path)
    )))
}

/// Whether what a journal recalled is found again, for all designs of which something is told and
/// for some of the others: nobody's word is taken for an answer.
pub(super) fn is_believed(
    setup: &Setup,
    (recalled, boxes): (&Survey, &[DesignBoxes]),
    journal: &Path,
) -> Result<(), Refusal> {
    points_are_believed(setup, (recalled, boxes), journal)?;
    let mut told = BTreeSet::new();
    for walk in &recalled.walks {
        told.extend(walk.ranking().into_iter().take(setup.request.top));
        told.extend(walk.front());
        let known: Vec<usize> = (0..walk.statuses.len())
            .filter(|&at| walk.bounds[at].is_some())
            .filter(|&at| !matches!(walk.statuses[at], Status::Pruned | Status::Open))
            .collect();
        told.extend(known.iter().step_by(known.len().div_ceil(SAMPLE).max(1)));
    }
    let mut again = setup.clone();
    again.candidates = told.iter().map(|&design| setup.candidates[design]).collect();
    again.areas = told.iter().map(|&design| setup.areas[design]).collect();
    again.request.exhaustive = true;
    let found = survey(&again, &(), &());
    for (recalled, found) in recalled.walks.iter().zip(&found.walks) {
        for (&design, found) in told.iter().zip(&found.statuses) {
            let contradicted = match (&recalled.statuses[design], found) {
                (Status::Evaluated(_, said), Status::Evaluated(_, found)) => said != found,
                (Status::Evaluated(..), _) | (Status::Infeasible, Status::Evaluated(..)) => true,
                (Status::Beaten, Status::Evaluated(merit, _)) => {
                    let better =
                        recalled.evaluated().filter(|(_, known, _)| known.value < merit.value);
                    better.count() < setup.request.top
                }
                _ => false,
            };
            if contradicted {
                return Err(disbelieved(journal, &format!("design {design}")));
            }
        }
    }
    Ok(())
}

/// The same of some of the designs that have no row, because they were recalled to be beaten or to hold
/// nothing.
fn points_are_believed(
    setup: &Setup,
    (recalled, boxes): (&Survey, &[DesignBoxes]),
    journal: &Path,
) -> Result<(), Refusal> {
    let grid = setup.grid();
    for DesignBoxes { hbm, walk, .. } in boxes.iter().filter(|boxes| boxes.alone.is_none()) {
        let looked_at = walk.closed.iter().filter(|closed| match closed.why {
            Why::Beaten(_) => true,
            Why::Nothing => grid.is_design(&closed.region.lo, &setup.physics),
            _ => false,
        });
        let looked_at: Vec<_> = looked_at.collect();
        if looked_at.is_empty() {
            continue;
        }
        let some: Vec<_> =
            looked_at.iter().step_by(looked_at.len().div_ceil(SAMPLE).max(1)).collect();
        let mut again =
            setup.listing(some.iter().map(|closed| grid.candidate(&closed.region.lo)).collect());
        again.request.exhaustive = true;
        again.request.space.hbm_gib = vec![setup.request.space.hbm_gib[*hbm]];
        let found = survey(&again, &(), &());
        for (closed, found) in some.iter().zip(&found.walks[0].statuses) {
            let Status::Evaluated(merit, _) = found else { continue };
            let known = recalled.walks[*hbm].evaluated();
            let better = known.filter(|(_, known, _)| known.value < merit.value).count();
            if closed.why == Why::Nothing || better < setup.request.top {
                let place = grid.published_place(&closed.region.lo);
                return Err(disbelieved(journal, &format!("the point {place} of the grid")));
            }
        }
    }
    Ok(())
}

fn disbelieved(journal: &Path, what: &str) -> Refusal {
    Refusal::Options(format!(
        "{}: what it says of {what} is not what is found; search with --force to begin anew",
        files::name(journal)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::request::RequestFile;
    use crate::input::request::ready;
    use crate::input::source::no_files;
    use crate::search::Memory;
    use crate::search::designs::BoxedSurvey;
    use crate::search::designs::survey_boxes;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    /// Remembers facts in the order in which they were found, and recalls those it was given.
    #[derive(Default)]
    struct Notes {
        found: Mutex<Vec<(String, String)>>,
        given: BTreeMap<String, String>,
    }

    impl Memory for Notes {
        fn recall(&self, key: &str) -> Option<&str> {
            self.given.get(key).map(String::as_str)
        }
        fn remember(&self, key: &str, fact: &str) {
            self.found.lock().unwrap().push((key.into(), fact.into()));
        }
        fn fails(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_journal_that_lies_is_found_out() {
        let text = "[[model]]\nname = \"bert-large\"\n[job]\nmicro_batches = [4]\n\
                    tensor_parallel = [1]\n[space]\nhbm_gib = 32\ndepth = [64, 128]\n\
                    width = [64, 128]\nglb_mib = 32\n[search]\ntable = true\n";
        let file = RequestFile::read(text, "test").unwrap();
        let setup = ready(&file, "test", &no_files).unwrap();
        let notes = Notes::default();
        survey(&setup, &notes, &());
        let journal = Path::new("journal.jsonl");
        let found = notes.found.into_inner().unwrap();
        let recalling = |facts: &[(String, String)]| {
            let given = facts.iter().cloned().collect();
            survey(&setup, &Notes { given, ..Notes::default() }, &())
        };
        assert!(is_believed(&setup, (&recalling(&found), &[]), journal).is_ok());
        let (key, fact) = found.iter().find(|(_, fact)| fact.contains("time")).unwrap();
        let mut told: serde_json::Value = serde_json::from_str(fact).unwrap();
        told["chosen"]["standing"]["time"] = 1.into();
        let found = recalling(&[(key.clone(), told.to_string())]);
        let refused = is_believed(&setup, (&found, &[]), journal).unwrap_err().to_string();
        assert!(refused.starts_with("journal.jsonl: what it says of design"), "{refused}");
    }

    #[test]
    fn a_journal_that_calls_the_best_design_slow_is_found_out() {
        let text = "[[model]]\nname = \"bert-large\"\n[job]\nmicro_batches = [4]\n\
                    tensor_parallel = [1]\n[space]\nhbm_gib = 32\ndepth = [64, 128]\nwidth = 64\n\
                    vector_cores = [16, 128]\ntensor_cores = [16, 64]\nglb_mib = 32\n";
        let file = RequestFile::read(text, "test").unwrap();
        let setup = ready(&file, "test", &no_files).unwrap();
        let journal = Path::new("journal.jsonl");
        let believed = |notes: &Notes| {
            let BoxedSurvey { candidates, survey, boxes } = survey_boxes(&setup, notes, &());
            is_believed(&setup.listing(candidates), (&survey, &boxes), journal)
        };
        let notes = Notes::default();
        survey_boxes(&setup, &notes, &());
        let found = notes.found.into_inner().unwrap();
        let mut given: BTreeMap<String, String> = found.into_iter().collect();
        assert!(believed(&Notes { given: given.clone(), ..Notes::default() }).is_ok());
        let time = |fact: &str| {
            let fact: serde_json::Value = serde_json::from_str(fact).unwrap();
            fact["chosen"]["standing"]["time"].as_u64()
        };
        let timed = given.iter().filter_map(|(key, fact)| Some((time(fact)?, key.clone())));
        let (_, best) = timed.min().unwrap();
        given.insert(best, format!("{{\"slower\":{}}}", u64::MAX));
        let refused = believed(&Notes { given, ..Notes::default() }).unwrap_err().to_string();
        assert!(refused.starts_with("journal.jsonl: what it says of the point"), "{refused}");
    }

    #[test]
    fn a_result_never_leaves_its_folder() {
        for (name, expected) in [
            ("gpt2-xl", "gpt2-xl"),
            ("megatron-gpt2-2.5b", "megatron-gpt2-2.5b"),
            ("models/own.json", "own"),
            ("...json", "model"),
            ("..json", "model"),
            (".json", "json"),
            ("/", "model"),
            ("..", "model"),
            ("a b/\u{1b}c.json", "_c"),
        ] {
            assert_eq!(folder(name), expected, "{name}");
        }
    }
}
