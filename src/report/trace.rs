//! A schedule as a Chrome trace, which ui.perfetto.dev and `chrome://tracing` open: one row per core.

use serde_json::Value;
use serde_json::json;

use super::schedule::View;
use crate::model::op::CoreKind;

/// Rows of a kind beyond which spread work is drawn on one row of its own.
const MOST_CORES: u32 = 64;

/// A trace of such events.
pub fn whole(events: &[Value]) -> Value {
    json!({ "displayTimeUnit": "ns", "traceEvents": events })
}

/// A schedule's events; its groups of rows are numbered from `first_group` on, and `microseconds`
/// turns ticks into the format's unit.
pub fn events(view: &View, first_group: u64, microseconds: &dyn Fn(u64) -> f64) -> Vec<Value> {
    let mut events = Vec::new();
    let cores = view.problem.cores;
    let of = |name: &str| match view.title {
        Some(title) => format!("{name}, {title}"),
        None => name.to_owned(),
    };
    let kinds = [
        (first_group, of("tensor cores"), CoreKind::Tensor, cores.tensor),
        (first_group + 1, of("vector cores"), CoreKind::Vector, cores.vector),
        (first_group + 2, of("network"), CoreKind::Network, 1),
    ];
    for (process, name, kind, n_cores) in kinds {
        events.push(json!({
            "ph": "M", "pid": process, "name": "process_name", "args": { "name": name },
        }));
        for task in 0..view.names.len() {
            let start = view.schedule.runs[task].start;
            if start == view.end(task) {
                continue;
            }
            for row in rows(view, task, kind, n_cores) {
                events.push(json!({
                    "ph": "X",
                    "pid": process,
                    "tid": row,
                    "name": view.names[task],
                    "cat": if kind == CoreKind::Network { "collective" } else { "compute" },
                    "ts": microseconds(start),
                    "dur": microseconds(view.end(task) - start),
                    "args": { "spread": view.schedule.runs[task].spread },
                }));
            }
        }
        let mut used: Vec<u64> = events
            .iter()
            .filter(|event| event["ph"] == "X" && event["pid"] == process)
            .filter_map(|event| event["tid"].as_u64())
            .collect();
        used.sort_unstable();
        used.dedup();
        for row in used {
            let name = match (kind, row) {
                (CoreKind::Network, _) => "network".to_owned(),
                (_, 0) => "all cores".to_owned(),
                _ => format!("core {}", row - 1),
            };
            events.push(json!({
                "ph": "M", "pid": process, "tid": row, "name": "thread_name",
                "args": { "name": name },
            }));
        }
    }
    events
}

/// The rows on which a task is drawn: row 0 is "all cores", row `c + 1` is core `c`.
fn rows(view: &View, task: usize, kind: CoreKind, n_cores: u32) -> Vec<u64> {
    let (core, run) = (view.problem.tasks.nodes()[task].core, view.schedule.runs[task]);
    let one = match kind {
        CoreKind::Tensor if matches!(core, CoreKind::Tensor | CoreKind::Both) => run.tensor,
        CoreKind::Vector if matches!(core, CoreKind::Vector | CoreKind::Both) => run.vector,
        CoreKind::Network if core == CoreKind::Network => Some(0),
        _ => return Vec::new(),
    };
    match one {
        Some(core) => vec![u64::from(core) + 1],
        None if n_cores <= MOST_CORES => (1..=u64::from(n_cores)).collect(),
        None => vec![0],
    }
}
