//! One picture of curves over one key.

use std::fmt::Write as _;

use crate::report::html::escaped;
use crate::report::quantity::plain;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// Colours that are told apart by most eyes; they come again after eight curves, dashed.
const COLOURS: [&str; 8] =
    ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#0a7ea4", "#57606a"];

/// The colour of a curve and whether it is dashed.
pub fn stroke(number: usize) -> (&'static str, bool) {
    (COLOURS[number % COLOURS.len()], number / COLOURS.len() % 2 == 1)
}

/// Where along the picture the values of a key stand.
pub struct Along<'a> {
    /// The values, in the order of the sweep.
    pub values: &'a [String],
    /// What each is as a number, where all are.
    numbers: Option<Vec<f64>>,
}

impl<'a> Along<'a> {
    /// Values that are all numbers stand where they belong, others side by side.
    pub fn new(values: &'a [String]) -> Self {
        let numbers: Option<Vec<f64>> = values
            .iter()
            .map(|value| value.parse().ok().filter(|number: &f64| number.is_finite()))
            .collect();
        Self { values, numbers }
    }

    /// Whether every value is a number.
    pub fn is_numeric(&self) -> bool {
        self.numbers.is_some()
    }

    /// From 0 to 1; values that span more than eightfold are told on a logarithmic axis.
    fn place(&self, at: usize) -> f64 {
        let Some(numbers) = &self.numbers else {
            return (at as f64 + 0.5) / self.values.len() as f64;
        };
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most <= least {
            return 0.5;
        }
        if least > 0.0 && most / least > 8.0 {
            (numbers[at] / least).ln() / (most / least).ln()
        } else {
            (numbers[at] - least) / (most - least)
        }
    }
}

/// A curve: its number, and figures by the place of the value, where there are any.
pub type Curve = (usize, Vec<Option<f64>>);

/// The picture of some curves over a key.
pub fn picture(what: &str, along: &Along, curves: &[Curve]) -> String {
    let figures = curves.iter().flat_map(|(_, figures)| figures.iter().flatten());
    let most = figures.copied().fold(0.0, f64::max);
    let top = round_up(most);
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x = |at: usize| LEFT + along.place(at) * wide;
    let y = |figure: f64| TOP + (1.0 - figure / top) * high;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{what}\">"
    );
    for quarter in 0..=4 {
        let figure = top * f64::from(quarter) / 4.0;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            y(figure),
            y(figure),
            LEFT - 8.0,
            y(figure) + 4.0,
            plain(figure)
        );
    }
    for at in labelled(along) {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(at),
            HEIGHT - BOTTOM + 18.0,
            escaped(&along.values[at])
        );
    }
    for (number, figures) in curves {
        let (colour, dashed) = stroke(*number);
        let dash = if dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        let mut known: Vec<(usize, f64)> =
            figures.iter().enumerate().filter_map(|(at, figure)| Some((at, (*figure)?))).collect();
        known.sort_by(|a, b| x(a.0).total_cmp(&x(b.0)));
        if along.is_numeric() {
            let points: Vec<String> = known
                .iter()
                .map(|&(at, figure)| format!("{:.1},{:.1}", x(at), y(figure)))
                .collect();
            let _ = write!(
                svg,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash} points=\"{}\"/>",
                points.join(" ")
            );
        }
        for (at, figure) in known {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}: {}</title>\
                 </circle>",
                x(at),
                y(figure),
                escaped(&along.values[at]),
                plain(figure)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// Values that have room for their names: all of them, or the ends and some between.
fn labelled(along: &Along) -> Vec<usize> {
    let n = along.values.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| along.place(a).total_cmp(&along.place(b)));
    let mut chosen: Vec<usize> = Vec::new();
    for at in order {
        let width = |at: usize| along.values[at].chars().count() as f64 * 7.0 + 10.0;
        let apart = |last: &usize| {
            let span = (along.place(at) - along.place(*last)) * (WIDTH - LEFT - RIGHT);
            span >= width(at).midpoint(width(*last))
        };
        if chosen.last().is_none_or(apart) {
            chosen.push(at);
        }
    }
    chosen
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is not below a figure.
fn round_up(figure: f64) -> f64 {
    if figure <= 0.0 || !figure.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(figure.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|top| *top >= figure).unwrap_or(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_an_axis_is_a_round_number_above_every_figure() {
        for (figure, top) in
            [(0.0, 1.0), (0.3, 0.5), (7.0, 10.0), (1234.0, 2000.0), (2100.0, 2500.0)]
        {
            assert!((round_up(figure) - top).abs() < 1e-9 * top, "{figure}");
        }
    }

    #[test]
    fn numbers_stand_where_they_belong_and_names_side_by_side() {
        let numbers = ["8", "64", "512"].map(str::to_owned);
        let along = Along::new(&numbers);
        assert!(along.is_numeric() && (along.place(1) - 0.5).abs() < 1e-9);
        let names = ["a", "b"].map(str::to_owned);
        let along = Along::new(&names);
        assert!(!along.is_numeric() && (along.place(0) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn labels_never_lie_on_each_other() {
        let values: Vec<String> = (1..200).map(|n| (n * 1000).to_string()).collect();
        let chosen = labelled(&Along::new(&values));
        assert!(chosen.len() > 3 && chosen.len() < 12, "{chosen:?}");
    }
}
