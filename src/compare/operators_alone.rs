//! A baseline that looks at operators only: the design of the space on which all operators, one
//! after another and each spread over all cores, do best by the objective, blind to distribution.

use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::model::op::Op;
use crate::parallel::Setting;
use crate::parallel::shard;
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
use crate::strategy::Division;
use crate::strategy::Standing;
use crate::strategy::roofline::PeakRates;
use crate::strategy::roofline::Sketch;
use crate::units::Energy;
use crate::units::Time;

/// All designs with one size of off-chip memory, judged by all operators of one sequence at width 1.
struct Operators<'a> {
    setup: &'a Setup,
    judge: &'a Judge,
    table: &'a EstimateTable,
    hbm: usize,
    /// One for each model.
    divisions: Vec<Division>,
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
    let divisions = setup.trainings.iter().map(|training| {
        let setting = Setting {
            sequence: training.sequence,
            attention: setup.terms.attention,
            masked: setup.terms.masked,
            element: setup.terms.element,
            ..Setting::ALONE
        };
        let share = shard(&training.model, setting).expect("width 1 is always legal");
        Division::new(share, setup.terms.options.vector_costs, setup.terms.cluster)
    });
    let divisions = divisions.collect();
    let operators = Operators { setup, judge, table: evaluator.table(), hbm, divisions };
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
        let rates = PeakRates::of(&chip);
        let standings = self.divisions.iter().map(|division| {
            let time = division.sum_over_passes(|pass| {
                Sketch::new(pass, design.width, design.depth).least_sum(&rates)
            });
            let array_bytes = division.array_bytes(design.width, design.depth);
            let energy = Energy(division.least_energy(1, array_bytes, &chip));
            Standing { time: saturated(time), energy }
        });
        let standings: Vec<Standing> = standings.collect();
        Some(self.judge.merit(&standings, self.setup.areas[candidate], Certainty::Bound))
    }

    fn evaluate(&self, candidate: usize, _: Option<u128>) -> Evaluation<()> {
        let chip = self.setup.chip(candidate, self.hbm);
        let standings: Option<Vec<Standing>> =
            self.divisions.iter().map(|division| self.standing(division, &chip)).collect();
        let Some(standings) = standings else { return Evaluation::Nothing };
        let area = self.setup.areas[candidate];
        Evaluation::Found(self.judge.merit(&standings, area, Certainty::Fact), ())
    }
}

impl Operators<'_> {
    /// All operators of one model, one after another; `None` where they draw more than the cap, or
    /// where one is too large to be timed.
    fn standing(&self, division: &Division, chip: &Accelerator) -> Option<Standing> {
        let (mut time, mut energy) = (0_u128, Energy::ZERO);
        for (layer, count) in division.share.kinds.iter().zip(division.occurrences()) {
            for op in layer.forward.nodes().iter().chain(layer.backward.nodes()) {
                let found = self.estimate(op, chip)?;
                time += u128::from(found.0.0) * u128::from(count);
                energy += found.1 * count;
            }
        }
        let time = saturated(time);
        let at_rest = chip.static_power_uw() * u128::from(time.0) / 1000;
        let standing = Standing { time, energy: energy + Energy(at_rest) };
        let cap = self.setup.terms.power_cap_w;
        let too_much = cap.is_some_and(|cap| standing.average_power(1) > cap);
        (!too_much).then_some(standing)
    }

    fn estimate(&self, op: &Op, chip: &Accelerator) -> Option<(Time, Energy)> {
        let cluster = &self.setup.terms.cluster;
        let found = self.table.estimate(op, chip, cluster, Use::Spread).ok()?;
        Some((found.time, found.energy))
    }
}

fn saturated(picoseconds: u128) -> Time {
    Time(u64::try_from(picoseconds).unwrap_or(u64::MAX))
}
