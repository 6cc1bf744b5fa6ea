//! A design with the way to train each model on it: the figures of the chip, every result, and
//! the value that follows from them.

use crate::hardware::Accelerator;
use crate::plan::StrategySpace;
use crate::search::Certainty;
use crate::search::Entry;
use crate::search::Judge;
use crate::strategy::Standing;

use super::claims::FalseClaim;
use super::claims::equal;
use super::claims::require;
use super::design;
use super::rebuild::Question;
use super::result;
use super::result::Held;

/// Which chip an entry must be about.
pub struct Expected<'a> {
    /// The chip.
    pub chip: &'a Accelerator,
    /// Its row in designs.csv.
    pub index: Option<usize>,
    /// Its name, where it is built in.
    pub name: Option<&'a str>,
    /// What its strategies were chosen from, for each model.
    pub spaces: &'a [StrategySpace],
}

/// Judges an entry that stands at `path`; answers what each model's result was found to be.
pub fn check(
    path: &str,
    question: &Question,
    judge: &Judge,
    expected: &Expected,
    claimed: &Entry,
) -> Result<Vec<Held>, FalseClaim> {
    let Expected { chip, index, name, spaces } = *expected;
    equal(&format!("{path}.design"), &claimed.design, &design::facts(chip, index, name))?;
    let (said, is) = (claimed.results.len(), question.models.len());
    require(said == is, format!("{path}.results.length"), said, is)?;
    let results = claimed.results.iter().zip(spaces).enumerate();
    let held: Vec<Held> = results
        .map(|(model, (facts, space))| {
            let path = format!("{path}.results[{model}]");
            result::check(&path, question, (model, space), chip, facts)
        })
        .collect::<Result<_, _>>()?;
    let standings: Vec<Standing> = held.iter().map(|held| held.standing).collect();
    let value = judge.figure(judge.merit(&standings, chip.total_area(), Certainty::Fact).value);
    equal(&format!("{path}.value"), &claimed.value, &value)?;
    Ok(held)
}
