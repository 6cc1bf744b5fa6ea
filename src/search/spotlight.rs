//! A baseline that looks at operators only: the design of the space on which all operators, one
//! after another and each spread over all cores, take the least time.

use super::Setup;
use super::evaluate::rates;
use super::roofline::Sketch;
use super::training::Division;
use super::walk::Keep;
use super::walk::Landscape;
use super::walk::Merit;
use super::walk::walk;
use crate::estimate::EstimateTable;
use crate::hardware::Use;
use crate::parallel::Setting;
use crate::parallel::shard;
use crate::units::Bytes;

/// All designs with one size of off-chip memory, judged by the sum of operator times at width 1
/// and micro-batch 1.
struct Operators<'a> {
    setup: &'a Setup,
    table: &'a EstimateTable,
    hbm: usize,
    /// One for each model.
    divisions: Vec<Division>,
}

/// The design on which operators alone take the least time.
pub fn spotlight(setup: &Setup, table: &EstimateTable, hbm: usize) -> Option<usize> {
    let divisions = setup.trainings.iter().map(|training| {
        let setting = Setting {
            micro_batch: 1,
            sequence: training.sequence,
            tensor_parallel: 1,
            sequence_parallel: false,
            attention: setup.request.attention,
            element: Bytes(setup.physics.element_bytes),
        };
        let share = shard(&training.model, setting).expect("width 1 is always legal");
        Division::new(share, setup.options.vector_costs, &setup.cluster)
    });
    let operators = Operators { setup, table, hbm, divisions: divisions.collect() };
    let keep = Keep { top: 1, front: false, all: false };
    // Nobody needs to look on: this takes a second.
    walk(&operators, keep, "operators alone", &()).ranking().into_iter().next()
}

impl Landscape for Operators<'_> {
    type Found = ();

    fn n_candidates(&self) -> usize {
        self.setup.candidates.len()
    }

    fn bound(&self, candidate: usize) -> Option<Merit> {
        let chip = self.setup.chip(candidate, self.hbm);
        let design = chip.design();
        let rates = rates(&chip);
        let of_division = |division: &Division| -> u128 {
            division.sum_over_passes(|pass| {
                Sketch::new(pass, design.width, design.depth).least_sum(&rates)
            })
        };
        let time = self.divisions.iter().map(of_division).sum();
        Some(self.merit(candidate, time))
    }

    fn evaluate(&self, candidate: usize) -> Option<(Merit, ())> {
        let chip = self.setup.chip(candidate, self.hbm);
        let mut time = 0_u128;
        for division in &self.divisions {
            for (layer, count) in division.share.kinds.iter().zip(division.occurrences()) {
                for op in layer.forward.nodes().iter().chain(layer.backward.nodes()) {
                    let found =
                        self.table.estimate(op, &chip, &self.setup.cluster, Use::Spread).ok()?;
                    time += u128::from(found.time.0) * u128::from(count);
                }
            }
        }
        Some((self.merit(candidate, time), ()))
    }
}

impl Operators<'_> {
    fn merit(&self, candidate: usize, time: u128) -> Merit {
        let area = self.setup.areas[candidate].0.into();
        Merit { value: time, slowness: time, area, energy: 0 }
    }
}
