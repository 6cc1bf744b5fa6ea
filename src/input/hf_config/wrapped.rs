//! Configurations of models that read more than text, whose text model stands in `text_config`.

use serde_json::Value;

use crate::input::InputError;
use crate::input::fields::Fields;

/// The configuration of the text model, and what is left out around it.
///
/// A file without `text_config` is its own; some families still have a vision part beside it.
pub fn unwrapped(file: &str, mut value: Value) -> Result<(Value, Option<String>), InputError> {
    let fields = Fields::of(file, &value)?;
    let parts = [("vision_config", "vision"), ("audio_config", "audio")];
    let there = parts.into_iter().filter(|(field, _)| fields.optional(field).is_some());
    let names: Vec<&str> = there.map(|(_, name)| name).collect();
    let around = match &names[..] {
        [] => None,
        names => Some(format!("the {} part", names.join(" and "))),
    };
    let outer = fields.optional("model_type").cloned();
    let tied = fields.optional("tie_word_embeddings").cloned();
    let Some(text) = value.get_mut("text_config").map(Value::take).filter(|text| !text.is_null())
    else {
        return Ok((value, around));
    };
    let Value::Object(mut text) = text else {
        let message = "`text_config` is not a JSON object".into();
        return Err(InputError::Syntax { file: file.into(), line: None, message });
    };
    for (field, from_outside) in [("model_type", outer), ("tie_word_embeddings", tied)] {
        if let Some(given) = from_outside {
            text.entry(field).or_insert(given);
        }
    }
    let around = around.unwrap_or_else(|| "all but the text model".into());
    Ok((Value::Object(text), Some(around)))
}
