//! The certificate of a search over boxes: every closed box with why it is closed.

use std::io;
use std::io::Write;

use crate::hardware::Knob;
use crate::hardware::chip::CHIP_KNOBS;
use crate::search::Setup;
use crate::search::boxes::BoxWalk;
use crate::search::boxes::Region;
use crate::search::boxes::Value;
use crate::search::chips::ChipFront;
use crate::search::chips::ChipSetup;
use crate::search::chips::ChipSurvey;
use crate::search::chips::ChipWalk;
use crate::search::chips::WhySurvey;
use crate::search::chips::counted_word;
use crate::search::chips::gap_word;
use crate::search::chips::near_word;
use crate::search::designs::DesignBoxes;

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
    columns_of(CHIP_KNOBS.iter().map(|knob| knob.name))
}

/// The same of designs of the published space.
pub fn design_columns() -> Vec<String> {
    columns_of(Knob::of_chip().map(|knob| knob.name))
}

fn columns_of(knobs: impl Iterator<Item = &'static str>) -> Vec<String> {
    let ends = knobs.flat_map(|knob| ["from", "to"].map(|end| format!("{knob}_{end}")));
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

/// What the rows are called that prove the best design with so much memory, for all models or for one alone.
pub fn with_memory(alone: Option<usize>, gib: u64) -> String {
    let what = alone.map_or(OBJECTIVE.to_owned(), model_alone);
    format!("{what} with {gib} GiB")
}

/// Writes the boxes of designs of the published space.
pub fn write_designs(setup: &Setup, all: &[DesignBoxes], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", design_columns().join(","))?;
    let grid = setup.grid();
    for DesignBoxes { alone, hbm, walk } in all {
        let proves = with_memory(*alone, setup.request.space.hbm_gib[*hbm]);
        each(&proves, walk, out, &|knob, place| grid.value(knob, place))?;
    }
    Ok(())
}

/// The boxes of one walk.
fn boxes(setup: &ChipSetup, proves: &str, walk: &ChipWalk, out: &mut dyn Write) -> io::Result<()> {
    each(proves, walk, out, &|knob, place| Some(setup.grid.values(knob)[usize::from(place)]))
}

/// The value of a knob at a place; `None` where it follows from others.
type Values<'a> = &'a dyn Fn(usize, u16) -> Option<u64>;

fn each<const N: usize, F>(
    proves: &str,
    walk: &BoxWalk<N, F>,
    out: &mut dyn Write,
    values: Values,
) -> io::Result<()> {
    for closed in &walk.closed {
        let (why, value) = closed.why.word();
        row((proves, why, value), &closed.region, out, values)?;
    }
    for (region, least) in &walk.open {
        row((proves, OPEN, *least), region, out, values)?;
    }
    Ok(())
}

fn row<const N: usize>(
    (proves, why, value): (&str, &str, Option<Value>),
    region: &Region<N>,
    out: &mut dyn Write,
    values: Values,
) -> io::Result<()> {
    write!(out, "{proves},{why},")?;
    match value {
        Some(Value { first, second, place }) => write!(out, "{first},{second},{place}")?,
        None => write!(out, ",,")?,
    }
    for knob in 0..N {
        for place in [region.lo[knob], region.hi[knob]] {
            match values(knob, place) {
                Some(value) => write!(out, ",{value}")?,
                None => write!(out, ",")?,
            }
        }
    }
    writeln!(out)
}
