//! The model that a command is about, and how it is trained.

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::Refusal;
use phaze::input::Conventions;
use phaze::input::InputError;
use phaze::input::runs::attention;
use phaze::input::source;
use phaze::model::Attention;
use phaze::model::Model;
use phaze::parallel::Setting;
use phaze::store::files;
use phaze::units::Bytes;

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
    /// How `model` is trained with these options on one device; the caller sets the rest.
    pub fn setting(&self, model: &Model, conventions: &Conventions) -> Setting {
        Setting {
            micro_batch: 1,
            sequence: self.seq.unwrap_or(model.spec.max_sequence),
            tensor_parallel: 1,
            sequence_parallel: self.sequence_parallel,
            attention: self.attention.unwrap_or(conventions.attention),
            element: Bytes(2),
            ..Setting::ALONE
        }
    }
}

/// Reads the model that a user calls `name`: a built-in one, or a file.
pub fn load(name: &str) -> Result<Model, Refusal> {
    Ok(source::model(name, &files::small)?.0)
}

/// The kind of layer that a user calls `name` in an option; `layer` is the most frequent one.
pub fn layer_named(model: &Model, name: &str, option: &str) -> Result<usize, Refusal> {
    let kinds = 0..model.kinds.len();
    let found = if name == "layer" {
        kinds.max_by_key(|&kind| model.occurrences(kind))
    } else {
        kinds.into_iter().find(|&kind| model.kinds[kind].name == name)
    };
    found.ok_or_else(|| {
        let mut known: Vec<String> = model.kinds.iter().map(|kind| kind.name.clone()).collect();
        known.push("layer".into());
        let (file, what, found) = (option.into(), "layer".into(), name.into());
        InputError::Unknown { file, what, found, known }.into()
    })
}
