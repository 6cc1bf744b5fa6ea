//! Everything of a plan and what is beside it for programs.

use serde_json::Value;
use serde_json::json;

use super::text;
use crate::advise::Advice;
use crate::advise::Assumed;
use crate::advise::Curve;
use crate::advise::Found;
use crate::advise::Row;
use crate::advise::RunFigures;
use crate::advise::WayOut;
use crate::report::placement;

/// The plan, what it means, and what stands beside it.
pub fn value(advice: &Advice, next: &[Row], what_if: &[Row]) -> Value {
    let plan = &advice.plan;
    let seconds = |ticks: u128| plan.units.time(ticks);
    let parts = text::where_parts(plan).into_iter();
    let parts = parts.map(|(name, ticks)| (name.replace([' ', '-'], "_"), json!(seconds(ticks))));
    let economics = &advice.economics;
    json!({
        "feasible": true,
        "command": advice.command,
        "remarks": advice.remarks,
        "parameters": advice.parameters,
        "devices_per_node": advice.per_node,
        "plan": placement::value(plan),
        "fits": advice.room.map(|room| json!({
            "fewest_devices": room.fewest,
            "comfortable_devices": room.comfortable,
        })),
        "interval_80": plan.training.as_ref().and_then(text::interval),
        "where_s": Value::Object(parts.collect()),
        "run": run(&advice.run),
        "counted_with": {
            "tokens": assumed(Some(&economics.tokens), 1.0),
            "price_usd_per_hour": assumed(economics.price.as_ref(), 1e3),
            "goodput": assumed(Some(&economics.goodput_per_mille), 1e3),
            "watts": assumed(economics.watts.as_ref(), 1.0),
            "host_watts": assumed(economics.host_watts.as_ref(), 1.0),
            "pue": assumed(Some(&economics.pue_per_mille), 1e3),
            "g_per_kwh": assumed(Some(&economics.grams_per_kwh), 1.0),
        },
        "next": next.iter().map(row).collect::<Vec<_>>(),
        "what_if": what_if.iter().map(row).collect::<Vec<_>>(),
        "launch": launch(advice),
    })
}

/// The files that start a plan, or why there are none.
pub fn launch(advice: &Advice) -> Value {
    match &advice.launch {
        Err(reason) => json!({ "for": advice.target.name(), "refused": reason.to_string() }),
        Ok(files) => {
            let files = files.iter().map(|file| (file.name.to_owned(), json!(file.text)));
            json!({
                "for": advice.target.name(),
                "version": advice.target.version(),
                "files": Value::Object(files.collect()),
            })
        }
    }
}

fn assumed(assumed: Option<&Assumed>, small: f64) -> Value {
    match assumed {
        None => Value::Null,
        Some(Assumed { value, source }) => {
            json!({ "value": *value as f64 / small, "source": source })
        }
    }
}

fn run(run: &RunFigures) -> Value {
    json!({
        "steps": run.steps,
        "seconds": run.seconds,
        "device_hours": run.device_hours,
        "dollars": run.dollars,
        "kwh": run.kwh,
        "kg_co2e": run.kg_co2e,
        "checkpoint_bytes": run.checkpoint_bytes,
    })
}

fn found(found: &Found) -> Value {
    json!({
        "devices": found.devices,
        "strategy": found.strategy,
        "time_per_batch": found.seconds_per_batch,
        "run": run(&found.run),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "title": row.title,
        "found": row.found.as_ref().map(found),
        "command": row.command,
    })
}

/// A curve for programs.
pub fn curve(curve: &Curve) -> Value {
    let points = curve
        .points
        .iter()
        .map(|point| json!({ "devices": point.devices, "found": point.found.as_ref().map(found) }));
    json!({
        "points": points.collect::<Vec<_>>(),
        "knee": curve.knee(),
        "deadline_s": curve.deadline,
        "cheapest": curve.cheapest(),
    })
}

/// That nothing fits, and what was tried and works, for programs.
pub fn infeasible(name: &str, reason: &str, ways_out: &[WayOut]) -> Value {
    let ways = ways_out
        .iter()
        .map(|way| json!({ "title": way.title, "strategy": way.strategy, "command": way.command }));
    let mut value = placement::infeasible(name, reason);
    value["ways_out"] = json!(ways.collect::<Vec<_>>());
    value
}
