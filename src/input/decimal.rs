//! A user's own numbers: decimals of any size, and the integers that stand for them.

/// A non-negative decimal, `digits · 10^exponent`, without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u64,
    exponent: i32,
}

/// How many ticks stand for one unit of a user's numbers: a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    power: i32,
}

impl Decimal {
    /// The decimal that a JSON number was written as, to 17 digits; `None` where it is negative
    /// or not finite.
    pub fn new(number: &serde_json::Number) -> Option<Self> {
        if let Some(whole) = number.as_u64() {
            return Some(Self { digits: whole, exponent: 0 }.trimmed());
        }
        Self::of(number.as_f64()?)
    }

    /// The shortest decimal that reads back as `value`; `None` where it is negative or not finite.
    pub fn of(value: f64) -> Option<Self> {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        // Of zero, the sign is dropped.
        let value = value.abs();
        // Rust prints the shortest decimal that reads back as the same number: what was written.
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let n_decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let digits = mantissa.replace('.', "").parse().ok()?;
        let exponent = exponent.parse::<i32>().ok()? - i32::try_from(n_decimals).ok()?;
        Some(Self { digits, exponent }.trimmed())
    }

    fn trimmed(mut self) -> Self {
        if self.digits == 0 {
            return Self { digits: 0, exponent: 0 };
        }
        while self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }

    /// The nearest floating-point number.
    pub fn value(self) -> f64 {
        nearest(self.digits, self.exponent)
    }

    /// Its digits, without trailing zeros.
    pub fn digits(self) -> u64 {
        self.digits
    }

    /// The power of ten that its digits count.
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// The number in units of 10^-`places`, rounded to the nearest; `None` beyond 64 bits.
    pub fn nearest(self, places: i32) -> Option<u64> {
        self.divided(places, |digits, divisor| (digits + divisor / 2) / divisor)
    }

    /// The same, rounded up.
    pub fn up(self, places: i32) -> Option<u64> {
        self.divided(places, u128::div_ceil)
    }

    /// The same, rounded down.
    pub fn down(self, places: i32) -> Option<u64> {
        self.divided(places, |digits, divisor| digits / divisor)
    }

    fn divided(self, places: i32, divide: impl Fn(u128, u128) -> u128) -> Option<u64> {
        let digits = u128::from(self.digits);
        let power = self.exponent.saturating_add(places);
        let ten = 10_u128.checked_pow(power.unsigned_abs());
        let scaled = if power >= 0 {
            if digits == 0 { 0 } else { digits.checked_mul(ten?)? }
        } else {
            // A divisor beyond 128 bits is as good as the largest power of ten within.
            divide(digits, ten.unwrap_or(10_u128.pow(38)))
        };
        u64::try_from(scaled).ok()
    }
}

fn nearest(digits: u64, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().expect("digits and an exponent are a number")
}

impl Scale {
    /// The smallest power of ten at which every number is whole, or at which a half on each of
    /// `n` of them is less than 4e-13 of `answer`, whichever is smaller.
    pub fn fine_enough(numbers: impl Iterator<Item = Decimal>, n: usize, answer: f64) -> Self {
        let exact = numbers.filter(|number| number.digits > 0).map(|number| -number.exponent).max();
        let enough = (n as f64 / 2.0 / (4e-13 * answer)).log10().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm of a float is small")]
        let enough = if enough.is_finite() { enough as i32 } else { i32::MAX };
        Self { power: exact.unwrap_or(0).min(enough) }
    }

    /// The nearest whole number of ticks, a half upwards; `None` beyond 2^62.
    pub fn ticks(self, number: Decimal) -> Option<u64> {
        number.nearest(self.power).filter(|&ticks| ticks <= 1 << 62)
    }

    /// The least whole number of ticks that is not below the number; `None` beyond 2^62.
    pub fn ticks_up(self, number: Decimal) -> Option<u64> {
        number.up(self.power).filter(|&ticks| ticks <= 1 << 62)
    }

    /// Ticks as the user's number, correctly rounded.
    pub fn unscaled(self, ticks: u64) -> f64 {
        nearest(ticks, -self.power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        assert_eq!(Decimal::of(-0.0), Decimal::of(0.0));
        assert!(Decimal::of(-0.0).is_some());
        assert_eq!(Decimal::of(-1e-300), None);
    }

    fn decimal(text: &str) -> Option<Decimal> {
        Decimal::new(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn decimals_are_what_was_written() {
        assert_eq!(decimal("0.52"), Some(Decimal { digits: 52, exponent: -2 }));
        assert_eq!(decimal("4096.0"), Some(Decimal { digits: 4096, exponent: 0 }));
        assert_eq!(decimal("1e-30"), Some(Decimal { digits: 1, exponent: -30 }));
        assert_eq!(decimal("18446744073709551615").unwrap().digits, u64::MAX);
        assert_eq!(decimal("0"), Some(Decimal { digits: 0, exponent: 0 }));
        assert_eq!(decimal("-1"), None);
        assert_eq!(decimal("-0.5"), None);
    }

    #[test]
    fn decimals_survive_the_way_to_ticks_and_back() {
        for texts in [["0.52", "0.08"], ["1e-30", "2.5e-29"], ["3e40", "7e41"], ["0.1", "1000000"]]
        {
            let numbers = texts.map(|text| decimal(text).unwrap());
            let scale = Scale::fine_enough(numbers.into_iter(), 2, numbers[1].value());
            for number in numbers {
                let back = scale.unscaled(scale.ticks(number).unwrap());
                assert_eq!(back.to_bits(), number.value().to_bits(), "{texts:?}");
            }
        }
    }

    #[test]
    fn what_is_too_small_to_matter_is_rounded() {
        let numbers = ["1e-40", "1"].map(|text| decimal(text).unwrap());
        let scale = Scale::fine_enough(numbers.into_iter(), 2, 1.0);
        assert_eq!(scale.ticks(numbers[0]), Some(0));
        assert_eq!(scale.ticks(numbers[1]), Some(10_000_000_000_000));
        assert_eq!(scale.ticks(decimal("1e20").unwrap()), None);
    }

    #[test]
    fn places_that_do_not_suffice_round_as_asked() {
        let number = Decimal::of(12.345).unwrap();
        assert_eq!(number.nearest(3), Some(12_345));
        assert_eq!(number.nearest(5), Some(1_234_500));
        let rounded = |places| [number.down(places), number.nearest(places), number.up(places)];
        assert_eq!(rounded(1), [Some(123), Some(123), Some(124)]);
        assert_eq!(rounded(-2), [Some(0), Some(0), Some(1)]);
        assert_eq!(number.nearest(19), None);
        assert_eq!(Decimal::of(5e-324).unwrap().up(0), Some(1));
        assert_eq!(Decimal::of(0.0).unwrap().nearest(400), Some(0));
    }
}
