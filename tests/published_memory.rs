//! Published training runs fit into the memory that they ran in, by our account of it.
//!
//! Each device had 80 GB; what clusters have run is at most 84 GiB here, the tolerance of the
//! account (allocators, and choices of a stack that were not published). Run with
//! `--nocapture` for the table.

use std::ops::Range;

use phaze::input;
use phaze::model::Attention;
use phaze::model::Module;
use phaze::model::Modules;
use phaze::model::Optimizer;
use phaze::model::Stack;
use phaze::parallel::LayerShare;
use phaze::parallel::Repeats;
use phaze::parallel::Setting;
use phaze::parallel::Share;
use phaze::parallel::modes;
use phaze::parallel::shard;
use phaze::parallel::transient;
use phaze::parallel::zero::ParameterBytes;
use phaze::parallel::zero::Sharding;
use phaze::parallel::zero::Zero;
use phaze::plan::PassOrder;
use phaze::units::Bytes;

/// A run as it was published; micro-batches that were not are enough to fill the pipeline.
#[derive(Clone, Copy)]
struct Run {
    model: &'static str,
    devices: u64,
    sequence: u64,
    micro_batch: u64,
    micro_batches: u64,
    tensor: u64,
    sequence_parallel: bool,
    context: u64,
    pipeline: u64,
    chunks: usize,
    zero: Zero,
    repeats: Repeats,
    attention: Attention,
}

/// What frameworks repeat selectively: attention's core.
fn selective() -> Repeats {
    Repeats::Modules(Modules::NONE.with(Module::CoreAttention))
}

const RUN: Run = Run {
    model: "llama3-8b",
    devices: 8,
    sequence: 8192,
    micro_batch: 1,
    micro_batches: 16,
    tensor: 1,
    sequence_parallel: false,
    context: 1,
    pipeline: 1,
    chunks: 1,
    zero: Zero::Weights,
    repeats: Repeats::Nothing,
    attention: Attention::Recomputed,
};

fn runs() -> Vec<Run> {
    let wide = Run { sequence_parallel: true, zero: Zero::State, ..RUN };
    let mut runs = vec![
        RUN,
        Run {
            model: "llama3-70b",
            devices: 64,
            micro_batches: 64,
            tensor: 4,
            pipeline: 8,
            chunks: 5,
            ..wide
        },
        Run {
            model: "llama3-70b",
            devices: 256,
            tensor: 8,
            zero: Zero::Weights,
            repeats: Repeats::Layer,
            ..wide
        },
        Run {
            model: "llama3-405b",
            devices: 1024,
            micro_batches: 32,
            tensor: 8,
            context: 2,
            pipeline: 8,
            chunks: 8,
            ..wide
        },
        Run {
            model: "llama3-405b",
            devices: 16384,
            sequence: 131_072,
            micro_batches: 16,
            tensor: 8,
            context: 16,
            pipeline: 16,
            zero: Zero::Gradients,
            ..wide
        },
        Run {
            model: "gpt3-175b",
            devices: 128,
            sequence: 2048,
            micro_batches: 64,
            tensor: 4,
            pipeline: 8,
            chunks: 6,
            ..wide
        },
    ];
    // Korthikanti et al., MLSys 2023, Table 5: each with everything recomputed and no sequence
    // parallelism, and with attention's core recomputed and sequence parallelism.
    for (model, micro_batch, micro_batches, pipeline, chunks) in [
        ("megatron-22b", 4, 1, 1, 1),
        ("gpt3-175b", 1, 64, 8, 3),
        ("megatron-530b", 1, 280, 35, 3),
        ("megatron-1t", 1, 512, 64, 1),
    ] {
        for (repeats, sequence_parallel) in [(Repeats::Layer, false), (selective(), true)] {
            runs.push(Run {
                model,
                devices: 8 * pipeline,
                sequence: 2048,
                micro_batch,
                micro_batches,
                tensor: 8,
                sequence_parallel,
                pipeline,
                chunks,
                zero: Zero::Nothing,
                repeats,
                attention: Attention::Stored,
                ..RUN
            });
        }
    }
    runs
}

/// The layers of each virtual stage, embedding and head among them: as many transformer layers in
/// each, or, where that does not divide, embedding and head in place of one.
fn even_stages(n_layers: usize, n_stages: usize) -> Vec<Range<usize>> {
    let transformers = n_layers - 2;
    let divides = transformers.is_multiple_of(n_stages);
    let each = if divides { transformers } else { n_layers } / n_stages;
    let first = usize::from(divides);
    assert_eq!(each * n_stages + 2 * first, n_layers, "the layers divide one way or the other");
    let end = |stage: usize| if stage == n_stages { n_layers } else { first + stage * each };
    (0..n_stages).map(|at| if at == 0 { 0..end(1) } else { end(at)..end(at + 1) }).collect()
}

/// Bytes of the fullest device, by what they are: state, kept, for a moment.
struct Fullest {
    rank: usize,
    state: u128,
    kept: u128,
    moment: u128,
}

impl Fullest {
    fn total(&self) -> u128 {
        self.state + self.kept + self.moment
    }
}

fn fullest(run: &Run) -> Fullest {
    let model = input::model(run.model).unwrap();
    let setting = Setting {
        micro_batch: run.micro_batch,
        sequence: run.sequence,
        tensor_parallel: run.tensor,
        sequence_parallel: run.sequence_parallel,
        context: run.context,
        attention: run.attention,
        ..Setting::ALONE
    };
    let share = shard(&model, setting).unwrap();
    let mode = modes(&model, setting, &[run.repeats]).unwrap().remove(0);
    let ranks = usize::try_from(run.pipeline).unwrap();
    let stages = even_stages(share.sequence.len(), ranks * run.chunks);
    let order = match run.chunks {
        1 => PassOrder::OneForwardOneBackward,
        chunks => PassOrder::Interleaved { chunks, group: run.pipeline },
    };
    order.check(ranks, run.micro_batches).unwrap();
    // Whatever is kept in flight or made again, logits are counted with the pass that runs.
    let lasts = |kind: usize| -> (u64, u64) {
        let layer = &mode.kinds[kind];
        match run.repeats {
            Repeats::Layer => (layer.kept.0, layer.remade.0.saturating_sub(layer.passing.0)),
            _ => (layer.kept.0 - layer.passing.0, layer.remade.0),
        }
    };
    let of_rank = |rank: usize| {
        let own = (0..run.chunks).flat_map(|chunk| stages[chunk * ranks + rank].clone());
        let kinds: Vec<usize> = own.map(|layer| share.sequence[layer]).collect();
        let kept = order.peak(ranks, run.micro_batches, rank, |stage| {
            let kinds = stages[stage].clone().map(|layer| share.sequence[layer]);
            kinds.map(|kind| u128::from(lasts(kind).0)).sum()
        });
        let remade = kinds.iter().map(|&kind| lasts(kind).1).max().unwrap_or(0);
        let layers: Vec<&LayerShare> = kinds.iter().map(|&kind| &share.kinds[kind]).collect();
        let moment = transient(layers.iter().copied()).0 + remade;
        let state = state(run, &share, &layers);
        Fullest { rank, state, kept, moment: moment.into() }
    };
    (0..ranks).map(of_rank).max_by_key(Fullest::total).unwrap()
}

/// Weights, gradients and state of a device, with what is gathered of them while a pass runs.
fn state(run: &Run, share: &Share, layers: &[&LayerShare]) -> u128 {
    let bytes = ParameterBytes::new(Optimizer::AdamMixed, &Stack::IDEAL);
    let replicas = run.devices / run.tensor / run.pipeline;
    let sharding = Sharding::new(run.zero, replicas);
    let mut each: Vec<u64> = layers.iter().map(|layer| layer.parameters).collect();
    // A head that uses the embedding's table without being with it has a copy.
    let has_table = layers.iter().any(|layer| layer.input == Bytes::ZERO);
    if let (Some(tied), Some(last), false) = (share.tied, each.last_mut(), has_table) {
        *last += if layers.iter().any(|layer| layer.ends_in_loss()) { tied.parameters } else { 0 };
    }
    let held = sharding.held(each.iter().sum(), bytes).total();
    u128::from(held.0 + sharding.gathered(&each, bytes).total().0)
}

fn gib(bytes: u128) -> f64 {
    bytes as f64 / (1_u64 << 30) as f64
}

/// How a run is written.
fn written(run: &Run) -> String {
    let Run { model, devices, tensor, context, pipeline, chunks, repeats, .. } = run;
    let (axes, zero) = (format!("t{tensor} c{context} p{pipeline} v{chunks}"), run.zero.stage());
    format!("{model} on {devices}: {axes} zero {zero} recompute {repeats}")
}

#[test]
fn what_clusters_have_run_fits_by_our_account() {
    let runs = runs();
    assert_eq!(runs.len(), 6 + 8);
    for run in &runs {
        let fullest = fullest(run);
        let Fullest { rank, state, kept, moment } = fullest;
        let [state, kept, moment] = [state, kept, moment].map(gib);
        let (how, total) = (written(run), gib(fullest.total()));
        println!(
            "{how:<66} rank {rank:>2}: state {state:4.1} + kept {kept:4.1} + moment {moment:3.1} \
             = {total:4.1} GiB"
        );
        assert!(total <= 84.0, "{how}: {total:.1} GiB");
    }
}
