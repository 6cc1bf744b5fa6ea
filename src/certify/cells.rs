//! The cells of a table, read one by one, each with the name of its claim.

use super::claims::FalseClaim;
use super::claims::Verdict;
use super::claims::close;
use super::claims::require;

/// A row of designs.csv.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    /// Which design.
    pub design: usize,
    /// The names of the columns.
    pub names: &'a [String],
    /// As many cells.
    pub texts: &'a [String],
}

impl Cells<'_> {
    /// The name of the claim in a column.
    pub fn path(&self, column: usize) -> String {
        format!("designs.csv: {} of design {}", self.names[column], self.design)
    }

    /// What stands in a column.
    pub fn text(&self, column: usize) -> &str {
        &self.texts[column]
    }

    /// A claim that a column does not hold what it should.
    pub fn wrong(&self, column: usize, found: impl std::fmt::Display) -> FalseClaim {
        FalseClaim::new(self.path(column), quoted(self.text(column)), found)
    }

    /// A whole number.
    pub fn whole(&self, column: usize) -> Result<u64, FalseClaim> {
        let text = self.text(column);
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = plain.then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| self.wrong(column, "no whole number"))
    }

    /// A finite number, or nothing.
    pub fn number(&self, column: usize) -> Result<Option<f64>, FalseClaim> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(column, "no number"))
    }

    /// An exact decimal in units of 10^-`digits`.
    pub fn decimal(&self, column: usize, digits: usize) -> Result<u128, FalseClaim> {
        exact(self.text(column), digits).ok_or_else(|| {
            self.wrong(column, format!("no decimal number with at most {digits} places"))
        })
    }

    /// Fails unless the column holds this number, to a part of it.
    pub fn is_number(&self, column: usize, found: f64, part: f64) -> Verdict {
        let said = self.number(column)?;
        let agree = said.is_some_and(|said| close(said, found, part));
        require(agree, self.path(column), quoted(self.text(column)), found)
    }

    /// Fails unless the column holds these words.
    pub fn is_text(&self, column: usize, found: &str) -> Verdict {
        let said = self.text(column);
        require(said == found, self.path(column), quoted(said), quoted(found))
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", text.chars().take(60).collect::<String>())
}

/// A decimal as a whole number of 10^-`digits`; `None` where it is none, or has more places.
fn exact(text: &str, digits: usize) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || part.len() > digits || !plain(whole) || !plain(part)
    {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_to_the_last_digit() {
        assert_eq!(exact("1.5", 3), Some(1500));
        assert_eq!(exact("12", 3), Some(12_000));
        assert_eq!(exact("0.001", 3), Some(1));
        for text in ["", ".5", "1.2345", "-1", "1e3", "1.x", "123456789012345678901"] {
            assert_eq!(exact(text, 3), None, "{text}");
        }
    }
}
