//! Chips drawn at random, one after another: what a search finds that proves nothing.
//!
//! The same number of samples always draws the same chips.

use rayon::prelude::*;

use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Observer;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Value;

use super::ChipPoint;
use super::ChipRegion;
use super::objective::ByObjective;

/// Draws between two chips within the budget, at the most.
const MOST_DRAWS: usize = 100_000;

/// Chips that are evaluated between two looks at what is known.
const BATCH: usize = 16;

/// Draws chips of a grid, each as likely as any other.
pub struct Sampler {
    state: u64,
    lens: [u16; N_CHIP_KNOBS],
}

impl Sampler {
    /// Of a grid whose knobs have so many values each.
    pub fn new(lens: [u16; N_CHIP_KNOBS]) -> Self {
        Self { state: 0, lens }
    }

    /// The next chip.
    pub fn draw(&mut self) -> ChipPoint {
        std::array::from_fn(|knob| {
            let wide = u128::from(self.next()) * u128::from(self.lens[knob]);
            u16::try_from(wide >> 64).unwrap_or(0)
        })
    }

    /// The next chip for which `fits` holds; `None` where none was drawn for long.
    pub fn draw_fitting(&mut self, fits: impl Fn(&ChipPoint) -> bool) -> Option<ChipPoint> {
        (0..MOST_DRAWS).find_map(|_| {
            let point = self.draw();
            fits(&point).then_some(point)
        })
    }

    /// A step of the generator that Steele, Lea and Flood published as `SplitMix`.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The best of so many chips within the budget, drawn at random, each trained in its best way; `None` where
/// none of them can be. A chip that its bound rules out is not looked at further, which changes nothing.
///
/// # Errors
/// That the observer ended it.
pub fn best_of_samples(
    problem: &ByObjective,
    samples: u64,
    observer: &dyn Observer,
) -> Result<Option<ChipPoint>, super::Ended> {
    let what = format!("{samples} chips drawn at random");
    observer.begins(&what);
    let mut sampler = Sampler::new(problem.lens());
    let mut best: Option<(Value, ChipPoint)> = None;
    let mut left = usize::try_from(samples).unwrap_or(usize::MAX);
    while left > 0 {
        if observer.stops() {
            return Err(super::Ended);
        }
        let batch: Vec<ChipPoint> = (0..left.min(BATCH))
            .map_while(|_| sampler.draw_fitting(|point| problem.fits(point)))
            .collect();
        if batch.is_empty() {
            break;
        }
        left -= batch.len();
        let known = best.map(|(value, _)| value);
        let found: Vec<Option<(Value, ChipPoint)>> = batch
            .par_iter()
            .map(|point| {
                let bound = problem.bound(&ChipRegion::point(*point))?;
                if known.is_some_and(|known| bound >= known) {
                    return None;
                }
                match problem.evaluate(point, known) {
                    Evaluation::Found(value, _) => Some((value, *point)),
                    Evaluation::Beyond | Evaluation::Nothing => None,
                }
            })
            .collect();
        for one in found.into_iter().flatten() {
            if best.is_none_or(|(known, _)| one.0 < known) {
                best = Some(one);
            }
        }
        observer.evaluated(&what, left);
    }
    Ok(best.map(|(_, point)| point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_drawn_and_the_draws_are_always_the_same() {
        let lens = [3, 1, 2, 5, 1, 1, 1, 1, 4, 7];
        let draw = || {
            let mut sampler = Sampler::new(lens);
            (0..500).map(|_| sampler.draw()).collect::<Vec<ChipPoint>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        for (knob, &len) in lens.iter().enumerate() {
            for place in 0..len {
                assert!(drawn.iter().any(|point| point[knob] == place), "{knob} {place}");
            }
            assert!(drawn.iter().all(|point| point[knob] < len));
        }
    }
}
