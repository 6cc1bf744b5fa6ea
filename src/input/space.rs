//! Design spaces: the `[space]` section of a request, each knob a list or a power-of-two range.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Value;

use super::InputError;
use super::chip_space::ChipTable;
use super::chip_space::chip_keys;
use super::numbers::Field;
use super::numbers::syntax;
use crate::hardware::DesignSpace;
use crate::hardware::Knob;

/// The key that chooses a space.
pub(super) const NAME: &str = "name";

/// The limit of area, and the part of it that a chip must fill.
pub(super) const MAX_AREA: &str = "max_area_mm2";
const MIN_AREA: &str = "min_area_fraction";

/// The part of the largest chip that one with several cores of each kind must fill, by default.
const PUBLISHED_FRACTION: f64 = 0.3;

/// Square nanometres in a square millimetre, and the areas that may be asked for.
const NM2_PER_MM2: f64 = 1e12;
const AREAS_MM2: (f64, f64) = (1e-3, 1e6);

/// The `[space]` section as it is written; a knob left out is as in the published space.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct RawSpace(BTreeMap<String, Value>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct File {
    space: RawSpace,
}

/// Reads a file with a `[space]` section.
pub fn space(text: &str, file: &str) -> Result<DesignSpace, InputError> {
    let found: File = toml::from_str(text).map_err(|error| syntax(&error, text, file))?;
    found.space.checked(file)
}

/// What the section may hold.
pub fn keys() -> Vec<String> {
    let names = Knob::listed().map(|knob| knob.name);
    names.chain([MAX_AREA, MIN_AREA, NAME]).map(str::to_owned).collect()
}

impl RawSpace {
    /// One setting as an option holds it: `width=128`, `width=32,64`, `width=2..256`,
    /// `max_area_mm2=200`.
    pub fn setting(option: &str, text: &str) -> Result<Self, InputError> {
        let place = format!("{option} {text}");
        let Some((name, values)) = text.split_once('=') else {
            let found = Self(BTreeMap::from([(NAME.to_owned(), Value::String(text.to_owned()))]));
            if option == "--fix" || found.kind(&place).is_err() {
                let field = Field::new(&place, text);
                return Err(field.missing(
                    "write it as width=128, width=32,64 or width=2..256, or name a space: chips or \
                     published",
                ));
            }
            return Ok(found);
        };
        let name = name.trim();
        let field = Field::new(&place, &format!("space.{name}"));
        let one = |word: &str| match (word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(whole), _) => Ok(Value::Integer(whole)),
            (Err(_), Ok(number)) => Ok(Value::Float(number)),
            (Err(_), Err(_)) => Err(field.value(word, "is no number", "give numbers")),
        };
        let value = if let Some((from, to)) = values.split_once("..") {
            let ends = [("from", from), ("to", to)];
            let ends = ends.map(|(end, word)| Ok((end.to_owned(), one(word.trim())?)));
            Value::Table(ends.into_iter().collect::<Result<_, InputError>>()?)
        } else if values.trim() == "as-width" {
            Value::String("as-width".into())
        } else {
            let words: Vec<&str> =
                values.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
            match words.as_slice() {
                [only] => one(only)?,
                words => {
                    Value::Array(words.iter().map(|word| one(word)).collect::<Result<_, _>>()?)
                }
            }
        };
        let found = Self(BTreeMap::from([(name.to_owned(), value)]));
        // It makes sense in the one space or in the other.
        let of_chips = ChipTable::default().space(&found, &place);
        match (found.checked(&place), of_chips) {
            (Ok(_), _) | (_, Ok(_)) => Ok(found),
            (Err(error), Err(_)) if keys().iter().any(|known| known == name) => Err(error),
            (Err(_), Err(error)) if chip_keys().iter().any(|known| known == name) => Err(error),
            // A key of neither.
            _ => Err(InputError::Unknown {
                file: place,
                what: "key of [space]".into(),
                found: name.to_owned(),
                known: chip_keys()
                    .into_iter()
                    .chain(keys())
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
            }),
        }
    }

    /// What a key holds.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Whether a key holds a list or a range.
    pub fn holds_several(&self) -> bool {
        self.0.values().any(|value| matches!(value, Value::Array(_) | Value::Table(_)))
    }

    /// The keys that are set.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// This section laid over another: what it sets counts.
    #[must_use]
    pub fn over(self, mut under: Self) -> Self {
        under.0.extend(self.0);
        under
    }

    /// The largest chip in nm², where it is given; it may have from so many mm² to so many.
    pub(super) fn max_area_nm2(
        &self,
        file: &str,
        (least, most): (f64, f64),
    ) -> Result<Option<u64>, InputError> {
        let Some(area) = self.0.get(MAX_AREA) else { return Ok(None) };
        let field = Field::new(file, &format!("space.{MAX_AREA}"));
        field.scaled(number(&field, area)?, NM2_PER_MM2, least, most).map(Some)
    }

    /// The space it describes; `file` is where it was written.
    pub fn checked(&self, file: &str) -> Result<DesignSpace, InputError> {
        let mut space = DesignSpace::published();
        for (key, value) in &self.0 {
            if key == MAX_AREA || key == MIN_AREA || key == NAME {
                continue;
            }
            let knob = Knob::listed().find(|knob| knob.name == key);
            let knob = knob.ok_or_else(|| InputError::Unknown {
                file: file.to_owned(),
                what: "key of [space]".into(),
                found: key.clone(),
                known: keys(),
            })?;
            let field = Field::new(file, &format!("space.{key}"));
            knob.set_values(&mut space, values(&field, knob, value)?);
        }
        if let Some(area) = self.max_area_nm2(file, AREAS_MM2)? {
            space.max_area_nm2 = area;
        }
        let field = Field::new(file, "space.min_area_fraction");
        let fraction =
            self.0.get(MIN_AREA).map_or(Ok(PUBLISHED_FRACTION), |part| number(&field, part))?;
        let billionths = field.scaled(fraction, 1e9, 0.0, 1.0)?;
        let least =
            (u128::from(space.max_area_nm2) * u128::from(billionths)).div_ceil(1_000_000_000);
        space.min_area_nm2 = u64::try_from(least).expect("a fraction of an area is an area");
        Ok(space)
    }
}

/// Checks the limits of area of a space that was not read by [`RawSpace::checked`].
pub fn check_areas(space: &DesignSpace, file: &str) -> Result<(), InputError> {
    let max_area = Field::new(file, "space.max_area_nm2");
    max_area.whole(space.max_area_nm2, 1_000_000_000, 1_000_000_000_000_000_000)?;
    Field::new(file, "space.min_area_nm2").whole(space.min_area_nm2, 0, space.max_area_nm2)?;
    Ok(())
}

/// The values of a knob, ascending, each once.
fn values(field: &Field, knob: &Knob, found: &Value) -> Result<Vec<u64>, InputError> {
    let mut values = match found {
        Value::Array(list) if list.is_empty() => {
            return Err(field.value("[]", "has no value", &allowed(knob)));
        }
        Value::Array(list) => {
            list.iter().map(|value| whole(field, knob, value)).collect::<Result<Vec<u64>, _>>()?
        }
        Value::Integer(_) | Value::Float(_) => vec![whole(field, knob, found)?],
        Value::Table(ends) => powers(field, knob, ends)?,
        Value::String(word) if word == "as-width" && knob.name == "vector_width" => Vec::new(),
        _ => {
            let problem = "is no list of values";
            return Err(field.value(&shown(found), problem, &allowed(knob)));
        }
    };
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

/// All powers of two from one end to the other.
fn powers(field: &Field, knob: &Knob, ends: &toml::Table) -> Result<Vec<u64>, InputError> {
    let end = |name: &str| ends.get(name).map(|value| whole(field, knob, value)).transpose();
    match (end("from")?, end("to")?) {
        (Some(from), Some(to))
            if ends.len() == 2 && from.is_power_of_two() && to.is_power_of_two() && from <= to =>
        {
            let doubled = std::iter::successors(Some(from), |value| value.checked_mul(2));
            Ok(doubled.take_while(|value| *value <= to).collect())
        }
        _ => {
            let found = shown(&Value::Table(ends.clone()));
            Err(field.value(&found, "is no range of powers of two", &allowed(knob)))
        }
    }
}

fn whole(field: &Field, knob: &Knob, found: &Value) -> Result<u64, InputError> {
    let problem = match found {
        Value::Integer(value) => {
            let in_range = u64::try_from(*value).ok().filter(|value| knob.range.contains(value));
            match in_range {
                Some(value) => return Ok(value),
                None => "is out of range",
            }
        }
        Value::Float(value) if value.fract() == 0.0 && value.abs() >= 9e15 => "is out of range",
        _ => "is not a whole number",
    };
    Err(field.value(&shown(found), problem, &allowed(knob)))
}

fn number(field: &Field, found: &Value) -> Result<f64, InputError> {
    match found {
        Value::Integer(value) => Ok(*value as f64),
        Value::Float(value) => Ok(*value),
        _ => Err(field.value(&shown(found), "is no number", "give one number")),
    }
}

fn allowed(knob: &Knob) -> String {
    let (low, high) = (knob.range.start(), knob.range.end());
    let named = if knob.name == "vector_width" { "\"as-width\", " } else { "" };
    format!(
        "allowed are {named}whole numbers from {low} to {high}, one or a list, and a range such \
         as {{ from = 2, to = 64 }} whose ends are powers of two, the smaller first"
    )
}

/// A value as it is written, cut to what fits a line.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_published_space() {
        assert_eq!(space("[space]\n", "space.toml").unwrap(), DesignSpace::published());
    }

    #[test]
    fn knobs_are_lists_or_ranges_of_powers_of_two() {
        let text = "[space]\nwidth = [100, 64, 100]\ntensor_cores = { from = 2, to = 16 }\n\
                    vector_width = { from = 128, to = 256 }\nmax_area_mm2 = 100\n";
        let found = space(text, "space.toml").unwrap();
        assert_eq!(found.width, [64, 100]);
        assert_eq!(found.tensor_cores, [2, 4, 8, 16]);
        assert_eq!(found.vector_width, [128, 256]);
        assert_eq!(found.max_area_nm2, 100_000_000_000_000);
    }

    #[test]
    fn impossible_spaces_are_refused_by_name() {
        let cases = [
            ("width = []", "`space.width = []` has no value"),
            ("width = { from = 8, to = 4 }", "is no range of powers of two"),
            ("width = { from = 5, to = 7 }", "is no range of powers of two"),
            ("width = { from = 2, to = 7 }", "whose ends are powers of two"),
            ("width = { from = 2 }", "is no range of powers of two"),
            ("width = { from = 2, to = 4, by = 2 }", "is no range of powers of two"),
            ("width = 1.5", "`space.width = 1.5` is not a whole number"),
            ("width = \"wide\"", "`space.width = \"wide\"` is no list of values"),
            ("width = [[2]]", "`space.width = [2]` is not a whole number"),
            ("width = \"as-width\"", "is no list of values"),
            ("depth = [0]", "`space.depth = 0` is out of range"),
            ("depth = -3", "`space.depth = -3` is out of range"),
            ("glb_mib = 1152921504606846976", "is out of range"),
            ("vector_width = \"free\"", "`space.vector_width = \"free\"`"),
            ("max_area_mm2 = -3", "`space.max_area_mm2 = -3`"),
            ("max_area_mm2 = nan", "`space.max_area_mm2 = NaN`"),
            ("max_area_mm2 = [3]", "is no number"),
            ("min_area_fraction = 1.5", "`space.min_area_fraction = 1.5`"),
            ("widht = [2]", "unknown key of [space] `widht` (did you mean `width`?)"),
        ];
        for (line, expected) in cases {
            let error = space(&format!("[space]\n{line}\n"), "s.toml").unwrap_err().to_string();
            assert!(error.starts_with("s.toml: ") && error.contains(expected), "{error}");
            assert!(!error.contains("u64") && !error.contains("untagged"), "{error}");
        }
    }

    #[test]
    fn an_option_sets_what_a_file_would() {
        let cases = [
            ("width=128", "width = 128"),
            ("width=32, 64", "width = [32, 64]"),
            ("depth=2..64", "depth = { from = 2, to = 64 }"),
            ("vector_width=as-width", "vector_width = \"as-width\""),
            ("max_area_mm2=150.5", "max_area_mm2 = 150.5"),
            ("min_area_fraction=0", "min_area_fraction = 0"),
        ];
        for (option, line) in cases {
            let from_option = RawSpace::setting("--space", option).unwrap();
            let from_file = space(&format!("[space]\n{line}\n"), "s.toml").unwrap();
            assert_eq!(from_option.checked("s.toml").unwrap(), from_file, "{option}");
        }
    }

    #[test]
    fn options_that_set_nothing_are_refused_with_themselves() {
        for (option, expected) in [
            ("width", "--space width: `width` is missing"),
            ("width=", "--space width=: `space.width = []` has no value"),
            ("width=5..7", "is no range of powers of two"),
            ("width=x", "`space.width = x` is no number"),
            ("width=99999999999999999999", "is out of range"),
            ("wdith=4", "unknown key of [space] `wdith` (did you mean `width`?)"),
        ] {
            let error = RawSpace::setting("--space", option).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
