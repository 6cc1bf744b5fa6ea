//! What an unfinished search already knows, kept so that a kill at any moment loses nothing.
//!
//! A journal is a text file: one line per fact, each behind its own checksum, appended and never
//! changed. The first line names the request and the program that computes; a journal of another
//! request or another build is refused. A line that was cut off in the middle ends the journal there: what stood after it is evaluated anew,
//! with the same result.
//!
//! A lock on a file beside it keeps two searches out of the same directory; the system lets go of
//! it when the process ends, however it ends.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::hash::DefaultHasher;
use std::hash::Hasher;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use super::files;
use crate::ask::Refusal;
use crate::search::Memory;

/// The facts of a search that is under way, on disk.
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    known: BTreeMap<String, String>,
    failed: Mutex<Option<io::Error>>,
    /// Held until the journal is dropped.
    _lock: File,
}

/// Whether facts of an earlier search are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing was there; what an unfinished search left is refused.
    Anew,
    /// Whatever was there is forgotten.
    Over,
    /// Facts of the same request are kept.
    Resume,
}

impl Start {
    /// What a user wants who asks to go on, or else to write over what is there.
    pub fn of(resume: bool, over: bool) -> Self {
        match (resume, over) {
            (true, _) => Self::Resume,
            (false, true) => Self::Over,
            (false, false) => Self::Anew,
        }
    }
}

impl Journal {
    /// Where the journal of a directory is.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join("journal.jsonl")
    }

    /// Whether anything is known from before.
    pub fn recalls(&self) -> bool {
        !self.known.is_empty()
    }

    /// Opens the journal of `directory`, which must exist, for the request that `header` names.
    pub fn open(directory: &Path, header: &str, start: Start) -> Result<Self, Refusal> {
        let lock = lock(directory)?;
        let path = Self::path(directory);
        files::is_no_link(&path)?;
        let unwritable = |reason| Refusal::Unwritable { place: files::name(&path), reason };
        let text = match start {
            Start::Over => Vec::new(),
            Start::Anew => {
                if fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
                    return Err(Refusal::Options(format!(
                        "{}: holds what an unfinished search knows; --resume goes on with it, \
                         --force begins anew",
                        files::name(&path)
                    )));
                }
                Vec::new()
            }
            Start::Resume => match fs::read(&path) {
                Ok(text) => text,
                Err(reason) if reason.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(reason) => return Err(unwritable(reason)),
            },
        };
        let (lines, n_bytes_intact) = intact_lines(&text);
        if lines.first().is_some_and(|found| *found != header) {
            return Err(Refusal::Options(format!(
                "{}: belongs to another request or another build of phaze; search with \
                 --force to begin anew, or choose another --out",
                files::name(&path)
            )));
        }
        let known = lines.iter().skip(1).filter_map(|line| line.split_once('\t'));
        let known = known.map(|(key, fact)| (key.to_owned(), fact.to_owned())).collect();
        let mut options = fs::OpenOptions::new();
        let mut file =
            options.create(true).truncate(false).write(true).open(&path).map_err(unwritable)?;
        file.set_len(n_bytes_intact).map_err(unwritable)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(unwritable)?;
        if lines.is_empty() {
            file.write_all(line_of(header).as_bytes()).map_err(unwritable)?;
        }
        Ok(Self { path, file: Mutex::new(file), known, failed: Mutex::new(None), _lock: lock })
    }

    /// Whether every fact could be written.
    pub fn healthy(&self) -> Result<(), Refusal> {
        match unpoisoned(&self.failed).take() {
            None => Ok(()),
            Some(reason) => Err(Refusal::Unwritable { place: files::name(&self.path), reason }),
        }
    }

    /// Ends a finished shard: writes the last lines and gives the file its final name.
    pub fn seal(self, lines: impl IntoIterator<Item = String>, to: &Path) -> Result<(), Refusal> {
        let unwritable = |reason| Refusal::Unwritable { place: files::name(to), reason };
        let mut file = unpoisoned(&self.file);
        let mut out = io::BufWriter::new(&mut *file);
        let mut lines = lines.into_iter();
        let written = lines.try_for_each(|line| out.write_all(line_of(&line).as_bytes()));
        let written = written.and_then(|()| out.flush());
        drop(out);
        written
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&self.path, to))
            .map_err(unwritable)
    }

    /// Ends a finished search: its answer is on disk, the journal is not needed any more.
    pub fn forget(self) -> Result<(), Refusal> {
        let place = files::name(&self.path);
        fs::remove_file(&self.path).map_err(|reason| Refusal::Unwritable { place, reason })
    }
}

impl Memory for Journal {
    fn recall(&self, key: &str) -> Option<&str> {
        self.known.get(key).map(String::as_str)
    }

    fn remember(&self, key: &str, fact: &str) {
        let line = line_of(&format!("{key}\t{fact}"));
        // One call per line: a kill can cut a line short, but not mix two.
        if let Err(reason) = unpoisoned(&self.file).write_all(line.as_bytes()) {
            unpoisoned(&self.failed).get_or_insert(reason);
        }
    }

    fn fails(&self) -> bool {
        unpoisoned(&self.failed).is_some()
    }
}

/// A lock that a panicking thread left behind is as good as any: what it guards is never half done.
pub(super) fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file by which whoever writes into a directory keeps others out.
pub(super) const LOCK: &str = ".lock";

/// Keeps everybody else from writing results into a directory, which must exist, as long as it is held.
///
/// # Errors
/// That somebody is writing there.
pub(super) fn lock(directory: &Path) -> Result<File, Refusal> {
    let path = directory.join(LOCK);
    files::is_no_link(&path)?;
    let place = files::name(&path);
    let file = File::create(&path)
        .map_err(|reason| Refusal::Unwritable { place: place.clone(), reason })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Refusal::Options(format!(
            "{}: another search is writing there; wait for it or choose another --out",
            files::name(directory)
        ))),
        Err(fs::TryLockError::Error(reason)) => Err(Refusal::Unwritable { place, reason }),
    }
}

fn line_of(content: &str) -> String {
    format!("{:016x} {content}\n", checksum(content))
}

/// The lines up to the first that is damaged or cut off, without checksums, and their bytes.
fn intact_lines(text: &[u8]) -> (Vec<&str>, u64) {
    let mut lines = Vec::new();
    let mut n_bytes = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let Some(content) = content_of(line) else { break };
        lines.push(content);
        n_bytes += line.len() as u64;
    }
    (lines, n_bytes)
}

/// What a line holds behind its checksum; `None` where it is damaged or cut off.
pub(super) fn content_of(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?;
    let (sum, content) = line.strip_suffix('\n')?.split_once(' ')?;
    (sum == format!("{:016x}", checksum(content))).then_some(content)
}

/// What computes: a hash of the bytes of `program`, or of nothing where they cannot be read.
pub fn fingerprint(program: &Path) -> String {
    let bytes = fs::read(program).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    format!("{:016x}", hasher.finish())
}

/// FNV-1a: finds torn writes. It keeps nobody from writing false facts: what is told of the best
/// is computed again and compared.
pub(super) fn checksum(content: &str) -> u64 {
    content.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh_directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("phaze-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_journal_cut_anywhere_keeps_the_lines_before_the_cut() {
        let directory = fresh_directory("cut");
        let journal = Journal::open(&directory, "request", Start::Anew).unwrap();
        for key in ["a", "b", "c"] {
            journal.remember(key, "{\"x\":1}");
        }
        drop(journal);
        let path = directory.join("journal.jsonl");
        let whole = fs::read(&path).unwrap();
        for n_bytes in 0..=whole.len() {
            fs::write(&path, &whole[..n_bytes]).unwrap();
            let journal = Journal::open(&directory, "request", Start::Resume).unwrap();
            let n_lines = whole[..n_bytes].split(|&byte| byte == b'\n').count() - 1;
            assert_eq!(journal.known.len(), n_lines.saturating_sub(1), "cut at {n_bytes}");
            journal.remember("d", "{}");
            drop(journal);
            let again = Journal::open(&directory, "request", Start::Resume).unwrap();
            assert_eq!(again.recall("d"), Some("{}"), "cut at {n_bytes}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn two_searches_do_not_share_a_directory() {
        let directory = fresh_directory("lock");
        let first = Journal::open(&directory, "request", Start::Anew).unwrap();
        assert!(Journal::open(&directory, "request", Start::Resume).is_err());
        drop(first);
        assert!(Journal::open(&directory, "request", Start::Resume).is_ok());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn neither_journal_nor_lock_follows_a_link() {
        for name in ["journal.jsonl", ".lock"] {
            let directory = fresh_directory("link");
            let target = directory.join("precious");
            fs::write(&target, "keep").unwrap();
            std::os::unix::fs::symlink(&target, directory.join(name)).unwrap();
            for start in [Start::Anew, Start::Resume] {
                let refused = Journal::open(&directory, "request", start).err().unwrap();
                assert!(refused.to_string().contains("is a link"), "{refused}");
            }
            assert_eq!(fs::read_to_string(&target).unwrap(), "keep");
            fs::remove_dir_all(&directory).unwrap();
        }
    }

    #[test]
    fn a_program_has_one_fingerprint() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(fingerprint(&program), fingerprint(&program));
        assert_ne!(fingerprint(&program), format!("{:016x}", DefaultHasher::new().finish()));
    }

    #[test]
    fn the_journal_of_another_request_is_refused() {
        let directory = fresh_directory("other");
        drop(Journal::open(&directory, "one", Start::Anew).unwrap());
        assert!(Journal::open(&directory, "two", Start::Resume).is_err());
        assert!(Journal::open(&directory, "two", Start::Anew).is_err());
        assert!(Journal::open(&directory, "two", Start::Over).is_ok());
        fs::remove_dir_all(&directory).unwrap();
    }
}
