//! How a model is trained on one device, for every verb that looks at its operators.

use super::Keywords;
use super::place::ATTENTIONS;
use crate::input::Conventions;
use crate::input::InputError;
use crate::input::numbers::Field;
use crate::input::place::LARGEST_DEGREE;
use crate::input::place::LARGEST_SEQUENCE;
use crate::model::Attention;
use crate::model::Model;
use crate::parallel::Setting;
use crate::units::Bytes;

/// How a model is trained; what is left out has a default.
#[derive(Clone, Debug)]
pub struct TrainingRequest {
    /// Tokens in a sequence; `None` for the most that the model was made for.
    pub sequence: Option<u64>,
    /// The kernel of attention.
    pub attention: Option<Attention>,
    /// Whether norms, dropouts and residuals are divided along the sequence.
    pub sequence_parallel: bool,
    /// Sequences that pass through the model together.
    pub micro_batch: u64,
    /// Devices that share each layer.
    pub tensor_parallel: u64,
    /// Whether everything is counted as in the published evaluation.
    pub published: bool,
}

impl TrainingRequest {
    /// Takes what is about training.
    ///
    /// # Errors
    /// What is of another kind or out of range.
    pub fn take(given: &mut Keywords) -> Result<Self, InputError> {
        let verb = given.verb().to_owned();
        let mut whole = |key: &str, most: u64| {
            let found = given.take::<u64>(key)?;
            found.map(|found| Field::new(&verb, key).whole(found, 1, most)).transpose()
        };
        let sequence = whole("sequence", LARGEST_SEQUENCE)?;
        let micro_batch = whole("micro_batch", LARGEST_DEGREE)?.unwrap_or(1);
        let tensor_parallel = whole("tensor_parallel", LARGEST_DEGREE)?.unwrap_or(1);
        Ok(Self {
            sequence,
            attention: given.word("attention", &ATTENTIONS)?,
            sequence_parallel: given.switch("sequence_parallel")?,
            micro_batch,
            tensor_parallel,
            published: given.switch("published")?,
        })
    }

    /// Our conventions, or the published ones.
    pub fn conventions(&self) -> &'static Conventions {
        Conventions::of(self.published)
    }

    /// How `model` is trained.
    pub fn setting(&self, model: &Model) -> Setting {
        Setting {
            micro_batch: self.micro_batch,
            sequence: self.sequence.unwrap_or(model.spec.max_sequence),
            tensor_parallel: self.tensor_parallel,
            sequence_parallel: self.sequence_parallel,
            attention: self.attention.unwrap_or(self.conventions().attention),
            element: Bytes(2),
            ..Setting::ALONE
        }
        .with_experts_as_layers(&model.spec)
    }
}

/// The kind of layer that a user calls `name`; `layer` is the most frequent one. `place` is what
/// held the name.
///
/// # Errors
/// That there is none of that name.
pub fn layer_named(model: &Model, name: &str, place: &str) -> Result<usize, InputError> {
    let kinds = 0..model.kinds.len();
    let found = if name == "layer" {
        kinds.max_by_key(|&kind| model.occurrences(kind))
    } else {
        kinds.into_iter().find(|&kind| model.kinds[kind].name == name)
    };
    found.ok_or_else(|| {
        let mut known: Vec<String> = model.kinds.iter().map(|kind| kind.name.clone()).collect();
        known.push("layer".into());
        let (file, what, found) = (place.into(), "layer".into(), name.into());
        InputError::Unknown { file, what, found, known }
    })
}
