//! What is said of an answer, as pure functions of its facts: whoever has the facts can say it
//! again and compare.

use super::NEAR_PERCENT;
use super::ProofByHbm;

/// What a proof says of the whole space.
#[derive(Clone, Copy, Debug)]
pub struct Proved<'a> {
    /// Designs in the space, sizes of off-chip memory not counted.
    pub designs: usize,
    /// For each size of off-chip memory.
    pub by_hbm: &'a [ProofByHbm],
    /// What stopped the search early.
    pub stopped_by: Option<&'a str>,
    /// Whether a cap of power may have ruled designs out.
    pub capped: bool,
}

impl Proved<'_> {
    /// How much better than the best something unknown could be, at the most.
    pub fn gap(&self) -> f64 {
        self.by_hbm.iter().map(|row| row.gap).fold(0.0, f64::max)
    }

    /// The whole proof in a sentence.
    pub fn statement(&self) -> String {
        let sum = |count: fn(&ProofByHbm) -> usize| self.by_hbm.iter().map(count).sum::<usize>();
        let infeasible = match sum(|row| row.infeasible) {
            0 => String::new(),
            n if self.capped => {
                format!(", and on {n} nothing fits or what does draws too much power")
            }
            n => format!(", and on {n} nothing fits"),
        };
        let beaten = match sum(|row| row.beaten) {
            0 => String::new(),
            n => format!(", {n} were found to be worse by more than {NEAR_PERCENT} %"),
        };
        let counts = format!(
            "of {} designs x {} HBM sizes, {} were evaluated exactly{beaten}, {} cannot be better \
             even by their optimistic bound{infeasible}",
            self.designs,
            self.by_hbm.len(),
            sum(|row| row.evaluated),
            sum(|row| row.pruned),
        );
        let gap = self.gap();
        match self.stopped_by {
            Some(reason) => format!(
                "Not proved: stopped by {reason}; {counts}, and {} were not looked at.",
                sum(|row| row.open)
            ),
            None if gap > 0.0 => format!(
                "Proved to within {:.3} %: {counts}; some schedules are not proved to the last \
                 picosecond.",
                gap * 100.0
            ),
            None => format!("Proved: {counts}."),
        }
    }
}

/// Why nothing fits although something would without a cap of power.
pub const TOO_MUCH_POWER: &str = "every design that fits draws more than the power cap";

/// What is in the way of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Hindrance {
    /// A layer does not fit even alone.
    Layer {
        /// Its place in the sequence.
        layer: usize,
        /// What it is called.
        name: String,
        /// What it needs, in GiB.
        needed_gib: f64,
    },
    /// There are too few devices for one pipeline.
    Devices {
        /// The fewest that would do.
        needed: u64,
        /// How many there are.
        available: u64,
    },
    /// No number of devices would do.
    Activations,
}

impl Hindrance {
    /// In a sentence: `model` with devices of `gib` at a width.
    pub fn sentence(&self, model: &str, gib: u64, width: u64) -> String {
        match self {
            Self::Layer { layer, name, needed_gib } => format!(
                "{model}: layer {layer} ({name}) alone needs {needed_gib:.1} GiB of {gib} GiB at \
                 width {width}"
            ),
            Self::Devices { needed, available } => format!(
                "{model}: one pipeline needs at least {needed} devices of {gib} GiB at width \
                 {width}, and there are {available}"
            ),
            Self::Activations => format!(
                "{model}: activations of the micro-batches in flight do not fit in {gib} GiB at \
                 width {width}, whatever the number of devices"
            ),
        }
    }
}

/// What may stop a search early, as a proof names it.
pub const STOPPED_BY: [&str; 2] = ["the time limit", "the user"];
