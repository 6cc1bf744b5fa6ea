//! Turns what users write into checked values; the only room that knows input formats.
//!
//! In: the text of a file and the name it goes by. Out: values of the rooms below, or an
//! [`InputError`] that names the place. Not here: opening files (see `store`).

pub mod batch;
mod builtin;
mod chip;
pub mod chip_space;
pub mod conventions;
pub mod decimal;
pub mod efficiency;
pub mod efficiency_choice;
mod error;
mod fields;
pub mod graph;
pub mod hardware;
pub mod hf_config;
pub mod imbalance;
pub mod jobs;
mod json_place;
pub mod launched;
mod made_ready;
pub mod model_file;
mod network;
pub mod next_tokens;
pub mod numbers;
pub mod place;
pub mod profile;
pub mod request;
pub mod runs;
pub mod saved;
pub mod source;
pub mod space;
mod space_of;
pub mod strategy;
pub mod sweep;
pub mod technology;
mod valid;
mod words;

pub use builtin::model;
pub use builtin::model_names;
pub use conventions::Conventions;
pub use error::InputError;
pub use error::closest;
pub use hardware::references;
