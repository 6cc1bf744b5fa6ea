//! A training run that somebody measured.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::model::Attention;
use crate::model::Kernels;
use crate::model::Model;
use crate::model::Precision;
use crate::parallel::zero::Zero;

/// What a run computes again for its backward passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repeated {
    /// Nothing.
    Nothing,
    /// Attention's core, where its kernel keeps what it makes.
    Core,
    /// Every transformer layer.
    Layers,
    /// So many transformer layers of the model.
    Some(u64),
}

/// One measured run: how a model was trained, and what that took.
///
/// Invariant, kept by the reader: tensor · context · pipeline · data are the devices, and a whole
/// number of micro-batches makes every pipeline's part of the batch.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its file and line.
    pub place: String,
    /// What it is published with.
    pub set: String,
    /// Where it is published.
    pub source: String,
    /// What users call the model.
    pub model_name: String,
    /// What was trained.
    pub model: Arc<Model>,
    /// What it ran on.
    pub hardware: String,
    /// The software.
    pub stack: String,
    /// Accelerators.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// Sequences in a micro-batch; `None` where that is not published.
    pub micro_batch: Option<u64>,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Devices that share each layer.
    pub tensor: u64,
    /// Whether they divide norms and residuals along the sequence too.
    pub sequence_parallel: bool,
    /// Devices that share the tokens of a sequence.
    pub context: u64,
    /// Ranks of a pipeline.
    pub pipeline: u64,
    /// Virtual stages of each rank.
    pub chunks: u64,
    /// Copies of the pipeline.
    pub data: u64,
    /// Devices among which experts are divided.
    pub expert: u64,
    /// What replicas share.
    pub zero: Zero,
    /// What is computed again.
    pub repeated: Repeated,
    /// The kernel of attention.
    pub attention: Attention,
    /// In which numbers matmuls compute.
    pub precision: Precision,
    /// Which work runs together.
    pub kernels: Kernels,
    /// Of one batch.
    pub seconds: Option<f64>,
    /// Allocated on the fullest device.
    pub memory_gib: Option<f64>,
    /// What else is to be known.
    pub note: String,
}

impl Run {
    /// Tokens of a batch for each device: what times are compared by where batches differ.
    pub fn tokens_per_device(&self) -> f64 {
        self.global_batch as f64 * self.sequence as f64 / self.devices as f64
    }

    /// What the model is, whatever it is called.
    pub fn shape(&self) -> crate::model::spec::Spec {
        crate::model::spec::Spec { name: String::new(), ..self.model.spec.clone() }
    }

    /// The sizes of micro-batches that it may have had: powers of two that divide a pipeline's part.
    pub fn micro_batches(&self) -> Vec<u64> {
        if let Some(known) = self.micro_batch {
            return vec![known];
        }
        let part = self.global_batch / self.data;
        let powers = (0..63).map(|power| 1_u64 << power).take_while(|&size| size <= part);
        powers.filter(|&size| part.is_multiple_of(size)).collect()
    }

    /// How users tell it from others.
    pub fn strategy(&self) -> String {
        let mut said = format!("t{}", self.tensor);
        if self.sequence_parallel {
            said += " sp";
        }
        for (letter, degree) in [
            ("c", self.context),
            ("p", self.pipeline),
            ("v", self.chunks),
            ("d", self.data),
            ("e", self.expert),
        ] {
            if degree > 1 {
                let _ = write!(said, " {letter}{degree}");
            }
        }
        said
    }
}
