//! Parts of a grid of chips on disk: each walked by itself into its file, with the boxes that it closed.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use super::RoundName;
use super::board::Board;
use super::file;
use super::file::Header;
use super::file::ShardFile;
use super::file::Shards;
use crate::ask::Refusal;
use crate::ask::Spelling;
use crate::ask::chips::evaluator;
use crate::ask::search::Watcher;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Part;
use crate::search::boxes::Closed;
use crate::search::boxes::Region;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::search::chips::Aim;
use crate::search::chips::ChipPeers;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipRound;
use crate::search::chips::ChipSetup;
use crate::search::chips::ChipWalk;
use crate::search::chips::ClosedChips;
use crate::search::chips::KeptChip;
use crate::search::chips::ToldChip;
use crate::search::chips::survey_chip_part;
use crate::store::files;
use crate::store::journal::Journal;
use crate::store::journal::Start;
use crate::store::results::Shelf;

/// The word of the line before the boxes: those of a search that was killed while it wrote them are void.
pub(super) const BEGIN: &str = "begin";

/// The word before a box.
pub(super) const BOX: &str = "box";

/// What was done with a part of a grid: the last line of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipPartEnd {
    /// How many chips the part holds.
    pub chips: u128,
    /// Pairs of a chip and a model that were evaluated.
    pub evaluated: usize,
    /// By model, where there are several: the value of its own best, that this rests on.
    pub own: Vec<Option<u128>>,
    /// The value of the best of all, where this rests on it.
    pub best: Option<u128>,
    /// Its walks, in the order in which they were made.
    pub walks: Vec<ChipPartWalk>,
}

/// What a walk of a part ended with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipPartWalk {
    /// What it looked for.
    pub aim: Aim,
    /// The best that it knows, the best first.
    pub kept: Vec<ToldChip>,
    /// How many boxes it closed.
    pub boxes: usize,
}

/// A closed box as files hold it: what for, why, by which value, from where to where.
type BoxLine = (Aim, String, Option<(u128, u128, u128)>, ChipPoint, ChipPoint);

/// A box as a line.
fn box_line(aim: Aim, closed: &ClosedChips) -> String {
    let (why, value) = closed.why.word();
    let value = value.map(|value| (value.first, value.second, value.place));
    let line: BoxLine = (aim, why.to_owned(), value, closed.region.lo, closed.region.hi);
    let line = serde_json::to_string(&line).expect("plain figures can be written");
    format!("{BOX}\t{line}")
}

/// The box of a line; `None` where it is none.
pub(super) fn read_box(line: &str) -> Option<(Aim, ClosedChips)> {
    let (aim, why, value, lo, hi): BoxLine = serde_json::from_str(line).ok()?;
    let value = value.map(|(first, second, place)| Value { first, second, place });
    let ascends = (0..N_CHIP_KNOBS).all(|knob| lo[knob] <= hi[knob]);
    let why = Why::of_word(&why, value).filter(|_| ascends)?;
    Some((aim, Closed { region: Region { lo, hi }, why }))
}

/// One part to be searched.
#[derive(Clone, Debug)]
pub struct ChipTask {
    /// Which part of the grid.
    pub part: Part,
    /// Which walks.
    pub round: RoundName,
    /// The best of each model alone, where there are several.
    own: Vec<Option<KeptChip>>,
    /// The best of all, where chips nearly as good are looked for.
    best: Option<KeptChip>,
}

impl ChipTask {
    /// The shard of a part. Several models are searched alone first, then together; chips nearly as good after
    /// that, or by the merge.
    ///
    /// # Errors
    /// A round too many or too few, or which shards of those before are missing.
    pub fn of(
        setup: &ChipSetup,
        part: Part,
        (round, after): (Option<RoundName>, &[PathBuf]),
        (program, spelling): (&str, Spelling),
    ) -> Result<Self, Refusal> {
        let several = setup.request.models.len() > 1;
        let [part_word, round_word, after_word] = spelling.words_of_shards();
        let refused = |message: String| Err(Refusal::Options(message));
        let round = match (several, round) {
            (true, Some(round)) => round,
            (_, Some(RoundName::Near)) => RoundName::Near,
            (false, None) => RoundName::Together,
            (true, None) => {
                return refused(format!(
                    "{part_word}: several models are searched in rounds: give {round_word} alone \
                     to every shard, and when all are done {round_word} together {after_word} their \
                     directories"
                ));
            }
            (false, Some(_)) => {
                return refused(format!(
                    "{round_word}: there is one model, which needs no such round; leave it out"
                ));
            }
        };
        let needs_others = match round {
            RoundName::Alone => false,
            RoundName::Together => several,
            RoundName::Near => true,
        };
        if needs_others == after.is_empty() {
            return refused(format!(
                "{after_word}: names the directories of all shards of the rounds before, which only \
                 {round_word} {} needs",
                if several { "together and near" } else { "near" }
            ));
        }
        let mut task = Self { part, round, own: Vec::new(), best: None };
        if needs_others {
            let shards = Shards::find(after, program)?;
            shards.are_of(&setup.request)?;
            if several {
                shards.are_whole(RoundName::Alone)?;
            }
            if round == RoundName::Near {
                shards.are_whole(RoundName::Together)?;
            }
            task.learn(setup, &shards)?;
        }
        Ok(task)
    }

    /// Takes up the best that the shards of earlier rounds know.
    fn learn(&mut self, setup: &ChipSetup, shards: &Shards) -> Result<(), Refusal> {
        let n_models = setup.models.len();
        self.own = if n_models > 1 { vec![None; n_models] } else { Vec::new() };
        let better = |known: &mut Option<KeptChip>, found: KeptChip| {
            if known.as_ref().is_none_or(|known| found.value < known.value) {
                *known = Some(found);
            }
        };
        for shard in &shards.found {
            let end: ChipPartEnd = shard.read(&mut |_, _| ())?;
            for walk in end.walks {
                let Some(first) = walk.kept.into_iter().next() else { continue };
                match walk.aim {
                    Aim::Alone(model) if model < self.own.len() => {
                        better(&mut self.own[model], told(first, setup, 1, shard)?);
                    }
                    Aim::Together => better(&mut self.best, told(first, setup, n_models, shard)?),
                    Aim::Alone(_) | Aim::Near(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// A chip that a shard tells of.
pub(super) fn told(
    told: ToldChip,
    setup: &ChipSetup,
    models: usize,
    shard: &ShardFile,
) -> Result<KeptChip, Refusal> {
    let kept = told.kept(setup.grid.lens(), (models, setup.request.devices));
    kept.ok_or_else(|| odd(shard, "it tells of a chip that is none of the space"))
}

/// Why a shard is refused.
pub(super) fn odd(shard: &ShardFile, what: &str) -> Refusal {
    let place = files::name(&shard.place);
    Refusal::Options(format!("{place}: {what}; search this shard again with --force"))
}

/// Searches a shard into its directory, or takes it as it is where it is done; what is kept by others
/// is heard of through `share`. `None` where the user ended it before its end.
///
/// # Errors
/// That the directory holds something else, or cannot be written.
pub fn search(
    setup: &ChipSetup,
    task: &ChipTask,
    (shelf, share): (&Shelf, Option<&Path>),
    watcher: &dyn Watcher,
) -> Result<Option<ChipPartEnd>, Refusal> {
    let header = Header::of(&setup.request, task.part, task.round, shelf.program);
    let place = shelf.directory.join(file::NAME);
    if shelf.start != Start::Over && fs::symlink_metadata(&place).is_ok() {
        return super::already_done(&header, shelf).map(Some);
    }
    let unwritable = |reason| Refusal::Unwritable { place: files::name(shelf.directory), reason };
    fs::create_dir_all(shelf.directory).map_err(unwritable)?;
    let journal = Journal::open(shelf.directory, &header.line(), shelf.start)?;
    let board = share.map(|share| Board::open(share, &header)).transpose()?;
    let peers: &dyn ChipPeers = board.as_ref().map_or(&(), |board| board);
    let evaluator = evaluator(setup, &journal)?;
    let round = match task.round {
        RoundName::Alone => ChipRound::Alone,
        RoundName::Together => ChipRound::Together(&task.own),
        RoundName::Near => ChipRound::Near(&task.own, task.best.as_ref()),
    };
    let walks = survey_chip_part(&evaluator, task.part, &round, (peers, watcher));
    let evaluated = evaluator.n_evaluated();
    drop(evaluator);
    watcher.finish();
    journal.healthy()?;
    if !walks.iter().all(|(_, walk)| walk.complete()) {
        return Ok(None);
    }
    let boxes = task.part.boxes(&setup.grid);
    let end = ChipPartEnd {
        chips: boxes.iter().map(Region::volume).sum(),
        evaluated,
        own: task.own.iter().map(|own| own.as_ref().map(|kept| kept.value.first)).collect(),
        best: task.best.as_ref().map(|kept| kept.value.first),
        walks: walks.iter().map(|(aim, walk)| ended(*aim, walk)).collect(),
    };
    let lines = walks
        .iter()
        .flat_map(|(aim, walk)| walk.closed.iter().map(move |closed| box_line(*aim, closed)));
    let lines = std::iter::once(format!("{BEGIN}\t{{}}")).chain(lines);
    journal.seal(lines.chain([file::end_of(&end)]), &place)?;
    Ok(Some(end))
}

fn ended(aim: Aim, walk: &ChipWalk) -> ChipPartWalk {
    let kept = walk.kept.iter().map(ToldChip::of).collect();
    ChipPartWalk { aim, kept, boxes: walk.closed.len() }
}
