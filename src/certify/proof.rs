//! The proof of an answer: how many designs became what, the best of what was left out, the gap,
//! and the sentence that says it.

use crate::search::Judge;
use crate::search::Proof;
use crate::search::ProofByHbm;
use crate::search::Unlisted;
use crate::search::sentences::Proved;
use crate::search::sentences::STOPPED_BY;

use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::rebuild::Question;
use super::table::Row;
use super::table::Status;

/// Whether a search was stopped early, and that by something that can stop one.
pub fn stopped(claimed: &Proof) -> Result<bool, super::FalseClaim> {
    known_reason(claimed.stopped_by.as_deref())
}

/// The same of a reason.
pub fn known_reason(reason: Option<&str>) -> Result<bool, super::FalseClaim> {
    let Some(reason) = reason else { return Ok(false) };
    let known = STOPPED_BY.contains(&reason);
    require(known, "proof.stopped_by", reason, STOPPED_BY.join(" or "))?;
    Ok(true)
}

/// Judges the proof by the table.
pub fn check(
    question: &Question,
    judge: &Judge,
    (rows, unlisted): (&[Row], &[Unlisted]),
    claimed: &Proof,
) -> Verdict {
    let request = &question.request;
    let (said, is) = (claimed.by_hbm.len(), question.n_sizes());
    require(said == is, "proof.by_hbm.length", said, is)?;
    let mut by_hbm = Vec::new();
    for (hbm, said) in claimed.by_hbm.iter().enumerate() {
        let others = unlisted.get(hbm).copied().unwrap_or_default();
        let found = row(question, judge, (rows, &others), hbm);
        let path = format!("proof.by_hbm[{hbm}]");
        // The gap is a difference of nearly equal figures.
        let agree = if found.gap > 0.0 {
            said.gap > 0.0 && (said.gap - found.gap).abs() <= 1e-11
        } else {
            said.gap == 0.0
        };
        require(agree, format!("{path}.gap"), said.gap, found.gap)?;
        let found = ProofByHbm { gap: said.gap, ..found };
        equal(&path, said, &found)?;
        by_hbm.push(found);
    }
    let open: usize = by_hbm.iter().map(|row| row.open).sum();
    let stopped_by = claimed.stopped_by.as_deref();
    let consistent = stopped_by.is_some() == (open > 0);
    require(consistent, "proof.stopped_by", format!("{stopped_by:?}"), format!("{open} open"))?;
    let designs = question.n_designs;
    let capped = request.power_cap_w.is_some();
    let facts = Proved { designs, by_hbm: &by_hbm, stopped_by, capped };
    let found = Proof {
        complete: stopped_by.is_none() && facts.gap() == 0.0,
        stopped_by: claimed.stopped_by.clone(),
        designs,
        statement: facts.statement(),
        by_hbm: by_hbm.clone(),
    };
    equal("proof", claimed, &found)
}

fn row(
    question: &Question,
    judge: &Judge,
    (rows, unlisted): (&[Row], &Unlisted),
    hbm: usize,
) -> ProofByHbm {
    let pairs = || rows.iter().map(|row| &row.pairs[hbm]);
    let count = |status: Status| pairs().filter(|pair| pair.status == status).count();
    // Less is better of a cost, whatever the objective.
    let cost = |figure: f64| if judge.larger_is_better() { 1.0 / figure } else { figure };
    let best = pairs().filter_map(|pair| Some(pair.found.as_ref()?.merit.value)).min();
    let best = best.map(|value| judge.figure(value));
    let left = pairs()
        .filter(|pair| matches!(pair.status, Status::Pruned | Status::Open))
        .filter_map(|pair| pair.bound.map(|(figure, _)| figure))
        .chain(unlisted.left.filter(|&value| value > 0).map(|value| judge.figure(value)))
        .min_by(|one, other| cost(*one).total_cmp(&cost(*other)));
    // Where some bound is not known, nothing is known of what is left.
    let unlooked = pairs().any(|pair| pair.status == Status::Open && pair.bound.is_none())
        || unlisted.left == Some(0);
    let left = left.filter(|_| !unlooked);
    let gap = match best {
        _ if unlooked => 1.0,
        None => f64::from(u8::from(left.is_some())),
        Some(best) => {
            let certain = pairs().filter_map(|pair| Some(pair.found.as_ref()?.least));
            let possible = certain.chain(left).map(cost).fold(cost(best), f64::min);
            1.0 - possible / cost(best)
        }
    };
    ProofByHbm {
        hbm_gib: question.request.space.hbm_gib[hbm],
        evaluated: count(Status::Evaluated),
        pruned: count(Status::Pruned) + unlisted.pruned,
        beaten: count(Status::Beaten) + unlisted.beaten,
        infeasible: count(Status::Infeasible) + unlisted.infeasible,
        open: count(Status::Open) + unlisted.open,
        best_pruned_bound: left,
        best_value: best,
        gap,
    }
}
