//! The strategies that experts chose for the published evaluation: 1,024 accelerators, batch
//! 4,096. Micro-batch and recompute are not fixed: the best for each strategy is taken.

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
