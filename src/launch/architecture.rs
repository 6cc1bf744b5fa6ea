//! A model in the words of Megatron's core: what it has a word for, and the first thing it has not.

use super::CannotLaunch;
use super::Target;
use crate::model::Experts;
use crate::model::Latent;
use crate::model::Reach;
use crate::model::RouterBias;
use crate::model::spec::Activation;
use crate::model::spec::Branches;
use crate::model::spec::Family;
use crate::model::spec::Norm;
use crate::model::spec::NormPlace;
use crate::model::spec::QkNorm;
use crate::model::spec::Spec;

/// What stands between the matmuls of an MLP, in Megatron's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlpKind {
    /// GELU, its default.
    Gelu,
    /// A gate with `SiLU`.
    Swiglu,
    /// A squared `ReLU`.
    SquaredRelu,
}

/// Which matmuls add biases, in Megatron's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BiasKind {
    /// All of them, its default.
    All,
    /// None.
    None,
    /// Queries, keys and values alone.
    Qkv,
}

/// A model in the words of Megatron's core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture<'a> {
    /// The numbers.
    pub spec: &'a Spec,
    /// Between the matmuls of the MLP.
    pub mlp: MlpKind,
    /// Which matmuls add biases.
    pub biases: BiasKind,
    /// Whether norms are root-mean-square ones.
    pub rms: bool,
    /// Hundredths of a head that carry a rotary position; `None` where positions are learned.
    pub rotary_percent: Option<u64>,
    /// For each layer whether it has experts, where some have and some have not.
    pub frequency: Option<Vec<bool>>,
    /// A window that every layer has.
    pub window: Option<u64>,
}

impl<'a> Architecture<'a> {
    /// That of a model.
    pub fn of(target: Target, spec: &'a Spec) -> Result<Self, CannotLaunch> {
        let no_word = |reason: &str| CannotLaunch::Model {
            target,
            reason: reason.to_owned(),
            would_do: "`--launchable any` without `--for` plans it, and writes no files".into(),
        };
        if let Some(reason) = unknown(spec) {
            return Err(no_word(reason));
        }
        let gated = spec.gated || spec.family == Family::Llama;
        let mlp = match (spec.activation, gated) {
            (Activation::Gelu, false) => MlpKind::Gelu,
            (Activation::Silu, true) => MlpKind::Swiglu,
            (Activation::SquaredRelu, false) => MlpKind::SquaredRelu,
            _ => return Err(no_word("its activation is no GELU, squared ReLU or SwiGLU")),
        };
        let biases = match (spec.biases.qkv, spec.biases.attention_out, spec.biases.mlp) {
            (true, true, true) => BiasKind::All,
            (false, false, false) => BiasKind::None,
            (true, false, false) => BiasKind::Qkv,
            _ => return Err(no_word("only some of its matmuls add biases")),
        };
        let rms = match (spec.family, spec.norm) {
            (Family::Llama, _) | (_, Norm::Rms) => true,
            (_, Norm::Layer) => false,
            _ => return Err(no_word("its norms have no gain or no bias")),
        };
        let variants: Vec<_> = (0..spec.layers).map(|at| variant(spec, at)).collect();
        let reach = variants.first().map_or(Reach::All, |variant| variant.reach);
        if variants.iter().any(|variant| variant.reach != reach) {
            return Err(no_word("the windows of its layers differ"));
        }
        let sparse: Vec<bool> = variants.iter().map(|variant| variant.experts).collect();
        let mixed = spec.experts.is_some() && sparse.iter().any(|has| !has);
        Ok(Self {
            spec,
            mlp,
            biases,
            rms,
            rotary_percent: match (spec.positions, spec.latent) {
                (Some(_), _) => None,
                (None, Some(_)) => Some(100),
                (None, None) => Some(100 * spec.rotary / spec.head.max(1)),
            },
            frequency: mixed.then_some(sparse),
            window: match reach {
                Reach::All => None,
                Reach::Window(tokens) => Some(tokens),
                Reach::Every => return Err(no_word("its tokens attend to those after them")),
                Reach::Chunk(_) => return Err(no_word("its tokens attend within chunks")),
            },
        })
    }

    /// What queries, keys and values are made from, where that is not the token itself.
    pub fn latent(&self) -> Option<Latent> {
        self.spec.latent
    }

    /// What stands in the place of the MLP in some layers.
    pub fn experts(&self) -> Option<Experts> {
        self.spec.experts
    }
}

/// How the layer at a place differs, from 0 on.
fn variant(spec: &Spec, at: u64) -> crate::model::Variant {
    spec.variant(usize::try_from(at).unwrap_or(usize::MAX))
}

/// What Megatron's core has no option for, beside what its options leave open.
fn unknown(spec: &Spec) -> Option<&'static str> {
    let Spec { experts, .. } = spec;
    let rotary_everywhere = (0..spec.layers).all(|at| variant(spec, at).rotary);
    let cases = [
        (!spec.own.is_empty() || !spec.own_cut.is_empty(), "its layers are a user's own"),
        (spec.family == Family::T5, "it has an encoder and a decoder"),
        (!spec.family.is_causal(), "it is an encoder"),
        (spec.embedding != spec.hidden, "its embedding is projected"),
        (spec.norm_place != NormPlace::Before, "its norms do not stand before each branch"),
        (!spec.final_norm, "nothing is normed before its head"),
        (spec.branches != Branches::InTurn, "attention and MLP stand side by side"),
        (spec.capped.scores || spec.capped.logits, "its scores or logits are capped"),
        (spec.embedding_scaled || spec.embedding_norm, "its embedding is scaled or normed"),
        (spec.head_bias, "its head adds a bias"),
        (spec.sinks, "its attention has sinks"),
        (spec.types.is_some(), "its tokens have types"),
        (spec.positions.is_none() && spec.rotary == 0, "the mask tells its positions"),
        (!rotary_everywhere, "some of its layers know no positions"),
        (
            matches!(spec.qk_norm, QkNorm::AllHeads | QkNorm::PerHeadWithoutGain),
            "its queries and keys are normed over all heads or without a gain",
        ),
        (experts.is_some_and(|one| one.biases), "its experts add biases"),
        (
            experts.is_some_and(|one| one.router_bias == RouterBias::Trained),
            "its router has a bias",
        ),
        (experts.is_some_and(|one| one.shared_is_weighted), "its shared expert is weighted"),
    ];
    cases.into_iter().find_map(|(is, reason)| is.then_some(reason))
}
