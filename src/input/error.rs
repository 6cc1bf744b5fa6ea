//! What can be wrong with an input, said so that its author can mend it.

use std::fmt::Write as _;

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

/// The known name that `found` was probably meant to be.
pub fn closest<'a>(found: &str, known: &'a [String]) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(&found.to_lowercase(), &name.to_lowercase());
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    // Below this, the best is as often a stranger as the name that was meant.
    (likeness(best) > 0.8).then_some(best)
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
}
