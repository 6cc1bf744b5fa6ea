//! What is a winner compared with?
//!
//! In: a [`Survey`](crate::search::Survey) of a space. Out: an [`Outcome`](crate::search::Outcome)
//! with the winner in full, the baselines that it is compared with, what turning each of its knobs
//! would bring, and the proof. Not here: how designs are found (see `search`), and the words in
//! which an answer is shown (see `report`).

mod baselines;
pub mod chips;
mod conclude;
mod experts;
mod operator_sums;
mod operators_alone;
mod sensitivity;

pub use baselines::Described;
pub use baselines::N_BASELINES;
pub use baselines::References;
pub use baselines::STOPPED;
pub use baselines::description;
pub use chips::chip_outcome;
pub use conclude::outcome;
pub use experts::Degrees;
pub use experts::PUBLISHED;
pub use experts::Published;
pub use experts::space as expert_space;
pub use experts::strategy as expert_strategy;
pub use operators_alone::operators_alone;
pub use sensitivity::Turned;
pub use sensitivity::UNBUILDABLE;
pub use sensitivity::UNFIT;
pub use sensitivity::gain;
pub use sensitivity::sensitivities;
pub use sensitivity::turns;
