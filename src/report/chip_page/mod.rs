//! The answer of a search over chips as one HTML page that needs nothing else.
//!
//! The page is drawn here and runs no script; what users named stands in it as text only. Chips whose value
//! is known come first, closed boxes stand folded at the end. Each objective has its own axis and unit:
//! two answers are set on one axis only where they were asked for the same.

mod compared;
mod curves;
mod die;
mod front;
mod known;
mod tables;

use std::io;
use std::io::Write;

use crate::search::chips::ChipEntry;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipSetup;

use super::boxes_csv::OBJECTIVE;
use super::chips::chip_line;
use super::html::escaped;
use super::outcome::value;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::sentence;
use super::quantity::shown;
use super::quantity::si;

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
    own: u64,
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
            self.own += 1;
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
    headline(outcome, winner, out)?;
    writeln!(out, "<section id=\"die\"><h2>The die, its memory and its links, to scale</h2>")?;
    writeln!(out, "{}</section>", die::picture(&winner.chip))?;
    writeln!(out, "<section id=\"budget\"><h2>Where silicon, watts and dollars go</h2>")?;
    writeln!(out, "{}</section>", die::bars(outcome, &winner.chip))?;
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

fn headline(outcome: &ChipOutcome, winner: &ChipEntry, out: &mut dyn Write) -> io::Result<()> {
    let request = &outcome.request;
    let space = &request.space;
    writeln!(
        out,
        "<p class=\"eyebrow\">{} on {} chips, batches of {}; {} chips of {} nm with {} to choose from, at \
         most {:.0} mm² and {:.0} W</p>",
        text(&models(outcome)),
        grouped(request.devices),
        grouped(request.global_batch),
        grouped(outcome.proof.points),
        space.process_nm,
        text(&space.memory),
        space.max_area_nm2 as f64 / 1e12,
        space.tdp_mw as f64 / 1e3,
    )?;
    writeln!(out, "<h1>{}</h1>", text(&chip_line(&winner.chip)))?;
    let proved = if outcome.proof.complete { "proved to be the best" } else { "the best so far" };
    let worth = value(request.objective, outcome.models.len(), winner.value);
    writeln!(out, "<p class=\"lead\">{} by the objective, {proved}.</p>", text(&worth))?;
    writeln!(out, "<div class=\"scroll\"><table id=\"plans\"><tr><th>model</th><th>plan</th>")?;
    writeln!(out, "<th>tokens/s</th><th>MFU</th><th>J/token</th></tr>")?;
    for result in &winner.results {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            text(&result.model),
            text(&result.strategy.sentence),
            text(&si(result.tokens_per_s, "")),
            percent(result.mfu),
            text(&si(result.energy_per_token_j, "J"))
        )?;
    }
    writeln!(out, "</table></div>")
}

fn why(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"why\"><h2>Why it wins</h2>")?;
    if let Some(why) = &outcome.why_it_wins {
        writeln!(out, "<p>{}</p>", text(&sentence(why)))?;
    }
    writeln!(out, "<div class=\"scroll\"><table><tr><th>more of</th><th>next value</th>")?;
    writeln!(out, "<th>is refused by</th></tr>")?;
    for bind in &outcome.binds {
        let next = bind.next.map_or("–".to_owned(), grouped);
        let by = if bind.by == "nothing" { "nothing: it is no better" } else { &bind.by };
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
