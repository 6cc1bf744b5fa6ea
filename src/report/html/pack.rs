//! What a page carries, made small: each entry once, designs by column in binary.
//!
//! Numbers of the outcome keep every digit. Of the table, bounds are kept to seven digits (they
//! are only drawn), everything else exactly.

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::report::saved::Cells;
use crate::report::saved::Column;
use crate::report::saved::DesignTable;
use crate::report::saved::Saved;

/// The content of a page of results.
pub fn content(kind: &str, results: &[&Saved]) -> String {
    let mut results: Vec<Value> = results.iter().map(|saved| result(saved)).collect();
    // One result is told by its files alone: its page is the same wherever they lie.
    if let [only] = &mut results[..] {
        only["name"] = Value::Null;
    }
    inert(&json!({"kind": kind, "results": results}))
}

/// JSON that cannot end the element it stands in.
pub fn inert(value: &Value) -> String {
    // Inside JSON, `<` occurs in strings only, where the escape means the same.
    value.to_string().replace('<', "\\u003c")
}

fn result(saved: &Saved) -> Value {
    let mut outcome = saved.outcome.clone();
    let mut entries = Pool::default();
    entries.take(&mut outcome["winner"]);
    for list in ["best_by_hbm", "baselines"] {
        each(&mut outcome[list], |item| entries.take(&mut item["entry"]));
    }
    for list in ["pareto", "top"] {
        if let Some(found) = outcome[list].get_mut("entries") {
            each(found, |entry| entries.take(entry));
        }
    }
    json!({
        "name": saved.name,
        "outcome": outcome,
        "entries": entries.values,
        "designs": designs(&saved.designs),
    })
}

/// Distinct entries; a result names many of them twice (the winner is also the first of the top).
#[derive(Default)]
struct Pool {
    places: BTreeMap<String, usize>,
    values: Vec<Value>,
}

impl Pool {
    /// Moves an entry into the pool and leaves its number, or null where there is none.
    fn take(&mut self, place: &mut Value) {
        let mut entry = place.take();
        if !entry.is_object() {
            return;
        }
        if let Some(results) = entry.get_mut("results") {
            each(results, without_plan);
        }
        let next = self.values.len();
        let number = *self.places.entry(entry.to_string()).or_insert(next);
        if number == next {
            self.values.push(entry);
        }
        *place = number.into();
    }
}

/// Leaves out the plan, which is for `phaze check`, but for the ends of its stages: the page draws
/// the other figures from what stands beside it.
fn without_plan(result: &mut Value) {
    let plan = result.as_object_mut().and_then(|fields| fields.remove("plan"));
    let Some(plan) = plan else { return };
    let digits =
        plan["units"]["time_digits"].as_i64().and_then(|digits| i32::try_from(digits).ok());
    let (Some(digits), Some(ends)) = (digits, plan["answer"]["stages"].as_array()) else { return };
    let mut ends = ends.iter();
    each(&mut result["stages"], |stage| {
        let (Some(end), Some(fields)) = (ends.next(), stage.as_object_mut()) else { return };
        for (from, to) in [("exchange", "exchange_s"), ("step", "step_s")] {
            if let Some(ticks) = end[from].as_f64() {
                fields.insert(to.into(), (ticks / 10_f64.powi(digits)).into());
            }
        }
    });
}

fn each(list: &mut Value, action: impl FnMut(&mut Value)) {
    list.as_array_mut().map_or(&mut [][..], Vec::as_mut_slice).iter_mut().for_each(action);
}

fn designs(table: &DesignTable) -> Value {
    let columns: Vec<Value> = table.columns.iter().map(column).collect();
    json!({"rows": table.n_rows, "columns": columns})
}

/// One column in the smallest of three forms: codes into a dictionary, all numbers, or the numbers
/// that are there with their rows.
fn column(column: &Column) -> Value {
    let mut packed = Map::new();
    packed.insert("name".into(), column.name.clone().into());
    match (dictionary(&column.cells), &column.cells) {
        (Some((values, codes)), _) => {
            packed.insert("dictionary".into(), values.into());
            packed.insert("codes".into(), base64(&codes).into());
        }
        (None, Cells::Numbers(cells)) => numbers(&column.name, cells, &mut packed),
        (None, Cells::Words(cells)) => {
            packed.insert("words".into(), cells.clone().into());
        }
    }
    Value::Object(packed)
}

/// The distinct values in order of appearance and each cell's code, if 256 codes are enough.
fn dictionary(cells: &Cells) -> Option<(Vec<Value>, Vec<u8>)> {
    let all: Box<dyn Iterator<Item = (String, Value)>> = match cells {
        Cells::Numbers(cells) => Box::new(cells.iter().map(|cell| {
            let value = cell.map_or(Value::Null, number);
            (value.to_string(), value)
        })),
        Cells::Words(cells) => {
            Box::new(cells.iter().map(|cell| (cell.clone(), cell.clone().into())))
        }
    };
    let mut places = BTreeMap::new();
    let mut values = Vec::new();
    let mut codes = Vec::new();
    for (key, value) in all {
        let next = values.len();
        let code = *places.entry(key).or_insert(next);
        if code == next {
            values.push(value);
        }
        codes.push(u8::try_from(code).ok()?);
    }
    Some((values, codes))
}

/// A number as JSON writes it; whole ones without a point.
fn number(value: f64) -> Value {
    // Beyond 2^53 not every whole number is a double, so the point says that it is one.
    if value.fract() == 0.0 && value.abs() < 9e15 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Value::from(value as i64);
    }
    Value::from(value)
}

fn numbers(name: &str, cells: &[Option<f64>], packed: &mut Map<String, Value>) {
    let present: Vec<u32> =
        (0..).zip(cells).filter(|(_, cell)| cell.is_some()).map(|(row, _)| row).collect();
    let sparse = present.len() * 2 < cells.len();
    if sparse {
        let rows: Vec<u8> = present.iter().flat_map(|row| row.to_le_bytes()).collect();
        packed.insert("rows".into(), base64(&rows).into());
    }
    let kept = cells.iter().filter(|cell| !sparse || cell.is_some());
    let values = kept.map(|cell| cell.unwrap_or(f64::NAN));
    if name.starts_with("bound_") {
        #[expect(clippy::cast_possible_truncation, reason = "bounds are drawn, not told")]
        let bytes: Vec<u8> = values.flat_map(|value| (value as f32).to_le_bytes()).collect();
        packed.insert("f32".into(), base64(&bytes).into());
    } else {
        let bytes: Vec<u8> = values.flat_map(f64::to_le_bytes).collect();
        packed.insert("f64".into(), base64(&bytes).into());
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_its_standard() {
        let pairs =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in pairs {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn an_entry_that_is_named_twice_is_carried_once() {
        let entry = json!({"design": {"width": 8}, "results": [{"model": "m", "plan": {"x": 1}}]});
        let outcome =
            json!({"winner": entry, "top": {"entries": [entry]}, "baselines": [{"entry": null}]});
        let saved = Saved { name: "a".into(), outcome, designs: DesignTable::default() };
        let packed = result(&saved);
        assert_eq!(packed["entries"].as_array().unwrap().len(), 1);
        assert_eq!(packed["outcome"]["winner"], 0);
        assert_eq!(packed["outcome"]["top"]["entries"], json!([0]));
        assert_eq!(packed["outcome"]["baselines"], json!([{"entry": null}]));
        assert_eq!(packed["entries"][0]["results"], json!([{"model": "m"}]));
    }

    #[test]
    fn the_ends_of_stages_are_taken_from_the_plan() {
        let mut result = json!({
            "stages": [{"load_s": 1.0}],
            "plan": {"units": {"time_digits": 12}, "answer": {"stages": [{"exchange": 5, "step": 2}]}},
        });
        without_plan(&mut result);
        let stage = json!({"load_s": 1.0, "exchange_s": 5e-12, "step_s": 2e-12});
        assert_eq!(result, json!({"stages": [stage]}));
    }

    #[test]
    fn numbers_keep_every_digit_but_bounds() {
        let cells = Cells::Numbers((0..600).map(|i| Some(f64::from(i) + 0.1)).collect());
        let value = column(&Column { name: "value".into(), cells: cells.clone() });
        let bound = column(&Column { name: "bound_hbm32".into(), cells });
        assert_eq!(value["f64"].as_str().unwrap().len(), 600 * 8 / 3 * 4);
        assert_eq!(bound["f32"].as_str().unwrap().len(), 600 * 4 / 3 * 4);
    }

    #[test]
    fn a_mostly_empty_column_carries_its_rows() {
        let cell = |i: usize| i.is_multiple_of(3).then_some(i as f64 + 0.5);
        let cells = Cells::Numbers((0..3000).map(cell).collect());
        let packed = column(&Column { name: "value".into(), cells });
        assert_eq!(packed["rows"].as_str().unwrap().len(), (1000 * 4_usize).div_ceil(3) * 4);
    }

    #[test]
    fn few_values_become_codes() {
        let cells = Cells::Numbers(vec![Some(2.0), None, Some(2.0), Some(0.5)]);
        let packed = column(&Column { name: "width".into(), cells });
        assert_eq!(packed["dictionary"], json!([2, null, 0.5]));
        assert_eq!(packed["codes"], base64(&[0, 1, 0, 2]));
    }
}
