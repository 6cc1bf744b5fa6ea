//! About how long a batch takes on a chip, from what is known of another: no bound, and quick.
//!
//! A search over boxes asks it to see where a box is best divided, and whether its greatest corner is worth a
//! closer look. What it says decides effort, never an answer.

use super::Planner;
use super::SpaceBound;
use super::Way;
use super::fastest::Timing;
use super::training::Sharded;
use crate::hardware::Accelerator;
use crate::parallel::zero::Zero;
use crate::plan::Strategy;
use crate::units::Time;

impl Planner<'_> {
    /// How a strategy divides the model.
    pub fn way_of(&self, strategy: &Strategy) -> Option<Way> {
        let at = self.training.divided_like(strategy)?;
        let sharded = (strategy.zero >= Zero::Gradients).then_some(Sharded {
            zero: strategy.zero,
            data_parallel: strategy.data_parallel,
            ranks: strategy.pipeline,
        });
        Some((at, sharded))
    }

    /// About how long a batch takes on a chip with the model divided in one way;
    /// `None` where it does not fit so.
    pub fn guess(&self, chip: &Accelerator, bound: &SpaceBound, way: Way) -> Option<Time> {
        let division = self.training.division(way.0, way.1, self.terms);
        let timed = self.at_the_least(&division, chip, Timing::Glance).ok()?;
        let asked = (self.terms, self.training);
        bound.least_time_of(asked, way, (chip, &timed.profile)).map(Time)
    }
}
