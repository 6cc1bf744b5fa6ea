//! The blocks of a plan: whether it fits, how it is launched, how fast it is, what the run takes,
//! where the time goes.

use std::io;
use std::io::Write;

use super::figures;
use super::title;
use crate::advise::Advice;
use crate::advise::Assumed;
use crate::model::Axis;
use crate::plan::Basis;
use crate::plan::Cost;
use crate::plan::Plan;
use crate::plan::Training;
use crate::report::basis;
use crate::report::placement::judged;
use crate::report::placement::memory;
use crate::report::placement::parts::TimeParts;
use crate::report::placement::sentence;
use crate::report::quantity::grouped;
use crate::report::quantity::percent;
use crate::report::quantity::si;
use crate::units::Bytes;

/// Columns of a block's name.
const NAME: usize = 9;

/// A line of a block.
pub(super) fn line(out: &mut dyn Write, name: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{name:<NAME$}{text}")
}

/// The plan with what it means, all but what is beside it.
pub fn write(advice: &Advice, out: &mut dyn Write) -> io::Result<()> {
    let plan = &advice.plan;
    let (placement, cost) = judged(plan);
    writeln!(out, "{}", title(advice))?;
    for remark in &advice.remarks {
        writeln!(out, "{remark}")?;
    }
    line(out, "RESTS ON", &rests_on(plan))?;
    line(out, "FITS", &fits(advice, &cost))?;
    line(out, "LAUNCH", &sentence(plan, &placement, &cost))?;
    line(out, "SPEED", &speed(advice).join(", "))?;
    line(out, "RUN", &run(advice).join(", "))?;
    line(out, "", &assumed(advice))?;
    line(out, "WHERE", &shares(plan).join(", "))
}

/// What times rest on.
fn rests_on(plan: &Plan) -> String {
    basis::words(plan.training.as_ref().and_then(|training| training.basis.as_ref()))
}

fn gib(bytes: u128) -> f64 {
    bytes as f64 / Bytes::GIB.0 as f64
}

/// What fills the fullest device, and on how many devices the model fits.
fn fits(advice: &Advice, cost: &Cost) -> String {
    let job = &advice.plan.job;
    let needed = memory::fullest(cost).map_or(0, |(_, memory)| memory.total());
    let (installed, usable) = (u128::from(job.installed), u128::from(job.memory));
    let reserve = installed.saturating_sub(usable);
    let filled = format!(
        "{:.1} of {:.1} GiB on the fullest device (reserve {:.1}, head-room {:.1})",
        gib(needed),
        gib(installed),
        gib(reserve),
        gib(usable.saturating_sub(needed))
    );
    let beyond = if needed > usable { ", beyond what is to be left free" } else { "" };
    let room = advice.room.map_or_else(String::new, |room| {
        let [fewest, comfortable] = [room.fewest, room.comfortable].map(grouped);
        format!("; at least {fewest} devices, comfortable {comfortable}")
    });
    format!("{filled}{beyond}{room}")
}

/// How fast it is: tokens and operations of each device, utilisation, seconds of a batch.
pub(super) fn speed(advice: &Advice) -> Vec<String> {
    let plan = &advice.plan;
    let Some(training) = &plan.training else { return Vec::new() };
    let seconds = plan.units.time(plan.answer.time_per_batch);
    let devices = plan.job.devices;
    let rate = |seconds: f64| {
        let tokens = training.sequences_per_second(seconds) * training.sequence as f64;
        grouped(figures::whole(tokens / devices as f64))
    };
    let interval = interval(training).map_or_else(String::new, |[low, high]| {
        format!(" (80 %: {} to {})", rate(seconds * high), rate(seconds * low))
    });
    let mfu = training.utilisation(seconds, devices);
    let peak = training.peak_flops_per_second as f64;
    vec![
        format!("{} tokens/s/GPU{interval}", rate(seconds)),
        format!("{}/GPU", si(mfu * peak, "FLOP/s")),
        format!("MFU {}", percent(mfu)),
        format!("{} per batch", figures::duration(seconds)),
    ]
}

/// Measured over predicted time between which four of five runs lie, where that is known.
pub(super) fn interval(training: &Training) -> Option<[f64; 2]> {
    match &training.basis {
        Some(Basis::Calibrated { interval_per_mille: Some([low, high]), .. }) => {
            Some([f64::from(*low) / 1000.0, f64::from(*high) / 1000.0])
        }
        _ => None,
    }
}

/// What the run takes.
pub(super) fn run(advice: &Advice) -> Vec<String> {
    let run = &advice.run;
    let economics = &advice.economics;
    let mut parts = vec![
        figures::tokens(economics.tokens.value),
        format!("{} steps", grouped(run.steps)),
        figures::duration(run.seconds),
        format!("{} GPU-hours", figures::three(run.device_hours)),
    ];
    parts.extend(run.dollars.map(figures::dollars));
    parts.extend(run.kwh.map(figures::energy));
    parts.extend(run.kg_co2e.map(figures::carbon));
    parts.push(format!("checkpoint {}", figures::disk(run.checkpoint_bytes)));
    let goodput = economics.goodput_per_mille.value as f64 / 1000.0;
    parts.push(format!("at {} goodput", percent(goodput)));
    parts
}

/// What the run is counted with that nobody gave.
fn assumed(advice: &Advice) -> String {
    let economics = &advice.economics;
    let thousandths = |value: u64| value as f64 / 1000.0;
    let mut said = Vec::new();
    let mut add = |what: String, from: Option<&Assumed>| {
        if let Some(assumed) = from.filter(|assumed| assumed.source != "given") {
            said.push(format!("{what}: {}", assumed.source));
        }
    };
    add("tokens".into(), Some(&economics.tokens));
    if let Some(price) = &economics.price {
        add(format!("${:.2}/h", thousandths(price.value)), Some(price));
    }
    add("goodput".into(), Some(&economics.goodput_per_mille));
    if let Some(watts) = &economics.watts {
        add(format!("{} W of a device", watts.value), Some(watts));
    }
    if let Some(host) = &economics.host_watts {
        add(format!("{} W of its host", host.value), Some(host));
    }
    let pue = &economics.pue_per_mille;
    add(format!("PUE {}", thousandths(pue.value)), Some(pue));
    let grams = &economics.grams_per_kwh;
    add(format!("{} g/kWh", grams.value), Some(grams));
    if economics.host_watts.is_none() && economics.watts.is_some() {
        said.push("no power of hosts is known: give --host-watts".into());
    }
    if economics.price.is_none() {
        said.push("no price is known: give --price".into());
    }
    if said.is_empty() { "everything as given".into() } else { said.join("; ") }
}

/// Where the time goes, as shares of it.
pub(super) fn shares(plan: &Plan) -> Vec<String> {
    let total = plan.answer.time_per_batch as f64;
    let told =
        |(name, ticks): &(String, u128)| format!("{name} {}", percent(*ticks as f64 / total));
    where_parts(plan).iter().filter(|(_, ticks)| *ticks > 0).map(told).collect()
}

/// The time of a batch by what it goes to; the parts sum to it.
pub(super) fn where_parts(plan: &Plan) -> Vec<(String, u128)> {
    let (placement, cost) = judged(plan);
    let parts = TimeParts::of(plan, &placement, &cost);
    let mut said = computing(plan, parts.layers);
    said.push(("recompute".into(), parts.recompute));
    for (axis, part) in Axis::ALL.into_iter().zip(parts.by_axis) {
        said.push((format!("exposed {} exchange", axis.name().replace('_', "-")), part.exposed));
    }
    said.extend([
        ("waiting for weights".into(), parts.weights),
        ("transfers".into(), parts.transfers),
        ("fill and drain".into(), parts.fill_and_drain),
        ("imbalance".into(), parts.imbalance),
        ("gradients".into(), parts.gradients.exposed),
        ("optimizer".into(), parts.step),
        ("weight gathering".into(), parts.gathering.exposed),
    ]);
    said
}

/// The passes of layers by what they do: attention's core, other matmuls, the rest, in proportion to
/// what operators take by themselves.
fn computing(plan: &Plan, ticks: u128) -> Vec<(String, u128)> {
    let mut sums = [0.0_f64; 3];
    for layer in &plan.layers {
        let operators = layer.forward.operators.iter().chain(&layer.backward.operators);
        for op in operators.filter(|op| op.core != "network") {
            let is_core = op.name.starts_with("scores") || op.name.starts_with("context");
            let place = if is_core { 1 } else { usize::from(op.matmul.is_none()) * 2 };
            sums[place] += (op.end_s - op.start_s) * layer.count as f64;
        }
    }
    let all: f64 = sums.iter().sum();
    if all <= 0.0 {
        return vec![("layers".into(), ticks)];
    }
    let part = |sum: f64| u128::from(figures::whole(ticks as f64 * sum / all)).min(ticks);
    let (attention, vector) = (part(sums[1]), part(sums[2]));
    let matmul = ticks.saturating_sub(attention + vector);
    vec![
        ("matmul".into(), matmul),
        ("attention".into(), attention),
        ("norms and other vector work".into(), vector),
    ]
}

/// The command that starts the plan, or why there is none.
pub fn command(advice: &Advice, out: &mut dyn Write) -> io::Result<()> {
    match &advice.launch {
        Err(reason) => line(out, "$", &format!("no command: {reason}")),
        Ok(files) => {
            for file in files {
                if file.name == "run.sh" {
                    let commands = file.text.lines().filter(|line| !line.starts_with('#'));
                    let commands = commands.filter(|line| !line.starts_with("set -"));
                    for (at, line) in commands.enumerate() {
                        writeln!(out, "{}{line}", if at == 0 { "$ " } else { "  " })?;
                    }
                } else {
                    writeln!(out, "$ cat {}", file.name)?;
                    write!(out, "{}", file.text)?;
                }
            }
            Ok(())
        }
    }
}
