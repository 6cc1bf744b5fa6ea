//! `phaze validate`: how close predictions are to measured runs.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use phaze::ask::Spelling;
use phaze::ask::validate::ValidateRequest;
use phaze::ask::validate::Validations;
use phaze::input::InputError;
use phaze::report::validation as report;
use phaze::report::validation_page;
use phaze::store::files;

/// Files of runs are a page or two; this is a thousand times that.
const LARGEST_FILE: u64 = 16 << 20;

/// Compare predictions with measured training runs, beside two baselines: by set, with models left out.
#[derive(ClapArgs)]
pub struct Args {
    /// Files of measured runs, see docs/fidelity.md [default: all that come with phaze]
    #[arg(value_name = "RUNS.csv")]
    files: Vec<PathBuf>,
    /// Fit on this set alone, and predict the set that --on names
    #[arg(long, value_name = "SET", requires = "on")]
    from: Option<String>,
    /// Predict this set
    #[arg(long, value_name = "SET")]
    on: Option<String>,
    /// Which scalars are fitted: 1, 2, or names (matmul, memory, attention, `collective_us`), at
    /// most two [default: matmul, and memory where there are runs of three models]
    #[arg(long, value_name = "LIST")]
    scalars: Option<String>,
    /// Leave a term out of every prediction, to see what it is worth; may be given more than once
    #[arg(long, value_name = "TERM")]
    without: Vec<String>,
    /// Print every run, term by term
    #[arg(long)]
    per_run: bool,
    /// Draw predicted against measured times, set by set, as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The text of a file of runs, or of what one names.
pub fn read(path: &Path) -> Result<String, InputError> {
    files::read(path, LARGEST_FILE)
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let request = ValidateRequest {
            files: self.files.clone(),
            from: self.from.clone(),
            on: self.on.clone(),
            scalars: self.scalars.clone(),
            without: self.without.clone(),
            spelling: Spelling::Options,
        };
        let Validations { notes, bench, all } = request.answer(&read)?;
        if let Some(path) = &self.html {
            let mut page = Vec::new();
            validation_page::write(&bench, &all, &mut page)?;
            files::write(path, &page)?;
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for note in &notes {
            writeln!(out, "{note}")?;
        }
        report::table(&all, &mut out)?;
        report::legend(&mut out)?;
        report::ranks(&all, &mut out)?;
        report::memory(&all, &mut out)?;
        report::fits(&all, &mut out)?;
        report::far_off(&bench, &all, &mut out)?;
        if self.per_run {
            for titled in &all {
                report::per_run(&bench, titled, &mut out)?;
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
