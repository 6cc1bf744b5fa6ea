//! Lower bounds: no schedule ends before them.
//!
//! All of them are one argument. Give each task a *credit*, in ticks, which it earns evenly while
//! it runs. If whatever may run at one time never earns more than one tick of credit per tick,
//! then no schedule ends before all credit is earned: the sum of credits is a lower bound, and
//! at any moment of a schedule so is the time plus the credit still to be earned.
//!
//! The longest path is such a credit (its tasks never run together), so is the work per core, and
//! the best of all credits is the dual of a linear program over sets of tasks that may run
//! together. That program is solved in floating point ([`super::simplex`]), its answer is then
//! made to obey the rule in integers: nothing rests on the rounding.

use super::job::Job;
use super::prepared::Antichain;
use super::prepared::Sets;
use super::prepared::bits;
use super::simplex::Simplex;
use crate::model::op::CoreKind;
use crate::plan::schedule::Rule;

/// Credits are counted in this fraction of a tick, so that rounding 128 of them down loses less
/// than a tick, which rounding the sum up gives back.
pub(super) const PARTS: u64 = 1 << 10;

/// Rates are counted in this fraction of a tick of credit per tick.
pub(super) const ONE: u64 = 1 << 53;

/// Rounds of the linear program; each adds the sets of tasks that earned too much.
const MOST_ROUNDS: usize = 40;

/// A credit for each task of a block, in parts of a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credits(pub Vec<u64>);

/// What each task earns per tick in each mode, rounded up.
struct Rates {
    alone: Vec<u64>,
    spread: Vec<u64>,
}

/// Tasks that run at one time, and what they earn together.
#[derive(Clone, Copy, Default)]
struct Company {
    alone: u128,
    spread: u128,
    rate: u64,
}

/// The longest path, each task in its faster mode.
pub(super) fn path(tails: &[u64]) -> u64 {
    tails.iter().copied().max().unwrap_or(0)
}

/// The most loaded resource: every task in the mode that takes less of it.
pub(super) fn work(job: &Job) -> u64 {
    let [tensor, vector] = [CoreKind::Tensor, CoreKind::Vector].map(|kind| {
        let n_cores = u128::from(n_cores(job, kind));
        let held = |task: usize| {
            let spread = job.spread[task].map_or(u128::MAX, |spread| u128::from(spread) * n_cores);
            u128::from(job.alone[task]).min(spread)
        };
        let total: u128 = users(job, kind).map(held).sum();
        u64::try_from(total.div_ceil(n_cores.max(1))).expect("no more than all tasks in a row")
    });
    let on_network = |task: &usize| job.block.core[*task] == CoreKind::Network;
    let network = (0..job.len()).filter(on_network).map(|task| job.alone[task]).sum();
    tensor.max(vector).max(network)
}

fn n_cores(job: &Job, kind: CoreKind) -> u32 {
    if kind == CoreKind::Tensor { job.cores.tensor } else { job.cores.vector }
}

fn users<'a>(job: &'a Job, kind: CoreKind) -> impl Iterator<Item = usize> + 'a {
    (0..job.len())
        .filter(move |&task| job.block.core[task] == kind || job.block.core[task] == CoreKind::Both)
}

impl Credits {
    /// The time until all credit is earned, rounded up: schedules end at whole ticks.
    pub fn bound(&self) -> u64 {
        self.0.iter().sum::<u64>().div_ceil(PARTS)
    }

    /// Each task's faster time, lowered wherever others earn beside it.
    ///
    /// It needs no search and is exact where spreading scales well: then nothing is lowered, and
    /// running one task after another is a fastest schedule.
    pub fn of_fastest(job: &Job, sets: &Sets) -> Self {
        Self((0..job.len()).map(|task| job.fastest(task) * PARTS).collect()).lowered(job, sets)
    }

    /// The share of a kind of core that each task takes at least.
    pub fn of_work(job: &Job, kind: CoreKind) -> Self {
        let mut credits = vec![0; job.len()];
        for task in users(job, kind) {
            let share = job.alone[task] * PARTS / u64::from(n_cores(job, kind).max(1));
            credits[task] = share.min(job.fastest(task) * PARTS);
        }
        Self(credits)
    }

    /// The largest sum of credits, by a linear program.
    pub fn best(job: &Job, sets: &Sets) -> Self {
        let fastest: Vec<f64> = (0..job.len()).map(|task| job.fastest(task) as f64).collect();
        let longest = fastest.iter().copied().fold(1.0, f64::max);
        // The unknowns are credits relative to the faster time, which they never exceed.
        let mut simplex = Simplex::new(&fastest.iter().map(|f| f / longest).collect::<Vec<f64>>());
        for task in 0..job.len() {
            simplex.add(&[(task, 1.0)]);
        }
        let mut credits = Self(Vec::new());
        let mut known: Vec<(u128, u128)> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            simplex.solve();
            let values = simplex.values();
            let parts = |(x, f): (&f64, &f64)| floor(x * f * PARTS as f64);
            credits = Self(values.iter().zip(&fastest).map(parts).collect());
            let rates = credits.rates(job);
            let before = known.len();
            for chain in &sets.antichains {
                let company = richest(job, chain, &rates);
                // A thousandth of a millionth of a millionth is less than a tick in any layer.
                let too_rich = company.rate > ONE + (ONE >> 40);
                if too_rich && !known.contains(&(company.alone, company.spread)) {
                    known.push((company.alone, company.spread));
                }
            }
            if known.len() == before {
                break;
            }
            for &(alone, spread) in &known[before..] {
                let slower = |task: usize| (task, fastest[task] / job.alone[task] as f64);
                let row: Vec<(usize, f64)> =
                    bits(alone).map(slower).chain(bits(spread).map(|task| (task, 1.0))).collect();
                simplex.add(&row);
            }
        }
        credits.lowered(job, sets)
    }

    fn rates(&self, job: &Job) -> Rates {
        let rate = |credit: u64, ticks: u64| {
            if credit == ticks * PARTS {
                return ONE;
            }
            let rate = (u128::from(credit) * u128::from(ONE / PARTS)).div_ceil(u128::from(ticks));
            u64::try_from(rate).expect("a credit is at most the time in which it is earned")
        };
        let credits = self.0.iter().enumerate();
        Rates {
            alone: credits.clone().map(|(task, &credit)| rate(credit, job.alone[task])).collect(),
            spread: credits.map(|(task, &credit)| rate(credit, job.fastest(task))).collect(),
        }
    }

    /// Lowers each credit by the most that it is ever part of, so that nothing earns too much.
    ///
    /// Whatever runs together lies in one antichain and earns at most what the richest company of
    /// that antichain does, and each of its members is divided by at least that.
    fn lowered(mut self, job: &Job, sets: &Sets) -> Self {
        let rates = self.rates(job);
        let mut most = vec![ONE; job.len()];
        let mut lowered = false;
        for chain in &sets.antichains {
            let rate = richest(job, chain, &rates).rate;
            if rate > ONE {
                lowered = true;
                for task in bits(chain.tasks) {
                    most[task] = most[task].max(rate);
                }
            }
        }
        if lowered {
            for (credit, most) in self.0.iter_mut().zip(most) {
                let less = u128::from(*credit) * u128::from(ONE) / u128::from(most);
                *credit = u64::try_from(less).expect("it was lowered");
            }
        }
        self
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ x < 2^63")]
fn floor(x: f64) -> u64 {
    x as u64
}

/// What tasks of one antichain can earn together at most, as cores and rule allow.
fn richest(job: &Job, chain: &Antichain, rates: &Rates) -> Company {
    let enough_cores = chain.tensor <= job.cores.tensor && chain.vector <= job.cores.vector;
    if enough_cores && !chain.network && job.rule == Rule::Alone {
        // All may run together. A spread task is then a company of one, which never earns too
        // much: its credit is at most its time.
        return Company::alone(chain.tasks, rates);
    }
    crowd(job, chain, rates)
}

/// The richest company where cores are few, or where spread tasks may have company (always with
/// the network, under rule `own-kind` with the other kind of core as well).
fn crowd(job: &Job, chain: &Antichain, rates: &Rates) -> Company {
    let of_kind = |kind: CoreKind| {
        let mut tasks: Vec<usize> =
            bits(chain.tasks).filter(|&task| job.block.core[task] == kind).collect();
        tasks.sort_by_key(|&task| std::cmp::Reverse(rates.alone[task]));
        tasks
    };
    let [tensor, vector, both, network] =
        [CoreKind::Tensor, CoreKind::Vector, CoreKind::Both, CoreKind::Network].map(of_kind);
    let first = |tasks: &[usize], n: u32| {
        let set = tasks.iter().take(n as usize).fold(0_u128, |set, &task| set | 1 << task);
        Company::alone(set, rates)
    };
    let widest = |tasks: &[usize]| {
        let spreads = tasks.iter().filter(|&&task| job.spread[task].is_some());
        let best = spreads.max_by_key(|&&task| rates.spread[task]);
        best.map_or(Company::default(), |&task| Company::spread(task, rates))
    };
    let (n_tensor, n_vector) = (job.cores.tensor, job.cores.vector);
    let most_fused = u32::try_from(both.len()).expect("few").min(n_tensor).min(n_vector);
    // So many fused tasks, each with the best of the other cores.
    let mixed = (0..=most_fused).map(|n| {
        let rest = first(&tensor, n_tensor - n).and(first(&vector, n_vector - n));
        first(&both, n).and(rest)
    });
    let mut companies: Vec<Company> = mixed.collect();
    companies.push(widest(&both));
    match job.rule {
        Rule::Alone => companies.extend([widest(&tensor), widest(&vector)]),
        Rule::OwnKind => {
            let side = |tasks: &[usize], n| first(tasks, n).or(widest(tasks));
            companies.push(side(&tensor, n_tensor).and(side(&vector, n_vector)));
        }
    }
    let best = companies.into_iter().fold(Company::default(), Company::or);
    best.and(first(&network, 1))
}

impl Company {
    fn alone(tasks: u128, rates: &Rates) -> Self {
        let rate = bits(tasks).map(|task| rates.alone[task]).sum();
        Self { alone: tasks, spread: 0, rate }
    }

    fn spread(task: usize, rates: &Rates) -> Self {
        Self { alone: 0, spread: 1 << task, rate: rates.spread[task] }
    }

    fn and(self, other: Self) -> Self {
        Self {
            alone: self.alone | other.alone,
            spread: self.spread | other.spread,
            rate: self.rate + other.rate,
        }
    }

    /// The richer of two.
    fn or(self, other: Self) -> Self {
        if other.rate > self.rate { other } else { self }
    }
}
