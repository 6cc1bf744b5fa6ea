//! Sets of runs split by model, source or hardware, never by random rows, and how close predictions
//! of what was left out are.

use super::Baseline;
use super::Bench;
use super::Figures;
use super::Fit;
use super::Pair;
use super::Prediction;
use super::Ranges;
use super::Scalar;
use super::Scalars;
use super::figures::quantile;
use crate::model::Attention;
use crate::model::Precision;
use crate::model::spec::Spec;

/// Which runs scalars are fitted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// To those that are predicted.
    InSample,
    /// For each model, to those of all other models.
    LeaveOneModelOut,
    /// To others: the runs at these places.
    From(Vec<usize>),
}

/// Which runs share scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Those of one accelerator, precision and software.
    ByStack,
    /// Those of one accelerator and precision, whatever the software.
    AcrossStacks,
}

/// A run beside its prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The run's place.
    pub at: usize,
    /// What it is predicted to take.
    pub prediction: Prediction,
    /// With these scalars.
    pub scalars: Scalars,
    /// What each baseline says.
    pub baselines: [f64; 2],
}

/// Predictions of some runs, from scalars fitted to some.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Run by run.
    pub predicted: Vec<Predicted>,
    /// Runs that had nothing to be fitted on.
    pub unfitted: Vec<usize>,
    /// Every fit that was made with what runs it is of; none where models are left out in turn, whose
    /// fits are much alike.
    pub fits: Vec<(String, Fit)>,
    /// Of times.
    pub time: Option<Figures>,
    /// The same of each baseline.
    pub baselines: [Option<Figures>; 2],
    /// Of memory.
    pub memory: Option<Figures>,
}

impl Validation {
    /// Thousandths between which four of five measured times lie, of those predicted.
    pub fn interval_80(&self, bench: &Bench) -> Option<[u16; 2]> {
        let ratio =
            |one: &Predicted| Some(bench.runs[one.at].run.seconds? / one.prediction.seconds);
        let mut ratios: Vec<f64> = self.predicted.iter().filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a ratio of times is positive, and far below what counts"
        )]
        let thousandths = |part: f64| (quantile(&ratios, part) * 1000.0).round() as u16;
        (ratios.len() >= 3).then(|| [thousandths(0.1), thousandths(0.9)])
    }
}

/// Which scalars are fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// What matmuls reach, and memory too where there are runs of three models.
    Usual,
    /// Of these, those that the runs can say anything of.
    Given(Vec<Scalar>),
}

impl Choice {
    /// The scalars for a fit to these runs.
    pub fn scalars(&self, bench: &Bench, at: &[usize]) -> Vec<Scalar> {
        match self {
            Self::Given(scalars) => {
                let known = |&&scalar: &&Scalar| identifiable(bench, at, scalar).is_ok();
                scalars.iter().filter(known).copied().collect()
            }
            Self::Usual => {
                let mut shapes: Vec<Spec> = Vec::new();
                for &at in at {
                    let shape = bench.runs[at].run.shape();
                    if !shapes.contains(&shape) {
                        shapes.push(shape);
                    }
                }
                let both = [Scalar::Matmul, Scalar::Memory];
                if shapes.len() >= 3 { both.to_vec() } else { both[..1].to_vec() }
            }
        }
    }
}

/// Whether runs can say what a scalar is; why not, where they cannot.
pub fn identifiable(bench: &Bench, at: &[usize], scalar: Scalar) -> Result<(), String> {
    let runs = || at.iter().map(|&at| &bench.runs[at].run);
    match scalar {
        Scalar::Matmul | Scalar::Memory => Ok(()),
        Scalar::Attention => {
            let (shortest, longest) =
                (runs().map(|run| run.sequence).min(), runs().map(|run| run.sequence).max());
            let differ = shortest.zip(longest).is_some_and(|(short, long)| long >= 2 * short);
            let fused = runs().any(|run| run.attention == Attention::Recomputed);
            (differ && fused).then_some(()).ok_or_else(|| {
                "attention is fitted only to runs of fused attention whose sequences differ twofold"
                    .to_owned()
            })
        }
        Scalar::Collective => {
            let degrees = |shape: &Spec| {
                let own = runs().filter(|run| run.shape() == *shape);
                let mut degrees: Vec<u64> = own.map(|run| run.tensor).collect();
                degrees.sort_unstable();
                degrees.dedup();
                degrees.len()
            };
            let enough = runs().any(|run| degrees(&run.shape()) >= 3);
            enough.then_some(()).ok_or_else(|| {
                "collective_us is fitted only where one model was run at three tensor degrees"
                    .to_owned()
            })
        }
    }
}

/// Predicts the runs at these places.
pub fn validate(
    bench: &Bench,
    at: &[usize],
    split: &Split,
    blocks: Blocks,
    choice: &Choice,
) -> Validation {
    let mut found = Validation {
        predicted: Vec::new(),
        unfitted: Vec::new(),
        fits: Vec::new(),
        time: None,
        baselines: [None, None],
        memory: None,
    };
    let keys: Vec<_> = (0..bench.runs.len()).map(|at| key(bench, at, blocks)).collect();
    let shapes: Vec<Spec> = bench.runs.iter().map(|one| one.run.shape()).collect();
    let mut folds: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    let mut left: Vec<usize> = at.to_vec();
    while let Some(&first) = left.first() {
        let same_key = |&other: &usize| keys[other] == keys[first];
        let same_fold = |other: &usize| match split {
            Split::LeaveOneModelOut => same_key(other) && shapes[*other] == shapes[first],
            Split::InSample | Split::From(_) => same_key(other),
        };
        let from: Vec<usize> = match split {
            Split::InSample => at.iter().copied().filter(same_key).collect(),
            Split::From(from) => from.iter().copied().filter(same_key).collect(),
            Split::LeaveOneModelOut => {
                let others = at.iter().copied().filter(same_key);
                others.filter(|&other| shapes[other] != shapes[first]).collect()
            }
        };
        folds.push((left.iter().copied().filter(same_fold).collect(), from));
        left.retain(|other| !same_fold(other));
    }
    let ranges = match split {
        Split::LeaveOneModelOut => Ranges::NotAsked,
        Split::InSample | Split::From(_) => Ranges::Found,
    };
    for (tested, from) in folds {
        predict(bench, (&tested, &from), choice, ranges, &mut found);
    }
    found.predicted.sort_by_key(|one| one.at);
    tell(bench, &mut found);
    found
}

/// What runs that share scalars have in common.
fn key(bench: &Bench, at: usize, blocks: Blocks) -> (String, Precision, String) {
    let run = &bench.runs[at].run;
    let stack = match blocks {
        Blocks::ByStack => run.stack.clone(),
        Blocks::AcrossStacks => String::new(),
    };
    (run.hardware.clone(), run.precision, stack)
}

/// Fits to some runs and predicts others.
fn predict(
    bench: &Bench,
    (tested, from): (&[usize], &[usize]),
    choice: &Choice,
    ranges: Ranges,
    found: &mut Validation,
) {
    let Some(fit) = bench.fit(from, &choice.scalars(bench, from), ranges) else {
        found.unfitted.extend(tested);
        return;
    };
    let at_peak = |at: usize| {
        let chip = bench.chip(at, fit.scalars);
        let rate = match bench.runs[at].run.precision {
            Precision::Bf16 => 1.0,
            Precision::Fp8 => 2.0,
        };
        let peak = chip.map_or(1.0, |chip| chip.peak_flops_per_second() as f64) * rate;
        let run = bench.chosen(at, fit.scalars);
        Baseline::ALL.map(|baseline| baseline.at_peak(run, peak))
    };
    // One part of the peak for all: the median of what the fitted runs reach.
    let reached = [0, 1].map(|which| {
        let ratio = |&at: &usize| Some(at_peak(at)[which] / bench.runs[at].run.seconds?);
        let mut ratios: Vec<f64> = from.iter().filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        quantile(&ratios, 0.5)
    });
    for &at in tested {
        let prediction = bench.predict(at, fit.scalars);
        let peak = at_peak(at);
        let baselines = [0, 1].map(|which| peak[which] / reached[which]);
        found.predicted.push(Predicted { at, prediction, scalars: fit.scalars, baselines });
    }
    if ranges == Ranges::Found {
        let run = tested.first().map(|&at| &bench.runs[at].run);
        let of = run.map_or_else(String::new, |run| {
            format!("{} in {}, {}", run.hardware, run.precision.name(), run.stack)
        });
        found.fits.push((of, fit));
    }
}

/// The figures of all predictions.
fn tell(bench: &Bench, found: &mut Validation) {
    let mut shapes: Vec<Spec> = Vec::new();
    let mut groups: Vec<(usize, u64, String)> = Vec::new();
    let mut pairs = |figure: &dyn Fn(&Predicted) -> Option<(f64, f64)>| -> Vec<Pair> {
        let mut all = Vec::new();
        for one in &found.predicted {
            let Some((predicted, measured)) = figure(one) else { continue };
            let run = &bench.runs[one.at].run;
            let model = place_of(&mut shapes, run.shape());
            let group = place_of(&mut groups, (model, run.sequence, run.hardware.clone()));
            let tokens = run.tokens_per_device();
            all.push(Pair { predicted, measured, model, group, tokens });
        }
        all
    };
    let seconds = |one: &Predicted| bench.runs[one.at].run.seconds;
    let gib = |one: &Predicted| bench.runs[one.at].run.memory_gib;
    let time = pairs(&|one| Some((one.prediction.seconds, seconds(one)?)));
    let baselines = [0, 1].map(|which| pairs(&|one| Some((one.baselines[which], seconds(one)?))));
    let memory = pairs(&|one| Some((one.prediction.memory.0 as f64 / 2_f64.powi(30), gib(one)?)));
    found.time = Figures::of(&time);
    found.baselines = baselines.map(|pairs| Figures::of(&pairs));
    found.memory = Figures::of(&memory);
}

/// Where something stands in a list, added where it is not there.
fn place_of<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|known| *known == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}
