//! `phaze slurm`: the scripts that search a space in parts on a cluster and merge them.
//!
//! Nothing here schedules: [`script`] writes what Slurm runs, [`elsewhere`] prints the same for
//! Kubernetes and GNU parallel. docs/scale.md says how to run them.

mod elsewhere;
pub mod script;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use clap::Args as ClapArgs;

use self::script::Place;
use self::script::Resources;
use super::Exit;
use super::Refusal;
use phaze::input::chip_space::SpaceKind;
use phaze::input::request::RequestFile;
use phaze::input::request::ready;
use phaze::input::request::ready_chips;
use phaze::search::MOST_PARTS;
use phaze::store::files;

/// Write the jobs that search a request in parts on a Slurm cluster and merge them.
///
/// Written are an array job with one task per part (with several models two: each alone, then all
/// together; over chips one more, for those nearly as good), a merge that waits for it, and submit.sh, which hands them to sbatch.
#[derive(ClapArgs)]
pub struct Args {
    /// The request file, as of `phaze search`
    request: PathBuf,
    /// Into how many parts the space is cut
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PARTS)))]
    shards: u32,
    #[command(flatten)]
    resources: Resources,
    /// Where scripts, shards and the result are written [default: results/REQUEST]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Hand the jobs to sbatch
    #[arg(long, conflicts_with = "print")]
    submit: bool,
    /// Print an example for another engine instead: kubernetes or parallel
    #[arg(long, value_name = "ENGINE")]
    print: Option<elsewhere::Engine>,
}

impl Args {
    /// Writes the scripts and says where they are, or prints an example.
    pub fn run(&self) -> Result<Exit, Refusal> {
        self.resources.validate()?;
        is_a_file(&self.request)?;
        let ((models, near), out) = (self.asked()?, self.out());
        let place = Place::here(&out)?;
        let jobs = script::Jobs {
            request: self.request.clone(),
            shards: self.shards,
            two_rounds: models > 1,
            near,
            resources: &self.resources,
            place,
        };
        if let Some(engine) = self.print {
            let mut to = std::io::stdout().lock();
            to.write_all(elsewhere::example(engine, &jobs).as_bytes())?;
            return Ok(Exit::Done);
        }
        write_all(&out, &jobs.scripts())?;
        if self.submit { submit(&out) } else { Ok(Exit::Done) }
    }

    /// How many models the request has, and whether it is over chips; it is read as it will be, so that no
    /// job meets an error of it first.
    fn asked(&self) -> Result<(usize, bool), Refusal> {
        let name = files::name(&self.request);
        let file = RequestFile::read(&files::small(&self.request)?, &name)?;
        let file = file.beside(self.request.parent().unwrap_or(Path::new("")));
        if file.kind(&name)? == SpaceKind::Chips {
            let setup = ready_chips(&file, &name, &files::small)?;
            return Ok((setup.models.len(), true));
        }
        let setup = ready(&file, &name, &files::small)?;
        Ok((setup.request.models.len(), false))
    }

    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let stem = self.request.file_stem().unwrap_or("request".as_ref());
            Path::new("results").join(stem)
        })
    }
}

/// Whether jobs can read a file again.
pub fn is_a_file(path: &Path) -> Result<(), Refusal> {
    if path == Path::new("-") {
        let problem = "standard input: jobs read their request again; write it to a file";
        return Err(Refusal::Options(problem.into()));
    }
    Ok(())
}

/// Writes scripts into a directory and says so.
pub fn write_all(out: &Path, scripts: &[(&'static str, String)]) -> Result<(), Refusal> {
    for folder in [out.to_owned(), out.join("log")] {
        fs::create_dir_all(&folder)
            .map_err(|reason| Refusal::Unwritable { place: files::name(&folder), reason })?;
    }
    for (name, text) in scripts {
        files::write(&out.join(name), text.as_bytes())?;
    }
    let names: Vec<&str> = scripts.iter().map(|(name, _)| *name).collect();
    let mut to = std::io::stdout().lock();
    writeln!(to, "Written to {}: {}", files::name(out), names.join(", "))?;
    Ok(())
}

/// Hands the jobs of a directory to sbatch.
pub fn submit(out: &Path) -> Result<Exit, Refusal> {
    let script = out.join(script::SUBMIT);
    let ended = Command::new("sh").arg(&script).status();
    let place = files::name(&script);
    match ended {
        Ok(status) if status.success() => Ok(Exit::Done),
        Ok(_) => Err(Refusal::Options(format!(
            "{place}: sbatch did not take all jobs, and none is left; where it does, run this script"
        ))),
        Err(reason) => Err(Refusal::Options(format!("{place}: cannot be started: {reason}"))),
    }
}
