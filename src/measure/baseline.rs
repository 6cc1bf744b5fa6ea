//! What anybody would predict without a model of hardware: a constant part of the peak.

use super::Prepared;

/// A prediction that a model must beat to be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Baseline {
    /// Every run reaches the same part of the peak.
    Utilisation,
    /// The same, and pipelines wait as equal stages do.
    UtilisationAndBubble,
}

impl Baseline {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Utilisation, Self::UtilisationAndBubble];

    /// What a table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utilisation => "constant utilisation",
            Self::UtilisationAndBubble => "the same with bubble",
        }
    }

    /// Seconds of a run at the whole of a peak rate.
    pub fn at_peak(self, run: &Prepared, peak_flops_per_second: f64) -> f64 {
        let computing = run.flops() / peak_flops_per_second;
        match self {
            Self::Utilisation => computing,
            Self::UtilisationAndBubble => computing * (1.0 + run.bubble()),
        }
    }
}
