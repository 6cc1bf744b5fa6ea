//! A strategy that a user gives, or a part of one: what is not given is searched.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use super::CutSpace;
use super::Limits;
use super::Recompute;
use super::StrategySpace;
use crate::model::Module;
use crate::model::Modules;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::parallel::zero::Zero;

/// A strategy as far as a user gives it; what is `None` is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GivenStrategy {
    /// Devices that share each layer.
    pub tensor: Option<u64>,
    /// Whether those devices divide norms, dropouts and residual adds along the sequence too.
    pub sequence_parallel: Option<bool>,
    /// Devices that share the tokens of each sequence.
    pub context: Option<u64>,
    /// How those devices let their tokens attend to each other's.
    pub context_kind: Option<ContextKind>,
    /// Devices among which the experts of each layer are dealt out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expert: Option<u64>,
    /// Devices that share each expert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expert_tensor: Option<u64>,
    /// Ranks of a pipeline.
    pub pipeline: Option<u64>,
    /// Virtual stages of each rank.
    pub chunks: Option<u64>,
    /// Micro-batches that go through one chunk before the next chunk's turn.
    pub group: Option<u64>,
    /// Copies of the pipeline.
    pub data: Option<u64>,
    /// Sequences in a micro-batch.
    pub micro_batch: Option<u64>,
    /// What replicas share, as the number of a `ZeRO` stage, 0 to 3.
    pub zero: Option<u64>,
    /// How many replicas share it; all of them where it is not given.
    pub shards: Option<u64>,
    /// In which order axes number the devices, the inner one first: `tp-cp-dp-pp`.
    pub order: Option<Order>,
    /// What is dropped after the forward pass and computed again.
    pub recompute: Option<GivenRecompute>,
    /// Where the layers are cut into stages.
    pub cut: Option<GivenCut>,
}

impl GivenStrategy {
    /// Leaves of a space only what this strategy gives.
    pub fn narrow(&self, space: &mut StrategySpace) {
        let only = |number: Option<u64>, limits: &mut Limits| {
            if let Some(number) = number {
                *limits = Limits::only(number);
            }
        };
        only(self.pipeline, &mut space.pipeline);
        only(self.chunks, &mut space.chunks);
        only(self.data, &mut space.data_parallel);
        only_this(self.tensor, &mut space.tensor_parallel);
        only_this(self.sequence_parallel, &mut space.sequence_parallel);
        only_this(self.context, &mut space.context_parallel);
        only_this(self.context_kind, &mut space.context_kinds);
        only_this(self.expert, &mut space.expert_parallel);
        only_this(self.expert_tensor, &mut space.expert_tensor);
        only_this(self.micro_batch, &mut space.micro_batches);
        let zero = self.zero.and_then(|stage| Zero::of_stage(usize::try_from(stage).ok()?));
        only_this(zero, &mut space.zero);
        only_this(zero, &mut space.zero_in_pipelines);
        space.group = self.group.or(space.group);
        space.shards = self.shards.or(space.shards);
        only_this(self.order, &mut space.orders);
        if let Some(recompute) = self.recompute {
            let (layers, modules) = match recompute {
                GivenRecompute::None => (Recompute::None, Modules::NONE),
                GivenRecompute::Selective(modules) => (Recompute::None, modules),
                GivenRecompute::Full => (Recompute::EVERY_LAYER, Modules::NONE),
                GivenRecompute::Block(layers) => (Recompute::First(layers), Modules::NONE),
                GivenRecompute::Stage => (Recompute::Stage, Modules::NONE),
            };
            space.recompute = vec![layers];
            space.repeated = vec![modules];
        }
        if self.cut == Some(GivenCut::Even) {
            space.cut = CutSpace::Even;
        }
    }

    /// The same without words that make no sense beside one device of an axis: sequence parallelism
    /// without tensor parallelism, chunks without a pipeline.
    #[must_use]
    pub fn without_what_one_device_has(self) -> Self {
        let alone = |degree: Option<u64>| degree == Some(1);
        let piped = !alone(self.pipeline);
        Self {
            sequence_parallel: self.sequence_parallel.filter(|_| !alone(self.tensor)),
            context_kind: self.context_kind.filter(|_| !alone(self.context)),
            chunks: self.chunks.filter(|_| piped),
            group: self.group.filter(|_| piped),
            order: self.order.filter(|_| piped),
            cut: self.cut.filter(|_| piped),
            ..self
        }
    }

    /// The devices that it takes, where it gives all degrees; the context degree is 1 unless given.
    pub fn devices(&self) -> Option<u64> {
        let degrees = [self.tensor?, self.context.unwrap_or(1), self.pipeline?, self.data?];
        degrees.into_iter().try_fold(1_u64, u64::checked_mul)
    }
}

/// Leaves of a list only the value that is given.
fn only_this<T>(value: Option<T>, list: &mut Vec<T>) {
    if let Some(value) = value {
        *list = vec![value];
    }
}

/// What is computed again, as a user says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum GivenRecompute {
    /// Nothing.
    None,
    /// Some modules of every layer; at least one.
    Selective(Modules),
    /// Every layer.
    Full,
    /// So many of the first layers of every stage; at least one.
    Block(u64),
    /// Every stage as a whole, from what enters it.
    Stage,
}

/// Where the layers are cut into stages, as a user says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GivenCut {
    /// As many transformer layers in every stage as in every other.
    Even,
}

impl GivenRecompute {
    /// What frameworks repeat where nobody says which modules: attention's core.
    pub const SELECTIVE: Self = Self::Selective(Modules::NONE.with(Module::CoreAttention));

    /// The words that stand for one choice each; numbers and modules apart.
    pub const WORDS: [&str; 4] = ["none", "selective", "full", "stage"];
}

impl fmt::Display for GivenRecompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Selective(_) if *self == Self::SELECTIVE => f.write_str("selective"),
            Self::Selective(modules) => write!(f, "{modules}"),
            Self::Full => f.write_str("full"),
            Self::Block(layers) => write!(f, "full:{layers}"),
            Self::Stage => f.write_str("stage"),
        }
    }
}

/// Why a text is none of the choices of [`GivenRecompute`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRecompute {
    /// `full:` is followed by something else than a number of layers.
    #[error("`{found}` is no number of layers of at least 1")]
    Layers {
        /// What follows.
        found: String,
    },
    /// A word that is neither a choice nor a module.
    #[error("`{found}` is neither a choice nor a module")]
    Word {
        /// The word.
        found: String,
    },
    /// A module stands twice in a set.
    #[error("`{found}` is named twice")]
    Twice {
        /// The module.
        found: String,
    },
}

impl FromStr for GivenRecompute {
    type Err = UnknownRecompute;

    fn from_str(text: &str) -> Result<Self, UnknownRecompute> {
        match text {
            "none" => return Ok(Self::None),
            "selective" => return Ok(Self::SELECTIVE),
            "full" => return Ok(Self::Full),
            "stage" => return Ok(Self::Stage),
            _ => {}
        }
        if let Some(number) = text.strip_prefix("full:") {
            let layers = number.parse().ok().filter(|&layers| layers > 0);
            let unknown = || UnknownRecompute::Layers { found: number.to_owned() };
            return layers.map(Self::Block).ok_or_else(unknown);
        }
        let mut modules = Modules::NONE;
        for word in text.split('+') {
            let found = || word.to_owned();
            let module = Module::named(word);
            let module = module.ok_or_else(|| UnknownRecompute::Word { found: found() })?;
            if modules.contains(module) {
                return Err(UnknownRecompute::Twice { found: found() });
            }
            modules = modules.with(module);
        }
        Ok(Self::Selective(modules))
    }
}

impl TryFrom<String> for GivenRecompute {
    type Error = UnknownRecompute;

    fn try_from(text: String) -> Result<Self, UnknownRecompute> {
        text.parse()
    }
}

impl From<GivenRecompute> for String {
    fn from(given: GivenRecompute) -> Self {
        given.to_string()
    }
}

impl fmt::Display for GivenStrategy {
    /// As the option `--strategy` reads it, in one order; nothing where nothing is given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |name: &str, given: Option<u64>| given.map(|n| format!("{name}={n}"));
        let scattered = |given: bool| if given { "sp" } else { "no-sp" }.to_owned();
        let kind = self.context_kind.map_or(String::new(), |kind| format!(":{}", kind.name()));
        let parts = [
            number("t", self.tensor),
            self.sequence_parallel.map(scattered),
            number("c", self.context).map(|context| context + &kind),
            number("e", self.expert),
            number("x", self.expert_tensor),
            number("p", self.pipeline),
            number("v", self.chunks),
            number("g", self.group),
            number("d", self.data),
            number("b", self.micro_batch),
            number("zero", self.zero),
            number("shard", self.shards),
            self.order.as_ref().map(|order| format!("order={order}")),
            self.recompute.map(|recompute| format!("recompute={recompute}")),
            self.cut.map(|GivenCut::Even| "cut=even".to_owned()),
        ];
        let given: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&given.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_recompute_is_read_as_it_is_written() {
        let mut choices = vec![GivenRecompute::None, GivenRecompute::Full, GivenRecompute::Stage];
        choices.extend([1, 7, 96].map(GivenRecompute::Block));
        for set in 1..8 {
            let members = Module::ALL.into_iter().enumerate();
            let members = members.filter(|(bit, _)| set >> bit & 1 == 1);
            choices.push(GivenRecompute::Selective(members.map(|(_, module)| module).collect()));
        }
        for choice in choices {
            assert_eq!(choice.to_string().parse(), Ok(choice));
            let json = serde_json::to_string(&choice).unwrap();
            assert_eq!(serde_json::from_str::<GivenRecompute>(&json).unwrap(), choice);
        }
        assert_eq!("core_attn".parse(), Ok(GivenRecompute::SELECTIVE));
        assert_eq!(GivenRecompute::SELECTIVE.to_string(), "selective");
    }

    #[test]
    fn what_is_no_choice_of_recompute_is_said() {
        for (text, said) in [
            ("", "`` is neither"),
            ("some", "`some` is neither"),
            ("mlp+", "`` is neither"),
            ("mlp+mlp", "`mlp` is named twice"),
            ("full:0", "`0` is no number"),
            ("full:x", "`x` is no number"),
        ] {
            let error = text.parse::<GivenRecompute>().unwrap_err().to_string();
            assert!(error.contains(said), "{error} should say {said}");
        }
    }

    #[test]
    fn what_is_not_given_is_not_said_and_need_not_be_written() {
        let given = GivenStrategy { tensor: Some(8), zero: Some(0), ..GivenStrategy::default() };
        assert_eq!(given.to_string(), "t=8,zero=0");
        assert_eq!(GivenStrategy::default().to_string(), "");
        let read: GivenStrategy = serde_json::from_str(r#"{"tensor":8,"zero":0}"#).unwrap();
        assert_eq!(read, given);
        assert!(serde_json::from_str::<GivenStrategy>(r#"{"tensr":8}"#).is_err());
    }

    #[test]
    fn a_saved_strategy_is_the_same_when_it_is_read_again() {
        let given = GivenStrategy {
            tensor: Some(8),
            sequence_parallel: Some(true),
            context: Some(2),
            context_kind: Some(ContextKind::Ulysses),
            expert: Some(16),
            expert_tensor: Some(2),
            pipeline: Some(8),
            chunks: Some(3),
            group: Some(8),
            data: Some(4),
            micro_batch: Some(1),
            zero: Some(1),
            shards: Some(8),
            order: Some(Order::MEGATRON[1]),
            recompute: Some(GivenRecompute::SELECTIVE),
            cut: Some(GivenCut::Even),
        };
        let json = serde_json::to_string(&given).unwrap();
        assert_eq!(serde_json::from_str::<GivenStrategy>(&json).unwrap(), given);
        assert_eq!(
            given.to_string(),
            "t=8,sp,c=2:ulysses,e=16,x=2,p=8,v=3,g=8,d=4,b=1,zero=1,shard=8,order=tp-cp-pp-dp,\
             recompute=selective,cut=even"
        );
    }
}
