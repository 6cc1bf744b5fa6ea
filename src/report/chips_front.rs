//! The front of chips on a terminal.

use std::io;
use std::io::Write;

use super::chips::chip_line;
use super::quantity::grouped;
use super::quantity::sentence;
use super::quantity::si;
use super::quantity::wrapped;
use crate::search::chips::FrontEntry;
use crate::search::chips::FrontOutcome;

/// Points of a front that a terminal shows; outcome.json and the page hold all of them.
const MOST_ROWS: usize = 24;

/// The front, thinned where it is long.
pub fn text(front: &FrontOutcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "The front over tokens per second, dollars to own a chip and watts by design")?;
    let points = front.points.len();
    let shown = points.min(MOST_ROWS);
    for row in 0..shown {
        // From the first to the last, evenly.
        let at = if shown > 1 { row * (points - 1) / (shown - 1) } else { 0 };
        let one = &front.points[at];
        let figures = figures(one);
        writeln!(
            out,
            "  {:<18}{:>10}{:>9}  {}",
            figures[0],
            figures[1],
            figures[2],
            chip_line(&one.entry.chip)
        )?;
    }
    if shown < points {
        let all = grouped(points as u64);
        writeln!(out, "  {shown} of {all}; outcome.json and the page have the others")?;
    }
    for line in wrapped(&sentence(&format!("{}.", front.statement)), 98).lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)
}

/// How fast a chip of a front trains, what it costs to own and what it draws.
pub fn figures(one: &FrontEntry) -> [String; 3] {
    let chip = &one.entry.chip;
    let tokens = one.entry.results.first().map_or(0.0, |result| result.tokens_per_s);
    let dollars = format!("${}", grouped(whole(chip.ownership_usd)));
    [format!("{} tokens/s", si(tokens, "")), dollars, format!("{:.0} W", chip.tdp_w)]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "dollars are positive and rounded"
)]
fn whole(dollars: f64) -> u64 {
    dollars.round() as u64
}
