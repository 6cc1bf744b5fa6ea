//! A claim that does not hold: what it is about, what is said, what is found.
//!
//! Most of an answer is rebuilt in the types it is written in; [`equal`] then walks through both
//! and names the first place where they differ, so that no key can be forgotten.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

/// The first claim of an answer that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{claim} is said to be {claimed}, but is {found}")]
pub struct FalseClaim {
    /// Which one, as a path into the file.
    pub claim: String,
    /// What the answer says.
    pub claimed: String,
    /// What follows from the request.
    pub found: String,
}

/// Whether a claim holds.
pub type Verdict = Result<(), FalseClaim>;

/// Figures that agree to this part are the same: more than the rounding of any figure that is
/// written, less than any difference that could matter.
pub const SAME: f64 = 1e-12;

impl FalseClaim {
    /// A claim at `claim`; control characters of a hostile file never reach a terminal.
    pub fn new(claim: impl Display, claimed: impl Display, found: impl Display) -> Self {
        Self {
            claim: printable(&claim.to_string()),
            claimed: printable(&claimed.to_string()),
            found: printable(&found.to_string()),
        }
    }
}

/// Fails with a claim unless `holds`.
pub fn require(
    holds: bool,
    claim: impl Display,
    claimed: impl Display,
    found: impl Display,
) -> Verdict {
    if holds { Ok(()) } else { Err(FalseClaim::new(claim, claimed, found)) }
}

/// Whether two figures are the same but for rounding.
pub fn same(claimed: f64, found: f64) -> bool {
    close(claimed, found, SAME)
}

/// Whether two figures agree to a part of the larger.
pub fn close(claimed: f64, found: f64, part: f64) -> bool {
    (claimed - found).abs() <= part * claimed.abs().max(found.abs())
}

/// Compares all that is written of two values; the first difference is named by its path.
pub fn equal<T: Serialize>(path: &str, claimed: &T, found: &T) -> Verdict {
    let written = |value: &T| serde_json::to_value(value);
    match (written(claimed), written(found)) {
        (Ok(claimed), Ok(found)) => compare(path, &claimed, &found),
        _ => Err(FalseClaim::new(path, "a number beyond 64 bits", "none")),
    }
}

fn compare(path: &str, claimed: &Value, found: &Value) -> Verdict {
    match (claimed, found) {
        (Value::Array(said), Value::Array(is)) => {
            require(said.len() == is.len(), format!("{path}.length"), said.len(), is.len())?;
            let mut pairs = said.iter().zip(is).enumerate();
            pairs.try_for_each(|(at, (said, is))| compare(&format!("{path}[{at}]"), said, is))
        }
        (Value::Object(said), Value::Object(is)) => {
            if let Some(key) = said.keys().find(|key| !is.contains_key(*key)) {
                return Err(FalseClaim::new(format!("{path}.{key}"), &said[key], "absent"));
            }
            let mut keys = is.iter();
            keys.try_for_each(|(key, is)| {
                let said = said.get(key).unwrap_or(&Value::Null);
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&inner, said, is)
            })
        }
        (Value::Number(said), Value::Number(is)) => {
            let whole = |number: &serde_json::Number| number.is_u64() || number.is_i64();
            let agree = match (said.as_f64(), is.as_f64()) {
                _ if said == is => true,
                _ if whole(said) && whole(is) => false,
                (Some(said), Some(is)) => same(said, is),
                _ => false,
            };
            require(agree, path, said, is)
        }
        _ => require(claimed == found, path, shortened(claimed), shortened(found)),
    }
}

/// A value as written, cut to a line.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(79).chain(['…']).collect() }
}

fn printable(text: &str) -> String {
    text.replace(char::is_control, "�")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn first(claimed: &Value, found: &Value) -> String {
        equal("", claimed, found).map_or_else(|wrong| wrong.claim, |()| String::new())
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let found = json!({"a": [1, {"b": 2.5}], "c": "x", "d": null});
        assert_eq!(first(&found, &found), "");
        let lies = [
            (json!({"a": [1, {"b": 2.6}], "c": "x", "d": null}), "a[1].b"),
            (json!({"a": [2, {"b": 2.5}], "c": "x", "d": null}), "a[0]"),
            (json!({"a": [1], "c": "x", "d": null}), "a.length"),
            (json!({"a": [1, {"b": 2.5}], "c": "y", "d": null}), "c"),
            (json!({"a": [1, {"b": 2.5}], "c": "x", "d": 0}), "d"),
            (json!({"a": [1, {"b": 2.5}], "c": "x", "d": null, "e": 1}), ".e"),
        ];
        for (lie, path) in lies {
            assert_eq!(first(&lie, &found), path);
        }
    }

    #[test]
    fn rounding_is_no_lie_but_a_whole_number_is_exact() {
        assert_eq!(first(&json!(0.1), &json!(0.1 + 1e-16)), "");
        let (large, next) = (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64));
        assert!(equal("n", &large, &next).is_err());
        assert!(equal("n", &json!(3), &json!(3.0)).is_ok());
    }

    #[test]
    fn control_characters_stay_out_of_messages() {
        let lie = FalseClaim::new("a", "\u{1b}[2J", "b");
        assert!(!lie.to_string().contains('\u{1b}'));
    }
}
