//! Checks of a space of strategies, which may come from a saved file.

use serde::Serialize;

use super::InputError;
use super::numbers::Field;
use super::place::LARGEST_DEGREE;
use crate::plan::Job;
use crate::plan::Limits;
use crate::plan::StrategySpace;

/// Combinations of micro-batches, widths, context and expert degrees: each is a model divided anew.
const MOST_WAYS: usize = 20_000;

/// Checks what the rest of the program relies on; `place` is where the space stands in the file.
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub(super) fn validate(
    space: &StrategySpace,
    global_batch: u64,
    file: &str,
    place: &str,
) -> Result<(), InputError> {
    let field = |name: &str| Field::new(file, &format!("{place}.{name}"));
    let numbers = [
        ("micro_batches", &space.micro_batches),
        ("tensor_parallel", &space.tensor_parallel),
        ("context_parallel", &space.context_parallel),
        ("expert_parallel", &space.expert_parallel),
        ("expert_tensor", &space.expert_tensor),
    ];
    for (name, list) in numbers {
        for &value in list {
            field(name).whole(value, 1, LARGEST_DEGREE)?;
        }
        ascending(&field(name), list)?;
    }
    ascending(&field("sequence_parallel"), &space.sequence_parallel)?;
    ascending(&field("context_kinds"), &space.context_kinds)?;
    ascending(&field("zero"), &space.zero)?;
    ascending(&field("zero_in_pipelines"), &space.zero_in_pipelines)?;
    ascending(&field("orders"), &space.orders)?;
    ascending(&field("recompute"), &space.recompute)?;
    ascending(&field("repeated"), &space.repeated)?;
    let limits = [
        ("pipeline", space.pipeline),
        ("chunks", space.chunks),
        ("data_parallel", space.data_parallel),
    ];
    for (name, Limits { least, most }) in limits {
        field(name).whole(least, 1, Job::LARGEST_COUNT)?;
        if most < least {
            let found = format!("{least} to {most}");
            return Err(field(name).value(&found, "is no range", "the least comes first"));
        }
    }
    for (name, number) in [("group", space.group), ("shards", space.shards)] {
        if let Some(number) = number {
            field(name).whole(number, 1, Job::LARGEST_COUNT)?;
        }
    }
    let ways = numbers.iter().map(|(_, list)| list.len()).product::<usize>();
    if ways > MOST_WAYS {
        let allowed = format!("at most {MOST_WAYS} combinations are compared");
        return Err(field("micro_batches").value(&ways.to_string(), "are too many", &allowed));
    }
    if let Some(odd) = space.micro_batches.iter().find(|&&size| !global_batch.is_multiple_of(size))
    {
        let problem = format!("does not divide the batch of {global_batch}");
        let allowed = "give divisors of it";
        return Err(field("micro_batches").value(&odd.to_string(), &problem, allowed));
    }
    Ok(())
}

/// Values upwards, each once, at least one.
fn ascending<T: Ord + Serialize>(field: &Field, list: &[T]) -> Result<(), InputError> {
    if list.is_empty() {
        return Err(field.missing("give at least one value"));
    }
    let Some(pair) = list.windows(2).find(|pair| pair[0] >= pair[1]) else { return Ok(()) };
    let word = |value: &T| serde_json::to_string(value).unwrap_or_default();
    let found = format!("{}, {}", word(&pair[0]), word(&pair[1]));
    Err(field.value(&found, "is not ascending", "list values upwards, each once"))
}
