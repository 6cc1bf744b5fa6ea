//! The supply that a clock needs, as a table: powers are not the same on every machine.

use super::Origin;

/// Supplies by clock, both in thousandths of the nominal ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoltageTable {
    first_clock: u64,
    clock_step: u64,
    supply: Vec<u64>,
    origin: Origin,
}

impl VoltageTable {
    /// The table whose first supply is for `first_clock`, and each further one for `clock_step` more;
    /// `None` unless supplies never fall and there is one.
    pub fn new(
        first_clock: u64,
        clock_step: u64,
        supply: Vec<u64>,
        origin: Origin,
    ) -> Option<Self> {
        let sound = first_clock > 0 && clock_step > 0 && !supply.is_empty() && supply.is_sorted();
        sound.then_some(Self { first_clock, clock_step, supply, origin })
    }

    /// Where it is from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The supply for a clock, where `nominal_mhz` need the nominal one; a clock between two entries
    /// takes the higher one, so that a higher clock never has a lower supply.
    pub fn supply(&self, clock_mhz: u64, nominal_mhz: u64) -> Option<u64> {
        let clock = clock_mhz.saturating_mul(1000).div_ceil(nominal_mhz.max(1));
        let place = clock.saturating_sub(self.first_clock).div_ceil(self.clock_step);
        self.supply.get(usize::try_from(place).ok()?).copied()
    }

    /// The highest clock that has a supply, in MHz.
    pub fn highest(&self, nominal_mhz: u64) -> u64 {
        let last = self.first_clock + self.clock_step * (self.supply.len() as u64 - 1);
        nominal_mhz.saturating_mul(last) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;

    #[test]
    fn a_clock_between_two_entries_takes_the_higher_supply() {
        let origin = Origin { mark: Mark::Assumed, source: "test".into() };
        let table = VoltageTable::new(800, 100, vec![750, 900, 1000], origin.clone()).unwrap();
        for (mhz, supply) in [
            (1, Some(750)),
            (1600, Some(750)),
            (1601, Some(900)),
            (1800, Some(900)),
            (1802, Some(1000)),
            (2000, Some(1000)),
            (2001, None),
            (u64::MAX, None),
        ] {
            assert_eq!(table.supply(mhz, 2000), supply, "{mhz} MHz");
        }
        assert_eq!(table.highest(2000), 2000);
        assert_eq!(VoltageTable::new(800, 100, vec![900, 750], origin), None);
    }
}
