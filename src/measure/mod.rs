//! How close are we to measured runs?
//!
//! In: measured [`Run`]s, the [`Machine`]s they ran on. Out: what each run is predicted to take, term
//! by term ([`Prediction`]), scalars fitted to runs with how well each is known ([`Fit`]), and
//! figures of error and rank for sets and splits of runs ([`Validation`]).
//!
//! A run is predicted by the same functions as a plan: a share is divided, its kernels are timed,
//! layers are profiled and the pipeline is played. Nothing here knows a model, a set or a machine by
//! name.
//!
//! Not here: the format of files of runs (see `input`), and how figures are printed (see `report`).

mod baseline;
mod figures;
mod fit;
mod predict;
mod run;
mod simulated;
mod validation;

pub use baseline::Baseline;
pub use figures::Figures;
pub use figures::Pair;
pub use fit::Bench;
pub use fit::Fit;
pub use fit::Fitted;
pub use fit::Ranges;
pub use fit::Scalar;
pub use fit::Scalars;
pub use predict::Inexpressible;
pub use predict::Machine;
pub use predict::Parts;
pub use predict::Prediction;
pub use predict::Prepared;
pub use predict::Term;
pub use run::Repeated;
pub use run::Run;
pub use simulated::on_a_line;
pub use validation::Blocks;
pub use validation::Choice;
pub use validation::Predicted;
pub use validation::Split;
pub use validation::Validation;
pub use validation::identifiable;
pub use validation::validate;
