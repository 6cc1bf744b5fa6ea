//! A plan for people and for programs.

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::quantity;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::shown;
use crate::placement::Obstacle;
use crate::placement::Problem;
use crate::plan::Cost;
use crate::plan::Memory;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::StageCost;
use crate::plan::Units;
use crate::plan::cost;
use crate::units::Bytes;

/// The plan in full.
pub fn text(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let (placement, cost) = judged(plan);
    writeln!(out, "{}", headline(plan, &placement, &cost))?;
    writeln!(out)?;
    times(plan, &placement, &cost, out)?;
    writeln!(out)?;
    stages(plan, &placement, &cost, out)?;
    writeln!(out)?;
    writeln!(out, "{}", proof(plan))
}

/// The strategy in one line.
pub fn headline(plan: &Plan, placement: &Placement, cost: &Cost) -> String {
    let micro_batch = plan.training.as_ref().map(|training| training.micro_batch);
    let idle = plan.job.devices - cost.devices;
    let leftover =
        if idle == 0 { String::new() } else { format!(" ({} left over)", grouped(idle)) };
    let degrees = (placement.data_parallel, placement.pipeline.n_stages(), plan.profile.width);
    let design =
        plan.training.as_ref().map_or_else(String::new, |t| format!(" on {}", shown(&t.design)));
    format!(
        "{}{design}: {}; {} of {} devices{leftover}",
        shown(&plan.name),
        strategy(degrees, micro_batch, placement.recompute),
        grouped(cost.devices),
        grouped(plan.job.devices),
    )
}

/// Degrees (data, pipeline, tensor), micro-batch and recompute in one line.
pub fn strategy(
    (data, pipeline, tensor): (u64, usize, u64),
    micro_batch: Option<u64>,
    recompute: Recompute,
) -> String {
    let micro_batch = micro_batch.map_or_else(String::new, |size| format!(", micro-batch {size}"));
    let nothing = if recompute == Recompute::Stage && pipeline == 1 {
        " (nothing: the last stage is the only one)"
    } else {
        ""
    };
    format!(
        "{data} data x {pipeline} pipeline x {tensor} tensor parallel{micro_batch}, \
         recompute {recompute}{nothing}"
    )
}

/// What another choice would bring.
pub struct Alternative {
    /// Which choice.
    pub title: String,
    /// Ticks of a batch and the strategy in a line; `None` where nothing fits.
    pub strategy: Option<(u128, String)>,
}

/// The next best alternatives, each beside the plan.
pub fn alternatives(plan: &Plan, rows: &[Alternative], out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nalternatives")?;
    compare(Some(plan), rows, out)
}

/// What a better cut or strategy would bring beside a given one, which may not fit.
pub fn beside(plan: Option<&Plan>, rows: &[Alternative], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nbeside it")?;
    compare(plan, rows, out)
}

fn compare(plan: Option<&Plan>, rows: &[Alternative], out: &mut dyn Write) -> io::Result<()> {
    let units = Units::physical();
    for Alternative { title, strategy } in rows {
        match strategy {
            None => writeln!(out, "  {title:<28}nothing fits")?,
            Some((ticks, line)) => {
                let ratio = plan.map_or_else(String::new, |plan| {
                    let ratio = *ticks as f64 / plan.answer.time_per_batch as f64;
                    format!("{ratio:.3} x")
                });
                writeln!(out, "  {title:<28}{:>10}{ratio:>11}  {line}", time(&units, *ticks))?;
            }
        }
    }
    Ok(())
}

/// That a stage of a given strategy needs more than a device has.
pub fn overflow(memory: u64, stage: usize, needed: u128, recompute: Recompute) -> String {
    let units = Units::physical();
    format!(
        "stage {stage} needs {} of {} with recompute {recompute}",
        size(&units, needed),
        size(&units, u128::from(memory))
    )
}

fn judged(plan: &Plan) -> (Placement, Cost) {
    let placement = plan.answer.placement(plan.profile.n_layers());
    let placement = placement.expect("a checked plan holds every layer once");
    let cost = cost(&plan.profile, &plan.job, &placement);
    (placement, cost)
}

fn times(plan: &Plan, placement: &Placement, cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    let units = &plan.units;
    let batch = cost.time_per_batch;
    let line = |out: &mut dyn Write, what: &str, ticks: u128, note: &str| {
        let share = percent(ticks as f64 / batch as f64);
        writeln!(out, "  {what:<22}{:>12} {share:>8}  {note}", time(units, ticks))
    };
    writeln!(out, "time per batch          {:>12}  ({})", time(units, batch), plan.job.time_model)?;
    match plan.answer.simulated {
        None => writeln!(out, "simulated               not played: too many passes")?,
        Some(simulated) => {
            let ratio = simulated as f64 / batch as f64;
            let note = if u128::from(simulated) > batch {
                format!(
                    "{:.2} % MORE than the closed form: forward and backward are uneven",
                    (ratio - 1.0) * 100.0
                )
            } else {
                format!("{} of the closed form", percent(ratio))
            };
            writeln!(
                out,
                "simulated               {:>12}  {note}",
                time(units, u128::from(simulated))
            )?;
        }
    }
    let n_stages = cost.stages.len() as u128;
    let rounds = u128::from(cost.micro_batches);
    let average = |of: fn(&StageCost) -> u64| {
        rounds * cost.stages.iter().map(|stage| u128::from(of(stage))).sum::<u128>() / n_stages
    };
    let transfer = average(|stage| stage.transfer);
    let collectives = rounds
        * placement
            .pipeline
            .stages()
            .flatten()
            .map(|&layer| u128::from(plan.profile.layer(layer).collectives))
            .sum::<u128>()
        / n_stages;
    let work = rounds * cost.total_load / n_stages - transfer;
    let bubble = cost.bubble();
    if let Some(training) = &plan.training {
        let seconds = units.time(batch);
        let throughput = training.sequences_per_second(seconds);
        writeln!(
            out,
            "throughput              {:>12}  {} tokens/s",
            format!("{throughput:.4} seq/s"),
            grouped(tokens(throughput * training.sequence as f64)),
        )?;
        let mfu = percent(training.utilisation(seconds, cost.devices));
        let all = percent(training.utilisation(seconds, plan.job.devices));
        writeln!(out, "MFU                     {mfu:>12}  of the devices in use ({all} of all)")?;
    }
    writeln!(out, "of which, for the average stage")?;
    line(out, "layers", work, &format!("{} micro-batches", grouped(cost.micro_batches)))?;
    if collectives > 0 {
        line(
            out,
            "  of it exchanges",
            collectives,
            "among tensor-parallel devices, part of it hidden behind computation",
        )?;
    }
    line(out, "transfers", transfer, "between stages")?;
    line(out, "bubble", bubble, "waiting for other stages")?;
    let slowest_end = cost.stages.iter().max_by_key(|stage| stage.end());
    if let Some(stage) = slowest_end {
        line(out, "gradients", u128::from(stage.exchange), "among data-parallel devices")?;
        if stage.step > 0 {
            line(out, "optimizer", u128::from(stage.step), "")?;
        }
    }
    Ok(())
}

/// Whole tokens.
fn tokens(per_second: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive")]
    let whole = per_second.round() as u64;
    whole
}

/// One line per run of stages with the same layers and times; early ones keep more than late ones,
/// so memory is shown as a range.
fn stages(plan: &Plan, placement: &Placement, cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    let units = &plan.units;
    writeln!(
        out,
        "{:<9}{:>7}{:>12}{:>9}{:>11}{:>11}{:>12}{:>22}{:>22}",
        "stage", "layers", "ids", "devices", "forward", "backward", "parameters", "kept", "memory"
    )?;
    let held: Vec<&[usize]> = placement.pipeline.stages().collect();
    let kinds = |stage: usize| -> Vec<usize> {
        held[stage].iter().map(|&layer| plan.profile.sequence[layer]).collect()
    };
    let mut first = 0;
    while first < held.len() {
        let alike = |other: usize| {
            let (a, b) = (&cost.stages[first], &cost.stages[other]);
            kinds(other) == kinds(first) && (a.devices, a.time) == (b.devices, b.time)
        };
        let last = (first..held.len()).take_while(|&other| alike(other)).last().unwrap_or(first);
        let run = &cost.stages[first..=last];
        let stage = &run[0];
        let ids = held[first..=last].iter().flat_map(|layers| layers.iter());
        let ids: Vec<i64> = ids.map(|&layer| plan.profile.ids[layer]).collect();
        let span = |of: &dyn Fn(&Memory) -> u128| {
            let sizes = || run.iter().map(|stage| of(&stage.memory));
            let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
            let (least, most) = (size(units, least), size(units, most));
            if least == most { most } else { format!("{least} – {most}") }
        };
        let name = if first == last { format!("{first}") } else { format!("{first} – {last}") };
        writeln!(
            out,
            "{name:<9}{:>7}{:>12}{:>9}{:>11}{:>11}{:>12}{:>22}{:>22}",
            held[first].len(),
            runs(&ids),
            stage.devices,
            time(units, u128::from(stage.time.forward)),
            time(units, u128::from(stage.time.backward)),
            span(&|memory| memory.total() - memory.activations),
            span(&|memory| memory.activations),
            span(&Memory::total),
        )?;
        first = last + 1;
    }
    let fullest = cost.stages.iter().map(|stage| stage.memory.total()).max().unwrap_or(0);
    let share = fullest as f64 / plan.job.memory as f64;
    writeln!(
        out,
        "A device has {}; the fullest uses {} of it. Parameters are weights, gradients and optimizer state.",
        size(units, u128::from(plan.job.memory)),
        percent(share)
    )
}

/// Ids as ranges: `-1 – 3` or `2, 5, 7`.
fn runs(ids: &[i64]) -> String {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for id in sorted {
        match parts.last_mut() {
            Some(part) if part.1.checked_add(1) == Some(id) => part.1 = id,
            _ => parts.push((id, id)),
        }
    }
    let shown = parts
        .iter()
        .take(3)
        .map(|&(from, to)| if from == to { from.to_string() } else { format!("{from} – {to}") });
    let more = if parts.len() > 3 { ", …" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

/// Why the plan is believed to be the best.
pub fn proof(plan: &Plan) -> String {
    match &plan.proof {
        Proof::Given => "The strategy was given: nothing is claimed of others.".into(),
        Proof::Optimal { widths, recompute, micro_batch_sizes } => {
            let list = |numbers: &[u64]| {
                numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            let micro_batches = if micro_batch_sizes.is_empty() {
                String::new()
            } else {
                format!(", micro-batch {}", list(micro_batch_sizes))
            };
            let recompute: Vec<String> = recompute.iter().map(ToString::to_string).collect();
            format!(
                "Proved: no other placement is faster, over every number of pipelines and stages \
                 and every cut, width {}, recompute {}{micro_batches}. It is optimal within this \
                 model and these strategies.",
                list(widths),
                recompute.join(", ")
            )
        }
    }
}

/// What a check found.
pub fn verdict(file: &str, plan: &Plan, solved: bool, out: &mut dyn Write) -> io::Result<()> {
    let (placement, cost) = judged(plan);
    writeln!(out, "{file}: holds")?;
    writeln!(out, "  {}", headline(plan, &placement, &cost))?;
    let batch = time(&plan.units, cost.time_per_batch);
    writeln!(
        out,
        "  every layer once, no edge back, every stage fits, and a batch takes {batch}, as claimed"
    )?;
    let rests = match (&plan.question, solved) {
        (Some(_), _) => "operators, schedules, memory and profile rebuilt from the question",
        (None, _) => "times and sizes of the layers are taken from the profile in the file",
    };
    writeln!(out, "  {rests}")?;
    match (&plan.proof, solved) {
        (Proof::Given, _) => {
            writeln!(out, "  the strategy was given: nothing is claimed of others")
        }
        (Proof::Optimal { .. }, true) => {
            writeln!(out, "  the solvers were asked again and found nothing faster")
        }
        (Proof::Optimal { .. }, false) => writeln!(
            out,
            "Not checked, because it needs a solver (`--deep` does): that no strategy, mapping or \
             schedule is faster"
        ),
    }
}

/// The plan for programs, in the plan's own units.
pub fn value(plan: &Plan) -> Value {
    let (placement, cost) = judged(plan);
    let units = &plan.units;
    let ticks = |ticks: u64| units.time(u128::from(ticks));
    let stages: Vec<Value> = placement
        .pipeline
        .stages()
        .zip(&cost.stages)
        .map(|(layers, stage)| {
            let ids: Vec<i64> = layers.iter().map(|&layer| plan.profile.ids[layer]).collect();
            json!({
                "layers": ids,
                "devices": stage.devices,
                "load": ticks(stage.time.load()),
                "forward": ticks(stage.time.forward),
                "backward": ticks(stage.time.backward),
                "transfer": ticks(stage.transfer),
                "memory": units.size(stage.memory.total()),
                "memory_parts": memory_value(units, &stage.memory),
                "exchange": ticks(stage.exchange),
                "optimizer_step": ticks(stage.step),
            })
        })
        .collect();
    let mut value = json!({
        "feasible": true,
        "name": plan.name,
        "time_per_batch": units.time(cost.time_per_batch),
        "simulated_time_per_batch": plan.answer.simulated.map(ticks),
        "time_model": plan.job.time_model,
        "data_parallel": placement.data_parallel,
        "tensor_parallel": plan.profile.width,
        "pipeline_stages": placement.pipeline.n_stages(),
        "recompute": placement.recompute,
        "micro_batches_per_pipeline": cost.micro_batches,
        "devices": cost.devices,
        "devices_left_over": plan.job.devices - cost.devices,
        "bubble": units.time(cost.bubble()),
        "stages": stages,
        "proof": plan.proof,
    });
    if let Some(training) = &plan.training {
        let seconds = units.time(cost.time_per_batch);
        let throughput = training.sequences_per_second(seconds);
        value["micro_batch"] = json!(training.micro_batch);
        value["global_batch"] = json!(training.global_batch);
        value["design"] = json!(training.design);
        value["sequences_per_second"] = json!(throughput);
        value["tokens_per_second"] = json!(throughput * training.sequence as f64);
        value["mfu"] = json!(training.utilisation(seconds, cost.devices));
        value["mfu_of_all_devices"] = json!(training.utilisation(seconds, plan.job.devices));
    }
    value
}

fn memory_value(units: &Units, memory: &Memory) -> Value {
    json!({
        "weights": units.size(memory.weights),
        "gradients": units.size(memory.gradients),
        "optimizer_state": units.size(memory.optimizer_state),
        "activations": units.size(memory.activations),
    })
}

/// An answer that there is none, for programs.
pub fn infeasible(name: &str, reason: &str) -> Value {
    json!({ "feasible": false, "name": name, "reason": reason })
}

/// Why nothing fits: the limit that comes closest to being kept.
pub fn reason<'a>(
    units: &Units,
    obstacles: impl Iterator<Item = (&'a Problem<'a>, Obstacle)>,
) -> String {
    let closest = obstacles.min_by_key(|(_, obstacle)| match obstacle {
        Obstacle::Devices { needed: Some(needed) } => (0, u128::from(*needed)),
        Obstacle::Devices { needed: None } => (1, 0),
        Obstacle::Layer { needed, .. } => (2, *needed),
    });
    let Some((problem, obstacle)) = closest else { return "there is nothing to place".into() };
    let (width, available) = (problem.profile.width, problem.job.memory);
    match obstacle {
        Obstacle::Layer { layer, needed } => format!(
            "layer {} alone needs {} of {} at width {width}",
            problem.profile.ids[layer],
            size(units, needed),
            size(units, u128::from(available))
        ),
        Obstacle::Devices { needed: Some(needed) } => format!(
            "one pipeline takes at least {} devices at width {width} with recompute {}, there are {}",
            grouped(needed),
            problem.recompute,
            grouped(problem.job.devices)
        ),
        Obstacle::Devices { needed: None } => format!(
            "every layer fits alone in {} at width {width}, but no pipeline does with recompute {}: \
             a stage also keeps what the micro-batches in flight need",
            size(units, u128::from(available)),
            problem.recompute
        ),
    }
}

/// Ticks in the plan's unit.
pub fn time(units: &Units, ticks: u128) -> String {
    let value = units.time(ticks);
    if units.time == "s" { quantity::si(value, "s") } else { plain(value) }
}

/// A size in the plan's unit.
pub fn size(units: &Units, size: u128) -> String {
    if units.size == "byte" {
        return quantity::bytes(Bytes(u64::try_from(size).unwrap_or(u64::MAX)));
    }
    plain(units.size(size))
}

/// Six significant digits.
fn plain(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e9).contains(&value) {
        return format!("{value:.5e}");
    }
    let whole = value.abs().max(1.0).log10().floor();
    let decimals = (5.0 - whole).clamp(0.0, 9.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 0 to 9")]
    let text = format!("{value:.*}", decimals as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_stage_that_would_recompute_stages_repeats_nothing_and_says_so() {
        let line = |stages| strategy((4, stages, 1), Some(2), Recompute::Stage);
        assert!(line(1).ends_with("recompute stage (nothing: the last stage is the only one)"));
        assert!(line(2).ends_with("recompute stage"));
    }
}
