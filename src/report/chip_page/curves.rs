//! What more stacks, links, silicon and watts bring: the best of what was evaluated, and of other budgets
//! the best of all.

use std::fmt::Write as _;
use std::io;
use std::io::Write;

use crate::report::chips_why::limit;
use crate::report::outcome::value;
use crate::report::quantity::grouped;
use crate::report::quantity::plain;
use crate::search::chips::ChipOutcome;
use crate::search::chips::Limited;

use super::SavedChips;
use super::known::Known;
use super::known::judged;
use super::text;

/// Width and height of a picture, and the margin for its axes, in pixels.
const SIZE: (f64, f64) = (460.0, 270.0);
const MARGIN: (f64, f64) = (78.0, 40.0);

/// Round numbers along an axis.
const MOST_TICKS: u32 = 8;

/// One picture: points, and the best along the axis as a line.
pub(super) struct Curve<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    /// What is drawn upwards.
    pub upwards: &'a str,
    pub points: Vec<(f64, f64)>,
    /// What is told of points where one rests on them; empty where nothing is.
    pub told: Vec<String>,
    pub line: Vec<(f64, f64)>,
    pub class: &'a str,
    pub winner: (f64, f64),
}

/// A figure of a chip.
type Along = fn(&Known) -> f64;

/// The section of all curves.
pub fn section(saved: &SavedChips, known: &[Known], out: &mut dyn Write) -> io::Result<()> {
    let outcome = saved.outcome;
    let Some(winner) = &outcome.winner else { return Ok(()) };
    writeln!(out, "<section id=\"curves\"><h2>What more would bring</h2>")?;
    writeln!(
        out,
        "<p class=\"note\">Of the {} chips that are told or were evaluated one by one. The line joins the best of them for \
         each value; only the winner is proved to be the best.</p><div class=\"grid\">",
        grouped(known.len() as u64)
    )?;
    let larger = judged(saved).larger_is_better();
    let better = |a: f64, b: f64| if larger { a > b } else { a < b };
    let upwards = axis(outcome);
    let chip = &winner.chip;
    let knob = |name: &str| chip.knobs.get(name).copied().unwrap_or(0) as f64;
    let axes: [(&str, &str, Along, f64); 4] = [
        ("stacks of memory", "", |known| known.knobs.stacks as f64, knob("stacks")),
        ("links", "GB/s", |known| known.knobs.links_gb_per_s as f64, knob("links")),
        ("die", "mm²", |known| known.mm2, chip.die_mm2),
        ("design power", "W", |known| known.watts, chip.tdp_w),
    ];
    for (title, unit, along, at) in axes {
        let points: Vec<(f64, f64)> = known.iter().map(|one| (along(one), one.value)).collect();
        let line = if unit == "mm²" || unit == "W" {
            staircase(&points, better)
        } else {
            best_of_each(&points, better)
        };
        let winner = (at, winner.value);
        let told = Vec::new();
        let curve =
            Curve { title, unit, upwards: &upwards, points, told, line, class: "best", winner };
        writeln!(out, "{}", picture(&curve))?;
    }
    budgets(outcome, &upwards, out)?;
    writeln!(out, "</div></section>")
}

/// The best with more or less of each budget, which is proved.
fn budgets(outcome: &ChipOutcome, upwards: &str, out: &mut dyn Write) -> io::Result<()> {
    let (Some(why), Some(winner)) = (&outcome.why, &outcome.winner) else { return Ok(()) };
    let space = &outcome.request.space;
    for limited in Limited::ALL {
        let own = why.budgets.iter().filter(|under| under.limited == limited);
        let mut line: Vec<(f64, f64)> = own
            .filter_map(|under| {
                let same = under.ratio.map(|_| winner.value);
                let worth = under.entry.as_ref().map(|entry| entry.value).or(same)?;
                Some((under.limit, worth))
            })
            .collect();
        if line.is_empty() {
            continue;
        }
        let at = match limited {
            Limited::Area => space.max_area_nm2 as f64 / 1e12,
            Limited::Tdp => space.tdp_mw as f64 / 1e3,
            Limited::Price => space.max_price_cents.unwrap_or(0) as f64 / 100.0,
        };
        line.push((at, winner.value));
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        let unit = limit(limited, 0.0).replace('0', "");
        let title = format!("budget: {}, each best proved", limited.word());
        let points = line.clone();
        let curve = Curve {
            title: &title,
            unit: unit.trim(),
            upwards,
            points,
            told: Vec::new(),
            line,
            class: "proved",
            winner: (at, winner.value),
        };
        writeln!(out, "{}", picture(&curve))?;
    }
    Ok(())
}

/// What values are called, with their unit.
pub fn axis(outcome: &ChipOutcome) -> String {
    let one = value(outcome.request.objective, outcome.models.len(), 1.0);
    let unit = one.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    match (outcome.models.len() > 1, one.starts_with('$')) {
        (true, _) => "part of each model's own best".to_owned(),
        (false, true) => "$ per token".to_owned(),
        (false, false) => unit.trim().to_owned(),
    }
}

/// The best for each place along the axis.
fn best_of_each(points: &[(f64, f64)], better: impl Fn(f64, f64) -> bool) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut line: Vec<(f64, f64)> = Vec::new();
    for (x, y) in sorted {
        match line.last_mut() {
            Some(last) if last.0.total_cmp(&x).is_eq() => {
                if better(y, last.1) {
                    last.1 = y;
                }
            }
            _ => line.push((x, y)),
        }
    }
    line
}

/// The best of all that take no more.
pub(super) fn staircase(
    points: &[(f64, f64)],
    better: impl Fn(f64, f64) -> bool,
) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for (x, y) in best_of_each(points, &better) {
        if line.last().is_none_or(|last| better(y, last.1)) {
            line.push((x, y));
        }
    }
    line
}

/// Round numbers of a range that is not empty, as far apart as leaves three to seven of them.
fn round(low: f64, high: f64) -> Vec<f64> {
    let power = 10_f64.powf(((high - low) / 3.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|digit| digit * power);
    let step = steps.into_iter().find(|step| (high - low) / step >= 3.0).unwrap_or(power);
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    (0..=MOST_TICKS)
        .map(|at| first + f64::from(at))
        .take_while(|at| *at <= last)
        .map(|at| at * step)
        .collect()
}

/// One picture as SVG.
pub(super) fn picture(curve: &Curve) -> String {
    let (width, height) = SIZE;
    let all = || curve.points.iter().chain([&curve.winner]);
    let range = |figure: fn(&(f64, f64)) -> f64| {
        let low = all().map(figure).fold(f64::INFINITY, f64::min);
        let high = all().map(figure).fold(f64::NEG_INFINITY, f64::max);
        let pad = ((high - low) * 0.06).max(high.abs() * 0.01).max(1e-12);
        (low - pad, high + pad)
    };
    let ((left, right), (low, high)) = (range(|point| point.0), range(|point| point.1));
    let along = |x: f64| MARGIN.0 + (x - left) / (right - left) * (width - MARGIN.0 - 12.0);
    let up = |y: f64| height - MARGIN.1 - (y - low) / (high - low) * (height - MARGIN.1 - 30.0);
    let mut svg = format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" \
         aria-label=\"{} against {}\">",
        text(curve.title),
        text(curve.upwards),
        text(curve.title)
    );
    for y in round(low, high) {
        let _ = write!(
            svg,
            "<line class=\"rule\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/><text class=\"muted\" \
             x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            MARGIN.0,
            width - 12.0,
            up(y),
            up(y),
            MARGIN.0 - 6.0,
            up(y) + 4.0,
            text(&plain(y))
        );
    }
    for x in round(left, right) {
        let _ = write!(
            svg,
            "<text class=\"muted\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            along(x),
            height - MARGIN.1 + 16.0,
            text(&plain(x))
        );
    }
    for (at, (x, y)) in curve.points.iter().enumerate() {
        let told = curve.told.get(at);
        let told = told.map_or_else(String::new, |told| format!("<title>{}</title>", text(told)));
        let _ = write!(
            svg,
            "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\">{told}</circle>",
            along(*x),
            up(*y),
            if told.is_empty() { 2.5 } else { 4.0 }
        );
    }
    let line: Vec<String> =
        curve.line.iter().map(|(x, y)| format!("{:.1},{:.1}", along(*x), up(*y))).collect();
    let (x, y) = curve.winner;
    let _ = write!(
        svg,
        "<polyline class=\"{}\" points=\"{}\"/><circle class=\"win\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"><title>the \
         winner</title></circle><text class=\"muted\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"muted\" x=\"0\" y=\"10\">{}</text></svg></figure>",
        curve.class,
        line.join(" "),
        along(x),
        up(y),
        f64::midpoint(MARGIN.0, width),
        height - 6.0,
        text(curve.unit),
        text(curve.upwards)
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_along_an_axis_are_round_and_neither_few_nor_many() {
        assert_eq!(round(0.9, 6.2), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(round(4400.0, 4560.0), [4400.0, 4450.0, 4500.0, 4550.0]);
        for (low, high) in [(0.0, 1e-9), (99.0, 101.0), (-3.0, 17.0), (1e12, 1e12 + 3000.0)] {
            let all = round(low, high);
            assert!((2..=8).contains(&all.len()), "{low} to {high}: {all:?}");
            assert!(all.iter().all(|tick| (low..=high).contains(tick)), "{low} to {high}: {all:?}");
        }
    }

    #[test]
    fn a_line_joins_the_best() {
        let points = [(2.0, 5.0), (1.0, 3.0), (1.0, 4.0), (3.0, 4.5)];
        let larger = |a: f64, b: f64| a > b;
        assert_eq!(best_of_each(&points, larger), [(1.0, 4.0), (2.0, 5.0), (3.0, 4.5)]);
        assert_eq!(staircase(&points, larger), [(1.0, 4.0), (2.0, 5.0)]);
    }
}
