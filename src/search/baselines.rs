//! What every winner is compared with.

use super::Baseline;
use super::Setup;
use super::entry::entry;
use super::evaluate::Best;
use super::evaluate::Evaluator;
use super::experts;
use super::objective::Judge;
use super::spotlight::spotlight;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::hardware::Physics;
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

/// The four baselines, where the winner has the `hbm`-th size of memory.
pub fn baselines(
    evaluator: &Evaluator,
    judge: &Judge,
    references: &References,
    hbm: usize,
    winner: &[Best],
) -> Vec<Baseline> {
    let setup = evaluator.setup;
    let size = Bytes::GIB * setup.request.space.hbm_gib[hbm];
    let like = Design { hbm: size, ..references.tpuv4_like };
    let like = Accelerator::new(like, &setup.physics).ok();
    let (design, physics) = &references.tpuv4;
    let real = Accelerator::new(*design, physics).ok();
    let models = 0..setup.trainings.len();
    let best_on = |chip: &Accelerator| -> Result<Vec<Best>, String> {
        let found: Option<Vec<Best>> =
            models.clone().map(|model| evaluator.best_on(model, chip)).collect();
        found.ok_or_else(|| "no placement fits".to_owned())
    };
    let compare = Compare { evaluator, judge, winner };
    let gib = size.0 >> 30;
    let spot = spotlight(setup, evaluator.table(), hbm).map(|design| setup.chip(design, hbm));
    vec![
        compare.baseline(
            "tpuv4-like, expert strategy",
            Some("tpuv4-like"),
            &format!("the largest published design with {gib} GiB and the strategy that experts chose for the model"),
            like.as_ref(),
            |chip| experts_on(evaluator, chip),
        ),
        compare.baseline(
            "tpuv4-like, our placement",
            Some("tpuv4-like"),
            &format!("the largest published design with {gib} GiB and the best placement on it"),
            like.as_ref(),
            best_on,
        ),
        compare.baseline(
            "tpuv4, our placement",
            Some("tpuv4"),
            "the real part, with its 2 x 2,048 vector lanes and 32 GiB, and the best placement on it",
            real.as_ref(),
            best_on,
        ),
        compare.baseline(
            "operators alone, our placement",
            None,
            "the design of the space with the least sum of operator times (as Spotlight would \
             choose, blind to distribution) and the best placement on it",
            spot.as_ref(),
            best_on,
        ),
    ]
}

/// The experts' strategies for all models, each with its best micro-batch and recompute choice.
fn experts_on(evaluator: &Evaluator, chip: &Accelerator) -> Result<Vec<Best>, String> {
    let setup: &Setup = evaluator.setup;
    let one = |model: usize| {
        let name = &setup.trainings[model].name;
        let degrees = experts::strategy(name)
            .ok_or_else(|| format!("no expert strategy was published for {name}"))?;
        evaluator.given(model, chip, degrees).ok_or_else(|| {
            format!(
                "{} stages x {} replicas x {} wide do not fit",
                degrees.stages, degrees.data_parallel, degrees.tensor_parallel
            )
        })
    };
    (0..setup.trainings.len()).map(one).collect()
}

struct Compare<'a> {
    evaluator: &'a Evaluator<'a>,
    judge: &'a Judge,
    winner: &'a [Best],
}

impl Compare<'_> {
    fn baseline(
        &self,
        name: &str,
        built_in: Option<&str>,
        description: &str,
        chip: Option<&Accelerator>,
        find: impl Fn(&Accelerator) -> Result<Vec<Best>, String>,
    ) -> Baseline {
        let found = chip.ok_or_else(|| "it cannot be built".to_owned()).and_then(|chip| {
            let best = find(chip)?;
            let logs = best.iter().zip(self.winner).map(|(base, winner)| {
                (base.chosen.standing.time.0 as f64 / winner.chosen.standing.time.0 as f64).ln()
            });
            let ratio = (logs.sum::<f64>() / best.len() as f64).exp();
            Ok((entry(self.evaluator, self.judge, chip, None, built_in, &best), ratio))
        });
        let (entry, ratio, reason) = match found {
            Ok((entry, ratio)) => (Some(entry), Some(ratio), None),
            Err(reason) => (None, None, Some(reason)),
        };
        Baseline {
            name: name.into(),
            description: description.into(),
            entry,
            reason,
            winner_ratio: ratio,
        }
    }
}
