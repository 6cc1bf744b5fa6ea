//! The walk's decisions once more: with what was known when its turn came, was each pair rightly
//! evaluated or pruned?
//!
//! Pairs are taken in the order of their bounds, first 2, then as many as before, 64 at the most;
//! what is known changes between batches (docs/search.md). Bounds are floats that two programs round apart: where a decision
//! hangs on such a rounding, either is right and the answer's own is taken.

use crate::search::Judge;
use crate::search::Merit;
use crate::search::Request;

use super::claims::FalseClaim;
use super::claims::SAME;
use super::table::BOUND;
use super::table::Pair;
use super::table::Row;
use super::table::Status;

/// The most and the fewest pairs that are evaluated between two looks at what is known; between
/// them, as many as were before.
const BATCH: usize = 64;
const FIRST_BATCH: usize = 2;

/// Whether something can be said of two rounded figures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sure {
    Yes,
    No,
    Perhaps,
}

/// What evaluations have shown so far.
struct Known<'a> {
    judge: &'a Judge,
    request: &'a Request,
    /// The best values, ascending, as many as are kept.
    best: Vec<u128>,
    /// Merits that no other dominates; empty unless the front is kept.
    front: Vec<Merit>,
}

/// Judges the statuses of all designs with one size of memory.
pub fn check(hbm: usize, rows: &[Row], judge: &Judge, request: &Request) -> Result<(), FalseClaim> {
    let gib = request.space.hbm_gib[hbm];
    let mut order: Vec<(f64, u128, usize)> = rows
        .iter()
        .enumerate()
        .filter_map(|(design, row)| {
            let (figure, merit) = row.pairs[hbm].bound?;
            let cost = if judge.larger_is_better() { -figure } else { figure };
            Some((cost, merit.area, design))
        })
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut known = Known { judge, request, best: Vec::new(), front: Vec::new() };
    let mut batch: Vec<&Pair> = Vec::with_capacity(BATCH);
    let mut stopped = false;
    let mut n_before = 0_usize;
    for (_, _, design) in order {
        let pair = &rows[design].pairs[hbm];
        if batch.len() == n_before.clamp(FIRST_BATCH, BATCH) {
            n_before += batch.len();
            stopped = batch.iter().any(|pair| pair.status == Status::Open);
            batch.drain(..).for_each(|pair| known.learn(pair));
        }
        let wrong = |is: &str| {
            let claim = format!("designs.csv: status_hbm{gib} of design {design}");
            Err(FalseClaim::new(claim, format!("{:?}", pair.status).to_lowercase(), is))
        };
        if stopped {
            if pair.status != Status::Open {
                return wrong("open: the search was stopped before");
            }
            continue;
        }
        match (known.can_matter(pair), pair.status) {
            (Sure::Yes, Status::Pruned) => {
                return wrong("not so: its bound is not worse than what is kept");
            }
            (Sure::No, Status::Evaluated | Status::Beaten | Status::Infeasible | Status::Open) => {
                return wrong("pruned: its bound is worse than what is kept");
            }
            (_, Status::Beaten) if known.best.len() < request.top.max(1) => {
                return wrong("not so: fewer than are kept were known before it");
            }
            (_, Status::Pruned) => {}
            _ => batch.push(pair),
        }
    }
    Ok(())
}

impl Known<'_> {
    /// Whether a pair might be among what is kept, by its bound.
    fn can_matter(&self, pair: &Pair) -> Sure {
        let Some((figure, bound)) = pair.bound else { return Sure::No };
        if self.request.exhaustive || self.best.len() < self.request.top.max(1) {
            return Sure::Yes;
        }
        let Some(worst) = self.best.last().map(|&value| self.judge.figure(value)) else {
            return Sure::Yes;
        };
        let (cost, kept) =
            if self.judge.larger_is_better() { (-figure, -worst) } else { (figure, worst) };
        let among_best = not_more(cost, kept, SAME);
        if among_best == Sure::Yes || !self.request.pareto {
            return among_best;
        }
        match self.dominated(&bound) {
            Sure::No => Sure::Yes,
            Sure::Yes => among_best,
            Sure::Perhaps => Sure::Perhaps,
        }
    }

    /// Whether a known merit is at least as good as a bound in every way, and better in one.
    fn dominated(&self, bound: &Merit) -> Sure {
        let mut answer = Sure::No;
        for known in &self.front {
            let axes = [
                not_more(known.slowness as f64, bound.slowness as f64, BOUND),
                if known.area <= bound.area { Sure::Yes } else { Sure::No },
                not_more(known.energy as f64, bound.energy as f64, BOUND),
            ];
            if axes.iter().all(|axis| *axis == Sure::Yes) {
                return Sure::Yes;
            }
            if axes.iter().all(|axis| *axis != Sure::No) {
                answer = Sure::Perhaps;
            }
        }
        answer
    }

    fn learn(&mut self, pair: &Pair) {
        let Some(found) = &pair.found else { return };
        let merit = found.merit;
        let place = self.best.partition_point(|&value| value <= merit.value);
        self.best.insert(place, merit.value);
        self.best.truncate(self.request.top.max(1));
        if self.request.pareto && !self.front.iter().any(|known| dominates(known, &merit)) {
            self.front.retain(|known| !dominates(&merit, known));
            self.front.push(merit);
        }
    }
}

/// Whether one merit is at least as good as another in throughput, area and energy, and better in
/// one of them.
pub fn dominates(one: &Merit, other: &Merit) -> bool {
    let (mine, theirs) =
        ([one.slowness, one.area, one.energy], [other.slowness, other.area, other.energy]);
    mine != theirs && mine.iter().zip(theirs).all(|(mine, theirs)| *mine <= theirs)
}

fn not_more(one: f64, other: f64, part: f64) -> Sure {
    let margin = part * one.abs().max(other.abs());
    if one < other - margin {
        Sure::Yes
    } else if one > other + margin {
        Sure::No
    } else {
        Sure::Perhaps
    }
}
