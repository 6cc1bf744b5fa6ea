//! The published space searched over boxes of designs, as chips are: rows are kept only of designs that were
//! evaluated.
//!
//! In: a [`Setup`](super::Setup). Out: a [`BoxedSurvey`]: a survey of the evaluated designs, and the boxes
//! that tile the grid for every size of off-chip memory, each with why none of its designs is better.
//! Exact times of the published physics have no law (off-chip time is rounded to whole cycles, and buffers
//! inside of cores follow from the sides of arrays): only rooflines close boxes of several designs.
//! Not here: the list of all designs (see [`survey`](mod@super::survey)).

mod problem;
mod survey;

pub use problem::DesignPoint;
pub use problem::DesignRegion;
pub use survey::BoxedSurvey;
pub use survey::DesignBoxes;
pub use survey::DesignWalk;
pub use survey::survey_boxes;
