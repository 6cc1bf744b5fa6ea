//! The fastest strategy: the placement chooses among all shapes of a division at once.

use std::collections::BTreeMap;

use super::best::Candidate;
use super::best::Planner;
use super::best::Searched;
use super::best::Timed;
use super::best::TimedDivisions;
use super::best::Way;
use super::space_bound::SpaceBound;
use super::space_bound::Variant;
use super::training::Division;
use crate::estimate::Closeness;
use crate::hardware::Accelerator;
use crate::placement;
use crate::placement::Choice;
use crate::placement::Problem;
use crate::placement::Rank;
use crate::placement::Solved;
use crate::placement::Wanted;
use crate::placement::solve_for;
use crate::plan::Profile;
use crate::schedule::Limits;
use crate::units::Time;

/// How carefully a division is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// No mapping and no schedule is searched for, and every pass is as short as bounds allow.
    Sketch,
    /// No schedule is looked for, and every pass is as short as quick bounds allow.
    Outline,
    /// No schedule is searched for, and every pass is as short as bounds allow.
    Glance,
    /// As it is.
    Exact,
}

impl Timing {
    /// How closely the least of operators is looked for.
    pub(super) fn closeness(self) -> Closeness {
        match self {
            Self::Sketch => Closeness::Sketched,
            Self::Outline | Self::Glance => Closeness::Apart,
            Self::Exact => Closeness::Together,
        }
    }

    /// When searches for schedules give up; `None` where bounds speak alone.
    pub(super) fn limits(self) -> Option<&'static Limits<'static>> {
        match self {
            Self::Sketch | Self::Outline => None,
            Self::Glance => Some(&Limits::NO_SEARCH),
            Self::Exact => Some(&Limits::DEFAULT),
        }
    }
}

/// What is asked of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The fastest of all.
    Fastest,
    /// The fastest, unless every one is slower than this.
    FastestWithin(Time),
    /// Any that is not slower than this, the first that is found.
    AnyWithin(Time),
}

impl Asked {
    /// What need not be known is slower than this.
    fn limit(self) -> Option<Time> {
        match self {
            Self::Fastest => None,
            Self::FastestWithin(limit) | Self::AnyWithin(limit) => Some(limit),
        }
    }

    /// Which placement of each variant.
    fn wanted(self) -> Wanted {
        match self {
            Self::Fastest | Self::FastestWithin(_) => Wanted::Best,
            Self::AnyWithin(_) => Wanted::Any,
        }
    }
}

impl From<Option<Time>> for Asked {
    fn from(limit: Option<Time>) -> Self {
        limit.map_or(Self::Fastest, Self::FastestWithin)
    }
}

/// What is asked for of all `variants`, which come in the order of their least times, but for the first, which may
/// come before its turn; divisions that are
/// not timed yet are timed by `time`: first as each of `glances` says, as long as that does not rule them out,
/// then exactly.
pub(super) fn search(
    planner: &Planner,
    (chip, bound): (&Accelerator, &SpaceBound),
    variants: &[Variant],
    (timed, asked): (&mut TimedDivisions, Asked),
    (glances, time): (&[Timing], impl Fn(&Division, Timing) -> Option<Timed>),
) -> Searched {
    let (within, wanted) = (asked.limit(), asked.wanted());
    // Whatever takes longer than this is not looked at.
    let longest = within.map_or(u128::MAX, |limit| u128::from(limit.0));
    let mut best: Option<Candidate> = None;
    let mut open: Option<u128> = None;
    let mut of = None;
    let mut glanced: BTreeMap<(Way, usize), Option<Profile>> = BTreeMap::new();
    'variants: for (at_variant, variant) in variants.iter().enumerate() {
        let &Variant { division, sharded, recompute, least, .. } = variant;
        let known = best.as_ref().map_or(longest, |known| known.score.0);
        if known < u128::from(least.time.0) {
            break;
        }
        let way = (division, sharded);
        let divided = planner.training.division(division, sharded, planner.terms);
        if !timed.contains_key(&way) {
            // What operators take tells more than rooflines, long before schedules are proved.
            for (at, &timing) in glances.iter().enumerate() {
                let at_a_glance = || time(&divided, timing).map(|timed| timed.profile);
                let glance = glanced.entry((way, at)).or_insert_with(at_a_glance);
                let least = glance.as_ref().map(|profile| bound.least_time(variant, chip, profile));
                if least.is_some_and(|least| least.is_none_or(|least| known < u128::from(least))) {
                    continue 'variants;
                }
            }
        }
        let timed = timed.entry(way).or_insert_with(|| time(&divided, Timing::Exact));
        let Some(timed) = timed else { continue };
        // The same bound once more, now that the layers' own times are known.
        let least = bound.least_time(variant, chip, &timed.profile);
        if least.is_none_or(|least| known < u128::from(least)) {
            continue;
        }
        let choices = planner.training.choices(planner.terms, division, (sharded, recompute));
        let problem = Problem { profile: &timed.profile, job: &timed.job, choices: &choices };
        // Of equally good divisions the first wins, whichever was placed first.
        let beyond = within.map(|_| Rank {
            time: longest + 1,
            devices: 0,
            stages: 0,
            choice: Choice::default(),
        });
        let limit = best.as_ref().map(|known| {
            let (_, rank, at) = known.score;
            let choice = match way.cmp(&at) {
                std::cmp::Ordering::Less => Choice::LAST,
                std::cmp::Ordering::Equal => rank.choice,
                std::cmp::Ordering::Greater => Choice::default(),
            };
            Rank { choice, ..rank }
        });
        let incumbent = limit.or(beyond);
        let asked = placement::Asked { incumbent, wanted, known: Some(&divided.exchanges) };
        let solved = solve_for(&problem, asked).expect("a chain does not branch");
        let Solved { best: found, open: left } = solved;
        open = open.into_iter().chain(left).min();
        if let Some(found) = found {
            best = Some(Candidate { score: (found.rank.time, found.rank, way), found });
            of = Some(at_variant);
            if wanted == Wanted::Any {
                break;
            }
        }
    }
    Searched { best, open, of }
}
