//! The best points of a grid that is too large to be listed, with the boxes that prove it.
//!
//! In: a [`BoxProblem`], which says what fits, what no point of a box can beat and what a point is
//! worth. Out: a [`BoxWalk`]: the best points, and closed boxes that tile the grid, each with why
//! none of its points is better. docs/search.md proves the laws that this rests on.
//!
//! The answer does not depend on the number of threads: boxes are taken in batches of a fixed size,
//! and what is known changes only between batches. A walk may begin with any box of the grid, so
//! that parts of a grid can be searched apart and their closed boxes joined.
//! Not here: what a knob is, files, clocks.

mod climb;
mod front;
mod front_synthetic;
mod kin;
mod peel;
mod problem;
mod region;
mod resolution;
mod shrink;
mod split;
mod synthetic;
mod walk;

pub use front::EmptyGap;
pub use front::Figures;
pub use front::FrontPoint;
pub use front::FrontProblem;
pub use front::FrontWalk;
pub use front::Within;
pub use front::front;
pub use front::gaps;
pub use problem::BoxProblem;
pub use problem::Closed;
pub use problem::Corner;
pub use problem::Evaluation;
pub use problem::Value;
pub use problem::Why;
pub use problem::each_alone;
pub use region::Point;
pub use region::Region;
pub use region::place;
pub use resolution::Resolution;
pub use shrink::trimmed;
pub use walk::BoxPeers;
pub use walk::BoxWalk;
pub use walk::Kept;
pub use walk::rest_on;
pub use walk::walk;
pub use walk::walk_apart;
