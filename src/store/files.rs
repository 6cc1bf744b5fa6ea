//! Reading inputs and writing answers, so that nothing is ever half-read or half-written.

use std::fs;
use std::io::Read;
use std::io::Write;
use std::path::Path;

use crate::ask::Refusal;
use crate::input::InputError;
use crate::input::hf_config;
use crate::input::source::printable;

/// The text of a file that a request or an option names: a page or two, and this is a thousand
/// times that.
pub fn small(path: &Path) -> Result<String, InputError> {
    read(path, hf_config::LONGEST)
}

/// Reads a text file of at most `limit` bytes; `-` is standard input. A byte order mark at its
/// start is left out.
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
            return Err(unreadable(&"it is a directory; name a file in it"));
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
    let mark = "\u{feff}".as_bytes();
    if bytes.starts_with(mark) {
        bytes.drain(..mark.len());
    }
    String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))
}

/// What the user calls a path, fit for a terminal.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".into();
    }
    printable(&path.to_string_lossy())
}

/// Whether nothing or a file of its own is at `path`: what is written there goes nowhere else.
pub fn is_no_link(path: &Path) -> Result<(), Refusal> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(Refusal::Options(format!(
            "{}: is a link or no regular file; remove it or choose another --out",
            name(path)
        ))),
        _ => Ok(()),
    }
}

/// Writes a whole file or nothing: the text goes to a neighbour that takes the name at the end.
pub fn write(path: &Path, content: &[u8]) -> Result<(), Refusal> {
    let place = name(path);
    let unwritable = |reason| Refusal::Unwritable { place: place.clone(), reason };
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(format!(".{}.partial", std::process::id()));
    // What an earlier process of the same number left behind is in nobody's way.
    let _ = fs::remove_file(&neighbour);
    let written = fs::File::create_new(&neighbour)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("phaze-files-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        let path = place("mark");
        fs::write(&path, "\u{feff}{\"a\": 1}").unwrap();
        assert_eq!(read(&path, 100).unwrap(), "{\"a\": 1}");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn control_characters_of_a_name_are_written_out() {
        let error = read(Path::new("a\u{1b}[2Jb.json"), 100).unwrap_err().to_string();
        assert!(error.starts_with("a\\u{1b}[2Jb.json: cannot be read"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_told_from_a_file() {
        let (file, link) = (place("file"), place("link"));
        fs::write(&file, "").unwrap();
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(is_no_link(&file).is_ok() && is_no_link(&place("nothing")).is_ok());
        assert!(is_no_link(&link).unwrap_err().to_string().contains("is a link"));
        write(&link, b"answer").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"", "the link was replaced, not followed");
        for path in [file, link] {
            fs::remove_file(path).unwrap();
        }
    }
}
