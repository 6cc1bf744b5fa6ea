//! On how many devices a model fits: the fewest, and a comfortable number.
//!
//! Ways to divide a model are taken in the order of the devices that their parameters alone need; the
//! first that needs no fewer than are known to do ends the list.

use super::solved::training;
use crate::estimate::EstimateTable;
use crate::input::InputError;
use crate::input::place::Ready;
use crate::parallel::Parameters;
use crate::parallel::Setting;
use crate::parallel::frameworks::Framework;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Zero;
use crate::placement::Problem;
use crate::placement::fewest_devices as fewest_of;
use crate::placement::fits;
use crate::plan::Job;
use crate::plan::LayerProfile;
use crate::plan::Profile;
use crate::strategy::Planner;
use crate::strategy::Sharded;
use crate::strategy::Terms;
use crate::strategy::shardings;

/// The most devices on which a model is made to fit.
pub const MOST_FITTED: u64 = 1 << 20;

/// The fewest devices on which some strategy fits, whoever runs it; `None` where none does.
///
/// # Errors
/// That the model cannot be trained so at all.
pub fn fewest_devices(ready: &Ready, table: &EstimateTable) -> Result<Option<u64>, InputError> {
    let mut terms = ready.terms.clone();
    terms.cluster.devices = MOST_FITTED;
    // Others may be idle.
    terms.space.framework = Framework::Any;
    // A larger micro-batch keeps as much more, and no fewer sequences are in flight with it.
    let smallest = terms.space.micro_batches.iter().min().copied();
    terms.space.micro_batches.retain(|&size| Some(size) == smallest);
    let training = training(ready, &terms)?;
    let planner = Planner { terms: &terms, training: &training, table };
    let mut fewest: Option<u64> = None;
    for way in ways(&planner, ready) {
        if fewest.is_some_and(|known| known <= way.least) {
            break;
        }
        let found = way.fewest(&planner, ready, fewest);
        fewest = fewest.into_iter().chain(found).min();
    }
    Ok(fewest)
}

/// A division and a way to share inside its layers, with the devices that its parameters need alone.
struct Way {
    least: u64,
    division: usize,
    sharded: Option<Sharded>,
}

/// Every way, the one that needs the fewest devices first.
fn ways(planner: &Planner, ready: &Ready) -> Vec<Way> {
    let Planner { terms, training, .. } = planner;
    let mut ways = Vec::new();
    for (at, division) in training.divisions.iter().enumerate() {
        if division.cluster.devices < MOST_FITTED {
            continue;
        }
        let Ok((profile, job)) = planner.asked(at, &ready.chip) else { continue };
        let held = Held::of(&profile, &job, division.share.setting);
        let found = shardings(terms, division).into_iter().filter_map(|sharded| {
            let least = held.least_devices(terms, sharded)?;
            Some(Way { least, division: at, sharded })
        });
        ways.extend(found);
    }
    ways.sort_by_key(|way| (way.least, way.division, way.sharded));
    ways
}

impl Way {
    /// The fewest devices on which it fits, if these are fewer than those `known` to do.
    fn fewest(&self, planner: &Planner, ready: &Ready, known: Option<u64>) -> Option<u64> {
        let Planner { terms, training, .. } = planner;
        let setting = training.divisions[self.division].share.setting;
        let (profile, job) = planner.asked(self.division, &ready.chip).ok()?;
        let room = known.map_or(MOST_FITTED, |known| known - 1) / setting.devices();
        let found = terms.space.recompute.iter().filter_map(|&recompute| {
            let mut choices = terms.choices(recompute, self.sharded);
            // Several virtual stages hold no less.
            choices.chunks = *choices.chunks.start()..=*choices.chunks.start();
            let Some(Sharded { data_parallel, ranks, .. }) = self.sharded else {
                let ranks = usize::try_from(room / setting.copies_for_experts()).ok()?;
                choices.ranks = *choices.ranks.start()..=ranks.min(*choices.ranks.end());
                let copies = room.min(*choices.data_parallel.end());
                choices.data_parallel = *choices.data_parallel.start()..=copies;
                if choices.ranks.is_empty() || choices.data_parallel.is_empty() {
                    return None;
                }
                return fewest_of(&Problem { profile: &profile, job: &job, choices: &choices });
            };
            let devices = data_parallel * ranks * setting.devices();
            let job = Job { devices, ..job.clone() };
            let problem = Problem { profile: &profile, job: &job, choices: &choices };
            (devices / setting.devices() <= room && fits(&problem)).then_some(devices)
        });
        found.min()
    }
}

/// What the parameters of a division alone take.
struct Held {
    /// Of all layers together, as one device of a pipeline has them.
    parameters: Parameters,
    per: ParameterBytes,
    memory: u64,
    setting: Setting,
}

impl Held {
    fn of(profile: &Profile, job: &Job, setting: Setting) -> Self {
        let parameters = profile.layers().map(LayerProfile::by_replicas).sum();
        Self { parameters, per: job.parameter_bytes(), memory: job.memory, setting }
    }

    /// Bytes that one device of each rank of a pipeline holds, all ranks together, where so many
    /// pipelines share.
    fn bytes(&self, zero: Zero, copies: u64) -> u128 {
        let Self { parameters, per, setting, .. } = self;
        let of_experts = setting.expert_replicas(copies).max(1);
        let all = u128::from(parameters.all());
        let shared = u128::from(parameters.dense / copies.saturating_mul(setting.context).max(1))
            + u128::from(parameters.experts / of_experts);
        let held = |from: Zero| if zero >= from { shared } else { all };
        let bytes = |bytes: crate::units::Bytes| u128::from(bytes.0);
        bytes(per.weight) * held(Zero::Weights)
            + bytes(per.gradient) * held(Zero::Gradients)
            + bytes(per.state) * held(Zero::State)
    }

    /// Devices that these bytes need at the least; `None` where that many replicas and ranks cannot
    /// hold them.
    fn least_devices(&self, terms: &Terms, sharded: Option<Sharded>) -> Option<u64> {
        let each = self.setting.devices();
        let memory = u128::from(self.memory.max(1));
        if let Some(Sharded { zero, data_parallel, ranks }) = sharded {
            let fits = self.bytes(zero, data_parallel) <= memory * u128::from(ranks);
            return fits.then_some(data_parallel * ranks * each);
        }
        let zeros = terms.space.zero.iter().chain(&terms.space.zero_in_pipelines).copied();
        let zero = zeros.filter(|&zero| zero < Zero::Gradients).max()?;
        // More pipelines hold more in all: what each holds for itself as often again, what they share
        // as often as before.
        let copies = self.setting.copies_for_experts();
        let pipelines = (u128::from(copies) * self.bytes(zero, copies)).div_ceil(memory);
        let devices = u128::from(each) * pipelines.max(u128::from(copies));
        u64::try_from(devices).ok().filter(|&devices| devices <= MOST_FITTED)
    }
}

/// How many devices a model needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// On no fewer does it fit.
    pub fewest: u64,
    /// Devices of a node; 1 where the network has no nodes.
    pub per_node: u64,
    /// Twice the fewest or more, in whole nodes, a power of two: room for longer sequences and
    /// larger micro-batches.
    pub comfortable: u64,
}

impl Fitted {
    /// That of a question; `None` where nothing fits on any number of devices.
    ///
    /// # Errors
    /// That the model cannot be trained so at all.
    pub fn of(ready: &Ready, table: &EstimateTable) -> Result<Option<Self>, InputError> {
        let per_node = ready.terms.cluster.network.devices_per_node().unwrap_or(1);
        let fewest = fewest_devices(ready, table)?;
        Ok(fewest.map(|fewest| {
            let comfortable = (2 * fewest).div_ceil(per_node) * per_node;
            Self { fewest, per_node, comfortable: comfortable.next_power_of_two() }
        }))
    }

    /// Whole nodes that have the fewest devices.
    pub fn nodes(&self) -> u64 {
        self.fewest.div_ceil(self.per_node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::plan::PlanRequest;
    use crate::input::source::no_files;
    use crate::plan::GivenStrategy;

    /// The same without bounds: every division and every micro-batch, each by itself.
    fn plainly(ready: &Ready, table: &EstimateTable) -> Option<u64> {
        let mut terms = ready.terms.clone();
        terms.cluster.devices = MOST_FITTED;
        terms.space.framework = Framework::Any;
        let training = training(ready, &terms).unwrap();
        let planner = Planner { terms: &terms, training: &training, table };
        let mut found = Vec::new();
        for (division, divided) in training.divisions.iter().enumerate() {
            if divided.cluster.devices < MOST_FITTED {
                continue;
            }
            for sharded in shardings(&terms, divided) {
                let way = Way { least: 0, division, sharded };
                found.extend(way.fewest(&planner, ready, None));
            }
        }
        found.into_iter().min()
    }

    #[test]
    fn bounds_leave_out_nothing_that_needs_fewer_devices() {
        let table = crate::ask::plan::Context::new(&no_files).table;
        let zero = |zero: u64| GivenStrategy { zero: Some(zero), ..GivenStrategy::default() };
        for (model, strategy) in [
            ("llama3-8b", GivenStrategy::default()),
            ("llama3-8b", GivenStrategy { pipeline: Some(1), ..zero(0) }),
            ("llama3-70b", zero(1)),
            ("mixtral-8x7b", GivenStrategy { tensor: Some(2), ..zero(1) }),
            ("qwen3-30b-a3b", GivenStrategy { tensor: Some(1), context: Some(1), ..zero(1) }),
        ] {
            let request = PlanRequest { strategy, ..PlanRequest::new(model, "h100-sxm", 64) };
            let (ready, _) = request.ready(&no_files).unwrap();
            let found = fewest_devices(&ready, &table).unwrap();
            assert!(found.is_some(), "{model}");
            assert_eq!(found, plainly(&ready, &table), "{model} {}", request.strategy);
        }
    }
}
