//! From a run of a user's own to a request: what its file says, and what options say beside it.

use super::Batch;
use super::PlanRequest;
use crate::input::InputError;
use crate::input::launched::OwnModel;
use crate::input::launched::OwnRun;
use crate::input::numbers::Field;
use crate::plan::GivenStrategy;

/// A run made a request, with the configuration of its model where that is not built in.
pub struct OwnRequest {
    /// What is asked.
    pub request: PlanRequest,
    /// The text behind the request's model, where its name is not that of a file or a built-in one.
    pub model: Option<String>,
}

/// What a run asks, where options that were given stand before what its file says; `asked` holds
/// these, its model empty where none was given; a model that only the file knows is `called` so.
///
/// # Errors
/// What the file computes and no option gives, each by name.
pub fn own_request(
    own: &OwnRun,
    asked: PlanRequest,
    (file, called): (&str, &str),
) -> Result<OwnRequest, InputError> {
    let (name, model) = match (&own.model, asked.model.is_empty()) {
        (_, false) => (asked.model.clone(), None),
        (Some(OwnModel::Named(name)), true) => ((*name).to_owned(), None),
        (Some(OwnModel::Config(text)), true) => (called.to_owned(), Some(text.clone())),
        (None, true) => {
            let expected = "its numbers are not all there: name the model before --from";
            return Err(Field::new(file, "model").missing(expected));
        }
    };
    let sequence = asked.sequence.or(own.sequence);
    let batch = match (asked.batch, own.global_batch) {
        (Batch::Usual, Some(sequences)) => Batch::Sequences(sequences),
        (given, _) => given,
    };
    let steps = own.steps.zip(own.global_batch).zip(sequence);
    let tokens = steps
        .map(|((steps, batch), sequence)| steps.saturating_mul(batch).saturating_mul(sequence));
    let request = PlanRequest {
        model: name,
        sequence,
        batch,
        tokens: asked.tokens.or(tokens),
        precision: if asked.precision.is_usual() { own.precision } else { asked.precision },
        attention: asked.attention.or(own.attention),
        strategy: merged(&asked.strategy, &own.strategy),
        target: asked.target.or(Some(own.target)),
        ..asked
    };
    let computed = own.computed.iter();
    let mut missing = computed.filter_map(|one| Some((one, option(&one.name, &request)?)));
    let Some((first, option)) = missing.next() else {
        return Ok(OwnRequest { request, model });
    };
    let others = missing.map(|(one, option)| format!("; for {} {option}", one.name));
    let would_do = format!("give {option}{}", others.collect::<String>());
    Err(Field::new(file, &first.name).value(&first.found, "is computed by the file", &would_do))
}

/// What is given, and of what is not, what the file says. Data parallelism follows from the devices.
fn merged(given: &GivenStrategy, own: &GivenStrategy) -> GivenStrategy {
    GivenStrategy {
        tensor: given.tensor.or(own.tensor),
        sequence_parallel: given.sequence_parallel.or(own.sequence_parallel),
        context: given.context.or(own.context),
        context_kind: given.context_kind.or(own.context_kind),
        expert: given.expert.or(own.expert),
        expert_tensor: given.expert_tensor.or(own.expert_tensor),
        pipeline: given.pipeline.or(own.pipeline),
        chunks: given.chunks.or(own.chunks),
        group: given.group.or(own.group),
        data: given.data,
        micro_batch: given.micro_batch.or(own.micro_batch),
        zero: given.zero.or(own.zero),
        shards: given.shards.or(own.shards),
        order: given.order.or(own.order),
        recompute: given.recompute.or(own.recompute),
        cut: given.cut.or(own.cut),
    }
    .without_what_one_device_has()
}

/// The option that gives what a file computes under a name; `None` where it is known or not needed.
fn option(name: &str, request: &PlanRequest) -> Option<&'static str> {
    let strategy = &request.strategy;
    let dashed = name.replace('_', "-");
    let (known, option) = match dashed.as_str() {
        "tensor-model-parallel-size" | "tensor-parallel-degree" => {
            (strategy.tensor.is_some(), "--strategy t=…")
        }
        "pipeline-model-parallel-size" | "pipeline-parallel-degree" => {
            (strategy.pipeline.is_some(), "--strategy p=…")
        }
        "context-parallel-size" | "context-parallel-degree" => {
            (strategy.context.is_some(), "--strategy c=…")
        }
        "pipeline-model-parallel-layout"
        | "num-layers-per-virtual-pipeline-stage"
        | "virtual-pipeline-model-parallel-size"
        | "num-virtual-stages-per-pipeline-rank" => {
            (strategy.chunks.is_some_and(|chunks| chunks > 1), "--strategy v=…")
        }
        "micro-batch-size" | "local-batch-size" | "num-tokens-per-microbatch-per-dp-rank" => {
            (strategy.micro_batch.is_some(), "--strategy b=…")
        }
        "global-batch-size" | "num-tokens-per-train-step" => {
            (request.batch != Batch::Usual, "--global-batch")
        }
        "seq-length" | "max-context-length" | "max-target-length" => {
            (request.sequence.is_some(), "--seq")
        }
        "recompute-num-layers" | "recompute-granularity" => {
            (strategy.recompute.is_some(), "--strategy recompute=…")
        }
        // Everything else has no part in a plan, or is asked for by name elsewhere.
        _ => (true, ""),
    };
    (!known).then_some(option)
}
