//! A baseline that looks at operators only: the design of the space on which all operators, one
//! after another and each spread over all cores, do best by the objective, blind to distribution.

use super::operator_sums::OperatorSums;
use crate::search::Evaluator;
use crate::search::Judge;
use crate::search::Observer;
use crate::search::Setup;
use crate::search::objective::Certainty;
use crate::search::walk::Evaluation;
use crate::search::walk::Keep;
use crate::search::walk::Landscape;
use crate::search::walk::Merit;
use crate::search::walk::walk;
use crate::strategy::Standing;

/// All designs with one size of off-chip memory, judged by all operators of one sequence at width 1.
struct Operators<'a> {
    setup: &'a Setup,
    judge: &'a Judge,
    hbm: usize,
    /// One for each model.
    sums: Vec<OperatorSums<'a>>,
}

/// The design on which operators alone do best by the objective, among those that keep the cap of
/// power; `None` where none does, or where the observer stopped the walk.
pub fn operators_alone(
    evaluator: &Evaluator,
    judge: &Judge,
    hbm: usize,
    observer: &dyn Observer,
) -> Option<usize> {
    let setup = evaluator.setup;
    let of = |training| OperatorSums::new(training, &setup.terms, evaluator.table());
    let sums = setup.trainings.iter().map(of).collect();
    let operators = Operators { setup, judge, hbm, sums };
    let keep = Keep { top: 1, front: false, all: false };
    let walked = walk(&operators, keep, "operators alone", observer);
    walked.complete.then(|| walked.ranking().into_iter().next()).flatten()
}

impl Landscape for Operators<'_> {
    type Found = ();

    fn n_candidates(&self) -> usize {
        self.setup.candidates.len()
    }

    fn bound(&self, candidate: usize) -> Option<Merit> {
        let chip = self.setup.chip(candidate, self.hbm);
        let design = chip.design();
        let bound =
            |sums: &OperatorSums| sums.bound(&sums.sketches(design.width, design.depth), &chip);
        let standings: Vec<Standing> = self.sums.iter().map(bound).collect();
        Some(self.judge.merit(&standings, self.setup.areas[candidate], Certainty::Bound))
    }

    fn evaluate(&self, candidate: usize, _: Option<u128>) -> Evaluation<()> {
        let chip = self.setup.chip(candidate, self.hbm);
        let standings: Option<Vec<Standing>> =
            self.sums.iter().map(|sums| sums.standing(&chip)).collect();
        let Some(standings) = standings else { return Evaluation::Nothing };
        let area = self.setup.areas[candidate];
        Evaluation::Found(self.judge.merit(&standings, area, Certainty::Fact), ())
    }
}
