//! A chip in figures, as pure functions of its knobs and of what was found on it.

use crate::hardware::chip::Activity;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipPower;
use crate::search::Share;

use super::ChipPoint;
use super::outcome::ChipEntry;
use super::outcome::ChipFacts;
use super::outcome::Part;
use super::setup::ChipSetup;

/// A chip in figures; `None` where it cannot be made.
pub fn chip_facts(setup: &ChipSetup, point: &ChipPoint) -> Option<ChipFacts> {
    let knobs = setup.knobs(point);
    let technology = &setup.grid.technology;
    let chip = knobs.chip(technology);
    let figures = setup.figures(&knobs)?;
    let ownership = setup.ownership(&knobs, &figures);
    let design = knobs.design(technology);
    let die = figures.die.total();
    let peak = ChipPower::of(&chip, die, Activity::Peak, technology)?;
    let part = |what: &str, amount: f64| Part { what: what.to_owned(), amount };
    let areas = figures.die.parts();
    let watts = figures.tdp.parts();
    Some(ChipFacts {
        knobs: CHIP_KNOBS.iter().map(|knob| (knob.name.to_owned(), (knob.get)(&knobs))).collect(),
        peak_flops_per_s: chip.peak_flops_per_second() as f64,
        hbm_bytes: chip.memory.size.0,
        hbm_bytes_per_s: chip.memory.bandwidth.as_bytes_per_second(),
        local_tensor_bytes: design.local.0,
        local_vector_bytes: design.vector_local.0,
        die_mm2: die.square_millimetres(),
        die: areas.into_iter().map(|(what, area)| part(what, area.square_millimetres())).collect(),
        tdp_w: figures.tdp.total().watts(),
        power: watts.into_iter().map(|(what, power)| part(what, power.watts())).collect(),
        peak_w: peak.total().watts(),
        cost_usd: figures.cost.total().dollars(),
        cost: figures
            .cost
            .parts()
            .into_iter()
            .map(|(what, money)| part(what, money.dollars()))
            .collect(),
        ownership_usd: ownership.total().dollars(),
        ownership: ownership
            .parts()
            .into_iter()
            .map(|(what, money)| part(what, money.dollars()))
            .collect(),
        carbon_kg: setup.carbon(&knobs, &figures).total() as f64 / 1000.0,
    })
}

/// Where the time of the first model's batch goes, as shares.
pub fn limits(winner: &ChipEntry) -> Vec<Share> {
    let Some(result) = winner.results.first() else { return Vec::new() };
    let total = result.breakdown_s.total();
    let parts = result.breakdown_s.parts().into_iter();
    parts.map(|(what, seconds)| Share { what: what.into(), share: seconds / total }).collect()
}
