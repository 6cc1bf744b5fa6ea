//! `phaze report`: pictures of a search result, made again from its files.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use phaze::report::plot;
use phaze::report::quantity::shown;
use phaze::store::files;
use phaze::store::results;

/// Make the interactive report of a search result again, or compare two results.
#[derive(ClapArgs)]
pub struct Args {
    /// The directory that `phaze search` wrote: outcome.json and designs.csv or boxes.csv
    #[arg(required_unless_present = "compare", conflicts_with = "compare")]
    directory: Option<PathBuf>,
    /// Set two results side by side
    #[arg(long, num_args = 2, value_names = ["DIR", "DIR"])]
    compare: Option<Vec<PathBuf>>,
    /// Where to write the page [default: DIR/report.html, or compare.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Print the Pareto front and the winner's pipeline as text instead of writing a page
    #[arg(long, conflicts_with_all = ["out", "open", "compare"])]
    plot: bool,
}

impl Args {
    /// Writes the page and says where, or draws on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let place = match (&self.directory, self.compare.as_deref()) {
            (Some(directory), _) if self.plot => {
                plot(directory)?;
                return Ok(Exit::Done);
            }
            (Some(directory), _) => results::write_page(directory, self.out.as_deref())?,
            (None, Some([first, second])) => {
                let place = self.out.clone().unwrap_or_else(|| "compare.html".into());
                files::write(&place, &results::comparison(first, second)?)?;
                place
            }
            (None, _) => return Err(Refusal::Options("give a result directory".into())),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", shown(&place.display().to_string()))?;
        out.flush()?;
        if self.open {
            open(&place)?;
        }
        Ok(Exit::Done)
    }
}

/// Draws a result directory on standard output.
pub fn plot(directory: &Path) -> Result<(), Refusal> {
    if !directory.join("designs.csv").exists() && directory.join("boxes.csv").exists() {
        return Err(Refusal::Options(format!(
            "{}: is a result over chips, which has no plot in text; leave --plot out for its page",
            files::name(directory)
        )));
    }
    let saved = results::read(directory)?;
    let mut out = std::io::stdout().lock();
    plot::write(&saved, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Hands the page to whatever opens files here.
fn open(place: &Path) -> Result<(), Refusal> {
    let openers: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["open"]]
    } else if cfg!(windows) {
        &[&["cmd", "/c", "start", ""]]
    } else {
        &[&["xdg-open"], &["gio", "open"], &["sensible-browser"]]
    };
    let started = openers.iter().any(|words| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(place).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    });
    if started {
        return Ok(());
    }
    let message = format!("no browser could be started; the page is {}", place.display());
    Err(Refusal::Options(message))
}
