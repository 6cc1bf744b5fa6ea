//! Whether a model fits at all: memory and devices decide, and how fast a chip is does not matter,
//! so one answer holds for every design with the same off-chip memory.

use crate::parallel::Share;
use crate::plan::PerParameter;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::search::sentences::Hindrance;
use crate::units::Bytes;

use super::rebuild::Question;

/// The layers of a share as far as memory is concerned, summed up to each layer.
pub struct Layers {
    /// Parameters of the layers before each place.
    parameters: Vec<u128>,
    /// Likewise what they keep.
    kept: Vec<u128>,
    /// Likewise what enters them.
    inputs: Vec<u128>,
    /// Likewise how many are wide.
    wide: Vec<usize>,
    tied: u128,
    width: u64,
}

/// What a pipeline is asked to keep within.
#[derive(Clone, Copy)]
pub struct Room {
    /// Bytes of a device.
    pub capacity: u128,
    /// Bytes held for each parameter.
    pub per_parameter: u128,
    /// What is computed again.
    pub recompute: Recompute,
    /// How micro-batches follow each other.
    pub time_model: TimeModel,
}

impl Layers {
    /// The layers of a share.
    pub fn new(share: &Share) -> Self {
        let kinds = || share.sequence.iter().map(|&kind| &share.kinds[kind]);
        let summed = |each: Vec<u128>| {
            let mut sums = vec![0];
            sums.extend(each.iter().scan(0, |sum, one| {
                *sum += one;
                Some(*sum)
            }));
            sums
        };
        let mut inputs: Vec<u128> = kinds().map(|kind| kind.input.0.into()).collect();
        // Nothing is sent to the first layer, which reads ids.
        inputs[0] = 0;
        let mut wide = vec![0];
        kinds()
            .for_each(|kind| wide.push(wide[wide.len() - 1] + usize::from(kind.tensor_parallel)));
        Self {
            parameters: summed(kinds().map(|kind| kind.parameters.into()).collect()),
            kept: summed(kinds().map(|kind| kind.kept.0.into()).collect()),
            inputs: summed(inputs),
            wide,
            tied: share.tied.map_or(0, |tied| tied.parameters.into()),
            width: share.setting.tensor_parallel,
        }
    }

    fn len(&self) -> usize {
        self.parameters.len() - 1
    }

    /// Bytes of a device of the stage with the layers `from..to`, so many micro-batches being in
    /// flight there; `most_kept` is the most that one of them keeps.
    fn memory(&self, from: usize, to: usize, in_flight: u64, most_kept: u128, room: &Room) -> u128 {
        let between = |sums: &[u128]| sums[to] - sums[from];
        let copied = if to == self.len() && from > 0 { self.tied } else { 0 };
        let state = (between(&self.parameters) + copied) * room.per_parameter;
        let in_flight = u128::from(in_flight);
        let entering = self.inputs[from + 1] - self.inputs[from];
        state
            + match room.recompute {
                Recompute::None => in_flight * between(&self.kept),
                Recompute::Stage => (in_flight - 1) * entering + between(&self.kept),
                Recompute::Full => in_flight * between(&self.inputs) + most_kept,
            }
    }

    /// The fewest devices of one pipeline that runs so many micro-batches, with at most so many
    /// stages, or some number that is not more than `enough`; `None` where none fits.
    pub fn fewest_devices(
        &self,
        room: &Room,
        rounds: u64,
        most_stages: usize,
        enough: u64,
    ) -> Option<u64> {
        let n = self.len();
        let mut best: Option<u64> = None;
        // By the layer where it begins: the fewest devices of the stages from there on.
        let mut after: Vec<Option<u64>> = vec![None; n + 1];
        after[n] = Some(0);
        for stages in 1..=most_stages.min(n) {
            let in_flight = match room.time_model {
                TimeModel::Published => stages as u64,
                TimeModel::OneForwardOneBackward => (stages as u64).min(rounds),
            };
            let mut here: Vec<Option<u64>> = vec![None; n + 1];
            for (from, here) in here.iter_mut().enumerate().take(n) {
                let mut most_kept = 0;
                for (to, later) in after.iter().enumerate().skip(from + 1) {
                    most_kept = most_kept.max(self.kept[to] - self.kept[to - 1]);
                    // More layers never need less.
                    if self.memory(from, to, in_flight, most_kept, room) > room.capacity {
                        break;
                    }
                    let Some(later) = later else { continue };
                    let devices = if self.wide[to] > self.wide[from] { self.width } else { 1 };
                    let all = later + devices;
                    *here = Some(here.map_or(all, |known| known.min(all)));
                }
            }
            best = best.into_iter().chain(here[0]).min();
            if best.is_some_and(|best| best <= enough) || here.iter().all(Option::is_none) {
                break;
            }
            after = here;
        }
        best
    }

    /// Whether some number of pipelines fits on `devices`.
    fn fits(&self, room: &Room, micro_batches: u64, devices: u64) -> bool {
        // Fewer micro-batches for each pipeline keep less, but take more pipelines. How many are
        // in flight differs only below the number of stages.
        let distinct = micro_batches.min(self.len() as u64);
        let rounds = std::iter::once(micro_batches).chain((1..=distinct).rev());
        let mut rounds = match room.time_model {
            TimeModel::Published => rounds.take(1).collect::<Vec<u64>>(),
            TimeModel::OneForwardOneBackward => rounds.collect(),
        }
        .into_iter();
        rounds.any(|rounds| {
            let pipelines = micro_batches.div_ceil(rounds);
            let each = devices / pipelines;
            let most_stages = usize::try_from(each).unwrap_or(usize::MAX);
            let fewest = self.fewest_devices(room, rounds, most_stages, each);
            fewest.is_some_and(|fewest| fewest <= each)
        })
    }

    /// Whether given stages, by where they end, fit with so many micro-batches for each pipeline;
    /// answers the devices of one pipeline.
    pub fn given(&self, room: &Room, rounds: u64, ends: &[usize]) -> Option<u64> {
        let mut devices = 0;
        let mut from = 0;
        for (stage, &to) in ends.iter().enumerate() {
            let from_the_end = (ends.len() - stage) as u64;
            let in_flight = match room.time_model {
                TimeModel::Published => from_the_end,
                TimeModel::OneForwardOneBackward => from_the_end.min(rounds),
            };
            let kept = (from..to).map(|layer| self.kept[layer + 1] - self.kept[layer]);
            let most_kept = kept.max().unwrap_or(0);
            if self.memory(from, to, in_flight, most_kept, room) > room.capacity {
                return None;
            }
            devices += if self.wide[to] > self.wide[from] { self.width } else { 1 };
            from = to;
        }
        Some(devices)
    }
}

/// What a pipeline of the question has to keep within on devices with `capacity` bytes.
pub fn room(question: &Question, recompute: Recompute, capacity: Bytes) -> Room {
    let optimizer = question.optimizer;
    let PerParameter { weight, gradient, state, .. } = PerParameter {
        weight: optimizer.weight().0,
        gradient: optimizer.gradient().0,
        state: optimizer.state().0,
        step_per_gibi: 0,
    };
    Room {
        capacity: capacity.0.into(),
        per_parameter: (weight + gradient + state).into(),
        recompute,
        time_model: question.request.time_model,
    }
}

/// Whether some way of the request to train a model fits on devices with `capacity` bytes.
pub fn fits(question: &Question, model: usize, capacity: Bytes) -> bool {
    let request = &question.request;
    question.models[model].shares.iter().any(|share| {
        let layers = Layers::new(share);
        let micro_batches = request.global_batch / share.setting.micro_batch;
        request.recompute.iter().any(|&recompute| {
            layers.fits(&room(question, recompute, capacity), micro_batches, request.devices)
        })
    })
}

/// Why a model fits nowhere, told at its widest division with the least kept and the most memory;
/// `None` where it does fit so.
pub fn hindrance(question: &Question, model: usize) -> Option<String> {
    let request = &question.request;
    let trained = &question.models[model];
    let share = trained.shares.iter().max_by_key(|share| {
        (share.setting.tensor_parallel, std::cmp::Reverse(share.setting.micro_batch))
    })?;
    let gib = *request.space.hbm_gib.iter().max()?;
    let least = [Recompute::Full, Recompute::Stage, Recompute::None];
    let recompute = least.into_iter().find(|how| request.recompute.contains(how))?;
    let room = room(question, recompute, Bytes::GIB * gib);
    let layers = Layers::new(share);
    let micro_batches = request.global_batch / share.setting.micro_batch;
    if layers.fits(&room, micro_batches, request.devices) {
        return None;
    }
    let alone = |layer: usize| {
        let kept = layers.kept[layer + 1] - layers.kept[layer];
        layers.memory(layer, layer + 1, 1, kept, &room)
    };
    let needs = (0..layers.len()).map(|layer| (alone(layer), layer));
    let (needed, layer) =
        needs.max_by_key(|&(needed, layer)| (needed, std::cmp::Reverse(layer)))?;
    let hindrance = if needed > room.capacity {
        Hindrance::Layer {
            layer,
            name: share.kinds[share.sequence[layer]].name.clone(),
            needed_gib: needed as f64 / Bytes::GIB.0 as f64,
        }
    } else {
        match layers.fewest_devices(&room, micro_batches, layers.len(), 0) {
            Some(needed) => Hindrance::Devices { needed, available: request.devices },
            None => Hindrance::Activations,
        }
    };
    Some(hindrance.sentence(&trained.name, gib, share.setting.tensor_parallel))
}
