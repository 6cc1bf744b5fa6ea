//! What every winner is compared with.

use super::experts;
use super::operators_alone::operators_alone;
use super::sensitivity::gain;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::hardware::Physics;
use crate::plan::Proof;
use crate::search::Baseline;
use crate::search::Evaluator;
use crate::search::Judge;
use crate::search::Observer;
use crate::search::Setup;
use crate::search::entry::entry;
use crate::strategy::Best;
use crate::strategy::Planner;
use crate::strategy::Standing;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::units::Area;
use crate::units::Bytes;

/// Accelerators outside the space that winners are compared with; their files are read by
/// `input`.
#[derive(Clone, Debug)]
pub struct References {
    /// The largest published design; it takes the physics of the request.
    pub tpuv4_like: Design,
    /// The real part, in its own physics.
    pub tpuv4: (Design, Physics),
}

/// The four baselines of a winner. What the observer stops is left out, with that as its reason.
pub fn baselines(
    compare: &Compare,
    references: &References,
    observer: &dyn Observer,
) -> Vec<Baseline> {
    let Compare { evaluator, judge, hbm, .. } = *compare;
    let setup = evaluator.setup;
    let size = Bytes::GIB * setup.request.space.hbm_gib[hbm];
    let like = Design { hbm: size, ..references.tpuv4_like };
    let like = Accelerator::new(like, &setup.physics).ok();
    let (design, physics) = &references.tpuv4;
    // What software reaches is taken to be the same for all that is compared.
    let efficiency = setup.physics.efficiency;
    let real = Accelerator::new(*design, &Physics { efficiency, ..physics.clone() }).ok();
    let models = 0..setup.trainings.len();
    let best_on = |chip: &Accelerator| -> Result<Vec<Best>, String> {
        if observer.stops() {
            return Err(STOPPED.into());
        }
        let found: Option<Vec<Best>> =
            models.clone().map(|model| evaluator.planner(model).best_on(chip)).collect();
        found.ok_or_else(|| "no placement fits".to_owned())
    };
    let gib = size.0 >> 30;
    let chosen = operators_alone(evaluator, judge, hbm, observer);
    let spot = chosen.map(|design| setup.chip_of(&design, hbm));
    let chips = [like.as_ref(), like.as_ref(), real.as_ref(), spot.as_ref()];
    let each = (0..N_BASELINES).zip(chips).map(|(at, chip)| {
        compare.baseline(description(at, gib), chip, |chip| {
            if at == 0 { experts_on(evaluator, chip) } else { best_on(chip) }
        })
    });
    let mut all: Vec<Baseline> = each.collect();
    tell_what_experts_left_open(setup, &mut all[0]);
    all
}

/// How many baselines there are.
pub const N_BASELINES: usize = 4;

/// What a baseline is called and is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// A short name.
    pub name: &'static str,
    /// The built-in hardware that it stands on; `None` for a design of the space.
    pub built_in: Option<&'static str>,
    /// What it is, in a sentence.
    pub description: String,
}

/// The `at`-th baseline of a winner with so much memory.
pub fn description(at: usize, gib: u64) -> Described {
    let (name, built_in, description) = match at {
        0 => (
            "tpuv4-like, expert strategy",
            Some("tpuv4-like"),
            format!(
                "the largest published design with {gib} GiB and the stages and width that experts \
                 chose for the model, with as many replicas as there are devices for"
            ),
        ),
        1 => (
            "tpuv4-like, our placement",
            Some("tpuv4-like"),
            format!("the largest published design with {gib} GiB and the best placement on it"),
        ),
        2 => (
            "tpuv4, our placement",
            Some("tpuv4"),
            "the real part, with its 2 x 2,048 vector lanes and 32 GiB, and the best placement on \
             it"
            .into(),
        ),
        _ => (
            "operators alone, our placement",
            None,
            "the design of the space whose operators, summed up, do best by the objective (as \
             Spotlight would choose, blind to distribution), and the best placement on it"
                .into(),
        ),
    };
    Described { name, built_in, description }
}

/// The experts' strategies for all models, each with its best micro-batch and recompute choice.
fn experts_on(evaluator: &Evaluator, chip: &Accelerator) -> Result<Vec<Best>, String> {
    let setup: &Setup = evaluator.setup;
    let one = |model: usize| {
        let name = &setup.trainings[model].name;
        let degrees = experts::strategy(name, setup.request.devices)
            .ok_or_else(|| format!("no expert strategy was published for {name}"))?;
        let terms =
            Terms { space: experts::space(degrees, &setup.terms.space), ..setup.terms.clone() };
        let Training { model: trained, sequence, .. } = &setup.trainings[model];
        let training = Training::new(name, trained.clone(), *sequence, &terms);
        let found = training.ok().and_then(|training| {
            let planner = Planner { terms: &terms, training: &training, table: evaluator.table() };
            planner.best_on(chip)
        });
        found.ok_or_else(|| {
            format!(
                "{} stages x {} replicas x {} wide do not fit",
                degrees.stages, degrees.data_parallel, degrees.tensor_parallel
            )
        })
    };
    (0..setup.trainings.len()).map(one).collect()
}

/// The experts' strategies are the best of what they leave to choose, not of the whole space.
fn tell_what_experts_left_open(setup: &Setup, baseline: &mut Baseline) {
    let Some(entry) = &mut baseline.entry else { return };
    for (result, training) in entry.results.iter_mut().zip(&setup.trainings) {
        let degrees = experts::strategy(&training.name, setup.request.devices);
        let Proof::Optimal { space, .. } = &mut result.plan.proof;
        *space = degrees.map(|degrees| experts::space(degrees, &setup.terms.space));
    }
}

/// A winner, and all that it takes to compare with it.
pub struct Compare<'a> {
    /// Evaluates the others.
    pub evaluator: &'a Evaluator<'a>,
    /// Says what is better.
    pub judge: &'a Judge,
    /// Which size of memory the winner has.
    pub hbm: usize,
    /// The winner's area.
    pub area: Area,
    /// How it trains each model.
    pub winner: &'a [Best],
}

/// Why a baseline was left out.
pub const STOPPED: &str = "not computed: the search was stopped before";

impl Compare<'_> {
    /// Why there is no chip.
    fn missing(built_in: Option<&str>) -> String {
        match built_in {
            Some(_) => "it cannot be built".into(),
            None => STOPPED.into(),
        }
    }

    fn baseline(
        &self,
        Described { name, built_in, description }: Described,
        chip: Option<&Accelerator>,
        find: impl Fn(&Accelerator) -> Result<Vec<Best>, String>,
    ) -> Baseline {
        let found = chip.ok_or_else(|| Self::missing(built_in)).and_then(|chip| {
            let best = find(chip)?;
            let standings = |best: &[Best]| -> Vec<Standing> {
                best.iter().map(|best| best.chosen.standing).collect()
            };
            let cost = |standing, area| Judge::cost(self.judge.objective, standing, area);
            let (theirs, ours) = (standings(&best), standings(self.winner));
            let ratio = gain(&theirs, chip.total_area(), &ours, self.area, &cost);
            Ok((entry(self.evaluator, self.judge, chip, None, built_in, &best), ratio))
        });
        let (entry, ratio, reason) = match found {
            Ok((entry, ratio)) => (Some(entry), Some(ratio), None),
            Err(reason) => (None, None, Some(reason)),
        };
        Baseline { name: name.into(), description, entry, reason, winner_ratio: ratio }
    }
}
