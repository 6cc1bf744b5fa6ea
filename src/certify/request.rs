//! Whether the request inside an answer is one that could have been asked: every figure within
//! the range of a request file, so that nothing built from it can overflow or exhaust a machine.

use std::ops::RangeInclusive;

use crate::model::Optimizer;
use crate::plan::Recompute;
use crate::search::Request;
use crate::search::SpaceRequest;

/// More points of a grid than any search could list.
const MOST_POINTS: u128 = 1 << 24;

/// Why a request cannot have been asked, as `field = value: reason`.
pub fn flaw(request: &Request) -> Option<String> {
    sensible(request).err()
}

fn sensible(request: &Request) -> Result<(), String> {
    let Request { devices, global_batch, top, .. } = *request;
    if request.models.is_empty() || request.models.len() > 64 {
        return Err(format!("request.models: there are {}; 1 to 64 can be", request.models.len()));
    }
    for (at, model) in request.models.iter().enumerate() {
        within(&format!("request.models[{at}].sequence"), model.sequence, 1..=1 << 24)?;
        if !(model.weight.is_finite() && model.weight > 0.0) {
            return Err(format!("request.models[{at}].weight = {}: is no weight", model.weight));
        }
    }
    within("request.devices", devices, 1..=1 << 24)?;
    within("request.global_batch", global_batch, 1..=1 << 24)?;
    within("request.top", top as u64, 1..=10_000)?;
    ascending("request.micro_batches", &request.micro_batches, 1..=1 << 16)?;
    ascending("request.tensor_parallel", &request.tensor_parallel, 1..=1 << 16)?;
    if let Some(odd) = request.micro_batches.iter().find(|&&size| global_batch % size != 0) {
        return Err(format!("request.micro_batches: {odd} does not divide {global_batch}"));
    }
    let known: Vec<Recompute> =
        Recompute::ALL.into_iter().filter(|choice| request.recompute.contains(choice)).collect();
    if request.recompute.is_empty() || known != request.recompute {
        return Err("request.recompute: choices are listed once each, in order".into());
    }
    let words: [(&str, &str, &[&str]); 3] = [
        ("optimizer", &request.optimizer, &Optimizer::ALL.map(Optimizer::name)),
        ("attention", &request.attention, &["stored", "recomputed"]),
        ("rule", &request.rule, &["alone", "own-kind"]),
    ];
    for (field, found, known) in words {
        if !known.contains(&found) {
            return Err(format!("request.{field} = {found:?}: known are {}", known.join(", ")));
        }
    }
    if request.power_cap_w.is_some_and(|watts| !(watts.is_finite() && watts > 0.0)) {
        return Err("request.power_cap_w: is no power".into());
    }
    space(&request.space)
}

fn space(space: &SpaceRequest) -> Result<(), String> {
    let lists: [(&str, &[u64], u64, bool); 8] = [
        ("tensor_cores", &space.tensor_cores, 1 << 16, true),
        ("vector_cores", &space.vector_cores, 1 << 16, true),
        ("width", &space.width, 1 << 12, true),
        ("depth", &space.depth, 1 << 12, true),
        ("vector_width", &space.vector_width, 1 << 16, false),
        ("glb_mib", &space.glb_mib, 1 << 20, true),
        ("glb_bytes_per_cycle", &space.glb_bytes_per_cycle, 1 << 20, false),
        ("hbm_gib", &space.hbm_gib, 1 << 20, true),
    ];
    let mut points = 1_u128;
    for (name, values, high, needed) in lists {
        if needed && values.is_empty() {
            return Err(format!("request.space.{name} = []: has no value"));
        }
        for &value in values {
            within(&format!("request.space.{name}"), value, 1..=high)?;
        }
        points = points.saturating_mul(values.len().max(1) as u128);
    }
    if points > MOST_POINTS {
        return Err(format!("request.space: has {points} points; at most {MOST_POINTS} can be"));
    }
    let mut sizes = space.hbm_gib.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() != space.hbm_gib.len() {
        return Err("request.space.hbm_gib: names a size twice".into());
    }
    Ok(())
}

fn ascending(field: &str, values: &[u64], range: RangeInclusive<u64>) -> Result<(), String> {
    if values.is_empty() {
        return Err(format!("{field} = []: has no value"));
    }
    values.iter().try_for_each(|&value| within(field, value, range.clone()))?;
    if values.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(format!("{field}: its values do not ascend"));
    }
    Ok(())
}

fn within(field: &str, found: u64, range: RangeInclusive<u64>) -> Result<(), String> {
    if range.contains(&found) {
        return Ok(());
    }
    Err(format!("{field} = {found}: allowed are {} to {}", range.start(), range.end()))
}
