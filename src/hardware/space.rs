//! All designs that a search may choose from.

use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;

use super::Accelerator;
use super::AreaBreakdown;
use super::Design;
use super::Knob;
use super::Physics;
use super::Port;
use super::Unbuildable;
use crate::units::Bytes;

/// Lists of values for each knob, and the limits of area.
///
/// Values are in the units of [`KNOBS`](super::KNOBS), ascending, each once. Off-chip memory is not
/// a knob of the chip: each design is built with one size of it at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the knob of that name")]
pub struct DesignSpace {
    pub tensor_cores: Vec<u64>,
    pub width: Vec<u64>,
    pub depth: Vec<u64>,
    pub vector_cores: Vec<u64>,
    /// Empty: as wide as the array.
    pub vector_width: Vec<u64>,
    pub glb_mib: Vec<u64>,
    /// Bytes per cycle, each way. Empty: as the physics say.
    pub glb_bytes_per_cycle: Vec<u64>,
    pub hbm_gib: Vec<u64>,
    /// The largest chip, in square nanometres.
    pub max_area_nm2: u64,
    /// The smallest chip, except where there is one tensor core or one vector core, in square
    /// nanometres.
    pub min_area_nm2: u64,
}

/// How many points of the grid are designs, and what ruled out the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    /// Combinations of knobs.
    pub points: u64,
    /// Larger than the limit.
    pub too_large: u64,
    /// Smaller than the limit.
    pub too_small: u64,
    /// A buffer cannot hold one tile, or a knob is outside its range.
    pub unbuildable: u64,
    /// What is left.
    pub designs: u64,
}

/// What a point of a grid is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// A design.
    Design,
    /// Larger than the limit.
    TooLarge,
    /// Smaller than the limit.
    TooSmall,
    /// A buffer cannot hold one tile, or a knob is outside its range.
    Unbuildable,
}

/// A design of a space, with what may differ from the physics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The knobs, with the first size of off-chip memory.
    pub design: Design,
    /// Bandwidth of the global buffer, where the space varies it.
    pub glb_bytes_per_cycle: Option<u64>,
}

impl DesignSpace {
    /// The space of the published evaluation: 29,360 designs.
    pub fn published() -> Self {
        let powers = |low: u32, high: u32| (low..=high).map(|i| 1 << i).collect::<Vec<u64>>();
        let largest = Design {
            tensor_cores: 8,
            vector_cores: 2,
            width: 128,
            depth: 128,
            vector_width: 128,
            local: Design::published_local(128, 128),
            vector_local: Design::published_vector_local(128),
            glb: Bytes::MIB * 128,
            hbm: Bytes::GIB * 32,
        };
        let max_area = AreaBreakdown::of(&largest).expect("the largest design has an area").total();
        Self {
            tensor_cores: powers(0, 12),
            width: powers(1, 8),
            depth: powers(1, 8),
            vector_cores: powers(0, 12),
            vector_width: Vec::new(),
            glb_mib: powers(1, 7),
            glb_bytes_per_cycle: Vec::new(),
            hbm_gib: vec![32, 64, 80],
            max_area_nm2: max_area.0,
            // Three tenths, rounded up: a chip must reach them.
            min_area_nm2: (max_area.0 * 3).div_ceil(10),
        }
    }

    /// All designs in the published order: each knob from its largest value down, the number of
    /// tensor cores slowest, then vector cores, width, depth, lanes, global buffer and its
    /// bandwidth. The second part counts what was ruled out, and why.
    pub fn designs(&self, physics: &Physics) -> (Vec<Candidate>, Rejections) {
        let mut found = Vec::new();
        let count = self.each_design(physics, |candidate| found.push(candidate));
        (found, count)
    }

    /// The first of all designs, and how many points are designs, of which no list is made.
    pub fn count(&self, physics: &Physics) -> (Option<Candidate>, Rejections) {
        let mut first = None;
        let count = self.each_design(physics, |candidate| {
            first.get_or_insert(candidate);
        });
        (first, count)
    }

    fn each_design(&self, physics: &Physics, mut met: impl FnMut(Candidate)) -> Rejections {
        let mut count = Rejections::default();
        for candidate in self.grid() {
            count.points += 1;
            match self.kind(&candidate, physics) {
                PointKind::TooLarge => count.too_large += 1,
                PointKind::TooSmall => count.too_small += 1,
                PointKind::Unbuildable => count.unbuildable += 1,
                PointKind::Design => {
                    count.designs += 1;
                    met(candidate);
                }
            }
        }
        count
    }

    /// Combinations of knobs of the chip; `None` beyond 64 bits.
    pub fn points(&self) -> Option<u64> {
        let counts = Knob::of_chip().map(|knob| {
            let n_values = knob.values(self).len() as u64;
            if knob.follows() { n_values.max(1) } else { n_values }
        });
        counts.into_iter().try_fold(1_u64, u64::checked_mul)
    }

    fn grid(&self) -> impl Iterator<Item = Candidate> {
        let mut knobs: Vec<&'static Knob> = Knob::of_chip()
            .filter(|knob| !(knob.follows() && knob.values(self).is_empty()))
            .collect();
        // As published: vector cores turn right after tensor cores, the others as in the table.
        knobs.sort_by_key(|knob| match knob.name {
            "tensor_cores" => 0,
            "vector_cores" => 1,
            _ => 2,
        });
        let lists = knobs.iter().map(|knob| knob.values(self).to_vec()).collect();
        every_choice(lists).map(move |values| self.candidate(knobs.iter().copied().zip(values)))
    }

    /// The point with these values; what they do not say follows from them.
    pub(super) fn candidate(
        &self,
        values: impl IntoIterator<Item = (&'static Knob, u64)>,
    ) -> Candidate {
        let mut found = Candidate::from(EMPTY);
        for (knob, value) in values {
            (knob.set)(&mut found, value);
        }
        let design = &mut found.design;
        if self.vector_width.is_empty() {
            design.vector_width = design.width;
        }
        design.local = Design::published_local(design.width, design.depth);
        design.vector_local = Design::published_vector_local(design.vector_width);
        let hbm_gib = self.hbm_gib.first().copied().unwrap_or(1);
        design.hbm = Bytes(Bytes::GIB.0.saturating_mul(hbm_gib));
        found
    }

    /// What a point of the grid is, by its area and by whether it can be built.
    pub fn kind(&self, candidate: &Candidate, physics: &Physics) -> PointKind {
        let design = &candidate.design;
        let single = design.tensor_cores == 1 || design.vector_cores == 1;
        match AreaBreakdown::of(design).map(|parts| parts.total()) {
            Some(area) if area.0 <= self.max_area_nm2 => {
                if area.0 < self.min_area_nm2 && !single {
                    PointKind::TooSmall
                } else if candidate.build(design.hbm, physics).is_err() {
                    PointKind::Unbuildable
                } else {
                    PointKind::Design
                }
            }
            _ => PointKind::TooLarge,
        }
    }
}

/// What a point of the grid is before its knobs are set.
const EMPTY: Design = Design {
    tensor_cores: 0,
    vector_cores: 0,
    width: 0,
    depth: 0,
    vector_width: 0,
    local: Bytes::ZERO,
    vector_local: Bytes::ZERO,
    glb: Bytes::ZERO,
    hbm: Bytes::ZERO,
};

impl Candidate {
    /// Builds it with `hbm` bytes of off-chip memory.
    pub fn build(&self, hbm: Bytes, physics: &Physics) -> Result<Accelerator, Unbuildable> {
        let design = Design { hbm, ..self.design };
        Self { design, ..*self }.in_range()?;
        Accelerator::new(design, &self.in_physics(physics))
    }

    /// A chip that none between `least` and this one beats, whether or not it can be built: what it does
    /// takes as long as here, each access of a buffer and the power at rest as much as in the least. For
    /// bounds alone; `None` where a knob is out of its range, or the least is too large.
    pub fn optimistic(&self, least: &Self, hbm: Bytes, physics: &Physics) -> Option<Accelerator> {
        let area = AreaBreakdown::of(&least.design)?;
        let assembled = |of: &Self| {
            let design = Design { hbm, ..of.design };
            Self { design, ..*of }.in_range().ok()?;
            Some(Accelerator::with_any_buffer(design, &of.in_physics(physics), area))
        };
        Some(assembled(self)?.with_energies_of(&assembled(least)?))
    }

    /// The physics with what the design says of them.
    fn in_physics<'a>(&self, physics: &'a Physics) -> Cow<'a, Physics> {
        match self.glb_bytes_per_cycle {
            None => Cow::Borrowed(physics),
            Some(rate) => {
                let glb = Port { read: rate, write: rate };
                Cow::Owned(Physics { glb, ..physics.clone() })
            }
        }
    }
}

/// One value from each list, in every way, each list from its largest value down, the last list
/// fastest.
fn every_choice(mut lists: Vec<Vec<u64>>) -> impl Iterator<Item = Vec<u64>> {
    for list in &mut lists {
        list.sort_unstable_by(|a, b| b.cmp(a));
        list.dedup();
    }
    let n_choices = lists.iter().map(Vec::len).try_fold(1, usize::checked_mul);
    let n_choices = n_choices.expect("the points of a space can be counted");
    (0..n_choices).map(move |choice| {
        let mut rest = choice;
        let mut values = vec![0; lists.len()];
        for (value, list) in values.iter_mut().zip(&lists).rev() {
            *value = list[rest % list.len()];
            rest /= list.len();
        }
        values
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_of_a_grid_are_counted_without_making_them() {
        let mut space = DesignSpace::published();
        assert_eq!(space.points(), Some(space.grid().count() as u64));
        space.vector_width = (1..=65_536).collect();
        space.tensor_cores = (1..=65_536).collect();
        space.vector_cores = (1..=65_536).collect();
        space.glb_bytes_per_cycle = (1..=65_536).collect();
        assert_eq!(space.points(), None);
    }

    #[test]
    fn choices_run_from_the_largest_down_with_the_last_list_fastest() {
        let found: Vec<Vec<u64>> = every_choice(vec![vec![1, 2], vec![5, 7, 5]]).collect();
        assert_eq!(found, [[2, 7], [2, 5], [1, 7], [1, 5]]);
        assert_eq!(every_choice(vec![vec![1], vec![]]).count(), 0);
    }
}
