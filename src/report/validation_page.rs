//! Predicted against measured times as one HTML page: a log-log picture and a table for each set.
//!
//! The page is drawn here and runs no script; what users named stands in it as text only.

use std::fmt::Write as _;
use std::io;
use std::io::Write;

use super::html::escaped;
use super::validation::Titled;
use crate::measure::Bench;
use crate::measure::Predicted;

/// Sides of a picture and the margin for its axes, in pixels.
const SIDE: f64 = 420.0;
const MARGIN: f64 = 56.0;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;\
padding:0 1rem;color:#1b1f24;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}\
table{border-collapse:collapse;font-size:.85rem;width:100%}th,td{padding:.25rem .5rem;text-align:right;\
border-bottom:1px solid #d8dee4}th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}\
.scroll{overflow-x:auto}svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#424a53}\
.far{color:#a40e26;font-weight:600}@media(prefers-color-scheme:dark){body{background:#14171a;color:#e6e8ea}\
th,td{border-color:#3a4048}svg text{fill:#b7bfc8}.far{color:#ff8d8d}}";

/// Writes the page.
pub fn write(bench: &Bench, all: &[Titled], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>phaze: predicted and measured</title>\n<style>{STYLE}</style>\n\
         <main>\n<h1>Predicted and measured times of training runs</h1>\n\
         <p>Each point is a run; on the line prediction and measurement agree, between the dashed lines \
         they differ by less than a tenth.</p>"
    )?;
    for titled in all.iter().filter(|one| one.found.time.is_some()) {
        section(bench, titled, out)?;
    }
    writeln!(out, "</main>\n</html>")
}

fn section(bench: &Bench, titled: &Titled, out: &mut dyn Write) -> io::Result<()> {
    let Titled { set, split, found } = titled;
    let Some(time) = &found.time else { return Ok(()) };
    let best = found.baselines.iter().flatten().map(|b| b.mean).fold(f64::INFINITY, f64::min);
    writeln!(
        out,
        "<section>\n<h2>{}, fitted on {}</h2>\n<p>{} runs: mean error {:.1} %, largest {:.1} %, bias \
         {:+.1} %; the better baseline has {:.1} %.</p>",
        escaped(set),
        escaped(split),
        time.n,
        time.mean * 100.0,
        time.max * 100.0,
        time.bias * 100.0,
        best * 100.0
    )?;
    let points: Vec<(f64, f64, String)> = found
        .predicted
        .iter()
        .filter_map(|one| {
            let run = &bench.runs[one.at].run;
            let said = format!("{} {}", run.model_name, run.strategy());
            Some((run.seconds?, one.prediction.seconds, said))
        })
        .collect();
    writeln!(out, "{}", picture(&points))?;
    writeln!(
        out,
        "<div class=\"scroll\"><table>\n<tr><th scope=\"col\">model</th><th scope=\"col\">strategy</th>\
         <th scope=\"col\">measured, s</th><th scope=\"col\">predicted, s</th>\
         <th scope=\"col\">error</th></tr>"
    )?;
    for one in &found.predicted {
        row(bench, one, out)?;
    }
    writeln!(out, "</table></div>\n</section>")
}

fn row(bench: &Bench, one: &Predicted, out: &mut dyn Write) -> io::Result<()> {
    let run = &bench.runs[one.at].run;
    let Some(seconds) = run.seconds else { return Ok(()) };
    let error = one.prediction.seconds / seconds - 1.0;
    let class = if error.abs() > 0.25 { " class=\"far\"" } else { "" };
    writeln!(
        out,
        "<tr><td>{}</td><td>{}</td><td>{seconds:.4}</td><td>{:.4}</td><td{class}>{:+.1} %</td></tr>",
        escaped(&run.model_name),
        escaped(&run.strategy()),
        one.prediction.seconds,
        error * 100.0
    )
}

/// A log-log picture of (measured, predicted, name).
fn picture(points: &[(f64, f64, String)]) -> String {
    let logs = points.iter().flat_map(|(x, y, _)| [x.log10(), y.log10()]);
    let low = logs.clone().fold(f64::INFINITY, f64::min) - 0.08;
    let high = logs.fold(f64::NEG_INFINITY, f64::max) + 0.08;
    let span = SIDE - MARGIN - 10.0;
    let along = |log: f64| MARGIN + (log - low) / (high - low) * span;
    let up = |log: f64| SIDE - MARGIN - (log - low) / (high - low) * span;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {SIDE} {SIDE}\" width=\"{SIDE}\" height=\"{SIDE}\" role=\"img\" \
         aria-label=\"predicted against measured seconds, both on logarithmic axes\">"
    );
    let mut line = |from: f64, to: f64, dashed: bool| {
        let dash = if dashed { " stroke-dasharray=\"4 4\"" } else { "" };
        let (x1, x2) = (low.max(low - (to - from)), high.min(high - (to - from)));
        let shift = to - from;
        let _ = write!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#8c959f\"{dash}/>",
            along(x1),
            up(x1 + shift),
            along(x2),
            up(x2 + shift)
        );
    };
    line(0.0, 0.0, false);
    line(0.0, 1.1_f64.log10(), true);
    line(0.0, (1.0 / 1.1_f64).log10(), true);
    for tick in ticks(low, high) {
        let log = tick.log10();
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            along(log),
            SIDE - MARGIN + 18.0,
            MARGIN - 8.0,
            up(log) + 4.0
        );
    }
    let middle = MARGIN + span / 2.0;
    let bottom = SIDE - 12.0;
    let _ = write!(
        svg,
        "<text x=\"{middle:.1}\" y=\"{bottom:.1}\" text-anchor=\"middle\">measured, seconds</text>\
         <text x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 14 {middle:.1})\">predicted, seconds</text>"
    );
    for (measured, predicted, name) in points {
        let _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\" fill=\"#0969da\" fill-opacity=\"0.75\">\
             <title>{}: measured {measured:.4} s, predicted {predicted:.4} s</title></circle>",
            along(measured.log10()),
            up(predicted.log10()),
            escaped(name)
        );
    }
    svg + "</svg>"
}

/// Round seconds between two logarithms: 1, 2 and 5 of every power of ten.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = (-6..=9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit, power)));
    let all = powers.map(|(digit, power): (f64, i32)| {
        if power < 0 { digit / 10_f64.powi(-power) } else { digit * 10_f64.powi(power) }
    });
    all.filter(|tick| (low..=high).contains(&tick.log10())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_point_for_each_run_inside_its_axes() {
        let name = "</svg><script>alert(1)</script>".to_owned();
        let points = [(0.5, 0.6, name), (80.0, 75.0, "another".to_owned())];
        let svg = picture(&points);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("<script>") && svg.ends_with("</svg>"));
        let places = svg.split("<circle cx=\"").skip(1).map(|rest| {
            let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
            (number(rest), number(rest.split("cy=\"").nth(1).unwrap()))
        });
        for (x, y) in places {
            assert!((MARGIN..=SIDE).contains(&x) && (0.0..=SIDE - MARGIN).contains(&y));
        }
    }

    #[test]
    fn axes_are_marked_with_round_seconds() {
        assert_eq!(ticks(-0.35, 1.1), [0.5, 1.0, 2.0, 5.0, 10.0]);
        assert_eq!(ticks(-1.1, -0.6), [0.1, 0.2]);
    }
}
