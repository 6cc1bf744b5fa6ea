//! One batch through the pipeline, as rows of shades: a rank per row, time from left to right.

use std::io;
use std::io::Write;

use super::WIDTH;
use crate::plan::Plan;
use crate::plan::cost;
use crate::report::course;
use crate::report::course::Doing;
use crate::report::course::Span;
use crate::report::course::letter;
use crate::report::placement::time;
use crate::report::quantity::grouped;
use crate::report::quantity::shown;

/// More ranks than this are drawn by every n-th.
const MOST_ROWS: usize = 32;

/// More passes than this are not drawn: a picture of so few columns shows no more.
const MOST_PASSES: u64 = 1 << 17;

/// What a rank does, as it is drawn; the first is what it does where nothing else is said. Passes
/// follow, each chunk's forward and backward passes side by side.
const IDLE: usize = 0;
const EXCHANGE: usize = 1;
const STEP: usize = 2;
const GATHER: usize = 3;
const FIRST_PASS: usize = 4;
const SHADES: [char; FIRST_PASS] = ['·', '≈', '+', '»'];
const PASSES: [char; 2] = ['▒', '█'];

/// Draws the batch of a checked plan; each character is what the rank does most in its time.
pub fn write(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let placement = plan.answer.placement(plan.profile.n_layers());
    let placement = placement.expect("a checked plan holds every layer once");
    let cost = cost(&plan.profile, &plan.job, &placement);
    let mut spans: Vec<Span> = Vec::new();
    let played = course::play(plan, &placement, &cost, MOST_PASSES, |span| spans.push(span));
    let Some(played) = played.filter(|played| played.end > 0) else {
        return writeln!(out, "the pipeline has too many passes to draw");
    };
    let chunks = placement.schedule.chunks();
    let mut rows = vec![Row::new(played.end, chunks); cost.ranks.len()];
    for span in spans {
        rows[span.rank].add(drawn_as(span.doing), span.start, span.end);
    }
    let drawn = if played.micro_batches < cost.micro_batches {
        format!(", of which {} are drawn", grouped(played.micro_batches))
    } else {
        String::new()
    };
    writeln!(
        out,
        "one of {} pipelines of {}, {} micro-batches{drawn}",
        grouped(placement.data_parallel),
        shown(&plan.name),
        grouped(cost.micro_batches)
    )?;
    let every = rows.len().div_ceil(MOST_ROWS);
    for (rank, row) in rows.iter().enumerate().step_by(every) {
        writeln!(out, "{rank:>8}│{}", row.text())?;
    }
    writeln!(out, "{:8}└{}", "rank", "─".repeat(WIDTH))?;
    writeln!(out, "{:9}0{:>2$}", "", time(&plan.units, played.end.into()), WIDTH - 1)?;
    legend(chunks, out)
}

/// Every sign that may be drawn.
fn legend(chunks: usize, out: &mut dyn Write) -> io::Result<()> {
    let passes = match (letter(0), letter(chunks - 1)) {
        _ if chunks == 1 => format!("{} forward   {} backward", PASSES[0], PASSES[1]),
        (a, z) => {
            let (from, to) = (a.to_ascii_uppercase(), z.to_ascii_uppercase());
            format!("{a} to {z} forward, {from} to {to} backward, by chunk")
        }
    };
    writeln!(out, "{:9}{passes}", "")?;
    writeln!(out, "{:9}≈ gradients   + optimizer   » weights gathered   · bubble", "")
}

fn drawn_as(doing: Doing) -> usize {
    match doing {
        Doing::Forward { chunk, .. } => FIRST_PASS + 2 * chunk,
        Doing::Backward { chunk, .. } => FIRST_PASS + 2 * chunk + 1,
        Doing::Exchange => EXCHANGE,
        Doing::Step => STEP,
        Doing::Gather => GATHER,
        Doing::Idle => IDLE,
    }
}

/// A rank's time by column and by what it does.
#[derive(Clone)]
struct Row {
    end: u64,
    chunks: usize,
    columns: Vec<Vec<u128>>,
}

impl Row {
    fn new(end: u64, chunks: usize) -> Self {
        Self { end, chunks, columns: vec![vec![0; FIRST_PASS + 2 * chunks]; WIDTH] }
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

    /// Idle where the rank stands still for more than half of a column, else the sign of what it
    /// does most; of equals the first.
    fn shade(&self, column: &[u128]) -> char {
        let busy: u128 = column[IDLE + 1..].iter().sum();
        if 2 * busy < u128::from(self.end) {
            return SHADES[IDLE];
        }
        let mut best = IDLE + 1;
        for (what, &time) in column.iter().enumerate().skip(best) {
            if time > column[best] {
                best = what;
            }
        }
        self.sign(best)
    }

    /// How something is drawn: passes of several chunks as letters, backward in capitals.
    fn sign(&self, what: usize) -> char {
        let Some(pass) = what.checked_sub(FIRST_PASS) else { return SHADES[what] };
        let (chunk, backward) = (pass / 2, pass % 2);
        match (self.chunks, backward) {
            (1, _) => PASSES[backward],
            (_, 0) => letter(chunk),
            (_, _) => letter(chunk).to_ascii_uppercase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::placement::example;

    const FORWARD: usize = FIRST_PASS;
    const BACKWARD: usize = FIRST_PASS + 1;

    fn drawn(plan: &Plan) -> String {
        let mut text = Vec::new();
        write(plan, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn chunks_are_told_apart_by_letters_that_the_legend_explains() {
        let text = drawn(&example(true));
        assert!(text.contains("a to b forward, A to B backward, by chunk"), "{text}");
        let rows: String = text.lines().filter(|line| line.contains('│')).collect();
        assert!(['a', 'b', 'A', 'B', '·'].iter().all(|&sign| rows.contains(sign)), "{text}");
        assert!(!rows.contains('█'), "{text}");
    }

    #[test]
    fn every_sign_is_in_the_legend() {
        let text = drawn(&example(false));
        let (rows, legend) = text.split_once('└').unwrap();
        let signs = rows.lines().filter_map(|line| line.split_once('│'));
        let signs: String = signs.map(|(_, row)| row.to_owned()).collect();
        assert!(signs.chars().all(|sign| legend.contains(sign)), "{text}");
        assert!(signs.contains('▒') && signs.contains('█') && signs.contains('+'), "{text}");
    }

    #[test]
    fn a_column_shows_what_fills_most_of_it() {
        let mut row = Row::new(72, 1);
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
        let mut row = Row::new(720, 1);
        row.add(FORWARD, 0, 3);
        row.add(BACKWARD, 4, 7);
        row.add(FORWARD, 10, 14);
        assert_eq!(row.text().chars().take(2).collect::<String>(), "▒·");
    }

    #[test]
    fn time_is_neither_lost_nor_made_by_columns() {
        let mut row = Row::new(1_000_003, 1);
        row.add(FORWARD, 17, 999_999);
        let counted: u128 = row.columns.iter().map(|column| column[FORWARD]).sum();
        assert_eq!(counted, (999_999 - 17) * WIDTH as u128);
    }
}
