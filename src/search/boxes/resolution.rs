//! How finely figures are told apart.

/// Figures are rounded up to the next of a list of steps, each larger than the one before by a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The steps, ascending; empty where every unit is one.
    steps: Vec<u64>,
}

impl Resolution {
    /// Steps of so many thousandths; 0 for every unit.
    pub fn per_mille(part: u64) -> Self {
        let mut steps = Vec::new();
        let mut next = (part > 0).then_some(1_u64);
        while let Some(step) = next {
            steps.push(step);
            let more = (u128::from(step) * u128::from(part)).div_ceil(1000);
            next = u64::try_from(more).ok().and_then(|more| step.checked_add(more.max(1)));
        }
        if part > 0 {
            steps.push(u64::MAX);
        }
        Self { steps }
    }

    /// The least step that is no less than a figure.
    pub fn up(&self, figure: u64) -> u64 {
        let place = self.steps.partition_point(|&step| step < figure);
        self.steps.get(place).copied().unwrap_or(figure)
    }

    /// The least figure that is rounded up to a rounded one; the greatest number stands for no limit.
    pub fn first_of(&self, rounded: u64) -> u64 {
        if self.steps.is_empty() || rounded == u64::MAX {
            return rounded;
        }
        let place = self.steps.partition_point(|&step| step < rounded);
        place.checked_sub(1).map_or(0, |before| self.steps[before] + 1)
    }

    /// The greatest figure that is rounded up to less than a rounded one; the greatest number stands for no
    /// limit, and nothing is less than 0.
    pub fn most_inside(&self, rounded: u64) -> u64 {
        if rounded == u64::MAX { rounded } else { self.first_of(rounded).saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::Resolution;

    #[test]
    fn figures_are_rounded_up_to_steps() {
        let raw = Resolution::per_mille(0);
        assert_eq!((raw.up(7), raw.first_of(7), raw.most_inside(7)), (7, 7, 6));
        for part in [1, 50, 999] {
            let steps = Resolution::per_mille(part);
            for figure in (0..3000).chain([u64::MAX / 3, u64::MAX / 2]) {
                let up = steps.up(figure);
                let most = u128::from(figure) * (1000 + u128::from(part)) / 1000 + 1;
                assert!(up >= figure && u128::from(up) <= most, "{part} {figure} {up}");
                assert_eq!(steps.up(up), up);
                let first = steps.first_of(up);
                assert!(first <= figure && steps.up(first) == up, "{part} {figure} {first}");
                let below = steps.most_inside(up);
                assert!(first == 0 || (below + 1 == first && steps.up(below) < up));
            }
        }
    }

    #[test]
    fn the_greatest_number_is_no_limit() {
        for part in [0, 30] {
            let steps = Resolution::per_mille(part);
            assert_eq!(
                (steps.first_of(u64::MAX), steps.most_inside(u64::MAX)),
                (u64::MAX, u64::MAX)
            );
        }
    }
}
