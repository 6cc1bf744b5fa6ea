//! Which field of a JSON text a parser complains about: parsers tell a line and a column.

/// What was opened and not yet closed.
enum Open {
    /// The key whose value is read, once it is known, and whether its colon was seen.
    Object { key: String, has_colon: bool },
    /// The place of the entry that is read.
    Array(usize),
}

/// The field that stands at so many bytes of a line of a text, as `kinds[1].name`; empty at the top.
pub fn field_at(text: &str, line: usize, column: usize) -> String {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let bytes = text.as_bytes();
    let read = &bytes[..before.saturating_add(column).min(bytes.len())];
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < read.len() {
        match read[at] {
            b'"' => {
                let end = end_of_string(read, at);
                if let Some(Open::Object { key, has_colon: false }) = open.last_mut() {
                    *key = String::from_utf8_lossy(&read[at + 1..end.max(at + 1)]).into_owned();
                }
                at = end;
            }
            b'{' => open.push(Open::Object { key: String::new(), has_colon: false }),
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b':' => {
                if let Some(Open::Object { has_colon, .. }) = open.last_mut() {
                    *has_colon = true;
                }
            }
            b',' => match open.last_mut() {
                Some(Open::Object { key, has_colon }) => {
                    key.clear();
                    *has_colon = false;
                }
                Some(Open::Array(place)) => *place += 1,
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    path(&open)
}

/// Where the string that starts at a quote ends: at its other quote, or with the text.
fn end_of_string(read: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < read.len() && read[at] != b'"' {
        at += if read[at] == b'\\' { 2 } else { 1 };
    }
    at.min(read.len())
}

fn path(open: &[Open]) -> String {
    let mut path = String::new();
    for each in open {
        match each {
            Open::Object { key, .. } if key.is_empty() => {}
            Open::Object { key, .. } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&super::source::printable(key));
            }
            Open::Array(place) => path.extend(["[", &place.to_string(), "]"]),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_a_complaint_is_named() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(rename = "kinds")]
            _kinds: Vec<Kind>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Kind {
            #[serde(rename = "name")]
            _name: String,
            #[serde(rename = "sizes")]
            _sizes: Vec<u64>,
        }
        for (text, field) in [
            (
                r#"{"kinds": [{"name": "a", "sizes": []}, {"name": 3, "sizes": []}]}"#,
                "kinds[1].name",
            ),
            (
                "{\"kinds\": [\n{\"name\": \"a, \\\"[\", \"sizes\": [1, 2, \"x\"]}]}",
                "kinds[0].sizes[2]",
            ),
            (r#"{"kinds": [{"name": "a"}]}"#, "kinds[0]"),
            (r#"{"kinds": [{"nam": "a"}]}"#, "kinds[0].nam"),
            (r#"{"kinds": {"name": "a"}}"#, "kinds"),
            (r#"{"kinds": [{"name": "a", "#, "kinds[0]"),
            ("3", ""),
        ] {
            let error = serde_json::from_str::<File>(text).unwrap_err();
            assert_eq!(field_at(text, error.line(), error.column()), field, "{text}: {error}");
        }
        for (line, column) in [(0, 0), (1, 1 << 40), (usize::MAX, usize::MAX)] {
            assert_eq!(field_at("\"\\", line, column), "");
        }
    }
}
