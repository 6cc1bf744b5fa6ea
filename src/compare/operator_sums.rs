//! All operators of a model, one after another, each spread over all cores: what a chip is worth to
//! somebody who is blind to distribution.

use crate::estimate::Closeness;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Use;
use crate::model::Stack;
use crate::model::op::Op;
use crate::parallel::Setting;
use crate::parallel::shard;
use crate::strategy::Division;
use crate::strategy::Standing;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::roofline::PeakRates;
use crate::strategy::roofline::Sketch;
use crate::units::Energy;
use crate::units::Time;

/// The operators of one model at width 1, for one sequence.
pub struct OperatorSums<'a> {
    division: Division,
    terms: &'a Terms,
    table: &'a EstimateTable,
}

/// All passes of a model prepared for one shape of array, each with how often it runs.
pub struct Sketches(Vec<(Sketch, u64)>);

impl<'a> OperatorSums<'a> {
    /// Of a model that is trained on such terms.
    pub fn new(training: &Training, terms: &'a Terms, table: &'a EstimateTable) -> Self {
        let setting = Setting {
            sequence: training.sequence,
            attention: terms.attention,
            masked: terms.masked,
            element: terms.element,
            stack: Stack { precision: terms.stack.precision, ..Setting::ALONE.stack },
            ..Setting::ALONE
        };
        let share = shard(&training.model, setting).expect("width 1 is always legal");
        let division = Division::new(share, terms.options.vector_costs, terms.cluster);
        Self { division, terms, table }
    }

    /// The passes on arrays of such sides.
    pub fn sketches(&self, width: u64, depth: u64) -> Sketches {
        let kinds = self.division.needs().iter().zip(self.division.occurrences());
        let each = kinds.flat_map(|(passes, count)| {
            passes.each_ref().map(|pass| (Sketch::new(pass, width, depth), count))
        });
        Sketches(each.collect())
    }

    /// What no chip can beat that is nowhere above one, whose arrays the sketches are of.
    pub fn bound(&self, sketches: &Sketches, chip: &Accelerator) -> Standing {
        let rates = PeakRates::of(chip);
        let times = sketches
            .0
            .iter()
            .map(|(sketch, count)| u128::from(sketch.least_sum(&rates)) * u128::from(*count));
        let design = chip.design();
        let array_bytes = self.division.array_bytes(design.width, design.depth);
        let energy = Energy(self.division.least_energy(1, array_bytes, chip));
        Standing { time: saturated(times.sum()), energy }
    }

    /// A time that no chip can beat that has no more of any proved knob; `None` where an operator is too
    /// large to be timed.
    pub fn corner(&self, chip: &Accelerator) -> Option<Time> {
        let cluster = &self.terms.cluster;
        let least = |op: &Op| {
            let alone =
                self.table.least(op, chip, cluster, (Use::Alone, Closeness::Together)).ok()?;
            let spread =
                self.table.least(op, chip, cluster, (Use::Spread, Closeness::Together)).ok()?;
            Some(alone.min(spread).time)
        };
        Some(saturated(self.sum(|op| Some(u128::from(least(op)?.0)))?))
    }

    /// What all operators take on a chip; `None` where they draw more than the cap, or where one is too
    /// large to be timed.
    pub fn standing(&self, chip: &Accelerator) -> Option<Standing> {
        let cluster = &self.terms.cluster;
        let estimate = |op: &Op| self.table.estimate(op, chip, cluster, Use::Spread).ok();
        let time = saturated(self.sum(|op| Some(u128::from(estimate(op)?.time.0)))?);
        let energy = self.sum(|op| Some(estimate(op)?.energy.0))?;
        let at_rest = chip.static_power_uw() * u128::from(time.0) / 1000;
        let standing = Standing { time, energy: Energy(energy + at_rest) };
        let cap = self.terms.power_cap_w;
        let too_much = cap.is_some_and(|cap| standing.average_power(1) > cap);
        (!too_much).then_some(standing)
    }

    /// A figure of every operator, summed over all layers.
    fn sum(&self, figure: impl Fn(&Op) -> Option<u128>) -> Option<u128> {
        let mut sum = 0_u128;
        for (layer, count) in self.division.share.kinds.iter().zip(self.division.occurrences()) {
            for op in layer.forward.nodes().iter().chain(layer.backward.nodes()) {
                sum = sum.saturating_add(figure(op)?.saturating_mul(u128::from(count)));
            }
        }
        Some(sum)
    }
}

fn saturated(picoseconds: u128) -> Time {
    Time(u64::try_from(picoseconds).unwrap_or(u64::MAX))
}
