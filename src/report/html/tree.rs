//! JSON in which equal parts are carried once.
//!
//! A result repeats itself: designs of a front differ in a knob and share most of their schedules,
//! stages of a pipeline are alike, and every operator has the same keys. Here each distinct list or
//! object is one part, a row of its values behind the number of its shape (its keys; shape 0 is a
//! list), and stands elsewhere as its number in a list of one. Parts follow what they are made of.

use std::collections::BTreeMap;

use serde_json::Value;

/// The value as the text of `{shapes, parts, root}`; `decode.js` makes it whole again.
pub fn folded(value: &Value) -> String {
    let mut tree = Tree::default();
    tree.shapes.number("null".into());
    let root = tree.fold(value);
    let [shapes, parts] = [tree.shapes, tree.parts].map(|numbered| numbered.texts.join(","));
    format!("{{\"shapes\":[{shapes}],\"parts\":[{parts}],\"root\":{root}}}")
}

#[derive(Default)]
struct Tree {
    shapes: Numbered,
    parts: Numbered,
}

impl Tree {
    /// The text of a value where it stands in a row.
    fn fold(&mut self, value: &Value) -> String {
        let (shape, values): (usize, Vec<&Value>) = match value {
            Value::Array(items) => (0, items.iter().collect()),
            Value::Object(fields) => {
                let keys: Vec<&String> = fields.keys().collect();
                let keys = serde_json::to_string(&keys).expect("keys are text");
                (self.shapes.number(keys), fields.values().collect())
            }
            scalar => return scalar.to_string(),
        };
        let mut row = format!("[{shape}");
        for value in values {
            row.push(',');
            row.push_str(&self.fold(value));
        }
        row.push(']');
        format!("[{}]", self.parts.number(row))
    }
}

/// Distinct texts by the order in which they first came.
#[derive(Default)]
struct Numbered {
    places: BTreeMap<String, usize>,
    texts: Vec<String>,
}

impl Numbered {
    fn number(&mut self, text: String) -> usize {
        if let Some(&number) = self.places.get(&text) {
            return number;
        }
        let number = self.texts.len();
        self.texts.push(text.clone());
        self.places.insert(text, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(value: &Value) -> Value {
        serde_json::from_str(&folded(value)).unwrap()
    }

    /// The slow obvious inverse.
    fn whole(tree: &Value, value: &Value) -> Value {
        let Some([part]) = value.as_array().map(Vec::as_slice) else { return value.clone() };
        let row = tree.pointer(&format!("/parts/{part}")).unwrap().as_array().unwrap();
        let cells = row[1..].iter().map(|cell| whole(tree, cell));
        match &tree.pointer(&format!("/shapes/{}", row[0])).unwrap() {
            Value::Array(keys) => {
                let keys = keys.iter().map(|key| key.as_str().unwrap().to_owned());
                Value::Object(keys.zip(cells).collect())
            }
            _ => Value::Array(cells.collect()),
        }
    }

    #[test]
    fn a_folded_value_can_be_made_whole() {
        let values = [
            json!(null),
            json!([]),
            json!({}),
            json!([[0], [1], [[2]], {}]),
            json!({"a": [1, 2.5, "x", true, null], "b": {"a": {"a": []}}, "": -1e-12}),
        ];
        for value in values {
            let tree = parsed(&value);
            assert_eq!(whole(&tree, &tree["root"]), value);
        }
    }

    #[test]
    fn equal_parts_are_carried_once() {
        let tree = parsed(&json!([{"x": [1], "y": 2}, {"x": [1], "y": 3}, {"x": [1], "y": 2}]));
        assert_eq!(tree["shapes"], json!([null, ["x", "y"]]));
        assert_eq!(tree["parts"], json!([[0, 1], [1, [0], 2], [1, [0], 3], [0, [1], [2], [1]]]));
        assert_eq!(tree["root"], json!([3]));
    }
}
