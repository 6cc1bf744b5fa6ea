//! Shards that hear of each other's best, through files in a directory that all of them see.
//!
//! Each shard writes one file of its own, whole or not at all, and reads those of the others now and
//! then. What cannot be read, or belongs to another request or build, is left alone: hearing less
//! costs time, never an answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file::Header;
use crate::ask::Refusal;
use crate::search::Merit;
use crate::search::Peers;
use crate::search::chips::ChipPeers;
use crate::search::chips::ToldChip;
use crate::store::files;
use crate::store::journal::checksum;
use crate::store::journal::unpoisoned;

/// Others are asked every so many times that a walk would like to hear of them: directories of clusters
/// are slow.
const SELDOM: u64 = 4;

/// The largest file that a shard tells in.
const LARGEST: u64 = 16 << 20;

/// What shards of one request tell each other.
pub struct Board<T> {
    directory: PathBuf,
    /// The file of this shard.
    own: PathBuf,
    /// Which request and build are spoken of.
    about: String,
    told: Mutex<BTreeMap<String, Vec<T>>>,
    heard: Mutex<(u64, BTreeMap<String, Vec<T>>)>,
}

/// Value, slowness, area and energy.
pub(super) type Figures = (u128, u128, u128, u128);

#[derive(Serialize, Deserialize)]
struct Told<T> {
    about: String,
    walks: BTreeMap<String, Vec<T>>,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> Board<T> {
    /// The board in `directory`, on which the shard of this header writes.
    pub fn open(directory: &Path, header: &Header) -> Result<Self, Refusal> {
        let unwritable = |reason| Refusal::Unwritable { place: files::name(directory), reason };
        fs::create_dir_all(directory).map_err(unwritable)?;
        let name = format!("{}-{}.json", header.round.word(), header.shard.replace('/', "-of-"));
        Ok(Self {
            directory: directory.to_owned(),
            own: directory.join(name),
            about: format!("{:016x}", checksum(&header.common())),
            told: Mutex::new(BTreeMap::new()),
            heard: Mutex::new((0, BTreeMap::new())),
        })
    }

    /// What all others tell by now.
    fn hear(&self) -> BTreeMap<String, Vec<T>> {
        let mut heard: BTreeMap<String, Vec<T>> = BTreeMap::new();
        let Ok(entries) = fs::read_dir(&self.directory) else { return heard };
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let others = paths.filter(|path| {
            *path != self.own && path.extension().is_some_and(|extension| extension == "json")
        });
        for other in others {
            let text = files::read(&other, LARGEST).unwrap_or_default();
            let Ok(told) = serde_json::from_str::<Told<T>>(&text) else { continue };
            if told.about != self.about {
                continue;
            }
            for (walk, kept) in told.walks {
                heard.entry(walk).or_default().extend(kept);
            }
        }
        heard
    }

    /// What others tell of a walk, as it was when they were asked last.
    fn heard_of(&self, walk: &str) -> Vec<T> {
        let mut heard = unpoisoned(&self.heard);
        if heard.0.is_multiple_of(SELDOM) {
            heard.1 = self.hear();
        }
        heard.0 += 1;
        heard.1.get(walk).cloned().unwrap_or_default()
    }

    /// Tells the others what a walk keeps.
    fn tell_of(&self, walk: &str, kept: Vec<T>) {
        let mut told = unpoisoned(&self.told);
        if told.get(walk) == Some(&kept) {
            return;
        }
        told.insert(walk.to_owned(), kept);
        let all = Told { about: self.about.clone(), walks: told.clone() };
        let text = serde_json::to_vec(&all).expect("plain figures can be written");
        // Whoever cannot tell goes on alone.
        let _ = files::write(&self.own, &text);
    }
}

impl Peers for Board<Figures> {
    fn found(&self, walk: &str) -> Vec<Merit> {
        let figures = self.heard_of(walk).into_iter();
        figures
            .map(|(value, slowness, area, energy)| Merit { value, slowness, area, energy })
            .collect()
    }

    fn tell(&self, walk: &str, kept: &[Merit]) {
        self.tell_of(walk, kept.iter().map(|m| (m.value, m.slowness, m.area, m.energy)).collect());
    }
}

impl ChipPeers for Board<ToldChip> {
    fn heard(&self, walk: &str) -> Vec<ToldChip> {
        self.heard_of(walk)
    }

    fn tell(&self, walk: &str, kept: &[ToldChip]) {
        self.tell_of(walk, kept.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::super::RoundName;
    use super::*;

    fn merit(value: u128) -> Merit {
        Merit { value, slowness: value, area: 1, energy: u128::MAX }
    }

    #[test]
    fn a_shard_hears_others_of_its_request_and_not_itself() {
        let directory = std::env::temp_dir().join(format!("phaze-board-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let header = |shard: &str, program: &str| Header {
            schema: String::new(),
            version: 1,
            phaze: String::new(),
            program: program.into(),
            shard: shard.into(),
            round: RoundName::Together,
            request: serde_json::Value::Null,
        };
        let open =
            |shard, program| Board::<Figures>::open(&directory, &header(shard, program)).unwrap();
        let [first, second, foreign] = [open("1/2", "a"), open("2/2", "a"), open("2/3", "b")];
        first.tell("walk", &[merit(7)]);
        foreign.tell("walk", &[merit(1)]);
        fs::write(directory.join("torn.json"), "{\"about\":").unwrap();
        assert_eq!(second.found("walk"), [merit(7)]);
        assert!(second.found("another").is_empty() && first.found("walk").is_empty());
        fs::remove_dir_all(&directory).unwrap();
    }
}
