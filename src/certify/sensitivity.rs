//! What turning one knob would bring: which knob, from what to what, at which area, and whether
//! it can be built and fits. How much it brings is for `deep` to say.

use crate::compare::Turned;
use crate::compare::UNBUILDABLE;
use crate::compare::UNFIT;
use crate::compare::turns;
use crate::hardware::Accelerator;
use crate::search::Sensitivity;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::feasible;
use super::feasible::Fit;
use super::rebuild::Question;

/// Judges all turns of the winner's chip; a search that was stopped may leave them out.
pub fn check(
    question: &Question,
    chip: &Accelerator,
    claimed: &[Sensitivity],
    stopped: bool,
) -> Verdict {
    if stopped && claimed.is_empty() {
        return Ok(());
    }
    let turns = turns(chip, &question.physics);
    let (said, is) = (claimed.len(), turns.len());
    require(said == is, "sensitivities.length", said, is)?;
    for (at, (said, turned)) in claimed.iter().zip(&turns).enumerate() {
        one(&format!("sensitivities[{at}]"), question, chip, turned, said)?;
    }
    Ok(())
}

fn one(
    path: &str,
    question: &Question,
    chip: &Accelerator,
    turned: &Turned,
    said: &Sensitivity,
) -> Verdict {
    let built = Accelerator::new(turned.design, &turned.physics).ok();
    let fit = feasible::all_fit(question, turned.design.hbm);
    // Where power is capped, only a solver knows whether what fits draws too much.
    let unknown = question.request.power_cap_w.is_some() || fit == Fit::Perhaps;
    let note = match &built {
        None => Some(UNBUILDABLE),
        Some(_) if fit == Fit::No || unknown && said.note.as_deref() == Some(UNFIT) => Some(UNFIT),
        Some(_) => None,
    };
    let area = built
        .filter(|_| note.is_none())
        .map(|turned| turned.total_area().0 as f64 / chip.total_area().0 as f64);
    for (field, ratio) in
        [("throughput_ratio", said.throughput_ratio), ("value_ratio", said.value_ratio)]
    {
        let plausible = ratio.is_some_and(|ratio| ratio.is_finite() && ratio > 0.0);
        if plausible != note.is_none() {
            let is = note.unwrap_or("possible: it fits");
            return Err(FalseClaim::new(format!("{path}.{field}"), format!("{ratio:?}"), is));
        }
    }
    let found = Sensitivity {
        knob: turned.knob.into(),
        change: turned.change.into(),
        from: turned.from,
        to: turned.to,
        // Only a solver knows them.
        throughput_ratio: said.throughput_ratio,
        value_ratio: said.value_ratio,
        area_ratio: area,
        note: note.map(str::to_owned),
    };
    equal(path, said, &found)
}
