//! How many layers of a stage run their forward pass again, so that the stage fits.
//!
//! The first r layers of a stage keep their inputs only. When they are repeated, the later layers
//! of that micro-batch have been released already.

/// What one layer keeps of one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLayer {
    /// Everything that its backward pass needs.
    pub all: u64,
    /// Its input, which is all that it keeps where it is repeated; at most `all`.
    pub input: u64,
}

/// What the stage of `layers` keeps at most, with `in_flight` micro-batches, where the first
/// `repeated` layers run their forward pass again.
pub fn kept(layers: &[KeptLayer], repeated: usize, in_flight: u64) -> u128 {
    let (first, others) = layers.split_at(repeated.min(layers.len()));
    let sum = |layers: &[KeptLayer], of: fn(&KeptLayer) -> u64| -> u128 {
        layers.iter().map(|layer| u128::from(of(layer))).sum()
    };
    let inputs = sum(first, |layer| layer.input);
    let kept = sum(others, |layer| layer.all);
    // The micro-batch whose layers are repeated one by one, from the last on.
    let (mut released, mut above) = (kept, 0);
    for layer in first.iter().rev() {
        let again = u128::from(layer.all.saturating_sub(layer.input));
        above = again.saturating_sub(released).max(above);
        released += u128::from(layer.input);
    }
    u128::from(in_flight) * (inputs + kept) + above
}

/// The fewest layers of a stage, from its first on, that must run their forward pass again so that
/// it keeps at most `room`; `None` where all are not enough.
///
/// A layer more that is repeated takes its own activations from every micro-batch in flight and
/// gives them back to one at most, so what is kept never grows with it.
pub fn fewest_repeated(layers: &[KeptLayer], in_flight: u64, room: u128) -> Option<usize> {
    if kept(layers, layers.len(), in_flight) > room {
        return None;
    }
    // Invariant: fewer than `few` do not suffice; `enough` do.
    let (mut few, mut enough) = (0, layers.len());
    while few < enough {
        let middle = few + (enough - few) / 2;
        if kept(layers, middle, in_flight) <= room {
            enough = middle;
        } else {
            few = middle + 1;
        }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_layers_keep_what_the_formula_says() {
        let (all, input) = (10, 3);
        let layers = [KeptLayer { all, input }; 4];
        for in_flight in 1..5 {
            for repeated in 0..=4_u64 {
                let formula = in_flight * ((4 - repeated) * all + repeated * input)
                    + if repeated == 4 { all - input } else { 0 };
                let found = kept(&layers, usize::try_from(repeated).unwrap(), in_flight);
                assert_eq!(found, u128::from(formula));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_fewest_are_found_by_bisection_as_by_trying_all(
            layers in prop::collection::vec((0_u64..30, 0_u64..30), 0..8),
            in_flight in 1_u64..6,
            room in 0_u128..600,
        ) {
            let layers: Vec<KeptLayer> = layers
                .into_iter()
                .map(|(more, input)| KeptLayer { all: input + more, input })
                .collect();
            let tried = (0..=layers.len()).find(|&r| kept(&layers, r, in_flight) <= room);
            prop_assert_eq!(fewest_repeated(&layers, in_flight, room), tried);
            let falls = (0..layers.len())
                .all(|r| kept(&layers, r, in_flight) >= kept(&layers, r + 1, in_flight));
            prop_assert!(falls);
        }

        #[test]
        fn what_is_kept_is_the_most_of_every_moment(
            layers in prop::collection::vec((0_u64..30, 0_u64..30), 1..6),
            repeated in 0_usize..6,
            in_flight in 1_u64..4,
        ) {
            let layers: Vec<KeptLayer> = layers
                .into_iter()
                .map(|(more, input)| KeptLayer { all: input + more, input })
                .collect();
            let repeated = repeated.min(layers.len());
            let own = |place: usize| {
                if place < repeated { layers[place].input } else { layers[place].all }
            };
            let whole: u64 = (0..layers.len()).map(own).sum();
            let mut most = in_flight * whole;
            for at in (0..repeated).rev() {
                let below: u64 = (0..at).map(own).sum();
                most = most.max((in_flight - 1) * whole + below + layers[at].all);
            }
            prop_assert_eq!(kept(&layers, repeated, in_flight), u128::from(most));
        }
    }
}
