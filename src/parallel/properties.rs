//! What must hold for every legal division of every model.

use proptest::prelude::*;

use super::ContextKind;
use super::Setting;
use super::legal_contexts;
use super::legal_widths;
use super::shard;

use super::width;
use crate::graph::Dag;
use crate::model::Attention;
use crate::model::Experts;
use crate::model::Model;
use crate::model::Module;
use crate::model::backward;
use crate::model::families;
use crate::model::op::Op;
use crate::model::shapes;
use crate::model::spec::Biases;
use crate::model::spec::Dropout;
use crate::model::spec::Family;
use crate::model::spec::Spec;
use crate::model::spec::examples;
use crate::units::Flops;

fn setting(tensor_parallel: u64, sequence_parallel: bool, attention: Attention) -> Setting {
    Setting {
        micro_batch: 2,
        sequence: 64,
        tensor_parallel,
        sequence_parallel,
        attention,
        ..Setting::ALONE
    }
}

/// Every legal width of a model, with and without sequence parallelism and stored attention.
fn settings(spec: &Spec) -> Vec<Setting> {
    let mut all = Vec::new();
    for width in legal_widths(spec) {
        for sequence_parallel in [false, true] {
            let whole_tokens = spec.experts.is_some() && width > 1 && !sequence_parallel;
            if whole_tokens || sequence_parallel && !64_u64.is_multiple_of(width) {
                continue;
            }
            for attention in [Attention::Stored, Attention::Recomputed] {
                let plain = setting(width, sequence_parallel, attention);
                all.extend(with_experts(spec, plain));
            }
        }
    }
    all
}

/// A setting with its experts whole on every device, divided as layers are, and dealt out.
fn with_experts(spec: &Spec, setting: Setting) -> Vec<Setting> {
    if spec.experts.is_none() {
        return vec![setting];
    }
    let width = setting.tensor_parallel;
    let degrees = [(1, 1), (1, width), (2, 1), (4, width)];
    let divided =
        degrees.map(|(expert, expert_tensor)| Setting { expert, expert_tensor, ..setting });
    let mut legal = Vec::new();
    for setting in divided {
        let is_new = !legal.contains(&setting);
        if is_new && width::check(&families::build(spec), setting).is_ok() {
            legal.push(setting);
        }
    }
    assert!(legal.len() > 1, "experts are divided");
    legal
}

/// Devices together hold each parameter once, further copies and padding apart.
fn parameters_add_up(model: &Model, setting: Setting) {
    let share = shard(model, setting).expect("the setting is legal");
    let sum = |count: fn(&super::LayerShare) -> u64| -> u64 {
        share.sequence.iter().map(|&kind| count(&share.kinds[kind])).sum()
    };
    if setting.expert_devices() != setting.tensor_parallel {
        // Those that hold all experts together are others than those that share a layer.
        let together = sum(|layer| layer.expert_parameters) * setting.expert_devices();
        let whole = Setting { expert: 1, expert_tensor: 1, ..setting };
        let whole = shard(model, whole).expect("whole experts are legal");
        let all = whole.sequence.iter().map(|&kind| whole.kinds[kind].expert_parameters);
        let all: u64 = all.sum();
        // Of a divided expert, biases of what is summed are held by all.
        let exact = setting.expert_tensor == 1 || !model.spec.experts.is_some_and(|e| e.biases);
        assert!(together >= all && (together == all || !exact), "{setting:?}");
        return;
    }
    let held = sum(|layer| layer.parameters);
    let beyond = |count: fn(&super::LayerShare) -> u64| -> u64 {
        share.sequence.iter().map(|&kind| count(&share.kinds[kind])).sum()
    };
    let exact = model.parameters() + model.training_head_parameters();
    let (copies, padding) = (beyond(|layer| layer.replicated), beyond(|layer| layer.padded));
    assert_eq!(held * setting.tensor_parallel, exact + copies + padding);
}

/// Devices together do each matmul once; only the named ones are done more than that, and exactly
/// as much more as copies and padding explain.
fn operations_add_up(model: &Model, setting: Setting) {
    let spec = &model.spec;
    let width = setting.tensor_parallel;
    let whole = Setting {
        tensor_parallel: 1,
        sequence_parallel: false,
        expert: 1,
        expert_tensor: 1,
        ..setting
    };
    let (one, all) = (
        shard(model, setting).expect("the setting is legal"),
        shard(model, whole).expect("one device is legal"),
    );
    for (part, layer) in one.kinds.iter().zip(&all.kinds) {
        for (part, pass) in [(&part.forward, &layer.forward), (&part.backward, &layer.backward)] {
            let of = |name: &str| part.nodes().iter().find(|op| op.name == name).map(Op::flops);
            for op in pass.nodes().iter().filter(|op| op.flops().0 > 0) {
                let together =
                    of(&op.name).expect("every device does every matmul").0 * u128::from(width);
                let (more, than) = match op.name.split('.').next().unwrap_or_default() {
                    "logits" => (spec.padded_vocabulary(width), spec.padded_vocabulary(1)),
                    "qkv" => {
                        let copies = spec.kv_heads.max(width);
                        (spec.heads + 2 * copies, spec.heads + 2 * spec.kv_heads)
                    }
                    // Not cut: each device does all of it, or its part of the sequence.
                    "project_in" | "project_out" | "transform" | "q_down" | "kv_down" | "join"
                    | "patch_tokens"
                        if !setting.sequence_parallel =>
                    {
                        (width, 1)
                    }
                    _ => (1, 1),
                };
                let expected = op.flops().0 * u128::from(more);
                assert_eq!(together * u128::from(than), expected, "{} at {width}", op.name);
            }
        }
    }
}

fn shapes_agree(model: &Model, setting: Setting) {
    let sizes = width::divided(&model.spec, setting);
    let scale = shard::scale(model, &sizes, setting);
    for layer in &model.kinds {
        let scale = shard::of_layer(scale, layer, setting);
        let divided = shard::divide(model, layer, setting);
        shapes::check(&divided.graph, scale);
        let backward = backward::derive(&divided, setting.attention, setting.repeated);
        shapes::check(&backward.graph, scale);
    }
}

/// The same setting on up to four devices that share the tokens, in every way that is legal.
fn with_contexts(spec: &Spec, setting: Setting) -> Vec<Setting> {
    let mut all = Vec::new();
    if setting.tensor_parallel > 2 {
        // Wider groups differ in sizes only.
        return all;
    }
    for context_kind in ContextKind::ALL {
        let setting = Setting { context_kind, ..setting };
        // The most devices say as much as any.
        let most = legal_contexts(spec, setting, 4).pop().filter(|&context| context > 1);
        all.extend(most.map(|context| Setting { context, ..setting }));
    }
    all
}

/// Devices that share the tokens of a sequence together do the work of one, each with all
/// parameters, and keep what one keeps but for copies of keys and values.
fn contexts_add_up(model: &Model, setting: Setting) {
    let alone = Setting { context: 1, ..setting };
    let (one, all) = (
        shard(model, setting).expect("the setting is legal"),
        shard(model, alone).expect("one device is legal"),
    );
    let flops = |pass: &Dag<Op>| pass.nodes().iter().map(Op::flops).sum::<Flops>();
    let devices = setting.context;
    for (part, layer) in one.kinds.iter().zip(&all.kinds) {
        assert_eq!(flops(&part.forward) * devices, flops(&layer.forward), "{setting:?}");
        assert_eq!(flops(&part.backward) * devices, flops(&layer.backward), "{setting:?}");
        assert_eq!(part.parameters, layer.parameters);
        assert_eq!((part.input * devices, part.output * devices), (layer.input, layer.output));
        let kept = part.kept * devices;
        if setting.context_kind == ContextKind::Ulysses {
            assert!(kept >= layer.kept, "{setting:?}: heads may be copied");
        } else {
            assert_eq!(kept, layer.kept, "{setting:?}");
        }
    }
}

fn check(spec: &Spec) {
    let model = families::build(spec);
    let repeated = Module::ALL.into_iter().collect();
    for setting in settings(spec) {
        parameters_add_up(&model, setting);
        operations_add_up(&model, setting);
        shapes_agree(&model, setting);
        shapes_agree(&model, Setting { repeated, ..setting });
        for divided in with_contexts(spec, setting) {
            parameters_add_up(&model, divided);
            shapes_agree(&model, divided);
            shapes_agree(&model, Setting { repeated, ..divided });
            contexts_add_up(&model, divided);
        }
    }
}

#[test]
fn shards_add_up_to_the_whole_in_every_family() {
    examples::all().iter().for_each(check);
}

#[test]
fn an_illegal_width_is_answered_with_the_legal_ones() {
    let spec = Spec { kv_heads: 2, mlp: 96, ..examples::gpt() };
    assert_eq!(legal_widths(&spec), [1, 2, 4, 8]);
    let model = families::build(&spec);
    let refused = shard(&model, setting(3, false, Attention::Stored)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "tensor-parallel width 3 does not divide the 8 heads; legal widths are 1, 2, 4, 8"
    );
}

#[test]
fn devices_beyond_the_key_value_heads_hold_copies_of_them() {
    let spec = Spec { kv_heads: 2, ..examples::gpt() };
    let model = families::build(&spec);
    let share = shard(&model, setting(8, false, Attention::Stored)).expect("8 is legal");
    // Eight devices hold eight key heads and eight value heads where there are two of each; each
    // has four elements with a row of 32 and a bias.
    let copied_heads = 2 * (8 - 2) * 4 * (32 + 1);
    // Norms and the biases of what is summed are held by all.
    let whole = 2 * (2 * 32) + 2 * 32;
    assert_eq!(share.kinds[1].replicated, copied_heads + 7 * whole);
}

#[test]
fn a_sequence_beyond_the_learned_positions_is_refused_and_beyond_rotary_ones_is_not() {
    for spec in examples::all() {
        let model = families::build(&spec);
        let long = Setting { sequence: 65, ..setting(1, false, Attention::Stored) };
        assert_eq!(shard(&model, long).is_err(), spec.positions.is_some(), "{:?}", spec.family);
    }
}

#[test]
fn numbers_that_cannot_be_counted_are_refused() {
    let model = families::build(&Spec { positions: None, ..examples::gpt() });
    for (micro_batch, sequence) in
        [(u64::MAX, 1), (1, u64::MAX), (1 << 30, 1 << 30), (0, 1), (1, 0)]
    {
        let base = setting(1, false, Attention::Stored);
        assert!(shard(&model, Setting { micro_batch, sequence, ..base }).is_err());
    }
}

/// Any model that a reader of `input` would let through.
fn any_spec() -> impl Strategy<Value = Spec> {
    let shapes = (0..examples::all().len(), 1_u64..4, 0_u32..4, 0_u32..4, 1_u64..9, 1_u64..5);
    let rest = (1_u64..700, any::<[bool; 8]>(), proptest::option::of(1_u64..300));
    (shapes, rest).prop_map(|((family, layers, kv, group, head, mlp), (vocabulary, flags, pad))| {
        let base = examples::all().swap_remove(family);
        // Latent attention has keys for every head, and elements with and without a position.
        let (group, head) = if base.latent.is_some() { (0, head + 1) } else { (group, head) };
        // Every head of T5 has keys of its own.
        let group = if base.family == Family::T5 { 0 } else { group };
        let heads = (1 << kv) * (1 << group);
        let experts = base.experts.map(|experts| Experts {
            mlp: mlp * heads,
            shared: experts.shared.map(|_| 2 * mlp * heads),
            ..experts
        });
        let hidden = if base.embedding == base.hidden { 32 } else { 48 };
        Spec {
            layers,
            heads,
            kv_heads: 1 << kv,
            head,
            rotary: head.div_ceil(2),
            mlp: mlp * heads,
            experts,
            vocabulary,
            vocabulary_multiple: pad,
            hidden,
            embedding: if base.embedding == base.hidden { hidden } else { 16 },
            biases: Biases { qkv: flags[0], attention_out: flags[1], mlp: flags[2] },
            dropout: Dropout {
                embedding: flags[3],
                attention: flags[4],
                hidden: flags[5],
                activation: flags[6],
            },
            tied: flags[7],
            ..base
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn shards_add_up_to_the_whole_in_any_model(spec in any_spec()) {
        check(&spec);
    }
}
