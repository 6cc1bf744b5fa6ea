//! What can be wrong with an input, said so that its author can mend it.

use std::fmt::Write as _;

use crate::search::Senseless;
use crate::search::chips::NoChip;

/// An input that cannot be used: where, what was found, what is allowed.
///
/// `file` is the name the user knows the text by: a path, `standard input`, or the option that
/// held it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The file cannot be opened or is no text.
    #[error("{file}: cannot be read: {reason}")]
    Unreadable {
        /// Where.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// The file is larger than any honest input of its kind.
    #[error("{file}: is {found} bytes long; at most {allowed} are read")]
    TooLarge {
        /// Where.
        file: String,
        /// Its length.
        found: u64,
        /// The longest that is read.
        allowed: u64,
    },
    /// The text does not follow its format.
    #[error("{file}: {}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// Where.
        file: String,
        /// The line, from 1, where it is known.
        line: Option<usize>,
        /// What the parser expected.
        message: String,
    },
    /// A field that must be there is not.
    #[error("{file}: `{field}` is missing; {expected}")]
    Missing {
        /// Where.
        file: String,
        /// Which field.
        field: String,
        /// What it should hold, as "give …" or "it holds …".
        expected: String,
    },
    /// A name that is not known; the known ones are listed and the closest suggested.
    #[error("{file}: unknown {what} `{found}`{}; known are {}", suggestion(found, known), known.join(", "))]
    Unknown {
        /// Where.
        file: String,
        /// What was being named: `model_type`, `preset`, `key`.
        what: String,
        /// The name found.
        found: String,
        /// All names that would do.
        known: Vec<String>,
    },
    /// All can be read, and yet there is nothing to search.
    #[error("{file}: {reason}")]
    Senseless {
        /// Where.
        file: String,
        /// Why not.
        reason: Senseless,
    },
    /// All can be read, and yet there is no chip to search.
    #[error("{file}: {reason}")]
    NoChip {
        /// Where.
        file: String,
        /// Why not.
        reason: NoChip,
    },
    /// A value of the wrong type or outside its range, alone or beside another field.
    #[error("{file}: `{field} = {found}` {problem}; {allowed}")]
    Value {
        /// Where.
        file: String,
        /// Which field.
        field: String,
        /// The value found, as written.
        found: String,
        /// What is wrong with it, as "does not divide …".
        problem: String,
        /// What would do, as "try 32" or "allowed are 1 to 8".
        allowed: String,
    },
}

/// The known name that `found` was probably meant to be: a slip of the fingers away, or the one
/// that it begins.
///
/// A letter too many, too few or swapped with its neighbour counts one, another letter two; at most
/// a third of the letters may differ, and of the first word a quarter, or one: another first word
/// is another family, not a slip.
pub fn closest<'a>(found: &str, known: &'a [String]) -> Option<&'a str> {
    let found = found.to_lowercase();
    let slips = |name: &&String| {
        let name = name.to_lowercase();
        let total = distance(&found, &name);
        let first = distance(first_word(&found), first_word(&name));
        let longest = found.chars().count().max(name.chars().count());
        let word = first_word(&found).chars().count().max(first_word(&name).chars().count());
        (total <= longest / 3 && first <= (word / 4).max(1)).then_some(total)
    };
    let slip = known.iter().filter_map(|name| Some((slips(&name)?, name)));
    let begun = |name: &&String| {
        let rest = name.to_lowercase().strip_prefix(&found).map(str::to_owned);
        found.chars().count() >= 3 && rest.is_some_and(|rest| rest.starts_with(['-', '_']))
    };
    let best = slip.min_by_key(|(slips, _)| *slips).map(|(_, name)| name);
    best.or_else(|| known.iter().find(begun)).map(String::as_str)
}

/// The letters that a name begins with.
fn first_word(name: &str) -> &str {
    name.split(|c: char| !c.is_alphabetic()).next().unwrap_or(name)
}

/// How many slips turn one text into the other: a letter added, left out or swapped with its
/// neighbour is one slip, another letter in its place is two.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // `rows[i][j]` turns the first `i` letters of one into the first `j` of the other.
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = match (i, j) {
                (0, slips) | (slips, 0) => slips,
                _ => {
                    let same = if one[i - 1] == other[j - 1] { 0 } else { 2 };
                    let mut least =
                        (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
                    let swapped =
                        i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                    if swapped {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[one.len()][other.len()]
}

fn suggestion(found: &str, known: &[String]) -> String {
    let mut text = String::new();
    if let Some(name) = closest(found, known) {
        let _ = write!(text, " (did you mean `{name}`?)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_closest_known() {
        let error = InputError::Unknown {
            file: "config.json".into(),
            what: "model_type".into(),
            found: "lama".into(),
            known: vec!["bert".into(), "llama".into()],
        };
        assert_eq!(
            error.to_string(),
            "config.json: unknown model_type `lama` (did you mean `llama`?); known are bert, llama"
        );
    }

    #[test]
    fn a_stranger_gets_no_suggestion() {
        assert_eq!(closest("xyz", &["bert".into(), "llama".into()]), None);
    }

    #[test]
    fn slips_are_mended() {
        let models = super::super::model_names();
        for (found, meant) in [
            ("gpt2-lx", "gpt2-xl"),
            ("gpt2xl", "gpt2-xl"),
            ("GPT2-XL", "gpt2-xl"),
            ("mistrl-7b", "mistral-7b"),
            ("mistral7b", "mistral-7b"),
            ("lama2-7b", "llama2-7b"),
            ("bert-lagre", "bert-large"),
            ("megatron-gpt-8.3b", "megatron-gpt2-8.3b"),
            ("bert", "bert-large"),
            ("mistral", "mistral-7b"),
        ] {
            assert_eq!(closest(found, &models), Some(meant), "{found}");
        }
        let knobs = super::super::space::keys();
        for (found, meant) in [("wdith", "width"), ("tensor_core", "tensor_cores")] {
            assert_eq!(closest(found, &knobs), Some(meant), "{found}");
        }
    }

    #[test]
    fn another_family_is_not_a_slip() {
        let models = super::super::model_names();
        for found in ["gptj", "gptj-6b", "t5-large", ""] {
            assert_eq!(closest(found, &models), None, "{found}");
        }
        let types: Vec<String> = ["mistral", "gpt2", "opt", "bert"].map(String::from).to_vec();
        for found in ["mixtral", "gptj", "gpt_neo", "bart", "bort"] {
            assert_eq!(closest(found, &types), None, "{found}");
        }
    }
}
