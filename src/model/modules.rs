//! The parts of a layer that the backward pass can repeat instead of keeping what they make.

use serde::Deserialize;
use serde::Serialize;

/// A part of a layer that can be repeated by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Module {
    /// Attention from queries, keys and values to the weighted sum of the values.
    CoreAttention,
    /// The two matmuls of a layer's second half and what stands between them.
    Mlp,
    /// The norms at the start of attention and of the MLP.
    LayerNorm,
    /// All that stands in the place of the MLP in a mixture of experts.
    Moe,
    /// What stands between the matmuls of experts.
    MoeActivation,
    /// The expert that all tokens visit.
    SharedExperts,
    /// From the latent elements of tokens to queries, keys and values.
    LatentUpProjection,
}

impl Module {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 7] = [
        Self::CoreAttention,
        Self::Mlp,
        Self::LayerNorm,
        Self::Moe,
        Self::MoeActivation,
        Self::SharedExperts,
        Self::LatentUpProjection,
    ];

    /// What frameworks call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CoreAttention => "core_attn",
            Self::Mlp => "mlp",
            Self::LayerNorm => "layernorm",
            Self::Moe => "moe",
            Self::MoeActivation => "moe_act",
            Self::SharedExperts => "shared_experts",
            Self::LatentUpProjection => "mla_up_proj",
        }
    }

    /// The module that frameworks call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|module| module.name() == name)
    }

    /// Whether its result is made again too, where the rest of the layer needs it.
    ///
    /// Frameworks repeat attention, MLP and experts as a whole and keep their results for whoever
    /// reads them; of the others they drop the result, which is what there is to save.
    pub fn drops_its_result(self) -> bool {
        match self {
            Self::CoreAttention | Self::Mlp | Self::Moe | Self::SharedExperts => false,
            Self::LayerNorm | Self::MoeActivation | Self::LatentUpProjection => true,
        }
    }

    /// The module that it is a part of, if it is.
    pub fn around(self) -> Option<Self> {
        match self {
            Self::MoeActivation | Self::SharedExperts => Some(Self::Moe),
            Self::CoreAttention
            | Self::Mlp
            | Self::LayerNorm
            | Self::Moe
            | Self::LatentUpProjection => None,
        }
    }
}

/// A set of modules.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Modules(u8);

/// A name that no module has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{found}\" is no module; known are {}", Module::ALL.map(Module::name).join(", "))]
pub struct UnknownModule {
    /// What was found.
    pub found: String,
}

impl TryFrom<Vec<String>> for Modules {
    type Error = UnknownModule;

    fn try_from(names: Vec<String>) -> Result<Self, UnknownModule> {
        names.into_iter().try_fold(Self::NONE, |set, found| match Module::named(&found) {
            Some(module) => Ok(set.with(module)),
            None => Err(UnknownModule { found }),
        })
    }
}

impl From<Modules> for Vec<String> {
    fn from(set: Modules) -> Self {
        set.iter().map(|module| module.name().to_owned()).collect()
    }
}

impl TryFrom<String> for Module {
    type Error = UnknownModule;

    fn try_from(found: String) -> Result<Self, UnknownModule> {
        Self::named(&found).ok_or(UnknownModule { found })
    }
}

impl From<Module> for String {
    fn from(module: Module) -> Self {
        module.name().to_owned()
    }
}

impl Modules {
    /// No module at all.
    pub const NONE: Self = Self(0);

    /// The same set with one more.
    #[must_use]
    pub const fn with(self, module: Module) -> Self {
        Self(self.0 | 1 << module as u8)
    }

    /// Whether a module is in it.
    pub fn contains(self, module: Module) -> bool {
        self.0 >> module as u8 & 1 == 1
    }

    /// Whether there is none in it.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Those in it, in the order in which they are written.
    pub fn iter(self) -> impl Iterator<Item = Module> {
        Module::ALL.into_iter().filter(move |&module| self.contains(module))
    }
}

impl FromIterator<Module> for Modules {
    fn from_iter<I: IntoIterator<Item = Module>>(modules: I) -> Self {
        modules.into_iter().fold(Self::NONE, Self::with)
    }
}

impl std::fmt::Display for Modules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.iter().map(Module::name).collect();
        f.write_str(&names.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it_and_is_written_in_one_order() {
        let set: Modules = [Module::LayerNorm, Module::CoreAttention].into_iter().collect();
        assert_eq!(set, Modules::NONE.with(Module::CoreAttention).with(Module::LayerNorm));
        assert_eq!(set.to_string(), "core_attn+layernorm");
        assert!(!set.contains(Module::Mlp) && !set.is_empty());
        assert!(Modules::NONE.is_empty());
        for module in Module::ALL {
            assert_eq!(Module::named(module.name()), Some(module));
        }
    }
}
