//! The model that a command is about, and how it is trained.

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::Refusal;
use phaze::ask::training::TrainingRequest;
use phaze::input::runs::attention;
use phaze::input::source;
use phaze::model::Attention;
use phaze::model::Model;
use phaze::store::files;

/// The largest `--seq`, `--micro-batch` and `--tensor-parallel`: beyond any use, and small enough
/// to count with.
pub const LARGEST_SEQUENCE: u64 = 1 << 24;
pub const LARGEST_MICRO_BATCH: u64 = 1 << 16;
pub const LARGEST_WIDTH: u64 = 1 << 16;

/// A model by name or path, with the options that every command about models takes.
#[derive(Args)]
pub struct ModelArgs {
    /// A built-in model (`phaze models` lists them) or the path of a Hugging Face config.json;
    /// `-` reads one from standard input
    pub model: String,
    #[command(flatten)]
    pub options: ModelOptions,
}

/// How a model is trained, apart from its division among devices.
#[derive(Args, Clone, Debug)]
pub struct ModelOptions {
    /// Tokens in a sequence [default: the most that the model was made for]
    #[arg(long, value_name = "TOKENS",
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_SEQUENCE))]
    pub seq: Option<u64>,
    /// The kernel of attention: fused, which computes its probabilities once more for the backward
    /// pass, or unfused, which keeps them; recomputed and stored are other names of the two
    /// [default: fused, or unfused with --published]
    #[arg(long, value_name = "HOW",
          value_parser = PossibleValuesParser::new(["fused", "unfused", "recomputed", "stored"])
              .map(|name| attention(&name).unwrap_or(Attention::Recomputed)))]
    pub attention: Option<Attention>,
    /// Divide norms, dropouts and residuals along the sequence where devices share a layer
    #[arg(long)]
    pub sequence_parallel: bool,
}

impl ModelArgs {
    /// Reads the model.
    pub fn load(&self) -> Result<Model, Refusal> {
        load(&self.model)
    }
}

impl ModelOptions {
    /// What these options ask, with what each command has of its own.
    pub fn training(
        &self,
        micro_batch: u64,
        tensor_parallel: u64,
        published: bool,
    ) -> TrainingRequest {
        TrainingRequest {
            sequence: self.seq,
            attention: self.attention,
            sequence_parallel: self.sequence_parallel,
            micro_batch,
            tensor_parallel,
            published,
        }
    }
}

/// Reads the model that a user calls `name`: a built-in one, or a file.
pub fn load(name: &str) -> Result<Model, Refusal> {
    Ok(source::model(name, &files::small)?.0)
}
