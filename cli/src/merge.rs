//! `phaze merge`: the answer of a whole space from the shards of its parts.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::search::in_threads;
use super::search::program;
use super::search::show;
use super::search::show_chips;
use super::watch::Watch;
use phaze::store::Start;
use phaze::store::results::Shelf;
use phaze::store::shards::merge::Merged;
use phaze::store::shards::merge::merge;

/// Join the shards of a search into the answer of the whole space, with its proof.
///
/// The answer is that of one search of the whole: facts of shards, and of chips their boxes, are taken up,
/// and whatever the whole asks for besides is evaluated here.
#[derive(ClapArgs)]
pub struct Args {
    /// The directories that `phaze search --shard` wrote, all of them
    #[arg(required = true, value_name = "DIRECTORY")]
    shards: Vec<PathBuf>,
    /// Where results are written
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// Write over the result of another request
    #[arg(long)]
    force: bool,
    /// Threads to use [default: all cores]; the answer does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Print the outcome as JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Joins the shards, writes the files of the result, and prints it.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let (watch, program) = (Watch::new(None), program());
        let start = if self.force { Start::Over } else { Start::Anew };
        let shelf = Shelf { directory: &self.out, start, program: &program };
        let found = in_threads(self.threads, || Ok(merge(&self.shards, &shelf, &watch)?))?;
        let Some(found) = found else {
            eprintln!("interrupted; nothing was written: repeat the command");
            return Ok(Exit::Interrupted);
        };
        let any = match found {
            Merged::Designs(found) => {
                show(&found.outcome, &self.out, self.json)?;
                found.outcome.winner.is_some()
            }
            Merged::Chips(found) => {
                show_chips(&found.outcome, &self.out, self.json)?;
                found.outcome.winner.is_some()
            }
        };
        Ok(if any { Exit::Done } else { Exit::Negative })
    }
}
