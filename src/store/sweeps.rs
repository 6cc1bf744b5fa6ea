//! The directory of a sweep: a folder for each search, `sweep.csv` and `sweep.html`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use super::files;
use super::results;
use super::shards::file::listed;
use crate::ask::Refusal;
use crate::input::chip_space::SpaceKind;
use crate::input::request::RequestFile;
use crate::input::request::ready;
use crate::input::saved;
use crate::input::source::Reader;
use crate::input::sweep::Sweep;
use crate::report::sweep as shown;
use crate::report::sweep::SweepRow;
use crate::report::sweep::SweepTable;
use crate::search::Setup;

/// A sweep of which every request is ready, and where it is kept.
pub struct ReadySweep {
    /// What its author calls it.
    name: String,
    sweep: Sweep,
    setups: Vec<Setup>,
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
        for point in &sweep.points {
            only_designs(&point.request, &point.name)?;
        }
        let points = sweep.points.iter();
        let setups: Result<Vec<Setup>, _> =
            points.map(|point| ready(&point.request, &point.name, read)).collect();
        Ok(Self { name, setups: setups?, sweep, out })
    }

    /// How many searches there are.
    pub fn count(&self) -> usize {
        self.setups.len()
    }

    /// Where it is kept.
    pub fn directory(&self) -> &Path {
        &self.out
    }

    /// A search, from 0 on: what is asked, and where its files are.
    pub fn search(&self, number: usize) -> (&Setup, PathBuf) {
        (&self.setups[number], self.out.join(self.folder(number)))
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
        Ok(found.is_some_and(|outcome| outcome["proof"]["complete"] == true))
    }

    /// What a table tells of the answer of a search, where it is there.
    fn answer(&self, number: usize) -> Result<Option<Value>, Refusal> {
        let (setup, directory) = self.search(number);
        if fs::symlink_metadata(directory.join("outcome.json")).is_err() {
            return Ok(None);
        }
        let path = directory.join("outcome.json");
        results::is_free(&path, &setup.request)?;
        let text = files::read(&path, results::LARGEST_FILE)?;
        Ok(Some(shown::told(saved::outcome(&files::name(&path), &text)?)))
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

/// Whether a request is over a list of designs, which alone is searched in parts and in sweeps.
///
/// # Errors
/// That it is over chips, or over a space that is not known.
pub fn only_designs(request: &RequestFile, name: &str) -> Result<(), Refusal> {
    if request.kind(name)? == SpaceKind::Published {
        return Ok(());
    }
    Err(Refusal::Options(format!(
        "{name}: is over chips; parts and sweeps are those of the published space: write name = \
         \"published\" under [space], and vary its keys"
    )))
}
