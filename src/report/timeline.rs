//! The timeline of a batch, one row per stage, for `ui.perfetto.dev`.

use serde_json::Value;
use serde_json::json;

use crate::plan::Event;
use crate::plan::Plan;
use crate::plan::cost;
use crate::plan::simulate;

/// More passes than this make a trace that no viewer opens.
pub const MOST_PASSES: usize = 2_000_000;

/// A trace of one pipeline of the plan; `None` where there are too many passes to show.
pub fn trace(plan: &Plan) -> Option<String> {
    let placement = plan.answer.placement(plan.profile.n_layers())?;
    let cost = cost(&plan.profile, &plan.job, &placement);
    let n_passes = 2 * cost.stages.len() as u128 * u128::from(cost.micro_batches);
    if n_passes > MOST_PASSES as u128 {
        return None;
    }
    let mut events: Vec<Event> = Vec::new();
    let simulation = simulate(&cost, |event| events.push(event))?;
    let mut rows: Vec<Value> = Vec::new();
    rows.push(json!({ "ph": "M", "pid": 0, "name": "process_name",
        "args": { "name": format!("{}: one of {} pipelines", plan.name, placement.data_parallel) } }));
    for (stage, layers) in placement.pipeline.stages().enumerate() {
        let name = format!("stage {stage} ({} layers)", layers.len());
        rows.push(json!({ "ph": "M", "pid": 0, "tid": stage, "name": "thread_name", "args": { "name": name } }));
        rows.push(json!({ "ph": "M", "pid": 0, "tid": stage, "name": "thread_sort_index",
            "args": { "sort_index": stage } }));
    }
    // Viewers count microseconds; a profile's own unit is shown as if it were a second.
    let microseconds = |ticks: u64| plan.units.time(u128::from(ticks)) * 1e6;
    let span = |stage: usize, name: &str, category: &str, start: u64, end: u64| {
        json!({ "ph": "X", "pid": 0, "tid": stage, "name": name, "cat": category,
                "ts": microseconds(start), "dur": microseconds(end - start) })
    };
    for event in events {
        let (letter, category) = if event.backward { ("B", "backward") } else { ("F", "forward") };
        let name = format!("{letter}{}", event.micro_batch);
        rows.push(span(event.stage, &name, category, event.start, event.end));
    }
    for (stage, (&at, held)) in simulation.finished.iter().zip(&cost.stages).enumerate() {
        let exchanged = at + held.exchange;
        for (name, start, end) in
            [("gradients", at, exchanged), ("optimizer", exchanged, exchanged + held.step)]
        {
            if end > start {
                rows.push(span(stage, name, name, start, end));
            }
        }
    }
    let mut text = String::from("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (i, row) in rows.iter().enumerate() {
        text.push_str(&row.to_string());
        text.push_str(if i + 1 < rows.len() { ",\n" } else { "\n" });
    }
    text.push_str("]}\n");
    Some(text)
}
