//! All designs that a search may choose from.

use super::Accelerator;
use super::AreaBreakdown;
use super::Design;
use super::Physics;
use super::Port;
use super::Unbuildable;
use crate::units::Area;
use crate::units::Bytes;

/// The lanes that a vector core may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorWidths {
    /// As many as the array is wide.
    AsWidth,
    /// Any of these.
    Free(Vec<u64>),
}

/// Lists of values for each knob, and the limits of area.
///
/// Off-chip memory is not a knob of the chip: each design is built with one size of it at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesignSpace {
    /// Numbers of tensor cores.
    pub tensor_cores: Vec<u64>,
    /// Numbers of vector cores.
    pub vector_cores: Vec<u64>,
    /// Array widths.
    pub widths: Vec<u64>,
    /// Array depths.
    pub depths: Vec<u64>,
    /// Vector lanes.
    pub vector_widths: VectorWidths,
    /// Global buffers.
    pub glb: Vec<Bytes>,
    /// Bandwidths of the global buffer in bytes per cycle, each way; empty: as the physics say.
    pub glb_bytes_per_cycle: Vec<u64>,
    /// Sizes of off-chip memory.
    pub hbm: Vec<Bytes>,
    /// The largest chip.
    pub max_area: Area,
    /// The smallest chip, except where there is one tensor core or one vector core.
    pub min_area: Area,
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
            vector_cores: powers(0, 12),
            widths: powers(1, 8),
            depths: powers(1, 8),
            vector_widths: VectorWidths::AsWidth,
            glb: powers(1, 7).into_iter().map(|n| Bytes::MIB * n).collect(),
            glb_bytes_per_cycle: Vec::new(),
            hbm: [32, 64, 80].map(|n| Bytes::GIB * n).to_vec(),
            max_area,
            // Three tenths, rounded up: a chip must reach them.
            min_area: Area((max_area.0 * 3).div_ceil(10)),
        }
    }

    /// All designs in the published order: each knob from its largest value down, the number of
    /// tensor cores slowest, then vector cores, width, depth, lanes, global buffer and its
    /// bandwidth. The second part counts what was ruled out, and why.
    pub fn designs(&self, physics: &Physics) -> (Vec<Candidate>, Rejections) {
        let mut found = Vec::new();
        let mut count = Rejections::default();
        for candidate in self.grid() {
            count.points += 1;
            let design = &candidate.design;
            let single = design.tensor_cores == 1 || design.vector_cores == 1;
            match AreaBreakdown::of(design).map(|parts| parts.total()) {
                Some(area) if area <= self.max_area => {
                    if area < self.min_area && !single {
                        count.too_small += 1;
                    } else if candidate.build(design.hbm, physics).is_err() {
                        count.unbuildable += 1;
                    } else {
                        count.designs += 1;
                        found.push(candidate);
                    }
                }
                _ => count.too_large += 1,
            }
        }
        (found, count)
    }

    fn grid(&self) -> impl Iterator<Item = Candidate> {
        // A vector core as wide as the array is marked by zero lanes until the width is known.
        let lanes = match &self.vector_widths {
            VectorWidths::AsWidth => vec![0],
            VectorWidths::Free(widths) => widths.clone(),
        };
        let rates = match self.glb_bytes_per_cycle.as_slice() {
            [] => vec![0],
            rates => rates.to_vec(),
        };
        let hbm = self.hbm.first().copied().unwrap_or(Bytes::GIB);
        let knobs = [
            self.tensor_cores.clone(),
            self.vector_cores.clone(),
            self.widths.clone(),
            self.depths.clone(),
            lanes,
            self.glb.iter().map(|size| size.0).collect(),
            rates,
        ];
        every_choice(knobs).map(
            move |[tensor_cores, vector_cores, width, depth, lanes, glb, rate]| {
                let vector_width = if lanes == 0 { width } else { lanes };
                let design = Design {
                    tensor_cores,
                    vector_cores,
                    width,
                    depth,
                    vector_width,
                    local: Design::published_local(width, depth),
                    vector_local: Design::published_vector_local(vector_width),
                    glb: Bytes(glb),
                    hbm,
                };
                Candidate { design, glb_bytes_per_cycle: (rate > 0).then_some(rate) }
            },
        )
    }
}

impl Candidate {
    /// Builds it with `hbm` bytes of off-chip memory.
    pub fn build(&self, hbm: Bytes, physics: &Physics) -> Result<Accelerator, Unbuildable> {
        let design = Design { hbm, ..self.design };
        match self.glb_bytes_per_cycle {
            None => Accelerator::new(design, physics),
            Some(rate) => {
                let glb = Port { read: rate, write: rate };
                Accelerator::new(design, &Physics { glb, ..physics.clone() })
            }
        }
    }
}

/// One value from each list, in every way, each list from its largest value down, the last list
/// fastest.
fn every_choice<const N: usize>(mut lists: [Vec<u64>; N]) -> impl Iterator<Item = [u64; N]> {
    for list in &mut lists {
        list.sort_unstable_by(|a, b| b.cmp(a));
        list.dedup();
    }
    let n_choices: usize = lists.iter().map(Vec::len).product();
    (0..n_choices).map(move |choice| {
        let mut rest = choice;
        let mut values = [0; N];
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
    fn choices_run_from_the_largest_down_with_the_last_list_fastest() {
        let found: Vec<[u64; 2]> = every_choice([vec![1, 2], vec![5, 7, 5]]).collect();
        assert_eq!(found, [[2, 7], [2, 5], [1, 7], [1, 5]]);
        assert_eq!(every_choice([vec![1], vec![]]).count(), 0);
    }
}
