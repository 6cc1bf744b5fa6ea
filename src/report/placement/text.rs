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
use crate::model::Axis;
use crate::plan::Cost;
use crate::plan::PassOrder;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::TimeModel;
use crate::plan::Training;
use crate::plan::Units;
use crate::report::basis;
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
        writeln!(out, "{what:<18}{figure:>22}  {note}")
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
    writeln!(out, "{}", rests_on(training, units, cost))?;
    let (figure, note) = utilisation(plan, training, cost, seconds);
    line(out, "computing", &figure, &note)?;
    let Some(load) = training.expert_load_per_mille else { return Ok(()) };
    let factor = format!("{:.1} x", load as f64 / 1000.0);
    let factor = if load % 100 == 0 { factor } else { format!("{} x", load as f64 / 1000.0) };
    line(out, "load of experts", &factor, "an even one, on the fullest device")
}

/// What the times rest on, with the interval of time and throughput where that is known.
fn rests_on(training: &Training, units: &Units, cost: &Cost) -> String {
    let said = format!("resting on         {}", basis::words(training.basis.as_ref()));
    let interval = basis::interval(training.basis.as_ref(), cost.time_per_batch);
    let Some([shortest, longest]) = interval else { return said };
    let tokens = |ticks: u128| grouped(whole(training.tokens_per_second(units.time(ticks))));
    format!(
        "{said}; 80 % interval {} to {}, {} to {} tokens/s",
        time(units, shortest),
        time(units, longest),
        tokens(longest),
        tokens(shortest)
    )
}

/// Operations per second of one device, and the share of what it could do.
fn utilisation(plan: &Plan, training: &Training, cost: &Cost, seconds: f64) -> (String, String) {
    let peak = training.peak_flops_per_second as f64;
    let mfu = training.utilisation(seconds, cost.devices);
    let causal = training.causal_utilisation(seconds, cost.devices);
    let causal = causal.map_or_else(String::new, |causal| {
        format!(", {} without what a causal mask hides", percent(causal))
    });
    let all = if cost.devices < plan.job.devices {
        format!("; {} of all devices", percent(training.utilisation(seconds, plan.job.devices)))
    } else {
        String::new()
    };
    let (mfu_told, peak_told) = (percent(mfu), si(peak, "FLOP/s"));
    let note = format!("per device: MFU {mfu_told} of {peak_told}{causal}{all}");
    (si(mfu * peak, "FLOP/s"), note)
}

/// Where the time goes, and what of the exchanges hides behind computation.
fn times(plan: &Plan, placement: &Placement, cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    let batch = cost.time_per_batch as f64;
    writeln!(out, "where the time goes, for the average rank")?;
    for TimeLine { what, ticks, note } in lines(plan, &TimeParts::of(plan, placement, cost)) {
        let share = percent(ticks as f64 / batch);
        let line = format!("  {what:<22}{:>14} {share:>8}  {note}", time(&plan.units, ticks));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A part of the time with what is said of it.
struct TimeLine {
    what: &'static str,
    ticks: u128,
    note: String,
}

/// The parts of the time that there are; an exchange also where all of it is hidden.
fn lines(plan: &Plan, parts: &TimeParts) -> Vec<TimeLine> {
    let told = |ticks: u128| time(&plan.units, ticks);
    let plain = |what, ticks, note: &str| {
        (ticks > 0).then(|| TimeLine { what, ticks, note: note.to_owned() })
    };
    let exchanged = |what, Exchanged { exposed, all }: Exchanged, among: &str| {
        (all > 0).then(|| {
            let hidden = told(all.saturating_sub(exposed));
            let note = format!("exposed of {} {among}; {hidden} hidden", told(all));
            TimeLine { what, ticks: exposed, note }
        })
    };
    // Without the schedules of layers it is not known what hides their exchanges.
    let layers = if plan.layers.is_empty() && parts.exchanges.all > 0 {
        format!("exchanges take {} of it, hidden or not", told(parts.exchanges.all))
    } else {
        "both passes, once".to_owned()
    };
    let along = Axis::ALL.into_iter().zip(parts.by_axis);
    let along = along.map(|(axis, part)| {
        let to_experts = axis == Axis::Expert && parts.all_to_all > 0;
        let among = if to_experts {
            format!("in layers, all-to-all {} of it", told(parts.all_to_all))
        } else {
            "in layers".to_owned()
        };
        exchanged(exchange_name(axis), part, &among)
    });
    let most = "on the rank with most of it";
    let first = [
        plain("layers", parts.layers, &layers),
        plain("recompute", parts.recompute, "forward passes again"),
    ];
    let last = [
        plain("waiting for weights", parts.weights, "of the first layer of each pass"),
        plain("transfers", parts.transfers, "between stages"),
        plain("fill and drain", parts.fill_and_drain, "of the pipeline: waiting for other ranks"),
        plain("imbalance", parts.imbalance, "waiting for ranks that work longer"),
        exchanged("gradient exchange", parts.gradients, &format!("among replicas, {most}")),
        plain("optimizer step", parts.step, ""),
        exchanged("weight gathering", parts.gathering, &format!("of new weights, {most}")),
    ];
    first.into_iter().chain(along).chain(last).flatten().collect()
}

/// What exchanges inside layers along an axis are called.
fn exchange_name(axis: Axis) -> &'static str {
    match axis {
        Axis::Tensor => "tensor exchange",
        Axis::Context => "context exchange",
        Axis::Expert => "expert exchange",
        Axis::ExpertGroup => "expert-group exchange",
        Axis::ExpertTensor => "expert-tensor exchange",
        Axis::Data => "sharding exchange",
        Axis::Pipeline => "pipeline exchange",
    }
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
        let mut plan = example(false);
        // What crosses between ranks takes no time, so the first is as fast as the last.
        plan.profile.edges.iter_mut().for_each(|edge| edge.size = 0);
        let text = told(&plan);
        assert!(text.lines().any(|line| line.starts_with("0 – 1 ")), "{text}");
    }
}
