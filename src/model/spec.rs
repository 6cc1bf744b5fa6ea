//! A model by its numbers, before any layer is written.

use serde::Deserialize;
use serde::Serialize;

use super::Experts;
use super::Latent;
use super::Reach;
use super::Variant;
use super::dim::MOST_OWN;
use super::dim::Sizes;
use super::op::VectorKind;

/// Which family a model belongs to: how its layers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Encoder with norms after the residuals, trained with a masked-language-model head.
    Bert,
    /// The same with norms before the residuals and a last one, as Megatron has it.
    MegatronBert,
    /// Decoder with layer norms before, learned positions and one hidden layer in the MLP.
    Gpt,
    /// GPT-like, with projections in and out, and norms before or after.
    Opt,
    /// Decoder with root-mean-square norms, rotary positions and a gated MLP.
    Llama,
    /// GPT-like with rotary positions, attention and MLP side by side.
    GptNeox,
    /// An encoder whose output each layer of a decoder attends to.
    T5,
    /// An encoder of the patches of an image, trained to tell what it shows.
    Vit,
    /// Any other decoder: its numbers say where norms stand, what they are, whether the MLP has a
    /// gate, how positions are told and how layers differ.
    Decoder,
}

impl Family {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::MegatronBert => "megatron-bert",
            Self::Gpt => "gpt",
            Self::Opt => "opt",
            Self::Llama => "llama",
            Self::GptNeox => "gpt_neox",
            Self::T5 => "t5",
            Self::Vit => "vit",
            Self::Decoder => "decoder",
        }
    }

    /// Whether a token attends only to those before it and to itself.
    pub fn is_causal(self) -> bool {
        match self {
            Self::Bert | Self::MegatronBert | Self::Vit => false,
            Self::Gpt | Self::Opt | Self::Llama | Self::GptNeox | Self::T5 | Self::Decoder => true,
        }
    }
}

/// What stands between the matmuls of the MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// GELU, in any of its forms.
    Gelu,
    /// max(x, 0).
    Relu,
    /// max(x, 0)².
    SquaredRelu,
    /// x · sigmoid(x).
    Silu,
}

impl Activation {
    /// Its vector work.
    pub fn kind(self) -> VectorKind {
        match self {
            Self::Gelu => VectorKind::Gelu,
            Self::Relu => VectorKind::Relu,
            Self::SquaredRelu => VectorKind::SquaredRelu,
            Self::Silu => VectorKind::Silu,
        }
    }
}

/// Where dropout is applied; a place with probability 0 has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "four places, each with or without")]
pub struct Dropout {
    /// After the embedding.
    pub embedding: bool,
    /// On attention's probabilities.
    pub attention: bool,
    /// Before each residual.
    pub hidden: bool,
    /// After the MLP's activation.
    pub activation: bool,
}

/// Which matmuls add a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Biases {
    /// Queries, keys and values.
    pub qkv: bool,
    /// Attention's output.
    pub attention_out: bool,
    /// Both matmuls of the MLP.
    pub mlp: bool,
}

/// Where norms stand, for families that have both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormPlace {
    /// At the start of each branch; the residual stream itself is never normed.
    Before,
    /// After each residual.
    After,
    /// At the start and at the end of each branch, before its residual.
    Around,
    /// At the end of each branch alone, before its residual.
    AtEnd,
}

/// What norms are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// Layer norms with gain and bias.
    Layer,
    /// Layer norms with a gain only.
    LayerWithoutBias,
    /// Root-mean-square norms with a gain.
    Rms,
    /// Root-mean-square norms without a gain.
    RmsWithoutGain,
}

impl Norm {
    /// Its vector work.
    pub fn kind(self) -> VectorKind {
        match self {
            Self::Layer | Self::LayerWithoutBias => VectorKind::LayerNorm,
            Self::Rms | Self::RmsWithoutGain => VectorKind::RmsNorm,
        }
    }
}

/// Whether queries and keys are normed before they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QkNorm {
    /// They are not.
    None,
    /// Within each head, with one gain for all heads.
    PerHead,
    /// Within each head, without a gain.
    PerHeadWithoutGain,
    /// Over all heads together, with a gain for each element.
    AllHeads,
}

/// How attention and MLP of a layer follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Branches {
    /// The MLP reads what attention added to.
    InTurn,
    /// Both read the layer's input, each through a norm of its own.
    SideBySide,
    /// Both read the layer's input through the same norm.
    SideBySideWithOneNorm,
}

/// Which values are squeezed between two bounds by a hyperbolic tangent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capped {
    /// The scores of attention.
    pub scores: bool,
    /// The logits.
    pub logits: bool,
}

/// A model by its numbers.
///
/// Invariant, kept by the readers of `input`: every size is at least 1 and at most 2²⁴, layers at
/// most 100,000; `kv_heads` divides `heads`; `rotary` is no more than `head`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of published models")]
pub struct Spec {
    /// What its user calls it.
    pub name: String,
    /// How its layers are written.
    pub family: Family,
    /// Transformer layers.
    pub layers: u64,
    /// Elements of a token between layers.
    pub hidden: u64,
    /// Query heads.
    pub heads: u64,
    /// Key-value heads; as many as query heads without grouping.
    pub kv_heads: u64,
    /// Elements of a head.
    pub head: u64,
    /// Elements between the MLP's matmuls; 0 where all layers have experts in its place.
    pub mlp: u64,
    /// What stands in the place of the MLP, in layers that have it.
    pub experts: Option<Experts>,
    /// What queries, keys and values are made from, where that is not the token itself.
    pub latent: Option<Latent>,
    /// Whether attention has a learned logit in each head that belongs to no token.
    pub sinks: bool,
    /// Tokens that there are.
    pub vocabulary: u64,
    /// The vocabulary is padded to a multiple of this even on one device (Megatron's habit).
    pub vocabulary_multiple: Option<u64>,
    /// Elements of a token in the embedding table; projected where it is not `hidden`.
    pub embedding: u64,
    /// Longest sequence it is made for, and the default one.
    pub max_sequence: u64,
    /// Rows of the table of positions; none where positions are rotary, or told by the mask.
    pub positions: Option<u64>,
    /// Rows of the table of token types; none where there are no types.
    pub types: Option<u64>,
    /// Elements of a head that carry a rotary position; none are where the mask tells positions.
    pub rotary: u64,
    /// How layers differ, from the first on; where there are more layers, the list starts again.
    pub variants: Vec<Variant>,
    /// Between the MLP's matmuls.
    pub activation: Activation,
    /// Which matmuls add a bias.
    pub biases: Biases,
    /// Where dropout is applied.
    pub dropout: Dropout,
    /// Where norms stand.
    pub norm_place: NormPlace,
    /// Whether the residual stream is normed once more before the head.
    pub final_norm: bool,
    /// What norms are, in families that leave it open.
    pub norm: Norm,
    /// Whether queries and keys are normed.
    pub qk_norm: QkNorm,
    /// How attention and MLP follow each other.
    pub branches: Branches,
    /// Whether the MLP has a gate, in families that leave it open.
    pub gated: bool,
    /// Whether tokens are multiplied by a constant before the first layer.
    pub embedding_scaled: bool,
    /// Whether tokens are normed before the first layer, in families that leave it open.
    pub embedding_norm: bool,
    /// Whether the head adds a bias to its logits, in families that leave it open.
    pub head_bias: bool,
    /// What is squeezed between two bounds.
    pub capped: Capped,
    /// Sizes of dimensions of a user's own that every device has whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<u64>,
    /// Sizes of dimensions of a user's own that tensor parallelism divides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_cut: Vec<u64>,
    /// Layers of the decoder behind an encoder; none in models without an encoder of their own.
    #[serde(default, skip_serializing_if = "is_none")]
    pub decoder_layers: u64,
    /// Buckets of distances between tokens that have a learned figure; none in most models.
    #[serde(default, skip_serializing_if = "is_none")]
    pub buckets: u64,
    /// Elements of a patch of an image; none in models that read text.
    #[serde(default, skip_serializing_if = "is_none")]
    pub patch: u64,
    /// Layers behind the last that are trained to tell the token after the next: none or one.
    #[serde(default, skip_serializing_if = "is_none")]
    pub next_tokens: u64,
    /// What of the published model is left out, as a reader should be told.
    pub left_out: Option<String>,
    /// Whether the head uses the embedding's table.
    pub tied: bool,
}

/// What is left out of models that publish a module for the token after the next.
pub const FURTHER_TOKEN: &str = "the module that predicts a further token";

/// Whether there are none, which files leave out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Spec {
    /// Layers between the first and the last: behind an encoder, where its output is joined by the
    /// decoder's tokens, and two of each layer of the decoder, its own attention and the rest.
    pub fn inner_layers(&self) -> u64 {
        let decoder = if self.family == Family::T5 { 1 + 2 * self.decoder_layers } else { 0 };
        self.layers + decoder + self.next_tokens
    }

    /// What of the published model is left out: not the module of a further token where that is
    /// trained.
    pub fn left_out(&self) -> Option<&str> {
        let is_trained = |part: &&str| *part == FURTHER_TOKEN && self.next_tokens > 0;
        self.left_out.as_deref().filter(|part| !is_trained(part))
    }

    /// Whether a layer that tells the token after the next can be joined to its last.
    pub fn can_tell_next_tokens(&self) -> bool {
        self.family == Family::Decoder
            && self.embedding == self.hidden
            && self.branches == Branches::InTurn
    }

    /// Whether another layer than the first uses the embedding's table.
    pub fn shares_a_table(&self) -> bool {
        self.tied || self.next_tokens > 0 || self.family == Family::T5
    }

    /// Sizes of the whole model on one device.
    pub fn sizes(&self, micro_batch: u64, sequence: u64) -> Sizes {
        Sizes {
            batch: micro_batch,
            sequence,
            keys: sequence,
            key_block: sequence,
            middle_keys: 0,
            queries: sequence,
            turned_kv_heads: self.kv_heads,
            turned_group: self.heads / self.kv_heads,
            hidden: self.hidden,
            embedding: self.embedding,
            kv_heads: self.kv_heads,
            group: self.heads / self.kv_heads,
            head: self.head,
            rotary: self.rotary,
            mlp: self.mlp,
            vocabulary: self.padded_vocabulary(1),
            positions: self.positions.unwrap_or(0),
            types: self.types.unwrap_or(0),
            patch: self.patch,
            buckets: self.buckets,
            value: self.latent.map_or(self.head, |latent| latent.value),
            query_latent: self.latent.and_then(|latent| latent.query).unwrap_or(0),
            kv_latent: self.latent.map_or(0, |latent| latent.kv),
            own: padded(&self.own),
            own_cut: padded(&self.own_cut),
            ..self.expert_sizes(u128::from(micro_batch) * u128::from(sequence))
        }
    }

    /// The sizes of experts where a device has so many tokens and all experts; nothing else.
    fn expert_sizes(&self, tokens: u128) -> Sizes {
        let Some(experts) = self.experts else { return Sizes::default() };
        let rows = experts.rows(tokens, 1);
        Sizes {
            experts: experts.count,
            choices: experts.count,
            routes: experts.chosen,
            rows,
            own_rows: rows,
            sent_rows: rows,
            relayed_rows: experts.relayed_rows(tokens),
            expert_mlp: experts.mlp,
            shared_mlp: experts.shared.unwrap_or(0),
            ..Sizes::default()
        }
    }

    /// What a width must divide for the MLP, and the expert that all tokens visit, to be divided
    /// evenly; the heads where there is neither.
    pub fn divisible_mlp(&self) -> u64 {
        let shared = self.experts.and_then(|experts| experts.shared);
        let sizes = [self.mlp].into_iter().chain(shared);
        let sizes = sizes.chain(self.own_cut.iter().copied());
        match sizes.fold(0, greatest_common_divisor) {
            0 => self.heads,
            size => size,
        }
    }

    /// How the layer at a place differs from others, from 0 on.
    pub fn variant(&self, layer: usize) -> Variant {
        if self.variants.is_empty() {
            Variant::PLAIN
        } else {
            self.variants[layer % self.variants.len()]
        }
    }

    /// What layers look at, each with how many do, in the order in which they first occur.
    pub fn reaches(&self) -> impl Iterator<Item = (u64, Reach)> {
        let mut found: Vec<(u64, Reach)> = Vec::new();
        if self.family == Family::T5 {
            let (encoder, decoder) = (self.layers, self.decoder_layers);
            return vec![(encoder + decoder, Reach::Every), (decoder, Reach::All)].into_iter();
        }
        let layers = usize::try_from(self.layers).expect("layers are bounded");
        // A layer behind the last is as the last.
        let more = if self.next_tokens > 0 { Some(layers.saturating_sub(1)) } else { None };
        for layer in (0..layers).chain(more) {
            let reach = self.variant(layer).reach;
            match found.iter_mut().find(|(_, known)| *known == reach) {
                Some((count, _)) => *count += 1,
                None => found.push((1, reach)),
            }
        }
        found.into_iter()
    }

    /// The vocabulary as `width` devices divide it: padded to 128 for each of them, on one device
    /// only where the model says so.
    pub fn padded_vocabulary(&self, width: u64) -> u64 {
        match (self.vocabulary_multiple, width) {
            (None, 1) => self.vocabulary,
            (multiple, _) => self.vocabulary.next_multiple_of(multiple.unwrap_or(128) * width),
        }
    }
}

/// Sizes with zeros behind them.
fn padded(sizes: &[u64]) -> [u64; MOST_OWN] {
    std::array::from_fn(|at| sizes.get(at).copied().unwrap_or(0))
}

/// The greatest number that divides both; the other one where one is 0.
pub(crate) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Small models, one or two of each family, for the tests of this room and those above it.
#[cfg(test)]
pub mod examples {
    use super::Activation;
    use super::Biases;
    use super::Branches;
    use super::Capped;
    use super::Dropout;
    use super::Family;
    use super::Norm;
    use super::NormPlace;
    use super::QkNorm;
    use super::Spec;
    use crate::model::Experts;
    use crate::model::Latent;
    use crate::model::Reach;
    use crate::model::RouterBias;
    use crate::model::Variant;

    /// Eight heads of four, three layers, dropout and biases everywhere.
    pub fn gpt() -> Spec {
        Spec {
            name: "example".into(),
            family: Family::Gpt,
            layers: 3,
            hidden: 32,
            heads: 8,
            kv_heads: 8,
            head: 4,
            mlp: 128,
            experts: None,
            latent: None,
            sinks: false,
            vocabulary: 1000,
            vocabulary_multiple: None,
            embedding: 32,
            max_sequence: 64,
            positions: Some(64),
            types: None,
            rotary: 4,
            variants: Vec::new(),
            activation: Activation::Gelu,
            biases: Biases { qkv: true, attention_out: true, mlp: true },
            dropout: Dropout { embedding: true, attention: true, hidden: true, activation: false },
            norm_place: NormPlace::Before,
            final_norm: true,
            norm: Norm::Layer,
            qk_norm: QkNorm::None,
            branches: Branches::InTurn,
            gated: false,
            embedding_scaled: false,
            embedding_norm: false,
            head_bias: false,
            capped: Capped::default(),
            own: Vec::new(),
            own_cut: Vec::new(),
            decoder_layers: 0,
            buckets: 0,
            patch: 0,
            next_tokens: 0,
            left_out: None,
            tied: true,
        }
    }

    /// Decoders that differ in every way that their numbers can say.
    fn decoders(llama: &Spec) -> Vec<Spec> {
        let decoder = Spec { family: Family::Decoder, norm: Norm::Rms, ..llama.clone() };
        let local = |tokens| Variant { reach: Reach::Window(tokens), ..Variant::PLAIN };
        let chunk = Variant { reach: Reach::Chunk(32), ..Variant::PLAIN };
        let unplaced = Variant { rotary: false, ..Variant::PLAIN };
        vec![
            Spec {
                variants: vec![local(24), Variant::PLAIN],
                norm_place: NormPlace::Around,
                embedding_scaled: true,
                capped: Capped { scores: true, logits: true },
                qk_norm: QkNorm::PerHead,
                tied: true,
                ..decoder.clone()
            },
            Spec {
                gated: false,
                norm_place: NormPlace::AtEnd,
                qk_norm: QkNorm::AllHeads,
                activation: Activation::SquaredRelu,
                variants: vec![chunk, unplaced, Variant::PLAIN],
                ..decoder.clone()
            },
            Spec {
                norm: Norm::Layer,
                gated: false,
                branches: Branches::SideBySideWithOneNorm,
                activation: Activation::Gelu,
                head_bias: true,
                rotary: 2,
                biases: Biases { mlp: true, ..Biases::default() },
                variants: vec![local(100)],
                ..decoder.clone()
            },
            Spec {
                norm: Norm::LayerWithoutBias,
                gated: false,
                branches: Branches::SideBySide,
                activation: Activation::Gelu,
                embedding_norm: true,
                rotary: 0,
                ..decoder
            },
        ]
    }

    /// Mixtures of experts and latent attention, together and apart.
    fn mixtures(llama: &Spec) -> Vec<Spec> {
        let experts = Experts {
            count: 4,
            chosen: 2,
            mlp: 64,
            shared: None,
            shared_is_weighted: false,
            biases: false,
            router_bias: RouterBias::None,
            load_per_mille: 1000,
            groups: None,
        };
        let latent = Latent { query: Some(24), kv: 16, value: 8 };
        let decoder = Spec { family: Family::Decoder, norm: Norm::Rms, ..llama.clone() };
        let dense = Variant { experts: false, ..Variant::PLAIN };
        let local = Variant { reach: Reach::Window(24), ..Variant::PLAIN };
        let all_latent = Spec {
            kv_heads: decoder.heads,
            head: 12,
            rotary: 4,
            latent: Some(latent),
            ..decoder.clone()
        };
        vec![
            Spec { experts: Some(experts), mlp: 0, ..decoder.clone() },
            Spec {
                experts: Some(Experts {
                    shared: Some(32),
                    router_bias: RouterBias::Balancing,
                    ..experts
                }),
                variants: vec![dense, Variant::PLAIN, Variant::PLAIN],
                ..all_latent.clone()
            },
            Spec { latent: Some(Latent { query: None, ..latent }), ..all_latent },
            Spec {
                experts: Some(Experts {
                    shared: Some(64),
                    shared_is_weighted: true,
                    biases: true,
                    router_bias: RouterBias::Trained,
                    ..experts
                }),
                mlp: 0,
                variants: vec![local, Variant::PLAIN],
                sinks: true,
                qk_norm: QkNorm::PerHeadWithoutGain,
                ..decoder
            },
        ]
    }

    /// An encoder with a decoder behind it, one of images, and a layer behind the last.
    fn others() -> Vec<Spec> {
        let none = Dropout::default();
        let t5 = Spec {
            family: Family::T5,
            decoder_layers: 2,
            buckets: 8,
            positions: None,
            rotary: 0,
            norm: Norm::Rms,
            activation: Activation::Relu,
            biases: Biases::default(),
            dropout: Dropout { activation: true, ..gpt().dropout },
            ..gpt()
        };
        let next = Spec {
            family: Family::Decoder,
            next_tokens: 1,
            positions: None,
            norm: Norm::Rms,
            gated: true,
            biases: Biases::default(),
            dropout: none,
            tied: false,
            ..gpt()
        };
        vec![
            Spec { gated: true, decoder_layers: 1, tied: false, dropout: none, ..t5.clone() },
            t5,
            Spec {
                family: Family::Vit,
                patch: 48,
                vocabulary: 10,
                tied: false,
                head_bias: true,
                dropout: none,
                ..gpt()
            },
            next,
        ]
    }

    /// One of each family and of each way to write its layers.
    pub fn all() -> Vec<Spec> {
        let none = Biases::default();
        let llama = Spec {
            family: Family::Llama,
            kv_heads: 2,
            positions: None,
            activation: Activation::Silu,
            norm: Norm::Rms,
            gated: true,
            biases: none,
            dropout: Dropout::default(),
            tied: false,
            ..gpt()
        };
        let opt = Spec {
            family: Family::Opt,
            embedding: 16,
            activation: Activation::Relu,
            norm_place: NormPlace::After,
            final_norm: false,
            ..gpt()
        };
        let neox = Spec { family: Family::GptNeox, positions: None, rotary: 2, ..gpt() };
        let bert = Spec { family: Family::Bert, types: Some(2), final_norm: false, ..gpt() };
        let decoders = [decoders(&llama), mixtures(&llama)].concat();
        let mut all = vec![
            gpt(),
            Spec { vocabulary_multiple: Some(128), ..gpt() },
            llama.clone(),
            Spec {
                qk_norm: QkNorm::PerHead,
                head: 16,
                biases: Biases { qkv: true, ..none },
                ..llama
            },
            Spec { norm_place: NormPlace::Before, embedding: 32, final_norm: true, ..opt.clone() },
            Spec { dropout: Dropout { activation: true, ..gpt().dropout }, ..opt },
            Spec { branches: Branches::SideBySide, ..neox.clone() },
            neox,
            Spec { norm_place: NormPlace::After, ..bert.clone() },
            Spec { family: Family::MegatronBert, final_norm: true, tied: false, ..bert },
        ];
        all.extend(decoders);
        all.extend(others());
        all
    }
}
