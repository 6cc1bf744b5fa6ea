//! How unevenly tokens visit experts: a number beside a model's configuration.

use super::InputError;
use super::numbers::Field;
use crate::model::Model;

/// The most that is asked for, in thousandths of an even load.
const MOST: u64 = 1_000_000;

/// Thousandths of an even load, from a factor such as 1.2; `file` is what errors refer to.
///
/// # Errors
/// A factor that is none.
pub fn read(factor: f64, file: &str) -> Result<u64, InputError> {
    let field = Field::new(file, "imbalance");
    if !(1.0..=1000.0).contains(&factor) {
        let allowed = "allowed are 1 to 1000, such as 1.2";
        return Err(field.value(&factor.to_string(), "is no load", allowed));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1,000 to a million"
    )]
    Ok((factor * 1000.0).round() as u64)
}

/// The same of the table `job` of a request.
///
/// # Errors
/// As of [`read`].
pub fn of_job(factor: Option<f64>, file: &str) -> Result<Option<u64>, InputError> {
    factor.map(|factor| read(factor, &format!("{file}: job"))).transpose()
}

/// Gives the fullest device of a mixture of experts so many thousandths of an even load.
///
/// # Errors
/// A model without experts, or one whose configuration says it already.
pub fn apply(model: &mut Model, per_mille: u64, field: &Field) -> Result<(), InputError> {
    let per_mille = field.whole(per_mille, 1000, MOST)?;
    let found = per_mille.to_string();
    let Some(experts) = &mut model.spec.experts else {
        let allowed = "give it for a mixture of experts";
        return Err(field.value(&found, "is the load of a model without experts", allowed));
    };
    if experts.load_per_mille != 1000 {
        let problem = format!("stands beside {} in the configuration", experts.load_per_mille);
        return Err(field.value(&found, &problem, "give one of them"));
    }
    experts.load_per_mille = per_mille;
    Ok(())
}

/// The same for every mixture of experts among these models.
///
/// # Errors
/// As of [`apply`], or that there is none.
pub fn apply_to_mixtures(
    models: &mut [Model],
    per_mille: u64,
    field: &Field,
) -> Result<(), InputError> {
    let mut mixtures = models.iter_mut().filter(|model| model.spec.experts.is_some()).peekable();
    if mixtures.peek().is_none() {
        let problem = "is the load of models without experts";
        return Err(field.value(&per_mille.to_string(), problem, "leave it out"));
    }
    mixtures.try_for_each(|model| apply(model, per_mille, field))
}

/// Gives the fullest device of a mixture of experts a load by its factor.
///
/// # Errors
/// As of [`read`] and [`apply`].
pub fn give(model: &mut Model, factor: f64, file: &str) -> Result<(), InputError> {
    let per_mille = read(factor, file)?;
    apply(model, per_mille, &Field::new(file, "imbalance"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_given_once_to_a_model_with_experts() {
        let field = Field::new("a.toml", "imbalance");
        assert_eq!(read(1.2, "a.toml").unwrap(), 1200);
        for factor in [0.5, f64::NAN, 1e9] {
            let error = read(factor, "a.toml").unwrap_err().to_string();
            assert!(error.contains("a.toml") && error.contains("1 to 1000"), "{error}");
        }
        let mut mixture = crate::input::model("mixtral-8x7b").unwrap();
        apply(&mut mixture, 1200, &field).unwrap();
        assert_eq!(mixture.spec.experts.unwrap().load_per_mille, 1200);
        let twice = apply(&mut mixture, 1300, &field).unwrap_err().to_string();
        assert!(twice.contains("beside 1200"), "{twice}");
        let mut dense = crate::input::model("gpt2-xl").unwrap();
        let error = apply(&mut dense, 1200, &field).unwrap_err().to_string();
        assert!(error.contains("without experts"), "{error}");
    }
}
