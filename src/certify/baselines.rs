//! What a winner is compared with: that each baseline is the chip it says, fits and costs what it
//! says, or is rightly missing. That it is the best on its chip is for `deep` to say.

use crate::compare::Degrees;
use crate::compare::Described;
use crate::compare::N_BASELINES;
use crate::compare::STOPPED;
use crate::compare::description;
use crate::compare::expert_space;
use crate::compare::expert_strategy;
use crate::compare::gain;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::plan::StrategySpace;
use crate::search::Baseline;
use crate::search::Judge;
use crate::search::Outcome;
use crate::units::Area;
use crate::units::Bytes;

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::equal;
use super::claims::require;
use super::design;
use super::entry;
use super::entry::Expected;
use super::feasible;
use super::feasible::Fit;
use super::rebuild::Question;
use super::result::Held;

/// A baseline with its chip.
struct Compared {
    described: Described,
    chip: Chip,
    given: bool,
}

/// Which chip a baseline stands on.
enum Chip {
    /// This one; `None` where it cannot be built.
    Built(Option<Box<Accelerator>>),
    /// Some design of the space.
    OfSpace,
}

/// A winner as far as others are compared with it.
pub struct Winner<'a> {
    /// How it trains each model.
    pub held: &'a [Held],
    /// Its area.
    pub area: Area,
}

/// Judges all baselines of a winner that was found to be `winner`, with the `hbm`-th size of
/// memory.
pub fn check(
    question: &Question,
    judge: &Judge,
    outcome: &Outcome,
    hbm: usize,
    winner: &Winner,
) -> Result<usize, FalseClaim> {
    let expected = compared(question, hbm);
    let (said, is) = (outcome.baselines.len(), expected.len());
    require(said == is, "baselines.length", said, is)?;
    let mut checked = 0;
    for (at, (claimed, expected)) in outcome.baselines.iter().zip(&expected).enumerate() {
        let path = format!("baselines[{at}]");
        let stopped = outcome.proof.stopped_by.is_some();
        let about = About { question, judge, hbm, winner, stopped };
        checked += one(&path, &about, claimed, expected)?;
    }
    Ok(checked)
}

fn compared(question: &Question, hbm: usize) -> Vec<Compared> {
    let size = Bytes::GIB * question.request.space.hbm_gib[hbm];
    let gib = size.0 >> 30;
    let references = &question.references;
    let like = Design { hbm: size, ..references.tpuv4_like };
    let like = Accelerator::new(like, &question.physics).ok().map(Box::new);
    let mut physics = references.tpuv4.1.clone();
    physics.efficiency = question.physics.efficiency;
    let real = Accelerator::new(references.tpuv4.0, &physics).ok().map(Box::new);
    let chips = [Chip::Built(like.clone()), Chip::Built(like), Chip::Built(real), Chip::OfSpace];
    let each = (0..N_BASELINES).zip(chips);
    each.map(|(at, chip)| Compared { described: description(at, gib), chip, given: at == 0 })
        .collect()
}

/// What every baseline is judged by.
#[derive(Clone, Copy)]
struct About<'a> {
    question: &'a Question,
    judge: &'a Judge,
    hbm: usize,
    winner: &'a Winner<'a>,
    /// Whether the search was cut short: what it did not come to is left out.
    stopped: bool,
}

fn one(
    path: &str,
    about: &About,
    claimed: &Baseline,
    expected: &Compared,
) -> Result<usize, FalseClaim> {
    let About { question, judge, hbm, winner, stopped } = *about;
    let mut found = Baseline {
        name: expected.described.name.into(),
        description: expected.described.description.clone(),
        entry: None,
        reason: None,
        winner_ratio: None,
    };
    let chip = match (&expected.chip, &claimed.entry) {
        (Chip::Built(chip), _) => chip.as_deref().cloned(),
        (Chip::OfSpace, Some(entry)) => {
            let of_space = design::of_space(question, &entry.design);
            let of_space = of_space.map(|candidate| question.chip_of(&candidate, hbm));
            let of_space = of_space.filter(|chip| design::facts(chip, None, None) == entry.design);
            let missing = || FalseClaim::new(format!("{path}.entry.design"), "a design", "none");
            Some(of_space.ok_or_else(missing)?)
        }
        // A design of the space can be built with every size of memory: any stands for all.
        (Chip::OfSpace, None) => question.first.map(|first| question.chip_of(&first, hbm)),
    };
    let (hindrance, surely) = match &chip {
        _ if stopped && claimed.reason.as_deref() == Some(STOPPED) => {
            (Some(STOPPED.to_owned()), true)
        }
        None => (Some("it cannot be built".to_owned()), true),
        Some(chip) => hindrance(question, chip, expected.given),
    };
    // Where power is capped, only a solver knows whether what fits draws too much.
    let unknown = question.request.power_cap_w.is_some() || !surely;
    let missing = unknown && claimed.entry.is_none();
    let hindrance = if missing { claimed.reason.clone() } else { hindrance };
    match (&claimed.entry, hindrance, &chip) {
        (Some(entry), None, Some(chip)) => {
            let searched = &question.request.strategies;
            let spaces = question.models.iter().map(|model| {
                let degrees = degrees(question, &model.name).filter(|_| expected.given);
                degrees.map_or(searched.clone(), |degrees| expert_space(degrees, searched))
            });
            let spaces: Vec<StrategySpace> = spaces.collect();
            let name = expected.described.built_in;
            let expected = Expected { chip, index: None, name, spaces: &spaces };
            let path = format!("{path}.entry");
            let held = entry::check(&path, question, judge, &expected, entry)?;
            found.winner_ratio = Some(ratio(judge, &held, chip, winner));
            // It was judged above, key by key.
            found.entry.clone_from(&claimed.entry);
        }
        (Some(_), Some(reason), _) => {
            return Err(FalseClaim::new(format!("{path}.entry"), "an entry", reason));
        }
        (None, None, _) => {
            return Err(FalseClaim::new(format!("{path}.entry"), "null", "possible: it fits"));
        }
        (_, reason, _) => found.reason = reason,
    }
    equal(path, claimed, &found)?;
    Ok(usize::from(claimed.entry.is_some()) * question.models.len())
}

/// How many times better the winner is by the objective.
fn ratio(judge: &Judge, held: &[Held], chip: &Accelerator, winner: &Winner) -> f64 {
    let standings = |held: &[Held]| held.iter().map(|held| held.standing).collect::<Vec<_>>();
    let cost = |standing, area| Judge::cost(judge.objective, standing, area);
    let (theirs, ours) = (standings(held), standings(winner.held));
    gain(&theirs, chip.total_area(), &ours, winner.area, &cost)
}

fn degrees(question: &Question, model: &str) -> Option<Degrees> {
    expert_strategy(model, question.request.devices)
}

/// Why there is no entry for a chip that can be built, `None` where there is one; and whether that is
/// sure without a solver.
fn hindrance(question: &Question, chip: &Accelerator, given: bool) -> (Option<String>, bool) {
    let installed = chip.design().hbm;
    if !given {
        let fit = feasible::all_fit(question, installed);
        let reason = (fit == Fit::No).then(|| "no placement fits".to_owned());
        return (reason, fit != Fit::Perhaps);
    }
    let mut surely = true;
    for (model, trained) in question.models.iter().enumerate() {
        let Some(degrees) = degrees(question, &trained.name) else {
            return (
                Some(format!("no expert strategy was published for {}", trained.name)),
                surely,
            );
        };
        let Degrees { stages, data_parallel, tensor_parallel } = degrees;
        match degrees_fit(question, model, degrees, installed) {
            Fit::Yes => {}
            Fit::Perhaps => surely = false,
            Fit::No => {
                let reason = format!(
                    "{stages} stages x {data_parallel} replicas x {tensor_parallel} wide do not fit"
                );
                return (Some(reason), surely);
            }
        }
    }
    (None, surely)
}

/// Whether given degrees fit with some micro-batch and recompute choice, repeated layers cut evenly.
fn degrees_fit(question: &Question, model: usize, degrees: Degrees, installed: Bytes) -> Fit {
    let space = expert_space(degrees, &question.request.strategies);
    let asked = question.asked_from(model, &space);
    let scopes = question.physics.network.scopes(asked.devices);
    let Ok(divisions) = asked.divisions(scopes) else { return Fit::No };
    feasible::some_fit(&asked, &divisions, installed)
}

/// Without a winner nothing is compared.
pub fn none(outcome: &Outcome) -> Verdict {
    require(outcome.baselines.is_empty(), "baselines.length", outcome.baselines.len(), 0)
}
