//! What a winner is compared with: that each baseline is the chip it says, fits and costs what it
//! says, or is rightly missing. That it is the best on its chip is for `deep` to say.

use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::search::Baseline;
use crate::search::Degrees;
use crate::search::Judge;
use crate::search::Outcome;
use crate::search::PUBLISHED;
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

/// The four baselines in order, each with its chip.
struct Compared {
    name: &'static str,
    built_in: Option<&'static str>,
    description: String,
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

/// Judges all baselines of a winner that was found to be `winner`, with the `hbm`-th size of
/// memory.
pub fn check(
    question: &Question,
    judge: &Judge,
    outcome: &Outcome,
    hbm: usize,
    winner: &[Held],
) -> Result<usize, FalseClaim> {
    let expected = compared(question, hbm);
    let (said, is) = (outcome.baselines.len(), expected.len());
    require(said == is, "baselines.length", said, is)?;
    let mut checked = 0;
    for (at, (claimed, expected)) in outcome.baselines.iter().zip(&expected).enumerate() {
        let path = format!("baselines[{at}]");
        checked += one(&path, question, judge, claimed, expected, hbm, winner)?;
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
    vec![
        Compared {
            name: "tpuv4-like, expert strategy",
            built_in: Some("tpuv4-like"),
            description: format!(
                "the largest published design with {gib} GiB and the strategy that experts chose \
                 for the model"
            ),
            chip: Chip::Built(like.clone()),
            given: true,
        },
        Compared {
            name: "tpuv4-like, our placement",
            built_in: Some("tpuv4-like"),
            description: format!(
                "the largest published design with {gib} GiB and the best placement on it"
            ),
            chip: Chip::Built(like),
            given: false,
        },
        Compared {
            name: "tpuv4, our placement",
            built_in: Some("tpuv4"),
            description: "the real part, with its 2 x 2,048 vector lanes and 32 GiB, and the best \
                          placement on it"
                .into(),
            chip: Chip::Built(real),
            given: false,
        },
        Compared {
            name: "operators alone, our placement",
            built_in: None,
            description: "the design of the space with the least sum of operator times (as \
                          Spotlight would choose, blind to distribution) and the best placement \
                          on it"
                .into(),
            chip: Chip::OfSpace,
            given: false,
        },
    ]
}

fn one(
    path: &str,
    question: &Question,
    judge: &Judge,
    claimed: &Baseline,
    expected: &Compared,
    hbm: usize,
    winner: &[Held],
) -> Result<usize, FalseClaim> {
    let mut found = Baseline {
        name: expected.name.into(),
        description: expected.description.clone(),
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
        None => Some("it cannot be built".to_owned()),
        Some(chip) => hindrance(question, chip, expected.given),
    };
    match (&claimed.entry, hindrance, &chip) {
        (Some(entry), None, Some(chip)) => {
            let origins = question.models.iter().map(|model| {
                let degrees = degrees(&model.name).filter(|_| expected.given);
                degrees.map_or(Origin::Searched, Origin::Given)
            });
            let origins: Vec<Origin> = origins.collect();
            let about = Expected { chip, index: None, name: expected.built_in, origins: &origins };
            let path = format!("{path}.entry");
            let held = entry::check(&path, question, judge, &about, entry)?;
            found.winner_ratio = Some(ratio(&held, winner));
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

/// The geometric mean of how much longer a batch takes than on the winner.
fn ratio(held: &[Held], winner: &[Held]) -> f64 {
    let logs = held
        .iter()
        .zip(winner)
        .map(|(base, winner)| (base.standing.time.0 as f64 / winner.standing.time.0 as f64).ln());
    (logs.sum::<f64>() / held.len() as f64).exp()
}

fn degrees(model: &str) -> Option<Degrees> {
    PUBLISHED.iter().find(|known| known.model == model).map(|known| known.degrees)
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
        let Some(degrees) = degrees(&trained.name) else {
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
