//! The answer of a search over chips as one HTML page that needs nothing else.
//!
//! The page is drawn here and runs no script; what users named stands in it as text only. Chips whose value
//! is known come first, closed boxes stand folded at the end. Each objective has its own axis and unit:
//! two answers are set on one axis only where they were asked for the same.

mod compared;
mod curves;
mod die;
mod front;
mod headline;
mod known;
mod parts;
mod tables;

use std::io;
use std::io::Write;

use crate::search::chips::ChipEntry;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipSetup;
use crate::search::chips::Part;

use super::boxes_csv::OBJECTIVE;
use super::boxes_csv::OPEN;
use super::html::escaped;
use super::quantity::grouped;
use super::quantity::sentence;
use super::quantity::shown;
use super::quantity::span;

use parts::bar;
use parts::keys;

pub use compared::write as write_comparison;

/// A saved answer over chips, with the question that it answers.
pub struct SavedChips<'a> {
    /// What the user calls it: the directory.
    pub name: String,
    /// What was asked.
    pub setup: &'a ChipSetup,
    /// The answer.
    pub outcome: &'a ChipOutcome,
    /// What is shown of its boxes.csv.
    pub boxes: &'a ShownBoxes,
}

/// What pages need of a boxes.csv, which may have millions of rows.
#[derive(Clone, Debug, Default)]
pub struct ShownBoxes {
    /// How many boxes prove the best by the objective.
    closed: u64,
    /// How many of these were not looked into.
    open: u64,
    /// The cells of the first of these.
    first: Vec<Vec<String>>,
    /// The cells of all rows of evaluated chips.
    evaluated: Vec<Vec<String>>,
}

impl ShownBoxes {
    /// Takes up the cells of the next row; that of the heading tells nothing.
    pub fn take_up(&mut self, row: Vec<String>) {
        if row.get(1).is_some_and(|why| why == "evaluated") {
            self.evaluated.push(row.clone());
        }
        if row.first().is_some_and(|proves| proves == OBJECTIVE) {
            if row.get(1).is_some_and(|why| why == OPEN) {
                self.open += 1;
            } else {
                self.closed += 1;
            }
            if self.first.len() < tables::MOST_ROWS {
                self.first.push(row);
            }
        }
    }
}

const STYLE: &str = include_str!("style.css");

/// Writes the page of one answer.
pub fn write(saved: &SavedChips, out: &mut dyn Write) -> io::Result<()> {
    let outcome = saved.outcome;
    open(&models(outcome), out)?;
    let Some(winner) = &outcome.winner else {
        let reason = outcome.infeasible_reason.as_deref().unwrap_or("nothing fits");
        writeln!(out, "<h1>No chip of the space can train this</h1>\n<p>{}</p>", text(reason))?;
        tables::proof(saved, out)?;
        return close(out);
    };
    headline::section(outcome, winner, out)?;
    writeln!(out, "<section id=\"budget\"><h2>Where silicon, watts and dollars go</h2>")?;
    writeln!(out, "{}</section>", die::bars(outcome, &winner.chip))?;
    time(winner, out)?;
    why(outcome, out)?;
    tables::baselines(outcome, out)?;
    let known = known::known(saved);
    curves::section(saved, &known, out)?;
    front::section(saved, out)?;
    tables::near(outcome, out)?;
    tables::objectives(outcome, out)?;
    tables::robust(outcome, out)?;
    tables::evaluated(saved, &known, out)?;
    tables::proof(saved, out)?;
    close(out)
}

/// The head of a page.
fn open(title: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>phaze: {}</title>\n<style>{STYLE}</style>\n<main>",
        text(title)
    )
}

fn close(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</main>\n</html>")
}

/// The names of all models.
fn models(outcome: &ChipOutcome) -> String {
    let names = outcome.models.iter();
    let names: Vec<String> = names
        .map(|model| format!("{} at {} tokens", model.name, grouped(model.sequence)))
        .collect();
    names.join(", ")
}

/// Where the time of a batch goes, for each model.
fn time(winner: &ChipEntry, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<section id=\"time\"><h2>Where the time of a batch goes</h2><div class=\"side\">"
    )?;
    for result in &winner.results {
        let whole = result.breakdown_s.total().max(f64::MIN_POSITIVE);
        let each = result
            .breakdown_s
            .parts()
            .into_iter()
            .map(|(what, seconds)| Part { what: what.into(), amount: seconds / whole * 100.0 });
        let parts: Vec<Part> = each.filter(|part| part.amount >= 0.05).collect();
        writeln!(
            out,
            "<figure><figcaption>{}: {} per batch</figcaption>{}{}</figure>",
            text(&result.model),
            span(result.time_per_batch_s),
            bar(&parts, 100.0, None, "%"),
            keys(&parts, "%")
        )?;
    }
    writeln!(out, "</div></section>")
}

fn why(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<section id=\"why\"><h2>{}</h2>",
        if outcome.proof.settles_the_winner() { "Why it wins" } else { "Why it leads" }
    )?;
    if let Some(why) = &outcome.why_it_wins {
        writeln!(out, "<p>{}</p>", text(&sentence(why)))?;
    }
    writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><table><tr><th>more of</th><th>next value</th>"
    )?;
    writeln!(out, "<th>is refused by</th></tr>")?;
    for bind in &outcome.binds {
        let next = bind.next.map_or("–".to_owned(), grouped);
        let by = match bind.by.as_str() {
            "nothing" if outcome.request.power_cap_w.is_some() => {
                "nothing: it is no better under the cap of power"
            }
            "nothing" => "nothing: it is no better",
            "unknown" => "nothing: the search was stopped before it was known what it is worth",
            by => by,
        };
        writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{next}</td><td>{}</td></tr>",
            text(&bind.knob),
            text(by)
        )?;
    }
    writeln!(out, "</table></div></section>")
}

/// Text as the page shows it.
fn text(said: &str) -> String {
    escaped(&shown(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        let mut page = Vec::new();
        open("<script>alert(1)</script>\u{1b}", &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
        assert!(
            page.contains("default-src 'none'")
                && !page.contains("http:")
                && !page.contains("https")
        );
    }
}
