//! Numbers of a user's file, checked against their range; syntax errors with their line.

use super::InputError;

/// One field of one file, to which errors refer.
pub struct Field {
    file: String,
    name: String,
}

impl Field {
    /// The field `name` of `file`.
    pub fn new(file: &str, name: &str) -> Self {
        Self { file: file.to_owned(), name: name.to_owned() }
    }

    /// The field is not there.
    pub fn missing(&self, expected: &str) -> InputError {
        InputError::Missing {
            file: self.file.clone(),
            field: self.name.clone(),
            expected: expected.to_owned(),
        }
    }

    /// The field holds what it may not.
    pub fn value(&self, found: &str, problem: &str, allowed: &str) -> InputError {
        InputError::Value {
            file: self.file.clone(),
            field: self.name.clone(),
            found: found.to_owned(),
            problem: problem.to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    /// A whole number within `low` to `high`.
    pub fn whole(&self, found: u64, low: u64, high: u64) -> Result<u64, InputError> {
        if (low..=high).contains(&found) {
            return Ok(found);
        }
        let allowed = format!("allowed are {low} to {high}");
        Err(self.value(&found.to_string(), "is out of range", &allowed))
    }

    /// A number within `low` to `high`; never one that is none, or infinite.
    pub fn number(&self, found: f64, low: f64, high: f64) -> Result<f64, InputError> {
        if (low..=high).contains(&found) {
            return Ok(found);
        }
        let allowed = format!("allowed are {low} to {high}");
        Err(self.value(&found.to_string(), "is out of range", &allowed))
    }

    /// A number within `low` to `high`, in units `factor` times smaller, rounded to the nearest.
    pub fn scaled(&self, found: f64, factor: f64, low: f64, high: f64) -> Result<u64, InputError> {
        let found = self.number(found, low, high)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "ranges are non-negative and far below 2⁶⁴ of the smaller unit"
        )]
        Ok((found * factor).round() as u64)
    }
}

/// A parser's complaint with the line it is about.
pub fn syntax(error: &toml::de::Error, text: &str, file: &str) -> InputError {
    // A span starts on a character, so the text before it can be cut off there.
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| before.split('\n').count());
    InputError::Syntax { file: file.to_owned(), line, message: plainly(error.message()) }
}

/// Words of the parsers that only their authors know, and what they mean.
const WORDS: [(&str, &str); 15] = [
    ("expected usize", "expected a whole number, 0 or more"),
    ("expected u8", "expected a whole number, 0 to 255"),
    ("expected u64", "expected a whole number, 0 or more"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list"),
    ("expected a string", "expected a text in quotes"),
    ("expected a map", "expected a table"),
    ("invalid type: ", "found "),
    ("invalid value: ", "found "),
    ("found floating point ", "found the number "),
    ("found string ", "found the text "),
    ("found sequence", "found a list"),
    ("found map", "found a table"),
];

/// What a parser says, in words of people who write files.
pub fn plainly(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_speak_of_numbers_and_lists_not_of_types() {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(rename = "n")]
            _n: Option<u64>,
            #[serde(rename = "x")]
            _x: Option<f64>,
            #[serde(rename = "list")]
            _list: Option<Vec<u64>>,
            #[serde(rename = "yes")]
            _yes: Option<bool>,
        }
        for (text, expected) in [
            ("n = 1.5", "found the number `1.5`, expected a whole number, 0 or more"),
            ("n = -1", "found integer `-1`, expected a whole number, 0 or more"),
            ("n = \"a\"", "found the text \"a\", expected a whole number, 0 or more"),
            ("x = true", "found boolean `true`, expected a number"),
            ("list = 3", "found integer `3`, expected a list"),
            ("yes = []", "found a list, expected true or false"),
            ("no = 1", "unknown field `no`"),
        ] {
            let error = toml::from_str::<File>(text).err().expect("each is wrong");
            let said = syntax(&error, text, "f.toml").to_string();
            assert!(said.starts_with("f.toml: line 1: ") && said.contains(expected), "{said}");
        }
    }

    #[test]
    fn what_is_no_number_is_out_of_every_range() {
        let field = Field::new("f.toml", "x");
        for found in [f64::NAN, f64::INFINITY, -1.0, 3.0] {
            assert!(field.number(found, 0.0, 2.0).is_err(), "{found}");
        }
        assert_eq!(field.scaled(1.5, 1e3, 0.0, 2.0), Ok(1500));
    }
}
