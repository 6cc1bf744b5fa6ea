//! A Gantt chart in letters: one row per core that is used, time from left to right.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use super::quantity::shown;
use super::schedule::View;
use crate::model::op::CoreKind;

/// More rows of one kind than this are counted, not drawn.
const MOST_ROWS: usize = 16;

/// More operators than this are drawn, but not listed.
const MOST_LISTED: usize = 100;

/// What operators are drawn with, in order of their start, again and again.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A row's place in the chart: spread work first, then core by core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Tensor(Option<u32>),
    Vector(Option<u32>),
    Network,
}

/// Draws the chart and lists the operators with their letters.
pub fn draw(view: &View, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut costed: Vec<usize> = (0..view.names.len())
        .filter(|&task| view.schedule.runs[task].start < view.end(task))
        .collect();
    costed.sort_by_key(|&task| (view.schedule.runs[task].start, task));
    if costed.is_empty() {
        return writeln!(out, "no operator takes any time");
    }
    let width = columns.saturating_sub(14).clamp(20, 200);
    let mut rows: BTreeMap<Row, Vec<u8>> = BTreeMap::new();
    for (at, &task) in costed.iter().enumerate() {
        for row in rows_of(view, task) {
            let cells = rows.entry(row).or_insert_with(|| vec![b'.'; width]);
            let column = |ticks: u64| scaled(ticks, view.makespan, width);
            let (first, last) = (column(view.schedule.runs[task].start), column(view.end(task)));
            // Whatever runs is seen, however short it is.
            let cells = &mut cells[first.min(width - 1)..last.max(first + 1).min(width)];
            cells.fill(LETTERS[at % LETTERS.len()]);
        }
    }
    for kind in [CoreKind::Tensor, CoreKind::Vector, CoreKind::Network] {
        let of_kind: Vec<_> = rows.iter().filter(|(row, _)| row.kind() == kind).collect();
        for (row, cells) in of_kind.iter().take(MOST_ROWS) {
            writeln!(out, "{:<11} {}", row.name(), String::from_utf8_lossy(cells))?;
        }
        if of_kind.len() > MOST_ROWS {
            writeln!(out, "{:<11} … and {} more", "", of_kind.len() - MOST_ROWS)?;
        }
    }
    writeln!(out, "{:<11} 0{:>rest$}", "", (view.text)(view.makespan), rest = width - 1)?;
    writeln!(out)?;
    list(view, &costed, out)
}

fn list(view: &View, costed: &[usize], out: &mut dyn Write) -> io::Result<()> {
    let longest = costed.iter().map(|&task| view.names[task].chars().count()).max().unwrap_or(0);
    let longest = longest.clamp(8, 48);
    writeln!(out, "  {:<longest$} {:>12} {:>12}  on", "operator", "start", "end")?;
    for (at, &task) in costed.iter().take(MOST_LISTED).enumerate() {
        let letter = char::from(LETTERS[at % LETTERS.len()]);
        let (start, end) = (view.schedule.runs[task].start, view.end(task));
        let (start, end) = ((view.text)(start), (view.text)(end));
        let cores = view.cores(task).join(", ");
        writeln!(
            out,
            "{letter} {:<longest$} {start:>12} {end:>12}  {cores}",
            shown(&view.names[task])
        )?;
    }
    if costed.len() > MOST_LISTED {
        writeln!(out, "  … and {} more", costed.len() - MOST_LISTED)?;
    }
    Ok(())
}

fn scaled(ticks: u64, makespan: u64, width: usize) -> usize {
    let column = u128::from(ticks) * width as u128 / u128::from(makespan.max(1));
    usize::try_from(column).unwrap_or(width)
}

fn rows_of(view: &View, task: usize) -> Vec<Row> {
    let (core, run) = (view.problem.tasks.nodes()[task].core, view.schedule.runs[task]);
    match core {
        CoreKind::Tensor => vec![Row::Tensor(run.tensor)],
        CoreKind::Vector => vec![Row::Vector(run.vector)],
        CoreKind::Both => vec![Row::Tensor(run.tensor), Row::Vector(run.vector)],
        CoreKind::Network => vec![Row::Network],
        CoreKind::None => Vec::new(),
    }
}

impl Row {
    fn kind(self) -> CoreKind {
        match self {
            Self::Tensor(_) => CoreKind::Tensor,
            Self::Vector(_) => CoreKind::Vector,
            Self::Network => CoreKind::Network,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Tensor(None) => "tensor all".into(),
            Self::Tensor(Some(core)) => format!("tensor {core}"),
            Self::Vector(None) => "vector all".into(),
            Self::Vector(Some(core)) => format!("vector {core}"),
            Self::Network => "network".into(),
        }
    }
}
