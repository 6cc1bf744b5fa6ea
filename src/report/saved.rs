//! A search result as its files hold it, for everything that is drawn from them.
//!
//! The outcome stays the JSON that it is: a picture shows what it finds and leaves out what is not
//! there, so results of older and newer versions can still be looked at.

use serde_json::Value;

/// The content of a result directory.
#[derive(Clone, Debug)]
pub struct Saved {
    /// What the user calls it: the directory.
    pub name: String,
    /// The content of `outcome.json`; an object.
    pub outcome: Value,
    /// The content of `designs.csv`.
    pub designs: DesignTable,
}

/// A table by columns; all columns have `n_rows` cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesignTable {
    /// The number of designs.
    pub n_rows: usize,
    /// The columns, in the order of the file.
    pub columns: Vec<Column>,
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
}

/// The cells of a column; an empty cell is `None` among numbers and empty among words.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Every cell is a finite number or empty.
    Numbers(Vec<Option<f64>>),
    /// Anything else.
    Words(Vec<String>),
}

impl DesignTable {
    /// The cells of a column of numbers.
    pub fn numbers(&self, name: &str) -> Option<&[Option<f64>]> {
        match self.cells(name)? {
            Cells::Numbers(cells) => Some(cells),
            Cells::Words(_) => None,
        }
    }

    /// The cells of a column of words.
    pub fn words(&self, name: &str) -> Option<&[String]> {
        match self.cells(name)? {
            Cells::Words(cells) => Some(cells),
            Cells::Numbers(_) => None,
        }
    }

    fn cells(&self, name: &str) -> Option<&Cells> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.cells)
    }
}

impl Saved {
    /// The names of the models that were searched for, in order.
    pub fn models(&self) -> Vec<&str> {
        let models = self.outcome["request"]["models"].as_array().map_or(&[][..], Vec::as_slice);
        models.iter().filter_map(|model| model["name"].as_str()).collect()
    }
}
