//! `phaze reproduce`: the published evaluation, with our physics and with the published constants.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::search::in_threads;
use super::watch::Watch;
use phaze::ask::search::Watcher;
use phaze::compare;
use phaze::compare::PUBLISHED;
use phaze::compare::Published;
use phaze::input;
use phaze::input::InputError;
use phaze::input::request::ModelEntry;
use phaze::input::request::RequestFile;
use phaze::input::request::ready;
use phaze::input::source::no_files;
use phaze::report::reproduction;
use phaze::search::Outcome;
use phaze::search::designs::BoxedSurvey;
use phaze::search::designs::survey_boxes;
use phaze::store::files;

/// Run the published evaluation: eight models, 1,024 accelerators, batch 4,096, micro-batches 1 to
/// 8, HBM of 32, 64 and 80 GiB, with and without recompute; prints one table for each physics.
#[derive(ClapArgs)]
pub struct Args {
    /// Only these models; repeat for several [default: all eight]
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Write the tables to a file as well
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Threads to use [default: all cores]; the tables do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

impl Args {
    /// Searches model after model; each row is printed when it is known.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let known: Vec<String> = PUBLISHED.iter().map(|known| known.model.to_owned()).collect();
        if let Some(unknown) = self.model.iter().find(|name| !known.contains(name)) {
            let (file, what) = ("--model".into(), "model of the published evaluation".into());
            return Err(InputError::Unknown { file, what, found: unknown.clone(), known }.into());
        }
        let wanted: Vec<&Published> = PUBLISHED
            .iter()
            .filter(|known| self.model.is_empty() || self.model.iter().any(|m| m == known.model))
            .collect();
        in_threads(self.threads, || self.tables(&wanted))
    }

    fn tables(&self, wanted: &[&Published]) -> Result<Exit, Refusal> {
        let mut all = Vec::new();
        for published in [false, true] {
            print(&mut all, |out| reproduction::heading(published, out))?;
            for known in wanted {
                let Some(outcome) = outcome(known, published)? else {
                    eprintln!("interrupted; the rows above are complete");
                    return Ok(Exit::Interrupted);
                };
                print(&mut all, |out| reproduction::row(&outcome, out))?;
            }
            print(&mut all, |out| writeln!(out))?;
        }
        if let Some(path) = &self.out {
            files::write(path, &all)?;
        }
        Ok(Exit::Done)
    }
}

/// Prints at once, and keeps what was printed.
fn print(
    all: &mut Vec<u8>,
    write: impl Fn(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Refusal> {
    let start = all.len();
    write(all)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&all[start..])?;
    out.flush()?;
    Ok(())
}

/// The search of one model; `None` where the user interrupted it.
fn outcome(known: &Published, published: bool) -> Result<Option<Outcome>, Refusal> {
    let mut file = RequestFile { published: Some(published), ..RequestFile::default() };
    file.model =
        vec![ModelEntry { name: known.model.into(), sequence: Some(known.sequence), weight: None }];
    file.job.tensor_parallel = Some(known.widths.to_vec());
    let setup = ready(&file, known.model, &no_files)?;
    let watch = Watch::new(None);
    // A reproduction is short enough to be run again: nothing is kept of one that is cut short.
    let BoxedSurvey { candidates, survey, .. } = survey_boxes(&setup, &(), &watch);
    watch.finish();
    if watch.interrupted() {
        return Ok(None);
    }
    Ok(Some(compare::outcome(
        &setup.listing(candidates),
        &survey,
        &input::references()?,
        None,
        &watch,
    )))
}
