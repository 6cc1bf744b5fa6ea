//! What a reader sees first: the chip in words, what it reaches, how to train on it, the die, and how it compares.

use std::fmt::Write as _;
use std::io;
use std::io::Write;

use crate::report::outcome::significant;
use crate::report::outcome::value;
use crate::report::quantity::grouped;
use crate::report::quantity::percent;
use crate::report::quantity::si;
use crate::report::quantity::span;
use crate::search::Objective;
use crate::search::chips::ChipBaseline;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipFacts;
use crate::search::chips::ChipOutcome;
use crate::strategy::result::ModelResult;

use super::die;
use super::models;
use super::text;

/// Writes all of it.
pub fn section(outcome: &ChipOutcome, winner: &ChipEntry, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"answer\">")?;
    asked(outcome, out)?;
    writeln!(out, "<h1>{}</h1>", in_words(&winner.chip))?;
    writeln!(out, "<p class=\"lead\">{}</p>", lead(outcome, winner))?;
    if let [result] = &winner.results[..] {
        figures(outcome, result, out)?;
        writeln!(out, "<p class=\"plan\">{}</p>", text(&result.strategy.sentence))?;
    } else {
        plans(&winner.results, out)?;
    }
    writeln!(out, "<div class=\"side\"><div id=\"die\">")?;
    writeln!(
        out,
        "<h2>The die, its memory and its links, to scale</h2>{}</div>",
        die::picture(&winner.chip)
    )?;
    beside(outcome, out)?;
    writeln!(out, "</div>")?;
    let proof = &outcome.proof;
    let points = grouped(proof.points);
    let (class, said) = if proof.settles_the_winner() {
        let boxes = grouped(proof.certificate_entries as u64);
        ("proved", format!("<b>Proved</b>: {boxes} boxes tile the {points} chips of the grid."))
    } else {
        let open = grouped(proof.open_points);
        (
            "proved open",
            format!(
                "<b>Not proved</b>: {open} of the {points} chips of the grid were not looked at."
            ),
        )
    };
    writeln!(out, "<p class=\"{class}\">{said} <a href=\"#proof\">See how</a></p></section>")
}

fn asked(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    let request = &outcome.request;
    let space = &request.space;
    let price = space.max_price_cents;
    let price =
        price.map_or(String::new(), |cents| format!(", ${:.0} to make", cents as f64 / 100.0));
    writeln!(
        out,
        "<p class=\"eyebrow\">{} on {} chips, batches of {}; {} chips of {} nm with {} to choose from, at \
         most {:.0} mm², {:.0} W{price}</p>",
        text(&models(outcome)),
        grouped(request.devices),
        grouped(request.global_batch),
        grouped(outcome.proof.points),
        space.process_nm,
        text(&space.memory),
        space.max_area_nm2 as f64 / 1e12,
        space.tdp_mw as f64 / 1e3,
    )
}

/// The chip as one would say it.
fn in_words(chip: &ChipFacts) -> String {
    let of = |knob: &str| chip.knobs.get(knob).copied().unwrap_or(0);
    format!(
        "{} tensor cores of {}×{}, {} vector lanes, {} MiB of buffer, {} stacks of memory, links of {} GB/s, {:.2} GHz",
        grouped(of("tensor_cores")),
        of("width"),
        of("depth"),
        grouped(of("vector_cores").saturating_mul(of("vector_width"))),
        grouped(of("glb_mib")),
        of("stacks"),
        grouped(of("links")),
        of("clock_mhz") as f64 / 1000.0
    )
}

/// What it is worth, and how it compares with the first chip of each kind.
fn lead(outcome: &ChipOutcome, winner: &ChipEntry) -> String {
    let proved = if outcome.proof.settles_the_winner() {
        "proved to be the best"
    } else {
        "the best so far"
    };
    let worth = value(outcome.request.objective, outcome.models.len(), winner.value);
    let chosen = outcome.baselines.iter().find_map(|one| Some((one, ratio(one)?)));
    let part = outcome.baselines.iter().filter(|one| one.part.is_some());
    let part = part.into_iter().find_map(|one| Some((one, ratio(one)?)));
    let than = |(baseline, ratio): (&ChipBaseline, f64)| {
        format!("<b>{}×</b> as good as `{}`", significant(ratio), text(&baseline.name))
    };
    let all: Vec<String> = chosen.into_iter().chain(part).map(than).collect();
    let than = if all.is_empty() { String::new() } else { format!(": {}", all.join(", ")) };
    format!("<b>{}</b> by the objective, {proved}{than}.", text(&worth))
}

/// How many times better the winner is by the objective.
fn ratio(baseline: &ChipBaseline) -> Option<f64> {
    baseline.winner_is.as_ref()?.by_objective
}

/// What training one model reaches.
fn figures(outcome: &ChipOutcome, result: &ModelResult, out: &mut dyn Write) -> io::Result<()> {
    let objective = outcome.request.objective;
    let mut all = vec![
        ("Sequences per second", significant(result.throughput_sequences_per_s)),
        ("Tokens per second", si(result.tokens_per_s, "")),
        ("Time per batch", span(result.time_per_batch_s)),
        ("FLOP utilisation", percent(result.mfu)),
        ("Energy per token", si(result.energy_per_token_j, "J")),
        ("Power per device", si(result.average_power_w, "W")),
    ];
    if let Some(winner) = &outcome.winner
        && !matches!(objective, Objective::Throughput | Objective::EnergyPerToken)
    {
        all.push(("By the objective", value(objective, 1, winner.value)));
    }
    writeln!(out, "<dl class=\"figures\">")?;
    for (what, figure) in all {
        writeln!(out, "<div><dt>{what}</dt><dd>{}</dd></div>", text(&figure))?;
    }
    writeln!(out, "</dl>")
}

/// How to train each of several models, and what that reaches.
fn plans(results: &[ModelResult], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><table id=\"plans\"><tr><th>model</th><th>plan</th>"
    )?;
    writeln!(
        out,
        "<th class=\"n\">tokens/s</th><th class=\"n\">MFU</th><th class=\"n\">J/token</th></tr>"
    )?;
    for result in results {
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

/// Width of the picture of baselines, of it the bars, and the height of one, in pixels.
const BESIDE: (f64, f64, f64) = (440.0, 370.0, 40.0);

/// How good the baselines are by the objective, as bars beside that of the winner.
fn beside(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    let others = outcome.baselines.iter();
    let others = others.filter_map(|one| Some((one.name.clone(), ratio(one)?)));
    let others: Vec<(String, f64)> = others.filter(|(_, ratio)| *ratio > 0.0).collect();
    if others.is_empty() {
        return Ok(());
    }
    let all: Vec<(String, f64)> =
        std::iter::once(("this chip".to_owned(), 1.0)).chain(others).collect();
    let most = all.iter().map(|(_, ratio)| 1.0 / ratio).fold(1.0, f64::max);
    let (width, bars, high) = BESIDE;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {}\" width=\"{width}\" role=\"img\" aria-label=\"how good the baselines are\">",
        all.len() as f64 * high
    );
    for (at, (name, ratio)) in all.iter().enumerate() {
        let (y, wide) = (at as f64 * high, bars / ratio / most);
        let (class, times) = if at == 0 {
            ("top", String::new())
        } else {
            ("other", format!("{}×", significant(*ratio)))
        };
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{:.0}\">{}</text><rect class=\"free\" x=\"0\" y=\"{:.0}\" width=\"{bars}\" \
             height=\"14\"/><rect class=\"{class}\" x=\"0\" y=\"{:.0}\" width=\"{wide:.1}\" height=\"14\"/>\
             <text x=\"{width}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            y + 12.0,
            text(name),
            y + 18.0,
            y + 18.0,
            y + 30.0,
            text(&times)
        );
    }
    writeln!(
        out,
        "<div id=\"beside\"><h2>Beside this chip</h2><p class=\"note\">By the objective, with as many devices and \
         the same batch. ×: how many times better this chip is.</p>{svg}</svg></div>"
    )
}
