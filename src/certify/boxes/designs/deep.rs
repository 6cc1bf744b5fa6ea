//! What only a solver can refute of boxes of designs: that points are worth what they say, worse than what is
//! kept, or that nothing can be done with them.

use rayon::prelude::*;

use crate::hardware::Candidate;
use crate::search::Certainty;
use crate::search::Evaluator;
use crate::search::NEAR_PERCENT;
use crate::search::Observer;
use crate::search::boxes::Why;
use crate::strategy::Chosen;
use crate::strategy::Standing;

use super::super::super::claims::FalseClaim;
use super::super::super::claims::require;
use super::super::super::deep::Unsolved;
use super::super::super::rebuild::Question;
use super::BoxClaim;

/// The best of one model alone: what it costs, how it does, and what decides among equals.
struct Own {
    value: u128,
    key: (u128, usize, u64, u128),
    standing: Standing,
}

/// What a row was found to be.
enum Found {
    /// No solver is needed for it.
    Unasked,
    /// What it says.
    So,
    /// What it says, which is a value.
    Worth(Own),
}

/// Solves every point again that has no row in the table; how many these were, and the best of each model that
/// boxes are about alone.
///
/// # Errors
/// The first claim that is false, or that the observer wanted an end.
pub fn solve(
    question: &Question,
    evaluator: &Evaluator,
    claims: &[BoxClaim],
    observer: &dyn Observer,
) -> Result<(usize, Vec<Option<Standing>>), Unsolved> {
    let mut best: Vec<Option<Own>> = question.models.iter().map(|_| None).collect();
    let mut solved = 0;
    for claim in claims {
        let again = Again { question, evaluator, claim };
        let gib = question.request.space.hbm_gib[claim.hbm];
        let what = format!("solving the points of boxes with {gib} GiB again");
        observer.begins(&what);
        let n_rows = claim.rows.len();
        let each: Vec<Result<Found, Unsolved>> = (0..n_rows)
            .into_par_iter()
            .map(|at| {
                if observer.stops() {
                    return Err(Unsolved::Stopped);
                }
                let found = again.row(at)?;
                observer.evaluated(&what, n_rows - at);
                Ok(found)
            })
            .collect();
        for found in each {
            let found = found?;
            solved += usize::from(!matches!(found, Found::Unasked));
            let (Found::Worth(own), Some(model)) = (found, claim.alone) else { continue };
            let known = best[model].as_ref();
            if known.is_none_or(|known| (own.value, own.key) < (known.value, known.key)) {
                best[model] = Some(own);
            }
        }
    }
    Ok((solved, best.into_iter().map(|own| own.map(|own| own.standing)).collect()))
}

/// Solves the points of one claim once more.
struct Again<'a> {
    question: &'a Question,
    evaluator: &'a Evaluator<'a>,
    claim: &'a BoxClaim,
}

impl Again<'_> {
    /// Solves a row.
    fn row(&self, at: usize) -> Result<Found, FalseClaim> {
        let row = &self.claim.rows[at];
        let Some(why @ (Why::Evaluated(_) | Why::Beaten(_) | Why::Nothing)) = row.why else {
            return Ok(Found::Unasked);
        };
        let grid = self.question.grid();
        let point = row.region.lo;
        let candidate = grid.candidate(&point);
        // Designs with a row are solved with it.
        let has_row = self.question.candidates.contains(&candidate);
        if self.claim.alone.is_none() && has_row {
            return Ok(Found::Unasked);
        }
        let chosen = self.solved(&candidate);
        let standings: Option<Vec<Standing>> =
            chosen.as_ref().map(|all| all.iter().map(|chosen| chosen.standing).collect());
        let area = grid.area(&point).unwrap_or_default();
        let worth = |certainty: Certainty| {
            let merit = |all: &Vec<Standing>| self.claim.judge.merit(all, area, certainty).value;
            standings.as_ref().map(merit)
        };
        let said = why.word().0;
        match why {
            Why::Nothing => {
                let found = worth(Certainty::Fact).unwrap_or(0);
                require(chosen.is_none(), row.claim("why"), said, format!("worth {found}"))?;
                Ok(Found::So)
            }
            Why::Beaten(_) => {
                let worst = self.claim.worst.map(|worst| worst.first);
                let near = worst.map(|worst| worst.saturating_add(worst / 100 * NEAR_PERCENT));
                let beaten = worth(Certainty::Bound)
                    .is_none_or(|value| near.is_some_and(|near| value > near));
                require(beaten, row.claim("why"), said, "not so, or by less")?;
                Ok(Found::So)
            }
            _ => {
                let value = worth(Certainty::Fact);
                let told = why.word().1.map(|value| value.first);
                let found = value.map_or("nothing".to_owned(), |value| value.to_string());
                require(value == told, row.claim("value"), told.unwrap_or(0), found)?;
                let chosen = chosen.unwrap_or_default();
                let own = value.zip(chosen.first()).map(|(value, first)| Own {
                    value,
                    key: (
                        area.0.into(),
                        self.claim.hbm,
                        chosen.iter().map(|chosen| chosen.devices).sum(),
                        grid.published_place(&point),
                    ),
                    standing: first.standing,
                });
                Ok(own.map_or(Found::So, Found::Worth))
            }
        }
    }

    /// The best way to train each model that is asked for; `None` where one does not fit or draws too much.
    fn solved(&self, candidate: &Candidate) -> Option<Vec<Chosen>> {
        let chip = self.question.chip_of(candidate, self.claim.hbm);
        let models = match self.claim.alone {
            Some(model) => model..model + 1,
            None => 0..self.question.models.len(),
        };
        models.map(|model| Some(self.evaluator.best_of(model, &chip)?.chosen)).collect()
    }
}
