//! What training a model computes, keeps and exchanges.

use super::Keywords;
use super::Refusal;
use super::training::TrainingRequest;
use crate::input::InputError;
use crate::input::numbers::Field;
use crate::input::place::LARGEST_DEGREE;
use crate::model::Masked;
use crate::model::Model;
use crate::model::Module;
use crate::model::Optimizer;
use crate::parallel::ContextKind;
use crate::parallel::Setting;
use crate::report::inspect::Inspection;
use crate::units::Bytes;

/// What is asked of a model.
#[derive(Clone, Debug)]
pub struct InspectRequest {
    /// How it is trained.
    pub training: TrainingRequest,
    /// Devices that share the tokens of each sequence.
    pub context_parallel: u64,
    /// How their tokens attend to each other's.
    pub context_kind: ContextKind,
    /// Devices among which the experts of each layer are dealt out.
    pub expert_parallel: u64,
    /// Devices that share each expert; `None` for as many as share a layer.
    pub expert_tensor: Option<u64>,
    /// Modules that the backward pass repeats.
    pub repeat: Vec<Module>,
    /// Whether what a causal mask hides is left out.
    pub causal: bool,
    /// Bytes of one activation, weight or gradient.
    pub element_bytes: u64,
    /// Whose gradients and state are counted.
    pub optimizer: Option<Optimizer>,
}

impl InspectRequest {
    /// What the keywords ask.
    ///
    /// # Errors
    /// What is not known, of another kind or out of range.
    pub fn read(mut given: Keywords) -> Result<Self, InputError> {
        let verb = given.verb().to_owned();
        let training = TrainingRequest::take(&mut given)?;
        let mut whole = |key: &str, usual: u64, most: u64| {
            let found = given.take::<u64>(key)?.unwrap_or(usual);
            Field::new(&verb, key).whole(found, 1, most)
        };
        let context_parallel = whole("context_parallel", 1, LARGEST_DEGREE)?;
        let expert_parallel = whole("expert_parallel", 1, LARGEST_DEGREE)?;
        let element_bytes = whole("element_bytes", 2, 8)?;
        let expert_tensor = given.take::<u64>("expert_tensor")?;
        let expert_tensor = expert_tensor
            .map(|found| Field::new(&verb, "expert_tensor").whole(found, 1, LARGEST_DEGREE))
            .transpose()?;
        let kinds = ContextKind::ALL.map(|known| (known.name(), known));
        let optimizers = Optimizer::ALL.map(|known| (known.name(), known));
        let repeat = given.take::<Vec<String>>("repeat")?.unwrap_or_default();
        let repeat = repeat.iter().map(|name| module(name, &verb)).collect::<Result<_, _>>()?;
        let request = Self {
            training,
            context_parallel,
            expert_parallel,
            expert_tensor,
            context_kind: given.word("context_kind", &kinds)?.unwrap_or(ContextKind::ALL[0]),
            repeat,
            causal: given.switch("causal")?,
            element_bytes,
            optimizer: given.word("optimizer", &optimizers)?,
        };
        given.end()?;
        Ok(request)
    }

    /// Looks at `model`, which goes by `name`.
    ///
    /// # Errors
    /// That it cannot be trained so.
    pub fn inspection<'a>(&self, model: &'a Model, name: &str) -> Result<Inspection<'a>, Refusal> {
        let training = self.training.setting(model);
        let setting = Setting {
            context: self.context_parallel,
            context_kind: self.context_kind,
            expert: self.expert_parallel,
            expert_tensor: self.expert_tensor.unwrap_or(training.expert_tensor),
            repeated: self.repeat.iter().copied().collect(),
            masked: if self.causal { Masked::Skipped } else { Masked::Computed },
            element: Bytes(self.element_bytes),
            ..training
        };
        let optimizer = self.optimizer.unwrap_or(self.training.conventions().optimizer);
        Inspection::new(model, setting, optimizer)
            .map_err(|illegal| Refusal::Options(format!("{name}: {illegal}")))
    }
}

fn module(name: &str, verb: &str) -> Result<Module, InputError> {
    Module::named(name).ok_or_else(|| InputError::Unknown {
        file: verb.to_owned(),
        what: "module".into(),
        found: name.to_owned(),
        known: Module::ALL.map(|known| known.name().to_owned()).to_vec(),
    })
}
