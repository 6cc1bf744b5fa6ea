//! `phaze inspect`: what training a model computes, keeps and exchanges.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::Exit;
use super::ModelArgs;
use super::Refusal;
use super::model_args::LARGEST_MICRO_BATCH;
use super::model_args::LARGEST_WIDTH;
use phaze::ask::inspect::InspectRequest;
use phaze::ask::training::layer_named;
use phaze::input::imbalance;
use phaze::input::model_file;
use phaze::input::next_tokens;
use phaze::input::numbers::Field;
use phaze::model::Module;
use phaze::model::Optimizer;
use phaze::parallel::ContextKind;
use phaze::report::inspect;
use phaze::store::files;

/// Show a model's training graph: parameters, FLOPs, operators, memory and exchanges.
#[derive(ClapArgs)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Sequences that pass through the model together
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_MICRO_BATCH))]
    micro_batch: u64,
    /// Devices that share each layer
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    tensor_parallel: u64,
    /// Devices that share the tokens of each sequence
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    context_parallel: u64,
    /// How those devices let their tokens attend to each other's: keys and values go round, are
    /// gathered, or tokens are exchanged for heads
    #[arg(long, value_name = "HOW", default_value = "ring", value_parser = context_kind())]
    context_kind: ContextKind,
    /// Devices among which the experts of each layer are dealt out
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    expert_parallel: u64,
    /// Devices that share each expert [default: as many as share a layer]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=LARGEST_WIDTH))]
    expert_tensor: Option<u64>,
    /// How much more than an even load the fullest device of a mixture of experts has: 1.2
    #[arg(long, value_name = "FACTOR")]
    imbalance: Option<f64>,
    /// Layers that are trained to tell the token after the next: 0 or 1 [default: what the
    /// configuration says]
    #[arg(long, value_name = "LAYERS")]
    mtp: Option<u64>,
    /// Modules that the backward pass repeats
    #[arg(long, value_name = "MODULE,…", value_delimiter = ',', value_parser = module())]
    repeat: Vec<Module>,
    /// Leave out what a causal mask hides, as fused attention kernels do
    #[arg(long)]
    causal: bool,
    /// Bytes of one activation, weight or gradient as the passes compute with it
    #[arg(long, value_name = "BYTES", default_value_t = 2,
          value_parser = clap::value_parser!(u64).range(1..=8))]
    element_bytes: u64,
    /// Whose gradients and state are counted [default: adam-mixed, or sgd with --published]
    #[arg(long, value_name = "NAME", value_parser = optimizer())]
    optimizer: Option<Optimizer>,
    /// Count as the published evaluation does: stored attention, plain gradient descent
    #[arg(long)]
    published: bool,
    /// Print JSON, with everything there is
    #[arg(long, conflicts_with = "dot")]
    json: bool,
    /// Write the model to a file, layer by layer in named dimensions, to start one's own from
    #[arg(long, value_name = "FILE.json")]
    export: Option<PathBuf>,
    /// Print one layer's graph for Graphviz: `embedding`, `transformer`, `head`, or `layer` for
    /// the most frequent
    #[arg(long, value_name = "LAYER")]
    dot: Option<String>,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let mut model = self.model.load()?;
        if let Some(count) = self.mtp {
            next_tokens::apply(&mut model, count, &Field::new("inspect", "--mtp"))?;
        }
        if let Some(factor) = self.imbalance {
            imbalance::give(&mut model, factor, "--imbalance")?;
        }
        if let Some(path) = &self.export {
            files::write(path, model_file::text(&model).as_bytes())?;
        }
        let request = InspectRequest {
            training: self.model.options.training(
                self.micro_batch,
                self.tensor_parallel,
                self.published,
            ),
            context_parallel: self.context_parallel,
            context_kind: self.context_kind,
            expert_parallel: self.expert_parallel,
            expert_tensor: self.expert_tensor,
            repeat: self.repeat.clone(),
            causal: self.causal,
            element_bytes: self.element_bytes,
            optimizer: self.optimizer,
        };
        let inspection = request.inspection(&model, &self.model.model)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        match &self.dot {
            Some(name) => {
                inspect::dot(
                    &inspection.share.kinds[layer_named(&model, name, "--dot")?],
                    &mut out,
                )?;
            }
            None if self.json => inspect::json(&inspection, &mut out)?,
            None => inspect::text(&inspection, &mut out)?,
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

/// Reads the name of a kind of context parallelism.
fn context_kind() -> impl clap::builder::TypedValueParser<Value = ContextKind> {
    PossibleValuesParser::new(ContextKind::ALL.map(ContextKind::name))
        .map(|name| ContextKind::named(&name).expect("the parser lets only names of kinds through"))
}

/// Reads the name of a module.
fn module() -> impl clap::builder::TypedValueParser<Value = Module> {
    PossibleValuesParser::new(Module::ALL.map(Module::name))
        .map(|name| Module::named(&name).expect("the parser lets only names of modules through"))
}

/// Reads the name of an optimizer.
pub fn optimizer() -> impl clap::builder::TypedValueParser<Value = Optimizer> {
    PossibleValuesParser::new(Optimizer::ALL.map(Optimizer::name)).map(|name| {
        Optimizer::named(&name).expect("the parser lets only names of optimizers through")
    })
}
