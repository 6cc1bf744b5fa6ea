//! What fills the memory of each rank's devices, and what is left of it.

use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::size;
use crate::plan::Cost;
use crate::plan::Memory;
use crate::plan::Plan;
use crate::plan::Units;
use crate::report::quantity::grouped;
use crate::report::quantity::percent;

/// Thousandths of a device's memory beyond which allocators are known to fail.
const CROWDED_PER_MILLE: u128 = 940;

/// The parts of a memory with their names, the lasting ones first.
pub fn parts(memory: &Memory) -> [(&'static str, u128); 6] {
    [
        ("weights", memory.weights),
        ("gradients", memory.gradients),
        ("optimizer state", memory.optimizer_state),
        ("activations", memory.activations),
        ("gathered", memory.gathered),
        ("working", memory.working),
    ]
}

/// The parts of a memory for programs, in the plan's unit.
pub fn value(units: &Units, memory: &Memory) -> Value {
    let key = |name: &str| name.replace(' ', "_");
    let parts = parts(memory).map(|(name, part)| (key(name), json!(units.size(part))));
    Value::Object(parts.into_iter().collect())
}

/// What is left to a limit, below 0 where it is exceeded, in the plan's unit.
pub fn head_room(units: &Units, memory: &Memory, limit: u64) -> f64 {
    let (needed, limit) = (memory.total(), u128::from(limit));
    match limit.checked_sub(needed) {
        Some(left) => units.size(left),
        None => -units.size(needed - limit),
    }
}

/// The rank whose devices are fullest, the first of equals, and what they hold.
pub fn fullest(cost: &Cost) -> Option<(usize, &Memory)> {
    let ranks = cost.ranks.iter().map(|rank| &rank.memory).enumerate();
    ranks.max_by_key(|(at, memory)| (memory.total(), std::cmp::Reverse(*at)))
}

/// The memory of the fullest rank by its parts, what is left, and a warning where that is too
/// little.
pub fn text(plan: &Plan, cost: &Cost, out: &mut dyn Write) -> io::Result<()> {
    let Some((rank, memory)) = fullest(cost) else { return Ok(()) };
    let units = &plan.units;
    let total = memory.total();
    writeln!(out, "memory of one device on the fullest rank, {}", grouped(rank as u64))?;
    for (name, part) in parts(memory).into_iter().filter(|(_, part)| *part > 0) {
        let share = percent(part as f64 / total as f64);
        let line = format!("  {name:<22}{:>14} {share:>8}  {}", size(units, part), note(name));
        writeln!(out, "{}", line.trim_end())?;
    }
    let left = |limit: u64| match u128::from(limit).checked_sub(total) {
        Some(left) => format!("{} left of", size(units, left)),
        None => format!("{} MORE than", size(units, total - u128::from(limit))),
    };
    let (may, installed) = (plan.job.memory, plan.job.installed);
    let whole = |limit: u64| size(units, u128::from(limit));
    let room = if may == installed {
        format!("{} {}", left(may), whole(may))
    } else {
        format!(
            "{} {} that plans may fill, {} {} installed",
            left(may),
            whole(may),
            left(installed),
            whole(installed)
        )
    };
    writeln!(out, "  {:<22}{:>14} {:>8}  {room}", "all", size(units, total), "")?;
    warning(plan, cost).map_or(Ok(()), |warning| writeln!(out, "Warning: {warning}"))
}

/// What a part is, where its name does not say it.
fn note(part: &str) -> &'static str {
    match part {
        "activations" => "kept for the backward passes of all micro-batches in flight",
        "gathered" => "whole for a while of what replicas share",
        "working" => "what the running pass holds for a moment",
        _ => "",
    }
}

/// That a plan fills more than a device has, or so much that it may fail when it is started; `None`
/// where neither is so.
pub fn warning(plan: &Plan, cost: &Cost) -> Option<String> {
    let (rank, memory) = fullest(cost)?;
    let (total, installed) = (memory.total(), u128::from(plan.job.installed));
    let share = percent(total as f64 / plan.job.installed as f64);
    let rank = grouped(rank as u64);
    if total > installed {
        return Some(format!(
            "rank {rank} needs {share} of the memory that a device has; it does not fit by this \
             account"
        ));
    }
    let crowded = 1000 * total > CROWDED_PER_MILLE * installed;
    // What a user's own profile counts is all that there is.
    (crowded && plan.training.is_some()).then(|| {
        format!(
            "rank {rank} fills {share} of a device's memory; what allocators and libraries take \
             may not fit beside it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::cost;
    use crate::report::placement::example;

    fn of(plan: &Plan) -> (String, Option<String>) {
        let placement = plan.answer.placement(plan.profile.n_layers()).unwrap();
        let cost = cost(&plan.profile, &plan.job, &placement);
        let mut out = Vec::new();
        text(plan, &cost, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), warning(plan, &cost))
    }

    #[test]
    fn the_fullest_rank_is_told_by_its_parts_with_both_head_rooms() {
        let (told, warned) = of(&example(false));
        assert!(told.starts_with("memory of one device on the fullest rank, 0\n"), "{told}");
        for part in ["weights", "gradients", "optimizer state", "activations", "working"] {
            assert!(told.contains(part), "{part} is missing: {told}");
        }
        assert!(told.contains("that plans may fill") && told.contains("installed"), "{told}");
        assert_eq!(warned, None);
    }

    #[test]
    fn too_full_a_device_is_warned_of_and_one_that_overflows_more_so() {
        let mut plan = example(false);
        let placement = plan.answer.placement(8).unwrap();
        let needed = fullest(&cost(&plan.profile, &plan.job, &placement)).unwrap().1.total();
        plan.job.installed = u64::try_from(needed).unwrap();
        assert!(of(&plan).1.unwrap().contains("fills 100.0 % of a device's memory"));
        plan.job.installed -= 1;
        let (told, warned) = of(&plan);
        assert!(told.contains("1 B MORE than"), "{told}");
        assert!(warned.unwrap().contains("does not fit by this account"));
        plan.job.installed = u64::try_from(needed * 1000 / 939).unwrap();
        assert_eq!(of(&plan).1, None);
    }

    #[test]
    fn parts_sum_to_the_whole() {
        let plan = example(true);
        for rank in &plan.answer.ranks {
            let sum: u128 = parts(&rank.memory).iter().map(|(_, part)| part).sum();
            assert_eq!(sum, rank.memory.total());
        }
    }
}
