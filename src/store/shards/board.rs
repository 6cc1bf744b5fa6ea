//! Shards that hear of each other's best, through files in a directory that all of them see.
//!
//! Each shard writes one file of its own, whole or not at all, and reads those of the others now and
//! then. What cannot be read, or belongs to another request or build, is left alone: hearing less
//! costs time, never an answer.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

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

/// So often, and so long each time, a shard waits for another that looks for something good to begin with: two minutes,
/// then it looks itself.
const WAITS: (u32, Duration) = (4800, Duration::from_millis(25));

/// The file whose lock is the turn; the system lets go of it however a shard ends.
const TURN: &str = ".turn";

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
    /// Held while this shard has the turn to look for something good to begin with.
    turn: Mutex<Option<File>>,
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
            turn: Mutex::new(None),
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
            // A pipe would keep a shard waiting.
            if !fs::metadata(&other).is_ok_and(|found| found.is_file()) {
                continue;
            }
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

    /// Waits for the turn to look for something good to begin with, and hears others anew when asked next. Where
    /// files cannot be locked, every shard has its turn at once.
    fn take_turn(&self, stops: &dyn Fn() -> bool) {
        let path = self.directory.join(TURN);
        if files::is_no_link(&path).is_err() {
            return;
        }
        let Ok(file) = File::create(&path) else { return };
        for _ in 0..WAITS.0 {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if !stops() => std::thread::sleep(WAITS.1),
                _ => break,
            }
        }
        *unpoisoned(&self.turn) = Some(file);
        unpoisoned(&self.heard).0 = 0;
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

    fn takes_turn(&self, stops: &dyn Fn() -> bool) {
        self.take_turn(stops);
    }

    fn ends_turn(&self) {
        *unpoisoned(&self.turn) = None;
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

    #[test]
    fn one_shard_at_a_time_looks_for_something_good_to_begin_with() {
        let directory = std::env::temp_dir().join(format!("phaze-turn-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let header = |shard: &str| Header {
            schema: String::new(),
            version: 1,
            phaze: String::new(),
            program: String::new(),
            shard: shard.into(),
            round: RoundName::Together,
            request: serde_json::Value::Null,
        };
        let open = |shard: &str| Board::<ToldChip>::open(&directory, &header(shard)).unwrap();
        let [first, second, ended] = [open("1/3"), open("2/3"), open("3/3")];
        assert!(second.heard("walk").is_empty(), "and it would not ask again so soon");
        first.takes_turn(&|| false);
        ended.takes_turn(&|| true);
        let told = ToldChip { point: [0; 10], value: (7, 0, 0), found: Vec::new() };
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                second.takes_turn(&|| false);
                assert!(done.load(std::sync::atomic::Ordering::SeqCst), "it has waited");
                assert_eq!(
                    second.heard("walk"),
                    std::slice::from_ref(&told),
                    "whoever had the turn has told"
                );
                second.ends_turn();
            });
            std::thread::sleep(Duration::from_millis(60));
            first.tell("walk", std::slice::from_ref(&told));
            done.store(true, std::sync::atomic::Ordering::SeqCst);
            first.ends_turn();
        });
        first.takes_turn(&|| panic!("nobody has it"));
        fs::remove_dir_all(&directory).unwrap();
    }
}
