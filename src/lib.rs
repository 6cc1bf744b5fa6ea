//! Which accelerator should we build, and how do we train on it?
//!
//! # The front door
//!
//! What the command line can do, Rust can do in a few lines through the same functions: a
//! [`RequestFile`] is searched, a [`Question`] is placed, and answers are checked from first
//! principles.
//!
//! ```
//! use phaze::input::Conventions;
//! use phaze::input::place::Basics;
//! use phaze::input::place::question;
//! use phaze::input::request::RequestFile;
//! use phaze::input::source::no_files;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let request = "[[model]]\nname = 'bert-large'\n[job]\ndevices = 8\nglobal_batch = 64\n\
//!                [space]\nwidth = 128\ndepth = [64, 128]\nglb_mib = 32\nhbm_gib = 32\n";
//! let answer = phaze::search(&RequestFile::read(request, "an example")?)?;
//! let winner = answer.outcome.winner.as_ref().expect("something fits");
//! println!("{}", winner.results[0].strategy.sentence);
//! assert!(answer.outcome.proof.complete);
//! phaze::check(&answer)??;
//!
//! let basics = Basics::new("llama2-7b", "a100-80g", 64);
//! let plan = phaze::place(question(&basics, &Conventions::OURS, &no_files)?)?.expect("it fits");
//! println!("{}", plan.training.as_ref().expect("a model is trained").strategy);
//! phaze::input::place::judge(&plan, "the plan")??;
//! # Ok(())
//! # }
//! ```
//!
//! # The rooms
//!
//! From the ground up; each may use only those above it in this list (`tests/tidy.rs` enforces it).
//! ARCHITECTURE.md draws the path of data between them.

pub mod units;

pub mod graph;

pub mod model;

pub mod hardware;

pub mod parallel;

pub mod estimate;

pub mod plan;

pub mod schedule;

pub mod profile;

pub mod placement;

pub mod strategy;

pub mod search;

pub mod compare;

pub mod measure;

pub mod launch;

pub mod advise;

pub mod report;

pub mod certify;

pub mod input;

pub mod ask;

pub mod store;

use ask::Refusal;
use certify::FalseClaim;
use certify::Verified;
use input::InputError;
use input::request::RequestFile;
use plan::Plan;
use plan::Question;

pub use ask::search::Searched as SearchAnswer;

/// Finds the best chip of a space and the best way to train on it, with proof. Only what is built
/// in is read; `input::request::ready` takes a reader for files, and [`ask::search::answer`] somebody
/// who looks on.
///
/// # Errors
/// What of the request makes no sense.
pub fn search(request: &RequestFile) -> Result<SearchAnswer, Refusal> {
    let setup = input::request::ready(request, "request", &input::source::no_files)?;
    ask::search::answer(&setup, &(), &(), |_, _, _| Ok(()))
}

/// Finds the best way to train a model on one accelerator; `None` where nothing fits.
///
/// # Errors
/// What of the question makes no sense.
pub fn place(question: Question) -> Result<Option<Plan>, InputError> {
    input::place::solve(&input::place::ready(question, "question")?)
}

/// Judges the answer of a search from its request alone, without any solver: what was verified, or
/// the first claim that is false.
///
/// # Errors
/// That its request makes no sense.
pub fn check(answer: &SearchAnswer) -> Result<Result<Verified, FalseClaim>, InputError> {
    let (question, _) = input::request::judged_by(answer.outcome.request.clone(), "request")?;
    let designs = input::saved::cells("designs", &answer.designs)?;
    let boxes = input::saved::cells("boxes", answer.boxes.as_deref().unwrap_or_default())?;
    let tables = certify::Tables { designs: &designs, boxes: &boxes };
    let judged = question
        .listing(&designs)
        .and_then(|question| certify::check(&question, &answer.outcome, tables));
    Ok(judged.map(|judged| judged.verified))
}
