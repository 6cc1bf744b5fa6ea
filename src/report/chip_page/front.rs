//! The front of chips as two pictures and a table.

use std::io;
use std::io::Write;

use crate::report::chips::chip_line;
use crate::report::chips_front::figures;
use crate::report::quantity::grouped;
use crate::report::quantity::sentence;
use crate::search::chips::FrontEntry;

use super::SavedChips;
use super::curves::Curve;
use super::curves::picture;
use super::curves::staircase;
use super::text;

/// A figure of a chip.
type Along = fn(&FrontEntry) -> f64;

/// The section of the front, where there is one.
pub fn section(saved: &SavedChips, out: &mut dyn Write) -> io::Result<()> {
    let outcome = saved.outcome;
    let (Some(front), Some(winner)) = (&outcome.front, &outcome.winner) else { return Ok(()) };
    writeln!(out, "<section id=\"front\"><h2>The front: tokens per second, dollars, watts</h2>")?;
    let said = sentence(&format!("{}.", front.statement));
    writeln!(
        out,
        "<p class=\"note\">{} The lines join the best at any price, and at any power.{}</p><div class=\"grid\">",
        text(&said),
        if front.resolution_per_mille > 0 {
            " Figures are compared as rounded, so that the winner itself may lie beyond them, by less than a step."
        } else {
            ""
        }
    )?;
    let tokens =
        |one: &FrontEntry| one.entry.results.first().map_or(0.0, |result| result.tokens_per_s);
    let fastest = winner.results.first().map_or(0.0, |result| result.tokens_per_s);
    let axes: [(&str, &str, Along, f64); 2] = [
        (
            "dollars to own one chip",
            "$",
            |one| one.entry.chip.ownership_usd,
            winner.chip.ownership_usd,
        ),
        ("design power", "W", |one| one.entry.chip.tdp_w, winner.chip.tdp_w),
    ];
    for (title, unit, along, at) in axes {
        let points: Vec<(f64, f64)> =
            front.points.iter().map(|one| (along(one), tokens(one))).collect();
        let told = front
            .points
            .iter()
            .map(|one| format!("{}: {}", figures(one).join(", "), chip_line(&one.entry.chip)));
        let curve = Curve {
            title,
            unit,
            upwards: "tokens/s",
            line: staircase(&points, |a, b| a > b),
            told: told.collect(),
            points,
            class: "proved",
            winner: (at, fastest),
        };
        writeln!(out, "{}", picture(&curve))?;
    }
    writeln!(
        out,
        "</div><details><summary>{} chips</summary><div class=\"scroll\" tabindex=\"0\"><table><tr><th class=\"n\">tokens/s</th>\
         <th class=\"n\">dollars to own</th><th class=\"n\">watts</th><th>plan</th><th>chip</th></tr>",
        grouped(front.points.len() as u64)
    )?;
    for one in &front.points {
        write!(out, "<tr>")?;
        for figure in figures(one) {
            write!(out, "<td class=\"n\">{}</td>", text(&figure))?;
        }
        let plan = one.entry.results.first().map_or("", |result| &result.strategy.sentence);
        let chip = chip_line(&one.entry.chip);
        writeln!(out, "<td>{}</td><td>{}</td></tr>", text(plan), text(&chip))?;
    }
    writeln!(out, "</table></div></details></section>")
}
