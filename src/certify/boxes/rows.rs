//! The rows of boxes.csv as they are claimed.

use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipGrid;
use crate::report::boxes_csv::OPEN;
use crate::report::boxes_csv::columns;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::search::chips::ChipRegion;

use super::super::claims::FalseClaim;
use super::super::claims::require;

/// A box, and what is claimed of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it belongs to.
    pub proves: String,
    /// Its chips.
    pub region: ChipRegion,
    /// Why none of them is better; `None` where it is open, perhaps with what none can beat.
    pub why: Option<Why>,
    /// The line of the file that it stands on.
    pub line: usize,
}

impl Row {
    /// Where it stands, for a claim about it.
    pub fn claim(&self, what: &str) -> String {
        format!("boxes.csv: line {}: {what}", self.line)
    }
}

/// All rows, the heading first.
pub fn read(grid: &ChipGrid, cells: &[Vec<String>]) -> Result<Vec<Row>, FalseClaim> {
    let heading = columns();
    let said = cells.first().map_or(&[][..], Vec::as_slice);
    require(said == heading, "boxes.csv: the heading", said.join(","), heading.join(","))?;
    cells.iter().enumerate().skip(1).map(|(at, cells)| row(grid, cells, at + 1)).collect()
}

fn row(grid: &ChipGrid, cells: &[String], line: usize) -> Result<Row, FalseClaim> {
    let wrong = |what: &str, said: &str, is: &str| {
        FalseClaim::new(format!("boxes.csv: line {line}: {what}"), said, is)
    };
    let whole = columns().len();
    if cells.len() != whole {
        return Err(wrong("cells", &cells.len().to_string(), &whole.to_string()));
    }
    let mut region = ChipRegion::point([0; CHIP_KNOBS.len()]);
    for (knob, ends) in cells[5..].chunks(2).enumerate() {
        let place = |text: &str| {
            let value = text.parse::<u64>().ok();
            let found = value.and_then(|value| grid.values(knob).binary_search(&value).ok());
            found.and_then(|place| u16::try_from(place).ok())
        };
        let name = CHIP_KNOBS[knob].name;
        let ends = [0, 1].map(|end: usize| {
            place(&ends[end]).ok_or_else(|| wrong(name, &ends[end], "no value of the space"))
        });
        let [from, to] = ends;
        (region.lo[knob], region.hi[knob]) = (from?, to?);
        if region.lo[knob] > region.hi[knob] {
            return Err(wrong(name, "a range", "one whose end comes first"));
        }
    }
    let number = |text: &str| text.parse::<u128>().ok();
    let value = match [2, 3, 4].map(|at| number(&cells[at])) {
        [Some(first), Some(second), Some(place)] => Some(Value { first, second, place }),
        _ if cells[2..5].iter().all(String::is_empty) => None,
        _ => return Err(wrong("value", &cells[2..5].join(","), "no value")),
    };
    let why = match cells[1].as_str() {
        OPEN => None,
        word => Some(Why::of_word(word, value).ok_or_else(|| wrong("why", word, "no reason"))?),
    };
    Ok(Row { proves: cells[0].clone(), region, why, line })
}
