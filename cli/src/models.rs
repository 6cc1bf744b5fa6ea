//! `phaze models`: the models that come with phaze.

use std::io::Write;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use phaze::input;
use phaze::report::models;

/// List the built-in models with their exact numbers of parameters.
#[derive(ClapArgs)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let names = input::model_names();
        let built_in: Result<Vec<_>, _> = names.iter().map(|name| input::model(name)).collect();
        let built_in = built_in?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.json {
            models::json(&built_in, &mut out)?;
        } else {
            models::text(&built_in, &mut out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
