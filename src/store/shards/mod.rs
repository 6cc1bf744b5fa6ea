//! Parts of a space on disk: searched by themselves, and merged to the answer of the whole.
//!
//! A shard keeps a journal as every search does; when it is done, the journal is sealed with what was
//! done and takes the name `shard.jsonl`. [`mod@file`] reads such files, [`board`] lets shards hear of each
//! other's best, [`merge`] joins all of them; parts of a grid of chips are those of [`chips`]. docs/scale.md says why the answer is that of one search.

pub mod board;
pub mod chips;
pub mod file;
pub mod merge;
mod merge_chips;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::file::Header;
use self::file::ShardFile;
use self::file::Shards;
use super::files;
use super::journal::Journal;
use super::journal::Start;
use super::results::Shelf;
use crate::ask::Refusal;
use crate::ask::Spelling;
use crate::ask::search::Watcher;
use crate::search::Part;
use crate::search::PartBest;
use crate::search::PartSurvey;
use crate::search::Peers;
use crate::search::Round;
use crate::search::Setup;
use crate::search::survey_part;

/// Which walks a shard makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoundName {
    /// Every model alone.
    Alone,
    /// All models together.
    Together,
    /// Chips nearly as good as the best.
    Near,
}

impl RoundName {
    /// All of them, in the order in which they are searched.
    pub const ALL: [Self; 3] = [Self::Alone, Self::Together, Self::Near];

    /// As it is written in options and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Together => "together",
            Self::Near => "near",
        }
    }
}

/// One shard to be searched.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which part of the space.
    pub part: Part,
    /// Which walks.
    pub round: RoundName,
    /// The best of each model alone, where there are several and all are trained together.
    pub own: Vec<Option<PartBest>>,
}

impl Task {
    /// The shard of a part; several models are searched in two `round`s, the second `after` the
    /// directories of all shards of the first.
    ///
    /// # Errors
    /// A round too many or too few, or which shards of the first are missing.
    pub fn of(
        setup: &Setup,
        part: Part,
        (round, after): (Option<RoundName>, &[PathBuf]),
        (program, spelling): (&str, Spelling),
    ) -> Result<Self, Refusal> {
        let several = setup.request.models.len() > 1;
        let [part_word, round_word, after_word] = spelling.words_of_shards();
        let refused = |message: String| Err(Refusal::Options(message));
        let round = match (several, round) {
            (_, Some(RoundName::Near)) => {
                return refused(format!(
                    "{round_word}: near is a round of searches over chips; the published space has \
                     alone and together"
                ));
            }
            (true, Some(round)) => round,
            (false, None) => RoundName::Together,
            (true, None) => {
                return refused(format!(
                    "{part_word}: several models are searched in two rounds: give {round_word} alone \
                     to every shard, and when all are done {round_word} together {after_word} their \
                     directories"
                ));
            }
            (false, Some(_)) => {
                return refused(format!(
                    "{round_word}: there is one model, which needs one round; leave it out"
                ));
            }
        };
        let needs_first = several && round == RoundName::Together;
        if needs_first == after.is_empty() {
            return refused(format!(
                "{after_word}: belongs to {round_word} together, and names the directories of all \
                 shards of {round_word} alone"
            ));
        }
        let own = if needs_first {
            own_bests(setup, &Shards::find(after, program)?)?
        } else {
            Vec::new()
        };
        Ok(Self { part, round, own })
    }
}

/// The best of each model alone over all shards of the first round.
///
/// # Errors
/// Which shards are missing or of another request.
pub fn own_bests(setup: &Setup, shards: &Shards) -> Result<Vec<Option<PartBest>>, Refusal> {
    let mut best = vec![None; setup.request.models.len()];
    shards.are_whole(RoundName::Alone)?;
    shards.are_of(&setup.request)?;
    for shard in &shards.found {
        let survey: PartSurvey = shard.read(&mut |_, _| ())?;
        for (model, best) in best.iter_mut().enumerate() {
            let found = survey.best_alone(model);
            *best = [*best, found].into_iter().flatten().min();
        }
    }
    Ok(best)
}

/// Searches a shard into its directory, or takes it as it is where it is done; what is kept by others
/// is heard of through `share`. `None` where the user ended it before its end.
///
/// # Errors
/// That the directory holds something else, or cannot be written.
pub fn search(
    setup: &Setup,
    task: &Task,
    (shelf, share): (&Shelf, Option<&Path>),
    watcher: &dyn Watcher,
) -> Result<Option<PartSurvey>, Refusal> {
    let header = Header::of(&setup.request, task.part, task.round, shelf.program);
    let place = shelf.directory.join(file::NAME);
    if shelf.start != Start::Over && fs::symlink_metadata(&place).is_ok() {
        return already_done(&header, shelf).map(Some);
    }
    let unwritable = |reason| Refusal::Unwritable { place: files::name(shelf.directory), reason };
    fs::create_dir_all(shelf.directory).map_err(unwritable)?;
    let journal = Journal::open(shelf.directory, &header.line(), shelf.start)?;
    let board = share.map(|share| board::Board::open(share, &header)).transpose()?;
    let peers: &dyn Peers = board.as_ref().map_or(&(), |board| board);
    let round = match task.round {
        RoundName::Alone => Round::Alone,
        RoundName::Together | RoundName::Near => Round::Together(&task.own),
    };
    let survey = survey_part(setup, task.part, &round, (&journal, peers), watcher);
    watcher.finish();
    journal.healthy()?;
    if !survey.complete {
        return Ok(None);
    }
    journal.seal([file::end_of(&survey)], &place)?;
    Ok(Some(survey))
}

/// What was done in a shard that was found, where it is the one that is asked for.
fn already_done<E: DeserializeOwned>(header: &Header, shelf: &Shelf) -> Result<E, Refusal> {
    let found = ShardFile::open(shelf.directory)?;
    let place = files::name(&found.place);
    if found.header != *header {
        return Err(Refusal::Options(format!(
            "{place}: is another shard, or of another request or build; choose another --out, or \
             --force to write over it"
        )));
    }
    if shelf.start != Start::Resume {
        return Err(Refusal::Options(format!(
            "{place}: is done already; --resume takes it as it is, --force searches it again"
        )));
    }
    found.read(&mut |_, _| ())
}
