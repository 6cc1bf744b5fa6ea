//! What no way to train a model on a chip can beat, for every chip of a space.
//!
//! In: a division, the shapes of arrays and the sizes of memory of a space. Out: what its layers take at the least
//! ([`DivisionSketch`]) and, for each way to share and to repeat, what no placement can beat ([`Pipelines`]).
//! `space_bound` joins those of all divisions. docs/search.md says why each step is sound.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Terms;
use super::pipeline_bound::Exchanges;
use super::pipeline_bound::LayerTimes;
use super::pipeline_bound::PipelineBound;
use super::pipeline_bound::Sharing;
use super::pipeline_bound::forward_passes;
use super::pipeline_memory::Layouts;
use super::pipeline_memory::PipelineLimits;
use super::price::Price;
use super::roofline::PeakRates;
use super::roofline::Sketch;
use super::roofline::lowered;
use super::training::Division;
use super::training::Sharded;
use super::training::shardings;
use crate::hardware::Accelerator;
use crate::hardware::network::Exchange;
use crate::model::op::CollectiveKind;
use crate::parallel::LayerShare;
use crate::parallel::Parameters;
use crate::parallel::Setting;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Sharers;
use crate::parallel::zero::Zero;
use crate::placement::Choices;
use crate::placement::CutChoice;
use crate::placement::Family;
use crate::placement::NEAR;
use crate::placement::Usage;
use crate::plan::Buckets;
use crate::plan::Profile;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::profile::even_cut;
use crate::units::Bytes;
use crate::units::Energy;

/// What the layers of a division take at the least, prepared for every shape of array.
#[derive(Clone, Debug)]
pub(super) struct DivisionSketch {
    /// By array shape, then by kind of layer, forward and backward.
    sketches: Vec<Vec<[Sketch; 2]>>,
    /// By array shape: bytes between arrays and their buffers, forward and backward.
    pub array_bytes: Vec<[u128; 2]>,
    repeated: (usize, u64),
    /// How often each kind occurs.
    occurrences: Vec<u64>,
    /// The kinds of the first and of the last layer.
    ends: [Option<usize>; 2],
}

/// By what is exchanged inside layers and computed again: what bounds a division on devices with so much memory.
pub(super) type Pipelines = Vec<(Option<Sharded>, Recompute, PipelineBound)>;

impl DivisionSketch {
    pub fn new(division: &Division, arrays: &[(u64, u64)]) -> Self {
        let sketches = arrays.iter().map(|&(width, depth)| {
            let both = |passes: &[_; 2]| [0, 1].map(|at| Sketch::new(&passes[at], width, depth));
            division.needs().iter().map(both).collect()
        });
        Self {
            sketches: sketches.collect(),
            array_bytes: arrays.iter().map(|&(w, d)| division.array_bytes(w, d)).collect(),
            repeated: division.repeated,
            occurrences: division.occurrences(),
            ends: {
                let sequence = &division.share.sequence;
                [sequence.first().copied(), sequence.last().copied()]
            },
        }
    }

    /// What the layers take at the least.
    pub fn layer_times(
        &self,
        array: usize,
        rates: &PeakRates,
        scratch: &mut Vec<f64>,
    ) -> LayerTimes {
        let mut times = LayerTimes::default();
        for (kind, [forward, backward]) in self.sketches[array].iter().enumerate() {
            let forward = forward.least_time(rates, scratch);
            let backward = backward.least_time(rates, scratch);
            self.count(&mut times, kind, [forward, backward]);
        }
        times
    }

    /// What the layers take where they take what a profile says.
    pub fn profiled_times(&self, profile: &Profile) -> LayerTimes {
        let mut times = LayerTimes::default();
        for (kind, layer) in profile.kinds.iter().enumerate() {
            self.count(&mut times, kind, [layer.forward as f64, layer.backward as f64]);
        }
        times
    }

    /// Counts both passes of all layers of a kind.
    fn count(&self, times: &mut LayerTimes, kind: usize, [forward, backward]: [f64; 2]) {
        if kind == self.repeated.0 {
            (times.forward, times.backward) = (forward, backward);
            return;
        }
        times.others_forward += forward * self.occurrences[kind] as f64;
        times.others_backward += backward * self.occurrences[kind] as f64;
        for (end, of) in times.ends.iter_mut().zip(self.ends) {
            if of == Some(kind) {
                *end = forward + backward;
            }
        }
    }

    /// Picoseconds of all passes of one micro-batch over all layers, at the least.
    pub fn work(&self, times: LayerTimes, recompute: Recompute) -> f64 {
        let repeated = self.repeated.1 as f64;
        let forward = times.forward * repeated + times.others_forward;
        let backward = times.backward * repeated + times.others_backward;
        forward * forward_passes(recompute) as f64 + backward
    }
}

/// What bounds every way to share and to repeat on devices with so much memory.
pub(super) fn pipelines(terms: &Terms, division: &Division, memory: Bytes) -> Pipelines {
    let ways = shardings(terms, division).into_iter().flat_map(|sharded| {
        let choices = terms.space.recompute.iter();
        choices.map(move |&recompute| (sharded, recompute))
    });
    ways.map(|(sharded, recompute)| {
        let bound = pipeline_bound(terms, division, memory, (sharded, recompute));
        (sharded, recompute, bound)
    })
    .collect()
}

/// Femtojoules of a batch at the least, where all passes of a micro-batch take `work` picoseconds
/// together and move so many bytes between arrays and buffers.
///
/// In any pipeline, devices x time is at least what all stages work for all micro-batches, so power
/// at rest counts at least that long.
pub(super) fn least_energy(
    terms: &Terms,
    division: &Division,
    recompute: Recompute,
    (work, array_bytes): (f64, [u128; 2]),
    chip: &Accelerator,
) -> Energy {
    let setting = &division.share.setting;
    let micro_batches = terms.global_batch / setting.micro_batch;
    let computing = division.least_energy(forward_passes(recompute), array_bytes, chip)
        * u128::from(micro_batches)
        * u128::from(setting.devices());
    let busy = u128::from(lowered(work))
        * u128::from(micro_batches)
        * u128::from(division.devices_per_stage());
    // A microwatt for a picosecond is a thousandth of a femtojoule; each device may round down.
    let at_rest =
        (chip.static_power_uw() * busy / 1000).saturating_sub(u128::from(division.cluster.devices));
    Energy(computing + at_rest)
}

fn pipeline_bound(
    terms: &Terms,
    division: &Division,
    memory: Bytes,
    (sharded, recompute): (Option<Sharded>, Recompute),
) -> PipelineBound {
    let share = &division.share;
    let (kind, repeated) = division.repeated;
    let layer: &LayerShare = &share.kinds[kind];
    let micro_batches = terms.global_batch / share.setting.micro_batch;
    let choices = terms.choices(recompute, sharded);
    let limits = PipelineLimits {
        pipelines: every_pipeline(&choices, division, micro_batches),
        micro_batches,
        repeated,
        recompute,
        devices_count: terms.price == Price::Energy,
        time_model: terms.time_model,
        chunks: choices.chunks.clone(),
        layouts: layouts(&choices, division),
        in_ends: in_ends(&choices, division),
        capacity: terms.usable(memory).0,
        kept: layer.kept.0,
        // Nothing is sent to the first layer of all.
        input: if share.sequence.first() == Some(&kind) { 0 } else { layer.input.0 },
        working: match terms.time_model {
            TimeModel::Published => 0,
            TimeModel::OneForwardOneBackward => layer.working.0,
        },
    };
    let bytes = ParameterBytes::new(terms.optimizer, &terms.stack);
    let known = RefCell::new(BTreeMap::new());
    let exchanges = |zero: Zero, pipelines: &RangeInclusive<u64>| {
        let key = (zero, *pipelines.start(), *pipelines.end());
        let mut known = known.borrow_mut();
        let least = || least_exchanges(terms, division, zero, pipelines, bytes);
        *known.entry(key).or_insert_with(least)
    };
    PipelineBound::new(&limits, |ranks, pipelines| {
        let sharers = sharers(&choices, &share.setting, *pipelines.end());
        let Parameters { dense, experts } = layer.by_replicas();
        let zeros = choices.zero[usize::from(ranks > 1)].iter();
        let sharing = |&zero: &Zero| Sharing {
            state: least_held(zero, sharers.shards, dense, bytes)
                + least_held(zero, sharers.expert_shards, experts, bytes),
            exchanges: exchanges(zero, pipelines),
        };
        zeros.map(sharing).collect()
    })
}

/// How many replicas share at the most, with so many copies of a pipeline.
fn sharers(choices: &Choices, setting: &Setting, copies: u64) -> Sharers {
    match choices.shards {
        // How many groups there are depends on the number of copies.
        Some(shards) => {
            let all = Sharers::all(setting, copies);
            Sharers { shards: shards.max(1), expert_shards: all.expert_shards }
        }
        None => Sharers::all(setting, copies),
    }
}

/// How layers are dealt to several virtual stages of a rank.
///
/// Only where all layers between the first and the last are alike is it known how many of them a
/// virtual stage holds: as many as the others, in even layouts, but for a last layer that is one of
/// them and counts for none; within [`NEAR`] of them in the larger family.
fn layouts(choices: &Choices, division: &Division) -> Layouts {
    let sequence = &division.share.sequence;
    let (kind, _) = division.repeated;
    let inner = sequence.get(1..sequence.len().saturating_sub(1)).unwrap_or(&[]);
    let longer = match choices.layouts {
        Family::Even => u64::from(sequence.last() == Some(&kind)),
        Family::Near => NEAR as u64 + 1,
    };
    let is_known = inner.iter().all(|&other| other == kind) && choices.cut == CutChoice::Best;
    Layouts { n_layers: sequence.len(), longer: is_known.then_some(longer) }
}

/// How many repeated layers the first and the last rank of an even cut hold, by number of ranks; nothing where other
/// cuts are compared.
fn in_ends(choices: &Choices, division: &Division) -> BTreeMap<u64, [u64; 2]> {
    let sequence = &division.share.sequence;
    if choices.cut != CutChoice::Even {
        return BTreeMap::new();
    }
    let held = |stage: &[usize]| {
        stage.iter().filter(|&&layer| sequence[layer] == division.repeated.0).count() as u64
    };
    let ranks = *choices.ranks.start()..=sequence.len().min(*choices.ranks.end());
    ranks
        .filter_map(|ranks| {
            let cut = even_cut(sequence, ranks)?;
            let (first, last) = (cut.stages().next()?, cut.stages().last()?);
            Some((ranks as u64, [held(first), held(last)]))
        })
        .collect()
}

/// What replicas exchange at the least where there are any of these numbers of pipelines.
///
/// Only where gradients are exchanged layer by layer are they sums over layers; groups that a user
/// has chosen are not looked into.
fn least_exchanges(
    terms: &Terms,
    division: &Division,
    zero: Zero,
    pipelines: &RangeInclusive<u64>,
    bytes: ParameterBytes,
) -> Exchanges {
    let Division { share, cluster, .. } = division;
    let setting = &share.setting;
    let by_layer = terms.ends().buckets == Buckets::Layers && terms.space.shards.is_none();
    if terms.time_model == TimeModel::Published || !by_layer {
        return Exchanges::default();
    }
    // Where experts are held by as many devices as all else, they are the same devices.
    let alike = setting.expert_devices() == setting.tensor_parallel;
    let (fewest, most) = (*pipelines.start(), *pipelines.end());
    let dense = fewest * setting.context..=most * setting.context;
    let experts = setting.expert_replicas(fewest).max(1)..=setting.expert_replicas(most).max(1);
    let among = |kind: CollectiveKind, size: Bytes, stride: u64, members: &RangeInclusive<u64>| {
        if *members.start() <= 1 || size == Bytes::ZERO {
            return 0;
        }
        let topology = cluster.network.topology();
        let exchange = Exchange::Collective(kind);
        topology.least(exchange, size, stride, members.clone(), cluster.devices).0
    };
    let least = |kind: CollectiveKind, each: Bytes, parameters: Parameters| {
        let (width, owners) = (setting.tensor_parallel, setting.expert_devices());
        if alike {
            return among(kind, each * parameters.all(), width, &dense);
        }
        among(kind, each * parameters.dense, width, &dense)
            + among(kind, each * parameters.experts, owners, &experts)
    };
    let of_all = |kind: CollectiveKind, each: Bytes| {
        let layers = share.kinds.iter().zip(division.occurrences());
        layers.map(|(layer, count)| least(kind, each, layer.by_replicas()) * count).sum::<u64>()
    };
    let first = share.sequence.first();
    let first = first.map_or(Parameters::NONE, |&kind| share.kinds[kind].by_replicas());
    match zero {
        Zero::Nothing => Exchanges {
            first: least(CollectiveKind::AllReduce, bytes.reduced, first),
            gradients: of_all(CollectiveKind::AllReduce, bytes.reduced),
            ..Exchanges::default()
        },
        Zero::State => Exchanges {
            first: least(CollectiveKind::ReduceScatter, bytes.reduced, first),
            gradients: of_all(CollectiveKind::ReduceScatter, bytes.reduced),
            weights: of_all(CollectiveKind::AllGather, bytes.weight),
            inside: 0,
        },
        Zero::Gradients => Exchanges {
            weights: of_all(CollectiveKind::AllGather, bytes.weight),
            inside: of_all(CollectiveKind::ReduceScatter, bytes.reduced),
            ..Exchanges::default()
        },
        Zero::Weights => Exchanges {
            inside: of_all(CollectiveKind::ReduceScatter, bytes.reduced)
                + 2 * of_all(CollectiveKind::AllGather, bytes.weight),
            ..Exchanges::default()
        },
    }
}

/// Bytes that so many parameters of a layer take at the least where `shards` replicas share.
///
/// A rank rounds its shards up once for all of its layers, so that a layer's part is rounded down.
fn least_held(zero: Zero, shards: u64, parameters: u64, bytes: ParameterBytes) -> u64 {
    let part = |each: Bytes, shared: bool| {
        let whole = (each * parameters).0;
        if shared { whole / shards } else { whole }
    };
    part(bytes.weight, zero >= Zero::Weights)
        + part(bytes.gradient, zero >= Zero::Gradients)
        + part(bytes.state, zero >= Zero::State)
}

/// Every number of ranks that devices allow, with every number of pipelines of them.
///
/// Numbers of pipelines are taken in groups that the bound does not tell apart: the fewest rounds of
/// the group, and its fastest exchange.
fn every_pipeline(
    choices: &Choices,
    division: &Division,
    micro_batches: u64,
) -> Vec<(u64, RangeInclusive<u64>)> {
    let each = division.devices_per_stage();
    let devices = division.cluster.devices;
    let layers = division.share.sequence.len();
    let most_ranks = usize::try_from(devices / each).unwrap_or(usize::MAX).min(layers);
    let ranks = (*choices.ranks.start()).max(1)..=most_ranks.min(*choices.ranks.end());
    let mut found = Vec::new();
    for ranks in ranks {
        let ranks = ranks as u64;
        let room = devices / (each * ranks);
        match choices.usage {
            Usage::Any => {
                let most = room.min(micro_batches).min(*choices.data_parallel.end());
                let fewest = (*choices.data_parallel.start()).max(1);
                let mut groups = Vec::new();
                let mut first = fewest;
                while first <= most {
                    let last = (first + first / 4).min(most);
                    groups.push((ranks, first..=last));
                    first = last + 1;
                }
                // Those with fewer rounds first: they often cover the others.
                found.extend(groups.into_iter().rev());
            }
            Usage::Whole => {
                let whole = devices.is_multiple_of(each * ranks);
                let even = room.is_multiple_of(division.share.setting.copies_for_experts());
                let divides = whole && even && micro_batches.is_multiple_of(room);
                if divides && choices.data_parallel.contains(&room) {
                    found.push((ranks, room..=room));
                }
            }
        }
    }
    found
}
