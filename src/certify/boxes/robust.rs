//! The winner beside chips drawn at random, and under other assumptions: what is told of them follows from
//! their knobs and plans. That nothing better was drawn, and which chip is the best under an assumption, is for
//! `deep` to say.

use crate::compare::chips::Beside;
use crate::compare::chips::Takes;
use crate::compare::chips::winner_is;
use crate::hardware::chip::CHIP_KNOBS;
use crate::search::Certainty;
use crate::search::Judge;
use crate::search::Objective;
use crate::search::chips::Assumption;
use crate::search::chips::ChipPoint;
use crate::search::chips::Sampled;
use crate::search::chips::Turned;
use crate::search::chips::UnderAssumption;
use crate::strategy::Standing;

use super::super::claims::FalseClaim;
use super::super::claims::SAME;
use super::super::claims::Verdict;
use super::super::claims::close;
use super::super::claims::equal;
use super::super::claims::require;
use super::judged::Judging;
use super::why::RATIO;

impl Judging<'_> {
    /// Judges the best of chips drawn at random; how many chips are told.
    pub(super) fn sampled(&self) -> Result<usize, FalseClaim> {
        let (outcome, setup) = (self.outcome, &self.question.setup);
        let request = &setup.request;
        let Some(winner) = &outcome.winner else {
            let none = outcome.spotlight.is_none() && outcome.robust.is_none();
            require(none, "spotlight", "told", "null")?;
            return Ok(0);
        };
        let stopped = self.is_stopped() || outcome.comparisons_stopped_by.is_some();
        let untold = stopped || outcome.baselines.is_empty();
        let Some(Sampled { samples, entry, winner_is: ratio }) = &outcome.spotlight else {
            require(request.spotlight.is_none() || untold, "spotlight", "null", "asked for")?;
            return Ok(0);
        };
        equal("spotlight.samples", &Some(*samples), &request.spotlight)?;
        let Some(entry) = entry else {
            equal("spotlight.winner_is", ratio, &None)?;
            return Ok(0);
        };
        let budget = request.space.budget();
        let about = (&request.strategies, &budget, &self.judge);
        let (point, standings) = self.told_chip("spotlight.entry", entry, about)?;
        let ours = self.point("winner", winner)?;
        let held = self.held("winner", winner, &ours)?;
        let takes = |point: &ChipPoint| Takes::of_chip(setup, point).unwrap_or_default();
        let ours = Beside { standings: &held, takes: takes(&ours) };
        let theirs = Beside { standings: &standings, takes: takes(&point) };
        let found = winner_is(&self.judge, &ours, &theirs).by_objective;
        equal("spotlight.winner_is", ratio, &found)?;
        Ok(1)
    }

    /// Judges the winners under other assumptions, as far as that needs no solver.
    pub(super) fn robust(&self) -> Verdict {
        let (outcome, setup) = (self.outcome, &self.question.setup);
        let (Some(winner), Some(told)) = (&outcome.winner, &outcome.robust) else {
            let stopped = self.is_stopped() || outcome.comparisons_stopped_by.is_some();
            let untold = stopped || outcome.winner.is_none() || outcome.baselines.is_empty();
            return require(!setup.request.robust || untold, "robust", "null", "asked for");
        };
        require(setup.request.robust, "robust", "told", "not asked for")?;
        let all = Assumption::turned(setup);
        require(told.len() == all.len(), "robust.length", told.len(), all.len())?;
        let ours = self.point("winner", winner)?;
        let held = self.held("winner", winner, &ours)?;
        for (at, (told, turned)) in told.iter().zip(&all).enumerate() {
            let path = format!("robust[{at}]");
            let grid = &turned.setup.grid;
            let fits = |point: &ChipPoint| {
                grid.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
            };
            let place = |knobs: &std::collections::BTreeMap<String, u64>| {
                let mut point = [0; CHIP_KNOBS.len()];
                for (at, knob) in CHIP_KNOBS.iter().enumerate() {
                    let place = grid.values(at).binary_search(knobs.get(knob.name)?).ok()?;
                    point[at] = u16::try_from(place).ok()?;
                }
                Some(point)
            };
            let point = told.knobs.as_ref().map(place);
            let built = point.is_none_or(|point| point.is_some_and(|point| fits(&point)));
            require(built, format!("{path}.knobs"), "a chip", "none of the space and budget")?;
            let sound = told.ratio.is_none_or(|ratio| ratio >= 1.0);
            require(sound, format!("{path}.ratio"), format!("{:?}", told.ratio), "at least 1")?;
            let known = point.is_some() && fits(&ours);
            require(told.ratio.is_some() == known, format!("{path}.ratio"), "told", "otherwise")?;
            let found = UnderAssumption {
                constant: turned.name.clone(),
                unit: turned.unit.to_owned(),
                percent: turned.percent,
                from: turned.values[0],
                to: turned.values[1],
                same: point == Some(Some(ours)),
                ..told.clone()
            };
            equal(&path, told, &found)?;
            self.ratio_follows(&path, (told, turned), (&held, &ours))?;
        }
        Ok(())
    }

    /// Judges whether the ratio under an assumption is that of the values, where no plan changes with it: what the
    /// winner is worth then follows from its own plans.
    fn ratio_follows(
        &self,
        path: &str,
        (told, turned): (&UnderAssumption, &Turned),
        (held, ours): (&[Standing], &ChipPoint),
    ) -> Verdict {
        let both = told.value.is_some() == told.knobs.is_some();
        require(both, format!("{path}.value"), "told", "otherwise")?;
        let setup = &turned.setup;
        let judge = Judge { devices_per_second: setup.devices_per_second(), ..self.judge.clone() };
        let taken = setup.footprint_for(judge.objective, &setup.knobs(ours));
        let (Some((value, ratio)), Some(taken)) = (told.value.zip(told.ratio), taken) else {
            return Ok(());
        };
        let is_one = !told.same || close(ratio, 1.0, SAME);
        require(is_one, format!("{path}.ratio"), ratio, 1.0)?;
        if judge.stakes.len() > 1 || turned.assumption.changes_plans(&self.question.setup) {
            return Ok(());
        }
        let worth = judge.figure(judge.merit(held, taken, Certainty::Fact).value);
        let more_is_better =
            matches!(judge.objective, Objective::Throughput | Objective::ThroughputPerArea);
        let found = if more_is_better { value / worth } else { worth / value };
        require(close(ratio, found, RATIO), format!("{path}.ratio"), ratio, found)
    }
}
