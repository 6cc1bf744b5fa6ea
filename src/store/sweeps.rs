//! The directory of a sweep: a folder for each search, `sweep.csv` and `sweep.html`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use super::files;
use super::journal::Start;
use super::results;
use super::results::Shelf;
use super::shards::file::listed;
use crate::ask::Refusal;
use crate::ask::check;
use crate::ask::check::Answer;
use crate::ask::search::Watcher;
use crate::input::InputError;
use crate::input::chip_space::SpaceKind;
use crate::input::request::ready;
use crate::input::request::ready_chips;
use crate::input::saved;
use crate::input::source::Reader;
use crate::input::sweep::Sweep;
use crate::input::sweep::SweepPoint;
use crate::report::sweep as shown;
use crate::report::sweep::SweepRow;
use crate::report::sweep::SweepTable;
use crate::search::Senseless;
use crate::search::Setup;
use crate::search::chips::ChipSetup;
use crate::search::chips::NoChip;

/// A request that is ready, over a list of designs or over chips.
enum ReadyRequest {
    Designs(Box<Setup>),
    Chips(Box<ChipSetup>),
    /// There is nothing to search, and why.
    Nothing(String),
}

impl ReadyRequest {
    fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }
}

/// A sweep of which every request is ready, and where it is kept.
pub struct ReadySweep {
    /// What its author calls it.
    name: String,
    sweep: Sweep,
    setups: Vec<ReadyRequest>,
    out: PathBuf,
}

impl ReadySweep {
    /// Makes every request of a sweep file ready, so that the last one is refused before the first is
    /// searched; where nobody says, it is kept in a folder of its name.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn read(path: &Path, out: Option<&Path>) -> Result<Self, Refusal> {
        let sweep = Sweep::read(&files::small(path)?, path, &files::small)?;
        let usual = || Path::new("results").join(path.file_stem().unwrap_or("sweep".as_ref()));
        let out = out.map_or_else(usual, Path::to_path_buf);
        Self::of(files::name(path), sweep, out, &files::small)
    }

    /// The same of a sweep that was read; `read` opens the files that its requests name.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn of(name: String, sweep: Sweep, out: PathBuf, read: &Reader) -> Result<Self, Refusal> {
        let mut unsearched = None;
        let points = sweep.points.iter();
        let setups: Result<Vec<ReadyRequest>, Refusal> = points
            .map(|SweepPoint { request, name, .. }| {
                let made = match request.kind(name)? {
                    SpaceKind::Published => ready(request, name, read)
                        .map(|setup| ReadyRequest::Designs(Box::new(setup))),
                    SpaceKind::Chips => ready_chips(request, name, read)
                        .map(|setup| ReadyRequest::Chips(Box::new(setup))),
                };
                // A budget that nothing keeps is one of the answers of a sweep over budgets.
                let reason = match &made {
                    Err(InputError::Senseless {
                        reason: reason @ Senseless::NoDesign(_), ..
                    }) => Some(reason.to_string()),
                    Err(InputError::NoChip { reason: reason @ NoChip::Budget { .. }, .. }) => {
                        Some(reason.to_string())
                    }
                    _ => None,
                };
                match (made, reason) {
                    (Err(error), Some(reason)) => {
                        unsearched.get_or_insert(error);
                        Ok(ReadyRequest::Nothing(reason))
                    }
                    (made, _) => Ok(made?),
                }
            })
            .collect();
        let setups = setups?;
        match unsearched {
            // Where nothing at all is to be searched, something else is wrong.
            Some(error) if setups.iter().all(ReadyRequest::is_nothing) => Err(error.into()),
            _ => Ok(Self { name, sweep, setups, out }),
        }
    }

    /// How many searches there are.
    pub fn count(&self) -> usize {
        self.setups.len()
    }

    /// Where it is kept.
    pub fn directory(&self) -> &Path {
        &self.out
    }

    /// Searches one of them, from 0 on, into its folder; whether the user ended it before its end.
    ///
    /// # Errors
    /// That its folder holds something else, or cannot be written.
    pub fn search(
        &self,
        number: usize,
        (start, program): (Start, &str),
        watcher: &dyn Watcher,
    ) -> Result<bool, Refusal> {
        let directory = self.out.join(self.folder(number));
        let shelf = Shelf { directory: &directory, start, program };
        Ok(match &self.setups[number] {
            ReadyRequest::Designs(setup) => results::search(setup, &shelf, watcher)?.interrupted,
            ReadyRequest::Chips(setup) => {
                results::search_chips(setup, &shelf, watcher)?.interrupted
            }
            ReadyRequest::Nothing(_) => false,
        })
    }

    /// The folder of a search within the directory.
    pub fn folder(&self, number: usize) -> String {
        let width = self.setups.len().to_string().len();
        format!("{:0width$}", number + 1)
    }

    /// What is particular to a search.
    pub fn said(&self, number: usize) -> String {
        let pairs = self.sweep.keys.iter().zip(&self.sweep.points[number].values);
        pairs.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
    }

    /// Whether the proved answer of a search is there.
    ///
    /// # Errors
    /// That its folder holds the answer of another request.
    pub fn is_done(&self, number: usize) -> Result<bool, Refusal> {
        let found = self.answer(number)?;
        let certificate = match &self.setups[number] {
            ReadyRequest::Designs(_) => Some("designs.csv"),
            ReadyRequest::Chips(_) => Some("boxes.csv"),
            ReadyRequest::Nothing(_) => None,
        };
        // Without its certificate nobody could check an answer.
        let directory = self.out.join(self.folder(number));
        let is_whole = certificate.is_none_or(|name| directory.join(name).is_file());
        Ok(is_whole && found.is_some_and(|outcome| outcome["proof"]["complete"] == true))
    }

    /// What a table tells of the answer of a search, where it is there.
    fn answer(&self, number: usize) -> Result<Option<Value>, Refusal> {
        let path = self.out.join(self.folder(number)).join("outcome.json");
        if let ReadyRequest::Nothing(reason) = &self.setups[number] {
            let proof = serde_json::json!({"complete": true, "gap": 0.0});
            return Ok(Some(shown::told(serde_json::json!({
                "winner": null, "infeasible_reason": reason, "proof": proof
            }))));
        }
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        let name = files::name(&path);
        let outcome = match &self.setups[number] {
            ReadyRequest::Designs(setup) => {
                results::is_free(&path, &setup.request)?;
                saved::outcome(&name, &files::read(&path, results::LARGEST_FILE)?)?
            }
            ReadyRequest::Nothing(_) => return Ok(None),
            ReadyRequest::Chips(setup) => {
                results::is_free(&path, &setup.request)?;
                let text = files::read(&path, results::LARGEST_FILE)?;
                match check::read(&name, &text)? {
                    Answer::Chips(outcome) => {
                        serde_json::to_value(outcome).expect("an outcome has only string keys")
                    }
                    _ => return Err(Refusal::Options(format!("{name}: is no answer over chips"))),
                }
            }
        };
        Ok(Some(shown::told(outcome)))
    }

    /// The table of all searches.
    ///
    /// # Errors
    /// Which searches are not done.
    pub fn table(&self) -> Result<SweepTable, Refusal> {
        let mut rows = Vec::new();
        let mut missing = Vec::new();
        for number in 0..self.count() {
            let values = self.sweep.points[number].values.clone();
            match self.answer(number)? {
                Some(outcome) => {
                    rows.push(SweepRow { values, folder: self.folder(number), outcome });
                }
                None => missing.push((number + 1).to_string()),
            }
        }
        if missing.is_empty() {
            return Ok(SweepTable { keys: self.sweep.keys.clone(), rows });
        }
        Err(Refusal::Options(format!(
            "{}: of {} searches, {} not done; --only searches one, and without --collect all are",
            files::name(&self.out),
            self.count(),
            listed(&missing)
        )))
    }

    /// Writes table and page.
    ///
    /// # Errors
    /// That they cannot be written.
    pub fn write(&self, table: &SweepTable) -> Result<(), Refusal> {
        let (mut csv, mut page) = (Vec::new(), Vec::new());
        shown::csv::write(table, &mut csv).expect("memory takes what is written");
        shown::page::write(&self.name, table, &mut page).expect("memory takes what is written");
        files::write(&self.out.join("sweep.csv"), &csv)?;
        files::write(&self.out.join("sweep.html"), &page)
    }
}
