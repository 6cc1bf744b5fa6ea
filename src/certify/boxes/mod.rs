//! A whole answer over chips with its certificate, claim by claim; and the boxes of [`designs`] of the published
//! space.
//!
//! Boxes must tile the grid, each must be closed by a reason that holds, and what is told of chips and
//! plans is rebuilt from their knobs and decisions. What rests on an exact evaluation alone (corners,
//! points) is compared with the bound that is written a second time, and solved again by [`deep`].

mod compared;
pub mod deep;
pub mod designs;
mod front;
mod ground;
mod judged;
mod robust;
mod rows;
mod tile;
mod why;

pub use ground::ChipQuestion;
pub use judged::JudgedChips;
pub use judged::VerifiedChips;
pub use judged::check;
pub use tile::Untiled;
pub use tile::tile;
