//! The strategy of least price where the price is not time alone, or where a cap rules some out.
//!
//! Every number of replicas and of stages is a strategy of its own, with its fastest cut. They are
//! taken in the order of a price that no cut of theirs can beat.

use std::ops::RangeInclusive;

use super::best::Candidate;
use super::best::Planner;
use super::best::Timed;
use super::best::TimedDivisions;
use super::bound::Variant;
use super::energy::BatchEnergy;
use super::energy::EnergyFloor;
use super::price::Price;
use super::training::Division;
use crate::hardware::Accelerator;
use crate::placement::Problem;
use crate::placement::pipelines_worth_trying;
use crate::placement::solve;
use crate::plan::LayerProfile;
use crate::plan::Recompute;
use crate::units::Time;

/// The cheapest of all `variants`, which come in the order of their least prices.
pub(super) fn search(
    planner: &Planner,
    chip: &Accelerator,
    variants: &[Variant],
    timed: &mut TimedDivisions,
) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    for &Variant { division, recompute, least } in variants {
        let price = planner.terms.price.of(least);
        if best.as_ref().is_some_and(|known| known.score.0 < price) {
            break;
        }
        let divided = &planner.training.divisions[division];
        let timed = timed.entry(division).or_insert_with(|| planner.timed(divided, chip));
        let Some(timed) = timed else { continue };
        best = Shapes::new(planner, chip, divided, timed, recompute).improve(division, best);
    }
    best
}

/// All numbers of replicas and stages of one division and recompute choice.
struct Shapes<'a> {
    planner: &'a Planner<'a>,
    chip: &'a Accelerator,
    divided: &'a Division,
    timed: &'a Timed,
    recompute: Recompute,
    energy: BatchEnergy<'a>,
    floor: EnergyFloor,
    /// Ticks of all passes of one micro-batch, and of the slowest layer's.
    work: u128,
    slowest_layer: u128,
}

/// A number of replicas and of stages, with a price that no cut can beat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    least_price: u128,
    data_parallel: u64,
    n_stages: usize,
}

impl<'a> Shapes<'a> {
    fn new(
        planner: &'a Planner<'a>,
        chip: &'a Accelerator,
        divided: &'a Division,
        timed: &'a Timed,
        recompute: Recompute,
    ) -> Self {
        let energy = planner.batch_energy(chip, divided, timed);
        let again = u64::from(recompute == Recompute::Full);
        let load = |layer: &LayerProfile| {
            u128::from(layer.forward) * u128::from(1 + again) + u128::from(layer.backward)
        };
        let loads = || timed.profile.layers().map(load);
        Self {
            planner,
            chip,
            divided,
            timed,
            recompute,
            energy,
            floor: energy.floor(recompute),
            work: loads().sum(),
            slowest_layer: loads().max().unwrap_or(0),
        }
    }

    /// The best of what is known and these shapes.
    fn improve(&self, division: usize, mut best: Option<Candidate>) -> Option<Candidate> {
        let known = best.as_ref().map(|known| known.score.0);
        for shape in self.in_order(known) {
            if best.as_ref().is_some_and(|known| known.score.0 < shape.least_price) {
                break;
            }
            let Shape { data_parallel, n_stages, .. } = shape;
            let problem = Problem {
                data_parallel: data_parallel..=data_parallel,
                stages: n_stages..=n_stages,
                ..self.planner.problem(self.timed, self.recompute)
            };
            let found = solve(&problem, None).expect("a chain does not branch");
            let Some(found) = found else { continue };
            let standing = self.planner.standing(self.chip, self.divided, self.timed, &found);
            let Some(standing) = standing else { continue };
            let price = self.planner.terms.price.of(standing);
            let score = (price, found.rank, division, self.recompute);
            if best.as_ref().is_none_or(|known| score < known.score) {
                best = Some(Candidate { score, found });
            }
        }
        best
    }

    /// The shapes that may be better than a known price, the most promising first.
    fn in_order(&self, known: Option<u128>) -> Vec<Shape> {
        let job = &self.timed.job;
        let problem = self.planner.problem(self.timed, self.recompute);
        let each = self.divided.devices_per_stage();
        let mut shapes = Vec::new();
        for (data_parallel, rounds) in self.pipelines(problem.data_parallel.clone()) {
            for n_stages in problem.stages.clone() {
                let devices = data_parallel * each * n_stages as u64;
                if devices > job.devices {
                    break;
                }
                let least_price = self.least_price(data_parallel, n_stages, devices, rounds);
                if known.is_none_or(|known| least_price <= known) {
                    shapes.push(Shape { least_price, data_parallel, n_stages });
                }
            }
        }
        shapes.sort_unstable();
        shapes
    }

    /// The numbers of replicas worth looking at, with their micro-batches. More of them with as
    /// many micro-batches each take more devices and energy and, but where the network treats them
    /// apart, no less time; they draw less on average though, so that a cap may ask for any.
    fn pipelines(&self, range: RangeInclusive<u64>) -> Vec<(u64, u64)> {
        let Timed { profile, job, .. } = self.timed;
        if self.planner.terms.power_cap_w.is_none() {
            return pipelines_worth_trying(job, profile.width, range);
        }
        range.map(|n| (n, job.micro_batches_per_pipeline(n))).collect()
    }

    /// A price that no cut into so many stages can beat.
    fn least_price(&self, data_parallel: u64, n_stages: usize, devices: u64, rounds: u64) -> u128 {
        let time = self.least_time(n_stages as u64, rounds);
        match self.planner.terms.price {
            Price::Time => time.0.into(),
            Price::Energy => {
                let degrees = (data_parallel, n_stages as u64);
                self.energy.least(self.floor, degrees, devices, time).0
            }
        }
    }

    /// A time that no cut can beat: all work once for the first micro-batch, and the slowest stage
    /// busy for all of them.
    fn least_time(&self, n_stages: u64, rounds: u64) -> Time {
        let slowest = self.work.div_ceil(u128::from(n_stages)).max(self.slowest_layer);
        let later = u128::from(rounds.saturating_sub(n_stages)) * slowest;
        let least = (u128::from(rounds) * slowest).max(self.work + later);
        Time(u64::try_from(least).unwrap_or(u64::MAX))
    }
}
