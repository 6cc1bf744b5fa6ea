//! What the page of a plan carries: the claims of the plan in the units of its owner.

use serde_json::Value;
use serde_json::json;

use crate::plan::Cost;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::TimeModel;
use crate::plan::Units;
use crate::plan::cost;
use crate::report::placement;
use crate::report::quantity::grouped;

/// The plan as its page reads it; `file` is what `phaze check` should be given.
pub fn content(plan: &Plan, file: &str) -> Value {
    let found = plan.answer.placement(plan.profile.n_layers());
    let found = found.expect("a checked plan holds every layer once");
    let cost = cost(&plan.profile, &plan.job, &found);
    let headline = placement::headline(plan, &found, &cost);
    // What is placed is the page's title, so the line begins after it.
    let strategy = headline.split_once(": ").map_or(headline.as_str(), |(_, strategy)| strategy);
    let own = if plan.units == Units::physical() { "" } else { "  ·  in the profile's own units" };
    let design = plan.training.as_ref().map(|training| format!("{}  ·  ", training.design));
    let question = format!(
        "{}{} devices  ·  {} micro-batches  ·  time model {}{own}",
        design.unwrap_or_default(),
        grouped(plan.job.devices),
        grouped(plan.job.micro_batches),
        plan.job.time_model
    );
    json!({
        "name": plan.name,
        "file": file,
        "question": question,
        "units": {"time": plan.units.time, "size": plan.units.size},
        "devices": plan.job.devices,
        "proved": matches!(plan.proof, Proof::Optimal { .. }),
        "proof": placement::proof(plan),
        "result": result(plan, &found, &cost, strategy),
    })
}

fn result(plan: &Plan, placement: &Placement, cost: &Cost, strategy: &str) -> Value {
    let time = |ticks: u128| plan.units.time(ticks);
    let time_per_batch = time(cost.time_per_batch);
    let training = plan.training.as_ref();
    let throughput = training.map(|training| training.sequences_per_second(time_per_batch));
    let tokens = throughput.zip(training).map(|(rate, training)| rate * training.sequence as f64);
    let mfu = training.map(|training| training.utilisation(time_per_batch, cost.devices));
    json!({
        "model": plan.name,
        "time_per_batch_s": time_per_batch,
        "simulated_time_per_batch_s": plan.answer.simulated.map(|ticks| time(ticks.into())),
        "throughput_sequences_per_s": throughput,
        "tokens_per_s": tokens,
        "mfu": mfu,
        "n_micro_batches": cost.micro_batches,
        "strategy": {
            "data_parallel": placement.data_parallel,
            "devices_used": cost.devices,
            "sentence": strategy,
        },
        "breakdown_s": breakdown(plan, cost),
        "stages": stages(plan, placement, cost),
    })
}

/// Where the time goes: of the average stage until the slowest end, and of that end.
fn breakdown(plan: &Plan, cost: &Cost) -> Value {
    let n_stages = cost.stages.len() as u128;
    let rounds = u128::from(cost.micro_batches);
    let waited: u128 = cost.stages.iter().map(|stage| u128::from(stage.transfer)).sum();
    let transfers = rounds * waited / n_stages;
    let layers = rounds * cost.total_load / n_stages - transfers;
    let bubble = cost.bubble();
    let end = cost.time_per_batch - layers - transfers - bubble;
    let slowest = cost.stages.iter().max_by_key(|stage| stage.end());
    // The published time model ends with an exchange alone, however long the steps are.
    let step = match plan.job.time_model {
        TimeModel::Published => 0,
        TimeModel::OneForwardOneBackward => slowest.map_or(0, |stage| u128::from(stage.step)),
    };
    let exchange = end.saturating_sub(step);
    let time = |ticks: u128| plan.units.time(ticks);
    json!({
        "layers": time(layers),
        "pipeline_transfers": time(transfers),
        "gradient_exchange": time(exchange),
        "optimizer": time(step),
        "bubble": time(bubble),
    })
}

fn stages(plan: &Plan, placement: &Placement, cost: &Cost) -> Vec<Value> {
    let time = |ticks: u64| plan.units.time(ticks.into());
    let size = |size: u128| plan.units.size(size);
    let stages = placement.pipeline.stages().zip(&cost.stages);
    let stage = stages.map(|(layers, stage)| {
        json!({
            "layers": counted(plan, layers),
            "devices": stage.devices,
            "forward_s": time(stage.time.forward),
            "backward_s": time(stage.time.backward),
            "load_s": time(stage.time.load()),
            "exchange_s": time(stage.exchange),
            "step_s": time(stage.step),
            "memory_bytes": {
                "weights": size(stage.memory.weights),
                "gradients": size(stage.memory.gradients),
                "optimizer_state": size(stage.memory.optimizer_state),
                "activations": size(stage.memory.activations),
            },
            "memory_limit_bytes": size(plan.job.memory.into()),
        })
    });
    stage.collect()
}

/// Layers by kind, in the order in which the kinds first occur.
fn counted(plan: &Plan, layers: &[usize]) -> Vec<Value> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for &layer in layers {
        let name = plan.profile.layer(layer).name.as_str();
        match counts.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, n)) => *n += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.iter().map(|(kind, n)| json!({"kind": kind, "count": n})).collect()
}
