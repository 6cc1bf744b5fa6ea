//! How long a matmul, many of them, or all operators of a model take.

use std::sync::atomic::AtomicUsize;

use serde_json::Value;

use super::Refusal;
use super::chip::ChipRequest;
use super::training::TrainingRequest;
use crate::estimate::EstimateTable;
use crate::estimate::Options;
use crate::estimate::TooLarge;
use crate::estimate::many;
use crate::estimate::roofline::Roofline;
use crate::estimate::tensor_core::Scratch;
use crate::estimate::tensor_core::best;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::Use;
use crate::hardware::network::Network;
use crate::input::Conventions;
use crate::input::InputError;
use crate::input::hardware::Hardware;
use crate::input::jobs;
use crate::input::jobs::Job;
use crate::input::source;
use crate::input::source::Reader;
use crate::model::Precision;
use crate::model::op::Homes;
use crate::model::op::Op;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::shard;
use crate::plan::Basis;
use crate::report::basis;
use crate::report::estimate::MatmulAnswer;
use crate::report::estimate::OpAnswer;
use crate::report::estimate::PassAnswer;
use crate::report::estimate::model_value;
use crate::units::Bytes;

/// On what operators are estimated, and how.
#[derive(Clone, Debug)]
pub struct EstimateRequest {
    /// The accelerator.
    pub chip: ChipRequest,
    /// Whether everything is counted as in the published evaluation.
    pub published: bool,
    /// Millionths of time that may be spent to save energy.
    pub slack: u64,
    /// Threads to use.
    pub threads: usize,
}

/// One matmul, estimated.
pub struct OneMatmul {
    /// How it does.
    pub answer: MatmulAnswer,
    /// On what.
    pub hardware: Hardware,
    /// As it is built.
    pub chip: Accelerator,
}

impl EstimateRequest {
    fn conventions(&self) -> &'static Conventions {
        Conventions::of(self.published)
    }

    /// Millionths of time, of a share.
    ///
    /// # Errors
    /// That it is out of range.
    pub fn slack_of(share: f64, place: &str) -> Result<u64, Refusal> {
        if !(0.0..=10.0).contains(&share) {
            return Err(Refusal::Options(format!("{place} {share}: allowed are 0 to 10")));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked first"
        )]
        let millionths = (share * 1e6).round() as u64;
        Ok(millionths)
    }

    /// Estimates a matmul that is written as `1x2048x12288x12288`, on one core or spread over all.
    ///
    /// # Errors
    /// What cannot be read, is not known or out of range.
    pub fn matmul(&self, text: &str, one_core: bool, read: &Reader) -> Result<OneMatmul, Refusal> {
        let (hardware, chip) = self.chip.resolve(self.conventions(), read)?;
        let place = self.chip.spelling.of("matmul");
        let matmul = jobs::matmul(text, &place)?;
        let core = chip.tensor(if one_core { Use::Alone } else { Use::Spread });
        let answer = answer(&Job { matmul, core }, self.slack, &mut Scratch::default())
            .ok_or_else(|| out_of_range(&place, text))?;
        Ok(OneMatmul { answer, hardware, chip })
    }

    /// The points of a text, one JSON object per line; `file` is what errors refer to.
    ///
    /// # Errors
    /// The first line that makes no sense.
    pub fn jobs(&self, text: &str, file: &str, read: &Reader) -> Result<Vec<Job>, Refusal> {
        let (hardware, _) = self.chip.resolve(self.conventions(), read)?;
        Ok(jobs::jobs(text, file, &hardware)?)
    }

    /// Estimates points; `done` counts them.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn points(
        &self,
        jobs: &[Job],
        file: &str,
        done: &AtomicUsize,
    ) -> Result<Vec<MatmulAnswer>, Refusal> {
        let answers = many::each(jobs, self.threads, done, |job| {
            SCRATCH.with_borrow_mut(|scratch| answer(job, self.slack, scratch))
        });
        let answers = jobs.iter().zip(answers).map(|(job, answer)| {
            let m = job.matmul;
            let found = format!("{}x{}x{}x{}", m.b, m.m, m.k, m.n);
            answer.ok_or_else(|| Refusal::from(out_of_range(file, &found)))
        });
        answers.collect()
    }

    /// Makes ready what is asked of all operators of a model.
    ///
    /// # Errors
    /// What cannot be read, is not known, or that the model cannot be trained so.
    pub fn model(
        &self,
        name: &str,
        training: &TrainingRequest,
        read: &Reader,
    ) -> Result<ModelEstimate, Refusal> {
        let (hardware, chip) = self.chip.resolve(self.conventions(), read)?;
        let (model, _) = source::model(name, read)?;
        let setting = Setting {
            element: Bytes(hardware.physics.element_bytes),
            stack: chip.efficiency().stack(Precision::Bf16),
            ..training.setting(&model)
        };
        let share = shard(&model, setting)
            .map_err(|illegal| Refusal::Options(format!("{name}: {illegal}")))?;
        let vector_costs = self.conventions().vector_costs;
        Ok(ModelEstimate {
            name: name.to_owned(),
            title: format!(
                "{name} on {}: sequence {}, micro-batch {}, tensor parallel {}, resting on {}",
                hardware.name,
                setting.sequence,
                setting.micro_batch,
                setting.tensor_parallel,
                basis::words(Basis::of(&hardware.physics, Precision::Bf16).as_ref())
            ),
            share,
            chip,
            network: hardware.physics.reached_network(),
            options: Options { vector_costs, energy_slack: self.slack },
            threads: self.threads,
        })
    }
}

/// All operators of a model on an accelerator, to be estimated.
pub struct ModelEstimate {
    name: String,
    /// What is estimated, in a line.
    pub title: String,
    share: Share,
    chip: Accelerator,
    network: Network,
    options: Options,
    threads: usize,
}

impl ModelEstimate {
    /// Every pass of every kind of layer: its name, how often it occurs, which pass, its operators.
    fn graphs(&self) -> Vec<(&str, u64, &'static str, &Dag<Op>)> {
        let layers = self.share.kinds.iter().enumerate();
        let passes = layers.flat_map(|(kind, layer)| {
            let occurs = self.share.sequence.iter().filter(|&&at| at == kind).count() as u64;
            [("forward", &layer.forward), ("backward", &layer.backward)]
                .map(|(pass, graph)| (layer.name.as_str(), occurs, pass, graph))
        });
        passes.collect()
    }

    /// How many operators there are.
    pub fn n_operators(&self) -> usize {
        self.graphs().iter().map(|(.., graph)| graph.len()).sum()
    }

    /// Estimates them; `done` counts them.
    ///
    /// # Errors
    /// That one is out of range.
    pub fn passes(&self, done: &AtomicUsize) -> Result<Vec<PassAnswer<'_>>, Refusal> {
        let table = EstimateTable::new(self.options);
        let devices = self.share.setting.tensor_parallel;
        let cluster = Cluster { devices, network: self.network };
        let graphs = self.graphs();
        let ops: Vec<&Op> = graphs.iter().flat_map(|pass| pass.3.nodes()).collect();
        let answers = many::each(&ops, self.threads, done, |op| {
            let costs = table.costs(op, &self.chip, &cluster)?;
            let too_large = || TooLarge(op.name.clone());
            let roofline =
                Roofline::of(op, &self.chip, self.options.vector_costs).ok_or_else(too_large)?;
            Ok(OpAnswer { op, costs, roofline })
        });
        let answers: Result<Vec<OpAnswer>, TooLarge> = answers.into_iter().collect();
        let answers =
            answers.map_err(|reason| Refusal::Options(format!("{}: {reason}", self.name)))?;
        let mut answers = answers.into_iter();
        let passes = graphs.into_iter().map(|(layer, occurs, pass, graph)| {
            let operators = answers.by_ref().take(graph.len()).collect();
            PassAnswer { layer, occurs, pass, operators }
        });
        Ok(passes.collect())
    }

    /// The answer for programs.
    ///
    /// # Errors
    /// That an operator is out of range.
    pub fn value(&self) -> Result<Value, Refusal> {
        Ok(model_value(&self.title, &self.passes(&AtomicUsize::new(0))?))
    }
}

thread_local! {
    static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::new(Scratch::default());
}

fn answer(job: &Job, slack: u64, scratch: &mut Scratch) -> Option<MatmulAnswer> {
    let Job { matmul, core } = *job;
    let (mapping, cost) = best(&matmul, Homes::ALL_HBM, &core, slack, scratch)?;
    Some(MatmulAnswer { matmul, core, mapping, cost })
}

fn out_of_range(file: &str, found: &str) -> InputError {
    InputError::Value {
        file: file.to_owned(),
        field: "matmul".into(),
        found: found.to_owned(),
        problem: "moves 2^64 bytes or more whatever the mapping".into(),
        allowed: "give a smaller matmul or larger buffers".into(),
    }
}
