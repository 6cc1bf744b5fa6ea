//! The rows of boxes.csv as they are claimed.

use crate::hardware::DesignGrid;
use crate::hardware::N_DESIGN_KNOBS;
use crate::hardware::chip::ChipGrid;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::report::boxes_csv::OPEN;
use crate::report::boxes_csv::columns;
use crate::report::boxes_csv::design_columns;
use crate::search::boxes::Region;
use crate::search::boxes::Value;
use crate::search::boxes::Why;

use super::super::claims::FalseClaim;
use super::super::claims::require;

/// A box, and what is claimed of it.
#[derive(Clone, Debug)]
pub struct Row<const N: usize = N_CHIP_KNOBS> {
    /// What it belongs to.
    pub proves: String,
    /// Its chips or designs.
    pub region: Region<N>,
    /// Why none of them is better; `None` where it is open.
    pub why: Option<Why>,
    /// What none can beat, where it is open and that is known.
    pub least: Option<Value>,
    /// The line of the file that it stands on.
    pub line: usize,
}

impl<const N: usize> Row<N> {
    /// Where it stands, for a claim about it.
    pub fn claim(&self, what: &str) -> String {
        format!("boxes.csv: line {}: {what}", self.line)
    }
}

/// All rows, the heading first.
pub fn read(grid: &ChipGrid, cells: &[Vec<String>]) -> Result<Vec<Row>, FalseClaim> {
    let place = |knob: usize, text: &str| {
        let found = grid.values(knob).binary_search(&text.parse().ok()?).ok();
        found.and_then(|place| u16::try_from(place).ok())
    };
    read_by(&columns(), cells, &place)
}

/// The same of designs of the published space.
pub fn read_designs(
    grid: &DesignGrid,
    cells: &[Vec<String>],
) -> Result<Vec<Row<N_DESIGN_KNOBS>>, FalseClaim> {
    let place = |knob: usize, text: &str| {
        let value = if text.is_empty() { None } else { Some(text.parse().ok()?) };
        grid.place_of(knob, value)
    };
    read_by(&design_columns(), cells, &place)
}

/// The place of a value of a knob, as it is written.
type Place<'a> = &'a dyn Fn(usize, &str) -> Option<u16>;

fn read_by<const N: usize>(
    heading: &[String],
    cells: &[Vec<String>],
    place: Place,
) -> Result<Vec<Row<N>>, FalseClaim> {
    let said = cells.first().map_or(&[][..], Vec::as_slice);
    require(said == heading, "boxes.csv: the heading", said.join(","), heading.join(","))?;
    let lines = cells.iter().enumerate().skip(1);
    lines.map(|(at, cells)| row((heading, place), cells, at + 1)).collect()
}

fn row<const N: usize>(
    (heading, place): (&[String], Place),
    cells: &[String],
    line: usize,
) -> Result<Row<N>, FalseClaim> {
    let wrong = |what: &str, said: &str, is: &str| {
        FalseClaim::new(format!("boxes.csv: line {line}: {what}"), said, is)
    };
    let whole = heading.len();
    if cells.len() != whole {
        return Err(wrong("cells", &cells.len().to_string(), &whole.to_string()));
    }
    let mut region = Region::point([0; N]);
    for (knob, ends) in cells[5..].chunks(2).enumerate() {
        let name = heading[5 + 2 * knob].trim_end_matches("_from");
        let ends = [0, 1].map(|end: usize| {
            place(knob, &ends[end]).ok_or_else(|| wrong(name, &ends[end], "no value of the space"))
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
    let least = value.filter(|_| why.is_none());
    Ok(Row { proves: cells[0].clone(), region, why, least, line })
}
