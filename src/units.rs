//! Quantities with their unit in the type.
//!
//! In: plain numbers at the rim of the program. Out: values that cannot be mixed up.
//! All are non-negative integers, so sums are exact in any order, two runs agree to the last
//! digit and checkers compare with `==`. Sums that leave a unit's range panic with a sentence
//! instead of wrapping; readers of user input bound sizes so that this cannot be reached.
//!
//! Not here: how a quantity is printed for a person (see `report`).

use std::iter::Sum;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Mul};

use serde::Deserialize;
use serde::Serialize;

/// Defines a quantity that adds to itself and multiplies by a count.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $integer:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $integer);

        impl $name {
            /// Nothing at all.
            pub const ZERO: Self = Self(0);
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.checked_add(other.0).expect("a sum stays within its unit's range"))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, count: u64) -> Self {
                let product = self.0.checked_mul(<$integer>::from(count));
                Self(product.expect("a multiple stays within its unit's range"))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
                terms.fold(Self::ZERO, Add::add)
            }
        }
    };
}

quantity! {
    /// A span of time, in whole picoseconds. The range is 213 days; one training batch is minutes.
    Time, u64
}
quantity! {
    /// An amount of memory or traffic, in bytes.
    Bytes, u64
}
quantity! {
    /// A number of clock cycles; which clock, the owner knows.
    Cycles, u64
}
quantity! {
    /// A silicon area, in whole square nanometres (10⁻⁶ µm²): the published coefficients are
    /// exact in it.
    Area, u64
}
quantity! {
    /// An energy, in whole femtojoules. Wide, because a training run takes megajoules.
    Energy, u128
}
quantity! {
    /// A power, in whole milliwatts.
    Power, u64
}
quantity! {
    /// An amount of money, in whole cents of a US dollar.
    Money, u64
}
quantity! {
    /// A number of floating-point operations. Wide, because a batch of the largest models needs
    /// more than 2⁶⁴.
    Flops, u128
}

/// A transfer rate, in bytes per second. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bandwidth(NonZeroU64);

/// A clock rate, in hertz. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(NonZeroU64);

impl Time {
    /// Picoseconds in a second.
    pub const PER_SECOND: u64 = 1_000_000_000_000;

    /// The same span in seconds, for printing and for ratios.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / Self::PER_SECOND as f64
    }

    /// A span given in seconds, rounded to the nearest picosecond; `None` where it is negative,
    /// not a number, or longer than the range.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        let picoseconds = (seconds * Self::PER_SECOND as f64).round();
        let in_range = (0.0..u64::MAX as f64).contains(&picoseconds);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was just checked and the value is whole"
        )]
        in_range.then_some(Self(picoseconds as u64))
    }
}

impl Bytes {
    /// Bytes in a kibibyte, mebibyte and gibibyte.
    pub const KIB: Self = Self(1 << 10);
    #[expect(missing_docs, reason = "said above")]
    pub const MIB: Self = Self(1 << 20);
    #[expect(missing_docs, reason = "said above")]
    pub const GIB: Self = Self(1 << 30);

    /// The same amount in gibibytes, for printing and for ratios.
    pub fn gib(self) -> f64 {
        self.0 as f64 / Self::GIB.0 as f64
    }
}

impl Area {
    /// The same area in square micrometres.
    pub fn square_micrometres(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The same area in square millimetres.
    pub fn square_millimetres(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Power {
    /// The same power in watts.
    pub fn watts(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl Money {
    /// The same amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e2
    }
}

impl Energy {
    /// The same energy in picojoules.
    pub fn picojoules(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The same energy in joules.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e15
    }
}

impl Bandwidth {
    /// A rate in bytes per second; `None` for zero.
    pub fn bytes_per_second(rate: u64) -> Option<Self> {
        NonZeroU64::new(rate).map(Self)
    }

    /// The rate as a plain number of bytes per second.
    pub fn as_bytes_per_second(self) -> u64 {
        self.0.get()
    }

    /// So many links side by side.
    #[must_use]
    pub fn times(self, links: u64) -> Self {
        Self(NonZeroU64::new(links).map_or(self.0, |links| self.0.saturating_mul(links)))
    }

    /// So many thousandths of the rate, rounded down, but never nothing.
    #[must_use]
    pub fn thousandths(self, thousandths: u16) -> Self {
        let rate = u128::from(self.0.get()) * u128::from(thousandths) / 1000;
        let rate = u64::try_from(rate).ok().and_then(NonZeroU64::new);
        Self(rate.unwrap_or(NonZeroU64::MIN))
    }

    /// The time to move `size`, rounded up: a started picosecond is waited for.
    pub fn transfer(self, size: Bytes) -> Time {
        Time(
            scale_up(size.0, Time::PER_SECOND, self.0.get())
                .expect("a transfer ends within 213 days"),
        )
    }
}

impl Frequency {
    /// A clock in hertz; `None` for zero.
    pub fn hertz(rate: u64) -> Option<Self> {
        NonZeroU64::new(rate).map(Self)
    }

    /// The clock as a plain number of hertz.
    pub fn as_hertz(self) -> u64 {
        self.0.get()
    }

    /// How long `cycles` take, rounded up.
    pub fn time(self, cycles: Cycles) -> Time {
        Time(
            scale_up(cycles.0, Time::PER_SECOND, self.0.get())
                .expect("an operator ends within 213 days"),
        )
    }
}

/// `amount · numerator / denominator`, rounded up; `None` beyond 64 bits.
fn scale_up(amount: u64, numerator: u64, denominator: u64) -> Option<u64> {
    (u128::from(amount) * u128::from(numerator)).div_ceil(u128::from(denominator)).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_picosecond_is_waited_for() {
        let three_per_second = Bandwidth::bytes_per_second(3).unwrap();
        assert_eq!(three_per_second.transfer(Bytes(1)), Time(333_333_333_334));
        assert_eq!(Frequency::hertz(1_050_000_000).unwrap().time(Cycles(1)), Time(953));
    }

    #[test]
    fn seconds_survive_the_round_trip() {
        assert_eq!(Time::from_seconds(1.5), Some(Time(1_500_000_000_000)));
        assert_eq!(Time(1_500_000_000_000).seconds().to_bits(), 1.5_f64.to_bits());
        for impossible in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(Time::from_seconds(impossible), None, "{impossible}");
        }
    }

    #[test]
    #[should_panic(expected = "stays within its unit's range")]
    fn a_sum_never_wraps() {
        let _ = Bytes(u64::MAX) + Bytes(1);
    }
}
