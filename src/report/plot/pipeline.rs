//! One batch through the pipeline, as rows of shades: a stage per row, time from left to right.

use std::io;
use std::io::Write;

use super::WIDTH;
use crate::plan::Plan;
use crate::plan::cost;
use crate::plan::simulate;
use crate::report::quantity::grouped;
use crate::report::quantity::shown;

/// More stages than this are drawn by every n-th.
const MOST_ROWS: usize = 32;

/// What a stage does, as it is drawn; the first is what it does where nothing else is said.
const IDLE: usize = 0;
const FORWARD: usize = 1;
const BACKWARD: usize = 2;
const EXCHANGE: usize = 3;
const STEP: usize = 4;
const SHADES: [char; 5] = ['·', '▒', '█', '≈', '+'];

/// Draws the batch of a checked plan; each character is what the stage does most in its time.
pub fn write(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let placement = plan.answer.placement(plan.profile.n_layers());
    let placement = placement.expect("a checked plan holds every layer once");
    let cost = cost(&plan.profile, &plan.job, &placement);
    let Some(end) = plan.answer.simulated.filter(|&end| end > 0) else {
        return writeln!(out, "the pipeline has too many passes to draw");
    };
    let mut rows = vec![Row::new(end); cost.stages.len()];
    let played = simulate(&cost, |event| {
        let what = if event.backward { BACKWARD } else { FORWARD };
        rows[event.stage].add(what, event.start, event.end);
    });
    let Some(played) = played else {
        return writeln!(out, "the pipeline has too many passes to draw");
    };
    for ((row, stage), at) in rows.iter_mut().zip(&cost.stages).zip(played.finished) {
        row.add(EXCHANGE, at, at + stage.exchange);
        row.add(STEP, at + stage.exchange, at + stage.end());
    }
    writeln!(
        out,
        "one of {} pipelines of {}, {} micro-batches",
        grouped(placement.data_parallel),
        shown(&plan.name),
        grouped(cost.micro_batches)
    )?;
    let every = rows.len().div_ceil(MOST_ROWS);
    for (stage, row) in rows.iter().enumerate().step_by(every) {
        writeln!(out, "{:>8}│{}", stage + 1, row.text())?;
    }
    writeln!(out, "{:8}└{}", "stage", "─".repeat(WIDTH))?;
    let time = plan.units.time(end.into());
    writeln!(out, "{:9}0{:>2$.4} {unit}", "", time, WIDTH - 2, unit = shown(&plan.units.time))?;
    writeln!(out, "{:9}▒ forward   █ backward   ≈ gradients   + optimizer   · idle", "")
}

/// A stage's time by column and by what it does.
#[derive(Clone)]
struct Row {
    end: u64,
    columns: Vec<[u128; 5]>,
}

impl Row {
    fn new(end: u64) -> Self {
        Self { end, columns: vec![[0; 5]; WIDTH] }
    }

    /// Counts `from..to` to the columns that it touches; in units in which a column is `end` long.
    fn add(&mut self, what: usize, from: u64, to: u64) {
        let (length, n) = (u128::from(self.end), WIDTH as u128);
        let (from, to) = (u128::from(from) * n, u128::from(to.min(self.end)) * n);
        let mut at = from;
        while at < to {
            let column = at / length;
            let until = to.min((column + 1) * length);
            let place = usize::try_from(column).expect("a column of the picture").min(WIDTH - 1);
            self.columns[place][what] += until - at;
            at = until;
        }
    }

    fn text(&self) -> String {
        let line: String = self.columns.iter().map(|column| self.shade(column)).collect();
        line.trim_end().to_owned()
    }

    /// Idle where the stage stands still for more than half of a column, else the shade of what it
    /// does most; of equals the first.
    fn shade(&self, column: &[u128; 5]) -> char {
        let busy: u128 = column.iter().sum();
        if 2 * busy < u128::from(self.end) {
            return SHADES[IDLE];
        }
        let mut best = 0;
        for (what, &time) in column.iter().enumerate() {
            if time > column[best] {
                best = what;
            }
        }
        SHADES[best]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_what_fills_most_of_it() {
        let mut row = Row::new(72);
        row.add(FORWARD, 0, 10);
        row.add(BACKWARD, 10, 30);
        row.add(EXCHANGE, 70, 71);
        row.add(STEP, 71, 72);
        let text: Vec<char> = row.text().chars().collect();
        assert_eq!(text[..10], ['▒'; 10]);
        assert_eq!(text[10..30], ['█'; 20]);
        assert_eq!(text[30..70], ['·'; 40]);
        assert_eq!(text[70..], ['≈', '+']);
    }

    #[test]
    fn a_stage_that_works_most_of_the_time_is_not_shown_idle() {
        let mut row = Row::new(720);
        row.add(FORWARD, 0, 3);
        row.add(BACKWARD, 4, 7);
        row.add(FORWARD, 10, 14);
        assert_eq!(row.text().chars().take(2).collect::<String>(), "▒·");
    }

    #[test]
    fn time_is_neither_lost_nor_made_by_columns() {
        let mut row = Row::new(1_000_003);
        row.add(FORWARD, 17, 999_999);
        let counted: u128 = row.columns.iter().map(|column| column[FORWARD]).sum();
        assert_eq!(counted, (999_999 - 17) * WIDTH as u128);
    }
}
