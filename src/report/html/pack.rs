//! What a page carries, made small: equal parts of the outcome once, designs by column in binary.
//! Every number keeps every digit.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::plan::Plan;
use crate::plan::check::placement::check;
use crate::report::basis;
use crate::report::saved::Cells;
use crate::report::saved::Column;
use crate::report::saved::DesignTable;
use crate::report::saved::Saved;

use super::plan::course;
use super::tree;

/// The content of a page of results.
pub fn content(kind: &str, results: &[&Saved]) -> String {
    // One result is told by its files alone: its page is the same wherever they lie.
    let named = |saved: &&Saved| if results.len() > 1 { json!(saved.name) } else { Value::Null };
    let packed: Vec<String> = results.iter().map(|saved| result(&named(saved), saved)).collect();
    inert(&format!("{{\"kind\":\"{kind}\",\"results\":[{}]}}", packed.join(",")))
}

/// JSON that cannot end the element it stands in.
pub fn inert(json: &str) -> String {
    // Inside JSON, `<` occurs in strings only, where the escape means the same.
    json.replace('<', "\\u003c")
}

fn result(name: &Value, saved: &Saved) -> String {
    let mut outcome = saved.outcome.clone();
    if let Some(winner) = outcome.get_mut("winner") {
        without_plans(winner);
    }
    for list in ["/best_by_hbm", "/baselines"] {
        each(outcome.pointer_mut(list), |item| {
            if let Some(entry) = item.get_mut("entry") {
                without_plans(entry);
            }
        });
    }
    for list in ["/pareto/entries", "/top/entries"] {
        each(outcome.pointer_mut(list), without_plans);
    }
    let (outcome, designs) = (tree::folded(&outcome), designs(&saved.designs));
    format!("{{\"name\":{name},\"outcome\":{outcome},\"designs\":{designs}}}")
}

fn without_plans(entry: &mut Value) {
    each(entry.get_mut("results"), without_plan);
}

/// Leaves out the plan, which is for `phaze check`, but for what the timeline is played from: the
/// page draws the other figures from what stands beside it.
fn without_plan(result: &mut Value) {
    let Some(fields) = result.as_object_mut() else { return };
    let Some(plan) = fields.remove("plan") else { return };
    // A plan that does not hold is drawn as if each of its stages were a rank.
    let held = Plan::deserialize(plan).ok().filter(|plan| check(plan).is_ok());
    if let Some(training) = held.as_ref().and_then(|plan| plan.training.as_ref()) {
        fields.insert("rests_on".into(), basis::words(training.basis.as_ref()).into());
    }
    if let Some(course) = held.and_then(|plan| course(&plan)) {
        fields.insert("course".into(), course);
    }
}

/// Acts on each item of a list that may be missing.
fn each(list: Option<&mut Value>, action: impl FnMut(&mut Value)) {
    list.and_then(Value::as_array_mut).into_iter().flatten().for_each(action);
}

fn designs(table: &DesignTable) -> Value {
    let columns = table.columns.iter().enumerate().map(|(at, found)| {
        // The objective is a result once more, and statuses are often alike at all memory sizes.
        let alike = table.columns[..at].iter().find(|earlier| earlier.cells == found.cells);
        match alike {
            Some(earlier) => json!({"name": found.name, "like": earlier.name}),
            None => column(found),
        }
    });
    json!({"rows": table.n_rows, "columns": columns.collect::<Vec<_>>()})
}

/// One column in the smallest of its forms: the row's own number, codes into a dictionary, all
/// numbers, or the numbers that are there with their rows.
fn column(column: &Column) -> Value {
    let mut packed = Map::new();
    packed.insert("name".into(), column.name.clone().into());
    match (dictionary(&column.cells), &column.cells) {
        (_, Cells::Numbers(cells)) if are_row_numbers(cells) => {
            packed.insert("row_numbers".into(), true.into());
        }
        (Some(found), Cells::Numbers(cells)) if found.size() > Sparsity::of(cells).size() => {
            numbers(cells, &mut packed);
        }
        (Some(found), _) => found.write(&mut packed),
        (None, Cells::Numbers(cells)) => numbers(cells, &mut packed),
        (None, Cells::Words(cells)) => {
            packed.insert("words".into(), cells.clone().into());
        }
    }
    Value::Object(packed)
}

fn are_row_numbers(cells: &[Option<f64>]) -> bool {
    cells.iter().enumerate().all(|(row, &cell)| cell == Some(row as f64))
}

/// The distinct values of a column in order of appearance, and each cell's code.
struct Dictionary {
    values: Vec<Value>,
    codes: Vec<u16>,
}

/// The dictionary of a column, if 65,536 codes are enough.
fn dictionary(cells: &Cells) -> Option<Dictionary> {
    match cells {
        // Bits are compared, not values: all that matters is that equal codes are equal numbers.
        Cells::Numbers(cells) => {
            let (keys, codes) = coded(cells.iter().map(|cell| cell.map(f64::to_bits)))?;
            let value = |bits: Option<u64>| bits.map_or(Value::Null, |b| number(f64::from_bits(b)));
            Some(Dictionary { values: keys.into_iter().map(value).collect(), codes })
        }
        Cells::Words(cells) => {
            let (keys, codes) = coded(cells.iter().map(String::as_str))?;
            Some(Dictionary { values: keys.into_iter().map(Value::from).collect(), codes })
        }
    }
}

/// The distinct keys in order of appearance, and the place of each key among them.
fn coded<K: Ord + Copy>(keys: impl Iterator<Item = K>) -> Option<(Vec<K>, Vec<u16>)> {
    let mut places = BTreeMap::new();
    let mut distinct = Vec::new();
    let mut codes = Vec::new();
    for key in keys {
        let next = distinct.len();
        let code = *places.entry(key).or_insert(next);
        if code == next {
            distinct.push(key);
        }
        codes.push(u16::try_from(code).ok()?);
    }
    Some((distinct, codes))
}

impl Dictionary {
    fn is_small(&self) -> bool {
        self.values.len() <= 256
    }

    /// Bytes before they are written as text; a number is a dozen and a half digits long.
    fn size(&self) -> usize {
        let code = if self.is_small() { 1 } else { 2 };
        code * self.codes.len() + 14 * self.values.len()
    }

    fn write(self, packed: &mut Map<String, Value>) {
        let (name, bytes): (_, Vec<u8>) = if self.is_small() {
            ("codes", self.codes.iter().map(|code| code.to_le_bytes()[0]).collect())
        } else {
            ("wide_codes", self.codes.iter().flat_map(|code| code.to_le_bytes()).collect())
        };
        packed.insert("dictionary".into(), self.values.into());
        packed.insert(name.into(), base64(&bytes).into());
    }
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

/// The rows of a column that hold a number.
struct Sparsity {
    present: Vec<u32>,
    n_rows: usize,
}

impl Sparsity {
    fn of(cells: &[Option<f64>]) -> Self {
        let filled = (0..).zip(cells).filter(|(_, cell)| cell.is_some());
        Self { present: filled.map(|(row, _)| row).collect(), n_rows: cells.len() }
    }

    /// Whether naming the rows, at four bytes beside eight, is cheaper than empty numbers.
    fn is_sparse(&self) -> bool {
        12 * self.present.len() < 8 * self.n_rows
    }

    fn size(&self) -> usize {
        (12 * self.present.len()).min(8 * self.n_rows)
    }
}

fn numbers(cells: &[Option<f64>], packed: &mut Map<String, Value>) {
    let sparsity = Sparsity::of(cells);
    let kept: Vec<f64> = if sparsity.is_sparse() {
        let rows: Vec<u8> = sparsity.present.iter().flat_map(|row| row.to_le_bytes()).collect();
        packed.insert("rows".into(), base64(&rows).into());
        cells.iter().copied().flatten().collect()
    } else {
        cells.iter().map(|cell| cell.unwrap_or(f64::NAN)).collect()
    };
    let bytes: Vec<u8> = kept.into_iter().flat_map(f64::to_le_bytes).collect();
    packed.insert("numbers".into(), base64(&bytes).into());
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
    use crate::report::placement::example;

    #[test]
    fn base64_is_that_of_its_standard() {
        let pairs =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in pairs {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn what_the_timeline_is_played_from_is_taken_from_the_plan() {
        let plan = example(true);
        let mut result = json!({ "stages": [], "plan": plan });
        without_plan(&mut result);
        assert_eq!(result["plan"], Value::Null);
        let course = &result["course"];
        assert_eq!((&course["ranks"], &course["chunks"]), (&json!(2), &json!(2)));
        let step = plan.units.time(plan.answer.ranks[1].after.step.into());
        assert_eq!(course["ends"][1]["step_s"], json!(step));
        let mut broken = json!({ "plan": { "answer": {} } });
        without_plan(&mut broken);
        assert_eq!(broken, json!({}));
    }

    #[test]
    fn numbers_keep_every_digit() {
        let cells = Cells::Numbers((0..600).map(|i| Some(f64::from(i) + 0.1)).collect());
        let packed = column(&Column { name: "value".into(), cells });
        assert_eq!(packed["numbers"].as_str().unwrap().len(), 600 * 8 / 3 * 4);
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
        let cells = Cells::Numbers((0..60).map(|i| [Some(2.0), None, Some(0.5)][i % 3]).collect());
        let packed = column(&Column { name: "width".into(), cells });
        assert_eq!(packed["dictionary"], json!([2, null, 0.5]));
        assert_eq!(packed["codes"], base64(&[0, 1, 2].repeat(20)));
    }

    #[test]
    fn some_hundreds_of_values_become_wide_codes() {
        let cells = Cells::Numbers((0..6000).map(|i| Some(f64::from(i % 300) / 7.0)).collect());
        let packed = column(&Column { name: "bound".into(), cells });
        assert_eq!(packed["dictionary"].as_array().unwrap().len(), 300);
        assert_eq!(packed["wide_codes"].as_str().unwrap().len(), 6000 * 2 / 3 * 4);
    }

    #[test]
    fn columns_that_are_alike_are_carried_once() {
        let cells = Cells::Words(vec!["pruned".into(), "evaluated".into()]);
        let named = |name: &str| Column { name: name.into(), cells: cells.clone() };
        let table = DesignTable { n_rows: 2, columns: vec![named("a"), named("b")] };
        assert_eq!(designs(&table)["columns"][1], json!({"name": "b", "like": "a"}));
    }

    #[test]
    fn the_number_of_a_row_is_not_carried() {
        let cells = Cells::Numbers((0..600).map(|i| Some(f64::from(i))).collect());
        let packed = column(&Column { name: "design".into(), cells });
        assert_eq!(packed, json!({"name": "design", "row_numbers": true}));
    }
}
