//! Keywords of a call: each is taken by the request that knows it, and what is left over is refused
//! with the closest name.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::input::InputError;
use crate::input::source::printable;

/// What a caller gave by name.
#[derive(Clone, Debug)]
pub struct Keywords {
    verb: String,
    given: BTreeMap<String, Value>,
    known: Vec<String>,
}

/// A kind of value that a keyword can hold.
pub trait Given: Sized {
    /// What the kind is, as "give …".
    const WHAT: &str;
    /// The value, where it is of this kind.
    fn of(value: &Value) -> Option<Self>;
}

impl Given for bool {
    const WHAT: &str = "give true or false";
    fn of(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Given for u64 {
    const WHAT: &str = "give a whole number, 0 or more";
    fn of(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl Given for f64 {
    const WHAT: &str = "give a number";
    fn of(value: &Value) -> Option<Self> {
        value.as_f64()
    }
}

impl Given for String {
    const WHAT: &str = "give a text";
    fn of(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Given for Vec<u64> {
    const WHAT: &str = "give a whole number or a list of them";
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Array(list) => list.iter().map(u64::of).collect(),
            one => Some(vec![u64::of(one)?]),
        }
    }
}

impl Given for Vec<String> {
    const WHAT: &str = "give a text or a list of them";
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Array(list) => list.iter().map(String::of).collect(),
            one => Some(vec![String::of(one)?]),
        }
    }
}

impl Given for Value {
    const WHAT: &str = "give a value";
    fn of(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl Keywords {
    /// What was given to `verb`, by name; what is null counts as not given.
    pub fn new(verb: &str, given: impl IntoIterator<Item = (String, Value)>) -> Self {
        let given = given.into_iter().filter(|(_, value)| !value.is_null()).collect();
        Self { verb: verb.to_owned(), given, known: Vec::new() }
    }

    /// What was asked for: what errors refer to.
    pub fn verb(&self) -> &str {
        &self.verb
    }

    /// The value of a keyword that nobody took yet.
    pub fn peek(&self, key: &str) -> Option<&Value> {
        self.given.get(key)
    }

    /// Gives a keyword a value, as if the caller had.
    pub fn give(&mut self, key: &str, value: Value) {
        self.given.insert(key.to_owned(), value);
    }

    /// Takes the value of a keyword, where it was given.
    ///
    /// # Errors
    /// That it is of another kind.
    pub fn take<T: Given>(&mut self, key: &str) -> Result<Option<T>, InputError> {
        self.known.push(key.to_owned());
        let Some(value) = self.given.remove(key) else { return Ok(None) };
        let found = T::of(&value);
        found.map(Some).ok_or_else(|| self.wrong(key, &value, "is of another kind", T::WHAT))
    }

    /// Takes a keyword whose value is one of some words.
    ///
    /// # Errors
    /// That it is none of them.
    pub fn word<T: Copy>(
        &mut self,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, InputError> {
        let Some(found) = self.take::<String>(key)? else { return Ok(None) };
        let known = words.iter().find(|(word, _)| *word == found);
        known.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| InputError::Unknown {
            file: self.verb.clone(),
            what: format!("`{key}`"),
            found: printable(&found),
            known: words.iter().map(|(word, _)| (*word).to_owned()).collect(),
        })
    }

    /// Takes a switch, which is off where it was not given.
    ///
    /// # Errors
    /// That it is neither true nor false.
    pub fn switch(&mut self, key: &str) -> Result<bool, InputError> {
        Ok(self.take(key)?.unwrap_or(false))
    }

    /// Ends the reading: every keyword was taken.
    ///
    /// # Errors
    /// The first that was not, with the closest name.
    pub fn end(self) -> Result<(), InputError> {
        match self.given.into_keys().next() {
            None => Ok(()),
            Some(found) => Err(InputError::Unknown {
                file: self.verb,
                what: "keyword".into(),
                found: printable(&found),
                known: self.known,
            }),
        }
    }

    /// That a keyword has a value that it may not have.
    pub fn wrong(&self, key: &str, value: &Value, problem: &str, allowed: &str) -> InputError {
        let mut found = printable(&value.to_string());
        if let Some((end, _)) = found.char_indices().nth(60) {
            found.truncate(end);
            found.push('…');
        }
        InputError::Value {
            file: self.verb.clone(),
            field: key.to_owned(),
            found,
            problem: problem.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keywords(given: Value) -> Keywords {
        let Value::Object(given) = given else { unreachable!("a call has names") };
        Keywords::new("place", given)
    }

    #[test]
    fn what_nobody_takes_is_refused_with_the_closest_name() {
        let mut given = keywords(json!({ "devices": 8, "global_bacth": 64, "zero": null }));
        assert_eq!(given.take::<u64>("devices").unwrap(), Some(8));
        assert_eq!(given.take::<u64>("zero").unwrap(), None);
        assert_eq!(given.take::<u64>("global_batch").unwrap(), None);
        let said = given.end().unwrap_err().to_string();
        let expected = "place: unknown keyword `global_bacth` (did you mean `global_batch`?)";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn one_number_is_a_list_of_one() {
        let mut given = keywords(json!({ "one": 4, "two": [1, 2], "none": [], "odd": [1, "x"] }));
        assert_eq!(given.take::<Vec<u64>>("one").unwrap(), Some(vec![4]));
        assert_eq!(given.take::<Vec<u64>>("two").unwrap(), Some(vec![1, 2]));
        assert_eq!(given.take::<Vec<u64>>("none").unwrap(), Some(vec![]));
        let said = given.take::<Vec<u64>>("odd").unwrap_err().to_string();
        assert!(
            said.contains("`odd = [1,\"x\"]` is of another kind; give a whole number"),
            "{said}"
        );
    }

    #[test]
    fn a_word_that_is_not_known_is_named_with_those_that_are() {
        let mut given = keywords(json!({ "pass": "forwards" }));
        let words = [("forward", 1), ("backward", 2)];
        let said = given.word("pass", &words).unwrap_err().to_string();
        assert!(said.contains("did you mean `forward`?"), "{said}");
    }
}
