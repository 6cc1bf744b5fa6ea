//! The fastest strategy: the placement chooses among all numbers of stages and replicas at once.

use super::best::Candidate;
use super::best::Planner;
use super::best::TimedDivisions;
use super::bound::Variant;
use crate::hardware::Accelerator;
use crate::placement::Problem;
use crate::placement::Rank;
use crate::placement::solve;

/// The fastest of all `variants`, which come in the order of their least times.
pub(super) fn search(
    planner: &Planner,
    chip: &Accelerator,
    variants: &[Variant],
    timed: &mut TimedDivisions,
) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    for &Variant { division, recompute, least } in variants {
        if best.as_ref().is_some_and(|known| known.score.0 < u128::from(least.time.0)) {
            break;
        }
        let divided = &planner.training.divisions[division];
        let timed = timed.entry(division).or_insert_with(|| planner.timed(divided, chip));
        let Some(timed) = timed else { continue };
        let problem = planner.problem(timed, recompute);
        // A variant of equal rank yields to one that comes before it, whichever was placed first.
        let limit = best.as_ref().map(|known| {
            let (_, rank, at, how) = known.score;
            let ties = (division, recompute) < (at, how);
            Rank { stages: rank.stages + usize::from(ties), ..rank }
        });
        let found = solve(&problem, limit).expect("a chain does not branch");
        if let Some(found) = found {
            best = Some(Candidate {
                score: (found.rank.time, found.rank, division, recompute),
                found,
            });
        }
    }
    best
}

impl Planner<'_> {
    /// What is asked of the placement of a division on these terms.
    pub(super) fn problem<'b>(
        &self,
        timed: &'b super::best::Timed,
        recompute: crate::plan::Recompute,
    ) -> Problem<'b> {
        let all = Problem::new(&timed.profile, &timed.job, recompute);
        let (copies, stages) = (&self.terms.data_parallel, &self.terms.stages);
        let within = |low: u64, high: u64| low.max(*copies.start())..=high.min(*copies.end());
        let data_parallel = within(*all.data_parallel.start(), *all.data_parallel.end());
        let least = *all.stages.start().max(stages.start());
        let most = *all.stages.end().min(stages.end());
        Problem { data_parallel, stages: least..=most, ..all }
    }
}
