//! What a winner is compared with: that each baseline is the chip it says, fits and costs what it
//! says, or is rightly missing. That it is the best on its chip is for `deep` to say.

use crate::compare::Described;
use crate::compare::N_BASELINES;
use crate::compare::STOPPED;
use crate::compare::description;
use crate::compare::expert_strategy;
use crate::compare::gain;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::search::Baseline;
use crate::search::Judge;
use crate::search::Outcome;
use crate::strategy::Degrees;
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
use super::feasible::Layers;
use super::placed::Origin;
use super::placed::even_ends;
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
    let real = Accelerator::new(references.tpuv4.0, &references.tpuv4.1).ok().map(Box::new);
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
            let mut chips = (0..question.candidates.len()).map(|design| question.chip(design, hbm));
            let of_space = chips.find(|chip| design::facts(chip, None, None) == entry.design);
            let missing = || FalseClaim::new(format!("{path}.entry.design"), "a design", "none");
            Some(of_space.ok_or_else(missing)?)
        }
        // A design of the space can be built with every size of memory: any stands for all.
        (Chip::OfSpace, None) => Some(question.chip(0, hbm)),
    };
    let hindrance = match &chip {
        _ if stopped && claimed.reason.as_deref() == Some(STOPPED) => Some(STOPPED.to_owned()),
        None => Some("it cannot be built".to_owned()),
        Some(chip) => hindrance(question, chip, expected.given),
    };
    // Where power is capped, only a solver knows whether what fits draws too much.
    let capped = question.request.power_cap_w.is_some() && claimed.entry.is_none();
    let hindrance = if capped { claimed.reason.clone() } else { hindrance };
    match (&claimed.entry, hindrance, &chip) {
        (Some(entry), None, Some(chip)) => {
            let origins = question.models.iter().map(|model| {
                let degrees = degrees(question, &model.name).filter(|_| expected.given);
                degrees.map_or(Origin::Searched, Origin::Given)
            });
            let origins: Vec<Origin> = origins.collect();
            let expected = Expected {
                chip,
                index: None,
                name: expected.described.built_in,
                origins: &origins,
            };
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

/// Why there is no entry for a chip that can be built; `None` where there is one.
fn hindrance(question: &Question, chip: &Accelerator, given: bool) -> Option<String> {
    let capacity = chip.design().hbm;
    if !given {
        let fits = |model: usize| feasible::fits(question, model, capacity);
        let all_fit = (0..question.models.len()).all(fits);
        return (!all_fit).then(|| "no placement fits".to_owned());
    }
    question.models.iter().enumerate().find_map(|(model, trained)| {
        let Some(degrees) = degrees(question, &trained.name) else {
            return Some(format!("no expert strategy was published for {}", trained.name));
        };
        let Degrees { stages, data_parallel, tensor_parallel } = degrees;
        (!degrees_fit(question, model, degrees, capacity)).then(|| {
            format!(
                "{stages} stages x {data_parallel} replicas x {tensor_parallel} wide do not fit"
            )
        })
    })
}

/// Whether given degrees fit with some micro-batch and recompute choice, repeated layers cut evenly.
fn degrees_fit(question: &Question, model: usize, degrees: Degrees, capacity: Bytes) -> bool {
    let request = &question.request;
    let shares = question.models[model].shares.iter();
    let mut of_width =
        shares.filter(|share| share.setting.tensor_parallel == degrees.tensor_parallel);
    of_width.any(|share| {
        let ends = even_ends(&share.sequence, degrees.stages);
        let layers = Layers::new(share);
        let micro_batches = request.global_batch / share.setting.micro_batch;
        let rounds = micro_batches.div_ceil(degrees.data_parallel);
        !ends.is_empty()
            && request.recompute.iter().any(|&recompute| {
                let room = feasible::room(question, recompute, capacity);
                let devices = layers.given(&room, rounds, &ends);
                devices.is_some_and(|one| one * degrees.data_parallel <= request.devices)
            })
    })
}

/// Without a winner nothing is compared.
pub fn none(outcome: &Outcome) -> Verdict {
    require(outcome.baselines.is_empty(), "baselines.length", outcome.baselines.len(), 0)
}
