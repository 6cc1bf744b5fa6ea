//! `phaze calibrate`: a hardware file whose efficiency is fitted to measured runs.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::validate;
use phaze::ask::Spelling;
use phaze::ask::calibrate::CalibrateRequest;
use phaze::store::files;

/// Fit what hardware and software reach of the data sheet to measured training runs, and write a
/// hardware file that place and search take.
#[derive(ClapArgs)]
pub struct Args {
    /// Files of measured runs, see docs/fidelity.md
    #[arg(value_name = "RUNS.csv", required = true)]
    files: Vec<PathBuf>,
    /// The hardware that the runs are of, and whose data sheet is kept: a built-in accelerator or a
    /// hardware file [default: what the runs name]
    #[arg(long, value_name = "NAME|FILE")]
    hardware: Option<String>,
    /// Use runs of this software alone
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// Use runs of this precision alone: bf16 or fp8
    #[arg(long, value_name = "NAME")]
    precision: Option<String>,
    /// Which scalars are fitted: 1, 2, or names (matmul, memory, attention, `collective_us`), at
    /// most two [default: matmul, and memory where there are runs of three models]
    #[arg(long, value_name = "LIST")]
    scalars: Option<String>,
    /// What the file says of when the runs were made
    #[arg(long, value_name = "TEXT")]
    date: Option<String>,
    /// Write the hardware file there
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let request = CalibrateRequest {
            files: self.files.clone(),
            hardware: self.hardware.clone(),
            stack: self.stack.clone(),
            precision: self.precision.clone(),
            scalars: self.scalars.clone(),
            date: self.date.clone(),
            spelling: Spelling::Options,
        };
        let found = request.answer(&validate::read)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        out.write_all(found.told.as_bytes())?;
        if let Some(path) = &self.out {
            files::write(path, found.hardware.as_bytes())?;
            writeln!(out, "\nwrote {}", files::name(path))?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
