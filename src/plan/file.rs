//! A whole answer as it is written to `plan.json`: the question, the placement, and what is
//! claimed of it, so that a reader with no solver can verify it.

use serde::Deserialize;
use serde::Serialize;

use super::AfterBackward;
use super::Cost;
use super::Job;
use super::LayerFacts;
use super::Memory;
use super::PassOrder;
use super::Pipeline;
use super::Placement;
use super::Profile;
use super::Question;
use super::Recompute;
use super::Strategy;
use super::StrategySpace;
use super::TimeModel;
use super::cost;
use super::simulate::exact_time;
use crate::hardware::Efficiency;
use crate::hardware::Physics;
use crate::model::Precision;
use crate::parallel::Order;
use crate::parallel::zero::Zero;

/// What the integers of a plan mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// The name of the unit of time, `s` for models.
    pub time: String,
    /// A tick is 10^-`time_digits` of it.
    pub time_digits: i32,
    /// The name of the unit of size, `byte` for models.
    pub size: String,
    /// A size of 1 is 10^-`size_digits` of it.
    pub size_digits: i32,
}

/// Why a plan is believed to be the best of those that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Proof {
    /// Every strategy of a space was compared or cut off by a bound.
    Optimal {
        /// The space; `None` for a user's own layers, of which every placement was compared.
        space: Option<StrategySpace>,
        /// Ticks that no layout of virtual stages can beat, where some layouts are outside the
        /// family that was compared and could be faster; in JSON a string of digits beyond 64 bits.
        #[serde(
            default,
            serialize_with = "wide::write_option",
            deserialize_with = "wide::read_option"
        )]
        open: Option<u128>,
    },
}

/// What is claimed of one virtual stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageAnswer {
    /// Its layers, by their place in the profile's sequence.
    pub layers: Vec<usize>,
    /// How many of them run their forward pass again, where layers do so one by one.
    pub repeated: usize,
    /// Devices of one copy.
    pub devices: u64,
    /// Ticks of the forward pass of one micro-batch.
    pub forward: u64,
    /// Ticks of the backward pass of one micro-batch.
    pub backward: u64,
    /// Of these, ticks in which the stage waits for a neighbour's data.
    pub transfer: u64,
    /// Of these, ticks in which it waits for the weights of its first layer in each pass.
    pub waits_for_weights: u64,
    /// Parameters on one device.
    pub parameters: u64,
}

/// What is claimed of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankAnswer {
    /// Memory of one device.
    pub memory: Memory,
    /// Ticks of the exchange of gradients, hidden or not.
    pub exchange: u64,
    /// Ticks of the gathering of new weights, hidden or not.
    pub gathering: u64,
    /// What follows the last backward pass.
    pub after: AfterBackward,
    /// When that pass has ended; `None` where the time model does not say, or beyond 64 bits.
    pub finished: Option<u64>,
}

/// A placement and what is claimed of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Devices that share a tensor-parallel layer.
    pub tensor_parallel: u64,
    /// Devices that share the tokens of each sequence.
    pub context_parallel: u64,
    /// What is computed again.
    pub recompute: Recompute,
    /// In which order ranks run their passes.
    pub schedule: PassOrder,
    /// What replicas share: the stage of sharded data parallelism.
    pub zero: Zero,
    /// How many replicas share; `None` for all.
    pub shards: Option<u64>,
    /// How devices are numbered, the innermost axis first.
    pub order: Order,
    /// The virtual stages, from the input.
    pub stages: Vec<StageAnswer>,
    /// The ranks; virtual stage j is on rank j mod their number.
    pub ranks: Vec<RankAnswer>,
    /// Devices in use.
    pub devices: u64,
    /// Ticks of a batch in the job's time model; in JSON a string of digits beyond 64 bits.
    #[serde(serialize_with = "wide::write", deserialize_with = "wide::read")]
    pub time_per_batch: u128,
    /// Where the time model is a closed form of its own, ticks of a batch as 1F1B runs it; `None`
    /// beyond 64 bits.
    pub simulated: Option<u64>,
}

/// What is trained, and on what: enough to tell throughput and utilisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// What the user calls the accelerator.
    pub design: String,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// Sequences in a micro-batch.
    pub micro_batch: u64,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// The optimizer's name.
    pub optimizer: String,
    /// Whether attention keeps its probabilities: `stored` or `recomputed`.
    pub attention: String,
    /// How the model is divided.
    pub strategy: Strategy,
    /// Thousandths of an even load that the fullest device of a mixture of experts has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_load_per_mille: Option<u64>,
    /// Floating-point operations that one sequence needs, none counted twice; in JSON a string of
    /// digits beyond 64 bits.
    #[serde(serialize_with = "wide::write", deserialize_with = "wide::read")]
    pub flops_per_sequence: u128,
    /// The same without what a causal mask hides, where attention leaves that out.
    #[serde(
        default,
        serialize_with = "wide::write_option",
        deserialize_with = "wide::read_option"
    )]
    pub causal_flops_per_sequence: Option<u128>,
    /// What one device could do.
    pub peak_flops_per_second: u64,
    /// What times rest on beside the data sheet; nothing where they are ideal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

/// What predicted times rest on where they are not ideal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Basis {
    /// An efficiency that no run of this design and precision was measured for.
    Assumed,
    /// The efficiency of a class of designs, or of another part.
    TakenFrom(String),
    /// Measured runs.
    Calibrated {
        /// The software that ran.
        stack: String,
        /// How many runs.
        runs: u64,
        /// Thousandths of the predicted time between which four of five measured ones lie, their
        /// model left out, where that is known.
        interval_per_mille: Option<[u16; 2]>,
    },
}

impl Basis {
    /// Of the design that a hardware file is about.
    pub fn of(physics: &Physics, precision: Precision) -> Option<Self> {
        let own = physics.calibrations.iter().find(|one| one.precision == precision);
        let calibrated = own.map(|own| Self::Calibrated {
            stack: own.stack.clone(),
            runs: own.runs,
            interval_per_mille: own.interval,
        });
        Self::of_another(physics).map(|assumed| calibrated.unwrap_or(assumed))
    }

    /// Of any other design in the same physics: what was measured of one is assumed of another.
    pub fn of_another(physics: &Physics) -> Option<Self> {
        (physics.efficiency != Efficiency::IDEAL).then(|| match &physics.efficiency_from {
            Some(name) => Self::TakenFrom(name.clone()),
            None => Self::Assumed,
        })
    }
}

/// A plan with all that is needed to verify it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What kind of file this is: `phaze-plan`.
    pub schema: String,
    /// Which version of its schema.
    pub version: u32,
    /// What was placed, for readers.
    pub name: String,
    /// What the integers mean.
    pub units: Units,
    /// The whole question, where a plan of a model stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What is trained, where the layers are a model's.
    pub training: Option<Training>,
    /// The question, beside the layers.
    pub job: Job,
    /// The layers at the chosen width.
    pub profile: Profile,
    /// The placement and its claims.
    pub answer: Answer,
    /// Why it is believed to be the best.
    pub proof: Proof,
    /// Schedules and mappings that the profile rests on, where a plan of a model stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerFacts>,
}

impl Units {
    /// Picoseconds and bytes.
    pub fn physical() -> Self {
        Self { time: "s".into(), time_digits: 12, size: "byte".into(), size_digits: 0 }
    }

    /// Ticks in the unit of time.
    pub fn time(&self, ticks: u128) -> f64 {
        scaled(ticks, self.time_digits)
    }

    /// A size in its unit.
    pub fn size(&self, size: u128) -> f64 {
        scaled(size, self.size_digits)
    }
}

/// `value / 10^digits`, to the nearest float.
fn scaled(value: u128, digits: i32) -> f64 {
    // The decimal text is exact, and reading it rounds once.
    format!("{value}e{}", -digits).parse().unwrap_or(f64::NAN)
}

impl Training {
    /// Sequences per second where a batch takes `seconds`.
    pub fn sequences_per_second(&self, seconds: f64) -> f64 {
        self.global_batch as f64 / seconds
    }

    /// Tokens per second where a batch takes `seconds`.
    pub fn tokens_per_second(&self, seconds: f64) -> f64 {
        self.sequences_per_second(seconds) * self.sequence as f64
    }

    /// The share of the peak of `devices` that the model's own operations make up.
    pub fn utilisation(&self, seconds: f64, devices: u64) -> f64 {
        self.utilisation_by(self.flops_per_sequence, seconds, devices)
    }

    /// The same by the operations that are left where attention leaves out what a causal mask
    /// hides; `None` where it does not.
    pub fn causal_utilisation(&self, seconds: f64, devices: u64) -> Option<f64> {
        let flops = self.causal_flops_per_sequence?;
        Some(self.utilisation_by(flops, seconds, devices))
    }

    fn utilisation_by(&self, flops_per_sequence: u128, seconds: f64, devices: u64) -> f64 {
        let done = flops_per_sequence as f64 * self.global_batch as f64;
        done / (devices as f64 * self.peak_flops_per_second as f64 * seconds)
    }
}

impl Plan {
    /// The value of `schema`.
    pub const SCHEMA: &str = "phaze-plan";
    /// The version of the schema that this program writes and reads.
    pub const VERSION: u32 = 4;
}

impl Answer {
    /// Claims of `placement` what the definitions say of it.
    pub fn new(profile: &Profile, job: &Job, placement: &Placement) -> Self {
        let cost = cost(profile, job, placement);
        let simulated = match job.time_model {
            TimeModel::Published => exact_time(&cost),
            TimeModel::OneForwardOneBackward => None,
        };
        let Cost { stages, ranks, devices, time_per_batch, finished, .. } = cost;
        let stages =
            stages.iter().zip(placement.pipeline.stages()).map(|(stage, layers)| StageAnswer {
                layers: layers.to_vec(),
                repeated: stage.repeated,
                devices: stage.devices,
                forward: stage.time.forward,
                backward: stage.time.backward,
                transfer: stage.transfer,
                waits_for_weights: stage.waits_for_weights,
                parameters: stage.parameters.all(),
            });
        let ranks = ranks.iter().enumerate().map(|(at, rank)| RankAnswer {
            memory: rank.memory,
            exchange: rank.exchange,
            gathering: rank.gathering,
            after: rank.after,
            finished: finished.get(at).and_then(|&end| u64::try_from(end).ok()),
        });
        Self {
            data_parallel: placement.data_parallel,
            tensor_parallel: profile.width,
            context_parallel: profile.context,
            recompute: placement.recompute,
            schedule: placement.schedule,
            zero: placement.zero,
            shards: placement.shards,
            order: placement.order,
            stages: stages.collect(),
            ranks: ranks.collect(),
            devices,
            time_per_batch,
            simulated,
        }
    }

    /// The placement itself, without the claims; `None` where the stages do not hold each of
    /// `n_layers` once, or do not fill whole ranks.
    pub fn placement(&self, n_layers: usize) -> Option<Placement> {
        let stages: Vec<Vec<usize>> =
            self.stages.iter().map(|stage| stage.layers.clone()).collect();
        let chunks = self.schedule.chunks();
        let whole = chunks > 0 && stages.len().is_multiple_of(chunks);
        let pipeline = Pipeline::of_stages(n_layers, &stages).filter(|_| whole)?;
        Some(Placement {
            data_parallel: self.data_parallel,
            recompute: self.recompute,
            pipeline,
            schedule: self.schedule,
            zero: self.zero,
            shards: self.shards,
            order: self.order,
        })
    }
}

/// Integers of 128 bits in JSON: a number where 64 bits hold it, else a string of digits.
mod wide {
    use serde::Deserialize;
    use serde::Deserializer;
    use serde::Serializer;
    use serde::de::Error;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Digits(String),
    }

    pub(super) fn write<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(*value) {
            Ok(number) => to.serialize_u64(number),
            Err(_) => to.collect_str(value),
        }
    }

    pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        whole(Either::deserialize(from)?)
    }

    #[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(super) fn write_option<S: Serializer>(
        value: &Option<u128>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => write(value, to),
            None => to.serialize_none(),
        }
    }

    pub(super) fn read_option<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<u128>, D::Error> {
        Option::<Either>::deserialize(from)?.map(whole).transpose()
    }

    fn whole<E: Error>(found: Either) -> Result<u128, E> {
        match found {
            Either::Number(number) => Ok(u128::from(number)),
            Either::Digits(digits) => digits.parse().map_err(E::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_nearest_float_of_their_unit() {
        let units = Units { time_digits: 15, size_digits: -3, ..Units::physical() };
        assert_eq!(units.time(1_500_000_000_000_000).to_bits(), 1.5_f64.to_bits());
        assert_eq!(units.size(7).to_bits(), 7000_f64.to_bits());
    }

    #[test]
    fn what_is_left_open_survives_json() {
        for open in [None, Some(7), Some(u128::MAX)] {
            let proof = Proof::Optimal { space: None, open };
            let text = serde_json::to_string(&proof).unwrap();
            assert_eq!(serde_json::from_str::<Proof>(&text).unwrap(), proof, "{text}");
        }
    }

    #[test]
    fn times_beyond_64_bits_survive_json() {
        #[derive(Serialize, Deserialize)]
        struct Holder(
            #[serde(serialize_with = "wide::write", deserialize_with = "wide::read")] u128,
        );
        for value in [0, u128::from(u64::MAX), u128::from(u64::MAX) + 1, u128::MAX] {
            let text = serde_json::to_string(&Holder(value)).unwrap();
            assert_eq!(serde_json::from_str::<Holder>(&text).unwrap().0, value);
        }
        assert!(serde_json::from_str::<Holder>("\"many\"").is_err());
    }
}
