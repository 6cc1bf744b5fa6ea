//! Data that no cluster ever measured: times that lie on a line exactly.

use super::Run;

/// Runs closer to a line than this part of their time were computed, not measured.
const TOO_CLOSE: f64 = 1e-4;

/// Three or more runs that differ in micro-batches alone and whose times lie on one line: measured
/// times never do. Answers the places of their runs.
pub fn on_a_line(runs: &[&Run]) -> Option<Vec<String>> {
    let mut left: Vec<&Run> = runs.iter().copied().filter(|run| run.seconds.is_some()).collect();
    while let Some(first) = left.first().copied() {
        for vary in [varies_in_batch, varies_in_layers] {
            let mut alike: Vec<(f64, f64, &Run)> = left
                .iter()
                .filter_map(|run| Some((vary(first, run)?, run.seconds?, *run)))
                .collect();
            alike.sort_by(|a, b| a.0.total_cmp(&b.0));
            alike.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
            if alike.len() >= 3 && lies_on_a_line(&alike) {
                return Some(alike.iter().map(|(_, _, run)| run.place.clone()).collect());
            }
        }
        left.remove(0);
    }
    None
}

/// The batch of a run that is otherwise like another.
fn varies_in_batch(one: &Run, other: &Run) -> Option<f64> {
    (same_but_size(one, other) && one.shape() == other.shape()).then_some(other.global_batch as f64)
}

/// The layers of a run that is otherwise like another.
fn varies_in_layers(one: &Run, other: &Run) -> Option<f64> {
    let layers = one.model.spec.layers;
    let mut shape = other.shape();
    let own = shape.layers;
    shape.layers = layers;
    let alike = same_but_size(one, other) && one.shape() == shape;
    (alike && one.global_batch == other.global_batch).then_some(own as f64)
}

fn same_but_size(one: &Run, other: &Run) -> bool {
    let strategy = |run: &Run| {
        let degrees = [run.tensor, run.context, run.pipeline, run.chunks, run.data, run.expert];
        let choices = (run.zero, run.repeated, run.attention, run.precision, run.kernels);
        (degrees, run.sequence_parallel, run.micro_batch, run.sequence, choices)
    };
    one.hardware == other.hardware && one.stack == other.stack && strategy(one) == strategy(other)
}

/// Whether no time is further from the line through the first and the last than measuring allows.
fn lies_on_a_line(points: &[(f64, f64, &Run)]) -> bool {
    let (first, last) = (points[0], points[points.len() - 1]);
    let slope = (last.1 - first.1) / (last.0 - first.0);
    points.iter().all(|&(x, y, _)| {
        let expected = first.1 + slope * (x - first.0);
        (y / expected - 1.0).abs() <= TOO_CLOSE
    })
}
