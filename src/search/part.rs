//! Parts of a space that are searched apart, by several processes or machines.

use std::fmt;
use std::str::FromStr;

/// One of several parts that together are the whole space, each design in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    number: u32,
    of: u32,
}

/// The most parts of a space.
pub const MOST_PARTS: u32 = 100_000;

/// Neighbours in the published order that stay in one part: they share most of what is estimated.
const RUN: usize = 7;

impl Part {
    /// Everything, as one part.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// The part of this number, from 1 on; `None` where there is no such part.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        ((1..=of).contains(&number) && of <= MOST_PARTS).then_some(Self { number, of })
    }

    /// Which part this is, from 1 on.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many parts there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// The designs of this part among so many, ascending: runs of neighbours are dealt out in turn,
    /// so that every part holds about as many good ones.
    pub fn designs(self, n_designs: usize) -> Vec<usize> {
        let (number, of) = (self.number as usize - 1, self.of as usize);
        // Where there are few designs, no part is left empty while another has several.
        let run = (n_designs / of).clamp(1, RUN);
        (0..n_designs).filter(|design| design / run % of == number).collect()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Part {
    type Err = String;

    /// As `3/64`: the third of 64 parts.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
        let Some((number, of)) = numbers else {
            return Err("a part is written as NUMBER/COUNT, as 3/64".into());
        };
        Self::new(number, of).ok_or_else(|| {
            let most = of.clamp(1, MOST_PARTS);
            format!("there are at most {MOST_PARTS} parts, numbered from 1: try 1/{most}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_in_exactly_one_part() {
        for n_designs in [0, 1, 5, 7, 8, 100, 1000] {
            for of in [1, 2, 3, 8, 64] {
                let parts = (1..=of).map(|number| Part::new(number, of).unwrap());
                let lists: Vec<Vec<usize>> = parts.map(|part| part.designs(n_designs)).collect();
                let mut all: Vec<usize> = lists.iter().flatten().copied().collect();
                all.sort_unstable();
                assert_eq!(all, (0..n_designs).collect::<Vec<_>>(), "{n_designs} in {of}");
                let sizes = lists.iter().map(Vec::len);
                let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
                assert!(most - least <= RUN, "{least} to {most} of {n_designs} in {of}");
            }
        }
    }

    #[test]
    fn parts_read_as_they_are_written() {
        assert_eq!("3/64".parse(), Ok(Part::new(3, 64).unwrap()));
        assert_eq!(Part::new(3, 64).unwrap().to_string(), "3/64");
        for wrong in ["", "3", "0/4", "5/4", "1/0", "a/b", "-1/4", "1/100001", "1/4/4"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }
}
