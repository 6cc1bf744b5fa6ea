//! `phaze check`: verifies a saved answer from first principles.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::files;
use crate::input::InputError;
use crate::plan::Plan;
use crate::plan::check::placement::check;
use crate::report::placement as report;

/// Plans of the largest models are a megabyte.
const LARGEST_FILE: u64 = 256 << 20;

/// Verify a saved plan from first principles, without any solver.
#[derive(ClapArgs)]
pub struct Args {
    /// A plan that `phaze place --out` saved; `-` reads it from standard input
    file: PathBuf,
}

impl Args {
    /// Says on standard output what holds, or what does not.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let name = files::name(&self.file);
        let text = files::read(&self.file, LARGEST_FILE)?;
        let plan: Plan = serde_json::from_str(&text).map_err(|error| InputError::Syntax {
            file: name.clone(),
            line: Some(error.line()),
            message: format!("not a plan: {error}"),
        })?;
        let mut out = std::io::stdout().lock();
        match check(&plan) {
            Ok(()) => {
                report::verdict(&name, &plan, &mut out)?;
                Ok(Exit::Done)
            }
            Err(violation) => {
                writeln!(out, "{name}: does not hold: {violation}")?;
                Ok(Exit::Negative)
            }
        }
    }
}
