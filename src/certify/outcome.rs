//! A whole outcome with its table, claim by claim.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::search::BestByHbm;
use crate::search::Entry;
use crate::search::Judge;
use crate::search::Listing;
use crate::search::ModelFacts;
use crate::search::Objective;
use crate::search::Outcome;
use crate::search::Share;
use crate::search::sentences::TOO_MUCH_POWER;
use crate::units::Bytes;

use super::baselines;
use super::baselines::Winner;
use super::bound::Bounds;
use super::boxes::designs;
use super::boxes::designs::BoxClaim;
use super::boxes::designs::JudgedBoxes;
use super::claims::FalseClaim;
use super::claims::SAME;
use super::claims::Verdict;
use super::claims::close;
use super::claims::equal;
use super::claims::require;
use super::entry;
use super::entry::Expected;
use super::feasible;
use super::feasible::Fit;
use super::proof;
use super::ranking;
use super::ranking::Place;
use super::rebuild::Question;
use super::replay;
use super::result::Held;
use super::sensitivity;
use super::table;
use super::table::Judging;
use super::table::Row;

/// What was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Plans of which every figure was rebuilt.
    pub plans: usize,
    /// Layer passes whose operators, schedules and memories were rebuilt.
    pub passes: usize,
    /// Designs with one size of memory whose bound, status and figures were judged.
    pub pairs: usize,
    /// Boxes of designs whose reasons were judged.
    pub boxes: usize,
    /// Pairs that a solver evaluated once more.
    pub evaluated_again: usize,
}

/// An outcome that holds as far as no solver is needed.
pub struct Judged {
    /// What was verified.
    pub verified: Verified,
    /// The table as it was read.
    pub(super) rows: Vec<Row>,
    /// How designs are compared.
    pub(super) judge: Judge,
    /// What boxes prove, where not every design has a row.
    pub(super) boxes: Vec<BoxClaim>,
}

/// The cells of the tables of an answer as they are written, headings first.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Of designs.csv.
    pub designs: &'a [Vec<String>],
    /// Of boxes.csv; none where every design has a row.
    pub boxes: &'a [Vec<String>],
}

/// Judges an outcome and its tables without any solver; the question is about the designs that have rows.
pub fn check(question: &Question, outcome: &Outcome, tables: Tables) -> Result<Judged, FalseClaim> {
    header(outcome)?;
    told_models(question, &outcome.models)?;
    let judge = question.judge(&outcome.models);
    let stopped = proof::stopped(&outcome.proof)?;
    let fits = fits(question);
    let bounds = Bounds::new(question);
    let judging = Judging { question, judge: &judge, bounds: &bounds, fits: &fits, stopped };
    let rows = table::check(&judging, tables.designs)?;
    let JudgedBoxes { claims, unlisted } = if question.request.lists_all() {
        (0..question.n_sizes())
            .try_for_each(|hbm| replay::check(hbm, &rows, &judge, &question.request))?;
        JudgedBoxes { claims: Vec::new(), unlisted: Vec::new() }
    } else {
        designs::check(&judging, &rows, tables.boxes)?
    };
    if !stopped {
        own_bests_by_boxes(outcome, &claims)?;
    }
    own_bests(question, outcome, &judge, &rows, stopped, &fits)?;
    let answers = Answers { question, outcome, judge: &judge, rows: &rows, stopped };
    let mut verified = answers.check(&fits)?;
    verified.pairs = rows.len() * question.n_sizes();
    verified.boxes = claims.iter().map(|claim| claim.rows.len()).sum();
    proof::check(question, &judge, (&rows, &unlisted), &outcome.proof)?;
    Ok(Judged { verified, rows, judge, boxes: claims })
}

fn header(outcome: &Outcome) -> Verdict {
    let said = (outcome.schema.as_str(), outcome.version, outcome.phaze.as_str());
    header_of(said, (Outcome::SCHEMA, Outcome::VERSION))
}

/// Whether a file says to be of a schema and version, written by some phaze.
pub fn header_of(said: (&str, u32, &str), is: (&str, u32)) -> Verdict {
    require(said.0 == is.0, "schema", said.0, is.0)?;
    require(said.1 == is.1, "version", said.1, is.1)?;
    let parts: Vec<&str> = said.2.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let shaped = parts.len() == 3 && parts.iter().all(number);
    require(shaped, "phaze", said.2, "no version such as 0.1.0")
}

/// By size of memory: whether every model fits.
fn fits(question: &Question) -> Vec<Fit> {
    let sizes = question.request.space.hbm_gib.par_iter();
    sizes.map(|&gib| feasible::all_fit(question, Bytes::GIB * gib)).collect()
}

/// Judges what is told of models, but for their own bests.
pub fn told_models(question: &Question, claimed: &[ModelFacts]) -> Verdict {
    let (said, is) = (claimed.len(), question.models.len());
    require(said == is, "models.length", said, is)?;
    for (at, (said, model)) in claimed.iter().zip(&question.models).enumerate() {
        let found = ModelFacts {
            name: model.name.clone(),
            sequence: model.sequence,
            parameters: model.parameters,
            flops_per_sequence: model.flops_per_sequence.0 as f64,
            // These follow from what was found, and are judged with it.
            best_throughput_sequences_per_s: said.best_throughput_sequences_per_s,
            own_best_cost: if question.models.len() == 1 { 1.0 } else { said.own_best_cost },
        };
        equal(&format!("models[{at}]"), said, &found)?;
        let positive = said.own_best_cost.is_finite() && said.own_best_cost > 0.0;
        require(positive, format!("models[{at}].own_best_cost"), said.own_best_cost, "no cost")?;
    }
    Ok(())
}

/// A single model's own best is the winner; of several, none is worse than what was evaluated for
/// all together.
fn own_bests(
    question: &Question,
    outcome: &Outcome,
    judge: &Judge,
    rows: &[Row],
    stopped: bool,
    fits: &[Fit],
) -> Verdict {
    let sequences = question.request.global_batch as f64;
    let throughput = |at: usize| format!("models[{at}].best_throughput_sequences_per_s");
    if let [facts] = outcome.models.as_slice() {
        let best = ranking::winner(rows).and_then(|(hbm, design)| {
            let found = rows[design].pairs[hbm].found.as_ref()?;
            Some(sequences / found.standings[0].time.seconds())
        });
        return equal(&throughput(0), &facts.best_throughput_sequences_per_s, &best);
    }
    let settled = !stopped && question.request.power_cap_w.is_none();
    for (at, facts) in outcome.models.iter().enumerate() {
        let path = format!("models[{at}].own_best_cost");
        let Some(best) = facts.best_throughput_sequences_per_s else {
            let missing = !(settled && fits.contains(&Fit::Yes));
            require(missing, throughput(at), "null", "possible: it fits")?;
            require(same_as_one(facts), path, facts.own_best_cost, 1)?;
            continue;
        };
        require(best.is_finite() && best > 0.0, throughput(at), best, "no throughput")?;
        if judge.objective == Objective::Throughput {
            let seconds = sequences / best;
            equal(&path, &facts.own_best_cost, &(seconds * 1e12).round())?;
        }
        for (design, row) in rows.iter().enumerate() {
            for found in row.pairs.iter().filter_map(|pair| pair.found.as_ref()) {
                let area = question.areas[design];
                let cost = Judge::cost(judge.objective, found.standings[at], area);
                let best = facts.own_best_cost;
                let no_worse = stopped || best <= cost * (1.0 + SAME);
                require(no_worse, &path, best, format!("at most {cost} by design {design}"))?;
            }
        }
    }
    Ok(())
}

/// Of several models, own bests are the best that boxes say to have evaluated for each alone.
fn own_bests_by_boxes(outcome: &Outcome, claims: &[BoxClaim]) -> Verdict {
    for (at, facts) in outcome.models.iter().enumerate() {
        let own = claims.iter().filter(|claim| claim.alone == Some(at));
        let best = own.filter_map(|claim| claim.best).map(|value| value.first).min();
        let told = facts.best_throughput_sequences_per_s.is_some();
        if let Some(best) = best {
            let path = format!("models[{at}].own_best_cost");
            let same = told && close(facts.own_best_cost, best as f64, SAME);
            require(same, path, facts.own_best_cost, format!("{best} by boxes.csv"))?;
        } else if claims.iter().any(|claim| claim.alone == Some(at)) {
            let path = format!("models[{at}].best_throughput_sequences_per_s");
            require(!told, path, "a figure", "null: nothing was evaluated")?;
        }
    }
    Ok(())
}

fn same_as_one(facts: &ModelFacts) -> bool {
    super::claims::same(facts.own_best_cost, 1.0)
}

/// An entry with its path, and where it must be about.
type Listed<'a> = ((String, &'a Entry), Place);

/// The entries of an outcome and what follows from them.
struct Answers<'a> {
    question: &'a Question,
    outcome: &'a Outcome,
    judge: &'a Judge,
    rows: &'a [Row],
    stopped: bool,
}

impl Answers<'_> {
    fn check(&self, fits: &[Fit]) -> Result<Verified, FalseClaim> {
        let Self { question, outcome, rows, .. } = *self;
        let request = &question.request;
        let winner = ranking::winner(rows);
        self.present("winner", outcome.winner.as_ref(), winner)?;
        let reason = match winner {
            Some(_) => None,
            None => Some(match &outcome.proof.stopped_by {
                Some(reason) => format!("stopped by {reason} before anything was found to fit"),
                // Only a solver knows why nothing fits where it alone knows that nothing does.
                None if fits.contains(&Fit::Perhaps) => {
                    outcome.infeasible_reason.clone().unwrap_or_default()
                }
                None => self.infeasible(fits),
            }),
        };
        equal("infeasible_reason", &outcome.infeasible_reason, &reason)?;
        let by_size = ranking::best_by_size(rows, question.n_sizes());
        let told = ranking::top(rows, ranking::TOLD.max(request.top));
        let front = ranking::front(rows);
        let front_is_exact = !self.stopped && (request.pareto || request.exhaustive);
        let top_is_exact = !self.stopped && request.top >= told.len();
        let mut listed = Vec::new();
        listed.extend(outcome.winner.iter().map(|entry| ("winner".to_owned(), entry)).zip(winner));
        listed.extend(self.best_by_size(&by_size)?);
        listed.extend(Self::listing("top", &outcome.top, top_is_exact, &told)?);
        listed.extend(Self::listing("pareto", &outcome.pareto, front_is_exact, &front)?);
        let held: Vec<Result<Vec<Held>, FalseClaim>> = listed
            .par_iter()
            .map(|((path, entry), place)| self.entry(path, entry, *place))
            .collect();
        let held: Vec<Vec<Held>> = held.into_iter().collect::<Result<_, _>>()?;
        told_alike(&listed)?;
        let mut verified =
            Verified { plans: held.len() * question.models.len(), ..Verified::default() };
        if let (Some(entry), Some((hbm, design))) = (&outcome.winner, winner) {
            equal("limited_by", &outcome.limited_by, &limits(entry))?;
            let winner = Winner { held: &held[0], area: question.areas[design] };
            verified.plans += baselines::check(question, self.judge, outcome, hbm, &winner)?;
            let chip = question.chip(design, hbm);
            sensitivity::check(question, &chip, &outcome.sensitivities, self.stopped)?;
        } else {
            require(outcome.limited_by.is_empty(), "limited_by", "a list", "empty")?;
            require(outcome.sensitivities.is_empty(), "sensitivities", "a list", "empty")?;
            baselines::none(outcome)?;
        }
        let compared = outcome.baselines.iter().filter_map(|baseline| baseline.entry.as_ref());
        let entries = listed.iter().map(|((_, entry), _)| *entry).chain(compared);
        verified.passes =
            entries.flat_map(|entry| &entry.results).map(|r| 2 * r.layers.len()).sum();
        Ok(verified)
    }

    fn present(&self, path: &str, said: Option<&Entry>, is: Option<Place>) -> Verdict {
        let found = is.map_or("null".to_owned(), |(hbm, design)| {
            let gib = self.question.request.space.hbm_gib[hbm];
            format!("design {design} with {gib} GiB")
        });
        let claimed = if said.is_some() { "an entry" } else { "null" };
        require(said.is_some() == is.is_some(), path, claimed, found)
    }

    fn best_by_size<'b>(&'b self, places: &[Option<Place>]) -> Result<Vec<Listed<'b>>, FalseClaim> {
        let claimed = &self.outcome.best_by_hbm;
        let (said, is) = (claimed.len(), places.len());
        require(said == is, "best_by_hbm.length", said, is)?;
        let mut entries = Vec::new();
        for (at, (BestByHbm { hbm_gib, entry }, place)) in claimed.iter().zip(places).enumerate() {
            let path = format!("best_by_hbm[{at}]");
            equal(&format!("{path}.hbm_gib"), hbm_gib, &self.question.request.space.hbm_gib[at])?;
            let path = format!("{path}.entry");
            self.present(&path, entry.as_ref(), *place)?;
            entries.extend(entry.iter().map(|entry| (path.clone(), entry)).zip(*place));
        }
        Ok(entries)
    }

    fn listing<'b>(
        path: &str,
        claimed: &'b Listing,
        exact: bool,
        places: &[Place],
    ) -> Result<Vec<Listed<'b>>, FalseClaim> {
        equal(&format!("{path}.exact"), &claimed.exact, &exact)?;
        let (said, is) = (claimed.entries.len(), places.len());
        require(said == is, format!("{path}.entries.length"), said, is)?;
        let named = claimed.entries.iter().enumerate();
        let named = named.map(|(at, entry)| (format!("{path}.entries[{at}]"), entry));
        Ok(named.zip(places.iter().copied()).collect())
    }

    /// An entry is about the design that it must be about, holds, and agrees with the table.
    fn entry(
        &self,
        path: &str,
        entry: &Entry,
        (hbm, design): Place,
    ) -> Result<Vec<Held>, FalseClaim> {
        let question = self.question;
        let chip = question.chip(design, hbm);
        let spaces = vec![question.request.strategies.clone(); question.models.len()];
        let expected = Expected { chip: &chip, index: Some(design), name: None, spaces: &spaces };
        let held = entry::check(path, question, self.judge, &expected, entry)?;
        let row = &self.rows[design];
        let Some(found) = &row.pairs[hbm].found else { return Ok(held) };
        for (model, held) in held.iter().enumerate() {
            let claim = |what: &str| {
                let gib = question.request.space.hbm_gib[hbm];
                format!("designs.csv: {what} of design {design} with {gib} GiB")
            };
            let (said, is) = (found.standings[model], held.standing);
            let agree = said.time == is.time;
            require(agree, claim("time per batch"), said.time.seconds(), is.time.seconds())?;
            let agree = said.energy == is.energy;
            require(agree, claim("energy per batch"), said.energy.joules(), is.energy.joules())?;
            require(
                found.devices[model] == held.devices,
                claim("devices"),
                found.devices[model],
                held.devices,
            )?;
            let Some((_, strategies)) = row.best.as_ref().filter(|(best, _)| *best == hbm) else {
                continue;
            };
            let (said, is) = (&strategies[model], &held.strategy);
            require(said.contains(is), claim("strategy"), "another", is)?;
        }
        Ok(held)
    }

    /// Why nothing was found.
    fn infeasible(&self, fits: &[Fit]) -> String {
        let question = self.question;
        if question.request.power_cap_w.is_some() && fits.contains(&Fit::Yes) {
            return TOO_MUCH_POWER.into();
        }
        let models = 0..question.models.len();
        let reasons = models.filter_map(|model| feasible::hindrance(question, model));
        reasons.collect::<Vec<String>>().join("; ")
    }
}

/// What is told of one design with one size of memory is the same wherever it is told.
fn told_alike(listed: &[Listed]) -> Verdict {
    let mut first: BTreeMap<Place, &Entry> = BTreeMap::new();
    for ((path, entry), place) in listed {
        let known = *first.entry(*place).or_insert(entry);
        if known != *entry {
            equal(path, *entry, known)?;
        }
    }
    Ok(())
}

/// Where the time of the first model's batch goes, as shares.
fn limits(winner: &Entry) -> Vec<Share> {
    let Some(result) = winner.results.first() else { return Vec::new() };
    let total = result.breakdown_s.total();
    let parts = result.breakdown_s.parts().into_iter();
    parts.map(|(what, seconds)| Share { what: what.into(), share: seconds / total }).collect()
}
