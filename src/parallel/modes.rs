//! What a division of a model offers to choose from: how much of each layer is done twice.
//!
//! Memory is had for time: the less a layer keeps for its backward pass, the more it repeats. Each
//! way is one [`Mode`], as data: its passes, what it keeps and what it makes again.

use super::Illegal;
use super::LayerShare;
use super::Setting;
use super::Share;
use super::shard;
use crate::graph::Dag;
use crate::model::Attention;
use crate::model::Model;
use crate::model::Module;
use crate::model::Modules;
use crate::model::op::Op;
use crate::units::Bytes;
use crate::units::Flops;

/// What of each layer is done once more for its backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repeats {
    /// Nothing.
    Nothing,
    /// Some of its modules.
    Modules(Modules),
    /// All of it, from its input.
    Layer,
}

impl Repeats {
    /// All that there is to choose from in a dense model, what repeats less first: a module is only repeated where
    /// that leaves something out of memory, which attention's core does not when its scores are
    /// recomputed anyway.
    pub fn every(attention: Attention) -> Vec<Self> {
        let useful = |module: &Module| match module {
            Module::CoreAttention => attention == Attention::Stored,
            Module::Mlp | Module::LayerNorm => true,
            // Models without experts or latent attention have none of these.
            Module::Moe
            | Module::MoeActivation
            | Module::SharedExperts
            | Module::LatentUpProjection => false,
        };
        let useful: Vec<Module> = Module::ALL.into_iter().filter(useful).collect();
        let mut sets: Vec<Modules> = vec![Modules::NONE];
        for module in useful {
            let more: Vec<Modules> = sets.iter().map(|set| set.with(module)).collect();
            sets.extend(more);
        }
        sets.sort_by_key(|set| set.iter().count());
        let selective = sets.into_iter().skip(1).map(Self::Modules);
        [Self::Nothing].into_iter().chain(selective).chain([Self::Layer]).collect()
    }
}

impl std::fmt::Display for Repeats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("none"),
            Self::Modules(modules) => write!(f, "{modules}"),
            Self::Layer => f.write_str("full"),
        }
    }
}

/// One way to train all kinds of layers of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// What is repeated.
    pub repeats: Repeats,
    /// In the order of the share's kinds.
    pub kinds: Vec<LayerMode>,
}

/// One way to train one kind of layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerMode {
    /// From what enters the layer to what leaves it.
    pub forward: Dag<Op>,
    /// What runs once more before the backward pass, where that is a pass of its own.
    pub again: Option<Dag<Op>>,
    /// From the gradient of what leaves to those of the weights and of what enters, with the
    /// modules that it repeats.
    pub backward: Dag<Op>,
    /// What crosses to a device from the layer before.
    pub input: Bytes,
    /// What stays in memory from the forward to the backward pass.
    pub kept: Bytes,
    /// What is made again and in memory on top while the layer's own backward pass runs, at most.
    pub remade: Bytes,
    /// What a pass holds for a moment on top of all that.
    pub working: Bytes,
    /// Of what is kept or made again, the part that is among `working` too.
    pub passing: Bytes,
    /// Operations that are done twice.
    pub repeated: Flops,
}

/// What `offered` makes of the share of `model` in `setting`, in that order; what the setting itself
/// repeats is not asked for.
pub fn modes(model: &Model, setting: Setting, offered: &[Repeats]) -> Result<Vec<Mode>, Illegal> {
    let with = |repeated: Modules| shard(model, Setting { repeated, ..setting });
    let plain = with(Modules::NONE)?;
    offered
        .iter()
        .map(|&repeats| {
            let kinds = match repeats {
                Repeats::Nothing => selective(&plain, &plain),
                Repeats::Modules(modules) => selective(&with(modules)?, &plain),
                Repeats::Layer => plain.kinds.iter().map(whole).collect(),
            };
            Ok(Mode { repeats, kinds })
        })
        .collect()
}

fn selective(share: &Share, plain: &Share) -> Vec<LayerMode> {
    let kinds = share.kinds.iter().zip(&plain.kinds);
    kinds
        .map(|(layer, plain)| LayerMode {
            forward: layer.forward.clone(),
            again: None,
            backward: layer.backward.clone(),
            input: layer.input,
            kept: layer.kept,
            remade: Bytes(plain.kept.0.saturating_sub(layer.kept.0)),
            working: layer.working,
            passing: layer.passing,
            repeated: layer.repeated,
        })
        .collect()
}

/// A layer that keeps its input only: its forward pass runs once more and then keeps what it did
/// not keep before.
fn whole(layer: &LayerShare) -> LayerMode {
    let forward: Flops = layer.forward.nodes().iter().map(Op::flops).sum();
    LayerMode {
        forward: layer.forward.clone(),
        again: Some(layer.forward.clone()),
        backward: layer.backward.clone(),
        input: layer.input,
        kept: layer.input,
        remade: Bytes(layer.kept.0.saturating_sub(layer.input.0)),
        working: layer.working,
        passing: layer.passing,
        repeated: layer.repeated + forward,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::families;
    use crate::model::op::CollectiveKind;
    use crate::model::op::Work;
    use crate::model::spec::Spec;
    use crate::model::spec::examples;

    fn stored(tensor_parallel: u64, sequence_parallel: bool) -> Setting {
        let attention = Attention::Stored;
        Setting { sequence: 64, tensor_parallel, sequence_parallel, attention, ..Setting::ALONE }
    }

    fn transformer(spec: &Spec, setting: Setting, modules: &[Module]) -> LayerMode {
        let modules = modules.iter().copied().collect();
        let model = families::build(spec);
        let mut found = modes(&model, setting, &[Repeats::Modules(modules)]).unwrap();
        found.remove(0).kinds.remove(1)
    }

    fn exchanges(pass: &Dag<Op>) -> Vec<CollectiveKind> {
        let mut found: Vec<CollectiveKind> = Vec::new();
        for op in pass.nodes() {
            if let Work::Collective(collective) = &op.work {
                found.push(collective.kind);
            }
        }
        found.sort();
        found
    }

    fn flops(pass: &Dag<Op>, names: &[&str]) -> Flops {
        let named = pass.nodes().iter().filter(|op| names.contains(&op.name.as_str()));
        named.map(Op::flops).sum()
    }

    #[test]
    fn attention_s_core_leaves_out_its_probabilities_and_is_done_as_a_whole() {
        for spec in examples::all() {
            for (width, scattered) in [(1, false), (2, false), (2, true)] {
                let setting = stored(width, scattered || width > 1 && spec.experts.is_some());
                let plain = transformer(&spec, setting, &[]);
                let core = transformer(&spec, setting, &[Module::CoreAttention]);
                let dropped = if spec.dropout.attention { 5 } else { 2 };
                let per_pair = dropped + if spec.capped.scores { 2 } else { 0 };
                let pairs = 64 * 64 * spec.heads / width;
                assert_eq!(plain.kept.0 - core.kept.0, per_pair * pairs, "{:?}", spec.family);
                assert_eq!(core.remade.0, per_pair * pairs);
                assert_eq!(core.repeated, flops(&plain.forward, &["scores", "context"]));
                assert_eq!(exchanges(&core.backward), exchanges(&plain.backward));
                let names: Vec<&str> =
                    core.backward.nodes().iter().map(|op| op.name.as_str()).collect();
                assert!(names.contains(&"scores.again") && names.contains(&"context.again"));
                assert!(!names.contains(&"softmax.again"), "it runs behind the scores, as before");
            }
        }
    }

    #[test]
    fn an_mlp_leaves_out_all_between_its_matmuls_and_exchanges_again() {
        use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
        let spec = examples::gpt();
        for (width, scattered, more) in [
            (1, false, vec![]),
            (4, false, vec![AllReduce]),
            // Its input is gathered again in any case.
            (4, true, vec![ReduceScatter]),
        ] {
            let setting = stored(width, scattered);
            let plain = transformer(&spec, setting, &[]);
            let mlp = transformer(&spec, setting, &[Module::Mlp]);
            // What the activation reads and makes, each of 128 elements in two bytes.
            assert_eq!(plain.kept.0 - mlp.kept.0, 2 * 64 * 128 * 2 / width);
            assert_eq!(mlp.repeated, flops(&plain.forward, &["mlp_up", "mlp_down"]));
            let mut expected = exchanges(&plain.backward);
            expected.extend(more);
            expected.sort();
            assert_eq!(exchanges(&mlp.backward), expected, "{width} {scattered}");
            assert_eq!(exchanges(&mlp.backward).contains(&AllGather), scattered);
        }
    }

    #[test]
    fn norms_leave_out_their_results() {
        let spec = examples::gpt();
        for (width, parts) in [(1, 1), (4, 4)] {
            let setting = stored(width, parts > 1);
            let plain = transformer(&spec, setting, &[]);
            let norms = transformer(&spec, setting, &[Module::LayerNorm]);
            assert_eq!(plain.kept.0 - norms.kept.0, 2 * 64 * 32 * 2 / parts);
            assert_eq!(norms.repeated, Flops::ZERO, "there is no matmul in it");
            let names = norms.backward.nodes().iter().map(|op| op.name.as_str());
            assert_eq!(names.filter(|name| name.ends_with("norm.again")).count(), 2);
        }
    }

    #[test]
    fn more_modules_never_keep_more_and_no_mode_keeps_less_than_the_layer_s_input() {
        for spec in examples::all() {
            let model = families::build(&spec);
            for setting in [stored(1, false), stored(2, false), stored(2, true)] {
                if spec.experts.is_some()
                    && !setting.sequence_parallel
                    && setting.tensor_parallel > 1
                {
                    continue;
                }
                let offered = Repeats::every(Attention::Stored);
                assert_eq!(offered.len(), 1 + 7 + 1);
                let found = modes(&model, setting, &offered).unwrap();
                for kind in 0..3 {
                    let [all, rest @ ..] = &found[..] else { panic!("nothing is one of them") };
                    for mode in rest {
                        let (all, mode) = (&all.kinds[kind], &mode.kinds[kind]);
                        assert!(mode.kept <= all.kept.max(mode.input));
                        assert!(mode.repeated >= all.repeated);
                        assert_eq!(mode.kept + mode.remade, all.kept.max(mode.kept));
                    }
                }
            }
        }
    }

    #[test]
    fn a_repeated_layer_keeps_its_input_and_runs_forward_twice() {
        let model = families::build(&examples::gpt());
        let found = modes(&model, stored(1, false), &[Repeats::Nothing, Repeats::Layer]).unwrap();
        let (plain, full) = (&found[0].kinds[1], &found[1].kinds[1]);
        assert_eq!(full.kept.0, 64 * 32 * 2);
        assert_eq!(full.again.as_ref(), Some(&plain.forward));
        assert_eq!(full.repeated, plain.forward.nodes().iter().map(Op::flops).sum());
        assert_eq!((plain.again.as_ref(), plain.remade), (None, Bytes::ZERO));
    }

    #[test]
    fn modules_of_experts_and_latents_leave_out_what_they_make() {
        let mixture = examples::all().into_iter().find(|spec| spec.experts.is_some());
        let mixture = mixture.expect("some have experts");
        let latent = examples::all()
            .into_iter()
            .find(|spec| spec.latent.is_some_and(|latent| latent.query.is_some()));
        let latent = latent.expect("some are latent");
        let setting = Setting { attention: Attention::Recomputed, ..stored(1, false) };
        let kept = |spec: &Spec, modules: &[Module]| {
            let model = families::build(spec);
            let modules = modules.iter().copied().collect();
            let mut found = modes(&model, setting, &[Repeats::Modules(modules)]).unwrap();
            let kinds = found.remove(0).kinds;
            let last = kinds.len() - 2;
            kinds[last].kept.0
        };
        let (rows, f) = (64 * 2, 64);
        let all = kept(&mixture, &[]);
        // The weighed product is made again; gate and up are there.
        assert_eq!(all - kept(&mixture, &[Module::MoeActivation]), 2 * rows * f);
        // Of all that stands in the place of the MLP nothing is kept but its input: logits and
        // weights in four bytes, rows, gate, up and weighed product in two.
        let inside = 4 * 64 * (4 + 2) + 2 * rows * (32 + 3 * f);
        assert_eq!(all - kept(&mixture, &[Module::Moe]), inside);
        let both = [Module::Moe, Module::MoeActivation];
        assert_eq!(kept(&mixture, &both), kept(&mixture, &[Module::Moe]), "one is in the other");
        // Queries and keys of 8 heads of 12, values of 8, and both normed latents; what they are
        // made from is kept, the key's position too, which nothing but its own turn needs.
        let all = kept(&latent, &[]);
        let without = kept(&latent, &[Module::LatentUpProjection]);
        let made = 2 * 64 * (8 * (12 + 12 + 8) + 24 + 16);
        assert_eq!(all - without, made - 2 * 64 * 4);
        let shared = kept(&latent, &[]) - kept(&latent, &[Module::SharedExperts]);
        assert_eq!(shared, 2 * 64 * 3 * 32);
    }

    #[test]
    fn modes_are_written_as_users_know_them() {
        let names: Vec<String> =
            Repeats::every(Attention::Recomputed).iter().map(Repeats::to_string).collect();
        assert_eq!(names, ["none", "mlp", "layernorm", "mlp+layernorm", "full"]);
    }
}
