//! Layers cut into stages.

use std::ops::Range;

/// Layers in an order that no edge runs against, cut into consecutive stages.
///
/// Only the end of each stage is stored, so stages cannot overlap or leave a gap. For a chain the
/// order is the chain's own; where layers branch, it is what makes any stages that follow each
/// other (sets closed under successors, each within the last) consecutive.
/// Invariants: `order` holds each layer once; `ends` increases strictly from 1 to their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    order: Vec<usize>,
    ends: Vec<usize>,
}

impl Pipeline {
    /// Cuts a chain of `n_layers` before each layer in `ends` but the last, which ends it; `None`
    /// if that would leave a stage empty or a layer out.
    pub fn of_chain(n_layers: usize, ends: Vec<usize>) -> Option<Self> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let no_stage_is_empty = starts.zip(&ends).all(|(start, &end)| start < end);
        let whole = ends.last() == Some(&n_layers);
        (no_stage_is_empty && whole).then(|| Self { order: (0..n_layers).collect(), ends })
    }

    /// Stages given by their layers; `None` unless each of `n_layers` is in exactly one stage and
    /// no stage is empty.
    pub fn of_stages(n_layers: usize, stages: &[Vec<usize>]) -> Option<Self> {
        let order: Vec<usize> = stages
            .iter()
            .flat_map(|stage| {
                let mut layers = stage.clone();
                layers.sort_unstable();
                layers
            })
            .collect();
        let mut seen = vec![false; n_layers];
        for &layer in &order {
            if std::mem::replace(seen.get_mut(layer)?, true) {
                return None;
            }
        }
        let mut end = 0;
        let ends = stages.iter().map(|stage| {
            end += stage.len();
            end
        });
        let ends: Vec<usize> = ends.collect();
        let whole = order.len() == n_layers && n_layers > 0;
        (whole && stages.iter().all(|stage| !stage.is_empty())).then_some(Self { order, ends })
    }

    /// How many stages there are.
    pub fn n_stages(&self) -> usize {
        self.ends.len()
    }

    /// The layers of each stage, in the order in which a micro-batch visits them.
    pub fn stages(&self) -> impl DoubleEndedIterator<Item = &[usize]> + ExactSizeIterator {
        (0..self.ends.len()).map(|stage| &self.order[self.places(stage)])
    }

    fn places(&self, stage: usize) -> Range<usize> {
        stage.checked_sub(1).map_or(0, |previous| self.ends[previous])..self.ends[stage]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_each_other_without_gap() {
        let pipeline = Pipeline::of_chain(5, vec![2, 5]).unwrap();
        assert_eq!(pipeline.stages().collect::<Vec<_>>(), [&[0, 1][..], &[2, 3, 4]]);
        let same = Pipeline::of_stages(5, &[vec![1, 0], vec![2, 3, 4]]).unwrap();
        assert_eq!(same, pipeline);
    }

    #[test]
    fn an_empty_stage_or_a_lost_layer_cannot_be_written_down() {
        for ends in [vec![], vec![0, 3], vec![2, 2, 3], vec![2], vec![4]] {
            assert_eq!(Pipeline::of_chain(3, ends.clone()), None, "{ends:?}");
        }
        let broken: [&[Vec<usize>]; 5] =
            [&[], &[vec![0, 1]], &[vec![0, 1, 2], vec![]], &[vec![0, 1], vec![1, 2]], &[vec![7]]];
        for stages in broken {
            assert_eq!(Pipeline::of_stages(3, stages), None, "{stages:?}");
        }
    }
}
