//! What can be asked, and who answers? One file per verb.
//!
//! In: a typed request, made of options by the command line or of keywords by Python, and a reader for
//! the files that it names. Out: a typed answer that `report` shows, or a [`Refusal`]. Doors stay thin:
//! what two of them need is here. Not here: opening files (see `store`), clocks, terminals.

pub mod calibrate;
pub mod check;
pub mod chip;
pub mod chips;
pub mod estimate;
pub mod fewest;
pub mod inspect;
pub mod keywords;
pub mod place;
pub mod plan;
pub mod schedule;
pub mod search;
pub mod solved;
pub mod training;
pub mod validate;

pub use keywords::Keywords;

use std::io;

use crate::input::InputError;

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// What the user wrote cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Settings that contradict each other or lack another.
    #[error("{0}")]
    Options(String),
    /// The answer cannot be written.
    #[error("{place}: cannot be written: {reason}")]
    Unwritable {
        /// Where.
        place: String,
        /// What the system said.
        reason: io::Error,
    },
}

/// How the user spelled a setting, so that a refusal names it as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// As an option of the command line.
    Options,
    /// As a keyword, which is the key of a request file.
    #[default]
    Keywords,
}

impl Spelling {
    /// What a part of a space, its round and the rounds before are called.
    pub fn words_of_shards(self) -> [&'static str; 3] {
        match self {
            Self::Options => ["--shard", "--round", "--after"],
            Self::Keywords => ["part", "round_", "after"],
        }
    }

    /// The setting that a request file calls `key`.
    pub fn of(self, key: &str) -> String {
        match (self, key) {
            (Self::Keywords, key) => key.to_owned(),
            (Self::Options, "micro_batches") => "--micro-batch".to_owned(),
            (Self::Options, key) => format!("--{}", key.replace('_', "-")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_a_setting_as_it_was_written() {
        assert_eq!(Spelling::Options.of("batch_tokens"), "--batch-tokens");
        assert_eq!(Spelling::Options.of("micro_batches"), "--micro-batch");
        assert_eq!(Spelling::Keywords.of("batch_tokens"), "batch_tokens");
    }
}
