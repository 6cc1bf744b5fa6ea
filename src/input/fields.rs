//! The fields of a JSON object, each read with its check.

use serde_json::Map;
use serde_json::Value;

use super::InputError;

/// The largest size that a model may have in any dimension: far beyond any real one, and small
/// enough that products of three of them can be counted.
pub const LARGEST_SIZE: u64 = 1 << 24;

/// A JSON object and the name of its file.
pub struct Fields<'a> {
    file: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The object that `value` is.
    pub fn of(file: &'a str, value: &'a Value) -> Result<Self, InputError> {
        match value {
            Value::Object(fields) => Ok(Self { file, fields }),
            other => Err(InputError::Syntax {
                file: file.into(),
                line: None,
                message: format!("a JSON object is expected, not {}", kind(other)),
            }),
        }
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        self.file
    }

    /// Whether a field is there and null.
    pub fn is_null(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(Value::is_null)
    }

    /// A field that is there and not null.
    pub fn optional(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A size that must be given: a whole number from 1 to 2²⁴.
    pub fn size(&self, field: &str, meaning: &str) -> Result<u64, InputError> {
        self.count(field, LARGEST_SIZE, meaning)
    }

    /// A number that must be given, from 1 to `largest`.
    pub fn count(&self, field: &str, largest: u64, meaning: &str) -> Result<u64, InputError> {
        self.bounded(field, largest)?.ok_or_else(|| InputError::Missing {
            file: self.file.into(),
            field: field.into(),
            expected: format!("it holds {meaning}, a whole number"),
        })
    }

    /// The same, none where it is missing or null.
    pub fn optional_size(&self, field: &str) -> Result<Option<u64>, InputError> {
        self.bounded(field, LARGEST_SIZE)
    }

    /// A whole number from 1 to `largest`, none where it is missing or null.
    pub fn bounded(&self, field: &str, largest: u64) -> Result<Option<u64>, InputError> {
        let Some(value) = self.optional(field) else { return Ok(None) };
        let allowed = format!("allowed are 1 to {largest}");
        match value.as_u64() {
            Some(size) if (1..=largest).contains(&size) => Ok(Some(size)),
            _ if value.is_i64() || value.is_u64() => {
                Err(self.wrong(field, "is out of range", &allowed))
            }
            _ => Err(self.wrong(field, "is not a whole number", &allowed)),
        }
    }

    /// A claim that is true or false.
    pub fn flag(&self, field: &str, default: bool) -> Result<bool, InputError> {
        match self.optional(field) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => {
                Err(self.wrong(field, "is neither true nor false", "allowed are true and false"))
            }
        }
    }

    /// A number from 0 to 1.
    pub fn fraction(&self, field: &str, default: f64) -> Result<f64, InputError> {
        let Some(value) = self.optional(field) else { return Ok(default) };
        let fraction = value.as_f64().filter(|fraction| (0.0..=1.0).contains(fraction));
        fraction.ok_or_else(|| self.wrong(field, "is not a fraction", "allowed are 0 to 1"))
    }

    /// Whether dropout has a probability above 0.
    pub fn dropout(&self, field: &str, default: f64) -> Result<bool, InputError> {
        Ok(self.fraction(field, default)? > 0.0)
    }

    /// A text that must be given.
    pub fn text(&self, field: &str, meaning: &str) -> Result<&'a str, InputError> {
        match self.optional(field) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.wrong(field, "is not a text", &format!("it holds {meaning}"))),
            None => Err(InputError::Missing {
                file: self.file.into(),
                field: field.into(),
                expected: format!("it holds {meaning}"),
            }),
        }
    }

    /// Refuses the file for the value of a field.
    pub fn wrong(&self, field: &str, problem: &str, allowed: &str) -> InputError {
        let found = self.fields.get(field).map_or_else(|| "(absent)".into(), shortened);
        InputError::Value {
            file: self.file.into(),
            field: field.into(),
            found,
            problem: problem.into(),
            allowed: allowed.into(),
        }
    }
}

/// A value as it stands in the file, cut to what fits a line.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
