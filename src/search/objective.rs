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
use crate::units::Energy;
use crate::units::Time;

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
    /// Dollars of owning all chips for each token; of searched chips only.
    CostPerToken,
    /// Grams of `CO₂e`, of making and using all chips, for each token; of searched chips only.
    CarbonPerToken,
}

/// What a design takes, whatever it trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Its silicon.
    pub area: Area,
    /// What one costs over its years in service; 0 where nobody knows.
    pub cents: u64,
    /// What making and using one emits; 0 where nobody knows.
    pub grams: u64,
}

impl From<Area> for Footprint {
    /// Of a design of which only the area is known.
    fn from(area: Area) -> Self {
        Self { area, cents: 0, grams: 0 }
    }
}

impl Objective {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::ThroughputPerArea => "throughput-per-area",
            Self::EnergyPerToken => "energy-per-token",
            Self::CostPerToken => "cost-per-token",
            Self::CarbonPerToken => "carbon-per-token",
        }
    }

    /// Whether it is told for each token, and less is better.
    pub fn is_per_token(self) -> bool {
        matches!(self, Self::EnergyPerToken | Self::CostPerToken | Self::CarbonPerToken)
    }

    /// Whether only searched chips, whose cost and carbon are known, can be compared by it.
    pub fn needs_technology(self) -> bool {
        matches!(self, Self::CostPerToken | Self::CarbonPerToken)
    }

    /// What times are multiplied with, as far as the design decides it; `None` where energies are
    /// compared.
    pub fn factor(self, taken: Footprint) -> Option<u64> {
        match self {
            Self::Throughput => Some(1),
            Self::ThroughputPerArea => Some(taken.area.0),
            Self::EnergyPerToken => None,
            Self::CostPerToken => Some(taken.cents),
            Self::CarbonPerToken => Some(taken.grams),
        }
    }
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
    /// Devices for each second in which one of them is in service, where figures of a whole life are
    /// told for each token.
    pub devices_per_second: f64,
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
    /// The merit of a design that takes so much, with these standings, one for each model.
    pub fn merit(
        &self,
        standings: &[Standing],
        taken: impl Into<Footprint>,
        certainty: Certainty,
    ) -> Merit {
        let taken = taken.into();
        let area = taken.area;
        if let [only] = standings {
            let time = u128::from(only.time.0);
            let factor = self.objective.factor(taken);
            let value = factor.map_or(only.energy.0, |factor| time * u128::from(factor));
            return Merit { value, slowness: time, area: area.0.into(), energy: only.energy.0 };
        }
        let join = |combine, objective| {
            fixed(self.joined(combine, objective, standings, taken), certainty)
        };
        // Axes of the front are geometric means, which do not depend on each model's unit.
        Merit {
            value: join(self.combine, self.objective),
            slowness: join(Combine::Geomean, Objective::Throughput),
            area: area.0.into(),
            energy: join(Combine::Geomean, Objective::EnergyPerToken),
        }
    }

    /// A value as people read it: sequences/s, sequences/s/mm², or J, dollars or grams for each token
    /// for one model; for several, the part of each model's own best that is reached (`mean`: the raw mean).
    pub fn figure(&self, value: u128) -> f64 {
        let Some(first) = self.stakes.first() else { return 0.0 };
        let per_second = |picoseconds: f64| first.sequences / (picoseconds / 1e12);
        if self.stakes.len() == 1 {
            return match self.objective {
                Objective::Throughput => per_second(value as f64),
                // Square nanometres to square millimetres.
                Objective::ThroughputPerArea => per_second(value as f64) * 1e12,
                Objective::EnergyPerToken => value as f64 / 1e15 / first.tokens,
                // Cents for picoseconds; grams.
                Objective::CostPerToken => self.over_life(value as f64) / 100.0 / first.tokens,
                Objective::CarbonPerToken => self.over_life(value as f64) / first.tokens,
            };
        }
        let ratio = value as f64 / ONE;
        match (self.combine, self.objective) {
            (Combine::Mean, Objective::Throughput) => 1e12 / ratio,
            (Combine::Mean, Objective::ThroughputPerArea) => 1e24 / ratio,
            (Combine::Mean, Objective::EnergyPerToken) => ratio / 1e15,
            (Combine::Mean, Objective::CostPerToken) => self.over_life(ratio) / 100.0,
            (Combine::Mean, Objective::CarbonPerToken) => self.over_life(ratio),
            _ => 1.0 / ratio,
        }
    }

    /// What of all devices' lives goes into a batch, where one takes `value` for picoseconds.
    fn over_life(&self, value: f64) -> f64 {
        value / 1e12 * self.devices_per_second
    }

    /// Whether a larger figure is better.
    pub fn larger_is_better(&self) -> bool {
        !(self.objective.is_per_token()
            && (self.stakes.len() == 1 || self.combine == Combine::Mean))
    }

    /// A cost of one standing by the given objective, in a unit of its own; less is better.
    pub fn cost(objective: Objective, standing: Standing, taken: impl Into<Footprint>) -> f64 {
        match objective.factor(taken.into()) {
            Some(factor) => standing.time.0 as f64 * factor as f64,
            None => standing.energy.0 as f64,
        }
    }

    /// The longest time of one model with which a design may still be no worse than `limit`, where
    /// the others stand as given.
    pub fn longest(
        &self,
        limit: u128,
        model: usize,
        standings: &[Standing],
        taken: impl Into<Footprint>,
    ) -> Time {
        let taken = taken.into();
        let mut standings = standings.to_vec();
        let most = most_within(u64::MAX.into(), |time| {
            standings[model].time = Time(u64::try_from(time).unwrap_or(u64::MAX));
            self.merit(&standings, taken, Certainty::Bound).value <= limit
        });
        Time(u64::try_from(most).unwrap_or(u64::MAX))
    }

    /// The most energy of one model with which a design may still be no worse than `limit`, where the others stand
    /// as given.
    pub fn dearest(
        &self,
        limit: u128,
        model: usize,
        standings: &[Standing],
        taken: impl Into<Footprint>,
    ) -> Energy {
        let taken = taken.into();
        let mut standings = standings.to_vec();
        Energy(most_within(u128::MAX, |energy| {
            standings[model].energy = Energy(energy);
            self.merit(&standings, taken, Certainty::Bound).value <= limit
        }))
    }

    fn joined(
        &self,
        combine: Combine,
        objective: Objective,
        standings: &[Standing],
        taken: Footprint,
    ) -> f64 {
        let total_weight: f64 = self.stakes.iter().map(|stake| stake.weight).sum();
        let pairs = || self.stakes.iter().zip(standings);
        let ratio = |stake: &Stake, standing: &Standing| {
            Self::cost(objective, *standing, taken) / stake.own_best
        };
        match combine {
            Combine::Geomean => {
                let logs = pairs().map(|(stake, s)| stake.weight * ratio(stake, s).ln());
                (logs.sum::<f64>() / total_weight).exp()
            }
            Combine::MinRegret => pairs().map(|(stake, s)| ratio(stake, s)).fold(0.0, f64::max),
            Combine::Mean => {
                let raw = pairs().map(|(stake, s)| {
                    let cost = Self::cost(objective, *s, taken);
                    let of_tokens = objective.is_per_token();
                    stake.weight
                        * if of_tokens { cost / stake.tokens } else { stake.sequences / cost }
                });
                let mean = raw.sum::<f64>() / total_weight;
                // A mean of rates is better when larger; picoseconds make it tiny.
                if objective.is_per_token() { mean } else { 1.0 / mean }
            }
        }
    }
}

/// The greatest number below `end` that is within, where none above one that is not is; 0 where none is.
fn most_within(end: u128, mut is_within: impl FnMut(u128) -> bool) -> u128 {
    // Invariant: what is less than `low` is within, what is `high` or more is not.
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low.midpoint(high);
        if is_within(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.saturating_sub(1)
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

    fn standing(time: u64, energy: u128) -> Standing {
        Standing { time: Time(time), energy: Energy(energy) }
    }

    fn judge(combine: Combine, objective: Objective) -> Judge {
        let stake = |own_best| Stake { weight: 1.0, sequences: 8.0, tokens: 64.0, own_best };
        let stakes = vec![stake(100.0), stake(1000.0)];
        Judge { objective, combine, stakes, devices_per_second: 1.0 }
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
