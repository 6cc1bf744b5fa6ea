//! What the page of a plan carries: the claims of the plan in the units of its owner.

use serde_json::Value;
use serde_json::json;

use crate::plan::Cost;
use crate::plan::PassOrder;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::StageRules;
use crate::plan::StepStart;
use crate::plan::Units;
use crate::plan::cost;
use crate::report::basis;
use crate::report::placement;
use crate::report::placement::memory;
use crate::report::placement::parts::TimeParts;
use crate::report::quantity::grouped;
use crate::report::quantity::span;

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
    let rests_on = plan.training.as_ref().map_or_else(String::new, |training| {
        let ticks = basis::interval(training.basis.as_ref(), cost.time_per_batch);
        let between = ticks.map_or_else(String::new, |[low, high]| {
            let [low, high] = [low, high].map(|ticks| span(plan.units.time(ticks)));
            format!(", 80 % interval {low} to {high}")
        });
        format!("  ·  times rest on {}{between}", basis::words(training.basis.as_ref()))
    });
    let question = format!(
        "{}{} devices  ·  {} micro-batches  ·  time model {}{own}{rests_on}",
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
        "warning": memory::warning(plan, &cost),
        "result": result(plan, &found, &cost, strategy),
    })
}

/// Of what a plan means, what its page shows: the run, what is beside it, the curve, the files.
pub fn advice(value: &Value) -> Value {
    let of = |key: &str| value.get(key).cloned().unwrap_or(Value::Null);
    let keys =
        ["run", "fits", "where_s", "next", "what_if", "curve", "launch", "command", "remarks"];
    Value::Object(keys.into_iter().map(|key| (key.to_owned(), of(key))).collect())
}

fn result(plan: &Plan, placement: &Placement, cost: &Cost, strategy: &str) -> Value {
    let time = |ticks: u128| plan.units.time(ticks);
    let time_per_batch = time(cost.time_per_batch);
    let training = plan.training.as_ref();
    let throughput = training.map(|training| training.sequences_per_second(time_per_batch));
    let tokens = throughput.zip(training).map(|(rate, training)| rate * training.sequence as f64);
    let mfu = training.map(|training| training.utilisation(time_per_batch, cost.devices));
    let mut result = json!({
        "model": plan.name,
        "time_per_batch_s": time_per_batch,
        "simulated_time_per_batch_s": plan.answer.simulated.map(|ticks| time(ticks.into())),
        "throughput_sequences_per_s": throughput,
        "tokens_per_s": tokens,
        "tokens_per_s_per_device": tokens.map(|tokens| tokens / cost.devices as f64),
        "flops_per_s_per_device": mfu
            .zip(training)
            .map(|(mfu, training)| mfu * training.peak_flops_per_second as f64),
        "mfu": mfu,
        "mfu_causal": training.and_then(|t| t.causal_utilisation(time_per_batch, cost.devices)),
        "n_micro_batches": cost.micro_batches,
        "strategy": {
            "devices_used": cost.devices,
            "sentence": strategy,
        },
        "course": course(plan),
        "breakdown_s": breakdown(plan, placement, cost),
        "stages": stages(plan, placement, cost),
    });
    let mixture = training.and_then(|told| Some((told, told.expert_load_per_mille?)));
    if let Some((training, load)) = mixture {
        let parts = TimeParts::of(plan, placement, cost);
        result["strategy"]["expert_parallel"] = json!(training.strategy.expert_parallel);
        result["strategy"]["expert_tensor"] = json!(training.strategy.expert_tensor);
        result["expert_load"] = json!(load as f64 / 1000.0);
        result["to_experts_s"] = json!(time(parts.all_to_all));
    }
    result
}

/// What the timeline of a plan is played from, beside the times of its stages; `None` where these do
/// not hold every layer once.
pub fn course(plan: &Plan) -> Option<Value> {
    let placement = plan.answer.placement(plan.profile.n_layers())?;
    let time = |ticks: u64| plan.units.time(ticks.into());
    let rules = StageRules::new(&plan.profile, &plan.job, placement.shape());
    let group = match placement.schedule {
        PassOrder::OneForwardOneBackward => Value::Null,
        PassOrder::Interleaved { group, .. } => json!(group),
    };
    let ends = plan.answer.ranks.iter().map(|rank| {
        let after = rank.after;
        json!({
            "exchange_s": time(after.exposed),
            "step_s": time(after.step),
            "gather_s": time(after.gather),
        })
    });
    Some(json!({
        "pipelines": placement.data_parallel,
        "ranks": placement.ranks(),
        "chunks": placement.schedule.chunks(),
        "group": group,
        "delay_s": time(rules.delay()),
        "steps_together": plan.job.ends.step_start == StepStart::AllGradients,
        "ends": ends.collect::<Vec<_>>(),
    }))
}

/// Where the time goes: of the average rank until the last pass, and after it.
fn breakdown(plan: &Plan, placement: &Placement, cost: &Cost) -> Value {
    let parts = TimeParts::of(plan, placement, cost);
    let time = |ticks: u128| plan.units.time(ticks);
    json!({
        "layers": time(parts.layers),
        "recompute": time(parts.recompute),
        "exchanges_in_layers": time(parts.exchanges.exposed),
        "pipeline_transfers": time(parts.transfers),
        "gradient_exchange": time(parts.gradients.exposed),
        "optimizer": time(parts.step),
        "weight_gathering": time(parts.weights + parts.gathering.exposed),
        "bubble": time(parts.bubble()),
    })
}

fn stages(plan: &Plan, placement: &Placement, cost: &Cost) -> Vec<Value> {
    let time = |ticks: u64| plan.units.time(ticks.into());
    let n_ranks = cost.ranks.len();
    let stages = placement.pipeline.stages().zip(&cost.stages).enumerate();
    let stage = stages.map(|(at, (layers, stage))| {
        let rank = at % n_ranks;
        json!({
            "rank": rank,
            "layers": counted(plan, layers),
            "n_repeated": stage.repeated,
            "devices": stage.devices,
            "forward_s": time(stage.time.forward),
            "backward_s": time(stage.time.backward),
            "load_s": time(stage.time.load()),
            "memory_bytes": memory::value(&plan.units, &cost.ranks[rank].memory),
            "memory_limit_bytes": plan.units.size(plan.job.memory.into()),
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
