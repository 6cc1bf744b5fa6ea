//! The answer of a search over chips on a terminal.

use std::io;
use std::io::Write;

use super::outcome::plan;
use super::outcome::significant;
use super::outcome::value;
use super::placement::described;
use super::quantity::bytes;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::sentence;
use super::quantity::shown;
use super::quantity::si;
use super::quantity::wrapped;
use crate::compare::STOPPED;
use crate::hardware::chip::ChipNetwork;
use crate::model::Precision;
use crate::search::chips::ChipBaseline;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipFacts;
use crate::search::chips::ChipOutcome;
use crate::search::chips::NearFigure;
use crate::search::chips::Part;
use crate::units::Bytes;

/// What a proof says, and that it says no more.
const SCOPE: &str = "It is optimal within this model, this grid and these strategies.";

/// What was asked for and is not told, because something ended the search early; none where nothing ended it.
pub fn untold(outcome: &ChipOutcome) -> Option<String> {
    let stopped = outcome.proof.stopped_by.as_ref().or(outcome.comparisons_stopped_by.as_ref())?;
    outcome.winner.as_ref()?;
    let request = &outcome.request;
    let stopped_short = |one: &ChipBaseline| one.reason.as_deref() == Some(STOPPED);
    let why = outcome.why.is_none() && request.why;
    let missing = [
        (outcome.near_winners.len() < NearFigure::ALL.len(), "chips nearly as good"),
        (outcome.baselines.is_empty(), "baselines"),
        (outcome.baselines.iter().any(stopped_short), "some baselines"),
        (why, "how the winner changes (--why)"),
        (request.pareto && outcome.front.is_none(), "the front (--pareto)"),
        (
            request.spotlight.is_some() && outcome.spotlight.is_none(),
            "chips drawn at random (--spotlight)",
        ),
        (request.robust && outcome.robust.is_none(), "other assumptions (--robust)"),
    ];
    let missing: Vec<&str> =
        missing.into_iter().filter_map(|(missing, what)| missing.then_some(what)).collect();
    let many = missing.join(", ");
    (!missing.is_empty()).then(|| {
        format!("Stopped by {stopped} before all was told that was asked for: {many} left out.")
    })
}

/// The winner, what binds it, how to train on it, chips nearly as good, the proof.
pub fn text(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    heading(outcome, out)?;
    let Some(winner) = &outcome.winner else {
        match (&outcome.proof.stopped_by, &outcome.infeasible_reason) {
            (Some(_), _) => writeln!(out, "Stopped before anything was found.\n")?,
            (None, reason) => {
                let reason = reason.as_deref().unwrap_or("nothing fits");
                writeln!(out, "No chip of the space can train this: {reason}\n")?;
            }
        }
        return proof(outcome, out);
    };
    writeln!(
        out,
        "{}",
        if outcome.proof.settles_the_winner() { "The best chip" } else { "The best chip so far" }
    )?;
    chip(&winner.chip, outcome.request.space.precision, out)?;
    takes(outcome, &winner.chip, out)?;
    for result in &winner.results {
        plan(result, (outcome.models.len(), outcome.request.devices), out)?;
        hot(result.average_power_w, winner.chip.tdp_w, out)?;
    }
    let objective = outcome.request.objective;
    let worth = value(objective, outcome.models.len(), winner.value);
    writeln!(out, "By the objective it is worth {worth}.\n")?;
    baselines(outcome, out)?;
    if let Some(why) = &outcome.why_it_wins {
        writeln!(
            out,
            "{}",
            if outcome.proof.settles_the_winner() { "Why it wins" } else { "Why it leads" }
        )?;
        for line in wrapped(&sentence(why), 98).lines() {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
    }
    binds(outcome, out)?;
    near(outcome, winner, out)?;
    if let Some(why) = &outcome.why {
        super::chips_why::text(outcome, why, out)?;
    }
    if let Some(front) = &outcome.front {
        super::chips_front::text(front, out)?;
    }
    if let Some(drawn) = &outcome.spotlight {
        super::chips_why::spotlight(drawn, out)?;
    }
    if let Some(robust) = &outcome.robust {
        super::chips_why::robust(robust, out)?;
    }
    best(outcome, out)?;
    if let Some(untold) = untold(outcome) {
        for line in wrapped(&sentence(&untold), 98).lines() {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    proof(outcome, out)?;
    limits(outcome, out)
}

fn heading(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    for model in &outcome.models {
        let (parameters, tokens) = (grouped(model.parameters), grouped(model.sequence));
        writeln!(out, "{}: {parameters} parameters, sequences of {tokens}", shown(&model.name))?;
    }
    let request = &outcome.request;
    let space = &request.space;
    let price = match space.max_price_cents {
        Some(cents) => format!(", {:.2} dollars", cents as f64 / 100.0),
        None => String::new(),
    };
    let network = match &space.network {
        ChipNetwork::Flat => "a flat network".to_owned(),
        ChipNetwork::Nodes { devices, between_gb_per_s } => {
            format!("nodes of {devices} with {between_gb_per_s} GB/s of each chip between them")
        }
        ChipNetwork::Torus(sides) if sides.is_empty() => "the most cubic torus".to_owned(),
        ChipNetwork::Torus(sides) => {
            let sides: Vec<String> = sides.iter().map(u64::to_string).collect();
            format!("a torus of {}", sides.join(" x "))
        }
    };
    writeln!(
        out,
        "{} chips in {network}, batches of {} sequences; {} chips of {} nm with {} to choose from, at \
         most {:.0} mm², {:.0} W{price}\n",
        grouped(request.devices),
        grouped(request.global_batch),
        grouped(outcome.proof.points),
        space.process_nm,
        space.memory,
        space.max_area_nm2 as f64 / 1e12,
        space.tdp_mw as f64 / 1e3,
    )
}

/// A chip in one line.
pub fn chip_line(chip: &ChipFacts) -> String {
    let of = |knob: &str| chip.knobs.get(knob).copied().unwrap_or(0);
    format!(
        "{} TC {}x{}, {} VC {}, {} MiB {} B/cycle, {:.2} GHz, {} stacks, {} GB/s",
        grouped(of("tensor_cores")),
        of("width"),
        of("depth"),
        grouped(of("vector_cores")),
        of("vector_width"),
        of("glb_mib"),
        grouped(of("glb_bytes_per_cycle")),
        of("clock_mhz") as f64 / 1000.0,
        of("stacks"),
        grouped(of("links"))
    )
}

fn chip(chip: &ChipFacts, precision: Precision, out: &mut dyn Write) -> io::Result<()> {
    let of = |knob: &str| chip.knobs.get(knob).copied().unwrap_or(0);
    let local = |size: u64| bytes(Bytes(size));
    let lines = [
        (
            "tensor cores",
            format!(
                "{} of {} x {}, {} local each",
                grouped(of("tensor_cores")),
                of("width"),
                of("depth"),
                local(chip.local_tensor_bytes)
            ),
        ),
        (
            "vector cores",
            format!(
                "{} of {} lanes, {} local each",
                grouped(of("vector_cores")),
                of("vector_width"),
                local(chip.local_vector_bytes)
            ),
        ),
        (
            "global buffer",
            format!(
                "{} MiB, {} bytes per cycle each way",
                of("glb_mib"),
                grouped(of("glb_bytes_per_cycle"))
            ),
        ),
        (
            "memory",
            format!(
                "{} stacks: {} at {}",
                of("stacks"),
                bytes(Bytes(chip.hbm_bytes)),
                si(chip.hbm_bytes_per_s as f64, "B/s")
            ),
        ),
        ("links", format!("{} GB/s per direction", grouped(of("links")))),
        ("clock", format!("{:.2} GHz", of("clock_mhz") as f64 / 1000.0)),
        ("peak", format!("{} in {}", si(chip.peak_flops_per_s, "FLOP/s"), precision.name())),
    ];
    for (what, line) in lines {
        writeln!(out, "  {what:<16}{line}")?;
    }
    writeln!(out)
}

/// Where silicon, watts and dollars go.
fn takes(outcome: &ChipOutcome, chip: &ChipFacts, out: &mut dyn Write) -> io::Result<()> {
    let space = &outcome.request.space;
    let (area, tdp) = (space.max_area_nm2 as f64 / 1e12, space.tdp_mw as f64 / 1e3);
    let of_area = format!("{:.1} of {area:.0} mm²", chip.die_mm2);
    let of_tdp = format!("{:.1} of {tdp:.0} W, {:.1} W at peak", chip.tdp_w, chip.peak_w);
    let owner = if space.bought { "to buy and own" } else { "to build and own" };
    let lines = [
        ("die", of_area, &chip.die, chip.die_mm2),
        ("power", of_tdp, &chip.power, chip.tdp_w),
        ("cost to make", format!("${:.0}", chip.cost_usd), &chip.cost, chip.cost_usd),
        (owner, format!("${:.0}", chip.ownership_usd), &chip.ownership, chip.ownership_usd),
    ];
    for (what, total, parts, whole) in lines {
        let text = format!("{what}: {total}: {}", shares(parts, whole));
        for line in wrapped(&text, 98).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "  CO₂e: {} over its years\n", si(chip.carbon_kg * 1000.0, "g"))
}

/// The parts of a figure, the largest first, those below a hundredth left out.
fn shares(parts: &[Part], whole: f64) -> String {
    let mut parts: Vec<&Part> = parts.iter().filter(|part| part.amount >= whole / 100.0).collect();
    parts.sort_by(|a, b| b.amount.total_cmp(&a.amount));
    let each = parts.iter().map(|part| format!("{} {}", part.what, percent(part.amount / whole)));
    each.collect::<Vec<_>>().join(", ")
}

/// What more within the budget brings, of what was proved to be the best.
fn no_better(outcome: &ChipOutcome) -> &'static str {
    match outcome.request.power_cap_w {
        Some(_) => "within the budget, but under the cap of power no better with more",
        None => "within the budget, but no better with more",
    }
}

fn binds(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    let words = [
        ("area", "the die is full for more"),
        ("edge", "the die has no edge for more"),
        ("tdp", "watts refuse more"),
        ("price", "the price refuses more"),
        ("clock", "no supply reaches a higher"),
        ("space", "the space ends at this"),
        ("nothing", no_better(outcome)),
        ("unknown", "within the budget with more, which was not looked at to the end"),
    ];
    writeln!(out, "What binds")?;
    for (by, sentence) in words {
        let knobs: Vec<&str> =
            outcome.binds.iter().filter(|b| b.by == by).map(|b| b.knob.as_str()).collect();
        if !knobs.is_empty() {
            writeln!(out, "  {sentence}: {}", knobs.join(", "))?;
        }
    }
    writeln!(out)
}

/// The winner beside others, on as many devices.
fn baselines(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    if outcome.baselines.is_empty() {
        return Ok(());
    }
    let heads = ["objective", "faster", "per mm²", "per W", "per $"];
    let heads: Vec<String> = heads.iter().map(|head| format!("{head:>9}")).collect();
    writeln!(out, "{:<44}{}", "The winner is so many times better than", heads.concat())?;
    for baseline in &outcome.baselines {
        let name = shown(&baseline.name);
        let Some(is) = &baseline.winner_is else {
            let reason = baseline.reason.as_deref().unwrap_or_default();
            writeln!(out, "  {name:<42}   -  {reason}")?;
            continue;
        };
        let ratio = |ratio: Option<f64>| match ratio {
            Some(ratio) => format!("{:>9}", significant(ratio)),
            None => format!("{:>9}", "?"),
        };
        let figures = [
            is.by_objective,
            Some(is.faster),
            is.at_equal_area,
            is.at_equal_power,
            is.at_equal_cost,
        ];
        writeln!(out, "  {name:<42}{}", figures.map(ratio).concat())?;
        if let Some(entry) = &baseline.entry {
            writeln!(out, "    {}", chip_line(&entry.chip))?;
        }
    }
    let per = "per mm² of silicon, watt of design power and dollar to make one chip: at equal area, \
               power and cost. The same devices and batch; chips of the space within the same budget, \
               parts in their own network.";
    for line in wrapped(per, 98).lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)
}

fn near(outcome: &ChipOutcome, winner: &ChipEntry, out: &mut dyn Write) -> io::Result<()> {
    if outcome.near_winners.is_empty() {
        return Ok(());
    }
    let within = percent(outcome.near_winners[0].within);
    let proved = if outcome.proof.complete { "each proved" } else { "of what was looked at" };
    writeln!(out, "Within {within} of the best, {proved}")?;
    for near in &outcome.near_winners {
        let chip = &near.entry.chip;
        let saved = [
            (chip.die_mm2, winner.chip.die_mm2, "mm²"),
            (chip.tdp_w, winner.chip.tdp_w, "W"),
            (chip.cost_usd, winner.chip.cost_usd, "$"),
        ];
        let saved: Vec<String> = saved
            .into_iter()
            .map(|(theirs, ours, unit)| format!("{theirs:.0} {unit} ({})", beside(theirs, ours)))
            .collect();
        writeln!(out, "  {:<10}{}", near.least.word(), saved.join(", "))?;
        writeln!(out, "  {:<10}{}", "", chip_line(chip))?;
    }
    writeln!(out)
}

/// That a plan draws more than a chip is designed for, where it does.
fn hot(average_w: f64, tdp_w: f64, out: &mut dyn Write) -> io::Result<()> {
    if average_w <= tdp_w {
        return Ok(());
    }
    let more = format!(
        "On average a device draws {}, more than its design power of {tdp_w:.1} W, for which parts are taken to be \
         busy for the technology's share of cycles alone: cool it for that, or leave such plans out with --power-cap.",
        si(average_w, "W")
    );
    for line in wrapped(&more, 98).lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)
}

/// How much less or more something is than what it is set beside.
fn beside(theirs: f64, ours: f64) -> String {
    let word = if theirs > ours { "more" } else { "less" };
    format!("{} {word}", percent((1.0 - theirs / ours).abs()))
}

fn best(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    if outcome.top.len() < 2 {
        return Ok(());
    }
    writeln!(out, "The best chips of the whole space")?;
    for entry in &outcome.top {
        let worth = value(outcome.request.objective, outcome.models.len(), entry.value);
        writeln!(out, "  {worth:>22} {:>7.1} mm²  {}", entry.chip.die_mm2, chip_line(&entry.chip))?;
    }
    writeln!(out)
}

fn proof(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "The proof")?;
    let proof = &outcome.proof;
    for line in wrapped(&sentence(&proof.statement), 98).lines() {
        writeln!(out, "  {line}")?;
    }
    if proof.complete && outcome.winner.is_some() {
        writeln!(out, "  {SCOPE}")?;
    }
    let strategies = format!("Strategies: {}.", described(&outcome.request.strategies));
    for line in wrapped(&strategies, 98).lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(
        out,
        "  {} chips evaluated exactly or within a limit, {} boxes in the certificate\n",
        grouped(proof.evaluations as u64),
        grouped(proof.certificate_entries as u64)
    )
}

fn limits(outcome: &ChipOutcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Where the time goes")?;
    let mut shares = outcome.limited_by.clone();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    for share in shares.iter().filter(|share| share.share >= 0.0005) {
        writeln!(out, "  {:<28}{:>7}", share.what, percent(share.share))?;
    }
    if let Some(winner) = &outcome.winner {
        let peak = winner.chip.peak_flops_per_s / 1e12;
        writeln!(
            out,
            "\nPeak per mm² {} TFLOP/s, per watt {} TFLOP/s",
            significant(peak / winner.chip.die_mm2),
            significant(peak / winner.chip.tdp_w)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_less_and_what_is_more_is_said() {
        assert_eq!(beside(90.0, 100.0), "10.0 % less");
        assert_eq!(beside(132.6, 100.0), "32.6 % more");
    }

    #[test]
    fn plans_that_draw_more_than_the_design_power_say_so() {
        let said = |average: f64| {
            let mut out = Vec::new();
            hot(average, 700.0, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(said(700.0), "");
        assert!(said(710.0).contains("draws 710 W, more than its design power of 700.0 W"));
    }
}
