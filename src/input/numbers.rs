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

    /// A number within `low` to `high`, in units `factor` times smaller, rounded to the nearest.
    pub fn scaled(&self, found: f64, factor: f64, low: f64, high: f64) -> Result<u64, InputError> {
        if (low..=high).contains(&found) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "ranges are non-negative and far below 2⁶⁴ of the smaller unit"
            )]
            return Ok((found * factor).round() as u64);
        }
        let allowed = format!("allowed are {low} to {high}");
        Err(self.value(&found.to_string(), "is out of range", &allowed))
    }
}

/// A parser's complaint with the line it is about.
pub fn syntax(error: &toml::de::Error, text: &str, file: &str) -> InputError {
    // A span starts on a character, so the text before it can be cut off there.
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| before.split('\n').count());
    InputError::Syntax { file: file.to_owned(), line, message: error.message().to_owned() }
}
