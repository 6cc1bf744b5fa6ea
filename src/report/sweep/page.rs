//! A sweep as one page of curves.
//!
//! The page is drawn here and runs no script; what users named stands in it as text only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::io::Write;

use super::FIGURES;
use super::SweepRow;
use super::SweepTable;
use super::curve::Along;
use super::curve::Curve;
use super::curve::picture;
use super::curve::stroke;
use crate::report::html::escaped;
use crate::report::quantity::plain;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;\
padding:0 1rem;color:#1b1f24;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}\
figure{display:inline-block;margin:0 .5rem 1rem 0}figcaption{font-weight:600}.key{list-style:none;padding:0;\
display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}.key svg{vertical-align:middle;margin-right:.4rem}\
table{border-collapse:collapse;font-size:.85rem;width:100%}th,td{padding:.25rem .5rem;text-align:left;\
border-bottom:1px solid #d8dee4}.scroll{overflow-x:auto}svg{max-width:100%;height:auto}\
svg text{font:12px system-ui,sans-serif;fill:#424a53}.grid{stroke:#d8dee4}\
@media(prefers-color-scheme:dark){body{background:#14171a;color:#e6e8ea}th,td{border-color:#3a4048}\
svg text{fill:#b7bfc8}.grid{stroke:#3a4048}}";

/// Figures that are drawn.
const DRAWN: [&str; 4] = ["tokens_per_s", "mfu", "energy_per_token_j", "devices_used"];

/// The most curves of a section: more cannot be told apart.
const MOST_CURVES: usize = 16;

/// Writes the page: for every key with several values a section of curves, and the table.
pub fn write(name: &str, table: &SweepTable, out: &mut dyn Write) -> io::Result<()> {
    let name = escaped(name);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>phaze: {name}</title>\n<style>{STYLE}</style>\n<main>\n<h1>{name}</h1>\n\
         <p>{} searches; each figure is that of the best design, found by a search of its own. sweep.csv \
         beside this page has all of them.</p>",
        table.rows.len()
    )?;
    for key in 0..table.keys.len() {
        section(table, key, out)?;
    }
    rows(table, out)?;
    writeln!(out, "</main>\n</html>")
}

/// Curves over one key, one for each combination of the others.
fn section(table: &SweepTable, key: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut values: Vec<String> = Vec::new();
    for row in &table.rows {
        if !values.contains(&row.values[key]) {
            values.push(row.values[key].clone());
        }
    }
    if values.len() < 2 {
        return Ok(());
    }
    let groups = groups(table, key);
    let n_models = table.rows.iter().map(|row| row.results().len()).max().unwrap_or(0);
    writeln!(out, "<section>\n<h2>Over {}</h2>", escaped(&table.keys[key]))?;
    let told = groups.len().min(MOST_CURVES);
    legend(&groups[..told], out)?;
    if told < groups.len() {
        writeln!(out, "<p>The first {told} of {} combinations are drawn.</p>", groups.len())?;
    }
    let along = Along::new(&values);
    for (figure, called) in FIGURES.iter().filter(|(figure, _)| DRAWN.contains(figure)) {
        for model in 0..n_models {
            let curves: Vec<Curve> = groups[..told]
                .iter()
                .enumerate()
                .map(|(number, (_, rows))| {
                    let figures = values.iter().map(|value| {
                        let row = rows.iter().find(|row| row.values[key] == *value)?;
                        row.figure(model, figure)
                    });
                    (number, figures.collect())
                })
                .collect();
            let of = if n_models > 1 { format!(" of model {}", model + 1) } else { String::new() };
            let drawn = picture(&format!("{called}{of}"), &along, &curves);
            writeln!(out, "<figure><figcaption>{called}{of}</figcaption>{drawn}</figure>")?;
        }
    }
    writeln!(out, "</section>")
}

/// Rows by what they say of all keys but one, in the order of the sweep.
fn groups(table: &SweepTable, key: usize) -> Vec<(String, Vec<&SweepRow>)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<(String, Vec<&SweepRow>)> = Vec::new();
    for row in &table.rows {
        let others = table.keys.iter().zip(&row.values).enumerate().filter(|(at, _)| *at != key);
        let said: Vec<String> =
            others.map(|(_, (name, value))| format!("{name} {value}")).collect();
        let said = if said.is_empty() { "the best design".into() } else { said.join(", ") };
        let place = *places.entry(said.clone()).or_insert_with(|| {
            groups.push((said, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(row);
    }
    groups
}

fn legend(groups: &[(String, Vec<&SweepRow>)], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<ul class=\"key\">")?;
    for (number, (said, _)) in groups.iter().enumerate() {
        let (colour, dashed) = stroke(number);
        let dash = if dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        writeln!(
            out,
            "<li><svg width=\"24\" height=\"8\" aria-hidden=\"true\"><line x1=\"0\" x2=\"24\" y1=\"4\" \
             y2=\"4\" stroke=\"{colour}\" stroke-width=\"3\"{dash}/></svg>{}</li>",
            escaped(said)
        )?;
    }
    writeln!(out, "</ul>")
}

fn rows(table: &SweepTable, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section>\n<h2>All searches</h2>\n<div class=\"scroll\"><table>")?;
    let mut heading = String::from("<tr>");
    let keys = table.keys.iter().map(String::as_str);
    for name in keys.chain(["ended", "tokens per second", "MFU", "joules per token", "strategy"]) {
        let _ = write!(heading, "<th scope=\"col\">{}</th>", escaped(name));
    }
    writeln!(out, "{heading}</tr>")?;
    for row in &table.rows {
        let mut cells = row.values.clone();
        cells.push(row.status().into());
        let figure = |key: &str| row.figure(0, key).map(plain).unwrap_or_default();
        cells.extend(["tokens_per_s", "mfu", "energy_per_token_j"].map(figure));
        let said = match row.results().first() {
            Some(result) => &result["strategy"]["sentence"],
            None => &row.outcome["infeasible_reason"],
        };
        cells.push(said.as_str().unwrap_or_default().into());
        let mut line = String::new();
        for cell in &cells {
            let _ = write!(line, "<td>{}</td>", escaped(cell));
        }
        writeln!(out, "<tr>{line}</tr>")?;
    }
    writeln!(out, "</table></div>\n</section>")
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    #[test]
    fn a_page_has_curves_over_every_key_that_varies_and_runs_nothing() {
        let mut bytes = Vec::new();
        write("a <sweep>", &table(), &mut bytes).unwrap();
        let page = String::from_utf8(bytes).unwrap();
        assert!(page.contains("<h1>a &lt;sweep&gt;</h1>"));
        assert_eq!(page.matches("<h2>Over ").count(), 2);
        // Two curves of each of four figures over devices; models are no numbers and have dots alone.
        assert_eq!(page.matches("<polyline").count(), 8);
        assert!(!page.contains("<script") && !page.contains("<large>"));
        assert!(page.contains("it needs at least 16 devices"));
    }
}
