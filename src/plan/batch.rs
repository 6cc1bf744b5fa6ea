//! What follows the last backward pass of each stage, and when the whole batch has ended.

use serde::Deserialize;
use serde::Serialize;

/// Ticks of one stage after its last backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterBackward {
    /// The exchange of gradients, as far as it is not hidden behind that pass.
    pub exposed: u64,
    /// The optimizer's step.
    pub step: u64,
    /// The gathering of new weights, as far as the next batch waits for it.
    pub gather: u64,
}

impl AfterBackward {
    /// All of it.
    pub fn all(&self) -> u128 {
        u128::from(self.exposed) + u128::from(self.step) + u128::from(self.gather)
    }
}

/// When a stage may begin its optimizer step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStart {
    /// When its own gradients are there.
    OwnGradients,
    /// When the gradients of all stages are there: they are clipped by the norm of all.
    AllGradients,
}

/// When the batch has ended, where the stages' last backward passes have ended at `finished`.
pub fn batch_time(finished: &[u128], after: &[AfterBackward], start: StepStart) -> u128 {
    let stages = || finished.iter().zip(after);
    let most = |of: &dyn Fn(u128, &AfterBackward) -> u128| {
        stages().map(|(&at, after)| of(at, after)).max().unwrap_or(0)
    };
    let own = |after: &AfterBackward| u128::from(after.step) + u128::from(after.gather);
    match start {
        StepStart::OwnGradients => most(&|at, after| at + u128::from(after.exposed) + own(after)),
        StepStart::AllGradients => {
            most(&|at, after| at + u128::from(after.exposed)) + most(&|_, after| own(after))
        }
    }
}

/// One bucket of gradients: how long its exchange takes, and how long the backward pass of its
/// layers takes in the stage's last micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Ticks of the exchange.
    pub exchange: u64,
    /// Ticks of the backward pass.
    pub backward: u64,
}

/// Ticks of exchanges after the last backward pass: a bucket, in the order of the backward pass,
/// is ready when its layers are done, and one is exchanged at a time.
pub fn exposed(buckets: &[Bucket]) -> u64 {
    let (mut left, mut most) = (0_i128, 0);
    for bucket in buckets.iter().rev() {
        left += i128::from(bucket.exchange);
        most = left.max(most);
        left -= i128::from(bucket.backward);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// The weights of one layer that are gathered for the next batch: how long that takes, and how long
/// the layer's forward pass takes in that batch's first micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatheredLayer {
    /// Ticks of the exchange.
    pub gather: u64,
    /// Ticks of the forward pass.
    pub forward: u64,
}

/// Ticks by which the next batch's first forward pass waits for weights: layers, in the order of
/// the forward pass, are gathered one at a time, and each waits for its own weights alone. Where
/// gathering does not run beside that pass, the sum of all is waited for instead.
pub fn exposed_gather(layers: &[GatheredLayer]) -> u64 {
    let (mut behind, mut most) = (0_i128, 0);
    for layer in layers {
        behind += i128::from(layer.gather);
        most = behind.max(most);
        behind -= i128::from(layer.forward);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clipping_makes_every_step_wait_for_the_last_gradients() {
        let after = [
            AfterBackward { exposed: 1, step: 9, gather: 2 },
            AfterBackward { exposed: 7, step: 3, gather: 0 },
        ];
        assert_eq!(batch_time(&[100, 98], &after, StepStart::OwnGradients), 112);
        assert_eq!(batch_time(&[100, 98], &after, StepStart::AllGradients), 105 + 11);
    }

    #[test]
    fn a_worked_example_exposes_seven() {
        let buckets = [(9, 6), (2, 3), (2, 3)];
        let buckets = buckets.map(|(exchange, backward)| Bucket { exchange, backward });
        assert_eq!(exposed(&buckets), 7);
        assert_eq!(exposed(&[]), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn what_is_exposed_is_what_a_queue_leaves(
            buckets in prop::collection::vec((0_u64..30, 0_u64..30), 0..8),
        ) {
            let (mut computed, mut exchanged) = (0, 0);
            for &(exchange, backward) in &buckets {
                computed += backward;
                exchanged = computed.max(exchanged) + exchange;
            }
            let buckets: Vec<Bucket> = buckets
                .into_iter()
                .map(|(exchange, backward)| Bucket { exchange, backward })
                .collect();
            prop_assert_eq!(exposed(&buckets), exchanged - computed.min(exchanged));
        }

        #[test]
        fn a_first_forward_pass_is_late_by_what_its_gathers_expose(
            layers in prop::collection::vec((0_u64..30, 0_u64..30), 0..8),
        ) {
            let (mut gathered, mut computed) = (0, 0);
            for &(gather, forward) in &layers {
                gathered += gather;
                computed = gathered.max(computed) + forward;
            }
            let alone: u64 = layers.iter().map(|layer| layer.1).sum();
            let layers: Vec<GatheredLayer> = layers
                .into_iter()
                .map(|(gather, forward)| GatheredLayer { gather, forward })
                .collect();
            prop_assert_eq!(exposed_gather(&layers), computed - alone);
        }
    }
}
