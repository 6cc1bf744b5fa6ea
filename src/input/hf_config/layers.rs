//! How layers of one model differ, as configurations tell it.

use serde_json::Value;

use crate::input::InputError;
use crate::input::fields::Fields;
use crate::model::Reach;
use crate::model::Variant;

/// What each layer looks at: what `layer_types` says, or where it is silent, a window of so many
/// tokens in those layers that `is_local` picks, counted from 0.
pub fn variants(
    fields: &Fields,
    layers: u64,
    window: Option<u64>,
    is_local: impl Fn(u64) -> bool,
) -> Result<Vec<Variant>, InputError> {
    if let Some(types) = fields.optional("layer_types") {
        return listed(fields, types, layers, window);
    }
    let reach = |layer: u64| match window {
        Some(tokens) if is_local(layer) => Reach::Window(tokens),
        _ => Reach::All,
    };
    Ok((0..layers).map(|layer| Variant { reach: reach(layer), ..Variant::PLAIN }).collect())
}

/// The variants of a list of names, one for each layer.
fn listed(
    fields: &Fields,
    types: &Value,
    layers: u64,
    window: Option<u64>,
) -> Result<Vec<Variant>, InputError> {
    let allowed = "allowed is a list with \"full_attention\", \"sliding_attention\" or \
                   \"chunked_attention\" for each layer";
    let wrong = |problem: &str| fields.wrong("layer_types", problem, allowed);
    let names = types.as_array().ok_or_else(|| wrong("is not a list"))?;
    if names.len() as u64 != layers {
        return Err(wrong(&format!("has {} entries for {layers} layers", names.len())));
    }
    let reach = |name: &Value| match name.as_str() {
        Some("full_attention") => Ok(Reach::All),
        Some("sliding_attention") => match window {
            Some(tokens) => Ok(Reach::Window(tokens)),
            None => Err(wrong("asks for windows and `sliding_window` is not there")),
        },
        Some("chunked_attention") => {
            let chunk = fields.size("attention_chunk_size", "the tokens of a chunk")?;
            Ok(Reach::Chunk(chunk))
        }
        _ => Err(wrong("names a kind of layer that is not modelled")),
    };
    names.iter().map(|name| Ok(Variant { reach: reach(name)?, ..Variant::PLAIN })).collect()
}

/// Takes the positions from those layers that `no_rope_layers` has a 0 for, or from one of
/// `no_rope_layer_interval`, which is every fourth.
pub fn unplaced(fields: &Fields, variants: &mut [Variant]) -> Result<(), InputError> {
    let interval = fields.bounded("no_rope_layer_interval", 100_000)?.unwrap_or(4);
    let Some(listed) =
        fields.optional("no_rope_layers").filter(|list| **list != Value::Array(vec![]))
    else {
        for (at, variant) in (1..).zip(variants) {
            variant.rotary = at % interval != 0;
        }
        return Ok(());
    };
    let wrong = |problem: &str| {
        fields.wrong("no_rope_layers", problem, "allowed is a list with 0 or 1 for each layer")
    };
    let listed = listed.as_array().ok_or_else(|| wrong("is not a list"))?;
    if listed.len() != variants.len() {
        return Err(wrong(&format!("has {} entries for {} layers", listed.len(), variants.len())));
    }
    for (variant, has_positions) in variants.iter_mut().zip(listed) {
        variant.rotary = match has_positions.as_u64() {
            Some(0) => false,
            Some(1) => true,
            _ => return Err(wrong("holds something else")),
        };
    }
    Ok(())
}
