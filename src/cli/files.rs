//! Reading inputs and writing answers, so that nothing is ever half-read or half-written.

use std::fs;
use std::io::Read;
use std::io::Write;
use std::path::Path;

use super::Refusal;
use crate::input::InputError;

/// Reads a text file of at most `limit` bytes; `-` is standard input.
pub fn read(path: &Path, limit: u64) -> Result<String, InputError> {
    let file = name(path);
    let unreadable = |reason: &dyn ToString| InputError::Unreadable {
        file: file.clone(),
        reason: reason.to_string(),
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(limit + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    } else {
        let found = fs::metadata(path).map_err(|e| unreadable(&e))?;
        if found.is_dir() {
            return Err(unreadable(&"it is a directory"));
        }
        if found.len() > limit {
            return Err(InputError::TooLarge { file, found: found.len(), allowed: limit });
        }
        // A pipe or device has no length to check beforehand, so the limit holds while reading too.
        let open = fs::File::open(path).map_err(|e| unreadable(&e))?;
        open.take(limit + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    }
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLarge { file, found: bytes.len() as u64, allowed: limit });
    }
    String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))
}

/// What the user calls a path.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

/// Writes a whole file or nothing: the text goes to a neighbour that takes the name at the end.
pub fn write(path: &Path, content: &[u8]) -> Result<(), Refusal> {
    let place = name(path);
    let unwritable = |reason| Refusal::Unwritable { place: place.clone(), reason };
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(format!(".{}.partial", std::process::id()));
    let written = fs::File::create(&neighbour)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&neighbour, path));
    written.map_err(|reason| {
        // Best effort: the failure to report is the first one.
        let _ = fs::remove_file(&neighbour);
        unwritable(reason)
    })
}
