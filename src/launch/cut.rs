//! A plan as frameworks are told of it: its strategy, the layers of its virtual stages, and how many
//! of them are computed again.

use super::CannotLaunch;
use super::Run;
use crate::parallel::frameworks::CutShape;
use crate::parallel::frameworks::ExpertShape;
use crate::parallel::frameworks::PlanShape;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::zero::Zero;
use crate::plan::Recompute;
use crate::plan::Strategy;

/// What a launch file says of a plan beside its degrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Every axis.
    pub strategy: Strategy,
    /// Transformer layers of each virtual stage, from 0 on; the embedding stands before those of
    /// the first stage, the head after those of the last.
    pub stages: Vec<Vec<u64>>,
    /// The virtual stage of the layer that tells the token after the next, where there is one.
    pub next_token: Option<usize>,
    /// How many layers of each virtual stage are computed again.
    pub repeated: Vec<u64>,
}

impl Cut {
    /// That of a plan.
    pub(super) fn of(run: &Run) -> Result<Self, CannotLaunch> {
        let training = run.plan.training.as_ref().ok_or(CannotLaunch::NoModel)?;
        let last = run.plan.profile.n_layers().saturating_sub(1);
        let spec = run.spec;
        if spec.layers + spec.next_tokens + 1 != last as u64 {
            return Err(CannotLaunch::NoModel);
        }
        let stages = run.plan.answer.stages.iter();
        let layers = |stage: &[usize]| -> Vec<u64> {
            let places = stage.iter().map(|&layer| layer as u64);
            places
                .filter(|place| (1..=spec.layers).contains(place))
                .map(|place| place - 1)
                .collect()
        };
        // The layer behind the last transformer layer, before the head.
        let next_token = |stage: &[usize]| {
            spec.next_tokens > 0 && stage.iter().any(|&layer| layer as u64 == spec.layers + 1)
        };
        Ok(Self {
            strategy: training.strategy,
            stages: stages.clone().map(|stage| layers(&stage.layers)).collect(),
            next_token: stages.clone().position(|stage| next_token(&stage.layers)),
            repeated: stages.map(|stage| stage.repeated as u64).collect(),
        })
    }

    /// Which whole layers are computed again, as frameworks say it.
    pub fn repeated_layers(&self) -> RepeatedLayers {
        let counts = || self.stages.iter().map(|stage| stage.len() as u64).zip(&self.repeated);
        let whole = |at: usize| self.stages[at].len() + usize::from(self.next_token == Some(at));
        let most = self.most_repeated();
        match self.strategy.recompute {
            Recompute::None => RepeatedLayers::None,
            Recompute::Full => RepeatedLayers::All,
            Recompute::Stage if self.strategy.pipeline == 1 => RepeatedLayers::None,
            Recompute::Stage => RepeatedLayers::Stages,
            _ if most == 0 => RepeatedLayers::None,
            _ if self.repeated.iter().enumerate().all(|(at, &some)| some == whole(at) as u64) => {
                RepeatedLayers::All
            }
            _ if counts().all(|(all, &repeated)| repeated == most.min(all)) => {
                RepeatedLayers::OneNumber
            }
            _ => RepeatedLayers::OwnNumbers,
        }
    }

    /// The most layers that a virtual stage computes again.
    pub fn most_repeated(&self) -> u64 {
        self.repeated.iter().copied().max().unwrap_or(0)
    }

    /// Virtual stages of each rank.
    pub fn chunks(&self) -> u64 {
        self.strategy.schedule.chunks() as u64
    }

    /// Replicas that share what the stage of sharding shares.
    pub fn shards(&self) -> u64 {
        let Strategy { data_parallel, context_parallel, shards, .. } = self.strategy;
        shards.unwrap_or(data_parallel.saturating_mul(context_parallel))
    }

    /// Micro-batches of each pipeline.
    pub fn micro_batches(&self, global_batch: u64) -> u64 {
        let Strategy { data_parallel, micro_batch, .. } = self.strategy;
        global_batch / (data_parallel * micro_batch).max(1)
    }

    /// The plan by all that the rules of frameworks ask for.
    pub(super) fn shape(&self, run: &Run) -> Result<PlanShape, CannotLaunch> {
        let training = run.plan.training.as_ref().ok_or(CannotLaunch::NoModel)?;
        let (spec, strategy) = (run.spec, &self.strategy);
        Ok(PlanShape {
            devices: run.plan.job.devices,
            global_batch: training.global_batch,
            micro_batch: strategy.micro_batch,
            sequence: training.sequence,
            layers: spec.layers,
            heads: spec.heads,
            kv_heads: spec.kv_heads,
            mlp: spec.divisible_mlp(),
            tensor: strategy.tensor_parallel,
            sequence_parallel: strategy.sequence_parallel,
            context: strategy.context_parallel,
            context_kind: strategy.context_kind,
            experts: spec.experts.map(|experts| ExpertShape {
                count: experts.count,
                mlp: experts.mlp,
                parallel: strategy.expert_parallel,
                tensor: strategy.expert_tensor,
            }),
            pipeline: strategy.pipeline,
            chunks: self.chunks(),
            group: strategy.schedule.group(),
            data: strategy.data_parallel,
            zero: strategy.zero,
            shards: if strategy.zero == Zero::Nothing { 1 } else { self.shards() },
            order: strategy.order,
            cut: CutShape::Layout,
            repeated: self.repeated_layers(),
            modules: strategy.repeated,
        })
    }
}

/// Megatron's words for the layers of virtual stages, one of which may also have the layer that tells
/// the token after the next: `Et|(tt|)*30mL`.
pub fn layout(stages: &[Vec<u64>], next_token: Option<usize>) -> String {
    let last = stages.len().saturating_sub(1);
    let word = |at: usize, layers: &[u64]| {
        let first = if at == 0 { "E" } else { "" };
        let more = if next_token == Some(at) { "m" } else { "" };
        let loss = if at == last { "L" } else { "|" };
        format!("{first}{}{more}{loss}", "t".repeat(layers.len()))
    };
    let words: Vec<String> = stages.iter().enumerate().map(|(at, one)| word(at, one)).collect();
    let runs = words.chunk_by(|one, other| one == other);
    let said = runs.map(|run| match run {
        [one] => one.clone(),
        [one, ..] => format!("({one})*{}", run.len()),
        [] => String::new(),
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_names_every_layer_once_and_equal_stages_together() {
        let stages = |counts: &[u64]| -> Vec<Vec<u64>> {
            counts.iter().map(|&count| (0..count).collect()).collect()
        };
        assert_eq!(layout(&stages(&[1, 2, 2, 2, 1]), None), "Et|(tt|)*3tL");
        assert_eq!(layout(&stages(&[0, 3, 0]), None), "E|ttt|L");
        assert_eq!(layout(&stages(&[4, 4]), None), "Etttt|ttttL");
        assert_eq!(layout(&stages(&[2]), None), "EttL");
        let published = [vec![1], vec![2; 30], vec![0]].concat();
        assert_eq!(layout(&stages(&published), Some(31)), "Et|(tt|)*30mL");
        assert_eq!(layout(&stages(&[2, 0, 0]), Some(1)), "Ett|m|L");
    }
}
