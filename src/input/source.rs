//! What users name: built in, or a file that somebody else reads.
//!
//! A plain word is the name of something built in; a name with a slash, or one that ends in
//! `.json` or `.toml`, is the path of a file, and `-` is standard input. Opening files is the
//! caller's: it hands over a [`Reader`].

use std::path::Path;

use super::InputError;
use super::hardware;
use super::hardware::Hardware;
use super::hf_config;
use super::model_file;
use crate::model::Model;

/// Answers the text of the file at a path, or why it cannot be read.
pub type Reader<'a> = dyn Fn(&Path) -> Result<String, InputError> + Sync + 'a;

/// The reader for requests that name only what is built in: it refuses every file.
pub fn no_files(path: &Path) -> Result<String, InputError> {
    let file = printable(&path.to_string_lossy());
    Err(InputError::Unreadable { file, reason: "no files are read here".into() })
}

/// Whether a user means a file.
pub fn is_path(name: &str) -> bool {
    let suffix = Path::new(name).extension();
    let suffixed = suffix.is_some_and(|suffix| suffix == "json" || suffix == "toml");
    name == "-" || name.contains(['/', '\\']) || suffixed
}

/// The same name seen from `folder`: a relative path starts there, everything else stays.
pub fn beside(folder: &Path, name: &str) -> String {
    if name != "-" && is_path(name) {
        folder.join(name).to_string_lossy().into_owned()
    } else {
        name.to_owned()
    }
}

/// The model that a user calls `name`, and the text of its file where it is not built in.
pub fn model(name: &str, read: &Reader) -> Result<(Model, Option<String>), InputError> {
    if !is_path(name) {
        return Ok((super::model(name)?, None));
    }
    let text = read(Path::new(name))?;
    let found = text.len() as u64;
    if found > hf_config::LONGEST {
        let (file, allowed) = (printable(name), hf_config::LONGEST);
        return Err(InputError::TooLarge { file, found, allowed });
    }
    Ok((model_text(&said(name), &text)?, Some(text)))
}

/// The model that a text describes: a graph of a user's own, or a configuration.
pub fn model_text(file: &str, text: &str) -> Result<Model, InputError> {
    if model_file::is_one(text) {
        model_file::read(file, text)
    } else {
        hf_config::read(file, text)
    }
}

/// The hardware that a user calls `name`, and the text of its file where it is not built in;
/// `place` is what held the name, such as an option.
pub fn hardware(
    name: &str,
    place: &str,
    read: &Reader,
) -> Result<(Hardware, Option<String>), InputError> {
    if !is_path(name) {
        return Ok((hardware::preset(name, place)?, None));
    }
    let text = read(Path::new(name))?;
    Ok((hardware::hardware(&text, &said(name))?, Some(text)))
}

/// What a user calls a file.
fn said(name: &str) -> String {
    if name == "-" { "standard input".into() } else { printable(name) }
}

/// A text without what could change a terminal instead of being seen on it: control characters
/// and those that turn the direction of writing are written out.
pub fn printable(text: &str) -> String {
    let hidden =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_names() {
        for path in ["-", "./x", "a/b", "config.json", "..json", "chip.toml"] {
            assert!(is_path(path), "{path}");
        }
        for name in ["gpt2-xl", "megatron-gpt2-2.5b", "tpuv4", "json", ""] {
            assert!(!is_path(name), "{name}");
        }
    }

    #[test]
    fn only_relative_paths_move() {
        let folder = Path::new("requests");
        for (name, expected) in [
            ("own.json", "requests/own.json"),
            ("../own.json", "requests/../own.json"),
            ("/own.json", "/own.json"),
            ("gpt2-xl", "gpt2-xl"),
            ("-", "-"),
        ] {
            assert_eq!(beside(folder, name), expected);
        }
        assert_eq!(beside(Path::new(""), "own.json"), "own.json");
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable("a\u{1b}[31m\nb\u{202e}ü"), "a\\u{1b}[31m\\nb\\u{202e}ü");
    }
}
