//! The least slowest load of every suffix of a model, in every number of stages.
//!
//! Row (j, v) holds, for each state, the least possible slowest load of exactly j stages from
//! there to the end of which v take a single device. Rows are made when first asked for. What
//! fits in memory depends on how many micro-batches are in flight, so there is one set of rows
//! for each cap on that number.

use super::Cuts;

/// No way to cut. A load cannot reach it: profiles are bounded far below.
pub(super) const NONE: u64 = u64::MAX;

/// Rows for every cap that was asked for.
pub(super) struct Tables<'a, C> {
    cuts: &'a C,
    most_narrow: usize,
    capped: Vec<(u64, Rows)>,
}

/// The rows for one cap on micro-batches in flight.
#[derive(Default)]
pub(super) struct Rows {
    levels: Vec<Vec<Row>>,
}

/// The least slowest loads for one number of stages and of narrow ones among them.
pub(super) struct Row {
    /// By state.
    pub slowest: Vec<u64>,
    /// Whether, the first state apart, they never grow from a state to the next up to the last
    /// state with enough layers left.
    pub falls: bool,
}

impl<'a, C: Cuts> Tables<'a, C> {
    pub(super) fn new(cuts: &'a C, most_narrow: usize) -> Self {
        Self { cuts, most_narrow, capped: Vec::new() }
    }

    /// The rows up to `n_stages` where at most `cap` micro-batches beside one are in flight.
    pub(super) fn rows(&mut self, cap: u64, n_stages: usize) -> &Rows {
        let found = self.capped.iter().position(|(known, _)| *known == cap);
        let place = found.unwrap_or_else(|| {
            self.capped.push((cap, Rows::default()));
            self.capped.len() - 1
        });
        let rows = &mut self.capped[place].1;
        while rows.levels.len() < n_stages {
            let level = next_level(self.cuts, self.most_narrow, cap, rows);
            rows.levels.push(level);
        }
        &self.capped[place].1
    }
}

impl Rows {
    /// The row for `n_stages` of which `n_narrow` are narrow; `None` for more than there can be.
    pub(super) fn row(&self, n_stages: usize, n_narrow: usize) -> Option<&Row> {
        self.levels[n_stages - 1].get(n_narrow)
    }

    /// Whether some stages take one device although others take more.
    pub(super) fn has_narrow(&self) -> bool {
        self.levels.iter().any(|level| level.len() > 1)
    }

    /// The least slowest load of the whole model.
    pub(super) fn whole(&self, n_stages: usize, n_narrow: usize) -> Option<u64> {
        let slowest = self.row(n_stages, n_narrow)?.slowest[0];
        (slowest != NONE).then_some(slowest)
    }
}

fn next_level(cuts: &impl Cuts, most_narrow: usize, cap: u64, rows: &Rows) -> Vec<Row> {
    let n_stages = rows.levels.len() + 1;
    let n_rows = most_narrow.min(n_stages) + 1;
    let slowest = match rows.levels.last() {
        None => last_stages(cuts, n_rows),
        Some(later) => match &later[..] {
            [tail] if n_rows == 1 && cuts.is_monotone() && tail.falls => {
                vec![crossing(cuts, n_stages, cap, &tail.slowest)]
            }
            _ => scan(cuts, n_stages, n_rows, cap, later),
        },
    };
    let falls = |row: &[u64]| {
        let enough_left = cuts.n_states().saturating_sub(n_stages);
        let states = row.get(1..enough_left).unwrap_or(&[]);
        states.windows(2).all(|pair| pair[0] >= pair[1])
    };
    slowest.into_iter().map(|slowest| Row { falls: falls(&slowest), slowest }).collect()
}

/// One stage from each state to the end.
fn last_stages(cuts: &impl Cuts, n_rows: usize) -> Vec<Vec<u64>> {
    let end = cuts.n_states() - 1;
    let mut rows = vec![vec![NONE; end + 1]; n_rows];
    for from in (0..end).filter(|&from| cuts.fits(from, end, 0)) {
        let narrow = usize::from(n_rows > 1 && cuts.is_narrow(from, end));
        rows[narrow][from] = cuts.load(from, end);
    }
    rows
}

/// Tries every first stage: right for any model.
fn scan(
    cuts: &impl Cuts,
    n_stages: usize,
    n_rows: usize,
    cap: u64,
    later: &[Row],
) -> Vec<Vec<u64>> {
    let extra = cap.min(n_stages as u64 - 1);
    let mut rows = vec![vec![NONE; cuts.n_states()]; n_rows];
    for from in 0..cuts.n_states() {
        scan_from(cuts, (from, n_stages, extra), later, &mut rows);
    }
    rows
}

fn scan_from(
    cuts: &impl Cuts,
    (from, n_stages, extra): (usize, usize, u64),
    later: &[Row],
    rows: &mut [Vec<u64>],
) {
    for to in from + 1..cuts.n_states() {
        let dead_end = later.iter().all(|tail| tail.slowest[to] == NONE);
        if dead_end || cuts.n_left(to) + 1 < n_stages || !cuts.leads(from, to) {
            continue;
        }
        let load = cuts.load(from, to);
        let narrow = usize::from(rows.len() > 1 && cuts.is_narrow(from, to));
        // Memory is asked last and once: few stages improve on what is known.
        let mut fits = None;
        for (v, tail) in later.iter().enumerate() {
            let slowest = load.max(tail.slowest[to]);
            let Some(row) = rows.get_mut(v + narrow) else { continue };
            if slowest < row[from] && *fits.get_or_insert_with(|| cuts.fits(from, to, extra)) {
                row[from] = slowest;
            }
        }
    }
}

/// The same where a longer first stage is never faster and a shorter rest never slower: the best
/// first stage is where the two meet, and that place only moves left with the state.
fn crossing(cuts: &impl Cuts, n_stages: usize, cap: u64, tail: &[u64]) -> Vec<u64> {
    let extra = cap.min(n_stages as u64 - 1);
    let n_states = cuts.n_states();
    let mut row = vec![NONE; n_states];
    // The last state that leaves a layer for each later stage.
    let Some(last) = n_states.checked_sub(n_stages).filter(|&last| last > 0) else { return row };
    let load = |from: usize, to: usize| {
        if cuts.fits(from, to, extra) { cuts.load(from, to) } else { NONE }
    };
    // Invariant: from `meet` on, a first stage that ends there is no faster than the rest.
    let mut meet = last + 1;
    for from in (1..last).rev() {
        while meet > from + 1 && load(from, meet - 1) >= tail[meet - 1] {
            meet -= 1;
        }
        let short = if meet > from + 1 { tail[meet - 1] } else { NONE };
        let long = if meet <= last { load(from, meet) } else { NONE };
        row[from] = short.min(long);
    }
    // The first layer may be unlike all others (an embedding next to nothing costs less than the
    // edge that it hides), so the first state is scanned.
    for (to, &rest) in tail.iter().enumerate().take(last + 1).skip(1) {
        if rest < row[0] {
            let slowest = cuts.load(0, to).max(rest);
            if slowest < row[0] && cuts.fits(0, to, extra) {
                row[0] = slowest;
            }
        }
    }
    row
}
