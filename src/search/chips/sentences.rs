//! What is said of an answer over chips, as pure functions of its facts: whoever has the facts can
//! say it again and compare.

use std::collections::BTreeMap;

use crate::hardware::chip::Budget;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipGrid;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::hardware::chip::OverBudget;
use crate::search::Share;
use crate::search::boxes::Closed;

use super::ChipPoint;
use super::outcome::Binding;
use super::outcome::ChipBaseline;
use super::outcome::ChipEntry;
use super::outcome::ClosedBy;

/// What a proof says of the whole grid.
#[derive(Clone, Copy, Debug)]
pub struct Proved<'a> {
    /// Combinations of values.
    pub points: u64,
    /// By reason.
    pub closed: &'a BTreeMap<String, ClosedBy>,
    /// Points that were not looked at.
    pub open_points: u64,
    /// What stopped the search early.
    pub stopped_by: Option<&'a str>,
    /// How much better than the best something unknown could be.
    pub gap: f64,
}

impl Proved<'_> {
    /// The whole proof in a sentence.
    pub fn statement(&self) -> String {
        let of = |word: &str| self.closed.get(word).copied().unwrap_or_default();
        let points = |words: &[&str]| words.iter().map(|word| of(word).points).sum::<u64>();
        let boxes: usize = self.closed.values().map(|closed| closed.boxes).sum();
        let reasons = format!(
            "{} chips take more than the budget, on {} \
             nothing fits, {} cannot be better even by their optimistic bound, {} not by the exact \
             time of their box's greatest corner, and {} were looked at one by one",
            points(&["over_budget"]),
            points(&["nothing_fits", "corner_nothing"]),
            points(&["bound"]),
            points(&["corner"]),
            points(&["evaluated", "beaten", "nothing"]),
        );
        let counts = format!("{boxes} boxes tile the {} chips of the grid: {reasons}", self.points);
        match self.stopped_by {
            Some(reason) if self.open_points == 0 && self.gap <= 0.0 => format!(
                "Proved: {counts}. What is told besides, such as chips nearly as good, was not looked for to the \
                 end: stopped by {reason}."
            ),
            Some(reason) => format!(
                "Not proved: stopped by {reason}; {} of the {} chips of the grid were not looked at{}; {boxes} boxes hold the \
                 others: {reasons}.",
                self.open_points,
                self.points,
                self.left()
            ),
            None if self.gap > 0.0 => format!(
                "Proved to within {:.3} %: {counts}; some schedules are not proved to the last \
                 picosecond.",
                self.gap * 100.0
            ),
            None => format!("Proved: {counts}."),
        }
    }
}

impl Proved<'_> {
    /// What chips that were not looked at may reach, where that is known.
    fn left(&self) -> String {
        if self.gap >= 1.0 {
            return String::new();
        }
        format!(
            ", none of which takes less than {:.1} % of what the best so far takes, by the objective",
            // Rounded down: it is a bound.
            ((1.0 - self.gap) * 1000.0).floor() / 10.0
        )
    }
}

/// How many boxes and points were closed by each reason.
pub fn closed_by(closed: &[Closed<N_CHIP_KNOBS>]) -> BTreeMap<String, ClosedBy> {
    let mut counts: BTreeMap<String, ClosedBy> = BTreeMap::new();
    for Closed { region, why } in closed {
        let count = counts.entry(why.word().0.to_owned()).or_default();
        count.boxes += 1;
        count.points += u64::try_from(region.volume()).unwrap_or(u64::MAX);
    }
    counts
}

/// What refuses the next value of every knob of a chip, which was proved to be the best or not.
pub fn bindings(grid: &ChipGrid, point: &ChipPoint, proved: bool) -> Vec<Binding> {
    let each = CHIP_KNOBS.iter().enumerate().map(|(at, knob)| {
        let next = grid.values(at).get(usize::from(point[at]) + 1).copied();
        let by = if next.is_some() {
            let mut raised = *point;
            raised[at] += 1;
            let unrefused = if proved { "nothing" } else { "unknown" };
            refused_by(grid, &grid.budget, &raised).unwrap_or(unrefused)
        } else {
            "space"
        };
        Binding { knob: knob.name.to_owned(), next, by: by.to_owned() }
    });
    each.collect()
}

fn refused_by(grid: &ChipGrid, budget: &Budget, point: &ChipPoint) -> Option<&'static str> {
    let chip = grid.chip(point).chip(&grid.technology);
    Some(match budget.check(&chip, &grid.technology).err()? {
        OverBudget::Edge { .. } => "edge",
        OverBudget::Clock { .. } => "clock",
        OverBudget::Tdp { .. } => "tdp",
        OverBudget::Price { .. } => "price",
        OverBudget::Area { .. } | OverBudget::Beyond => "area",
    })
}

/// Why a chip wins: what it has that others lack, what refuses more, where its time goes.
pub fn why_it_wins(
    winner: &ChipEntry,
    baselines: &[ChipBaseline],
    (binds, limited_by): (&[Binding], &[Share]),
) -> String {
    let mut said: Vec<String> =
        baselines.iter().take(2).filter_map(|b| beside(winner, b)).collect();
    let refusals = [
        ("tdp", "watts refuse"),
        ("area", "the die is too small for"),
        ("edge", "the die has no edge for"),
        ("price", "the price refuses"),
        ("clock", "no supply reaches"),
    ];
    for (by, refused) in refusals {
        let knobs: Vec<&str> =
            binds.iter().filter(|bind| bind.by == by).map(|bind| bind.knob.as_str()).collect();
        if !knobs.is_empty() {
            said.push(format!("{refused} more {}", knobs.join(", ")));
        }
    }
    let mut shares: Vec<&Share> = limited_by.iter().filter(|share| share.share >= 0.05).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    let shares = shares.iter().take(3);
    let shares: Vec<String> =
        shares.map(|share| format!("{} {:.0} %", share.what, share.share * 100.0)).collect();
    if !shares.is_empty() {
        said.push(format!("of its time {}", shares.join(", ")));
    }
    format!("{}.", said.join("; "))
}

/// A winner beside a baseline of the space, in a clause.
fn beside(winner: &ChipEntry, baseline: &ChipBaseline) -> Option<String> {
    let (entry, ratio) = (baseline.entry.as_ref()?, baseline.winner_is?.by_objective?);
    let differ: Vec<String> = CHIP_KNOBS
        .iter()
        .filter_map(|knob| {
            let (ours, theirs) =
                (winner.chip.knobs.get(knob.name)?, entry.chip.knobs.get(knob.name)?);
            (ours != theirs).then(|| format!("{} {ours}, not {theirs}", knob.name))
        })
        .collect();
    Some(match ratio {
        _ if differ.is_empty() => format!("`{}` would choose the same chip", baseline.name),
        ratio if ratio < 1.005 => {
            format!("the chip of `{}` is as good to half a percent", baseline.name)
        }
        ratio => format!(
            "{ratio:.2} times better than the chip of `{}`: {}",
            baseline.name,
            differ.join(", ")
        ),
    })
}

/// What is proved of a front of so many points with so many gaps, and by how many boxes.
pub fn front(resolution_per_mille: u64, points: usize, gaps: usize, boxes: usize) -> String {
    let rounded = if resolution_per_mille == 0 {
        "in dollars, watts and time".to_owned()
    } else {
        let percent = resolution_per_mille as f64 / 10.0;
        format!("in dollars, watts and time, each rounded up to steps of {percent} %")
    };
    format!(
        "whatever chip of the space is taken, one of these {points} is no worse {rounded}, and none of these is as \
         good as another in all three; {gaps} gaps between them are proved to be empty by {boxes} boxes"
    )
}

/// Why nothing was found on any chip of a grid.
pub fn nothing_fits(models: &[&str], devices: u64, power_cap_w: Option<f64>) -> String {
    let (capped, more) = match power_cap_w {
        Some(cap) => (format!(" and draws at most {cap} W on average"), ", a higher cap of power"),
        None => (String::new(), ""),
    };
    format!(
        "on no chip within the budget a plan of {} fits on {devices} devices{capped}: allow more devices, \
         more stacks of memory{more}, or a larger budget",
        models.join(", ")
    )
}
