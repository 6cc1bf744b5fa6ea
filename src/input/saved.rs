//! The files of a result directory: `outcome.json` and `designs.csv`.

use serde_json::Value;

use super::InputError;
use crate::report::saved::Cells;
use crate::report::saved::Column;
use crate::report::saved::DesignTable;
use crate::search::Outcome;

/// The version of `outcome.json` that this phaze reads.
const VERSION: u32 = Outcome::VERSION;

/// Reads the text of an `outcome.json`.
pub fn outcome(file: &str, text: &str) -> Result<Value, InputError> {
    let value: Value = serde_json::from_str(text).map_err(|error| InputError::Syntax {
        file: file.into(),
        line: Some(error.line()),
        message: error.to_string(),
    })?;
    let wrong = |field: &str, problem: &str, allowed: String| InputError::Value {
        file: file.into(),
        field: field.into(),
        found: shortened(&value[field]),
        problem: problem.into(),
        allowed,
    };
    if value["schema"] != "phaze-outcome" {
        let allowed = "give the outcome.json that `phaze search` wrote".into();
        return Err(wrong("schema", "is not that of a search result", allowed));
    }
    if value["version"] != VERSION {
        let allowed = format!("this phaze reads version {VERSION}; search again with it");
        return Err(wrong("version", "is another version of the format", allowed));
    }
    shapes(file, &value)?;
    Ok(value)
}

/// Checks that what a picture walks through is what it takes it for.
fn shapes(file: &str, outcome: &Value) -> Result<(), InputError> {
    let winner = &outcome["winner"];
    let mut entries = vec![("winner".to_owned(), winner)];
    for list in ["best_by_hbm", "baselines"] {
        let items = list_of(file, list, &outcome[list])?;
        entries.extend(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| (format!("{list}[{i}].entry"), &item["entry"])),
        );
    }
    for list in ["pareto", "top"] {
        let items = list_of(file, &format!("{list}.entries"), &outcome[list]["entries"])?;
        entries.extend(
            items.iter().enumerate().map(|(i, entry)| (format!("{list}.entries[{i}]"), entry)),
        );
    }
    for (field, entry) in entries {
        let whole = entry["design"].is_object()
            && entry["results"]
                .as_array()
                .is_some_and(|results| results.iter().all(Value::is_object));
        if !entry.is_null() && !whole {
            return Err(InputError::Value {
                file: file.into(),
                field,
                found: shortened(entry),
                problem: "is not an entry".into(),
                allowed: "an entry has a `design` and a list of `results`".into(),
            });
        }
    }
    Ok(())
}

fn list_of<'a>(file: &str, field: &str, value: &'a Value) -> Result<&'a [Value], InputError> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(InputError::Value {
            file: file.into(),
            field: field.into(),
            found: shortened(other),
            problem: "is not a list".into(),
            allowed: "it holds a list of entries".into(),
        }),
    }
}

/// A value as written, cut to a line.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['…']).collect() }
}

/// Reads the text of a `designs.csv`.
pub fn designs(file: &str, text: &str) -> Result<DesignTable, InputError> {
    let mut lines = records(file, text)?.into_iter();
    let Some((_, names)) = lines.next() else {
        let expected = "it holds a heading and a row per design".into();
        return Err(InputError::Missing { file: file.into(), field: "heading".into(), expected });
    };
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    let mut n_rows = 0;
    for (line, cells) in lines {
        if cells.len() != names.len() {
            return Err(InputError::Syntax {
                file: file.into(),
                line: Some(line),
                message: format!("has {} cells where the heading has {}", cells.len(), names.len()),
            });
        }
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        n_rows += 1;
    }
    let columns = names.into_iter().zip(columns);
    let columns = columns.map(|(name, cells)| Column { name, cells: typed(cells) }).collect();
    Ok(DesignTable { n_rows, columns })
}

/// The cells of a `designs.csv` as they are written, the heading first.
pub fn cells(file: &str, text: &str) -> Result<Vec<Vec<String>>, InputError> {
    Ok(records(file, text)?.into_iter().map(|(_, cells)| cells).collect())
}

/// The same of a long table, row after row, the heading too.
///
/// # Errors
/// That it is no table.
pub fn each_row(
    file: &str,
    text: &str,
    mut tell: impl FnMut(Vec<String>),
) -> Result<(), InputError> {
    each_record(file, text, |_, cells| tell(cells))
}

/// Checks that a table is the whole table of an outcome: one cut between two rows reads like a
/// smaller one. Where not every design has a row, as many have one as were evaluated with any size of memory.
pub fn belong(file: &str, outcome: &Value, designs: &DesignTable) -> Result<(), InputError> {
    let said = |key: &str| outcome["request"][key].as_bool() == Some(true);
    if !["table", "exhaustive", "pareto"].into_iter().any(said) {
        let sizes = outcome["proof"]["by_hbm"].as_array().into_iter().flatten();
        let evaluated = sizes.filter_map(|row| row["evaluated"].as_u64()).max().unwrap_or(0);
        if evaluated <= designs.n_rows as u64 {
            return Ok(());
        }
        return Err(InputError::Value {
            file: file.into(),
            field: "rows".into(),
            found: designs.n_rows.to_string(),
            problem: "is less than the number of evaluated designs in outcome.json".into(),
            allowed: format!("it holds at least the {evaluated} rows that `phaze search` wrote"),
        });
    }
    match outcome["proof"]["designs"].as_u64() {
        Some(n) if n != designs.n_rows as u64 => Err(InputError::Value {
            file: file.into(),
            field: "rows".into(),
            found: designs.n_rows.to_string(),
            problem: "is not the number of designs in outcome.json".into(),
            allowed: format!("it holds the {n} rows that `phaze search` wrote"),
        }),
        _ => Ok(()),
    }
}

/// Numbers where every cell is one or empty.
fn typed(cells: Vec<String>) -> Cells {
    let number = |cell: &String| match cell.parse::<f64>() {
        _ if cell.is_empty() => Some(None),
        Ok(value) if value.is_finite() => Some(Some(value)),
        _ => None,
    };
    match cells.iter().map(number).collect() {
        Some(numbers) => Cells::Numbers(numbers),
        None => Cells::Words(cells),
    }
}

/// The records of a CSV text with the line on which each starts; quoted cells may hold anything.
pub(super) fn records(file: &str, text: &str) -> Result<Vec<(usize, Vec<String>)>, InputError> {
    let mut records = Vec::new();
    each_record(file, text, |line, cells| records.push((line, cells)))?;
    Ok(records)
}

/// Tells every record, one after the other: of a long table nothing is held but what `tell` keeps.
fn each_record(
    file: &str,
    text: &str,
    mut tell: impl FnMut(usize, Vec<String>),
) -> Result<(), InputError> {
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let first = line;
        let mut cells = Vec::new();
        loop {
            let (cell, after) = match rest.strip_prefix('"').map(unquoted) {
                Some(Some(quoted)) => quoted,
                Some(None) => {
                    let message = "has a quote that is not closed before a comma or the line's end";
                    let (file, message) = (file.into(), message.into());
                    return Err(InputError::Syntax { file, line: Some(first), message });
                }
                None => {
                    let end = rest.find([',', '\n']).unwrap_or(rest.len());
                    (rest[..end].trim_end_matches('\r').to_owned(), &rest[end..])
                }
            };
            line += cell.matches('\n').count();
            cells.push(cell);
            rest = after.strip_prefix(',').unwrap_or(after);
            if rest.len() == after.len() {
                break;
            }
        }
        rest = rest.trim_start_matches('\r');
        rest = rest.strip_prefix('\n').unwrap_or(rest);
        line += 1;
        tell(first, cells);
    }
    Ok(())
}

/// A quoted cell after its opening quote, and what follows its closing one.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        cell.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                rest = more;
            }
            None if after.is_empty() || after.starts_with([',', '\n', '\r']) => {
                return Some((cell, after));
            }
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_that_lost_rows_is_refused() {
        let table = designs("d.csv", "design\n0\n1\n").unwrap();
        for listing in ["table", "exhaustive", "pareto"] {
            let outcome =
                |n: u64| serde_json::json!({"request": {listing: true}, "proof": {"designs": n}});
            assert!(belong("d.csv", &outcome(2), &table).is_ok());
            let message = belong("d.csv", &outcome(3), &table).unwrap_err().to_string();
            assert!(message.contains("`rows = 2` is not the number of designs"), "{message}");
        }
        assert!(belong("d.csv", &Value::Null, &table).is_ok());
    }

    #[test]
    fn a_table_without_a_row_for_every_design_has_those_that_were_evaluated() {
        let table = designs("d.csv", "design\n0\n1\n").unwrap();
        let outcome = |n: u64| serde_json::json!({"proof": {"designs": 9, "by_hbm": [{"evaluated": 1}, {"evaluated": n}]}});
        assert!(belong("d.csv", &outcome(2), &table).is_ok());
        let message = belong("d.csv", &outcome(3), &table).unwrap_err().to_string();
        assert!(message.contains("`rows = 2` is less than the number of evaluated"), "{message}");
    }

    #[test]
    fn columns_of_numbers_are_told_from_words() {
        let table = designs("d.csv", "design,status,value\n0,pruned,\n1,evaluated,2.5\n").unwrap();
        assert_eq!(table.n_rows, 2);
        assert_eq!(table.numbers("value"), Some(&[None, Some(2.5)][..]));
        assert_eq!(table.words("status").unwrap(), ["pruned", "evaluated"]);
    }

    #[test]
    fn a_quoted_heading_may_hold_a_comma() {
        let table = designs("d.csv", "design,\"value:a,\"\"b\"\"\"\r\n0,1\r\n").unwrap();
        assert_eq!(table.columns[1].name, "value:a,\"b\"");
        assert_eq!(table.numbers("value:a,\"b\""), Some(&[Some(1.0)][..]));
    }

    #[test]
    fn a_short_row_is_named_by_its_line() {
        let error = designs("d.csv", "a,b\n1,2\n3\n").unwrap_err();
        assert_eq!(error.to_string(), "d.csv: line 3: has 1 cells where the heading has 2");
    }

    #[test]
    fn another_file_or_version_is_refused() {
        let refused = |text: &str| outcome("o.json", text).unwrap_err().to_string();
        assert!(refused("{").contains("line 1"));
        assert!(refused("{}").contains("`schema = null` is not that of a search result"));
        assert!(refused(r#"{"schema": "phaze-outcome", "version": 1}"#).contains("reads version"));
        let text = serde_json::json!({"schema": "phaze-outcome", "version": VERSION, "top": {"entries": [3]}});
        assert!(refused(&text.to_string()).contains("`top.entries[0] = 3` is not an entry"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_panic(text in "[0-9a,\"\r\n]{0,40}") {
            let _ = designs("d.csv", &text);
            let _ = outcome("o.json", &text);
        }
    }
}
