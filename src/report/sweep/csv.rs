//! A sweep as CSV: one row for each search.

use std::collections::BTreeSet;
use std::io;
use std::io::Write;

use serde_json::Value;

use super::FIGURES;
use super::SweepRow;
use super::SweepTable;

/// Writes the table: the keys that vary, how the search ended, the figures of each model, and the knobs
/// of the winner.
pub fn write(table: &SweepTable, out: &mut dyn Write) -> io::Result<()> {
    let n_models = table.rows.iter().map(|row| row.results().len()).max().unwrap_or(0).max(1);
    let knobs: BTreeSet<&str> = table.rows.iter().flat_map(knobs).map(|(key, _)| key).collect();
    let suffix =
        |model: usize| if n_models > 1 { format!(":{}", model + 1) } else { String::new() };
    let mut heading = table.keys.clone();
    heading.extend(["folder", "status", "value"].map(str::to_owned));
    for model in 0..n_models {
        let keys = FIGURES.iter().map(|(key, _)| *key).chain(["strategy", "trained"]);
        heading.extend(keys.map(|key| format!("{key}{}", suffix(model))));
    }
    heading.extend(knobs.iter().map(|knob| format!("design.{knob}")));
    heading.push("reason".into());
    line(&heading, out)?;
    for row in &table.rows {
        let mut cells = row.values.clone();
        cells.extend([row.folder.clone(), row.status().to_owned()]);
        cells.push(shown(&row.outcome["winner"]["value"]));
        for model in 0..n_models {
            let figures = FIGURES.iter().map(|(key, _)| row.figure(model, key));
            cells.extend(figures.map(|figure| figure.map(|f| f.to_string()).unwrap_or_default()));
            let result = row.results().get(model);
            cells.push(
                result.map(|found| shown(&found["strategy"]["sentence"])).unwrap_or_default(),
            );
            cells.push(result.map(|found| shown(&found["model"])).unwrap_or_default());
        }
        let design = &row.outcome["winner"]["design"];
        cells.extend(knobs.iter().map(|&knob| shown(&design[knob])));
        cells.push(shown(&row.outcome["infeasible_reason"]));
        line(&cells, out)?;
    }
    Ok(())
}

/// What a winner's design says in one word or number each.
fn knobs(row: &SweepRow) -> impl Iterator<Item = (&str, &Value)> {
    let design = row.outcome["winner"]["design"].as_object();
    let keys = design.into_iter().flatten();
    keys.map(|(key, value)| (key.as_str(), value))
        .filter(|(_, value)| value.is_number() || value.is_string() || value.is_boolean())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line(cells: &[String], out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    writeln!(out, "{}", cells.join(","))
}

/// A cell, in quotes where a comma, a quote or a line break asks for it.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    #[test]
    fn a_row_has_what_was_asked_what_was_found_and_why_nothing_was() {
        let mut bytes = Vec::new();
        write(&table(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 7);
        assert_eq!(
            lines[0],
            "model,job.devices,folder,status,value,tokens_per_s,throughput_sequences_per_s,\
             time_per_batch_s,mfu,energy_per_token_j,average_power_w,devices_used,strategy,trained,\
             design.area_um2,design.width,reason"
        );
        assert_eq!(
            lines[1],
            "small,8,small-8,proved,125.0,1000,,,0.5,,,8,\"8 pipelines, \"\"ZeRO\"\" 1\",small,\
             400000000.0,128,"
        );
        assert!(lines[4].starts_with("<large>,8,<large>-8,infeasible,,"), "{}", lines[4]);
        assert!(lines[4].ends_with(",it needs at least 16 devices"), "{}", lines[4]);
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_heading() {
        let mut two = table();
        let results = two.rows[0].outcome["winner"]["results"].as_array_mut().unwrap();
        results.push(serde_json::json!({"model": "other", "tokens_per_s": 3.0}));
        let mut bytes = Vec::new();
        write(&two, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap().replace("8 pipelines, ", "");
        let counts: Vec<usize> = text.lines().map(|line| line.matches(',').count()).collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{text}");
        assert!(text.lines().next().unwrap().contains("tokens_per_s:2"));
    }
}
