//! The front of chips: what is told of its points, which boxes must prove what to be empty, and that this leaves
//! room for no other.
//!
//! A chip that no point of the front reaches has less of dollars and watts than two limits that points set, and
//! is faster than the fastest point within both. So for every pair of limits something must be proved to be
//! empty that holds all such chips.

use crate::hardware::chip::Budget;
use crate::search::boxes::Resolution;
use crate::search::boxes::Value;
use crate::search::chips::FrontGap;
use crate::search::chips::FrontOutcome;
use crate::search::chips::RESOLUTION_PER_MILLE;
use crate::search::chips::front_judge;
use crate::search::chips::gap_word;
use crate::search::chips::sentences;
use crate::search::chips::taken;
use crate::units::Money;
use crate::units::Power;

use super::super::claims::FalseClaim;
use super::super::claims::Verdict;
use super::super::claims::equal;
use super::super::claims::require;
use super::judged::Claim;
use super::judged::Judging;
use super::rows::Row;

/// Rounded: the time of a batch, dollars of ownership, watts of design power.
type Told = [u64; 3];

impl Judging<'_> {
    /// What boxes must prove of the front.
    pub(super) fn front_claims(&self) -> Result<Vec<Claim>, FalseClaim> {
        let request = &self.question.setup.request;
        let Some(front) = &self.outcome.front else {
            let stopped = self.is_stopped() || self.outcome.comparisons_stopped_by.is_some();
            let rightly = !request.pareto || stopped || self.outcome.baselines.is_empty();
            require(rightly, "front", "null", "asked for")?;
            return Ok(Vec::new());
        };
        require(request.pareto, "front", "told", "not asked for")?;
        let claims = front.gaps.iter().enumerate().map(|(at, gap)| {
            let budget = request.space.budget();
            let tdp = gap.tdp_mw.map_or(budget.tdp, |most| budget.tdp.min(Power(most)));
            let first = gap.time_per_batch_ps.map(u128::from);
            Claim {
                proves: gap_word(at),
                judge: front_judge(&self.judge),
                models: vec![0],
                budget: Budget { tdp, ..budget },
                front: Some(Money(gap.ownership_cents.unwrap_or(u64::MAX))),
                near: None,
                worst: first.map(|first| Value { first, second: 0, place: 0 }),
                kept: Vec::new(),
            }
        });
        Ok(claims.collect())
    }

    /// Judges what is told of the front; how many plans that are.
    pub(super) fn told_front(&self, rows: &[Row]) -> Result<usize, FalseClaim> {
        let Some(front) = &self.outcome.front else { return Ok(0) };
        let request = &self.question.setup.request;
        let per_mille = request.resolution_per_mille.unwrap_or(RESOLUTION_PER_MILLE);
        equal("front.resolution_per_mille", &front.resolution_per_mille, &per_mille)?;
        let steps = Resolution::per_mille(per_mille);
        let told = self.figures(front, &steps)?;
        for (at, one) in told.iter().enumerate() {
            let better = |other: &Told| (0..3).all(|figure| other[figure] <= one[figure]);
            let beaten = told.iter().enumerate().any(|(other, it)| other != at && better(it));
            let path = format!("front.points[{at}]");
            require(!beaten, path, "a point of the front", "no better than another")?;
        }
        require(told.is_sorted(), "front.points", "a list", "not the fastest first")?;
        nothing_is_left(&told, &front.gaps, &steps)?;
        let mut boxes = 0;
        for (at, gap) in front.gaps.iter().enumerate() {
            let word = gap_word(at);
            let is = rows.iter().filter(|row| row.proves == word && row.why.is_some()).count();
            let said = gap.certificate_entries;
            require(said == is, format!("front.gaps[{at}].certificate_entries"), said, is)?;
            boxes += is;
        }
        let statement = sentences::front(per_mille, told.len(), front.gaps.len(), boxes);
        equal("front.statement", &front.statement, &statement)?;
        Ok(told.len())
    }

    /// The figures of all points, each rebuilt from its chip and its plan.
    fn figures(&self, front: &FrontOutcome, steps: &Resolution) -> Result<Vec<Told>, FalseClaim> {
        let setup = &self.question.setup;
        let (space, budget) = (&setup.request.strategies, setup.request.space.budget());
        let each = front.points.iter().enumerate().map(|(at, one)| {
            let path = format!("front.points[{at}]");
            let judged = (space, &budget, &self.judge);
            let (point, standings) =
                self.told_chip(&format!("{path}.entry"), &one.entry, judged)?;
            let time = standings.first().map_or(0, |standing| standing.time.0);
            let [cents, milliwatts] = taken(setup, &point).unwrap_or([0; 2]);
            let found = [time, cents, milliwatts].map(|figure| steps.up(figure));
            let said = [one.time_per_batch_ps, one.ownership_cents, one.tdp_mw];
            equal(&path, &said, &found)?;
            Ok(found)
        });
        each.collect()
    }

    /// Whether a claim counts the chip at a point among those that it speaks of.
    pub(super) fn counts_in(&self, claim: &Claim, point: &crate::search::chips::ChipPoint) -> bool {
        let owned = claim.front;
        let cheap = owned.is_none_or(|most| {
            taken(&self.question.setup, point).is_some_and(|[cents, _]| cents <= most.0)
        });
        cheap && self.fits(&claim.budget, point)
    }
}

/// Whether every chip that no point reaches is one of those that are proved not to be.
fn nothing_is_left(told: &[Told], gaps: &[FrontGap], steps: &Resolution) -> Verdict {
    let limits = |figure: usize| {
        let mut limits: Vec<u64> = told.iter().map(|one| one[figure]).chain([u64::MAX]).collect();
        limits.sort_unstable();
        limits.dedup();
        limits
    };
    let watts = limits(2);
    for dollars in limits(1) {
        for &watts in &watts {
            if steps.first_of(dollars) == 0 || steps.first_of(watts) == 0 {
                continue;
            }
            let within = told.iter().filter(|one| one[1] < dollars && one[2] < watts);
            let fastest = within.map(|one| one[0]).min().unwrap_or(u64::MAX);
            let proved = gaps.iter().any(|gap| {
                gap.ownership_cents.is_none_or(|most| most >= steps.most_inside(dollars))
                    && gap.tdp_mw.is_none_or(|most| most >= steps.most_inside(watts))
                    && gap.time_per_batch_ps.is_none_or(|time| time >= steps.first_of(fastest))
            });
            require(
                proved,
                "front.gaps",
                "all that the points leave free",
                format!(
                    "not that below {dollars} cents and {watts} mW nothing needs less than {fastest} ps"
                ),
            )?;
        }
    }
    Ok(())
}
