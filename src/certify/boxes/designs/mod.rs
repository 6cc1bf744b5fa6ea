//! The boxes of designs that prove an answer over the published space where not every design has a row.
//!
//! They must tile the grid for every size of memory, each must be closed by a reason that holds, and they must
//! agree with the rows of designs.csv, which holds those designs that were evaluated.

pub mod deep;
mod judged;

pub use judged::BoxClaim;
pub use judged::JudgedBoxes;
pub use judged::check;
pub use judged::listed;
