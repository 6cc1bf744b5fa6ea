//! Refusals name settings as Python spells them.

/// Options of the command line that the library's refusals name, and how a call says the same.
const SPELLINGS: [(&str, &str); 14] = [
    ("--after", "after"),
    ("--deadline", "deadline"),
    ("--devices", "devices"),
    ("--efficiency", "efficiency"),
    ("--for", "for_"),
    ("--force", "force=True"),
    ("--from", "from_"),
    ("--global-batch", "global_batch"),
    ("--out", "out"),
    ("--resume", "resume=True"),
    ("--round", "round_"),
    ("--seq", "sequence"),
    ("--shard", "part"),
    ("--strategy", "strategy"),
];

/// Words of readers of files, and what they mean to somebody who calls.
const MEANINGS: [(&str, &str); 4] = [
    ("command line: ", ""),
    ("expected u64", "expected a whole number, 0 or more"),
    ("expected f64", "expected a number"),
    ("expected a map", "expected a table"),
];

/// A message with the options in it as keywords; what is no option of ours stays as it is.
pub fn as_keywords(message: &str) -> String {
    let plain =
        MEANINGS.iter().fold(message.to_owned(), |text, (word, plain)| text.replace(word, plain));
    let mut told = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = option.find(|c: char| !is_letter(c)).unwrap_or(option.len());
        let (word, after) = option.split_at(end);
        let begins = !before.ends_with(|c: char| is_letter(c) || c == '_');
        let known = SPELLINGS.iter().find(|(spelled, _)| begins && *spelled == word);
        told.push_str(before);
        told.push_str(known.map_or(word, |(_, keyword)| keyword));
        rest = after;
    }
    told + rest
}
