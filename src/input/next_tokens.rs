//! Layers that are trained to tell the token after the next: a number beside a model's configuration.

use super::InputError;
use super::numbers::Field;
use crate::model::Model;
use crate::model::families;
use crate::model::spec::Spec;

/// The most such layers.
pub const MOST: u64 = 1;

/// What is said where a model can have no such layer.
pub const ALLOWED: &str = "only mixtures of experts and other newer decoders have it";

/// Gives a model so many such layers in place of those that its configuration asks for.
///
/// # Errors
/// More than are known, a model that can have none, or a graph of a user's own, which says itself
/// what it trains.
pub fn apply(model: &mut Model, count: u64, field: &Field) -> Result<(), InputError> {
    let count = field.whole(count, 0, MOST)?;
    if model.spec.next_tokens == count {
        return Ok(());
    }
    let found = count.to_string();
    if !model.spec.can_tell_next_tokens() {
        let problem =
            format!("asks {} for a layer that tells the token after the next", model.spec.name);
        return Err(field.value(&found, &problem, ALLOWED));
    }
    if families::build(&model.spec) != *model {
        let problem = "stands beside a graph of its own";
        return Err(field.value(&found, problem, "write the layer into the file, or leave it out"));
    }
    *model = families::build(&Spec { next_tokens: count, ..model.spec.clone() });
    Ok(())
}

/// The same for every model that can have it.
///
/// # Errors
/// As of [`apply`], or that no model can have it.
pub fn apply_to_those_that_can(
    models: &mut [Model],
    count: u64,
    field: &Field,
) -> Result<(), InputError> {
    let mut able = models.iter_mut().filter(|model| model.spec.can_tell_next_tokens()).peekable();
    if able.peek().is_none() {
        let problem = "asks for a layer that none of the models can have";
        return Err(field.value(&count.to_string(), problem, ALLOWED));
    }
    able.try_for_each(|model| apply(model, count, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layer_is_added_and_taken_away_as_a_configuration_would() {
        let field = Field::new("place", "mtp");
        let plain = crate::input::model("deepseek-v3").unwrap();
        let more = crate::input::model("deepseek-v3-mtp").unwrap();
        let mut found = plain.clone();
        apply(&mut found, 1, &field).unwrap();
        assert_eq!((&found.kinds, &found.sequence), (&more.kinds, &more.sequence));
        assert_eq!(found.training_head_parameters(), 11_610_068_224);
        apply(&mut found, 0, &field).unwrap();
        assert_eq!(found, plain);
    }

    #[test]
    fn what_cannot_have_it_is_refused() {
        let field = Field::new("place", "mtp");
        let refused =
            |model: &mut Model, count: u64| apply(model, count, &field).unwrap_err().to_string();
        let mut gpt = crate::input::model("gpt2-xl").unwrap();
        assert!(refused(&mut gpt, 1).contains("gpt2-xl") && apply(&mut gpt, 0, &field).is_ok());
        let mut own = crate::input::model("deepseek-v3").unwrap();
        assert!(refused(&mut own, 2).contains("0 to 1"), "{}", refused(&mut own, 2));
        own.kinds[1].name = "mine".into();
        assert!(refused(&mut own, 1).contains("a graph of its own"));
        let all = &mut [gpt];
        let none = apply_to_those_that_can(all, 1, &field).unwrap_err().to_string();
        assert!(none.contains("none of the models"), "{none}");
    }
}
