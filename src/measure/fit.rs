//! Scalars fitted to measured runs: one or two for each accelerator, software and precision.
//!
//! The loss is the mean of |ln(predicted / measured)|, because what is off is mostly slow, and a
//! little for being far from what is known of such hardware. Scalars are whole thousandths, or
//! tenths of a microsecond; a coarse grid and a walk with halving steps find the least loss, the
//! same on every machine.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::estimate::EstimateTable;
use crate::estimate::Options;
use crate::hardware::Accelerator;
use crate::hardware::Efficiency;
use crate::model::Precision;
use crate::units::Time;

use super::Inexpressible;
use super::Machine;
use super::Parts;
use super::Prediction;
use super::Prepared;
use super::Run;
use super::Term;

/// What can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scalar {
    /// What matmuls reach of the peak, in the runs' precision.
    Matmul,
    /// What kernels reach of the bandwidth of memory.
    Memory,
    /// What fused attention reaches of the peak.
    Attention,
    /// What an exchange inside a node pays.
    Collective,
}

impl Scalar {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Matmul, Self::Memory, Self::Attention, Self::Collective];

    /// What files call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Memory => "memory",
            Self::Attention => "attention",
            Self::Collective => "collective_us",
        }
    }

    /// The scalar that users call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// In which steps it is counted: thousandths, or tenths of a microsecond.
    pub fn units(self) -> f64 {
        match self {
            Self::Matmul | Self::Memory | Self::Attention => 1000.0,
            Self::Collective => 10.0,
        }
    }

    /// What is known of such hardware before any run: a usual figure, and how far it may be off in
    /// its logarithm. That of an exchange is what its file says.
    fn prior(self, base: Scalars) -> (f64, f64) {
        match self {
            Self::Matmul => (700.0, 0.5),
            Self::Memory => (600.0, 0.12),
            Self::Attention => (500.0, 0.12),
            Self::Collective => (f64::from(base.get(self)).max(1.0), 0.5),
        }
    }

    /// The least and the greatest that it may be.
    fn bounds(self) -> (u32, u32) {
        match self {
            Self::Matmul | Self::Memory | Self::Attention => (50, 1000),
            Self::Collective => (1, 5000),
        }
    }
}

/// Values of all scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scalars([u32; 4]);

impl Scalars {
    /// Before any run: what is not given stands at what is usual.
    pub fn usual(given: &Efficiency) -> Self {
        let collective = given.collective.map_or(0, |time| time.0 / 100_000);
        Self([700, 600, 500, u32::try_from(collective).unwrap_or(u32::MAX)])
    }

    /// The value of one.
    pub fn get(self, scalar: Scalar) -> u32 {
        self.0[scalar as usize]
    }

    /// The same with another value of one.
    #[must_use]
    pub fn with(mut self, scalar: Scalar, value: u32) -> Self {
        self.0[scalar as usize] = value;
        self
    }

    /// The block of a machine with these scalars, for runs of this precision.
    pub fn applied(self, given: &Efficiency, precision: Precision) -> Efficiency {
        let part = |scalar| u16::try_from(self.get(scalar)).unwrap_or(1000);
        let mut found = Efficiency {
            memory: part(Scalar::Memory),
            attention: part(Scalar::Attention),
            ..*given
        };
        match precision {
            Precision::Bf16 => found.matmul = part(Scalar::Matmul),
            Precision::Fp8 => found.matmul_fp8 = part(Scalar::Matmul),
        }
        if given.collective.is_some() {
            found.collective = Some(Time(u64::from(self.get(Scalar::Collective)) * 100_000));
        }
        found
    }
}

/// Measured runs, ready to be predicted with any scalars.
pub struct Bench {
    /// The runs that can be predicted, in the order in which they were given.
    pub runs: Vec<BenchRun>,
    /// Those that cannot, with the reason.
    pub left_out: Vec<(Run, Inexpressible)>,
    table: EstimateTable,
    known: Mutex<BTreeMap<(usize, Scalars), Prediction>>,
}

/// A run on its machine.
pub struct BenchRun {
    /// What was measured.
    pub run: Run,
    /// What it ran on.
    pub machine: Machine,
    /// One for each size of micro-batch that it may have had.
    prepared: Vec<Prepared>,
}

impl Bench {
    /// Makes runs ready; `without` are terms that predictions leave out.
    pub fn new(runs: Vec<(Run, Machine)>, without: &[Term]) -> Self {
        let mut bench = Self {
            runs: Vec::new(),
            left_out: Vec::new(),
            table: EstimateTable::new(Options::default()),
            known: Mutex::default(),
        };
        for (run, machine) in runs {
            match bench.prepared(&run, &machine, without) {
                Ok(prepared) => bench.runs.push(BenchRun { run, machine, prepared }),
                Err(reason) => bench.left_out.push((run, reason)),
            }
        }
        bench
    }

    /// A run with every size of micro-batch that fits; the smallest where none does, because what
    /// was measured ran.
    fn prepared(
        &self,
        run: &Run,
        machine: &Machine,
        without: &[Term],
    ) -> Result<Vec<Prepared>, Inexpressible> {
        let mut found = Vec::new();
        let mut smallest = None;
        let mut illegal = None;
        let scalars = Scalars::usual(&machine.physics.efficiency);
        for micro_batch in run.micro_batches() {
            let prepared = match Prepared::new(run, machine, micro_batch, without) {
                Ok(prepared) => prepared,
                Err(reason) => {
                    illegal = illegal.or(Some(reason));
                    continue;
                }
            };
            let fits = self.time(&prepared, (run, machine), scalars)?.fits;
            match (fits, run.micro_batch) {
                (true, _) | (_, Some(_)) => found.push(prepared),
                (false, None) => smallest = smallest.or(Some(prepared)),
            }
        }
        if found.is_empty() {
            found.extend(smallest);
        }
        match illegal {
            Some(reason) if found.is_empty() => Err(reason),
            _ => Ok(found),
        }
    }

    fn time(
        &self,
        prepared: &Prepared,
        (run, machine): (&Run, &Machine),
        scalars: Scalars,
    ) -> Result<Prediction, Inexpressible> {
        let (chip, physics) = machine.with(scalars, run.precision)?;
        prepared.predict((&chip, &prepared.cluster(&physics)), &self.table)
    }

    /// What a run takes with these scalars: with the fastest of its sizes of micro-batch, the smaller
    /// of two.
    pub fn predict(&self, at: usize, scalars: Scalars) -> Prediction {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&(at, scalars)) {
            return *found;
        }
        let of = &self.runs[at];
        let each = of
            .prepared
            .iter()
            .filter_map(|prepared| self.time(prepared, (&of.run, &of.machine), scalars).ok());
        let found = each.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let found = found.expect("a run that was made ready was timed before");
        known.insert((at, scalars), found);
        found
    }

    /// Where the time of a run goes.
    pub fn parts(&self, at: usize, scalars: Scalars) -> Option<Parts> {
        let of = &self.runs[at];
        let micro_batch = self.predict(at, scalars).micro_batch;
        let prepared = of.prepared.iter().find(|one| one.micro_batch() == micro_batch)?;
        let (chip, physics) = of.machine.with(scalars, of.run.precision).ok()?;
        prepared.parts((&chip, &prepared.cluster(&physics)), &self.table).ok()
    }

    /// The accelerator of a run with these scalars.
    pub(super) fn chip(&self, at: usize, scalars: Scalars) -> Option<Accelerator> {
        let of = &self.runs[at];
        of.machine.with(scalars, of.run.precision).ok().map(|(chip, _)| chip)
    }

    /// The run as it is predicted with these scalars.
    pub(super) fn chosen(&self, at: usize, scalars: Scalars) -> &Prepared {
        let micro_batch = self.predict(at, scalars).micro_batch;
        let prepared = self.runs[at].prepared.iter();
        let mut chosen = prepared.filter(|one| one.micro_batch() == micro_batch);
        chosen.next().expect("a prediction is that of a size of micro-batch")
    }

    /// Fits `scalars` to the runs at these places that were timed.
    pub fn fit(&self, at: &[usize], scalars: &[Scalar], ranges: Ranges) -> Option<Fit> {
        let timed: Vec<usize> =
            at.iter().copied().filter(|&at| self.runs[at].run.seconds.is_some()).collect();
        let base = Scalars::usual(&self.runs[*timed.first()?].machine.physics.efficiency);
        let mut free: Vec<Scalar> = scalars.to_vec();
        let mut kept = Vec::new();
        loop {
            let problem = FitProblem { bench: self, runs: &timed, base, free: &free };
            let found = problem.least();
            let fitted = problem.known(found, ranges);
            // The last one to be asked for is the first to be given up.
            match fitted.iter().rposition(|one| one.is_loose) {
                Some(at) if free.len() > 1 || fitted[at].scalar != Scalar::Matmul => {
                    kept.push(Fitted { value: base.get(free[at]), ..fitted[at] });
                    free.remove(at);
                }
                _ => {
                    let loss = problem.loss(found);
                    let mut all = fitted;
                    all.extend(kept);
                    return Some(Fit { scalars: found, fitted: all, runs: timed.len(), loss });
                }
            }
        }
    }
}

impl Machine {
    /// The accelerator with these scalars, and its physics.
    fn with(
        &self,
        scalars: Scalars,
        precision: Precision,
    ) -> Result<(Accelerator, crate::hardware::Physics), Inexpressible> {
        let efficiency = scalars.applied(&self.physics.efficiency, precision);
        let physics = crate::hardware::Physics { efficiency, ..self.physics.clone() };
        Ok((Accelerator::new(self.design, &physics)?, physics))
    }
}

/// Whether a fit says how far each scalar can move, which takes as long as the fit itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// It does.
    Found,
    /// It says only which scalars the runs do not identify.
    NotAsked,
}

/// Scalars that were fitted, and how well each is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// All scalars; those that were not fitted stand where they are usual.
    pub scalars: Scalars,
    /// Those that were asked for.
    pub fitted: Vec<Fitted>,
    /// How many runs they were fitted to.
    pub runs: usize,
    /// What is left.
    pub loss: f64,
}

/// One scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// Which.
    pub scalar: Scalar,
    /// Its value.
    pub value: u32,
    /// What is usual.
    pub prior: u32,
    /// How far it can move down and up before the loss grows by a tenth.
    pub range: [u32; 2],
    /// Whether the runs do not say: it is at a bound, or the loss is flat. Then it stays where it is
    /// usual.
    pub is_loose: bool,
}

/// A fit to some runs with some scalars free.
struct FitProblem<'a> {
    bench: &'a Bench,
    runs: &'a [usize],
    base: Scalars,
    free: &'a [Scalar],
}

/// Values of a fraction that are tried first.
const COARSE: [u32; 12] = [150, 250, 350, 450, 500, 550, 600, 650, 700, 750, 800, 900];

/// Hundredths of its usual value at which another scalar is tried first.
const PARTS: [u32; 5] = [75, 90, 100, 110, 130];

impl FitProblem<'_> {
    fn loss(&self, scalars: Scalars) -> f64 {
        let off = |&at: &usize| {
            let measured = self.bench.runs[at].run.seconds.unwrap_or(f64::NAN);
            (self.bench.predict(at, scalars).seconds / measured).ln().abs()
        };
        let data: f64 = self.runs.iter().map(off).sum::<f64>() / self.runs.len() as f64;
        let unusual = |&scalar: &Scalar| {
            let (prior, spread) = scalar.prior(self.base);
            let off = (f64::from(scalars.get(scalar)).ln() - prior.ln()) / spread;
            0.01 * off * off
        };
        data + self.free.iter().map(unusual).sum::<f64>()
    }

    /// The scalars of least loss: first the best of a coarse grid in what matmuls reach, then steps in
    /// every direction, halved where none is better.
    fn least(&self) -> Scalars {
        let coarse = COARSE.iter().map(|&value| self.base.with(Scalar::Matmul, value));
        let best_of = |tried: &mut dyn Iterator<Item = Scalars>| {
            let tried = tried.map(|scalars| (self.loss(scalars), scalars));
            tried.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, self.base))
        };
        let (mut least, mut best) = best_of(&mut coarse.clone());
        // What is fitted beside it may trade with it: every pair of a few is tried.
        for &scalar in self.free.iter().filter(|&&scalar| scalar != Scalar::Matmul) {
            let (low, high) = scalar.bounds();
            let usual = best.get(scalar);
            let values = PARTS.map(|part| (usual * part / 100).clamp(low, high));
            let near = [90, 95, 100, 105, 110].map(|part| best.get(Scalar::Matmul) * part / 100);
            let pairs = near.iter().flat_map(|&matmul| {
                let with = best.with(Scalar::Matmul, matmul.min(Scalar::Matmul.bounds().1));
                values.map(|value| with.with(scalar, value))
            });
            let (loss, found) = best_of(&mut pairs.clone());
            if loss < least {
                (least, best) = (loss, found);
            }
        }
        let mut step = 32;
        while step > 0 {
            let mut better = None;
            for next in self.neighbours(best, step) {
                let loss = self.loss(next);
                if loss < least {
                    (least, better) = (loss, Some(next));
                }
            }
            match better {
                Some(next) => best = next,
                None => step /= 2,
            }
        }
        best
    }

    /// One step of every free scalar down, none or up.
    fn neighbours(&self, from: Scalars, step: u32) -> Vec<Scalars> {
        let mut found = vec![from];
        for &scalar in self.free {
            let (low, high) = scalar.bounds();
            let value = from.get(scalar);
            let steps = [value.saturating_sub(step).max(low), value, (value + step).min(high)];
            found = found
                .iter()
                .flat_map(|scalars| steps.map(|value| scalars.with(scalar, value)))
                .collect();
        }
        found.retain(|next| *next != from);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How well each free scalar is known at the least loss.
    fn known(&self, found: Scalars, ranges: Ranges) -> Vec<Fitted> {
        let limit = self.loss(found) * 1.1;
        let of = |&scalar: &Scalar| {
            let (low, high) = scalar.bounds();
            let value = found.get(scalar);
            let holds = |value: u32| self.loss(found.with(scalar, value)) <= limit;
            let range = [low, high].map(|end| match ranges {
                Ranges::Found => furthest(value, end, &holds),
                Ranges::NotAsked if holds(end) => end,
                Ranges::NotAsked => value,
            });
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a usual value is a small whole number"
            )]
            let prior = scalar.prior(self.base).0.round() as u32;
            let is_loose = value == low || value == high || range == [low, high];
            Fitted { scalar, value, prior, range, is_loose }
        };
        self.free.iter().map(of).collect()
    }
}

/// The furthest value from one that holds towards an end, where none beyond one that does not hold
/// does.
fn furthest(from: u32, end: u32, holds: &dyn Fn(u32) -> bool) -> u32 {
    if holds(end) {
        return end;
    }
    let (mut good, mut bad) = (i64::from(from), i64::from(end));
    while (good - bad).abs() > 1 {
        let middle = i64::midpoint(good, bad);
        let value = u32::try_from(middle).unwrap_or(from);
        if holds(value) { good = middle } else { bad = middle }
    }
    u32::try_from(good).unwrap_or(from)
}
