//! `phaze sweep`: many searches, one table and one page of curves.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::schedule::seconds;
use super::search::in_threads;
use super::search::program;
use super::slurm;
use super::slurm::script::Place;
use super::slurm::script::Resources;
use super::slurm::script::SUBMIT;
use super::slurm::script::array_job;
use super::slurm::script::quoted;
use super::slurm::script::single_job;
use super::slurm::script::submit_in_turn;
use super::watch::Watch;
use phaze::input;
use phaze::store::Start;
use phaze::store::files;
use phaze::store::sweeps::ReadySweep;

/// Search every combination of some keys of a request: one table, one page of curves.
///
/// Searches that are done are taken as they are, so that an interrupted sweep goes on when the
/// command is repeated.
#[derive(ClapArgs)]
#[command(group = clap::ArgGroup::new("way").args(["only", "collect", "slurm"]))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// A sweep file; `--example` prints a commented one
    #[arg(required_unless_present = "example")]
    sweep: Option<PathBuf>,
    /// Where results are written [default: results/SWEEP]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Search the combination of this number alone, from 1 on, and write no table
    #[arg(long, value_name = "NUMBER")]
    only: Option<usize>,
    /// Write table and page of searches that are done, and search nothing
    #[arg(long)]
    collect: bool,
    /// Write an array job for Slurm, one task for each search, and a job that collects them
    #[arg(long)]
    slurm: bool,
    /// Hand the jobs to sbatch
    #[arg(long, requires = "slurm")]
    submit: bool,
    #[command(flatten)]
    resources: Resources,
    /// Stop each search after this long and keep its best so far, marked as unproven
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Search everything again, also what was found before
    #[arg(long)]
    force: bool,
    /// Threads to use [default: all cores]; the answers do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Print a commented sweep file and stop
    #[arg(long, exclusive = true)]
    example: bool,
}

impl Args {
    /// Searches what is not yet known, and writes table and page.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let Some(path) = self.sweep.as_deref().filter(|_| !self.example) else {
            std::io::stdout().lock().write_all(input::sweep::EXAMPLE.as_bytes())?;
            return Ok(Exit::Done);
        };
        let sweep = ReadySweep::read(path, self.out.as_deref())?;
        if self.slurm {
            return self.jobs(path, &sweep);
        }
        let numbers = match self.only {
            None if self.collect => 0..0,
            None => 0..sweep.count(),
            Some(number) if (1..=sweep.count()).contains(&number) => number - 1..number,
            Some(number) => {
                return Err(Refusal::Options(format!(
                    "--only: there is no search {number}; the sweep has 1 to {}",
                    sweep.count()
                )));
            }
        };
        for number in numbers {
            if in_threads(self.threads, || self.search(&sweep, number))? == Exit::Interrupted {
                eprintln!("interrupted; repeat the command to go on");
                return Ok(Exit::Interrupted);
            }
        }
        if self.only.is_some() {
            // Whether something fits is an answer; what waits for all searches must not fail by it.
            return Ok(Exit::Done);
        }
        let table = sweep.table()?;
        sweep.write(&table)?;
        let (place, n) = (files::name(sweep.directory()), table.rows.len());
        writeln!(
            std::io::stdout().lock(),
            "Written to {place}: sweep.csv, sweep.html, and {n} searches in folders of their own"
        )?;
        let any = table.rows.iter().any(|row| !row.outcome["winner"].is_null());
        Ok(if any { Exit::Done } else { Exit::Negative })
    }

    /// Searches one combination, unless its answer is there.
    fn search(&self, sweep: &ReadySweep, number: usize) -> Result<Exit, Refusal> {
        if !self.force && sweep.is_done(number)? {
            return Ok(Exit::Done);
        }
        eprintln!("{} of {}: {}", number + 1, sweep.count(), sweep.said(number));
        let start = if self.force { Start::Over } else { Start::Resume };
        // From here on Ctrl-C ends the search in order, not the process.
        let (watch, program) = (Watch::new(self.time_limit), program());
        let interrupted = sweep.search(number, (start, &program), &watch)?;
        Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
    }

    /// Writes the jobs that search everything on a cluster.
    fn jobs(&self, path: &Path, sweep: &ReadySweep) -> Result<Exit, Refusal> {
        self.resources.validate()?;
        slurm::is_a_file(path)?;
        let place = Place::here(sweep.directory())?;
        let n_tasks = u32::try_from(sweep.count()).unwrap_or(u32::MAX);
        let file = quoted(&place.folder.join(path));
        let limit = self
            .time_limit
            .map(|limit| format!(" --time-limit {}", limit.as_secs_f64()))
            .unwrap_or_default();
        let command = format!(
            "{} sweep {file} --only \"$SLURM_ARRAY_TASK_ID\" --threads {}{limit} --out {}",
            place.program(),
            self.resources.cpus,
            quoted(&place.out)
        );
        let collect =
            format!("{} sweep {file} --collect --out {}", place.program(), quoted(&place.out));
        let names = ["searches.sbatch", "collect.sbatch"];
        let scripts = [
            (names[0], array_job(&self.resources, "searches", n_tasks, &place, &command)),
            (names[1], single_job(&self.resources, "collect", &place, &collect)),
            (SUBMIT, submit_in_turn(&place, &names)),
        ];
        slurm::write_all(sweep.directory(), &scripts)?;
        if self.submit { slurm::submit(sweep.directory()) } else { Ok(Exit::Done) }
    }
}
