//! Designs as a table that other programs take without a copy through text.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::ArrayRef;
use arrow_array::DictionaryArray;
use arrow_array::Float64Array;
use arrow_array::Int32Array;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::RecordBatchIterator;
use arrow_array::StringArray;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Float64Type;
use arrow_array::types::Int32Type;
use arrow_array::types::Int64Type;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyKeyError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use pyo3::types::PyCapsule;
use rayon::prelude::*;

/// A column: numbers, or words that are each kept once.
enum Column {
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Word { words: Vec<String>, codes: Vec<Option<i32>> },
}

/// What a column can be, from the narrowest on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Whole,
    Number,
    Word,
}

/// Every design of a space, one row each; the columns of designs.csv.
#[pyclass(frozen, module = "phaze._phaze")]
pub struct DesignTable {
    names: Vec<String>,
    batch: RecordBatch,
}

impl DesignTable {
    /// Reads the text of a table whose cells are quoted where they hold a comma.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let names: Vec<String> = lines.next().into_iter().flat_map(cells).map(unquoted).collect();
        let lines: Vec<&str> = lines.collect();
        let kinds = kinds(&lines, names.len())?;
        let batch = batch(&names, columns(&lines, &kinds)).map_err(|reason| reason.to_string())?;
        Ok(Self { names, batch })
    }

    fn place(&self, name: &str) -> PyResult<usize> {
        let found = self.names.iter().position(|known| known == name);
        found.ok_or_else(|| {
            let closest = phaze::input::closest(name, &self.names);
            let closest =
                closest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"));
            PyKeyError::new_err(format!("no column `{name}`{closest}"))
        })
    }
}

/// A column as bytes: its kind, values, which of them are there, and its words.
type Raw<'py> =
    (&'static str, Bound<'py, PyByteArray>, Option<Bound<'py, PyByteArray>>, Option<Vec<String>>);

#[pymethods]
impl DesignTable {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// How many designs there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of one column, None where there is none.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let array = self.batch.column(self.place(name)?);
        if let Some(values) = array.as_primitive_opt::<Int64Type>() {
            return values.iter().collect::<Vec<_>>().into_pyobject(py);
        }
        if let Some(values) = array.as_primitive_opt::<Float64Type>() {
            return values.iter().collect::<Vec<_>>().into_pyobject(py);
        }
        let (codes, words) = coded(array);
        let word = |code: Option<i32>| code.map(|code| words.value(at(code)));
        codes.iter().map(word).collect::<Vec<_>>().into_pyobject(py)
    }

    /// One column as bytes that may be written, for numpy: its kind (`int64`, `float64` or `int32` for
    /// codes of words), its values, one byte for each that says whether it is missing (or None where
    /// none is), and its words.
    fn raw<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Raw<'py>> {
        let array = self.batch.column(self.place(name)?);
        if let Some(values) = array.as_primitive_opt::<Int64Type>() {
            let missing = (values.null_count() > 0).then(|| {
                let missing: Vec<u8> = values.iter().map(|v| u8::from(v.is_none())).collect();
                PyByteArray::new(py, &missing)
            });
            return Ok((
                "int64",
                bytes(py, values.iter(), |v| v.unwrap_or(0).to_ne_bytes()),
                missing,
                None,
            ));
        }
        if let Some(values) = array.as_primitive_opt::<Float64Type>() {
            let values = bytes(py, values.iter(), |v| v.unwrap_or(f64::NAN).to_ne_bytes());
            return Ok(("float64", values, None, None));
        }
        let (codes, words) = coded(array);
        let codes = bytes(py, codes.iter(), |v| v.unwrap_or(-1).to_ne_bytes());
        let words = words.iter().map(|word| word.unwrap_or_default().to_owned()).collect();
        Ok(("int32", codes, None, Some(words)))
    }

    /// The table by Arrow's `PyCapsule` interface: pandas, polars, pyarrow and `DuckDB` take it.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore what types are wished for.
        drop(requested_schema);
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns and their types by Arrow's `PyCapsule` interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref())
            .map_err(|reason| PyValueError::new_err(reason.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}

fn at(code: i32) -> usize {
    usize::try_from(code).expect("codes of words are counted from 0")
}

/// The codes and words of a column that is no number.
fn coded(array: &ArrayRef) -> (&Int32Array, &StringArray) {
    let array = array.as_dictionary::<Int32Type>();
    (array.keys(), array.values().as_string())
}

fn bytes<V, const N: usize>(
    py: Python<'_>,
    values: impl Iterator<Item = V>,
    of: impl Fn(V) -> [u8; N],
) -> Bound<'_, PyByteArray> {
    let mut all = Vec::with_capacity(N * values.size_hint().0);
    values.for_each(|value| all.extend_from_slice(&of(value)));
    PyByteArray::new(py, &all)
}

/// The cells of a line; commas inside quotes are no ends.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut quoted = false;
        let end = line.bytes().position(|byte| {
            quoted ^= byte == b'"';
            byte == b',' && !quoted
        });
        rest = end.map(|end| &line[end + 1..]);
        Some(&line[..end.unwrap_or(line.len())])
    })
}

fn unquoted(cell: &str) -> String {
    match cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => cell.to_owned(),
    }
}

/// What kind a cell needs its column to be; an empty one needs nothing.
fn kind(cell: &str) -> Kind {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && cell.parse::<i64>().is_ok()
        || cell.is_empty()
    {
        Kind::Whole
    } else if cell.parse::<f64>().is_ok() {
        Kind::Number
    } else {
        Kind::Word
    }
}

/// The kind of every column.
fn kinds(lines: &[&str], n_columns: usize) -> Result<Vec<Kind>, String> {
    let narrowest = || vec![Kind::Whole; n_columns];
    lines
        .par_chunks(4096)
        .map(|lines| {
            let mut found = narrowest();
            for line in lines {
                let mut n_cells = 0;
                for (known, cell) in found.iter_mut().zip(cells(line)) {
                    if *known != Kind::Word {
                        *known = (*known).max(kind(cell));
                    }
                    n_cells += 1;
                }
                if n_cells != n_columns {
                    return Err(format!("a row has {n_cells} of {n_columns} cells: {line}"));
                }
            }
            Ok(found)
        })
        .reduce(
            || Ok(narrowest()),
            |one, other| Ok(one?.into_iter().zip(other?).map(|(a, b)| a.max(b)).collect()),
        )
}

fn columns(lines: &[&str], kinds: &[Kind]) -> Vec<Column> {
    let parts: Vec<Vec<Column>> =
        lines.par_chunks(16_384).map(|lines| part(lines, kinds)).collect();
    let mut whole: Vec<Column> = part(&[], kinds);
    for part in parts {
        for (column, more) in whole.iter_mut().zip(part) {
            column.extend(more);
        }
    }
    whole
}

impl Column {
    fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Whole => Self::Whole(Vec::new()),
            Kind::Number => Self::Number(Vec::new()),
            Kind::Word => Self::Word { words: Vec::new(), codes: Vec::new() },
        }
    }

    /// Appends the rows of a column of the same kind.
    fn extend(&mut self, more: Self) {
        match (self, more) {
            (Self::Whole(all), Self::Whole(more)) => all.extend(more),
            (Self::Number(all), Self::Number(more)) => all.extend(more),
            (Self::Word { words, codes }, Self::Word { words: more_words, codes: more }) => {
                let known: HashMap<String, i32> = words.iter().cloned().zip(0..).collect();
                let renamed: Vec<i32> = more_words
                    .into_iter()
                    .map(|word| known.get(&word).copied().unwrap_or_else(|| keep(words, word)))
                    .collect();
                codes.extend(more.into_iter().map(|code| code.map(|code| renamed[at(code)])));
            }
            _ => unreachable!("parts of a column are of its kind"),
        }
    }
}

/// Keeps a word that is not known yet, and answers its code.
fn keep(words: &mut Vec<String>, word: String) -> i32 {
    let code = i32::try_from(words.len()).expect("a column has fewer words than 2^31");
    words.push(word);
    code
}

/// The columns of some rows.
fn part(lines: &[&str], kinds: &[Kind]) -> Vec<Column> {
    let mut columns: Vec<Column> = kinds.iter().map(|&kind| Column::empty(kind)).collect();
    let mut known: Vec<HashMap<&str, i32>> = vec![HashMap::new(); kinds.len()];
    for line in lines {
        for ((column, known), cell) in columns.iter_mut().zip(&mut known).zip(cells(line)) {
            match column {
                Column::Whole(values) => values.push(cell.parse().ok()),
                Column::Number(values) => values.push(cell.parse().ok()),
                Column::Word { codes, .. } if cell.is_empty() => codes.push(None),
                Column::Word { words, codes } => {
                    let code = *known.entry(cell).or_insert_with(|| keep(words, unquoted(cell)));
                    codes.push(Some(code));
                }
            }
        }
    }
    columns
}

fn batch(names: &[String], columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, column) in names.iter().zip(columns) {
        let (kind, array): (DataType, ArrayRef) = match column {
            Column::Whole(values) => (DataType::Int64, Arc::new(Int64Array::from(values))),
            Column::Number(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
            Column::Word { words: known, codes } => {
                let codes = Int32Array::from(codes);
                let known = Arc::new(StringArray::from(known));
                (words.clone(), Arc::new(DictionaryArray::<Int32Type>::try_new(codes, known)?))
            }
        };
        fields.push(Field::new(name, kind, true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
