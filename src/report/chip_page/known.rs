//! The chips of a certificate that were evaluated one by one.

use std::collections::BTreeMap;

use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipKnobs;
use crate::report::boxes_csv::OBJECTIVE;
use crate::search::chips::ChipPoint;
use crate::search::chips::NearFigure;

use super::SavedChips;

/// A chip that was evaluated, and what it takes.
pub struct Known {
    /// Its knobs.
    pub knobs: ChipKnobs,
    /// By the objective, as certificates count; less is better.
    pub cost: u128,
    /// Its value in the objective's unit.
    pub value: f64,
    /// Its die.
    pub mm2: f64,
    /// Its design power.
    pub watts: f64,
    /// To make one.
    pub dollars: f64,
}

/// All of them, the best first.
pub fn known(saved: &SavedChips) -> Vec<Known> {
    let (setup, grid) = (saved.setup, &saved.setup.grid);
    let near = |proves: &str| {
        NearFigure::ALL.iter().any(|figure| {
            proves == figure.word() || proves.starts_with(&format!("{} within", figure.word()))
        })
    };
    let mut costs: BTreeMap<ChipPoint, u128> = BTreeMap::new();
    for row in saved.boxes.iter().skip(1).filter(|row| row.get(1).is_some_and(|w| w == "evaluated"))
    {
        // Of near-winners the value by the objective stands beside the figure.
        let cell = match row[0].as_str() {
            OBJECTIVE => row.get(2),
            proves if near(proves) => row.get(3),
            _ => None,
        };
        let Some(cost) = cell.and_then(|cell| cell.parse().ok()) else { continue };
        let mut point = [0; CHIP_KNOBS.len()];
        let found = point.iter_mut().enumerate().all(|(knob, place)| {
            let value = row.get(4 + 2 * knob).and_then(|cell| cell.parse::<u64>().ok());
            let at = value.and_then(|value| grid.values(knob).binary_search(&value).ok());
            at.and_then(|at| u16::try_from(at).ok()).map(|at| *place = at).is_some()
        });
        if found {
            costs.insert(point, cost);
        }
    }
    let judge = crate::search::chips::judge(setup);
    let mut all: Vec<Known> = costs
        .into_iter()
        .filter_map(|(point, cost)| {
            let knobs = setup.knobs(&point);
            let figures = setup.figures(&knobs)?;
            Some(Known {
                cost,
                value: judge.figure(cost),
                mm2: figures.die.total().square_millimetres(),
                watts: figures.tdp.total().watts(),
                dollars: figures.cost.total().dollars(),
                knobs,
            })
        })
        .collect();
    all.sort_by_key(|known| (known.cost, known.knobs));
    all
}
