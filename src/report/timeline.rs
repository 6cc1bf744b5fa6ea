//! The timeline of a batch, one row per rank, for `ui.perfetto.dev`.

use serde_json::Value;
use serde_json::json;

use super::course;
use super::course::Doing;
use super::course::letter;
use crate::plan::Plan;
use crate::plan::cost;

/// More passes than this make a trace that no viewer opens.
pub const MOST_PASSES: usize = 2_000_000;

/// What the names of a trace mean. Viewers choose a colour for each name without its numbers, so
/// chunks are told apart by letters.
const LEGEND: &str = "F forward and B backward pass of a micro-batch; letters are chunks; \
                      gradients: exchange after the last pass; optimizer: step; weights: gathering; \
                      bubble: waiting";

/// A trace of one pipeline of the plan; `None` where there are too many passes to show.
pub fn trace(plan: &Plan) -> Option<String> {
    let placement = plan.answer.placement(plan.profile.n_layers())?;
    let cost = cost(&plan.profile, &plan.job, &placement);
    let n_passes = 2 * cost.stages.len() as u128 * u128::from(cost.micro_batches);
    if n_passes > MOST_PASSES as u128 {
        return None;
    }
    let (n_ranks, chunks) = (cost.ranks.len(), placement.schedule.chunks());
    let mut rows: Vec<Value> = Vec::new();
    rows.push(json!({ "ph": "M", "pid": 0, "name": "process_name",
        "args": { "name": format!("{}: one of {} pipelines", plan.name, placement.data_parallel) } }));
    rows.push(
        json!({ "ph": "M", "pid": 0, "name": "process_labels", "args": { "labels": LEGEND } }),
    );
    let layers: Vec<usize> = placement.pipeline.stages().map(<[usize]>::len).collect();
    for rank in 0..n_ranks {
        let held: usize = layers.iter().skip(rank).step_by(n_ranks).sum();
        let of = if chunks > 1 { format!(" in {chunks} chunks") } else { String::new() };
        let name = format!("rank {rank} ({held} layers{of})");
        rows.push(json!({ "ph": "M", "pid": 0, "tid": rank, "name": "thread_name", "args": { "name": name } }));
        rows.push(json!({ "ph": "M", "pid": 0, "tid": rank, "name": "thread_sort_index",
            "args": { "sort_index": rank } }));
    }
    // Viewers count microseconds; a profile's own unit is shown as if it were a second.
    let microseconds = |ticks: u64| plan.units.time(u128::from(ticks)) * 1e6;
    course::play(plan, &placement, &cost, u64::MAX, |span| {
        let (name, category) = named(span.doing, chunks);
        rows.push(json!({ "ph": "X", "pid": 0, "tid": span.rank, "name": name, "cat": category,
            "ts": microseconds(span.start), "dur": microseconds(span.end - span.start) }));
    })?;
    let mut text = String::from("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (i, row) in rows.iter().enumerate() {
        text.push_str(&row.to_string());
        text.push_str(if i + 1 < rows.len() { ",\n" } else { "\n" });
    }
    text.push_str("]}\n");
    Some(text)
}

/// The name of what a rank does, and its category.
fn named(doing: Doing, chunks: usize) -> (String, &'static str) {
    let pass = |direction: char, micro_batch: u64, chunk: usize| match chunks {
        1 => format!("{direction}{micro_batch}"),
        _ => format!("{direction}{micro_batch}{}", letter(chunk)),
    };
    match doing {
        Doing::Forward { micro_batch, chunk } => (pass('F', micro_batch, chunk), "forward"),
        Doing::Backward { micro_batch, chunk } => (pass('B', micro_batch, chunk), "backward"),
        Doing::Exchange => ("gradients".into(), "gradients"),
        Doing::Step => ("optimizer".into(), "optimizer"),
        Doing::Gather => ("weights".into(), "weights"),
        Doing::Idle => ("bubble".into(), "bubble"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::placement::example;

    #[test]
    fn every_pass_of_every_chunk_is_in_the_trace() {
        for (interleaved, name) in [(false, "B3"), (true, "F3b")] {
            let plan = example(interleaved);
            let trace: Value = serde_json::from_str(&trace(&plan).unwrap()).unwrap();
            let events = trace["traceEvents"].as_array().unwrap();
            let of = |category: &str| events.iter().filter(|e| e["cat"] == category).count() as u64;
            let each = plan.job.micro_batches_per_pipeline(plan.answer.data_parallel);
            let passes = each * plan.answer.stages.len() as u64;
            assert_eq!((of("forward"), of("backward")), (passes, passes));
            assert!(of("bubble") > 0);
            assert!(events.iter().any(|event| event["name"] == name));
        }
    }
}
