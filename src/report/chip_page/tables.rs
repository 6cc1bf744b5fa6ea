//! The tables of a page: baselines, chips nearly as good, other objectives, evaluated chips, the proof.

use std::io;
use std::io::Write;

use crate::report::boxes_csv::columns;
use crate::report::chips::chip_line;
use crate::report::chips::untold;
use crate::report::outcome::significant;
use crate::report::outcome::value;
use crate::report::quantity::grouped;
use crate::report::quantity::percent;
use crate::report::quantity::plain;
use crate::report::quantity::sentence;
use crate::search::chips::ChipFacts;
use crate::search::chips::ChipOutcome;
use crate::search::chips::NearWinner;

use super::SavedChips;
use super::known::Known;
use super::text;

/// Rows of a long table that a page shows; the files beside it hold all of them.
pub(super) const MOST_ROWS: usize = 200;

/// What the winner is compared with.
pub fn baselines(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    if outcome.baselines.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"baselines\"><h2>The winner beside others</h2><p class=\"note\">How many times better the \
         winner is, on as many devices and with the same batch: by the objective, in sequences per second, and \
         the latter for each mm² of silicon, watt of design power and dollar to make a chip.</p>\
         <div class=\"scroll\" tabindex=\"0\"><table><tr><th>than</th><th class=\"n\">by the objective</th>\
         <th class=\"n\">faster</th><th class=\"n\">at equal area</th><th class=\"n\">at equal power</th>\
         <th class=\"n\">at equal cost</th><th>what it is</th></tr>"
    )?;
    for baseline in &outcome.baselines {
        write!(out, "<tr><td>{}</td>", text(&baseline.name))?;
        match &baseline.winner_is {
            None => {
                let reason = baseline.reason.as_deref().unwrap_or_default();
                write!(out, "<td colspan=\"5\">{}</td>", text(reason))?;
            }
            Some(is) => {
                let ratios = [
                    is.by_objective,
                    Some(is.faster),
                    is.at_equal_area,
                    is.at_equal_power,
                    is.at_equal_cost,
                ];
                for ratio in ratios {
                    let ratio = ratio.map_or("not known".to_owned(), significant);
                    write!(out, "<td class=\"n\">{ratio}</td>")?;
                }
            }
        }
        let chip = baseline.entry.as_ref().map(|entry| format!(": {}", chip_line(&entry.chip)));
        let is = format!("{}{}", baseline.description, chip.unwrap_or_default());
        writeln!(out, "<td>{}</td></tr>", text(&is))?;
    }
    writeln!(out, "</table></div></section>")
}

/// Chips nearly as good that take less.
pub fn near(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    let more = outcome.why.iter().flat_map(|why| &why.near_winners);
    let mut all: Vec<&NearWinner> = outcome.near_winners.iter().chain(more).collect();
    if all.is_empty() {
        return Ok(());
    }
    all.sort_by(|a, b| (a.within.total_cmp(&b.within)).then(a.least.cmp(&b.least)));
    writeln!(
        out,
        "<section id=\"near\"><h2>Nearly as good, and less of something</h2><div class=\"scroll\" tabindex=\"0\"><table><tr>\
         <th>worse by at most</th><th>the</th>{TAKES}<th>chip</th></tr>"
    )?;
    for near in all {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td>{}</tr>",
            percent(near.within),
            near.least.word(),
            takes(&near.entry.chip)
        )?;
    }
    writeln!(out, "</table></div>")?;
    if let Some(counted) = outcome.why.as_ref().map(|why| &why.counted) {
        let many = if counted.at_most == 1 {
            "No other chip lies".to_owned()
        } else if counted.at_least == counted.at_most {
            format!("{} chips lie", grouped(counted.at_least))
        } else {
            format!(
                "Between {} and {} chips lie",
                grouped(counted.at_least),
                grouped(counted.at_most)
            )
        };
        writeln!(out, "<p>{many} within {}.</p>", percent(counted.within))?;
    }
    writeln!(out, "</section>")
}

const TAKES: &str = "<th class=\"n\">mm²</th><th class=\"n\">W</th><th class=\"n\">$</th>";

fn takes(chip: &ChipFacts) -> String {
    format!(
        "<td class=\"n\">{:.0}</td><td class=\"n\">{:.0}</td><td class=\"n\">{:.0}</td><td>{}</td>",
        chip.die_mm2,
        chip.tdp_w,
        chip.cost_usd,
        text(&chip_line(chip))
    )
}

/// The winners of other objectives, each in its own unit.
pub fn objectives(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    let Some(why) = outcome.why.as_ref().filter(|why| !why.objectives.is_empty()) else {
        return Ok(());
    };
    writeln!(
        out,
        "<section id=\"objectives\"><h2>Other objectives have other winners</h2><div class=\"scroll\" tabindex=\"0\"><table><tr>\
         <th class=\"n\">its winner</th><th class=\"n\">this chip</th>{TAKES}<th>its chip</th></tr>"
    )?;
    for other in &why.objectives {
        let [best, ours] = [other.entry.value, other.winner_value]
            .map(|worth| text(&value(other.objective, outcome.models.len(), worth)));
        writeln!(
            out,
            "<tr><td class=\"n\">{best}</td><td class=\"n\">{ours}</td>{}</tr>",
            takes(&other.entry.chip)
        )?;
    }
    writeln!(out, "</table></div></section>")
}

/// The best of chips drawn at random, and the winners under other assumptions.
pub fn robust(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    if let Some(drawn) = &outcome.spotlight {
        let ratio = drawn.winner_is.map_or("not to be compared".to_owned(), significant);
        writeln!(
            out,
            "<section id=\"spotlight\"><h2>Chips drawn at random</h2><p>The winner is {ratio} times as good as the \
             best of {} chips within the budget that were drawn at random.</p></section>",
            grouped(drawn.samples)
        )?;
    }
    let Some(all) = &outcome.robust else { return Ok(()) };
    let same = all.iter().filter(|under| under.same).count();
    writeln!(
        out,
        "<section id=\"robust\"><h2>Under other assumptions</h2><p>Of {} changes of assumed constants, each by −30 or \
         +30 %, {same} leave the winner as it is.</p><div class=\"scroll\" tabindex=\"0\"><table><tr><th>constant</th>\
         <th class=\"n\">from</th><th class=\"n\">to</th><th>unit</th><th class=\"n\">the best is better by</th>\
         <th>its chip</th></tr>",
        all.len()
    )?;
    for under in all.iter().filter(|under| !under.same) {
        let ratio = under.ratio.map_or("over budget".to_owned(), |ratio| format!("{ratio:.4}"));
        let knobs = under.knobs.iter().flatten();
        let knobs: Vec<String> = knobs.map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{ratio}</td>\
             <td>{}</td></tr>",
            text(&under.constant),
            plain(under.from),
            plain(under.to),
            text(&under.unit),
            text(&knobs.join(", "))
        )?;
    }
    writeln!(out, "</table></div></section>")
}

/// Chips whose value is known, the best first.
pub fn evaluated(saved: &SavedChips, known: &[Known], out: &mut dyn Write) -> io::Result<()> {
    let outcome = saved.outcome;
    writeln!(
        out,
        "<section id=\"evaluated\"><h2>{} chips that are told or were evaluated one by one</h2><div class=\"scroll\" tabindex=\"0\"><table><tr>\
         <th class=\"n\">value</th>{TAKES}<th>knobs</th></tr>",
        grouped(known.len() as u64)
    )?;
    for one in known.iter().take(MOST_ROWS) {
        let worth = value(outcome.request.objective, outcome.models.len(), one.value);
        let knobs = crate::hardware::chip::CHIP_KNOBS.iter();
        let knobs: Vec<String> = knobs
            .map(|knob| format!("{} {}", knob.name, grouped((knob.get)(&one.knobs))))
            .collect();
        writeln!(
            out,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{:.0}</td><td class=\"n\">{:.0}</td>\
             <td class=\"n\">{:.0}</td><td>{}</td></tr>",
            text(&worth),
            one.mm2,
            one.watts,
            one.dollars,
            knobs.join(", ")
        )?;
    }
    writeln!(out, "</table></div>")?;
    if known.len() > MOST_ROWS {
        writeln!(out, "<p class=\"note\">The best {MOST_ROWS}; boxes.csv has all of them.</p>")?;
    }
    writeln!(out, "</section>")
}

/// The proof, and on demand the boxes that it rests on.
pub fn proof(saved: &SavedChips, out: &mut dyn Write) -> io::Result<()> {
    let proof = &saved.outcome.proof;
    writeln!(
        out,
        "<section id=\"proof\"><h2>The proof</h2><p>{}</p>",
        text(&sentence(&proof.statement))
    )?;
    if let Some(untold) = untold(saved.outcome) {
        writeln!(out, "<p>{}</p>", text(&sentence(&untold)))?;
    }
    let (closed, first) = (saved.boxes.closed, &saved.boxes.first);
    let open = match saved.boxes.open {
        0 => String::new(),
        open => format!(", and {} that were not looked into", grouped(open)),
    };
    writeln!(
        out,
        "<details><summary>{} boxes of chips that nobody need look at again{open}</summary>\
         <p class=\"note\">Each knob from its least to its greatest value; the first {} are shown, boxes.csv has \
         all.</p><div class=\"scroll\" tabindex=\"0\"><table><tr>",
        grouped(closed),
        first.len()
    )?;
    for column in columns().iter().skip(1) {
        write!(out, "<th>{}</th>", text(column))?;
    }
    writeln!(out, "</tr>")?;
    for row in first {
        write!(out, "<tr>")?;
        for cell in row.iter().skip(1) {
            write!(out, "<td class=\"n\">{}</td>", text(cell))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table></div></details></section>")
}
