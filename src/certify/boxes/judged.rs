//! The claims of an answer over chips.

use rayon::prelude::*;

use crate::hardware::chip::Budget;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipKnobs;
use crate::plan::StrategySpace;
use crate::report::boxes_csv;
use crate::search::Certainty;
use crate::search::Judge;
use crate::search::ModelFacts;
use crate::search::Objective;
use crate::search::Stake;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::search::chips::BoxProof;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipRegion;
use crate::search::chips::NEARLY_PER_MILLE;
use crate::search::chips::NearFigure;
use crate::search::chips::NearWinner;
use crate::search::chips::chip_facts;
use crate::search::chips::counted_word;
use crate::search::chips::limits;
use crate::search::chips::nearly_as_good_as;
use crate::search::chips::sentences;
use crate::strategy::Standing;
use crate::units::Money;
use crate::units::Time;

use super::super::claims::FalseClaim;
use super::super::claims::SAME;
use super::super::claims::Verdict;
use super::super::claims::close;
use super::super::claims::equal;
use super::super::claims::require;
use super::super::outcome::header_of;
use super::super::outcome::told_models;
use super::super::proof::known_reason;
use super::super::result;
use super::super::table::BOUND;
use super::ground::ChipQuestion;
use super::rows;
use super::rows::Row;
use super::tile::allowed;
use super::tile::tiles;

/// What was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedChips {
    /// Plans of which every figure was rebuilt.
    pub plans: usize,
    /// Boxes whose reason was judged.
    pub boxes: usize,
    /// Of these, those that rest on an exact evaluation.
    pub exact: usize,
}

/// An answer that holds as far as no solver is needed.
pub struct JudgedChips {
    /// What was verified.
    pub verified: VerifiedChips,
    pub(super) rows: Vec<Row>,
    pub(super) claims: Vec<Claim>,
}

/// Whether what a box is said not to beat is the worst that is kept.
fn is_kept(claim: &Claim, row: &Row, value: Value) -> Verdict {
    let Some(worst) = claim.worst else { return Ok(()) };
    let first = close(value.first as f64, worst.first as f64, BOUND);
    require(first, row.claim("value"), value.first, worst.first)?;
    // Of own bests and gaps of a front the chip itself is not told.
    let told = !claim.kept.is_empty();
    require(!told || value == worst, row.claim("tie"), format!("{value:?}"), format!("{worst:?}"))
}

/// What a group of boxes proves: that no chip is better than `worst` by a comparison.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The word of its rows.
    pub proves: String,
    /// How chips are compared.
    pub judge: Judge,
    /// Which models count.
    pub models: Vec<usize>,
    /// What chips may take.
    pub budget: Budget,
    /// What its chips may cost to own, where it is about a gap of the front; the greatest number: whatever.
    pub front: Option<Money>,
    /// The worst value that counts, where chips nearly as good are looked for, and the figure that is made
    /// small among them; without one they are counted.
    pub near: Option<(Option<NearFigure>, u128)>,
    /// The last of what is kept; `None` where fewer chips are kept than were asked for.
    pub worst: Option<Value>,
    /// What is kept, where it is told.
    pub kept: Vec<ChipPoint>,
}

/// Judges an answer over chips and the cells of its boxes.csv without any solver.
pub fn check(
    question: &ChipQuestion,
    outcome: &ChipOutcome,
    cells: &[Vec<String>],
) -> Result<JudgedChips, FalseClaim> {
    header_of(
        (&outcome.schema, outcome.version, &outcome.phaze),
        (ChipOutcome::SCHEMA, ChipOutcome::VERSION),
    )?;
    let first = question.question(&[0; CHIP_KNOBS.len()]);
    told_models(first, &outcome.models)?;
    let stopped = known_reason(outcome.proof.stopped_by.as_deref())?;
    let rows = rows::read(&question.setup.grid, cells)?;
    let judging = Judging { question, outcome, stopped, judge: judge(question, &outcome.models) };
    let claims = judging.claims()?;
    let mut verified = VerifiedChips { boxes: rows.len(), ..VerifiedChips::default() };
    for claim in &claims {
        let own: Vec<&Row> = rows.iter().filter(|row| row.proves == claim.proves).collect();
        judging.tiles(&own, &claim.proves)?;
        let exact: Vec<Result<bool, FalseClaim>> =
            own.par_iter().map(|row| judging.row(claim, row)).collect();
        for found in exact {
            verified.exact += usize::from(found?);
        }
    }
    let known = |row: &Row| claims.iter().any(|claim| claim.proves == row.proves);
    if let Some(stranger) = rows.iter().find(|row| !known(row)) {
        return Err(FalseClaim::new(stranger.claim("proves"), &stranger.proves, "no claim"));
    }
    verified.plans = judging.told()? + judging.baselines()? + judging.told_front(&rows)?;
    judging.proof(&rows)?;
    judging.gap(&claims[0], &rows)?;
    judging.counts(&rows)?;
    judging.robust()?;
    verified.plans += judging.sampled()? * outcome.models.len();
    Ok(JudgedChips { verified, rows, claims })
}

/// How chips are compared, each model's own best as the answer tells it.
pub(super) fn judge(question: &ChipQuestion, facts: &[ModelFacts]) -> Judge {
    let request = &question.setup.request;
    let sequences = request.global_batch as f64;
    let stakes = request.models.iter().zip(facts).map(|(model, facts)| Stake {
        weight: model.weight,
        sequences,
        tokens: sequences * model.sequence as f64,
        own_best: facts.own_best_cost,
    });
    Judge {
        objective: request.objective,
        combine: request.combine,
        stakes: stakes.collect(),
        devices_per_second: question.setup.devices_per_second(),
    }
}

/// An answer while it is judged.
pub(super) struct Judging<'a> {
    pub(super) question: &'a ChipQuestion,
    pub(super) outcome: &'a ChipOutcome,
    stopped: bool,
    pub(super) judge: Judge,
}

impl Judging<'_> {
    /// Whether the search was ended early.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// All that boxes must prove.
    fn claims(&self) -> Result<Vec<Claim>, FalseClaim> {
        let request = &self.question.setup.request;
        let everything: Vec<usize> = (0..request.models.len()).collect();
        let outcome = self.outcome;
        let listed =
            if request.top > 1 { outcome.top.as_slice() } else { outcome.winner.as_slice() };
        let values: Vec<Value> =
            listed.iter().map(|entry| self.value_of(entry)).collect::<Result<_, FalseClaim>>()?;
        let kept = listed.iter().map(|entry| self.point("entry", entry));
        let kept = kept.collect::<Result<Vec<ChipPoint>, FalseClaim>>()?;
        let ascending = values.is_sorted();
        require(ascending && values.len() <= request.top, "top", "a list", "not the best first")?;
        let worst = values.get(request.top - 1).copied();
        let mut claims = vec![Claim {
            proves: boxes_csv::OBJECTIVE.into(),
            judge: self.judge.clone(),
            models: everything.clone(),
            budget: request.space.budget(),
            front: None,
            near: None,
            worst,
            kept,
        }];
        if everything.len() > 1 {
            claims.extend(everything.iter().map(|&model| self.alone(model)));
        }
        let Some((best, winner_at)) = values.first().zip(claims[0].kept.first().copied()) else {
            return Ok(claims);
        };
        for (at, near) in outcome.near_winners.iter().enumerate() {
            let path = format!("near_winners[{at}]");
            let expected = (NearFigure::ALL[at.min(2)], NEARLY_PER_MILLE);
            let proves = near.least.word().to_owned();
            claims.push(self.near_claim(&path, near, expected, (proves, best.first))?);
        }
        claims.extend(self.why_claims((best.first, winner_at), &everything)?);
        claims.extend(self.front_claims()?);
        Ok(claims)
    }

    /// That no chip takes less of a figure among those that are worse than the best by so little.
    pub(super) fn near_claim(
        &self,
        path: &str,
        near: &NearWinner,
        (least, per_mille): (NearFigure, u128),
        (proves, best): (String, u128),
    ) -> Result<Claim, FalseClaim> {
        equal(&format!("{path}.least"), &near.least, &least)?;
        equal(&format!("{path}.within"), &near.within, &(per_mille as f64 / 1000.0))?;
        let limit = nearly_as_good_as(best, per_mille);
        let worth = self.value_of(&near.entry)?.first;
        require(worth <= limit, format!("{path}.entry.value"), worth, limit)?;
        let point = self.point(path, &near.entry)?;
        let figure = self.figure(near.least, &point);
        Ok(Claim {
            proves,
            judge: self.judge.clone(),
            models: (0..self.question.setup.models.len()).collect(),
            budget: self.question.setup.request.space.budget(),
            front: None,
            near: Some((Some(near.least), limit)),
            worst: figure.map(|first| Value { first, second: worth, place: self.place(&point) }),
            kept: vec![point],
        })
    }

    /// That no chip is better for a model alone than its own best.
    fn alone(&self, model: usize) -> Claim {
        let facts = &self.outcome.models[model];
        // A search that has found nothing leaves 1.
        let found = facts.own_best_cost > 1.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "costs are positive; what a float rounds is taken off"
        )]
        let first = (facts.own_best_cost * (1.0 - SAME)) as u128;
        Claim {
            proves: boxes_csv::model_alone(model),
            judge: Judge { stakes: vec![self.judge.stakes[model]], ..self.judge.clone() },
            models: vec![model],
            budget: self.question.setup.request.space.budget(),
            front: None,
            near: None,
            // Of equal values, the area and the place of the one that is kept are not told.
            worst: found.then_some(Value { first, second: 0, place: 0 }),
            kept: Vec::new(),
        }
    }

    /// Where a told chip stands in the grid.
    pub(super) fn point(&self, path: &str, entry: &ChipEntry) -> Result<ChipPoint, FalseClaim> {
        let grid = &self.question.setup.grid;
        let mut point = [0; CHIP_KNOBS.len()];
        for (at, knob) in CHIP_KNOBS.iter().enumerate() {
            let said = entry.chip.knobs.get(knob.name);
            let found = said.and_then(|value| grid.values(at).binary_search(value).ok());
            let place = found.and_then(|place| u16::try_from(place).ok());
            let wrong = || {
                let said = said.map_or("null".to_owned(), u64::to_string);
                FalseClaim::new(format!("{path}.chip.knobs.{}", knob.name), said, "no value of it")
            };
            point[at] = place.ok_or_else(wrong)?;
        }
        Ok(point)
    }

    /// The value of a told chip, as its plans say; that these hold is judged apart.
    pub(super) fn value_of(&self, entry: &ChipEntry) -> Result<Value, FalseClaim> {
        self.value_by(&self.judge, entry)
    }

    /// The same by another judge.
    pub(super) fn value_by(&self, judge: &Judge, entry: &ChipEntry) -> Result<Value, FalseClaim> {
        let point = self.point("entry", entry)?;
        let standings: Vec<Standing> = self.held("entry", entry, &point)?;
        let taken = self
            .footprint(judge.objective, &point)
            .ok_or_else(|| FalseClaim::new("entry.chip", "a chip", "one that cannot be made"))?;
        let merit = judge.merit(&standings, taken, Certainty::Fact);
        Ok(Value { first: merit.value, second: merit.area, place: self.place(&point) })
    }

    /// How every model does on a told chip, rebuilt from its plan.
    pub(super) fn held(
        &self,
        path: &str,
        entry: &ChipEntry,
        point: &ChipPoint,
    ) -> Result<Vec<Standing>, FalseClaim> {
        self.held_from(path, entry, point, &self.question.setup.request.strategies)
    }

    /// The same where strategies were chosen from another space.
    fn held_from(
        &self,
        path: &str,
        entry: &ChipEntry,
        point: &ChipPoint,
        space: &StrategySpace,
    ) -> Result<Vec<Standing>, FalseClaim> {
        let setup = &self.question.setup;
        let knobs: ChipKnobs = setup.knobs(point);
        let chip = knobs.accelerator(&setup.grid.technology, &setup.physics);
        let chip = chip.map_err(|reason| FalseClaim::new(path, "a chip", reason))?;
        let question = self.question.question(point);
        let (said, is) = (entry.results.len(), question.models.len());
        require(said == is, format!("{path}.results.length"), said, is)?;
        let results = entry.results.iter().enumerate();
        results
            .map(|(model, facts)| {
                let path = format!("{path}.results[{model}]");
                let held = result::check(&path, question, (model, space), &chip, facts)?;
                let cap = setup.request.power_cap_w;
                let power = held.standing.average_power(held.devices);
                let keeps = cap.is_none_or(|cap| power <= cap);
                require(keeps, format!("{path}.average_power_w"), power, "more than the cap")?;
                Ok(held.standing)
            })
            .collect()
    }

    fn footprint(
        &self,
        objective: Objective,
        point: &ChipPoint,
    ) -> Option<crate::search::Footprint> {
        let setup = &self.question.setup;
        setup.footprint_for(objective, &setup.knobs(point))
    }

    fn figure(&self, figure: NearFigure, point: &ChipPoint) -> Option<u128> {
        let setup = &self.question.setup;
        let figures = setup.figures(&setup.knobs(point))?;
        Some(u128::from(match figure {
            NearFigure::Smallest => figures.die.total().0,
            NearFigure::Coolest => figures.tdp.total().0,
            NearFigure::Cheapest => figures.cost.total().0,
        }))
    }

    /// Whether boxes hold every chip of the grid exactly once.
    fn tiles(&self, rows: &[&Row], proves: &str) -> Verdict {
        let regions: Vec<ChipRegion> = rows.iter().map(|row| row.region).collect();
        let whole = ChipRegion::whole(self.question.setup.grid.lens());
        tiles(whole, &regions, proves)
    }

    /// The least value of any chip of a box, written a second time; `None` where surely nothing can be
    /// done with any.
    fn bound(&self, claim: &Claim, region: &ChipRegion) -> Option<Value> {
        let standings: Option<Vec<Standing>> =
            claim.models.iter().map(|&model| self.standing(claim, model, region)).collect();
        let taken = self.footprint(claim.judge.objective, &region.lo)?;
        let merit = claim.judge.merit(&standings?, taken, Certainty::Bound);
        let place = self.place(&region.lo);
        let worth = Value { first: merit.value, second: merit.area, place };
        match claim.near {
            None => Some(worth),
            Some((figure, limit)) => {
                // Two programs round bounds apart.
                let raised = worth.first + worth.first / 500_000_000;
                let near = match figure {
                    Some(figure) => {
                        let first = self.figure(figure, &region.lo)?;
                        Value { first, second: worth.first, place }
                    }
                    None => worth,
                };
                (raised <= limit).then_some(near)
            }
        }
    }

    /// The least that a model takes on any chip of a box, also where a cap of power leaves out plans.
    fn standing(&self, claim: &Claim, model: usize, region: &ChipRegion) -> Option<Standing> {
        let mut least = self.question.standing(model, &region.lo, &region.hi)?;
        let cap = self.question.setup.request.power_cap_w;
        if let Some(cap) = cap.filter(|_| claim.judge.objective != Objective::EnergyPerToken) {
            let slowed = self.question.slowed_by(model, (&region.lo, &region.hi), cap)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and rounded as far as bounds may differ"
            )]
            let slowed = Time(slowed as u64);
            least.time = least.time.max(slowed);
        }
        Some(least)
    }

    /// Whether a budget allows the chip at a point.
    pub(super) fn fits(&self, budget: &Budget, point: &ChipPoint) -> bool {
        let grid = &self.question.setup.grid;
        budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    }

    /// The chips of a box that the budget may allow: what a knob adds to the least chip alone, it adds to
    /// every other. `None` where it allows not even the least.
    pub(super) fn allowed(&self, budget: &Budget, region: &ChipRegion) -> Option<ChipRegion> {
        Self::allowed_where(region, |point| self.fits(budget, point))
    }

    /// The same where `fits` tells what is allowed.
    fn allowed_where(region: &ChipRegion, fits: impl Fn(&ChipPoint) -> bool) -> Option<ChipRegion> {
        allowed(region, fits)
    }

    /// Judges why a box is closed; whether that rests on an exact evaluation.
    fn row(&self, claim: &Claim, row: &Row) -> Result<bool, FalseClaim> {
        let inner = Self::allowed_where(&row.region, |point| self.counts_in(claim, point));
        let fits = inner.is_some();
        let region = &inner.unwrap_or(row.region);
        let not_better = |value: Value| {
            let enough = claim.worst.is_some_and(|worst| value >= worst);
            let worst = claim.worst.map_or("anything".to_owned(), |worst| worst.first.to_string());
            require(enough, row.claim("value"), value.first, format!("less than {worst}"))
        };
        // Chips that are counted need not be told apart from better ones, and counting may end early.
        let counts = matches!(claim.near, Some((None, _)));
        let Some(why) = row.why else {
            require(
                counts || self.stopped,
                row.claim("why"),
                "open",
                "closed: nothing stopped the search",
            )?;
            return Ok(false);
        };
        if why == Why::OverBudget {
            require(
                !fits,
                row.claim("why"),
                "over_budget",
                "within the budget at its least corner",
            )?;
            return Ok(false);
        }
        let bound = self.bound(claim, region);
        match why {
            Why::OverBudget => Ok(false),
            Why::NothingFits => {
                let found = bound.map_or(0, |bound| bound.first);
                let closed = bound.is_none();
                require(closed, row.claim("why"), "nothing_fits", format!("bounded by {found}"))?;
                Ok(false)
            }
            Why::Bound(value) => {
                not_better(value)?;
                let found = bound.map_or(u128::MAX, |bound| bound.first);
                let same = bound.is_none() || close(value.first as f64, found as f64, BOUND);
                require(same, row.claim("value"), value.first, found)?;
                let tie =
                    bound.is_none_or(|bound| claim.near.is_some() || bound.second == value.second);
                require(tie, row.claim("tie"), value.second, "another area")?;
                self.stands_there(row, value)?;
                Ok(false)
            }
            Why::Corner(_) | Why::CornerNothing => {
                let exact = CHIP_KNOBS
                    .iter()
                    .enumerate()
                    .all(|(at, knob)| knob.proved || !region.varies(at));
                require(exact, row.claim("why"), "corner", "a box of knobs without a law")?;
                if let Why::Corner(value) = why {
                    not_better(value)?;
                    is_kept(claim, row, value)?;
                }
                Ok(true)
            }
            Why::Evaluated(_) | Why::Beaten(_) | Why::Nothing => {
                require(region.only().is_some(), row.claim("why"), "a point", "a box of several")?;
                if let Why::Evaluated(value) | Why::Beaten(value) = why {
                    // Of the best chips themselves all but the last are better than the last.
                    if !counts && !claim.kept.contains(&region.lo) {
                        not_better(value)?;
                    }
                }
                match why {
                    Why::Evaluated(value) => {
                        let least = bound.map_or(0, |bound| bound.first);
                        let above = value.first as f64 >= least as f64 * (1.0 - BOUND);
                        let least = format!("at least {least}");
                        require(above, row.claim("value"), value.first, least)?;
                        self.stands_there(row, value)?;
                    }
                    Why::Beaten(value) => is_kept(claim, row, value)?,
                    _ => {}
                }
                Ok(true)
            }
        }
    }

    /// Whether the value of a box names the place of its least chip.
    fn stands_there(&self, row: &Row, value: Value) -> Verdict {
        let place = self.place(&row.region.lo);
        require(value.place == place, row.claim("place"), value.place, place)
    }

    /// How many chips of the grid come before a chip: all with less of its first knob, and so on.
    fn place(&self, point: &ChipPoint) -> u128 {
        let lens = self.question.setup.grid.lens().map(u128::from);
        let after = |knob: usize| lens[knob + 1..].iter().product::<u128>();
        point.iter().enumerate().map(|(knob, &at)| u128::from(at) * after(knob)).sum()
    }

    /// Judges what is told of chips: their figures and values; how many plans were rebuilt.
    fn told(&self) -> Result<usize, FalseClaim> {
        let outcome = self.outcome;
        let setup = &self.question.setup;
        let mut entries: Vec<(String, &ChipEntry)> = Vec::new();
        entries.extend(outcome.winner.iter().map(|entry| ("winner".to_owned(), entry)));
        let top = outcome.top.iter().enumerate();
        entries.extend(top.map(|(at, entry)| (format!("top[{at}]"), entry)));
        let near = outcome.near_winners.iter().enumerate();
        entries.extend(near.map(|(at, near)| (format!("near_winners[{at}].entry"), &near.entry)));
        let budget = setup.request.space.budget();
        for (path, entry) in &entries {
            self.told_chip(path, entry, (&setup.request.strategies, &budget, &self.judge))?;
        }
        self.winner()?;
        Ok((entries.len() + self.told_why()?) * outcome.models.len())
    }

    /// Judges what is told of a chip of the space within a budget, whose strategies were chosen from
    /// `space`, and its value; where it stands, and how it trains every model.
    pub(super) fn told_chip(
        &self,
        path: &str,
        entry: &ChipEntry,
        (space, budget, judge): (&StrategySpace, &Budget, &Judge),
    ) -> Result<(ChipPoint, Vec<Standing>), FalseClaim> {
        let setup = &self.question.setup;
        let point = self.point(path, entry)?;
        let grid = &setup.grid;
        let chip = grid.chip(&point).chip(&grid.technology);
        let refused = budget.check(&chip, &grid.technology).err();
        let why = refused.map_or_else(String::new, |reason| reason.to_string());
        require(refused.is_none(), format!("{path}.chip"), "within the budget", why)?;
        let facts = chip_facts(setup, &point).ok_or_else(|| {
            FalseClaim::new(format!("{path}.chip"), "a chip", "one that cannot be made")
        })?;
        equal(&format!("{path}.chip"), &entry.chip, &facts)?;
        let standings = self.held_from(path, entry, &point, space)?;
        let taken = self.footprint(judge.objective, &point).unwrap_or_default();
        let merit = judge.merit(&standings, taken, Certainty::Fact);
        equal(&format!("{path}.value"), &entry.value, &judge.figure(merit.value))?;
        Ok((point, standings))
    }

    /// Judges what follows from the winner.
    fn winner(&self) -> Verdict {
        let outcome = self.outcome;
        let setup = &self.question.setup;
        if setup.request.top > 1 {
            let first = outcome.top.first();
            require(first == outcome.winner.as_ref(), "top[0]", "another", "the winner")?;
        } else {
            require(outcome.top.is_empty(), "top", "a list", "empty")?;
        }
        let Some(winner) = &outcome.winner else {
            require(outcome.binds.is_empty(), "binds", "a list", "empty")?;
            require(outcome.limited_by.is_empty(), "limited_by", "a list", "empty")?;
            require(outcome.front.is_none(), "front", "told", "null")?;
            let none = outcome.near_winners.is_empty();
            require(none, "near_winners", "a list", "empty")?;
            require(outcome.why_it_wins.is_none(), "why_it_wins", "a sentence", "null")?;
            let names: Vec<&str> =
                setup.request.models.iter().map(|model| model.name.as_str()).collect();
            let reason = match &outcome.proof.stopped_by {
                Some(reason) => format!("stopped by {reason} before anything was found to fit"),
                None => sentences::nothing_fits(
                    &names,
                    setup.request.devices,
                    setup.request.power_cap_w,
                ),
            };
            return equal("infeasible_reason", &outcome.infeasible_reason, &Some(reason));
        };
        equal("infeasible_reason", &outcome.infeasible_reason, &None)?;
        let point = self.point("winner", winner)?;
        equal(
            "binds",
            &outcome.binds,
            &sentences::bindings(&setup.grid, &point, outcome.proof.settles_the_winner()),
        )?;
        equal("limited_by", &outcome.limited_by, &limits(winner))?;
        let about = (outcome.binds.as_slice(), outcome.limited_by.as_slice());
        let why = sentences::why_it_wins(winner, &outcome.baselines, about);
        equal("why_it_wins", &outcome.why_it_wins, &Some(why))?;
        let all = self.stopped || outcome.near_winners.len() == NearFigure::ALL.len();
        let n = outcome.near_winners.len();
        require(all, "near_winners.length", n, NearFigure::ALL.len())?;
        if let [facts] = outcome.models.as_slice() {
            let throughput = winner.results[0].throughput_sequences_per_s;
            let path = "models[0].best_throughput_sequences_per_s";
            equal(path, &facts.best_throughput_sequences_per_s, &Some(throughput))?;
            return Ok(());
        }
        // Of several models it follows from the own best where that is a time.
        let by_time = setup.request.objective == Objective::Throughput;
        for (at, facts) in outcome.models.iter().enumerate() {
            let is =
                by_time.then(|| setup.request.global_batch as f64 / (facts.own_best_cost / 1e12));
            let alike = match (facts.best_throughput_sequences_per_s, is) {
                (Some(said), Some(is)) => close(said, is, BOUND),
                (said, is) => said.is_none() && is.is_none(),
            };
            let path = format!("models[{at}].best_throughput_sequences_per_s");
            let said = format!("{:?}", facts.best_throughput_sequences_per_s);
            require(alike, path, said, format!("{is:?}"))?;
        }
        Ok(())
    }

    /// Judges whether the gap is no less than what open boxes leave; that schedules are proved is for `deep`.
    fn gap(&self, claim: &Claim, rows: &[Row]) -> Verdict {
        let gap = self.outcome.proof.gap;
        let mut open = rows.iter().filter(|row| row.proves == claim.proves && row.why.is_none());
        let Some(winner) = &self.outcome.winner else {
            let expected = if open.next().is_some() { 1.0_f64 } else { 0.0 };
            return require((gap - expected).abs() < BOUND, "proof.gap", gap, expected);
        };
        let best = self.value_of(winner)?.first as f64;
        let possible = open
            .filter_map(|row| self.bound(claim, &self.allowed(&claim.budget, &row.region)?))
            .fold(best, |least, bound| least.min(bound.first as f64));
        let left = 1.0 - possible / best;
        require(gap >= left - BOUND, "proof.gap", gap, format!("at least {left}"))
    }

    /// Judges the counts and the sentence of the proof.
    fn proof(&self, rows: &[Row]) -> Verdict {
        let claimed = &self.outcome.proof;
        let own = |row: &&Row| row.proves == boxes_csv::OBJECTIVE;
        let closed: Vec<_> = rows
            .iter()
            .filter(own)
            .filter_map(|row| {
                let region = row.region;
                row.why.map(|why| crate::search::boxes::Closed { region, why })
            })
            .collect();
        let open: u128 = rows
            .iter()
            .filter(own)
            .filter(|row| row.why.is_none())
            .map(|row| row.region.volume())
            .sum();
        let open_points = u64::try_from(open).unwrap_or(u64::MAX);
        let counting = counted_word();
        let any_open = rows.iter().any(|row| row.why.is_none() && row.proves != counting);
        let settled = self.stopped || !any_open;
        require(settled, "proof.stopped_by", "null", "boxes are open")?;
        let points = u64::try_from(self.question.setup.request.space.points()).unwrap_or(u64::MAX);
        let by = sentences::closed_by(&closed);
        let gap = claimed.gap;
        require((0.0..=1.0).contains(&gap), "proof.gap", gap, "no part of a whole")?;
        let stopped_by = claimed.stopped_by.as_deref();
        let proved = sentences::Proved { points, closed: &by, open_points, stopped_by, gap };
        let found = BoxProof {
            complete: stopped_by.is_none() && open == 0 && gap == 0.0,
            stopped_by: claimed.stopped_by.clone(),
            points,
            statement: proved.statement(),
            // Only the search knows how often it asked.
            evaluations: claimed.evaluations,
            certificate_entries: closed.len(),
            closed: by.clone(),
            open_points,
            gap,
        };
        equal("proof", claimed, &found)?;
        for (at, near) in self.outcome.near_winners.iter().enumerate() {
            let word = near.least.word();
            let is = rows.iter().filter(|row| row.proves == word && row.why.is_some()).count();
            let said = near.certificate_entries;
            require(said == is, format!("near_winners[{at}].certificate_entries"), said, is)?;
        }
        Ok(())
    }
}
