//! A whole plan for programs.

use serde_json::Value;
use serde_json::json;

use super::judged;
use super::memory;
use super::parts::Exchanged;
use super::parts::TimeParts;
use super::sentence;
use crate::model::Axis;
use crate::plan::Cost;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Training;
use crate::report::basis;

/// The plan for programs, in the plan's own units.
pub fn value(plan: &Plan) -> Value {
    let (placement, cost) = judged(plan);
    let units = &plan.units;
    let mut value = json!({
        "feasible": true,
        "name": plan.name,
        "strategy": sentence(plan, &placement, &cost),
        "time_per_batch": units.time(cost.time_per_batch),
        "time_model": plan.job.time_model,
        "data_parallel": placement.data_parallel,
        "tensor_parallel": plan.profile.width,
        "context_parallel": plan.profile.context,
        "pipeline": placement.ranks(),
        "chunks": placement.schedule.chunks(),
        "schedule": placement.schedule,
        "zero": placement.zero,
        "shards": placement.shards,
        "order": placement.order,
        "recompute": placement.recompute,
        "micro_batches_per_pipeline": cost.micro_batches,
        "devices": cost.devices,
        "devices_left_over": plan.job.devices - cost.devices,
        "bubble": units.time(cost.bubble()),
        "breakdown": breakdown(plan, &placement, &cost),
        "memory_limit": units.size(plan.job.memory.into()),
        "memory_installed": units.size(plan.job.installed.into()),
        "warning": memory::warning(plan, &cost),
        "stages": stages(plan, &placement, &cost),
        "ranks": ranks(plan, &cost),
        "proof": plan.proof,
    });
    if let Some(simulated) = plan.answer.simulated {
        value["simulated_time_per_batch"] = json!(units.time(simulated.into()));
    }
    if let Some(training) = &plan.training {
        let seconds = units.time(cost.time_per_batch);
        let throughput = training.sequences_per_second(seconds);
        let tokens = throughput * training.sequence as f64;
        let mfu = training.utilisation(seconds, cost.devices);
        value["degrees"] = json!(training.strategy);
        value["micro_batch"] = json!(training.micro_batch);
        value["global_batch"] = json!(training.global_batch);
        value["design"] = json!(training.design);
        value["sequences_per_second"] = json!(throughput);
        value["tokens_per_second"] = json!(tokens);
        value["tokens_per_second_per_device"] = json!(tokens / cost.devices as f64);
        value["flops_per_second_per_device"] = json!(mfu * training.peak_flops_per_second as f64);
        value["rests_on"] = json!(basis::words(training.basis.as_ref()));
        value["interval_80"] = interval(plan, training, &cost);
        value["mfu"] = json!(mfu);
        value["mfu_of_all_devices"] = json!(training.utilisation(seconds, plan.job.devices));
        value["mfu_causal"] = json!(training.causal_utilisation(seconds, cost.devices));
    }
    value
}

/// Between what four of five measured runs would lie; null where no runs say.
fn interval(plan: &Plan, training: &Training, cost: &Cost) -> Value {
    let Some(ticks) = basis::interval(training.basis.as_ref(), cost.time_per_batch) else {
        return Value::Null;
    };
    let times = ticks.map(|ticks| plan.units.time(ticks));
    let [fewest, most] = [times[1], times[0]].map(|time| training.tokens_per_second(time));
    json!({ "time_per_batch": times, "tokens_per_second": [fewest, most] })
}

/// Where the time goes; of what is exchanged, all and what is waited for.
fn breakdown(plan: &Plan, placement: &Placement, cost: &Cost) -> Value {
    let parts = TimeParts::of(plan, placement, cost);
    let time = |ticks: u128| plan.units.time(ticks);
    let exchanged = |Exchanged { exposed, all }: Exchanged| json!({ "exposed": time(exposed), "all": time(all) });
    let along = Axis::ALL.into_iter().zip(parts.by_axis).filter(|(_, part)| part.all > 0);
    let along = along.map(|(axis, part)| (axis.name().to_owned(), exchanged(part)));
    json!({
        "layers": time(parts.layers),
        "exchanges_by_axis": Value::Object(along.collect()),
        "recompute": time(parts.recompute),
        "exchanges_in_layers": exchanged(parts.exchanges),
        "waiting_for_weights": time(parts.weights),
        "transfers": time(parts.transfers),
        "bubble": time(parts.bubble()),
        "fill_and_drain": time(parts.fill_and_drain),
        "imbalance": time(parts.imbalance),
        "gradient_exchange": exchanged(parts.gradients),
        "optimizer_step": time(parts.step),
        "weight_gathering": exchanged(parts.gathering),
    })
}

fn stages(plan: &Plan, placement: &Placement, cost: &Cost) -> Vec<Value> {
    let ticks = |ticks: u64| plan.units.time(ticks.into());
    let n_ranks = cost.ranks.len();
    let stages = placement.pipeline.stages().zip(&cost.stages).enumerate();
    let stage = stages.map(|(at, (layers, stage))| {
        let ids: Vec<i64> = layers.iter().map(|&layer| plan.profile.ids[layer]).collect();
        json!({
            "rank": at % n_ranks,
            "chunk": at / n_ranks,
            "layers": ids,
            "repeated": stage.repeated,
            "devices": stage.devices,
            "load": ticks(stage.time.load()),
            "forward": ticks(stage.time.forward),
            "backward": ticks(stage.time.backward),
            "transfer": ticks(stage.transfer),
            "waits_for_weights": ticks(stage.waits_for_weights),
        })
    });
    stage.collect()
}

fn ranks(plan: &Plan, cost: &Cost) -> Vec<Value> {
    let units = &plan.units;
    let ticks = |ticks: u64| units.time(ticks.into());
    let ranks = cost.ranks.iter().map(|rank| {
        json!({
            "memory": units.size(rank.memory.total()),
            "memory_parts": memory::value(units, &rank.memory),
            "head_room": memory::head_room(units, &rank.memory, plan.job.memory),
            "head_room_installed": memory::head_room(units, &rank.memory, plan.job.installed),
            "gradient_exchange": { "exposed": ticks(rank.after.exposed), "all": ticks(rank.exchange) },
            "optimizer_step": ticks(rank.after.step),
            "weight_gathering": { "exposed": ticks(rank.after.gather), "all": ticks(rank.gathering) },
        })
    });
    ranks.collect()
}
