//! `phaze search --shard`: one part of a space, whose facts `phaze merge` joins with the others'.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Exit;
use super::Refusal;
use super::search::program;
use super::watch::Watch;
use phaze::ask::Spelling;
use phaze::report::quantity::grouped;
use phaze::search::Part;
use phaze::search::PartSurvey;
use phaze::search::PartWalk;
use phaze::search::Setup;
use phaze::search::chips::ChipSetup;
use phaze::store::Start;
use phaze::store::files;
use phaze::store::results::Shelf;
use phaze::store::shards;
use phaze::store::shards::RoundName;
use phaze::store::shards::chips::ChipTask;
use phaze::store::shards::file::NAME;

/// What else a shard needs, where it is missing.
pub const NEEDS: &str = "--shard: needs --out, a directory of its own, and takes no --time-limit: a \
                         part is searched to its end, and --resume goes on after an interruption";

/// Which part of a space is searched, and what of others is heard meanwhile.
#[derive(ClapArgs)]
#[command(next_help_heading = "Parts of a space (docs/scale.md)")]
pub struct ShardArgs {
    /// Search one part of the space, as 3/64; `phaze merge` joins all of them
    #[arg(long, value_name = "NUMBER/COUNT")]
    shard: Option<Part>,
    /// Tell other shards the best so far through this directory, and hear of theirs; the merged
    /// answer does not depend on it
    #[arg(long, value_name = "DIRECTORY", requires = "shard")]
    share: Option<PathBuf>,
    /// With several models: first every model `alone` in all shards, then all `together`; of chips at last
    /// those `near` the best, which the merge searches otherwise
    #[arg(long, value_name = "ROUND", requires = "shard", value_parser = round)]
    round: Option<RoundName>,
    /// With `--round together` and `near`: the directories of all shards of the rounds before
    #[arg(long, value_name = "DIRECTORY", requires = "shard", num_args = 1..)]
    after: Vec<PathBuf>,
}

fn round(word: &str) -> Result<RoundName, String> {
    let found = RoundName::ALL.into_iter().find(|round| round.word() == word);
    found.ok_or_else(|| "the rounds are alone, together and near".into())
}

/// One shard to be searched, and where it tells others.
pub struct Task<T = shards::Task> {
    task: T,
    share: Option<PathBuf>,
}

impl ShardArgs {
    /// Whether a shard is asked for.
    pub fn is_asked(&self) -> bool {
        self.shard.is_some()
    }

    /// The shard that is asked for, if one is.
    pub fn task(&self, setup: &Setup) -> Result<Option<Task>, Refusal> {
        let Some(part) = self.shard else { return Ok(None) };
        let rounds = (self.round, self.after.as_slice());
        let task = shards::Task::of(setup, part, rounds, (&program(), Spelling::Options))?;
        Ok(Some(Task { task, share: self.share.clone() }))
    }

    /// The same of a grid of chips.
    pub fn chip_task(&self, setup: &ChipSetup) -> Result<Option<Task<ChipTask>>, Refusal> {
        let Some(part) = self.shard else { return Ok(None) };
        let rounds = (self.round, self.after.as_slice());
        let task = ChipTask::of(setup, part, rounds, (&program(), Spelling::Options))?;
        Ok(Some(Task { task, share: self.share.clone() }))
    }
}

/// Searches a shard, writes its file, and says what was done.
pub fn search(setup: &Setup, task: &Task, out: &Path, start: Start) -> Result<Exit, Refusal> {
    let (watch, program) = (Watch::new(None), program());
    let shelf = Shelf { directory: out, start, program: &program };
    let share = task.share.as_deref();
    let Some(survey) = shards::search(setup, &task.task, (&shelf, share), &watch)? else {
        return Ok(interrupted());
    };
    print(task.task.part, &survey, out)?;
    Ok(Exit::Done)
}

/// The same of a grid of chips.
pub fn search_chips(
    setup: &ChipSetup,
    task: &Task<ChipTask>,
    out: &Path,
    start: Start,
) -> Result<Exit, Refusal> {
    let (watch, program) = (Watch::new(None), program());
    let shelf = Shelf { directory: out, start, program: &program };
    let share = task.share.as_deref();
    let Some(end) = shards::chips::search(setup, &task.task, (&shelf, share), &watch)? else {
        return Ok(interrupted());
    };
    let boxes: usize = end.walks.iter().map(|walk| walk.boxes).sum();
    let mut to = std::io::stdout().lock();
    writeln!(
        to,
        "Shard {}: {} chips; {} evaluated, {} boxes closed in {} walks",
        task.task.part,
        grouped(u64::try_from(end.chips).unwrap_or(u64::MAX)),
        grouped(end.evaluated as u64),
        grouped(boxes as u64),
        end.walks.len()
    )?;
    writeln!(to, "Written to {}: {NAME}", files::name(out))?;
    Ok(Exit::Done)
}

fn interrupted() -> Exit {
    eprintln!("interrupted; everything evaluated so far is kept: repeat the command with --resume");
    Exit::Interrupted
}

fn print(part: Part, survey: &PartSurvey, out: &Path) -> Result<(), Refusal> {
    let mut to = std::io::stdout().lock();
    let sum = |count: fn(&PartWalk) -> usize| {
        grouped(survey.walks.iter().map(count).sum::<usize>() as u64)
    };
    writeln!(
        to,
        "Shard {part}: {} designs; {} evaluated, {} beaten, {} pruned, {} infeasible in {} walks",
        grouped(survey.designs as u64),
        sum(|walk| walk.evaluated),
        sum(|walk| walk.beaten),
        sum(|walk| walk.pruned),
        sum(|walk| walk.infeasible),
        survey.walks.len()
    )?;
    writeln!(to, "Written to {}: {NAME}", files::name(out))?;
    Ok(())
}
