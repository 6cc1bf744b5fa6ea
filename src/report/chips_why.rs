//! How the best chip changes with what is asked, on a terminal.

use std::io;
use std::io::Write;

use super::chips::chip_line;
use super::outcome::value;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::wrapped;
use crate::search::chips::ChipOutcome;
use crate::search::chips::Limited;
use crate::search::chips::Sampled;
use crate::search::chips::UnderAssumption;
use crate::search::chips::UnderBudget;
use crate::search::chips::WhyItWins;

/// Chips within 1 and 5 %, how many there are, other budgets, other objectives.
pub fn text(outcome: &ChipOutcome, why: &WhyItWins, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Within 1 and 5 % of the best, each proved")?;
    for near in &why.near_winners {
        let chip = &near.entry.chip;
        let head = format!("{} within {}", near.least.word(), percent(near.within));
        let takes = format!("{:.0} mm², {:.0} W, ${:.0}", chip.die_mm2, chip.tdp_w, chip.cost_usd);
        writeln!(out, "  {head:<22}{takes}")?;
        writeln!(out, "  {:<22}{}", "", chip_line(chip))?;
    }
    let counted = &why.counted;
    let many = if counted.at_most == 1 {
        "the winner alone".to_owned()
    } else if counted.at_least == counted.at_most {
        format!("{} chips", grouped(counted.at_least))
    } else {
        format!("{} to {} chips", grouped(counted.at_least), grouped(counted.at_most))
    };
    writeln!(out, "  within {}: {many}\n", percent(counted.within))?;
    writeln!(out, "With more or less of each budget, each proved (times the winner's value)")?;
    for under in &why.budgets {
        budget(under, out)?;
    }
    writeln!(out)?;
    if !why.objectives.is_empty() {
        writeln!(out, "The winners of other objectives, and what this one is worth by them")?;
    }
    for other in &why.objectives {
        let models = outcome.models.len();
        let [best, ours] = [other.entry.value, other.winner_value]
            .map(|worth| value(other.objective, models, worth));
        writeln!(out, "  {best:<34}this one: {ours}")?;
        writeln!(out, "    {}", chip_line(&other.entry.chip))?;
    }
    for left in &why.left_out {
        let names: Vec<&str> = left.objectives.iter().map(|objective| objective.name()).collect();
        let line = format!("{} left out: {}", names.join(", "), left.reason);
        for line in wrapped(&line, 98).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out)
}

/// The best of chips drawn at random, beside the winner.
pub fn spotlight(drawn: &Sampled, out: &mut dyn Write) -> io::Result<()> {
    let samples = grouped(drawn.samples);
    match (&drawn.entry, drawn.winner_is) {
        (Some(entry), Some(ratio)) => {
            let head = format!("The best of {samples} chips drawn at random: the winner is");
            writeln!(out, "{head} {ratio:.4} times better")?;
            writeln!(out, "  {}\n", chip_line(&entry.chip))
        }
        _ => writeln!(out, "On none of {samples} chips drawn at random a plan fits\n"),
    }
}

/// The winners under other assumptions, the most different first.
pub fn robust(all: &[UnderAssumption], out: &mut dyn Write) -> io::Result<()> {
    let same = all.iter().filter(|under| under.same).count();
    let head = format!(
        "Of {} changes of assumed constants, by \u{2212}30 or +30 %, {same} leave the same chip the best",
        all.len()
    );
    writeln!(out, "{head}; else what the best then is worth, times this one")?;
    for under in all.iter().filter(|under| !under.same) {
        let ratio = match (under.ratio, &under.knobs) {
            (Some(ratio), _) => format!("{ratio:.4}"),
            (None, Some(_)) => "over budget".to_owned(),
            (None, None) => "nothing fits".to_owned(),
        };
        let change = format!("{} {:+} %", under.constant, under.percent);
        let knobs = under.knobs.iter().flatten();
        let knobs: Vec<String> = knobs.map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(out, "  {change:<42}{ratio:>12}")?;
        writeln!(out, "    {}", knobs.join(", "))?;
    }
    writeln!(out)
}

fn budget(under: &UnderBudget, out: &mut dyn Write) -> io::Result<()> {
    let limit = limit(under.limited, under.limit);
    let head = format!("{} {:+} %", under.limited.word(), under.percent);
    let chip = match (&under.entry, under.ratio) {
        (Some(entry), _) => chip_line(&entry.chip),
        (None, Some(_)) => "the same chip".to_owned(),
        (None, None) => "no chip within it trains this".to_owned(),
    };
    let ratio = under.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.4}"));
    writeln!(out, "  {head:<14}{limit:>10}{ratio:>9}  {chip}")
}

/// A limit in its unit.
pub fn limit(limited: Limited, amount: f64) -> String {
    match limited {
        Limited::Area => format!("{amount:.0} mm²"),
        Limited::Tdp => format!("{amount:.0} W"),
        Limited::Price => format!("${amount:.0}"),
    }
}
