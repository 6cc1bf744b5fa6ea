//! What "best" means: one number per design, less is better, for one model or several.
//!
//! A single model is judged in whole picoseconds, square nanometres and femtojoules. Several are
//! joined through ratios, which are floats; a bound is lowered by more than their error, so that
//! it stays a bound.

use serde::Deserialize;
use serde::Serialize;

use super::walk::Merit;
use crate::strategy::Standing;
use crate::units::Area;

/// What is made as good as possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Sequences per second.
    #[default]
    Throughput,
    /// Sequences per second and area of a chip.
    ThroughputPerArea,
    /// Energy for each token.
    EnergyPerToken,
}

/// How several models become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// The weighted geometric mean of each model's ratio to its own best.
    #[default]
    Geomean,
    /// The weighted mean of the raw figures: the smallest model decides.
    Mean,
    /// The worst of the models' ratios to their own best.
    MinRegret,
}

/// One model's part in the judgement.
#[derive(Clone, Copy, Debug)]
pub struct Stake {
    /// How much it counts; the unit does not matter.
    pub weight: f64,
    /// Sequences in a batch.
    pub sequences: f64,
    /// Tokens in a batch.
    pub tokens: f64,
    /// Its own least cost in this space, by [`Objective`]; only ratios to it are used.
    pub own_best: f64,
}

/// The whole judgement.
#[derive(Clone, Debug)]
pub struct Judge {
    /// What is made as good as possible.
    pub objective: Objective,
    /// How models are joined.
    pub combine: Combine,
    /// One for each model.
    pub stakes: Vec<Stake>,
}

/// Whether standings are facts or bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Measured: rounded to nearest.
    Fact,
    /// Optimistic: rounded down by more than any float error.
    Bound,
}

/// Fixed point of ratios: 2⁶⁰ is one.
const ONE: f64 = (1_u64 << 60) as f64;

impl Judge {
    /// The merit of a design of `area` with these standings, one for each model.
    pub fn merit(&self, standings: &[Standing], area: Area, certainty: Certainty) -> Merit {
        if let [only] = standings {
            let time = u128::from(only.time.0);
            let value = match self.objective {
                Objective::Throughput => time,
                Objective::ThroughputPerArea => time * u128::from(area.0),
                Objective::EnergyPerToken => only.energy.0,
            };
            return Merit { value, slowness: time, area: area.0.into(), energy: only.energy.0 };
        }
        let join =
            |combine, objective| fixed(self.joined(combine, objective, standings, area), certainty);
        // Axes of the front are geometric means, which do not depend on each model's unit.
        Merit {
            value: join(self.combine, self.objective),
            slowness: join(Combine::Geomean, Objective::Throughput),
            area: area.0.into(),
            energy: join(Combine::Geomean, Objective::EnergyPerToken),
        }
    }

    /// A value as people read it: sequences/s, sequences/s/mm² or J/token for one model; for
    /// several, the part of each model's own best that is reached (`mean`: the raw mean).
    pub fn figure(&self, value: u128) -> f64 {
        let Some(first) = self.stakes.first() else { return 0.0 };
        let per_second = |picoseconds: f64| first.sequences / (picoseconds / 1e12);
        if self.stakes.len() == 1 {
            return match self.objective {
                Objective::Throughput => per_second(value as f64),
                // Square nanometres to square millimetres.
                Objective::ThroughputPerArea => per_second(value as f64) * 1e12,
                Objective::EnergyPerToken => value as f64 / 1e15 / first.tokens,
            };
        }
        let ratio = value as f64 / ONE;
        match (self.combine, self.objective) {
            (Combine::Mean, Objective::Throughput) => 1e12 / ratio,
            (Combine::Mean, Objective::ThroughputPerArea) => 1e24 / ratio,
            (Combine::Mean, Objective::EnergyPerToken) => ratio / 1e15,
            _ => 1.0 / ratio,
        }
    }

    /// Whether a larger figure is better.
    pub fn larger_is_better(&self) -> bool {
        !(self.objective == Objective::EnergyPerToken
            && (self.stakes.len() == 1 || self.combine == Combine::Mean))
    }

    /// A cost of one standing by the given objective, in a unit of its own; less is better.
    pub fn cost(objective: Objective, standing: Standing, area: Area) -> f64 {
        match objective {
            Objective::Throughput => standing.time.0 as f64,
            Objective::ThroughputPerArea => standing.time.0 as f64 * area.0 as f64,
            Objective::EnergyPerToken => standing.energy.0 as f64,
        }
    }

    fn joined(
        &self,
        combine: Combine,
        objective: Objective,
        standings: &[Standing],
        area: Area,
    ) -> f64 {
        let total_weight: f64 = self.stakes.iter().map(|stake| stake.weight).sum();
        let pairs = || self.stakes.iter().zip(standings);
        let ratio = |stake: &Stake, standing: &Standing| {
            Self::cost(objective, *standing, area) / stake.own_best
        };
        match combine {
            Combine::Geomean => {
                let logs = pairs().map(|(stake, s)| stake.weight * ratio(stake, s).ln());
                (logs.sum::<f64>() / total_weight).exp()
            }
            Combine::MinRegret => pairs().map(|(stake, s)| ratio(stake, s)).fold(0.0, f64::max),
            Combine::Mean => {
                let raw = pairs().map(|(stake, s)| {
                    let cost = Self::cost(objective, *s, area);
                    stake.weight
                        * match objective {
                            Objective::EnergyPerToken => cost / stake.tokens,
                            _ => stake.sequences / cost,
                        }
                });
                let mean = raw.sum::<f64>() / total_weight;
                match objective {
                    Objective::EnergyPerToken => mean,
                    // A mean of rates is better when larger; picoseconds make it tiny.
                    _ => 1.0 / mean,
                }
            }
        }
    }
}

fn fixed(ratio: f64, certainty: Certainty) -> u128 {
    let margin = match certainty {
        Certainty::Fact => 1.0,
        Certainty::Bound => 1.0 - 1e-12,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "costs are positive; the cast saturates far above any real ratio"
    )]
    let fixed = (ratio * ONE * margin) as u128;
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Energy;
    use crate::units::Time;

    fn standing(time: u64, energy: u128) -> Standing {
        Standing { time: Time(time), energy: Energy(energy) }
    }

    fn judge(combine: Combine, objective: Objective) -> Judge {
        let stake = |own_best| Stake { weight: 1.0, sequences: 8.0, tokens: 64.0, own_best };
        Judge { objective, combine, stakes: vec![stake(100.0), stake(1000.0)] }
    }

    #[test]
    fn one_model_is_judged_in_whole_units() {
        let mut judge = judge(Combine::Geomean, Objective::ThroughputPerArea);
        judge.stakes.truncate(1);
        let merit = judge.merit(&[standing(7, 9)], Area(3), Certainty::Fact);
        assert_eq!(merit, Merit { value: 21, slowness: 7, area: 3, energy: 9 });
    }

    #[test]
    fn the_mean_lets_the_fast_model_decide_and_the_geomean_does_not() {
        // Design x halves the time of the slow model, design y speeds up the fast one by a tenth.
        let x = [standing(100, 1), standing(500, 1)];
        let y = [standing(90, 1), standing(1000, 1)];
        let value = |combine, standings: &[Standing]| {
            judge(combine, Objective::Throughput).merit(standings, Area(1), Certainty::Fact).value
        };
        assert!(value(Combine::Geomean, &x) < value(Combine::Geomean, &y));
        assert!(value(Combine::Mean, &x) > value(Combine::Mean, &y));
        assert_eq!(value(Combine::MinRegret, &x), value(Combine::MinRegret, &y));
    }

    #[test]
    fn a_bound_is_never_above_the_fact_of_the_same_standings() {
        for combine in [Combine::Geomean, Combine::Mean, Combine::MinRegret] {
            for time in [1, 3, 99_999_999_977, 1 << 50] {
                let standings = [standing(time, 5), standing(time / 3 + 1, 7)];
                let judge = judge(combine, Objective::EnergyPerToken);
                let fact = judge.merit(&standings, Area(5), Certainty::Fact);
                let bound = judge.merit(&standings, Area(5), Certainty::Bound);
                assert!(bound.value <= fact.value && bound.slowness <= fact.slowness);
            }
        }
    }
}
