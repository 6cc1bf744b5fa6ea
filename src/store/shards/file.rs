//! The file of a shard: a header, one fact per line, and what was done; read line by line.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RoundName;
use crate::ask::Refusal;
use crate::input::InputError;
use crate::search::Part;
use crate::search::Request;
use crate::store::files;
use crate::store::journal::content_of;

/// What the file of a finished shard is called.
pub const NAME: &str = "shard.jsonl";

/// What the file of a shard that is under way is called.
const UNFINISHED: &str = "journal.jsonl";

const SCHEMA: &str = "phaze-shard";
const VERSION: u32 = 1;

/// The longest line: a request with the texts of its files.
const LONGEST_LINE: usize = 64 << 20;

/// The word before what was done, on the last line.
const END: &str = "end";

/// Which shard a file is of, and what was asked of whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What kind of file this is.
    pub schema: String,
    /// Which version of it.
    pub version: u32,
    /// The version of the program.
    pub phaze: String,
    /// The build of the program.
    pub program: String,
    /// As `3/64`.
    pub shard: String,
    /// Which walks it makes.
    pub round: RoundName,
    /// As it is written into an outcome.
    pub request: serde_json::Value,
}

impl Header {
    /// The header of a shard that `program` searches.
    pub fn of<S: Serialize>(
        request: &Request<S>,
        part: Part,
        round: RoundName,
        program: &str,
    ) -> Self {
        Self {
            schema: SCHEMA.into(),
            version: VERSION,
            phaze: env!("CARGO_PKG_VERSION").into(),
            program: program.into(),
            shard: part.to_string(),
            round,
            request: plain(request),
        }
    }

    /// The header as a line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a header has only string keys")
    }

    /// What all shards of one question have in common.
    pub fn common(&self) -> String {
        format!("{} {} {}", self.phaze, self.program, self.request)
    }
}

/// A request as it reads after it was written.
fn plain<S: Serialize>(request: &Request<S>) -> serde_json::Value {
    let text = serde_json::to_string(request).expect("a request has only string keys");
    serde_json::from_str(&text).expect("what was just written can be read")
}

/// The last line of a shard.
pub fn end_of(done: &impl Serialize) -> String {
    let done = serde_json::to_string(done).expect("plain figures can be written");
    format!("{END}\t{done}")
}

/// The file of a finished shard, of which the header is read.
#[derive(Debug)]
pub struct ShardFile {
    /// Where it is.
    pub place: PathBuf,
    /// Its first line.
    pub header: Header,
    /// Which part it is of.
    pub part: Part,
}

impl ShardFile {
    /// The shard in a directory, or of a file.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        let place = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
        if path.is_dir() && !place.exists() {
            let reason = if path.join(UNFINISHED).exists() {
                "this shard is unfinished; repeat its command with --resume"
            } else {
                "no shard was searched into this directory"
            };
            return Err(unreadable(path, reason));
        }
        let mut lines = Lines::open(&place)?;
        let first = lines.next()?.ok_or_else(|| lines.damaged())?;
        let header: Header = serde_json::from_str(&first)
            .ok()
            .filter(|header: &Header| header.schema == SCHEMA)
            .ok_or_else(|| unreadable(&place, "it is not the file of a shard"))?;
        if header.version != VERSION {
            let reason = format!(
                "it is a shard of version {}; this phaze reads version {VERSION}: search it again",
                header.version
            );
            return Err(unreadable(&place, &reason));
        }
        let part = header.shard.parse();
        let part = part.map_err(|reason: String| unreadable(&place, &reason))?;
        Ok(Self { place, header, part })
    }

    /// Reads all facts, one after the other, and answers what was done.
    pub fn read<E: DeserializeOwned>(
        &self,
        fact: &mut dyn FnMut(&str, &str),
    ) -> Result<E, Refusal> {
        let mut lines = Lines::open(&self.place)?;
        let _ = lines.next()?;
        while let Some(line) = lines.next()? {
            let (key, rest) = line.split_once('\t').ok_or_else(|| lines.damaged())?;
            if key != END {
                fact(key, rest);
                continue;
            }
            let done = serde_json::from_str(rest).map_err(|_| lines.damaged())?;
            // Nothing may stand after the end.
            return match lines.next()? {
                None => Ok(done),
                Some(_) => Err(lines.damaged()),
            };
        }
        Err(lines.damaged())
    }
}

/// Lines behind their checksums.
struct Lines {
    place: PathBuf,
    reader: BufReader<File>,
    number: usize,
}

impl Lines {
    fn open(place: &Path) -> Result<Self, Refusal> {
        let found =
            std::fs::metadata(place).map_err(|reason| unreadable(place, &reason.to_string()))?;
        if !found.is_file() {
            return Err(unreadable(place, "it is no regular file"));
        }
        let file = File::open(place).map_err(|reason| unreadable(place, &reason.to_string()))?;
        Ok(Self { place: place.to_owned(), reader: BufReader::new(file), number: 0 })
    }

    /// The next line; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<String>, Refusal> {
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut self.reader, LONGEST_LINE as u64);
        let length = limited.read_until(b'\n', &mut line);
        let length = length.map_err(|reason| unreadable(&self.place, &reason.to_string()))?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        match content_of(&line) {
            Some(content) => Ok(Some(content.to_owned())),
            None => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> Refusal {
        let reason = format!(
            "it is damaged or cut off at line {}; search this shard again with --force",
            self.number
        );
        unreadable(&self.place, &reason)
    }
}

fn unreadable(place: &Path, reason: &str) -> Refusal {
    InputError::Unreadable { file: files::name(place), reason: reason.into() }.into()
}

/// Shards that are to be joined.
#[derive(Debug)]
pub struct Shards {
    /// By round and number.
    pub found: Vec<ShardFile>,
}

impl Shards {
    /// The shards in these directories, all of one request and of the build that `program` is.
    pub fn find(paths: &[PathBuf], program: &str) -> Result<Self, Refusal> {
        let found: Result<Vec<ShardFile>, Refusal> =
            paths.iter().map(|path| ShardFile::open(path)).collect();
        let mut found = found?;
        found.sort_by_key(|shard| (shard.header.round, shard.part));
        let Some(first) = found.first() else {
            return Err(Refusal::Options("there is no shard; name their directories".into()));
        };
        for shard in &found {
            let place = files::name(&shard.place);
            if shard.header.program != program || shard.header.phaze != env!("CARGO_PKG_VERSION") {
                return Err(Refusal::Options(format!(
                    "{place}: shard {} was made by another build of phaze ({} {}) than this one \
                     ({} {program}); search all shards and merge them with one build",
                    shard.header.shard,
                    shard.header.phaze,
                    shard.header.program,
                    env!("CARGO_PKG_VERSION"),
                )));
            }
        }
        // Where few are of another request, those are the odd ones.
        let common = |shard: &&ShardFile| {
            found.iter().filter(|other| other.header.request == shard.header.request).count()
        };
        let usual = found.iter().max_by_key(common).unwrap_or(first);
        let odd: Vec<&ShardFile> =
            found.iter().filter(|shard| shard.header.request != usual.header.request).collect();
        if !odd.is_empty() {
            return Err(Refusal::Options(format!(
                "{}: of another request than {}; search with the request of the others, or leave \
                 out",
                named(&odd),
                files::name(&usual.place)
            )));
        }
        Ok(Self { found })
    }

    /// The request of all.
    pub fn request<S: DeserializeOwned>(&self) -> Result<Request<S>, Refusal> {
        let first = &self.found[0];
        let text = first.header.request.to_string();
        serde_json::from_str(&text).map_err(|error| {
            unreadable(&first.place, &format!("its request does not read as one: {error}"))
        })
    }

    /// Whether they are of a space of chips.
    pub fn are_of_chips(&self) -> bool {
        self.found[0].header.request["space"].get("process_nm").is_some()
    }

    /// Whether all are of this request.
    pub fn are_of<S: Serialize>(&self, request: &Request<S>) -> Result<(), Refusal> {
        let first = &self.found[0];
        if first.header.request == plain(request) {
            return Ok(());
        }
        let place = files::name(&first.place);
        Err(Refusal::Options(format!("{place}: is of another request than the one that is given")))
    }

    /// Whether every part of a round is there, once.
    pub fn are_whole(&self, round: RoundName) -> Result<(), Refusal> {
        let shards: Vec<&ShardFile> =
            self.found.iter().filter(|shard| shard.header.round == round).collect();
        let Some(last) = shards.last() else {
            return Err(Refusal::Options(format!(
                "shards of --round {} are missing: models are searched alone first, then together, and \
                 of chips those nearly as good last",
                round.word()
            )));
        };
        let of = last.part.of();
        let odd: Vec<&ShardFile> =
            shards.iter().filter(|shard| shard.part.of() != of).copied().collect();
        if !odd.is_empty() {
            return Err(Refusal::Options(format!(
                "{}: one of {} parts, but {} is one of {of}",
                named(&odd),
                odd[0].part.of(),
                files::name(&last.place),
            )));
        }
        for pair in shards.windows(2) {
            if pair[0].part == pair[1].part {
                return Err(Refusal::Options(format!(
                    "shard {} is given twice: {}",
                    pair[0].part,
                    named(pair)
                )));
            }
        }
        let missing: Vec<String> = (1..=of)
            .filter(|number| shards.iter().all(|shard| shard.part.number() != *number))
            .map(|number| number.to_string())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let several = self.found.iter().any(|shard| shard.header.round != round);
        Err(Refusal::Options(format!(
            "of {of} shards{}, {} missing: search with --shard {}/{of}{}{}",
            if several { format!(" of --round {}", round.word()) } else { String::new() },
            listed(&missing),
            missing[0],
            if several { format!(" --round {}", round.word()) } else { String::new() },
            if missing.len() > 1 { " and so on" } else { "" }
        )))
    }
}

/// The places of shards, in a sentence.
fn named(shards: &[&ShardFile]) -> String {
    let places: Vec<String> = shards.iter().map(|shard| files::name(&shard.place)).collect();
    places.join(", ")
}

/// Numbers in a sentence, with their verb; long lists are cut.
pub(in crate::store) fn listed(numbers: &[String]) -> String {
    const MOST: usize = 12;
    match numbers {
        [only] => format!("{only} is"),
        all if all.len() <= MOST => format!("{} are", all.join(", ")),
        all => format!("{} … ({} in all) are", all[..MOST].join(", "), all.len()),
    }
}
