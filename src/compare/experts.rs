//! The strategies that experts chose for the published evaluation: 1,024 accelerators, batch
//! 4,096. Micro-batch and recompute are not fixed: the best for each strategy is taken.

use crate::model::Model;
use crate::parallel::legal_widths;
use crate::plan::CutSpace;
use crate::plan::Limits;
use crate::plan::StrategySpace;

/// Stages of a pipeline, copies of it, and devices that share a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// Stages of a pipeline.
    pub stages: u64,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Devices that share a layer.
    pub tensor_parallel: u64,
}

/// A model of the published evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its built-in name.
    pub model: &'static str,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// What the experts chose.
    pub degrees: Degrees,
    /// The tensor-parallel widths that the evaluation searched.
    pub widths: &'static [u64],
}

const fn published(
    model: &'static str,
    sequence: u64,
    (stages, data_parallel, tensor_parallel): (u64, u64, u64),
    widths: &'static [u64],
) -> Published {
    let degrees = Degrees { stages, data_parallel, tensor_parallel };
    Published { model, sequence, degrees, widths }
}

/// The eight models, in the order in which the evaluation lists them.
pub const PUBLISHED: [Published; 8] = [
    published("opt-350m", 2048, (12, 85, 1), &[1]),
    published("bert-large", 512, (8, 128, 1), &[1]),
    published("gpt2-xl", 1024, (32, 32, 1), &[1]),
    published("megatron-bert", 512, (8, 128, 1), &[1, 2, 4, 8]),
    published("megatron-gpt2-2.5b", 1024, (8, 32, 4), &[1, 2, 4]),
    published("megatron-gpt2-8.3b", 1024, (8, 16, 8), &[1, 2, 4, 8]),
    published("gpt3-175b", 2048, (32, 8, 4), &[4, 8]),
    published("llama2-7b", 4096, (8, 128, 1), &[1]),
];

/// The experts' strategy for a model on so many devices: their stages and width, and as many
/// replicas as there are devices for, as they chose on 1,024.
pub fn strategy(model: &str, devices: u64) -> Option<Degrees> {
    let Degrees { stages, tensor_parallel, .. } =
        PUBLISHED.iter().find(|known| known.model == model)?.degrees;
    let data_parallel = devices / (stages * tensor_parallel);
    Some(Degrees { stages, data_parallel, tensor_parallel })
}

/// Bytes of a parameter with its gradient and the optimizer's state, in the usual mixed precision.
const STATE_BYTES: u64 = 18;

/// What experts let a parameter's state take of a device: half of the 80 GB of a usual one, the rest is
/// for activations.
const STATE_LIMIT: u64 = 40_000_000_000;

/// The widest that experts let devices share a layer: a usual node.
const WIDEST: u64 = 8;

/// The strategy that experts would choose for any model, as a rule: layers are shared as widely as the
/// parameters' state asks for, in a node; then stages are as many as it still asks for, of equal layers;
/// the rest are replicas. The published strategy where there is one.
pub fn usual_strategy(name: &str, model: &Model, devices: u64) -> Degrees {
    if let Some(published) = strategy(name, devices) {
        return published;
    }
    let state = model.parameters().saturating_mul(STATE_BYTES);
    let fits = |parts: u64| state.div_ceil(parts) <= STATE_LIMIT;
    let legal = legal_widths(&model.spec);
    let widths: Vec<u64> = (0..=WIDEST.ilog2()).map(|log| 1 << log).collect();
    let mut widths = widths.into_iter().filter(|width| legal.contains(width) && *width <= devices);
    let mut width = 1;
    let tensor_parallel = loop {
        match widths.next() {
            Some(wider) if fits(wider) => break wider,
            Some(wider) => width = wider,
            None => break width,
        }
    };
    let layers = model.spec.layers.max(1);
    let mut depths = (1..=layers).filter(|depth| layers.is_multiple_of(*depth));
    let deepest = (devices / tensor_parallel).max(1);
    let stages = depths.find(|depth| fits(tensor_parallel * depth) || *depth == layers);
    let stages = stages.unwrap_or(1).min(deepest);
    Degrees { stages, data_parallel: (deepest / stages).max(1), tensor_parallel }
}

/// What is left to choose where the degrees are the experts': repeated layers are cut evenly.
pub fn space(degrees: Degrees, searched: &StrategySpace) -> StrategySpace {
    StrategySpace {
        tensor_parallel: vec![degrees.tensor_parallel],
        pipeline: Limits::only(degrees.stages),
        data_parallel: Limits::only(degrees.data_parallel),
        sequence_parallel: vec![false],
        context_parallel: vec![1],
        chunks: Limits::only(1),
        cut: CutSpace::Even,
        ..searched.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_1024_devices_the_experts_chose_as_published() {
        for known in PUBLISHED {
            assert_eq!(strategy(known.model, 1024), Some(known.degrees), "{}", known.model);
        }
        assert_eq!(strategy("gpt2-xl", 65_536).map(|found| found.data_parallel), Some(2048));
    }
}
