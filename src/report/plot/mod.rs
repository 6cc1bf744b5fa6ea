//! Pictures in plain text, for a terminal at the other end of a wire.
//!
//! Dots are braille patterns (two by four to a character); named points are symbols on top.

pub mod pipeline;

use std::io;
use std::io::Write;

use serde::Deserialize as _;
use serde_json::Value;

use super::quantity;
use super::quantity::shown;
use super::saved::Saved;
use crate::plan::Plan;
use crate::plan::check::placement::check;

const WIDTH: usize = 72;
const HEIGHT: usize = 20;

/// Prints the Pareto front of a result and the pipelines of its winner. A plan that does not hold
/// is said to be so instead of being drawn.
pub fn write(saved: &Saved, out: &mut dyn Write) -> io::Result<()> {
    front(saved, out)?;
    let results = saved.outcome["winner"]["results"].as_array().map_or(&[][..], Vec::as_slice);
    for plan in results.iter().map(|result| &result["plan"]).filter(|plan| !plan.is_null()) {
        writeln!(out)?;
        let read = Plan::deserialize(plan).map_err(|error| error.to_string());
        match read.and_then(|plan| check(&plan).map(|()| plan).map_err(|error| error.to_string())) {
            Ok(plan) => pipeline::write(&plan, out)?,
            Err(why) => {
                let name = shown(plan["name"].as_str().unwrap_or("a model"));
                writeln!(out, "the plan of {name} does not hold: {}", shown(&why))?;
            }
        }
    }
    Ok(())
}

/// The objective against area: every evaluated design a dot, the front, the winner and the
/// baselines as symbols.
fn front(saved: &Saved, out: &mut dyn Write) -> io::Result<()> {
    let outcome = &saved.outcome;
    let dots = evaluated(saved);
    let mut marks: Vec<(char, Point)> = Vec::new();
    let entries = |list: &Value| list.as_array().cloned().unwrap_or_default();
    marks.extend(
        entries(&outcome["pareto"]["entries"]).iter().filter_map(point).map(|at| ('●', at)),
    );
    let baselines = entries(&outcome["baselines"]);
    marks.extend(baselines.iter().filter_map(|item| point(&item["entry"])).map(|at| ('◆', at)));
    marks.extend(point(&outcome["winner"]).map(|at| ('★', at)));
    let all: Vec<Point> = dots.iter().copied().chain(marks.iter().map(|(_, at)| *at)).collect();
    let Some(view) = View::around(&all) else {
        return writeln!(out, "nothing in the space fits, so there is nothing to draw");
    };
    let mut canvas = Canvas::new();
    for &at in &dots {
        canvas.dot(view.place(at));
    }
    for &(symbol, at) in &marks {
        canvas.symbol(view.place(at), symbol);
    }

    let models = shown(&saved.models().join(", "));
    writeln!(out, "{} against area (mm²), {models}", shown(&objective(outcome)))?;
    canvas.write(&view, out)?;
    let exact = outcome["pareto"]["exact"].as_bool().unwrap_or(false);
    let front = if exact { "Pareto front" } else { "Pareto front (partial)" };
    writeln!(out, "{:9}★ winner   ● {front}   ◆ baselines   ⠄ evaluated", "")
}

/// What the values are; of several models, how they became one number.
fn objective(outcome: &Value) -> String {
    let request = &outcome["request"];
    let (name, unit) = match request["objective"].as_str() {
        Some("throughput") => ("throughput", " (sequences/s)"),
        Some("throughput-per-area") => ("throughput per area", " (sequences/s/mm²)"),
        Some("energy-per-token") => ("energy per token", " (J)"),
        Some(other) => (other, ""),
        None => ("objective", ""),
    };
    if request["models"].as_array().is_none_or(|models| models.len() < 2) {
        return format!("{name}{unit}");
    }
    match request["combine"].as_str() {
        Some("mean") => format!("mean {name} of all models{unit}"),
        Some(how) => format!("{name} over all models ({how}, own best = 1)"),
        None => format!("{name} over all models"),
    }
}

/// Area in mm² and objective.
type Point = (f64, f64);

fn evaluated(saved: &Saved) -> Vec<Point> {
    let areas = saved.designs.numbers("area_um2").unwrap_or_default();
    let values = saved.designs.numbers("value").unwrap_or_default();
    areas.iter().zip(values).filter_map(|(area, value)| Some(((*area)? / 1e6, (*value)?))).collect()
}

fn point(entry: &Value) -> Option<Point> {
    Some((entry["design"]["area_um2"].as_f64()? / 1e6, entry["value"].as_f64()?))
}

/// The rectangle that is drawn.
struct View {
    low: Point,
    high: Point,
}

impl View {
    /// All points with a little air; `None` without points.
    fn around(points: &[Point]) -> Option<Self> {
        let (&first, rest) = points.split_first()?;
        let widen = |low: f64, high: f64| {
            let air = ((high - low) * 0.04).max(high.abs() * 1e-6).max(1e-12);
            (low - air, high + air)
        };
        let mut span = (first, first);
        for &(x, y) in rest {
            span.0 = (span.0.0.min(x), span.0.1.min(y));
            span.1 = (span.1.0.max(x), span.1.1.max(y));
        }
        let (left, right) = widen(span.0.0, span.1.0);
        let (bottom, top) = widen(span.0.1, span.1.1);
        Some(Self { low: (left, bottom), high: (right, top) })
    }

    /// Where a point lies, as shares of the width from the left and of the height from the top.
    fn place(&self, (x, y): Point) -> Point {
        let across = (x - self.low.0) / (self.high.0 - self.low.0);
        let down = (self.high.1 - y) / (self.high.1 - self.low.1);
        (across, down)
    }
}

/// Braille cells with symbols on top.
struct Canvas {
    cells: Vec<u8>,
    symbols: Vec<Option<char>>,
}

impl Canvas {
    fn new() -> Self {
        Self { cells: vec![0; WIDTH * HEIGHT], symbols: vec![None; WIDTH * HEIGHT] }
    }

    fn dot(&mut self, at: Point) {
        // The bit of each dot in a braille pattern, by row and column.
        const BITS: [[u8; 2]; 4] = [[0, 3], [1, 4], [2, 5], [6, 7]];
        let (x, y) = (pixel(at.0, WIDTH * 2), pixel(at.1, HEIGHT * 4));
        self.cells[y / 4 * WIDTH + x / 2] |= 1 << BITS[y % 4][x % 2];
    }

    fn symbol(&mut self, at: Point, symbol: char) {
        self.symbols[pixel(at.1, HEIGHT) * WIDTH + pixel(at.0, WIDTH)] = Some(symbol);
    }

    fn write(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..HEIGHT {
            let label = match row {
                0 => quantity::si(view.high.1, ""),
                _ if row == HEIGHT - 1 => quantity::si(view.low.1, ""),
                _ => String::new(),
            };
            let line: String =
                (row * WIDTH..(row + 1) * WIDTH).map(|at| self.character(at)).collect();
            writeln!(out, "{:>8}│{}", label.trim_end(), line.trim_end())?;
        }
        writeln!(out, "{:8}└{}", "", "─".repeat(WIDTH))?;
        let label = |x: f64| if x.abs() < 1e15 { format!("{x:.0}") } else { format!("{x:.3e}") };
        let (left, right) = (label(view.low.0), label(view.high.0));
        writeln!(out, "{:9}{left}{right:>1$}", "", WIDTH - left.len())
    }

    fn character(&self, at: usize) -> char {
        let braille =
            || char::from_u32(0x2800 + u32::from(self.cells[at])).filter(|_| self.cells[at] > 0);
        self.symbols[at].or_else(braille).unwrap_or(' ')
    }
}

/// The pixel that a share of the whole falls on.
fn pixel(share: f64, n: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..n")]
    let at = (share * n as f64).clamp(0.0, n as f64 - 1.0) as usize;
    at
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::saved::Cells;
    use crate::report::saved::Column;
    use crate::report::saved::DesignTable;

    fn drawn(points: &[(f64, f64)], outcome: Value) -> String {
        let column = |name: &str, cells| Column { name: name.into(), cells: Cells::Numbers(cells) };
        let designs = DesignTable {
            n_rows: points.len(),
            columns: vec![
                column("area_um2", points.iter().map(|at| Some(at.0 * 1e6)).collect()),
                column("value", points.iter().map(|at| Some(at.1)).collect()),
            ],
        };
        let mut bytes = Vec::new();
        write(&Saved { name: "a".into(), outcome, designs }, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_best_and_largest_design_is_at_the_top_right() {
        let winner = json!({"design": {"area_um2": 200e6}, "value": 90.0});
        let text = drawn(&[(10.0, 5.0), (100.0, 40.0)], json!({"winner": winner}));
        let lines: Vec<&str> = text.lines().collect();
        let star = lines.iter().position(|line| line.contains('★')).unwrap();
        assert!(star <= 2, "{text}");
        assert!(lines[star].chars().position(|c| c == '★').unwrap() > WIDTH - 5, "{text}");
        let dots = text.chars().filter(|&c| ('\u{2801}'..='\u{28ff}').contains(&c));
        assert_eq!(dots.count(), 2 + 1, "two designs and the legend: {text}");
    }

    #[test]
    fn a_partial_front_says_so() {
        let winner = json!({"design": {"area_um2": 1e6}, "value": 1.0});
        let with = |exact: bool| {
            drawn(&[], json!({"winner": winner, "pareto": {"exact": exact, "entries": []}}))
        };
        assert!(with(false).contains("Pareto front (partial)"));
        assert!(!with(true).contains("partial"));
    }

    #[test]
    fn the_title_names_how_several_models_became_one_number() {
        let winner = json!({"design": {"area_um2": 1e6}, "value": 1.0});
        let title = |models: &[&str], combine: &str| {
            let models: Vec<Value> = models.iter().map(|name| json!({"name": name})).collect();
            let request = json!({"objective": "throughput", "combine": combine, "models": models});
            let text = drawn(&[], json!({"winner": winner, "request": request}));
            text.split(" against area").next().unwrap().to_owned()
        };
        assert_eq!(title(&["a"], "geomean"), "throughput (sequences/s)");
        let several = "throughput over all models (geomean, own best = 1)";
        assert_eq!(title(&["a", "b"], "geomean"), several);
        assert_eq!(title(&["a", "b"], "mean"), "mean throughput of all models (sequences/s)");
    }

    #[test]
    fn nothing_found_draws_nothing() {
        assert_eq!(
            drawn(&[], json!({})),
            "nothing in the space fits, so there is nothing to draw\n"
        );
    }
}
