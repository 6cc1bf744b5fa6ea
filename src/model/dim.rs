//! The dimensions of tensors by name, and their sizes.
//!
//! A layer is written once in names. What one device holds of it, for any micro-batch, sequence
//! and width, is the same layer under other [`Sizes`].

use serde::Deserialize;
use serde::Serialize;

use super::Reach;

/// A dimension of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dim {
    /// Sequences of a micro-batch.
    Batch,
    /// Tokens of a sequence, as they attend.
    Sequence,
    /// Tokens of a sequence, as they are attended to.
    Keys,
    /// Tokens as they are attended to, of the part of a sequence that one device of a context
    /// group holds.
    KeyBlock,
    /// Tokens as they are attended to, of all devices of a ring but the first and the last whose
    /// part arrives.
    MiddleKeys,
    /// Tokens of a whole sequence as they attend, on a device that holds a part of the heads for
    /// it: what devices of a context group turn their queries into.
    Queries,
    /// The key-value heads of such a device.
    TurnedKvHeads,
    /// The query heads of such a device that share a key-value head.
    TurnedGroup,
    /// Elements of a token between layers.
    Hidden,
    /// The hidden size once more, as a square weight's output.
    Transformed,
    /// Elements of a token in the embedding table.
    Embedding,
    /// Key-value heads.
    KvHeads,
    /// Query heads that share a key-value head.
    Group,
    /// Query, key and value heads side by side, as one matmul yields them.
    QkvHeads,
    /// Elements of a head.
    Head,
    /// Elements of a head that carry the position.
    Rotary,
    /// The two branches of a gated activation.
    Gates,
    /// Two tensors of one shape side by side: what travels on beside the tokens, or keys and values.
    Pair,
    /// Elements of a patch of an image.
    Patch,
    /// How far apart two tokens are, in buckets that share a learned figure.
    Buckets,
    /// Elements between the two matmuls of a layer's second half.
    Mlp,
    /// Tokens that there are.
    Vocabulary,
    /// Rows of the table of positions.
    Positions,
    /// Rows of the table of token types.
    Types,
    /// Elements of a value in each head, where those are not as many as of a key.
    Value,
    /// Elements of a head that carry no position, where they are made apart.
    Unplaced,
    /// Those elements of a key and the value side by side, as one matmul yields them.
    UnplacedValue,
    /// Latent elements that queries are made from.
    QueryLatent,
    /// Latent elements that keys and values are made from.
    KvLatent,
    /// Those elements and the ones of keys that carry the position, as one matmul yields them.
    KvLatentRotary,
    /// Experts whose weights a device holds.
    Experts,
    /// All experts that a token is weighed for.
    Choices,
    /// Experts that a token visits.
    Routes,
    /// Tokens that visit one expert.
    Rows,
    /// Tokens that visit one expert, as they arrive on one of the devices that share it.
    OwnRows,
    /// Tokens that visit one expert, of those that one device has.
    SentRows,
    /// Tokens that are sent to a group of experts, once for each group, of those that one device
    /// has.
    RelayedRows,
    /// Elements between the two matmuls of an expert.
    ExpertMlp,
    /// Elements between the two matmuls of the expert that all tokens visit.
    SharedMlp,
    /// One number for each token.
    One,
    /// A dimension of a user's own, whole on every device.
    Own(u8),
    /// A dimension of a user's own that tensor parallelism divides.
    OwnCut(u8),
}

/// How many dimensions of each kind a model may have of its own.
pub const MOST_OWN: usize = 8;

impl Dim {
    /// Whether tensor parallelism divides it among devices.
    pub fn is_cut(self) -> bool {
        matches!(
            self,
            Self::KvHeads
                | Self::Group
                | Self::TurnedKvHeads
                | Self::TurnedGroup
                | Self::QkvHeads
                | Self::Mlp
                | Self::SharedMlp
                | Self::OwnCut(_)
                | Self::Vocabulary
        )
    }

    /// Whether these dimensions go over pairs of tokens, one that attends and one attended to.
    pub fn are_pairs(dims: &[Self]) -> bool {
        let attends = |dim: &Self| matches!(dim, Self::Sequence | Self::Queries);
        let is_attended_to =
            |dim: &Self| matches!(dim, Self::Keys | Self::KeyBlock | Self::MiddleKeys);
        dims.iter().any(attends) && dims.iter().any(is_attended_to)
    }
}

/// How large each dimension is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each field is the dimension of its name")]
pub struct Sizes {
    pub batch: u64,
    pub sequence: u64,
    pub keys: u64,
    pub key_block: u64,
    pub middle_keys: u64,
    pub queries: u64,
    pub turned_kv_heads: u64,
    pub turned_group: u64,
    pub hidden: u64,
    pub embedding: u64,
    pub kv_heads: u64,
    pub group: u64,
    pub head: u64,
    pub rotary: u64,
    pub mlp: u64,
    pub vocabulary: u64,
    pub positions: u64,
    pub types: u64,
    pub patch: u64,
    pub buckets: u64,
    pub value: u64,
    pub query_latent: u64,
    pub kv_latent: u64,
    pub experts: u64,
    pub choices: u64,
    pub routes: u64,
    pub rows: u64,
    pub own_rows: u64,
    pub sent_rows: u64,
    pub relayed_rows: u64,
    pub expert_mlp: u64,
    pub shared_mlp: u64,
    pub own: [u64; MOST_OWN],
    pub own_cut: [u64; MOST_OWN],
}

impl Sizes {
    /// The size of one dimension.
    pub fn of(&self, dim: Dim) -> u64 {
        match dim {
            Dim::Batch => self.batch,
            Dim::Sequence => self.sequence,
            Dim::Keys => self.keys,
            Dim::KeyBlock => self.key_block,
            Dim::MiddleKeys => self.middle_keys,
            Dim::Queries => self.queries,
            Dim::TurnedKvHeads => self.turned_kv_heads,
            Dim::TurnedGroup => self.turned_group,
            Dim::Hidden | Dim::Transformed => self.hidden,
            Dim::Embedding => self.embedding,
            Dim::KvHeads => self.kv_heads,
            Dim::Group => self.group,
            Dim::QkvHeads => self.kv_heads * (self.group + 2),
            Dim::Head => self.head,
            Dim::Rotary => self.rotary,
            Dim::Gates | Dim::Pair => 2,
            Dim::Patch => self.patch,
            Dim::Buckets => self.buckets,
            Dim::Mlp => self.mlp,
            Dim::Vocabulary => self.vocabulary,
            Dim::Positions => self.positions,
            Dim::Types => self.types,
            Dim::Value => self.value,
            Dim::Unplaced => self.head - self.rotary,
            Dim::UnplacedValue => self.head - self.rotary + self.value,
            Dim::QueryLatent => self.query_latent,
            Dim::KvLatent => self.kv_latent,
            Dim::KvLatentRotary => self.kv_latent + self.rotary,
            Dim::Experts => self.experts,
            Dim::Choices => self.choices,
            Dim::Routes => self.routes,
            Dim::Rows => self.rows,
            Dim::OwnRows => self.own_rows,
            Dim::SentRows => self.sent_rows,
            Dim::RelayedRows => self.relayed_rows,
            Dim::ExpertMlp => self.expert_mlp,
            Dim::SharedMlp => self.shared_mlp,
            Dim::One => 1,
            Dim::Own(which) => self.own.get(usize::from(which)).copied().unwrap_or(0),
            Dim::OwnCut(which) => self.own_cut.get(usize::from(which)).copied().unwrap_or(0),
        }
    }

    /// The same where each token attends only to those within reach, and without what a causal
    /// mask hides if `causal`.
    #[must_use]
    pub fn attended(self, reach: Reach, causal: bool) -> Self {
        // A device that has a part of the tokens meets the keys of all others too, one by one.
        let met = |tokens: u64| reach.attended(tokens, self.keys, causal);
        Self {
            keys: met(self.keys),
            key_block: met(self.key_block),
            middle_keys: met(self.middle_keys),
            ..self
        }
    }

    /// Elements of a tensor with these dimensions.
    ///
    /// Never wraps for sizes that [`within_limits`](crate::model::Layer::within_limits) accepts.
    pub fn elements(&self, dims: &[Dim]) -> u64 {
        dims.iter().map(|&dim| self.of(dim)).product()
    }

    /// The same in a type that no tensor of checked sizes overflows.
    pub fn wide_elements(&self, dims: &[Dim]) -> u128 {
        dims.iter().fold(1, |product: u128, &dim| product.saturating_mul(u128::from(self.of(dim))))
    }
}
