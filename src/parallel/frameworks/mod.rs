//! Which plans a training framework accepts: its rules as data, and what every plan needs whatever
//! runs it.
//!
//! In: the [`PlanShape`] of a plan. Out: nothing, or the first rule in the order of [`RULES`] that
//! it breaks, with what was found and what would do. What an enumerator can leave out before it has
//! a whole shape is asked of the [`Framework`] itself.
//!
//! Not here: how a framework is told of a plan.

mod rules;

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::Serialize;

use super::ContextKind;
use super::Order;
use super::zero::Zero;
use crate::model::Modules;

pub use rules::RULES;
pub use rules::Rule;

/// What runs a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// Megatron-LM, and Megatron-Bridge and `NeMo`, which configure it.
    Megatron,
    /// `PyTorch`'s own trainer.
    Torchtitan,
    /// The trainer for TPUs in JAX.
    Maxtext,
    /// None in particular: only what the mathematics of a plan needs.
    Any,
}

/// Where layers are cut into stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CutShape {
    /// Where the framework cuts them by itself.
    Even,
    /// Where a layout says, layer by layer.
    Layout,
}

/// Which whole layers are computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepeatedLayers {
    /// None.
    None,
    /// All.
    All,
    /// The first of every virtual stage, by one number for all of them (or all layers of those that
    /// have fewer).
    OneNumber,
    /// The first of every virtual stage, by a number of its own for some.
    OwnNumbers,
    /// Stages as a whole, from what enters them.
    Stages,
}

/// The experts of a model, and how devices divide them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertShape {
    /// How many there are in a layer.
    pub count: u64,
    /// Elements between the matmuls of one.
    pub mlp: u64,
    /// Devices among which they are dealt out.
    pub parallel: u64,
    /// Devices that share each.
    pub tensor: u64,
}

impl ExpertShape {
    /// Devices that hold all of them together, each part once.
    pub fn devices(&self) -> u128 {
        u128::from(self.parallel) * u128::from(self.tensor)
    }
}

/// A plan by all that rules ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanShape {
    /// Devices at hand.
    pub devices: u64,
    /// Sequences in a batch.
    pub global_batch: u64,
    /// Sequences in a micro-batch.
    pub micro_batch: u64,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Transformer layers.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key-value heads.
    pub kv_heads: u64,
    /// Elements between the MLP's matmuls.
    pub mlp: u64,
    /// Devices that share each layer.
    pub tensor: u64,
    /// Whether those devices divide norms, dropouts and residual adds along the sequence too.
    pub sequence_parallel: bool,
    /// Devices that share the tokens of each sequence.
    pub context: u64,
    /// How those devices let their tokens attend to each other's.
    pub context_kind: ContextKind,
    /// How experts are divided, where there are some.
    pub experts: Option<ExpertShape>,
    /// Ranks of a pipeline.
    pub pipeline: u64,
    /// Virtual stages of each rank.
    pub chunks: u64,
    /// Micro-batches that go through one chunk before the next chunk's turn; only asked for where
    /// there are several chunks.
    pub group: u64,
    /// Copies of the pipeline.
    pub data: u64,
    /// What replicas share.
    pub zero: Zero,
    /// How many replicas share it; only asked for where they share something.
    pub shards: u64,
    /// In which order axes number the devices.
    pub order: Order,
    /// Where layers are cut into stages.
    pub cut: CutShape,
    /// Which whole layers are computed again.
    pub repeated: RepeatedLayers,
    /// Which modules of the other layers are computed again.
    pub modules: Modules,
}

/// The first rule that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{rule}; {found}; {would_do}", whose(*framework))]
pub struct BrokenRule {
    /// Whose rule it is; [`Framework::Any`] where every plan must follow it.
    pub framework: Framework,
    /// The rule as a sentence.
    pub rule: &'static str,
    /// What was found, with its numbers.
    pub found: String,
    /// What would follow the rule.
    pub would_do: String,
}

fn whose(framework: Framework) -> String {
    match framework {
        Framework::Any => String::new(),
        framework => format!("{framework} asks that "),
    }
}

impl Framework {
    /// All of them, the default for GPUs first.
    pub const ALL: [Self; 4] = [Self::Megatron, Self::Torchtitan, Self::Maxtext, Self::Any];

    /// Names that users know them by; several may mean the same.
    pub const NAMES: [(&str, Self); 6] = [
        ("megatron", Self::Megatron),
        ("bridge", Self::Megatron),
        ("nemo", Self::Megatron),
        ("torchtitan", Self::Torchtitan),
        ("maxtext", Self::Maxtext),
        ("any", Self::Any),
    ];

    /// Its rules, in the order of [`RULES`].
    fn rules(self) -> &'static [&'static Rule] {
        static OF: OnceLock<Vec<Vec<&'static Rule>>> = OnceLock::new();
        let of = |framework: Self| RULES.iter().filter(|rule| rule.is_of(framework)).collect();
        let all = OF.get_or_init(|| Self::ALL.into_iter().map(of).collect());
        let place = Self::ALL.iter().position(|&one| one == self);
        place.map_or(&[], |place| &all[place])
    }

    /// The first rule that a plan breaks, in the order of [`RULES`].
    pub fn check(self, plan: &PlanShape) -> Result<(), BrokenRule> {
        match self.rules().iter().find(|rule| !(rule.holds)(plan)) {
            None => Ok(()),
            Some(broken) => Err(BrokenRule {
                framework: if broken.is_of(Self::Any) { Self::Any } else { self },
                rule: broken.name,
                found: (broken.found)(plan),
                would_do: (broken.would_do)(plan),
            }),
        }
    }

    /// Whether all pipelines must get as many micro-batches.
    pub fn batch_divides(self) -> bool {
        self != Self::Any
    }

    /// Whether devices may be left without work.
    pub fn may_idle(self) -> bool {
        self == Self::Any
    }

    /// The orders in which axes may number the devices.
    pub fn orders(self) -> &'static [Order] {
        match self {
            Self::Megatron => &Order::MEGATRON,
            Self::Torchtitan | Self::Maxtext => &Order::MEGATRON[..1],
            Self::Any => &Order::ALL,
        }
    }

    /// Whether all stages must repeat as many of their layers.
    pub fn repeats_are_equal(self) -> bool {
        self != Self::Any
    }

    /// Whether it runs pipelines of several ranks as they are modelled here.
    ///
    /// `MaxText` runs all forward passes before the first backward pass, which keeps the
    /// activations of all micro-batches: another rule of memory.
    pub fn pipelines(self) -> bool {
        self != Self::Maxtext
    }

    /// What replicas can share under it.
    ///
    /// `PyTorch`'s fully sharded modules shard gradients with the state; `MaxText` shards the state
    /// alone or weights as well.
    pub fn zero_stages(self) -> &'static [Zero] {
        match self {
            Self::Megatron | Self::Any => &Zero::ALL,
            Self::Torchtitan => &[Zero::Nothing, Zero::Gradients, Zero::Weights],
            Self::Maxtext => &[Zero::Nothing, Zero::State, Zero::Weights],
        }
    }

    /// Of those, the ones worth searching beside pipelines of several ranks: from stage 2 on every
    /// micro-batch pays for an exchange. Others can be given.
    pub fn zero_stages_with_pipeline(self) -> &'static [Zero] {
        match self {
            Self::Megatron | Self::Any => &[Zero::Nothing, Zero::State],
            Self::Torchtitan => self.zero_stages(),
            Self::Maxtext => &[],
        }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Megatron => "megatron",
            Self::Torchtitan => "torchtitan",
            Self::Maxtext => "maxtext",
            Self::Any => "any",
        })
    }
}

/// A name that no framework has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is no framework that is known; known are megatron (also as bridge and nemo), torchtitan, maxtext, any"
)]
pub struct UnknownFramework {
    /// The name.
    pub found: String,
}

impl FromStr for Framework {
    type Err = UnknownFramework;

    fn from_str(text: &str) -> Result<Self, UnknownFramework> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known
            .map(|&(_, framework)| framework)
            .ok_or_else(|| UnknownFramework { found: text.to_owned() })
    }
}

impl PlanShape {
    /// Devices that the degrees take, in a type that their product does not leave.
    pub fn used(&self) -> u128 {
        product(&[self.tensor, self.context, self.data, self.pipeline])
    }

    /// Replicas of each parameter.
    pub fn replicas(&self) -> u128 {
        product(&[self.data, self.context])
    }

    /// Micro-batches of the pipeline that gets the most.
    pub fn micro_batches(&self) -> u64 {
        (self.global_batch / self.micro_batch.max(1)).div_ceil(self.data.max(1))
    }
}

/// The product of a few numbers; beyond its type, the largest.
fn product(numbers: &[u64]) -> u128 {
    numbers.iter().fold(1, |product: u128, &number| product.saturating_mul(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Module;

    /// Llama-3-70B on 64 devices as it was published.
    const PLAN: PlanShape = PlanShape {
        devices: 64,
        global_batch: 128,
        micro_batch: 1,
        sequence: 8192,
        layers: 80,
        heads: 64,
        kv_heads: 8,
        mlp: 28672,
        tensor: 4,
        sequence_parallel: true,
        context: 1,
        context_kind: ContextKind::Ring,
        experts: None,
        pipeline: 8,
        chunks: 5,
        group: 8,
        data: 2,
        zero: Zero::State,
        shards: 2,
        order: Order::MEGATRON[0],
        cut: CutShape::Even,
        repeated: RepeatedLayers::None,
        modules: Modules::NONE,
    };

    #[test]
    fn names_are_read_as_they_are_written_and_those_of_wrappers_too() {
        for framework in Framework::ALL {
            assert_eq!(framework.to_string().parse(), Ok(framework));
        }
        for name in ["bridge", "nemo"] {
            assert_eq!(name.parse(), Ok(Framework::Megatron));
        }
        let error = "megatorn".parse::<Framework>().unwrap_err().to_string();
        assert!(error.contains("known are megatron"), "{error}");
    }

    #[test]
    fn a_broken_rule_says_whose_it_is_what_was_found_and_what_would_do() {
        assert_eq!(Framework::Megatron.check(&PLAN), Ok(()));
        let said = |framework: Framework, plan| framework.check(&plan).unwrap_err().to_string();
        assert_eq!(
            said(Framework::Any, PlanShape { tensor: 3, ..PLAN }),
            "the heads divide evenly among the devices that share a layer; found 64 heads for t = \
             3; t of 2 or 4 would do"
        );
        assert_eq!(
            said(
                Framework::Megatron,
                PlanShape { micro_batch: 2, global_batch: 130, chunks: 1, ..PLAN }
            ),
            "megatron asks that all pipelines get as many micro-batches; found a batch of 130 for \
             b = 2 and d = 2; a batch of 128 or 132 would do"
        );
        assert_eq!(
            said(Framework::Torchtitan, PLAN),
            "torchtitan asks that replicas share what it can shard; found zero = 1; zero of 0, 2 \
             or 3 would do"
        );
        assert_eq!(
            said(Framework::Maxtext, PLAN),
            "maxtext asks that there is one pipeline rank; found p = 8; p = 1 would do"
        );
    }

    #[test]
    fn what_an_enumerator_asks_early_is_what_the_rules_say() {
        let base = PlanShape {
            pipeline: 1,
            chunks: 1,
            data: 16,
            shards: 16,
            sequence_parallel: false,
            ..PLAN
        };
        for framework in Framework::ALL {
            let zero = framework.zero_stages()[0];
            let base = PlanShape { zero, ..base };
            let accepts = |plan: PlanShape| framework.check(&plan).is_ok();
            assert!(accepts(base), "{framework}");
            for zero in Zero::ALL {
                let listed = framework.zero_stages().contains(&zero);
                assert_eq!(accepts(PlanShape { zero, ..base }), listed, "{framework} {zero:?}");
            }
            let ranks = PlanShape { pipeline: 2, data: 8, shards: 8, ..base };
            let deep = if framework.pipelines() { ranks } else { base };
            assert!(framework.orders().iter().all(|&order| accepts(PlanShape { order, ..deep })));
            // With several devices along all axes, no two orders number them alike.
            let zero = Zero::Weights;
            let wide = PlanShape { context: 2, data: 4, shards: 8, zero, ..deep };
            let mut others =
                Order::ALL.into_iter().filter(|order| !framework.orders().contains(order));
            assert!(others.all(|order| !accepts(PlanShape { order, ..wide })));
            assert_eq!(accepts(PlanShape { devices: 65, ..base }), framework.may_idle());
            let odd = PlanShape { global_batch: 129, ..base };
            assert_eq!(accepts(odd), !framework.batch_divides(), "{framework}");
            let own = PlanShape { repeated: RepeatedLayers::OwnNumbers, ..base };
            assert_eq!(accepts(own), !framework.repeats_are_equal(), "{framework}");
            assert_eq!(accepts(ranks), framework.pipelines(), "{framework}");
            for zero in framework.zero_stages_with_pipeline() {
                assert!(framework.zero_stages().contains(zero));
            }
        }
    }

    #[test]
    fn numbers_beyond_any_use_are_refused_and_not_wrapped() {
        let largest = 1 << 32;
        let plan = PlanShape {
            tensor: largest,
            context: largest,
            data: largest,
            pipeline: largest,
            chunks: largest,
            modules: Modules::NONE.with(Module::Mlp),
            ..PLAN
        };
        for framework in Framework::ALL {
            assert!(framework.check(&plan).is_err());
        }
    }
}
