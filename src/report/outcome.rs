//! The answer of a search on a terminal.

use std::io;
use std::io::Write;

use super::basis;
use super::placement::described;
use super::quantity::bytes;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::sentence;
use super::quantity::shown;
use super::quantity::si;
use super::quantity::span;
use super::quantity::wrapped;
use crate::compare::STOPPED;
use crate::search::DesignFacts;
use crate::search::Entry;
use crate::search::Objective;
use crate::search::Outcome;
use crate::strategy::result::ModelResult;
use crate::units::Bytes;

/// What a proof says, and that it says no more.
const SCOPE: &str = "It is optimal within this model, this space and these strategies.";

/// The winner, what it is compared with, the proof, and what would help next.
pub fn text(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let request = &outcome.request;
    for model in &outcome.models {
        writeln!(
            out,
            "{}: {} parameters, sequences of {}",
            shown(&model.name),
            grouped(model.parameters),
            grouped(model.sequence)
        )?;
    }
    let cap = outcome.request.power_cap_w;
    let cap = cap.map_or_else(String::new, |cap| format!(", at most {} per device", si(cap, "W")));
    writeln!(
        out,
        "{} accelerators, batches of {} sequences, {} designs of at most {:.1} mm²{cap}\n",
        grouped(request.devices),
        grouped(request.global_batch),
        grouped(outcome.proof.designs as u64),
        request.space.max_area_nm2 as f64 / 1e12
    )?;
    let Some(winner) = &outcome.winner else {
        match (&outcome.proof.stopped_by, &outcome.infeasible_reason) {
            (Some(_), _) => writeln!(out, "Stopped before anything was found.\n")?,
            (None, reason) => {
                let reason = reason.as_deref().unwrap_or("nothing fits");
                writeln!(out, "No design of the space can train this: {reason}")?;
            }
        }
        return proof(outcome, out);
    };
    design(&winner.design, out)?;
    for result in &winner.results {
        plan(result, (outcome.models.len(), request.devices), out)?;
    }
    comparison(outcome, winner, out)?;
    by_hbm(outcome, out)?;
    if request.pareto || request.top > 1 {
        listings(outcome, out)?;
    }
    proof(outcome, out)?;
    limits(outcome, out)
}

/// A design in one line.
pub fn design_line(design: &DesignFacts) -> String {
    format!(
        "{} TC {}x{}, {} VC {}, {}, {} HBM",
        grouped(design.tensor_cores),
        design.width,
        design.depth,
        grouped(design.vector_cores),
        design.vector_width,
        bytes(Bytes(design.glb_bytes)),
        bytes(Bytes(design.hbm_bytes))
    )
}

/// The objective's value with its unit.
pub fn value(objective: Objective, n_models: usize, value: f64) -> String {
    if n_models > 1 {
        return format!("{value:.4}");
    }
    match objective {
        Objective::Throughput => format!("{} sequences/s", significant(value)),
        Objective::ThroughputPerArea => format!("{} sequences/s/mm²", significant(value)),
        Objective::EnergyPerToken => si(value, "J/token"),
        Objective::CostPerToken => format!("${} per million tokens", significant(value * 1e6)),
        Objective::CarbonPerToken => si(value, "g CO₂e/token"),
    }
}

fn design(design: &DesignFacts, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "The best chip")?;
    writeln!(
        out,
        "  {:<16}{} of {} x {}, {} local each",
        "tensor cores",
        grouped(design.tensor_cores),
        design.width,
        design.depth,
        bytes(Bytes(design.local_tensor_bytes))
    )?;
    writeln!(
        out,
        "  {:<16}{} of {} lanes, {} local each",
        "vector cores",
        grouped(design.vector_cores),
        design.vector_width,
        bytes(Bytes(design.local_vector_bytes))
    )?;
    writeln!(
        out,
        "  {:<16}{} global buffer, {} HBM at {}",
        "memories",
        bytes(Bytes(design.glb_bytes)),
        bytes(Bytes(design.hbm_bytes)),
        si(design.hbm_bytes_per_s as f64, "B/s")
    )?;
    let area = &design.area;
    let share = |part: f64| percent(part / design.area_um2);
    writeln!(
        out,
        "  {:<16}{:.1} mm²: arrays {}, their buffers {}, vector {}, global buffer {}",
        "area",
        design.area_um2 / 1e6,
        share(area.tensor_cores_um2),
        share(area.tensor_local_um2),
        share(area.vector_cores_um2 + area.vector_local_um2),
        share(area.glb_um2)
    )?;
    writeln!(out, "  {:<16}{}\n", "peak", si(design.peak_flops_per_s, "FLOP/s"))
}

/// How a model is trained, one of `n_models` on `devices`.
pub(super) fn plan(
    result: &ModelResult,
    (n_models, devices): (usize, u64),
    out: &mut dyn Write,
) -> io::Result<()> {
    let named = if n_models > 1 { format!(" {}", shown(&result.model)) } else { String::new() };
    writeln!(out, "How to train{named} on it")?;
    writeln!(out, "  {:<16}{}", "strategy", result.strategy.sentence)?;
    let simulated = match result.simulated_time_per_batch_s {
        Some(time) => format!(" (simulated {})", span(time)),
        None => String::new(),
    };
    writeln!(out, "  {:<16}{}{simulated}", "time per batch", span(result.time_per_batch_s))?;
    let basis = result.plan.training.as_ref().and_then(|training| training.basis.as_ref());
    writeln!(out, "  {:<16}{}", "resting on", basis::words(basis))?;
    writeln!(
        out,
        "  {:<16}{} sequences/s, {} tokens/s, {} tokens/s per device",
        "throughput",
        significant(result.throughput_sequences_per_s),
        grouped(whole(result.tokens_per_s)),
        grouped(whole(result.tokens_per_s / result.strategy.devices_used as f64))
    )?;
    writeln!(
        out,
        "  {:<16}{} of {} devices in use ({} of all {})",
        "MFU",
        percent(result.mfu),
        grouped(result.strategy.devices_used),
        percent(result.mfu_requested_devices),
        grouped(devices)
    )?;
    if result.mfu > 1.0 {
        let note = "operations are counted with those that a causal mask hides, which this chip need not do";
        writeln!(out, "  {:<16}{note}", "")?;
    }
    writeln!(
        out,
        "  {:<16}{} per token, {} per device on average (static and network power assumed)\n",
        "energy",
        si(result.energy_per_token_j, "J"),
        si(result.average_power_w, "W")
    )
}

/// A column of throughputs for each model.
fn comparison(outcome: &Outcome, winner: &Entry, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<String> = match &outcome.models[..] {
        [_] => vec!["throughput".into()],
        models => models.iter().map(|model| shown(&model.name)).collect(),
    };
    let width = names.iter().map(|name| name.chars().count() + 2).max().unwrap_or(0).max(14);
    let columns = |cells: Vec<String>| -> String {
        cells.iter().fold(String::new(), |line, cell| format!("{line}{cell:>width$}"))
    };
    let throughputs = |entry: &Entry| {
        let of = |result: &ModelResult| significant(result.throughput_sequences_per_s);
        columns(entry.results.iter().map(of).collect())
    };
    let heads = columns(names);
    writeln!(out, "{:<38}{heads}{:>14}", "Against the baselines", "winner is")?;
    writeln!(out, "  {:<36}{}", "this design and plan", throughputs(winner))?;
    for baseline in &outcome.baselines {
        let name = shown(&baseline.name);
        match (&baseline.entry, baseline.winner_ratio) {
            (Some(entry), Some(ratio)) => {
                let power = entry.results.iter().map(|result| result.average_power_w);
                let power = power.fold(0.0, f64::max);
                let breaks = outcome.request.power_cap_w.is_some_and(|cap| power > cap);
                let note =
                    if breaks { format!("  draws {}", si(power, "W")) } else { String::new() };
                let throughputs = throughputs(entry);
                writeln!(out, "  {name:<36}{throughputs}{ratio:>13.3}x{note}")?;
            }
            _ => writeln!(
                out,
                "  {name:<36}{:>14}  {}",
                if baseline.reason.as_deref() == Some(STOPPED) { "-" } else { "does not fit" },
                baseline.reason.as_deref().unwrap_or_default()
            )?,
        }
    }
    writeln!(out)
}

fn by_hbm(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let proved = if outcome.proof.complete { "each proved" } else { "of what was evaluated" };
    writeln!(out, "The best for each HBM size, {proved}")?;
    for best in &outcome.best_by_hbm {
        let Some(entry) = &best.entry else {
            let rows = &outcome.proof.by_hbm;
            let open = rows.iter().any(|row| row.hbm_gib == best.hbm_gib && row.open > 0);
            let why = if open { "not searched: stopped before" } else { "nothing fits" };
            writeln!(out, "  {:>4} GiB  {why}", best.hbm_gib)?;
            continue;
        };
        writeln!(
            out,
            "  {:>4} GiB  {:<22} {:<44} {}",
            best.hbm_gib,
            value(outcome.request.objective, outcome.models.len(), entry.value),
            design_line(&entry.design),
            strategies(entry)
        )?;
    }
    writeln!(out)
}

/// How each model is trained, named where there are several.
fn strategies(entry: &Entry) -> String {
    let several = entry.results.len() > 1;
    let of = |result: &ModelResult| {
        let whose = if several { format!("{}: ", shown(&result.model)) } else { String::new() };
        whose + &result.strategy.sentence
    };
    entry.results.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// The model that a figure of the first result is about, where there are several.
fn first_model(outcome: &Outcome) -> Option<String> {
    match &outcome.models[..] {
        [first, _, ..] => Some(shown(&first.name)),
        _ => None,
    }
}

fn listings(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let lists = [("The best designs", &outcome.top), ("The Pareto front", &outcome.pareto)];
    for (title, list) in lists {
        let scope = if list.exact { "of the whole space" } else { "of what was evaluated" };
        let whose = first_model(outcome);
        let whose = whose.map_or_else(String::new, |name| format!(" (energy of {name})"));
        writeln!(out, "{title} {scope}{whose}")?;
        writeln!(out, "  {:>22} {:>10} {:>12}  design", "objective", "area", "energy")?;
        for entry in &list.entries {
            let energy = entry.results.first().map_or(0.0, |result| result.energy_per_token_j);
            writeln!(
                out,
                "  {:>22} {:>6.1} mm² {:>12}  {}",
                value(outcome.request.objective, outcome.models.len(), entry.value),
                entry.design.area_um2 / 1e6,
                si(energy, "J/token"),
                design_line(&entry.design)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn proof(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "The proof")?;
    writeln!(out, "  {}", sentence(&outcome.proof.statement))?;
    if outcome.proof.complete && outcome.winner.is_some() {
        writeln!(out, "  {SCOPE}")?;
    }
    let strategies = format!("Strategies: {}.", described(&outcome.request.strategies));
    for line in wrapped(&strategies, 98).lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(
        out,
        "  {:>8} {:>10} {:>10} {:>10} {:>11} {:>9}   best bound of what is left",
        "HBM", "evaluated", "beaten", "pruned", "infeasible", "gap"
    )?;
    for row in &outcome.proof.by_hbm {
        let bound = match (row.best_pruned_bound, row.best_value) {
            (Some(bound), Some(best)) => format!(
                "{} ({} of the best)",
                value(outcome.request.objective, outcome.models.len(), bound),
                percent(bound / best)
            ),
            _ => "-".into(),
        };
        writeln!(
            out,
            "  {:>4} GiB {:>10} {:>10} {:>10} {:>11} {:>9}   {bound}",
            row.hbm_gib,
            grouped(row.evaluated as u64),
            grouped(row.beaten as u64),
            grouped(row.pruned as u64),
            grouped(row.infeasible as u64),
            percent(row.gap)
        )?;
    }
    writeln!(out)
}

fn limits(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    match first_model(outcome) {
        Some(name) => writeln!(out, "What limits it when it trains {name}")?,
        None => writeln!(out, "What limits it")?,
    }
    let mut shares = outcome.limited_by.clone();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    for share in shares.iter().filter(|share| share.share >= 0.0005) {
        let bar = "█".repeat(whole(share.share * 40.0).try_into().unwrap_or(0));
        writeln!(out, "  {:<28}{:>7}  {bar}", share.what, percent(share.share))?;
    }
    if outcome.sensitivities.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWhich knob would help next (everything else re-optimised, area not limited)")?;
    let mut knobs = outcome.sensitivities.clone();
    knobs.sort_by(|a, b| {
        let ratio = |s: &crate::search::Sensitivity| s.throughput_ratio.unwrap_or(0.0);
        ratio(b).total_cmp(&ratio(a))
    });
    for knob in &knobs {
        let name = format!("{} {}", knob.knob, knob.change);
        match knob.throughput_ratio {
            Some(ratio) => writeln!(
                out,
                "  {name:<34}{:>+8.1} % throughput {:>+8.1} % area",
                (ratio - 1.0) * 100.0,
                (knob.area_ratio.unwrap_or(1.0) - 1.0) * 100.0
            )?,
            None => {
                writeln!(out, "  {name:<34}{}", knob.note.as_deref().unwrap_or("does not fit"))?;
            }
        }
    }
    Ok(())
}

pub(super) fn significant(value: f64) -> String {
    match value {
        v if v >= 1000.0 => grouped(whole(v)),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.3}"),
        v => format!("{v:.3e}"),
    }
}

fn whole(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "figures for people are positive, and the cast saturates"
    )]
    let whole = value.round() as u64;
    whole
}
