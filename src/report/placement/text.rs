//! A whole plan for people.

use std::io;
use std::io::Write;

use super::headline;
use super::judged;
use super::memory;
use super::parts::Exchanged;
use super::parts::TimeParts;
use super::plain;
use super::proof;
use super::ranks;
use super::time;
use crate::plan::Cost;
use crate::plan::PassOrder;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::TimeModel;
use crate::plan::Training;
use crate::report::quantity::grouped;
use crate::report::quantity::percent;
use crate::report::quantity::si;
use crate::report::quantity::wrapped;

/// Characters of a line.
const WIDTH: usize = 100;

/// The plan in full.
pub fn text(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let (placement, cost) = judged(plan);
    writeln!(out, "{}\n", headline(plan, &placement, &cost))?;
    rates(plan, &placement, &cost, out)?;
    writeln!(out)?;
    times(plan, &placement, &cost, out)?;
    writeln!(out)?;
    memory::text(plan, &cost, out)?;
    writeln!(out)?;
    ranks::table(plan, &placement, &cost, out)?;
    writeln!(out)?;
    writeln!(out, "{}", wrapped(&proof(plan), WIDTH))
}

/// How fast it is, for all devices and for each.
fn rates(plan: &Plan, placement: &Placement, cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    let units = &plan.units;
    let order = match (plan.job.time_model, placement.schedule) {
        (TimeModel::Published, _) => "published time model",
        (TimeModel::OneForwardOneBackward, PassOrder::OneForwardOneBackward) => "1F1B",
        (TimeModel::OneForwardOneBackward, PassOrder::Interleaved { .. }) => "interleaved 1F1B",
    };
    let line = |out: &mut dyn Write, what: &str, figure: &str, note: &str| {
        writeln!(out, "{what:<20}{figure:>18}  {note}")
    };
    let each = grouped(cost.micro_batches);
    let note = format!("{order}, {each} micro-batches for each pipeline");
    line(out, "time per batch", &time(units, cost.time_per_batch), &note)?;
    if let Some(simulated) = plan.answer.simulated {
        let ratio = simulated as f64 / cost.time_per_batch as f64;
        let note = format!("as 1F1B runs it: {} of the closed form", percent(ratio));
        line(out, "simulated", &time(units, u128::from(simulated)), &note)?;
    }
    let Some(training) = &plan.training else { return Ok(()) };
    let seconds = units.time(cost.time_per_batch);
    let sequences = training.sequences_per_second(seconds);
    let tokens = sequences * training.sequence as f64;
    let rate = format!("{} tokens/s", grouped(whole(tokens)));
    let note = format!(
        "{} tokens/s per device; {} sequences/s, {} of {} tokens in a batch",
        grouped(whole(tokens / cost.devices as f64)),
        plain(sequences),
        grouped(training.global_batch),
        grouped(training.sequence),
    );
    line(out, "throughput", &rate, &note)?;
    let (figure, note) = utilisation(plan, training, cost, seconds);
    line(out, "computing", &figure, &note)
}

/// Operations per second of one device, and the share of what it could do.
fn utilisation(plan: &Plan, training: &Training, cost: &Cost, seconds: f64) -> (String, String) {
    let peak = training.peak_flops_per_second as f64;
    let mfu = training.utilisation(seconds, cost.devices);
    let mut note = format!("per device: MFU {} of {}", percent(mfu), si(peak, "FLOP/s"));
    if let Some(causal) = training.causal_utilisation(seconds, cost.devices) {
        note += &format!(", {} without what a causal mask hides", percent(causal));
    }
    if cost.devices < plan.job.devices {
        let all = percent(training.utilisation(seconds, plan.job.devices));
        note += &format!("; {all} of all devices");
    }
    (si(mfu * peak, "FLOP/s"), note)
}

/// Where the time goes, and what of the exchanges hides behind computation.
fn times(plan: &Plan, placement: &Placement, cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    let units = &plan.units;
    let parts = TimeParts::of(plan, placement, cost);
    let batch = cost.time_per_batch as f64;
    writeln!(out, "where the time goes, for the average rank")?;
    let exposed = |found: Exchanged, what: &str| {
        let Exchanged { exposed, all } = found;
        let hidden = time(units, all.saturating_sub(exposed));
        format!("exposed of {} {what}; {hidden} hidden", time(units, all))
    };
    let in_layers = exposed(parts.exchanges, "among the devices that share layers or weights");
    let gradients = exposed(parts.gradients, "among replicas, on the rank with most of it");
    let gathering = exposed(parts.gathering, "of new weights, on the rank with most of it");
    let unknown = parts.exchanges.exposed == 0 && plan.layers.is_empty();
    let layers = match unknown && parts.exchanges.all > 0 {
        true => format!("exchanges take {} of it, hidden or not", time(units, parts.exchanges.all)),
        false => "both passes, once".into(),
    };
    let lines = [
        ("layers", parts.layers, layers.as_str(), true),
        ("recompute", parts.recompute, "forward passes again", false),
        (
            "exchanges in layers",
            parts.exchanges.exposed,
            &in_layers,
            !unknown && parts.exchanges.all > 0,
        ),
        ("waiting for weights", parts.weights, "of the first layer of each pass", false),
        ("transfers", parts.transfers, "between stages", false),
        ("bubble", parts.bubble, "waiting for other ranks", cost.ranks.len() > 1),
        ("gradient exchange", parts.gradients.exposed, &gradients, parts.gradients.all > 0),
        ("optimizer step", parts.step, "", false),
        ("weight gathering", parts.gathering.exposed, &gathering, parts.gathering.all > 0),
    ];
    for (what, ticks, note, always) in lines {
        if ticks > 0 || always {
            let share = percent(ticks as f64 / batch);
            let line = format!("  {what:<22}{:>14} {share:>8}  {note}", time(units, ticks));
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

/// To the nearest whole number.
fn whole(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive")]
    let whole = value.round() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::placement::example;

    fn told(plan: &Plan) -> String {
        let mut out = Vec::new();
        text(plan, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_planner_reads_the_strategy_its_rates_its_memory_and_its_ranks() {
        let text = told(&example(true));
        let strategy = "example on a chip: TP 2 with sequence parallelism x PP 2 (2 chunks each) \
                        x DP 2, ZeRO-1, micro-batch 1, \
                        recompute of the first 1 layers of each stage; 8 of 8 devices";
        assert!(text.starts_with(strategy), "{text}");
        for said in [
            "interleaved 1F1B, 16 micro-batches for each pipeline",
            " tokens/s per device; ",
            "without what a causal mask hides",
            "where the time goes, for the average rank",
            "  recompute ",
            "  gradient exchange ",
            "  weight gathering ",
            "exchanges take ",
            "memory of one device on the fullest rank",
            "4 = 2 x 2",
            "Proved: no other placement is faster",
        ] {
            assert!(text.contains(said), "{said} is missing: {text}");
        }
        assert!(!text.contains("simulated"), "one time is enough: {text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }

    #[test]
    fn equal_ranks_share_a_line() {
        let text = told(&example(false));
        assert!(text.lines().any(|line| line.starts_with("0 – 1 ")), "{text}");
    }
}
