//! How is a plan started?
//!
//! In: a checked [`Plan`], the numbers of its model and what to say about it ([`Run`]), and what
//! shall start it ([`Target`]). Out: the files that start it ([`LaunchFile`]), as text, or why
//! there are none ([`CannotLaunch`]): what a framework would reject is not written.
//!
//! Each framework has a file of its own, written against the version that [`Target::version`]
//! names. Not here: which plans a framework accepts (rules are data in `parallel`, because
//! strategies are filtered by them), and how such files are read again (see `input`).

mod architecture;
mod bridge;
mod cut;
mod maxtext;
mod megatron;
mod python;
mod torchtitan;

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use crate::model::spec::Spec;
use crate::parallel::ContextKind;
use crate::parallel::frameworks::BrokenRule;
use crate::parallel::frameworks::Framework;
use crate::plan::Plan;

pub use cut::Cut;
pub use cut::layout;
pub use torchtitan::FLAVORS;
pub use torchtitan::Flavor;

/// What starts a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Megatron-LM's `pretrain_gpt.py`, by a shell script.
    Megatron,
    /// Megatron-Bridge, by a recipe in Python.
    Bridge,
    /// `NeMo`, whose training is that of Megatron-Bridge.
    Nemo,
    /// torchtitan, by a configuration function in Python.
    Torchtitan,
    /// `MaxText`, by a configuration in YAML.
    Maxtext,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Megatron, Self::Bridge, Self::Nemo, Self::Torchtitan, Self::Maxtext];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Megatron => "megatron",
            Self::Bridge => "bridge",
            Self::Nemo => "nemo",
            Self::Torchtitan => "torchtitan",
            Self::Maxtext => "maxtext",
        }
    }

    /// Whose rules its plans follow.
    pub fn framework(self) -> Framework {
        match self {
            Self::Megatron | Self::Bridge | Self::Nemo => Framework::Megatron,
            Self::Torchtitan => Framework::Torchtitan,
            Self::Maxtext => Framework::Maxtext,
        }
    }

    /// What a framework's own launcher is, where a plan is for nobody in particular.
    pub fn of(framework: Framework) -> Self {
        match framework {
            Framework::Megatron | Framework::Any => Self::Megatron,
            Framework::Torchtitan => Self::Torchtitan,
            Framework::Maxtext => Self::Maxtext,
        }
    }

    /// The version that its files are written against.
    pub fn version(self) -> &'static str {
        match self {
            Self::Megatron => "Megatron-LM d98e8a6 (2026-08-22)",
            Self::Bridge | Self::Nemo => "Megatron-Bridge 067f987 (2026-08-22)",
            Self::Torchtitan => "torchtitan b5bcd76 (2026-08-21)",
            Self::Maxtext => "MaxText e591f30 (2026-08-22)",
        }
    }

    /// How it can let devices share the tokens of a sequence.
    pub fn context_kinds(self) -> &'static [ContextKind] {
        match self {
            Self::Megatron | Self::Bridge | Self::Nemo => &ContextKind::ALL,
            Self::Torchtitan | Self::Maxtext => &[ContextKind::Ring, ContextKind::Gather],
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that nothing that starts plans has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` starts no plans; known are {}", Target::ALL.map(Target::name).join(", "))]
pub struct UnknownTarget {
    /// The name.
    pub found: String,
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        let known = Self::ALL.into_iter().find(|target| target.name() == text);
        known.ok_or_else(|| UnknownTarget { found: text.to_owned() })
    }
}

/// A plan with what its files say beside it.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The plan, checked.
    pub plan: &'a Plan,
    /// What is trained, in numbers.
    pub spec: &'a Spec,
    /// Devices of a node, where the network has nodes.
    pub per_node: Option<u64>,
    /// Batches to train for.
    pub steps: u64,
    /// What the files open with: the plan in words, the command that made them, what is predicted.
    pub notes: Vec<String>,
}

impl Run<'_> {
    /// Processes on each node, and nodes: as many as a node has devices, or the most below that
    /// divide all devices, because all nodes start as many.
    fn processes(&self) -> (u64, u64) {
        let devices = self.plan.job.devices;
        let most = self.per_node.unwrap_or(1).clamp(1, devices.max(1));
        let each = (1..=most).rev().find(|&each| devices.is_multiple_of(each)).unwrap_or(1);
        (each, devices / each)
    }
}

/// A file that starts a plan, or a part of what does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFile {
    /// Its name, without a directory.
    pub name: &'static str,
    /// What stands in it.
    pub text: String,
}

/// Why nothing can start a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotLaunch {
    /// The framework cannot express the model.
    #[error("{target} cannot express this model: {reason}; {would_do}")]
    Model {
        /// What was to start it.
        target: Target,
        /// What of the model it has no word for.
        reason: String,
        /// What would do.
        would_do: String,
    },
    /// The framework cannot express the plan.
    #[error("{target} cannot express this plan: {reason}; {would_do}")]
    Plan {
        /// What was to start it.
        target: Target,
        /// What of the plan it has no word for.
        reason: String,
        /// What would do.
        would_do: String,
    },
    /// The framework would reject the plan.
    #[error("{0}")]
    Rule(#[from] BrokenRule),
    /// The plan is no plan of a model.
    #[error("only plans of models can be started")]
    NoModel,
}

/// The files that start a run.
///
/// # Errors
/// What the framework would reject, or cannot express.
pub fn files(target: Target, run: &Run) -> Result<Vec<LaunchFile>, CannotLaunch> {
    let cut = Cut::of(run)?;
    target.framework().check(&cut.shape(run)?)?;
    match target {
        Target::Megatron => megatron::files(run, &cut),
        Target::Bridge | Target::Nemo => bridge::files(target, run, &cut),
        Target::Torchtitan => torchtitan::files(run, &cut),
        Target::Maxtext => maxtext::files(run, &cut),
    }
}

/// Whether a target has words for a model at all, whatever the plan.
///
/// # Errors
/// What of the model it has no word for.
pub fn expressible(target: Target, spec: &Spec) -> Result<(), CannotLaunch> {
    match target {
        Target::Megatron | Target::Bridge | Target::Nemo => {
            architecture::Architecture::of(target, spec).map(|_| ())
        }
        Target::Torchtitan => torchtitan::flavor(spec).map(|_| ()),
        Target::Maxtext => maxtext::expressible(spec),
    }
}

/// A text that grows piece by piece.
#[derive(Default)]
struct Text(String);

impl Text {
    fn add(&mut self, piece: &str) {
        self.0.push_str(piece);
    }
}

/// The opening comment of a file: what the plan says of itself, a line each after `#`.
fn header(target: Target, run: &Run, how: &str) -> Text {
    let mut text = Text::default();
    for note in &run.notes {
        for line in note.lines() {
            text.add(&format!("# {line}\n"));
        }
    }
    text.add(&format!("# For {}. {how}\n", target.version()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_written() {
        for target in Target::ALL {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        let error = "megatorn".parse::<Target>().unwrap_err().to_string();
        assert!(error.contains("known are megatron, bridge, nemo"), "{error}");
    }
}
