//! Two answers over chips side by side; on one axis only what was asked for the same.

use std::io;
use std::io::Write;

use crate::report::chips::chip_line;
use crate::report::outcome::value;
use crate::search::chips::ChipOutcome;

use super::SavedChips;
use super::close;
use super::curves::axis;
use super::die;
use super::models;
use super::open;
use super::text;

/// Writes the page that sets two answers side by side.
pub fn write(first: &SavedChips, second: &SavedChips, out: &mut dyn Write) -> io::Result<()> {
    open(&format!("{} and {}", first.name, second.name), out)?;
    writeln!(out, "<h1>{} and {}</h1>", text(&first.name), text(&second.name))?;
    if alike(first.outcome, second.outcome) {
        axis_of_both(first, second, out)?;
    } else {
        writeln!(
            out,
            "<p id=\"unlike\">They were not asked for the same thing: their values stand in their own units, and \
             on no common axis.</p>"
        )?;
    }
    writeln!(out, "<div class=\"side\">")?;
    for saved in [first, second] {
        let outcome = saved.outcome;
        writeln!(out, "<section><h2>{}</h2>", text(&saved.name))?;
        writeln!(out, "<p class=\"eyebrow\">{}</p>", text(&models(outcome)))?;
        match &outcome.winner {
            None => writeln!(out, "<p>Nothing fits.</p>")?,
            Some(winner) => {
                let worth = value(outcome.request.objective, outcome.models.len(), winner.value);
                writeln!(out, "<p class=\"lead\">{}</p>", text(&worth))?;
                writeln!(out, "<p>{}</p>", text(&chip_line(&winner.chip)))?;
                for result in &winner.results {
                    let (model, plan) = (text(&result.model), text(&result.strategy.sentence));
                    writeln!(out, "<p class=\"note\">{model}: {plan}</p>")?;
                }
                writeln!(out, "{}", die::picture(&winner.chip))?;
                writeln!(out, "{}", die::bars(outcome, &winner.chip))?;
            }
        }
        writeln!(out, "</section>")?;
    }
    writeln!(out, "</div>")?;
    close(out)
}

/// Whether two values mean the same: the objective, the models with their sequences, and the batch.
fn alike(first: &ChipOutcome, second: &ChipOutcome) -> bool {
    let asked = |outcome: &ChipOutcome| {
        let models = outcome.models.iter();
        let models: Vec<(String, u64)> =
            models.map(|model| (model.name.clone(), model.sequence)).collect();
        let request = &outcome.request;
        (request.objective, models, request.combine)
    };
    asked(first) == asked(second)
}

/// Both values as bars on one axis.
fn axis_of_both(first: &SavedChips, second: &SavedChips, out: &mut dyn Write) -> io::Result<()> {
    let worth = |saved: &SavedChips| saved.outcome.winner.as_ref().map(|winner| winner.value);
    let most = [first, second].iter().filter_map(|saved| worth(saved)).fold(1e-300, f64::max);
    let (width, high) = (640.0, 30.0);
    writeln!(
        out,
        "<figure id=\"axis\"><figcaption>{}</figcaption><svg viewBox=\"0 0 {width} {}\" width=\"{width}\" \
         role=\"img\" aria-label=\"both values\">",
        text(&axis(first.outcome)),
        2.0 * high + 8.0
    )?;
    for (at, saved) in [first, second].into_iter().enumerate() {
        let y = at as f64 * high + 4.0;
        let wide = worth(saved).unwrap_or(0.0) / most * (width - 330.0);
        let shown = worth(saved).map_or("nothing fits".to_owned(), |worth| {
            value(saved.outcome.request.objective, saved.outcome.models.len(), worth)
        });
        writeln!(
            out,
            "<text x=\"0\" y=\"{:.0}\">{}</text><rect class=\"top\" x=\"150\" y=\"{y:.0}\" width=\"{wide:.1}\" \
             height=\"{:.0}\"/><text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            y + 15.0,
            text(&shortened(&saved.name)),
            high - 8.0,
            156.0 + wide,
            y + 15.0,
            text(&shown)
        )?;
    }
    writeln!(out, "</svg></figure>")
}

/// The end of a name, which tells directories apart.
fn shortened(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= 20 { name.to_owned() } else { chars[chars.len() - 20..].iter().collect() }
}
