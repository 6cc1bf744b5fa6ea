//! How the winner changes with what is asked: which boxes must prove each best, what is told of it, and how
//! many chips are nearly as good.

use crate::hardware::chip::Budget;
use crate::search::Judge;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::search::chips::BudgetStep;
use crate::search::chips::COUNTED_PER_MILLE;
use crate::search::chips::ChipPoint;
use crate::search::chips::Counted;
use crate::search::chips::NearFigure;
use crate::search::chips::OTHER_NEAR_PER_MILLE;
use crate::search::chips::WhyItWins;
use crate::search::chips::counted_word;
use crate::search::chips::left_out;
use crate::search::chips::near_word;
use crate::search::chips::nearly_as_good_as;
use crate::search::chips::other_objectives;

use super::super::claims::FalseClaim;
use super::super::claims::Verdict;
use super::super::claims::close;
use super::super::claims::equal;
use super::super::claims::require;
use super::judged::Claim;
use super::judged::Judging;
use super::rows::Row;

/// Ratios are told of values that plans round to picoseconds.
pub(super) const RATIO: f64 = 1e-9;

impl Judging<'_> {
    /// What boxes must prove besides, where it was asked for.
    pub(super) fn why_claims(
        &self,
        (best, winner): (u128, ChipPoint),
        models: &[usize],
    ) -> Result<Vec<Claim>, FalseClaim> {
        let request = &self.question.setup.request;
        let Some(why) = &self.outcome.why else {
            let stopped = self.is_stopped() || self.outcome.comparisons_stopped_by.is_some();
            let rightly = !request.why || stopped || self.outcome.baselines.is_empty();
            require(rightly, "why", "null", "asked for")?;
            return Ok(Vec::new());
        };
        require(request.why, "why", "told", "not asked for")?;
        let mut claims = Vec::new();
        let figures = OTHER_NEAR_PER_MILLE.into_iter();
        let figures = figures.flat_map(|part| NearFigure::ALL.map(|figure| (figure, part)));
        let figures: Vec<(NearFigure, u128)> = figures.collect();
        let (said, is) = (why.near_winners.len(), figures.len());
        require(said == is, "why.near_winners.length", said, is)?;
        for (at, (near, (least, part))) in why.near_winners.iter().zip(figures).enumerate() {
            let path = format!("why.near_winners[{at}]");
            let proves = near_word(least, part);
            claims.push(self.near_claim(&path, near, (least, part), (proves, best))?);
        }
        let own = Claim {
            proves: counted_word(),
            judge: self.judge.clone(),
            models: models.to_vec(),
            budget: request.space.budget(),
            front: None,
            near: Some((None, nearly_as_good_as(best, COUNTED_PER_MILLE))),
            worst: None,
            kept: Vec::new(),
        };
        claims.push(own.clone());
        claims.extend(self.budget_claims(why, &Claim { near: None, ..own.clone() }, winner)?);
        claims.extend(self.objective_claims(why, &Claim { near: None, ..own })?);
        Ok(claims)
    }

    fn budget_claims(
        &self,
        why: &WhyItWins,
        own: &Claim,
        winner: ChipPoint,
    ) -> Result<Vec<Claim>, FalseClaim> {
        let steps = BudgetStep::all(&own.budget, &self.question.setup.grid.technology);
        let (said, is) = (why.budgets.len(), steps.len());
        require(said == is, "why.budgets.length", said, is)?;
        let mut claims = Vec::new();
        for (at, (told, step)) in why.budgets.iter().zip(steps).enumerate() {
            let path = format!("why.budgets[{at}]");
            equal(&format!("{path}.limited"), &told.limited, &step.limited)?;
            equal(&format!("{path}.percent"), &told.percent, &step.percent)?;
            equal(&format!("{path}.limit"), &told.limit, &step.limit())?;
            let still = self.fits(&step.budget, &winner);
            if still && step.percent < 0 {
                // What is best of all is best of fewer.
                require(told.entry.is_none(), format!("{path}.entry"), "another", "the winner")?;
                equal(&format!("{path}.ratio"), &told.ratio, &Some(1.0))?;
                continue;
            }
            let ours = self.outcome.winner.as_ref().filter(|_| told.ratio.is_some());
            let kept = told.entry.as_ref().or(ours);
            let worst = kept.map(|entry| self.value_of(entry)).transpose()?;
            let point = kept.map(|entry| self.point(&path, entry)).transpose()?;
            let fits = point.is_none_or(|point| self.fits(&step.budget, &point));
            require(fits, format!("{path}.entry"), "a chip", "over this budget")?;
            let best =
                self.outcome.winner.as_ref().map(|entry| self.value_of(entry)).transpose()?;
            let ratio = best.zip(worst).map(|(best, worst)| best.first as f64 / worst.first as f64);
            let alike = match (told.ratio, ratio) {
                (Some(said), Some(is)) => close(said, is, RATIO),
                (said, is) => said.is_none() && is.is_none(),
            };
            require(
                alike,
                format!("{path}.ratio"),
                format!("{:?}", told.ratio),
                format!("{ratio:?}"),
            )?;
            let kept = point.into_iter().collect();
            claims.push(Claim {
                proves: step.word(),
                budget: step.budget,
                worst,
                kept,
                ..own.clone()
            });
        }
        Ok(claims)
    }

    fn objective_claims(&self, why: &WhyItWins, own: &Claim) -> Result<Vec<Claim>, FalseClaim> {
        let setup = &self.question.setup;
        let others = other_objectives(setup.request.objective, setup.models.len());
        let (said, is) = (why.objectives.len(), others.len());
        require(said == is, "why.objectives.length", said, is)?;
        let missing = left_out(setup.request.objective, setup.models.len());
        equal("why.left_out", &why.left_out, &missing)?;
        let mut claims = Vec::new();
        for (at, (told, objective)) in why.objectives.iter().zip(others).enumerate() {
            let path = format!("why.objectives[{at}]");
            equal(&format!("{path}.objective"), &told.objective, &objective)?;
            let judge = Judge { objective, ..self.judge.clone() };
            let winner = self.outcome.winner.as_ref();
            let worth = winner.map(|winner| self.value_by(&judge, winner)).transpose()?;
            let worth = worth.map_or(0.0, |value| judge.figure(value.first));
            equal(&format!("{path}.winner_value"), &told.winner_value, &worth)?;
            let worst: Value = self.value_by(&judge, &told.entry)?;
            let kept = vec![self.point(&path, &told.entry)?];
            let proves = objective.name().to_owned();
            claims.push(Claim { proves, judge, worst: Some(worst), kept, ..own.clone() });
        }
        Ok(claims)
    }

    /// Judges what is told of chips around the winner; how many of them there are.
    pub(super) fn told_why(&self) -> Result<usize, FalseClaim> {
        let Some(why) = &self.outcome.why else { return Ok(0) };
        let request = &self.question.setup.request;
        let technology = &self.question.setup.grid.technology;
        let (space, budget) = (&request.strategies, request.space.budget());
        for (at, near) in why.near_winners.iter().enumerate() {
            let path = format!("why.near_winners[{at}].entry");
            self.told_chip(&path, &near.entry, (space, &budget, &self.judge))?;
        }
        let steps: Vec<Budget> =
            BudgetStep::all(&budget, technology).into_iter().map(|step| step.budget).collect();
        let mut told = why.near_winners.len() + why.objectives.len();
        for (at, (under, step)) in why.budgets.iter().zip(&steps).enumerate() {
            let path = format!("why.budgets[{at}].entry");
            if let Some(entry) = &under.entry {
                self.told_chip(&path, entry, (space, step, &self.judge))?;
                told += 1;
            }
        }
        for (at, other) in why.objectives.iter().enumerate() {
            let path = format!("why.objectives[{at}].entry");
            let judge = Judge { objective: other.objective, ..self.judge.clone() };
            self.told_chip(&path, &other.entry, (space, &budget, &judge))?;
        }
        Ok(told)
    }

    /// Judges how many chips are nearly as good, and how many boxes prove what.
    pub(super) fn counts(&self, rows: &[Row]) -> Verdict {
        let Some(why) = &self.outcome.why else { return Ok(()) };
        let closed =
            |word: &str| rows.iter().filter(|row| row.proves == word && row.why.is_some()).count();
        for (at, near) in why.near_winners.iter().enumerate() {
            let part = OTHER_NEAR_PER_MILLE[at / NearFigure::ALL.len()];
            let is = closed(&near_word(near.least, part));
            let path = format!("why.near_winners[{at}].certificate_entries");
            require(near.certificate_entries == is, path, near.certificate_entries, is)?;
        }
        let budget = self.question.setup.request.space.budget();
        let steps = BudgetStep::all(&budget, &self.question.setup.grid.technology);
        for (at, (under, step)) in why.budgets.iter().zip(steps).enumerate() {
            let (said, is) = (under.certificate_entries, closed(&step.word()));
            require(said == is, format!("why.budgets[{at}].certificate_entries"), said, is)?;
        }
        let setup = &self.question.setup;
        let others = other_objectives(setup.request.objective, setup.models.len());
        for (at, (other, objective)) in why.objectives.iter().zip(others).enumerate() {
            let (said, is) = (other.certificate_entries, closed(objective.name()));
            require(said == is, format!("why.objectives[{at}].certificate_entries"), said, is)?;
        }
        let word = counted_word();
        let own = || rows.iter().filter(|row| row.proves == word);
        let met = own().filter(|row| matches!(row.why, Some(Why::Evaluated(_)))).count() as u64;
        let open = own().filter(|row| row.why.is_none());
        let open = open.filter_map(|row| self.allowed(&budget, &row.region));
        let open: u128 = open.map(|region| region.volume()).sum();
        let found = Counted {
            within: COUNTED_PER_MILLE as f64 / 1000.0,
            at_least: met,
            at_most: met.saturating_add(u64::try_from(open).unwrap_or(u64::MAX)),
            certificate_entries: closed(&word),
        };
        equal("why.counted", &why.counted, &found)
    }
}
