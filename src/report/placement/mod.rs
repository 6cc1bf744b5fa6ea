//! A plan for people and for programs.
//!
//! [`text`](text::text) and [`value`](value::value) tell a whole plan; both say where its time goes
//! ([`parts`]), what fills its memory ([`memory`]) and what is proved of it ([`mod@proof`]).

#[cfg(test)]
mod example;
pub mod memory;
pub mod parts;
mod proof;
mod ranks;
mod text;
mod value;

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::quantity;
use super::quantity::grouped;
use super::quantity::shown;
use crate::placement::Obstacle;
use crate::placement::Problem;
use crate::plan::Cost;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Recompute;
use crate::plan::Strategy;
use crate::plan::Units;
use crate::plan::cost;
use crate::units::Bytes;
#[cfg(test)]
pub(in crate::report) use example::example;
pub use proof::described;
pub use proof::proof;
pub use proof::verdict;
pub use text::text;
pub use value::value;

/// The strategy in one line, with what is placed and how many devices it takes.
pub fn headline(plan: &Plan, placement: &Placement, cost: &Cost) -> String {
    let idle = plan.job.devices - cost.devices;
    let leftover =
        if idle == 0 { String::new() } else { format!(" ({} left over)", grouped(idle)) };
    let design =
        plan.training.as_ref().map_or_else(String::new, |t| format!(" on {}", shown(&t.design)));
    format!(
        "{}{design}: {}; {} of {} devices{leftover}",
        shown(&plan.name),
        sentence(plan, placement, cost),
        grouped(cost.devices),
        grouped(plan.job.devices),
    )
}

/// The strategy as a planner says it; of layers that are repeated as needed, how many are.
pub fn sentence(plan: &Plan, placement: &Placement, cost: &Cost) -> String {
    let Some(training) = &plan.training else {
        let nothing = match (placement.recompute, placement.ranks()) {
            (Recompute::Stage, 1) => " (nothing: the last stage is the only one)",
            _ => "",
        };
        return format!(
            "TP {} x PP {} x DP {}, recompute {}{nothing}",
            plan.profile.width,
            placement.ranks(),
            placement.data_parallel,
            placement.recompute
        );
    };
    let strategy = training.strategy;
    let repeated: usize = cost.stages.iter().map(|stage| stage.repeated).sum();
    let repeatable = plan.profile.layers().filter(|layer| layer.repeatable).count();
    match strategy.recompute {
        Recompute::AsNeeded | Recompute::First(_) if repeated == 0 => {
            Strategy { recompute: Recompute::None, ..strategy }.to_string()
        }
        Recompute::AsNeeded if repeated == repeatable => {
            Strategy { recompute: Recompute::EVERY_LAYER, ..strategy }.to_string()
        }
        Recompute::AsNeeded => {
            format!("{strategy} ({} of {})", grouped(repeated as u64), grouped(repeatable as u64))
        }
        _ => strategy.to_string(),
    }
}

/// The strategy of a plan as a planner says it.
pub fn strategy(plan: &Plan) -> String {
    let (placement, cost) = judged(plan);
    sentence(plan, &placement, &cost)
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
            None => writeln!(out, "  {title:<34}nothing fits")?,
            Some((ticks, line)) => {
                let ratio = plan.map_or_else(String::new, |plan| {
                    let ratio = *ticks as f64 / plan.answer.time_per_batch as f64;
                    format!("{ratio:.3} x")
                });
                writeln!(out, "  {title:<34}{:>10}{ratio:>11}  {line}", time(&units, *ticks))?;
            }
        }
    }
    Ok(())
}

/// That a rank of a given strategy needs more than plans may fill of a device.
pub fn overflow(memory: u64, rank: usize, needed: u128, recompute: Recompute) -> String {
    let units = Units::physical();
    format!(
        "rank {rank} needs {} of {} with recompute {recompute}",
        size(&units, needed),
        size(&units, u128::from(memory))
    )
}

pub(in crate::report) fn judged(plan: &Plan) -> (Placement, Cost) {
    let placement = plan.answer.placement(plan.profile.n_layers());
    let placement = placement.expect("a checked plan holds every layer once");
    let cost = cost(&plan.profile, &plan.job, &placement);
    (placement, cost)
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
    let recompute: Vec<String> =
        problem.choices.recompute.iter().map(ToString::to_string).collect();
    let recompute = recompute.join(" or ");
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
            recompute,
            grouped(problem.job.devices)
        ),
        Obstacle::Devices { needed: None } => format!(
            "every layer fits alone in {} at width {width}, but no pipeline does with recompute {}: \
             a rank also keeps what the micro-batches in flight need",
            size(units, u128::from(available)),
            recompute
        ),
    }
}

/// Why nothing fits where there are fewer devices than any strategy needs.
pub fn too_few_devices(fewest: u64, devices: u64, recompute: &[Recompute]) -> String {
    let recompute: Vec<String> = recompute.iter().map(ToString::to_string).collect();
    format!(
        "training takes at least {} devices with recompute {}, there are {}",
        grouped(fewest),
        recompute.join(" or "),
        grouped(devices)
    )
}

/// Ticks in the plan's unit.
pub fn time(units: &Units, ticks: u128) -> String {
    let value = units.time(ticks);
    if units.time == "s" { quantity::span(value) } else { plain(value) }
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
    fn figures_of_a_profile_have_six_digits() {
        let cases = [(0.0, "0"), (1.5, "1.5"), (123_456.7, "123457"), (2e-9, "2.00000e-9")];
        for (value, said) in cases {
            assert_eq!(plain(value), said);
        }
    }
}
