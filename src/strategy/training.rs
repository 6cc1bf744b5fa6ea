//! A model made ready to be trained: one device's share of it at every width and micro-batch, and
//! what each needs at the least.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::Terms;
use super::least_energy::LeastWork;
use super::least_energy::OperandBytes;
use super::least_energy::array_bytes;
use super::roofline::OpNeeds;
use super::shares::ReadyShare;
use super::shares::Shares;
use crate::estimate::VectorCosts;
use crate::estimate::vector_core::cycles_per_element;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::network::Exchange;
use crate::hardware::network::Group;
use crate::model::Attention;
use crate::model::Model;
use crate::model::op::Home;
use crate::model::op::Homes;
use crate::model::op::Matmul;
use crate::model::op::Numbers;
use crate::model::op::Op;
use crate::model::op::Traffic;
use crate::model::op::VectorWork;
use crate::model::op::Work;
use crate::parallel::Illegal;
use crate::parallel::Order;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::frameworks::CutShape;
use crate::parallel::frameworks::ExpertShape;
use crate::parallel::frameworks::Framework;
use crate::parallel::frameworks::PlanShape;
use crate::parallel::frameworks::RepeatedLayers;
use crate::parallel::is_legal;
use crate::parallel::legal_widths;
use crate::parallel::shard;
use crate::parallel::zero::ParameterBytes;
use crate::parallel::zero::Sharers;
use crate::parallel::zero::Zero;
use crate::parallel::zero::with_exchanges;
use crate::placement::Choices;
use crate::placement::KnownShapes;
use crate::placement::Legal;
use crate::placement::MOST_LAYERS;
use crate::plan::CutSpace;
use crate::plan::Recompute;
use crate::plan::Strategy;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;
use crate::profile::LayerGraphs;
use crate::units::Bytes;
use crate::units::Flops;

/// A model that is trained, and every way to divide it that the terms allow.
#[derive(Clone, Debug)]
pub struct Training {
    /// What the user calls it.
    pub name: String,
    /// The model itself.
    pub model: Model,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Operations of training one sequence, nothing computed twice.
    pub flops_per_sequence: Flops,
    /// One for each legal way to divide layers; where the network treats fewer devices better, once
    /// more for plans that are confined to these.
    pub divisions: Vec<Arc<Division>>,
    /// The same with exchanges inside every layer, made when first asked for.
    sharded: Arc<Mutex<ShardedDivisions>>,
}

/// By the place of a division and what its replicas exchange.
type ShardedDivisions = BTreeMap<(usize, Sharded), Arc<Division>>;

/// Gradients or weights that replicas exchange inside every layer: then its passes depend on how
/// many replicas there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sharded {
    /// What they share.
    pub zero: Zero,
    /// Copies of the pipeline.
    pub data_parallel: u64,
    /// Ranks of a pipeline.
    pub ranks: u64,
}

/// A model divided in one way.
#[derive(Clone, Debug)]
pub struct Division {
    /// What one device does.
    pub share: Arc<Share>,
    /// The devices that plans of this division may use.
    pub cluster: Cluster,
    /// Its layers, ready to be timed on any chip.
    pub graphs: Arc<LayerGraphs>,
    /// The kind of layer that occurs most often, and how often.
    pub repeated: (usize, u64),
    /// By kind of layer: what its operators need at the least, forward and backward.
    needs: Vec<[Dag<OpNeeds>; 2]>,
    /// Of all layers, forward and backward.
    pub least_work: [LeastWork; 2],
    /// What replicas exchange in placements, as far as it was asked for.
    pub exchanges: Arc<KnownShapes>,
}

/// Why a model cannot be trained on these terms at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrainable {
    /// The setting is not legal for the model.
    #[error(transparent)]
    Setting(#[from] Illegal),
    /// None of the widths divides the model.
    #[error("none of the tensor-parallel widths {asked:?} divides it; legal are {legal:?}")]
    NoWidth {
        /// What was asked for.
        asked: Vec<u64>,
        /// What would do.
        legal: Vec<u64>,
    },
    /// No width has enough devices.
    #[error("each of the tensor-parallel widths {asked:?} takes more than the {devices} devices")]
    TooWide {
        /// What was asked for.
        asked: Vec<u64>,
        /// How many devices there are.
        devices: u64,
    },
    /// Experts are dealt out among more devices than there are.
    #[error(
        "experts in {owners} parts take more than the {devices} devices; use fewer parts or more devices"
    )]
    TooManyParts {
        /// Into how many parts, at the least.
        owners: u64,
        /// How many devices there are.
        devices: u64,
    },
    /// Tables of stages would outgrow a machine.
    #[error("it has {found} layers; placed are at most {MOST_LAYERS}")]
    TooDeep {
        /// How many it has.
        found: usize,
    },
}

impl Training {
    /// Makes a model ready on the given terms; widths that do not divide it are left out.
    pub fn new(
        name: &str,
        model: Model,
        sequence: u64,
        terms: &Terms,
    ) -> Result<Self, Untrainable> {
        Self::with(&Shares::default(), (name, model), sequence, terms)
    }

    /// The same where some shares were made before.
    pub fn with(
        shares: &Shares,
        (name, model): (&str, Model),
        sequence: u64,
        terms: &Terms,
    ) -> Result<Self, Untrainable> {
        if model.sequence.len() > MOST_LAYERS {
            return Err(Untrainable::TooDeep { found: model.sequence.len() });
        }
        let legal = legal_widths(&model.spec);
        let asked = &terms.space.tensor_parallel;
        if !asked.iter().any(|width| legal.contains(width)) {
            return Err(Untrainable::NoWidth { asked: asked.clone(), legal });
        }
        let mut divisions = Vec::new();
        let shares = shares.of(&model);
        let settings = settings(&model, sequence, terms);
        let mut scopes = terms.cluster.network.scopes(terms.cluster.devices);
        if terms.space.framework != Framework::Any {
            // Such plans use all devices.
            scopes.truncate(1);
        }
        for devices in scopes {
            let cluster = Cluster { devices, ..terms.cluster };
            let fits = |setting: &&Setting| {
                let copies = setting.copies_for_experts();
                setting.devices().saturating_mul(copies) <= devices
            };
            for &setting in settings.iter().filter(fits) {
                let share = shares.get(&model, setting)?;
                let division = Division::of(share, terms.options.vector_costs, &cluster);
                divisions.push(Arc::new(division));
            }
        }
        if divisions.is_empty() {
            let devices = terms.cluster.devices;
            let narrow = settings.iter().filter(|setting| setting.devices() <= devices);
            if let Some(owners) = narrow.map(|setting| setting.expert_devices()).min() {
                return Err(Untrainable::TooManyParts { owners, devices });
            }
            let asked = terms.space.tensor_parallel.clone();
            return Err(Untrainable::TooWide { asked, devices: terms.cluster.devices });
        }
        let flops_per_sequence = flops_per_sequence(&model, sequence)?;
        let name = name.to_owned();
        Ok(Self { name, model, sequence, flops_per_sequence, divisions, sharded: Arc::default() })
    }

    /// The division that a strategy names.
    pub(super) fn divided_like(&self, strategy: &Strategy) -> Option<usize> {
        self.divisions.iter().position(|division| {
            let setting = &division.share.setting;
            setting.micro_batch == strategy.micro_batch
                && setting.tensor_parallel == strategy.tensor_parallel
                && setting.sequence_parallel == strategy.sequence_parallel
                && setting.context == strategy.context_parallel
                && setting.context_kind == strategy.context_kind
                && setting.expert == strategy.expert_parallel
                && setting.expert_tensor == strategy.expert_tensor
                && setting.repeated == strategy.repeated
        })
    }

    /// A division, with what replicas exchange inside every layer where they do.
    pub fn division(&self, at: usize, sharded: Option<Sharded>, terms: &Terms) -> Arc<Division> {
        let plain = &self.divisions[at];
        let exchanging = sharded.filter(|sharded| sharded.zero >= Zero::Gradients);
        let Some(sharded) = exchanging else { return Arc::clone(plain) };
        let mut known = self.sharded.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.entry((at, sharded)).or_insert_with(|| {
            let bytes = ParameterBytes::new(terms.optimizer, &terms.stack);
            let (setting, copies) = (&plain.share.setting, sharded.data_parallel);
            let sharers = match terms.space.shards {
                Some(shards) => Sharers::of(setting, copies, shards),
                None => Sharers::all(setting, copies),
            };
            let share = with_exchanges(&plain.share, sharded.zero, sharers, bytes);
            Arc::new(Division::new(share, terms.options.vector_costs, plain.cluster))
        });
        Arc::clone(made)
    }

    /// What is free to choose in a division, with one recompute choice: what the framework accepts.
    pub fn choices(
        &self,
        terms: &Terms,
        at: usize,
        (sharded, recompute): (Option<Sharded>, Recompute),
    ) -> Choices {
        let legal = Legal { framework: terms.space.framework, plan: self.plan_shape(terms, at) };
        Choices { legal: Some(legal), ..terms.choices(recompute, sharded) }
    }

    /// What a division says of a plan, with one of everything that it leaves open.
    fn plan_shape(&self, terms: &Terms, at: usize) -> PlanShape {
        let Division { share, cluster, .. } = &*self.divisions[at];
        let (setting, spec) = (&share.setting, &self.model.spec);
        PlanShape {
            devices: cluster.devices,
            global_batch: terms.global_batch,
            micro_batch: setting.micro_batch,
            sequence: setting.sequence,
            layers: spec.layers,
            heads: spec.heads,
            kv_heads: spec.kv_heads,
            mlp: spec.divisible_mlp(),
            tensor: setting.tensor_parallel,
            sequence_parallel: setting.sequence_parallel,
            context: setting.context,
            context_kind: setting.context_kind,
            experts: spec.experts.map(|experts| ExpertShape {
                count: experts.count,
                mlp: experts.mlp,
                parallel: setting.expert,
                tensor: setting.expert_tensor,
            }),
            pipeline: 1,
            chunks: 1,
            group: 1,
            data: 1,
            zero: Zero::Nothing,
            shards: 1,
            order: Order::default(),
            cut: match terms.space.cut {
                CutSpace::Best => CutShape::Layout,
                CutSpace::Even => CutShape::Even,
            },
            repeated: RepeatedLayers::None,
            modules: setting.repeated,
        }
    }
}

impl Division {
    /// Prepares a share; `cluster` is what its exchanges run on.
    pub fn new(share: Share, costs: VectorCosts, cluster: Cluster) -> Self {
        Self::of(ReadyShare::new(share), costs, &cluster)
    }

    fn of(ready: ReadyShare, costs: VectorCosts, cluster: &Cluster) -> Self {
        let ReadyShare { share, graphs } = ready;
        let occurrences = occurrences(&share);
        let most = (0..share.kinds.len()).rev().max_by_key(|&kind| occurrences[kind]);
        let repeated = most.map_or((0, 0), |kind| (kind, occurrences[kind]));
        let element = share.setting.element;
        let needs: Vec<[Dag<OpNeeds>; 2]> = share
            .kinds
            .iter()
            .map(|kind| {
                [&kind.forward, &kind.backward]
                    .map(|pass| pass.map(|op| needs(op, costs, element, cluster)))
            })
            .collect();
        let mut least_work = [LeastWork::default(); 2];
        for (passes, &count) in needs.iter().zip(&occurrences) {
            for (sum, pass) in least_work.iter_mut().zip(passes) {
                sum.add(&LeastWork::of(pass), count);
            }
        }
        Self {
            share,
            cluster: *cluster,
            graphs,
            repeated,
            needs,
            least_work,
            exchanges: Arc::default(),
        }
    }

    /// Femtojoules of one micro-batch through all layers on one device, at the least, with so many
    /// forward passes; `array_bytes` are those of all layers, forward and backward.
    pub fn least_energy(&self, forwards: u64, array_bytes: [u128; 2], chip: &Accelerator) -> u128 {
        let [forward, backward] =
            [0, 1].map(|pass| self.least_work[pass].femtojoules(array_bytes[pass], chip));
        forward * u128::from(forwards) + backward
    }

    /// Bytes that arrays of these sides exchange with their buffers at the least, for all layers
    /// forward and backward.
    pub fn array_bytes(&self, width: u64, depth: u64) -> [u128; 2] {
        let element = self.share.setting.element.0;
        let mut sums = [0; 2];
        for (passes, count) in self.needs.iter().zip(self.occurrences()) {
            for (sum, pass) in sums.iter_mut().zip(passes) {
                *sum += array_bytes(pass, width, depth, element) * u128::from(count);
            }
        }
        sums
    }

    /// How often each kind of layer occurs.
    pub fn occurrences(&self) -> Vec<u64> {
        occurrences(&self.share)
    }

    /// By kind of layer: what its operators need at the least, forward and backward.
    pub fn needs(&self) -> &[[Dag<OpNeeds>; 2]] {
        &self.needs
    }

    /// Sums a figure of each pass over all layers of the model.
    pub fn sum_over_passes(&self, figure: impl Fn(&Dag<OpNeeds>) -> u64) -> u128 {
        let kinds = self.needs.iter().zip(self.occurrences());
        kinds
            .map(|(passes, count)| {
                let both: u128 = passes.iter().map(|pass| u128::from(figure(pass))).sum();
                both * u128::from(count)
            })
            .sum()
    }

    /// Devices that every stage takes at the least.
    pub fn devices_per_stage(&self) -> u64 {
        let all_are_wide = self.share.kinds.iter().all(|kind| kind.tensor_parallel);
        let setting = &self.share.setting;
        setting.context * if all_are_wide { setting.tensor_parallel } else { 1 }
    }
}

/// Every legal way to divide the layers of a model, in a fixed order.
pub fn settings(model: &Model, sequence: u64, terms: &Terms) -> Vec<Setting> {
    let space = &terms.space;
    let widths = legal_widths(&model.spec);
    let mut found = Vec::new();
    for &tensor_parallel in space.tensor_parallel.iter().filter(|width| widths.contains(width)) {
        for &context in &space.context_parallel {
            // Alone, a device has nobody to exchange its tokens with.
            let kinds = if context == 1 { &space.context_kinds[..1] } else { &space.context_kinds };
            for &context_kind in kinds {
                for &sequence_parallel in &space.sequence_parallel {
                    for &repeated in &space.repeated {
                        for &micro_batch in &space.micro_batches {
                            let setting = Setting {
                                micro_batch,
                                sequence,
                                tensor_parallel,
                                sequence_parallel: sequence_parallel && tensor_parallel > 1,
                                context,
                                context_kind,
                                expert: 1,
                                expert_tensor: 1,
                                attention: terms.attention,
                                repeated,
                                masked: terms.masked,
                                element: terms.element,
                                stack: terms.stack,
                            };
                            found.extend(with_experts(space, setting));
                        }
                    }
                }
            }
        }
    }
    let mut kept: Vec<Setting> = Vec::new();
    for &setting in &found {
        if !kept.contains(&setting) && is_legal(model, setting).is_ok() {
            kept.push(setting);
        }
    }
    if kept.is_empty() {
        // What leaves nothing to choose from is refused by name, not left out.
        kept.extend(found.first());
    }
    kept
}

/// A setting with its experts divided in every way.
fn with_experts(space: &StrategySpace, setting: Setting) -> impl Iterator<Item = Setting> {
    let degrees = space.expert_degrees(setting.tensor_parallel);
    degrees.map(move |(expert, expert_tensor)| Setting { expert, expert_tensor, ..setting })
}

/// How replicas may share what is exchanged inside layers: nothing, and every way to share gradients
/// or weights. Where any number of devices may be used, replicas are powers of two then.
pub fn shardings(terms: &Terms, division: &Division) -> Vec<Option<Sharded>> {
    let space = &terms.space;
    let share = &division.share;
    let micro_batches = terms.global_batch / share.setting.micro_batch;
    let all = || space.zero.iter().chain(&space.zero_in_pipelines);
    let mut found = Vec::new();
    if all().any(|&zero| zero < Zero::Gradients) {
        found.push(None);
    }
    if !all().any(|&zero| zero >= Zero::Gradients) || terms.time_model == TimeModel::Published {
        return found;
    }
    let deepest = (share.sequence.len() as u64).min(space.pipeline.most);
    for ranks in space.pipeline.least.max(1)..=deepest {
        let room = division.cluster.devices / (share.setting.devices() * ranks);
        let most = room.min(micro_batches).min(space.data_parallel.most);
        let replicas: Vec<u64> = match space.framework {
            Framework::Any => (0..64).map(|power| 1 << power).take_while(|&n| n <= most).collect(),
            Framework::Megatron | Framework::Torchtitan | Framework::Maxtext => vec![room],
        };
        let given = (space.data_parallel.least == space.data_parallel.most).then_some(most);
        for data_parallel in given.map_or(replicas, |only| vec![only]) {
            let setting = &share.setting;
            if data_parallel < space.data_parallel.least.max(1)
                || data_parallel > most
                || !data_parallel.is_multiple_of(setting.copies_for_experts())
            {
                continue;
            }
            let dense = data_parallel * setting.context;
            let of_experts = share.expert_devices().map(|_| setting.expert_replicas(data_parallel));
            let n = dense.max(of_experts.unwrap_or(1));
            let are_even = space.shards.is_none_or(|shards| {
                let groups = (dense / shards).max(1);
                dense.is_multiple_of(shards) && of_experts.unwrap_or(groups).is_multiple_of(groups)
            });
            let zeros = space.zero_with(ranks);
            let inside = zeros.iter().copied().filter(|&zero| zero >= Zero::Gradients);
            let sharded = |zero: Zero| Some(Sharded { zero, data_parallel, ranks });
            if n > 1 && are_even {
                found.extend(inside.map(sharded));
            } else if n == 1 && !zeros.is_empty() && inside.count() == zeros.len() {
                // Alone, a replica has nobody to share with.
                found.push(sharded(Zero::Nothing));
            }
        }
    }
    found
}

fn occurrences(share: &Share) -> Vec<u64> {
    let count = |kind| share.sequence.iter().filter(|&&at| at == kind).count() as u64;
    (0..share.kinds.len()).map(count).collect()
}

/// Operations of training one sequence, nothing computed twice.
fn flops_per_sequence(model: &Model, sequence: u64) -> Result<Flops, Illegal> {
    let setting = Setting {
        micro_batch: 1,
        sequence,
        tensor_parallel: 1,
        sequence_parallel: false,
        attention: Attention::Recomputed,
        element: Bytes(2),
        ..Setting::ALONE
    };
    let share = shard(model, setting)?;
    let of_kind = |kind: usize| -> Flops {
        let layer = &share.kinds[kind];
        layer.forward.nodes().iter().chain(layer.backward.nodes()).map(Op::flops).sum()
    };
    Ok(share.sequence.iter().map(|&kind| of_kind(kind)).sum())
}

/// What an operator needs on any design.
fn needs(op: &Op, costs: VectorCosts, element: Bytes, cluster: &Cluster) -> OpNeeds {
    let lane_cycles = |chain: &[VectorWork]| -> u64 {
        chain
            .iter()
            .map(|work| work.elements() * cycles_per_element(work.kind, work.pass, costs))
            .sum()
    };
    let besides = op.traffic.hbm_read + op.traffic.hbm_written;
    let mut needs = OpNeeds {
        matmul: None,
        grouped: false,
        flops: 0,
        numbers: Numbers::Bf16,
        homes: Homes::ALL_HBM,
        is_kernel: !matches!(op.work, Work::Collective(_)),
        lane_cycles: 0,
        hbm_bytes: besides.0,
        operands: OperandBytes::default(),
        traffic: op.traffic,
        network: 0,
    };
    match &op.work {
        Work::Matmul { matmul, homes, fused, numbers, grouped } => {
            needs.grouped = *grouped;
            needs.matmul = Some(*matmul);
            needs.numbers = *numbers;
            needs.homes = *homes;
            needs.lane_cycles = lane_cycles(fused);
            needs.operands = operand_bytes(matmul, *homes, numbers.operand(element));
            needs.hbm_bytes += needs.operands.filled + needs.operands.drained;
        }
        Work::Vector(chain) => needs.lane_cycles = lane_cycles(chain),
        Work::Opaque { flops } => needs.flops = *flops,
        Work::Move => {}
        Work::Collective(collective) => {
            let group = Group::along(collective.group, collective.stride);
            let exchange = Exchange::Collective(collective.kind);
            let once = cluster.time(exchange, collective.size, group);
            needs.network = collective.exposed(once * collective.times).0;
            needs.hbm_bytes = 0;
            needs.traffic = Traffic::default();
        }
    }
    needs
}

/// Bytes of a product's operands, each once.
fn operand_bytes(matmul: &Matmul, homes: Homes, element: Bytes) -> OperandBytes {
    let Matmul { b, m, k, n } = *matmul;
    let [first, second, product] = [m * k, k * n, m * n].map(|elements| b * elements * element.0);
    let crossing = |home: Home, bytes: u64| if home == Home::Hbm { bytes } else { 0 };
    OperandBytes {
        read: first + second,
        written: product,
        filled: crossing(homes.a, first) + crossing(homes.b, second),
        drained: crossing(homes.out, product),
    }
}
