//! The certificate of a search over chips: every closed box with why it is closed.

use std::io;
use std::io::Write;

use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipGrid;
use crate::search::boxes::Value;
use crate::search::chips::ChipFront;
use crate::search::chips::ChipRegion;
use crate::search::chips::ChipSetup;
use crate::search::chips::ChipSurvey;
use crate::search::chips::ChipWalk;
use crate::search::chips::WhySurvey;
use crate::search::chips::counted_word;
use crate::search::chips::gap_word;
use crate::search::chips::near_word;

/// What the rows of the objective are called; those of near-winners bear the word of their figure.
pub const OBJECTIVE: &str = "objective";

/// What the rows are called that prove the own best of a model.
pub fn model_alone(model: usize) -> String {
    format!("model {model} alone")
}

/// The reason of a box that was not looked at.
pub const OPEN: &str = "open";

/// The heading: what is proved, why, by which value, which tie and which place, and both ends
/// of every knob.
pub fn columns() -> Vec<String> {
    let ends =
        CHIP_KNOBS.iter().flat_map(|knob| ["from", "to"].map(|end| format!("{}_{end}", knob.name)));
    ["proves", "why", "value", "tie", "place"].into_iter().map(str::to_owned).chain(ends).collect()
}

/// Writes all boxes: those of the objective, of each model alone, of each near-winner.
pub fn write(setup: &ChipSetup, survey: &ChipSurvey, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", columns().join(","))?;
    let near = survey.near.iter().map(|(figure, walk)| (figure.word().to_owned(), walk));
    let alone = survey.alone.iter().enumerate().map(|(at, walk)| (model_alone(at), walk));
    for (proves, walk) in
        std::iter::once((OBJECTIVE.to_owned(), &survey.walk)).chain(alone).chain(near)
    {
        boxes(setup, &proves, walk, out)?;
    }
    Ok(())
}

/// Writes the boxes of what was searched around the winner.
pub fn write_why(setup: &ChipSetup, why: &WhySurvey, out: &mut dyn Write) -> io::Result<()> {
    let near =
        why.near.iter().map(|(per_mille, figure, walk)| (near_word(*figure, *per_mille), walk));
    let budgets = why.budgets.iter().filter_map(|(step, walk)| Some((step.word(), walk.as_ref()?)));
    let others =
        why.objectives.iter().map(|(judge, walk)| (judge.objective.name().to_owned(), walk));
    let counted = std::iter::once((counted_word(), &why.counted));
    for (proves, walk) in near.chain(budgets).chain(others).chain(counted) {
        boxes(setup, &proves, walk, out)?;
    }
    Ok(())
}

/// Writes the boxes that prove the gaps of a front to be empty.
pub fn write_front(setup: &ChipSetup, front: &ChipFront, out: &mut dyn Write) -> io::Result<()> {
    for (at, gap) in front.gaps.iter().enumerate() {
        boxes(setup, &gap_word(at), &gap.walk, out)?;
    }
    Ok(())
}

/// The boxes of one walk.
fn boxes(setup: &ChipSetup, proves: &str, walk: &ChipWalk, out: &mut dyn Write) -> io::Result<()> {
    for closed in &walk.closed {
        let (why, value) = closed.why.word();
        row(setup, (proves, why, value), &closed.region, out)?;
    }
    for (region, least) in &walk.open {
        row(setup, (proves, OPEN, *least), region, out)?;
    }
    Ok(())
}

fn row(
    setup: &ChipSetup,
    (proves, why, value): (&str, &str, Option<Value>),
    region: &ChipRegion,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{proves},{why},")?;
    match value {
        Some(Value { first, second, place }) => write!(out, "{first},{second},{place}")?,
        None => write!(out, ",,")?,
    }
    for [from, to] in ends(&setup.grid, region) {
        write!(out, ",{from},{to}")?;
    }
    writeln!(out)
}

/// By knob: the least and the greatest value in a box.
fn ends(grid: &ChipGrid, region: &ChipRegion) -> Vec<[u64; 2]> {
    let value = |knob: usize, place: u16| grid.values(knob)[usize::from(place)];
    (0..CHIP_KNOBS.len())
        .map(|knob| [value(knob, region.lo[knob]), value(knob, region.hi[knob])])
        .collect()
}
