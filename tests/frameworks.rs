//! The rules of training frameworks, written a second time from what their sources enforce, beside
//! those by which plans are filtered: on random plans, both accept the same.

#![expect(clippy::manual_is_multiple_of, reason = "remainders, as the frameworks write them")]

use std::collections::BTreeMap;

use phaze::model::Module;
use phaze::model::Modules;
use phaze::parallel::ContextKind;
use phaze::parallel::Order;
use phaze::parallel::frameworks::BrokenRule;
use phaze::parallel::frameworks::CutShape;
use phaze::parallel::frameworks::ExpertShape;
use phaze::parallel::frameworks::Framework;
use phaze::parallel::frameworks::PlanShape;
use phaze::parallel::frameworks::RULES;
use phaze::parallel::frameworks::RepeatedLayers;
use phaze::parallel::zero::Zero;

/// What no schedule, sharding or division can do without, whatever runs it.
fn possible(s: &PlanShape) -> bool {
    let [n, t, c, p, v, d] = [s.devices, s.tensor, s.context, s.pipeline, s.chunks, s.data];
    if [n, t, c, p, v, d, s.global_batch, s.micro_batch].contains(&0) || t * c * d * p > n {
        return false;
    }
    let attention = s.heads % t == 0 && (s.kv_heads % t == 0 || t % s.kv_heads == 0);
    let mlp = s.mlp % t == 0;
    let mut tokens = true;
    if c > 1 {
        let pieces = if s.sequence_parallel { 2 * c * t } else { 2 * c };
        tokens &= s.sequence % pieces == 0;
        if s.context_kind == ContextKind::Ulysses {
            let all = t * c;
            tokens &= s.heads % all == 0 && (s.kv_heads % all == 0 || all % s.kv_heads == 0);
        }
    }
    if s.sequence_parallel {
        tokens &= t > 1 && s.sequence % (t * c) == 0;
    }
    let batch = s.global_batch % s.micro_batch == 0;
    let schedule = p * v <= s.layers + 2 && (v == 1 || may_interleave(s));
    let sharding = s.zero == Zero::Nothing || s.shards > 0 && (d * c) % s.shards == 0;
    attention && mlp && tokens && batch && schedule && sharding && experts_fold(s)
}

/// Whether every device has the same rank of a pipeline in the grid of layers and in that of experts,
/// and each expert is held equally often.
fn experts_fold(s: &PlanShape) -> bool {
    let Some(ExpertShape { count, mlp, parallel: e, tensor: x }) = s.experts else { return true };
    if e == 0 || x == 0 || count % e != 0 || mlp % x != 0 || s.tensor > 1 && !s.sequence_parallel {
        return false;
    }
    let rank = s.tensor * s.context * s.data;
    if rank % (x * e) != 0 {
        return false;
    }
    let order = s.order.to_string();
    let sizes = |axis: &str, of_experts: bool| match (axis, of_experts) {
        ("tp", false) => s.tensor,
        ("cp", false) => s.context,
        ("dp", false) => s.data,
        ("tp", true) => x * e,
        ("cp", true) => 1,
        ("dp", true) => rank / (x * e),
        _ => s.pipeline,
    };
    let rank_of = |device: u64, of_experts: bool| {
        let mut left = device;
        for axis in order.split('-') {
            let size = sizes(axis, of_experts);
            if axis == "pp" {
                return left % size;
            }
            left /= size;
        }
        0
    };
    (0..rank * s.pipeline).all(|device| rank_of(device, false) == rank_of(device, true))
}

/// Micro-batches of one pipeline, of the fullest where they are not alike.
fn micro_batches(s: &PlanShape) -> u64 {
    let all = s.global_batch / s.micro_batch;
    all / s.data + u64::from(all % s.data > 0)
}

/// Megatron's own refusals of an interleaved schedule.
fn may_interleave(s: &PlanShape) -> bool {
    let (p, g, m) = (s.pipeline, s.group, micro_batches(s));
    if p == 1 || g < p || g > m {
        return false;
    }
    let last = m % g;
    last == 0 || last >= p
}

/// The coordinates of a device along context, data and pipeline, in the order of their strides.
fn strides(s: &PlanShape, order: &str) -> BTreeMap<String, u64> {
    let size = |axis| match axis {
        "tp" => s.tensor,
        "cp" => s.context,
        "dp" => s.data,
        _ => s.pipeline,
    };
    let mut stride = 1;
    let mut found = BTreeMap::new();
    for axis in order.split('-') {
        if size(axis) > 1 {
            found.insert(axis.to_owned(), stride);
        }
        stride *= size(axis);
    }
    found
}

fn megatron(s: &PlanShape) -> bool {
    // World size, batch.
    if s.devices % (s.tensor * s.pipeline * s.context) != 0
        || s.data != s.devices / (s.tensor * s.pipeline * s.context)
        || s.global_batch % (s.micro_batch * s.data) != 0
    {
        return false;
    }
    // Layers of a rank, and of a virtual stage, without a layout.
    if s.cut == CutShape::Even
        && (s.layers % s.pipeline != 0 || s.layers / s.pipeline % s.chunks != 0)
    {
        return false;
    }
    // tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp; with the latter and stages, experts' data-parallel size
    // (devices over tensor and pipeline ranks) must be that of the rest.
    let default = strides(s, &s.order.to_string()) == strides(s, "tp-cp-dp-pp");
    let swapped = strides(s, &s.order.to_string()) == strides(s, "tp-cp-pp-dp");
    let expert_data = s.devices / (s.tensor * s.pipeline);
    let order =
        default || swapped && (s.experts.is_some() || s.pipeline == 1 || expert_data == s.data);
    // Granularity: full with a method and a number, or selective with modules.
    let selective = !s.modules.is_empty();
    let granularity = match s.repeated {
        RepeatedLayers::None => true,
        RepeatedLayers::All | RepeatedLayers::OneNumber => !selective,
        RepeatedLayers::OwnNumbers | RepeatedLayers::Stages => false,
    };
    order && granularity
}

fn torchtitan(s: &PlanShape) -> bool {
    // Replicate times shard is data; the mesh that shards has the context devices in it, and there
    // is one as soon as there are context devices.
    let (replicate, shard) = match s.zero {
        Zero::Nothing if s.context > 1 => return false,
        Zero::Nothing => (s.data, 1),
        Zero::State => return false,
        Zero::Gradients | Zero::Weights if s.shards % s.context != 0 => return false,
        Zero::Gradients | Zero::Weights => (s.data * s.context / s.shards, s.shards / s.context),
    };
    if replicate * shard * s.context * s.tensor * s.pipeline != s.devices {
        return false;
    }
    if s.sequence % (s.tensor * 2 * s.context) != 0
        || s.global_batch % (s.micro_batch * s.data) != 0
        || strides(s, &s.order.to_string()) != strides(s, "tp-cp-dp-pp")
    {
        return false;
    }
    let m = micro_batches(s);
    let rounds = (m / s.pipeline).max(1);
    let interleaves = m % rounds == 0 && m / rounds == s.group;
    let schedule = if s.chunks == 1 { s.pipeline == 1 || m >= s.pipeline } else { interleaves };
    // Without names of modules: one or two stages per rank by default, else some number of layers
    // per stage that yields as many.
    let total = s.layers + 2;
    let split = s.cut == CutShape::Layout
        || s.chunks <= 2
        || (1..=total).any(|each| total.div_ceil(each) == s.pipeline * s.chunks);
    let checkpoint = s.modules.is_empty()
        && (s.repeated == RepeatedLayers::None || s.repeated == RepeatedLayers::All);
    // Experts are dealt out within the devices that shard weights; none is divided by itself.
    let experts = s.experts.is_none_or(|experts| {
        experts.tensor == 1 && (shard * s.context * s.tensor) % experts.parallel == 0
    });
    schedule && split && checkpoint && experts
}

fn maxtext(s: &PlanShape) -> bool {
    let mesh = s.tensor * s.context * s.data == s.devices && s.pipeline == 1;
    let batch = s.global_batch % (s.micro_batch * s.data) == 0;
    let sharding = s.zero != Zero::Gradients;
    let order = strides(s, &s.order.to_string()) == strides(s, "tp-cp-dp-pp");
    let policy = s.modules.is_empty()
        && (s.repeated == RepeatedLayers::None || s.repeated == RepeatedLayers::All);
    let experts = s
        .experts
        .is_none_or(|experts| experts.tensor == s.tensor && s.data % experts.parallel == 0);
    // The weights of layers are cut along the axes of context and experts as along that of shards.
    let dealt = s.experts.map_or(1, |experts| experts.parallel);
    let cut = s.context > 1 || dealt > 1;
    let weights = !cut || s.zero == Zero::Weights;
    let apart = s.context == 1 || dealt == 1;
    mesh && batch && sharding && order && policy && experts && weights && apart
}

fn accepts(framework: Framework, s: &PlanShape) -> bool {
    possible(s)
        && match framework {
            Framework::Megatron => megatron(s),
            Framework::Torchtitan => torchtitan(s),
            Framework::Maxtext => maxtext(s),
            Framework::Any => true,
        }
}

/// Numbers without end, the same on every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    /// Mostly the first, else one of the others.
    fn mostly<T: Copy>(&mut self, of: &[T]) -> T {
        if self.below(8) == 0 { self.one(of) } else { of[0] }
    }
}

/// A plan that is near to being accepted, or not.
fn shape(noise: &mut Noise) -> PlanShape {
    use RepeatedLayers::{All, None, OneNumber, OwnNumbers, Stages};
    let tensor = noise.one(&[1, 1, 2, 2, 4, 8, 3, 6]);
    let context = noise.mostly(&[1, 2, 3, 4, 8]);
    let pipeline = noise.one(&[1, 1, 1, 2, 3, 4, 8]);
    let data = noise.one(&[1, 2, 3, 4, 8]);
    let chunks = if pipeline > 1 { noise.one(&[1, 1, 2, 3, 4]) } else { noise.mostly(&[1, 2]) };
    let group = noise.mostly(&[pipeline, 1, 2, 3, 4, 5, 6, 8, 12]);
    let micro_batch = noise.mostly(&[1, 2, 3]);
    let rounds = noise.one(&[1, 2, 3, 4, 8, 9, 16]);
    let devices = tensor * context * pipeline * data + noise.mostly(&[0, 0, 1, 8]);
    let modules = match noise.below(6) {
        0 => Modules::NONE.with(Module::CoreAttention),
        1 => Modules::NONE.with(Module::Mlp).with(Module::LayerNorm),
        _ => Modules::NONE,
    };
    let experts = (noise.below(3) == 0).then(|| ExpertShape {
        count: noise.mostly(&[16, 12, 7]),
        mlp: noise.mostly(&[1536, 1000]),
        parallel: if noise.below(40) == 0 { 0 } else { noise.one(&[1, 1, 2, 4, 8]) },
        tensor: noise.one(&[1, 1, tensor, 2, 3]),
    });
    PlanShape {
        devices: if noise.below(40) == 0 { devices / 2 } else { devices },
        global_batch: micro_batch * data * rounds + noise.mostly(&[0, 0, 1, 2]),
        micro_batch,
        sequence: noise.mostly(&[4608, 4096, 100, 81, 12]),
        layers: noise.one(&[96, 32, 24, 12, 7, 2]),
        heads: noise.mostly(&[48, 24, 20, 64]),
        kv_heads: noise.one(&[48, 24, 12, 8, 2, 1]),
        mlp: noise.mostly(&[4608, 4608, 1000]),
        tensor: if noise.below(60) == 0 { 0 } else { tensor },
        sequence_parallel: noise.below(if tensor > 1 { 2 } else { 12 }) == 0,
        context,
        context_kind: noise.one(&ContextKind::ALL),
        experts,
        pipeline,
        chunks,
        group,
        data,
        zero: noise.one(&Zero::ALL),
        shards: noise.mostly(&[data * context, 1, 2, 3, 4, 8]),
        order: noise.mostly(&Order::ALL),
        cut: noise.one(&[CutShape::Even, CutShape::Layout]),
        repeated: noise.mostly(&[None, All, OneNumber, OwnNumbers, Stages]),
        modules,
    }
}

#[test]
fn both_writings_of_the_rules_accept_the_same_plans() {
    let mut noise = Noise(7);
    let mut accepted = BTreeMap::new();
    let mut broken: BTreeMap<(Framework, &str), u64> = BTreeMap::new();
    for _ in 0..60_000 {
        let shape = shape(&mut noise);
        for framework in Framework::ALL {
            let verdict = framework.check(&shape);
            assert_eq!(
                verdict.is_ok(),
                accepts(framework, &shape),
                "{framework}: {verdict:?} {shape:?}"
            );
            match verdict {
                Ok(()) => *accepted.entry(framework).or_insert(0) += 1,
                Err(BrokenRule { rule, found, would_do, .. }) => {
                    assert!(!found.is_empty() && would_do.ends_with("would do"), "{would_do}");
                    *broken.entry((framework, rule)).or_insert(0) += 1;
                }
            }
        }
    }
    for framework in Framework::ALL {
        let n = accepted.get(&framework).copied().unwrap_or(0);
        assert!(n > 500, "{framework} accepts {n} plans: too few to compare");
        for rule in RULES.iter().filter(|rule| rule.is_of(framework)) {
            let n = broken.get(&(framework, rule.name)).copied().unwrap_or(0);
            assert!(n > 0, "no plan breaks first what {framework} asks: {}", rule.name);
        }
    }
}

/// A plan of a published run, as far as rules ask: a model's sizes, then its degrees.
fn published(
    [layers, heads, kv_heads, mlp]: [u64; 4],
    [devices, sequence, tensor, context, pipeline, chunks]: [u64; 6],
    zero: Zero,
) -> PlanShape {
    let data = devices / (tensor * context * pipeline);
    PlanShape {
        devices,
        global_batch: data * pipeline * 2,
        micro_batch: 1,
        sequence,
        layers,
        heads,
        kv_heads,
        mlp,
        tensor,
        sequence_parallel: tensor > 1,
        context,
        context_kind: ContextKind::Gather,
        experts: None,
        pipeline,
        chunks,
        group: pipeline,
        data,
        zero,
        shards: data * context,
        order: Order::default(),
        cut: CutShape::Layout,
        repeated: RepeatedLayers::None,
        modules: Modules::NONE,
    }
}

#[test]
fn what_clusters_have_run_is_accepted() {
    use Framework::{Any, Megatron, Torchtitan};
    let llama_8b = [32, 32, 8, 14336];
    let llama_70b = [80, 64, 8, 28672];
    let llama_405b = [126, 128, 8, 53248];
    let gpt = [96, 96, 96, 49152];
    let full = RepeatedLayers::All;
    for (framework, plan) in [
        (Torchtitan, published(llama_8b, [8, 8192, 1, 1, 1, 1], Zero::Weights)),
        (Megatron, published(llama_8b, [8, 8192, 1, 1, 1, 1], Zero::Weights)),
        (Megatron, published(llama_70b, [64, 8192, 4, 1, 8, 5], Zero::State)),
        (
            Torchtitan,
            PlanShape {
                repeated: full,
                ..published(llama_70b, [256, 8192, 8, 1, 1, 1], Zero::Weights)
            },
        ),
        (Megatron, published(llama_405b, [1024, 8192, 8, 2, 8, 8], Zero::State)),
        (Megatron, published(llama_405b, [16384, 131_072, 8, 16, 16, 1], Zero::Gradients)),
        (Megatron, published(gpt, [128, 2048, 4, 1, 8, 6], Zero::State)),
        (Megatron, published([48, 64, 64, 24576], [8, 2048, 8, 1, 1, 1], Zero::Nothing)),
        (Megatron, published(gpt, [64, 2048, 8, 1, 8, 3], Zero::Nothing)),
        (Megatron, published([105, 128, 128, 81920], [280, 2048, 8, 1, 35, 3], Zero::Nothing)),
        (Megatron, published([128, 160, 160, 102_400], [512, 2048, 8, 1, 64, 1], Zero::Nothing)),
    ] {
        assert_eq!(framework.check(&plan), Ok(()), "{plan:?}");
        assert_eq!(Any.check(&plan), Ok(()));
        assert!(accepts(framework, &plan));
    }
}
