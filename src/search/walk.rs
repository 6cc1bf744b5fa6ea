//! Walks candidates from the most promising on and prunes those that cannot matter any more.
//!
//! In: a [`Landscape`] that can bound and evaluate candidates, and what to [`Keep`].
//! Out: a [`Walk`]: the status of every candidate and the merits found.
//!
//! The answer does not depend on the number of threads: candidates are evaluated in batches of a
//! fixed size, what is known changes only between batches, and a candidate is pruned only where
//! even its bound is strictly worse than what is kept.
//! Not here: what a candidate is, files, clocks.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

/// How good a candidate is; less is better in every figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Merit {
    /// The objective.
    pub value: u128,
    /// Slowness, one of the three axes of the front.
    pub slowness: u128,
    /// Area, the second axis.
    pub area: u128,
    /// Energy, the third axis.
    pub energy: u128,
}

impl Merit {
    /// Whether this is at least as good on every axis of the front, and better on one.
    pub fn dominates(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.axes(), other.axes());
        mine != theirs && mine.iter().zip(theirs).all(|(mine, theirs)| *mine <= theirs)
    }

    fn axes(&self) -> [u128; 3] {
        [self.slowness, self.area, self.energy]
    }
}

/// Candidates numbered from 0 that can be bounded cheaply and evaluated dearly.
pub trait Landscape: Sync {
    /// What an evaluation yields besides its merit.
    type Found: Clone + Send;

    /// How many candidates there are.
    fn n_candidates(&self) -> usize;

    /// A merit that the candidate cannot beat in any figure; `None` where it surely fits nowhere.
    fn bound(&self, candidate: usize) -> Option<Merit>;

    /// What becomes of the candidate, where values beyond `limit` need not be known.
    fn evaluate(&self, candidate: usize, limit: Option<u128>) -> Evaluation<Self::Found>;
}

/// What an evaluation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluation<F> {
    /// The candidate's merit.
    Found(Merit, F),
    /// Its value is beyond the limit.
    Beyond,
    /// Nothing fits.
    Nothing,
}

/// Which candidates must be known exactly at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The best so many by value; at least one.
    pub top: usize,
    /// All that no other dominates.
    pub front: bool,
    /// Everything: nothing is pruned.
    pub all: bool,
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status<F> {
    /// Its merit is known.
    Evaluated(Merit, F),
    /// Even its bound is worse than what is kept.
    Pruned,
    /// Its bound is not, but its value is, by more than [`NEAR_PERCENT`].
    Beaten,
    /// Nothing fits on it.
    Infeasible,
    /// The walk was stopped before its turn.
    Open,
}

/// Where a walk ended.
#[derive(Clone, Debug)]
pub struct Walk<F> {
    /// By candidate: its bound; `None` where it surely fits nowhere, and where the walk was stopped
    /// before its bound was known.
    pub bounds: Vec<Option<Merit>>,
    /// By candidate: what became of it.
    pub statuses: Vec<Status<F>>,
    /// Whether the walk was not stopped early.
    pub complete: bool,
}

/// Who looks on, counts, and may stop the walk.
pub trait Observer: Sync {
    /// A part of the search begins; `what` names it.
    fn begins(&self, what: &str);
    /// Of the part `what`, the bounds of `done` of `of` candidates are known.
    fn bounded(&self, _what: &str, _done: usize, _of: usize) {}
    /// One more candidate of the part `what` was evaluated; at most `left` remain now.
    fn evaluated(&self, what: &str, left: usize);
    /// Whether the walk should end as soon as it can.
    fn stops(&self) -> bool;
}

/// Nobody looks on.
impl Observer for () {
    fn begins(&self, _what: &str) {}
    fn evaluated(&self, _what: &str, _left: usize) {}
    fn stops(&self) -> bool {
        false
    }
}

/// Other walks of the same kind over other candidates, which may tell what they found.
pub trait Peers: Sync {
    /// What the others keep by now in the walk of this name.
    fn found(&self, walk: &str) -> Vec<Merit>;
    /// Tells the others what this walk keeps by now.
    fn tell(&self, walk: &str, kept: &[Merit]);
}

/// Nobody else walks.
impl Peers for () {
    fn found(&self, _walk: &str) -> Vec<Merit> {
        Vec::new()
    }
    fn tell(&self, _walk: &str, _kept: &[Merit]) {}
}

/// The most candidates evaluated between two looks at what is known. Part of the answer's
/// definition: a larger batch evaluates a few more candidates before the first can be pruned.
const BATCH: usize = 64;

/// The first batches, while nothing or little is known: as many as were evaluated before, and so
/// many at least.
const FIRST_BATCH: usize = 2;

/// Values that are worse than what is kept by at most so much are known exactly.
pub const NEAR_PERCENT: u128 = 2;

/// Walks the whole landscape.
pub fn walk<L: Landscape>(
    landscape: &L,
    keep: Keep,
    what: &str,
    observer: &dyn Observer,
) -> Walk<L::Found> {
    walk_among(landscape, keep, (what, &()), (what, observer))
}

/// Walks the whole landscape beside `peers`, to whom the walk has the name that is given with them:
/// what they found prunes here as well.
pub fn walk_among<L: Landscape>(
    landscape: &L,
    keep: Keep,
    (name, peers): (&str, &dyn Peers),
    (what, observer): (&str, &dyn Observer),
) -> Walk<L::Found> {
    observer.begins(what);
    let Bounded { bounds, mut statuses, complete } = bound_all(landscape, what, observer);
    let mut order: Vec<(Merit, usize)> = bounds
        .iter()
        .enumerate()
        .filter_map(|(candidate, bound)| bound.map(|bound| (bound, candidate)))
        .collect();
    // Among equal values the smaller area comes first, then the published order.
    order.sort_unstable_by_key(|&(bound, candidate)| (bound.value, bound.area, candidate));

    if !complete || observer.stops() {
        // Whoever stops so early still gets an answer: that of the most promising so far.
        if let Some(&(_, candidate)) = order.first() {
            statuses[candidate] = evaluated(landscape, candidate, None);
        }
        let complete = !statuses.iter().any(|status| matches!(status, Status::Open));
        return Walk { bounds, statuses, complete };
    }
    let mut known = Known { keep, own: Vec::new(), front: Vec::new(), best: Vec::new() };
    let mut rest = order.as_slice();
    let mut n_evaluated = 0_usize;
    // Invariant: every candidate before `rest` has its final status.
    while !rest.is_empty() {
        known.hear(&peers.found(name));
        let mut batch = Vec::with_capacity(BATCH);
        let most = n_evaluated.clamp(FIRST_BATCH, BATCH);
        while let Some((&(bound, candidate), after)) = rest.split_first() {
            if batch.len() == most {
                break;
            }
            rest = after;
            if known.can_matter(&bound) {
                batch.push(candidate);
            } else {
                statuses[candidate] = Status::Pruned;
            }
        }
        n_evaluated += batch.len();
        let limit = known.limit();
        let found: Vec<Option<Status<L::Found>>> = batch
            .par_iter()
            .map(|&candidate| {
                if observer.stops() {
                    return None;
                }
                let status = evaluated(landscape, candidate, limit);
                observer.evaluated(what, rest.len());
                Some(status)
            })
            .collect();
        let stopped = found.iter().any(Option::is_none);
        for (&candidate, status) in batch.iter().zip(found) {
            let Some(status) = status else { continue };
            if let Status::Evaluated(merit, _) = &status {
                known.learn(*merit);
            }
            statuses[candidate] = status;
        }
        peers.tell(name, &known.kept());
        if stopped {
            return Walk { bounds, statuses, complete: false };
        }
    }
    Walk { bounds, statuses, complete: true }
}

/// The bounds of all candidates, or of those that were looked at before the observer stopped it.
struct Bounded<F> {
    bounds: Vec<Option<Merit>>,
    statuses: Vec<Status<F>>,
    complete: bool,
}

fn bound_all<L: Landscape>(
    landscape: &L,
    what: &str,
    observer: &dyn Observer,
) -> Bounded<L::Found> {
    let n = landscape.n_candidates();
    let done = AtomicUsize::new(0);
    let looked_at: Vec<Option<Option<Merit>>> = (0..n)
        .into_par_iter()
        .map(|candidate| {
            // The first is always bounded, so that whoever stops at once still gets an answer.
            if candidate > 0 && observer.stops() {
                return None;
            }
            let bound = landscape.bound(candidate);
            observer.bounded(what, done.fetch_add(1, Ordering::Relaxed) + 1, n);
            Some(bound)
        })
        .collect();
    let status = |bound: &Option<Option<Merit>>| match bound {
        Some(None) => Status::Infeasible,
        Some(Some(_)) | None => Status::Open,
    };
    Bounded {
        statuses: looked_at.iter().map(status).collect(),
        complete: looked_at.iter().all(Option::is_some),
        bounds: looked_at.into_iter().map(Option::flatten).collect(),
    }
}

fn evaluated<L: Landscape>(
    landscape: &L,
    candidate: usize,
    limit: Option<u128>,
) -> Status<L::Found> {
    match landscape.evaluate(candidate, limit) {
        Evaluation::Found(merit, found) => Status::Evaluated(merit, found),
        Evaluation::Beyond => Status::Beaten,
        Evaluation::Nothing => Status::Infeasible,
    }
}

/// What evaluations have shown so far, as far as pruning needs it.
struct Known {
    keep: Keep,
    /// The best of this walk by value, ascending, at most `keep.top` of them.
    own: Vec<Merit>,
    /// Merits that no other dominates, and whether this walk found them; empty unless the front is
    /// kept.
    front: Vec<(Merit, bool)>,
    /// The best values of this walk and its peers, ascending, at most `keep.top` of them.
    best: Vec<u128>,
}

impl Known {
    fn can_matter(&self, bound: &Merit) -> bool {
        let may_be_among_the_best = self.best.len() < self.keep.top.max(1)
            || self.best.last().is_none_or(|worst_kept| bound.value <= *worst_kept);
        self.keep.all
            || may_be_among_the_best
            || (self.keep.front && !self.front.iter().any(|(known, _)| known.dominates(bound)))
    }

    /// Values beyond this are not asked for: they are worse than what is kept, and not nearly as
    /// good. `None` where every value is wanted.
    fn limit(&self) -> Option<u128> {
        let wants_all = self.keep.all || self.keep.front || self.best.len() < self.keep.top.max(1);
        self.best
            .last()
            .filter(|_| !wants_all)
            .map(|worst| worst.saturating_add(worst / 100 * NEAR_PERCENT))
    }

    fn learn(&mut self, merit: Merit) {
        let place = self.own.partition_point(|known| known.value <= merit.value);
        self.own.insert(place, merit);
        self.own.truncate(self.keep.top.max(1));
        self.better_the_front(merit, true);
    }

    /// Takes in what peers keep by now, and what this walk found since.
    fn hear(&mut self, others: &[Merit]) {
        self.best = self.own.iter().chain(others).map(|merit| merit.value).collect();
        self.best.sort_unstable();
        self.best.truncate(self.keep.top.max(1));
        for merit in others {
            self.better_the_front(*merit, false);
        }
    }

    fn better_the_front(&mut self, merit: Merit, own: bool) {
        let is_known = |(known, _): &(Merit, bool)| *known == merit || known.dominates(&merit);
        if self.keep.front && !self.front.iter().any(is_known) {
            self.front.retain(|(known, _)| !merit.dominates(known));
            self.front.push((merit, own));
        }
    }

    /// What others may prune with: of what this walk found, the best and the front.
    fn kept(&self) -> Vec<Merit> {
        let front = self.front.iter().filter(|(_, own)| *own).map(|(merit, _)| *merit);
        let mut kept: Vec<Merit> = self.own.iter().copied().chain(front).collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }
}

impl<F> Walk<F> {
    /// Evaluated candidates, best first; ties by area, then by number.
    pub fn ranking(&self) -> Vec<usize> {
        let mut ranked: Vec<(u128, u128, usize)> = self
            .evaluated()
            .map(|(candidate, merit, _)| (merit.value, merit.area, candidate))
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, _, candidate)| candidate).collect()
    }

    /// Evaluated candidates that no evaluated one dominates, by area and then by number.
    pub fn front(&self) -> Vec<usize> {
        let mut by_area: Vec<(Merit, usize)> =
            self.evaluated().map(|(candidate, merit, _)| (*merit, candidate)).collect();
        by_area.sort_unstable_by_key(|(merit, candidate)| {
            (merit.area, merit.slowness, merit.energy, *candidate)
        });
        // Whatever dominates a merit sorts before it, and is in the front or dominated by it.
        let mut front: Vec<(Merit, usize)> = Vec::new();
        for (merit, candidate) in by_area {
            if !front.iter().any(|(known, _)| known.dominates(&merit)) {
                front.push((merit, candidate));
            }
        }
        front.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// Every evaluated candidate with what was found, in the order of candidates.
    pub fn evaluated(&self) -> impl Iterator<Item = (usize, &Merit, &F)> {
        self.statuses.iter().enumerate().filter_map(|(candidate, status)| match status {
            Status::Evaluated(merit, found) => Some((candidate, merit, found)),
            _ => None,
        })
    }

    /// The least value that any candidate of unknown merit could have: 0 where some has no bound.
    pub fn best_bound_left(&self) -> Option<u128> {
        let unknown = self.statuses.iter().zip(&self.bounds);
        unknown
            .filter(|(status, _)| matches!(status, Status::Pruned | Status::Open))
            .map(|(_, bound)| bound.map_or(0, |bound| bound.value))
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Candidates with known merits and how far each bound lies below its merit.
    #[derive(Debug)]
    struct Hills {
        merits: Vec<Option<Merit>>,
        slack: Vec<u128>,
    }

    impl Landscape for Hills {
        type Found = usize;
        fn n_candidates(&self) -> usize {
            self.merits.len()
        }
        fn bound(&self, candidate: usize) -> Option<Merit> {
            let slack = self.slack[candidate];
            // An infeasible candidate may look good, or be seen through at once.
            let Some(merit) = self.merits[candidate] else {
                return (slack > 2).then_some(Merit { value: 0, slowness: 0, area: 1, energy: 0 });
            };
            Some(Merit {
                value: merit.value.saturating_sub(slack),
                slowness: merit.slowness.saturating_sub(slack),
                energy: merit.energy.saturating_sub(slack),
                ..merit
            })
        }
        fn evaluate(&self, candidate: usize, limit: Option<u128>) -> Evaluation<usize> {
            match self.merits[candidate] {
                None => Evaluation::Nothing,
                Some(merit) if limit.is_some_and(|limit| merit.value > limit) => Evaluation::Beyond,
                Some(merit) => Evaluation::Found(merit, candidate),
            }
        }
    }

    struct StopsAfter(usize, AtomicUsize);
    impl Observer for StopsAfter {
        fn begins(&self, _what: &str) {}
        fn evaluated(&self, _what: &str, _left: usize) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        fn stops(&self) -> bool {
            self.1.load(Ordering::Relaxed) >= self.0
        }
    }

    fn hills() -> impl Strategy<Value = Hills> {
        let merit = (1..60_u128, 1..40_u128, 1..40_u128)
            .prop_map(|(slowness, area, energy)| Merit { value: slowness, slowness, area, energy });
        proptest::collection::vec((proptest::option::weighted(0.9, merit), 0..8_u128), 0..400)
            .prop_map(|pairs| {
                let (merits, slack) = pairs.into_iter().unzip();
                Hills { merits, slack }
            })
    }

    const EVERYTHING: Keep = Keep { top: 1, front: true, all: true };

    proptest! {
        #[test]
        fn pruning_changes_neither_the_best_nor_the_front(hills in hills(), top in 1..6_usize) {
            let all = walk(&hills, EVERYTHING, "hills", &());
            for front in [false, true] {
                let pruned = walk(&hills, Keep { top, front, all: false }, "hills", &());
                prop_assert!(pruned.complete);
                let best = |walk: &Walk<usize>| walk.ranking().into_iter().take(top).collect::<Vec<_>>();
                prop_assert_eq!(best(&pruned), best(&all));
                if front {
                    prop_assert_eq!(pruned.front(), all.front());
                }
                for (at, status) in pruned.statuses.iter().enumerate() {
                    if let (Status::Beaten, Status::Evaluated(merit, _), Some(&worst)) =
                        (status, &all.statuses[at], best(&all).last())
                    {
                        let Status::Evaluated(kept, _) = &all.statuses[worst] else { unreachable!() };
                        prop_assert!(merit.value > kept.value.saturating_add(kept.value / 100 * NEAR_PERCENT));
                        prop_assert!(!front, "the front asks for every value");
                    }
                }
                if let (Some(left), Some(&worst)) = (pruned.best_bound_left(), best(&all).last()) {
                    let Status::Evaluated(merit, _) = &all.statuses[worst] else { unreachable!() };
                    prop_assert!(left > merit.value, "a pruned candidate might have been kept");
                }
            }
        }

        #[test]
        fn a_stopped_walk_leaves_the_rest_open(hills in hills(), after in 0..50_usize) {
            let stopped = walk(&hills, EVERYTHING, "hills", &StopsAfter(after, AtomicUsize::new(0)));
            let open = stopped.statuses.iter().filter(|s| matches!(s, Status::Open)).count();
            prop_assert_eq!(stopped.complete, open == 0);
            let fits = |bound: &Option<Merit>| bound.is_some();
            let evaluated = stopped.evaluated().count();
            let infeasible = stopped.statuses.iter().filter(|s| matches!(s, Status::Infeasible)).count();
            // Something is always answered, unless all that looked good fits nowhere.
            prop_assert!(evaluated + infeasible > 0 || !stopped.bounds.iter().any(fits));
        }
    }

    /// What walks told, and what they hear.
    struct Board(std::sync::Mutex<Vec<Merit>>, Vec<Merit>);
    impl Peers for Board {
        fn found(&self, _walk: &str) -> Vec<Merit> {
            self.1.clone()
        }
        fn tell(&self, _walk: &str, kept: &[Merit]) {
            *self.0.lock().unwrap() = kept.to_vec();
        }
    }

    proptest! {
        #[test]
        fn halves_that_tell_each_other_find_what_the_whole_holds(
            hills in hills(),
            top in 1..5_usize,
            front in any::<bool>(),
        ) {
            let keep = Keep { top, front, all: false };
            let whole = walk(&hills, keep, "whole", &());
            let (mut told, mut found) = (Vec::new(), Vec::new());
            for half in 0..2 {
                let part = |at: usize| (at % 2 == half).then_some(()).and(hills.merits[at]);
                let part = Hills {
                    merits: (0..hills.merits.len()).map(part).collect(),
                    slack: hills.slack.iter().map(|slack| slack.min(&2)).copied().collect(),
                };
                let board = Board(std::sync::Mutex::default(), told.clone());
                let walked =
                    walk_among(&part, keep, ("half", &board), ("half", &()));
                told = board.0.into_inner().unwrap();
                found.extend(walked.evaluated().map(|(at, merit, _)| (merit.value, merit.area, at)));
                // What the other half kept is all that a part may leave out.
                for &at in whole.ranking().iter().take(top).filter(|&&at| at % 2 == half) {
                    prop_assert!(found.iter().any(|(_, _, known)| *known == at));
                }
                for &at in whole.front().iter().filter(|&&at| front && at % 2 == half) {
                    prop_assert!(found.iter().any(|(_, _, known)| *known == at));
                }
            }
            found.sort_unstable();
            let best: Vec<usize> = found.iter().take(top).map(|(_, _, at)| *at).collect();
            prop_assert_eq!(best, whole.ranking().into_iter().take(top).collect::<Vec<_>>());
        }
    }

    #[test]
    fn ties_go_to_the_smaller_area_and_then_to_the_first() {
        let merit = |area| Some(Merit { value: 5, slowness: 5, area, energy: 1 });
        let hills = Hills { merits: vec![merit(3), merit(2), merit(2)], slack: vec![0; 3] };
        assert_eq!(walk(&hills, EVERYTHING, "hills", &()).ranking(), [1, 2, 0]);
    }
}
